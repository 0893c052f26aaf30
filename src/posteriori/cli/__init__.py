"""The command line: parse, call the library, print. No statistics here."""

from __future__ import annotations

import _thread
import io
import os
import signal
import sys
import threading
from collections.abc import Sequence
from typing import Any

__all__ = ["main"]

REFUSED = 2
FAULT = 1  # an exception nobody foresaw: a defect of posteriori, not of what it was given
INTERRUPTED = 130  # 128 + SIGINT, as shells have it
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
        0; 2 when the input is refused, with one sentence on stderr that says why; 130 when interrupted; 141
        when whoever reads the output has gone; 1 for a defect of the program.
    """
    if arguments is None and isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # lines of tables, on a terminal that only knows ASCII
    code = 0
    if arguments is None:
        sys.unraisablehook = _interrupt_again
    try:
        code = _run(list(sys.argv[1:] if arguments is None else arguments) or ["--help"])
        sys.stdout.flush()
    except KeyboardInterrupt:
        if arguments is None:
            signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is over already
        code = _say("interrupted", INTERRUPTED)
    except (BrokenPipeError, SystemExit):  # the latter from rich, which prints the help
        code = PIPE_CLOSED
    except OSError as error:  # a full disk: of what is left in the buffer, or said already
        code = code or _say(f"cannot write to stdout: {str(error.strerror).lower()}", REFUSED)
    if code and arguments is None:
        # What is left in the buffer must go nowhere, or the interpreter complains when it flushes it at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def _run(arguments: list[str]) -> int:
    import typer

    from posteriori.cli.commands import app
    from posteriori.cli.messages import (
        UserError,
        announced_compilation,
        one_line,
        one_line_warnings,
        quiet_threads,
        sentence_of,
    )

    # click's own base class of "no such option", "missing argument" and the like, wherever typer keeps it
    usage_error: Any = typer.BadParameter.__base__
    command = typer.main.get_command(app)
    try:
        # not command.main(), which has its own ideas of interrupts and closed pipes
        with (
            quiet_threads(),
            one_line_warnings(),
            announced_compilation(),
            command.make_context("posteriori", arguments) as context,
        ):
            command.invoke(context)
    except typer.Exit as early:
        return early.exit_code
    except usage_error as error:
        path = error.ctx.command_path if getattr(error, "ctx", None) else "posteriori"
        message = one_line(error.format_message()).removesuffix(".")
        return _say(f"{message[:1].lower()}{message[1:]} (see {path} --help)", REFUSED)
    except BrokenPipeError:
        raise
    except (UserError, OSError, MemoryError) as error:
        return _say(sentence_of(error), REFUSED)
    except Exception as error:
        if os.environ.get("POSTERIORI_DEBUG"):
            raise
        return _say(
            f"unexpected {type(error).__name__}: {one_line(str(error))} — a defect of posteriori; please "
            "report it with the traceback that POSTERIORI_DEBUG=1 shows",
            FAULT,
        )
    return 0


def _interrupt_again(unraisable: Any) -> None:
    """Let Ctrl-C not get lost where Python cannot raise it, as while a generator is being closed."""
    if not issubclass(unraisable.exc_type, KeyboardInterrupt):
        sys.__unraisablehook__(unraisable)
        return
    soon = threading.Timer(0.05, _thread.interrupt_main)
    soon.daemon = True
    soon.start()


def _say(sentence: str, code: int) -> int:
    print(f"error: {sentence}", file=sys.stderr)
    return code
