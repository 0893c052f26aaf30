"""The weight of rows without label, chosen by labelled rows that are held out."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

import posteriori as po
from posteriori.fitting.unlabelled_weight import WEIGHT_GRID
from posteriori.model_selection import metrics, out_of_fold

MODELS = [
    po.NaiveBayes(),
    po.GaussianDiscriminant(),
    po.TreeAugmentedNaiveBayes(bins=[0.0, 1.0]),
    po.classifiers.ChowLiuClassifier(bins=[0.0, 1.0]),
]


def hidden(y, few, rng):
    """Return the labels, all but a few of each class missing."""
    shown = np.concatenate([rng.choice(np.flatnonzero(y == c), few, replace=False) for c in np.unique(y)])
    partly = np.full(len(y), np.nan)
    partly[shown] = y[shown]
    return partly


def correlated(seed=0, n=600):
    """Return rows of which one hidden cause moves all columns, but one, which is what the class is about."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    cause = 3.0 * np.where(rng.random(n) < 0.5, -1, 1)
    X = np.column_stack([cause[:, np.newaxis] + rng.normal(size=(n, 5)), 2.5 * y + rng.normal(size=n)])
    return X, y, hidden(y, 40, rng)


def independent(seed=0, n=500):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    return 0.8 * y[:, np.newaxis] + rng.normal(size=(n, 10)), y, hidden(y, 8, rng)


@pytest.mark.parametrize("make", [correlated, independent])
def test_the_weight_is_that_of_the_least_loss_of_held_out_rows(make):
    X, _, partly = make()
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, partly)
    folds = min(5, int(min((partly == 0).sum(), (partly == 1).sum())))
    losses = {}
    for weight in WEIGHT_GRID:
        scored = out_of_fold(clone(model).set_params(labels__unlabelled_weight=weight), X, partly, folds=folds)
        losses[weight] = metrics.log_loss(scored.y_true, scored.posterior)
    assert model.unlabelled_weight_ == min(losses, key=lambda weight: (losses[weight], -weight))
    same = clone(model).set_params(labels__unlabelled_weight=model.unlabelled_weight_).fit(X, partly)
    np.testing.assert_array_equal(model.predict_proba(X), same.predict_proba(X))


def test_harmful_rows_get_little_weight_and_helpful_rows_some():
    X, y, partly = correlated()
    chosen = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, partly)
    assert chosen.unlabelled_weight_ <= 0.01
    assert chosen.score(X, y) > po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(X, partly).score(X, y) + 0.2
    X, y, partly = independent()
    chosen = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, partly)
    labelled = ~np.isnan(partly)
    assert chosen.unlabelled_weight_ >= 0.1
    assert chosen.score(X, y) > po.NaiveBayes().fit(X[labelled], partly[labelled]).score(X, y)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: type(model).__name__)
def test_all_models_choose_and_keep_it(model, tmp_path):
    X, _, partly = independent(n=80)
    X = X[:, :3]
    learner = clone(model).set_params(labels__unlabelled="learn", labels__unlabelled_weight="held_out").fit(X, partly)
    assert learner.unlabelled_weight_ in WEIGHT_GRID
    assert learner.labels.unlabelled_weight == "held_out"
    po.save(learner, tmp_path / "m.posteriori")
    assert po.load(tmp_path / "m.posteriori").unlabelled_weight_ == learner.unlabelled_weight_


def test_missing_numbers_of_weightless_rows_count_for_nothing():
    X, _, partly = correlated()
    X[np.random.default_rng(1).random(X.shape) < 0.1] = np.nan
    learner = po.GaussianDiscriminant(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, partly)
    assert learner.unlabelled_weight_ in WEIGHT_GRID
    labelled = partly >= 0
    few = po.GaussianDiscriminant().fit(X[labelled], partly[labelled])
    none = po.GaussianDiscriminant(labels=po.Labels(unlabelled="learn", unlabelled_weight=0.0)).fit(X, partly)
    np.testing.assert_allclose(none.predict_proba(X), few.predict_proba(X), atol=1e-10)


def test_cross_validation_goes_by_the_weight_chosen():
    X, _, partly = independent(n=200)
    learner = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, partly)
    scored = out_of_fold(clone(learner), X, partly)
    assert scored.estimator.unlabelled_weight_ == learner.unlabelled_weight_
    assert len(scored.y_true) == (~np.isnan(partly)).sum()


def test_masks_and_sample_weights_are_followed():
    X, _, partly = independent(n=200)
    mask = (partly[:, np.newaxis] == np.arange(2)) | np.isnan(partly)[:, np.newaxis]
    plain = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(
        X, partly, np.full(200, 2.0)
    )
    assert plain.unlabelled_weight_ in WEIGHT_GRID
    masked = po.NaiveBayes(labels=po.Labels(unlabelled_weight="held_out")).fit(X, mask, np.full(200, 2.0))
    assert masked.unlabelled_weight_ in WEIGHT_GRID


def test_where_every_row_has_a_label_there_is_nothing_to_choose():
    X, y, _ = independent(n=50)
    for unlabelled in ("error", "learn"):
        model = po.NaiveBayes(labels=po.Labels(unlabelled=unlabelled, unlabelled_weight="held_out")).fit(X, y)
        assert model.unlabelled_weight_ == 1.0
    assert po.NaiveBayes(labels=po.Labels(unlabelled_weight="held_out")).partial_fit(X, y).unlabelled_weight_ == 1.0
    assert po.NaiveBayes(labels=po.Labels(unlabelled_weight=0.3)).fit(X, y).unlabelled_weight_ == 0.3


def test_a_class_of_one_labelled_row_is_refused_in_one_sentence():
    X, _, partly = independent(n=50)
    partly[np.flatnonzero(partly == 1)[1:]] = np.nan
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out"))
    with pytest.raises(ValueError, match=r"two labelled rows of each class, and .* has 1; set it to a number"):
        model.fit(X, partly)
    with pytest.raises(ValueError, match="unlabelled_weight"):
        po.NaiveBayes(labels=po.Labels(unlabelled_weight="all")).fit(X, partly)


def test_candidates_warn_of_nothing_that_the_model_kept_does_not():
    X, _, partly = independent(n=200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        po.NaiveBayes(labels=po.Labels(unlabelled="learn", unlabelled_weight="held_out")).fit(X, partly)
