"""A generative model: a prior over components times, for each block of columns, a density given the component.

The fitted value of one model and that of a pool answer alike: log joint, posterior, one column alone, drawn rows.
Missing cells are integrated out here.
"""

from posteriori.model.blocks import (
    Block,
    FactorWeights,
    Prior,
    bins_of,
    known_cells,
    reject_incomplete,
    reject_outside,
    warn_of_approximation,
)
from posteriori.model.generative_model import GenerativeModel, has_finite_sum, log_normalised, log_sum
from posteriori.model.marginals import batch_of_column, cannot_hold, log_marginal, log_marginal_of_codes, with_cells
from posteriori.model.number_cells import NumberCells
from posteriori.model.pool import FLOOR, LEAST_SHARE, Extrapolation, KnownCells, PartialRows, Pool, clip_log_posteriors
from posteriori.model.posterior import Posterior, blank_batch, draw_components, draw_rows, log_posteriors_alone
from posteriori.model.predictive import PredictiveDensity

__all__ = [
    "FLOOR",
    "LEAST_SHARE",
    "Block",
    "Extrapolation",
    "FactorWeights",
    "GenerativeModel",
    "KnownCells",
    "NumberCells",
    "PartialRows",
    "Pool",
    "Posterior",
    "PredictiveDensity",
    "Prior",
    "batch_of_column",
    "bins_of",
    "blank_batch",
    "cannot_hold",
    "clip_log_posteriors",
    "draw_components",
    "draw_rows",
    "has_finite_sum",
    "known_cells",
    "log_marginal",
    "log_marginal_of_codes",
    "log_normalised",
    "log_posteriors_alone",
    "log_sum",
    "reject_incomplete",
    "reject_outside",
    "warn_of_approximation",
    "with_cells",
]
