"""The tables of a given graph from cases: by counting, and by EM where cells are missing."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.draws import generator
from posteriori.learning.acceleration import PlainEM
from posteriori.learning.em import EMOptions, run_em, warn_of_last_gain
from posteriori.networks.cpt import CPT
from posteriori.networks.family_counts import FamilyCounts, without_missing
from posteriori.networks.junction_tree import Factor, JunctionTree, compile_tree
from posteriori.networks.naming import require_variable, state_by_state
from posteriori.networks.scores import require_sample_size
from posteriori.statistics.joint_counts import CountTogether
from posteriori.typing import Array

_BATCH_ROWS = 1 << 16  # incomplete rows at a time: the tree reads them as 8-byte codes


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
    statistics: FamilyCounts, options: LearningOptions, max_table_size: int = 2**27, n_jobs: int | None = None
) -> LearnedTables:
    """Estimate the tables: in closed form, or by EM where cells are missing.

    Parameters
    ----------
    statistics : FamilyCounts
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
    shapes = [counts.shape for counts in statistics.counts]
    pseudo = [
        options.smoothing.pseudo_counts(column.name, shape)
        for column, shape in zip(statistics.columns, shapes, strict=True)
    ]
    if not len(statistics.incomplete.weight):
        return LearnedTables(_tables(statistics, [n + a for n, a in zip(statistics.counts, pseudo, strict=True)]))
    counts, trace = _run_em(statistics, pseudo, options, max_table_size, n_jobs)
    return LearnedTables(_tables(statistics, counts), trace)


def _run_em(
    statistics: FamilyCounts,
    pseudo: list[Array],
    options: LearningOptions,
    max_table_size: int,
    n_jobs: int | None,
) -> tuple[list[Array], tuple[float, ...]]:
    """Return the expected counts plus pseudo-counts, and the log-likelihood before each step.

    EM for the mode of the posterior: each step raises log p(known cells) + Σ alpha·log p, which is the log-likelihood
    itself if alpha is 0. The M step normalises expected counts (Koller & Friedman 2009, section 19.2.2).

    References
    ----------
    Lauritzen (1995), The EM algorithm for graphical association models with missing data, Computational Statistics &
    Data Analysis 19.
    """
    probabilities = _start(statistics, pseudo, generator(options.random_state))
    tree = compile_tree(statistics.cardinalities, _factors(statistics, probabilities), max_table_size=max_table_size)

    def step(probabilities: list[Array]) -> tuple[list[Array], float, float]:
        now = tree.with_factors(_factors(statistics, probabilities))
        expected, log_likelihood = _expected_counts(now, statistics, n_jobs)
        # A complete row needs no inference: its log-likelihood is Σ n·log p over the families.
        log_likelihood += weighted_log(statistics.counts, probabilities)
        return expected, log_likelihood, weighted_log(pseudo, probabilities)

    def maximise(expected: list[Array]) -> tuple[list[Array], list[Array]]:
        counts = [n + m + a for n, m, a in zip(statistics.counts, expected, pseudo, strict=True)]
        return [normalised(table) for table in counts], counts

    run = run_em(step, maximise, PlainEM(probabilities), options.em, statistics.weight)
    if not run.converged:
        warn_of_last_gain(run.gain, options.em, stacklevel=6)
    return run.statistics, run.trace


def _expected_counts(tree: JunctionTree, statistics: FamilyCounts, n_jobs: int | None) -> tuple[list[Array], float]:
    """Return the expected counts of the incomplete rows, and the log-likelihood of their known cells."""
    codes, weight = statistics.incomplete.codes.values, statistics.incomplete.weight
    total = [np.zeros(counts.shape) for counts in statistics.counts]
    log_likelihood = 0.0
    for start in range(0, len(codes), _BATCH_ROWS):
        rows = slice(start, start + _BATCH_ROWS)
        # The statistics code a missing cell as 0 and states from 1; the tree uses −1 and states from 0.
        batch_counts, batch_log_likelihood = tree.expected_counts(
            codes[rows].astype(np.int64) - 1, weight[rows], statistics.scopes, n_jobs=n_jobs
        )
        log_likelihood += batch_log_likelihood
        for whole, counts in zip(total, batch_counts, strict=True):
            whole += counts
    return total, log_likelihood


def _start(statistics: FamilyCounts, pseudo: list[Array], rng: np.random.Generator) -> list[Array]:
    """Return the tables from which EM starts.

    They are estimated from the rows in which a whole family is known. A family that no row shows, as of a hidden
    variable, gets a random table: from uniform tables, EM could not tell its states apart.
    """
    rows = statistics.incomplete
    shown = without_missing(CountTogether(statistics.scopes).of(rows.codes, rows.assignment))
    tables = []
    for n, m, a in zip(statistics.counts, shown, pseudo, strict=True):
        counts = n + m
        if not counts.any():
            counts = rng.gamma(1.0, size=counts.shape)
        # EM cannot leave a probability of 0, so that cells without pseudo-counts start from one pseudo-count.
        tables.append(normalised(counts + np.where(a > 0, a, 1.0)))
    return tables


def _factors(statistics: FamilyCounts, tables: Sequence[Array]) -> list[Factor]:
    return [Factor(scope, table) for scope, table in zip(statistics.scopes, tables, strict=True)]


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


def _tables(statistics: FamilyCounts, counts: Sequence[Array]) -> tuple[CPT, ...]:
    """Return the normalised counts as CPTs; warn of rows without any count."""
    columns = statistics.columns
    cpts, undecided = [], []
    for column, scope, table in zip(columns, statistics.scopes, counts, strict=True):
        parents = {columns[v].name: columns[v].categories for v in scope[:-1]}
        empty = np.argwhere(~table.any(axis=-1))
        where = f" where {state_by_state(parents, empty[0])}" if len(empty) and parents else ""
        more = f" and {len(empty) - 1:,} more" if len(empty) > 1 else ""
        undecided += [f"{column.name!r}{where}{more}"] if len(empty) else []
        cpts.append(CPT(column.name, column.categories, parents, normalised(table)))
    if undecided:
        others = f"; and of {len(undecided) - 5} other variables" if len(undecided) > 5 else ""
        warnings.warn(
            f"no row of the data decides these rows of tables, which are left uniform: "
            f"{'; '.join(undecided[:5])}{others}; set alpha > 0 to make them uniform without this warning",
            UserWarning,
            stacklevel=5,
        )
    return tuple(cpts)
