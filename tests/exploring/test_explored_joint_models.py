"""Joint models in the explorer, in a real browser: every card is that of Python, whatever is known."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from posteriori.joint.findings import likelihoods_of
from tests.cli.command_line import CommandLine
from tests.exploring.browser import address_of
from tests.javascript.test_joint import ODD, distribution_of, odd_table, of_python, within, without_rows

CARDS = """Object.fromEntries([...document.querySelectorAll('.card')].map((card) => [
  card.querySelector('h3').textContent,
  { bars: [...card.querySelectorAll('[data-value]')].map((b) => [b.title, Number(b.dataset.value)]),
    labels: [...card.querySelectorAll('[data-value]')].map((b) => b.getAttribute('aria-label')),
    moments: { ...(card.querySelector('.moments')?.dataset ?? {}) }, shift: Number(card.dataset.shift) }]))"""


@pytest.fixture(scope="module")
def pages(tmp_path_factory):
    folder = tmp_path_factory.mktemp("pages")
    models = {
        "penguins": po.JointModel().fit(load_penguins()),
        "odd": po.JointModel().fit(odd_table()),
        "one": po.JointModel().fit(odd_table().select("amount")),
    }
    for name, model in models.items():
        explore(model, path=folder / f"{name}.html")
    return {name: (model, folder / f"{name}.html") for name, model in models.items()}


def card(name):
    return f'.card:has(h3[title="{name}"])'


def rarity(browser):
    return browser.value("Number(document.getElementById('rarity').dataset.value)")


def assert_cards(browser, model, known):
    """Check p(known), the training rows, every category, the moments of numbers, and that bars sum to 1."""
    law = model._value.law
    given = of_python(known, law)
    beliefs = law.believe(likelihoods_of(law, given))
    marginals, alone = beliefs.marginals(), law.believe(likelihoods_of(law, {})).marginals()
    try:
        log_p = np.log(model.probability(given))
    except ValueError:  # a single number, of which the law has the density
        log_p = beliefs.log_evidence[0]
    assert rarity(browser) == pytest.approx(log_p, abs=1e-9)
    rows = "Number(document.getElementById('training-rows').dataset.rows)"
    assert browser.value(rows) == pytest.approx(law.counts(given, {}).rows, abs=1e-9)
    cards = browser.value(CARDS)
    assert list(cards) == law.names
    for j, (name, shown) in zip(law.columns, cards.items(), strict=True):
        assert shown["shift"] == pytest.approx(np.abs(marginals[j][0] - alone[j][0]).sum() / 2, abs=1e-9)
        values = [value for _, value in shown["bars"]]
        assert sum(values) == pytest.approx(1.0, abs=1e-9)
        if j not in law.grids:
            titles = [title for title, _ in shown["bars"]]
            texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in law.categories(j)]
            found = [values[titles.index(text)] for text in texts]
            p = within(model, given, name) if name in known else list(distribution_of(model, given, name).values())
            assert_allclose(found, p, rtol=0, atol=1e-9)
        elif name not in known:
            density = distribution_of(model, given, name)
            width = float(density.cells.high[-1] - density.cells.low[0]) or 1.0
            wanted = [density.mean[0], *density.interval(0.8)[0]]
            found = [float(shown["moments"][one]) for one in ("mean", "low", "high")]
            assert_allclose(found, wanted, rtol=0, atol=1e-9 * width)


def training_rows(browser):
    return browser.value("document.getElementById('training-rows').textContent")


def test_the_page_shows_training_rows_and_standard_errors(browser, pages):
    model, path = pages["penguins"]
    known = {"species": ["Adelie"], "sex": ["male"]}
    browser.open(address_of(path, known=known))
    assert_cards(browser, model, known)
    assert training_rows(browser) == "73 training rows are like that."
    island = model.query("P(island | species = Adelie, sex = male)")["Biscoe"]
    label = browser.value(CARDS)["island"]["labels"][0]
    error = float(label.split("±")[1].split(",")[0])
    assert error == pytest.approx(100 * island.standard_error, abs=0.1)
    shown = browser.value(CARDS)["body_mass_g"]["bars"]
    title, p = shown[5]
    se = 100 * np.sqrt(p * (1 - p) / (73 + 11))
    assert float(title.split("±")[1]) == pytest.approx(se, abs=0.1)
    browser.click(".known-bar .line button")
    assert training_rows(browser) == ""
    known = {"species": ["Adelie"], "body_mass_g": [4600, None]}
    browser.open(address_of(path, known=known))
    assert_cards(browser, model, known)
    assert training_rows(browser) == "Only 7 training rows are like that; the answers lean on the model."
    browser.open(address_of(path, known={"species": ["Gentoo"], "island": ["Torgersen"]}))
    assert training_rows(browser) == "No training row is like that; the answers are the model's alone."
    assert browser.complaints == []


def test_a_model_without_rows_shows_none(browser, pages, tmp_path):
    model = without_rows(pages["penguins"][0])
    explore(model, path=tmp_path / "page.html")
    browser.open(address_of(tmp_path / "page.html", known={"sex": ["male"]}))
    assert training_rows(browser) == ""
    titles = browser.value(CARDS)["body_mass_g"]["bars"]
    assert all("±" not in title for title, _ in titles)
    assert "ten rows" not in browser.value("document.querySelector('.lead').textContent")
    assert browser.complaints == []


def test_clicks_set_and_remove_values_sets_and_ranges(browser, pages):
    model, path = pages["penguins"]
    browser.open(path.as_uri())
    assert_cards(browser, model, {})
    browser.click(f'{card("species")} button[title="Adelie"]')
    assert_cards(browser, model, {"species": ["Adelie"]})
    browser.click(f'{card("species")} button[title="Gentoo"]')
    known = {"species": ["Adelie", "Gentoo"]}
    assert_cards(browser, model, known)
    assert "species = Adelie or Gentoo" in browser.value("document.getElementById('findings').textContent")
    fields = f"document.querySelectorAll('{card('body_mass_g')} input')"
    browser.value(
        f"(({fields})[0].value = '4000', ({fields})[1].value = '5000', "
        f"({fields})[1].dispatchEvent(new Event('change')), 0)"
    )
    known["body_mass_g"] = [4000, 5000]
    assert_cards(browser, model, known)
    browser.click(f'{card("sex")} button[title="male"]')
    assert_cards(browser, model, known | {"sex": ["male"]})
    browser.wait("decodeURIComponent(location.hash).includes('\"male\"')")
    state = json.loads(browser.value("decodeURIComponent(location.hash.slice(1))"))
    assert state == {"known": known | {"sex": ["male"]}}
    browser.click(f'{card("sex")} button[title="male"]')
    browser.click(f"{card('body_mass_g')} .unknown")
    browser.click("#findings button")
    assert_cards(browser, model, {})
    browser.click(f'{card("sex")} button[title="male"]')
    browser.click(".known-bar .line button")
    assert_cards(browser, model, {})
    assert browser.complaints == []
    assert all(one.startswith(("file:", "data:", "about:")) for one in browser.requests)


def test_bars_of_a_histogram_are_ranges_by_mouse_and_keyboard(browser, pages):
    path = pages["penguins"][1]
    browser.open(path.as_uri())
    bars = f"[...document.querySelectorAll('{card('flipper_length_mm')} .histogram button')]"
    shown = browser.value(f"{bars}.map((b) => Number(b.dataset.value))")

    def known():
        browser.wait()
        hash_of = "decodeURIComponent(location.hash.slice(1))"
        browser.wait(f"{hash_of} !== '' && JSON.parse({hash_of}).known !== undefined")
        return browser.value("document.getElementById('findings').textContent")

    browser.value(f"{bars}[0].focus()")
    for _ in range(3):
        browser.key("ArrowRight")
    browser.key(" ", "Space")
    assert "flipper_length_mm from" in known()
    assert np.exp(rarity(browser)) == pytest.approx(shown[3], abs=1e-9)
    browser.click(f"{card('flipper_length_mm')} .histogram button:nth-child(6)")
    assert np.exp(rarity(browser)) == pytest.approx(sum(shown[3:6]), abs=1e-9)
    browser.click(f"{card('flipper_length_mm')} .histogram button:last-child")
    assert "flipper_length_mm ≥" in known()
    assert np.exp(rarity(browser)) == pytest.approx(sum(shown[3:]), abs=1e-9)
    browser.click(f"{card('flipper_length_mm')} .histogram button:nth-child(5)")
    assert np.exp(rarity(browser)) == pytest.approx(shown[4], abs=1e-9)
    browser.click(f"{card('flipper_length_mm')} .histogram button:nth-child(5)")
    assert rarity(browser) == pytest.approx(0.0, abs=1e-12)
    assert sum(shown) == pytest.approx(1.0, abs=1e-9)


def test_hostile_names_many_categories_and_every_kind_of_number(browser, pages):
    model, path = pages["odd"]
    known = {ODD: ["<b>", 'say "hi"'], "flag": [True], "amount": [0, 0.5], "far": [1e9 + 1.25, None]}
    browser.open(address_of(path, known=known | {"none": ["x"], "many": ["c99"], "whole": ["few"]}))
    assert_cards(browser, model, known)
    assert f'{ODD} = <b> or say "hi"' in browser.value("document.getElementById('findings').textContent")
    assert "far ≥ 1000000001.25" in browser.value("document.getElementById('findings').textContent")
    in_sight = f"[...document.querySelectorAll('{card('many')} .state')].filter((b) => b.offsetParent).length"
    assert browser.value(in_sight) == 8
    browser.click(f"{card('many')} .more")
    assert browser.value(in_sight) == 25
    assert browser.complaints == []


def test_what_is_impossible_is_said_in_words_and_taken_back(browser, pages):
    model, path = pages["penguins"]
    browser.open(path.as_uri())
    field = f"document.querySelector('{card('body_mass_g')} input')"
    browser.value(f"({field}.value = '100000', {field}.dispatchEvent(new Event('change')), 0)")
    problem = "document.querySelector('.problem').textContent"
    assert browser.value(problem) == ('No cell of "body_mass_g" can be 100000 or more; state another value or range.')
    assert browser.value("document.getElementById('rarity').textContent") == "No row is like that"
    browser.click(f"{card('body_mass_g')} .unknown")
    assert browser.value(problem) == ""
    assert_cards(browser, model, {})


def test_a_single_number_without_a_probability_is_named(browser, pages):
    model, path = pages["odd"]
    browser.open(address_of(path, known={"amount": [1.25, 1.25]}))
    assert_cards(browser, model, {"amount": 1.25})
    assert "amount has no probability" in browser.value("document.getElementById('of-density').textContent")
    browser.open(address_of(path, known={"amount": [0, 0]}))
    assert browser.value("document.getElementById('of-density').textContent") == ""


def test_a_table_of_one_column(browser, pages):
    model, path = pages["one"]
    browser.open(address_of(path, known={"amount": [1, 2]}), width=390)
    assert_cards(browser, model, {"amount": [1, 2]})
    assert "1 column" in browser.value("document.querySelector('header').textContent")
    assert browser.value("document.documentElement.scrollWidth") == 390


def test_columns_are_found_and_ordered_by_how_far_they_moved(browser, tmp_path):
    rng = np.random.default_rng(1)
    base = rng.integers(0, 4, 800)
    table = pl.DataFrame({f"v{k:02}": (base + rng.integers(0, k + 1, 800)) % 4 for k in range(15)})
    table = table.with_columns(pl.all().cast(pl.String))
    explore(po.JointModel(members=["tree"]).fit(table), path=tmp_path / "page.html")
    browser.open(address_of(tmp_path / "page.html", known={"v14": ["2"]}))
    names = (
        "[...document.querySelectorAll('.card')].filter((c) => c.offsetParent).map((c) => c.querySelector('h3').title)"
    )
    assert browser.value(names) == table.columns
    browser.click(".buttons button")
    shifts = browser.value("[...document.querySelectorAll('.card')].map((c) => Number(c.dataset.shift))")
    assert browser.value(names)[-1] == "v14"
    assert shifts[:-1] == sorted(shifts[:-1], reverse=True)
    browser.value(
        "(document.getElementById('find-column').value = 'V1', "
        "document.getElementById('find-column').dispatchEvent(new Event('input')), 0)"
    )
    assert sorted(browser.value(names)) == ["v10", "v11", "v12", "v13", "v14"]


def test_the_command_writes_the_page_of_the_library(tmp_path):
    model = po.JointModel(members=["tree"]).fit(load_penguins())
    path = tmp_path / "penguins.joint.posteriori"
    po.save(model, path)
    line = CommandLine()
    line.succeeds("explore", path, "-o", tmp_path / "page.html", "--title", "Penguins")
    page = explore(po.load(path), title="Penguins")
    assert (tmp_path / "page.html").read_text(encoding="utf-8") == page.html
    load_penguins().write_csv(tmp_path / "t.csv")
    refused = line.refused("explore", path, tmp_path / "t.csv", "-o", tmp_path / "other.html")
    assert "explore a joint model without rows" in refused
    assert "not converted to a network" in line.refused("explore", path, "--network", "-o", tmp_path / "other.html")
    for options in ({"X": load_penguins()}, {"positive": "Adelie"}):
        with pytest.raises(ValueError, match="explore a joint model without"):
            explore(model, **options)
