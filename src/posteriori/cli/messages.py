"""What goes to stderr: one sentence an error, one line a warning, and nothing of what threads of others say."""

from __future__ import annotations

import contextlib
import os
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from posteriori.compilation import notified


class UserError(Exception):
    """The input cannot be used; the message is a sentence for the user."""


@contextmanager
def as_user_errors() -> Iterator[None]:
    """Take what the library raises about its input for a refusal; around calls of the library only."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise UserError(one_line(str(error))) from error


def sentence_of(error: Exception) -> str:
    """Return what to tell the user of a refusal, a file that cannot be used, or exhausted memory."""
    if isinstance(error, MemoryError):
        return "there is not enough memory for this table and as many classes"
    if isinstance(error, OSError) and error.strerror:
        named = f"cannot use {os.fspath(error.filename)!r}: " if error.filename else ""
        return one_line(f"{named}{error.strerror.lower()}")
    return one_line(str(error))


def one_line(text: str) -> str:
    """Return the text with every run of white space, line ends among them, as one blank."""
    return " ".join(text.split())


@contextmanager
def one_line_warnings() -> Iterator[None]:
    """Print warnings to users as ``warning: …``, each message once."""
    said: set[str] = set()

    def show(message: Warning | str, *where: Any, **more: Any) -> None:
        warn(str(message), said)

    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.simplefilter("always", FutureWarning)  # a former name of a model or an option
        warnings.showwarning = show
        yield


def warn(message: str, said: set[str] | None = None) -> None:
    """Print one line to stderr, unless it has been said."""
    line = one_line(message)
    if said is None or line not in said:
        print(f"warning: {line}", file=sys.stderr)
    if said is not None:
        said.add(line)


@contextmanager
def announced_compilation() -> Iterator[None]:
    """Print one line to stderr when the first kernel is compiled; nothing if all of them are found in the cache."""
    unsaid = ["compiling (once per machine; up to 15 seconds)"]

    def announce() -> None:
        with contextlib.suppress(IndexError):  # another thread was first
            print(unsaid.pop(), file=sys.stderr)

    with notified(announce):
        yield


@contextmanager
def quiet_threads() -> Iterator[None]:
    """Keep polars off stderr: what its threads say of a damaged file comes as an exception as well.

    What Python writes to stderr gets there.
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
