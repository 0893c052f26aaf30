"""The amplitudes of the parts of a sum of functions of a row, of greatest marginal likelihood on some rows."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotri

from posteriori.regression.features import KINDS, Features
from posteriori.regression.landmarks import Inputs, squared_distances
from posteriori.support.typing import Array

_ROOT3 = np.sqrt(3.0)
# Where the search starts, and the centre of the priors: variances of a target of variance 1.
_START_OF_KIND, _START_OF_KERNEL, _START_OF_NOISE, _START_OF_WEIGHTS = 0.1, 0.3, 0.3, 0.3
_PULL, _PULL_OF_WEIGHTS = 0.02, 0.25  # precisions of the logarithms, by which few rows change them little
_LEAST, _MOST = -14.0, 8.0  # of the logarithms
_MOST_STEPS, _TOLERANCE = 40, 1e-5  # of a step, relative to the loss: of a hundred nats, a thousandth of one
_CONSTANT = 1.0  # the prior variance of the mean


@dataclass(frozen=True)
class Amplitudes:
    """Variances of the coefficients of each kind, of the kernel and of the noise, and the weights of distances."""

    of_kinds: Array  # (4,), in the order of KINDS
    noise: float  # with what rows of a group share
    correlation: float = 0.0  # the part of it that they share
    kernel: float = 0.0
    weight: Array | None = None  # (q,): of the squared differences of the inputs of the kernel

    def penalty(self, features: Features) -> Array:
        """Return the variance of the noise over that of each coefficient, (p,)."""
        return np.asarray(self.noise / (self.of_kinds[features.kinds] * features.unit))

    @property
    def penalty_of_kernel(self) -> float:
        """The variance of the noise over that of the coefficients of landmarks."""
        return self.noise / self.kernel


def learn_amplitudes(
    features: Features, values: Array, target: Array, group: Array | None = None, inputs: Inputs | None = None
) -> Amplitudes:
    r"""Return the amplitudes with which the target of some rows is most probable, under weak priors.

    .. math:: t \sim N\Bigl(0,\; \sum_k a_k G_k + a\,K + \tau^2 B + \sigma^2 I\Bigr)

    with the inner products G_k of the features of each kind, the Matérn covariances K of the distances of the
    inputs, and B, which is 1 where rows are of one group: what a group adds to its rows is noise in a new group.

    Parameters
    ----------
    features : Features
    values : ndarray (n, p)
        The features of the rows.
    target : ndarray (n,)
        Of about unit variance.
    group : ndarray (n,), optional
        The group of each row.
    inputs : Inputs, optional
        Of the rows; without them there is no kernel.

    References
    ----------
    Rasmussen & Williams, Gaussian Processes for Machine Learning (2006), section 5.4.1. Laird & Ware, Random-effects
    models for longitudinal data, Biometrics 38 (1982).
    """
    from scipy.optimize import minimize  # imported here, because classification does not need it

    is_grouped = group is not None and len(np.unique(group)) < len(group)
    problem = _MarginalLikelihood(features, values, target - target.mean(), group if is_grouped else None, inputs)
    found = minimize(
        problem,
        problem.start,
        jac=True,
        method="L-BFGS-B",
        bounds=[(_LEAST, _MOST)] * len(problem.start),
        options={"maxiter": _MOST_STEPS, "maxcor": 20, "ftol": _TOLERANCE},
    )
    of_kinds, own, shared, kernel, weight = problem.parts(found.x)
    noise = own + shared
    return Amplitudes(of_kinds, noise, shared / noise, kernel, None if inputs is None else weight[inputs.group])


@dataclass(frozen=True)
class _MarginalLikelihood:
    """The negative logarithm of the marginal likelihood as a function of the logarithms of the amplitudes."""

    features: Features
    values: Array
    target: Array
    group: Array | None
    inputs: Inputs | None

    @cached_property
    def kinds(self) -> list[int]:
        return [k for k in range(len(KINDS)) if (self.features.kinds == k).any()]

    @cached_property
    def grams(self) -> list[Array]:
        """The inner products of the features of each kind, (n, n)."""
        found = []
        for k in self.kinds:
            chosen = self.features.kinds == k
            part = self.values[:, chosen] * np.sqrt(self.features.unit[chosen])
            found.append(part @ part.T)
        return found

    @cached_property
    def shared(self) -> Array | None:
        """Which pairs of rows are of one group, (n, n), as 0 and 1."""
        return None if self.group is None else (self.group[:, np.newaxis] == self.group).astype(np.float64)

    @property
    def n_noises(self) -> int:
        """The number of variances of noise: of rows, and of groups."""
        return 1 if self.group is None else 2

    @property
    def n_groups(self) -> int:
        return 0 if self.inputs is None else self.inputs.n_groups

    @cached_property
    def start(self) -> Array:
        of_kernel = [_START_OF_KERNEL, *[_START_OF_WEIGHTS / self.n_groups] * self.n_groups] if self.n_groups else []
        of_noise = [_START_OF_NOISE / self.n_noises] * self.n_noises
        return np.log([*[_START_OF_KIND] * len(self.kinds), *of_noise, *of_kernel])

    @cached_property
    def _pull(self) -> Array:
        pull = np.full(len(self.start), _PULL)
        pull[len(self.kinds) + self.n_noises + 1 :] = _PULL_OF_WEIGHTS
        return pull

    def parts(self, position: Array) -> tuple[Array, float, float, float, Array]:
        """Return the variances of kinds, (4,), of noise of rows and of groups, and of the kernel, and its weights."""
        exp, n = np.exp(np.clip(position, _LEAST, _MOST)), len(self.kinds)
        of_kinds = np.full(len(KINDS), np.exp(_LEAST))
        of_kinds[self.kinds] = exp[:n]
        shared = 0.0 if self.group is None else float(exp[n + 1])
        of_kernel = exp[n + self.n_noises :]
        return of_kinds, float(exp[n]), shared, float(of_kernel[0]) if self.n_groups else 0.0, of_kernel[1:]

    def __call__(self, position: Array) -> tuple[float, Array]:
        of_kinds, noise, of_groups, amplitude, weight = self.parts(position)
        n_rows, n_kinds = len(self.target), len(self.kinds)
        covariance = np.full((n_rows, n_rows), _CONSTANT)
        for k, gram in zip(self.kinds, self.grams, strict=True):
            covariance += of_kinds[k] * gram
        if self.inputs is not None and self.n_groups:
            inputs, of_input = self.inputs.values, weight[self.inputs.group]
            r = _ROOT3 * np.sqrt(squared_distances(inputs, inputs, of_input))
            decay = np.exp(-r)
            kernel = (1.0 + r) * decay
            covariance += amplitude * kernel
        covariance[np.diag_indices(n_rows)] += noise
        if self.shared is not None:
            covariance += of_groups * self.shared
        # Of symmetric matrices, whose transposes are in the order of LAPACK.
        lower, failed = dpotrf(covariance.T, lower=1, clean=1, overwrite_a=1)
        if failed:
            raise np.linalg.LinAlgError("the covariance of the rows is not positive definite")
        slope = dpotri(lower, lower=1)[0].T  # a triangle of the inverse, and zeros beside it
        slope = slope + slope.T
        slope[np.diag_indices(n_rows)] /= 2.0
        alpha = slope @ self.target
        apart = position - self.start
        loss = 0.5 * self.target @ alpha + np.log(np.diag(lower)).sum() + 0.5 * self._pull @ apart**2
        slope -= np.outer(alpha, alpha)
        slope *= 0.5
        gradient = self._pull * apart
        for place, (k, gram) in enumerate(zip(self.kinds, self.grams, strict=True)):
            gradient[place] += of_kinds[k] * np.vdot(slope, gram)
        gradient[n_kinds] += noise * np.trace(slope)
        if self.shared is not None:
            gradient[n_kinds + 1] += of_groups * np.vdot(slope, self.shared)
        first = n_kinds + self.n_noises  # of the kernel
        if self.inputs is not None and self.n_groups:
            gradient[first] += amplitude * np.vdot(slope, kernel)
            of_distance = slope * (-1.5 * amplitude * decay)  # dk/d(r²) = −3/2·exp(−√3 r)
            per_input = (inputs**2).T @ of_distance.sum(axis=1) - np.einsum("ij,ij->j", inputs, of_distance @ inputs)
            gradient[first + 1 :] += np.bincount(self.inputs.group, 2.0 * per_input * of_input, self.n_groups)
        return float(loss), gradient
