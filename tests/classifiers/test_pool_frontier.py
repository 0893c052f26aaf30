"""Rules over several columns, each of which is no evidence by itself: what the pool takes forests for.

The tables are made up after mux6, parity5_5, three_of_9 and monks_2 of the Penn Machine Learning Benchmarks: the same
columns, numbers of rows and kinds of rules. The limits hold on newly drawn rows.
"""

import itertools

import numpy as np
import pytest

import posteriori as po


def states(*cardinalities):
    return np.array(list(itertools.product(*map(range, cardinalities))))


def multiplexer(X):
    """Two bits are the address of one of the other four."""
    return X[np.arange(len(X)), 2 + 2 * X[:, 0] + X[:, 1]]


def parity(X):
    """The parity of five of ten bits."""
    return X[:, [1, 3, 4, 6, 8]].sum(axis=1) % 2


def three_of_nine(X):
    """Exactly three of nine bits are set."""
    return (X.sum(axis=1) == 3).astype(int)


def two_first_values(X):
    """Exactly two of six columns have their first value."""
    return ((X == 0).sum(axis=1) == 2).astype(int)


# The rule, all states, the number of rows, and the largest log-loss: in nats, and relative to a pool without forests.
# No rule of nine bits is learned from 512 rows yet.
RULES = {
    "mux6": (multiplexer, states(*[2] * 6), 128, 0.04, 0.5),
    "parity5_5": (parity, states(*[2] * 10), 1124, 0.2, 0.5),
    "three_of_9": (three_of_nine, states(*[2] * 9), 512, 0.36, 1.0),
    "monks_2": (two_first_values, states(3, 3, 2, 3, 4, 2), 601, 0.15, 0.5),
}


def drawn(name, seed):
    """Return rows with the class of the rule: as many as the benchmark has, drawn from all states."""
    rule, X, n, *_ = RULES[name]
    X = X[np.random.default_rng(seed).integers(len(X), size=n)]
    return X.astype(str).astype(object), rule(X)


def log_loss(model, X, y):
    return -model.predict_log_proba(X)[np.arange(len(y)), y].mean()


@pytest.mark.parametrize("name", ["mux6", "parity5_5", "three_of_9", "monks_2"])
def test_the_pool_learns_rules_over_several_columns(name):
    X, y = drawn(name, 0)
    pool = po.GenerativeClassifier().fit(X, y)
    X_new, y_new = drawn(name, 1)
    found = log_loss(pool, X_new, y_new)
    most, most_of_pairs = RULES[name][3:]
    assert found < most
    pairs = po.GenerativeClassifier(["nb", "tan", "kdb", "aode"]).fit(X, y)
    assert found < most_of_pairs * log_loss(pairs, X_new, y_new)
    # Three of nine are learned by neither: five of 512 rows are chance.
    assert (pool.predict(X_new) == y_new).mean() > (pairs.predict(X_new) == y_new).mean() - 0.01
