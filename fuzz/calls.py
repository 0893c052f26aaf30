"""Calls of the kernels' machine code of which something is not of the listed types: each has to be refused.

An input is a hundred calls. Each takes the arguments of a line of `signatures.txt`, and changes their number or one of
them: its type, axes, order, order of bytes, alignment, lengths or members, or it is no array. Where the package has no
machine code, there is nothing to call.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.tables import Rng
from fuzz.target import Target
from posteriori.kernels.machine import signatures
from posteriori.kernels.machine.compiling import machine_code

_CALLS = 100
_WHOLE = [f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)]
_TYPES = [np.dtype(name) for name in (*_WHOLE, "?", "f4", "f8", ">f8", ">i4", "c16", "U3", "O", "M8[us]", "f4,i4")]
_NO_ARRAYS = (None, "text", b"bytes", 1.5, 7, True, [1.0, 2.0], {}, np.float64(1), np.bool_(1), 2**70, -1, 1j)
_OTHERS = (*_NO_ARRAYS, np.ma.array([1.0]))


def run(rng: Rng, folder: Path) -> bool:
    """Call kernels with wrong arguments; raise AssertionError if one is accepted."""
    if (code := machine_code()) is None:
        return False
    lines = list(map(signatures.read_line, signatures.listed()))
    for _ in range(_CALLS):
        name, types = lines[rng.integers(len(lines))]
        given = _wrong(rng, types)
        if any(_all_right(one, given) for one in signatures.of_kernels()[name]):
            continue  # of another line: its arrays fit no other, and kernels do not check lengths
        try:
            code[name](*given)
        except (TypeError, OverflowError):
            continue
        raise AssertionError(f"{name} took {given}")
    return True


def _wrong(rng: Rng, types: Sequence[signatures.Type]) -> list[Any]:
    given = [_right(rng, kind) for kind in types]
    how = rng.integers(12)
    if how == 0:
        return given[: rng.integers(len(given))]
    if how == 1:
        return [*given, given[0]]
    position = int(rng.integers(len(given)))
    given[position] = _changed(rng, types[position], given[position])
    return given


def _right(rng: Rng, kind: signatures.Type) -> Any:
    if isinstance(kind, signatures.TupleType):
        return tuple(_right(rng, member) for member in kind.members)
    if isinstance(kind, signatures.NumberType):
        return kind.dtype.type(1).item()
    return np.zeros(rng.integers(0, 3, kind.n_axes), kind.dtype)


def _changed(rng: Rng, kind: signatures.Type, right: Any) -> Any:
    if isinstance(kind, signatures.TupleType):
        how = rng.integers(4)
        if how < 3:
            return (right[:-1], (*right, right[0]), list(right))[how]
        place = int(rng.integers(len(right)))
        return (*right[:place], _changed(rng, kind.members[place], right[place]), *right[place + 1 :])
    if isinstance(kind, signatures.NumberType):
        wrong = [None, "1", [1], np.zeros(1), (1,), 1j, np.zeros(())]
        return wrong[rng.integers(len(wrong))]
    return next(one for one in _arrays(rng, kind) if not _is_right(kind, one))


def _arrays(rng: Rng, kind: signatures.ArrayType) -> Iterator[Any]:
    while True:
        shape = tuple(rng.integers(0, 4, rng.integers(0, 6)))
        same = tuple(rng.integers(0, 4, kind.n_axes))
        locked, raw = np.zeros(same, kind.dtype), np.zeros(int(np.prod(same)) * kind.dtype.itemsize + 1, np.uint8)
        locked.flags.writeable = False
        choices = [
            _OTHERS[rng.integers(len(_OTHERS))],
            np.zeros(shape, kind.dtype),
            np.zeros(same, _TYPES[rng.integers(len(_TYPES))]),
            np.asfortranarray(np.zeros(same, kind.dtype)),
            np.zeros((*same[:-1], 2 * same[-1]), kind.dtype)[..., ::2],
            np.zeros(same, kind.dtype)[::-1],
            raw[1:].view(kind.dtype).reshape(same),
            locked,
        ]
        yield choices[rng.integers(len(choices))]


def _all_right(types: Sequence[signatures.Type], given: Sequence[Any]) -> bool:
    return len(types) == len(given) and all(map(_is_right, types, given))


def _is_right(kind: signatures.Type, given: Any) -> bool:
    if isinstance(kind, signatures.TupleType):
        return isinstance(given, tuple) and _all_right(kind.members, given)
    if isinstance(kind, signatures.NumberType):
        return isinstance(given, bool if kind.dtype.kind == "b" else (float, int) if kind.dtype.kind == "f" else int)
    return (
        isinstance(given, np.ndarray)
        and given.ndim == kind.n_axes
        and given.dtype == kind.dtype
        and given.flags.c_contiguous
        and given.flags.aligned
        and (given.flags.writeable or not kind.is_written)
    )


TARGET = Target("calls", run)
