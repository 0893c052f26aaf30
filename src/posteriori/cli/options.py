"""Arguments and options that several commands share, and their help on models."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.messages import UserError
from posteriori.registry import MODELS, ModelSpec, find_model, names_with
from posteriori.support.suggestions import closest

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator


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


class Unlabelled(StrEnum):
    """Treatment of rows whose label is missing."""

    ignore = "ignore"
    learn = "learn"


def apply_label_options(
    estimator: GenerativeEstimator,
    model: str,
    labels: pl.Series,
    *,
    unlabelled: Unlabelled | None,
    weight: str | None,
    components_per_class: str | None,
    noise: str | None,
    seed: int,
) -> tuple[GenerativeEstimator, Unlabelled]:
    """Set the options about labels on an estimator; return it with the treatment of rows without label.

    Raises
    ------
    UserError
        The model does not support an option, or an option is malformed.
    """
    known = estimator.get_params()
    asked = {
        "--unlabelled learn": ("labels", "unlabelled", unlabelled is Unlabelled.learn),
        "--unlabelled-weight": ("labels", "unlabelled", weight is not None),
        "--components-per-class": ("em", "label_noise", components_per_class is not None),
        "--label-noise": ("em", "label_noise", noise is not None),
    }
    for option, (group, capability, wanted) in asked.items():
        if wanted and group not in known:
            raise UserError(
                f"{option} needs EM, which --model {model} does not use for it; use {names_with(capability)}"
            )
    if "labels" not in known:
        return estimator, Unlabelled.ignore
    if model == "pool" and is_held_out(weight):
        raise UserError(
            f"--model pool cannot choose --unlabelled-weight; give a number, or use {names_with('label_noise')}"
        )
    asks = unlabelled is None and weight is None
    use = Unlabelled.ignore if model == "pool" and asks else unlabelled or Unlabelled.learn
    if weight is not None and use is Unlabelled.ignore:
        raise UserError("--unlabelled-weight weights rows that --unlabelled ignore leaves out; remove one of the two")
    parameters: dict[str, Any] = {"random_state": seed}
    if use is Unlabelled.learn:
        parameters["labels__unlabelled"] = "learn"
    if weight is not None:
        parameters["labels__unlabelled_weight"] = _weight(weight)
    if components_per_class is not None:
        classes = labels.drop_nulls().unique().sort().to_list()
        parameters["em__components_per_class"] = _components(components_per_class, classes)
    if noise is not None:
        parameters["labels__label_noise"] = _noise(noise)
    return estimator.set_params(**parameters), use


def is_held_out(weight: str | None) -> bool:
    """Whether the weight of rows without label is to be chosen on held-out rows."""
    return weight in ("held-out", "held_out")


def _weight(text: str) -> float | str:
    if is_held_out(text):
        return "held_out"
    return _share(text, f'--unlabelled-weight is {text!r}; give a number from 0 to 1, or "held-out"')


def _noise(text: str) -> float | str:
    message = f'--label-noise is {text!r}; give the share of wrong labels, at least 0 and below 1, or "learn"'
    if text == "learn":
        return text
    share = _share(text, message)
    if share == 1:
        raise UserError(message)
    return share


def _share(text: str, message: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise UserError(message) from None
    if not 0 <= share <= 1:
        raise UserError(message)
    return share


def _components(text: str, classes: Sequence[Any]) -> int | dict[Any, int]:
    """Parse the number of components of all classes, ``2``, or of some classes, ``a=2,b=3``."""
    if "=" not in text:
        return _many(text, text)
    spelled = {spelling: label for label in classes for spelling in spellings(label)}
    found = {}
    for part in text.split(","):
        name, _, many = part.rpartition("=")
        if name.strip() not in spelled:
            hint = closest(name.strip(), spelled, "classes")
            raise UserError(f"--components-per-class names {name.strip()!r}, which is not a class; {hint}")
        found[spelled[name.strip()]] = _many(many, text)
    return found


def spellings(label: Any) -> list[str]:
    """Return how a class may be written in an option; a whole number needs no decimal point."""
    if isinstance(label, bool):
        return [str(label).lower()]
    return [f"{label:.0f}"] if isinstance(label, float) else [str(label)]


def _many(part: str, text: str) -> int:
    if not part.strip().isdecimal() or int(part) < 1:
        raise UserError(
            f"--components-per-class is {text!r}; write 2, or CLASS=2,OTHER=3, with whole numbers of at least 1"
        )
    return int(part)


def unlabelled_facts(estimator: GenerativeEstimator, rows: int, use: Unlabelled) -> dict[str, Any]:
    """Return the number of rows without a label, their treatment and weight, and whether held-out rows chose it."""
    from posteriori.classifiers.validation import labels_of

    learned = use is Unlabelled.learn and rows > 0
    return {
        "rows": rows,
        "use": use.value,
        "weight": estimator.unlabelled_weight_ if learned else None,
        "weight_is_held_out": learned and labels_of(estimator).unlabelled_weight == "held_out",
    }


def unlabelled_line(found: dict[str, Any]) -> str:
    """Return a sentence on the treatment of rows without a label, and on the alternatives."""
    plural = "s" if found["rows"] > 1 else ""
    start = f"{found['rows']:,} row{plural} without a label"
    if found["use"] == Unlabelled.ignore:
        return f"{start}: left out"
    chosen = found["weight_is_held_out"]
    how = ", chosen on held-out rows" if chosen else ""
    other = "" if chosen else "; --unlabelled-weight held-out chooses the weight"
    return (
        f"{start}: learned from by EM with weight {found['weight']:g}{how}. If the assumptions of the model do not "
        f"hold, they can do harm: --unlabelled ignore leaves them out{other}"
    )
