"""Held-out densities of a target of numbers, and their scores."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.model.predictive import PredictiveDensity
from posteriori.model_selection.metrics import weighted_mean
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
    fold: Array | None = None  # (n,): by which they were held out

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
    return mean_scores(scores_of_rows(density, y), y, weight)


def scores_of_rows(predicted: PredictiveDensity | Array, y: Array) -> dict[str, Array]:
    """Return the terms of `scores_of_numbers`, (n,) each; of "rmse" and "r2" squared errors.

    Predicted numbers have fewer scores than densities.
    """
    if not isinstance(predicted, PredictiveDensity):
        squared = (y - predicted) ** 2
        return {"rmse": squared, "mae": np.abs(y - predicted), "r2": squared}
    squared = (y - predicted.mean) ** 2
    low, high = predicted.interval(COVERAGE).T
    return {
        "crps": predicted.crps(y),
        "log_score": -np.maximum(predicted.log_prob(y), -700.0),
        "rmse": squared,
        "mae": np.abs(y - predicted.median),
        "r2": squared,
        "coverage": (low <= y) & (y <= high),
        "width": high - low,
    }


def mean_scores(of_rows: dict[str, Array], y: Array, weight: Array | None = None) -> dict[str, float]:
    """Return the scores of terms of rows (`scores_of_rows`)."""
    share = np.full(len(y), 1.0 / len(y)) if weight is None else weight / weight.sum()
    scores = {name: float(share @ terms) for name, terms in of_rows.items()}
    total = float(share @ (y - float(share @ y)) ** 2)
    return scores | {
        "rmse": float(np.sqrt(scores["rmse"])),
        "r2": 1.0 - scores["r2"] / total if total > 0 else 0.0,
    }


def standard_errors(of_rows: dict[str, Array], y: Array, weight: Array) -> dict[str, float]:
    """Return the standard errors of `mean_scores` over rows, as "crps_se": of rmse and r2 by the delta method."""
    scores, spread = mean_scores(of_rows, y, weight), (y - weighted_mean(y, weight)[0]) ** 2
    slope = {"rmse": 2.0 * scores["rmse"], "r2": weighted_mean(spread, weight)[0]}
    of_rows = of_rows | {"r2": of_rows["r2"] - (1.0 - scores["r2"]) * spread}
    errors = {name: weighted_mean(terms.astype(np.float64), weight)[1] for name, terms in of_rows.items()}
    return {f"{name}_se": error / (slope.get(name, 1.0) or np.inf) for name, error in errors.items()}
