"""The effect of one column on the prediction."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables import Batch

_LOWEST = -700.0  # nats; a class that cannot produce a row counts as this improbable
_SPREAD = (0.1, 0.9)

LogPosterior = Callable[[Batch], Array]


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


def column_effect(
    log_posterior: LogPosterior, log_posterior_without: LogPosterior, batch: Batch, column: int, cells: Array
) -> ColumnEffect:
    """Return the effect of a column at some values, over the rows of a batch.

    Parameters
    ----------
    log_posterior, log_posterior_without : callable
        log p(y | x) of a batch in nats, (n, C). They differ only in models in which a missing cell is evidence: the
        second one takes no evidence from a missing cell of the column.
    column : int
        Its position.
    cells : ndarray (P,)
        Numbers, or codes of categories; P·n rows are predicted.
    """
    n, points = len(batch), len(cells)
    given = np.maximum(log_posterior(with_cells(batch, column, cells)), _LOWEST).reshape(points, n, -1)
    without = np.maximum(log_posterior_without(with_cells(batch, column, None)), _LOWEST)
    moved = np.swapaxes(given, 0, 1) - without[:, np.newaxis]
    return ColumnEffect(cells, np.nan_to_num(moved - moved.mean(axis=2, keepdims=True)))


def with_cells(batch: Batch, column: int, cells: Array | None) -> Batch:
    """Return one copy of the rows for each value of a column, in which all rows have this value.

    Parameters
    ----------
    column : int
        Its position.
    cells : ndarray (P,) or None
        Numbers, or codes of categories; None for one copy in which the cells are missing.
    """
    schema, n = batch.schema, len(batch)
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    copies = 1 if cells is None else len(cells)
    numbers = np.tile(batch.numbers.values, (copies, 1))
    codes = np.tile(batch.codes.values[:, [schema.coded.index(j) for j in categorical]], (copies, 1))
    if column in continuous:
        numbers[:, continuous.index(column)] = np.nan if cells is None else np.repeat(cells, n)
    else:
        codes[:, categorical.index(column)] = 0 if cells is None else np.repeat(cells, n)
    bags = tuple(one.rows(np.tile(np.arange(n), copies)) for one in batch.bags)
    return Batch.of(schema, 0, numbers, np.ascontiguousarray(codes), {}, bags=bags)
