"""Look-ups of names and classes, with hints at the most similar known name, or the list of known names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from typing import Any

_MOST_LISTED = 8


def similar(name: Any, names: Iterable[Any], cutoff: float = 0.6) -> Any:
    """Return the most similar of the names, letter case ignored; None if no name is similar.

    Parameters
    ----------
    name : str, or a state of another type, which is compared as text
    names : iterable of the same
    cutoff : float
        The least similarity, from 0 to 1 (`difflib`).
    """
    folded = {str(other).casefold(): other for other in names}
    matches = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=cutoff)
    return folded[matches[0]] if matches else None


def closest(name: Any, names: Iterable[Any], kind: str = "") -> str:
    """Return a hint at the most similar name, or a list of the names if none is similar.

    Parameters
    ----------
    name, names :
        As in `similar`.
    kind : str
        What the names are, in the plural, such as "columns": the list is then "the columns are …" instead of
        "there are …".
    """
    known = list(names)
    match = similar(name, known)
    if match is not None:
        return f"did you mean {match!r}?"
    if not known:
        return "there is none"
    shown = ", ".join(map(repr, known[:_MOST_LISTED]))
    more = f" and {len(known) - _MOST_LISTED} more" if len(known) > _MOST_LISTED else ""
    if kind:
        return f"the {kind} are {shown}{more}"
    return f"there {'are' if len(known) > 1 else 'is'} {shown}{more}"


def find_class(label: Any, classes: Iterable[Any]) -> int | None:
    """Return the position of the class that a label equals or writes otherwise, such as '1' for 1.0; None for none.

    Two texts are compared as texts: '01' is not '1'.
    """
    known = list(classes)
    if label in known:
        return known.index(label)
    return next((k for k, one in enumerate(known) if _is_written_as(one, label)), None)


def class_index(label: Any, classes: Iterable[Any]) -> int:
    """Return the position of a class by its label, as `find_class` does; ValueError if it is not one of them."""
    known = list(classes)
    position = find_class(label, known)
    if position is None:
        raise ValueError(f"{label!r} is not a class; {closest(label, known, 'classes')}")
    return position


def _is_written_as(one: Any, label: Any) -> bool:
    if isinstance(one, str) and isinstance(label, str):
        return False
    if isinstance(one, bool):
        return str(one).lower() == str(label).lower()
    try:
        return Decimal(str(one)) == Decimal(str(label))
    except InvalidOperation:
        from posteriori.support.formatting import cell_text  # imported here: help is quick without NumPy

        return cell_text(one, None) == cell_text(label, None)
