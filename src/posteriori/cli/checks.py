"""Read and check the inputs of commands."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import typer

from posteriori.cli.files import open_and_summarise, read_frame
from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.options import split_names
from posteriori.support.suggestions import closest, similar

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator
    from posteriori.scoring.fitted import FittedPosterior
    from posteriori.support.typing import Array
    from posteriori.tables import Column, Scan, Schema, TargetCuts


def load_model(path: Path, *, mixtures: bool = False) -> GenerativeEstimator:
    """Load a classifier, or with `mixtures` also a mixture.

    Raises
    ------
    UserError
        There is no such file, or it holds another kind of model.
    """
    _require_file(path)
    from posteriori.classifiers import MixtureModel
    from posteriori.networks import BayesianNetwork
    from posteriori.persistence import load

    with as_user_errors():
        loaded = load(path)
    if isinstance(loaded, BayesianNetwork):
        raise UserError(f"{str(path)!r} holds a Bayesian network; a classifier is needed here")
    if isinstance(loaded, MixtureModel) and not mixtures:
        raise UserError(f"{str(path)!r} holds a mixture, which has no classes; this command needs a classifier")
    model: GenerativeEstimator = loaded
    return model


def load_posterior(path: Path) -> FittedPosterior:
    """Load what predicts, of a classifier or a mixture, without scikit-learn.

    Raises
    ------
    UserError
        There is no such file, or it holds a network.
    """
    _require_file(path)
    from posteriori.scoring.fitted import load_posterior

    with as_user_errors():
        fitted = load_posterior(path)
    if fitted is None:
        raise UserError(f"{str(path)!r} holds a Bayesian network; a classifier is needed here")
    return fitted


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{str(path)!r} is a folder" if path.is_dir() else f"there is no file {str(path)!r}")


def read_for(estimator: GenerativeEstimator, path: Path, target: str | None = None) -> pl.DataFrame:
    """Read a table with the column types of the training rows of a model, including its target."""
    labels = estimator.target_
    is_cut = hasattr(estimator, "target_cuts_")  # the file holds numbers, and the classes are intervals
    name = None if is_cut else target or estimator.schema_.target
    return read_frame(path, estimator.schema_, dataclasses.replace(labels, name=name) if name else None, name)


def scan_for(schema: Schema, target: Column, tables: Sequence[str], beside: Sequence[str] = ()) -> Scan:
    """Open files with the column types of the training rows of a model, and select the columns of the model.

    There is no warning of columns that are used beside the model.
    """
    scan, _ = open_and_summarise(tables, lambda scan: None, schema, target)
    if not schema.named:
        return scan
    known, absent = known_columns([name for name in scan.names if name in schema.given or name not in beside], schema)
    return scan.narrowed(known).with_unknown(_unknown_cells(absent, schema))


_ONE_LETTER = 0.85  # the similarity of a name to itself with a letter changed


def align(frame: pl.DataFrame, schema: Schema, beside: Sequence[str] = ()) -> pl.DataFrame:
    """Select the columns of a model, as `known_columns` does, and those `beside` it; what is absent is unknown."""
    import polars as pl

    from posteriori.tables.polars import exactly

    if not schema.named:
        return frame
    known, absent = known_columns([name for name in frame.columns if name not in beside], schema)
    unknown = (pl.lit(None, dtype).alias(name) for name, dtype in _unknown_cells(absent, schema).items())
    return frame.select(exactly(*known, *beside), *unknown)


def known_columns(names: Sequence[str], schema: Schema) -> tuple[list[str], list[str]]:
    """Return which columns of a table the model has, and which the table lacks; warn about both, except the target.

    Raises
    ------
    UserError
        The table has no column of the model, or an absent one seems to have another spelling.
    """
    extra = [name for name in names if name not in schema.given and name != schema.target]
    absent = [name for name in schema.given if name not in names]
    from posteriori.tables import quote

    if absent:
        if len(absent) == len(schema.given):
            raise UserError("the table has no column of the model; is it another table?")
        for name in absent:
            if found := similar(name, extra, cutoff=_ONE_LETTER):
                raise UserError(
                    f"the table lacks {quote([name])}, which the model was trained on; is it {found!r}? "
                    "Rename one, or remove the other column"
                )
        warn(f"the table lacks {quote(absent)}, which the model was trained on: unknown in every row")
    if extra:
        warn(f"ignored, because the model does not have it: {quote(extra)}")
    return [name for name in names if name in schema.given], absent


def _unknown_cells(names: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Return the data type of columns without a value, as an empty column of a file has it."""
    import polars as pl

    strings = {column.source for column in schema.columns if column.holds_strings}
    return {name: pl.String() if name in strings else pl.Float64() for name in names}


def target_as_classes(
    frame: pl.DataFrame, target: str, path: Path, classes: int | None, is_class: bool
) -> pl.DataFrame:
    """Return a table with its target as classes, cut at quantiles with --classes; check it as `check_target` does."""
    check_column(target, frame.schema, path.name)
    cuts = cuts_of([frame], target, classes, is_class)
    if cuts is not None:
        frame = frame.with_columns(cuts.expression(target))
    check_target(frame, target, path, is_class)
    return frame


def cuts_of(frames: Iterable[pl.DataFrame], target: str, classes: int | None, is_class: bool) -> TargetCuts | None:
    """Return the quantiles at which --classes cuts the target; None without that option."""
    if classes is None:
        return None
    if is_class:
        raise UserError(
            "--classes is for a target that is a quantity, --target-is-class for one that is not; remove one of them"
        )
    import polars as pl

    from posteriori.tables import TargetCuts

    labels = pl.concat([frame[target] for frame in frames])
    if not labels.dtype.is_numeric():
        raise UserError(f"--classes cuts numbers, and the target {target!r} has none; remove the option")
    with as_user_errors():
        return TargetCuts.of(labels, classes)


def check_target(frame: pl.DataFrame, target: str, path: Path, is_class: bool = True) -> None:
    """Check that a target exists, holds classes and has a label in every row; `is_class` allows any whole numbers.

    Raises
    ------
    UserError
        It does not; the message has a remedy.
    """
    check_column(target, frame.schema, path.name)
    labels = frame[target].alias("labels")
    if labels.dtype.is_float():
        labels = labels.fill_nan(None)
    counts = labels.drop_nulls().value_counts(name="rows")
    check_labels(target, dict(zip(*counts.get_columns(), strict=True)), is_class)
    missing = labels.is_null().arg_true().to_list()
    if missing:
        rows = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        plural = "s" if len(missing) > 1 else ""
        raise UserError(
            f"the label in {target!r} is missing in row{plural} {rows} (the first row is 0); fill in or drop "
            f"{'such rows' if plural else 'the row'}"
        )


def check_column(target: str, types: Mapping[str, pl.DataType], table: str) -> None:
    """Raise UserError if a target does not exist, is the only column, or has a type that classes cannot have."""
    if target not in types:
        raise UserError(f"{table!r} has no column {target!r}; {closest(target, types, 'columns')}")
    if len(types) < 2:
        raise UserError(f"{table!r} has only one column, {target!r}; a model needs a feature beside the target")
    dtype = types[target]
    if dtype.is_nested() or dtype.is_temporal() or str(dtype) in ("Binary", "Object"):
        raise UserError(f"the target {target!r} is {dtype}; classes must be strings, whole numbers or true/false")


def check_labels(target: str, rows: Mapping[Any, int], is_class: bool = False) -> None:
    """Check that labels are classes.

    Parameters
    ----------
    target : str
    rows : mapping
        Number of rows of each label.
    is_class : bool, default False
        Whether whole numbers are classes, however many there are.

    Raises
    ------
    UserError
        There are no labels, or they are quantities or too many.
    """
    from posteriori.tables.labels import looks_like_a_quantity

    if not rows:
        raise UserError(f"every label in {target!r} is missing; label the rows or choose another target")
    check_whole(target, rows)
    n_rows = sum(rows.values())
    if is_class:
        return
    if looks_like_a_quantity(list(rows), n_rows):
        raise UserError(
            f"the target {target!r} holds {len(rows):,} different numbers in {n_rows:,} rows, from {min(rows)} to "
            f"{max(rows)}, and looks like a quantity; cut it into classes with --classes 4, or add --target-is-class "
            "if each number is a class"
        )
    if len(rows) > 50 and 2 * len(rows) > n_rows:
        raise UserError(
            f"the target {target!r} has {len(rows):,} classes in {n_rows:,} rows, too few per class "
            "to learn from; is it an identifier or a quantity? choose another target"
        )


def check_whole(target: str, labels: Iterable[Any]) -> None:
    """Raise UserError if a label is a fraction."""
    fraction = next((label for label in labels if isinstance(label, float) and not label.is_integer()), None)
    if fraction is not None:
        raise UserError(
            f"the target {target!r} holds {fraction}, so it is a quantity, not a class; cut it "
            "into classes with --classes 4, or choose another target"
        )


class LabelledTable(NamedTuple):
    """A table in memory, with its features, those of them that are categorical, and the column of groups."""

    frame: pl.DataFrame
    features: list[str]
    categorical: list[str]
    groups: str | None


def read_labelled(
    path: Path,
    target: str,
    *,
    ignore: list[str] | None,
    categorical: list[str] | None,
    classes: int | None,
    target_is_class: bool,
    groups: str | None = None,
) -> LabelledTable:
    """Read a table whose target holds classes, and apply the options on its columns.

    Raises
    ------
    UserError
        The file cannot be read, an option names an unknown column, no feature is left, or the target is unsuitable.
    """
    frame = target_as_classes(read_frame(path, labels=target), target, path, classes, target_is_class)
    features = features_left(frame.columns, target, ignore, path.name)
    if groups is not None:
        groups, features = without_groups(groups, frame.columns, features, target, path.name)
    return LabelledTable(frame, features, columns_named(categorical, features, "--categorical"), groups)


def without_groups(
    groups: str, names: Sequence[str], features: list[str], target: str, table: str
) -> tuple[str, list[str]]:
    """Return the column that --groups names, and the features without it.

    Raises
    ------
    UserError
        There is no such column, or several are named, or no feature is left.
    """
    found = columns_named([groups], [name for name in names if name != target], "--groups")
    if len(found) != 1:
        raise UserError(f"--groups is {groups!r}; name one column")
    return found[0], _require_features([name for name in features if name != found[0]], target, table)


def group_numbers(cells: pl.Series) -> Array:
    """Return the group of each row as a number, (n,); rows whose cell is missing are one group."""
    if cells.dtype.is_nested() or str(cells.dtype) == "Object":
        raise UserError(
            f"--groups names {cells.name!r}, which is {cells.dtype}; groups must be strings, numbers or dates"
        )
    return cells.alias("group").rank("dense").fill_null(0).to_numpy()


def parts_of_dates(dates: list[str] | None) -> Any:
    """Return the parameter `dates` of an estimator for the option --dates.

    Raises
    ------
    UserError
        The option names an unknown part.
    """
    from posteriori.tables.column_kinds import check_dates

    names = split_names(dates)
    chosen = "parts" if not names else names[0] if names in (["parts"], ["ignore"]) else names
    try:
        check_dates(chosen)
    except ValueError as error:
        raise UserError(f"--{error}") from None
    return chosen


def features_left(names: Sequence[str], target: str, ignore: list[str] | None, table: str) -> list[str]:
    """Return the columns except the target and the ignored columns.

    Raises
    ------
    UserError
        There is none, or --ignore names an unknown column.
    """
    features = [name for name in names if name != target]
    ignored = columns_named(ignore, features, "--ignore")
    return _require_features([name for name in features if name not in ignored], target, table)


def _require_features(features: list[str], target: str, table: str) -> list[str]:
    if not features:
        raise UserError(f"{table!r} has no column left beside the target {target!r}; a model needs a feature")
    return features


def columns_named(given: list[str] | None, names: Sequence[str], option: str) -> list[str]:
    """Return the columns that an option names: each value is a column, or several separated by commas.

    Raises
    ------
    UserError
        There is no such column.
    """
    found: list[str] = []
    for value in given or []:
        for name in [value] if value in names else split_names([value]):
            if name not in names:
                hint = closest(name, names, "columns")
                raise UserError(f"{option} names {name!r}, which is not a feature of the table; {hint}")
            if name not in found:
                found.append(name)
    return found


def as_frame(X: Any, names: tuple[str, ...]) -> pl.DataFrame:
    """Return a table of any supported kind as a polars frame."""
    import narwhals as nw
    import numpy as np
    import polars as pl

    if isinstance(X, pl.DataFrame):
        return X
    if isinstance(X, np.ndarray):
        return pl.DataFrame([pl.Series(name, X[:, j].tolist()) for j, name in enumerate(names)])
    columns = nw.from_native(X, eager_only=True).iter_columns()
    return pl.DataFrame([pl.Series(name, column.to_list()) for name, column in zip(names, columns, strict=True)])


AnyModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model saved by fit or cluster, or a network: .posteriori, .bif, .net, … (also .gz).",
        show_default=False,
    ),
]


def load_any(path: Path) -> Any:
    """Return the estimator or the network in a file.

    Raises
    ------
    UserError
        There is no such file, or it holds no model.
    """
    if not path.exists():
        raise UserError(f"there is no file {str(path)!r}")
    from posteriori.model_files import parse, read_file
    from posteriori.networks import read_network

    if path.suffix.lower() != ".posteriori":
        with as_user_errors():
            return read_network(path)
    with as_user_errors():
        holds_network = parse(read_file(path)[0]["content"])["model"] == "BayesianNetwork"
        if holds_network:
            return read_network(path)
    return load_model(path, mixtures=True)
