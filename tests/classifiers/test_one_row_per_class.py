"""A table with one row of each class, of which a cross-validation cannot hold out any: every model takes it."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from posteriori.registry import MODELS

_NORMAL = np.random.default_rng(0).normal(size=(5, 3))
_TABLES = {
    "two rows": pd.DataFrame({"x": [0.0, 1.0], "y": [1.0, 5.0]}),
    "three numbers": pd.DataFrame({"x": [0.0, 1.0, 2.0]}),
    "counts": pd.DataFrame({"x": [0, 1, 2], "y": [5, 0, 1]}),
    "categories": pd.DataFrame({"x": ["u", "v", "w"]}),
    "one category": pd.DataFrame({"x": ["u", "v"], "y": ["c", "c"]}),
    "mixed": pd.DataFrame({"x": ["u", "v", "w", "v", "u"], "z": [1.0, 2.0, 5.0, 3.0, 3.5]}),
    "gaps": pd.DataFrame({"x": ["u", None, "w", "v"], "z": [1.0, np.nan, 5.0, 3.0], "t": [np.nan, 1.0, 2.0, 2.0]}),
    "five rows": pd.DataFrame(_NORMAL, columns=list("pqr")),
}


@pytest.mark.parametrize("table", _TABLES)
@pytest.mark.parametrize("name", MODELS)
def test_every_model_takes_one_row_per_class(name, table):
    X = _TABLES[table]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        warnings.simplefilter("error", RuntimeWarning)
        try:
            model = MODELS[name].make().fit(X, list("abcde")[: len(X)])
        except ValueError as error:
            if re.search("correct the cell or choose another distribution|put 0 where a word", str(error)):
                return
            raise
        posterior = model.predict_proba(X)
    assert np.isfinite(posterior).all()
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


def test_one_class_of_several_rows_beside_single_ones():
    X = np.array([[0.0], [1.0], [2.0], [4.0], [5.0]])
    model = MODELS["pool"].make().fit(X, list("abccc"))
    assert model.predict([[4.5]]) == ["c"]
    assert np.isfinite(model.predict_proba([[np.nan]])).all()
