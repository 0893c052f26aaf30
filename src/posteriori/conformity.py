"""Whether the fields of a dataclass hold what their annotations say: nothing else may come from a file."""

from __future__ import annotations

import dataclasses
import functools
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_Check = Callable[[Any], bool]
_SCALARS: dict[Any, set[type[Any]]] = {float: {float, int}, types.NoneType: {types.NoneType}, None: {types.NoneType}}
_SCALARS |= {kind: {kind} for kind in (int, bool, str)}


def check_fields(kind: Any, fields: Mapping[str, Any]) -> None:
    """Raise ValueError if a value is not of the type that the dataclass declares for its field."""
    checks = _checks(kind)
    for name, value in fields.items():
        check = checks.get(name)
        if check is None:
            raise ValueError(f"a {kind.__name__} has no field {name!r}")
        if not check(value):
            raise ValueError(f"{name!r} of a {kind.__name__} is a {type(value).__name__} of the wrong kind")


def conforms(value: Any, annotation: Any) -> bool:
    """Return whether a value is of an annotated type: a class, a union, a literal, a protocol, a container of these.

    A whole number is a float, and a boolean is neither. Of protocols only the names of the members are looked at.
    """
    return _check_of(annotation)(value)


@functools.cache
def _checks(kind: Any) -> dict[str, _Check]:
    hints = get_type_hints(kind)
    return {field.name: _check_of(hints[field.name]) for field in dataclasses.fields(kind)}


@functools.cache
def _check_of(hint: Any) -> _Check:
    origin, arguments = get_origin(hint), get_args(hint)
    if hasattr(origin, "__value__"):  # an alias made by a `type` statement: NDArray of NumPy 2.5 on Python 3.12
        origin = get_origin(origin.__value__) or origin.__value__
    scalars = _scalars(hint)
    if scalars is not None:
        return lambda value: type(value) in scalars
    if hint is Any:
        return lambda value: True
    if origin is Literal:
        return lambda value: any(type(value) is type(one) and value == one for one in arguments)
    if origin in (Union, types.UnionType):
        choices = [_check_of(one) for one in arguments]
        return lambda value: any(check(value) for check in choices)
    if origin is tuple and arguments[-1:] == (...,):
        return _check_of_items(tuple, arguments[0])
    if origin is list:
        return _check_of_items(list, arguments[0])
    if origin in (dict, Mapping):
        of_keys, of_values = (_check_of_items(list, one) for one in arguments)
        return lambda value: isinstance(value, dict) and of_keys(list(value)) and of_values(list(value.values()))
    if getattr(hint, "_is_protocol", False):
        members = [name for name in dir(hint) if not name.startswith("_")]
        return lambda value: not isinstance(value, type) and all(hasattr(type(value), name) for name in members)
    kind = origin or hint
    return lambda value: isinstance(value, kind)


def _check_of_items(container: type[Any], hint: Any) -> _Check:
    """Return the check of a container whose items are all of one annotated type."""
    scalars, check = _scalars(hint), _check_of(hint)

    def alike(items: Iterable[Any]) -> bool:
        return set(map(type, items)) <= scalars if scalars is not None else all(map(check, items))

    return lambda value: isinstance(value, container) and alike(value)


def _scalars(hint: Any) -> set[type[Any]] | None:
    """Return the classes of a scalar type or a union of such; None if the type is another."""
    if hint in _SCALARS:
        return _SCALARS[hint]
    if get_origin(hint) in (Union, types.UnionType):
        each = [_scalars(one) for one in get_args(hint)]
        if all(one is not None for one in each):
            return set().union(*(one for one in each if one is not None))
    return None
