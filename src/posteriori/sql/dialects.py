"""Expressions for every dialect: exact numbers, sums of small depth, cells as literals."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlglot
from sqlglot import exp
from sqlglot.dialects.dialect import Dialect as Grammar

from posteriori.reading.file_frames import MISSING

Node = Any  # a sqlglot expression; an expression becomes the child of another, so none may be used twice

IMPOSSIBLE = -1e300  # stands for log 0: not every database has infinite literals, and ∞ − ∞ is NaN
POSSIBLE = -1e299  # a score above it is a log density
LARGEST = 1.7976931348623157e308
SMALLEST_EXPONENT = -700.0  # of exp: below it some databases raise an error, and its exponential added to 1 is 1

# The first five are not SQL. Oracle reads 1e300 as a NUMBER, whose range is smaller.
_UNFIT = ("", "dax", "prql", "solr", "tableau", "oracle")
_NO_INFINITY = ("doris", "exasol", "fabric", "mysql", "singlestore", "starrocks", "teradata", "tsql")
_NO_BOOLEANS = ("fabric", "sqlite", "tsql")
_MATERIALISED = ("materialize", "postgres", "risingwave", "sqlite")
_PLAIN_VALUES = ("duckdb", "sqlite")  # VALUES is a query, whose columns the common table expression names
_NAMED_VALUES = ("materialize", "postgres", "redshift", "risingwave", "snowflake", "trino", "tsql")
_READS_TEXT = ("duckdb", "sqlite")
_EXACT_INTEGER = 1 << 53
_MOST_ARGUMENTS = 60  # arguments of one function
_MOST_VALUES = 100  # rows of a table of DuckDB; longer ones stand as strings
_MOST_ROWS = (
    10_000  # of VALUES of SQLite, which has 16 bits for their number, and no index for a join if that overflows
)
_WIDTH = 110  # characters of a line of values
_EXACT_DIGITS = 15  # decimal digits that SQLite reads exactly


@dataclass(frozen=True)
class Dialect:
    """A dialect of SQL: differences between databases that sqlglot does not cover.

    Raises ValueError if sqlglot does not write this dialect, or not exactly enough.
    """

    name: str  # of a dialect that sqlglot writes

    def __post_init__(self) -> None:
        if self.name not in self.known():
            raise ValueError(f"dialect is {self.name!r}; choose one of {', '.join(self.known())}")

    @staticmethod
    def known() -> list[str]:
        """Return the names of all dialects."""
        return sorted(name for name in Grammar.classes if name not in _UNFIT)

    @property
    def materialised(self) -> str:
        """The keyword that keeps a planner from inlining a step, which it would then evaluate once per use."""
        return "MATERIALIZED " if self.name in _MATERIALISED else ""

    @property
    def kept(self) -> str:
        """The keyword that keeps a planner from inlining a relation, whose size does not grow with equal rows."""
        return "MATERIALIZED " if self.name == "duckdb" else self.materialised

    @property
    def reads_text(self) -> bool:
        """Whether numbers and true/false may stand in a table as text, as an import of CSV leaves them."""
        return self.name in _READS_TEXT

    def real_cell(self, name: str) -> Node:
        """Return a cell of a table as a number of double precision; text that is no number is NULL if it may be."""
        if self.name == "duckdb":
            return exp.TryCast(this=self.named(name), to=exp.DataType.build("double"))
        return cases((self._is_number(name), real(self.named(name)))) if self.reads_text else real(self.named(name))

    def category_cell(self, name: str, categories: Sequence[str | bool | int | float]) -> Node:
        """Return a cell of a table, to compare with the `literals` of categories of one kind."""
        if not self.reads_text or any(isinstance(one, str) for one in categories):
            return self.named(name)
        if any(isinstance(one, bool) for one in categories):
            return exp.Lower(this=exp.cast(self.named(name), "text"))
        exact = all(abs(float(one)) < _EXACT_INTEGER for one in categories)  # in double precision
        return self.real_cell(name) if exact else self.named(name)

    def literals(self, category: str | bool | int | float) -> list[Node]:
        """Return the literals of a category in `category_cell`."""
        if self.reads_text and isinstance(category, bool):
            return [exp.Literal.string(one) for one in (("true", "1") if category else ("false", "0"))]
        return [self.cell(category)]

    def is_held(self, name: str, kinds: Collection[str]) -> Node:
        """Return the condition that a cell of categories of these kinds is not missing."""
        if "numbers" in kinds:  # NaN is larger than every number in some databases
            return exp.Between(this=self.real_cell(name), low=literal(-LARGEST), high=literal(LARGEST))
        held = exp.Not(this=exp.Is(this=self.named(name), expression=exp.Null()))
        return exp.And(this=held, expression=exp.Not(this=self._is_mark(name))) if self.reads_text else held

    def _is_mark(self, name: str) -> Node:
        """Return the condition that a cell is text that `posteriori.scan` reads as missing."""
        return exp.In(this=exp.cast(self.named(name), "text"), expressions=[exp.Literal.string(one) for one in MISSING])

    def is_no_number(self, name: str) -> Node:
        """Return the condition that a cell is text which is no number and not missing, as `posteriori.scan` reads."""
        if self.name == "duckdb":
            unread: Node = exp.And(
                this=exp.Not(this=exp.Is(this=self.named(name), expression=exp.Null())),
                expression=exp.Is(this=self.real_cell(name), expression=exp.Null()),
            )
        else:
            unread = exp.Not(this=exp.Paren(this=self._is_number(name)))
        return exp.And(this=unread, expression=exp.Not(this=self._is_mark(name)))

    def _is_number(self, name: str) -> Node:
        """Return the condition that a cell of SQLite is a number, or text that is one as a whole.

        The cast has a numeric affinity, so that such text is compared as a number; other text is above all numbers.
        """
        return exp.LTE(this=self.named(name), expression=real(exp.Literal.number("9e999")))

    def written(self, node: Node) -> str:
        """Return the expression as text."""
        return str(node.sql(dialect=self.name))

    def named(self, name: str) -> Node:
        """Return the column of a table by its exact name."""
        if self.name == "sqlite":  # reads "name" as a string if no column has this name, but never `name`
            return exp.Column(this=exp.Var(this=f"`{name.replace('`', '``')}`"))
        return exp.Column(this=exp.Identifier(this=name, quoted=True))

    def identifier(self, name: str) -> str:
        """Return a name as a quoted identifier, for a column of the result."""
        return self.written(exp.Identifier(this=name, quoted=True))

    def infinity(self, sign: str) -> Node | None:
        """Return ∞ or −∞; None where the database has no infinite numbers."""
        if self.name in _NO_INFINITY:
            return None
        if self.name == "sqlite":
            return exp.Literal.number(f"{sign}9e999")
        return real(exp.Literal.string(f"{sign}inf" if self.name == "snowflake" else f"{sign}Infinity"))

    def cell(self, value: str | bool | int | float) -> Node:
        """Return a category or a class as a literal."""
        if isinstance(value, str):
            return exp.Literal.string(value)
        if isinstance(value, bool):
            return exp.Literal.number(int(value)) if self.name in _NO_BOOLEANS else exp.Boolean(this=value)
        return whole(int(value)) if isinstance(value, int) or value.is_integer() else self.exactly(value)

    def exactly(self, value: float) -> Node:
        """Return a number exact to the last bit.

        SQLite reads numbers of more than 15 digits only to within one unit in the last place. There the number is
        written as an integer divided by powers of two.
        """
        if self.name != "sqlite" or float(f"{value:.{_EXACT_DIGITS}g}") == value:
            return literal(value)
        numerator, denominator = float(value).as_integer_ratio()
        if abs(numerator) >= 1 << 62 or denominator > 1 << 300:
            return literal(value)
        node = real(whole(numerator))
        while denominator > 1:
            step = min(denominator, 1 << 60)
            node, denominator = exp.Div(this=node, expression=whole(step), typed=True), denominator // step
        return node

    def table_of(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[int | float]]) -> str:
        """Return a common table expression that holds rows of numbers; floats are of double precision."""
        if self.name == "duckdb" and len(rows) > _MOST_VALUES:
            return f"{name} AS {self.kept}(\n{_split_lists(columns, rows)}\n)"
        lines = [f"({', '.join(_plain(cell) for cell in row)})" for row in rows]
        names = ", ".join(columns)
        if self.name in _PLAIN_VALUES:
            parts = [f"VALUES {_in_lines(lines[i : i + _MOST_ROWS])}" for i in range(0, len(lines), _MOST_ROWS)]
            body = parts[0] if len(parts) == 1 else "\nUNION ALL ".join(f"SELECT * FROM (\n{part}\n)" for part in parts)
            return f"{name}({names}) AS {self.kept}(\n{body}\n)"
        body = f"SELECT * FROM (VALUES {_in_lines(lines)}) AS known({names})"
        if self.name not in _NAMED_VALUES:
            body = sqlglot.transpile(body, read="duckdb", write=self.name)[0]
        return f"{name} AS (\n{body}\n)"

    def largest(self, nodes: Sequence[Node]) -> Node:
        """Return the largest of some numbers that are not NULL."""
        parts = list(nodes)
        while len(parts) > 1:
            groups = [parts[i : i + _MOST_ARGUMENTS] for i in range(0, len(parts), _MOST_ARGUMENTS)]
            parts = [self._largest(group) if len(group) > 1 else group[0] for group in groups]
        return parts[0]

    def _largest(self, nodes: list[Node]) -> Node:
        return exp.Anonymous(this="MAX" if self.name == "sqlite" else "GREATEST", expressions=nodes)

    def log_of_sum(self, terms: Sequence[tuple[Node, Node]]) -> Node:
        """Return log Σ exp(term − peak) of pairs (term, peak)."""
        powers = [exp.Exp(this=self.largest([minus(term, peak), literal(SMALLEST_EXPONENT)])) for term, peak in terms]
        return exp.Ln(this=total(powers))


def _plain(cell: int | float) -> str:
    if isinstance(cell, int):
        return str(cell)
    text = repr(IMPOSSIBLE if cell == -math.inf else cell)
    return text if "e" in text else f"{text}e0"


def _in_lines(parts: Sequence[str]) -> str:
    """Return the parts with commas between them, several to a line."""
    lines = [""]
    for part in parts:
        if len(lines[-1]) + len(part) > _WIDTH:
            lines.append("")
        lines[-1] += f"{part}, "
    return "\n".join(lines).removesuffix(", ")


def literal(value: float) -> Node:
    """Return a literal of double precision that reads as exactly this number; −1e300 for −∞."""
    value = IMPOSSIBLE if value == -math.inf else float(value)
    text = repr(abs(value))
    unsigned = exp.Literal.number(text if "e" in text else f"{text}e0")  # without an exponent it would be a DECIMAL
    return exp.Neg(this=unsigned) if value < 0 else unsigned


def whole(value: int) -> Node:
    """Return a literal of an integer."""
    unsigned = exp.Literal.number(str(abs(value)))
    return exp.Neg(this=unsigned) if value < 0 else unsigned


def column(name: str) -> Node:
    """Return a column of an earlier step."""
    return exp.Column(this=exp.Identifier(this=name, quoted=False))


def real(node: Node) -> Node:
    """Return the expression as a number of double precision."""
    return exp.Cast(this=node, to=exp.DataType.build("double"))


def total(nodes: Sequence[Node]) -> Node:
    """Return the sum, as a balanced tree: databases limit the depth of expressions."""
    return _balanced(exp.Add, list(nodes) or [literal(0.0)])


def any_of(conditions: Sequence[Node]) -> Node:
    """Return the condition that any of the conditions holds, as a balanced tree."""
    return _balanced(exp.Or, list(conditions))


def plus(a: Node, b: Node) -> Node:
    """Return a + b."""
    return exp.Add(this=a, expression=_enclosed(b))


def minus(a: Node, b: Node) -> Node:
    """Return a − b."""
    return exp.Sub(this=a, expression=_enclosed(b))


def times(*nodes: Node) -> Node:
    """Return the product."""
    product = _enclosed(nodes[0])
    for node in nodes[1:]:
        product = exp.Mul(this=product, expression=_enclosed(node))
    return product


def over(a: Node, b: Node) -> Node:
    """Return a / b of numbers of double precision."""
    return exp.Div(this=_enclosed(a), expression=_enclosed(b), typed=True)


def less(a: Node, b: Node) -> Node:
    """Return whether a < b."""
    return exp.LT(this=a, expression=b)


def missing(name: str) -> Node:
    """Return the condition that a column of an earlier step is NULL."""
    return exp.Is(this=column(name), expression=exp.Null())


def cases(*branches: tuple[Node, Node], default: Node | None = None) -> Node:
    """Return CASE WHEN condition THEN value …; NULL where no condition holds and no default is given."""
    ifs = [exp.If(this=condition, true=value) for condition, value in branches]
    return exp.Case(ifs=ifs, default=default)


def choice(name: str, values: Sequence[Node], default: Node | None = None) -> Node:
    """Return the value for the code of a column, with codes from 1 on."""
    ifs = [exp.If(this=whole(code), true=value) for code, value in enumerate(values, start=1)]
    return exp.Case(this=column(name), ifs=ifs, default=default)


def _balanced(kind: Any, parts: list[Node]) -> Node:
    while len(parts) > 1:
        pairs = [parts[i : i + 2] for i in range(0, len(parts), 2)]
        parts = [kind(this=_enclosed(p[0]), expression=_enclosed(p[1])) if len(p) == 2 else p[0] for p in pairs]
    return parts[0]


def _enclosed(node: Node) -> Node:
    return exp.Paren(this=node) if isinstance(node, exp.Binary) else node


def _split_lists(columns: Sequence[str], rows: Sequence[Sequence[int | float]]) -> str:
    """Return a SELECT of DuckDB that holds each column of numbers as one string.

    DuckDB plans each number of VALUES as an expression, which took about 30 µs; a string is one expression.
    """
    parts = []
    for name, cells in zip(columns, zip(*rows, strict=True), strict=True):
        kind = "BIGINT" if all(isinstance(cell, int) for cell in cells) else "DOUBLE"
        joined = ",".join(_plain(cell) for cell in cells)
        parts.append(f"UNNEST(CAST(STRING_SPLIT('{joined}', ',') AS {kind}[])) AS {name}")
    return "SELECT\n  " + ",\n  ".join(parts)
