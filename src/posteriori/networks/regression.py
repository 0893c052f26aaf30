"""Linear regression from moments."""

from __future__ import annotations

import numpy as np

from posteriori.networks.family_statistics import FamilyMoments
from posteriori.typing import Array

_LEAST_VARIANCE = 1e-9  # of that of the column: a constant column must not give a point mass


def regression(moments: FamilyMoments) -> tuple[Array, Array, Array]:
    """Return intercept (K…), coefficients (K…, m − 1) and variance (K…) of the last variable given the others."""
    whole = moments.pooled()
    shape, m = moments.weight.shape, moments.mean.shape[-1]
    few = moments.weight.ravel() <= m
    mean = np.where(few[:, None], whole.mean, moments.mean.reshape(-1, m))
    scatter = np.where(few[:, None, None], whole.scatter, moments.scatter.reshape(-1, m, m))
    weight = np.where(few, float(whole.weight), moments.weight.ravel())
    scale = np.sqrt(np.diag(whole.scatter)[: m - 1])
    scale = np.where(scale > 0, scale, 1.0)
    s_pp = scatter[:, :-1, :-1] / scale[:, None] / scale
    s_pv = scatter[:, :-1, -1] / scale
    coefficients = np.einsum("qij,qj->qi", np.linalg.pinv(s_pp, rcond=1e-12, hermitian=True), s_pv)
    left = scatter[:, -1, -1] - np.einsum("qi,qi->q", coefficients, s_pv)
    coefficients = coefficients / scale
    total = max(float(whole.weight), 1e-300)
    spread = float(whole.scatter[-1, -1]) / total
    floor = _LEAST_VARIANCE * spread if spread > 0 else _LEAST_VARIANCE
    variance = np.maximum(left / np.maximum(weight, 1e-300), floor)
    intercept = mean[:, -1] - np.einsum("qi,qi->q", coefficients, mean[:, :-1])
    return intercept.reshape(shape), coefficients.reshape(*shape, m - 1), variance.reshape(shape)
