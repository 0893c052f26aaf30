"""Evidence of a change: expectations by enumeration, and false alarms by simulation."""

import itertools
import math

import numpy as np
import pytest

from posteriori.watching.evidence import N_BETS, Martingale, log_gains, p_values


class Uniform:
    """Stands in for a generator: returns given uniform numbers."""

    def __init__(self, numbers):
        self.numbers = list(numbers)

    def random(self, n):
        return np.array([self.numbers.pop(0) for _ in range(n)])


NODES, WEIGHTS = np.polynomial.legendre.leggauss(3)  # exact for the bets, which are quadratic in each uniform number
NODES, WEIGHTS = (NODES + 1.0) / 2.0, WEIGHTS / 2.0


@pytest.mark.parametrize("scores", [(0, 1, 2, 3), (0, 0, 1, 1), (0, 0, 0, 0)])
def test_the_expected_evidence_of_exchangeable_scores_is_1(scores):
    """All orders of four scores, of which one is the reference and three are new, in batches of one and two."""
    edges = np.array([-np.inf, 0.5, 1.5, 2.5])
    total = {1: 0.0, 2: 0.0}
    orders = list(itertools.permutations(scores))
    for order in orders:
        counts = np.bincount(np.searchsorted(edges, order[:1]), minlength=5).astype(float)
        for nodes in itertools.product(range(3), repeat=3):
            weight = math.prod(WEIGHTS[k] for k in nodes)
            rng = Uniform(NODES[list(nodes)])
            evidence = Martingale.starting(edges, counts)
            for batch, new in enumerate((order[1:2], order[2:]), start=1):
                evidence = evidence.after(np.array(new, float), rng)
                total[batch] += weight * math.exp(evidence.log_e) / len(orders)
    assert total == pytest.approx({1: 1.0, 2: 1.0}, abs=1e-12)


def test_each_bet_is_fair_and_never_loses_everything():
    p = (np.polynomial.legendre.leggauss(8)[0] + 1.0) / 2.0
    w = np.polynomial.legendre.leggauss(8)[1] / 2.0
    gains = np.array([np.exp(log_gains(np.array([one]))) for one in p])
    np.testing.assert_allclose(w @ gains, np.ones(N_BETS), atol=1e-12)
    ends = np.array([np.exp(log_gains(np.array([one]))) for one in (0.0, 0.5, 1.0)])
    assert np.all(ends > 0.0)


def test_p_values_are_those_of_the_definition_in_any_chunks():
    rng = np.random.default_rng(0)
    bins, counts, u = rng.integers(4, size=40), np.array([3.0, 0.0, 5.0, 1.0]), rng.random(40)
    seen = list(np.repeat(np.arange(4), counts.astype(int)))
    expected = []
    for one, uniform in zip(bins, u, strict=True):
        below, equal = sum(s < one for s in seen), sum(s == one for s in seen) + 1
        expected.append((below + uniform * equal) / (len(seen) + 1))
        seen.append(one)
    np.testing.assert_allclose(p_values(bins, counts, u), expected, rtol=1e-12)


def test_batches_of_many_rows_are_summed_in_parts_alike(monkeypatch):
    rng = np.random.default_rng(0)
    start = Martingale.of(rng.normal(size=50), np.random.default_rng(1))
    scores = rng.normal(size=100)
    whole = start.after(scores, np.random.default_rng(2))
    monkeypatch.setattr("posteriori.watching.evidence._AT_ONCE", 7)
    parts = start.after(scores, np.random.default_rng(2))
    assert parts.log_e == pytest.approx(whole.log_e, rel=1e-12)
    np.testing.assert_array_equal(parts.counts, whole.counts)


@pytest.mark.parametrize("draw", ["numbers", "ties", "missing"])
def test_quiet_streams_give_no_more_alarms_than_stated(draw):
    """400 streams of 20 batches at a rate of 0.2, against few reference rows, of which all streams are a new draw."""

    def scores(n):
        if draw == "numbers":
            return rng.standard_cauchy(n)
        if draw == "ties":
            return rng.poisson(1.0, n).astype(float)
        return np.where(rng.random(n) < 0.3, -np.inf, rng.normal(size=n))

    alarms = 0
    for seed in range(400):
        rng = np.random.default_rng(seed)
        evidence, greatest = Martingale.of(scores(24), rng), 0.0
        for _ in range(20):
            evidence = evidence.after(scores(15), rng)
            greatest = max(greatest, evidence.log_e)
        alarms += greatest >= -math.log(0.2)
    assert alarms / 400 <= 0.2 + 2.0 * math.sqrt(0.2 * 0.8 / 400)


@pytest.mark.parametrize(
    ("change", "direction"),
    [
        (lambda x: x + 1.0, "larger"),
        (lambda x: x - 1.0, "smaller"),
        (lambda x: 3.0 * x, "wider"),
        (lambda x: 0.2 * x, "narrower"),
    ],
)
def test_a_late_change_is_found_and_described(change, direction):
    rng = np.random.default_rng(0)
    evidence = Martingale.of(rng.normal(size=300), rng)
    for _ in range(100):
        evidence = evidence.after(rng.normal(size=50), rng)
    assert evidence.log_e < 0.0
    for _ in range(3):
        evidence = evidence.after(change(rng.normal(size=50)), rng)
    assert evidence.log_e > math.log(1e4)
    assert evidence.direction == direction


def test_a_batch_without_scores_changes_nothing():
    evidence = Martingale.of(np.arange(30.0), np.random.default_rng(0))
    assert evidence.after(np.empty(0), np.random.default_rng(0)) is evidence
    assert evidence.log_e == 0.0


def test_a_constant_reference_notices_a_new_value():
    rng = np.random.default_rng(0)
    evidence = Martingale.of(np.zeros(100), rng)
    for _ in range(3):
        evidence = evidence.after(np.zeros(50), rng)
    assert evidence.after(np.ones(50), rng).log_e > math.log(1e6)
