"""Exact inference from tables: those that a query needs, their junction tree, and the answer from it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.dag import DAG
from posteriori.networks.graph.naming import States
from posteriori.networks.inference.clique_tables import Factor
from posteriori.networks.inference.evidence import Evidence
from posteriori.networks.inference.junction_tree import JunctionTree, compile_tree
from posteriori.support.typing import Array
from posteriori.user_warnings import warn

# Messages take about a nanosecond per cell and row, compiling a smaller tree takes milliseconds: below this many cells
# times rows the whole tree, which is compiled once, is faster.
_WORTH_PRUNING = 1 << 22
_MOST_TREES = 16


@dataclass(frozen=True)
class TableInference:
    """Discrete variables with fixed tables, and the trees that were compiled for them so far.

    Attributes
    ----------
    dag : DAG
    cpts : tuple of CPT (V,)
        In the order of the nodes of the graph.
    max_table_size : int
        The most cells that the clique tables of a tree may have together.
    """

    dag: DAG
    cpts: tuple[CPT, ...]
    max_table_size: int
    _trees: dict[tuple[int, ...], JunctionTree] = field(default_factory=dict, compare=False, repr=False)

    @cached_property
    def cardinalities(self) -> tuple[int, ...]:
        """The number of states of each variable."""
        return tuple(len(cpt.states) for cpt in self.cpts)

    @cached_property
    def states(self) -> dict[str, States]:
        """The states of each variable."""
        return {cpt.variable: cpt.states for cpt in self.cpts}

    @cached_property
    def position(self) -> dict[str, int]:
        """The index of each variable."""
        return {name: position for position, name in enumerate(self.dag.nodes)}

    @cached_property
    def scopes(self) -> tuple[tuple[int, ...], ...]:
        """The variables of each CPT, as indices, in the order of its axes."""
        return tuple((*(self.position[name] for name in cpt.parents), v) for v, cpt in enumerate(self.cpts))

    # Which tree answers -----------------------------------------------------------------------------------------

    @cached_property
    def whole(self) -> JunctionTree | None:
        """The tree of all variables; None if it has more cells than max_table_size."""
        variables = tuple(range(len(self.cpts)))
        try:
            return self._compiled(variables, variables)
        except ValueError:
            return None

    def tree(self, asked: Iterable[int], known: Iterable[int], rows: int = 1, hard: Iterable[int] = ()) -> JunctionTree:
        """Return a tree for the query variables, given evidence about the known variables.

        Parameters
        ----------
        asked, known : collections of int
            The query variables, and the variables with evidence.
        rows : int, default 1
            The number of rows of evidence.
        hard : collection of int
            The known variables whose state is certain in every row.

        Raises
        ------
        ValueError
            Its tables have more cells than max_table_size.
        """
        if self.whole is not None and self.whole.total_size * rows < _WORTH_PRUNING:
            return self.whole
        asked, known = frozenset(asked), frozenset(known)
        factors = self.relevant(asked, known, frozenset(hard))
        if self.whole is not None and len(factors) == len(self.cpts):
            return self.whole
        return self._compiled(tuple(sorted({v for f in factors for v in self.scopes[f]} | asked | known)), factors)

    def relevant(self, asked: Iterable[int], known: Iterable[int], hard: Iterable[int]) -> tuple[int, ...]:
        """Return the CPTs that the query needs.

        A variable outside the ancestors of query and evidence is barren: its table sums to 1 (Shachter 1986,
        Evaluating influence diagrams, Operations Research 34). In the moral graph of the remaining variables, removing
        the hard evidence leaves components that are independent of each other. The tables of a component without a
        query variable or soft evidence are only a constant factor, and are left out unless one holds a 0: then they
        may show that the evidence is impossible.
        """
        asked, known, hard = frozenset(asked), frozenset(known), frozenset(hard)
        names = self.dag.nodes
        needed = sorted(self.position[name] for name in self.dag.ancestors([names[v] for v in asked | known]))
        above = {v: v for v in needed}  # union-find: a pointer towards the root of the component

        def root(v: int) -> int:
            while above[v] != v:
                above[v] = above[above[v]]  # halves the path, so that later look-ups are short
                v = above[v]
            return v

        free = {f: [v for v in self.scopes[f] if v not in hard] for f in needed}
        for variables in free.values():
            for v in variables[1:]:
                above[root(v)] = root(variables[0])
        kept = {root(v) for v in asked - hard} | {root(v) for v in known - hard}
        # −1 stands for a table of observed variables alone.
        components = {f: root(variables[0]) if variables else -1 for f, variables in free.items()}
        kept |= {components[f] for f in needed if components[f] >= 0 and not self._positive[f]}
        return tuple(f for f in needed if components[f] in kept or not self._positive[f])

    @cached_property
    def _positive(self) -> tuple[bool, ...]:
        return tuple(bool(cpt.probabilities.all()) for cpt in self.cpts)

    def _compiled(self, kept: tuple[int, ...], factors: Sequence[int]) -> JunctionTree:
        key = (*kept, -1, *factors)
        tree = self._trees.get(key)
        if tree is None:
            tables = [Factor(self.scopes[f], self.cpts[f].probabilities) for f in factors]
            try:
                tree = compile_tree(self.cardinalities, tables, variables=kept, max_table_size=self.max_table_size)
            except ValueError as error:
                raise ValueError(f"{error}: query with method='conditioning' or 'sampling'") from None
            while len(self._trees) >= _MOST_TREES:  # dicts keep their order: the oldest tree goes first
                self._trees.pop(next(iter(self._trees)))
            self._trees[key] = tree
        return tree

    # One case ---------------------------------------------------------------------------------------------------

    def answer(self, asked: Sequence[tuple[int, ...]], evidence: Evidence) -> tuple[list[Array], float]:
        """Return p(scope | evidence) of each scope, an axis for each variable, and log p(evidence) in nats.

        Raises
        ------
        ValueError
            A scope is asked for and the evidence is impossible; or a joint, or the tree, has more cells than
            max_table_size.
        """
        if not (asked or evidence.likelihoods):
            return [], 0.0
        self.require_size(asked)
        known = [*evidence.hard, *evidence.soft]
        # Without a query variable p(evidence) itself is wanted, to which every table of an ancestor is a factor.
        wanted, hard = (itertools.chain.from_iterable(asked), evidence.hard) if asked else (known, {})
        tables, log_evidence = self.tree(wanted, known, hard=hard).answer(asked, evidence.codes, evidence.soft)
        if asked:
            require_possible(log_evidence)
        return tables, log_evidence

    def require_size(self, asked: Iterable[tuple[int, ...]]) -> None:
        """Raise ValueError if the joint of a scope has more cells than max_table_size."""
        for scope in [scope for scope in asked if len(scope) > 1]:
            size = math.prod(self.cardinalities[v] for v in scope)
            if size > self.max_table_size:
                raise ValueError(
                    f"the joint distribution of these {len(scope)} variables has {size:,} cells, more than "
                    f"max_table_size = {self.max_table_size:,}; ask for fewer"
                )

    def joint(self, names: Iterable[str], evidence: Evidence) -> Array:
        """Return p(names | evidence), an axis for each, as `answer` does."""
        return self.answer([tuple(self.position[name] for name in names)], evidence)[0][0]

    def most_probable(self, evidence: Evidence) -> tuple[Array, float]:
        """Return the most probable configuration x, (V,), and log p(x, evidence), given possible evidence."""
        codes, log_probability = self.everything().most_probable(evidence.codes[np.newaxis], evidence.soft, 1)
        return codes[0], float(log_probability[0])

    def sample(self, evidence: Evidence, n: int, rng: np.random.Generator) -> Array:
        """Draw n configurations given evidence, (n, V)."""
        require_possible(self.answer([], evidence)[1])
        return self.everything().sample(evidence.codes, n, rng, evidence.soft)

    def everything(self) -> JunctionTree:
        """Return the tree of all variables; ValueError if it has more cells than max_table_size."""
        variables = range(len(self.cpts))
        return self.whole or self.tree(variables, variables)

    # Many cases -------------------------------------------------------------------------------------------------

    def marginals(
        self, codes: Array, asked: Sequence[int], soft: dict[int, Array] | None = None, n_jobs: int | None = None
    ) -> tuple[list[Array], Array]:
        """Return p(variable | the known cells of each row), (n, K), of each variable asked, and log p(known cells)."""
        soft = soft or {}
        known = [v for v in range(len(self.cpts)) if v in soft or (codes[:, v] >= 0).any()]
        return self.tree(asked, known, len(codes)).marginals(codes, soft, n_jobs, variables=asked)

    def log_likelihood(self, codes: Array, soft: dict[int, Array] | None = None, n_jobs: int | None = None) -> Array:
        """Return log p(the known cells of each row, soft evidence) in nats, (n,); −inf in impossible rows."""
        out = np.zeros(len(codes))
        present = codes >= 0
        complete = present.all(axis=1) & (not soft)
        rest = np.ones(len(codes), np.bool_) if soft else present.any(axis=1) & ~complete
        if complete.any():
            out[complete] = self._log_joint(codes[complete])
        if rest.any():
            known = {*np.flatnonzero(present[rest].any(axis=0)).tolist(), *(soft or {})}
            own = codes if rest.all() else codes[rest]
            out[rest] = self.tree(known, known, len(own)).log_evidence(own, soft, n_jobs)
        return out

    def _log_joint(self, codes: Array) -> Array:
        """Return Σ_v log p(x_v | x_parents(v)) of complete rows, which need no tree."""
        total = np.zeros(len(codes))
        with np.errstate(divide="ignore"):
            for cpt, scope in zip(self.cpts, self.scopes, strict=True):
                total += np.log(cpt.probabilities)[tuple(codes[:, v] for v in scope)]
        return total


def require_possible(log_evidence: float) -> None:
    """Raise ValueError if evidence has probability 0."""
    if not log_evidence > -np.inf:
        raise ValueError(
            "the evidence has probability 0 under this network, so that no posterior exists; correct a finding, or the "
            "table that excludes it"
        )


def warn_of_impossible(log_evidence: Array) -> None:
    """Warn of the rows whose evidence has probability 0."""
    impossible = np.flatnonzero(log_evidence == -np.inf)
    if len(impossible):
        listed = ", ".join(map(str, impossible[:5])) + (", …" if len(impossible) > 5 else "")
        row = "row" if len(impossible) == 1 else f"{len(impossible)} rows"
        warn(f"the evidence of {row} ({listed}) has probability 0 under this network; the answers there are NaN")
