"""Cross-fitting in one pass: statistics are added up per fold, and each fold's model takes the sum of the other folds.

Statistics that several models need are added up once. Cut points must not depend on the held-out rows. If they differ
between folds, each fold has statistics of its own: of the rows outside it, binned at its cut points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, Protocol, cast

import numpy as np

from posteriori.densities import Grouped
from posteriori.learning.cut_points import CutPoints
from posteriori.learning.fit import Collect, FitResult, Plan, learn, needs_em, refine, without_groups
from posteriori.learning.folds import components_of_folds, outside, per_fold, sums_of_parts, sums_without_each
from posteriori.learning.shared_passes import (
    ObservedCategoriesModel,
    Prepared,
    RequestSums,
    SharedPasses,
    Subset,
    fit_forest,
    leaves_folds_out,
)
from posteriori.learning.work_bounds import (
    COUNTING,
    COUNTING_AGAIN,
    CUTTING,
    FITTING,
    SCORING,
    WorkCounts,
    announce_work,
)
from posteriori.model import Block, FactorWeights, GenerativeModel, bins_of
from posteriori.sources import LabelledSource
from posteriori.sources.table_source import blas, in_order, n_threads
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.batch import joined
from posteriori.tables.progress import start_candidates, step, without_passes

_ENOUGH_FACTORS = 150_000  # of rows, columns and classes; below this, starting threads costs more than it saves


@dataclass(frozen=True)
class CrossFitted:
    """The models of one plan.

    Attributes
    ----------
    full : FitResult
        The fit to all rows.
    without : tuple of ObservedCategoriesModel
        For each fold, the model of the rows outside it. It knows only the categories that these rows show.
    """

    full: FitResult
    without: tuple[ObservedCategoriesModel, ...]


@dataclass(frozen=True)
class _PlanSubset:
    """The rows outside one fold, or all rows, with their cut points and their statistics for one plan.

    Attributes
    ----------
    source : LabelledSource
        All rows.
    excluded : int or None
        The fold that is left out; None for all rows.
    schema : Schema
        With the cut points of the subset.
    prepared : Prepared
        The blocks of the plan, their statistics of the subset, and its patterns of missing cells.
    held_out : Batch or None
        The rows that are in a fold, where most rows are in none: enough rows to learn factor weights from.
    """

    source: LabelledSource
    excluded: int | None
    schema: Schema
    prepared: Prepared
    held_out: Batch | None

    def sample(self, schema: Schema) -> Batch | None:
        """Return rows of the subset that are in memory, under a schema; None if there are none."""
        return None if self.held_out is None else outside(self.held_out, self.excluded).with_schema(schema)

    def rows(self, schema: Schema) -> LabelledSource:
        """Return the rows under a schema; those of the excluded fold have weight 0."""
        # Made when it is needed: a weight per row for every fold of every plan would not fit into memory.
        if self.excluded is None:
            return self.source.with_schema(schema)
        fold = cast(Array, self.source.folds)  # `cross_fit` sets them
        return self.source.reweighted(fold != self.excluded).with_schema(schema)


@dataclass(frozen=True)
class _PlanFit:
    """Fits one plan to all rows and to the rows outside each fold."""

    plan: Plan
    all_rows: _PlanSubset
    outside: tuple[_PlanSubset, ...]

    def whole(self) -> FitResult:
        """Return the fit to all rows."""
        return replace(self._unweighted, model=self._full)

    def model(self, k: int) -> ObservedCategoriesModel:
        """Return the model of the rows outside fold k, which starts at the fit to all rows."""
        subset = self.outside[k]
        known = self._in_closed_form(subset)
        if known is None:
            known = ObservedCategoriesModel.of(self._learn(subset, self._start(subset)), self.plan.prior)
        return self._weighted(known, subset, self._full.weights)

    def _in_closed_form(self, subset: _PlanSubset) -> ObservedCategoriesModel | None:
        """Return the model of a subset, estimated once for the categories that it holds; None if it takes EM."""
        prepared = subset.prepared
        if needs_em(prepared.blocks, prepared.statistics):
            return None
        blocks, statistics = refine(subset.rows(subset.schema), prepared.blocks, prepared.statistics)
        if needs_em(blocks, statistics):
            return None
        return ObservedCategoriesModel.estimated(subset.schema, blocks, self.plan.prior, statistics)

    @cached_property
    def _unweighted(self) -> FitResult:
        """The fit to all rows, before factor weights are learned."""
        return self._learn(self.all_rows, None)

    @cached_property
    def _full(self) -> GenerativeModel:
        """The model of all rows. Its factor weights are the start of those of each fold."""
        fit = self._unweighted
        known = ObservedCategoriesModel(fit.model.schema, fit.model, (), fit.statistics)
        return self._weighted(known, self.all_rows, None).model

    def _start(self, subset: _PlanSubset) -> GenerativeModel | None:
        """Return the model of all rows as the start of EM in a fold; None for the start of a refit.

        EM starts as in a refit if the bins differ, and if labels hide components (rows without label, classes of
        several components, labels that may be wrong). In the second case the likelihood has many maxima, and the one
        reached from the labels of all rows would reveal the held-out labels.
        """
        full = self._unweighted
        hidden = bool(subset.prepared.statistics.hidden) or subset.source.label_model is not None
        return full.model if full.trace and self.all_rows.schema == subset.schema and not hidden else None

    def _learn(self, subset: _PlanSubset, start: GenerativeModel | None) -> FitResult:
        plan, of_rows = self.plan, subset.prepared
        rows = subset.rows(subset.schema)
        return learn(
            rows, of_rows.blocks, plan.prior, None, of_rows.statistics, plan.limits, start, patterns=of_rows.patterns
        )

    def _weighted(
        self, known: ObservedCategoriesModel, subset: _PlanSubset, start: FactorWeights | None
    ) -> ObservedCategoriesModel:
        """Return the model with factor weights, if the plan learns them."""
        if self.plan.weighed is None:
            return known
        learned = FitResult(known.model, known.statistics)
        rows = subset.rows(known.full)
        model = self.plan.weighed(learned, rows, known.to_observed_codes, start, subset.sample(known.full))
        return replace(known, model=model)


class _Request(Protocol):
    """Statistics of some blocks under one schema, to be added up in the pass over the rows."""

    schema: Schema
    blocks: list[Block]

    def matches(self, other: _Request) -> bool:
        """Whether the statistics are of the same cells of the same rows."""

    def collector(self, folds: int) -> Callable[[Batch], JointStatistics]:
        """Return the function from a batch to its statistics, from which `of_subsets` takes those of the subsets."""

    def plain_collector(self) -> Callable[[Batch], JointStatistics]:
        """Return the function from a batch to the statistics of all its rows."""

    def of_subsets(self, sums: JointStatistics, folds: int) -> list[JointStatistics]:
        """Return the statistics of each subset of rows that they hold."""


@dataclass
class _PerFoldRequest:
    """Statistics per fold under one schema: they give those of the rows outside each fold, and last of all rows."""

    schema: Schema
    blocks: list[Block] = field(default_factory=list)

    def matches(self, other: _Request) -> bool:
        return isinstance(other, _PerFoldRequest) and self.schema == other.schema

    def collector(self, folds: int) -> Callable[[Batch], JointStatistics]:
        collect = per_fold(Collect(tuple(self.blocks)), folds)
        return lambda batch: collect(batch.with_schema(self.schema))

    def plain_collector(self) -> Callable[[Batch], JointStatistics]:
        collect = Collect(tuple(self.blocks))
        return lambda batch: collect(batch.with_schema(self.schema))

    def of_subsets(self, sums: JointStatistics, folds: int) -> list[JointStatistics]:
        same: list[Any] = [None] * len(sums.blocks)
        parts = [
            replace(sums.reindexed(components, same), hidden=0.0)
            for components in components_of_folds(len(sums.weight), folds)
        ]
        # The weight of rows without label belongs to no fold: it goes to the part that is in every sum, once.
        parts[-1] = replace(parts[-1], hidden=sums.hidden)
        return sums_without_each(parts)


@dataclass
class _SubsetRequest:
    """Statistics of the rows outside one fold, or of all rows, binned at the cut points of these rows."""

    schema: Schema
    excluded: int | None
    blocks: list[Block] = field(default_factory=list)

    def matches(self, other: _Request) -> bool:
        return isinstance(other, _SubsetRequest) and self.excluded == other.excluded and self.schema == other.schema

    def collector(self, folds: int) -> Callable[[Batch], JointStatistics]:
        collect = Collect(tuple(self.blocks))
        return lambda batch: collect(outside(batch, self.excluded).with_schema(self.schema))

    plain_collector = _PerFoldRequest.plain_collector

    def of_subsets(self, sums: JointStatistics, folds: int) -> list[JointStatistics]:
        return [sums]


@dataclass(frozen=True)
class _Address:
    """Where to find the statistics of one subset for one plan: request, subset within it, and blocks within that."""

    request: int
    subset: int
    blocks: tuple[int, ...]

    def select(self, statistics: Sequence[Sequence[JointStatistics]], without_hidden: bool) -> JointStatistics:
        whole = statistics[self.request][self.subset]
        hidden = 0.0 if without_hidden else whole.hidden
        return replace(whole, blocks=tuple([whole.blocks[index] for index in self.blocks]), hidden=hidden)


def cross_fit(
    source: LabelledSource,
    fold: Array,
    folds: int,
    plans: Sequence[Plan],
    progress: Callable[[int], None] | None = None,
    held_out: Batch | None = None,
    leave_trees_out: bool = False,
) -> list[CrossFitted]:
    """Return, for each plan, the model of all rows and the models of the rows outside each fold.

    Parameters
    ----------
    source : LabelledSource
        The rows, under their inferred schema.
    fold : ndarray (n,)
        The fold of each row, in 0 … folds − 1; −1 for rows that train the models of all folds.
    folds : int
    plans : sequence of Plan
    progress : callable, optional
        Called with the number of rows of each finished batch.
    held_out : Batch, optional
        The rows that are in a fold, where most labelled rows are in none. Those in none then choose the cut points and
        the groups of categories of all models.
    leave_trees_out : bool
        Whether the models of a forest without a fold are the trees that did not see it (`fit_forest`), not a refit.

    Raises
    ------
    ValueError
        The work exceeds the limits of `Work`; or for the reasons of a fit.
    """
    n_classes = 1 if source.classes is None else source.classes.cardinality
    counts = WorkCounts(len(fold), int(np.count_nonzero(fold >= 0)), n_classes, folds, leave_trees_out)
    announce_work(plans, source.schema, counts)
    if source.label_model is not None:  # groups are chosen from counts of known components
        plans = [replace(plan, blocks=without_groups(plan.blocks)) for plan in plans]
    rows = source.with_folds(fold)
    labelled = rows.with_label_model(None)
    cut_points = (
        CutPoints(labelled, folds, source.n_jobs)
        if held_out is None
        else CutPoints(source.with_label_model(None).reweighted(fold < 0), 0, source.n_jobs)
    )
    by_trees = [leave_trees_out and leaves_folds_out(plan, folds) for plan in plans]
    forests = _fit_forests(rows, folds, [plan for plan, one in zip(plans, by_trees, strict=True) if one], cut_points)
    plans = [plan for plan, one in zip(plans, by_trees, strict=True) if not one]
    if not plans:
        return forests
    with step(CUTTING):
        schemas = _schemas(cut_points, plans, folds)
    requests: list[_Request] = []
    addresses = [_request(requests, *pair, folds) for pair in zip(plans, schemas, strict=True)]
    with step(COUNTING):
        statistics, in_no_fold = _statistics(rows.with_progress(progress), folds, requests, held_out)
    if in_no_fold:
        plans = [_with_groups(plan, of_plan[-1], in_no_fold) for plan, of_plan in zip(plans, addresses, strict=True)]
    with step(COUNTING_AGAIN):
        prepared = _prepared(SharedPasses(rows, folds, held_out), plans, schemas, addresses, statistics)
    fits = []
    for plan, of_plan, of_subsets in zip(plans, schemas, prepared, strict=True):
        learned_from = rows.with_unlabelled_weight(0.0) if _ignores_unlabelled(plan, source) else rows
        *parts, whole = (
            _PlanSubset(learned_from, excluded, schema, ready, held_out)
            for excluded, schema, ready in zip([*range(folds), None], of_plan, of_subsets, strict=True)
        )
        fits.append(_PlanFit(plan, whole, tuple(parts)))
    is_small = len(fold) * len(source.schema.columns) * n_classes < _ENOUGH_FACTORS
    fitted, grown = iter(_fit_all(fits, 1 if is_small else n_threads(source.n_jobs))), iter(forests)
    return [next(grown if one else fitted) for one in by_trees]


def _fit_forests(rows: LabelledSource, folds: int, plans: Sequence[Plan], cut_points: CutPoints) -> list[CrossFitted]:
    """Return the forests of some plans, one after the other: each grows its trees in threads."""
    found = []
    for plan in plans:
        with step(CUTTING):
            schema = cut_points.schemas(bins_of(plan.blocks))[-1]
        with step(FITTING):
            found.append(CrossFitted(*fit_forest(rows, folds, plan, schema)))
    return found


def _statistics(
    rows: LabelledSource, folds: int, requests: Sequence[_Request], held_out: Batch | None
) -> tuple[list[list[JointStatistics]], list[list[JointStatistics]]]:
    """Return the statistics of each request, of each subset of rows that it holds, from one pass.

    The second result holds the statistics of the rows in no fold, where most rows are in none; otherwise it is empty.
    """
    if held_out is None:
        sums = rows.reduce(_collect_each([request.collector(folds) for request in requests]))
        return [request.of_subsets(part, folds) for request, part in zip(requests, sums.parts, strict=True)], []
    parts = sums_of_parts(rows, _collect_each([request.plain_collector() for request in requests]), folds, held_out)
    of_subsets = sums_without_each(parts)
    return [[sums.parts[i] for sums in of_subsets] for i in range(len(requests))], [[one] for one in parts[-1].parts]


def _with_groups(plan: Plan, address: _Address, statistics: Sequence[Sequence[JointStatistics]]) -> Plan:
    """Return the plan with the groups of categories that the statistics choose, for all subsets of the rows.

    Groups of each subset would take statistics of each, and so as many times the work.
    """
    known = replace(address, subset=0).select(statistics, without_hidden=False)
    blocks = tuple(
        replace(block, density=block.density.grouped_by(sums)) if isinstance(block.density, Grouped) else block
        for block, sums in zip(plan.blocks, known.blocks, strict=True)
    )
    return replace(plan, blocks=blocks)


def _prepared(
    passes: SharedPasses,
    plans: Sequence[Plan],
    schemas: Sequence[list[Schema]],
    addresses: Sequence[list[_Address]],
    statistics: Sequence[Sequence[JointStatistics]],
) -> list[list[Prepared]]:
    """Return, for each plan and subset, what its fit needs; second passes are shared where the subsets have one schema.

    Where each subset has cut points of its own, its fits make their own second passes.
    """
    found = []
    for plan, of_plan in zip(plans, addresses, strict=True):
        without_hidden = _ignores_unlabelled(plan, passes.source)
        found.append([Prepared(plan.blocks, address.select(statistics, without_hidden)) for address in of_plan])
    places, subsets = [], []
    for p, of_schemas in enumerate(schemas):
        if _are_one(of_schemas):
            for k, ready in enumerate(found[p]):
                places.append((p, k))
                subsets.append(Subset(of_schemas[0], k, ready.blocks, ready.statistics))
    for (p, k), ready in zip(places, passes.prepare(subsets), strict=True):
        found[p][k] = ready
    return found


def _ignores_unlabelled(plan: Plan, source: LabelledSource) -> bool:
    """Return whether rows without label are left out of the fits of a plan."""
    return not plan.learns_unlabelled and source.label_model is None


def _are_one(schemas: Sequence[Schema]) -> bool:
    """Return whether all subsets have one schema; `CutPoints.schemas` then returns one object for all of them."""
    return len(set(map(id, schemas))) == 1


def _fit_all(fits: Sequence[_PlanFit], n_jobs: int) -> list[CrossFitted]:
    """Fit each plan to all rows, and then to the rows outside each fold: one fit per thread."""
    advance, lock = start_candidates(FITTING, len(fits)), Lock()
    left = [len(fit.outside) for fit in fits]

    def whole(fit: _PlanFit) -> FitResult:
        with without_passes():
            found = fit.whole()
        if not fit.outside:
            advance(1)
        return found

    def without(place: int, k: int) -> ObservedCategoriesModel:
        with without_passes():
            found = fits[place].model(k)
        with lock:
            left[place] -= 1
        if not left[place]:
            advance(1)
        return found

    with blas().limit(limits=1, user_api="blas"):  # threads of BLAS cost more than they save on small matrices
        if n_jobs == 1:
            return [
                CrossFitted(whole(fit), tuple([without(place, k) for k in range(len(fit.outside))]))
                for place, fit in enumerate(fits)
            ]
        with ThreadPoolExecutor(n_jobs) as threads:
            wholes = [threads.submit(whole, fit) for fit in fits]
            folds: list[list[Future[ObservedCategoriesModel]]] = [[] for _ in fits]
            try:
                for done in as_completed(wholes):
                    done.result()  # after an error, no fold is fitted
                    place = wholes.index(done)
                    folds[place] = [threads.submit(without, place, k) for k in range(len(fits[place].outside))]
                return [
                    CrossFitted(one.result(), tuple([fold.result() for fold in of_folds]))
                    for one, of_folds in zip(wholes, folds, strict=True)
                ]
            finally:  # after an error or Ctrl-C, start no further fit
                every: list[Future[Any]] = [*wholes, *chain.from_iterable(folds)]
                for future in every:
                    future.cancel()


def score_held_out(
    source: LabelledSource,
    fold: Array,
    fitted: Sequence[CrossFitted],
    progress: Callable[[int], None] | None = None,
    sampled: Array | None = None,
) -> tuple[Array, Batch | None]:
    """Return log p(y | x) in nats of each row that is in a fold, by the models of the rows outside it, (m, C, M).

    The values of a row that no class can produce are NaN. The second result holds the cells of the rows that the mask
    `sampled` (n,) marks, so that they need no further pass; it is None without a mask.
    """
    n_classes = fitted[0].full.model.n_classes

    def score(batch: Batch) -> tuple[Array, Batch | None]:
        assert batch.fold is not None
        kept = None if sampled is None else batch.rows(sampled[batch.start : batch.start + len(batch)])
        log_posterior = np.empty((np.count_nonzero(batch.fold >= 0), n_classes, len(fitted)))
        position = np.cumsum(batch.fold >= 0) - 1
        for k in range(len(fitted[0].without)):
            rows = np.flatnonzero(batch.fold == k)
            held_out = batch.rows(rows)
            for m, models in enumerate(fitted):
                log_posterior[position[rows], :, m] = models.without[k].log_posterior(held_out)
        return log_posterior, kept

    with blas().limit(limits=1, user_api="blas"):
        scores, kept = zip(*source.with_folds(fold).with_progress(progress).stream(score), strict=True)
    return np.concatenate(scores), None if sampled is None else joined(kept)


def score_batch(
    held_out: Batch,
    fitted: Sequence[CrossFitted],
    n_jobs: int | None,
    n_rows: int,
    progress: Callable[[int], None] | None = None,
) -> Array:
    """Return log p(y | x) in nats of the rows of a batch by the models of the rows outside their folds, (m, C, M).

    `progress` is called with numbers of rows whose sum is `n_rows`.
    """
    n_classes = fitted[0].full.model.n_classes
    log_posterior = np.empty((len(held_out), n_classes, len(fitted)))
    assert held_out.fold is not None
    positions = [np.flatnonzero(held_out.fold == k) for k in range(len(fitted[0].without))]
    in_fold = [held_out.rows(rows) for rows in positions]
    tasks = [(k, m) for m in range(len(fitted)) for k in range(len(positions))]

    def score(task: tuple[int, int]) -> None:
        k, m = task
        log_posterior[positions[k], :, m] = fitted[m].without[k].log_posterior(in_fold[k])

    done = 0
    advance = start_candidates(SCORING, len(fitted))
    for number, _ in enumerate(in_order(tasks, score, n_threads(n_jobs)), start=1):
        if number % len(positions) == 0:
            advance(1)
        if progress is not None:
            rows = n_rows * number // len(tasks)
            progress(rows - done)
            done = rows
    return log_posterior


def _schemas(cut_points: CutPoints, plans: Sequence[Plan], folds: int) -> list[list[Schema]]:
    """Return, for each plan, the schemas with the cut points of the rows outside each fold, and last of all rows."""
    by_bins: dict[Any, list[Schema]] = {}
    keys = []
    for plan in plans:
        bins = bins_of(plan.blocks)
        keys.append(tuple(sorted(bins.items())))
        if keys[-1] not in by_bins:
            found = cut_points.schemas(bins)
            by_bins[keys[-1]] = found if len(found) > 1 else found * (folds + 1)
    return [by_bins[key] for key in keys]


def _request(requests: list[_Request], plan: Plan, schemas: list[Schema], folds: int) -> list[_Address]:
    """Request the statistics of a plan, and return the address of each fold's, and last that of all rows."""
    if _are_one(schemas):
        index = _index(requests, _PerFoldRequest(schemas[0]))
        blocks = _block_indices(requests[index].blocks, plan.blocks)
        return [_Address(index, subset, blocks) for subset in range(folds + 1)]
    addresses = []
    for excluded, schema in zip([*range(folds), None], schemas, strict=True):
        index = _index(requests, _SubsetRequest(schema, excluded))
        addresses.append(_Address(index, 0, _block_indices(requests[index].blocks, plan.blocks)))
    return addresses


def _index(requests: list[_Request], new: _Request) -> int:
    """Return the index of a request, which is appended if there is no equal one."""
    for index, request in enumerate(requests):
        if request.matches(new):
            return index
    requests.append(new)
    return len(requests) - 1


def _block_indices(requested: list[Block], blocks: Sequence[Block]) -> tuple[int, ...]:
    """Return the index of each block's statistics among those requested, to which new ones are appended."""
    indices = []
    for block in blocks:
        wanted = block.columns, block.density.sufficient_statistics
        known = [(other.columns, other.density.sufficient_statistics) for other in requested]
        if wanted not in known:
            requested.append(block)
        indices.append(known.index(wanted) if wanted in known else len(known))
    return tuple(indices)


def _collect_each(collectors: Sequence[Callable[[Batch], JointStatistics]]) -> Callable[[Batch], RequestSums]:
    """Return the function from a batch to the statistics of all requests."""

    def accumulate(batch: Batch) -> RequestSums:
        return RequestSums(tuple(collect(batch) for collect in collectors))

    return accumulate
