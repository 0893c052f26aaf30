"""Candidates whose numbers have kernel densities, tried as members of a pool: small and readable, not fast.

Each takes training rows with their classes and other rows, as `Cells`, and returns log p(y | x) of these, (n, C).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp, ndtr, ndtri

import posteriori as po
from experiments.ablation_cells import Cells, categorical_factors, weighted_posterior

_WIDTHS = 1.06 * 2.0 ** np.arange(-4.0, 1.6, 0.5)  # of kernels, in standard deviations times n^(−1/5)
_BIN_WIDTHS = (0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0)  # of kernels over ranks, in percent of the rows


def fine_bins(train: Cells, y: np.ndarray, n_classes: int, other: Cells, bins: int = 100) -> np.ndarray:
    """Naive Bayes with many bins per number, little smoothing and one weight per column."""
    model = po.NaiveBayes(distributions="binned", bins=bins, alpha=0.1, feature_weights="conditional", n_jobs=1)
    return np.asarray(model.fit(train.as_frame(), y).predict_log_proba(other.as_frame()))


@dataclass(frozen=True)
class Margins:
    """Log factors (n, C, d) of the columns of training rows, without themselves, and of others; normal scores alike."""

    left_out: np.ndarray
    other: np.ndarray
    scores: np.ndarray
    other_scores: np.ndarray


def kernel_naive_bayes(train: Cells, y: np.ndarray, n_classes: int, other: Cells) -> np.ndarray:
    """Naive Bayes of kernel densities, with one weight per column by conditional likelihood."""
    margins = kernel_margins(train, y, n_classes, other)
    return weighted_posterior(margins.left_out, margins.other, y, n_classes)


def kernel_copula(train: Cells, y: np.ndarray, n_classes: int, other: Cells, pooled: float) -> np.ndarray:
    """Gaussian copula over kernel densities given the class; `pooled` is the share of the common correlations."""
    margins = kernel_margins(train, y, n_classes, other)
    log_joint = margins.other.sum(axis=2) + np.log(np.bincount(y, minlength=n_classes) / len(y))
    log_joint += _copula_term(margins, y, n_classes, pooled)[1]
    return log_joint - logsumexp(log_joint, axis=1, keepdims=True)


def _copula_term(margins: Margins, y: np.ndarray, n_classes: int, pooled: float) -> tuple[np.ndarray, np.ndarray]:
    """Return the log density of the copula of each class at the training rows and at others, (n, C).

    A training row is not left out of the correlations.
    """
    terms = [np.zeros(part.shape[:2]) for part in (margins.scores, margins.other_scores)]
    p = margins.scores.shape[2]
    if p < 2:
        return terms[0], terms[1]
    scores = [margins.scores[y == c, c] for c in range(n_classes)]
    common = sum(one.T @ one for one in scores) / len(y)
    for c, one in enumerate(scores):
        scatter = (1 - pooled) * one.T @ one + pooled * len(one) * common + 2.0 * np.eye(p)
        spread = np.sqrt(np.diag(scatter))
        correlation = scatter / np.outer(spread, spread)
        inverse, size = np.linalg.inv(correlation), np.linalg.slogdet(correlation)[1]
        for term, part in zip(terms, (margins.scores, margins.other_scores), strict=True):
            z = part[:, c]
            term[:, c] = -0.5 * (size + ((z @ inverse) * z - z**2).sum(axis=1))
    return terms[0], terms[1]


def kernel_margins(train: Cells, y: np.ndarray, n_classes: int, other: Cells) -> Margins:
    """Return kernel densities of numbers given the class, of the width with the greatest leave-one-out likelihood.

    A row's worth of the density of all classes is added to each; categories are smoothed by one row.
    """
    p = train.numbers.shape[1]
    parts = [np.zeros((len(cells.codes), n_classes, p)) for cells in (train, other, train, other)]
    for j in range(p):
        column, theirs = train.numbers[:, j], other.numbers[:, j]
        known = ~np.isnan(column)
        spread = np.std(column[known]) or 1.0
        gaps = np.diff(np.unique(column[known]))
        floor = 0.5 * np.median(gaps) if len(gaps) else spread
        of_all = _kernel_density(column[known], column, spread * max(known.sum(), 1) ** -0.2, floor)
        of_all_there = _kernel_density(column[known], theirs, spread * max(known.sum(), 1) ** -0.2, floor)
        for c in range(n_classes):
            mine = known & (y == c)
            width = (np.std(column[mine]) or spread) * max(mine.sum(), 1) ** -0.2
            width = max(width, 0.05 * spread)
            for k, (at, back, own) in enumerate(
                ((column, of_all, np.flatnonzero(mine)), (theirs, of_all_there, np.empty(0, np.int64)))
            ):
                density, cdf = _with_width(column[mine], at, width, floor, own, back)
                missing = np.isnan(at)
                parts[k][:, c, j] = np.where(missing, 0.0, np.log(density + 1e-300))
                parts[2 + k][:, c, j] = np.where(missing, 0.0, ndtri(np.clip(cdf, 1e-4, 1 - 1e-4)))
    factors = [categorical_factors(train, y, n_classes, cells) for cells in (None, other)]
    return Margins(
        np.concatenate([parts[0], factors[0]], axis=2), np.concatenate([parts[1], factors[1]], axis=2), *parts[2:]
    )


def _kernel_density(points: np.ndarray, at: np.ndarray, width: float, floor: float) -> np.ndarray:
    width = max(width, floor, 1e-12)
    apart = (at[:, np.newaxis] - points) / width
    return np.exp(-0.5 * apart**2).sum(axis=1) / (width * np.sqrt(2 * np.pi)) / max(len(points), 1)


def _with_width(
    points: np.ndarray, at: np.ndarray, width: float, floor: float, own: np.ndarray, back: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return the density and the distribution function at `at`; rows `own` of these are the points, left out."""
    n = len(points)
    if n == 0:
        return back, np.full(len(at), 0.5)
    apart = points[:, np.newaxis] - points
    losses = []
    for factor in _WIDTHS:
        h = max(width * factor, floor)
        p = (np.exp(-0.5 * (apart / h) ** 2).sum(axis=1) - 1.0) / (h * np.sqrt(2 * np.pi))
        spread_out = np.exp(-0.5 * ((points - points.mean()) / (3 * width * n**0.2)) ** 2) / (3 * width * n**0.2)
        losses.append(-np.log((p + 0.1 * spread_out) / n).mean())
    h = max(width * _WIDTHS[int(np.argmin(losses))], floor)
    apart = (at[:, np.newaxis] - points) / h
    density = np.exp(-0.5 * apart**2).sum(axis=1) / (h * np.sqrt(2 * np.pi))
    cdf = ndtr(apart).sum(axis=1)
    size = np.full(len(at), float(n))
    density[own] -= 1.0 / (h * np.sqrt(2 * np.pi))
    size[own] -= 1.0
    cdf[own] -= 0.5
    return (np.maximum(density, 0.0) + back) / (size + 1.0), (cdf + 0.5) / (size + 1.0)


def smoothed_bins(train: Cells, y: np.ndarray, n_classes: int, other: Cells, bins: int = 100) -> np.ndarray:
    """Naive Bayes of fine bins, smoothed along the ranks of the rows; weighted like `kernel_naive_bayes`.

    A column has one width of the kernel, with the greatest leave-one-out likelihood given the class.
    """
    here, there = (np.zeros((len(cells.codes), n_classes, cells.numbers.shape[1])) for cells in (train, other))
    for j, column in enumerate(train.numbers.T):
        known = np.flatnonzero(~np.isnan(column))
        if len(known):
            cuts = np.unique(np.quantile(column[known], np.arange(1, bins) / bins))
            code = np.searchsorted(cuts, column[known], side="right")
            table = np.zeros((n_classes, len(cuts) + 1))
            np.add.at(table, (y[known], code), 1.0)
            full, less = _smoothed_log_shares(table)
            here[known, :, j] = full[:, code].T
            here[known, y[known], j] = less[y[known], code]
            present = np.flatnonzero(~np.isnan(other.numbers[:, j]))
            there[present, :, j] = full[:, np.searchsorted(cuts, other.numbers[present, j], side="right")].T
    here = np.concatenate([here, categorical_factors(train, y, n_classes, None)], axis=2)
    there = np.concatenate([there, categorical_factors(train, y, n_classes, other)], axis=2)
    return weighted_posterior(here, there, y, n_classes)


def _smoothed_log_shares(table: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return log p(bin | y), (C, B), of all rows, and in each cell of all but one of its rows."""
    of_all, totals = table.sum(axis=0), table.sum(axis=1, keepdims=True)
    ranks = (np.cumsum(of_all) - 0.5 * of_all) / of_all.sum() * 100.0
    pooled = (of_all + 1.0) / (of_all.sum() + len(of_all))
    best, chosen = -np.inf, (table, table)
    for width in (0.0, *_BIN_WIDTHS):
        kernel = np.eye(len(ranks))
        if width:
            kernel = np.exp(-0.5 * ((ranks[:, np.newaxis] - ranks) / width) ** 2) * of_all
            kernel /= np.maximum(kernel.sum(axis=1, keepdims=True), 1e-300)
        smooth = table @ kernel + pooled
        less = np.log(np.maximum(smooth - np.diag(kernel), 1e-12) / np.maximum(totals, 1e-9))
        likelihood = float((table * less).sum())
        if likelihood > best:
            best, chosen = likelihood, (np.log(smooth / (totals + 1.0)), less)
    return chosen
