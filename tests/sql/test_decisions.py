"""Decisions in a SELECT against `decide` on the probabilities of Python."""

import duckdb
import numpy as np
import pytest

import posteriori as po
from posteriori.datasets import load_penguins

BIRDS = load_penguins().select("island", "body_mass_g", "sex", "species")
COSTS = {
    "Adelie": {"Chinstrap": 1.0, "Gentoo": 4.0},
    "Chinstrap": {"Adelie": 5.0, "Gentoo": 1.0},
    "Gentoo": {"Adelie": 1.0, "Chinstrap": 1.0},
}
RULES = {
    "costs": {"costs": COSTS},
    "ask": {"costs": {true: {**of_decision, "ask": 0.3} for true, of_decision in COSTS.items()}},
    "one threshold": {"thresholds": {"Chinstrap": 0.2}},
    "two thresholds": {"thresholds": {"Chinstrap": 0.2, "Gentoo": 0.1}},
    "all thresholds": {"thresholds": {"Gentoo": 0.9, "Adelie": 0.7, "Chinstrap": 0.6}},
}


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier(members=["nb", "tan"])], ids=["nb", "pool"])
def test_a_select_decides_as_python_does(model, rule):
    model.fit(BIRDS, "species")
    birds = BIRDS.with_row_index("id")  # noqa: F841, read by DuckDB
    select = model.to_sql("birds", columns=["id"], **rule)
    found = duckdb.sql(f"SELECT prediction FROM ({select}) ORDER BY id").fetchnumpy()["prediction"]
    wanted = po.decide(model.predict_proba(BIRDS), model.classes_, **rule)
    assert np.array_equal(found, wanted)
    assert len(set(found)) > 1
    if "ask" in str(rule):
        assert "ask" in found


def test_the_rule_of_a_select_is_checked():
    model = po.NaiveBayes().fit(BIRDS, "species")
    with pytest.raises(ValueError, match="give costs or thresholds, one of them"):
        model.to_sql(costs=COSTS, thresholds={"Adelie": 0.5})
    with pytest.raises(ValueError, match="'Adele' is not a class"):
        model.to_sql(thresholds={"Adele": 0.5})
