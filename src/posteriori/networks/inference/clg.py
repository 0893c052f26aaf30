"""Elimination of continuous variables: what they contribute to the discrete ones, and their densities given these."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import States
from posteriori.support.typing import Array

_LOG_2PI = math.log(2.0 * math.pi)
_ROUNDING = 2.0**-49  # of a conditional variance beside the variance, per observed variable


@dataclass(frozen=True)
class Component:
    """Continuous variables that depend on each other given the evidence and the discrete variables.

    Their discrete parents together have Q configurations. To eliminate the variables first, a strong elimination order
    (Lauritzen & Jensen 2001), leaves one factor over these parents, which therefore form a clique.

    Attributes
    ----------
    hidden : tuple of str
        The unobserved variables; parents first.
    seen : tuple of str
        The observed variables whose density is part of the component.
    densities : tuple of LinearGaussian
        Of hidden and seen variables; parents first.
    discrete : dict from str to tuple of states
        The discrete parents, and others that a query joins to them.
    listed : ndarray of int (Q, number of discrete), optional
        The configurations; by default all.
    """

    hidden: tuple[str, ...]
    seen: tuple[str, ...]
    densities: tuple[LinearGaussian, ...]
    discrete: Mapping[str, States]
    listed: Array | None = None

    @property
    def shape(self) -> tuple[int, ...]:
        """The number of states of each discrete parent."""
        return tuple(map(len, self.discrete.values()))

    @property
    def size(self) -> int:
        """The number of configurations, Q."""
        return math.prod(self.shape) if self.listed is None else len(self.listed)

    @cached_property
    def codes(self) -> Array:
        """The code of the state of each discrete parent in each configuration, (number of discrete, Q)."""
        every = np.array(np.unravel_index(np.arange(self.size), self.shape or (1,)))
        return every if self.listed is None else self.listed.T

    @cached_property
    def _parameters(self) -> dict[str, tuple[Array, Array, Array]]:
        """Per density the intercept (Q,), the coefficients (Q, m) and the variance (Q,)."""
        codes = dict(zip(self.discrete, self.codes, strict=False))
        found = {}
        for density in self.densities:
            place = tuple(codes[name] for name in density.parents)
            m = len(density.continuous)
            found[density.variable] = (
                np.broadcast_to(density.intercept[place], (self.size,)),
                np.broadcast_to(density.coefficients[place], (self.size, m)),
                np.broadcast_to(density.variance[place], (self.size,)),
            )
        return found

    @cached_property
    def _order(self) -> dict[str, int]:
        return {density.variable: k for k, density in enumerate(self.densities)}

    @cached_property
    def covariance(self) -> Array:
        """The covariance of all variables of the component before their evidence, (Q, F, F)."""
        size = len(self.densities)
        covariance = np.zeros((self.size, size, size))
        hidden = set(self.hidden)
        for k, density in enumerate(self.densities):
            _, coefficients, variance = self._parameters[density.variable]
            for j, parent in enumerate(density.continuous):
                if parent in hidden:
                    covariance[:, k, :k] += coefficients[:, j, None] * covariance[:, self._order[parent], :k]
            covariance[:, :k, k] = covariance[:, k, :k]
            covariance[:, k, k] = variance
            for j, parent in enumerate(density.continuous):
                if parent in hidden:
                    covariance[:, k, k] += coefficients[:, j] * covariance[:, k, self._order[parent]]
        return covariance

    def mean(self, values: Mapping[str, Array]) -> Array:
        """Return the mean of all variables before the evidence about them, (n, Q, F), given the observed parents.

        Parameters
        ----------
        values : mapping from str to ndarray (n,)
            Of all observed variables.
        """
        n = len(next(iter(values.values()))) if values else 1
        mean = np.zeros((n, self.size, len(self.densities)))
        hidden = set(self.hidden)
        for k, density in enumerate(self.densities):
            intercept, coefficients, _ = self._parameters[density.variable]
            mean[:, :, k] = intercept
            for j, parent in enumerate(density.continuous):
                above = mean[:, :, self._order[parent]] if parent in hidden else values[parent][:, None]
                mean[:, :, k] += coefficients[:, j] * above
        return mean

    @cached_property
    def _split(self) -> tuple[Array, Array]:
        hidden = np.array([self._order[name] for name in self.hidden], np.int64)
        seen = np.array([self._order[name] for name in self.seen], np.int64)
        return hidden, seen

    @cached_property
    def _conditioned(self) -> tuple[Array, Array, Array, Array]:
        """The Cholesky roots of the seen covariance, log determinants, gains K, and hidden covariance given the seen.

        Raise ValueError if the seen variables have a singular covariance: one is an exact function of others.
        """
        hidden, seen = self._split
        s_hh = self.covariance[:, hidden[:, None], hidden]
        if not len(seen):
            empty = np.zeros((self.size, 0, 0))
            return empty, np.zeros(self.size), np.zeros((self.size, len(hidden), 0)), s_hh
        s_ss = self.covariance[:, seen[:, None], seen]
        s_hs = self.covariance[:, hidden[:, None], seen]
        scale = np.sqrt(np.einsum("qii->qi", s_ss))
        try:
            if not scale.all():
                raise np.linalg.LinAlgError
            root = np.linalg.cholesky(s_ss / scale[:, :, None] / scale[:, None, :]) * scale[:, :, None]
        except np.linalg.LinAlgError:
            raise ValueError(
                f"the evidence about {', '.join(map(repr, self.seen))} has no density: a variance of 0 makes one of "
                "these an exact function of others; give it a small variance, or leave it out of the evidence"
            ) from None
        log_determinant = 2.0 * np.log(np.einsum("qii->qi", root)).sum(axis=1)
        gain = np.linalg.solve(s_ss, s_hs.transpose(0, 2, 1)).transpose(0, 2, 1)
        left = s_hh - gain @ s_hs.transpose(0, 2, 1)
        left = (left + left.transpose(0, 2, 1)) / 2
        # What an observed variable determines has variance 0, of which the subtraction leaves rounding of either sign.
        varies = np.einsum("qii->qi", left) > _ROUNDING * len(seen) * np.einsum("qii->qi", s_hh)
        return root, log_determinant, gain, left * varies[:, :, None] * varies[:, None, :]

    @property
    def hidden_covariance(self) -> Array:
        """The covariance of the hidden variables given the evidence and a configuration, (Q, H, H)."""
        return self._conditioned[3]

    def log_factor(self, values: Mapping[str, Array]) -> Array:
        """Return log p(seen | observed parents, configuration), (n, Q)."""
        root, log_determinant, _, _ = self._conditioned
        residual = self._residual(values)
        if not residual.shape[-1]:
            return np.zeros(residual.shape[:2])
        z = np.linalg.solve(root, residual.transpose(1, 2, 0))  # (Q, S, n)
        square = np.einsum("qsn,qsn->nq", z, z)
        factor: Array = -0.5 * (square + log_determinant + residual.shape[-1] * _LOG_2PI)
        return factor

    def hidden_mean(self, values: Mapping[str, Array]) -> Array:
        """Return the mean of the hidden variables given the evidence and a configuration, (n, Q, H)."""
        hidden, seen = self._split
        mean = self.mean(values)
        if not len(seen):
            return mean[:, :, hidden]
        residual = self._values(values) - mean[:, :, seen]
        updated: Array = mean[:, :, hidden] + np.einsum("qhs,nqs->nqh", self._conditioned[2], residual)
        return updated

    def conditional(self, names: Sequence[str], values: Mapping[str, Array]) -> tuple[Array, Array]:
        """Return the means (Q, d) and covariances (Q, d, d) of hidden variables given one case and a configuration."""
        places = [self.hidden.index(name) for name in names]
        return self.hidden_mean(values)[0][:, places], self.hidden_covariance[:, places][:, :, places]

    def _residual(self, values: Mapping[str, Array]) -> Array:
        _, seen = self._split
        return self._values(values) - self.mean(values)[:, :, seen]

    def _values(self, values: Mapping[str, Array]) -> Array:
        n = len(next(iter(values.values()))) if values else 1
        return np.stack([values[name] for name in self.seen], axis=-1)[:, None, :] if self.seen else np.zeros((n, 1, 0))

    def log_peak(self) -> Array:
        """Return log of the largest density of the hidden variables given a configuration, (Q,).

        Raises
        ------
        ValueError
            A density is unbounded, because a variance is 0.
        """
        sign, log_determinant = np.linalg.slogdet(self.hidden_covariance)
        if len(self.hidden) and not (sign > 0).all():
            raise ValueError(
                f"a variance of 0 gives {', '.join(map(repr, self.hidden))} an unbounded density, so that no "
                "configuration is most probable; give it a small variance"
            )
        peak: Array = -0.5 * (log_determinant + len(self.hidden) * _LOG_2PI)
        return peak


def split_components(
    densities: Sequence[LinearGaussian], observed: frozenset[str], states: Mapping[str, States], joined: Iterable[str]
) -> tuple[Component, ...]:
    """Return the components of some densities given which variables are observed.

    Two densities belong together if they share an unobserved variable.

    Parameters
    ----------
    densities : sequence of LinearGaussian
        Parents first.
    observed : frozenset of str
    states : mapping from str to tuple of states
        Of the discrete variables.
    joined : collection of str
        Variables that a query asks for together: their components are merged, with the discrete ones among them.
    """
    joined = tuple(joined)
    above = {density.variable: density.variable for density in densities}

    def root(name: str) -> str:
        while above[name] != name:
            name = above[name]
        return name

    holder: dict[str, str] = {}  # a density that reads each unobserved variable
    for density in densities:
        for name in (density.variable, *density.continuous):
            if name not in observed:
                above[root(density.variable)] = root(holder.setdefault(name, density.variable))
    asked = [name for name in joined if name in above]
    for name in asked[1:]:
        above[root(name)] = root(asked[0])
    groups: dict[str, list[LinearGaussian]] = {}
    for density in densities:
        groups.setdefault(root(density.variable), []).append(density)
    components = []
    for key, group in groups.items():
        scope: dict[str, States] = {}
        for density in group:
            scope.update(density.parents)
        if asked and root(asked[0]) == key:
            scope.update({name: states[name] for name in joined if name in states})
        names = [density.variable for density in group]
        components.append(
            Component(
                tuple(name for name in names if name not in observed),
                tuple(name for name in names if name in observed),
                tuple(group),
                dict(scope),
            )
        )
    return tuple(components)
