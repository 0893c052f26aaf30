"""Links from a report into the page that `explore` writes, which opens with the cells of a row."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any
from urllib.parse import quote, urlsplit

import numpy as np

from posteriori.reporting.data import take_rows
from posteriori.tables import Batch
from posteriori.tables.writing import decode
from posteriori.typing import Array

_SCHEMES = ("", "file", "http", "https")


def check_address(explorer: str) -> str:
    """Return the address of an explorer.

    Raises
    ------
    ValueError
        It is not an address of a file or of the web.
    """
    if not explorer or urlsplit(explorer).scheme.lower() not in _SCHEMES:
        raise ValueError(f'explorer is {explorer!r}; give the address of a page, such as "explorer.html"')
    return explorer


def case_links(estimator: Any, X: Any, rows: Sequence[int] | Array, explorer: str | None) -> list[str | None]:
    """Return for each of the rows the address of the explorer with its cells; None without an explorer."""
    if explorer is None or not len(rows):
        return [None] * len(rows)
    found: dict[int, Array] = {}

    def read(batch: Batch) -> Array:
        found[batch.start] = decode(batch)
        return np.empty(len(batch))

    estimator._source(take_rows(X, rows)).map(read)
    cells = np.concatenate([found[start] for start in sorted(found)])
    names = estimator._posterior.schema.names
    return [_address(explorer, dict(zip(names, row, strict=True))) for row in cells.tolist()]


def _address(explorer: str, row: dict[str, Any]) -> str:
    """Return the address with the state that the page reads: the cells that are present, as JSON."""
    cells = {name: cell.item() if isinstance(cell, np.generic) else cell for name, cell in row.items()}
    known = {name: cell for name, cell in cells.items() if isinstance(cell, bool | int | float | str)}
    return f"{explorer.split('#')[0]}#{quote(json.dumps({'row': known}, ensure_ascii=False), safe='')}"
