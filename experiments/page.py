"""The pages of docs/ that experiments fill: Markdown tables, and the blocks of a page that hold them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

DOCS = Path(__file__).resolve().parents[1] / "docs"
PICTURES = DOCS / "pictures"
POOL_NOTEBOOK = DOCS / "measured" / "pool_notebook.md"


def table_row(cells: Iterable[str]) -> str:
    """Return one row of a Markdown table."""
    return "| " + " | ".join(cells) + " |"


def table_head(cells: Sequence[str]) -> str:
    """Return the header of a Markdown table and the rule below it."""
    return table_row(cells) + "\n|" + "-|" * len(cells)


def markdown_table(head: Sequence[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a Markdown table."""
    return "\n".join([table_head(head), *map(table_row, rows)])


def replace_block(name: str, text: str, path: Path) -> None:
    """Replace the text between the two marks of a block of a page.

    Raises
    ------
    ValueError
        If the page lacks one of the marks: add the two lines.
    """
    page = path.read_text(encoding="utf-8")
    begin, end = f"<!-- {name} -->\n", f"<!-- end of {name} -->"
    before, found, after = page.partition(begin)
    if not found or end not in after:
        raise ValueError(f"{path.name} has no block {begin.strip()} … {end}; add the two lines")
    path.write_text(before + begin + text + "\n" + end + after.partition(end)[2], encoding="utf-8")
