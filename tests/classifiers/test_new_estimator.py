"""An estimator of one's own is one class of few lines: it says which density models which columns."""

import duckdb
import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.classifiers import GenerativeEstimator
from posteriori.datasets import load_penguins
from posteriori.persistence import register_estimator

PENGUINS = load_penguins()
COUNTS = np.array([152, 68, 124])


@register_estimator
class ClassPrior(GenerativeEstimator):
    """p(y), which no column changes."""

    _parameter_constraints = {"priors": [None, "array-like"], "n_jobs": [None, int]}  # noqa: RUF012

    def __init__(self, *, priors=None, n_jobs=None):
        self.priors = priors
        self.n_jobs = n_jobs

    def _blocks(self, schema):
        return ()


@pytest.fixture
def model():
    return ClassPrior().fit(PENGUINS, "species")


def test_it_learns_forgets_and_merges(model):
    assert_allclose(model.predict_proba(PENGUINS.head(2)), np.tile(COUNTS / 344, (2, 1)))
    halves = [ClassPrior().fit(PENGUINS.head(200), "species"), ClassPrior().fit(PENGUINS.tail(144), "species")]
    parts = po.merge(halves), halves[0].partial_fit(PENGUINS.tail(144), "species")
    assert [one.class_count_.tolist() for one in parts] == [COUNTS.tolist()] * 2
    assert model.unlearn(PENGUINS.head(2), "species").class_count_.tolist() == [150, 68, 124]


def test_it_is_saved_written_in_sql_reported_and_explained(model, tmp_path):
    po.save(model, tmp_path / "model.posteriori")
    again = po.load(tmp_path / "model.posteriori")
    assert type(again) is ClassPrior
    assert_allclose(again.class_prior_, COUNTS / 344)
    rows = PENGUINS.drop("species").head(3)
    with duckdb.connect() as database:
        database.register("rows", rows)
        found = database.execute(f'SELECT "p_Gentoo" FROM ({model.to_sql()})').fetchall()
    assert_allclose(found, 124 / 344)
    assert "ClassPrior" in po.report(model, PENGUINS, "species").html
    assert_allclose(model.explain(rows).log_prior, np.log(COUNTS / 344))
    with pytest.raises(ValueError, match=r"no distribution of columns 'island', .* so that no rows can be drawn"):
        model.sample()


def test_it_is_a_member_of_a_pool(tmp_path):
    pool = po.GenerativeClassifier({"prior": ClassPrior(), "nb": "nb"}, folds=2).fit(PENGUINS, "species")
    losses = dict(zip(pool.cv_results_["member"], pool.cv_results_["log_loss"], strict=True))
    assert_allclose(losses["prior"], -(COUNTS / 344) @ np.log(COUNTS / 344), atol=0.01)
    po.save(pool, tmp_path / "pool.posteriori")
    assert_allclose(po.load(tmp_path / "pool.posteriori").predict_proba(PENGUINS), pool.predict_proba(PENGUINS))


def test_only_a_class_of_ones_own_is_registered():
    with pytest.raises(TypeError, match="is no subclass of"):
        register_estimator(dict)
    with pytest.raises(TypeError, match="has a NaiveBayes of its own"):
        register_estimator(type("NaiveBayes", (ClassPrior,), {}))
    with pytest.raises(TypeError, match=r"cannot be saved.*register_estimator"):
        po.save(type("Other", (ClassPrior,), {})().fit(PENGUINS, "species"), "never.posteriori")
