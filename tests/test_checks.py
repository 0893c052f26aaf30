"""The checks for authors of densities and models: that they pass, and that each finds what breaks it."""

import dataclasses

import numpy as np
import pytest

import posteriori as po
from posteriori.checks import check_density, check_model
from posteriori.datasets import load_penguins
from posteriori.densities import Categorical, Gaussian, MultivariateGaussian, Poisson
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
    assert len(laws) == 9


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
