"""Drawn tables: copies of training rows, and how a table differs from a real one."""

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import ks_2samp

import posteriori as po
from posteriori.comparison.tables import cramers_v
from posteriori.datasets import load_penguins

PENGUINS = load_penguins()


def copies(real, drawn):
    """Return how many rows of one table equal one of another, by comparing all pairs; missing cells are equal."""

    def same(one, other):
        missing = [cell is None or cell != cell for cell in (one, other)]
        return all(missing) if any(missing) else one == other

    rows = real.rows()
    return sum(any(all(map(same, row, other)) for other in rows) for row in drawn.rows())


def mixed(n, seed, gaps=0.2):
    """Return a table of few numbers, categories and truth values, with missing cells."""
    rng = np.random.default_rng(seed)
    table = pl.DataFrame(
        {
            "whole": rng.integers(-1, 3, n),
            "tenths": np.round(rng.integers(0, 4, n) * 0.1, 1),
            "category": rng.choice(["a", "b"], n),
            "truth": rng.random(n) < 0.5,
        }
    )
    return table.with_columns(
        pl.when(pl.Series(rng.random(n) < gaps)).then(None).otherwise(pl.col(name)).alias(name)
        for name in table.columns
    )


def shuffled(table):
    return table.select(pl.col(name).shuffle(seed=k) for k, name in enumerate(table.columns))


# No copies ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("gaps", [0.0, 0.3])
def test_no_row_is_a_copy_and_the_others_stay(gaps):
    table = mixed(40, 0, gaps)
    model = po.JointModel().fit(table)
    usual, new = model.sample(200, random_state=0), model.sample(200, random_state=0, no_copies=True)
    assert copies(table, usual) > 0
    assert (copies(table, new), new.schema) == (0, usual.schema)
    kept = [row for row in usual.rows() if not copies(table, pl.DataFrame([row], table.schema, orient="row"))]
    assert set(kept) <= set(new.rows())


def test_no_copies_meet_what_is_given():
    rows = PENGUINS.select("species", "island", "sex", "year")
    drawn = po.JointModel().fit(rows).sample(30, {"sex": "female"}, random_state=0, no_copies=True)
    assert set(drawn["sex"]) == {"female"}
    assert copies(rows, drawn) == 0


@pytest.mark.parametrize("convert", [lambda one: one.to_pandas(), lambda one: one.to_arrow(), lambda one: one])
def test_a_model_from_a_file_takes_the_table(tmp_path, convert):
    table = mixed(40, 1, 0.0)
    po.save(po.JointModel().fit(table), tmp_path / "joint.posteriori")
    loaded = po.load(tmp_path / "joint.posteriori")
    with pytest.raises(ValueError, match="no_copies=TABLE"):
        loaded.sample(10, no_copies=True)
    assert copies(table, loaded.sample(200, random_state=0, no_copies=convert(table))) == 0
    table.write_csv(tmp_path / "table.csv")
    assert copies(table, loaded.sample(200, random_state=0, no_copies=tmp_path / "table.csv")) == 0


def test_arrays_have_no_copies():
    rows = np.random.default_rng(0).integers(0, 4, (60, 3)).astype(np.float32)
    drawn = po.JointModel().fit(rows).sample(100, random_state=0, no_copies=True)
    assert not {tuple(row) for row in rows.tolist()} & {tuple(row) for row in drawn.tolist()}


def test_copies_that_cannot_be_avoided_are_counted():
    table = pl.DataFrame({"a": ["x", "y"] * 50, "b": ["u", "v", "v", "u"] * 25})
    model = po.JointModel().fit(table)
    assert len(model.sample(20)) == 20
    with pytest.raises(ValueError, match=r"20 of 20 drawn rows are copies of rows of the table, .* draw fewer rows"):
        model.sample(20, no_copies=True)


# Ranges and grids --------------------------------------------------------------------------------------------------

# of each kind of number: the least and the greatest one, and how many are in 1
KINDS = {
    "month": (1, 12, 1),
    "rating": (1, 5, 1),
    "loss": (-40, 0, 1),
    "tenth": (-20, 30, 10),
    "cents": (0, 10**10, 100),
    "large": (10**8, 10**9, 1),
    "huge": (2**61, 2**62, 1),
    "constant": (7, 7, 1),
}


@st.composite
def tables_of_numbers(draw):
    """Return a table of some kinds of numbers, perhaps with gaps, and perhaps weights of its rows."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    n, shape = draw(st.integers(12, 90)), draw(st.sampled_from([0.3, 1.0, 3.0]))
    columns = {"kind": rng.choice(["a", "b"], n)}
    for name in draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4, unique=True)):
        low, high, parts = KINDS[name]
        units = low + np.floor(rng.random(n) ** shape * (high - low + 1)).astype(np.int64)
        columns[name] = units if parts == 1 else units / parts
    table = pl.DataFrame(columns)
    gaps = draw(st.sampled_from([0.0, 0.2]))
    table = table.with_columns(
        pl.when(pl.Series(rng.random(n) < gaps) & (pl.int_range(n) > 0)).then(None).otherwise(pl.col(name)).alias(name)
        for name in table.columns[1:]
    )
    return table, rng.exponential(size=n) if draw(st.booleans()) else None


def check_numbers_are_usual(table, drawn):
    """Check that drawn numbers are in the range and on the grid of those of a table, which are float64 on the way."""
    assert drawn.schema == table.schema
    for name in table.columns[1:]:
        known, found = table[name].drop_nulls().cast(pl.Float64), drawn[name].cast(pl.Float64)
        assert found.is_between(known.min(), known.max()).all()
        parts = KINDS[name][2]
        assert_allclose(found * parts, (found * parts).round(), rtol=1e-15)


@settings(max_examples=15, deadline=None)
@given(tables_of_numbers(), st.integers(0, 99))
def test_drawn_numbers_are_in_the_range_and_on_the_grid(made, seed):
    table, weight = made
    model = po.JointModel().fit(table, sample_weight=weight)
    check_numbers_are_usual(table, model.sample(300, random_state=seed))
    check_numbers_are_usual(table, model.impute(table, method="joint", draw=True, random_state=seed))
    check_numbers_are_usual(table, model.impute(table, method="joint"))


def test_pools_draw_fillings_in_the_range():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"kind": rng.choice(["a", "b"], 200), "month": rng.integers(1, 13, 200)})
    table = table.with_columns(pl.when(pl.int_range(200) < 80).then(None).otherwise("month").alias("month"))
    model = po.JointModel().fit(table)
    for seed in range(20):
        check_numbers_are_usual(table, model.impute(table, draw=True, random_state=seed))


def test_numbers_leave_the_range_only_if_it_is_ignored():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"month": rng.integers(1, 13, 100), "price": rng.lognormal(0, 1, 100)})
    model = po.JointModel().fit(table)
    usual, wide = (model.sample(20_000, random_state=0, respect_ranges=one) for one in (True, False))
    assert (usual["month"].min(), usual["month"].max()) == (1, 12)
    assert usual["price"].is_between(table["price"].min(), table["price"].max()).all()
    assert 0 < (wide["month"] > 12).mean() < 0.01
    assert 0 < (wide["price"] > table["price"].max()).mean() < 0.01
    assert (wide["price"] >= 0).all()
    assert wide.schema == table.schema


def test_findings_beyond_the_range_go_before_it():
    rng = np.random.default_rng(0)
    table = pl.DataFrame({"month": rng.permutation(np.arange(120) % 12 + 1), "price": rng.normal(size=120)})
    model = po.JointModel().fit(table)
    assert (model.sample(50, {"month": (13, None)}, 0)["month"] >= 13).all()
    assert set(model.sample(50, {"month": (11, 20)}, 0)["month"]) == {11, 12}
    assert set(model.sample(50, {"month": {3, 14}}, 0)["month"]) == {3}
    assert model.sample(50, {"month": (11, 2000)}, 0, respect_ranges=False)["month"].is_between(11, 2000).all()
    with pytest.raises(ValueError, match="no cell of 'month' can be"):
        model.sample(5, {"month": (10**6, None)})


def test_rows_added_later_widen_the_range():
    rng = np.random.default_rng(0)
    first, more = (
        pl.DataFrame({"month": rng.integers(*ends, 120), "price": rng.normal(size=120)}) for ends in ((1, 7), (7, 13))
    )
    model = po.JointModel().fit(first)
    drawn = model.partial_fit(more).sample(400, random_state=0)["month"]
    assert drawn.max() > 6
    assert drawn.is_between(1, 12).all()


def test_drawn_dates_are_in_the_range_and_keep_their_type():
    day = pl.Series("day", np.random.default_rng(0).integers(0, 900, 150)).cast(pl.Int32).cast(pl.Date)
    table = pl.DataFrame([day, pl.Series("kind", ["a", "b", "c"] * 50)])
    drawn = po.JointModel().fit(table).sample(2000, random_state=0)
    assert drawn.schema == table.schema
    assert drawn["day"].is_between(day.min(), day.max()).all()


# Comparison --------------------------------------------------------------------------------------------------------


def test_a_table_beside_itself_has_no_distance_and_copies_alone():
    table = mixed(150, 2)
    found = po.compare_tables(table, table)
    assert found.columns["distance"].to_list() == [0.0] * 4
    assert (found.columns["missing_real"] == found.columns["missing_drawn"]).all()
    assert found.pairs["difference"].to_list() == [0.0] * 6
    assert (found.copies, found.n_real, found.n_drawn) == (1.0, 150, 150)
    assert found.auc == pytest.approx(0.5, abs=1e-9)
    assert found.nearest.row(0, named=True) == {"rows": "drawn", "q05": 0.0, "median": 0.0}


def test_shuffled_columns_differ_in_pairs_alone():
    found = po.compare_tables(PENGUINS, shuffled(PENGUINS))
    assert found.columns["distance"].max() == 0.0
    pair = found.pairs.row(0, named=True)
    assert pair["real"] > 0.5
    assert pair["drawn"] < 0.2
    assert found.auc > 0.9
    assert found.copies == 0.0
    drawn, real = found.nearest["median"].to_list()
    assert drawn > 2 * real


def test_copies_and_repeats_are_those_of_all_pairs_of_rows():
    real, drawn = mixed(120, 3), mixed(200, 4)
    found = po.compare_tables(real, drawn)
    assert 0.0 < found.copies < 1.0
    assert found.copies * 200 == pytest.approx(copies(real, drawn))
    others = (copies(real[:i].vstack(real[i + 1 :]), real[i]) for i in range(120))
    assert found.repeats * 120 == pytest.approx(sum(others))


def test_distances_of_columns_are_those_of_the_field():
    rng = np.random.default_rng(0)
    real = pl.DataFrame({"number": rng.normal(size=300), "category": rng.choice(["a", "b", "c"], 300)})
    drawn = pl.DataFrame({"number": rng.normal(0.5, 1, 200), "category": rng.choice(["a", "b", "new"], 200)})
    drawn = drawn.with_columns(pl.when(pl.int_range(200) < 50).then(None).otherwise("number").alias("number"))
    found = {row["column"]: row for row in po.compare_tables(real, drawn).columns.iter_rows(named=True)}
    expected = ks_2samp(real["number"], drawn["number"].drop_nulls()).statistic
    assert_allclose(found["number"]["distance"], expected)
    assert (found["number"]["missing_real"], found["number"]["missing_drawn"]) == (0.0, 0.25)
    shares = [(one["category"] == cell).mean() for one in (real, drawn) for cell in ("a", "b", "c", "new")]
    assert_allclose(found["category"]["distance"], np.abs(np.subtract(shares[:4], shares[4:])).sum() / 2)


def test_nearest_rows_are_those_of_all_pairs():
    real, drawn = mixed(60, 5), mixed(50, 6)
    span = {name: real[name].max() - real[name].min() for name in ("whole", "tenths")}

    def distance(one, other):
        total = 0.0
        for name, a, b in zip(real.columns, one, other, strict=True):
            if a is None or b is None:
                total += (a is None) != (b is None)
            else:
                total += min(abs(a - b) / span[name], 1.0) if name in span else a != b
        return total / 4

    of_drawn = [min(distance(row, other) for other in real.rows()) for row in drawn.rows()]
    of_real = [min(distance(row, o) for k, o in enumerate(real.rows()) if k != i) for i, row in enumerate(real.rows())]
    found = po.compare_tables(real, drawn).nearest
    for rows, expected in zip(found.iter_rows(named=True), (of_drawn, of_real), strict=True):
        assert_allclose([rows["q05"], rows["median"]], np.quantile(expected, [0.05, 0.5]))


def test_independent_columns_have_no_dependence_on_average():
    rng = np.random.default_rng(0)
    found = [cramers_v(rng.integers(0, 8, 500), rng.integers(0, 8, 500)) for _ in range(50)]
    assert np.mean(found) < 0.05
    assert cramers_v(np.arange(500) % 8, np.arange(500) % 8 // 2) > 0.99


def test_drawn_rows_are_like_the_real_ones():
    drawn = po.JointModel().fit(PENGUINS).sample(344, random_state=0, no_copies=True)
    found, independent = po.compare_tables(PENGUINS, drawn), po.compare_tables(PENGUINS, shuffled(PENGUINS))
    assert found.columns["distance"].max() < 0.1
    assert found.pairs["difference"].abs().mean() < 0.5 * independent.pairs["difference"].abs().mean()
    assert found.auc < independent.auc - 0.1
    text = str(found)
    assert "0.0% of the drawn rows are copies of a real row" in text
    assert all(name in text for name in PENGUINS.columns)


def test_kinds_of_tables_have_the_same_facts(tmp_path):
    real, drawn = mixed(80, 7), mixed(80, 8)
    real.write_csv(tmp_path / "real.csv")
    drawn.write_csv(tmp_path / "drawn.csv")
    expected = po.compare_tables(real, drawn)
    for one in (
        po.compare_tables(real.to_arrow(), drawn.to_arrow()),
        po.compare_tables(tmp_path / "real.csv", tmp_path / "drawn.csv"),
    ):
        assert one.columns.equals(expected.columns)
        assert one.pairs.equals(expected.pairs)
        assert (one.copies, one.auc) == (expected.copies, expected.auc)
    array = np.random.default_rng(0).normal(size=(50, 2))
    assert po.compare_tables(array, array[:30]).copies == 1.0


def test_what_is_left_out_is_named():
    real = mixed(60, 9).with_columns(pl.lit("x").alias("lone"))
    with pytest.warns(UserWarning, match="only the real table has column 'lone'"):
        assert set(po.compare_tables(real, real.drop("lone")).columns["column"]) == set(real.columns) - {"lone"}
    empty = real.with_columns(pl.lit(None, pl.Float64).alias("tenths"))
    with pytest.warns(UserWarning, match="no value in one of the tables: column 'tenths'"):
        found = po.compare_tables(real, empty)
    lines = {row["column"]: row for row in found.columns.iter_rows(named=True)}
    assert np.isnan(lines["tenths"]["distance"])
    assert lines["tenths"]["missing_drawn"] == 1.0
    assert not found.pairs.filter((pl.col("column") == "tenths") | (pl.col("other") == "tenths")).height


def test_what_cannot_be_compared_is_refused():
    real = mixed(60, 10)
    with pytest.raises(ValueError, match="no column in common"):
        po.compare_tables(real, pl.DataFrame({"else": [1, 2]}))
    wrong = real.with_columns(pl.col("whole").cast(pl.String).replace("1", "one"))
    with pytest.raises(ValueError, match="'whole' holds numbers in the real table and categories that are strings"):
        po.compare_tables(real, wrong)
    wrong = real.with_columns(pl.lit(3).alias("category"))
    with pytest.raises(ValueError, match="'category' holds categories that are strings in the real table"):
        po.compare_tables(real, wrong)
    with pytest.raises(ValueError, match="2 columns and the drawn one 3"):
        po.compare_tables(np.zeros((5, 2)), np.zeros((5, 3)))


def test_small_and_constant_tables_have_facts():
    one = pl.DataFrame({"a": [1], "b": ["x"]})
    found = po.compare_tables(one, one)
    assert (found.copies, found.columns["distance"].to_list()) == (1.0, [0.0, 0.0])
    assert np.isnan(found.auc)
    assert "Too few rows" in str(found)
    alike = pl.DataFrame({"a": [2.0] * 50})
    found = po.compare_tables(alike, alike)
    assert (found.copies, found.repeats, found.pairs.height) == (1.0, 1.0, 0)
