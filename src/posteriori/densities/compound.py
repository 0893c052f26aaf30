"""Counts of bursty words: the Dirichlet-multinomial distribution, a multinomial whose shares differ between rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated

import numpy as np

from posteriori import kernels
from posteriori.densities.words import BaseWordDensity, sum_of_present
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.statistics.word_counts import LEVELS, WordRepeats, bags_of, total_of_bins
from posteriori.support.checks import LARGEST, require
from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.batch import Numbers

_MOST_STEPS = 200
_TOLERANCE = 1e-6  # relative change of the concentration per step
_LARGEST = 1e9  # of the concentration: beyond it, the distribution is multinomial


@dataclass(frozen=True)
class CompoundParameters(WithAxes):
    """The parameters of the Dirichlet distribution of the shares, (Z, V), and the mean total of a row."""

    concentration: Annotated[Array, Axes("the concentrations of words", "z", "word", low=1e-300, high=2 * _LARGEST)]
    mean_total: Annotated[float, Axes("the mean total", low=0.0)]

    @cached_property
    def of_words(self) -> Array:
        """The concentrations with the components of a word side by side, (V, Z)."""
        return np.ascontiguousarray(self.concentration.T)

    @cached_property
    def log_of_words(self) -> Array:
        """Their logarithms, (V, Z)."""
        return np.log(self.of_words)

    @cached_property
    def whole(self) -> Array:
        """A, the sum of the concentrations, (Z,)."""
        return np.asarray(self.concentration.sum(axis=1))


@dataclass(frozen=True)
class Compound(BaseWordDensity):
    """log p(x | z) = log Γ(A_z) − log Γ(A_z + N) + Σ_j [log Γ(a_zj + x_j) − log Γ(a_zj)], A_z = Σ_j a_zj, N = Σ_j x_j.

    The Dirichlet-multinomial distribution: each row draws its own shares of the words from a Dirichlet distribution,
    and its words from these shares. A word that has occurred is likely to occur again, so that a repeated word counts
    less than under a multinomial. As there, N is given, and the number of orders of the words is left out.

    Parameters
    ----------
    alpha : float, default 1.0
        Pseudo-count per word, > 0, of the shares a_zj / A_z: these are smoothed as those of a multinomial are, over the
        occurrences that the distribution counts in full.

    Notes
    -----
    A missing count (NaN, in dense columns) is left out in prediction, as is its word from A: the other words are
    Dirichlet-multinomial, given their total.

    a is estimated by the fixed point of Minka (equation 55) from sums over rows: for each word the weight of the rows
    with x_j ≥ k, for k up to 8, and the weight of the rows by their total. In estimation, a count above 8 counts as 8,
    and totals above 64 are rounded to 1 %; in prediction counts are as they are. The sums take 8 numbers per word and
    class. Counts must be whole numbers.

    References
    ----------
    Madsen, Kauchak & Elkan, Modeling word burstiness using the Dirichlet distribution, ICML 2005. Minka, Estimating a
    Dirichlet distribution, 2000 (revised 2012).

    Examples
    --------
    >>> import posteriori as po
    >>> from scipy.sparse import csr_array
    >>> X = csr_array([[3, 0, 1], [2, 1, 0], [0, 4, 1], [1, 3, 0]])
    >>> po.NaiveBayes(distributions="compound").fit(X, ["a", "a", "b", "b"]).predict(csr_array([[5, 1, 0]]))
    array(['a'], dtype='<U1')
    """

    alpha: float = 1.0
    name = "compound"
    sufficient_statistics = WordRepeats
    fitted = CompoundParameters
    support = "a whole number of occurrences, 0 or more"
    has_whole_counts = True

    def check(self) -> None:
        """Raise ValueError unless alpha is a positive number."""
        require(0 < self.alpha <= LARGEST, f"alpha is {self.alpha}; compound counts need a pseudo-count above 0")

    def estimate(self, statistics: WordRepeats) -> CompoundParameters:
        """Return the fixed point of the concentrations, one component after the other."""
        total = total_of_bins()
        rows = float(statistics.totals.sum())
        mean_total = float((statistics.totals @ total).sum()) / rows if rows > 0 else 0.0
        pairs = zip(statistics.at_least, statistics.totals, strict=True)
        return CompoundParameters(np.stack([self._fixed_point(*pair, total) for pair in pairs]), mean_total)

    def _fixed_point(self, at_least: Array, weight: Array, total: Array) -> Array:
        """Return a (V,) of one component, from the weights of rows (V, 8) with x_j ≥ k, and by total (bins,).

        Each step divides a_j·Σ_k weight(x_j ≥ k) / (a_j + k − 1), the expected number of occurrences that were new
        draws of the shares, by Σ_rows [ψ(A + N) − ψ(A)]. alpha is added to these occurrences, and A keeps the
        value that it has without alpha.
        """
        from scipy.special import digamma  # imported here, because few fits need it

        n_words = len(at_least)
        once = at_least[:, 0]
        repeated = np.flatnonzero(at_least[:, 1])  # the other words have expected new draws that do not depend on a
        again, steps = at_least[repeated, 1:], np.arange(1.0, LEVELS)
        many = (weight > 0) & (total > 1)
        share = (once + self.alpha) / (once.sum() + self.alpha * n_words)
        whole = float(n_words)
        if not many.any():  # no row has two words: the concentration is not determined
            return np.asarray(share * whole)
        for _ in range(_MOST_STEPS):
            a = share[repeated, np.newaxis] * whole
            new = once.copy()
            new[repeated] += (a * again / (a + steps)).sum(axis=1)
            drawn = float(weight[total == 1].sum()) / whole
            drawn += float(weight[many] @ (digamma(whole + total[many]) - digamma(whole)))
            following = min(max(float(new.sum()) / drawn, 1e-9 * n_words), _LARGEST)
            share = (new + self.alpha) / (new.sum() + self.alpha * n_words)
            if abs(following - whole) <= _TOLERANCE * whole:
                break
            whole = following
        return np.asarray(np.maximum(share * whole, 1e-300))

    def _of_totals(self, parameters: CompoundParameters, bags: Bags) -> Array:
        """Return log Γ(A) − log Γ(A + N) of each row in nats, (n, Z), where A is without missing words."""
        from scipy.special import gammaln

        whole = np.maximum(sum_of_present(parameters.concentration, parameters.whole, bags), 1e-300)
        return np.asarray(gammaln(whole) - gammaln(whole + bags.totals[:, np.newaxis]))

    def log_density(self, parameters: CompoundParameters, tile: Bags | Numbers) -> Array:
        """Return log p(x | z) in nats, (n, Z), without the number of orders of the words."""
        bags = bags_of(tile)
        out = self._of_totals(parameters, bags)
        kernels.add_rising_factorials(
            bags.row_of_cell, bags.words, bags.counts, parameters.of_words, parameters.log_of_words, out
        )
        return out

    def word_factors(self, parameters: CompoundParameters, tile: Bags | Numbers) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density, which is 0, (n, Z)."""
        # The factor of the total is divided among the words in proportion to their counts.
        bags = bags_of(tile)
        share = np.nan_to_num(bags.counts) / np.where(bags.totals > 0, bags.totals, 1.0)[bags.row_of_cell]
        out = share[:, np.newaxis] * self._of_totals(parameters, bags)[bags.row_of_cell]
        place = np.arange(len(bags.words))
        kernels.add_rising_factorials(place, bags.words, bags.counts, parameters.of_words, parameters.log_of_words, out)
        return out, np.zeros((len(bags), out.shape[1]))

    def sample(self, parameters: CompoundParameters, component: Array, rng: np.random.Generator) -> Bags:
        """Draw bags of words, each row from shares of its own. Totals are Poisson around the mean of all rows."""
        shares = rng.standard_gamma(parameters.concentration[component])
        shares = np.where(shares.sum(axis=1, keepdims=True) > 0, shares, parameters.concentration[component])
        shares /= shares.sum(axis=1, keepdims=True)
        return Bags.of_array(rng.multinomial(rng.poisson(parameters.mean_total, len(component)), shares))

    def n_parameters(self, parameters: CompoundParameters) -> int:
        """Return Z·V concentrations."""
        return parameters.concentration.size

    def describe(self, parameters: CompoundParameters, position: int) -> dict[str, Array]:
        """Return the share and the concentration of a word, (Z,)."""
        a = parameters.concentration
        return {"share": a[:, position] / a.sum(axis=1), "concentration": a[:, position]}
