"""Files that the explorer saves, in a real browser: they hold what the page shows."""

import csv
import io
import re
from xml.etree import ElementTree

import polars as pl

import posteriori as po
from posteriori.exploring import explore
from tests.exploring.browser import address_of


def saved_by(browser, click):
    """Return the name, the type and the text of the file that a click saves."""
    browser.value(
        "URL.createObjectURL = (blob) => { blob.text().then((text) => (window.content = [blob.type, text])); "
        "return 'data:,'; }; HTMLAnchorElement.prototype.click = function () { window.named = this.download; }; "
        "window.content = null"
    )
    click()
    browser.wait("window.content !== null")
    return browser.value("[window.named, ...window.content]")


def button_of(browser, section, text):
    browser.value(
        f"[...document.querySelectorAll('section[aria-labelledby=\"{section}\"] button')]"
        f".find((one) => one.textContent === '{text}').click()"
    )


def test_saved_files_hold_what_the_page_shows(browser, penguins, network, tmp_path):
    row = {"island": "Dream", "bill_length_mm": 46.25}
    browser.open(address_of(penguins[1], row=row))
    name, kind, text = saved_by(browser, lambda: button_of(browser, "what-if", "Save the case (CSV)"))
    assert (name, kind) == ("case.csv", "text/csv")
    case = pl.read_csv(io.StringIO(text))
    assert case.columns == list(penguins[0].schema_.given)
    assert {key: cell for key, cell in case.row(0, named=True).items() if cell is not None} == row
    for section, file in (("sum", "sum.svg"), ("dependences", "dependences.svg")):
        name, kind, text = saved_by(browser, lambda section=section: button_of(browser, section, "Save as SVG"))
        assert (name, kind) == (file, "image/svg+xml")
        drawing = ElementTree.fromstring(text.encode())
        assert drawing.tag == "{http://www.w3.org/2000/svg}svg"
        shown = "".join(drawing.itertext())
        assert "bill_length_mm" in shown
        assert not re.search("(?:href|src)=|<script|url\\((?!#)", text)  # it stands alone
        assert section != "sum" or "island = Dream" in shown
    name, kind, text = saved_by(browser, lambda: button_of(browser, "dependences", "Save as PNG"))
    assert (name, kind) == ("dependences.png", "image/png")
    assert text[1:4] == "PNG"

    explore(network, path=tmp_path / "network.html")
    variable = network.variables[0]
    evidence = {variable: network.states(variable)[1]}
    browser.open(address_of(tmp_path / "network.html", evidence=evidence))
    name, kind, text = saved_by(browser, lambda: button_of(browser, "network", "Save as SVG"))
    assert (name, kind) == ("network.svg", "image/svg+xml")
    shown = "".join(ElementTree.fromstring(text.encode()).itertext())
    assert all(one[:24] in shown for one in network.variables)
    _, _, text = saved_by(browser, lambda: button_of(browser, "network", "Save the case (CSV)"))
    lines = list(csv.reader(io.StringIO(text, newline="")))
    assert dict(zip(*lines, strict=True)).get(variable) == evidence[variable], lines[:2]
    assert browser.complaints == []


def test_cells_of_saved_cases_are_quoted(browser, tmp_path):
    cells = ["a,b", 'say "so"', "two\nlines", "plain"] * 5
    table = pl.DataFrame({"text, or not": cells, "y": ["u", "v"] * 10})
    explore(po.NaiveBayes().fit(table, "y"), path=tmp_path / "page.html")
    for cell in set(cells):
        browser.open(address_of(tmp_path / "page.html", row={"text, or not": cell}))
        _, _, text = saved_by(browser, lambda: button_of(browser, "what-if", "Save the case (CSV)"))
        assert list(csv.reader(io.StringIO(text, newline=""))) == [["text, or not"], [cell]]
