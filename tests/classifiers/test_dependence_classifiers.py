"""Classifiers whose features depend on each other: scikit-learn's conventions, tables, laws of learning."""

import itertools
import logging
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
import posteriori.sources.table_source
from posteriori.datasets import load_penguins
from posteriori.model_selection import out_of_fold

MODELS = {
    "tan": po.TreeAugmentedNaiveBayes(bins=8),
    "tan mdlp": po.TreeAugmentedNaiveBayes(),
    "tan gaussian": po.TreeAugmentedNaiveBayes(bins=None),
    "tan bic": po.TreeAugmentedNaiveBayes(bins=8, penalty="bic", backoff=None),
    "chow-liu": po.classifiers.ChowLiuClassifier(bins=8),
    "chow-liu gaussian": po.classifiers.ChowLiuClassifier(bins=None, penalty="aic"),
    "kdb 1": po.KDependenceBayes(1, bins=8),
    "kdb 3": po.KDependenceBayes(3, bins=8),
    "aode": po.AveragedOneDependence(bins=8),
    "full joint": po.classifiers.FullJointClassifier(bins=3),
}
CHECKED = [
    po.TreeAugmentedNaiveBayes(),
    po.TreeAugmentedNaiveBayes(bins=None),
    po.classifiers.ChowLiuClassifier(),
    po.KDependenceBayes(2),
    po.AveragedOneDependence(),
]


@pytest.fixture(params=MODELS)
def model(request):
    return MODELS[request.param]


@pytest.fixture(scope="module")
def table():
    """Mixed columns that depend on each other, with gaps, strings and a category in few rows."""
    rng = np.random.default_rng(0)
    n = 240
    y = rng.integers(0, 3, n)
    x = rng.normal(y, 1.0)
    frame = pl.DataFrame(
        {
            "x": x + 1e4,
            "twice": 2.0 * x + rng.normal(0, 0.3, n),
            "sky": np.array(["clear", "grey", "rain"])[(y + (rng.random(n) < 0.3)) % 3],
            "wind": np.array(["calm", "gale"])[((x > 1) ^ (rng.random(n) < 0.1)).astype(int)],
            "rare": rng.choice(["a", "b", "c", "d"], n, p=[0.6, 0.3, 0.09, 0.01]),
            "y": np.array(["low", "mid", "top"])[y],
        }
    )
    gaps = rng.random((n, 2)) < 0.1
    return frame.with_columns(
        pl.when(~pl.Series(gaps[:, 0])).then("twice"), pl.when(~pl.Series(gaps[:, 1])).then("sky")
    )


@parametrize_with_checks(CHECKED)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@parametrize_with_checks([po.ChowLiuTree()])
def test_scikit_learn_conventions_without_a_class(estimator, check):
    check(estimator)


# Learning --------------------------------------------------------------------------------------------------------


def test_every_way_of_reading_a_table_gives_the_same_model(constructor, table):
    small = table.drop_nulls()
    other = constructor({name: small[name].to_list() for name in ("x", "twice", "sky", "wind")})
    expected = po.TreeAugmentedNaiveBayes().fit(small.select("x", "twice", "sky", "wind"), small["y"])
    found = po.TreeAugmentedNaiveBayes().fit(other, small["y"].to_list())
    assert_allclose(found.predict_proba(other), expected.predict_proba(small.select("x", "twice", "sky", "wind")))


def test_pieces_add_up_to_one_fit(model, table):
    if model.get_params().get("bins") == "mdlp":
        pytest.skip("bins are chosen by the rows of the first call")
    features, labels = table.drop("y"), table["y"]
    whole = clone(model)
    parts = clone(model)
    whole.fit(features.select("sky", "wind", "rare"), labels)
    for rows in (slice(0, 200), slice(200, 240)):
        parts.partial_fit(features.select("sky", "wind", "rare")[rows], labels[rows], classes=["low", "mid", "top"])
    if isinstance(model, po.KDependenceBayes) and parts.parents_ != whole.parents_:
        pytest.skip("parents are those of the first call")
    probe = features.select("sky", "wind", "rare")
    assert_allclose(parts.predict_joint_log_proba(probe), whole.predict_joint_log_proba(probe), rtol=1e-9)


def test_further_rows_under_other_parameters_are_refused(table):
    model = po.TreeAugmentedNaiveBayes(missing="em", bins=3).fit(table, "y")
    with pytest.raises(ValueError, match="parameters have changed since the last call"):
        model.set_params(missing="pairs").partial_fit(table, "y")


def test_weights_are_repetitions(model, table):
    if model.get_params().get("bins") == "mdlp":
        pytest.skip("more rows than pseudo-weights: see tests/densities/test_binning.py")
    weight = np.random.default_rng(1).integers(0, 4, len(table))
    repeated = table[np.repeat(np.arange(len(table)), weight).tolist()]
    one = clone(model).fit(table.drop("y"), table["y"], sample_weight=weight.astype(float))
    other = clone(model).fit(repeated.drop("y"), repeated["y"])
    assert_allclose(one.predict_proba(table.drop("y")), other.predict_proba(table.drop("y")), rtol=1e-7, atol=1e-9)


def test_threads_change_nothing(model, table, monkeypatch):
    monkeypatch.setattr(posteriori.sources.table_source, "_MOST_ROWS", 64)
    one, two = (clone(model).set_params(**{"n_jobs": n_jobs}).fit(table.drop("y"), table["y"]) for n_jobs in (1, 2))
    assert_array_equal(one.predict_proba(table.drop("y")), two.predict_proba(table.drop("y")))


@pytest.mark.parametrize("name", ["tan", "tan gaussian", "chow-liu", "kdb 1", "kdb 3", "aode", "full joint", "tan bic"])
def test_cross_validation_equals_refitting(name, table):
    """Bins are those of all rows, which their labels have no part in, so the columns here have categories."""
    model = MODELS[name]
    columns = ["sky", "wind", "rare"] if name != "tan gaussian" else ["x", "twice", "sky", "wind", "rare"]
    frame = table.select(*columns, "y")
    result = out_of_fold(clone(model), frame, "y", folds=3)
    for k in range(3):
        held_out = result.fold == k
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # categories of this fold only
            refit = clone(model).fit(frame.filter(~pl.Series(held_out)), "y")
            expected = refit.predict_proba(frame.filter(pl.Series(held_out)))
        assert_allclose(result.posterior[held_out], expected, atol=1e-9)


@pytest.mark.parametrize("cls", [po.TreeAugmentedNaiveBayes, po.classifiers.ChowLiuClassifier])
def test_cross_validation_of_numbers_alone_equals_refitting(cls, table):
    frame = table.select("x", "twice", "y")
    result = out_of_fold(cls(bins=None), frame, "y", folds=3)
    for k in range(3):
        held_out = pl.Series(result.fold == k)
        expected = cls(bins=None).fit(frame.filter(~held_out), "y").predict_proba(frame.filter(held_out))
        assert_allclose(result.posterior[held_out.to_numpy()], expected, atol=1e-9)


def test_models_survive_a_file(model, table, tmp_path):
    fitted = clone(model).fit(table.drop("y"), table["y"])
    po.save(fitted, tmp_path / "model.posteriori")
    again = po.load(tmp_path / "model.posteriori")
    assert_array_equal(again.predict_joint_log_proba(table.drop("y")), fitted.predict_joint_log_proba(table.drop("y")))
    assert again.get_params() == fitted.get_params()
    more = again.partial_fit(table.drop("y"), table["y"])
    assert more.class_count_.sum() == 2 * len(table)


# Answers ---------------------------------------------------------------------------------------------------------


def test_explanations_are_exact_sums(model, table):
    fitted = clone(model).fit(table.drop("y"), table["y"])
    explanation = fitted.explain(table.drop("y"))
    assert_allclose(explanation.log_joint, fitted.predict_joint_log_proba(table.drop("y")), rtol=1e-9)
    assert_allclose(explanation.posterior, fitted.predict_proba(table.drop("y")), atol=1e-12)


def test_drawn_rows_look_like_the_rows_learned_from(model, table):
    own = model.get_params()
    fitted = type(model)(**own | ({"alpha": 0.0} if "max_cells" in own else {})).fit(table.drop("y"), table["y"])
    drawn, labels = fitted.sample(20_000, random_state=0)
    assert drawn.columns == table.columns[:-1]
    assert drawn.null_count().sum_horizontal()[0] == 0
    for label in fitted.classes_:
        own, seen = drawn.filter(pl.Series(labels == label)), table.filter(pl.col("y") == label)
        assert abs((own["wind"] == "gale").mean() - (seen["wind"] == "gale").mean()) < 0.1
        assert abs(own["x"].median() - seen["x"].median()) < 0.6


@pytest.mark.parametrize("name", ["tan", "chow-liu", "full joint", "tan bic", "kdb 1", "kdb 3", "aode"])
def test_missing_cells_are_summed_out(name, table):
    columns = ["sky", "wind", "rare"]
    fitted = clone(MODELS[name]).fit(table.select(columns), table["y"])
    grid = pl.DataFrame(
        list(itertools.product(["clear", "grey", "rain"], ["calm", "gale"], ["a", "b", "c", "d"])),
        schema=columns,
        orient="row",
    )
    joint = fitted.predict_joint_log_proba(grid)
    for column in columns:
        rows = grid.with_columns(pl.lit(None, pl.String).alias(column))
        others = [other for other in columns if other != column]
        groups = grid.select(others).with_row_index().group_by(others, maintain_order=True).agg("index")["index"]
        found = fitted.predict_joint_log_proba(rows)
        for group in groups.to_list():
            assert_allclose(found[group], np.tile(logsumexp(joint[group], axis=0), (len(group), 1)))


def test_k_0_is_naive_bayes_on_the_same_bins(table):
    naive = po.KDependenceBayes(0, bins=5, backoff=None).fit(table.drop("y"), table["y"])
    other = po.NaiveBayes(distributions="binned", bins=5).fit(table.drop("y"), table["y"])
    assert_allclose(naive.predict_joint_log_proba(table.drop("y")), other.predict_joint_log_proba(table.drop("y")))


def test_more_parents_than_there_are_features_do_no_harm(table):
    columns = table.select("sky", "wind", "rare")
    few, many = (po.KDependenceBayes(k).fit(columns, table["y"]) for k in (2, 9))
    assert few.parents_ == many.parents_
    assert_array_equal(few.predict_proba(columns), many.predict_proba(columns))


def test_parents_and_weights_by_name(table):
    tan = po.TreeAugmentedNaiveBayes().fit(table.drop("y"), table["y"])
    assert set(tan.tree_) == set(table.columns[:-1])
    (root,) = [name for name, parent in tan.tree_.items() if parent is None]
    assert root in tan.tree_
    assert set(tan.edge_information_) == {(parent, child) for child, parent in tan.tree_.items() if parent is not None}
    assert tan.edge_information_[("x", "twice")] == max(tan.edge_information_.values())
    own = po.classifiers.ChowLiuClassifier().fit(table.drop("y"), table["y"])
    assert set(own.tree_) == set(own.edge_information_) == {"low", "mid", "top"}


def test_a_numeric_tree_never_puts_a_number_above_a_category():
    frame = load_penguins()
    numbers = {"bill_length_mm", "bill_depth_mm", "flipper_length_mm", "body_mass_g", "year"}
    for kind in (po.TreeAugmentedNaiveBayes, po.classifiers.ChowLiuClassifier):
        tree = kind(bins=None).fit(frame, "species").tree_
        for one in [tree] if kind is po.TreeAugmentedNaiveBayes else tree.values():
            assert not any(parent in numbers and child not in numbers for child, parent in one.items())


def test_a_tree_without_classes_gives_a_classifier_of_one_class(table):
    rows = table.drop("y")
    tree = po.ChowLiuTree().fit(rows)
    classifier = po.classifiers.ChowLiuClassifier(bins=tree.bins).fit(rows, np.zeros(len(rows), int))
    assert_allclose(tree.score_samples(rows), classifier.score_samples(rows))
    assert tree.score(rows) == pytest.approx(classifier.score_samples(rows).mean())
    assert tree.sample(3, random_state=0).columns == rows.columns
    assert tree.n_parameters_ == classifier.n_parameters_
    parts = po.ChowLiuTree().partial_fit(rows).partial_fit(rows)
    assert parts.tree_ == tree.tree_


# What goes wrong -------------------------------------------------------------------------------------------------


def test_the_full_joint_states_its_size_before_it_takes_memory(caplog, capsys):
    X = np.random.default_rng(0).integers(0, 4, (50, 12)).astype(str)
    with pytest.raises(
        ValueError,
        match=r"the full joint of 12 columns has 33,554,432 cells and 33,554,431 parameters, and takes .* more than",
    ):
        po.classifiers.FullJointClassifier().fit(X, [0, 1] * 25)
    with caplog.at_level(logging.INFO, "posteriori"):
        po.classifiers.FullJointClassifier().fit(X[:, :3], [0, 1] * 25)
        assert caplog.messages == []
        po.classifiers.FullJointClassifier(verbose=True).fit(X[:, :3], [0, 1] * 25)
    (message,) = caplog.messages
    assert message.startswith("the full joint of 3 columns has 128 cells and 127 parameters, and takes ")
    assert capsys.readouterr() == ("", "")


def test_a_tree_of_many_categories_is_small_or_refused():
    rng = np.random.default_rng(0)
    X, y = rng.integers(0, 4000, (4000, 9)).astype(str), [0, 1] * 2000
    model = po.TreeAugmentedNaiveBayes().fit(X, y)
    assert model.statistics_.blocks[0].coarse.codes.cells.nbytes < 1e7
    few = rng.integers(0, 30, (400, 520)).astype(str)
    with pytest.raises(ValueError, match=r"the joint counts would take .* GB, more than 2.1; leave out columns"):
        po.TreeAugmentedNaiveBayes().fit(few, [0, 1, 2] * 133 + [0])


def test_a_constant_column_an_empty_one_and_an_unseen_pair():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(
        {
            "one": ["a"] * 40,
            "left": [None if k % 2 else str(k % 3) for k in range(40)],
            "right": [str(k % 5) if k % 2 else None for k in range(40)],
            "x": rng.normal(size=40),
        }
    )
    y = [k % 2 for k in range(40)]
    for model in MODELS.values():
        fitted = clone(model).fit(frame, y)
        assert_allclose(fitted.predict_proba(frame).sum(axis=1), 1.0)
    empty = frame.with_columns(pl.lit(None, pl.String).alias("nothing"))
    with pytest.warns(UserWarning, match="nothing"):
        fitted = po.TreeAugmentedNaiveBayes().fit(empty, y)
    assert_allclose(fitted.predict_proba(empty).sum(axis=1), 1.0)


def test_one_feature_and_one_class():
    frame = pl.DataFrame({"sky": ["clear", "rain", "rain", None]})
    for model in MODELS.values():
        fitted = clone(model).fit(frame, ["a", "b", "b", "a"])
        assert_allclose(fitted.predict_proba(frame).sum(axis=1), 1.0)
        alone = clone(model).fit(frame, ["a"] * 4)
        assert_allclose(alone.predict_proba(frame), 1.0)


# EM --------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def gaps(table):
    rng = np.random.default_rng(5)
    columns = ["sky", "wind", "rare"]
    holes = {name: pl.Series(rng.random(len(table)) < 0.3) for name in columns}
    return table.select(pl.when(~hole).then(name).alias(name) for name, hole in holes.items()), table["y"]


@pytest.mark.parametrize("kind", [po.TreeAugmentedNaiveBayes, po.classifiers.ChowLiuClassifier])
def test_em_never_lowers_the_likelihood_and_beats_the_pairs(kind, gaps):
    X, y = gaps
    settings = {"backoff": None, "alpha": 0.0}
    fitted = kind(missing="em", em=po.EM(tol=1e-9, max_iter=2000), **settings).fit(X, y)
    trace = fitted.log_likelihood_trace_
    assert len(trace) > 2
    assert (np.diff(trace) >= -1e-8).all()
    pairs = kind(**settings).fit(X, y)
    assert fitted.tree_ == pairs.tree_
    own = np.searchsorted(fitted.classes_, y.to_numpy())
    likelihood = [m.predict_joint_log_proba(X)[np.arange(len(y)), own].sum() for m in (pairs, fitted)]
    assert likelihood[0] < likelihood[1]
    prior = fitted.class_log_prior_[own].sum()
    assert likelihood[1] - prior == pytest.approx(trace[-1], abs=1e-3)


def test_em_without_a_gap_is_the_closed_form(table):
    X = table.select("wind", "rare")
    one, other = (po.TreeAugmentedNaiveBayes(missing=missing).fit(X, table["y"]) for missing in ("em", "pairs"))
    assert_array_equal(one.predict_joint_log_proba(X), other.predict_joint_log_proba(X))
    assert not len(one.log_likelihood_trace_)


def test_em_wants_bins_and_all_rows(gaps):
    X, y = gaps
    with pytest.raises(ValueError, match=r'missing="em" is defined for counts only; give bins'):
        po.TreeAugmentedNaiveBayes(missing="em", bins=None).fit(X, y)
    with pytest.raises(ValueError, match=r'missing="em" looks at all rows twice, and partial_fit sees each once'):
        po.TreeAugmentedNaiveBayes(missing="em").partial_fit(X, y)


def test_a_tree_learned_by_em_survives_a_file(gaps, tmp_path):
    X, y = gaps
    fitted = po.TreeAugmentedNaiveBayes(missing="em").fit(X, y)
    po.save(fitted, tmp_path / "tree.posteriori")
    assert_array_equal(po.load(tmp_path / "tree.posteriori").predict_proba(X), fitted.predict_proba(X))


@pytest.mark.parametrize("name", ["tan", "chow-liu", "kdb 1", "aode"])
def test_a_column_without_any_value_says_nothing(name, table):
    rows = table.select("sky", "wind", "y")
    with_gap = rows.with_columns(pl.lit(None, pl.String).alias("empty")).select("empty", *rows.columns)
    model, other = (clone(MODELS[name]) for _ in range(2))
    with pytest.warns(UserWarning, match="empty"):
        model.fit(with_gap, "y")
    posterior, expected = model.predict_proba(with_gap.drop("y")), other.fit(rows, "y").predict_proba(rows.drop("y"))
    if name == "aode":  # in which it has its turn as the parent of all
        assert np.isfinite(posterior).all()
    else:
        assert_allclose(posterior, expected, atol=1e-12)


def test_a_full_joint_refuses_a_column_without_any_value(table):
    rows = table.select("sky", "y").with_columns(pl.lit(None, pl.String).alias("empty"))
    with pytest.raises(ValueError, match="column 'empty' of X has no value"):
        po.classifiers.FullJointClassifier().fit(rows, "y")
