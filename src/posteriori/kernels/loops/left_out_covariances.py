"""Log factors of numbers, under the covariances without each row."""

import math

import numpy as np

from posteriori.kernels.machine.compiling import kernel


@kernel
def chain_left_out(whitened, means, own, away, z, rows, scale, share, pivot, weak, out):
    """Write log p(x_j | x_1 … x_{j−1}, z) of the listed rows to out[i, z, j], for covariances scale·(D − share·δδᵀ).

    whitened (n, d) and means (Z, d) are L⁻¹x and L⁻¹mean for D = LLᵀ; pivot holds the squared diagonal of L. δ is the
    row minus the mean of its own class. Without the row, its distance from that mean is away[i]·δ. The inverse and the
    determinant of the downdated covariance follow from the Sherman–Morrison formula and the matrix determinant lemma,
    column by column, with running sums of v², u·v and u². A row keeps its values in out if a pivot falls to weak[0]
    (of D) or weak[1] (of the covariance), because the downdate then loses its digits.
    """
    d = whitened.shape[1]
    chain = np.empty(d)
    for position in range(len(rows)):
        i = rows[position]
        y = own[i]
        constant = math.log(2.0 * math.pi * scale[position])
        sum_vv = sum_uv = sum_uu = distance = 0.0
        left, sound = 1.0, True
        for j in range(d):
            v = whitened[i, j] - means[y, j]
            u = away[i] * v if y == z else whitened[i, j] - means[z, j]
            sum_vv += v * v
            sum_uv += u * v
            sum_uu += u * u
            before, left = left, 1.0 - share[position] * sum_vv
            ratio = left / before
            sound = sound and ratio * pivot[j] > weak[0, j] and scale[position] * ratio * pivot[j] > weak[1, j]
            if not sound:
                break
            nearer, distance = distance, sum_uu + share[position] * sum_uv * sum_uv / left
            chain[j] = -0.5 * ((distance - nearer) / scale[position] + constant + math.log(ratio * pivot[j]))
        if sound:
            for j in range(d):
                out[i, z, j] = chain[j]
