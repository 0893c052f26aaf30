"""The command compare: learning curves of generative and discriminative models, of classes or of numbers."""

from __future__ import annotations

import reprlib
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.cv import read_compared, rows_and_settings
from posteriori.cli.messages import UserError, as_user_errors, progress_bar, warn
from posteriori.cli.options import (
    AsJson,
    Force,
    KeptOrTextColumns,
    LabelOptions,
    Quiet,
    SplitSeed,
    TablePath,
    Target,
    models_option,
    split_names,
)
from posteriori.cli.outputs import Output, output_at
from posteriori.registry import COMPARED, COMPARED_OF_NUMBERS, OF_NUMBERS

if TYPE_CHECKING:
    from posteriori.comparison import Comparison

_PICTURES = (".png", ".svg", ".pdf")
_TEST_SHARE = 0.25


def compare(
    table: TablePath,
    target: Target = "",
    models: Annotated[list[str] | None, models_option(COMPARED, tuple(OF_NUMBERS))] = None,
    sizes: Annotated[
        list[str] | None,
        typer.Option(
            metavar="N,N",
            help="Numbers of training rows. Default: up to seven, at equal ratios.",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[
        int, typer.Option(metavar="N", min=1, max=1000, help="Random splits into training and test rows.")
    ] = 5,
    seed: SplitSeed = 0,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Draw the curves: .png, .svg or .pdf.", show_default=False),
    ] = None,
    *,
    columns: KeptOrTextColumns,
    labels: LabelOptions,
    force: Force = False,
    quiet: Quiet = False,
    as_json: AsJson = False,
) -> None:
    """Compare models by their learning curves.

    Each repeat keeps a random quarter of the rows as test rows. The models learn from increasing numbers of the other
    rows. The last lines give the number of rows at which one model overtakes another. Numbers after ± are standard
    errors. Details: docs/command_line.md.

    Example:

        posteriori compare penguins.csv --target species --models nb,logistic --repeats 3
    """
    place = None if plot is None else picture_at(plot, table, force)
    names = split_names(models)
    data = read_compared(names, table, target, columns, labels)
    frame = data.frame
    n_classes = frame[target].alias("labels").n_unique()
    if n_classes < 2 and not data.is_number:
        label = reprlib.repr(frame[target][0])
        raise UserError(f"the target {target!r} has only one class, {label}; a comparison needs two")
    given = _numbers_of(sizes)

    from posteriori.comparison import compare as measure
    from posteriori.comparison import training_sizes
    from posteriori.reading.target_cuts import numbers_as_classes

    rows, settings = rows_and_settings(data, target, columns)
    names = names or list(COMPARED_OF_NUMBERS if data.is_number else COMPARED)
    chosen = given or list(training_sizes(frame.height, 0 if data.is_number else n_classes, _TEST_SHARE))
    total = len(names) * repeats * sum(set(chosen))
    with as_user_errors(), numbers_as_classes(), progress_bar("comparing", total, not quiet) as progress:
        comparison = measure(
            names,
            rows,
            target,
            sizes=chosen,
            repeats=repeats,
            test_share=_TEST_SHARE,
            **settings,
            random_state=seed,
            progress=progress,
        )
    name_of = dict(zip(comparison.models, names, strict=True))
    found = {
        "command": "compare",
        "table": str(table),
        "target": target,
        "rows": frame.height,
        "repeats": repeats,
        "test_rows": comparison.n_test,
        "generative": list(comparison.generative),
        "discriminative": list(comparison.discriminative),
        "models": [{"model": title, "name": name} for title, name in name_of.items()],
        "summary": comparison.summary.to_dicts(),
        "crossings": comparison.crossings.to_dicts(),
        "scores": comparison.scores.to_dicts(),
        "notes": comparison.notes.to_dicts(),
    }
    if place is not None:
        with place.writing() as path:
            _draw(comparison, path)
        found["plot"] = str(plot)
    if as_json:
        from posteriori.cli.tables import print_json

        print_json(found)
    else:
        _print(comparison, found)


def _numbers_of(sizes: list[str] | None) -> list[int]:
    numbers = []
    for part in split_names(sizes):
        if not part.isascii() or not part.isdigit():
            raise UserError(f"--sizes holds {part!r}, which is not a number of rows; give numbers such as 10,30,100")
        numbers.append(int(part))
    return numbers


def picture_at(path: Path, source: Path, force: bool, option: str = "--plot") -> Output:
    """Return the file of a picture; UserError if none can be drawn or written there."""
    if path.suffix.lower() not in _PICTURES:
        raise UserError(f"{str(path)!r} does not have the suffix of a picture; name it .png, .svg or .pdf")
    place = output_at(path, [source], force)
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise UserError(f"{option} needs matplotlib: pip install matplotlib") from None
    return place


def _draw(comparison: Comparison, path: Path) -> None:
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    from posteriori.plotting import plot_learning_curves
    from posteriori.support.atomic_write import atomic_write

    shown = comparison.shown
    figure = Figure(figsize=(15.0, 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    for position, (ax, measure) in enumerate(zip(figure.subplots(1, len(shown)), shown, strict=True)):
        legend = plot_learning_curves(comparison, measure, ax=ax).get_legend()
        if position and legend is not None:
            legend.remove()
    with atomic_write(path) as written:
        figure.savefig(written, format=path.suffix[1:].lower(), dpi=120)


def _print(comparison: Comparison, found: dict[str, Any]) -> None:
    from posteriori.cli.tables import console, label_text, model_text, print_grid
    from posteriori.comparison.result import crossing_sentence
    from posteriori.model_selection.measures import MEASURES
    from posteriori.support.formatting import plural

    out = console()
    out.print(
        f"{found['table']}: {found['rows']:,} rows, {comparison.n_test:,} of them test rows, "
        f"{plural(comparison.repeats, 'repeat')}",
        soft_wrap=True,
    )
    out.print(", ".join(model_text(one["name"], one["model"]) for one in found["models"]) + "\n")
    cells = {(row["model"], row["n_rows"]): row for row in found["summary"]}
    for name in comparison.shown:
        grid = [[_cell(cells[model, size], name) for model in comparison.models] for size in comparison.sizes]
        rows = [f"{size:,} rows" for size in comparison.sizes]
        print_grid(out, MEASURES[name].line(), rows, [label_text(model) for model in comparison.models], grid)
    for crossing in found["crossings"]:
        if crossing["measure"] in comparison.shown:
            out.print(crossing_sentence(crossing), soft_wrap=True)
    _warn_of(comparison)
    if "plot" in found:
        out.print(f"\nplot: {found['plot']}", soft_wrap=True)


def _cell(row: dict[str, Any], name: str) -> str:
    from posteriori.model_selection.measures import MEASURES
    from posteriori.support.formatting import number

    measure = MEASURES[name]
    return number(row[name], 2) if measure.is_time else measure.text(row[name], row[f"{name}_error"])


def _warn_of(comparison: Comparison) -> None:
    """Print the first warning of each model, and the number of its other warnings."""
    for model in comparison.models:
        notes = [note for note in comparison.notes.iter_rows(named=True) if note["model"] == model]
        if notes:
            first = notes[0]
            more = f" (and {len(notes) - 1} other warnings)" if len(notes) > 1 else ""
            warn(f"{model} on {first['n_rows']:,} rows{more}: {first['message']}")
