r"""Effects of two columns together, beyond each alone: one number per pair of groups of cells and class.

.. math:: \log p(y \mid x) = \ldots + \sum_{(i, j)} u_{ijy}(g_i(x_i), g_j(x_j)) + \text{const}

A group holds neighbouring bins, or one category, or rare ones. A pair of which a cell is missing adds nothing: what the
other one says alone, in the mean over the cells that might stand there, is in the factor of its own column.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori import kernels
from posteriori.statistics.counts import slot_offsets
from posteriori.support.checks import check_numbers, check_places, require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

MOST_GROUPS = 32  # of a column, so that the pairs of two have at most 1,024


@dataclass(frozen=True)
class PairTables:
    """The tables of P pairs of columns that have codes, side by side.

    Attributes
    ----------
    places : ndarray of int64 (P, 2)
        The columns of each pair, by their positions among the coded columns of the schema.
    cardinalities : tuple of int
        K_j, the number of categories or bins of each coded column.
    group : ndarray of int64 (Σ (K_j + 1),)
        The group of each code of the coded columns, side by side; 0 for code 0, the missing cell, alone.
    numbers : ndarray (Z, Σ (G_i·G_j + 1))
        u in nats. The slots of a pair are 0, for rows that lack a cell, and those of its groups (a, b), b fastest.
    penalty, sure : float
        How they were learned: the λ of the numbers, and by how many standard errors the gain of a pair exceeded 0.
    """

    places: Array
    cardinalities: tuple[int, ...]
    group: Array
    numbers: Array
    penalty: float = 0.0
    sure: float = 0.0

    def __len__(self) -> int:
        return len(self.places)

    @cached_property
    def offsets(self) -> Array:
        """The first slot of each coded column in `group`, and the number of slots."""
        return slot_offsets(self.cardinalities)

    @cached_property
    def sizes(self) -> Array:
        """The number of groups of both columns of each pair, (P, 2)."""
        bounds = zip(self.offsets[:-1], self.offsets[1:], strict=True)
        n_groups = np.array([self.group[first:last].max(initial=0) for first, last in bounds], np.int64)
        return np.asarray(n_groups[self.places])

    @cached_property
    def starts(self) -> Array:
        """The first slot of each pair in `numbers`, and the number of slots, (P + 1,)."""
        return slot_offsets(self.sizes.prod(axis=1).tolist())

    def columns(self, schema: Schema) -> list[tuple[int, int]]:
        """Return the columns of each pair, by their positions in the schema."""
        return [(schema.coded[i], schema.coded[j]) for i, j in self.places.tolist()]

    def table(self, pair: int) -> Array:
        """Return u of a pair, by its position, (Z, G_i, G_j)."""
        first, last = self.starts[pair] + 1, self.starts[pair + 1]
        return self.numbers[:, first:last].reshape(len(self.numbers), *self.sizes[pair].tolist())

    def groups(self, place: int) -> Array:
        """Return the group, from 0, of each category or bin of a coded column, (K,)."""
        return np.asarray(self.codes_of_groups(place)[1:].astype(np.int64) - 1)

    def codes_of_groups(self, place: int) -> Array:
        """Return the group, from 1, of each code of a coded column, (K + 1,): 0 of code 0."""
        return self.group[self.offsets[place] : self.offsets[place + 1]]

    def check_against(self, schema: Schema, n_components: int) -> None:
        """Raise ValueError unless there are a group for each code, and a number for each pair of groups."""
        require(self.cardinalities == schema.coded_cardinalities, "the tables of pairs are of other categories or bins")
        places, group, n_columns = self.places, self.group, len(self.cardinalities)
        check_places("the columns of pairs", places, (*places.shape[:1], 2), 0, n_columns)
        require((places[:, 0] != places[:, 1]).all(), "a column is paired with itself")
        require(len(np.unique(np.sort(places), axis=0)) == len(places), "a pair of columns occurs twice")
        check_places("the groups of categories or bins", group, (self.offsets[-1],), 0, MOST_GROUPS + 1)
        is_missing = np.zeros(len(group), np.bool_)
        is_missing[self.offsets[:-1]] = True
        require(((group == 0) == is_missing).all(), "a category has no group, or a missing cell has one")
        check_numbers("the numbers of pairs", self.numbers, (n_components, int(self.starts[-1])))
        check_numbers("the penalty and the least gain of pairs", np.array([self.penalty, self.sure]), (2,), 0.0)
        require(not self.numbers[:, self.starts[:-1]].any(), "a pair that lacks a cell adds something")

    def codes(self, batch: Batch) -> Array:
        """Return the slot of each row among those of each pair, (n, P): 0 where a cell is missing."""
        group = self.group[self.offsets[:-1] + batch.codes.values].astype(np.uint16)
        first, second = (group.take(side, axis=1) for side in self.places.T)  # C-contiguous, unlike group[:, side]
        within = (first - 1) * self.sizes[:, 1].astype(np.uint16) + second
        return np.where((first > 0) & (second > 0), within, np.uint16(0))

    def sum(self, batch: Batch) -> Array:
        """Return the sum of the effects of all pairs on the score of each class in nats, (n, Z)."""
        out = np.zeros((len(batch), len(self.numbers)))
        kernels.add_categorical(self.codes(batch), self.starts, self.numbers, out)
        return out

    def factors(self, batch: Batch) -> Array:
        """Return the effect of each pair on the score of each class in nats, (n, Z, P)."""
        return np.asarray(self.numbers[:, self.starts[:-1] + self.codes(batch)].transpose(1, 0, 2))
