"""Cells within bins: every bin has some, whatever the numbers and the cut points are."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

from posteriori.joint.grids import NumberGrid
from posteriori.model.predictive import PredictiveDensity

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


# Numbers beyond the rows, and the unit -------------------------------------------------------------------------------


def grid_of(values, n_bins):
    """Return a grid with bins of about equal weight."""
    distinct = np.unique(values)
    ends = np.unique(np.quantile(values, np.linspace(0, 1, n_bins + 1)[1:-1], method="inverted_cdf"))
    places = np.searchsorted(distinct, ends)
    places = places[places > 0]
    return NumberGrid.of(
        values, np.ones(len(values)), tuple((distinct[places - 1] / 2 + distinct[places] / 2).tolist())
    )


def density_of(grid, values):
    """Return the density of all numbers: the bins have the shares of the rows."""
    of_bins = np.bincount(grid.code[grid.cells.nearest(values)], minlength=grid.code[-1] + 1) / len(values)
    return PredictiveDensity(grid.cells, grid.probability(of_bins[np.newaxis]))


@pytest.mark.parametrize("n", [60, 200, 2000])
@pytest.mark.parametrize("kind", ["skewed", "few", "counts", "heavy"])
def test_mean_and_deviation_are_those_of_the_rows(n, kind):
    rng = np.random.default_rng(n)
    values = {
        "skewed": rng.lognormal(0, 1.2, n),
        "few": rng.integers(0, 3, n).astype(float),
        "counts": -rng.poisson(3, n).astype(float),
        "heavy": rng.standard_t(3, n),
    }[kind]
    density = density_of(grid_of(values, 16 if n < 500 else 64), values)
    assert abs(density.mean[0] - values.mean()) < 0.06 * values.std()
    assert_allclose(density.std[0], values.std(), rtol=0.15)


def test_numbers_beyond_the_rows_are_rare_and_not_impossible():
    values = np.random.default_rng(0).lognormal(0, 1, 500)
    grid = grid_of(values, 16)
    beyond = np.array([values.max() * factor for factor in (1.01, 2, 10, 1e9)])
    found, known = grid.log_within(beyond), grid.log_within(values)
    assert np.isfinite(found).all()
    assert (np.diff(found) <= 0).all()
    assert found[0] <= known.min()
    assert density_of(grid, values).cdf(values.max())[0] > 1 - 0.2 / len(values)


@pytest.mark.parametrize(
    ("values", "unit"),
    [
        (np.arange(1, 13), 1.0),
        (np.arange(-60, 40) / 10, 0.1),
        (np.arange(40) * 0.25, 0.25),
        (np.random.default_rng(0).integers(10**8, 10**9, 200), 1.0),
        (np.round(np.random.default_rng(0).lognormal(10, 2, 200), 2), 0.01),
        (2**62 + np.random.default_rng(0).integers(-(2**61), 2**61, 200), 1.0),
        (np.random.default_rng(0).normal(size=200), 0.0),
        (1e12 + np.random.default_rng(0).random(50), 0.0),
    ],
)
def test_the_unit_of_numbers_is_found(values, unit):
    values = np.asarray(values, np.float64)
    assert grid_of(values, 8).unit == pytest.approx(unit)


@given(
    st.lists(st.integers(-(10**10), 10**10) | st.integers(-9, 9), min_size=2, max_size=60),
    st.sampled_from([1, 10, 1000]),
    st.integers(1, 9),
    st.data(),
)
def test_drawn_numbers_are_on_the_grid_and_in_intervals(whole, parts, n_bins, data):
    values = np.array(whole) / parts
    grid = grid_of(values, n_bins)
    low, high = sorted(data.draw(st.tuples(st.sampled_from(whole), st.sampled_from(whole))))
    interval = (low / parts, high / parts)
    possible = np.flatnonzero(grid.of_findings([interval]))
    code = np.random.default_rng(0).choice(possible, 200)
    drawn = grid.draw(code, np.random.default_rng(0), [interval])
    assert ((drawn >= interval[0]) & (drawn <= interval[1])).all()
    assert (drawn == np.rint(drawn * parts) / parts).all()
