"""The laws of models."""

from __future__ import annotations

import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from posteriori.checks.laws import Law, checked, equal, require
from posteriori.classifiers.classifier import Classifier
from posteriori.persistence import load, save
from posteriori.support.typing import Array


def check_model(estimator: Classifier, X: Any, y: Any) -> list[str]:
    """Check that a model obeys Bayes' rule and the conventions of the library, and return the laws.

    The laws are of scikit-learn's conventions where it has some (`sklearn.utils.estimator_checks` checks more of them).

    Parameters
    ----------
    estimator : estimator of posteriori
        It is cloned, and stays as it is.
    X : frame, array or path
        Features, at least 20 rows.
    y : array-like (n,) or str
        Labels, or the name of the column that holds them.

    Returns
    -------
    list of str
        The laws, in the order in which they were checked. A model without p(x) has no law about it.

    Raises
    ------
    AssertionError
        A law does not hold; the message says which, and by how much.
    """
    frame = X if isinstance(X, pl.DataFrame) else pl.DataFrame(np.asarray(X)) if isinstance(X, np.ndarray) else X
    if isinstance(y, str):
        frame, y = frame.drop(y), frame[y]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return checked(_laws_of_model(estimator, frame, np.asarray(y)))


def _laws_of_model(estimator: Classifier, X: pl.DataFrame, y: Array) -> Iterator[Law]:
    model = clone(estimator).fit(X, y)
    posterior = model.predict_proba(X)
    log_posterior = model.predict_log_proba(X)

    def is_distribution() -> None:
        require((posterior >= 0).all(), "A probability is negative")
        equal(posterior.sum(axis=1), np.ones(len(X)))
        equal(np.exp(log_posterior), posterior)

    yield "p(y | x) is a distribution, and predict_log_proba its logarithm", is_distribution
    yield (
        "predict gives a class of the greatest probability",
        lambda: equal(
            posterior[np.arange(len(X)), np.searchsorted(model.classes_, model.predict(X))], posterior.max(1)
        ),
    )
    yield (
        "a row without cells has the class prior",
        lambda: equal(model.predict_proba(X.clear(1))[0], model.class_prior_, 1e-6),
    )
    yield "a row is predicted alone as among others", lambda: equal(model.predict_proba(X[:1])[0], posterior[0])

    def order() -> None:
        moved = np.random.default_rng(0).permutation(len(X))
        equal(model.predict_proba(X[moved]), posterior[moved])

    yield "the order of rows changes no prediction", order
    if hasattr(model, "predict_joint_log_proba"):
        joint = model.predict_joint_log_proba(X)
        yield (
            "log p(x) is the sum of p(x, y) over the classes",
            lambda: equal(np.logaddexp.reduce(joint, axis=1), model.score_samples(X)),
        )

    def files() -> None:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.posteriori"
            save(model, path)
            equal(load(path).predict_proba(X), posterior)

    yield "a model file keeps all predictions", files

    def again() -> None:
        equal(clone(estimator).fit(X, y).predict_proba(X), posterior)

    yield "a second fit gives the same model", again
