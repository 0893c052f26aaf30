"""Predictions of more rows than fit into memory, written to a file as they are made."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.mixture import MixtureModel
from posteriori.reading import Scan
from posteriori.scoring.decisions import decision_of
from posteriori.scoring.files import RowPredictor, Wanted, columns_beside, write_predictions
from posteriori.tables import Schema


def predict_to(
    estimator: Classifier | MixtureModel,
    X: Any,
    path: str | os.PathLike[str],
    proba: bool = False,
    progress: Callable[[int], None] | None = None,
    *,
    with_columns: Sequence[str] = (),
    strangeness: bool = False,
    costs: Mapping[Any, Mapping[Any, float]] | None = None,
    thresholds: Mapping[Any, float] | None = None,
    escape_formulas: bool = False,
) -> int:
    """Write the prediction of every row, in order, to a file; memory does not grow with the number of rows.

    Parameters
    ----------
    estimator : fitted classifier or MixtureModel
        Classifiers of `posteriori.drop_in` are not supported.
    X : Scan, or anything that `predict` takes
    path : path
        The suffix sets the format: ``.parquet``, ``.arrow``, ``.csv``, ``.tsv`` or ``.ndjson``, for text also ``.gz``.
        The file gets this name only when all rows are written: after an error, an earlier file of this name remains.
    proba : bool, default False
        Whether to write p(y | x) of each class as well.
    progress : callable, optional
        Called with the number of rows of each batch.
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
        and log_density and strangeness if `strangeness`.

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
    if not isinstance(estimator, Classifier | MixtureModel):
        raise TypeError(f"{type(estimator).__name__} writes no files; use a classifier of posteriori, or its predict")
    fitted = replace(estimator.fitted_.predictor, n_jobs=estimator.n_jobs)
    decision = None if costs is None and thresholds is None else decision_of(fitted.labels, costs, thresholds)
    predictor = RowPredictor.of_classes(fitted, Wanted(proba, strangeness, decision))
    rows, beside = _of_the_model(X, fitted.schema), columns_beside(X, with_columns)
    return write_predictions(predictor, rows, path, beside, escape_formulas, progress)


def _of_the_model(X: Any, schema: Schema) -> Any:
    """Return a scan without the columns that the model does not have."""
    if not isinstance(X, Scan) or not schema.named:
        return X
    known = [name for name in X.names if name in schema.given]
    return X.narrowed(known) if len(known) == len(schema.given) else X
