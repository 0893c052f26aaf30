"""Functions of arrays of any namespace of the array API standard, and those that the standard lacks.

NumPy runs a function of arrays, and ndonnx records it as a graph of ONNX. A namespace may have some in a form of
its own: that of SQL has (`posteriori.sql.expressions`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from posteriori.support.arrays import Arrays
from posteriori.support.factors import Cholesky


def log_sum_exp(x: Arrays, axis: int = -1) -> Arrays:
    """Return log Σ exp along an axis, −∞ where all terms are −∞."""
    xp = x.__array_namespace__()
    if hasattr(xp, "log_sum_exp"):
        return xp.log_sum_exp(x, axis)
    peak = xp.max(x, axis=axis, keepdims=True)
    shift = xp.where(peak == -np.inf, 0.0, peak)
    with np.errstate(divide="ignore"):
        total = xp.log(xp.sum(xp.exp(x - shift), axis=axis, keepdims=True))
    return xp.squeeze(total + shift, axis=axis)


def log_normalised(x: Arrays) -> Arrays:
    """Return x − log Σ exp x along the last axis, (n, C), NaN where all terms are −∞."""
    xp = x.__array_namespace__()
    if hasattr(xp, "log_normalised"):
        return xp.log_normalised(x)
    with np.errstate(invalid="ignore"):
        shifted = x - xp.max(x, axis=1, keepdims=True)
    return shifted - log_sum_exp(shifted)[:, None]


def needed_where(mask: Arrays, x: Arrays) -> Arrays:
    """Return an array of which only the entries in a mask are needed: the others may be anything."""
    xp = x.__array_namespace__()
    return xp.needed_where(mask, x) if hasattr(xp, "needed_where") else x


def as_code(x: Arrays, most: int) -> Arrays:
    """Return whole numbers up to a greatest one as codes."""
    xp = x.__array_namespace__()
    return xp.as_code(x, most) if hasattr(xp, "as_code") else xp.astype(x, xp.int64)


def at_code(of_codes: Arrays, code: Arrays) -> Arrays:
    """Return the entries (n, Z) at codes (n,) from 1 on of an array (n, Z, A)."""
    xp = code.__array_namespace__()
    if hasattr(xp, "at_code"):
        return xp.at_code(of_codes, code)
    is_code = code[:, None, None] == np.arange(1, of_codes.shape[2] + 1)
    return xp.sum(xp.where(is_code, of_codes, 0.0), axis=2)


def where_rows(mask: Arrays, of_rows: Callable[[Arrays], Arrays], otherwise: Arrays) -> Arrays:
    """Return an array (n, …) with other entries in the rows of a mask: a function of the positions of these rows."""
    xp = mask.__array_namespace__()
    if xp is np and not mask.any():
        return otherwise
    values = of_rows(xp.nonzero(mask)[0])
    if hasattr(xp, "where_rows"):
        return xp.where_rows(mask, values, otherwise)
    none = xp.sum(xp.zeros_like(otherwise), axis=0, keepdims=True)  # no row may be chosen
    place = xp.where(mask, xp.cumulative_sum(xp.astype(mask, xp.int64), axis=0), 0)
    chosen = xp.take(xp.concat([none, values], axis=0), place, axis=0)
    return xp.where(xp.reshape(mask, (-1, *[1] * (len(otherwise.shape) - 1))), chosen, otherwise)


def _operators() -> Any:
    """Return the operators of ONNX."""
    import spox.opset.ai.onnx.v21 as onnx

    return onnx


def each_pattern(of_rows: Callable[[Arrays, Arrays], Arrays], x: Arrays, mask: Arrays, otherwise: Arrays) -> Arrays:
    """Return the results (n, m) of a function of the rows (r, d) of x with one pattern (p,) of a mask (n, p).

    The pattern is its second argument. Where no entry is true, its results are those in `otherwise`, which may be
    overwritten.
    """
    if isinstance(x, np.ndarray):
        for rows in _of_patterns(mask):
            otherwise[rows] = of_rows(x[rows], mask[rows[0]])
        return otherwise
    import ndonnx as ndx

    onnx = _operators()
    x, mask = (
        ndx.concat([ndx.sum(ndx.zeros_like(of), axis=0, keepdims=True), of], axis=0)
        for of in (x, ndx.astype(mask, ndx.int8))
    )
    patterns, _, which, _ = onnx.unique(mask.unwrap_spox(), axis=0)
    count = onnx.gather(onnx.shape(patterns), onnx.const(0))

    def step(turn: Any, more: Any, blocks: Any) -> list[Any]:
        turn = onnx.squeeze(turn)
        rows = ndx.nonzero(ndx.asarray(onnx.equal(which, turn)))[0]
        block = of_rows(ndx.take(x, rows, axis=0), ndx.asarray(onnx.gather(patterns, turn, axis=0)) > 0)
        return [more, onnx.sequence_insert(blocks, block.unwrap_spox())]

    none = ndx.take(otherwise, ndx.nonzero(ndx.asarray(which) < 0)[0], axis=0)
    start = onnx.sequence_construct([none.unwrap_spox()])
    (blocks,) = onnx.loop(count, onnx.const([True]), [start], body=step)
    place = ndx.argsort(ndx.argsort(ndx.asarray(which)))  # of each row in the blocks
    return ndx.take(ndx.asarray(onnx.concat_from_sequence(blocks, axis=0)), place[1:], axis=0)


def _of_patterns(mask: Arrays) -> Iterator[Arrays]:
    """Yield the rows of each pattern with an entry."""
    rows = np.flatnonzero(mask.any(axis=1))
    if not len(rows):
        return
    packed = np.packbits(mask[rows], axis=1)  # one key per row is sorted faster than its entries
    _, which = np.unique(packed.view(f"V{packed.shape[1]}").ravel(), return_inverse=True)
    yield from np.split(rows[np.argsort(which, kind="stable")], np.cumsum(np.bincount(which))[:-1])


def solver(matrix: Arrays) -> Callable[[Arrays], Arrays]:
    """Return the function R ↦ S⁻¹ R, (k, m), of a positive definite matrix, (k, k), which may be overwritten."""
    if isinstance(matrix, np.ndarray):
        return Cholesky.of(matrix).solve
    import ndonnx as ndx

    onnx = _operators()
    count = onnx.gather(onnx.shape(matrix.unwrap_spox()), onnx.const(0))
    places = onnx.range(onnx.const(0), count, onnx.const(1))

    def step(turn: Any, more: Any, left: Any) -> list[Any]:  # Gauss and Jordan, without pivots
        turn = onnx.squeeze(turn)
        row = onnx.gather(left, turn, axis=0)
        row = onnx.div(row, onnx.gather(row, turn, axis=0))
        column = onnx.unsqueeze(onnx.gather(left, turn, axis=1), onnx.const([1]))
        is_row = onnx.unsqueeze(onnx.equal(places, turn), onnx.const([1]))
        return [more, onnx.where(is_row, row, onnx.sub(left, onnx.mul(column, row)))]

    def solve(right: Arrays) -> Arrays:
        both = ndx.concat([matrix, right], axis=1).unwrap_spox()
        (left,) = onnx.loop(count, onnx.const([True]), [both], body=step)
        first, last = onnx.reshape(count, onnx.const([1])), onnx.const([np.iinfo(np.int64).max])
        return ndx.asarray(onnx.slice(left, first, last, onnx.const([1])))

    return solve


def segment_sums(values: Arrays, segment: Arrays, like: Arrays) -> Arrays:
    """Return the sums of lines, (L, Z), by the number of their segment, (L,), in the shape of `like`, (S, Z)."""
    return _scattered(values, segment, np.zeros_like, "add", like)


def segment_log_sums(values: Arrays, segment: Arrays, like: Arrays) -> Arrays:
    """Return log Σ exp of lines, (L, Z), by the number of their segment, (L,), in the shape of `like`, (S, Z)."""
    xp = values.__array_namespace__()
    peak = _scattered(values, segment, lambda x: np.full_like(x, -np.inf), "max", like)
    shift = xp.where(peak == -np.inf, 0.0, peak)
    with np.errstate(divide="ignore"):
        return shift + xp.log(segment_sums(xp.exp(values - xp.take(shift, segment, axis=0)), segment, like))


def _scattered(values: Arrays, segment: Arrays, start: Any, how: str, like: Arrays) -> Arrays:
    if isinstance(values, np.ndarray):
        result = start(like)
        (np.add if how == "add" else np.maximum).at(result, segment, values)
        return result
    import ndonnx as ndx

    first = ndx.full_like(like, 0.0 if how == "add" else -np.inf)
    place = segment[:, None] + ndx.astype(ndx.zeros_like(values), ndx.int64)
    # onnxruntime adds up equal places of ScatterND on several threads, and loses some; not those of ScatterElements.
    of_places = (x.unwrap_spox() for x in (first, place, values))
    return ndx.asarray(_operators().scatter_elements(*of_places, axis=0, reduction=how))
