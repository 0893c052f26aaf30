"""Rows of arrays (·, LANES) as machine vectors.

LLVM vectorises an inner loop only if it knows that the arrays do not overlap, and Numba cannot pass this on. These
intrinsics load whole rows, compute, and store a row.
"""

from collections.abc import Callable
from typing import Any

import llvmlite.ir as ir  # type: ignore[import-untyped]
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic

from posteriori.kernels.loops.few_rows import LANES

# Kernels call these without the first argument, but type checkers do not know that.
operation: Any = intrinsic
_struct_proxy: Any = cgutils.create_struct_proxy  # Numba does not annotate it

_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


@operation
def add_row(typing, out, j, other, k):
    """Do out[j] += other[k]."""
    return _combine(out, j, other, k, lambda builder, left, right: builder.fadd(left, right))


@operation
def multiply_row(typing, out, j, other, k):
    """Do out[j] *= other[k]."""
    return _combine(out, j, other, k, lambda builder, left, right: builder.fmul(left, right))


@operation
def raise_row(typing, out, j, other, k):
    """Do out[j] = max(out[j], other[k])."""

    def larger(builder, left, right):
        return builder.select(builder.fcmp_ordered(">", left, right), left, right)

    return _combine(out, j, other, k, larger)


@operation
def divide_row(typing, out, j, other, k):
    """Do out[j] = other[k] / out[j], with 0 where the divisor is 0."""

    def quotient(builder, divisor, row):
        zero = ir.Constant(_VECTOR, [0.0] * LANES)
        return builder.select(builder.fcmp_ordered(">", divisor, zero), builder.fdiv(row, divisor), zero)

    return _combine(out, j, other, k, quotient)


@operation
def scale_row(typing, out, j, number, other, k):
    """Do out[j] = number · other[k]."""
    return _scaled(out, j, number, other, k, lambda builder, target, product: product)


@operation
def add_scaled_row(typing, out, j, number, other, k):
    """Do out[j] += number · other[k]."""

    def add(builder, target, product):
        return builder.fadd(builder.load(target, align=8), product, flags=("contract",))

    return _scaled(out, j, number, other, k, add)


def _scaled(
    out: Any, j: Any, number: Any, other: Any, k: Any, combine: Callable[[Any, Any, Any], Any]
) -> tuple[Any, Any]:
    """Return the signature and the code of out[j] = combine(out[j], number · other[k])."""

    def generate(context, builder, signature, arguments):
        out, j, number, other, k = zip(signature.args, arguments, strict=True)
        lone = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), number[1], ir.IntType(32)(0))
        every = builder.shuffle_vector(lone, lone, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))
        row = builder.load(_row(context, builder, other, k), align=8)
        target = _row(context, builder, out, j)
        product = builder.fmul(every, row, flags=("contract",))
        builder.store(combine(builder, target, product), target, align=8)
        return context.get_dummy_value()

    return types.void(out, j, number, other, k), generate


def _combine(out: Any, j: Any, other: Any, k: Any, combine: Callable[[Any, Any, Any], Any]) -> tuple[Any, Any]:
    """Return the signature and the code of out[j] = combine(out[j], other[k])."""

    def generate(context, builder, signature, arguments):
        out, j, other, k = zip(signature.args, arguments, strict=True)
        target = _row(context, builder, out, j)
        left, right = builder.load(target, align=8), builder.load(_row(context, builder, other, k), align=8)
        builder.store(combine(builder, left, right), target, align=8)
        return context.get_dummy_value()

    return types.void(out, j, other, k), generate


def _row(context: Any, builder: Any, array: Any, position: Any) -> Any:
    """Return a pointer to a row; array and position are pairs of a Numba type and an LLVM value."""
    data = _struct_proxy(array[0])(context, builder, array[1]).data
    first = builder.mul(context.cast(builder, position[1], position[0], types.intp), ir.IntType(64)(LANES))
    return builder.bitcast(builder.gep(data, [first]), _VECTOR.as_pointer())
