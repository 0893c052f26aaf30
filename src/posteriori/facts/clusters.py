"""Facts about mixtures: candidates, and the clusters of the best one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl

from posteriori.classifiers import MixtureModel
from posteriori.facts.model import Facts, model_facts
from posteriori.support.formatting import cell_text, number
from posteriori.support.typing import Array


@dataclass(frozen=True)
class Candidate:
    """A fitted mixture with its log-likelihood in nats, its BIC and its AIC."""

    model: MixtureModel
    log_likelihood: float
    bic: float
    aic: float


def candidate(model: MixtureModel, rows: pl.DataFrame) -> Candidate:
    """Score a fitted mixture on its training rows."""
    log_likelihood = float(model.score_samples(rows).sum())
    m = model.n_parameters_
    return Candidate(model, log_likelihood, m * np.log(rows.height) - 2 * log_likelihood, 2 * m - 2 * log_likelihood)


def cluster_facts(rows: pl.DataFrame, fitted: Sequence[Candidate], best: Candidate, posterior: Array) -> Facts:
    """Return the scores of the candidates, and the size and columns of each cluster of the best one."""
    shown = model_facts(best.model)["columns"]
    likely = np.bincount(posterior.argmax(axis=1), minlength=posterior.shape[1])
    return {
        "rows": rows.height,
        "candidates": [
            {
                "k": one.model.n_components,
                "log_likelihood": one.log_likelihood,
                "n_parameters": one.model.n_parameters_,
                "bic": one.bic,
                "aic": one.aic,
                "converged": one.model.converged_,
                "best": one is best,
            }
            for one in fitted
        ],
        "k": best.model.n_components,
        "clusters": [
            {"component": z, "share": share, "rows": size}
            for z, (share, size) in enumerate(zip(best.model.weights_, likely, strict=True))
        ],
        "columns": informative_columns(best.model),
        "ignored": {column["name"]: column["reason"] for column in shown if "reason" in column},
    }


def informative_columns(model: MixtureModel) -> list[Facts]:
    """Return the facts about the columns that a mixture has a density of, the most informative first."""
    known = (column for column in model_facts(model)["columns"] if "reason" not in column)
    return sorted(known, key=lambda column: -column["information"])


def cells_in_words(column: Facts, text_of: Callable[[Any], str] = cell_text) -> list[str]:
    """Return mean and standard deviation, or the most frequent category, of a column in each cluster."""
    if "probability" not in column:
        spread = np.sqrt(column["variance"])
        return [f"{number(mean)} ± {number(sd, 3)}" for mean, sd in zip(column["mean"], spread, strict=True)]
    probability = np.asarray(column["probability"])
    if not probability.shape[1]:
        return ["–"] * len(probability)
    most = probability.argmax(axis=1)
    return [f"{text_of(column['categories'][k])} {row[k]:.0%}" for k, row in zip(most, probability, strict=True)]
