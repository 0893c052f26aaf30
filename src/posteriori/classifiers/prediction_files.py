"""Predictions of more rows than fit into memory, written to a file as they are made."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.generative_classifier import GenerativeClassifier
from posteriori.classifiers.mixture import MixtureModel
from posteriori.scoring.files import write_predictions
from posteriori.scoring.fitted import FittedPosterior


def predict_to(
    estimator: Any,
    X: Any,
    path: str | os.PathLike[str],
    proba: bool = False,
    progress: Callable[[int], None] | None = None,
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

    Returns
    -------
    int
        Number of rows written. The columns are prediction, and p_CLASS of each class if `proba`.

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
    if not isinstance(estimator, GenerativeEstimator | MixtureModel | GenerativeClassifier):
        raise TypeError(f"{type(estimator).__name__} writes no files; use a classifier of posteriori, or its predict")
    return write_predictions(_fitted_posterior(estimator), X, path, proba, progress)


def _fitted_posterior(estimator: GenerativeEstimator | MixtureModel | GenerativeClassifier) -> FittedPosterior:
    mixture, name = isinstance(estimator, MixtureModel), type(estimator).__name__
    learned = hasattr(estimator, "statistics_") or isinstance(estimator, GenerativeClassifier)
    return FittedPosterior(estimator._posterior, estimator.target_, name, mixture, estimator.n_jobs, learned)
