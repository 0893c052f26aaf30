"""The weights of a pool for rows of which only some cells are known, from held-out rows whose cells are hidden."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

import numpy as np

from posteriori.densities import AveragedOneDependence, Binned, Density, ungrouped
from posteriori.kernels.loops.hashing import splitmix64
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folded_data import FoldedData
from posteriori.learning.pool_weights import fit_partial_weights
from posteriori.model import (
    FLOOR,
    LEAST_SHARE,
    GenerativeModel,
    KnownCells,
    PartialRows,
    Pool,
    Posterior,
    clip_log_posteriors,
    known_cells,
    log_posteriors_alone,
)
from posteriori.support.threads import in_order, n_threads
from posteriori.support.typing import Array
from posteriori.tables import Batch

_ROWS = 500  # of which cells are hidden: some of more rows, and copies of fewer
_MANY_FACTORS = 300  # columns times classes, from which on half of the rows do
_MOST_COPIES = 4  # of a row, each with another share of its cells hidden
_POWERS = (1.0, 2.0, 4.0, 8.0, 16.0)  # of the known share; members that separate the classes fade faster
_ABOVE = 0.01  # of the least loss, by which the loss of a smaller power may be higher: it changes less near whole rows
_WEIGHED = 1000  # rows times columns, from which the weights of the columns are learned
_FEWEST_WEIGHED, _MOST_WEIGHED = 10, 50  # rows
_ENOUGH_FACTORS = 50_000  # of rows, columns and classes; below this, starting threads costs more than it saves
_FREQUENT = 0.05  # share of the training rows that have a pattern of known cells


class HeldOutMembers(Protocol):
    """The members of a pool as this module asks them: what each predicts for rows that it has not learned from."""

    def alone(self, asked: Array) -> Array:
        """Return log p(y | nothing known) of some members by their positions, (C, M'), in nats."""

    def joint(self, pool: Pool) -> Array:
        """Return the positions of the members, alike, of which one may answer where hardly anything is known."""

    def predicted(self, batch: Batch, fold: Array, asked: Array) -> Array:
        """Return log p(y | x) in nats of rows by the models of members without their folds, (n, C, M'), clipped."""

    def lacks_class(self, fold: Array, y_true: Array) -> Array:
        """Return which rows are of a class that the models without their fold have no row of, (n,)."""

    def column_weights(self, rows: EvaluatedRows, pool: Pool, kept: Array) -> Array:
        """Return how much the posterior of whole rows depends on each column, (d,), from some held-out rows."""


def fit_partial_rows(
    members: HeldOutMembers,
    batch: Batch,
    folded: FoldedData,
    sampled: Array,
    pool: Pool,
    penalty: float,
    log_prior: Array,
    *,
    fades: bool = True,
) -> PartialRows:
    """Return the weights and biases for rows of which a part or nothing is known, and how a pool goes over to them.

    Those of partial rows are those of the greatest penalised conditional likelihood of held-out rows of which random
    cells are hidden: a row may lack any share of its cells. Where nothing is known, one joint member is left.

    Parameters
    ----------
    members : HeldOutMembers
    batch : Batch
        The cells of some of the evaluated rows.
    folded : FoldedData
        The rows in folds.
    sampled : ndarray
        The positions of these rows among the evaluated ones.
    pool : Pool
        Of whole rows, under the class prior of the training rows.
    penalty : float
        Of the weights of the pool.
    log_prior : ndarray (C,)
        The class prior in nats.
    fades : bool
        Whether rows may be partial; otherwise every row is a whole one.
    """
    kept = np.flatnonzero(pool.weight) if pool.weight.any() else np.array([int(pool.weight.argmax())])
    known, weight = known_cells(batch), folded.weight[sampled]
    varies = _varies(batch, known)
    log_prior = np.maximum(log_prior, FLOOR)  # of a class without rows
    joint = members.joint(pool)
    asked = np.union1d(kept, joint)
    alone = np.zeros((len(log_prior), len(pool.weight)))
    alone[:, asked] = members.alone(asked)
    if not (fades and varies.any() and _absence_shows(batch)):
        bias = bias_of_nothing(alone, pool.weight, log_prior)
        cells = replace(observed_cells(known, weight, _shares(varies)), typical=0.0, typical_number=0.0)
        return PartialRows(pool.weight, bias, pool.weight, bias, cells)
    rows = EvaluatedRows.of(batch, folded, sampled)
    cells = observed_cells(known, weight, _shares(members.column_weights(rows, pool, kept) * varies, varies))
    hidden = _HiddenRows.of(members, rows, asked, len(pool.weight))
    shares = cells.shares(hidden.known)
    nothing = np.zeros(len(pool.weight))
    if len(joint):
        nothing[hidden.best_of(joint, shares[:, 0])] = 1.0
    nothing_bias = bias_of_nothing(alone, nothing, log_prior)
    trials = []
    for power in _POWERS if hidden.weight.any() else ():
        parts = replace(cells, power=power).parts_of(shares)
        if not len(joint):
            parts = np.stack([parts[:, 0], 1.0 - parts[:, 0], np.zeros(len(parts))], axis=1)
        whole, partial, none = parts.T[:, :, np.newaxis]
        offset = whole * (hidden.log_posteriors @ pool.weight + pool.bias) + partial * log_prior
        offset += none * (hidden.log_posteriors @ nothing + nothing_bias)
        ratios = partial[:, :, np.newaxis] * (hidden.log_posteriors - alone)[:, :, kept]
        found = fit_partial_weights(ratios, offset, hidden.y_true, hidden.weight, penalty, pool.weight[kept])
        trials.append((power, *found))
    of_partial = pool.weight.copy()
    if trials:
        most = min(loss for _, _, loss in trials) * (1.0 + _ABOVE)
        power, of_partial[kept], _ = next(trial for trial in trials if trial[2] <= most)
        cells = replace(cells, power=power)
    bias = bias_of_nothing(alone, of_partial, log_prior)
    if not len(joint):
        nothing, nothing_bias = of_partial, bias
    return PartialRows(of_partial, bias, nothing, nothing_bias, cells)


@dataclass(frozen=True)
class EvaluatedRows:
    """Some of the evaluated rows, of which cells are hidden."""

    batch: Batch
    fold: Array
    y_true: Array
    weight: Array
    numbers: Array  # of the rows, which do not depend on their order
    columns: Array  # numbers of the columns, which do not depend on their order
    few: Array  # the positions of some of them

    @staticmethod
    def of(batch: Batch, folded: FoldedData, sampled: Array) -> EvaluatedRows:
        """Return rows chosen by their numbers, of the sampled ones."""
        numbers, columns = folded.numbers_of_rows[sampled], folded.numbers_of_columns
        n_factors = len(columns) * (int(folded.y_true.max()) + 1)
        most = _ROWS if n_factors < _MANY_FACTORS else _ROWS // 2
        order = np.argsort(splitmix64(numbers.astype(np.uint64)), kind="stable")[:most]
        chosen = np.sort(order)
        weight = folded.weight[sampled]
        scale = weight.sum() / max(float(weight[chosen].sum()), 1e-300)
        n_few = int(np.clip(_WEIGHED // len(columns), _FEWEST_WEIGHED, _MOST_WEIGHED))
        return EvaluatedRows(
            batch.rows(chosen),
            folded.fold[sampled][chosen],
            folded.y_true[sampled][chosen],
            weight[chosen] * scale,
            numbers[chosen],
            columns,
            np.searchsorted(chosen, np.sort(order[:n_few])),
        )


@dataclass(frozen=True)
class _HiddenRows:
    """Copies of held-out rows of which random cells are hidden."""

    known: Array  # (n, d) bool
    log_posteriors: (
        Array  # (n, C, M), in nats, by the models without the fold of a row; 0 of members that are not asked
    )
    y_true: Array
    weight: Array

    @staticmethod
    def of(members: HeldOutMembers, rows: EvaluatedRows, asked: Array, n_members: int) -> _HiddenRows:
        """Return copies of rows, and their posteriors by some members."""
        copies = int(np.clip(_ROWS // max(len(rows.y_true), 1), 1, _MOST_COPIES))
        hidden = [_hidden(rows.batch, (rows.numbers, rows.columns), c) for c in range(copies)]
        found = np.concatenate([members.predicted(one, rows.fold, asked) for one in hidden])
        log_posteriors = np.zeros((*found.shape[:2], n_members))
        log_posteriors[:, :, asked] = found
        # Without a row of a class that other folds have, such as of one row per class, no weights are learned.
        weight = np.where(members.lacks_class(rows.fold, rows.y_true), 0.0, rows.weight / copies)
        known = np.concatenate([known_cells(one) for one in hidden])
        return _HiddenRows(known, log_posteriors, np.tile(rows.y_true, copies), np.tile(weight, copies))

    def best_of(self, members: Array, share: Array) -> int:
        """Return the member, by its position, of the least loss on rows of which little is known."""
        of_true = self.log_posteriors[np.arange(len(self.y_true)), self.y_true][:, members]
        return int(members[np.argmax((self.weight * (1.0 - share) ** 2) @ of_true)])


@dataclass(frozen=True)
class CrossFittedMembers:
    """Generative models, each fitted without each fold, as `HeldOutMembers`."""

    fitted: Sequence[CrossFitted]
    n_jobs: int | None = None

    def alone(self, asked: Array) -> Array:
        """Return log p(y | nothing known) of some members."""
        return log_posteriors_alone([self.fitted[m].full.model for m in asked])

    def joint(self, pool: Pool) -> Array:
        """Return the positions of the joint members."""
        return _joint_members(self.fitted, pool)

    def predicted(self, batch: Batch, fold: Array, asked: Array) -> Array:
        """Return log p(y | x) of rows by the models of members without their folds."""
        return _predicted(self.fitted, fold, asked, batch, self.n_jobs)

    def lacks_class(self, fold: Array, y_true: Array) -> Array:
        """Return which rows are of a class that the models without their fold have no row of."""
        return _lacks_class(self.fitted[0], fold, y_true)

    def column_weights(self, rows: EvaluatedRows, pool: Pool, kept: Array) -> Array:
        r"""Return how much the posterior of whole rows depends on each column, from some held-out rows.

        .. math:: u_j \propto \sqrt{\mathrm{E}\,\mathrm{KL}\bigl(p(y \mid x) \,\|\, p(y \mid x_{-j})\bigr)}

        The mutual information of single columns instead misses those that are informative only together, as on boards.
        """
        divergence, n = np.zeros(len(rows.columns)), 0
        of_whole = replace(pool, partial=None).of_members(kept)
        for k in np.unique(rows.fold[rows.few]).tolist():
            held_out = rows.batch.rows(rows.few[rows.fold[rows.few] == k])
            models, readers = zip(*[_of_fold(self.fitted[m], k) for m in kept], strict=True)
            whole, without = Posterior(models, of_whole, readers=readers).log_posteriors_without_each(held_out)
            divergence += np.einsum("nc,dnc->d", np.exp(whole), whole - without)
            n += len(held_out)
        return np.sqrt(np.maximum(divergence, 0.0) / max(n, 1))


def _of_fold(fitted: CrossFitted, k: int) -> tuple[GenerativeModel, Callable[[Batch], Batch]]:
    """Return the model without fold k, and what reads rows for it."""
    one = fitted.without[k]
    return one.model, one.to_observed_codes


def _shares(weight: Array, otherwise: Array | None = None) -> Array:
    """Return weights with the sum 1; from other ones if they are all 0."""
    if otherwise is not None and not weight.any():
        weight = otherwise
    return np.asarray(weight / max(float(weight.sum()), np.finfo(np.float64).tiny), np.float64)


def _joint_members(fitted: Sequence[CrossFitted], pool: Pool) -> Array:
    """Return the positions of the members, alike, of which one may answer where hardly anything is known.

    They are joint distributions that take numbers in bins, so that a single column has in them the share that the
    training rows show: rather members of the pool than others, and rather the mean over all pairs of columns (AODE),
    which has that share also of two columns. A bell curve is no such share; it answers where all members are joint.
    """
    models = [one.full.model for one in fitted]
    joint = [m for m, model in enumerate(models) if model.is_joint]
    in_bins = [m for m in joint if not any(_is_curve(block.density) for block in models[m].blocks)]
    densities = [m for m in np.flatnonzero(pool.weight) if not models[m].is_sum_of_trees]
    if not in_bins and not all(models[m].is_joint for m in densities):
        return np.empty(0, np.int64)
    ranks = {m: (not pool.weight[m] > 0, not _has_pairs(models[m])) for m in in_bins or joint}
    return np.array([m for m, rank in ranks.items() if rank == min(ranks.values())], np.int64)


def _is_curve(density: Density) -> bool:
    """Return whether a density takes numbers as they are, not in bins."""
    plain = ungrouped(density)
    return plain.kind == "continuous" and not isinstance(plain, Binned)


def _has_pairs(model: GenerativeModel) -> bool:
    return any(isinstance(ungrouped(block.density), AveragedOneDependence) for block in model.blocks)


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


def _varies(batch: Batch, known: Array) -> Array:
    """Return which columns have more than one value, (d,); of constant columns alone, those that have one.

    So nothing known gives the prior there, too.
    """
    schema = batch.schema
    varies: Array = np.zeros(known.shape[1], np.bool_)
    numbers = batch.numbers.values
    for place, j in enumerate(schema.of_kind("continuous")):
        present = numbers[known[:, j], place]
        varies[j] = len(present) > 0 and present.min() < present.max()
    for j in schema.of_kind("categorical"):
        present = batch.codes.values[known[:, j], schema.coded.index(j)]
        varies[j] = len(present) > 0 and present.min() < present.max()
    for j in schema.of_kind("counts"):
        varies[j] = schema.columns[j].text is not None and bool(known[:, j].any())
    return varies if varies.any() else np.asarray(known.any(axis=0))


def _absence_shows(batch: Batch) -> bool:
    """Return whether an unknown cell differs from an absent word: with a block of counts, no row is partial."""
    schema = batch.schema
    return all(schema.columns[j].text is not None for j in schema.of_kind("counts"))


def observed_cells(known: Array, row_weight: Array, weight: Array) -> KnownCells:
    """Return how known rows are, from their known cells, (n, d), their weights, and those of the columns, (d,)."""
    counted = known & (weight > 0)
    patterns, which = _distinct_rows(counted)
    shares = np.bincount(which, row_weight, len(patterns)) / max(float(row_weight.sum()), np.finfo(np.float64).tiny)
    some = counted.any(axis=1)
    typical, number = (_median(sums[some], row_weight[some]) for sums in (counted @ weight, counted.sum(axis=1)))
    size = patterns @ weight  # a pattern of as much as the median row has says no more than its size
    frequent = (shares >= _FREQUENT) & (size > LEAST_SHARE) & (size < typical)
    return KnownCells(weight, typical, number, patterns[frequent], _POWERS[0])


def _distinct_rows(table: Array) -> tuple[Array, Array]:
    """Return the distinct rows of a table, and which of them each row is."""
    found: Any = np.unique(table, axis=0, return_inverse=True)
    return found[0], found[1].ravel()


def merged_cells(each: Sequence[KnownCells], shares: Sequence[float]) -> KnownCells:
    """Return how known cells are for the rows of several pools, by the shares of their rows."""
    patterns = np.unique(np.concatenate([one.patterns for one in each]), axis=0)
    typical, number = np.asarray(shares) @ [[one.typical, one.typical_number] for one in each]
    power = max(one.power for one in each)
    weight = np.sum([share * one.weight for share, one in zip(shares, each, strict=True)], axis=0)
    total = max(float(weight.sum()), np.finfo(np.float64).tiny)  # 1, or less if the rows of a pool had no cells
    patterns = patterns[patterns @ weight / total > LEAST_SHARE]
    return KnownCells(weight / total, float(typical) / total, float(number) / total, patterns, power)


def _median(values: Array, weight: Array) -> float:
    """Return the smallest value up to which half of the weight lies; 0 without rows."""
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weight[order])
    return float(values[order][np.searchsorted(reached, 0.5 * reached[-1])]) if len(values) else 0.0


def _hidden(batch: Batch, places: tuple[Array, Array], copy: int) -> Batch:
    """Return a copy of rows of which a random share of the cells is hidden, from 0 to all of them."""
    rows, columns = (np.asarray(one, np.uint64) for one in places)
    of_rows = splitmix64(splitmix64(rows + np.uint64(1)) + np.uint64(copy))
    share = _uniform(of_rows)
    hidden = _uniform(splitmix64(of_rows[:, np.newaxis] ^ splitmix64(columns + np.uint64(1)))) < share[:, np.newaxis]
    return without_cells(batch, hidden)


def without_cells(batch: Batch, hidden: Array) -> Batch:
    """Return rows of which some cells, (n, d), are missing."""
    schema = batch.schema
    numbers = np.where(hidden[:, list(schema.of_kind("continuous"))], np.nan, batch.numbers.values)
    categorical = list(schema.of_kind("categorical"))
    codes = batch.codes.values[:, [schema.coded.index(j) for j in categorical]].copy()
    codes[hidden[:, categorical]] = 0
    bags = tuple([one.without(hidden[:, j]) for j, one in zip(schema.of_kind("counts"), batch.bags, strict=True)])
    unseen = {name: rows[~hidden[rows, schema.names.index(name)]] for name, rows in batch.unseen_rows.items()}
    return Batch.of(schema, batch.start, numbers, codes, unseen, bags=bags)


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
