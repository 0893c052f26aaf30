"""Sets of classes: their coverage on new rows, brute-force scores, and what is refused."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.scoring.prediction_sets import limits, scores_of

PENGUINS = load_penguins()
BIRDS = PENGUINS.select("island", "bill_depth_mm", "sex", "species")


@given(st.integers(0, 1000))
def test_scores_are_those_of_a_sum_over_more_probable_classes(seed):
    p = np.random.default_rng(seed).dirichlet(np.ones(4), size=5)
    wanted = [[row[row > one].sum() + one / 2 for one in row] for row in p]
    assert_allclose(scores_of(p, "cumulative"), wanted, atol=1e-12)
    assert_allclose(scores_of(p, "probability"), 1 - p)


def test_limits_are_the_order_statistics_of_the_promise():
    scores, y = np.arange(1.0, 21.0), np.repeat([0, 1], 10)
    classes = np.array(["a", "b"])
    assert_array_equal(limits(scores, y, 0.8, classes, per_class=False), [17, 17])  # of 21 · 0.8 = 16.8
    assert_array_equal(limits(scores, y, 0.8, classes, per_class=True), [9, 19])
    with pytest.raises(ValueError, match=r"class 'a' has 10 held-out rows, and a coverage of 0\.95 needs 19"):
        limits(scores, y, 0.95, classes, per_class=True)
    for wrong in (0.0, 1.0, -1, 90):
        with pytest.raises(ValueError, match="give a number between 0 and 1"):
            limits(scores, y, wrong, classes, per_class=False)


def _rows(rng, n):
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 2)) + 1.2 * np.eye(3)[y][:, :2], y


@pytest.mark.parametrize("score", ["probability", "cumulative", "density"])
@pytest.mark.parametrize("per_class", [False, True])
def test_sets_cover_new_rows_as_often_as_promised(score, per_class):
    rng = np.random.default_rng(3)
    covered, sizes = [], []
    for _ in range(12):
        X, y = _rows(rng, 300)
        model = po.GaussianDiscriminant(pooling="per_class").fit(X, y)
        held_out = po.model_selection.leave_one_out(model, X, y)
        new, labels = _rows(rng, 1500)
        found = model.predict_set(new, 0.9, score=score, per_class=per_class, held_out=held_out)
        inside = found.covers(labels)
        covered.append([inside[labels == k].mean() for k in range(3)])
        sizes.append(found.size.mean())
    assert_allclose(np.mean(covered), 0.9, atol=0.02)
    if per_class:
        assert_allclose(np.mean(covered, axis=0), 0.9, atol=0.03)
    assert 1.0 < np.mean(sizes) < 2.6


def test_a_pool_keeps_what_its_sets_need_in_its_file(tmp_path):
    pool = po.GenerativeClassifier(members=["nb", "tan"]).fit(BIRDS, "species")
    po.save(pool, tmp_path / "m.posteriori")
    loaded = po.load(tmp_path / "m.posteriori")
    for given_ in ({}, {"score": "cumulative"}, {"per_class": True}):
        one, other = (model.predict_set(BIRDS, 0.9, **given_) for model in (pool, loaded))
        assert one.sets == other.sets
    assert pool.predict_set(BIRDS, 0.9).covers(BIRDS["species"]).mean() >= 0.9
    own = pool.predict_set(BIRDS, 0.95, held_out=pool.out_of_fold_)
    assert np.mean(own.included != pool.predict_set(BIRDS, 0.95).included) < 0.01  # kept to three digits
    pool.partial_fit(BIRDS[:30], "species")
    with pytest.raises(ValueError, match="keeps no held-out predictions"):
        pool.predict_set(BIRDS)


def test_a_row_that_is_like_no_class_has_an_empty_set():
    model = po.GaussianDiscriminant().fit(PENGUINS.drop_nulls(), "species")
    held_out = po.model_selection.leave_one_out(model, PENGUINS.drop_nulls(), "species")
    row = PENGUINS.drop_nulls()[:1].with_columns(body_mass_g=20_000)
    assert model.predict_set(row, 0.95, score="density", held_out=held_out).sets == [()]
    assert len(model.predict_set(row, 0.95, held_out=held_out).sets[0]) == 1


def test_higher_coverage_gives_no_smaller_sets():
    pool = po.GenerativeClassifier(members=["nb"]).fit(BIRDS, "species")
    before = pool.predict_set(BIRDS, 0.5).included
    for coverage in (0.8, 0.9, 0.97):
        after = pool.predict_set(BIRDS, coverage).included
        assert (after >= before).all()
        before = after


def test_what_sets_need_is_said():
    model = po.NaiveBayes().fit(BIRDS, "species")
    with pytest.raises(ValueError, match=r"NaiveBayes keeps no held-out predictions; give held_out=.*out_of_fold"):
        model.predict_set(BIRDS)
    with pytest.raises(ValueError, match="score is 'aps'; it is one of"):
        model.predict_set(BIRDS, score="aps")
    with pytest.raises(ValueError, match="needs log p"):
        model.predict_set(BIRDS, score="density")
    other = po.model_selection.out_of_fold(po.NaiveBayes(), BIRDS, "island")
    with pytest.raises(ValueError, match="held_out is of the classes"):
        model.predict_set(BIRDS, held_out=other)
    held_out = po.model_selection.out_of_fold(po.NaiveBayes(), BIRDS, "species")
    found = model.predict_set(BIRDS.head(2), held_out=held_out)
    with pytest.raises(ValueError, match="there are 1 labels, and 2 sets"):
        found.covers(["Adelie"])
    with pytest.raises(ValueError, match="'Emperor' is not a class"):
        found.covers(["Adelie", "Emperor"])
