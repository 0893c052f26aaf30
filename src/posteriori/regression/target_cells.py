"""The cells into which the range of a target of numbers is cut."""

from __future__ import annotations

import numpy as np

from posteriori.model.predictive import NumberCells
from posteriori.support.typing import Array

_CELLS = 160  # of about equal weight
_MOST_WIDE = 80  # further cells, into which wide ones are cut
_WIDE = 3.0  # times as wide as a typical neighbour
_TAIL_CELLS, _GROWTH = 10, 1.4
_NEAR, _COARSE = 1e-6, 1e-3  # of a step: what counts as a multiple, and rounding that hides it
_ENOUGH = 20  # values, of which the greatest common divisor is no chance
_REPEATED = 3  # rows that share a value of a cell of its own
_LATTICE = 1e7  # steps in the range, beyond which numbers count as continuous
_DECIMALS = 6
_FREQUENT = 0.02  # share of the rows that a value of excess has at least
_EXCESS = 3.0  # times the mean share of the cells beside it


def step_of(values: Array, most_steps: float = _LATTICE) -> float:
    """Return the greatest step of which all values are multiples, a whole number of times a power of ten; 0 if none is.

    Of few values, or a single one, several times a power of ten might divide all by chance, and only that power counts.
    Steps of which the range holds more than the most do not count.
    """
    span = float(values.max() - values.min())
    for decimals in range(_DECIMALS + 1):
        step = 10.0**-decimals
        if span > most_steps * step:
            return 0.0
        multiples = values / step
        whole = np.round(multiples)
        rounding = 8.0 * np.finfo(np.float64).eps * float(np.abs(multiples).max())
        if rounding > _COARSE:
            return 0.0
        if (span >= step or span == 0.0) and np.abs(multiples - whole).max() <= max(_NEAR, rounding):
            is_chance = len(values) < _ENOUGH or span == 0.0
            divisor = 1 if is_chance else int(np.gcd.reduce(whole.astype(np.int64)))
            return step * max(divisor, 1)
    return 0.0


def cells_of(values: Array, weight: Array) -> NumberCells:
    """Return cells of about equal weight, of one point where a value is frequent, with a tail at both ends.

    Wide cells are cut, so that their density is uniform. Numbers that are never negative keep that.
    """
    step = step_of(values)
    distinct, place = np.unique(np.round(values / step) * step if step else values, return_inverse=True)
    share = np.bincount(place, weight) / weight.sum()
    repeated = np.maximum(np.bincount(place), np.bincount(place, weight)) >= _REPEATED
    low, high, single = _grouped(distinct, share, repeated)
    low, high = _touching(low, high, single, step)
    low, high = _with_wide_cut(low, high, step)
    low, high = _with_tails(low, high, step, bool(values.min() >= 0))
    if step:
        low, high = np.round(low / step) * step, np.round(high / step) * step
    return NumberCells(low, high, step)


def _grouped(distinct: Array, share: Array, repeated: Array) -> tuple[Array, Array, Array]:
    """Return the least and the greatest value of each cell, and whether it is one frequent value."""
    parts: list[tuple[int, int, bool]] = []  # first and last value, whether it is frequent
    held, start = 0.0, 0
    for i, (part, is_repeated) in enumerate(zip(share.tolist(), repeated.tolist(), strict=True)):
        if part >= 1.0 / _CELLS and is_repeated:
            if start < i:
                parts.append((start, i - 1, False))
            parts.append((i, i, True))
            held, start = 0.0, i + 1
            continue
        held += part
        if held >= 1.0 / _CELLS:
            parts.append((start, i, False))
            held, start = 0.0, i + 1
    if start < len(distinct):
        parts.append((start, len(distinct) - 1, False))
    first, last, single = (np.array(one) for one in zip(*parts, strict=True))
    return distinct[first], distinct[last], single


def _touching(low: Array, high: Array, single: Array, step: float) -> tuple[Array, Array]:
    """Return cells without gaps: two meet midway, and the room beside a frequent value is a cell of its own."""
    start, end, half = low - step / 2.0, high + step / 2.0, step / 2.0
    meet = (end[:-1] + start[1:]) / 2.0
    if step:
        meet = (np.floor(meet / step) + 0.5) * step
    meet = np.where(single[1:], start[1:], meet)
    found: list[tuple[float, float]] = []
    reached = float(start[0])
    for k, is_single in enumerate(single.tolist()):
        if is_single and start[k] - reached > half:
            found.append((reached, float(start[k])))
        first = float(start[k]) if is_single else reached
        reached = float(end[k]) if is_single or k == len(single) - 1 else float(meet[k])
        found.append((first, reached))
    cells = np.array(found)
    return cells[:, 0] + half, cells[:, 1] - half


def _with_wide_cut(low: Array, high: Array, step: float) -> tuple[Array, Array]:
    """Return the cells, of which those much wider than the ones beside them are cut into equal parts."""
    width = high - low
    wide = np.flatnonzero(width > 0)
    if len(wide) < 3:
        return low, high
    usual = np.full(len(low), np.inf)
    for k in wide.tolist():
        near = wide[(wide >= k - 4) & (wide <= k + 4) & (wide != k)]
        usual[k] = np.median(width[near]) if len(near) else np.inf
    parts = np.ones(len(low), np.int64)
    parts[wide] = np.clip(np.ceil(width[wide] / (_WIDE * usual[wide])), 1, 8)
    if step:
        parts = np.minimum(parts, np.maximum(np.round(width / step).astype(np.int64) // 2, 1))
    while parts.sum() - len(parts) > _MOST_WIDE:
        parts = np.maximum((parts + 1) // 2, 1)
    lows, highs = [], []
    for a, b, n in zip(low.tolist(), high.tolist(), parts.tolist(), strict=True):
        edges = np.linspace(a, b + step, n + 1)
        if step:
            edges = np.round(edges / step) * step
        lows.append(edges[:-1])
        highs.append(edges[1:] - step)
    return np.concatenate(lows), np.concatenate(highs)


def _with_tails(low: Array, high: Array, step: float, positive: bool) -> tuple[Array, Array]:
    """Return the cells with growing ones beyond both ends; none below 0 of numbers that are never negative."""
    positive_width = (high - low + step)[high - low + step > 0]
    usual = float(np.median(positive_width)) if len(positive_width) else max(abs(float(low[0])), 1.0) * 0.1

    def tail(at_end: Array) -> Array:
        near = at_end[at_end > 0]
        width = max(float(np.median(near)) if len(near) else usual, step)
        sizes = width * _GROWTH ** np.arange(_TAIL_CELLS)
        return (
            np.maximum(np.round(np.cumsum(sizes) / step) * step, step * np.arange(1, _TAIL_CELLS + 1))
            if step
            else np.cumsum(sizes)
        )

    widths = high - low + step
    above = high[-1] + step + np.concatenate([[0.0], tail(widths[-3:])])
    below = low[0] - tail(widths[:3])[::-1]
    below = np.append(below, low[0])
    if positive:
        below = np.unique(np.maximum(below, 0.0))
    lows = np.concatenate([below[:-1], low, above[:-1]])
    highs = np.concatenate([below[1:] - step, high, above[1:] - step])
    return lows, highs
