"""Venn-Abers intervals against two isotonic fits for each row, and their calibration."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from sklearn.isotonic import IsotonicRegression

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.scoring.venn_abers import venn_abers

BIRDS = load_penguins().select("island", "body_mass_g", "sex", "species")


@given(st.integers(0, 10_000), st.integers(20, 60), st.sampled_from([1, 8]))
def test_intervals_are_those_of_two_isotonic_fits(seed, m, decimals):
    rng = np.random.default_rng(seed)
    scores = np.round(rng.random(m), decimals)
    is_class = rng.random(m) < scores
    new = np.concatenate([np.round(rng.random(8), decimals), scores[:3], [-1.0, 2.0]])
    found = venn_abers(scores, is_class, new)
    for label, values in ((0.0, found.low), (1.0, found.high)):
        for score, value in zip(new, values, strict=True):
            fit = IsotonicRegression().fit(np.append(scores, score), np.append(is_class, label))
            assert_allclose(value, fit.predict([score])[0], atol=1e-12)
    assert (found.low <= found.high).all()
    assert ((found.low <= found.probability) & (found.probability <= found.high)).all()


def test_probabilities_of_an_over_confident_model_are_calibrated():
    rng = np.random.default_rng(0)
    logit = rng.normal(size=6000)
    y = rng.random(6000) < 1 / (1 + np.exp(-logit))
    too_sure = 1 / (1 + np.exp(-4 * logit))
    found = venn_abers(too_sure[:3000], y[:3000], too_sure[3000:])
    p, true = found.probability, y[3000:]
    for low, high in ((0.1, 0.3), (0.3, 0.5), (0.5, 0.7), (0.7, 0.9)):
        inside = (p >= low) & (p < high)
        assert abs(p[inside].mean() - true[inside].mean()) < 0.06
    plain = -np.log(np.where(true, too_sure[3000:], 1 - too_sure[3000:])).mean()
    assert -np.log(np.where(true, p, 1 - p)).mean() < plain - 0.2


def test_rows_without_a_score_and_too_few_rows():
    scores, y = np.linspace(0, 1, 30), np.arange(30) > 14
    found = venn_abers(np.append(scores, np.nan), np.append(y, True), np.array([0.5, np.nan]))
    assert found.n_held_out == 30
    assert np.isnan(found.low[1])
    assert np.isnan(found.probability[1])
    with pytest.raises(ValueError, match="the model has 10 held-out rows, and intervals need 20"):
        venn_abers(scores[:10], y[:10], scores)


def test_a_pool_has_the_intervals_of_its_held_out_rows(tmp_path):
    pool = po.GenerativeClassifier(members=["nb", "tan"]).fit(BIRDS, "species")
    po.save(pool, tmp_path / "m.posteriori")
    one, other = (model.probability_interval(BIRDS, "Gentoo") for model in (pool, po.load(tmp_path / "m.posteriori")))
    assert_allclose(one.low, other.low)
    assert_allclose(one.high, other.high)
    assert one.probability[BIRDS["species"].to_numpy() == "Gentoo"].mean() > 0.8
    with pytest.raises(ValueError, match="'Emperor' is not a class"):
        pool.probability_interval(BIRDS, "Emperor")
