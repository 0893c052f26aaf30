"""The conditional likelihood of log-linear models, and class distributions of leaves that maximise it.

A row sees each leaf of the trees that grew on it without itself, in the counts and in each step. Otherwise it would
find itself predicted well by leaves that hold little more than this row, and nothing would be learned from it.

Indices in the inner loops are unsigned: signed ones are compared with 0 first.
"""

import math

import numpy as np

from posteriori.kernels.loops.back_off import with_pseudo_rows
from posteriori.kernels.loops.descent import DEEPEST
from posteriori.kernels.loops.forests import level_of
from posteriori.kernels.loops.hashing import INCREMENT, uniform
from posteriori.kernels.machine.compiling import REORDERED, kernel

_OF_NODE = np.uint64(0xD1B54A32D192ED03)  # odd and irregular, so that rows and nodes have keys of their own
_LEAST = 1e-30  # posterior probability: so that it can rise again
_LONGEST = 4.0  # Newton step of θ in nats, before it is shortened
_RARE = 1e-4  # posteriors below this contribute no relevant curvature
_NEGLIGIBLE = 1e-3  # share of a row in the sums of its leaf


@kernel
def leaves_of_rows(codes, nodes, roots, sides, ordered, share, out):
    """Write the number of the leaf that each row reaches in each tree to out (T, n).

    A row that lacks the cell of a split goes to a side at random, with the shares of the sides.
    """
    for t in range(len(roots) - 1):
        for i in range(len(codes)):
            node = roots[t]
            while nodes[node, 0] >= 0:
                column, cut = nodes[node, 0], nodes[node, 1]
                code = np.int64(codes[i, column])
                side = 0
                if code > 0:
                    side = (1 if code <= cut else 2) if ordered[column] else int(sides[cut + code])
                if side == 0:
                    key = np.uint64(i) * INCREMENT + np.uint64(node) * _OF_NODE
                    side = 1 if uniform(key) < share[node] else 2
                node = nodes[node, 2] + side - 1
            out[t, i] = nodes[node, 2]
    return 0


@kernel(is_part=True)
def _set_given(first, last, log_p, share, log_prior, given):
    """Normalise log p(y | leaf) of the leaves of a tree, and fill given (leaves, Z), the same minus log p_t(y)."""
    n_classes = len(log_prior)
    of_tree = np.zeros(n_classes)
    for leaf in range(first, last):
        most, total = -math.inf, 0.0
        for z in range(n_classes):
            most = max(most, log_p[leaf, z])
        for z in range(n_classes):
            total += math.exp(log_p[leaf, z] - most)
        shift = most + math.log(total)
        for z in range(n_classes):
            log_p[leaf, z] -= shift
            of_tree[z] += share[leaf] * math.exp(log_p[leaf, z])
    for leaf in range(first, last):
        for z in range(n_classes):
            given[leaf, z] = log_p[leaf, z] - math.log(of_tree[z])


@kernel
def leave_one_out(weight, nodes, strengths, prior, place, out):
    """Fill out (pairs, Z) with log p(y | leaf) as a row of the leaf sees it: without the row in any node of its path.

    A row is of weight 1. place (leaves, Z) becomes the place in out of the distribution for a row of a class, −1 for a
    class that the leaf does not have. Return how many pairs of leaf and class there are, which may be more than out
    takes.
    """
    n_classes = len(prior)
    parent = np.full(len(nodes), -1, np.int64)
    path, p = np.empty(DEEPEST + 1, np.int64), np.empty(n_classes)
    n_pairs = 0
    for v in range(len(nodes)):
        if nodes[v, 0] >= 0:
            parent[nodes[v, 2]], parent[nodes[v, 2] + 1] = v, v
            continue
        depth, above = 0, v
        while above >= 0:
            path[depth] = above
            depth += 1
            above = parent[above]
        for y in range(n_classes):
            own = min(weight[v, y], 1.0)
            place[nodes[v, 2], y] = n_pairs if own > 0.0 else -1
            if own <= 0.0:
                continue
            if n_pairs < len(out):
                _back_off_without(weight, path, depth, y, own, strengths, prior, p)
                for z in range(n_classes):
                    out[n_pairs, z] = math.log(p[z])
            n_pairs += 1
    return n_pairs


@kernel(is_part=True)
def _back_off_without(weight, path, depth, y, own, strengths, prior, p):
    """Write p(y | leaf) to p, backed off along a path from the leaf up, without a row of class y and weight own."""
    for z in range(len(p)):
        p[z] = prior[z]
    for k in range(depth - 1, -1, -1):
        n = -own
        for z in range(len(p)):
            n += weight[path[k], z]
        strength = strengths[1 if k == 0 else 0, level_of(n, strengths.shape[1])]
        n += strength
        for z in range(len(p)):
            rest = weight[path[k], z] - (own if z == y else 0.0)
            p[z] = with_pseudo_rows(max(rest, 0.0), strength, p[z]) / n


@kernel
def start_posterior(leaf, component, weight, log_start, share, bounds, log_prior, place, left_out, given, posterior):
    """Fill given (leaves, Z), and posterior (n, Z), p(y | x) ∝ p(y)·exp(mean over the trees of given).

    A row of positive weight sees the leaves without itself.
    """
    n_trees, n_rows = leaf.shape
    n_classes = len(log_prior)
    for t in range(n_trees):
        _set_given(bounds[t], bounds[t + 1], log_start, share, log_prior, given)
    for i in range(n_rows):
        for z in range(n_classes):
            posterior[i, z] = 0.0
    for t in range(n_trees):
        for i in range(n_rows):
            at, row = np.uint64(leaf[t, i]), np.uint64(i)
            for z in range(n_classes):
                posterior[row, np.uint64(z)] += given[at, np.uint64(z)]
            without = place[at, np.uint64(component[row])]
            if weight[row] > 0.0 and without >= 0:
                for z in range(n_classes):
                    posterior[row, np.uint64(z)] += left_out[without, z] - log_start[at, np.uint64(z)]
    for i in range(n_rows):
        most, total = -math.inf, 0.0
        for z in range(n_classes):
            posterior[i, z] = log_prior[z] + posterior[i, z] / n_trees
            most = max(most, posterior[i, z])
        for z in range(n_classes):
            posterior[i, z] = math.exp(posterior[i, z] - most)
            total += posterior[i, z]
        for z in range(n_classes):
            posterior[i, z] = max(posterior[i, z] / total, _LEAST)
    return 0


@kernel
def improve_leaves(leaf, component, weight, log_p, share, bounds, log_prior, penalty, step, theta, given, posterior):
    """Take a Newton step in the leaves of one tree after the other, and update the posterior of all rows.

    The objective is Σ_i w_i·log p(y_i | x_i) − penalty/2·Σ θ², and the step of a leaf and class

        Δθ = step·(Σ_i w_i·([y_i = z] − p_iz) − penalty·θ) / (Σ_i w_i·p_iz·(1 − p_iz) + penalty).

    The posterior of a row changes by the step that its leaf would take without the row.

    Parameters
    ----------
    leaf : (T, n), the leaf of each row in each tree
    component, weight : (n,); rows of weight 0 are held out
    log_p : (leaves, Z), log p(y | leaf) up to a constant per leaf: that from counts, + T·θ
    share : (leaves,), the share of a leaf in its tree
    bounds : (T + 1,), the first leaf of each tree
    theta : (leaves, Z)
    given : (leaves, Z), log p(y | leaf) − log p_t(y)
    posterior : (n, Z)
    """
    n_trees, n_rows = leaf.shape
    n_classes = len(log_prior)
    most = 0
    for t in range(n_trees):
        most = max(most, bounds[t + 1] - bounds[t])
    gradient, curvature = np.empty((most, n_classes)), np.empty((most, n_classes))
    moved, factor = np.empty((most, n_classes)), np.empty((most, n_classes))
    for t in range(n_trees):
        first, last = bounds[t], bounds[t + 1]
        _add_up(leaf[t], first, last, component, weight, penalty, theta, posterior, gradient, curvature)
        for k in range(last - first):
            for z in range(n_classes):
                moved[k, z] = _clipped(gradient[k, z] / curvature[k, z])
                theta[first + k, z] += step * moved[k, z]
                log_p[first + k, z] += n_trees * step * moved[k, z]
                factor[k, z] = -given[first + k, z]
        _set_given(first, last, log_p, share, log_prior, given)
        for k in range(last - first):
            for z in range(n_classes):
                factor[k, z] = math.exp((factor[k, z] + given[first + k, z]) / n_trees)
        for i in range(n_rows):
            row, at = np.uint64(i), np.uint64(leaf[t, i] - first)
            w, y = weight[row], component[row]
            total = 0.0
            for z in range(n_classes):
                p = posterior[row, np.uint64(z)]
                raised = p * factor[at, np.uint64(z)]
                if w > 0.0:
                    own = w * ((1.0 if z == y else 0.0) - p)
                    rest = curvature[at, np.uint64(z)] - w * p * (1.0 - p)
                    if abs(own) > _NEGLIGIBLE * rest:
                        without = _clipped((gradient[at, np.uint64(z)] - own) / rest)
                        raised *= math.exp(step * (without - moved[at, np.uint64(z)]))
                posterior[row, np.uint64(z)] = raised
                total += raised
            scale = 1.0 / total
            for z in range(n_classes):
                posterior[row, np.uint64(z)] = max(posterior[row, np.uint64(z)] * scale, _LEAST)
    return 0


@kernel(is_part=True)
def _add_up(of_tree, first, last, component, weight, penalty, theta, posterior, gradient, curvature):
    """Fill the gradient of the objective in θ, and minus its second derivative, for the leaves of a tree."""
    n_classes = posterior.shape[1]
    for k in range(last - first):
        for z in range(n_classes):
            gradient[k, z] = -penalty * theta[first + k, z]
            curvature[k, z] = penalty
    for i in range(len(of_tree)):
        row = np.uint64(i)
        w = weight[row]
        if w > 0.0:
            at = np.uint64(of_tree[row] - first)
            for z in range(n_classes):
                p = posterior[row, np.uint64(z)]
                gradient[at, np.uint64(z)] -= w * p
                curvature[at, np.uint64(z)] += w * p * (1.0 - p)
            gradient[at, np.uint64(component[row])] += w


@kernel(is_part=True)
def _clipped(x):
    return min(max(x, -_LONGEST), _LONGEST)


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


@kernel(fastmath=REORDERED, is_part=True)
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
