"""Conditional probability tables: read from arrays, mappings and frames, and checked."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import narwhals as nw
import numpy as np

from posteriori.networks.graph.naming import States, first_repeated, state_by_state, state_code
from posteriori.networks.inference.printing import conditional_lines
from posteriori.networks.notebooks import conditional_html
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Cell
from posteriori.tables.arrays import plain_cell

_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_NOT_IN_NUMBERS = re.compile(r"[^0-9.eE+-]")


def as_number(word: str) -> float:
    """Return a decimal number; ValueError for anything else, also for what `float` reads: ``0.2_5``, ``nan``, ``٣``."""
    if not _NUMBER.fullmatch(word):
        raise ValueError(f"{word!r} is no number")
    return float(word)


def as_numbers(words: Sequence[str], fail: Callable[[str], Exception]) -> list[float]:
    """Return decimal numbers.

    Parameters
    ----------
    words : sequence of str
    fail : callable
        Returns the error to raise, from the first word that is no number.
    """
    if _NOT_IN_NUMBERS.search("".join(words)) is None:
        try:
            return list(map(float, words))
        except ValueError:
            pass  # such as a lone sign; the line below names it
    raise fail(next(word for word in words if not _NUMBER.fullmatch(word)))


def rounding_error(row: Array) -> float:
    """Return the largest change of the sum of a row that the rounding of its numbers can explain.

    The numbers may be rounded to a fixed number of decimals, those of the longest number, or to a fixed number of
    significant digits. Each may be off by one unit in its last place, because some programs truncate.
    """
    written = [Decimal(repr(p)).normalize().as_tuple() for p in row.tolist() if p]
    decimals = max(-int(number.exponent) for number in written)
    significant = max(len(number.digits) for number in written)
    leading = [len(number.digits) + int(number.exponent) - 1 for number in written]
    return max(len(row) * 10.0**-decimals, sum(10.0 ** (first - significant + 1) for first in leading))


def how_to_set(parameter: str, value: float) -> str:
    """Return the advice to set a limit, in the library and on the command line."""
    shown = f"{value:g}" if isinstance(value, float) else str(value)
    return f"read the file with {parameter}={shown} (--{parameter.replace('_', '-')} {shown} on the command line)"


def cell_count(size: int) -> str:
    """Format a number of cells; a very large one as a power of ten."""
    return f"{size:,} cells" if size < 10**15 else f"about 1e{math.floor(math.log10(size))} cells"


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


def cpt_from(
    variable: str,
    probabilities: Any,
    states: Sequence[Any] | None,
    parents: Sequence[str],
    known: Mapping[str, States],
) -> CPT:
    """Return the CPT of a variable.

    Parameters
    ----------
    variable : str
    probabilities : array-like, mapping or data frame
        See `BayesianNetwork.add_cpt`.
    states : sequence of states, optional
        The states of the variable; by default the known ones, or those of the table in their order.
    parents : sequence of str
        In the order of the axes, and of the states in a tuple that names a row.
    known : mapping from str to tuple of states
        The states that are known, at least those of all parents.

    Raises
    ------
    ValueError
        A state is unknown, a row or a probability is missing or given twice, or the table is no CPT.
    """
    known_states = known.get(variable) if states is None else check_states(variable, states)
    parent_states = {name: known[name] for name in parents}
    if isinstance(probabilities, Mapping):
        return _from_mapping(variable, probabilities, known_states, parent_states)
    frame = nw.from_native(probabilities, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_frame(variable, frame, known_states, parent_states)
    if known_states is None:
        raise ValueError(f"the states of {variable!r} are not known; name them: add_cpt({variable!r}, …, states=[…])")
    return CPT(variable, known_states, parent_states, probabilities)


def _from_mapping(
    variable: str, rows: Mapping[Any, Any], known_states: States | None, parents: Mapping[str, States]
) -> CPT:
    if not parents:
        rows = {(): rows}
    states = known_states
    if states is None:
        first = next(iter(rows.values()), None)
        if not isinstance(first, Mapping):
            raise ValueError(f"the states of {variable!r} are not known; write each row as a mapping from state to p")
        states = check_states(variable, list(first))
    table = _empty_table(parents, states)
    for key, row in rows.items():
        position = _row_position(variable, key, parents)
        if isinstance(row, Mapping):
            for state, p in row.items():
                table[(*position, state_code(variable, state, states))] = _number(variable, p)
        elif np.shape(row) != (len(states),):
            raise ValueError(
                f"the row {key!r} of the table of {variable!r} must have {len(states)} numbers; it is {row!r}"
            )
        else:
            table[position] = row
    return _complete(variable, states, parents, table)


def _row_position(variable: str, key: Any, parents: Mapping[str, States]) -> tuple[int, ...]:
    cells = key if isinstance(key, tuple) else (key,)
    if len(cells) != len(parents):
        raise ValueError(
            f"the row {key!r} of the table of {variable!r} must name a state of each of its parents: "
            f"({', '.join(parents)})"
        )
    return tuple(state_code(name, cell, states) for (name, states), cell in zip(parents.items(), cells, strict=True))


def _from_frame(
    variable: str, frame: nw.DataFrame[Any], known_states: States | None, parents: Mapping[str, States]
) -> CPT:
    """Read a long frame, with a column for the variable and one for p, or a wide one, with a column per state."""
    for name in parents:
        if name not in frame.columns:
            raise ValueError(
                f"the table of {variable!r} lacks a column for its parent {name!r}; {closest(name, frame.columns)}"
            )
    others = [name for name in frame.columns if name not in parents]
    is_long = variable in others
    states = known_states
    if states is None:
        states = check_states(variable, list(dict.fromkeys(frame[variable].to_list())) if is_long else others)
    cells = [frame[name].to_list() for name in parents]
    # Without parents zip yields nothing, but each row of the frame is at the position () of the table.
    positions = [_row_position(variable, row, parents) for row in zip(*cells, strict=True)] or [()] * len(frame)
    read = _from_long if is_long else _from_wide
    return read(variable, frame, states, parents, positions)


def _from_long(
    variable: str,
    frame: nw.DataFrame[Any],
    states: States,
    parents: Mapping[str, States],
    positions: list[tuple[int, ...]],
) -> CPT:
    """Read a frame with one row per cell of the table."""
    titles = [name for name in frame.columns if name not in parents and name != variable]
    if len(titles) != 1:
        raise ValueError(
            f"the table of {variable!r} has the columns {', '.join(frame.columns)}; besides {variable!r} and its "
            "parents exactly one is needed, the probability"
        )
    table = _empty_table(parents, states)
    for position, state, p in zip(positions, frame[variable].to_list(), frame[titles[0]].to_list(), strict=True):
        cell = (*position, state_code(variable, state, states))
        if not np.isnan(table[cell]):
            raise _twice(variable, {**parents, variable: states}, cell)
        table[cell] = _number(variable, p)
    return _complete(variable, states, parents, table)


def _from_wide(
    variable: str,
    frame: nw.DataFrame[Any],
    states: States,
    parents: Mapping[str, States],
    positions: list[tuple[int, ...]],
) -> CPT:
    """Read a frame with one row per configuration of the parents and one column per state."""
    if len(set(positions)) < len(positions):
        raise _twice(variable, parents, next(position for position in positions if positions.count(position) > 1))
    codes = {str(state): code for code, state in enumerate(states)}
    table = _empty_table(parents, states)
    for title in frame.columns:
        if title in parents:
            continue
        if title not in codes:
            raise ValueError(f"{variable!r} has no state {title!r}; {closest(title, states)}")
        for position, p in zip(positions, frame[title].to_list(), strict=True):
            table[(*position, codes[title])] = _number(variable, p)
    return _complete(variable, states, parents, table)


def _empty_table(parents: Mapping[str, States], states: States) -> Array:
    """Return a table of NaN, which marks the cells that are not filled yet."""
    return np.full((*map(len, parents.values()), len(states)), np.nan)


def _twice(variable: str, states: Mapping[str, States], position: tuple[int, ...]) -> ValueError:
    where = f" for {state_by_state(states, position)}" if states else ""
    return ValueError(f"the table of {variable!r} has two rows{where}; leave one out")


def _number(variable: str, p: Any) -> float:
    try:
        return as_number(p) if isinstance(p, str) else float(p)
    except (TypeError, ValueError):
        raise ValueError(f"the table of {variable!r} holds {p!r}; probabilities are numbers from 0 to 1") from None


def _complete(variable: str, states: States, parents: Mapping[str, States], table: Array) -> CPT:
    """Return the table as a CPT; ValueError if a cell was never filled."""
    absent = np.argwhere(np.isnan(table))
    if len(absent):
        where = state_by_state({**parents, variable: states}, absent[0])
        raise ValueError(f"the table of {variable!r} has no probability for {where}; give one for every state")
    return CPT(variable, states, parents, table)
