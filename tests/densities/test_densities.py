"""Laws that every density obeys, and the oracles of each."""

import dataclasses
import importlib
import inspect
import pkgutil
from collections.abc import Callable

import numpy as np
import pytest
import scipy.integrate
import scipy.stats
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
import posteriori.densities
from examples.extending import density as recipe
from examples.extending.density import Exponential
from posteriori.checks import check_density
from posteriori.densities import (
    REGISTRY,
    Categorical,
    Gaussian,
    GaussianParameters,
    KnownLikelihoodDensity,
    MultivariateGaussian,
    MultivariateGaussianParameters,
    Poisson,
    PoissonParameters,
    Registration,
    named_densities,
    registry,
    stored_classes,
)
from posteriori.densities.covariances import Pooled, Regularized
from posteriori.statistics import Counts, Moments, Scatter
from posteriori.tables import Assignment, Codes, Numbers

Z = 3
CARDINALITIES = (2, 5, 1)


@dataclasses.dataclass(frozen=True)
class Cells:
    """The cells of which a density is tested: how n rows of three columns are drawn, and what a cell may be.

    `possible` is a range of codes or counts, over which a test sums, or the ends of an interval of real numbers, over
    which it integrates.
    """

    draw: Callable[[np.random.Generator, int], np.ndarray]
    possible: range | tuple[float, float]


CODES = Cells(
    lambda rng, n: np.column_stack([rng.integers(1, k + 1, n) for k in CARDINALITIES]).astype(np.uint8),
    range(1, CARDINALITIES[1] + 1),  # of the second column
)
NUMBERS = Cells(lambda rng, n: rng.normal(5, 3, (n, 3)), (-200, 200))
CORRELATED = Cells(lambda rng, n: rng.normal(5, 3, (n, 1)) + rng.normal(0, [1, 2, 3], (n, 3)), (-200, 200))
EVENTS = Cells(lambda rng, n: rng.poisson(4, (n, 3)).astype(float), range(200))
WAITS = Cells(lambda rng, n: rng.exponential(4, (n, 3)), (0, 400))

# A new density is added here: the tests marked `every_density` follow from its entry.
DENSITIES = {
    Gaussian(): NUMBERS,
    Gaussian(0.0, ddof=1): NUMBERS,
    Gaussian(np.inf): NUMBERS,
    Gaussian(predictive=True): NUMBERS,
    MultivariateGaussian(): CORRELATED,
    MultivariateGaussian(predictive=True): CORRELATED,
    MultivariateGaussian(Pooled(ddof=1)): CORRELATED,
    MultivariateGaussian(Regularized(0.5)): CORRELATED,
    Poisson(): EVENTS,
    Categorical(): CODES,
    Categorical(0.0): CODES,
    Exponential(): WAITS,
}
BY_NAME = {density.name: cells for density, cells in DENSITIES.items()}
every_density = pytest.mark.parametrize("density", DENSITIES, ids=repr)


def draw_tile(density, rng, n, missing=0.2):
    values = BY_NAME[density.name].draw(rng, n)
    is_code = density.kind == "categorical"
    values[rng.random(values.shape) < missing] = 0 if is_code else np.nan
    return Codes(values, CARDINALITIES) if is_code else Numbers(values)


def fitted(density, n=200, seed=0, missing=0.2):
    rng = np.random.default_rng(seed)
    tile = draw_tile(density, rng, n, missing)
    assignment = Assignment(rng.integers(0, Z, n).astype(np.int32), np.ones(n), Z)
    return density.estimate(density.sufficient_statistics.of(tile, assignment)), tile, assignment


@every_density
def test_it_obeys_the_laws(density):
    missing = 0.0 if density.sufficient_statistics is Scatter else 0.2
    assert check_density(density, draw_tile(density, np.random.default_rng(0), 200, missing).values)


@pytest.mark.parametrize(
    "density", [Gaussian(), Categorical(0.5), MultivariateGaussian(), MultivariateGaussian(Pooled())]
)
@pytest.mark.parametrize("offset", [0.0, 1e9])
def test_exact_statistics_tell_the_likelihood_of_their_rows(density, offset):
    missing = 0.0 if density.sufficient_statistics is Scatter else 0.2
    rng = np.random.default_rng(1)
    parameters = density.estimate(density.sufficient_statistics.of(*moved(density, rng, 200, missing, offset)))
    tile, assignment = moved(density, rng, 90, missing, offset)
    own = density.log_density(parameters, tile)[np.arange(90), assignment.component]
    statistics = density.sufficient_statistics.of(tile, assignment)
    assert statistics.is_exact()
    assert isinstance(density, KnownLikelihoodDensity)
    assert_allclose(density.log_likelihood(parameters, statistics), assignment.weight @ own, rtol=1e-6)


def moved(density, rng, n, missing, offset):
    """Return rows far from 0, where they are numbers, and their components, with weights."""
    tile = draw_tile(density, rng, n, missing)
    if isinstance(tile, Numbers):
        tile = Numbers(tile.values + offset)
    return tile, Assignment((np.arange(n) % Z).astype(np.int32), rng.integers(0, 3, n).astype(float), Z)


@every_density
def test_a_missing_cell_is_summed_or_integrated_out(density):
    parameters, tile, _ = fitted(density)
    row = draw_tile(density, np.random.default_rng(1), 1, missing=0.0).values
    with_gap = row.copy()
    with_gap[0, 1] = 0 if density.kind == "categorical" else np.nan

    def likelihood(cell):
        complete = row.copy()
        complete[0, 1] = cell
        return np.exp(density.log_density(parameters, type(tile)(complete, *tail)))[0]

    tail = (tile.cardinalities,) if density.kind == "categorical" else ()
    marginal = np.exp(density.log_density(parameters, type(tile)(with_gap, *tail)))[0]
    possible = DENSITIES[density].possible
    if isinstance(possible, range):
        total = sum(likelihood(cell) for cell in possible)
    else:
        total = scipy.integrate.quad_vec(likelihood, *possible, epsrel=1e-9, points=[5.0])[0]
    assert_allclose(marginal, total, rtol=1e-6)


@every_density
def test_rows_drawn_give_the_parameters_back(density):
    parameters, tile, _ = fitted(density, missing=0.0)
    rng = np.random.default_rng(7)
    component = rng.integers(0, Z, 60_000).astype(np.int32)
    drawn = density.sample(parameters, component, rng)
    redrawn = Codes(drawn.astype(np.uint8), CARDINALITIES) if density.kind == "categorical" else Numbers(drawn)
    again = density.estimate(
        density.sufficient_statistics.of(redrawn, Assignment(component, np.ones(len(component)), Z))
    )
    before, after = density.log_factors(parameters, tile), density.log_factors(again, tile)
    # Standard errors of means of 20,000 rows, some of them seen from two standard deviations away.
    assert_allclose(np.exp(after), np.exp(before), rtol=0.1, atol=0.01)


# Gaussian -----------------------------------------------------------------------------------------------------


def test_gaussian_against_scipy():
    parameters, tile, _ = fitted(Gaussian())
    normal = scipy.stats.norm(parameters.mean, np.sqrt(parameters.variance))
    expected = normal.logpdf(tile.values[:, np.newaxis, :])
    assert_allclose(
        Gaussian().log_density(parameters, tile),
        np.where(np.isnan(expected), 0, expected).sum(axis=2),
        rtol=1e-10,
    )


@given(st.floats(0, 1e3), st.sampled_from([0, 1]))
def test_gaussian_variance_is_the_stated_formula(smoothing, ddof):
    parameters, tile, assignment = fitted(Gaussian(smoothing, ddof), n=40)
    x, z = tile.values, assignment.component
    for j in range(3):
        groups = [x[(z == k) & ~np.isnan(x[:, j]), j] for k in range(Z)]
        scatter = np.array([((g - g.mean()) ** 2).sum() for g in groups])
        degrees = np.array([len(g) for g in groups]) - ddof
        pooled = scatter.sum() / degrees.sum()
        expected = (scatter + smoothing * pooled) / (degrees + smoothing)
        assert_allclose(parameters.variance[:, j], expected, rtol=1e-9)
        assert_allclose(parameters.mean[:, j], [g.mean() for g in groups], rtol=1e-9)


def test_gaussian_smoothing_ends_at_own_and_at_shared_variance():
    own, tile, assignment = fitted(Gaussian(0.0))
    shared, _, _ = fitted(Gaussian(np.inf))
    statistics = Moments.of(tile, assignment)
    assert_allclose(own.variance, statistics.scatter / statistics.weight)
    within = statistics.scatter.sum(axis=0) / statistics.weight.sum(axis=0)
    assert_allclose(shared.variance, np.tile(within, (Z, 1)))
    assert Gaussian(np.inf).n_parameters(shared) == Z * 3 + 3
    assert Gaussian(0.0).n_parameters(own) == 2 * Z * 3


@given(st.floats(-9, 9), st.floats(-1e9, 1e9))
def test_gaussian_estimates_move_and_scale_with_the_column(log_scale, offset):
    scale = 10.0**log_scale
    rng = np.random.default_rng(0)
    x = rng.normal(size=(30, 1))
    assignment = Assignment(rng.integers(0, Z, 30).astype(np.int32), np.ones(30), Z)
    moved = scale * x + offset * scale
    a = Gaussian().estimate(Moments.of(Numbers(x), assignment))
    b = Gaussian().estimate(Moments.of(Numbers(moved), assignment))
    assert_allclose(b.variance, scale**2 * a.variance, rtol=1e-4)
    odds_a, odds_b = (np.diff(Gaussian().log_density(p, Numbers(v)), axis=1) for p, v in ((a, x), (b, moved)))
    assert_allclose(odds_a, odds_b, atol=1e-4)


def test_gaussian_degenerate_columns_stay_finite():
    # constant everywhere; constant within each class; one row in a class; never seen in a class
    x = np.array([[1, 0, 5, 1], [1, 0, 6, 2], [1, 9, 7, 3], [1, 9, 9, 4], [1, 3, 2, np.nan]], dtype=float)
    assignment = Assignment(np.array([0, 0, 1, 1, 2], np.int32), np.ones(5), Z)
    for smoothing in (0.0, 1.0, np.inf):
        for ddof in (0, 1):
            parameters = Gaussian(smoothing, ddof).estimate(Moments.of(Numbers(x), assignment))
            assert np.isfinite(parameters.mean).all()
            assert (parameters.variance > 0).all()
            density = Gaussian().log_density(parameters, Numbers(x + 100))
            assert np.isfinite(density).all()
            constant = Gaussian().log_factors(parameters, Numbers(x + 3.0))[:, :, 0]
            assert_array_equal(constant, constant[:, :1].repeat(Z, axis=1))


def test_gaussian_float32_tiles_are_read_as_they_are():
    parameters = GaussianParameters(np.zeros((2, 4)), np.ones((2, 4)))
    x = np.random.default_rng(0).normal(size=(20, 4)).astype(np.float32)
    assert_allclose(
        Gaussian().log_density(parameters, Numbers(x)),
        Gaussian().log_density(parameters, Numbers(x.astype(np.float64))),
        rtol=1e-12,
    )


# Poisson ------------------------------------------------------------------------------------------------------


def test_poisson_against_scipy():
    parameters, tile, _ = fitted(Poisson())
    expected = scipy.stats.poisson(parameters.rate).logpmf(tile.values[:, np.newaxis, :])
    factors = np.where(np.isnan(tile.values)[:, np.newaxis, :], 0, expected)
    expected = factors.sum(axis=2)
    assert_allclose(Poisson().log_density(parameters, tile), expected, rtol=1e-10)
    assert_allclose(Poisson().log_factors(parameters, tile), factors, rtol=1e-10)


def test_poisson_rate_is_the_stated_formula():
    parameters, tile, assignment = fitted(Poisson(2.5))
    x, z = tile.values, assignment.component
    for j in range(3):
        for k in range(Z):
            mine = x[(z == k) & ~np.isnan(x[:, j]), j]
            expected = (mine.sum() + 2.5 * np.nanmean(x[:, j])) / (len(mine) + 2.5)
            assert_allclose(parameters.rate[k, j], expected)


def test_poisson_impossible_counts_have_density_zero_not_nan():
    parameters = PoissonParameters(np.array([[0.0], [2.0]]))
    log_density = Poisson().log_density(parameters, Numbers(np.array([[0.0], [3.0]])))
    assert_allclose(log_density, [[0.0, -2.0], [-np.inf, scipy.stats.poisson(2).logpmf(3)]])
    assert_allclose(log_density, Poisson().log_factors(parameters, Numbers(np.array([[0.0], [3.0]])))[:, :, 0])


def test_poisson_no_events_at_all_leave_an_event_possible():
    statistics = Moments.of(
        Numbers(np.zeros((6, 1))), Assignment(np.array([0, 0, 0, 1, 1, 2], np.int32), np.ones(6), Z)
    )
    assert (Poisson().estimate(statistics).rate > 0).all()
    assert (Poisson(0.0).estimate(statistics).rate == 0).all()


# Categorical --------------------------------------------------------------------------------------------------


@given(st.floats(0, 10))
def test_categorical_probability_is_the_stated_formula(alpha):
    parameters, tile, assignment = fitted(Categorical(alpha))
    for j, cardinality in enumerate(CARDINALITIES):
        for z in range(Z):
            codes = tile.values[assignment.component == z, j]
            counts = np.bincount(codes, minlength=cardinality + 1)[1:]
            expected = (counts + alpha) / (counts.sum() + cardinality * alpha)
            with np.errstate(divide="ignore"):
                assert_allclose(parameters.column(j)[z], np.log(expected), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("n_components", [1, 2, 3, 4, 5, 8, 9])
def test_categorical_lookup_for_any_number_of_components(n_components):
    rng = np.random.default_rng(0)
    counts = Counts.of(
        Codes(rng.integers(0, 3, (90, 7)).astype(np.uint8), (2,) * 7),
        Assignment(rng.integers(0, n_components, 90).astype(np.int32), np.ones(90), n_components),
    )
    parameters = Categorical().estimate(counts)
    tile = Codes(rng.integers(0, 3, (20, 7)).astype(np.uint8), (2,) * 7)
    assert_allclose(
        Categorical().log_density(parameters, tile),
        Categorical().log_factors(parameters, tile).sum(axis=2),
        rtol=1e-12,
    )


def test_an_unseen_component_takes_the_frequencies_of_all():
    counts = Counts.of(
        Codes(np.array([[1], [1], [2]], np.uint8), (2,)), Assignment(np.zeros(3, np.int32), np.ones(3), 2)
    )
    assert_allclose(np.exp(Categorical(0.0).estimate(counts).column(0)[1]), [2 / 3, 1 / 3])
    assert_allclose(np.exp(Categorical(1.0).estimate(counts).column(0)[1]), [1 / 2, 1 / 2])


def test_the_recipe_is_a_whole_density_in_under_100_lines():
    classes = (recipe.Totals, recipe.ExponentialParameters, recipe.Exponential)
    assert sum(len(inspect.getsource(one).splitlines()) for one in classes) < 100


def test_the_recipe_works_in_a_model():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = rng.exponential(np.array([1.0, 6.0])[y]).reshape(-1, 1)
    model = po.NaiveBayes(distributions={0: Exponential()}).fit(X, y)
    means = [(X[y == k].sum() + X.mean()) / ((y == k).sum() + 1) for k in (0, 1)]
    expected = np.column_stack([scipy.stats.expon(scale=mean).logpdf(X[:, 0]) for mean in means])
    assert_allclose(model.predict_joint_log_proba(X) - model.class_log_prior_, expected, rtol=1e-9)
    with pytest.raises(ValueError, match=r"column 'x0' holds -1 in row 1.*exponential: a waiting time"):
        model.predict([[1.0], [-1.0]])


@pytest.mark.parametrize("shape", ["full", "diagonal", "spherical"])
def test_gaussian_coordinates_are_reversible_and_ignore_units(shape):
    rng = np.random.default_rng(0)
    root = rng.normal(size=(2, 3, 3))
    covariance = {
        "full": root @ root.transpose(0, 2, 1),
        "diagonal": np.eye(3) * rng.uniform(1, 2, (2, 1, 3)),
        "spherical": np.eye(3) * rng.uniform(1, 2, (2, 1, 1)),
    }[shape]
    density, start = MultivariateGaussian(), MultivariateGaussianParameters(rng.normal(size=(2, 3)), covariance)
    other = MultivariateGaussianParameters(start.mean + 1.0, 2.0 * covariance)
    statistics = Scatter.of(Numbers(rng.normal(size=(50, 3))), Assignment(np.zeros(50, np.int32), np.ones(50), 2))
    position = density.to_unconstrained(other, start)
    back = density.from_unconstrained(position, start, statistics)
    assert_allclose(back.mean, other.mean)
    assert_allclose(back.covariance, other.covariance, atol=1e-12)
    halfway = density.from_unconstrained(0.5 * position, start, statistics)
    assert_allclose(halfway.mean, start.mean + 0.5)
    assert ((halfway.covariance != 0) == (covariance != 0)).all()
    unit = np.array([1e3, 1.0, 1e-3])
    scaled = [
        MultivariateGaussianParameters(one.mean * unit, one.covariance * np.outer(unit, unit)) for one in (other, start)
    ]
    assert_allclose(density.to_unconstrained(*scaled), position, atol=1e-12)


# The registration ---------------------------------------------------------------------------------------------------


def density_classes():
    """Yield the densities that the modules of the package define."""
    package = posteriori.densities
    for module in pkgutil.iter_modules(package.__path__, f"{package.__name__}."):
        for value in vars(importlib.import_module(module.name)).values():
            if isinstance(value, type) and dataclasses.is_dataclass(value) and hasattr(value, "log_density"):
                yield value


def test_every_density_of_the_package_is_registered_once():
    registered = [entry.density for entry in REGISTRY]
    own = {kind for kind in density_classes() if hasattr(kind, "fitted")}
    assert len(set(registered)) == len(registered)
    assert set(registered) == own
    assert len({kind.name for kind in registered}) == len(registered)


def test_the_names_of_stored_classes_are_unique():
    kinds = set(stored_classes())
    assert len({kind.__name__ for kind in kinds}) == len(kinds)
    assert all(dataclasses.is_dataclass(kind) for kind in kinds)


def test_registered_options_are_fields_and_parameters():
    parameters = po.NaiveBayes().get_params()
    for entry in REGISTRY:
        assert set(entry.options or ()) <= {field.name for field in dataclasses.fields(entry.density)}
        assert set((entry.options or {}).values()) <= set(parameters)


@pytest.mark.parametrize("name", sorted(named_densities(po.NaiveBayes())))
def test_a_registered_name_is_accepted_and_read_back(name, tmp_path):
    rng = np.random.default_rng(0)
    X = rng.poisson(4, (60, 2)).astype(float)
    kind = named_densities(po.NaiveBayes())[name].kind
    if kind == "categorical":
        X = X.astype(str).astype(object)
    y = np.arange(60) % 2
    model = po.NaiveBayes(distributions=dict.fromkeys(range(2), name), bins=3).fit(X, y)
    assert name in {block.density.name for block in model.model_.blocks}
    po.save(model, tmp_path / "model.posteriori")
    assert_array_equal(po.load(tmp_path / "model.posteriori").predict_proba(X), model.predict_proba(X))


def test_one_entry_makes_a_density_known_by_name(monkeypatch):
    entry = Registration(Exponential, options={"smoothing": "alpha"})
    monkeypatch.setattr(registry, "REGISTRY", (*REGISTRY, entry))
    X = np.random.default_rng(0).exponential([1.0, 4.0], (50, 2))
    y = np.arange(50) % 2
    by_name = po.NaiveBayes(distributions="exponential", alpha=2.5).fit(X, y)
    given = po.NaiveBayes(distributions=dict.fromkeys(range(2), Exponential(2.5))).fit(X, y)
    assert_array_equal(by_name.predict_proba(X), given.predict_proba(X))
