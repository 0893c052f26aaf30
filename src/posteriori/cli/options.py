"""Arguments and options that several commands share, and their help on models."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.records import CLASSES, ONE_COLUMN
from posteriori.registry import MODELS, REGRESSORS, ModelSpec, find_model, names_with
from posteriori.support.suggestions import class_index, closest, find_class, similar

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator
    from posteriori.classifiers.estimator import Estimator


WRITTEN = ".csv, .tsv, .xlsx, .parquet, .arrow or .ndjson"
FORMATS = "CSV, TSV, Excel, Parquet, Arrow or NDJSON; - is stdin"

TablePath = Annotated[Path, typer.Argument(metavar="TABLE", help=f"A table: {FORMATS}.", show_default=False)]
TablePaths = Annotated[
    list[str], typer.Argument(metavar="TABLE", help=f"Files, a glob or a folder: {FORMATS}.", show_default=False)
]
ModelPath = Annotated[Path, typer.Argument(metavar="MODEL", help="A model saved by fit.", show_default=False)]
# Without it, `with_text_options` raises an error that lists the columns, which the parser does not know.
Target = Annotated[
    str,
    typer.Option(
        "--target",
        "-t",
        metavar="NAME",
        help="The column to predict: classes, or numbers.  [required]",
        show_default=False,
    ),
]
OptionalTarget = Annotated[
    str | None,
    typer.Option(
        "--target", "-t", metavar="NAME", help="Column to predict. Default: all, by a joint model.", show_default=False
    ),
]
Categorical = Annotated[
    list[str] | None, typer.Option(metavar="A,B", help="Columns of codes: numbers that are categories.")
]
Ignore = Annotated[list[str] | None, typer.Option(metavar="A,B", help="Columns to leave out.")]
Column = Annotated[
    list[str] | None,
    typer.Option("--column", metavar="A,B=KIND", help="Read as text, keep (identifiers), or a density: poisson."),
]
TextOrKeep = Annotated[
    list[str] | None,
    typer.Option(
        "--column", metavar="A,B=KIND", help="How to read columns: as text, or keep (although they identify rows)."
    ),
]
Kept = Annotated[
    list[str] | None, typer.Option("--column", metavar="A,B=keep", help="Columns to use although they identify rows.")
]
Dates = Annotated[
    list[str] | None,
    typer.Option(metavar="A,B", help="Parts of dates to use, such as month,weekday; or ignore.", show_default=False),
]
Groups = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Column of groups, such as patients, held out together.", show_default=False),
]
ColumnOfTruth = Annotated[
    str | None,
    typer.Option("--target", "-t", metavar="NAME", help="The column that holds the truth. Default: that of fit."),
]
Threshold = Annotated[
    list[str] | None, typer.Option(metavar="CLASS=P", help="Predict CLASS where its probability is P or more.")
]
Positive = Annotated[
    str | None,
    typer.Option(
        "--positive", metavar="LABEL", help="Class of interest. Default: the rarer of two.", show_default=False
    ),
    ONE_COLUMN,
    CLASSES,
]
Force = Annotated[bool, typer.Option("--force", help="Replace files that exist.")]
PageTitle = Annotated[str | None, typer.Option(metavar="TEXT", help="The title of the page.")]
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


@dataclass(frozen=True)
class ColumnOptions:
    """Which columns are read, and how."""

    categorical: Categorical = None
    columns: Column = None
    ignore: Ignore = None
    dates: Dates = None


@dataclass(frozen=True)
class KeptOrTextColumns(ColumnOptions):
    """Which columns are read, and how, by models with their defaults."""

    columns: TextOrKeep = None


@dataclass(frozen=True)
class LabelOptions:
    """How the classes are made of a target."""

    classes: Annotated[
        int | None,
        typer.Option("--classes", metavar="K", min=2, help="Cut a numeric target into K classes."),
        ONE_COLUMN,
        CLASSES,
    ] = None
    target_is_class: Annotated[
        bool,
        typer.Option("--target-is-class", help="Take each whole number of the target as a class."),
        ONE_COLUMN,
        CLASSES,
    ] = False


@dataclass(frozen=True)
class LevelOptions(LabelOptions):
    """How the classes are made of a target, and their order."""

    order: Annotated[
        str | None,
        typer.Option("--order", metavar="A,B,C", help="Classes as levels, from the lowest on.", show_default=False),
        ONE_COLUMN,
        CLASSES,
    ] = None

    def levels(self, target: str, labels: Collection[Any]) -> dict[str, list[Any]] | None:
        """Return the levels of --order as the labels that they name, by the target; None without the option.

        Raises
        ------
        UserError
            A level is no class, or a class is no level.
        """
        if self.order is None:
            return None
        classes = sorted((label for label in labels if label is not None), key=str)
        with as_user_errors():
            levels = [classes[class_index(name, classes)] for name in split_names([self.order])]
        absent = next((label for label in classes if label not in levels), None)
        if absent is not None:
            raise UserError(f"--order lacks {absent!r}, which {target!r} holds; name all classes, the lowest first")
        return {target: levels}


class Method(StrEnum):
    """The model that answers for a column: that of all columns, or a pool of this one."""

    joint = "joint"
    pool = "pool"


def base_models() -> list[ModelSpec]:
    """Return the generative models under their short names, without variants."""
    return [spec for spec in MODELS.values() if spec.generative and " " not in spec.name]


def settable_models() -> list[ModelSpec]:
    """Return the models whose parameters --set sets, without variants: of classes, and of numbers."""
    return [*base_models(), *REGRESSORS.values()]


def model_help() -> str:
    """Return the help of --model: the names of all models, except variants."""
    pool, *others = base_models()
    names = ", ".join(spec.name for spec in others)
    of_numbers = f"Of a number: {', '.join(REGRESSORS)}"
    return f"{pool.name} (default) combines all that suit. Or {names}; or a candidate of the pool. {of_numbers}."


def models_option(default: Sequence[str], of_numbers: Sequence[str] = ()) -> Any:
    """Return the option --models of a command that compares models, given its default, and those of numbers."""
    generative = ", ".join(spec.name for spec in base_models())
    discriminative = ", ".join(name for name, spec in MODELS.items() if not spec.generative)
    numbers = f" Of a number: {', '.join(of_numbers)}." if of_numbers else ""
    text = f"Generative: {generative}. Discriminative: {discriminative}. Default: {','.join(default)}.{numbers}"
    return typer.Option(metavar="A,B", help=text, show_default=False)


def model_named(option: str, name: str) -> ModelSpec:
    """Return the model that an option names.

    Raises
    ------
    UserError
        There is none, or it is discriminative, and fit cannot save it.
    """
    if name in REGRESSORS:
        return REGRESSORS[name]
    refuse_misspelt_regressors(option, [name])
    try:
        spec = find_model(name)
    except ValueError as error:
        raise UserError(f"{option!r}: {error}; of a number {', '.join(map(repr, REGRESSORS))}") from None
    if not spec.generative:
        raise UserError(f"{option!r}: {name!r} is discriminative and only for comparison; use posteriori cv or compare")
    return spec


def refuse_misspelt_regressors(option: str, names: Sequence[str]) -> None:
    """Raise UserError if a name is none of a model, and most like that of a model of numbers."""
    known = [*MODELS, *REGRESSORS]
    for name in names:
        if name not in known and (meant := similar(name, known)) in REGRESSORS:
            raise UserError(f"{option!r}: there is no model {name!r}; is it {meant!r}?")


def split_names(values: Sequence[str] | None) -> list[str]:
    """Return the names in an option that takes several: separated by commas, or the option repeated."""
    return [part.strip() for value in values or [] for part in value.split(",") if part.strip()]


_BY_CLASS: dict[str, tuple[Any, str]] = {  # parameters of --set that take one number for each class
    "components_per_class": (int, "write 2, or CLASS=2,OTHER=3, with whole numbers from 1"),
    "priors": (float, "write CLASS=0.3,OTHER=0.7, with probabilities"),
}
_WITHOUT_VALUE = {"none": None, "true": True, "false": False}


def settings_of(values: Sequence[str] | None) -> dict[str, str]:
    """Return the parameters of --set by name, as text; hyphens in names are underscores.

    Raises
    ------
    UserError
        A value lacks its =, or a parameter is set twice.
    """
    found: dict[str, str] = {}
    for value in values or []:
        name, equals, text = value.partition("=")
        name = name.strip().replace("-", "_")
        if not equals or not name:
            raise UserError(f"--set is {value!r}; write NAME=VALUE, such as missing=informative")
        if name in found:
            raise UserError(f"--set names {name} twice; set it once")
        found[name] = text.strip()
    return found


def parameters_of(spec: ModelSpec) -> dict[str, str]:
    """Return the parameters that --set takes, by name: those of a model, and those of its groups."""
    from posteriori.fitting.parameter_groups import EM, Labels

    known = spec.make().get_params(deep=False)
    found = {name: name for name in known if name not in _BY_OTHER_OPTIONS}
    for name, group in (("em", EM), ("labels", Labels)):
        if name in known:
            found |= {one: f"{name}__{one}" for one in group().get_params()}
    if "label_noise" not in spec.options:
        found.pop("label_noise", None)
    return found


_BY_OTHER_OPTIONS = {"em", "labels", "columns", "distributions", "folds"}


def apply_settings(
    estimator: Estimator, spec: ModelSpec, settings: Mapping[str, str], labels: pl.Series
) -> tuple[Any, str]:
    """Set the parameters of --set on an estimator; return it, and what becomes of rows without a label.

    Rows without a label are learned from where EM can: "learn"; otherwise, and by the pool, they are left out:
    "ignore".

    Raises
    ------
    UserError
        The model has no such parameter, or the values contradict each other.
    """
    from posteriori.support.formatting import listed

    known, stated = parameters_of(spec), dict(settings)
    for name in stated:
        if name not in known:
            others = {one.name: parameters_of(one) for one in settable_models() if not one.of_counts}
            owners = [model for model, parameters in others.items() if name in parameters]
            meant = similar(name, known.keys() | set().union(*others.values()))
            hint = f"--model {spec.name} --set help lists these" if meant is None else f"did you mean {meant!r}?"
            instead = f"it goes with --model {listed(owners, conjunction='or')}" if owners else hint
            raise UserError(f"--set names {name}, which is no parameter of {spec.name}; {instead}")
    use = "ignore"
    if "unlabelled" in known:
        held_out = stated.get("unlabelled_weight", "").replace("-", "_") == "held_out"
        if spec.name == "pool" and held_out:
            raise UserError(f"the pool takes a number as unlabelled_weight; or use {names_with('label_noise')}")
        by_default = "ignore" if spec.name == "pool" and "unlabelled_weight" not in stated else "learn"
        use = stated.pop("unlabelled", by_default)
        if use not in ("learn", "ignore"):
            raise UserError(f"--set unlabelled is {use!r}; give learn or ignore")
        if use == "ignore" and "unlabelled_weight" in stated:
            raise UserError("unlabelled_weight weights rows that unlabelled=ignore leaves out; remove one of the two")
        estimator.set_params(labels__unlabelled="learn" if use == "learn" else "error")
    if "random_state" in known:
        stated.setdefault("random_state", "0")
    classes = labels.drop_nulls().unique().sort().to_list()
    return estimator.set_params(**{known[name]: _value(name, text, classes) for name, text in stated.items()}), use


def settings_help(model: str) -> str:
    """Return the parameters that --set takes for a model, each with its default and the first sentence on it."""
    from posteriori.fitting.parameter_groups import EM, Labels

    spec = model_named("--model", model)
    estimator = spec.make()
    defaults = estimator.get_params() | EM().get_params() | Labels().get_params() | {"random_state": 0}
    texts = [inspect.getdoc(one) or "" for one in (type(estimator), EM, Labels)]
    lines = []
    for name in sorted(parameters_of(spec)):
        if name == "unlabelled":
            lines += [name, "    learn or ignore: whether rows without a label are learned from by EM"]
            continue
        pattern = rf"^{name} : .*\n((?:    .*\n)+)"
        found = next((match for text in texts if (match := re.search(pattern, text, re.MULTILINE))), None)
        sentence = "" if found is None else re.split(r"(?<!al)\. ", " ".join(found[1].split()))[0].rstrip(".")
        lines += [f"{name}={defaults[name]}", *(f"    {line}" for line in textwrap.wrap(sentence, 96))]
    return "\n".join(lines)


def _value(name: str, text: str, classes: Sequence[Any]) -> Any:
    """Return the value of a parameter: nothing, true or false, a number, several, one by class, or a word."""
    if name in _BY_CLASS and "=" in text:
        return numbers_by_class(name, text, classes)
    if "," in text:
        return [_value(name, part.strip(), classes) for part in text.split(",")]
    if text.lower() in _WITHOUT_VALUE:
        return _WITHOUT_VALUE[text.lower()]
    for number in (int, float):
        try:
            return number(text)
        except ValueError:
            continue
    return text.replace("-", "_")


def numbers_by_class(name: str, text: str, classes: Sequence[Any]) -> dict[Any, float]:
    """Parse the number of a parameter for some classes, ``a=2,b=3``; a class may hold commas and equals signs."""
    kind, form = _BY_CLASS[name]
    spelled = {spelling: label for label in classes for spelling in spellings(label)}
    found: dict[Any, float] = {}
    for part in _parts_by_class(text, spelled):
        written, equals, given = part.rpartition("=")
        if not equals:
            raise UserError(f"{name} is {text!r}; {form}")
        position = find_class(written.strip(), classes)
        if position is None:
            hint = closest(written.strip(), spelled, "classes")
            raise UserError(f"{name} names {written.strip()!r}, which is not a class; {hint}")
        label = classes[position]
        if label in found:
            raise UserError(f"{name} names {written.strip()!r} twice; name it once")
        try:
            number = kind(given)
        except ValueError:
            number = -1
        if not number >= (kind is int):
            raise UserError(f"{name} is {text!r}; {form}")
        found[label] = number
    return found


def _parts_by_class(text: str, spelled: Iterable[str]) -> list[str]:
    """Split ``a=2,b=3`` at its commas, but not at those of the names of classes."""
    names = "|".join(re.escape(one) for one in sorted(spelled, key=len, reverse=True))
    part = rf"\s*(?:{names})\s*=[^,=]*"
    if re.fullmatch(f"{part}(?:,{part})*", text):
        return re.findall(f"({part})(?:,|$)", text)
    return text.split(",")


def spellings(label: Any) -> list[str]:
    """Return how a class may be written in an option, the usual way first; a whole number needs no decimal point."""
    if isinstance(label, bool):
        return [str(label).lower(), str(label)]
    if isinstance(label, float) and label.is_integer():
        return [f"{label:.0f}", str(label)]
    return [str(label)]


def unlabelled_facts(estimator: GenerativeEstimator, rows: int, use: str) -> dict[str, Any]:
    """Return the number of rows without a label, their treatment and weight, and whether held-out rows chose it."""
    learned = use == "learn" and rows > 0
    return {
        "rows": rows,
        "use": use,
        "weight": estimator.unlabelled_weight_ if learned else None,
        "weight_is_held_out": learned and estimator.recipe.labels.unlabelled_weight == "held_out",
    }


def unlabelled_line(found: dict[str, Any]) -> str:
    """Return a sentence on the treatment of rows without a label, and on the alternatives."""
    plural = "s" if found["rows"] > 1 else ""
    start = f"{found['rows']:,} row{plural} without a label"
    if found["use"] == "ignore":
        return f"{start}: left out"
    chosen = found["weight_is_held_out"]
    how = ", chosen on held-out rows" if chosen else ""
    other = "" if chosen else "; --set unlabelled_weight=held-out chooses the weight"
    return (
        f"{start}: learned from by EM with weight {found['weight']:g}{how}. If the assumptions of the model do not "
        f"hold, they can do harm: --set unlabelled=ignore leaves them out{other}"
    )
