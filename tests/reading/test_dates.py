"""Dates, times of day and durations are read as parts: the same from every container, and what Python says they are."""

import datetime
import json
import math
import pickle
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import posteriori as po
from posteriori.reading import infer_schema, read_table
from posteriori.reading.written_times import type_of_strings
from posteriori.tables import IgnoredColumnWarning
from posteriori.tables.times import WEEKDAYS, TimesSeen, TimeType
from tests.cli.command_line import CommandLine

N = 90
MOMENTS = [
    datetime.datetime(2022, 11, 3) + datetime.timedelta(minutes=int(k))
    for k in np.random.default_rng(5).integers(0, 500 * 1440, N)
]
X = np.random.default_rng(6).normal(size=N)
Y = np.where(np.random.default_rng(7).random(N) < 0.4, "a", "b")
MODELS = [
    po.NaiveBayes(),
    po.NaiveBayes(missing="informative", distributions="binned"),
    po.GaussianDiscriminant(),
    po.TreeAugmentedNaiveBayes(),
    po.KDependenceBayes(),
]


def pandas_of(when):
    return pd.DataFrame({"when": when, "x": X})


CONTAINERS = {
    "polars": lambda: pl.DataFrame({"when": MOMENTS, "x": X}),
    "polars ns": lambda: pl.DataFrame({"when": pl.Series(MOMENTS).cast(pl.Datetime("ns")), "x": X}),
    "polars objects": lambda: pl.DataFrame({"when": pl.Series(MOMENTS, dtype=pl.Object), "x": X}),
    "pandas": lambda: pandas_of(pd.Series(MOMENTS)),
    "pandas s": lambda: pandas_of(pd.Series(MOMENTS).astype("datetime64[s]")),
    "pandas ns": lambda: pandas_of(pd.Series(MOMENTS).astype("datetime64[ns]")),
    "pandas objects": lambda: pandas_of(pd.Series(MOMENTS, dtype=object)),
    "pandas zone": lambda: pandas_of(pd.Series(MOMENTS).dt.tz_localize("Asia/Tokyo")),
    "pandas Arrow": lambda: pandas_of(pd.Series(MOMENTS).astype("timestamp[us][pyarrow]")),
    "pandas period": lambda: pandas_of(pd.Series(MOMENTS).dt.to_period("min")),
    "Arrow": lambda: pa.table({"when": MOMENTS, "x": X}),
    "Arrow zone": lambda: pa.table({"when": pa.array(MOMENTS, pa.timestamp("us", "UTC")), "x": X}),
    "NumPy objects": lambda: np.array([[when, x] for when, x in zip(MOMENTS, X, strict=True)], dtype=object),
    "rows": lambda: [[when, x] for when, x in zip(MOMENTS, X, strict=True)],
}


def parts_by_python(moments):
    """Return days, year, month, weekday and hour of each moment."""
    first = min(moments).date()
    return [
        ((one - datetime.datetime.combine(first, datetime.time())) / datetime.timedelta(days=1), one.year, one.month,
         one.strftime("%a"), one.hour)
        for one in moments
    ]  # fmt: skip


def table_of_parts():
    """Return the table that has a column per part, made by Python."""
    days, year, month, weekday, hour = map(list, zip(*parts_by_python(MOMENTS), strict=True))
    names = {"year": sorted(set(year)), "month": range(1, 13), "weekday": WEEKDAYS, "hour": range(24)}
    cells = dict(zip(names, (year, month, weekday, hour), strict=True))
    columns = {
        f"when.{name}": pl.Series([str(cell) for cell in cells[name]], dtype=pl.Enum([str(one) for one in known]))
        for name, known in names.items()
    }
    return pl.DataFrame({"when.days": days, **columns, "x": X})


@pytest.fixture(scope="module")
def fitted():
    return po.NaiveBayes().fit(CONTAINERS["polars"](), Y)


@pytest.mark.parametrize("container", CONTAINERS)
def test_the_parts_are_those_of_python(container):
    table = CONTAINERS[container]()
    model = po.NaiveBayes().fit(table, Y)
    values = model.explain(table).values
    assert [name.partition(".")[2] for name in model.schema_.names[:5]] == ["days", "year", "month", "weekday", "hour"]
    for row, expected in zip(values, parts_by_python(MOMENTS), strict=True):
        assert row[0] == pytest.approx(expected[0], abs=1e-9)
        assert tuple(row[1:5]) == expected[1:]
    assert model.n_features_in_ == 2
    assert list(getattr(model, "feature_names_in_", ["when", "x"])) == ["when", "x"]


@pytest.mark.parametrize("model", MODELS, ids=repr)
def test_a_model_of_dates_is_that_of_their_parts(model):
    """Except for missing cells: the parts are missing together, and have one indicator."""
    by_dates = clone(model).fit(CONTAINERS["polars"](), Y)
    by_parts = clone(model).fit(table_of_parts(), Y)
    assert by_dates.schema_.names == by_parts.schema_.names
    assert_allclose(by_dates.predict_proba(CONTAINERS["polars"]()), by_parts.predict_proba(table_of_parts()), rtol=1e-9)
    assert_allclose(by_dates.importance_.increase, by_parts.importance_.increase, atol=1e-9)


@pytest.mark.parametrize("container", [name for name in CONTAINERS if name not in ("NumPy objects", "rows")])
def test_drawn_rows_are_tables_that_the_model_reads(container):
    table = CONTAINERS[container]()
    model = po.NaiveBayes().fit(table, Y)
    drawn, _ = model.sample(30, random_state=0)
    assert type(drawn) is type(table)
    if isinstance(drawn, pd.DataFrame):
        assert drawn.dtypes["when"] == table.dtypes["when"]
    values = model.explain(drawn).values
    assert all(0 <= days <= max(parts_by_python(MOMENTS))[0] + 1 for days in values[:, 0])
    assert np.isfinite(model.predict_log_proba(drawn)).all()


def test_dates_stay_dates_in_drawn_rows():
    rows = pl.DataFrame({"when": [one.date() for one in MOMENTS], "at": [one.time() for one in MOMENTS], "x": X})
    rows = rows.with_columns(took=pl.duration(minutes=pl.int_range(N)))
    drawn, _ = po.NaiveBayes().fit(rows, Y).sample(20, random_state=1)
    assert drawn.schema == rows.schema
    assert drawn["when"].is_between(rows["when"].min(), rows["when"].max()).all()
    assert drawn["at"].dt.minute().sum() == 0
    assert drawn["took"].is_between(rows["took"].min(), rows["took"].max()).all()
    with pytest.warns(IgnoredColumnWarning, match="'at': times of day have none of the parts month; 'took': dur"):
        without_days, _ = po.NaiveBayes(columns=po.Columns(dates=["month"])).fit(rows, Y).sample(5, random_state=1)
    assert without_days["when"].null_count() == 5


def test_constant_parts_are_left_out_unless_they_are_named():
    january = pl.DataFrame({"when": [datetime.date(2024, 1, 1 + k % 31) for k in range(N)], "x": X})
    assert po.NaiveBayes().fit(january, Y).schema_.names == ("when.days", "when.weekday", "x")
    named = po.NaiveBayes(columns=po.Columns(dates=["month", "year", "hour"])).fit(january, Y)
    assert named.schema_.names == ("when.year", "when.month", "x")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ignoring = po.NaiveBayes(columns=po.Columns(dates="ignore")).fit(january, Y)
    assert [column.kind for column in ignoring.schema_.columns] == ["ignored", "continuous"]
    without = po.NaiveBayes().fit(january[["x"]], Y)
    assert_array_equal(ignoring.predict_proba(january), without.predict_proba(january[["x"]]))


@pytest.mark.parametrize("when", [[None] * N, [datetime.date(2024, 1, 1)] * N], ids=["missing", "constant"])
def test_dates_without_information_are_ignored_with_a_reason(when):
    rows = pl.DataFrame({"when": pl.Series(when, dtype=pl.Date), "x": X})
    with pytest.warns(IgnoredColumnWarning, match="column 'when' is ignored"):
        model = po.NaiveBayes().fit(rows, Y)
    assert model.schema_.columns[0].reason
    drawn, _ = model.sample(3, random_state=0)
    assert drawn.schema == rows.schema
    assert drawn["when"].null_count() == 3


def test_missing_dates_are_missing_in_every_part():
    gaps = pl.DataFrame({"when": [None if x > 0 else one for one, x in zip(MOMENTS, X, strict=True)], "x": X})
    model = po.NaiveBayes(missing="informative").fit(gaps, Y)
    values = model.explain(gaps).values
    assert [sum(cell is None for cell in column) for column in values.T] == [int((X > 0).sum())] * 5 + [0]
    drawn, _ = model.sample(400, random_state=0)
    assert drawn["when"].null_count() / 400 == pytest.approx((X > 0).mean(), abs=0.08)


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"X": {"when": MOMENTS, "when.month": X}}, "'when.month' has the name of a part"),
        ({"columns": po.Columns(categorical_features=["when"])}, "'when' holds dates, which are read as parts"),
        ({"distributions": {"when": "gaussian"}}, "name one of its parts: columns 'when.days'"),
        ({"columns": po.Columns(dates=["decade"])}, "dates names 'decade'; name some of days"),
        ({"columns": po.Columns(dates=[])}, "dates is empty"),
        ({"columns": po.Columns(dates="ignore"), "X": {"when": MOMENTS}}, "no column left to learn from"),
    ],
)
def test_what_cannot_be_read_is_refused(change, match):
    rows = pl.DataFrame(change.pop("X", {"when": MOMENTS, "x": X}))
    with pytest.raises(ValueError, match=match):
        po.NaiveBayes(**change).fit(rows, Y)


def test_parts_have_distributions_of_their_own():
    model = po.NaiveBayes(distributions={"when.days": "binned", 1: "binned"}).fit(CONTAINERS["polars"](), Y)
    assert [column.name for column in model.schema_.columns if column.is_binned] == ["when.days", "x"]


@pytest.mark.parametrize("cell", [3, True, datetime.timedelta(1), datetime.time(8), "soon"])
def test_cells_that_are_no_dates_are_refused_in_prediction(fitted, cell):
    with pytest.raises(ValueError, match="column 'when' held dates in training but holds"):
        fitted.predict_proba([{"when": cell, "x": 0.0}])


def test_rows_given_as_dicts_and_strings_of_iso_are_dates(fitted, tmp_path):
    expected = fitted.predict_proba(CONTAINERS["polars"]())[:3]
    po.save(fitted, tmp_path / "m.posteriori")
    for write in (lambda one: one, lambda one: one.isoformat(), lambda one: one.strftime("%Y-%m-%d %H:%M")):
        rows = [{"when": write(one), "x": x} for one, x in zip(MOMENTS[:3], X, strict=False)]
        assert_allclose(fitted.predict_proba(rows), expected, rtol=1e-12)
        for score in (pickle.loads(pickle.dumps(fitted.scorer())), po.scoring.load_scorer(tmp_path / "m.posteriori")):
            assert_allclose([list(score(row).values()) for row in rows], expected, rtol=1e-12)
    assert fitted.scorer().names == ("when", "x")
    assert_array_equal(po.load(tmp_path / "m.posteriori").predict_proba(CONTAINERS["pandas"]())[:3], expected)


def test_zones_are_read_on_the_clock_of_the_training_rows():
    when = pl.Series(MOMENTS).dt.replace_time_zone("Europe/Berlin", non_existent="null")
    berlin = pl.DataFrame({"when": when, "x": X})
    model = po.NaiveBayes().fit(berlin, Y)
    utc = berlin.with_columns(pl.col("when").dt.convert_time_zone("UTC"))
    assert_array_equal(model.explain(berlin).values, model.explain(utc).values)
    assert_array_equal(model.explain(utc).values, model.explain(utc.to_pandas()).values)
    one = utc["when"].drop_nulls()[0]
    assert model.explain([{"when": one, "x": 0.0}]).values[0, 4] == berlin["when"].drop_nulls()[0].hour


def test_batches_and_merged_shards_give_the_model_of_all_rows():
    rows = CONTAINERS["polars"]()
    parts = ["year", "month", "weekday", "hour"]
    whole = po.NaiveBayes(columns=po.Columns(dates=parts)).fit(rows, Y)
    in_order = np.argsort(MOMENTS)
    cuts = (in_order[:30], in_order[30:])  # the years of the second half are new
    batches = po.NaiveBayes(columns=po.Columns(dates=parts))
    for rows_of in cuts:
        batches.partial_fit(rows[rows_of], Y[rows_of], classes=["a", "b"])
    shards = [po.NaiveBayes(columns=po.Columns(dates=parts)).fit(rows[rows_of], Y[rows_of]) for rows_of in cuts]
    for model in (batches, po.merge(shards)):
        assert model.schema_.names == whole.schema_.names
        assert_allclose(model.predict_proba(rows), whole.predict_proba(rows), rtol=1e-9)
    days = [po.NaiveBayes(columns=po.Columns(dates=["days"])).fit(rows[rows_of], Y[rows_of]) for rows_of in cuts]
    with pytest.raises(ValueError, match=r"column 'when.days' is of dates .* dates from .* on"):
        po.merge(days)
    batches.unlearn(rows[cuts[1]], Y[cuts[1]])
    assert_allclose(batches.class_count_, shards[0].class_count_)


@given(st.lists(st.datetimes(datetime.datetime(1583, 1, 1), datetime.datetime(2600, 1, 1)), min_size=1, max_size=20))
def test_what_rows_show_of_dates_is_a_sum(moments):
    wanted = TimeType("datetime")
    times = np.array(moments, "datetime64[us]")
    whole = TimesSeen.of(times, wanted)
    for cut in range(len(times) + 1):
        assert TimesSeen.of(times[:cut], wanted) + TimesSeen.of(times[cut:], wanted) == whole
    assert whole.of_part["weekday"] == {one.weekday() for one in moments}
    assert whole.of_part["month"] == {one.month for one in moments}
    assert whole.of_part["year"] == {one.year for one in moments}
    assert whole.origin == (min(moments).date() - datetime.date(1970, 1, 1)).days


# Text files ----------------------------------------------------------------------------------------------------------

WRITTEN = {
    "%Y-%m-%d": "date",
    "%Y/%m/%d": "date",
    "%d.%m.%Y": "date",
    "%d/%m/%Y": "date",
    "%m/%d/%Y": "date",
    "%m-%d-%Y %H:%M": "datetime",
    "%Y-%m-%dT%H:%M:%S": "datetime",
    "%Y-%m-%d %H:%M:%S.%f": "datetime",
    "%Y-%m-%dT%H:%M:%SZ": "datetime",
    "%m/%d/%Y %I:%M:%S %p": "datetime",
    "%H:%M:%S": "time",
}


@pytest.mark.parametrize(("written", "kind"), WRITTEN.items())
def test_strings_of_text_files_are_dates(tmp_path, written, kind):
    cells = [one.strftime(written) for one in MOMENTS]
    pl.DataFrame({"when": cells, "x": X, "y": Y}).write_csv(tmp_path / "rows.csv")
    rows = po.scan(tmp_path / "rows.csv", target="y")
    model = po.NaiveBayes().fit(rows)
    read = [datetime.datetime.strptime(cell, written) for cell in cells]
    if kind == "date":
        read = [one.date() for one in read]
    elif kind == "time":
        read = [one.time() for one in read]
    if written.endswith("Z"):
        read = [one.replace(tzinfo=datetime.UTC) for one in read]
    here = pl.DataFrame({"when": read, "x": X})
    other = po.NaiveBayes().fit(here, Y)
    assert model.schema_.names == other.schema_.names
    assert_array_equal(model.predict_proba(rows), other.predict_proba(here))
    assert_allclose(model.predict_proba(pl.DataFrame({"when": cells, "x": X})), other.predict_proba(here), rtol=1e-12)


@pytest.mark.parametrize(
    "cells",
    [
        ["1-2", "3-4"],
        ["10.0.0.1", "10.0.0.2"],
        ["2024", "2023"],
        ["3:1", "2:0 n.V."],
        [None, None],
        [""],
    ],
    ids=repr,
)
def test_other_strings_are_no_dates(cells):
    assert type_of_strings(pl.Series(cells, dtype=pl.String)) == (None, "")


def test_a_day_that_is_none_is_named_as_the_reason():
    dtype, reason = type_of_strings(pl.Series(["2024-01-32", "2024-01-01"]))
    assert dtype is None
    assert "2024-01-32" in reason


@pytest.mark.parametrize(
    ("cells", "reason"),
    [
        (["31/12/2024", "12/31/2024"], "holds dates in several formats ('12/31/2024', '31/12/2024')"),
        (["01.03.2022", "2020-05-01"], "holds dates in several formats ('01.03.2022', '2020-05-01')"),
        (["01.03.2022", "1 Aug 2021"], "holds dates in several formats ('01.03.2022', '1 Aug 2021')"),
        (["Aug 1, 2021", "May 3, 2020"], "holds dates in words ('Aug 1, 2021')"),
        ([*(f"2024-01-{day:02}" for day in range(1, 28)), "soon"], "holds dates except 'soon' (1 of 28 cells)"),
    ],
)
def test_what_prevents_that_dates_are_read_is_said(cells, reason):
    assert type_of_strings(pl.Series(cells)) == (None, reason)


def test_dates_with_ambiguous_day_and_month_stay_strings(tmp_path):
    cells = ["03/04/2024", "05/06/2024"] * 20
    pl.DataFrame({"when": cells, "y": ["a", "b"] * 20}).write_csv(tmp_path / "rows.csv")
    with pytest.warns(UserWarning, match="'when' holds dates whose day and month cannot be distinguished"):
        rows = po.scan(tmp_path / "rows.csv", target="y")
    assert rows.types["when"] == pl.String
    full = pl.DataFrame({"when": [*cells[:39], "25/12/2024"], "y": ["a", "b"] * 20})
    full.write_csv(tmp_path / "full.csv")
    model = po.NaiveBayes().fit(po.scan(tmp_path / "full.csv", target="y"))
    with pytest.warns(UserWarning, match="cannot be distinguished"):
        rows = po.scan(tmp_path / "rows.csv", target="y")
    months = {row[model.schema_.names.index("when.month")] for row in model.explain(rows).values}
    assert months == {4, 6}  # in the format of the training rows


def test_a_later_cell_that_is_no_date_is_named(tmp_path):
    (tmp_path / "rows.csv").write_text("when,y\n" + "2024-01-01,a\n2024-02-01,b\n" * 5100 + "soon,a\n")
    with pytest.raises(ValueError, match=r"column 'when' holds 'soon', which is not written as the dates above it"):
        po.NaiveBayes().fit(po.scan(tmp_path / "rows.csv", target="y"))
    rows = po.scan(tmp_path / "rows.csv", target="y", dtypes={"when": pl.String})
    assert po.NaiveBayes().fit(rows).schema_.names == ("when",)


# The command line ----------------------------------------------------------------------------------------------------


def test_commands_read_dates(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    command = CommandLine(model="nb")
    rows = pl.DataFrame({"when": [one.strftime("%d.%m.%Y") for one in MOMENTS], "x": X, "y": Y})
    rows.write_csv("rows.csv")
    facts = json.loads(command.succeeds("fit", "rows.csv", "--target", "y", "--json"))
    columns = {column["name"]: column for column in facts["columns"]}
    assert list(columns) == ["when.days", "when.year", "when.month", "when.weekday", "x"]
    first = min(one.date() for one in MOMENTS)
    days = [(one.date() - first).days for one in MOMENTS]
    assert columns["when.days"]["mean"] == pytest.approx(np.mean(days))
    assert (columns["when.days"]["min"], columns["when.days"]["max"]) == (0, max(days))
    assert "90 rows, 2 features" in command.succeeds("fit", "rows.csv", "--target", "y", "--force")
    model = po.load("rows.posteriori")
    rows.drop("y")[:1].write_csv("one.csv")
    found = command.succeeds("predict", "rows.posteriori", "one.csv", "--proba")
    expected = model.predict_proba([{"when": MOMENTS[0].date(), "x": X[0]}])[0]
    assert float(found.splitlines()[1].split(",")[1]) == pytest.approx(expected[0], rel=1e-9)
    drawn = command.succeeds("sample", "rows.posteriori", "-n", "3", "--seed", "0")
    assert all(datetime.date.fromisoformat(line.split(",")[0]) >= first for line in drawn.splitlines()[1:])
    assert "when.weekday" in command.succeeds("explain", "rows.posteriori", "rows.csv", "--row", "0")
    error = command.refused("fit", "rows.csv", "--target", "y", "--dates", "decade", "--force")
    assert "--dates names 'decade'" in error
    command.succeeds("fit", "rows.csv", "--target", "y", "--force", "--dates", "month,weekday")
    assert po.load("rows.posteriori").schema_.names == ("when.month", "when.weekday", "x")


def test_comparisons_give_every_model_the_parts():
    rows = CONTAINERS["polars"]().with_columns(y=pl.Series(Y))
    found = po.cross_validate(["nb", "logistic"], rows, "y", folds=3)
    assert all(math.isfinite(loss) for loss in found.table["log_loss"])
    by_parts = po.cross_validate(["logistic"], table_of_parts().with_columns(y=pl.Series(Y)), "y", folds=3)
    assert_allclose(found.posteriors["logistic regression"], by_parts.posteriors["logistic regression"], rtol=1e-6)


def test_readers_of_numbers_refuse_dates():
    with pytest.raises(TypeError, match=r"column 'when' is Datetime.*; turn it into a number or a category"):
        infer_schema(read_table(CONTAINERS["polars"]()))


@pytest.mark.parametrize("kind", [pl.Duration("ms"), pl.Datetime("ms")])
def test_a_time_that_no_microseconds_reach_is_refused(kind):
    near = pl.Series("when", np.arange(30) * 86_400_000).cast(kind)
    y = np.arange(30) % 2
    model = po.NaiveBayes().fit(pl.DataFrame(near), y)
    far = pl.DataFrame(pl.Series("when", [2**62] * 2).cast(kind))
    with pytest.raises(ValueError, match="column 'when' holds a time that is 292,000 years or more away"):
        model.predict(far)


@pytest.mark.parametrize(
    ("cells", "first"),
    [
        (["1/28/19", "12/3/70", "2/1/68"], [datetime.date(2019, 1, 28), datetime.date(1970, 12, 3)]),
        (["28/1/19", "3/12/99", "1/2/68"], [datetime.date(2019, 1, 28), datetime.date(1999, 12, 3)]),
        (["28.01.19", "03.12.69", "01.02.00"], [datetime.date(2019, 1, 28), datetime.date(2069, 12, 3)]),
        (
            ["1/28/19 14:05", "12/3/70 9:30"],
            [datetime.datetime(2019, 1, 28, 14, 5), datetime.datetime(1970, 12, 3, 9, 30)],
        ),
    ],
)
def test_years_of_two_digits_are_those_from_1970_to_2069(cells, first, tmp_path):
    (tmp_path / "t.csv").write_text("when,y\n" + "".join(f"{cell},a\n" for cell in cells))
    with pytest.warns(po.tables.ReadingWarning, match="two-digit years of column 'when' as 1970 to 2069"):
        rows = po.scan(tmp_path / "t.csv")
    assert rows.frame.collect()["when"].to_list()[:2] == first


@pytest.mark.filterwarnings("ignore::posteriori.tables.ReadingWarning")
@pytest.mark.parametrize("cells", [["1.2.3", "1.2.4"], ["19-01-28", "19-02-28"], ["1/28/19", "1/28/2019"]])
def test_versions_and_years_of_unclear_place_stay_strings(cells, tmp_path):
    (tmp_path / "t.csv").write_text("when,y\n" + "".join(f"{cell},a\n" for cell in cells))
    assert po.scan(tmp_path / "t.csv").types["when"] == pl.String


def test_ambiguous_two_digit_years_are_warned_of(tmp_path):
    (tmp_path / "t.csv").write_text("when,y\n1/2/19,a\n3/4/20,b\n")
    with pytest.warns(UserWarning, match="day and month cannot be distinguished"):
        assert po.scan(tmp_path / "t.csv").types["when"] == pl.String
