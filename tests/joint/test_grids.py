"""Cells within bins: every bin has some, whatever the numbers and the cut points are."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori.joint.grids import NumberGrid

_STEPS = st.sampled_from([0.1, 0.25, 1.0, 0.01])


@given(st.lists(st.integers(-60, 60), min_size=2, max_size=120), _STEPS, st.integers(2, 9))
def test_every_bin_between_cuts_has_cells_that_sum_to_1(units, step, n_bins):
    values = np.array([*units, *[0] * 300]) * step  # rare values beside a frequent one share a cell
    distinct = np.unique(values)
    middle = (distinct[:-1] + distinct[1:]) / 2.0
    places = np.unique(np.linspace(0, len(middle) - 1, min(n_bins - 1, len(middle))).astype(int)) if len(middle) else []
    cuts = tuple(middle[places].tolist())
    grid = NumberGrid.of(values, np.ones(len(values)), cuts)
    grid.check_against(len(cuts) + 1)
    assert_allclose(np.bincount(grid.code, grid.share, len(cuts) + 1), 1.0)


def test_a_cut_within_a_cell_of_tenths_splits_it():
    numbers = np.repeat([-1.7, -1.3, -1.2, -1.1, -0.7, 0.0], [1, 1, 1, 1, 1, 447])
    grid = NumberGrid.of(numbers, np.ones(len(numbers)), (-1.5, -1.25, -1.15, -0.9, -0.35))
    grid.check_against(6)
