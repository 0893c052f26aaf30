"""Rows of evidence in the form that the kernels read, and threads over slices of them."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import numpy as np

from posteriori.kernels.junction_tree import Evidence
from posteriori.typing import Array

T = TypeVar("T")


def encode_evidence(cardinalities: tuple[int, ...], codes: Array, soft: Mapping[int, Array]) -> Evidence:
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
    return Evidence(codes, likelihoods, soft_at)


@functools.lru_cache(maxsize=64)
def _as_array(cardinalities: tuple[int, ...]) -> Array:
    return np.array(cardinalities, np.int64)


def take(evidence: Evidence, rows: slice) -> Evidence:
    """Return the evidence of a slice of rows."""
    return Evidence(evidence.codes[rows], evidence.soft[rows], evidence.soft_at)


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
