"""Check the weights of rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.typing import Array

_SMALLEST, _LARGEST = 1e-100, 1e50  # products of sums of other weights could underflow or overflow


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights as float64, (n,).

    Raises
    ------
    ValueError
        The weights are not one per row, a weight that is not 0 is no number from 1e-100 to 1e50, or all are zero.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    try:
        if weight.dtype.kind not in "biufO":
            raise TypeError
        weight = weight.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError("sample_weight holds a cell that is not a number; give one number per row") from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},): one weight per row")
    reject_extreme_weights(weight)
    if n_rows and not weight.any():
        raise ValueError("every sample_weight is zero; at least one row must have some weight")
    return np.require(weight, requirements=["C", "A", "W"])


def reject_extreme_weights(weight: Array) -> None:
    """Raise ValueError if a weight that is not 0 is no number from 1e-100 to 1e50."""
    bad = np.flatnonzero(~((weight == 0) | ((weight >= _SMALLEST) & (weight <= _LARGEST))))
    if len(bad):
        raise ValueError(
            f"sample_weight holds {weight[bad[0]]:g} in row {bad[0]}; weights must be 0, or lie between {_SMALLEST:g} "
            f"and {_LARGEST:g}"
        )
