"""Forests without the rows of a fold: of the trees that did not see them, so that no tree is grown again."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np

from posteriori.densities import Binned, RandomTrees
from posteriori.densities.tree_growing import FEWEST_TREES, DealtRows
from posteriori.learning.fit import Collect, FitResult, Plan, estimate
from posteriori.learning.folds import sums_outside_folds, with_pairs
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.sources import LabelledSource
from posteriori.statistics import Counts, JointStatistics
from posteriori.statistics.forests import CodedRows, LeafCounts
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Codes, Schema

MOST_GROUPS = (
    10  # of folds: a tree leaves one group out, so that many folds cost no more, and enough trees predict each
)


def leaves_folds_out(plan: Plan, folds: int) -> bool:
    """Return whether one fit of the trees serves all folds: there are enough, and no label chooses the bins."""
    density = plan.blocks[0].density if plan.blocks else None  # a class prior alone has none
    bins = [block.density.bins for block in plan.blocks if isinstance(block.density, Binned)]
    return (
        isinstance(density, RandomTrees)
        and (density.n_trees or FEWEST_TREES) >= min(folds, MOST_GROUPS)
        and "mdlp" not in bins
    )


def fit_forest(
    rows: LabelledSource, folds: int, plan: Plan, schema: Schema
) -> tuple[FitResult, tuple[ObservedCategoriesModel, ...]]:
    """Return the forest of all trees, and for each fold the forest of the trees that did not see it.

    Parameters
    ----------
    rows : LabelledSource
        With their folds; those in no fold train all trees.
    folds : int
    plan : Plan
        Its first density is `RandomTrees` (`leaves_folds_out`).
    schema : Schema
        With the cut points of all rows.

    Notes
    -----
    The leaves of the first forest count all rows, those of the others the rows outside their fold. The cut points and
    the strength of back-off are common. Of more than ten folds, each tree leaves out a tenth of them together.
    """
    if folds > MOST_GROUPS:
        fold = cast(Array, rows.folds)
        grouped = rows.with_folds(np.where(fold < 0, fold, fold % MOST_GROUPS).astype(np.int32))
        full, of_groups = fit_forest(grouped, MOST_GROUPS, plan, schema)
        return full, tuple(of_groups[k % MOST_GROUPS] for k in range(folds))
    block = plan.blocks[0]
    density: Any = block.density
    collect = Collect(plan.blocks)
    sums: JointStatistics = rows.reduce(lambda batch: collect(with_pairs(batch, folds).with_schema(schema)))
    n_classes = len(sums.weight) // (folds + 1)
    dealt = _dealt(density, sums.blocks[0], folds, n_classes)
    grown, counts, outside = density.grown(dealt)
    fold_of_trees = dealt.fold_of_trees(grown.structure.n_trees)

    def singles_of(codes: Codes, labels: Assignment, fold: Array) -> Counts:
        pair = np.where(fold < 0, folds, fold) * n_classes + labels.component
        pairs = Assignment(pair.astype(np.int32), labels.weight, len(sums.weight))
        return Counts.of(codes, pairs)

    def count(batch: Batch) -> _LeafSums:
        known = batch.with_schema(schema).labelled()
        labels, fold, tile = cast(Assignment, known.assignment), _folds_of(batch), cast(Codes, block.tile(known))
        found, seen = grown.sufficient_statistics.with_folds(tile, labels, fold, fold_of_trees)
        return _LeafSums(singles_of(tile, labels, fold), found.leaves, seen)

    if sums.blocks[0].is_complete:
        sample = dealt.rows
        labels = Assignment(sample.component, sample.weight, n_classes)
        singles_per_fold = singles_of(Codes(sample.codes, sample.cardinalities), labels, dealt.fold)
        leaves = _LeafSums(singles_per_fold, counts.leaves, outside)
    else:
        leaves = rows.reduce(count)
    singles = sums_outside_folds(leaves.singles, len(sums.weight), folds)
    *others, all_rows = sums_outside_folds(replace(sums, blocks=sums.blocks[1:]), len(sums.weight), folds)
    statistics = _with_first(all_rows, LeafCounts(singles[-1], leaves.whole))
    blocks = (replace(block, density=grown), *plan.blocks[1:])
    full = FitResult(estimate(schema, blocks, plan.prior, statistics), statistics)
    without = []
    for k, of_others in enumerate(others):
        first, last = np.searchsorted(fold_of_trees, [k, k + 1]).tolist()
        trees, numbers = grown.of_trees(first, last)
        held = _with_first(of_others, LeafCounts(singles[k], leaves.outside[numbers]))
        model = estimate(schema, (replace(block, density=trees), *plan.blocks[1:]), plan.prior, held)
        without.append(ObservedCategoriesModel(model.schema, model, (), held))
    return full, tuple(without)


@dataclass(frozen=True)
class _LeafSums:
    """Counts per fold and class, and the weights in the leaves: of all rows, and of those that a tree may see."""

    singles: Counts
    whole: Array
    outside: Array

    def __add__(self, other: _LeafSums) -> _LeafSums:
        return _LeafSums(self.singles + other.singles, self.whole + other.whole, self.outside + other.outside)


def _dealt(density: RandomTrees, sample: CodedRows, folds: int, n_classes: int) -> DealtRows:
    """Return the rows with their folds, from components that are pairs of fold and class."""
    fold, component = np.divmod(sample.component, n_classes)
    rows = replace(sample, component=component.astype(np.int32), n_components=n_classes)
    return density.deal(rows, np.where(fold == folds, -1, fold), folds)


def _folds_of(batch: Batch) -> Array:
    """Return the fold of each row with a label, −1 for none."""
    labels = cast(Assignment, batch.assignment)
    fold = np.full(len(batch), -1, np.int32) if batch.fold is None else batch.fold
    known: Array = fold[labels.component >= 0]
    return known


def _with_first(statistics: JointStatistics, first: LeafCounts) -> JointStatistics:
    blocks: Sequence[Any] = (first, *statistics.blocks)
    return replace(statistics, blocks=tuple(blocks))
