"""Any table in, arrays out, and back: what is read is what was there, whatever the table is made of."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori.sources import source_of, table_source
from posteriori.tables import infer_schema, read_table
from posteriori.tables.arrays import write_column
from posteriori.tables.schema import categorical_column
from posteriori.tables.writing import decode, write_table
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


# Codes -----------------------------------------------------------------------------------------------------------

cells_of_one_type = st.sampled_from(
    [
        st.integers(-(2**63), 2**63 - 1),
        st.integers(-5, 5),
        st.integers(2**53 - 2, 2**53 + 2),
        st.floats(allow_nan=False, allow_infinity=False),
        st.sampled_from([0.5, 1.0, 2.0**53, 1e300, -1e300]),
        st.text(st.characters(codec="utf-8", exclude_characters="\x00"), max_size=3),
        st.booleans(),
    ]
).flatmap(lambda cells: st.lists(st.none() | cells, min_size=1, max_size=20))


def cells_held(table, cells):
    """Return the cells as the table holds them: plain pandas turns integers beside missing cells into floats."""
    if isinstance(table, pd.DataFrame) and table["a"].dtype == np.float64:
        return [None if math.isnan(cell) else cell for cell in table["a"].tolist()]
    return cells


@given(cells=cells_of_one_type)
def test_cells_survive_encoding(constructor, cells):
    """Decode ∘ encode is the identity on categorical columns of every type."""
    table = constructor({"a": cells})
    assert read_back(table, categorical=[0]) == [cells_held(table, cells)]


@given(cells=cells_of_one_type, data=st.data())
def test_a_cell_that_no_category_matches_is_missing_and_counted(constructor, cells, data):
    known = data.draw(st.sets(st.sampled_from(cells)), label="known") - {None}
    assume(known)
    schema = infer_schema(read_table(constructor({"a": sorted(known)})), categorical=[0])
    table = constructor({"a": cells})
    batch, cells = whole_batch(table, schema), cells_held(table, cells)
    seen = set(schema.columns[0].categories)
    assert decode(batch)[:, 0].tolist() == [cell if cell in seen else None for cell in cells]
    unseen = sum(cell is not None and cell not in seen for cell in cells)
    assert batch.unseen == ({"a" if batch.schema.named else "x0": unseen} if unseen else {})


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_integer_categories_of_every_width(dtype, data):
    limits = np.iinfo(dtype)
    edges = [value for value in (limits.min, -1, 0, 255, 256, 2**53 + 1, limits.max) if limits.min <= value]
    near = st.sampled_from([value for value in edges if value <= limits.max])
    values = data.draw(st.lists(near | st.integers(int(limits.min), int(limits.max)), min_size=1, max_size=30))
    X = np.array(values, dtype).reshape(-1, 1)
    schema = infer_schema(read_table(X), categorical=[0])
    assert schema.columns[0].categories == tuple(np.unique(X).tolist())
    assert decode(whole_batch(X, schema))[:, 0].tolist() == values


def test_an_integer_too_large_for_int64_is_not_a_negative_category():
    schema = infer_schema(read_table(np.array([[-1], [5]])), categorical=[0])
    batch = whole_batch(np.array([[2**64 - 1], [5]], np.uint64), schema)
    assert decode(batch)[:, 0].tolist() == [None, 5]
    assert batch.unseen == {"x0": 1}


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.longdouble])
def test_float_columns_as_categories(dtype):
    X = np.array([[0.5], [np.nan], [2], [0.5], [-3]], dtype)
    assert read_back(X, categorical=[0]) == [[0.5, None, 2.0, 0.5, -3.0]]


def test_integers_and_floats_of_one_value_are_one_category():
    large = 2**24 + 1  # float32 rounds it
    schema = infer_schema(read_table(np.array([[large - 1], [large + 1], [7]])), categorical=[0])
    for dtype in (np.float32, np.float64):
        batch = whole_batch(np.array([[large - 1], [large + 1], [7], [7.5], [np.nan], [np.inf]], dtype), schema)
        assert decode(batch)[:, 0].tolist() == [large - 1, large + 1, 7, None, None, None]
        assert batch.unseen == {"x0": 2}


def test_codes_are_as_narrow_as_the_categories_allow():
    for n_categories, dtype in ((255, np.uint8), (256, np.uint16), (65_535, np.uint16), (65_536, np.uint32)):
        X = np.arange(n_categories).reshape(-1, 1)
        codes = whole_batch(X, categorical=[0]).codes.values
        assert codes.dtype == dtype
        assert_array_equal(codes[:, 0], np.arange(n_categories) + 1)
        frame = pl.DataFrame({"a": [f"{k:05}" for k in range(n_categories)]})
        assert_array_equal(whole_batch(frame).codes.values[:, 0], np.arange(n_categories) + 1)


def test_columns_of_strings_and_numbers_are_encoded_by_every_table():
    mixed = infer_schema(read_table(pd.DataFrame({"a": pd.Series([2, "u", 1.5, "v"], dtype=object)})), categorical=[0])
    assert mixed.columns[0].categories == (1.5, 2, "u", "v")
    for table, cells in (
        (pl.DataFrame({"a": ["v", None, "w"]}), ["v", None, None]),
        (pl.DataFrame({"a": [2, None, 3]}), [2, None, None]),
        (pd.DataFrame({"a": ["v", None, "w"]}), ["v", None, None]),
        (pd.DataFrame({"a": [1.5, None, 3]}), [1.5, None, None]),
        (np.array([["v"], ["w"]]), ["v", None]),
        (np.array([[2], [3]]), [2, None]),
    ):
        batch = whole_batch(table, mixed)
        assert decode(batch)[:, 0].tolist() == cells
        assert list(batch.unseen.values()) == [1]


def test_declared_categories_keep_their_order_and_those_unobserved():
    for table in (
        pd.DataFrame({"a": pd.Categorical(["m", "s"], ["s", "m", "l"], ordered=True)}),
        pl.DataFrame({"a": ["m", "s"]}, schema={"a": pl.Enum(["s", "m", "l"])}),
    ):
        model = po.NaiveBayes(alpha=0).fit(table, [0, 1])
        assert model.categories_[0].tolist() == ["s", "m", "l"]
        assert_array_equal(model.category_count_[0], [[0, 1, 0], [1, 0, 0]])


def test_new_categories_follow_the_declared_ones():
    declared = pd.DataFrame({"a": pd.Categorical(["m", "s"], ["s", "m", "l"])})
    model = po.NaiveBayes().partial_fit(declared, [0, 1])
    model.partial_fit(pd.DataFrame({"a": ["xxl", "m", "xl"]}), [0, 0, 1])
    assert model.categories_[0].tolist() == ["s", "m", "l", "xl", "xxl"]
    assert_array_equal(model.category_count_[0], [[0, 2, 0, 0, 1], [1, 0, 0, 1, 0]])
    drawn, _ = model.sample(5)
    assert drawn["a"].dtype == pd.CategoricalDtype(["s", "m", "l", "xl", "xxl"])


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
    [
        pytest.param(make, id=name, marks=[] if name in ("numpy", "polars") else pytest.mark.long)
        for name, make in CONSTRUCTORS.items()
    ],
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
        po.NaiveBayes(n_jobs=1).fit(np.ones((100, 2)), labels)
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


# Columns ---------------------------------------------------------------------------------------------------------


def test_categories_are_sorted_numbers_before_strings():
    for cells in itertools.permutations(["b", 2, "a", 10, -0.5]):
        assert categorical_column("c", cells, "object").categories == (-0.5, 2, 10, "a", "b")


def test_extending_a_column_leaves_no_trace_of_the_order():
    parts = [categorical_column("c", cells, "") for cells in (["b"], ["d", "a"], [], ["c", "a"])]
    for first, *others in itertools.permutations(parts):
        for other in others:
            first = first.extended(other)
        assert first.categories == ("a", "b", "c", "d")


@pytest.mark.parametrize("kind", ["array", "array of floats", "pandas category", "pandas object", "polars"])
def test_categories_beyond_16_bits_are_read_from_every_table(kind):
    known, rows = np.arange(65_540), np.array([65_539, 65_535, 65_536, 1, -1])
    make = {
        "array": lambda cells: cells.reshape(-1, 1),
        "array of floats": lambda cells: cells.reshape(-1, 1) + 0.5,
        "pandas category": lambda cells: pd.DataFrame({"x0": pd.Categorical(cells.astype(str))}),
        "pandas object": lambda cells: pd.DataFrame({"x0": cells.astype(str).astype(object)}),
        "polars": lambda cells: pl.DataFrame({"x0": cells.astype(str)}),
    }[kind]
    schema = infer_schema(read_table(make(known)), categorical=[0])
    batch = whole_batch(make(rows), schema)
    read = [None if code == 0 else schema.columns[0].categories[code - 1] for code in batch.codes.values[:, 0]]
    assert read == [*np.asarray(make(rows[:-1]))[:, 0].tolist(), None]
    assert batch.unseen == {"x0": 1}


def test_more_categories_than_codes(monkeypatch):
    monkeypatch.setattr("posteriori.tables.schema.MAX_CATEGORIES", 99)
    many = np.arange(100)
    declared = pd.DataFrame({"a": pd.Categorical.from_codes([0, 1], many.astype(str))})
    for X, categorical in ((many.reshape(-1, 1), [0]), (pl.DataFrame({"a": many.astype(str)}), None), (declared, None)):
        with pytest.raises(ValueError, match=r"column '(x0|a)' has 100 categories, more than 99; leave it out"):
            po.NaiveBayes(columns=po.Columns(categorical_features=categorical)).fit(X, np.arange(len(X)) % 2)
    with pytest.raises(ValueError, match="column 'y' has 100 categories"):
        po.NaiveBayes().fit(np.zeros((len(many), 1)), many)
    full = pd.DataFrame({"a": pd.Categorical.from_codes([0, 1], many[:-1].astype(str))})
    for X in (full, pd.DataFrame({"a": many[:-1].astype(str)})):
        model = po.NaiveBayes().partial_fit(X, np.arange(len(X)) % 2)
        with pytest.raises(ValueError, match="column 'a' has 100 categories"):
            model.partial_fit(pd.DataFrame({"a": ["new"]}), [0])


def test_written_categories_have_the_type_that_was_read():
    for cells, dtype, expected in (
        ([1, 2], "<i4", np.int32),
        ([1, 2], "Int16", np.int16),
        ([1, 2], "uint8[pyarrow]", np.uint8),
        ([0, 2**64 - 1], "uint64", np.uint64),
        ([1, 300], "int8", np.int64),
        ([0.5, 2.0], "<f4", np.float32),
        ([0.1], "<f4", np.float64),
        (["a", "long"], "<U1", np.dtype("<U4")),
        (["a"], "str", object),
        ([1, "a"], "<i8", object),
        ([False, True], "|b1", bool),
    ):
        written = write_column(categorical_column("c", cells, dtype))
        assert written.dtype == expected
        assert written.tolist() == cells


def test_integers_of_an_array_are_written_whatever_library_names_their_type():
    schema = infer_schema(read_table(np.array([[1], [2]])))
    column = dataclasses.replace(schema.columns[0], kind="continuous", categories=(), dtype="Int64")
    written = write_table(dataclasses.replace(schema, columns=(column,)), [np.array([3.0, 4.0])])
    assert written.dtype == np.int64
    assert written[:, 0].tolist() == [3, 4]
