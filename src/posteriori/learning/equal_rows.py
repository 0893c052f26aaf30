"""Rows that occur several times: whether they are copies, and the weights by which they count as one row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace

import numpy as np

from posteriori.learning.fit import TrainingRows
from posteriori.sources import LabelledSource
from posteriori.sources.sampled import sampled_source
from posteriori.statistics.row_records import hash_cells, hash_numbers
from posteriori.support.formatting import plural
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.user_warnings import RepeatedRowsWarning, warn

_MOST_HASHES = 1 << 21  # that are held and sorted
_MOST_CELLS = 1 << 24  # of rows that stand several times
_BY_CHANCE = 0.1  # of the equal pairs: with more of them, equal rows are no copies
_MOST_TIMES = 3.0  # that a row occurs on average, from which a column has to tell different rows apart
_TOLD_APART = 0.9  # of them
_ROUNDING = 1e-9  # of a sum of squares
_FEWEST_DISTINCT = 10  # rows, below which equal ones show nothing


def count_rows(rows: TrainingRows, target: Array) -> tuple[TrainingRows, float]:
    r"""Return the rows that count as such, and the weight of what counts as one row.

    Joins, exports and oversampling copy rows: a copy in another fold than its original shows a model what it is judged
    by. In a table of few distinct cells, rows are equal by chance, and new rows will be, too. Pairs of rows tell which
    is so. Let column j, or the target, have the cells v in the shares p_v, so that two rows share a cell with the
    probability c = Σ p_v². Of the pairs that are equal in all columns but j, B differ in j. If j varied by chance, then
    about

    .. math:: B \frac{c}{1 - c}

    would agree in it. Equal rows are copies if these, of all columns, are less than a tenth of the equal pairs. A
    column that others determine never differs alone. So rows that occur more than three times on average are copies
    only if a column of fractions tells nearly all different rows apart: few cells cannot.

    Of copies the first has the weight of all, and the others have weight 0; fit warns of them. So it is if all rows
    occur a multiple of k times, with one row in k.

    A row of weight k is k rows, in all this too. Where rows are equal by chance, it stands k times in the result.

    Parameters
    ----------
    rows : TrainingRows
        Under their inferred schema. They are read once, and once more if rows are equal.
    target : ndarray (n,)
        The class index or the number of each row.
    """
    source = rows.source
    weight, unit = merged_weight(source, target, warns=True)
    if weight is not source.weight:
        return replace(rows, source=source.with_weight(weight)), unit
    if weight is None or weight.max(initial=0.0) <= 1.0 or (weight != np.floor(weight)).any():
        return rows, unit
    if weight.sum() * len(source.schema.columns) <= _MOST_CELLS:
        return _repeated(rows, weight.astype(np.int64)), unit
    return rows, unit


def merged_weight(source: LabelledSource, target: Array, *, warns: bool = False) -> tuple[Array | None, float]:
    """Return the weights of rows, (n,), where copies count as one row, and the weight of one row (`count_rows`).

    The weights are those of the source itself if there are no copies.
    """
    weight = np.ones(len(target)) if source.weight is None else source.weight
    of_target = hash_numbers(target.astype(np.float64))
    hashes = _hash_rows(source, of_target)
    group = np.unique(hashes, return_inverse=True)[1]
    total = np.bincount(group, weight)
    n_distinct = np.count_nonzero(total)
    is_each_once = n_distinct == np.count_nonzero(weight) and bool(np.isin(weight, (0.0, 1.0)).all())
    if is_each_once or n_distinct < _FEWEST_DISTINCT:
        return source.weight, 1.0
    if _are_copies(source, hashes, target, weight):
        merged, unit = _in_first(group, weight, total), float(total.sum() / n_distinct)
    elif (times := _times(total[total > 0])) > 1:
        merged, unit = _one_in(times, group, weight), float(times)
    else:
        return source.weight, 1.0
    if warns:
        _warn_of_copies(group, weight > 0, merged > 0)
    return merged, unit


def group_copies(rows: TrainingRows, target: Array | None = None) -> Array | None:
    """Return the number of the group of equal rows of each row, (n,), if rows were copied (`count_rows`); else None.

    The target is the class of each row, or the number that is given for it.
    """
    target = rows.y_true if target is None else target
    of_target = hash_numbers(target.astype(np.float64))
    hashes = _hash_rows(rows.source, of_target)
    group = np.unique(hashes, return_inverse=True)[1]
    if not _FEWEST_DISTINCT <= group.max() + 1 < len(group):
        return None
    return np.asarray(group) if _are_copies(rows.source, hashes, target, np.ones(len(group))) else None


def _hash_rows(source: LabelledSource, of_target: Array) -> Array:
    """Return a hash of each row and its target: a sum, as `posteriori.statistics.row_records.hash_rows`."""
    hashes = of_target.copy()
    for part, sums in source.stream(lambda batch: (_place(batch), sum(hash_cells(batch), np.uint64(0))), "reading"):
        hashes[part] += sums
    return hashes


def _in_first(group: Array, weight: Array, total: Array) -> Array:
    """Return weights, (n,), of which the first row of each group has all."""
    counted, merged = np.flatnonzero(weight > 0), np.zeros_like(weight)
    first = counted[np.unique(group[counted], return_index=True)[1]]
    merged[first] = total[group[first]]
    return merged


def _one_in(times: int, group: Array, weight: Array) -> Array:
    """Return weights, (n,), of which one row has those of as many equal ones."""
    order = np.argsort(group, kind="stable")
    reached, merged = np.cumsum(weight[order]), np.empty_like(weight)
    # The weight of each group is a multiple of `times`, so that none begins within a multiple.
    merged[order] = times * np.diff(np.floor(reached / times), prepend=0.0)
    return merged


def _repeated(rows: TrainingRows, times: Array) -> TrainingRows:
    """Return rows in memory, each as often as it says, with weight 1."""
    origin = np.repeat(np.arange(len(times)), times)
    source = sampled_source(rows.source, origin, rows.y_true[origin]).with_weight(None)
    return TrainingRows(source.with_unlabelled_weight(rows.source.unlabelled_weight), rows.target, origin)


def _warn_of_copies(group: Array, given: Array, counted: Array) -> None:
    """Warn of the groups in which a row of positive weight does not count."""
    of_copies = np.unique(group[given & ~counted])
    if len(of_copies):
        repeated = int(np.isin(group[given], of_copies).sum())
        warn(
            f"{repeated:,} of {int(given.sum()):,} rows are copies of {plural(len(of_copies), 'row')}; "
            "copies count as one row of their weight where predictions are judged",
            RepeatedRowsWarning,
        )


def _place(batch: Batch) -> slice:
    return slice(batch.start, batch.start + len(batch))


def _are_copies(source: LabelledSource, hashes: Array, target: Array, weight: Array) -> bool:
    """Return whether less than a tenth of the equal pairs are equal by chance."""
    _, first, place = np.unique(hashes[weight > 0], return_index=True, return_inverse=True)
    counts = np.maximum(np.bincount(place), np.bincount(place, weight[weight > 0]))
    if counts.sum() > _MOST_TIMES * len(first) and not _tell_apart(source, target, np.flatnonzero(weight > 0)[first]):
        return False
    of_target = hash_numbers(target.astype(np.float64))
    n_columns = 1 + len(source.schema.columns)
    mask = np.uint64((1 << (len(hashes) * n_columns // _MOST_HASHES).bit_length()) - 1)  # one hash in a power of two

    def sampled(batch: Batch) -> list[_Cells]:
        part = _place(batch)
        columns = (of_target[part], *hash_cells(batch))
        return [_Cells.of(own, hashes[part], weight[part], mask) for own in columns]

    batches = list(source.stream(sampled, "reading"))
    by_chance = 0.0
    for parts in zip(*batches, strict=True):
        by_chance += _Cells.joined(parts).share_by_chance
        if by_chance > _BY_CHANCE:
            return False
    return True


def _tell_apart(source: LabelledSource, target: Array, rows: Array) -> bool:
    """Return whether a column of fractions, or the target, has as good as another number in each of some rows."""
    marked = np.zeros(len(target), np.bool_)
    marked[rows] = True
    parts = source.stream(lambda batch: batch.numbers.values[marked[_place(batch)]], "reading")
    cells = np.column_stack([np.concatenate(list(parts)), target[marked]])
    for column in cells.T:
        known = column[~np.isnan(column)]
        if len(np.unique(known)) >= _TOLD_APART * len(rows) and (known != np.floor(known)).any():
            return True
    return False


@dataclass(frozen=True)
class _Cells:
    """The hashes of the cells of a column in some rows: in all that are equal in the other columns, or in none."""

    own: Array  # (m,)
    row: Array  # (m,)
    weight: Array  # (m,)

    @classmethod
    def of(cls, own: Array, row: Array, weight: Array, mask: np.uint64) -> _Cells:
        chosen = np.flatnonzero((row - own) & mask == 0)
        return cls(own[chosen], row[chosen], weight[chosen])

    @classmethod
    def joined(cls, parts: Sequence[_Cells]) -> _Cells:
        return cls(*(np.concatenate([getattr(part, one.name) for part in parts]) for one in fields(cls)))

    @property
    def share_by_chance(self) -> float:
        """The share of the pairs that are equal in all columns which would be if this one varied by chance."""
        squares = [_sum_of_squares(key, self.weight) for key in (self.row, self.row - self.own, self.own)]
        of_one = self.weight @ np.minimum(self.weight, 1.0)  # pairs of a row with itself, of which weight k has k
        equal, differing = squares[0] - of_one, squares[1] - squares[0]
        shared = squares[2] / max(self.weight.sum(), 1.0) ** 2
        rounding = _ROUNDING * squares[0]
        if shared >= 1.0 or differing <= rounding:
            return 0.0
        return differing * shared / (1.0 - shared) / equal if equal > rounding else np.inf


def _sum_of_squares(key: Array, weight: Array) -> float:
    """Return the sum of the squares of the weights of equal keys: pairs of rows, and those of a row with itself."""
    return float((np.bincount(np.unique(key, return_inverse=True)[1], weight) ** 2).sum())


def _times(total: Array) -> int:
    """Return how often the whole table occurs, by how often each distinct row does."""
    return 1 if (total != np.floor(total)).any() else int(np.gcd.reduce(total.astype(np.int64)))
