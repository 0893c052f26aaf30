"""Counts without a row, and the probabilities that smooth them: the parts that the kernels of families share."""

from typing import NamedTuple

import numpy as np

from posteriori.kernels.loops.back_off import share_of, with_pseudo_rows
from posteriori.kernels.machine.compiling import kernel

_ROUNDING = 1e-12  # a difference below this share of the total is rounding error


class SmoothedCounts(NamedTuple):
    """Weights of codes, in the slots of families, and the back-off that smooths them.

    Code 0 of a parent holds the sum over all its codes, code 0 of the child the sum over its present cells.
    """

    counts: np.ndarray  # (slots, Z)
    pooled: np.ndarray  # (slots,) summed over the components
    pseudo_rows: np.ndarray  # (d, 1 + most parents) of p(x_j | z), and of the table with each number of parents
    alpha: float
    stepwise: bool  # whether tables back off


@kernel(is_part=True)
def without(total, part):
    """Return total − part, and 0 where the difference is rounding error."""
    left = total - part
    return left if left > _ROUNDING * total else 0.0


@kernel(is_part=True)
def smoothed(count, total, lower, strength, k, alpha, stepwise):
    """Return p of one of k categories: with `strength` pseudo-rows of `lower` if stepwise, or alpha per category."""
    if stepwise:
        return share_of(with_pseudo_rows(count, strength, lower), total + strength, lower)
    return share_of(count + alpha, total + k * alpha, lower)
