"""The explorer in a real browser: its numbers are those of Python, by mouse and by keyboard."""

import json
import re
from collections import Counter

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.classifiers.training_record import record_rows
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from posteriori.exploring.document import sampled_rows
from posteriori.javascript import to_javascript
from posteriori.model import log_marginal_of_codes
from posteriori.model_selection import in_words
from tests.cli.command_line import CommandLine
from tests.exploring.browser import address_of, python_posterior, shown_posterior, table_under
from tests.javascript.models import MODELS

HOSTILE = ["<script>alert(1)</script>", "</script><b>", "<!--", 'it\'s "quoted" & più', "__proto__"]


# Classifiers ----------------------------------------------------------------------------------------------------


def test_unknown_on_all_and_a_dragged_slider(browser, penguins):
    model, path = penguins
    browser.open(path.as_uri())
    assert_allclose(shown_posterior(browser), python_posterior(model, {}), atol=1e-9)
    x, y, width = browser.place("#column-1")
    browser.mouse("Pressed", x, y)
    for step in range(1, 6):
        browser.mouse("Moved", x - 0.05 * step * width, y)
    browser.mouse("Released", x - 0.25 * width, y)
    value = browser.value("Number(document.querySelector('.control:nth-child(2) input[type=number]').value)")
    name = browser.value("document.querySelector('label[for=column-1]').textContent")
    low, high = (float(getattr(load_penguins()[name], end)()) for end in ("min", "max"))
    assert low < value < (low + high) / 2
    assert_allclose(shown_posterior(browser), python_posterior(model, {name: value}), atol=1e-9)
    browser.click(".control:nth-child(2) .unknown")
    assert_allclose(shown_posterior(browser), python_posterior(model, {}), atol=1e-9)
    assert browser.complaints == []


def test_keys_alone_set_a_column_and_take_it_back(browser, penguins):
    model, path = penguins
    browser.open(path.as_uri())
    reached = False
    for _ in range(60):
        browser.key("Tab")
        reached = browser.value("document.activeElement.id === 'column-1'")
        if reached:
            break
    assert reached
    for _ in range(3):
        browser.key("ArrowRight")
    browser.wait("location.hash.includes('bill_length_mm')")
    row = json.loads(browser.value("decodeURIComponent(location.hash.slice(1))"))["row"]
    assert list(row) == ["bill_length_mm"]
    assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)
    browser.value("document.querySelector('.control:nth-child(2) .unknown').focus()")
    browser.key("Enter")
    assert_allclose(shown_posterior(browser), python_posterior(model, {}), atol=1e-9)


def test_the_nomogram_adds_up_to_the_posterior_and_its_dots_move(browser, tmp_path):
    table = load_penguins()
    model = po.NaiveBayes().fit(table, "species")
    explore(model, path=tmp_path / "page.html")
    row = {"island": "Biscoe", "bill_length_mm": 44.0}
    browser.open(address_of(tmp_path / "page.html", row=row, classes=["2", "0"]))
    browser.click("section[aria-labelledby=nomogram] summary")
    browser.wait("document.querySelector('.nomogram') !== null")

    def assert_total(row):
        gentoo, adelie = python_posterior(model, row)[[2, 0]]
        shown = browser.value("Number(document.querySelector('.nomogram .total').dataset.value)")
        assert shown == pytest.approx(gentoo / (gentoo + adelie), abs=1e-9)

    assert_total(row)
    browser.value("document.querySelector('.nomogram .dot[data-column=bill_length_mm]').focus()")
    browser.key("ArrowRight")
    moved = browser.value("Number(document.querySelector('.control:nth-child(2) input[type=number]').value)")
    assert moved > 44.0
    assert_total(row | {"bill_length_mm": moved})
    assert browser.value("document.activeElement.dataset.column") == "bill_length_mm"  # the dot keeps the focus
    x, y, _ = browser.place(".nomogram .dot[data-column=body_mass_g]")
    browser.mouse("Pressed", x + 30, y)
    browser.mouse("Moved", x + 60, y)
    browser.mouse("Released", x + 60, y)
    mass = browser.value("Number(document.querySelector('.control:nth-child(5) input[type=number]').value)")
    assert mass > 2700
    assert_total(row | {"bill_length_mm": moved, "body_mass_g": mass})
    assert browser.complaints == []


def test_a_forest_has_no_nomogram_and_its_arithmetic_mean_no_sum(browser, tmp_path):
    table = load_penguins()
    for combine, has_sum in (("geometric", True), ("arithmetic", False)):
        model = po.GenerativeForest(n_trees=5, combine=combine).fit(table, "species")
        explore(model, path=tmp_path / "page.html")
        row = {"island": "Dream", "bill_length_mm": 46.0}
        browser.open(address_of(tmp_path / "page.html", row=row))
        browser.wait()
        assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)
        assert browser.value("document.getElementById('nomogram') === null")
        assert browser.value("document.getElementById('sum') !== null") == has_sum
        assert browser.complaints == []


def test_only_sums_of_one_column_factors_have_a_nomogram(browser, penguins):
    browser.open(penguins[1].as_uri())
    assert browser.value("document.getElementById('nomogram') === null")


def test_a_link_holds_the_case_and_its_sum(browser, penguins):
    model, path = penguins
    row = {"island": "Dream", "bill_length_mm": 46.5, "sex": "male"}
    browser.open(address_of(path, row=row, classes=["1", "0"]))
    assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)
    frame = pl.DataFrame([{name: row.get(name) for name in model.schema_.given}], infer_schema_length=None)
    odds = model.explain(frame).log_odds(0, model.classes_[1], model.classes_[0])
    browser.click("section[aria-labelledby=sum] summary")
    browser.wait("document.querySelector('section[aria-labelledby=sum] table') !== null")
    lines = {name: number for name, number, _ in table_under(browser, "sum")}
    shown = float(lines["posterior"].replace("−", "-"))
    assert shown == pytest.approx(odds.total, abs=0.006)
    assert float(lines["island = Dream"].replace("−", "-")) == pytest.approx(odds.factors["island"], abs=0.006)
    browser.open(address_of(path, row={"no such column": 1, "island": "Atlantis", "bill_length_mm": "long"}))
    assert_allclose(shown_posterior(browser), python_posterior(model, {}), atol=1e-9)
    browser.open(f"{path.as_uri()}#not%json")
    assert_allclose(shown_posterior(browser), python_posterior(model, {}), atol=1e-9)


def test_the_value_of_a_question_is_its_mutual_information(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    table = pl.DataFrame({"u": (y + (rng.random(200) < 0.2)) % 2, "v": rng.integers(3, size=200), "y": y})
    table = table.with_columns(pl.col("u", "v").cast(pl.String))
    model = po.NaiveBayes().fit(table, "y")
    page = explore(model)
    page.save(tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    browser.wait()
    shown = {name: float(nats) for name, nats, _ in table_under(browser, "questions")}
    prior = model.class_prior_
    for name, column in (("u", 0), ("v", 1)):
        given = np.exp(log_marginal_of_codes(model.model_, column))  # (K, C)
        joint = given * prior
        total = joint.sum(axis=1, keepdims=True)
        information = (joint * np.log(joint / (total * prior))).sum()
        assert shown[name] == pytest.approx(information, abs=6e-5)
    assert shown["u"] > shown["v"]


def test_questions_are_worth_the_cost_that_their_answers_save(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=300)
    u, v = (y + (rng.random(300) < 0.2)) % 3, np.where(rng.random(300) < 0.3, y, rng.integers(3, size=300))
    table = pl.DataFrame({"u": u, "v": v, "y": y}).with_columns(pl.col("u", "v").cast(pl.String))
    model = po.NaiveBayes().fit(table, "y")
    explore(model, table, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    browser.value("document.getElementById('measure').value = 'cost'")
    browser.value("document.getElementById('measure').dispatchEvent(new Event('change'))")
    for slider, value in (("prevalence", 0.15), ("false-positive", 2), ("false-negative", 5)):
        browser.value(f"document.getElementById('{slider}').value = {value}")
        browser.value(f"document.getElementById('{slider}').dispatchEvent(new Event('input'))")
    browser.wait()
    shown = {name: float(cost) for name, cost, _ in table_under(browser, "questions")}
    others = model.class_prior_[1:] / model.class_prior_[1:].sum()
    prior = np.array([0.15, *(0.85 * others)])
    without = min(2 * 0.85, 5 * 0.15)
    for column, name in enumerate(("u", "v")):
        joint = np.exp(log_marginal_of_codes(model.model_, column)) * prior  # (K, C)
        decided = np.minimum(2 * joint[:, 1:].sum(axis=1), 5 * joint[:, 0])
        assert shown[name] == pytest.approx(without - decided.sum(), abs=6e-5)
    assert shown["u"] > 0.1
    assert browser.complaints == []


def test_the_smallest_change_changes_the_prediction_of_python(browser, penguins):
    model, path = penguins
    row = {"bill_length_mm": 41.0, "bill_depth_mm": 18.0, "island": "Torgersen"}
    browser.open(address_of(path, row=row))
    browser.wait()
    before = model.classes_[python_posterior(model, row).argmax()]
    changes = table_under(browser, "changes")
    assert changes
    for name, _, value, label, _ in changes:
        changed = row | {name: value if name == "island" else float(value)}
        if name != "island":  # the page shows four digits: step over the boundary by one of them
            changed[name] += 0.01 * np.sign(changed[name] - row[name])
        assert label != str(before)
        assert model.classes_[python_posterior(model, changed).argmax()] == label


def test_rows_and_decisions_are_shown_only_for_given_rows(browser, penguins, tmp_path):
    model, path = penguins
    browser.open(path.as_uri())
    browser.wait("document.querySelectorAll('section[aria-labelledby=rows] tbody tr').length > 0")
    browser.value("document.getElementById('order').value = 'wrong'")
    browser.value("document.getElementById('order').dispatchEvent(new Event('change'))")
    rows = table_under(browser, "rows")
    number = int(rows[0][0].removeprefix("row "))
    table = load_penguins()
    posterior = model.predict_proba(table)
    truth = np.array([list(model.classes_).index(label) for label in table["species"]])
    of_truth = posterior[np.arange(len(truth)), truth]
    assert of_truth[number] == pytest.approx(of_truth.min(), abs=1e-9)
    browser.click("section[aria-labelledby=rows] tbody button")
    assert_allclose(shown_posterior(browser), posterior[number], atol=1e-9)
    confusion = table_under(browser, "decisions")[:2]
    shares = np.array([[float(cell.split(" ")[0]) for cell in line[1:]] for line in confusion])
    assert shares.sum() == pytest.approx(100.0, abs=0.3)
    folds = model.out_of_fold_
    held_out = folds.posterior * model.class_prior_ / folds.prior  # decisions are by models without the row
    held_out /= held_out.sum(axis=1, keepdims=True)
    first = np.mean((held_out[:, 0] > 0.5) & (truth == 0)) * 100
    assert shares[0, 0] == pytest.approx(first, abs=0.06)
    assert "not trained on it" in browser.value(
        "document.querySelector('[aria-labelledby=decisions] .lead').textContent"
    )
    assert '"rows":{' in path.read_text(encoding="utf-8")
    assert '"rows":{' not in explore(model).html


def test_decisions_know_training_rows_from_other_rows(penguins):
    model, _ = penguins
    table = load_penguins()
    rows = sampled_rows(model, table, None, 2000)
    folds = model.out_of_fold_
    moved = folds.posterior * model.class_prior_ / folds.prior
    assert_allclose(rows["heldOut"], moved / moved.sum(axis=1, keepdims=True), atol=1e-12)
    few = sampled_rows(model, table, None, 50)
    assert few["heldOut"] == [rows["heldOut"][i] for i in few["numbers"]]
    heavier = table.with_columns(pl.col("body_mass_g") + 1)  # the same labels, other rows
    for other in (heavier, table[::-1], table[:100], table.drop("species")):
        assert sampled_rows(model, other, None, 2000)["heldOut"] is None
    alone = po.NaiveBayes().fit(table, "species")
    assert sampled_rows(alone, table, None, 2000)["heldOut"] is None
    assert sampled_rows(alone, table, None, 2000)["seen"] == 0
    record_rows(alone, table)
    assert sampled_rows(alone, table, None, 2000)["seen"] > 0.99


def test_a_click_on_a_point_of_the_scatter_loads_its_row(browser, penguins):
    model, path = penguins
    browser.open(path.as_uri())
    # The canvas is drawn when it is in view, and sections above it may still grow: scroll in each look.
    scroll = "document.querySelector('canvas').scrollIntoView({block: 'center'})"
    browser.wait(f"({scroll}, document.querySelector('canvas').dataset.drawn === 'bill_length_mm,bill_depth_mm')")
    table = load_penguins()
    row = table.filter(pl.col("bill_length_mm") == table["bill_length_mm"].max()).row(0, named=True)
    lowest, highest = (getattr(table["bill_depth_mm"], end)() for end in ("min", "max"))
    x, y, width = browser.place("canvas")
    scale = width / 420
    up = (row["bill_depth_mm"] - lowest) / (highest - lowest)
    at = x + (420 - 34 - 210) * scale, y + (210 - 34 - 352 * up) * scale
    browser.mouse("Pressed", *at)
    browser.mouse("Released", *at)
    del row["species"]
    assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)
    assert browser.complaints == []


def test_nothing_is_asked_of_any_network(browser, penguins, network, tmp_path):
    explore(network, path=tmp_path / "network.html")
    for path in (penguins[1], tmp_path / "network.html"):
        browser.open(path.as_uri())
        browser.wait()
        assert {address.split(":")[0] for address in browser.requests} <= {"file", "data", "blob"}
        assert browser.complaints == []
        refused = browser.value("fetch('https://example.org').then(() => 'sent', (error) => error.name)")
        assert refused == "TypeError"
        assert any("Content Security Policy" in text for text in browser.complaints)


def test_names_are_text_and_never_markup(browser, tmp_path):
    rng = np.random.default_rng(1)
    y = np.array(HOSTILE)[rng.integers(5, size=120)]
    cells = {name: np.array(HOSTILE)[rng.integers(5, size=120)] for name in HOSTILE[:-1]}
    table = pl.DataFrame({**cells, "__proto__": rng.normal(size=120), "y": y})
    model = po.NaiveBayes().fit(table, "y")
    explore(model, table, path=tmp_path / "page.html", title=HOSTILE[0])
    row = {HOSTILE[0]: HOSTILE[1], "__proto__": 0.5}
    browser.open(address_of(tmp_path / "page.html", row=row))
    browser.wait()
    assert browser.complaints == []
    assert browser.value("document.querySelector('h1').textContent") == HOSTILE[0]
    assert browser.value("[...document.querySelectorAll('main b')].filter((e) => e.textContent).length") == 0
    assert browser.value("[...document.querySelectorAll('.control label')].map((e) => e.textContent)") == HOSTILE
    assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)


def test_all_densities_are_drawn_before_the_page_is_printed(browser, tmp_path):
    rng = np.random.default_rng(4)
    y = rng.integers(2, size=60)
    table = pl.DataFrame({f"x{j}": rng.normal(y, 1.0) for j in range(30)} | {"y": y})
    explore(po.NaiveBayes().fit(table, "y"), path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    curves = "document.querySelectorAll('.densities polyline').length"
    assert browser.value(curves) < 60  # the others are not in view
    browser.value("window.dispatchEvent(new Event('beforeprint'))")
    assert browser.value(curves) == 60


def test_a_page_of_300_columns_is_small_and_quick(browser, tmp_path):
    rng = np.random.default_rng(2)
    y = rng.integers(2, size=150)
    table = pl.DataFrame({f"column {j}": rng.normal(y * (j % 3 == 0), 1.0) for j in range(300)} | {"y": y})
    model = po.NaiveBayes().fit(table, "y")
    page = tmp_path / "page.html"
    explore(model, path=page)
    assert page.stat().st_size < 520_000
    row = {f"column {j}": 0.5 for j in range(0, 300, 2)}
    browser.open(address_of(page, row=row), width=390, height=844)
    assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)
    assert browser.value("document.documentElement.scrollWidth") <= 390


def test_pages_of_100_columns_have_at_most_1_5_megabytes(browser, tmp_path):
    rng = np.random.default_rng(3)
    y = rng.integers(2, size=300)
    numbers = {f"n{j}": rng.normal(y * (j % 4 == 0), 1.0) for j in range(60)}
    codes = {f"c{j}": np.array(list("abcd"))[(rng.integers(3, size=300) + y * (j % 3 == 0)) % 4] for j in range(40)}
    table = pl.DataFrame({**numbers, **codes, "y": y})
    pool = po.GenerativeClassifier(members=["nb", "lda", "tan"], folds=2).fit(table, "y")
    assert len(explore(pool).html) < 1_500_000
    largest = po.AveragedOneDependence().fit(table, "y")  # a table for each pair of columns: its page is compressed
    explore(largest, path=tmp_path / "page.html")
    assert (tmp_path / "page.html").stat().st_size < 1_500_000 < len(to_javascript(largest))
    row = {"c0": "b", "n4": 0.7}
    browser.open(address_of(tmp_path / "page.html", row=row))
    assert_allclose(shown_posterior(browser), python_posterior(largest, row), atol=1e-9)
    assert browser.complaints == []


@pytest.mark.parametrize(
    "name",
    [
        "text",
        "dates",
        "mixture",
        "complement",
        "a row of probability 0",
        "rates by exposure",
        "sum of trees",
        "pool with a sum of trees",
    ],
)
def test_pages_of_every_kind_of_column(name, browser, tmp_path):
    model, rows = MODELS[name]()
    explore(model, path=tmp_path / "page.html")
    row = {key: cell for key, cell in rows[-3].items() if cell is not None and key != "when"}
    browser.open(address_of(tmp_path / "page.html", row=row))
    browser.wait()
    assert_allclose(shown_posterior(browser), python_posterior(model, row), atol=1e-9)
    assert browser.complaints == []


def test_the_dependences_of_each_model_are_listed_and_drawn(browser, penguins, tmp_path):
    table = load_penguins()
    numbers = table.select("species", "bill_length_mm", "bill_depth_mm", "body_mass_g")
    pool = penguins[0]
    tan = pool.members_["tan"]
    trees = po.classifiers.ChowLiuClassifier().fit(table, "species")
    parents = po.KDependenceBayes(k=2).fit(numbers, "species")
    of_tree = {(child, parent or "only the class") for child, parent in tan.tree_.items()}
    of_class = {(child, parent or "only the class") for child, parent in trees.tree_["Gentoo"].items()}
    of_parents = {(child, one) for child, each in parents.parents_.items() for one in each or ("only the class",)}
    for model, chosen, expected in (
        (pool, None, of_tree),
        (trees, "class Gentoo", of_class),
        (parents, None, of_parents),
    ):
        explore(model, path=tmp_path / "page.html")
        browser.open((tmp_path / "page.html").as_uri())
        if chosen is not None:
            browser.value(
                "(() => { const menu = document.getElementById('tree'); menu.selectedIndex = "
                f"[...menu.options].findIndex((one) => one.text === '{chosen}'); "
                "menu.dispatchEvent(new Event('change')); })()"
            )
        rows = table_under(browser, "dependences")
        assert {(child, parent) for child, parent, _ in rows} == expected
        arrows = browser.value(
            "[...document.querySelectorAll('svg.dependences > path')].map((p) => p.getAttribute('d'))"
        )
        assert len(arrows) == sum(parent != "only the class" for _, parent in expected)
        if model is trees:
            nats = {(parent, child): float(shown) for child, parent, shown in rows if shown != "–"}
            for edge, information in trees.edge_information_["Gentoo"].items():
                assert nats[edge] == pytest.approx(information, rel=1e-3)
        assert browser.complaints == []
    explore(po.NaiveBayes().fit(numbers, "species"), path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    assert browser.value("document.getElementById('dependences') === null")


def test_many_classes_are_ordered_and_the_last_are_folded(browser, tmp_path):
    rng = np.random.default_rng(5)
    y = rng.choice(24, size=900, p=np.arange(1, 25) / 300)
    table = pl.DataFrame({"x": rng.normal(y, 1.0), "y": [f"class {k:02}" for k in y]})
    model = po.NaiveBayes().fit(table, "y")
    explore(model, path=tmp_path / "page.html")
    shown = "[...document.querySelectorAll('.answers tbody tr')].filter((e) => !e.hidden)"
    probabilities = f"{shown}.map((e) => Number(e.cells[2].dataset.value))"
    for row in ({}, {"x": 3.0}):
        browser.open(address_of(tmp_path / "page.html", row=row), width=390)
        expected = np.sort(python_posterior(model, row))[::-1]
        assert_allclose(browser.value(probabilities), expected[:10], atol=1e-9)
        browser.click("#others")
        assert_allclose(browser.value(probabilities), expected, atol=1e-9)
        assert browser.value("document.querySelector('.answers').scrollWidth") <= 390
    assert browser.complaints == []


def test_a_page_opens_at_the_prior_with_sliders_without_handles(browser, penguins):
    browser.open(penguins[1].as_uri())
    slider = "document.querySelector('#column-1')"
    handle = f"[getComputedStyle({slider}).appearance, {slider}.getAttribute('aria-valuetext')]"
    assert browser.value(handle) == ["none", "unknown"]
    assert "the prior" in browser.value("document.getElementById('density').textContent")
    browser.open(address_of(penguins[1], row={"bill_length_mm": 45.5}))
    assert browser.value(handle) == ["auto", "45.5"]
    assert "nats" in browser.value("document.getElementById('density').textContent")


def test_a_heavy_tail_has_a_logarithmic_axis_with_exact_ends(browser, tmp_path):
    rng = np.random.default_rng(6)
    y = rng.integers(2, size=400)
    gain = np.rint(np.exp(rng.normal(2.0 + y, 1.0)))
    gain[0] = 18424.0
    usual = rng.normal(y, 1.0)
    usual[:2] = -8684.83, 8684.76
    table = pl.DataFrame({"gain": gain, "usual": usual, "y": y})
    model = po.NaiveBayes().fit(table, "y")
    explore(model, table, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri())
    ends = "[...document.querySelectorAll('.ends')].map((e) => [...e.children].map((c) => c.textContent))"
    gain_ends, usual_ends = browser.value(ends)
    assert gain_ends[1].endswith(" (log)")
    assert gain_ends[2] == "18424"
    assert [usual_ends[0], usual_ends[-1]] == ["−8684.83", "8684.76"]
    x, y, _ = browser.place("#column-0")
    browser.mouse("Pressed", x, y)
    browser.mouse("Released", x, y)
    value = browser.value("Number(document.querySelector('.control input[type=number]').value)")
    assert 0 < value < 2000  # the middle of the axis, not of the range
    assert value == int(value)
    assert_allclose(shown_posterior(browser), python_posterior(model, {"gain": value}), atol=1e-9)
    browser.key("ArrowRight")
    assert browser.value("Number(document.querySelector('.control input[type=number]').value)") > value
    assert browser.complaints == []


def test_rows_of_the_calibration_are_whole_numbers(browser, penguins):
    browser.open(penguins[1].as_uri())
    browser.wait("document.querySelector('section[aria-labelledby=\"decisions\"] tbody tr') !== null")
    browser.value(
        "(() => { const e = document.getElementById('prevalence'); e.value = 0.2; "
        "e.dispatchEvent(new Event('input')) })()"
    )
    calibration = table_under(browser, "decisions")[2:]
    assert sum(int(line[3]) for line in calibration) == len(load_penguins())


def test_the_page_begins_with_held_out_sentences_if_it_has_them(browser, penguins):
    model, path = penguins
    browser.open(path.as_uri())
    expected = " ".join(in_words.sentences(model.out_of_fold_.figures, model.classes_.tolist()))
    assert browser.value("document.getElementById('verdict').textContent") == expected
    table = load_penguins()
    alone = po.NaiveBayes().fit(table[::2], "species")
    record_rows(alone, table[::2])
    assert '"verdict":["Of 100 held-out rows' in explore(alone, table[1::2]).html
    for rows in (None, table[::2], table[1::2].drop("species")):
        assert '"verdict":[]' in explore(alone, rows).html


@pytest.mark.parametrize(("positive", "expected"), [(None, "1"), ("a", "0")])
def test_the_decisions_begin_with_the_class_of_interest(browser, tmp_path, positive, expected):
    rng = np.random.default_rng(0)
    y = np.where(rng.random(200) < 0.3, "b", "a")
    table = pl.DataFrame({"x": rng.normal(size=200) + (y == "b"), "y": y})
    explore(po.NaiveBayes().fit(table, "y"), table, path=tmp_path / "e.html", positive=positive)
    browser.open((tmp_path / "e.html").as_uri())
    browser.wait("document.getElementById('positive') !== null")
    assert browser.value("document.getElementById('positive').value") == expected
    share = (table["y"] == ("b" if positive is None else positive)).mean()
    assert float(browser.value("document.getElementById('prevalence').value")) == pytest.approx(share, abs=0.01)


def test_the_bias_of_the_class_is_explained_under_the_sum(browser, penguins):
    browser.open(address_of(penguins[1], row={"bill_length_mm": 45.5}))
    assert "bias of the class" in browser.value("document.getElementById('bias').textContent")
    browser.click(".control:nth-child(2) .unknown")
    assert browser.value("document.getElementById('bias').hidden")


@pytest.mark.parametrize("width", [390, 1280])
def test_pages_do_not_scroll_sideways(browser, penguins, network, tmp_path, width):
    explore(network, path=tmp_path / "network.html")
    for path in (penguins[1], tmp_path / "network.html"):
        browser.open(path.as_uri(), width=width, height=844)
        browser.wait()
        assert browser.value("document.documentElement.scrollWidth") <= width


def is_cut(browser, selector, name):
    """Return whether an element shows a part of a name, in one line, and has all of it as its title."""
    return browser.value(
        f"[...document.querySelectorAll({json.dumps(selector)})].filter((e) => e.title === {json.dumps(name)}).map((e) "
        "=> e.scrollWidth > e.clientWidth && getComputedStyle(e).textOverflow === 'ellipsis' && e.clientHeight < 40)"
    )


@pytest.mark.parametrize("width", [390, 1300])
def test_long_names_are_cut_and_whole_in_their_title(browser, tmp_path, width):
    rng = np.random.default_rng(7)
    name, label = (
        "the name of a column that nobody would read to its end",
        "a class with a name_of_very_many_letters " * 2,
    )
    y = rng.integers(2, size=90)
    table = pl.DataFrame({name: rng.normal(y, 1.0), "y": np.array([label, "b"])[y]})
    explore(po.NaiveBayes().fit(table, "y"), table, path=tmp_path / "page.html")
    browser.open((tmp_path / "page.html").as_uri(), width=width)
    browser.wait("document.querySelector('section[aria-labelledby=\"questions\"] tbody tr') !== null")
    for selector in (".control label", "tbody .name-cut"):
        found = is_cut(browser, selector, name)
        assert found == [True], selector
    net = po.BayesianNetwork([(name, "b")])
    net.add_cpt(name, {label: 0.2, "no": 0.8})
    net.add_cpt("b", {label: {"u": 0.9, "v": 0.1}, "no": {"u": 0.3, "v": 0.7}})
    explore(net, path=tmp_path / "network.html")
    browser.open((tmp_path / "network.html").as_uri(), width=width)
    assert (
        browser.value(
            "(() => { const e = document.querySelector('.node h3 span'); return e.scrollWidth > e.clientWidth && "
            "getComputedStyle(e).textOverflow === 'ellipsis' && e.parentNode.title; })()"
        )
        == name
    )
    assert is_cut(browser, ".soft label", label) == [True]
    assert browser.value("document.documentElement.scrollWidth") <= width


# The command ----------------------------------------------------------------------------------------------------


def test_the_command_writes_a_page(penguins, network, tmp_path):
    run = CommandLine(replaces=True)
    po.save(penguins[0], tmp_path / "penguins.posteriori")
    load_penguins().write_csv(tmp_path / "penguins.csv")
    page = tmp_path / "page.html"
    run.succeeds("explore", tmp_path / "penguins.posteriori", "-o", page)
    assert page.read_text(encoding="utf-8") == explore(po.load(tmp_path / "penguins.posteriori")).html
    run.succeeds("explore", tmp_path / "penguins.posteriori", tmp_path / "penguins.csv", "-o", page)
    assert '"labels":[' in page.read_text(encoding="utf-8")
    assert "<title>species in penguins.csv</title>" in page.read_text(encoding="utf-8")
    po.write_network(network, tmp_path / "net.bif")
    run.succeeds("explore", tmp_path / "net.bif", "-o", page)
    assert '"kind":"network"' in page.read_text(encoding="utf-8")
    run.succeeds("explore", tmp_path / "net.bif")
    assert (tmp_path / "net.html").exists()
    assert "rows are shown for classifiers" in run.refused(
        "explore", tmp_path / "net.bif", tmp_path / "penguins.csv", "-o", page
    )
    assert ".html" in run.refused("explore", tmp_path / "net.bif", "-o", tmp_path / "page.txt")


# The script -----------------------------------------------------------------------------------------------------


def test_the_modules_of_the_script_declare_no_name_twice(penguins):
    script = penguins[1].read_text(encoding="utf-8").split('<script type="module">')[1]
    names = re.findall(r"^(?:export )?(?:const|let|function|class) ([A-Za-z_$][\w$]*)", script, re.MULTILINE)
    assert len(names) > 100
    assert sorted(name for name, n in Counter(names).items() if n > 1) == []
