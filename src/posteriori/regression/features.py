"""Features of a row for least squares: lines and steps of numbers, indicators of categories, and marks for gaps."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori.learning.cut_points import quantile_cuts
from posteriori.model.blocks import known_cells
from posteriori.program.cells import ArrayCells, RowCells
from posteriori.support.arrays import Arrays
from posteriori.support.checks import LARGEST, check_numbers, check_places, check_share, require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_MOST_STEPS = 20  # of a column
_MOST_FEATURES = 1000  # steps and indicators of all columns
_MOST_CATEGORIES = 50  # of a column that have an indicator
_OTHER_COLUMNS = "the features are of other columns"
_LEAST_GAPS = 0.05  # share of the training rows, with which a gap has a mark; fewer gaps are at random
_BEYOND = 0.25  # of the range of the training rows, how far a line goes on outside of it
_MOST_USUAL, _MOST_SCALES = 1e3, 1e9  # in a file: the mean of a feature, and scales from the centre of a column

KINDS = ("line", "step", "category", "gap")


@dataclass(frozen=True)
class NumberFeatures:
    """How a column of numbers becomes a line and steps."""

    column: int  # its position in the schema
    place: int  # its position among the numbers of a batch
    centre: float
    scale: float
    lowest: float
    highest: float
    cuts: Array  # (k,): where the steps are
    usual: Array  # (1 + k,): the mean of line and steps in the training rows

    @property
    def reach(self) -> tuple[float, float]:
        """The range outside of which the line is constant."""
        room = _BEYOND * (self.highest - self.lowest)
        return self.lowest - room, self.highest + room

    def of_cells(self, values: Arrays) -> Arrays:
        """Return the line and the steps of cells, (n, 1 + k)."""
        xp = values.__array_namespace__()
        line = (xp.clip(values, *self.reach) - self.centre) / self.scale
        return xp.concat([line[:, None], xp.astype(values[:, None] >= self.cuts, xp.float64)], axis=1)

    def of_rows(self, cells: RowCells) -> Arrays:
        """Return the same of rows about their means; 0 where the cell is unknown."""
        values = cells.number(self.column)
        return cells.xp.where(cells.xp.isnan(values)[:, None], 0.0, self.of_cells(values) - self.usual)


@dataclass(frozen=True)
class CategoryFeatures:
    """How a column of categories becomes indicators."""

    column: int  # its position in the schema
    place: int  # its position among the codes of a batch
    codes: Array  # (k,): which have an indicator
    usual: Array  # (k,): their shares in the training rows

    def of_rows(self, cells: RowCells) -> Arrays:
        """Return the indicators of rows about their means, (n, k); 0 where the cell is unknown."""
        xp, codes = cells.xp, cells.code(self.column)[:, None]
        return xp.where(codes == 0, 0.0, xp.astype(codes == self.codes, xp.float64) - self.usual)


@dataclass(frozen=True)
class Gap:
    """The mark for the missing cells of a column."""

    column: int  # its position in the schema
    place: int  # its position among the numbers, or the codes, of a batch
    is_number: bool
    share: float  # of the training rows


@dataclass(frozen=True)
class Features:
    """The map from rows to features φ, of which each has mean 0 in the training rows.

    Unknown cells have the mean, 0. A column of which 5 % of the training cells are missing has a mark for that. Marks
    add up: they are unknown in a row without a cell, and in one with more gaps than a training row had.
    """

    numbers: tuple[NumberFeatures, ...]
    categories: tuple[CategoryFeatures, ...]
    gaps: tuple[Gap, ...]
    most_gaps: int  # how many columns that have a mark a training row lacked
    columns: Array  # (p,): the position in the schema of the column of each feature
    kinds: Array  # (p,): the index in KINDS of each feature

    @classmethod
    def of(cls, schema: Schema, batch: Batch, weight: Array) -> Features:
        """Return the features that suit some rows, (n,) of which have these weights."""
        numbers = _features_of_numbers(schema, batch, weight)
        categories = _features_of_categories(schema, batch, weight)
        gaps = _marks(schema, batch, weight)
        columns = [one.column for one in numbers for _ in range(1 + len(one.cuts))]
        columns += [one.column for one in categories for _ in one.codes]
        kinds = [kind for one in numbers for kind in [0] + [1] * len(one.cuts)]
        kinds += [2 for one in categories for _ in one.codes] + [3] * len(gaps)
        return cls(
            numbers,
            categories,
            gaps,
            int(_missing(gaps, ArrayCells.of(batch))[weight > 0].max(initial=0)),
            np.array(columns + [one.column for one in gaps], np.int64),
            np.array(kinds, np.int64),
        )

    def check_against(self, schema: Schema) -> None:
        """Raise ValueError unless the features are those of the columns of a schema."""
        continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
        for one in self.numbers:
            require(0 <= one.place < len(continuous) and continuous[one.place] == one.column, _OTHER_COLUMNS)
            check_numbers("the steps of a column", one.cuts, (len(one.cuts),))
            check_numbers("the means of features", one.usual, (1 + len(one.cuts),), -_MOST_USUAL, _MOST_USUAL)
            numbers = np.array([one.centre, one.scale, one.lowest, one.highest])
            check_numbers("the line of a column", numbers, (4,))
            ends = np.abs(np.array(one.reach) - one.centre).max()
            in_scale = one.lowest < one.highest and ends <= one.scale * _MOST_SCALES
            require(in_scale, "a column of numbers has no range, or none that is in proportion to its scale")
        for of in self.categories:
            places = range(len(schema.coded))
            require(of.place in places and schema.coded[of.place] == of.column in categorical, _OTHER_COLUMNS)
            check_places(
                "the codes of a column", of.codes, (len(of.codes),), 1, schema.columns[of.column].cardinality + 1
            )
            check_numbers("the means of features", of.usual, (len(of.codes),), 0.0, 1.0)
        for gap in self.gaps:
            columns = continuous if gap.is_number else schema.coded
            require(0 <= gap.place < len(columns) and columns[gap.place] == gap.column, _OTHER_COLUMNS)
            check_share("the share of missing cells", gap.share)
        require(0 <= self.most_gaps <= len(self.gaps), "a row had more gaps than columns with gaps")
        n_features = sum(1 + len(one.cuts) for one in self.numbers) + sum(len(one.codes) for one in self.categories)
        shape = (n_features + len(self.gaps),)
        check_places("the columns of features", self.columns, shape, 0, len(schema.columns))
        check_places("the kinds of features", self.kinds, shape, 0, len(KINDS))

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def _of_columns(self) -> tuple[NumberFeatures | CategoryFeatures, ...]:
        return *self.numbers, *self.categories

    @cached_property
    def parts_of_numbers(self) -> list[tuple[slice, slice]]:
        """Where the line and the steps of each column of numbers are."""
        ends = np.cumsum([0, *(1 + len(one.cuts) for one in self.numbers)]).tolist()
        return [(slice(a, a + 1), slice(a + 1, b)) for a, b in itertools.pairwise(ends)]

    @cached_property
    def parts_of_categories(self) -> list[slice]:
        """Where the indicators of each column of categories are."""
        first = sum(1 + len(one.cuts) for one in self.numbers)
        ends = np.cumsum([first, *(len(one.codes) for one in self.categories)]).tolist()
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    @cached_property
    def parts_of_gaps(self) -> list[slice]:
        """Where the mark of each column with gaps is."""
        first = len(self) - len(self.gaps)
        return [slice(first + k, first + k + 1) for k in range(len(self.gaps))]

    def of_rows(self, batch: Batch) -> Array:
        """Return the features of rows, (n, p); 0, the mean, where the cell is unknown."""
        return np.asarray(self.of_cells(ArrayCells.of(batch), known_cells(batch).any(axis=1)))

    def unknown(self, batch: Batch) -> Array:
        """Return which features of rows are unknown, (n, p): those of missing cells, and marks of too many gaps."""
        return np.asarray(self.unknown_in(ArrayCells.of(batch), known_cells(batch).any(axis=1)))

    def of_cells(self, cells: RowCells, known: Arrays) -> Arrays:
        """Return the features of rows as arrays of any namespace; `known` are the rows with any known cell, (n,)."""
        xp = cells.xp
        parts = [one.of_rows(cells) for one in self._of_columns]
        if self.gaps:
            missing = xp.stack([~cells.known(gap.column) for gap in self.gaps], axis=1)
            marks = xp.astype(missing, xp.float64) - np.array([gap.share for gap in self.gaps])
            parts.append(xp.where(self._has_unknown_marks(cells, known)[:, None], 0.0, marks))
        return xp.concat([cells.zeros()[:, :0], *parts], axis=1)

    def unknown_in(self, cells: RowCells, known: Arrays) -> Arrays:
        """Return which features of the same rows are unknown."""
        each = [~cells.known(one.column) for one in self._of_columns]
        each.append(self._has_unknown_marks(cells, known))
        widths = [1 + len(one.cuts) for one in self.numbers] + [len(of.codes) for of in self.categories]
        owner = np.repeat(np.arange(len(each)), [*widths, len(self.gaps)])
        return cells.xp.take(cells.xp.stack(each, axis=1), cells.xp.asarray(owner), axis=1)

    def _has_unknown_marks(self, cells: RowCells, known: Arrays) -> Arrays:
        """Return in which rows the marks of gaps are unknown, (n,)."""
        return ~known if not self.gaps else (_missing(self.gaps, cells) > self.most_gaps) | ~known

    @cached_property
    def unit(self) -> Array:
        """The prior variance of the coefficient of each feature, relative to others of its kind, (p,).

        The steps of a column have together that of one line.
        """
        unit = np.ones(len(self))
        for _, steps in self.parts_of_numbers:
            unit[steps] = 1.0 / (steps.stop - steps.start + 1)
        return unit


def _missing(gaps: tuple[Gap, ...], cells: RowCells) -> Arrays:
    """Return how many cells of the columns with a mark are missing, (n,)."""
    xp = cells.xp
    each = [xp.astype(~cells.known(gap.column), xp.int64) for gap in gaps]
    return sum(each, start=xp.astype(cells.zeros()[:, 0], xp.int64))


def _features_of_numbers(schema: Schema, batch: Batch, weight: Array) -> tuple[NumberFeatures, ...]:
    columns = schema.of_kind("continuous")
    n_steps = int(np.clip(_MOST_FEATURES // 2 // max(len(columns), 1), 1, _MOST_STEPS))
    found = []
    for place, j in enumerate(columns):
        values = np.asarray(batch.numbers.values[:, place], np.float64)
        known = ~np.isnan(values)
        present, of_rows = values[known], weight[known]
        if not len(present) or present.min() == present.max():
            continue
        farthest = float(np.abs(present).max())
        if farthest > LARGEST:
            raise ValueError(
                f"column {schema.names[j]!r} holds a number of magnitude {farthest:g}, and squares beyond {LARGEST:g} "
                "overflow; divide the column by a constant, or replace the number by NaN if it is unknown"
            )
        centre = float(np.average(present, weights=of_rows))
        scale = float(np.sqrt(np.average((present - centre) ** 2, weights=of_rows)))
        cuts = quantile_cuts(present, of_rows, n_steps + 1)
        ends = float(present.min()), float(present.max())
        one = NumberFeatures(j, place, centre, scale, *ends, cuts, np.zeros(1 + len(cuts)))
        found.append(replace(one, usual=np.average(one.of_cells(present), axis=0, weights=of_rows)))
    return tuple(found)


def _features_of_categories(schema: Schema, batch: Batch, weight: Array) -> tuple[CategoryFeatures, ...]:
    columns = schema.of_kind("categorical")
    most = int(np.clip(_MOST_FEATURES // 2 // max(len(columns), 1), 2, _MOST_CATEGORIES))
    found = []
    for j in columns:
        place = schema.coded.index(j)
        counts = np.bincount(batch.codes.values[:, place], weight)
        shown = np.flatnonzero(counts[1:] > 0) + 1
        if len(shown) < 2:
            continue
        frequent = np.sort(shown[np.argsort(-counts[shown], kind="stable")][:most])
        found.append(CategoryFeatures(j, place, frequent, counts[frequent] / counts[1:].sum()))
    return tuple(found)


def _marks(schema: Schema, batch: Batch, weight: Array) -> tuple[Gap, ...]:
    places = [(True, j, place) for place, j in enumerate(schema.of_kind("continuous"))]
    places += [(False, j, schema.coded.index(j)) for j in schema.of_kind("categorical")]
    found, cells = [], ArrayCells.of(batch)
    for is_number, j, place in places:
        share = float(weight @ ~cells.known(j) / weight.sum())
        if _LEAST_GAPS <= share < 1.0:
            found.append(Gap(j, place, is_number, share))
    return tuple(found)
