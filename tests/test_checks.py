"""The checks for authors of densities and models: that they pass, and that each finds what breaks it."""

import dataclasses

import numpy as np
import pytest

import posteriori as po
from examples.extending.density import Exponential
from posteriori.checks import check_density, check_model
from posteriori.datasets import load_penguins
from posteriori.densities import Categorical, Gaussian, Missingness, MultivariateGaussian, Poisson
from posteriori.densities.covariances import Pooled


def numbers(missing=0.1):
    rng = np.random.default_rng(0)
    cells = rng.normal(3.0, 2.0, (90, 3))
    cells[rng.random(cells.shape) < missing] = np.nan
    return cells


@pytest.mark.parametrize(
    ("density", "cells"),
    [
        (Gaussian(), numbers()),
        (MultivariateGaussian(), numbers(0.0)),
        (MultivariateGaussian(Pooled()), numbers(0.0)),
        (Poisson(), np.random.default_rng(0).poisson(3.0, (90, 2)).astype(float)),
        (Categorical(), np.random.default_rng(0).integers(0, 4, (90, 3))),
    ],
    ids=lambda value: value.name if hasattr(value, "name") else "",
)
def test_densities_of_the_library_obey_the_laws(density, cells):
    laws = check_density(density, cells)
    assert "a row of weight 2 counts as two equal rows" in laws
    assert "drawn cells are present and in the support" in laws
    assert ("left_out is the log density under the parameters of the other rows" in laws) == hasattr(
        density, "left_out"
    )


@dataclasses.dataclass(frozen=True)
class Shifted(Gaussian):
    def log_factors(self, parameters, tile):
        return super().log_factors(parameters, tile) + 0.1


@dataclasses.dataclass(frozen=True)
class Wrong(Gaussian):
    """A Gaussian whose sampler leaves cells out."""

    def sample(self, parameters, component, rng):
        return np.full((len(component), 3), np.nan)


def test_a_density_that_breaks_a_law_is_found():
    with pytest.raises(AssertionError, match="the log density of a row is the sum of its log factors"):
        check_density(Shifted(), numbers())
    with pytest.raises(AssertionError, match="drawn cells are present and in the support"):
        check_density(Wrong(), numbers())


def waits():
    return np.random.default_rng(0).exponential(4.0, (120, 2))


def counts():
    return np.random.default_rng(0).poisson(3.0, (120, 2)).astype(float)


def log_factors_with_a_flipped_normaliser(self, parameters, tile):
    x = tile.values[:, np.newaxis, :]
    return np.where(np.isnan(x), 0.0, -x / parameters.mean + np.log(parameters.mean))


def log_factors_with_a_flipped_rate(self, parameters, tile):
    present = ~np.isnan(tile.values)[:, np.newaxis, :]
    return Poisson.log_factors(self, parameters, tile) + 2.0 * parameters.rate * present


def of_factors(self, parameters, tile):
    return self.log_factors(parameters, tile).sum(axis=2)


def terms_times(factor):
    def linear_terms(self, parameters, columns):
        linear = Exponential.linear_terms(self, parameters, columns)
        return dataclasses.replace(linear, terms=[(j, of, factor * weights) for j, of, weights in linear.terms])

    return linear_terms


WRONG = {
    "a flipped normaliser": (
        Exponential,
        waits,
        {"log_factors": log_factors_with_a_flipped_normaliser},
        "the mean of p",
    ),
    "a flipped rate": (
        Poisson,
        counts,
        {"log_factors": log_factors_with_a_flipped_rate, "log_density": of_factors},
        "the mean of p",
    ),
    "draws of zeros": (Exponential, waits, {"sample": lambda s, p, z, rng: np.zeros((len(z), 2))}, "the mean of p"),
    "draws of one component": (
        Exponential,
        waits,
        {"sample": lambda s, p, z, rng: Exponential.sample(s, p, np.zeros_like(z), rng)},
        "the mean of p",
    ),
    "a support of everything": (
        Exponential,
        waits,
        {"out_of_support": lambda s, tile: np.zeros(tile.values.shape, bool)},
        "has_full_support agrees",
    ),
    "a support of all finite numbers": (
        Exponential,
        waits,
        {"out_of_support": lambda s, tile: np.isinf(tile.values), "has_full_support": True},
        "far from all rows",
    ),
    "a full support that is none": (Exponential, waits, {"has_full_support": True}, "has_full_support agrees"),
    "wrong linear terms": (Exponential, waits, {"linear_terms": terms_times(-1.0)}, "the differences of linear_terms"),
    "rows that are not left out": (
        Poisson,
        counts,
        {"left_out": lambda s, p, sums, tile, z: s.log_factors(p, tile)},
        "left_out is the log density",
    ),
}


@pytest.mark.parametrize("fault", WRONG)
def test_a_wrong_density_is_found(fault):
    base, cells, methods, law = WRONG[fault]
    check_density(base(), cells())
    wrong = dataclasses.dataclass(frozen=True)(type("Wrong", (base,), methods))
    with pytest.raises(AssertionError, match=f"this law does not hold: .*{law}"):
        check_density(wrong(), cells())


@pytest.mark.parametrize(
    ("density", "cells", "said"),
    [
        (Gaussian(), np.ones(90), r"cells have the shape \(90,\); give rows and columns"),
        (Gaussian(), np.ones((5, 2)), "cells have 5 rows; give at least 30"),
        (Gaussian(), np.full((90, 1), "a"), "cells are of type <U1; give numbers, or codes"),
        (Poisson(), np.full((90, 1), -1.0), "cells hold -1 in row 0, column 0, which the density 'poisson' cannot"),
        (Categorical(), np.full((90, 1), -1), "cells hold -1; give codes of categories"),
        (Categorical(), np.full((90, 1), 1.5), r"cells hold 1\.5; give codes of categories"),
        (Categorical(-1.0), np.ones((90, 1)), r"alpha is -1\.0; it must be from 0"),
        (Missingness(), np.ones((90, 1)), "is of kind 'mixed', and check_density checks those of kind"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_cells_that_cannot_be_checked_are_named(density, cells, said):
    with pytest.raises(ValueError, match=said):
        check_density(density, cells)


@pytest.mark.parametrize(
    "model",
    [
        po.NaiveBayes(),
        po.GaussianDiscriminant(),
        po.TreeAugmentedNaiveBayes(),
        po.GenerativeForest(n_trees=5),
        po.GenerativeClassifier(members=["nb", "tan"], folds=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_models_of_the_library_obey_the_laws(model):
    penguins = load_penguins().drop_nulls("species").head(120)
    X = (
        penguins.drop("species")
        if not isinstance(model, po.GaussianDiscriminant)
        else penguins.select("bill_length_mm", "bill_depth_mm")
    )
    laws = check_model(model, X, penguins["species"])
    assert "a row without cells has the class prior" in laws


class Careless(po.NaiveBayes):
    def predict_proba(self, X):
        return super().predict_proba(X) * 0.9


def test_a_model_that_breaks_a_law_is_found():
    penguins = load_penguins().drop_nulls("species")
    with pytest.raises(AssertionError, match=r"p\(y \| x\) is a distribution"):
        check_model(Careless(), penguins, "species")
