"""Pairs of columns in explanations: their names, what texts list of them, and their tables."""

import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from tests.classifiers.pairs_by_hand import classifier_with_drawn_pairs

PENGUINS = load_penguins()


@pytest.fixture(scope="module")
def model():
    return classifier_with_drawn_pairs(PENGUINS, "species", bins=6)


@pytest.fixture(scope="module")
def explanation(model):
    return model.explain(PENGUINS[:5])


def test_pairs_are_the_last_features_and_name_their_columns(explanation):
    d = explanation.n_columns
    assert d == 7
    assert len(explanation.pairs) == 21
    for (i, j), name in zip(explanation.pairs, explanation.feature_names[d:], strict=True):
        assert name == f"{explanation.feature_names[i]} with {explanation.feature_names[j]}"
    assert explanation.columns_of(0) == (0,)
    assert explanation.columns_of(d) == explanation.pairs[0]


def test_a_column_with_the_name_of_a_pair_keeps_its_own_entry():
    table = PENGUINS.select("species", "island", "sex", pl.col("year").alias("island with sex"))
    found = classifier_with_drawn_pairs(table, "species").explain(table[:5])
    assert len(set(found.feature_names)) == len(found.feature_names) == 6
    odds = found.log_odds(0, "Adelie", "Gentoo")
    assert len(odds.factors) == 6
    assert_allclose(odds.total, found.log_joint[0, 0] - found.log_joint[0, 2])
    assert_allclose(odds.factors["island with sex"], found.log_factors[0, 0, 2] - found.log_factors[0, 2, 2])


def lines_of(text):
    """Return the factors of a table of Bayes' rule by their name."""
    found = {}
    for line in text.splitlines():
        if line.startswith(("× ", "prior", "= product")):
            name, *numbers = re.split(r"\s{2,}", line.strip())
            found[name] = np.array(numbers, float)
    return found


@pytest.mark.parametrize("row", range(5))
def test_bayes_rule_lists_ten_pairs_and_multiplies_up(explanation, row):
    lines = lines_of(explanation.bayes_table(row))
    product = lines.pop("= product")
    of_pairs = [name for name in lines if " with " in name]
    assert not any(name.startswith("× p(") or name.endswith("missing") for name in of_pairs)
    assert len(of_pairs) == (1 if row == 3 else 10)  # row 3 has an island and a year only
    assert ("× 11 other pairs" in lines) == (row != 3)
    assert_allclose(np.prod(list(lines.values()), axis=0), product, rtol=1e-4)
    assert "× island with year = Torgersen, 2007" in lines or row != 3


def test_a_notebook_shows_no_pair_that_lacks_a_cell(model):
    page = model.explain(PENGUINS[3:4])._repr_html_()
    assert "island with year = Torgersen, 2007" in page
    assert "missing" in page
    assert not re.search(r"with \w+ missing", page)


def test_a_notebook_counts_the_columns_and_pairs_it_omits():
    wide = PENGUINS.with_columns(pl.col("island").alias("place"))  # 8 columns and 28 pairs
    page = classifier_with_drawn_pairs(wide, "species", bins=6).explain(wide[:1])._repr_html_()
    assert re.search(r"6 more (pairs|columns and pairs)", page)


def test_the_strongest_pairs_come_first_with_their_groups(model):
    effects = po.explain.pair_effects(model)
    assert len(effects) == 21
    strengths = [effect.strength for effect in effects]
    assert strengths == sorted(strengths, reverse=True)
    one = next(effect for effect in effects if effect.columns == ("island", "bill_length_mm"))
    cuts = model.model_.schema.columns[1].cut_texts
    assert one.groups[0] == ("Biscoe", "Dream", "Torgersen")
    assert one.groups[1] == (f"< {cuts[0]}", f"[{cuts[0]}, {cuts[1]})", f"[{cuts[1]}, {cuts[2]})", f"≥ {cuts[2]}")
    pairs = model.model_.weights.pairs
    position = model.model_.pairs.index((0, 1))
    assert_allclose(one.nats, pairs.table(position))
    assert_allclose(one.share.sum(), 1.0)
    others = (one.nats[0] + one.nats[2]) / 2
    assert_allclose(one.log_odds(1), one.nats[1] - others)
    assert_allclose(one.strengths[1], np.sqrt((one.share * (one.nats[1] - others) ** 2).sum()))


def test_the_shares_are_those_of_rows_if_columns_are_independent():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 4000)
    X = np.stack([rng.random(4000) < 0.2 + 0.6 * y, rng.random(4000) < 0.7 - 0.4 * y], axis=1)
    (effect,) = po.explain.pair_effects(classifier_with_drawn_pairs(X, y))
    seen = [[(X[:, 0] == a) & (X[:, 1] == b) for b in (False, True)] for a in (False, True)]
    assert effect.groups == (("false", "true"), ("false", "true"))
    assert_allclose(effect.share, np.mean(seen, axis=2), atol=0.02)


def test_a_model_without_pairs_has_no_effects_of_pairs():
    assert po.explain.pair_effects(po.NaiveBayes().fit(PENGUINS, "species")) == []
    assert po.explain.pair_effects(po.GenerativeClassifier(["nb", "tan"]).fit(PENGUINS, "species")) == []
