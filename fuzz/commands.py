"""Run a command of the command line in this process, and judge how it ends."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from pathlib import Path

import polars as pl

from fuzz.target import UNDEFINED, check_posteriors, check_sentence
from posteriori.cli import REFUSED, main, messages

messages._PERIOD = 3600.0  # seconds between lines of progress, which a busy machine would print


@contextmanager
def working_in(folder: Path) -> Iterator[None]:
    """Work in a folder, with exceptions that nobody foresaw raised rather than printed."""
    before, debug = Path.cwd(), os.environ.get("POSTERIORI_DEBUG")
    os.environ["POSTERIORI_DEBUG"] = "1"
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
        os.environ.pop("POSTERIORI_DEBUG")
        if debug is not None:
            os.environ["POSTERIORI_DEBUG"] = debug


def run_command(arguments: Sequence[str]) -> bool:
    """Run a command and return whether its input was answered; False if it was refused."""
    return warned(arguments) is not None


def warned(arguments: Sequence[str]) -> list[str] | None:
    """Run a command and return its warnings; None if it was refused.

    Raises
    ------
    AssertionError
        The exit code is not 0 or 2, or stderr holds anything but warnings, a notice that kernels compile and, at exit
        code 2, one sentence; or what is printed as JSON is none.
    Exception
        Whatever the command line did not foresee.
    """
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main(list(arguments))
    expected = ("warning: ", "note: ")
    written = err.getvalue().split("\n")[:-1]
    lines = [line for line in written if not line.startswith(expected)]
    if code not in (0, REFUSED) or len(lines) != (1 if code else 0):
        raise AssertionError(f"{arguments!r} ended with {code} and {err.getvalue()!r}")
    if code:
        if not lines[0].startswith("error: "):
            raise AssertionError(f"{arguments!r} is refused with {lines[0]!r}")
        check_sentence(lines[0].removeprefix("error: "))
        return None
    if "--json" in arguments and out.getvalue().startswith("{"):
        json.loads(out.getvalue(), parse_constant=_no_constant)
    return written


def _no_constant(constant: str) -> None:
    raise AssertionError(f"the JSON holds {constant}")


def predict_and_check(model: str, table: str) -> bool:
    """Predict a table, and raise AssertionError unless its posteriors sum to 1 where no warning says otherwise."""
    written = warned(["predict", model, table, "--proba", "--output", "scores.parquet"])
    if written is None:
        return False
    scores = pl.read_parquet("scores.parquet")
    may_be_undefined = any(UNDEFINED in line for line in written)
    check_posteriors(
        scores.select(name for name in scores.columns if name.startswith("p_")).to_numpy(), may_be_undefined
    )
    return True
