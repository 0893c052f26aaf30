"""What pairs of columns add to a posterior: sums, missing cells, explanations, files."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model.marginals import scores_without, scores_without_each
from tests.classifiers.pairs_by_hand import classifier_with_drawn_pairs


def centred(values):
    return values - values.mean(axis=-1, keepdims=True)


@pytest.fixture(scope="module")
def table():
    return load_penguins()


@pytest.fixture(scope="module")
def model(table):
    return classifier_with_drawn_pairs(table, "species", bins=6)


def test_a_pair_adds_its_number_unless_a_cell_is_missing(table, model):
    fitted = model.model_
    pairs, schema = fitted.weights.pairs, fitted.schema
    pairs.check_against(schema, 3)
    log_odds = np.log(model.predict_proba(table))
    plain = classifier_with_drawn_pairs(table, "species", drawn=False, bins=6)
    added = log_odds - np.log(plain.predict_proba(table))
    names = [schema.names[j] for j in schema.coded]
    cuts = model.cuts_
    expected = np.zeros_like(added)
    for i, row in enumerate(table.iter_rows(named=True)):
        for p, (a, b) in enumerate(pairs.places.tolist()):
            groups = []
            for place in (a, b):
                name, column = names[place], schema.columns[schema.coded[place]]
                cell = row[name]
                if cell is None:
                    break
                cut = cuts.get(name)
                code = column.categories.index(cell) if cut is None else int(np.searchsorted(cut, cell, side="right"))
                groups.append(int(pairs.groups(place)[code]))
            else:
                expected[i] += pairs.table(p)[:, groups[0], groups[1]]
    np.testing.assert_allclose(centred(added), centred(expected), atol=1e-9)


def test_explanations_with_pairs_as_features_are_exact_sums(table, model):
    explanation = model.explain(table)
    np.testing.assert_allclose(explanation.posterior, model.predict_proba(table), atol=1e-12)
    at = explanation.feature_names.index("island with bill_length_mm")
    some_missing = np.array([value is None for value in explanation.values[:, at]])
    assert (explanation.log_factors[some_missing, :, at] == 0).all()


def test_a_file_keeps_the_pairs(table, model, tmp_path):
    po.save(model, tmp_path / "m.posteriori")
    again = po.load(tmp_path / "m.posteriori")
    np.testing.assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    score = po.scoring.load_scorer(tmp_path / "m.posteriori")
    for row, wanted in zip(table.head(20).to_dicts(), model.predict_proba(table), strict=False):
        np.testing.assert_allclose(list(score(row).values()), wanted, atol=1e-12)


def test_without_a_column_its_pairs_are_left_out(table, model):
    rows = table.head(20)
    found = {}
    model._source(rows).map(lambda batch: found.update(batch=batch) or np.zeros(len(batch)))
    batch = found["batch"]
    each = scores_without_each(model.model_, batch)
    for j in range(len(each)):
        alone = scores_without(model.model_, batch, [j])
        np.testing.assert_allclose(centred(each[j]), centred(alone), atol=1e-9)


def test_a_missing_column_is_as_a_row_without_it(table, model):
    lacking = table.drop("island")
    whole = table.with_columns(island=pl.lit(None, pl.String))
    with pytest.warns(UserWarning, match="X lacks column 'island'"):
        found = model.predict_proba(lacking)
    np.testing.assert_allclose(found, model.predict_proba(whole), atol=1e-12)
