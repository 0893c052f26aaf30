"""GenerativeForest: rules that pairs of columns cannot hold, in every feature of a model and in the pool."""

import itertools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.metrics import log_loss
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.fitting.rows import read_first_rows
from posteriori.registry import find_model, pool_candidates


@pytest.fixture(scope="module")
def parity():
    """Return a rule over three columns, which is independent of each pair of them, and two columns of noise."""
    rng = np.random.default_rng(0)
    cells = rng.integers(0, 2, (600, 5))
    X = pl.DataFrame({f"x{j}": np.array(["no", "yes"])[cells[:, j]] for j in range(5)})
    return X, np.array(["even", "odd"])[cells[:, :3].sum(axis=1) % 2]


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def forest(penguins):
    return po.GenerativeForest(20).fit(penguins, "species")


def test_it_learns_a_rule_of_three_columns_that_pairs_cannot(parity):
    X, y = parity
    assert po.GenerativeForest(30).fit(X[:400], y[:400]).score(X[400:], y[400:]) > 0.95
    assert po.TreeAugmentedNaiveBayes().fit(X[:400], y[:400]).score(X[400:], y[400:]) < 0.7


def test_the_pool_weighs_forests_by_their_held_out_posteriors(parity):
    X, y = parity
    pool = po.GenerativeClassifier(folds=3).fit(X, y)
    results = dict(zip(pool.cv_results_["member"], pool.cv_results_["log_loss"], strict=True))
    assert "forest mixed" in results
    assert results["pool"] < 0.2 < 0.5 < results["tan 5"]
    assert max(pool.member_weights_, key=pool.member_weights_.get) == "forest mixed"
    explained = pool.explain(X[:5])
    assert_allclose(explained.posterior, pool.predict_proba(X[:5]), atol=1e-9)


@pytest.mark.parametrize("folds", [4, 23])
@pytest.mark.parametrize("splits", ["random", "best", "mixed"])
def test_held_out_posteriors_do_not_depend_on_the_rows_label(parity, splits, folds):
    X, y = parity
    X, y = X[:120], y[:120]
    other = y.copy()
    other[7] = "odd" if y[7] == "even" else "even"
    # Where to stop learning weights of leaves is chosen on all rows, as the strength is.
    member = po.GenerativeForest(10, splits=splits, strength=1.0, combine="geometric")
    members = {"forest": member, "nb": "nb"}
    found = [_fold_of_row(members, X, labels, 7, folds) for labels in (y, other)]
    assert_array_equal(found[0], found[1])


def _fold_of_row(members, X, y, row, folds):
    """Return the posterior of a row by the trees that did not see its fold, where folds do not depend on labels."""
    from posteriori.learning.cross_fitting import cross_fit
    from posteriori.support.threads import n_threads

    assert n_threads(1) == 1
    forest = members["forest"]
    rows = read_first_rows(forest.recipe, X, y, None)
    plan = forest.recipe.plan(rows.source.schema, rows.target)
    fold = (np.arange(len(y)) % folds).astype(np.int32)
    (fitted,) = cross_fit(rows.source, fold, folds, [plan], leave_trees_out=True)
    assert fitted.without[fold[row]].model.blocks[0].density.structure.n_trees < forest.n_trees
    return fitted.without[fold[row]].model.posterior(next(iter(rows.source.stream(lambda batch: batch))).rows([row]))


def test_an_empty_row_has_the_prior_and_unseen_cells_are_missing(forest, penguins):
    blank = penguins.head(1).with_columns(pl.lit(None, dtype).alias(name) for name, dtype in penguins.schema.items())
    assert_allclose(forest.predict_proba(blank), forest.class_prior_[np.newaxis])
    assert_allclose(forest.score_samples(blank), 0.0, atol=1e-9)
    known = penguins.head(1)
    with pytest.warns(UserWarning, match="unseen|not seen|Elsewhere|training"):
        unseen = forest.predict_proba(known.with_columns(island=pl.lit("Elsewhere")))
    assert_allclose(unseen, forest.predict_proba(known.with_columns(island=pl.lit(None, pl.String))))


def test_explanations_add_up_with_any_cells_missing(forest, penguins):
    features = penguins.drop("species")
    rows = pl.concat(
        features.head(1).with_columns(pl.lit(None, features.schema[name]).alias(name) for name in missing)
        for k in range(3)
        for missing in itertools.combinations(features.columns[:4], k)
    )
    explained = forest.explain(rows)
    assert_allclose(explained.posterior, forest.predict_proba(rows), atol=1e-9)
    assert explained.weighted
    missing = np.array([[cell is None for cell in row] for row in rows.rows()])
    assert not explained.log_factors[np.broadcast_to(missing[:, np.newaxis], explained.log_factors.shape)].any()


def test_a_prior_of_another_place_moves_the_log_odds_by_its_own(penguins, forest):
    priors = {"Adelie": 0.2, "Chinstrap": 0.3, "Gentoo": 0.5}
    moved = po.GenerativeForest(20, priors=priors).fit(penguins, "species")
    shift = np.log(list(priors.values())) - forest.class_log_prior_
    expected = forest.predict_log_proba(penguins) + shift
    expected -= np.logaddexp.reduce(expected, axis=1, keepdims=True)
    assert_allclose(moved.predict_log_proba(penguins), expected, atol=1e-9)


@pytest.mark.parametrize("options", [{}, {"splits": "best", "combine": "arithmetic"}, {"missing": "informative"}])
def test_a_saved_forest_predicts_the_same(penguins, tmp_path, options):
    model = po.GenerativeForest(5, **options).fit(penguins, "species")
    po.save(model, tmp_path / "model.posteriori")
    again = po.load(tmp_path / "model.posteriori")
    assert_array_equal(again.predict_proba(penguins), model.predict_proba(penguins))
    assert again.strength_ == model.strength_
    assert_array_equal(again.information_gain_, model.information_gain_)


def test_the_arithmetic_mean_predicts_but_does_not_explain(penguins):
    model = po.GenerativeForest(5, combine="arithmetic").fit(penguins, "species")
    assert_allclose(model.predict_proba(penguins).sum(axis=1), 1.0)
    with pytest.raises(ValueError, match='use combine="geometric" to explain'):
        model.explain(penguins.head(1))


def test_the_order_of_the_rows_threads_and_files_do_not_matter(penguins, forest, tmp_path):
    penguins.sample(fraction=1.0, shuffle=True, seed=1).write_csv(tmp_path / "rows.csv")
    scanned = po.GenerativeForest(20, n_jobs=1).fit(po.scan(tmp_path / "rows.csv", target="species"))
    assert_allclose(scanned.predict_proba(penguins), forest.predict_proba(penguins), atol=1e-9)


def test_partial_fit_adds_to_the_leaves_and_unlearn_takes_away(penguins):
    shuffled = penguins.sample(fraction=1.0, shuffle=True, seed=2)
    first, rest = shuffled[:250], shuffled[250:]
    model = po.GenerativeForest(10).partial_fit(first, "species")
    before, strength = model.predict_proba(penguins), model.strength_
    nodes = model.model_.blocks[0].density.structure.nodes
    model.partial_fit(rest, "species")
    assert model.model_.blocks[0].density.structure.nodes is nodes
    assert model.strength_ == strength
    assert_array_equal(model.class_count_, po.NaiveBayes().fit(penguins, "species").class_count_)
    assert np.abs(model.predict_proba(penguins) - before).max() > 1e-3
    model.unlearn(rest, "species")
    assert_allclose(model.predict_proba(penguins), before, atol=1e-9)


def test_a_new_category_and_a_new_class_extend_the_forest():
    X, y = [["a", 1.0], ["b", 2.0], ["a", 3.0], ["b", 4.0]] * 10, ["u", "v", "u", "v"] * 10
    model = po.GenerativeForest(10).partial_fit(X, y)
    model.partial_fit([["c", 1.0]] * 5, ["w"] * 5)
    assert list(model.classes_) == ["u", "v", "w"]
    assert model.predict([["a", 1.0]]) == "u"
    assert model.predict_proba([["c", 1.0]])[0, 2] > 0.03


def test_leaf_weights_help_new_rows_and_stay_when_rows_are_added(tmp_path):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(900, 4))
    y = np.where(np.sin(3 * X[:, 0]) + X[:, 1] > 0, "v", "u")
    train, new = slice(0, 400), slice(400, None)
    counted = po.GenerativeForest(combine="geometric").fit(X[train], y[train])
    model = po.GenerativeForest().fit(X[train], y[train])
    losses = [log_loss(y[new], one.predict_proba(X[new])) for one in (counted, model)]
    assert losses[1] < 0.9 * losses[0]
    change = model.model_.blocks[0].density.structure.change
    assert change.shape == (model.n_leaves_, 2)
    po.save(model, tmp_path / "forest.posteriori")
    loaded = po.load(tmp_path / "forest.posteriori")
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    loaded.partial_fit(X[:2] + 1.0, ["w", "w"])  # the new class is the third
    assert_array_equal(loaded.model_.blocks[0].density.structure.change, np.column_stack([change, 0 * change[:, 0]]))
    earlier = loaded.partial_fit(X[:2] - 1.0, ["a", "a"])
    assert_array_equal(earlier.model_.blocks[0].density.structure.change[:, 1:3], change)
    merged = po.merge([model, model])
    assert_array_equal(merged.model_.blocks[0].density.structure.change, change)
    assert_allclose(merged.explain(X[:3]).posterior, merged.predict_proba(X[:3]), atol=1e-9)


def test_where_counts_predict_best_they_are_kept():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 3)), rng.integers(0, 2, 200)
    model = po.GenerativeForest(20).fit(X, y)
    counted = po.GenerativeForest(20, combine="geometric").fit(X, y)
    assert not len(model.model_.blocks[0].density.structure.change)
    assert_allclose(model.predict_proba(X), counted.predict_proba(X), atol=1e-6)


def test_forests_of_the_same_trees_are_merged_and_others_refused(parity):
    X, y = parity
    first = po.GenerativeForest(5).fit(X[:200], y[:200])
    other = po.GenerativeForest(5).fit(X[200:400], y[200:400])
    with pytest.raises(ValueError, match="the trees of model 1 are not those of model 0"):
        po.merge([first, other])
    twice = po.merge([first, first])
    assert_array_equal(twice.statistics_.blocks[0].leaves, 2 * first.statistics_.blocks[0].leaves)


def test_information_gain_finds_the_columns_of_the_rule(parity):
    X, y = parity
    gain = po.GenerativeForest(30, splits="best").fit(X, y).information_gain_
    assert gain[:3].min() > 2 * gain[3:].max()
    assert 0.3 < gain.sum() <= np.log(2) + 1e-9


def test_drawn_rows_keep_the_rule(parity):
    X, y = parity
    drawn, labels = po.GenerativeForest(30).fit(X, y).sample(500, random_state=0)
    odd = drawn.select(pl.sum_horizontal(pl.col(f"x{j}") == "yes" for j in range(3))).to_series().to_numpy() % 2
    assert ((labels == "odd") == odd).mean() > 0.75


def test_weights_count_as_repetitions_in_the_leaves(parity):
    X, y = parity
    weight = np.random.default_rng(0).integers(1, 4, len(y))
    model = po.GenerativeForest(5, strength=1.0).fit(X, y, sample_weight=weight)
    assert_array_equal(model.class_count_, np.bincount((y == "odd").astype(int), weight))
    assert_allclose(model.statistics_.blocks[0].leaves.sum(), 5 * weight.sum())


def test_a_constant_column_or_a_single_class_gives_the_prior():
    model = po.GenerativeForest(3).fit([["a"], ["a"], ["a"]], ["u", "u", "v"])
    assert_allclose(model.predict_proba([["a"]]), [[2 / 3, 1 / 3]])
    assert po.GenerativeForest(3).fit([[1.0], [2.0]], ["u", "u"]).predict([[5.0]]) == "u"


def test_the_registry_names_both_kinds_of_forest():
    assert find_model("forest").estimator_class is po.GenerativeForest
    assert not find_model("random forest").generative
    assert "forest mixed" in pool_candidates()


@parametrize_with_checks(
    [po.GenerativeForest(5)],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": "one row of weight 2 is in one fold, two rows may be in two",
    },
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("combine", ["conditional", "geometric"])
def test_informative_gaps_are_evidence_beside_the_trees(combine):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 600)
    X = rng.normal(size=(600, 2))
    X[rng.random(600) < np.where(y, 0.5, 0.05), 0] = np.nan
    plain, informed = (
        po.GenerativeForest(n_trees=10, combine=combine, missing=missing).fit(X[:300], y[:300])
        for missing in ("at_random", "informative")
    )
    gap = np.isnan(X[300:, 0])
    missing = po.NaiveBayes(missing="informative").fit(X[:300], y[:300]).model_
    (indicators,) = (p for b, p in zip(missing.blocks, missing.parameters, strict=True) if b.models_missingness)
    evidence = np.where(gap[:, np.newaxis], indicators.log_missing[:, 0], indicators.log_present[:, 0])
    evidence = evidence + indicators.log_present[:, 1]
    scores = plain.predict_log_proba(X[300:]) + evidence
    expected = scores - np.logaddexp.reduce(scores, axis=1, keepdims=True)
    assert_allclose(informed.predict_log_proba(X[300:]), expected, atol=1e-9)
    assert informed.score(X[300:], y[300:]) > plain.score(X[300:], y[300:]) + 0.1
