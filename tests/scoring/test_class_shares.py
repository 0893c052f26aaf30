"""Class shares of unlabelled rows against long EM, counts, and the coverage of intervals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.stats import norm

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.scoring.class_shares import compare_densities, estimate_shares

PENGUINS = load_penguins()


def posterior_of(rng, n, shares, prior, means):
    label = rng.choice(len(shares), size=n, p=shares)
    density = norm.pdf(rng.normal(np.asarray(means)[label])[:, None], np.asarray(means)[None])
    joint = density * prior
    return joint / joint.sum(axis=1, keepdims=True)


def long_em(posterior, prior, steps):
    shares = np.asarray(prior, float)
    for _ in range(steps):
        joint = posterior / prior * shares
        shares = (joint / joint.sum(axis=1, keepdims=True)).mean(axis=0)
    return shares


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(2, 4))
def test_the_estimate_is_that_of_em_run_for_long(seed, n_classes):
    rng = np.random.default_rng(seed)
    shares, prior = rng.dirichlet(np.ones(n_classes)), rng.dirichlet(np.full(n_classes, 5.0))
    posterior = posterior_of(rng, 60, shares, prior, 1.5 * np.arange(n_classes))
    found = estimate_shares(posterior, prior, np.arange(n_classes))
    ratio = posterior / prior
    likelihood, of_em = (np.log(ratio @ one).sum() for one in (found.shares, long_em(posterior, prior, 3000)))
    assert likelihood >= of_em - 1e-9  # EM crawls towards shares of 0
    assert_allclose(found.shares.sum(), 1.0)
    gradient = (ratio / (ratio @ found.shares)[:, None]).mean(axis=0)
    assert (gradient <= 1.0 + 1e-6).all()  # Karush, Kuhn and Tucker: 1 for shares above 0, at most 1 for the others
    assert_allclose(gradient[found.shares > 1e-6], 1.0, atol=1e-5)


def test_classes_that_rows_cannot_tell_apart_keep_their_ratio():
    rng = np.random.default_rng(0)
    two = posterior_of(rng, 200, (0.9, 0.1), np.array([0.5, 0.5]), [0.0, 3.0])
    posterior = np.stack([two[:, 0], two[:, 1] * 0.4, two[:, 1] * 0.6], axis=1)  # the last two have one density
    prior = np.array([0.5, 0.2, 0.3])
    found = estimate_shares(posterior, prior, np.arange(3))
    assert_allclose(found.cautious[1] / found.cautious[2], 2 / 3, rtol=1e-4)
    assert_allclose(found.cautious[0], found.shares[0], atol=0.02)
    assert_allclose(list(found.priors.values()), found.cautious)
    drawn = np.array(found.draws(50))
    assert_allclose(drawn.sum(axis=1), 1.0)
    assert (drawn > 0).all()


def test_labels_that_are_known_give_shares_and_errors_of_counts():
    posterior = np.eye(3)[np.repeat([0, 1, 2], [50, 30, 20])]
    found = estimate_shares(posterior, np.full(3, 1 / 3), np.array(list("abc")))
    assert_allclose(found.shares, [0.5, 0.3, 0.2], atol=1e-9)
    assert_allclose(found.standard_error, np.sqrt(np.array([0.25, 0.21, 0.16]) / 100), rtol=1e-6)
    assert found.mix_changed
    assert found.priors.keys() == {"a", "b", "c"}


@pytest.mark.parametrize("shares", [(0.3, 0.7), (0.2, 0.5, 0.3)])
def test_intervals_hold_the_shares_as_often_as_they_say(shares):
    rng, prior = np.random.default_rng(0), np.full(len(shares), 1 / len(shares))
    inside, changed = [], []
    for _ in range(400):
        found = estimate_shares(posterior_of(rng, 300, shares, prior, 2.0 * np.arange(len(shares))), prior, prior)
        low, high = found.interval(0.9).T
        inside.append((low <= shares) & (shares <= high))
        same = posterior_of(rng, 300, prior, prior, 2.0 * np.arange(len(shares)))
        changed.append(estimate_shares(same, prior, prior).p_value < 0.1)
    assert_allclose(np.mean(inside, axis=0), 0.9, atol=0.045)  # three standard errors
    assert_allclose(np.mean(changed), 0.1, atol=0.045)


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier(members=["nb", "lda"])])
def test_other_shares_multiply_the_posterior_by_their_ratio(model):
    model.fit(PENGUINS, "species")
    prior = np.exp(model._posterior.class_log_prior)
    wanted = {"Adelie": 0.1, "Chinstrap": 0.7, "Gentoo": 0.2}
    moved = model.with_priors(wanted)
    rows = [{"bill_length_mm": 46.0}, {"island": "Dream", "sex": "male"}, {}]
    expected = model.predict_proba(rows) * np.array(list(wanted.values())) / prior
    expected /= expected.sum(axis=1, keepdims=True)
    assert_allclose(moved.predict_proba(rows), expected, rtol=1e-9)
    assert_allclose(model.predict_proba(rows, priors=wanted), expected, rtol=1e-9)
    assert_allclose(moved.with_priors(prior).predict_proba(rows), model.predict_proba(rows), rtol=1e-9)
    assert moved.get_params()["priors"] == pytest.approx(tuple(wanted.values()))


def test_a_model_of_other_shares_is_that_of_a_fit_with_them(tmp_path):
    wanted = {"Adelie": 0.1, "Chinstrap": 0.7, "Gentoo": 0.2}
    fitted = po.NaiveBayes(priors=wanted).fit(PENGUINS, "species")
    moved = po.NaiveBayes().fit(PENGUINS, "species").with_priors(wanted)
    assert_allclose(moved.predict_proba(PENGUINS), fitted.predict_proba(PENGUINS), rtol=1e-9)
    assert_allclose(moved.score_samples(PENGUINS), fitted.score_samples(PENGUINS), rtol=1e-9)
    po.save(moved, tmp_path / "m.posteriori")
    assert_allclose(po.load(tmp_path / "m.posteriori").predict_proba(PENGUINS), moved.predict_proba(PENGUINS))
    moved.partial_fit(PENGUINS[:5], "species")
    assert_allclose(moved.class_prior_, list(wanted.values()))  # they were given, and are not counted


def test_a_changed_mix_and_changed_columns_are_told_apart():
    rng = np.random.default_rng(0)
    half = rng.random(len(PENGUINS)) < 0.5
    model = po.NaiveBayes().fit(PENGUINS.filter(half), "species")
    others = PENGUINS.filter(~half)
    rare = others.filter((others["species"].to_numpy() != "Adelie") | (rng.random(len(others)) < 0.1))
    found = model.estimate_priors(rare, against=others)
    assert found.mix_changed
    assert not found.columns_changed
    assert abs(found.priors["Adelie"] - (rare["species"] == "Adelie").mean()) < 3 * found.standard_error[0]
    heavier = others.with_columns(body_mass_g=others["body_mass_g"] * 1.3)
    found = model.estimate_priors(heavier, against=others)
    assert found.columns_changed
    assert "The columns changed: " in str(found)
    same = model.estimate_priors(others)
    assert not same.mix_changed
    assert same.columns_changed is None
    assert "Nothing shows that the mix of classes changed" in str(same)


def test_densities_are_compared_by_pairs():
    new, earlier = np.array([0.0, 2.0]), np.array([1.0, 3.0, 2.0])
    less, p_value = compare_densities(new, earlier, np.ones(3))
    assert_allclose(less, (3 + 1.5) / 6)  # a tie is half a pair
    assert p_value > 0.3
    assert_allclose(compare_densities(new, earlier, np.array([1.0, 0.0, 1.0]))[0], (2 + 0.5) / 4)


def test_what_cannot_be_estimated_is_said():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    with pytest.raises(ValueError, match="a minimum of 1 is required"):
        model.estimate_priors(PENGUINS.head(0))
    with pytest.raises(ValueError, match=r"the level is 1\.5; give a number between 0 and 1"):
        model.estimate_priors(PENGUINS).interval(1.5)
    with pytest.raises(ValueError, match="priors must name every class once"):
        model.with_priors({"Adelie": 1.0})


@pytest.mark.parametrize("n", [1, 50])
def test_shares_of_which_rows_say_nothing_are_unknown(n):
    found = estimate_shares(np.tile([0.2, 0.3, 0.5], (n, 1)), np.array([0.2, 0.3, 0.5]), np.array(["a", "b", "c"]))
    assert_allclose(found.standard_error, 0.5)
    assert np.isfinite(found.covariance).all()
    apart = np.array([[0.4, 0.4, 0.2], [0.1, 0.1, 0.8]] * 50)  # a and b have equal densities
    found = estimate_shares(apart, np.array([0.25, 0.25, 0.5]), np.array(["a", "b", "c"]))
    assert found.standard_error[:2].min() > 0.4
    assert found.standard_error[2] < 0.2
