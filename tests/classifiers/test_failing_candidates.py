"""A candidate that fails is left out of the pool and named; a fault of its code is not hidden."""

from dataclasses import dataclass

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import posteriori as po
from examples.extending.density import Exponential
from tests.classifiers.test_generative_classifier import mixed


def with_waits(lowest):
    frame, y = mixed(cells=0.0)
    wait = np.random.default_rng(3).exponential(2.0, len(y))
    wait[0] = lowest
    return frame.with_columns(wait=wait), y


def test_a_failing_candidate_is_skipped_and_changes_no_other():
    frame, y = with_waits(-12.5)
    refuses = po.NaiveBayes(distributions={"wait": Exponential()})
    with pytest.warns(UserWarning, match=r"candidate 'waits' is skipped: .*'wait'.*-12\.5"):
        found = po.GenerativeClassifier({"waits": refuses, "nb": "nb", "tan": "tan"}).fit(frame, y)
    assert "-12.5" in found.skipped_["waits"]
    assert found.cv_results_["member"] == ["nb", "tan", "pool"]
    alone = po.GenerativeClassifier(["nb", "tan"]).fit(frame, y)
    assert_array_equal(found.predict_log_proba(frame), alone.predict_log_proba(frame))
    frame, y = with_waits(12.5)  # the same candidate takes part where it can
    assert "waits" in po.GenerativeClassifier({"waits": refuses, "nb": "nb"}).fit(frame, y).cv_results_["member"]


def test_a_candidate_that_fails_in_a_time_budget_is_skipped():
    frame, y = with_waits(-12.5)
    members = {"waits": po.NaiveBayes(distributions={"wait": Exponential()}), "nb": "nb"}
    skipped = []
    for options in ({}, {"time_budget": 60.0}):
        with pytest.warns(UserWarning, match="candidate 'waits' is skipped"):
            skipped.append(po.GenerativeClassifier(members, **options).fit(frame, y).skipped_)
    assert skipped[0] == skipped[1]


def test_if_every_candidate_fails_one_error_lists_the_reasons():
    frame, y = with_waits(-12.5)
    frame = frame.with_columns(other=-frame["wait"])
    members = {one: po.NaiveBayes(distributions={one: Exponential()}) for one in ("wait", "other")}
    with pytest.raises(ValueError, match=r"no candidate can be fitted.*wait: .*'wait'.*; other: .*'other'"):
        po.GenerativeClassifier(members).fit(frame, y)


@dataclass(frozen=True)
class Faulty(Exponential):
    """A density with a fault that no table explains."""

    def estimate(self, statistics):
        raise AssertionError("a fault")


@pytest.mark.parametrize("options", [{}, {"time_budget": 60.0}])
def test_a_fault_of_a_candidate_is_not_hidden(options):
    frame, y = with_waits(12.5)
    faulty = po.NaiveBayes(distributions={"wait": Faulty()})
    with pytest.raises(AssertionError, match="a fault"):
        po.GenerativeClassifier({"nb": "nb", "faulty": faulty}, **options).fit(frame, y)
