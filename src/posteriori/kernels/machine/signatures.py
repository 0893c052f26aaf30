"""The types with which kernels are compiled: `signatures.txt` lists them, one call per line.

A line is an expression such as ``bayes.log_evidence(float64[:, ::1], float64[::1])``: the module, the kernel and the
types of its arguments. All arrays are C-contiguous. One that the kernel only reads is ``const(...)``; another one has
to be writable. A tuple has the class by which Numba knows its members, as in ``elimination.Families(...)``. Kernels
that only other kernels call are left out: they are compiled with those that call them.

The list is closed. An array of another type, order of bytes or layout is converted to the first line to which NumPy
casts it safely, and what is written is copied back; where there is none, the loop runs as plain Python, and
a warning names the line that lacks.
"""

from __future__ import annotations

import ast
import functools
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np

PACKAGE = "posteriori.kernels.loops"
LIST = Path(__file__).with_name("signatures.txt")


class ArrayType(NamedTuple):
    """A C-contiguous array: what it holds, its axes, and whether the kernel writes to it."""

    dtype: np.dtype[Any]
    n_axes: int
    is_written: bool


class NumberType(NamedTuple):
    """A number or a truth value."""

    dtype: np.dtype[Any]


class TupleType(NamedTuple):
    """A tuple, and the name of its class as ``module.Class``."""

    members: tuple[Type, ...]
    of_class: str


Type: TypeAlias = ArrayType | NumberType | TupleType


def listed() -> list[str]:
    """Return the lines of the list."""
    return LIST.read_text("utf-8").splitlines()


def read_line(line: str) -> tuple[str, tuple[Type, ...]]:
    """Return the name of the kernel of a line, and the types of its arguments.

    Raises
    ------
    ValueError
        The line is not a kernel with the types of its arguments.
    """
    try:
        call = ast.parse(line, mode="eval").body
    except SyntaxError:
        call = None
    if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
        raise ValueError(f"{LIST.name}: {line!r} is not a kernel with the types of its arguments")
    return ast.unparse(call.func), tuple(map(_read, call.args))


@functools.cache
def of_kernels() -> dict[str, list[tuple[Type, ...]]]:
    """Return the types of the arguments of each kernel, line by line."""
    of_names = defaultdict(list)
    for name, types in map(read_line, listed()):
        of_names[name].append(types)
    return dict(of_names)


def line_of(name: str, arguments: Sequence[Any]) -> str:
    """Return a call as a line of the list, in which arrays are written to: what a new line begins with."""
    return f"{name}({', '.join(map(_named, arguments))})"


def _named(argument: Any) -> str:
    if isinstance(argument, tuple):
        of_class = f"{type(argument).__module__.rpartition('.')[2]}.{type(argument).__name__}"
        return f"{of_class}({', '.join(map(_named, argument))})"
    if isinstance(argument, np.ndarray):
        return f"{argument.dtype}[{', '.join([':'] * (argument.ndim - 1) + ['::1'])}]"
    return str(np.asarray(argument).dtype)


def written(types: Iterable[Type]) -> str:
    """Return types as a text that machine code reads (`module.c`)."""
    return "".join(map(_written, types))


def converted(name: str, arguments: Sequence[Any]) -> tuple[Any, ...] | None:
    """Return the arguments of a call as the types of the first line that takes them; None if none does."""
    for types in of_kernels().get(name, ()):
        new = tuple(_convert(types, arguments))
        if len(new) == len(types) == len(arguments):
            return new if any(a is not b for _, a, b in _arrays(types, new, arguments)) else None
    return None


def write_back(name: str, converted: Sequence[Any], arguments: Sequence[Any]) -> None:
    """Copy what a kernel wrote to converted arrays to those of the call."""
    for types in of_kernels()[name]:
        if len(tuple(_convert(types, converted))) == len(types):
            for kind, new, old in _arrays(types, converted, arguments):
                if kind.is_written and new is not old:
                    old[...] = new
            return


def _arrays(types: Sequence[Type], left: Sequence[Any], right: Sequence[Any]) -> Iterator[tuple[ArrayType, Any, Any]]:
    for kind, a, b in zip(types, left, right, strict=True):
        if isinstance(kind, TupleType):
            yield from _arrays(kind.members, a, b)
        elif isinstance(kind, ArrayType):
            yield kind, a, b


def _convert(types: Sequence[Type], arguments: Sequence[Any], how: Any = ("C", "A")) -> Iterator[Any]:
    """Yield arguments as some types; end before the first one that is not possible."""
    for kind, value in zip(types, arguments, strict=False):
        if isinstance(kind, TupleType):
            members = tuple(_convert(kind.members, value, ("C", "A", "W"))) if isinstance(value, tuple) else ()
            if len(members) != len(kind.members) or len(members) != len(value):
                return
            yield type(value)(*members) if hasattr(value, "_fields") else members
        elif isinstance(kind, NumberType):
            if not np.can_cast(np.asarray(value).dtype, kind.dtype, "same_kind"):
                return
            yield value
        else:
            if not isinstance(value, np.ndarray) or value.ndim != kind.n_axes:
                return
            if not np.can_cast(value.dtype, kind.dtype, "equiv" if kind.is_written else "safe"):
                return
            if kind.is_written and not value.flags.writeable:
                return
            yield np.require(value, kind.dtype, how)


def _written(kind: Type) -> str:
    if isinstance(kind, TupleType):
        return f"({written(kind.members)})"
    code = f"{kind.dtype.kind}{kind.dtype.itemsize}"
    return f"S{code}" if isinstance(kind, NumberType) else f"{'RW'[kind.is_written]}{kind.n_axes}{code}"


def _read(node: ast.expr) -> Type:
    if isinstance(node, ast.Name):
        return NumberType(_dtype(node.id))
    if isinstance(node, ast.Subscript):
        axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        return ArrayType(_dtype(ast.unparse(node.value)), len(axes), True)
    if isinstance(node, ast.Call):
        members = tuple(map(_read, node.args))
        if isinstance(node.func, ast.Attribute):
            return TupleType(members, ast.unparse(node.func))
        if ast.unparse(node.func) == "const" and len(members) == 1 and isinstance(members[0], ArrayType):
            return members[0]._replace(is_written=False)
    raise ValueError(f"{LIST.name}: {ast.unparse(node)} is no type of an argument")


def _dtype(name: str) -> np.dtype[Any]:
    try:
        return np.dtype(name)
    except TypeError:
        raise ValueError(f"{LIST.name}: {name} is no type of a number") from None
