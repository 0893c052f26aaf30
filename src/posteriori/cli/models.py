"""Load the models of commands, and read tables with their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import open_and_summarise, read_frame
from posteriori.cli.messages import UserError, as_user_errors, note, warn
from posteriori.cli.outputs import MODEL
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers.estimator import Estimator
    from posteriori.reading import Scan
    from posteriori.tables import Column, Schema

_OF_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".ndjson", ".jsonl", ".xlsx", ".xls", ".ods")

AnyModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model saved by fit or cluster, or a network: .posteriori, .bif, .net, … (also .gz).",
        show_default=False,
    ),
]


def load(path: Path, *subjects: Subject) -> Any:
    """Return the model in a file, if it answers about one of `subjects`; of an imputer its joint model.

    Raises
    ------
    UserError
        There is no such file, or it holds no model, or one that answers about something else.
    """
    networks = Subject.VARIABLES in subjects
    (_require_file if networks else _require_no_network)(path)
    if networks and path.suffix.lower() != MODEL:
        from posteriori.model_files import is_model_file
        from posteriori.networks import read_network

        if not is_model_file(path):
            with as_user_errors():
                return read_network(path)
    model = read_model(path)
    if model.subject not in subjects:
        raise _instead(path, model.subject)
    return model


def load_portable(path: Path, *subjects: Subject) -> Any:
    """Return the model in a file in a form for other languages: of a pool of regressions its additive member.

    The note on stderr says what that costs. Errors are those of `load`.
    """
    model = load(path, *subjects)
    if "additive" not in getattr(model, "cv_results_", {}).get("member", ()) or not hasattr(model, "additive_member"):
        return model
    from posteriori.support.formatting import number

    results = model.cv_results_
    crps = dict(zip(results["member"], results["crps"], strict=True))
    note(
        "a pool of regressions runs in Python alone; this is its additive member, whose CRPS in held-out rows is "
        f"{number(crps['additive'])}, that of the pool {number(crps['pool'])}"
    )
    return model.additive_member()


def read_model(path: Path) -> Any:
    """Return the model in a file that `save` wrote; of an imputer its joint model. UserError if it is another file."""
    from posteriori import persistence

    with as_user_errors():
        model = persistence.load(path)
    return model if hasattr(model, "subject") else model.model_  # an imputer has no subject of its own


def load_posterior(path: Path) -> Any:
    """Load what predicts: of a classifier or a mixture without scikit-learn, of a number the regressor.

    Raises
    ------
    UserError
        There is no such file, or it holds a network.
    """
    _require_no_network(path)
    from posteriori.scoring.fitted import NumberModelError, load_posterior

    with as_user_errors():
        try:
            fitted = load_posterior(path)
        except NumberModelError:
            return load(path, Subject.NUMBER)
    if fitted is None:
        raise _instead(path, Subject.VARIABLES)
    return fitted


def holds_joint_model(path: Path) -> bool:
    """Return whether there is a file with a joint model, or an imputer."""
    from posteriori.model_files import is_model_file, parse, read_file

    if not path.is_file() or not is_model_file(path):
        return False
    with as_user_errors():
        return parse(read_file(path)[0]["content"])["model"] in ("JointModel", "GenerativeImputer")


def _require_no_network(path: Path) -> None:
    _require_file(path)
    if path.suffix.lower() == MODEL:  # spares the imports
        return
    from posteriori.model_files import is_model_file
    from posteriori.networks.formats.files import FORMATS

    endings = {ending for one in FORMATS for ending in one.suffixes}
    if path.name.lower().removesuffix(".gz").endswith(tuple(endings)) and not is_model_file(path):
        raise _instead(path, Subject.VARIABLES)


_INSTEAD = {
    Subject.VARIABLES: "holds a Bayesian network; a classifier is needed here (posteriori network and posteriori "
    "query take networks)",
    Subject.COMPONENT: "holds a mixture, which has no classes; this command needs a classifier",
    Subject.COLUMNS: "holds a joint model of all columns, and this command needs a model of one: fit TABLE --target "
    "NAME makes it (predict --target, report, explore, impute, query, sample and show take a joint model)",
    Subject.NUMBER: "predicts a number, and this command needs a classifier; posteriori predict, explain, "
    "evaluate, report and show take it",
}


def _instead(path: Path, subject: Subject) -> UserError:
    """Return the error that a file holds a model which answers about something else."""
    return UserError(f"{str(path)!r} {_INSTEAD[subject]}")


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{str(path)!r} is a folder" if path.is_dir() else f"there is no file {str(path)!r}")
    if path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(_OF_TABLES):
        from posteriori.model_files import is_model_file

        if not is_model_file(path):
            raise UserError(f"{str(path)!r} is a table, and the model comes first: give the file that fit saved")


def read_for(estimator: Estimator, path: Path, target: str | None = None) -> pl.DataFrame:
    """Read a table with the column types of the training rows of a model, including its target."""
    from posteriori.classifiers.training_record import record_of

    labels = estimator.target_
    is_cut = record_of(estimator).target_cuts is not None  # the file holds numbers, and the classes are intervals
    name = None if is_cut else target or estimator.schema_.target
    return read_frame(path, estimator.schema_, dataclasses.replace(labels, name=name) if name else None, name)


def with_cut_target(frame: pl.DataFrame, estimator: Estimator, target: str | None) -> pl.DataFrame:
    """Return a table whose numeric target is the classes that it was cut into in training."""
    from posteriori.classifiers.training_record import record_of

    cuts = record_of(estimator).target_cuts
    if cuts is None or target not in frame.columns or not frame.schema[target].is_numeric():
        return frame
    return frame.with_columns(cuts.expression(target))


def scan_for(schema: Schema, target: Column | None, tables: Sequence[str], beside: Sequence[str] = ()) -> Scan:
    """Open files with the column types of the training rows of a model, and select the columns of the model.

    There is no warning of columns that are used beside the model.
    """
    scan, _ = open_and_summarise(tables, lambda scan: None, schema, target)
    if not schema.named:
        return scan
    known, absent = known_columns([name for name in scan.names if name in schema.given or name not in beside], schema)
    return scan.narrowed(known).with_unknown(_unknown_cells(absent, schema))


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
    from posteriori.reading.matching import is_another_table, misspelt, without_unused
    from posteriori.tables import quote

    if absent:
        needed = [name for name in absent if name != schema.target]  # a joint model predicts one of its columns
        if pair := misspelt(needed, extra):
            raise UserError(
                f"the table lacks {quote(pair[:1])}, which the model was trained on; is it {pair[1]!r}? "
                "Rename one, or remove the other column"
            )
        if is_another_table(absent, schema):
            raise UserError("the table has no column of the model; is it another table?")
        if used := without_unused(needed, schema):
            warn(f"the table lacks {quote(used)}, which the model was trained on: unknown in every row")
    if extra:
        warn(f"ignored, because the model does not have it: {quote(extra)}")
    return [name for name in names if name in schema.given], absent


def _unknown_cells(names: Sequence[str], schema: Schema) -> dict[str, Any]:
    """Return the data type of columns without a value, as an empty column of a file has it."""
    import polars as pl

    strings = {column.source for column in schema.columns if column.holds_strings}
    return {name: pl.String() if name in strings else pl.Float64() for name in names}
