"""The memory that a fit or a cross-validation estimates before it begins, against the peak that it allocates."""

import tracemalloc
import warnings

import numpy as np
import pytest

import posteriori as po
from posteriori.model_cost import Work
from posteriori.model_selection import out_of_fold
from posteriori.registry import find_model


def _categories(n, d, n_categories, n_classes):
    return np.random.default_rng(0).integers(0, n_categories, (n, d)).astype(str), np.arange(n) % n_classes


def _numbers(n, d, n_classes, separated=True):
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + separated * rng.normal(size=(n_classes, d))[y], y


def _fit(name, **options):
    return lambda X, y: find_model(name).make(n_jobs=1, **options).fit(X, y)


def _use(name):
    return lambda X, y: (
        find_model(name).make(n_jobs=1).fit(X, y).predict(X[:1])
    )  # its tables are made when they are used


def _folds(name, folds):
    return lambda X, y: out_of_fold(find_model(name).make(n_jobs=1), X, y, folds=folds)


def _mixture(X, y):
    del y
    po.MixtureModel(60, covariance="full", n_init=1, em=po.EM(max_iter=2), random_state=0, n_jobs=1).fit(X)


def _pool(X, y):
    po.GenerativeClassifier(members=["nb", "lda"], n_jobs=1).fit(X, y)


WORKS = {
    "TAN: tables of pairs": (_fit("tan"), _categories(2000, 40, 29, 8)),
    "AODE: tables of pairs, and of factors": (_use("aode"), _categories(2000, 30, 24, 8)),
    "k-dependence: tables of columns and two parents": (_use("kdb"), _categories(2000, 24, 22, 6)),
    "TAN, 5 folds": (_folds("tan", 5), _categories(3000, 14, 25, 5)),
    "LDA: scatter per class": (_fit("lda"), _numbers(600, 300, 60)),
    "QDA, 5 folds": (_folds("qda", 5), _numbers(2000, 80, 40)),
    "naive Bayes, 50 folds": (_folds("nb", 50), _categories(3000, 10, 200, 20)),
    "learned cells of categories": (_fit("cells"), _categories(4000, 10, 1000, 50)),
    "mixture of covariances": (_mixture, _numbers(400, 110, 2)),
    "pool: held-out posteriors": (_pool, _numbers(16_000, 3, 50)),
    "forest": (_fit("forest"), _numbers(5000, 10, 3, separated=False)),
}


@pytest.mark.parametrize("what", WORKS)
def test_the_estimated_memory_is_near_the_measured_peak(what, monkeypatch):
    call, (X, y) = WORKS[what]
    estimated = []
    monkeypatch.setattr(Work, "announce", lambda work, *_: estimated.append(work.n_bytes))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        call(X[:400], y[:400])  # compiles
        estimated.clear()
        tracemalloc.start()
        try:
            call(X, y)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
    print(f"{what}: estimated {max(estimated) / 1e6:.0f} MB, peak {peak / 1e6:.0f} MB, {max(estimated) / peak:.2f}")
    assert max(estimated) > 5e7
    assert peak / 1.5 < max(estimated) < 1.5 * peak


@pytest.mark.parametrize("what", ["TAN: tables of pairs", "naive Bayes, 50 folds", "learned cells of categories"])
def test_work_beyond_the_memory_is_refused_in_a_sentence(what, monkeypatch):
    call, (X, y) = WORKS[what]
    monkeypatch.setenv("POSTERIORI_MAX_GB", "0.04")
    with pytest.raises(ValueError, match=r"is not begun: it would take about .* GB of memory \(limit 0.0\); set"):
        call(X, y)
