"""What commands share: models, tables that fit them, targets, columns named by options, outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from posteriori.cli.messages import UserError, as_user_errors, warn
from posteriori.cli.options import split_names
from posteriori.cli.reading import open_and_summarise, read_frame
from posteriori.suggestions import closest, similar

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator
    from posteriori.tables import Scan, TargetCuts


def load_model(path: Path, *, mixtures: bool = False) -> GenerativeEstimator:
    """Read a model, or refuse the file; mixtures says that one will do."""
    if not path.is_file():
        raise UserError(f"{str(path)!r} is a folder" if path.is_dir() else f"there is no file {str(path)!r}")
    from posteriori.classifiers import MixtureModel
    from posteriori.networks import BayesianNetwork
    from posteriori.persistence import load

    with as_user_errors():
        loaded = load(path)
    if isinstance(loaded, BayesianNetwork):
        raise UserError(f"{str(path)!r} holds a Bayesian network; a classifier is needed here")
    if isinstance(loaded, MixtureModel) and not mixtures:
        raise UserError(f"{str(path)!r} holds a mixture, which knows no classes; a classifier is needed here")
    return loaded


def read_for(estimator: GenerativeEstimator, path: Path, target: str | None = None) -> pl.DataFrame:
    """Read a table in the types that the model's columns, and its target, had in training."""
    labels = estimator.target_
    is_cut = hasattr(estimator, "target_cuts_")  # then the file holds numbers, and the classes are names of ranges
    name = None if is_cut else target or estimator.schema_.target
    return read_frame(path, estimator.schema_, dataclasses.replace(labels, name=name) if name else None)


def scan_for(estimator: GenerativeEstimator, tables: Sequence[str]) -> Scan:
    """Open files, in the types that the model's columns had in training, and of them the columns that it knows."""
    scan, _ = open_and_summarise(tables, lambda scan: None, estimator.schema_, estimator.target_)
    return scan.narrowed(known_columns(scan.names, estimator)) if estimator.schema_.named else scan


def align(frame: pl.DataFrame, estimator: GenerativeEstimator) -> pl.DataFrame:
    """Return the columns that the model knows; warn of others, unless one is the target."""
    from posteriori.tables.names import exactly

    return frame.select(exactly(*known_columns(frame.columns, estimator))) if estimator.schema_.named else frame


def known_columns(names: Sequence[str], estimator: GenerativeEstimator) -> list[str]:
    """Return the names of those columns of a table that the model knows; warn of others, unless one is the target."""
    schema = estimator.schema_
    extra = [name for name in names if name not in schema.names and name != schema.target]
    absent = [name for name in schema.names if name not in names]
    from posteriori.tables import quote

    if absent:
        found = similar(absent[0], extra)
        hint = f"is it {found!r}?" if found else "add it, empty where unknown"
        raise UserError(f"the table lacks {quote(absent)}, which the model was trained on; {hint}")
    if extra:
        warn(f"left out, since the model does not know it: {quote(extra)}")
    return [name for name in names if name in schema.names]


def target_as_classes(
    frame: pl.DataFrame, target: str, path: Path, classes: int | None, is_class: bool
) -> pl.DataFrame:
    """Return a table with its target as classes, cut where --classes asks for it; refuse what `check_target` does."""
    check_column(target, frame.schema, path.name)
    cuts = cuts_of(frame.lazy(), target, classes, is_class)
    if cuts is not None:
        frame = frame.with_columns(cuts.expression(target))
    check_target(frame, target, path, is_class)
    return frame


def cuts_of(frame: pl.LazyFrame, target: str, classes: int | None, is_class: bool) -> TargetCuts | None:
    """Return where --classes cuts the target into quantiles; None without that option."""
    if classes is None:
        return None
    if is_class:
        raise UserError("--classes cuts a quantity and --target-is-class says that the target is none; leave out one")
    from posteriori.tables import TargetCuts
    from posteriori.tables.names import exactly

    labels = frame.select(exactly(target)).collect()[target]
    if not labels.dtype.is_numeric():
        raise UserError(f"--classes cuts numbers, and the target {target!r} holds none; leave the option out")
    with as_user_errors():
        return TargetCuts.of(labels, classes)


def check_target(frame: pl.DataFrame, target: str, path: Path, is_class: bool = True) -> None:
    """Refuse a target that is absent, no class, or unlabelled in some row; is_class says that numbers are classes."""
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
    """Refuse a target that is absent, is all there is, or is of a type that no class has."""
    if target not in types:
        raise UserError(f"{table!r} has no column {target!r}; {closest(target, types, 'columns')}")
    if len(types) < 2:
        raise UserError(f"{table!r} has one column only, {target!r}; a model needs a feature beside the target")
    dtype = types[target]
    if dtype.is_nested() or dtype.is_temporal() or str(dtype) in ("Binary", "Object"):
        raise UserError(f"the target {target!r} is {dtype}; classes must be strings, whole numbers or true/false")


def check_labels(target: str, rows: Mapping[Any, int], is_class: bool = False) -> None:
    """Refuse labels, given how many rows have each, that are none or quantities or too many to be classes.

    is_class says that whole numbers are classes, however many there are.
    """
    from posteriori.tables.targets import looks_like_a_quantity

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
            f"the target {target!r} has {len(rows):,} classes in {n_rows:,} rows, which leaves little "
            "to learn of each; is it an identifier or a quantity? choose another target"
        )


def check_whole(target: str, labels: Iterable[Any]) -> None:
    """Refuse labels that are fractions."""
    fraction = next((label for label in labels if isinstance(label, float) and not label.is_integer()), None)
    if fraction is not None:
        raise UserError(
            f"the target {target!r} holds {fraction}, so it is a quantity and no class; cut it "
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
    frame = target_as_classes(read_frame(path), target, path, classes, target_is_class)
    features = features_left(frame.columns, target, ignore, path.name)
    if groups is not None:
        grouping = columns_named([groups], [name for name in frame.columns if name != target], "--groups")
        if len(grouping) != 1:
            raise UserError(f"--groups is {groups!r}; name one column")
        groups = grouping[0]
        features = _require_features([name for name in features if name != groups], target, path.name)
    return LabelledTable(frame, features, columns_named(categorical, features, "--categorical"), groups)


def features_left(names: Sequence[str], target: str, ignore: list[str] | None, table: str) -> list[str]:
    """Return the columns that are neither the target nor ignored.

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
                raise UserError(f"{option} names {name!r}, which is no feature of the table; {hint}")
            if name not in found:
                found.append(name)
    return found


def as_frame(X: Any, names: tuple[str, ...]) -> pl.DataFrame:
    """Return a table of whatever kind the model was trained on as a polars frame."""
    import narwhals as nw
    import numpy as np
    import polars as pl

    if isinstance(X, pl.DataFrame):
        return X
    if isinstance(X, np.ndarray):
        return pl.DataFrame([pl.Series(name, X[:, j].tolist()) for j, name in enumerate(names)])
    columns = nw.from_native(X, eager_only=True).iter_columns()
    return pl.DataFrame([pl.Series(name, column.to_list()) for name, column in zip(names, columns, strict=True)])
