"""Every fold's models from one pass: statistics are kept per fold, and a fold's model is the sum of the others'.

What several models need is added up once. Cut points are the exception: they must not have seen the rows that are held
out. Where they differ between folds, each fold has statistics of its own, of the rows outside it under its cut points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from posteriori.learning.cut_points import CutPoints, bins_of
from posteriori.learning.em import FitResult, learn
from posteriori.learning.fit import Collect
from posteriori.learning.fold_sums import components_of_folds, outside, per_fold, sums_without_each
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.training import Plan
from posteriori.model import Block, FactorWeights
from posteriori.sources import LabelledSource
from posteriori.sources.threads import blas, n_threads
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Schema
from posteriori.tables.batch import joined
from posteriori.typing import Array

_ENOUGH_ROWS = 2000  # for threads to be worth their start


@dataclass(frozen=True)
class CrossFitted:
    """What all rows teach, and what those outside each fold do: each in the categories that these show."""

    full: FitResult
    without: tuple[ObservedCategoriesModel, ...]


@dataclass(frozen=True)
class _Folded:
    """Rows, each of which is in one of some folds; −1 for those that teach in all of them."""

    source: LabelledSource
    fold: Array
    folds: int

    def without(self, k: int | None) -> LabelledSource:
        """Return the rows outside a fold; None for all."""
        return self.source if k is None else self.source.reweighted(self.fold != k)


@dataclass
class _StatisticsRequest:
    """Statistics to be added up: of blocks under a schema, kept per fold or of all rows outside one fold."""

    schema: Schema
    per_fold: bool
    without: int | None = None
    blocks: list[Block] = field(default_factory=list)

    def position(self, block: Block) -> int:
        """Return where the statistics that a block needs stand among those wanted, adding them if they are new."""
        for position, one in enumerate(self.blocks):
            if (
                one.columns == block.columns
                and one.density.sufficient_statistics == block.density.sufficient_statistics
            ):
                return position
        self.blocks.append(block)
        return len(self.blocks) - 1


@dataclass(frozen=True)
class _Sums:
    parts: tuple[JointStatistics, ...]

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


def cross_fit(
    source: LabelledSource,
    fold: Array,
    folds: int,
    plans: Sequence[Plan],
    progress: Callable[[int], None] | None = None,
) -> list[CrossFitted]:
    """Return, for each plan, the model of all rows and that of the rows outside each fold.

    Parameters
    ----------
    source : LabelledSource
        The rows, in the schema that they were inferred to have.
    fold : ndarray (n,)
        The number of each row's fold; −1 for rows that are never held out.
    folds : int
    plans : sequence of Plan
    progress : callable, optional
        Called with the number of rows of each batch done.
    """
    rows = _Folded(source.with_folds(fold), fold, folds)
    schemas = _schemas(CutPoints(rows.source.with_label_model(None), folds, source.n_jobs), plans)
    wanted: list[_StatisticsRequest] = []
    positions = [_request(wanted, plan, of_fold, folds) for plan, of_fold in zip(plans, schemas, strict=True)]
    sums = rows.source.with_progress(progress).reduce(_collect_each(wanted, folds))
    merged = [_without_each(one, part, folds) for one, part in zip(wanted, sums.parts, strict=True)]

    def learn_plan(plan: Plan, of_fold: list[Schema], where: list[tuple[int, list[int]]]) -> CrossFitted:
        def learn_without(k: int | None, full: FitResult | None = None) -> FitResult:
            number, blocks = where[folds if k is None else k]
            whole = merged[number]
            part = whole[(folds if k is None else k) if wanted[number].per_fold else 0]
            statistics = replace(part, blocks=tuple(part.blocks[position] for position in blocks))
            return _learn(rows.without(k).with_schema(of_fold[folds if k is None else k]), plan, statistics, full)

        def weigh(
            one: ObservedCategoriesModel, k: int | None, start: FactorWeights | None = None
        ) -> ObservedCategoriesModel:
            if plan.weighed is None:
                return one
            source = rows.without(k).with_schema(one.full)
            learned = FitResult(one.model, one.statistics)
            return replace(one, model=plan.weighed(learned, source, one.to_observed_codes, start))

        plain = learn_without(None)
        whole = weigh(ObservedCategoriesModel(plain.model.schema, plain.model, (), plain.statistics), None)
        near = whole.model.weights
        without = (
            weigh(ObservedCategoriesModel.of(learn_without(k, plain), plan.prior), k, near) for k in range(folds)
        )
        return CrossFitted(replace(plain, model=whole.model), tuple(without))

    work = list(zip(plans, schemas, positions, strict=True))
    n_jobs = min(n_threads(source.n_jobs), len(work)) if len(fold) >= _ENOUGH_ROWS else 1
    with blas().limit(limits=1, user_api="blas"):  # whose threads would cost more than these small matrices do
        if n_jobs == 1:
            return [learn_plan(*one) for one in work]
        with ThreadPoolExecutor(n_jobs) as threads:
            begun = [threads.submit(learn_plan, *one) for one in work]
            try:
                return [done.result() for done in begun]
            finally:  # after an error or Ctrl-C no further one is begun
                for one in begun:
                    one.cancel()


def score_held_out(
    source: LabelledSource,
    fold: Array,
    fitted: Sequence[CrossFitted],
    progress: Callable[[int], None] | None = None,
    sampled: Array | None = None,
) -> tuple[Array, Batch | None]:
    """Return log p(y | x) in nats of each row of a fold, by each plan's model of the rows outside it, (m, C, M).

    A row that no class can produce is NaN. The second value holds the cells of the rows that `sampled` (n,) marks, so
    that they can be looked at again without another pass; None where it is not given.
    """
    n_classes = fitted[0].full.model.n_classes

    def score(batch: Batch) -> tuple[Array, Batch | None]:
        assert batch.fold is not None
        kept = None if sampled is None else batch.rows(sampled[batch.start : batch.start + len(batch)])
        log_posterior = np.empty((np.count_nonzero(batch.fold >= 0), n_classes, len(fitted)))
        position = np.cumsum(batch.fold >= 0) - 1
        for k in range(len(fitted[0].without)):
            rows = np.flatnonzero(batch.fold == k)
            part = batch.rows(rows)
            for m, one in enumerate(fitted):
                log_posterior[position[rows], :, m] = one.without[k].log_posterior(part)
        return log_posterior, kept

    with blas().limit(limits=1, user_api="blas"):
        scores, kept = zip(*source.with_folds(fold).with_progress(progress).stream(score), strict=True)
    return np.concatenate(scores), None if sampled is None else joined(kept)


def _schemas(cut_points: CutPoints, plans: Sequence[Plan]) -> list[list[Schema]]:
    """Return, for each plan, the schema with its cut points of the rows outside each fold, and last of all rows."""
    found: dict[Any, list[Schema]] = {}
    keys = []
    for plan in plans:
        bins = bins_of(plan.blocks)
        keys.append(tuple(sorted(bins.items())))
        if keys[-1] not in found:
            found[keys[-1]] = cut_points.schemas(bins)
    return [found[key] for key in keys]


def _request(
    wanted: list[_StatisticsRequest], plan: Plan, schemas: list[Schema], folds: int
) -> list[tuple[int, list[int]]]:
    """Return, for each fold and last for all rows, what holds the statistics of a plan, and where its blocks are."""
    if all(schema is schemas[0] for schema in schemas):
        number = _find(wanted, _StatisticsRequest(schemas[0], per_fold=True))
        return [(number, [wanted[number].position(block) for block in plan.blocks])] * (folds + 1)
    positions = []
    for k, schema in zip([*range(folds), None], schemas, strict=True):
        number = _find(wanted, _StatisticsRequest(schema, per_fold=False, without=k))
        positions.append((number, [wanted[number].position(block) for block in plan.blocks]))
    return positions


def _find(wanted: list[_StatisticsRequest], new: _StatisticsRequest) -> int:
    for number, one in enumerate(wanted):
        if (one.per_fold, one.without) == (new.per_fold, new.without) and one.schema == new.schema:
            return number
    wanted.append(new)
    return len(wanted) - 1


def _collect_each(wanted: Sequence[_StatisticsRequest], folds: int) -> Callable[[Batch], _Sums]:
    """Return the function that takes a batch to all statistics that are wanted."""
    sums = [Collect(tuple(one.blocks)) for one in wanted]

    def accumulate(batch: Batch) -> _Sums:
        parts = []
        for one, collected in zip(wanted, sums, strict=True):
            rows = outside(batch, None if one.per_fold else one.without).with_schema(one.schema)
            parts.append(per_fold(collected, folds)(rows) if one.per_fold else collected(rows))
        return _Sums(tuple(parts))

    return accumulate


def _without_each(wanted: _StatisticsRequest, sums: JointStatistics, folds: int) -> list[JointStatistics]:
    """Return the statistics of the rows outside each fold, and last of all; or just these, where there is one kind."""
    if not wanted.per_fold:
        return [sums]
    same: list[Any] = [None] * len(sums.blocks)
    parts = [replace(sums.reindexed(some, same), hidden=0.0) for some in components_of_folds(len(sums.weight), folds)]
    parts[-1] = replace(parts[-1], hidden=sums.hidden)  # once in every sum
    return sums_without_each(parts)


def _learn(rows: LabelledSource, plan: Plan, statistics: JointStatistics, full: FitResult | None) -> FitResult:
    """Return the model of some rows; where it takes EM, that starts from the model of all of them.

    EM starts as in a refit where the bins of that model differ, and where labels hide components (rows without label,
    classes of several components, labels that may be wrong): there the likelihood has many maxima, and the one found
    from the labels of all rows would reveal the held-out labels.
    """
    start = None
    hidden = bool(statistics.hidden) or rows.label_model is not None
    if full is not None and full.trace and full.model.schema == rows.schema and not hidden:
        start = full.model
    return learn(rows, plan.blocks, plan.prior, None, statistics, plan.limits, start)
