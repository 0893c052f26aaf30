"""Tables and densities of a given graph from cases: in closed form, and by EM where cells are missing."""

from __future__ import annotations

import math

import numpy as np

from posteriori.draws import generator
from posteriori.learning.acceleration import PlainEM
from posteriori.learning.em import run_em, warn_of_last_gain
from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG
from posteriori.networks.family_moments import CountHybrid, HybridStatistics, Moments
from posteriori.networks.inference import Compiled, Inference
from posteriori.networks.learning import LearnedTables, LearningOptions, normalised, weighted_log
from posteriori.networks.linear_gaussian import LinearGaussian
from posteriori.tables import Codes
from posteriori.typing import Array

_LEAST_VARIANCE = 1e-9  # of that of the column: a constant column must not give a point mass
_LOG_2PI = math.log(2.0 * math.pi)

Tables = tuple[CPT | LinearGaussian, ...]
Expected = tuple[list[Array], list[Moments]]


def fit_hybrid(
    dag: DAG, statistics: HybridStatistics, options: LearningOptions, max_table_size: int, n_jobs: int | None
) -> LearnedTables:
    """Estimate tables with pseudo-counts, and densities by maximum likelihood.

    A density is the regression of a variable on its continuous parents in each configuration of the discrete ones. A
    configuration with no more rows than parameters gets the regression of all configurations together.

    Warns
    -----
    ConvergenceWarning
        EM reached the limit of steps; the message has the last gain.
    """
    families = statistics.families
    pseudo = [
        options.smoothing.pseudo_counts(families.columns[v].name, table.shape)
        for v, table in zip(families.discrete, statistics.tables, strict=True)
    ]
    if not len(statistics.weight):
        return LearnedTables(_estimated(statistics, statistics.tables, list(statistics.moments), pseudo))
    return _run_em(dag, statistics, pseudo, options, max_table_size, n_jobs)


def _estimated(
    statistics: HybridStatistics, counts: list[Array], moments: list[Moments], pseudo: list[Array]
) -> tuple[CPT | LinearGaussian, ...]:
    families = statistics.families
    columns = families.columns
    found: dict[str, CPT | LinearGaussian] = {}
    discrete = [columns[v] for v in families.discrete]
    for scope, n, alpha in zip(families.count_scopes, counts, pseudo, strict=True):
        *above, own = (discrete[k] for k in scope)
        parents = {column.name: column.categories for column in above}
        found[own.name] = CPT(own.name, own.categories, parents, normalised(n + alpha))
    names = [columns[v].name for v in families.continuous]
    for (scope, members), one in zip(families.moment_scopes, moments, strict=True):
        states = {discrete[k].name: discrete[k].categories for k in scope}
        *regressors, own_name = (names[k] for k in members)
        found[own_name] = LinearGaussian(own_name, tuple(regressors), states, *regression(one))
    return tuple(found[column.name] for column in columns)


def regression(moments: Moments) -> tuple[Array, Array, Array]:
    """Return intercept (K…), coefficients (K…, m − 1) and variance (K…) of the last variable given the others."""
    whole = moments.pooled()
    shape, m = moments.weight.shape, moments.mean.shape[-1]
    few = moments.weight.ravel() <= m
    mean = np.where(few[:, None], whole.mean, moments.mean.reshape(-1, m))
    scatter = np.where(few[:, None, None], whole.scatter, moments.scatter.reshape(-1, m, m))
    weight = np.where(few, float(whole.weight), moments.weight.ravel())
    scale = np.sqrt(np.diag(whole.scatter)[: m - 1])
    scale = np.where(scale > 0, scale, 1.0)
    s_pp = scatter[:, :-1, :-1] / scale[:, None] / scale
    s_pv = scatter[:, :-1, -1] / scale
    coefficients = np.einsum("qij,qj->qi", np.linalg.pinv(s_pp, rcond=1e-12, hermitian=True), s_pv)
    left = scatter[:, -1, -1] - np.einsum("qi,qi->q", coefficients, s_pv)
    coefficients = coefficients / scale
    total = max(float(whole.weight), 1e-300)
    spread = float(whole.scatter[-1, -1]) / total
    floor = _LEAST_VARIANCE * spread if spread > 0 else _LEAST_VARIANCE
    variance = np.maximum(left / np.maximum(weight, 1e-300), floor)
    intercept = mean[:, -1] - np.einsum("qi,qi->q", coefficients, mean[:, :-1])
    return intercept.reshape(shape), coefficients.reshape(*shape, m - 1), variance.reshape(shape)


def _run_em(
    dag: DAG,
    statistics: HybridStatistics,
    pseudo: list[Array],
    options: LearningOptions,
    max_table_size: int,
    n_jobs: int | None,
) -> LearnedTables:
    """EM: expected counts and expected moments of the incomplete rows join those of the complete ones.

    References
    ----------
    Lauritzen (1995), The EM algorithm for graphical association models with missing data, Computational Statistics &
    Data Analysis 19.
    """
    start = _start(statistics, pseudo, generator(options.random_state))

    def step(tables: Tables) -> tuple[Expected, float, float]:
        inference = _inference(dag, tables, max_table_size)
        counts, moments, log_likelihood = _expected(inference, statistics, n_jobs)
        log_likelihood += _of_complete_rows(statistics, inference)
        log_prior = weighted_log(pseudo, [cpt.probabilities for cpt in inference.cpts])  # in the order of the columns
        return (counts, moments), log_likelihood, log_prior

    def maximise(expected: Expected) -> tuple[Tables, Expected]:
        counts = [n + more for n, more in zip(statistics.tables, expected[0], strict=True)]
        moments = [one + more for one, more in zip(statistics.moments, expected[1], strict=True)]
        return _estimated(statistics, counts, moments, pseudo), expected

    run = run_em(step, maximise, PlainEM(start), options.em, statistics.total_weight)
    if not run.converged:
        warn_of_last_gain(run.gain, options.em, stacklevel=6)
    return LearnedTables(run.model, run.trace)


def _inference(dag: DAG, tables: tuple[CPT | LinearGaussian, ...], max_table_size: int) -> Inference:
    by_name = {table.variable: table for table in tables}
    cpts = tuple(table for table in tables if isinstance(table, CPT))
    ordered = (by_name[name] for name in dag.topological_order)
    return Inference(dag, cpts, tuple(one for one in ordered if isinstance(one, LinearGaussian)), max_table_size)


def _start(
    statistics: HybridStatistics, pseudo: list[Array], rng: np.random.Generator
) -> tuple[CPT | LinearGaussian, ...]:
    """Return the tables and densities from which EM starts.

    They are estimated from complete rows and from the incomplete ones with their gaps filled: numbers by the mean of
    their column, states at random. From equal densities EM could not tell the states of a hidden variable apart.
    """
    families = statistics.families
    codes, numbers = statistics.codes.copy(), statistics.numbers.copy()
    for j, cardinality in enumerate(families.cardinalities):
        gaps = np.flatnonzero(codes[:, j] == 0)
        codes[gaps, j] = rng.integers(1, cardinality + 1, len(gaps))
    for j in range(numbers.shape[1]):
        known = numbers[~np.isnan(numbers[:, j]), j]
        numbers[np.isnan(numbers[:, j]), j] = known.mean() if len(known) else 0.0
    filled = CountHybrid(families).of(Codes(codes, families.cardinalities), numbers, statistics.weight)
    counts = [n + m for n, m in zip(statistics.tables, filled.tables, strict=True)]
    moments = [one + more for one, more in zip(statistics.moments, filled.moments, strict=True)]
    # EM cannot leave a probability of 0, so that cells without pseudo-counts start from one pseudo-count.
    return _estimated(statistics, counts, moments, [np.where(alpha > 0, alpha, 1.0) for alpha in pseudo])


def _expected(
    inference: Inference, statistics: HybridStatistics, n_jobs: int | None
) -> tuple[list[Array], list[Moments], float]:
    """Return the expected counts and moments of the incomplete rows, and the log-likelihood of their known cells."""
    families = statistics.families
    counts = [np.zeros(table.shape) for table in statistics.tables]
    moments = [
        Moments(np.zeros_like(one.weight), np.zeros_like(one.mean), np.zeros_like(one.scatter))
        for one in statistics.moments
    ]
    log_likelihood = 0.0
    # The positions among the discrete variables are those of the compiled network, which keeps their order.
    for compiled, rows, values in inference.batches(statistics.numbers, everything=True):
        weight = statistics.weight[rows]
        codes = compiled.padded(statistics.codes[rows] - 1)
        soft, scale = compiled.likelihoods(values, len(weight))
        log_likelihood += float(weight @ scale)
        tables: dict[int, Array] = {}
        if compiled.tables.cpts:
            whole = compiled.tables.everything()
            found, log_evidence = whole.tree.expected_counts(codes, weight, families.count_scopes, soft or None, n_jobs)
            log_likelihood += log_evidence
            for total, more in zip(counts, found, strict=True):
                total += more
            positions = sorted(set(compiled.auxiliary) - {-1})
            arrays, _ = whole.tree.marginals(codes, soft or None, n_jobs, variables=positions)
            tables = dict(zip(positions, arrays, strict=True))
        _add_moments(moments, inference, statistics, compiled, weight, values, tables)
    return counts, moments, log_likelihood


def _add_moments(
    moments: list[Moments],
    inference: Inference,
    statistics: HybridStatistics,
    compiled: Compiled,
    weight: Array,
    values: dict[str, Array],
    tables: dict[int, Array],
) -> None:
    """Add the expected moments of some rows of one pattern, family by family."""
    families = statistics.families
    names = [families.columns[v].name for v in families.continuous]
    discrete = [families.columns[v].name for v in families.discrete]
    family = {names[members[-1]]: k for k, (_, members) in enumerate(families.moment_scopes)}
    for component, position in zip(compiled.components, compiled.auxiliary, strict=True):
        share = np.ones((len(weight), 1)) if position < 0 else tables[position]
        share = np.where(np.isnan(share), 0.0, share) * weight[:, np.newaxis]
        hidden = component.hidden_mean(values) if component.hidden else None
        for density in component.densities:
            k = family[density.variable]
            scope, members = families.moment_scopes[k]
            z = np.empty((len(weight), component.size, len(members)))
            places = []
            for j, member in enumerate(members):
                name = names[member]
                if name in values:
                    z[:, :, j] = values[name][:, np.newaxis]
                    places.append(-1)
                else:
                    places.append(component.hidden.index(name))
                    z[:, :, j] = hidden[:, :, places[-1]]  # type: ignore[index]
            total = share.sum(axis=0)
            mean = np.einsum("nq,nqi->qi", share, z) / np.where(total > 0, total, 1.0)[:, np.newaxis]
            centred = z - mean
            scatter = np.einsum("nq,nqi,nqj->qij", share, centred, centred)
            unknown = [j for j, place in enumerate(places) if place >= 0]
            if unknown:
                at = [places[j] for j in unknown]
                spread = component.hidden_covariance[:, at][:, :, at]
                scatter[np.ix_(range(component.size), unknown, unknown)] += total[:, None, None] * spread
            m = len(members)
            shape = component.shape
            whole = Moments(total.reshape(shape), mean.reshape(*shape, m), scatter.reshape(*shape, m, m))
            moments[k] = moments[k] + _projected(whole, list(component.discrete), [discrete[v] for v in scope])


def _projected(moments: Moments, axes: list[str], kept: list[str]) -> Moments:
    """Return the moments per configuration of some of the discrete variables, in another order."""
    rest = [k for k, name in enumerate(axes) if name not in kept]
    order = [axes.index(name) for name in kept] + rest
    m, n = moments.mean.shape[-1], len(axes)
    shape = tuple(moments.weight.shape[axes.index(name)] for name in kept)
    weight = moments.weight.transpose(order).reshape(*shape, -1)
    mean = moments.mean.transpose([*order, n]).reshape(*shape, -1, m)
    scatter = moments.scatter.transpose([*order, n, n + 1]).reshape(*shape, -1, m, m)
    total = weight.sum(axis=-1)
    centre = (weight[..., None] * mean).sum(axis=-2) / np.where(total > 0, total, 1.0)[..., None]
    centred = mean - centre[..., None, :]
    between = (weight[..., None, None] * centred[..., :, None] * centred[..., None, :]).sum(axis=-3)
    return Moments(total, centre, scatter.sum(axis=-3) + between)


def _of_complete_rows(statistics: HybridStatistics, inference: Inference) -> float:
    """Return the log-likelihood of the complete rows, from their counts and moments."""
    families = statistics.families
    by_name = {cpt.variable: cpt for cpt in inference.cpts}
    densities = {one.variable: one for one in inference.gaussians}
    total = 0.0
    for v, table in zip(families.discrete, statistics.tables, strict=True):
        counted = table > 0
        total += float(table[counted] @ np.log(by_name[families.columns[v].name].probabilities[counted]))
    names = [families.columns[v].name for v in families.continuous]
    for (_, members), one in zip(families.moment_scopes, statistics.moments, strict=True):
        density = densities[names[members[-1]]]
        contrast = np.concatenate([-density.coefficients, np.ones((*density.intercept.shape, 1))], axis=-1)
        left = (contrast * one.mean).sum(axis=-1) - density.intercept
        square = np.einsum("...i,...ij,...j->...", contrast, one.scatter, contrast) + one.weight * left**2
        total -= 0.5 * float((one.weight * (np.log(density.variance) + _LOG_2PI) + square / density.variance).sum())
    return total
