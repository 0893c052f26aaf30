"""Cross-fitting in one pass: statistics are added up per fold, and each fold's model takes the sum of the other folds.

Statistics that several models need are added up once. Cut points must not depend on the held-out rows. If they differ
between folds, each fold has statistics of its own: of the rows outside it, binned at its cut points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, cast

import numpy as np

from posteriori.densities import Grouped
from posteriori.learning.cut_points import CutPoints
from posteriori.learning.fit import FitResult, Plan, learn, needs_em, refine, without_groups
from posteriori.learning.folds import outside
from posteriori.learning.held_out_forests import fit_forest, leaves_folds_out
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.requests import IN_NO_FOLD, Request, SubsetSums
from posteriori.learning.second_passes import Prepared, Subset, prepare
from posteriori.learning.work_bounds import (
    COUNTING,
    COUNTING_AGAIN,
    CUTTING,
    FITTING,
    SCORING,
    WorkCounts,
    announce_work,
)
from posteriori.model import FactorWeights, GenerativeModel, bins_of
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
    wanted = [_requests(*pair) for pair in zip(plans, schemas, strict=True)]
    sums = SubsetSums(rows, folds, held_out)
    with step(COUNTING):
        sums.add_up(chain.from_iterable(chain.from_iterable(wanted)), progress)
    if held_out is not None:
        in_no_fold = [sums.of_model(requests[-1], IN_NO_FOLD) for requests in wanted]
        plans = [_with_groups(*pair) for pair in zip(plans, in_no_fold, strict=True)]
    with step(COUNTING_AGAIN):
        prepared = _prepared(sums, plans, schemas, wanted)
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


def _requests(plan: Plan, schemas: Sequence[Schema]) -> list[tuple[Request, ...]]:
    """Return the requests of a plan for the rows outside each fold, and last for all rows."""
    if _are_one(schemas):
        return [Request.of_model(schemas[0], None, plan.blocks)] * len(schemas)
    return [Request.of_model(schema, subset, plan.blocks) for subset, schema in enumerate(schemas)]


def _with_groups(plan: Plan, statistics: JointStatistics) -> Plan:
    """Return the plan with the groups of categories that the statistics choose, for all subsets of the rows.

    Groups of each subset would take statistics of each, and so as many times the work.
    """
    blocks = tuple(
        replace(block, density=block.density.grouped_by(sums)) if isinstance(block.density, Grouped) else block
        for block, sums in zip(plan.blocks, statistics.blocks, strict=True)
    )
    return replace(plan, blocks=blocks)


def _prepared(
    sums: SubsetSums,
    plans: Sequence[Plan],
    schemas: Sequence[list[Schema]],
    wanted: Sequence[list[tuple[Request, ...]]],
) -> list[list[Prepared]]:
    """Return, for each plan and subset, what its fit needs; second passes are shared where the subsets have one schema.

    Where each subset has cut points of its own, its fits make their own second passes.
    """
    found, places, subsets = [], [], []
    for p, (plan, of_plan, requests) in enumerate(zip(plans, schemas, wanted, strict=True)):
        counted = [sums.of_model(one, subset) for subset, one in enumerate(requests)]
        if _ignores_unlabelled(plan, sums.source):
            counted = [replace(statistics, hidden=0.0) for statistics in counted]
        found.append([Prepared(plan.blocks, statistics) for statistics in counted])
        if _are_one(of_plan):
            places += [(p, subset) for subset in range(len(counted))]
            subsets += [Subset(of_plan[0], subset, plan.blocks, one) for subset, one in enumerate(counted)]
    for (p, subset), ready in zip(places, prepare(sums, subsets), strict=True):
        found[p][subset] = ready
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
