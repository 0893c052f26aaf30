"""Rows of the ablations as arrays, and what several candidates count in them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import polars as pl
from scipy.special import logsumexp, ndtri

from posteriori.learning.log_linear import LogLinear, fit_log_linear


@dataclass(frozen=True)
class Cells:
    """Rows as numbers (n, p), NaN where missing, and codes (n, q), 0 where missing, below `widths` (q,)."""

    numbers: np.ndarray
    codes: np.ndarray
    widths: np.ndarray

    @classmethod
    def of(cls, X: pl.DataFrame) -> Cells:
        """Return the cells of a table. A column of two numbers is one of categories."""
        numbers, codes, widths = [np.empty((X.height, 0))], [np.empty((X.height, 0), np.int64)], []
        for column in X:
            if column.dtype.is_numeric() and column.drop_nulls().n_unique() > 2:
                numbers.append(column.cast(pl.Float64).fill_null(np.nan).to_numpy()[:, np.newaxis])
            else:
                code = column.cast(pl.String).rank("dense").fill_null(0).cast(pl.Int64).to_numpy()
                codes.append(code[:, np.newaxis])
                widths.append(int(code.max(initial=0)) + 1)
        return cls(np.hstack(numbers), np.hstack(codes), np.array(widths, np.int64))

    def __getitem__(self, rows: np.ndarray) -> Cells:
        return Cells(self.numbers[rows], self.codes[rows], self.widths)

    def as_frame(self) -> pl.DataFrame:
        """Return the cells as a table that estimators read."""
        numbers = {f"n{j}": pl.Series(column).fill_nan(None) for j, column in enumerate(self.numbers.T)}
        codes = {f"c{j}": pl.Series(column).replace(0, None).cast(pl.String) for j, column in enumerate(self.codes.T)}
        return pl.DataFrame(numbers | codes)


def binned(train: Cells, other: Cells, bins: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all cells of both as codes, numbers in bins of equal weight in the training rows, and the widths."""
    parts, others, widths = [train.codes], [other.codes], [train.widths]
    for mine, theirs in zip(train.numbers.T, other.numbers.T, strict=True):
        known = mine[~np.isnan(mine)]
        cuts = np.unique(np.quantile(known, np.arange(1, bins) / bins)) if len(known) else np.empty(0)
        for column, place in ((mine, parts), (theirs, others)):
            place.append(np.where(np.isnan(column), 0, 1 + np.searchsorted(cuts, column, side="left"))[:, np.newaxis])
        widths.append(np.array([len(cuts) + 2]))
    return np.hstack(parts), np.hstack(others), np.concatenate(widths)


def normal_scores(train: Cells, other: Cells) -> tuple[Cells, Cells]:
    """Return both with every number mapped to the normal score of its rank in the training rows (mid-ranks)."""
    mapped = [np.array(train.numbers), np.array(other.numbers)]
    for j, column in enumerate(train.numbers.T):
        values, counts = np.unique(column[~np.isnan(column)], return_counts=True)
        if len(values):
            scores = ndtri((np.cumsum(counts) - 0.5 * counts) / counts.sum())
            for part in mapped:
                part[:, j] = np.where(np.isnan(part[:, j]), np.nan, np.interp(part[:, j], values, scores))
    return Cells(mapped[0], train.codes, train.widths), Cells(mapped[1], other.codes, other.widths)


def pair_counts(codes: np.ndarray, y: np.ndarray, widths: np.ndarray, n_classes: int) -> np.ndarray:
    """Return n(y, x_i, x_j) with the codes of all columns side by side, (C, S, S)."""
    starts = np.concatenate([[0], np.cumsum(widths)])
    hot = np.zeros((len(codes), starts[-1]))
    hot[np.arange(len(codes))[:, np.newaxis], codes + starts[:-1]] = 1.0
    return np.stack([hot[y == c].T @ hot[y == c] for c in range(n_classes)])


def information_of(counts: np.ndarray, widths: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return I(x_j; y), (d,), I(x_i; x_j | y) and I(x_i, x_j; y), (d, d), in nats."""
    starts = np.concatenate([[0], np.cumsum(widths)])
    d, n = len(widths), counts[:, : widths[0], : widths[0]].sum()
    own, shared, both = np.zeros(d), np.zeros((d, d)), np.zeros((d, d))

    def entropy(table: np.ndarray) -> float:
        p = table[table > 0] / n
        return float(-(p * np.log(p)).sum())

    of_y = entropy(counts[:, : widths[0], : widths[0]].sum(axis=(1, 2)))
    for i in range(d):
        for j in range(i, d):
            table = counts[:, starts[i] : starts[i + 1], starts[j] : starts[j + 1]]
            all_three, with_i, with_j = entropy(table), entropy(table.sum(axis=2)), entropy(table.sum(axis=1))
            both[i, j] = both[j, i] = of_y + entropy(table.sum(axis=0)) - all_three
            shared[i, j] = shared[j, i] = with_i + with_j - of_y - all_three
        own[i] = both[i, i]
    return own, shared, both


def categorical_factors(train: Cells, y: np.ndarray, n_classes: int, other: Cells | None) -> np.ndarray:
    """Return log p(x_j | y) of categories, (n, C, q), of the training rows without themselves if `other` is None."""
    cells = train if other is None else other
    factors = np.zeros((len(cells.codes), n_classes, len(train.widths)))
    own = np.zeros((len(cells.codes), n_classes))
    if other is None:
        own[np.arange(len(y)), y] = 1.0
    for j, width in enumerate(train.widths.tolist()):
        table = np.bincount(y * width + train.codes[:, j], minlength=n_classes * width).reshape(n_classes, width)
        table[:, 0] = 0  # missing
        pooled = (table.sum(axis=0) + 1.0) / (table.sum() + width)
        counts = table[:, cells.codes[:, j]].T - own
        known = cells.codes[:, j, np.newaxis] > 0
        p = (np.maximum(counts, 0) + pooled[cells.codes[:, j], np.newaxis]) / (table.sum(axis=1) - own * known + 1.0)
        factors[:, :, j] = np.where(known, np.log(p), 0.0)
    return factors


def weighted_posterior(features: np.ndarray, others: np.ndarray, y: np.ndarray, n_classes: int) -> np.ndarray:
    """Return the log posterior of others, with weights that are learned from the features of the training rows."""
    d = features.shape[2]
    prior = np.log(np.bincount(y, minlength=n_classes) / len(y))
    centre = LogLinear(prior, np.full(d, min(1.0, 4.0 / d)))
    found = fit_log_linear(features, y, np.ones(len(y)), centre, 0.1, np.eye(d) * 2.0)
    log_joint = others @ found.weight + found.bias
    return log_joint - logsumexp(log_joint, axis=1, keepdims=True)
