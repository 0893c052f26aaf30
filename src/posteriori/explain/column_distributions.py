"""The name of the distribution of each column."""

from __future__ import annotations

from posteriori.model import GenerativeModel


def column_distributions(model: GenerativeModel) -> dict[int, str]:
    """Return the name of the density that models each column, by the position of the column.

    A column that two blocks model together has the name of the block whose parameters all classes share.
    """
    blocks = sorted((block for block in model.blocks if not block.models_missingness), key=lambda block: block.shared)
    return {j: block.density.name for block in blocks for j in block.columns}
