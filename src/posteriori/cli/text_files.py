"""Options on the spelling of text files, which each command that reads tables takes, and tables from stdin."""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from posteriori.cli.messages import as_user_errors, note

if TYPE_CHECKING:
    from posteriori.tables import Scan
    from posteriori.tables.dialects import AskedDialect

STDIN = "-"  # the table that a command reads from its standard input
_PANEL = "Text files"
_TABS = {"tab": "\t", "\\t": "\t"}
_OPTIONS = {
    "sep": Annotated[
        str | None,
        typer.Option(
            "--sep", metavar="CHAR", rich_help_panel=_PANEL, help="Separator: , ; | or tab. Default: detected."
        ),
    ],
    "decimal": Annotated[
        str | None,
        typer.Option("--decimal", metavar="CHAR", rich_help_panel=_PANEL, help="Decimal mark. Default: detected."),
    ],
    "encoding": Annotated[
        str | None,
        typer.Option(
            "--encoding",
            metavar="NAME",
            rich_help_panel=_PANEL,
            help="utf-8, latin-1, cp1252, utf-16, … Default: detected.",
        ),
    ],
}


class _Reading:
    """What a command was asked about text files, its copy of stdin, and the notes that it has printed."""

    def __init__(self, sep: str | None, decimal: str | None, encoding: str | None) -> None:
        from posteriori.tables.dialects import AskedDialect

        self.asked = AskedDialect(_TABS.get(sep or "", sep), decimal, encoding)
        self.stdin: Path | None = None
        self.kept: Any = None  # keeps the copy
        self.notes: set[str] = set()


_CURRENT: ContextVar[_Reading | None] = ContextVar("reading", default=None)


def with_text_options(command: Callable[..., None]) -> Callable[..., None]:
    """Return a command with the options --sep, --decimal and --encoding, which hold for all tables that it reads."""

    @functools.wraps(command)
    def run_command(
        *arguments: Any, sep: str | None = None, decimal: str | None = None, encoding: str | None = None, **more: Any
    ) -> None:
        reading = _Reading(sep, decimal, encoding)
        with as_user_errors():
            reading.asked.check()
        token = _CURRENT.set(reading)
        try:
            command(*arguments, **more)
        finally:
            _CURRENT.reset(token)

    run: Any = run_command
    signature = inspect.signature(command, eval_str=True)
    added = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=None, annotation=annotation)
        for name, annotation in _OPTIONS.items()
    ]
    run.__signature__ = signature.replace(parameters=[*signature.parameters.values(), *added])
    del run.__wrapped__
    run.__annotations__ = {name: one.annotation for name, one in run.__signature__.parameters.items()}
    return cast(Callable[..., None], run)


def asked_dialect() -> AskedDialect:
    """Return what the running command was asked about text files."""
    from posteriori.tables.dialects import AskedDialect

    current = _CURRENT.get()
    return AskedDialect() if current is None else current.asked


def stdin_copy() -> Path:
    """Return a temporary file with the standard input of the running command, which is read once."""
    from posteriori.tables.opening import spooled

    current = _CURRENT.get()
    assert current is not None, "a command that reads stdin is made by with_text_options"
    if current.stdin is None:
        current.stdin, current.kept = spooled(sys.stdin.buffer)
    return current.stdin


def shown_names() -> dict[Path, Path]:
    """Return the names in messages of files that are temporary copies."""
    current = _CURRENT.get()
    return {} if current is None or current.stdin is None else {current.stdin: Path("stdin")}


def note_on_reading(title: str, scan: Scan) -> None:
    """Print how text files are read if it is not as comma-separated UTF-8 text with decimal points."""
    current = _CURRENT.get()
    sentences = []
    if scan.dialect:
        sentences.append(f"{title} is read with {scan.dialect} (--sep, --decimal and --encoding change that)")
    if scan.written_numbers:
        columns = ", ".join(map(repr, sorted(scan.written_numbers)))
        sentences.append(f"{title}: the cells of {columns} are read as numbers, without units and thousands separators")
    for sentence in sentences:
        if current is None or sentence not in current.notes:
            note(sentence)
        if current is not None:
            current.notes.add(sentence)
