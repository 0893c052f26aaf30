"""Progress: one estimate for all steps, its truth by a clock that the test moves, and what is printed."""

import contextlib
import io
import logging
import threading
import time

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.cli import main, messages
from posteriori.cli.messages import WorkEstimate
from posteriori.learning import folded_data
from posteriori.learning.work_bounds import first_steps, fitting_steps
from posteriori.tables.progress import Step, as_one_step, report_progress
from tests.cli.command_line import CommandLine

run = CommandLine().run


class Clock:
    def __init__(self):
        self.now = 100.0

    def __call__(self):
        return self.now


# CPU seconds of each step as measured, on a machine half as fast, at 200,000 and at 1,600,000 rows of 50 columns.
MEASURED = {
    200_000: [1.0, 0.1, 0.9, 1.1, 1.5, 1.2, 3.8, 2.0, 1.0],
    1_600_000: [8.0, 0.4, 5.5, 5.0, 10.0, 8.0, 5.0, 2.0, 1.2],
}


@pytest.mark.parametrize("n_rows", MEASURED)
def test_the_time_left_is_true_at_half_time(n_rows):
    seconds = [2 * one for one in MEASURED[n_rows]]
    clock = Clock()
    estimate = WorkEstimate(clock)
    steps = [*first_steps(n_rows, 50), *fitting_steps(n_rows, 50, 50_000, 10, 5)]
    estimate.plan(steps)
    whole, shares = sum(seconds), []
    for step, took in zip(steps, seconds, strict=True):
        for _ in range(step.passes):
            advance = estimate.begin(step.name, 100)
            for _ in range(100):
                clock.now += took / step.passes / 100
                advance(1)
                shares.append(estimate.share)
                spent = clock.now - 100.0
                if abs(spent - whole / 2) < whole / 200:
                    assert estimate.seconds_left == pytest.approx(whole - spent, rel=0.3)
                assert estimate.seconds_left is None or estimate.seconds_left < 1.5 * whole
                assert (estimate.seconds_left is None) <= (spent < whole / 5)
    assert shares == sorted(shares)
    assert max(shares) < 1.0  # never at 100 % before the end
    assert shares[-1] > 0.95


def test_steps_that_are_not_needed_or_not_expected():
    clock = Clock()
    estimate = WorkEstimate(clock)
    assert (estimate.title, estimate.seconds_left, estimate.share) == ("starting", None, 0.0)
    estimate.plan([Step("a", 1.0), Step("b", 5.0), Step("c", 1.0)])
    advance = estimate.begin("a", 10)
    clock.now += 2.0
    advance(10)
    assert estimate.seconds_left == pytest.approx(12.0)
    estimate.begin("c candidate", 4)(2)  # b is skipped
    clock.now += 1.0
    assert estimate.title == "c candidate 3 of 4"
    assert estimate.seconds_left == pytest.approx(1.0)
    estimate.begin("d", 7)
    clock.now += 1.0
    assert estimate.title == "d"
    assert 0.0 < estimate.share < 1.0


def test_no_time_is_promised_before_a_twentieth_of_the_work():
    clock = Clock()
    estimate = WorkEstimate(clock)
    estimate.plan([Step("a", 1.0), Step("b", 39.0)])
    advance = estimate.begin("a", 10)
    clock.now += 60.0  # an import, say: alone it would promise 40 minutes
    advance(10)
    assert (estimate.seconds_left, estimate.share) == (None, 0.0)
    advance = estimate.begin("b", 100)
    clock.now += 1.0
    advance(10)
    assert estimate.seconds_left == pytest.approx(9.0)
    shown = estimate.share
    clock.now += 500.0  # nothing is done meanwhile
    assert estimate.share == shown


@pytest.mark.parametrize(("seconds", "text"), [(3.4, "3 s"), (75, "1 min 15 s"), (7300, "2 h 01 min")])
def test_durations(seconds, text):
    assert messages.duration(seconds) == text


def table(n=600):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, n)
    numbers = rng.normal(y, 1.0)
    label = pl.Series(np.array(["a", "b"])[y])
    return pl.DataFrame({"x": numbers, "c": rng.choice(["u", "v"], n), "y": label})


def test_the_fit_without_held_out_rows_is_one_step():
    begun, planned, scored = [], [], []

    def begin(what, n):
        begun.append(what)
        return lambda done: None

    with (
        report_progress(begin, planned.append, lambda name, loss: scored.append(name)),
        as_one_step("without the held-out rows"),
    ):
        po.GenerativeClassifier(members=["nb", "lda"], n_jobs=1).fit(table(), "y")
    assert set(begun) == {"without the held-out rows"}
    assert (planned, scored) == ([], [])


@pytest.mark.parametrize("many", [100, 10**9])
def test_a_pool_reports_the_steps_that_are_planned(many, monkeypatch, caplog):
    monkeypatch.setattr(folded_data, "MANY_ROWS", many)
    monkeypatch.setattr("posteriori.pool.fit.MOST_EVALUATED_BY_ALL", 150)
    begun, planned, done = [], [], []

    def begin(what, n):
        begun.append(what)
        done.append([n, 0])
        mine = done[-1]

        def advance(k):
            mine[1] += k

        return advance

    with caplog.at_level(logging.INFO, "posteriori"), report_progress(begin, planned.extend):
        po.GenerativeClassifier(members=["nb", "binned weighted"], n_jobs=1).fit(table(), "y")
    names = [step.name for step in planned]
    plain = list(dict.fromkeys(what.removesuffix(" candidate") for what in begun))
    expected = [name for name in names if name in plain]
    assert [name for name in plain if name in names] == expected
    assert {"choosing cut points", "statistics", "fitting", "cross-validating", "pooling"} <= set(plain)
    assert ("cross-validating candidate" in begun) == (many == 100)
    assert done[begun.index("fitting candidate")] == [2, 2]
    assert [record.message for record in caplog.records].count("statistics") == 1


def test_a_pool_reports_the_log_loss_of_each_candidate(caplog):
    scores = {}
    with caplog.at_level(logging.INFO, "posteriori"), report_progress(lambda what, n: int, score=scores.__setitem__):
        model = po.GenerativeClassifier(members=["nb", "tan"], n_jobs=1).fit(table(), "y")
    results = dict(zip(model.cv_results_["member"], model.cv_results_["log_loss"], strict=True))
    assert scores == pytest.approx({"nb": results["nb"], "tan": results["tan"]})
    assert f"nb: log-loss {results['nb']:.4f}" in [record.message for record in caplog.records]


def test_a_line_ends_with_the_best_candidate_so_far():
    estimate = WorkEstimate(Clock())
    estimate.begin("fitting candidate", 3)
    assert estimate.best == ""
    estimate.score("tan", 0.25)
    estimate.score("nb", 0.5)
    assert messages.line_of(estimate) == "fitting candidate 1 of 3; best of 2 so far: tan, log-loss 0.250"


def test_lines_where_nobody_looks_at_a_terminal(monkeypatch):
    printed = threading.Event()

    class Lines(io.StringIO):
        def write(self, text):
            printed.set()
            return super().write(text)

    monkeypatch.setattr(messages, "_PERIOD", 0.001)
    err = Lines()
    with contextlib.redirect_stderr(err), messages.progress_bar("predicting", 10) as advance:
        advance(5)
        assert printed.wait(60.0)
    assert err.getvalue().startswith("predicting")


def test_a_line_names_the_step_and_the_time_left():
    clock = Clock()
    estimate = WorkEstimate(clock)
    advance = estimate.begin("predicting", 10)
    clock.now += 90.0
    advance(5)
    assert messages.line_of(estimate) == "predicting, 50% done, about 1 min 30 s left"


def test_quiet_prints_no_progress(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(messages, "_PERIOD", 0.0)
    table().write_parquet("t.parquet")
    for command in (["fit", "t.parquet", "--target", "y", "--model", "nb"], ["predict", "t.posteriori", "t.parquet"]):
        err = io.StringIO()
        with contextlib.redirect_stderr(err), contextlib.redirect_stdout(io.StringIO()):
            assert main([*command, "--quiet"]) == 0
        assert err.getvalue() == ""
    code, _, err = run("fit", "t.parquet", "--target", "y", "--model", "nb")
    assert code == 0
    assert "statistics" in err or "cross-validating" in err or "scores" in err or "reading" in err


def test_no_line_before_the_first_step(monkeypatch):
    monkeypatch.setattr(messages, "_PERIOD", 0.001)
    err = io.StringIO()
    with contextlib.redirect_stderr(err), messages.work_progress():
        time.sleep(0.1)
    assert err.getvalue() == ""
