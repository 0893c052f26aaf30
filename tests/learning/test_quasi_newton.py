"""The minimum of a convex function, some of whose parameters are at least 0."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.optimize import lsq_linear

from posteriori.learning.minimisation import minimum


@pytest.mark.parametrize("seed", range(5))
def test_least_squares_with_bounds_are_those_of_scipy(seed):
    rng = np.random.default_rng(seed)
    design, target = rng.normal(size=(40, 12)), rng.normal(size=40)
    lowest = np.where((np.arange(12) >= 3) & (np.arange(12) < 9), 0.0, -np.inf)
    steps = []

    def loss(position):
        rest = design @ position - target
        steps.append(position)
        return 0.5 * float(rest @ rest) / 40, design.T @ rest / 40

    found = minimum(loss, rng.normal(size=12), np.ones(12), slice(3, 9), 1e-15)
    expected = lsq_linear(design, target, (lowest, np.inf), tol=1e-14, method="bvls").x
    assert 0 < np.count_nonzero(expected[3:9] == 0.0) < 6  # so that some bounds hold, and some do not
    assert_allclose(found, expected, atol=1e-6)
    assert (found[3:9] >= 0.0).all()
    assert len(steps) < 100


@pytest.mark.parametrize("n", [50, 1 << 14])  # of many parameters, fewer steps are remembered
def test_a_function_of_narrow_valleys_is_minimised(n):
    curvature = np.geomspace(1.0, 1e4, n)

    def loss(position):
        return 0.5 * float(curvature @ (position - 1.0) ** 2), curvature * (position - 1.0)

    assert_allclose(minimum(loss, np.zeros(n), np.ones(n), slice(0), 1e-16, most_steps=2000), 1.0, atol=1e-6)


def test_the_minimum_itself_is_where_the_search_ends():
    calls = []

    def loss(position):
        calls.append(position)
        return float((position - 2.0) @ (position - 2.0)), 2.0 * (position - 2.0)

    assert_allclose(minimum(loss, np.full(3, 2.0), np.ones(3), slice(0, 1), 1e-8), 2.0)
    assert len(calls) == 1
