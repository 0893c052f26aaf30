"""The decorator of kernels: a loop runs as machine code, compiled by Numba, or as plain Python.

A package that was built with a compiler comes with machine code (`building.py`), and needs no Numba. Without it, as in
an editable installation, Numba compiles a kernel when it is first called, and keeps the code for later processes.
Without either, loops run as plain Python: right, but a hundred times slower.
"""

from __future__ import annotations

import functools
import importlib
import importlib.util
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from posteriori.kernels.machine import signatures
from posteriori.user_warnings import warn

# Sums may be reordered (which lets them vectorise), but NaN and infinity keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}

_preparing = threading.RLock()


class Kernel:
    """A serial loop that releases the GIL once it is compiled.

    Parameters
    ----------
    loop : callable
        Arrays in, arrays out.
    fastmath : bool or set of str
        What the compiler may assume of arithmetic.
    is_part : bool
        Whether only other kernels call the loop; then a call from Python comes from a loop that is not compiled.
    """

    def __init__(self, loop: Callable[..., Any], fastmath: bool | set[str] = False, is_part: bool = False) -> None:
        functools.update_wrapper(self, loop)
        self.name = f"{loop.__module__.rpartition('.')[2]}.{loop.__name__}"
        self.loop, self.fastmath, self.is_part = loop, fastmath, is_part
        self._run: Callable[..., Any] | None = loop if is_part else None
        self._is_plain = is_part

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop.

        Warns
        -----
        UserWarning
            The arguments are of no listed types, and cannot be converted to some without loss (`signatures`): the loop
            runs as plain Python.
        """
        run = self._run or self._prepared()
        try:
            return run(*arguments)
        except TypeError:
            if self._is_plain:
                raise
            if (converted := signatures.converted(self.name, arguments)) is None:
                line = signatures.line_of(self.name, arguments)[:500]
                warn(f"there is no machine code for {line}: it runs as plain Python, which is slow; please report this")
                return _in_plain_python(self.loop, *arguments)
        result = run(*converted)
        signatures.write_back(self.name, converted, arguments)
        return result

    def _prepared(self) -> Callable[..., Any]:
        with _preparing:
            if self._run is None:
                if (code := machine_code()) is not None:
                    self._run = code[self.name]
                elif has_numba():
                    from posteriori.kernels.machine import numba_compiler

                    self._run = compiled = numba_compiler.compiled_here(self.name, self.loop, self.fastmath)
                    if not compiled.stats.cache_hits:
                        _say_that_code_is_compiled(numba_compiler.is_kept(compiled))
                else:
                    _say_that_nothing_is_compiled()
                    self._run, self._is_plain = functools.partial(_in_plain_python, self.loop), True
            return self._run

    @property
    def _numba_type_(self) -> Any:
        """The type by which Numba calls this kernel from another one."""
        return self._dispatcher._numba_type_

    @functools.cached_property
    def _dispatcher(self) -> Any:
        from posteriori.kernels.machine import numba_compiler

        return numba_compiler.dispatcher(self.loop, self.fastmath, self.is_part)


def kernel(loop: Callable[..., Any] | None = None, *, fastmath: bool | set[str] = False, is_part: bool = False) -> Any:
    """Make a loop a `Kernel`."""

    def decorate(loop: Callable[..., Any]) -> Kernel:
        return Kernel(loop, fastmath, is_part)

    return decorate if loop is None else decorate(loop)


def kernel_of(name: str) -> Kernel:
    """Return the kernel with a name, such as ``bayes.normalise``."""
    module, _, loop = name.partition(".")
    kernel: Kernel = getattr(importlib.import_module(f"{signatures.PACKAGE}.{module}"), loop)
    return kernel


@functools.cache
def machine_code() -> dict[str, Callable[..., Any]] | None:
    """Return the kernels that came with the package as machine code, by their names, or None."""
    if _way() not in ("", "package") or importlib.util.find_spec("posteriori.kernels._machine_code") is None:
        return None
    try:
        kernels: dict[str, Callable[..., Any]] = importlib.import_module("posteriori.kernels._machine_code").kernels
    except (ImportError, SystemError) as error:
        warn(f"posteriori does not use the machine code that it came with, because {error}")
        return None
    return kernels


@functools.cache
def has_numba() -> bool:
    """Return whether Numba is installed."""
    return _way() in ("", "numba") and importlib.util.find_spec("numba") is not None


@functools.cache
def _way() -> str:
    """Return the only way in which kernels may run here: package, numba or python; empty for the first that can."""
    way = os.environ.get("POSTERIORI_KERNELS", "")
    needed = {"package": "posteriori.kernels._machine_code", "numba": "numba", "python": "posteriori", "": "posteriori"}
    if way not in needed:
        raise ValueError(f"POSTERIORI_KERNELS is {way!r}; it has to be package, numba or python")
    if importlib.util.find_spec(needed[way]) is None:
        raise ImportError(f"POSTERIORI_KERNELS is {way!r}, but {needed[way]} is not installed")
    return way


@functools.cache
def _say_that_code_is_compiled(is_kept: bool) -> None:
    why = Path(__file__).with_name("no_machine_code.txt")  # of a build that failed
    reason = f", because {why.read_text('utf-8')}" if why.exists() else ""
    warn(
        f"this posteriori was installed without machine code{reason}; Numba compiles each kernel when it is first "
        "used, which takes seconds"
        + ("" if is_kept else ", in every process: let NUMBA_CACHE_DIR name a folder that you can write to")
    )


@functools.cache
def _say_that_nothing_is_compiled() -> None:
    if _way() != "python":
        warn("posteriori runs its loops as plain Python, which is some hundred times slower; pip install numba")


def _in_plain_python(loop: Callable[..., Any], *arguments: Any) -> Any:
    with np.errstate(all="ignore"):  # as machine code
        return loop(*arguments)
