"""A regressor as functions of arrays has the density of `predict_density`: run by NumPy, and by onnxruntime."""

import math
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import posteriori as po
from posteriori.cli import main
from posteriori.program.cells import ArrayCells
from posteriori.support.arrays import erfc
from tests.program.test_programs import onnx_cells
from tests.sql.test_to_sql import mixed_rows, with_holes

REGRESSORS = {"additive": po.AdditiveRegressor, "kernel": po.KernelRegressor}
DAY = 86_400_000_000


def columns(rng, n, offset=0.0):
    return pl.DataFrame(
        {
            "size": rng.normal(size=n) + offset,
            "count": rng.integers(0, 5, n),
            "kind": rng.choice(list("abcd"), n),
            "is": rng.random(n) < 0.5,
            "day": pl.Series(rng.integers(0, 20_000, n) * DAY).cast(pl.Datetime("us")),
        }
    )


def signal(frame):
    """Return a number that follows from the first and the third column."""
    size = frame["size"].to_numpy()
    return size - size.mean() + 2.0 * (frame["kind"] == "a").to_numpy()


def far():
    """Columns and a target at an offset of 1e9, with a few gaps, which have no marks."""
    rng = np.random.default_rng(0)
    frame = columns(rng, 150, 1e9)
    return with_holes(frame, 0.02, rng), signal(frame) * 10.0 + rng.normal(size=150) + 1e9


def atoms():
    """Many gaps, which have marks, and a target that is 0 in a third of the rows and skew in the others."""
    rng = np.random.default_rng(1)
    frame = columns(rng, 150)
    y = np.where(rng.random(150) < 0.3, 0.0, np.exp(signal(frame) + rng.normal(size=150)))
    return with_holes(frame, 0.2, rng), y


def points():
    """Categories and truth values, and a target of multiples of a tenth."""
    rng = np.random.default_rng(2)
    frame = columns(rng, 150)
    return frame.select("kind", "is"), rng.poisson(np.exp(0.5 * signal(frame))) / 10.0


def one():
    """One column of numbers, and few rows."""
    x = np.arange(30.0)
    return pl.DataFrame({"x": x}), np.sqrt(x) + x % 3


TABLES = {table.__name__: table for table in (far, atoms, points, one)}


def strange(frame, rng):
    """Return rows with more gaps, rows without any known cell, unseen categories and numbers far from training."""
    more = with_holes(frame, 0.4, rng)
    numbers = [name for name, kind in frame.schema.items() if kind == pl.Float64]
    more = more.with_columns(pl.col(name) + pl.Series(rng.choice([0, 0, 50], frame.height)) for name in numbers)
    if "kind" in frame.columns:
        unseen = pl.Series(rng.random(frame.height) < 0.2)
        more = more.with_columns(kind=pl.when(unseen).then(pl.lit("never seen")).otherwise("kind"))
    return pl.concat([frame.head(40), more.head(60), with_holes(frame.head(2), 1.0, rng)], how="vertical_relaxed")


def by_numpy(model, frame):
    """Return the probabilities by the functions of arrays, run by NumPy."""
    found = model.fitted_.found
    return (model._source(frame).map(lambda batch: found.student_of_cells(ArrayCells.of(batch))),)


def session_of(model):
    """Return a session of onnxruntime with the graph of a model, after its check."""
    onnx = pytest.importorskip("onnx", reason="onnx is absent: pip install -e '.[onnx]'")
    runtime = pytest.importorskip("onnxruntime", reason="onnxruntime is absent: pip install -e '.[onnx]'")
    graph = model.to_onnx()
    onnx.checker.check_model(graph, full_check=True)
    return runtime.InferenceSession(graph.SerializeToString())


def by_onnxruntime(model, frame):
    """Return the outputs of the graph of all rows; those of a single row and of no row fit to them."""
    session = session_of(model)
    found = session.run(None, onnx_cells(session, frame))
    for row in (0, frame.height // 2):
        for one, of_all in zip(session.run(None, onnx_cells(session, frame[row])), found, strict=True):
            np.testing.assert_allclose(one[0], of_all[row], rtol=1e-12, atol=1e-14)
    assert [one.shape[0] for one in session.run(None, onnx_cells(session, frame.head(0)))] == [0] * 4
    return found


ENGINES = {"numpy": by_numpy, "onnxruntime": by_onnxruntime}


def require_agreement(model, y, frame, engine):
    """An engine has the density of every row of a frame, and its mean and interval if it gives these."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of unseen categories, and of numbers far from those of training
        density = model.predict_density(frame)
        *numbers, p = ENGINES[engine](model, frame)
    near = 1e-9 * np.std(y) + 4 * np.spacing(np.abs(y).max())
    np.testing.assert_allclose(p, density.probability, rtol=0, atol=1e-9)
    for found, wanted in zip(numbers, (density.mean, *density.interval().T), strict=False):
        np.testing.assert_allclose(found, wanted, rtol=0, atol=near)


@pytest.mark.parametrize("engine", ENGINES)
@pytest.mark.parametrize("table", TABLES)
@pytest.mark.parametrize("name", REGRESSORS)
def test_every_engine_has_the_density_of_python(name, table, engine):
    frame, y = TABLES[table]()
    model = REGRESSORS[name]().fit(frame, y)
    assert bool(model.fitted_.found.atoms.any()) == (table == "atoms")
    assert bool(model.fitted_.found.design.features.gaps) == (table == "atoms")
    assert (model.fitted_.cells.step > 0) == (table == "points")
    require_agreement(model, y, strange(frame, np.random.default_rng(3)), engine)


@settings(max_examples=8)
@given(
    seed=st.integers(0, 2**32 - 1),
    shape=st.tuples(st.integers(0, 3), st.integers(0, 3)),
    gaps=st.sampled_from([0.0, 0.03, 0.3]),
    name=st.sampled_from(sorted(REGRESSORS)),
)
def test_programs_have_the_density_of_tables_of_any_shape(seed, shape, gaps, name):
    rng = np.random.default_rng(seed)
    numbers, categories = shape
    frame, y = mixed_rows(rng, 60, numbers, max(categories, 1 - numbers), 3)
    y = y + rng.normal(size=60)
    frame = with_holes(frame, gaps, rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = REGRESSORS[name]().fit(frame, y)
    require_agreement(model, y, with_holes(frame, 0.5, rng), "numpy")


def test_rows_that_python_refuses_have_no_number_in_a_graph():
    frame, y = one()
    model = po.AdditiveRegressor().fit(frame, y)
    with pytest.raises(ValueError, match="infin"):
        model.predict(pl.DataFrame({"x": [1.0, np.inf]}))
    for output in session_of(model).run(None, {"x": np.array([1.0, np.inf, -np.inf])}):
        assert np.isfinite(output[0]).all()
        assert np.isnan(output[1:]).all()


def test_a_graph_has_no_column_of_the_name_of_an_output():
    frame, y = one()
    with pytest.raises(ValueError, match="a column is named 'prediction_low'"):
        po.AdditiveRegressor().fit(frame.rename({"x": "prediction_low"}), y).to_onnx()


@pytest.mark.filterwarnings("ignore::UserWarning")  # of few rows
def test_the_command_line_writes_sums_and_refuses_trees(tmp_path, capsys):
    onnx = pytest.importorskip("onnx", reason="onnx is absent: pip install -e '.[onnx]'")
    frame, y = one()
    model, graph = tmp_path / "m.posteriori", tmp_path / "m.onnx"
    po.save(po.AdditiveRegressor().fit(frame, y), model)
    assert main(["export", str(model), "--to", "onnx", "-o", str(graph)]) == 0
    names = ["prediction", "prediction_low", "prediction_high", "probabilities"]
    assert [output.name for output in onnx.load(graph).graph.output] == names
    graph.unlink()
    po.save(po.GenerativeRegressor().fit(frame, y), model)
    assert main(["export", str(model), "--to", "onnx", "-o", str(graph)]) == 0
    assert "this is its additive member" in capsys.readouterr().err
    assert [output.name for output in onnx.load(graph).graph.output] == names
    graph.unlink()
    po.save(po.GenerativeRegressor(["forest"]).fit(frame, y), model)
    assert main(["export", str(model), "--to", "onnx", "-o", str(graph)]) == 2
    assert "GenerativeRegressor, which has no graph of ONNX; fit --model additive or kernel" in capsys.readouterr().err
    assert not graph.exists()


def test_erfc_is_precise_in_both_tails():
    x = np.concatenate([np.linspace(-8.0, 26.0, 20_001), [-0.46875, 0.0, 0.46875, 0.5, 4.0, 27.5, np.inf, -np.inf]])
    np.testing.assert_allclose(erfc(x), [math.erfc(one) for one in x.tolist()], rtol=1e-14, atol=1e-320)
    assert np.isnan(erfc(np.array([np.nan]))).all()
