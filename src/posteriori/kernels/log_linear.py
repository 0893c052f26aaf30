"""The conditional log-likelihood of log-linear models, with derivatives."""

import math

import numpy as np

from posteriori.kernels.compiling import REORDERED, kernel

_RARE = 1e-4  # posteriors below this contribute no relevant curvature


@kernel(fastmath=REORDERED)
def log_linear_loss(features, component, row_weight, bias, weight, gradient, hessian, apart):
    """Return −Σ_i r_i·log p(y_i | x_i), p ∝ exp(bias_c + Σ_j weight_j·features[i, c, j]), and add its derivatives.

    The derivatives are gradient (C + d,) and the upper triangle of hessian (C + d, C + d), biases first. With the
    posterior p and the mean m = Σ_c p_c·f_c of the features, the blocks of the Hessian of a row are diag(p) − p·pᵀ for
    the biases, p_c·(f_c − m) for a bias and the weights, and Σ_c p_c·(f_c − m)(f_c − m)ᵀ for the weights. Centring on m
    before multiplying avoids cancellation.

    The block of the weights is left to the caller, which has faster products of matrices: it is Aᵀ·A for the rows
    √(r·p_c)·(f_c − m), which are written to apart (n·C, d). Without rows in apart the Hessian is left out. The second
    result is the number of rows written. One pass over the features (n, C, d): O(n·C·d).
    """
    n, n_classes, d = features.shape
    score, mean = np.empty(n_classes), np.empty(d)
    loss, n_written = 0.0, 0
    curved = len(apart) > 0
    for i in range(n):
        r, y = row_weight[i], component[i]
        if r == 0.0:
            continue
        largest = -math.inf
        for c in range(n_classes):
            total = bias[c]
            row = features[i, c]
            for j in range(d):
                total += weight[j] * row[j]
            score[c] = total
            largest = max(largest, total)
        truth = score[y]
        whole = 0.0
        for c in range(n_classes):
            score[c] = math.exp(score[c] - largest)
            whole += score[c]
        loss += r * (largest + math.log(whole) - truth)
        for j in range(d):
            mean[j] = 0.0
        for c in range(n_classes):
            share = score[c] / whole
            score[c] = share
            gradient[c] += r * share
            row = features[i, c]
            for j in range(d):
                mean[j] += share * row[j]
        gradient[y] -= r
        row = features[i, y]
        for j in range(d):
            gradient[n_classes + j] += r * (mean[j] - row[j])
        if curved:
            n_written = _add_curvature(features[i], r, score, mean, hessian, apart, n_written)
    return loss, n_written


@kernel(fastmath=REORDERED)
def _add_curvature(features, r, posterior, mean, hessian, apart, n_written):
    """Add the Hessian of one row of weight r, from its features (C, d) and their mean under the posterior (C,)."""
    n_classes, d = features.shape
    for c in range(n_classes):
        share = r * posterior[c]
        if share < _RARE * r:
            continue
        hessian[c, c] += share
        for e in range(c, n_classes):
            hessian[c, e] -= share * posterior[e]
        root = math.sqrt(share)
        row, scaled = features[c], apart[n_written]
        for j in range(d):
            deviation = row[j] - mean[j]
            hessian[c, n_classes + j] += share * deviation
            scaled[j] = root * deviation
        n_written += 1
    return n_written
