"""The factor of a column of counts as a sum over the words of a row."""

from __future__ import annotations

from collections.abc import Mapping
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
