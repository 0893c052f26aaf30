"""Models from given parameters: checks, and conversion to fitted models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.densities import (
    Categorical,
    CategoricalParameters,
    Gaussian,
    GaussianParameters,
    MultivariateGaussian,
    MultivariateGaussianParameters,
    Poisson,
    PoissonParameters,
)
from posteriori.densities.pooling import PerClass, Pooled
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.tables import Column, Schema
from posteriori.tables.columns import categorical_column
from posteriori.tables.objects import plain_cell
from posteriori.typing import Array


@dataclass(frozen=True)
class GivenParameters:
    """Arguments of `NaiveBayes.from_parameters`."""

    given_priors: Any
    classes: Sequence[Any] | None
    gaussian: Mapping[str, Mapping[str, Any]]
    categorical: Mapping[str, Mapping[Any, Any]]
    poisson: Mapping[str, Any]
    features: Sequence[str] | None

    @cached_property
    def target(self) -> Column:
        """Classes in the given order."""
        labels = self.classes
        if labels is None:
            stated = self.given_priors
            labels = list(stated) if isinstance(stated, Mapping) else list(range(len(stated)))
        cells = [plain_cell(label, "classes") for label in labels]
        if len(set(cells)) < len(cells) or not cells:
            raise ValueError(f"classes must be at least one, each once; got {cells}")
        return categorical_column("y", cells, "", declared=True)

    @cached_property
    def priors(self) -> list[float]:
        """p(y) in the order of the classes."""
        return list(check_priors(self.given_priors, self.target))

    @cached_property
    def names(self) -> list[str]:
        """Features in the column order of an array."""
        stated = [*self.gaussian, *self.categorical, *self.poisson]
        if len(set(stated)) < len(stated) or not stated:
            raise ValueError(f"give at least one feature, and each once; got {stated}")
        if self.features is None:
            return stated
        if sorted(self.features) != sorted(stated):
            raise ValueError(f"features={list(self.features)} must list these once each: {stated}")
        return list(self.features)

    def model(self) -> GenerativeModel:
        """Return the model with these parameters."""
        columns = tuple(self._column(name) for name in self.names)
        schema = Schema(columns, named=True, dtype="object" if self.categorical else "<f8")
        blocks, parameters = [], []
        for stated, density, known in (
            (self.gaussian, Gaussian(), self._gaussian),
            (self.categorical, Categorical(), self._categorical),
            (self.poisson, Poisson(), self._poisson),
        ):
            if stated:
                names = [name for name in self.names if name in stated]
                blocks.append(Block(density, tuple(self.names.index(name) for name in names)))
                parameters.append(known(names))
        log_prior = Prior(fixed=tuple(self.priors)).estimate(np.zeros(len(self.priors)))
        return GenerativeModel(schema, tuple(blocks), log_prior, tuple(parameters))

    def _column(self, name: str) -> Column:
        if name not in self.categorical:
            return Column(name, "continuous", dtype="float64")
        cells = [plain_cell(cell, name) for cell in self.categorical[name]]
        return categorical_column(name, cells, "object", declared=True)

    def _gaussian(self, names: list[str]) -> GaussianParameters:
        means, variances = [], []
        for name in names:
            given = dict(self.gaussian[name])
            if set(given) not in ({"mean", "sd"}, {"mean", "variance"}):
                raise ValueError(f"gaussian[{name!r}] needs 'mean' and one of 'sd' and 'variance'; got {list(given)}")
            means.append(self._by_class(given["mean"], f"the mean of {name!r}"))
            spread = self._by_class(given.get("sd", given.get("variance")), f"the spread of {name!r}")
            if not (spread > 0).all():
                raise ValueError(f"the spread of {name!r} must be positive; got {spread.tolist()}")
            variances.append(spread**2 if "sd" in given else spread)
        return GaussianParameters(np.column_stack(means), np.column_stack(variances))

    def _categorical(self, names: list[str]) -> CategoricalParameters:
        tables = []
        for name in names:
            stated = self.categorical[name].items()
            rows = [self._by_class(p, f"the probability of {name!r} = {cell!r}") for cell, p in stated]
            table = np.column_stack(rows)
            if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1.0)):
                raise ValueError(
                    f"the probabilities of {name!r} must not be negative and sum to 1 in each class; "
                    f"they sum to {table.sum(axis=1).tolist()}"
                )
            with np.errstate(divide="ignore"):
                tables += [np.zeros((len(table), 1)), np.log(table)]
        cardinalities = tuple(len(self.categorical[name]) for name in names)
        return CategoricalParameters(cardinalities, np.ascontiguousarray(np.concatenate(tables, axis=1)))

    def _poisson(self, names: list[str]) -> PoissonParameters:
        rates = [self._by_class(self.poisson[name], f"the rate of {name!r}") for name in names]
        for name, rate in zip(names, rates, strict=True):
            if not (rate > 0).all():
                raise ValueError(f"the rate of {name!r} must be positive; got {rate.tolist()}")
        return PoissonParameters(np.column_stack(rates))

    def _by_class(self, values: Any, what: str) -> Array:
        labels = self.target.categories
        if isinstance(values, Mapping):
            if set(values) != set(labels):
                raise ValueError(f"{what} must name every class once: {list(labels)}; got {list(values)}")
            values = [values[label] for label in labels]
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (len(labels),) or not np.isfinite(array).all():
            raise ValueError(f"{what} must be {len(labels)} finite numbers, one per class; got {values!r}")
        return array


def discriminant_from_parameters(
    known: GivenParameters, means: Any, covariance: Any, covariances: Any, features: Sequence[str] | None
) -> GenerativeModel:
    """Return the model with means (C, d), and one covariance (d, d) or one per class (C, d, d)."""
    labels = list(known.target.categories)
    if (covariance is None) == (covariances is None):
        raise ValueError("give either covariance, (d, d), which all classes share, or covariances, one per class")
    mean = _stacked(means, labels, "means")
    n_classes, d = len(labels), mean.shape[-1]
    if mean.shape != (n_classes, d) or d < 1:
        raise ValueError(f"means must be of shape ({n_classes}, d), one row per class; got {mean.shape}")
    if covariance is not None:
        spread = np.asarray(covariance, dtype=np.float64)[np.newaxis]
    else:
        spread = _stacked(covariances, labels, "covariances")
    if spread.shape != (1 if covariance is not None else n_classes, d, d):
        raise ValueError(
            f"a covariance must be of shape ({d}, {d}), because there are {d} means per class; got {spread.shape[1:]}"
        )
    for one in spread:
        if not (np.allclose(one, one.T) and np.linalg.eigvalsh(one).min() > 0):
            raise ValueError(f"a covariance must be symmetric and positive definite; got {one.tolist()}")
    names = [f"x{j}" for j in range(d)] if features is None else list(features)
    if len(names) != d or len(set(names)) < d:
        raise ValueError(f"features must be {d} names, each once; got {names}")
    columns = tuple(Column(name, "continuous", dtype="float64") for name in names)
    block = Block(MultivariateGaussian(PerClass() if covariance is None else Pooled()), tuple(range(d)))
    log_prior = Prior(fixed=tuple(known.priors)).estimate(np.zeros(n_classes))
    schema = Schema(columns, named=features is not None, dtype="<f8")
    return GenerativeModel(schema, (block,), log_prior, (MultivariateGaussianParameters(mean, spread),))


def _stacked(values: Any, labels: list[Any], what: str) -> Array:
    if isinstance(values, Mapping):
        if set(values) != set(labels):
            raise ValueError(f"{what} must name every class once: {labels}; got {list(values)}")
        values = [values[label] for label in labels]
    array = np.asarray(values, dtype=np.float64)
    if array.ndim < 2 or len(array) != len(labels) or not np.isfinite(array).all():
        raise ValueError(f"{what} must hold finite numbers for each of {len(labels)} classes; got shape {array.shape}")
    return array


def check_priors(priors: Any, classes: Column) -> tuple[float, ...]:
    """Return p(y) in the order of the classes.

    Raises
    ------
    ValueError
        The number of priors is not the number of classes, one is negative, or they do not sum to 1.
    """
    labels = list(classes.categories)
    if isinstance(priors, Mapping):
        if set(priors) != set(labels):
            raise ValueError(f"priors must name every class once: the classes are {labels}, priors has {list(priors)}")
        priors = [priors[label] for label in labels]
    try:
        probability = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"priors is a {type(priors).__name__}; give one number per class") from None
    if probability.shape != (len(labels),):
        raise ValueError(f"Number of priors must match number of classes: {probability.size} for {len(labels)}.")
    if not (probability >= 0).all():
        raise ValueError("Priors must be non-negative.")
    if not np.isclose(probability.sum(), 1.0):
        raise ValueError(f"The sum of the priors should be 1, and is {probability.sum():g}.")
    return tuple(float(p) for p in probability)
