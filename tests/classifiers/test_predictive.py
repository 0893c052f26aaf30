"""`predictive=True`: t densities in everything that a classifier does."""

import duckdb
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.explain import linear_form

MODELS = {
    "nb": po.NaiveBayes(predictive=True),
    "lda": po.GaussianDiscriminant(predictive=True),
    "qda": po.GaussianDiscriminant(pooling="per_class", shrinkage=0.02, predictive=True),
    "diagonal": po.GaussianDiscriminant(pooling="per_class", shrinkage="diagonal", predictive=True),
}
SPECIES = ("Adelie", "Chinstrap", "Gentoo")


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module", params=MODELS)
def model(request, penguins):
    return MODELS[request.param].fit(penguins, "species")


def test_a_file_and_a_scorer_give_the_same_posterior(model, penguins, tmp_path):
    expected = model.predict_proba(penguins)
    po.save(model, tmp_path / "model")
    assert_allclose(po.load(tmp_path / "model").predict_proba(penguins), expected, rtol=1e-12)
    score = po.scoring.load_scorer(tmp_path / "model")
    for i in (0, 3, 200):  # row 3 lacks every measurement
        assert_allclose(list(score(penguins.row(i, named=True)).values()), expected[i], rtol=1e-9)


def test_a_select_gives_the_same_posterior(model, penguins):
    found = duckdb.sql(model.to_sql("penguins", dialect="duckdb")).pl()
    assert_allclose(found.select(f"p_{one}" for one in SPECIES).to_numpy(), model.predict_proba(penguins), atol=1e-9)


def test_an_explanation_is_an_exact_sum(model, penguins):
    explained = model.explain(penguins)
    total = explained.log_prior + explained.log_factors.sum(axis=2)
    assert_allclose(total, model.predict_joint_log_proba(penguins), atol=1e-9)


def test_rows_are_drawn_and_scored(model, penguins):
    drawn, _ = model.sample(50, random_state=0)
    assert np.isfinite(model.score_samples(drawn)).all()
    assert drawn["body_mass_g"].is_between(2700, 6300).all()


@pytest.mark.parametrize("name", ["nb", "lda"])
def test_parts_of_the_rows_give_the_model_of_all(name, penguins):
    complete = penguins.drop_nulls().sample(fraction=1.0, shuffle=True, seed=0)
    whole = MODELS[name].fit(complete, "species").predict_proba(complete)
    make = type(MODELS[name])
    in_parts = make(predictive=True).partial_fit(complete[:150], "species").partial_fit(complete[150:], "species")
    assert_allclose(in_parts.predict_proba(complete), whole, rtol=1e-6)
    parts = [make(predictive=True).fit(part, "species") for part in (complete[:150], complete[150:])]
    assert_allclose(po.merge(parts).predict_proba(complete), whole, rtol=1e-6)
    with pytest.raises(ValueError, match="predictive"):
        po.merge([parts[0], make().fit(complete[150:], "species")])


@pytest.mark.parametrize("name", ["nb", "lda", "qda"])
def test_leave_one_out_is_a_refit_without_the_row(name, penguins):
    few = penguins.drop_nulls().drop("island", "sex")[::12]
    model = MODELS[name].fit(few, "species")
    found = po.model_selection.leave_one_out(model, few, "species").posterior
    for i in (0, 9, len(few) - 1):
        rest = few.filter(pl.int_range(pl.len()) != i)
        expected = MODELS[name].fit(rest, "species").predict_proba(few[i : i + 1])[0]
        assert_allclose(found[i], expected, rtol=1e-8, atol=1e-12)


def test_cross_validation_is_a_refit_of_every_fold(penguins):
    found = po.cross_validate({"lda": MODELS["lda"], "nb": MODELS["nb"]}, penguins.drop_nulls(), "species")
    again = po.cross_validate({"lda": MODELS["lda"]}, penguins.drop_nulls(), "species")
    assert_allclose(found.posteriors["lda"], again.posteriors["lda"])
    assert found.posteriors["nb"].min() > 0


def test_hidden_labels_are_learned_before_integrating_parameters(penguins):
    labels = [one if i % 6 == 0 else None for i, one in enumerate(penguins["species"])]
    X = penguins.drop("species")
    for make in (po.NaiveBayes, po.GaussianDiscriminant):
        sure = make(labels=po.Labels(unlabelled="learn")).fit(X, labels)
        unsure = make(labels=po.Labels(unlabelled="learn"), predictive=True).fit(X, labels)
        assert_allclose(unsure.log_likelihood_trace_, sure.log_likelihood_trace_)
        assert np.all(np.diff(unsure.log_likelihood_trace_) > -1e-6)
        assert np.abs(unsure.predict_log_proba(X)).max() < np.abs(sure.predict_log_proba(X)).max()
    one = po.GaussianDiscriminant(em=po.EM(components_per_class=2, n_init=2), random_state=0, predictive=True)
    assert np.isfinite(one.fit(penguins, "species").score_samples(penguins)).all()


def test_a_block_of_t_densities_has_no_linear_or_quadratic_form(penguins):
    numbers = penguins.select("species", "bill_length_mm", "body_mass_g").drop_nulls()
    lda = po.GaussianDiscriminant(predictive=True).fit(numbers, "species")
    for read in ("coef_", "intercept_"):
        with pytest.raises(AttributeError, match="predictive=False"):
            getattr(lda, read)
    with pytest.raises(AttributeError, match="predictive=False"):
        lda.quadratic_form()
    for one in (lda, po.NaiveBayes(distributions=po.Gaussian(np.inf, predictive=True)).fit(numbers, "species")):
        with pytest.raises(ValueError, match="predictive=False"):
            linear_form(one)
    assert lda.transform(numbers).shape == (len(numbers), 2)
    weighted = po.GaussianDiscriminant(feature_weights="conditional", predictive=True).fit(numbers, "species")
    with pytest.raises(ValueError, match="predictive=False"):
        weighted.to_sql("rows", dialect="duckdb")


def test_two_rows_a_class_do_not_make_a_prediction_certain():
    X, y = np.array([[0.0, 1.0], [0.1, 1.1], [5.0, 1.0], [5.1, 1.2]]), ["a", "a", "b", "b"]
    for make in (po.NaiveBayes, po.GaussianDiscriminant):
        assert make(predictive=True).fit(X, y).predict_proba([[50.0, 1.0]]).max() < 0.9999
        assert make().fit(X, y).predict_proba([[50.0, 1.0]]).max() > 1 - 1e-9


def test_factors_of_a_number_whose_square_overflows_are_finite():
    X, y = np.random.default_rng(0).normal(size=(12, 2)), [0, 1] * 6
    model = po.GaussianDiscriminant(pooling="per_class", predictive=True, feature_weights="conditional").fit(X, y)
    assert np.isfinite(model.predict_proba([[1e160, 0.0]])).all()
