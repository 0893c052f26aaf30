"""Dates that later rows of `partial_fit` show and the first ones do not: a warning, or the model of one fit."""

import datetime
import warnings

import numpy as np
import polars as pl
import pytest

import posteriori as po

RNG = np.random.default_rng(0)
DAYS = [datetime.date(2022, 1, 1) + datetime.timedelta(int(k)) for k in np.sort(RNG.integers(0, 900, 400))]
Y = np.where(np.array([day.weekday() > 4 or day.year == 2023 for day in DAYS]) ^ (RNG.random(400) < 0.1), "a", "b")
NAMED = po.Columns(dates=["days", "year", "month", "weekday"])
SPREAD = np.argsort(np.arange(400) % 7, kind="stable")  # every shard has rows of the whole range
CLOCK = [datetime.datetime(2024, 1, 1, 8 if k < 200 else 9) + datetime.timedelta(k) for k in range(400)]


def in_shards(model, X, ends):
    """Return a model fitted in shards, with the texts of its warnings of dates."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for first, last in zip([0, *ends], [*ends, len(Y)], strict=True):
            model.partial_fit(X[first:last], Y[first:last], classes=["a", "b"])
    return model, [str(one.message) for one in caught if "than the first rows" in str(one.message)]


@pytest.mark.parametrize(
    ("make", "cells", "ends", "expected"),
    [
        (po.NaiveBayes, DAYS, [120], "leaves out its year, which did not vary in the first rows"),
        (po.NaiveBayes, DAYS, [10, 300], "leaves out its year, month,"),
        (po.NaiveBayes, [DAYS[0]] * 30 + DAYS[30:], [30], "leaves out its days, year, month, weekday,"),
        (po.NaiveBayes, [None] * 30 + DAYS[30:], [30], "leaves out its days"),
        (po.NaiveBayes, CLOCK, [200], "leaves out its year, hour,"),
        (
            po.TreeAugmentedNaiveBayes,
            DAYS,
            [120],
            "year, which did not vary in the first rows, and keeps",
        ),
        (po.TreeAugmentedNaiveBayes, DAYS, [300], "keeps the cut points of the first rows"),
        (po.NaiveBayes, DAYS, [300], None),  # a new year alone extends the model
        (po.NaiveBayes, [DAYS[i] for i in SPREAD], [150], None),
        (lambda: po.NaiveBayes(columns=NAMED), DAYS, [10, 300], None),  # the fix that the warning names
        (lambda: po.NaiveBayes(columns=po.Columns(dates="ignore")), DAYS, [10, 300], None),
    ],
)
def test_shards_warn_where_they_differ_from_one_fit(make, cells, ends, expected):
    X = pl.DataFrame({"day": cells, "x": np.arange(len(cells)) % 5})
    model, found = in_shards(make(), X, ends)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        whole = make().fit(X, Y)
    difference = np.abs(model.predict_proba(X) - whole.predict_proba(X)).max()
    if expected is None:
        assert not found
        assert difference < 1e-9
    else:
        assert all(expected in text and "column 'day'" in text for text in found), found
        assert len(found) == len(ends)
        assert difference > 1e-3


def test_a_pool_warns_once():
    pool, found = in_shards(po.GenerativeClassifier(members=["nb", "tan"]), pl.DataFrame({"day": DAYS}), [120])
    assert len(found) == 1
    assert "leaves out its year, which did not vary" in found[0]
    assert pool.classes_.tolist() == ["a", "b"]
