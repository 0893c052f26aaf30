"""Warnings of estimates that the rows hardly determine."""

from __future__ import annotations

import reprlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from posteriori.densities import Gaussian, MultivariateGaussian
from posteriori.densities.label_model import LabelModel
from posteriori.model import GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Column, quote
from posteriori.user_warnings import warn

_FEWEST_ROWS = 1.5  # weight of a component below which a warning names it
_MOST_LEARNED = 1 / 3  # share of labels that learned confusions may contradict without a warning


def columns_with_values(model: GenerativeModel, statistics: JointStatistics) -> Array:
    """Return the columns that have a value in some row of positive weight, (d,) booleans."""
    seen = np.zeros(len(model.schema.columns), np.bool_)
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        seen[list(block.columns)] |= sums.observed().any(axis=0)
    return seen


def warn_of_empty_columns(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Warn of columns without a value in any row of positive weight."""
    seen = columns_with_values(model, statistics)
    modelled = {j for block in model.blocks for j in block.columns}
    empty = [model.schema.columns[j].name for j in model.schema.dense if j in modelled and not seen[j]]
    if empty:
        verb = "have" if len(empty) > 1 else "has"
        warn(f"{quote(empty)} {verb} no cell with a value and will influence no prediction")


def warn_of_few_rows(weight: Array) -> None:
    """Warn of components that have hardly any rows; weight (Z,) is that of their rows."""
    few = np.flatnonzero(weight < _FEWEST_ROWS)
    if len(few) and weight.sum() > _FEWEST_ROWS * len(weight):
        listed = ", ".join(f"{z} ({weight[z]:.2g} rows)" for z in few)
        warn(f"components with hardly a row: {listed}; ask for fewer, or raise pseudo_rows or n_init")


def warn_of_undetermined(model: GenerativeModel, statistics: JointStatistics, labels: Sequence[Any]) -> None:
    """Warn of variances and covariances that the rows do not determine; labels (Z,) are the classes of components."""
    columns = model.schema.columns
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        density = block.density
        if isinstance(density, Gaussian) and density.smoothing <= 0:
            constant = (sums.weight > density.ddof) & (sums.scatter == 0)
            if constant.any():
                z, position = np.argwhere(constant)[0]
                warn(
                    f"column {columns[block.columns[position]].name!r} does not vary within class {labels[z]!r}: its "
                    "maximum-likelihood variance is 0 and its density infinite; a small variance is used instead; use "
                    "po.Gaussian(smoothing=1.0)"
                )
        involved = density.undetermined(sums) if isinstance(density, MultivariateGaussian) else []
        if involved:
            names = quote(columns[block.columns[j]].name for j in involved)
            warn(
                f"the covariance is singular: {names} {'are' if len(involved) > 1 else 'is'} constant or linearly "
                "dependent within a class (or rows are too few); a spread of 1e-3 standard deviations is used; "
                "set shrinkage, or leave columns out"
            )


def warn_of_one_class(classes: Column, name: str | None) -> None:
    """Warn if there is only one class; name is that of the column of labels, if they are one."""
    if classes.cardinality == 1:
        labels = "y" if name is None else f"the target {name!r}"
        label = reprlib.repr(classes.categories[0])
        warn(f"{labels} has only one class, {label}: every prediction will be that class")


def warn_of_contradicted_labels(labels: LabelModel | None) -> None:
    """Warn if EM contradicts more labels than were stated, or than are likely to be wrong at all."""
    if labels is None or not (labels.discount > 0 or (labels.learned and labels.contradicted > _MOST_LEARNED)):
        return
    cause = "the posterior of a model whose columns depend on each other given the class outweighs the labels"
    if labels.learned:
        warn(
            f'label_noise="learn" contradicts {labels.contradicted:.0%} of the labels: {cause}; state the share of '
            "wrong labels (label_noise=0.05), which EM is then held to, or leave label_noise out"
        )
    else:
        warn(
            f"label_noise states {labels.stated_share:.1%} wrong labels, and EM would contradict "
            f"{labels.contradicted:.1%} of them: {cause}; EM was held to the stated share; compare the held-out score "
            "without label_noise, or choose a model of dependent columns"
        )
