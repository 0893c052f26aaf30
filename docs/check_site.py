"""Check a built site: every internal link and anchor exists, and no page loads anything from the network.

Each page has one title, the search lists a page first for each of its keywords, and `llms.txt` leads to pages.
`python docs/check_site.py build/site` prints what is wrong, and exits with 1 if anything is.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
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
# The search as a browser runs it, in Node.js: the scripts of the site, which only need a place for their results.
SEARCH = """
const { readFileSync } = require("node:fs");
const [folder, words] = process.argv.slice(1);
globalThis.window = globalThis;
globalThis.document = { getElementById: () => null, addEventListener: () => {}, readyState: "loading" };
globalThis.SPHINX_HIGHLIGHT_ENABLED = false;
globalThis._ = (text) => text;
globalThis._ready = () => {};
const scripts = ["_static/language_data.js", "_static/searchtools.js", "searchindex.js"];
const read = scripts.map((name) => readFileSync(`${folder}/${name}`, "utf8")).join("\\n");
const found = new Function(`${read}; return (word) => Search._performSearch(...Search._parseQuery(word)).at(-1);`)();
console.log(JSON.stringify(JSON.parse(words).map((word) => (found(word) ?? [null])[0])));
"""
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
        self.keywords: list[str] = []
        self.titles = 0
        self.feed(text)

    def handle_starttag(
        self, tag: str, attrs: list[tuple[str, str | None]]
    ) -> None:
        """Collect what the tag refers to."""
        values = {name: value or "" for name, value in attrs}
        self.anchors |= {values[name] for name in ("id", "name") if name in values}
        self.titles += tag == "title"
        if tag == "meta" and values.get("name") == "keywords":
            self.keywords = values["content"].split(", ")
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
    if page(path).titles != 1:
        found.append(f"has {page(path).titles} titles")
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


def faults_of_search(folder: Path, pages: list[Path]) -> list[str]:
    """Return the keywords for which the search lists another page than theirs first."""
    node = shutil.which("node") or shutil.which("nodejs")
    if node is None:
        print("the search is not checked: Node.js is absent")
        return []
    wanted = [
        (word, path.relative_to(folder).with_suffix("").as_posix())
        for path in pages
        for word in page(path).keywords
    ]
    command = [node, "-e", SEARCH, str(folder), json.dumps([w for w, _ in wanted])]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        return [f"the search fails: {done.stderr.strip()}"]
    first = json.loads(done.stdout)
    print(f"{len(wanted)} keywords are looked for")
    return [
        f"{own}.html is not the first page for “{word}”: that is {other}"
        for (word, own), other in zip(wanted, first, strict=True)
        if other != own
    ] + ([] if wanted else ["no page has keywords"])


def faults_of_llms(folder: Path) -> list[str]:
    """Return what is wrong with the list of pages for language models."""
    path = folder / "llms.txt"
    text = path.read_text(encoding="utf-8") if path.exists() else ""
    links = re.findall(r"^- \[.+?\]\((\S+?)\): .+$", text, re.MULTILINE)
    found = [
        f"llms.txt leads to {link}, which is absent"
        for link in links
        if not (folder / link).exists()
    ]
    if len(links) < text.count("\n- "):
        found.append("llms.txt has pages without description")
    if not links or not re.match(r"# .+\n\n> .+\n", text):
        found.append("llms.txt lacks a title, a summary or links")
    return found


def main(folder: str) -> int:
    """Print the faults of every page, of the search and of llms.txt."""
    root = Path(folder).resolve()
    pages = [
        path.resolve()
        for path in sorted(root.rglob("*.html"))
        if "_static" not in path.parts
    ]
    lines = [
        f"{path.relative_to(root)} {fault}"
        for path in pages
        for fault in faults(path)
    ]
    lines += faults_of_search(root, pages) + faults_of_llms(root)
    print(*lines, f"{len(pages)} pages, {len(lines)} faults", sep="\n")
    return 1 if lines or not pages else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
