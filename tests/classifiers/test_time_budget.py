"""A pool within a time budget, on a clock that the candidates advance."""

from types import SimpleNamespace

import numpy as np
import pytest

import posteriori as po
from posteriori.densities import summed_trees
from posteriori.pool import budget as time_budget
from posteriori.pool import fit as pool_fit
from posteriori.pool.candidates import CandidateFitter, trees_of

SECONDS_PER_ROW = {"NaiveBayes": 1e-3, "GaussianDiscriminant": 2e-3, "GenerativeForest": 1e-4}  # a forest: per tree


class Clock:
    """Seconds that stand still except while candidates are fitted."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now

    def work(self, one, n_rows):
        name = one.name
        n_trees = trees_of(one, n_rows) if name == "GenerativeForest" else 1
        self.now += SECONDS_PER_ROW.get(name, 4e-3) * n_rows * n_trees


@pytest.fixture
def clock(monkeypatch):
    """Replace the clock of the budget by one that fits and timings advance."""
    clock = Clock()
    fit, seconds = CandidateFitter._fit, time_budget._Forecast.seconds

    def timed_fit(self, some):
        for one in some:
            clock.work(one, self.folded.n_labelled)
        return fit(self, some)

    def timed_seconds(self, one):
        known = time_budget.judge_and_sample

        def judge(plans, folded, **options):
            clock.work(one, folded.n_labelled)
            return known(plans, folded, **options)

        monkeypatch.setattr(time_budget, "judge_and_sample", judge)
        try:
            return seconds(self, one)
        finally:
            monkeypatch.setattr(time_budget, "judge_and_sample", known)

    monkeypatch.setattr(time_budget, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(pool_fit, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(CandidateFitter, "_fit", timed_fit)
    monkeypatch.setattr(time_budget._Forecast, "seconds", timed_seconds)
    monkeypatch.setattr(time_budget, "_SAMPLED", 50)
    return clock


def rows(n=400):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=n)
    return rng.normal(size=(n, 3)) + y[:, np.newaxis], y


def pool(seconds, members=("nb", "lda", "qda", "forest")):
    return po.GenerativeClassifier(list(members), time_budget=seconds).fit(*rows())


def test_with_enough_time_every_candidate_is_fitted(clock):
    model = pool(100.0)
    assert model.cv_results_["member"] == ["nb", "lda", "qda", "forest", "pool"]
    assert not model.skipped_


def test_a_candidate_that_takes_too_long_is_left_out_and_named(clock):
    # nb takes 0.4 s and lda would take 0.8 s; 0.2 s are reserved, and to time both takes 0.15 s.
    model = pool(1.0)
    assert model.cv_results_["member"] == ["nb", "pool"]
    assert model.skipped_["lda"] == "it would take about 0.8 s, and 0.25 s are left of the budget of 1 s"
    assert clock.now < 1.2


@pytest.mark.parametrize("seconds", [1.5, 2.0, 3.0, 4.0, 6.0])
def test_the_budget_is_obeyed(clock, seconds):
    pool(seconds)
    assert clock.now <= seconds


def test_one_candidate_is_fitted_in_any_case(clock):
    model = pool(1e-6)
    assert model.cv_results_["member"] == ["nb", "pool"]
    assert all("too little time is left" in reason for reason in model.skipped_.values())
    assert model.predict(rows()[0]).shape == (400,)


def test_a_forest_gets_the_trees_that_there_is_time_for(clock):
    # 0.4 s for nb, 0.05 s and 0.05 s to time it and ten trees; 0.8·3 s − 0.5 s is the time of 47 trees of 0.04 s.
    model = pool(3.0, ("nb", "forest"))
    assert model.cv_results_["member"] == ["nb", "forest", "pool"]
    forests = [one for name, one in model.members_.items() if name == "forest"]
    assert [one.n_trees for one in forests] == [47] * len(forests)
    few = pool(0.9, ("nb", "forest"))
    assert "it would take about 0.4 s" in few.skipped_["forest"]


def test_the_trees_on_what_the_members_leave_end_in_time(clock, monkeypatch):
    X = rows(600)[0]
    y, add_tree = X[:, 0] * X[:, 1] > 0, summed_trees._Sum.add_tree

    def timed(self, drawn):
        clock.now += 0.1
        return add_tree(self, drawn)

    monkeypatch.setattr(summed_trees._Sum, "add_tree", timed)
    n_trees = []
    for seconds in (4.0, 8.0, 100.0):
        clock.now = 0.0
        model = po.GenerativeClassifier(["nb", "residual trees"], time_budget=seconds).fit(X, y)
        assert clock.now <= seconds
        n_trees.append(model.members_["residual trees"].model_.parameters[0].trees.n_trees)
    assert n_trees[0] < n_trees[1] < n_trees[2]


def test_the_registry_is_tried_from_cheap_to_costly_candidates(clock):
    model = po.GenerativeClassifier(time_budget=1.0).fit(*rows())
    assert model.cv_results_["member"] == ["rda predictive", "pool"]
    assert {"forest mixed", "tan 5"} <= set(model.skipped_)


def test_a_candidate_that_fails_is_no_obstacle(clock):
    X, y = rows()
    members = {"counts": po.NaiveBayes(distributions="poisson"), "nb": "nb"}
    with pytest.warns(UserWarning, match="'counts' is skipped"):
        model = po.GenerativeClassifier(members, time_budget=50.0).fit(X, y)
    assert list(model.members_) == ["nb"]
    with pytest.raises(ValueError, match="distribution is poisson"):
        po.GenerativeClassifier({"counts": po.NaiveBayes(distributions="poisson")}, time_budget=50.0).fit(X, y)


def test_a_budget_is_a_positive_number_of_seconds():
    with pytest.raises(ValueError, match="time_budget"):
        po.GenerativeClassifier(time_budget=0).fit(*rows())
