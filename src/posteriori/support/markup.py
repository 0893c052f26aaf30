"""HTML of pages and notebooks: elements, in which all text is escaped, and the parts of a notebook in its own look."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import Any

_VOID = frozenset({"br", "link", "meta"})
# The look of tables in notebooks, which have no style sheet of ours.
_BLUE = "rgba(0, 114, 178, 0.45)"
_LINE = "1px solid rgba(128, 128, 128, 0.35)"
_CELL = f"padding: 2px 10px 2px 4px; border: 0; border-bottom: {_LINE}; background: none;"
_TABLE = "border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0 0 8px;"
_CAPTION = (
    "text-align: left; caption-side: top; font-weight: 600; color: inherit; padding: 2px 4px 4px; white-space: nowrap;"
)


class Html(str):
    """Text that is markup. Plain strings are escaped, this type is not."""

    __slots__ = ()


def as_html(content: Any) -> Html:
    """Return markup unchanged, and anything else as escaped text.

    Examples
    --------
    >>> as_html("<script>"), as_html(Html("<b>"))
    ('&lt;script&gt;', '<b>')
    """
    return content if isinstance(content, Html) else Html(html.escape(str(content)))


def joined(contents: Iterable[Any]) -> Html:
    """Concatenate contents; escape those that are not markup, and skip None."""
    return Html("".join(as_html(one) for one in contents if one is not None))


def element(name: str, /, *contents: Any, **attributes: Any) -> Html:
    """Return an element. Attributes that are None are omitted; ``_`` in a name becomes ``-``, a final ``_`` is dropped.

    Examples
    --------
    >>> element("td", "a < b", class_="number", aria_label=None)
    '<td class="number">a &lt; b</td>'
    """
    written = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{html.escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in _VOID:
        return Html(f"<{name}{written}>")
    return Html(f"<{name}{written}>{joined(contents)}</{name}>")


def details(summary: str, *contents: Any, style: str | None = None) -> Html:
    """Return content that is collapsed until it is opened, by a click on its summary, which may have a style."""
    return element("details", element("summary", summary, style=style), *contents)


def table_of_cells(caption: Html, headers: Iterable[Html], rows: Iterable[Iterable[Html]], **attributes: Any) -> Html:
    """Return a table of a caption, cells of headers, and lines of cells."""
    head = element("thead", element("tr", *headers))
    body = element("tbody", *(element("tr", *cells) for cells in rows))
    return element("table", caption, head, body, **attributes)


def paragraph(content: Any) -> str:
    """Return a paragraph of escaped text."""
    return element("p", content, style="margin: 2px 4px 6px;")


def code(content: Any) -> str:
    """Return escaped text in letters of one width, with its line breaks."""
    style = "margin: 2px 4px 6px; padding: 0; background: none; color: inherit; white-space: pre-wrap;"
    return element("pre", content, style=style)


def folded(summary: str, content: str) -> str:
    """Return HTML that is shown on a click on its summary."""
    return details(summary, Html(content), style="cursor: pointer;")


def scrolling(content: str) -> str:
    """Return HTML that scrolls sideways if it is wider than the page."""
    return element("div", Html(content), style="overflow-x: auto; max-width: 100%;")


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
    n_left : int, default 1
    shares : sequences of float or None, optional
        For each cell of each row, the share of the cell that a bar fills; None for no bar.
    """

    def cell(name: str, content: str, position: int, share: float | None = None) -> Html:
        side = "left" if position < n_left else "right"
        bar = ""
        if share is not None and share == share:
            end = f"{100.0 * min(max(share, 0.0), 1.0):.1f}%"
            bar = f" background: linear-gradient(90deg, {_BLUE} {end}, transparent {end}); min-width: 7em;"
        scope = "col" if name == "th" else None
        return element(name, content, scope=scope, style=f"{_CELL} text-align: {side};{bar}")

    lines = []
    for number, row in enumerate(rows):
        of_row = [None] * len(row) if shares is None else shares[number]
        lines.append([cell("td", one, k, share) for k, (one, share) in enumerate(zip(row, of_row, strict=True))])
    titles = [cell("th", one, k) for k, one in enumerate(head)]
    return table_of_cells(element("caption", caption, style=_CAPTION), titles, lines, style=_TABLE)


def side_by_side(parts: Iterable[str]) -> str:
    """Return parts in lines, as many beside each other as the page is wide."""
    return element("div", *map(Html, parts), style="display: flex; flex-wrap: wrap; gap: 6px 24px;")
