"""Base of the fitted estimators: reading of rows under the schema of the fit."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.notebooks import estimator_html
from posteriori.sources import LabelledSource, source_of
from posteriori.table_estimator import TableEstimator
from posteriori.tables import Schema, Table, read_rows
from posteriori.tables.matching import matched_places


class RowReadingEstimator(TableEstimator, ABC):
    """Reads rows under the schema that it was fitted with."""

    n_jobs: int | None
    _fitted_attribute: ClassVar[str]  # exists once the estimator is fitted

    @property
    @abstractmethod
    def schema_(self) -> Schema:
        """The columns: names, kinds and categories."""

    @property
    @abstractmethod
    def _trained(self) -> bool:
        """Whether the estimator was fitted to rows, and not built from parameters."""

    def _html_repr(self) -> str:
        """Return what a notebook shows: what was learned once fitted; before that, the diagram of scikit-learn."""
        diagram: str = super()._html_repr()
        return estimator_html(self, diagram) if hasattr(self, self._fitted_attribute) else diagram

    def _places(self, table: Table, target: str | None = None) -> tuple[int, ...]:
        """Return the position in a table of each column of the schema."""
        # Names given with parameters are optional: rows without names are taken by position, without a warning.
        return matched_places(table, self.schema_, type(self).__name__, target, warn_of_lost_names=self._trained)

    def _source(self, X: Any) -> LabelledSource:
        check_is_fitted(self, self._fitted_attribute)
        schema = self.schema_
        table = read_rows(X, schema, type(self).__name__)
        return source_of(table, schema, self._places(table, schema.target), n_jobs=self.n_jobs)
