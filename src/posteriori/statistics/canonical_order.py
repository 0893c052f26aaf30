"""An order of classes, columns, categories and rows that depends on the cells, not on names and places."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.kernels.hashing import splitmix64
from posteriori.statistics.forests import CodedRows
from posteriori.support.typing import Array

_ROUNDS = 3  # of refinement; two categories that these leave equal have equal rows, or nearly so
_HALF = np.uint64(32)


@dataclass(frozen=True)
class CanonicalOrder:
    """The order of classes, columns and categories of some rows, and these rows in their order.

    Rows, classes, columns and categories get hashes. That of a row is a sum over its cells, and that of a class, of a
    category or of a column is a sum over its rows, again and again: the refinement of colours by Weisfeiler & Leman.
    Sums do not depend on an order, and no hash depends on a name. Only the codes of ordered columns have an order of
    their own. Columns that show fewer than two codes are left out.

    Attributes
    ----------
    rows : CodedRows
        The rows by their class, and within it by their hash and weight.
    chosen : ndarray (n,)
        Their former places.
    ordered : ndarray (d,)
        Which columns have ordered codes.
    place : ndarray (Z,)
        The place of each class.
    columns : ndarray (v,)
        The columns that vary, in their order.
    codes : tuple of ndarray
        For each of these, the code in this order of each of its codes, from 0 for a missing cell.
    """

    rows: CodedRows
    chosen: Array
    ordered: Array
    place: Array
    columns: Array
    codes: tuple[Array, ...]

    @classmethod
    def of(cls, rows: CodedRows, ordered: Array) -> CanonicalOrder:
        """Return the order of these rows. O(n·d)."""
        sizes = zip(rows.codes.T, rows.cardinalities, strict=True)
        counts = [np.bincount(seen, minlength=k + 1) for seen, k in sizes]
        varying = np.array([j for j, n in enumerate(counts) if np.count_nonzero(n[1:]) > 1], np.int64)
        cells = np.ascontiguousarray(rows.codes.T[varying])
        of_class = _hashed(np.bincount(rows.component, minlength=rows.n_components))
        sums = [counts[j] for j in varying]
        for turn in range(_ROUNDS):
            of_codes, of_columns, of_rows = [], [], of_class[rows.component]
            for seen, total, is_ordered in zip(cells, sums, ordered[varying], strict=True):
                hashes = _hashed(np.arange(len(total)) if is_ordered else total)
                column = splitmix64(hashes + _hashed(total))[total > 0].sum() ^ np.uint64(is_ordered)
                terms = splitmix64(hashes ^ column)
                terms[0] = 0  # a missing cell
                of_rows += terms[seen]
                of_codes.append(hashes)
                of_columns.append(column)
            of_rows = splitmix64(of_rows)
            if turn + 1 < _ROUNDS:
                halves = (of_rows >> _HALF).astype(np.float64)  # their sums are exact
                of_class = _hashed(np.bincount(rows.component, halves, rows.n_components))
                sums = [np.bincount(seen, halves, len(total)) for seen, total in zip(cells, sums, strict=True)]
        place = _ranks(of_class)
        codes = [
            np.arange(len(hashes)) if ordered[j] else _codes_by_hash(hashes, counts[j] > 0)
            for j, hashes in zip(varying, of_codes, strict=True)
        ]
        by_hash = np.argsort(np.array(of_columns, np.uint64), kind="stable")
        chosen = np.lexsort((rows.weight, of_rows, place[rows.component]))
        moved = tuple(codes[i].astype(rows.codes.dtype) for i in by_hash)
        return cls(rows.take(chosen), chosen, ordered, place, varying[by_hash], moved)

    def encoded(self) -> Array:
        """Return the codes of the rows and of the columns that vary, (n, v), in this order of categories."""
        codes = np.empty((len(self.rows.codes), len(self.columns)), self.rows.codes.dtype)
        for i, j in enumerate(self.columns):
            codes[:, i] = self.codes[i][self.rows.codes[:, j]]
        return codes

    def restored(self, nodes: Array, share: Array, sides: Array) -> tuple[Array, Array, Array]:
        """Return a tree on these codes (`kernels.grow_tree`) as one on the columns and codes of the rows."""
        nodes, moved = nodes.copy(), sides.copy()
        for i, j in enumerate(self.columns.tolist()):
            if not self.ordered[j]:
                starts = nodes[nodes[:, 0] == i, 1][:, np.newaxis]
                moved[starts + np.arange(len(self.codes[i]))] = sides[starts + self.codes[i]]
        inner = nodes[:, 0] >= 0
        nodes[inner, 0] = self.columns[nodes[inner, 0]]
        return nodes, share, moved


def _hashed(numbers: Array) -> Array:
    hashes: Array = splitmix64(numbers.astype(np.uint64))
    return hashes


def _codes_by_hash(hashes: Array, is_present: Array) -> Array:
    """Return the place of each code, from 1; categories that no row shows are one, because only names differ."""
    places = np.concatenate([[0], 1 + _ranks(hashes[1:])])
    absent = 1 + np.flatnonzero(~is_present[1:])
    places[absent] = places[absent].min(initial=len(places))
    return places


def _ranks(hashes: Array) -> Array:
    ranks = np.empty(len(hashes), np.int64)
    ranks[np.argsort(hashes, kind="stable")] = np.arange(len(hashes))
    return ranks
