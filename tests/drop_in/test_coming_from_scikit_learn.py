"""The pairs of classifiers that docs/coming_from/scikit_learn.md calls equal."""

import re
from pathlib import Path

import numpy as np
import pytest
import sklearn.discriminant_analysis
import sklearn.naive_bayes
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

import posteriori as po
from posteriori.densities import covariances

PAGE = (Path(__file__).parents[2] / "docs/coming_from/scikit_learn.md").read_text()
ROWS = re.search(r"<!-- equal -->(.*?)<!-- end of equal -->", PAGE, re.DOTALL)[1]
PAIRS = re.findall(r"^\| `([^`]+)` \| `([^`]+)` \|", ROWS, re.MULTILINE)
NAMES = {**vars(sklearn.naive_bayes), **vars(sklearn.discriminant_analysis), **vars(covariances), "po": po}


@pytest.fixture(scope="module")
def flowers():
    """Return rows of iris, with more of one class than of another, so that their shares matter."""
    X, y = load_iris(return_X_y=True)
    kept = np.r_[0:50, 50:80, 100:120]
    return X[kept], y[kept]


def test_every_row_of_the_table_is_a_pair():
    assert len(PAIRS) == len(ROWS.strip().splitlines()) - 2


@pytest.mark.parametrize(("theirs", "ours"), PAIRS)
def test_models_that_the_page_calls_equal_are_equal(theirs, ours, flowers):
    X, y = flowers
    if not theirs.startswith(("Gaussian", "Linear", "Quadratic")):
        X = np.maximum(np.floor(X - X.mean(axis=0)) + 1, 0).astype(int)  # codes and counts
    first, second = (eval(model, NAMES).fit(X, y) for model in (theirs, ours))
    assert_allclose(second.predict_proba(X), first.predict_proba(X), atol=1e-9)
