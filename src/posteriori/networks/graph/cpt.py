"""Conditional probability tables, checked when they are made."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.graph.decimals import as_number
from posteriori.networks.graph.naming import States, first_repeated, state_by_state
from posteriori.networks.inference.printing import conditional_lines
from posteriori.networks.notebooks import conditional_html
from posteriori.tables import Cell
from posteriori.tables.objects import plain_cell
from posteriori.typing import Array

ROUNDING = 1e-6  # files hold probabilities of six or seven digits
_EXACT = 1e-12  # a row whose sum is closer to 1 than this keeps every bit


@dataclass(frozen=True, eq=False)
class CPT:
    """p(variable | parents): a distribution over the variable's states for every configuration of its parents.

    Parameters
    ----------
    variable : str
    states : sequence of str, bool, int or float
        The states of the variable, each once.
    parents : mapping from str to sequence of states
        In the order of the axes; empty for a root.
    probabilities : array-like (K of each parent…, K)
        Each row, along the last axis, sums to 1 within 1e-6. A row whose sum differs from 1, as in rounded files, is
        divided by its sum; no other change is made.

    Raises
    ------
    TypeError
        A state is no string, number or boolean.
    ValueError
        The shape is wrong, a probability is negative or no number, or a row does not sum to 1; the message names the
        row by the states of the parents.

    Examples
    --------
    >>> from posteriori.networks import CPT
    >>> CPT("lung", ["yes", "no"], {"smoke": ["yes", "no"]}, [[0.1, 0.9], [0.01, 0.99]])
    p(lung | smoke)
    smoke       yes        no
    yes    0.100000  0.900000
    no     0.010000  0.990000
    """

    variable: str
    states: States
    parents: Mapping[str, States]
    probabilities: Array

    def __post_init__(self) -> None:
        if not isinstance(self.variable, str):
            raise TypeError(
                f"{self.variable!r} is a {type(self.variable).__name__}; the names of variables are strings"
            )
        states = check_states(self.variable, self.states)
        if not isinstance(self.parents, Mapping):
            raise TypeError(
                f"the parents of {self.variable!r} are {self.parents!r}; give a mapping from each to its states"
            )
        for name in self.parents:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is a {type(name).__name__}; the names of variables are strings")
        parents = {name: check_states(name, known) for name, known in self.parents.items()}
        if self.variable in parents:
            raise ValueError(f"{self.variable!r} is its own parent; leave it out of its parents")
        table = _check_probabilities(self.variable, states, parents, self.probabilities)
        for name, value in (("states", states), ("parents", parents), ("probabilities", table)):
            object.__setattr__(self, name, value)

    @property
    def all_parents(self) -> tuple[str, ...]:
        """The parents, in the order of the axes."""
        return tuple(self.parents)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: K − 1 per configuration of the parents."""
        return math.prod(map(len, self.parents.values())) * (len(self.states) - 1)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, CPT):
            return NotImplemented
        mine, theirs = ((cpt.variable, cpt.states, list(cpt.parents.items())) for cpt in (self, other))
        return mine == theirs and bool(np.array_equal(self.probabilities, other.probabilities))

    def __hash__(self) -> int:
        return hash((self.variable, self.states, tuple(self.parents)))

    def __repr__(self) -> str:
        return "\n".join(conditional_lines({self.variable: self.states}, self.parents, self.probabilities))

    def _repr_html_(self) -> str:
        return conditional_html({self.variable: self.states}, self.parents, self.probabilities)

    def to_polars(self) -> Any:
        """Return the table as a polars DataFrame: a column for each parent, and one for each state."""
        import polars as pl

        return pl.DataFrame(self._columns())

    def to_pandas(self) -> Any:
        """Return the table as a pandas DataFrame: a column for each parent, and one for each state."""
        import pandas as pd

        return pd.DataFrame(self._columns())

    def _columns(self) -> dict[str, Any]:
        rows = list(np.ndindex(*map(len, self.parents.values())))
        columns: dict[str, Any] = {
            name: [known[row[axis]] for row in rows] for axis, (name, known) in enumerate(self.parents.items())
        }
        table = self.probabilities.reshape(len(rows), len(self.states))
        return columns | {str(state): table[:, k] for k, state in enumerate(self.states)}


def check_states(variable: str, states: Any) -> States:
    """Return the states of a variable as a tuple of cells.

    Raises
    ------
    TypeError
        They are a single string, or a state is no string, number or boolean.
    ValueError
        There is no state, one is NaN, or one occurs twice.
    """
    if isinstance(states, str | bytes) or not hasattr(states, "__iter__"):
        raise TypeError(f"the states of {variable!r} are {states!r}; give them as a list")
    cells: list[Cell] = [plain_cell(state, variable) for state in states]
    if any(cell != cell for cell in cells):
        raise ValueError(f"a state of {variable!r} is NaN, which stands for a missing cell; name the state otherwise")
    if not cells:
        raise ValueError(f"{variable!r} has no states; give it at least one")
    if len(set(cells)) < len(cells):
        raise ValueError(f"the state {first_repeated(cells)!r} of {variable!r} occurs twice; name each state once")
    return tuple(cells)


def _check_probabilities(variable: str, states: States, parents: Mapping[str, States], values: Any) -> Array:
    try:
        written = np.array(values)
        if written.dtype.kind not in "biufOSU":
            raise TypeError(written.dtype)  # complex numbers and dates, which NumPy would convert to floats
        if written.dtype.kind in "OSU":
            for cell in written.ravel().tolist():
                if isinstance(cell, str | bytes):
                    as_number(str(cell))
        table = written.astype(np.float64)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(
            f"the table of {variable!r} is no array of numbers with rows of one length; its shape is "
            f"{_expected(parents, states)}"
        ) from None
    if table.shape != (*map(len, parents.values()), len(states)):
        raise ValueError(
            f"the table of {variable!r} has shape {table.shape}; {_expected(parents, states)} is needed: "
            f"an axis of states for each of {', '.join([*parents, variable])}, in this order"
        )
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and inf fail the comparison below
        sums = table.sum(axis=-1, keepdims=True)
    off = np.abs(sums - 1)
    if not (np.all(off <= ROUNDING) and table.min() >= 0):
        raise _table_error(variable, states, parents, table, sums)
    if off.max() > _EXACT:
        table = np.where(off > _EXACT, table / sums, table)
    table.setflags(write=False)
    return table


def _table_error(variable: str, states: States, parents: Mapping[str, States], table: Array, sums: Array) -> ValueError:
    """Return the error about the first cell that is no probability, or the first row that does not sum to 1."""
    for position in np.argwhere(~(np.isfinite(table) & (table >= 0)))[:1]:
        where = state_by_state({**parents, variable: states}, position)
        return ValueError(
            f"the table of {variable!r} holds {table[tuple(position)]:g} at {where}; probabilities are from 0 to 1"
        )
    row = tuple(np.argwhere(~(np.abs(sums[..., 0] - 1) <= ROUNDING))[0])
    where = f" where {state_by_state(parents, row)}" if parents else ""
    return ValueError(f"the table of {variable!r} sums to {sums[row][0]:.9g}{where}; each row must sum to 1")


def _expected(parents: Mapping[str, States], states: Sequence[Cell]) -> str:
    return str((*map(len, parents.values()), len(states)))
