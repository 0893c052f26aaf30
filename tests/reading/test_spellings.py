"""Labels that differ only in case or blanks."""

from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.reading.spellings import described, spellings_of_classes, usual_spellings


def test_the_most_frequent_spelling_is_taken():
    usual = usual_spellings({"BAD": 5, "bad": 9, " bad": 1, "good": 3, 1: 4, None: 2})
    assert usual == {"BAD": "bad", " bad": "bad"}
    assert described(usual) == "labels ' bad', 'BAD' as 'bad'"


def test_a_spelling_without_blanks_is_preferred_to_frequent_ones():
    assert usual_spellings({" zero": 5, "zero": 2, "ZERO": 1}) == {" zero": "zero", "ZERO": "zero"}


def test_labels_take_the_spelling_of_a_class_unless_ambiguous():
    assert spellings_of_classes(["BAD", "bad", "Good ", "new"], ["bad", "good"]) == {"BAD": "bad", "Good ": "good"}
    assert spellings_of_classes(["Bad", "BAD"], ["bad", "BAD"]) == {}


def test_labels_that_are_no_strings_stay():
    y = [1, None, "b", "B", "b"]
    assert po.reading.one_spelling(y).tolist() == [1, None, "b", "b", "b"]
    assert po.reading.one_spelling(pl.Series(["x", "X ", "x"])).tolist() == ["x", "x", "x"]


def test_a_fit_warns_of_labels_spelled_alike():
    X, y = np.arange(40.0).reshape(-1, 1), ["bad", "BAD", "good", "good"] * 10
    with pytest.warns(UserWarning, match=r"the labels 'BAD', 'bad' differ .* posteriori.reading.one_spelling"):
        po.NaiveBayes().fit(X, y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = po.NaiveBayes().fit(X, po.reading.one_spelling(y))
    assert list(model.classes_) == ["BAD", "good"]
