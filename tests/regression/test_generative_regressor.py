"""The pool of regressions: conventions, laws, rows known in part, and bad input."""

import functools
import pickle

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.datasets import load_penguins


@functools.cache
def penguins():
    return load_penguins().drop_nulls("body_mass_g")


@functools.cache
def fitted():
    return po.GenerativeRegressor(random_state=0).fit(penguins(), "body_mass_g")


def friedman(n, seed=0, offset=0.0, unit=1.0):
    rng = np.random.default_rng(seed)
    X = rng.uniform(size=(n, 5))
    y = 10 * np.sin(np.pi * X[:, 0] * X[:, 1]) + 20 * (X[:, 2] - 0.5) ** 2 + 5 * X[:, 3] + rng.normal(size=n)
    return X, y * unit + offset


@parametrize_with_checks(
    [po.GenerativeRegressor()],
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# Predictions ---------------------------------------------------------------------------------------------------


def test_it_predicts_better_than_its_parts_of_the_row():
    X, y = friedman(600)
    model = po.GenerativeRegressor().fit(X[:400], y[:400])
    assert model.score(X[400:], y[400:]) > 0.9
    scores = model.cv_results_
    pool = dict(zip(scores["member"], scores["crps"], strict=True))
    assert pool["pool"] <= min(pool[name] for name in ("forest", "additive", "kernel")) * 1.02
    covered = np.mean(
        [low <= one <= high for one, (low, high) in zip(y[400:], model.predict_interval(X[400:]), strict=True)]
    )
    assert 0.82 <= covered <= 0.98


def test_the_methods_read_one_density():
    model, rows = fitted(), penguins()[:20]
    density = model.predict_density(rows)
    assert len(density) == 20
    assert_array_equal(model.predict(rows), density.mean)
    assert_array_equal(model.predict_quantiles(rows, [0.2, 0.7]), density.quantile([0.2, 0.7]))
    assert_array_equal(model.predict_interval(rows, 0.8), density.interval(0.8))
    y = penguins()["body_mass_g"].to_numpy()
    assert_allclose(
        model.score(penguins(), "body_mass_g"), 1 - np.var(y - model.predict(penguins())) / np.var(y), atol=1e-3
    )


def test_densities_integrate_to_one():
    X, y = friedman(200)
    density = po.GenerativeRegressor().fit(X, y).predict_density(X[:3])
    cells = density.cells
    values = np.exp(np.column_stack([density.log_prob(at) for at in cells.centre]))
    assert_allclose((values * np.maximum(cells.high - cells.low, cells.step)).sum(axis=1), 1.0)


def test_decimals_and_whole_numbers_stay():
    X, y = friedman(300)
    for step, target in ((1.0, np.round(y)), (0.1, np.round(y, 1))):
        model = po.GenerativeRegressor().fit(X, target)
        quantiles = model.predict_quantiles(X[:50], [0.05, 0.5, 0.95])
        assert_allclose(quantiles / step, np.round(quantiles / step), atol=1e-6)
        drawn = model.predict_density(X[:5]).sample(20, random_state=0)
        assert_allclose(drawn / step, np.round(drawn / step), atol=1e-6)


def test_frequent_zeros_are_an_atom_and_nothing_is_negative():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(500, 3))
    y = np.where(rng.random(500) < 1 / (1 + np.exp(2 * X[:, 0])), 0.0, np.exp(X[:, 1] + rng.normal(size=500)))
    model = po.GenerativeRegressor().fit(X, y)
    density = model.predict_density(X)
    assert (model.predict_quantiles(X, [0.0, 0.001, 0.01]) >= 0).all()
    p_zero = density.probability_between(0.0, 0.0)
    low, high = X[:, 0] < -1, X[:, 0] > 1
    assert p_zero[low].mean() > 0.7 > 0.3 > p_zero[high].mean()


@pytest.mark.parametrize(("offset", "unit"), [(1e9, 1.0), (0.0, 1e-6), (-3.0, 1e6)])
def test_offsets_and_units_of_the_target_only_move_predictions(offset, unit):
    X, y = friedman(250)
    y = y - y.min() - 1.0  # some are negative: no logarithm, which has an origin
    plain = po.GenerativeRegressor().fit(X, y).predict_quantiles(X[:40], [0.1, 0.5, 0.9])
    moved = po.GenerativeRegressor().fit(X, y * unit + offset).predict_quantiles(X[:40], [0.1, 0.5, 0.9])
    assert_allclose((moved - offset) / unit, plain, atol=0.02 * np.ptp(y))


def test_the_order_of_rows_does_not_matter():
    X, y = friedman(150)
    order = np.random.default_rng(3).permutation(150)
    one, other = po.GenerativeRegressor().fit(X, y), po.GenerativeRegressor().fit(X[order], y[order])
    assert_allclose(one.predict(X), other.predict(X), rtol=1e-6)


def test_threads_do_not_matter():
    X, y = friedman(300)
    one, two = (po.GenerativeRegressor(n_jobs=n).fit(X, y) for n in (1, 2))
    assert_array_equal(one.predict(X), two.predict(X))


def test_groups_are_held_out_together():
    X, y = friedman(120)
    group = np.repeat(np.arange(30), 4)
    rng = np.random.default_rng(0)
    X, y = np.repeat(X[:30], 4, axis=0) + 0.001 * rng.normal(size=(120, X.shape[1])), np.repeat(y[:30], 4)
    alone = po.GenerativeRegressor().fit(X, y)
    together = po.GenerativeRegressor().fit(X, y, groups=group)
    assert together.cv_results_["crps"][-1] > 2 * alone.cv_results_["crps"][-1]


# Rows known in part ---------------------------------------------------------------------------------------------


def test_nothing_known_gives_the_training_distribution():
    model = fitted()
    nothing = pl.DataFrame(
        {name: [None] for name in model.feature_names_in_}, schema=penguins().select(model.feature_names_in_).schema
    )
    density = model.predict_density(nothing)
    y = penguins()["body_mass_g"].to_numpy()
    for at in np.quantile(y, [0.1, 0.35, 0.6, 0.9]):
        end = density.cells.high[density.cells.nearest(at)]
        assert_allclose(density.cdf(end)[0], np.mean(y <= end), atol=1e-6)


def test_hidden_cells_widen_the_density():
    model, rows = fitted(), penguins()
    hidden = rows.with_columns(
        pl.lit(None, pl.String).alias("species"), pl.lit(None, pl.Float64).alias("flipper_length_mm")
    )
    width = lambda frame: np.diff(model.predict_interval(frame), axis=1).mean()  # noqa: E731
    assert width(hidden) > 1.05 * width(rows)


def test_gaps_in_the_training_rows_are_marked():
    rng = np.random.default_rng(1)
    X, y = friedman(500)
    X[rng.random(500) < 0.5 * (y > np.median(y)), 4] = np.nan  # a gap says that y is large
    model = po.GenerativeRegressor().fit(X[:350], y[:350])
    assert model.score(X[350:], y[350:]) > 0.9


# Files and other places -----------------------------------------------------------------------------------------


def test_a_model_file_holds_it(tmp_path):
    model = fitted()
    po.save(model, tmp_path / "m.posteriori")
    kept = po.load(tmp_path / "m.posteriori")
    for one in (kept, pickle.loads(pickle.dumps(model))):
        assert_array_equal(one.predict_density(penguins()).probability, model.predict_density(penguins()).probability)
    assert kept.cv_results_ == model.cv_results_
    with pytest.raises(AttributeError, match="held-out"):
        _ = kept.out_of_fold_


def test_a_file_is_read_like_a_table(tmp_path):
    penguins().write_csv(tmp_path / "penguins.csv")
    model = po.GenerativeRegressor().fit(str(tmp_path / "penguins.csv"), "body_mass_g")
    assert_allclose(model.predict(str(tmp_path / "penguins.csv")), fitted().predict(penguins()), rtol=1e-6)


def test_rare_rows_have_a_low_density():
    model = fitted()
    usual = model.score_samples(penguins())
    odd = penguins()[:1].with_columns(pl.lit(90.0).alias("bill_length_mm"), pl.lit("Gentoo").alias("species"))
    assert model.score_samples(odd)[0] < np.quantile(usual, 0.05)


# Bad input ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("y", "message"),
    [
        ([1.0] * 8, "the target 'y' is 1 in every row"),
        ([1.0, 2.0, np.inf, 3.0, 4.0, 5.0, 6.0, 7.0], "infinity: the target 'y' is inf in row 2"),
        ([np.nan] * 8, "every cell of the target 'y' is missing"),
        (list("abcdefgh"), "the target 'y' holds strings, and a regressor predicts numbers"),
    ],
)
def test_a_bad_target_is_one_sentence(y, message):
    with pytest.raises(ValueError, match=message) as error:
        po.GenerativeRegressor().fit(np.arange(16.0).reshape(8, 2), y)
    assert "\n" not in str(error.value)


def test_two_rows_are_too_few():
    with pytest.raises(ValueError, match="three rows at least"):
        po.GenerativeRegressor().fit([[1.0], [2.0]], [1.0, 2.0])


def test_three_rows_are_enough():
    model = po.GenerativeRegressor().fit([[1.0], [2.0], [3.0]], [1.0, 2.0, 4.0])
    assert np.isfinite(model.predict([[2.5]])).all()


@pytest.mark.parametrize(
    "members", [["forest"], ["additive"], ["kernel"], ["additive", "kernel"], ("forest", "kernel")]
)
def test_members_can_be_chosen(members):
    X, y = friedman(120)
    model = po.GenerativeRegressor(members).fit(X, y)
    assert list(model.member_weights_) == sorted(members, key=["forest", "additive", "kernel"].index)
    assert model.score(X, y) > 0.5


@pytest.mark.parametrize("members", [[], ["trees"], ["forest", 3]])
def test_unknown_members_are_named(members):
    with pytest.raises(ValueError, match="members is"):
        po.GenerativeRegressor(members).fit(*friedman(30))


def test_columns_without_any_difference_give_the_marginal():
    X, y = np.ones((60, 2)), friedman(60)[1]
    model = po.GenerativeRegressor().fit(X, y)
    assert_allclose(model.predict(X[:1]), y.mean(), rtol=0.05)


def test_groups_are_the_most_folds_and_three_are_needed():
    X, y = friedman(60)
    assert np.isfinite(po.GenerativeRegressor().fit(X, y, groups=np.arange(60) % 4).predict(X)).all()
    with pytest.raises(ValueError, match="groups holds 2 of them"):
        po.GenerativeRegressor().fit(X, y, groups=np.arange(60) % 2)


def test_an_infinite_cell_is_named():
    X, y = friedman(60)
    X[7, 2] = np.inf
    with pytest.raises(ValueError, match="column 'x2' holds inf in row 7"):
        po.GenerativeRegressor().fit(X, y)


def test_continuous_targets_have_no_atoms_small_ones_no_steps():
    X, y = friedman(100)
    for unit in (1.0, 1e-12):
        cells = po.GenerativeRegressor().fit(X, y * unit).predict_density(X[:1]).cells
        assert cells.step == 0.0
        assert (cells.low < cells.high).all()


def test_quantiles_outside_of_0_to_1_are_refused():
    with pytest.raises(ValueError, match="quantiles is"):
        fitted().predict_quantiles(penguins(), [0.5, 2.0])


def test_one_target_among_the_rows_that_count_is_refused():
    X, y = friedman(60)
    with pytest.raises(ValueError, match="is 1 in every row"):
        po.GenerativeRegressor().fit(X, (y > np.median(y)) * 1.0, sample_weight=(y > np.median(y)) * 1.0)


@pytest.mark.parametrize("groups", [np.arange(5), np.array([None, *"ab" * 29, "c"], dtype=object)])
def test_groups_that_do_not_fit_are_refused(groups):
    with pytest.raises(ValueError, match="groups has"):
        po.GenerativeRegressor().fit(*friedman(60), groups=groups)


def test_the_additive_member_is_the_regressor_of_the_same_sums(tmp_path):
    penguins = load_penguins().drop_nulls("body_mass_g")
    columns = po.Columns(categorical_features=["year"])
    pool = po.GenerativeRegressor(columns=columns).fit(penguins, "body_mass_g")
    alone = po.AdditiveRegressor(scale=pool._value.members.scale.name, columns=columns).fit(penguins, "body_mass_g")
    member = pool.additive_member()
    assert_allclose(member.predict_density(penguins).probability, alone.predict_density(penguins).probability)
    assert member.get_params()["columns"] is columns
    po.save(member, tmp_path / "member.posteriori")
    assert_array_equal(po.load(tmp_path / "member.posteriori").predict(penguins), member.predict(penguins))
    assert member.partial_fit(penguins, "body_mass_g").score(penguins, "body_mass_g") > 0.8
    with pytest.raises(ValueError, match="the pool has no additive member"):
        po.GenerativeRegressor(["kernel"]).fit(penguins, "body_mass_g").additive_member()
