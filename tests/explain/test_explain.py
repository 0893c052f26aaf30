"""Explanations are exact sums, and Bayes' rule on paper is the model's."""

import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from scipy.special import softmax

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.explain.words import characteristic_words
from posteriori.registry import find_model


@pytest.fixture(scope="module")
def penguins():
    return load_penguins()


@pytest.fixture(scope="module")
def model(penguins):
    return po.NaiveBayes(distributions={"year": "categorical"}).fit(penguins, "species")


def test_an_explanation_sums_to_the_prediction(model, penguins):
    explanation = model.explain(penguins)
    assert_allclose(explanation.log_joint, model.predict_joint_log_proba(penguins), rtol=1e-12)
    assert_allclose(explanation.posterior, model.predict_proba(penguins), rtol=1e-9, atol=1e-300)
    assert_allclose(explanation.log_evidence, model.score_samples(penguins), rtol=1e-12)


def test_an_explanation_is_a_table_of_terms(model, penguins):
    explanation = model.explain(penguins[2:5])
    table = explanation.to_polars()
    assert table.columns == ["row", "factor", "value", "Adelie", "Chinstrap", "Gentoo"]
    assert table["factor"].to_list() == ["prior", *explanation.feature_names] * 3
    of_rows = table.group_by("row", maintain_order=True).agg(pl.col(explanation.classes.tolist()).sum())
    assert_allclose(of_rows.drop("row").to_numpy(), explanation.log_joint)
    bill = table.filter(factor="bill_length_mm")
    assert bill["value"].to_list() == ["40.3", None, "36.7"]
    assert bill["Gentoo"].to_list() == explanation.log_factors[:, 2, 1].tolist()
    assert explanation.to_pandas()["Gentoo"].tolist() == table["Gentoo"].to_list()


def test_a_class_named_like_a_column_is_refused():
    explanation = po.NaiveBayes().fit([["u"], ["v"]], ["row", "b"]).explain([["u"]])
    with pytest.raises(ValueError, match="the class 'row' has the name of a column of the table; use log_factors"):
        explanation.to_polars()


def test_a_missing_cell_says_nothing(model, penguins):
    row = penguins.row(3, named=True)
    assert row["bill_length_mm"] is None
    explanation = model.explain(penguins[3])
    j = explanation.feature_names.index("bill_length_mm")
    assert explanation.values[0, j] is None
    assert_array_equal(explanation.log_factors[0, :, j], 0.0)


def test_log_odds_are_what_the_posterior_says(model, penguins):
    explanation = model.explain(penguins[:50])
    log_posterior = model.predict_log_proba(penguins[:50])
    for row in range(0, 50, 7):
        odds = explanation.log_odds(row, "Gentoo", "Adelie")
        assert_allclose(odds.total, log_posterior[row, 2] - log_posterior[row, 0])
        best, second = np.argsort(-log_posterior[row])[:2]
        default = explanation.log_odds(row)
        assert (default.label, default.against) == (model.classes_[best], model.classes_[second])
        assert_allclose(default.total, log_posterior[row, best] - log_posterior[row, second])
    with pytest.raises(ValueError, match="'Emperor' is not a class; the classes are"):
        explanation.log_odds(0, "Emperor")


def test_one_class_has_no_odds():
    explanation = po.NaiveBayes().fit([[1.0], [2.0]], ["only", "only"]).explain([[1.5]])
    with pytest.raises(ValueError, match="one class only"):
        explanation.log_odds()


def test_values_are_the_cells_as_they_were_read(model, penguins):
    explanation = model.explain(penguins[:2])
    named = dict(zip(explanation.feature_names, explanation.values[1], strict=True))
    assert named == {name: cell for name, cell in penguins.row(1, named=True).items() if name != "species"}


def test_bayes_rule_on_paper():
    model = po.NaiveBayes.from_parameters(priors=[0.2, 0.5, 0.3], gaussian={"x": {"mean": [2, 3, 4], "sd": [1, 2, 1]}})
    page = po.explain.bayes_table(model, [3.4])
    numbers = {line.split("  ")[0]: re.findall(r"0\.\d+", line) for line in page.splitlines()}
    assert numbers["× p(x = 3.4)"] == ["0.149727", "0.195521", "0.333225"]
    assert numbers["posterior"] == ["0.131528", "0.429390", "0.439082"]
    joint = [float(number) for number in numbers["= joint p(x, class)"]]
    evidence = float(re.search(r"p\(x\) = ([\d.]+)", page).group(1))
    assert_allclose(sum(joint), evidence, rtol=1e-5)
    assert_allclose(np.array(joint) / evidence, [0.131528, 0.429390, 0.439082], rtol=1e-5)


def test_rows_can_be_given_in_any_form(model, penguins):
    row = penguins.drop("species").row(0, named=True)
    page = po.explain.bayes_table(model, row)
    assert po.explain.bayes_table(model, list(row.values())) == page
    assert po.explain.bayes_table(model, penguins[0]) == page
    assert "× sex missing" in po.explain.bayes_table(model, {**row, "sex": None})
    assert po.explain.bayes_table(model, {"island": "Dream"}).count("missing") == len(row) - 1
    with pytest.raises(ValueError, match="column 'wings', which the model does not have"):
        po.explain.bayes_table(model, {"wings": 2})
    with pytest.raises(ValueError, match="x has 1 cells but the model has 7 features"):
        po.explain.bayes_table(model, ["Dream"])
    with pytest.raises(ValueError, match="x has 344 rows"):
        po.explain.bayes_table(model, penguins)


def test_bayes_rule_survives_underflow():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(40, 600)), np.repeat([0, 1], 20)
    page = po.NaiveBayes().fit(X, y).explain(X + 3).bayes_table()
    assert re.search(r"= joint p\(x, class\) +\d\.\d*e-\d{3,}", page)
    assert re.search(r"posterior +[01]\.\d{6}", page)


@pytest.mark.parametrize("kind", ["bernoulli", "mixed"])
def test_the_linear_form_is_the_model(kind, penguins):
    if kind == "bernoulli":
        rng = np.random.default_rng(0)
        X, y = rng.random((60, 4)) < 0.4, rng.integers(0, 3, 60)
        model = po.NaiveBayes().fit(X, y)
    else:
        X, y = penguins.drop_nulls().with_columns(pl.col("year") - 2007), "species"
        model = po.NaiveBayes(
            distributions=dict.fromkeys(X.select(pl.selectors.numeric()).columns, po.Gaussian(np.inf))
            | {"year": "poisson"}
        ).fit(X, y)
    form, explanation = po.explain.linear_form(model), model.explain(X)
    scores = form.scores(form.design(explanation))
    assert_allclose(softmax(scores, axis=1), model.predict_proba(X), atol=1e-8)
    # The scores leave out only what is the same for all classes.
    assert_allclose(np.ptp(scores - model.predict_joint_log_proba(X), axis=1), 0.0, atol=1e-8)


def test_the_linear_form_of_bernoulli_features_is_the_textbooks():
    rng = np.random.default_rng(1)
    X, y = rng.random((80, 3)) < 0.5, rng.integers(0, 2, 80)
    model = po.NaiveBayes().fit(X, y)
    form = po.explain.linear_form(model)
    p = np.column_stack([np.exp(log_probability[:, 1]) for log_probability in model.feature_log_prob_])
    assert_allclose(form.weight, np.log(p / (1 - p)))
    assert_allclose(form.bias, model.class_log_prior_ + np.log(1 - p).sum(axis=1))


def test_the_linear_form_of_shared_variances_is_the_textbooks():
    rng = np.random.default_rng(2)
    X, y = rng.normal(size=(90, 3)), rng.integers(0, 3, 90)
    model = po.NaiveBayes(distributions=po.Gaussian(np.inf)).fit(X, y)
    form = po.explain.linear_form(model)
    assert_allclose(form.weight, model.theta_ / model.var_[0])
    assert_allclose(form.bias, model.class_log_prior_ - (model.theta_**2 / (2 * model.var_[0])).sum(axis=1))


def test_a_pool_of_linear_models_is_linear(penguins):
    rows = penguins.drop_nulls()
    members = {"lda": po.GaussianDiscriminant(), "shared": po.NaiveBayes(distributions=po.Gaussian(np.inf))}
    model = po.GenerativeClassifier(members, priors=[0.2, 0.3, 0.5], penalty=100.0).fit(rows, "species")
    explained = model.explain(rows)
    form = po.explain.linear_form(model)
    assert len(form.terms) == len(po.explain.linear_form(model.members_["lda"]).terms)
    scores = form.scores(form.design(explained))
    shares = np.exp(scores - scores.max(axis=1, keepdims=True))
    assert_allclose(shares / shares.sum(axis=1, keepdims=True), model.predict_proba(rows), atol=1e-9)
    mixed = po.GenerativeClassifier(["lda", "qda"], penalty=1e6).fit(rows, "species")
    with pytest.raises(ValueError, match="the member 'qda' of the pool"):
        po.explain.linear_form(mixed)
    weighted = po.NaiveBayes(distributions=po.Gaussian(np.inf), feature_weights="conditional").fit(rows, "species")
    with pytest.raises(ValueError, match="feature weights change the log-odds"):
        po.explain.linear_form(weighted)


def test_where_there_is_no_linear_form(penguins):
    with pytest.raises(ValueError, match=r"variance for each class.*smoothing=math.inf"):
        po.explain.linear_form(po.NaiveBayes().fit(penguins, "species"))
    strict = po.NaiveBayes(alpha=0.0).fit(penguins.select("island", "species"), "species")
    with pytest.raises(ValueError, match="probability 0; set alpha > 0"):
        po.explain.linear_form(strict)
    model = po.NaiveBayes(distributions=po.Gaussian(np.inf)).fit(penguins, "species")
    with pytest.raises(ValueError, match="a cell is missing"):
        po.explain.linear_form(model).design(model.explain(penguins))


def test_a_chain_says_on_what_each_factor_is_conditional(penguins):
    model = po.GaussianDiscriminant().fit(penguins, "species")
    row = {"bill_length_mm": 39.1, "bill_depth_mm": 18.7, "flipper_length_mm": None, "body_mass_g": 3750, "year": 2007}
    page = po.explain.bayes_table(model, {**row, "sex": "male"})
    labels = [line.split("  ")[0] for line in page.splitlines() if line.startswith("×")]
    assert labels == [
        "× island missing",
        "× p(bill_length_mm = 39.1)",
        "× p(bill_depth_mm = 18.7 | bill_length_mm)",
        "× flipper_length_mm missing",
        "× p(body_mass_g = 3750 | bill_length_mm, bill_depth_mm)",
        "× p(sex = male)",
        "× p(year = 2007 | bill_length_mm, bill_depth_mm, body_mass_g)",
    ]
    assert "| bill_length_mm, bill_depth_mm, …, body_mass_g)" in model.explain(penguins[0]).bayes_table()
    independent = po.GaussianDiscriminant(shrinkage="diagonal").fit(penguins, "species")
    assert "|" not in po.explain.bayes_table(independent, row)


def test_linear_contributions_add_up_to_the_scores():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(60, 3)), rng.integers(0, 3, 60)
    form = po.explain.linear_form(po.GaussianDiscriminant().fit(X, y))
    assert_allclose(form.bias + form.contributions(X).sum(axis=2), form.scores(X))


def test_the_words_of_a_text_multiply_to_its_factor():
    texts = [
        "win cash now please reply",
        "meet me at noon today",
        "win a prize now today",
        "me and you meet at lunch",
    ] * 8
    rows, y = pl.DataFrame({"message": texts}), ["spam", "ham"] * 16
    model = po.NaiveBayes(columns=po.Columns(text=["message"])).fit(rows, y)
    long = " ".join(model.schema_.columns[0].words)
    explanation = model.explain(pl.DataFrame({"message": [long]}))
    lines = re.findall(r"^(× p\(message|    of it \S+).* (\S+) +(\S+)$", explanation.bayes_table(), re.MULTILINE)
    numbers = np.array([[float(cell) for cell in line[1:]] for line in lines])
    assert lines[-1][0].split()[-1] == str(len(model.schema_.columns[0].words) - 10)  # the other words
    assert_allclose(numbers[1:].prod(axis=0), numbers[0], rtol=1e-4)
    odds = explanation.log_odds(label="ham", against="spam")
    assert_allclose(sum(odds.words["message"].values()), odds.factors["message"])
    share = np.exp(model.word_log_prob_["message"])
    assert_allclose(share.sum(axis=1), 1.0)
    first = next(iter(odds.words["message"]))
    ratio = np.log(share[0] / share[1])
    assert first == model.schema_.columns[0].words[int(np.argmax(np.abs(ratio)))]


def test_characteristic_words_maximise_count_times_log_odds():
    rng = np.random.default_rng(0)
    counts = rng.poisson(rng.gamma(0.5, 2.0, (3, 30)).repeat(20, axis=0))
    y = np.repeat(["a", "b", "c"], 20)
    model = po.NaiveBayes().fit(csr_array(counts), y)
    (found,) = characteristic_words(model.model_, model.statistics_, 4).values()
    totals = np.stack([counts[y == label].sum(axis=0) for label in "abc"])
    share = (totals + 1) / (totals.sum(axis=1, keepdims=True) + 30)
    for c, words in enumerate(found):
        others = np.delete(share, c, axis=0).mean(axis=0)
        score = totals[c] * np.log(share[c] / others)
        assert [one.word for one in words] == [f"x{j}" for j in np.argsort(-score)[:4]]
        assert_allclose([one.count for one in words], np.sort(score)[::-1][:4] / [one.log_odds for one in words])
    (against,) = characteristic_words(model.model_, model.statistics_, 4, against=True).values()
    for c, words in enumerate(against):
        others = np.delete(share, c, axis=0).mean(axis=0)
        score = np.delete(totals, c, axis=0).sum(axis=0) * np.log(share[c] / others)
        assert [one.word for one in words] == [f"x{j}" for j in np.argsort(score)[:4]]
        assert all(one.log_odds < 0 for one in words)


def test_an_explanation_prints_as_one_line():
    model = po.NaiveBayes().fit([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]], ["a", "b", "a"])
    expected = "<Explanation: 3 rows, 2 classes, 2 features; print(….bayes_table(row)) writes Bayes' rule out>"
    assert repr(model.explain([[1.0, 2.0], [3.0, 1.0], [2.0, 2.0]])) == expected


def test_the_odds_are_of_two_different_classes(penguins, model):
    explanation = model.explain(penguins[:1])
    first, second = explanation.classes[np.argsort(-explanation.log_joint[0])[:2]]
    assert explanation.log_odds(0, against=first).label == second
    with pytest.raises(ValueError, match="are both 'Adelie'; give two classes"):
        explanation.log_odds(0, "Adelie", "Adelie")


def test_columns_that_the_model_ignores_have_no_factor():
    rng = np.random.default_rng(0)
    rows = pl.DataFrame({"x": rng.normal(size=60), "id": range(60), "z": ["p", "q", "q"] * 20, "y": ["u", "v"] * 30})
    with pytest.warns(UserWarning, match="'id' is ignored"):
        models = [kind().fit(rows, "y") for kind in (po.NaiveBayes, po.TreeAugmentedNaiveBayes)]
    for model in models:
        explanation = model.explain(rows[:3])
        assert explanation.feature_names == ("x", "z")
        assert_allclose(explanation.log_joint, model.predict_joint_log_proba(rows[:3]), rtol=1e-12)
        assert "× id" not in explanation.bayes_table(0)
        assert all(set(explanation.known(0, j)) <= {"x", "z"} for j in range(2))


@pytest.mark.parametrize("model", ["nb", "tan", "kdb weighted", "cells", "aode", "forest"])
def test_what_classes_share_takes_no_digit_of_the_posterior(model):
    rng = np.random.default_rng(0)
    x, z = rng.normal(size=(2, 200))
    y = np.where(x * z + 0.3 * rng.normal(size=200) > 0, "b", "a")
    fitted = find_model(model).make(n_jobs=1).fit(pl.DataFrame({"x": x, "z": z}), y)
    far = pl.DataFrame({"x": [0.5, 0.5], "z": [-1e9, 1e6]})
    explanation = fitted.explain(far)
    assert_allclose(explanation.posterior, fitted.predict_proba(far), rtol=1e-9, atol=1e-12)
    assert_allclose(explanation.relative().posterior, explanation.posterior, rtol=1e-9, atol=1e-12)
    for row in (0, 1):
        expected = fitted.predict_log_proba(far)[row]
        assert_allclose(explanation.log_odds(row, "a", "b").total, expected[0] - expected[1], rtol=1e-9, atol=1e-9)
        assert_allclose(explanation.row(row).posterior[0], explanation.posterior[row], rtol=1e-12)
