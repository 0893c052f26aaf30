"""Rows of arrays (·, LANES) as machine vectors: what Numba compiles for the functions of `lanes.py`.

LLVM vectorises an inner loop only if it knows that the arrays do not overlap, and Numba cannot pass this on. This code
loads whole rows, computes, and stores a row.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import lower_builtin, type_callable

from posteriori.kernels.machine import lanes

_struct_proxy: Any = cgutils.create_struct_proxy  # Numba does not annotate these
_lower: Any = lower_builtin
_types_of: Any = type_callable

_VECTOR = ir.VectorType(ir.DoubleType(), lanes.LANES)


def _compile(function: Callable[..., None], has_number: bool, combine: Callable[[Any, Any, Any], Any]) -> None:
    """Let Numba compile out[j] = combine(out[j], other[k]), or combine(out[j], number · other[k])."""
    wanted = [types.Array, types.Integer, *[types.Float] * has_number, types.Array, types.Integer]

    def generate(context, builder, signature, arguments):
        given = list(zip(signature.args, arguments, strict=True))
        target = _row(context, builder, *given[:2])
        row = builder.load(_row(context, builder, *given[-2:]), align=8)
        if has_number:
            lone = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), arguments[2], ir.IntType(32)(0))
            places = ir.Constant(ir.VectorType(ir.IntType(32), lanes.LANES), [0] * lanes.LANES)
            row = builder.fmul(builder.shuffle_vector(lone, lone, places), row, flags=("contract",))
        builder.store(combine(builder, target, row), target, align=8)
        return context.get_dummy_value()

    if has_number:
        _types_of(function)(lambda context: lambda out, j, number, other, k: types.none)
    else:
        _types_of(function)(lambda context: lambda out, j, other, k: types.none)
    _lower(function, *wanted)(generate)


def _row(context: Any, builder: Any, array: Any, position: Any) -> Any:
    """Return a pointer to a row; array and position are pairs of a Numba type and an LLVM value."""
    data = _struct_proxy(array[0])(context, builder, array[1]).data
    first = builder.mul(context.cast(builder, position[1], position[0], types.intp), ir.IntType(64)(lanes.LANES))
    return builder.bitcast(builder.gep(data, [first]), _VECTOR.as_pointer())


def _larger(builder: Any, target: Any, row: Any) -> Any:
    before = builder.load(target, align=8)
    return builder.select(builder.fcmp_ordered(">", before, row), before, row)


def _quotient(builder: Any, target: Any, row: Any) -> Any:
    zero, divisor = ir.Constant(_VECTOR, [0.0] * lanes.LANES), builder.load(target, align=8)
    return builder.select(builder.fcmp_ordered(">", divisor, zero), builder.fdiv(row, divisor), zero)


def _sum(builder: Any, target: Any, row: Any, flags: tuple[str, ...] = ()) -> Any:
    return builder.fadd(builder.load(target, align=8), row, flags=flags)


_compile(lanes.add_row, False, _sum)
_compile(lanes.multiply_row, False, lambda builder, target, row: builder.fmul(builder.load(target, align=8), row))
_compile(lanes.raise_row, False, _larger)
_compile(lanes.divide_row, False, _quotient)
_compile(lanes.scale_row, True, lambda builder, target, row: row)
_compile(lanes.add_scaled_row, True, lambda builder, target, row: _sum(builder, target, row, ("contract",)))
