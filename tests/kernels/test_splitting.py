"""The choice of splits: codes of a node, and sets of categories at random; parts of kernels run as plain Python."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori.kernels.loops.splitting import _present_codes, _random_prefix


@pytest.mark.parametrize("width", [2, 63, 64, 65, 256])
def test_the_codes_of_some_rows_are_found_in_order(width):
    rng = np.random.default_rng(width)
    for n in (1, 5, 300):
        of_rows = rng.integers(0, width, n).astype(np.uint8)
        present, codes = np.zeros((width + 63) // 64, np.uint64), np.zeros(width, np.int64)
        with np.errstate(over="ignore"):
            n_codes = _present_codes(of_rows, n, present, codes)
        assert_array_equal(codes[:n_codes], np.unique(of_rows[of_rows > 0]))
        assert not present.any()


def test_a_random_prefix_has_uniform_length_and_smallest_keys():
    rng, state = np.random.default_rng(0), np.array([3], np.uint64)
    lengths = np.zeros(7, np.int64)
    for _ in range(3000):
        codes, key = rng.permutation(40)[:6], rng.random(6)
        order = codes[np.argsort(key)]
        with np.errstate(over="ignore"):
            n_left = int(_random_prefix(codes, key, 6, state))
        assert_array_equal(np.sort(codes[:n_left]), np.sort(order[:n_left]))
        assert_array_equal(np.sort(codes), np.sort(order))
        lengths[n_left] += 1
    assert lengths[0] == lengths[6] == 0
    assert np.abs(lengths[1:6] - 600).max() < 5 * np.sqrt(600 * 0.8)
