"""The conditional likelihood of weighted sums of log densities."""

import math

from posteriori.kernels.compiling import kernel


@kernel
def pooled_loss(log_densities, component, row_weight, weight, bias, score, weight_gradient, bias_gradient):
    """Return −Σ_i r_i log p(y_i | x_i), p(c | x_i) ∝ exp(b_c + Σ_m w_m log_densities[i, m, c]), and add its gradient.

    score (C,) is scratch space.
    """
    n, n_members, n_classes = log_densities.shape
    loss = 0.0
    for i in range(n):
        r = row_weight[i]
        if r == 0.0:
            continue
        for c in range(n_classes):
            score[c] = bias[c]
        for m in range(n_members):
            w = weight[m]
            if w != 0.0:
                for c in range(n_classes):
                    score[c] += w * log_densities[i, m, c]
        y = component[i]
        largest = score[0]
        for c in range(1, n_classes):
            largest = max(largest, score[c])
        of_true = score[y]
        total = 0.0
        for c in range(n_classes):
            score[c] = math.exp(score[c] - largest)
            total += score[c]
        loss += r * (largest + math.log(total) - of_true)
        share = r / total
        for c in range(n_classes):
            score[c] *= share
        score[y] -= r
        for c in range(n_classes):
            bias_gradient[c] += score[c]
        for m in range(n_members):
            slope = 0.0
            for c in range(n_classes):
                slope += score[c] * log_densities[i, m, c]
            weight_gradient[m] += slope
    return loss
