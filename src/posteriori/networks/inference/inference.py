"""Exact inference: continuous variables are eliminated (conditional linear Gaussian), and tables do the rest."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import States
from posteriori.networks.inference.clg import Component, split_components
from posteriori.networks.inference.clique_tables import Factor
from posteriori.networks.inference.evidence import Evidence
from posteriori.networks.inference.junction_tree import JunctionTree
from posteriori.networks.inference.table_inference import TableInference
from posteriori.support.typing import Array

_MOST_CONFIGURATIONS = 1 << 12  # of a component of several discrete parents: its indicator has their square in cells
_MOST_COMPILED = 64
_BATCH = 1 << 21  # numbers of one batch of rows


@dataclass(frozen=True)
class Compiled:
    """A network in which the continuous variables are eliminated, for one set of observed variables.

    Each component becomes an auxiliary discrete variable, its configuration: p(configuration | discrete parents) is 0
    or 1, and the density of the evidence is the likelihood of the configuration. So the junction tree of the discrete
    variables does the rest, and the marginal of the auxiliary variable weighs the densities of the hidden variables.
    A network without continuous variables has no component.

    Attributes
    ----------
    components : tuple of Component
    tables : TableInference
        Of the discrete and the auxiliary variables.
    auxiliary : tuple of int
        The position of the variable of each component in `tables`: of its discrete parent if it has one, otherwise
        of an auxiliary variable; −1 if there is a single configuration.
    """

    components: tuple[Component, ...]
    tables: TableInference
    auxiliary: tuple[int, ...]

    def likelihoods(self, values: Mapping[str, Array], n: int, at_peak: bool = False) -> tuple[dict[int, Array], Array]:
        """Return the likelihoods of the configurations, (n, Q) by position, and the logarithm of their scale, (n,).

        With `at_peak` they are times the largest density of the hidden variables.
        """
        log_soft: dict[int, Array] = {}
        scale = np.zeros(n)
        for component, position in zip(self.components, self.auxiliary, strict=True):
            if not (component.seen or at_peak):
                continue
            log_factor = np.broadcast_to(component.log_factor(values), (n, component.size))
            if at_peak:
                log_factor = log_factor + component.log_peak()
            if position < 0:
                scale += log_factor[:, 0]
            else:
                log_soft[position] = log_soft.get(position, 0.0) + log_factor
        soft = {}
        for position, log_factor in log_soft.items():  # scaled after the sum: many factors do not underflow
            most = log_factor.max(axis=1)
            scale += most
            soft[position] = np.exp(log_factor - most[:, np.newaxis])
        return soft, scale

    def refilled(
        self, tables: Sequence[Array], densities: Mapping[str, LinearGaussian]
    ) -> tuple[Compiled, JunctionTree | None]:
        """Return the components with other densities, and the tree of other tables; None without discrete variables."""
        components = tuple(
            replace(one, densities=tuple(densities[density.variable] for density in one.densities))
            for one in self.components
        )
        compiled = Compiled(components, self.tables, self.auxiliary)
        if not self.tables.cpts:
            return compiled, None
        indicators = [cpt.probabilities for cpt in self.tables.cpts[len(tables) :]]
        factors = [
            Factor(scope, table) for scope, table in zip(self.tables.scopes, [*tables, *indicators], strict=True)
        ]
        return compiled, self.tables.everything().with_factors(factors)

    def evidence(self, evidence: Evidence, soft: Mapping[int, Array]) -> Evidence:
        """Return the evidence about the tables, with the likelihoods (1, Q) of configurations."""
        return evidence.about_tables(self.tables.states, soft) if self.components else evidence

    def padded(self, codes: Array) -> Array:
        """Return codes with columns of missing cells for the auxiliary variables."""
        if len(self.tables.cpts) == codes.shape[1]:
            return codes
        full = np.full((len(codes), len(self.tables.cpts)), -1, np.int64)
        full[:, : codes.shape[1]] = codes
        return full

    def holding(self, name: str) -> tuple[Component, int]:
        """Return the component of a hidden variable, and the position of its configuration."""
        return next(
            (component, position)
            for component, position in zip(self.components, self.auxiliary, strict=True)
            if name in component.hidden
        )


@dataclass(frozen=True)
class Inference:
    """A network with fixed tables and densities, and what was compiled for it so far.

    Attributes
    ----------
    dag : DAG
    cpts : tuple of CPT
        Of the discrete variables, in the order of the nodes.
    gaussians : tuple of LinearGaussian
        Of the continuous variables; parents first.
    max_table_size : int
    """

    dag: DAG
    cpts: tuple[CPT, ...]
    gaussians: tuple[LinearGaussian, ...]
    max_table_size: int
    _known: dict[tuple[frozenset[str], frozenset[str], tuple[str, ...], tuple[LinearGaussian, ...]], Compiled] = field(
        default_factory=dict, compare=False, repr=False
    )

    @cached_property
    def states(self) -> dict[str, States]:
        """The states of the discrete variables."""
        return {cpt.variable: cpt.states for cpt in self.cpts}

    @cached_property
    def variables(self) -> Mapping[str, tuple[str, ...]]:
        """The names of all variables."""
        return self.dag.parents

    @cached_property
    def continuous(self) -> tuple[str, ...]:
        """The continuous variables in the order of the nodes."""
        return tuple(name for name in self.dag.nodes if name not in self.states) if self.gaussians else ()

    @cached_property
    def tables(self) -> TableInference:
        """The discrete variables alone: those below them are barren without evidence."""
        if not self.gaussians:
            return TableInference(self.dag, self.cpts, self.max_table_size)
        edges = tuple((parent, cpt.variable) for cpt in self.cpts for parent in cpt.parents)
        return TableInference(DAG(tuple(self.states), edges), self.cpts, self.max_table_size)

    @cached_property
    def _without_components(self) -> Compiled:
        return Compiled((), self.tables, ())

    def compiled(
        self,
        observed: Iterable[str],
        asked: Iterable[str] = (),
        joined: Sequence[str] = (),
        measured: tuple[LinearGaussian, ...] = (),
        everything: bool = False,
    ) -> Compiled:
        """Return the network for a set of observed continuous variables.

        Parameters
        ----------
        observed : collection of str
            Continuous variables with a value, also the names of `measured`.
        asked : collection of str
            The continuous variables that the query needs. Others without observed descendants are barren: their
            density integrates to 1.
        joined : sequence of str
            Variables whose joint distribution is needed.
        measured : tuple of LinearGaussian
            Noisy measurements, as observed children.
        everything : bool
            Whether no variable is left out as barren.
        """
        if not self.gaussians:
            return self._without_components
        seen = frozenset(observed)
        wanted = frozenset(self.continuous) if everything else frozenset(asked) | set(joined)
        key = (seen, wanted, tuple(joined), measured)
        compiled = self._known.get(key)
        if compiled is None:
            compiled = self._compile(self.components(seen, wanted, joined, measured))
            while len(self._known) >= _MOST_COMPILED:
                self._known.pop(next(iter(self._known)))
            self._known[key] = compiled
        return compiled

    def components(
        self,
        observed: Iterable[str],
        asked: Iterable[str] = (),
        joined: Sequence[str] = (),
        measured: tuple[LinearGaussian, ...] = (),
    ) -> tuple[Component, ...]:
        """Return the components of the continuous variables that a query needs; see `compiled`."""
        seen = frozenset(observed)
        sources = [name for one in measured for name in one.continuous]
        names = [name for name in (seen | frozenset(asked) | set(joined)) if name in self.dag.parents]
        needed = self.dag.ancestors([*names, *sources])
        densities = [one for one in self.gaussians if one.variable in needed]
        return split_components([*densities, *measured], seen, self.states, joined)

    def _compile(self, components: tuple[Component, ...]) -> Compiled:
        cpts, auxiliary = list(self.cpts), []
        position = {name: k for k, name in enumerate(self.states)}
        nodes, edges = list(self.states), [(parent, cpt.variable) for cpt in self.cpts for parent in cpt.parents]
        for k, component in enumerate(components):
            if component.size == 1:
                auxiliary.append(-1)
                continue
            if len(component.discrete) == 1:
                auxiliary.append(position[next(iter(component.discrete))])
                continue
            size = component.size
            if size > _MOST_CONFIGURATIONS:
                raise ValueError(
                    f"exact inference needs the {size:,} configurations of {len(component.discrete)} discrete "
                    f"variables together ({', '.join(map(repr, list(component.discrete)[:5]))}, …), because they all "
                    f"bear on continuous variables that depend on each other; at most {_MOST_CONFIGURATIONS:,} are "
                    "listed: observe more variables, or query with method='sampling'"
                )
            name = f"\0{k}"
            table = np.eye(size).reshape(*component.shape, size)
            cpts.append(CPT(name, range(size), component.discrete, table))  # type: ignore[arg-type]
            nodes.append(name)
            edges += [(parent, name) for parent in component.discrete]
            auxiliary.append(len(nodes) - 1)
        tables = TableInference(DAG(tuple(nodes), tuple(edges)), tuple(cpts), self.max_table_size)
        return Compiled(components, tables, tuple(auxiliary))

    # Rows -------------------------------------------------------------------------------------------------------

    def log_likelihood(self, codes: Array, numbers: Array, n_jobs: int | None = None) -> Array:
        """Return log p(known cells) of each row, a log density where cells are continuous, (n,).

        Parameters
        ----------
        codes : ndarray of int (n, number of discrete variables)
            −1 where missing.
        numbers : ndarray (n, number of continuous variables)
            NaN where missing.
        """
        out = np.zeros(len(codes))
        for compiled, rows, values in self.batches(numbers):
            own = codes[rows]
            soft, scale = compiled.likelihoods(values, len(own))
            out[rows] = compiled.tables.log_likelihood(compiled.padded(own), soft, n_jobs) + scale
        return out

    def batches(
        self, numbers: Array, asked: Sequence[str] = (), everything: bool = False
    ) -> Iterable[tuple[Compiled, Array | slice, dict[str, Array]]]:
        """Yield, per pattern of missing numbers, the compiled network, the places of some rows, and their values."""
        if not self.gaussians:
            yield self.compiled(()), slice(None), {}
            return
        if not len(numbers):
            return
        present = ~np.isnan(numbers)
        patterns, number = np.unique(present, axis=0, return_inverse=True)
        for k, pattern in enumerate(patterns):
            observed = [name for name, known in zip(self.continuous, pattern, strict=True) if known]
            compiled = self.compiled(observed, asked, everything=everything)
            cells = max((one.size * (len(one.densities) + 1) for one in compiled.components), default=1)
            members = np.flatnonzero(number.ravel() == k)
            step = max(1, _BATCH // max(cells, 1))
            for start in range(0, len(members), step):
                rows = members[start : start + step]
                values = {name: numbers[rows, j] for j, name in enumerate(self.continuous) if pattern[j]}
                yield compiled, rows, values

    def draw_continuous(self, codes: Array, rng: np.random.Generator) -> Array:
        """Draw the continuous variables given the discrete ones, parents first, (n, number of continuous)."""
        place = {name: k for k, name in enumerate(self.states)}
        column = {name: k for k, name in enumerate(self.continuous)}
        out = np.empty((len(codes), len(self.continuous)))
        for one in self.gaussians:
            at = tuple(codes[:, place[name]] for name in one.parents)
            value = one.intercept[at] + np.sqrt(one.variance[at]) * rng.standard_normal(len(codes))
            if one.continuous:
                above = out[:, [column[name] for name in one.continuous]]
                value = value + (np.broadcast_to(one.coefficients[at], above.shape) * above).sum(axis=1)
            out[:, column[one.variable]] = value
        return out
