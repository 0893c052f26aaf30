"""Exponentials of many numbers at once, several times as fast as one after the other."""

import numpy as np

from posteriori.kernels.machine.compiling import kernel

_AT_ONCE = 256
_LOG2E, _ROUND = 1.4426950408889634, 6755399441055744.0  # adding 1.5·2⁵² rounds to whole numbers, in the low bits
_LN2_HIGH, _LN2_LOW = 6.93147180369123816490e-01, 1.90821492927058770002e-10  # the first times k is exact
_LEAST = -708.0  # below, the exponential is no normal number


@kernel(fastmath={"contract"}, is_part=True)
def exponentiate(x):
    """Replace each x ≤ 0 by exp(x), within one unit in the last place, and by 0 below −708. NaN stays NaN.

    exp(x) = 2ᵏ·exp(r) for the whole number k nearest to x / log 2, so that |r| ≤ ½·log 2, by the Taylor polynomial of
    degree 13 (Cody & Waite, Software Manual for the Elementary Functions, 1980, chapter 6). Loops without branches and
    calls become vector instructions.
    """
    rounded, power = np.empty(_AT_ONCE), np.empty(_AT_ONCE)
    bits_of_rounded, bits_of_power = rounded.view(np.int64), power.view(np.int64)
    for start in range(0, len(x), _AT_ONCE):
        part = x[start : start + _AT_ONCE]
        for i in range(len(part)):
            rounded[i] = part[i] * _LOG2E + _ROUND
        for i in range(len(part)):
            bits_of_power[i] = (bits_of_rounded[i] << 52) + (1023 << 52)  # k as the exponent of a double
        for i in range(len(part)):
            k = rounded[i] - _ROUND
            r = part[i] - k * _LN2_HIGH
            r -= k * _LN2_LOW
            p = 1.0 / 6227020800.0
            p = p * r + 1.0 / 479001600.0
            p = p * r + 1.0 / 39916800.0
            p = p * r + 1.0 / 3628800.0
            p = p * r + 1.0 / 362880.0
            p = p * r + 1.0 / 40320.0
            p = p * r + 1.0 / 5040.0
            p = p * r + 1.0 / 720.0
            p = p * r + 1.0 / 120.0
            p = p * r + 1.0 / 24.0
            p = p * r + 1.0 / 6.0
            p = p * r + 0.5
            p = p * r + 1.0
            p = p * r + 1.0
            part[i] = 0.0 if part[i] < _LEAST else p * power[i]
