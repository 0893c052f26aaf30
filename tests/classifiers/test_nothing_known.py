"""Where nothing of a row is known, every classifier gives the class prior, also to texts without a known word."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.javascript import to_javascript
from tests.javascript.engines import in_node

WORDS = {"a": "apple tree sun green leaf", "b": "rock iron sand dust stone", "c": "fish water wave salt"}
NOTHING = [{}, {"text": None}, {"text": ""}, {"text": "zzz qqq"}, {"text": "!? ... "}]


def rows(n_classes, kind):
    """Return rows of text, alone or beside other columns, in which every tenth text is missing, and their labels."""
    rng = np.random.default_rng(n_classes)
    y = np.repeat(list("abc")[:n_classes], [90, 50, 40][:n_classes])
    texts = [" ".join(rng.choice([*WORDS[c].split(), "the", "of", "and"], rng.integers(3, 8))) for c in y]
    table = {"text": [None if i % 10 == 0 else text for i, text in enumerate(texts)]}
    if kind != "alone":
        shown = rng.normal(size=len(y)) + 2.0 * (y == "a")
        table["x"] = [None if i % 7 == 0 else x for i, x in enumerate(shown.tolist())]
    if kind == "numbers and categories":
        table["z"] = rng.normal(size=len(y)).tolist()
        table["k"] = np.where(rng.random(len(y)) < 0.8, y, "?").tolist()
    if kind == "two texts":
        table["title"] = [None if text is None else text[::-1] for text in table["text"]]
    return pl.DataFrame(table), y


MODELS = {
    "pool": po.GenerativeClassifier,
    "pool with priors": lambda **given: po.GenerativeClassifier(priors="uniform", **given),
    "weighted": lambda **given: po.NaiveBayes(feature_weights="conditional", **given),
    "naive Bayes": po.NaiveBayes,
}


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("kind", ["alone", "beside a number", "numbers and categories", "two texts"])
@pytest.mark.parametrize("n_classes", [2, 3])
def test_a_row_of_which_nothing_is_known_has_the_prior(model, kind, n_classes):
    X, y = rows(n_classes, kind)
    texts = ["text", "title"] if kind == "two texts" else ["text"]
    fitted = MODELS[model](columns=po.Columns(text=texts)).fit(X, y)
    prior = np.tile(fitted.class_prior_, (len(NOTHING), 1))
    assert_allclose(fitted.predict_proba(NOTHING), prior, rtol=1e-12)
    assert fitted.score(X, y) > fitted.class_prior_.max()


def test_a_pool_of_text_explains_partial_rows_as_javascript_does(tmp_path):
    X, y = rows(2, "beside a number")
    pool = po.GenerativeClassifier(members=["nb", "binned weighted"], columns=po.Columns(text=["text"])).fit(X, y)
    given = [*NOTHING, {"text": "apple sun"}, {"x": 1.5}, {"text": "rock", "x": -1.0}, {"text": "zzz", "x": 2.5}]
    expected = np.log(pool.predict_proba(given))
    explained = pool.explain(given)
    scores = explained.log_prior + explained.log_factors.sum(axis=2)
    assert_allclose(scores - np.logaddexp.reduce(scores, axis=1)[:, np.newaxis], expected, atol=1e-9)
    for row, of_row in enumerate(explained.log_factors):
        assert_allclose(explained.words_of(row)["text"].total, of_row[:, 0], atol=1e-12)
    script = "const model = load(given.model); const result = given.rows.map((row) => [...model.logPosterior(row)]);"
    found = in_node(script, {"model": to_javascript(pool), "rows": given}, tmp_path)
    assert_allclose(found, expected, atol=1e-12)
