"""The effect of one column on the prediction."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.model import Posterior, with_cells
from posteriori.support.typing import Array
from posteriori.tables import Batch

_LOWEST = -700.0  # nats; a class that cannot produce a row counts as this improbable
_SPREAD = (0.1, 0.9)


@dataclass(frozen=True)
class ColumnEffect:
    """Contribution of a column to the log-odds of each class, at some values."""

    cells: Array  # (P,): the values: numbers, or codes of categories
    # (n, P, C): log p(c | x_j = v, x₋ⱼ) − log p(c | x₋ⱼ) of each row, in nats, minus its mean over the classes.
    # Differences between classes are contributions to their log-odds.
    contributions: Array

    def log_odds(self, label: int, against: int | None = None) -> tuple[Array, Array, Array]:
        """Return the mean, the 10 % and the 90 % quantile over the rows of a contribution, each (P,) in nats.

        Parameters
        ----------
        label : int
            Index of a class.
        against : int, optional
            Index of the other class of the odds. Default: the geometric mean of all classes.
        """
        odds = self.contributions[:, :, label]
        if against is not None:
            odds = odds - self.contributions[:, :, against]
        low, high = np.quantile(odds, _SPREAD, axis=0)
        return odds.mean(axis=0), low, high


def column_effect(fitted: Posterior, batch: Batch, column: int, cells: Array) -> ColumnEffect:
    """Return the effect of a column at some values, over the rows of a batch.

    Where a missing cell is evidence, that of the column is no evidence for log p(c | x₋ⱼ).

    Parameters
    ----------
    fitted : Posterior
    batch : Batch
    column : int
        Its position.
    cells : ndarray (P,)
        Numbers, or codes of categories.
    """
    others = [j for j in range(len(fitted.schema.columns)) if j != column]
    without = fitted.ignore_missingness_except(others).log_posterior(with_cells(batch, column, None))
    given = np.maximum(fitted.log_posteriors_at(batch, column, cells), _LOWEST)
    moved = np.swapaxes(given, 0, 1) - np.maximum(without, _LOWEST)[:, np.newaxis]
    return ColumnEffect(cells, np.nan_to_num(moved - moved.mean(axis=2, keepdims=True)))
