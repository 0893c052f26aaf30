"""HTML of pages and notebooks: elements, in which all text is escaped."""

from __future__ import annotations

import html
from collections.abc import Iterable
from typing import Any

_VOID = frozenset({"br", "link", "meta"})


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
