"""A logarithmic opinion pool: the posteriors of several models, of rows of which all, some or no cells are known."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.model.blocks import known_cells
from posteriori.model.generative_model import GenerativeModel, has_finite_sum, log_normalised
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Batch

FLOOR = -700.0  # nats; smaller ones are clipped, so that none decides alone. exp(−700) is still above 0.


WHOLE = (1.0, 0.0, 0.0, 0.0)  # the parts of a row of which all is known, within the ranges

# How the parts of a pool follow from the known share s of a row. The exponents were chosen on the first half of the
# tables (docs/measured/pool_notebook.md).
_FLAT = 2.0  # of 1 − sᵃ: near whole rows little changes, so that an irrelevant cell changes nothing
_RARE = 3.0  # of 1 − s, the part of the distribution that answers where hardly anything is known
LEAST_SHARE = 1e-6  # of all cells, in a model file: no division overflows
# The share of the mean of the members outside of the training rows: at least, of classes and of cells of a number, and
# half of the rest from so many nats of disagreement on (docs/guide/tasks/new_places.md).
MEAN_SHARE, MEAN_SHARE_OF_NUMBERS, HALF_DISAGREEMENT = 0.15, 0.5, 3.0


@dataclass(frozen=True)
class KnownCells:
    r"""How much of a row is known, compared with the training rows.

    The known share by some weights of the columns is max(known / typical, max_Q known in Q / Q), and at most 1: with
    the sums of the weights of the known cells, of those of the median training row, and of the patterns Q. So a row
    with the gaps that training rows often have counts as a whole one. In s a column has a weight u as large as the
    posterior depends on it, in c they are all equal. The weights of a row are

    .. math:: h\, e + (1 - h)\, \bigl(g\, w + (1 - g)\, v\bigr), \quad g = 1 - (1 - s^a)^2, \quad
              h = (1 - \min(s, c))^3

    of those of whole rows, w, of partial rows, v, and of rows of which hardly anything is known, e.
    """

    weight: Array  # (d,): u, ≥ 0, in total 1; 0 for columns of one value, if others have more
    # the weight, and the number of cells, of the median training row of which something is known; 0 if gaps are
    # evidence, or columns hold counts, whose absence is known: then every row is a whole one
    typical: float
    typical_number: float
    patterns: Array  # (P, d) bool: sets of known columns that are frequent in the training rows
    power: float  # a ≥ 1

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless these are the cells of so many columns."""
        check_numbers("the weights of known columns", self.weight, (n_columns,), 0.0, 1.0)
        patterns = self.patterns
        require(patterns.ndim == 2 and patterns.dtype == np.bool_, "the patterns of known cells are no table")
        require(patterns.shape[1] == n_columns, "a pattern of known cells is of other columns")
        require(bool((patterns @ self.weight >= LEAST_SHARE).all()), "a pattern of known cells is empty")
        for typical in (self.typical, self.typical_number):
            check_numbers("the weight of known cells", np.array([typical]), (1,), 0.0)
            require(not 0 < typical < LEAST_SHARE, "the weight of known cells is a small part of all")
        require(
            (self.typical > 0) == (self.typical_number > 0), "the number of known cells is not that of their weight"
        )
        check_numbers("the power of the known share", np.array([self.power]), (1,), 1.0)

    @property
    def counted(self) -> Array:
        """1 for each column that counts, else 0, (d,)."""
        return (self.weight > 0).astype(np.float64)

    def shares(self, known: Any) -> Any:
        """Return the known shares s and c of rows, (n, 2), from which cells are known, (n, d).

        Arrays may be of any namespace: NumPy computes, and ndonnx writes ONNX.
        """
        if self.typical <= 0:
            return np.ones((len(known), 2))
        pairs = (self.weight, self.typical), (self.counted, self.typical_number)
        xp = known.__array_namespace__()
        return xp.stack([self._share(known * weight, weight, typical) for weight, typical in pairs], axis=1)

    def _share(self, of_cells: Array, weight: Array, typical: float) -> Any:
        """Return the known share of rows, (n,), from the weights of their known cells, (n, d)."""
        xp = of_cells.__array_namespace__()
        share = xp.sum(of_cells, axis=1) / typical  # sums over each row, so that no bit depends on the rows beside it
        for pattern in self.patterns:
            share = xp.maximum(share, xp.sum(of_cells * pattern, axis=1) / float((pattern * weight).sum()))
        return xp.minimum(share, xp.ones_like(share))

    def parts(self, known: Any) -> Any:
        """Return the parts of w, v and e in the weights of rows, (n, 3), from which cells are known, (n, d)."""
        return self.parts_of(self.shares(known))

    def parts_of(self, shares: Any) -> Any:
        """Return the same from the known shares of rows, (n, 2)."""
        xp = shares.__array_namespace__()
        nothing = (1.0 - xp.min(shares, axis=1)) ** _RARE
        whole = (1.0 - nothing) * (1.0 - (1.0 - shares[:, 0] ** self.power) ** _FLAT)
        return xp.stack([whole, 1.0 - nothing - whole, nothing], axis=1)


def parts_or_none(parts: Array) -> Array | None:
    """Return the parts of rows, or None if all are whole ones within the ranges."""
    return None if (parts[:, 0] == 1.0).all() and not parts[:, 3].any() else parts


def _is_complete(batch: Batch) -> bool:
    if np.isnan(batch.numbers.values).any() or not batch.codes.values.all():
        return False
    return not batch.schema.of_kind("counts") or bool(known_cells(batch).all())


@dataclass(frozen=True)
class PartialRows:
    """The weights towards which a pool goes as less of a row is known: first v, then e, which alone is left at last.

    The weights e are those of members that are joint distributions, in total 1: with one known cell, their posterior is
    the share of the classes in the training rows with this cell. Where no member is one, e = v. The biases are
    log π − Σ_m v_m log p_m(y | nothing known), and with e for v, so that nothing known gives the prior π.
    """

    weight: Array  # (M,): v, ≥ 0
    bias: Array  # (C,): in nats
    nothing_weight: Array  # (M,): e, ≥ 0
    nothing_bias: Array  # (C,): in nats
    cells: KnownCells

    def check_against(self, n_members: int, n_classes: int, n_columns: int) -> None:
        """Raise ValueError unless weights and biases fit the members, classes and columns."""
        for weight in (self.weight, self.nothing_weight):
            check_numbers("the weights for partial rows", weight, (n_members,), 0.0)
        for bias in (self.bias, self.nothing_bias):
            check_numbers("the biases for partial rows", bias, (n_classes,))
        self.cells.check_against(n_columns)

    def of_members(self, kept: Array) -> PartialRows:
        """Return those of some members, by their positions."""
        return replace(self, weight=self.weight[kept], nothing_weight=self.nothing_weight[kept])

    def moved(self, log_ratio: Array) -> PartialRows:
        """Return those under another prior, by the log of its ratio to the former one, (C,)."""
        return replace(self, bias=self.bias + log_ratio, nothing_bias=self.nothing_bias + log_ratio)


@dataclass(frozen=True)
class Extrapolation:
    r"""How a pool predicts rows with a number outside of the range of the training rows, or a category unseen in them.

    A product of members, p, is as sure as the surest of them, also where only one extrapolates wildly; their mean, q,
    is not. Outside a mixture of both answers, in which q counts the more, the more it contradicts p:

    .. math:: (1 - \mu)\, p + \mu\, q, \quad q \propto \sum_m w_m p_m, \quad
              \mu = \mu_0 + (1 - \mu_0) \frac{k^4}{k^4 + k_0^4}, \quad k = \mathrm{KL}(q \| p)

    with k₀ = 3 nats, and μ₀ = 0.15 of classes, 0.5 of numbers. Trees that correct the others have no part in q.
    """

    ranges: ColumnRanges  # of the training rows
    in_mean: Array  # (M,) bool: the members that q is the mean of
    log_ratio: Array  # (C,): log of the class prior over that of the training rows, which q is moved by
    least: float = MEAN_SHARE  # μ₀

    @classmethod
    def of(cls, ranges: ColumnRanges, models: Sequence[GenerativeModel], log_ratio: Array) -> Extrapolation:
        """Return that of a pool of some models; sums of trees are not in the mean unless all are."""
        corrects = np.array([model.is_sum_of_trees for model in models])
        return cls(ranges, ~corrects | corrects.all(), log_ratio)

    def check_against(self, n_members: int, n_classes: int, n_columns: int) -> None:
        """Raise ValueError unless these are of so many members, classes and columns."""
        self.ranges.check_against(n_columns)
        shape = self.in_mean.shape, self.in_mean.dtype
        require(shape == ((n_members,), np.dtype(np.bool_)), "there is not one flag per member for their mean")
        require(bool(self.in_mean.any()), "no member is in their mean")
        check_numbers("the log ratios of class priors", self.log_ratio, (n_classes,))
        check_numbers("the share of the mean of the members", np.array([self.least]), (1,), 0.0, 1.0)
        require(0.0 < self.least < 1.0, "the mean of the members has no share, or there is nothing else")

    def outside(self, batch: Batch) -> Array:
        """Return which cells of a batch lie outside, (n, d) booleans: numbers beyond the ranges, unseen categories."""
        outside = self.ranges.outside(batch)
        for j, rows in batch.unseen_categories:
            outside[rows, j] = True
        return outside

    def log_mixture(self, log_product: Array, log_posteriors: Array, weight: Array) -> Array:
        """Return the log of the mixture, (n, C), from log p, (n, C), those of the members, (n, C, M), and w, (n, M)."""
        weight = weight * self.in_mean
        total = weight.sum(axis=1, keepdims=True)
        share = np.where(total > 0, weight / np.where(total > 0, total, 1.0), self.in_mean / max(self.in_mean.sum(), 1))
        with np.errstate(divide="ignore"):
            log_mean = np.logaddexp.reduce(log_posteriors + np.log(share)[:, np.newaxis, :], axis=2)
        log_mean = log_normalised(log_mean + self.log_ratio)
        mean = np.exp(log_mean)
        with np.errstate(invalid="ignore"):  # of classes with no probability
            contradiction = np.where(mean > 0, mean * (log_mean - log_product), 0.0).sum(axis=1, keepdims=True)
        fourth = np.maximum(contradiction, 0.0) ** 4
        of_mean = self.least + (1.0 - self.least) * fourth / (fourth + HALF_DISAGREEMENT**4)
        return np.asarray(np.logaddexp(np.log1p(-of_mean) + log_product, np.log(of_mean) + log_mean))


@dataclass(frozen=True)
class Pool:
    """A logarithmic opinion pool: one weight per member, and one bias per class.

    Weights and biases of a row depend on how much of it is known (`KnownCells`): they are means of (w, b) and of those
    of `partial`; without it, each row is a whole one. Rows with a cell outside are answered by `extrapolation`.
    """

    weight: Array  # (M,): w, ≥ 0
    bias: Array  # (C,): b, in nats
    partial: PartialRows | None = None
    extrapolation: Extrapolation | None = None

    @property
    def fading(self) -> PartialRows | None:
        """The weights and biases towards which the pool goes as less is known; None if every row is a whole one."""
        return self.partial if self.partial is not None and self.partial.cells.typical > 0 else None

    @property
    def used(self) -> Array:
        """Which members have a weight in some row, (M,); one at least."""
        used = self.weight > 0
        if self.fading is not None:
            used = used | (self.fading.weight > 0) | (self.fading.nothing_weight > 0)
        return used if used.any() else np.arange(len(used)) == int(self.weight.argmax())

    def parts(self, batch: Batch) -> Array | None:
        """Return the parts of w, v and e in the weights of the rows of a batch, and whether a row lies outside, (n, 4).

        It is None if all rows are whole ones within the ranges.
        """
        outside = None if self.extrapolation is None else self.extrapolation.outside(batch).any(axis=1)
        if self.fading is not None and not _is_complete(batch):
            parts = self.fading.cells.parts(known_cells(batch))
        elif outside is not None and outside.any():
            parts = np.tile([1.0, 0.0, 0.0], (len(batch), 1))
        else:
            return None
        return parts_or_none(np.column_stack([parts, np.zeros(len(batch)) if outside is None else outside]))

    def asked(self, parts: Array | None) -> Array:
        """Return the positions of the members that rows depend on, by the parts of the rows: of whole ones, fewer."""
        return np.flatnonzero(self.weight) if parts is None and self.weight.any() else np.arange(len(self.weight))

    def log_posterior(self, log_posteriors: Array, parts: Array | None = None) -> Array:
        """Return log p(y | x) in nats, (n, C), from log posteriors of the members, (n, C, M), that are clipped.

        `parts` are those of each row, (n, 4); None if all rows are whole ones within the ranges. No bit of a row
        depends on the other rows: no product of matrices, whose rounding depends on their size, adds up what differs
        between rows.
        """
        of_whole = self.weight != 0.0
        if of_whole.all() or not of_whole.any():
            score: Array = log_posteriors @ self.weight + self.bias
        else:  # a copy in the order of memory of whole rows alone, so that a member for other rows changes no bit
            score = np.ascontiguousarray(log_posteriors[:, :, of_whole]) @ self.weight[of_whole] + self.bias
        if parts is not None and self.partial is not None:
            rows = np.flatnonzero(parts[:, 0] < 1.0)
            weight, bias = self._of_parts(parts[rows])
            score[rows] = (log_posteriors[rows] * weight[:, np.newaxis, :]).sum(axis=2) + bias
        score -= score.max(axis=1, keepdims=True)  # the exponentials cannot overflow
        log_posterior: Array = score - np.log(np.exp(score).sum(axis=1, keepdims=True))
        if parts is not None and self.extrapolation is not None and parts[:, 3].any():
            rows = np.flatnonzero(parts[:, 3])
            mixed = self.extrapolation.log_mixture(
                log_posterior[rows], log_posteriors[rows], self._weights(parts[rows])
            )
            log_posterior[rows] = mixed
        return log_posterior

    def _weights(self, parts: Array) -> Array:
        """Return the weights of rows, (n, M), by their parts, (n, 4)."""
        return np.tile(self.weight, (len(parts), 1)) if self.partial is None else self._of_parts(parts)[0]

    def _of_parts(self, parts: Array) -> tuple[Array, Array]:
        """Return the weights, (n, M), and biases, (n, C), of rows by their parts, (n, 4)."""
        partial = self.partial
        assert partial is not None
        whole, some, nothing = parts.T[:3, :, np.newaxis]
        weights = whole * self.weight + some * partial.weight + nothing * partial.nothing_weight
        return weights, whole * self.bias + some * partial.bias + nothing * partial.nothing_bias

    def of_members(self, kept: Array) -> Pool:
        """Return the pool of some members, by their positions."""
        beyond = self.extrapolation and replace(self.extrapolation, in_mean=self.extrapolation.in_mean[kept])
        return Pool(self.weight[kept], self.bias, self.partial and self.partial.of_members(kept), beyond)

    def weights(self, parts: Array | None) -> list[Array]:
        """Return the weights of each member in the product for rows, M times (n,) or a number."""
        return list(self.weight if parts is None else self._weights(parts).T)

    def moved(self, log_ratio: Array) -> Pool:
        """Return the pool under another prior, by the log of its ratio to the former one, (C,)."""
        beyond = self.extrapolation and replace(self.extrapolation, log_ratio=self.extrapolation.log_ratio + log_ratio)
        return Pool(self.weight, self.bias + log_ratio, self.partial and self.partial.moved(log_ratio), beyond)


def clip_log_posteriors(log_posteriors: Array) -> Array:
    """Replace NaN log posteriors by the uniform one, and clip at −700 nats, so that no member can veto a class."""
    # The sum finds NaN in one pass without a temporary array; it is also infinite for −inf, which the clip below mends.
    if not has_finite_sum(log_posteriors):
        log_posteriors = np.where(np.isnan(log_posteriors), -np.log(log_posteriors.shape[1]), log_posteriors)
    return np.maximum(log_posteriors, FLOOR)


def clip_factors(factors: Array, log_prior: Array) -> Array:
    """Return log factors of a member in nats, (n, C, d), which sum with its log prior, (C,), to its clipped posterior.

    What the clip takes from the sum of a class is taken from its columns, in proportion to how much each lowers this
    class against the one that it raises most; from the columns that rule the class out alone, if there are any.
    """
    score = log_prior + factors.sum(axis=2)
    log_posterior = log_normalised(score)
    rows, classes = np.nonzero(~(log_posterior >= FLOOR) & (log_prior > -np.inf))
    if not len(rows):
        return factors
    evidence = np.logaddexp.reduce(score, axis=1)
    evidence[np.isneginf(evidence)] = 0.0
    wanted = clip_log_posteriors(log_posterior)[rows, classes] + evidence[rows] - log_prior[classes]
    of_class, highest = factors[rows, classes], factors.max(axis=1)[rows]
    rules_out = np.isneginf(of_class)
    with np.errstate(invalid="ignore"):  # −inf − −inf, of a column that rules out every class
        against = np.where(rules_out.any(axis=1, keepdims=True), rules_out, highest - of_class)
    kept = np.where(rules_out, 0.0, of_class)
    share = against / np.maximum(against.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
    clipped = factors.copy()
    clipped[rows, classes] = kept + (wanted - kept.sum(axis=1))[:, np.newaxis] * share
    return clipped
