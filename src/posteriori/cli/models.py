"""Load the models of commands, and read tables with their columns."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.files import open_and_summarise, read_frame
from posteriori.cli.messages import UserError, as_user_errors, warn

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator, JointModel
    from posteriori.classifiers.estimator import OneModel
    from posteriori.classifiers.generative_regressor import Regressor
    from posteriori.reading import Scan
    from posteriori.scoring.fitted import FittedPosterior
    from posteriori.tables import Column, Schema

_OF_TABLES = (".csv", ".tsv", ".txt", ".parquet", ".arrow", ".feather", ".ndjson", ".jsonl", ".xlsx", ".xls", ".ods")

_JOINT = ("JointModel", "GenerativeImputer")  # models of files that hold a joint model

AnyModelPath = Annotated[
    Path,
    typer.Argument(
        metavar="MODEL",
        help="A model saved by fit or cluster, or a network: .posteriori, .bif, .net, … (also .gz).",
        show_default=False,
    ),
]


def joint_model_in(path: Path) -> JointModel | None:
    """Return the joint model in a file, or that of an imputer; None if it holds another model, or none."""
    from posteriori.model_files import is_model_file, parse, read_file

    if not path.is_file() or not is_model_file(path):
        return None
    with as_user_errors():
        if parse(read_file(path)[0]["content"])["model"] not in _JOINT:
            return None
        from posteriori.persistence import load

        found: JointModel = _without_imputer(load(path))
    return found


def _without_imputer(loaded: Any) -> Any:
    """Return the joint model of an imputer, and any other model as it is."""
    from posteriori.classifiers import GenerativeImputer

    return loaded.model_ if isinstance(loaded, GenerativeImputer) else loaded


def askable_model_in(path: Path) -> JointModel | OneModel | None:
    """Return the model in a file that answers about any column; None if it holds a network, or no such model."""
    from posteriori.model_files import is_model_file

    if not path.is_file() or not is_model_file(path):
        return None
    from posteriori.classifiers import JointModel
    from posteriori.classifiers.estimator import OneModel
    from posteriori.persistence import load

    with as_user_errors():
        loaded = _without_imputer(load(path))
    return loaded if isinstance(loaded, JointModel | OneModel) else None


def load_model(path: Path, *, mixtures: bool = False) -> GenerativeEstimator:
    """Load a classifier, or with `mixtures` also a mixture.

    Every command loads models of classes here, or by `load_posterior`.

    Raises
    ------
    UserError
        There is no such file, or it holds another kind of model.
    """
    loaded = load_of_any_target(path)
    from posteriori.classifiers import MixtureModel
    from posteriori.classifiers.generative_regressor import Regressor

    if isinstance(loaded, Regressor):
        raise _number_instead(path)
    if isinstance(loaded, MixtureModel) and not mixtures:
        raise _mixture_instead(path)
    model: GenerativeEstimator = loaded
    return model


def load_classifier_or_regressor(path: Path) -> Any:
    """Load an estimator with a target that rows hold.

    Raises
    ------
    UserError
        There is no such file, or it holds a network or a mixture.
    """
    loaded = load_of_any_target(path)
    from posteriori.classifiers import MixtureModel

    if isinstance(loaded, MixtureModel):
        raise _mixture_instead(path)
    return loaded


def load_of_any_target(path: Path) -> Any:
    """Load an estimator: a classifier, a mixture or a regressor.

    Raises
    ------
    UserError
        There is no such file, or it holds a network.
    """
    _require_no_network(path)
    from posteriori.persistence import load

    with as_user_errors():
        loaded = _without_imputer(load(path))
    from posteriori.classifiers import JointModel
    from posteriori.classifiers.estimator import Estimator

    if isinstance(loaded, JointModel):
        raise _joint_instead(path)
    if not isinstance(loaded, Estimator):  # importing networks to ask for them takes a quarter of a second
        raise _network_instead(path)
    return loaded


def load_posterior(path: Path) -> FittedPosterior:
    """Load what predicts, of a classifier or a mixture, without scikit-learn.

    Raises
    ------
    UserError
        There is no such file, or it holds a network or a regressor.
    """
    fitted = load_posterior_or_regressor(path)
    from posteriori.scoring.fitted import FittedPosterior

    if not isinstance(fitted, FittedPosterior):
        raise _number_instead(path)
    return fitted


def load_posterior_or_regressor(path: Path) -> FittedPosterior | Regressor:
    """Load what predicts, of a classifier or a mixture without scikit-learn; or a regressor.

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
            regressor: Regressor = load_of_any_target(path)
            return regressor
    if fitted is None:
        raise _network_instead(path)
    return fitted


def load_any(path: Path) -> Any:
    """Return the estimator or the network in a file.

    Raises
    ------
    UserError
        There is no such file, or it holds no model.
    """
    _require_file(path)
    from posteriori.model_files import parse, read_file
    from posteriori.networks import read_network

    if path.suffix.lower() != ".posteriori":
        with as_user_errors():
            return read_network(path)
    with as_user_errors():
        kind = parse(read_file(path)[0]["content"])["model"]
        if kind == "BayesianNetwork":
            return read_network(path)
    return joint_model_in(path) if kind in _JOINT else load_of_any_target(path)


def _require_no_network(path: Path) -> None:
    _require_file(path)
    if path.suffix.lower() == ".posteriori":  # spares the imports
        return
    from posteriori.model_files import is_model_file
    from posteriori.networks.formats.files import FORMATS

    endings = {ending for one in FORMATS for ending in one.suffixes}
    if path.name.lower().removesuffix(".gz").endswith(tuple(endings)) and not is_model_file(path):
        raise _network_instead(path)


def _network_instead(path: Path) -> UserError:
    return UserError(
        f"{str(path)!r} holds a Bayesian network; a classifier is needed here (posteriori network and posteriori "
        "query take networks)"
    )


def _mixture_instead(path: Path) -> UserError:
    return UserError(f"{str(path)!r} holds a mixture, which has no classes; this command needs a classifier")


def _joint_instead(path: Path) -> UserError:
    return UserError(
        f"{str(path)!r} holds a joint model of all columns, and this command needs a model of one: fit TABLE --target "
        "NAME makes it (predict --target, report, explore, impute, query, sample and show take a joint model)"
    )


def _number_instead(path: Path) -> UserError:
    return UserError(
        f"{str(path)!r} predicts a number, and this command needs a classifier; posteriori predict, explain, "
        "evaluate, report and show take it"
    )


def _require_file(path: Path) -> None:
    if not path.is_file():
        raise UserError(f"{str(path)!r} is a folder" if path.is_dir() else f"there is no file {str(path)!r}")
    if path.name.lower().removesuffix(".gz").removesuffix(".zst").endswith(_OF_TABLES):
        from posteriori.model_files import is_model_file

        if not is_model_file(path):
            raise UserError(f"{str(path)!r} is a table, and the model comes first: give the file that fit saved")


def read_for(estimator: GenerativeEstimator | Regressor, path: Path, target: str | None = None) -> pl.DataFrame:
    """Read a table with the column types of the training rows of a model, including its target."""
    from posteriori.classifiers.training_record import record_of

    labels = estimator.target_
    is_cut = record_of(estimator).target_cuts is not None  # the file holds numbers, and the classes are intervals
    name = None if is_cut else target or estimator.schema_.target
    return read_frame(path, estimator.schema_, dataclasses.replace(labels, name=name) if name else None, name)


def with_cut_target(
    frame: pl.DataFrame, estimator: GenerativeEstimator | Regressor, target: str | None
) -> pl.DataFrame:
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
