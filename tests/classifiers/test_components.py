"""Labels only say which components may have made a row: several components per class, partial labels, wrong labels."""

import warnings

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from scipy.special import logsumexp
from sklearn.base import clone

import posteriori as po
from posteriori.densities.label_model import LabelModel
from posteriori.model_selection import out_of_fold

MODELS = {
    "naive": po.NaiveBayes(random_state=0),
    "lda": po.GaussianDiscriminant(random_state=0),
    "qda": po.GaussianDiscriminant(pooling="per_class", random_state=0),
    "tree": po.TreeAugmentedNaiveBayes(bins=[-2.0, 0.0, 2.0], random_state=0),
    "forest": po.classifiers.ChowLiuClassifier(bins=[-2.0, 0.0, 2.0], random_state=0),
}


def model_of(name, **parameters):
    return clone(MODELS[name]).set_params(**parameters)


def two_humps(seed=0, n=400, cells=0.0, apart=4.0):
    """Return a mixed table of two classes, the first of which lies on both sides of the second."""
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 2, n)
    side = np.where(rng.random(n) < 0.5, -apart, apart)
    X = rng.normal(size=(n, 2)) + np.where(y == 0, side, 0.0)[:, np.newaxis]
    X[rng.random(X.shape) < cells] = np.nan
    kind = np.where(rng.random(n) < 0.7, np.where(y == 0, side > 0, 2), rng.integers(0, 3, n))
    table = pl.DataFrame({"a": X[:, 0], "b": X[:, 1], "kind": [str(k) for k in kind]})
    return table, np.array(["outer", "inner"])[y]


@pytest.mark.parametrize("name", MODELS)
def test_components_see_what_one_cannot(name):
    table, y = two_humps()
    table = table.drop("kind")
    one, several = model_of(name).fit(table, y), model_of(name, em__components_per_class={"outer": 2}).fit(table, y)
    assert several.score(table, y) > 0.97
    if name == "lda":
        assert one.score(table, y) < 0.8
    assert several.component_classes_.tolist() == ["inner", "outer", "outer"]
    assert_allclose(several.predict_proba(table).sum(axis=1), 1.0)
    assert_allclose(several.class_count_, [(y == "inner").sum(), (y == "outer").sum()])
    assert_allclose(several.class_prior_, one.class_prior_)


@pytest.mark.parametrize("name", ["naive", "lda", "qda"])
@pytest.mark.parametrize("cells", [0.0, 0.2])
@pytest.mark.filterwarnings("ignore:EM stopped", "ignore:column '.*does not vary")
@settings(max_examples=4)
@given(seed=st.integers(0, 10**6), noise=st.sampled_from([None, 0.1, "learn"]), hidden=st.sampled_from([0.0, 0.5]))
def test_no_step_lowers_the_likelihood(name, cells, seed, noise, hidden):
    table, y = two_humps(seed, 150, cells)
    y = np.where(np.random.default_rng(seed).random(len(y)) < hidden, None, y)
    model = model_of(
        name,
        em__components_per_class=2,
        labels__label_noise=noise,
        labels__unlabelled="learn",
        em__max_iter=15,
        em__n_init=1,
        em__tol=0.0,
        alpha=0.0,
    )
    if name == "naive":
        model.set_params(distributions=po.Gaussian(0.0))
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the covariance is singular")
        try:
            trace = model.fit(table, y).log_likelihood_trace_
        except UserWarning:  # what makes it regular is not of maximum likelihood
            reject()
    slack = 0.5 if noise == "learn" else 1e-8 * abs(trace[-1])  # what the prior of the confusions may take
    assert np.diff(trace).min() > -slack


def test_several_components_are_a_mixture_of_the_class_rows():
    """Where classes share nothing, and all rows are labelled, each is what a mixture of its rows alone is."""
    table, y = two_humps(1, apart=6.0)
    model = po.GaussianDiscriminant(
        pooling="per_class", em=po.EM(components_per_class={"outer": 2}, n_init=2, tol=1e-10), random_state=0
    ).fit(table, y)
    em = po.EM(tol=1e-10, max_iter=500)
    mixture = po.MixtureModel(2, pseudo_rows=0.0, n_init=2, em=em, random_state=0).fit(table.filter(y == "outer"))
    density = model.predict_joint_log_proba(table)[:, 1] - model.class_log_prior_[1]
    assert_allclose(density, mixture.score_samples(table), atol=1e-5)


def test_a_class_is_the_sum_of_its_components():
    table, y = two_humps()
    model = model_of("naive", em__components_per_class={"outer": 2}).fit(table, y)
    batch = model._source(table).batch(slice(0, table.height))
    z = [0, 1, 1]
    parts = model.model_.log_joint_of_components(batch)
    whole = np.column_stack([logsumexp(parts[:, [k for k in range(3) if z[k] == c]], axis=1) for c in range(2)])
    assert_allclose(model.predict_joint_log_proba(table), whole)
    assert_allclose(model.score_samples(table), logsumexp(parts, axis=1))


@pytest.mark.parametrize("name", MODELS)
def test_explanations_stay_exact_sums(name):
    table, y = two_humps(cells=0.1)
    model = model_of(name, em__components_per_class=2).fit(table, y)
    explained = model.explain(table)
    assert_allclose(explained.log_joint, log_joint_of_class(model, table, explained), atol=1e-9)
    assert sorted(map(len, explained.given)) == [0, 1, 2]
    explained.bayes_table(0)


def log_joint_of_class(model, table, explained):
    """Return log p(x, y), without the density of numbers within bins, which components share."""
    if "b" in model.model_.schema.names and model.model_.schema.columns[0].is_binned:
        with np.errstate(divide="ignore"):
            posterior = np.log(model.predict_proba(table))
        return posterior + explained.log_evidence[:, np.newaxis]
    return model.predict_joint_log_proba(table)


def test_drawn_rows_have_the_shape_of_the_mixture():
    table, y = two_humps()
    model = model_of("qda", em__components_per_class={"outer": 2}).fit(table, y)
    drawn, labels = model.sample(4000, "outer", random_state=0)
    assert set(labels) == {"outer"}
    assert_allclose(np.abs(drawn["a"]).mean(), np.abs(table.filter(y == "outer")["a"]).mean(), atol=0.2)
    assert (drawn["a"] > 0).mean() == pytest.approx((table.filter(y == "outer")["a"] > 0).mean(), abs=0.05)


def test_several_components_may_die_and_are_told_of():
    rng = np.random.default_rng(0)
    X = np.vstack([np.repeat(rng.normal(size=(1, 2)), 40, axis=0), rng.normal(size=(40, 2))])
    y = np.repeat([0, 1], 40)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = po.NaiveBayes(em=po.EM(components_per_class=3), random_state=0).fit(X, y)
    assert np.isfinite(model.predict_proba(X)).all()
    assert any("components with hardly a row" in str(one.message) for one in caught) or model.class_count_.min() > 1


# Partial labels -----------------------------------------------------------------------------------------------


def models_missingness(y, classes, rng, share=0.5):
    """Return which classes rows may be of: their own, and for some another one."""
    mask = y[:, np.newaxis] == classes
    doubtful = rng.random(len(y)) < share
    mask[doubtful, rng.integers(0, len(classes), doubtful.sum())] = True
    return mask


def three_classes(seed=0, n=300):
    rng = np.random.default_rng(seed)
    y = rng.integers(0, 3, n)
    return rng.normal(size=(n, 3)) + 2.0 * np.eye(3)[y], y


@pytest.mark.parametrize("name", MODELS)
def test_a_mask_of_one_class_is_that_label(name):
    X, y = three_classes()
    masked, plain = model_of(name).fit(X, y[:, np.newaxis] == np.arange(3)), model_of(name).fit(X, y)
    assert_array_equal(masked.predict_joint_log_proba(X), plain.predict_joint_log_proba(X))
    assert_array_equal(masked.transduction_, y)


@pytest.mark.parametrize("name", MODELS)
def test_a_mask_of_all_classes_is_no_label(name):
    X, y = three_classes()
    some = np.where(np.random.default_rng(0).random(len(y)) < 0.6, np.nan, y)
    mask = (some[:, np.newaxis] == np.arange(3)) | np.isnan(some)[:, np.newaxis]
    masked = model_of(name, labels__unlabelled_weight=0.5).fit(X, mask)
    plain = model_of(name, labels__unlabelled="learn", labels__unlabelled_weight=0.5).fit(X, some)
    assert_allclose(masked.log_likelihood_trace_, plain.log_likelihood_trace_)
    assert_allclose(masked.predict_proba(X), plain.predict_proba(X))


def test_masks_teach_and_no_row_leaves_its_mask():
    X, y = three_classes(n=600)
    mask = models_missingness(y, np.arange(3), np.random.default_rng(1), share=1.0)
    model = po.GaussianDiscriminant().fit(X, mask)
    sure = mask.sum(axis=1) == 1
    assert mask[np.arange(len(y)), model.transduction_].all()
    assert (model.transduction_ == y)[~sure].mean() > 0.8
    assert model.score(X, y) > po.GaussianDiscriminant().fit(X[sure], y[sure]).score(X, y) - 0.01


def test_masks_by_name_and_their_errors():
    X, y = three_classes()
    names = np.array(["x", "y", "z"])
    mask = models_missingness(y, np.arange(3), np.random.default_rng(1))
    frames = [pd.DataFrame(mask, columns=names), pl.DataFrame(mask, schema=list(names))]
    for frame in frames:
        assert po.NaiveBayes().fit(X, frame).classes_.tolist() == ["x", "y", "z"]
    mask[5] = False
    with pytest.raises(ValueError, match="allows row 5 no class"):
        po.NaiveBayes().fit(X, mask)
    with pytest.raises(ValueError, match="300 rows but the mask y has 299"):
        po.NaiveBayes().fit(X, mask[:-1])
    with pytest.raises(ValueError, match="is a mask"):
        po.KDependenceBayes().fit(X, mask)
    with pytest.raises(ValueError, match="give one or the other"):
        po.NaiveBayes(labels=po.Labels(label_noise=0.1)).fit(X, frames[0])


# Wrong labels -------------------------------------------------------------------------------------------------


def flipped(y, confusion, rng):
    return np.array([rng.choice(len(confusion), p=confusion[label]) for label in y])


CONFUSION = np.array([[0.9, 0.1, 0.0], [0.0, 0.7, 0.3], [0.1, 0.1, 0.8]])


def test_labels_that_are_right_are_labels():
    X, y = three_classes()
    for noise in (0.0, np.eye(3)):
        sure = po.GaussianDiscriminant(labels=po.Labels(label_noise=noise)).fit(X, y)
        assert_allclose(sure.predict_proba(X), po.GaussianDiscriminant().fit(X, y).predict_proba(X))


@pytest.mark.parametrize("model", [po.GaussianDiscriminant(), po.TreeAugmentedNaiveBayes(bins=[-1.0, 1.0])], ids=str)
def test_labels_that_are_right_are_labels_beside_missing_cells(model):
    X, y = three_classes()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    sure = clone(model).set_params(labels=po.Labels(label_noise=np.eye(3))).fit(X, y)
    assert_allclose(sure.predict_proba(X), model.fit(X, y).predict_proba(X))


def test_one_step_is_bayes_rule_for_the_recorded_label():
    X, y = three_classes()
    model = po.NaiveBayes(
        labels=po.Labels(label_noise=CONFUSION),
        em=po.EM(max_iter=300, tol=1e-12),
        alpha=0.0,
        distributions=po.Gaussian(0.0),
    ).fit(X, y)
    joint = model.predict_joint_log_proba(X)
    with np.errstate(divide="ignore"):
        label_likelihood = joint + np.log(CONFUSION[:, y].T)
    responsibilities = np.exp(label_likelihood - logsumexp(label_likelihood, axis=1, keepdims=True))
    assert_allclose(model.log_likelihood_trace_[-1], logsumexp(label_likelihood, axis=1).sum(), atol=1e-5)
    mean = responsibilities.T @ X / responsibilities.sum(axis=0)[:, np.newaxis]
    assert_allclose(model.theta_, mean, atol=1e-4)
    assert_allclose(model.class_prior_, responsibilities.mean(axis=0), atol=1e-4)
    assert_array_equal(model.transduction_, responsibilities.argmax(axis=1))


@pytest.mark.parametrize("noise", [CONFUSION, "learn"])
def test_wrong_labels_do_little_harm_where_they_are_expected(noise):
    X, y = three_classes(n=3000)
    X *= 1.5
    wrong = flipped(y, CONFUSION, np.random.default_rng(0))
    model = po.GaussianDiscriminant(
        pooling="per_class", labels=po.Labels(label_noise=noise), em=po.EM(max_iter=500)
    ).fit(X, wrong)
    assert_allclose(model.label_confusion_, CONFUSION, atol=0.06)
    assert (model.transduction_ == y).mean() > (wrong == y).mean() + 0.1
    assert model.score(X, y) > po.GaussianDiscriminant(pooling="per_class").fit(X, wrong).score(X, y)


def test_noise_by_class_and_its_errors():
    X, y = three_classes()
    y = np.array(["x", "y", "z"])[y]
    noise = {"y": {"y": 0.7, "z": 0.3}}
    model = po.NaiveBayes(labels=po.Labels(label_noise=noise)).fit(X, y)
    assert_allclose(model.label_confusion_, [[1, 0, 0], [0, 0.7, 0.3], [0, 0, 1]])
    for bad, words in (({"q": {"x": 1.0}}, "names 'q'"), ([[1.0]], "shape"), (np.ones((3, 3)), "not a distribution")):
        with pytest.raises(ValueError, match=words):
            po.NaiveBayes(labels=po.Labels(label_noise=bad)).fit(X, y)


def test_what_is_learned_of_labels_has_a_prior():
    label_model = LabelModel.learning((0, 1, 1))
    counts = np.array([[8.0, 1.0, 1.0], [2.0, 4.0, 4.0]])
    confusion = label_model.updated(counts).confusion
    assert_allclose(confusion, [[17 / 20, 3 / 20], [3 / 20, 17 / 20]])


# With the rest of the library ---------------------------------------------------------------------------------


def test_components_are_refused_where_they_cannot_be():
    table, y = two_humps()
    with pytest.raises(ValueError, match="partial_fit sees each once"):
        po.NaiveBayes(em=po.EM(components_per_class=2)).partial_fit(table, y)
    with pytest.raises(ValueError, match=r"ledoit_wolf.*needs known labels"):
        po.GaussianDiscriminant(em=po.EM(components_per_class=2), shrinkage="ledoit_wolf").fit(table, y)
    with pytest.raises(ValueError, match="is not a class"):
        po.NaiveBayes(em=po.EM(components_per_class={"middle": 2})).fit(table, y)
    with pytest.raises(ValueError, match="at least 1"):
        po.NaiveBayes(em=po.EM(components_per_class=0)).fit(table, y)
    with pytest.raises(ValueError, match="fewer than its 300 components"):
        po.NaiveBayes(em=po.EM(components_per_class=300)).fit(table, y)
    model = po.GaussianDiscriminant(em=po.EM(components_per_class=2), random_state=0).fit(table, y)
    with pytest.raises(AttributeError, match="no linear form"):
        _ = model.coef_
    with pytest.raises(ValueError, match="not linear"):
        po.explain.linear_form(model)
    with pytest.raises(ValueError, match="is no network"):
        po.NaiveBayes(em=po.EM(components_per_class=2)).fit(table.select("kind"), y).to_network()


@pytest.mark.parametrize("name", ["naive", "lda", "forest"])
def test_components_are_kept_in_files_and_judged_out_of_fold(name, tmp_path):
    table, y = two_humps()
    model = model_of(name, em__components_per_class={"outer": 2}, labels__label_noise=0.05)
    result = out_of_fold(model, table, y)
    assert (result.posterior.argmax(axis=1) == result.y_true).mean() > 0.95
    po.save(model, tmp_path / "m.posteriori")
    again = po.load(tmp_path / "m.posteriori")
    assert_array_equal(again.predict_proba(table), model.predict_proba(table))
    assert_array_equal(again.label_confusion_, model.label_confusion_)
    assert again.component_classes_.tolist() == ["inner", "outer", "outer"]


def test_directions_and_distances_are_those_of_components():
    table, y = two_humps()
    model = po.GaussianDiscriminant(em=po.EM(components_per_class={"outer": 2}), random_state=0).fit(table, y)
    numbers = table.select("a", "b").to_numpy()
    assert model.means_.shape == (3, 2)
    assert model.transform(table).shape == (len(y), 2)
    apart = numbers[:, np.newaxis] - model.means_
    each = np.sqrt(np.einsum("nzi,ij,nzj->nz", apart, np.linalg.inv(model.covariance_), apart))
    assert_allclose(model.mahalanobis(table), np.column_stack([each[:, 0], each[:, 1:].min(axis=1)]))


def test_label_noise_of_one_class_is_nothing():
    X = np.random.default_rng(0).normal(size=(30, 2))
    X[::4, 0] = np.nan
    noisy = po.GaussianDiscriminant(labels=po.Labels(label_noise="learn"))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of one class
        assert_allclose(noisy.fit(X, ["only"] * 30).predict_proba(X), 1.0)


def test_em_contradicts_few_labels_where_it_is_over_confident():
    """Ten copies of a column that has two groups, but not those of y: naive Bayes is sure of the groups."""
    rng = np.random.default_rng(0)
    y, group = np.arange(1000) % 2, rng.integers(0, 2, 1000)
    own, other = rng.normal(size=1000) + 1.5 * y, rng.normal(size=1000) + 2.0 * group
    X = np.c_[own, np.repeat(other[:, np.newaxis], 10, axis=1)]
    recorded = np.where(rng.random(1000) < 0.05, 1 - y, y)
    noisy = po.NaiveBayes(labels=po.Labels(label_noise=0.05))
    stated = "label_noise states 5.0% wrong labels, and EM would contradict [34][0-9]"
    with pytest.warns(UserWarning, match=stated) as caught:
        held = clone(noisy).fit(X, recorded)
    assert [one.filename for one in caught] == [__file__]
    assert (held.transduction_ != recorded).mean() <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)
    assert held.score(X, y) >= po.NaiveBayes().fit(X, recorded).score(X, y) - 0.01
    with pytest.warns(UserWarning, match='label_noise="learn" contradicts 4'):
        clone(noisy).set_params(labels__label_noise="learn").fit(X, recorded)
    clone(noisy).fit(X[:, :2], recorded)  # without copies: no warning
