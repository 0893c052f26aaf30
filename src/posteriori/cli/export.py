"""The commands export and sql: a model in another language."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from posteriori.cli.files import write_out
from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import AnyModelPath, load_portable
from posteriori.cli.options import Force, ModelPath, Threshold, split_names
from posteriori.cli.outputs import Output, output_at
from posteriori.cli.predict import named_costs, named_thresholds
from posteriori.cli.records import CLASSES, NUMBERS, For, refuse_unfit, usual_sentence
from posteriori.registry import Subject

_MODULES = (".js", ".mjs")  # files that hold the evaluator and the model as one module


class ExportLanguage(StrEnum):
    """Languages that a model is exported to."""

    js = "js"
    onnx = "onnx"


def export(
    model: AnyModelPath,
    to: Annotated[
        ExportLanguage, typer.Option(help="js: JSON for the evaluator in JavaScript. onnx: a graph of ONNX.")
    ] = ExportLanguage.js,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Where to write. Default: stdout.")
    ] = None,
    evaluator: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where to write the evaluator too: one ES module, such as posteriori.mjs."),
    ] = None,
    force: Force = False,
) -> None:
    """Write a model for JavaScript or ONNX: pages and services then score rows without Python.

    The evaluator computes p(class | row), log p(row), each factor of the sum, the marginals of a network, the
    density of a number by an AdditiveRegressor, and any column of a joint model, with any cells missing. Its numbers
    are those of Python up to rounding. A graph of ONNX gives the label and p(class | row) of classifiers, and the
    mean and the 90 % interval of a number by an AdditiveRegressor or a KernelRegressor.
    Written to a file .mjs or .js, evaluator and model are one module: import { model } from "./penguins.mjs".
    For a database: posteriori sql.

    Example:

        posteriori export penguins.posteriori --to js -o penguins.mjs
        posteriori export penguins.posteriori --to js -o penguins.json --evaluator posteriori.mjs
        posteriori export penguins.posteriori --to onnx -o penguins.onnx
    """
    if to is ExportLanguage.onnx:
        if output is None or evaluator is not None:
            raise UserError("a graph of ONNX is one file of bytes: name it with -o, without --evaluator")
        _export_onnx(model, output_at(output, [model], force))
        return
    place = None if output is None else output_at(output, [model], force)
    beside = None if evaluator is None else output_at(evaluator, [model], force, others=[output])
    loaded = load_portable(model, *Subject)

    from posteriori.javascript import javascript_evaluator, to_javascript
    from posteriori.support.atomic_write import write_whole

    with as_user_errors():
        written = to_javascript(loaded) + "\n"
    if output is not None and output.suffix in _MODULES:
        if evaluator is not None:
            raise UserError(
                f"{str(output)!r} holds the evaluator too; leave --evaluator out, or write the model as .json"
            )
        written = f"{javascript_evaluator()}\nexport const model = load({written.rstrip()});\n"
    if beside is not None:
        with beside.writing() as path:
            write_whole(path, javascript_evaluator().encode())
    if place is None:
        write_out(written)
    else:
        with place.writing() as path:
            write_whole(path, written.encode())


def _export_onnx(model: Path, place: Output) -> None:
    from posteriori.support.atomic_write import write_whole

    loaded = load_portable(model, Subject.CLASS, Subject.NUMBER, Subject.COMPONENT)
    if not hasattr(loaded, "to_onnx"):
        name = type(loaded).__name__
        raise UserError(f"{str(model)!r} holds a {name}, which has no graph of ONNX; fit --model additive or kernel")
    with as_user_errors():
        try:
            graph = loaded.to_onnx()
        except ImportError as error:
            raise UserError(str(error)) from error
    with place.writing() as path:
        write_whole(path, graph.SerializeToString())


@dataclass(frozen=True)
class _Predicted:
    """The options on the predictions of the SELECT."""

    threshold: Annotated[Threshold, CLASSES] = None
    costs: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Predict the decision of least expected cost: .json or table."),
        CLASSES,
    ] = None
    coverage: Annotated[
        float | None,
        typer.Option(metavar="P", help="Of a number: probability of its interval. Default: 0.9.", show_default=False),
        NUMBERS,
    ] = None


def _of_clusters(option: str, needed: For) -> str:
    return f"{option} is for {needed.models}, and the model divides rows into clusters; leave it out"


def sql(
    model: ModelPath,
    table: Annotated[
        str, typer.Option(metavar="TABLE", help="Table to score: its name, or a SELECT in parentheses.")
    ] = "rows",
    dialect: Annotated[
        str, typer.Option(metavar="NAME", help="duckdb, sqlite, postgres, mysql, bigquery, snowflake, spark, tsql, …")
    ] = "duckdb",
    columns: Annotated[
        list[str] | None,
        typer.Option(
            "--with",
            "--columns",
            metavar="A,B",
            help="Columns of the table in the result, such as its key. Default: the features.",
        ),
    ] = None,
    *,
    asked: _Predicted,
) -> None:
    """Print a model as one SELECT, which scores rows in a database.

    The result has the columns of --with, prediction, and p_CLASS and log_p_CLASS of each class. Missing cells are
    integrated out. In SQLite and DuckDB numbers may be text. The probabilities are those of predict --proba. The rows
    are in no order: name their key with --with. For the pool, nb, lda, qda, rda, tan, chow-liu, kdb and aode; for
    clusters, whose numbers stand for classes; and for regressors: the mean of a number and the ends of its interval, by
    their additive member, in rows without missing cells.
    For JavaScript: posteriori export.

    Example:

        posteriori sql penguins.posteriori --dialect sqlite --table penguins --with id
    """
    estimator = load_portable(model, Subject.CLASS, Subject.NUMBER, Subject.COMPONENT)
    kinds, models = {
        Subject.CLASS: ({CLASSES}, "pool, nb, lda, qda, rda, tan, chow-liu, kdb or aode"),
        Subject.NUMBER: ({NUMBERS}, "additive"),
        Subject.COMPONENT: (set[For](), ""),
    }[estimator.subject]
    if not hasattr(estimator, "to_sql"):
        name = type(estimator).__name__
        raise UserError(f"{str(model)!r} holds a {name}, which cannot be written as a SELECT; fit --model {models}")
    refuse_unfit([asked], kinds, _of_clusters if estimator.subject is Subject.COMPONENT else usual_sentence)
    more: dict[str, Any] = {} if asked.coverage is None else {"coverage": asked.coverage}
    if asked.threshold:
        more["thresholds"] = named_thresholds(asked.threshold)
    if asked.costs is not None:
        more["costs"] = named_costs(asked.costs)
    kept = None if columns is None else split_names(columns)
    with as_user_errors():
        try:
            select = estimator.to_sql(table, dialect, kept, **more)
        except ImportError as error:
            raise UserError(str(error)) from error
    print(select)
