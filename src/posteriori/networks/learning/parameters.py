"""Parameters of a network from rows, with expected counts for missing cells."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.learning.em_steps import PlainEM
from posteriori.learning.fit import EMOptions, run_em, warn_of_last_gain
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import require_variable, state_by_state
from posteriori.networks.inference.inference import Compiled, Inference
from posteriori.networks.learning.family_scores import require_sample_size
from posteriori.networks.learning.family_statistics import (
    CountFamilies,
    FamilyMoments,
    FamilyStatistics,
    GraphFamilies,
    regression,
    without_missing,
)
from posteriori.statistics.counts import CountTogether
from posteriori.support.checks import generator
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Codes
from posteriori.user_warnings import warn

_BATCH_ROWS = 1 << 16  # incomplete rows at a time: the tree reads them as 8-byte codes


def expected_statistics(
    inference: Inference,
    tables: Sequence[Array],
    densities: Mapping[str, LinearGaussian],
    statistics: FamilyStatistics,
    n_jobs: int | None,
) -> tuple[list[Array], list[FamilyMoments], float]:
    """Return the expected counts and moments of the incomplete rows, and the log-likelihood of their known cells.

    Parameters
    ----------
    inference : Inference
        Of any tables and densities of the graph: only what is compiled of it matters.
    tables : sequence of ndarray
        Of the discrete variables, in their order.
    densities : mapping from str to LinearGaussian
    statistics : FamilyStatistics
    n_jobs : int, optional
    """
    families, incomplete = statistics.families, statistics.incomplete
    counts = [np.zeros(table.shape) for table in statistics.counts]
    moments = [
        FamilyMoments(np.zeros_like(one.weight), np.zeros_like(one.mean), np.zeros_like(one.scatter))
        for one in statistics.moments
    ]
    log_likelihood = 0.0
    # The positions among the discrete variables are those of the compiled network, which keeps their order.
    for structure, rows, values in inference.batches(incomplete.numbers, everything=True):
        compiled, tree = structure.refilled(tables, densities)
        positions = sorted(set(compiled.auxiliary) - {-1})
        # The statistics code a missing cell as 0 and states from 1; the tree uses −1 and states from 0.
        own_codes, own_weight = incomplete.codes[rows], incomplete.weight[rows]
        for start in range(0, len(own_weight), _BATCH_ROWS):
            part = slice(start, start + _BATCH_ROWS)
            weight, own_values = own_weight[part], {name: cells[part] for name, cells in values.items()}
            codes = compiled.padded(own_codes[part].astype(np.int64) - 1)
            soft, scale = compiled.likelihoods(own_values, len(weight))
            log_likelihood += float(weight @ scale)
            shares: dict[int, Array] = {}
            if tree is not None:
                found, log_evidence = tree.expected_counts(codes, weight, families.count_scopes, soft or None, n_jobs)
                log_likelihood += log_evidence
                for total, more in zip(counts, found, strict=True):
                    total += more
            if tree is not None and positions:
                arrays, _ = tree.marginals(codes, soft or None, n_jobs, variables=positions)
                shares = dict(zip(positions, arrays, strict=True))
            _add_moments(moments, families, compiled, weight, own_values, shares)
    return counts, moments, log_likelihood


def _add_moments(
    moments: list[FamilyMoments],
    families: GraphFamilies,
    compiled: Compiled,
    weight: Array,
    values: dict[str, Array],
    tables: dict[int, Array],
) -> None:
    """Add the expected moments of some rows of one pattern, family by family."""
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
            whole = FamilyMoments(total.reshape(shape), mean.reshape(*shape, m), scatter.reshape(*shape, m, m))
            moments[k] = moments[k] + _projected(whole, list(component.discrete), [discrete[v] for v in scope])


def _projected(moments: FamilyMoments, axes: list[str], kept: list[str]) -> FamilyMoments:
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
    return FamilyMoments(total, centre, scatter.sum(axis=-3) + between)


_LOG_2PI = math.log(2.0 * math.pi)

Densities = dict[str, LinearGaussian]
Sums = tuple[list[Array], list[FamilyMoments]]  # counts of the discrete families, and moments of the others


@dataclass(frozen=True)
class Smoothing:
    r"""A Dirichlet prior on each row of a table, in pseudo-counts.

    .. math:: p(x_v = k \mid a) = \frac{n_{ak} + \alpha_{ak}}{\sum_k (n_{ak} + \alpha_{ak})}

    Attributes
    ----------
    alpha : float, or mapping from str to float or array
        Pseudo-counts per cell. A mapping gives them per variable, 1 for variables that it leaves out; an array has the
        shape of the table.
    equivalent_sample_size : float or None
        Replaces alpha: this many pseudo-rows, spread evenly over the cells of each table.
    """

    alpha: Any = 1.0
    equivalent_sample_size: float | None = None

    @classmethod
    def of(cls, alpha: Any, equivalent_sample_size: float | None, names: Iterable[str]) -> Smoothing:
        """Check the arguments of `fit`; ValueError if both are given or alpha names no variable."""
        if alpha is not None and equivalent_sample_size is not None:
            raise ValueError("alpha and equivalent_sample_size are two ways to smooth; give one of them")
        if equivalent_sample_size is not None:
            require_sample_size(equivalent_sample_size)
        if isinstance(alpha, Mapping):
            known = tuple(names)
            for name in alpha:
                require_variable(name, known)
        return cls(1.0 if alpha is None else alpha, equivalent_sample_size)

    def pseudo_counts(self, variable: str, shape: tuple[int, ...]) -> Array:
        """Return the pseudo-counts of a table, (K of each parent…, K)."""
        if self.equivalent_sample_size is not None:
            return np.full(shape, self.equivalent_sample_size / math.prod(shape))
        given = self.alpha.get(variable, 1.0) if isinstance(self.alpha, Mapping) else self.alpha
        try:
            alpha = np.asarray(given, np.float64)
        except (TypeError, ValueError):
            raise ValueError(f"alpha of {variable!r} is {given!r}; give a number, or one for each cell") from None
        if alpha.shape not in ((), shape):
            raise ValueError(
                f"alpha of {variable!r} has shape {alpha.shape}; give one number, or one for each cell of its table, "
                f"which has shape {shape}"
            )
        if not (np.isfinite(alpha) & (alpha >= 0)).all():
            raise ValueError(f"alpha of {variable!r} is {given!r}; pseudo-counts are finite and at least 0")
        return np.broadcast_to(alpha, shape)


@dataclass(frozen=True)
class LearningOptions:
    """How `BayesianNetwork.fit` turns counts into tables; `partial_fit` uses the same options again.

    Attributes
    ----------
    smoothing : Smoothing
    em : EMOptions
        When EM stops.
    random_state : int, RandomState, Generator or None
        Seed of the tables from which EM starts.
    """

    smoothing: Smoothing
    em: EMOptions
    random_state: Any

    @classmethod
    def of(
        cls,
        names: Iterable[str],
        alpha: Any,
        equivalent_sample_size: float | None,
        max_iter: Any,
        tol: float,
        random_state: Any,
    ) -> LearningOptions:
        """Check the arguments of `BayesianNetwork.fit`; ValueError for one that is out of its range."""
        if isinstance(max_iter, bool) or not isinstance(max_iter, int | np.integer) or max_iter < 1:
            raise ValueError(f"max_iter is {max_iter!r}; it must be a whole number of at least 1")
        if not tol >= 0:
            raise ValueError(f"tol is {tol!r}; it must be at least 0 nats per row")
        smoothing = Smoothing.of(alpha, equivalent_sample_size, names)
        return cls(smoothing, EMOptions(tol, int(max_iter)), random_state)


@dataclass(frozen=True)
class LearnedTables:
    """The tables of a graph, and the progress of EM.

    Attributes
    ----------
    cpts : tuple of CPT or LinearGaussian (V,)
    trace : tuple of float
        The log-likelihood of the known cells, in nats, before each step of EM; empty if no cell is missing.
    """

    cpts: tuple[Any, ...]
    trace: tuple[float, ...] = ()


def fit_tables(
    dag: DAG,
    statistics: FamilyStatistics,
    options: LearningOptions,
    max_table_size: int = 2**27,
    n_jobs: int | None = None,
) -> LearnedTables:
    """Estimate tables with pseudo-counts, and densities by maximum likelihood: in closed form, or by EM.

    A density is the regression of a variable on its continuous parents in each configuration of the discrete ones. A
    configuration with no more rows than parameters gets the regression of all configurations together.

    Parameters
    ----------
    dag : DAG
    statistics : FamilyStatistics
    options : LearningOptions
    max_table_size : int
        The most cells of the junction tree that EM needs.
    n_jobs : int, optional

    Warns
    -----
    ConvergenceWarning
        EM reached the limit of steps; the message has the last gain.
    UserWarning
        No row or pseudo-count decides a row of a table; it is uniform.
    """
    families = statistics.families
    pseudo = [
        options.smoothing.pseudo_counts(families.columns[v].name, table.shape)
        for v, table in zip(families.discrete, statistics.counts, strict=True)
    ]
    counts, moments = statistics.counts, list(statistics.moments)
    trace: tuple[float, ...] = ()
    if len(statistics.incomplete.weight):
        counts, moments, trace = _run_em(dag, statistics, pseudo, options, max_table_size, n_jobs)
    smoothed = [n + a for n, a in zip(counts, pseudo, strict=True)]
    found = _cpts(statistics, smoothed) | _densities(statistics, moments)
    return LearnedTables(tuple(found[column.name] for column in families.columns), trace)


def _run_em(
    dag: DAG,
    statistics: FamilyStatistics,
    pseudo: list[Array],
    options: LearningOptions,
    max_table_size: int,
    n_jobs: int | None,
) -> tuple[list[Array], list[FamilyMoments], tuple[float, ...]]:
    """Return the expected counts and moments, and the log-likelihood before each step.

    EM for the mode of the posterior: each step raises log p(known cells) + Σ alpha·log p, which is the log-likelihood
    itself if alpha is 0. The M step normalises expected counts (Koller & Friedman 2009, section 19.2.2; Lauritzen 1995,
    The EM algorithm for graphical association models with missing data, Computational Statistics & Data Analysis 19).
    """
    counts, moments = _start(statistics, generator(options.random_state))
    # EM cannot leave a probability of 0, so that cells without pseudo-counts start from one pseudo-count.
    tables = [normalised(n + np.where(a > 0, a, 1.0)) for n, a in zip(counts, pseudo, strict=True)]
    densities = _densities(statistics, moments)
    cpts = tuple(_cpts(statistics, tables).values())
    ordered = tuple(densities[name] for name in dag.topological_order if name in densities)
    inference = Inference(dag, cpts, ordered, max_table_size)

    def step(model: tuple[list[Array], Densities]) -> tuple[Sums, float, float]:
        tables, densities = model
        counts, moments, log_likelihood = expected_statistics(inference, tables, densities, statistics, n_jobs)
        # A complete row needs no inference: its log-likelihood is that of its families.
        log_likelihood += weighted_log(statistics.counts, tables) + _log_density(statistics, densities)
        return (counts, moments), log_likelihood, weighted_log(pseudo, tables)

    def maximise(expected: Sums) -> tuple[tuple[list[Array], Densities], Sums]:
        counts = [n + more for n, more in zip(statistics.counts, expected[0], strict=True)]
        moments = [one + more for one, more in zip(statistics.moments, expected[1], strict=True)]
        tables = [normalised(n + a) for n, a in zip(counts, pseudo, strict=True)]
        return (tables, _densities(statistics, moments)), (counts, moments)

    run = run_em(step, maximise, PlainEM((tables, densities)), options.em, statistics.weight)
    if not run.converged:
        warn_of_last_gain(run.gain, options.em)
    return *run.statistics, run.trace


def _start(statistics: FamilyStatistics, rng: np.random.Generator) -> tuple[list[Array], list[FamilyMoments]]:
    """Return the counts and moments from which EM starts.

    Of discrete variables they are those of the rows in which a whole family is known; a family that no row shows, as of
    a hidden variable, gets a random table. With continuous variables all rows count, their gaps filled: numbers by the
    mean of their column, states at random. From equal tables EM could not tell the states of a hidden variable apart.
    """
    families, rows = statistics.families, statistics.incomplete
    if not families.continuous:
        tile, one = Codes(rows.codes, families.cardinalities), np.zeros(len(rows.weight), np.int32)
        shown = without_missing(CountTogether(families.count_scopes).of(tile, Assignment(one, rows.weight, 1)))
        counts = [n + m for n, m in zip(statistics.counts, shown, strict=True)]
        return [n if n.any() else rng.gamma(1.0, size=n.shape) for n in counts], []
    codes, numbers = rows.codes.astype(np.int64), rows.numbers.copy()
    for j, cardinality in enumerate(families.cardinalities):
        gaps = np.flatnonzero(codes[:, j] == 0)
        codes[gaps, j] = rng.integers(1, cardinality + 1, len(gaps))
    for j in range(numbers.shape[1]):
        known = numbers[~np.isnan(numbers[:, j]), j]
        numbers[np.isnan(numbers[:, j]), j] = known.mean() if len(known) else 0.0
    filled = CountFamilies(families).of(Codes(codes, families.cardinalities), numbers, rows.weight)
    counts = [n + m for n, m in zip(statistics.counts, filled.counts, strict=True)]
    return counts, [one + more for one, more in zip(statistics.moments, filled.moments, strict=True)]


def _log_density(statistics: FamilyStatistics, densities: Densities) -> float:
    """Return the log-likelihood of the numbers of the complete rows, from their moments."""
    families, total = statistics.families, 0.0
    names = [families.columns[v].name for v in families.continuous]
    for (_, members), one in zip(families.moment_scopes, statistics.moments, strict=True):
        density = densities[names[members[-1]]]
        contrast = np.concatenate([-density.coefficients, np.ones((*density.intercept.shape, 1))], axis=-1)
        left = (contrast * one.mean).sum(axis=-1) - density.intercept
        square = np.einsum("...i,...ij,...j->...", contrast, one.scatter, contrast) + one.weight * left**2
        total -= 0.5 * float((one.weight * (np.log(density.variance) + _LOG_2PI) + square / density.variance).sum())
    return total


def weighted_log(weights: Sequence[Array], tables: Sequence[Array]) -> float:
    """Return Σ weight·log p over the cells of positive weight: 0·log 0 counts as 0."""
    total = 0.0
    for weight, table in zip(weights, tables, strict=True):
        counted = weight > 0
        with np.errstate(divide="ignore"):
            total += float(weight[counted] @ np.log(table[counted]))
    return total


def normalised(counts: Array) -> Array:
    """Return counts / their sum along the last axis; uniform where the sum is 0."""
    total = counts.sum(axis=-1, keepdims=True)
    with np.errstate(invalid="ignore", divide="ignore"):
        normalised: Array = np.where(total > 0, counts / total, 1.0 / counts.shape[-1])
    return normalised


def _densities(statistics: FamilyStatistics, moments: Sequence[FamilyMoments]) -> Densities:
    """Return the regressions of the continuous variables."""
    families = statistics.families
    discrete = [families.columns[v] for v in families.discrete]
    names = [families.columns[v].name for v in families.continuous]
    found = {}
    for (scope, members), one in zip(families.moment_scopes, moments, strict=True):
        states = {discrete[k].name: discrete[k].categories for k in scope}
        *regressors, own = (names[k] for k in members)
        found[own] = LinearGaussian(own, tuple(regressors), states, *regression(one))
    return found


def _cpts(statistics: FamilyStatistics, counts: Sequence[Array]) -> dict[str, Any]:
    """Return the normalised counts as CPTs; warn of rows without any count."""
    families = statistics.families
    columns = [families.columns[v] for v in families.discrete]
    cpts, undecided = {}, []
    for column, scope, table in zip(columns, families.count_scopes, counts, strict=True):
        parents = {columns[v].name: columns[v].categories for v in scope[:-1]}
        empty = np.argwhere(~table.any(axis=-1))
        where = f" where {state_by_state(parents, empty[0])}" if len(empty) and parents else ""
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        undecided += [f"{column.name!r}{where}{more}"] if len(empty) else []
        cpts[column.name] = CPT(column.name, column.categories, parents, normalised(table))
    if undecided:
        others = f"; and of {len(undecided) - 5} other variables" if len(undecided) > 5 else ""
        warn(
            f"no row of the data decides these rows of tables, which are left uniform: "
            f"{'; '.join(undecided[:5])}{others}; set alpha > 0 to make them uniform without this warning"
        )
    return cpts
