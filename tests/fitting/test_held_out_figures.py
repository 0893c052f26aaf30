"""The figures of held-out predictions that a model file keeps."""

from dataclasses import replace

import numpy as np
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model_selection import HeldOut, in_words, out_of_fold

FIGURES = out_of_fold(po.NaiveBayes(), load_penguins(), "species").figures


def test_the_figures_are_those_of_the_predictions():
    held_out = out_of_fold(po.NaiveBayes(), load_penguins(), "species")
    assert FIGURES.accuracy == pytest.approx(held_out.accuracy)
    assert FIGURES.n == len(held_out.y_true)
    assert FIGURES.true == tuple(np.bincount(held_out.y_true))
    assert FIGURES.predicted == tuple(np.bincount(held_out.predicted, minlength=3))
    FIGURES.check()


@pytest.mark.parametrize(
    "fault",
    [
        {"true": ()},
        {"true": (1.0,)},
        {"true": (0.0, 0.0, 0.0), "predicted": (0.0, 0.0, 0.0), "correct": (0.0, 0.0, 0.0)},
        {"true": (float("inf"),) * 3, "predicted": (float("inf"),) * 3},
        {"correct": (1e9, 0.0, 0.0)},
        {"correct": (-1.0, 0.0, 0.0)},
        {"predicted": (1e9, 1e9, 1e9)},
        {"confidence": 1.5},
        {"gap_error": float("nan")},
        {"verdict": "splendid"},
        {"rows_are": "cells"},
        {"positive": 3},
    ],
)
def test_figures_that_cannot_be_are_refused(fault):
    with pytest.raises(ValueError, match=r"held-out|rows|class|probability|calibration"):
        replace(FIGURES, **fault).check()


def test_a_class_of_interest_without_rows_has_no_recall():
    held_out = HeldOut(
        np.log(np.tile([0.8, 0.2], (10, 1))),
        np.full((10, 2), 0.5),
        np.zeros(10, int),
        np.ones(10),
        np.array(["a", "b"]),
        "made up",
        positive=1,
    )
    assert "No row is “b”." in held_out.summary().splitlines()
    assert replace(held_out, positive=None).figures.of_interest is None


def test_classes_that_differ_in_the_last_digit_have_two_names():
    first, second = in_words.class_phrases([0.1234567891, 0.1234567892], "y")
    assert first != second
    assert in_words.class_phrases(["two\nlines", 1.0, True], None) == ["two\\nlines", "class = 1", "class = true"]
