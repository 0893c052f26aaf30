"""What densities share unless they differ."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from posteriori.typing import Array


class BaseDensity:
    """A density of numbers or of codes that can produce every finite number or every category and learns no structure.

    A subclass is a frozen dataclass, and has the other methods of `posteriori.densities.Density`.
    """

    has_full_support = True

    def out_of_support(self, tile: Any) -> Array:
        """Return which cells the density cannot produce, (n, d): infinities; an unseen category is a missing cell."""
        return np.asarray(np.isinf(tile.values))

    def with_fixed_structure(self, parameters: Any) -> Self:
        """Return the density that keeps the structure of these parameters: itself, if it learns none."""
        del parameters
        return self
