"""Likelihood of rows left out of the tables of `BackOff` or of trees, for learning their pseudo-rows."""

import math

import numpy as np

from posteriori.kernels.compiling import kernel
from posteriori.kernels.forests import _side, level_of


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
        share[0] = (own[c, 0, 0] + s * root[c]) / (own[c, 0, 1] + s)
        top = 0
        for t in range(1, n_levels):
            if own[c, t, 1] < 0.0:
                continue
            s = pseudo_rows[j, t]
            top += 1
            level[top] = t
            overall[top] = (pooled[c, t, 0] + s * overall[top - 1]) / (pooled[c, t, 1] + s)
            share[top] = (own[c, t, 0] + s * (share[top - 1] + overall[top]) / 2.0) / (own[c, t, 1] + s)
        total += w * math.log(share[top])
        of_share, of_overall = w, 0.0  # the expected number of draws from the two tables of a level
        for position in range(top, 0, -1):
            t = level[position]
            s = pseudo_rows[j, t]
            below = s * (share[position - 1] + overall[position]) / 2.0
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
def averaged_left_out(codes, component, weight, counts, singles, starts, pseudo_rows, alpha, out):
    """Write log p(x | z) of the average of `add_averaged` under the tables without row i, in nats, to out[i, z].

    Parameters
    ----------
    codes : ndarray (n, d)
    component, weight : ndarray (n,)
        Of each row.
    counts : ndarray (S, S, Z)
        Weight by the slot of the parent, the slot of the child and the component; the slot of a code is
        starts[j] + code. That of code 0 of a child holds the sum over its codes.
    singles : ndarray (S, Z)
        The same of each column alone.
    starts : ndarray (d + 1,)
        Ends with S.
    pseudo_rows : ndarray (d, 2)
        Of p(x_j | z) and of p(x_j | x_i, z).
    alpha : float
    """
    n, d = codes.shape
    n_components = singles.shape[1]
    single, overall, term = np.empty((d, n_components)), np.empty(d), np.empty(n_components)
    pooled, of_pairs = singles.sum(axis=1), counts.sum(axis=2)
    for i in range(n):
        row, y, w = codes[i], component[i], weight[i]
        for j in range(d):
            if codes[i, j] > 0:
                x = starts[j] + np.int64(codes[i, j])
                overall[j] = _single(
                    x, starts[j], starts[j + 1], singles, pooled, y, w, pseudo_rows[j, 0], alpha, single[j]
                )
        for z in range(n_components):
            out[i, z] = -math.inf
        for parent in range(d):
            first = starts[parent] + np.int64(codes[i, parent])
            if codes[i, parent] > 0:
                for z in range(n_components):
                    term[z] = math.log(single[parent, z])
                _add_children(
                    codes[i], parent, first, starts, counts, of_pairs, y, w, single, overall, pseudo_rows, term
                )
                _add_term(term, out[i])
                continue
            last = starts[parent + 1] - 1
            for a in range(first + 1, last + 1):
                _single(a, first, last + 1, singles, pooled, y, 0.0, pseudo_rows[parent, 0], alpha, term)
                for z in range(n_components):
                    term[z] = math.log(term[z])
                _add_children(row, parent, a, starts, counts, of_pairs, y, 0.0, single, overall, pseudo_rows, term)
                _add_term(term, out[i])
        for z in range(n_components):
            out[i, z] -= math.log(d)
    return 0


@kernel(is_part=True)
def _single(x, start, stop, singles, pooled, y, w, pseudo_rows, alpha, share):
    """Write p(x_j | z) of slot x, without a weight w in component y, to share; return p(x_j)."""
    total = max(pooled[start] - w, 0.0) + (stop - start - 1) * alpha
    of_all = (max(pooled[x] - w, 0.0) + alpha) / total if total > 0.0 else 1.0 / (stop - start - 1)
    for z in range(len(share)):
        gone = w if z == y else 0.0
        count, total = max(singles[x, z] - gone, 0.0), max(singles[start, z] - gone, 0.0)
        share[z] = (count + pseudo_rows * of_all) / (total + pseudo_rows)
    return of_all


@kernel(is_part=True)
def _add_children(row, parent, a, starts, counts, of_pairs, y, w, single, overall, pseudo_rows, term):
    """Add Σ_j log p(x_j | parent in slot a, z), without a weight w in component y, to term (Z,)."""
    for j in range(len(row)):
        if j == parent or row[j] == 0:
            continue
        x, s = starts[j] + np.int64(row[j]), pseudo_rows[j, 1]
        among_all = (max(of_pairs[a, x] - w, 0.0) + s * overall[j]) / (max(of_pairs[a, starts[j]] - w, 0.0) + s)
        for z in range(len(term)):
            gone = w if z == y else 0.0
            count, total = max(counts[a, x, z] - gone, 0.0), max(counts[a, starts[j], z] - gone, 0.0)
            term[z] += math.log((count + s * (single[j, z] + among_all) / 2.0) / (total + s))


@kernel(is_part=True)
def _add_term(term, log_sum):
    """Add exp(term) to exp(log_sum)."""
    for z in range(len(term)):
        higher, lower = max(log_sum[z], term[z]), min(log_sum[z], term[z])
        log_sum[z] = higher + math.log1p(math.exp(lower - higher))


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
                side = _side(np.int64(codes[i, column]), nodes[node, 1], ordered[column], sides) if column >= 0 else 0
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
            p = (own[k] + s * p) / (total[k] + s)
        total_log += weight[path] * math.log(p)
        draws = weight[path]
        for k in range(last - 1, first - 1, -1):
            exposure[level[k]] += draws / (total[k] + strengths[level[k]])
            draws *= below[k - first] / (own[k] + below[k - first])
            by_prior[level[k]] += draws
    return total_log
