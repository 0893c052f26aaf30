"""Small tables of HTML for notebooks: every cell is escaped, and the colours suit light and dark pages."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

_BLUE = "rgba(0, 114, 178, 0.45)"
_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = f"padding: 2px 10px 2px 4px; border: 0; border-bottom: {_LINE}; background: none;"
_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0 0 8px;"
_CAPTION = (
    "text-align: left; caption-side: top; font-weight: 600; color: inherit; padding: 2px 4px 4px; white-space: nowrap;"
)


def text(content: Any) -> str:
    """Return content as escaped text.

    Examples
    --------
    >>> text("<b>")
    '&lt;b&gt;'
    """
    return html.escape(str(content))


def paragraph(content: Any) -> str:
    """Return a paragraph of escaped text."""
    return f'<p style="margin: 2px 4px 6px;">{text(content)}</p>'


def code(content: Any) -> str:
    """Return escaped text in letters of one width, with its line breaks."""
    style = "margin: 2px 4px 6px; padding: 0; background: none; color: inherit; white-space: pre-wrap;"
    return f'<pre style="{style}">{text(content)}</pre>'


def folded(summary: str, content: str) -> str:
    """Return HTML that is shown on a click on its summary."""
    return f'<details><summary style="cursor: pointer;">{text(summary)}</summary>{content}</details>'


def scrolling(content: str) -> str:
    """Return HTML that scrolls sideways if it is wider than the page."""
    return f'<div style="overflow-x: auto; max-width: 100%;">{content}</div>'


def left_out(n: int, what: str, most: int) -> str:
    """Return the sentence after the first lines of a longer table; empty if all of its n lines are shown."""
    return paragraph(f"… and {n - most:,} more {what}") if n > most else ""


def table(
    caption: str,
    head: Sequence[str],
    rows: Iterable[Sequence[str]],
    n_left: int = 1,
    shares: Sequence[Sequence[float | None]] | None = None,
) -> str:
    """Return a table; the first n_left columns are text to the left, the others numbers to the right.

    Parameters
    ----------
    caption : str
    head : sequence of str
    rows : sequences of str
    n_left : int, default 1
    shares : sequences of float or None, optional
        For each cell of each row, the share of the cell that a bar fills; None for no bar.
    """

    def cell(name: str, content: str, position: int, share: float | None = None) -> str:
        side = "left" if position < n_left else "right"
        bar = ""
        if share is not None and share == share:
            end = f"{100.0 * min(max(share, 0.0), 1.0):.1f}%"
            bar = f" background: linear-gradient(90deg, {_BLUE} {end}, transparent {end}); min-width: 7em;"
        scope = ' scope="col"' if name == "th" else ""
        return f'<{name}{scope} style="{_CELL} text-align: {side};{bar}">{text(content)}</{name}>'

    lines = []
    for number, row in enumerate(rows):
        of_row = [None] * len(row) if shares is None else shares[number]
        lines.append("".join(cell("td", one, k, share) for k, (one, share) in enumerate(zip(row, of_row, strict=True))))
    titles = "".join(cell("th", one, k) for k, one in enumerate(head))
    body = "".join(f"<tr>{line}</tr>" for line in lines)
    return (
        f'<table style="{_TABLE}"><caption style="{_CAPTION}">{text(caption)}</caption>'
        f"<thead><tr>{titles}</tr></thead><tbody>{body}</tbody></table>"
    )


def side_by_side(parts: Iterable[str]) -> str:
    """Return parts in lines, as many beside each other as the page is wide."""
    return f'<div style="display: flex; flex-wrap: wrap; gap: 6px 24px;">{"".join(parts)}</div>'
