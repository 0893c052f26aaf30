"""The evaluator in JavaScript gives the numbers of Python, for every kind of model and pattern of missing cells."""

import datetime
import json
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.javascript import to_javascript
from tests.javascript.engines import DRIVER, in_chromium, in_node
from tests.javascript.models import MODELS

TOLERANCE = {"rtol": 1e-9, "atol": 1e-9}


def as_json(cell):
    return cell.isoformat() if isinstance(cell, datetime.datetime) else cell


@pytest.fixture(scope="session")  # a worker may come to this file more than once
def fitted():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: make() for name, make in MODELS.items()}


@pytest.fixture(scope="session")
def files(fitted):
    def plain(rows):
        return [{name: as_json(cell) for name, cell in row.items()} for row in rows]

    return [{"file": json.loads(to_javascript(model)), "rows": plain(rows)} for model, rows in fitted.values()]


@pytest.fixture(scope="session")
def evaluated(fitted, files, tmp_path_factory):
    result = in_node(f"{DRIVER}\nconst result = given.map(evaluated);", files, tmp_path_factory.mktemp("node"))
    return dict(zip(fitted, result, strict=True))


def stacked(results, key):
    return np.array([result[key] for result in results], dtype=np.float64)


def python_answers(model, rows):
    """Return log p(y | x) and log p(x), None without density, of rows as dicts."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        frame = pl.DataFrame(rows, infer_schema_length=None)
        log_posterior = np.log(model.predict_proba(frame))
        if hasattr(model, "predict_log_proba"):
            log_posterior = model.predict_log_proba(frame)
        try:
            log_density = model.score_samples(frame)
        except ValueError:
            log_density = None
    return frame, log_posterior, log_density


@pytest.mark.parametrize("name", MODELS)
def test_posterior_and_density_are_those_of_python(name, fitted, evaluated):
    model, rows = fitted[name]
    _, log_posterior, log_density = python_answers(model, rows)
    results = evaluated[name]
    assert_allclose(stacked(results, "log_posterior"), log_posterior, **TOLERANCE)
    assert_allclose(stacked(results, "score"), np.exp(log_posterior), **TOLERANCE)
    if log_density is None:
        assert all(result["log_density"] is None for result in results)
    else:
        assert_allclose(stacked(results, "log_density"), log_density, **TOLERANCE)


@pytest.mark.parametrize("name", [name for name in MODELS if name != "mixture"])
def test_the_sum_is_that_of_python(name, fitted, evaluated):
    model, rows = fitted[name]
    frame, log_posterior, _ = python_answers(model, rows)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        explanation = model.explain(frame)
    results = evaluated[name]
    assert all(result["weighted"] == explanation.weighted for result in results)
    assert_allclose(stacked(results, "bias"), np.tile(explanation.log_prior, (len(rows), 1)), **TOLERANCE)
    factors = stacked(results, "factors").transpose(0, 2, 1)
    assert_allclose(factors, explanation.log_factors, **TOLERANCE)
    total = stacked(results, "bias") + factors.sum(axis=2)
    with np.errstate(all="ignore"):
        total = total - np.logaddexp.reduce(total, axis=1, keepdims=True)
    assert_allclose(total, log_posterior, **TOLERANCE)


def test_a_browser_gives_the_same_numbers(fitted, files, evaluated, tmp_path):
    result = in_chromium(f"{DRIVER}\nconst result = given.map(evaluated);", files, tmp_path)
    for name, ofNode, ofBrowser in zip(fitted, evaluated.values(), result, strict=True):
        for one, other in zip(ofNode, ofBrowser, strict=True):
            for key in ("log_posterior", "score", "bias", "factors"):
                assert_allclose(
                    np.array(other[key], np.float64), np.array(one[key], np.float64), **TOLERANCE, err_msg=name
                )


WARNINGS = """
const messages = [];
console.warn = (message) => messages.push(message);
const model = load(JSON.stringify(given.file));
const scores = given.rows.map((row) => model.score(row));
model.score(new Map([["Sex", "male"]]));
const result = { messages, scores };
"""


def test_a_row_may_lack_keys_and_unknown_ones_are_named_once(tmp_path):
    model = po.NaiveBayes().fit(load_penguins(), "species")
    file = json.loads(to_javascript(model))
    rows = [{}, {"year": 2007, "species": "Gentoo"}, {"Sex": "male"}, {"Sex": "male"}, {"sex": "mal", "moon": 1}]
    found = in_node(WARNINGS, {"file": file, "rows": rows}, tmp_path)
    assert found["messages"] == [
        'the row has "Sex", which is no column of the model; ignored; did you mean "sex"?',
        'the row has "moon", which is no column of the model; ignored',
        '"mal" of column "sex" is unseen in training and counts as missing; did you mean "male"?',
    ]
    of_nothing = found["scores"][0]
    assert_allclose(list(of_nothing.values()), model.class_prior_, **TOLERANCE)
    assert found["scores"][2] == of_nothing
    assert found["scores"][4] == of_nothing
