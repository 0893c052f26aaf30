"""Class distributions of leaves that maximise the conditional likelihood of the rows that the trees grew on.

Indices in the inner loops are unsigned: signed ones are compared with 0 first.
"""

import math

import numpy as np

from posteriori.kernels.compiling import kernel

_LEAST = 1e-30  # posterior probability: so that it can rise again
_LONGEST = 4.0  # step of one log factor in nats, times the share of a step


@kernel(is_part=True)
def _uniform(row, node):
    """Return a number in [0, 1) that depends on a row and a node: SplitMix64 (Steele, Lea & Flood 2014)."""
    x = np.uint64(row) * np.uint64(0x9E3779B97F4A7C15) + np.uint64(node) * np.uint64(0xD1B54A32D192ED03)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x = x ^ (x >> np.uint64(31))
    return float(x >> np.uint64(11)) / 9007199254740992.0


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
                    side = 1 if _uniform(i, node) < share[node] else 2
                node = nodes[node, 2] + side - 1
            out[t, i] = nodes[node, 2]
    return 0


@kernel(is_part=True)
def _set_given(first, last, log_start, change, share, log_prior, given):
    """Fill given (leaves, Z), log p(y | leaf) − log p_t(y) of the leaves of a tree, from log p(y | leaf) before change."""
    n_classes = len(log_prior)
    of_tree = np.zeros(n_classes)
    for leaf in range(first, last):
        most, total = -math.inf, 0.0
        for z in range(n_classes):
            most = max(most, log_start[leaf, z] + change[leaf, z])
        for z in range(n_classes):
            total += math.exp(log_start[leaf, z] + change[leaf, z] - most)
        shift = most + math.log(total)
        for z in range(n_classes):
            given[leaf, z] = log_start[leaf, z] + change[leaf, z] - shift
            of_tree[z] += share[leaf] * math.exp(given[leaf, z])
    for z in range(n_classes):
        of_tree[z] = math.log(of_tree[z])
    for leaf in range(first, last):
        for z in range(n_classes):
            given[leaf, z] -= of_tree[z]


@kernel
def leave_one_out(weight, nodes, roots, strength, prior, place, out):
    """Fill out with log p(y | leaf) as a row of the leaf sees it, that is without the row.

    The row is of weight 1, and is taken out of every node above the leaf. place (leaves, Z) is set to where in out
    (pairs, Z) the distribution for a row of a class is, −1 for a class that the leaf does not have; return how many
    pairs there are, which may be more than out takes.
    """
    n_classes = len(prior)
    parent = np.full(len(nodes), -1, np.int64)
    path = np.empty(64, np.int64)
    p = np.empty(n_classes)
    n_pairs = 0
    for t in range(len(roots) - 1):
        for v in range(roots[t], roots[t + 1]):
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
                place[nodes[v, 2], y] = -1
                if own <= 0.0:
                    continue
                place[nodes[v, 2], y] = n_pairs
                if n_pairs < len(out):
                    for z in range(n_classes):
                        p[z] = prior[z]
                    for k in range(depth - 1, -1, -1):
                        n = strength - own
                        for z in range(n_classes):
                            n += weight[path[k], z]
                        for z in range(n_classes):
                            rest = weight[path[k], z] - (own if z == y else 0.0)
                            p[z] = (max(rest, 0.0) + strength * p[z]) / n
                    for z in range(n_classes):
                        out[n_pairs, z] = math.log(p[z])
                n_pairs += 1
    return n_pairs


@kernel
def start_posterior(leaf, component, weight, log_start, change, share, bounds, log_prior, place, left_out, given, posterior):
    """Fill given (leaves, Z), and posterior (n, Z), p(y | x) ∝ p(y)·exp(mean over the trees of given)."""
    n_trees, n_rows = leaf.shape
    n_classes = len(log_prior)
    for t in range(n_trees):
        _set_given(bounds[t], bounds[t + 1], log_start, change, share, log_prior, given)
    for i in range(n_rows):
        for z in range(n_classes):
            posterior[i, z] = 0.0
    for t in range(n_trees):
        for i in range(n_rows):
            of_row = np.uint64(leaf[t, i])
            at = place[of_row, np.uint64(component[i])] if weight[i] > 0.0 else -1
            if at >= 0:
                for z in range(n_classes):
                    posterior[i, z] += left_out[at, z] + given[of_row, z] - log_start[of_row, z]
                continue
            for z in range(n_classes):
                posterior[np.uint64(i), np.uint64(z)] += given[of_row, np.uint64(z)]
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
def improve_leaves(
    leaf, component, weight, log_start, change, share, bounds, log_prior, penalty, step, given, posterior
):
    """Take a Newton step in the leaves of one tree after the other, and update the posterior of all rows.

    With θ = change / T, the objective is Σ_i w_i·log p(y_i | x_i) − penalty/2·Σ θ², and the step of a leaf and class

        Δθ = step·(Σ_i w_i·([y_i = z] − p_iz) − penalty·θ) / (Σ_i w_i·p_iz·(1 − p_iz) + penalty).

    Parameters
    ----------
    leaf : (T, n), the leaf of each row in each tree
    component, weight : (n,); rows of weight 0 are held out
    log_start, change : (leaves, Z), log p(y | leaf) from counts, and what is added to it before it is normalised
    share : (leaves,), the share of a leaf in its tree
    bounds : (T + 1,), the first leaf of each tree
    given : (leaves, Z), log p(y | leaf) − log p_t(y)
    posterior : (n, Z)
    """
    n_trees, n_rows = leaf.shape
    n_classes = len(log_prior)
    most = 0
    for t in range(n_trees):
        most = max(most, bounds[t + 1] - bounds[t])
    gradient, curvature = np.zeros((most, n_classes)), np.zeros((most, n_classes))
    moved, factor = np.empty((most, n_classes)), np.empty((most, n_classes))
    for t in range(n_trees):
        first, last = bounds[t], bounds[t + 1]
        of_tree = leaf[t]
        for i in range(n_rows):
            w = weight[np.uint64(i)]
            if w > 0.0:
                at = np.uint64(of_tree[np.uint64(i)] - first)
                for z in range(n_classes):
                    p = posterior[np.uint64(i), np.uint64(z)]
                    gradient[at, np.uint64(z)] -= w * p
                    curvature[at, np.uint64(z)] += w * p * (1.0 - p)
                gradient[at, np.uint64(component[np.uint64(i)])] += w
        for k in range(last - first):
            for z in range(n_classes):
                gradient[k, z] -= penalty * change[first + k, z] / n_trees
                curvature[k, z] += penalty
                moved[k, z] = _clipped(gradient[k, z] / curvature[k, z])
                change[first + k, z] += n_trees * step * moved[k, z]
                factor[k, z] = -given[first + k, z]
        _set_given(first, last, log_start, change, share, log_prior, given)
        for k in range(last - first):
            for z in range(n_classes):
                factor[k, z] = math.exp((factor[k, z] + given[first + k, z]) / n_trees)
        for i in range(n_rows):
            at, w, y = np.uint64(of_tree[np.uint64(i)] - first), weight[np.uint64(i)], component[np.uint64(i)]
            total = 0.0
            for z in range(n_classes):
                p = posterior[np.uint64(i), np.uint64(z)]
                raised = p * factor[at, np.uint64(z)]
                if w > 0.0:
                    own = w * ((1.0 if z == y else 0.0) - p)
                    rest = curvature[at, np.uint64(z)] - w * p * (1.0 - p)
                    without = _clipped((gradient[at, np.uint64(z)] - own) / rest)
                    raised *= math.exp(step * (without - moved[at, np.uint64(z)]))
                posterior[np.uint64(i), np.uint64(z)] = raised
                total += raised
            scale = 1.0 / total
            for z in range(n_classes):
                posterior[np.uint64(i), np.uint64(z)] = max(posterior[np.uint64(i), np.uint64(z)] * scale, _LEAST)
        for k in range(last - first):
            for z in range(n_classes):
                gradient[k, z] = 0.0
                curvature[k, z] = 0.0
    return 0


@kernel(is_part=True)
def _clipped(x):
    return min(max(x, -_LONGEST), _LONGEST)
