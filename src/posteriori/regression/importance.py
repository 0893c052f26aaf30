"""How much worse a target of numbers is predicted without each column."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.pool.partial_rows import without_cells
from posteriori.regression.explanation import Predict
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Batch

MOST_ROWS = 1000
_MOST_LISTED = 30  # columns


@dataclass(frozen=True)
class NumberImportance:
    """The increase of the continuous ranked probability score (CRPS) when a column is hidden, in units of the target.

    Attributes
    ----------
    names : tuple of str (d)
        The columns.
    increase : ndarray (d,)
        E[crps(y | x₋ⱼ) − crps(y | x)]; 0 for ignored columns. Negative if rows are predicted better without the column.
    standard_error : ndarray (d,)
        That of the mean over the rows.
    crps : float
        The mean score with all columns.
    n_rows : int
        The number of rows of the mean.
    held_out : bool
        Whether these are rows that the model was not trained on.

    Notes
    -----
    A hidden column is integrated out; no cell is shuffled, so that no row is judged that cannot occur. Columns that
    carry the same information replace each other, so that the increase of each of them may be small.
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
        The densities of the rows of a batch, (n,), in their order: by models that have not learned from them, if
        `held_out`.
    batch : Batch
        The cells of n rows; it is predicted d + 1 times.
    y, weight : ndarray (n,)
    """
    schema, share = batch.schema, weight / weight.sum()
    whole = predict(batch).crps(y)
    increase, error = np.zeros((2, len(schema.columns)))
    for j in schema.modelled:
        hidden = np.broadcast_to(np.arange(len(schema.columns)) == j, (len(batch), len(schema.columns)))
        added = predict(without_cells(batch, hidden)).crps(y) - whole
        increase[j] = share @ added
        error[j] = np.sqrt((share**2) @ (added - increase[j]) ** 2)
    return NumberImportance(schema.names, increase, error, float(share @ whole), len(batch), held_out)
