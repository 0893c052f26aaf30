"""A generative model: a prior over components times, for each block of columns, a density given the component."""

from posteriori.model.blocks import (
    Block,
    FactorWeights,
    Prior,
    bins_of,
    reject_incomplete,
    reject_outside,
    warn_of_approximation,
)
from posteriori.model.generative_model import GenerativeModel, has_finite_sum, log_normalised, log_sum
from posteriori.model.marginals import batch_of_column, cannot_hold, log_marginal, log_marginal_of_codes
from posteriori.model.posterior import FLOOR, Pool, Posterior, clip_log_posteriors, draw_components, draw_rows

__all__ = [
    "FLOOR",
    "Block",
    "FactorWeights",
    "GenerativeModel",
    "Pool",
    "Posterior",
    "Prior",
    "batch_of_column",
    "bins_of",
    "cannot_hold",
    "clip_log_posteriors",
    "draw_components",
    "draw_rows",
    "has_finite_sum",
    "log_marginal",
    "log_marginal_of_codes",
    "log_normalised",
    "log_sum",
    "reject_incomplete",
    "reject_outside",
    "warn_of_approximation",
]
