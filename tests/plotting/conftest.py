"""Models that several tests draw. Every figure is closed, and no setting of matplotlib changes."""

import matplotlib as mpl
import numpy as np
import pytest

mpl.use("Agg")

import matplotlib.pyplot as plt

import posteriori as po
from tests.plotting.tables import PENGUINS


@pytest.fixture(autouse=True)
def tidy_figures():
    before = dict(mpl.rcParams)
    yield
    plt.close("all")
    assert dict(mpl.rcParams) == before


@pytest.fixture(scope="session")
def model():
    return po.NaiveBayes().fit(PENGUINS, "species")


@pytest.fixture(scope="session")
def counts():
    rng = np.random.default_rng(1)
    y = np.repeat([0, 1, 2], [200, 100, 50])
    X = np.column_stack([rng.poisson(np.array([1.0, 4.0, 9.0])[y]), rng.normal(y, 1.0)]).astype(float)
    return po.NaiveBayes(distributions={0: "poisson"}).fit(X, y), X, y


@pytest.fixture(scope="session")
def pool():
    return po.GenerativeClassifier(["lda", "tan", "nb", "binned weighted"]).fit(PENGUINS, "species")


@pytest.fixture(scope="session", params=["pooled", "per_class"])
def gaussian(request):
    return po.GaussianDiscriminant(pooling=request.param).fit(PENGUINS, "species")
