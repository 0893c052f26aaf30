"""Engines of inference: they answer a question about one case exactly, by conditioning, or from samples."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from posteriori.networks.inference.clg import Component
from posteriori.networks.inference.conditioning import Conditioned
from posteriori.networks.inference.distributions import Distribution, GaussianMixture, MixedDistribution
from posteriori.networks.inference.evidence import Evidence
from posteriori.networks.inference.inference import Compiled, Inference
from posteriori.networks.inference.sampling import Estimate, draw, relative_weight, weighted_frequencies, weighted_mean
from posteriori.networks.inference.table_inference import TableInference, require_possible
from posteriori.support.checks import generator
from posteriori.support.typing import Array

Interval = tuple[str, float | None, float | None]  # a continuous variable, and the ends of its values
_Samples = tuple[Array, Array, list[tuple[Component, Array]]]
# From a continuous variable to its component, and p(configuration | evidence).
Mixing = Callable[[str], tuple[Component, Array]]
Answers = tuple[list[Array], Iterable[Array | None], Mixing]  # tables, their standard errors


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


def each(engine: Engine, names: Sequence[str], evidence: Evidence) -> dict[str, Any]:
    """Return p(name | evidence) of each name, all from the same pass or samples."""
    states = engine.inference.states
    discrete = [name for name in names if name in states]
    continuous = tuple([name for name in names if name not in states])
    tables, errors, mixing = engine.solve(discrete, continuous, False, evidence)
    found: dict[str, Any] = {
        name: Distribution({name: states[name]}, table, evidence.given, error)
        for name, table, error in zip(discrete, tables, errors, strict=False)
    }
    if not continuous:
        return found
    found |= {name: _mixture((name,), *mixing(name), evidence) for name in continuous}
    return {name: found[name] for name in names}


def joint(engine: Engine, names: Sequence[str], evidence: Evidence) -> Any:
    """Return p(names | evidence)."""
    if len(names) == 1:  # there is a marginal already
        return each(engine, names, evidence)[names[0]]
    discrete = tuple(name for name in names if name in engine.inference.states)
    continuous = tuple(name for name in names if name not in discrete)
    tables, errors, mixing = engine.solve(discrete, continuous, True, evidence)
    if discrete:
        states = {name: engine.inference.states[name] for name in discrete}
        share = Distribution(states, tables[0], evidence.given, next(iter(errors)))
        if not continuous:
            return share
    component, weights = mixing(continuous[0])
    if not discrete:
        return _mixture(continuous, component, weights, evidence)
    shape = share.probabilities.shape
    means, covariances = component.conditional(continuous, evidence.numbers)
    axes = [list(component.discrete).index(name) for name in discrete]
    cell = np.ravel_multi_index(tuple(component.codes[axes]), shape)
    densities = {}
    for k, place in enumerate(np.ndindex(shape)):
        inside = np.flatnonzero(cell == k)
        own = inside[weights[inside] > 0]
        if len(own):
            weight = weights[own] / weights[own].sum()
        elif len(inside):  # a density even so, of what cannot occur
            own, weight = inside, np.full(len(inside), 1 / len(inside))
        else:
            continue
        densities[place] = GaussianMixture(continuous, weight, means[own], covariances[own], evidence.given)
    return MixedDistribution(share, densities)


def _mixture(names: tuple[str, ...], component: Component, weights: Array, evidence: Evidence) -> GaussianMixture:
    """Return the density of hidden variables of one component, whose configurations have these weights."""
    used = weights > 0
    means, covariances = component.conditional(names, evidence.numbers)
    return GaussianMixture(names, weights[used], means[used], covariances[used], evidence.given)


def _by_junction_tree(tables: TableInference) -> TableInference:
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
    solver: Callable[[TableInference], TableInference | Conditioned] = _by_junction_tree

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

    def solve(
        self, discrete: Sequence[str], continuous: tuple[str, ...], together: bool, evidence: Evidence
    ) -> Answers:
        """Return p(name | evidence) of each discrete variable, or their joint, and what mixes the continuous ones."""
        compiled, known, _ = self.compiled(evidence, continuous, _joined(discrete, continuous, together))
        place = compiled.tables.position.__getitem__
        asked: list[tuple[int, ...]] = list(zip(map(place, discrete), strict=False))
        if together and discrete:
            asked = [tuple(map(place, discrete))]
        holders = {name: compiled.holding(name) for name in continuous}
        if holders:
            asked += sorted({(position,) for _, position in holders.values() if position >= 0}.difference(asked))
        tables, log_evidence = self.solver(compiled.tables).answer(asked, known)
        require_possible(log_evidence)

        def mixing(name: str) -> tuple[Component, Array]:
            component, position = holders[name]
            return component, tables[asked.index((position,))] if position >= 0 else np.ones(1)

        return tables, itertools.repeat(None), mixing

    def probability(self, event: Evidence, intervals: Sequence[Interval], known: Evidence) -> float:
        """Return p(event, intervals | known) = p(event, known) / p(known) · p(intervals | event, known)."""
        log_known = self.log_density(known)
        require_possible(log_known)
        both = known & event
        p = 0.0 if both is None else float(np.exp(self.log_density(both) - log_known))
        for name, low, high in intervals:
            if p > 0 and both is not None:
                p *= each(self, [name], both)[name].interval(low, high)
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

    def _draw(self, evidence: Evidence, asked: Sequence[str], joined: Sequence[str] = ()) -> _Samples:
        """Return states (n, V), their log weights, and the configuration of each component in each sample."""
        rng = generator(self.random_state)
        codes, log_weight = draw(self.inference.cpts, self.n_samples, rng, evidence.hard, evidence.soft)
        components: list[tuple[Component, Array]] = []
        if self.inference.gaussians:
            numbers = evidence.numbers
            for component in self.inference.components(numbers, asked, joined, evidence.children):
                places = [self.inference.tables.position[name] for name in component.discrete]
                listed, which = np.unique(codes[:, places], axis=0, return_inverse=True)
                drawn = replace(component, listed=listed)
                components.append((drawn, which.ravel()))
                if drawn.seen:
                    log_weight = log_weight + drawn.log_factor(numbers)[0][which.ravel()]
        return codes, log_weight, components

    def solve(
        self, discrete: Sequence[str], continuous: tuple[str, ...], together: bool, evidence: Evidence
    ) -> Answers:
        """Return the answers of `Exact.solve`, approximately: the weighted shares of the samples."""
        joined = _joined(discrete, continuous, together)
        codes, log_weight, components = self._draw(evidence, continuous, joined)
        place = self.inference.tables.position
        shares = []
        for scope in [discrete] * bool(discrete) if together else [[name] for name in discrete]:
            shape = tuple(len(evidence.states[name]) for name in scope)
            shares.append(weighted_frequencies(codes[:, [place[name] for name in scope]], log_weight, shape))

        def mixing(name: str) -> tuple[Component, Array]:
            component, which = _holding(components, name)
            return component, np.bincount(which, relative_weight(log_weight), component.size)

        return [share for share, _ in shares], [error for _, error in shares], mixing

    def probability(self, event: Evidence, intervals: Sequence[Interval], known: Evidence) -> Estimate:
        """Return p(event, intervals | known): the weighted mean of their likelihood."""
        codes, log_weight, components = self._draw(known, [name for name, _, _ in intervals])
        likelihood = np.ones(self.n_samples)
        for name, of_states in event.likelihoods.items():
            likelihood *= of_states[codes[:, self.inference.tables.position[name]]]
        for name, low, high in intervals:
            component, which = _holding(components, name)
            means, covariances = component.conditional((name,), known.numbers)
            inside = [
                GaussianMixture((name,), np.ones(1), means[[q]], covariances[[q]]).interval(low, high)
                for q in range(component.size)
            ]
            likelihood *= np.array(inside)[which]
        return weighted_mean(likelihood, log_weight)


def _joined(discrete: Sequence[str], continuous: Sequence[str], together: bool) -> tuple[str, ...]:
    """Return the variables whose components are one; only continuous variables have components."""
    return (*discrete, *continuous) if together and continuous else ()


def _holding(components: list[tuple[Component, Array]], name: str) -> tuple[Component, Array]:
    """Return the component of a hidden variable, and its configuration in each sample."""
    return next(pair for pair in components if name in pair[0].hidden)


Engine: TypeAlias = Exact | Sampled
