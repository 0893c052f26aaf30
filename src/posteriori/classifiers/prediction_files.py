"""Predictions of more rows than fit into memory, written to a file as they are made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

from posteriori.classifiers.estimator import Estimator, OfClasses
from posteriori.reading import Scan
from posteriori.registry import Subject
from posteriori.scoring.decisions import decision_of
from posteriori.scoring.files import ResultColumns, columns_beside, write_predictions
from posteriori.tables import Schema


def predict_to(
    estimator: Estimator,
    X: Any,
    path: str | os.PathLike[str],
    proba: bool = False,
    progress: Callable[[int], None] | None = None,
    *,
    column: str | None = None,
    with_columns: Sequence[str] = (),
    strangeness: bool = False,
    costs: Mapping[Any, Mapping[Any, float]] | None = None,
    thresholds: Mapping[Any, float] | None = None,
    escape_formulas: bool = False,
) -> int:
    """Write the prediction of every row, in order, to a file; memory does not grow with the number of rows.

    Parameters
    ----------
    estimator : fitted classifier, mixture, regressor or joint model
        Classifiers of `posteriori.drop_in` are not supported.
    X : Scan, or anything that `predict` takes
    path : path
        The suffix sets the format: ``.parquet``, ``.arrow``, ``.csv``, ``.tsv`` or ``.ndjson``, for text also ``.gz``.
        The file gets this name only when all rows are written: after an error, an earlier file of this name remains.
    proba : bool, default False
        Whether to write p(y | x) of each class as well.
    progress : callable, optional
        Called with the number of rows of each batch.
    column : str, optional
        The column that a joint model predicts, given the others; not for other models.
    with_columns : sequence of str
        Columns of the files, such as a key, to write before the prediction; X is a `Scan` then.
    strangeness : bool, default False
        Whether to write log_density, log p(x) in nats, and strangeness: the share of rows drawn from the model, with
        the same cells missing, that are more probable than the row. It is near 1 for strange rows.
    costs, thresholds : mapping, optional
        The rule of the prediction, as in `decide`; default the most probable class.
    escape_formulas : bool, default False
        Whether CSV and TSV files get an apostrophe before each text and column name that a spreadsheet would run as a
        formula: one that starts with =, +, -, @, a tab or a carriage return and is not a number. By default all text
        is written as it is, with a warning, because programs that read the file would see the apostrophe.

    Returns
    -------
    int
        Number of rows written. The columns are those of `with_columns`, prediction, p_CLASS of each class if `proba`,
        and log_density and strangeness if `strangeness`. Of a number, prediction is the mean, beside prediction_low and
        prediction_high, the ends of the central 90 % interval; ordered classes have their median, and these ends too.

    Raises
    ------
    OSError
        The folder does not exist, the path is a folder, or writing fails; the error names the path.
    ValueError
        The suffix is unknown, or the path is one of the files that are read.
    RuntimeError
        The process was forked after polars started its threads.

    Examples
    --------
    >>> import os, tempfile, polars as pl, posteriori as po
    >>> rows = pl.DataFrame({"height": [1.0, 2.0, 8.0, 9.0], "y": ["low", "low", "high", "high"]})
    >>> folder = tempfile.mkdtemp()
    >>> rows.write_parquet(os.path.join(folder, "rows.parquet"))
    >>> model = po.NaiveBayes().fit(rows, "y")
    >>> out = os.path.join(folder, "out.csv")
    >>> po.predict_to(model, po.scan(os.path.join(folder, "rows.parquet")), out)
    4
    >>> pl.read_csv(out)["prediction"].to_list()
    ['low', 'low', 'high', 'high']
    """
    if getattr(estimator, "subject", Subject.ROWS) in (Subject.ROWS, Subject.VARIABLES):
        raise TypeError(f"{type(estimator).__name__} writes no files; use a model of posteriori, or its predict")
    rule = {"costs": costs, "thresholds": thresholds, "proba": proba or None, "strangeness": strangeness or None}
    is_class = estimator.subject in (Subject.CLASS, Subject.COMPONENT)
    if not is_class and (option := next((name for name, stated in rule.items() if stated is not None), None)):
        raise ValueError(f"{option} is of classes, and a {type(estimator).__name__} answers about {estimator.subject}")
    if (column is not None) != (estimator.subject is Subject.COLUMNS):
        raise ValueError("column names what a joint model predicts, and is for joint models alone")
    decision = None
    if costs is not None or thresholds is not None:
        decision = decision_of(cast(OfClasses, estimator).fitted_.predictor.labels, costs, thresholds)
    wanted = ResultColumns(proba, strangeness=strangeness, decision=decision)
    predictor = estimator.row_predictor(wanted, **({} if column is None else {"column": column}))
    rows, beside = _of_the_model(X, predictor.schema), columns_beside(X, with_columns)
    return write_predictions(predictor, rows, path, beside, escape_formulas, progress)


def _of_the_model(X: Any, schema: Schema) -> Any:
    """Return a scan without the columns that the model does not have."""
    if not isinstance(X, Scan) or not schema.named:
        return X
    known = [name for name in X.names if name in schema.given]
    return X.narrowed(known) if len(known) == len(schema.given) else X
