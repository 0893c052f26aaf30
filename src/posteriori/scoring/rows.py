"""Rows to predict, read under the schema of a fitted model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from posteriori.reading import read_rows
from posteriori.reading.matching import matched_places
from posteriori.sources import LabelledSource, source_of
from posteriori.tables import Schema, Table


@dataclass(frozen=True)
class RowsToPredict:
    """How a fitted model reads rows to predict."""

    schema: Schema
    model: str  # the name of the model in messages
    width: int  # how many numbers a prediction holds per row
    # whether the model was learned from rows; then rows without the names of its columns give a warning
    learned: bool = True

    def places_in(self, table: Table) -> tuple[int, ...]:
        """Return the position in a table of each column of the schema, as `matched_places` does."""
        # Names given with parameters are optional: rows without names are taken by position, without a warning.
        schema = self.schema
        return matched_places(table, schema, self.model, schema.target, warn_of_lost_names=self.learned, may_lack=True)

    def source(self, X: Any, n_jobs: int | None = None) -> LabelledSource:
        """Return rows to predict as a source, read on some threads; X is anything that `predict` takes."""
        table = read_rows(X, self.schema, self.model)
        return source_of(table, self.schema, self.places_in(table), n_jobs=n_jobs).with_width(self.width)
