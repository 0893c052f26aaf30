"""Batches of rows: the cells of a table as tiles of numbers and codes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from posteriori import kernels
from posteriori.support.typing import Array
from posteriori.tables.arrays import encode_present
from posteriori.tables.bags import Bags
from posteriori.tables.messages import infinite_cell
from posteriori.tables.schema import CellKind, Column, Schema
from posteriori.tables.table import NO_ROWS, Table, UnseenRows, chosen_rows, joined_rows
from posteriori.tables.times import WEEKDAYS


def number_tile(arrays: list[Array], n_rows: int) -> Array:
    """Return columns as one row-major array: float32 if all of them are, else float64."""
    narrow = bool(arrays) and all(array.dtype == np.float32 for array in arrays)
    tile = np.empty((n_rows, len(arrays)), np.float32 if narrow else np.float64)
    for position, array in enumerate(arrays):
        tile[:, position] = array
    return tile


def require_finite(numbers: Array, columns: Sequence[Column], first: int = 0) -> None:
    """Raise ValueError if a number, (n, d), is infinite; `first` is the number of the first row, for the message."""
    if np.isinf(numbers).any():
        row, position = np.argwhere(np.isinf(numbers))[0]
        raise infinite_cell(columns[position].name, float(numbers[row, position]), first + int(row))


def code_tile(
    encoded: list[tuple[Array, Array]], schema: Schema, columns: Sequence[Column], n_rows: int
) -> tuple[Array, UnseenRows]:
    """Return columns of codes as one row-major array, and the rows of unseen categories by column."""
    tile = np.empty((n_rows, len(encoded)), schema.code_dtype)
    for position, (codes, _) in enumerate(encoded):
        tile[:, position] = codes
    pairs = zip(columns, encoded, strict=True)
    return tile, {column.name: unseen for column, (_, unseen) in pairs if len(unseen)}


@dataclass(frozen=True)
class Numbers:
    """Continuous cells: values (n, d), float32 or float64, C-contiguous, NaN where missing.

    cuts holds the cut points of each column, None where it is not binned; it is empty where no column is. exposure
    (n,), if given, is the exposure in which the counts of each row occurred, NaN where it is missing.
    """

    values: Array
    cuts: tuple[tuple[float, ...] | None, ...] = ()
    exposure: Array | None = None

    def take(self, positions: Sequence[int]) -> Numbers:
        """Return some of the columns."""
        cuts = tuple([self.cuts[position] for position in positions]) if self.cuts else ()
        return Numbers(np.ascontiguousarray(self.values[:, positions]), cuts)

    def rows(self, chosen: Array | slice) -> Numbers:
        """Return some of the rows, by a mask or by their positions."""
        exposure = None if self.exposure is None else self.exposure[chosen]
        return replace(self, values=self.values[chosen], exposure=exposure)


@dataclass(frozen=True)
class Codes:
    """Categorical and binned cells: codes (n, d), C-contiguous, 0 where missing, k + 1 for category or bin k.

    Of the type `Schema.code_dtype`: uint8 or uint32.
    """

    values: Array
    cardinalities: tuple[int, ...]

    def __post_init__(self) -> None:
        # Kernels are compiled for these two types only.
        if self.values.dtype not in (np.uint8, np.uint32):
            object.__setattr__(self, "values", self.values.astype(np.uint32))

    def take(self, positions: Sequence[int]) -> Codes:
        """Return some of the columns."""
        return Codes(
            np.ascontiguousarray(self.values[:, positions]),
            tuple([self.cardinalities[position] for position in positions]),
        )

    def rows(self, chosen: Array | slice) -> Codes:
        """Return some of the rows, by a mask or by their positions."""
        return replace(self, values=self.values[chosen])


@dataclass(frozen=True)
class Mixed:
    """Cells of both kinds; `continuous` (d,) marks the columns of numbers."""

    numbers: Numbers
    codes: Codes
    continuous: tuple[bool, ...]

    @property
    def present(self) -> Array:
        """Which cells are not missing, (n, d) booleans."""
        is_number = np.array(self.continuous, np.bool_)
        present = np.empty((len(self.numbers.values), len(is_number)), np.bool_)
        present[:, is_number] = ~np.isnan(self.numbers.values)
        present[:, ~is_number] = self.codes.values > 0
        return present

    def rows(self, chosen: Array) -> Mixed:
        """Return some of the rows, by a mask or by their positions."""
        return replace(self, numbers=self.numbers.rows(chosen), codes=self.codes.rows(chosen))


Tile = Numbers | Codes | Mixed | Bags


@dataclass(frozen=True)
class LabelLikelihood:
    """The likelihood of observed labels, where a label does not determine the component of its row."""

    recorded: Array  # (n,): the index of the recorded class of each row; −1 for an unlabelled row
    # (n, Z): log p(label | z) in nats: 0 or −inf for labels without noise, 0 for an unlabelled row
    log_likelihood: Array
    n_classes: int  # C

    def rows(self, chosen: Array) -> LabelLikelihood:
        """Return the likelihood for some of the rows, by a mask or by their positions."""
        return replace(self, recorded=self.recorded[chosen], log_likelihood=self.log_likelihood[chosen])


@dataclass(frozen=True)
class Assignment:
    """The component of each row, (n,), −1 where it is hidden; its weight, (n,); and the number of components.

    Statistics are sums over rows whose component is known (`Batch.labelled`), or over rows weighted by their
    responsibilities (`split_by_component`). `label_likelihood` holds the likelihood of labels that do not determine
    the component.
    """

    component: Array
    weight: Array
    n_components: int
    label_likelihood: LabelLikelihood | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "component", self.component.astype(np.int32, copy=False))  # as kernels take it

    @property
    def log_likelihood(self) -> Array | None:
        """Log p(label | z) in nats, (n, Z); 0 in unlabelled rows; None where all rows are unlabelled."""
        if self.label_likelihood is not None:
            return self.label_likelihood.log_likelihood
        if (self.component < 0).all():
            return None
        component = self.component[:, np.newaxis]
        other = (component >= 0) & (component != np.arange(self.n_components))
        return np.where(other, -np.inf, 0.0)

    def rows(self, chosen: Array) -> Assignment:
        """Return the assignment of some of the rows, by a mask or by their positions."""
        label_likelihood = None if self.label_likelihood is None else self.label_likelihood.rows(chosen)
        return replace(
            self, component=self.component[chosen], weight=self.weight[chosen], label_likelihood=label_likelihood
        )


def split_by_component(tile: Tile, responsibilities: Array) -> Iterator[tuple[Tile, Assignment]]:
    """Yield per component the rows of nonzero responsibility, with their responsibilities as weights.

    Sufficient statistics are linear in the weights, so that their sum over the components is their expectation.

    Parameters
    ----------
    tile : Numbers, Codes, Mixed or Bags
    responsibilities : ndarray (n, Z)
        The weight of each row in each component.
    """
    n_components = responsibilities.shape[1]
    for z in range(n_components):
        rows = np.flatnonzero(responsibilities[:, z])
        component = np.full(len(rows), z, np.int32)
        yield tile.rows(rows), Assignment(component, responsibilities[rows, z], n_components)


@dataclass(frozen=True)
class Batch:
    """Some rows of a table as numbers, codes and bags, with columns in the order of the schema.

    A binned column is in both: its numbers, and the codes of its bins.
    """

    schema: Schema
    start: int  # the number of the first row in its table, for messages
    numbers: Numbers  # the continuous columns
    codes: Codes  # the categorical and the binned columns
    unseen_rows: UnseenRows
    assignment: Assignment | None = None  # the components and weights, where the rows are labelled
    fold: Array | None = None  # (n,): the fold of each row, where statistics are kept per fold
    chosen: Array | None = None  # (n,): the number of each row in its table, where the rows are not consecutive
    bags: tuple[Bags, ...] = ()  # the columns of counts

    def __len__(self) -> int:
        return len(self.numbers.values)

    @property
    def unseen(self) -> dict[str, int]:
        """The number of cells per column, by name, whose category was unseen in training."""
        return {name: len(rows) for name, rows in self.unseen_rows.items()}

    @property
    def unseen_categories(self) -> Iterator[tuple[int, Array]]:
        """The columns, by their positions, and rows of unseen categories: no words, and not of a column without any."""
        for name, rows in self.unseen_rows.items():
            j = self.schema.names.index(name)
            if self.schema.columns[j].categories:
                yield j, rows

    def number(self, i: int) -> int:
        """Return the number of row i in its table."""
        return self.start + int(i) if self.chosen is None else int(self.chosen[i])

    @classmethod
    def of(
        cls,
        schema: Schema,
        start: int,
        numbers: Array,
        categories: Array,
        unseen_rows: UnseenRows,
        assignment: Assignment | None = None,
        fold: Array | None = None,
        bags: tuple[Bags, ...] | None = None,
    ) -> Batch:
        """Return a batch of continuous cells, of the codes of categorical cells, and of bags; default: empty bags."""
        continuous = Numbers(numbers, schema.cuts)
        if bags is None:
            widths = (schema.columns[j].width for j in schema.of_kind("counts"))
            bags = tuple(Bags.empty(len(numbers), width) for width in widths)
        codes = _coded(schema, numbers, categories)
        return cls(schema, start, continuous, codes, unseen_rows, assignment, fold, bags=bags)

    def take(self, columns: Sequence[int], view: CellKind) -> Tile:
        """Return the cells of some columns, by their positions in the schema: as numbers, codes, bags, or mixed.

        In a mixed block, categorical and binned columns are codes, and other columns are numbers. Columns viewed as
        counts are one column of counts, which has bags, or columns of numbers, which are returned as such.
        """
        if view == "counts" and self.schema.columns[columns[0]].kind == "counts":
            return self.bags[self.schema.of_kind("counts").index(columns[0])]
        if view == "mixed":
            coded = [column in self.schema.coded for column in columns]
            positions = [[j for j, is_coded in zip(columns, coded, strict=True) if is_coded == kind] for kind in (0, 1)]
            numbers, codes = self._numbers(positions[0]), self._codes(positions[1])
            return Mixed(numbers, codes, tuple([not is_coded for is_coded in coded]))
        return self._codes(columns) if view == "categorical" else self._numbers(columns)

    def exposure(self, name: str) -> Array:
        """Return the exposure of each row, (n,), from the column of numbers of this name; NaN where it is missing."""
        return self._numbers([self.schema.names.index(name)]).values[:, 0].astype(np.float64)

    def _numbers(self, columns: Sequence[int]) -> Numbers:
        continuous = self.schema.of_kind("continuous")
        if tuple(columns) == continuous:
            return self.numbers
        return self.numbers.take([continuous.index(column) for column in columns])

    def _codes(self, columns: Sequence[int]) -> Codes:
        coded = self.schema.coded
        if tuple(columns) == coded:
            return self.codes
        return self.codes.take([coded.index(column) for column in columns])

    def labelled(self) -> Batch:
        """Return the rows whose component is known."""
        return self._with_component(known=True)

    def unlabelled(self) -> Batch:
        """Return the rows whose component is hidden."""
        return self._with_component(known=False)

    def _with_component(self, known: bool) -> Batch:
        labels = self.assignment
        if labels is None:
            return self
        chosen = (labels.component >= 0) == known
        if chosen.all():
            return self
        positions = np.flatnonzero(chosen)
        return replace(self.rows(positions), assignment=labels.rows(positions))

    def with_schema(self, schema: Schema) -> Batch:
        """Return the same rows with the cut points of another schema of the same columns; kept with this batch."""
        if schema is self.schema:
            return self
        if id(schema) not in self._views:
            self._views[id(schema)] = self._under(schema)
        return self._views[id(schema)]

    @cached_property
    def _views(self) -> dict[int, Batch]:
        """The rows under other schemas, by the identity of the schema, which its view keeps alive."""
        return {}

    def _under(self, schema: Schema) -> Batch:
        codes = self.codes.values
        if self.schema.binning is not None:
            codes = codes[:, self.schema.coded_categories]
        return replace(
            self,
            schema=schema,
            numbers=Numbers(self.numbers.values, schema.cuts),
            codes=_coded(schema, self.numbers.values, codes),
        )

    def rows(self, chosen: Array | slice) -> Batch:
        """Return some of the rows, by a mask, their positions or a slice; without their assignment and folds."""
        numbers = self.start + np.arange(len(self)) if self.chosen is None else self.chosen
        return replace(
            self,
            numbers=self.numbers.rows(chosen),
            codes=self.codes.rows(chosen),
            unseen_rows=chosen_rows(self.unseen_rows, len(self), chosen),
            assignment=None,
            fold=None,
            chosen=numbers[chosen],
            bags=tuple([bags.rows(chosen) for bags in self.bags]),
        )


def joined(batches: Sequence[Batch]) -> Batch:
    """Return the rows of several batches of one schema as one batch; assignments and folds where all have them."""
    numbers = np.concatenate([batch.numbers.values for batch in batches])
    codes = np.concatenate([batch.codes.values for batch in batches])
    positions = [batch.start + np.arange(len(batch)) if batch.chosen is None else batch.chosen for batch in batches]
    first = batches[0]
    return replace(
        first,
        numbers=replace(first.numbers, values=numbers),
        codes=replace(first.codes, values=codes),
        assignment=_joined_assignments([batch.assignment for batch in batches]),
        fold=_joined_arrays([batch.fold for batch in batches]),
        unseen_rows=joined_rows((len(batch), batch.unseen_rows) for batch in batches),
        chosen=np.concatenate(positions),
        bags=tuple(map(Bags.joined, zip(*[batch.bags for batch in batches], strict=True))),
    )


def _joined_assignments(parts: Sequence[Assignment | None]) -> Assignment | None:
    known = [part for part in parts if part is not None]
    if len(known) < len(parts):
        return None
    likelihoods = [part.label_likelihood for part in known if part.label_likelihood is not None]
    likelihood = None
    if likelihoods:
        recorded = np.concatenate([one.recorded for one in likelihoods])
        log_likelihood = np.concatenate([one.log_likelihood for one in likelihoods])
        likelihood = LabelLikelihood(recorded, log_likelihood, likelihoods[0].n_classes)
    component = np.concatenate([part.component for part in known])
    weight = np.concatenate([part.weight for part in known])
    return Assignment(component, weight, known[0].n_components, likelihood)


def _joined_arrays(parts: Sequence[Array | None]) -> Array | None:
    known = [part for part in parts if part is not None]
    return np.concatenate(known) if len(known) == len(parts) else None


def _coded(schema: Schema, numbers: Array, categories: Array) -> Codes:
    """Return the given codes of the categorical columns, and the codes of the binned columns from their numbers."""
    binning = schema.binning
    if binning is None:
        return Codes(categories, schema.coded_cardinalities)
    codes = np.empty((len(numbers), len(schema.coded)), schema.code_dtype)
    codes[:, schema.coded_categories] = categories
    kernels.digitise(numbers, binning.numbers, binning.starts, binning.cuts, binning.codes, codes)
    return Codes(codes, schema.coded_cardinalities)


Times = dict[int, Array]  # by position in the table; each column of dates is converted once per call


def read_numbers(table: Table, positions: Sequence[int], columns: Sequence[Column], rows: slice, times: Times) -> Array:
    """Return some continuous columns of some rows as floats (n, d), NaN where missing.

    Parameters
    ----------
    table : Table
    positions : sequence of int
        The position in the table of each column.
    columns : sequence of Column
    rows : slice
    times : dict
        The times of these rows that were read before; this function adds others.
    """
    plain = [k for k, column in enumerate(columns) if column.part is None]
    if len(plain) == len(columns):
        return table.numbers(positions, columns, rows)
    parts = {
        k: column.part.numbers(_times_of(table, positions[k], column, rows, times))
        for k, column in enumerate(columns)
        if column.part is not None
    }
    numbers = np.empty((len(next(iter(parts.values()))), len(columns)))
    if plain:
        numbers[:, plain] = table.numbers([positions[k] for k in plain], [columns[k] for k in plain], rows)
    for k, values in parts.items():
        numbers[:, k] = values
    return numbers


def read_codes(
    table: Table, positions: Sequence[int], schema: Schema, columns: Sequence[Column], rows: slice, times: Times
) -> tuple[Array, UnseenRows]:
    """Return categorical columns of some rows as codes (n, d), and the rows of unseen categories by column.

    The parameters are those of `read_numbers`.
    """
    plain = [k for k, column in enumerate(columns) if column.part is None]
    if len(plain) == len(columns):
        return table.codes(positions, schema, columns, rows)
    unseen: UnseenRows = {}
    encoded: dict[int, Array] = {}
    for k, column in enumerate(columns):
        if column.part is None:
            continue
        encoded[k], found = _encoded(_times_of(table, positions[k], column, rows, times), column)
        if len(found):
            unseen[column.name] = found
    codes = np.empty((len(next(iter(encoded.values()))), len(columns)), schema.code_dtype)
    if plain:
        of_plain = [columns[k] for k in plain]
        codes[:, plain], more = table.codes([positions[k] for k in plain], schema, of_plain, rows)
        unseen |= more
    for k, values in encoded.items():
        codes[:, k] = values
    return codes, unseen


def _times_of(table: Table, position: int, column: Column, rows: slice, times: Times) -> Array:
    if position not in times:
        assert column.part is not None
        times[position] = table.times(position, column.part.type, rows)
    return times[position]


def _encoded(times: Array, column: Column) -> tuple[Array, Array]:
    """Return the codes of a part of times (n,), and the rows of an unseen category."""
    assert column.part is not None
    present = ~np.isnat(times)
    values = column.part.integers(times[present])
    if column.part.name == "weekday":
        codes = np.zeros(len(times), np.uint16)
        codes[present] = np.array([column.lookup.get(day, 0) for day in WEEKDAYS], np.uint16)[values]
        return codes, NO_ROWS
    return encode_present(values, present, column)
