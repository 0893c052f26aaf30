"""The length of a SELECT, estimated from the sizes of parameters before it is written, and bounded."""

from __future__ import annotations

from collections.abc import Mapping
from functools import singledispatch
from typing import Any

import numpy as np

from posteriori.densities import (
    AveragedParameters,
    CompoundParameters,
    FamilyTables,
    FullJointParameters,
    GroupedParameters,
    MultivariateGaussianParameters,
    RandomTreesParameters,
    TreeParameters,
)
from posteriori.densities.registry import REGISTRY
from posteriori.model import Block, GenerativeModel
from posteriori.model_cost import require_affordable_export

MOST_CHARACTERS = 20_000_000  # DuckDB reads 7 million in a second, and 0.5 GB; some databases read one million only
_PER_NUMBER = 18  # characters of a number in a table
_PER_SLOT = 90  # of a cell of a table along a tree, with the messages of missing cells
_PER_PARAMETER = 70  # of a parameter in an expression
_PER_EXPRESSION = 180  # of a step of the sweep of a covariance
_PER_SERIES = 2000  # of the logarithm of a rising factorial
_PER_CLASS = 500  # of the columns of the result


def require_affordable_length(models: Mapping[str, GenerativeModel]) -> None:
    """Raise ValueError if the SELECT of all models together would be longer than `MOST_CHARACTERS`.

    Parameters
    ----------
    models : mapping from str to GenerativeModel
        By their names in the message: those that are longest together are named.
    """
    lengths = {name: estimate_length(model) for name, model in models.items()}
    require_affordable_export(
        "the SELECT", lengths, "characters", MOST_CHARACTERS, "score by predict_to or to_javascript instead"
    )


def estimate_length(model: GenerativeModel) -> int:
    """Return about how many characters the SELECT of a model has; it rises with each size of the parameters."""
    cells = sum(len(str(category)) + 16 for column in model.schema.columns for category in column.categories)
    factors = sum(
        _length_of_block(block, parameters)
        for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True)
        if not block.shared
    )
    return int(cells + factors + _PER_CLASS * model.n_components)


def n_expressions(d: int, n_components: int, n_covariances: int) -> int:
    """Return the number of expressions for d columns: Z·d(d−1)/2 deviations and G·(d−1)d(d+1)/6 covariances."""
    return n_components * d * (d - 1) // 2 + n_covariances * (d - 1) * d * (d + 1) // 6


def _length_of_block(block: Block, parameters: Any) -> float:
    return _length(parameters, block.density)


@singledispatch
def _length(parameters: Any, density: Any) -> float:
    return float(_PER_PARAMETER * density.n_parameters(parameters))


@_length.register
def _(parameters: AveragedParameters, density: Any) -> float:
    n_slots, n_components, _ = parameters.log_probability.shape
    return float(_PER_NUMBER * n_slots * (n_slots + 2) * (n_components + 1))


@_length.register
def _(parameters: FamilyTables, density: Any) -> float:
    n_slots, n_components = parameters.log_probability.shape
    d = len(parameters.cardinalities)
    # Each step hands on the factors of the columns before it.
    return float(_PER_NUMBER * (n_slots * (n_components + 3) + d * d * n_components))


@_length.register
def _(parameters: FullJointParameters, density: Any) -> float:
    return _length(FamilyTables.of_joint(parameters.log_probability), density)


@_length.register
def _(parameters: CompoundParameters, density: Any) -> float:
    return float(_PER_SERIES * (parameters.concentration.size + len(parameters.concentration)))


@_length.register
def _(parameters: RandomTreesParameters, density: Any) -> float:
    trees, n_classes = parameters.trees, len(parameters.prior)
    # An edge is 6 numbers, of which two are long. A split has two for its codes and two for a missing cell, and at most
    # two per category.
    n_edges = 2 * len(trees.sides) + 4 * (len(trees.nodes) - trees.n_leaves)
    return float(_PER_NUMBER * (2 * n_edges + (n_classes + 1) * trees.n_leaves))


@_length.register
def _(parameters: MultivariateGaussianParameters, density: Any) -> float:
    n_components, d = parameters.mean.shape
    independent = parameters.degrees is None and not np.any(parameters.covariance * ~np.eye(d, dtype=np.bool_))
    if independent:
        return float(2 * _PER_PARAMETER * n_components * d)
    return float(_PER_EXPRESSION * n_expressions(d, n_components, len(parameters.covariance)))


@_length.register
def _(parameters: TreeParameters, density: Any) -> float:
    return float(_PER_SLOT * parameters.table.size + 2 * _PER_PARAMETER * parameters.normal.size)


@_length.register
def _(parameters: GroupedParameters, density: Any) -> float:
    coarse = next(entry.density for entry in REGISTRY if entry.density.fitted is type(parameters.coarse))
    return _length(parameters.coarse, coarse) + _PER_NUMBER * sum(parameters.cardinalities)
