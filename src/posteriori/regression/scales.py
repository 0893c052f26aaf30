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
        shift = 0.0
        if name == "log":
            shift = 0.0 if (y > 0).all() else float(np.quantile(y[y > 0], _SHARE_OF_SHIFT))
            y = np.log(y + shift)
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
        check_numbers("the shift of a scale", np.array([self.shift]), (1,), 0.0)

    def _between(self, x: Array) -> Array:
        place = np.clip(np.searchsorted(self.knots, x) - 1, 0, len(self.knots) - 2)
        low, value = self.knots[place], self.values[place]
        slope = (self.values[place + 1] - value) / (self.knots[place + 1] - low)
        return np.asarray(value + (x - low) * slope)


def scales_of(y: Array, weight: Array) -> tuple[Scale, ...]:
    """Return the scales that numbers can have: no logarithm of negative ones."""
    names = [name for name in SCALES if name != "log" or ((y >= 0).all() and (y > 0).any())]
    found = [Scale.of(name, y, weight) for name in names]
    return tuple(one for one in found if (np.diff(one.knots) > 0).all())


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
