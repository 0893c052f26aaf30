"""Rows drawn from the model, by which the page ranks how strange a row is."""

from __future__ import annotations

import math
from typing import Any

from posteriori.model import Posterior
from posteriori.scoring.strangeness import Strangeness
from posteriori.tables.writing import decode

_FEWEST = 50  # fewer rank a row too coarsely
_MOST = 200
_CELLS = 12_000  # from which there are fewer rows than most
_MOST_CELLS = 20_000  # about 150 kB


def _rounded(cells: list[float | None]) -> list[float | None]:
    """Return numbers with five digits of their range, and None for one that JSON lacks."""
    finite = [cell for cell in cells if cell is not None and math.isfinite(cell)]
    width = max(finite, default=0.0) - min(finite, default=0.0)
    if not 0 < width < math.inf:
        return [cell if cell in finite else None for cell in cells]
    digits = 4 - math.floor(math.log10(width))
    return [round(cell, digits) if cell is not None and math.isfinite(cell) else None for cell in cells]


def rows_to_compare(posterior: Posterior) -> dict[str, Any] | None:
    """Return rows drawn from the model, the first of those of `Strangeness`; None where the model has none to draw.

    The page compares log p of the known columns of a row with that of the same columns of these rows. ``masked`` is
    false where the model reads that a cell is missing: then these rows are compared whole.
    """
    columns = posterior.schema.columns
    n = max(_FEWEST, min(_MOST, _CELLS // max(len(columns), 1)))
    if not posterior.has_density or posterior.schema.of_kind("counts") or n * len(columns) > _MOST_CELLS:
        return None
    try:
        strangeness = Strangeness.of(posterior)
    except (ValueError, NotImplementedError):  # it has no distribution of some columns
        return None
    cells = decode(strangeness.drawn.rows(slice(0, n)))
    for j in posterior.schema.of_kind("continuous"):
        cells[:, j] = _rounded(cells[:, j].tolist())
    return {
        "names": list(posterior.schema.names),
        "masked": not any(block.models_missingness for model in posterior.models for block in model.blocks),
        "cells": cells.tolist(),
    }
