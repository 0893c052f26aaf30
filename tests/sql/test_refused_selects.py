"""The length of a SELECT is estimated before it is written, and what has no SELECT is refused."""

import re
import sys

import duckdb
import numpy as np
import polars as pl
import pytest
import sqlglot

import posteriori as po
from posteriori.sql import dialects
from posteriori.sql import translation as sizes
from tests.sql.test_to_sql import FEATURES, PENGUINS


def test_what_has_no_select_is_refused():
    categories = FEATURES.select("island", "sex", "year")
    species = PENGUINS["species"]
    for model in (po.TreeAugmentedNaiveBayes(feature_weights="conditional"),):
        model.fit(categories, species)
        with pytest.raises(ValueError, match="has factor weights on a tree"):
            model.to_sql()
    with pytest.raises(ValueError, match=r"column 'words' is text or a block of words, which no SELECT"):
        po.NaiveBayes(columns=po.Columns(text=["words"])).fit(
            pl.DataFrame({"words": ["red hot", "hot pie"] * 4}), [0, 1] * 4
        ).to_sql()
    with pytest.raises(ValueError, match=r"infinite weight.*set alpha > 0"):
        po.NaiveBayes(distributions={"n": po.Complement(alpha=0.0), "m": po.Complement(alpha=0.0)}).fit(
            pl.DataFrame({"n": [0, 0, 1, 2], "m": [1, 2, 0, 0]}), [0, 0, 1, 1]
        ).to_sql()
    model = po.NaiveBayes().fit(categories, species)
    with pytest.raises(ValueError, match=r"dialect is 'cobol'; choose one of .*duckdb.*sqlite"):
        model.to_sql(dialect="cobol")
    for table in ("", "birds; DROP TABLE birds", "birds WHERE true", "my birds are here", "(SELECT", True):
        with pytest.raises(ValueError, match="cannot stand after FROM"):
            model.to_sql(table)
    with pytest.raises(TypeError, match=r"give a sequence of names, as \['id'\]"):
        model.to_sql(columns="id")
    with pytest.raises(ValueError, match="'id' twice"):
        model.to_sql(columns=["id", "id"])
    with pytest.raises(ValueError, match="two columns of the SELECT would be named 'prediction'"):
        model.to_sql(columns=["prediction"])


def test_mixed_types_are_refused():
    cells = np.array([[1], ["a"], [1], ["a"]], dtype=object)
    with pytest.raises(ValueError, match="column 'x0' holds numbers and strings"):
        po.NaiveBayes(columns=po.Columns(categorical_features=[0])).fit(cells, [0, 1, 0, 1]).to_sql()


LARGE = (
    po.NaiveBayes(),
    po.NaiveBayes(distributions="binned", bins=20),
    po.GaussianDiscriminant(pooling="per_class"),
    po.TreeAugmentedNaiveBayes(bins=10),
    po.TreeAugmentedNaiveBayes(bins=None),
    po.KDependenceBayes(bins=12),
    po.AveragedOneDependence(bins=8),
    po.GenerativeForest(n_trees=10),
    po.GenerativeForest(n_trees=10, combine="sum"),
)


@pytest.mark.parametrize("dialect", ["duckdb", "sqlite"])
@pytest.mark.parametrize("model", LARGE, ids=lambda model: type(model).__name__)
def test_the_length_is_estimated_before_the_select_is_written(model, dialect):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 300)
    numbers = {f"x{j}": rng.normal(size=300) + (j % 3) * y for j in range(6)}
    frame = pl.DataFrame(numbers | {f"c{j}": rng.integers(0, 10, 300).astype(str) for j in range(2)})
    used = frame.select(pl.col("^x.*$")) if isinstance(model, po.GaussianDiscriminant) else frame
    model.fit(used, y)
    estimated = sizes.estimate_length(model.model_)
    assert 0.5 < estimated / len(model.to_sql(dialect=dialect)) < 2


def test_a_too_long_select_is_refused_before_it_is_written(monkeypatch):
    pool = po.GenerativeClassifier(members=["nb", "tan", "aode"]).fit(PENGUINS, "species")
    lengths = {name: sizes.estimate_length(one.model_) for name, one in pool.members_.items()}
    monkeypatch.setattr(sizes, "MOST_CHARACTERS", sum(lengths.values()))
    pool.to_sql()
    monkeypatch.setattr(sizes, "MOST_CHARACTERS", sum(lengths.values()) - 1)
    monkeypatch.setattr("posteriori.sql.translation.SelectSteps", None)
    large = max(lengths, key=lengths.get)
    with pytest.raises(
        ValueError, match=rf"is not written: it would have about .* most of them of .*'{large}' \(.*language="
    ):
        pool.to_sql()
    monkeypatch.setattr(sizes, "MOST_CHARACTERS", 1)
    with pytest.raises(ValueError, match=r'fit with language="sql", which leaves out') as caught:
        pool.to_sql()
    assert all(name in str(caught.value) for name in lengths)


def test_tables_of_a_forest_are_joined_one_by_one_and_kept():
    """DuckDB joined the cells of all rows with the edges of all trees first: 4 GB for the roots of 690 rows."""
    model = po.GenerativeForest(n_trees=5).fit(PENGUINS, "species")
    tree = sqlglot.parse_one(model.to_sql(), dialect="duckdb")
    levels = [one for one in tree.find_all(sqlglot.exp.CTE) if re.search("level[0-9]", one.alias)]
    assert len(levels) > 2
    assert all(one.args["materialized"] for one in levels)
    assert all(len(one.this.args.get("joins") or []) == 1 for one in levels)


def test_long_tables_of_duckdb_are_few_equivalent_expressions(monkeypatch):
    rows = [(-5, 2**40, 0.1, -np.inf), (7, 1, 1 / 3, 1e-300), (0, 2, -2.5e200, 4.0)] * 50
    table = dialects.Dialect("duckdb").table_of("known", ["a", "b", "c", "d"], rows)
    monkeypatch.setattr(dialects, "_MOST_VALUES", len(rows))
    values = dialects.Dialect("duckdb").table_of("known", ["a", "b", "c", "d"], rows)
    assert len(list(sqlglot.parse_one(f"WITH {table} SELECT 1", dialect="duckdb").walk())) < 100
    database = duckdb.connect()
    found, expected = (database.execute(f"WITH {one} SELECT * FROM known").fetchall() for one in (table, values))
    assert found == expected


def test_a_wide_discriminant_is_refused_at_once():
    y = np.repeat([0, 1], 200)
    model = po.GaussianDiscriminant().fit(np.random.default_rng(0).normal(size=(400, 300)) + y[:, np.newaxis], y)
    with pytest.raises(ValueError, match=r"is not written: it would have about 830,000,000 characters"):
        model.to_sql()


def test_sqlglot_is_asked_for_where_it_is_absent(monkeypatch):
    model = po.NaiveBayes().fit(PENGUINS, "species")
    for name in [one for one in sys.modules if one == "posteriori.sql" or one.startswith("posteriori.sql.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "sqlglot", None)
    with pytest.raises(ImportError, match=r"to_sql needs sqlglot: pip install sqlglot"):
        model.to_sql()


@pytest.mark.parametrize(
    "table", ["a\nb--", "a--", "a /* b */", '"a\nb"', "a\tb", "a\0b", "(SELECT 1) a --", "(SELECT 1)\na"]
)
def test_a_table_with_a_comment_or_a_line_break_is_refused(table):
    model = po.NaiveBayes().fit(FEATURES, PENGUINS["species"])
    with pytest.raises(ValueError, match=f"table is {re.escape(repr(table))}, which cannot stand after FROM"):
        model.to_sql(table)


@pytest.mark.parametrize("table", ["a", "s.a", '"a--b"', "a AS b", "(SELECT *\nFROM a -- all\n) b", " a\n"])
def test_a_name_or_a_select_in_parentheses_stands_after_from(table):
    model = po.NaiveBayes().fit(FEATURES, PENGUINS["species"])
    assert table.strip() in model.to_sql(table)
