"""Decisions that evaluate judges: by thresholds, costs and a capacity, beside the most probable class."""

import json
from pathlib import Path

import numpy as np
import pytest

import posteriori as po
from tests.cli.command_line import CommandLine
from tests.cli.test_lists import customers

LINE = CommandLine(details=False, replaces=True)
ROWS, LATER = customers(), customers(500, seed=3)
COSTS = {"No": {"Yes": 1}, "Yes": {"No": 7}}


@pytest.fixture(autouse=True)
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    LATER.write_csv("later.csv")
    Path("costs.json").write_text(json.dumps(COSTS))
    po.save(po.NaiveBayes().fit(ROWS.drop("name"), "leaves"), "model")


def judged(*arguments):
    return json.loads(LINE.succeeds("evaluate", "model", "later.csv", *arguments, "--json"))["decision"]


def by_hand(decided):
    true = LATER["leaves"].to_numpy()
    confusion = [[int(((true == t) & (decided == d)).sum()) for d in ("No", "Yes")] for t in ("No", "Yes")]
    return confusion, sum(COSTS[t].get(d, 0) for t, d in zip(true, decided, strict=True))


P = po.NaiveBayes().fit(ROWS.drop("name"), "leaves").predict_proba(LATER.drop("name", "leaves"))[:, 1]
BEST = np.argsort(-P, kind="stable")


@pytest.mark.parametrize(
    ("arguments", "is_yes"),
    [
        (("--threshold", "Yes=0.3"), P >= 0.3),
        (("--threshold", "Yes=0.3", "--costs", "costs.json"), P >= 0.3),
        (("--costs", "costs.json"), 7 * P > 1 - P),
        (("--capacity", "40"), np.isin(np.arange(500), BEST[:40])),
        (("--capacity", "8%", "--costs", "costs.json"), np.isin(np.arange(500), BEST[:40])),
        (("--capacity", "9000", "--positive", "Yes"), P >= 0),
        (("--capacity", "40", "--positive", "No"), ~np.isin(np.arange(500), np.argsort(P, kind="stable")[:40])),
    ],
)
def test_decisions_are_counted_as_by_hand(arguments, is_yes):
    found = judged(*arguments)
    for name, chosen in (("decided", is_yes), ("most_probable", P > 0.5)):
        confusion, cost = by_hand(np.where(chosen, "Yes", "No"))
        assert found[name]["confusion"] == confusion
        yes = found[name]["classes"][1]
        assert yes["recall"] == pytest.approx(confusion[1][1] / sum(confusion[1]))
        assert yes["precision"] == pytest.approx(confusion[1][1] / max(1, confusion[0][1] + confusion[1][1]))
        assert ("cost" in found[name]) == ("--costs" in arguments)
        if "cost" in found[name]:
            assert found[name]["cost"] == pytest.approx(cost)
            assert found[name]["cost_per_row"] == pytest.approx(cost / 500)


def test_the_page_shows_both_ways_beside_each_other():
    page = LINE.succeeds("evaluate", "model", "later.csv", "--capacity", "40", "--costs", "costs.json")
    assert "decided: 'Yes' in the 40 rows where it is most probable" in page
    assert "cost in total" in page
    assert "most probable class" in page
    assert "decided" not in LINE.succeeds("evaluate", "model", "later.csv")


@pytest.mark.parametrize("capacity", ["0", "-3", "2.5", "101%", "many", "%", "nan", "inf"])
def test_a_capacity_that_is_none(capacity):
    error = LINE.refused("evaluate", "model", "later.csv", f"--capacity={capacity}")
    assert error.startswith(f"--capacity is '{capacity}'; give a number of rows such as 200")


def test_decisions_that_cannot_be_judged(model, penguins):
    both = ("--capacity", "9", "--threshold", "Yes=0.3")
    assert "remove one of them" in LINE.refused("evaluate", "model", "later.csv", *both)
    assert "--positive" in LINE.refused("evaluate", model, penguins, "--capacity", "9")
    po.save(po.AdditiveRegressor().fit(ROWS.drop("name"), "fee"), "number")
    assert "--capacity is for classes" in LINE.refused("evaluate", "number", "later.csv", "--capacity", "9")
    LATER.drop("leaves").write_csv("new.csv")
    assert "report model new.csv --against" in LINE.refused("evaluate", "model", "new.csv", "--capacity", "9")


def test_rows_that_are_left_to_a_person_are_counted_apart():
    costs = {true: {**of_decision, "ask": 0.4} for true, of_decision in COSTS.items()}
    Path("ask.json").write_text(json.dumps(costs))
    found = judged("--costs", "ask.json")["decided"]
    expected = np.stack([7 * P, 1 - P, np.full(500, 0.4)])  # of No, Yes and ask
    decided = np.array(["No", "Yes", "ask"])[expected.argmin(axis=0)]
    true = LATER["leaves"].to_numpy()
    assert found["confusion"] == [
        [int(((true == t) & (decided == d)).sum()) for d in ("No", "Yes", "ask")] for t in ("No", "Yes")
    ]
    assert found["others"] == [{"decision": "ask", "decided": int((decided == "ask").sum())}]
    assert found["cost"] == pytest.approx(sum(costs[t].get(d, 0) for t, d in zip(true, decided, strict=True)))
    with_class = decided != "ask"
    assert found["accuracy"] == pytest.approx((true == decided)[with_class].mean())
    page = LINE.succeeds("evaluate", "model", "later.csv", "--costs", "ask.json")
    assert "ask: rows" in page
    written = LINE.succeeds("predict", "model", "later.csv", "--costs", "ask.json").splitlines()[1:]
    assert written == decided.tolist()
