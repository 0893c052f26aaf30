"""Messages on stderr: one sentence per error, one line per warning, nothing from the threads of other libraries."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from posteriori.support.compilation import notified


class UserError(Exception):
    """An error in the input; the message is one sentence for the user."""


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Turn ValueError and TypeError into UserError. Use it only around calls of the library."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise UserError(one_line(str(error))) from error


def sentence_of(error: Exception) -> str:
    """Return the message for the user about unsuitable input, a file that cannot be used, or exhausted memory."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table and as many classes"
    if isinstance(error, OSError) and error.strerror:
        named = f"cannot use {os.fspath(error.filename)!r}: " if error.filename else ""
        return one_line(f"{named}{error.strerror.lower()}")
    return one_line(str(error))


def one_line(text: str) -> str:
    """Return the text on one line: each run of white space becomes one space."""
    return " ".join(text.split())


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings to users as ``warning: …``, each message once."""
    printed: set[str] = set()

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        warn(str(message), printed)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = show
        yield


def warn(message: str, printed: set[str] | None = None) -> None:
    """Print one line to stderr, unless it is in `printed`; add it there."""
    line = one_line(message)
    if printed is None or line not in printed:
        print(f"warning: {line}", file=sys.stderr)
    if printed is not None:
        printed.add(line)


def note(message: str) -> None:
    """Print one line to stderr on what a command does without being asked."""
    print(f"note: {one_line(message)}", file=sys.stderr)


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Print one line to stderr when the first kernel is compiled; print nothing if all kernels are in the cache."""
    pending = ["compiling (once per machine; up to a minute, longer on a busy machine)"]

    def announce() -> None:
        with contextlib.suppress(IndexError):  # another thread was first
            print(pending.pop(), file=sys.stderr)

    with notified(announce):
        yield


@contextmanager
def quiet_threads() -> Iterator[None]:
    """Redirect the stderr of polars to nowhere: its threads print messages that it also raises as exceptions.

    Python itself still writes to stderr.
    """
    try:
        kept = os.dup(2)
    except OSError:  # this process has no stderr
        yield
        return
    nowhere = os.open(os.devnull, os.O_WRONLY)
    python = sys.stderr
    try:
        if python is sys.__stderr__:
            sys.stderr = open(kept, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
        os.dup2(nowhere, 2)
        yield
    finally:
        if python is sys.__stderr__:
            sys.stderr.flush()
            sys.stderr = python
        os.dup2(kept, 2)
        os.close(nowhere)
        os.close(kept)
