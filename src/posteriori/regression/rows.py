"""Training rows with a target of numbers, in folds that depend on their cells and targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import first_rows, read_stated
from posteriori.kernels.loops.hashing import splitmix64
from posteriori.learning.equal_rows import count_rows
from posteriori.learning.folded_data import MOST_EVALUATED_BY_ALL, FoldedData
from posteriori.pool.parameters import Data
from posteriori.reading import TargetCuts, check_weights, read_labels
from posteriori.reading.labels import LabelColumn, warn_of_labels_among_features
from posteriori.sources import LabelledSource, source_of
from posteriori.support.checks import is_missing
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.batch import joined
from posteriori.user_warnings import warn_of_missing_targets

_CLASSES = 10  # of the target, over which folds are spread evenly
_FEWEST = 3  # rows
GROUPS = 3  # of folds, of which each tree leaves one out
_SMALLEST, _LARGEST = 1e-140, 1e75  # of the range, and of the size, of targets: products of squares stay finite


@dataclass(frozen=True)
class NumberRows:
    """The training rows of a regression: those that are evaluated in folds, in memory, and all of them as a source."""

    folded: FoldedData  # the classes are quantiles of the target
    target: Column  # of numbers
    y: Array  # (m,): of the evaluated rows
    batch: Batch  # their cells
    all_y: Array  # (n,): of all rows of the table
    unit: float = 1.0  # the weight that was given to what counts as a row of weight 1
    correlation: float = 0.0  # of what the features leave of the targets of two rows of a group

    @property
    def source(self) -> LabelledSource:
        """All rows."""
        return self.folded.source

    @property
    def weight(self) -> Array:
        """The weight of each evaluated row, (m,)."""
        return self.folded.weight

    @property
    def fold(self) -> Array:
        """The fold of each evaluated row, (m,)."""
        return self.folded.fold

    @property
    def group(self) -> Array | None:
        """The group of each evaluated row, (m,), where groups were given."""
        return self.folded.group

    @cached_property
    def independent(self) -> Array:
        r"""The number of independent rows that each evaluated row tells as much as, (m,).

        A row of weight w counts as w / (1 + ρ (W − 1)) if its group has the weight W, and its rows the correlation ρ
        (Kish, Survey Sampling, 1965, section 8.1: the design effect).
        """
        if self.group is None:
            return self.weight
        place = np.unique(self.group, return_inverse=True)[1]
        others = np.maximum(np.bincount(place, self.weight)[place] - 1.0, 0.0)
        return np.asarray(self.weight / (1.0 + self.correlation * others))

    def correlated(self, correlation: float) -> NumberRows:
        """Return the rows with another correlation within groups."""
        return replace(self, correlation=correlation)

    @property
    def has_others(self) -> bool:
        """Whether there are rows that are not evaluated; they train the models of all folds."""
        return len(self.folded.evaluated) < self.folded.n_labelled

    @cached_property
    def sample_keys(self) -> Array:
        """A random number of each evaluated row, (m,), that does not depend on the order of rows."""
        return self._keys(0)

    def _keys(self, turn: int) -> Array:
        numbers = self.folded.numbers_of_rows.astype(np.uint64)
        return np.asarray(splitmix64(splitmix64(numbers + np.uint64(1)) + np.uint64(turn)))

    def sample(self, most: int, turn: int = 0) -> Array:
        """Return the positions of some evaluated rows, ascending: those of the smallest random numbers."""
        return np.sort(np.argsort(self._keys(turn), kind="stable")[:most])

    def sample_of_groups(self, most: int) -> Array:
        """Return the positions of some evaluated rows, ascending: two of each group, then two more."""
        if self.group is None:
            return self.sample(most)
        keys = self._keys(0)
        order = np.lexsort((keys, np.unique(self.group, return_inverse=True)[1]))
        group = self.group[order]
        is_first = np.append(True, group[1:] != group[:-1])
        within = np.arange(len(order)) - np.maximum.accumulate(np.where(is_first, np.arange(len(order)), 0))
        turn = np.empty(len(order), np.int64)
        turn[order] = within // 2
        return np.sort(np.lexsort((keys, turn))[:most])


def read_number_rows(recipe: Recipe, data: Data, folds: int, seed: int) -> NumberRows:
    """Read training rows whose target is a number, and deal them to folds.

    Raises
    ------
    ValueError
        The target holds no numbers, infinity, or one number only; there are fewer than three rows;
        or as in `NaiveBayes.fit`.
    """
    recipe.check()
    table = read_stated(recipe, data.X, data.y)
    given = read_labels(data.y, table)
    warn_of_labels_among_features(data.y, table)
    y, weight = learnable_numbers(given, data.sample_weight)
    name = given.name or "y"
    stated = check_weights(data.sample_weight, len(y))
    # Rows of stated weight 0 count: only those without target have lost theirs.
    n_lost = 0 if weight is None else np.count_nonzero((weight == 0.0) & (True if stated is None else stated > 0.0))
    n_known = len(y) - n_lost
    if n_known < _FEWEST:
        raise ValueError(f"n_samples={n_known}: a regressor learns from three rows at least")
    counted = y[weight > 0] if weight is not None else y
    if counted.min() == counted.max():
        raise ValueError(f"the target {name!r} is {counted[0]:g} in every row; there is nothing to predict")
    if np.ptp(y) < _SMALLEST or np.abs(y).max() > _LARGEST:
        raise ValueError(
            f"the target {name!r} lies between {y.min():g} and {y.max():g}, and squares of its differences overflow or "
            "underflow; multiply it by a power of 10"
        )
    rows = first_rows(recipe, table, _in_quantiles(given, y, counted), weight)
    groups = data.groups
    if groups is not None:
        if len(groups) != len(y):
            raise ValueError(f"groups has {len(groups)} entries for {len(y)} rows; give each row its group")
        gaps = [row for row, group in enumerate(groups) if is_missing(group)]
        if gaps:
            raise ValueError(f"groups has no value in row {gaps[0]}; give each row its group")
        folds = min(folds, len(set(np.asarray(groups).tolist())))
        if folds < GROUPS:
            raise ValueError(f"groups holds {folds} of them; a regressor needs {GROUPS} at least")
    rows, unit = count_rows(replace(rows, source=rows.source.cached()), y)
    if rows.origin is not None:
        y, groups = y[rows.origin], None if groups is None else np.asarray(groups)[rows.origin]
    if unit != 1.0:
        rows = replace(rows, source=rows.source.reweighted(np.full(len(y), 1.0 / unit)))
    if rows.source.weight is not None:  # the quantiles of the rows that count
        labels = _in_quantiles(given, y, y[rows.source.weight > 0])
        rows = replace(rows, source=rows.source.with_labels(labels, labels.infer()), target=labels.infer())
    folded = FoldedData.of(
        rows,
        folds,
        groups=groups,
        random_state=seed,
        at_most=True,
        most=MOST_EVALUATED_BY_ALL,
    ).dealt_by_cells(seed)
    target = Column(name, "continuous", dtype=str(given.table.data_type(given.position)))
    return NumberRows(folded, target, y[folded.evaluated], _cells_of(folded), y, unit)


def _in_quantiles(given: LabelColumn, y: Array, counted: Array) -> LabelColumn:
    """Return the quantiles that targets lie in as labels, so that folds are spread evenly over them."""
    codes = quantile_codes(y, counted)
    return LabelColumn(ArrayTable(codes[:, np.newaxis], "y"), name=given.name, cut_from=given.position)


def quantile_codes(y: Array, counted: Array) -> Array:
    """Return which of ten quantiles of some targets each target lies in, (n,)."""
    return np.searchsorted(TargetCuts.of(counted, _CLASSES).cuts, y, side="left")


def learnable_numbers(labels: LabelColumn, sample_weight: Any) -> tuple[Array, Array | None]:
    """Return targets to learn from, (n,), and their weights, 0 of a row without target, whose number is another's."""
    y = numbers_of(labels, may_miss=True)
    weight, is_missing_target = check_weights(sample_weight, len(y)), np.isnan(y)
    if not is_missing_target.any():
        return y, weight
    if is_missing_target.all():
        raise ValueError(f"every cell of the target {labels.name or 'y'!r} is missing; a regressor learns from numbers")
    weight = np.ones(len(y)) if weight is None else weight
    warn_of_missing_targets(int((is_missing_target & (weight > 0)).sum()), len(y), labels.name)
    return np.where(is_missing_target, y[~is_missing_target][0], y), np.where(is_missing_target, 0.0, weight)


def numbers_of(labels: LabelColumn, *, may_miss: bool = False) -> Array:
    """Return labels as numbers, (n,), NaN where missing.

    Raises
    ------
    ValueError
        They are no numbers, one is infinite, or one is missing and may not.
    """
    table, position, name = labels.table, labels.position, repr(labels.name or "y")
    column = table.column(position, categorical=False)
    if column.valueless and may_miss:
        return np.full(table.n_rows, np.nan)
    if column.kind != "continuous" or column.valueless:
        kind = " and ".join(sorted(column.kinds)) or "no values"
        raise ValueError(
            f"the target {name} holds {kind}, and a regressor predicts numbers; convert it, or use a classifier"
        )
    source = source_of(table, Schema((column,)), [position], infinity_is_error=False)
    found = np.concatenate(list(source.stream(lambda batch: batch.numbers.values[:, 0].astype(np.float64), "reading")))
    infinite = np.flatnonzero(np.isinf(found))
    if len(infinite):
        raise ValueError(
            f"Input y contains infinity: the target {name} is {found[infinite[0]]:g} in row {infinite[0]}; replace or "
            "leave out such rows"
        )
    missing = np.flatnonzero(np.isnan(found))
    if len(missing) and not may_miss:
        listed = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise ValueError(f"Input y contains NaN: the target of row {listed} is missing; drop such rows")
    return found


def _cells_of(folded: FoldedData) -> Batch:
    """Return the cells of the evaluated rows."""
    marked = np.zeros(folded.source.table.n_rows, np.bool_)
    marked[folded.evaluated] = True
    parts = folded.source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]), "reading")
    return joined([part for part in parts if len(part)])
