"""A CPT from what a person states: an array, a mapping with named states, or a data frame."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import narwhals as nw
import numpy as np

from posteriori.networks.cpt import CPT, check_states
from posteriori.networks.decimals import as_number
from posteriori.networks.naming import States, state_by_state, state_code
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
        Of the variable; by default what is known of them, or the order in which they are stated.
    parents : sequence of str
        In the order of the axes, and of the states in a tuple that names a row.
    known : mapping from str to tuple of states
        Of the variables whose states are known, all parents among them.
    """
    own = known.get(variable) if states is None else check_states(variable, states)
    of_parents = {name: known[name] for name in parents}
    if isinstance(probabilities, Mapping):
        return _from_mapping(variable, probabilities, own, of_parents)
    frame = nw.from_native(probabilities, eager_only=True, pass_through=True)
    if isinstance(frame, nw.DataFrame):
        return _from_frame(variable, frame, own, of_parents)
    if own is None:
        raise ValueError(f"the states of {variable!r} are not known; name them: add_cpt({variable!r}, …, states=[…])")
    return CPT(variable, own, of_parents, probabilities)


def _from_mapping(variable: str, rows: Mapping[Any, Any], own: States | None, parents: Mapping[str, States]) -> CPT:
    if not parents:
        rows = {(): rows}
    if own is None:
        first = next(iter(rows.values()), None)
        if not isinstance(first, Mapping):
            raise ValueError(f"the states of {variable!r} are not known; write each row as a mapping from state to p")
        own = check_states(variable, list(first))
    table = np.full((*map(len, parents.values()), len(own)), np.nan)
    for key, row in rows.items():
        position = _row_place(variable, key, parents)
        if isinstance(row, Mapping):
            for state, p in row.items():
                table[(*position, state_code(variable, state, own))] = _number(variable, p)
        elif np.shape(row) != (len(own),):
            raise ValueError(
                f"the row {key!r} of the table of {variable!r} must have {len(own)} numbers; it is {row!r}"
            )
        else:
            table[position] = row
    return _complete(variable, own, parents, table)


def _row_place(variable: str, key: Any, parents: Mapping[str, States]) -> tuple[int, ...]:
    cells = key if isinstance(key, tuple) else (key,)
    if len(cells) != len(parents):
        raise ValueError(
            f"the row {key!r} of the table of {variable!r} must name a state of each of its parents: "
            f"({', '.join(parents)})"
        )
    return tuple(state_code(name, cell, states) for (name, states), cell in zip(parents.items(), cells, strict=True))


def _from_frame(variable: str, frame: nw.DataFrame[Any], own: States | None, parents: Mapping[str, States]) -> CPT:
    """Read a frame with one column per parent, and one per state or the variable and its probability."""
    for name in parents:
        if name not in frame.columns:
            raise ValueError(
                f"the table of {variable!r} lacks a column for its parent {name!r}; {closest(name, frame.columns)}"
            )
    others = [name for name in frame.columns if name not in parents]
    cells = [frame[name].to_list() for name in parents]
    long = variable in others
    if own is None:
        own = check_states(variable, list(dict.fromkeys(frame[variable].to_list())) if long else others)
    table = np.full((*map(len, parents.values()), len(own)), np.nan)
    positions = [_row_place(variable, tuple(row), parents) for row in zip(*cells, strict=True)] or [()] * len(frame)
    if long:
        (column,) = [name for name in others if name != variable] if len(others) == 2 else [None]
        if column is None:
            raise ValueError(
                f"the table of {variable!r} has the columns {', '.join(frame.columns)}; beside {variable!r} and its "
                "parents exactly one is needed, the probability"
            )
        for position, state, p in zip(positions, frame[variable].to_list(), frame[column].to_list(), strict=True):
            cell = (*position, state_code(variable, state, own))
            if not np.isnan(table[cell]):
                raise _twice(variable, {**parents, variable: own}, cell)
            table[cell] = _number(variable, p)
        return _complete(variable, own, parents, table)
    if len(set(positions)) < len(positions):
        raise _twice(variable, parents, next(position for position in positions if positions.count(position) > 1))
    titles = {str(state): state for state in own}
    for title in others:
        if title not in titles:
            raise ValueError(f"{variable!r} has no state {title!r}; {closest(title, own)}")
        for position, p in zip(positions, frame[title].to_list(), strict=True):
            table[(*position, own.index(titles[title]))] = _number(variable, p)
    return _complete(variable, own, parents, table)


def _twice(variable: str, states: Mapping[str, States], position: tuple[int, ...]) -> ValueError:
    where = f" for {state_by_state(states, position)}" if states else ""
    return ValueError(f"the table of {variable!r} has two rows{where}; leave one out")


def _number(variable: str, p: Any) -> float:
    try:
        return as_number(p) if isinstance(p, str) else float(p)
    except (TypeError, ValueError):
        raise ValueError(f"the table of {variable!r} holds {p!r}; probabilities are numbers from 0 to 1") from None


def _complete(variable: str, own: States, parents: Mapping[str, States], table: Array) -> CPT:
    absent = np.argwhere(np.isnan(table))
    if len(absent):
        where = state_by_state({**parents, variable: own}, absent[0])
        raise ValueError(f"the table of {variable!r} has no probability for {where}; state one for every state")
    return CPT(variable, own, parents, table)
