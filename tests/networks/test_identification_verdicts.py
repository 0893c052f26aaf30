"""Verdicts of identifiability: where an effect is not identifiable, two networks agree on all that is observed.

The construction knows no graph criterion. A generic network is a point; the directions in which the distribution of the
observed variables stands still are the null space of its derivative. If the effect has a slope there, a step along it,
corrected by Newton's method, is a second network with the same observed distribution and another effect.
"""

import itertools

import numpy as np
import pytest

from posteriori.networks import DAG, identify

_HIDDEN_STATES = 4


class Network:
    """All networks over a graph, by the logits of their tables; only an identity of sums, products and softmax."""

    def __init__(self, dag, hidden):
        self.dag, self.hidden = dag, hidden
        self.states = {name: _HIDDEN_STATES if name in hidden else 2 for name in dag.nodes}
        self.shapes = [tuple(self.states[one] for one in (*dag.parents[v], v)) for v in dag.nodes]
        self.ends = np.cumsum([0, *(int(np.prod(shape)) for shape in self.shapes)])

    def joint(self, logits, done=()):
        """p(all | do(done)), an axis per node; the tables of what is set are left out (truncated product)."""
        letters = dict(zip(self.dag.nodes, "abcdefghij", strict=False))
        factors, scopes = [], []
        for v, shape, start, end in zip(self.dag.nodes, self.shapes, self.ends, self.ends[1:], strict=False):
            if v not in done:
                table = np.exp(logits[start:end].reshape(shape))
                factors.append(table / table.sum(axis=-1, keepdims=True))
                scopes.append("".join(letters[one] for one in (*self.dag.parents[v], v)))
        for v in done:
            factors.append(np.ones(self.states[v]))
            scopes.append(letters[v])
        return np.einsum(",".join(scopes) + "->" + "".join(letters.values()), *factors, optimize="greedy")

    def observed(self, logits):
        axes = tuple(k for k, v in enumerate(self.dag.nodes) if v in self.hidden)
        return self.joint(logits).sum(axis=axes).ravel()

    def effect(self, logits, y, x, given):
        """p(y = 0 | do(x = 0), given = 0)."""
        table = self.joint(logits, (x,))
        at = [0 if v in (x, *given) else slice(None) for v in self.dag.nodes]
        table = table[tuple(at)]
        kept = [v for v in self.dag.nodes if v not in (x, *given)]
        of_y = table.sum(axis=tuple(k for k, v in enumerate(kept) if v != y))
        return of_y[:1] / of_y.sum()


def slope(function, logits, step=1e-30):
    """The exact derivative of an analytic function, by a complex step."""
    moved = logits + 1j * step * np.eye(len(logits))
    return np.stack([np.imag(function(one)) for one in moved], axis=-1) / step


def second_network(net, logits, y, x, given):
    """Return logits with the same observed distribution and another effect, or None where the effect stands still."""
    here = net.observed(logits)
    _, sizes, rows = np.linalg.svd(slope(net.observed, logits))
    still = rows[(sizes > 1e-10 * sizes[0]).sum() :]
    along = still.T @ (still @ slope(lambda one: net.effect(one, y, x, given), logits)[0])
    if np.linalg.norm(along) < 1e-7:
        return None
    other = logits + 0.3 * along / np.linalg.norm(along)
    for _ in range(30):
        off = net.observed(other) - here
        if np.abs(off).max() < 1e-14:
            break
        other = other - np.linalg.lstsq(slope(net.observed, other), off, rcond=1e-9)[0]
    return other


def random_question(seed):
    """Return a graph of four observed variables and two hidden causes, with a question about it."""
    rng = np.random.default_rng(seed)
    names = ["a", "b", "c", "d"]
    edges = [pair for pair in itertools.combinations(names, 2) if rng.random() < 0.55]
    for hidden in ("u", "w"):
        edges += [(hidden, name) for name in rng.choice(names, 2, replace=False).tolist()]
    x, y = sorted(rng.choice(names, 2, replace=False).tolist())
    rest = [name for name in names if name not in (x, y)]
    return DAG(("u", "w", *names), tuple(edges)), y, x, tuple(rest[:1]) if rng.random() < 0.4 else ()


@pytest.mark.parametrize("seed", [*range(25), *(pytest.param(k, marks=pytest.mark.oracle) for k in range(25, 300))])
def test_two_networks_show_that_an_effect_is_not_identifiable(seed):
    dag, y, x, given = random_question(seed)
    found = identify(dag, y, x, given, ("u", "w"))
    net = Network(dag, ("u", "w"))
    logits = np.random.default_rng(seed).normal(size=net.ends[-1])
    other = second_network(net, logits, y, x, given)
    assert (other is None) == found.is_identifiable
    if other is not None:
        np.testing.assert_allclose(net.observed(other), net.observed(logits), atol=1e-12)
        assert abs(net.effect(other, y, x, given) - net.effect(logits, y, x, given))[0] > 1e-6
