"""Any table in, arrays out, and back: what is read is what was there, whatever the table is made of."""

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori.reading import infer_schema, read_table
from posteriori.sources import source_of, table_source
from posteriori.tables.writing import decode
from tests.conftest import CONSTRUCTORS

INTEGERS = [np.int8, np.int16, np.int32, np.int64, np.uint8, np.uint16, np.uint32, np.uint64]


def whole_batch(X, schema=None, categorical=()):
    """Return all rows of a table as one batch."""
    table = read_table(X)
    schema = infer_schema(table, categorical=categorical) if schema is None else schema
    return source_of(table, schema, range(len(schema.columns)), local=True).batch(slice(0, table.n_rows))


def read_back(X, categorical=()):
    """Return the columns of a table as they come out of tiles and codes, lists of cells."""
    return decode(whole_batch(X, categorical=categorical)).T.tolist()


def reference(cells, labels, **parameters):
    """Return naive Bayes of the floats and codes that a person would write down for these columns."""
    table = pl.DataFrame(cells)
    return po.NaiveBayes(**parameters).fit(table, labels)


def assert_same_statistics(one, other):
    assert_array_equal(one.weight, other.weight)
    assert len(one.blocks) == len(other.blocks)
    for mine, theirs in zip(one.blocks, other.blocks, strict=True):
        for name in ("weight", "mean", "scatter", "table"):
            if hasattr(mine, name):
                assert_array_equal(getattr(mine, name), getattr(theirs, name))


# Every kind of table -------------------------------------------------------------------------------------------


def test_statistics_are_those_of_the_cells(constructor, columns, labels):
    model = po.NaiveBayes(columns=po.Columns(categorical_features=[1])).fit(constructor(columns), labels)
    moments, counts = model.statistics_.blocks
    for z, label in enumerate(["no", "yes"]):
        heights = [x for x, mine in zip(columns["height"], labels, strict=True) if mine == label and x is not None]
        assert moments.weight[z, 0] == len(heights)
        assert moments.mean[z, 0] == pytest.approx(np.mean(heights), rel=1e-14)
        assert moments.scatter[z, 0] == pytest.approx(np.var(heights) * len(heights), rel=1e-14)
        for position, name in enumerate(["floors", "sky", "windy"]):
            mine = [cell for cell, its in zip(columns[name], labels, strict=True) if its == label]
            distinct = sorted({cell for cell in columns[name] if cell is not None})
            assert_array_equal(counts.column(position)[z], [mine.count(cell) for cell in distinct])
            assert counts.missing(position)[z] == mine.count(None)
            assert model.categories_[position].tolist() == distinct


def test_every_table_gives_the_same_model_and_predictions(constructor, columns, labels):
    expected = reference(columns, labels)
    model = po.NaiveBayes().fit(constructor(columns), labels)
    assert_same_statistics(model.statistics_, expected.statistics_)
    assert [column.kind for column in model.schema_.columns] == [column.kind for column in expected.schema_.columns]
    assert_array_equal(model.predict_proba(constructor(columns)), expected.predict_proba(pl.DataFrame(columns)))


@pytest.mark.filterwarnings("ignore:X (has|does not have valid) feature names")
def test_a_model_of_one_kind_of_table_predicts_all_others(constructor, columns, labels):
    expected = reference(columns, labels, columns=po.Columns(categorical_features=[1]))
    rows = pl.DataFrame(columns)
    for fitted in (
        expected,
        po.NaiveBayes(columns=po.Columns(categorical_features=[1])).fit(constructor(columns), labels),
    ):
        assert_array_equal(fitted.predict_proba(constructor(columns)), expected.predict_proba(rows))
        assert_array_equal(fitted.predict_proba(rows), expected.predict_proba(rows))


def column_types(table):
    if isinstance(table, np.ndarray):
        return [table.dtype] * table.shape[1]
    if isinstance(table, pd.DataFrame):
        return table.dtypes.tolist()
    return table.dtypes if isinstance(table, pl.DataFrame) else table.schema.types


def n_missing(table):
    if isinstance(table, pl.DataFrame | pa.Table):
        table = pl.DataFrame(table)
        nan = sum(column.is_nan().sum() for column in table if column.dtype.is_float())
        return sum(column.null_count() for column in table) + nan
    return int(pd.isna(table).to_numpy().sum() if isinstance(table, pd.DataFrame) else pd.isna(table).sum())


def assert_like(drawn, table):
    assert type(drawn) is type(table)
    assert column_types(drawn) == column_types(table)
    if isinstance(table, pd.DataFrame | pl.DataFrame):
        assert list(drawn.columns) == list(table.columns)
    assert n_missing(drawn) == 0


def test_rows_drawn_come_as_the_table_did(constructor, columns, labels):
    table = constructor(columns)
    model = po.NaiveBayes(columns=po.Columns(categorical_features=[1])).fit(table, labels)
    drawn, drawn_labels = model.sample(200, random_state=0)
    assert_like(drawn, table)
    assert drawn_labels.dtype == model.classes_.dtype
    known = {cell for name in ("floors", "sky", "windy") for cell in columns[name] if cell is not None}
    floors, sky, windy = read_back(drawn, categorical=[1])[1:]
    assert {*floors, *sky, *windy} == known
    again = po.NaiveBayes(columns=po.Columns(categorical_features=[1])).fit(drawn, drawn_labels)
    assert [c.categories for c in again.schema_.columns] == [c.categories for c in model.schema_.columns]
    assert model.score(drawn, drawn_labels) > 0.5


def test_drawn_numbers_are_floats_of_the_same_make(constructor, columns, labels):
    table = constructor({"floors": columns["floors"]})
    drawn, _ = po.NaiveBayes().fit(table, labels).sample(3, random_state=0, respect_ranges=False)
    wanted = {"Int64": "Float64", "int64[pyarrow]": "double[pyarrow]", "int64": "double"}
    (before,), (after,) = column_types(table), column_types(drawn)
    assert str(after) == wanted.get(str(before), str(before))
    assert n_missing(drawn) == 0


@pytest.mark.parametrize(
    "table",
    [
        pd.DataFrame({"a": pd.Categorical(["b", "a", None], ["c", "b", "a"]), "x": np.float32([1, 2, 3])}),
        pd.DataFrame({"a": pd.Categorical(["b", "a", None], ["c", "b", "a"], ordered=True)}),
        pd.DataFrame({"a": pd.Categorical([3, 1, 1])}),
        pd.DataFrame({"a": pd.array([1.5, None, 2], dtype="Float32"), "b": ["u", "v", "v"]}),
        pd.DataFrame({"a": pd.Series([1.5, None, 2], dtype=pd.ArrowDtype(pa.float32()))}),
        pd.DataFrame({"a": pd.Series(["u", None, "v"], dtype=pd.ArrowDtype(pa.large_string()))}),
        pd.DataFrame({"a": [True, False, True]}),
        pl.DataFrame({"a": ["u", None, "v"]}, schema={"a": pl.Categorical}),
        pl.DataFrame({"a": ["u", None, "v"]}, schema={"a": pl.Enum(["w", "v", "u"])}),
        pl.DataFrame({"a": [1.5, None, 2]}, schema={"a": pl.Float32}),
        pl.DataFrame({"a": ["u", None, "v"]}, schema={"a": pl.Object}),
        pa.table({"a": pa.array(["u", None, "v"]).dictionary_encode(), "b": pa.array([1, 2, 3], pa.float32())}),
        pa.table({"a": pa.array(["u", None, "v"], pa.large_string()), "b": [True, None, False]}),
        np.array([["u", "v"], ["longer", "v"], ["u", "w"]]),
        np.array([[True, False], [False, False], [True, True]]),
        np.float32([[1, 2], [3, 4], [5, 5]]),
        np.array([[1.5, "u"], [None, "v"], [2.5, None]], dtype=object),
        np.array([[1.5, 2], [None, 3], [2.5, 3]], dtype=object),
    ],
    ids=lambda table: f"{type(table).__module__.split('.')[0]}-{column_types(table)[0]}",
)
def test_rows_drawn_have_the_data_types_of_the_table(table):
    model = po.NaiveBayes().fit(table, [0, 1, 1])
    drawn, _ = model.sample(50, random_state=0)
    assert_like(drawn, table)
    model.predict(drawn)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_drawn_categories_keep_the_width_of_their_integers(dtype):
    limits = np.iinfo(dtype)
    X = np.array([[limits.min], [limits.max], [limits.max]], dtype)
    expected = {limits.min, limits.max}
    for table in (X, pd.DataFrame(X, columns=["a"]), pl.DataFrame(X, schema=["a"]), pa.table({"a": X[:, 0]})):
        model = po.NaiveBayes(columns=po.Columns(categorical_features=[0])).fit(table, [0, 1, 1])
        drawn, _ = model.sample(50, random_state=0)
        assert column_types(drawn) == column_types(table)
        assert set(read_back(drawn, categorical=[0])[0]) == expected


def test_pandas_frames_without_names_are_drawn_without():
    model = po.NaiveBayes().fit(pd.DataFrame([[1.5, "u"], [2.5, "v"]]), [0, 1])
    assert model.sample(2)[0].columns.tolist() == [0, 1]
    assert not hasattr(model, "feature_names_in_")


@pytest.mark.parametrize("dtype", ["string", "str"])
def test_a_column_without_any_value_is_drawn_as_missing(dtype):
    cells = pd.Series([None, None], dtype=dtype)
    if cells.dtype == object:
        pytest.skip("before pandas 3, str is the type of any object")
    frame = pd.DataFrame({"a": cells, "b": pd.Categorical([None, None], [])})
    with pytest.warns(UserWarning, match="columns 'a', 'b' have no cell"):
        model = po.NaiveBayes().fit(frame, [0, 1])
    drawn, _ = model.sample(3)
    assert drawn.dtypes.tolist() == frame.dtypes.tolist()
    assert drawn.isna().all(axis=None)


def test_later_rows_may_hold_what_the_first_data_type_cannot():
    short = po.NaiveBayes().partial_fit(np.array([["a"], ["b"]]), np.array(["n", "y"]))
    short.partial_fit(np.array([["long"]]), np.array(["never"]))
    assert short.classes_.tolist() == ["n", "never", "y"]
    assert set(short.sample(200, random_state=0)[0].ravel().tolist()) == {"a", "b", "long"}
    for first, later in (
        (np.array([[1], [2]], np.int8), np.array([[1000]])),
        (pl.DataFrame({"a": [1, 2]}, schema={"a": pl.Int8}), pl.DataFrame({"a": [1000]})),
        (pd.DataFrame({"a": np.int8([1, 2])}), pd.DataFrame({"a": [1000]})),
        (pa.table({"a": pa.array([1, 2], pa.int8())}), pa.table({"a": [1000]})),
    ):
        narrow = po.NaiveBayes(columns=po.Columns(categorical_features=[0])).partial_fit(first, np.int8([1, 2]))
        narrow.partial_fit(later, [300])
        assert narrow.classes_.tolist() == [1, 2, 300]
        assert set(read_back(narrow.sample(200, random_state=0)[0], categorical=[0])[0]) == {1, 2, 1000}


def test_other_arrow_tables():
    batch = pa.RecordBatch.from_pydict({"a": [1.0, None, 2.0], "b": ["u", None, "v"]})
    assert read_back(batch) == [[1.0, None, 2.0], ["u", None, "v"]]
    assert read_table(batch).names == ("a", "b")


def test_sparse_pandas_columns_are_read():
    frame = pd.DataFrame({"a": pd.arrays.SparseArray([0.0, 0.0, 1.5]), "b": pd.arrays.SparseArray([0, 7, 0])})
    assert read_back(frame, categorical=[1]) == [[0.0, 0.0, 1.5], [0, 7, 0]]


# Tiles -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "table",
    [
        np.float32([[1, 2], [3, np.nan]]),
        pd.DataFrame(np.float32([[1, 2], [3, np.nan]]), columns=["a", "b"]),
        pd.DataFrame(np.float32([[1, 2], [3, np.nan]]), columns=["a", "b"]).astype("Float32"),
        pl.DataFrame({"a": [1, 3], "b": [2, None]}, schema={"a": pl.Float32, "b": pl.Float32}),
        pa.table({"a": pa.array([1, 3], pa.float32()), "b": pa.array([2, None], pa.float32())}),
    ],
    ids=["numpy", "pandas", "pandas-nullable", "polars", "pyarrow"],
)
def test_float32_stays_float32(table):
    values = whole_batch(table).numbers.values
    assert values.dtype == np.float32
    assert values.flags.c_contiguous
    assert_array_equal(values, [[1, 2], [3, np.nan]])


def test_float32_is_read_as_exactly_the_numbers_it_holds():
    X = np.random.default_rng(0).normal(1e4, 1, (200, 3)).astype(np.float32)
    y = np.arange(200) % 2
    narrow, wide = po.NaiveBayes().fit(X, y), po.NaiveBayes().fit(X.astype(float), y)
    np.testing.assert_allclose(narrow.theta_, wide.theta_, rtol=1e-12)
    np.testing.assert_allclose(narrow.var_, wide.var_, rtol=1e-9)


def test_a_row_major_array_is_not_copied():
    for dtype in (np.float32, np.float64):
        X = np.ones((100, 3), dtype)
        assert np.shares_memory(whole_batch(X).numbers.values, X)


def layouts(tmp_path):
    X = np.random.default_rng(0).integers(-3, 4, (60, 4)).astype(np.float64)
    yield "fortran", np.asfortranarray(X)
    yield "every second column", np.repeat(X, 2, axis=1)[:, ::2]
    yield "backwards", X[::-1, ::-1].copy()[::-1, ::-1]
    yield "big-endian", X.astype(">f8")
    yield "big-endian float32", X.astype(">f4")
    yield "big-endian integers", X.astype(">i4")
    readonly = X.copy()
    readonly.flags.writeable = False
    yield "readonly", readonly
    mapped = np.memmap(tmp_path / "X", X.dtype, "w+", shape=X.shape)
    mapped[:] = X
    mapped.flush()
    yield "memmap", np.memmap(tmp_path / "X", X.dtype, "r", shape=X.shape)
    unaligned = np.frombuffer(b"?" + X.tobytes(), np.uint8)[1:].view(X.dtype).reshape(X.shape)
    assert not unaligned.flags.aligned
    yield "unaligned", unaligned
    yield "float16", X.astype(np.float16)
    yield "longdouble", X.astype(np.longdouble)
    yield "objects", X.astype(object)
    for dtype in INTEGERS[:4]:
        yield np.dtype(dtype).name, X.astype(dtype)


@pytest.mark.parametrize("categorical", [None, [0, 1, 2, 3], [1, 3]], ids=["continuous", "categorical", "both"])
def test_the_layout_of_an_array_does_not_matter(tmp_path, categorical):
    X, y = None, np.arange(60) % 3
    for name, table in layouts(tmp_path):
        X = np.array(table, dtype=np.float64) if X is None else X
        expected = po.NaiveBayes(columns=po.Columns(categorical_features=categorical)).fit(X, y)
        model = po.NaiveBayes(columns=po.Columns(categorical_features=categorical)).fit(table, y)
        assert_same_statistics(model.statistics_, expected.statistics_)
        assert_array_equal(model.predict_proba(table), expected.predict_proba(X), err_msg=name)
        assert whole_batch(table).numbers.values.flags.carray, name  # else kernels would be compiled once more


def test_booleans_and_strings_of_numpy_are_categories():
    flags = np.array([[True, False], [False, False]])
    assert read_back(flags) == [[True, False], [False, False]]
    assert infer_schema(read_table(flags)).columns[1].categories == (False, True)
    words = np.array([["a", "b"], ["ccc", "b"]])
    assert read_back(words) == [["a", "ccc"], ["b", "b"]]


def test_lists_of_rows_keep_the_type_of_each_cell():
    assert read_back([[1, "a", True], [2.5, None, False]]) == [[1.0, 2.5], ["a", None], [True, False]]
    assert read_back([(True, 2), (False, 3)]) == [[True, False], [2.0, 3.0]]
    assert [c.kind for c in infer_schema(read_table([[1, 2.5], [3, 4]])).columns] == ["continuous"] * 2


def test_other_cells_that_are_missing():
    for nothing in (None, np.nan, pd.NA, pd.NaT, float("nan")):
        X = np.array([[1.5, "a"], [nothing, nothing]], dtype=object)
        assert read_back(X) == [[1.5, None], ["a", None]]


def test_numbers_of_many_makes_in_one_object_column():
    cells = [1, 2.5, np.int8(3), np.float32(0.5), np.uint64(7), None]
    assert read_back(np.array([[cell] for cell in cells], dtype=object)) == [[1, 2.5, 3, 0.5, 7, None]]


# Batches and threads ---------------------------------------------------------------------------------------------


@pytest.fixture
def small_batches(monkeypatch):
    monkeypatch.setattr(table_source, "_TILE_BYTES", 1)
    monkeypatch.setattr(table_source, "_FEWEST_ROWS", 16)


def wide_table(n):
    rng = np.random.default_rng(0)
    columns = {
        "height": [None if rng.random() < 0.2 else x for x in rng.normal(1e6, 1, n).tolist()],
        "sky": [None if rng.random() < 0.2 else "abc"[k] for k in rng.integers(0, 3, n)],
        "floors": rng.integers(-4, 5, n).tolist(),
    }
    return columns, rng.integers(0, 3, n)


@pytest.mark.parametrize(
    "constructor",
    [pytest.param(make, id=name) for name, make in CONSTRUCTORS.items()],
    indirect=True,
)
def test_the_number_of_threads_changes_no_bit(constructor, small_batches):
    columns, y = wide_table(333)
    table = constructor(columns)
    weight = np.random.default_rng(1).random(333)
    sizes = []
    posteriors = []
    models = []
    for n_jobs in (1, 2, -1, None):
        model = po.NaiveBayes(n_jobs=n_jobs, columns=po.Columns(categorical_features=[2])).fit(table, y, weight)
        models.append(model)
        posteriors.append(model.predict_proba(table))
        source = source_of(read_table(table), model.schema_, range(3), n_jobs=n_jobs, progress=sizes.append, local=True)
        rows = source.map(lambda batch: np.arange(batch.start, batch.start + len(batch)))
        assert_array_equal(rows, np.arange(333))
    assert len(sizes) > 4 * 8
    assert sum(sizes) == 4 * 333
    for other in models[1:]:
        assert_same_statistics(models[0].statistics_, other.statistics_)
    for other in posteriors[1:]:
        assert_array_equal(posteriors[0], other)


def test_small_batches_give_what_one_batch_gives(constructor, monkeypatch):
    columns, y = wide_table(200)
    table = constructor(columns)
    whole = po.NaiveBayes(columns=po.Columns(categorical_features=[2])).fit(table, y)
    monkeypatch.setattr(table_source, "_TILE_BYTES", 1)
    monkeypatch.setattr(table_source, "_FEWEST_ROWS", 8)
    parts = po.NaiveBayes(columns=po.Columns(categorical_features=[2])).fit(table, y)
    for mine, theirs in zip(whole.statistics_.blocks, parts.statistics_.blocks, strict=True):
        assert_array_equal(mine.observed(), theirs.observed())
    assert_array_equal(whole.category_count_[0], parts.category_count_[0])
    np.testing.assert_allclose(parts.var_, whole.var_, rtol=1e-9)
    np.testing.assert_allclose(parts.predict_proba(table), whole.predict_proba(table), rtol=1e-9)
    drawn = parts.explain(table).values
    assert drawn[:, 1].tolist() == columns["sky"]


def test_rows_are_named_by_their_place_in_the_whole_table(small_batches):
    X = np.ones((100, 2))
    y = np.arange(100) % 2
    model = po.NaiveBayes(n_jobs=1).fit(X, y)
    X[77, 1] = np.inf
    for call in (lambda: po.NaiveBayes(n_jobs=1).fit(X, y), lambda: model.predict(X)):
        with pytest.raises(ValueError, match="column 'x1' holds inf in row 77;"):
            call()
    labels = np.where(np.arange(100) == 83, None, y.astype(object))
    with pytest.raises(ValueError, match="row 83 is missing"):
        po.NaiveBayes(n_jobs=1, labels=po.Labels(unlabelled="error")).fit(np.ones((100, 2)), labels)
    words = np.array([[1.0]] * 90 + [["a"]] * 10, dtype=object)
    with pytest.raises(ValueError, match="column 'x0' was numeric in training but holds 'a' in row 90;"):
        po.NaiveBayes(n_jobs=1).fit(np.ones((9, 1)), np.zeros(9)).predict(words)


def test_unseen_categories_are_counted_over_all_batches(small_batches):
    model = po.NaiveBayes().fit(pl.DataFrame({"a": ["u", "v"], "b": ["s", "t"]}), [0, 1])
    rows = pl.DataFrame({"a": ["u", "w"] * 50, "b": ["t"] * 99 + ["q"]})
    with pytest.warns(UserWarning, match="50 cells of column 'a', 1 cell of column 'b'") as caught:
        posterior = model.predict_proba(rows)
    assert len(caught) == 1
    blank = rows.with_columns(pl.col("a").replace("w", None), pl.col("b").replace("q", None))
    assert_array_equal(posterior, model.predict_proba(blank))
