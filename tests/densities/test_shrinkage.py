"""Towards what covariances are drawn: against scikit-learn, and free of scale."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.covariance import ledoit_wolf, oas

import posteriori as po
from posteriori.densities.covariances import (
    Chain,
    Covariances,
    Diagonal,
    LedoitWolf,
    PseudoRows,
    ShrinkToDiagonal,
    ShrinkToIdentity,
)
from posteriori.model_selection import out_of_fold

LEDOIT_WOLF = {"shrinkage": "ledoit_wolf"}
POOLINGS = [
    {"pooling": "pooled"},
    {"pooling": "per_class"},
    {"pooling": 0.4},
    {"pooling": PseudoRows(3.0)},
]
every_pooling = pytest.mark.parametrize("pooling", POOLINGS, ids=str)


def rows(n=60, d=6, n_classes=3, seed=0):
    """Return correlated rows in units of very different size, and their classes."""
    rng = np.random.default_rng(seed)
    y = rng.permutation(np.arange(n) % n_classes)
    mix = rng.normal(size=(n_classes, d, d)) + np.eye(d)
    X = np.einsum("ni,nij->nj", rng.normal(size=(n, d)), mix[y]) + rng.normal(0, 2, (n_classes, d))[y]
    return X * 10.0 ** rng.integers(-2, 3, d), y


def centred_in_units(X, y):
    """Return rows less their class's mean in pooled standard deviations, and these."""
    deviation = X - np.stack([X[y == c].mean(axis=0) for c in range(y.max() + 1)])[y]
    unit = deviation.std(axis=0)
    return deviation / unit, unit


# Against scikit-learn ---------------------------------------------------------------------------------------------


@given(st.integers(0, 10**6), st.integers(1, 8))
@pytest.mark.parametrize(("name", "theirs"), [("ledoit_wolf", ledoit_wolf), ("oas", oas)])
def test_a_pooled_covariance_is_scikit_learns_of_centred_rows(name, theirs, seed, d):
    X, y = rows(d=d, seed=seed)
    Z, unit = centred_in_units(X, y)
    model = po.GaussianDiscriminant(shrinkage=name).fit(X, y)
    expected = theirs(Z, assume_centered=True)[0] if d > 1 else np.ones((1, 1))
    assert_allclose(model.covariance_ / np.outer(unit, unit), expected, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize(("name", "theirs"), [("ledoit_wolf", ledoit_wolf), ("oas", oas)])
def test_a_covariance_per_class_is_scikit_learns_of_its_rows(name, theirs):
    X, y = rows()
    Z, unit = centred_in_units(X, y)
    model = po.GaussianDiscriminant(pooling="per_class", shrinkage=name).fit(X, y)
    for c in range(3):
        expected = theirs(Z[y == c], assume_centered=True)[0]
        assert_allclose(model.covariance_[c] / np.outer(unit, unit), expected, rtol=1e-8, atol=1e-10)


def test_shrinkage_by_a_number_is_friedmans_when_standardised():
    X, y = rows()
    Z, unit = centred_in_units(X, y)
    plain, shrunk = (po.GaussianDiscriminant(pooling="per_class", shrinkage=g).fit(X, y) for g in (None, 0.3))
    assert_allclose(Z.std(axis=0), 1.0)
    in_units = [model.covariance_ / np.outer(unit, unit) for model in (plain, shrunk)]
    degrees = np.bincount(y).astype(float)
    expected = ShrinkToIdentity(0.3).shrink(Covariances(in_units[0], degrees, np.ones(6)))
    assert_allclose(in_units[1], expected, rtol=1e-9, atol=1e-12)


# Laws -------------------------------------------------------------------------------------------------------------


@every_pooling
@pytest.mark.parametrize(
    "shrinkage",
    [None, 0.3, 1.0, "oas", "ledoit_wolf", "diagonal", Chain((Diagonal(), ShrinkToDiagonal(0.3)))],
    ids=str,
)
def test_no_unit_of_a_column_changes_a_posterior(pooling, shrinkage):
    X, y = rows()
    model = po.GaussianDiscriminant(shrinkage=shrinkage, **pooling)
    expected = model.fit(X, y).predict_proba(X)
    scale = np.array([1e3, 1e-3, 1.0, 1e6, 1.0, 1e-6])
    assert_allclose(model.fit(X * scale, y).predict_proba(X * scale), expected, atol=1e-9)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"pooling": PseudoRows(-1.0)}, "the number of pseudo-rows"),
        ({"pooling": PseudoRows(1.0, ddof=2)}, "ddof is 2"),
        ({"shrinkage": ShrinkToDiagonal(1.5)}, "the share of shrinkage"),
        ({"pooling": "tied"}, "'pooling' parameter"),
    ],
)
def test_a_wrong_object_is_refused_by_fit(parameters, message):
    with pytest.raises(ValueError, match=message):
        po.GaussianDiscriminant(**parameters).fit(*rows())


@pytest.mark.parametrize("shrinkage", [0.3, 1.0, "oas", "ledoit_wolf"])
def test_a_column_constant_within_classes_has_no_unit_to_shrink(shrinkage):
    X, y = rows()
    wider = np.column_stack([X, np.full(len(y), 7.0)])
    expected = po.GaussianDiscriminant(shrinkage=shrinkage).fit(X, y)
    with pytest.warns(UserWarning, match="the covariance is singular: column 'x6'"):
        model = po.GaussianDiscriminant(shrinkage=shrinkage).fit(wider, y)
    assert_allclose(model.covariance_[:6, :6], expected.covariance_, rtol=1e-12)
    assert_allclose(model.predict_proba(wider), expected.predict_proba(X), atol=1e-9)


@every_pooling
def test_weights_are_repetitions(pooling):
    X, y = rows()
    w = np.random.default_rng(1).integers(0, 4, len(y))
    weighted = po.GaussianDiscriminant(**LEDOIT_WOLF, **pooling).fit(X, y, sample_weight=w)
    repeated = po.GaussianDiscriminant(**LEDOIT_WOLF, **pooling).fit(np.repeat(X, w, axis=0), np.repeat(y, w))
    assert_allclose(weighted.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X), rtol=1e-9)


@every_pooling
def test_cross_validation_is_refitting(pooling, monkeypatch):
    monkeypatch.setattr("posteriori.sources.table_source._MOST_ROWS", 32)  # several batches
    X, y = rows(n=150)
    w = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    model = po.GaussianDiscriminant(**LEDOIT_WOLF, **pooling)
    held_out = out_of_fold(model, X, y, folds=4, sample_weight=w)
    for k in range(4):
        test = held_out.fold == k
        refit = po.GaussianDiscriminant(**LEDOIT_WOLF, **pooling).fit(X[~test], y[~test], sample_weight=w[~test])
        assert_allclose(held_out.posterior[test], refit.predict_proba(X[test]), atol=1e-9)
    whole = po.GaussianDiscriminant(**LEDOIT_WOLF, **pooling).fit(X, y, sample_weight=w)
    assert_allclose(model.predict_proba(X), whole.predict_proba(X), atol=1e-12)


def test_offsets_and_single_precision_cost_nothing():
    X, y = rows(d=3)
    X = (np.round(X / X.std(axis=0) * 1024) / 1024).astype(np.float32)
    model = po.GaussianDiscriminant(**LEDOIT_WOLF)
    expected = model.fit(X.astype(float), y).covariance_
    assert_allclose(model.fit(X, y).covariance_, expected, rtol=1e-9)
    assert_allclose(model.fit(X.astype(float) + 1e9, y).covariance_, expected, rtol=1e-7)


@pytest.mark.parametrize("shrinkage", [0.1, "oas", "ledoit_wolf"])
def test_more_columns_than_rows_need_no_mending(shrinkage):
    X, y = rows(n=20, d=30)
    for pooling in ("pooled", "per_class"):
        model = po.GaussianDiscriminant(pooling=pooling, shrinkage=shrinkage).fit(X, y)  # a warning would be an error
        assert model.score(X, y) > 0.9


@pytest.mark.parametrize("parameters", [{}, {"pooling": "per_class"}])
def test_one_class_one_row_one_feature(parameters):
    X, y = rows(n=30)
    alone = po.GaussianDiscriminant(**LEDOIT_WOLF, **parameters).fit(X, np.zeros(len(y)))
    assert_array_equal(alone.predict_proba(X), 1.0)
    narrow = po.GaussianDiscriminant(**LEDOIT_WOLF, **parameters).fit(X[:, :1], y)
    assert_allclose(
        narrow.predict_proba(X[:, :1]), po.GaussianDiscriminant(**parameters).fit(X[:, :1], y).predict_proba(X[:, :1])
    )
    with pytest.warns(UserWarning, match="the covariance is singular"):
        single = po.GaussianDiscriminant(**LEDOIT_WOLF, **parameters).fit(X[:1], y[:1])
    assert_array_equal(single.predict(X), y[0])


# A second look ----------------------------------------------------------------------------------------------------


def test_settling_what_is_settled_changes_nothing():
    X, y = rows()
    for shrinkage in (None, 0.3, "oas", "ledoit_wolf"):
        model = po.GaussianDiscriminant(shrinkage=shrinkage).fit(X, y)
        density, statistics = model.model_.blocks[0].density, model.statistics_.blocks[0]
        assert density.second_pass == ""
        assert density.refine(statistics) == (density, statistics)


def test_a_density_without_its_second_pass_raises():
    estimated = Covariances(np.eye(2)[np.newaxis], np.array([3.0]), np.ones(2))
    with pytest.raises(ValueError, match="call `refine` on the density first"):
        LedoitWolf().shrink(estimated)
    assert_allclose(LedoitWolf((0.2,)).shrink(estimated), ShrinkToDiagonal(0.2).shrink(estimated))


def test_a_file_keeps_the_share(tmp_path):
    X, y = rows()
    model = po.GaussianDiscriminant(pooling="per_class", **LEDOIT_WOLF).fit(X, y)
    po.save(model, tmp_path / "model.posteriori")
    loaded = po.load(tmp_path / "model.posteriori")
    assert loaded.model_.blocks == model.model_.blocks
    assert_array_equal(loaded.predict_joint_log_proba(X), model.predict_joint_log_proba(X))


def test_what_a_second_look_cannot_do_is_said():
    X, y = rows()
    for model in (po.GaussianDiscriminant(**LEDOIT_WOLF), po.GaussianDiscriminant(**LEDOIT_WOLF).fit(X, y)):
        with pytest.raises(ValueError, match=r'shrinkage="ledoit_wolf" looks at all rows twice, .* use fit'):
            model.partial_fit(X, y)
    X[y == 1, 2] = np.nan
    with pytest.raises(ValueError, match=r'"ledoit_wolf" learns from rows without missing cells, .* give .*"oas"'):
        po.GaussianDiscriminant(**LEDOIT_WOLF).fit(X, y)
    po.GaussianDiscriminant(shrinkage="oas").fit(X, y)


@every_pooling
def test_where_cells_are_missing_complete_rows_say_how_far(pooling):
    X, y = rows(n=200)
    X[np.random.default_rng(0).random(X.shape) < 0.05] = np.nan
    complete = ~np.isnan(X).any(axis=1)
    model = po.GaussianDiscriminant(**LEDOIT_WOLF, **pooling)
    expected = model.fit(X[complete], y[complete]).model_.blocks[0].density.shrinkage.share
    assert_allclose(model.fit(X, y).model_.blocks[0].density.shrinkage.share, expected, rtol=1e-9)
    assert len(model.log_likelihood_trace_) > 1
    assert len(model.fit(X, y, sample_weight=complete).log_likelihood_trace_) == 0
    assert_allclose(model.model_.blocks[0].density.shrinkage.share, expected, rtol=1e-9)
