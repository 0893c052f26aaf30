"""An expression of polars gives what `predict_to` writes, in frames, lazily and streamed."""

import datetime as dt
import warnings
from functools import cache

import numpy as np
import polars as pl
import pytest
from polars.testing import assert_frame_equal

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.registry import Subject
from tests.outputs import MODELS, PENGUINS, TARGETS, asked, fitted

SCORED = [name for name in MODELS if name != "ChowLiuTree"]
ABSENT = "flipper_length_mm"  # a column that the frame lacks
model_of = cache(fitted)


def strange_rows(unseen=True):
    """Return rows with gaps in every column, and unseen categories."""
    rng = np.random.default_rng(0)
    rows = PENGUINS.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
    rows = rows.with_columns(pl.when(pl.Series(rng.random(len(rows)) > 0.2)).then(pl.col(one)) for one in rows.columns)
    strange = pl.Series(rng.random(len(rows)) < 0.1) if unseen else pl.lit(False)
    return rows.with_columns(island=pl.when(strange).then(pl.lit("Atlantis")).otherwise("island"))


def written(model, rows, folder):
    """Return what `predict_to` writes; of a network, which it does not take, what `answer` says."""
    if model.subject is Subject.VARIABLES:
        answer = model.answer(rows, "sex")
        shares = {f"p_{state}": answer.probability[:, k] for k, state in enumerate(answer.meaning.labels)}
        return pl.DataFrame({"prediction": answer.mode, **shares}, schema_overrides={"prediction": pl.String})
    proba = model.subject in (Subject.CLASS, Subject.COMPONENT)
    po.predict_to(model, rows, folder / "out.parquet", proba, **asked(model))
    frame = pl.read_parquet(folder / "out.parquet")
    if model.subject is Subject.COLUMNS:
        answer = model.answer(rows, "sex", method="joint")
        frame = frame.with_columns(
            pl.Series(f"p_{label}", answer.probability[:, k]) for k, label in enumerate(answer.meaning.labels)
        )
    return frame


@pytest.mark.parametrize("name", SCORED)
@pytest.mark.filterwarnings("ignore")
def test_it_is_what_predict_to_writes_also_streamed(name, tmp_path):
    model = model_of(name)
    if model.subject is Subject.VARIABLES:
        rows = strange_rows(unseen=False).select("species", "island", "sex")
    else:
        rows = strange_rows().drop(ABSENT)
    targets = {TARGETS.get(model.subject), *asked(model).values()}
    has = [one for one in rows.columns if one not in targets]
    expression = po.to_polars(model, **asked(model), columns=has)
    wanted = written(model, rows, tmp_path)
    eager = rows.select(expression.alias("p")).unnest("p")
    assert_frame_equal(eager, wanted, abs_tol=1e-9, rel_tol=1e-9)
    lazy = pl.concat([rows.lazy()] * 3).with_columns(expression.alias("p"))
    lazy.sink_parquet(tmp_path / "sunk.parquet")
    for found in (lazy.collect(engine="streaming"), pl.read_parquet(tmp_path / "sunk.parquet")):
        assert_frame_equal(found.drop("p"), pl.concat([rows] * 3))
        assert_frame_equal(found.select("p").unnest("p"), pl.concat([wanted] * 3), abs_tol=1e-9, rel_tol=1e-9)


def test_cells_of_all_kinds_are_read_as_python_reads_them(tmp_path):
    n = 400
    rows = pl.DataFrame(
        {
            "a day": pl.Series([dt.date(2024, 1, 1) + dt.timedelta(days=k) for k in range(n)]),
            "count": [2**53 + 1 + k % 2 for k in range(n)],
            'x"y': pl.Series(["u", "v", None, "w"] * (n // 4), dtype=pl.Categorical),
            "is it": [k % 3 == 0 for k in range(n)],
            "key": [f"{k:06}" for k in range(n)],
            "y": [k % 4 > 1 for k in range(n)],
        }
    )
    with pytest.warns(po.tables.IgnoredColumnWarning, match="key"):
        model = po.NaiveBayes(columns=po.Columns(categorical_features=["count"])).fit(rows, "y")
    wanted = written(model, rows.drop("y"), tmp_path)
    found = rows.drop("key").lazy().select(po.to_polars(model)).unnest("posterior").collect(engine="streaming")
    assert_frame_equal(found, wanted)
    assert found.schema == {"prediction": pl.Boolean, "p_false": pl.Float64, "p_true": pl.Float64}


def test_a_warning_is_given_once_at_the_line_of_the_user():
    model, rows = model_of("NaiveBayes"), strange_rows()
    expression = po.to_polars(model)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for _ in range(3):
            rows.select(expression)
    assert [str(one.message).split(":")[0] for one in caught] == ["categories unseen in training count as missing"]
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="unseen"):
        rows.select(po.to_polars(model))


def test_no_rows_give_the_same_types():
    expression = po.to_polars(model_of("NaiveBayes"))
    none = PENGUINS.clear()
    assert none.select(expression).schema == none.lazy().select(expression).collect_schema()
    assert none.select(expression).schema == PENGUINS.select(expression).schema


def test_columns_of_a_model_without_names_are_those_of_its_array():
    rows = load_penguins().drop_nulls()
    x = rows.select("bill_depth_mm", "body_mass_g").to_numpy().astype(float)
    model = po.GaussianDiscriminant().fit(x, rows["species"].to_list())
    with pytest.warns(UserWarning, match="without feature names"):
        found = pl.DataFrame(x, ["x0", "x1"]).select(po.to_polars(model)).unnest("posterior")
    np.testing.assert_allclose(found.select(pl.col("^p_.*$")).to_numpy(), model.predict_proba(x), rtol=1e-12)


def test_errors_name_what_is_wrong():
    model = model_of("NaiveBayes")
    with pytest.raises(TypeError, match="ChowLiuTree has no expression"):
        po.to_polars(po.ChowLiuTree())
    with pytest.raises(ValueError, match="state it for these models alone"):
        po.to_polars(model, "sex")
    with pytest.raises(ValueError, match="state it for these models alone"):
        po.to_polars(po.JointModel())
    with pytest.raises(ValueError, match="no column 'iland'; did you mean 'island'"):
        po.to_polars(model, columns=["iland"])
    with pytest.raises(ValueError, match="columns is empty"):
        po.to_polars(model, columns=[])
    with pytest.raises(pl.exceptions.ColumnNotFoundError, match="sex"):
        PENGUINS.drop("sex").select(po.to_polars(model))
