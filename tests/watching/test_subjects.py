"""Monitors of models of any subject: numbers, all columns, and components."""

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

import posteriori as po
from posteriori.cli.commands import app
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


def test_numbers_may_be_missing_or_absent():
    model = po.AdditiveRegressor().fit(LEARNED, "body_mass_g")
    some = LATER.with_columns(body_mass_g=pl.when(pl.col("sex") == "male").then(pl.col("body_mass_g")))
    monitor = po.Monitor(model, REFERENCE)
    assert monitor.update(some).n_labelled == int((LATER["sex"] == "male").sum())
    none = LATER.with_columns(body_mass_g=pl.lit(None, pl.Float64))
    for rows in (none, LATER.drop("body_mass_g")):
        assert monitor.update(rows).n_labelled == 0


def test_the_command_watches_numbers_and_columns(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name, rows in (("a", LEARNED), ("b", REFERENCE), ("c", HEAVIER)):
        rows.write_csv(f"{name}.csv")
    po.save(po.AdditiveRegressor().fit(LEARNED, "body_mass_g"), "number.posteriori")
    po.save(po.JointModel().fit(LEARNED), "joint.posteriori")
    for name in ("number", "joint"):
        result = CliRunner().invoke(app, ["watch", f"{name}.posteriori", "c.csv", "--reference", "b.csv"])
        assert result.exit_code == 3, result.output
        assert "batch 1: 92 rows" in result.output


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
