"""Work is estimated before it begins: what takes long is announced, and what exceeds the memory is refused."""

import itertools
import time

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori import model_cost
from posteriori.datasets import load_penguins
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.fit import Collect
from posteriori.learning.work_bounds import (
    WorkCounts,
    affordable_folds,
    estimate_work,
    n_incomplete,
    reasons_against_plans,
    total_work,
    work_of_em,
)
from posteriori.model import GenerativeModel
from posteriori.model_cost import Work
from posteriori.model_selection import out_of_fold
from posteriori.networks.learning.constraint_based import EdgeConstraints, find_skeleton
from posteriori.registry import find_model

NAMES = ("nb", "binned weighted", "cells", "lda", "qda", "tan", "chow-liu", "kdb", "aode", "aode 8 bins", "forest")


def planned(name, d=6, n_classes=3, n=60):
    """Return the plan of a model and the schema of a table of d columns."""
    model = find_model(name).make()
    rng = np.random.default_rng(0)
    rows = read_first_rows(model.recipe, rng.normal(size=(n, d)), np.arange(n) % n_classes, None)
    return model.recipe.plan(rows.source.schema, rows.target), rows.source.schema


@pytest.mark.parametrize("name", NAMES)
def test_work_rises_with_each_count(name):
    plan, schema = planned(name)
    works = {}
    for n, n_classes, folds in itertools.product((100, 1000), (3, 30), (2, 20)):
        works[n, n_classes, folds] = estimate_work(plan, schema, WorkCounts(n, n, n_classes, folds))
    for one, other in itertools.product(works, works):
        if all(a <= b for a, b in zip(one, other, strict=True)):
            assert works[one].seconds <= works[other].seconds
            assert works[one].n_bytes <= works[other].n_bytes
    more = [estimate_work(*planned(name, d=d), WorkCounts(1000, 1000, 3, 5)) for d in (6, 12, 24)]
    assert more[0].seconds < more[1].seconds < more[2].seconds


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("count", ["n_classes", "folds"])
def test_work_is_at_most_linear_in_classes_and_folds(name, count):
    plan, schema = planned(name)
    known = {"n_rows": 2000, "n_evaluated": 2000, "n_classes": 3, "folds": 5}
    base = estimate_work(plan, schema, WorkCounts(**known))
    ten = estimate_work(plan, schema, WorkCounts(**known | {count: 10 * known[count]}))
    assert ten.seconds <= 10.001 * base.seconds
    assert ten.n_bytes <= 10.001 * base.n_bytes


@pytest.mark.parametrize(("n", "d", "n_classes"), [(1500, 20, 300), (1000, 100, 3), (5000, 20, 3)])
def test_the_estimated_seconds_of_cells_have_the_right_size(n, d, n_classes, monkeypatch):
    """The least CPU time of three calls, so that other processes count little; a factor of 5 is for other machines."""
    rng = np.random.default_rng(0)
    y = np.arange(n) % n_classes
    X = rng.normal(size=(n, d)) + rng.normal(size=(n_classes, d))[y]
    model = find_model("cells").make(n_jobs=1)
    seen = []
    monkeypatch.setattr(Work, "announce", lambda work, *_: seen.append(work.seconds))
    for call in (lambda: model.fit(X, y), lambda: out_of_fold(model, X, y, folds=3)):
        call()  # compiles
        took = []
        for _ in range(3):
            seen.clear()
            begun = time.process_time()
            call()
            took.append(time.process_time() - begun)
        assert 1 / 5 < sum(seen) / min(took) < 5


def test_the_number_of_folds_that_is_affordable_is_the_largest(monkeypatch):
    monkeypatch.setenv("POSTERIORI_MAX_GB", "0.01")
    plan, schema = planned("aode")
    counts = WorkCounts(10_000, 10_000, 3, 50_000)
    most = affordable_folds([plan], schema, counts)
    assert 2 <= most < 50_000

    def reason(folds):
        return total_work([plan], schema, WorkCounts(10_000, 10_000, 3, folds)).reason_too_much()

    assert reason(most) is None
    assert reason(most + 1) is not None
    monkeypatch.setenv("POSTERIORI_MAX_GB", "1e-9")
    assert affordable_folds([plan], schema, counts) == 0


def test_the_plan_of_the_most_memory_is_left_out_first(monkeypatch):
    plans = {name: planned(name)[0] for name in ("nb", "aode", "tan")}
    schema, counts = planned("nb")[1], WorkCounts(1_000_000, 1_000_000, 30, 50)
    monkeypatch.setenv("POSTERIORI_MAX_GB", "inf")
    assert reasons_against_plans(plans, schema, counts) == {}
    works = {name: estimate_work(plan, schema, counts).n_bytes for name, plan in plans.items()}
    monkeypatch.setenv("POSTERIORI_MAX_GB", str(works["nb"] / 1e9 * 1.01))
    assert set(reasons_against_plans(plans, schema, counts)) == {"aode", "tan"}
    monkeypatch.setenv("POSTERIORI_MAX_GB", "1e-9")
    assert set(reasons_against_plans(plans, schema, counts)) == {"aode", "tan"}  # one stays, and its fit says why not


def test_a_limit_that_is_no_number_is_named(monkeypatch):
    monkeypatch.setenv("POSTERIORI_MAX_GB", "ten")
    with pytest.raises(ValueError, match=r"POSTERIORI_MAX_GB is 'ten'.*give a number above 0"):
        Work(1.0).reason_too_much()
    monkeypatch.setenv("POSTERIORI_MAX_GB", "inf")
    assert Work(1e12, 1e15).reason_too_much() is None


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(121.0, "2 minutes"), (3600.0, "60 minutes"), (3 * 3600.0, "3 hours"), (1e6, "12 days")],
)
def test_long_work_is_announced_and_no_time_is_refused(seconds, said):
    with pytest.warns(UserWarning, match=f"^the fit takes about {said} on one core; to make it shorter, wait$") as seen:
        Work(seconds).announce("the fit", "wait")
    assert seen[0].filename == __file__


def test_short_work_is_not_announced():
    Work(119.0).announce("the fit", "wait")  # a warning is an error here


@pytest.fixture
def all_is_long(monkeypatch):
    """Announce all work."""
    monkeypatch.setattr(model_cost, "LONG_SECONDS", 0.0)


@pytest.mark.parametrize("name", ["tan", "chow-liu", "kdb", "aode"])
def test_pairs_of_too_many_columns_are_refused_before_counting(name, monkeypatch):
    from posteriori.statistics.counts import CountTogether

    monkeypatch.setenv("POSTERIORI_MAX_GB", "2")
    monkeypatch.setattr(CountTogether, "of", None)
    X = np.zeros((4, 2000)) + np.arange(4)[:, np.newaxis]
    model = find_model(name).make()
    for fit in (model.fit, lambda X, y: out_of_fold(model, X, y, folds=2)):
        with pytest.raises(ValueError, match=r"is not begun: it would take about .* GB of memory \(limit 2.0\); set"):
            fit(X, [0, 1, 0, 1])


def test_folds_beyond_memory_are_refused_with_a_possible_number(monkeypatch):
    monkeypatch.setenv("POSTERIORI_MAX_GB", "0.0001")
    X, y = load_penguins().drop("species"), load_penguins()["species"]
    with pytest.raises(ValueError, match=r"with 300 folds is not begun: .*; or ask for at most [0-9]+ folds"):
        out_of_fold(po.NaiveBayes(), X, y, folds=300)


def test_long_fits_are_announced_at_the_line_of_the_user(all_is_long):
    X, y = load_penguins().drop("species"), load_penguins()["species"]
    for begin, what in (
        (lambda: po.NaiveBayes().fit(X, y), "the fit takes about"),
        (lambda: out_of_fold(po.NaiveBayes(), X, y, folds=4), "cross-validation with 4 folds takes about"),
        (lambda: po.GenerativeClassifier(["nb", "lda"]).fit(X, y), "the fit of 2 candidates with 5 folds takes about"),
    ):
        with pytest.warns(UserWarning, match=what) as seen:
            begin()
        assert [warning.filename for warning in seen] == [__file__]


def test_a_pool_announces_how_much_is_left_without_forests(all_is_long):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 2))
    with pytest.warns(UserWarning, match=r"candidates with 5 folds \([1-9][0-9]?% of it if a trial shows that forests"):
        po.GenerativeClassifier(n_jobs=1).fit(X, X[:, 0] > 0)


@pytest.mark.parametrize(("name", "most"), [("residual trees", 1.05), ("forest mixed", 1.6), ("cells", 1.6)])
def test_rows_beyond_the_most_that_are_learned_from_cost_little(name, most):
    plan, schema = planned(name)
    few, many = (
        estimate_work(plan, schema, WorkCounts(n, 50_000, 3, 5, leave_trees_out=True)).seconds
        for n in (400_000, 1_000_000)
    )
    assert few <= many < most * few


def test_a_pool_reduces_its_folds_to_what_the_memory_holds(monkeypatch):
    monkeypatch.setenv("POSTERIORI_MAX_GB", "0.0003")
    with pytest.warns(UserWarning, match=r"folds is reduced from 300 to [0-9]+: it would take") as seen:
        pool = po.GenerativeClassifier(members=["nb", "lda"], folds=300).fit(load_penguins(), "species")
    assert [warning.filename for warning in seen] == [__file__]
    assert 2 <= pool.out_of_fold_.fold.max() + 1 < 300


def test_a_pool_leaves_out_candidates_of_most_memory_and_warns(monkeypatch):
    monkeypatch.setenv("POSTERIORI_MAX_GB", "0.0004")
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"a": rng.normal(size=100), "b": rng.normal(size=100), "y": ["u", "v"] * 50})
    with pytest.warns(UserWarning, match=r"is not tried: .*POSTERIORI_MAX_GB=") as seen:
        pool = po.GenerativeClassifier().fit(table, "y")
    assert {warning.filename for warning in seen} == {__file__}
    assert any("POSTERIORI_MAX_GB" in reason for reason in pool.skipped_.values())
    assert pool.members_


@pytest.mark.parametrize("hidden", [True, False])
@pytest.mark.parametrize("name", ["nb", "lda"])
def test_work_of_em_rises_with_each_count_and_linearly_in_starts(name, hidden):
    blocks = planned(name)[0].blocks
    base = {"n_rows": 1000, "n_components": 3, "n_starts": 2, "n_steps": 5}
    one = work_of_em(blocks, **base, hidden=hidden).seconds
    for count in base:
        more = work_of_em(blocks, **base | {count: 2 * base[count]}, hidden=hidden).seconds
        assert more > one or (count == "n_components" and not hidden and more >= one)
        assert count not in {"n_starts", "n_steps"} or more == pytest.approx(2 * one)
    wide = planned(name, d=24)[0].blocks
    assert work_of_em(wide, **base, hidden=hidden).seconds > one


def test_long_em_is_announced_and_done(all_is_long):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), np.arange(60) % 2
    said = r"EM of [0-9]+ starts? and at least 2 steps each takes about .*; to make it shorter, ask for fewer"
    few = {"max_iter": 2, "tol": 1e9}
    with pytest.warns(UserWarning, match=said):
        po.MixtureModel(n_components=2, n_init=2, em=po.EM(**few)).fit(X)
    with pytest.warns(UserWarning, match=said), pytest.warns(UserWarning, match="the fit takes"):
        po.NaiveBayes(em=po.EM(components_per_class=2, **few)).fit(X, y)
    X[::3, 0] = np.nan
    with pytest.warns(UserWarning, match=said), pytest.warns(UserWarning, match="the fit takes"):
        po.GaussianDiscriminant(em=po.EM(**few)).fit(X, y)


@pytest.mark.parametrize("n_gaps", [0, 1, 30, 400])
def test_em_over_missing_numbers_counts_the_rows_that_lack_one(n_gaps):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(1000, 5)), np.arange(1000) % 2
    X[rng.choice(1000, n_gaps, replace=False), rng.integers(0, 5, n_gaps)] = np.nan
    model = po.GaussianDiscriminant()
    rows = read_first_rows(model.recipe, X, y, None)
    blocks = model.recipe.plan(rows.source.schema, rows.target).blocks
    sums = rows.source.reduce(Collect(blocks))
    assert n_incomplete(blocks, sums.blocks, 1000) in (n_gaps, n_gaps + 1)  # the sum of shares is rounded up


def test_a_candidate_beyond_the_memory_is_not_offered_by_name(monkeypatch):
    from posteriori.pool.candidates import warn_of_left_out

    monkeypatch.setenv("POSTERIORI_MAX_GB", "1")
    with pytest.warns(UserWarning, match="set POSTERIORI_MAX_GB=2 .*; see skipped_$"):
        warn_of_left_out({"aode": Work(n_bytes=2e9).reason_too_much()}, {})
    with pytest.warns(UserWarning, match=r"60\); see skipped_, or name it in members=\[…\] to try it$"):
        warn_of_left_out({"aode": "it takes 70 times the work of naive Bayes per row (limit 60)"}, {})


def test_a_too_large_javascript_is_refused_before_it_is_written(monkeypatch):
    from posteriori.javascript import export, values

    pool = po.GenerativeClassifier(members=["nb", "lda"]).fit(load_penguins(), "species")
    written = export._classifier(pool)
    n_written = sum(len(one["values"]) for one in _objects(written["models"]))
    counted = sum(values.n_numbers(one) for m in pool._posterior.models for one in m.posterior_parameters)
    assert n_written / 3 < counted < 3 * n_written
    monkeypatch.setattr(export, "MOST_NUMBERS", counted)
    export.to_javascript(pool)
    monkeypatch.setattr(export, "MOST_NUMBERS", counted - 1)
    monkeypatch.setattr(export, "_model", None)
    for write in (export.to_javascript, po.explore):
        with pytest.raises(ValueError, match=r"the model in JavaScript is not written: it would have about .* numbers"):
            write(pool)


def _objects(value):
    if isinstance(value, dict) and "values" in value:
        return [value]
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [one for part in parts for one in _objects(part)]


def test_the_rows_of_an_explorer_shrink_with_columns_and_classes():
    from posteriori.exploring.document import MOST_ROWS, most_rows

    assert most_rows(20, 3) == MOST_ROWS
    assert 1 <= most_rows(5_000, 300) < most_rows(5_000, 3) < MOST_ROWS
    assert most_rows(10**9, 2) == 1


def test_long_predictions_are_announced_after_some_rows_and_done(monkeypatch):
    """The time of a row depends on its gaps, so that rows spread over a long table are timed."""
    rng = np.random.default_rng(0)
    model = po.NaiveBayes().fit(rng.normal(size=(60, 3)), np.arange(60) % 3)
    X = rng.normal(size=(20_000, 3))
    X[rng.random(X.shape) < 0.2] = np.nan
    whole = model.predict_proba(X)
    assert np.array_equal(whole, np.concatenate([model.predict_proba(part) for part in np.array_split(X, 4)]))
    monkeypatch.setattr(model_cost, "LONG_SECONDS", 0.0)
    assert len(model.predict(X[:10_000])) == 10_000  # a short table is not timed
    said = r"the scoring of 20,000 rows takes about .* on one core; to make it shorter, give fewer rows at a time"
    for predict in (model.predict, model.predict_proba, model.score_samples, model.explain):
        with pytest.warns(UserWarning, match=said):
            found = predict(X)
    with pytest.warns(UserWarning, match=said):
        found = model.predict_proba(X)
    assert np.array_equal(found, whole)


def test_predictions_are_timed_on_rows_spread_over_the_table(monkeypatch):
    seen = []
    log_joint = GenerativeModel.log_joint_of_components

    def noted(model, batch, **given):
        seen.append((batch.start, len(batch)))
        return log_joint(model, batch, **given)

    monkeypatch.setattr(GenerativeModel, "log_joint_of_components", noted)
    X = np.random.default_rng(0).normal(size=(20_001, 2))
    po.NaiveBayes(n_jobs=1).fit(X[:60], np.arange(60) % 3).predict(X)
    timed = [start for start, length in seen if length == 128]
    assert timed == [0, 0, 6624, 13_248, 19_872]
    assert sum(length for start, length in seen if length != 128) == 20_001


def test_predictions_beyond_the_memory_are_refused(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(20_000, 3))
    model = po.NaiveBayes().fit(X[:60], np.arange(60) % 3)
    monkeypatch.setenv("POSTERIORI_MAX_GB", "0.0004")
    assert len(model.predict(X)) == 20_000
    for predict in (model.predict_proba, model.explain):
        with pytest.raises(ValueError, match=r"the scoring of 20,000 rows is not begun: it would take .* GB of memory"):
            predict(X)


@pytest.mark.parametrize("name", ["nb", "lda"])
def test_batches_of_many_classes_have_fewer_rows(name):
    n_classes = 1500
    X = np.arange(2 * n_classes)[:, np.newaxis] * np.ones(2) + np.random.default_rng(0).normal(size=(2 * n_classes, 2))
    model = find_model(name).make().fit(X, np.arange(2 * n_classes) % n_classes)
    rows = np.tile(X, (35, 1))
    sizes = list(model._source(rows).stream(len))
    assert sum(sizes) == len(rows)
    assert max(sizes) * n_classes * 8 <= 1 << 25
    assert list(model._source(X[:2]).stream(len)) == [2]


@pytest.mark.parametrize(
    ("kind", "method"), [("states", "mmhc"), ("numbers", "hill_climbing"), ("gaps", "hill_climbing")]
)
def test_a_long_search_for_a_network_is_announced_and_done(kind, method, all_is_long):
    rng = np.random.default_rng(0)
    table = rng.integers(0, 3, (60, 4)).astype(str) if kind == "states" else rng.normal(size=(60, 4))
    if kind == "gaps":
        table[rng.random(table.shape) < 0.05] = np.nan
    said = r"the search for a graph of 4 variables on [0-9]+ distinct rows takes about .* to make it shorter, leave out"
    with pytest.warns(UserWarning, match=said):
        po.learn_network(table, method)


def test_a_long_bootstrap_of_networks_is_announced(all_is_long):
    states = np.random.default_rng(0).integers(0, 3, (60, 4)).astype(str)
    with pytest.warns(UserWarning, match="the 3 searches for a graph of 4 variables"):
        po.networks.bootstrap_structure(states, n_graphs=3)


def test_the_importance_of_many_pairs_is_measured_on_fewer_rows(monkeypatch):
    from posteriori.learning import importance

    rng = np.random.default_rng(0)
    y = np.arange(300) % 2
    X = rng.normal(size=(300, 4)) + y[:, np.newaxis] * [2.0, 0.0, 0.0, 0.0]
    all_rows = out_of_fold(po.AveragedOneDependence(), X, y, folds=3).estimator.importance_
    monkeypatch.setattr(importance, "_MOST_VISITS", 2 * 4 * 4**2 * 90)  # C·d·d² per row
    for name, n_drawn, n_held_out in (("aode", 90, 90), ("nb", 2000, 300)):
        model = find_model(name).make()
        assert model.fit(X, y).importance_.n_rows == n_drawn
        held_out = out_of_fold(model, X, y, folds=3).estimator.importance_
        assert held_out.n_rows == n_held_out
        if name == "aode":
            error = 4.0 * np.hypot(held_out.standard_error, all_rows.standard_error)
            assert np.all(np.abs(held_out.increase - all_rows.increase) <= error)


def test_a_long_comparison_is_announced_after_its_first_sizes(all_is_long):
    done = []
    with pytest.warns(UserWarning, match=r"the rest of the comparison takes about") as seen:
        po.compare(["logistic"], load_penguins(), "species", sizes=[20, 100], repeats=3, progress=done.append)
    assert len(done) == 6
    assert sum("the rest of the comparison" in str(warning.message) for warning in seen) <= 2


class NothingSeparates:
    """Tests of independence that each find a dependence."""

    n_tests = 0
    n_variables = 5

    def p_value(self, x, y, z):
        """Count the test."""
        del x, y, z
        self.n_tests += 1
        return 0.0


def test_a_long_round_of_conditioning_sets_is_announced(all_is_long):
    tests, constraints = NothingSeparates(), EdgeConstraints.of([str(j) for j in range(5)])
    with pytest.warns(UserWarning, match="given 1 variables takes about .* to make it shorter, set max_given to 0, or"):
        find_skeleton(tests, constraints, 0.01, 1)


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GaussianDiscriminant(), po.GenerativeClassifier(["nb", "lda"])])
def test_a_single_class_is_warned_of_at_the_line_of_the_user(model):
    X = np.random.default_rng(0).normal(size=(20, 2))
    with pytest.warns(UserWarning, match="has only one class") as seen:
        model.fit(X, ["a"] * 20)
    assert {warning.filename for warning in seen} == {__file__}
