"""HTML builder: markup is kept as it is, and all other text is escaped."""

from __future__ import annotations

import html
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

_SHORT = 16  # rows
_VOID = frozenset({"br", "link", "meta"})
# Second line of defence: if a cell were ever taken for markup, the browser would load and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


class Html(str):
    """Text that is markup. Plain strings are escaped, this type is not."""

    __slots__ = ()


def escaped(content: Any) -> Html:
    """Return markup unchanged, and anything else as escaped text.

    Examples
    --------
    >>> escaped("<script>"), escaped(Html("<b>"))
    ('&lt;script&gt;', '<b>')
    """
    return content if isinstance(content, Html) else Html(html.escape(str(content)))


def joined(contents: Iterable[Any]) -> Html:
    """Concatenate contents; escape those that are not markup, and skip None."""
    return Html("".join(escaped(one) for one in contents if one is not None))


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


def table(
    caption: str,
    head: Sequence[Any],
    rows: Iterable[Sequence[Any]],
    text: Collection[int] = (0,),
    class_: str | None = None,
    stacks: bool = False,
) -> Html:
    """Return a table in which the first cell of each row is its header; it scrolls on narrow pages.

    Parameters
    ----------
    caption : str
    head : sequence of str or markup
    rows : iterable of sequences
        A cell that already is a ``td`` element is kept.
    text : collection of int
        Text columns, which are left-aligned and may wrap; the others are right-aligned.
    class_ : str, optional
    stacks : bool, default False
        Whether the cells of a row are stacked on a narrow page, each with the header of its column.
    """

    def cells(row: Sequence[Any]) -> Iterable[Html]:
        yield element("th", row[0], scope="row")
        for position, cell in enumerate(row[1:], start=1):
            whole = isinstance(cell, Html) and cell.startswith("<td")
            side = "text" if position in text else None
            yield cell if whole else element("td", cell, class_=side, data_label=head[position] if stacks else None)

    headers = (
        element("th", cell, scope="col", class_="text" if position in text else None)
        for position, cell in enumerate(head)
    )
    content = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *headers)),
        element("tbody", *(element("tr", *cells(row)) for row in rows)),
        class_="stacks" if stacks else class_,
    )
    rows_written = content.count("<tr>")
    class_of_box = "scroll short" if rows_written <= _SHORT else "scroll"  # a short table stays on one printed page
    return scrolled(content, caption, class_of_box)


def scrolled(content: Html, label: str, class_: str | None = None) -> Html:
    """Return content that scrolls sideways if the page is too narrow for it."""
    return element("div", content, class_=class_ or "scroll", tabindex=0, role="region", aria_label=label)


def bar(share: float, class_: str = "") -> Html:
    """Return a bar that fills a share of its cell; hidden from screen readers, which read the number."""
    width = f"width:{100.0 * min(max(share, 0.0), 1.0):.1f}%"
    return element("span", element("i", style=width), class_=f"bar {class_}".strip(), aria_hidden="true")


def details(summary: str, *contents: Any) -> Html:
    """Return content that is collapsed until it is opened."""
    return element("details", element("summary", summary), *contents)


def paragraph(*contents: Any, class_: str | None = None) -> Html:
    """Return a paragraph."""
    return element("p", *contents, class_=class_)


@dataclass(frozen=True)
class Section:
    """Section of a page: anchor, title, lead paragraph on how to read it, and contents."""

    anchor: str
    title: str
    lead: Html | str
    contents: tuple[Html, ...]

    def write(self, explorer: str | None = None) -> Html:
        """Return the section as an element, with a link to the page of `explore` if there is one."""
        heading = element("h2", self.title, id=self.anchor)
        link = None if explorer is None else element("a", "Try other values in the explorer", href=explorer)
        lead = paragraph(self.lead, None if link is None else " ", link, class_="lead")
        return element("section", heading, lead, *self.contents, aria_labelledby=self.anchor)


def page(
    title: str,
    header: Iterable[Html],
    sections: Sequence[Section],
    footer: Iterable[Html],
    explorer: str | None = None,
) -> Html:
    """Return a self-contained document: no other files, no network, no scripts."""
    style = Html(files(__package__).joinpath("page.css").read_text(encoding="utf-8"))
    links = (element("li", element("a", section.title, href=f"#{section.anchor}")) for section in sections)
    head = element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", style),
    )
    body = element(
        "body",
        element("header", element("h1", title), *header),
        element("nav", element("ul", *links), aria_label="Contents"),
        element("main", *(section.write(explorer) for section in sections)),
        element("footer", *footer),
    )
    return Html(f"<!DOCTYPE html>\n{element('html', head, body, lang='en')}\n")
