"""Fourth powers of the distances of rows from their mean, for the sampling error of a covariance."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.tables.batch import Assignment, Numbers
from posteriori.typing import Array


@dataclass(frozen=True)
class QuarticNorms:
    """The sums of a second pass over the rows: Σ w·‖(x − centre_z) / scale_z‖⁴ of each component, (Z,).

    Parameters
    ----------
    centre, scale : ndarray (Z, d)
        In data units; a column of scale 0 is omitted.
    """

    centre: Array
    scale: Array

    def of(self, tile: Numbers, assignment: Assignment) -> Array:
        """Return the sums of the rows of a tile, where rows of positive weight have no missing cell."""
        total = np.zeros(len(self.centre))
        factor = np.where(self.scale > 0, 1.0 / np.where(self.scale > 0, self.scale, 1.0), 0.0)
        kernels.add_quartic_norms(tile.values, assignment.component, assignment.weight, self.centre, factor, total)
        return total


@dataclass(frozen=True)
class OfComplete:
    """A statistics factory restricted to complete rows: rows with a missing cell get weight 0.

    Parameters
    ----------
    sufficient_statistics : object with a method ``of(tile, assignment)``
    """

    sufficient_statistics: Any

    def of(self, tile: Numbers, assignment: Assignment) -> Any:
        """Return the statistics of the complete rows of a tile."""
        complete = ~np.isnan(tile.values).any(axis=1)
        return self.sufficient_statistics.of(tile, replace(assignment, weight=assignment.weight * complete))
