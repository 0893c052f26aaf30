"""forget: the sums of earlier rows lose weight, and the model is that of one weighted fit."""

import numpy as np
import pandas as pd
import pytest

import posteriori as po

KEEP = 0.7
MODELS = {
    "nb": po.NaiveBayes(),
    "tan": po.TreeAugmentedNaiveBayes(),
    "lda": po.GaussianDiscriminant(pooling="pooled"),
    "qda": po.GaussianDiscriminant(pooling="per_class"),
    "poisson": po.NaiveBayes(distributions={"count": po.Poisson()}),
    "words": po.NaiveBayes(distributions={"text": po.Multinomial()}),
}


def batch(seed, name):
    rng = np.random.default_rng(seed)
    n = 40
    y = np.arange(n) % 2
    X = pd.DataFrame({"far": 30.0 + rng.normal(size=n) + y, "size": rng.normal(size=n) * (1 + y)})
    if name == "tan":  # numbers would keep the cut points of the first batch
        X = pd.DataFrame({"mark": np.concatenate([["s", "t"], rng.choice(["s", "t"], n - 2)])})
    if name in ("nb", "tan"):
        X["plan"] = np.concatenate([["u", "v", "w"], rng.choice(list("uvw"), n - 3)])
    if name == "nb":
        X.loc[::7, "size"] = np.nan
    if name == "poisson":
        X["count"] = rng.poisson(2.0 + y)
    if name == "words":
        X["text"] = [" ".join(rng.choice(["one", "two", "three", "four", "five", "six", "seven"], 6)) for _ in range(n)]
    return X, y


@pytest.mark.parametrize("name", MODELS)
def test_forgetting_before_each_batch_weights_rows_by_age(name):
    batches = [batch(seed, name) for seed in range(4)]
    model = MODELS[name].fit(*batches[0])
    for X, y in batches[1:]:
        model.forget(KEEP).partial_fit(X, y)
    rows = pd.concat([X for X, _ in batches], ignore_index=True)
    labels = np.concatenate([y for _, y in batches])
    age = np.repeat(np.arange(3, -1, -1), 40)
    whole = type(model)(**MODELS[name].get_params(deep=False)).fit(rows, labels, sample_weight=KEEP**age)
    np.testing.assert_allclose(model.class_count_, whole.class_count_, rtol=1e-12)
    a, b = model.predict_joint_log_proba(rows), whole.predict_joint_log_proba(rows)
    np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


def test_to_forget_nothing_changes_nothing():
    X, y = batch(0, "nb")
    model = po.NaiveBayes().fit(X, y)
    before = model.predict_joint_log_proba(X)
    np.testing.assert_array_equal(model.forget(1.0).predict_joint_log_proba(X), before)


@pytest.mark.parametrize("keep", [0.0, -1.0, 1.5, float("nan")])
def test_a_factor_out_of_range_is_refused(keep):
    model = po.NaiveBayes().fit(*batch(0, "nb"))
    with pytest.raises(ValueError, match="give a factor above 0 and at most 1"):
        model.forget(keep)


def test_models_that_are_no_sums_are_refused():
    X, y = batch(0, "qda")
    model = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(X, np.where(np.arange(40) < 30, y, None))
    with pytest.raises(ValueError, match="fit all rows with sample_weight"):
        model.forget(0.5)
