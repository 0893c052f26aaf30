"""The weights of a pool for rows of which only some cells are known, from held-out rows whose cells are hidden."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.kernels.hashing import splitmix64
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.log_linear import fit_partial_weights
from posteriori.model import (
    FLOOR,
    KnownCells,
    PartialRows,
    Pool,
    clip_log_posteriors,
    known_cells,
    log_posteriors_alone,
)
from posteriori.model_selection.folded_data import FoldedData
from posteriori.sources.table_source import in_order, n_threads
from posteriori.support.typing import Array
from posteriori.tables import Batch

_ROWS = 500  # of which cells are hidden: some of more rows, and copies of fewer
_MOST_COPIES = 4  # of a row, each with another share of its cells hidden
_POWERS = (1.0, 2.0, 4.0, 8.0)  # of the known share; members that separate the classes fade faster
_ENOUGH_FACTORS = 50_000  # of rows, columns and classes; below this, starting threads costs more than it saves
_FREQUENT = 0.05  # share of the training rows that have a pattern of known cells


def fit_partial_rows(
    fitted: Sequence[CrossFitted],
    batch: Batch,
    folded: FoldedData,
    sampled: Array,
    pool: Pool,
    penalty: float,
    log_prior: Array,
    *,
    fades: bool = True,
) -> PartialRows:
    """Return the weights and the bias for rows of which nothing is known, and how a pool goes over to them.

    The weights are those of the greatest penalised conditional likelihood of held-out rows of which random cells are
    hidden: a row may lack any share of its cells.

    Parameters
    ----------
    fitted : sequence of CrossFitted
        The models of the candidates.
    batch : Batch
        Cells of some of the evaluated rows.
    folded : FoldedData
    sampled : ndarray
        The positions of these rows.
    pool : Pool
        Of whole rows, under the class prior of the training rows.
    penalty : float
        Of the weights of the pool.
    log_prior : ndarray (C,)
        The class prior in nats.
    fades : bool
        Whether rows may be partial; otherwise every row is a whole one.
    """
    kept = np.flatnonzero(pool.weight > 0) if (pool.weight > 0).any() else np.array([int(pool.weight.argmax())])
    known, weight = known_cells(batch), folded.weight[sampled]
    cells = observed_cells(batch, known, weight)
    if not fades:
        cells = replace(cells, typical=0.0)
    models = [fitted[m].full.model for m in kept]
    alone = log_posteriors_alone(models)
    chosen = pool.weight[kept]
    log_prior = np.maximum(log_prior, FLOOR)  # of a class without rows
    if cells.typical > 0:
        places = _places(folded, sampled, known.shape[1])
        chosen_rows = np.sort(np.argsort(splitmix64(places[0].astype(np.uint64)), kind="stable")[:_ROWS])
        copies = int(np.clip(_ROWS // max(len(chosen_rows), 1), 1, _MOST_COPIES))
        some, fold = batch.rows(chosen_rows), folded.fold[sampled][chosen_rows]
        hidden = [_hidden(some, (places[0][chosen_rows], places[1]), c) for c in range(copies)]
        n_jobs = folded.source.n_jobs
        log_posteriors = np.concatenate([_predicted(fitted, fold, kept, one, n_jobs) for one in hidden])
        share = np.concatenate([cells.whole(known_cells(one)) for one in hidden])
        y_true = folded.y_true[sampled][chosen_rows]
        of_weight = weight[chosen_rows] * (weight.sum() / max(float(weight[chosen_rows].sum()), 1e-300))
        of_weight = np.where(_lacks_class(fitted[kept[0]], fold, y_true), 0.0, of_weight)
        of_rows = np.tile(of_weight / copies, copies), np.tile(y_true, copies)
        trials = []
        # Without a row of a class that other folds have, such as of one row per class, the weights are those of whole
        # rows.
        for power in _POWERS if of_weight.any() else ():
            g = (share**power)[:, np.newaxis]
            offset = g * (log_posteriors @ pool.weight[kept] + pool.bias) + (1.0 - g) * log_prior
            ratios = (1.0 - g)[:, :, np.newaxis] * (log_posteriors - alone)
            found, loss = fit_partial_weights(ratios, offset, of_rows[1], of_rows[0], penalty)
            trials.append((loss, power, found))
        if trials:
            _, power, chosen = min(trials, key=lambda trial: trial[:2])
            cells = replace(cells, power=power)
    of_all = np.zeros(len(pool.weight))
    of_all[kept] = chosen
    return PartialRows(of_all, bias_of_nothing(alone, chosen, log_prior), cells)


def _lacks_class(member: CrossFitted, fold: Array, y_true: Array) -> Array:
    """Return which rows are of a class that the models without their fold have no row of, (n,).

    No member can predict such a row, however little its weight is: it would take the weights of all to 0.
    """
    lacks = {k: np.isneginf(member.without[k].model.class_log_prior) for k in np.unique(fold).tolist()}
    return np.array([lacks[k][y] for k, y in zip(fold.tolist(), y_true.tolist(), strict=True)], np.bool_)


def bias_of_nothing(alone: Array, weight: Array, log_prior: Array) -> Array:
    """Return log π − Σ_m v_m log p_m(y | nothing known) in nats, (C,), with which nothing known gives the prior π."""
    bias: Array = np.maximum(log_prior, FLOOR) - alone @ weight
    return bias


def observed_cells(batch: Batch, known: Array, weight: Array) -> KnownCells:
    """Return how known the cells of some rows are: which columns vary, and which patterns of gaps are frequent."""
    schema = batch.schema
    varies: Array = np.zeros(known.shape[1], np.bool_)
    numbers = batch.numbers.values
    for place, j in enumerate(schema.of_kind("continuous")):
        present = numbers[known[:, j], place]
        varies[j] = len(present) > 0 and present.min() < present.max()
    for j in schema.of_kind("categorical"):
        present = batch.codes.values[known[:, j], schema.coded.index(j)]
        varies[j] = len(present) > 0 and present.min() < present.max()
    of_counts = schema.of_kind("counts")
    for j in of_counts:
        varies[j] = schema.columns[j].text is not None and bool(known[:, j].any())
    counted = known & varies
    patterns, which = _distinct_rows(counted)
    shares = np.bincount(which, weight, len(patterns)) / max(float(weight.sum()), np.finfo(np.float64).tiny)
    # The absence of a word is known, so that a row with a block of counts is never a partial one.
    n_known = counted.sum(axis=1).astype(np.float64)
    typical = 0.0
    if all(schema.columns[j].text is not None for j in of_counts):
        typical = _median(n_known[n_known > 0], weight[n_known > 0])
    size = patterns.sum(axis=1)  # a pattern of as many cells as the median row has says no more than their number
    return KnownCells(varies, typical, patterns[(shares >= _FREQUENT) & (size > 0) & (size < typical)], 1.0)


def _distinct_rows(table: Array) -> tuple[Array, Array]:
    """Return the distinct rows of a table, and which of them each row is."""
    found: Any = np.unique(table, axis=0, return_inverse=True)
    return found[0], found[1].ravel()


def merged_cells(each: Sequence[KnownCells], shares: Sequence[float]) -> KnownCells:
    """Return how known cells are for the rows of several pools, by the shares of their rows."""
    patterns = np.unique(np.concatenate([one.patterns for one in each]), axis=0)
    typical = float(np.dot(shares, [one.typical for one in each]))
    power = max(one.power for one in each)
    return KnownCells(np.logical_or.reduce([one.varies for one in each]), typical, patterns, power)


def _median(values: Array, weight: Array) -> float:
    """Return the smallest value up to which half of the weight lies; 0 without rows."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])]) if len(values) else 0.0


def _places(folded: FoldedData, sampled: Array, n_columns: int) -> tuple[Array, Array]:
    """Return numbers of the sampled rows and of the columns that do not depend on their order, if these are known."""
    rows, columns = np.arange(len(folded.y_true)), np.arange(n_columns)
    if folded.order is not None:
        rows[folded.order.chosen] = np.arange(len(rows))
        of_kind = folded.source.schema.of_kind
        listed = np.array([*of_kind("continuous"), *of_kind("categorical"), *of_kind("counts")], np.int64)
        columns[listed[folded.order.columns]] = np.arange(len(folded.order.columns))
    return rows[sampled], columns


def _hidden(batch: Batch, places: tuple[Array, Array], copy: int) -> Batch:
    """Return a copy of rows of which a random share of the cells is hidden, from 0 to all of them."""
    rows, columns = (np.asarray(one, np.uint64) for one in places)
    of_rows = splitmix64(splitmix64(rows + np.uint64(1)) + np.uint64(copy))
    share = _uniform(of_rows)
    hidden = _uniform(splitmix64(of_rows[:, np.newaxis] ^ splitmix64(columns + np.uint64(1)))) < share[:, np.newaxis]
    schema = batch.schema
    numbers = np.where(hidden[:, list(schema.of_kind("continuous"))], np.nan, batch.numbers.values)
    categorical = list(schema.of_kind("categorical"))
    codes = batch.codes.values[:, [schema.coded.index(j) for j in categorical]].copy()
    codes[hidden[:, categorical]] = 0
    bags = tuple([one.without(hidden[:, j]) for j, one in zip(schema.of_kind("counts"), batch.bags, strict=True)])
    return Batch.of(schema, batch.start, numbers, codes, {}, bags=bags)


def _uniform(hashes: Array) -> Array:
    return (hashes >> np.uint64(11)).astype(np.float64) / float(1 << 53)


def _predicted(
    fitted: Sequence[CrossFitted], fold: Array, kept: Sequence[int] | Array, batch: Batch, n_jobs: int | None
) -> Array:
    """Return log p(y | x) in nats of rows by the models of the members without their folds, (n, C, M), clipped."""
    n_classes = fitted[kept[0]].full.model.n_classes
    found = np.empty((len(batch), n_classes, len(kept)))
    rows = {k: np.flatnonzero(fold == k) for k in np.unique(fold).tolist()}
    held_out = {k: batch.rows(of_fold) for k, of_fold in rows.items()}

    def predict(task: tuple[int, int]) -> None:
        k, place = task
        found[rows[k], :, place] = fitted[kept[place]].without[k].log_posterior(held_out[k])

    is_small = len(batch) * len(batch.schema.columns) * n_classes < _ENOUGH_FACTORS
    tasks = [(k, place) for place in range(len(kept)) for k in rows]
    for _ in in_order(tasks, predict, 1 if is_small else n_threads(n_jobs)):
        pass
    return clip_log_posteriors(found)
