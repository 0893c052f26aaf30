"""Numbers predicted for rows out of range or of an unseen category: mixtures of the product and mean of members."""

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import rel_entr

import posteriori as po
from posteriori.model import Pool, clip_log_posteriors

pytestmark = pytest.mark.filterwarnings("ignore:categories unseen in training:UserWarning")


@pytest.fixture(scope="module")
def fitted():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(250, 3))
    kind = rng.integers(3, size=250)
    y = 2.0 * x[:, 0] + np.abs(x[:, 1]) + kind + rng.normal(0.0, 0.3, 250)
    frame = pl.DataFrame(x, schema=["a", "b", "c"]).with_columns(kind=pl.Series(np.array(["u", "v", "w"])[kind]))
    return po.GenerativeRegressor().fit(frame, y)


FAR = pl.DataFrame(
    {
        "a": [0.0, 5.0, -7.0, 0.1, None, 0.0, 5.0, 0.3],
        "b": [0.0, 0.0, 0.0, 1.0, 9.0, 0.0, 0.0, 0.1],
        "c": [0.0, 0.0, 0.0, None, 0.0, 0.0, None, 0.2],
        "kind": ["u", "v", "w", "u", None, "x", "y", None],
    }
)
IS_FAR = np.array([False, True, True, False, True, True, True, False])


def test_rows_outside_are_mixtures_and_others_the_product(fitted):
    value = fitted.fitted_
    (batch,) = value.rows.source(FAR).stream(lambda batch: batch)
    logs = clip_log_posteriors(value.members.log_probability(batch, 1))
    parts = value.pool.parts(batch)
    assert (parts[:, 3] == IS_FAR).all()
    product = np.exp(Pool(value.pool.weight, value.pool.bias, value.pool.partial).log_posterior(logs, parts))
    weights = np.stack(value.pool.weights(parts), axis=1)
    mean = np.exp(logs) @ (weights / weights.sum(axis=1, keepdims=True))[:, :, np.newaxis]
    mean = mean[:, :, 0]
    nats = rel_entr(mean, product).sum(axis=1)
    share = (0.5 + 0.5 * nats**4 / (nats**4 + 81.0))[:, np.newaxis]
    found = fitted.predict_density(FAR).probability
    assert_array_equal(found[~IS_FAR], product[~IS_FAR])
    assert_allclose(found[IS_FAR], ((1 - share) * product + share * mean)[IS_FAR], rtol=1e-9, atol=1e-12)


def test_a_trend_goes_on_and_the_interval_is_wider(fitted):
    near, far = (pl.DataFrame({"a": [a], "b": [0.0], "c": [0.0], "kind": ["u"]}) for a in (2.0, 3.6))
    assert fitted.predict(far)[0] > fitted.predict(near)[0]
    widths = [np.diff(fitted.predict_interval(frame)).item() for frame in (near, far)]
    assert widths[1] > widths[0]


def test_explanations_of_rows_outside_add_up(fitted):
    explanation = fitted.explain(FAR)
    assert_allclose(explanation.base + explanation.parts.sum(axis=1), fitted.predict(FAR), rtol=1e-9, atol=1e-9)
