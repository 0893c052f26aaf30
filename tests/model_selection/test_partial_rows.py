"""Pools of rows of which some cells are unknown: how much is known, and the prior where nothing is."""

import itertools
import json
import warnings

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.optimize import minimize
from scipy.special import log_softmax

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.javascript import to_javascript
from posteriori.learning.pool_weights import fit_partial_weights
from posteriori.model import KnownCells, PartialRows, Pool
from tests.javascript.engines import DRIVER, in_node
from tests.sql.test_to_sql import in_duckdb

PENGUINS = load_penguins()
X = PENGUINS.drop("species")
MEMBERS = ["nb", "lda", "tan 5", "cells"]


@pytest.fixture(scope="module")
def model():
    return po.GenerativeClassifier(MEMBERS).fit(PENGUINS, "species")


@pytest.fixture(scope="module")
def hidden():
    """Rows of which more and more cells are hidden, from none to all."""
    rows = X[::6]
    mask = np.random.default_rng(0).random((rows.height, rows.width)) < np.linspace(0, 1, rows.height)[:, np.newaxis]
    return rows.with_columns(
        pl.when(pl.Series(mask[:, j])).then(None).otherwise(pl.col(name)).alias(name)
        for j, name in enumerate(rows.columns)
    )


def share_by_hand(cells, known, weight, typical):
    counted = {j for j in range(len(known)) if known[j]}
    shares = [sum(weight[j] for j in counted) / typical]
    for one in cells.patterns:
        pattern = set(np.flatnonzero(one).tolist())
        shares.append(sum(weight[j] for j in counted & pattern) / sum(weight[j] for j in pattern))
    return min(max(shares), 1.0)


@given(st.integers(0, 10_000))
def test_how_much_is_known_is_added_up_as_by_hand(seed):
    rng = np.random.default_rng(seed)
    d = int(rng.integers(1, 6))
    weight = np.where(rng.random(d) < 0.8, rng.random(d) + 0.01, 0.0)
    weight /= max(weight.sum(), 1e-300)
    patterns = (rng.random((int(rng.integers(0, 4)), d)) < 0.6) & (weight > 0)
    typical, number = float(rng.uniform(0.3, 1.0)), float(rng.integers(1, d + 1))
    cells = KnownCells(weight, typical, number, patterns[patterns.any(axis=1)], float(2 ** rng.integers(4)))
    known = np.array(list(itertools.product([False, True], repeat=d)))
    s = np.array([share_by_hand(cells, row, weight.tolist(), typical) for row in known])
    c = np.array([share_by_hand(cells, row, (weight > 0).tolist(), number) for row in known])
    assert_allclose(cells.shares(known), np.stack([s, c], axis=1), rtol=1e-12)
    whole, partial, nothing = cells.parts(known).T
    assert_allclose(nothing, (1 - np.minimum(s, c)) ** 3, atol=1e-12)
    assert_allclose(whole, (1 - nothing) * (1 - (1 - s**cells.power) ** 2), atol=1e-12)
    assert_allclose(whole + partial + nothing, 1.0, rtol=1e-12)
    for fewer, more in itertools.product(range(len(known)), repeat=2):
        if (known[fewer] <= known[more]).all():  # more is known, so more of the whole and less of nothing
            assert whole[fewer] <= whole[more] + 1e-12
            assert nothing[fewer] >= nothing[more] - 1e-12


def test_rows_with_the_gaps_of_training_rows_are_whole():
    rows = PENGUINS.with_columns(pl.when(pl.int_range(pl.len()) % 3 == 0).then("bill_depth_mm"))
    model = po.GenerativeClassifier(MEMBERS).fit(rows, "species")
    complete, gappy = rows.drop_nulls(), rows.filter(pl.col("bill_depth_mm").is_null()).drop_nulls("sex")
    for part in (complete, gappy):
        logs = np.stack([one.predict_log_proba(part) for one in model.members_.values()], axis=2)
        score = model.class_bias_ + logs @ np.array(list(model.member_weights_.values()))
        assert_allclose(model.predict_log_proba(part), log_softmax(score, axis=1), atol=1e-9)


def test_the_pool_of_a_row_is_the_mean_of_three_by_their_parts():
    rng = np.random.default_rng(0)
    logs = log_softmax(rng.normal(size=(5, 3, 2)), axis=1)
    cells = KnownCells(np.full(4, 0.25), 1.0, 4.0, np.empty((0, 4), np.bool_), 2.0)
    partial = PartialRows(np.array([0.2, 0.9]), rng.normal(size=3), np.array([0.0, 1.0]), rng.normal(size=3), cells)
    pool = Pool(np.array([1.0, 0.5]), rng.normal(size=3), partial)
    parts = cells.parts(np.arange(4) < np.arange(5)[::-1, np.newaxis])
    weights = np.stack([pool.weight, partial.weight, partial.nothing_weight])
    biases = np.stack([pool.bias, partial.bias, partial.nothing_bias])
    score = [logs[i] @ (parts[i] @ weights) + parts[i] @ biases for i in range(5)]
    assert_allclose(pool.log_posterior(logs, parts), log_softmax(score, axis=1), rtol=1e-12)
    assert_allclose(np.stack(pool.weights(parts), axis=1), parts @ weights, rtol=1e-12)


def test_a_member_for_partial_rows_changes_no_whole_row():
    rng = np.random.default_rng(1)
    logs = log_softmax(rng.normal(size=(200, 3, 4)), axis=1)
    cells = KnownCells(np.full(4, 0.25), 1.0, 4.0, np.empty((0, 4), np.bool_), 2.0)
    partial = PartialRows(rng.random(4), rng.normal(size=3), np.array([0.0, 0.0, 1.0, 0.0]), rng.normal(size=3), cells)
    pool = Pool(np.array([0.3, 0.5, 0.0, 0.2]), rng.normal(size=3), partial)
    parts = cells.parts(rng.random((200, 4)) < 0.9)
    whole = parts[:, 0] == 1.0
    assert 0 < whole.sum() < 200
    of_whole = np.stack([logs[:, :, m] for m in (0, 1, 3)], axis=2)  # as the rows of a table without gaps have them
    alone = Pool(pool.weight[[0, 1, 3]], pool.bias).log_posterior(of_whole)
    assert np.array_equal(pool.log_posterior(logs, parts)[whole], alone[whole])


def test_no_bit_of_a_row_depends_on_the_other_rows():
    rng = np.random.default_rng(2)
    n, n_classes, n_members, d = 300, 3, 5, 6
    logs = log_softmax(rng.normal(size=(n, n_classes, n_members)), axis=1)
    weight = rng.dirichlet(np.ones(d))
    cells = KnownCells(weight, 0.9, 0.9 * d, rng.random((4, d)) < 0.7, 2.0)
    biases = rng.normal(size=(3, n_classes))
    partial = PartialRows(rng.random(n_members), biases[0], rng.dirichlet(np.ones(n_members)), biases[1], cells)
    pool = Pool(rng.random(n_members), biases[2], partial)
    known = rng.random((n, d)) < 0.7
    alone = [pool.log_posterior(logs[[i]], cells.parts(known[[i]])) for i in range(n)]
    assert np.array_equal(pool.log_posterior(logs, cells.parts(known)), np.concatenate(alone))


def test_rows_alone_have_the_bits_that_they_have_in_a_table(hidden):
    pool = po.GenerativeClassifier(["nb", "tan 5", "aode 8 bins"]).fit(PENGUINS, "species")
    alone = np.concatenate([pool.predict_log_proba(row) for row in hidden.iter_slices(1)])
    assert np.array_equal(pool.predict_log_proba(hidden), alone)


def test_nothing_known_gives_the_prior_beside_constant_columns():
    table = pl.DataFrame({"one": [3.0] * 40, "same": ["a"] * 20 + [None] * 20, "void": [None] * 40})
    with pytest.warns(UserWarning, match="void"):
        model = po.GenerativeClassifier(["nb", "binned weighted"]).fit(table, list("uvvwuvvwwu" * 3 + "uuvvvwwwww"))
    assert_allclose(model.predict_proba([{}, {"one": 3.0}])[0], model.class_prior_, rtol=1e-14)
    found = model.explain(table)
    scores = found.log_prior + found.log_factors.sum(axis=2)
    assert_allclose(log_softmax(scores, axis=1), model.predict_log_proba(table), atol=1e-12)


@given(st.integers(0, 1000))
def test_the_weights_are_the_optimum(seed):
    rng = np.random.default_rng(seed)
    n, n_classes, n_members = 40, 3, 2
    ratios, offset = rng.normal(size=(n, n_classes, n_members)), rng.normal(size=(n, n_classes))
    y, weight, centre = rng.integers(0, n_classes, n), rng.random(n), rng.random(n_members)

    def loss(v):
        log_p = log_softmax(offset + ratios @ v, axis=1)[np.arange(n), y]
        return (-weight @ log_p + 0.5 * 3.0 * n_members * ((v - centre) ** 2).sum()) / weight.sum()

    found, at = fit_partial_weights(ratios, offset, y, weight, 3.0, centre)
    expected = minimize(loss, np.full(n_members, 0.5), bounds=[(0, None)] * n_members)
    assert at == pytest.approx(loss(found), rel=1e-9)
    assert at <= expected.fun + 1e-6
    assert_allclose(found, expected.x, atol=1e-3)


def test_nothing_known_gives_the_prior_everywhere(model, tmp_path):
    prior = model.class_prior_
    blank = X.clear(1)
    assert_allclose(model.predict_proba(blank)[0], prior, rtol=1e-14)
    po.save(model, tmp_path / "m.posteriori")
    assert_allclose(list(po.scoring.load_scorer(tmp_path / "m.posteriori")({}).values()), prior, rtol=1e-14)
    moved = po.GenerativeClassifier(["nb", "lda"], priors=[0.2, 0.5, 0.3]).fit(PENGUINS, "species")
    assert_allclose(moved.predict_proba(blank)[0], [0.2, 0.5, 0.3], rtol=1e-14)


def test_nothing_known_gives_the_prior_after_updates_and_merges():
    table = PENGUINS.select("island", "sex", "species")
    parts = [table[::2], table[1::2]]
    pools = [po.GenerativeClassifier(["nb", "tan 5"]).fit(part, "species") for part in parts]
    merged = po.merge(pools)
    pools[0].partial_fit(parts[1], "species")
    for pool in (merged, pools[0]):
        assert_allclose(pool.predict_proba(table.drop("species").clear(1))[0], pool.class_prior_, rtol=1e-14)


def test_every_engine_gives_the_posterior_of_partial_rows(model, hidden, tmp_path):
    posterior = model.predict_proba(hidden)
    po.save(model, tmp_path / "m.posteriori")
    scorer = po.scoring.load_scorer(tmp_path / "m.posteriori")
    rows = hidden.rows(named=True)
    assert_allclose([list(scorer(row).values()) for row in rows], posterior, atol=1e-12)
    script = f"{DRIVER}\nconst result = given.map(evaluated);"
    (found,) = in_node(script, [{"file": json.loads(to_javascript(model)), "rows": rows}], tmp_path)
    assert_allclose(np.exp([np.array(row["log_posterior"]) for row in found]), posterior, atol=1e-12)
    select = model.to_sql(dialect="duckdb", columns=["row"])
    out = in_duckdb(select, hidden.with_row_index("row")).sort("row")
    assert_allclose(out.select(pl.col("^p_.*$").cast(pl.Float64)).to_numpy(), posterior, atol=1e-12)


def test_an_explanation_leads_from_the_prior_to_the_posterior(model, hidden):
    found = model.explain(hidden)
    assert_allclose(found.log_prior, np.log(model.class_prior_))
    assert_allclose(
        log_softmax(found.log_prior + found.log_factors.sum(axis=2), axis=1), model.predict_log_proba(hidden), atol=1e-9
    )
    unknown = np.array([[cell is None for cell in row] for row in hidden.rows()])
    assert_allclose(np.moveaxis(found.log_factors, 2, 1)[unknown], 0.0, atol=1e-12)


@pytest.mark.parametrize(
    ("members", "parameters"),
    [
        (["nb", "forest"], {"penalty": 1e4}),
        (["nb", "tan 5"], {"priors": [0.9, 0.1]}),
        (["nb"], {"pool": "best"}),
        ({"strict": po.NaiveBayes(alpha=0.0), "tan": "tan 5"}, {}),
        ({"strict": po.NaiveBayes(alpha=0.0)}, {"priors": [0.2, 0.8], "pool": "best"}),
    ],
    ids=str,
)
def test_an_explanation_sums_up_where_posteriors_are_clipped(members, parameters, tmp_path):
    """Of many columns that say the same, naive Bayes is off by thousands of nats; without smoothing, it rules out."""
    rng = np.random.default_rng(0)
    n = 240
    y = rng.integers(0, 2, n)
    numbers = (rng.normal(size=n) + 2.0 * y)[:, np.newaxis] * 3.0 + rng.normal(size=(n, 120)) * 0.1
    rows = pl.DataFrame(numbers, schema=[f"x{j}" for j in range(120)]).with_columns(
        s=pl.Series(np.where(rng.random(n) < 0.1, "rare", np.array(["u", "v"])[y])),
        t=pl.Series(np.where(rng.random(n) < 0.5, "w", np.array(["v", "u"])[y])),
    )
    rows = rows.select(pl.when(pl.Series(rng.random(n) < 0.9)).then(pl.col(name)).alias(name) for name in rows.columns)
    pool = po.GenerativeClassifier(members, folds=2, random_state=0, **parameters).fit(rows[:200], y[:200])
    asked = rows[200:].with_columns(s=pl.Series(["u", "v"] * 20))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        least = min(one.predict_log_proba(asked).min() for one in pool.members_.values())
    assert least < -700.0 or not np.isfinite(least)
    found = pool.explain(asked)
    scores = found.log_prior + found.log_factors.sum(axis=2)
    assert_allclose(log_softmax(scores, axis=1), pool.predict_log_proba(asked), atol=1e-9)
    script = f"{DRIVER}\nconst result = given.map(evaluated);"
    (of_node,) = in_node(script, [{"file": json.loads(to_javascript(pool)), "rows": asked.rows(named=True)}], tmp_path)
    factors = [np.transpose(np.array(row["factors"], np.float64)) for row in of_node]
    assert_allclose(factors, found.log_factors, rtol=1e-9, atol=1e-9)


def test_hidden_cells_are_predicted_better_than_by_whole_rows():
    """With half of the cells hidden, members that separate the classes by all columns together must fade."""
    rng = np.random.default_rng(0)
    table = pl.DataFrame({f"x{j}": rng.choice(["u", "v", "w"], 500) for j in range(6)})
    codes = np.array([[{"u": 0, "v": 1, "w": 2}[cell] for cell in row] for row in table.rows()])
    y = np.where((codes[:, :3] == 2).sum(axis=1) >= 2, "a", "b")
    model = po.GenerativeClassifier(["nb", "cells", "forest"]).fit(table[:300], y[:300])
    rows = table[300:].with_columns(
        pl.when(pl.Series(rng.random(200) < 0.5)).then(None).otherwise(pl.col(name)).alias(name)
        for name in table.columns
    )
    truth = (np.arange(200), np.searchsorted(model.classes_, y[300:]))
    logs = np.stack([one.predict_log_proba(rows) for one in model.members_.values()], axis=2)
    score = model.class_bias_ + np.maximum(logs, -700.0) @ np.array(list(model.member_weights_.values()))
    of_whole_rows = -log_softmax(score, axis=1)[truth].mean()
    assert -model.predict_log_proba(rows)[truth].mean() < 0.95 * of_whole_rows


def test_a_class_of_one_row_does_not_silence_the_members():
    """The models without the fold of that row know no such class, and no weight lets them predict it."""
    plain = po.GenerativeClassifier(["nb", "tan 5"]).fit(PENGUINS, "species")
    stranger = PENGUINS.head(1).with_columns(pl.lit("Humboldt").alias("species"))
    model = po.GenerativeClassifier(["nb", "tan 5"]).fit(pl.concat([PENGUINS, stranger]), "species")
    for pool in (plain, model):
        assert min(pool.partial_weights_.values()) > 0.1
    rows = PENGUINS.drop("species").with_columns(
        pl.lit(None).alias(name).cast(X.schema[name]) for name in X.columns[2:]
    )
    others = [model.classes_.tolist().index(label) for label in plain.classes_]
    assert_allclose(model.predict_proba(rows)[:, others], plain.predict_proba(rows), atol=0.05)


@pytest.mark.parametrize("parameters", [{"missing": "informative"}, {"pool": "best"}])
def test_no_row_is_partial_with_informative_gaps_or_one_member(parameters):
    model = po.GenerativeClassifier(["nb", "tan 5"], **parameters).fit(PENGUINS, "species")
    assert model.known_cells_.typical == 0
    logs = np.stack([one.predict_log_proba(X) for one in model.members_.values()], axis=2)
    score = model.class_bias_ + logs @ np.array(list(model.member_weights_.values()))
    assert_allclose(model.predict_log_proba(X), log_softmax(score, axis=1), atol=1e-9)
