"""Categories and their codes: cells survive encoding, in every type and of any number."""

import dataclasses
import itertools
import math

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal

import posteriori as po
from posteriori.reading import infer_schema, read_table
from posteriori.tables.arrays import write_column
from posteriori.tables.batch import joined
from posteriori.tables.schema import categorical_column
from posteriori.tables.writing import decode, write_table
from tests.tables.test_tables import INTEGERS, read_back, whole_batch

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
    unseen = [row for row, cell in enumerate(cells) if cell is not None and cell not in seen]
    name = "a" if batch.schema.named else "x0"
    assert batch.unseen == ({name: len(unseen)} if unseen else {})
    assert list(batch.unseen_rows.get(name, ())) == unseen
    chosen = data.draw(st.lists(st.integers(0, len(cells) - 1)), label="chosen")
    found = joined([batch, batch.rows(np.array(chosen, int)), batch.rows(slice(1, None))]).unseen_rows.get(name, ())
    order = [*range(len(cells)), *chosen, *range(1, len(cells))]
    assert list(found) == [row for row, place in enumerate(order) if place in unseen]


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


def test_an_integer_beyond_int64_is_not_a_negative_category():
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
    for n_categories, dtype in ((255, np.uint8), (256, np.uint32), (65_536, np.uint32)):
        X = np.arange(n_categories).reshape(-1, 1)
        codes = whole_batch(X, categorical=[0]).codes.values
        assert codes.dtype == dtype
        assert_array_equal(codes[:, 0], np.arange(n_categories) + 1)
        frame = pl.DataFrame({"a": [f"{k:05}" for k in range(n_categories)]})
        assert_array_equal(whole_batch(frame).codes.values[:, 0], np.arange(n_categories) + 1)


def test_every_table_encodes_columns_of_strings_and_numbers():
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
        ((rows,),) = (batch.unseen_rows.values(),)
        assert rows.tolist() == [len(cells) - 1]


def test_declared_categories_keep_their_order_even_if_unobserved():
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
    assert batch.unseen_rows["x0"].tolist() == [4]


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


def test_integers_are_written_whichever_library_names_their_type():
    schema = infer_schema(read_table(np.array([[1], [2]])))
    column = dataclasses.replace(schema.columns[0], kind="continuous", categories=(), dtype="Int64")
    written = write_table(dataclasses.replace(schema, columns=(column,)), [np.array([3.0, 4.0])])
    assert written.dtype == np.int64
    assert written[:, 0].tolist() == [3, 4]
