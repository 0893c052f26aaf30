"""Names of variables and states: looked up, and the nearest one suggested."""

from __future__ import annotations

import re
from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from posteriori.support.suggestions import closest, find_class
from posteriori.tables import Cell

States = tuple[Cell, ...]
T = TypeVar("T", bound=Hashable)
# As `Column.labels` writes bins.
_NUMBER = r"-?[0-9.]+(?:e[+-]?[0-9]+)?"
_INTERVAL = re.compile(rf"< (?P<high>{_NUMBER})|\[(?P<low>{_NUMBER}), (?P<most>{_NUMBER})\)|≥ (?P<least>{_NUMBER})")


def require_variable(name: Any, names: Collection[str]) -> None:
    """Raise ValueError unless the network has the variable."""
    if isinstance(name, list | tuple) and name and set(name) <= set(names):
        raise ValueError(f"{name!r} is a list of names, and one is wanted; give each as an argument of its own")
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"the network has no variable {name!r}; {closest(name, names)}")


def state_code(variable: str, state: Any, states: States) -> int:
    """Return the place of a state among those of its variable.

    A number stands for the interval that holds it, where the states are intervals such as "[39.2, 43.3)".

    Raises
    ------
    ValueError
        The variable has no such state.
    """
    if isinstance(state, np.generic):
        state = state.item()
    try:
        return states.index(state)
    except ValueError:
        held = interval_with(state, states)
        position = find_class(state, states) if held is None else held  # "1" is the state 1
        if position is not None:
            return position
        raise ValueError(f"{variable!r} has no state {state!r}; {closest(state, states)}") from None


def require_findings(what: str, findings: Any) -> None:
    """Raise TypeError unless findings, events or settings are a mapping from variable to state."""
    if not isinstance(findings, Mapping):
        example = f", {{{findings!r}: state}}" if isinstance(findings, str) else ""
        raise TypeError(f"{what} is {findings!r}; give it as a mapping from variable to state{example}")


def interval_with(number: Any, states: States) -> int | None:
    """Return the place of the interval that holds a number, where the states are those of a binned column."""
    if isinstance(number, bool) or not isinstance(number, int | float) or len(states) < 2:
        return None
    held = None
    for code, state in enumerate(states):
        found = _INTERVAL.fullmatch(state) if isinstance(state, str) else None
        if found is None:
            return None
        low, high = found["least"] or found["low"], found["most"] or found["high"]
        if (low is None or float(low) <= number) and (high is None or number < float(high)):
            held = code
    return held


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name, or several, as a tuple: a string is one name, never its letters."""
    try:
        return (names,) if isinstance(names, str) else tuple(names)
    except TypeError:
        raise TypeError(f"{names!r} is no name; give the name of a variable, or several in a list") from None


def state_by_state(states: Mapping[str, States], codes: Iterable[int]) -> str:
    """Write a configuration as a sentence does: smoke = 'yes', tub = 'no'."""
    names = (name if name.isprintable() else repr(name) for name in states)  # a line feed would end the sentence
    return ", ".join(
        f"{name} = {known[code]!r}" for name, known, code in zip(names, states.values(), codes, strict=True)
    )


def first_repeated(items: Iterable[T]) -> T:
    """Return the first item that an earlier one equals; StopIteration if all differ."""
    seen: set[T] = set()
    return next(item for item in items if item in seen or seen.add(item))  # type: ignore[func-returns-value]
