"""Monitors of models of any subject: numbers, all columns, and components."""

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins

PENGUINS = load_penguins().drop_nulls("body_mass_g")
PENGUINS = PENGUINS[np.random.default_rng(0).permutation(len(PENGUINS)).tolist()]
LEARNED, REFERENCE, LATER = PENGUINS[:150], PENGUINS[150:250], PENGUINS[250:]
HEAVIER = LATER.with_columns(pl.col("body_mass_g") + 2000)


@pytest.mark.parametrize(
    ("model", "target", "alarms"),
    [
        (po.AdditiveRegressor(), "body_mass_g", {"log-loss"}),
        (po.GenerativeRegressor(members=["additive"]), "body_mass_g", {"log-loss"}),
        (po.JointModel(), None, {"log p(x)", "column 'body_mass_g'"}),
        (po.MixtureModel(3, random_state=0), None, {"log p(x)", "column 'body_mass_g'"}),
    ],
    ids=lambda one: type(one).__name__,
)
def test_a_shift_gives_an_alarm_whatever_the_subject(model, target, alarms, tmp_path):
    model.fit(LEARNED, target) if target else model.fit(LEARNED)
    monitor = po.Monitor(model, REFERENCE)
    assert not monitor.update(LATER).alarms
    monitor.save(tmp_path / "m.watch")
    continued = po.Monitor.load(tmp_path / "m.watch", model)
    assert set(continued.update(HEAVIER).alarms) == alarms
    assert set(monitor.update(HEAVIER).alarms) == alarms


def test_shares_of_categories_are_named_without_a_density():
    model = po.AdditiveRegressor().fit(LEARNED, "body_mass_g")
    monitor = po.Monitor(model, REFERENCE)
    verdict = monitor.update(PENGUINS.filter(pl.col("species") == "Gentoo"))
    assert any("column 'species' changed" in sentence for sentence in verdict.sentences)
    assert not any("under the model" in sentence for sentence in verdict.sentences if "column" in sentence)


def test_a_network_cannot_be_watched():
    net = po.BayesianNetwork([("a", "b")])
    with pytest.raises(TypeError, match="cannot be watched"):
        po.Monitor(net, PENGUINS)


@pytest.mark.parametrize("known", [0, 30])
def test_numbers_that_are_missing_are_not_watched(known):
    model = po.AdditiveRegressor().fit(LEARNED, "body_mass_g")
    seen = pl.when(pl.int_range(pl.len()) < known).then("body_mass_g")
    verdict = po.Monitor(model, REFERENCE).update(LATER.with_columns(body_mass_g=seen))
    assert (verdict.n_labelled, verdict.alarms) == (known, ())
