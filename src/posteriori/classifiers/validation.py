"""What the estimators check of their arguments, and what they warn of."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from sklearn.utils import check_random_state

from posteriori.model import GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.tables import quote
from posteriori.typing import Array


def find_column(key: Any, names: Sequence[str], parameter: str) -> int:
    """Return the position of a feature, by its name or by its index among the features."""
    if isinstance(key, str):
        if key not in names:
            raise ValueError(f"{parameter} names {key!r}, which is not a feature of X ({quote(names)})")
        return names.index(key)
    if not isinstance(key, int | np.integer) or not -len(names) <= key < len(names):
        raise ValueError(f"{parameter} names {key!r}; give a column's name or an index below {len(names)}")
    return int(key) % len(names)


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights as float64, (n,).

    Raises
    ------
    ValueError
        There is not one a row, one is no number, negative or not finite, or all are zero.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    try:
        if weight.dtype.kind not in "biufO":
            raise TypeError
        weight = weight.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError("sample_weight holds what is no number; give one number a row") from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},): one weight a row")
    bad = np.flatnonzero(~(np.isfinite(weight) & (weight >= 0)))
    if len(bad):
        raise ValueError(
            f"sample_weight holds {weight[bad[0]]:g} in row {bad[0]}; weights must be finite and not negative"
        )
    if n_rows and not weight.any():
        raise ValueError("every sample_weight is zero; at least one row must have some weight")
    return np.require(weight, requirements=["C", "A", "W"])


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator for any of scikit-learn's ways to state randomness."""
    if isinstance(random_state, np.random.Generator):
        return random_state
    if random_state is None or isinstance(random_state, int | np.integer):
        return np.random.default_rng(random_state)
    return np.random.default_rng(check_random_state(random_state).randint(2**31 - 1))


def warn_of_empty_columns(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Warn of columns in which no row of any weight had a value."""
    empty = [
        model.schema.columns[column].name
        for block, sums in zip(model.blocks, statistics.blocks, strict=True)
        for column, seen in zip(block.columns, sums.observed().any(axis=0), strict=True)
        if not seen
    ]
    if empty:
        verb = "have" if len(empty) > 1 else "has"
        warnings.warn(
            f"{quote(empty)} {verb} no cell with a value and will influence no prediction",
            UserWarning,
            stacklevel=5,
        )
