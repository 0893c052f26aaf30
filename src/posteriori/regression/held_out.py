"""Held-out densities of a target of numbers, and their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.model.predictive import PredictiveDensity
from posteriori.support.typing import Array

COVERAGE = 0.9  # of the intervals that are judged
MOST_PREDICTED = 10_000  # rows whose held-out densities are kept


@dataclass(frozen=True)
class HeldOutNumbers:
    """Densities of rows by models that had not learned from them, and the targets."""

    density: PredictiveDensity
    y: Array  # (n,)
    weight: Array  # (n,)
    rows: Array  # (n,): their positions in the table

    @cached_property
    def scores(self) -> dict[str, float]:
        """The scores by name, weighted means over the rows: see `scores_of_numbers`."""
        return scores_of_numbers(self.density, self.y, self.weight)


def scores_of_numbers(density: PredictiveDensity, y: Array, weight: Array | None = None) -> dict[str, float]:
    r"""Return the scores of densities, as weighted means over the rows.

    Returns
    -------
    dict
        ``crps``, the continuous ranked probability score, in units of the target; ``log_score``, the mean of
        −log p(y | x) in nats; ``rmse``, the root of the mean squared error of the mean; ``mae``, the mean absolute
        error of the median; ``r2``; ``coverage``, the share of the targets within the central 90 % intervals, and
        ``width``, the mean width of these.
    """
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    centre = float(share @ y)
    squared, total = float(share @ (y - density.mean) ** 2), float(share @ (y - centre) ** 2)
    low, high = density.interval(COVERAGE).T
    return {
        "crps": float(share @ density.crps(y)),
        "log_score": -float(share @ np.maximum(density.log_prob(y), -700.0)),
        "rmse": float(np.sqrt(squared)),
        "mae": float(share @ np.abs(y - density.median)),
        "r2": 1.0 - squared / total if total > 0 else 0.0,
        "coverage": float(share @ ((low <= y) & (y <= high))),
        "width": float(share @ (high - low)),
    }
