"""What show and the page of fit show of a model that reads pairs of columns together."""

import json

import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.cli.first_page import what_pairs
from posteriori.datasets import load_penguins
from posteriori.facts.model import pair_facts
from tests.classifiers.pairs_by_hand import classifier_with_drawn_pairs, pool_with_drawn_pairs
from tests.cli.command_line import CommandLine

succeeds = CommandLine().succeeds
PENGUINS = load_penguins()


def made(kind):
    if kind == "pool":
        return pool_with_drawn_pairs(PENGUINS, "species")
    return classifier_with_drawn_pairs(PENGUINS, "species", bins=6)


@pytest.mark.parametrize("kind", ["nb", "pool"])
def test_show_names_the_strongest_pairs_and_counts_them(kind, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    model = made(kind)
    po.save(model, tmp_path / "m.posteriori")
    effects = po.explain.pair_effects(model)
    page = succeeds("show", tmp_path / "m.posteriori")
    lines = page.split("pair of columns")[1].splitlines()[2:]
    for line, effect in zip(lines, effects[:10], strict=False):
        assert line.startswith(f"{effect.name} ")
        assert f" {effect.strength:.4f} " in line
    assert lines[10] == "and 11 more pairs"
    assert lines[11].startswith("what 21 pairs of columns say beyond each column alone")
    found = json.loads(succeeds("show", tmp_path / "m.posteriori", "--json"))["pairs"]
    assert [tuple(one["columns"]) for one in found] == [effect.columns for effect in effects]
    assert_allclose(found[0]["nats"], effects[0].nats)
    assert tuple(map(tuple, found[0]["groups"])) == effects[0].groups


def test_a_model_without_pairs_says_nothing_of_them(tmp_path):
    po.save(po.NaiveBayes().fit(PENGUINS, "species"), tmp_path / "m.posteriori")
    assert "pair of columns" not in succeeds("show", tmp_path / "m.posteriori")
    assert json.loads(succeeds("show", tmp_path / "m.posteriori", "--json"))["pairs"] == []
    assert what_pairs({"pairs": []}) == ""


def test_fit_says_how_many_pairs_there_are_and_names_three():
    pairs = pair_facts(made("nb"))
    names = [" with ".join(one["columns"]) for one in pairs]
    expected = (
        f"Read together, beyond each column alone: 21 pairs of columns, {names[0]}, {names[1]}, {names[2]} and 18 more."
    )
    assert what_pairs({"pairs": pairs}) == expected
    assert (
        what_pairs({"pairs": pairs[:1]}) == f"Read together, beyond each column alone: 1 pair of columns, {names[0]}."
    )


def test_the_facts_of_fit_have_the_pairs_of_the_model(tmp_path):
    PENGUINS.write_csv(tmp_path / "p.csv")
    found = succeeds("fit", tmp_path / "p.csv", "--target", "species", "--json", "-o", tmp_path / "m.posteriori")
    effects = po.explain.pair_effects(po.load(tmp_path / "m.posteriori"))
    assert [tuple(one["columns"]) for one in json.loads(found)["pairs"]] == [one.columns for one in effects]
