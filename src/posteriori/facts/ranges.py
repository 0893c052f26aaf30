"""The lowest and the highest number of each column of a fitted model."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.classifiers.estimator import OfClasses
from posteriori.model import GenerativeModel, draw_rows
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import generator
from posteriori.support.typing import Array
from posteriori.tables import Schema

_DRAWN = 500  # rows of a model without ranges
_SEED = 0  # the same ranges for the same model


def known_ranges(estimator: OfClasses) -> ColumnRanges | None:
    """Return the ranges of the training rows of a model, or of the first member of a pool that has them."""
    return next((part.ranges for part in estimator.fitted_.parts.values() if part.ranges is not None), None)


def drawn_ranges(schema: Schema, model: GenerativeModel) -> ColumnRanges:
    """Return the ranges of rows drawn from a model, such as one that was made from parameters."""
    rng = generator(_SEED)
    component = rng.choice(model.n_components, size=_DRAWN, p=np.exp(model.log_prior) / np.exp(model.log_prior).sum())
    columns = draw_rows(model, component, rng)
    lowest, highest = np.full(len(columns), np.inf), np.full(len(columns), -np.inf)
    whole = np.zeros(len(columns), np.bool_)
    for j in schema.of_kind("continuous"):
        lowest[j], highest[j], present = range_of(columns[j])
        whole[j] = len(present) > 0 and bool((present == np.rint(present)).all())
    return ColumnRanges(lowest, highest, whole)


def range_of(cells: Any) -> tuple[float, float, Array]:
    """Return the lowest and the highest number of a column, inf and −inf without one, and its present numbers."""
    numbers = np.asarray(cells, np.float64)  # None becomes NaN
    present = numbers[~np.isnan(numbers)]
    return present.min(initial=np.inf), present.max(initial=-np.inf), present
