"""Hyperparameters of densities: `fit` refuses what `load` refuses, so that every model that is fitted can be stored."""

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_array_equal

import posteriori as po
from examples.extending import density as recipe
from posteriori.densities import REGISTRY, BackOff, Categorical, KDependence, MultivariateGaussian, registry
from posteriori.densities.covariances import PseudoRows, ShrinkToDiagonal

# the fields that have no default
NEEDED = {"smoothing": BackOff(), "ordered": (), "k": 1, "coarse": Categorical(), "columns": ()}
IMPOSSIBLE = (-5.0, -5, math.nan, math.inf, -math.inf, 1e308, 0.0, "x", True, [1.0], (math.nan,))


def rows(density):
    rng = np.random.default_rng(0)
    numbers = pl.DataFrame({"a": rng.poisson(3, 60) / 1.0, "b": 1.0 + rng.poisson(2, 60), "y": list("pqr") * 20})
    if density.kind in ("continuous", "counts"):
        return numbers
    return numbers.with_columns(pl.col("a", "b").cast(pl.Int64).cast(pl.String))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("entry", [*REGISTRY, recipe.EXPONENTIAL], ids=lambda entry: entry.density.name)
def test_what_fit_accepts_can_be_stored(entry, tmp_path, monkeypatch):
    monkeypatch.setattr(registry, "REGISTRY", (*REGISTRY, recipe.EXPONENTIAL))
    fields = dataclasses.fields(entry.density)
    default = entry.density(
        **{
            field.name: NEEDED[field.name]
            for field in fields
            if field.name in NEEDED and (field.default is dataclasses.MISSING)
        }
    )
    table, refused = rows(default), []
    for field in fields:
        is_number = isinstance(getattr(default, field.name), float)
        for value in (*IMPOSSIBLE, *([10**400] if is_number else [])):
            try:
                model = po.NaiveBayes(distributions=dataclasses.replace(default, **{field.name: value}))
                model.fit(table, "y")
            except ValueError as error:
                refused.append(str(error))
                continue
            po.save(model, tmp_path / "m.posteriori")
            again = po.load(tmp_path / "m.posteriori").predict_proba(table)
            assert_array_equal(again, model.predict_proba(table))
            assert not np.isnan(again).any()
    assert len(refused) >= 6
    assert not any("\n" in sentence for sentence in refused)


@pytest.mark.parametrize("value", [-5.0, math.nan, "x"])
@pytest.mark.parametrize(
    "density", [po.Gaussian, po.Poisson, recipe.Exponential, Categorical], ids=lambda kind: kind.__name__
)
def test_an_impossible_hyperparameter_is_named(density, value):
    (field, *_) = (field.name for field in dataclasses.fields(density))
    table = rows(density)
    said = f"the density {density.__name__} cannot be used: .*{field}.* is {value!r}.*; it must be "
    for fit in (
        po.NaiveBayes(distributions=density(value)).fit,
        po.NaiveBayes(distributions=density(value)).partial_fit,
    ):
        with pytest.raises(ValueError, match=said):
            fit(table, "y")
    with pytest.raises(ValueError, match=said.replace(" cannot", " of column 'b' cannot")):
        po.NaiveBayes(distributions={"b": density(value)}).fit(table, "y")


@pytest.mark.parametrize(
    ("density", "said"),
    [
        (KDependence(1, BackOff(-1.0)), "the density KDependence cannot be used: strength is -1.0; it must be from 0"),
        (MultivariateGaussian(PseudoRows(-1.0)), "cannot be used: the number of pseudo-rows is -1.0; it must be 0"),
        (po.Gaussian, r"the class Gaussian; give one of its densities, such as Gaussian\(\)"),
    ],
)
def test_the_parts_of_a_density_are_checked(density, said):
    with pytest.raises(ValueError, match=said):
        po.NaiveBayes(distributions=density).fit(rows(density), "y")


def test_an_impossible_share_of_shrinkage_is_refused():
    with pytest.raises(ValueError, match="the share of shrinkage is -1; it must be from 0 to 1"):
        po.GaussianDiscriminant(shrinkage=ShrinkToDiagonal(-1)).fit(rows(po.Gaussian()), "y")


def test_hyperparameters_are_checked_before_rows_are_read():
    with pytest.raises(ValueError, match=r"smoothing is -5\.0"):
        po.NaiveBayes(distributions=po.Poisson(-5.0)).fit("no such file.csv", "y")


def test_numbers_of_numpy_are_hyperparameters(tmp_path):
    table = rows(po.Gaussian())
    model = po.NaiveBayes(distributions=po.Gaussian(np.float32(2.0), np.int64(1), predictive=np.False_)).fit(table, "y")
    po.save(model, tmp_path / "m.posteriori")
    assert_array_equal(po.load(tmp_path / "m.posteriori").predict_proba(table), model.predict_proba(table))


@pytest.mark.parametrize("least", [(1.0, 2.0, 3.0), (-1.0, 1.0), (math.nan, 1.0)], ids=str)
@pytest.mark.parametrize("density", [po.Gaussian, MultivariateGaussian], ids=lambda kind: kind.__name__)
def test_a_least_variance_that_cannot_be_is_refused(density, least):
    with pytest.raises(ValueError, match="the least variances"):
        po.NaiveBayes(distributions=density(least_variance=least)).fit(rows(density()), "y")
