"""Exact answers: which tables a question needs, the junction tree of these, and the answer read off it."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.networks.cpt import CPT
from posteriori.networks.dag import DAG
from posteriori.networks.evidence import Findings
from posteriori.networks.junction_tree import Factor, compile_tree
from posteriori.networks.naming import States
from posteriori.typing import Array

# Passing messages takes about a nanosecond a cell, compiling a smaller tree milliseconds: below this many cells times
# rows the whole tree, which is compiled once, answers sooner.
_WORTH_PRUNING = 1 << 22
_MOST_TREES = 16


@dataclass(frozen=True)
class PrunedTree:
    """A junction tree of some of the variables.

    Attributes
    ----------
    kept : tuple of int
        The variables of the tree, by their places in the network: variable i of the tree is kept[i].
    tree : JunctionTree
    """

    kept: tuple[int, ...]
    tree: Any

    def take(self, codes: Array) -> Array:
        """Return the codes of the variables of the tree."""
        if self.kept == tuple(range(codes.shape[-1])):
            return np.ascontiguousarray(codes)
        return np.ascontiguousarray(codes[..., self.kept])

    def soft(self, soft: dict[int, Array]) -> dict[int, Array]:
        """Return the likelihoods of the variables of the tree, by their places in it."""
        return {i: soft[v] for i, v in enumerate(self.kept) if v in soft}

    def positions(self, variables: Iterable[int]) -> tuple[int, ...]:
        """Return the places in the tree of some variables."""
        return tuple(self.kept.index(v) for v in variables)


@dataclass(frozen=True)
class Inference:
    """A network whose tables stay as they are, and the trees compiled for it so far.

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
    _trees: dict[tuple[int, ...], PrunedTree] = field(default_factory=dict, compare=False, repr=False)

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
        """The place of each variable."""
        return {name: position for position, name in enumerate(self.dag.nodes)}

    @cached_property
    def scopes(self) -> tuple[tuple[int, ...], ...]:
        """The variables of each CPT, by their places, in the order of its axes."""
        return tuple((*(self.position[name] for name in cpt.parents), v) for v, cpt in enumerate(self.cpts))

    # Which tree answers -----------------------------------------------------------------------------------------

    @cached_property
    def whole(self) -> PrunedTree | None:
        """The tree of all variables; None where it would be larger than max_table_size."""
        everything = tuple(range(len(self.cpts)))
        try:
            return self._compiled(everything, everything)
        except ValueError:
            return None

    def tree(self, asked: Iterable[int], known: Iterable[int], rows: int = 1, hard: Iterable[int] = ()) -> PrunedTree:
        """Return a tree that answers for the variables asked, given any findings about those known.

        Parameters
        ----------
        asked, known : collections of int
        rows : int, default 1
            How often it will be asked.
        hard : collection of int
            Those of known whose state is certain in every row.

        Raises
        ------
        ValueError
            Its tables would be larger than max_table_size.
        """
        asked, known = frozenset(asked), frozenset(known)
        if self.whole is not None and self.whole.tree.total_size * rows < _WORTH_PRUNING:
            return self.whole
        factors = self._relevant(asked, known, frozenset(hard))
        if self.whole is not None and len(factors) == len(self.cpts):
            return self.whole
        return self._compiled(tuple(sorted({v for f in factors for v in self.scopes[f]} | asked | known)), factors)

    def _relevant(self, asked: frozenset[int], known: frozenset[int], hard: frozenset[int]) -> tuple[int, ...]:
        """Return the CPTs that the answer needs.

        A variable that is neither asked for, nor known, nor an ancestor of one that is, is barren: its table sums to 1.
        In the moral graph of the others, taking what is certain out leaves parts that do not depend on each other; of a
        part in which nothing is asked the tables are left out too, but only if none holds a 0: elsewhere they are what
        tells that the evidence is impossible.
        """
        names = self.dag.nodes
        needed = sorted(self.position[name] for name in self.dag.ancestors([names[v] for v in asked | known]))
        part = {v: v for v in needed}

        def root(v: int) -> int:
            while part[v] != v:
                part[v] = part[part[v]]
                v = part[v]
            return v

        free = {f: [v for v in self.scopes[f] if v not in hard] for f in needed}
        for variables in free.values():
            for v in variables[1:]:
                part[root(v)] = root(variables[0])
        kept = {root(v) for v in asked - hard} | {root(v) for v in known - hard}
        parts = {f: root(variables[0]) if variables else None for f, variables in free.items()}
        kept |= {parts[f] for f in needed if parts[f] is not None and not self._positive[f]}  # type: ignore[misc]
        return tuple(f for f in needed if parts[f] in kept or not self._positive[f])

    @cached_property
    def _positive(self) -> tuple[bool, ...]:
        return tuple(bool(cpt.probabilities.all()) for cpt in self.cpts)

    def _compiled(self, kept: tuple[int, ...], factors: Sequence[int]) -> PrunedTree:
        key = (*kept, -1, *factors)
        found = self._trees.get(key)
        if found is None:
            found = self._compile(kept, factors)
            while len(self._trees) >= _MOST_TREES:
                self._trees.pop(next(iter(self._trees)))
            self._trees[key] = found
        return found

    def _compile(self, kept: tuple[int, ...], factors: Sequence[int]) -> PrunedTree:
        position = {v: i for i, v in enumerate(kept)}
        tables = [Factor(tuple(position[v] for v in self.scopes[f]), self.cpts[f].probabilities) for f in factors]
        cardinalities = tuple(self.cardinalities[v] for v in kept)
        try:
            tree = compile_tree(cardinalities, tables, max_table_size=self.max_table_size)
        except ValueError as error:
            raise ValueError(f"{error}: query with method='sampling'") from None
        return PrunedTree(kept, tree)

    # One case ---------------------------------------------------------------------------------------------------

    def joint(self, variables: Sequence[int], findings: Findings) -> Array:
        """Return p(variables | findings), an axis for each variable.

        Raises
        ------
        ValueError
            The findings are impossible, or the answer, or a table on the way to it, larger than max_table_size.
        """
        if len(variables) == 1:  # no table has to be put together
            return self.each(variables, findings)[0]
        size = math.prod(self.cardinalities[v] for v in variables)
        if size > self.max_table_size:
            raise ValueError(
                f"the joint distribution of these {len(variables)} variables has {size:,} cells, more than "
                f"max_table_size = {self.max_table_size:,}; ask for fewer"
            )
        chosen = self.tree(variables, [*findings.hard, *findings.soft], hard=findings.hard)
        positions = chosen.positions(variables)
        table, log_evidence = chosen.tree.joint(
            positions, chosen.take(findings.codes), chosen.soft(findings.soft) or None
        )
        require_possible(float(log_evidence))
        return table / table.sum()

    def each(self, variables: Sequence[int], findings: Findings) -> list[Array]:
        """Return p(variable | findings) of each variable.

        Raises
        ------
        ValueError
            The findings are impossible, or a table on the way to the answer larger than max_table_size.
        """
        chosen = self.tree(variables, [*findings.hard, *findings.soft], hard=findings.hard)
        codes = chosen.take(findings.codes)[np.newaxis]
        positions = chosen.positions(variables)
        tables, log_evidence = chosen.tree.marginals(codes, chosen.soft(findings.soft) or None, 1, variables=positions)
        require_possible(float(log_evidence[0]))
        return [table[0] for table in tables]

    def log_evidence(self, findings: Findings) -> float:
        """Return log p(findings) in nats: −inf where they are impossible."""
        if not findings.likelihoods:
            return 0.0
        known = [*findings.hard, *findings.soft]
        chosen = self.tree(known, known)
        codes = chosen.take(findings.codes)[np.newaxis]
        return float(chosen.tree.log_evidence(codes, chosen.soft(findings.soft) or None, 1)[0])

    def most_probable(self, findings: Findings) -> tuple[Array, float, float]:
        """Return the most probable configuration, (V,), its log probability with the findings, and log p(findings)."""
        log_evidence = self.log_evidence(findings)
        require_possible(log_evidence)
        chosen = self._everything()
        codes, log_probability = chosen.tree.most_probable(
            chosen.take(findings.codes)[np.newaxis], chosen.soft(findings.soft) or None, 1
        )
        return codes[0], float(log_probability[0]), log_evidence

    def sample(self, findings: Findings, n: int, rng: np.random.Generator) -> Array:
        """Draw n configurations given the findings, (n, V)."""
        require_possible(self.log_evidence(findings))
        chosen = self._everything()
        drawn: Array = chosen.tree.sample(chosen.take(findings.codes), n, rng, chosen.soft(findings.soft) or None)
        return drawn

    def _everything(self) -> PrunedTree:
        """Return the tree of all variables; ValueError if it would be larger than max_table_size."""
        everything = range(len(self.cpts))
        return self.whole or self.tree(everything, everything)

    # Many cases -------------------------------------------------------------------------------------------------

    def marginals(
        self, codes: Array, asked: Sequence[int], soft: dict[int, Array] | None = None, n_jobs: int | None = None
    ) -> list[Array]:
        """Return p(variable | the known cells of each row), (n, K), of each variable asked; warn of impossible rows."""
        soft = soft or {}
        known = [v for v in range(len(self.cpts)) if v in soft or (codes[:, v] >= 0).any()]
        chosen = self.tree(asked, known, len(codes))
        found: tuple[list[Array], Array] = chosen.tree.marginals(
            chosen.take(codes), chosen.soft(soft) or None, n_jobs, variables=chosen.positions(asked)
        )
        _warn_of_impossible(found[1])
        return found[0]

    def log_likelihood(self, codes: Array, n_jobs: int | None = None) -> Array:
        """Return log p(the known cells of each row) in nats, (n,): −inf where a row is impossible."""
        out = np.zeros(len(codes))
        present = codes >= 0
        complete = present.all(axis=1)
        partly = present.any(axis=1) & ~complete
        if complete.any():
            out[complete] = self._log_joint(codes[complete])
        if partly.any():
            known = np.flatnonzero(present[partly].any(axis=0)).tolist()
            chosen = self.tree(known, known, int(partly.sum()))
            out[partly] = chosen.tree.log_evidence(chosen.take(codes[partly]), None, n_jobs)
        return out

    def _log_joint(self, codes: Array) -> Array:
        """Return Σ_v log p(x_v | its parents) of complete rows: no tree is needed."""
        total = np.zeros(len(codes))
        with np.errstate(divide="ignore"):
            for cpt, scope in zip(self.cpts, self.scopes, strict=True):
                total += np.log(cpt.probabilities)[tuple(codes[:, v] for v in scope)]
        return total


def require_possible(log_evidence: float) -> None:
    """Raise ValueError where evidence has probability 0."""
    if not log_evidence > -np.inf:
        raise ValueError(
            "the evidence has probability 0 under this network, so nothing follows from it; correct a finding, or the "
            "table that rules it out"
        )


def _warn_of_impossible(log_evidence: Array) -> None:
    impossible = np.flatnonzero(log_evidence == -np.inf)
    if len(impossible):
        listed = ", ".join(map(str, impossible[:5])) + (", …" if len(impossible) > 5 else "")
        row = "row" if len(impossible) == 1 else f"{len(impossible)} rows"
        warnings.warn(
            f"the evidence of {row} ({listed}) has probability 0 under this network; the answers there are NaN",
            UserWarning,
            stacklevel=4,
        )
