"""Drawn tables: copies of training rows, and how a table differs from a real one."""

import numpy as np
import polars as pl
import pytest
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
    drawn = po.JointModel().fit(rows).sample(300, {"sex": "female"}, random_state=0, no_copies=True)
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
