"""A fitted model as an expression of polars, which scores rows within a query."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import polars as pl

from posteriori.reading.matching import without_unused
from posteriori.registry import Subject
from posteriori.scoring.files import ResultColumns, RowPredictor, predictions, probability_column
from posteriori.support.suggestions import closest
from posteriori.tables.writing import label_series

_Scored = Callable[[pl.DataFrame], pl.DataFrame]


def to_polars(model: Any, column: str | None = None, *, columns: Sequence[str] | None = None) -> pl.Expr:
    """Return a polars expression that scores rows, in a frame or in a lazy query, which may be streamed.

    Parameters
    ----------
    model : fitted classifier, mixture, regressor, joint model or Bayesian network
    column : str, optional
        The column that a joint model or a network predicts, given the others; not for other models.
    columns : sequence of str, optional
        The columns of the model that the frame has; the others are unknown in every row. Default: all. An expression
        does not see the frame before it runs, and polars raises ColumnNotFoundError for a column that is not there.

    Returns
    -------
    polars.Expr
        A struct with the fields, the names and the types that `predict_to` writes with ``proba=True``: prediction and
        ``p_CLASS`` of each class, or prediction, prediction_low and prediction_high of a number. A network has
        the fields of classes. Cells are read as `predict_to` reads them; other columns of the frame are not read.

    Raises
    ------
    TypeError
        The model has no target, or is not one of posteriori.
    ValueError
        The column is not stated for a joint model or a network, or is for another model; or `columns` is empty or names
        a column that the model does not have.

    Notes
    -----
    The expression holds the model, and calls it for each batch of rows of polars; it cannot be written to a file. A
    warning about rows is given once, about the first batch with a cause, and counts the rows of that batch.

    Examples
    --------
    >>> import polars as pl, posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> model = po.NaiveBayes().fit(load_penguins(), "species")
    >>> lazy = load_penguins().lazy().with_columns(po.to_polars(model).alias("answer"))
    >>> gentoo = lazy.filter(pl.col("answer").struct.field("p_Gentoo") > 0.9)
    >>> gentoo.select(pl.len()).collect(engine="streaming").item()
    123
    """
    subject = getattr(model, "subject", Subject.ROWS)
    if subject is Subject.ROWS:
        raise TypeError(f"{type(model).__name__} has no expression of polars; use a model of posteriori with a target")
    if (column is not None) != (subject in (Subject.COLUMNS, Subject.VARIABLES)):
        raise ValueError("column names what a joint model or a network predicts: state it for these models alone")
    if subject is Subject.VARIABLES:
        names, scored = _of_network(model, column)
    else:
        names, scored = _of_rows(
            model.row_predictor(ResultColumns(proba=True), **({"column": column} if column else {}))
        )
    had = names if columns is None else list(columns)
    if unknown := [name for name in had if name not in names]:
        raise ValueError(f"the model reads no column {unknown[0]!r}; {closest(unknown[0], names, 'columns')}")
    if not had:
        raise ValueError("columns is empty; name the columns of the model that the frame has")
    schema = scored(pl.DataFrame({name: [None] for name in names})).schema

    def of_batch(rows: pl.Series) -> pl.Series:
        frame = scored(rows.struct.unnest()) if len(rows) else pl.DataFrame(schema=schema)
        return frame.to_struct(rows.name)

    cells = [pl.col(name) if name in had else pl.lit(None).alias(name) for name in names]
    return pl.struct(cells).map_batches(of_batch, pl.Struct(schema), is_elementwise=True).alias("posterior")


def _of_rows(predictor: RowPredictor) -> tuple[list[str], _Scored]:
    """Return the columns of which a predictor reads cells, and a function from frames of them to the predictions."""
    schema, warned = predictor.schema, set[str]()
    names = [name for name in without_unused(schema.given, schema) if name != schema.target]
    return names, lambda frame: pl.concat(list(predictions(predictor, frame, warned=warned)))


def _of_network(network: Any, target: str | None) -> tuple[list[str], _Scored]:
    """Return the variables of a network beside its target, and a function from frames of them to the predictions."""
    states, prior = network.states(target), network.query(target).probabilities
    labels = label_series("prediction", states)

    def scored(frame: pl.DataFrame) -> pl.DataFrame:
        p = network.predict_proba(frame, target)
        best = np.where(np.isnan(p), prior, p).argmax(axis=1)  # as its classifier in rows of probability 0
        shares = [pl.Series(probability_column(state), p[:, k]) for k, state in enumerate(states)]
        return pl.DataFrame([labels.gather(best), *shares])

    return [name for name in network.variables if name != target], scored
