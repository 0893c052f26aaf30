"""Rows left out: log factors under the counts or covariances without each row, and what pseudo-rows learn from them.

Removing a row changes only the cells that contain it, so each factor takes O(1) updates instead of a new estimate.
"""

import math
from typing import NamedTuple

import numpy as np

from posteriori.kernels.compiling import kernel
from posteriori.kernels.elimination import (
    allocate_factors,
    drop_empty,
    eliminate,
    message_cells,
    prepare_row,
    reads_hidden,
)
from posteriori.kernels.forests import _side, level_of
from posteriori.kernels.forward_sums import allocate_walk, follow_walk, mark_least
from posteriori.kernels.missing_parents import end_of_row, grown, plan_cheap_walk

_ROUNDING = 1e-12  # a difference below this share of the total is rounding error


class SmoothedCounts(NamedTuple):
    """Weights of codes, in the slots of families, and the back-off that smooths them.

    Code 0 of a parent holds the sum over all its codes, code 0 of the child the sum over its present cells.
    """

    counts: np.ndarray  # (slots, Z)
    pooled: np.ndarray  # (slots,) summed over the components
    pseudo_rows: np.ndarray  # (d, 1 + most parents) of p(x_j | z), and of the table with each number of parents
    alpha: float
    stepwise: bool  # whether tables back off


@kernel
def _rest(total, part):
    """Return total − part, and 0 where the difference is rounding error."""
    left = total - part
    return left if left > _ROUNDING * total else 0.0


@kernel
def _shrunk(count, total, lower, added, in_all):
    """Return (count + added) / (total + in_all), or the lower-order probability if the denominator is 0."""
    whole = total + in_all
    return (count + added) / whole if whole > 0.0 else lower


@kernel
def families_left_out(codes, component, weight, families, counts, first, out):
    """Write log p(x_j | parents, z), smoothed by `BackOff`, under the counts without row i, to out[i, z − first, j]."""
    n, n_out, d = out.shape
    share = np.empty(n_out)
    for i in range(n):
        for j in range(d):
            if codes[i, j] == 0:
                for z in range(n_out):
                    out[i, z, j] = 0.0
                continue
            _write_probabilities(j, codes[i], codes[i], weight[i], component[i], families, counts, first, share)
            for z in range(n_out):
                out[i, z, j] = math.log(share[z]) if share[z] > 0.0 else -math.inf


@kernel
def sum_out_left_out(codes, component, weight, rows, upto, families, counts, most_cells, summed):
    """Write the sums of `sum_out_families` to summed (e, Z), under the tables without row rows[e].

    The table of a factor is written once for the entries of a row, because its hidden columns are the same in all.
    """
    d, n_components = codes.shape[1], summed.shape[1]
    factors = allocate_factors(codes, rows, families)
    walk, product = allocate_walk(d)
    asked = np.empty(d, np.int64)
    written = np.empty(d, np.int64)  # the first cell of the table of each column, or −1
    strides = np.empty(len(families.members), np.int64)
    pool = np.empty((1, n_components))
    free = np.int64(0)  # not a literal, for each of which Numba compiles the calls once more
    first = 0
    while first < len(rows):
        i, stop = rows[first], end_of_row(rows, first)
        row, w, y = codes[i], weight[i], component[i]
        drop_empty(families, factors)
        m, _ = prepare_row(row, upto[stop - 1], families, most_cells, factors)
        n_events, n_small, n_cells = plan_cheap_walk(row, upto[first:stop], m, families, factors, most_cells, walk)
        done = first
        if n_small:
            free = np.int64(0)
            for e in range(n_small):
                j = walk.event[e]
                size = _lay_out_factor(j, families, factors, strides)
                pool = grown(pool, free + size)
                _copy(row, asked)
                _write_factor(j, row, asked, w, y, families, counts, factors, pool[free : free + size])
                mark_least(pool[free : free + size])
                written[j] = free
                free += size
            pool = grown(pool, free + n_cells)
            done += follow_walk(
                row,
                upto[first:stop],
                m,
                n_events,
                n_small,
                free,
                families,
                factors,
                strides,
                written,
                pool,
                pool,
                walk,
                product,
                summed[first:stop],
            )
        pool = _eliminate_left_out(
            row,
            w,
            y,
            upto[done:stop],
            families,
            counts,
            most_cells,
            factors,
            asked,
            written,
            strides,
            pool,
            summed[done:stop],
        )
        first = stop


@kernel(is_part=True)
def _eliminate_left_out(row, w, y, upto, families, counts, most_cells, factors, asked, written, strides, pool, summed):
    """Write the sums of the entries of one row by elimination, and return the pool, which may have grown."""
    n_dropped, free = -1, np.int64(0)
    for e in range(len(upto)):
        m, n_factors = prepare_row(row, upto[e], families, most_cells, factors)
        if factors.dropped.sum() != n_dropped:
            n_dropped = factors.dropped.sum()
            written[:] = -1
            free = np.int64(0)
        if not m:
            continue
        f = np.int64(0)
        for step in range(upto[e]):
            j = families.order[step]
            if (row[j] == 0 and factors.position[j] < 0) or not reads_hidden(j, families, factors):
                continue
            size = _lay_out_factor(j, families, factors, strides)
            _copy_strides(j, f, families, factors, strides)
            if written[j] < 0:
                pool = grown(pool, free + size)
                _copy(row, asked)
                _write_factor(j, row, asked, w, y, families, counts, factors, pool[free : free + size])
                _take_logarithms(pool[free : free + size])
                written[j] = free
                free += size
            factors.base[f], factors.pooled[f] = written[j], True
            f += 1
        pool = grown(pool, free + message_cells(m, families, factors))
        eliminate(m, n_factors, free, families, factors, pool, pool, summed[e])
    return pool


@kernel(is_part=True)
def _copy(row, asked):
    """Copy a row of codes: an assignment to a slice takes seconds to compile."""
    for j in range(len(asked)):
        asked[j] = row[j]


@kernel(is_part=True)
def _copy_strides(j, f, families, factors, strides):
    """Copy the strides of the hidden members of a family to factor f."""
    for t in range(families.starts[j], families.starts[j + 1]):
        if factors.position[families.members[t]] >= 0:
            factors.stride[f, factors.position[families.members[t]]] = strides[t]


@kernel(is_part=True)
def _take_logarithms(cells):
    """Replace probabilities (cells, Z) by their logarithms."""
    for c in range(len(cells)):
        for z in range(cells.shape[1]):
            cells[c, z] = math.log(cells[c, z]) if cells[c, z] > 0.0 else -math.inf


@kernel(is_part=True)
def _lay_out_factor(j, families, factors, strides):
    """Write the strides of the hidden members of a factor, the first the fastest; return its number of cells."""
    size = 1
    for t in range(families.starts[j], families.starts[j + 1]):
        member = families.members[t]
        if factors.position[member] >= 0:
            strides[t] = size
            size *= families.cardinalities[member]
    return size


@kernel(is_part=True)
def _write_factor(j, own, asked, w, y, families, counts, factors, cells):
    """Write the table of a family without a row, (combinations of the hidden columns, Z), as `_lay_out_factor` says.

    asked is the row, and is left with the last combination.
    """
    for t in range(families.starts[j], families.starts[j + 1]):
        if factors.position[families.members[t]] >= 0:
            asked[families.members[t]] = 1
    for c in range(len(cells)):
        _write_probabilities(j, own, asked, w, y, families, counts, 0, cells[c])
        for t in range(families.starts[j], families.starts[j + 1]):
            member = families.members[t]
            if factors.position[member] >= 0:
                asked[member] += 1
                if asked[member] <= families.cardinalities[member]:
                    break
                asked[member] = 1


@kernel
def _write_probabilities(j, own, asked, w, y, families, counts, first, share):
    """Write p(asked child | asked parents, z), z from first, of family j without a row of weight w in component y.

    The row is subtracted from the counts where the requested cells equal its own. A parent with requested code 0 is
    omitted from the condition.
    """
    weights, pooled = counts.counts, counts.pooled
    pseudo_rows, alpha, stepwise = counts.pseudo_rows, counts.alpha, counts.stepwise
    strength = pseudo_rows[j, 0]
    child = families.starts[j + 1] - 1
    base, k = families.offsets[j], np.float64(families.cardinalities[j])
    x = np.int64(asked[j])
    of_all = w if own[j] > 0 else 0.0
    of_x = of_all if own[j] == x else 0.0
    overall = _shrunk(_rest(pooled[base + x], of_x), _rest(pooled[base], of_all), 1.0 / k, alpha, k * alpha)
    for z in range(len(share)):
        mine = 1.0 if z + first == y else 0.0
        count = _rest(weights[base + x, z + first], mine * of_x)
        total = _rest(weights[base, z + first], mine * of_all)
        if stepwise:
            share[z] = _shrunk(count, total, overall, strength * overall, strength)
        else:
            share[z] = _shrunk(count, total, overall, alpha, k * alpha)
    for position in range(families.starts[j], child):
        parent = families.members[position]
        code = np.int64(asked[parent])
        if code == 0:
            continue
        if own[parent] != code:
            of_x = of_all = 0.0
        base += code * families.strides[position]
        strength = pseudo_rows[j, 1 + position - families.starts[j]]
        added = strength * overall if stepwise else alpha
        in_all = strength if stepwise else k * alpha
        overall = _shrunk(_rest(pooled[base + x], of_x), _rest(pooled[base], of_all), overall, added, in_all)
        for z in range(len(share)):
            mine = 1.0 if z + first == y else 0.0
            count = _rest(weights[base + x, z + first], mine * of_x)
            total = _rest(weights[base, z + first], mine * of_all)
            halfway = (share[z] + overall) / 2.0
            share[z] = _shrunk(count, total, halfway, strength * halfway if stepwise else alpha, in_all)


@kernel
def tree_left_out(
    codes, y, w, parents, widths, start, offsets, counts, pooled, pseudo_rows, alpha, stepwise, first, table
):
    """Write the tables log p(x_j | x_parent, z) without one row of codes (d,), for the components from `first` on.

    The table of column j and component z starts at table[start[z − first, j]]. counts and pooled are those of
    `SmoothedCounts`, for families of a child and its parent; parents (d,) is −1 at a root. The smoothing is that of
    `BackOff`: p(x | z) backs off to p(x), and p(x | a, z) to the mean of p(x | z) and p(x | a).
    """
    d = len(codes)
    overall = np.empty(widths.max())
    share = np.empty(widths.max())
    for j in range(d):
        k, of_single = widths[j] - 1, pseudo_rows[j, 0]
        strength = pseudo_rows[j, 1] if parents[j] >= 0 else 0.0
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
                added, in_all = (of_single * overall[x], of_single) if stepwise else (alpha, k * alpha)
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
