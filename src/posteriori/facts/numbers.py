"""Facts about a fitted regressor: held-out predictions in sentences, its members, and its columns."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.classifiers.regressor import Regressor
from posteriori.facts.model import Facts
from posteriori.model.predictive import PredictiveDensity
from posteriori.model_selection.in_words import of_hundred
from posteriori.regression.held_out import COVERAGE, scores_of_numbers
from posteriori.support.formatting import escaped, number, shortened
from posteriori.support.typing import Array

_LONGEST = 32  # characters of a name
_DIGITS = 3  # of an error in a sentence


def judged_numbers(density: PredictiveDensity, y: Array, name: str) -> Facts:
    """Return the scores of densities of rows, beside always predicting the median, and sentences on them.

    Parameters
    ----------
    density : PredictiveDensity
    y : ndarray (n,)
        The numbers of the rows.
    name : str
        The target.
    """
    median = float(np.median(y))
    scores = scores_of_numbers(density, y)
    errors = np.abs(y - density.median)
    found = {
        "rows": len(y),
        "target": name,
        "scores": scores,
        "median_absolute_error": float(np.median(errors)),
        "always_median": {"value": median, "mae": float(np.abs(y - median).mean())},
        "interval": COVERAGE,
    }
    return {**found, "summary": number_sentences(found)}


def number_sentences(found: Facts) -> list[str]:
    """Return how near the predictions are, whether the intervals can be trusted, and what the columns explain."""
    scores, usual = found["scores"], found["always_median"]
    named = shortened(escaped(found["target"]), _LONGEST)
    return [
        f"Half of its predictions are within {_written(found['median_absolute_error'])} of the true {named}.",
        f"Its {COVERAGE:.0%} intervals hold {of_hundred(scores['coverage'])} of 100 true numbers, and are "
        f"{_written(scores['width'])} wide in the mean.",
        f"It is wrong by {_written(scores['mae'])} on average; always saying {_written(usual['value'], 6)} would be "
        f"wrong by {_written(usual['mae'])}.",
        how_much_explained(scores["r2"]),
    ]


def how_much_explained(r2: float) -> str:
    """Return the share of the variance that predictions explain as a sentence."""
    if r2 <= 0.0:
        return "It explains nothing of the variance: the mean of all rows predicts as well."
    return f"It explains {of_hundred(r2)} % of the variance."


def _written(value: float, digits: int = _DIGITS) -> str:
    """Return a number as a person writes it: 12,400."""
    magnitude = float(f"{value:.{digits}g}")
    return f"{magnitude:,.0f}" if 1000 <= abs(magnitude) < 1e15 else number(magnitude, digits)


def number_members(estimator: Regressor) -> list[Facts]:
    """Return the weight and the held-out scores of each member, and last those of the pool; none of one model."""
    results = estimator.fitted_.results
    return [dict(zip(results, row, strict=True)) for row in zip(*results.values(), strict=True)]


def number_importance(estimator: Regressor) -> Facts:
    """Return the feature importance, sorted: the increase of the CRPS if the column is missing; empty of one model."""
    if estimator.fitted_.with_importance().importance is None:
        return {}
    found, modelled = estimator.importance_, estimator.schema_.modelled
    return {
        "importance": [
            {
                "feature": found.names[j],
                "crps": float(found.increase[j]),
                "standard_error": float(found.standard_error[j]),
            }
            for j in found.order
            if j in modelled
        ],
        "importance_rows": {"rows": found.n_rows, "held_out": found.held_out},
    }


def regressor_facts(estimator: Regressor) -> Facts:
    """Return target, members and columns of a regressor."""
    columns: list[dict[str, Any]] = []
    for column in estimator.schema_.columns:
        one: dict[str, Any] = {"name": column.name, "kind": column.shown_kind}
        if column.is_ignored:
            one["reason"] = column.reason
        elif column.kind == "categorical":
            one["n_categories"] = len(column.categories)
        columns.append(one)
    members, summary = number_members(estimator), []
    if members:
        share = of_hundred(members[-1]["coverage"])
        cover = f"Its {COVERAGE:.0%} intervals hold {share} of 100 true numbers of held-out rows."
        summary = [cover, how_much_explained(members[-1]["r2"])]
    return {
        "model": type(estimator).__name__,
        "target": estimator.target_.name,
        "n_parameters": estimator.n_parameters_,
        "summary": summary,
        "members": members,
        "columns": columns,
        **number_importance(estimator),
    }
