"""Cross-fitting in one pass: statistics are added up per fold, and each fold's model takes the sum of the other folds.

Statistics that several models need are added up once. Cut points must not depend on the held-out rows. If they differ
between folds, each fold has statistics of its own: of the rows outside it, binned at its cut points.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any

import numpy as np

from posteriori.densities import Grouped
from posteriori.learning.cut_points import CutPoints
from posteriori.learning.fit import FitResult, Plan, without_groups
from posteriori.learning.fold_fits import CrossFitted, PlanFit, PlanSubset, fit_all
from posteriori.learning.held_out_forests import fit_forest, leaves_folds_out
from posteriori.learning.requests import IN_NO_FOLD, PassRequest, SubsetSums
from posteriori.learning.second_passes import Prepared, Subset, prepare
from posteriori.learning.work_bounds import COUNTING, COUNTING_AGAIN, CUTTING, FITTING, WorkCounts, announce_work
from posteriori.model import bins_of
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.support.threads import n_threads
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.progress import step

_ENOUGH_FACTORS = 150_000  # of rows, columns and classes; below this, starting threads costs more than it saves


def cross_fit(
    source: LabelledSource,
    fold: Array,
    folds: int,
    plans: Sequence[Plan],
    progress: Callable[[int], None] | None = None,
    held_out: Batch | None = None,
    leave_trees_out: bool = False,
    known: Sequence[FitResult] | None = None,
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
    known : sequence of FitResult, optional
        The fit of each plan to all rows, where these were dealt to other folds before.

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
    known_fits: Sequence[FitResult | None] = [None] * len(plans) if known is None else known
    known_fits = [fit for fit, one in zip(known_fits, by_trees, strict=True) if not one]
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
    for plan, of_plan, of_subsets, full in zip(plans, schemas, prepared, known_fits, strict=True):
        learned_from = rows.with_unlabelled_weight(0.0) if _ignores_unlabelled(plan, source) else rows
        *parts, whole = (
            PlanSubset(learned_from, excluded, schema, ready, held_out)
            for excluded, schema, ready in zip([*range(folds), None], of_plan, of_subsets, strict=True)
        )
        fits.append(PlanFit(plan, whole, tuple(parts), full))
    is_small = len(fold) * len(source.schema.columns) * n_classes < _ENOUGH_FACTORS
    fitted, grown = iter(fit_all(fits, 1 if is_small else n_threads(source.n_jobs))), iter(forests)
    return [next(grown if one else fitted) for one in by_trees]


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


def _fit_forests(rows: LabelledSource, folds: int, plans: Sequence[Plan], cut_points: CutPoints) -> list[CrossFitted]:
    """Return the forests of some plans, one after the other: each grows its trees in threads."""
    found = []
    for plan in plans:
        with step(CUTTING):
            schema = cut_points.schemas(bins_of(plan.blocks))[-1]
        with step(FITTING):
            found.append(CrossFitted(*fit_forest(rows, folds, plan, schema)))
    return found


def _requests(plan: Plan, schemas: Sequence[Schema]) -> list[tuple[PassRequest, ...]]:
    """Return the requests of a plan for the rows outside each fold, and last for all rows."""
    if _are_one(schemas):
        return [PassRequest.of_model(schemas[0], None, plan.blocks)] * len(schemas)
    return [PassRequest.of_model(schema, subset, plan.blocks) for subset, schema in enumerate(schemas)]


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
    wanted: Sequence[list[tuple[PassRequest, ...]]],
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
