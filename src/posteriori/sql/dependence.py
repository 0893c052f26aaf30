"""The log factors of columns with up to k parents, as joins of the cells of a row with the tables of the families.

The columns are taken in topological order. A row starts as one line. A present column is joined with its table; a
missing column with a present descendant is joined with all its categories, so that the row has one line for each value
of the missing columns that later columns depend on. w_z is p(these values | the present columns so far, z): it is
multiplied by p(x_j | parents, z), summed over the values that no later column depends on, and divided by its sum over
the row. The logarithm of that sum is log p(x_j | the present columns before it, z), which is log p(x_j | parents, z)
if the parents are present. This is exact for every pattern of missing cells, and a complete row stays one line.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from functools import cached_property

import numpy as np

from posteriori.densities import FamilyTables
from posteriori.sql.dialects import column
from posteriori.sql.factors import Factor, FactorContext
from posteriori.sql.relations import CodeRows, log_or_impossible
from posteriori.typing import Array


def dependence_factors(context: FactorContext, columns: Sequence[int], parameters: FamilyTables) -> Iterator[Factor]:
    """Yield log p(x_j | the present ones of the columns before it, z), 0 where x_j is missing."""
    known = [j for j, k in enumerate(parameters.cardinalities) if k]  # the others are missing in every row
    if not known:
        return
    n_components = parameters.log_probability.shape[1]
    codes = [context.cells.code(columns[j]) for j in known]
    rows = CodeRows(context.steps, codes, f"d{columns[0]}")
    chain = _Chain(rows, parameters, known)
    last = chain.write()
    names = rows.finish(last, {name: name for name in chain.finished})
    for (j, z), name in zip(itertools.product(chain.order, range(n_components)), names, strict=True):
        yield z, columns[known[j]], column(name)


class _Chain:
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
