"""Mixtures: the same EM with no label at all."""

import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score
from sklearn.mixture import GaussianMixture
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po

NAMES = {"full": "full", "tied": "tied", "diagonal": "diag", "spherical": "spherical"}


@parametrize_with_checks([po.MixtureModel(n_init=1), po.MixtureModel(3, covariance="diagonal", n_init=1)])
@pytest.mark.filterwarnings("ignore:a covariance is singular", "ignore:components with hardly", "ignore:EM stopped")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def blobs(seed, n=300, d=3, k=3, apart=3.0):
    rng = np.random.default_rng(seed)
    z = np.arange(n) % k
    X = rng.normal(size=(k, n, d)) @ (np.eye(d) + 0.3 * rng.normal(size=(k, d, d)))
    return X[z, np.arange(n)] + rng.normal(0, apart, (k, d))[z], z


def mixed(seed, n=300, cells=0.2):
    """Return a mixed table with missing cells, and the components of its rows."""
    rng = np.random.default_rng(seed)
    X, z = blobs(seed, n, 2)
    X = np.where(rng.random(X.shape) < cells, np.nan, X)
    columns = {f"x{j}": X[:, j] for j in range(2)}
    for name in ("sky", "wind"):
        code = np.where(rng.random(n) < 0.7, z, rng.integers(0, 3, n))
        columns[name] = [None if rng.random() < cells else "abc"[k] for k in code]
    return pl.DataFrame(columns), z


def started(X, z, covariance, **parameters):
    """Return scikit-learn's mixture, to start from the moments of the rows of each component."""
    begun = GaussianMixture(len(np.unique(z)), covariance_type=NAMES[covariance], reg_covar=0.0, max_iter=1)
    begun._initialize(X, np.eye(begun.n_components)[z])
    factor = begun.precisions_cholesky_
    precision = factor @ np.swapaxes(factor, -1, -2) if covariance in ("full", "tied") else factor**2
    return begun.set_params(
        weights_init=begun.weights_ / begun.weights_.sum(),
        means_init=begun.means_,
        precisions_init=precision,
        **parameters,
    )


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("steps", [1, 5, 40])
@pytest.mark.parametrize("covariance", NAMES)
def test_the_same_start_leads_where_scikit_learns_does(covariance, steps):
    X, z = blobs(0, apart=1.5)
    start = np.where(np.random.default_rng(1).random(len(z)) < 0.5, z, 0)
    theirs = started(X, start, covariance, max_iter=steps, tol=0.0).fit(X)
    em = po.EM(max_iter=steps, tol=0.0)
    ours = po.MixtureModel(3, covariance=covariance, start=start, pseudo_rows=0.0, em=em).fit(X)
    assert_allclose(ours.weights_, theirs.weights_, rtol=1e-6)
    assert_allclose(ours.means_, theirs.means_, rtol=1e-6, atol=1e-6)
    assert_allclose(ours.covariances_, theirs.covariances_, rtol=1e-6, atol=1e-8)
    assert_allclose(ours.predict_proba(X), theirs.predict_proba(X), atol=1e-6)
    assert_allclose(ours.score_samples(X), theirs.score_samples(X), rtol=1e-6)
    assert_allclose(ours.score(X), theirs.score(X), rtol=1e-6)
    assert_allclose([ours.bic(X), ours.aic(X)], [theirs.bic(X), theirs.aic(X)], rtol=1e-6)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning", "ignore:components with hardly a row")
@given(
    seed=st.integers(0, 10**6),
    covariance=st.sampled_from(list(NAMES)),
    cells=st.sampled_from([0.0, 0.3]),
    k=st.integers(1, 4),
)
def test_no_step_lowers_the_likelihood(seed, covariance, cells, k):
    table, _ = mixed(seed, n=150, cells=cells)
    model = po.MixtureModel(
        k,
        covariance=covariance,
        pseudo_rows=0.0,
        alpha=0.0,
        n_init=1,
        em=po.EM(max_iter=15, tol=0.0),
        random_state=seed,
    )
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "a covariance is singular")
        try:
            model.fit(table)
        except UserWarning:
            reject()  # what is mended is not of maximum likelihood
    assert np.diff(model.log_likelihood_trace_).min() >= -1e-8 * abs(model.log_likelihood_trace_[-1])


@pytest.mark.parametrize("covariance", NAMES)
def test_components_have_no_order(covariance):
    table, z = mixed(1)
    model = po.MixtureModel(3, covariance=covariance)
    one = model.set_params(start=z).fit(table).predict_proba(table)
    other = model.set_params(start=2 - z).fit(table).predict_proba(table)
    assert_allclose(one, other[:, ::-1], atol=1e-8)


@pytest.mark.parametrize("covariance", NAMES)
def test_weights_are_repetitions(covariance):
    table, z = mixed(2, cells=0.1)
    weight = np.random.default_rng(0).integers(0, 3, len(z))
    many = np.repeat(np.arange(len(z)), weight)
    weighted = po.MixtureModel(3, covariance=covariance, start=z).fit(table, sample_weight=weight)
    repeated = po.MixtureModel(3, covariance=covariance, start=z[many]).fit(table[many])
    assert_allclose(weighted.predict_proba(table), repeated.predict_proba(table), atol=1e-9)


@pytest.mark.parametrize("covariance", NAMES)
def test_mixed_tables_with_missing_cells_are_clustered(covariance):
    table, z = mixed(3, n=600, cells=0.1)
    model = po.MixtureModel(3, covariance=covariance, random_state=0).fit(table)
    assert adjusted_rand_score(z, model.predict(table)) > 0.6
    assert model.converged_
    assert_allclose(model.weights_.sum(), 1.0)
    assert [one.shape for one in model.feature_log_prob_] == [(3, 3), (3, 3)]


def test_latent_classes_give_their_tables_back():
    rng = np.random.default_rng(0)
    z = (rng.random(4000) < 0.4).astype(int)
    X = (rng.random((4000, 8)) < np.where(z[:, np.newaxis] == 1, 0.85, 0.15)).astype(int)
    table = pl.DataFrame({f"q{j}": X[:, j].astype(str) for j in range(8)})
    model = po.MixtureModel(2, random_state=1).fit(table)
    largest = model.weights_.argmax()
    assert model.weights_[largest] == pytest.approx(0.6, abs=0.03)
    assert_allclose([np.exp(one[largest, 1]) for one in model.feature_log_prob_], 0.15, atol=0.03)


def test_the_bic_finds_the_number_of_components():
    X, _ = blobs(4, n=600, k=4, apart=6.0)
    scores = [po.MixtureModel(k, random_state=0).fit(X).bic(X) for k in range(2, 6)]
    assert np.argmin(scores) == 2


def test_one_component_is_one_gaussian():
    X, _ = blobs(5)
    model = po.MixtureModel(1).fit(X)
    assert_allclose(model.means_[0], X.mean(axis=0))
    assert_allclose(model.covariances_[0], np.cov(X.T, bias=True))


def test_the_same_random_state_gives_the_same_model():
    table, _ = mixed(6)
    one, two = (po.MixtureModel(3, random_state=3, n_jobs=n).fit(table).predict_proba(table) for n in (1, 2))
    assert_array_equal(one, two)


@pytest.mark.parametrize("covariance", ["full", "diagonal", "spherical"])
def test_the_prior_keeps_a_component_from_collapsing(covariance):
    X = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), np.full((3, 2), 30.0)])
    start = np.repeat([0, 1], [60, 3])
    held = po.MixtureModel(2, covariance=covariance, start=start).fit(X)
    assert np.isfinite(held.score(X))
    assert held.covariances_[1].max() > 0.05


def test_what_collapses_is_told():
    X = np.concatenate([np.random.default_rng(0).normal(size=(60, 2)), np.full((3, 2), 30.0)])
    collapsed = "a covariance is singular in columns 'x0', 'x1': a component has collapsed"
    for covariance in ("diagonal", "full"):
        with pytest.warns(UserWarning, match=collapsed) as caught:
            po.MixtureModel(2, covariance=covariance, pseudo_rows=0.0, start=np.repeat([0, 1], [60, 3])).fit(X)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match=r"components with hardly a row: 1 \(0 rows\)"):
        po.MixtureModel(2, start=np.zeros(63, int)).fit(X)
    with pytest.warns(ConvergenceWarning, match="EM stopped after 1 steps") as caught:
        po.MixtureModel(2, em=po.EM(max_iter=1), random_state=0).fit(X)
    assert caught[0].filename == __file__


def test_what_cannot_be_is_refused_in_one_sentence():
    X = np.random.default_rng(0).normal(size=(5, 2))
    with pytest.raises(ValueError, match="n_samples=5 is less than n_components=6; ask for fewer components"):
        po.MixtureModel(6).fit(X)
    with pytest.raises(ValueError, match="y holds 7, which is not among the classes"):
        po.MixtureModel(2, start=[0, 1, 0, 1, 7]).fit(X)
    with pytest.raises(ValueError, match="infinit"):
        po.MixtureModel(2).fit([[1.0], [np.inf], [2.0]])
    for em, message in (
        (po.EM(components_per_class=2), r"em states components_per_class, which .* use MixtureModel\(n_components=…\)"),
        (po.EM(components_per_class=2, n_init=3), r"em states components_per_class and n_init, .*\(n_init=…\) instead"),
        (po.EM(tol=-1.0), "'tol' parameter of EM"),
        ({"tol": 1.0}, "it takes a po.EM, such as"),
    ):
        with pytest.raises(ValueError, match=message):
            po.MixtureModel(2, em=em).fit(X)


@pytest.mark.parametrize(
    ("keyword", "advice"),
    [
        ("tol", r"use em=po.EM\(tol=…\)"),
        ("max_iter", r"use em=po.EM\(max_iter=…\)"),
        ("covariance_type", "use covariance=…"),
        ("categorical_features", r"use columns=po.Columns\(categorical_features=…\)"),
        ("n_component", "did you mean 'n_components'"),
    ],
)
def test_an_unknown_keyword_names_the_parameter_that_takes_it(keyword, advice):
    with pytest.raises(TypeError, match=f"MixtureModel has no parameter '{keyword}'; {advice}"):
        po.MixtureModel(**{keyword: 1})


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_mixture_has_limits_of_em_and_500_steps_by_default():
    X, _ = blobs(3, apart=0.5)
    model = po.MixtureModel(3, n_init=1, random_state=0, pseudo_rows=0.0)
    traces = [
        clone(model).set_params(em=em).fit(X).log_likelihood_trace_
        for em in (None, po.EM(max_iter=500, tol=1e-5), po.EM(max_iter=4), po.EM(tol=0.1))
    ]
    assert_array_equal(traces[0], traces[1])
    assert_array_equal(traces[2], traces[0][:4])
    assert len(traces[3]) < len(traces[0])
    changed = clone(model).set_params(em__tol=0.0)
    assert (changed.em.max_iter, changed.em.tol) == (500, 0.0)
    assert_array_equal(changed.fit(X).log_likelihood_trace_[: len(traces[0])], traces[0])
    assert clone(model).set_params(em=po.EM(max_iter=7), em__tol=0.5).em.max_iter == 7
    assert model.em is None


def test_mixtures_are_drawn_from_and_saved(tmp_path):
    table, _ = mixed(7)
    model = po.MixtureModel(3, em=po.EM(tol=1e-6, max_iter=500), random_state=0).fit(table)
    drawn, z = model.sample(4000, random_state=0)
    assert drawn.columns == table.columns
    again = po.MixtureModel(3, start=z).fit(drawn)
    assert_allclose(again.means_, model.means_, atol=0.4)
    po.save(model, tmp_path / "model.posteriori")
    loaded = po.load(tmp_path / "model.posteriori")
    assert_array_equal(loaded.predict_proba(table), model.predict_proba(table))
    assert loaded.n_iter_ == model.n_iter_
    assert loaded.converged_
    assert (loaded.em.tol, loaded.em.max_iter) == (1e-6, 500)


def test_numbers_whose_squares_overflow_are_refused_by_name():
    rows = np.random.default_rng(0).normal(size=(50, 2)) * [1.0, 1e200]
    with pytest.raises(ValueError, match="the square of a value in column 'x1' overflows; rescale the column"):
        po.MixtureModel(2).fit(rows)


def test_rows_that_no_component_can_produce_have_the_prior():
    X = np.array([[0.0], [0.1], [9.0], [9.1], [9.2], [9.3]])
    model = po.MixtureModel(2, random_state=0).fit(X)
    with pytest.warns(UserWarning, match="row 1 cannot be produced by any component"):
        posterior = model.predict_proba([[9.1], [1e200]])
    assert np.isnan(posterior).tolist() == [[False] * 2, [True] * 2]
    with pytest.warns(UserWarning, match="row 1 cannot be produced by any component"):
        assert model.predict([[9.1], [1e200]]).tolist() == [model.weights_.argmax()] * 2


def test_a_mixture_can_be_explored():
    X = np.array([[0.0], [0.5], [9.0], [9.5]])
    assert "<html" in po.explore(po.MixtureModel(2, random_state=0).fit(X)).html
