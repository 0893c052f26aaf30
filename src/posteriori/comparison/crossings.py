"""Where two learning curves cross."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.typing import Array

_SURE = 3.0  # standard errors


@dataclass(frozen=True)
class Crossing:
    """How two curves stand to each other: the lead of one over the other by the number of rows.

    Attributes
    ----------
    n_rows : float or None
        Where the mean lead changes its sign for the last time; None where it never does.
    first, last : int
        Who leads before that, and after: 1 the one, −1 the other; 0 if the two never differ.
    n_crossings : int
        How often the sign changes: more than once where the curves lie close, by chance maybe.
    sure : bool
        Whether the one that leads before does so at some size by over three standard errors of the lead, and the
        other at some size after.
    """

    n_rows: float | None
    first: int
    last: int
    n_crossings: int
    sure: bool


def find_crossing(n_rows: Array, lead: Array) -> Crossing:
    """Return where a mean lead changes its sign, by linear interpolation over log n.

    Parameters
    ----------
    n_rows : ndarray (S,)
        Ascending.
    lead : ndarray (S, R)
        Of each size and repeat: above 0 where the one leads.

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
        share = mean[before] / (mean[before] - mean[after])
        position = log_n[before] + share * (log_n[after] - log_n[before])
    else:  # the curves are one for some sizes between
        position = (log_n[before + 1] + log_n[after - 1]) / 2
    first, last = int(sign[changes[-1]]), int(sign[changes[-1] + 1])
    sure = _leads_clearly(first * lead[:after]) and _leads_clearly(last * lead[after:])
    return Crossing(float(np.exp(position)), first, last, len(changes), sure)


def _leads_clearly(lead: Array) -> bool:
    """Whether the mean over repeats, (S, R), exceeds 0 at some size by more than three of its standard errors."""
    repeats = lead.shape[1]
    if repeats < 2:
        return False
    return bool((lead.mean(axis=1) > _SURE * lead.std(axis=1, ddof=1) / np.sqrt(repeats)).any())
