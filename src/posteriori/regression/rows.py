"""Training rows with a target of numbers, in folds that depend on their cells and targets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import first_rows, read_stated
from posteriori.kernels.loops.hashing import splitmix64
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


def read_number_rows(recipe: Recipe, data: Data, folds: int, seed: int) -> NumberRows:
    """Read training rows whose target is a number, and deal them to folds.

    Raises
    ------
    ValueError
        The target holds no numbers, infinity, or one number only; a target is missing; there are fewer than three rows;
        or as in `NaiveBayes.fit`.
    """
    recipe.check()
    table = read_stated(recipe, data.X, data.y)
    given = read_labels(data.y, table)
    warn_of_labels_among_features(data.y, table)
    y = numbers_of(given)
    reject_missing(y)
    name = given.name or "y"
    if len(y) < _FEWEST:
        raise ValueError(f"n_samples={len(y)}: a regressor learns from three rows at least")
    weight = check_weights(data.sample_weight, len(y))
    counted = y if weight is None else y[weight > 0]
    if counted.min() == counted.max():
        raise ValueError(f"the target {name!r} is {counted[0]:g} in every row; there is nothing to predict")
    if np.ptp(y) < _SMALLEST or np.abs(y).max() > _LARGEST:
        raise ValueError(
            f"the target {name!r} lies between {y.min():g} and {y.max():g}, and squares of its differences overflow or "
            "underflow; multiply it by a power of 10"
        )
    codes = np.searchsorted(TargetCuts.of(y, _CLASSES).cuts, y, side="left")
    labels = LabelColumn(ArrayTable(codes[:, np.newaxis], "y"), name=given.name, cut_from=given.target_place)
    rows = first_rows(recipe, table, labels, data.sample_weight)
    if data.groups is not None:
        if len(data.groups) != len(y) or any(map(is_missing, data.groups)):
            raise ValueError(
                f"groups has {len(data.groups)} entries for {len(y)} rows, or a gap; give each row its group"
            )
        folds = min(folds, len(set(np.asarray(data.groups).tolist())))
        if folds < GROUPS:
            raise ValueError(f"groups holds {folds} of them; a regressor needs {GROUPS} at least")
    folded = FoldedData.of(
        replace(rows, source=rows.source.cached()),
        folds,
        groups=data.groups,
        random_state=seed,
        at_most=True,
        most=MOST_EVALUATED_BY_ALL,
    ).dealt_by_cells(seed)
    target = Column(name, "continuous", dtype=str(given.table.data_type(given.position)))
    batch = _cells_of(folded)
    _reject_infinite(batch)
    return NumberRows(folded, target, y[folded.evaluated], batch, y)


def _reject_infinite(batch: Batch) -> None:
    """Raise ValueError if a cell is infinite."""
    rows, places = np.nonzero(np.isinf(batch.numbers.values))
    if len(rows):
        name = batch.schema.names[batch.schema.of_kind("continuous")[places[0]]]
        raise ValueError(
            f"Input X contains infinity: column {name!r} holds {batch.numbers.values[rows[0], places[0]]:g} in row "
            f"{batch.number(rows[0])}; replace it, or leave out such rows"
        )


def reject_missing(y: Array) -> None:
    """Raise ValueError if a target is missing."""
    missing = np.flatnonzero(np.isnan(y))
    if len(missing):
        listed = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise ValueError(f"Input y contains NaN: the target of row {listed} is missing; drop such rows")


def numbers_of(labels: LabelColumn) -> Array:
    """Return labels as numbers, (n,), NaN where missing.

    Raises
    ------
    ValueError
        They are no numbers, or one is infinite.
    """
    table, position, name = labels.table, labels.position, repr(labels.name or "y")
    column = table.column(position, categorical=False)
    if column.kind != "continuous" or column.valueless:
        kind = " and ".join(sorted(column.kinds)) or "no values"
        raise ValueError(
            f"the target {name} holds {kind}, and a regressor predicts numbers; convert it, or use a classifier"
        )
    source = source_of(table, Schema((column,)), [position])
    found = np.concatenate(list(source.stream(lambda batch: batch.numbers.values[:, 0].astype(np.float64), "reading")))
    infinite = np.flatnonzero(np.isinf(found))
    if len(infinite):
        raise ValueError(
            f"Input y contains infinity: the target {name} is {found[infinite[0]]:g} in row {infinite[0]}; replace or "
            "leave out such rows"
        )
    return found


def _cells_of(folded: FoldedData) -> Batch:
    """Return the cells of the evaluated rows."""
    marked = np.zeros(folded.source.table.n_rows, np.bool_)
    marked[folded.evaluated] = True
    parts = folded.source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]), "reading")
    return joined([part for part in parts if len(part)])
