"""The cells of a row as the densities read them: numbers about a centre, codes, and whether they are refused."""

from __future__ import annotations

from functools import cached_property

from sqlglot import exp

from posteriori.sql.dialects import LARGEST, Dialect, Node, any_of, cases, column, minus, missing, number, real, whole
from posteriori.sql.steps import Steps
from posteriori.tables import Column, Schema

_CENTRE_DIGITS = 14  # which every database reads as the same number


class Cells:
    """Reads the columns of a schema, each when it is first asked for.

    A missing cell is NULL, as is a NaN, and a category that training did not know.
    """

    def __init__(self, steps: Steps, schema: Schema) -> None:
        self._steps = steps
        self._schema = schema
        self._strange: list[Node] = []  # what cells hold, as the table has them
        self._refusals: list[Node] = []

    @property
    def _dialect(self) -> Dialect:
        return self._steps.dialect

    def column(self, j: int) -> Column:
        """Return what column j is."""
        return self._schema.columns[j]

    def is_number(self, j: int) -> bool:
        """Return whether a mixed density reads the column as numbers: it is neither categorical nor binned."""
        return j not in self._schema.coded

    def number(self, j: int) -> str:
        """Return the column that holds the numbers of column j."""
        name = f"x{j}"
        if not self._steps.has(name) and self.column(j).valueless:
            self._steps.read(name, exp.cast(exp.Null(), "double"))  # whatever it holds, and of whatever type, now
        elif not self._steps.has(name):
            self._read_number(name, self.column(j).name)
        return name

    def centred(self, j: int, middle: float) -> tuple[str, float]:
        """Return the column that holds the numbers of column j about a centre near the middle, and that centre.

        Differences between large numbers are so taken in the database, once and exactly, and what is multiplied is
        small: a literal that is a bit off in its last place then does no harm.
        """
        x, centre = self.number(j), float(f"{middle:.{_CENTRE_DIGITS}g}")
        if centre == 0.0:
            return x, centre
        name = f"y{j}"
        if self._steps.has(name):
            assert self._centres[name] == centre
        else:
            self._centres[name] = centre
            self._steps.define(name, minus(column(x), number(centre)))
        return name, centre

    @cached_property
    def _centres(self) -> dict[str, float]:
        return {}

    def code(self, j: int) -> str:
        """Return the column that holds the codes of column j, from 1 on, of its categories or bins."""
        name = f"c{j}"
        if self._steps.has(name):
            return name
        known = self.column(j)
        if known.cuts is not None:
            x = self.number(j)
            bins = [
                (exp.LT(this=column(x), expression=self._dialect.exactly(cut)), whole(code))
                for code, cut in enumerate(known.cuts, start=1)
            ]
            present = exp.Not(this=missing(x))
            return self._steps.define(name, cases(*bins, (present, whole(known.cardinality))))
        if len(known.kinds) > 1:
            raise ValueError(
                f"column {known.name!r} holds {' and '.join(sorted(known.kinds))}, and a column of a database is of "
                "one type; train the model on one that is"
            )
        cell = self._dialect.named(known.name)
        ifs = [exp.If(this=self._dialect.cell(one), true=whole(k)) for k, one in enumerate(known.categories, start=1)]
        return self._steps.read(name, exp.Case(this=cell, ifs=ifs) if ifs else exp.cast(exp.Null(), "int"))

    def present(self, j: int) -> str:
        """Return a column that is NULL where the cell of column j is missing."""
        return self.number(j) if self.is_number(j) else self.code(j)

    def refuse(self, condition: Node) -> None:
        """Take rows in which the condition holds for such as `predict` refuses."""
        self._refusals.append(condition)

    def refused(self) -> Node | None:
        """Return whether a row is one that `predict` refuses; None where it refuses none."""
        conditions = list(self._refusals)
        if self._strange:
            flag = self._steps.read("strange", cases((any_of(self._strange), whole(1)), default=whole(0)))
            conditions.append(exp.EQ(this=column(flag), expression=whole(1)))
        return any_of(conditions) if conditions else None

    def _read_number(self, name: str, of: str) -> None:
        def cell() -> Node:
            return real(self._dialect.named(of))

        # NaN is larger than all numbers in some databases, and no number is between in the others.
        between = exp.Between(this=cell(), low=number(-LARGEST), high=number(LARGEST))
        self._steps.read(name, cases((between, cell())))
        outside = [self._dialect.infinity(sign) for sign in ("", "-")]
        strange: list[Node] = [exp.EQ(this=cell(), expression=one) for one in outside if one is not None]
        if self._dialect.loose_types:
            kinds = [exp.Literal.string("text"), exp.Literal.string("blob")]
            strange.append(
                exp.In(this=exp.Anonymous(this="TYPEOF", expressions=[self._dialect.named(of)]), expressions=kinds)
            )
        self._strange += strange
