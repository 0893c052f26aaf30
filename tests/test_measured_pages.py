"""The pages of measurements are about the tables that their scripts name, and the README quotes them as they stand."""

import re
from decimal import ROUND_HALF_UP, Decimal
from pathlib import Path

import pytest

from experiments import importance
from experiments.real_tables import PAGE_TABLES, tables

ROOT = Path(__file__).parents[1]
COLUMNS = "name\tfile\ttarget\tcategorical_columns"


def block_of(page, name):
    """Return the rows of a block of a page: their cells, without headings."""
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    text = text.partition(f"<!-- {name} -->")[2].partition(f"<!-- end of {name} -->")[0]
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line.startswith("|")]
    return [row for row in rows if set(row) != {"-"}]


@pytest.mark.prose
@pytest.mark.parametrize(("page", "name"), [("pool.md", "by set"), ("dependence.md", "scores")])
def test_the_pages_have_a_row_for_each_of_their_tables(page, name):
    rows = [row[0] for row in block_of(page, name)]
    assert rows[rows.index("set") + 1 :] == list(PAGE_TABLES)


@pytest.mark.prose
def test_the_importance_page_has_rows_for_tables_and_their_mean():
    rows = [row[0] for row in block_of("guide/tasks/explain.md", "importance")]
    assert rows == ["table", *importance.TABLES.split(","), "mean"]


@pytest.fixture
def folder(tmp_path):
    """Return a folder of three tables, one of them without a target."""
    rows = "".join(f"{value},{'ab'[value % 2]}\n" for value in range(20))
    for name in ("first", "second", "third"):
        (tmp_path / f"{name}.csv").write_text(f"x,y\n{rows}")
    lines = [f"{name}\t{name}.csv\t{'' if name == 'second' else 'y'}\tnone" for name in ("first", "second", "third")]
    (tmp_path / "INDEX.tsv").write_text("\n".join([COLUMNS, *lines]) + "\n")
    return tmp_path


def test_only_the_named_tables_are_read(folder):
    assert [table.name for table in tables(folder, ["third"])] == ["third"]


def test_without_names_every_table_with_a_target_is_read(folder):
    assert [table.name for table in tables(folder, None)] == ["first", "third"]


@pytest.mark.parametrize("names", [["first", "fourth"], ["second", "fourth"]])
def test_an_absent_table_is_named(folder, names):
    with pytest.raises(ValueError, match=r"has no table .*fourth.*--all"):
        list(tables(folder, names))


def of_hidden_cells(model, share, digits=3):
    """Return the figure of a model where a share of the cells is hidden, rounded half up."""
    rows = block_of("pool.md", "hidden at prediction")
    place = rows[0].index(f"{share} of the cells hidden")
    figure = Decimal(next(row[place] for row in rows if row[0] == model))
    return str(figure.quantize(Decimal(10) ** -digits, ROUND_HALF_UP))


def price_of(model):
    """Return the CPU seconds of a fit, of which a random forest takes one."""
    text = (ROOT / "docs" / "pool.md").read_text(encoding="utf-8")
    return float(re.search(rf"in CPU seconds.* of {model} ([\d.]+)", text)[1].rstrip("."))


@pytest.mark.prose
def test_the_readme_quotes_the_figures_of_the_pages():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    section = text.partition("## Measured")[2].partition("## ")[0]
    commit, n_tables, n_rows, pool, catboost, logistic, forest, lightgbm, half, trained, price = re.search(
        r"At commit `(\w+)`, on (\d+) tables of at most (\d+) rows.* of the pool was ([\d.]+), that of CatBoost "
        r"([\d.]+), of logistic regression ([\d.]+), of a random forest ([\d.]+), and of LightGBM ([\d.]+)\..* it was "
        r"([\d.]+); that of CatBoost, .* was ([\d.]+), .* takes as much as ([\d.]+) random forests",
        section,
    ).groups()
    page = (ROOT / "docs" / "pool.md").read_text(encoding="utf-8")
    of_numbers, below, covered = re.search(
        r"At commit `(\w+)`, on twenty tables, the CRPS was ([\d.]+) % below .* ([\d.]+) % of the numbers", section
    ).groups()
    numbers = (ROOT / "docs" / "regression.md").read_text(encoding="utf-8")
    assert f"at commit `{of_numbers}`" in numbers
    assert (
        f"the CRPS is {1 - float(below) / 100:.3f} of that of the best rival of each table, and {covered} %" in numbers
    )
    assert re.findall(r"[Cc]ommit `(\w+)`", section) == [commit, of_numbers]
    assert f"at commit `{commit}`; CatBoost" in page
    assert f"{n_tables} tables of at most {n_rows} rows" in page
    assert pool == of_hidden_cells("pool", "0%", 2)
    assert catboost == of_hidden_cells("CatBoost", "0%", 2)
    assert logistic == of_hidden_cells("logistic regression", "0%", 2)
    assert lightgbm == of_hidden_cells("LightGBM", "0%", 2)
    assert forest == of_hidden_cells("random forest", "0%", 2)
    assert half == of_hidden_cells("pool", "50%", 2)
    assert trained == of_hidden_cells("CatBoost, trained with hidden cells", "50%", 2)
    assert float(price) == price_of("pool")


@pytest.mark.prose
def test_the_front_page_quotes_the_figures_of_the_pages():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    models = ("pool", "CatBoost, trained with hidden cells", "class prior")
    for word, share in (("none", "0%"), ("half", "50%")):
        shown = re.search(rf"^\| {word} \| ([\d.]+) \| ([\d.]+) \| ([\d.]+) \|$", text, re.MULTILINE).groups()
        assert list(shown) == [of_hidden_cells(model, share) for model in models]
    pool, catboost = re.search(r"as ([\d.]+) random forests, and .* as much as ([\d.]+)\. ", text).groups()
    assert (float(pool), float(catboost)) == (price_of("pool"), price_of("CatBoost, trained with hidden cells"))
    measured = {name: (ROOT / "docs" / f"{name}.md").read_text(encoding="utf-8") for name in ("regression", "joint")}
    crps, covered = re.search(r"the CRPS of posteriori is ([\d.]+) .*\s.* rows, ([\d.]+) % are within", text).groups()
    method = re.search(r"^\| posteriori \| ([\d.]+) \| [\d.]+ \| ([\d.]+) \|", measured["regression"], re.MULTILINE)
    assert (crps, Decimal(covered) / 100) == (method[1], Decimal(method[2]))
    filled = re.search(r"fill ([\d.]+) of the hidden categories rightly, and miceforest ([\d.]+)\.", text).groups()
    lines = [rf"^\| at random \| {name} \| ([\d.]+) \|" for name in ("pool", "miceforest")]
    assert filled == tuple(re.search(line, measured["joint"], re.MULTILINE)[1] for line in lines)
