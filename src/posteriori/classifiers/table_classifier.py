"""Base of the generative classifiers: accuracy, explanations and drawn rows, for one model and for a pool."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.accuracy import accuracy_of
from posteriori.classifiers.row_reading import RowReadingEstimator
from posteriori.classifiers.validation import require_in_memory
from posteriori.draws import check_draw, generator
from posteriori.explain import Explanation
from posteriori.explain.words import WordFactors
from posteriori.scoring.fitted import warn_of_impossible
from posteriori.tables import Batch, Column
from posteriori.tables.writing import decode, write_table
from posteriori.typing import Array


@dataclass(frozen=True)
class ExplanationTerms:
    """Terms of a prediction as a sum.

    Attributes
    ----------
    bias : ndarray (C,)
        In nats.
    factors : callable
        Maps a batch to the log factor of each feature, (n, C, d), in nats.
    given : tuple
        The features that the factor of a feature depends on, as in `Explanation`.
    weighted : bool
        Whether the factors carry weights, so that the sum is log p(y | x) up to a constant per row.
    words : callable, optional
        Maps a batch to the factors of the words of each row; None without columns of counts.
    """

    bias: Array
    factors: Callable[[Batch], Array]
    given: Any = ()
    weighted: bool = False
    words: Callable[[Batch], list[dict[str, WordFactors]]] | None = None


class TableClassifier(ClassifierMixin, RowReadingEstimator, ABC):
    """Classifies, explains and draws rows of the tables that posteriori reads.

    A subclass defines the most probable class of a row (`_best`), the terms of the explanation (`_terms`) and how rows
    are drawn (`_draw`).
    """

    classes_: Array
    target_: Column

    @abstractmethod
    def _best(self) -> tuple[Callable[[Batch], Array], int]:
        """Return the function to the class of each row, (n,), −1 if none can produce it, and the class of such rows."""

    @abstractmethod
    def _terms(self) -> ExplanationTerms:
        """Return the terms of every prediction."""

    @abstractmethod
    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        """Return columns of numbers and codes, in the order of the schema, and the class of each row."""

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict(X)`; y may be the name of a column of X."""
        source = self._source(X)
        best, fallback = self._best()
        found = accuracy_of(source, y, sample_weight, self.target_, best, fallback)
        if found.impossible:
            warn_of_impossible(found.first, found.impossible)
        return found.share

    def explain(self, X: Any) -> Explanation:
        """Return every prediction as an exact sum: per class, the log prior plus one log factor per feature.

        If features depend on each other given the class, the factor of a feature is conditional on the features that it
        depends on. If factors have weights, each is multiplied by its weight and a bias replaces the log prior; then
        the sum is log p(y | x) up to a constant per row, and not log p(x, y). The factor of a feature in a pool is the
        sum of the factors of its members times their weights.

        Parameters
        ----------
        X : array-like or data frame (n, d)

        Returns
        -------
        Explanation
            Holds n·C·d numbers: for some rows, not for millions.
        """
        source = self._source(X)
        require_in_memory(source.table, "explain")
        terms = self._terms()
        rows: dict[int, Array] = {}
        words: dict[int, list[dict[str, WordFactors]]] = {}

        def factors(batch: Batch) -> Array:
            rows[batch.start] = decode(batch)
            if terms.words is not None:
                words[batch.start] = terms.words(batch)
            return terms.factors(batch)

        log_factors = source.map(factors)
        values = np.concatenate([rows[start] for start in sorted(rows)])  # threads may finish in any order
        names = self.schema_.names
        return Explanation(
            self.classes_,
            names,
            values,
            terms.bias,
            log_factors,
            terms.given,
            terms.weighted,
            tuple(row for start in sorted(words) for row in words[start]),
        )

    def sample(
        self, n: int = 1, y: Any = None, random_state: Any = None, respect_ranges: bool = True
    ) -> tuple[Any, Array]:
        """Draw rows from the model: a class from the prior, then every column from its distribution.

        A pool first draws a member for each row, with a probability proportional to its weight.

        Parameters
        ----------
        n : int, default 1
        y : label or array-like (n,), optional
            Class of all rows, or of each; default: drawn from the prior.
        random_state : int, RandomState, Generator or None
        respect_ranges : bool, default True
            Whether numbers stay between the lowest and the highest number of their column in the training rows, and
            are whole if all of these were. False draws from the density itself, which has no bounds. A model without
            ranges (`from_parameters`, an old model file) always does so.

        Returns
        -------
        X : table (n, d)
            Has the type and the kinds of columns of the training table. Cells are missing only if the model includes
            the probability of missing cells (``missing="informative"``).
        y : ndarray (n,)

        Raises
        ------
        ValueError
            n is not a whole number of at least 1, or is too large; y is not one label or n labels; a label of y is
            not a class.

        Notes
        -----
        Within the ranges each row is drawn from the model's density given its class and component, truncated to the
        ranges: a number outside is drawn again, never moved to a bound. The probabilities of classes and components do
        not change. A whole number is a rounded draw from the density between lowest − 1/2 and highest + 1/2. Columns
        that depend on each other are drawn again as whole rows. If a row is rejected 50 times, its columns are
        truncated one after the other, each given those before it, which is close to the truncated density but not equal
        to it.
        """
        check_is_fitted(self, self._fitted_attribute)
        n = check_draw(n, len(self.schema_.columns))
        wanted = None if y is None else np.asarray(y)
        if wanted is not None and wanted.shape not in ((), (n,)):
            raise ValueError(f"y is of shape {wanted.shape}; give one class, or one for each of the {n:,} rows to draw")
        y = None if wanted is None else np.broadcast_to(wanted, (n,))
        columns, labels = self._draw(n, y, generator(random_state), respect_ranges)
        return write_table(self.schema_, columns), labels
