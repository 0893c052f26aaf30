"""What functions on an estimator ask of it, so that types prove that it has what they read.

The estimators themselves are built on these functions, so that they cannot be named there.
"""

from __future__ import annotations

from typing import Any, Protocol

from posteriori.model import Posterior
from posteriori.sources import LabelledSource
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema


class FittedEstimator(Protocol):
    """An estimator that reads rows to predict: a classifier or a mixture."""

    n_jobs: int | None
    fitted_: Any

    @property
    def schema_(self) -> Schema:
        """The columns."""

    @property
    def target_(self) -> Column:
        """The classes or components, as a column."""

    @property
    def _posterior(self) -> Posterior: ...
    @property
    def _trained(self) -> bool: ...
    def _source(self, X: Any) -> LabelledSource: ...


class FittedClassifier(FittedEstimator, Protocol):
    """A classifier, of one model or of a pool."""

    @property
    def classes_(self) -> Array:
        """The classes, (C,)."""
