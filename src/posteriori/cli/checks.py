"""What commands share: models, tables that fit them, targets, columns named by options, outputs."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import Refusal, closest, refusing, similar, warn
from posteriori.cli.reading import looked_at, read_frame

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator
    from posteriori.tables import Scan


def load_model(path: Path, *, mixtures: bool = False) -> GenerativeEstimator:
    """Read a model, or refuse the file; mixtures says that one will do."""
    if not path.is_file():
        raise Refusal(f"{str(path)!r} is a folder" if path.is_dir() else f"there is no file {str(path)!r}")
    from posteriori.classifiers import MixtureModel
    from posteriori.networks import BayesianNetwork
    from posteriori.persistence import load

    with refusing():
        loaded = load(path)
    if isinstance(loaded, BayesianNetwork):
        raise Refusal(f"{str(path)!r} holds a Bayesian network; a classifier is needed here")
    if isinstance(loaded, MixtureModel) and not mixtures:
        raise Refusal(f"{str(path)!r} holds a mixture, which knows no classes; a classifier is needed here")
    return loaded


def read_for(estimator: GenerativeEstimator, path: Path, target: str | None = None) -> pl.DataFrame:
    """Read a table in the types that the model's columns, and its target, had in training."""
    labels = estimator.target_
    name = target or estimator.schema_.target
    return read_frame(path, estimator.schema_, dataclasses.replace(labels, name=name) if name else None)


def scan_for(estimator: GenerativeEstimator, tables: Sequence[str]) -> Scan:
    """Open files, in the types that the model's columns had in training, and of them the columns that it knows."""
    scan, _ = looked_at(tables, lambda scan: None, estimator.schema_, estimator.target_)
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
        raise Refusal(f"the table lacks {quote(absent)}, which the model was trained on; {hint}")
    if extra:
        warn(f"left out, since the model does not know it: {quote(extra)}")
    return [name for name in names if name in schema.names]


def check_target(frame: pl.DataFrame, target: str, path: Path) -> None:
    """Refuse a target that is absent, no class, or unlabelled in some row."""
    check_column(target, frame.schema, path.name)
    labels = frame[target].alias("labels")
    if labels.dtype.is_float():
        labels = labels.fill_nan(None)
    counts = labels.drop_nulls().value_counts(name="rows")
    check_labels(target, dict(zip(*counts.get_columns(), strict=True)))
    missing = labels.is_null().arg_true().to_list()
    if missing:
        rows = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        plural = "s" if len(missing) > 1 else ""
        raise Refusal(
            f"the label in {target!r} is missing in row{plural} {rows} (the first row is 0); fill in or drop "
            f"{'such rows' if plural else 'the row'}"
        )


def check_column(target: str, types: Mapping[str, pl.DataType], table: str) -> None:
    """Refuse a target that is absent, is all there is, or is of a type that no class has."""
    if target not in types:
        raise Refusal(f"{table!r} has no column {target!r}; {closest(target, types)}")
    if len(types) < 2:
        raise Refusal(f"{table!r} has one column only, {target!r}; a model needs a feature beside the target")
    dtype = types[target]
    if dtype.is_nested() or dtype.is_temporal() or str(dtype) in ("Binary", "Object"):
        raise Refusal(f"the target {target!r} is {dtype}; classes must be strings, whole numbers or true/false")


def check_labels(target: str, rows: Mapping[Any, int]) -> None:
    """Refuse labels, given how many rows have each, that are none or quantities or too many to be classes."""
    if not rows:
        raise Refusal(f"every label in {target!r} is missing; label the rows or choose another target")
    check_whole(target, rows)
    n_rows = sum(rows.values())
    if len(rows) > 50 and 2 * len(rows) > n_rows:
        raise Refusal(
            f"the target {target!r} has {len(rows):,} classes in {n_rows:,} rows, which leaves little "
            "to learn of each; is it an identifier or a quantity? choose another target"
        )


def check_whole(target: str, labels: Iterable[Any]) -> None:
    """Refuse labels that are fractions."""
    fraction = next((label for label in labels if isinstance(label, float) and not label.is_integer()), None)
    if fraction is not None:
        raise Refusal(
            f"the target {target!r} holds {fraction}, so it is a quantity and no class; choose "
            "another target or put its values into classes first"
        )


def columns_named(given: list[str] | None, names: list[str], option: str) -> list[str]:
    """Return the columns that an option names: each value is one, or some with commas between."""
    found: list[str] = []
    for value in given or []:
        for name in [value] if value in names else [part.strip() for part in value.split(",") if part.strip()]:
            if name not in names:
                raise Refusal(f"{option} names {name!r}, which is no feature of the table; {closest(name, names)}")
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
