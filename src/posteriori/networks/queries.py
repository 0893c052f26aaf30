"""Queries to a network, exact or sampled, with the names of variables and states in place of indices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posteriori.draws import check_draw, generator
from posteriori.networks.conditioning import Conditioned
from posteriori.networks.distributions import ConditionalDistribution, Distribution, Marginals, MostProbable
from posteriori.networks.evidence import Evidence, read_codes, read_evidence
from posteriori.networks.inference import Inference, require_possible
from posteriori.networks.naming import States, as_names, require_variable
from posteriori.networks.sampling import draw, weighted_frequencies, weighted_mean
from posteriori.typing import Array

Given = Mapping[str, Any]  # evidence as the caller writes it


class Answers(Protocol):
    """A method of inference for one case."""

    def joint(self, names: Sequence[str], evidence: Evidence, given: Given) -> Distribution:
        """Return p(names | evidence)."""

    def each(self, names: Sequence[str], evidence: Evidence, given: Given) -> Marginals:
        """Return p(name | evidence) of each name."""

    def probability(self, event: Evidence, given: Evidence) -> float:
        """Return p(event | given)."""


def exact_or_sampled(inference: Inference, method: str, n_samples: int, random_state: Any) -> Answers:
    """Return the method of inference of this name.

    Raises
    ------
    ValueError
        There is no such method, or n_samples is less than 2.
    """
    if method == "exact":
        return Exact(inference)
    if method == "conditioning":
        return Conditioned(inference)
    if method != "sampling":
        raise ValueError(f"method is {method!r}; choose 'exact', 'conditioning' or 'sampling'")
    if n_samples < 2:
        raise ValueError(f"n_samples is {n_samples}; draw at least two")
    return Sampled(inference, n_samples, random_state)


@dataclass(frozen=True)
class Exact:
    """Exact inference by junction tree."""

    inference: Inference

    def joint(self, names: Sequence[str], evidence: Evidence, given: Given) -> Distribution:
        """Return p(names | evidence)."""
        table = self.inference.joint([self.inference.position[name] for name in names], evidence)
        return Distribution({name: evidence.states[name] for name in names}, table, dict(given))

    def each(self, names: Sequence[str], evidence: Evidence, given: Given) -> Marginals:
        """Return p(name | evidence) of each name."""
        tables = self.inference.each([self.inference.position[name] for name in names], evidence)
        return Marginals(
            {
                name: Distribution({name: evidence.states[name]}, table, dict(given))
                for name, table in zip(names, tables, strict=True)
            }
        )

    def probability(self, event: Evidence, given: Evidence) -> float:
        """Return p(event | given) = p(event, given) / p(given)."""
        log_given = self.inference.log_evidence(given)
        require_possible(log_given)
        both = event & given
        return 0.0 if both is None else float(np.exp(self.inference.log_evidence(both) - log_given))


@dataclass(frozen=True)
class Sampled:
    """Likelihood weighting, with standard errors."""

    inference: Inference
    n_samples: int
    random_state: Any

    def _draw(self, evidence: Evidence) -> tuple[Array, Array]:
        return draw(self.inference.cpts, self.n_samples, generator(self.random_state), evidence.hard, evidence.soft)

    def joint(self, names: Sequence[str], evidence: Evidence, given: Given) -> Distribution:
        """Return p(names | evidence)."""
        return self._frequencies(names, evidence, given, *self._draw(evidence))

    def each(self, names: Sequence[str], evidence: Evidence, given: Given) -> Marginals:
        """Return p(name | evidence) of each name, all from the same samples."""
        drawn = self._draw(evidence)
        return Marginals({name: self._frequencies([name], evidence, given, *drawn) for name in names})

    def _frequencies(
        self, names: Sequence[str], evidence: Evidence, given: Given, codes: Array, log_weight: Array
    ) -> Distribution:
        states = {name: evidence.states[name] for name in names}
        positions = [self.inference.position[name] for name in names]
        shape = tuple(map(len, states.values()))
        frequencies, standard_error = weighted_frequencies(codes[:, positions], log_weight, shape)
        return Distribution(states, frequencies, dict(given), standard_error)

    def probability(self, event: Evidence, given: Evidence) -> float:
        """Return p(event | given): the weighted mean of the event's likelihood."""
        codes, log_weight = self._draw(given)
        event_likelihood = np.ones(self.n_samples)
        for name, likelihood in event.likelihoods.items():
            event_likelihood *= likelihood[codes[:, self.inference.position[name]]]
        return weighted_mean(event_likelihood, log_weight)


# One case -------------------------------------------------------------------------------------------------------


def query(
    inference: Inference,
    variables: Sequence[str],
    given: Given | None,
    joint: bool,
    method: str,
    n_samples: int,
    random_state: Any,
) -> Distribution | Marginals:
    """Return p(variables | given); see `BayesianNetwork.query`."""
    evidence = read_evidence(given, inference.states)
    names = query_variables(variables, evidence)
    answers = exact_or_sampled(inference, method, n_samples, random_state)
    if variables and joint:
        return answers.joint(names, evidence, given or {})
    return answers.each(names, evidence, given or {})


def query_variables(variables: Sequence[str], evidence: Evidence) -> tuple[str, ...]:
    """Return the query variables; if none is named, all whose state the evidence leaves open.

    Raises
    ------
    ValueError
        There is no such variable, it is named twice, or its state is known.
    """
    names = tuple(evidence.states)
    if not variables:
        return tuple(name for position, name in enumerate(names) if position not in evidence.hard)
    for k, name in enumerate(variables):
        require_variable(name, evidence.states)
        if name in variables[:k]:
            raise ValueError(f"{name!r} is asked for twice; name it once")
        code = evidence.hard.get(names.index(name))
        if code is not None:
            raise ValueError(
                f"{name!r} is asked for and is evidence, {evidence.states[name][code]!r}; leave it out of one"
            )
    return tuple(variables)


def probability(
    inference: Inference, event: Given, given: Given | None, method: str, n_samples: int, random_state: Any
) -> float:
    """Return p(event | given); see `BayesianNetwork.probability`."""
    event_evidence, given_evidence = (read_evidence(mapping, inference.states) for mapping in (event, given))
    return exact_or_sampled(inference, method, n_samples, random_state).probability(event_evidence, given_evidence)


def most_probable(inference: Inference, given: Given | None) -> MostProbable:
    """Return the most probable configuration given evidence, with the names of its states."""
    evidence = read_evidence(given, inference.states)
    codes, log_probability, log_evidence = inference.most_probable(evidence)
    states = {name: listed[code] for (name, listed), code in zip(evidence.states.items(), codes.tolist(), strict=True)}
    return MostProbable(states, log_probability, log_evidence)


def conditional(inference: Inference, names: tuple[str, ...], given: tuple[str, ...]) -> ConditionalDistribution:
    """Return p(names | given), a distribution for every configuration of the given variables."""
    states = {name: inference.cpts[inference.position[name]].states for name in (*given, *names)}
    table = inference.joint([inference.position[name] for name in states], Evidence(inference.states, {}))
    total = table.sum(axis=tuple(range(len(given), table.ndim)), keepdims=True)
    with np.errstate(invalid="ignore"):
        probabilities = table / total  # 0/0 = NaN marks a configuration that cannot occur
    return ConditionalDistribution(
        {name: states[name] for name in names}, {name: states[name] for name in given}, probabilities
    )


def sample(inference: Inference, given: Given | None, n: int, random_state: Any) -> Any:
    """Return drawn configurations as a polars DataFrame.

    Raises
    ------
    ValueError
        n is no whole number of at least 1, or is too large; or the evidence is impossible.
    """
    import polars as pl

    evidence = read_evidence(given, inference.states)
    n = check_draw(n, len(evidence.states))
    rng = generator(random_state)
    codes = inference.sample(evidence, n, rng) if evidence.likelihoods else draw(inference.cpts, n, rng)[0]
    return pl.DataFrame(state_columns(evidence.states, codes))


def state_columns(of_variables: Mapping[str, States], codes: Array) -> dict[str, Any]:
    """Return codes (n, V) as polars Series of the states, by name: polars would rename one with an empty name."""
    import polars as pl

    columns = {}
    for v, (name, states) in enumerate(of_variables.items()):
        if all(isinstance(state, str) for state in states):
            enum = pl.Series(name, states, dtype=pl.Enum([str(state) for state in states]))
            columns[name] = enum.gather(codes[:, v])
        else:
            columns[name] = pl.Series(name, [states[code] for code in codes[:, v].tolist()], strict=False)
    return columns


# Many cases -----------------------------------------------------------------------------------------------------


def log_likelihood(inference: Inference, table: Any, n_jobs: int | None) -> Array:
    """Return log p(row), (n,); see `BayesianNetwork.log_likelihood`."""
    return inference.log_likelihood(read_codes(table, inference.states), n_jobs)


def target_marginal(inference: Inference, table: Any, target: str, n_jobs: int | None) -> Array:
    """Return p(target | the other known cells of the row), (n, K); see `BayesianNetwork.predict_proba`."""
    require_variable(target, inference.states)
    codes = read_codes(table, inference.states, ignored=target)
    return inference.marginals(codes, [inference.position[target]], n_jobs=n_jobs)[0]


def marginals(
    inference: Inference,
    table: Any,
    variables: str | Sequence[str] | None,
    soft: Mapping[str, Any] | None,
    n_jobs: int | None,
) -> dict[str, Array]:
    """Return p(variable | the known cells of the row) per variable; see `BayesianNetwork.marginals`."""
    codes = read_codes(table, inference.states)
    names = tuple(inference.states) if variables is None else as_names(variables)
    for name in names:
        require_variable(name, inference.states)
    likelihoods = read_likelihoods(soft or {}, inference.states, len(codes))
    tables = inference.marginals(codes, [inference.position[name] for name in names], likelihoods, n_jobs)
    return dict(zip(names, tables, strict=True))


def read_likelihoods(soft: Mapping[str, Any], states: Mapping[str, States], n: int) -> dict[int, Array]:
    """Read the likelihoods of soft evidence about the rows of a table, by the indices of their variables.

    Raises
    ------
    ValueError
        There is no such variable, or its likelihoods are negative, infinite, all 0 or of another shape.
    """
    positions = {name: position for position, name in enumerate(states)}
    likelihoods = {}
    for name, values in soft.items():
        require_variable(name, states)
        likelihood = np.asarray(values, np.float64)
        n_states = len(states[name])
        if likelihood.shape not in ((n_states,), (n, n_states)):
            raise ValueError(
                f"the likelihoods of {name!r} have shape {likelihood.shape}; give one for each of its {n_states} "
                f"states, ({n_states},), or one row for each row of the table, ({n}, {n_states})"
            )
        if not np.isfinite(likelihood).all() or (likelihood < 0).any() or not likelihood.any(axis=-1).all():
            raise ValueError(f"the likelihoods of {name!r} must be finite, at least 0, and not all 0 in a row")
        likelihoods[positions[name]] = likelihood
    return likelihoods
