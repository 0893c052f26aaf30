"""The cells of a table in a database as arrays of expressions, and the densities that are written as joins."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from posteriori import densities
from posteriori.densities import FamilyTables
from posteriori.program.cells import RowCells
from posteriori.program.densities import BlockCells, Factors, Program
from posteriori.sql import dependence, forests
from posteriori.sql.expressions import Expressions, Functions
from posteriori.sql.steps import CellReader, SelectSteps
from posteriori.sql.terms import Terms
from posteriori.tables import Schema


class TableCells(RowCells):
    """The rows of a table under a schema."""

    def __init__(self, steps: SelectSteps, reader: CellReader, schema: Schema, of: TableCells | None = None) -> None:
        super().__init__(schema, [] if of is None else of.refused)
        self.steps = steps
        self.reader = reader
        self._terms: Terms = Terms() if of is None else of._terms
        self._views: dict[Any, TableCells] = {_cuts(schema): self} if of is None else of._views

    @property
    def xp(self) -> Functions:
        """The functions of arrays of expressions."""
        return Functions(self._terms)

    def under(self, schema: Schema) -> TableCells:
        """Return the same rows with the cut points of another schema of the same columns."""
        if _cuts(schema) not in self._views:
            steps = self.steps.scope(f"m{len(self._views)}_")
            self._views[_cuts(schema)] = TableCells(steps, self.reader.of_member(steps, schema), schema, self)
        return self._views[_cuts(schema)]

    def zeros(self) -> Expressions:
        """Return a zero, (1, 1)."""
        return Expressions([[0.0]], self._terms)

    def column(self, name: str, codes: range | None = None) -> Expressions:
        """Return a column of the SELECT, (1,)."""
        return Expressions([self._terms.make("column", name, codes=codes)], self._terms)

    def number(self, j: int) -> Expressions:
        """Return the numbers of a column."""
        column = self.schema.columns[j]
        if column.kind == "counts":
            raise ValueError(
                f"column {column.name!r} is text or a block of words, which no SELECT is written for; score by "
                "predict_to or to_javascript instead"
            )
        return self.column(self.reader.number(j))

    def code(self, j: int) -> Expressions:
        """Return the codes of a column of categories or of its bins."""
        return self.column(self.reader.code(j), range(self.schema.columns[j].cardinality + 1))

    def is_unseen(self, j: int) -> Expressions:
        """Return which cells of a column are categories that were unseen in training."""
        is_held = ~self.xp.isnan(self.column(self.reader.held(j)))
        return is_held.__and__(self.code(j) == 0)

    def own_program(self, density: type[Any]) -> Program | None:
        """Return the program of densities whose rows have many terms: by joins with tables."""
        return self._joined(_JOINED[density]) if density in _JOINED else None

    def _joined(self, write: Callable[..., Any]) -> Program:
        def program(block: BlockCells, parameters: Any) -> Factors:
            if block.is_weighted and write not in (_family_factors, _joint_factors):
                raise ValueError(
                    f"{block.model} has factor weights on a mean of trees, which run in Python only; fit without them"
                )
            groups = {block.columns[position]: table for position, table in block.groups.items()}
            factors = list(write(self.steps, self.reader.with_groups(groups), block.columns, parameters))
            n_components = 1 + max((z for z, _, _ in factors), default=0)
            columns = list(dict.fromkeys(j for _, j, _ in factors))
            entries = np.full((1, n_components, len(columns)), 0.0, dtype=object)
            for z, j, name in factors:
                entries[0, z, columns.index(j)] = self._terms.make("column", name)
            return columns, Expressions(entries, self._terms)

        return program


def _cuts(schema: Schema) -> tuple[Any, ...]:
    """Return the cut points of all columns, in which the schemas of models of one table differ."""
    return tuple(column.cuts for column in schema.columns)


def _family_factors(steps: SelectSteps, cells: CellReader, columns: Sequence[int], parameters: Any) -> Any:
    """Yield the log factors of columns given their parents."""
    yield from dependence.dependence_factors(steps, cells, columns, parameters.tables)


def _joint_factors(steps: SelectSteps, cells: CellReader, columns: Sequence[int], parameters: Any) -> Any:
    """Yield log p(x_j | x_1 … x_{j−1}, z): the chain rule makes a full joint table a family with all parents."""
    tables = FamilyTables.of_joint(parameters.log_probability)
    yield from dependence.dependence_factors(steps, cells, columns, tables)


_JOINED: dict[type[Any], Callable[..., Any]] = {
    densities.AveragedOneDependence: dependence.averaged_factors,
    densities.FullJoint: _joint_factors,
    densities.KDependence: _family_factors,
    densities.RandomTrees: forests.forest_factors,
    densities.SummedTrees: forests.forest_factors,
}
