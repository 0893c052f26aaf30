"""Labels that are sets of classes: without a column that tells, the estimates of Turnbull and of Kaplan and Meier."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po

TIMES = [str(k) for k in range(1, 7)]


def shares(mask):
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn"), alpha=0, em=po.EM(max_iter=20_000, tol=1e-15))
    return model.fit(pl.DataFrame({"same": ["k"] * len(mask)}), pl.DataFrame(mask, schema=TIMES)).class_prior_


def lifetimes(seed, n=200):
    rng = np.random.default_rng(seed)
    failed, last_seen = rng.integers(1, 7, n), rng.integers(1, 6, n)
    return np.minimum(failed, last_seen), failed <= last_seen


@pytest.mark.parametrize("seed", [0, 1])
def test_censored_rows_give_the_kaplan_meier_estimate(seed):
    time, failed = lifetimes(seed)
    classes = np.arange(1, 7)
    mask = np.where(failed[:, None], classes == time[:, None], classes > time[:, None])
    at_risk = np.array([(time >= k).sum() for k in classes])
    deaths = np.array([((time == k) & failed).sum() for k in classes])
    survival = np.cumprod(1.0 - deaths[:5] / at_risk[:5])
    assert_allclose(1.0 - np.cumsum(shares(mask))[:5], survival, atol=1e-4)


@pytest.mark.parametrize("seed", [0, 1])
def test_intervals_that_overlap_give_the_estimate_of_turnbull(seed):
    rng = np.random.default_rng(seed)
    first = rng.integers(0, 6, 150)
    last = np.minimum(first + rng.integers(0, 4, 150), 5)
    mask = (np.arange(6) >= first[:, None]) & (np.arange(6) <= last[:, None])
    p = np.full(6, 1 / 6)
    for _ in range(50_000):  # Turnbull (1976): self-consistency
        joint = mask * p
        p = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    found = shares(mask)
    likelihood, wanted = (np.log(mask @ one).sum() for one in (found, p))
    assert likelihood == pytest.approx(wanted, abs=1e-3)
    assert_allclose(found, p, atol=5e-3)
