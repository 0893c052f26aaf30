"""Rows of a query: what is a sum over groups the database adds up, and the rest is read part by part."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast

import numpy as np
import polars as pl

from posteriori.sources.composed_source import ComposedSource
from posteriori.sources.table_source import TableSource
from posteriori.statistics import (
    ColumnRanges,
    Counts,
    CountTogether,
    JointCounts,
    JointStatistics,
    Moments,
    Pairs,
    TailMoments,
)
from posteriori.statistics.counts import slot_offsets
from posteriori.statistics.joint_counts import all_pairs
from posteriori.statistics.pair_moments import PairMoments
from posteriori.tables import Batch, Column, Labels, Schema
from posteriori.tables.database import Query, quoted
from posteriori.tables.frames import PolarsTable
from posteriori.tables.progress import start_progress
from posteriori.typing import Array

T = TypeVar("T")

_MOST_SETS = 200  # of columns, by which one query groups
_MOST_MEMBERS = 60  # in all of them, so that a bit for each makes a number


@dataclass(frozen=True)
class DatabaseSource(ComposedSource):
    """The rows of a query. The database adds up statistics where it can; otherwise the rows are streamed."""

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Fold: add up accumulate(batch) over all batches, in the database where `accumulate` names its blocks."""
        blocks = getattr(accumulate, "blocks", None)
        if blocks is not None and self._has_plain_labels:
            sums = Sums(
                cast(Query, self.table),
                self.schema,
                self.positions,
                cast(Labels, self.labels),
                cast(Column, self.classes),
            )
            statistics = sums.of(blocks)
            if statistics is not None:
                (self.progress or start_progress("statistics", self.table.n_rows))(self.table.n_rows)
                return cast(T, statistics)
        return self._streamed.reduce(accumulate)

    def map(self, score: Callable[[Batch], Array]) -> Array:
        """Return score(batch) of all batches in the order of the rows; warn of categories unseen in training."""
        return self._streamed.map(score)

    def stream(self, work: Callable[[Batch], T], what: str = "scores") -> Generator[T, None, None]:
        """Yield work(batch) of all batches, in the order of the rows; `what` names the pass for progress reports."""
        return self._streamed.stream(work, what)

    def cached(self) -> Self:
        """Return the same rows, with their cells kept in memory where they are few, for passes that stream them."""
        cached = self._streamed.cached()
        return replace(self, reader=cached.reader, labelling=cached.labelling)

    @property
    def _streamed(self) -> TableSource:
        return TableSource(self.reader, self.labelling, self.n_jobs, self.progress)

    @property
    def _has_plain_labels(self) -> bool:
        """Whether every row has a label in a column of the query, and the weight 1."""
        rows = self.labelling
        labels = rows.column_of(self.table)
        is_plain = labels is not None and labels.code is None and rows.classes is not None
        return is_plain and rows.weight is None and rows.folds is None and rows.label_model is None


@dataclass(frozen=True)
class Sums:
    """Statistics of the rows of a query, by class, as a database adds them up."""

    query: Query
    schema: Schema
    positions: Sequence[int]
    labels: Labels
    classes: Column

    def of(self, blocks: Sequence[Any]) -> JointStatistics | None:
        """Return the statistics that blocks need.

        None where the database cannot give them: it does not know the statistics, a density has to see every cell, a
        label is missing, or a cell is infinite, of which streaming says where.
        """
        if not all(block.density.has_full_support for block in blocks):
            return None
        wanted = [self._needed(block) for block in blocks]
        if any(one is None for one in wanted):
            return None
        counted = self._weights_and_ranges()
        if counted is None:
            return None
        weight, ranges = counted
        parts = [one() for one in wanted if one is not None]
        if not all(part.finite().all() for part in parts):
            return None
        return JointStatistics(weight, tuple(parts), 0.0, ranges)

    def _needed(self, block: Any) -> Callable[[], Any] | None:
        """Return what asks for the statistics of a block; None where the database cannot give them."""
        sufficient_statistics, columns = block.density.sufficient_statistics, block.columns
        if sufficient_statistics is Counts:
            return lambda: self._counts(columns)
        if sufficient_statistics is Moments:
            return lambda: self._moments([self._number(j) for j in columns])
        if sufficient_statistics is TailMoments:
            return lambda: self._tail_moments(columns)
        if isinstance(sufficient_statistics, CountTogether):
            return lambda: self._joint_counts(columns, sufficient_statistics)
        if sufficient_statistics is Pairs and all(j in self.schema.coded for j in columns):
            return lambda: self._pairs(columns)
        return None

    # What is asked ----------------------------------------------------------------------------------------------

    def _weights_and_ranges(self) -> tuple[Array, ColumnRanges] | None:
        """Return the number of rows of each class, and the columns' ranges; None if a label is missing or is no class.

        Raises
        ------
        ValueError
            There are not as many rows as there were.
        """
        continuous = self.schema.of_kind("continuous")
        numbers = [(j, self._number(j)) for j in continuous]
        spans = [f"min({x}) AS low{j}, max({x}) AS high{j}, bool_and({x} = floor({x})) AS whole{j}" for j, x in numbers]
        rows = "CAST(count(*) AS DOUBLE) AS n"
        found = self.query.ask([f"{quoted(self._label)} AS label", rows, *spans], "GROUP BY ALL")
        if found["n"].sum() != self.query.n_rows:
            raise self.query.changed()
        component = self._components(found, "label")
        if (component < 0).any():
            return None
        ranges = ColumnRanges.empty(len(self.schema.columns))
        for j in continuous:
            present = found.filter(pl.col(f"low{j}").is_not_null())
            if present.height:
                ranges.lowest[j], ranges.highest[j] = present[f"low{j}"].min(), present[f"high{j}"].max()
                ranges.whole[j] = present[f"whole{j}"].all()
        return np.bincount(component, found["n"].to_numpy(), len(self.classes.categories)), ranges

    def _counts(self, columns: Sequence[int]) -> Counts:
        cardinalities = self.schema.cardinalities(columns)
        offsets = slot_offsets(cardinalities)
        table = np.zeros((len(self.classes.categories), offsets[-1]))
        for (position,), component, (codes,), count in self._grouped(columns, [(k,) for k in range(len(columns))]):
            np.add.at(table, (component, offsets[position] + codes), count)
        return Counts(cardinalities, table)

    def _joint_counts(self, columns: Sequence[int], sufficient_statistics: CountTogether) -> JointCounts:
        cardinalities = self.schema.cardinalities(columns)
        scopes = all_pairs(len(columns)) if sufficient_statistics.scopes is None else sufficient_statistics.scopes
        counts = JointCounts.empty(cardinalities, scopes, len(self.classes.categories))
        for scope, component, codes, count in self._grouped(columns, scopes):
            np.add.at(counts.table(scope), (component, *codes), count)
        return counts

    def _pairs(self, columns: Sequence[int]) -> Pairs:
        n_components = len(self.classes.categories)
        nothing = self._moments([])
        empty = np.zeros((n_components, 0, 0))
        together = PairMoments(empty, nothing.shift, empty, empty, empty)
        counts = self._joint_counts(columns, CountTogether())
        return Pairs((False,) * len(columns), counts, nothing, (), together)

    def _tail_moments(self, columns: Sequence[int]) -> TailMoments:
        below, above = [], []
        for j in columns:
            number, cuts = self._number(j), self.schema.columns[j].cuts or ()
            if not cuts:
                below.append(number)
                above.append("CAST(NULL AS DOUBLE)")
            else:
                first, last = _literal(cuts[0]), _literal(cuts[-1])
                below.append(f"CASE WHEN {number} < {first} THEN {first} - {number} END")
                above.append(f"CASE WHEN {number} >= {last} THEN {number} - {last} END")
        return TailMoments(tuple(self.schema.columns[j].cuts or () for j in columns), self._moments([*below, *above]))

    def _moments(self, numbers: Sequence[str]) -> Moments:
        """Return the moments of some expressions, NULL where missing, about a value of each class and column."""
        shape = (len(self.classes.categories), len(numbers))
        weight, shift, offset, scatter = (np.zeros(shape) for _ in range(4))
        if not numbers:
            return Moments(weight, shift, offset, scatter)
        label = quoted(self._label)
        positions = range(len(numbers))
        firsts = [f"any_value({number}) AS s{k}" for k, number in enumerate(numbers)]
        found = self.query.ask([f"{label} AS label", *firsts], "GROUP BY ALL")
        component = self._components(found, "label")
        for k in positions:
            shift[component, k] = found[f"s{k}"].fill_null(0.0).to_numpy()
        if not np.isfinite(shift).all():
            return Moments(weight, shift, np.full(shape, np.nan), scatter)  # finite() tells
        cases = [self._shifted(number, shift[:, k]) for k, number in enumerate(numbers)]
        sums = [
            f"CAST(count({one}) AS DOUBLE) AS n{k}, coalesce(avg({one}), 0) AS m{k}, "
            f"coalesce(var_pop({one}), 0) * count({one}) AS v{k}"
            for k, one in enumerate(cases)
        ]
        found = self.query.ask([f"{label} AS label", *sums], "GROUP BY ALL")
        component = self._components(found, "label")
        for name, array in (("n", weight), ("m", offset), ("v", scatter)):
            for k in positions:
                array[component, k] = found[f"{name}{k}"].to_numpy()
        return Moments(weight, shift, offset, scatter)

    def _grouped(
        self, columns: Sequence[int], scopes: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[tuple[int, ...], Array, list[Array], Array]]:
        """Yield, of each scope, the class, the codes and the number of the rows of each combination that occurs."""
        for some in _in_queries(scopes):
            members = sorted({position for scope in some for position in scope})
            listed = ", ".join(f"c{position}" for position in members)
            cells = ", ".join(f"{self._cell(columns[position])} AS c{position}" for position in members)
            sets = ", ".join(
                "(" + ", ".join(["label", *(f"c{position}" for position in scope)]) + ")" for scope in some
            )
            found = self.query.ask(
                ["label", listed, f"grouping({listed}) AS absent", "CAST(count(*) AS DOUBLE) AS n"],
                f"GROUP BY GROUPING SETS ({sets})",
                among=[f"{quoted(self._label)} AS label", cells],
            )
            of_scope = {
                sum(1 << (len(members) - 1 - k) for k, one in enumerate(members) if one not in s): s for s in some
            }
            for absent, rows in found.partition_by("absent", as_dict=True).items():
                scope = of_scope[int(absent[0])]
                codes = [
                    self._codes(rows[f"c{position}"], self.schema.columns[columns[position]]) for position in scope
                ]
                yield scope, self._components(rows, "label"), codes, rows["n"].to_numpy()

    # How it is said, and understood -----------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return self.query.names[self.labels.position]

    def _number(self, j: int) -> str:
        """Return column j as an expression, NULL where it is missing."""
        name = self.query.names[self.positions[j]]
        number = f"CAST({quoted(name)} AS DOUBLE)"
        return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END" if self.query.types[name].is_float() else number

    def _cell(self, j: int) -> str:
        """Return what column j is grouped by: its category, or the number of its bin."""
        column = self.schema.columns[j]
        if column.cuts is None:
            return quoted(self.query.names[self.positions[j]])
        number = self._number(j)
        bins = "".join(f" WHEN {number} < {_literal(cut)} THEN {k}" for k, cut in enumerate(column.cuts))
        return f"CASE WHEN {number} IS NULL THEN NULL{bins} ELSE {len(column.cuts)} END"

    def _codes(self, cells: pl.Series, column: Column) -> Array:
        if column.cuts is not None:
            return cells.cast(pl.Int64).fill_null(-1).to_numpy() + 1
        codes, _ = PolarsTable(cells.to_frame()).codes([0], Schema((column,)), [column], slice(0, len(cells)))
        return codes[:, 0].astype(np.int64)

    def _components(self, found: pl.DataFrame, name: str) -> Array:
        """Return the class number of each row of an answer, −1 where there is none."""
        return self._codes(found[name], self.classes) - 1

    def _shifted(self, number: str, shift: Array) -> str:
        """Return an expression less the shift of its class."""
        label = quoted(self._label)
        cases = "".join(
            f" WHEN {label} = {_label_literal(category)} THEN {_literal(one)}"
            for category, one in zip(self.classes.categories, shift.tolist(), strict=True)
        )
        return f"({number}) - (CASE{cases} END)"


def _in_queries(scopes: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield scopes as many together as one query takes."""
    some: list[tuple[int, ...]] = []
    members: set[int] = set()
    for scope in scopes:
        if some and (len(some) == _MOST_SETS or len(members | set(scope)) > _MOST_MEMBERS):
            yield some
            some, members = [], set()
        some.append(scope)
        members |= set(scope)
    yield some


def _literal(number: float) -> str:
    """Return a number as SQL has it, to the last digit: without an exponent DuckDB would take it for a decimal."""
    return f"CAST('{number!r}' AS DOUBLE)"


def _label_literal(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).upper()
    if isinstance(label, str):
        return "'" + label.replace("'", "''") + "'"
    return f"CAST('{label!r}' AS DOUBLE)" if isinstance(label, float) else repr(label)
