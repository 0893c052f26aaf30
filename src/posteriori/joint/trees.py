"""Trees of smoothed tables, learned from coded rows: one tree, or a mixture of several with the same edges."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Self

import numpy as np
from scipy.sparse import csr_matrix
from scipy.special import xlogy

from posteriori.joint.edges import FITS, Axis, Tilt, axis_of, learned_mixture, smoothed_shares, table_of, with_margins
from posteriori.model.beliefs import Tables, likelihood_of_codes
from posteriori.statistics.forests import CanonicalOrder, CodedRows
from posteriori.support.typing import Array

FOLDS = 5
_LEVELS = (4, 8, 16, 32)  # codes of a column of numbers, by which pairs are judged
_PAIRS = 2e8  # rows times pairs of columns that are judged
_FEWEST_JUDGED = 2000  # rows
_MESSAGES, _MESSAGES_AT_ONCE = 8e6, 500_000  # numbers in the messages of rows with gaps, in all and in a step of EM
_STEPS_OF_ONE, _FEWEST_STEPS, _MOST_STEPS = 15, 3, 25  # of EM: a single tree has only gaps to fill
_TABLES = 2500  # that EM learns, over all steps, components and pairs of columns
_BEFORE_PARTING = 10  # steps: components that are nearly alike part slowly
_FITS_OF_A_STEP = 2  # of margins
_CONVERGED = 2e-4  # nats per row and step
_RARE = (-0.5, -0.125)  # of the greatest share: where fewer rows know a column, its smoothing is another one
_MOST_TIMES = 20.0  # rows that one row may stand for
_LEAST = 1e-300
PARTS = 2**20  # of a line of a learned table: each probability is a whole number of them, which files write shortly


@dataclass(frozen=True)
class TreeRows:
    """Rows in codes, in an order by their cells, so that their order, and that of the columns, does not count."""

    codes: Array  # (n, d), from 1; 0 of a missing cell
    weight: Array  # (n,)
    sizes: tuple[int, ...]
    ordered: Array  # (d,): whether codes are in an order
    positions: tuple[int, ...]  # of the columns in the schema

    @classmethod
    def of(cls, rows: CodedRows, ordered: Array, rank: Array, positions: tuple[int, ...]) -> Self:
        """Return rows in the canonical order, and their columns, too; those of one value come last."""
        order = CanonicalOrder.of(rows, ordered, rank)
        constant = sorted(set(range(len(ordered))) - set(order.columns.tolist()), key=lambda j: int(rank[j]))
        columns = np.array([*order.columns.tolist(), *constant], np.int64)
        return cls(
            order.rows.codes[:, columns].astype(np.int64),
            order.rows.weight,
            tuple(rows.cardinalities[j] for j in columns),
            ordered[columns],
            tuple(positions[j] for j in columns),
        )

    def take(self, rows: Array) -> Self:
        """Return some of the rows."""
        return replace(self, codes=self.codes[rows], weight=self.weight[rows])

    @cached_property
    def fold(self) -> Array:
        """The fold of each row, (n,): of rows that are equal by chance, which follow each other, all of them."""
        return np.arange(len(self.codes)) % FOLDS

    @cached_property
    def axes(self) -> list[Axis]:
        """The shares of the codes of each column among its known cells."""
        return [axis_of(self.alone(j, self.weight), is_ordered) for j, is_ordered in enumerate(self.ordered.tolist())]

    def pair(self, parent: int, child: int, weight: Array) -> Array:
        """Return the counts of rows that know both columns, (K of the parent, K)."""
        a, b = self.sizes[parent], self.sizes[child]
        cell = self.codes[:, parent] * (b + 1) + self.codes[:, child]
        return np.asarray(np.bincount(cell, weight, (a + 1) * (b + 1)).reshape(a + 1, b + 1)[1:, 1:])

    def alone(self, column: int, weight: Array) -> Array:
        """Return the counts of rows that know a column, (K,)."""
        return np.asarray(np.bincount(self.codes[:, column], weight, self.sizes[column] + 1)[1:])

    def known_share(self, parent: int, child: int) -> Array:
        """Return how rare it is to know the child at each code of the parent, (K of the parent,): 0 for usual, to 2."""
        codes, size = self.codes[:, parent], self.sizes[parent] + 1
        known = np.bincount(codes, self.weight * (self.codes[:, child] > 0), size)[1:]
        share = known / np.maximum(np.bincount(codes, self.weight, size)[1:], _LEAST)
        return np.asarray(np.searchsorted(np.array(_RARE), -share / max(share.max(initial=0.0), _LEAST)))


def standing_for_all(pairs: Array, of_parent: Array) -> Array:
    """Return counts of pairs, in which rows that know the child stand for all rows with their code of the parent.

    Smoothing would else lean towards codes in which more rows know the child. The sum stays that of the pairs.
    """
    lines = pairs.sum(axis=1)
    times = np.maximum(of_parent, lines) / np.maximum(lines, np.maximum(of_parent, _LEAST) / _MOST_TIMES)
    found = times[:, np.newaxis] * pairs
    return np.asarray(found * (lines.sum() / max(found.sum(), _LEAST)))


def links(rows: TreeRows) -> dict[int, int]:
    """Return the edges of the forest of the most information, as parent by child, each parent before its children.

    The gain of a pair of columns is what their mutual information is worth in nats, less one nat per parameter (AIC),
    with numbers in 4, 8, 16 or 32 codes, whichever gains the most. Pairs without a gain are not linked. The root of a
    tree, whose parent is −1, is its column with the fewest gaps.

    References
    ----------
    Chow & Liu, Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14 (1968).
    """
    d = len(rows.sizes)
    most = max(_FEWEST_JUDGED, int(_PAIRS / max(d, 1) ** 2))
    judged = rows.take(np.arange(0, len(rows.codes), max(1, -(-len(rows.codes) // most))))
    gain = np.max([_gains(judged, level) for level in _LEVELS], axis=0) if d > 1 else np.zeros((d, d))
    np.fill_diagonal(gain, -np.inf)
    best, above, reached = np.full(d, -np.inf), np.full(d, -1), np.zeros(d, np.bool_)
    beside: list[list[int]] = [[] for _ in range(d)]
    tree = np.arange(d)
    for _ in range(d):
        left = np.flatnonzero(~reached)
        j = int(left[best[left].argmax()])
        if best[j] > 0:
            beside[j].append(int(above[j]))
            beside[above[j]].append(j)
            tree[j] = tree[above[j]]
        else:
            j = int(left[gain[left].max(axis=1, initial=-np.inf).argmax()])  # begins another tree
        reached[j] = True
        closer = gain[j] > best
        best, above = np.where(closer, gain[j], best), np.where(closer, j, above)
    n_gaps = rows.weight @ (rows.codes == 0)
    found: dict[int, int] = {}
    for one in np.unique(tree).tolist():
        members = np.flatnonzero(tree == one)
        waiting = [(int(members[n_gaps[members].argmin()]), -1)]
        while waiting:
            j, parent = waiting.pop(0)
            found[j] = parent
            waiting += [(k, j) for k in beside[j] if k != parent]
    return found


def _gains(rows: TreeRows, level: int) -> Array:
    """Return N·I(a; b) − (K_a − 1)(K_b − 1) of each pair of columns, (d, d), with numbers in at most `level` codes."""
    d = len(rows.sizes)
    codes = rows.codes.copy()
    for j, axis in enumerate(rows.axes):
        if axis.is_ordered and len(axis.share) > level:
            middle = np.cumsum(axis.share) - axis.share / 2.0
            group = np.unique(np.minimum((middle * level).astype(np.int64), level - 1), return_inverse=True)[1]
            codes[:, j] = np.concatenate([[0], group + 1])[codes[:, j]]
    sizes = codes.max(axis=0, initial=0)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    column = np.repeat(np.arange(d), sizes)
    row, place = np.nonzero(codes)
    cell = starts[place] + codes[row, place] - 1
    one_hot = csr_matrix((np.ones(len(row)), (row, cell)), (len(codes), int(starts[-1])))
    both = (one_hot.T @ one_hot.multiply(rows.weight[:, np.newaxis])).tocoo()
    pair = column[both.row] * d + column[both.col]
    margin = np.bincount(both.row * d + column[both.col], both.data, len(column) * d).reshape(len(column), d)
    lines = np.zeros((d, d))
    np.add.at(lines, column, xlogy(margin, margin))
    seen = np.zeros((d, d))
    np.add.at(seen, column, margin > 0)
    n = np.bincount(pair, both.data, d * d).reshape(d, d)
    cells = np.bincount(pair, xlogy(both.data, both.data), d * d).reshape(d, d)
    found = cells - lines - lines.T + xlogy(n, n) - np.maximum(seen - 1, 0) * np.maximum(seen.T - 1, 0)
    return np.asarray(np.maximum(found, found.T))  # equal but for rounding


@dataclass(frozen=True)
class TreeSums:
    """Sums over rows: of components (Z,), and of the codes (Z, K) and the pairs (Z, K of the parent, K) of columns."""

    of_z: Array
    of_codes: list[Array]
    of_pairs: list[Array]

    def __add__(self, other: TreeSums) -> TreeSums:
        return TreeSums(
            self.of_z + other.of_z,
            [a + b for a, b in zip(self.of_codes, other.of_codes, strict=True)],
            [a + b for a, b in zip(self.of_pairs, other.of_pairs, strict=True)],
        )

    def times(self, factor: float) -> TreeSums:
        """Return the sums of so many times the rows."""
        return TreeSums(self.of_z * factor, [a * factor for a in self.of_codes], [a * factor for a in self.of_pairs])


@dataclass(frozen=True)
class TreeLearner:
    """The edges of trees and the smoothing of their tables, which the rows have chosen."""

    rows: TreeRows
    parents: dict[int, int]  # by child, each parent before its children
    axes: dict[int, Axis]  # of each column
    mixtures: dict[int, Array]  # of each child: the shares of the candidates

    @classmethod
    def of(cls, rows: TreeRows) -> Self:
        """Choose them by the rows."""
        parents, axes = links(rows), dict(enumerate(rows.axes))
        mixtures: dict[int, Array] = {}
        for j, above in parents.items():
            if above < 0:
                continue
            folds = []
            for k in range(FOLDS):
                weight = np.where(rows.fold == k, rows.weight, 0.0)
                folds.append(standing_for_all(rows.pair(above, j, weight), rows.alone(above, weight)))
            if (rows.codes[:, j] == 0).any():
                pairs = standing_for_all(rows.pair(above, j, rows.weight), rows.alone(above, rows.weight))
                axes[j] = axis_of(pairs.sum(axis=0), axes[j].is_ordered)
            mixtures[j] = learned_mixture(folds, axes[above], axes[j], rows.known_share(above, j))
        return cls(rows, parents, axes, mixtures)

    def on(self, rows: TreeRows) -> Self:
        """Return the same choices for other rows."""
        return replace(self, rows=rows)

    def learn(self, n_components: int, rng: np.random.Generator, base: Tables | None = None) -> Tables:
        """Return tables of the greatest likelihood, but for their smoothing: by EM, if it has anything to fill in.

        The first responsibilities of components are drawn for rows in the canonical order. Cells that are missing are
        filled in by their distribution given the known ones, so that rows may lack cells for reasons that these show.
        Several components are backed off to the tables of a single one, the base.

        References
        ----------
        Meilă & Jordan, Learning with mixtures of trees, JMLR 1 (2000). Neal & Hinton, A view of the EM algorithm that
        justifies incremental, sparse, and other variants (1998): each step looks at some of the rows with gaps.
        """
        rows = self.rows
        drawn = (
            rng.dirichlet(np.ones(n_components), len(rows.codes)) if n_components > 1 else np.ones((len(rows.codes), 1))
        )
        known = self._known(rows, drawn)
        tables = self._maximised(known, None, base)
        is_complete = (rows.codes > 0).all(axis=1)
        if n_components == 1 and is_complete.all():
            return in_parts(tables)
        gaps = np.flatnonzero(~is_complete)
        width = n_components * max(sum(rows.sizes), 1)
        used = gaps[: max(1, int(_MESSAGES / width))]
        times = float(rows.weight[gaps].sum() / max(rows.weight[used].sum(), _LEAST))
        parts = [rows.take(one) for one in np.array_split(used, max(1, -(-len(used) * width // _MESSAGES_AT_ONCE)))]
        filled = [self._of_filled(tables, part) for part in parts]
        complete, reached = rows.take(np.flatnonzero(is_complete)), -np.inf
        n_edges = sum(above >= 0 for above in self.parents.values())
        most = _STEPS_OF_ONE if n_components == 1 else _TABLES // max(n_components * n_edges, 1)
        for step in range(min(max(most, _FEWEST_STEPS), _MOST_STEPS)):
            log_p, of_complete = self._of_complete(tables, complete)
            if step:
                filled[step % len(parts)] = self._of_filled(tables, parts[step % len(parts)])
            of_parts, of_filled, more = (sum(each[1:], each[0]) for each in zip(*filled, strict=True))
            known = known if n_components == 1 else of_complete + of_filled.times(times)
            tables = self._maximised(known, more.times(times), base, _FITS_OF_A_STEP)
            before, reached = reached, (log_p + times * of_parts) / float(rows.weight.sum())
            if reached - before < _CONVERGED / len(parts) and step >= _BEFORE_PARTING:
                break
        tables = self._maximised(known, more.times(times), base)
        return in_parts(tables)

    def _known(self, rows: TreeRows, share: Array) -> TreeSums:
        """Return the sums of the known cells of rows whose components have these shares, (n, Z)."""
        each = (share * rows.weight[:, np.newaxis]).T
        of_codes = [np.stack([rows.alone(j, one) for one in each]) for j in self.parents]
        of_pairs = [
            np.stack([rows.pair(above, j, one) for one in each]) if above >= 0 else np.empty((0, 0, 0))
            for j, above in self.parents.items()
        ]
        return TreeSums(each.sum(axis=1), of_codes, of_pairs)

    def _of_complete(self, tables: Tables, rows: TreeRows) -> tuple[float, TreeSums]:
        """Return log p of complete rows in nats, and their sums."""
        log_joint = self._log_joint(tables, rows.codes)
        log_p = np.logaddexp.reduce(log_joint, axis=1)
        return float(rows.weight @ log_p), self._known(rows, np.exp(log_joint - log_p[:, np.newaxis]))

    def _of_filled(self, tables: Tables, rows: TreeRows) -> tuple[float, TreeSums, TreeSums]:
        """Return log p of rows with gaps in nats, the sums of their known cells, and those expected of the others."""
        nobody = np.empty((0, len(tables.log_prior)))
        total, share, expected = 0.0, [nobody], self._known(rows.take(np.empty(0, np.int64)), nobody)
        size = tables.rows_per_block()
        for start in range(0, len(rows.codes), size):
            part = rows.take(np.arange(start, min(start + size, len(rows.codes))))
            beliefs = tables.beliefs([likelihood_of_codes(part.codes[:, j], part.sizes[j]) for j in self.parents])
            total += float(part.weight @ beliefs.log_evidence)
            of_part, *sums = beliefs.expected(part.weight)
            share.append(of_part)
            expected = expected + TreeSums(expected.of_z, *sums)
        return total, self._known(rows, np.concatenate(share)), expected

    def _log_joint(self, tables: Tables, codes: Array) -> Array:
        """Return log p(z, x) of complete rows, (n, Z)."""
        found = np.tile(tables.log_prior, (len(codes), 1))
        for (j, above), table in zip(self.parents.items(), tables.tables, strict=True):
            cell = codes[:, j] - 1
            p = table[:, cell] if above < 0 else table[:, codes[:, above] - 1, cell]
            found += np.log(np.maximum(p, _LEAST)).T
        return found

    def _maximised(self, known: TreeSums, filled: TreeSums | None, base: Tables | None, fits: int = FITS) -> Tables:
        """Return the tables of the sums of known cells, which are smoothed, and of those that were filled in.

        The latter are expectations under tables that are smooth, and would be smoothed again in each step.
        """
        axes, has_gaps = self.axes, (self.rows.codes == 0).any(axis=0)
        tables: list[Array] = []
        alone: dict[int, Array] = {}
        place = {j: k for k, j in enumerate(self.parents)} | {-1: -1}
        for (j, above), counts, pairs in zip(self.parents.items(), known.of_codes, known.of_pairs, strict=True):
            if above < 0:
                alone[j] = np.stack([smoothed_shares(one, axes[j], base is not None) for one in counts])
                alone[j] = alone[j] if filled is None else _with_filled(alone[j], counts, filled.of_codes[place[j]])
                tables.append(alone[j])
                continue
            if has_gaps[j]:  # the known cells of a column with gaps may be no sample of it
                weighted = list(map(standing_for_all, pairs, known.of_codes[place[above]]))
                alone[j] = np.stack([smoothed_shares(one.sum(axis=0), axes[j], base is not None) for one in weighted])
            else:
                weighted, alone[j] = (
                    list(pairs),
                    np.stack([smoothed_shares(one, axes[j], base is not None) for one in counts]),
                )
            smoothing = self.mixtures[j], axes[above], axes[j]
            backed_off = None if base is None else base.tables[place[j]][0]
            smooth = [table_of(one, *smoothing, of_z, backed_off) for one, of_z in zip(weighted, alone[j], strict=True)]
            found = np.stack(smooth)
            if filled is not None:
                found = _with_filled(found, pairs, filled.of_pairs[place[j]])
                own = np.stack([smoothed_shares(one, axes[j], base is not None) for one in counts])
                alone[j] = _with_filled(own, counts, filled.of_codes[place[j]])
            if filled is None and has_gaps[[j, above]].any():
                alone[j] = np.einsum("zk,zkl->zl", alone[above], found)
            else:
                of_lines = zip(weighted, alone[above], strict=True)
                tilts = [Tilt.of(one, axes[above], axes[j], p, backed_off) for one, p in of_lines]
                each = zip(found, alone[above], alone[j], tilts, strict=True)
                found = np.stack([with_margins(*one, fits) for one in each])
            tables.append(found)
        of_z = known.of_z + (0.0 if filled is None else filled.of_z) + 1.0
        positions = tuple(self.rows.positions[j] for j in self.parents)
        return Tables(
            np.log(of_z / of_z.sum()), positions, tuple(place[one] for one in self.parents.values()), tuple(tables)
        )


def _with_filled(smooth: Array, known: Array, filled: Array) -> Array:
    """Return distributions of the sums of known cells, after smoothing, and of those that were filled in."""
    total = known.sum(axis=-1, keepdims=True) + 1.0
    found = np.maximum(total * smooth + filled, 0.0)
    return np.asarray(found / found.sum(axis=-1, keepdims=True))


def in_parts(tables: Tables) -> Tables:
    """Return the tables whose probabilities are whole parts of 2**20, by largest remainders: lines sum to 1 exactly."""
    found = []
    for table in tables.tables:
        whole = np.floor(table * PARTS)
        remainder = np.round(table * PARTS - whole, 6)  # so that equal ones are in the order of codes
        place = np.argsort(np.argsort(-remainder, axis=-1, kind="stable"), axis=-1)
        found.append((whole + (place < PARTS - whole.sum(axis=-1, keepdims=True))) / PARTS)
    return replace(tables, tables=tuple(found))
