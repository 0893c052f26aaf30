"""Engines of inference: they answer a question about one case exactly, by conditioning, or from samples."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posteriori.networks.inference.clg import Component
from posteriori.networks.inference.conditioning import Conditioned
from posteriori.networks.inference.distributions import Distribution, GaussianMixture, MixedDistribution, mixed
from posteriori.networks.inference.evidence import Evidence
from posteriori.networks.inference.inference import Compiled, Inference
from posteriori.networks.inference.sampling import Estimate, draw, relative_weight, weighted_frequencies, weighted_mean
from posteriori.networks.inference.table_inference import TableInference, require_possible
from posteriori.support.draws import generator
from posteriori.support.typing import Array

Interval = tuple[str, float | None, float | None]  # a continuous variable, and the ends of its values


class Engine(Protocol):
    """A method of inference for one case."""

    def joint(self, names: Sequence[str], evidence: Evidence) -> Any:
        """Return p(names | evidence)."""

    def each(self, names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
        """Return p(name | evidence) of each name."""

    def probability(self, event: Evidence, intervals: Sequence[Interval], known: Evidence) -> float:
        """Return p(event, intervals | known), of intervals of at most one variable."""


class Solver(Protocol):
    """Exact inference from tables: `TableInference` and `Conditioned`."""

    def answer(self, asked: Sequence[tuple[int, ...]], evidence: Evidence) -> tuple[list[Array], float]:
        """Return p(scope | evidence) of each scope, an axis for each variable, and log p(evidence) in nats."""


def engine_of(inference: Inference, method: str, n_samples: int, random_state: Any) -> Engine:
    """Return the engine of this name; ValueError if there is none, or n_samples is less than 2."""
    if method == "exact":
        return Exact(inference)
    if method == "conditioning":
        return Exact(inference, Conditioned)
    if method != "sampling":
        raise ValueError(f"method is {method!r}; choose 'exact', 'conditioning' or 'sampling'")
    if n_samples < 2:
        raise ValueError(f"n_samples is {n_samples}; draw at least two")
    return Sampled(inference, n_samples, random_state)


def by_junction_tree(tables: TableInference) -> Solver:
    """Return the tables themselves: they answer by junction tree."""
    return tables


@dataclass(frozen=True)
class Exact:
    """Exact inference: continuous variables are eliminated, and a solver answers from the tables that are left.

    Attributes
    ----------
    inference : Inference
    solver : callable
        From tables to what answers with them: the junction tree, or `Conditioned`.
    """

    inference: Inference
    solver: Callable[[TableInference], Solver] = by_junction_tree

    def compiled(
        self, evidence: Evidence, asked: Sequence[str] = (), joined: Sequence[str] = ()
    ) -> tuple[Compiled, Evidence, float]:
        """Return the compiled network, the evidence about its tables, and the logarithm of the scale of p(evidence)."""
        if not self.inference.gaussians:
            return self.inference.compiled(()), evidence, 0.0
        numbers = evidence.numbers
        compiled = self.inference.compiled(numbers, asked, joined, evidence.children)
        soft, scale = compiled.likelihoods(numbers, 1)
        return compiled, compiled.evidence(evidence, soft), float(scale[0])

    def log_density(self, evidence: Evidence) -> float:
        """Return log p(evidence) in nats, a log density where it is about continuous variables."""
        compiled, known, scale = self.compiled(evidence)
        return self.solver(compiled.tables).answer([], known)[1] + scale

    def each(self, names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
        """Return p(name | evidence) of each name."""
        states, given = self.inference.states, evidence.given
        continuous = [name for name in names if name not in states]
        compiled, known, _ = self.compiled(evidence, continuous)
        place = compiled.tables.position
        found: dict[str, Any] = {}
        if not continuous:
            tables, _ = self.solver(compiled.tables).answer([(place[name],) for name in names], known)
            for name, table in zip(names, tables, strict=True):
                found[name] = Distribution({name: states[name]}, table, given)
            return found
        holders = {name: compiled.holding(name) for name in continuous}
        wanted = {place[name] for name in names if name in states} | {position for _, position in holders.values()}
        weights = self._weights(compiled, sorted(wanted - {-1}), known)
        for name in names:
            if name in states:
                found[name] = Distribution({name: states[name]}, weights[place[name]], given)
            else:
                component, position = holders[name]
                found[name] = mixture(component, (name,), weights[position], evidence)
        return found

    def _weights(self, compiled: Compiled, positions: list[int], known: Evidence) -> dict[int, Array]:
        """Return p(variable | evidence) by its position; 1 at position −1, that of a single configuration."""
        solver = self.solver(compiled.tables)
        if not positions:
            require_possible(solver.answer([], known)[1])
            return {-1: np.ones(1)}
        tables, _ = solver.answer([(v,) for v in positions], known)
        return {-1: np.ones(1)} | dict(zip(positions, tables, strict=True))

    def joint(self, names: Sequence[str], evidence: Evidence) -> Any:
        """Return p(names | evidence)."""
        if len(names) == 1:  # the tree has this marginal already
            return self.each(names, evidence)[names[0]]
        states = {name: self.inference.states[name] for name in names if name in self.inference.states}
        continuous = tuple(name for name in names if name not in states)
        compiled, known, _ = self.compiled(evidence, continuous, names if continuous else ())
        if not continuous:
            place = compiled.tables.position
            (table,), _ = self.solver(compiled.tables).answer([tuple(place[name] for name in names)], known)
            return Distribution(states, table, evidence.given)
        component, position = compiled.holding(continuous[0])
        weights = self._weights(compiled, [position] if position >= 0 else [], known)[position]
        if not states:
            return mixture(component, continuous, weights, evidence)
        shape = component.shape
        order = [list(component.discrete).index(name) for name in states]
        rest = [axis for axis in range(len(shape)) if axis not in order]
        flat = np.arange(component.size).reshape(shape).transpose(order + rest).ravel()
        means, covariances = component.conditional(continuous, evidence.numbers)
        density = GaussianMixture(continuous, weights[flat], means[flat], covariances[flat], evidence.given)
        each = weights.reshape(shape).transpose(order + rest).reshape(*(shape[axis] for axis in order), -1)
        return mixed(states, each, density, evidence.given)

    def probability(self, event: Evidence, intervals: Sequence[Interval], known: Evidence) -> float:
        """Return p(event, intervals | known) = p(event, known) / p(known) · p(intervals | event, known)."""
        log_known = self.log_density(known)
        require_possible(log_known)
        both = known & event
        p = 0.0 if both is None else float(np.exp(self.log_density(both) - log_known))
        for name, low, high in intervals:
            if p > 0 and both is not None:
                p *= self.each([name], both)[name].interval(low, high)
        return p


@dataclass(frozen=True)
class Sampled:
    """Likelihood weighting, with standard errors.

    Only states are drawn. Given those of all discrete variables, continuous ones are normal: their density is exact,
    and the density of evidence about them is part of the weight (collapsed samples; Koller & Friedman 2009, section
    12.4).
    """

    inference: Inference
    n_samples: int
    random_state: Any

    def _draw(self, evidence: Evidence, asked: Sequence[str] = (), joined: Sequence[str] = ()) -> _Samples:
        rng = generator(self.random_state)
        codes, log_weight = draw(self.inference.cpts, self.n_samples, rng, evidence.hard, evidence.soft)
        components: list[tuple[Component, Array]] = []
        if self.inference.gaussians:
            numbers = evidence.numbers
            for component in self.inference.components(numbers, asked, joined, evidence.children):
                places = [self.inference.tables.position[name] for name in component.discrete]
                listed, which = np.unique(codes[:, places], axis=0, return_inverse=True)
                drawn = component.at(listed)
                components.append((drawn, which.ravel()))
                if drawn.seen:
                    log_weight = log_weight + drawn.log_factor(numbers)[0][which.ravel()]
        return _Samples(codes, log_weight, components)

    def each(self, names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
        """Return p(name | evidence) of each name, all from the same samples."""
        continuous = [name for name in names if name not in self.inference.states]
        samples = self._draw(evidence, continuous)
        return {
            name: self._density((name,), evidence, samples)
            if name in continuous
            else self._frequencies([name], evidence, samples)
            for name in names
        }

    def joint(self, names: Sequence[str], evidence: Evidence) -> Any:
        """Return p(names | evidence)."""
        states = {name: self.inference.states[name] for name in names if name in self.inference.states}
        continuous = tuple(name for name in names if name not in states)
        samples = self._draw(evidence, continuous, names if continuous else ())
        if not continuous:
            return self._frequencies(names, evidence, samples)
        if not states:
            return self._density(continuous, evidence, samples)
        share = self._frequencies(tuple(states), evidence, samples)
        component, which = samples.holding(continuous[0])
        weights = np.bincount(which, relative_weight(samples.log_weight), component.size)
        assert component.listed is not None  # samples list them
        own = component.listed[:, [list(component.discrete).index(name) for name in states]]
        densities = {}
        for place in np.ndindex(share.probabilities.shape):
            used = np.where((own == place).all(axis=1), weights, 0.0)
            if used.any():
                densities[place] = mixture(component, continuous, used / used.sum(), evidence)
        return MixedDistribution(share, densities)

    def _density(self, names: tuple[str, ...], evidence: Evidence, samples: _Samples) -> GaussianMixture:
        component, which = samples.holding(names[0])
        weights = np.bincount(which, relative_weight(samples.log_weight), component.size)
        return mixture(component, names, weights, evidence)

    def _frequencies(self, names: Sequence[str], evidence: Evidence, samples: _Samples) -> Distribution:
        states = {name: evidence.states[name] for name in names}
        positions = [self.inference.tables.position[name] for name in names]
        shape = tuple(map(len, states.values()))
        frequencies, standard_error = weighted_frequencies(samples.codes[:, positions], samples.log_weight, shape)
        return Distribution(states, frequencies, evidence.given, standard_error)

    def probability(self, event: Evidence, intervals: Sequence[Interval], known: Evidence) -> Estimate:
        """Return p(event, intervals | known): the weighted mean of their likelihood."""
        samples = self._draw(known, [name for name, _, _ in intervals])
        likelihood = np.ones(self.n_samples)
        for name, of_states in event.likelihoods.items():
            likelihood *= of_states[samples.codes[:, self.inference.tables.position[name]]]
        for name, low, high in intervals:
            component, which = samples.holding(name)
            means, covariances = component.conditional((name,), known.numbers)
            inside = [
                GaussianMixture((name,), np.ones(1), means[[q]], covariances[[q]]).interval(low, high)
                for q in range(component.size)
            ]
            likelihood *= np.array(inside)[which]
        return weighted_mean(likelihood, samples.log_weight)


@dataclass(frozen=True)
class _Samples:
    """Weighted states of the discrete variables, and the components of the continuous ones at these states.

    Attributes
    ----------
    codes : ndarray (n, number of discrete variables)
    log_weight : ndarray (n,)
    components : list of pairs of Component and ndarray (n,)
        The configuration of a component in each sample.
    """

    codes: Array
    log_weight: Array
    components: list[tuple[Component, Array]]

    def holding(self, name: str) -> tuple[Component, Array]:
        """Return the component of a hidden variable, and its configuration in each sample."""
        return next(pair for pair in self.components if name in pair[0].hidden)


def mixture(component: Component, names: tuple[str, ...], weights: Array, evidence: Evidence) -> GaussianMixture:
    """Return the density of hidden variables of one component, whose configurations have these weights."""
    used = weights > 0
    means, covariances = component.conditional(names, evidence.numbers)
    return GaussianMixture(names, weights[used], means[used], covariances[used], evidence.given)
