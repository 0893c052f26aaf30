"""Exact inference by conditioning, for networks whose junction tree is too large for memory."""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.inference.clique_tables import Factor, triangulate
from posteriori.networks.inference.evidence import Evidence
from posteriori.networks.inference.junction_tree import JunctionTree, compile_tree
from posteriori.networks.inference.table_inference import TableInference, require_possible
from posteriori.support.typing import Array

_MOST_RUNS = 1 << 20  # configurations of the cutset
_CANDIDATES = 12  # of a clique that are tried as the next variable of the cutset


@dataclass(frozen=True)
class Conditioned:
    r"""Exact inference by conditioning on a few variables, the cutset.

    .. math:: p(x, e) = \sum_c p(x, e, c)

    With the cutset and the evidence fixed, the tables lose these axes, and the junction tree is small. One tree is
    compiled and filled for each configuration of the cutset, one after the other: time takes the place of memory.

    Attributes
    ----------
    inference : TableInference
        Its max_table_size is the most cells of the tree.

    References
    ----------
    Pearl (1988), Probabilistic Reasoning in Intelligent Systems, section 4.4.1. Dechter (1999), Bucket elimination: a
    unifying framework for reasoning, Artificial Intelligence 113, section 10.
    """

    inference: TableInference

    def answer(self, asked: Sequence[tuple[int, ...]], evidence: Evidence) -> tuple[list[Array], float]:
        """Return p(scope | evidence) of each scope, an axis for each variable, and log p(evidence), in nats."""
        inference = self.inference
        inference.require_size(asked)
        wanted = {v for scope in asked for v in scope}
        hard = dict(evidence.hard)
        known = hard.keys() | evidence.soft.keys()
        # Without a query variable p(evidence) itself is wanted, to which every table of an ancestor is a factor.
        used = inference.relevant(wanted, known, hard.keys()) if asked else inference.relevant(known, known, ())
        together = {v for scope in asked if len(scope) > 1 for v in scope}
        cutset = self._cutset(used, set(hard), together)
        kept = self._kept(used, hard.keys() | set(cutset))
        free = [scope for scope in asked if scope[0] in kept]  # the cutset holds none of several variables
        codes = np.full(len(inference.cpts), -1, np.int64)
        tree: JunctionTree | None = None
        logs, tables = [], []
        for states in itertools.product(*(range(inference.cardinalities[v]) for v in cutset)):
            fixed = hard | dict(zip(cutset, states, strict=True))
            factors, log_constant = self._sliced(used, fixed)
            log_constant += sum(_log(likelihood[fixed[v]]) for v, likelihood in evidence.soft.items() if v in fixed)
            if log_constant == -math.inf:
                continue
            if tree is None:
                tree = compile_tree(
                    inference.cardinalities, factors, variables=kept, max_table_size=inference.max_table_size
                )
            else:
                tree = tree.with_factors(factors)
            answers, log_p = tree.answer(free, codes, evidence.soft)
            if log_p > -math.inf:
                found = dict(zip(free, answers, strict=True))
                logs.append(log_p + log_constant)
                tables.append([found[scope] if scope in found else self._certain(scope[0], fixed) for scope in asked])
        if not logs:
            require_possible(-math.inf if asked else 0.0)
            return [], -math.inf
        most = max(logs)
        weights = np.exp(np.array(logs) - most)
        total = float(weights.sum())
        summed = [
            np.asarray(sum(weight * table[k] for weight, table in zip(weights, tables, strict=True)) / total)
            for k in range(len(asked))
        ]
        return summed, most + math.log(total)

    def _sliced(self, used: Sequence[int], fixed: Mapping[int, int]) -> tuple[list[Factor], float]:
        """Return the tables at the fixed states, and the logarithm of those that are fixed altogether."""
        factors, log_constant = [], 0.0
        for f in used:
            scope = self.inference.scopes[f]
            table = self.inference.cpts[f].probabilities[tuple(fixed.get(v, slice(None)) for v in scope)]
            left = tuple(v for v in scope if v not in fixed)
            if left:
                factors.append(Factor(left, np.ascontiguousarray(table)))
            else:
                log_constant += _log(table)
        return factors, log_constant

    def _certain(self, variable: int, fixed: Mapping[int, int]) -> Array:
        row: Array = np.eye(self.inference.cardinalities[variable])[fixed[variable]]
        return row

    def _cutset(self, used: Sequence[int], hard: set[int], together: set[int]) -> tuple[int, ...]:
        """Return variables whose states, once fixed, leave a tree that is small enough: greedily, fewest cells first.

        Raise ValueError if the cutset would have more than 2**20 configurations.
        """
        inference = self.inference
        cutset: list[int] = []
        runs = 1
        while True:
            gone = hard | set(cutset)
            size, clique = self._tree_size(used, gone)
            if size <= inference.max_table_size:
                return tuple(cutset)
            candidates = sorted(
                (v for v in clique if v not in together and inference.cardinalities[v] > 1),
                key=lambda v: -sum(v in inference.scopes[f] for f in used),
            )[:_CANDIDATES]
            if not candidates:
                raise ValueError(
                    f"the variables asked for together need tables of {size:,} cells, more than max_table_size = "
                    f"{inference.max_table_size:,}; ask for fewer, or use method='sampling'"
                )
            # The cells that all runs together fill decide, and so the time.
            best = min(candidates, key=lambda v: self._tree_size(used, gone | {v})[0] * inference.cardinalities[v])
            cutset.append(best)
            runs *= inference.cardinalities[best]
            if runs > _MOST_RUNS:
                raise ValueError(
                    f"conditioning would need more than {_MOST_RUNS:,} runs to keep its tables below max_table_size = "
                    f"{inference.max_table_size:,}; raise it, or use method='sampling'"
                )

    def _kept(self, used: Sequence[int], gone: Collection[int]) -> list[int]:
        """Return the variables of some tables without those that are fixed."""
        return sorted({v for f in used for v in self.inference.scopes[f]}.difference(gone))

    def _tree_size(self, used: Sequence[int], gone: set[int]) -> tuple[int, frozenset[int]]:
        """Return the cells of the tree without some variables, and the variables of its largest clique."""
        inference = self.inference
        kept = self._kept(used, gone)
        place = {v: k for k, v in enumerate(kept)}
        # As `compile_tree` does: constants need no edges.
        scopes = [
            [place[v] for v in inference.scopes[f] if v in place and inference.cardinalities[v] > 1] for f in used
        ]
        found = triangulate([inference.cardinalities[v] for v in kept], [scope for scope in scopes if scope])
        if not found.cliques:
            return 0, frozenset()
        return found.total_size, frozenset(kept[v] for v in found.cliques[found.largest].scope)


def _log(p: Any) -> float:
    return math.log(float(p)) if float(p) > 0 else -math.inf
