"""What commands share: models, tables that fit them, targets, columns named by options, outputs."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import Refusal, closest, refusing, similar, warn
from posteriori.cli.reading import check_place, read_frame, writer_of, written_beside

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator


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


def align(frame: pl.DataFrame, estimator: GenerativeEstimator) -> pl.DataFrame:
    """Return the columns that the model knows; warn of others, unless one is the target."""
    schema = estimator.schema_
    if not schema.named:
        return frame
    extra = [name for name in frame.columns if name not in schema.names and name != schema.target]
    absent = [name for name in schema.names if name not in frame.columns]
    from posteriori.tables import quote

    if absent:
        found = similar(absent[0], extra)
        hint = f"is it {found!r}?" if found else "add it, empty where unknown"
        raise Refusal(f"the table lacks {quote(absent)}, which the model was trained on; {hint}")
    if extra:
        warn(f"left out, since the model does not know it: {quote(extra)}")
    return frame.select(name for name in frame.columns if name in schema.names)


def check_target(frame: pl.DataFrame, target: str, path: Path, *, may_miss: bool = False) -> None:
    """Refuse a target that is absent, no class, or, unless labels may miss, unlabelled in some row."""
    if target not in frame.columns:
        raise Refusal(f"{path.name!r} has no column {target!r}; {closest(target, frame.columns)}")
    if frame.width < 2:
        raise Refusal(f"{path.name!r} has one column only, {target!r}; a model needs a feature beside the target")
    labels = frame[target]
    if labels.dtype.is_nested() or labels.dtype.is_temporal() or str(labels.dtype) in ("Binary", "Object"):
        raise Refusal(f"the target {target!r} is {labels.dtype}; classes must be strings, whole numbers or true/false")
    if labels.dtype.is_float():
        labels = labels.fill_nan(None)
    missing = labels.is_null().arg_true().to_list()
    if len(missing) == len(labels):
        raise Refusal(f"every label in {target!r} is missing; label the rows or choose another target")
    if missing and not may_miss:
        rows = ", ".join(map(str, missing[:5])) + (f" and {len(missing) - 5} more" if len(missing) > 5 else "")
        plural = "s" if len(missing) > 1 else ""
        raise Refusal(
            f"the label in {target!r} is missing in row{plural} {rows} (the first row is 0); fill in or drop "
            f"{'such rows' if plural else 'the row'}"
        )
    if labels.dtype.is_float():
        fractions = labels.filter(labels != labels.floor())
        if len(fractions):
            raise Refusal(
                f"the target {target!r} holds {fractions[0]}, so it is a quantity and no class; choose "
                "another target or put its values into classes first"
            )
    labels = labels.drop_nulls()
    n_classes = labels.n_unique()
    if n_classes > 50 and 2 * n_classes > len(labels):
        raise Refusal(
            f"the target {target!r} has {n_classes:,} classes in {len(labels):,} rows, which leaves little "
            "to learn of each; is it an identifier or a quantity? choose another target"
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


def open_output(output: Path | None, *sources: Path) -> Callable[[pl.DataFrame], Any]:
    """Return the function that writes a frame to a file, in the format of its suffix, or to stdout as CSV."""
    if output is None:
        return lambda frame: sys.stdout.write(frame.write_csv())
    write_file = writer_of(output)
    check_place(output, *sources)

    def write(frame: pl.DataFrame) -> None:
        with written_beside(output) as place:
            write_file(frame, place)

    return write


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
