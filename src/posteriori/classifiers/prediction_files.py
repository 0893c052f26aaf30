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
    """Write the prediction for every row, in order, to a file: memory does not grow with the number of rows.

    Parameters
    ----------
    estimator : fitted classifier or MixtureModel
        Not of `posteriori.drop_in`.
    X : Scan, or anything that `predict` takes
    path : path
        Its suffix says the format: ``.parquet``, ``.arrow``, ``.csv``, ``.tsv`` or ``.ndjson``, text also ``.gz``. It
        takes this name only when all is written: after an error what was there before is there still.
    proba : bool, default False
        Whether p(y | x) of each class is written as well.
    progress : callable, optional
        Called with the number of rows of every batch that is predicted.

    Returns
    -------
    int
        The number of rows written: column prediction, and p_CLASS of each class.

    Raises
    ------
    OSError
        There is no such folder, the path is that of a folder, or writing fails: the error names the path.
    ValueError
        The suffix is not known, or the path is that of one of the files that are read.
    RuntimeError
        The process was forked after polars had started its threads.

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
