"""The hot loops: arrays in, arrays out, no Python objects.

`loops/` is the mathematics, one file per subject: whoever changes a number reads only this folder. `machine/` is how
loops become machine code. This package has the loops that other folders call; those of `loops/junction_tree.py` and
`loops/word_scores.py` are imported from there.

Every kernel is serial, releases the GIL and reads C-contiguous tiles, so that several threads can process batches.
A missing number is NaN; a missing category is code 0, which has a slot in every table.
"""

from posteriori.kernels.loops.bayes import (
    add_categorical,
    add_gaussian,
    add_poisson,
    add_quartic_norms,
    add_student,
    expect_missing,
    integrate_out,
    log_evidence,
    log_factorials,
    normalise,
    responsibilities_and_evidence,
    whitened_distance,
)
from posteriori.kernels.loops.binning import add_tail_moments, digitise, mdlp, within_bins
from posteriori.kernels.loops.boosting import add_values, fill_steps, grow_summand, take_gradients
from posteriori.kernels.loops.cells import cell_objective
from posteriori.kernels.loops.conditional_likelihood import (
    improve_leaves,
    leave_one_out,
    leaves_of_rows,
    log_linear_loss,
    start_posterior,
)
from posteriori.kernels.loops.descent import Steps
from posteriori.kernels.loops.elimination import Families, columns_dropped, rows_lacking
from posteriori.kernels.loops.encoding import encode_integers, index_distinct_rows, integer_ranges, mark_integers
from posteriori.kernels.loops.families import (
    add_averaged,
    add_families,
    averaged_tables,
    chain_averaged,
    expect_tree_counts,
    smoothed_tables,
    tree_log_density,
)
from posteriori.kernels.loops.family_scores import encode_configurations, score_families
from posteriori.kernels.loops.forests import (
    count_leaves,
    explain_forest,
    forest_density,
    grow_tree,
    score_forest,
    smooth_nodes,
    weigh_edges,
)
from posteriori.kernels.loops.forward_sums import LEAST
from posteriori.kernels.loops.learned_pseudo_rows import follow_paths, sweep_cells, sweep_paths
from posteriori.kernels.loops.left_out_averaged import averaged_left_out
from posteriori.kernels.loops.left_out_counts import SmoothedCounts
from posteriori.kernels.loops.left_out_covariances import chain_left_out
from posteriori.kernels.loops.left_out_families import families_left_out, sum_out_left_out
from posteriori.kernels.loops.left_out_trees import tree_left_out
from posteriori.kernels.loops.missing_parents import sum_out_families
from posteriori.kernels.loops.missing_patterns import fill_patterns
from posteriori.kernels.loops.neighbours import mean_of_leaves, spread_neighbours
from posteriori.kernels.loops.quasi_newton import times_inverse_hessian
from posteriori.kernels.loops.responsibilities import (
    add_complete_moments,
    add_responsibilities,
    add_weighted_counts,
    add_weighted_moments,
    shared_deviations,
    weight_responsibilities,
    weightiest_numbers,
)
from posteriori.kernels.loops.summing import (
    add_counts,
    add_joint_counts,
    add_moments,
    deviations_by_component,
    first_numbers,
    gather_joint_counts,
    pair_information,
    widen_ranges,
)
from posteriori.kernels.loops.tree_sums import sum_out_tree
from posteriori.kernels.loops.value_grouping import log_stirling, merge_values
from posteriori.kernels.loops.words import (
    add_missing_words,
    add_rising_factorials,
    add_totals,
    add_word_counts,
    count_invalid,
    write_word_scores,
)

__all__ = [
    "LEAST",
    "Families",
    "SmoothedCounts",
    "Steps",
    "add_averaged",
    "add_categorical",
    "add_complete_moments",
    "add_counts",
    "add_families",
    "add_gaussian",
    "add_joint_counts",
    "add_missing_words",
    "add_moments",
    "add_poisson",
    "add_quartic_norms",
    "add_responsibilities",
    "add_rising_factorials",
    "add_student",
    "add_tail_moments",
    "add_totals",
    "add_values",
    "add_weighted_counts",
    "add_weighted_moments",
    "add_word_counts",
    "averaged_left_out",
    "averaged_tables",
    "cell_objective",
    "chain_averaged",
    "chain_left_out",
    "columns_dropped",
    "count_invalid",
    "count_leaves",
    "deviations_by_component",
    "digitise",
    "encode_configurations",
    "encode_integers",
    "expect_missing",
    "expect_tree_counts",
    "explain_forest",
    "families_left_out",
    "fill_patterns",
    "fill_steps",
    "first_numbers",
    "follow_paths",
    "forest_density",
    "gather_joint_counts",
    "grow_summand",
    "grow_tree",
    "improve_leaves",
    "index_distinct_rows",
    "integer_ranges",
    "integrate_out",
    "leave_one_out",
    "leaves_of_rows",
    "log_evidence",
    "log_factorials",
    "log_linear_loss",
    "log_stirling",
    "mark_integers",
    "mdlp",
    "mean_of_leaves",
    "merge_values",
    "normalise",
    "pair_information",
    "responsibilities_and_evidence",
    "rows_lacking",
    "score_families",
    "score_forest",
    "shared_deviations",
    "smooth_nodes",
    "smoothed_tables",
    "spread_neighbours",
    "start_posterior",
    "sum_out_families",
    "sum_out_left_out",
    "sum_out_tree",
    "sweep_cells",
    "sweep_paths",
    "take_gradients",
    "times_inverse_hessian",
    "tree_left_out",
    "tree_log_density",
    "weigh_edges",
    "weight_responsibilities",
    "weightiest_numbers",
    "whitened_distance",
    "widen_ranges",
    "within_bins",
    "write_word_scores",
]
