"""Learned back-off: against refits without each row, and in everything that a classifier does."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.learning.backoff import STRENGTHS


def table(n, dependent, seed=0, gaps=0.0):
    """Return two columns of categories whose dependence carries all or none of the information about the class."""
    rng = np.random.default_rng(seed)
    a, noise = rng.integers(0, 3, n), rng.random(n) < 0.1
    y = rng.integers(0, 2, n)
    b = np.where(noise, rng.integers(0, 3, n), (a + y) % 3) if dependent else np.where(noise, 2, y)
    cells = np.column_stack([a, b]).astype(str).astype(object)
    cells[rng.random(cells.shape) < gaps] = None
    return pl.DataFrame(cells, schema=["a", "b"], orient="row"), y


@pytest.mark.parametrize("dependent", [True, False])
def test_the_strength_maximises_the_posterior_of_classes_left_out_by_refits(dependent):
    X, y = table(60, dependent)
    learned = po.TreeAugmentedNaiveBayes(backoff="learned").fit(X, y).backoff_

    def score(strength):
        total = np.log(strength) - strength / 10.0
        for i in range(len(y)):
            rest = np.arange(len(y)) != i
            model = po.TreeAugmentedNaiveBayes(backoff=strength).fit(X.filter(pl.Series(rest)), y[rest])
            total += np.log(model.predict_proba(X[i : i + 1])[0, y[i]])
        return total

    scores = np.array([score(strength) for strength in STRENGTHS])
    best = int(scores.argmax())
    if best in (0, len(scores) - 1):
        assert learned == STRENGTHS[best]
    else:
        inner = np.log(STRENGTHS[best - 1 : best + 2])
        parabola = np.polyfit(inner, scores[best - 1 : best + 2], 2)
        assert_allclose(learned, np.exp(-parabola[1] / (2 * parabola[0])), rtol=1e-6)


def test_dependence_that_matters_is_shrunk_less():
    strengths = [po.KDependenceBayes(k=1, backoff="learned").fit(*table(300, one)).backoff_ for one in (True, False)]
    assert strengths[0] < 0.5 * strengths[1]
    X, y = table(300, dependent=True, gaps=0.3)
    assert 0 < po.KDependenceBayes(k=1, backoff="learned").fit(X, y).backoff_ < strengths[1]


def test_a_learned_strength_is_that_of_the_tables(tmp_path):
    X, y = table(200, dependent=True)
    for make in (po.KDependenceBayes, po.TreeAugmentedNaiveBayes, po.ChowLiuClassifier):
        learned = make(backoff="learned").fit(X, y)
        given = make(backoff=learned.backoff_).fit(X, y)
        assert_allclose(learned.predict_proba(X), given.predict_proba(X), rtol=1e-12)
        assert given.backoff_ == learned.backoff_
        po.save(learned, tmp_path / "model")
        again = po.load(tmp_path / "model")
        assert (again.backoff, again.backoff_) == ("learned", learned.backoff_)
        assert_allclose(po.leave_one_out(learned, X, y).log_loss, po.leave_one_out(given, X, y).log_loss)
    assert po.KDependenceBayes(backoff=None).fit(X, y).backoff_ is None


def test_cross_validation_learns_the_strength_without_the_fold():
    X, y = table(150, dependent=True)
    found = po.cross_validate({"tan": po.TreeAugmentedNaiveBayes(backoff="learned")}, X, y, folds=3)
    for k in range(3):
        inside = found.fold == k
        rest = po.TreeAugmentedNaiveBayes(backoff="learned").fit(X.filter(pl.Series(~inside)), y[~inside])
        assert_allclose(found.posteriors["tan"][inside], rest.predict_proba(X.filter(pl.Series(inside))), rtol=1e-9)


def test_factor_weights_are_learned_after_the_strength():
    X, y = table(200, dependent=True)
    both = po.KDependenceBayes(backoff="learned", feature_weights="conditional").fit(X, y)
    strength = po.KDependenceBayes(backoff="learned").fit(X, y).backoff_
    given = po.KDependenceBayes(backoff=strength, feature_weights="conditional").fit(X, y)
    assert_allclose(both.predict_proba(X), given.predict_proba(X), rtol=1e-9)


def test_what_sees_only_sums_refuses_a_learned_strength():
    X, y = table(80, dependent=True)
    model = po.TreeAugmentedNaiveBayes(backoff="learned")
    with pytest.raises(ValueError, match=r'backoff="learned" takes all rows at once, and partial_fit'):
        model.partial_fit(X, y)
    model.fit(X, y)
    with pytest.raises(ValueError, match=r'backoff="learned" takes all rows at once'):
        model.unlearn(X[:2], y[:2])
    with pytest.raises(ValueError, match=r'backoff="learned" takes all rows at once'):
        po.merge([model, model])
    with pytest.raises(ValueError, match="continuous"):
        po.TreeAugmentedNaiveBayes(backoff="learned", continuous="gaussian").fit(X, y)
    with pytest.raises(ValueError, match="components_per_class"):
        po.TreeAugmentedNaiveBayes(backoff="learned", components_per_class=2).fit(X, y)
    with pytest.raises(ValueError, match="without label"):
        po.TreeAugmentedNaiveBayes(backoff="learned", unlabelled=-1).fit(X, np.where(np.arange(80) < 40, y, -1))


def test_pools_keep_the_strength_in_updates_and_take_its_mean_in_merges():
    members = {"tan": po.TreeAugmentedNaiveBayes(backoff="learned")}
    first, second = (po.GenerativeClassifier(members).fit(*table(200, True, seed)) for seed in (0, 1))
    strengths = [pool.members_["tan"].backoff_ for pool in (first, second)]
    assert strengths[0] != strengths[1]
    merged = po.merge([first, second]).members_["tan"]
    assert_allclose(merged.backoff_, np.sqrt(np.prod(strengths)))
    first.partial_fit(*table(50, True, 2))
    assert first.members_["tan"].backoff_ == strengths[0]
    first.unlearn(*table(50, True, 2))
    assert first.members_["tan"].class_count_.sum() == 200
