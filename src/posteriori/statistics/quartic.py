"""Fourth powers of how far rows lie from their mean: how sure a covariance is."""

from __future__ import annotations

import numpy as np

from posteriori.tables.batch import Assignment
from posteriori.typing import Array

_BLOCK_CELLS = 1 << 17  # of deviations, so that they stay in the cache


def quartic_norms(values: Array, assignment: Assignment, centre: Array, scale: Array) -> Array:
    """Return Σ w·‖(x − centre_z) / scale_z‖⁴ of each component, (Z,). A sum over rows: it adds up over batches.

    Parameters
    ----------
    values : ndarray (n, d)
        Without missing cells.
    assignment : Assignment
    centre, scale : ndarray (Z, d)
        In data units; scale > 0.
    """
    total = np.zeros(len(centre))
    size = max(1, _BLOCK_CELLS // values.shape[1])
    for start in range(0, len(values), size):
        rows = slice(start, start + size)
        component = assignment.component[rows]
        deviation = values[rows] - centre[component]
        deviation /= scale[component]
        norm = np.einsum("ij,ij->i", deviation, deviation)
        total += np.bincount(component, assignment.weight[rows] * norm**2, len(centre))
    return total
