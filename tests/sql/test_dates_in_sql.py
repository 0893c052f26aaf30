"""Parts of dates and of times of day in a SELECT are those that the model reads."""

import datetime

import numpy as np
import polars as pl
import pytest
import sqlglot

import posteriori as po
from tests.sql.test_to_sql import DATABASES, in_duckdb, in_sqlite, require_agreement, with_holes

RNG = np.random.default_rng(0)
N = 150
MOMENTS = pl.Series(
    [datetime.datetime(1966, 3, 5, 3, 4) + datetime.timedelta(seconds=int(s)) for s in RNG.integers(0, 4e8, N)]
)
Y = (MOMENTS.dt.month() > 6).to_numpy().astype(int) ^ (RNG.random(N) < 0.2)
TYPED = pl.DataFrame({"when": MOMENTS, "day": MOMENTS.dt.date(), "clock": MOMENTS.dt.time(), "y": Y})
ISO = TYPED.with_columns(
    MOMENTS.dt.to_string("%Y-%m-%dT%H:%M:%S").alias("when"),
    MOMENTS.dt.to_string("%Y-%m-%d").alias("day"),
    MOMENTS.dt.to_string("%H:%M:%S").alias("clock"),
)
LOCAL = TYPED.with_columns(
    MOMENTS.dt.to_string("%d.%m.%Y %H:%M").alias("when"),
    MOMENTS.dt.to_string("%d.%m.%y").alias("day"),
    MOMENTS.dt.to_string("%I:%M %p").alias("clock"),
)


def scanned(frame, tmp_path):
    frame.write_csv(tmp_path / "rows.csv")
    return po.scan(tmp_path / "rows.csv")


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.TreeAugmentedNaiveBayes()], ids=lambda one: type(one).__name__)
def test_parts_of_dates_agree_in_every_database(model, tmp_path):
    model.fit(scanned(ISO, tmp_path), "y")
    assert {"when.days", "when.weekday", "day.month", "clock.hour"} <= set(model.schema_.names)
    for database in DATABASES:
        require_agreement(model, with_holes(ISO.drop("y"), 0.2, RNG), database)


@pytest.mark.filterwarnings("ignore:.*two-digit years")
def test_dates_and_strings_in_training_format_agree_in_duckdb(tmp_path):
    late = LOCAL.with_columns(day=pl.lit("01.02.69"))  # 2069, as in training
    model = po.NaiveBayes().fit(scanned(LOCAL, tmp_path), "y")
    for rows in (LOCAL, late):
        require_agreement(model, rows.drop("y"), "duckdb")
    require_agreement(po.NaiveBayes().fit(TYPED, "y"), TYPED.drop("y"), "duckdb")


@pytest.mark.filterwarnings("ignore:.*two-digit years")
def test_sqlite_warns_of_dates_that_it_does_not_read(tmp_path):
    model = po.NaiveBayes().fit(scanned(LOCAL, tmp_path), "y")
    with pytest.warns(UserWarning, match=r"the dates of columns 'when', 'day', 'clock' were not written as 2024"):
        select = model.to_sql(dialect="sqlite")
    assert in_sqlite(select, LOCAL.drop("y").head(3))["prediction"].to_list() == [None] * 3


@pytest.mark.parametrize("cell", ["someday", "now", "2460000"])
def test_text_that_is_no_date_or_missing_mark_has_no_prediction(cell, tmp_path):
    model = po.NaiveBayes().fit(scanned(ISO, tmp_path), "y")
    rows = ISO.drop("y").head(2).with_columns(day=pl.Series([cell, "NA"]))
    for database in (in_duckdb, in_sqlite):
        found = database(model.to_sql(dialect="sqlite" if database is in_sqlite else "duckdb"), rows)
        assert found["prediction"].is_null().to_list() == [True, False]


def test_the_clock_of_a_zone_is_read_if_the_database_has_zones():
    zoned = TYPED.select("y", when=MOMENTS.dt.replace_time_zone("UTC").dt.convert_time_zone("Asia/Tokyo"))
    model = po.NaiveBayes().fit(zoned, "y")
    require_agreement(model, zoned.drop("y"), "duckdb")
    with pytest.raises(ValueError, match=r"column 'when' holds times on the clock of Asia/Tokyo"):
        model.to_sql(dialect="sqlite")


def test_durations_have_no_select():
    rows = pl.DataFrame({"wait": MOMENTS - MOMENTS.min(), "y": Y})
    with pytest.raises(ValueError, match=r"column 'wait' holds durations.*leave out the column"):
        po.NaiveBayes().fit(rows, "y").to_sql()


@pytest.mark.parametrize("dialect", ["postgres", "bigquery", "tsql", "mysql", "snowflake", "spark", "trino"])
def test_other_dialects_can_read_the_date_parts_written_for_them(dialect):
    select = po.NaiveBayes().fit(TYPED, "y").to_sql(dialect=dialect)
    assert sqlglot.parse_one(select, dialect=dialect).named_selects[-1] == "log_p_1"


def test_a_dialect_without_known_functions_of_dates_is_refused():
    with pytest.raises(ValueError, match="column 'when' holds dates, which are written for athena"):
        po.NaiveBayes().fit(TYPED, "y").to_sql(dialect="drill")
