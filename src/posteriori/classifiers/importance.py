"""Feature importance as an attribute of fitted classifiers."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

from posteriori.learning.importance import HeldOutRows, Importance, Predictor, importance_under_model
from posteriori.typing import Array


class MeasuresImportance:
    """Measures which features inform a fitted classifier, on held-out rows if the fit had some."""

    @abstractmethod
    def _predictor(self) -> tuple[Predictor, Array]:
        """Return the models with their pool, and the share of each model in p(x)."""

    @property
    def importance_(self) -> Importance:
        r"""Feature importance: the information about the class that the posterior loses without each column.

        .. math:: I_j = \mathbb{E}[\log p(y \mid x) - \log p(y \mid x_{-j})]

        in nats per row, with standard errors. The column is treated as unknown and integrated out, so that nothing is
        refitted and nothing is permuted. Columns that carry the same information share it: each alone may lose little,
        although both together lose much. Mutual information I(x_j; y) instead takes a column as the only one known.

        The mean is over held-out rows, at most 2,000, after `GenerativeClassifier.fit` and after
        `model_selection.out_of_fold`; there I_j is the increase of the held-out log-loss, and may be negative.
        Otherwise it is over 2,000 rows that are drawn from the model: the expectation under the model, which may be
        wrong; see `Importance.held_out`. It is computed on first access, and saved with the model if it is of held-out
        rows.

        Raises
        ------
        NotFittedError
            The classifier is not fitted.
        """
        state = vars(self)
        if "_importance" not in state and "_held_out_rows" in state:
            self._importance = self._held_out_rows.importance()
            state.pop("_held_out_rows", None)
        if "_importance" in state:
            return self._importance
        if "_drawn_importance" not in state:
            self._drawn_importance = importance_under_model(*self._predictor())
        return self._drawn_importance

    @property
    def feature_information_(self) -> Array:
        """Feature importance of each column in nats per row, (d,); see `importance_`."""
        return self.importance_.information

    @property
    def feature_information_error_(self) -> Array:
        """Standard error of `feature_information_`, (d,)."""
        return self.importance_.standard_error

    def _check_importance(self, n_columns: int) -> None:
        """Raise ValueError unless the importance, which may come from a file, is of the columns of the model."""
        if "_importance" in self.__dict__:
            self._importance.check_against(n_columns)

    def _forget_importance(self) -> None:
        for name in ("_importance", "_held_out_rows", "_drawn_importance"):
            vars(self).pop(name, None)

    def _keep_held_out(self, rows: HeldOutRows) -> None:
        """Keep held-out rows and the models of the folds until the first access to the importance."""
        self._forget_importance()
        self._held_out_rows = rows
        if rows.is_large:
            _ = self.importance_

    def __getstate__(self) -> Any:
        if "_held_out_rows" in vars(self):
            _ = self.importance_
        return super().__getstate__()
