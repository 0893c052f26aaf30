"""NaiveBayes: Bayes' rule on the tables people have."""

import itertools

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.datasets import load_iris
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.naive_bayes import CategoricalNB, GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.datasets import load_penguins


@parametrize_with_checks(
    [po.NaiveBayes(), po.NaiveBayes(distributions=po.Gaussian(0.5, ddof=1), priors=1.0)],
    expected_failed_checks=lambda estimator: (
        {"check_estimator_sparse_tag": "sparse rows are counts, and the tag would also promise negative cells"}
        if estimator.distributions is None
        else {}
    ),
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def mixed():
    """Return a mixed table with missing cells and counts, as pandas, and its labels."""
    rng = np.random.default_rng(0)
    n = 300
    y = rng.integers(0, 3, n)
    table = pd.DataFrame(
        {
            "height": rng.normal(np.array([1.0, 2.0, 3.0])[y], 1.0),
            "colour": np.array(["red", "green", "blue"])[(y + rng.integers(0, 2, n)) % 3],
            "visits": rng.poisson(np.array([1.0, 4.0, 9.0])[y]).astype(float),
            "smokes": rng.random(n) < 0.3 + 0.2 * y,
        }
    )
    table.loc[rng.random(n) < 0.1, "height"] = np.nan
    table.loc[rng.random(n) < 0.1, "colour"] = None
    table.loc[rng.random(n) < 0.1, "visits"] = np.nan
    return table, np.array(["a", "b", "c"])[y]


def poisson_model(**parameters):
    return po.NaiveBayes(distributions={"visits": "poisson"}, **parameters)


# Against the definition ---------------------------------------------------------------------------------------


def test_codes_in_numbers_are_listed_as_the_error_says():
    codes, y = np.array([[1.0], [2.0], [3.0], [1.0], [2.0], [4.0]]), list("aabbab")
    said = r"column 'x0' is continuous.*; list it in columns=po.Columns\(categorical_features=\['x0'\]\) if"
    with pytest.raises(ValueError, match=said):
        po.NaiveBayes(distributions="categorical").fit(codes, y)
    model = po.NaiveBayes(distributions="categorical", columns=po.Columns(categorical_features=["x0"]))
    assert model.fit(codes, y).n_categories_ == [4]


def test_the_textbook_example():
    model = po.NaiveBayes.from_parameters(priors=[0.2, 0.5, 0.3], gaussian={"x": {"mean": [2, 3, 4], "sd": [1, 2, 1]}})
    likelihood = np.exp(model.predict_joint_log_proba([[3.4]])[0]) / model.class_prior_
    assert_allclose(likelihood, [0.149727, 0.195521, 0.333225], atol=5e-7)
    assert_allclose(likelihood, scipy.stats.norm([2, 3, 4], [1, 2, 1]).pdf(3.4))
    assert_allclose(model.predict_proba([[3.4]])[0], [0.131528, 0.429390, 0.439082], atol=5e-7)


def test_a_row_of_ones_and_a_row_of_zeros_for_each_class():
    """The smoothing of one textbook, priors included, is alpha = 1 and priors = 2."""
    rng = np.random.default_rng(3)
    X, y = rng.random((40, 5)) < 0.3, rng.integers(0, 3, 40)
    extra = np.repeat([[True] * 5, [False] * 5], 3, axis=0)
    by_rows = po.NaiveBayes(alpha=0.0).fit(np.vstack([X, extra]), np.concatenate([y, [0, 1, 2] * 2]))
    by_smoothing = po.NaiveBayes(alpha=1.0, priors=2.0).fit(X, y)
    assert_allclose(by_rows.class_prior_, by_smoothing.class_prior_)
    for first, second in zip(by_rows.feature_log_prob_, by_smoothing.feature_log_prob_, strict=True):
        assert_allclose(first, second)
    assert_allclose(by_rows.predict_proba(X), by_smoothing.predict_proba(X))


def test_one_density_is_that_of_all_columns_of_its_kind(mixed):
    table, y = mixed
    numbers = po.NaiveBayes(distributions=po.Gaussian(smoothing=0.0)).fit(table, y)
    assert [block.density for block in numbers.model_.blocks] == [po.Gaussian(0.0), po.Categorical(1.0)]
    categories = po.NaiveBayes(distributions=po.Categorical(0.5)).fit(table, y)
    assert [block.density for block in categories.model_.blocks] == [po.Gaussian(), po.Categorical(0.5)]


def test_the_joint_is_the_product_of_prior_and_factors(mixed):
    table, y = mixed
    model = po.NaiveBayes(distributions={"height": po.Gaussian(0.0), "visits": po.Poisson(0.0)}).fit(table, y)
    joint = model.predict_joint_log_proba(table)
    for i in range(0, len(table), 17):
        row = table.iloc[i]
        for c, label in enumerate(model.classes_):
            mine = table[y == label]
            expected = np.log(len(mine) / len(table))
            if not np.isnan(row.height):
                expected += scipy.stats.norm(mine.height.mean(), mine.height.std(ddof=0)).logpdf(row.height)
            if not np.isnan(row.visits):
                expected += scipy.stats.poisson(mine.visits.mean()).logpmf(row.visits)
            if isinstance(row.colour, str):
                expected += np.log(((mine.colour == row.colour).sum() + 1) / (mine.colour.notna().sum() + 3))
            expected += np.log(((mine.smokes == row.smokes).sum() + 1) / (len(mine) + 2))
            assert_allclose(joint[i, c], expected, rtol=1e-10)


def test_predictions_are_the_joint_normalised(mixed):
    table, y = mixed
    model = poisson_model().fit(table, y)
    joint = model.predict_joint_log_proba(table)
    evidence = np.log(np.exp(joint).sum(axis=1))
    assert_allclose(model.score_samples(table), evidence)
    assert_allclose(model.predict_log_proba(table), joint - evidence[:, np.newaxis])
    assert_allclose(model.predict_proba(table), np.exp(joint - evidence[:, np.newaxis]), rtol=1e-9)
    assert_allclose(model.predict_proba(table).sum(axis=1), 1.0)
    assert_array_equal(model.predict(table), model.classes_[joint.argmax(axis=1)])
    assert model.score(table, y) == np.mean(model.predict(table) == y)


def test_gaussian_columns_are_scikit_learns_at_no_smoothing():
    X, y = load_iris(return_X_y=True)
    ours = po.NaiveBayes(distributions=po.Gaussian(0.0)).fit(X, y)
    theirs = GaussianNB(var_smoothing=0.0).fit(X, y)
    assert_allclose(ours.theta_, theirs.theta_)
    assert_allclose(ours.var_, theirs.var_)
    assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X))


@given(st.floats(0.01, 5.0), st.integers(0, 10**6))
def test_categorical_columns_are_scikit_learns(alpha, seed):
    rng = np.random.default_rng(seed)
    X, y = rng.integers(0, 4, (60, 3)), rng.integers(0, 3, 60)
    X[:4] = np.arange(4)[:, np.newaxis]  # scikit-learn counts every category up to the largest
    ours = po.NaiveBayes(alpha=alpha, columns=po.Columns(categorical_features=[0, 1, 2])).fit(X, y)
    theirs = CategoricalNB(alpha=alpha).fit(X, y)
    assert_allclose(ours.predict_joint_log_proba(X), theirs.predict_joint_log_proba(X))


def test_missing_categories_are_summed_out(mixed):
    table, y = mixed
    model = poisson_model().fit(table, y)
    row = table.iloc[[5]].assign(colour=None, visits=np.nan)
    total = sum(
        np.exp(model.predict_joint_log_proba(row.assign(colour=colour, visits=float(visits))))
        for colour, visits in itertools.product(["red", "green", "blue"], range(80))
    )
    assert_allclose(np.exp(model.predict_joint_log_proba(row)), total, rtol=1e-9)


def test_a_row_of_missing_cells_gets_the_prior(penguins):
    model = po.NaiveBayes().fit(penguins, "species")
    nothing = pl.DataFrame({name: [None] for name in model.feature_names_in_})
    assert_allclose(model.predict_proba(nothing)[0], model.class_prior_)
    assert_allclose(model.score_samples(nothing), [0.0], atol=1e-12)


def test_an_unseen_category_is_missing_and_named_in_one_warning(penguins):
    model = po.NaiveBayes().fit(penguins, "species")
    strange = penguins.with_columns(pl.lit("Atlantis").alias("island"))
    with pytest.warns(UserWarning, match="unseen in training.*344 cells of column 'island'") as caught:
        told = model.predict_proba(strange)
    assert len(caught) == 1
    missing = penguins.with_columns(pl.lit(None, pl.String).alias("island"))
    assert_allclose(told, model.predict_proba(missing))


# Symmetries ---------------------------------------------------------------------------------------------------


def test_columns_are_matched_by_name_in_any_order(mixed):
    table, y = mixed
    model = poisson_model().fit(table, y)
    shuffled = table[["smokes", "visits", "height", "colour"]]
    assert_array_equal(model.predict_proba(shuffled), model.predict_proba(table))
    assert_allclose(
        poisson_model().fit(shuffled, y).predict_joint_log_proba(table), model.predict_joint_log_proba(table)
    )


def test_classes_can_be_renamed(mixed):
    table, y = mixed
    names = {"a": 3, "b": 1, "c": 2}
    model = poisson_model().fit(table, y)
    renamed = poisson_model().fit(table, np.vectorize(names.get)(y))
    assert_array_equal(renamed.classes_, [1, 2, 3])
    assert_allclose(renamed.predict_proba(table)[:, [2, 0, 1]], model.predict_proba(table))


@given(st.floats(-6, 6), st.floats(-1e9, 1e9))
def test_no_posterior_depends_on_units_or_origin(log_scale, offset):
    X, y = load_iris(return_X_y=True)
    moved = X.copy()
    moved[:, 0] = (X[:, 0] + offset) * 10.0**log_scale
    expected = po.NaiveBayes().fit(X, y).predict_proba(X)
    assert_allclose(po.NaiveBayes().fit(moved, y).predict_proba(moved), expected, atol=1e-5)


def test_noise_of_large_scale_does_not_hide_a_small_column():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 2000)
    X = np.column_stack([1e-3 * (rng.normal(size=2000) + 4 * y), 1e4 * rng.normal(size=2000)])
    assert po.NaiveBayes().fit(X, y).score(X, y) > 0.97
    assert GaussianNB().fit(X, y).score(X, y) < 0.6  # the defect of var_smoothing


@given(st.integers(0, 10**6))
def test_weights_are_repetitions(seed):
    rng = np.random.default_rng(seed)
    X, y, w = rng.normal(size=(30, 2)), rng.integers(0, 3, 30), rng.integers(1, 4, 30)
    X[rng.random(X.shape) < 0.1] = np.nan
    weighted = po.NaiveBayes(distributions=po.Gaussian(ddof=1), priors=0.5).fit(X, y, sample_weight=w)
    repeated = po.NaiveBayes(distributions=po.Gaussian(ddof=1), priors=0.5).fit(
        np.repeat(X, w, axis=0), np.repeat(y, w)
    )
    assert_allclose(weighted.predict_joint_log_proba(X), repeated.predict_joint_log_proba(X), rtol=1e-8)


@given(st.integers(0, 10**6), st.integers(1, 5))
def test_partial_fits_add_up_to_one_fit(seed, pieces):
    rng = np.random.default_rng(seed)
    n = 60
    table = pd.DataFrame(
        {
            "x": rng.normal(1e9, 1, n).round(3),
            "c": rng.choice(["p", "q", "r", "s"], n, p=[0.7, 0.2, 0.05, 0.05]),
        }
    )
    y = rng.choice(["u", "v", "w"], n, p=[0.8, 0.15, 0.05])
    whole = po.NaiveBayes().fit(table, y)
    parts = po.NaiveBayes()
    for rows in np.array_split(rng.permutation(n), pieces):
        parts.partial_fit(table.iloc[rows], y[rows])
    assert_array_equal(parts.classes_, whole.classes_)
    assert parts.model_.schema == whole.model_.schema
    assert_array_equal(parts.statistics_.blocks[1].table, whole.statistics_.blocks[1].table)
    assert_allclose(parts.predict_proba(table), whole.predict_proba(table), atol=1e-7)


def test_smoothing_may_change_between_partial_fits(mixed):
    table, y = mixed
    model = po.NaiveBayes(distributions=po.Gaussian(100.0), alpha=50.0).partial_fit(table[:100], y[:100])
    model.set_params(distributions=po.Gaussian(1.0), alpha=1.0).partial_fit(table[100:], y[100:])
    assert_allclose(model.predict_proba(table), po.NaiveBayes().fit(table, y).predict_proba(table), atol=1e-9)


# Priors, parameters -------------------------------------------------------------------------------------------


def test_priors_by_hand_by_mapping_and_smoothed():
    X, y = load_iris(return_X_y=True)
    assert_allclose(po.NaiveBayes(priors=[0.5, 0.3, 0.2]).fit(X, y).class_prior_, [0.5, 0.3, 0.2])
    assert_allclose(po.NaiveBayes(priors={2: 0.2, 0: 0.5, 1: 0.3}).fit(X, y).class_prior_, [0.5, 0.3, 0.2])
    smoothed = po.NaiveBayes(priors=3.0).fit(X[:100], y[:100], sample_weight=np.r_[np.ones(50), np.full(50, 2.0)])
    assert_allclose(smoothed.class_prior_, [53 / 156, 103 / 156])


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        ([0.5, 0.5], "Number of priors must match number of classes"),
        ([0.5, 0.4, 0.2], "sum of the priors should be 1"),
        ([-0.5, 1.0, 0.5], "non-negative"),
        ({0: 0.5, 1: 0.5}, "must name every class once"),
    ],
)
def test_bad_priors(priors, message):
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes(priors=priors).fit(*load_iris(return_X_y=True))


def test_priors_of_a_crafted_file_must_be_numbers():
    model = po.NaiveBayes().fit(*load_iris(return_X_y=True))
    model.priors = object()
    with pytest.raises(ValueError, match="priors is a object; give one number per class"):
        po.merge([model, model])


def test_known_parameters_of_every_kind():
    model = po.NaiveBayes.from_parameters(
        priors={"well": 0.7, "ill": 0.3},
        gaussian={"fever": {"mean": {"ill": 39.0, "well": 36.8}, "variance": [0.09, 0.25]}},
        categorical={"test": {"negative": [0.9, 0.2], "positive": [0.1, 0.8]}},
        poisson={"coughs": [1.0, 8.0]},
        features=["test", "fever", "coughs"],
    )
    row = [["positive", 38.0, 4]]
    expected = np.log([0.7, 0.3]) + np.log([0.1, 0.8])
    expected += scipy.stats.norm([36.8, 39.0], [0.3, 0.5]).logpdf(38.0) + scipy.stats.poisson([1, 8]).logpmf(4)
    assert_allclose(model.predict_joint_log_proba(row)[0], expected)
    named = pl.DataFrame({"coughs": [4], "fever": [38.0], "test": ["positive"]})
    assert_allclose(model.predict_joint_log_proba(named)[0], expected)
    assert_array_equal(model.classes_, ["well", "ill"])
    assert model.n_parameters_ == 1 + 4 + 2 + 2
    X, y = model.sample(200, random_state=0)
    assert X.shape == (200, 3)
    assert set(y) == {"well", "ill"}
    with pytest.raises(ValueError, match="built from parameters"):
        model.partial_fit(row, ["ill"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"priors": [1.0]}, "at least one feature"),
        (
            {"priors": [0.5, 0.5], "gaussian": {"x": {"mean": [0, 1]}}},
            "'mean' and one of 'sd' and 'variance'",
        ),
        (
            {"priors": [0.5, 0.5], "gaussian": {"x": {"mean": [0, 1], "sd": [1, 0]}}},
            "spread of 'x' must be positive",
        ),
        (
            {"priors": [0.5, 0.5], "gaussian": {"x": {"mean": [0], "sd": [1, 1]}}},
            "mean of 'x' must be 2 finite",
        ),
        (
            {"priors": [0.5, 0.5], "categorical": {"c": {"a": [0.5, 1], "b": [0.4, 0]}}},
            "'c' must .* sum to 1",
        ),
        ({"priors": [0.5, 0.5], "poisson": {"k": [1, -1]}}, "rate of 'k' must be positive"),
        ({"priors": [0.5, 0.6], "poisson": {"k": [1, 1]}}, "sum of the priors"),
        ({"priors": {"a": 1.0}, "poisson": {"k": {"b": 1}}}, "rate of 'k' must name every class once"),
        ({"priors": [1.0], "poisson": {"k": [1]}, "features": ["j"]}, "must list these once each"),
    ],
)
def test_bad_known_parameters(arguments, message):
    with pytest.raises(ValueError, match=message):
        po.NaiveBayes.from_parameters(**arguments)


def test_parameters_counted_before_and_after_fitting(mixed):
    table, y = mixed
    model = poisson_model().fit(table, y)
    assert model.n_parameters_ == 2 + 3 * 2 + 3 * (3 - 1) + 3 * 1 + 3 * (2 - 1)
    before = po.parameter_count.count_parameters(3, categorical=[3, 2], gaussian=1, poisson=1)
    assert before.naive == model.n_parameters_


@given(st.integers(1, 6), st.integers(1, 9), st.integers(2, 9))
def test_the_textbook_counts_of_parameters(n_classes, d, k):
    counted = po.parameter_count.count_parameters(n_classes, categorical=[k] * d)
    assert counted.full_joint == n_classes * (k**d - 1) + (n_classes - 1)
    assert counted.naive == n_classes * d * (k - 1) + (n_classes - 1)


def test_counts_of_gaussian_parameters():
    counted = po.parameter_count.count_parameters(2, gaussian=10)
    assert counted.naive == 2 * 2 * 10 + 1
    assert counted.full_joint == 2 * (10 + 10 * 11 // 2) + 1
    with pytest.raises(ValueError, match="at least 1"):
        po.parameter_count.count_parameters(2, categorical=[0])


def test_fitted_values_have_scikit_learns_names(mixed):
    table, y = mixed
    model = poisson_model().fit(table, y)
    assert model.theta_.shape == model.var_.shape == (3, 1)
    assert model.rate_.shape == (3, 1)
    assert [a.tolist() for a in model.categories_] == [["blue", "green", "red"], [False, True]]
    assert model.n_categories_ == [3, 2]
    assert [p.shape for p in model.feature_log_prob_] == [(3, 3), (3, 2)]
    for log_probability in model.feature_log_prob_:
        assert_allclose(np.exp(log_probability).sum(axis=1), 1.0)
    assert_array_equal(model.class_count_, [np.sum(y == label) for label in model.classes_])
    assert model.category_count_[0].sum() == table.colour.notna().sum()
    assert_array_equal(model.feature_names_in_, table.columns)
    assert not hasattr(po.NaiveBayes(), "theta_")
    assert not hasattr(po.NaiveBayes().fit(table[["height"]], y), "rate_")


# Drawing, living with scikit-learn ----------------------------------------------------------------------------


def test_rows_drawn_give_the_model_back(mixed):
    table, y = mixed
    model = poisson_model().fit(table, y)
    X, labels = model.sample(50_000, random_state=0)
    again = poisson_model().fit(X, labels)
    assert_allclose(again.class_prior_, model.class_prior_, atol=0.02)
    assert_allclose(again.theta_, model.theta_, atol=0.05)
    assert_allclose(again.rate_, model.rate_, rtol=0.03)
    assert_allclose(np.exp(again.feature_log_prob_[0]), np.exp(model.feature_log_prob_[0]), atol=0.02)
    assert X.notna().all().all()
    assert X.smokes.dtype == bool
    assert X.colour.dtype == table.colour.dtype


@pytest.mark.parametrize("convert", [lambda t: t, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow, pl.DataFrame.to_numpy])
def test_counts_are_drawn_as_the_integers_they_were(convert):
    table = convert(pl.DataFrame({"a": [1, 2, 3, 0], "b": [5, 5, 7, 9]}))
    model = po.NaiveBayes(distributions="poisson").fit(table, [0, 1, 0, 1])
    drawn, _ = model.sample(6, random_state=0)
    kinds = {np.asarray(drawn[name]).dtype.kind for name in ("a", "b")} if model.schema_.named else {drawn.dtype.kind}
    assert kinds == {"i"}
    gaussian, _ = po.NaiveBayes().fit(table, [0, 1, 0, 1]).sample(6, random_state=0, respect_ranges=False)
    assert np.asarray(gaussian).dtype.kind == "f"


def test_drawing_from_chosen_classes(penguins):
    model = po.NaiveBayes().fit(penguins, "species")
    X, y = model.sample(5, y="Gentoo", random_state=np.random.default_rng(1))
    assert y.tolist() == ["Gentoo"] * 5
    assert isinstance(X, pl.DataFrame)
    _, y = model.sample(2, y=["Adelie", "Chinstrap"], random_state=0)
    assert y.tolist() == ["Adelie", "Chinstrap"]
    with pytest.raises(ValueError, match="'Emperor' is not a class"):
        model.sample(2, y="Emperor")
    with pytest.raises(ValueError, match="at least one row"):
        model.sample(0)
    first, second = (model.sample(4, random_state=7)[0] for _ in range(2))
    assert first.equals(second)


def test_it_works_inside_scikit_learns_tools(penguins):
    table = penguins.to_pandas()
    y = table.pop("species")
    assert cross_val_score(po.NaiveBayes(), table, y, cv=5).mean() > 0.95
    search = GridSearchCV(
        po.NaiveBayes(), {"distributions": [po.Gaussian(0.1), po.Gaussian(10.0)], "alpha": [0.5, 1.0]}, cv=3
    ).fit(table, y)
    assert search.best_score_ > 0.95
    assert make_pipeline(FunctionTransformer(), po.NaiveBayes()).fit(table, y).score(table, y) > 0.95


def test_a_distribution_must_fit_the_kind_of_its_column(mixed):
    table, y = mixed
    with pytest.raises(ValueError, match="column 'colour' is categorical, but its distribution 'gaussian'"):
        po.NaiveBayes(distributions={"colour": "gaussian"}).fit(table, y)
    with pytest.raises(ValueError, match="'weibull' is not a distribution; choose one of binned, categorical, comp"):
        po.NaiveBayes(distributions={"height": "weibull"}).fit(table, y)
    with pytest.raises(ValueError, match=r"column 'height' holds .* in row \d+, but its distribution is poisson"):
        po.NaiveBayes(distributions="poisson").fit(table, y)


def test_a_code_for_missing_labels_is_a_label():
    with pytest.raises(ValueError, match='unlabelled is a ndarray; give "error", "learn", "ignore" or a label'):
        po.NaiveBayes(labels=po.Labels(unlabelled=np.zeros(2))).fit([[1.0], [2.0]], [0, 1])
