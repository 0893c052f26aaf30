"""Pseudo-rows of back-off, learned by EM from cells and from paths in trees, each without its own row."""

import math

import numpy as np

from posteriori.kernels.loops.back_off import halfway, with_pseudo_rows
from posteriori.kernels.loops.forests import level_of, side_of
from posteriori.kernels.machine.compiling import kernel


@kernel
def sweep_cells(column, weight, root, own, pooled, pseudo_rows, by_prior, exposure):
    """Add what an EM step on the pseudo-rows needs; return Σ weight·log p of the cells, in nats.

    The value of a cell is drawn from its counts, or from a pseudo-row, whose value is drawn from one of two tables a
    level below, and so on (the tree of `BackOff`). by_prior[j, t] gets the expected number of draws from pseudo-rows of
    column j at level t, and exposure[j, t] Σ 1 / (N + s) over the expected number of draws at this level.

    Parameters
    ----------
    column : ndarray (m,)
        The child of each cell.
    weight : ndarray (m,)
    root : ndarray (m,)
        p(x).
    own, pooled : ndarray (m, 1 + T, 2)
        n_x and N of the tables given the component, and of all components, for each number of parents, without the row
        that is left out; N is −1 where the parent is missing. Level 0 of `pooled` is not read.
    pseudo_rows : ndarray (d, 1 + T)
    by_prior, exposure : ndarray (d, 1 + T)
    """
    n_levels = own.shape[1]
    share, overall, level = np.empty(n_levels), np.empty(n_levels), np.empty(n_levels, np.int64)
    total = 0.0
    for c in range(len(column)):
        j, w = column[c], weight[c]
        s = pseudo_rows[j, 0]
        overall[0] = root[c]
        share[0] = with_pseudo_rows(own[c, 0, 0], s, root[c]) / (own[c, 0, 1] + s)
        top = 0
        for t in range(1, n_levels):
            if own[c, t, 1] < 0.0:
                continue
            s = pseudo_rows[j, t]
            top += 1
            level[top] = t
            overall[top] = with_pseudo_rows(pooled[c, t, 0], s, overall[top - 1]) / (pooled[c, t, 1] + s)
            lower = halfway(share[top - 1], overall[top])
            share[top] = with_pseudo_rows(own[c, t, 0], s, lower) / (own[c, t, 1] + s)
        total += w * math.log(share[top])
        of_share, of_overall = w, 0.0  # the expected number of draws from the two tables of a level
        for position in range(top, 0, -1):
            t = level[position]
            s = pseudo_rows[j, t]
            below = s * halfway(share[position - 1], overall[position])
            prior = of_share * below / (own[c, t, 0] + below)
            by_prior[j, t] += prior
            exposure[j, t] += of_share / (own[c, t, 1] + s)
            to_share = share[position - 1] / (share[position - 1] + overall[position])
            of_overall += prior * (1.0 - to_share)
            of_share = prior * to_share
            below = s * overall[position - 1]
            prior = of_overall * below / (pooled[c, t, 0] + below)
            by_prior[j, t] += prior
            exposure[j, t] += of_overall / (pooled[c, t, 1] + s)
            of_overall = prior
        s = pseudo_rows[j, 0]
        below = s * root[c]
        by_prior[j, 0] += of_share * below / (own[c, 0, 0] + below)
        exposure[j, 0] += of_share / (own[c, 0, 1] + s)
    return total


@kernel
def follow_paths(codes, component, nodes, roots, sides, ordered, weight, n_levels, starts, level, own, total):
    """Write the nodes that rows (n, d) pass in each tree: of row i and tree t, path i·T + t, from starts[path] on.

    A path ends at a leaf, or where the cell of a split is missing. level is that of the weight of a node, own the
    weight of the component of the row in it, and total that of all. If level is empty, only starts is filled.
    """
    n_trees, n_classes = len(roots) - 1, weight.shape[1]
    end = 0
    for i in range(len(codes)):
        for t in range(n_trees):
            starts[i * n_trees + t] = end
            node = roots[t]
            while node >= 0:
                if len(level):
                    n = 0.0
                    for z in range(n_classes):
                        n += weight[node, z]
                    level[end], own[end], total[end] = level_of(n, n_levels), weight[node, component[i]], n
                end += 1
                column = nodes[node, 0]
                side = side_of(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides) if column >= 0 else 0
                node = np.int64(nodes[node, 2]) + side - 1 if side > 0 else np.int64(-1)
    starts[len(codes) * n_trees] = end
    return 0


@kernel
def sweep_paths(starts, level, own, total, weight, root, strengths, by_prior, exposure):
    """Do for paths in trees what `sweep_cells` does for cells: p = (n_y + s·p(parent)) / (n + s) from the root down.

    root (paths,) is what the root backs off to, weight (paths,) that of the row.
    """
    total_log, below = 0.0, np.empty(len(level) + 1)
    for path in range(len(weight)):
        first, last = starts[path], starts[path + 1]
        p = root[path]
        for k in range(first, last):
            s = strengths[level[k]]
            below[k - first] = s * p
            p = with_pseudo_rows(own[k], s, p) / (total[k] + s)
        total_log += weight[path] * math.log(p)
        draws = weight[path]
        for k in range(last - 1, first - 1, -1):
            exposure[level[k]] += draws / (total[k] + strengths[level[k]])
            draws *= below[k - first] / (own[k] + below[k - first])
            by_prior[level[k]] += draws
    return total_log
