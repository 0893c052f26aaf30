"""Models fitted apart and merged: one fit of all rows, whatever the shards; and what cannot be merged says why."""

import functools
import operator
import re

import numpy as np
import polars as pl
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.exceptions import NotFittedError

import posteriori as po
from posteriori.cli import main
from posteriori.densities import Binned
from posteriori.networks import BayesianNetwork

CUTS = (-1.0, 0.25)
ESTIMATORS = {
    "naive Bayes": po.NaiveBayes(),
    "maximum likelihood": po.NaiveBayes(missing="informative", distributions=po.Gaussian(0.0, ddof=1), priors=1.0),
    "poisson and bins": po.NaiveBayes(distributions={"n": "poisson", "x": Binned(CUTS), "w": "categorical"}),
    "lda": po.GaussianDiscriminant(),
    "rda": po.GaussianDiscriminant(pooling=0.5, shrinkage="oas", missing="informative"),
    "qda": po.GaussianDiscriminant(pooling="per_class", shrinkage=0.1),
    "tan": po.TreeAugmentedNaiveBayes(bins=CUTS),
    "tan of numbers": po.TreeAugmentedNaiveBayes(bins=None, penalty="aic"),
    "chow-liu": po.classifiers.ChowLiuClassifier(bins=CUTS, missing="informative"),
    "aode": po.AveragedOneDependence(bins=CUTS),
    "full joint": po.classifiers.FullJointClassifier(bins=(0.0,)),
    "kdb of no parents": po.KDependenceBayes(k=0, bins=CUTS),
    "chow-liu tree": po.ChowLiuTree(bins=CUTS),
}
COMPLETE = ("lda", "rda", "qda")  # whose missing numbers take EM


def mixed_table(seed, n, missing=0.2, offset=0.0):
    """Return a table with all kinds of columns, and weights whose sums are exact."""
    rng = np.random.default_rng(seed)
    label = rng.choice(["low", "mid", "top"], n, p=[0.5, 0.4, 0.1])
    x = rng.normal(size=n) + (label == "low") + offset
    columns = {
        "sky": rng.choice(["clear", "clouds", "haze", "snow"], n, p=[0.4, 0.3, 0.2, 0.1]).astype(object),
        "x": x,
        "z": 0.3 * x + rng.normal(size=n),
        "n": rng.poisson(2.0, n).astype(float),
        "w": rng.integers(0, 3, n).astype(float),
        "wet": rng.choice([True, False], n).astype(object),
    }
    for name, cells in columns.items():
        gaps = rng.random(n) < missing
        columns[name] = [None if gap else cell for gap, cell in zip(gaps, cells.tolist(), strict=True)]
    kinds = {"sky": pl.String, "wet": pl.Boolean}
    frame = pl.DataFrame(columns, schema={name: kinds.get(name, pl.Float64) for name in columns})
    return frame.with_columns(label=pl.Series(label)), rng.integers(0, 9, n) / 4.0


def fitted(estimator, frame, weight):
    if isinstance(estimator, po.ChowLiuTree):
        return clone(estimator).fit(frame.drop("label"), sample_weight=weight)
    return clone(estimator).fit(frame, "label", weight)


def log_joint(model, frame):
    rows = frame.drop("label")
    score = model.score_samples if isinstance(model, po.ChowLiuTree) else model.predict_joint_log_proba
    return score(rows)


def shards(draw, frame, weight, most=4):
    """Return the places of the rows of each shard, all of which have some weight."""
    k = draw(st.integers(1, most))
    shard = np.random.default_rng(draw(st.integers(0, 1000))).integers(0, k, frame.height)
    parts = [np.flatnonzero(shard == one) for one in range(k)]
    return [part for part in parts if weight[part].sum() > 0] or [np.arange(frame.height)]


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("name", ESTIMATORS)
@settings(max_examples=8)
@given(st.data())
def test_models_of_shards_add_up_to_the_model_of_all_rows(name, data):
    estimator = ESTIMATORS[name]
    least = 200 if name == "tan of numbers" else 12  # with few rows trees are equally good, and rounding chooses
    n = data.draw(st.integers(least, least + 50))
    frame, weight = mixed_table(data.draw(st.integers(0, 10_000)), n, 0.0 if name in COMPLETE else 0.2)
    parts = shards(data.draw, frame, weight)
    used = np.concatenate(parts)
    if name == "full joint":  # which refuses a part with an empty column
        assume(all(min(frame[part].count().row(0)) > 0 for part in parts))
    models = [fitted(estimator, frame[part], weight[part]) for part in parts]
    merged, whole = po.merge(models), fitted(estimator, frame[used], weight[used])
    assert merged.schema_.columns == whole.schema_.columns if name != "chow-liu tree" else True
    expected = log_joint(whole, frame)
    assert_allclose(log_joint(merged, frame), expected, rtol=1e-9, atol=1e-9)
    assert_allclose(log_joint(po.merge(models[::-1]), frame), log_joint(merged, frame), rtol=1e-12, atol=1e-12)
    if name != "chow-liu tree":
        assert_array_equal(merged.class_count_, whole.class_count_)
        assert_array_equal(merged.classes_, whole.classes_)


@pytest.mark.parametrize("name", ESTIMATORS)
def test_it_goes_on_after_merging_loading_and_saving(name, tmp_path):
    frame, weight = mixed_table(5, 400, 0.0 if name in COMPLETE else 0.1, offset=0.0)
    parts = np.array_split(np.arange(400), 4)
    models = []
    for position, part in enumerate(parts[:3]):
        po.save(fitted(ESTIMATORS[name], frame[part], weight[part]), tmp_path / f"{position}.posteriori")
        models.append(po.load(tmp_path / f"{position}.posteriori"))
    before = [log_joint(model, frame) for model in models]
    merged = po.merge(models)
    po.save(merged, tmp_path / "all.posteriori")
    merged = po.load(tmp_path / "all.posteriori")
    last = frame[parts[3]], weight[parts[3]]
    if name == "chow-liu tree":
        merged.partial_fit(last[0].drop("label"), sample_weight=last[1])
    else:
        merged.partial_fit(last[0], "label", sample_weight=last[1])
    assert_allclose(log_joint(merged, frame), log_joint(fitted(ESTIMATORS[name], frame, weight), frame), rtol=1e-9)
    for model, scores in zip(models, before, strict=True):
        assert_array_equal(log_joint(model, frame), scores)  # the shards stay as they are


def test_an_offset_costs_nothing():
    frame, weight = mixed_table(7, 500, 0.0)
    for estimator in (po.NaiveBayes(), po.GaussianDiscriminant(), ESTIMATORS["tan of numbers"]):
        models = [fitted(estimator, part, None) for part in (frame[:200], frame[200:320], frame[320:])]
        far = [
            fitted(estimator, part.with_columns(pl.col("x", "z") + 2.0**30), None)
            for part in (frame[:200], frame[200:320], frame[320:])
        ]
        there = frame.with_columns(pl.col("x", "z") + 2.0**30)
        assert_allclose(log_joint(po.merge(far), there), log_joint(po.merge(models), frame), rtol=1e-5)
        assert_allclose(log_joint(po.merge(far), there), log_joint(fitted(estimator, there, None), there), rtol=1e-9)
    del weight


def test_parents_in_common_stay_and_others_are_refused():
    rng = np.random.default_rng(0)
    a = rng.choice(["p", "q"], 300)
    b = np.where(rng.random(300) < 0.9, a, "p")
    c = np.where(rng.random(300) < 0.8, b, "q")
    table, label = np.column_stack([a, b, c]).astype(object), np.where(rng.random(300) < 0.8, a, "p")
    for k in (1, 2):
        model = po.KDependenceBayes(k=k)
        shares = [clone(model).fit(table[rows], label[rows]) for rows in (slice(0, 150), slice(150, 300))]
        whole = clone(model).fit(table, label)
        assert len({one.model_.blocks for one in [*shares, whole]}) == 1
        assert_allclose(po.merge(shares).predict_proba(table), whole.predict_proba(table), rtol=1e-12)
    other = clone(model).fit(table[:, [1, 2, 0]], label)
    with pytest.raises(ValueError, match=r"other parents in model 1 than in model 0.*fit all rows together"):
        po.merge([whole, other])


def test_classes_declared_to_partial_fit_stay_declared():
    closed = [po.NaiveBayes().partial_fit([[k]], ["a"], classes=["a", "b"]) for k in ("u", "v")]
    with pytest.raises(ValueError, match="not among the classes"):
        po.merge(closed).partial_fit([["u"]], ["c"])
    opened = po.merge([*closed, po.NaiveBayes().fit([["u"]], ["c"])])
    assert opened.partial_fit([["u"]], ["d"]).classes_.tolist() == ["a", "b", "c", "d"]


def test_parameters_that_say_the_same_are_the_same():
    one = po.NaiveBayes(priors=[0.5, 0.5], n_jobs=1).fit([[1.0], [2.0]], [0, 1])
    other = po.NaiveBayes(priors=np.array([0.5, 0.5]), n_jobs=2, random_state=3).fit([[4.0], [2.0]], [0, 1])
    assert po.merge([one, other]).class_count_.tolist() == [2.0, 2.0]
    assert po.merge(iter([one])).class_count_.tolist() == [1.0, 1.0]


def test_it_warns_as_a_fit_would():
    constant = [po.NaiveBayes().fit([[1.0], [2.0]], ["a", "b"]) for _ in range(2)]
    for model in constant:
        model.set_params(distributions=po.Gaussian(0.0))
    with pytest.warns(UserWarning, match="does not vary within class 'a'") as caught:
        po.merge(constant)
    assert caught[0].filename == __file__
    with pytest.warns(UserWarning, match="no cell with a value"):
        empty = [po.NaiveBayes().fit([[1.0, np.nan], [2.0, np.nan]], ["a", "b"]) for _ in range(2)]
    with pytest.warns(UserWarning, match="'x1' has no cell with a value"):
        po.merge(empty)


def _named(names, cells=((1.0, 2.0), (2.0, 4.0)), kind=po.NaiveBayes, **parameters):
    return kind(**parameters).fit(pl.DataFrame(list(cells), schema=list(names), orient="row"), ["a", "b"])


def refusals():
    plain = po.NaiveBayes().fit([[1.0], [2.0], [4.0]], ["a", "b", "b"])
    yield "nothing", [], ValueError, "nothing to merge"
    yield "one", plain, TypeError, "takes a list"
    yield "unfitted", [plain, po.NaiveBayes()], NotFittedError, "not fitted"
    yield "classes", [plain, po.GaussianDiscriminant().fit([[1.0], [2.0]], ["a", "b"])], TypeError, "of one class"
    other = po.NaiveBayes(alpha=2.0).fit([[1.0], [2.0]], ["a", "b"])
    yield "parameters", [plain, other], ValueError, r"alpha is 2\.0 in model 1 and 1\.0 in model 0"
    known = po.NaiveBayes.from_parameters(priors=[0.5, 0.5], gaussian={"x": {"mean": [0, 1], "sd": [1, 1]}})
    yield "known", [known], ValueError, "built from parameters"
    yield "names", [_named("pq"), _named("pr")], ValueError, "model 1 lacks column 'q', which model 0 has"
    yield "more", [_named("pq"), _named("pqr", [(1, 2, 3), (4, 5, 7)])], ValueError, "model 1 has column 'r'"
    yield "order", [_named("pq"), _named("qp")], ValueError, "in another order"
    yield "namelessness", [_named(["x0"], [(1.0,), (2.0,)]), plain], ValueError, "has named columns"
    words = _named("pq", [(1.0, "u"), (2.0, "v")])
    yield "kinds", [_named("pq"), words], ValueError, "'q' is categorical in model 1 and continuous in model 0"
    numbers = [
        po.NaiveBayes(columns=po.Columns(categorical_features=[0])).fit([[c], [d]], [0, 1])
        for c, d in [(1, 2), ("u", "v")]
    ]
    numbers[0].set_params(columns__categorical_features="from_dtype")
    numbers[1].set_params(columns__categorical_features="from_dtype")
    yield "cells", numbers, ValueError, "column 'x0' holds strings in model 1 and numbers in model 0"
    yield "labels", [plain, po.NaiveBayes().fit([[1.0], [2.0]], [0, 1])], ValueError, "the target holds numbers"
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(60, 2)), rng.integers(0, 2, 60)
    for name, kind in (
        ("cuts", po.NaiveBayes(distributions="binned", bins=4)),
        ("tan", po.classifiers.ChowLiuClassifier(bins=3)),
    ):
        parts = [clone(kind).fit(x[rows], y[rows]) for rows in (slice(0, 30), slice(30, 60))]
        yield name, parts, ValueError, r"column 'x0' is cut into bins at other points in model 1.*bins=\["
    yield (
        "mixture",
        [po.MixtureModel(2, em=po.EM(tol=10.0), n_init=1, random_state=0).fit(x)],
        TypeError,
        "learned by EM",
    )
    network = BayesianNetwork([("a", "b")])
    yield "network", [network], TypeError, "keeps probabilities"
    yield "stranger", [object()], TypeError, "give classifiers of posteriori"
    conditional = po.NaiveBayes(feature_weights="conditional").fit(x, y)
    yield "weights", [conditional], ValueError, 'feature_weights="conditional" takes all rows at once'
    shrunk = po.GaussianDiscriminant(shrinkage="ledoit_wolf").fit(x, y)
    yield "second look", [shrunk], ValueError, 'shrinkage="ledoit_wolf" looks at all rows twice'
    hidden = po.NaiveBayes(labels=po.Labels(unlabelled="learn")).fit(x, [None, *y.astype(object)[1:]])
    yield "hidden", [hidden], ValueError, "this model was learned from rows without label by EM"
    mixtures = po.NaiveBayes(em=po.EM(components_per_class=2, tol=10.0, n_init=1), random_state=0).fit(x, y)
    yield "components", [mixtures], ValueError, "components_per_class and label_noise take EM"
    noisy = po.NaiveBayes(labels=po.Labels(label_noise=0.1)).fit(x, y)
    yield "noise", [noisy], ValueError, "components_per_class and label_noise take EM"
    gappy = x.copy()
    gappy[3, 0] = np.nan
    yield "cells by EM", [po.GaussianDiscriminant().fit(gappy, y)], ValueError, "missing cells of columns 'x0', 'x1'"
    tree = po.TreeAugmentedNaiveBayes(missing="em", bins=(0.0,)).fit(gappy, y)
    yield "tree by EM", [tree], ValueError, 'missing="em" looks at all rows twice'


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_what_cannot_be_merged_says_why():
    for name, models, error, message in refusals():
        with pytest.raises(error) as caught:
            po.merge(models)
        assert re.search(message, str(caught.value)), (name, str(caught.value))


def test_the_command(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    frame, _ = mixed_table(11, 300)
    frame = frame.with_columns(pl.col("label").replace({"mid": "low"}))
    for name, rows in {"north": frame[:120], "south": frame[120:], "all": frame}.items():
        rows.write_csv(f"{name}.csv")
        assert main(["fit", f"{name}.csv", "--target", "label", "--model", "nb"]) == 0
    capsys.readouterr()
    models = ["north.posteriori", "south.posteriori"]
    assert main(["merge", *models, "--out", "both.posteriori"]) == 0
    assert "together: 300 rows" in capsys.readouterr().out
    one, other = po.load("both.posteriori"), po.load("all.posteriori")
    assert_allclose(log_joint(one, frame), log_joint(other, frame), rtol=1e-9)
    assert main(["merge", *models, "--out", "north.posteriori"]) == 2
    assert "overwrite" in capsys.readouterr().err
    assert main(["merge", *models, "gone.posteriori", "--out", "both.posteriori"]) == 2
    frame.drop("sky").write_csv("less.csv")
    assert main(["fit", "less.csv", "--target", "label", "--model", "nb"]) == 0
    capsys.readouterr()
    assert main(["merge", *models, "less.posteriori", "--out", "both.posteriori", "--force"]) == 2
    assert "'less.posteriori' lacks column 'sky', which 'north.posteriori' has" in capsys.readouterr().err


def test_the_order_of_many_models_makes_no_difference():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(400, 3)) * [1.0, 1e-6, 1e6] + [1e9, 0.0, -1e8], rng.integers(0, 3, 400)
    models = [po.GaussianDiscriminant(pooling="per_class").fit(x[i::8], y[i::8]) for i in range(8)]
    one, other = po.merge(models), po.merge(models[::-1])
    assert_allclose(one.means_, other.means_, rtol=1e-12)
    scale = np.sqrt(np.diagonal(one.covariance_, axis1=1, axis2=2))
    apart = np.abs(one.covariance_ - other.covariance_) / (scale[:, :, None] * scale[:, None, :])
    assert apart.max() < 1e-12
    summed = functools.reduce(operator.add, (model.statistics_ for model in models))
    assert_array_equal(summed.weight, one.statistics_.weight)


def test_a_number_in_an_array_is_a_parameter_like_any_other():
    X, y = np.array(list("abab" * 10)).reshape(-1, 2), np.arange(20) % 2
    models = [
        po.KDependenceBayes(bins=np.array(k)).fit(X, y) for k in (2, 3)
    ]  # for columns of numbers, if there were any
    assert po.merge([models[0], models[0]]).class_count_.sum() == 40
    with pytest.raises(ValueError, match="bins"):
        po.merge(models)
