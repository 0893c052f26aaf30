"""Every type of a column of Arrow, pandas and polars is read right, or refused by the name of the column."""

import datetime
import decimal
import warnings

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.compute as pc
import pytest

import posteriori as po

_Y = ["a", "b"] * 6
_OTHER = [1.0, 2.0, 3.0] * 4
_NUMBERS, _STRINGS, _TRUTH = [1, 2, None] * 4, ["u", "v", None] * 4, [True, False, None] * 4
_DATES = [datetime.date(2024, 1, 1), datetime.date(2024, 3, 1), None] * 4
_MOMENTS = [datetime.datetime(2024, 1, 1, 3), datetime.datetime(2024, 3, 1, 4), None] * 4
_HOURS = [datetime.time(8), datetime.time(9), None] * 4
_SPANS = [datetime.timedelta(1), datetime.timedelta(2), None] * 4
_DECIMALS = [decimal.Decimal(1), decimal.Decimal(2), None] * 4
_BYTES = [b"ab", b"cd", None] * 4

# A type of Arrow, its cells, and the cells of polars that say the same; None where the type is refused.
_ARROW = [
    (pa.null(), [None] * 12, [None] * 12),
    (pa.bool_(), _TRUTH, _TRUTH),
    *((getattr(pa, f"{sign}int{bits}")(), _NUMBERS, _NUMBERS) for sign in ("", "u") for bits in (8, 16, 32, 64)),
    (pa.float16(), [np.float16(1), np.float16(2), None] * 4, _NUMBERS),
    (pa.float32(), _NUMBERS, _NUMBERS),
    (pa.float64(), _NUMBERS, _NUMBERS),
    (pa.decimal128(10, 2), _DECIMALS, _NUMBERS),
    (pa.decimal256(60, 2), _DECIMALS, _NUMBERS),
    *((kind, _STRINGS, _STRINGS) for kind in (pa.string(), pa.large_string(), pa.string_view())),
    *((kind, _DATES, _DATES) for kind in (pa.date32(), pa.date64())),
    *((pa.timestamp(unit), _MOMENTS, _MOMENTS) for unit in ("s", "ms", "us", "ns")),
    (pa.timestamp("us", "UTC"), _MOMENTS, pl.Series(_MOMENTS).dt.replace_time_zone("UTC")),
    *((kind, _HOURS, _HOURS) for kind in (pa.time32("s"), pa.time32("ms"), pa.time64("us"), pa.time64("ns"))),
    *((pa.duration(unit), _SPANS, _SPANS) for unit in ("s", "ms", "us", "ns")),
    (pa.dictionary(pa.int8(), pa.string()), _STRINGS, _STRINGS),
    (pa.dictionary(pa.int32(), pa.int64()), _NUMBERS, _NUMBERS),
    (pa.dictionary(pa.int8(), pa.float64()), _NUMBERS, _NUMBERS),
    (pa.run_end_encoded(pa.int32(), pa.int64()), _NUMBERS, _NUMBERS),
    (pa.run_end_encoded(pa.int16(), pa.string()), _STRINGS, _STRINGS),
    (pa.run_end_encoded(pa.int32(), pa.decimal256(50, 1)), _DECIMALS, _NUMBERS),
    *((kind, _BYTES, None) for kind in (pa.binary(), pa.large_binary(), pa.binary_view(), pa.binary(2))),
    (pa.month_day_nano_interval(), [(1, 2, 3), (2, 3, 4), None] * 4, None),
    *((kind(pa.int64()), [[1], [2], None] * 4, None) for kind in (pa.list_, pa.large_list, pa.list_view)),
    (pa.struct([("q", pa.decimal256(50, 1))]), [{"q": decimal.Decimal(1)}, None, None] * 4, None),
    (pa.map_(pa.string(), pa.int64()), [[("k", 1)], [("k", 2)], None] * 4, None),
]

_PANDAS = [
    *(
        (pd.Series([1, 2, None] * 4, dtype=kind), _NUMBERS)
        for kind in ("float32", "float64", "Int8", "Int64", "UInt16", "Float32", "Float64", "object", "Sparse[float]")
    ),
    (pd.Series([1, 2, 3] * 4, dtype="int16"), [1, 2, 3] * 4),
    *((pd.Series(_STRINGS, dtype=kind), _STRINGS) for kind in ("object", "string", "category", "str")),
    (pd.Series(_TRUTH, dtype="boolean"), _TRUTH),
    (pd.Series(_DECIMALS, dtype="object"), _NUMBERS),
    (pd.Series(_MOMENTS, dtype="datetime64[ns]"), _MOMENTS),
    (pd.Series(_SPANS, dtype="timedelta64[ns]"), _SPANS),
    (pd.Series([1j, 2j, None] * 4, dtype="complex128"), None),
    (pd.Series(pd.arrays.IntervalArray.from_breaks(range(13))), None),
]

_POLARS = [
    *(
        (pl.Series([1, 2, None] * 4, dtype=kind), _NUMBERS)
        for kind in (
            *(pl.Int8, pl.Int16, pl.Int32, pl.Int64, pl.Int128, pl.UInt8, pl.UInt16, pl.UInt32, pl.UInt64),
            *(pl.Float32, pl.Float64, pl.Decimal(10, 2)),
        )
    ),
    *((pl.Series(_STRINGS, dtype=kind), _STRINGS) for kind in (pl.String, pl.Categorical, pl.Enum(["u", "v"]))),
    (pl.Series(_TRUTH), _TRUTH),
    (pl.Series([None] * 12), [None] * 12),
    (pl.Series(_DATES), _DATES),
    (pl.Series(_MOMENTS), _MOMENTS),
    (pl.Series(_HOURS), _HOURS),
    (pl.Series(_SPANS), _SPANS),
    (pl.Series(_STRINGS, dtype=pl.Object), _STRINGS),
    (pl.Series(_BYTES), None),
    (pl.Series([[1], [2], None] * 4), None),
    (pl.Series([[1], [2], None] * 4, dtype=pl.Array(pl.Int64, 1)), None),
    (pl.Series([{"q": 1}, {"q": 2}, None] * 4), None),
]


def _arrow(kind, cells):
    if pa.types.is_run_end_encoded(kind):
        return pc.run_end_encode(pa.array(cells, kind.value_type), run_end_type=kind.run_end_type)
    if pa.types.is_dictionary(kind):
        return pa.array(cells, kind.value_type).dictionary_encode().cast(kind)
    return pa.array(cells, kind)


def _cases():
    for kind, cells, same in _ARROW:
        column = _arrow(kind, cells)
        yield pytest.param(pa.table({"x": column, "o": _OTHER}), same, id=f"pyarrow {kind}")
        held = pd.array(column, dtype=pd.ArrowDtype(kind))
        yield pytest.param(pd.DataFrame({"x": held, "o": _OTHER}), same, id=f"pandas {kind}")
    for column, same in _PANDAS:
        yield pytest.param(pd.DataFrame({"x": column, "o": _OTHER}), same, id=f"pandas {column.dtype}")
    for column, same in _POLARS:
        yield pytest.param(pl.DataFrame({"x": column, "o": _OTHER}), same, id=f"polars {column.dtype}")


@pytest.mark.parametrize(("table", "same"), list(_cases()))
def test_a_type_is_read_right_or_refused_by_name(table, same):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", category=UserWarning)
        if same is None:
            fix = "(turn it into|cells must|make strings|make categories)"
            with pytest.raises(TypeError, match=rf"^column 'x' (is|holds) .*; {fix}") as caught:
                po.NaiveBayes().fit(table, _Y)
            assert "\n" not in str(caught.value)
            return
        model = po.NaiveBayes().fit(table, _Y)
        plain = pl.DataFrame({"x": same, "o": _OTHER})
        expected = po.NaiveBayes().fit(plain, _Y).predict_proba(plain)
        np.testing.assert_allclose(model.predict_proba(table), expected, rtol=1e-12)
        drawn = model.sample(4, random_state=0)
        drawn = drawn[0] if isinstance(drawn, tuple) else drawn
        assert type(drawn) is type(table)
        assert np.isfinite(model.predict_proba(drawn)).all()


def test_a_column_unknown_to_the_model_may_be_of_any_type():
    rows = pa.table({"x": _NUMBERS, "o": _OTHER})
    model = po.NaiveBayes().fit(rows, _Y)
    wider = rows.append_column("beside", pa.array([[1]] * 12, pa.list_view(pa.int64())))
    with pytest.warns(UserWarning, match="beside"):
        np.testing.assert_array_equal(model.predict_proba(wider), model.predict_proba(rows))
