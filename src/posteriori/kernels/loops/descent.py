"""Descent of rows in trees: the leaf that each row of a tile reaches.

Rows are divided at a node into those that go left and those that go right, until few are left. So the nodes of a tree
are read in the order of memory, and once per tile. Then these few take a step each in turn, so that the processor reads
the cells of several rows at once. No step depends on a branch that the processor has to guess.

Indices are unsigned: signed ones are compared with 0 first.
"""

from typing import Any, NamedTuple

import numpy as np

from posteriori.kernels.machine.compiling import kernel

LEFT, RIGHT, BOTH = 0, 1, 2  # sides
COLUMN = (1 << 31) - 1  # the bits of the number of a column
NO_LEAF = -(1 << 30)  # what a row has reached if it is less: the row went both ways somewhere
MOST_ROWS = 1 << 14  # that go down a tree together; more would not stay in the cache
# Levels below the root of a tree. Growth stops there, and a file with a deeper tree is refused: Numba checks no bounds,
# and buffers hold a path (DEEPEST + 1 nodes) or the nodes that wait in a descent to both sides (one more per level).
# Only a tree that splits off a few rows at a time comes so deep.
DEEPEST = 60
_FEW = 32  # rows that are not divided any more


class Steps(NamedTuple):
    """The inner nodes of trees, as rows read them on their way down.

    Attributes
    ----------
    nodes : (m, 4) int32
        Where its sides start; the inner node to the left, or the complement of the number of a leaf; the same to the
        right; and the column with the bit of the sign, which is less than NO_LEAF.
    sides : (·,) uint8
        The side of a code at the start of the node + code: 0 left, 1 right, 2 both. Code 0 reads the first one.
    start : (T,) int32
        The first inner node of each tree, or the complement of the number of its only leaf.
    """

    nodes: Any
    sides: Any
    start: Any


class DescentScratch(NamedTuple):
    """Arrays for the descent of a tile: its rows in two orders, nodes that wait with theirs, few rows, and leaves."""

    rows: Any
    waiting: Any
    active: Any
    at: Any
    reached: Any


@kernel(is_part=True)
def _divide(codes, offset, column, sides, start, rows, divided, first, last):
    """Write the rows that go left to the start of `divided`, those that go right to its end; return where these stop.

    A row that goes both ways is in neither.
    """
    left, right = np.uint64(first), np.uint64(last - 1)
    for i in range(first, last):
        row = rows[np.uint64(i)]
        code = np.uint64(codes[np.uint64(offset) + np.uint64(row), column])
        side = sides[start + code if code > np.uint64(0) else np.uint64(0)]
        divided[left] = row  # one of the two places is written again by the next row
        divided[right] = row
        left += np.uint64(side == LEFT)
        right -= np.uint64(side == RIGHT)
    return np.int64(left), np.int64(right + np.uint64(1))


@kernel(is_part=True)
def _step_by_step(codes, offset, rows, first, last, node, steps, active, at, reached):
    """Send few rows from a node to their leaves, a step of each in turn."""
    nodes, sides, n_active = steps.nodes, steps.sides, last - first
    for k in range(n_active):
        active[np.uint64(k)] = rows[np.uint64(first + k)]
        at[np.uint64(k)] = node
    while n_active > 0:
        kept = np.uint64(0)
        for k in range(n_active):
            row, v = active[np.uint64(k)], np.uint64(at[np.uint64(k)])
            code = np.uint64(codes[np.uint64(offset) + np.uint64(row), np.uint64(nodes[v, np.uint64(3)] & COLUMN)])
            start = np.uint64(nodes[v, np.uint64(0)])
            side = np.uint64(sides[start + code if code > np.uint64(0) else np.uint64(0)])
            next_node = nodes[v, side + np.uint64(1)]
            reached[np.uint64(row)] = next_node
            active[kept] = row
            at[kept] = next_node
            kept += np.uint64(next_node >= 0)
        n_active = np.int64(kept)


@kernel(is_part=True)
def descend(codes, offset, n_rows, steps, tree, scratch):
    """Write to scratch.reached the leaf that each row from `offset` on reaches in a tree: the complement of its number.

    It is less than `NO_LEAF` for a row that goes both ways at a node, because it lacks the cell.
    """
    rows, waiting, reached = scratch.rows, scratch.waiting, scratch.reached
    for i in range(n_rows):
        rows[0, i] = i
        reached[i] = NO_LEAF - 1
    waiting[0, 0], waiting[0, 1], waiting[0, 2], waiting[0, 3] = steps.start[tree], 0, n_rows, 0
    n_waiting = 1
    while n_waiting > 0:
        n_waiting -= 1
        node, first = waiting[n_waiting, 0], waiting[n_waiting, 1]
        last, half = waiting[n_waiting, 2], waiting[n_waiting, 3]
        if node < 0:
            for i in range(first, last):
                reached[np.uint64(rows[half, i])] = node
            continue
        if last - first <= _FEW:
            _step_by_step(codes, offset, rows[half], first, last, node, steps, scratch.active, scratch.at, reached)
            continue
        start, column = np.uint64(steps.nodes[node, 0]), np.uint64(steps.nodes[node, 3] & COLUMN)
        left, right = _divide(codes, offset, column, steps.sides, start, rows[half], rows[1 - half], first, last)
        for side in range(2):
            waiting[n_waiting, 0], waiting[n_waiting, 3] = steps.nodes[node, 1 + side], 1 - half
            waiting[n_waiting, 1] = first if side == 0 else right
            waiting[n_waiting, 2] = left if side == 0 else last
            n_waiting += 1


@kernel(is_part=True)
def make_scratch(n_rows):
    """Return arrays for `descend`, for tiles of so many rows."""
    n = min(n_rows, MOST_ROWS)
    return DescentScratch(
        np.empty((2, n), np.int32),
        np.empty((DEEPEST + 2, 4), np.int64),
        np.empty(_FEW, np.int32),
        np.empty(_FEW, np.int32),
        np.empty(n, np.int32),
    )
