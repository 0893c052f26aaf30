"""The score of cells of a number: by loops, by its gradient, and at the optimum of the pool."""

import numpy as np
from numpy.testing import assert_allclose

from posteriori.learning.number_pool import OF_LOG_SCORE, NumberScore, fit_number_pool


def drawn(seed=0, n=300, n_cells=12, n_members=3):
    rng = np.random.default_rng(seed)
    log_p = rng.normal(size=(n, n_cells, n_members))
    cell = np.array([rng.choice(n_cells, p=np.exp(row[:, 0]) / np.exp(row[:, 0]).sum()) for row in log_p])
    log_p -= np.log(np.exp(log_p).sum(axis=1, keepdims=True))
    return log_p, cell, rng.uniform(0.5, 2.0, n), rng.uniform(0.2, 3.0, n_cells)


def scored(p, cell, weight, widths):
    """The score of probabilities, (n, G), by loops over rows and the ends of cells."""
    marginal = np.cumsum(np.bincount(cell, weight, len(widths)) / weight.sum())
    ranked, of_all, of_log = 0.0, 0.0, 0.0
    for row, y, w in zip(p, cell, weight / weight.sum(), strict=True):
        for g in range(len(widths) - 1):
            around = (widths[g] + widths[g + 1]) / 2.0
            ranked += w * around * (row[: g + 1].sum() - (y <= g)) ** 2
            of_all += w * around * (marginal[g] - (y <= g)) ** 2
        of_log -= w * np.log(row[y])
    return ranked / of_all + OF_LOG_SCORE * of_log


def pooled(log_p, position):
    p = np.exp(log_p @ position)
    return p / p.sum(axis=1, keepdims=True)


def test_the_score_is_that_of_a_loop_over_the_ends_of_cells():
    log_p, cell, weight, widths = drawn()
    p, score = np.exp(log_p[:, :, 0]), NumberScore.of(cell, weight, widths)
    assert_allclose(score.of_rows(p, score.apart(p)), scored(p, cell, weight, widths), rtol=1e-12)


def test_no_weights_near_those_of_the_pool_have_a_smaller_score():
    log_p, cell, weight, widths = drawn()
    pool = fit_number_pool(log_p, cell, weight, widths, penalty=1.0)

    def loss(position):
        pull = 1.5 * ((position - 1.0 / 3.0) ** 2).sum() / weight.sum()
        return scored(pooled(log_p, position), cell, weight, widths) + pull

    least, rng = loss(pool.weight), np.random.default_rng(1)
    assert pool.weight[0] > 0.5  # the numbers were drawn from this member
    for step in rng.normal(0.0, 0.03, (20, 3)):
        assert loss(np.maximum(pool.weight + step, 0.0)) > least - 1e-6
