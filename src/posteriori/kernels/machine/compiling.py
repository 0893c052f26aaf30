"""The decorator of kernels: loops that Numba compiles on first use, or that run as plain Python on few rows.

Importing Numba takes longer than scoring a row in plain Python, and a process that only scores may not have Numba at
all. So a kernel is one loop with two ways to run it.
"""

from __future__ import annotations

import functools
import importlib.util
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

# Sums may be reordered (which lets them vectorise), but NaN and infinity keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}

FEW_ROWS = 1000  # with more rows, importing Numba takes less time than plain Python

_making = threading.RLock()
has_numba = importlib.util.find_spec("numba") is not None
_numba_in_use = False


def use_numba() -> None:
    """Run every kernel compiled from now on, whatever the number of rows.

    Raises
    ------
    ImportError
        Numba is not installed.
    """
    global _numba_in_use
    if not has_numba:
        raise ImportError("compiled loops need Numba, which is not installed; pip install numba, or run without it")
    _numba_in_use = True


def runs_compiled(n_rows: int) -> bool:
    """Return whether kernels with a form for few rows run compiled for so many rows."""
    return _numba_in_use or (has_numba and n_rows > FEW_ROWS)


class Kernel:
    """A serial loop that releases the GIL once it is compiled.

    Parameters
    ----------
    loop : callable
        Arrays in, arrays out; the first argument has one entry per row.
    fastmath : bool or set of str
        What Numba may assume of arithmetic.
    few_rows : callable, optional
        A function with the same results for few rows, without Numba: the loop itself or NumPy operations.
    is_part : bool
        Whether only other kernels call the loop; then a call from Python comes from a loop that is not compiled.
    work : callable, optional
        What a call in plain Python costs, as a number of rows: a function of the arguments. Default: the rows.
    """

    def __init__(
        self,
        loop: Callable[..., Any],
        fastmath: bool | set[str] = False,
        few_rows: Callable[..., Any] | None = None,
        is_part: bool = False,
        work: Callable[..., float] | None = None,
    ) -> None:
        functools.update_wrapper(self, loop)
        self._loop = loop
        self._fastmath = fastmath
        self._few_rows = few_rows or (None if has_numba else loop)
        self._work = work or (lambda *arguments: len(arguments[0]))
        self.is_part = is_part
        self._compiled: Callable[..., Any] | None = None

    def __call__(self, *arguments: Any) -> Any:
        """Run the loop: compiled, or in plain Python if the rows are few and Numba is not in use yet."""
        if self.is_part:
            return self._loop(*arguments)
        if self._few_rows is not None and not _numba_in_use and not (has_numba and self._work(*arguments) > FEW_ROWS):
            with np.errstate(all="ignore"):  # as Numba
                return self._few_rows(*arguments)
        return (self._compiled or self.compiled)(*arguments)

    @property
    def compiled(self) -> Any:
        """The function that Numba compiles. From its first use on, Numba is in use.

        Raises
        ------
        TypeError
            Only other kernels call the loop: a part has no entry for calls from Python.
        """
        if self.is_part:
            raise TypeError(f"{self.__name__} is a part of kernels; compile a kernel that calls it")  # type: ignore[attr-defined]
        return self._dispatcher

    @property
    def _dispatcher(self) -> Any:
        with _making:
            if self._compiled is None:
                from posteriori.kernels.machine import numba_compiler

                self._compiled = numba_compiler.compiled(self._loop, self._fastmath, self.is_part)
                use_numba()
            return self._compiled

    @property
    def is_compiled(self) -> bool:
        """Whether this process has used the compiled loop."""
        return self._compiled is not None

    @property
    def _numba_type_(self) -> Any:
        """The type by which Numba calls this kernel from another one."""
        return self._dispatcher._numba_type_


def kernel(
    loop: Callable[..., Any] | None = None,
    *,
    fastmath: bool | set[str] = False,
    few_rows: Callable[..., Any] | bool = False,
    is_part: bool = False,
    work: Callable[..., float] | None = None,
) -> Any:
    """Make a loop a `Kernel`; `few_rows=True` lets the loop itself run on few rows in plain Python."""

    def decorate(loop: Callable[..., Any]) -> Kernel:
        few = (loop if few_rows else None) if isinstance(few_rows, bool) else few_rows
        return Kernel(loop, fastmath, few, is_part, work)

    return decorate if loop is None else decorate(loop)
