"""Columns that identify rows are found, ignored, and influence nothing."""

import functools
import itertools
import json
import operator
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays
from sklearn.base import clone

import posteriori as po
from posteriori.reading import infer_schema, read_table
from posteriori.reading.column_kinds import Occurrences, RowNumbers
from posteriori.tables import IgnoredColumnWarning
from tests.cli.command_line import CommandLine

N = 120
MODELS = [
    po.NaiveBayes(),
    po.NaiveBayes(missing="informative", distributions="binned"),
    po.GaussianDiscriminant(),
    po.TreeAugmentedNaiveBayes(),
    po.KDependenceBayes(),
    po.AveragedOneDependence(),
]


def _table(n=N, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.choice(["a", "b"], n)
    columns = {
        "id": np.arange(n) + 7,
        "name": [f"person {k}" for k in range(n)],
        "x": rng.normal(size=n) + (y == "a"),
        "colour": rng.choice(["red", "green", "blue"], n),
        "y": y,
    }
    return pl.DataFrame(columns)


def _ignored(model, *table):
    with pytest.warns(IgnoredColumnWarning):
        return clone(model).fit(*table)


def _quietly(function, *arguments):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", IgnoredColumnWarning)
        return function(*arguments)


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_ignored_columns_influence_nothing(model):
    table = _table()
    without = clone(model).fit(table.drop("id", "name"), "y")
    fitted = _ignored(model, table, "y")
    assert fitted.schema_.of_kind("ignored") == (0, 1)
    assert fitted.n_features_in_ == 4
    assert fitted.feature_names_in_.tolist() == ["id", "name", "x", "colour"]
    np.testing.assert_array_equal(fitted.predict_proba(table), without.predict_proba(table.drop("id", "name")))
    assert fitted.n_parameters_ == without.n_parameters_
    explanation = fitted.explain(table)  # ignored columns have no factor
    np.testing.assert_array_equal(explanation.log_factors, without.explain(table.drop("id", "name")).log_factors)
    np.testing.assert_allclose(fitted.importance_.increase[2:], without.importance_.increase)
    np.testing.assert_allclose(fitted.importance_.increase[:2], 0.0, atol=1e-12)


def test_ignored_columns_of_a_pool():
    table = _table()
    pool = po.GenerativeClassifier(members=["nb", "tan"])
    fitted, without = _ignored(pool, table, "y"), clone(pool).fit(table.drop("id", "name"), "y")
    np.testing.assert_allclose(fitted.predict_proba(table), without.predict_proba(table.drop("id", "name")))


def test_the_warning_names_columns_reasons_and_the_remedy():
    with pytest.warns(IgnoredColumnWarning, match=r"'id', 'name' are ignored \('id': it numbers .*7 to 126; .*keep="):
        po.NaiveBayes().fit(_table(), "y")


@pytest.mark.parametrize(
    ("parameters", "ignored"),
    [
        ({"columns": po.Columns(keep="all")}, ()),
        ({"columns": po.Columns(keep=["name"])}, (0,)),
        ({"columns": po.Columns(keep=["id", "name"])}, ()),
        ({"columns": po.Columns(keep=[0])}, (1,)),
        ({"columns": po.Columns(categorical_features=["id"])}, (1,)),
        ({"distributions": {"id": "poisson"}}, (1,)),
    ],
)
def test_named_columns_are_kept(parameters, ignored):
    assert _quietly(po.NaiveBayes(**parameters).fit, _table(), "y").schema_.of_kind("ignored") == ignored


def test_the_reason_names_equal_steps():
    with pytest.warns(IgnoredColumnWarning, match=r"it numbers the rows, from 3 to 360 in steps of 3\)"):
        po.NaiveBayes().fit(_table().drop("name").with_columns(id=3 + 3 * pl.int_range(N)), "y")


def test_keep_of_an_unknown_column():
    with pytest.raises(ValueError, match="keep"):
        po.NaiveBayes(columns=po.Columns(keep=["nobody"])).fit(_table(), "y")


def test_nothing_is_ignored_if_nothing_else_is_left():
    po.NaiveBayes().fit(_table().select("id", "name", "y"), "y")  # a warning would be an error


def test_few_rows_are_no_evidence():
    po.NaiveBayes().fit(_table(19), "y")
    _ignored(po.NaiveBayes(), _table(20), "y")


@pytest.mark.parametrize(
    "column",
    [
        np.sort(np.random.default_rng(0).normal(size=N)),  # sorted measurements
        np.arange(N) * 1.0,  # whole numbers as floats
        np.sort(np.random.default_rng(0).choice(100_000, N, replace=False)),  # sorted integers far apart
        [*(3 * np.arange(N - 1)).tolist(), 3 * N],  # one step is longer
        np.random.default_rng(0).permutation(N),  # ranks
        1990 + np.arange(N) // 3,  # sorted years that repeat
        [None, *range(N - 2), 3],  # out of order at the end
        [f"{k // 2}" for k in range(N)],  # every value twice
        [f"{k}" for k in range(100)] + ["none"] * 20,  # five of six values occur once
        [None] * (N - 19) + [f"{k}" for k in range(19)],  # few present cells
    ],
)
def test_what_is_no_identifier(column):
    schema = infer_schema(read_table(pl.DataFrame({"a": column, "b": [0.0, 1.0] * (N // 2)}, strict=False)), keep=())
    assert not schema.of_kind("ignored")


@pytest.mark.parametrize(
    "column",
    [
        np.arange(N)[::-1].copy(),
        [None, *range(N - 1)],
        1000 + 2 * np.arange(N),
        3 + 3 * np.arange(N),
        -7 * np.arange(N),
        pl.Series([f"{k}" for k in range(N)]).cast(pl.Categorical),
        [None] * (N - 20) + [f"{k}" for k in range(20)],
        ["twice", "twice", *(f"{k}" for k in range(N - 2))],
    ],
)
def test_what_is_an_identifier(column):
    with pytest.warns(IgnoredColumnWarning):
        schema = infer_schema(read_table(pl.DataFrame({"a": column, "b": [0.0, 1.0] * (N // 2)})), keep=())
    assert schema.of_kind("ignored") == (0,)


def test_more_categories_than_codes_are_an_identifier():
    n = 70_000
    table = pl.DataFrame({"name": [f"n{k}" for k in range(n)], "x": np.arange(n) % 7 * 1.0, "y": ["a", "b"] * (n // 2)})
    fitted = _ignored(po.NaiveBayes(), table, "y")
    assert "about" in fitted.schema_.columns[0].reason
    assert len(po.NaiveBayes(columns=po.Columns(keep="all")).fit(table, "y").schema_.columns[0].categories) == n


def _engines(table, folder):
    table.write_parquet(folder / "t.parquet")
    table.write_csv(folder / "t.csv")
    yield table.to_pandas()
    yield table.to_pandas().astype({"name": "category"})
    yield table.to_pandas().convert_dtypes()
    yield table.to_arrow()
    yield po.scan(folder / "t.parquet")
    yield po.scan(folder / "t.csv")


def test_all_tables_ignore_the_same_columns(tmp_path):
    table = _table(2500)  # more rows than the head that rules columns out
    expected = _ignored(po.NaiveBayes(), table, "y")
    for other in _engines(table, tmp_path):
        fitted = _ignored(po.NaiveBayes(), other, "y")
        assert [c.reason for c in fitted.schema_.columns] == [c.reason for c in expected.schema_.columns]
        np.testing.assert_allclose(fitted.predict_proba(other), expected.predict_proba(table), rtol=1e-9)


def test_a_database_ignores_the_same_columns(tmp_path):
    duckdb = pytest.importorskip("duckdb")
    table = _table(2500)
    connection = duckdb.connect()
    connection.register("rows_of_table", table.to_arrow())
    query = po.reading.scan_sql(connection, "SELECT * FROM rows_of_table", target="y")
    expected = _ignored(po.NaiveBayes(), table, "y")
    fitted = _ignored(po.NaiveBayes(), query)
    assert fitted.schema_.of_kind("ignored") == (0, 1)
    np.testing.assert_allclose(fitted.predict_proba(query), expected.predict_proba(table), rtol=1e-9)
    scored = connection.sql(expected.to_sql("rows_of_table")).pl()
    np.testing.assert_allclose(scored["p_a"], expected.predict_proba(table)[:, 0], rtol=1e-9)


def test_partitions_ignore_the_same_columns():
    dd = pytest.importorskip("dask.dataframe")
    table = _table(2500)
    partitioned = dd.from_pandas(table.to_pandas(), npartitions=3)
    for rows, parts in (
        (table, partitioned),
        (table.filter(pl.col("id") > 1500), partitioned[partitioned["id"] > 1500]),  # the first partition is empty
    ):
        expected, fitted = _ignored(po.NaiveBayes(), rows, "y"), _ignored(po.NaiveBayes(), parts, "y")
        assert [c.reason for c in fitted.schema_.columns] == [c.reason for c in expected.schema_.columns]


def test_an_array_of_objects():
    table = _table().to_pandas()
    fitted = _ignored(po.NaiveBayes(), table.drop(columns="y").to_numpy(), table["y"])
    assert fitted.schema_.of_kind("ignored") == (0, 1)


def test_partial_fit_unlearn_and_merge_keep_what_was_decided():
    table = _table(400)
    whole = _ignored(po.NaiveBayes(), table, "y")
    parts = [table[:200], table[200:]]
    grown = _quietly(po.NaiveBayes().partial_fit, parts[0], "y")
    grown.partial_fit(parts[1], "y")  # does not read the columns again, so it does not warn
    np.testing.assert_allclose(grown.predict_proba(table), whole.predict_proba(table))
    first, second = (_ignored(po.NaiveBayes(), part, "y") for part in parts)
    np.testing.assert_allclose(po.merge([first, second]).predict_proba(table), whole.predict_proba(table))
    grown.unlearn(parts[1], "y")
    np.testing.assert_allclose(grown.predict_proba(table), first.predict_proba(table))


def test_merge_names_a_column_that_one_model_ignores():
    small, large = po.NaiveBayes().fit(_table(10), "y"), _ignored(po.NaiveBayes(), _table(), "y")
    for models in ([small, large], [large, small]):
        with pytest.raises(
            ValueError, match=r"'id' is ignored in model ., because it numbers the rows, .* name it in keep"
        ):
            po.merge(models)


def test_save_and_load(tmp_path):
    fitted = _ignored(po.NaiveBayes(), _table(), "y")
    po.save(fitted, tmp_path / "m.posteriori")
    loaded = po.load(tmp_path / "m.posteriori")
    assert loaded.schema_ == fitted.schema_
    np.testing.assert_array_equal(loaded.predict_proba(_table()), fitted.predict_proba(_table()))


@pytest.mark.parametrize("convert", [pl.DataFrame.clone, pl.DataFrame.to_pandas, pl.DataFrame.to_arrow])
def test_drawn_cells_of_ignored_columns_are_missing(convert):
    table = convert(_table())
    fitted = _ignored(po.NaiveBayes(), table, "y")
    drawn, _ = fitted.sample(5, random_state=0)
    frame = pl.DataFrame(drawn)
    assert frame.columns == ["id", "name", "x", "colour"]
    assert frame["name"].null_count() == 5
    assert frame["id"].cast(pl.Float64).fill_nan(None).null_count() == 5
    assert fitted.predict_proba(drawn).shape == (5, 2)


def test_a_network_and_a_tree_are_of_the_other_columns():
    table = _table().drop("x").with_columns(shade=pl.Series(["dark", "light"] * (N // 2)))
    fitted = _ignored(po.TreeAugmentedNaiveBayes(), table, "y")
    assert set(fitted.tree_) == {"colour", "shade"}
    assert set(fitted.to_network().variables) == {"y", "colour", "shade"}
    mixture = _ignored(po.MixtureModel(2, random_state=0), _table().drop("y"))
    assert mixture.schema_.of_kind("ignored") == (0, 1)


def test_comparisons_leave_the_same_columns_out():
    table = _table()
    found = _quietly(po.cross_validate, ["nb", "logistic"], table, "y")
    without = po.cross_validate(["nb", "logistic"], table.drop("id", "name"), "y")
    for title, posterior in without.posteriors.items():
        np.testing.assert_allclose(found.posteriors[title], posterior)
    kept = po.cross_validate(["nb"], table, "y", keep="all")
    assert not np.allclose(kept.posteriors["naive Bayes"], without.posteriors["naive Bayes"])


@given(cells=arrays.arrays(np.int64, st.integers(0, 60), elements=st.integers(0, 40)), cut=st.integers(0, 60))
def test_occurrences_add_up(cells, cut):
    hashes = (cells.astype(np.uint64) * np.uint64(0x9E3779B97F4A7C15)).astype(np.uint64)
    whole, parts = Occurrences.of(hashes), Occurrences.of(hashes[:cut]) + Occurrences.of(hashes[cut:])
    np.testing.assert_array_equal(whole.hashes, parts.hashes)
    np.testing.assert_array_equal(whole.counts, parts.counts)
    once = sum(1 for cell in cells.tolist() if cells.tolist().count(cell) == 1)
    assert whole.unseen_share == once / max(1, len(cells))


@given(
    numbers=st.lists(st.integers(-30, 30), max_size=30)
    | st.permutations(range(4))
    | st.builds(range, st.integers(-9, 9), st.integers(10, 30), st.integers(1, 4)).map(list),
    cuts=st.lists(st.integers(0, 30)),
)
def test_row_numbers_add_up(numbers, cuts):
    whole = RowNumbers.of(np.array(numbers, np.int64))
    places = [0, *sorted(min(cut, len(numbers)) for cut in cuts), len(numbers)]
    parts = [RowNumbers.of(np.array(numbers[a:b], np.int64)) for a, b in itertools.pairwise(places)]
    assert functools.reduce(operator.add, parts) == whole
    if len(numbers) > 1:
        ascending = all(a < b for a, b in itertools.pairwise(numbers))
        assert (whole.direction == 1) == ascending
        steps = {b - a for a, b in itertools.pairwise(numbers)}
        assert whole.step == (steps.pop() if len(steps) == 1 else 0)


def test_a_random_subset_estimates_the_share_of_unseen_values():
    rng = np.random.default_rng(0)
    values = rng.integers(0, 200_000, 300_000).astype(np.uint64)
    hashes = pl.Series(values).hash().to_numpy()
    found = Occurrences.of(hashes)
    counts = np.unique(values, return_counts=True)[1]
    assert found.level > 0
    assert len(found.hashes) <= 1 << 16
    assert abs(found.unseen_share - (counts == 1).sum() / len(values)) < 0.01


def test_good_turing_estimates_the_chance_of_an_unseen_value():
    """The mean of N₁ / n over samples equals p(the last of n cells is unseen among the others), by brute force."""
    rng = np.random.default_rng(0)
    samples = rng.choice(50, (4000, 40), p=np.arange(1, 51) / 1275)
    share = [Occurrences.of(one.astype(np.uint64)).unseen_share for one in samples]
    unseen = [one[-1] not in one[:-1] for one in samples]
    assert abs(np.mean(share) - np.mean(unseen)) < 4 * np.std(unseen) / np.sqrt(len(samples))


def test_figures_refuse_an_ignored_column():
    from posteriori.plotting.reading import Feature

    with pytest.raises(ValueError, match="'id' is ignored: it numbers the rows"):
        Feature.of(_ignored(po.NaiveBayes(), _table(), "y"), "id")


def test_the_report_states_why_columns_are_ignored(tmp_path):
    fitted = _ignored(po.NaiveBayes(), _table(), "y")
    report = _quietly(po.report, fitted, _table(), "y")
    report.save(tmp_path / "report.html")
    page = (tmp_path / "report.html").read_text()
    assert "it numbers the rows, from 7 to 126" in page
    assert "its values hardly repeat" in page


def test_the_command_line_states_why_columns_are_ignored(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    _table().write_csv("t.csv")
    line = CommandLine(model="nb", replaces=True)
    page = " ".join(line.succeeds("fit", "t.csv", "--target", "y").split())
    assert "hint: column 'id' is ignored: it numbers the rows, from 7 to 126; to use it, add --column id=keep" in page
    assert "hint: column 'name' is ignored: its values hardly repeat" in page
    assert "id is ignored: it numbers the rows" in line.succeeds("show", "t.posteriori")
    line.succeeds("predict", "t.posteriori", "t.csv", "--output", "p.csv")
    facts = json.loads(line.succeeds("fit", "t.csv", "--target", "y", "--column", "name=keep", "--json"))
    assert [column["kind"] for column in facts["columns"]] == ["ignored", "categorical", "continuous", "categorical"]
    line.succeeds("fit", "t.csv", "--target", "y", "--column", "all=keep")
    assert po.load("t.posteriori").schema_.of_kind("ignored") == ()
    assert "nobody" in line.refused("fit", "t.csv", "--target", "y", "--column", "nobody=keep")
    code, _, err = line.run("cv", "t.csv", "--target", "y", "--models", "nb")
    assert code == 0
    assert "'id', 'name' are ignored" in err
    code, _, err = line.run("cv", "t.csv", "--target", "y", "--models", "nb", "--column", "id,name=keep")
    assert (code, err) == (0, "")
    line.succeeds("cluster", "t.csv", "-k", "2", "--ignore", "y", "--column", "all=keep")
    line.succeeds("compare", "t.csv", "--target", "y", "--models", "nb", "--repeats", "1", "--column", "id=keep")
