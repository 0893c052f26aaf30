"""Rows of a query: the database adds up statistics that are sums over groups, and other rows are read part by part."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Self, TypeVar, cast

import numpy as np

from posteriori.reading import LabelColumn
from posteriori.reading.database import OutOfRangeError, Query, quoted
from posteriori.sources.table_source import ComposedSource, TableSource
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
from posteriori.statistics.counts import all_pairs, slot_offsets
from posteriori.statistics.pairs import PairMoments
from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema
from posteriori.tables.polars import PolarsTable
from posteriori.tables.progress import start_progress

T = TypeVar("T")

_MOST_SETS = 200  # sets of columns that one query groups by
_MOST_MEMBERS = 60  # columns in these sets: GROUPING returns one bit per column in a 64-bit integer


@dataclass(frozen=True)
class DatabaseSource(ComposedSource):
    """The rows of a query. The database adds up statistics where it can; otherwise the rows are streamed."""

    def reduce(self, accumulate: Callable[[Batch], T]) -> T:
        """Fold: add up accumulate(batch) over all batches, in the database where `accumulate` names its blocks."""
        blocks = getattr(accumulate, "blocks", None)
        if blocks is not None and self._has_plain_labels:
            sums = QuerySums(
                cast(Query, self.table),
                self.schema,
                self.positions,
                cast(LabelColumn, self.labels),
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
        return TableSource(self.reader, self.labelling, self.n_jobs, self.progress, self.width)

    @property
    def _has_plain_labels(self) -> bool:
        """Whether every row has a label in a column of the query, and the weight 1."""
        rows = self.labelling
        labels = rows.column_of(self.table)
        is_plain = labels is not None and labels.code is None and rows.classes is not None
        return is_plain and rows.weight is None and rows.folds is None and rows.label_model is None


@dataclass(frozen=True)
class QuerySums:
    """Sufficient statistics per class of the rows of a query, added up by the database."""

    query: Query
    schema: Schema
    positions: Sequence[int]
    labels: LabelColumn
    classes: Column

    def of(self, blocks: Sequence[Any]) -> JointStatistics | None:
        """Return the statistics that blocks need; None where the rows have to be streamed.

        That is so if no query gives the statistics of a block, if a density has to check the support of every cell, if
        a label is missing or unseen, or if a cell is infinite: streaming then names its row.
        """
        if not all(block.density.has_full_support for block in blocks):
            return None
        queries = [self._query_of(block) for block in blocks]
        if any(query is None for query in queries):
            return None
        totals = self._weights_and_ranges()
        if totals is None:
            return None
        weight, ranges = totals
        try:
            statistics = tuple(query() for query in queries if query is not None)
        except OutOfRangeError:
            return None
        if not all(sums.finite().all() for sums in statistics):
            return None
        return JointStatistics(weight, statistics, 0.0, ranges)

    def _query_of(self, block: Any) -> Callable[[], Any] | None:
        """Return a function that queries the statistics of a block; None where no query gives them."""
        sufficient_statistics, columns = block.density.sufficient_statistics, block.columns
        if any(self.schema.columns[j].part is not None for j in columns):
            return None
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

    # Queries ----------------------------------------------------------------------------------------------------

    def _weights_and_ranges(self) -> tuple[Array, ColumnRanges] | None:
        """Return the number of rows per class and the ranges of the columns; None if a label is missing or unseen.

        Raise ValueError if the number of rows has changed since they were counted.
        """
        continuous = self.schema.of_kind("continuous")
        numbers = [(j, self._number(j)) for j in continuous]
        spans = [f"min({x}) AS low{j}, max({x}) AS high{j}, bool_and({x} = floor({x})) AS whole{j}" for j, x in numbers]
        rows = "CAST(count(*) AS DOUBLE) AS n"
        groups = self.query.ask([f"{quoted(self._label)} AS label", rows, *spans], "GROUP BY ALL")
        if groups["n"].sum() != self.query.n_rows:
            raise self.query.changed()
        component = self._components(groups, "label")
        if (component < 0).any():
            return None
        ranges = ColumnRanges.empty(len(self.schema.columns))
        for j in continuous:
            present = groups.filter(pl.col(f"low{j}").is_not_null())
            if present.height:
                ranges.lowest[j], ranges.highest[j] = present[f"low{j}"].min(), present[f"high{j}"].max()
                ranges.whole[j] = present[f"whole{j}"].all()
        return np.bincount(component, groups["n"].to_numpy(), len(self.classes.categories)), ranges

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
        no_moments = self._moments([])
        empty = np.zeros((n_components, 0, 0))
        together = PairMoments(empty, no_moments.shift, empty, empty, empty)
        counts = self._joint_counts(columns, CountTogether())
        return Pairs((False,) * len(columns), counts, no_moments, (), together)

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
        """Return the moments of some expressions, NULL where missing, about a shift per class and column.

        Two queries: any value of a class serves as its shift, and is then subtracted before squaring. Without a shift,
        an offset of 1e8 would cost all digits of the variance.
        """
        shape = (len(self.classes.categories), len(numbers))
        weight, shift, offset, scatter = (np.zeros(shape) for _ in range(4))
        if not numbers:
            return Moments(weight, shift, offset, scatter)
        label = quoted(self._label)
        positions = range(len(numbers))
        firsts = [f"any_value({number}) AS s{k}" for k, number in enumerate(numbers)]
        groups = self.query.ask([f"{label} AS label", *firsts], "GROUP BY ALL")
        component = self._components(groups, "label")
        for k in positions:
            shift[component, k] = groups[f"s{k}"].fill_null(0.0).to_numpy()
        if not np.isfinite(shift).all():
            return Moments(weight, shift, np.full(shape, np.nan), scatter)  # `finite` is then False
        cases = [self._shifted(number, shift[:, k]) for k, number in enumerate(numbers)]
        sums = [
            f"CAST(count({case}) AS DOUBLE) AS n{k}, coalesce(avg({case}), 0) AS m{k}, "
            f"coalesce(var_pop({case}), 0) * count({case}) AS v{k}"
            for k, case in enumerate(cases)
        ]
        groups = self.query.ask([f"{label} AS label", *sums], "GROUP BY ALL")
        component = self._components(groups, "label")
        for name, array in (("n", weight), ("m", offset), ("v", scatter)):
            for k in positions:
                array[component, k] = groups[f"{name}{k}"].to_numpy()
        return Moments(weight, shift, offset, scatter)

    def _grouped(
        self, columns: Sequence[int], scopes: Sequence[tuple[int, ...]]
    ) -> Iterator[tuple[tuple[int, ...], Array, list[Array], Array]]:
        """Yield per scope the class, the codes and the number of rows of each combination of categories that occurs."""
        for sets_of_query in _in_queries(scopes):
            members = sorted({position for scope in sets_of_query for position in scope})
            listed = ", ".join(f"c{position}" for position in members)
            cells = ", ".join(f"{self._cell(columns[position])} AS c{position}" for position in members)
            sets = ", ".join(
                "(" + ", ".join(["label", *(f"c{position}" for position in scope)]) + ")" for scope in sets_of_query
            )
            groups = self.query.ask(
                ["label", listed, f"grouping({listed}) AS absent", "CAST(count(*) AS DOUBLE) AS n"],
                f"GROUP BY GROUPING SETS ({sets})",
                among=[f"{quoted(self._label)} AS label", cells],
            )
            # GROUPING sets the bit of each column that a row is not grouped by, the first column in the highest bit.
            of_scope = {
                sum(1 << (len(members) - 1 - k) for k, member in enumerate(members) if member not in scope): scope
                for scope in sets_of_query
            }
            for absent, rows in groups.partition_by("absent", as_dict=True).items():
                scope = of_scope[int(absent[0])]
                codes = [
                    self._codes(rows[f"c{position}"], self.schema.columns[columns[position]]) for position in scope
                ]
                yield scope, self._components(rows, "label"), codes, rows["n"].to_numpy()

    # Expressions and cells --------------------------------------------------------------------------------------

    @property
    def _label(self) -> str:
        return self.query.names[self.labels.position]

    def _number(self, j: int) -> str:
        """Return column j as an expression, NULL where it is missing."""
        name = self.query.names[self.positions[j]]
        number = f"CAST({quoted(name)} AS DOUBLE)"
        return f"CASE WHEN isnan({number}) THEN NULL ELSE {number} END" if self.query.types[name].is_float() else number

    def _cell(self, j: int) -> str:
        """Return the expression that column j is grouped by: its category, or the index of its bin."""
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

    def _components(self, groups: pl.DataFrame, name: str) -> Array:
        """Return the class index of each row of a result, −1 for a missing or unseen label."""
        return self._codes(groups[name], self.classes) - 1

    def _shifted(self, number: str, shift: Array) -> str:
        """Return an expression minus the shift of its class."""
        label = quoted(self._label)
        cases = "".join(
            f" WHEN {label} = {_label_literal(category)} THEN {_literal(value)}"
            for category, value in zip(self.classes.categories, shift.tolist(), strict=True)
        )
        return f"({number}) - (CASE{cases} END)"


def _in_queries(scopes: Sequence[tuple[int, ...]]) -> Iterator[list[tuple[int, ...]]]:
    """Yield the scopes of each query: as many as one query can group by."""
    together: list[tuple[int, ...]] = []
    members: set[int] = set()
    for scope in scopes:
        if together and (len(together) == _MOST_SETS or len(members | set(scope)) > _MOST_MEMBERS):
            yield together
            together, members = [], set()
        together.append(scope)
        members |= set(scope)
    yield together


def _literal(number: float) -> str:
    """Return a number as an SQL expression, exact to the last digit: DuckDB reads a plain literal as a DECIMAL."""
    return f"CAST('{number!r}' AS DOUBLE)"


def _label_literal(label: Any) -> str:
    if isinstance(label, bool):
        return str(label).upper()
    if isinstance(label, str):
        return "'" + label.replace("'", "''") + "'"
    return f"CAST('{label!r}' AS DOUBLE)" if isinstance(label, float) else repr(label)
