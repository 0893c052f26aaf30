"""Tables, numbers and names on a terminal of any width."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table

from posteriori.cli.facts import Facts, plain

_NARROWEST = 60  # columns of a terminal; on one still narrower the lines wrap
NAME = 32  # characters of a name, before it is cut short


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Leave it to `main`, which is told of closed pipes by whatever writes."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console on today's stdout, to which names and cells are text, never markup."""
    out = _Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    out.width = max(out.width, _NARROWEST)
    return out


def print_json(facts: Facts) -> None:
    """Print facts as one JSON document."""
    print(json.dumps(plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def label_text(label: Any) -> str:
    """Return a class or a category as a file would spell it, without line ends, cut to 32 characters."""
    text = str(label).lower() if isinstance(label, bool | np.bool_) else str(label)
    text = "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
    return text if len(text) <= NAME else text[: NAME - 1] + "…"


def number(value: float | None, digits: int = 4) -> str:
    """Return a number with some significant digits, in full where that is not long."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0"
    magnitude = math.floor(math.log10(abs(value)))
    if -4 < magnitude < 9:
        text = f"{value:.{max(digits - 1 - magnitude, 0)}f}"
        return text.rstrip("0").rstrip(".") if "." in text else text
    return f"{value:.{digits}g}"


def count(value: int | None) -> str:
    """Return a count with its thousands set apart; one of more than 15 digits as a power of ten."""
    if value is None:
        return "–"
    if value < 10**15:
        return f"{value:,}"
    power = int(math.log10(value))
    return f"about {math.exp((math.log10(value) - power) * math.log(10)):.1f}e{power}"


def share(value: float) -> str:
    """Return a probability with four decimals; of a small one, that it is small."""
    if value != value:
        return "–"
    return f"{value:.2g}" if 0 < value < 5e-5 else f"{value:.4f}"


def new_table(*headers: str, left: int = 1) -> Table:
    """Return an empty table, the first columns to the left and the others to the right, one line a row."""
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, 1, 0, 0))
    for position, header in enumerate(headers):
        table.add_column(
            header,
            justify="left" if position < left else "right",
            no_wrap=True,
            overflow="ellipsis",
            min_width=3,
        )
    return table


def print_table(out: Console, table: Table) -> None:
    """Print a table and an empty line."""
    out.print(table)
    out.print()


def fits(out: Console, table: Table) -> bool:
    """Whether a table fits the width of the console without cutting anything short."""
    return out.measure(table, options=out.options.update(max_width=10_000)).maximum <= out.width


def print_grid(
    out: Console, title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    """Print a grid as one table, turned over if it only fits so, else as tables of some columns each."""
    out.print(title, style="bold", soft_wrap=True)
    for table in (_grid(rows, columns, cells), _grid(columns, rows, list(zip(*cells, strict=True)))):
        if fits(out, table):
            print_table(out, table)
            return
    start = 0
    while start < len(columns):
        stop = start + 1
        while stop < len(columns) and fits(out, _columns_between(rows, columns, cells, start, stop + 1)):
            stop += 1
        print_table(out, _columns_between(rows, columns, cells, start, stop))
        start = stop


def _columns_between(
    rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]], start: int, stop: int
) -> Table:
    return _grid(rows, columns[start:stop], [row[start:stop] for row in cells])


def _grid(rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]) -> Table:
    table = new_table("", *columns)
    for name, row in zip(rows, cells, strict=True):
        table.add_row(name, *row)
    return table
