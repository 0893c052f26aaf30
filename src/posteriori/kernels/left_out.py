"""Log factors of rows by tables that have not seen them."""

import math

import numpy as np

from posteriori.kernels.compiling import kernel

_ROUNDING = 1e-12  # of a weight: what subtraction leaves below it is no row


@kernel
def _rest(total, part):
    """Return total − part, and 0 where that is no more than rounding."""
    left = total - part
    return left if left > _ROUNDING * total else 0.0


@kernel
def _shrunk(count, total, lower, added, in_all):
    """Return (count + added) / (total + in_all), and the lower table's share where there is nothing."""
    whole = total + in_all
    return (count + added) / whole if whole > 0.0 else lower


@kernel
def families_left_out(
    codes,
    component,
    weight,
    members,
    starts,
    strides,
    offsets,
    cardinalities,
    counts,
    pooled,
    strength,
    alpha,
    stepwise,
    first,
    out,
):
    """Write log p(x_j | parents, z), by the back-off of `BackOff` without row i itself, to out[i, z − first, j].

    Family j reads the columns members[starts[j]:starts[j + 1]], its child last, and its slot is offsets[j] +
    Σ code·stride. counts (slots, Z) and pooled (slots,) hold weights; where a parent's code is 0, those of all its
    codes, and where the child's is, those of all its present cells. stepwise says whether tables back off.
    """
    n, n_out, d = out.shape
    share = np.empty(n_out)
    for i in range(n):
        w, y = weight[i], component[i]
        for j in range(d):
            child = starts[j + 1] - 1
            x = np.int64(codes[i, members[child]])
            if x == 0:
                for z in range(n_out):
                    out[i, z, j] = 0.0
                continue
            base, k = offsets[j], np.float64(cardinalities[j])
            overall = _shrunk(_rest(pooled[base + x], w), _rest(pooled[base], w), 1.0 / k, alpha, k * alpha)
            for z in range(n_out):
                gone = w if z + first == y else 0.0
                count, total = _rest(counts[base + x, z + first], gone), _rest(counts[base, z + first], gone)
                if stepwise:
                    share[z] = _shrunk(count, total, overall, alpha * overall, alpha)
                else:
                    share[z] = _shrunk(count, total, overall, alpha, k * alpha)
            for place in range(starts[j], child):
                code = np.int64(codes[i, members[place]])
                if code == 0:
                    continue
                base += code * strides[place]
                added = strength * overall if stepwise else alpha
                in_all = strength if stepwise else k * alpha
                overall = _shrunk(_rest(pooled[base + x], w), _rest(pooled[base], w), overall, added, in_all)
                for z in range(n_out):
                    gone = w if z + first == y else 0.0
                    count, total = _rest(counts[base + x, z + first], gone), _rest(counts[base, z + first], gone)
                    halfway = (share[z] + overall) / 2.0
                    share[z] = _shrunk(count, total, halfway, strength * halfway if stepwise else alpha, in_all)
            for z in range(n_out):
                out[i, z, j] = math.log(share[z]) if share[z] > 0.0 else -math.inf
