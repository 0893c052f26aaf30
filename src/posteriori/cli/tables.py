"""Tables and labels on a terminal of any width, and facts as JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from typing import Any

from rich import box
from rich.console import Console
from rich.table import Table

from posteriori.cli.facts import Facts, plain
from posteriori.formatting import cell_text, escaped, shortened

_NARROWEST = 60  # columns; on a narrower terminal the lines wrap
NAME = 32  # characters of a name


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Raise the error, which `main` turns into an exit code; rich would end the process."""
        raise BrokenPipeError


def console() -> Console:
    """Return a console on the current stdout that prints names and cells as they are, not as markup."""
    out = _Console(file=sys.stdout, markup=False, highlight=False, emoji=False)
    out.width = max(out.width, _NARROWEST)
    return out


def print_json(facts: Facts) -> None:
    """Print facts as one JSON document."""
    print(json.dumps(plain(facts), indent=2, ensure_ascii=False, allow_nan=False))


def label_text(label: Any) -> str:
    """Return a class or a category as a file spells it, on one line, cut to 32 characters."""
    # A float is not rounded here: two labels must not look the same.
    text = str(label) if isinstance(label, float) else cell_text(label, longest=None)
    return shortened(escaped(text), NAME)


def model_text(name: str, title: str) -> str:
    """Return the name of a model, by which it can be asked for, and its title."""
    return name if name == title else f"{name}: {title}"


def new_table(*headers: str, left: int = 1) -> Table:
    """Return an empty table with one line per row; all columns except the first `left` ones are right-aligned."""
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
    """Return whether a table fits the width of the console without cutting any cell."""
    return out.measure(table, options=out.options.update(max_width=10_000)).maximum <= out.width


def print_grid(
    out: Console, title: str, rows: Sequence[str], columns: Sequence[str], cells: Sequence[Sequence[str]]
) -> None:
    """Print a grid as one table if it fits, else transposed if that fits, else as several narrower tables."""
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
