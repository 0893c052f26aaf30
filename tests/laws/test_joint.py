"""Laws of one joint distribution: of every model, over a table whose rows can all be listed.

p(x, y) sums to 1, also with `priors`; a missing cell is summed out; nothing known is the prior; samples have the
distribution; folds are refits; and exports give the same posterior.
"""

import functools
import itertools
import json
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from scipy.stats import chisquare
from sklearn.base import clone

import posteriori as po
from posteriori.javascript import to_javascript
from posteriori.model_selection import out_of_fold
from tests.javascript.engines import DRIVER, in_node
from tests.laws.models import CASES, parameters
from tests.laws.tables import Table
from tests.sql.test_to_sql import in_duckdb

LEVELS = {"a": ["u", "v", "w"], "b": ["u", "v"], "c": ["u", "v", "w"]}
PRIORS = [0.2, 0.5, 0.3]
DRAWS = 4000
CHANCE = 1e-6  # that a law on samples fails although it holds


def _having(parameter, values, reason):
    """Return the models with one of these values of a parameter, with a reason."""
    found = {name: case.make().get_params().get(parameter) for name, case in CASES.items()}
    return {name: reason for name, value in found.items() if value in values}


WEIGHTED = _having(
    "feature_weights",
    ("conditional", "cells"),
    "learned weights make the posterior, and p(x, y) stays that of the generative model",
)
FORESTS = _having(
    "combine",
    ("conditional", "geometric", "arithmetic"),
    "the posterior is a mean of those of the trees; p(x, y) is their mixture",
)
SUMS = _having("combine", ("sum",), "a sum of trees has no p(x, y)")
# The models whose `predict_proba` is not p(x, y) / p(x), with the reason. Their p(x, y) keeps the laws.
NOT_OF_JOINT = {
    "pool": "a logarithmic pool multiplies the posteriors of its members; p(x) is that of their mixture",
    **FORESTS,
    **WEIGHTED,
    **SUMS,
}
INFORMATIVE = {"nb informative": "whether a cell is missing is evidence, so that a row without cells is not unknown"}
NOT_REFITTED = {
    "mixture": "it has no labels, so that nothing is cross-validated",
    "pool": "`out_of_fold` of a pool cross-validates its members, not the choice of its weights",
}
WITHOUT_A_ROW = "leave-one-out takes away a row with its whole weight, of equal rows one"
NOT_REPEATED = {
    **dict.fromkeys(WEIGHTED, WITHOUT_A_ROW),
    **_having("backoff", ("learned",), WITHOUT_A_ROW),
    **dict.fromkeys([*FORESTS, *SUMS], "a row of weight 2 is in one fold, two rows may be in two"),
    "pool": "folds and leave-one-out take a row with its whole weight",
    "mixture": "it starts from random rows, and repeated rows are drawn otherwise",
    "nb components": "EM starts from random rows, and repeated rows are drawn otherwise",
}
ENUMERABLE = [name for name in CASES if name not in {"pool", "mixture", *SUMS}]  # these have no p(x, y)


def make_rows(n=90, seed=0, missing=0.1):
    """Return a table of three columns of categories that depend on each other and on three classes."""
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(3), rng.choice(3, n - 3, p=[0.5, 0.3, 0.2])])
    codes = [(y + rng.integers(0, 2, n)) % 3]
    codes.append((codes[0] * y + (rng.random(n) < 0.3)) % 2)
    codes.append((codes[0] + codes[1] + (rng.random(n) < 0.5)) % 3)
    columns = {}
    for (name, levels), code in zip(LEVELS.items(), codes, strict=True):
        cells = np.array(levels, dtype=object)[code]
        cells[rng.random(n) < missing] = None
        columns[name] = cells
    return Table(columns, np.array(["p", "q", "r"])[y])


def every_row(with_missing=False):
    """Return all rows of the table, also those with missing cells if wanted."""
    cells = [[*levels, *[None] * with_missing] for levels in LEVELS.values()]
    return pl.DataFrame(list(itertools.product(*cells)), schema=dict.fromkeys(LEVELS, pl.String), orient="row")


@functools.cache
def fitted(name, with_priors=False):
    """Return a model of the table."""
    case = CASES[name]
    table = make_rows(missing=0.1 if case.takes_missing else 0.0)
    model = case.make().set_params(priors=PRIORS) if with_priors else case.make()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return model.fit(table.frame(), table.y) if case.has_labels else model.fit(table.frame())


def completions(row):
    """Return the positions of the complete rows that agree with a row in its cells."""
    return [
        k
        for k, complete in enumerate(every_row().rows())
        if all(cell in (None, other) for cell, other in zip(row, complete, strict=True))
    ]


@pytest.mark.parametrize("with_priors", [False, True], ids=["", "priors"])
@pytest.mark.parametrize("name", parameters(ENUMERABLE))
def test_the_joint_sums_to_one_and_its_classes_have_the_prior(name, with_priors):
    model = fitted(name, with_priors)
    joint = np.exp(model.predict_joint_log_proba(every_row(with_missing=name in INFORMATIVE)))
    assert_allclose(joint.sum(axis=0), PRIORS if with_priors else model.class_prior_, atol=1e-9)
    assert joint.sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", ["pool", "mixture"])
def test_p_x_sums_to_one(name):
    assert np.exp(fitted(name).score_samples(every_row())).sum() == pytest.approx(1.0, abs=1e-9)


@pytest.mark.parametrize("name", parameters(name for name in CASES if name not in {*INFORMATIVE, *SUMS}))
def test_a_missing_cell_is_summed_out(name):
    model, rows = fitted(name), every_row(with_missing=True)
    sums = [completions(row) for row in rows.rows()]
    if name not in ENUMERABLE:
        p_x = np.exp(model.score_samples(every_row()))
        assert_allclose(np.exp(model.score_samples(rows)), [p_x[of_row].sum() for of_row in sums], atol=1e-9)
        return
    joint = np.exp(model.predict_joint_log_proba(every_row()))
    expected = np.array([joint[of_row].sum(axis=0) for of_row in sums])
    assert_allclose(np.exp(model.predict_joint_log_proba(rows)), expected, atol=1e-9)
    assert_allclose(model.score_samples(rows), np.log(expected.sum(axis=1)), atol=1e-9)
    if name not in NOT_OF_JOINT:
        assert_allclose(model.predict_proba(rows), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


def test_the_posterior_of_one_tree_is_that_of_its_joint():
    table = make_rows()
    model = po.GenerativeForest(1, n_jobs=1).fit(table.frame(), table.y)
    joint, rows = np.exp(model.predict_joint_log_proba(every_row())), every_row(with_missing=True)
    expected = np.array([joint[completions(row)].sum(axis=0) for row in rows.rows()])
    assert_allclose(model.predict_proba(rows), expected / expected.sum(axis=1, keepdims=True), atol=1e-9)


@pytest.mark.parametrize("with_priors", [False, True], ids=["", "priors"])
@pytest.mark.parametrize(
    "name",
    parameters(name for name in CASES if name not in INFORMATIVE and name != "mixture"),
)
def test_nothing_known_gives_the_prior(name, with_priors):
    model = fitted(name, with_priors)
    blank = pl.DataFrame({column: [None] for column in LEVELS}, schema=dict.fromkeys(LEVELS, pl.String))
    assert_allclose(model.predict_proba(blank)[0], PRIORS if with_priors else model.class_prior_, atol=1e-9)


@pytest.mark.parametrize("with_priors", [False, True], ids=["", "priors"])
@pytest.mark.parametrize("name", parameters(name for name in CASES if name not in SUMS))
def test_samples_have_the_distribution_of_the_model(name, with_priors):
    if with_priors and name == "mixture":
        pytest.skip("it has no classes")
    model = fitted(name, with_priors)
    rows = every_row(with_missing=name in INFORMATIVE)
    frame, labels = model.sample(DRAWS, random_state=0)
    if name in ENUMERABLE:
        probability = np.exp(model.predict_joint_log_proba(rows)).ravel()
        keys = [(*row, label) for row in rows.rows() for label in model.classes_]
        seen = [(*row, label) for row, label in zip(pl.DataFrame(frame).rows(), labels, strict=True)]
    else:
        probability, keys = np.exp(model.score_samples(rows)), rows.rows()
        seen = pl.DataFrame(frame).rows()
    place = {key: k for k, key in enumerate(keys)}
    found = np.bincount([place[key] for key in seen], minlength=len(keys))
    order = np.argsort(probability)
    cell = np.minimum(np.cumsum(DRAWS * probability[order]) // 8.0, 1e9)  # rare rows are counted together
    cell = np.unique(cell, return_inverse=True)[1]
    expected = np.bincount(cell, DRAWS * probability[order])
    expected *= DRAWS / expected.sum()
    assert chisquare(np.bincount(cell, found[order]), expected).pvalue > CHANCE


@pytest.mark.parametrize("name", parameters(name for name in CASES if name not in NOT_REFITTED))
def test_cross_validation_is_a_refit_per_fold(name):
    case = CASES[name]
    table = make_rows(missing=0.1 if case.takes_missing else 0.0)
    fold = np.arange(table.n_rows) % 3
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = out_of_fold(case.make(), table.frame(), table.y, folds=fold)
        for k in range(3):
            refit = clone(case.make()).fit(table.rows(fold != k).frame(), table.y[fold != k])
            expected = refit.predict_proba(table.rows(fold == k).frame())
            assert_allclose(found.posterior[fold == k], expected, atol=1e-6)


@pytest.mark.parametrize("name", parameters(name for name in CASES if name not in NOT_REPEATED))
def test_a_weight_is_a_repetition(name):
    case = CASES[name]
    table = make_rows(missing=0.1 if case.takes_missing else 0.0)
    weight = np.arange(table.n_rows) % 3
    repeated = table.rows(np.repeat(np.arange(table.n_rows), weight))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        weighted = case.make().fit(table.frame(), table.y, sample_weight=weight.astype(float))
        again = case.fit(repeated)
    rows = every_row(with_missing=True)
    assert_allclose(weighted.predict_proba(rows), again.predict_proba(rows), atol=1e-9)


@pytest.mark.parametrize("name", parameters())
def test_the_scorer_gives_the_posterior_of_each_row(name, tmp_path):
    if name == "mixture":
        pytest.skip("it has no posterior of a class")
    model, rows = fitted(name), every_row(with_missing=True)
    po.save(model, tmp_path / "model.posteriori")
    scorer = po.scoring.load_scorer(tmp_path / "model.posteriori")
    found = [list(scorer(row).values()) for row in rows.rows(named=True)]
    assert_allclose(found, model.predict_proba(rows), atol=1e-9)


@pytest.mark.parametrize("name", parameters(CASES))
def test_sql_gives_the_posterior_of_each_row(name):
    if name == "mixture":
        pytest.skip("it has no posterior of a class")
    model, rows = fitted(name), every_row(with_missing=True).with_row_index("row")
    try:
        select = model.to_sql(dialect="duckdb", columns=["row"])
    except ValueError as refusal:
        pytest.skip(f"not written as SQL: {refusal}")
    out = in_duckdb(select, rows).sort("row")
    found = out.select(pl.col("^p_.*$").cast(pl.Float64)).to_numpy()
    assert_allclose(found, model.predict_proba(rows.drop("row")), atol=1e-9)


@pytest.fixture(scope="module")
def in_javascript(tmp_path_factory):
    """The answers of the evaluator in JavaScript, by the name of the model; the reason for each without a file."""
    files, refused = {}, {}
    for name in CASES:
        try:
            files[name] = {
                "file": json.loads(to_javascript(fitted(name))),
                "rows": every_row(with_missing=True).rows(named=True),
            }
        except (ValueError, TypeError) as refusal:
            refused[name] = str(refusal)
    script = f"{DRIVER}\nconst result = given.map(evaluated);"
    result = in_node(script, list(files.values()), tmp_path_factory.mktemp("laws"))
    return dict(zip(files, result, strict=True)), refused


@pytest.mark.parametrize("name", parameters())
def test_javascript_gives_the_posterior_and_density_of_each_row(name, in_javascript):
    found, refused = in_javascript
    if name in refused:
        pytest.skip(f"not written as JavaScript: {refused[name]}")
    model, rows = fitted(name), every_row(with_missing=True)
    posterior = np.exp([np.array(row["log_posterior"], np.float64) for row in found[name]])
    assert_allclose(posterior, model.predict_proba(rows), atol=1e-9)
    if name in SUMS:
        return
    assert_allclose([row["log_density"] for row in found[name]], model.score_samples(rows), atol=1e-9)
