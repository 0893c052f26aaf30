"""The conditional log-likelihood of weighted log factors."""

import math

import numpy as np

from posteriori.kernels.compiling import REORDERED, kernel


@kernel(fastmath=REORDERED)
def conditional_loss(gain, component, row_weight, bias, weight, bias_gradient, weight_gradient):
    """Return −Σ_i w_i·log p(y_i | x_i), p ∝ exp(bias_c + Σ_j weight_j·gain[i, c, j]), and add its gradients.

    gain is what a class's log factors are above those of the true class; one read of it serves both.
    """
    n, n_classes, d = gain.shape
    score = np.empty(n_classes)
    loss = 0.0
    for i in range(n):
        y = component[i]
        largest = -math.inf
        for c in range(n_classes):
            total = bias[c]
            row = gain[i, c]
            for j in range(d):
                total += weight[j] * row[j]
            score[c] = total
            largest = max(largest, total)
        truth = score[y]
        whole = 0.0
        for c in range(n_classes):
            score[c] = math.exp(score[c] - largest)
            whole += score[c]
        loss += row_weight[i] * (largest + math.log(whole) - truth)
        for c in range(n_classes):
            share = row_weight[i] * score[c] / whole
            bias_gradient[c] += share
            row = gain[i, c]
            for j in range(d):
                weight_gradient[j] += share * row[j]
        bias_gradient[y] -= row_weight[i]
    return loss
