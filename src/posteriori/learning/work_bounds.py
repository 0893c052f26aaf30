"""The work of fitting and cross-validating plans, estimated from counts before it begins, and its steps."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.densities import (
    AveragedOneDependence,
    Grouped,
    KDependence,
    MultivariateGaussian,
    RandomTrees,
    SummedTrees,
)
from posteriori.densities.covariances import Pooled
from posteriori.densities.tree_growing import FOLDS, fewest_in_node, trees_for
from posteriori.learning import learned_tables, weights
from posteriori.learning.cut_points import SAMPLED_ROWS
from posteriori.learning.fit import Plan
from posteriori.learning.held_out_forests import leaves_folds_out
from posteriori.learning.minimisation import n_remembered
from posteriori.model import Block, bins_of
from posteriori.model_cost import EM_STEPS, MOST_GROUPS, Work
from posteriori.statistics import Scatter
from posteriori.statistics.counts import CountTogether
from posteriori.statistics.forests import MOST_ROWS
from posteriori.statistics.pairs import Pairs
from posteriori.support.typing import Array
from posteriori.tables import Schema
from posteriori.tables.progress import Step

DESCRIBING = "describing columns"
READING = "reading"
CUTTING = "choosing cut points"
COUNTING = "statistics"
COUNTING_AGAIN = "statistics of chosen structures"
FITTING = "fitting"
SCORING = "cross-validating"
POOLING = "pooling"


def first_steps(n_rows: int, n_columns: int) -> list[Step]:
    """Return the steps that read the rows before models are fitted.

    The costs are seconds that one thread took on tables of 2·10⁵ to 1.6·10⁶ rows and 50 columns.
    """
    cells = n_rows * n_columns / 1e7
    return [Step(DESCRIBING, 0.9 * cells), Step("categories", 0.1 * cells), Step(READING, 0.6 * cells, 2)]


def fitting_steps(n_rows: int, n_columns: int, n_evaluated: int, n_candidates: int, folds: int) -> list[Step]:
    """Return the steps from the cells in memory to the models of all candidates and folds."""
    cells = n_rows * n_columns / 1e7
    pairs = cells * n_columns / 50
    share = n_candidates / 10
    return [
        Step(CUTTING, 0.5 + 0.5 * cells, 3),
        Step(COUNTING, 1.4 * pairs * share),
        Step(COUNTING_AGAIN, 1.0 * cells, 2),
        Step(FITTING, 3.8 * share * (folds + 1) / 6),
        Step(SCORING, 2.0 * share * n_evaluated / 5e4 * (n_columns / 50) ** 2),
        Step(POOLING, 1.0 * n_evaluated / 5e4),
    ]


_PER_VISIT = 1e-9  # of one column, or pair of columns, in one row
_PER_PRODUCT = 3e-10  # of two numbers of one row in a scatter matrix
_PER_PAIR = 1e-6  # of the bookkeeping of a pair of columns, in each fold
_BYTES_PER_PAIR = 150.0
_PER_CELL = 1e-8  # of a table of counts, to add it up over the folds and to estimate from it
_PER_CUBE = 2e-10  # d³ of a covariance
_PER_SORTED = 2e-8  # number of a column that is cut into bins
_PER_CUT = 2e-8  # number of a column and fold
_PER_MODEL = 5e-4  # of one fold
_ROWS_PER_TREE, _USUAL_TREES = 40, 500  # of a sum: 5 to 1,400 trees are grown, which nothing shows before
_PER_SHARE = 1e-8  # row, class and tree of a sum: p(y | x), its sums in leaves and its update
_PER_BIN = 3e-7  # of a column, and tree of a sum: the search of all its leaves
_GROWN = 1.5  # forests of a pool: half of the trees on most rows, and all of them on all rows
_PER_SPLIT = (3e-8, 2e-9)  # row, level of a tree and column that is tried for its best cut, for one at random
_PER_NODE_CELL = 2.1e-7  # of a node and a class, in the search of the strengths and in the weights of leaves
_PER_FACTOR = 5e-8  # row, class and column, of a weight per column
_PER_LEARNED = 5e-9  # row, class and column, in one evaluation of the loss of numbers per cell
_PER_DIRECTION = 1e-7  # direction of the prior of a column and class, in one evaluation and step of L-BFGS
_PER_EVALUATION = 5e-4
_EVALUATIONS = 50.0  # of few rows per column, which end the search for a penalty soon
_MORE_EVALUATIONS = 0.13  # per row and column; measured: 33 to 121 at 4 to 75 rows per column, 180 to 276 at 1,000
_MOST_ROWS_PER_COLUMN = 1500.0  # beyond these the evaluations are no more
_OF_FOLD = 0.2  # evaluations of a fold, which starts where all rows ended, with their penalty
_PER_ROOT = 4e-9  # m³ of a column of m bins, of its singular values
_PER_POOLED = 3e-8  # row, class and member, of the weights of a pool; about 30 evaluations
_PER_RESPONSIBILITY = 1.5e-8  # row and component, in a step of EM
_PER_E_STEP = 1.3e-9  # of a column, in one row and component
_PER_DISTANCE = 9e-8  # of a row from the mean of a component with a covariance, with or without missing numbers
_PER_E_PRODUCT = 1.3e-10  # of a pair of columns of a covariance, in one row and component
_PER_STEP = 1e-3  # of EM, whatever it reads
_PER_PATTERN_PAIR = 2e-8  # of a pair of columns of a covariance, in one row with missing numbers: few columns
_PER_GAP = (1e-6, 2e-7, 3e-9)  # of such a row, of each column, and of each pair of columns: many columns
_PER_VALUE = 2.5e-9  # of a cell that is read, converted and checked
_BINS = 8  # of a column, if the classes choose them
_SUMS = 3.0  # in a fit of several batches: the total, that of a batch, and their sum
_SUMS_PER_FOLD = 5.0  # of each fold, in one table and apart; from the first; from the last; outside it
_SUMS_PER_BINNED_FOLD = 1.5  # under cut points of its own, the sums outside a fold are counted at once
_COPIES = {"pooled": 1.3, "per class": 5.1, "aode": 3.1, "families": 4.1, "other": 1.2}  # with parameters, in a fit
_COPIES_IN_EM = 13.0  # of covariances: sums and parameters, of the models that SQUAREM compares
_VECTORS = 4  # of L-BFGS that are as long as the numbers of cells, besides steps and changes of the gradient
_TABLES_OF_CELLS = 2  # of the numbers of all cells and classes, besides the statistics
_FAMILIES_PER_FOLD = 12.0  # parents differ between the folds, and each set of parents is counted in each fold
_BYTES_PER_NODE_CELL = 44.0  # of a tree of noise; pure nodes are not split, so that separated classes take less
_BATCH = 1 << 14  # rows: more are read in several batches
_BYTES_PER_POSTERIOR = 16.0  # of a row, class and model: log posteriors, and a copy while they are clipped
_BYTES_PER_POOLED = 44.0  # of a row and class: what the pool computes from those of its members


@dataclass(frozen=True)
class WorkCounts:
    """Sizes of a table and of its cross-validation, known before it begins."""

    n_rows: int
    n_evaluated: int  # rows in a fold
    n_classes: int
    folds: int = 0  # 0 for a fit without cross-validation
    leave_trees_out: bool = False  # whether forests are not refitted without each fold (`fit_forest`)


def estimate_work(plan: Plan, schema: Schema, counts: WorkCounts) -> Work:
    """Return the work of fitting a plan to all rows and to the rows outside each fold, and of scoring each fold.

    It rises with each count, and is linear in classes and folds beyond a constant. EM is not included: the number of
    its steps is not known, and `work_of_em` counts the fewest.
    """
    bins = bins_of(plan.blocks)
    n_models, n, n_components = counts.folds + 1, counts.n_rows, max(counts.n_classes, len(plan.prior.of_class))
    sizes = _sizes(schema, bins)
    # Each fold counts under cut points of its own, unless most rows are in none.
    n_read = n + (counts.folds * counts.n_evaluated if bins else 0)
    seconds = _PER_MODEL * n_models + _PER_VALUE * n * len(sizes)
    n_sorted = min(n, SAMPLED_ROWS)
    seconds += len(bins) * (n_sorted * (_PER_SORTED * math.log2(n + 2) + _PER_CUT * n_models) + n * _PER_VISIT)
    n_bytes = _BYTES_PER_POSTERIOR * counts.n_evaluated * n_components
    for block in plan.blocks:
        if isinstance(block.density, SummedTrees):
            # A pool grows them on the evaluated rows, and on those outside one fold; a model by itself outside each.
            n_sums, n_grown = (2, counts.n_evaluated) if counts.leave_trees_out else (n_models * (FOLDS + 1), n)
            work = _work_of_sum(block.density, sizes[list(block.columns)], n_grown, n_components)
            seconds, n_bytes = seconds + n_sums * work.seconds, n_bytes + n_sums * work.n_bytes
            continue
        if isinstance(block.density, RandomTrees):
            n_forests = _GROWN if counts.leave_trees_out and leaves_folds_out(plan, counts.folds) else n_models
            work = _work_of_trees(block.density, len(block.columns), n, n_components)
            seconds, n_bytes = seconds + n_forests * work.seconds, n_bytes + work.n_bytes
            continue
        one = _sums_of(block, sizes)
        scored = (
            one.visits
            if isinstance(block.density, AveragedOneDependence | MultivariateGaussian)
            else len(block.columns)
        )
        seconds += n_read * one.seconds_per_row + n_models * (
            _PER_CELL * n_components * one.n_cells + _PER_PAIR * one.n_pairs + _PER_CUBE * n_components * one.cube
        )
        seconds += counts.n_evaluated * n_components * scored * _PER_VISIT
        n_bytes += n_components * _bytes_of_sums(block, one, counts, bool(bins)) + _BYTES_PER_PAIR * one.n_pairs
    if plan.weighed is not None:
        learned = _work_of_cells(sizes, bins, n, n_components)
        weighed = learned if plan.learns_cells else _work_of_weights(plan, n, n_components)
        searches = 1 + _OF_FOLD * counts.folds if plan.learns_cells else n_models
        seconds, n_bytes = seconds + searches * weighed.seconds, n_bytes + weighed.n_bytes
    return Work(seconds, n_bytes)


def _work_of_weights(plan: Plan, n_rows: int, n_components: int) -> Work:
    """Return the work of one weight per column, in one model."""
    n_factors = n_components * sum(len(block.columns) for block in plan.blocks)
    n_learned = min(min(n_rows, weights.MOST_ROWS) * n_factors, weights.MOST_FACTORS)
    return Work(n_learned * _PER_FACTOR, 12.0 * n_learned)  # the factors, and their differences between classes


def _work_of_cells(sizes: Array, bins: Mapping[int, Any], n_rows: int, n_components: int) -> Work:
    """Return the work of one number per cell, in one model: its evaluations, and the prior of each binned column.

    The time of an evaluation is that of the factors of the rows and of the steps of L-BFGS among the numbers; the rows
    are few if classes or columns are many.
    """
    d = max(len(sizes), 1)
    rows = min(n_rows, learned_tables.MOST_ROWS)
    n_factors = min(rows * n_components * d, learned_tables.MOST_FACTORS)
    binned = np.isin(np.arange(len(sizes)), list(bins))
    directions = np.where(binned, np.minimum(sizes, learned_tables.n_directions(n_rows)), sizes).sum()
    evaluations = _EVALUATIONS + _MORE_EVALUATIONS * min(rows / d, _MOST_ROWS_PER_COLUMN)
    each = _PER_EVALUATION + _PER_LEARNED * n_factors + _PER_DIRECTION * float(directions) * n_components
    seconds = evaluations * each + _PER_ROOT * float((sizes[binned] ** 3).sum())
    n_vectors = _VECTORS + 2 * n_remembered(int(directions) * n_components)
    n_numbers = n_vectors * float(directions) + _TABLES_OF_CELLS * float(sizes.sum())
    return Work(seconds, 8.0 * (n_numbers * n_components + 2.0 * n_factors))  # factors as estimated, and clipped


def work_of_pool(n_members: int, counts: WorkCounts) -> Work:
    """Return the work of the weights of a pool: of all rows, without each fold, and of a trial."""
    n_fits = 2 * counts.folds + 4
    n_posteriors = counts.n_evaluated * counts.n_classes
    return Work(n_fits * n_posteriors * n_members * _PER_POOLED, _BYTES_PER_POOLED * n_posteriors)


def n_incomplete(blocks: Sequence[Block], statistics: Sequence[Any], n_rows: int) -> int:
    """Return an upper bound of the rows that lack a cell of a covariance: all missing cells in rows of their own.

    Only these rows are read again in each step of EM: the sums of complete rows stay as they are.
    """
    missing = 0.0
    for block, sums in zip(blocks, statistics, strict=True):
        if block.density.sufficient_statistics is Scatter:
            share = 1.0 - sums.cells.weight.sum(axis=0) / max(float(sums.weight.sum()), 1e-300)
            missing += float(share.sum()) * n_rows
    return math.ceil(min(missing, n_rows))


def work_of_em(
    blocks: Sequence[Block], n_rows: int, n_components: int, n_starts: int, n_steps: int, hidden: bool
) -> Work:
    """Return the work of the fewest steps that EM usually takes from each start, which is ten; few end sooner.

    `hidden` says whether labels are: otherwise each row is of one component, and its missing cells are hidden. Then
    n_rows are those that lack a cell.
    """
    reached = n_components if hidden else 1
    of_row, n_cells, cubes = _PER_RESPONSIBILITY, 0.0, 0.0
    for block in blocks:
        d, full = float(len(block.columns)), block.density.sufficient_statistics is Scatter
        if full:  # few columns have few patterns of missing cells, whose rows are taken together
            of_gap = min(_PER_PATTERN_PAIR * d * d, float(np.dot(_PER_GAP, (1.0, d, d * d))))
            of_row += _PER_DISTANCE + d * d * _PER_E_PRODUCT if hidden else of_gap
        else:
            of_row += d * _PER_E_STEP
        n_cells, cubes = n_cells + (d * d if full else d), cubes + (d**3 if full else 0.0)
    steps = n_starts * min(n_steps, EM_STEPS)
    seconds = steps * (_PER_STEP + n_rows * reached * of_row + n_components * cubes * _PER_CUBE)
    return Work(seconds, 8.0 * _COPIES_IN_EM * n_components * n_cells)


def announce_em(
    blocks: Sequence[Block], n_rows: int, n_components: int, n_starts: int, n_steps: int, hidden: bool
) -> None:
    """Announce ten steps of EM from each start, by `Work`."""
    work = work_of_em(blocks, n_rows, n_components, n_starts, n_steps, hidden)
    what = f"EM of {n_starts:,} start{'' if n_starts == 1 else 's'} and at least {min(n_steps, EM_STEPS)} steps each"
    work.announce(what, "ask for fewer components, columns, rows, starts (n_init) or steps (max_iter)")


def announce_work(plans: Sequence[Plan], schema: Schema, counts: WorkCounts) -> None:
    """Announce the fits and cross-validations of plans together, by `Work`; ValueError if they exceed the memory."""
    work = total_work(plans, schema, counts)
    what = "the fit" if not counts.folds else f"cross-validation with {counts.folds:,} folds"
    fewer = affordable_folds(plans, schema, counts) if counts.folds > 2 and work.reason_too_much() else 0
    of_folds = "leave out columns, rows, folds or members" if counts.folds > 2 else "leave out columns or rows"
    advice = f"ask for at most {fewer:,} folds" if fewer >= 2 else of_folds
    work.announce(what, advice)


def affordable_folds(plans: Sequence[Plan], schema: Schema, counts: WorkCounts) -> int:
    """Return the largest number of folds that the limits allow, at most that of the counts; 0 if not even two."""

    def too_many(folds: int) -> bool:
        return total_work(plans, schema, replace(counts, folds=folds)).reason_too_much() is not None

    n_possible = bisect.bisect_left(range(2, counts.folds + 1), True, key=too_many)  # the work rises with the folds
    return n_possible + 1 if n_possible else 0


def reasons_against_plans(plans: Mapping[str, Plan], schema: Schema, counts: WorkCounts) -> dict[str, str]:
    """Return which plans to leave out so that the others are affordable, with the reason of each.

    The costliest is left out first; one stays.
    """
    left, reasons = dict(plans), {}
    while len(left) > 1:
        reason = total_work(list(left.values()), schema, counts).reason_too_much()
        if reason is None:
            break
        works = {name: estimate_work(plan, schema, counts) for name, plan in left.items()}
        worst = max(works, key=lambda name: works[name].n_bytes)
        own = works[worst].reason_too_much()
        reasons[worst] = own or f"with it, the pool is too much work: {reason}"
        del left[worst]
    return reasons


def total_work(plans: Sequence[Plan], schema: Schema, counts: WorkCounts) -> Work:
    """Return the work of several plans, and of their pool."""
    pooled = work_of_pool(len(plans), counts) if len(plans) > 1 else Work()
    return sum((estimate_work(plan, schema, counts) for plan in plans), pooled)


@dataclass(frozen=True)
class _StatisticsSize:
    """The size of the statistics of a block: columns or pairs visited per row, and numbers per component."""

    visits: float
    n_cells: float
    seconds_per_row: float
    n_pairs: float = 0.0
    cube: float = 0.0
    n_of_families: float = 0.0  # numbers in the tables of columns and parents that a second pass counts


def _bytes_of_sums(block: Block, one: _StatisticsSize, counts: WorkCounts, binned: bool) -> float:
    """Return the bytes per component of a block's statistics, and of its parameters, at their peak."""
    density: Any = block.density
    if isinstance(density, Grouped):
        density = density.coarse
    kind = "aode" if isinstance(density, AveragedOneDependence) else "other"
    if isinstance(density, MultivariateGaussian):
        kind = "pooled" if isinstance(density.pooling, Pooled) else "per class"
    copies = max(_COPIES[kind], _SUMS if counts.n_rows > _BATCH else 1.0)
    of_families = _COPIES["families"]
    if counts.folds:
        of_folds = _SUMS_PER_BINNED_FOLD * (counts.folds + 1) if binned else _SUMS_PER_FOLD * counts.folds
        copies, of_families = max(copies, of_folds), max(of_families, _FAMILIES_PER_FOLD * counts.folds)
    return 8.0 * (copies * one.n_cells + of_families * one.n_of_families)


def _sizes(schema: Schema, bins: Mapping[int, Any]) -> Array:
    """Return the number of codes of each column; 3 moments of a column of numbers."""
    found = []
    for j, column in enumerate(schema.columns):
        given = bins.get(j)
        known = column.cardinality if column.kind == "categorical" else 2
        if given is not None:
            known = given if isinstance(given, int) else _BINS if isinstance(given, str) else len(given) + 1
        found.append(known + 1)
    return np.array(found, np.float64)


def _sums_of(block: Block, sizes: Array) -> _StatisticsSize:
    density: Any = block.density
    d, widths = len(block.columns), sizes[list(block.columns)]
    if isinstance(density, Grouped):
        density, widths = density.coarse, np.minimum(widths, MOST_GROUPS + 1)
    statistics = density.sufficient_statistics
    pairs = d * (d - 1) / 2
    if statistics is Pairs or (isinstance(statistics, CountTogether) and statistics.scopes is None):
        n_cells = (widths.sum() ** 2 - (widths**2).sum()) / 2  # the sum over pairs i < j of s_i s_j
        of_families = 0.0
        if isinstance(density, KDependence):  # a column and its k parents, as if all columns had a mean number of codes
            of_families = d * float(widths.mean()) ** (min(density.k, d - 1) + 1)
        return _StatisticsSize(pairs, float(n_cells), pairs * _PER_VISIT, pairs, 0.0, of_families)
    if statistics is Scatter:
        return _StatisticsSize(d * d, float(d) * d, d * d * _PER_PRODUCT, 0.0, float(d) ** 3)
    return _StatisticsSize(d, float(widths.sum()), d * _PER_VISIT)


def _work_of_sum(density: SummedTrees, sizes: Array, n: int, n_components: int) -> Work:
    """Return the work of trees of which each adds up all columns of all rows about three times."""
    n_trees = density.n_trees or min(n / _ROWS_PER_TREE, _USUAL_TREES)
    of_tree = n * (3 * len(sizes) * _PER_VISIT + n_components * _PER_SHARE) + float(sizes.sum()) * _PER_BIN
    return Work(n_trees * of_tree, 2.0 * _BYTES_PER_POSTERIOR * n * n_components)


def _work_of_trees(density: RandomTrees, d: int, n: int, n_components: int) -> Work:
    """Return the work of trees that grow on a part of many rows, and whose leaves count all of them."""
    n_trees = density.n_trees or trees_for(n, density.splits)
    n_grown, levels = min(n, MOST_ROWS), math.log2(n + 2)
    n_nodes = 2.0 * n_trees * n_grown / fewest_in_node(density.fewest, n_grown, n_trees, n_components)
    n_cells = n_nodes * n_components
    kinds = [density.growth.at_random(tree) for tree in range(2)]  # of trees, in turn
    per_split = sum(density.growth.tried(d, kind) * _PER_SPLIT[kind] for kind in kinds) / 2
    per_level = n_grown * (1 - 1 / FOLDS) * per_split + n * _PER_VISIT
    return Work(n_trees * levels * per_level + n_cells * _PER_NODE_CELL, _BYTES_PER_NODE_CELL * n_cells)
