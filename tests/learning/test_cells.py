"""Learned tables of naive Bayes: the problem that is solved, and what it changes."""

from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import approx_fprime
from scipy.sparse import csr_array
from scipy.special import log_softmax, softmax
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.kernels.loops.cells import CellRows
from posteriori.learning import cells as learning
from posteriori.learning import learned_tables
from posteriori.learning.cells import CellProblem, CellTables, fit_cells
from posteriori.model_selection import out_of_fold

REASONS = {
    "check_fit_score_takes_y": "tables take all rows at once, and it calls partial_fit",
    "check_estimators_partial_fit_n_features": "tables take all rows at once",
    "check_n_features_in_after_fitting": "tables take all rows at once, and it calls partial_fit",
}
MODEL = po.NaiveBayes(distributions="binned", bins=8, feature_weights="cells")


@parametrize_with_checks([MODEL], expected_failed_checks=lambda _: REASONS)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def draw_rows(seed, n=60, n_classes=3, sizes=(4, 3)):
    """Return rows of columns of categories, some of whose cells are missing, the cells, and a class prior in nats."""
    rng = np.random.default_rng(seed)
    y_true = rng.integers(0, n_classes, n)
    codes = np.column_stack([(rng.integers(0, 2, n) + y_true) % size + 1 for size in sizes])
    codes[rng.random(codes.shape) < 0.1] = 0
    starts = np.cumsum([0, *[size + 1 for size in sizes]])
    is_missing = np.zeros(starts[-1], bool)
    is_missing[starts[:-1]] = True
    column = np.repeat(np.arange(len(sizes)), np.diff(starts))
    known = np.where(is_missing[:, np.newaxis], 0.0, rng.normal(size=(len(column), n_classes)))
    basis = csr_array(np.diag(~is_missing).astype(float))
    own = rng.normal(size=codes.shape) * (codes > 0)
    weight = rng.choice([0.5, 1.0, 3.0], n)
    rows = CellRows((codes + starts[:-1]).astype(np.int32), y_true, weight, own)
    return rows, CellTables(basis, column, is_missing, known), np.log(rng.dirichlet(np.ones(n_classes) * 5))


def indicators(rows, tables):
    """Return which cells each row shows, (n, S); a missing one counts as none."""
    shown = np.zeros((len(rows.slots), len(tables.column)))
    np.put_along_axis(shown, rows.slots, 1.0, axis=1)
    return shown * ~tables.is_missing


@given(st.integers(0, 10**6), st.sampled_from([0.0, 1.0, 30.0]), st.booleans(), st.integers(2, 4))
def test_the_gradient_is_that_of_the_loss(seed, penalty, weighed, n_classes):
    rows, tables, log_prior = draw_rows(seed, n_classes=n_classes, sizes=(4, 3, 2, 2, 5))
    rng = np.random.default_rng(seed)
    basis = csr_array(rng.normal(size=(len(tables.column), 5)) * ~tables.is_missing[:, np.newaxis])
    tables = replace(tables, basis=basis, weighed=weighed)
    problem = CellProblem(rows, tables, log_prior, penalty)
    position = rng.normal(size=n_classes + tables.n_weights + 5 * n_classes)
    assert_allclose(problem(position)[1], approx_fprime(position, lambda x: problem(x)[0], 1e-6), atol=2e-5)
    bias, weight, eta = problem.parts(position)
    shown = indicators(rows, tables)
    scores = log_prior + shown @ (basis @ eta) + np.outer(shown.sum(axis=1) / 5, bias)
    if weighed:
        factors = tables.log_probability[rows.slots].swapaxes(1, 2)
        factors[np.arange(60), rows.component] += rows.own
        scores += factors @ weight
    losses = -log_softmax(scores, axis=1)[np.arange(60), rows.component]
    assert_allclose(problem.log_loss(position), rows.weight @ losses)
    common = np.linspace(-5, 5, 100_001)
    apart = (5.0 * ((weight[:, np.newaxis] - common) ** 2).sum(axis=0) + 0.05 * (common - 1.0) ** 2).min()
    total = rows.weight @ losses + 0.5 * penalty * (eta**2).sum() + 0.05 * (bias**2).sum() + apart
    assert_allclose(problem(position)[0], total / rows.weight.sum(), rtol=1e-6)


def test_without_factors_it_is_scikit_learns_logistic_regression():
    rows, tables, _ = draw_rows(0, n=300)
    shown = indicators(rows, tables)
    # The bias of a class is a number of each shown cell, whose prior is a Gaussian as that of the others.
    bias = shown.sum(axis=1, keepdims=True) / 2 * np.sqrt(2.0 / learning._WEAK)
    columns = np.concatenate([shown, bias], axis=1)
    expected = LogisticRegression(C=0.5, tol=1e-8, max_iter=5000, fit_intercept=False)
    # scikit-learn has no offset, so the prior is that of equal classes.
    found = fit_cells(rows, replace(tables, weighed=False), np.log(np.full(3, 1 / 3)), 2.0)
    expected.fit(columns, rows.component, rows.weight)
    scores = shown @ found.delta + np.outer(shown.sum(axis=1) / 2, found.bias)
    assert_allclose(softmax(scores, axis=1), expected.predict_proba(columns), atol=1e-3)


def test_a_strong_penalty_leaves_the_weighted_factors():
    rows, tables, log_prior = draw_rows(1, n=300)
    found = fit_cells(rows, tables, log_prior, 1e9)
    assert_allclose(found.delta, 0.0, atol=1e-6)
    assert (found.weight >= 0).all()
    free = fit_cells(rows, tables, log_prior, 1.0)
    assert np.abs(free.delta).max() > 0.1


def test_held_out_rows_choose_the_penalty():
    rng = np.random.default_rng(2)
    y_true, log_prior = rng.integers(0, 2, 400), np.log([0.5, 0.5])
    noise, strong = rng.integers(1, 41, 400), y_true * 20 + rng.integers(1, 21, 400)
    is_missing = np.arange(41) == 0
    basis, known = csr_array(np.diag(~is_missing).astype(float)), np.zeros((41, 2))
    tables = CellTables(basis, np.zeros(41, np.int64), ~is_missing, known)
    own, one = rng.normal(size=(400, 1)), np.ones(400)
    choices = [
        fit_cells(CellRows(cells[:, np.newaxis].astype(np.int32), y_true, one, own), tables, log_prior)
        for cells in (noise, strong)
    ]
    assert choices[0].penalty > choices[1].penalty
    assert {one.penalty for one in choices} <= set(learning.PENALTIES)


def test_tables_have_the_posteriors_that_were_learned():
    penguins = load_penguins()
    model = MODEL.fit(penguins, "species")
    model.model_.check()
    weights = model.model_.weights
    assert_array_equal(model.feature_weights_, 1.0)
    explanation = model.explain(penguins)
    scores = explanation.log_factors.sum(axis=2) + model.class_bias_
    assert_allclose(softmax(scores, axis=1), model.predict_proba(penguins), atol=1e-9)
    nothing = model.predict_proba(penguins.drop("species").clear(1))
    assert_allclose(nothing[0], model.class_prior_, atol=1e-9)
    tables = weights.parameters[0]
    for j in range(len(tables.cardinalities)):
        assert np.exp(tables.column(j)).sum(axis=1).max() == pytest.approx(1.0)


def test_the_generative_model_stays():
    penguins = load_penguins()
    model = MODEL.fit(penguins, "species")
    plain = po.NaiveBayes(distributions="binned", bins=8).fit(penguins, "species")
    assert_allclose(model.predict_joint_log_proba(penguins), plain.predict_joint_log_proba(penguins))
    assert_allclose(model.score_samples(penguins), plain.score_samples(penguins))
    for mine, other in zip(model.feature_log_prob_, plain.feature_log_prob_, strict=True):
        assert_array_equal(mine, other)
    assert np.abs(model.predict_proba(penguins) - plain.predict_proba(penguins)).max() > 0.01


def test_redundant_columns_count_once():
    rng = np.random.default_rng(0)
    y = np.tile(["a", "b"], 500)
    x = np.where(rng.random(1000) < 0.2, np.where(y == "a", "b", "a"), y)
    frame = pl.DataFrame({f"x{j}": x for j in range(10)})
    posterior = MODEL.fit(frame, y).predict_proba(frame)
    assert_allclose(posterior.max(axis=1), 0.8, atol=0.03)


def test_neighbouring_bins_are_smooth():
    rng = np.random.default_rng(0)
    x = rng.normal(size=2000)
    y = (rng.random(2000) < 1 / (1 + np.exp(-1.5 * x))).astype(str)
    grid = np.linspace(-2, 2, 200)[:, np.newaxis]
    expected = 1 / (1 + np.exp(-1.5 * grid[:, 0]))
    learned, counted = (
        po.NaiveBayes(distributions="binned", bins=64, feature_weights=weights).fit(x[:, np.newaxis], y)
        for weights in ("cells", None)
    )
    errors = [np.abs(model.predict_proba(grid)[:, 1] - expected).mean() for model in (learned, counted)]
    assert errors[0] < 0.03 < errors[1]


@pytest.mark.parametrize("labels", [["a"], ["a", "a"], ["a", "b"], ["a", "b", "b", "a"]])
def test_few_rows(labels):
    frame = pl.DataFrame({"x": np.arange(float(len(labels))), "k": ["u"] * len(labels)})
    posterior = MODEL.fit(frame, labels).predict_proba(frame)
    assert_allclose(posterior.sum(axis=1), 1.0)


@pytest.mark.parametrize(("n", "weight"), [(3, 0.3), (7, 1e-3), (200, 1e-12), (200, 0.01), (200, 0.029)])
def test_rows_of_little_weight_say_little(n, weight, recwarn):
    place = np.arange(n)
    table = pl.DataFrame({"a": place % 7.0, "b": place % 5.0, "y": np.where(place % 3 == 1, "yes", "no")})
    model = po.NaiveBayes(distributions="binned", bins="fine", feature_weights="cells")
    model.fit(table, "y", sample_weight=np.full(n, weight))
    assert_allclose(model.predict_proba(table.drop("y")).sum(axis=1), 1.0)
    assert not [one for one in recwarn if issubclass(one.category, RuntimeWarning)]


def test_columns_without_values_and_classes_without_rows():
    frame = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "empty": pl.Series([None] * 4, dtype=pl.String)})
    with pytest.warns(UserWarning, match="empty"):
        model = MODEL.fit(frame, ["a", "b", "a", "b"])
    assert np.isfinite(model.predict_log_proba(frame)).all()
    model = po.NaiveBayes(distributions="binned", feature_weights="cells", priors={"a": 1.0, "b": 0.0})
    posterior = model.fit(frame.select("x"), ["a", "b", "a", "b"]).predict_proba(frame.select("x"))
    assert_allclose(posterior[:, 0], 1.0)


def test_orders_and_names_change_nothing():
    penguins = load_penguins().drop_nulls("species").head(200).drop("year")
    plain = MODEL.fit(penguins, "species").predict_proba(penguins)
    names = {"Adelie": "z", "Chinstrap": "y", "Gentoo": "x"}
    order = np.random.default_rng(0).permutation(penguins.height)
    other = penguins[order].select(reversed(penguins.columns)).with_columns(pl.col("species").replace(names))
    again = MODEL.fit(other, "species").predict_proba(other)
    columns = [names[label] for label in sorted(set(penguins["species"]))]
    assert_allclose(again[:, np.argsort(np.argsort(columns))], plain[order], atol=1e-4)


@given(st.integers(0, 10**6))
def test_a_row_of_weight_two_is_held_out_as_two_rows(seed):
    rows, tables, _ = draw_rows(seed)
    weight = np.random.default_rng(seed).integers(1, 4, 60)
    repeated = np.repeat(np.arange(60), weight)
    share = learning.held_out_share(rows._replace(weight=weight.astype(float)), tables)
    once = CellRows(rows.slots[repeated], rows.component[repeated], np.ones(len(repeated)), rows.own[repeated])
    assert_allclose(learning.held_out_share(once, tables), share[repeated], atol=1e-9)
    assert abs(weight @ share - weight.sum() / 3) <= 1.0


def test_a_file_keeps_the_tables(tmp_path):
    penguins = load_penguins()
    model = MODEL.fit(penguins, "species")
    po.save(model, tmp_path / "model.posteriori")
    again = po.load(tmp_path / "model.posteriori")
    assert_array_equal(again.predict_proba(penguins), model.predict_proba(penguins))
    assert again.model_.weights.penalty == model.model_.weights.penalty in learning.PENALTIES


def test_the_tables_of_a_fold_are_learned_without_it():
    penguins = load_penguins().drop_nulls("species")
    found = out_of_fold(MODEL, penguins, "species", folds=3)
    for k in range(3):
        alone = clone(MODEL).fit(penguins.filter(found.fold != k), "species")
        held_out = penguins.filter(found.fold == k)
        assert_allclose(found.posterior[found.fold == k], alone.predict_proba(held_out), atol=1e-6)


def test_of_many_rows_only_the_penalty_of_a_fold_is_that_of_all(monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 3600)
    columns = {f"x{j}": rng.normal(0.3 * y, 1.0) for j in range(3)}
    rows = pl.DataFrame(columns | {"y": y.astype(str)})
    found = out_of_fold(MODEL, rows, "y", folds=3)
    chosen = clone(MODEL).fit(rows, "y").model_.weights
    learn = learned_tables.learn_cells
    monkeypatch.setattr(learned_tables, "learn_cells", lambda *given: learn(*given[:5], chosen))
    for k in range(3):
        alone = clone(MODEL).fit(rows.filter(found.fold != k), "y")
        assert alone.model_.weights.penalty == chosen.penalty
        held_out = rows.filter(found.fold == k)
        assert_allclose(found.posterior[found.fold == k], alone.predict_proba(held_out), atol=1e-6)


def test_what_it_cannot_do_is_refused():
    penguins = load_penguins()
    model = po.NaiveBayes(feature_weights="cells")
    with pytest.raises(ValueError, match="distribution 'gaussian'; set distributions=\"binned\""):
        model.fit(penguins, "species")
    with pytest.raises(ValueError, match="missing cell"):
        po.NaiveBayes(distributions="binned", feature_weights="cells", missing="informative").fit(penguins, "species")
    fitted = MODEL.fit(penguins, "species")
    for update in (fitted.partial_fit, fitted.unlearn):
        with pytest.raises(ValueError, match='feature_weights="cells" takes all rows at once'):
            update(penguins, "species")
    with pytest.raises(ValueError, match="cross_validate"):
        po.model_selection.leave_one_out(fitted, penguins, "species")
    with pytest.raises(ValueError, match="'feature_weights' parameter of KDependenceBayes"):
        po.KDependenceBayes(feature_weights="cells").fit(penguins, "species")


def test_the_pool_drops_it_when_rows_follow():
    rng = np.random.default_rng(0)
    y = rng.choice(["a", "b"], 300)
    frame = pl.DataFrame({f"x{j}": np.where(rng.random(300) < 0.3, y, rng.choice(["a", "b"], 300)) for j in range(4)})
    model = po.GenerativeClassifier(["cells", "aode"], penalty=1000.0).fit(frame, y)
    with pytest.warns(UserWarning, match="'cells' leaves the pool: feature_weights=\"cells\" learns its tables"):
        model.partial_fit(frame, y)
    assert set(model.members_) == {"aode"}


def test_a_pool_whose_columns_have_another_density_omits_it():
    penguins = load_penguins()
    model = po.GenerativeClassifier(distributions={"body_mass_g": "gaussian"}).fit(penguins, "species")
    assert "body_mass_g" in model.skipped_["cells"]
