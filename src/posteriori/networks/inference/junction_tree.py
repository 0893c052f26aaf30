"""Junction trees: messages between cliques, for one case or for many rows."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeAlias, TypeVar

import joblib
import numpy as np

from posteriori.kernels.loops.junction_tree import Findings, Layout, accumulate, draw, maximise, propagate
from posteriori.kernels.machine.lanes import LANES
from posteriori.networks.graph.cpt import cell_count, how_to_set
from posteriori.networks.inference.clique_tables import (
    CliqueTables,
    Factor,
    TreeSkeleton,
    Triangulation,
    build_skeleton,
    fill_tables,
    most_bytes,
    triangulate,
)
from posteriori.support.typing import Array

__all__ = ["Factor", "JunctionTree", "compile_tree"]


T = TypeVar("T")


def encode_evidence(cardinalities: tuple[int, ...], codes: Array, soft: Mapping[int, Array]) -> Findings:
    """Return the codes, the likelihoods of all variables side by side, and where each variable begins.

    Parameters
    ----------
    cardinalities : tuple of int (V,)
    codes : ndarray of int (n, V)
        −1 for an unknown state.
    soft : mapping from int to ndarray (n, K) or (K,)

    Raises
    ------
    ValueError
        A code is no state of its variable, or the codes or a likelihood have another shape.
    """
    codes = np.asarray(codes)
    if codes.dtype != np.int64 or not codes.flags.carray:  # read-only arrays would compile the kernels again
        codes = np.require(codes, np.int64, ["C", "W"])
    if codes.ndim != 2 or codes.shape[1] != len(cardinalities):
        raise ValueError(f"the codes have shape {codes.shape}; each of {len(cardinalities)} variables needs a column")
    out_of_range = codes >= _as_array(cardinalities)
    if out_of_range.any():
        i, v = np.argwhere(out_of_range)[0]
        raise ValueError(f"code {codes[i, v]} in row {i} is none of the {cardinalities[v]} states of variable {v}")
    n = len(codes)
    soft_at = np.full(len(cardinalities), -1, np.int64)
    likelihoods = np.empty((n, sum(cardinalities[v] for v in soft)))
    start = 0
    for v, likelihood in soft.items():
        stop = start + cardinalities[v]
        if np.shape(likelihood) not in ((cardinalities[v],), (n, cardinalities[v])):
            raise ValueError(
                f"the likelihood of variable {v} has shape {np.shape(likelihood)}; ({cardinalities[v]},) or "
                f"({n}, {cardinalities[v]}) is needed"
            )
        likelihoods[:, start:stop] = likelihood
        soft_at[v], start = start, stop
    return Findings(codes, likelihoods, soft_at)


@functools.lru_cache(maxsize=64)
def _as_array(cardinalities: tuple[int, ...]) -> Array:
    return np.array(cardinalities, np.int64)


def take(evidence: Findings, rows: slice) -> Findings:
    """Return the evidence of a slice of rows."""
    return Findings(evidence.codes[rows], evidence.soft[rows], evidence.soft_at)


def slices_of(n: int, size: int) -> Iterator[slice]:
    """Yield consecutive slices of n rows."""
    return (slice(start, min(start + size, n)) for start in range(0, n, max(size, 1)))


def map_in_threads(work: Callable[[slice], T], slices: list[slice], n_jobs: int | None = None) -> list[T]:
    """Return the result of work on each slice, in order, with one thread per slice but at most n_jobs."""
    n_jobs = len(slices) if n_jobs is None else min(n_jobs, len(slices))
    if n_jobs <= 1:
        return [work(rows) for rows in slices]
    with ThreadPoolExecutor(n_jobs) as threads:
        return list(threads.map(work, slices))


Soft: TypeAlias = Mapping[int, Array] | None

_WORTH_A_THREAD = 1 << 19  # cells times rows: about a millisecond
_PARTIAL_SUMS = 8  # of expected counts: the same for any number of threads, so that the rounding is the same
_BATCH_ROWS = 1 << 14  # rows of a joint distribution, or draws, at a time
_MOST_CLIQUE_CELLS = 1 << 31  # cells have 32-bit indices
_NOTHING = np.empty(0)
_NO_TABLE = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class JunctionTree:
    r"""A distribution as a product of clique conditionals p(C | S) along a tree of cliques C with separators S.

    .. math:: p(x) \propto \prod_f f(x_f), \qquad p(x) = \prod_C p(x_{C \setminus S} \mid x_S)

    Evidence enters as likelihoods of single variables. The upward pass, from the leaves to the root, computes
    λ(s) = p(evidence below | s) for every separator. The downward pass turns p(C | s) · Π λ into beliefs. Without
    evidence below a separator, λ = 1 and the upward pass skips it. This is the sum-product calibration of a clique
    tree (Koller & Friedman 2009, section 10.2), with the messages of the prior already divided out.

    Attributes
    ----------
    triangulation : Triangulation
    skeleton : TreeSkeleton
    tables : CliqueTables
    variables : tuple of int
        The variables of the tree among those of a network, by which codes, likelihoods and questions refer to them.

    References
    ----------
    Lauritzen & Spiegelhalter (1988), Local computations with probabilities on graphical structures and their
    application to expert systems, JRSS B 50.
    Jensen, Lauritzen & Olesen (1990), Bayesian updating in causal probabilistic networks by local computations,
    Computational Statistics Quarterly 4.
    """

    triangulation: Triangulation
    skeleton: TreeSkeleton
    tables: CliqueTables
    variables: tuple[int, ...]

    @property
    def total_size(self) -> int:
        """The number of cells of all clique tables, before those that cannot occur are left out."""
        return self.triangulation.total_size

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of states of each variable of the tree."""
        return self.skeleton.cardinalities

    @functools.cached_property
    def _place(self) -> dict[int, int]:
        """The place of each variable in the tree."""
        return {v: place for place, v in enumerate(self.variables)}

    @property
    def _layout(self) -> Layout:
        return self.tables.layout

    def with_factors(self, factors: Sequence[Factor]) -> JunctionTree:
        """Return the tree of other tables over the same scopes, with the same cliques."""
        assigned = _assigned(self.triangulation, self.skeleton, _renumbered(factors, self._place))
        return replace(self, tables=fill_tables(self.skeleton, assigned))

    # Beliefs ----------------------------------------------------------------------------------------------------

    def marginals(
        self, codes: Array, soft: Soft = None, n_jobs: int | None = None, *, variables: Sequence[int] | None = None
    ) -> tuple[list[Array], Array]:
        """Return p(x_v | evidence) of every variable and log p(evidence), row by row.

        Parameters
        ----------
        codes : ndarray of int (n, V)
            The code of the state of each variable; −1 if it is unknown.
        soft : mapping from int to ndarray (n, K) or (K,), optional
            Likelihoods, ≥ 0, of the states of some variables.
        n_jobs : int, optional
            Threads; by default all cores. The answer does not depend on it.
        variables : sequence of int, optional
            The variables whose marginals are returned; by default all.

        Returns
        -------
        marginals : list of ndarray (n, K)
            NaN in rows whose evidence is impossible.
        log_evidence : ndarray (n,)
            In nats; −inf in such rows. If the factors are not normalised, it includes log Σ_x Π factors.

        Notes
        -----
        About a nanosecond per row and cell that can occur. The memory is that of all separators times LANES.
        """
        places = [self._place[v] for v in (self.variables if variables is None else variables)]
        return self._beliefs(self._evidence(codes, soft), places, n_jobs)

    def _beliefs(self, evidence: Findings, places: Sequence[int], n_jobs: int | None) -> tuple[list[Array], Array]:
        """Return the marginals of variables, by their places in the tree, and log p(evidence), row by row."""
        on_path = self._paths_to([self.skeleton.home[v] for v in places])
        state = self._layout.state
        marginals, log_evidence = np.empty((len(evidence.codes), int(state[-1]))), np.empty(len(evidence.codes))

        def work(rows: slice) -> None:
            out = marginals[rows], log_evidence[rows], _NOTHING, _NOTHING
            propagate(self._layout, take(evidence, rows), on_path, *out)

        map_in_threads(work, self._slices(len(log_evidence), n_jobs))
        return [marginals[:, state[v] : state[v + 1]] for v in places], log_evidence + self.tables.log_total

    def log_evidence(self, codes: Array, soft: Soft = None, n_jobs: int | None = None) -> Array:
        """Return log p(evidence) of each row in nats, (n,), by the upward pass alone; −inf if it is impossible.

        The parameters are those of `marginals`.
        """
        return self.marginals(codes, soft, n_jobs, variables=())[1]

    def most_probable(self, codes: Array, soft: Soft = None, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Return the most probable configuration of each row, (n, V), and log p(configuration, evidence), (n,).

        Max-product messages. Ties are broken the same way every time; −1 and −inf if the evidence is impossible. The
        parameters are those of `marginals`.

        References
        ----------
        Dawid (1992), Applications of a general propagation algorithm for probabilistic expert systems, Statistics and
        Computing 2.
        """
        evidence = self._evidence(codes, soft)
        states, log_probability = np.empty(evidence.codes.shape, np.int64), np.empty(len(evidence.codes))

        def work(rows: slice) -> None:
            maximise(self._layout, take(evidence, rows), states[rows], log_probability[rows])

        map_in_threads(work, self._slices(len(states), n_jobs))
        return states, log_probability + self.tables.log_total

    def joint(self, variables: Sequence[int], codes: Array, soft: Soft = None) -> tuple[Array, float]:
        """Return p(variables | evidence) of one row, an axis for each variable, and log p(evidence).

        By p(a, b | e) = p(a | e) p(b | a, e): b is the variable with the most possible states, and every configuration
        a of the other variables becomes a row of evidence. So the variables need no common clique.

        Parameters
        ----------
        variables : sequence of int
            Each at most once.
        codes : ndarray of int (V,)
        soft : mapping from int to ndarray (K,), optional

        Returns
        -------
        joint, log_evidence : ndarray and float
            NaN and −inf if the evidence is impossible.
        """
        if not variables:
            log_evidence = float(self.log_evidence(np.asarray(codes)[np.newaxis], soft)[0])
            return np.full((), 1.0 if log_evidence > -np.inf else np.nan), log_evidence
        codes, soft = self._own(np.asarray(codes, np.int64), soft)
        places = [self._place[v] for v in variables]
        shape = tuple(self.cardinalities[v] for v in places)
        possible = [(np.arange(k) if codes[v] < 0 else codes[[v]]) for v, k in zip(places, shape, strict=True)]
        last = max(range(len(variables)), key=lambda axis: len(possible[axis]))
        others = [axis for axis in range(len(variables)) if axis != last]
        n_rows = math.prod(len(possible[axis]) for axis in others)
        conditional, log_rows = np.empty((n_rows, shape[last])), np.empty(n_rows)
        for rows in slices_of(n_rows, _BATCH_ROWS):
            batch = np.tile(codes, (rows.stop - rows.start, 1))
            numbers = np.unravel_index(
                np.arange(rows.start, rows.stop), [len(possible[axis]) for axis in others] or [1]
            )
            for axis, number in zip(others, numbers, strict=False):
                batch[:, places[axis]] = possible[axis][number]
            evidence = encode_evidence(self.cardinalities, batch, soft)
            (conditional[rows],), log_rows[rows] = self._beliefs(evidence, [places[last]], None)
        most = float(log_rows.max())
        if most == -np.inf:
            return np.full(shape, np.nan), most
        weight = np.exp(log_rows - most)  # scaled by the largest, so that faint evidence does not underflow
        # Impossible rows have NaN marginals: their weight is 0, and 0·NaN has to count as 0.
        occurring = np.where(weight[:, np.newaxis] > 0, conditional * weight[:, np.newaxis], 0.0)
        joint = np.zeros([shape[axis] for axis in (*others, last)])
        joint[np.ix_(*(possible[axis] for axis in others), np.arange(shape[last]))] = occurring.reshape(
            [len(possible[axis]) for axis in others] + [shape[last]]
        )
        joint /= weight.sum()
        return np.moveaxis(joint, -1, last), most + float(np.log(weight.sum()))

    def answer(self, asked: Sequence[tuple[int, ...]], codes: Array, soft: Soft = None) -> tuple[list[Array], float]:
        """Return p(scope | evidence) of one row for each scope, an axis for each variable, and log p(evidence).

        The parameters are those of `joint`. The marginals of single variables are read from one pass.
        """
        if max(map(len, asked), default=0) > 1:
            found = [self.joint(scope, codes, soft) for scope in asked]
            return [table / table.sum() for table, _ in found], found[0][1]
        variables = [v for (v,) in asked]
        tables, log_evidence = self.marginals(codes[np.newaxis], soft, 1, variables=variables)
        return [table[0] for table in tables], float(log_evidence[0])

    # Draws ------------------------------------------------------------------------------------------------------

    def sample(self, codes: Array, n: int, rng: np.random.Generator, soft: Soft = None) -> Array:
        """Draw n configurations given one row of evidence, (n, V), clique by clique from the root.

        The evidence is as in `joint`; ValueError if it is impossible.

        References
        ----------
        Dawid (1992), Applications of a general propagation algorithm for probabilistic expert systems, Statistics and
        Computing 2, section 6.
        """
        evidence = self._evidence(np.asarray(codes)[np.newaxis], soft)
        cumulative = np.empty(len(self._layout.table))
        if accumulate(self._layout, evidence, cumulative) + self.tables.log_total == -np.inf:
            raise ValueError("the evidence has probability 0, so that nothing can be drawn; correct a finding")
        drawn = np.empty((n, len(self.cardinalities)), np.int64)
        for rows in slices_of(n, _BATCH_ROWS):
            uniform = rng.random((rows.stop - rows.start, len(self.skeleton.position)))
            draw(self._layout, cumulative, uniform, drawn[rows])
        return drawn

    # Learning ---------------------------------------------------------------------------------------------------

    def expected_counts(
        self,
        codes: Array,
        weight: Array,
        scopes: Sequence[tuple[int, ...]],
        soft: Soft = None,
        n_jobs: int | None = None,
    ) -> tuple[list[Array], float]:
        """Return Σ_i weight_i p(scope | evidence of row i) for each scope, and Σ_i weight_i log p(evidence of row i).

        Parameters
        ----------
        codes : ndarray of int (n, V)
        weight : ndarray (n,)
        scopes : sequence of tuples of int
            Each within a clique, such as the scopes of the factors.
        soft : mapping from int to ndarray (n, K) or (K,), optional
        n_jobs : int, optional
            Threads; the answer does not depend on it.

        Returns
        -------
        counts : list of ndarray
            Per scope, an array with an axis for each of its variables. An impossible row adds nothing.
        log_likelihood : float
            In nats; −inf if a row with positive weight is impossible.

        Raises
        ------
        ValueError
            No clique contains a scope.
        """
        evidence = self._evidence(codes, soft)
        scopes = [tuple(self._place[v] for v in scope) for scope in scopes]
        n = len(evidence.codes)
        weight = np.require(weight, np.float64, ["C", "W"])
        hosts = [self._host(scope) for scope in scopes]
        on_path = self._paths_to(hosts)
        log_evidence = np.empty(n)
        # Slices depend on n and the tree alone, never on the number of threads, so that the sums round the same way.
        size = max(-(-n // (_PARTIAL_SUMS * LANES)), -(-_WORTH_A_THREAD // (LANES * max(1, self.total_size)))) * LANES

        def work(rows: slice) -> Array:
            counts = np.zeros(len(self._layout.table))
            out = _NO_TABLE, log_evidence[rows], weight[rows], counts
            propagate(self._layout, take(evidence, rows), on_path, *out)
            return counts

        counts = np.zeros(len(self._layout.table))
        for partial_counts in map_in_threads(
            work, list(slices_of(n, size)), joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
        ):
            counts += partial_counts
        log_evidence += self.tables.log_total
        counted = weight > 0
        tables = [self._projected(counts, host, scope) for host, scope in zip(hosts, scopes, strict=True)]
        return tables, float(weight[counted] @ log_evidence[counted])

    def _host(self, scope: tuple[int, ...]) -> int:
        varying = _varying(scope, self.cardinalities)
        host = self.skeleton.position[self.triangulation.home(varying)]
        if not set(varying).issubset(self.skeleton.nodes[host].scope):
            raise ValueError(f"no clique contains all variables of {scope}; count scopes of factors only")
        return host

    def _projected(self, counts: Array, host: int, scope: tuple[int, ...]) -> Array:
        """Sum the counts of a clique's cells over the variables outside a scope."""
        axes, kept = self.skeleton.nodes[host].scope, self.tables.kept[host]
        first = self._layout.cell[host]
        full = np.zeros(self.skeleton.shape(host))
        full.reshape(-1)[kept] = counts[first : first + len(kept)]
        shared = [v for v in scope if v in axes]  # without variables of one state, which are in no clique
        summed = full.sum(axis=tuple(axis for axis, v in enumerate(axes) if v not in shared))
        order = [v for v in axes if v in shared]
        projected: Array = summed.transpose([order.index(v) for v in shared])
        return projected.reshape([self.cardinalities[v] for v in scope])

    # Rows -------------------------------------------------------------------------------------------------------

    def _own(self, codes: Array, soft: Soft) -> tuple[Array, dict[int, Array]]:
        """Return the codes and the likelihoods of the variables of the tree, by their places in it."""
        own = {self._place[v]: likelihood for v, likelihood in soft.items() if v in self._place} if soft else {}
        return (codes if codes.shape[-1] <= len(self.variables) else codes[..., self.variables]), own

    def _evidence(self, codes: Array, soft: Soft) -> Findings:
        return encode_evidence(self.cardinalities, *self._own(codes, soft))

    def _paths_to(self, nodes: Sequence[int]) -> Array:
        """Return which nodes are on the paths from the root to the given nodes: the downward pass visits these."""
        on_path = np.zeros(len(self.skeleton.nodes), np.bool_)
        for node in nodes:
            while node >= 0 and not on_path[node]:
                on_path[node] = True
                node = self.skeleton.nodes[node].parent
        return on_path

    def _slices(self, n: int, n_jobs: int | None) -> list[slice]:
        """Return slices for threads: of whole lanes, so that the neighbours of a row do not depend on the threads."""
        worth = min(len(self._layout.table) * n // _WORTH_A_THREAD, n // LANES)
        n_jobs = 1 if worth < 2 else min(joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs), worth)
        return list(slices_of(n, -(-n // (n_jobs * LANES)) * LANES))


def compile_tree(
    cardinalities: tuple[int, ...],
    factors: Sequence[Factor],
    *,
    variables: Sequence[int] | None = None,
    max_table_size: int = 2**27,
) -> JunctionTree:
    """Compile a product of factors into a junction tree: triangulate, build the clique tree, fill the tables.

    Parameters
    ----------
    cardinalities : tuple of int (V,)
        The number of states of each variable.
    factors : sequence of Factor
        For example the conditional probability tables of a network.
    variables : sequence of int, optional
        Those of the tree, in rising order; by default all.
    max_table_size : int, default 2**27
        The most cells that the clique tables may have together.

    Raises
    ------
    ValueError
        They have more, or the shape of a factor does not fit its scope. Raised before any table is allocated.

    Examples
    --------
    >>> import numpy as np
    >>> from posteriori.networks.inference.junction_tree import Factor, compile_tree
    >>> rain, wet_given_rain = np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> tree = compile_tree((2, 2), [Factor((0,), rain), Factor((0, 1), wet_given_rain)])
    >>> (rain, wet), log_evidence = tree.marginals(np.array([[-1, 1]]))
    >>> rain.round(3)
    array([[0.333, 0.667]])
    >>> np.exp(log_evidence).round(3)
    array([0.24])
    """
    chosen = tuple(range(len(cardinalities)) if variables is None else variables)
    factors = _renumbered(factors, {v: place for place, v in enumerate(chosen)})
    cardinalities = tuple(cardinalities[v] for v in chosen)
    for factor in factors:
        shape = tuple(cardinalities[v] for v in factor.scope)
        if np.shape(factor.table) != shape:
            raise ValueError(f"the table of {factor.scope} has shape {np.shape(factor.table)}; {shape} is needed")
    triangulation = triangulate(cardinalities, [_varying(factor.scope, cardinalities) for factor in factors])
    skeleton = build_skeleton(triangulation, cardinalities)
    assigned = _assigned(triangulation, skeleton, factors)
    _require_size(triangulation, skeleton, assigned, max_table_size)
    return JunctionTree(triangulation, skeleton, fill_tables(skeleton, assigned), chosen)


def _renumbered(factors: Sequence[Factor], place: Mapping[int, int]) -> list[Factor]:
    return [Factor(tuple(place[v] for v in factor.scope), factor.table) for factor in factors]


def _require_size(
    triangulation: Triangulation, skeleton: TreeSkeleton, assigned: dict[int, list[Factor]], most: int
) -> None:
    scope = triangulation.cliques[triangulation.largest].scope if triangulation.cliques else frozenset()
    largest = math.prod(skeleton.cardinalities[v] for v in scope)
    size = triangulation.total_size
    if size <= most and largest < _MOST_CLIQUE_CELLS:
        return
    need = (
        f"exact inference needs clique tables of {cell_count(size)}, the largest of {cell_count(largest)} for "
        f"{len(scope)} variables"
    )
    if largest >= _MOST_CLIQUE_CELLS:
        raise ValueError(f"{need}; one table may not have 2**31; use method='sampling', or observe more variables")
    raise ValueError(
        f"{need}, which is more than max_table_size = {most:,}; they take up to "
        f"{most_bytes(skeleton, assigned) / 1e9:.2g} GB of memory: if there is as much, "
        f"{how_to_set('max_table_size', size)}, or give it to BayesianNetwork; if not, use method='sampling'"
    )


def _assigned(
    triangulation: Triangulation, skeleton: TreeSkeleton, factors: Sequence[Factor]
) -> dict[int, list[Factor]]:
    """Assign each factor to a clique that contains its scope; return the factors by the node of the clique."""
    assigned: dict[int, list[Factor]] = {}
    for factor in factors:
        scope = _varying(factor.scope, skeleton.cardinalities)
        table = np.asarray(factor.table, np.float64).reshape([skeleton.cardinalities[v] for v in scope])
        assigned.setdefault(skeleton.position[triangulation.home(scope)], []).append(Factor(scope, table))
    return assigned


def _varying(scope: tuple[int, ...], cardinalities: tuple[int, ...]) -> tuple[int, ...]:
    """Return the variables with more than one state: constants need no edges."""
    return tuple(v for v in scope if cardinalities[v] > 1)
