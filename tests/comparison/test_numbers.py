"""Cross-validation and learning curves of models of numbers."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.ensemble import RandomForestRegressor
from sklearn.linear_model import LinearRegression, Ridge
from sklearn.metrics import mean_absolute_error, mean_squared_error, r2_score
from sklearn.preprocessing import StandardScaler

import posteriori as po
from posteriori.comparison import DiscriminativeRegressor, discriminative
from posteriori.model_selection.measures import OF_NUMBERS
from posteriori.regression.held_out import scores_of_numbers


def rows_of(n, seed=0):
    rng = np.random.default_rng(seed)
    frame = pl.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n), "c": rng.choice(["u", "v"], n)})
    y = 10.0 + 2.0 * frame["a"].to_numpy() + (frame["c"] == "u").to_numpy() + 0.3 * rng.normal(size=n)
    return frame, y


X, Y = rows_of(60)
FOLD = np.arange(60) % 3
REGRESSORS = [po.GenerativeRegressor, po.AdditiveRegressor, po.KernelRegressor]


def scores_in(found, title):
    return found.table.row(by_predicate=pl.col("model") == title, named=True)


@pytest.mark.parametrize("make", REGRESSORS)
def test_scores_are_those_of_refits_to_the_stated_folds(make):
    found = po.cross_validate({"one": make()}, X, Y, folds=FOLD)
    assert_array_equal(found.fold, FOLD)
    each = []
    for k in range(3):
        density = make().fit(X.filter(k != FOLD), Y[k != FOLD]).predict_density(X.filter(k == FOLD))
        assert_allclose(found.posteriors["one"][k].probability, density.probability, atol=1e-12)
        each.append(scores_of_numbers(density, Y[k == FOLD]))
    row = scores_in(found, "one")
    for name in set(OF_NUMBERS) - {"rmse", "r2"}:
        assert row[name] == pytest.approx(np.mean([one[name] for one in each]))  # folds of equal size
    squared = np.mean([one["rmse"] ** 2 for one in each])
    assert row["rmse"] == pytest.approx(squared**0.5)
    assert row["r2"] == pytest.approx(1 - squared / Y.var())


@pytest.mark.parametrize("make", REGRESSORS)
def test_a_number_of_folds_gives_the_held_out_scores_of_one_fit(make):
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60)
    found = po.cross_validate({"one": make(), "two": make()}, X, Y, folds=4, sample_weight=weight)
    own = make(folds=4, random_state=0).fit(X, Y, sample_weight=weight)
    row = scores_in(found, "one")
    for name in OF_NUMBERS:
        assert row[name] == own.cv_results_[name][-1] == scores_in(found, "two")[name]
        assert row[f"{name}_se"] > 0
    assert_allclose(found.weight, weight)
    assert_array_equal(found.y_true, Y)


def test_models_of_numbers_have_the_scores_of_scikit_learn():
    numbers = X.select("a", "b")
    found = po.cross_validate({"linear": LinearRegression(), "ridge": Ridge()}, numbers, Y, folds=FOLD)
    row, predicted = scores_in(found, "linear"), np.empty(60)
    for k in range(3):
        model = LinearRegression().fit(numbers.filter(k != FOLD), Y[k != FOLD])
        predicted[k == FOLD] = model.predict(numbers.filter(k == FOLD))
    assert row["rmse"] == pytest.approx(mean_squared_error(Y, predicted) ** 0.5)
    assert row["mae"] == pytest.approx(mean_absolute_error(Y, predicted))
    assert row["r2"] == pytest.approx(r2_score(Y, predicted))
    absolute = np.abs(Y - predicted)
    assert row["mae_se"] == pytest.approx(absolute.std() / 60**0.5)
    assert [row[name] for name in ("crps", "log_score", "coverage", "width")] == [None] * 4
    assert "–" in str(found)


def test_errors_of_rmse_and_r2_are_near_those_of_the_bootstrap():
    frame, y = rows_of(400)
    found = po.cross_validate({"linear": LinearRegression()}, frame.select("a", "b"), y, folds=4)
    predicted = np.empty(400)
    for k, one in enumerate(found.posteriors["linear"]):
        predicted[found.fold == k] = one
    rng, draws = np.random.default_rng(0), []
    for _ in range(1000):
        rows = rng.integers(400, size=400)
        draws.append((mean_squared_error(y[rows], predicted[rows]) ** 0.5, r2_score(y[rows], predicted[rows])))
    row = scores_in(found, "linear")
    assert_allclose([row["rmse_se"], row["r2_se"]], np.std(draws, axis=0), rtol=0.15)


@pytest.mark.parametrize("models", [["ridge"], ["additive"]], ids=["refitted", "one fit"])
def test_equal_rows_and_groups_stay_in_one_fold(models):
    twice, y = pl.concat([X, X]), np.tile(Y, 2)
    fold = po.cross_validate(["ridge"], twice, y, folds=3).fold
    assert_array_equal(fold[:60], fold[60:])
    groups = np.arange(60) // 4
    found = po.cross_validate(models, X, Y, folds=3, groups=groups)
    assert all(len(set(found.fold[groups == g])) == 1 for g in set(groups))


def test_regressors_of_other_folds_are_refused():
    models = {
        "all": po.AdditiveRegressor(),
        "one": po.AdditiveRegressor(columns=po.Columns(categorical_features=["a"])),
    }
    with pytest.raises(ValueError, match="'one' reads other columns than 'all'"):
        po.cross_validate(models, X, Y, folds=3)


@pytest.mark.parametrize("judge", [po.cross_validate, po.compare])
def test_refusals_of_targets_and_of_mixed_kinds(judge):
    with pytest.raises(ValueError, match="compare models of one kind"):
        judge(["nb", "ridge"], X, Y)
    with pytest.raises(ValueError, match="a regressor predicts numbers"):
        judge(["additive"], X, "c")
    with pytest.raises(ValueError, match="y is 1 in every row"):
        judge(["ridge"], X, np.ones(60))
    with pytest.raises(ValueError, match="continuous"):
        judge(["nb"], X, Y)


def test_learning_curves_of_numbers():
    found = po.compare(None, X, Y, sizes=[10, 40], repeats=2)
    assert found.measures == ("crps", "rmse", "fit_seconds", "predict_seconds")
    assert found.generative == ("pool of regressions", "sum of functions of single columns")
    assert found.discriminative == ("gradient boosting", "random forest", "ridge regression")
    assert set(found.crossings["measure"]) == {"rmse"}
    assert found.scores.filter(pl.col("model") == "ridge regression")["crps"].null_count() == 4
    assert found.scores["rmse"].null_count() == 0
    text = str(found)
    for words in ("\nCRPS\n", "\nRMSE\n", "\nfit seconds\n", "RMSE: "):
        assert words in text
    pytest.importorskip("matplotlib")
    ax = found.plot()
    assert ax.get_ylabel() == "RMSE on held-out rows"
    assert len(found.plot("crps").lines) == 2


def test_a_point_of_a_curve_is_the_score_of_the_test_rows():
    found = po.compare({"one": po.AdditiveRegressor(), "two": po.AdditiveRegressor()}, X, Y, sizes=[45], repeats=1)
    assert found.scores["rmse"][0] == found.scores["rmse"][1]
    assert 0 < found.scores["crps"][0] < found.scores["rmse"][0]
    assert found.n_test == 15


def test_a_regressor_reads_columns_as_the_classifier_does():
    frame, y = rows_of(200)
    model = discriminative(Ridge()).fit(frame, y)
    assert isinstance(model, DiscriminativeRegressor)
    scaled = StandardScaler().fit_transform(frame.select("a", "b").to_numpy())
    indicators = np.column_stack([frame["c"] == "u", frame["c"] == "v"])
    theirs = Ridge().fit(np.column_stack([scaled, indicators]), y)
    assert_allclose(model.predict(frame), theirs.predict(np.column_stack([scaled, indicators])))
    assert_allclose(DiscriminativeRegressor().fit(frame, y).predict(frame), model.predict(frame))
    assert isinstance(DiscriminativeRegressor("forest").fit(frame, y).pipeline_[-1], RandomForestRegressor)
    with pytest.raises(ValueError, match="regressor is 'svm'; name one of 'ridge'"):
        DiscriminativeRegressor("svm").fit(frame, y)
    with pytest.raises(TypeError, match="give a regressor of scikit-learn"):
        DiscriminativeRegressor(StandardScaler()).fit(frame, y)
