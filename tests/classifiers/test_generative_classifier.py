"""The pool of generative models, and cross-validation of several at once."""

import math
import warnings
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import log_softmax, logsumexp
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.utils.estimator_checks import parametrize_with_checks

import posteriori as po
from posteriori.comparison.models import chosen_models
from posteriori.datasets import load_penguins
from posteriori.fitting.rows import read_first_rows
from posteriori.learning.folded_data import FoldedData, judge_and_sample
from posteriori.learning.folds import assign_folds
from posteriori.learning.pool_weights import fit_pool
from posteriori.model import clip_log_posteriors
from posteriori.model_cost import ColumnSummary, TableSummary, cost_of_covariances
from posteriori.model_selection import out_of_fold
from posteriori.model_selection.metrics import area_under_curve, scores_of
from posteriori.pool.candidates import MemberOptions, select_candidates
from posteriori.registry import MODELS, member_models, pool_candidates


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def model(penguins):
    return po.GenerativeClassifier().fit(penguins, "species")


def mixed(n=150, seed=0, classes=3, cells=0.1):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(classes), rng.integers(0, classes, n - classes)])
    X = rng.normal(size=(n, 2)) + y[:, np.newaxis]
    X[rng.random(X.shape) < cells] = np.nan
    kind = [None if rng.random() < cells else "abc"[(c + rng.integers(0, 2)) % 3] for c in y]
    frame = pl.DataFrame({"u": X[:, 0], "v": X[:, 1], "kind": kind}, nan_to_null=True)
    return frame, np.array([f"class {c}" for c in y])


# Members, weights and posteriors ------------------------------------------------------------------------------


def test_the_posterior_is_the_weighted_sum_of_the_members(model, penguins):
    penguins = penguins.drop_nulls()  # rows with gaps have weights between these and those of nothing known
    logs = np.stack([one.predict_log_proba(penguins) for one in model.members_.values()], axis=2)
    score = model.class_bias_ + np.maximum(logs, -700.0) @ np.array(list(model.member_weights_.values()))
    assert_allclose(model.predict_log_proba(penguins), log_softmax(score, axis=1), atol=1e-9)
    assert_allclose(model.predict_proba(penguins).sum(axis=1), 1.0)
    assert all(weight > 0 for weight in model.member_weights_.values())
    assert model.score(penguins, "species") > 0.98


def test_each_member_is_what_fitting_it_alone_gives(model, penguins):
    for name, member in model.members_.items():
        if isinstance(member, po.GenerativeForest):  # its trees leave out the folds of the pool, and not its own
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = MODELS[name].make().fit(penguins, "species")
        assert_allclose(member.predict_proba(penguins), alone.predict_proba(penguins), atol=1e-7, err_msg=name)


# The prior of learned tables is chosen on all rows.
@pytest.mark.parametrize("name", sorted(pool_candidates().keys() - {"cells"}))
def test_a_candidate_is_judged_as_refitting_it_would(name):
    frame, y = mixed(cells=0.1 if MODELS[name].cost is not cost_of_covariances else 0.0)
    estimator = MODELS[name].make()
    evaluated = out_of_fold(estimator, frame, y, folds=3)
    for k in range(3):
        held_out = evaluated.fold == k
        alone = MODELS[name].make()
        if estimator.get_params().get("bins") == 8:  # quantiles look at no label, so that the folds share them
            alone.set_params(bins=8)
            continue
        alone.fit(frame.filter(~held_out), y[~held_out])
        assert_allclose(evaluated.posterior[held_out], alone.predict_proba(frame.filter(held_out)), atol=1e-7)


def test_weights_that_judge_the_pool_have_not_seen_the_fold(penguins):
    model = po.GenerativeClassifier(["nb", "lda", "tan"], penalty=100.0).fit(penguins, "species")
    results, own = model.cv_results_, model.out_of_fold_
    assert results["member"] == ["nb", "lda", "tan", "pool"]
    found = scores_of(own.y_true, own.posterior, own.weight)
    assert results["log_loss"][-1] == pytest.approx(found["log_loss"])
    for name, loss in zip(results["member"][:3], results["log_loss"][:3], strict=True):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            alone = out_of_fold(model.members_[name], penguins, "species", folds=own.fold)
        assert loss == pytest.approx(scores_of(alone.y_true, alone.posterior, alone.weight)["log_loss"], abs=1e-9)


def test_explanations_are_exact_sums(model, penguins):
    rows = penguins.head(20)
    explained = model.explain(rows)
    assert_allclose(explained.posterior, model.predict_proba(rows), atol=1e-9)
    assert "weighted" in explained.bayes_table(3)
    odds = explained.log_odds(0, "Adelie", "Gentoo")
    log_proba = model.predict_log_proba(rows)
    assert odds.total == pytest.approx(log_proba[0, 0] - log_proba[0, 2])


def test_the_density_is_the_mixture_of_the_members(model, penguins):
    share = np.array(list(model.member_weights_.values()))
    each = np.stack([one.score_samples(penguins) for one in model.members_.values()])
    assert_allclose(model.score_samples(penguins), logsumexp(each + np.log(share / share.sum())[:, np.newaxis], axis=0))
    drawn, labels = model.sample(300, random_state=0)
    assert drawn.columns == [name for name in penguins.columns if name != "species"]
    assert (model.predict(drawn) == labels).mean() > 0.8
    assert set(model.sample(5, "Gentoo", random_state=1)[1]) == {"Gentoo"}


def test_the_best_alone_and_one_member_calibrated(penguins):
    best = po.GenerativeClassifier(["nb", "lda"], pool="best").fit(penguins, "species")
    results = best.cv_results_
    assert list(best.member_weights_.values()) == [1.0]
    assert next(iter(best.members_)) == results["member"][int(np.argmin(results["log_loss"][:2]))]
    member = next(iter(best.members_.values()))
    assert_allclose(best.predict_proba(penguins), member.predict_proba(penguins), atol=1e-12)
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1)) + 0.5 * (y := rng.integers(0, 2, 400))[:, np.newaxis]
    copies = np.repeat(x, 6, axis=1)  # naive Bayes counts the same evidence six times
    calibrated = po.GenerativeClassifier(["nb"]).fit(copies, y)
    assert calibrated.member_weights_["nb"] == pytest.approx(1 / 6, rel=0.5)
    assert calibrated.cv_results_["log_loss"][-1] < calibrated.cv_results_["log_loss"][0] - 0.1


def test_members_are_named_or_given(penguins):
    members = {"trees": po.TreeAugmentedNaiveBayes(bins=5), "aode": "aode 8 bins", "nb": po.NaiveBayes()}
    found = po.GenerativeClassifier(members).fit(penguins, "species")
    assert found.cv_results_["member"] == ["trees", "aode", "nb", "pool"]
    twice = po.GenerativeClassifier([po.NaiveBayes(), po.NaiveBayes(alpha=5.0)]).fit(penguins, "species")
    assert twice.cv_results_["member"] == ["NaiveBayes", "NaiveBayes again", "pool"]
    for bad, words in (
        ([], "is empty"),
        (["svm"], "there is no model 'svm'"),
        (["random forest"], "'random forest'; choose"),
        ([3], "members holds 3"),
    ):
        with pytest.raises(ValueError, match=words):
            po.GenerativeClassifier(bad).fit(penguins, "species")


def test_it_is_kept_in_a_file(model, penguins, tmp_path):
    po.save(model, tmp_path / "pool.posteriori")
    again = po.load(tmp_path / "pool.posteriori")
    assert_array_equal(again.predict_proba(penguins), model.predict_proba(penguins))
    assert again.cv_results_ == model.cv_results_
    assert_array_equal(again.explain(penguins.head(2)).log_factors, model.explain(penguins.head(2)).log_factors)
    stated = po.GenerativeClassifier([po.NaiveBayes(alpha=2.0)]).fit(penguins, "species")
    po.save(stated, tmp_path / "stated.posteriori")
    assert po.load(tmp_path / "stated.posteriori").members[0].alpha == 2.0


# Tables of every kind -----------------------------------------------------------------------------------------


def many_classes():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 30, 300)
    return rng.normal(y[:, np.newaxis], 0.1, (300, 2)), y


def tiny_class():
    frame, y = mixed(60)
    y[:2] = "rare"
    return frame, y


TABLES = {
    "tiny class": tiny_class,
    "one feature": lambda: (mixed()[0].select("u"), mixed()[1]),
    "only categories": lambda: (mixed()[0].select("kind"), mixed()[1]),
    "wide": lambda: (np.random.default_rng(0).normal(size=(30, 45)), np.arange(30) % 2),
    "many classes": many_classes,
    "few rows": lambda: ([[1.0], [2.0], [3.0]], ["a", "b", "a"]),
    "constant column": lambda: (mixed()[0].with_columns(one=pl.lit(1.0)), mixed()[1]),
    "a column of gaps in a class": lambda: (
        mixed()[0].with_columns(u=pl.when(pl.Series(mixed()[1]) != "class 0").then("u")),
        mixed()[1],
    ),
    "offset": lambda: (np.random.default_rng(0).normal(1e9, 1.0, (80, 2)), np.arange(80) % 2),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.filterwarnings("ignore:candidate .* is not tried")
def test_any_table_will_do(name):
    X, y = TABLES[name]()
    found = po.GenerativeClassifier(folds=2).fit(X, y)
    proba = found.predict_proba(X)
    assert proba.shape == (len(y), len(set(y)))
    assert_allclose(proba.sum(axis=1), 1.0)
    assert np.isfinite(found.score_samples(X)).all()
    assert math.isfinite(found.cv_results_["log_loss"][-1])


def test_unseen_categories_are_missing_cells_of_rows_outside(model, penguins):
    strange = penguins.head(3).with_columns(island=pl.lit("Elba"))
    with pytest.warns(UserWarning, match="'island'"):
        found = model.predict_proba(strange)
    gap = penguins.head(3).with_columns(island=pl.lit(None, dtype=pl.String))
    (batch,) = model.fitted_.rows.source(strange).stream(lambda batch: batch)
    posterior = model.fitted_.posterior
    within = replace(posterior, pool=replace(posterior.pool, extrapolation=None))
    assert_allclose(within.posterior(batch), model.predict_proba(gap))
    assert (found.max(axis=1) < model.predict_proba(gap).max(axis=1)).all()


def test_weights_are_repetitions():
    frame, y = mixed(90)
    weight = np.where(np.arange(90) < 45, 2.0, 1.0)
    fold = np.arange(90) % 3
    many = np.repeat(np.arange(90), weight.astype(int))
    members = ["nb", "tan 5", "aode 5"]
    pooled = []
    for X, labels, w, folds in ((frame, y, weight, fold), (frame[many], y[many], None, fold[many])):
        estimators = [MODELS[name].make() for name in members]
        folded = FoldedData.of(read_first_rows(estimators[0].recipe, X, labels, w), folds)
        plans = [one.recipe.plan(folded.source.schema, folded.target) for one in estimators]
        found, *_ = judge_and_sample(plans, folded)
        pooled.append(fit_pool(clip_log_posteriors(found), folded.y_true, folded.weight))
    assert_allclose(pooled[0].weight, pooled[1].weight, atol=1e-5)
    assert_allclose(pooled[0].bias, pooled[1].bias, atol=1e-5)


def numbers(d, n_incomplete=0):
    columns = tuple(ColumnSummary(f"x{j}", "continuous", 0, n_incomplete, 0.0, 1.0, False) for j in range(d))
    return TableSummary(columns, 10**7, 2, n_incomplete)


def test_what_costs_too_much_is_left_out_with_a_warning():
    selected = select_candidates(numbers(100), MemberOptions())
    assert set(selected.too_costly) == {"aode 8 bins"}
    assert "tan 5" in selected.recipes
    gaussian = {"rda predictive", "qda predictive"}
    assert gaussian | {"lda predictive"} <= set(
        select_candidates(numbers(100, n_incomplete=10**6), MemberOptions()).too_costly
    )
    # Gaps in few columns make few patterns of missing cells, so that EM does not read the rows in each step.
    gaps = tuple(replace(column, n_missing=10**6 if j < 7 else 0) for j, column in enumerate(numbers(40).columns))
    few_patterns = TableSummary(gaps, 10**7, 2, 3 * 10**6)
    assert gaussian <= set(select_candidates(few_patterns, MemberOptions()).recipes)
    X = np.random.default_rng(0).normal(size=(40, 130))
    with pytest.warns(UserWarning, match=r"is not tried: .*skipped_"):
        found = po.GenerativeClassifier(folds=2).fit(X, np.arange(40) % 2)
    others = {"lda predictive", "binned weighted", "cells", "forest mixed"}  # the first two stand in for others
    assert set(found.cv_results_["member"]) == {*others, "pool"}


def test_covariances_with_too_many_parameters_are_not_tried():
    own = {"rda predictive", "qda predictive"}
    for n_rows in (9, 10):  # two classes of 19·20 / 2 parameters each; 19 numbers per row
        declined = set(select_candidates(replace(numbers(19), n_rows=n_rows), MemberOptions()).declined)
        alike = {"nb predictive", "binned weighted", "residual trees"}
        assert declined == (alike | own if 2 * n_rows * 19 < 19 * 20 else alike | {"lda predictive"})
    few = replace(numbers(30, n_incomplete=1), n_rows=79)
    selected = select_candidates(few, MemberOptions())
    assert set(selected.declined) == {"lda predictive", "binned weighted", "residual trees", *own}
    assert "nb predictive" in selected.recipes
    assert "30 columns with 79 rows" in selected.declined["lda predictive"]
    for enough in (replace(few, n_rows=80), replace(few, n_incomplete=0)):
        reasons = dict(select_candidates(enough, MemberOptions()).declined)
        assert f"the table has {enough.n_rows}" in reasons.pop("residual trees")
        assert set(reasons) == {"lda predictive", "nb predictive", "binned weighted"}
        assert set(reasons.values()) == {"'rda predictive' sees the table alike", "'kdb weighted' sees the table alike"}


def test_models_of_numbers_decline_a_table_of_categories():
    frame, y = mixed()
    found = po.GenerativeClassifier().fit(frame.select("kind"), y)
    of_numbers = {"nb predictive", "lda predictive", "rda predictive", "qda predictive"}
    assert set(found.skipped_) == {*of_numbers, "binned weighted", "residual trees"}
    assert {found.skipped_[name] for name in of_numbers} == {"no column holds numbers"}


def test_a_candidate_sees_ranges_counts_gaps_and_cardinalities():
    frame, y = mixed()
    seen = []

    def decline(table):
        seen.append(table)
        return f"column {table.columns[0].name!r} holds {table.columns[0].lowest:.3g}; numbers must be positive"

    spec = replace(MODELS["nb predictive"], name="positive", decline=decline, stands_in_for=())
    with pytest.MonkeyPatch.context() as patch:
        patch.setitem(MODELS, "positive", spec)
        found = po.GenerativeClassifier(folds=2).fit(frame, y)
    (table,) = seen
    u, kind = frame["u"], frame["kind"]
    assert found.skipped_["positive"] == f"column 'u' holds {u.min():.3g}; numbers must be positive"
    assert "positive" not in found.cv_results_["member"]
    assert (table.n_rows, table.n_classes) == (150, 3)
    assert table.n_incomplete == frame.filter(u.is_null() | frame["v"].is_null()).height
    assert table.columns[0] == ColumnSummary("u", "continuous", 0, u.null_count(), u.min(), u.max(), False)
    assert (table.columns[2].cardinality, table.columns[2].n_missing) == (3, kind.null_count())


# One registry ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", [name for name, spec in member_models().items() if not spec.of_counts])
def test_one_name_is_one_model_everywhere(name, penguins):
    rows = penguins.head(300).drop_nulls()
    spec = MODELS[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        alone = spec.make().fit(rows, "species").predict_proba(rows)
        pool = po.GenerativeClassifier([name], pool="best", folds=2).fit(rows, "species")
        judged = po.cross_validate([name], rows, "species", folds=2)
    if not name.startswith("forest"):  # the trees of a forest leave out the folds of the pool, and not its own
        assert_allclose(pool.predict_proba(rows), alone, atol=1e-12)
    assert list(pool.members_) == [name]
    assert judged.table["model"].to_list() == [spec.title]
    (title,) = chosen_models([name], {})
    assert repr(chosen_models([name], {})[title]) == repr(spec.make())


def test_names_and_titles_differ_and_options_are_parameters():
    assert len({spec.title for spec in MODELS.values()}) == len(MODELS)
    for spec in MODELS.values():
        assert spec.name == spec.name.lower()
        assert "\n" not in spec.description
        parameters = spec.make().get_params()
        groups = {"label_noise": "em", "text": "columns"}
        assert {groups.get(one, one) for one in spec.options - {"binned", "counts"}} <= parameters.keys()
        assert {"missing", "distributions"} & parameters.keys() <= spec.options | {"distributions"}


def test_threads_and_repetition_change_nothing(penguins):
    one, two = (po.GenerativeClassifier(folds=2, n_jobs=jobs).fit(penguins, "species") for jobs in (1, 2))
    assert_allclose(one.predict_proba(penguins), two.predict_proba(penguins), atol=1e-12)
    with pytest.raises(ValueError, match="a mask of possible classes"):
        po.GenerativeClassifier().fit(np.zeros((4, 1)), np.eye(4, dtype=bool))
    with pytest.raises(ValueError, match="two rows with a label"):
        po.GenerativeClassifier().fit([[1.0]], ["a"])


@parametrize_with_checks(
    [po.GenerativeClassifier(["nb", "lda"])],
)
@pytest.mark.filterwarnings("ignore:the covariance is singular")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


# Pooling and scoring ------------------------------------------------------------------------------------------


def test_few_rows_leave_the_weights_equal():
    rng = np.random.default_rng(0)
    logs = log_softmax(rng.normal(size=(6, 2, 4)), axis=1)
    assert_allclose(fit_pool(logs, np.arange(6) % 2, np.ones(6), penalty=1e6).weight, 0.25, atol=1e-3)
    unknown = np.full((3, 2, 4), -np.inf)
    assert_allclose(fit_pool(clip_log_posteriors(unknown), np.zeros(3, np.int64), np.ones(3)).weight, 0.25)


def test_scores_are_those_of_scikit_learn():
    rng = np.random.default_rng(0)
    posterior, components, weight = rng.dirichlet(np.ones(3), 200), rng.integers(0, 3, 200), rng.uniform(0.5, 2, 200)
    expected = roc_auc_score(components, posterior, multi_class="ovr", average="weighted")
    assert area_under_curve(components, posterior) == pytest.approx(expected)
    binary = roc_auc_score(components == 1, posterior[:, 1], sample_weight=weight)
    two = np.column_stack([1 - posterior[:, 1], posterior[:, 1]])
    assert area_under_curve((components == 1).astype(int), two, weight) == pytest.approx(binary)
    found = scores_of(components, posterior, weight)
    assert found["log_loss"] == pytest.approx(po.model_selection.metrics.log_loss(components, posterior, weight))
    assert found["brier"] == pytest.approx(po.model_selection.metrics.brier_score(components, posterior, weight))
    rows = -np.log(posterior[np.arange(200), components])
    assert scores_of(components, posterior, np.ones(200))["log_loss_se"] == pytest.approx(rows.std() / np.sqrt(200))


# Cross-validation ---------------------------------------------------------------------------------------------


def test_models_are_judged_together_as_apart(penguins):
    together = po.cross_validate({"a": "nb", "b": po.TreeAugmentedNaiveBayes(bins=5), "c": "lda"}, penguins, "species")
    assert together.table["model"].to_list() == ["a", "b", "c"]
    for title, estimator in (("a", po.NaiveBayes()), ("b", po.TreeAugmentedNaiveBayes(bins=5))):
        apart = out_of_fold(estimator, penguins, "species")
        assert_allclose(together.posteriors[title], apart.posterior, atol=1e-12)
    assert together.classes.tolist() == ["Adelie", "Chinstrap", "Gentoo"]
    assert "a" in str(together)


def test_others_are_refitted_on_the_same_folds(penguins):
    found = po.cross_validate(["nb", "logistic"], penguins, "species", folds=3)
    assert found.posteriors["logistic regression"].shape == (344, 3)
    X, y = np.random.default_rng(0).normal(size=(60, 2)), np.arange(60) % 2
    both = po.cross_validate({"nb": po.NaiveBayes(), "plain": LogisticRegression()}, X, y)
    for k in range(5):
        held_out = both.fold == k
        plain = LogisticRegression().fit(X[~held_out], y[~held_out])
        assert_allclose(both.posteriors["plain"][held_out], plain.predict_proba(X[held_out]), atol=1e-12)


def test_rows_of_a_group_are_held_out_together():
    rng = np.random.default_rng(0)
    groups, components = rng.integers(0, 12, 200), rng.integers(0, 2, 200)
    for stratified in (True, False):
        fold = assign_folds(components, 4, stratified=stratified, groups=groups)
        assert all(len(set(fold[groups == one])) == 1 for one in range(12))
        assert set(fold) == set(range(4))
        assert np.bincount(fold).min() > 20
    with pytest.raises(ValueError, match="no more than the 12 groups"):
        assign_folds(components, 13, groups=groups)
    with pytest.raises(ValueError, match="two or more distinct values"):
        assign_folds(components, np.zeros(200))
    frame, y = mixed(60)
    assert set(po.cross_validate("nb", frame, y, folds=3, groups=np.arange(60) // 4).fold) == {0, 1, 2}


def test_mistakes_are_named(penguins):
    with pytest.raises(ValueError, match="'svm'"):
        po.cross_validate(["svm"], penguins, "species")
    with pytest.raises(ValueError, match="two models have the title"):
        po.cross_validate(["nb", "nb"], penguins, "species")
    with pytest.raises(ValueError, match="is empty"):
        po.cross_validate([], penguins, "species")


def test_the_pool_learns_from_rows_without_label_if_it_is_asked_to():
    X, y = np.arange(20.0).reshape(10, 2), np.array([0.0, 1.0, 0.0, 1.0, np.nan, 1.0, 0.0, 1.0, 0.0, 1.0])
    asked, alone = po.Labels(unlabelled="learn"), po.NaiveBayes(labels=po.Labels(unlabelled="learn"))
    pool = po.GenerativeClassifier(["nb"], labels=asked).fit(X, y)
    assert_allclose(pool.models_["nb"].predict_proba(X), alone.fit(X, y).predict_proba(X))
