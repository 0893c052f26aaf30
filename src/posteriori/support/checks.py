"""Checks of values, random states and draws, and of the fields of dataclasses, which may come from a crafted file."""

from __future__ import annotations

import copy
import dataclasses
import functools
import reprlib
import sys
import textwrap
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

import numpy as np

from posteriori.model_cost import Work
from posteriori.support.typing import Array

LARGEST = 1e150  # in magnitude, so that squares of differences are finite
LARGEST_SQUARE = 1e305  # so that sums of a few are finite
_PER_CELL = 1.5e-7  # seconds, measured at a million rows of 200 dependent columns within their ranges
_BYTES_PER_CELL = 24.0  # its draw, its place in the table, and a copy


def require(holds: bool | np.bool_, sentence: str) -> None:
    """Raise ValueError with this sentence unless it holds."""
    if not holds:
        raise ValueError(sentence)


@contextmanager
def within(place: str, after: str = "") -> Iterator[None]:
    """Let the errors of inconsistent content be ValueErrors that begin with the place, and end with `after`."""
    try:
        yield
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        known = isinstance(error, ValueError) and str(error)
        reason = textwrap.shorten(str(error) if known else repr(error), 400, placeholder=" …")
        raise ValueError(f"{place}: {reason}{after}") from None


def is_missing(cell: Any) -> bool:
    """Return whether a Python cell is None, NaN or pandas' NA or NaT."""
    if cell is None:
        return True
    try:
        return bool(cell != cell)
    except TypeError:  # pandas' NA has no truth value
        return True
    except ValueError:  # an array has many
        return False


def require_kind(value: Any, kind: type[Any]) -> None:
    """Raise ValueError unless a value is of this class."""
    if not isinstance(value, kind):
        raise ValueError(f"a {type(value).__name__} stands where a {kind.__name__} is expected")


def check_numbers(
    name: str,
    values: Array,
    shape: Sequence[int],
    low: float = -LARGEST,
    high: float = LARGEST,
) -> None:
    """Raise ValueError unless an array of float64 has this shape, and all its numbers are in range and no NaN.

    Parameters
    ----------
    name : str
        For the message.
    low, high : float
        The range, both ends included.
    """
    _check_shape(name, values, shape, np.dtype(np.float64))
    if not values.size:
        return
    least, most = float(values.min()), float(values.max())  # NaN if any is
    if not (low <= least and most <= high):
        raise ValueError(f"{name} holds numbers from {least:g} to {most:g}, which cannot be")


def check_places(name: str, values: Array, shape: Sequence[int], low: int, high: int) -> None:
    """Raise ValueError unless an array of int64 has this shape and its numbers are at least low and below high."""
    _check_shape(name, values, shape, np.dtype(np.int64))
    if values.size and not (low <= values.min() and values.max() < high):
        raise ValueError(f"{name} holds {values.min()} to {values.max()}, and the range is {low} to {high - 1}")


def check_equal(name: str, found: Any, expected: Any) -> None:
    """Raise ValueError unless two values, or two arrays of one type and shape, are equal."""
    if isinstance(expected, np.ndarray):
        _check_shape(name, found, expected.shape, expected.dtype)
        same = bool(np.array_equal(found, expected))
    else:
        same = found == expected
    if not same:
        raise ValueError(f"{name} does not agree with the columns of the model")


def check_share(name: str, share: float) -> None:
    """Raise ValueError unless a number is from 0 to 1."""
    require(0 <= share <= 1, f"{name} is {share}; it must be from 0 to 1")


def check_not_negative(name: str, number: float) -> None:
    """Raise ValueError if a number is negative or NaN, or a whole number too large for a float; infinity is allowed."""
    holds = number >= 0 and not (isinstance(number, int) and number > sys.float_info.max)
    require(holds, f"{name} is {reprlib.repr(number)}; it must be 0 or more, as a float")


def check_pseudo_count(name: str, number: float) -> None:
    """Raise ValueError if a number is negative, NaN, or so large that sums of it would overflow."""
    require(0 <= number <= LARGEST, f"{name} is {reprlib.repr(number)}; it must be from 0 to {LARGEST:g}")


def _check_shape(name: str, values: Array, shape: Sequence[int], dtype: np.dtype[Any]) -> None:
    if values.shape != tuple(shape) or values.dtype != dtype:
        raise ValueError(
            f"{name} is of shape {values.shape} and type {values.dtype}, and has to be of {tuple(shape)} and {dtype}"
        )


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
            hint = get_type_hints(kind)[name]
            raise ValueError(
                f"{name!r} of a {kind.__name__} is {reprlib.repr(value)}, of type {type(value).__name__}; "
                f"it must be of type {hint.__name__ if isinstance(hint, type) else hint}"
            )


def check_dataclass(value: Any) -> None:
    """Raise ValueError if a field of a dataclass, or of one that it holds, has a wrong type or is out of its range.

    These are the checks of a model file when it is loaded, so a file gives back what passes.
    """
    fields = {field.name: _checked(getattr(value, field.name)) for field in dataclasses.fields(value)}
    check_fields(type(value), fields)
    if hasattr(value, "check"):
        loaded = copy.copy(value)
        for name, item in fields.items():
            object.__setattr__(loaded, name, item)
        loaded.check()


def _checked(value: Any) -> Any:
    """Return a value as a model file gives it back, with the scalars of Python; check the dataclasses that it holds."""
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, tuple | list):
        return (tuple if isinstance(value, tuple) else list)(map(_checked, value))
    if isinstance(value, dict):
        return {_checked(key): _checked(item) for key, item in value.items()}
    if dataclasses.is_dataclass(value):
        check_dataclass(value)
    return value


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


def generator(random_state: Any) -> np.random.Generator:
    """Return a random generator.

    Parameters
    ----------
    random_state : None, int, Generator, SeedSequence, BitGenerator or RandomState
        A Generator is returned as it is. A RandomState, or the module ``numpy.random``, draws the seed.

    Raises
    ------
    ValueError
        It is of another type, or a negative number.
    """
    from sklearn.utils import check_random_state  # a scorer has no scikit-learn

    seeds = int | np.integer | np.random.Generator | np.random.SeedSequence | np.random.BitGenerator
    if random_state is None or isinstance(random_state, seeds):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def check_draw(n: Any, n_columns: int) -> int:
    """Return the number of rows to draw.

    Raises
    ------
    ValueError
        It is not a whole number, is below 1, or the draw would exceed the limits of `Work`.
    """
    if isinstance(n, bool | np.bool_) or not isinstance(n, int | np.integer):
        raise ValueError(f"n is {n!r}; give the number of rows to draw as a whole number")
    if n < 1:
        raise ValueError(f"n is {n}; draw at least one row")
    n_cells = float(min(int(n) * max(n_columns, 1), 1 << 60))  # a float holds it
    work = Work(n_cells * _PER_CELL, n_cells * _BYTES_PER_CELL)
    work.announce(f"the draw of {n:,} rows of {n_columns:,} columns", "draw fewer rows at a time")
    return int(n)
