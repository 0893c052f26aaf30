"""The weight of rows without label, chosen by cross-validation on the labelled rows."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np

from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import with_counted_categories
from posteriori.learning.equal_rows import group_copies
from posteriori.learning.fit import Plan, TrainingRows
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.support.typing import Array

# Descending: argmin returns the first of equal losses, which belongs to the greatest weight.
WEIGHT_GRID = (1.0, 0.3, 0.1, 0.01, 0.0)
_MOST_FOLDS = 5
_LOWEST = np.log(np.finfo(np.float64).eps)  # what a probability of 0 counts as


def with_held_out_weight(recipe: Recipe, rows: TrainingRows) -> TrainingRows:
    """Return training rows with the weight of those without label that is chosen by held-out rows, if this is asked."""
    source = rows.source
    if not (recipe.chooses_weight and source.labels is not None and source.labels.may_miss):
        return rows
    weight = held_out_weight(rows, recipe.plan(source.schema, rows.target))
    chosen = rows.with_unlabelled_weight(weight)
    return chosen if weight else replace(chosen, source=with_counted_categories(chosen.source))


def held_out_weight(rows: TrainingRows, plan: Plan) -> float:
    """Return the weight of rows without label that minimises the held-out log-loss of the labelled rows.

    Parameters
    ----------
    rows : TrainingRows
        Rows with and without label.
    plan : Plan
        The model to learn from them.

    Returns
    -------
    float
        A value of `WEIGHT_GRID`. Each labelled row is predicted by the model of the folds that it is not in; rows
        without label train the models of all folds. 1 where every row has a label.

    Raises
    ------
    ValueError
        A class has fewer than two labelled rows.
    """
    y_true = rows.y_true
    counted = np.ones(len(y_true), np.bool_) if rows.source.weight is None else rows.source.weight > 0
    labelled = y_true[(y_true >= 0) & counted]
    if len(labelled) == np.count_nonzero(counted):
        return 1.0
    per_class = np.bincount(labelled, minlength=len(rows.target.categories))
    if per_class.min(initial=2) < 2:
        label = rows.target.categories[per_class.argmin()]
        raise ValueError(
            f'unlabelled_weight="held_out" needs two labelled rows of each class, and {label!r} has {per_class.min()}; '
            "set it to a number"
        )
    folds = min(_MOST_FOLDS, int(per_class.min()))
    copies = group_copies(rows)
    with warnings.catch_warnings():  # the fit with the chosen weight repeats the warnings that matter
        warnings.simplefilter("ignore")
        losses = [_log_loss(rows.with_unlabelled_weight(weight), plan, folds, copies) for weight in WEIGHT_GRID]
    return WEIGHT_GRID[int(np.argmin(losses))]


def _log_loss(rows: TrainingRows, plan: Plan, folds: int, copies: Array | None) -> float:
    """Return the held-out log-loss in nats; a row that no class can produce has the prior of its fold."""
    folded = FoldedData.of(rows, folds, copies=copies)
    log_posterior, (fitted,), _ = judge_and_sample([plan], folded)
    log_prior = np.stack([one.model.class_log_prior for one in fitted.without])[folded.fold]
    found = log_posterior[:, :, 0]
    of_truth = np.where(np.isnan(found), log_prior, found)[np.arange(len(found)), folded.y_true]
    return -float(np.average(np.maximum(of_truth, _LOWEST), weights=folded.weight))
