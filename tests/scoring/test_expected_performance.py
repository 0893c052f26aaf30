"""Expectations of unlabelled rows against labels drawn from the posteriors."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import log_loss, roc_auc_score

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.scoring.decisions import decision_of
from posteriori.scoring.expected_performance import expected_performance

PENGUINS = load_penguins()


@pytest.mark.parametrize("n_classes", [2, 3])
def test_expectations_are_means_over_drawn_labels(n_classes):
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(n_classes), size=400)
    classes = np.arange(n_classes)
    costs = {a: {b: float(1 + a + 2 * b) for b in range(n_classes) if b != a} for a in range(n_classes)}
    decision = decision_of(classes.tolist(), costs=costs)
    found = expected_performance(p, classes, decision, np.ones(n_classes) / n_classes)
    decided, drawn = decision.choose(p), []
    for _ in range(800):
        y = (rng.random((400, 1)) > p.cumsum(axis=1)).sum(axis=1)
        confusion = np.zeros((n_classes, n_classes))
        np.add.at(confusion, (y, decided), 1)
        auc = roc_auc_score(y, p[:, 1]) if n_classes == 2 else 0.0
        drawn.append([(y == decided).mean(), log_loss(y, p), decision.cost[y, decided].mean(), auc, *confusion.ravel()])
    mean, error = np.mean(drawn, axis=0), np.std(drawn, axis=0) / np.sqrt(800)
    wanted = [found.accuracy, found.log_loss, found.cost, found.auc if n_classes == 2 else 0.0]
    assert (np.abs(np.array([*wanted, *found.confusion.ravel()]) - mean) < 4.5 * error + 1e-3).all()
    assert_allclose(found.confusion.sum(), 400)
    for place, name in enumerate(("accuracy", "log_loss", "cost")):  # that of rows is on top
        assert found.standard_error[name] >= np.std(drawn, axis=0)[place] * 0.9


def test_rows_that_are_left_to_a_person_count_by_their_cost():
    p = np.array([[0.98, 0.02], [0.6, 0.4], [0.1, 0.9]])
    rule = decision_of(["a", "b"], costs={"a": {"b": 1.0, "ask": 0.2}, "b": {"a": 5.0, "ask": 0.2}})
    assert rule.choose(p).tolist() == [0, 2, 1]
    assert rule.labels(["a", "b"]) == ["a", "b", "ask"]
    assert rule.labels([0, 1]) == ["0", "1", "ask"]
    found = expected_performance(p, np.array(["a", "b"]), rule, np.array([0.5, 0.5]))
    assert_allclose(found.accuracy, (0.98 + 0.9) / 2)  # of the rows with a class
    assert_allclose(found.cost, (0.02 * 5 + 0.2 + 0.1) / 3)
    assert_allclose(found.confusion, [[0.98, 0.1, 0.6], [0.02, 0.9, 0.4]])


def test_the_expectation_is_that_of_labels_of_a_true_model():
    rng = np.random.default_rng(1)
    half = rng.random(len(PENGUINS)) < 0.5
    columns = ["island", "sex", "bill_depth_mm", "species"]
    model = po.NaiveBayes().fit(PENGUINS.select(columns).filter(half), "species")
    others = PENGUINS.select(columns).filter(~half)
    found = model.expected_performance(others)
    assert abs(found.accuracy - model.score(others, "species")) < 3 * found.standard_error["accuracy"]
    assert found.can_be_trusted is None
    assert model.expected_performance(others, against=others).can_be_trusted
    assert found.n == len(others)
    assert str(found).startswith("Of 100 rows, it is expected to predict")


def test_shares_of_the_rows_are_used_where_they_are_asked_for():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    gentoo = PENGUINS.filter(PENGUINS["species"] == "Gentoo")
    found = model.expected_performance(gentoo, priors="estimate")
    assert found.priors["Gentoo"] > 0.97
    given = model.expected_performance(gentoo, priors={"Adelie": 0.2, "Chinstrap": 0.2, "Gentoo": 0.6})
    assert_allclose(list(given.priors.values()), [0.2, 0.2, 0.6])


def test_a_mix_that_rows_do_not_show_is_in_the_error():
    birds = PENGUINS.select("sex", "body_mass_g", "species")  # Adelie and Chinstrap are of one size
    model = po.GenerativeClassifier(members=["nb", "lda"]).fit(birds[::2], "species")
    new = birds[1::2].filter(birds[1::2]["species"] != "Adelie")
    found = model.expected_performance(new, priors="estimate")
    right = model.classes_[model.predict_proba(new, priors="estimate").argmax(axis=1)] == new["species"].to_numpy()
    of_rows = model.expected_performance(new, priors=found.priors)
    assert_allclose(found.accuracy, of_rows.accuracy)
    assert found.standard_error["accuracy"] > of_rows.standard_error["accuracy"]
    assert abs(found.accuracy - right.mean()) < 3 * found.standard_error["accuracy"]


def test_strange_rows_are_not_to_be_trusted():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    heavy = PENGUINS.with_columns(body_mass_g=PENGUINS["body_mass_g"] * 1.3)
    found = model.expected_performance(heavy, against=PENGUINS)
    assert found.can_be_trusted is False
    assert str(found).startswith("How many rows it predicts right is not known: ")
    with pytest.raises(ValueError, match="a minimum of 1 is required"):
        model.expected_performance(PENGUINS.head(0))


@pytest.mark.parametrize(("price", "said"), [(0.3, "decided for a class (50.0% of all)"), (0.0, "No row is decided")])
def test_the_sentence_says_of_which_rows_the_accuracy_is(price, said):
    posterior, classes = np.array([[0.9, 0.1], [0.5, 0.5]]), np.array(["a", "b"])
    costs = {"a": {"b": 1.0, "ask": price}, "b": {"a": 1.0, "ask": price}}
    decision = decision_of(classes.tolist(), costs=costs)
    found = expected_performance(posterior, classes, decision, np.array([0.5, 0.5]))
    assert said in str(found)
    assert "nan" not in str(found)
