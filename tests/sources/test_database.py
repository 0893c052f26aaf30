"""Queries of DuckDB: sums in the database are those of streaming, and what may be wrong with a query."""

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given

import posteriori as po
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.cut_points import binned_schema
from posteriori.learning.fit import Collect
from posteriori.model import bins_of
from posteriori.reading import infer_schema, read_table
from posteriori.sources import source_of
from posteriori.sources.database import DatabaseSource
from posteriori.sources.table_source import TableSource
from posteriori.statistics import Counts, JointCounts, Moments, Pairs, TailMoments

duckdb = pytest.importorskip("duckdb", reason="duckdb is not installed")
pytest.importorskip("sqlglot", reason="sqlglot is not installed")


@pytest.fixture(scope="module")
def frame(mixed_frame):
    return mixed_frame


def database_of(frame):
    database = duckdb.connect()
    database.register("arrived", frame.to_arrow())
    database.execute("CREATE TABLE plants AS SELECT * FROM arrived")
    return database


@pytest.fixture
def database(frame):
    return database_of(frame)


def agree(model, other, rows):
    np.testing.assert_allclose(model.predict_log_proba(rows), other.predict_log_proba(rows), rtol=1e-9, atol=1e-11)


# Sums in the database ------------------------------------------------------------------------------------------------


def sums_of(estimator, rows):
    """Return the statistics that an estimator needs: as the database adds them up, and streamed."""
    from posteriori.sources.database import QuerySums

    source = read_first_rows(estimator.recipe, rows, "y").source
    blocks = estimator._blocks(source.schema)
    source = source.with_schema(binned_schema(source, bins_of(blocks)))
    found = QuerySums(source.table, source.schema, source.positions, source.labels, source.classes).of(blocks)
    return found, TableSource(source.reader, source.labelling).reduce(Collect(blocks))


def assert_same_sums(found, expected):
    assert type(found) is type(expected)
    match expected:
        case Counts():
            np.testing.assert_array_equal(found.table, expected.table)
        case JointCounts():
            assert found.scopes == expected.scopes
            for scope in expected.scopes:
                np.testing.assert_array_equal(found.table(scope), expected.table(scope))
        case Moments():
            np.testing.assert_array_equal(found.weight, expected.weight)
            seen = expected.weight > 0
            mean, other = (one.shift + one.offset for one in (found, expected))
            np.testing.assert_allclose(mean[seen], other[seen], rtol=1e-12, atol=1e-12)
            np.testing.assert_allclose(found.scatter, expected.scatter, rtol=1e-9, atol=1e-9)
        case TailMoments():
            assert found.cuts == expected.cuts
            assert_same_sums(found.excess, expected.excess)
        case Pairs():
            assert_same_sums(found.codes, expected.codes)
            assert_same_sums(found.numbers, expected.numbers)
        case _:
            raise AssertionError(type(expected))


SUMMED = {
    "Counts, Moments": po.NaiveBayes(),
    "TailMoments": po.NaiveBayes(distributions={"a": po.Binned(3), "b": po.Binned(2)}),
    "Pairs": po.TreeAugmentedNaiveBayes(bins=3),
    "CountTogether": po.AveragedOneDependence(bins=3),
}
CELLS = {
    "a": st.one_of(st.none(), st.just(float("nan")), st.integers(-9, 9).map(lambda k: 1e9 + k / 4)),
    "b": st.one_of(st.none(), st.integers(-50, 50)),
    "s": st.sampled_from([None, "it's", 'a "b"', "", "ä"]),
    "t": st.sampled_from([None, True, False]),
    "y": st.sampled_from(["o'k", "no", ""]),
}


@pytest.mark.parametrize("estimator", SUMMED.values(), ids=SUMMED)
@given(cells=st.lists(st.tuples(*CELLS.values()), min_size=4, max_size=30))
@pytest.mark.filterwarnings("ignore::UserWarning")  # of columns that few rows leave empty
def test_sums_in_the_database_are_those_of_streaming(estimator, cells):
    types = {"a": pl.Float64, "b": pl.Int64, "s": pl.String, "t": pl.Boolean, "y": pl.String}
    rows = po.reading.scan_sql(database_of(pl.DataFrame(cells, schema=types, orient="row")), "plants")
    found, streamed = sums_of(estimator, rows)
    np.testing.assert_array_equal(found.weight, streamed.weight)
    for one, other in zip(found.blocks, streamed.blocks, strict=True):
        assert_same_sums(one, other)


def test_far_from_zero_nothing_is_lost():
    rng = np.random.default_rng(0)
    far = pl.DataFrame({"a": 1e9 + rng.normal(size=3000), "y": rng.integers(0, 2, 3000)})
    model, other = (po.NaiveBayes().fit(one, "y") for one in (po.reading.scan_sql(database_of(far), "plants"), far))
    np.testing.assert_allclose(model.var_, other.var_, rtol=1e-9)
    np.testing.assert_allclose(model.var_, 1.0, rtol=0.1)


@pytest.mark.parametrize("dtype", [pl.Int8, pl.UInt64, pl.Float32, pl.Boolean, pl.String, pl.Decimal(9, 2)])
def test_labels_may_be_of_any_type(frame, dtype):
    coded = frame.select("height", "width", "sky", y=pl.col("rooms").clip(0, 1).cast(dtype, strict=False))
    rows = po.reading.scan_sql(database_of(coded), "plants", target="y")
    model, other = po.NaiveBayes().fit(rows), po.NaiveBayes().fit(coded, "y")
    agree(model, other, coded)
    assert model.classes_.tolist() == other.classes_.tolist()
    assert sums_of(po.NaiveBayes(), rows)[0] is not None


@pytest.mark.parametrize("sql", ["DECIMAL(18, 4)", "FLOAT", "HUGEINT", "USMALLINT", "DOUBLE"])
def test_numbers_may_be_of_any_type(frame, sql):
    rows = po.reading.scan_sql(
        database_of(frame), f"SELECT CAST(width - 999900 AS {sql}) AS a, rooms::{sql} AS b, y FROM plants"
    )
    here = pl.concat([part.frame for part in rows.parts([slice(0, rows.n_rows)], range(3))])
    model, other = po.NaiveBayes().fit(rows, "y"), po.NaiveBayes().fit(here, "y")
    np.testing.assert_allclose(model.theta_, other.theta_, rtol=1e-9)
    np.testing.assert_allclose(model.var_, other.var_, rtol=1e-6 if sql == "FLOAT" else 1e-9)
    binned = [po.NaiveBayes(distributions={"a": po.Binned(8)}).fit(one, "y") for one in (rows, here)]
    agree(*binned, here)


def test_enumerations_are_strings(database, frame):
    database.execute("CREATE TYPE skies AS ENUM ('storm', 'rain', 'never', 'fog', 'clouds', 'clear')")
    rows = po.reading.scan_sql(database, "SELECT height, CAST(sky AS skies) AS sky, y FROM plants", target="y")
    few = frame.select("height", "sky", "y")
    agree(po.NaiveBayes().fit(rows), po.NaiveBayes().fit(few, "y"), few)


def test_numbers_may_be_categories(database, frame):
    rows = po.reading.scan_sql(database, "plants", target="y", categorical=["rooms"])
    agree(
        po.NaiveBayes().fit(rows),
        po.NaiveBayes(columns=po.Columns(categorical_features=["rooms"])).fit(frame, "y"),
        frame,
    )


def test_null_and_nan_are_missing_alike():
    rows = pl.DataFrame({"a": [1.0, float("nan"), None, 2.0, 7.0, 8.0], "y": [0, 0, 0, 0, 1, 1]})
    query = po.reading.scan_sql(database_of(rows), "plants", target="y")
    np.testing.assert_allclose(po.NaiveBayes().fit(query).theta_, [[1.5], [7.5]])
    coded = po.reading.scan_sql(database_of(rows), "plants", target="y", categorical=["a"])
    assert po.NaiveBayes().fit(coded).model_.schema.columns[0].categories == (1.0, 2.0, 7.0, 8.0)


# Labels that miss, or are apart --------------------------------------------------------------------------------------


def test_missing_labels_teach_where_they_may(frame):
    hidden = frame.with_columns(pl.when(pl.int_range(pl.len()) % 3 == 0).then(None).otherwise(pl.col("y")).alias("y"))
    rows = po.reading.scan_sql(database_of(hidden), "plants", target="y")
    agree(
        *(
            po.NaiveBayes(labels=po.Labels(unlabelled="learn"), em=po.EM(max_iter=3, tol=1.0)).fit(one, "y")
            for one in (rows, hidden)
        ),
        frame,
    )


def test_labels_and_weights_may_be_apart(database, frame):
    rows = po.reading.scan_sql(database, "SELECT * EXCLUDE (y) FROM plants")
    weight = np.arange(1.0, 1.0 + frame.height)
    for y in (frame["y"], frame["y"].to_numpy()):
        agree(*(po.NaiveBayes().fit(one, y, weight) for one in (rows, frame.drop("y"))), frame.drop("y"))


# Queries -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "SELECT height, sky, y FROM plants JOIN names USING (y)",
        "SELECT avg(height) AS height, sky, y FROM plants GROUP BY sky, y, rooms",
        "SELECT height, sky, y FROM plants WHERE random() < 0.5",
        "SELECT height, sky, y FROM plants ORDER BY width LIMIT 3000",
        "WITH few AS (SELECT * FROM plants) SELECT height, sky, y FROM few;",
        "(SELECT height, sky, y FROM plants) UNION ALL (SELECT height, sky, y FROM plants)",
        "FROM plants SELECT height, sky, y",
    ],
)
def test_rows_of_a_query_are_the_same_in_every_pass(database, query):
    database.execute("CREATE TABLE names AS SELECT DISTINCT y FROM plants")
    rows = po.reading.scan_sql(database, query, target="y")
    first, second = (next(rows.parts([slice(0, rows.n_rows)], [0, 1, 2])).frame for _ in range(2))
    assert first.equals(second)
    agree(po.NaiveBayes().fit(rows), po.NaiveBayes().fit(first, "y"), first)


def test_what_one_connection_alone_knows_is_kept(database, frame):
    database.register("registered", frame.to_arrow())
    database.execute("CREATE TEMP TABLE temporary AS SELECT * FROM plants")
    for query in ("registered", "SELECT * FROM temporary"):
        rows = po.reading.scan_sql(database, query, target="y")
        agree(po.NaiveBayes().fit(rows), po.NaiveBayes().fit(frame, "y"), frame)


def test_a_database_is_opened_for_reading(frame, tmp_path, monkeypatch):
    path = tmp_path / "it's.db"
    with duckdb.connect(str(path)) as database:
        database.register("arrived", frame.to_arrow())
        database.execute('CREATE SCHEMA "a.b"; CREATE TABLE "a.b".t AS SELECT * FROM arrived')
        database.execute("CREATE TABLE plants AS SELECT * FROM arrived")
    before = path.read_bytes()
    rows = po.reading.scan_sql(f"duckdb:///{path}", "SELECT * FROM plants", target="y")
    again = po.reading.scan_sql(
        f"duckdb:///{path}", 'SELECT y, avg(width) AS w FROM "a.b".t GROUP BY y, rooms', target="y"
    )
    agree(po.NaiveBayes().fit(rows), po.NaiveBayes().fit(frame, "y"), frame)
    po.NaiveBayes().fit(again)
    assert "5,000 rows × 7 columns" in repr(rows)
    monkeypatch.chdir(tmp_path)
    assert po.reading.scan_sql("duckdb:///it's.db", "plants").n_rows == 5000
    assert path.read_bytes() == before
    assert [one.name for one in tmp_path.iterdir()] == ["it's.db"]


def test_files_can_be_queried(frame, tmp_path):
    frame.write_parquet(tmp_path / "a.parquet")
    rows = po.reading.scan_sql("duckdb://", f"SELECT * FROM read_parquet('{tmp_path}/a.parquet')", target="y")
    agree(po.NaiveBayes().fit(rows), po.NaiveBayes().fit(frame, "y"), frame)


def test_columns_may_be_called_anything(frame):
    names = {"height": "a.b", "sky": 'c "d"', "roof": "e's", "y": "the label"}
    renamed = frame.select(*names).rename(names)
    rows = po.reading.scan_sql(database_of(renamed), "plants", target="the label")
    for estimator in (po.NaiveBayes, po.TreeAugmentedNaiveBayes):
        agree(estimator().fit(rows), estimator().fit(renamed, "the label"), renamed)


# Faults --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.inf, -np.inf])
@pytest.mark.parametrize("estimator", [po.NaiveBayes(), po.NaiveBayes(distributions={"width": po.Binned(4)})], ids=str)
@pytest.mark.parametrize("row", [0, 4321])
def test_infinite_cells_are_told_of_with_their_row(frame, value, estimator, row):
    from sklearn.base import clone

    infinite = frame.with_columns(
        pl.when(pl.int_range(pl.len()) == row).then(value).otherwise(pl.col("width")).alias("width")
    )
    with pytest.raises(ValueError, match=f"'width' holds -?inf in row {row}"):
        clone(estimator).fit(po.reading.scan_sql(database_of(infinite), "plants"), "y")


def test_squares_that_overflow_are_told_of():
    large = pl.DataFrame({"a": [1e200, -1e200, 3e200, 0.0], "y": [0, 0, 1, 1]})
    with pytest.raises(ValueError, match="the square of a value in column 'a' overflows; rescale the column"):
        po.NaiveBayes().fit(po.reading.scan_sql(database_of(large), "plants"), "y")


def test_sums_that_are_out_of_range_are_left_to_streaming(database, monkeypatch):
    """DuckDB before version 2 answers a variance that overflows with an error."""
    from posteriori.reading.database import OutOfRangeError, Query

    ask = Query.ask

    def ask_older(query, columns, *rest, **options):
        if any("var_pop" in column for column in columns):
            raise OutOfRangeError("VARPOP is out of range!")
        return ask(query, columns, *rest, **options)

    monkeypatch.setattr(Query, "ask", ask_older)
    found, expected = sums_of(po.NaiveBayes(), po.reading.scan_sql(database, "SELECT height, width, y FROM plants"))
    assert found is None
    assert expected.weight.sum() == 5000


def test_what_is_wrong_with_a_query_is_one_sentence(database, tmp_path):
    with pytest.raises(ValueError, match=r"the query fails: .*nope") as error:
        po.reading.scan_sql(database, "SELECT nope FROM plants")
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match=r"the query fails: Parser Error"):
        po.reading.scan_sql(database, "SELEC * FROM plants")
    with pytest.raises(ValueError, match=r"the query fails: .*nowhere"):
        po.reading.scan_sql(database, "nowhere")
    with pytest.raises(ValueError, match="the query lacks column 'z'; it has columns 'height'"):
        po.reading.scan_sql(database, "plants", target="z")
    with pytest.raises(ValueError, match="is no url of a DuckDB database"):
        po.reading.scan_sql("sqlite:///a.db", "plants")
    with pytest.raises(FileNotFoundError, match=r"there is no database 'absent\.db'"):
        po.reading.scan_sql("duckdb:///absent.db", "plants")
    (tmp_path / "text.db").write_text("no database at all, but some text that is long enough to be read")
    with pytest.raises(ValueError, match="cannot open"):
        po.reading.scan_sql(f"duckdb:///{tmp_path}/text.db", "plants")
    with pytest.raises(ValueError, match="0 sample"):
        po.NaiveBayes().fit(po.reading.scan_sql(database, "SELECT * FROM plants WHERE false"), "y")
    with pytest.raises(ValueError, match="y names 'roof' but the target of the scan is 'y'"):
        po.NaiveBayes().fit(po.reading.scan_sql(database, "plants", target="y"), "roof")


def test_a_cell_that_cannot_be_computed_is_told_of(database):
    rows = po.reading.scan_sql(database, "SELECT height, CAST(sky AS DOUBLE) AS sky, y FROM plants", target="y")
    with pytest.raises(ValueError, match=r"the query fails: .*clouds|the query fails: .*rain"):
        po.NaiveBayes().fit(rows)


def test_columns_of_one_name_are_refused(database):
    with pytest.raises(ValueError, match="column 'height' occurs twice; rename or drop one"):
        po.reading.scan_sql(database, "SELECT height, width AS height, y FROM plants")


def test_a_database_that_has_changed_is_told_of(database):
    rows = po.reading.scan_sql(database, "plants", target="y")
    model = po.NaiveBayes().fit(rows)
    database.execute("DELETE FROM plants WHERE height > 1")
    with pytest.raises(ValueError, match="the rows of the query are no longer the 5,000 that were counted; scan it"):
        model.predict(rows)
    with pytest.raises(ValueError, match="the rows of the query are no longer the 5,000 that were counted; scan it"):
        po.NaiveBayes().fit(rows)
    database.execute("DROP TABLE plants")
    with pytest.raises(ValueError, match=r"the query fails: .*plants"):
        model.predict(rows)
    database.close()
    with pytest.raises(ValueError, match=r"the query fails: .*[Cc]onnection"):
        model.predict(rows)


def test_categories_may_need_codes_of_32_bits(database):
    rows = po.reading.scan_sql(database, "SELECT 'id' || i AS id, i % 2 AS y FROM range(70000) AS r(i)", target="y")
    assert len(po.NaiveBayes().fit(rows).schema_.columns[0].categories) == 70_000


def test_a_local_database_source_reads_rows_in_this_process():
    table = read_table(po.reading.scan_sql(database_of(pl.DataFrame({"height": [1.0, 2.0, 4.0]})), "plants"))
    schema = infer_schema(table)
    there, here = (source_of(table, schema, [0], local=local) for local in (False, True))
    assert (type(there), type(here)) == (DatabaseSource, TableSource)
    assert here.reduce(lambda batch: batch.numbers.values.sum()) == 7.0
