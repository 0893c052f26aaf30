"""What a network is asked, answered exactly or from samples, with names given back to places."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posteriori.draws import check_draw
from posteriori.networks.distributions import ConditionalDistribution, Distribution, Marginals, MostProbable
from posteriori.networks.evidence import Findings
from posteriori.networks.inference import Inference, require_possible
from posteriori.networks.naming import States, require_variable
from posteriori.networks.sampling import draw, weighted_frequencies, weighted_mean
from posteriori.typing import Array


class Answers(Protocol):
    """A way to answer questions about one case."""

    def joint(self, names: Sequence[str], findings: Findings, evidence: dict[str, Any]) -> Distribution:
        """Return p(names | findings)."""

    def each(self, names: Sequence[str], findings: Findings, evidence: dict[str, Any]) -> Marginals:
        """Return p(name | findings) of each name."""

    def probability(self, event: Findings, given: Findings) -> float:
        """Return p(event | given)."""


def exact_or_sampled(inference: Inference, method: str, n_samples: int, random_state: Any) -> Answers:
    """Return the way to answer that a method names.

    Raises
    ------
    ValueError
        There is no such method, or n_samples is less than 2.
    """
    if method == "exact":
        return Exact(inference)
    if method != "sampling":
        raise ValueError(f"method is {method!r}; choose 'exact' or 'sampling'")
    if n_samples < 2:
        raise ValueError(f"n_samples is {n_samples}; draw at least two")
    return Sampled(inference, n_samples, random_state)


def asked_variables(variables: Sequence[str], findings: Findings) -> tuple[str, ...]:
    """Return the variables that are asked for: if none is named, those that the findings do not settle.

    Raises
    ------
    ValueError
        There is no such variable, it is named twice, or its state is known.
    """
    names = tuple(findings.states)
    if not variables:
        return tuple(name for position, name in enumerate(names) if position not in findings.hard)
    for k, name in enumerate(variables):
        require_variable(name, findings.states)
        if name in variables[:k]:
            raise ValueError(f"{name!r} is asked for twice; name it once")
        code = findings.hard.get(names.index(name))
        if code is not None:
            raise ValueError(
                f"{name!r} is asked for and is evidence, {findings.states[name][code]!r}; leave it out of one"
            )
    return tuple(variables)


@dataclass(frozen=True)
class Exact:
    """Answers from a junction tree."""

    inference: Inference

    def joint(self, names: Sequence[str], findings: Findings, evidence: dict[str, Any]) -> Distribution:
        """Return p(names | findings)."""
        table = self.inference.joint([self.inference.position[name] for name in names], findings)
        return Distribution({name: findings.states[name] for name in names}, table, evidence)

    def each(self, names: Sequence[str], findings: Findings, evidence: dict[str, Any]) -> Marginals:
        """Return p(name | findings) of each name."""
        tables = self.inference.each([self.inference.position[name] for name in names], findings)
        return Marginals(
            {
                name: Distribution({name: findings.states[name]}, table, evidence)
                for name, table in zip(names, tables, strict=True)
            }
        )

    def probability(self, event: Findings, given: Findings) -> float:
        """Return p(event | given) = p(event, given) / p(given)."""
        log_given = self.inference.log_evidence(given)
        require_possible(log_given)
        both = event & given
        return 0.0 if both is None else float(np.exp(self.inference.log_evidence(both) - log_given))


@dataclass(frozen=True)
class Sampled:
    """Answers by likelihood weighting, with standard errors."""

    inference: Inference
    n_samples: int
    random_state: Any

    def _draw(self, findings: Findings) -> tuple[Array, Array]:
        return draw(self.inference.cpts, self.n_samples, generator(self.random_state), findings.hard, findings.soft)

    def joint(self, names: Sequence[str], findings: Findings, evidence: dict[str, Any]) -> Distribution:
        """Return p(names | findings)."""
        return self._share(names, findings, evidence, *self._draw(findings))

    def each(self, names: Sequence[str], findings: Findings, evidence: dict[str, Any]) -> Marginals:
        """Return p(name | findings) of each name, all from the same samples."""
        drawn = self._draw(findings)
        return Marginals({name: self._share([name], findings, evidence, *drawn) for name in names})

    def _share(
        self, names: Sequence[str], findings: Findings, evidence: dict[str, Any], codes: Array, log_weight: Array
    ) -> Distribution:
        states = {name: findings.states[name] for name in names}
        positions = [self.inference.position[name] for name in names]
        shape = tuple(map(len, states.values()))
        share, standard_error = weighted_frequencies(codes[:, positions], log_weight, shape)
        return Distribution(states, share, evidence, standard_error)

    def probability(self, event: Findings, given: Findings) -> float:
        """Return p(event | given): the weighted mean of the event's likelihood."""
        codes, log_weight = self._draw(given)
        happens = np.ones(self.n_samples)
        for name, likelihood in event.likelihoods.items():
            happens *= likelihood[codes[:, self.inference.position[name]]]
        return weighted_mean(happens, log_weight)


def most_probable(inference: Inference, findings: Findings) -> MostProbable:
    """Return the most probable configuration given the findings, with named states."""
    codes, log_probability, log_evidence = inference.most_probable(findings)
    states = {name: known[code] for (name, known), code in zip(findings.states.items(), codes.tolist(), strict=True)}
    return MostProbable(states, log_probability, log_evidence)


def conditional(inference: Inference, names: tuple[str, ...], given: tuple[str, ...]) -> ConditionalDistribution:
    """Return p(names | given), a distribution for every configuration of what is given."""
    states = {name: inference.cpts[inference.position[name]].states for name in (*given, *names)}
    table = inference.joint([inference.position[name] for name in states], Findings(inference.states, {}))
    total = table.sum(axis=tuple(range(len(given), table.ndim)), keepdims=True)
    with np.errstate(invalid="ignore"):
        shares = table / total
    return ConditionalDistribution(
        {name: states[name] for name in names}, {name: states[name] for name in given}, shares
    )


def sample(inference: Inference, findings: Findings, n: int, random_state: Any) -> Any:
    """Return drawn configurations as a polars DataFrame.

    Raises
    ------
    ValueError
        n is no whole number from 1 on, or is too large; or the findings are impossible.
    """
    import polars as pl

    n = check_draw(n, len(findings.states))
    rng = generator(random_state)
    codes = inference.sample(findings, n, rng) if findings.likelihoods else draw(inference.cpts, n, rng)[0]
    columns = {}  # by name: polars would rename a series without one
    for v, (name, states) in enumerate(findings.states.items()):
        if all(isinstance(state, str) for state in states):
            known = pl.Series(name, states, dtype=pl.Enum([str(state) for state in states]))
            columns[name] = known.gather(codes[:, v])
        else:
            columns[name] = pl.Series(name, [states[code] for code in codes[:, v].tolist()], strict=False)
    return pl.DataFrame(columns)


def read_likelihoods(soft: Mapping[str, Any], states: Mapping[str, States], n: int) -> dict[int, Array]:
    """Read likelihoods that go with the rows of a table, by the places of their variables.

    Raises
    ------
    ValueError
        There is no such variable, or its likelihoods are negative, infinite, all 0 or of another shape.
    """
    positions = {name: position for position, name in enumerate(states)}
    found = {}
    for name, values in soft.items():
        require_variable(name, states)
        likelihood = np.asarray(values, np.float64)
        n_states = len(states[name])
        if likelihood.shape not in ((n_states,), (n, n_states)):
            raise ValueError(
                f"the likelihoods of {name!r} have shape {likelihood.shape}; give one for each of its {n_states} "
                f"states, ({n_states},), or one row for each of the table, ({n}, {n_states})"
            )
        if not np.isfinite(likelihood).all() or (likelihood < 0).any() or not likelihood.any(axis=-1).all():
            raise ValueError(f"the likelihoods of {name!r} must be finite, at least 0, and not all 0 in a row")
        found[positions[name]] = likelihood
    return found


def generator(random_state: Any) -> np.random.Generator:
    """Return a generator seeded by an int, a generator or None."""
    if isinstance(random_state, np.random.RandomState):
        return np.random.default_rng(random_state.randint(0, 2**32, 4, dtype=np.uint32))
    return np.random.default_rng(random_state)
