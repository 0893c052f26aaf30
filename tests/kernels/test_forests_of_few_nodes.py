"""Parameters of forests whose trees have few nodes, or sides without codes."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.kernels.loops import forests


@pytest.mark.parametrize(("sides", "share"), [((2, 2), 0.0), ((1, 1), 1.0), ((0, 0), 0.75), ((0, 2), 0.0)])
def test_a_side_without_codes_has_no_share(sides, share):
    # one split of two categories into leaves of two classes, of which 2.5 + 0.5 of 3 + 1 rows are at the left
    nodes = np.array([[0, 0, 1], [-1, 0, 0], [-1, 0, 1]], np.int32)
    counts, mass = np.array([[1.0, 1.5], [0.5, 0.0]]), np.array([0.0, 0.25, 0.75])
    weight, shares, log_edge = np.empty((3, 2)), np.full(3, 0.5), np.zeros(3)
    roots, starts = np.array([0, 3]), np.array([0, 3])
    ways = np.array([0, *sides], np.uint8)
    forests.weigh_edges(counts, nodes, roots, ways, np.zeros(1, np.bool_), mass, starts, weight, shares, log_edge)
    assert np.isfinite(np.log(shares)).all()
    assert np.isfinite(np.log1p(-shares)).all()
    assert_allclose(shares[0], share, atol=1e-15)
    assert_array_equal(log_edge, 0.0)


def test_a_tree_of_one_leaf():
    nodes, roots = np.array([[-1, 0, 0]], np.int32), np.array([0, 1])
    weight, share, log_edge = np.empty((1, 2)), np.full(1, 0.5), np.zeros(1)
    counts, none = np.array([[3.0, 1.0]]), np.empty(0, np.uint8)
    forests.weigh_edges(
        counts, nodes, roots, none, np.zeros(1, bool), np.ones(3), np.array([0, 3]), weight, share, log_edge
    )
    assert_array_equal(weight, counts)
    given_node, of_tree = np.empty((1, 2)), np.empty((1, 2))
    strengths, prior = np.ones((2, 1)), np.array([0.5, 0.5])
    forests.smooth_nodes(
        weight, nodes, roots, share, strengths, prior, np.empty((0, 0), np.float32), False, given_node, of_tree
    )
    assert_allclose(of_tree, [[0.7, 0.3]])
    assert_allclose(given_node, 0.0)
