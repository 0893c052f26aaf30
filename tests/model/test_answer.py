"""Answers: probabilities of categories, ordered levels and numbers, of models of any subject."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.model.answer import Answer, Categories
from posteriori.model.number_cells import NumberCells
from posteriori.registry import Subject

LEVELS = ("low", "medium", "high", "extreme")


@st.composite
def answers(draw):
    k = draw(st.integers(2, 4))
    weights = draw(st.lists(st.lists(st.integers(0, 9), min_size=k, max_size=k).filter(any), min_size=1, max_size=4))
    p = np.array(weights, float)
    return Answer("risk", Categories(LEVELS[:k], is_ordered=True), p / p.sum(axis=1, keepdims=True))


@given(answers(), st.data())
def test_scores_of_levels_are_those_of_the_definition(answer, data):
    k = len(answer.meaning)
    truth = data.draw(st.lists(st.integers(0, k - 1), min_size=len(answer), max_size=len(answer)))
    labels = [LEVELS[code] for code in truth]
    reached = answer.probability.cumsum(axis=1)[:, : k - 1]
    happened = np.array(truth)[:, np.newaxis] <= np.arange(k - 1)
    assert_allclose(answer.ranked_score(labels), ((reached - happened) ** 2).sum(axis=1), atol=1e-12)
    own = answer.probability[np.arange(len(answer)), truth]
    with np.errstate(divide="ignore"):
        assert_allclose(answer.log_prob(labels), np.log(own))
    squares = (answer.probability**2).sum(axis=1) - 2 * own + 1
    assert_allclose(answer.brier_score(labels), squares, atol=1e-12)
    assert_array_equal(answer.codes(labels), truth)


@given(answers(), st.sampled_from([0.0, 0.1, 0.25, 0.5, 0.9, 1.0]))
def test_a_quantile_is_the_lowest_level_that_reaches_it(answer, q):
    for row, level in zip(answer.probability, answer.quantile(q).tolist(), strict=True):
        reached = row.cumsum()
        expected = int(np.argmax((reached >= q - 1e-12) & (reached > 0)))
        assert level == LEVELS[expected]


def test_two_levels_have_the_brier_score_of_one_of_them():
    answer = Answer("risk", Categories(("no", "yes"), is_ordered=True), np.array([[0.3, 0.7]]))
    assert_allclose(answer.ranked_score(["yes"]), 0.3**2)
    assert_allclose(answer.brier_score(["yes"]), 2 * 0.3**2)


def test_what_has_no_order_has_no_median():
    answer = Answer("colour", Categories(("red", "blue")), np.array([[0.4, 0.6], [np.nan, np.nan]]))
    assert answer.mode.tolist() == ["blue", None]
    for call in (lambda: answer.median, lambda: answer.interval(), lambda: answer.ranked_score(["red", "blue"])):
        with pytest.raises(ValueError, match="'red', 'blue' have no order"):
            call()
    assert answer.log_prob(["green", "red"])[0] == -np.inf
    assert len(answer[:1]) == 1


def test_an_answer_about_numbers_is_its_density():
    cells = NumberCells(np.array([0.0, 0.0]), np.array([0.0, 2.0]))
    answer = Answer("rain", cells, np.array([[0.25, 0.75]]))
    assert answer.is_number
    assert_array_equal(answer.interval(0.5), answer.density.interval(0.5))
    assert_array_equal(answer.ranked_score(1.0), answer.density.crps(1.0))
    assert_array_equal(answer.codes([0.0]), [0])
    with pytest.raises(ValueError, match="'rain' holds numbers"):
        answer.labels


PENGUINS = load_penguins()
WEIGHED = PENGUINS.drop_nulls("body_mass_g")


@pytest.mark.parametrize(
    ("model", "column"),
    [
        (po.NaiveBayes(), "species"),
        (po.GaussianDiscriminant(), "species"),
        (po.TreeAugmentedNaiveBayes(), "species"),
        (po.KDependenceBayes(), "species"),
        (po.AveragedOneDependence(), "species"),
        (po.GenerativeForest(), "species"),
        (po.GenerativeClassifier(), "species"),
        (po.AdditiveRegressor(), "body_mass_g"),
        (po.KernelRegressor(), "body_mass_g"),
        (po.GenerativeRegressor(members=["additive"]), "body_mass_g"),
    ],
    ids=lambda one: type(one).__name__,
)
def test_every_model_answers_as_it_predicts(model, column):
    model.fit(WEIGHED, column)
    answer = model.answer(WEIGHED)
    assert answer.column == column
    assert len(answer) == len(WEIGHED)
    assert_allclose(answer.probability.sum(axis=1), 1.0)
    if model.subject is Subject.NUMBER:
        assert_array_equal(answer.density.mean, model.predict(WEIGHED))
    else:
        assert_array_equal(answer.probability, model.predict_proba(WEIGHED))
        assert_array_equal(answer.mode, model.predict(WEIGHED))


def test_several_targets_are_a_loop_over_answers(tmp_path):
    model = po.JointModel().fit(WEIGHED)
    rows = WEIGHED.head(20)
    each = {name: model.answer(rows, name, method="joint") for name in ("species", "sex", "body_mass_g")}
    assert_array_equal(each["species"].probability, model.predict_proba(rows, "species", "joint"))
    assert_array_equal(each["body_mass_g"].density.mean, model.predict_density(rows, "body_mass_g", "joint").mean)
    with pytest.raises(ValueError, match="name one"):
        model.answer(rows)
    tree = po.NaiveBayes().fit(WEIGHED, "species")
    assert tree.answer(rows, "sex").labels == ("female", "male")


def test_a_network_answers_about_any_variable():
    seen = pl.DataFrame({"cloudy": ["y", "n"] * 9, "rain": ["y", "n", "n"] * 6})
    net, rows = po.BayesianNetwork([("cloudy", "rain")]).fit(seen), pl.DataFrame({"cloudy": ["y", None]})
    answer = net.answer(rows, "rain")
    assert_array_equal(answer.probability, net.as_classifier("rain").predict_proba(rows))
    assert net.subject is Subject.VARIABLES


def ordered_table(n=240, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    level = np.digitize(x + 0.6 * rng.normal(size=n), [-0.6, 0.6])
    return pd.DataFrame({"x": x, "risk": pd.Categorical.from_codes(level, LEVELS[:3], ordered=True)})


def test_an_order_changes_no_probability():
    table = ordered_table()
    plain = po.NaiveBayes().fit(table.astype({"risk": str}), "risk")
    for model in (
        po.NaiveBayes().fit(table, "risk"),
        po.NaiveBayes(columns=po.Columns(order={"risk": LEVELS[:3]})).fit(table.astype({"risk": str}), "risk"),
    ):
        assert_array_equal(model.predict_proba(table), plain.predict_proba(table))
        assert_array_equal(model.classes_, sorted(LEVELS[:3]))
        answer = model.answer(table)
        assert answer.labels == LEVELS[:3]
        place = [model.classes_.tolist().index(label) for label in LEVELS[:3]]
        assert_array_equal(answer.probability, model.predict_proba(table)[:, place])
    assert not plain.answer(table).meaning.is_ordered


def test_levels_of_later_rows_find_their_place():
    table = ordered_table()
    model = po.NaiveBayes().partial_fit(table[table.risk != "low"], "risk").partial_fit(table, "risk")
    assert model.answer(table).labels == LEVELS[:3]
    model = po.NaiveBayes(columns=po.Columns(order={"risk": LEVELS}))
    text = table.astype({"risk": str})
    model.partial_fit(text[text.risk != "medium"], "risk").partial_fit(text, "risk")
    assert model.answer(table).labels == LEVELS[:3]
    apart = po.NaiveBayes().partial_fit(table[table.risk != "medium"], "risk")
    with pytest.raises(ValueError, match="has no place among them"):
        apart.partial_fit(table[table.risk == "medium"], "risk")


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ({"risk": ["low", "high"]}, "order lacks 'medium'"),
        ({"risk": ["low", "medium", "high", "low"]}, "names 'low' twice"),
        ({"risks": ["low"]}, "order names 'risks', which is no column"),
        ({"x": ["low"]}, "'x', which holds no categories"),
    ],
)
def test_orders_that_do_not_fit_are_refused(order, said):
    table = ordered_table(60).astype({"risk": str})
    with pytest.raises(ValueError, match=said):
        po.NaiveBayes(columns=po.Columns(order=order)).fit(table, "risk")


def test_figures_of_levels_are_those_of_the_rows(tmp_path):
    table = ordered_table()
    held_out = po.model_selection.out_of_fold(po.NaiveBayes(), table, "risk")
    answer, truth = held_out.answer, table.risk.to_numpy()
    assert_allclose(held_out.levels.ranked_score, answer.ranked_score(truth).mean())
    low, high = (answer.codes(end) for end in answer.interval(0.9).T)
    code = answer.codes(truth)
    same, near, within, width = held_out.levels.shares
    away = np.abs(answer.codes(answer.median) - code)
    assert_allclose([same, near], [(away == 0).mean(), (away <= 1).mean()])
    assert_allclose([within, width], [((low <= code) & (code <= high)).mean(), (high - low + 1).mean()])
    assert "Its median level is the true one for" in held_out.summary()


@pytest.mark.parametrize("model", [po.NaiveBayes(), po.GenerativeClassifier()], ids=["nb", "pool"])
def test_ordered_classes_are_in_every_output(model, tmp_path):
    table = ordered_table()
    model.fit(table, "risk")
    po.save(model, tmp_path / "m.posteriori")
    loaded = po.load(tmp_path / "m.posteriori")
    assert_array_equal(loaded.answer(table).median, model.answer(table).median)
    table.to_csv(tmp_path / "t.csv", index=False)
    po.predict_to(loaded, po.scan(tmp_path / "t.csv"), tmp_path / "out.csv")
    written = pl.read_csv(tmp_path / "out.csv")
    answer = model.answer(table)
    assert written["median"].to_list() == answer.median.tolist()
    assert np.array_equal(written.select("prediction_low", "prediction_high").to_numpy(), answer.interval(0.9))
    assert "Ranked probability score" in po.report(model, table, "risk").html
    assert '"levels":[1,2,0]' in po.javascript.to_javascript(model)


def test_models_of_numbers_and_columns_write_files(tmp_path):
    WEIGHED.write_csv(tmp_path / "t.csv")
    rows = po.scan(tmp_path / "t.csv")
    regressor = po.AdditiveRegressor().fit(WEIGHED, "body_mass_g")
    po.predict_to(regressor, rows, tmp_path / "out.csv")
    written = pl.read_csv(tmp_path / "out.csv")
    assert_allclose(written["prediction"], regressor.predict(WEIGHED))
    ends = written.select("prediction_low", "prediction_high").to_numpy()
    assert_allclose(ends, regressor.predict_interval(WEIGHED))
    joint = po.JointModel().fit(WEIGHED)
    po.predict_to(joint, rows, tmp_path / "sex.csv", column="sex")
    assert pl.read_csv(tmp_path / "sex.csv")["prediction"].to_list() == joint.predict(WEIGHED, "sex", "joint").tolist()
    for call, said in (
        (lambda: po.predict_to(joint, rows, tmp_path / "x.csv"), "column names what a joint model predicts"),
        (lambda: po.predict_to(regressor, rows, tmp_path / "x.csv", proba=True), "proba is of classes"),
    ):
        with pytest.raises(ValueError, match=said):
            call()


def test_a_truth_that_is_no_level_has_no_ranked_score():
    answer = Answer("risk", Categories(("low", "high"), is_ordered=True), np.array([[0.3, 0.7]] * 3))
    assert_allclose(answer.ranked_score(["other", None, "low"]), [np.nan, np.nan, 0.49])
    assert len(answer[0]) == 1
    assert answer[0].mode.tolist() == ["high"]


@pytest.mark.parametrize("order", ["low,high", {"low", "high"}, None])
def test_an_order_is_a_list_of_levels(order):
    model = po.NaiveBayes(columns=po.Columns(order={"y": order}))
    with pytest.raises(ValueError, match="give a list of its levels, the lowest first"):
        model.fit([[1.0], [2.0]], ["low", "high"])


def test_the_message_without_an_order_names_what_exists():
    with pytest.raises(ValueError, match=r"columns=po.Columns\(order="):
        po.NaiveBayes().fit([[1.0], [2.0]], ["low", "high"]).answer([[1.0]]).interval()


def test_labels_without_a_name_are_ordered():
    table = ordered_table(60).astype({"risk": str})
    for order in ({"y": LEVELS[:3]}, {"risk": LEVELS[:3]}):
        model = po.NaiveBayes(columns=po.Columns(order=order)).fit(table[["x"]], table.risk.to_numpy())
        assert model.answer(table[["x"]]).labels == LEVELS[:3]
    model.partial_fit(table[["x"]], table.risk.to_numpy())
    assert model.answer(table[["x"]]).labels == LEVELS[:3]
    po.compare({"a": model, "b": po.NaiveBayes()}, table, "risk", sizes=[20], repeats=1)


def test_a_pool_learns_levels_that_come_later():
    table = ordered_table(150).astype({"risk": str})
    pool = po.GenerativeClassifier(members=["nb"], columns=po.Columns(order={"risk": LEVELS}))
    pool.partial_fit(table[table.risk != "medium"], "risk").partial_fit(table, "risk")
    assert pool.answer(table).labels == LEVELS[:3]


def test_a_joint_model_writes_levels(tmp_path):
    table = ordered_table(120).astype({"risk": str})
    model = po.JointModel(columns=po.Columns(order={"risk": LEVELS[:3]})).fit(table)
    table.to_csv(tmp_path / "t.csv", index=False)
    po.predict_to(model, po.scan(tmp_path / "t.csv"), tmp_path / "out.csv", column="risk")
    written = pl.read_csv(tmp_path / "out.csv")
    answer = model.answer(table, "risk", method="joint")
    assert written["median"].to_list() == answer.median.tolist()
    assert written["prediction"].to_list() == answer.mode.tolist()
    plain = po.JointModel().fit(table)
    for method in ("joint", "pool"):
        assert_array_equal(model.predict(table, "risk", method), plain.predict(table, "risk", method))
    place = [plain.categories("risk").index(label) for label in model.categories("risk")]
    expected = plain.predict_proba(table, "risk", "joint")[:, place]
    assert_array_equal(model.predict_proba(table, "risk", "joint"), expected)
    gaps = table.assign(risk=table.risk.where(table.index % 3 > 0))
    for method in ("joint", "pool"):
        assert_array_equal(model.impute(gaps, method).risk, plain.impute(gaps, method).risk)
    assert model.query("P(risk = low)") == plain.query("P(risk = low)")
    assert np.array_equal(written.select("prediction_low", "prediction_high").to_numpy(), answer.interval())
