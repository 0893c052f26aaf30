"""Candidates on codes and on distances that were tried as members of a pool: small and readable, not fast.

Each takes training rows with their classes and other rows, as `Cells`, and returns log p(y | x) of these, (n, C).
The kDB ensemble and A2DE read a missing cell as a category.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from scipy.special import logsumexp

import posteriori as po
from experiments.ablation_cells import Cells, binned, information_of, normal_scores, pair_counts

_STRENGTHS = np.array([1.0, 4.0, 16.0])  # of back-off, in rows
_BINS = (4, 7, 12)
_MOST_PARENTS = 5


def kdb_ensemble(
    train: Cells, y: np.ndarray, n_classes: int, other: Cells, members: int = 30, seed: int = 0
) -> np.ndarray:
    """Ensemble of k-dependence classifiers with random orders of columns (Zhang et al., KAIS 2020).

    A member draws an order of the columns, those with more information about the class first, and bins of one of three
    numbers. Its number of columns, parents (up to five) and strength of back-off have the least leave-one-out loss.
    Members are averaged.
    """
    rng = np.random.default_rng(seed)
    cases = []
    for bins in _BINS if train.numbers.shape[1] else (2,):
        codes, others, widths = binned(train, other, bins)
        information = information_of(pair_counts(codes, y, widths, n_classes), widths)
        cases.append((np.vstack([codes, others]), widths, *information[:2]))
    total = np.zeros((len(other.codes), n_classes))
    for m in range(members):
        codes, widths, own, shared = cases[m % len(cases)]
        order = np.argsort(-np.log(own + 1e-6) - rng.gumbel(size=len(own)), kind="stable")
        total += np.exp(_best_member(codes, widths, y, n_classes, order, shared))
    return np.log(total / members)


def _best_member(
    codes: np.ndarray, widths: np.ndarray, y: np.ndarray, n_classes: int, order: np.ndarray, shared: np.ndarray
) -> np.ndarray:
    """Return the log posterior of the rows after the training rows, by the columns, parents and strength chosen."""
    n = len(y)
    own = np.zeros((len(codes), n_classes))
    own[np.arange(n), y] = 1.0
    prior = (np.bincount(y, minlength=n_classes) - own + 0.5) / (n + 0.5 * n_classes)
    strengths = _STRENGTHS[:, np.newaxis, np.newaxis]
    scores = np.broadcast_to(np.log(prior), (_MOST_PARENTS + 1, len(_STRENGTHS), *prior.shape)).copy()
    best, chosen = np.inf, scores[0, 0, n:]
    for rank, j in enumerate(order.tolist()):
        before = order[:rank]
        parents = before[np.argsort(-shared[j, before], kind="stable")[:_MOST_PARENTS]]
        context = np.zeros(len(codes), np.int64)
        p = np.full((len(_STRENGTHS), len(codes), n_classes), 1.0 / widths[j])
        for k in range(_MOST_PARENTS + 1):
            if 0 < k <= len(parents):
                context = np.unique(context * widths[parents[k - 1]] + codes[:, parents[k - 1]], return_inverse=True)[1]
            if k <= len(parents):
                size = int(context.max()) + 1
                cell = (context[:n] * n_classes + y) * widths[j] + codes[:n, j]
                table = np.bincount(cell, minlength=size * n_classes * widths[j]).reshape(size, n_classes, -1)
                inside = table[context, :, codes[:, j]] - own
                p = (inside + strengths * p) / (table.sum(axis=2)[context] - own + strengths)
            scores[k] += np.log(p)
        losses = (logsumexp(scores[:, :, :n], axis=3) - scores[:, :, np.arange(n), y]).mean(axis=2)
        if losses.min() < best:
            k, s = np.unravel_index(losses.argmin(), losses.shape)
            best, chosen = losses[k, s], scores[k, s, n:].copy()
    return chosen - logsumexp(chosen, axis=1, keepdims=True)


def two_dependence(
    train: Cells, y: np.ndarray, n_classes: int, other: Cells, bins: int = 5, strength: float = 4.0
) -> np.ndarray:
    """Averaged two-dependence estimators, each pair of parents weighed by I(x_i, x_j; y) (Webb et al. 2012)."""
    codes, others, widths = binned(train, other, bins)
    counts = pair_counts(codes, y, widths, n_classes)
    weight = information_of(counts, widths)[2]
    starts = np.concatenate([[0], np.cumsum(widths)])[:-1]
    joint = np.bincount(y, minlength=n_classes) + 1.0
    log_joint = _two_dependence(
        codes + starts, others + starts, y, n_classes, counts, weight, widths, strength, joint / joint.sum()
    )
    return log_joint - logsumexp(log_joint, axis=1, keepdims=True)


@njit
def _two_dependence(train, other, y, n_classes, pairs, weight, widths, strength, prior):
    d, slots = train.shape[1], pairs.shape[1]
    triples = np.zeros((slots, slots, slots, n_classes), np.float32)
    for r in range(len(train)):
        for i in range(d):
            for j in range(i):
                for k in range(d):
                    triples[train[r, i], train[r, j], train[r, k], y[r]] += 1.0
    out = np.full((len(other), n_classes), -np.inf)
    single = np.empty((d, n_classes))
    given = np.empty((d, d, n_classes))
    for r in range(len(other)):
        x = other[r]
        for z in range(n_classes):
            n = 0.0
            for a in range(widths[0]):
                n += pairs[z, a, a]
            for i in range(d):
                single[i, z] = (pairs[z, x[i], x[i]] + 1.0 / widths[i]) / (n + 1.0)
            for i in range(d):
                for k in range(d):
                    n_i = pairs[z, x[i], x[i]]
                    given[i, k, z] = (pairs[z, x[i], x[k]] + strength * single[k, z]) / (n_i + strength)
            for i in range(d):
                for j in range(i):
                    log_p = np.log(weight[i, j] + 1e-9) + np.log(prior[z] * single[i, z] * given[i, j, z])
                    n_ij = pairs[z, x[i], x[j]]
                    for k in range(d):
                        if k != i and k != j:
                            back = 0.5 * (given[i, k, z] + given[j, k, z])
                            log_p += np.log((triples[x[i], x[j], x[k], z] + strength * back) / (n_ij + strength))
                    high = max(out[r, z], log_p)
                    out[r, z] = high + np.log(np.exp(out[r, z] - high) + np.exp(log_p - high))
    return out


def discriminant_of_scores(
    train: Cells, y: np.ndarray, n_classes: int, other: Cells, pooling: float | str
) -> np.ndarray:
    """Gaussian discriminant analysis, parameters integrated out, of normal scores: a copula over common margins."""
    mine, theirs = normal_scores(train, other)
    model = po.GaussianDiscriminant(pooling=pooling, predictive=True, em=po.EM(max_iter=20), n_jobs=1)
    return np.asarray(model.fit(mine.as_frame(), y).predict_log_proba(theirs.as_frame()))


def nearest_rows(train: Cells, y: np.ndarray, n_classes: int, other: Cells) -> np.ndarray:
    """Mixture of one product kernel per training row of the class.

    A column counts by a power of its information about the class. This power and the width of the kernels have the
    least leave-one-out loss.
    """
    mine, theirs = normal_scores(train, other)
    codes, _, widths = binned(train, other, 7)
    information = information_of(pair_counts(codes, y, widths, n_classes), widths)[0]
    q = train.codes.shape[1]
    relevance = np.concatenate([information[q:], information[:q]])
    relevance = np.maximum(relevance / max(relevance.max(), 1e-12), 1e-3)
    hot = np.eye(n_classes)[y]
    prior = (hot.sum(axis=0) + 0.5) / (len(y) + 0.5 * n_classes)
    best, chosen = np.inf, None
    for power in (0.0, 0.5, 1.0):
        weight = relevance**power
        apart = _distances(mine, mine, weight)
        np.fill_diagonal(apart, np.inf)
        for sharpness in 2.0 ** np.arange(-3.0, 5.0):
            log_joint = _log_kernel_sums(apart * sharpness, hot, prior)
            loss = (logsumexp(log_joint, axis=1) - log_joint[np.arange(len(y)), y]).mean()
            if loss < best:
                best, chosen = loss, (weight, sharpness)
    assert chosen is not None
    log_joint = _log_kernel_sums(_distances(theirs, mine, chosen[0]) * chosen[1], hot, prior)
    return log_joint - logsumexp(log_joint, axis=1, keepdims=True)


def _distances(rows: Cells, others: Cells, weight: np.ndarray) -> np.ndarray:
    total = np.zeros((len(rows.codes), len(others.codes)))
    p = rows.numbers.shape[1]
    for j in range(p):
        apart = 0.5 * (rows.numbers[:, j, np.newaxis] - others.numbers[:, j]) ** 2
        total += weight[j] * np.where(np.isnan(apart), 1.0, apart)
    for j in range(rows.codes.shape[1]):
        mine, theirs = rows.codes[:, j, np.newaxis], others.codes[:, j]
        total += weight[p + j] * np.where((mine > 0) & (theirs > 0), mine != theirs, 0.5)
    return total


def _log_kernel_sums(apart: np.ndarray, hot: np.ndarray, prior: np.ndarray) -> np.ndarray:
    """Return log of Σ_i exp(−distance) over the rows of each class, and one row more that is shared by the prior."""
    least = np.minimum(apart.min(axis=1, keepdims=True), 700.0)
    nearest = np.exp(least - apart)
    return np.log(nearest @ hot + 0.5 * prior) - least
