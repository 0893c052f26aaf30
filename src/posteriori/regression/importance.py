"""How much worse a target of numbers is predicted without each column."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.model import Pool
from posteriori.model.predictive import PredictiveDensity
from posteriori.regression.explanation import Predict, with_hidden
from posteriori.regression.held_out_members import FoldMembers
from posteriori.support.checks import check_numbers, require
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch

MOST_ROWS = 1000
_FEWEST_ROWS = 100
_MOST_PREDICTED = 5000  # rows with a hidden column: at most a quarter of the time of a fit
_MOST_KEPT = 1 << 24  # sums of products of all folds, 128 MB
_MOST_LISTED = 30  # columns
_ROUNDING = 1e-12  # relative


@dataclass(frozen=True)
class NumberImportance:
    """The increase of the continuous ranked probability score (CRPS) when a column is hidden, in units of the target.

    Its ``repr`` is a table, the most important column first.

    Attributes
    ----------
    names : tuple of str (d)
        The columns.
    increase : ndarray (d,)
        E[crps(y | x₋ⱼ) − crps(y | x)]; 0 for ignored columns. Negative if rows are predicted better without the column.
    standard_error : ndarray (d,)
        That of the mean over the rows. Of held-out rows it includes what other training rows would change.
    crps : float
        The mean score with all columns.
    n_rows : int
        The number of rows of the mean.
    held_out : bool
        Whether these are rows that the model was not trained on.

    Notes
    -----
    A hidden column is integrated out; no cell is shuffled, so that no row is judged that cannot occur. Columns that
    carry the same information replace each other, so that the increase of each of them may be small. A pool keeps the
    weights that it has for the whole row, so that a column of noise adds nothing.

    The variance of a mean over n rows in K folds is that of independent rows times 1 + n/m, where m is the number of
    training rows of a fold: the models of the folds are no fixed ones, and share training rows.

    References
    ----------
    Covert, Lundberg & Lee, Understanding global feature contributions with additive importance measures, NeurIPS 33
    (2020), on removing features by marginalising them. Nadeau & Bengio, Inference for the generalization error, Machine
    Learning 52 (2003), on the variance.
    """

    names: tuple[str, ...]
    increase: Array
    standard_error: Array
    crps: float
    n_rows: int
    held_out: bool

    @property
    def order(self) -> list[int]:
        """The positions of the columns, the most important first."""
        return [int(j) for j in np.argsort(-self.increase, kind="stable")]

    def __repr__(self) -> str:
        rows = f"{self.n_rows:,} {'held-out' if self.held_out else 'training'} rows"
        shown = self.order[:_MOST_LISTED]
        cells = [(self.names[j], f"{self.increase[j]:.4g} ± {self.standard_error[j]:.2g}") for j in shown]
        wide, long = (max((len(cell[k]) for cell in cells), default=0) for k in (0, 1))
        more = len(self.names) - len(shown)
        return "\n".join(
            [
                f"Importance: what is added to a CRPS of {self.crps:.4g} without each column ({rows})",
                *(f"{name:{wide}}  {text:>{long}}" for name, text in cells),
                *([f"… and {more:,} more columns"] if more else []),
            ]
        )

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless there is one number for each of `n_columns` columns."""
        require(len(self.names) == n_columns, "the importance is of other columns")
        check_numbers("the importance of columns", self.increase, (n_columns,), -np.inf, np.inf)
        check_numbers("the standard errors of importance", self.standard_error, (n_columns,), 0.0, np.inf)


def importance_of(
    predict: Predict, batch: Batch, y: Array, weight: Array, *, held_out: bool = False
) -> NumberImportance:
    """Return the increase of the score of some rows when each column is hidden.

    Parameters
    ----------
    predict : callable
        The densities of the rows of a batch, which are all rows, several times: by models that have not learned from
        them, if `held_out`.
    batch : Batch
        The cells of n rows; each is predicted d + 1 times.
    y, weight : ndarray (n,)
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
    return NumberImportance(schema.names, increase, error, float(share @ whole), len(batch), held_out)


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
        return len(self.folds.without) * sum(len(one.penalty) ** 2 for one in locations) > _MOST_KEPT

    def importance(self) -> NumberImportance:
        """Return the increase of the score when each column is hidden, each row by the members without its fold."""
        cells, every = self.folds.whole.cells, np.arange(len(self.pool.weight))
        parts, n_folds = self.pool.parts(self.batch), len(self.folds.without)

        def predict(batch: Batch) -> PredictiveDensity:
            rows = np.resize(np.arange(len(self.y)), len(batch))
            log_probability = self.folds.predicted(batch, self.fold[rows], every)
            of_rows = None if parts is None else parts[rows]
            return PredictiveDensity(cells, np.exp(self.pool.log_posterior(log_probability, of_rows)))

        with one_blas_thread():
            found = importance_of(predict, self.batch, self.y, self.weight, held_out=True)
        of_other_rows = np.sqrt(1.0 + len(self.y) / (self.n_all * (n_folds - 1) / n_folds))
        return replace(found, standard_error=found.standard_error * of_other_rows)
