"""The factor of a column of counts as a sum over the words of a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.densities import WordDensity, implements
from posteriori.model import GenerativeModel
from posteriori.tables import Bags, Batch
from posteriori.typing import Array


@dataclass(frozen=True)
class WordFactors:
    """The log factor of a column of counts in one row, as an exact sum: Σ_words factor + rest.

    Attributes
    ----------
    factors : dict of str to ndarray (C,)
        The log factor of each word of the row, in nats; of a word without a name, "x" and its position.
    rest : ndarray (C,)
        What does not depend on the words of the row: 0, except with `posteriori.Presence`, whose rest is that of a row
        without any word.
    """

    factors: Mapping[str, Array]
    rest: Array

    @property
    def total(self) -> Array:
        """The log factor of the column in nats, (C,)."""
        total: Array = self.rest + sum(self.factors.values(), np.zeros_like(self.rest))
        return total


def word_factors(model: GenerativeModel, batch: Batch) -> list[dict[str, WordFactors]]:
    """Return, for each row of a batch, the factors of the words of each column of counts, by the name of the column.

    They are empty for classes of several components, whose densities are not products over words.
    """
    rows: list[dict[str, WordFactors]] = [{} for _ in range(len(batch))]
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        column = model.schema.columns[block.columns[0]]
        density: Any = block.density
        if column.kind != "counts" or model.of_class or not implements(density, WordDensity):
            continue
        bags = block.tile(batch)
        assert isinstance(bags, Bags)
        weight = 1.0 if model.weights is None else float(model.weights.weight[block.columns[0]])
        factors, rest = (weight * part for part in density.word_factors(parameters, bags))
        for i, row in enumerate(rows):
            cells = range(int(bags.starts[i]), int(bags.starts[i + 1]))
            row[column.name] = WordFactors({column.word(int(bags.words[k])): factors[k] for k in cells}, rest[i])
    return rows


def pooled_word_factors(
    models: Sequence[GenerativeModel], weights: Sequence[float], batch: Batch
) -> list[dict[str, WordFactors]]:
    """Return the weighted sums of the word factors of several models; without columns whose words one does not divide.

    A model that has no density for a column of counts adds nothing to its factors.
    """
    rows: list[dict[str, WordFactors]] = [{} for _ in range(len(batch))]
    undivided: set[str] = set()
    for model, weight in zip(models, weights, strict=True):
        reads = {model.schema.names[j] for block in model.blocks for j in block.columns}
        for row, of_row in zip(rows, word_factors(model, batch.with_schema(model.schema)), strict=True):
            undivided |= (reads - of_row.keys()) & {model.schema.names[j] for j in model.schema.of_kind("counts")}
            for name, found in of_row.items():
                row[name] = _added(row.get(name), weight, found)
    return [{name: found for name, found in row.items() if name not in undivided} for row in rows]


def _added(known: WordFactors | None, weight: float, found: WordFactors) -> WordFactors:
    factors = {word: weight * factor for word, factor in found.factors.items()}
    if known is None:
        return WordFactors(factors, weight * found.rest)
    # Every model has the words of the row, in the same order.
    summed = {word: factor + factors[word] for word, factor in known.factors.items()}
    return WordFactors(summed, known.rest + weight * found.rest)
