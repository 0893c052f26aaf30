"""Distributions as small tables of text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.support.formatting import probability
from posteriori.support.typing import Array

_MOST_ROWS = 40
_MOST_COLUMNS = 12


def heading(names: Iterable[str], given: Iterable[str] = ()) -> str:
    """Write p(a, b | c)."""
    after = ", ".join(given)
    return f"p({', '.join(names)}{' | ' + after if after else ''})"


def aligned(rows: Sequence[Sequence[str]], n_left: int) -> list[str]:
    """Return rows of cells as lines; the first n_left columns to the left, the others, numbers, to the right."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(
            cell.ljust(width) if k < n_left else cell.rjust(width)
            for k, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def joint_lines(states: Mapping[str, Sequence[Any]], values: Array, more: Mapping[str, Array]) -> list[str]:
    """Return a line for every configuration of the variables, with its probability and what else is known of it."""
    positions = list(np.ndindex(values.shape))
    rows = [[*states, "probability", *more]]
    for position in positions[:_MOST_ROWS]:
        cells = [str(known[k]) for known, k in zip(states.values(), position, strict=True)]
        numbers = (values, *more.values())
        rows.append([*cells, *(six_digits(float(column[position])) for column in numbers)])
    return [*aligned(rows, len(states)), *_left_out(len(positions))]


def conditional_lines(
    states: Mapping[str, Sequence[Any]], given: Mapping[str, Sequence[Any]], values: Array
) -> list[str]:
    """Return a line for every configuration of what is given, with a column for each of the variables."""
    shape = tuple(map(len, given.values()))
    configurations = list(np.ndindex(tuple(map(len, states.values()))))
    titles = [
        ", ".join(str(known[k]) for known, k in zip(states.values(), position, strict=True))
        for position in configurations
    ]
    hidden = len(titles) - _MOST_COLUMNS if len(titles) > _MOST_COLUMNS + 1 else 0
    shown = len(titles) - hidden
    rows = [[*given, *titles[:shown], *(["…"] if hidden else [])]]
    table = values.reshape(*shape, len(titles))
    positions = list(np.ndindex(shape))
    for position in positions[:_MOST_ROWS]:
        cells = [str(known[k]) for known, k in zip(given.values(), position, strict=True)]
        rows.append([*cells, *map(six_digits, table[position][:shown]), *(["…"] if hidden else [])])
    return [heading(states, given), *aligned(rows, len(given)), *_left_out(len(positions))]


def six_digits(value: float) -> str:
    """Write a probability with six digits after the point; a small one in powers of ten; one that is undefined as –."""
    return probability(value, decimals=6, smallest=1e-4, small=".3e")


def _left_out(n_rows: int) -> list[str]:
    return [f"… and {n_rows - _MOST_ROWS:,} more rows"] if n_rows > _MOST_ROWS else []
