"""One weight a log factor: the problem that is solved, and what it changes."""

import math
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime, minimize
from scipy.special import log_softmax
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.cli import main
from posteriori.fitting.rows import read_further_rows
from posteriori.learning import log_linear as learning
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.weights import fit_weights, left_out_factors
from posteriori.model_selection import out_of_fold
from posteriori.model_selection.metrics import log_loss

REASONS = {
    "check_estimator_sparse_tag": "sparse rows are counts, and the tag would also promise negative cells",
    "check_fit_score_takes_y": "weights take all rows at once, and it calls partial_fit",
    "check_estimators_partial_fit_n_features": "weights take all rows at once",
    "check_n_features_in_after_fitting": "weights take all rows at once, and it calls partial_fit",
}


@parametrize_with_checks([po.NaiveBayes(feature_weights="conditional")], expected_failed_checks=lambda _: REASONS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def draw_factors(seed, n=60, n_classes=3, d=4):
    rng = np.random.default_rng(seed)
    components = rng.integers(0, n_classes, n)
    factors = rng.normal(size=(n, n_classes, d))
    factors[np.arange(n), components] += 0.7
    log_prior = np.log(rng.dirichlet(np.ones(n_classes)))
    return factors, log_prior, components, rng.choice([0.5, 1.0, 3.0], n)


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 30.0]), st.integers(0, 60))
def test_the_derivatives_are_those_of_the_loss(seed, penalty, n_whole):
    factors, log_prior, components, weight = draw_factors(seed)
    rng = np.random.default_rng(seed)
    share = np.where(np.arange(60) < n_whole, 1.0, rng.choice([0.0, 0.25, 0.5], 60))
    problem = problem_of(factors, log_prior, components, weight, penalty, share)
    position = np.concatenate([rng.normal(size=3), rng.uniform(0, 2, 4)])
    _, gradient, hessian = problem.at(position, curved=True)
    assert_allclose(gradient, approx_fprime(position, lambda x: problem(x)[0], 1e-6), rtol=1e-4, atol=1e-5)
    assert_allclose(problem(position)[1], gradient)
    numeric = [(problem(position + move)[1] - problem(position - move)[1]) / 2e-5 for move in 1e-5 * np.eye(7)]
    assert_allclose(hessian, numeric, rtol=1e-2, atol=1e-3)  # what rare classes add is left out
    assert_allclose(problem.curvature(position), np.diag(numeric), rtol=1e-6, atol=1e-8)
    scores = log_prior + share[:, np.newaxis] * (position[:3] - log_prior) + factors @ position[3:]
    loss = -(weight * log_softmax(scores, axis=1)[np.arange(60), components]).sum()
    spread, common = position[3:], (penalty * position[3:].sum() + 1) / (penalty * 4 + 1)
    loss += 0.5 * penalty * ((spread - common) ** 2).sum() + 0.5 * (common - 1) ** 2
    assert_allclose(problem(position)[0], (loss + 0.5 * ((position[:3] - log_prior) ** 2).sum()) / weight.sum())


def problem_of(factors, log_prior, components, weight, penalty, share=None):
    d = factors.shape[2]
    pull = np.zeros((3 + d, 3 + d))
    pull[:3, :3], pull[3:, 3:] = np.eye(3), penalty * np.eye(d) - penalty**2 / (penalty * d + 1)
    return learning._Problem(factors, components, weight, np.concatenate([log_prior, np.ones(d)]), pull, share)


@pytest.mark.parametrize("penalty", [0.0, 10.0, math.inf])
@pytest.mark.parametrize("alike", [[1, 4], [0, 1, 2, 3, 4, 5]])
def test_factors_alike_in_all_classes_do_not_change_the_optimum(penalty, alike):
    factors, log_prior, components, weight = draw_factors(5, d=6)
    factors[:, :, alike] = factors[:, :1, alike]
    fitted = fit_weights(factors, log_prior, components, weight, penalty)
    others = np.setdiff1d(np.arange(6), alike)
    if math.isinf(penalty):
        assert len(set(fitted.weight)) == 1
        fewer = fit_weights(factors[:, :, others], log_prior, components, weight, penalty)
        assert_allclose(fitted.weight[0], fewer.weight[0] if len(others) else 1.0)
        return
    gradient = problem_of(factors, log_prior, components, weight, penalty)(np.append(fitted.bias, fitted.weight))[1]
    free = np.append(np.ones(3, np.bool_), fitted.weight > 0)
    assert_allclose(gradient[free], 0.0, atol=1e-6)
    assert (gradient >= -1e-6).all()


@settings(max_examples=10, deadline=None)
@given(st.integers(0, 10**6), st.sampled_from([0.1, 10.0]))
def test_newton_finds_what_a_general_method_does(seed, penalty):
    """Members that say nearly the same, so that many weights are 0."""
    factors, log_prior, components, weight = draw_factors(seed)
    factors = factors + np.random.default_rng(seed).normal(0, 3, factors.shape[:2])[:, :, np.newaxis]
    found = fit_weights(factors, log_prior, components, weight, penalty)
    problem = problem_of(factors, log_prior, components, weight, penalty)
    bounds = [(None, None)] * 3 + [(0.0, None)] * 4
    start = np.concatenate([log_prior, np.ones(4)])
    limits = {"ftol": 1e-15, "gtol": 1e-10, "maxiter": 5000}
    general = minimize(problem, start, jac=True, method="L-BFGS-B", bounds=bounds, options=limits)
    assert problem(np.concatenate([found.bias, found.weight]))[0] <= general.fun + 1e-8


def test_many_parameters_reach_the_optimum_of_newtons_method(monkeypatch):
    """Two classes of 40 rows, one of two; the quasi-Newton method is that of more than 200 parameters."""
    factors, log_prior, components, weight = draw_factors(3, n=82)
    components = np.repeat([0, 1, 2], [40, 40, 2])
    by_newton = fit_weights(factors, log_prior, components, weight, 1.0)
    monkeypatch.setattr(learning, "_MOST_NEWTON", 0)
    found = fit_weights(factors, log_prior, components, weight, 1.0)
    assert_allclose(found.bias, by_newton.bias, atol=1e-4)
    assert_allclose(found.weight, by_newton.weight, atol=1e-4)


@settings(max_examples=5, deadline=None)
@given(st.integers(0, 10**6))
def test_the_stronger_the_penalty_the_more_alike_the_weights(seed):
    drawn = draw_factors(seed)
    spreads = [np.ptp(fit_weights(*drawn, penalty).weight) for penalty in (0.0, 3.0, 300.0, math.inf)]
    assert np.all(np.diff(spreads) <= 1e-4)
    assert spreads[-1] == 0.0
    strong, one = fit_weights(*drawn, 1e6), fit_weights(*drawn, math.inf)
    assert_allclose(strong.weight, one.weight, atol=1e-2)
    assert (fit_weights(*drawn).weight >= 0).all()


def test_no_other_point_is_better():
    factors, log_prior, components, weight = draw_factors(0)
    found = fit_weights(factors, log_prior, components, weight, 5.0)
    problem = problem_of(factors, log_prior, components, weight, 5.0)
    position = np.concatenate([found.bias, found.weight])
    least = problem(position)[0]
    rng = np.random.default_rng(1)
    for _ in range(50):
        other = position + rng.normal(0, 0.05, 7)
        other[3:] = np.maximum(other[3:], 0.0)
        assert problem(other)[0] >= least - 1e-6


def test_factors_of_probability_nought_and_classes_without_rows():
    factors, log_prior, components, weight = draw_factors(0)
    factors[0, components[0], 1] = -np.inf  # which a weight of 0 alone forgives
    log_prior = np.append(log_prior, -np.inf)
    factors = np.concatenate([factors, np.zeros((60, 1, 4))], axis=1)
    found = fit_weights(factors, log_prior, components, weight)
    assert np.isneginf(found.bias[3])
    assert np.isfinite(found.bias[:3]).all()
    assert found.weight[1] < 0.05
    assert np.isfinite(found.weighted(np.full((1, 4, 4), -1.0))).all()
    assert_array_equal(po.model.FactorWeights(found.bias, np.zeros(4)).weighted(np.full((1, 4, 4), -np.inf)), 0.0)


@pytest.fixture(scope="module")
def copies():
    """Return rows in which one column stands twice."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 400)
    x = rng.normal(y, 1.0)
    X = pl.DataFrame({"a": x, "copy": x, "b": rng.normal(y, 2.0), "s": rng.choice(list("uv"), 400)})
    return X, np.array(["low", "middle", "high"])[y]


def models():
    return [
        po.NaiveBayes(feature_weights="conditional"),
        po.TreeAugmentedNaiveBayes(bins=4, feature_weights="conditional"),
        po.classifiers.ChowLiuClassifier(bins=4, feature_weights="conditional"),
        po.KDependenceBayes(bins=4, feature_weights="conditional"),
        po.GaussianDiscriminant(shrinkage="diagonal", feature_weights="conditional"),
    ]


def test_two_copies_of_a_column_share_its_weight(copies):
    X, y = copies
    twice = po.NaiveBayes(feature_weights="conditional").fit(X, y)
    once = po.NaiveBayes(feature_weights="conditional").fit(X.drop("copy"), y)
    assert_allclose(twice.feature_weights_[0], twice.feature_weights_[1], rtol=1e-3)
    assert_allclose(twice.feature_weights_[:2].sum(), once.feature_weights_[0], rtol=0.1)
    losses = []
    for weights in (None, "conditional"):
        result = out_of_fold(po.NaiveBayes(feature_weights=weights), X, y)
        losses.append(log_loss(result.y_true, result.posterior))
    assert losses[1] < 0.9 * losses[0]


@pytest.mark.parametrize("model", models(), ids=lambda model: type(model).__name__)
def test_what_is_weighted_and_what_is_not(model, copies, tmp_path):
    X, y = copies
    X = X.drop("copy").with_columns(pl.when(pl.Series(np.arange(400) % 7 > 0)).then("s").alias("s"))
    model.fit(X, y)
    plain = clone(model).set_params(feature_weights=None).fit(X, y)
    posterior = model.predict_proba(X)
    assert np.abs(posterior - plain.predict_proba(X)).max() > 1e-3
    assert_allclose(posterior.sum(axis=1), 1.0)
    assert_allclose(np.exp(model.predict_log_proba(X)), posterior, atol=1e-12)
    assert_array_equal(model.predict(X), model.classes_[posterior.argmax(axis=1)])
    explanation = model.explain(X)
    assert_allclose(explanation.posterior, posterior, atol=1e-12)
    assert_allclose(explanation.log_prior, model.class_log_prior_)
    factors = plain.explain(X).log_factors
    known = X.select(pl.all().is_not_null()).to_numpy()[:, np.newaxis]
    shared = known * (model.class_bias_ - model.class_log_prior_)[:, np.newaxis] / X.width
    assert_allclose(explanation.log_factors, model.feature_weights_ * factors + shared, atol=1e-12)
    assert_array_equal(model.score_samples(X), plain.score_samples(X))
    assert_array_equal(model.predict_joint_log_proba(X), plain.predict_joint_log_proba(X))
    assert model.sample(5, random_state=0)[0].equals(plain.sample(5, random_state=0)[0])
    po.save(model, tmp_path / "weighted")
    assert_array_equal(po.load(tmp_path / "weighted").predict_proba(X), posterior)
    with pytest.raises(AttributeError, match='has no feature weights; fit it with feature_weights="conditional"'):
        _ = plain.feature_weights_


@pytest.mark.parametrize("bins", [(0.0, 1.0, 2.0), "mdlp"])
def test_cross_validation_equals_refitting(copies, bins):
    X, y = copies
    X = X.with_columns(pl.Series("rare", [f"r{k}" for k in np.random.default_rng(1).integers(0, 150, 400)]))
    weight = np.random.default_rng(0).choice([0.5, 1.0, 2.0], 400)

    def model(feature_weights="conditional"):
        return po.NaiveBayes(distributions={"a": "binned"}, bins=bins, feature_weights=feature_weights)

    result = out_of_fold(model(), X, y, folds=3, sample_weight=weight)
    plain = out_of_fold(model(None), X, y, folds=3, sample_weight=weight)
    for k in range(3):
        held_out = pl.Series(result.fold == k)
        rows = X.filter(~held_out), y[~held_out], weight[~held_out]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # categories of this fold only
            without = model(None).fit(*rows).predict_proba(X.filter(held_out))
            expected = model().fit(*rows).predict_proba(X.filter(held_out))
        # A cut lies half-way between neighbours, which may be in the fold: a cell there may change its bin.
        same = np.isclose(plain.posterior[held_out], without).all(axis=1)
        assert same.mean() > 0.95
        assert_allclose(result.posterior[held_out][same], expected[same], atol=1e-4)
    assert_allclose(result.estimator.feature_weights_, model().fit(X, y, weight).feature_weights_, atol=1e-6)


def test_weights_are_those_of_the_left_out_factors(copies):
    X, y = copies
    model = po.NaiveBayes(feature_weights="conditional").fit(X, y)
    plain = po.NaiveBayes().fit(X, y)
    rows = read_further_rows(plain.fitted_, X, y)
    source, target = rows.source, rows.target
    batch = source.batch(slice(0, 400))
    factors = left_out_factors(plain.model_, plain.statistics_, batch)
    found = fit_weights(factors, plain.class_log_prior_, batch.assignment.component, np.ones(400))
    assert target == plain.target_
    assert_allclose(model.feature_weights_, found.weight)
    assert_allclose(model.class_bias_, found.bias)


def test_many_rows_are_stood_for_by_some(copies, monkeypatch):
    X, y = copies
    whole = po.NaiveBayes(feature_weights="conditional").fit(X, y)
    monkeypatch.setattr(po.learning.weights, "MOST_ROWS", 200)
    some = po.NaiveBayes(feature_weights="conditional").fit(X, y)
    assert_allclose(some.feature_weights_, whole.feature_weights_, atol=0.3)
    components = np.repeat([0, 1, 2], [700, 290, 10])
    chosen = stratified_subsample(components, 100)
    assert_array_equal(np.bincount(components[chosen]), [70, 29, 1])
    assert_array_equal(stratified_subsample(components, 1000), np.arange(1000))


def test_leave_one_out_of_a_weighted_model(copies):
    X, y = copies
    model = po.NaiveBayes(feature_weights="conditional").fit(X, y)
    left_out = po.model_selection.leave_one_out(model, X, y)
    plain = po.model_selection.leave_one_out(po.NaiveBayes().fit(X, y), X, y)
    assert_allclose(left_out.log_joint, plain.log_joint)
    assert left_out.log_loss < plain.log_loss
    assert left_out.log_loss >= log_loss(left_out.y_true, model.predict_proba(X))


def test_what_it_refuses(copies):
    X, y = copies
    with pytest.raises(ValueError, match="takes all rows at once, and partial_fit sees each once; use fit"):
        po.NaiveBayes(feature_weights="conditional").partial_fit(X, y)
    half = np.where(np.arange(400) % 2, y.astype(object), None)
    with pytest.raises(ValueError, match="fitted by EM to rows without label"):
        po.NaiveBayes(feature_weights="conditional", labels=po.Labels(unlabelled="learn")).fit(X, half)
    gaps = X.select("a", "b").with_columns(pl.when(pl.col("a") > 0).then("a").alias("a"))
    with pytest.raises(ValueError, match="fitted by EM because of missing cells in columns 'a', 'b'"):
        po.GaussianDiscriminant(feature_weights="conditional").fit(gaps, y)
    with pytest.raises(ValueError, match="'feature_weights' parameter of NaiveBayes must be"):
        po.NaiveBayes(feature_weights="equal").fit(X, y)


def test_the_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["fit", "penguins.csv", "--target", "species", "--set", "feature_weights=conditional", "--json"]) == 0
    assert (po.load("penguins.posteriori").feature_weights_ >= 0).all()
    capsys.readouterr()
    assert (
        main(
            [
                "fit",
                "penguins.csv",
                "--target",
                "species",
                "--set",
                "feature_weights=conditional",
                "--model",
                "aode",
                "--force",
            ]
        )
        == 2
    )
    assert "no parameter of aode" in capsys.readouterr().err


def test_rows_of_a_class_of_prior_0_are_left_out():
    factors, log_prior, components, weight = draw_factors(0)
    log_prior = np.array([np.log(0.4), -np.inf, np.log(0.6)])
    found = fit_weights(factors, log_prior, components, weight)
    others = components != 1
    expected = fit_weights(factors[others][:, [0, 2]], log_prior[[0, 2]], components[others] // 2, weight[others])
    assert_allclose(found.weight, expected.weight)
    assert_allclose(found.bias, [expected.bias[0], -np.inf, expected.bias[1]])
