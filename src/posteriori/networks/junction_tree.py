"""Exact inference: beliefs by messages along a tree of cliques, many rows of evidence at once."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import joblib
import numpy as np

from posteriori import kernels
from posteriori.kernels import LANES, Evidence, Layout
from posteriori.networks.clique_tables import CliqueTables, Factor, Skeleton, build_skeleton, fill_tables, most_bytes
from posteriori.networks.decimals import cell_count, how_to_set
from posteriori.networks.rows import map_in_threads, read_evidence, slices_of, take
from posteriori.networks.triangulation import Triangulation, triangulate
from posteriori.typing import Array

__all__ = ["Factor", "JunctionTree", "compile_tree"]

Soft: TypeAlias = Mapping[int, Array] | None

_WORTH_A_THREAD = 1 << 19  # cells times rows: about a millisecond
_PARTIAL_SUMS = 8  # of expected counts: as many whatever the number of threads, so that they round alike
_AT_A_TIME = 1 << 14  # rows of a joint distribution, draws
_MOST_OF_ONE = 1 << 31  # cells of a clique, which are numbered by 32 bits
_NOTHING = np.empty(0)
_NO_TABLE = np.empty((0, 0))


@dataclass(frozen=True, eq=False)
class JunctionTree:
    r"""A distribution rewritten along a tree of cliques C, each hanging from a separator S.

    .. math:: p(x) \propto \prod_f f(x_f), \qquad p(x) = \prod_C p(x_{C \setminus S} \mid x_S)

    Evidence enters as a likelihood of each single variable. A pass from the leaves to the root gives every separator
    λ(s) = p(evidence below | s), and one back turns p(C | s) · Π λ into beliefs. Where there is no evidence below,
    λ = 1 and the first pass has nothing to do.

    Attributes
    ----------
    triangulation : Triangulation
    skeleton : Skeleton
    tables : CliqueTables

    References
    ----------
    Lauritzen & Spiegelhalter (1988), Local computations with probabilities on graphical structures and their
    application to expert systems, JRSS B 50.
    Jensen, Lauritzen & Olesen (1990), Bayesian updating in causal probabilistic networks by local computations,
    Computational Statistics Quarterly 4.
    """

    triangulation: Triangulation
    skeleton: Skeleton
    tables: CliqueTables

    @property
    def total_size(self) -> int:
        """The number of cells of all clique tables, before those that cannot occur are left out."""
        return self.triangulation.total_size

    @property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of states of each variable."""
        return self.skeleton.cardinalities

    @property
    def _layout(self) -> Layout:
        return self.tables.layout

    def with_factors(self, factors: Sequence[Factor]) -> JunctionTree:
        """Return the tree of other tables over the same scopes, without looking for cliques again."""
        assigned = _assigned(self.triangulation, self.skeleton, factors)
        return JunctionTree(self.triangulation, self.skeleton, fill_tables(self.skeleton, assigned))

    # Beliefs ----------------------------------------------------------------------------------------------------

    def marginals(
        self, codes: Array, soft: Soft = None, n_jobs: int | None = None, *, variables: Sequence[int] | None = None
    ) -> tuple[list[Array], Array]:
        """Return p(x_v | evidence) of every variable and log p(evidence), row by row.

        Parameters
        ----------
        codes : ndarray of int (n, V)
            The state of each variable; −1 where it is unknown.
        soft : mapping from int to ndarray (n, K) or (K,), optional
            Likelihoods, ≥ 0, of the states of some variables.
        n_jobs : int, optional
            Threads; by default all cores. The answer does not depend on it.
        variables : sequence of int, optional
            Those of which the marginals are wanted; by default all.

        Returns
        -------
        marginals : list of ndarray (n, K)
            NaN in rows whose evidence is impossible.
        log_evidence : ndarray (n,)
            In nats; −inf in such rows. If the factors are not the tables of a network, Σ_x Π factors counts as well.

        Raises
        ------
        ValueError
            A code is no state of its variable, or the codes or a likelihood have another shape.

        Notes
        -----
        About a nanosecond for a cell that can occur and a row; the memory is that of LANES times the separators.
        """
        evidence = self._evidence(codes, soft)
        asked = range(len(self.cardinalities)) if variables is None else variables
        wanted = self._ways_to([self.skeleton.home[v] for v in asked])
        state = self._layout.state
        marginals, log_evidence = np.empty((len(evidence.codes), int(state[-1]))), np.empty(len(evidence.codes))

        def work(rows: slice) -> None:
            out = marginals[rows], log_evidence[rows], _NOTHING, _NOTHING
            kernels.propagate(self._layout, take(evidence, rows), wanted, *out)

        map_in_threads(work, self._slices(len(log_evidence), n_jobs))
        return [marginals[:, state[v] : state[v + 1]] for v in asked], log_evidence + self.tables.log_total

    def log_evidence(self, codes: Array, soft: Soft = None, n_jobs: int | None = None) -> Array:
        """Return log p(evidence) of each row in nats, (n,): −inf where it is impossible. One pass, to the root.

        The parameters are those of `marginals`.
        """
        evidence = self._evidence(codes, soft)
        wanted = np.zeros(len(self.skeleton.nodes), np.bool_)
        log_evidence = np.empty(len(evidence.codes))

        def work(rows: slice) -> None:
            out = _NO_TABLE, log_evidence[rows], _NOTHING, _NOTHING
            kernels.propagate(self._layout, take(evidence, rows), wanted, *out)

        map_in_threads(work, self._slices(len(log_evidence), n_jobs))
        return log_evidence + self.tables.log_total

    def most_probable(self, codes: Array, soft: Soft = None, n_jobs: int | None = None) -> tuple[Array, Array]:
        """Return the most probable configuration of each row, (n, V), and log p(configuration, evidence), (n,).

        Of equally probable ones always the same is returned; −1 and −inf where the evidence is impossible. The
        parameters are those of `marginals`.

        References
        ----------
        Dawid (1992), Applications of a general propagation algorithm for probabilistic expert systems, Statistics and
        Computing 2.
        """
        evidence = self._evidence(codes, soft)
        found, log_probability = np.empty(evidence.codes.shape, np.int64), np.empty(len(evidence.codes))

        def work(rows: slice) -> None:
            kernels.maximise(self._layout, take(evidence, rows), found[rows], log_probability[rows])

        map_in_threads(work, self._slices(len(found), n_jobs))
        return found, log_probability + self.tables.log_total

    def joint(self, variables: Sequence[int], codes: Array, soft: Soft = None) -> tuple[Array, float]:
        """Return p(variables | evidence) of one row, an axis for each variable, and log p(evidence).

        By p(a, b | e) = p(a | e) p(b | a, e): b is the variable with the most states that is unknown, and every
        configuration a of the others is a row of evidence.

        Parameters
        ----------
        variables : sequence of int
            Any, each once; they need not share a clique.
        codes : ndarray of int (V,)
        soft : mapping from int to ndarray (K,), optional

        Returns
        -------
        joint : ndarray
            NaN if the evidence is impossible.
        log_evidence : float
            In nats; −inf if the evidence is impossible.

        Notes
        -----
        As many rows as the other variables have configurations.
        """
        codes = np.asarray(codes, np.int64)
        shape = tuple(self.cardinalities[v] for v in variables)
        possible = [(np.arange(k) if codes[v] < 0 else codes[[v]]) for v, k in zip(variables, shape, strict=True)]
        if not variables:
            log_evidence = float(self.log_evidence(codes[np.newaxis], soft)[0])
            return np.full((), 1.0 if log_evidence > -np.inf else np.nan), log_evidence
        last = max(range(len(variables)), key=lambda axis: len(possible[axis]))
        others = [axis for axis in range(len(variables)) if axis != last]
        n_rows = math.prod(len(possible[axis]) for axis in others)
        conditional, log_rows = np.empty((n_rows, shape[last])), np.empty(n_rows)
        for rows in slices_of(n_rows, _AT_A_TIME):
            part = np.tile(codes, (rows.stop - rows.start, 1))
            numbers = np.unravel_index(
                np.arange(rows.start, rows.stop), [len(possible[axis]) for axis in others] or [1]
            )
            for axis, number in zip(others, numbers, strict=False):
                part[:, variables[axis]] = possible[axis][number]
            (conditional[rows],), log_rows[rows] = self.marginals(part, soft, variables=[variables[last]])
        most = float(log_rows.max())
        if most == -np.inf:
            return np.full(shape, np.nan), most
        weight = np.exp(log_rows - most)
        occurring = np.where(weight[:, np.newaxis] > 0, conditional * weight[:, np.newaxis], 0.0)
        joint = np.zeros([shape[axis] for axis in (*others, last)])
        joint[np.ix_(*(possible[axis] for axis in others), np.arange(shape[last]))] = occurring.reshape(
            [len(possible[axis]) for axis in others] + [shape[last]]
        )
        joint /= weight.sum()
        return np.moveaxis(joint, -1, last), most + float(np.log(weight.sum()))

    # Draws ------------------------------------------------------------------------------------------------------

    def sample(self, codes: Array, n: int, rng: np.random.Generator, soft: Soft = None) -> Array:
        """Draw n configurations given one row of evidence, (n, V): clique by clique from the root.

        Parameters
        ----------
        codes : ndarray of int (V,)
        n : int
        rng : Generator
        soft : mapping from int to ndarray (K,), optional

        Raises
        ------
        ValueError
            The evidence is impossible.

        References
        ----------
        Dawid (1992), Applications of a general propagation algorithm for probabilistic expert systems, Statistics and
        Computing 2, section 6.
        """
        evidence = self._evidence(np.asarray(codes)[np.newaxis], soft)
        cumulative = np.empty(len(self._layout.table))
        if kernels.accumulate(self._layout, evidence, cumulative) + self.tables.log_total == -np.inf:
            raise ValueError("the evidence has probability 0: there is nothing to draw from; correct a finding")
        drawn = np.empty((n, len(self.cardinalities)), np.int64)
        for rows in slices_of(n, _AT_A_TIME):
            uniform = rng.random((rows.stop - rows.start, len(self.skeleton.position)))
            kernels.draw(self._layout, cumulative, uniform, drawn[rows])
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
            Each within a clique, as the scopes of the factors are.
        soft : mapping from int to ndarray (n, K) or (K,), optional
        n_jobs : int, optional
            Threads; the answer does not depend on it.

        Returns
        -------
        counts : list of ndarray
            For each scope an array with an axis for each of its variables. An impossible row adds nothing.
        log_likelihood : float
            In nats; −inf if a row with positive weight is impossible.

        Raises
        ------
        ValueError
            No clique holds a scope.
        """
        evidence = self._evidence(codes, soft)
        n = len(evidence.codes)
        weight = np.require(weight, np.float64, ["C", "W"])
        hosts = [self._host(scope) for scope in scopes]
        wanted = self._ways_to(hosts)
        log_evidence = np.empty(n)
        size = max(-(-n // (_PARTIAL_SUMS * LANES)), -(-_WORTH_A_THREAD // (LANES * max(1, self.total_size)))) * LANES

        def work(rows: slice) -> Array:
            counts = np.zeros(len(self._layout.table))
            out = _NO_TABLE, log_evidence[rows], weight[rows], counts
            kernels.propagate(self._layout, take(evidence, rows), wanted, *out)
            return counts

        counts = np.zeros(len(self._layout.table))
        for part in map_in_threads(
            work, list(slices_of(n, size)), joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs)
        ):
            counts += part
        log_evidence += self.tables.log_total
        counted = weight > 0
        tables = [self._projected(counts, host, scope) for host, scope in zip(hosts, scopes, strict=True)]
        return tables, float(weight[counted] @ log_evidence[counted])

    def _host(self, scope: tuple[int, ...]) -> int:
        several = _several(scope, self.cardinalities)
        host = self.skeleton.position[self.triangulation.home(several)]
        if not set(several).issubset(self.skeleton.nodes[host].scope):
            raise ValueError(f"no clique holds the variables {scope} together; only scopes of factors can be counted")
        return host

    def _projected(self, counts: Array, host: int, scope: tuple[int, ...]) -> Array:
        """Sum the counts of a clique's cells onto some of its variables."""
        axes, kept = self.skeleton.nodes[host].scope, self.tables.kept[host]
        first = self._layout.cell[host]
        full = np.zeros(self.skeleton.shape(host))
        full.reshape(-1)[kept] = counts[first : first + len(kept)]
        held = [v for v in scope if v in axes]
        summed: Array = full.sum(axis=tuple(axis for axis, v in enumerate(axes) if v not in held))
        order = [v for v in axes if v in held]
        table: Array = summed.transpose([order.index(v) for v in held])
        return table.reshape([self.cardinalities[v] for v in scope])

    # Rows -------------------------------------------------------------------------------------------------------

    def _evidence(self, codes: Array, soft: Soft) -> Evidence:
        return read_evidence(self.cardinalities, codes, soft or {})

    def _ways_to(self, nodes: Sequence[int]) -> Array:
        """Return which nodes lie on the ways from the root to some nodes."""
        wanted = np.zeros(len(self.skeleton.nodes), np.bool_)
        for node in nodes:
            while node >= 0 and not wanted[node]:
                wanted[node] = True
                node = self.skeleton.nodes[node].parent
        return wanted

    def _slices(self, n: int, n_jobs: int | None) -> list[slice]:
        """Return slices for threads: of whole lanes, so that a row has the same neighbours whatever their number."""
        worth = min(len(self._layout.table) * n // _WORTH_A_THREAD, n // LANES)
        n_jobs = 1 if worth < 2 else min(joblib.effective_n_jobs(-1 if n_jobs is None else n_jobs), worth)
        return list(slices_of(n, -(-n // (n_jobs * LANES)) * LANES))


def compile_tree(
    cardinalities: tuple[int, ...], factors: Sequence[Factor], *, max_table_size: int = 2**27
) -> JunctionTree:
    """Compile a product of factors into a junction tree.

    Parameters
    ----------
    cardinalities : tuple of int (V,)
        The number of states of each variable.
    factors : sequence of Factor
        Such as the conditional probability tables of a network.
    max_table_size : int, default 2**27
        The most cells that the clique tables may have together.

    Raises
    ------
    ValueError
        They would have more, or the shape of a factor is not that of its scope. No table has been made by then.

    Examples
    --------
    >>> import numpy as np
    >>> from posteriori.networks.junction_tree import Factor, compile_tree
    >>> rain, wet_given_rain = np.array([0.8, 0.2]), np.array([[0.9, 0.1], [0.2, 0.8]])
    >>> tree = compile_tree((2, 2), [Factor((0,), rain), Factor((0, 1), wet_given_rain)])
    >>> (rain, wet), log_evidence = tree.marginals(np.array([[-1, 1]]))
    >>> rain.round(3)
    array([[0.333, 0.667]])
    >>> np.exp(log_evidence).round(3)
    array([0.24])
    """
    cardinalities = tuple(cardinalities)
    for factor in factors:
        shape = tuple(cardinalities[v] for v in factor.scope)
        if np.shape(factor.table) != shape:
            raise ValueError(f"the table of {factor.scope} has shape {np.shape(factor.table)}; {shape} is needed")
    triangulation = triangulate(cardinalities, [_several(factor.scope, cardinalities) for factor in factors])
    skeleton = build_skeleton(triangulation, cardinalities)
    assigned = _assigned(triangulation, skeleton, factors)
    _require_size(triangulation, skeleton, assigned, max_table_size)
    return JunctionTree(triangulation, skeleton, fill_tables(skeleton, assigned))


def _require_size(
    triangulation: Triangulation, skeleton: Skeleton, assigned: dict[int, list[Factor]], most: int
) -> None:
    scope = triangulation.cliques[triangulation.largest].scope if triangulation.cliques else frozenset()
    largest = math.prod(skeleton.cardinalities[v] for v in scope)
    size = triangulation.total_size
    if size <= most and largest < _MOST_OF_ONE:
        return
    sufficient_statistics = (
        f"exact inference needs clique tables of {cell_count(size)}, the largest of {cell_count(largest)} for "
        f"{len(scope)} variables"
    )
    if largest >= _MOST_OF_ONE:
        raise ValueError(
            f"{sufficient_statistics}; one table may not have 2**31; use method='sampling', or observe more variables"
        )
    raise ValueError(
        f"{sufficient_statistics}, which is more than max_table_size = {most:,}; they take up to "
        f"{most_bytes(skeleton, assigned) / 1e9:.2g} GB of memory: if there is as much, "
        f"{how_to_set('max_table_size', size)}, or give it to BayesianNetwork; if not, use method='sampling'"
    )


def _assigned(triangulation: Triangulation, skeleton: Skeleton, factors: Sequence[Factor]) -> dict[int, list[Factor]]:
    """Return the factors that each clique, by its node, takes in: one that holds their scope."""
    assigned: dict[int, list[Factor]] = {}
    for factor in factors:
        scope = _several(factor.scope, skeleton.cardinalities)
        table = np.asarray(factor.table, np.float64).reshape([skeleton.cardinalities[v] for v in scope])
        assigned.setdefault(skeleton.position[triangulation.home(scope)], []).append(Factor(scope, table))
    return assigned


def _several(scope: tuple[int, ...], cardinalities: tuple[int, ...]) -> tuple[int, ...]:
    """Return the variables that have more than one state: the others join nothing."""
    return tuple(v for v in scope if cardinalities[v] > 1)
