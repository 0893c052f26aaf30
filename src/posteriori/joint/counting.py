"""Counts of training rows beside the law: how many are in a finding, and what they share."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

import numpy as np

from posteriori.statistics.forests import CodedRows
from posteriori.support.typing import Array

WEIGHT = 10.0  # rows that the law counts as beside the rows that are counted
_MOST_FILLED = 300
_LEAST = 1e-300


class Probability(float):
    """A probability, with the training rows that it rests on.

    Attributes
    ----------
    rows : float
        The weight of the training rows that are as given, and know what is asked for; 0 if the model keeps no rows.
    standard_error : float
        √(p (1 − p) / (rows + 11)): the standard deviation of the share under a beta distribution with the weight of
        these rows and of the ten that the law counts as.
    """

    rows: float
    standard_error: float

    def __new__(cls, p: float, rows: float) -> Self:
        """Return the number with its rows."""
        found = super().__new__(cls, p)
        found.rows = rows
        found.standard_error = float(np.sqrt(max(p * (1.0 - p), 0.0) / (rows + WEIGHT + 1.0)))
        return found

    def __getnewargs__(self) -> tuple[float, float]:  # type: ignore[override]
        return float(self), self.rows


@dataclass(frozen=True)
class GivenRows:
    """Rows that are as given: those that know what is asked for, and those that do not."""

    part: Array  # (n,): the weight of each row that is as given, and 0 if it does not know that
    knows: Array  # (n,): whether it knows what is asked for
    as_asked: Array  # (n,): `part`, as far as what the row knows of an event is so

    @property
    def rows(self) -> float:
        """The weight of the rows that are as given, and know what is asked for."""
        return float(self.part @ self.knows)

    @property
    def lacking(self) -> Array:
        """Some of the rows that may be as asked, and do not know all of it: at most 300, by their places."""
        found = np.flatnonzero((self.as_asked > 0) & ~self.knows)
        return found[np.arange(min(len(found), _MOST_FILLED)) * len(found) // max(min(len(found), _MOST_FILLED), 1)]

    def mixed(self, counted: Array, of_lacking: Array, of_law: Array) -> Array:
        r"""Return the distribution by the rows and by the law, which counts as ten rows.

        Rows that do not know what is asked for are filled in by the law given their other cells, because those that
        know it may be no sample of all.

        .. math:: p(a \mid b) = \frac{n_{ab} + \sum_{i\,\text{lacks}} q(a \mid x_i) + 10\,q(a \mid b)}{n_b + m + 10}

        Parameters
        ----------
        counted : ndarray (K,)
            Of the rows that are as given and know what is asked for, the weight with each answer.
        of_lacking : ndarray (m, K)
            q(a | x_i) of the rows `lacking`, which stand for all of these; of an event, of the cells that they lack.
        of_law : ndarray (K,)
            q(a | b).
        """
        lacks, weight = float(self.part.sum()) - self.rows, self.as_asked[self.lacking]
        filled = float(self.as_asked @ ~self.knows) * (weight @ of_lacking) / max(float(weight.sum()), _LEAST)
        return np.asarray((counted + filled + WEIGHT * of_law) / (self.rows + lacks + WEIGHT))


@dataclass(frozen=True)
class CountedRows:
    """Training rows in the cells of their columns."""

    rows: CodedRows
    places: Mapping[int, int]  # from the position of a column in the schema to its place among the cells

    def codes(self, j: int) -> Array:
        """Return the cells of a column, (n,), from 1; 0 where missing."""
        return np.asarray(self.rows.codes[:, self.places[j]].astype(np.int64))

    def part(self, cells: Mapping[int, Array]) -> Array:
        """Return how far each row is as stated, (n,): the product of the parts of its cells; 0 if one is missing.

        Parameters
        ----------
        cells : mapping
            Of columns by their positions, the part of each cell that is as stated, (G,).
        """
        found = np.ones(len(self.rows.weight))
        for j, parts in cells.items():
            found *= np.concatenate([[0.0], parts])[self.codes(j)]
        return found

    def given(self, cells: Mapping[int, Array], asked: Mapping[int, Array | None]) -> GivenRows:
        """Return the rows that are as given, with those that know what is asked for.

        Parameters
        ----------
        cells : mapping
            As in `part`.
        asked : mapping
            Of the columns that are asked for, the part of each cell that is as an event states, or None.
        """
        knows, part = np.ones(len(self.rows.weight), np.bool_), self.part(cells) * self.rows.weight
        as_asked = part.copy()
        for j, parts in asked.items():
            codes = self.codes(j)
            knows &= codes > 0
            if parts is not None:
                as_asked *= np.concatenate([[1.0], parts])[codes]
        return GivenRows(part, knows, as_asked)

    def shares(self, counts: GivenRows, j: int, size: int) -> Array:
        """Return the weights of counted rows in each cell of a column, (G,)."""
        return np.bincount(self.codes(j), counts.part * counts.knows, size + 1)[1:]
