"""Structural EM: search for a graph on rows with missing cells."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.dag import DAG
from posteriori.networks.family_counts import CountFamilies, FamilyCounts, family_scopes
from posteriori.networks.learning import LearningOptions, fit_tables
from posteriori.networks.table_inference import TableInference
from posteriori.statistics.distinct_rows import DistinctRows
from posteriori.tables import Column
from posteriori.typing import Array

_MOST_COMPLETIONS = 4096  # of one row; rows with more are completed by draws
_DRAWS = 64
_MOST_ROWS = 1 << 23  # of all completions together


@dataclass(frozen=True)
class Completion:
    """Complete rows whose weights are expected counts.

    Attributes
    ----------
    rows : DistinctRows
    n_drawn : int
        The number of distinct rows that were completed by draws, because they have too many completions to list.
    """

    rows: DistinctRows
    n_drawn: int


def complete_rows(rows: DistinctRows, inference: TableInference, rng: np.random.Generator) -> Completion:
    """Replace each incomplete row by its completions x, with the weight of the row times p(x | its known cells).

    Any sum over the result is then an expected count under the network (Friedman 1998, equation 3), whatever the
    family. A row with more than 4096 completions is replaced by 64 draws.

    Parameters
    ----------
    rows : DistinctRows
    inference : Inference
        The current network.
    rng : Generator
    """
    codes = rows.codes.values.astype(np.int64) - 1
    missing: Array = codes < 0
    complete: Array = np.asarray(~missing.any(axis=1))
    parts = [(rows.codes.values[complete], rows.weight[complete])] if complete.any() else []
    n_drawn = 0
    for pattern, members in _by_pattern(missing, complete):
        absent = np.flatnonzero(pattern)
        n_completions = math.prod(rows.cardinalities[v] for v in absent.tolist())
        if n_completions <= _MOST_COMPLETIONS and n_completions * len(members) <= _MOST_ROWS:
            parts += list(_listed(rows, codes, members, absent, n_completions, inference))
        else:
            n_drawn += len(members)
            parts += [_drawn(rows, codes[i], float(rows.weight[i]), inference, rng) for i in members.tolist()]
    return Completion(DistinctRows(rows.cardinalities, tuple(part for part in parts if len(part[0]))), n_drawn)


def _by_pattern(missing: Any, complete: Array) -> Iterator[tuple[Array, Array]]:
    """Yield each pattern of missing cells with the rows that have it."""
    incomplete = np.flatnonzero(~complete)
    if not len(incomplete):
        return
    patterns, number = np.unique(missing[incomplete], axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield pattern, incomplete[number.ravel() == k]


def _listed(
    rows: DistinctRows, codes: Array, members: Array, absent: Array, n_completions: int, inference: TableInference
) -> Iterator[tuple[Array, Array]]:
    """Yield all completions of rows with one pattern, some rows at a time."""
    digits = np.stack(np.unravel_index(np.arange(n_completions), [rows.cardinalities[v] for v in absent]), axis=1)
    step = max(1, (1 << 18) // n_completions)
    for start in range(0, len(members), step):
        some = members[start : start + step]
        full = np.repeat(codes[some], n_completions, axis=0)
        full[:, absent] = np.tile(digits, (len(some), 1))
        log_joint = inference.log_likelihood(full, n_jobs=1).reshape(len(some), n_completions)
        share = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        share *= (rows.weight[some] / share.sum(axis=1))[:, np.newaxis]
        weight = share.ravel()
        kept = weight > 1e-12 * weight.max()
        yield (full[kept] + 1).astype(rows.codes.values.dtype), weight[kept]


def _drawn(
    rows: DistinctRows, row: Array, weight: float, inference: TableInference, rng: np.random.Generator
) -> tuple[Array, Array]:
    chosen = inference.whole or inference.tree(range(len(row)), np.flatnonzero(row >= 0).tolist())
    draws = chosen.tree.sample(chosen.take(row), _DRAWS, rng)
    return (draws + 1).astype(rows.codes.values.dtype), np.full(_DRAWS, weight / _DRAWS)


def fitted(
    dag: DAG, columns: tuple[Column, ...], rows: DistinctRows, options: LearningOptions, n_jobs: int | None
) -> tuple[TableInference, float]:
    """Return the network of a graph with tables by EM, and the log-likelihood of the known cells in nats."""
    counts: FamilyCounts = CountFamilies(columns, family_scopes(dag)).of(rows.codes, rows.assignment)
    learned = fit_tables(counts, options, 2**27, n_jobs)
    inference = TableInference(dag, learned.cpts, 2**27)
    log_likelihood = inference.log_likelihood(rows.codes.values.astype(np.int64) - 1, n_jobs=n_jobs)
    return inference, float(rows.weight @ log_likelihood)
