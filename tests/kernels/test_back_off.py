"""The equation of back-off: one for numbers and arrays, and the one by which compiled tables are smoothed."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori import kernels
from posteriori.kernels.loops.back_off import halfway, share_of, with_pseudo_rows
from posteriori.kernels.loops.left_out_counts import smoothed, without


def test_pseudo_rows_count_as_rows_of_the_lower_order_table():
    counts, lower = np.array([3.0, 0.0, 1.0]), np.array([0.5, 0.25, 0.25])
    smoothed = with_pseudo_rows(counts, 4.0, lower)
    assert_array_equal(smoothed, [5.0, 1.0, 2.0])
    assert smoothed.sum() == counts.sum() + 4.0


def test_the_lower_order_table_is_the_mean_of_both():
    assert_array_equal(halfway(np.array([0.25, 0.75]), np.array([0.75, 0.25])), [0.5, 0.5])


@pytest.mark.parametrize(("total", "share"), [(4.0, 0.75), (0.0, 0.1)])
def test_without_rows_the_lower_order_probability_is_the_share(total, share):
    assert share_of(3.0, total, 0.1) == share


@pytest.mark.parametrize("strength", [0.0, 0.5, 10.0])
def test_compiled_tables_follow_the_equation(strength):
    rng = np.random.default_rng(0)
    counts = rng.integers(1, 9, (2, 3, 1, 4)).astype(np.float64)
    counts[..., 0] = 0.0  # no missing child
    counts[:, 0] = 0.0  # no missing parent
    table = counts.copy()
    kernels.smoothed_tables(table, np.array([1.0, strength, strength]), 1.0, True)

    def shrunk(counts, pseudo_rows, lower):
        return share_of(with_pseudo_rows(counts, pseudo_rows, lower), counts.sum() + pseudo_rows, lower)

    cells = counts[:, 1:, 0, 1:]
    overall = (cells.sum((0, 1)) + 1.0) / (cells.sum() + 3.0)
    for z in range(2):
        single = shrunk(cells[z].sum(0), 1.0, overall)
        assert_allclose(table[z, 0, 0, 1:], single, rtol=1e-13)
        for a in range(2):
            pooled = shrunk(cells[:, a].sum(0), strength, overall)
            given = shrunk(cells[z, a], strength, halfway(single, pooled))
            assert_allclose(table[z, 1 + a, 0, 1:], given, rtol=1e-13)


def test_without_rows_the_equation_or_pseudo_counts_hold():
    lower, strength, k, alpha = 0.3, 2.5, 4, 0.5
    for count, total in [(3.0, 7.0), (0.0, 0.0)]:
        backed_off = smoothed(count, total, lower, strength, k, alpha, True)
        assert backed_off == share_of(with_pseudo_rows(count, strength, lower), total + strength, lower)
        assert smoothed(count, total, lower, strength, k, alpha, False) == (count + alpha) / (total + k * alpha)
    assert smoothed(0.0, 0.0, lower, 0.0, k, 0.0, True) == smoothed(0.0, 0.0, lower, 0.0, k, 0.0, False) == lower


def test_a_difference_that_is_rounding_error_is_0():
    assert without(3.0, 1.0) == 2.0
    assert without(0.1 + 0.2, 0.3) == 0.0
    assert without(1.0, 1.5) == 0.0
