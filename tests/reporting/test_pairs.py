"""Pairs of columns in reports: the section, its maps, and the steps of explained rows."""

import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.explain import PairEffect
from posteriori.reporting.pairs import PairMap
from tests.classifiers.pairs_by_hand import classifier_with_drawn_pairs, pool_with_drawn_pairs

PENGUINS = load_penguins()


@pytest.fixture(scope="module")
def page():
    return po.report(classifier_with_drawn_pairs(PENGUINS, "species", bins=6), PENGUINS, "species").html


def section(page):
    return page.split('id="pairs"')[1].split("</section>")[0]


def test_the_report_lists_the_strongest_pairs_and_draws_three(page):
    effects = po.explain.pair_effects(classifier_with_drawn_pairs(PENGUINS, "species", bins=6))
    found = section(page)
    assert "Pairs of columns, the first 10 of 21" in found
    for effect in effects[:10]:
        assert f'<th scope="row">{effect.name}</th><td>{effect.strength:.3f}</td>' in found
    assert found.count("<svg") == 3
    for effect in effects[:3]:
        c = int(effect.strengths.argmax())
        label = ("Adelie", "Chinstrap", "Gentoo")[c]
        assert f"Map of {effect.name}: what they add to the log-odds of {label} against the other classes" in found
        for group in (*effect.groups[0], *effect.groups[1]):
            assert group.replace("<", "&lt;") in found


def test_a_model_without_pairs_has_no_section_on_them():
    page = po.report(po.NaiveBayes().fit(PENGUINS, "species"), PENGUINS, "species").html
    assert 'id="pairs"' not in page
    assert "pair of cells" not in page


def test_explained_rows_name_pairs_and_count_the_others(page):
    found = page.split('id="explained"')[1].split("</section>")[0]
    assert "each pair of cells that the model reads together" in found
    assert re.search(r"\w+ with \w+ = [\w.]+, [\w.]+<", found)
    assert re.search(r"\d+ other columns and pairs", found)
    assert not re.search(r"Missing and integrated out: [^<]* with ", found)


def test_two_classes_share_one_map_of_second_against_first():
    two = PENGUINS.filter(pl.col("species") != "Gentoo")
    model = classifier_with_drawn_pairs(two, "species", bins=6)
    found = section(po.report(model, two, "species").html)
    assert "what they add to the log-odds of Chinstrap against Adelie" in found
    effect = po.explain.pair_effects(model)[0]
    odds = effect.nats[1] - effect.nats[0]
    np.testing.assert_allclose(effect.log_odds(1), odds)
    assert f"{odds.max():+.3f} nats" in found


def map_of(n_rows, n_columns, name="group"):
    rng = np.random.default_rng(0)
    groups = tuple(tuple(f"{name} {k}" for k in range(n)) for n in (n_rows, n_columns))
    nats = rng.normal(size=(2, n_rows, n_columns))
    return PairEffect(("a", "b"), groups, nats, np.full((n_rows, n_columns), 1.0 / (n_rows * n_columns)))


def test_a_map_has_a_coloured_cell_for_each_pair_of_groups():
    effect = map_of(3, 4)
    drawn = PairMap.of(effect, 0)
    assert drawn.rows == effect.groups[1]  # the column of more groups is down
    page = drawn.written("a map")
    odds = effect.log_odds(0)
    assert page.count(">+") == np.count_nonzero(odds > 0)
    assert page.count(">\N{MINUS SIGN}") == np.count_nonzero(odds < 0)
    shades = np.rint(8 * odds / np.abs(odds).max())
    for colour, cells in (("blue", shades > 0), ("orange", shades < 0)):
        drawn_cells = sum(path.count("M") for path in re.findall(rf'd="([^"]*)" fill="var\(--{colour}\)"', page))
        assert drawn_cells == np.count_nonzero(cells)


def test_a_map_of_most_groups_is_small_and_an_empty_one_is_drawn():
    large = PairMap.of(map_of(32, 32, "a long name of a group of cells"), 1)
    assert large.is_wide
    assert len(large.written("a map")) < 60_000
    assert not PairMap.of(map_of(4, 4), 1).is_wide
    flat = replace(map_of(2, 2), nats=np.zeros((2, 2, 2)))
    assert "fill-opacity" not in PairMap.of(flat, 0).written("a map")


def test_a_pool_reports_the_pairs_of_its_member_times_its_weight():
    pool = pool_with_drawn_pairs(PENGUINS, "species", weight=0.25)
    effects, of_member = (po.explain.pair_effects(one) for one in (pool, pool.members_["tables"]))
    assert [effect.columns for effect in effects] == [effect.columns for effect in of_member]
    np.testing.assert_allclose(effects[0].nats, 0.25 * of_member[0].nats)
    explanation = pool.explain(PENGUINS[:20])
    np.testing.assert_allclose(explanation.posterior, pool.predict_proba(PENGUINS[:20]), atol=1e-9)
    found = section(po.report(pool, PENGUINS, "species").html)
    assert f'<th scope="row">{effects[0].name}</th><td>{effects[0].strength:.3f}</td>' in found
