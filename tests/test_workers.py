"""Estimators that are fitted and predict in other processes, of joblib and multiprocessing, give the same numbers."""

import multiprocessing
from concurrent.futures import ProcessPoolExecutor

import joblib
import numpy as np
import pytest

import posteriori as po
from posteriori.datasets import load_penguins

_MODELS = {
    "naive Bayes": po.NaiveBayes(),
    "tan": po.TreeAugmentedNaiveBayes(),
    "pool": po.GenerativeClassifier(members=["nb", "tan"]),
}


def fit_and_predict(name):
    """Return a model that is fitted here, and its posteriors."""
    penguins = load_penguins()[::4]
    model = _MODELS[name].fit(penguins, "species")
    return model, model.predict_proba(penguins)


def predict(model):
    """Return the posteriors of a model that was fitted in another process."""
    return model.predict_proba(load_penguins()[::4])


def _with_loky(function, arguments):
    return joblib.Parallel(n_jobs=2, backend="loky")(joblib.delayed(function)(one) for one in arguments)


def _with_spawn(function, arguments):
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as processes:
        return list(processes.map(function, arguments))


@pytest.mark.parametrize("run", [_with_loky, _with_spawn], ids=["loky", "spawn"])
def test_a_worker_gives_the_numbers_of_this_process(run):
    here = [fit_and_predict(name) for name in _MODELS]
    for (_, expected), (model, found) in zip(here, run(fit_and_predict, _MODELS), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
        np.testing.assert_allclose(predict(model), expected, rtol=1e-9)
    for (_, expected), found in zip(here, run(predict, [model for model, _ in here]), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-9)
