"""Rows in parts: `partial_fit` of the parts is `fit` of all rows, or the call refuses, or a warning says why not."""

import functools
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose

from tests.laws.models import CASES, parameters
from tests.laws.tables import make_table

HELD_OUT = {"pool": "its weights are those of held-out rows, which a fit draws from all rows"}
LABELLED = [name for name, case in CASES.items() if case.has_labels and name not in HELD_OUT]
TAKES = {"mixed": {}, "counts": {"counts": True, "n_categories": 0}, "categories": {"n_numbers": 0, "n_categories": 3}}


@functools.cache
def in_parts(name, kind):
    """Return the posteriors by parts and by one fit, and the warnings of the second part; None where it is refused."""
    case = CASES[name]
    table = make_table(3, n_classes=2, **TAKES[kind])
    first, second = table.rows(slice(0, table.n_rows // 2)), table.rows(slice(table.n_rows // 2, None))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            model = case.make().partial_fit(first.frame(), first.y, classes=np.unique(table.y))
        except ValueError as error:
            if "partial_fit sees each once" not in str(error):
                raise
            return None
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always", UserWarning)
            model.partial_fit(second.frame(), second.y)
        whole = case.fit(table)
        return (
            model.predict_proba(table.frame()),
            whole.predict_proba(table.frame()),
            [str(one.message) for one in caught],
            model,
            second,
        )


def cases():
    """Return each model with the kinds of tables that it takes: of categories alone, no model has cut points."""
    pairs = [(name, CASES[name].takes) for name in LABELLED]
    return pairs + [(name, "categories") for name, kind in pairs if kind == "mixed"]


@pytest.mark.parametrize(("name", "kind"), cases())
def test_parts_are_one_fit_or_the_call_warns(name, kind):
    found = in_parts(name, kind)
    if found is not None:
        by_parts, whole, messages, *_ = found
        if not any("differ from one fit" in one for one in messages):
            assert_allclose(by_parts, whole, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["unlearn", "forget"])
@pytest.mark.parametrize(("name", "chosen"), [("kdb", "the parents of the columns"), ("forest", "the trees")])
def test_what_the_first_rows_choose_is_named(name, chosen, method):
    *_, messages, model, second = in_parts(name, "categories")
    assert any(f"partial_fit keeps {chosen}" in one for one in messages)
    with pytest.warns(UserWarning, match=f"{method} keeps {chosen}, which the first rows chose"):
        model.forget(0.5) if method == "forget" else model.unlearn(second.frame(), second.y)


@pytest.mark.parametrize("name", parameters(["tan", "aode", "kdb", "nb of binned"]))
def test_cut_points_are_named_where_numbers_are_cut(name):
    assert any("the cut points of bins, which the first rows chose" in one for one in in_parts(name, "mixed")[2])


@pytest.mark.parametrize("name", ["nb", "tan", "aode"])
def test_sums_alone_warn_of_nothing(name):
    """A warning that always comes is no information."""
    assert in_parts(name, "categories")[2] == []
