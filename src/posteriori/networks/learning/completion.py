"""Completion of rows with missing cells by a network: expected counts of structural EM."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.inference.inference import Inference
from posteriori.networks.inference.questions import root_of
from posteriori.networks.learning.family_statistics import CaseRows
from posteriori.support.typing import Array

_MOST_COMPLETIONS = 4096  # of one row; rows with more are completed by draws
_DRAWS = 64
_MOST_ROWS = 1 << 23  # of all completions together

Part = tuple[Array, Array, Array]  # codes from 0, numbers and weights of rows


@dataclass(frozen=True)
class Completion:
    """Complete rows whose weights are expected counts.

    Attributes
    ----------
    rows : CaseRows
    n_drawn : int
        The number of rows that were completed by draws, because they have too many completions to list.
    """

    rows: CaseRows
    n_drawn: int


def complete_rows(rows: CaseRows, inference: Inference, rng: np.random.Generator) -> Completion:
    """Replace each incomplete row by its completions x, with the weight of the row times p(x | its known cells).

    Any sum over the result is then an expected count under the network (Friedman 1998, equation 3), whatever the
    family. Missing states are listed; a row with more than 4096 completions is replaced by 64 draws. Given the states,
    missing numbers are normal, and 2h points with their mean and covariance stand for h of them: scores depend on no
    other moments.

    Parameters
    ----------
    rows : CaseRows
    inference : Inference
        The current network.
    rng : Generator

    References
    ----------
    Friedman (1998), The Bayesian structural EM algorithm, UAI 14. Julier & Uhlmann (1997), A new extension of the
    Kalman filter to nonlinear systems, SPIE 3068: the points.
    """
    codes, numbers, weight = rows.codes.astype(np.int64) - 1, rows.numbers, rows.weight
    missing = np.concatenate([codes < 0, np.isnan(numbers)], axis=1)
    complete: Array = np.asarray(~missing.any(axis=1))
    parts: list[Part] = [(codes[complete], numbers[complete], weight[complete])] if complete.any() else []
    n_drawn = 0
    for pattern, members in _by_pattern(missing, complete):
        absent = np.flatnonzero(pattern[: codes.shape[1]])
        n_completions = math.prod(rows.cardinalities[v] for v in absent.tolist())
        n_points = max(1, 2 * int(pattern[codes.shape[1] :].sum()))
        if n_completions <= _MOST_COMPLETIONS and n_completions * n_points * len(members) <= _MOST_ROWS:
            listed = _listed(codes[members], numbers[members], weight[members], absent, n_completions, inference)
            parts += [_with_points(*part, inference) for part in listed]
        else:
            n_drawn += len(members)
            parts += [
                _with_points(*_drawn(codes[[i]], numbers[[i]], float(weight[i]), inference, rng), inference)
                for i in members.tolist()
            ]
    dtype = rows.codes.dtype
    kept = tuple(((c + 1).astype(dtype), x, w) for c, x, w in parts if len(w))
    return Completion(CaseRows(rows.cardinalities, kept), n_drawn)


def _by_pattern(missing: Any, complete: Array) -> Iterator[tuple[Array, Array]]:
    """Yield each pattern of missing cells with the rows that have it."""
    incomplete = np.flatnonzero(~complete)
    if not len(incomplete):
        return
    patterns, number = np.unique(missing[incomplete], axis=0, return_inverse=True)
    for k, pattern in enumerate(patterns):
        yield pattern, incomplete[number.ravel() == k]


def _listed(
    codes: Array, numbers: Array, weight: Array, absent: Array, n_completions: int, inference: Inference
) -> Iterator[Part]:
    """Yield all completions of the states of rows with one pattern, some rows at a time."""
    cardinalities = inference.tables.cardinalities
    digits = np.zeros((1, 0), np.int64)
    if len(absent):
        places = np.unravel_index(np.arange(n_completions), [cardinalities[v] for v in absent])
        digits = np.stack(places, axis=1)
    step = max(1, (1 << 18) // n_completions)
    for start in range(0, len(codes), step):
        some = slice(start, start + step)
        n = len(weight[some])
        full, known = (np.repeat(cells[some], n_completions, axis=0) for cells in (codes, numbers))
        full[:, absent] = np.tile(digits, (n, 1))
        log_joint = inference.log_likelihood(full, known, n_jobs=1).reshape(n, n_completions)
        share = np.exp(log_joint - log_joint.max(axis=1, keepdims=True))
        share *= (weight[some] / share.sum(axis=1))[:, np.newaxis]
        each = share.ravel()
        kept = each > 1e-12 * each.max()
        yield full[kept], known[kept], each[kept]


def _drawn(codes: Array, numbers: Array, weight: float, inference: Inference, rng: np.random.Generator) -> Part:
    """Return draws of the states of a row."""
    compiled, _, values = next(iter(inference.batches(numbers, everything=True)))
    soft, _ = compiled.likelihoods(values, 1)
    alone = {v: likelihood[0] for v, likelihood in soft.items()}
    draws = compiled.tables.everything().sample(compiled.padded(codes)[0], _DRAWS, rng, alone)
    return draws[:, : codes.shape[1]], np.repeat(numbers, _DRAWS, axis=0), np.full(_DRAWS, weight / _DRAWS)


def _with_points(codes: Array, numbers: Array, weight: Array, inference: Inference) -> Part:
    """Return complete rows: points in place of the numbers that all these rows lack."""
    hidden = np.flatnonzero(np.isnan(numbers).any(axis=0)) if len(numbers) else np.zeros(0, np.int64)
    if not len(hidden):
        return codes, numbers, weight
    place = {name: k for k, name in enumerate(inference.continuous)}
    values = {name: numbers[:, k] for name, k in place.items() if k not in hidden}
    compiled, n = inference.compiled(values, everything=True), len(weight)
    mean, spreads = numbers.copy(), []
    for component in compiled.components:
        if not component.hidden:
            continue
        configuration = np.zeros(n, np.int64)
        for name, states in component.discrete.items():
            configuration = configuration * len(states) + codes[:, inference.tables.position[name]]
        own = np.array([place[name] for name in component.hidden], np.int64)
        for q in np.unique(configuration).tolist():
            rows = np.flatnonzero(configuration == q)
            some = {name: cells[rows] for name, cells in values.items()}
            mean[np.ix_(rows, own)] = component.hidden_mean(some)[:, q] if some else component.hidden_mean(some)[0, q]
        roots = np.stack([root_of(one) for one in component.hidden_covariance])[configuration]
        for j in range(len(own)):
            shift = np.zeros_like(numbers)
            shift[:, own] = np.sqrt(len(hidden)) * roots[:, :, j]
            spreads += [shift, -shift]
    points = np.concatenate([mean + shift for shift in spreads])
    return np.tile(codes, (len(spreads), 1)), points, np.tile(weight / len(spreads), len(spreads))
