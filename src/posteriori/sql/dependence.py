"""Log factors of columns with parents, as joins of the cells of a row with tables of numbers."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from sqlglot import exp

from posteriori.densities import AveragedParameters, FamilyTables
from posteriori.sql.dialects import SMALLEST_EXPONENT, Dialect, column, literal, minus
from posteriori.sql.steps import CellReader, Factor, Relation, SelectSteps
from posteriori.support.typing import Array


@dataclass
class CodeRows:
    """Common table expressions that start from the distinct rows of codes, and end in columns of the SELECT."""

    steps: SelectSteps
    codes: Sequence[str]  # the columns of the SELECT that hold the codes, NULL where a cell is missing
    label: str  # begins the name of each expression
    _tables: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        """Add a column with the number of each row among the distinct rows."""
        usual, n_others = self.label, 0
        while self.steps.known(f"{self.label}_row") is not None:  # of another model with the same cut points
            n_others += 1
            self.label = f"{usual}n{n_others}"
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

    def name_of(self, name: str) -> str:
        """Return the full name of a common table expression, which a recursive one names itself."""
        return f"{self._name}_{name}"

    def add(self, name: str, body: str) -> str:
        """Add a common table expression; return its name."""
        full = self.name_of(name)
        self._tables.append(f"{full} AS {self.dialect.kept}(\n{body}\n)")
        return full

    def add_table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[int | float]]) -> str:
        """Add a table of numbers; return its name."""
        full = self.name_of(name)
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
    power = exp.Exp(this=dialect.largest([minus(column(f"l{z}"), column(f"m{z}")), literal(SMALLEST_EXPONENT)]))
    return f"MAX(m{z}) + {dialect.written(exp.Ln(this=exp.Sum(this=power)))}"


def log_or_impossible(dialect: Dialect, name: str) -> str:
    """Return the logarithm of a probability; −1e300 where it is 0."""
    impossible = dialect.written(literal(-np.inf))
    log_p = dialect.written(exp.Ln(this=column(name)))
    return f"CASE WHEN {name} > 0 THEN {log_p} ELSE {impossible} END"


def dependence_factors(
    steps: SelectSteps, cells: CellReader, columns: Sequence[int], parameters: FamilyTables
) -> Iterator[Factor]:
    """Yield log p(x_j | the present ones of the columns before it, z), 0 where x_j is missing."""
    known = [j for j, k in enumerate(parameters.cardinalities) if k]  # the others are missing in every row
    if not known:
        return
    n_components = parameters.log_probability.shape[1]
    codes = [cells.code(columns[j]) for j in known]
    rows = CodeRows(steps, codes, f"d{columns[0]}")
    chain = _OrderedColumns(rows, parameters, known)
    last = chain.write()
    names = rows.finish(last, {name: name for name in chain.finished})
    for (j, z), name in zip(itertools.product(chain.order, range(n_components)), names, strict=True):
        yield z, columns[known[j]], name


class _OrderedColumns:
    """The columns with a category, by their positions among these, in topological order."""

    def __init__(self, rows: CodeRows, parameters: FamilyTables, known: list[int]) -> None:
        position = {j: i for i, j in enumerate(known)}
        self._rows = rows
        self._parameters = parameters
        self._known = known
        self._components = range(parameters.log_probability.shape[1])
        self._parents = [[position[i] for i in parameters.parents[j] if i in position] for j in known]
        self.order = [position[j] for j in parameters.families.order.tolist() if j in position]
        self.finished: list[str] = []  # the factors so far
        self._live: list[int] = []  # columns whose values later columns depend on

    @cached_property
    def _last_child(self) -> dict[int, int]:
        """The place in the order of the last child of each column that has one."""
        return {parent: place for place, j in enumerate(self.order) for parent in self._parents[j]}

    @cached_property
    def _descendants(self) -> list[set[int]]:
        below: list[set[int]] = [set() for _ in self._known]
        for j in reversed(self.order):
            for parent in self._parents[j]:
                below[parent] |= {j} | below[j]
        return below

    def write(self) -> str:
        """Add the expressions of all columns; return the name of the last."""
        source = self._rows.distinct([f"1e0 AS w{z}" for z in self._components])
        for place, j in enumerate(self.order):
            source = self._joined(source, place, j)
            source = self._summed(source, place, j)
            source = self._divided(source, place, j)
        return source

    def _carried(self, place: int) -> list[str]:
        """Return the columns that depend on the row alone: the factors so far, and the codes from this place on."""
        return [*(f"c{j}" for j in self.order[place:]), *self.finished]

    def _joined(self, source: str, place: int, j: int) -> str:
        """Add the lines of each row with the values of column j."""
        table = self._table(j)
        if j in self._last_child:
            values = [*(f"v{i}" for i in self._live), f"t.x AS v{j}"]
            self._live.append(j)
        else:
            values = [f"v{i}" for i in self._live]
        products = [f"w{z} * t.q{z} AS w{z}" for z in self._components]
        lines = ", ".join(["r", *self._carried(place), *values, *products])
        return self._rows.add(
            f"c{j}", f"SELECT {lines}\nFROM {source}\nINNER JOIN {table} AS t ON t.k = {self._key(j)}"
        )

    def _key(self, j: int) -> str:
        """Return the key of the lines of the table that a line is joined with.

        It is the slot of the family of a present cell; −1 − the slot of the parents where the values are summed over;
        and 0, whose probability is 1, where a missing cell has no present descendant.
        """
        slot = "0"
        for i in self._parents[j]:
            slot = f"({slot} * {self._width(i)} + v{i})" if slot != "0" else f"v{i}"
        branches = f"WHEN c{j} IS NOT NULL THEN {slot} * {self._width(j)} + c{j}"
        below = sorted(self._descendants[j])
        if below:
            wanted = " OR ".join(f"c{i} IS NOT NULL" for i in below)
            branches += f" WHEN {wanted} THEN -1 - {slot}"
        return f"CASE {branches} ELSE 0 END"

    def _width(self, j: int) -> int:
        return self._parameters.cardinalities[self._known[j]] + 1

    def _table(self, j: int) -> str:
        """Add the table of column j: the key `k`, the category `x`, and its probability given each component."""
        known = self._known[j]
        lacking = [i not in self._known for i in self._parameters.parents[known]]
        table = self._parameters.table(known)[(slice(None), *(0 if gone else slice(1, None) for gone in lacking))]
        probability: Array = np.exp(table[..., 1:])
        widths = [self._width(i) for i in self._parents[j]]
        lines = []
        for cell in itertools.product(*(range(1, width) for width in widths), range(1, self._width(j))):
            slot = 0
            for value, width in zip(cell[:-1], widths, strict=True):
                slot = slot * width + value
            index: tuple[slice | int, ...] = (slice(None), *(value - 1 for value in cell))
            p = probability[index].tolist()
            lines.append((slot * self._width(j) + cell[-1], -1 - slot, cell[-1], *p))
        names = ["k", "of_parents", "x", *(f"q{z}" for z in self._components)]
        ones = (0, 0, 0, *(1.0 for _ in self._components))
        name = f"t{j}"
        if j not in self._last_child:
            return self._rows.add_table(name, names, [ones, *lines])
        seen = self._rows.add_table(f"{name}_seen", names, lines)
        rest = ", ".join(names[2:])
        certain = ", ".join(["0 AS k", "0 AS x", *(f"1e0 AS q{z}" for z in self._components)])
        return self._rows.add(
            name,
            f"SELECT k, {rest} FROM {seen} UNION ALL SELECT of_parents AS k, {rest} FROM {seen}\n"
            f"UNION ALL SELECT {certain}",
        )

    def _summed(self, source: str, place: int, j: int) -> str:
        """Sum over the values that no later column depends on."""
        gone = [i for i in self._live if self._last_child[i] <= place]
        if not gone:
            return source
        self._live = [i for i in self._live if i not in gone]
        values = ["r", *(f"v{i}" for i in self._live)]
        carried = [f"MAX({name}) AS {name}" for name in self._carried(place)]
        sums = [f"SUM(w{z}) AS w{z}" for z in self._components]
        lines = ", ".join([*values, *carried, *sums])
        return self._rows.add(f"s{j}", f"SELECT {lines}\nFROM {source}\nGROUP BY {', '.join(values)}")

    def _divided(self, source: str, place: int, j: int) -> str:
        """Divide by the sum over the lines of the row, whose logarithm is the factor of column j."""
        values = [f"v{i}" for i in self._live]
        carried = self._carried(place)
        if self._live:
            sums = [f"SUM(w{z}) OVER (PARTITION BY r) AS p{z}" for z in self._components]
            weights = [f"w{z}" for z in self._components]
            source = self._rows.add(
                f"p{j}", f"SELECT {', '.join(['r', *carried, *values, *weights, *sums])}\nFROM {source}"
            )
            total = "p{}"
        else:
            total = "w{}"
        factors, weights = [], []
        for z in self._components:
            p = total.format(z)
            log_p = log_or_impossible(self._rows.dialect, p)
            name = f"f{j}_{z}"
            factors.append(f"CASE WHEN c{j} IS NULL THEN 0e0 ELSE {log_p} END AS {name}")
            self.finished.append(name)
            weights.append(f"CASE WHEN {p} > 0 THEN w{z} / {p} ELSE 0e0 END AS w{z}")
        kept = [name for name in carried if name != f"c{j}"]
        lines = ",\n  ".join([", ".join(["r", *kept, *values]), *factors, *weights])
        return self._rows.add(f"f{j}", f"SELECT\n  {lines}\nFROM {source}")


def averaged_factors(
    steps: SelectSteps, cells: CellReader, columns: Sequence[int], parameters: AveragedParameters
) -> Iterator[Factor]:
    """Yield log 1/d·Σ_i Σ_a p(x_i = a | z)·Π_{j≠i} p(x_j | x_i = a, z), over all a where x_i is missing.

    Each cell of a row has a slot: that of its category, or that of code 0 where it is missing. Each cell as a parent
    has the slots of the categories it may have. The table of pairs holds log p(child | parent, z), and
    log p(parent | z) at the slots of the parent's own column.
    """
    columns = [columns[j] for j in parameters.varying]
    if not columns:
        return
    n_slots, n_components, _ = parameters.log_probability.shape
    rows = CodeRows(steps, [cells.code(j) for j in columns], f"a{columns[0]}")
    d, starts, components = len(columns), parameters.starts.tolist(), range(n_components)
    base = rows.distinct()
    positions = rows.add_table("positions", ["j"], [(j,) for j in range(d)])
    slot_of = " ".join(f"WHEN {j} THEN COALESCE(c{j}, 0) + {start}" for j, start in enumerate(starts))
    of_cells = rows.add("cells", f"SELECT r, CASE j {slot_of} END AS slot\nFROM {base} CROSS JOIN {positions}")
    possible = rows.add_table("possible", ["slot", "parent"], list(_possible_parents(parameters)))
    parents = rows.add(
        "parents",
        f"SELECT r, possible.parent * {n_slots} AS line\nFROM {of_cells} AS cells\n"
        f"INNER JOIN {possible} AS possible ON possible.slot = cells.slot",
    )
    pairs = rows.add_table("pairs", ["pair", *(f"l{z}" for z in components)], list(_pairs(parameters)))
    sums = ", ".join(f"SUM(l{z}) AS l{z}" for z in components)
    terms = rows.add(
        "terms",
        f"SELECT parents.r, line, {sums}\nFROM {parents} AS parents\n"
        f"INNER JOIN {of_cells} AS cells ON cells.r = parents.r\n"
        f"INNER JOIN {pairs} AS pairs ON pairs.pair = line + cells.slot\nGROUP BY parents.r, line",
    )
    peaks = ", ".join(f"l{z}, MAX(l{z}) OVER (PARTITION BY r) AS m{z}" for z in components)
    peaked = rows.add("peaked", f"SELECT r, {peaks}\nFROM {terms}")
    log_d = rows.dialect.written(literal(math.log(d)))
    results = {f"z{z}": f"{log_sum_of(rows.dialect, z)} - {log_d}" for z in components}
    for z, name in enumerate(rows.finish(peaked, results, "\nGROUP BY r")):
        yield z, columns[0], name


def _slots(parameters: AveragedParameters) -> Iterator[tuple[int, range]]:
    """Yield the slot of code 0 of each column that varies, and the slots of its values."""
    for start, j in zip(parameters.starts.tolist(), parameters.varying, strict=True):
        yield start, range(start + 1, start + parameters.cardinalities[j] + 1)


def _possible_parents(parameters: AveragedParameters) -> Iterator[tuple[int, int]]:
    """Yield each slot with the slots of the values that the cell may have."""
    for start, values in _slots(parameters):
        yield from ((start, value) for value in values)
        yield from ((value, value) for value in values)


def _pairs(parameters: AveragedParameters) -> Iterator[tuple[int | float, ...]]:
    """Yield line + slot of each pair, and its log-probability under each component."""
    of_pair = parameters.by_pair
    n_slots = len(of_pair)
    for start, values in _slots(parameters):
        for parent in values:
            line = parent * n_slots
            yield line + start, *of_pair[parent, parent].tolist()
            for first, children in _slots(parameters):
                for child in children:
                    if first != start or child == parent:
                        yield line + child, *of_pair[parent, child].tolist()
