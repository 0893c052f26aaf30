"""A SELECT in steps, and the cells of a row as densities read them."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np
from sqlglot import exp

from posteriori.sql.dates import code_of, is_no_moment, moment, number_of
from posteriori.sql.dialects import (
    LARGEST,
    Dialect,
    Node,
    any_of,
    cases,
    column,
    literal,
    minus,
    missing,
    whole,
)
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema
from posteriori.tables.times import DatePart

Factor = tuple[
    int, int, str
]  # the component, the index of the column, and the column of the SELECT with its log density

_STEP = "posteriori_"  # and a number: a name that no table is likely to have


@dataclass(frozen=True)
class Relation:
    """Common table expressions that read one step, and the last of which is joined to it."""

    # The column of the step to join on. The last expression has one row for each of its values, in `key_of_relation`.
    key: str
    # the expressions as text, ``name AS (SELECT …)``; they read the step by the name that `SelectSteps.source` returns
    tables: tuple[str, ...]
    name: str  # the name of the last one
    columns: tuple[str, ...]  # what it adds

    @property
    def key_of_relation(self) -> str:
        """The column of the relation that holds the key."""
        return f"{self.name}_key"


@dataclass
class SelectSteps:
    """Named columns, each an expression of others, in as few common table expressions as their dependences allow.

    A column that is used twice is evaluated once, and no expression is deep, however long a sum is.
    """

    dialect: Dialect
    table: str
    _columns: dict[str, str] = field(default_factory=dict)
    _depth: dict[str, int] = field(default_factory=dict)
    _uses: dict[str, frozenset[str]] = field(default_factory=dict)
    _relations: dict[int, list[Relation]] = field(default_factory=dict)  # by the depth of their columns
    prefix: str = ""

    def scope(self, prefix: str) -> SelectSteps:
        """Return the same steps, in which the names of columns that are defined from now on begin with a prefix.

        Columns that are read from the table keep their names, so that every scope shares them.
        """
        return replace(self, prefix=prefix)

    def read(self, name: str, node: Node) -> str:
        """Add a column that is an expression of the columns of the table; return its name."""
        return self._keep(name, node, frozenset())

    def define(self, name: str, node: Node) -> str:
        """Add a column that is an expression of columns added before; return its name."""
        return self.define_shared(self.prefix + name, node)

    def define_shared(self, name: str, node: Node) -> str:
        """Add a column that is an expression of columns that were read, for every scope; return its name."""
        return self._keep(name, node, frozenset(reference.name for reference in node.find_all(exp.Column)))

    def known(self, name: str) -> str | None:
        """Return the name in the SELECT of a column that was defined or read by this name; None if there is none."""
        return next((full for full in (self.prefix + name, name) if full in self._columns), None)

    def value(self, name: str, node: Node) -> Node:
        """Add an expression as a column, and return the column, which is evaluated once however often it is used."""
        return column(self.define(name, node))

    def source(self, names: Sequence[str]) -> str:
        """Return the step at which all of these columns are known."""
        return f"{_STEP}{max(self._depth[name] for name in names)}"

    def join(self, relation: Relation, uses: Sequence[str]) -> None:
        """Add the columns of a relation that reads some columns, the key among them, from `source` of them."""
        depth = 1 + max(self._depth[name] for name in uses)
        self._relations.setdefault(depth, []).append(relation)
        for name in relation.columns:
            self._depth[name], self._uses[name], self._columns[name] = depth, frozenset(uses), name

    def _keep(self, name: str, node: Node, uses: frozenset[str]) -> str:
        assert name not in self._columns, name
        self._depth[name] = 1 + max((self._depth[used] for used in uses), default=-1)
        self._uses[name] = uses
        self._columns[name] = self.dialect.written(node)
        return name

    def select(self, results: dict[str, Node]) -> str:
        """Return the whole SELECT, whose columns are expressions of the added columns."""
        used: set[str] = set()
        for node in results.values():
            used.update(reference.name for reference in node.find_all(exp.Column))
        last = max((self._depth[name] for name in used), default=0)
        live = {last: used}  # the columns that each step hands on
        for depth in range(last, 0, -1):
            new = {name for name in live[depth] if self._depth[name] == depth}
            live[depth - 1] = (live[depth] - new).union(*(self._uses[name] for name in new))
        steps: list[str] = []
        for depth in range(last + 1):
            names = [name for name in self._columns if name in live[depth]]
            written = {name: self._columns[name] for name in names if self._depth[name] == depth}
            lines = [f"{written[name]} AS {name}" if written.get(name, name) != name else name for name in names]
            source = self.table if not depth else f"{_STEP}{depth - 1}"
            for relation in self._relations.get(depth, []):
                if not live[depth].isdisjoint(relation.columns):
                    steps += relation.tables
                    source += f"\nINNER JOIN {relation.name} ON {relation.key_of_relation} = {relation.key}"
            body = _selected(lines or ["1 AS nothing"], source)
            steps.append(f"{_STEP}{depth} AS {self.dialect.materialised}(\n{body}\n)")
        lines = [f"{self.dialect.written(node)} AS {self.dialect.identifier(name)}" for name, node in results.items()]
        return f"WITH {', '.join(steps)}\n{_selected(lines, f'{_STEP}{last}')}"


def _selected(lines: list[str], source: str) -> str:
    """Return SELECT … FROM …, with short columns side by side and each long one on a line of its own."""
    rows: list[str] = []
    for line in lines:
        if rows and len(rows[-1]) + len(line) < 110 and "\n" not in line:
            rows[-1] += f", {line}"
        else:
            rows.append(line)
    return "SELECT\n  " + ",\n  ".join(rows) + f"\nFROM {source}"


_CENTRE_DIGITS = 14  # decimal digits, which every database reads as the same number


class CellReader:
    """Reads the columns of a schema, each on first use.

    A missing cell, a NaN and a category unseen in training are NULL.
    """

    def __init__(self, steps: SelectSteps, schema: Schema) -> None:
        self._steps = steps
        self._schema = schema
        self._groups: Mapping[int, Array] = {}
        self._bad_cells: list[Node] = []  # conditions on cells of the table

    def with_groups(self, groups: Mapping[int, Array]) -> CellReader:
        """Return the same cells, with codes of groups in place of those of categories in some columns.

        Parameters
        ----------
        groups : mapping of int to ndarray (K + 1,)
            Per column, the code of the group of each code of a category.
        """
        result = copy.copy(self)
        result._groups = groups
        return result

    def of_member(self, steps: SelectSteps, schema: Schema) -> CellReader:
        """Return the cells as another model of the same columns reads them; rows that either refuses are refused."""
        result = CellReader(steps, schema)
        result._bad_cells = self._bad_cells
        return result

    @property
    def _dialect(self) -> Dialect:
        return self._steps.dialect

    def column(self, j: int) -> Column:
        """Return column j of the schema."""
        return self._schema.columns[j]

    def number(self, j: int) -> str:
        """Return the column that holds the numbers of column j."""
        name = f"x{j}"
        if self._steps.known(name) is not None:
            return name
        if self.column(j).valueless:
            self._steps.read(name, exp.cast(exp.Null(), "double"))  # whatever its type and its cells are now
        elif (part := self.column(j).part) is not None:
            self._steps.define_shared(name, number_of(part, self._moment(part), self._dialect))
        else:
            self._read_number(name, self.column(j).name)
        return name

    def centred(self, j: int, middle: float) -> tuple[str, float]:
        """Return the column that holds the numbers of column j about a centre near `middle`, and that centre.

        The database subtracts the centre from large numbers, once and exactly, so that only small numbers are
        multiplied. A literal that is inexact in its last place then does no harm.
        """
        x, centre = self.number(j), float(f"{middle:.{_CENTRE_DIGITS}g}")
        if centre == 0.0:
            return x, centre
        name = f"y{j}"
        assert self._centres.setdefault(name, centre) == centre
        known = self._steps.known(name)
        return known or self._steps.define(name, minus(column(x), literal(centre))), centre

    @cached_property
    def _centres(self) -> dict[str, float]:
        return {}

    def exactly(self, value: float) -> Node:
        """Return a number exact to the last bit, to compare cells with."""
        return self._dialect.exactly(value)

    def code(self, j: int) -> str:
        """Return the column that holds the codes, from 1 on, of the categories, groups or bins of column j."""
        if j in self._groups:
            return self._code_of_group(j)
        return self._code_of_category(j)

    def _code_of_group(self, j: int) -> str:
        name, code = f"g{j}", self._code_of_category(j)
        groups = self._groups[j][1:]
        last = np.flatnonzero(np.append(groups[1:] != groups[:-1], True))  # of the neighbours of the same group
        runs = [
            (exp.LTE(this=column(code), expression=whole(k + 1)), whole(group))
            for k, group in zip(last.tolist(), groups[last].tolist(), strict=True)
        ]
        return self._steps.known(name) or self._steps.define(name, cases(*runs))

    def _code_of_category(self, j: int) -> str:
        name = f"c{j}"
        defined = self._steps.known(name)
        if defined is not None:
            return defined
        known = self.column(j)
        if known.cuts is not None:
            x = self.number(j)
            bins = [
                (exp.LT(this=column(x), expression=self._dialect.exactly(cut)), whole(code))
                for code, cut in enumerate(known.cuts, start=1)
            ]
            present = exp.Not(this=missing(x))
            return self._steps.define(name, cases(*bins, (present, whole(known.cardinality))))
        if known.part is not None and not known.valueless:
            return self._steps.define_shared(name, code_of(known, self._moment(known.part), self._dialect))
        if len(known.kinds) > 1:
            raise ValueError(
                f"column {known.name!r} holds {' and '.join(sorted(known.kinds))}, and a column of a database is of "
                "one type; convert its cells to one kind and train again"
            )
        cell = self._dialect.category_cell(known.name, known.categories)
        ifs = [
            exp.If(this=written, true=whole(code))
            for code, category in enumerate(known.categories, start=1)
            for written in self._dialect.literals(category)
        ]
        return self._steps.read(name, exp.Case(this=cell, ifs=ifs) if ifs else exp.cast(exp.Null(), "int"))

    def held(self, j: int) -> str:
        """Return a column that is NULL where a cell of categories is missing, and not where it is unseen."""
        known = self.column(j)
        if known.part is not None:
            return self._moment(known.part)
        return self._steps.read(f"held{j}", cases((self._dialect.is_held(known.name, known.kinds), whole(1))))

    def refused(self) -> Node | None:
        """Return the condition that `predict` refuses a row; None where it refuses no row."""
        if not self._bad_cells:
            return None
        flag = self._steps.read("strange", cases((any_of(self._bad_cells), whole(1)), default=whole(0)))
        return exp.EQ(this=column(flag), expression=whole(1))

    def _moment(self, part: DatePart) -> str:
        """Return the column that holds the cells of a column of dates or of times of day."""
        place = next(j for j, one in enumerate(self._schema.columns) if one.part is not None and one.part.of == part.of)
        name = f"t{place}"
        if self._steps.known(name) is None:
            self._steps.read(name, moment(part, self._dialect))
            if self._dialect.reads_text:
                self._bad_cells.append(exp.Paren(this=is_no_moment(part, self._dialect)))
        return name

    def _read_number(self, name: str, of: str) -> None:
        def cell() -> Node:
            return self._dialect.real_cell(of)

        # NaN is larger than every number in some databases, and compares as NULL or false in the others.
        between = exp.Between(this=cell(), low=literal(-LARGEST), high=literal(LARGEST))
        self._steps.read(name, cases((between, cell())))
        infinities = [self._dialect.infinity(sign) for sign in ("", "-")]
        bad: list[Node] = [exp.EQ(this=cell(), expression=node) for node in infinities if node is not None]
        if self._dialect.reads_text:
            bad.append(exp.Paren(this=self._dialect.is_no_number(of)))
        self._bad_cells += bad
