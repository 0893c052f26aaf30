"""SplitMix64: hashes and random numbers (Steele, Lea & Flood, Fast splittable pseudorandom number generators, 2014).

The functions take uint64: in compiled loops one number, in Python an array.
"""

import numpy as np

from posteriori.kernels.machine.compiling import kernel

INCREMENT = np.uint64(0x9E3779B97F4A7C15)  # of the state, per number drawn: odd, and near 2⁶⁴ over the golden ratio


@kernel(is_part=True)
def mixed(x):
    """Return the finaliser of SplitMix64: a hash without collisions, which takes 0 to 0."""
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))


@kernel(is_part=True)
def splitmix64(state):
    """Return the number that follows a state: a hash without collisions."""
    return mixed(state + INCREMENT)


@kernel(is_part=True)
def uniform(x):
    """Return a hash of one number as a number in [0, 1)."""
    return float(mixed(x) >> np.uint64(11)) / 9007199254740992.0
