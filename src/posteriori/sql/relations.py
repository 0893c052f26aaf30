"""Rows with equal codes as a relation of their own, and tables of numbers to join with them.

A density whose tables have many cells is no expression per cell of a table: its tables stand in the SELECT as rows, and
are joined by codes. Rows of the data are numbered by their codes, so that equal rows are scored once, and the numbers
do not depend on the order in which a database reads the rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from sqlglot import exp

from posteriori.sql.dialects import SMALLEST_EXPONENT, Dialect, column, minus, number
from posteriori.sql.steps import Relation, Steps


@dataclass
class CodeRows:
    """Common table expressions that start from the distinct rows of codes, and end in columns of the SELECT.

    Attributes
    ----------
    steps : Steps
    codes : sequence of str
        The columns of the SELECT that hold the codes, NULL where a cell is missing.
    label : str
        Begins the name of each expression.
    """

    steps: Steps
    codes: Sequence[str]
    label: str
    _tables: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Add a column with the number of each row among the distinct rows."""
        order = exp.Order(expressions=[exp.Ordered(this=column(code), nulls_first=True) for code in self.codes])
        number_of_row = exp.Window(this=exp.DenseRank(), order=order)
        self._key = self.steps.define(f"{self.label}_row", number_of_row)
        self._name = self.steps.prefix + self.label

    @property
    def dialect(self) -> Dialect:
        """The dialect of the SELECT."""
        return self.steps.dialect

    def distinct(self, more: Sequence[str] = ()) -> str:
        """Add the distinct rows: their number `r`, codes `c0`, `c1`, … and more columns; return the name."""
        codes = [f"{code} AS c{j}" for j, code in enumerate(self.codes)]
        source = self.steps.source([*self.codes, self._key])
        return self.add("rows", f"SELECT DISTINCT {', '.join([f'{self._key} AS r', *codes, *more])}\nFROM {source}")

    def add(self, name: str, body: str) -> str:
        """Add a common table expression; return its name."""
        full = f"{self._name}_{name}"
        self._tables.append(f"{full} AS {self.dialect.kept}(\n{body}\n)")
        return full

    def add_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[int | float]]) -> str:
        """Add a table of numbers; return its name."""
        full = f"{self._name}_{name}"
        self._tables.append(self.dialect.table_of(full, columns, rows))
        return full

    def finish(self, source: str, results: dict[str, str], clause: str = "") -> list[str]:
        """Join expressions of the columns of one of the tables, with one row for each row of codes.

        Parameters
        ----------
        source : str
            The name of the table.
        results : dict of str to str
            The expressions, by the names of the results.
        clause : str
            What stands after FROM and the table.

        Returns
        -------
        list of str
            The names of the columns in the SELECT.
        """
        names = [f"{self._name}_{name}" for name in results]
        last = f"{self._name}_result"
        written = [f"{node} AS {name}" for name, node in zip(names, results.values(), strict=True)]
        lines = ",\n  ".join([f"r AS {last}_key", *written])
        self.add("result", f"SELECT\n  {lines}\nFROM {source}{clause}")
        relation = Relation(self._key, tuple(self._tables), last, tuple(names))
        self.steps.join(relation, [*self.codes, self._key])
        return names


def log_sum_of(dialect: Dialect, z: int) -> str:
    """Return log Σ exp l as an aggregate, of terms l whose largest is m."""
    power = exp.Exp(this=dialect.largest([minus(column(f"l{z}"), column(f"m{z}")), number(SMALLEST_EXPONENT)]))
    return f"MAX(m{z}) + {dialect.written(exp.Ln(this=exp.Sum(this=power)))}"


def log_or_impossible(dialect: Dialect, name: str) -> str:
    """Return the logarithm of a probability; −1e300 where it is 0."""
    impossible = dialect.written(number(-np.inf))
    log_p = dialect.written(exp.Ln(this=column(name)))
    return f"CASE WHEN {name} > 0 THEN {log_p} ELSE {impossible} END"
