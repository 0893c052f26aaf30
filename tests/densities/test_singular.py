"""Directions have the same sign on every processor."""

import numpy as np
from numpy.testing import assert_array_equal

from posteriori.densities.covariances import orient


def test_orientation_ignores_the_signs_of_the_eigenvectors():
    directions = np.random.default_rng(0).normal(size=(5, 3))
    oriented = orient(directions)
    for signs in ([-1.0, 1.0, 1.0], [1.0, -1.0, -1.0]):
        assert_array_equal(orient(directions * signs), oriented)
    assert_array_equal(np.abs(oriented), np.abs(directions))
    assert (oriented[np.abs(oriented).argmax(axis=0), range(3)] > 0).all()
