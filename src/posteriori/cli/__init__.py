"""The command line: parse, call the library, print. No statistics here.

A command is one function in one file. Its signature gives arguments and options, its docstring the help. What is heavy
is imported inside it, so that `posteriori --help` is quick.
"""

from __future__ import annotations

import functools
import io
import os
import sys
from collections.abc import Sequence
from typing import Any

from posteriori import support
from posteriori.cli.interrupts import Ended, end_if_sent, end_now, watch_signals

__all__ = ["main"]

REFUSED = 2
FAULT = 1  # an unexpected exception: a defect of posteriori, not of the input
INTERRUPTED = 130  # 128 + SIGINT, as in shells
_COMPLETE = "_POSTERIORI_COMPLETE"  # the variable by which a shell asks for completions
PIPE_CLOSED = 141  # 128 + SIGPIPE


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Default: those of the process.

    Returns
    -------
    int
        0 for success; 2 for unsuitable input, with one sentence on stderr; 3 if an alarm of ``watch`` stands; 130
        after an interrupt, 143 after SIGTERM; 141 if the reader of the output has closed the pipe; 1
        for a defect of the program.
    """
    if arguments is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # box characters of tables, on a terminal that only prints ASCII
    code = 0
    try:
        if arguments is None:
            support.is_command = True
            watch_signals()
        code = _run(list(sys.argv[1:] if arguments is None else arguments) or ["--help"])
        sys.stdout.flush()
    except KeyboardInterrupt as ended:
        if isinstance(ended, Ended):
            end_now(ended.number)  # threads that still work would keep the process alive
        code = _fail("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # SystemExit comes from rich, which prints the help
        code = PIPE_CLOSED
    except OSError as error:  # such as a full disk, when the buffer is flushed; it may have been reported already
        code = code or _fail(f"cannot write to stdout: {str(error.strerror).lower()}", REFUSED)
    if code and arguments is None:
        # Discard the rest of the buffer: flushing it at exit would raise the error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(arguments: list[str]) -> int:
    import typer

    from posteriori.cli.messages import (
        UserError,
        one_line,
        one_line_warnings,
        quiet_threads,
        sentence_of,
    )
    from posteriori.cli.terminal import plain_streams

    # The base class in click of "no such option", "missing argument" and similar errors.
    usage_error: Any = typer.BadParameter.__base__
    command = _command()
    if os.environ.get(_COMPLETE):
        return _complete(command)
    try:
        # command.main() would handle interrupts and closed pipes differently.
        with (
            quiet_threads(),
            plain_streams(),
            one_line_warnings(),
            command.make_context("posteriori", arguments) as context,
        ):
            command.invoke(context)
    except typer.Exit as early:
        return early.exit_code
    except usage_error as error:
        from posteriori.cli.usage import sentence_of_usage

        return _fail(one_line(sentence_of_usage(error, arguments, command)), REFUSED)
    except BrokenPipeError:
        raise
    except (UserError, OSError, MemoryError) as error:
        return _fail(sentence_of(error), REFUSED)
    except Exception as error:
        if os.environ.get("POSTERIORI_DEBUG"):
            raise
        return _fail(
            f"unexpected {type(error).__name__}: {one_line(str(error))} — a defect of posteriori; please "
            "report it with the traceback that POSTERIORI_DEBUG=1 shows",
            FAULT,
        )
    return 0


@functools.cache
def _command() -> Any:
    """Return the command line, built once: building it takes longer than many commands."""
    import typer

    from posteriori.cli.commands import app

    return typer.main.get_command(app)


def _complete(command: Any) -> int:
    """Print how the words of a command line may continue, for the shell that asks."""
    try:
        command.main([], prog_name="posteriori")
    except SystemExit as end:
        return int(end.code or 0)
    return 0


def _fail(sentence: str, code: int) -> int:
    from posteriori.cli.terminal import without_controls

    end_if_sent()
    print(f"error: {without_controls(sentence)}", file=sys.stderr)
    return code
