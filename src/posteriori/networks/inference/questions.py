"""Questions to a network, with the names of variables and states: about one case, and about the rows of a table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.networks.graph.naming import States, as_names, require_findings, require_variable
from posteriori.networks.inference import engines
from posteriori.networks.inference.distributions import ConditionalDistribution, Marginals, MostProbable
from posteriori.networks.inference.engines import Exact, Interval, engine_of
from posteriori.networks.inference.evidence import Evidence, read_evidence, read_rows
from posteriori.networks.inference.inference import Compiled, Inference
from posteriori.networks.inference.sampling import draw
from posteriori.networks.inference.table_inference import require_possible, warn_of_impossible
from posteriori.support.checks import check_draw, generator
from posteriori.support.typing import Array

Given = Mapping[str, Any]  # evidence as the caller writes it


def query(
    inference: Inference,
    variables: Sequence[str],
    given: Given | None,
    joint: bool,
    method: str,
    n_samples: int,
    random_state: Any,
) -> Any:
    """Return p(variables | given); see `BayesianNetwork.query`."""
    evidence = read_evidence(given, inference.states, inference.variables)
    names = _variables_asked(variables, evidence, inference.dag.nodes)
    engine = engine_of(inference, method, n_samples, random_state)
    return (
        engines.joint(engine, names, evidence)
        if variables and joint
        else Marginals(engines.each(engine, names, evidence), evidence.certain, inference.dag.nodes)
    )


def _variables_asked(variables: Sequence[str], evidence: Evidence, nodes: Sequence[str]) -> tuple[str, ...]:
    """Return the query variables; if none is named, all whose state the evidence leaves open.

    Raise ValueError if there is no such variable, it is named twice, or its state is known.
    """
    certain = evidence.certain
    if not variables:
        return tuple(name for name in nodes if name not in certain)
    for k, name in enumerate(variables):
        require_variable(name, nodes)
        if name in variables[:k]:
            raise ValueError(f"{name!r} is asked for twice; name it once")
        if name in certain:
            raise ValueError(f"{name!r} is asked for and is evidence, {certain[name]!r}; leave it out of one")
    return tuple(variables)


def probability(
    inference: Inference, event: Given, given: Given | None, method: str, n_samples: int, random_state: Any
) -> float:
    """Return p(event | given); see `BayesianNetwork.probability`."""
    require_findings("the event", event)
    known = read_evidence(given, inference.states, inference.variables)
    intervals = [_interval(name, event[name]) for name in event if name in inference.continuous]
    if len(intervals) > 1:
        raise ValueError(f"{', '.join(repr(name) for name, _, _ in intervals)} have intervals; give one of them")
    states = {name: event[name] for name in event if name not in inference.continuous}
    happens = read_evidence(states, inference.states)
    engine = engine_of(inference, method, n_samples, random_state)
    for name, low, high in intervals:
        if name in known.values:
            value = known.values[name]
            if not ((low is None or low <= value) and (high is None or value <= high)):
                return 0.0
    return engine.probability(happens, [one for one in intervals if one[0] not in known.values], known)


def _interval(name: str, ends: Any) -> Interval:
    if not isinstance(ends, tuple | list) or len(ends) != 2:
        raise ValueError(f"the event of {name!r} is {ends!r}; give an interval (low, high), None for no end")
    low, high = ends
    return name, low, high


def most_probable(inference: Inference, given: Given | None) -> MostProbable:
    """Return the configuration of largest probability or density given evidence.

    Given a configuration of the discrete variables, the largest density of the continuous ones is at their mean.
    """
    evidence = read_evidence(given, inference.states, inference.variables)
    log_evidence = Exact(inference).log_density(evidence)
    require_possible(log_evidence)
    numbers = evidence.numbers
    compiled = inference.compiled(numbers, measured=evidence.children, everything=True)
    soft, scale = compiled.likelihoods(numbers, 1, at_peak=True)
    codes, log_probability = compiled.tables.most_probable(compiled.evidence(evidence, soft))
    found: dict[str, Any] = {
        name: states[code] for (name, states), code in zip(inference.states.items(), codes.tolist(), strict=False)
    }
    found |= evidence.values
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        mean = component.hidden_mean(numbers)[0, 0 if position < 0 else int(codes[position])]
        found |= dict(zip(component.hidden, mean.tolist(), strict=True))
    ordered = {name: found[name] for name in inference.dag.nodes}
    return MostProbable(ordered, log_probability + float(scale[0]), log_evidence)


def conditional(inference: Inference, names: tuple[str, ...], given: tuple[str, ...]) -> ConditionalDistribution:
    """Return p(names | given), a distribution for every configuration of the given variables."""
    for name in (*names, *given):
        if name not in inference.states:
            raise ValueError(f"{name!r} is continuous, and a table has states; use query, with evidence about it")
    tables = inference.tables
    states = {name: tables.states[name] for name in (*given, *names)}
    table = tables.joint(states, Evidence(tables.states, {}))
    total = table.sum(axis=tuple(range(len(given), table.ndim)), keepdims=True)
    with np.errstate(invalid="ignore"):
        probabilities = table / total  # 0/0 = NaN marks a configuration that cannot occur
    return ConditionalDistribution(
        {name: states[name] for name in names}, {name: states[name] for name in given}, probabilities
    )


def sample(inference: Inference, given: Given | None, n: int, random_state: Any) -> Any:
    """Return drawn configurations as a polars DataFrame: exact, also given evidence.

    Raises
    ------
    ValueError
        n is no whole number of at least 1, or is too large; or the evidence is impossible.
    """
    import polars as pl

    evidence = read_evidence(given, inference.states, inference.variables)
    n = check_draw(n, len(inference.dag.nodes))
    rng = generator(random_state)
    if evidence.is_empty:
        codes = draw(inference.cpts, n, rng)[0] if inference.cpts else np.zeros((n, 0), np.int64)
        numbers = inference.draw_continuous(codes, rng)
    else:
        codes, numbers = _drawn_given(inference, evidence, n, rng)
    columns = _state_columns(inference.states, codes)
    columns |= {name: pl.Series(name, numbers[:, k]) for k, name in enumerate(inference.continuous)}
    return pl.DataFrame({name: columns[name] for name in inference.dag.nodes})


def _drawn_given(inference: Inference, evidence: Evidence, n: int, rng: np.random.Generator) -> tuple[Array, Array]:
    values = evidence.numbers
    compiled = inference.compiled(values, measured=evidence.children, everything=True)
    soft, _ = compiled.likelihoods(values, 1)
    known = compiled.evidence(evidence, soft)
    codes = compiled.tables.sample(known, n, rng) if compiled.tables.cpts else np.zeros((n, 0), np.int64)
    numbers = np.empty((n, len(inference.continuous)))
    column = {name: k for k, name in enumerate(inference.continuous)}
    for name, value in evidence.values.items():
        numbers[:, column[name]] = value
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        at = np.zeros(n, np.int64) if position < 0 else codes[:, position]
        mean = component.hidden_mean(values)[0]
        for q in np.unique(at).tolist():
            rows = np.flatnonzero(at == q)
            spread = root_of(component.hidden_covariance[q])
            drawn = mean[q] + rng.standard_normal((len(rows), len(component.hidden))) @ spread.T
            for k, name in enumerate(component.hidden):
                numbers[rows, column[name]] = drawn[:, k]
    return codes[:, : len(inference.states)], numbers


def root_of(covariance: Array) -> Array:
    """Return R with R Rᵀ = covariance, which may be singular."""
    values, vectors = np.linalg.eigh(covariance)
    root: Array = vectors * np.sqrt(np.maximum(values, 0.0))
    return root


def _state_columns(of_variables: Mapping[str, States], codes: Array) -> dict[str, Any]:
    """Return codes (n, V) as polars Series of the states, by name: polars would rename one with an empty name."""
    import polars as pl

    columns = {}
    for v, (name, states) in enumerate(of_variables.items()):
        if all(isinstance(state, str) for state in states):
            enum = pl.Series(states, dtype=pl.Enum([str(state) for state in states]))
            columns[name] = enum.gather(codes[:, v]).alias(name)  # polars would take a name ^a$ for a pattern
        else:
            columns[name] = pl.Series(name, [states[code] for code in codes[:, v].tolist()], strict=False)
    return columns


def joint_of_states(inference: Inference, names: Sequence[str]) -> Array:
    """Return p(names), an axis for each; ValueError if one is continuous."""
    for name in names:
        require_variable(name, inference.variables)
        if name not in inference.states:
            raise ValueError(f"the formula needs p({name}), which is continuous; use net.do(…).query(…)")
    if not names:
        return np.ones(())
    return inference.tables.joint(names, Evidence(inference.states, {}))


# The rows of a table --------------------------------------------------------------------------------------------


def log_likelihood(inference: Inference, table: Any, n_jobs: int | None) -> Array:
    """Return log p(row), (n,); see `BayesianNetwork.log_likelihood`."""
    return inference.log_likelihood(*read_rows(table, inference.states, inference.dag.nodes), n_jobs)


def target_marginal(inference: Inference, table: Any, target: str, n_jobs: int | None) -> Array:
    """Return p(target | the other known cells of the row), (n, K); see `BayesianNetwork.predict_proba`."""
    require_variable(target, inference.variables)
    if target not in inference.states:
        raise ValueError(f"{target!r} is continuous, without states; net.marginals gives its mean and variance")
    rows = read_rows(table, inference.states, inference.dag.nodes, ignored=target)
    return _marginals(inference, *rows, (target,), {}, n_jobs)[target]


def marginals(
    inference: Inference,
    table: Any,
    variables: str | Sequence[str] | None,
    soft: Mapping[str, Any] | None,
    n_jobs: int | None,
) -> dict[str, Array]:
    """Return p(variable | row) per discrete variable, (n, K), and mean and variance per continuous one, (n, 2)."""
    codes, numbers = read_rows(table, inference.states, inference.dag.nodes)
    names = inference.dag.nodes if variables is None else as_names(variables)
    for name in names:
        require_variable(name, inference.variables)
    likelihoods = _likelihoods(soft or {}, inference, len(codes))
    return _marginals(inference, codes, numbers, names, likelihoods, n_jobs)


def _marginals(
    inference: Inference,
    codes: Array,
    numbers: Array,
    names: Sequence[str],
    likelihoods: dict[int, Array],
    n_jobs: int | None,
) -> dict[str, Array]:
    """Return the marginals of rows; warn of impossible ones."""
    place, n = inference.tables.position, len(codes)
    discrete = {place[name] for name in names if name in place}
    asked = [name for name in names if name not in place]
    found = {name: np.empty((n, len(inference.states[name]) if name in place else 2)) for name in names}
    log_evidence = np.zeros(n)
    for compiled, rows, values in inference.batches(numbers, asked):
        own = codes[rows]
        soft, _ = compiled.likelihoods(values, len(own))
        for position, given in likelihoods.items():
            likelihood = given[rows] if given.ndim == 2 else np.broadcast_to(given, (len(own), len(given)))
            soft[position] = soft[position] * likelihood if position in soft else likelihood
        hidden = [name for name in asked if name not in values]
        positions = sorted(discrete | {compiled.holding(name)[1] for name in hidden} - {-1})
        tables: dict[int, Array] = {}
        if positions:
            arrays, log_evidence[rows] = compiled.tables.marginals(compiled.padded(own), positions, soft, n_jobs)
            tables = dict(zip(positions, arrays, strict=True))
        for name in names:
            if name in place:
                found[name][rows] = tables[place[name]]
            elif name in values:
                found[name][rows] = np.column_stack([values[name], np.zeros(len(own))])
            else:
                found[name][rows] = _moments(compiled, name, values, tables, len(own))
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


def _likelihoods(soft: Mapping[str, Any], inference: Inference, n: int) -> dict[int, Array]:
    """Read the likelihoods of soft evidence about the rows of a table, by the positions of their variables.

    Raise ValueError if there is no such variable, it is continuous, or its likelihoods are negative, infinite, all 0 or
    of another shape.
    """
    likelihoods = {}
    for name, values in soft.items():
        require_variable(name, inference.states)
        likelihood = np.asarray(values, np.float64)
        n_states = len(inference.states[name])
        if likelihood.shape not in ((n_states,), (n, n_states)):
            raise ValueError(
                f"the likelihoods of {name!r} have shape {likelihood.shape}; give one for each of its {n_states} "
                f"states, ({n_states},), or one row for each row of the table, ({n}, {n_states})"
            )
        if not np.isfinite(likelihood).all() or (likelihood < 0).any() or not likelihood.any(axis=-1).all():
            raise ValueError(f"the likelihoods of {name!r} must be finite, at least 0, and not all 0 in a row")
        likelihoods[inference.tables.position[name]] = likelihood
    return likelihoods
