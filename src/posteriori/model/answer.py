"""The answer of a model about a column: probabilities of codes in each row, and what the codes mean."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.model.number_cells import NumberCells
from posteriori.model.predictive import PredictiveDensity
from posteriori.support.typing import Array
from posteriori.tables import Column
from posteriori.tables.arrays import write_column


@dataclass(frozen=True)
class Categories:
    """The meaning of codes that stand for categories: code k is label k; of ordered ones, from the lowest on."""

    labels: tuple[Any, ...]
    is_ordered: bool = False

    @classmethod
    def of(cls, column: Column) -> Categories:
        """Return the categories of a column, in its order if it has one."""
        labels = write_column(column).tolist()
        return cls(tuple([labels[k] for k in column.order or range(len(labels))]), bool(column.order))

    def __len__(self) -> int:
        return len(self.labels)

    def find(self, truth: Any) -> Array:
        """Return the code of each label, (n,); −1 of what is none."""
        place = {label: k for k, label in enumerate(self.labels)}
        return np.array([place.get(label, -1) for label in np.asarray(truth, dtype=object).tolist()], np.int64)

    @cached_property
    def cells(self) -> NumberCells:
        """Ordered categories as the whole numbers 0 to K − 1, a step apart; ValueError if they have no order."""
        if not self.is_ordered:
            shown = ", ".join(map(repr, self.labels[:3]))
            raise ValueError(
                f"the categories {shown} have no order, and so no median or interval; name it by "
                "columns=po.Columns(order={…}), or --order on the command line"
            )
        level = np.arange(len(self.labels), dtype=np.float64)
        return NumberCells(level, level, 1.0)


Meaning = Categories | NumberCells


@dataclass(frozen=True)
class Answer:
    r"""Probabilities of what a column may hold in each row: classes, ordered levels or numbers.

    .. math:: p(k \mid x), \quad k = 1, \ldots, K

    of the K codes of the column: categories, or cells of numbers. What the codes mean decides what else can be said.
    Ordered categories are the whole numbers 0 to K − 1 with names, so that quantiles, intervals and scores of both are
    the same.

    Parameters
    ----------
    column : str
        The column that is answered about.
    meaning : Categories or NumberCells
        What the codes stand for.
    probability : ndarray (n, K)
        That of each code in each row. NaN in a row that no class can produce.

    References
    ----------
    Gneiting & Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 102 (2007), section 4.2.
    Epstein, A scoring system for probability forecasts of ranked categories, Journal of Applied Meteorology 8 (1969).

    Examples
    --------
    >>> import numpy as np
    >>> levels = Categories(("low", "medium", "high"), is_ordered=True)
    >>> answer = Answer("risk", levels, np.array([[0.2, 0.5, 0.3]]))
    >>> answer.mode, answer.median, answer.interval(0.6)
    (array(['medium'], dtype=object), array(['medium'], dtype=object), array([['low', 'high']], dtype=object))
    >>> answer.ranked_score(["high"]).round(2)
    array([0.53])
    """

    column: str
    meaning: Meaning
    probability: Array

    def __len__(self) -> int:
        return len(self.probability)

    def __getitem__(self, rows: Any) -> Answer:
        """Return the answers about some rows: of one by its position, or by a slice, positions or a mask."""
        return Answer(self.column, self.meaning, np.atleast_2d(self.probability[rows]))

    @property
    def is_number(self) -> bool:
        """Whether the codes are cells of numbers."""
        return isinstance(self.meaning, NumberCells)

    @cached_property
    def density(self) -> PredictiveDensity:
        """The answer as a density: of the number, or of the level as the whole numbers 0 to K − 1.

        Raises ValueError of categories without an order.
        """
        cells = self.meaning if isinstance(self.meaning, NumberCells) else self.meaning.cells
        return PredictiveDensity(cells, self.probability, self.column)

    @property
    def labels(self) -> tuple[Any, ...]:
        """The categories in the order of the probabilities; ValueError of numbers."""
        if isinstance(self.meaning, NumberCells):
            raise ValueError(f"{self.column!r} holds numbers, which have a density and no categories")
        return self.meaning.labels

    @property
    def mode(self) -> Array:
        """The most probable label or number of each row, (n,); None in a row that no class can produce."""
        if self.is_number:
            return self.density.mode
        best = np.where(np.isnan(self.probability[:, 0]), 0, self.probability.argmax(axis=1))
        return self._named(np.where(np.isnan(self.probability[:, 0]), -1, best))

    @property
    def median(self) -> Array:
        """The smallest number, or lowest level, that is not exceeded with probability 1/2 or more, (n,)."""
        return self.quantile(0.5)

    def quantile(self, q: float | Sequence[float]) -> Array:
        """Return the smallest number or lowest level with P(Y ≤ y | x) ≥ q, (n,) or (n, m) for m shares.

        Raises
        ------
        ValueError
            The categories have no order, or a share is not between 0 and 1.
        """
        levels = self.density.quantile(q)
        return levels if self.is_number else self._named(np.nan_to_num(levels, nan=-1.0).astype(np.int64))

    def interval(self, coverage: float = 0.9) -> Array:
        """Return the central interval, (n, 2): quantiles (1 − coverage)/2 and (1 + coverage)/2 of numbers or levels.

        Of levels, both ends belong to it, and its probability is at least the coverage.

        Raises
        ------
        ValueError
            As of `quantile`.
        """
        ends = self.density.interval(coverage)
        return ends if self.is_number else self._named(np.nan_to_num(ends, nan=-1.0).astype(np.int64))

    def log_prob(self, truth: Any) -> Array:
        """Return log p(truth | x) in nats, (n,): its mean with the other sign is the log-loss.

        −∞ of what is none of the categories.
        """
        if self.is_number:
            return self.density.log_prob(truth)
        code = self.codes(truth)
        with np.errstate(divide="ignore"):
            log_probability = np.log(self.probability[np.arange(len(self)), code])
        return np.where(code < 0, -np.inf, log_probability)

    def brier_score(self, truth: Any) -> Array:
        """Return Σ_k (p_k − [k = truth])² of each row, (n,), in [0, 2]; NaN of no label; ValueError of numbers."""
        code = self.codes(truth)
        own = code[:, np.newaxis] == np.arange(len(self.labels))
        return np.where(code < 0, np.nan, ((self.probability - own) ** 2).sum(axis=1))

    def ranked_score(self, truth: Any) -> Array:
        r"""Return the ranked probability score of each row, (n,): less is better.

        .. math:: \int (F(t) - 1[y \le t])^2 \, dt, \qquad \sum_{k < K} (F_k - 1[y \le k])^2

        Of numbers it is the CRPS, in units of the column; of ordered levels the sum, in levels. NaN of what is unknown,
        or none of the levels.

        Raises
        ------
        ValueError
            The categories have no order.
        """
        if self.is_number:
            return self.density.crps(truth)
        code = self.codes(truth)
        return self.density.crps(np.where(code < 0, np.nan, code))

    def codes(self, truth: Any) -> Array:
        """Return the code of what is true in each row, (n,): its category, or cell of numbers; −1 of what is none."""
        if self.is_number:
            return self.meaning.find(np.broadcast_to(np.asarray(truth, np.float64), (len(self),)))
        return self.meaning.find(np.broadcast_to(np.asarray(truth, dtype=object), (len(self),)))

    def _named(self, code: Array) -> Array:
        """Return the labels of codes; None of −1."""
        return np.array([*self.labels, None], dtype=object)[code]
