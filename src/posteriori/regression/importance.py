"""How much worse a target of numbers is predicted without each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.learning.importance import Importance
from posteriori.model import Pool
from posteriori.model.predictive import PredictiveDensity
from posteriori.regression.explanation import Predict, with_hidden
from posteriori.regression.held_out_members import FoldMembers
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch

MOST_ROWS = 1000
_FEWEST_ROWS = 100
_MOST_PREDICTED = 5000  # rows with a hidden column: at most a quarter of the time of a fit
MOST_KEPT = 1 << 24  # sums of products of all folds, 128 MB
_ROUNDING = 1e-12  # relative


def importance_of(
    predict: Predict, batch: Batch, y: Array, weight: Array, *, n_trained: float | None = None
) -> Importance:
    """Return the increase of the score of some rows when each column is hidden.

    Parameters
    ----------
    predict : callable
        The densities of the rows of a batch, which are all rows, several times.
    batch : Batch
        The cells of n rows; each is predicted d + 1 times.
    y, weight : ndarray (n,)
    n_trained : float, optional
        Of held-out rows: the number of rows that the model of a fold has learned from.
    """
    schema, share, n = batch.schema, weight / weight.sum(), len(batch)
    whole, every = predict(batch).crps(y), np.arange(len(schema.columns))
    increase, error = np.zeros((2, len(every)))
    modelled = np.array(schema.modelled, np.int64)
    for some, density in with_hidden(predict, batch, modelled[:, np.newaxis] == every):
        columns = modelled[some]
        added = density.crps(np.tile(y, len(columns))).reshape(len(columns), n) - whole
        added[np.abs(added) < _ROUNDING * np.abs(whole)] = 0.0  # it depends on the number of rows
        increase[columns] = added @ share
        error[columns] = np.sqrt((added - increase[columns, np.newaxis]) ** 2 @ share**2)
    if n_trained is not None:
        error = error * np.sqrt(1.0 + n / n_trained)
    return Importance(schema.names, increase, error, n, n_trained is not None, crps=float(share @ whole))


def most_rows(n_columns: int) -> int:
    """Return the number of held-out rows for the importance: at most 1,000, and fewer for wide tables."""
    return int(np.clip(_MOST_PREDICTED // max(n_columns, 1), _FEWEST_ROWS, MOST_ROWS))


@dataclass(frozen=True)
class HeldOutRows:
    """Held-out rows with their numbers, and the members without each fold: what the importance is measured by.

    Attributes
    ----------
    folds : FoldMembers
    pool : Pool
    batch : Batch
    fold, y, weight : ndarray (n,)
    n_all : int
        The number of rows of which these are a sample.
    """

    folds: FoldMembers
    pool: Pool
    batch: Batch
    fold: Array
    y: Array
    weight: Array
    n_all: int

    @property
    def is_large(self) -> bool:
        """Whether the members without the folds are too large to be stored until the importance is requested."""
        locations = self.folds.whole.locations
        return len(self.folds.without) * sum(len(one.penalty) ** 2 for one in locations) > MOST_KEPT

    def importance(self) -> Importance:
        """Return the increase of the score when each column is hidden, each row by the members without its fold."""
        cells, every = self.folds.whole.cells, np.arange(len(self.pool.weight))
        parts, n_folds = self.pool.parts(self.batch), len(self.folds.without)

        def predict(batch: Batch) -> PredictiveDensity:
            rows = np.resize(np.arange(len(self.y)), len(batch))
            log_probability = self.folds.predicted(batch, self.fold[rows], every)
            of_rows = None if parts is None else parts[rows]
            return PredictiveDensity(cells, np.exp(self.pool.log_posterior(log_probability, of_rows)))

        with one_blas_thread():
            n_trained = self.n_all * (n_folds - 1) / n_folds
            return importance_of(predict, self.batch, self.y, self.weight, n_trained=n_trained)
