"""Trials of costly candidates: small versions on a sample of rows show whether they can matter."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.candidate_fits import CandidateFits
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.learning.cross_fitting import CrossFitted
from posteriori.learning.pool import fit_pool
from posteriori.model import clip_log_posteriors
from posteriori.model_selection.folded_data import FoldedData, judge_and_sample
from posteriori.tables.progress import without_passes
from posteriori.typing import Array

FEWEST_TRIED = 500  # rows; on fewer, a trial saves nothing
_MOST_TRIED = 5000  # rows that are tried whole
_FEWEST_SAMPLED, _MOST_SAMPLED, _SAMPLED_CELLS = 2000, 5000, 100_000  # of the trial on larger tables
_TREES, _FOLDS = 12, 3  # of a trial: four trees did not see a row
_LEAST_GAIN = 0.008  # of the log-loss of the pool, for a candidate to be fitted to all rows
# The gain grows with the rows: on adult it is −0.7 % of 2,000 rows, 0.3 % of 5,000, 0.6 % of 10,000, and 1.0 % of all.
_LEAST_GAIN_ON_SAMPLE = 0.004
_WEIGHT_PER_STRENGTH, _MOST_WEIGHT = 0.2, 20.0  # least weight of a node, in units of the strength of the back-off


@dataclass(frozen=True)
class Trial:
    """What a trial of costly candidates shows.

    Attributes
    ----------
    kept : dict
        The candidates to fit to all rows, with the least weight of a node that suits the table.
    skipped : dict
        Why the others are left out, by name.
    """

    kept: dict[str, GenerativeEstimator]
    skipped: dict[str, str]


def try_costly(
    costly: Mapping[str, GenerativeEstimator], others: CandidateFits, folded: FoldedData, penalty: float
) -> Trial:
    """Return which costly candidates can lower the log-loss of the pool.

    Each of them is a forest. It is fitted with 12 trees, of which four did not see a row. A pool of the other
    candidates and of these small forests shows the gain, on held-out rows: with its standard error it must reach 0.8 %
    of the log-loss. On more than 5,000 rows all candidates are fitted to a sample of 100,000 cells, 2,000 to 5,000
    rows, where 0.4 % is enough.

    Parameters
    ----------
    costly : mapping
    others : CandidateFits
        The other candidates, fitted to all rows.
    folded : FoldedData
    penalty : float
        Of the weights of the pool.
    """
    log_posterior = others.log_posterior[: len(folded.y_true)]
    is_whole = folded.n_labelled <= _MOST_TRIED
    with warnings.catch_warnings(), without_passes():
        warnings.simplefilter("ignore")
        if not is_whole:
            folded = folded.sample(_sample_size(folded))
            log_posterior = _held_out([clone(one) for one in others.estimators.values()], folded)[0]
        n = len(folded.y_true)
        small = [clone(one).set_params(n_trees=_TREES) for one in costly.values()]
        found, fitted = _held_out(small, folded.dealt(_FOLDS))

    without = _losses(log_posterior, folded, penalty)
    lowered = without - _losses(np.concatenate([log_posterior, found], axis=2), folded, penalty)
    of_all = _mean(without, folded)
    gain, error = _mean(lowered, folded), _standard_error(lowered, folded)
    figures = f"in a trial with {_TREES} trees on {n:,} rows"
    least = _LEAST_GAIN if is_whole else _LEAST_GAIN_ON_SAMPLE
    if gain + error < least * of_all:
        lower = f"the costly candidates lower the log-loss of the pool, {of_all:.4f}, by {gain:.4f} ± {error:.4f}"
        return Trial({}, dict.fromkeys(costly, f"{figures}, {lower}; it takes {least:.1%}"))
    kept = {}
    for (name, one), fits in zip(costly.items(), fitted, strict=True):
        density: Any = fits.full.model.blocks[0].density
        strength = float(np.exp(np.log(np.maximum(density.strengths[0], 1e-6)).mean()))
        weight = float(np.clip(_WEIGHT_PER_STRENGTH * strength, 2.0, _MOST_WEIGHT))
        kept[name] = clone(one).set_params(min_weight=weight)
    return Trial(kept, {})


def _sample_size(folded: FoldedData) -> int:
    """Return the number of rows of a trial on a large table: of 100,000 cells, but 2,000 to 5,000."""
    n_columns = max(len(folded.source.schema.columns), 1)
    return min(max(_SAMPLED_CELLS // n_columns, _FEWEST_SAMPLED), _MOST_SAMPLED)


def _held_out(estimators: Sequence[GenerativeEstimator], folded: FoldedData) -> tuple[Array, list[CrossFitted]]:
    """Return the held-out predictions of some estimators, (n, C, M), clipped, and their models."""
    plans = [one.training_plan(folded.source.schema, folded.target) for one in estimators]
    found, fitted, _ = judge_and_sample(plans, folded, leave_trees_out=True)
    return clip_log_posteriors(found), fitted


def _losses(log_posterior: Array, folded: FoldedData, penalty: float) -> Array:
    """Return the log-loss of each row in nats, (n,), by a pool whose weights are fitted without its fold."""
    y_true, fold, weight = folded.y_true, folded.fold, folded.weight
    start = fit_pool(log_posterior, y_true, weight, penalty)
    found = np.empty(len(y_true))
    for k in range(folded.folds):
        inside = fold == k
        pool = fit_pool(log_posterior[~inside], y_true[~inside], weight[~inside], penalty, start)
        held_out = pool.log_posterior(log_posterior[inside])
        found[inside] = -held_out[np.arange(len(held_out)), y_true[inside]]
    return found


def _mean(losses: Array, folded: FoldedData) -> float:
    return float(folded.weight @ losses / folded.weight.sum())


def _standard_error(differences: Array, folded: FoldedData) -> float:
    deviation = folded.weight * (differences - _mean(differences, folded))
    return float(np.sqrt((deviation**2).sum()) / folded.weight.sum())
