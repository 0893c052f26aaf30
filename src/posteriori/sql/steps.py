"""A SELECT in steps: each adds columns to those columns of the previous step that are still needed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from posteriori.sql.dialects import Dialect, Node, column

_STEP = "posteriori_"  # and a number: a name that no table is likely to have


@dataclass(frozen=True)
class Relation:
    """Common table expressions that read one step, and the last of which is joined to it.

    Attributes
    ----------
    key : str
        The column of the step to join on. The last expression has one row for each of its values, in `key_of_relation`.
    tables : tuple of str
        The expressions as text, ``name AS (SELECT …)``; they read the step by the name that `Steps.source` returns.
    name : str
        The name of the last one.
    columns : tuple of str
        What it adds.
    """

    key: str
    tables: tuple[str, ...]
    name: str
    columns: tuple[str, ...]

    @property
    def key_of_relation(self) -> str:
        """The column of the relation that holds the key."""
        return f"{self.name}_key"


@dataclass
class Steps:
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

    def scope(self, prefix: str) -> Steps:
        """Return the same steps, in which the names of columns that are defined from now on begin with a prefix.

        Columns that are read from the table keep their names, so that every scope shares them.
        """
        return replace(self, prefix=prefix)

    def read(self, name: str, node: Node) -> str:
        """Add a column that is an expression of the columns of the table; return its name."""
        return self._keep(name, node, frozenset())

    def define(self, name: str, node: Node) -> str:
        """Add a column that is an expression of columns added before; return its name."""
        return self._keep(
            self.prefix + name, node, frozenset(reference.name for reference in node.find_all(exp.Column))
        )

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
