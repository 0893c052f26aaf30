"""Fitted estimators as HTML for notebooks."""

import html
import re

import numpy as np
import polars as pl
import pytest
import sklearn
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import posteriori as po

pytestmark = pytest.mark.filterwarnings("ignore::posteriori.tables.IgnoredColumnWarning")
SCRIPT = "<script>alert(1)</script>"
TITLE = "parameters, by scikit-learn"


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    label = rng.integers(0, 2, 60)
    return pl.DataFrame(
        {
            SCRIPT: np.where(rng.random(60) < 0.3 + 0.4 * label, "a", "b"),
            "length": label + rng.normal(size=60),
            "id": [f"r{k}" for k in range(60)],
            "y": np.where(label, "<i>yes</i>", "no & never"),
        }
    )


def own_part(estimator):
    """Return what is shown before the diagram of scikit-learn."""
    written = estimator._repr_html_()
    assert written.count(TITLE) == 1
    assert "sk-top-container" in written.split(TITLE)[1] or "sk-container" in written.split(TITLE)[1]
    return written.split("<details>")[0]


@pytest.mark.parametrize(
    "estimator",
    [
        po.NaiveBayes(),
        po.TreeAugmentedNaiveBayes(),
        po.classifiers.ChowLiuClassifier(),
        po.KDependenceBayes(),
        po.AveragedOneDependence(),
        po.GenerativeForest(random_state=0, n_trees=3),
        po.GenerativeClassifier(members=["nb", "tan"]),
    ],
    ids=lambda estimator: type(estimator).__name__,
)
def test_fitted_classifiers_show_priors_and_columns_as_text(rows, estimator):
    estimator.fit(rows, "y")
    written = own_part(estimator)
    assert "<script" not in written
    assert "<i>" not in written
    assert "&lt;script&gt;" in written
    for prior in estimator.class_prior_:
        assert f">{prior:.4f}<" in written
        assert f" {100 * prior:.1f}%" in written
    assert "ignored" in written
    assert html.escape(estimator.schema_.columns[2].reason) in written


def test_models_of_numbers_and_mixtures_show_themselves(rows):
    lda = po.GaussianDiscriminant().fit(rows.select("length"), rows["y"].to_list())
    assert "classes of the labels" in own_part(lda)
    mixture = po.MixtureModel(n_components=3, random_state=0).fit(rows.select("length"))
    written = own_part(mixture)
    assert all(f">{weight:.4f}<" in written for weight in mixture.weights_)


def test_only_parameters_other_than_the_defaults_are_shown(rows):
    written = own_part(po.KDependenceBayes(k=3).fit(rows, "y"))
    assert "KDependenceBayes(k=3)" in written


def test_a_pool_shows_weights_and_held_out_losses_of_its_members(rows):
    pool = po.GenerativeClassifier(members=["nb", "tan", "aode"]).fit(rows, "y")
    written = own_part(pool)
    line = {
        one[0]: one[1:]
        for one in re.findall(r"<tr><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)</td><td[^>]*>([^<]*)", written)
    }
    losses = dict(zip(pool.cv_results_["member"], pool.cv_results_["log_loss"], strict=True))
    for name, weight in pool.member_weights_.items():
        assert [float(cell) for cell in line[name]] == pytest.approx([weight, losses[name]], rel=0.006, abs=1e-4)
    together = pool.cv_results_["log_loss"][-1]
    assert float(line["all members together"][1]) == pytest.approx(together, rel=1e-3)
    unused = set(losses) - set(pool.member_weights_) - {pool.cv_results_["member"][-1]}
    assert ("of weight 0" in written) == bool(unused)


def test_many_classes_and_columns_are_cut_short():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(100, 30))
    model = po.NaiveBayes().fit(X, np.repeat(np.arange(50), 2))
    written = own_part(model)
    assert "… and 10 more classes" in written
    assert "… and 18 more" in written


def test_scikit_learn_keeps_its_displays(rows):
    unfitted = po.NaiveBayes()
    assert TITLE not in unfitted._repr_html_()
    fitted = po.NaiveBayes().fit(rows, "y")
    assert fitted._repr_mimebundle_()["text/plain"] == repr(fitted)
    assert TITLE in fitted._repr_mimebundle_()["text/html"]
    assert "NaiveBayes" in make_pipeline(StandardScaler(), fitted)._repr_html_()
    with sklearn.config_context(display="text"):
        assert not hasattr(fitted, "_repr_html_")
        assert list(fitted._repr_mimebundle_()) == ["text/plain"]
