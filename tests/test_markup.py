"""The one library of HTML: text is escaped, markup is kept, and nothing else writes elements of pages."""

import ast
from html.parser import HTMLParser
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

import posteriori as po
from posteriori.support.markup import Html, as_html, code, details, element, folded, paragraph, table, table_of_cells


class Reader(HTMLParser):
    def __init__(self):
        super().__init__()
        self.tags, self.texts = [], []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, attrs))

    def handle_data(self, data):
        self.texts.append(data)


TEXTS = st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=20)


@given(TEXTS)
def test_any_text_is_read_back_from_an_element_and_its_attribute(text):
    read = Reader()
    read.feed(element("p", text, title=text))
    read.close()
    assert (read.tags, "".join(read.texts)) == ([("p", [("title", text)])], text)
    assert as_html(as_html(text)) == as_html(text)


def test_pages_and_notebooks_share_folded_content_and_tables():
    inner = element("b", "x < y")
    assert details("more", inner) == "<details><summary>more</summary><b>x &lt; y</b></details>"
    shown = folded("<more>", inner)
    assert shown == details("<more>", inner, style="cursor: pointer;")
    assert table_of_cells(element("caption", "c"), [element("th", "h")], [[element("td", "<")]], class_="k") == (
        '<table class="k"><caption>c</caption><thead><tr><th>h</th></tr></thead>'
        "<tbody><tr><td>&lt;</td></tr></tbody></table>"
    )
    for written in (table("<c>", ["<h>"], [["<x>"]]), paragraph("<p>"), code("<q>")):
        assert isinstance(written, Html)
        assert not set(written.split("<")[1:]) & {"c>", "h>", "x>", "p>", "q>"}


def test_one_module_escapes_for_html():
    package = Path(po.__file__).parent
    users = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if (isinstance(node, ast.Import) and any(one.name == "html" for one in node.names))
        or (isinstance(node, ast.ImportFrom) and node.module == "html")
    }
    assert users == {"support/markup.py"}
