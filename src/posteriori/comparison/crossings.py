"""Crossings of two learning curves."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.typing import Array

_SIGNIFICANT = 3.0  # standard errors


@dataclass(frozen=True)
class Crossing:
    """The last crossing of two curves: the lead of the first over the second changes its sign.

    Attributes
    ----------
    n_rows : float or None
        The number of rows at which the mean lead changes its sign for the last time; None if it never does.
    first, last : int
        The leader before and after: 1 for the first curve, −1 for the second; 0 if the two never differ.
    n_crossings : int
        The number of sign changes. It can exceed 1 by chance if the curves are close.
    sure : bool
        Whether the leader before the crossing leads at some size by more than three standard errors, and the leader
        after it does at some later size.
    """

    n_rows: float | None
    first: int
    last: int
    n_crossings: int
    sure: bool


def find_crossing(n_rows: Array, lead: Array) -> Crossing:
    """Locate the last sign change of the mean lead, by linear interpolation over log n.

    Parameters
    ----------
    n_rows : ndarray (S,)
        The training sizes, ascending.
    lead : ndarray (S, R)
        The lead for each size and repeat: above 0 if the first curve is better.

    Examples
    --------
    >>> crossing = find_crossing(np.array([10, 1000]), np.array([[0.25], [-0.25]]))
    >>> round(crossing.n_rows, 6), crossing.first, crossing.last
    (100.0, 1, -1)
    """
    mean, log_n = lead.mean(axis=1), np.log(n_rows)
    decided = np.flatnonzero(mean)
    if not len(decided):
        return Crossing(None, 0, 0, 0, False)
    sign = np.sign(mean[decided]).astype(int)
    changes = np.flatnonzero(sign[1:] != sign[:-1])
    if not len(changes):
        return Crossing(None, int(sign[0]), int(sign[0]), 0, False)
    before, after = decided[changes[-1]], decided[changes[-1] + 1]
    if after == before + 1:
        fraction = mean[before] / (mean[before] - mean[after])
        position = log_n[before] + fraction * (log_n[after] - log_n[before])
    else:  # the curves are equal at the sizes in between: take the middle
        position = (log_n[before + 1] + log_n[after - 1]) / 2
    first, last = int(sign[changes[-1]]), int(sign[changes[-1] + 1])
    sure = _leads_clearly(first * lead[:after]) and _leads_clearly(last * lead[after:])
    return Crossing(float(np.exp(position)), first, last, len(changes), sure)


def _leads_clearly(lead: Array) -> bool:
    """Whether the mean lead over repeats, (S, R), exceeds three of its standard errors at some size."""
    repeats = lead.shape[1]
    if repeats < 2:
        return False
    return bool((lead.mean(axis=1) > _SIGNIFICANT * lead.std(axis=1, ddof=1) / np.sqrt(repeats)).any())
