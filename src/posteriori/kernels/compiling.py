"""How a hot loop is compiled."""

import numba

# Sums may be reordered (which lets them vectorise), but NaN and infinity keep their meaning.
REORDERED = {"reassoc", "contract", "nsz"}


def kernel(function=None, *, fastmath=False):
    """Compile a serial loop that releases the GIL, keeping its machine code between runs."""

    def compile_lazily(function):
        return numba.njit(function, nogil=True, cache=True, fastmath=fastmath, error_model="numpy")

    return compile_lazily if function is None else compile_lazily(function)
