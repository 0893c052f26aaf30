"""Read a CPT from an array, a mapping with named states, or a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from posteriori.networks.graph.cpt import CPT, check_states
from posteriori.networks.graph.decimals import as_number
from posteriori.networks.graph.naming import States, state_by_state, state_code
from posteriori.suggestions import closest
from posteriori.typing import Array


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
