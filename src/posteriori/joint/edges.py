"""The table of a pair of columns: p(child | parent) of their codes, smoothed where codes are in an order."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
from scipy.special import ndtri

from posteriori.support.typing import Array

_WIDTHS = (0.03, 0.1, 0.3, 0.9)  # of kernels, in normal scores
_STRENGTHS = (1.0, 8.0)  # rows of the child alone, that each line of a table gets
_LARGEST_CORRELATION = 0.995
_PRIOR = 20.0  # rows that have the shares of all groups, in each group
_STEPS, _PACE = 150, 1.8  # of EM for the shares of tables, and its overrelaxation: below 2 each step still gains
FITS = 6  # of the margins
_STEEPEST = 0.5  # change of λ in a step
_LEAST_SHARE = 1e-3  # of a candidate
_FARTHEST = 25.0  # squared score
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class Axis:
    """The codes of a column: p(code), and whether they are in an order."""

    share: Array  # (K,)
    is_ordered: bool

    @cached_property
    def score(self) -> Array:
        """The normal score Φ⁻¹(P(below) + p/2) of each code, (K,): units and transforms of numbers do not change it."""
        middle = np.cumsum(self.share) - self.share / 2.0
        return np.asarray(ndtri(np.clip(middle, _TINY, 1.0 - np.finfo(np.float64).eps)))

    @cached_property
    def kernels(self) -> list[Array]:
        """How a row of each code is spread over the codes by each width, (K, K), in lines that sum to 1."""
        apart = (self.score[:, np.newaxis] - self.score) ** 2
        room = np.maximum(self.share, _TINY) * np.exp(np.minimum(self.score**2, _FARTHEST) / 2.0)  # width among scores
        found = []
        for width in _WIDTHS:
            spread = np.exp(-apart / (2.0 * width**2)) * room
            found.append(spread / spread.sum(axis=1, keepdims=True))
        return found


def axis_of(counts: Array, is_ordered: bool) -> Axis:
    """Return the axis of codes with these counts, and one row more that is spread evenly."""
    share = counts + 1.0 / max(len(counts), 1)
    return Axis(share / share.sum(), is_ordered)


def smoothed_shares(counts: Array, axis: Axis, is_part: bool) -> Array:
    """Return p(code) by counts of rows, backed off to that of all rows, (K,); of a part of them spread by a kernel."""
    spread = counts @ axis.kernels[2] if axis.is_ordered and is_part else counts
    return np.asarray((spread + _STRENGTHS[-1] * axis.share) / (counts.sum() + _STRENGTHS[-1]))


def candidates(counts: Array, parent: Axis, child: Axis, alone: Array, base: Array) -> Iterator[Callable[[], Array]]:
    r"""Yield the makers of tables p(child | parent) of several smoothings, (K of the parent, K).

    The counts are spread by a kernel along each column whose codes are in an order, and each line gets s rows of a
    base,

    .. math:: p(l \mid k) = \frac{(H^\top n G)_{kl} + s\,b_{kl}}{\sum_l (H^\top n G)_{kl} + s}.

    Of two columns of numbers the table of a normal density of their scores is one more, with their correlation. The
    last one is the base.

    Parameters
    ----------
    counts : ndarray (K of the parent, K)
    parent, child : Axis
    alone : ndarray (K,)
        p(child).
    base : ndarray (K of the parent, K)
        What lines are backed off to: p(child), or in a part of the rows the table of all of them.
    """

    def spread(width: int, strength: float) -> Array:
        found = parent.kernels[width].T @ counts if parent.is_ordered else counts
        found = found @ child.kernels[width] if child.is_ordered else found
        return np.asarray((found + strength * base) / (found.sum(axis=1, keepdims=True) + strength))

    for width in range(len(_WIDTHS)) if parent.is_ordered or child.is_ordered else (0,):
        yield from (partial(spread, width, strength) for strength in _STRENGTHS)
    if parent.is_ordered and child.is_ordered:
        yield partial(_normal, counts, parent, child, alone)
    yield lambda: base


def correlation(counts: Array, parent: Axis, child: Axis) -> float:
    """Return the correlation of the scores of pairs, as far as it is below 0.995."""
    total = max(float(counts.sum()), _TINY)
    lines, columns = counts.sum(axis=1) / total, counts.sum(axis=0) / total
    centred = parent.score - lines @ parent.score, child.score - columns @ child.score
    spread = np.sqrt((lines @ centred[0] ** 2) * (columns @ centred[1] ** 2))
    product = float(centred[0] @ counts @ centred[1]) / total
    return float(np.clip(product / max(spread, _TINY), -_LARGEST_CORRELATION, _LARGEST_CORRELATION))


def _normal(counts: Array, parent: Axis, child: Axis, alone: Array) -> Array:
    """Return the table of a normal density of the scores, (K of the parent, K)."""
    rho = correlation(counts, parent, child)
    apart = child.score - rho * parent.score[:, np.newaxis]
    log_ratio = -(apart**2) / (2.0 * (1.0 - rho**2)) + child.score**2 / 2.0  # to the density of the child alone
    found = np.exp(log_ratio - log_ratio.max(axis=1, keepdims=True)) * np.maximum(alone, _TINY)
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def learned_mixture(folds: Sequence[Array], parent: Axis, child: Axis, group: Array) -> Array:
    r"""Return the shares of the candidates that predict the child best in folds that their counts leave out.

    .. math:: \max_w \sum_f \sum_{kl} n^f_{kl} \log \sum_m w_m \, p_m^{-f}(l \mid k)

    Parameters
    ----------
    folds : sequence of ndarray (K of the parent, K)
        The counts of each fold of the rows.
    parent, child : Axis
    group : ndarray (K of the parent,)
        Of the codes of the parent: each group has shares of its own, with those of all groups as some rows more.

    Returns
    -------
    ndarray (M, K of the parent)

    References
    ----------
    Stone, Cross-validatory choice and assessment of statistical predictions, JRSS B 36 (1974); Smyth & Wolpert,
    Linearly combining density estimators via stacking, Machine Learning 36 (1999).
    """
    total = np.sum(folds, axis=0)
    predicted, weight, of_group = [], [], []
    for counts in folds:
        places = np.nonzero(counts)
        base = np.broadcast_to(child.share, counts.shape)
        each = candidates(total - counts, parent, child, child.share, base)
        predicted.append(np.stack([made()[places] for made in each]))
        weight.append(counts[places])
        of_group.append(group[places[0]])
    p, n, of_row = np.concatenate(predicted, axis=1), np.concatenate(weight), np.concatenate(of_group)
    even = np.full(len(p), 1.0 / len(p))
    of_all = _shares(p, n, even, 0.0)
    of_groups = np.stack(
        [_shares(p[:, of_row == k], n[of_row == k], of_all, _PRIOR) for k in range(int(group.max()) + 1)]
    )
    return np.asarray(of_groups[group].T)


def _shares(p: Array, n: Array, start: Array, prior: float) -> Array:
    """Return the shares of tables that give probabilities (M, n) to rows of weights (n,), with rows of the start."""
    share = start
    if not n.sum() > 0:
        return share
    for _ in range(_STEPS):
        step = share * (p @ (n / np.maximum(share @ p, _TINY)) / n.sum()) ** _PACE
        share = (n.sum() * step / step.sum() + prior * start) / (n.sum() + prior)
    return np.asarray(share)


def table_of(
    counts: Array, mixture: Array, parent: Axis, child: Axis, alone: Array, base: Array | None = None
) -> Array:
    """Return p(child | parent), (K of the parent, K): the mixture of candidates, but for the least of them."""
    base = np.broadcast_to(alone, counts.shape) if base is None else base
    found = np.zeros(counts.shape)
    for share, made in zip(mixture, candidates(counts, parent, child, alone, base), strict=True):
        if share.max() >= _LEAST_SHARE:
            found += share[:, np.newaxis] * made()
    return np.asarray(found / found.sum(axis=1, keepdims=True))


def with_margins(table: Array, of_parent: Array, alone: Array, tilt: Tilt | None = None, fits: int = FITS) -> Array:
    """Return p(child | parent) near a table, with the distribution of the child alone, and a stated correlation.

    Kernels widen the distribution of the child, and weaken its dependence on the parent. Iterative proportional fitting
    of p(parent, child) sets that back.

    References
    ----------
    Deming & Stephan, On a least squares adjustment of a sampled frequency table, Annals of Mathematical Statistics 11
    (1940). Csiszár, I-divergence geometry of probability distributions, Annals of Probability 3 (1975).
    """
    joint = table * of_parent[:, np.newaxis]
    for _ in range(fits):
        joint = joint if tilt is None else joint * tilt.factor(joint, of_parent, alone)
        joint = joint * (alone / np.maximum(joint.sum(axis=0), _TINY))
        joint *= (of_parent / np.maximum(joint.sum(axis=1), _TINY))[:, np.newaxis]
    lines = joint.sum(axis=1, keepdims=True)
    return np.asarray(np.where(lines > 0, joint / np.maximum(lines, _TINY), alone))


@dataclass(frozen=True)
class Tilt:
    """The correlation that a table gives the scores of two columns of numbers."""

    correlation: float
    parent: Axis
    child: Axis

    @classmethod
    def of(cls, counts: Array, parent: Axis, child: Axis, of_parent: Array, base: Array | None) -> Tilt | None:
        """Return that of counts, and of some rows of a base if there is one; None unless both columns hold numbers."""
        if not (parent.is_ordered and child.is_ordered):
            return None
        more = 0.0 if base is None else _STRENGTHS[-1] * of_parent[:, np.newaxis] * base
        return cls(correlation(counts + more, parent, child), parent, child)

    def factor(self, joint: Array, of_parent: Array, alone: Array) -> Array:
        """Return exp(λ s t) of the scores, (K of the parent, K), with λ by one step of Newton's method."""
        s, t = self.parent.score, self.child.score
        means = float(of_parent @ s), float(alone @ t)
        variance = float(of_parent @ (s - means[0]) ** 2) * float(alone @ (t - means[1]) ** 2)
        moment = means[0] * means[1] + self.correlation * float(np.sqrt(variance))
        product, weight = np.outer(s, t), joint / max(float(joint.sum()), _TINY)
        mean = float((weight * product).sum())
        step = (moment - mean) / max(float((weight * (product - mean) ** 2).sum()), _TINY)
        return np.asarray(np.exp(np.clip(step, -_STEEPEST, _STEEPEST) * product))
