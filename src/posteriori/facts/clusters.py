"""Facts about mixtures: candidates, and the clusters of the best one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from posteriori.classifiers import MixtureModel
from posteriori.facts.model import Facts, model_facts
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
    shown = model_facts(best.model)
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
        "columns": sorted(
            (column for column in shown["columns"] if "reason" not in column), key=lambda column: -column["information"]
        ),
        "ignored": {column["name"]: column["reason"] for column in shown["columns"] if "reason" in column},
    }
