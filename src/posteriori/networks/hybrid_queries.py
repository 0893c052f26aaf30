"""Queries to a network with continuous variables, with the same signatures as those of `queries`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.draws import check_draw, generator
from posteriori.networks import queries
from posteriori.networks.distributions import ConditionalDistribution, Distribution, Marginals, MostProbable
from posteriori.networks.evidence import Evidence
from posteriori.networks.gaussian_mixture import GaussianMixture, mixed
from posteriori.networks.hybrid_evidence import HybridEvidence, read_cases, read_hybrid_evidence
from posteriori.networks.hybrid_inference import Compiled, HybridInference
from posteriori.networks.inference import require_possible, warn_of_impossible
from posteriori.networks.naming import as_names, require_variable
from posteriori.networks.sampling import draw
from posteriori.typing import Array

Given = Mapping[str, Any]


def query(
    inference: HybridInference,
    variables: Sequence[str],
    given: Given | None,
    joint: bool,
    method: str,
    n_samples: int,
    random_state: Any,
) -> Any:
    """Return p(variables | given); see `BayesianNetwork.query`."""
    del n_samples, random_state
    _require_exact(method)
    evidence = read_hybrid_evidence(given, inference)
    names = _query_variables(variables, evidence, inference)
    if variables and joint and len(names) > 1:
        return _joint(inference, names, evidence, dict(given or {}))
    found = _each(inference, names, evidence, dict(given or {}))
    return found[names[0]] if variables and joint else Marginals(found)


def _require_exact(method: str) -> None:
    if method != "exact":
        raise ValueError("a network with continuous variables is queried with method='exact', or sampled by net.sample")


def _query_variables(variables: Sequence[str], evidence: HybridEvidence, inference: HybridInference) -> tuple[str, ...]:
    if not variables:
        return tuple(name for name in inference.dag.nodes if name not in evidence.known)
    for k, name in enumerate(variables):
        require_variable(name, inference.dag.parents)
        if name in variables[:k]:
            raise ValueError(f"{name!r} is asked for twice; name it once")
        if name in evidence.known:
            raise ValueError(f"{name!r} is asked for and is evidence; leave it out of one")
    return tuple(variables)


def _compiled(
    inference: HybridInference, evidence: HybridEvidence, asked: Sequence[str] = (), joined: Sequence[str] = ()
) -> tuple[Compiled, Evidence, float]:
    """Return the compiled network, its evidence, and the logarithm of the scale of p(evidence)."""
    numbers = evidence.numbers
    compiled = inference.compiled(numbers, asked, joined, evidence.children)
    soft, scale = compiled.likelihoods(numbers, 1)
    return compiled, evidence.of(compiled, soft), float(scale[0])


def _each(
    inference: HybridInference, names: Sequence[str], evidence: HybridEvidence, given: dict[str, Any]
) -> dict[str, Any]:
    asked = [name for name in names if name not in inference.states]
    compiled, known, _ = _compiled(inference, evidence, asked)
    wanted = {inference_position(compiled, name) for name in names if name in inference.states}
    wanted |= {compiled.holding(name)[1] for name in asked}
    positions = sorted(wanted - {-1})
    if positions:
        tables = dict(zip(positions, compiled.inference.each(positions, known), strict=True))
    else:
        require_possible(compiled.inference.log_evidence(known))
        tables = {}
    found: dict[str, Any] = {}
    for name in names:
        if name in inference.states:
            table = tables[inference_position(compiled, name)]
            found[name] = Distribution({name: inference.states[name]}, table, given)
        else:
            found[name] = _mixture(compiled, (name,), evidence.numbers, tables, given)
    return found


def inference_position(compiled: Compiled, name: str) -> int:
    """Return the position of a discrete variable among those of a compiled network."""
    return compiled.inference.position[name]


def _mixture(
    compiled: Compiled,
    names: tuple[str, ...],
    values: dict[str, Array],
    tables: Mapping[int, Array],
    given: dict[str, Any],
) -> GaussianMixture:
    """Return the density of hidden variables of one component."""
    component, position = compiled.holding(names[0])
    places = [component.hidden.index(name) for name in names]
    weights = np.ones(1) if position < 0 else tables[position]
    used = weights > 0
    means = component.hidden_mean(values)[0][:, places]
    covariances = component.hidden_covariance[:, places][:, :, places]
    return GaussianMixture(names, weights[used], means[used], covariances[used], given)


def _joint(inference: HybridInference, names: tuple[str, ...], evidence: HybridEvidence, given: dict[str, Any]) -> Any:
    continuous = tuple(name for name in names if name not in inference.states)
    states = {name: inference.states[name] for name in names if name in inference.states}
    compiled, known, _ = _compiled(inference, evidence, continuous, names if continuous else ())
    if not continuous:
        table = compiled.inference.joint([inference_position(compiled, name) for name in names], known)
        return Distribution(states, table, given)
    component, position = compiled.holding(continuous[0])
    tables = {} if position < 0 else {position: compiled.inference.each([position], known)[0]}
    if not tables:
        require_possible(compiled.inference.log_evidence(known))
    if not states:
        return _mixture(compiled, continuous, evidence.numbers, tables, given)
    weights = (np.ones(1) if position < 0 else tables[position]).reshape(component.shape)
    places = [component.hidden.index(name) for name in continuous]
    means = component.hidden_mean(evidence.numbers)[0][:, places]
    covariances = component.hidden_covariance[:, places][:, :, places]
    order = [list(component.discrete).index(name) for name in states]
    rest = [axis for axis in range(len(component.shape)) if axis not in order]
    index = np.arange(component.size).reshape(component.shape).transpose(order + rest)
    shape = (*(component.shape[axis] for axis in order), -1)
    flat = index.ravel()
    mixture = GaussianMixture(continuous, weights.ravel()[flat], means[flat], covariances[flat], given)
    return mixed(states, weights.transpose(order + rest).reshape(shape), mixture, given)


def log_density(inference: HybridInference, evidence: HybridEvidence) -> float:
    """Return log p(evidence) in nats, a log density where it is about continuous variables."""
    compiled, known, scale = _compiled(inference, evidence)
    return compiled.inference.log_evidence(known) + scale


def probability(
    inference: HybridInference, event: Given, given: Given | None, method: str, n_samples: int, random_state: Any
) -> float:
    """Return p(event | given); the event of a continuous variable is an interval (low, high)."""
    del n_samples, random_state
    _require_exact(method)
    intervals = {name: event[name] for name in event if name not in inference.states}
    for name, interval in intervals.items():
        require_variable(name, inference.dag.parents)
        if not isinstance(interval, tuple | list) or len(interval) != 2:
            raise ValueError(f"the event of {name!r} is {interval!r}; give an interval (low, high), None for no end")
    if len(intervals) > 1:
        raise ValueError(f"{', '.join(map(repr, intervals))} have intervals; give one of a single variable")
    known = read_hybrid_evidence(given, inference)
    happens = read_hybrid_evidence({name: event[name] for name in event if name not in intervals}, inference)
    log_given = log_density(inference, known)
    require_possible(log_given)
    discrete = happens.discrete & known.discrete
    if discrete is None:
        return 0.0
    both = HybridEvidence(discrete, known.values, known.measured)
    p = float(np.exp(log_density(inference, both) - log_given))
    for name, (low, high) in intervals.items():
        if name in known.values:
            inside = (low is None or low <= known.values[name]) and (high is None or known.values[name] <= high)
            return p if inside else 0.0
        if p > 0:
            p *= _each(inference, [name], both, {})[name].interval(low, high)
    return p


def most_probable(inference: HybridInference, given: Given | None) -> MostProbable:
    """Return the configuration of largest density given evidence, with its log density.

    Given a configuration of the discrete variables, the largest density of the continuous ones is at their mean.
    """
    evidence = read_hybrid_evidence(given, inference)
    log_evidence = log_density(inference, evidence)
    require_possible(log_evidence)
    numbers = evidence.numbers
    compiled = inference.compiled(numbers, measured=evidence.children, everything=True)
    scale = 0.0
    log_soft: dict[int, Array] = {}
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        factor = component.log_factor(numbers)[0] + component.log_peak()
        if position < 0:
            scale += float(factor[0])
        else:
            log_soft[position] = log_soft.get(position, 0.0) + factor
    soft = {}
    for position, factor in log_soft.items():
        scale += float(factor.max())
        soft[position] = np.exp(factor - factor.max())[np.newaxis]
    known = evidence.of(compiled, soft)
    codes, log_probability, _ = compiled.inference.most_probable(known)
    states: dict[str, Any] = {}
    for name, code in zip(compiled.inference.states, codes.tolist(), strict=True):
        if name in inference.states:
            states[name] = inference.states[name][code]
    states |= evidence.values
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        at = 0 if position < 0 else int(codes[position])
        mean = component.hidden_mean(numbers)[0, at]
        states |= dict(zip(component.hidden, mean.tolist(), strict=True))
    ordered = {name: states[name] for name in inference.dag.nodes}
    return MostProbable(ordered, log_probability + scale, log_evidence)


def conditional(inference: HybridInference, names: tuple[str, ...], given: tuple[str, ...]) -> ConditionalDistribution:
    """Return p(names | given) of discrete variables."""
    for name in (*names, *given):
        if name not in inference.states:
            raise ValueError(f"{name!r} is continuous, and a table has states; use query, with evidence about it")
    return queries.conditional(inference.discrete_inference, names, given)


def sample(inference: HybridInference, given: Given | None, n: int, random_state: Any) -> Any:
    """Return drawn rows as a polars DataFrame: exact, also given evidence."""
    import polars as pl

    evidence = read_hybrid_evidence(given, inference)
    n = check_draw(n, len(inference.dag.nodes))
    rng = generator(random_state)
    if not (evidence.discrete.likelihoods or evidence.values or evidence.measured):
        codes = draw(inference.cpts, n, rng)[0] if inference.cpts else np.zeros((n, 0), np.int64)
        numbers = inference.draw_continuous(codes, rng)
    else:
        codes, numbers = _drawn_given(inference, evidence, n, rng)
    columns = queries.state_columns(inference.states, codes)
    columns |= {name: pl.Series(name, numbers[:, k]) for k, name in enumerate(inference.continuous)}
    return pl.DataFrame([columns[name] for name in inference.dag.nodes])


def _drawn_given(
    inference: HybridInference, evidence: HybridEvidence, n: int, rng: np.random.Generator
) -> tuple[Array, Array]:
    values = evidence.numbers
    compiled = inference.compiled(values, measured=evidence.children, everything=True)
    soft, _ = compiled.likelihoods(values, 1)
    known = evidence.of(compiled, soft)
    size = len(compiled.inference.cpts)
    codes = compiled.inference.sample(known, n, rng) if size else np.zeros((n, 0), np.int64)
    numbers = np.empty((n, len(inference.continuous)))
    column = {name: k for k, name in enumerate(inference.continuous)}
    for name, value in evidence.values.items():
        numbers[:, column[name]] = value
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        at = np.zeros(n, np.int64) if position < 0 else codes[:, position]
        mean = component.hidden_mean(values)[0]
        for q in np.unique(at).tolist():
            rows = np.flatnonzero(at == q)
            spread = _root(component.hidden_covariance[q])
            drawn = mean[q] + rng.standard_normal((len(rows), len(component.hidden))) @ spread.T
            for k, name in enumerate(component.hidden):
                numbers[rows, column[name]] = drawn[:, k]
    return codes[:, : len(inference.states)], numbers


def _root(covariance: Array) -> Array:
    """Return R with R Rᵀ = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


# Many cases -----------------------------------------------------------------------------------------------------


def log_likelihood(inference: HybridInference, table: Any, n_jobs: int | None) -> Array:
    """Return log p(row), (n,); see `BayesianNetwork.log_likelihood`."""
    return inference.log_likelihood(*read_cases(table, inference), n_jobs)


def target_marginal(inference: HybridInference, table: Any, target: str, n_jobs: int | None) -> Array:
    """Return p(target | the other known cells of the row), (n, K)."""
    require_variable(target, inference.dag.parents)
    if target not in inference.states:
        raise ValueError(f"{target!r} is continuous, without states; net.marginals gives its mean and variance")
    codes, numbers = read_cases(table, inference, ignored=target)
    return _marginals(inference, codes, numbers, (target,), {}, n_jobs)[target]


def marginals(
    inference: HybridInference,
    table: Any,
    variables: str | Sequence[str] | None,
    soft: Mapping[str, Any] | None,
    n_jobs: int | None,
) -> dict[str, Array]:
    """Return p(variable | row) per discrete variable, (n, K), and mean and variance per continuous one, (n, 2)."""
    codes, numbers = read_cases(table, inference)
    names = inference.dag.nodes if variables is None else as_names(variables)
    for name in names:
        require_variable(name, inference.dag.parents)
    likelihoods = queries.read_likelihoods(soft or {}, inference.states, len(codes))
    return _marginals(inference, codes, numbers, names, likelihoods, n_jobs)


def _marginals(
    inference: HybridInference,
    codes: Array,
    numbers: Array,
    names: Sequence[str],
    likelihoods: dict[int, Array],
    n_jobs: int | None,
) -> dict[str, Array]:
    place = {name: k for k, name in enumerate(inference.states)}
    n = len(codes)
    found = {name: np.empty((n, len(inference.states[name]) if name in place else 2)) for name in names}
    asked = [name for name in names if name not in place]
    log_evidence = np.zeros(n)
    for compiled, rows, values in inference.batches(numbers, asked):
        soft, _ = compiled.likelihoods(values, len(rows))
        for position, given in likelihoods.items():
            own = given[rows] if given.ndim == 2 else np.broadcast_to(given, (len(rows), len(given)))
            soft[position] = soft[position] * own if position in soft else own
        hidden = [name for name in asked if name not in values]
        positions = sorted(
            {place[name] for name in names if name in place} | {compiled.holding(name)[1] for name in hidden} - {-1}
        )
        tables: dict[int, Array] = {}
        if positions:
            full = inference.padded(compiled, codes[rows])
            known = [v for v in range(full.shape[1]) if v in soft or (full[:, v] >= 0).any()]
            chosen = compiled.inference.tree(positions, known, len(rows))
            arrays, log_evidence[rows] = chosen.tree.marginals(
                chosen.take(full), chosen.soft(soft) or None, n_jobs, variables=chosen.positions(positions)
            )
            tables = dict(zip(positions, arrays, strict=True))
        for name in names:
            if name in place:
                found[name][rows] = tables[place[name]]
            elif name in values:
                found[name][rows] = np.column_stack([values[name], np.zeros(len(rows))])
            else:
                found[name][rows] = _moments(compiled, name, values, tables, len(rows))
    warn_of_impossible(log_evidence)
    return found


def _moments(compiled: Compiled, name: str, values: dict[str, Array], tables: Mapping[int, Array], n: int) -> Array:
    """Return the mean and the variance of a hidden variable in each row, (n, 2)."""
    component, position = compiled.holding(name)
    k = component.hidden.index(name)
    means = np.broadcast_to(component.hidden_mean(values)[:, :, k], (n, component.size))
    weights = np.ones((n, 1)) if position < 0 else tables[position]
    mean = (weights * means).sum(axis=1)
    within = weights @ component.hidden_covariance[:, k, k]
    between = (weights * (means - mean[:, np.newaxis]) ** 2).sum(axis=1)
    return np.column_stack([mean, within + between])
