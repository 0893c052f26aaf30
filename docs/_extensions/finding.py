"""How a page is found: keywords in the index that the search reads, a description in <meta>, and llms.txt.

A page that names `keywords` in its front matter has them as main entries of the index, which the search ranks above
words of titles and texts. A page without a `description` is described by its first sentence; `llms.txt`
(https://llmstxt.org) lists the pages with these descriptions.
"""

import re
from pathlib import Path

from docutils import nodes
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

OPTIONAL = ("auto_gallery/index", "api/index", "changelog", "develop/index")


def meta(document: nodes.document, name: str) -> str:
    """Return the content of a <meta> of a page, or nothing."""
    found = (
        node["content"]
        for node in document.findall(nodes.meta)
        if node.get("name") == name
    )
    return next(found, "")


def first_sentence(document: nodes.document) -> str:
    """Return the first sentence below the title, without a word such as "Assumption." before it."""
    for node in document.findall(nodes.paragraph):
        if (
            isinstance(node.parent, nodes.section)
            and node.parent.parent is document
        ):
            text = re.sub(r"^(?:Assumption|What to do)\. ", "", node.astext())
            sentence = re.split(r"(?<=[.?!])\s", " ".join(text.split()))[0]
            return re.sub(":$", ".", sentence)
    return ""


class Finding(SphinxTransform):
    """Add the entries of the keywords and the description of a page."""

    default_priority = (
        840  # before the domains collect entries, and after references are read
    )

    def apply(self, **kwargs: object) -> None:
        """Read the front matter and the first sentence."""
        words = [
            word.strip()
            for word in meta(self.document, "keywords").split(",")
            if word.strip()
        ]
        if words:
            entries = [("single", word, "", "main", None) for word in words]
            self.document += addnodes.index(entries=entries)
        description = meta(self.document, "description") or first_sentence(
            self.document
        )
        if description and not meta(self.document, "description"):
            self.document += nodes.meta("", name="description", content=description)
        self.env.metadata[self.env.docname]["description"] = description


def lines_of(app: Sphinx, page: str) -> list[str]:
    """Return the lines of a page and of the pages below it."""
    below = app.env.toctree_includes.get(page, []) if page not in OPTIONAL else []
    lines = []
    for one in [page, *below]:
        title, text = (
            app.env.titles[one].astext(),
            app.env.metadata[one]["description"],
        )
        lines.append(f"- [{title}]({app.builder.get_target_uri(one)}): {text}")
    return lines


def write_llms(app: Sphinx, error: Exception | None) -> None:
    """Write llms.txt: the title, a summary, and a line per page."""
    if error or app.builder.name != "html":
        return
    summary = app.env.metadata[app.config.root_doc]["description"]
    parts = [f"# {app.config.project}\n\n> {summary}\n"]
    pages = app.env.toctree_includes[app.config.root_doc]
    for page in pages:
        if page not in OPTIONAL:
            title = app.env.titles[page].astext()
            parts.append(f"## {title}\n\n" + "\n".join(lines_of(app, page)) + "\n")
    optional = [
        line for page in pages if page in OPTIONAL for line in lines_of(app, page)
    ]
    parts.append("## Optional\n\n" + "\n".join(optional) + "\n")
    (Path(app.outdir) / "llms.txt").write_text("\n".join(parts), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the transform, and write llms.txt after the pages."""
    app.add_transform(Finding)
    app.connect("build-finished", write_llms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
