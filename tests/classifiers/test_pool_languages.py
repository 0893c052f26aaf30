"""Pools that are to be written in SQL or JavaScript hold what these can hold, and say what the rest is worth."""

import importlib
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.javascript import to_javascript
from posteriori.model_cost import ColumnSummary, TableSummary
from posteriori.pool.candidates import MemberOptions, select_candidates
from posteriori.registry import LANGUAGES, MODELS, find_language
from posteriori.sql.translation import estimate_length

RNG = np.random.default_rng(0)
N = 600
X = RNG.normal(size=(N, 3))
ROWS = pl.DataFrame(X, schema=["a", "b", "c"]).with_columns(
    y=pl.Series((X[:, 0] * X[:, 1] * X[:, 2] > 0).astype(int) ^ (RNG.random(N) < 0.05))
)


def limited(monkeypatch, language, most):
    """Set the greatest size of a language."""
    module = importlib.import_module(
        {"sql": "posteriori.sql.translation", "javascript": "posteriori.javascript.export"}[language]
    )
    monkeypatch.setattr(module, "LANGUAGE", replace(module.LANGUAGE, most=most))


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_candidate_of_tables_without_words_can_be_written(language):
    model = po.GenerativeClassifier(language=language, folds=2).fit(ROWS.head(120), "y")
    assert model.language_note_ == ""
    assert not model.skipped_.keys() - po.GenerativeClassifier(folds=2).fit(ROWS.head(120), "y").skipped_.keys()
    assert model.to_sql()
    assert to_javascript(model)


def test_a_forest_gets_as_many_trees_as_the_select_has_room_for(monkeypatch):
    limited(monkeypatch, "sql", 1_000_000)
    model = po.GenerativeClassifier(["nb"], language="sql").fit(ROWS, "y")
    assert model.language_note_ == ""
    model = po.GenerativeClassifier(language="sql").fit(ROWS, "y")
    assert "'forest mixed' has " in model.language_note_
    assert "trees, not 150: the SELECT has no room for more" in model.language_note_
    n_trees = model.members_["forest mixed"].n_trees
    assert f"has {n_trees} trees" in model.language_note_
    assert 5 <= n_trees < 150
    assert sum(estimate_length(one.model_) for one in model.members_.values()) <= 1_000_000


def test_a_forest_left_out_for_size_is_named_with_its_trial(monkeypatch):
    limited(monkeypatch, "sql", 100_000)
    model = po.GenerativeClassifier(language="sql").fit(ROWS, "y")
    assert "forest mixed" not in model.cv_results_["member"]
    assert "it lowers the log-loss of the pool" in model.skipped_["forest mixed"]
    assert model.skipped_["forest mixed"] in model.language_note_


def test_a_member_left_out_for_size_is_named_with_its_worth(monkeypatch):
    members = ["nb", "forest"]
    full = po.GenerativeClassifier(members).fit(ROWS, "y")
    limited(monkeypatch, "javascript", 1000)
    model = po.GenerativeClassifier(members, language="javascript").fit(ROWS, "y")
    assert list(model.members_) == ["nb"]
    assert "of the model in JavaScript (limit 1,000 for all)" in model.skipped_["forest"]
    worth = model.cv_results_["log_loss"][-1] - full.cv_results_["log_loss"][-1]
    stated = float(model.language_note_.split("is higher by ")[1].split(" ")[0])
    assert worth > 0.05
    assert stated == pytest.approx(worth, abs=0.02)
    with pytest.raises(ValueError, match="no candidate can be written in javascript: 'forest' is left out"):
        po.GenerativeClassifier(["forest"], language="javascript").fit(ROWS, "y")


def test_a_member_that_no_select_is_written_for_is_left_out():
    members = {"nb": po.NaiveBayes(), "trees": po.TreeAugmentedNaiveBayes(feature_weights="conditional")}
    model = po.GenerativeClassifier(members, language="sql", folds=2).fit(ROWS, "y")
    assert "factor weights on a tree" in model.skipped_["trees"]
    assert list(model.members_) == ["nb"]
    assert model.to_sql()


def test_a_column_that_the_language_cannot_read_is_named():
    waits = ROWS.with_columns(wait=pl.Series(RNG.integers(0, 9000, N)).cast(pl.Duration("ms")))
    with pytest.raises(ValueError, match=r"column 'wait' holds durations.*; leave it out"):
        po.GenerativeClassifier(language="sql").fit(waits, "y")


def test_languages_read_the_columns_of_every_default_pool():
    assert set(LANGUAGES) == {"sql", "javascript"}
    assert all(find_language(name).most > 1_000_000 for name in LANGUAGES)
    assert MODELS["pool"].make(language="sql").language == "sql"


MANY = pl.DataFrame(np.random.default_rng(1).normal(size=(2_100, 3)), schema=["a", "b", "c"]).with_columns(
    y=(pl.col("a") * pl.col("b") > 0).cast(pl.Int64)
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_a_sum_of_trees_that_does_not_fit_is_left_out(language, monkeypatch):
    members = [po.NaiveBayes(), po.GenerativeForest(combine="sum", n_trees=20)]
    kept = po.GenerativeClassifier(members, language=language, folds=2).fit(MANY, "y")
    assert list(kept.members_) == ["NaiveBayes", "residual trees"]
    assert kept.language_note_ == ""
    limited(monkeypatch, language, sum(find_language(language).size(one.model_) for one in kept.members_.values()) - 1)
    left = po.GenerativeClassifier(members, language=language, folds=2).fit(MANY, "y")
    assert list(left.members_) == ["NaiveBayes"]
    assert left.skipped_["residual trees"] in left.language_note_
    worth = left.cv_results_["log_loss"][-1] - kept.cv_results_["log_loss"][-1]
    stated = float(left.language_note_.split("is higher by ")[1].split(" ")[0])
    assert worth > 0.05
    assert stated == pytest.approx(worth, abs=0.05)


def of_categories(k):
    columns = tuple(ColumnSummary(f"c{j}", "categorical", k, 0, np.inf, -np.inf, True) for j in range(5))
    return TableSummary(columns, 10_000, 2, 0)


def test_trees_that_have_no_room_are_declined():
    few, many = (select_candidates(of_categories(k), MemberOptions(), find_language("sql")) for k in (5, 200))
    assert {"residual trees", "cells"} <= set(few.recipes)
    assert "characters of the SELECT (limit 20,000,000 for all)" in many.declined["residual trees"]
    assert 0 == many.reserved < few.reserved < find_language("sql").most
    in_javascript = select_candidates(of_categories(200), MemberOptions(), find_language("javascript"))
    assert "residual trees" in in_javascript.recipes


def test_the_length_of_a_sum_of_trees_is_forecast():
    columns = tuple(ColumnSummary(name, "continuous", 0, 0, -4.0, 4.0, False) for name in "abc")
    forecast = find_language("sql").size_of_sum(TableSummary(columns, 2_100, 2, 0))
    model = po.GenerativeForest(combine="sum", n_trees=300).fit(MANY, "y").model_
    assert 0.5 < forecast / estimate_length(model) < 3  # leaves are fewer where classes are sure
