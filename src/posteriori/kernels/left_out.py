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


@kernel
def tree_left_out(
    codes, y, w, parents, widths, start, offsets, counts, pooled, strength, alpha, stepwise, first, table
):
    """Write the tables log p(x_j | x_parent, z) without one row of codes (d,) to where start (Z, d) says, for some z.

    counts and pooled are those of `families_left_out`, for families of a parent (d,) or none (−1) and the child.
    """
    d = len(codes)
    overall = np.empty(widths.max())
    share = np.empty(widths.max())
    for j in range(d):
        k = widths[j] - 1
        x_own, base = np.int64(codes[j]), offsets[j]
        parent_own = np.int64(codes[parents[j]]) if parents[j] >= 0 else 0
        n_given = widths[parents[j]] if parents[j] >= 0 else 1
        seen = w if x_own > 0 else 0.0
        for z in range(first, first + len(start)):
            mine = seen if z == y else 0.0
            here = start[z - first, j]
            table[here] = 0.0
            total, total_of_all = _rest(counts[base, z], mine), _rest(pooled[base], seen)
            for x in range(1, k + 1):
                gone = 1.0 if x == x_own else 0.0
                overall[x] = _shrunk(_rest(pooled[base + x], gone * seen), total_of_all, 1.0 / k, alpha, k * alpha)
                added, in_all = (alpha * overall[x], alpha) if stepwise else (alpha, k * alpha)
                share[x] = _shrunk(_rest(counts[base + x, z], gone * mine), total, overall[x], added, in_all)
                table[here + x] = math.log(share[x]) if share[x] > 0.0 else -math.inf
            for a in range(1, n_given):
                slot = base + a * widths[j]
                line = here + a * widths[j]
                table[line] = 0.0
                met = 1.0 if a == parent_own else 0.0
                total, total_of_all = _rest(counts[slot, z], met * mine), _rest(pooled[slot], met * seen)
                for x in range(1, k + 1):
                    gone = met if x == x_own else 0.0
                    added, in_all = (strength * overall[x], strength) if stepwise else (alpha, k * alpha)
                    known = _shrunk(_rest(pooled[slot + x], gone * seen), total_of_all, overall[x], added, in_all)
                    halfway = (share[x] + known) / 2.0
                    added = strength * halfway if stepwise else alpha
                    given = _shrunk(_rest(counts[slot + x, z], gone * mine), total, halfway, added, in_all)
                    table[line + x] = math.log(given) if given > 0.0 else -math.inf


@kernel
def chain_left_out(whitened, means, own, away, z, rows, scale, share, pivot, weak, out):
    """Write log p(x_j | x_1 … x_{j−1}, z) of some rows to out[i, z, j], by covariances scale·(D − share·δδᵀ).

    whitened (n, d) and means (Z, d) are L⁻¹x and L⁻¹mean for D = LLᵀ, pivot the squares of L's diagonal; δ is the row
    less the mean of its own class, away[i] times which it lies from that mean without itself. A row is left as it is
    where a pivot falls to what weak (2, d) says: of D, or of the covariance itself.
    """
    d = whitened.shape[1]
    chain = np.empty(d)
    for place in range(len(rows)):
        i = rows[place]
        y = own[i]
        constant = math.log(2.0 * math.pi * scale[place])
        sum_vv = sum_uv = sum_uu = distance = 0.0
        left, sound = 1.0, True
        for j in range(d):
            v = whitened[i, j] - means[y, j]
            u = away[i] * v if y == z else whitened[i, j] - means[z, j]
            sum_vv += v * v
            sum_uv += u * v
            sum_uu += u * u
            before, left = left, 1.0 - share[place] * sum_vv
            ratio = left / before
            sound = sound and ratio * pivot[j] > weak[0, j] and scale[place] * ratio * pivot[j] > weak[1, j]
            if not sound:
                break
            nearer, distance = distance, sum_uu + share[place] * sum_uv * sum_uv / left
            chain[j] = -0.5 * ((distance - nearer) / scale[place] + constant + math.log(ratio * pivot[j]))
        if sound:
            for j in range(d):
                out[i, z, j] = chain[j]
