"""Feature weights and rows of which some cells are known, which share what a bias adds to the prior."""

import json

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.fitting.rows import read_further_rows
from posteriori.javascript import to_javascript
from posteriori.learning.weights import fit_weights, left_out_factors
from posteriori.model_selection import leave_one_out
from tests.javascript.engines import DRIVER, in_node
from tests.sql.test_to_sql import in_duckdb, with_holes

PENGUINS = load_penguins()
X = PENGUINS.drop("species")
MODELS = {
    "naive Bayes": po.NaiveBayes(feature_weights="conditional"),
    "kdb": po.KDependenceBayes(bins=4, feature_weights="conditional"),
    "informative": po.NaiveBayes(feature_weights="conditional", missing="informative"),
}


@pytest.fixture(scope="module", params=MODELS)
def model(request):
    return MODELS[request.param].fit(PENGUINS, "species")


@pytest.fixture(scope="module")
def hidden():
    """Return rows with none, some and all cells hidden."""
    rng = np.random.default_rng(0)
    return pl.concat([X[:20], *(with_holes(X[::10], share, rng) for share in (0.3, 0.6, 0.9)), X.clear(2)])


def shares_of(model, rows):
    """Return the share of known cells, by what is known of the tables: the gaps of some columns are evidence."""
    known = rows.select(pl.all().is_not_null()).to_numpy()
    if model.missing == "informative":
        known |= PENGUINS.drop("species").select(pl.all().is_null().any()).to_numpy()
    return known.mean(axis=1)


def test_the_score_is_prior_plus_factors_plus_part_of_the_offset(model, hidden):
    plain = type(model)(**model.get_params() | {"feature_weights": None}).fit(PENGUINS, "species")
    factors = plain.explain(hidden).log_factors @ model.feature_weights_
    offset = model.class_bias_ - model.class_log_prior_
    assert np.ptp(offset) > 0.01
    score = model.class_log_prior_ + factors + shares_of(model, hidden)[:, np.newaxis] * offset
    assert_allclose(model.predict_log_proba(hidden), log_softmax(score, axis=1), atol=1e-12)


@pytest.mark.parametrize("name", ["naive Bayes", "kdb"])
def test_nothing_known_gives_the_prior_everywhere(name, tmp_path):
    model = MODELS[name].fit(PENGUINS, "species")
    prior, blank = model.class_prior_, X.clear(1)
    assert_allclose(model.predict_proba(blank)[0], prior, rtol=1e-14)
    po.save(model, tmp_path / "m.posteriori")
    assert_array_equal(po.load(tmp_path / "m.posteriori").predict_proba(blank), model.predict_proba(blank))
    assert_allclose(list(po.scoring.load_scorer(tmp_path / "m.posteriori")({}).values()), prior, rtol=1e-14)
    (found,) = in_node(f"{DRIVER}\nconst result = given.map(evaluated);", [written(model, blank)], tmp_path)
    assert_allclose(np.exp(found[0]["log_posterior"]), prior, rtol=1e-14)
    selected = in_duckdb(model.to_sql(columns=[]), blank).select(pl.col("^p_.*$").cast(pl.Float64)).to_numpy()
    assert_allclose(selected[0], prior, rtol=1e-14)
    given = type(model)(**model.get_params() | {"priors": [0.2, 0.5, 0.3]}).fit(PENGUINS, "species")
    assert_allclose(given.predict_proba(blank)[0], [0.2, 0.5, 0.3], rtol=1e-14)
    moved = model.model_.with_class_prior(np.log([0.2, 0.5, 0.3]))
    assert_allclose(softmax(moved.start(np.zeros((1, X.width), np.bool_))[0]), [0.2, 0.5, 0.3], rtol=1e-14)
    assert_allclose(moved.offset, model.model_.offset, atol=1e-12)


def written(model, rows):
    return {"file": json.loads(to_javascript(model)), "rows": rows.rows(named=True)}


def test_every_engine_gives_the_posterior_of_partial_rows(model, hidden, tmp_path):
    posterior = model.predict_proba(hidden)
    po.save(model, tmp_path / "m.posteriori")
    scorer = po.scoring.load_scorer(tmp_path / "m.posteriori")
    assert_allclose([list(scorer(row).values()) for row in hidden.rows(named=True)], posterior, atol=1e-12)
    (found,) = in_node(f"{DRIVER}\nconst result = given.map(evaluated);", [written(model, hidden)], tmp_path)
    assert_allclose(np.exp([row["log_posterior"] for row in found]), posterior, atol=1e-12)
    out = in_duckdb(model.to_sql(columns=["row"]), hidden.with_row_index("row")).sort("row")
    assert_allclose(out.select(pl.col("^p_.*$").cast(pl.Float64)).to_numpy(), posterior, atol=1e-12)


def test_an_explanation_leads_from_the_prior_to_the_posterior(model, hidden):
    found = model.explain(hidden)
    assert found.constant == "prior"
    assert_allclose(found.log_prior, model.class_log_prior_)
    total = found.log_prior + found.log_factors.sum(axis=2)
    assert_allclose(log_softmax(total, axis=1), model.predict_log_proba(hidden), atol=1e-12)
    if model.missing != "informative":
        unknown = hidden.select(pl.all().is_null()).to_numpy()
        assert_array_equal(np.moveaxis(found.log_factors, 2, 1)[unknown], 0.0)


def test_a_column_that_is_integrated_out_is_unknown(model):
    batch = read_further_rows(model.fitted_, X, PENGUINS["species"]).source.batch(slice(0, 60))
    whole, without = model._posterior.log_posteriors_without_each(batch)
    assert_allclose(whole, model.predict_log_proba(X[:60]), atol=1e-12)
    for j, name in enumerate(X.columns):
        if PENGUINS[name].null_count() == 0 or model.missing != "informative":
            blank = X[:60].with_columns(pl.lit(None, X.schema[name]).alias(name))
            assert_allclose(without[j], model.predict_log_proba(blank), atol=1e-9)


def test_words_have_their_part_of_the_offset():
    texts = ["cheap pills now", "cheap offer", "meeting at noon", "noon lunch", "pills offer now", "lunch meeting"] * 5
    frame = pl.DataFrame({"text": texts, "n": np.arange(30) % 4, "y": ["s", "s", "h", "h", "s", "h"] * 5})
    model = po.NaiveBayes(columns=po.Columns(text=["text"]), feature_weights="conditional").fit(frame[:29], "y")
    rows = frame.drop("y").with_columns(n=pl.when(pl.col("n") > 1).then("n"))
    found = model.explain(rows)
    total = found.log_prior + found.log_factors.sum(axis=2)
    assert_allclose(log_softmax(total, axis=1), model.predict_log_proba(rows), atol=1e-12)
    for i, words in enumerate(found.words):
        assert_allclose(words["text"].total, found.log_factors[i, :, 0], atol=1e-12)


def test_weights_are_fitted_with_the_same_law():
    """A general method finds the optimum of the loss that is written out here."""
    rng = np.random.default_rng(0)
    table = with_holes(X, 0.4, rng).with_columns(PENGUINS["species"])
    model, plain = (po.NaiveBayes(feature_weights=weights).fit(table, "species") for weights in ("conditional", None))
    batch = read_further_rows(plain.fitted_, table.drop("species"), table["species"]).source.batch(
        slice(0, table.height)
    )
    factors, y = left_out_factors(plain.model_, plain.statistics_, batch), batch.assignment.component
    share = table.drop("species").select(pl.all().is_not_null()).to_numpy().mean(axis=1)
    log_prior, d = plain.class_log_prior_, X.width

    def loss(position):
        bias, weight = position[:3], position[3:]
        score = log_prior + share[:, np.newaxis] * (bias - log_prior) + factors @ weight
        common = (10.0 * weight.sum() + 1.0) / (10.0 * d + 1.0)
        penalty = 10.0 * ((weight - common) ** 2).sum() + (common - 1.0) ** 2 + ((bias - log_prior) ** 2).sum()
        return -log_softmax(score, axis=1)[np.arange(len(y)), y].sum() + 0.5 * penalty

    bounds = [(None, None)] * 3 + [(0.0, None)] * d
    best = minimize(loss, np.append(log_prior, np.ones(d)), bounds=bounds, options={"ftol": 1e-14, "maxfun": 10**5})
    assert_allclose(model.class_bias_, best.x[:3], atol=1e-3)
    assert_allclose(model.feature_weights_, best.x[3:], atol=1e-3)
    assert loss(np.append(model.class_bias_, model.feature_weights_)) <= best.fun + 1e-6
    without = fit_weights(factors, log_prior, y, np.ones(len(y)))
    assert np.abs(without.bias - model.class_bias_).max() > 1e-3
    left_out = leave_one_out(model, table.drop("species"), table["species"])
    offset = model.class_bias_ - log_prior
    log_joint = np.log(left_out.prior) + share[:, np.newaxis] * offset + factors @ model.feature_weights_
    assert_allclose(left_out.posterior, softmax(log_joint, axis=1), atol=1e-9)
