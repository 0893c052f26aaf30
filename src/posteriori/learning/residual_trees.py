"""Trees on what the other members of a pool leave, from what these predict of rows that they have not learned from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.learning.cut_points import CutPoints
from posteriori.learning.fit import Collect, FitResult, Plan, estimate
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folded_data import FoldedData
from posteriori.learning.folds import sums_outside_folds, with_pairs
from posteriori.learning.observed_categories import ObservedCategoriesModel
from posteriori.model import bins_of
from posteriori.statistics import JointStatistics
from posteriori.statistics.forests import CodedRows, codes_of
from posteriori.support.typing import Array
from posteriori.tables import Batch


def fit_residual(
    folded: FoldedData, plan: Plan, log_p: Array, in_time: Callable[[], bool] = lambda: True
) -> CrossFitted | None:
    """Return the model of trees grown on all evaluated rows, and of those grown without the rows of the one fold.

    Returns None if no tree lowers the log-loss of the rows of the fold.

    Parameters
    ----------
    folded : FoldedData
        The rows of its one fold judge the number of trees. What predicts the others must not have learned from them:
        it would have moved towards the label of such a row near it, so that trees would learn to move away from it.
    plan : Plan
        Its first density is `SummedTrees`.
    log_p : ndarray (m, C)
        What the other members predict of each evaluated row, without having learned from it, in nats.
    in_time : callable
        As of `SummedTrees.grown`.
    """
    block = plan.blocks[0]
    density: Any = block.density
    fold = folded.fold_of_rows
    source = folded.source.cached().with_folds(fold)
    cut_points = CutPoints(source.with_label_model(None).reweighted(fold < 0), 0, source.n_jobs)
    schema = cut_points.schemas(bins_of(plan.blocks))[-1]
    marked = np.zeros(len(fold), np.bool_)
    marked[folded.evaluated] = True

    def codes_of_evaluated(batch: Batch) -> Array:
        tile: Any = block.tile(batch.rows(marked[batch.start : batch.start + len(batch)]))
        return codes_of(tile)

    codes = np.concatenate(list(source.with_schema(schema).stream(codes_of_evaluated, "reading")))
    of_rows = np.zeros(len(codes), np.uint64), codes, folded.y_true.astype(np.int32), folded.weight
    cardinalities = schema.cardinalities(block.coded(schema))
    rows = CodedRows(cardinalities, folded.target.cardinality, len(codes), *of_rows)
    grown, (without,) = density.grown(density.deal(rows, folded.fold, 1), log_p, in_time)
    if not grown.structure.change.any():
        return None

    def blocks(trees: Any) -> Any:
        return (replace(block, density=trees), *plan.blocks[1:])

    collect = Collect(blocks(grown))
    sums: JointStatistics = source.reduce(lambda batch: collect(with_pairs(batch, 1).with_schema(schema)))
    outside, whole = sums_outside_folds(sums, len(sums.weight), 1)
    full = FitResult(estimate(schema, blocks(grown), plan.prior, whole), whole)
    judged = ObservedCategoriesModel(schema, estimate(schema, blocks(without), plan.prior, outside), (), outside)
    return CrossFitted(full, (judged,))
