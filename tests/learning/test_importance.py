"""Feature importance: the information that a posterior loses when a column is unknown."""

import functools
import itertools
import pickle
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.densities import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.learning.importance import MOST_ROWS, GroupImportance, Importance, most_rows
from posteriori.model import Posterior, clip_log_posteriors
from posteriori.model_selection import out_of_fold
from posteriori.model_selection.metrics import compare_with_prior
from posteriori.reading import read_table
from posteriori.sources import source_of
from posteriori.tables import Numbers

PENGUINS = load_penguins().drop_nulls("species")
FEATURES = [name for name in PENGUINS.columns if name != "species"]
ESTIMATORS = {
    "naive Bayes": po.NaiveBayes(),
    "binned": po.NaiveBayes(distributions="binned"),
    "weighted": po.NaiveBayes(distributions="binned", feature_weights="conditional"),
    "learned tables": po.NaiveBayes(distributions="binned", feature_weights="cells"),
    "impossible classes": po.NaiveBayes(alpha=0.0),
    "lda": po.GaussianDiscriminant(),
    "qda": po.GaussianDiscriminant(pooling="per_class"),
    "mixtures": po.NaiveBayes(em=po.EM(components_per_class=2)),
    "tan": po.TreeAugmentedNaiveBayes(),
    "chow-liu": po.classifiers.ChowLiuClassifier(),
    "kdb": po.KDependenceBayes(k=2),
    "kdb weighted": po.KDependenceBayes(k=2, feature_weights="conditional"),
    "aode": po.AveragedOneDependence(),
    "forest": po.GenerativeForest(5),
    "arithmetic forest": po.GenerativeForest(5, combine="arithmetic"),
    "pool": po.GenerativeClassifier(["lda", "tan", "binned weighted"]),
    "pool with a forest": po.GenerativeClassifier(["forest mixed", "kdb"]),
}


def without(table, name):
    return table.with_columns(pl.lit(None, table.schema[name]).alias(name))


def batch_of(estimator, table):
    positions = tuple(range(len(table.columns)))
    return source_of(read_table(table), estimator.schema_, positions).batch(slice(0, table.height))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_leaving_a_column_out_is_predicting_rows_that_lack_it(name):
    rows = PENGUINS.sample(120, seed=1)
    model = clone(ESTIMATORS[name]).fit(PENGUINS, "species")
    whole, left_out = model.fitted_.training_posterior.log_posteriors_without_each(
        batch_of(model, rows.select(FEATURES))
    )
    assert_allclose(whole, model.predict_log_proba(rows), atol=1e-9)
    for j, feature in enumerate(FEATURES):
        expected = predicted_by_weights_of_whole_rows(model, without(rows, feature), rows)
        assert_allclose(left_out[j], expected, atol=1e-8, err_msg=feature)


def predicted_by_weights_of_whole_rows(model, table, whole):
    if not isinstance(model, po.GenerativeClassifier):
        return model.predict_log_proba(table)
    logs = np.stack([member.predict_log_proba(table) for member in model.members_.values()], axis=2)
    pool = model._posterior.pool
    return pool.log_posterior(clip_log_posteriors(logs), pool.parts(batch_of(model, whole.select(FEATURES))))


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_leaving_columns_out_is_predicting_rows_without_them(name):
    rows = PENGUINS.sample(60, seed=2)
    model = clone(ESTIMATORS[name]).fit(PENGUINS, "species")
    for columns in ((0, 2), (1, 3, 6), (2,)):
        table = rows
        for j in columns:
            table = without(table, FEATURES[j])
        found = model.fitted_.training_posterior.log_posterior_without(batch_of(model, rows.select(FEATURES)), columns)
        assert_allclose(found, predicted_by_weights_of_whole_rows(model, table, rows), atol=1e-8)


@pytest.mark.parametrize("name", ESTIMATORS)
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_is_left_without_a_column_ignores_its_cells(name):
    rows = PENGUINS.drop_nulls().sample(80, seed=3)
    model = clone(ESTIMATORS[name]).fit(PENGUINS, "species")
    batch = batch_of(model, rows.select(FEATURES))
    _, left_out = model.fitted_.training_posterior.log_posteriors_without_each(batch)
    for j, feature in enumerate(FEATURES):
        other = rows.with_columns(pl.col(feature).shuffle(seed=j))
        _, found = model.fitted_.training_posterior.log_posteriors_without_each(batch_of(model, other.select(FEATURES)))
        assert_allclose(found[j], left_out[j], atol=1e-8, err_msg=feature)


@given(st.integers(0, 2**32 - 1))
@settings(max_examples=20)
def test_a_pool_loses_nothing_without_a_column_that_says_nothing(seed):
    model, rng = pool_with_a_useless_column(), np.random.default_rng(seed)
    rows = DOUBLED.drop_nulls().drop("species").sample(40, seed=seed % 1000)
    hidden = rng.random((40, len(FEATURES))) < rng.random()
    rows = rows.with_columns(
        pl.when(~pl.Series(one)).then(pl.col(name)) for name, one in zip(FEATURES, hidden.T, strict=True)
    )
    whole, left_out = model._posterior.log_posteriors_without_each(batch_of(model, rows))
    something_left = ~hidden.all(axis=1)
    assert_allclose(left_out[-1][something_left], whole[something_left], atol=1e-9)
    prior = np.tile(model.class_log_prior_, (np.sum(~something_left), 1))
    assert_allclose(left_out[-1][~something_left], prior, atol=1e-9)


# Each row once with either value of the useless column.
DOUBLED = pl.concat([PENGUINS.with_columns(useless=pl.lit(value)) for value in ("u", "v")])


@functools.cache
def pool_with_a_useless_column():
    model = po.GenerativeClassifier([po.NaiveBayes(), po.NaiveBayes(distributions="binned")])
    model.fit(DOUBLED, "species")
    assert model._posterior.pool.fading is not None
    return model


def test_a_column_left_out_takes_its_informative_gaps_along():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1], 100)
    table = pl.DataFrame({"u": rng.normal(size=200), "v": rng.normal(y)})
    table = table.with_columns(u=pl.when(pl.Series(rng.random(200) < 0.7 * y)).then(None).otherwise(pl.col("u")))
    model = po.NaiveBayes(missing="informative").fit(table, y)
    alone = po.NaiveBayes(missing="informative").fit(table.select("v"), y)
    _, left_out = model.fitted_.training_posterior.log_posteriors_without_each(batch_of(model, table))
    assert_allclose(left_out[0], alone.predict_log_proba(table.select("v")), atol=1e-9)


@given(st.integers(1, 5), st.integers(1, 3), st.booleans(), st.integers(0, 2**32 - 1))
def test_the_gaussian_leaves_a_column_out_as_if_missing(d, n_components, shared, seed):
    rng = np.random.default_rng(seed)
    roots = rng.normal(size=(1 if shared else n_components, d, d + 2))
    parameters = MultivariateGaussianParameters(rng.normal(size=(n_components, d)), roots @ roots.swapaxes(1, 2))
    values = np.where(rng.random((7, d)) < 0.3, np.nan, rng.normal(size=(7, d)))
    density = MultivariateGaussian()
    found = density.without_each(parameters, Numbers(values))
    for j in range(d):
        lacking = values.copy()
        lacking[:, j] = np.nan
        expected = density.log_density(parameters, Numbers(lacking))
        assert_allclose(found[j], expected, rtol=1e-7, atol=1e-7)


@pytest.mark.parametrize("name", ["naive Bayes", "lda", "tan"])
def test_held_out_importance_is_refitting_and_masking_by_hand(name):
    model, weight = clone(ESTIMATORS[name]), np.random.default_rng(0).integers(1, 4, PENGUINS.height).astype(float)
    judged = out_of_fold(model, PENGUINS, "species", folds=3, sample_weight=weight)
    gains = np.empty((len(FEATURES), PENGUINS.height))
    for k in range(3):
        rows = np.flatnonzero(judged.fold == k)
        others = np.flatnonzero(judged.fold != k)
        one = clone(ESTIMATORS[name]).fit(PENGUINS[others], "species", sample_weight=weight[others])
        position = np.arange(len(rows)), judged.y_true[rows]
        of_truth = one.predict_log_proba(PENGUINS[rows])[position]
        for j, feature in enumerate(FEATURES):
            gains[j, rows] = of_truth - one.predict_log_proba(without(PENGUINS[rows], feature))[position]
    found = model.importance_
    assert found.held_out
    assert found.n_rows == PENGUINS.height
    assert_allclose(found.increase, np.average(gains, axis=1, weights=weight), atol=1e-8)
    share = weight / weight.sum()
    trained = PENGUINS.height * 2 / 3
    error = [np.sqrt(np.sum((share * (one - share @ one)) ** 2) * (1.0 + PENGUINS.height / trained)) for one in gains]
    assert_allclose(found.standard_error, error, atol=1e-8)
    assert_array_equal(model.importance_.increase, found.increase)
    assert_array_equal(model.importance_.standard_error, found.standard_error)


def test_the_importance_of_a_pool_is_of_its_judging_posteriors():
    model = po.GenerativeClassifier(["lda", "tan", "nb"]).fit(PENGUINS, "species")
    held_out = model.fitted_.record.held_out
    found = np.empty_like(model.out_of_fold_.log_posterior)
    for rows, predictor in held_out.folds:
        found[rows] = predictor.log_posteriors_without_each(held_out.batch.rows(rows))[0]
    assert_allclose(found, model.out_of_fold_.log_posterior, atol=1e-9)
    assert model.importance_.held_out
    assert model.fitted_.record.held_out is None


def test_of_many_rows_some_of_every_class_and_fold_are_measured():
    rng = np.random.default_rng(0)
    y = (rng.random(5000) < 0.3).astype(int)
    X = rng.normal(size=(5000, 2)) + y[:, np.newaxis]
    model = po.NaiveBayes()
    out_of_fold(model, X, y)
    held_out = model.fitted_.record.held_out
    assert len(held_out.y_true) == MOST_ROWS == model.importance_.n_rows
    assert_allclose(held_out.y_true.mean(), y.mean(), atol=1e-3)
    assert sorted(np.concatenate([rows for rows, _ in held_out.folds]).tolist()) == list(range(MOST_ROWS))
    assert_array_equal(X[held_out.batch.chosen], held_out.batch.numbers.values)
    assert most_rows(1000) < most_rows(50) < most_rows(2) == MOST_ROWS


@pytest.mark.parametrize("name", ["naive Bayes", "lda", "tan", "pool"])
def test_noise_has_none_and_copies_share_it(name):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 2, 1500)
    signal = rng.normal(1.5 * y)
    table = pl.DataFrame({"noise": rng.normal(size=1500), "signal": signal, "label": rng.choice(["u", "v"], 1500)})
    copied = table.with_columns(copy=signal + rng.normal(0.0, 0.05, 1500))

    def importance(rows):
        model = clone(ESTIMATORS[name])
        return (model.fit(rows, y) if name == "pool" else out_of_fold(model, rows, y).estimator).importance_

    found = importance(table)
    for position in (0, 2):
        assert abs(found.increase[position]) < 4.0 * found.standard_error[position] + 1e-3
    assert found.increase[1] > 20.0 * found.standard_error[1] or found.increase[1] > 0.15
    assert importance(copied).increase[1] < found.increase[1]


@pytest.mark.filterwarnings("ignore:the covariance is singular:UserWarning")
@pytest.mark.parametrize("name", ["tan", "kdb", "pool"])
def test_copies_are_measured_together(name):
    """Minutes and what they cost: each alone loses little, and both lose what the minutes lose without the copy."""
    rng = np.random.default_rng(5)
    y = rng.integers(0, 2, 900)
    minutes, plan = rng.normal(1.5 * y), np.where(rng.random(900) < 0.8, y, 1 - y)
    table = pl.DataFrame({"minutes": minutes, "plan": plan.astype(str), "noise": rng.normal(size=900)})
    copied = table.with_columns(
        charge=pl.col("minutes") * 0.17 + 3.0, tariff=pl.col("plan").replace({"0": "b", "1": "a"})
    )

    def importance(rows):
        model = clone(ESTIMATORS[name])
        return (model.fit(rows, y) if name == "pool" else out_of_fold(model, rows, y).estimator).importance_

    once, found = importance(table), importance(copied)
    assert once.groups == ()
    together = {group.columns: group for group in found.groups}
    assert set(together) == {("minutes", "charge"), ("plan", "tariff")}
    for j, columns in enumerate((("minutes", "charge"), ("plan", "tariff"))):
        group = together[columns]
        assert group.is_certain
        assert group.increase == pytest.approx(once.increase[j], abs=0.03 + 0.2 * once.increase[j])
        assert found.increase[j] < 0.5 * group.increase
        assert str(group) in repr(found).splitlines()[1] + repr(found).splitlines()[2]


def test_importance_without_held_out_rows_is_of_the_model():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 400)
    cells = [(rng.integers(0, 3, 400) + y) % 3, np.where(rng.random(400) < 0.7, y, 1 - y), rng.integers(0, 2, 400)]
    table = pl.DataFrame({name: one.astype(str) for name, one in zip("uvw", cells, strict=True)})
    model = po.NaiveBayes().fit(table, y)
    space = pl.DataFrame(list(itertools.product("012", "01", "01")), schema=table.schema, orient="row")
    joint = np.exp(model.predict_joint_log_proba(space))
    expected = []
    for name in space.columns:
        rest = [other for other in space.columns if other != name]
        marginal = np.exp(model.predict_joint_log_proba(without(space, name)))
        assert_allclose(marginal.sum() / space[name].n_unique(), 1.0)
        assert len(rest) == 2
        log_ratio = np.log(joint / joint.sum(1, keepdims=True)) - np.log(marginal / marginal.sum(1, keepdims=True))
        expected.append((joint * log_ratio).sum())
    found = model.importance_
    assert not found.held_out
    assert (found.increase >= 0).all()
    assert (np.abs(found.increase - expected) < 4.0 * found.standard_error + 1e-9).all()


def test_it_is_kept_in_files_and_forgotten_with_the_rows(tmp_path):
    models = [po.GenerativeClassifier(["lda", "nb"]).fit(PENGUINS, "species")]
    models.append(out_of_fold(po.NaiveBayes(), PENGUINS, "species").estimator)
    for position, model in enumerate(models):
        copies = [pickle.loads(pickle.dumps(model))]
        po.save(model, tmp_path / f"{position}.posteriori")
        copies.append(po.load(tmp_path / f"{position}.posteriori"))
        for copy in copies:
            assert copy.importance_.held_out
            assert_array_equal(copy.importance_.increase, model.importance_.increase)
            assert_array_equal(copy.importance_.standard_error, model.importance_.standard_error)
    models[1].partial_fit(PENGUINS.head(10), "species")
    assert not models[1].importance_.held_out


@pytest.mark.filterwarnings("ignore:the covariance is singular:UserWarning")
def test_groups_are_kept_in_files_and_checked(tmp_path):
    table = PENGUINS.with_columns(pounds=pl.col("body_mass_g") / 453.6)
    model = po.GenerativeClassifier(["lda", "nb"]).fit(table, "species")
    po.save(model, tmp_path / "m.posteriori")
    (group,) = model.importance_.groups
    assert group.columns == ("body_mass_g", "pounds")
    assert po.load(tmp_path / "m.posteriori").importance_.groups == (group,)
    assert po.GaussianDiscriminant().fit(table, "species").importance_.groups[0].columns == group.columns
    for wrong in (("pounds",), ("pounds", "feet")):
        found = replace(model.importance_, groups=(replace(group, columns=wrong),))
        with pytest.raises(ValueError, match="groups of other columns"):
            found.check_against(table.width - 1)
    for name in ("increase", "standard_error"):
        found = replace(model.importance_, groups=(replace(group, **{name: np.nan}),))
        with pytest.raises(ValueError, match="of a group"):
            found.check_against(table.width - 1)


def test_columns_and_groups_are_ranked_together():
    both = GroupImportance(("b", "c"), 0.2, 0.1, 50)
    found = Importance(("a", "b", "c"), np.array([0.3, 0.1, -0.1]), np.full(3, 0.01), 100, True, (both,))
    assert [one.columns for one in found.ranked] == [("a",), ("b", "c"), ("b",), ("c",)]
    assert [one.is_certain for one in found.ranked] == [True, False, True, False]
    assert [line.split("  ")[0].strip() for line in repr(found).splitlines()[1:]] == ["a", "b and c", "b", "c"]


def test_an_unfitted_model_has_none():
    for model in (po.NaiveBayes(), po.GenerativeClassifier()):
        with pytest.raises((NotFittedError, AttributeError)):
            _ = model.importance_


def test_one_column_tells_all_that_there_is():
    table = PENGUINS.select("island", "species")
    model = out_of_fold(po.NaiveBayes(), table, "species")
    truth = np.arange(len(model.y_true)), model.y_true
    gain = model.log_posterior[truth] - np.log(model.prior[truth])
    assert_allclose(model.estimator.importance_.increase, [gain.mean()], atol=1e-12)


def test_predictors_of_one_model_need_no_pool():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    assert Posterior((model.model_,)).n_parameters == model.n_parameters_


def test_columns_of_noise_are_called_uninformative():
    verdicts = []
    for seed in range(12):
        rng = np.random.default_rng(seed)
        y = rng.random(600) < 0.2
        judged = out_of_fold(po.NaiveBayes(), rng.normal(size=(600, 3)), y)
        found = compare_with_prior(judged.y_true, judged.posterior, judged.prior, judged.weight)
        verdicts.append(found.verdict)
    assert verdicts.count("uninformative") >= 10  # a test at two standard errors


def test_copies_of_a_weak_column_are_called_overconfident():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 2, 800)
    copies = np.repeat(rng.normal(0.8 * y)[:, np.newaxis], 30, axis=1)
    judged = out_of_fold(po.NaiveBayes(), copies, y)
    found = compare_with_prior(judged.y_true, judged.posterior, judged.prior, judged.weight)
    assert found.difference > 0
    assert found.verdict == "overconfident"
    once = out_of_fold(po.NaiveBayes(), copies[:, :1], y)
    found = compare_with_prior(once.y_true, once.posterior, once.prior, once.weight)
    assert found.verdict == "informative"
