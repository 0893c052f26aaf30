"""The scales on which a target is a sum of the contributions of columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np

from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array

ScaleName = Literal["as_is", "log", "rank"]
SCALES: tuple[ScaleName, ...] = ("as_is", "log", "rank")
_ROWS_PER_KNOT = 20  # with fewer, the own value of a row shows through the knots
_FEWEST_KNOTS, _MOST_KNOTS = 4, 200
_SHARE_OF_SHIFT = 0.05  # the quantile of the positive numbers that is added before the logarithm if some are 0
_LEAST_SHIFT, _MOST_SHIFT = 1e-4, 1e3  # of the range: of the least number above where its logarithm ends
_HALVINGS = 40
_LOWEST = -1e6  # what the scale gives a number of which there is no logarithm


@dataclass(frozen=True)
class Scale:
    """A strictly increasing map of numbers, to about mean 0 and variance 1: linear between knots and beyond them.

    "as_is" shifts and scales numbers, "log" their logarithms, and "rank" has their normal scores at quantiles.
    """

    name: ScaleName
    knots: Array  # (k,): numbers, or their logarithms, strictly increasing
    values: Array  # (k,): what these are on the scale, strictly increasing
    shift: float = 0.0  # of "log": log(y + shift), in units of the target

    @classmethod
    def of(cls, name: ScaleName, y: Array, weight: Array) -> Scale:
        """Return the scale of a name that suits these numbers, which are not all equal."""
        if name == "rank":
            return cls(name, *_knots_of_ranks(y, weight))
        if name == "as_is":
            return cls._of_numbers(name, y, weight)
        shift = 0.0 if (y > 0).all() else float(np.quantile(y[y > 0], _SHARE_OF_SHIFT))
        return cls._of_numbers(name, np.log(y + shift), weight, shift)

    @classmethod
    def symmetric_log(cls, y: Array, weight: Array) -> Scale | None:
        """Return the logarithm, after a shift, in which numbers are not skew; None if they are not skew to the right.

        It moves with the numbers if an offset is added to them.
        """
        above, unit = y - y.min(), float(np.ptp(y))

        def logs(share: float) -> Array:
            return np.asarray(np.log(above + share * unit))

        low, high = _LEAST_SHIFT, _MOST_SHIFT
        if _skewness(logs(high), weight) <= 0.0:
            return None
        if _skewness(logs(low), weight) < 0.0:
            for _ in range(_HALVINGS):
                middle = float(np.sqrt(low * high))
                low, high = (middle, high) if _skewness(logs(middle), weight) < 0.0 else (low, middle)
        return cls._of_numbers("log", logs(low), weight, low * unit - float(y.min()))

    @classmethod
    def _of_numbers(cls, name: ScaleName, y: Array, weight: Array, shift: float = 0.0) -> Scale:
        mean = float(np.average(y, weights=weight))
        spread = float(np.sqrt(np.average((y - mean) ** 2, weights=weight)))
        return cls(name, np.array([mean, mean + spread]), np.array([0.0, 1.0]), shift)

    def forward(self, y: Array) -> Array:
        """Return numbers on the scale."""
        if self.name == "log":
            above = y + self.shift
            y = np.log(np.where(above > 0, above, 1.0))
            return np.where(above > 0, self._between(y), _LOWEST)
        return self._between(y)

    def check(self) -> None:
        """Raise ValueError unless the knots are those of a scale."""
        require(self.name in SCALES, "there is no such scale")
        for name, array in (("the knots of a scale", self.knots), ("the values of a scale", self.values)):
            check_numbers(name, array, (len(self.knots),))
            require(len(array) > 1 and bool((np.diff(array) > 0).all()), f"{name} do not increase")
        check_numbers("the shift of a scale", np.array([self.shift]), (1,))

    def _between(self, x: Array) -> Array:
        place = np.clip(np.searchsorted(self.knots, x) - 1, 0, len(self.knots) - 2)
        low, value = self.knots[place], self.values[place]
        slope = (self.values[place + 1] - value) / (self.knots[place + 1] - low)
        return np.asarray(value + (x - low) * slope)


def scales_of(y: Array, weight: Array) -> tuple[Scale, ...]:
    """Return the scales of which the best is chosen: a logarithm only of numbers that are skew to the right."""
    scales = Scale.of("as_is", y, weight), Scale.symmetric_log(y, weight), Scale.of("rank", y, weight)
    return tuple(scale for scale in scales if scale is not None and (np.diff(scale.knots) > 0).all())


def _skewness(values: Array, weight: Array) -> float:
    """Return the third moment about the mean, whose sign is that of the skewness."""
    return float(weight @ (values - np.average(values, weights=weight)) ** 3)


def _knots_of_ranks(y: Array, weight: Array) -> tuple[Array, Array]:
    """Return quantiles of numbers, and the normal scores of their ranks."""
    from scipy.special import ndtri  # imported here, because a scorer has no SciPy

    order = np.argsort(y, kind="stable")
    ordered, share = y[order], weight[order] / weight.sum()
    reached = np.concatenate([[0.0], np.cumsum(share)])
    n_knots = int(np.clip(len(y) // _ROWS_PER_KNOT, _FEWEST_KNOTS, _MOST_KNOTS))
    wanted = (np.arange(n_knots) + 0.5) / n_knots
    knots = np.unique(np.interp(wanted, reached[1:] - share / 2.0, ordered))
    if len(knots) < 2:
        knots = np.array([ordered[0], ordered[-1]])
    below, upto = (reached[np.searchsorted(ordered, knots, side=side)] for side in ("left", "right"))
    values = ndtri(np.clip((below + upto) / 2.0, 0.5 / len(y), 1.0 - 0.5 / len(y)))
    rises = np.concatenate([[True], np.diff(np.maximum.accumulate(values)) > 0])
    if rises.sum() < 2:
        return np.array([ordered[0], ordered[-1]]), np.array([-1.0, 1.0])
    return knots[rises], values[rises]
