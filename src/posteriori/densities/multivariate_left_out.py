"""Leave-one-out Gaussians: rank-one downdates of covariances in closed form."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posteriori import kernels
from posteriori.densities.pooling import Pooling
from posteriori.densities.triangular import solve_lower
from posteriori.statistics.left_out import less
from posteriori.statistics.scatter import Scatter
from posteriori.tables.batch import Assignment
from posteriori.typing import Array

# A pivot of a correlation matrix below _WEAK, or a variance below _LEAST times that of its column, may require
# regularisation, which has no closed form.
_WEAK = 1e-6
_LEAST = 2e-10


@dataclass(frozen=True)
class _Downdated:
    """Covariances of one component, each without one row: (D − share·δδᵀ)·scale, δ the row minus its class mean.

    Attributes
    ----------
    z : int
    rows, scale, share : ndarray (m,)
        The rows and their factors. D is a mixture of the class scatter matrices, the same for all rows.
    """

    z: int
    rows: Array
    scale: Array
    share: Array


def chain_left_out(pooling: Pooling, ddof: int, statistics: Scatter, values: Array, assignment: Assignment) -> Array:
    r"""Return log p(x_j | x_1 … x_{j−1}, z) in nats, (n, Z, d), of each row under the Gaussians without it.

    A pooled covariance is linear in the scatter matrices. Removing a row of weight w subtracts c·δδᵀ,
    c = w·n / (n − w), from the scatter matrix of its class. With Σ = LLᵀ before, u = L⁻¹(x − mean) and v = L⁻¹δ, the
    first j columns have

    .. math::
        |\Sigma'| = |\Sigma| s_j, \quad (x - m)^\top \Sigma'^{-1} (x - m) = \sum_{k \le j} u_k^2 + g
        \Bigl(\sum_{k \le j} u_k v_k\Bigr)^2 / s_j, \quad s_j = 1 - g \sum_{k \le j} v_k^2

    for Σ' = Σ − g·δδᵀ (Sherman & Morrison), so running sums give every factor: O(n·d·(d + Z)) in total.

    The result is NaN for a row with a missing cell, and for a component whose covariance without the row may be
    singular or that has no other row.

    References
    ----------
    Sherman & Morrison, Adjustment of an inverse matrix, Annals of Mathematical Statistics 21 (1950). Ripley, Pattern
    Recognition and Neural Networks, section 2.4 (leave-one-out of discriminant analysis).
    """
    n, d = values.shape
    values = np.asarray(values, np.float64)
    n_components = len(statistics.weight)
    out = np.full((n, n_components, d), np.nan)
    middle = statistics.mean.mean(axis=0)
    centred, means = values - middle, statistics.mean - middle
    total = statistics.cells.pooled()
    spread = total.scatter[0] / np.where(total.weight[0] > 0, total.weight[0], 1.0)
    component = assignment.component
    before = statistics.weight[component]
    rest = less(before, assignment.weight)
    away = before / np.where(rest > 0, rest, 1.0)
    for mixture, parts in _mixtures(pooling, ddof, statistics, assignment).items():
        covariance = np.tensordot(np.array(mixture), statistics.scatter, axes=1)
        try:
            lower = np.linalg.cholesky(covariance)
        except np.linalg.LinAlgError:
            continue
        whitener = solve_lower(lower, np.eye(d)).T
        whitened, whitened_means = centred @ whitener, means @ whitener
        weak = np.stack([_WEAK * np.diagonal(covariance), _LEAST * spread])
        for part in parts:
            kernels.chain_left_out(
                whitened,
                whitened_means,
                component,
                away,
                part.z,
                part.rows,
                part.scale,
                part.share,
                np.diagonal(lower) ** 2,
                weak,
                out,
            )
    return out


def _mixtures(
    pooling: Pooling, ddof: int, statistics: Scatter, assignment: Assignment
) -> dict[tuple[float, ...], list[_Downdated]]:
    """Group the downdated covariances by the mixture of class scatter matrices from which they are computed."""
    n_components = len(statistics.weight)
    groups: dict[tuple[float, ...], dict[int, list[tuple[Array, float, float]]]] = {}
    for y, w, rows in _rows_by_class_and_weight(assignment):
        weight = statistics.weight.copy()
        rest = float(less(weight[y : y + 1], np.array([w]))[0])
        if rest <= 0:
            continue
        taken = w * weight[y] / rest
        weight[y] = rest
        part_of = pooling.covariances(np.maximum(weight - ddof, 0.0), np.eye(n_components))
        for z, mixture in enumerate(part_of):
            scale = float(mixture.sum())
            if scale > 0:
                key = tuple(np.round(mixture / scale, 12).tolist())
                groups.setdefault(key, {}).setdefault(z, []).append((rows, scale, taken * mixture[y] / scale))
    return {
        key: [
            _Downdated(
                z,
                np.concatenate([rows for rows, _, _ in parts]),
                np.concatenate([np.full(len(rows), scale) for rows, scale, _ in parts]),
                np.concatenate([np.full(len(rows), share) for rows, _, share in parts]),
            )
            for z, parts in of_z.items()
        ]
        for key, of_z in groups.items()
    }


def _rows_by_class_and_weight(assignment: Assignment) -> Iterator[tuple[int, float, Array]]:
    """Yield class, weight and row indices for each combination of class and weight."""
    order = np.lexsort((assignment.weight, assignment.component))
    z, w = assignment.component[order], assignment.weight[order]
    starts = np.flatnonzero(np.concatenate([[True], (np.diff(z) != 0) | (np.diff(w) != 0)]))
    for start, rows in zip(starts.tolist(), np.split(order, starts[1:]), strict=True):
        yield int(z[start]), float(w[start]), rows
