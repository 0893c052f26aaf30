"""Names of variables and states: looked up, and the nearest one suggested."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from typing import Any, TypeVar

import numpy as np

from posteriori.suggestions import closest
from posteriori.tables import Cell

States = tuple[Cell, ...]
T = TypeVar("T", bound=Hashable)


def require_variable(name: Any, names: Collection[str]) -> None:
    """Raise ValueError unless the network has the variable."""
    if not isinstance(name, str) or name not in names:
        raise ValueError(f"the network has no variable {name!r}; {closest(name, names)}")


def state_code(variable: str, state: Any, states: States) -> int:
    """Return the place of a state among those of its variable.

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
        raise ValueError(f"{variable!r} has no state {state!r}; {closest(state, states)}") from None


def as_names(names: str | Iterable[str]) -> tuple[str, ...]:
    """Return one name, or several, as a tuple: a string is one name, never its letters."""
    return (names,) if isinstance(names, str) else tuple(names)


def state_by_state(states: Mapping[str, States], codes: Iterable[int]) -> str:
    """Write a configuration as a sentence does: smoke = 'yes', tub = 'no'."""
    return ", ".join(f"{name} = {known[code]!r}" for (name, known), code in zip(states.items(), codes, strict=True))


def first_repeated(items: Iterable[T]) -> T:
    """Return the first item that an earlier one equals; StopIteration if all differ."""
    seen: set[T] = set()
    return next(item for item in items if item in seen or seen.add(item))  # type: ignore[func-returns-value]
