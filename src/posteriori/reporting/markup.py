"""Pages with a style sheet: their parts, typographic numbers, and the complete document."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any

from posteriori.support import formatting
from posteriori.support.atomic_write import write_whole
from posteriori.support.formatting import plural
from posteriori.support.markup import Html, details, element, table_of_cells

_NARROW = "\N{NARROW NO-BREAK SPACE}"


def number(value: float | None, digits: int = 4, grouped: bool = False) -> str:
    """Format a number with commas between thousands and a typographic minus sign.

    Numbers below 10,000 have commas only if `grouped`: alone they may be years, beside a larger number they are not.

    Examples
    --------
    >>> number(3.14159), number(1234567.0), number(1e-9), number(-2.5), number(None)
    ('3.142', '1,234,567', '1e-09', '−2.5', '–')
    >>> number(2026.0), number(-5404.0, grouped=True)
    ('2026', '−5,404')
    """
    text = formatting.number(value, digits, separator=",")
    if grouped and value is not None and 1000.0 <= abs(value) < 10_000.0 and "," not in text:
        start = 1 if value < 0 else 0
        text = f"{text[: start + 1]},{text[start + 1 :]}"
    return f"\N{MINUS SIGN}{text[1:]}" if text.startswith("-") else text


def numbers(values: Iterable[float]) -> list[str]:
    """Format the numbers of one line in one style.

    Examples
    --------
    >>> numbers([5404.0, 11574.0]), numbers([5404.0])
    (['5,404', '11,574'], ['5404'])
    """
    values = list(values)
    return [number(value, 4, needs_groups(values)) for value in values]


def needs_groups(values: Iterable[float]) -> bool:
    """Whether numbers of one line have commas between thousands, because one of them has five digits."""
    return max(map(abs, values)) >= 10_000


def fixed(value: float, sign: str = "") -> str:
    """Format a number with three decimals; infinity as ∞.

    Examples
    --------
    >>> fixed(-0.5), fixed(0.25, "+"), fixed(float("-inf"))
    ('−0.500', '+0.250', '−∞')
    """
    return f"{value:{sign}.3f}".replace("inf", "∞").replace("-", "\N{MINUS SIGN}")


def percent(share: float | None) -> str:
    """Format a share of 1 as a percentage; only exactly 0 and 1 are shown as 0 % and 100 %.

    Examples
    --------
    >>> [percent(share).replace(_NARROW, " ") for share in (0.123, 0.9999, 1e-5, 1.0, 0.04321)]
    ['12 %', '> 99.9 %', '< 0.1 %', '100 %', '4.3 %']
    """
    if share is None or not math.isfinite(share):
        return "–"
    if share in (0.0, 1.0) or 0.0995 <= share < 0.985:
        return f"{100.0 * share:.0f}{_NARROW}%"
    if share < 0.0005:
        return f"<{_NARROW}0.1{_NARROW}%"
    return f"{100.0 * share:.1f}{_NARROW}%" if share < 0.9995 else f">{_NARROW}99.9{_NARROW}%"


def times(factor_in_nats: float) -> str:
    """Format a factor of at least 1, given its natural logarithm.

    Examples
    --------
    >>> times(0.0), times(1.0), times(8.0), times(100.0), times(float("inf"))
    ('× 1.0', '× 2.7', '× 3,000', '× over a million', 'excludes the other')
    """
    if math.isinf(factor_in_nats):
        return "excludes the other"
    if factor_in_nats > math.log(1e6):
        return "× over a million"
    factor = math.exp(factor_in_nats)
    if factor < 9.95:
        return f"× {factor:.1f}"
    return f"× {float(f'{factor:.2g}'):,.0f}"


def signed(value: float) -> str:
    """Format a difference with its sign.

    Examples
    --------
    >>> signed(0.25), signed(-0.25), signed(0.0)
    ('+0.25', '−0.25', '0')
    """
    return f"+{number(value, 3)}" if value > 0 else number(value, 3)


def points(share: float) -> str:
    """Format a difference of shares in percentage points.

    Examples
    --------
    >>> points(0.125), points(-0.02)
    ('+12.5', '−2.0')
    """
    return f"{100 * share:+.1f}".replace("-", "\N{MINUS SIGN}")


def p_text(p: float, phrase: bool = False) -> str:
    """Format a p-value, in a phrase with its relation.

    Examples
    --------
    >>> p_text(0.5), p_text(0.001), p_text(1e-9), p_text(0.5, phrase=True), p_text(1e-9, phrase=True)
    ('0.50', '0.001', '< 10⁻⁶', '= 0.50', '< 10⁻⁶')
    """
    if p < 1e-6:
        return "< 10⁻⁶"
    text = f"{p:.1g}" if p < 0.01 else f"{p:.2f}"
    return f"= {text}" if phrase else text


@dataclass(frozen=True)
class HtmlPage:
    """A complete HTML document.

    Attributes
    ----------
    title : str
    html : str
        The document. It loads nothing.
    """

    title: str
    html: str

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file atomically: an interrupted write leaves no partial file.

        Parameters
        ----------
        path : path
            Usually ending in ``.html``.

        Raises
        ------
        OSError
            The folder does not exist or is not writable, or the path is a folder.
        """
        write_whole(Path(path), self.html.encode("utf-8", "replace"))

    def _repr_html_(self) -> str:
        """Return the page in a frame, so that its style and the style of the notebook do not mix."""
        look = "width:100%;height:80vh;border:1px solid #ddd"
        return element("iframe", srcdoc=self.html, title=self.title, style=look)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.title!r}, {len(self.html):,} characters; save(path) writes it)"


_SHORT = 16  # rows
_MOST_PICTURES = 6  # unfolded
_BUDGET = 1_100_000  # bytes of pictures
# Second line of defence: if a cell were ever taken for markup, the browser would load and run nothing.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"


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
    rows : iterable of sequences
        A cell that already is a ``td`` element is kept.
    text : collection of int
        Text columns, which are left-aligned and may wrap; the others are right-aligned.
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
    look = "stacks" if stacks else class_
    content = table_of_cells(element("caption", caption), headers, map(cells, rows), class_=look)
    rows_written = content.count("<tr>")
    class_of_box = "scroll short" if rows_written <= _SHORT else "scroll"  # a short table stays on one printed page
    return scrolled(content, caption, class_of_box)


def tables(
    captions: tuple[str, str], head: Sequence[Any], rows: Sequence[Sequence[Any]], most: int, summary: str, **look: Any
) -> Iterator[Html]:
    """Yield the first rows as a table, and the others folded, with a caption of their own."""
    if rows:
        yield table(captions[0], head, rows[:most], **look)
    if len(rows) > most:
        yield details(summary, table(captions[1], head, rows[most:], **look))


def gallery(pictures: Sequence[Html], noun: str) -> Iterator[Html]:
    """Yield the first pictures side by side, and the others folded."""
    yield element("div", *pictures[:_MOST_PICTURES], class_="pictures")
    if len(pictures) > _MOST_PICTURES:
        rest = element("div", *pictures[_MOST_PICTURES:], class_="pictures")
        yield details(f"{plural(len(pictures) - _MOST_PICTURES, noun)}", rest)


def affordable(pictures: Iterable[Html]) -> list[Html]:
    """Return the first pictures, until they exceed the budget of a page."""
    left, drawn = _BUDGET, []
    for picture in pictures:
        drawn.append(picture)
        left -= len(picture)
        if left < 0:
            break
    return drawn


def document_head(title: str, style: str, policy: str) -> Html:
    """Return the head of a document that loads nothing."""
    return element(
        "head",
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", http_equiv="Content-Security-Policy", content=policy),
        element("link", rel="icon", href="data:,"),
        element("title", title),
        element("style", Html(style)),
    )


def scrolled(content: Html, label: str, class_: str | None = None) -> Html:
    """Return content that scrolls sideways if the page is too narrow for it."""
    return element("div", content, class_=class_ or "scroll", tabindex=0, role="region", aria_label=label)


def bar(share: float, class_: str = "") -> Html:
    """Return a bar that fills a share of its cell; hidden from screen readers, which read the number."""
    width = f"width:{100.0 * min(max(share, 0.0), 1.0):.1f}%"
    return element("span", element("i", style=width), class_=f"bar {class_}".strip(), aria_hidden="true")


def cards(facts: Iterable[tuple[str, str, str]]) -> Html:
    """Return key figures as cards, each with its name and a note."""
    boxes = (
        element("div", element("dt", name), element("dd", value, element("small", note))) for name, value, note in facts
    )
    return element("dl", *boxes, class_="cards")


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
    style = files(__package__).joinpath("page.css").read_text(encoding="utf-8")
    links = (element("li", element("a", section.title, href=f"#{section.anchor}")) for section in sections)
    body = element(
        "body",
        element("header", element("h1", title), *header),
        element("nav", element("ul", *links), aria_label="Contents"),
        element("main", *(section.write(explorer) for section in sections)),
        element("footer", *footer),
    )
    return Html(f"<!DOCTYPE html>\n{element('html', document_head(title, style, _POLICY), body, lang='en')}\n")
