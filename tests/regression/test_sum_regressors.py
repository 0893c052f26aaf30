"""Regressors that learn by sums: updates, the joint Gaussian, scales, and bad input."""

import copy
import json
import pickle
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.pool.parameters import Data
from posteriori.regression import gaussian
from posteriori.regression.rows import read_number_rows
from posteriori.support.factors import Cholesky, normal_cdf

BOTH = [po.AdditiveRegressor, po.KernelRegressor]


def table(n=300, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 4))
    return X, 2 * X[:, 0] + np.sin(2 * X[:, 1]) + X[:, 2] * X[:, 3] + 0.3 * rng.normal(size=n)


@parametrize_with_checks(
    [po.AdditiveRegressor(), po.KernelRegressor()],
)
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


@pytest.mark.parametrize("kind", BOTH)
def test_rows_are_added_and_subtracted(kind):
    X, y = table()
    first = kind().fit(X[:150], y[:150])
    whole = kind().fit(X[:150], y[:150]).partial_fit(X[150:], y[150:])
    in_parts = kind().fit(X[:150], y[:150]).partial_fit(X[150:200], y[150:200]).partial_fit(X[200:], y[200:])
    probability = whole.predict_density(X).probability
    assert_allclose(in_parts.predict_density(X).probability, probability, rtol=1e-7, atol=1e-10)
    again = in_parts.unlearn(X[150:], y[150:])
    assert_allclose(again.predict_density(X).probability, first.predict_density(X).probability, rtol=1e-6, atol=1e-9)
    assert whole.score(X, y) > first.score(X, y) - 0.02


@pytest.mark.parametrize("kind", BOTH)
def test_a_weight_is_so_many_rows_in_an_update(kind):
    X, y = table()
    weight = np.random.default_rng(0).integers(0, 3, 100).astype(float)
    repeated = np.repeat(np.arange(200, 300), weight.astype(int))
    one = kind().fit(X[:200], y[:200]).partial_fit(X[200:], y[200:], sample_weight=weight)
    other = kind().fit(X[:200], y[:200]).partial_fit(X[repeated], y[repeated])
    assert_allclose(one.predict_density(X).probability, other.predict_density(X).probability, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("kind", [*BOTH, po.GenerativeRegressor])
def test_rows_without_a_target_are_left_out(kind):
    X, y = table(200)
    some = np.where(np.arange(200) % 7 == 3, np.nan, y)
    known = ~np.isnan(some)
    with pytest.warns(UserWarning, match="29 of 200 rows have no label; they are left out"):
        model = kind().fit(X, some)
    fewer = kind().fit(X[known], y[known])
    assert_array_equal(model.predict_density(X).probability, fewer.predict_density(X).probability)
    if kind in BOTH:
        with pytest.warns(UserWarning, match="they are left out"):
            model.partial_fit(X, some)
        assert_allclose(model.predict(X), fewer.partial_fit(X[known], y[known]).predict(X), atol=1e-9)
    with pytest.raises(ValueError, match="every cell of the target 'y' is missing"):
        kind().fit(X, np.full(200, np.nan))


def test_a_row_that_cannot_have_been_learned_is_refused():
    X, y = table(60)
    model = po.AdditiveRegressor().fit(X, y)
    before = model.predict(X)
    with pytest.raises(ValueError, match="cannot have learned from these rows"):
        model.unlearn(X, y, sample_weight=np.full(60, 1.0))
    assert_array_equal(model.predict(X), before)


def test_the_noise_is_that_of_the_rows():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(3000, 3))
    y = X @ [1.0, 2.0, 0.0] + 0.5 * rng.normal(size=3000)
    model = po.AdditiveRegressor(scale="as_is").fit(X, y)
    assert_allclose(model.noise_ * y.std(), 0.5, rtol=0.05)
    low, high = model.predict_interval(X, 0.9).T
    assert_allclose(np.mean((low <= y) & (y <= high)), 0.9, atol=0.02)


def test_unknown_cells_are_integrated_out_as_in_a_joint_normal():
    rng = np.random.default_rng(2)
    n, r = 4000, 0.8
    first = rng.normal(size=n)
    second = r * first + np.sqrt(1 - r**2) * rng.normal(size=n)
    y = first + second + 0.5 * rng.normal(size=n)
    model = po.AdditiveRegressor(scale="as_is").fit(np.column_stack([first, second]), y)
    grid = np.array([-1.0, 0.0, 1.0])
    density = model.predict_density(np.column_stack([grid, np.full(3, np.nan)]))
    assert_allclose(density.mean, (1 + r) * grid, atol=0.12)
    assert_allclose(density.std, np.sqrt(1 - r**2 + 0.25), rtol=0.1)


def test_scales():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(500, 2))
    y = np.exp(X[:, 0] + 0.2 * rng.normal(size=500))
    assert po.AdditiveRegressor().fit(X, y).scale_ == "log"
    for scale in ("as_is", "log", "rank"):
        model = po.AdditiveRegressor(scale=scale).fit(X, y)
        assert model.scale_ == scale
        assert (model.predict_quantiles(X, [0.0, 0.01]) >= 0).all()
    with pytest.raises(ValueError, match="is negative in some row"):
        po.AdditiveRegressor(scale="log").fit(X, y - 1.0)
    with pytest.raises(ValueError, match="scale"):
        po.AdditiveRegressor(scale="square").fit(X, y)


def test_no_column_to_learn_from():
    with pytest.raises(ValueError, match="no column of X has two different values"):
        po.KernelRegressor().fit(np.ones((20, 2)), np.arange(20.0))


@pytest.mark.parametrize("kind", BOTH)
def test_a_model_file_holds_it(kind, tmp_path):
    rows = load_penguins().drop_nulls("body_mass_g")
    model = kind().fit(rows, "body_mass_g")
    po.save(model, tmp_path / "m.posteriori")
    kept = po.load(tmp_path / "m.posteriori")
    assert_array_equal(kept.predict_density(rows).probability, model.predict_density(rows).probability)
    more = rows.with_columns(pl.col("body_mass_g") + 100.0)
    assert_array_equal(
        kept.partial_fit(more, "body_mass_g").predict(rows), model.partial_fit(more, "body_mass_g").predict(rows)
    )


def correlated(n, seed, gaps=0.0):
    rng = np.random.default_rng(seed)
    X = rng.multivariate_normal([0.0, 0.0], [[1.0, 0.8], [0.8, 1.0]], n)
    y = X[:, 0] + 2 * X[:, 1] + 0.3 * rng.normal(size=n)
    X[rng.random(X.shape) < gaps] = np.nan
    return X, y


@pytest.mark.parametrize("kind", [*BOTH, po.GenerativeRegressor])
@pytest.mark.parametrize("gaps", [0.0, 0.2])
def test_intervals_hold_where_cells_are_hidden(kind, gaps):
    model = kind().fit(*correlated(1500, 0, gaps))
    X, y = correlated(800, 1)
    for hidden in ([1], [0, 1]):
        rows = X.copy()
        rows[:, hidden] = np.nan
        low, high = model.predict_interval(rows).T
        assert 0.86 <= np.mean((low <= y) & (y <= high)) <= 0.98


@pytest.mark.parametrize("kind", BOTH)
def test_rows_with_unseen_targets_are_not_unlearned(kind):
    X, y = table(100)
    with pytest.raises(ValueError, match="cannot have learned from these rows"):
        kind().fit(X, y).unlearn(X[:50], y[:50] + 100.0)


def test_targets_beyond_the_first_range_are_warned_of():
    X, y = table(100)
    with pytest.warns(UserWarning, match="targets lie outside of the range of the first call"):
        po.AdditiveRegressor().fit(X, y).partial_fit(X, y + 500.0)


@pytest.mark.parametrize("kind", [po.AdditiveRegressor, po.KernelRegressor])
@pytest.mark.parametrize("gaps", [0.0, 0.2, 0.5])
def test_training_gaps_do_not_change_noise_or_unknown_variance(kind, gaps):
    rng = np.random.default_rng(0)
    rows = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 3000)
    y = rows @ [1.0, 2.0] + 0.3 * rng.normal(size=len(rows))
    model = kind().fit(np.where(rng.random(rows.shape) < gaps, np.nan, rows), y)
    fresh = rng.multivariate_normal([0, 0], [[1, 0.8], [0.8, 1]], 200)
    assert model.predict_density(fresh).std.mean() == pytest.approx(0.32, rel=0.12)
    # By the joint normal distribution, 4 · (1 − 0.8²) + 0.3².
    fresh[:, 1] = np.nan
    assert model.predict_density(fresh).std.mean() == pytest.approx(1.24, rel=0.08)


def with_gaps_and_zeros(n=400):
    """Return rows with a category and gaps, and a target of which a third is 0."""
    rng = np.random.default_rng(4)
    X, y = table(n, 4)
    rows = pl.DataFrame(X, schema=["a", "b", "c", "d"]).with_columns(e=pl.Series(rng.choice(list("uvw"), n)))
    rows = rows.with_columns(pl.when(pl.Series(rng.random(n) < 0.1)).then(None).otherwise(pl.col("b")).alias("b"))
    return rows.with_columns(y=pl.Series(np.where(rng.random(n) < 0.3, 0.0, np.exp(y))))


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("scale", ["auto", "as_is"])
def test_held_out_rows_are_predicted_as_if_unlearned(kind, gaps, scale, monkeypatch):
    monkeypatch.setattr(gaussian, "_without_landmarks", lambda found, source: found)  # folds keep them
    rows = with_gaps_and_zeros()
    if not gaps:
        rows = rows.drop("b")
    model = kind(scale=scale).fit(rows, "y")
    held_out = model.out_of_fold_
    assert_array_equal(held_out.rows, np.arange(len(rows)))
    assert_array_equal(held_out.y, rows["y"])
    # A fold is what the rows outside of it predict: unlearning it leaves the same sums.
    fold = folds_of(model, rows)
    assert len(np.unique(fold)) == 9
    for k in range(9):
        part = rows.filter(pl.Series(fold == k))
        others = copy.deepcopy(model).unlearn(part, "y")
        expected = others.predict_density(part).probability
        assert_allclose(held_out.density.probability[fold == k], expected, rtol=1e-6, atol=1e-9)
    assert model.cv_results_ == {
        "member": [kind._features],
        **{name: [score] for name, score in held_out.scores.items()},
    }


def folds_of(model, rows):
    seed = int(np.random.default_rng(0).integers(2**31))
    return read_number_rows(model.recipe, Data(rows, "y"), 9, seed).fold


@pytest.mark.parametrize("kind", BOTH)
def test_held_out_scores_are_of_the_rows_of_the_fit(kind, tmp_path):
    X, y = table()
    model = kind().fit(X, y, sample_weight=np.arange(300) % 3)
    assert model.cv_results_["crps"][0] > np.mean(model.predict_density(X).crps(y))
    assert_array_equal(model.out_of_fold_.weight, (np.arange(300) % 3)[model.out_of_fold_.rows])
    po.save(model, tmp_path / "m.posteriori")
    kept = po.load(tmp_path / "m.posteriori")
    assert kept.cv_results_ == model.cv_results_
    for one in (kept, model.partial_fit(X[:20], y[:20]), kept.unlearn(X[:20], y[:20])):
        with pytest.raises(AttributeError, match=f"{kind.__name__} keeps no held-out predictions"):
            _ = one.out_of_fold_
    for one in (model, kept):
        with pytest.raises(AttributeError, match="keeps no cross-validated scores"):
            _ = one.cv_results_


@pytest.mark.parametrize("kind", BOTH)
@pytest.mark.parametrize("weight", [np.ones(3), np.eye(1, 12)[0] + np.eye(1, 12, 5)[0]])
def test_few_rows_have_held_out_scores(kind, weight):
    X, y = table(len(weight))
    model = kind().fit(X, y, sample_weight=weight)
    assert np.isfinite(model.out_of_fold_.density.probability).all()
    assert all(np.isfinite(scores[0]) for name, scores in model.cv_results_.items() if name != "member")


@pytest.mark.parametrize("kind", BOTH)
def test_folds_and_groups_are_held_out_together(kind):
    rng = np.random.default_rng(6)
    group = np.repeat(np.arange(40), 8)
    X = np.column_stack([np.repeat(rng.normal(size=(40, 2)), 8, axis=0), rng.normal(size=320)])
    y = np.repeat(rng.normal(size=40), 8) + 0.1 * rng.normal(size=320)
    alone, together = kind(folds=4).fit(X, y), kind(folds=4).fit(X, y, groups=group)
    assert together.cv_results_["crps"][0] > alone.cv_results_["crps"][0]
    with pytest.raises(ValueError, match="groups holds 2 of them"):
        kind().fit(X, y, groups=group % 2)
    with pytest.raises(ValueError, match="folds"):
        kind(folds=2).fit(X, y)


_MINIMAL = """
import sys, warnings, json
for name in "numba llvmlite scipy sklearn polars narwhals joblib threadpoolctl typer rich pandas".split():
    sys.modules[name] = None  # as if it were not installed
warnings.simplefilter("ignore")
import posteriori as po
for path in sys.argv[2:]:
    score = po.scoring.load_scorer(path)
    print(json.dumps([[score(row), score.density(row).probability[0].tolist()] for row in json.loads(sys.argv[1])]))
"""


@pytest.mark.filterwarnings("ignore:unseen")
def test_a_scorer_needs_numpy_and_safetensors_only(tmp_path):
    rows = with_gaps_and_zeros()
    models = [kind(scale=scale).fit(rows, "y") for kind in BOTH for scale in ("rank", "log", "as_is")]
    models += [kind().fit(rows.drop_nulls(), "y") for kind in BOTH]
    paths = [str(tmp_path / f"{k}.posteriori") for k in range(len(models))]
    for model, path in zip(models, paths, strict=True):
        po.save(model, path)
    shown = [*rows.drop("y").head(20).to_dicts(), {}, {"a": 1.0}, {"e": "w", "c": -9.0, "b": None}]
    command = [sys.executable, "-c", _MINIMAL, json.dumps(shown), *paths]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    frame = pl.DataFrame(shown, schema=rows.drop("y").schema)
    for model, line in zip(models, done.stdout.splitlines(), strict=True):
        found = json.loads(line)
        density = model.predict_density(frame)
        # Nearly singular systems are solved alike, by two libraries or in batches, only as far as rounding lets them.
        near = max(1e-9, 10.0 * np.finfo(float).eps * np.linalg.cond(model.fitted_.squares.matrix))
        assert_allclose([one for _, one in found], density.probability, rtol=near, atol=1e-15)
        expected = np.column_stack([density.mean, density.interval(0.9)])
        assert_allclose([list(one.values()) for one, _ in found], expected, rtol=near)
        here = pickle.loads(pickle.dumps(model.scorer()))
        assert_allclose([list(here(row).values()) for row in shown], expected, rtol=near)
    assert here.names == ("a", "b", "c", "d", "e")


def test_a_scorer_refuses_what_is_no_row_and_the_pool_has_none(tmp_path):
    X, y = table(60)
    score = po.AdditiveRegressor().fit(X, y).scorer()
    assert repr(score) == "<NumberScorer: 4 columns>"
    with pytest.raises(TypeError, match="several rows to predict"):
        score([{"x0": 1.0}])
    with pytest.warns(UserWarning, match="'colour'"):
        score({"x0": 1.0, "colour": "red"})
    po.save(po.GenerativeRegressor(members=["additive"]).fit(X, y), tmp_path / "pool.posteriori")
    with pytest.raises(ValueError, match=r"no scorer: .* save its additive_member"):
        po.scoring.load_scorer(tmp_path / "pool.posteriori")
    with pytest.raises(AttributeError, match="its additive_member"):
        _ = po.GenerativeRegressor().scorer


def test_factors_and_probabilities_without_scipy_are_scipys(monkeypatch):
    rng = np.random.default_rng(0)
    half = rng.normal(size=(40, 40))
    matrix, right = half @ half.T + np.eye(40), rng.normal(size=(40, 3))
    z = np.linspace(-37.0, 9.0, 400).reshape(20, 20)

    def results():
        factor = Cholesky.of(matrix.copy())
        return [factor.solve(right), factor.half_solve(right), factor.inverse, normal_cdf(z)]

    by_scipy = results()
    for name in ("scipy.linalg", "scipy.linalg.lapack", "scipy.special"):
        monkeypatch.setitem(sys.modules, name, None)
    for one, other in zip(results(), by_scipy, strict=True):
        assert_allclose(one, other, rtol=1e-10, atol=1e-14)
    assert_allclose(results()[-1], by_scipy[-1], rtol=1e-12)  # z² times the rounding of z


@pytest.mark.parametrize("kind", [*BOTH, po.GenerativeRegressor])
@pytest.mark.parametrize("seed", [0, 1, 2])
def test_rows_with_most_of_many_cells_missing_are_predicted(kind, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(900, 10)) + rng.normal(size=(900, 1))
    y = rows @ np.linspace(-1.0, 2.0, 10) + rng.normal(size=len(rows))
    gaps = np.where(rng.random(rows.shape) < 0.7, np.nan, rows)
    model = kind().fit(gaps[:400], y[:400])
    usual = np.abs(y[400:] - np.median(y[:400])).mean()
    for fresh, least in ((rows[400:], 0.65), (gaps[400:], 0.8)):
        low, high = model.predict_interval(fresh).T
        assert np.mean((low <= y[400:]) & (y[400:] <= high)) > least
        assert model.predict_density(fresh).crps(y[400:]).mean() < 0.6 * usual
