"""Strings of every type are the same labels and the same cells; bytes are refused."""

from __future__ import annotations

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
from numpy.dtypes import StringDType

import posteriori as po
from posteriori.drop_in import GaussianNB

CELLS = ["u", "v", "w", "u", "v", "w", "u", "u"]
Y = ["a", "b", "b", "a", "b", "a", "a", "a"]
MODEL = po.NaiveBayes().fit([[cell] for cell in CELLS], Y)
EXPECTED = MODEL.predict_proba([[cell] for cell in CELLS])

TYPES = {
    "list": list,
    "numpy.str_": lambda cells: [np.str_(cell) for cell in cells],
    "objects": lambda cells: np.array(cells, object),
    "fixed width": np.array,
    "StringDType": lambda cells: np.array(cells, StringDType()),
    "StringDType, NaN": lambda cells: np.array(cells, StringDType(na_object=np.nan)),
    "StringDType, None": lambda cells: np.array(cells, StringDType(na_object=None)),
    "StringDType, NA": lambda cells: np.array(cells, StringDType(na_object=pd.NA)),
    "StringDType, a string": lambda cells: np.array(cells, StringDType(na_object="")),
    "StringDType, strict": lambda cells: np.array(cells, StringDType(coerce=False)),
    "pandas": pd.Series,
    "pandas string": lambda cells: pd.Series(cells, dtype="string"),
    "pandas string of Arrow": lambda cells: pd.Series(cells, dtype="string[pyarrow]"),
    "pandas Arrow": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.string())),
    "pandas Arrow, large": lambda cells: pd.Series(cells, dtype=pd.ArrowDtype(pa.large_string())),
    "pandas category": lambda cells: pd.Series(cells, dtype="category"),
    "polars": pl.Series,
    "polars Categorical": lambda cells: pl.Series(cells, dtype=pl.Categorical),
    "polars Enum": lambda cells: pl.Series(cells, dtype=pl.Enum(sorted(set(cells)))),
    "polars Object": lambda cells: pl.Series(cells, dtype=pl.Object),
    "Arrow": pa.array,
    "Arrow, large": lambda cells: pa.array(cells, pa.large_string()),
    "Arrow view": lambda cells: pa.array(cells, pa.string_view()),
    "Arrow dictionary": lambda cells: pa.array(cells).dictionary_encode(),
    "Arrow chunks": lambda cells: pa.chunked_array([cells[:3], cells[3:]]),
}


def _table(values):
    if isinstance(values, list):
        return [[cell] for cell in values]
    if isinstance(values, np.ndarray):
        return values.reshape(-1, 1)
    of_library = {"pandas": pd.DataFrame, "polars": pl.DataFrame, "pyarrow": pa.table}
    return of_library[type(values).__module__.partition(".")[0]]({"x0": values})


@pytest.mark.parametrize("make", TYPES.values(), ids=TYPES)
def test_labels(make):
    model = po.NaiveBayes().fit([[cell] for cell in CELLS], make(Y))
    assert model.classes_.tolist() == ["a", "b"]
    np.testing.assert_array_equal(model.predict_proba([[cell] for cell in CELLS]), EXPECTED)
    assert model.score([[cell] for cell in CELLS], make(Y)) == 7 / 8
    model.partial_fit([["u"]], make(["a"]))


@pytest.mark.parametrize("make", TYPES.values(), ids=TYPES)
@pytest.mark.filterwarnings("ignore:X has feature names")
def test_cells(make):
    table = _table(make(CELLS))
    np.testing.assert_array_equal(po.NaiveBayes().fit(table, Y).predict_proba(table), EXPECTED)
    np.testing.assert_array_equal(MODEL.predict_proba(table), EXPECTED)


@pytest.mark.parametrize("missing", [np.nan, None, pd.NA])
def test_missing_strings_of_numpy(missing):
    cells = np.array(["u", missing, "v"], StringDType(na_object=missing))
    expected = po.NaiveBayes().fit([["u"], [None], ["v"]], ["a", "b", "b"])
    model = po.NaiveBayes().fit(cells.reshape(-1, 1), ["a", "b", "b"])
    np.testing.assert_array_equal(
        model.predict_proba(cells.reshape(-1, 1)), expected.predict_proba([["u"], [None], ["v"]])
    )
    with pytest.raises(ValueError, match="the label of row 1 is missing"):
        po.NaiveBayes(labels=po.Labels(unlabelled="error")).fit([[0.0], [1.0], [2.0]], cells)


def test_labels_of_a_drop_in():
    X, y = np.arange(8.0).reshape(-1, 1), np.array(Y, StringDType())
    model = GaussianNB().partial_fit(X, y, np.array(["a", "b"], StringDType()))
    assert model.score(X, y) == GaussianNB().fit(X, Y).score(X, Y)


@pytest.mark.parametrize("make", [lambda c: np.array(c, "S"), lambda c: pl.Series([x.encode() for x in c])])
def test_bytes_are_refused(make):
    with pytest.raises(TypeError, match=r"bytes; decode them|is Binary; turn it into"):
        po.NaiveBayes().fit([[cell] for cell in CELLS], make(Y))
    with pytest.raises(TypeError, match=r"bytes; decode them|is Binary; turn it into"):
        po.NaiveBayes().fit(_table(make(CELLS)), Y)
