"""Exponentials of many numbers at once agree with those of NumPy."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori import kernels
from posteriori.kernels.loops.exponential import exponentiate


def exponentials(x):
    numba = pytest.importorskip("numba", reason="Numba, which compiles a part by itself, is not installed")
    result = np.array(x, np.float64)
    numba.njit(lambda x: exponentiate(x), error_model="numpy")(result)
    return result


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 1000])
def test_they_agree_to_the_last_place(n):
    x = -np.random.default_rng(n).exponential(50.0, n)
    assert_allclose(exponentials(x), np.exp(x), rtol=2.3e-16, atol=1e-307)


def test_numbers_at_the_ends_of_the_range():
    x = [0.0, -0.0, -np.log(2) / 2, -5e-324, -1e-17, -707.99, -708.01, -1e300, -np.inf, np.nan]
    expected = np.exp(x)
    expected[6] = 0.0
    assert_allclose(exponentials(x), expected, rtol=2.3e-16, atol=0)


@pytest.mark.parametrize("n_components", [1, 2, 5, 3000])
def test_bayes_rule_of_many_rows(n_components):
    rng = np.random.default_rng(0)
    log_joint = rng.normal(0, 300, (1500 if n_components < 10 else 7, n_components))
    log_joint[3, 0] = -np.inf
    log_joint[4] = -np.inf
    with np.errstate(invalid="ignore"):
        relative = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
    expected = relative / relative.sum(axis=1, keepdims=True)
    posterior, joint, evidence, alone = log_joint.copy(), log_joint.copy(), *np.empty((2, len(log_joint)))
    kernels.normalise(posterior)
    kernels.responsibilities_and_evidence(joint, evidence)
    kernels.log_evidence(log_joint, alone)
    assert_allclose(posterior, expected, rtol=1e-14, atol=1e-300)
    assert_array_equal(joint, posterior)
    assert_allclose(evidence, np.logaddexp.reduce(log_joint, axis=1), rtol=1e-14)
    assert_array_equal(alone, evidence)
    assert evidence[4] == -np.inf
