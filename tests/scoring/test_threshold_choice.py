"""Thresholds for a wanted precision, recall or capacity against a search over all of them."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.scoring.threshold_choice import Aim, choose_threshold

BIRDS = load_penguins().select("island", "body_mass_g", "sex", "species")


def figures(p, y, threshold):
    taken = p >= threshold
    return y[taken].mean() if taken.any() else 1.0, y[taken].sum() / y.sum(), taken.mean()


@given(
    st.integers(0, 10_000), st.sampled_from(["precision", "recall", "capacity"]), st.sampled_from([0.1, 0.3, 0.5, 0.9])
)
def test_a_threshold_finds_the_most_rows_that_reach_the_aim(seed, name, wanted):
    rng = np.random.default_rng(seed)
    p = np.round(rng.random(40), 1)  # with ties
    y = (rng.random(40) < p).astype(float)
    y[0] = 1.0
    each = {t: dict(zip(("precision", "recall", "capacity"), figures(p, y, t), strict=True)) for t in np.unique(p)}
    met = [
        t for t in each if (each[t][name] <= wanted + 1e-12 if name == "capacity" else each[t][name] >= wanted - 1e-12)
    ]
    found = Aim(**{name: wanted}).least(p, y)
    if not met:
        assert found is None
    elif name == "recall":  # the fewest rows
        assert found == max(met)
    else:  # the most rows
        assert found == min(met)


def test_the_figures_are_of_held_out_rows_with_their_spread():
    pool = po.GenerativeClassifier(members=["nb", "tan"]).fit(BIRDS, "species")
    choice = pool.choose_threshold("Chinstrap", precision=0.7)
    held_out = pool.out_of_fold_
    p, y = held_out.posterior[:, 1], (held_out.y_true == 1).astype(float)
    assert_allclose([choice.precision, choice.recall, choice.share], figures(p, y, choice.threshold), atol=0.02)
    assert choice.precision >= 0.7
    for name in ("precision", "recall", "share"):
        low, high = choice.intervals[name]
        assert low <= getattr(choice, name) <= high
        assert low < high
    assert choice.thresholds == {"Chinstrap": choice.threshold}
    assert str(choice).startswith("Decide for 'Chinstrap' from a probability of ")


def test_what_cannot_be_chosen_is_said():
    pool = po.GenerativeClassifier(members=["nb"]).fit(BIRDS, "species")
    with pytest.raises(ValueError, match="give one of precision, recall and capacity"):
        pool.choose_threshold("Adelie")
    with pytest.raises(ValueError, match="give one of precision, recall and capacity"):
        pool.choose_threshold("Adelie", recall=0.5, precision=0.5)
    with pytest.raises(ValueError, match="recall is 90; give a share above 0, and 1 at most"):
        pool.choose_threshold("Adelie", recall=90)
    with pytest.raises(ValueError, match="'Adele' is not a class; did you mean 'Adelie'"):
        pool.choose_threshold("Adele", recall=0.5)
    with pytest.raises(ValueError, match="no held-out row is 'a'"):
        choose_threshold(np.array([0.5]), np.array([False]), "a", Aim(recall=0.5))
    p, y = np.array([0.9, 0.8, 0.7]), np.array([False, True, False])
    with pytest.raises(ValueError, match=r"no threshold has a precision of 0\.9 on held-out rows; the most is 0\.500"):
        choose_threshold(p, y, "a", Aim(precision=0.9))
    with pytest.raises(ValueError, match="the highest probability is that of 100"):
        choose_threshold(np.full(3, 0.5), y, "a", Aim(capacity=0.1))


@pytest.mark.parametrize("aim", [{"recall": 1.0}, {"precision": 0.9}, {"capacity": 0.1}])
def test_the_interval_follows_the_rule_of_its_threshold(aim):
    p = np.linspace(0.0, 1.0, 12)
    y = p > 0.5
    found = choose_threshold(np.repeat(p, 30), np.repeat(y, 30), "a", Aim(**aim))
    low, high = found.intervals["threshold"]
    assert low <= found.threshold <= high


@pytest.mark.parametrize("near", [0.99999, 1.0 - 1e-9, 1e-9, 0.123456])
def test_a_written_threshold_is_on_the_same_side_of_0_and_1(near):
    p = np.array([near] * 5 + [0.0] * 5)
    found = choose_threshold(p, p > 0, "a", Aim(recall=1.0))
    found = replace(found, threshold=near)
    assert 0.0 < float(found.written) < 1.0
    assert float(found.written) == pytest.approx(near, rel=1e-3)
    assert f"from a probability of {found.written} (" in str(found)
