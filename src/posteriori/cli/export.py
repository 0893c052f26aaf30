"""The command export: a model in another language."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from posteriori.cli.any_model import AnyModelPath, load_any
from posteriori.cli.messages import as_user_errors
from posteriori.cli.reading import check_place
from posteriori.cli.writing import write_out


class Language(StrEnum):
    """What a model is written for."""

    js = "js"


def export(
    model: AnyModelPath,
    to: Annotated[Language, typer.Option(help="js: JSON for the evaluator in JavaScript.")] = Language.js,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write. Default: stdout.")
    ] = None,
    evaluator: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the evaluator too: one ES module, such as posteriori.mjs."),
    ] = None,
) -> None:
    """Write a model for JavaScript: pages and services then score rows without Python.

    The evaluator computes p(class | row), log p(row), each factor of the sum, and the marginals of a network, with any
    cells missing. Its numbers are those of Python up to rounding.

    Example:

        posteriori export penguins.posteriori --to js -o penguins.json --evaluator posteriori.mjs
    """
    del to  # the one language
    for path in (output, evaluator):
        if path is not None:
            check_place(path, model)
    loaded = load_any(model)

    from posteriori.atomic_write import write_whole
    from posteriori.javascript import javascript_evaluator, to_javascript

    with as_user_errors():
        written = to_javascript(loaded) + "\n"
    if evaluator is not None:
        write_whole(evaluator, javascript_evaluator().encode())
    if output is None:
        write_out(written)
    else:
        write_whole(output, written.encode())
