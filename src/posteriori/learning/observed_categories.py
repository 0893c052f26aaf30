"""The model of a fold without the categories that occur only in the held-out rows."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from posteriori.densities import Grouped
from posteriori.learning.em import FitResult
from posteriori.learning.fit import estimate
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Codes, Column, Schema
from posteriori.typing import Array


@dataclass(frozen=True)
class ObservedCategoriesModel:
    """A model that knows only the categories that occur in its own training rows.

    A refit without the held-out rows would have these categories; the others are unseen, and count as missing cells.

    Attributes
    ----------
    full : Schema
        With all categories, and the cut points of the model.
    model : GenerativeModel
    recode : tuple of ndarray
        For each coded column, the code under the model's schema of every code of the full schema; empty if the schemas
        have the same categories.
    statistics : JointStatistics
        The statistics that the model was estimated from.
    """

    full: Schema
    model: GenerativeModel
    recode: tuple[Array, ...]
    statistics: JointStatistics

    @classmethod
    def of(cls, learned: FitResult, prior: Prior) -> ObservedCategoriesModel:
        """Return the model of the same statistics without the categories that have no weight in them."""
        model, statistics = learned.model, learned.statistics
        schema = model.schema
        columns: list[Column] = list(schema.columns)
        recode: dict[int, Array] = {}
        kept_categories: list[list[list[int]] | None] = []
        any_lost = False
        for block, sums in zip(model.blocks, statistics.blocks, strict=True):
            kept = []
            for position, j in enumerate(block.coded(schema)):
                column = schema.columns[j]
                if column.declared or column.is_binned:
                    seen = np.ones(column.cardinality, np.bool_)
                else:
                    seen = sums.column(position).any(axis=0)
                    any_lost = any_lost or not seen.all()
                kept.append(np.flatnonzero(seen).tolist())
                recode[j] = np.concatenate([[0], np.where(seen, np.cumsum(seen), 0)]).astype(schema.code_dtype)
                if not column.is_binned:
                    cells = tuple(cell for cell, keep in zip(columns[j].categories, seen, strict=True) if keep)
                    columns[j] = replace(columns[j], categories=cells)
            kept_categories.append(kept or None)
        if not any_lost:
            return cls(schema, model, (), statistics)
        observed = replace(schema, columns=tuple(columns))
        sums = statistics.reindexed(range(len(statistics.weight)), kept_categories)
        codes = tuple(recode[j] for j in schema.coded)
        pairs = zip(model.blocks, kept_categories, strict=True)
        blocks = tuple(_with_categories(block, kept) for block, kept in pairs)
        return cls(schema, estimate(observed, blocks, prior, sums), codes, sums)

    def log_posterior(self, batch: Batch) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self.model.log_posterior(self.to_observed_codes(batch))

    def to_observed_codes(self, batch: Batch) -> Batch:
        """Return the rows in the codes of the model's schema."""
        batch = batch.with_schema(self.full)
        if not self.recode:
            return batch
        codes = batch.codes.values.copy()
        for position, table in enumerate(self.recode):
            codes[:, position] = table[codes[:, position]]
        schema = self.model.schema
        return replace(batch, schema=schema, codes=Codes(codes, schema.cardinalities(schema.coded)))


def _with_categories(block: Block, kept: list[list[int]] | None) -> Block:
    """Return the block with the groups of the categories that are kept, by their indices per column of codes."""
    if kept is None or not isinstance(block.density, Grouped):
        return block
    return replace(block, density=block.density.reindexed(kept))
