"""A logarithmic opinion pool: the posteriors of several models, of rows of which all, some or no cells are known."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.model.blocks import known_cells
from posteriori.model.generative_model import has_finite_sum
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Batch

FLOOR = -700.0  # nats; smaller ones are clipped, so that none decides alone. exp(−700) is still above 0.


@dataclass(frozen=True)
class KnownCells:
    """How much of a row is known, compared with the training rows: 1 for a row as complete as they were, 0 for none.

    With k known cells, and k_Q of them in the pattern Q, it is max(k / typical, max_Q k_Q / size of Q)^power, and at
    most 1. So a row with the gaps that training rows often have counts as a whole one.
    """

    varies: Array  # (d,) bool: the columns that count, those with more than one value in training
    # of these columns, the number that is known in the median training row of which something is; 0 if gaps are
    # evidence, or columns hold counts, whose absence is known: then every row is a whole one
    typical: float
    patterns: Array  # (P, d) bool: sets of known columns that are frequent in the training rows
    power: float  # ≥ 1

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless these are the cells of so many columns."""
        of_columns = self.varies.shape == (n_columns,) and self.varies.dtype == np.bool_
        require(of_columns, "the columns that vary are missing")
        patterns = self.patterns
        require(patterns.ndim == 2 and patterns.dtype == np.bool_, "the patterns of known cells are no table")
        filled = patterns.shape[1] == n_columns and bool(patterns.any(axis=1).all())
        require(filled, "a pattern of known cells is empty")
        check_numbers("the number of known cells", np.array([self.typical]), (1,), 0.0)
        require(not 0 < self.typical < 0.1, "the number of known cells is a small part of one")
        check_numbers("the power of the known share", np.array([self.power]), (1,), 1.0)

    def whole(self, known: Array) -> Array:
        """Return how much of rows is known, (n,), from which cells are, (n, d)."""
        counted = (known & self.varies).astype(np.float32)
        return self._whole(counted.sum(axis=1), counted @ self.patterns.T)

    def whole_without_each(self, known: Array) -> Array:
        """Return the same without the cell of each column, (d, n)."""
        counted = (known & self.varies).astype(np.float32)
        total, shared = counted.sum(axis=1), counted @ self.patterns.T
        pairs = zip(counted.T, self.patterns.T, strict=True)
        each = [self._whole(total - cells, shared - np.outer(cells, of_pattern)) for cells, of_pattern in pairs]
        return np.array(each).reshape(len(self.varies), len(known))

    def _whole(self, total: Array, shared: Array) -> Array:
        """Return the measure from the number of known cells, (n,), and of those in each pattern, (n, P)."""
        if self.typical <= 0:
            return np.ones(len(total))
        share = total.astype(np.float64) / self.typical
        if len(self.patterns):
            share = np.maximum(share, (shared.astype(np.float64) / self.patterns.sum(axis=1)).max(axis=1))
        whole: Array = np.minimum(share, 1.0) ** self.power
        return whole


def _is_complete(batch: Batch) -> bool:
    """Return whether every cell of a batch is known."""
    if np.isnan(batch.numbers.values).any() or not batch.codes.values.all():
        return False
    return not batch.schema.of_kind("counts") or bool(known_cells(batch).all())


@dataclass(frozen=True)
class PartialRows:
    """The pool of rows of which nothing is known, towards which a pool goes as less of a row is known.

    Its bias is log π − Σ_m v_m log p_m(y | nothing known), so that nothing known gives the prior π.
    """

    weight: Array  # (M,): v, ≥ 0
    bias: Array  # (C,): in nats
    cells: KnownCells

    def check_against(self, n_members: int, n_classes: int, n_columns: int) -> None:
        """Raise ValueError unless weights and biases fit the members, classes and columns."""
        check_numbers("the weights for partial rows", self.weight, (n_members,), 0.0)
        check_numbers("the biases for partial rows", self.bias, (n_classes,))
        self.cells.check_against(n_columns)


@dataclass(frozen=True)
class Pool:
    """A logarithmic opinion pool: one weight per member, and one bias per class.

    Weights and biases of a row are g·(w, b) + (1 − g)·(v, b⁰), where g says how much of it is known (`KnownCells`) and
    v and b⁰ are those of `partial`; without it, g = 1.
    """

    weight: Array  # (M,): w, ≥ 0
    bias: Array  # (C,): b, in nats
    partial: PartialRows | None = None

    @property
    def fading(self) -> PartialRows | None:
        """The weights and biases towards which the pool goes as less is known; None if every row is a whole one."""
        return self.partial if self.partial is not None and self.partial.cells.typical > 0 else None

    def whole(self, batch: Batch) -> Array | None:
        """Return g of the rows of a batch, (n,); None if it is 1 for all."""
        if self.fading is None or _is_complete(batch):
            return None
        whole = self.fading.cells.whole(known_cells(batch))
        return None if (whole == 1.0).all() else whole

    def log_posterior(self, log_posteriors: Array, whole: Array | None = None) -> Array:
        """Return log p(y | x) in nats, (n, C), from log posteriors of the members, (n, C, M), that are clipped.

        `whole` is g of each row, (n,); None if it is 1 for all.
        """
        score: Array = log_posteriors @ self.weight + self.bias
        if whole is not None and self.partial is not None:
            rows = np.flatnonzero(whole < 1.0)
            g = whole[rows, np.newaxis]
            unknown = log_posteriors[rows] @ self.partial.weight + self.partial.bias
            score[rows] = g * score[rows] + (1.0 - g) * unknown
        score -= score.max(axis=1, keepdims=True)  # the exponentials cannot overflow
        log_posterior: Array = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
        return log_posterior

    def of_members(self, kept: Array) -> Pool:
        """Return the pool of some members, by their positions."""
        partial = self.partial and replace(self.partial, weight=self.partial.weight[kept])
        return Pool(self.weight[kept], self.bias, partial)

    def weights(self, whole: Array | None) -> list[Array]:
        """Return the weights of each member for rows, M times (n,) or a number."""
        if whole is None or self.partial is None:
            return list(self.weight)
        pairs = zip(self.weight, self.partial.weight, strict=True)
        return [whole * w + (1.0 - whole) * v for w, v in pairs]

    def moved(self, log_ratio: Array) -> Pool:
        """Return the pool under another prior, by the log of its ratio to the former one, (C,)."""
        partial = self.partial and replace(self.partial, bias=self.partial.bias + log_ratio)
        return Pool(self.weight, self.bias + log_ratio, partial)


def clip_log_posteriors(log_posteriors: Array) -> Array:
    """Replace NaN log posteriors by the uniform one, and clip at −700 nats, so that no member can veto a class."""
    # The sum finds NaN in one pass without a temporary array; it is also infinite for −inf, which the clip below mends.
    if not has_finite_sum(log_posteriors):
        log_posteriors = np.where(np.isnan(log_posteriors), -np.log(log_posteriors.shape[1]), log_posteriors)
    return np.maximum(log_posteriors, FLOOR)
