"""The command explore: an interactive page about a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from posteriori.cli.files import page_beside
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import AnyModelPath, align, load_portable, read_for, with_cut_target
from posteriori.cli.options import FORMATS, Force, PageTitle, Positive
from posteriori.cli.outputs import output_at
from posteriori.registry import Subject

_SUFFIXES = (".html", ".htm")


def explore(
    model: AnyModelPath,
    table: Annotated[
        Path | None,
        typer.Argument(
            metavar="TABLE", help=f"Rows to look at; the page contains their cells. {FORMATS}.", show_default=False
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to write. Default: the model's name with .html."),
    ] = None,
    network: Annotated[
        bool,
        typer.Option("--network", help="Show a classifier of categories and bins as a Bayesian network."),
    ] = False,
    positive: Positive = None,
    title: PageTitle = None,
    embed: Annotated[
        bool, typer.Option("--embed", help="Write the first section alone, for a frame within another page.")
    ] = False,
    force: Force = False,
) -> None:
    """Write a page that answers what-if questions about a model, with any input unknown.

    One HTML file, which works offline. It shows the posterior and its sum of log factors as inputs change, the next
    best question, and the smallest change of the prediction; of a network all marginals, with evidence by click; of a
    regressor the density of the number, by its additive member; of a joint model (fit without --target) every column
    given any others, with values, sets and ranges known by click. With a TABLE (at most 2,000 rows of it, drawn at
    random) it also shows strange and wrong rows, and decisions by prevalence and costs.

    Example:

        posteriori explore penguins.posteriori penguins.csv -o penguins.html
    """
    path = page_beside(model, ".html") if output is None else output
    if path.suffix.lower() not in _SUFFIXES:
        raise UserError(f"{str(path)!r} does not have the suffix of a web page; name it .html")
    place = output_at(path, [model, *([] if table is None else [table])], force)
    loaded = load_portable(model, *Subject)
    if network:
        if not hasattr(loaded, "to_network"):
            raise UserError(f"{str(model)!r} holds a {type(loaded).__name__}, which is not converted to a network")
        with as_user_errors():
            loaded = loaded.to_network()
    rows = None if table is None else _rows(loaded, table)

    from posteriori import exploring

    with as_user_errors(), place.writing():
        if title is None and table is not None:
            title = f"{exploring.document.title_of(loaded)} in {table.name}"
        exploring.explore(loaded, rows, path=path, positive=positive, title=title, embed=embed)
    print(f"wrote {path}")


def _rows(loaded: Any, table: Path) -> Any:
    """Read the rows, with numeric targets as the classes that they were cut into."""
    if loaded.subject not in (Subject.CLASS, Subject.COMPONENT):
        from posteriori.exploring.document import kind_of

        raise UserError(f"rows are shown for classifiers; explore a {kind_of(loaded)} without rows")
    target = loaded.schema_.target
    frame = with_cut_target(read_for(loaded, table), loaded, target)
    return align(frame, loaded.schema_, [target] if target in frame.columns else [])
