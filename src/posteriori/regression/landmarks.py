"""Features that are the similarity of a row to some training rows, the landmarks."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from posteriori.regression.features import Features
from posteriori.support.arrays import Arrays
from posteriori.support.checks import check_numbers, require
from posteriori.support.factors import Cholesky
from posteriori.support.typing import Array

_ROOT3 = math.sqrt(3.0)
_FARTHEST = 3.0  # standard deviations, beyond which a number is no farther from others
_MOST_INPUT, _MOST_WEIGHT = 1e6, 1e100  # in a file, so that distances are finite
_SAME = 1e-10  # the squared distance of inputs of one row, which are rounded
_JITTER = 1e-6  # on the diagonal, so that equal landmarks do no harm


def matern(distance: Arrays) -> Arrays:
    r"""Return the Matérn covariance of smoothness 3/2, (1 + √3 r)·exp(−√3 r), of squared distances r²."""
    xp = distance.__array_namespace__()
    r = _ROOT3 * xp.sqrt(distance)
    return (1.0 + r) * xp.exp(-r)


def squared_distances(a: Array, b: Arrays, weight: Array) -> Arrays:
    """Return Σ_j w_j (a_j − b_j)², (n, m), of rows a (n, q) and b (m, q), which ndonnx may record."""
    xp, a, b = b.__array_namespace__(), a * np.sqrt(weight), b * np.sqrt(weight)
    found = (a**2).sum(axis=1)[:, np.newaxis] + xp.sum(b**2, axis=1) - xp.asarray(2.0 * a) @ b.T
    return xp.maximum(found, xp.asarray(0.0))


@dataclass(frozen=True)
class Inputs:
    """The inputs of distances between rows: numbers and their ranks, indicators of categories, and marks of gaps."""

    values: Arrays  # (n, q)
    group: Array  # (q,): inputs of one group have one weight

    @classmethod
    def of(cls, features: Features, values: Arrays) -> Inputs:
        """Return the inputs of rows from their features (n, p), of which none is unknown."""
        parts, xp = [], values.__array_namespace__()
        for lines, steps in features.parts_of_numbers:
            width = steps.stop - steps.start
            rank = xp.sum(values[:, steps], axis=1) * (math.sqrt(12.0) / (width + 1))
            parts += [xp.clip(values[:, lines], -_FARTHEST, _FARTHEST), rank[:, None]]
        others = [*features.parts_of_categories, *features.parts_of_gaps]
        parts += [values[:, one] for one in others]
        widths = [1, 1] * len(features.numbers) + [one.stop - one.start for one in others]
        joined = xp.concat(parts, axis=1) if parts else values[:, :0]
        return cls(joined, np.repeat(np.arange(len(widths)), widths))

    @property
    def n_groups(self) -> int:
        """The number of groups."""
        return int(self.group.max(initial=-1)) + 1


@dataclass(frozen=True)
class Landmarks:
    """The features L⁻¹ k(x) of a row, where k are its covariances with the landmarks, and L Lᵀ those between them.

    With coefficients of one prior variance a, the covariance of two rows is a·k(x)ᵀ K⁻¹ k(x'), the best approximation
    of a·k(x, x') from these landmarks (Williams & Seeger, Using the Nyström method to speed up kernel machines, 2001).
    """

    KEPT_OF_ROWS: ClassVar = "the cells of up to 600 rows, the landmarks of similarities"

    inputs: Array  # (m, q)
    weight: Array  # (q,): of the squared difference of each input

    @classmethod
    def of(cls, inputs: Array, weight: Array) -> Landmarks:
        """Return landmarks in an order that does not depend on that of the rows."""
        return cls(inputs[np.lexsort(inputs.T)], weight)

    def are_among(self, inputs: Array) -> Array:
        """Return which landmarks are some rows, (m,), by the inputs of these (n, q)."""
        each = np.ones(inputs.shape[1])
        return np.asarray((squared_distances(self.inputs, inputs, each) <= _SAME).any(axis=1))

    def without(self, dropped: Array) -> tuple[Landmarks, Array]:
        """Return the other landmarks than these, (m,) booleans, and the matrix that makes their features, (m', m).

        The features L⁻¹k of all give the covariances k, of which L'⁻¹ makes the features of some.
        """
        others = replace(self, inputs=self.inputs[~dropped])
        return others, others._factor.half_solve(np.tril(self._factor.lower)[~dropped])

    def check(self) -> None:
        """Raise ValueError unless inputs and their weights fit together."""
        shape = (len(self.inputs), len(self.weight))
        require(len(self.inputs) > 0, "there are no landmarks")
        check_numbers("the inputs of landmarks", self.inputs, shape, -_MOST_INPUT, _MOST_INPUT)
        check_numbers("the weights of inputs", self.weight, shape[1:], 0.0, _MOST_WEIGHT)

    @cached_property
    def _factor(self) -> Cholesky:
        covariance = matern(squared_distances(self.inputs, self.inputs, self.weight))
        covariance[np.diag_indices_from(covariance)] += _JITTER
        return Cholesky.of(covariance)

    def __len__(self) -> int:
        return len(self.inputs)

    def of_rows(self, inputs: Arrays) -> Arrays:
        """Return the features of rows, (n, m), from their inputs (n, q)."""
        covariance = matern(squared_distances(self.inputs, inputs, self.weight))
        return self._factor.half_solve(covariance).T
