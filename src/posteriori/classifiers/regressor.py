"""The base of regressors, which answer by the density of a number given a row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import numpy as np
from sklearn.base import RegressorMixin

from posteriori.classifiers.estimator import Answering
from posteriori.classifiers.keywords import PROBABILITIES, SAMPLE, SUMMARY
from posteriori.classifiers.partitions import require_in_memory
from posteriori.learning.importance import Importance
from posteriori.model.predictive import PredictiveDensity
from posteriori.reading import read_labels
from posteriori.registry import Subject
from posteriori.regression.explanation import NumberExplanation, parts_of
from posteriori.regression.held_out import HeldOutNumbers
from posteriori.regression.rows import learnable_numbers
from posteriori.regression.value import FittedNumbers
from posteriori.support.keywords import Elsewhere
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.writing import decode


class Regressor(RegressorMixin, Answering):
    """Predicts a number as a density, by a fitted value."""

    subject = Subject.NUMBER
    takes_two_values = True
    fitted_: FittedNumbers

    predict_proba = Elsewhere(PROBABILITIES)
    predict_log_proba = Elsewhere(PROBABILITIES)
    predict_joint_log_proba = Elsewhere(PROBABILITIES)
    sample = Elsewhere(SAMPLE)
    summary = Elsewhere(SUMMARY)

    @property
    def _value(self) -> FittedNumbers:
        return cast(FittedNumbers, super()._value)

    @property
    def cv_results_(self) -> dict[str, list[Any]]:
        """The cross-validated scores, as a table: of each member and of the pool, or of the one model."""
        found: dict[str, list[Any]] = self._part(self._value.results or None, "keeps no cross-validated scores")
        return found

    @property
    def out_of_fold_(self) -> HeldOutNumbers:
        """Held-out densities of training rows."""
        found: HeldOutNumbers = self._part(self._value.out_of_fold, "keeps no held-out predictions")
        return found

    @property
    def importance_(self) -> Importance:
        r"""Feature importance: by how much the held-out CRPS grows without each column, in units of y.

        .. math:: I_j = \mathbb{E}[\mathrm{crps}(y \mid x_{-j}) - \mathrm{crps}(y \mid x)]

        The column is treated as unknown and integrated out, so that nothing is refitted and nothing is permuted. The
        mean is over at most 1,000 held-out rows, each predicted by what has not learned from it; a pool keeps the
        weights that it has for the whole row. It is saved with the model; updates drop it, as it is of the rows before.

        Raises
        ------
        NotFittedError
            The regressor is not fitted.
        """
        value = self._value.with_importance()
        if value is not self.fitted_:
            self.fitted_ = value
        found: Importance = self._part(value.importance, "keeps no feature importance; fit it again")
        return found

    @property
    def feature_importances_(self) -> Array:
        """Feature importance of each column of X in units of y, (d,), in the order of `feature_names_in_`.

        It is `importance_.increase`; of a column of dates the sum over its parts, each of which is taken as unknown
        alone. Unlike that of scikit-learn's trees it does not sum to 1, and it may be negative.
        """
        importance, schema = self.importance_, self.schema_
        return np.bincount(schema.places, importance.increase, len(schema.given))

    # Predicting -------------------------------------------------------------------------------------------------

    def predict_density(self, X: Any) -> PredictiveDensity:
        """Return p(y | x) of each row, as one value with mean, quantiles, probabilities of ranges, and scores.

        Missing cells are integrated out, as is a column that a table with names lacks, with a warning that names it.
        """
        return self.answer(X).density

    def predict(self, X: Any) -> Array:
        """Return the mean of p(y | x) of each row, (n,), in units of the target."""
        value = self._value
        return self._source(X).map(lambda batch: value.answer(batch).density.mean)

    def predict_quantiles(self, X: Any, quantiles: Sequence[float] = (0.1, 0.5, 0.9)) -> Array:
        """Return quantiles of p(y | x) of each row, (n, q), in units of the target; ValueError outside of [0, 1]."""
        value, levels = self._value, np.asarray(quantiles, np.float64)
        if levels.ndim != 1 or not ((levels >= 0) & (levels <= 1)).all():
            raise ValueError(f"quantiles is {quantiles!r}; give a list of shares from 0 to 1, such as [0.1, 0.5, 0.9]")
        return self._source(X).map(lambda batch: value.answer(batch).density.quantile(levels))

    def predict_interval(self, X: Any, coverage: float = 0.9) -> Array:
        """Return the central interval of each row that holds y with this probability, (n, 2)."""
        value = self._value
        return self._source(X).map(lambda batch: value.answer(batch).density.interval(coverage))

    def explain(self, X: Any) -> NumberExplanation:
        """Return the mean of each row as a sum: the mean where nothing is known, plus what each column moves it.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            May lack columns, as in `predict`. Each row is predicted up to 7 d times: for some rows, not for millions.

        Returns
        -------
        NumberExplanation
            Columns that the model ignores have no part.
        """
        value, source = self._value, self._source(X)
        require_in_memory(source.table, "explain")
        rows: dict[int, Array] = {}

        def of_batch(batch: Batch) -> Array:
            rows[batch.start] = decode(batch)
            found = parts_of(lambda rows: value.answer(rows).density, batch)
            base = np.full(len(batch), found.base)
            return np.column_stack([base, found.mean, found.width, found.parts, found.width_changes])

        (base, mean, width), of_columns = np.split(source.map(of_batch).T, [3])
        kept = list(value.schema.modelled)
        values = np.concatenate([rows[start] for start in sorted(rows)])[:, kept]  # threads may finish in any order
        names = tuple(value.schema.names[j] for j in kept)
        parts, changes = np.split(of_columns.T, 2, axis=1)
        return NumberExplanation(value.target.name, names, values, float(base[0]), parts, mean, width, changes)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return R², the share of the variance of y that `predict(X)` explains, on the rows that have a target.

        y may be the name of a column of X.
        """
        source = self._source(X)
        target, weight = learnable_numbers(read_labels(y, source.table), sample_weight)
        share = np.full(len(target), 1.0 / len(target)) if weight is None else weight / weight.sum()
        squared = float(share @ (target - self.predict(X)) ** 2)
        total = float(share @ (target - share @ target) ** 2)
        return 1.0 - squared / total if total > 0 else float(squared == 0.0)
