"""Rows with a number out of range or an unseen category: a mixture of the product and the mean of the members."""

import json
import pickle
import warnings
from dataclasses import replace

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp, rel_entr

import posteriori as po
from posteriori.javascript import to_javascript
from tests.javascript.engines import DRIVER, in_node
from tests.sql.test_to_sql import DATABASES, require_agreement

pytestmark = pytest.mark.filterwarnings("ignore:categories unseen in training:UserWarning")

MEMBERS = {
    "qda": po.GaussianDiscriminant(),
    "lda": po.GaussianDiscriminant(pooling="pooled"),
    "bins": po.NaiveBayes(distributions="binned"),
}


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=n)
    x = rng.normal(np.column_stack([y, y == 1, -1.0 * y]))
    frame = pl.DataFrame(x, schema=["a", "b", "c"]).with_columns(
        pl.Series("count", rng.poisson(3 + y)),
        pl.Series("kind", np.array(["u", "v", "w"])[(y + (x[:, 0] > 1)) % 3]),
        pl.Series("size", np.where(np.arange(n) % 9, rng.integers(2, 4, n) + y, None).tolist(), pl.Int64),
    )
    return frame, np.array(["p", "q", "r"])[y]


X, Y = table()
FAR = X.head(12).with_columns(
    pl.Series("a", [9.0, -9.0, 1e3, None, 0.0, 0.0, 0.0, 0.0, 5.0, 0.0, 0.0, 0.0]),
    pl.Series("b", [0.0, 0.0, 0.0, 50.0, 0.0, None, 0.0, 0.0, -7.0, 0.0, 0.0, 0.0]),
    pl.Series("count", [3, 3, 3, 3, 400, 3, None, 2, 3, 3, 2, 2]),
    pl.Series("kind", ["u", "v", "w", None, "u", "v", None, "x", "y", "u", "z", "v"]),
    pl.Series("size", [2, 3, 4, 5, None, 3, 3, None, 4, 90, -1, 4]),
)
IS_FAR = np.array([1, 1, 1, 1, 1, 0, 0, 1, 1, 1, 1, 0], bool)


@pytest.fixture(scope="module", params=[None, {"p": 0.6, "q": 0.3, "r": 0.1}], ids=["as trained", "priors"])
def pool(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return fitted(X, request.param)


def fitted(frame, priors=None, columns=("size",)):
    columns = po.Columns(categorical_features=list(columns))
    return po.GenerativeClassifier(members=MEMBERS, priors=priors, columns=columns).fit(frame, Y)


def batch_of(value, frame):
    (batch,) = value.rows.source(frame).stream(lambda batch: batch)
    return batch


def expected(pool, frame):
    """The formula of `Extrapolation`, from the predictions of the members alone."""
    value = pool.fitted_
    posterior = value.posterior
    batch = batch_of(value, frame)
    logs = np.stack([model.log_posterior(batch.with_schema(model.schema)) for model in posterior.models], axis=2)
    logs = np.maximum(np.nan_to_num(logs, nan=-np.log(3)), -700)
    weight, bias = zip(*[of_row(value.pool, row) for row in value.pool.parts(batch)], strict=True)
    product = (logs * np.array(weight)[:, np.newaxis]).sum(axis=2) + np.array(bias)
    product -= logsumexp(product, axis=1, keepdims=True)
    mean = (np.exp(logs) * np.array(weight)[:, np.newaxis]).sum(axis=2) * np.exp(value.log_prior_ratio)
    mean /= mean.sum(axis=1, keepdims=True)
    nats = rel_entr(mean, np.exp(product)).sum(axis=1)
    share = np.where(IS_FAR, 0.15 + 0.85 * nats**4 / (nats**4 + 81.0), 0.0)[:, np.newaxis]
    return (1 - share) * np.exp(product) + share * mean


def of_row(pool, parts):
    of_whole, of_partial, of_nothing = parts[:3]
    return tuple(
        of_whole * one + of_partial * two + of_nothing * three
        for one, two, three in (
            (pool.weight, pool.partial.weight, pool.partial.nothing_weight),
            (pool.bias, pool.partial.bias, pool.partial.nothing_bias),
        )
    )


def test_rows_outside_are_mixtures(pool):
    assert_allclose(pool.predict_proba(FAR), expected(pool, FAR), rtol=1e-9, atol=1e-12)


def test_rows_within_have_the_product_to_the_last_bit(pool):
    alone = pool.predict_proba(FAR.filter(pl.Series(~IS_FAR)))
    assert_array_equal(pool.predict_proba(FAR)[~IS_FAR], alone)
    without = pool.fitted_.posterior
    product = without.pool.__class__(without.pool.weight, without.pool.bias, without.pool.partial)
    batch = batch_of(pool.fitted_, X)
    logs = np.stack([model.log_posterior(batch.with_schema(model.schema)) for model in without.models], axis=2)
    assert_array_equal(pool.predict_proba(X), np.exp(product.log_posterior(logs)))


def test_whole_numbers_stand_for_half_a_unit_more(pool):
    most = X["count"].max()
    edge = X.head(3).with_columns(pl.Series("count", [most, most + 0.5, most + 0.6], dtype=pl.Float64))
    ranges = pool.fitted_.ranges
    assert ranges.outside(batch_of(pool.fitted_, edge)).any(axis=1).tolist() == [False, False, True]


def test_explanations_add_up_and_blame_the_columns_outside(pool):
    value = pool.fitted_
    batch = batch_of(value, FAR)
    factors = value.posterior.explaining_factors(batch)
    score = value.posterior.bias + factors.sum(axis=2)
    assert_allclose(score - logsumexp(score, axis=1, keepdims=True), pool.predict_log_proba(FAR), atol=1e-9)


def test_files_pickles_sql_and_javascript_agree(pool, tmp_path):
    predicted = pool.predict_proba(FAR)
    po.save(pool, tmp_path / "pool.po")
    for other in (po.load(tmp_path / "pool.po"), pickle.loads(pickle.dumps(pool))):
        assert_array_equal(other.predict_proba(FAR), predicted)
    score = pool.scorer()
    for row, of_row in zip(FAR.to_dicts(), predicted, strict=True):
        assert_array_equal(list(score(row).values()), of_row)
    for database in DATABASES:
        require_agreement(pool, FAR, database)
    written = [{"file": json.loads(to_javascript(pool)), "rows": FAR.to_dicts()}]
    (found,) = in_node(f"{DRIVER}\nconst result = given.map(evaluated);", written, tmp_path)
    for row, of_row in zip(found, predicted, strict=True):
        assert_allclose(np.exp(row["log_posterior"]), of_row, rtol=1e-9, atol=1e-12)
        score = np.array(row["bias"]) + np.sum(row["factors"], axis=0)
        assert_allclose(np.exp(score - logsumexp(score)), of_row, rtol=1e-9, atol=1e-12)


TABLES = {
    "pandas": FAR.to_pandas(),
    "pandas categories": FAR.to_pandas().astype({"kind": "category"}),
    "pandas of nullable integers": FAR.to_pandas().convert_dtypes(),
    "dicts": FAR.to_dicts(),
    "polars categories": FAR.cast({"kind": pl.Categorical}),
    "polars of floats": FAR.cast({"size": pl.Float64}),
    "polars of many rows": pl.concat([FAR] * 100),
    "pandas of many rows": pd.concat([FAR.to_pandas().astype({"kind": "string"})] * 100),
}


@pytest.mark.parametrize("kind", TABLES)
def test_every_table_has_the_same_rows_outside(pool, kind, tmp_path):
    found = pool.predict_proba(TABLES[kind])
    assert_array_equal(found, np.tile(pool.predict_proba(FAR), (len(found) // len(FAR), 1)))
    FAR.write_csv(tmp_path / "far.csv")
    assert_allclose(pool.predict_proba(po.scan(tmp_path / "far.csv")), pool.predict_proba(FAR), rtol=1e-12)


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_arrays_of_objects_have_the_same_rows_outside():
    pool = fitted(X.to_numpy().astype(object), columns=(4, 5))
    far = FAR.to_numpy().astype(object)
    assert_allclose(pool.predict_proba(far), expected(pool, far), rtol=1e-9, atol=1e-12)


def test_what_extrapolation_changes_is_of_columns_outside(pool):
    value = pool.fitted_
    batch, posterior = batch_of(value, FAR), value.posterior
    within = replace(posterior, pool=replace(posterior.pool, extrapolation=None))
    change = posterior.explaining_factors(batch) - within.explaining_factors(batch)
    outside = posterior.pool.extrapolation.outside(batch)
    names = value.schema.names
    found = {(int(i), names[j]) for i, j in np.argwhere(outside)}
    assert found == {
        *((i, "a") for i in (0, 1, 2, 8)),
        *((i, "b") for i in (3, 8)),
        *((4, "count"), (7, "kind"), (8, "kind"), (10, "kind"), (9, "size"), (10, "size")),
    }
    assert (change.any(axis=1) == outside).all()


def test_a_column_that_is_left_out_no_longer_lies_outside(pool):
    value = pool.fitted_
    batch = batch_of(value, FAR)
    whole, without = value.posterior.log_posteriors_without_each(batch)
    assert_array_equal(whole, pool.predict_log_proba(FAR))
    for j in range(len(value.schema.columns)):
        of_one = value.posterior.log_posterior_without(batch, [j])
        assert_allclose(without[j], of_one, atol=1e-9)


def test_values_of_a_column_in_turn_are_those_of_rows_with_them(pool):
    value = pool.fitted_
    values = [-50.0, 0.0, 3.0, 50.0]
    batch = batch_of(value, FAR)
    found = value.posterior.log_posteriors_at(batch, 0, np.array(values))
    for value_of_a, of_value in zip(values, found, strict=True):
        frame = FAR.with_columns(pl.lit(value_of_a).alias("a"))
        assert_allclose(of_value, pool.predict_log_proba(frame), atol=1e-8)
    of_kinds = value.posterior.log_posteriors_at(batch, value.schema.names.index("kind"), np.arange(1, 4))
    for kind, of_value in zip(("u", "v", "w"), of_kinds, strict=True):
        frame = FAR.with_columns(pl.lit(kind).alias("kind"))
        assert_allclose(of_value, pool.predict_log_proba(frame), atol=1e-8)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("database", DATABASES)
def test_years_and_empty_columns_agree_in_other_languages(database, tmp_path):
    """A year unseen lies outside; what a column holds that had no value in training does not."""
    months = np.arange(np.datetime64("2020-01"), np.datetime64("2022-01"))
    days = pl.Series("day", months[np.arange(len(X)) % 24].astype("datetime64[ms]"))
    known = X.select("a", "kind").with_columns(days.cast(pl.Date), empty=pl.lit(None, pl.String))
    columns = po.Columns(categorical_features=["empty"])
    members = {"first": po.NaiveBayes(), "second": po.NaiveBayes(distributions="binned")}
    pool = po.GenerativeClassifier(members=members, columns=columns).fit(known, Y)
    far = known.head(5).with_columns(
        pl.Series("day", ["2020-02-03", "2035-05-01", None, "2021-12-01", "1999-01-31"]).str.to_date(),
        empty=pl.Series([None, "full", None, "full", None], dtype=pl.String),
    )
    posterior = pool.fitted_.posterior
    rows, places = np.nonzero(posterior.pool.extrapolation.outside(batch_of(pool.fitted_, far)))
    names = [pool.fitted_.schema.names[j] for j in places]
    assert {(int(i), name) for i, name in zip(rows, names, strict=True) if "year" in name} == {
        (1, "day.year"),
        (4, "day.year"),
    }
    assert "empty" not in names
    require_agreement(pool, far, database)
    written = [{"file": json.loads(to_javascript(pool)), "rows": far.cast({"day": pl.String}).to_dicts()}]
    (found,) = in_node(f"{DRIVER}\nconst result = given.map(evaluated);", written, tmp_path)
    for row, of_row in zip(found, pool.predict_proba(far), strict=True):
        assert_allclose(np.exp(row["log_posterior"]), of_row, rtol=1e-9, atol=1e-12)


def test_batches_with_and_without_gaps_are_evaluated_together():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=70_000)
    x = rng.normal(size=(len(y), 2)) + y[:, np.newaxis]
    x[-50:, 1] = np.nan
    model = po.GenerativeClassifier(members=["nb"], folds=2).fit(x, y)
    assert len(model.out_of_fold_.y_true) > 16_384
