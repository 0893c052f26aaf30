"""What would change a prediction: the smallest change of one column."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.explain.effects import with_cells
from posteriori.formatting import cell_text
from posteriori.plotting.effects import cells_of
from posteriori.plotting.reading import posterior_of
from posteriori.tables import Batch
from posteriori.typing import Array

_VALUES = 60  # of a number
_MOST_CATEGORIES = 60


@dataclass(frozen=True)
class Change:
    """Change of one cell after which another class is the most probable one.

    Attributes
    ----------
    column : str
    before, after : str
        The cells as text.
    label : int
        The index of the class that is predicted after the change.
    probability : float
        Of this class.
    distance : float
        For a number, the share of the rows between both values; for a category, the share of the rows that do not have
        the new one.
    """

    column: str
    before: str
    after: str
    label: int
    probability: float
    distance: float


def smallest_changes(estimator: Any, rows: Batch, row: Batch, columns: Sequence[int]) -> list[Change]:
    """Return for each column the smallest change of its cell that changes the predicted class, the smallest first.

    Parameters
    ----------
    estimator : fitted classifier
    rows : Batch
        Rows whose values are tried: 60 quantiles of a number, and up to 60 categories.
    row : Batch
        The one row that is explained.
    columns : sequence of int
        Columns without such a change, and those whose cell is missing, do not appear in the result.
    """
    fitted = posterior_of(estimator)
    predicted = int(np.nan_to_num(fitted.log_posterior(row), nan=-np.inf)[0].argmax())
    changes = []
    for j in columns:
        own, seen = float(cells_of(row, j)[0]), cells_of(rows, j)
        seen = seen[~np.isnan(seen)]
        if np.isnan(own) or not len(seen):
            continue
        column = fitted.schema.columns[j]
        values, distance = _values(own, seen, column.kind == "categorical")
        if not len(values):
            continue
        posterior = np.nan_to_num(np.exp(fitted.log_posterior(with_cells(row, j, values))))
        other = np.flatnonzero(posterior.argmax(axis=1) != predicted)
        if not len(other):
            continue
        k = int(other[np.lexsort((-posterior[other].max(axis=1), distance[other]))[0]])
        before, after = (
            cell_text(column.categories[int(cell) - 1] if column.kind == "categorical" else float(cell))
            for cell in (own, values[k])
        )
        label = int(posterior[k].argmax())
        changes.append(Change(column.name, before, after, label, float(posterior[k, label]), float(distance[k])))
    return sorted(changes, key=lambda change: change.distance)


def _values(own: float, seen: Array, categorical: bool) -> tuple[Array, Array]:
    """Return the values to try, all different from the own one, and the distance of each."""
    if categorical:
        codes, counts = np.unique(seen.astype(int), return_counts=True)
        order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
        order = order[codes[order] != int(own)]
        return codes[order], 1.0 - counts[order] / len(seen)
    # Observed values only, so that whole numbers stay whole and nothing lies out of the range.
    values = np.unique(np.quantile(seen, np.linspace(0.0, 1.0, _VALUES), method="nearest"))
    values = values[values != own]
    ordered = np.sort(seen)
    rank = (np.searchsorted(ordered, values, "left") + np.searchsorted(ordered, values, "right")) / (2 * len(seen))
    own_rank = (np.searchsorted(ordered, own, "left") + np.searchsorted(ordered, own, "right")) / (2 * len(seen))
    return values, np.abs(rank - own_rank)
