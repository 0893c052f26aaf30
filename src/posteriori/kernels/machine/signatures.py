"""The signatures with which kernels are compiled: `signatures.txt` lists them, one per line.

A line is an expression such as ``bayes.normalise(float64[:, ::1], float64[::1])``: the module, the kernel and the types
of its arguments, in the notation of Numba. A named tuple has its class, as in ``elimination.Families(...)``, and an
array that cannot be written to is ``const(...)``. Kernels that only other kernels call, and the constants of such
calls, are left out: they are compiled with those that call them.
"""

from __future__ import annotations

import ast
import importlib
import pkgutil
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numba

from posteriori.kernels.machine.compiling import Kernel

_PACKAGE = "posteriori.kernels.loops"
types: Any = numba.types  # Numba does not annotate all of them
LIST = Path(__file__).with_name("signatures.txt")


def listed() -> list[str]:
    """Return the lines of the list."""
    return LIST.read_text("utf-8").splitlines()


def read_line(line: str) -> tuple[Kernel, tuple[Any, ...]]:
    """Return the kernel of a line, and the types of its arguments.

    Raises
    ------
    ValueError
        The line is not a kernel with the types of its arguments.
    """
    call = ast.parse(line, mode="eval").body
    if not isinstance(call, ast.Call):
        raise ValueError(f"{LIST.name}: {line!r} is not a kernel with the types of its arguments")
    return _named(call.func), tuple(map(_read, call.args))


def write_line(kernel: Kernel, kinds: Iterable[Any]) -> str:
    """Return the line of a kernel and the types of its arguments."""
    return f"{_name(kernel)}({', '.join(map(_write, kinds))})"


def all_kernels() -> Iterator[Kernel]:
    """Yield every kernel."""
    for found in pkgutil.iter_modules(importlib.import_module(_PACKAGE).__path__, f"{_PACKAGE}."):
        for value in vars(importlib.import_module(found.name)).values():
            if isinstance(value, Kernel) and value.__module__ == found.name:
                yield value


def lines_of(kernels: Iterable[Kernel]) -> list[str]:
    """Return the lines of the signatures that kernels have in this process, sorted."""
    return sorted(
        write_line(kernel, signature)
        for kernel in kernels
        if kernel.is_compiled and not kernel.is_part and kernel.__module__.startswith(_PACKAGE)
        for signature in kernel.compiled.signatures
        if not any(isinstance(kind, types.Literal) for kind in signature)
    )


def _write(kind: Any) -> str:
    if isinstance(kind, types.Array):
        axes = [":"] * kind.ndim
        if kind.layout in "CF":
            axes[-1 if kind.layout == "C" else 0] = "::1"
        array = f"{kind.dtype}[{', '.join(axes)}]"
        return array if kind.mutable else f"const({array})"
    if isinstance(kind, types.BaseTuple):
        members = ", ".join(map(_write, kind.types))
        return f"{_name(kind.instance_class)}({members})" if hasattr(kind, "instance_class") else f"({members},)"
    return str(kind)


def _read(node: ast.expr) -> Any:
    if isinstance(node, ast.Name):
        return getattr(types, node.id)
    if isinstance(node, ast.Subscript):
        axes = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        is_dense = [isinstance(axis, ast.Slice) and axis.step is not None for axis in axes]
        return types.Array(_read(node.value), len(axes), "C" if is_dense[-1] else "F" if is_dense[0] else "A")
    if isinstance(node, ast.Tuple):
        return types.BaseTuple.from_types([_read(member) for member in node.elts])
    if isinstance(node, ast.Call):
        members = [_read(member) for member in node.args]
        if isinstance(node.func, ast.Name) and node.func.id == "const":
            return members[0].copy(readonly=True)
        return types.BaseTuple.from_types(members, _named(node.func))
    raise ValueError(f"{LIST.name}: {ast.unparse(node)} is no type of an argument")


def _name(thing: Any) -> str:
    return f"{thing.__module__.removeprefix(_PACKAGE + '.')}.{thing.__name__}"


def _named(node: ast.expr) -> Any:
    if not isinstance(node, ast.Attribute):
        raise ValueError(f"{LIST.name}: {ast.unparse(node)} is not a name in a module of kernels")
    return getattr(importlib.import_module(f"{_PACKAGE}.{ast.unparse(node.value)}"), node.attr)
