"""Densities of a number: laws over intervals, atoms, gaps and points, against enumerations and other formulas."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.model.predictive import NumberCells, PredictiveDensity

N = 4
LEVELS = np.array([0.0, 1e-9, 0.05, 0.3, 0.5, 0.8, 0.95, 1.0])


@st.composite
def intervals(draw):
    """Draw intervals and atoms, which may touch or leave gaps."""
    low, high, end = [], [], draw(st.sampled_from([-3.7, 0.0, 12.5]))
    for _ in range(draw(st.integers(1, 6))):
        atom, gap = draw(st.booleans()), draw(st.sampled_from([0.0, 0.0, 0.75]))
        if atom and low and low[-1] == high[-1] == end:  # no two atoms at one point
            gap = 0.75
        low.append(end + gap)
        high.append(low[-1] if atom else low[-1] + draw(st.sampled_from([0.1, 0.5, 3.0])))
        end = high[-1]
    return NumberCells(np.array(low), np.array(high))


@st.composite
def points(draw):
    """Draw cells of points that are a step apart, which may leave gaps."""
    low, high, end = [], [], draw(st.integers(-7, 7))
    for _ in range(draw(st.integers(1, 6))):
        low.append(end + 1 + draw(st.sampled_from([0, 0, 3])))
        end = low[-1] + draw(st.integers(0, 4))
        high.append(end)
    step = draw(st.sampled_from([1.0, 0.1, 2.5]))
    return NumberCells(np.array(low) * step, np.array(high) * step, step)


def probabilities(cells, seed, n=N):
    """Return random rows, some of whose probabilities are 0."""
    rng = np.random.default_rng(seed)
    weight = rng.gamma(0.7, size=(n, len(cells))) * (rng.random((n, len(cells))) < 0.8)
    weight[np.arange(n), rng.integers(0, len(cells), n)] += 0.1
    return weight / weight.sum(axis=1, keepdims=True)


@st.composite
def densities(draw):
    cells = draw(st.one_of(intervals(), points()))
    cells.check()
    density = PredictiveDensity(cells, probabilities(cells, draw(st.integers(0, 10**6))))
    density.check()
    return density


def lattice(cells, g):
    return cells.low[g] + cells.step * np.arange(round((cells.high[g] - cells.low[g]) / cells.step) + 1)


def nodes(cells):
    """Return numbers and weights, with which sums of quadratics over the density are exact (Gauss-Legendre)."""
    pairs = []
    for g, (low, high) in enumerate(zip(cells.low, cells.high, strict=True)):
        if cells.step:
            pairs += [(y, 1.0) for y in lattice(cells, g)]
        elif low == high:
            pairs.append((low, 1.0))
        else:
            pairs += [((low + high) / 2 + s * (high - low) / 12**0.5, (high - low) / 2) for s in (-1, 1)]
    return np.array(pairs).T


def interesting(cells):
    """Return numbers inside cells, at their ends, beside these, in gaps and outside."""
    ends = np.concatenate([cells.low, cells.high])
    return np.concatenate([ends, ends - 0.03, ends + 0.03, cells.centre, [ends.min() - 5, ends.max() + 5]])


def at(method, numbers):
    """Return the results of a method for each number, (m, n)."""
    return np.stack([method(float(y)) for y in numbers])


@given(densities())
def test_the_density_sums_to_one_and_gives_mean_and_variance(density):
    y, weight = nodes(density.cells)
    mass = np.exp(at(density.log_prob, y)) * weight[:, np.newaxis]
    mean = (mass * y[:, np.newaxis]).sum(axis=0)
    assert_allclose(mass.sum(axis=0), 1.0, rtol=1e-12)
    assert_allclose(density.mean, mean, rtol=1e-11, atol=1e-11)
    assert_allclose(density.variance, (mass * (y[:, np.newaxis] - mean) ** 2).sum(axis=0), rtol=1e-10, atol=1e-13)
    assert_allclose(density.std**2, density.variance)
    assert_array_equal(density.cdf(density.cells.high[-1]), 1.0)


@given(densities())
def test_quantiles_are_the_inverse_of_the_cdf(density):
    quantiles = density.quantile(LEVELS)
    assert (np.diff(quantiles, axis=1) >= 0).all()
    for q, at_q in zip(LEVELS, quantiles.T, strict=True):
        assert (density.cdf(at_q) >= q - 1e-12).all()
        if q > 0:
            assert (density.probability_between(high=at_q - 1e-4) < q + 1e-12).all()
    for y in interesting(density.cells):
        below = density.cdf(y)
        for q, at_q in zip(LEVELS, quantiles.T, strict=True):
            assert_array_equal((at_q <= y + 1e-9)[q < below - 1e-12], True)
            assert_array_equal((at_q > y - 1e-9)[q > below + 1e-12], True)
    assert_array_equal(density.quantile(0.3), quantiles[:, 3])
    assert_array_equal(density.median, quantiles[:, 4])
    assert_allclose(density.interval(0.9), quantiles[:, [2, 6]], rtol=1e-9, atol=1e-12)


@given(densities())
def test_quantiles_are_numbers_of_cells_of_some_probability(density):
    found = density.quantile(LEVELS)
    for column in found.T:
        assert (density.cells.find(column) >= 0).all()
    lowest = density.quantile(0.0)
    assert_allclose(density.probability_between(high=lowest - 1e-4), 0.0)
    assert (density.probability_between(lowest - 1e-4, lowest + 1e-3) > 0).all()


@given(densities())
def test_the_cdf_is_the_sum_of_the_density(density):
    y, weight = nodes(density.cells)
    mass = np.exp(at(density.log_prob, y)) * weight[:, np.newaxis]
    for end in (density.cells.high, density.cells.low):
        for g, number in enumerate(end):
            if density.cells.step or end is density.cells.high:
                later = density.cells.low[g + 1 :]
                expected = mass[y <= number + 1e-9].sum(axis=0)
                if not len(later) or later[0] > number or density.cells.step:  # else the next cell is an atom there
                    assert_allclose(density.cdf(number), expected, atol=1e-12)


@given(densities())
def test_probabilities_of_ranges_add_up(density):
    ends = np.sort(interesting(density.cells))
    for low, high in pairwise(ends):
        whole = density.probability_between(high=high)
        assert_allclose(whole, density.cdf(high), atol=1e-12)
        at_low = density.probability_between(low, low)
        parts = density.cdf(low) + density.probability_between(low, high) - at_low
        assert_allclose(parts, whole, atol=1e-12)
        assert_allclose(density.probability_between(low) + density.cdf(low) - at_low, 1.0, atol=1e-12)
    assert_allclose(density.probability_between(), 1.0)
    assert_array_equal(density.probability_between(ends[-1], ends[0]), 0.0)
    assert_array_equal([density.cdf(np.inf), density.cdf(-np.inf)], [np.ones(N), np.zeros(N)])


def mean_distances(density, y):
    """Return E|Y − y|, by formulas of uniform distributions or by enumeration, (n,)."""
    cells, total = density.cells, np.zeros(len(density))
    for g, (low, high) in enumerate(zip(cells.low, cells.high, strict=True)):
        if cells.step:
            each = np.abs(lattice(cells, g) - y).mean()
        elif low < y < high:
            each = ((y - low) ** 2 + (high - y) ** 2) / 2 / (high - low)
        else:
            each = abs((low + high) / 2 - y)
        total += density.probability[:, g] * each
    return total


def mean_distances_of_pairs(density):
    """Return E|Y − Y′| of independent draws, (n,)."""
    cells, total, p = density.cells, np.zeros(len(density)), density.probability
    for g in range(len(cells)):
        for h in range(len(cells)):
            if cells.step:
                each = np.abs(lattice(cells, g)[:, np.newaxis] - lattice(cells, h)).mean()
            else:
                each = (cells.high[g] - cells.low[g]) / 3 if g == h else abs(cells.centre[g] - cells.centre[h])
            total += p[:, g] * p[:, h] * each
    return total


@given(densities())
def test_crps_is_the_mean_distance_minus_half_that_of_pairs(density):
    # Gneiting & Raftery 2007, equation 21
    half = mean_distances_of_pairs(density) / 2
    for y in interesting(density.cells):
        assert_allclose(density.crps(y), mean_distances(density, y) - half, rtol=1e-9, atol=1e-11)


@given(densities(), st.integers(0, 10**6))
def test_crps_and_log_loss_are_least_at_the_true_distribution(truth, seed):
    other = PredictiveDensity(truth.cells, probabilities(truth.cells, seed) * 0.9 + truth.probability * 0.1)
    y, weight = nodes(truth.cells)  # crps is a quadratic of y within a cell
    mass = np.exp(at(truth.log_prob, y)) * weight[:, np.newaxis]
    difference = mass * (at(other.crps, y) - at(truth.crps, y))
    assert (difference.sum(axis=0) >= -1e-12).all()
    held = mass > 0
    log_ratio = np.where(held, at(truth.log_prob, y) - np.where(held, at(other.log_prob, y), 0.0), 0.0)
    assert ((mass * np.where(held, log_ratio, 0.0)).sum(axis=0) >= -1e-12).all()


def test_crps_of_a_certain_number_is_the_distance_to_it():
    density = PredictiveDensity(NumberCells(np.array([1.0, 4.0]), np.array([1.0, 4.0])), np.array([[0.0, 1.0]]))
    assert_array_equal([density.crps(y)[0] for y in (4.0, 1.0, 10.0, 2.5, -np.inf)], [0.0, 3.0, 6.0, 1.5, np.inf])


def test_crps_of_a_die_is_exact():
    die = PredictiveDensity(NumberCells(np.array([1.0]), np.array([6.0]), 1.0), np.ones((1, 1)))
    for y in range(1, 7):
        squares = [(Fraction(k, 6) - (y <= k)) ** 2 for k in range(1, 6)]
        assert_allclose(die.crps(y), float(sum(squares)), rtol=1e-15)


def moved(density, scale, offset):
    """Return the density of scale · y + offset."""
    cells = density.cells
    ends = cells.low * scale + offset, cells.high * scale + offset
    return PredictiveDensity(NumberCells(*ends, cells.step * scale), density.probability)


@given(densities(), st.sampled_from([(1.0, 1e9), (1e-6, 0.0), (1e6, -1e9), (4.0, 100.0)]))
def test_units_and_offsets_move_each_answer(density, change):
    scale, offset = change
    other = moved(density, scale, offset)
    other.check()
    y, near = interesting(density.cells), 1e-6 * scale  # near: the rounding of the ends at 1e9
    for name in ("mean", "mode"):
        assert_allclose(getattr(other, name), getattr(density, name) * scale + offset, rtol=1e-15, atol=near)
    assert_allclose(other.std, density.std * scale, rtol=1e-5, atol=near)
    at_levels = density.quantile(LEVELS[1:-1])
    assert_allclose(other.quantile(LEVELS[1:-1]), at_levels * scale + offset, rtol=1e-15, atol=near)
    assert_allclose(at(other.crps, y * scale + offset), at(density.crps, y) * scale, rtol=1e-5, atol=near)
    inner = nodes(density.cells)[0]
    is_wide = (density.cells.high > density.cells.low) & (density.cells.step == 0)
    shift = np.log(scale) * is_wide[density.cells.find(inner), np.newaxis]
    assert_allclose(at(other.log_prob, inner * scale + offset), at(density.log_prob, inner) - shift, atol=1e-5)
    assert_allclose(at(other.cdf, inner * scale + offset), at(density.cdf, inner), atol=1e-5)


def test_variance_and_crps_keep_their_digits_at_a_large_offset():
    ends = np.arange(9.0) / 8  # exact also at 1e9
    near = PredictiveDensity(NumberCells(ends[:-1], ends[1:]), probabilities(range(8), 0))
    far = moved(near, 1.0, 2.0**30)
    assert_allclose(far.variance, near.variance, rtol=1e-13)
    assert_allclose(far.crps(2.0**30 + 0.3125), near.crps(0.3125), rtol=1e-13)
    assert_array_equal(far.mean, near.mean + 2.0**30)


def answers(density, y):
    """Return everything that a density answers about its rows, as one array per row."""
    of_y = [density.cdf(y), density.log_prob(y), density.crps(y), density.probability_between(y - 0.7, y)]
    alone = [density.mean, density.variance, density.std, density.median, density.mode]
    return np.column_stack([*of_y, *alone, density.quantile(LEVELS), density.interval()])


@pytest.mark.parametrize("step", [0.0, 1.0])
@pytest.mark.parametrize("order", ["C", "F"])
def test_rows_do_not_depend_on_those_beside_them(step, order):
    low = np.arange(0.0, 400.0, 2.0)
    cells = NumberCells(low, low + 1.0, step)
    p = np.asarray(probabilities(cells, 5, n=1500), order=order)
    density, y = PredictiveDensity(cells, p), np.random.default_rng(1).uniform(-5, 405, 1500).round(1)
    y[:500] = y[:500].round()
    together = answers(density, y)
    for row in (0, 3, 654, 655, 1499):  # also where blocks of rows meet
        assert_array_equal(answers(density[row], y[[row]])[0], together[row])
    some = np.array([1499, 3, 3, 700])
    assert_array_equal(answers(density[some], y[some]), together[some])
    assert_array_equal(answers(density[10:20], y[10:20]), together[10:20])
    mask = y > 200
    assert_array_equal(answers(density[mask], y[mask]), together[mask])


@pytest.mark.filterwarnings("error")
@given(densities())
def test_a_row_of_nan_is_nan_everywhere_and_changes_no_other(density):
    p = np.insert(density.probability, 1, np.nan, axis=0)
    with_gap, y = PredictiveDensity(density.cells, p), density.cells.centre[0]
    with_gap.check()
    found = answers(with_gap, np.full(N + 1, y))
    assert np.isnan(found[1]).all()
    assert_array_equal(np.delete(found, 1, axis=0), answers(density, np.full(N, y)))
    assert np.isnan(with_gap.log_prob(1e6)[1])
    assert np.isnan(with_gap.sample(3, 0)[1]).all()


@given(densities())
def test_y_of_nan_gives_nan(density):
    for method in (density.cdf, density.log_prob, density.crps, density.probability_between):
        assert_array_equal(method(np.nan), np.full(N, np.nan))
    mixed = np.array([np.nan, *density.cells.centre[:1].repeat(N - 1)])
    assert_array_equal(np.isnan(density.crps(mixed)), np.isnan(mixed))


@given(densities())
def test_draws_follow_the_cdf(density):
    draws = density.sample(4000, random_state=0)
    assert draws.shape == (N, 4000)
    for y in interesting(density.cells):
        share = (draws <= y + 1e-9).mean(axis=1)
        # Dvoretzky-Kiefer-Wolfowitz: exceeded with probability 2 exp(−2 · 4000 · 0.04²) < 1e-5 per row
        assert (np.abs(share - density.probability_between(high=y + 1e-9)) < 0.04).all()
    assert (density.cells.find(draws.ravel()) >= 0).all()
    assert_array_equal(draws, density.sample(4000, np.random.default_rng(0)))


@given(densities())
def test_each_cell_finds_its_own_numbers(density):
    cells = density.cells
    found = cells.find(nodes(cells)[0])
    of_each = [len(lattice(cells, g)) if cells.step else 1 + (cells.low[g] < cells.high[g]) for g in range(len(cells))]
    assert_array_equal(found, np.repeat(np.arange(len(cells)), of_each))
    y = interesting(cells)
    found, nearest = cells.find(y), cells.nearest(y)
    assert_array_equal(nearest[found >= 0], found[found >= 0])
    distance = np.maximum(np.maximum(cells.low - y[:, np.newaxis], y[:, np.newaxis] - cells.high), 0.0)
    assert_allclose(distance[np.arange(len(y)), nearest], distance.min(axis=1), atol=1e-12)
    assert_array_equal(np.isneginf(at(density.log_prob, y))[found < 0], True)


def test_atoms_hold_boundaries_and_gaps_hold_nothing():
    cells = NumberCells(np.array([-1.0, 0.0, 0.0, 2.0]), np.array([0.0, 0.0, 1.0, 3.0]))
    y = [-1.0, 0.0, 1e-300, 1.0, 1.4, 1.6, 2.0, 3.0, 3.1, np.nan, np.inf, -np.inf]
    assert_array_equal(cells.find(y), [0, 1, 2, 2, -1, -1, 3, 3, -1, -1, -1, -1])
    assert_array_equal(cells.nearest(y), [0, 1, 2, 2, 2, 3, 3, 3, 3, -1, 3, 0])
    density = PredictiveDensity(cells, np.array([[0.1, 0.2, 0.3, 0.4]]))
    assert_allclose(density.log_prob(0.0), np.log(0.2))
    assert_allclose([density.cdf(0.0)[0], density.cdf(-1e-12)[0]], [0.3, 0.1])
    assert_allclose(density.probability_between(0.0, 0.0), 0.2)


@pytest.mark.parametrize("step", [0.1, 0.01, 1 / 3])
def test_decimals_are_points_of_their_lattice(step):
    cells = NumberCells(np.array([0.0, 500 * step]), np.array([499 * step, 1e9 * step]), step)
    cells.check()
    k = np.array([0, 3, 7, 499, 500, 123_456_789, 10**9])
    assert_array_equal(cells.find(k * step), [0, 0, 0, 0, 1, 1, 1])
    assert_array_equal(cells.find((k + 0.5) * step), -1)
    density = PredictiveDensity(cells, np.array([[1.0, 0.0]]))
    assert_allclose([density.cdf(j * step)[0] for j in range(500)], (np.arange(500) + 1) / 500)
    points = np.arange(500) / round(1 / step)  # without the rounding of products: 0.3, and not 0.1 · 3
    assert_array_equal(density.quantile((np.arange(500) + 1) / 500)[0], points)


def test_points_need_not_be_multiples_of_the_step():
    density = PredictiveDensity(NumberCells(np.array([0.25]), np.array([3.25]), 1.0), np.ones((1, 1)))
    assert_array_equal(density.quantile([0.25, 0.5, 0.75, 1.0]), [[0.25, 1.25, 2.25, 3.25]])
    assert_array_equal(density.cells.find([0.25, 1.25, 1.0]), [0, 0, -1])


def test_quantiles_of_equal_atoms_do_not_leap_by_rounding():
    density = PredictiveDensity(NumberCells(np.arange(10.0), np.arange(10.0)), np.full((1, 10), 0.1))
    assert_array_equal(density.quantile(np.arange(1, 11) / 10)[0], np.arange(10.0))


@pytest.mark.parametrize(
    ("probability", "mode"),
    [
        ([0.5, 0.3, 0.2, 0.0], 0.0),  # the atoms hold half
        ([0.3, 0.1, 0.3, 0.3], 1.0),  # the lower one of two, of more than half
        ([0.3, 0.5, 0.1, 0.1], 0.5),
        ([0.1, 0.3, 0.6, 0.0], 1.5),  # the denser one
        ([0.0, 0.0, 0.0, 1.0], 4.0),
    ],
)
def test_the_mode_is_of_the_heaviest_atom_or_densest_interval(probability, mode):
    cells = NumberCells(np.array([0.0, 0.0, 1.0, 4.0]), np.array([0.0, 1.0, 2.0, 4.0]))
    if mode == 1.0:
        cells = NumberCells(np.array([0.0, 0.0, 1.0, 4.0]), np.array([0.0, 0.5, 1.0, 4.0]))
        probability = [0.2, 0.2, 0.3, 0.3]
    assert_array_equal(PredictiveDensity(cells, np.array([probability])).mode, [mode])


def test_the_mode_of_points_is_a_point():
    cells = NumberCells(np.array([1.0, 5.0]), np.array([4.0, 5.0]), 1.0)
    assert_array_equal(PredictiveDensity(cells, np.array([[0.9, 0.1], [0.7, 0.3]])).mode, [2.0, 5.0])


def test_no_rows_and_single_rows():
    cells = NumberCells(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
    density = PredictiveDensity(cells, np.array([[0.5, 0.5], [0.1, 0.9]]))
    assert len(density[-1]) == 1
    assert_array_equal(density[-1].probability, density.probability[1:])
    assert [len(one) for one in density] == [1, 1]
    empty = density[[]]
    assert answers(empty, np.empty(0)).shape[0] == len(empty) == 0
    assert empty.quantile([0.1, 0.9]).shape == (0, 2)
    assert empty.sample(3).shape == (0, 3)
    assert density.quantile([]).shape == (2, 0)


CELLS = NumberCells(np.array([0.0, 1.0]), np.array([1.0, 2.0]))
DENSITY = PredictiveDensity(CELLS, np.array([[0.5, 0.5], [0.1, 0.9], [1.0, 0.0]]), "price")


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: DENSITY.quantile(1.5), r"q is 1.5; give a number from 0 to 1"),
        (lambda: DENSITY.quantile([0.1, -0.2]), r"q is -0.2; "),
        (lambda: DENSITY.quantile(np.nan), r"q is nan; "),
        (lambda: DENSITY.quantile([[0.1]]), r"q is of shape \(1, 1\); "),
        (lambda: DENSITY.quantile("half"), r"q is 'half'; give numbers"),
        (lambda: DENSITY.interval(90), r"coverage is 90; give one number from 0 to 1"),
        (lambda: DENSITY.interval([0.5, 0.9]), r"coverage is \[0.5, 0.9\]; "),
        (lambda: DENSITY.cdf([1.0, 2.0]), r"y is of shape \(2,\), and there are 3 rows of 'price'"),
        (lambda: DENSITY.crps(np.ones((3, 1))), r"y is of shape \(3, 1\), and "),
        (lambda: DENSITY.log_prob(["a", "b", "c"]), r"y holds values of type <U1; give numbers"),
        (lambda: DENSITY.cdf("1.5"), r"y is '1.5'; "),
        (lambda: DENSITY.cdf(np.array(["2020"] * 3, "M8[D]")), r"y holds values of type datetime64"),
        (lambda: DENSITY.cdf(np.array([1.0, "x", None], object)), r"y holds values of type object"),
        (lambda: DENSITY.probability_between(high=[1.0]), r"high is of shape \(1,\), and "),
        (lambda: DENSITY.sample(0), r"size is 0; give the number of draws"),
        (lambda: DENSITY.sample(2.0), r"size is 2.0; "),
        (lambda: DENSITY.sample(True), r"size is True; "),
        (lambda: PredictiveDensity(CELLS, np.ones((2, 3)), "price"), r"of 'price' are of shape \(2, 3\); .* 2 cells"),
        (lambda: PredictiveDensity(CELLS, np.ones(2)), r"of 'y' are of shape \(2,\); "),
        (lambda: PredictiveDensity(CELLS, np.array([[0.5, 0.6]])).check(), r"does not sum to 1"),
        (lambda: PredictiveDensity(CELLS, np.array([[-0.5, 1.5]])).check(), r"has a negative one"),
        (lambda: PredictiveDensity(CELLS, np.array([[np.nan, 1.0]])).check(), r"a row of probabilities of 'y'"),
    ],
)
def test_wrong_questions_name_the_parameter(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize(
    ("low", "high", "step", "message"),
    [
        ([], [], 0.0, "no low end"),
        ([0.0, np.nan], [1.0, 2.0], 0.0, "low ends of cells"),
        ([0.0, 1.0], [1.0, np.inf], 0.0, "high ends of cells"),
        ([0.0], [1.0, 2.0], 0.0, r"of shape \(2,\)"),
        ([2.0], [1.0], 0.0, "ends below its low end"),
        ([0.0, 0.5], [1.0, 2.0], 0.0, "overlap"),
        ([1.0, 0.0], [2.0, 0.5], 0.0, "overlap or are not in ascending order"),
        ([1.0, 1.0], [1.0, 1.0], 0.0, "overlap"),  # one atom twice
        ([0.0], [1.0], -1.0, "the step of the cells is -1.0"),
        ([0.0], [1.0], np.nan, "the step of the cells is nan"),
        ([0.0], [1.5], 1.0, "a whole number of steps of 1"),
        ([0.0, 1.0], [1.0, 2.0], 1.0, "less than a step of 1 apart"),
        ([1e17], [1e17], 1.0, "lost in the rounding"),
    ],
)
def test_wrong_cells_are_named(low, high, step, message):
    with pytest.raises(ValueError, match=message):
        NumberCells(np.array(low), np.array(high), step).check()
