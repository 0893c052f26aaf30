"""Log factors of columns given their parents: tables of all families, and trees with missing cells summed out.

Messages run from the leaves of a tree to its roots (Pearl 1988). The messages to a missing category add up to one
log-likelihood per value. The messages to a missing number x add up to a Gaussian potential in canonical form,
log λ(x) = g + h·x − ½·k·x² (Lauritzen 1992). A linear Gaussian edge maps this form to itself.
"""

import numpy as np

from posteriori.kernels.loops.back_off import halfway, share_of, with_pseudo_rows
from posteriori.kernels.loops.exponential import exponentiate
from posteriori.kernels.machine.compiling import REORDERED, kernel

_ROWS = 2048  # per block of `add_averaged`
_LOG_TWO_PI = np.log(2.0 * np.pi)
_HUGE = 1e300  # a term of −inf, less −_HUGE, is −inf, and not NaN


@kernel(fastmath=REORDERED)
def add_families(codes, families, log_probability, out):
    """Add log p(x_j | parents, z) of each family to out (n, Z).

    Family j reads the columns members[starts[j]:starts[j + 1]] of `Families`, the child among them, and its slot is
    offsets[j] + Σ code·stride; log_probability is (slots, Z), so that the components of a slot are neighbours.
    """
    members, starts, strides, offsets = families.members, families.starts, families.strides, families.offsets
    n = len(codes)
    n_components = log_probability.shape[1]
    n_families = len(offsets)
    for i in range(n):
        for j in range(n_families):
            slot = np.uint64(offsets[j])
            for position in range(starts[j], starts[j + 1]):
                slot += np.uint64(codes[i, members[position]]) * np.uint64(strides[position])
            for z in range(n_components):
                out[i, z] += log_probability[slot, z]


@kernel
def smoothed_tables(table, pseudo_rows, alpha, backs_off):
    """Replace weights (Z, A, B, K + 1) by p(x | a, b, z), as `BackOff.log_conditional` defines it.

    Code 0 is missing; an axis of length 1 is that of a parent that does not exist. pseudo_rows (3,) are those of the
    tables with 0, 1 and 2 parents. The work is done in place.
    """
    n_components, n_first, n_second, width = table.shape
    pooled = np.zeros((n_first, n_second, width))
    for z in range(n_components):
        _sum_over_parents(table[z])
        for a in range(n_first):
            for b in range(n_second):
                for x in range(1, width):
                    pooled[a, b, x] += table[z, a, b, x]
    uniform = np.full(width, 1.0 / max(width - 1, 1))
    _shrink(pooled[0, 0], uniform, 0.0, alpha, False)
    for z in range(n_components):
        _shrink(table[z, 0, 0], pooled[0, 0], pseudo_rows[0], alpha, backs_off)
    lower = np.empty(width)
    for a in range(n_first):
        for b in range(n_second):
            if a == 0 and b == 0:
                continue
            before = (0, 0) if b == 0 else (a, 0)  # without the last parent
            strength = pseudo_rows[1 if b == 0 else 2]
            _shrink(pooled[a, b], pooled[before], strength, alpha, backs_off)
            for z in range(n_components):
                for x in range(1, width):
                    lower[x] = halfway(table[z, before[0], before[1], x], pooled[a, b, x])
                _shrink(table[z, a, b], lower, strength, alpha, backs_off)


@kernel(is_part=True)
def _sum_over_parents(weights):
    """Set the weights (A, B, K + 1) for code 0 of a parent to the sum over all its codes, missing included."""
    n_first, n_second, width = weights.shape
    for b in range(n_second):
        for a in range(1, n_first):
            for x in range(1, width):
                weights[0, b, x] += weights[a, b, x]
    for a in range(n_first):
        for b in range(1, n_second):
            for x in range(1, width):
                weights[a, 0, x] += weights[a, b, x]


@kernel(is_part=True)
def _shrink(line, lower, pseudo_rows, alpha, backs_off):
    """Replace weights (K + 1,) by their shares, with pseudo-rows distributed as the lower-order table."""
    total = 0.0
    for x in range(1, len(line)):
        line[x] = with_pseudo_rows(line[x], pseudo_rows, lower[x]) if backs_off else line[x] + alpha
        total += line[x]
    for x in range(1, len(line)):
        line[x] = share_of(line[x], total, lower[x])


@kernel
def averaged_tables(cells, offsets, widths, starts, single, strengths, alpha, backs_off, out):
    """Write p(x_j | x_i, z) of all pairs i ≠ j to out[slot of x_i, slot of x_j, z], except for code 0 of either.

    The cells (Z, width_i, width_j) of the pairs i < j in lexicographic order start at offsets. single is p(x_j | z),
    (slots, Z). The equations are those of `BackOff` with one parent, with strengths (d,) of the child; without
    backs_off only alpha is added.
    """
    d, n_components = len(widths), single.shape[1]
    pair = 0
    for i in range(d):
        for j in range(i + 1, d):
            table = np.empty((n_components, widths[i], widths[j]))
            turned = np.empty((n_components, widths[j], widths[i]))
            cell = offsets[pair]
            for z in range(n_components):  # not reshape and transpose, which take seconds to compile
                for a in range(widths[i]):
                    for b in range(widths[j]):
                        table[z, a, b] = turned[z, b, a] = cells[cell]
                        cell += 1
            below = single[starts[j] : starts[j] + widths[j]]
            _given_parent(table, below, strengths[j], alpha, backs_off, out, starts[i], starts[j])
            above = single[starts[i] : starts[i] + widths[i]]
            _given_parent(turned, above, strengths[i], alpha, backs_off, out, starts[j], starts[i])
            pair += 1


@kernel(is_part=True)
def _sum_over_components(counts, alpha, marginal, pooled):
    """Fill pooled (codes of a, codes of x) with the sums of counts over z, and marginal (codes of x) with p(x)."""
    n_components, n_parents, width = counts.shape
    for z in range(n_components):
        for a in range(n_parents):
            for x in range(1, width):
                pooled[a, x] += counts[z, a, x]
    total = 0.0
    for x in range(1, width):
        for a in range(n_parents):
            marginal[x] += pooled[a, x]
        marginal[x] += alpha
        total += marginal[x]
    for x in range(1, width):
        marginal[x] = share_of(marginal[x], total, 0.0)


@kernel(is_part=True)
def _given_parent(counts, single, strength, alpha, backs_off, out, first_row, first_column):
    """Write p(x | a, z) to out[first_row + a, first_column + x, z]; counts (Z, codes of a, codes of x)."""
    n_components, n_parents, width = counts.shape
    marginal, pooled = np.zeros(width), np.zeros((n_parents, width))
    if backs_off:
        _sum_over_components(counts, alpha, marginal, pooled)
    for a in range(1, n_parents):
        if backs_off:
            total = 0.0
            for x in range(1, width):
                total += pooled[a, x]
            total += strength
            for x in range(1, width):
                pooled[a, x] = share_of(with_pseudo_rows(pooled[a, x], strength, marginal[x]), total, marginal[x])
        for z in range(n_components):
            total = 0.0
            for x in range(1, width):
                total += counts[z, a, x]
            total += strength if backs_off else alpha * (width - 1)
            for x in range(1, width):
                count, lower = counts[z, a, x], single[x, z]
                if backs_off:
                    lower = halfway(lower, pooled[a, x])
                    count = with_pseudo_rows(count, strength, lower)
                else:
                    count += alpha
                out[first_row + a, first_column + x, z] = share_of(count, total, lower)


@kernel
def add_averaged(codes, starts, log_probability, out):
    """Add log 1/d·Σ_i Σ_a p(x_i = a | z)·Π_{j≠i} p(x_j | x_i = a, z) to out (n, Z): each column in turn is the parent.

    The inner sum is over the observed value of x_i, or over all its values if it is missing. j runs over the present
    columns. log_probability[slot of x_i, slot of x_j, z] is log p(x_j | x_i, z), and log p(x_i | z) for
    i = j; the slot of a code is starts[j] + code. The components of a pair of slots are neighbours, so that one read of
    memory serves all of them.

    A block of rows is added one parent after the other, so that few rows of the table are read at a time. For a
    missing parent the inner sum is one term.
    """
    n, d = codes.shape
    n_slots, n_components = len(log_probability), log_probability.shape[2]
    slots = np.empty((_ROWS, d), np.uint32)
    terms, peak, total = (
        np.empty((_ROWS, n_components)),
        np.empty((_ROWS, n_components)),
        np.empty((_ROWS, n_components)),
    )
    up, down = np.empty((_ROWS, n_components)), np.empty((_ROWS, n_components))
    for begin in range(0, n, _ROWS):
        m = min(_ROWS, n - begin)
        for r in range(m):
            for j in range(d):
                slots[r, j] = starts[j] + np.int64(codes[begin + r, j])
        peak[:m], total[:m] = -_HUGE, 0.0
        for i in range(d):
            _add_children(log_probability, slots, i, m, terms)
            stop = starts[i + 1] if i + 1 < d else n_slots
            _sum_out_parents(log_probability, slots, i, starts[i], stop, m, terms)
            _add_exponentials(terms[:m], peak[:m], total[:m], up[:m], down[:m])
        for r in range(m):
            for z in range(n_components):
                out[begin + r, z] += peak[r, z] + np.log(total[r, z] / d) if total[r, z] > 0.0 else -np.inf


@kernel(is_part=True)
def _add_exponentials(terms, peak, total, up, down):
    """Add exp(terms) to sums that are kept relative to their largest term: Σ exp = total·exp(peak)."""
    m, n_components = terms.shape
    for r in range(m):
        for z in range(n_components):
            largest = max(peak[r, z], terms[r, z])
            down[r, z], up[r, z] = peak[r, z] - largest, terms[r, z] - largest
            peak[r, z] = largest
    exponentiate(down.reshape(m * n_components))
    exponentiate(up.reshape(m * n_components))
    for r in range(m):
        for z in range(n_components):
            total[r, z] = total[r, z] * down[r, z] + up[r, z]


@kernel(is_part=True)
def _sum_out_parents(log_probability, slots, i, start, stop, m, terms):
    """Write log Σ_a p(x_i = a | z)·Π_{j≠i} p(x_j | x_i = a, z) to the terms of the rows in which x_i is missing.

    The slots of column i are start, for a missing cell, to stop − 1.
    """
    d, n_components = slots.shape[1], terms.shape[1]
    term, peak, total = np.empty(n_components), np.empty(n_components), np.empty(n_components)
    for r in range(m):
        if slots[r, i] > start:
            continue
        peak[:], total[:] = -np.inf, 0.0
        for slot in range(start + 1, stop):
            for z in range(n_components):
                term[z] = log_probability[slot, slot, z]
            for j in range(d):
                if j != i:  # 0 for a missing child
                    for z in range(n_components):
                        term[z] += log_probability[slot, slots[r, j], z]
            _add_exp(term, peak, total)
        for z in range(n_components):
            terms[r, z] = peak[z] + np.log(total[z]) if total[z] > 0.0 else -np.inf


@kernel(is_part=True)
def _add_children(log_probability, slots, i, m, terms):
    """Write Σ_j log p(x_j | x_i, z) to the terms (m, Z) of a block of rows; of no use where x_i is missing."""
    d, n_components = slots.shape[1], terms.shape[1]
    if n_components == 2:  # without an inner loop
        for r in range(m):
            of_parent = log_probability[slots[r, i]]
            a, b, c, e = 0.0, 0.0, 0.0, 0.0
            for j in range(0, d - 1, 2):
                x, y = slots[r, j], slots[r, j + 1]
                a += of_parent[x, 0]
                b += of_parent[x, 1]
                c += of_parent[y, 0]
                e += of_parent[y, 1]
            if d % 2:
                a += of_parent[slots[r, d - 1], 0]
                b += of_parent[slots[r, d - 1], 1]
            terms[r, 0], terms[r, 1] = a + c, b + e
        return
    for r in range(m):
        of_parent, term = log_probability[slots[r, i]], terms[r]
        for z in range(n_components):
            term[z] = 0.0
        for j in range(d):
            cell = of_parent[slots[r, j]]
            for z in range(n_components):
                term[z] += cell[z]


@kernel(is_part=True)
def _add_exp(terms, peak, total):
    """Add exp(terms) to sums that are kept relative to their largest term: Σ exp = total·exp(peak)."""
    for z in range(len(terms)):
        if terms[z] > peak[z]:
            total[z] = total[z] * np.exp(peak[z] - terms[z]) + 1.0
            peak[z] = terms[z]
        elif terms[z] > -np.inf:
            total[z] += np.exp(terms[z] - peak[z])


@kernel
def chain_averaged(codes, starts, log_probability, out):
    """Write log p(x_j | the present ones of x_1 … x_{j−1}, z) under the average of `add_averaged` to out[i, z, j].

    The factor is 0 if x_j is missing or the columns before it have probability 0.
    """
    n, d = codes.shape
    n_slots, n_components = len(log_probability), log_probability.shape[2]
    terms = np.empty(n_slots)  # log p(x_i = a, the columns so far | z), of every column i and each of its values
    for r in range(n):
        for z in range(n_components):
            terms[:] = -np.inf
            for i in range(d):
                stop = starts[i + 1] if i + 1 < d else n_slots
                for slot in range(starts[i] + 1, stop):
                    terms[slot] = log_probability[slot, slot, z]
            before = np.log(np.float64(d))
            for j in range(d):
                code = np.int64(codes[r, j])
                if code == 0:
                    out[r, z, j] = 0.0
                    continue
                stop = starts[j + 1] if j + 1 < d else n_slots
                child = starts[j] + code
                peak = -np.inf
                for slot in range(n_slots):
                    if slot < starts[j] or slot >= stop:
                        terms[slot] += log_probability[slot, child, z]
                    elif slot != child:
                        terms[slot] = -np.inf
                    peak = max(peak, terms[slot])
                total = 0.0
                if peak > -np.inf:
                    for slot in range(n_slots):
                        if terms[slot] > -np.inf:
                            total += np.exp(terms[slot] - peak)
                after = peak + np.log(total) if total > 0.0 else -np.inf
                out[r, z, j] = after - before if before > -np.inf else 0.0
                before = after


@kernel
def tree_log_density(codes, numbers, position, continuous, widths, order, parent, start, table, normal, rows, out):
    """Set out[i, z] to log p(x_i | z) for the listed rows i.

    Node j is column position[j] of numbers if continuous[j], otherwise of codes. order (Z, d) lists parents before
    children; parent (Z, d) is −1 at a root. The log-probability of a category is
    table[start[z, j] + code of parent·widths[j] + code], with parent code 0 at a root. The (intercept, slope, variance)
    of a number is normal[start[z, j] + code of parent], or the one line normal[start[z, j]] if the parent is a number.
    """
    n_components, d = parent.shape
    widest = 1
    for j in range(d):
        widest = max(widest, widths[j])
    messages = np.zeros((d, widest))
    canonical = np.zeros((d, 3))
    has_message = np.zeros(d, np.bool_)
    for i in rows:
        for z in range(n_components):
            total = 0.0
            for step in range(d - 1, -1, -1):
                j = order[z, step]
                if continuous[j]:
                    total += _number_to_parent(
                        codes, numbers, position, continuous, widths, parent[z, j], start[z, j], normal, i, j,
                        messages, canonical, has_message,
                    )  # fmt: skip
                else:
                    total += _category_to_parent(
                        codes, position, widths, parent[z, j], start[z, j], table, i, j, messages, has_message
                    )
            out[i, z] = total


@kernel(is_part=True)
def _category_to_parent(codes, position, widths, p, start, table, i, j, messages, has_message):
    """Add the message of category j and its descendants to its parent, or return it if the parent is observed."""
    x = codes[i, position[j]]
    width = widths[j]
    if x == 0 and not has_message[j]:
        return 0.0
    first = last = np.int64(0)
    if p >= 0:
        first = last = np.int64(codes[i, position[p]])
        if first == 0:
            first, last = np.int64(1), widths[p] - 1
            if not has_message[p]:
                messages[p, : widths[p]] = 0.0
                has_message[p] = True
    known = p < 0 or codes[i, position[p]] != 0
    message = 0.0
    for a in range(first, last + 1):
        slots = table[start + a * width : start + (a + 1) * width]
        message = slots[x] if x != 0 else _log_total(slots, messages[j], width)
        if not known:
            messages[p, a] += message
    has_message[j] = False
    return message if known else 0.0


@kernel(is_part=True)
def _log_total(log_probability, messages, width):
    """Return log Σ_x p(x)·λ(x) over the values of a missing category."""
    peak = -np.inf
    for x in range(1, width):
        peak = max(peak, log_probability[x] + messages[x])
    if peak == -np.inf:
        return peak
    total = 0.0
    for x in range(1, width):
        total += np.exp(log_probability[x] + messages[x] - peak)
    return peak + np.log(total)


@kernel(is_part=True)
def _number_to_parent(
    codes, numbers, position, continuous, widths, p, start, normal, i, j, messages, canonical, has_message
):  # fmt: skip
    """Add the message of number j and its descendants to its parent, or return it if the parent is observed."""
    x = numbers[i, position[j]]
    missing = np.isnan(x)
    if missing and not has_message[j]:
        return 0.0
    g, h, k = canonical[j]
    has_message[j] = False
    if p >= 0 and continuous[p]:
        intercept, slope, variance = normal[start]
        u = numbers[i, position[p]]
        if not np.isnan(u):
            return _expected_message(x, missing, intercept + slope * u, variance, g, h, k)
        if not has_message[p]:
            canonical[p] = 0.0
            has_message[p] = True
        if missing:
            spread = 1.0 + k * variance
            canonical[p, 0] += (
                g - 0.5 * np.log(spread) + (h * intercept + 0.5 * h * h * variance - 0.5 * k * intercept**2) / spread
            )
            canonical[p, 1] += (h - k * intercept) * slope / spread
            canonical[p, 2] += k * slope * slope / spread
        else:
            apart = x - intercept
            canonical[p, 0] -= 0.5 * (_LOG_TWO_PI + np.log(variance) + apart * apart / variance)
            canonical[p, 1] += slope * apart / variance
            canonical[p, 2] += slope * slope / variance
        return 0.0
    a = 0 if p < 0 else np.int64(codes[i, position[p]])
    if p < 0 or a > 0:
        mean, _, variance = normal[start + a]
        return _expected_message(x, missing, mean, variance, g, h, k)
    if not has_message[p]:
        messages[p, : widths[p]] = 0.0
        has_message[p] = True
    for a in range(1, widths[p]):
        mean, _, variance = normal[start + a]
        messages[p, a] += _expected_message(x, missing, mean, variance, g, h, k)
    return 0.0


@kernel(is_part=True)
def _expected_message(x, missing, mean, variance, g, h, k):
    """Return log N(x; mean, variance), or log ∫ N(x; mean, variance)·exp(g + h·x − ½·k·x²) dx where x is missing."""
    if not missing:
        apart = x - mean
        return -0.5 * (_LOG_TWO_PI + np.log(variance) + apart * apart / variance)
    spread = 1.0 + k * variance
    return g - 0.5 * np.log(spread) + (h * mean + 0.5 * h * h * variance - 0.5 * k * mean * mean) / spread


@kernel
def expect_tree_counts(codes, component, weight, widths, order, parent, start, probability, edge_start, cells):
    """Add each row's expected weight of (x_parent, x_j) to cells[edge_start[z, j] + …]; return Σ w·log p(x | z).

    All columns are codes; order, parent and start are as in `tree_log_density`, probability is exp(table). A table of
    cells has a row for each code of the parent, and one at a root.
    """
    n, d = codes.shape
    widest = 1
    for j in range(d):
        widest = max(widest, widths[j])
    below = np.empty((d, widest))  # likelihood of the subtree below each value of a column, up to a factor
    belief = np.empty((d, widest))  # its posterior
    log_likelihood = 0.0
    for i in range(n):
        z = component[i]
        w = weight[i]
        if w == 0.0:
            continue
        log_scale = 0.0
        for j in range(d):
            x = codes[i, j]
            for b in range(1, widths[j]):
                below[j, b] = 1.0 if x == 0 or x == b else 0.0
        for step in range(d - 1, -1, -1):
            j = order[z, step]
            p = parent[z, j]
            if p >= 0:
                log_scale += _multiply_message(below, probability, start[z, j], widths[j], widths[p], p, j)
        for step in range(d):
            j = order[z, step]
            p = parent[z, j]
            rows = 1 if p < 0 else widths[p]
            first = 0 if p < 0 else 1
            belief[j, : widths[j]] = 0.0
            for a in range(first, rows):
                share = 1.0 if p < 0 else belief[p, a]
                if share == 0.0:
                    continue
                line = start[z, j] + a * widths[j]
                total = 0.0
                for b in range(1, widths[j]):
                    total += probability[line + b] * below[j, b]
                if p < 0:
                    log_scale += np.log(total)
                if total == 0.0:
                    continue
                for b in range(1, widths[j]):
                    joint = share * probability[line + b] * below[j, b] / total
                    belief[j, b] += joint
                    cells[edge_start[z, j] + a * widths[j] + b] += w * joint
        log_likelihood += w * log_scale
    return log_likelihood


@kernel(is_part=True)
def _multiply_message(below, probability, start, width, parent_width, p, j):
    """Multiply the subtree likelihood of the parent by the message of column j; return the log of the scale removed."""
    peak = 0.0
    for a in range(1, parent_width):
        if below[p, a] > 0.0:
            message = 0.0
            for b in range(1, width):
                if below[j, b] > 0.0:
                    message += probability[start + a * width + b] * below[j, b]
            below[p, a] *= message
            peak = max(peak, below[p, a])
    if peak == 0.0:
        return -np.inf
    for a in range(1, parent_width):
        below[p, a] /= peak
    return np.log(peak)
