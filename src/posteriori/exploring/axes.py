"""The axes of numbers on a page: whether they are logarithmic, and the ranges of a regressor and a joint model."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.joint.findings import likelihoods_of
from posteriori.joint.law import Law
from posteriori.model.predictive import PredictiveDensity
from posteriori.plotting.reading import Scale
from posteriori.regression.gaussian import FittedGaussian
from posteriori.support.typing import Array

_ENDS = 0.003  # the share of the rows beyond each end of the axis of the target
_POINTS = 199
_FEW_NUMBERS = 25  # whole numbers of a column


def width_of_axis(cells: Any, low: float, high: float, whole: bool) -> float | None:
    """Return the width within which the axis of a column is linear, None if it is linear throughout."""
    if whole and high - low < _FEW_NUMBERS:
        return None  # every number has its place on a linear axis
    numbers = np.asarray(cells, np.float64)
    return Scale.of(np.clip(numbers[~np.isnan(numbers)], low, high)).width


def ranges_of_features(value: FittedGaussian) -> dict[str, list[Any]]:
    """Return the lowest and the highest number, whether all are whole, and the width of a logarithmic axis, by column.

    They are those of the rows of the first fit, as far as the steps of the columns, which are at quantiles, show them.
    """
    found = {}
    for one in value.found.design.features.numbers:
        quantiles = np.array([one.lowest, *one.cuts, one.highest])
        found[value.schema.names[one.column]] = _range(quantiles, _are_whole(2.0 * one.cuts, one.lowest, one.highest))
    return found


def axis_of_target(value: FittedGaussian) -> list[Any]:
    """Return the range that nearly all rows of the first fit have, as `ranges_of_features` has those of columns."""
    found = value.found
    return _axis(PredictiveDensity(found.cells, found.share[np.newaxis]))


def axes_of_columns(law: Law) -> dict[str, list[Any]]:
    """Return the range that nearly all rows have of each column of numbers, in the same way."""
    alone = law.believe(likelihoods_of(law, {})).marginals()
    return {law.schema.names[j]: _axis(law.answer(j, alone[j]).density) for j in law.grids}


def _axis(of_all: PredictiveDensity) -> list[Any]:
    return _range(of_all.quantile(np.linspace(_ENDS, 1.0 - _ENDS, _POINTS))[0], of_all.cells.step == 1.0)


def _range(quantiles: Array, whole: bool) -> list[Any]:
    low, high = float(quantiles[0]), float(quantiles[-1])
    return [low, high, whole, width_of_axis(quantiles, low, high, whole)]


def _are_whole(doubled: Array, *ends: float) -> bool:
    """Return whether steps, which may be midway between two numbers, and the ends are those of whole numbers."""
    both = np.concatenate([doubled, ends])
    return bool((both == np.rint(both)).all())
