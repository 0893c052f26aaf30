"""Compile kernels with Numba. Nothing else imports Numba: it takes half a second, and a built package has none."""

from __future__ import annotations

import hashlib
import importlib
import os
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import numba
import numpy as np

from posteriori.kernels.machine import signatures

_LOOPS = Path(__file__).parents[1] / "loops"
_config: Any = numba.config
types: Any = numba.types  # Numba does not annotate them


def dispatcher(
    loop: Callable[..., Any],
    fastmath: bool | set[str],
    is_part: bool = False,
    is_called_from_python: bool = False,
    is_kept: bool = False,
) -> Any:
    """Return the function that Numba compiles for each combination of types, which has compiled none yet.

    Each kernel holds its parts (`forceinline`). Otherwise it would run the machine code of whichever kernel was loaded
    first and has the same part, which rounds in another way: results would depend on what was compiled or run before.
    """
    importlib.import_module("posteriori.kernels.machine.vectors")
    options: dict[str, Any] = {"nogil": True, "fastmath": fastmath, "error_model": "numpy"}
    options |= {"no_cfunc_wrapper": True, "no_cpython_wrapper": not is_called_from_python}  # a seventh of the time
    return numba.njit(loop, forceinline=is_part, cache=is_kept, **options)


def compiled_here(name: str, loop: Callable[..., Any], fastmath: bool | set[str]) -> Any:
    """Return a kernel that Numba has compiled for all its listed types, with code that is kept for other processes."""
    stated = _config.CACHE_DIR
    try:
        _config.CACHE_DIR = str(_folder(stated) or "")
        made = dispatcher(loop, fastmath, is_called_from_python=True, is_kept=True)
    except RuntimeError:  # no folder can be written to
        made = dispatcher(loop, fastmath, is_called_from_python=True)
    finally:
        _config.CACHE_DIR = stated
    for line in signatures.of_kernels()[name]:
        made.compile(numba_types(line))
    made.disable_compile()
    return made


def is_kept(made: Any) -> bool:
    """Return whether the code of a kernel is kept for later processes."""
    return made._cache.cache_path is not None


def stop_at_intermediate_code() -> None:
    """Let Numba make no machine code in this process, which is a sixth of its time: `building` has LLVM make it."""
    from numba.core import codegen, cpu

    first: Any = numba.njit(lambda: np.empty(1))
    first()  # what Numba itself needs is made as usual
    libraries, contexts = vars(codegen)["JITCodeLibrary"], vars(cpu)["CPUContext"]
    libraries._finalize_specific = lambda library: None
    # Numba knows a compiled function by the built-in function that calls it: a new one for each.
    contexts.get_executable = lambda context, library, *_: (library._ensure_finalized(), [].append)[1]


def numba_types(kinds: Sequence[signatures.Type]) -> tuple[Any, ...]:
    """Return types in Numba's own classes."""
    return tuple(map(_numba_type, kinds))


def _numba_type(kind: signatures.Type) -> Any:
    if isinstance(kind, signatures.TupleType):
        module, _, name = kind.of_class.rpartition(".")
        of_class = getattr(importlib.import_module(f"{signatures.PACKAGE}.{module}"), name)
        # Numba does not convert tuples: their members are as if they were written to (`signatures.converted`).
        return types.BaseTuple.from_types([_written(_numba_type(member)) for member in kind.members], of_class)
    number = getattr(types, "boolean" if kind.dtype.kind == "b" else kind.dtype.name)
    if isinstance(kind, signatures.NumberType):
        return number
    return types.Array(number, kind.n_axes, "C", readonly=not kind.is_written)


def _written(kind: Any) -> Any:
    return kind.copy(readonly=False) if isinstance(kind, types.Array) else kind


@cache
def _folder(stated: str) -> Path | None:
    """Return the folder for code of these sources; None where Numba has to find one.

    Numba keeps the code of a kernel until its own file changes. It does not see that a part in another file has
    changed, so the folder is named after all of them.
    """
    folder = Path(os.path.abspath(stated)) if stated else _LOOPS / "__pycache__"
    if not stated and not os.access(folder if folder.exists() else _LOOPS, os.W_OK):
        return None
    texts = (path.read_bytes() for of in (_LOOPS, Path(__file__).parent) for path in sorted(of.glob("*.py")))
    return folder / f"machine_code-{hashlib.sha256(b''.join(texts)).hexdigest()[:12]}"
