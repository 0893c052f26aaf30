"""What the explorer shows of other rows beside its answer: shares of the classes, typical rows, and strangeness."""

import json
import re

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.exploring import explore
from posteriori.exploring.class_counts import _MOST_NUMBERS, FEWEST_ROWS, class_counts
from posteriori.exploring.drawn_rows import rows_to_compare
from tests.exploring.browser import address_of, table_under


def text_of(browser, anchor):
    return browser.value(f"document.getElementById('{anchor}').textContent")


def opened(browser, path, row):
    browser.open(address_of(path, row=row))
    browser.wait()


def charges(n=3000, seed=0):
    """Customers whose total is the product of the months and the monthly charge, nearly."""
    rng = np.random.default_rng(seed)
    gone = rng.random(n) < 0.3
    months = np.where(gone, rng.geometric(0.08, n), 72 - rng.geometric(0.03, n) % 72)
    months = np.clip(months, 1, 72)
    monthly = np.where(rng.random(n) < 0.4, rng.normal(20, 1, n), rng.normal(np.where(gone, 80, 70), 15, n)).clip(18)
    total = months * monthly * rng.normal(1, 0.03, n)
    return pl.DataFrame({"total": total.round(2), "monthly": monthly.round(2), "months": months, "gone": gone})


# Shares of the classes ------------------------------------------------------------------------------------------


def codes_of(table, name, cuts):
    if cuts is not None:
        return np.where(table[name].is_null(), 0, np.searchsorted(cuts, table[name].to_numpy(), side="right") + 1)
    categories = sorted(table[name].drop_nulls().unique().to_list())
    return np.array([0 if cell is None else categories.index(cell) + 1 for cell in table[name]])


def assert_counts(counts, table, names, classes, target="species"):
    """Every combination of at least five rows is counted, and no other."""
    label = np.array([classes.index(one) for one in table[target]])
    for scope in counts["scopes"]:
        known = [names[j] for j in scope["columns"]]
        cuts = [None if place is None else counts["cuts"][place] for place in scope["cuts"]]
        codes = np.stack([codes_of(table, name, one) for name, one in zip(known, cuts, strict=True)], axis=1)
        expected = {}
        for row, y in zip(codes.tolist(), label, strict=True):
            if all(row):
                expected.setdefault(tuple(row), [0] * len(classes))[y] += 1
        width = len(known) + len(classes)
        lines = np.reshape(scope["cells"], (-1, width)).tolist()
        found = {tuple(line[: len(known)]): line[len(known) :] for line in lines}
        assert found == {cells: n for cells, n in expected.items() if sum(n) >= FEWEST_ROWS}


@pytest.mark.parametrize(
    ("model", "sizes"),
    [
        (po.NaiveBayes(), {1}),
        (po.TreeAugmentedNaiveBayes(), {1, 2}),
        (po.AveragedOneDependence(), {1, 2}),
        (po.KDependenceBayes(k=2), {1, 2, 3}),
        (po.GenerativeForest(n_trees=3, random_state=0), {1}),
        (po.GenerativeClassifier(members=["nb", "tan"], folds=2), {1, 2}),
    ],
)
def test_the_counts_of_a_model_are_those_of_its_training_rows(model, sizes):
    table = load_penguins()
    fitted = model.fit(table, "species")
    counts = class_counts(fitted.fitted_)
    assert {len(scope["columns"]) for scope in counts["scopes"]} == sizes
    assert all(scope["training"] for scope in counts["scopes"])
    assert_counts(counts, table, fitted.schema_.names, fitted.classes_.tolist())


def test_a_table_adds_the_pairs_that_the_model_has_not_counted():
    table = load_penguins()
    model = po.NaiveBayes().fit(table, "species")
    names = model.schema_.names
    label = np.array([model.classes_.tolist().index(one) for one in table["species"]])
    counts = class_counts(model.fitted_, table, label)
    of_table = [[names[j] for j in scope["columns"]] for scope in counts["scopes"] if not scope["training"]]
    assert of_table == [["island", "sex"]]
    assert_counts(counts, table, names, model.classes_.tolist())


@pytest.mark.parametrize("model", [po.AveragedOneDependence(), po.TreeAugmentedNaiveBayes()])
def test_columns_whose_categories_are_grouped_are_counted_alone(model):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=900)
    cells = {"many": rng.integers(300, size=900) // (1 + y), "few": rng.integers(3, size=900), "two": y ^ (y < 1)}
    table = pl.DataFrame({name: np.char.add("c", codes.astype(str)) for name, codes in cells.items()} | {"y": y})
    counts = class_counts(model.fit(table, "y").fitted_)
    assert sorted(scope["columns"] for scope in counts["scopes"]) == [[0], [1], [1, 2], [2]]
    assert_counts(counts, table, model.schema_.names, [0, 1], "y")


def test_expected_and_weighted_rows_are_not_counted():
    table = load_penguins()
    some = table.with_columns(species=pl.when(pl.int_range(pl.len()) % 3 > 0).then("species"))
    assert class_counts(po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(some, "species").fitted_) is None
    weight = np.random.default_rng(0).random(len(table))
    assert class_counts(po.NaiveBayes().fit(table, "species", sample_weight=weight).fitted_) is None


def test_the_counts_of_many_categories_stay_few():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=3000)
    table = pl.DataFrame({f"x{j}": rng.integers(40, size=3000).astype(str) for j in range(30)} | {"y": y})
    model = po.NaiveBayes().fit(table, "y")
    counts = class_counts(model.fitted_, table, y)
    assert {len(scope["columns"]) for scope in counts["scopes"]} == {1, 2}
    assert sum(len(scope["cells"]) for scope in counts["scopes"]) <= _MOST_NUMBERS


def test_the_page_shows_the_shares_of_rows_with_the_same_cells(browser, tmp_path):
    table = load_penguins()
    model = po.AveragedOneDependence().fit(table, "species")
    explore(model, path=tmp_path / "page.html")
    shares = "[...document.querySelectorAll('.answers td.rows')].map((e) => e.textContent)"
    for row in ({"island": "Dream"}, {"island": "Biscoe", "sex": "male"}):
        opened(browser, tmp_path / "page.html", row)
        same = table.filter(**row)["species"].to_list()
        words = " and ".join(f"{name} = {cell}" for name, cell in row.items())
        assert f"the {len(same)} training rows with {words}." in text_of(browser, "counted")
        expected = [f"{100 * same.count(label) / len(same):.1f} %" for label in model.classes_]
        assert browser.value(shares) == expected
    (cuts,) = (column.cuts for column in model.schema_.columns if column.name == "body_mass_g")
    opened(browser, tmp_path / "page.html", {"body_mass_g": 6000})
    heavy = (table["body_mass_g"] >= cuts[-1]).sum()
    assert re.search(rf"the {heavy} training rows with body_mass_g from \d+\.", text_of(browser, "counted"))
    rare = {"island": "Torgersen", "body_mass_g": 6000}  # no penguin
    for row in ({}, rare, {"body_mass_g": 9000}, {"island": "Dream", "sex": "male", "bill_length_mm": 45.0}):
        opened(browser, tmp_path / "page.html", row)
        assert text_of(browser, "counted") == ""
        assert not browser.value("document.querySelector('.answers td.rows').checkVisibility()")
    assert browser.complaints == []


def test_labelled_rows_are_counted_for_other_sets_of_cells(browser, tmp_path):
    table = load_penguins()
    explore(po.NaiveBayes().fit(table, "species"), table, path=tmp_path / "page.html")
    row = {"island": "Biscoe", "sex": "female", "year": 2008}
    opened(browser, tmp_path / "page.html", row)
    n = len(table.filter(**row))
    words = f"the {n} rows in this page with island = Biscoe and sex = female and year = 2008."
    assert words in text_of(browser, "counted")
    opened(browser, tmp_path / "page.html", row | {"bill_length_mm": 45.0})
    assert text_of(browser, "counted") == ""
    opened(browser, tmp_path / "page.html", {"island": "Biscoe", "sex": "female"})
    assert "rows of the table with" in text_of(browser, "counted")


def test_a_change_beyond_the_range_says_so(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=400)
    table = pl.DataFrame({"x": rng.normal(y, 1.0), "y": y})
    explore(po.NaiveBayes(priors=[0.9999, 0.0001]).fit(table, "y"), path=tmp_path / "page.html")
    opened(browser, tmp_path / "page.html", {"x": 20.0})
    (line,) = table_under(browser, "changes")
    assert "outside of the range" in line[2]
    assert "less probable than all" in line[4]


# Typical rows ---------------------------------------------------------------------------------------------------


def typical(browser, path, y):
    """Return the typical row that the page loads for a class, by its place among the classes."""
    browser.open(path.as_uri())
    browser.wait()
    browser.value(
        f"(() => {{ const e = document.getElementById('typical'); e.value = '{y}'; "
        "e.dispatchEvent(new Event('change')); })()"
    )
    browser.wait("location.hash.length > 1 && !location.hash.includes('row%22%3A%7B%7D')")
    browser.wait()
    return json.loads(browser.value("decodeURIComponent(location.hash.slice(1))"))["row"]


@pytest.mark.parametrize(
    "model",
    [
        po.TreeAugmentedNaiveBayes(),
        po.GaussianDiscriminant(),
        po.KDependenceBayes(k=2, bins=12),
        po.GenerativeClassifier(members=["nb", "kdb"], folds=2),
        po.GenerativeClassifier(
            members=[po.KDependenceBayes(k=2, bins=12), po.GenerativeForest(combine="sum", n_trees=5)], folds=2
        ),
    ],
)
def test_the_cells_of_a_typical_row_suit_each_other(browser, tmp_path, model):
    table = charges()
    explore(model.fit(table, "gone"), path=tmp_path / "page.html")
    for y in (0, 1):
        row = typical(browser, tmp_path / "page.html", y)
        assert set(row) == {"total", "monthly", "months"}
        assert 1 / 1.6 < row["total"] / (row["months"] * row["monthly"]) < 1.6
        assert row["months"] == int(row["months"])
    assert browser.complaints == []


@pytest.mark.parametrize("members", [["nb", "tan"], ["cells", "kdb"], ["aode"]])
def test_the_typical_customer_has_paid_what_the_months_cost(browser, tmp_path, shared_data, members):
    table = pl.read_csv(shared_data / "csv" / "telco_churn.csv")
    model = po.GenerativeClassifier(members=members, folds=2).fit(table, "churn")
    # Without rows the page knows the total in five bins only: the most probable number of each alone was 340 times off.
    for rows, factor in ((None, 4.0), (table, 1.5)):
        explore(model, rows, path=tmp_path / "page.html")
        for y in (0, 1):
            row = typical(browser, tmp_path / "page.html", y)
            assert 1 / factor < row["total_charges"] / (row["tenure"] * row["monthly_charges"]) < factor


def test_with_labelled_rows_the_typical_row_is_one_of_them(browser, penguins):
    model, path = penguins
    table = load_penguins()
    for y, label in enumerate(model.classes_):
        row = typical(browser, path, y)
        assert len(table.filter(species=label, **row)) >= 1


# Strangeness ----------------------------------------------------------------------------------------------------


def test_strangeness_is_the_share_of_likelier_drawn_rows(browser, penguins):
    model, path = penguins
    drawn = rows_to_compare(model.fitted_.posterior)
    names = ["bill_length_mm", "island"]
    frame = pl.DataFrame(drawn["cells"], schema=drawn["names"], orient="row", infer_schema_length=None)
    only = frame.with_columns(pl.lit(None).alias(name) for name in drawn["names"] if name not in names)
    logs = np.sort(model.score_samples(only))
    for row in ({"bill_length_mm": 41.0, "island": "Torgersen"}, {"bill_length_mm": 58.0, "island": "Torgersen"}):
        opened(browser, path, row)
        one = only.head(1).with_columns(pl.lit(cell).alias(name) for name, cell in row.items())
        share = (logs > model.score_samples(one)).mean()
        expected = f"all {len(logs)}" if share == 1 else f"{int(100 * share + 1e-9)} % of the"
        assert f"less probable than {expected} rows drawn from the model" in text_of(browser, "density")


def test_numbers_outside_of_their_range_are_named(browser, penguins):
    _, path = penguins
    mass = load_penguins()["body_mass_g"]
    opened(browser, path, {"body_mass_g": 9000})
    sentence = f"body_mass_g = 9000 is outside of the range of the training rows, {mass.min():g} to {mass.max():g}."
    assert sentence in text_of(browser, "density")
    opened(browser, path, {"body_mass_g": 5000})
    assert "outside" not in text_of(browser, "density")


def test_a_strange_change_says_so(browser, tmp_path):
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=600)
    a = rng.normal(size=600)
    table = pl.DataFrame({"a": a, "b": a + 0.05 * rng.normal(size=600) + 0.1 * y, "y": y})
    explore(po.GaussianDiscriminant().fit(table, "y"), path=tmp_path / "page.html")
    opened(browser, tmp_path / "page.html", {"a": 0.0, "b": 0.6})
    assert "less probable than all 200 rows" in text_of(browser, "density")
    for line in table_under(browser, "changes"):
        assert re.search(r"% less probable than (all )?\d+", line[4])


def test_rows_to_compare_keep_the_digits_of_large_numbers():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=200)
    table = pl.DataFrame({"x": 1e8 + rng.normal(size=200), "y": y})
    drawn = np.array(rows_to_compare(po.NaiveBayes().fit(table, "y").fitted_.posterior)["cells"], np.float64)
    assert 0.5 < drawn.std() < 2.0
