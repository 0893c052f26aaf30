"""Leave-one-out is what refitting without each row gives."""

import math
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.densities import LeaveOneOutDensity, MultivariateGaussian
from posteriori.densities.covariances import PerClass, Pooled, PseudoRows
from posteriori.fitting.rows import read_further_rows
from posteriori.learning.fit import Collect, FitResult, estimate
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.weights import left_out_factors

CUTS = (-1.0, 0.0, 1.0)


def draw_rows(seed, n, missing, offset=0.0, numbers_missing=True):
    """Return rows of every kind, labels of which some classes have a row or two, and weights."""
    rng = np.random.default_rng(seed)
    y = rng.choice(4, n, p=[0.5, 0.4, 0.07, 0.03])
    X = pl.DataFrame(
        {
            "a": offset + rng.normal(y, 1.0),
            "b": rng.normal(0.5 * y, 100.0),
            "n": rng.poisson(1.0 + y).astype(float),
            "s": rng.choice(list("uvw"), n),
            "t": [f"t{k}" for k in rng.integers(0, max(n // 2, 1), n)],  # many are shown by one row alone
            "r": rng.choice(list("pq"), n),
        }
    )
    for name in X.columns:
        if numbers_missing or name in "str":
            X = X.with_columns(pl.when(pl.Series(rng.random(n) >= missing)).then(pl.col(name)).alias(name))
    return X, np.array(list("wxyz"))[y], rng.choice([0.5, 1.0, 1.0, 3.3], n)


def refitted(model, X, y, weight):
    """Return log p(x, y) of each row by the model of the others; its structure is that of all rows."""
    rows = read_further_rows(model.fitted_, X, y, weight)
    source, target = rows.source, rows.target
    fitted, prior = model.model_, model.recipe.prior(target)
    source = replace(source.with_schema(fitted.schema), n_jobs=1)
    blocks = tuple(
        replace(block, density=block.density.with_fixed_structure(parameters))
        for block, parameters in zip(fitted.blocks, fitted.parameters, strict=True)
        if not block.shared
    )
    rows = []
    whole = source.batch(slice(0, len(y)))
    for i in range(len(y)):
        statistics = source.reweighted(np.arange(len(y)) != i).reduce(Collect(blocks))
        learned = FitResult(estimate(fitted.schema, blocks, prior, statistics), statistics)
        trimmed = ObservedCategoriesModel.of(learned, prior)
        rows.append(trimmed.model.log_joint(trimmed.to_observed_codes(whole.rows(np.array([i]))))[0])
    return np.array(rows)


def check(model, X, y, weight=None, rtol=1e-9):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of columns that vary too little
        model.fit(X, y, sample_weight=weight)
    left_out = po.model_selection.leave_one_out(model, X, y, weight)
    expected = refitted(model, X, y, weight)
    assert_allclose(left_out.log_joint, expected, rtol=rtol, atol=rtol)
    defined = np.isfinite(expected.max(axis=1))
    shares = np.exp(expected[defined] - expected[defined].max(axis=1, keepdims=True))
    assert_allclose(left_out.posterior[defined], shares / shares.sum(axis=1, keepdims=True), atol=rtol)


draws = st.tuples(st.integers(0, 10**6), st.integers(4, 16), st.sampled_from([0.0, 0.3]))
few = settings(max_examples=6, deadline=None)


@few
@given(
    draws,
    st.sampled_from(
        [
            {},
            {"alpha": 0.0},
            {"alpha": 0.3, "priors": 1.0},
            {"missing": "informative"},
            {"missing": "informative", "alpha": 0.0},
        ]
    ),
    st.sampled_from(
        [
            (po.Gaussian(), po.Poisson()),
            (po.Gaussian(0.0, ddof=1), po.Poisson(0.0)),
            (po.Gaussian(math.inf), po.Poisson()),
            (po.Gaussian(0.5), po.Poisson(math.inf)),
        ]
    ),
)
def test_naive_bayes_of_every_distribution(draw, parameters, densities):
    X, y, weight = draw_rows(*draw)
    distributions = {"a": densities[0], "n": densities[1], "b": po.Binned(CUTS)}
    check(po.NaiveBayes(distributions=distributions, **parameters), X, y, weight)


@few
@given(
    draws, st.sampled_from([po.TreeAugmentedNaiveBayes, po.classifiers.ChowLiuClassifier]), st.sampled_from([None, 3.0])
)
def test_trees_of_tables(draw, kind, backoff):
    X, y, weight = draw_rows(*draw)
    check(kind(bins=CUTS, backoff=backoff), X.select("a", "s", "t", "r"), y, weight)
    check(kind(bins=CUTS, backoff=backoff), X.select("a", "s", "n", "r"), y, weight)


@few
@given(draws, st.integers(0, 3), st.sampled_from([None, 3.0]), st.sampled_from([0.0, 1.0]))
def test_tables_with_some_parents(draw, k, backoff, alpha):
    X, y, weight = draw_rows(*draw)
    check(po.KDependenceBayes(k, bins=CUTS, backoff=backoff, alpha=alpha), X.select("a", "s", "t", "r"), y, weight)


@settings(max_examples=6, deadline=None)
@given(draws)
def test_trees_of_numbers(draw):
    X, y, weight = draw_rows(*draw)
    check(po.TreeAugmentedNaiveBayes(bins=None), X, y, weight, rtol=1e-7)


@few
@given(
    draws,
    st.sampled_from(
        [
            {"pooling": Pooled(ddof=1)},
            {"pooling": "per_class"},
            {"pooling": PerClass(ddof=1)},
            {"pooling": 0.5},
            {"pooling": PseudoRows(3.0)},
            {"pooling": "per_class", "shrinkage": 0.3},
            {"shrinkage": "diagonal"},
        ]
    ),
)
def test_gaussian_discriminants(draw, parameters):
    X, y, weight = draw_rows(*draw, numbers_missing=False)
    check(po.GaussianDiscriminant(**parameters), X, y, weight, rtol=1e-6)


@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_an_offset_costs_nothing(offset):
    X, y, weight = draw_rows(0, 30, 0.0, offset)
    near = draw_rows(0, 30, 0.0)[0]
    for model in (po.NaiveBayes(), po.GaussianDiscriminant()):
        a = po.model_selection.leave_one_out(
            model.fit(X.select("a", "n"), y, weight), X.select("a", "n"), y, weight
        ).posterior
        b = po.model_selection.leave_one_out(
            model.fit(near.select("a", "n"), y, weight), near.select("a", "n"), y, weight
        ).posterior
        assert_allclose(a, b, atol=1e-5)


@pytest.mark.parametrize("pooling", [Pooled(ddof=1), PerClass(ddof=1)], ids=str)
def test_discriminants_as_mass_gives_them(pooling):
    """MASS::lda and MASS::qda with CV=TRUE: unbiased covariances, and the prior of all rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 60)
    X = rng.normal(size=(60, 4)) @ rng.normal(size=(4, 4)) + y[:, np.newaxis]
    model = po.GaussianDiscriminant(pooling=pooling).fit(X, y)
    model.set_params(priors=model.class_prior_).fit(X, y)
    expected = np.empty((60, 3))
    for i in range(60):
        others = np.arange(60) != i
        groups = [X[others & (y == k)] for k in range(3)]
        scatter = [(g - g.mean(axis=0)).T @ (g - g.mean(axis=0)) for g in groups]
        for k, g in enumerate(groups):
            covariance = sum(scatter) / (59 - 3) if isinstance(pooling, Pooled) else scatter[k] / (len(g) - 1)
            deviation = X[i] - g.mean(axis=0)
            distance = deviation @ np.linalg.solve(covariance, deviation)
            expected[i, k] = np.log(np.mean(y == k)) - 0.5 * (distance + np.linalg.slogdet(covariance)[1])
    expected = np.exp(expected - expected.max(axis=1, keepdims=True))
    left_out = po.model_selection.leave_one_out(model, X, y)
    assert_allclose(left_out.posterior, expected / expected.sum(axis=1, keepdims=True), atol=1e-10)
    assert left_out.accuracy == np.mean(left_out.predictions == y)


def test_no_row_needs_a_refit_where_there_is_a_closed_form(monkeypatch):
    X, y, weight = draw_rows(0, 40, 0.0)
    models = [
        po.NaiveBayes(),
        po.TreeAugmentedNaiveBayes(bins=4),
        po.KDependenceBayes(bins=4),
        po.GaussianDiscriminant(),
    ]
    for model in models:
        model.fit(X.select("a", "n", "s", "r"), y, weight)

    def refuse(density, parameters):
        raise AssertionError(f"{density} estimated anew")

    for model in models:
        for block in model.model_.blocks:
            if isinstance(block.density, LeaveOneOutDensity):
                monkeypatch.setattr(type(block.density), "with_fixed_structure", refuse)
    for model in models:
        factors = po.model_selection.leave_one_out(model, X.select("a", "n", "s", "r"), y, weight).log_joint
        assert not np.isnan(factors).any()


def test_the_factors_sum_to_the_log_density():
    X, y, _ = draw_rows(1, 50, 0.0)
    model = po.GaussianDiscriminant(pooling=0.5).fit(X.select("a", "b", "n"), y)
    source = read_further_rows(model.fitted_, X.select("a", "b", "n"), y).source
    factors = left_out_factors(model.model_, model.statistics_, source.batch(slice(0, 50)))
    left_out = po.model_selection.leave_one_out(model, X.select("a", "b", "n"), y)
    assert_allclose(np.exp(factors.sum(axis=2)) * left_out.prior, np.exp(left_out.log_joint))


def test_several_calls_of_partial_fit():
    X, y, _ = draw_rows(2, 40, 0.2)
    X = X.select("a", "s")
    together = po.NaiveBayes().fit(X, y)
    apart = po.NaiveBayes().partial_fit(X[:20], y[:20]).partial_fit(X[20:], y[20:])
    assert_allclose(
        po.model_selection.leave_one_out(apart, X, y).log_joint,
        po.model_selection.leave_one_out(together, X, y).log_joint,
    )
    some = po.model_selection.leave_one_out(together, X[:7], y[:7]).log_joint
    assert_allclose(some, po.model_selection.leave_one_out(together, X, y).log_joint[:7])


def test_its_protocol_is_that_of_the_densities():
    assert isinstance(MultivariateGaussian(), LeaveOneOutDensity)


def test_what_it_refuses():
    X, y, _ = draw_rows(3, 30, 0.3)
    numbers = X.select("a", "b", "n")
    with pytest.raises(ValueError, match=r"fitted by EM because of missing cells in columns 'a', 'b', 'n'"):
        po.model_selection.leave_one_out(po.GaussianDiscriminant().fit(numbers, y), numbers, y)
    half = np.where(np.arange(30) % 2, y, None)
    learned = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(X.select("a"), half)
    with pytest.raises(ValueError, match="fitted by EM to rows without label"):
        po.model_selection.leave_one_out(learned, X.select("a"), half)
    model = po.NaiveBayes().fit(X.select("s"), y)
    with pytest.raises(ValueError, match=r"the rows of class .* total weight of .*, but the model was trained on"):
        po.model_selection.leave_one_out(model, X.select("s"), y, np.full(30, 2.0))
    with pytest.raises(ValueError, match="categories or classes that are not in the model"):
        po.model_selection.leave_one_out(model, pl.DataFrame({"s": ["other"] * 30}), y)
    discriminant = po.GaussianDiscriminant(pooling="per_class", predictive=True).fit(
        [[1.0], [2.0], [4.0], [6.0]], [0, 0, 1, 1]
    )
    with pytest.raises(ValueError, match="column 'x0' holds inf in row 3"):
        po.model_selection.leave_one_out(discriminant, [[1.0], [2.0], [4.0], [np.inf]], [0, 0, 1, 1])
    with pytest.raises(TypeError, match=r"'averaged one-dependence' has no leave-one-out"):
        po.model_selection.leave_one_out(po.AveragedOneDependence().fit(X.select("s", "r"), y), X.select("s", "r"), y)
    with pytest.raises(ValueError, match="built from parameters"):
        po.model_selection.leave_one_out(
            po.NaiveBayes.from_parameters(priors=[0.5, 0.5], poisson={"x": [1, 2]}), [[1.0]], [0]
        )
    with pytest.raises(TypeError, match="a MixtureModel has no leave-one-out"):
        po.model_selection.leave_one_out(po.MixtureModel(), X, y)


@pytest.mark.parametrize(
    "model", [po.NaiveBayes(), po.GaussianDiscriminant(pooling="per_class"), po.classifiers.ChowLiuClassifier()]
)
def test_a_row_of_no_weight_is_predicted_by_the_model_itself(model):
    X, y, weight = draw_rows(4, 60, 0.0)
    X, weight = X.select("a", "n", "r"), np.where(np.arange(60) % 3, weight, 0.0)
    left_out = po.model_selection.leave_one_out(model.fit(X, y, weight), X, y, weight)
    without = weight == 0
    assert_allclose(left_out.posterior[without], model.predict_proba(X)[without], atol=1e-9)
    assert (left_out.posterior[~without] != model.predict_proba(X)[~without]).any()


@pytest.mark.parametrize("kind", ["informative", "at_random"])
def test_a_row_with_a_category_of_its_own_is_left_out_by_a_refit(kind):
    """Without the row its cell is an unseen category, which counts as missing."""
    frame = pl.DataFrame({"u": ["a", "b", None, "a", "b", "only", "a", None], "v": list("xyxyxyxy")})
    y = np.array(list("ppqqpqpq"))
    model = po.NaiveBayes(missing=kind).fit(frame, y)
    rest = np.arange(8) != 5
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # the unseen category
        expected = po.NaiveBayes(missing=kind).fit(frame.filter(rest), y[rest]).predict_proba(frame[5])
    assert_allclose(po.model_selection.leave_one_out(model, frame, y).posterior[5], expected[0], rtol=1e-9)
    po.NaiveBayes(missing=kind, feature_weights="conditional").fit(frame, y)  # its weights need the factors of the row
