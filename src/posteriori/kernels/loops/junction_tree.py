"""Message passing in a junction tree (Koller & Friedman 2009, chapter 10), for many rows of evidence at a time.

Every node has a table without the cells that cannot occur. The table of a *clique* is p(clique | separator above it),
in the order of the cells of the separator. Its map gives, for each cell, the cell of the separator that it extends. The
map of a *separator* gives, for each cell of the node above it, the cell of the separator into which it is summed. Node
0 is the empty separator with one cell.

LANES rows are processed together: a message holds LANES numbers per cell, side by side. Tables and maps are then read
once for all of these rows, and the arithmetic uses vector instructions.
"""

from typing import NamedTuple

import numpy as np

from posteriori.kernels.machine.compiling import kernel
from posteriori.kernels.machine.lanes import LANES, add_row, divide_row, multiply_row, raise_row, scale_row

_TILE = 64  # cells; their lanes then stay in the first-level cache
_FADING = 1e-9  # messages with a smaller maximum are rescaled; a product of thirty such does not underflow


class Layout(NamedTuple):
    """A compiled tree as arrays, nodes parents-first."""

    is_clique: np.ndarray  # (N,) bool
    parent: np.ndarray  # (N,)
    size: np.ndarray  # (N,) cells
    lane: np.ndarray  # (N,) of a separator: its first cell in a buffer of all separators' cells
    message: (
        np.ndarray
    )  # (N,) of a clique: its first cell in a buffer of messages, each as large as the separator above
    cell: np.ndarray  # (N,) of a clique: its first cell in the table
    map_at: np.ndarray  # (N,) the node's first entry in the maps
    child_at: np.ndarray  # (N + 1,) where the children of a node begin in the list of children
    children: np.ndarray  # (N − 1,)
    home: np.ndarray  # (V,) the separator that holds exactly this variable
    state: np.ndarray  # (V + 1,) where its states begin in the concatenated states of all variables
    table: np.ndarray  # (cells of all cliques,)
    maps: np.ndarray  # int32: the index maps of all nodes


class Findings(NamedTuple):
    """The findings of each row."""

    codes: np.ndarray  # int64 (n, V): −1 where unknown
    soft: np.ndarray  # (n, S): likelihoods of the states of some variables, side by side (soft evidence)
    soft_at: np.ndarray  # int64 (V,): where the likelihoods of a variable begin; −1 if it has none


class Buffers(NamedTuple):
    """The work space of one thread."""

    below: np.ndarray  # (cells of all separators, LANES): p(evidence below | cell), scaled
    belief: np.ndarray  # the same shape: p(cell | evidence)
    message: np.ndarray  # (cells above all cliques, LANES): the message of a clique to the separator above it
    tile: np.ndarray  # (_TILE, LANES)
    active: np.ndarray  # bool (N,): whether there is evidence below in any lane
    log_scale: np.ndarray  # (LANES,)


@kernel
def propagate(layout, evidence, requested, marginals, log_evidence, weight, counts):
    """Write log p(evidence) of every row and the marginals of the requested variables; add up expected counts.

    Parameters
    ----------
    layout : Layout
    evidence : Findings
    requested : ndarray of bool (N,)
        The nodes whose beliefs are computed: a subtree that contains the root, or none.
    marginals : ndarray of float64 (n, total number of states)
    log_evidence : ndarray of float64 (n,)
    weight : ndarray of float64 (n,) or (0,)
    counts : ndarray of float64 (cells of all cliques,) or (0,)
        Gains Σ weight · p(cell | evidence) of the requested cliques, over the rows with p(evidence) > 0.
    """
    buffers = _allocate(layout, requested[0])
    n = len(evidence.codes)
    lane_weight = np.zeros(LANES)
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        _enter_evidence(layout, evidence, start, stop, buffers)
        _collect(layout, buffers, False)
        for row in range(start, stop):
            log_evidence[row] = np.log(buffers.below[0, row - start]) + buffers.log_scale[row - start]
        if not requested[0]:
            continue
        if len(counts):
            lane_weight[:] = 0.0
            for row in range(start, stop):
                if log_evidence[row] > -np.inf:
                    lane_weight[row - start] = weight[row]
        _distribute(layout, buffers, requested, lane_weight, counts)
        if len(marginals):
            _write_marginals(layout, buffers.belief, requested, log_evidence[start:stop], marginals[start:stop])


@kernel
def maximise(layout, evidence, codes, log_probability):
    """Write the most probable configuration of every row and its log probability; −1 if the evidence is impossible.

    Among equally probable cells of a clique, the first is chosen.
    """
    buffers = _allocate(layout, False)
    n = len(evidence.codes)
    chosen = np.zeros(len(layout.parent), np.int64)
    for start in range(0, n, LANES):
        stop = min(start + LANES, n)
        _enter_evidence(layout, evidence, start, stop, buffers)
        _collect(layout, buffers, True)
        for row in range(start, stop):
            lane = row - start
            log_probability[row] = np.log(buffers.below[0, lane]) + buffers.log_scale[lane]
            codes[row] = -1
            if not log_probability[row] > -np.inf:
                continue
            for node in range(1, len(layout.parent)):
                if layout.is_clique[node]:
                    first, last = _extensions(layout, node, chosen[layout.parent[node]])
                    most = -1.0
                    for k in range(first, last):
                        probability = _clique_cell(layout, node, k, lane, buffers)
                        if probability > most:
                            most = probability
                            chosen[node] = k
                else:
                    chosen[node] = layout.maps[layout.map_at[node] + chosen[layout.parent[node]]]
            for v in range(len(layout.home)):
                codes[row, v] = chosen[layout.home[v]]


@kernel
def accumulate(layout, evidence, cumulative):
    """Write the cumulative sums of p(cell of clique, evidence | cell of separator) for one row; return log p(evidence).

    Parameters
    ----------
    cumulative : ndarray of float64 (cells of all cliques,)
        The sums restart from 0 at each cell of the separator above.
    """
    buffers = _allocate(layout, False)
    _enter_evidence(layout, evidence, 0, 1, buffers)
    _collect(layout, buffers, False)
    for node in range(len(layout.parent)):
        if layout.is_clique[node]:
            total, last = 0.0, -1
            for k in range(layout.size[node]):
                above = layout.maps[layout.map_at[node] + k]
                total = (total if above == last else 0.0) + _clique_cell(layout, node, k, 0, buffers)
                last = above
                cumulative[layout.cell[node] + k] = total
    return np.log(buffers.below[0, 0]) + buffers.log_scale[0]


@kernel
def draw(layout, cumulative, uniform, codes):
    """Draw configurations from the root down: a cell of each clique given the cell of the separator above.

    Parameters
    ----------
    uniform : ndarray of float64 (n, number of cliques)
        In [0, 1).
    codes : ndarray of int64 (n, V)
        Written.
    """
    chosen = np.zeros(len(layout.parent), np.int64)
    for i in range(len(uniform)):
        n_drawn = 0
        for node in range(1, len(layout.parent)):
            if not layout.is_clique[node]:
                chosen[node] = layout.maps[layout.map_at[node] + chosen[layout.parent[node]]]
                continue
            first, last = _extensions(layout, node, chosen[layout.parent[node]])
            sums = cumulative[layout.cell[node] + first : layout.cell[node] + last]
            # uniform < 1 keeps the search below the last sum, so that no cell of probability 0 is drawn.
            chosen[node] = first + np.searchsorted(sums, uniform[i, n_drawn] * sums[-1], side="right")
            n_drawn += 1
        for v in range(len(layout.home)):
            codes[i, v] = chosen[layout.home[v]]


@kernel(is_part=True)
def _allocate(layout, beliefs):
    n_cells, n_messages = 0, 0
    for node in range(len(layout.parent)):
        if layout.is_clique[node]:
            n_messages += layout.size[layout.parent[node]]
        else:
            n_cells += layout.size[node]
    return Buffers(
        np.empty((n_cells, LANES)),
        np.empty((n_cells if beliefs else 0, LANES)),
        np.empty((n_messages, LANES)),
        np.empty((_TILE, LANES)),
        np.empty(len(layout.parent), np.bool_),
        np.empty(LANES),
    )


@kernel(is_part=True)
def _enter_evidence(layout, evidence, start, stop, buffers):
    """Write the likelihood of each state of every variable that is observed in some row; 1 at the root."""
    below, active = buffers.below, buffers.active
    active[:] = False
    active[0] = True
    below[0] = 1.0
    buffers.log_scale[:] = 0.0
    for v in range(len(layout.home)):
        soft = evidence.soft_at[v]
        known = soft >= 0
        for row in range(start, stop):
            known = known or evidence.codes[row, v] >= 0
        if not known:
            continue
        node = layout.home[v]
        active[node] = True
        for k in range(layout.size[node]):
            cell = layout.lane[node] + k
            below[cell] = 1.0
            for row in range(start, stop):
                code = evidence.codes[row, v]
                if code >= 0 and code != k:
                    below[cell, row - start] = 0.0
                elif soft >= 0:
                    below[cell, row - start] = evidence.soft[row, soft + k]


@kernel(is_part=True)
def _collect(layout, buffers, most):
    """Pass messages from the leaves to the root: p(evidence below | separator), or its maximum over configurations."""
    below, message, active = buffers.below, buffers.message, buffers.active
    for node in range(len(layout.parent) - 1, -1, -1):
        first, last = layout.child_at[node], layout.child_at[node + 1]
        if layout.is_clique[node]:
            active[node] = most
            for child in layout.children[first:last]:
                active[node] = active[node] or active[child]
            if active[node]:
                _send_up(layout, node, buffers, most)
            continue
        lane, size = layout.lane[node], layout.size[node]
        for child in layout.children[first:last]:
            if not active[child]:
                continue
            if not active[node]:
                active[node] = True
                below[lane : lane + size] = 1.0
            if layout.is_clique[child]:
                at = layout.message[child]
                for k in range(size):
                    multiply_row(below, lane + k, message, at + k)
            else:
                at, own = layout.map_at[child], layout.lane[child]
                for k in range(size):
                    multiply_row(below, lane + k, below, own + layout.maps[at + k])
            _scale(below, lane, size, buffers)


@kernel(is_part=True)
def _send_up(layout, node, buffers, most):
    """Write the message of a clique: its table times the messages from below, summed, or maximised if `most`."""
    message, tile = buffers.message, buffers.tile
    size, cell, at = layout.size[node], layout.cell[node], layout.message[node]
    above = layout.map_at[node]
    message[at : at + layout.size[layout.parent[node]]] = 0.0
    for first in range(0, size, _TILE):
        n_cells = min(_TILE, size - first)
        for k in range(n_cells):
            tile[k] = layout.table[cell + first + k]
        _multiply_children(layout, node, first, n_cells, buffers)
        if most:
            for k in range(n_cells):
                raise_row(message, at + layout.maps[above + first + k], tile, k)
        else:
            for k in range(n_cells):
                add_row(message, at + layout.maps[above + first + k], tile, k)


@kernel(is_part=True)
def _multiply_children(layout, node, first, n_cells, buffers):
    """Multiply the cells of a clique in the tile by the messages of its separators."""
    below, tile = buffers.below, buffers.tile
    for child in layout.children[layout.child_at[node] : layout.child_at[node + 1]]:
        if buffers.active[child]:
            at, lane = layout.map_at[child] + first, layout.lane[child]
            for k in range(n_cells):
                multiply_row(tile, k, below, lane + layout.maps[at + k])


@kernel(is_part=True)
def _scale(below, lane, size, buffers):
    """Divide a small message by its maximum, per lane, and add the logarithm to the scale, to avoid underflow."""
    largest = buffers.tile
    largest[0] = 0.0
    for k in range(lane, lane + size):
        raise_row(largest, 0, below, k)
    for r in range(LANES):
        if 0.0 < largest[0, r] < _FADING:
            for k in range(lane, lane + size):
                below[k, r] /= largest[0, r]
            buffers.log_scale[r] += np.log(largest[0, r])


@kernel(is_part=True)
def _distribute(layout, buffers, requested, lane_weight, counts):
    """Pass beliefs p(cell | evidence) from the root to the leaves, for the requested nodes."""
    belief = buffers.belief
    for node in range(len(layout.parent)):
        if requested[node] and not layout.is_clique[node]:
            belief[layout.lane[node] : layout.lane[node] + layout.size[node]] = 0.0
    belief[0] = 1.0
    for node in range(len(layout.parent)):
        if not requested[node]:
            continue
        if layout.is_clique[node]:
            _send_down(layout, node, buffers, requested, lane_weight, counts)
            continue
        for child in layout.children[layout.child_at[node] : layout.child_at[node + 1]]:
            if requested[child] and not layout.is_clique[child]:
                at, lane, own = layout.map_at[child], layout.lane[child], layout.lane[node]
                for k in range(layout.size[node]):
                    add_row(belief, lane + layout.maps[at + k], belief, own + k)


@kernel(is_part=True)
def _send_down(layout, node, buffers, requested, lane_weight, counts):
    """Add the belief p(cell | s)·below·belief(s) / message(s) of the cells of a clique to its separators.

    The division takes the clique's own message out of the belief of the separator; 0/0 counts as 0.
    """
    belief, message, tile = buffers.belief, buffers.message, buffers.tile
    size, cell, above = layout.size[node], layout.cell[node], layout.map_at[node]
    at, lane, source = layout.message[node], layout.lane[layout.parent[node]], belief
    if buffers.active[node]:
        for s in range(layout.size[layout.parent[node]]):
            divide_row(message, at + s, belief, lane + s)
        lane, source = at, message
    for first in range(0, size, _TILE):
        n_cells = min(_TILE, size - first)
        for k in range(n_cells):
            scale_row(tile, k, layout.table[cell + first + k], source, lane + layout.maps[above + first + k])
        _multiply_children(layout, node, first, n_cells, buffers)
        for child in layout.children[layout.child_at[node] : layout.child_at[node + 1]]:
            if requested[child]:
                part, into = layout.map_at[child] + first, layout.lane[child]
                for k in range(n_cells):
                    add_row(belief, into + layout.maps[part + k], tile, k)
        if len(counts):
            for k in range(n_cells):
                total = 0.0
                for r in range(LANES):
                    total += tile[k, r] * lane_weight[r]
                counts[cell + first + k] += total


@kernel(is_part=True)
def _clique_cell(layout, node, k, lane, buffers):
    """Return p(a clique's cell | separator's cell) times what is below it, of one row."""
    probability = layout.table[layout.cell[node] + k]
    for child in layout.children[layout.child_at[node] : layout.child_at[node + 1]]:
        if buffers.active[child]:
            probability *= buffers.below[layout.lane[child] + layout.maps[layout.map_at[child] + k], lane]
    return probability


@kernel(is_part=True)
def _extensions(layout, node, above):
    """Return the first of a clique's cells that extend a cell of the separator above it, and the one after the last."""
    index = layout.maps[layout.map_at[node] : layout.map_at[node] + layout.size[node]]
    return np.searchsorted(index, above, side="left"), np.searchsorted(index, above, side="right")


@kernel(is_part=True)
def _write_marginals(layout, belief, requested, log_evidence, marginals):
    """Write the beliefs about the variables requested, each summing to 1; NaN in rows that are impossible."""
    for v in range(len(layout.home)):
        node = layout.home[v]
        if not requested[node]:
            continue
        lane, state = layout.lane[node], layout.state[v]
        for r in range(len(marginals)):
            total = 0.0
            for k in range(layout.size[node]):
                total += belief[lane + k, r]
            scale = 1.0 / total if log_evidence[r] > -np.inf else np.nan
            for k in range(layout.size[node]):
                marginals[r, state + k] = belief[lane + k, r] * scale
