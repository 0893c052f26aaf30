"""The fits of several models to all rows and to the rows outside each fold, from their statistics, in threads."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from threading import Lock
from typing import Any, cast

from posteriori.learning.fit import FitResult, Plan, learn, needs_em, refine
from posteriori.learning.folds import outside
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.learning.second_passes import Prepared
from posteriori.learning.work_bounds import FITTING
from posteriori.model import FactorWeights, GenerativeModel
from posteriori.sources import LabelledSource
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.progress import start_candidates, without_passes


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
class PlanSubset:
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
class PlanFit:
    """Fits one plan to all rows and to the rows outside each fold.

    `known` is the fit to all rows, where these were dealt to other folds before.
    """

    plan: Plan
    all_rows: PlanSubset
    outside: tuple[PlanSubset, ...]
    known: FitResult | None = None

    def whole(self) -> FitResult:
        """Return the fit to all rows."""
        return replace(self._unweighted, model=self._full)

    def model(self, k: int) -> ObservedCategoriesModel:
        """Return the model of the rows outside fold k. EM starts and ends as in a refit."""
        subset = self.outside[k]
        known = self._in_closed_form(subset)
        if known is None:
            known = ObservedCategoriesModel.of(self._learn(subset), self.plan.prior)
        return self._weighted(known, subset, self._full.weights)

    def _in_closed_form(self, subset: PlanSubset) -> ObservedCategoriesModel | None:
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
        return self._learn(self.all_rows) if self.known is None else self.known

    @cached_property
    def _full(self) -> GenerativeModel:
        """The model of all rows. Its factor weights are the start of those of each fold."""
        if self.known is not None:
            return self.known.model
        fit = self._unweighted
        known = ObservedCategoriesModel(fit.model.schema, fit.model, (), fit.statistics)
        return self._weighted(known, self.all_rows, None).model

    def _learn(self, subset: PlanSubset) -> FitResult:
        plan, of_rows = self.plan, subset.prepared
        rows = subset.rows(subset.schema)
        return learn(rows, of_rows.blocks, plan.prior, None, of_rows.statistics, plan.limits, patterns=of_rows.patterns)

    def _weighted(
        self, known: ObservedCategoriesModel, subset: PlanSubset, start: FactorWeights | None
    ) -> ObservedCategoriesModel:
        """Return the model with factor weights, if the plan learns them."""
        if self.plan.weighed is None:
            return known
        learned = FitResult(known.model, known.statistics)
        rows = subset.rows(known.full)
        model = self.plan.weighed(learned, rows, known.to_observed_codes, start, subset.sample(known.full))
        return replace(known, model=model)


def fit_all(fits: Sequence[PlanFit], n_jobs: int) -> list[CrossFitted]:
    """Fit each plan to all rows, and then to the rows outside each fold: one fit per thread."""
    advance, lock = start_candidates(FITTING, len(fits)), Lock()
    left = [len(fit.outside) for fit in fits]

    def whole(fit: PlanFit) -> FitResult:
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

    with one_blas_thread():  # threads of BLAS cost more than they save on small matrices
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
