"""Forests are fitted to all rows only where a trial shows that the pool gains by them."""

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.densities.tree_growing import trees_for
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.pool import trials


def parity(n, seed, noise=0.0):
    """Rows of seven binary columns; the class is the parity of three of them."""
    rng = np.random.default_rng(seed)
    X = rng.integers(2, size=(n, 7))
    y = X[:, 1] ^ X[:, 3] ^ X[:, 4]
    return X.astype(str).astype(object), y ^ (rng.random(n) < noise)


def independent(n, seed):
    """Rows of columns that are independent given the class, the model of naive Bayes."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    X = (rng.random((n, 6)) < np.where(y[:, np.newaxis] == 1, 0.65, 0.35)).astype(int)
    return X.astype(str).astype(object), y


def test_a_rule_over_three_columns_keeps_forests():
    X, y = parity(1200, 0)
    model = po.GenerativeClassifier().fit(X, y)
    assert "forest mixed" in model.members_
    X_new, y_new = parity(500, 1)
    log_p = model.predict_log_proba(X_new)
    assert -log_p[np.arange(500), y_new].mean() < 0.02


def test_a_trial_spares_the_forest_if_columns_are_independent():
    model = po.GenerativeClassifier().fit(*independent(1500, 0))
    assert "forest mixed" not in model.cv_results_["member"]
    assert "in a trial with 20 trees on 1,125 rows" in model.skipped_["forest mixed"]
    assert "log-loss of the pool, 0." in model.skipped_["forest mixed"]


def test_a_forest_is_not_left_out_on_few_rows():
    model = po.GenerativeClassifier().fit(*independent(300, 0))
    assert "forest mixed" in model.cv_results_["member"]
    assert "forest mixed" not in model.skipped_


def test_forests_that_are_named_are_not_tried():
    model = po.GenerativeClassifier(["nb", "forest"]).fit(*independent(1000, 0))
    assert model.cv_results_["member"] == ["nb", "forest", "pool"]


def test_the_order_of_the_candidates_is_that_of_the_registry():
    X, y = parity(600, 0)
    names = po.GenerativeClassifier().fit(X, y).cv_results_["member"]
    assert names == [name for name in po.registry.pool_candidates() if name in names] + ["pool"]


@pytest.fixture
def parts(monkeypatch):
    """The small fits of trials: the rows, the rows that were judged, and the trees of each model."""
    tried = []

    def recorded(recipes, folded):
        tried.append((folded.n_labelled, len(folded.evaluated), [one.parameters["n_trees"] for one in recipes]))
        return held_out(recipes, folded)

    held_out = trials._held_out
    monkeypatch.setattr(trials, "_held_out", recorded)
    return tried


@pytest.mark.parametrize(("rule", "kept"), [(parity, True), (independent, False)])
def test_a_large_table_is_tried_on_growing_parts_of_its_rows(monkeypatch, parts, rule, kept):
    monkeypatch.setattr(trials, "_MOST_TRIED", 700)
    monkeypatch.setattr(trials, "_LEAST_GAIN_OF_MANY", 0.05)  # far above chance, far below a rule
    model = po.GenerativeClassifier().fit(*rule(3000, 0))
    assert ("forest mixed" in model.cv_results_["member"]) == kept
    learned = [n - judged for n, judged, _ in parts]
    assert learned == [393, 787, 1575][: len(parts)]  # of the rows that are not kept for the residual trees
    assert len(parts) == (1 if kept else 2)
    if not kept:
        reason = model.skipped_["forest mixed"]
        assert "in a trial with 10 trees on 787 rows" in reason
        assert "it takes 5.0%, and 2,625 rows would give about " in reason


def rare_rule(n, seed):
    """Rows of three columns; each of their 1,000 combinations has its class, which takes many rows."""
    rng = np.random.default_rng(seed)
    X = rng.integers(10, size=(n, 3))
    y = np.random.default_rng(0).integers(2, size=(10, 10, 10))[tuple(X.T)] ^ (rng.random(n) < 0.1)
    return X.astype(str).astype(object), y


def test_a_trial_on_a_part_finds_a_gain_that_needs_many_rows(parts):
    n = 12_000
    model = po.GenerativeClassifier().fit(*rare_rule(n, 1))
    assert "forest mixed" in model.members_
    assert len(parts) > 1
    assert all(trees == [10] for *_, trees in parts)  # the other candidates are not fitted again
    assert sum(10 * (rows - judged) for rows, judged, _ in parts) <= 0.15 * n * trees_for(n, "mixed")
    X_new, y_new = rare_rule(3000, 2)
    others = po.GenerativeClassifier([name for name in model.members_ if name != "forest mixed"])
    found, without = (
        -one.predict_log_proba(X_new)[np.arange(3000), y_new].mean() for one in (model, others.fit(*rare_rule(n, 1)))
    )
    assert found < 0.996 * without


def test_a_forest_is_not_judged_by_the_groups_it_learns_from(monkeypatch):
    monkeypatch.setattr(trials, "_MOST_TRIED", 700)
    X, y = independent(3000, 0)
    for n_groups, folds in ((2, 2), (3, 3), (40, 5)):
        groups = np.arange(3000) % n_groups
        nb = po.NaiveBayes()
        folded = FoldedData.of(read_first_rows(nb.recipe, X, y), folds, groups=groups)
        judged, learned = trials._parts(folded)
        assert len(judged) >= 500
        assert not np.intersect1d(groups[judged], groups[learned]).size
        model = po.GenerativeClassifier(folds=folds).fit(X, y, groups=groups)
        assert "forest mixed" in [*model.skipped_, *model.cv_results_["member"]]


def test_few_groups_are_tried_whole():
    X, y = independent(1000, 0)
    model = po.GenerativeClassifier(folds=2).fit(X, y, groups=np.arange(1000) % 2)
    assert "in a trial with 20 trees on 1,000 rows" in model.skipped_["forest mixed"]


def test_a_part_of_the_rows_predicts_as_the_learned_rows_do():
    X, y = independent(600, 0)
    nb = po.NaiveBayes()
    folded = FoldedData.of(read_first_rows(nb.recipe, X, y), 5)
    judged, learned = np.arange(0, 600, 3), np.arange(1, 600, 3)
    part = folded.part(judged, learned)
    found = judge_and_sample([nb.recipe.plan(part.source.schema, part.target)], part)[0]
    expected = po.NaiveBayes().fit(X[learned], y[learned]).predict_log_proba(X[judged])
    assert_allclose(found[:, :, 0], expected)


def test_a_sample_keeps_cells_labels_weights_and_folds():
    rng = np.random.default_rng(0)
    numbers, y = rng.normal(size=(400, 3)), rng.integers(3, size=400)
    numbers[rng.random((400, 3)) < 0.1] = np.nan
    weight = rng.integers(1, 4, size=400).astype(float)
    nb = po.NaiveBayes()
    rows = read_first_rows(nb.recipe, numbers, y, weight)
    folded = FoldedData.of(rows, 4)
    sample = folded.sample(90)
    chosen = sample_positions = np.flatnonzero(np.isin(np.arange(400), _positions(folded, 90)))
    assert_allclose(sample.weight, weight[chosen])
    assert (sample.y_true == y[chosen]).all()
    assert (sample.fold == folded.fold[sample_positions]).all()
    plan = nb.recipe.plan(sample.source.schema, sample.target)
    direct = FoldedData.of(read_first_rows(nb.recipe, numbers[chosen], y[chosen], weight[chosen]), sample.fold)
    expected = judge_and_sample([plan], direct)[0]
    assert_allclose(judge_and_sample([plan], sample)[0], expected)


def _positions(folded, most):
    from posteriori.learning.folds import stratified_subsample

    return folded.evaluated[stratified_subsample(folded.y_true, most)]


def test_a_pool_does_not_depend_on_threads(monkeypatch):
    for module in ("learning.cross_fitting", "pool.partial_rows"):
        monkeypatch.setattr(f"posteriori.{module}._ENOUGH_FACTORS", 0)
    monkeypatch.setattr("posteriori.densities.tree_growing.CELLS_PER_THREAD", 1)
    X, y = po.datasets.load_penguins().drop("species"), po.datasets.load_penguins()["species"]
    members = ["cells", "kdb weighted", "forest mixed"]
    one, two = (po.GenerativeClassifier(members, n_jobs=n).fit(X, y) for n in (1, 2))
    assert one.fitted_.weights == two.fitted_.weights
    assert one.fitted_.partial_weights == two.fitted_.partial_weights
    assert (one.predict_proba(X) == two.predict_proba(X)).all()


def test_a_known_fit_to_all_rows_changes_no_held_out_prediction():
    X, y = po.datasets.load_penguins().drop("species"), po.datasets.load_penguins()["species"]
    models = [po.GenerativeForest(10, random_state=0), po.GaussianDiscriminant(), po.KDependenceBayes()]
    folded = FoldedData.of(read_first_rows(models[0].recipe, X, y), 5)
    plans = [one.recipe.plan(folded.source.schema, folded.target) for one in models]
    fitted = judge_and_sample(plans, folded, leave_trees_out=True)[1]
    other = folded.dealt(5, 1)
    found, again, _ = judge_and_sample(plans, other, leave_trees_out=True, known=[one.full for one in fitted])
    assert_allclose(found, judge_and_sample(plans, other, leave_trees_out=True)[0], rtol=0, atol=1e-9)
    assert [one.full.model for one in again[1:]] == [one.full.model for one in fitted[1:]]
