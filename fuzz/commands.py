"""Run a command of the command line in this process, and judge how it ends."""

from __future__ import annotations

import io
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

from fuzz.target import ACCEPTED, refuses
from posteriori.cli import REFUSED, main

_LONGEST = 2000  # characters of a sentence; a name of a column may be long


@contextmanager
def strict_inside(folder: Path) -> Iterator[None]:
    """Work in a folder, with warnings of numerical code and exceptions nobody foresaw raised rather than printed."""
    before, debug = Path.cwd(), os.environ.get("POSTERIORI_DEBUG")
    os.environ["POSTERIORI_DEBUG"] = "1"
    os.chdir(folder)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            yield
    finally:
        os.chdir(before)
        if debug is None:
            del os.environ["POSTERIORI_DEBUG"]
        else:
            os.environ["POSTERIORI_DEBUG"] = debug


def run_command(arguments: Sequence[str]) -> str:
    """Run a command and return whether its input was accepted or refused.

    Raises
    ------
    AssertionError
        The exit code is not 0 or 2, or stderr holds anything but warnings, a notice that kernels compile and, at exit
        code 2, one sentence.
    Exception
        Whatever the command line did not foresee.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    expected = ("warning: ", "compiling ")  # the latter where no machine code is cached
    lines = [line for line in err.getvalue().splitlines() if not line.startswith(expected)]
    if code not in (0, REFUSED) or len(lines) != (1 if code else 0):
        raise AssertionError(f"{arguments!r} ended with {code} and {err.getvalue()!r}")
    if not code:
        return ACCEPTED
    sentence = lines[0].removeprefix("error: ")
    if sentence == lines[0] or len(sentence) > _LONGEST:
        raise AssertionError(f"{arguments!r} is refused with {lines[0]!r}")
    return refuses(sentence)
