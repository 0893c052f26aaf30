r"""Evidence that scores have changed since a reference sample: a conformal test martingale, valid at any time.

Each new score is compared with those of the reference and with all new ones before it. Of the first :math:`t` scores,
these are ranked by bins:

.. math:: p_t = \frac{\#\{i < t : s_i < s_t\} + U_t \, \#\{i \le t : s_i = s_t\}}{t}

with uniform :math:`U_t`. If all scores are exchangeable, :math:`p_1, p_2, \dots` are independent and uniform on [0, 1],
because the earlier new scores join those that a score is compared with; with a fixed sample they would depend on each
other through it. So every bet on them, :math:`\int_0^1 f_b(p) dp = 1` with :math:`f_b \ge 0`, multiplies a capital
fairly. The evidence after :math:`k` batches is the capital of a gambler who gives bet :math:`b` the share
:math:`\frac{1}{B j (j + 1)}` from batch :math:`j` on, and keeps the rest:

.. math:: E_k = \frac{1}{k + 1} + \sum_{j \le k} \frac{1}{j (j + 1)} \frac1B \sum_b
    \prod_{i \text{ in batches } j..k} f_b(p_i)

It is a martingale that starts at 1, so that :math:`P(\sup_k E_k \ge 1/\alpha) \le \alpha` without a change (Ville's
inequality). A change in batch :math:`j` costs only the factor :math:`j (j + 1)`, however many quiet batches precede it.

The bets are :math:`1 + \lambda P_1(2p - 1)`, which gain where scores are larger or smaller than before, and
:math:`1 + \lambda P_2(2p - 1)`, which gain where they are at both ends or in the middle, with Legendre polynomials.

References
----------
Vovk, Gammerman & Shafer, Algorithmic Learning in a Random World, 2nd edition, 2022, chapter 8 (testing
exchangeability). Vovk, Nouretdinov & Gammerman, Testing exchangeability on-line, ICML 2003. Ramdas, Grünwald, Vovk &
Shafer, Game-theoretic statistics and safe anytime-valid inference, Statistical Science 38, 2023. Shin, Ramdas &
Rinaldo, E-detectors, New England Journal of Statistics in Data Science 2, 2024 (sums over starting times).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from scipy.special import logsumexp

from posteriori.support.checks import LARGEST, check_numbers, require
from posteriori.support.typing import Array

FEWEST = 20  # scores of a reference
_SIZES = np.array([0.1, 0.3, 0.6, 0.9])
_LINEAR = np.concatenate([_SIZES, -_SIZES, np.zeros(2 * len(_SIZES))])  # λ of P₁
_SQUARE = np.concatenate([np.zeros(2 * len(_SIZES)), _SIZES, -_SIZES])  # λ of P₂
N_BETS = len(_LINEAR)
_MOST_BINS = 64
_FOR_BINS, _MOST_FOR_BINS = 0.25, 1000  # scores of the reference that only place the bins: a share, and the most
_AT_ONCE = 4096  # rows
DIRECTIONS = ("larger", "smaller", "wider", "narrower")


@dataclass(frozen=True)
class Martingale:
    """Evidence in the scores of batches that they are not exchangeable with a reference.

    Attributes
    ----------
    edges : ndarray (K,)
        The scores between bins, ascending: a score is in bin k if k edges are less than it.
    counts : ndarray (K + 1,)
        Scores of the reference and of all batches in each bin.
    log_capital : ndarray (B,)
        Natural logarithm of the capital of each bet; −∞ before the first batch.
    n_batches : int
    """

    edges: Array
    counts: Array
    log_capital: Array
    n_batches: int = 0

    @classmethod
    def of(cls, reference: Array, rng: np.random.Generator) -> Martingale:
        """Start from a reference, (n,): a quarter of it, drawn at random, places the bins, and the rest counts.

        Bins that all scores had placed would not treat the reference and new scores alike. −∞ has a bin of its own.
        """
        shuffled = rng.permutation(reference)
        n = min(int(_FOR_BINS * len(shuffled)), _MOST_FOR_BINS)
        levels = np.linspace(0.0, 1.0, _MOST_BINS + 1)[1:-1]
        edges = np.unique(np.quantile(shuffled[:n], levels, method="inverted_cdf"))
        edges = np.append(-np.inf, edges[np.isfinite(edges)])
        counts = np.bincount(np.searchsorted(edges, shuffled[n:]), minlength=len(edges) + 1).astype(np.float64)
        return cls.starting(edges, counts)

    @classmethod
    def starting(cls, edges: Array, counts: Array) -> Martingale:
        """Return the evidence before the first batch."""
        return cls(edges, counts, np.full(N_BETS, -np.inf))

    def after(self, scores: Array, rng: np.random.Generator) -> Martingale:
        """Return the evidence after one more batch of scores, (n,); none of them is no batch."""
        if not len(scores):
            return self
        bins = np.searchsorted(self.edges, scores)
        k = self.n_batches + 1
        log_capital = np.logaddexp(self.log_capital, -np.log(k * (k + 1.0) * N_BETS))
        counts = self.counts
        for start in range(0, len(bins), _AT_ONCE):
            some = bins[start : start + _AT_ONCE]
            log_capital = log_capital + log_gains(p_values(some, counts, rng.random(len(some))))
            counts = counts + np.bincount(some, minlength=len(counts))
        return replace(self, counts=counts, log_capital=log_capital, n_batches=k)

    @property
    def log_e(self) -> float:
        """Log E, the natural logarithm of the evidence; 0 before the first batch."""
        return float(logsumexp(np.append(self.log_capital, -np.log(self.n_batches + 1.0))))

    @property
    def direction(self) -> str:
        """How scores have changed, by the bets with the largest capital: one of `DIRECTIONS`."""
        return DIRECTIONS[int(np.argmax(self.log_capital)) // len(_SIZES)]

    def shares(self, scores: Array) -> tuple[Array, Array]:
        """Return the share of each bin among the scores seen so far, and among others, (n,)."""
        now = np.bincount(np.searchsorted(self.edges, scores), minlength=len(self.counts))
        return self.counts / self.counts.sum(), now / len(scores)

    def check(self) -> None:
        """Raise ValueError if values that come from a file are inconsistent."""
        edges = self.edges
        require(edges.ndim == 1 and len(edges) > 0 and edges[0] == -np.inf, "the edges of bins do not start at −∞")
        require(bool(np.all(np.diff(edges) > 0)), "the edges of bins do not ascend")
        check_numbers("the edges of bins", edges[1:], (len(edges) - 1,))
        check_numbers("the counts of scores", self.counts, (len(edges) + 1,), 0.0)
        require(self.counts.sum() > 0, "there are no scores of a reference")
        require(self.n_batches >= 0, "the number of batches is negative")
        low, high = (-LARGEST, LARGEST) if self.n_batches else (-np.inf, -np.inf)
        check_numbers("the capital of each bet", self.log_capital, (N_BETS,), low, high)


def p_values(bins: Array, counts: Array, uniform: Array) -> Array:
    """Return the conformal p-value of each score among those counted and those before it, (n,) in [0, 1].

    Parameters
    ----------
    bins : ndarray (n,)
        The bins of the scores, in order.
    counts : ndarray (K,)
        Earlier scores in each bin.
    uniform : ndarray (n,)
        Uniform numbers in [0, 1), for scores in the same bin.

    Examples
    --------
    >>> p_values(np.array([1, 1]), np.array([1.0, 0.0]), np.array([0.5, 0.5])).tolist()
    [0.75, 0.6666666666666666]
    """
    before = np.zeros((len(bins), len(counts)))
    before[np.arange(1, len(bins)), bins[:-1]] = 1.0
    before[0] += counts
    before = np.cumsum(np.cumsum(before, axis=0), axis=1)  # earlier scores up to and within each bin
    rows = np.arange(len(bins))
    up_to = before[rows, bins]
    below = np.where(bins > 0, before[rows, bins - 1], 0.0)
    p: Array = (below + uniform * (up_to - below + 1.0)) / (before[:, -1] + 1.0)
    return p


def log_gains(p: Array) -> Array:
    """Return the log factor by which each bet multiplies its capital over p-values (n,), (B,)."""
    centred = 2.0 * p[:, np.newaxis] - 1.0
    gains: Array = np.log1p(_LINEAR * centred + _SQUARE * (1.5 * centred**2 - 0.5)).sum(axis=0)
    return gains
