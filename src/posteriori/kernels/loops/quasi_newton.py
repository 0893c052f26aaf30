"""The inverse Hessian that L-BFGS estimates."""

import numpy as np

from posteriori.kernels.machine.compiling import REORDERED, kernel


@kernel(fastmath=REORDERED)
def times_inverse_hessian(vector, changes, rises, newest, count):
    """Multiply a vector (P,) by the inverse Hessian (Nocedal & Wright, algorithm 7.4), in place.

    Row r of changes and rises (M, P) holds a step and the change of the gradient along it. The rows are a ring: the
    newest one is given, and `count` of them are in use.
    """
    shares, products = np.empty(count), np.empty(count)
    most, width = changes.shape
    for age in range(count):
        at = (newest - age) % most
        product, along = 0.0, 0.0
        for k in range(width):
            product += rises[at, k] * changes[at, k]
            along += changes[at, k] * vector[k]
        products[age], shares[age] = product, along / product
        for k in range(width):
            vector[k] -= shares[age] * rises[at, k]
    size = 0.0
    for k in range(width):
        size += rises[newest, k] ** 2
    for k in range(width):
        vector[k] *= products[0] / size
    for age in range(count - 1, -1, -1):
        at = (newest - age) % most
        along = 0.0
        for k in range(width):
            along += rises[at, k] * vector[k]
        share = shares[age] - along / products[age]
        for k in range(width):
            vector[k] += share * changes[at, k]
