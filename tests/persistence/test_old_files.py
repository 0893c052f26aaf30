"""Model files written by version 0.1, before names of classes changed, still load and predict the same."""

import json
from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins

FOLDER = Path(__file__).parent / "model_files"
ANSWERS = json.loads((FOLDER / "answers.json").read_text())

penguins = load_penguins().gather_every(4).head(12)
few = penguins.drop("species", "year")
# Both used to approximate where a parent is missing; it is now summed out.
COMPLETE_ROWS_ONLY = ("aode", "kdb")


def answer(name, model):
    if name == "network":
        return [model.probability({"species": "Gentoo"}, given={"island": "Biscoe"})]
    if name == "chow_liu_tree":
        return model.score_samples(few)
    return model.predict_proba({"mixture": few, "full_joint": penguins.select("island", "sex")}.get(name, penguins))


@pytest.mark.parametrize("name", ANSWERS)
def test_an_old_file_gives_the_old_answers(name):
    found, expected = answer(name, po.load(FOLDER / f"{name}.posteriori")), np.array(ANSWERS[name])
    if name in COMPLETE_ROWS_ONLY:
        complete = np.array([None not in row for row in few.rows()])
        found, expected = found[complete], expected[complete]
        assert len(found) > 5
    assert_allclose(found, expected, rtol=1e-9, atol=1e-12)
