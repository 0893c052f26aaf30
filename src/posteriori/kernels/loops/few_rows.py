"""Kernels of prediction as NumPy operations, for processes in which Numba is not loaded.

Each function has the name, the arguments and the results of a kernel. Loops over rows of many kinds, such as
variable elimination, have no such form: they run as plain Python.
"""

import numpy as np

from posteriori.kernels.loops.back_off import halfway, with_pseudo_rows
from posteriori.support.typing import Array

LANES = 8  # rows whose numbers stand side by side
NO_SHARE = 2.0**-53  # of the rows of a node, of a side that no code leads to: 1 − it is still below 1
_TERMS = 1 << 17  # of sums that are added up at once


def log_evidence(log_joint, out):
    """As `bayes.log_evidence`."""
    largest = log_joint.max(axis=1)
    shift = np.where(largest == -np.inf, 0.0, largest)
    out[:] = shift + np.log(np.exp(log_joint - shift[:, np.newaxis]).sum(axis=1))


def normalise(log_joint):
    """As `bayes.normalise`."""
    log_joint -= log_joint.max(axis=1, keepdims=True)
    np.exp(log_joint, out=log_joint)
    log_joint /= log_joint.sum(axis=1, keepdims=True)


def encode_integers(values, low, lookup, starts, codes):
    """As `encoding.encode_integers`."""
    position = (values - low).astype(np.uint64)  # unsigned: a value below the range wraps around to one above it
    known = position < np.diff(starts).astype(np.uint64)
    codes[:] = np.where(known, lookup[starts[:-1] + np.where(known, position, 0).astype(np.int64)], 0)


def add_categorical(codes, offsets, log_probability, out):
    """As `bayes.add_categorical`."""
    out += log_probability[:, offsets[: codes.shape[1]] + codes].sum(axis=2).T


def add_gaussian(values, mean, precision, log_peak, out):
    """As `bayes.add_gaussian`."""
    x = values[:, np.newaxis, :]
    deviation = x - mean
    factors = log_peak - 0.5 * deviation * deviation * precision
    out += np.where(np.isnan(x), 0.0, factors).sum(axis=2)


def add_student(values, mean, precision, log_peak, degrees, out):
    """As `bayes.add_student`."""
    x = values[:, np.newaxis, :]
    deviation = x - mean
    factors = log_peak - 0.5 * (degrees + 1.0) * np.log1p(deviation * deviation * precision / degrees)
    out += np.where(np.isnan(x), 0.0, factors).sum(axis=2)


def whitened_distance(whitened, centre, group, out):
    """As `bayes.whitened_distance`."""
    rows = whitened.reshape(len(whitened), -1, centre.shape[1])
    difference = rows[:, group] - centre
    np.einsum("izj,izj->iz", difference, difference, out=out)


def digitise(values, columns, starts, cuts, positions, codes):
    """As `binning.digitise`."""
    for k, (column, position) in enumerate(zip(columns, positions, strict=True)):
        x = values[:, column].astype(np.float64)
        bins = np.searchsorted(cuts[starts[k] : starts[k + 1]], x, side="right") + 1
        codes[:, position] = np.where(np.isnan(x), 0, bins)


def smoothed_tables(table, pseudo_rows, alpha, backs_off):
    """As `families.smoothed_tables`, to the last bit, so that a file may hold counts in place of tables."""
    observed = table[..., 1:]
    for a in range(1, table.shape[1]):
        observed[:, 0] += observed[:, a]
    for b in range(1, table.shape[2]):
        observed[:, :, 0] += observed[:, :, b]
    pooled = np.zeros(observed.shape[1:])
    for of_component in observed:
        pooled += of_component
    uniform = np.full(pooled.shape[-1], 1.0 / max(pooled.shape[-1], 1))
    _shrink(pooled[0, 0], uniform, 0.0, alpha, False)
    _shrink(observed[:, 0, 0], pooled[0, 0], pseudo_rows[0], alpha, backs_off)
    # From few parents to many: those with the first parent, then those with the second one.
    steps = [(np.s_[1:, :1], np.s_[:1, :1], pseudo_rows[1]), (np.s_[:, 1:], np.s_[:, :1], pseudo_rows[2])]
    for given, before, strength in [step for step, n in zip(steps, table.shape[1:], strict=False) if n > 1]:
        _shrink(pooled[given], pooled[before], strength, alpha, backs_off)
        every = (slice(None), *given)
        lower = halfway(observed[(slice(None), *before)], pooled[given])
        _shrink(observed[every], lower, strength, alpha, backs_off)


def _shrink(lines: Array, lower: Array, pseudo_rows: float, alpha: float, backs_off: bool) -> None:
    """As `families._shrink`, of lines (…, K) at once."""
    lines[:] = with_pseudo_rows(lines, pseudo_rows, lower) if backs_off else lines + alpha
    total = _one_after_the_other(lines)
    np.copyto(lines, lower, where=total <= 0.0)
    np.divide(lines, total, out=lines, where=total > 0.0)


def _one_after_the_other(terms: Array) -> Array:
    """Return the sums along the last axis, (…, 1), in the order of a loop; `sum` would add pairs."""
    total = np.zeros((*terms.shape[:-1], 1))
    for x in range(terms.shape[-1]):
        total += terms[..., x : x + 1]
    return total


def averaged_tables(cells, offsets, widths, starts, single, strengths, alpha, backs_off, out):
    """As `families.averaged_tables`, to the last bit, so that a file may hold counts in place of tables."""
    d, n_components = len(widths), single.shape[1]
    slots = [slice(start, start + width) for start, width in zip(starts.tolist(), widths.tolist(), strict=True)]
    pair = 0
    for i in range(d):
        for j in range(i + 1, d):
            first, size = offsets[pair], n_components * widths[i] * widths[j]
            table = cells[first : first + size].reshape(n_components, widths[i], widths[j])
            out[slots[i], slots[j]] = table.transpose(1, 2, 0)
            out[slots[j], slots[i]] = table.transpose(2, 1, 0)
            pair += 1
    column = np.repeat(np.arange(d), widths)
    strength = strengths[column][:, np.newaxis]
    # The slots of code 1, 2, … of the columns that have it, the widest column first.
    by_width = np.argsort(-widths, kind="stable")
    of_codes = [(starts + x)[by_width][widths[by_width] > x] for x in range(1, widths.max())]
    place = np.argsort(by_width)[column]

    def totals(of_slots: Array) -> Array:
        """Return the sums over the codes of each child but 0 along axis −2, for each of its slots."""
        total = np.zeros((*of_slots.shape[:-2], d, of_slots.shape[-1]))
        for at in of_codes:
            total[..., : len(at), :] += of_slots.take(at, axis=-2)
        return total.take(place, axis=-2)

    added = alpha * (widths - 1)[column][:, np.newaxis]
    for i in range(d):
        counts = out[slots[i]]
        counts[:, slots[i]] = 0.0
        lower = np.broadcast_to(single, counts.shape)
        if backs_off:
            pooled = np.zeros((*counts.shape[:2], 1))
            for z in range(n_components):
                pooled[..., 0] += counts[..., z]
            marginal = np.zeros(pooled.shape[1:])
            for of_code in pooled:
                marginal += of_code
            marginal += alpha
            total = totals(marginal)
            marginal = np.divide(marginal, total, out=np.zeros_like(marginal), where=total > 0.0)
            total = totals(pooled) + strength
            pooled = _shares(with_pseudo_rows(pooled, strength, marginal), total, marginal)
            lower = halfway(lower, pooled)
        total = totals(counts) + (strength if backs_off else added)
        counts[:] = _shares(with_pseudo_rows(counts, strength, lower) if backs_off else counts + alpha, total, lower)


def _shares(counts: Array, total: Array, otherwise: Array) -> Array:
    """As `back_off.share_of`."""
    return np.where(total > 0.0, counts / total, otherwise)


def add_families(codes, families, log_probability, out):
    """As `families.add_families`."""
    cells = codes[:, families.members] * families.strides
    slots = families.offsets + np.add.reduceat(cells, families.starts[:-1], axis=1)
    out += log_probability[slots].sum(axis=1)


def sum_out_tree(codes, rows, families, log_probability, probability, out, is_lost):
    """As `tree_sums.sum_out_tree`, in logarithms, so that no row is lost."""
    del probability, is_lost
    families = families._replace(**{name: getattr(families, name).tolist() for name in families._fields})
    for i in rows.tolist():
        row = codes[i].tolist()
        below: dict[int, Array] = {}  # log λ of missing columns, (K, Z)
        out[i] = 0.0
        for j in reversed(families.order):
            if row[j] == 0 and j not in below:
                continue
            p, start, width = families.members[families.starts[j]], families.offsets[j], families.cardinalities[j] + 1
            n_lines = 1 if p == j else families.cardinalities[p] + 1
            lines = log_probability[start : start + n_lines * width].reshape(n_lines, width, -1)
            line = 0 if p == j else row[p]
            is_sent = p != j and line == 0
            lines = lines[1:] if is_sent else lines[line : line + 1]
            message = lines[:, row[j]] if row[j] else np.logaddexp.reduce(lines[:, 1:] + below.pop(j), axis=1)
            if not is_sent:
                out[i] += message[0]
            else:
                below[p] = below[p] + message if p in below else message


def add_averaged(codes, starts, log_probability, out):
    """As `families.add_averaged`."""
    stops = np.append(starts[1:], len(log_probability))
    last = stops - starts - 1  # the largest code of each column
    for row, total in zip(codes.astype(np.int64), out, strict=True):
        missing = row == 0
        first, upto = np.where(missing, 1, row), np.where(missing, last, row)
        parents = np.concatenate([np.arange(a, b + 1) for a, b in zip(starts + first, starts + upto, strict=True)])
        alone = np.repeat(missing, upto - first + 1)
        terms = log_probability[parents[:, np.newaxis], (starts + row)[~missing]].sum(axis=1)
        terms[alone] += log_probability[parents[alone], parents[alone]]
        largest = terms.max(axis=0)
        shift = np.where(largest == -np.inf, 0.0, largest)
        total += shift + np.log(np.exp(terms - shift).sum(axis=0) / len(row))


def count_invalid(counts, largest):
    """Return how many counts are negative, missing (NaN) or larger than `largest`."""
    return len(counts) - int(np.count_nonzero((counts >= 0.0) & (counts <= largest)))


def add_row(out, j, other, k):
    """As `lanes.add_row`."""
    out[j] += other[k]


def multiply_row(out, j, other, k):
    """As `lanes.multiply_row`."""
    out[j] *= other[k]


def raise_row(out, j, other, k):
    """As `lanes.raise_row`."""
    out[j] = np.where(out[j] > other[k], out[j], other[k])


def divide_row(out, j, other, k):
    """As `lanes.divide_row`."""
    out[j] = np.where(out[j] > 0.0, other[k] / out[j], 0.0)


def scale_row(out, j, number, other, k):
    """As `lanes.scale_row`."""
    out[j] = number * other[k]


def add_scaled_row(out, j, number, other, k):
    """As `lanes.add_scaled_row`."""
    out[j] += number * other[k]


def weigh_edges(counts, nodes, roots, sides, ordered, mass, starts, weight, share, log_edge):
    """As `forests.weigh_edges`."""
    is_leaf, parent = nodes[:, 0] < 0, np.full(len(nodes), -1, np.int64)
    weight[is_leaf] = counts[nodes[is_leaf, 2]]
    for at in reversed(_levels(nodes, roots)):
        at = at[nodes[at, 0] >= 0]
        child = nodes[at, 2]
        parent[child], parent[child + 1] = at, at
        weight[at] = weight[child] + weight[child + 1]
        n_left, n_right = _total(weight[child], 0.5), _total(weight[child + 1], 0.5)
        share[at] = n_left / (n_left + n_right)
    log_edge[roots[:-1]] = 0.0
    inner = np.flatnonzero(~is_leaf)
    column, cut, child = nodes[inner].T
    low, high = _cells_of_nodes(inner, nodes, parent, ordered, starts)
    at_left, at_right = np.zeros(len(inner)), np.zeros(len(inner))
    for j in np.flatnonzero(ordered):
        of_column, own = np.flatnonzero(column == j), mass[starts[j] : starts[j + 1]]
        at_left[of_column] = _sums_between(own, low[of_column], np.minimum(cut[of_column], high[of_column]))
        at_right[of_column] = _sums_between(own, np.maximum(cut[of_column] + 1, low[of_column]), high[of_column])
    rest, code = np.flatnonzero(~ordered[column]), low.copy()
    while len(rest := rest[code[rest] <= high[rest]]):
        k = code[rest]
        mass_of_code = mass[starts[column[rest]] + k]
        side = sides[cut[rest] + k]
        at_left[rest] += np.where(side == 1, mass_of_code, 0.0)
        at_right[rest] += np.where(side == 2, mass_of_code, 0.0)
        code[rest] += 1
    share[inner[(at_left == 0.0) & (at_right > 0.0)]] = NO_SHARE
    share[inner[(at_left > 0.0) & (at_right == 0.0)]] = 1.0 - NO_SHARE
    log_edge[child] = log_edge[child + 1] = 0.0
    both = (at_left > 0.0) & (at_right > 0.0)
    inner, child, at_left, at_right = inner[both], child[both], at_left[both], at_right[both]
    log_whole = np.log(at_left + at_right)
    log_edge[child] = np.log(share[inner]) - np.log(at_left) + log_whole
    log_edge[child + 1] = np.log(1.0 - share[inner]) - np.log(at_right) + log_whole
    return 0


def _sums_between(terms: Array, low: Array, high: Array) -> Array:
    """Return terms[low] + … + terms[high] of each pair, added up in their order as in a loop; 0 if low > high."""
    sums, places = np.zeros(len(low)), np.arange(len(terms))
    known = np.flatnonzero(low <= high)
    firsts = np.unique(low[known])
    n_at_once = max(1, _TERMS // len(terms))
    for start in range(0, len(firsts), n_at_once):
        some = firsts[start : start + n_at_once]
        upto = np.cumsum(np.where(places >= some[:, np.newaxis], terms, 0.0), axis=1)
        pairs = known[(low[known] >= some[0]) & (low[known] <= some[-1])]
        sums[pairs] = upto[np.searchsorted(some, low[pairs]), high[pairs]]
    return sums


def _cells_of_nodes(inner: Array, nodes: Array, parent: Array, ordered: Array, starts: Array) -> tuple[Array, Array]:
    """As `forests._cell_of_node`, for the inner nodes."""
    column = nodes[inner, 0]
    low, high = np.ones(len(inner), np.int64), starts[column + 1] - starts[column] - 1
    rest = np.flatnonzero(ordered[column])
    lower, above = inner[rest], parent[inner[rest]]
    while len(rest):
        known = above >= 0
        rest, lower, above = rest[known], lower[known], above[known]
        same, is_left = nodes[above, 0] == column[rest], lower == nodes[above, 2]
        left, right = same & is_left, same & ~is_left
        high[rest[left]] = np.minimum(high[rest[left]], nodes[above[left], 1])
        low[rest[right]] = np.maximum(low[rest[right]], nodes[above[right], 1] + 1)
        lower, above = above, parent[above]
    return low, high


def smooth_nodes(weight, nodes, roots, share, strengths, prior, change, leaves_only, given_node, of_tree):
    """As `forests.smooth_nodes`."""
    is_leaf, smoothed = nodes[:, 0] < 0, np.empty(weight.shape)
    levels = _levels(nodes, roots)
    smoothed[roots[:-1]] = prior
    for at in levels:
        n = _total(weight[at])
        large = np.maximum(n * (1.0 + 1e-12), 1.0)
        level = np.minimum(np.log2(large).astype(np.int64) // 2, strengths.shape[1] - 1)
        strength = strengths[is_leaf[at].astype(np.int64), level][:, np.newaxis]
        smoothed[at] = with_pseudo_rows(weight[at], strength, smoothed[at]) * (1.0 / (n[:, np.newaxis] + strength))
        inner = at[~is_leaf[at]]
        smoothed[nodes[inner, 2]] = smoothed[nodes[inner, 2] + 1] = smoothed[inner]
    if len(change):
        of_leaf = change[nodes[is_leaf, 2]].astype(np.float64)
        changed = smoothed[is_leaf] * np.exp(of_leaf - of_leaf.max(axis=1, keepdims=True))
        smoothed[is_leaf] = np.maximum(changed / _total(changed)[:, np.newaxis], 1e-300)
    for at in reversed(levels):
        at = at[~is_leaf[at]]
        left, child = share[at][:, np.newaxis], nodes[at, 2]
        smoothed[at] = left * smoothed[child] + (1.0 - left) * smoothed[child + 1]
    root = np.repeat(roots[:-1], np.diff(roots))
    filled = is_leaf if leaves_only else np.ones(len(nodes), bool)
    given_node[filled] = np.log(smoothed[filled] / smoothed[root[filled]])
    of_tree[:] = smoothed[roots[:-1]]
    return 0


def _levels(nodes: Array, roots: Array) -> list[Array]:
    """Return the nodes of each level of all trees, the roots first."""
    levels = [roots[:-1]]
    while len(inner := levels[-1][nodes[levels[-1], 0] >= 0]):
        child = nodes[inner, 2]
        levels.append(np.concatenate([child, child + 1]))
    return levels


def _total(weight: Array, start: float = 0.0) -> Array:
    """Return the sum over the classes, added up in their order as in a loop."""
    total = np.full(len(weight), start)
    for z in range(weight.shape[1]):
        total += weight[:, z]
    return total
