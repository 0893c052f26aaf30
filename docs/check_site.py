"""Check a built site: every internal link and anchor exists, and no page loads anything from the network.

`python docs/check_site.py build/site` prints what is wrong, and exits with 1 if anything is.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

LOADED = {
    "script": "src",
    "img": "src",
    "link": "href",
    "iframe": "src",
    "source": "src",
}
NAVIGATION = (
    "canonical",
    "search",
    "index",
    "next",
    "prev",
    "author",
    "copyright",
    "license",
)


class Page(HTMLParser):
    """The links of a page, what it loads, and its anchors."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.loaded: list[str] = []
        self.anchors: set[str] = set()
        self.feed(text)

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        """Collect what the tag refers to."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        if tag == "a" and "href" in values:
            self.links.append(values["href"])
        if (
            tag in LOADED
            and LOADED[tag] in values
            and values.get("rel") not in NAVIGATION
        ):
            self.loaded.append(values[LOADED[tag]])


@cache
def page(path: Path) -> Page:
    """Return a page, read once."""
    return Page(path.read_text(encoding="utf-8"))


def faults(path: Path) -> list[str]:
    """Return what is wrong with one page."""
    found = []
    for reference in page(path).loaded + page(path).links:
        parts = urlsplit(reference)
        if parts.scheme == "data" or (
            reference.startswith("#") and reference == "#"
        ):
            continue
        if parts.scheme or parts.netloc:
            if reference in page(path).loaded:
                found.append(f"loads {reference} from the network")
            continue
        target = (
            (path.parent / unquote(parts.path)).resolve() if parts.path else path
        )
        if not target.exists():
            found.append(f"refers to {reference}, which is absent")
        elif (
            parts.fragment
            and not unquote(parts.fragment).startswith("{")  # a case of an explorer
            and target.suffix == ".html"
            and unquote(parts.fragment) not in page(target).anchors
        ):
            found.append(f"refers to {reference}, and that page has no such anchor")
    return found


def main(folder: str) -> int:
    """Print the faults of every page."""
    pages = [
        path.resolve()
        for path in sorted(Path(folder).rglob("*.html"))
        if "_static" not in path.parts
    ]
    lines = [
        f"{path.relative_to(Path(folder).resolve())} {fault}"
        for path in pages
        for fault in faults(path)
    ]
    print(*lines, f"{len(pages)} pages, {len(lines)} faults", sep="\n")
    return 1 if lines or not pages else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
