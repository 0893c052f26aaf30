"""Arguments and options that several commands share, and their help on models.

Nothing here imports polars, NumPy or the rest of the library: `posteriori --help` must not wait for them.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from posteriori.cli.messages import UserError
from posteriori.registry import MODELS, ModelSpec, find_model

WRITTEN = ".csv, .tsv, .parquet, .arrow or .ndjson"
FORMATS = "CSV, TSV, Excel, Parquet, Arrow or NDJSON; - is stdin"

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=f"A table: {FORMATS}.", show_default=False)]
TablePaths = Annotated[
    list[str],
    typer.Argument(metavar="TABLE", help=f"Files, a glob or a folder: {FORMATS}.", show_default=False),
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by fit.", show_default=False)]
Target = Annotated[str, typer.Option("--target", "-t", metavar="NAME", help="The column that holds the classes.")]
Categorical = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Columns of codes: numbers that are categories."),
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out.")]
Keep = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Columns to use although they identify rows; or all."),
]
Dates = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B",
        help="Parts of dates to use, such as month,weekday; or ignore.",
        show_default=False,
    ),
]
Text = Annotated[
    list[str] | None,
    typer.Option(
        metavar="A,B",
        help="Columns of text. Default: those that look like it.",
        show_default=False,
    ),
]
Classes = Annotated[
    int | None,
    typer.Option("--classes", metavar="K", min=2, help="Cut a numeric target into K classes."),
]
TargetIsClass = Annotated[
    bool, typer.Option("--target-is-class", help="Take each whole number of the target as a class.")
]
Force = Annotated[
    bool,
    typer.Option("--force", help="Overwrite any file."),
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print no progress.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print the facts as JSON.")]
RowCount = Annotated[int, typer.Option("--rows", "-n", metavar="N", min=1, help="Number of rows to draw.")]
OutputTable = Annotated[
    Path | None,
    typer.Option("--output", "-o", metavar="FILE", help=f"Where to write: {WRITTEN}. Default: CSV on stdout."),
]
WithColumns = Annotated[
    list[str] | None,
    typer.Option("--with", metavar="A,B", help="Columns to write before the prediction, such as a key."),
]
SplitSeed = Annotated[int, typer.Option(min=0, help="Seed of the random split of the rows.")]
DrawSeed = Annotated[int | None, typer.Option(min=0, help="Seed; makes the draw repeatable.", show_default=False)]


def base_models() -> list[ModelSpec]:
    """Return the generative models under their short names, without variants."""
    return [spec for spec in MODELS.values() if spec.generative and " " not in spec.name]


def model_help() -> str:
    """Return the help of --model: the names of all models, except variants."""
    pool, *others = base_models()
    names = ", ".join(spec.name for spec in others)
    return f"{pool.name} (default) combines all that suit. Or {names}; or a candidate of the pool."


def models_option(default: Sequence[str]) -> Any:
    """Return the option --models of a command that compares models, given its default."""
    generative = ", ".join(spec.name for spec in base_models())
    discriminative = ", ".join(name for name, spec in MODELS.items() if not spec.generative)
    text = f"Generative: {generative}. Discriminative: {discriminative}. Default: {','.join(default)}."
    return typer.Option(metavar="A,B", help=text, show_default=False)


def model_named(option: str, name: str) -> ModelSpec:
    """Return the model that an option names.

    Raises
    ------
    UserError
        There is none, or it is discriminative, and fit cannot save it.
    """
    try:
        spec = find_model(name)
    except ValueError as error:
        raise UserError(f"{option!r}: {error}") from None
    if not spec.generative:
        raise UserError(f"{option!r}: {name!r} is discriminative and only for comparison; use posteriori cv or compare")
    return spec


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return the names in an option that takes several: separated by commas, or the option repeated."""
    return [part.strip() for value in values or [] for part in value.split(",") if part.strip()]
