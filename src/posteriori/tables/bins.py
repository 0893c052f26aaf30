"""Numbers cut into bins, and how they are spread within each."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori import kernels
from posteriori.typing import Array


@dataclass(frozen=True)
class Bins:
    r"""The bins of a continuous column, and the density q of a number given its bin, the same in every class.

    Bin b holds c_b ≤ x < c_{b+1}, and has code b + 1; code 0 is a missing cell. With the probability of a bin,

    .. math:: p(x \mid y) = P(b(x) \mid y)\, q(x \mid b(x)),

    q that of greatest entropy for what is known of the bin: uniform between two cuts, exponential from a cut outwards
    with the mean distance of the rows there, and Gaussian where there is no cut.

    Attributes
    ----------
    cuts : tuple of float
        c_1 < c_2 < …, in data units; the first bin reaches to −∞, the last to ∞.
    below, above : float
        The mean distance of the rows of the first and the last bin from their cut, in data units.
    mean, deviation : float
        Of all rows, in data units.

    References
    ----------
    Cover & Thomas, Elements of Information Theory, 2nd ed., section 12.1 (maximum entropy).
    """

    cuts: tuple[float, ...]
    below: float
    above: float
    mean: float
    deviation: float

    @classmethod
    def of(cls, cuts: Array, values: Array, weight: Array) -> Bins:
        """Return the bins of these cuts, their distances from the present values (n,) and their weights."""
        if not len(values):
            return cls(tuple(cuts.tolist()), 1.0, 1.0, 0.0, 1.0)
        mean = float(np.average(values, weights=weight))
        deviation = math.sqrt(float(np.average((values - mean) ** 2, weights=weight)))
        # A constant column has no width of its own; any will do, for it is the same in every class.
        width = deviation if deviation > 0 else max(abs(mean), 1.0) * 1e-3
        distances = [width, width]
        for side, distance in enumerate((cuts[:1] - values, values - cuts[-1:]) if len(cuts) else ()):
            outer = distance >= 0 if side else distance > 0
            if weight[outer].sum() > 0:
                spread = float(np.average(distance[outer], weights=weight[outer]))
                distances[side] = max(spread, 1e-6 * width)
        return cls(tuple(cuts.tolist()), distances[0], distances[1], mean, width)

    @property
    def n_bins(self) -> int:
        """K."""
        return len(self.cuts) + 1

    @property
    def representatives(self) -> Array:
        """A number of each bin, (K,)."""
        if not self.cuts:
            return np.array([self.mean])
        return np.concatenate([[self._cuts[0] - self.below], self._cuts])

    @cached_property
    def _cuts(self) -> Array:
        return np.array(self.cuts, np.float64)

    def encode(self, values: Array, codes: Array) -> int:
        """Set codes (n,) to those of the bins of the values (n,), 0 for NaN; return the first infinite row, or −1."""
        return int(kernels.encode_bins(values, self._cuts, codes))

    def log_density(self, values: Array) -> Array:
        """Return log q(x | its bin) in nats, (n,); 0 where x is missing."""
        if not self.cuts:
            apart = (values - self.mean) / self.deviation
            log_density = -0.5 * (apart * apart + math.log(2.0 * math.pi)) - math.log(self.deviation)
        else:
            place = np.searchsorted(self._cuts, values, side="right")
            inner = -np.log(np.diff(self._cuts))
            log_height = np.concatenate([[-math.log(self.below)], inner, [-math.log(self.above)]])
            with np.errstate(invalid="ignore"):
                beyond_below = np.maximum(self._cuts[0] - values, 0.0) / self.below
                beyond_above = np.maximum(values - self._cuts[-1], 0.0) / self.above
            log_density = log_height[place] - beyond_below - beyond_above
        return np.where(np.isnan(values), 0.0, log_density)

    def draw(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw a number in the bin of each code, (n,); NaN for code 0."""
        if not self.cuts:
            drawn = rng.normal(self.mean, self.deviation, len(codes))
        else:
            place = np.maximum(codes.astype(np.int64) - 1, 0)
            low = np.concatenate([[self._cuts[0]], self._cuts])
            high = np.concatenate([self._cuts, [self._cuts[-1]]])
            drawn = rng.uniform(low[place], high[place])
            first, last = place == 0, place == len(self._cuts)
            drawn[first] -= rng.exponential(self.below, int(first.sum()))
            drawn[last] += rng.exponential(self.above, int(last.sum()))
            drawn[first] = np.minimum(drawn[first], np.nextafter(self._cuts[0], -np.inf))
        return np.where(codes > 0, drawn, np.nan)

    def label(self, code: int) -> str:
        """Return the interval of a code in words."""
        if not self.cuts:
            return "any"
        if code == 1:
            return f"< {self.cuts[0]:.6g}"
        if code == self.n_bins:
            return f"≥ {self.cuts[-1]:.6g}"
        return f"{self.cuts[code - 2]:.6g} – {self.cuts[code - 1]:.6g}"
