"""Log-densities under trees of categories and numbers, with missing cells summed and integrated out.

Messages run from the leaves to the roots (Pearl 1988). The messages to a missing category add up to one log-likelihood
per value. The messages to a missing number x add up to a Gaussian potential in canonical form,
log λ(x) = g + h·x − ½·k·x² (Lauritzen 1992). A linear Gaussian edge maps this form to itself.
"""

import numpy as np

from posteriori.kernels.compiling import kernel

_LOG_TWO_PI = np.log(2.0 * np.pi)


@kernel(few_rows=True)
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


@kernel
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
