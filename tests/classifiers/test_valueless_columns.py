"""Columns without any value in training: they have no kind until one appears."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.model_selection import KFold, cross_val_score

import posteriori as po

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*no cell with a value:UserWarning"),
    pytest.mark.filterwarnings("ignore:categories unseen in training:UserWarning"),
]

Y = ["a", "b"] * 10
X = [float(i % 7) for i in range(20)]
C = ["u", "v", "v", "u", "w"] * 4
EMPTY = {
    "polars strings": lambda n: pl.Series([None] * n, dtype=pl.String),
    "polars numbers": lambda n: pl.Series([None] * n, dtype=pl.Float64),
    "polars nothing": lambda n: pl.Series([None] * n, dtype=pl.Null),
    "pandas objects": lambda n: pd.Series([None] * n, dtype=object),
    "pandas numbers": lambda n: pd.Series([np.nan] * n),
}
LATER = {
    "strings": ["Y", None, "N", "Y", "Y"] * 4,
    "numbers": [1.0, None, 7.5, 3.0, 2.0] * 4,
    "booleans": [True, None, False, True, True] * 4,
    "nothing": [None] * 20,
}


def table(series, rows=slice(0, 20)):
    values = {"x": X[rows], "c": C[rows], "e": series}
    return pl.DataFrame(values) if isinstance(series, pl.Series) else pd.DataFrame(values)


def later(empty, what, rows=slice(0, 20)):
    make = pl.Series if empty.startswith("polars") else pd.Series
    return table(make(LATER[what][rows]), rows)


def together(empty, what):
    """Return the rows without a value and the later ones as one table."""
    make, frame = (pl.Series, pl.DataFrame) if empty.startswith("polars") else (pd.Series, pd.DataFrame)
    return frame({"x": X * 2, "c": C * 2, "e": make([None] * 20 + LATER[what])})


MODELS = {
    "naive": lambda: po.NaiveBayes(),
    "binned": lambda: po.NaiveBayes(distributions="binned", bins=(2.0, 4.0)),
    "informative": lambda: po.NaiveBayes(missing="informative"),
    "lda": lambda: po.GaussianDiscriminant(),
    "tan": lambda: po.TreeAugmentedNaiveBayes(bins=3),
    "tan of numbers": lambda: po.TreeAugmentedNaiveBayes(bins=None),
    "kdb": lambda: po.KDependenceBayes(bins=3),
    "pool": lambda: po.GenerativeClassifier(["nb", "lda", "tan", "cells", "forest"], folds=2),
}


@pytest.mark.parametrize(
    ("name", "empty"),
    [(name, empty) for name in MODELS for empty in EMPTY],
)
def test_later_values_of_a_valueless_column_count_as_missing(name, empty):
    model = MODELS[name]().fit(table(EMPTY[empty](20)), Y)
    expected = model.predict_proba(table(EMPTY[empty](20)))
    for what in LATER:
        assert_allclose(model.predict_proba(later(empty, what)), expected, rtol=1e-12, err_msg=what)


def test_files_and_loaded_models_ignore_a_valueless_column(tmp_path):
    model = po.NaiveBayes().fit(table(EMPTY["polars numbers"](20)), Y)
    po.save(model, tmp_path / "m.posteriori")
    loaded = po.load(tmp_path / "m.posteriori")
    rows = later("polars", "strings")
    rows.write_csv(tmp_path / "rows.csv")
    expected = model.predict_proba(table(EMPTY["polars numbers"](20)))
    assert_array_equal(loaded.predict_proba(rows), expected)
    assert_array_equal(loaded.predict_proba(po.scan(tmp_path / "rows.csv")), expected)


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_folds_in_which_a_column_is_empty_can_be_cross_validated(frame):
    rng = np.random.default_rng(0)
    cells = [None] * 100
    cells[7], cells[8] = "Y", "Y"
    rows = frame({"x": rng.normal(size=100), "bc": cells})
    y = np.arange(100) % 2
    found = cross_val_score(po.NaiveBayes(), rows, y, cv=KFold(5), error_score="raise")
    assert len(found) == 5


@pytest.mark.parametrize("cells", [[True, None], [None, True]])
def test_a_fold_without_any_value_has_the_prior_in_the_joint(cells):
    found = po.model_selection.out_of_fold(
        po.classifiers.FullJointClassifier(), pl.DataFrame({"b": cells, "c": ["u", "u"]}), [0, 1], folds=2
    )
    assert np.isfinite(found.posterior).all()
    model = po.classifiers.FullJointClassifier().fit(pl.DataFrame({"b": cells + cells}), [0, 0, 1, 0])
    assert_allclose(model.predict_proba(pl.DataFrame({"b": [None]}, schema={"b": pl.Boolean})), [[0.75, 0.25]])


def same_model(one, other, rows):
    assert_allclose(one.predict_proba(rows), other.predict_proba(rows), rtol=1e-9, atol=1e-12)
    assert_allclose(one.score_samples(rows), other.score_samples(rows), rtol=1e-9, atol=1e-12)
    assert [column.kind for column in one.schema_.columns] == [column.kind for column in other.schema_.columns]


@pytest.mark.parametrize("what", ["strings", "numbers", "booleans"])
@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("missing", ["at_random", "informative"])
def test_the_first_values_in_partial_fit_give_a_column_its_kind(missing, empty, what):
    first, second = table(EMPTY[empty](20)), later(empty, what)
    parts = po.NaiveBayes(missing=missing).partial_fit(first, Y).partial_fit(second, Y)
    make = (lambda cells: pl.Series(cells)) if empty.startswith("polars") else (lambda cells: pd.Series(cells))
    both = {"x": X * 2, "c": C * 2, "e": make([None] * 20 + LATER[what])}
    whole = po.NaiveBayes(missing=missing).fit(
        pl.DataFrame(both) if empty.startswith("polars") else pd.DataFrame(both), Y * 2
    )
    same_model(parts, whole, second)
    back = po.NaiveBayes(missing=missing).partial_fit(second, Y).partial_fit(first, Y)
    same_model(back, whole, second)


@pytest.mark.parametrize("what", ["strings", "numbers"])
@pytest.mark.parametrize("empty", EMPTY)
@pytest.mark.parametrize("name", ["naive", "binned", "tan", "kdb"])
def test_shards_of_which_one_has_no_value_merge(name, empty, what, tmp_path):
    make = {
        "naive": lambda: po.NaiveBayes(),
        "binned": lambda: po.NaiveBayes(distributions="binned", bins=(2.0, 4.0)),
        "tan": lambda: po.TreeAugmentedNaiveBayes(bins=(2.0, 4.0)),
        "kdb": lambda: po.KDependenceBayes(k=0, bins=(2.0, 4.0)),
    }[name]
    first, second = table(EMPTY[empty](20)), later(empty, what)
    po.save(make().fit(first, Y), tmp_path / "first.posteriori")
    shards = [po.load(tmp_path / "first.posteriori"), make().fit(second, Y)]
    one, other = po.merge(shards), po.merge(shards[::-1])
    whole = make().fit(together(empty, what), Y * 2)
    same_model(one, whole, second)
    same_model(other, whole, second)


@pytest.mark.parametrize("what", ["strings", "numbers"])
@pytest.mark.parametrize("name", ["binned", "tan", "kdb"])
@pytest.mark.parametrize("empty", ["polars strings", "polars numbers"])
def test_models_of_bins_take_the_kind_up_as_well(name, empty, what):
    model = MODELS[name]().partial_fit(table(EMPTY[empty](20)), Y).partial_fit(later(empty, what), Y)
    assert np.isfinite(model.predict_proba(later(empty, what))).all()
    assert model.class_count_.sum() == 40


@pytest.mark.parametrize(("empty", "what"), [("polars strings", "numbers"), ("polars numbers", "strings")])
@pytest.mark.parametrize("name", ["lda", "tan of numbers"])
def test_models_of_joint_numbers_say_what_to_do(name, empty, what):
    model = MODELS[name]().partial_fit(table(EMPTY[empty](20)), Y)
    with pytest.raises(ValueError, match="'e' had no value in the rows of earlier calls"):
        model.partial_fit(later(empty, what), Y)
    assert model.class_count_.sum() == 20


def test_a_column_with_values_keeps_its_kind():
    model = po.NaiveBayes().partial_fit(later("polars", "numbers"), Y)
    with pytest.raises(ValueError, match="was continuous in training but is categorical"):
        model.partial_fit(later("polars", "strings"), Y)
    with pytest.raises(ValueError, match="numeric in training but is String"):
        model.predict(later("polars", "strings"))


def test_a_select_takes_a_valueless_column_as_missing():
    duckdb = pytest.importorskip("duckdb", reason="the SELECT is asked of DuckDB")
    pytest.importorskip("sqlglot", reason="to_sql needs sqlglot")
    model = po.NaiveBayes().fit(table(EMPTY["polars numbers"](20)), Y)
    rows = later("polars", "strings")
    connection = duckdb.connect()
    connection.execute("CREATE TABLE rows (x DOUBLE, c VARCHAR, e VARCHAR)")
    connection.executemany("INSERT INTO rows VALUES (?, ?, ?)", rows.rows())
    found = connection.execute(f"SELECT p_a, p_b FROM ({model.to_sql('rows')})").fetchall()
    assert_allclose(np.array(found), model.predict_proba(rows), rtol=1e-9)


def test_forgetting_all_values_of_a_column_forgets_its_kind():
    rows = later("polars", "numbers")
    model = po.NaiveBayes().fit(pl.concat([rows, table(EMPTY["polars numbers"](20))]), Y * 2)
    model.unlearn(rows, Y)
    assert model.schema_.columns[2].has_no_kind
    expected = po.NaiveBayes().fit(table(EMPTY["polars numbers"](20)), Y).predict_proba(rows)
    assert_allclose(model.predict_proba(later("polars", "strings")), expected, rtol=1e-9)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "informative"])
@pytest.mark.parametrize("respect_ranges", [True, False])
def test_nothing_is_drawn_for_such_a_column(name, respect_ranges):
    model = MODELS[name]().fit(table(EMPTY["polars numbers"](20)), Y)
    drawn, _ = model.sample(5, random_state=0, respect_ranges=respect_ranges)
    assert drawn["e"].null_count() == 5
    assert drawn.select("x", "c").null_count().sum_horizontal()[0] == 0
