"""The hot loops: arrays in, arrays out, no Python objects.

Every kernel is serial, releases the GIL and reads C-contiguous tiles, so that threads can run over batches.
A missing number is NaN; a missing category is code 0, which owns a slot of every table.
"""

from posteriori.kernels.bayes import log_evidence, normalise
from posteriori.kernels.encoding import encode_integers, integer_ranges, mark_integers
from posteriori.kernels.factors import add_categorical, add_gaussian, add_poisson
from posteriori.kernels.junction_tree import Evidence, Layout, accumulate, draw, maximise, propagate
from posteriori.kernels.lanes import LANES
from posteriori.kernels.multivariate import expect_missing, integrate_out, whitened_distance
from posteriori.kernels.summing import add_counts, add_moments, deviations_by_component, first_numbers

__all__ = [
    "LANES",
    "Evidence",
    "Layout",
    "accumulate",
    "add_categorical",
    "add_counts",
    "add_gaussian",
    "add_moments",
    "add_poisson",
    "deviations_by_component",
    "draw",
    "encode_integers",
    "expect_missing",
    "first_numbers",
    "integer_ranges",
    "integrate_out",
    "log_evidence",
    "mark_integers",
    "maximise",
    "normalise",
    "propagate",
    "whitened_distance",
]
