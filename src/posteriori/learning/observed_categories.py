"""A fold's model knows only what its own rows showed."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.learning.em import FitResult
from posteriori.learning.fit import estimate
from posteriori.model import GenerativeModel, Prior
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Codes, Column, Schema
from posteriori.typing import Array


@dataclass(frozen=True)
class ObservedCategoriesModel:
    """A model that knows only the categories its own rows show, as if it had never met the others.

    Attributes
    ----------
    full : Schema
        With all categories, and the cut points of the model.
    recode : tuple of ndarray
        For each column with codes, the trimmed code of every code of the full schema; empty where all are known.
    statistics : JointStatistics
        That the model was estimated from.
    """

    full: Schema
    model: GenerativeModel
    recode: tuple[Array, ...]
    statistics: JointStatistics

    @classmethod
    def of(cls, learned: FitResult, prior: Prior) -> ObservedCategoriesModel:
        """Return the model that the same statistics give where the categories that they lack are not known."""
        model, statistics = learned.model, learned.statistics
        schema = model.schema
        columns: list[Column] = list(schema.columns)
        recode: dict[int, Array] = {}
        moves: list[list[list[int]] | None] = []
        anything = False
        for block, sums in zip(model.blocks, statistics.blocks, strict=True):
            kept = []
            for position, j in enumerate(block.coded(schema)):
                column = schema.columns[j]
                if column.declared or column.is_binned:
                    seen = np.ones(column.cardinality, np.bool_)
                else:
                    seen = sums.column(position).any(axis=0)
                    anything = anything or not seen.all()
                kept.append(np.flatnonzero(seen).tolist())
                recode[j] = np.concatenate([[0], np.where(seen, np.cumsum(seen), 0)]).astype(schema.code_dtype)
                if not column.is_binned:
                    cells = tuple(cell for cell, keep in zip(columns[j].categories, seen, strict=True) if keep)
                    columns[j] = replace(columns[j], categories=cells)
            moves.append(kept or None)
        if not anything:
            return cls(schema, model, (), statistics)
        trimmed = replace(schema, columns=tuple(columns))
        sums = statistics.reindexed(range(len(statistics.weight)), moves)
        codes = tuple(recode[j] for j in schema.coded)
        return cls(schema, estimate(trimmed, model.blocks, prior, sums), codes, sums)

    def log_posterior(self, batch: Batch) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self.model.log_posterior(self.to_observed_codes(batch))

    def to_observed_codes(self, batch: Batch) -> Batch:
        """Return the rows in the codes of the trimmed schema."""
        batch = batch.with_schema(self.full)
        if not self.recode:
            return batch
        codes = batch.codes.values.copy()
        for position, table in enumerate(self.recode):
            codes[:, position] = table[codes[:, position]]
        schema = self.model.schema
        trimmed = Codes(codes, schema.cardinalities(schema.coded))
        return replace(batch, schema=schema, codes=trimmed)
