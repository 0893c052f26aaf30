"""Options of the command fit, as records, and what they ask for: a model, its columns, rows and files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from enum import StrEnum
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import stem_of, title_of
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.named_columns import columns_named, columns_of_kinds, group_numbers, parts_of_dates
from posteriori.cli.options import (
    AsJson,
    ColumnOptions,
    Force,
    Groups,
    LevelOptions,
    Positive,
    Quiet,
    model_help,
    model_named,
    settings_help,
    settings_of,
    split_names,
)
from posteriori.cli.outputs import Origin, Output, check_model_name, check_place, output_at
from posteriori.cli.records import CLASSES, JOINT, NUMBERS, ONE_COLUMN, For, refuse_unfit
from posteriori.registry import REGRESSORS, ModelSpec, names_with

if TYPE_CHECKING:
    from posteriori.classifiers import JointModel
    from posteriori.reading import Scan, TargetCuts
    from posteriori.statistics.description import ScannedTable
    from posteriori.support.typing import Array

_BEYOND_POOL = {"feature_weights", "components_per_class", "label_noise"}  # parameters of nb that the pool has not
_JOINT_KINDS = ("keep", "categorical")  # of --column
_SHARE = 0.2  # of the rows, held out by default
FOLDS = 5  # of classes
_FEWEST_FOLDS, _FOLDS_OF_NUMBER = 3, 9


def _list_parameters(context: typer.Context, values: list[str] | None) -> list[str] | None:
    """Print the parameters of the model and stop, for --set help."""
    if values and "help" in values:
        with as_user_errors():
            typer.echo(settings_help(context.params.get("model") or "pool"))
        raise typer.Exit
    return values


class Translation(StrEnum):
    """Languages that a pool can be written in."""

    sql = "sql"
    javascript = "javascript"


@dataclass(frozen=True)
class FitColumns(ColumnOptions):
    """Roles of the columns, and those that a joint model also has pools of."""

    targets: Annotated[
        list[str] | None,
        typer.Option(metavar="A,B", help="Of a joint model: columns (or all) to fit pools of.", show_default=False),
        JOINT,
    ] = None


@dataclass(frozen=True)
class ModelOptions:
    """The model, and how it is fitted."""

    model: Annotated[
        str | None,
        # Eager: it is read before --set help.
        typer.Option("--model", metavar="NAME", help=model_help(), show_default=False, is_eager=True),
        ONE_COLUMN,
    ] = None
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="NAME=VALUE",
            help="A parameter: missing=informative; --set help lists all.",
            is_eager=True,
            callback=_list_parameters,
        ),
        ONE_COLUMN,
    ] = None
    folds: Annotated[
        int | None,
        typer.Option(metavar="N", min=2, help="Folds of the cross-validation. Default: 5; of a number 9."),
        ONE_COLUMN,
    ] = None
    groups: Annotated[Groups, ONE_COLUMN] = None

    @property
    def is_regressor(self) -> bool:
        """Whether a model of numbers is named."""
        return self.model in REGRESSORS


@dataclass(frozen=True)
class HoldOutOptions:
    """Which rows are held out, to score a model of the others."""

    holdout: Annotated[
        float | None,
        typer.Option(
            "--holdout",
            metavar="SHARE",
            help="Score this share of the rows by a model of the others.",
            show_default=False,
        ),
        ONE_COLUMN,
        CLASSES,
    ] = None
    holdout_by: Annotated[
        str | None,
        typer.Option(
            "--holdout-by",
            metavar="NAME",
            help="Hold out the last values of a column, such as dates.",
            show_default=False,
        ),
        ONE_COLUMN,
        CLASSES,
    ] = None

    @property
    def share(self) -> float:
        """The share of the rows."""
        return _SHARE if self.holdout is None else self.holdout

    def check(self) -> None:
        """Raise UserError if the share is not between 0 and 1."""
        if not 0.0 < self.share < 1.0:
            raise UserError(f"--holdout is {self.share:g}; give a share of the rows between 0 and 1, such as {_SHARE}")

    def checked(self, types: Any, target: str) -> HoldOutOptions | None:
        """Return the options, with the name of the column as the table has it; None if no row is held out.

        Raises
        ------
        UserError
            There is no such column, or its values have no order.
        """
        by = self.holdout_by
        if by is None:
            return None if self.holdout is None else self
        if by == target:
            raise UserError(f"--holdout-by names {target!r}, which is the target; name a column of dates or numbers")
        names = columns_named([by], [name for name in types if name != target], "--holdout-by")
        if len(names) != 1:
            raise UserError(f"--holdout-by is {by!r}; name one column")
        dtype = types[names[0]]
        if not (dtype.is_numeric() or dtype.is_temporal() or str(dtype.base_type()) == "Enum"):
            raise UserError(
                f"--holdout-by names {names[0]!r}, which is {dtype} and has no order; name a column of dates or numbers"
            )
        return replace(self, holdout_by=names[0])


@dataclass(frozen=True)
class OutputOptions:
    """The files that are written, what they hold, and what is printed."""

    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Where to save. Default: TABLE[.joint].posteriori."),
    ] = None
    report: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Also write a report: an .html page.", show_default=False),
    ] = None
    positive: Positive = None
    force: Force = False
    language: Annotated[
        Translation | None,
        typer.Option("--for", help="Fit a pool that sql or export can write.", show_default=False),
        ONE_COLUMN,
        CLASSES,
    ] = None
    without_rows: Annotated[bool, typer.Option("--without-rows", help="Save sums, and nothing of single rows.")] = False
    details: Annotated[bool, typer.Option("--details", help="Print columns, scores, candidates and importance.")] = (
        False
    )
    quiet: Quiet = False
    as_json: AsJson = False


@dataclass(frozen=True)
class FitOptions:
    """The tables, the target and the options of the command."""

    tables: list[str]
    target: str | None
    columns: FitColumns
    model: ModelOptions
    labels: LevelOptions
    hold_out: HoldOutOptions
    output: OutputOptions

    @property
    def title(self) -> str:
        """Name of the table in messages."""
        return title_of(self.tables)

    @cached_property
    def path(self) -> Path:
        """The file of the model."""
        ending = "joint.posteriori" if self.target is None else "posteriori"
        return self.output.output or Path(f"{stem_of(self.tables)}.{ending}")

    @cached_property
    def settings(self) -> dict[str, str]:
        """The parameters of --set."""
        return settings_of(self.model.settings)

    def check(self) -> None:
        """Raise UserError if options contradict each other, or the model cannot be written."""
        if self.target is None:
            records = (self.columns, self.model, self.labels, self.hold_out, self.output)
            refuse_unfit(records, {JOINT}, _needs_target)
        else:
            refuse_unfit([self.columns], {ONE_COLUMN}, _needs_no_target)
        self.hold_out.check()
        check_model_name(self.path)
        check_place(self.path, self.tables)

    def place(self) -> Output:
        """Return the file of the model; one that the same options made of the same tables may be replaced."""
        records = {**asdict(self.columns), **asdict(self.model), **asdict(self.labels)}
        of_file = {"language": self.output.language, "without_rows": self.output.without_rows}
        origin = Origin("fit", {"target": self.target, **records, "settings": self.settings, **of_file}, self.tables)
        place = output_at(self.path, self.tables, self.output.force, origin=origin)
        return replace(place, without_rows=self.output.without_rows)

    def spec(self) -> ModelSpec:
        """Return the requested model; without --model the pool, or nb if the pool does not support an option."""
        name, language, settings = self.model.model, self.output.language, self.settings
        if name is not None:
            spec = model_named("--model", name)
            if language is not None and spec.name != "pool":
                raise UserError(f"--for chooses the candidates of the pool; leave out --for or --model {spec.name}")
            return spec
        held_out = settings.get("unlabelled_weight", "").startswith("held")
        needs_nb = held_out or not settings.keys().isdisjoint(_BEYOND_POOL)
        if needs_nb and language is not None:
            raise UserError(
                "--for chooses the candidates of the pool, and --set names a parameter of nb; leave one out"
            )
        return model_named("--model", "nb" if needs_nb else "pool")

    def make_estimator(
        self, spec: ModelSpec, chosen: dict[str, list[str]], order: dict[str, list[Any]] | None = None
    ) -> Any:
        """Return the estimator that reads the columns as the options ask."""
        kinds = dict(chosen)
        categorical, keep, text = (kinds.pop(kind, []) for kind in ("categorical", "keep", "text"))
        for kind in kinds:
            option = "binned" if kind == "binned" else "distributions"
            if option not in spec.options:
                raise UserError(f"--column: {kind} needs --model {names_with(option)}, not {spec.name}; remove it")
        if text and "text" not in spec.options:
            raise UserError(f"--column: text needs --model {names_with('text')}, not {spec.name}; remove it")
        columns: dict[str, Any] = {"columns__dates": parts_of_dates(self.columns.dates), "columns__order": order}
        if self.output.language is not None:
            columns["language"] = self.output.language.value
        if keep:
            columns["columns__keep"] = "all" if keep == ["all"] else keep
        if text:
            columns["columns__text"] = text
        if "distributions" in spec.options:
            kinds["categorical"] = categorical
            distributions = {name: kind for kind, names in kinds.items() for name in names}
            return spec.make(distributions=distributions or None, **columns)
        return spec.make(columns__categorical_features=categorical or None, **columns)


@dataclass(frozen=True)
class Opened:
    """A table that a model is fitted to: its rows, their description, and what the options ask of it.

    The target is described as a column if it is predicted as a number, and by its labels if it holds classes.
    """

    scan: Scan
    description: ScannedTable
    place: Output
    kinds: dict[str, list[str]] = field(default_factory=dict)  # columns of --column and --categorical
    cuts: TargetCuts | None = None
    groups: str | None = None
    hold_out: HoldOutOptions | None = None
    is_number: bool = False

    def group_of_rows(self, target: str, left_out: str | None) -> Array | None:
        """Return the group of each row, (n,); without the rows that have no cell in the column `left_out`."""
        if self.groups is None:
            return None
        from posteriori.tables.polars import exactly

        column = self.scan.narrowed([self.groups, target], left_out).frame.select(exactly(self.groups))
        return group_numbers(column.collect(engine="streaming").to_series())


def _needs_target(option: str, needed: For) -> str:
    return (
        f"{option} is for a model of one column; name that with --target, or leave out {option} to fit a joint "
        "model of all columns"
    )


def _needs_no_target(option: str, needed: For) -> str:
    return f"{option} is for a joint model of all columns; leave out --target, or {option}"


def refuse_of_classes(records: Sequence[Any], target: str) -> None:
    """Raise UserError if an option of classes is stated, and the model predicts a number."""
    refuse_unfit(
        records,
        {ONE_COLUMN, NUMBERS},
        lambda option, needed: (
            f"{option} is for classes, and the model predicts {target!r} as a number; leave it out, or cut the "
            "target into classes with --classes 4"
        ),
    )


def folds_of_number(folds: int | None) -> int:
    """Return the number of folds of a regressor; UserError if there are too few."""
    if folds is not None and folds < _FEWEST_FOLDS:
        raise UserError(f"--folds is {folds}; a regressor needs {_FEWEST_FOLDS} at least")
    return _FOLDS_OF_NUMBER if folds is None else folds


def joint_model_of(
    columns: ColumnOptions, names: list[str], title: str, targets: list[str] | None = None
) -> tuple[JointModel, list[str]]:
    """Return the joint model that reads columns as the options ask, and the names of the columns to read.

    Raises
    ------
    UserError
        An option names an unknown column or kind, or no column is left.
    """
    ignored = columns_named(columns.ignore, names, "--ignore")
    left = [name for name in names if name not in ignored]
    if not left:
        raise UserError(f"--ignore leaves out all columns of {title!r}; keep at least one")
    chosen = columns_of_kinds(columns.columns, left)
    other = next((kind for kind in chosen if kind not in _JOINT_KINDS), None)
    if other is not None:
        raise UserError(
            f"--column takes {' or '.join(_JOINT_KINDS)} without --target, not {other}; remove it, or name the target"
        )
    categorical = columns_named(columns.categorical, left, "--categorical") + chosen.get("categorical", [])
    keep = chosen.get("keep")

    from posteriori.classifiers import JointModel
    from posteriori.fitting.parameter_groups import Columns

    read = Columns(
        categorical_features=categorical or None,
        keep="all" if keep == ["all"] else keep,
        dates=parts_of_dates(columns.dates),
    )
    is_all = split_names(targets) == ["all"]
    return JointModel(columns=read, targets="all" if is_all else columns_named(targets, left, "--targets")), left
