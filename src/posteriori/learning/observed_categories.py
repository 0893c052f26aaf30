"""Models of rows outside a fold, which know only the categories that occur in these rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.densities import Grouped, RandomTrees, SummedTrees
from posteriori.learning.fit import FitResult, estimate
from posteriori.model import Block, GenerativeModel, Posterior, Prior
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Batch, Codes, Schema


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
        trimmed = _Trimmed.of(model.schema, model.blocks, statistics)
        if trimmed is None:
            return cls(model.schema, model, (), statistics)
        return trimmed.estimated(model.schema, prior)

    @classmethod
    def estimated(
        cls, schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics
    ) -> ObservedCategoriesModel:
        """Return the closed-form estimate without the categories that have no weight in the statistics."""
        trimmed = _Trimmed.of(schema, blocks, statistics)
        if trimmed is None:
            return cls(schema, estimate(schema, blocks, prior, statistics), (), statistics)
        return trimmed.estimated(schema, prior)

    @property
    def posterior(self) -> Posterior:
        """The model as a posterior of rows in all codes."""
        return Posterior((self.model,), readers=(self.to_observed_codes,))

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


@dataclass(frozen=True)
class _Trimmed:
    """A schema, blocks and statistics without the categories that have no weight, and the codes of the others."""

    schema: Schema
    blocks: tuple[Block, ...]
    statistics: JointStatistics
    recode: tuple[Array, ...]

    @classmethod
    def of(cls, schema: Schema, blocks: tuple[Block, ...], statistics: JointStatistics) -> _Trimmed | None:
        """Return them; None if every category has weight."""
        seen: dict[int, Array] = {}
        inferred = {j for j in schema.of_kind("categorical") if not schema.columns[j].declared}
        coded = [block.coded(schema) for block in blocks]
        for columns, sums in zip(coded, statistics.blocks, strict=True):
            for position, j in enumerate(columns):
                if j in inferred:
                    seen[j] = sums.column(position).any(axis=0)
        if all(map(np.all, seen.values())):
            return None
        sizes = {j: schema.columns[j].cardinality for j in schema.coded}
        kept = {j: np.flatnonzero(seen[j]).tolist() if j in seen else range(size) for j, size in sizes.items()}
        kept_of_blocks = [[kept[j] for j in of_block] or None for of_block in coded]
        sums = statistics.reindexed(range(len(statistics.weight)), kept_of_blocks)
        pairs = zip(blocks, kept_of_blocks, strict=True)
        known = list(schema.columns)
        for j, one in seen.items():
            if not one.all():
                known[j] = replace(known[j], categories=tuple([known[j].categories[k] for k in kept[j]]))
        recode = [_codes_of(seen.get(j), size).astype(schema.code_dtype) for j, size in sizes.items()]
        trimmed = tuple([_with_categories(block, of_block) for block, of_block in pairs])
        return cls(replace(schema, columns=tuple(known)), trimmed, sums, tuple(recode))

    def estimated(self, full: Schema, prior: Prior) -> ObservedCategoriesModel:
        model = estimate(self.schema, self.blocks, prior, self.statistics)
        return ObservedCategoriesModel(full, model, self.recode, self.statistics)


def _codes_of(seen: Array | None, size: int) -> Array:
    """Return the new code of each code, (size + 1,): 0 for a category that is not seen."""
    return np.arange(size + 1) if seen is None else np.concatenate([[0], np.where(seen, np.cumsum(seen), 0)])


def _with_categories(block: Block, kept: Sequence[Sequence[int]] | None) -> Block:
    """Return the block with the groups of the categories that are kept, by their indices per column of codes."""
    if kept is None or not isinstance(block.density, Grouped | RandomTrees | SummedTrees):
        return block
    return replace(block, density=block.density.reindexed(kept))
