"""The pages of measurements are about the tables that their scripts name, and the README quotes them as they stand."""

import re
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


def mean_log_loss(page, block, model):
    rows = block_of(page, block)
    place = rows[0].index("mean log-loss")
    return pytest.approx(float(next(row[place] for row in rows if row[0] == model)), abs=0.0055)  # rounded twice


@pytest.mark.prose
def test_the_readme_quotes_the_figures_of_the_pages():
    text = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())
    pool, catboost, boosting, forest, logistic = re.search(
        r"mean log-loss of the pool is ([\d.]+), that of CatBoost ([\d.]+), of histogram boosting ([\d.]+), of a "
        r"random forest and of LightGBM ([\d.]+), and of logistic regression ([\d.]+),",
        text,
    ).groups()
    assert float(pool) == mean_log_loss("pool.md", "rivals", "pool")
    assert float(catboost) == mean_log_loss("pool.md", "rivals", "CatBoost")
    assert float(boosting) == mean_log_loss("pool.md", "rivals", "histogram boosting, early stopping")
    assert float(forest) == mean_log_loss("pool.md", "rivals", "random forest, 200 trees")
    assert float(forest) == mean_log_loss("pool.md", "rivals", "LightGBM")
    assert float(logistic) == mean_log_loss("pool.md", "rivals", "logistic regression")
