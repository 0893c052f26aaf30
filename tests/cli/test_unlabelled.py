"""Rows without labels, sets of classes and chosen thresholds on the command line, beside the same calls in Python."""

import json

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from tests.cli.command_line import CommandLine

LINE = CommandLine()


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    folder = tmp_path_factory.mktemp("unlabelled")
    birds = load_penguins().select("island", "body_mass_g", "sex", "species")
    early = np.random.default_rng(0).random(len(birds)) < 0.6
    pool = po.GenerativeClassifier(members=["nb", "tan"]).fit(birds.filter(early), "species")
    po.save(pool, folder / "m.posteriori")
    late = birds.filter(~early)
    late.write_csv(folder / "late.csv")
    late.filter(late["species"] != "Adelie").drop("species").write_csv(folder / "new.csv")
    return folder, pool


def test_expected_figures_are_those_of_python(saved):
    folder, pool = saved
    late, new = pl.read_csv(folder / "late.csv"), pl.read_csv(folder / "new.csv")
    path, rows = folder / "m.posteriori", folder / "new.csv"
    found = json.loads(LINE.succeeds("evaluate", path, rows, "--expected", "--against", folder / "late.csv", "--json"))
    wanted = pool.expected_performance(new, priors="estimate", against=late)
    assert found["expected"]["accuracy"] == pytest.approx(wanted.accuracy)
    assert found["expected"]["standard_error"] == pytest.approx(wanted.standard_error)
    shares = pool.estimate_priors(new, against=late)
    assert [one["estimated"] for one in found["class_shares"]] == pytest.approx(shares.shares.tolist())
    assert found["mix_changed"]
    assert found["columns_changed"] == shares.columns_changed
    assert found["sentences"] == [*shares.sentences, *wanted.sentences]
    page = LINE.succeeds("evaluate", path, rows, "--expected")
    assert "rows; labels are not used" in page
    assert "without label" not in LINE.succeeds("evaluate", path, folder / "late.csv", "--expected")  # it has labels
    assert "The mix of classes changed" in page
    costs = folder / "costs.json"
    costs.write_text(json.dumps({a: dict.fromkeys("ACG", 1.0) for a in "ACG"}))
    assert "is not a class; " in LINE.refused("evaluate", path, rows, "--expected", "--costs", costs)
    assert "add --expected" in LINE.refused("evaluate", path, rows, "--against", rows)
    assert "--capacity is for labelled rows" in LINE.refused("evaluate", path, rows, "--expected", "--capacity", "5")


def test_predictions_under_other_shares_and_in_sets(saved):
    folder, pool = saved
    path, rows, out = folder / "m.posteriori", folder / "new.csv", folder / "out.csv"
    new = pl.read_csv(rows)
    LINE.succeeds("predict", path, rows, "--priors", "estimate", "--proba", "-o", out, "--force")
    found = pl.read_csv(out).select("p_Adelie", "p_Chinstrap", "p_Gentoo").to_numpy()
    np.testing.assert_allclose(found, pool.predict_proba(new, priors="estimate"), rtol=1e-9)
    LINE.succeeds("predict", path, rows, "--priors", "Adelie=0.2,Chinstrap=0.3,Gentoo=0.5", "-o", out, "--force")
    moved = pool.with_priors([0.2, 0.3, 0.5])
    assert pl.read_csv(out)["prediction"].to_list() == moved.predict(new).tolist()
    LINE.succeeds("predict", path, rows, "--coverage", "0.9", "-o", out, "--force")
    sets = pool.predict_set(new, 0.9)
    written = pl.read_csv(out)
    assert [set(text.split("|")) for text in written["set"]] == [set(one) for one in sets.sets]
    assert written["set_size"].to_list() == sets.size.tolist()
    assert [text.split("|")[0] for text in written["set"]] == written["prediction"].to_list()


def test_a_threshold_is_chosen_as_in_python(saved):
    folder, pool = saved
    path = folder / "m.posteriori"
    found = json.loads(LINE.succeeds("decide", path, "Chinstrap", "--recall", "0.9", "--json"))
    wanted = pool.choose_threshold("Chinstrap", recall=0.9)
    assert found["threshold"] == wanted.threshold
    assert (found["precision"], found["recall"], found["share"]) == (wanted.precision, wanted.recall, wanted.share)
    page = LINE.succeeds("decide", path, "Chinstrap", "--capacity", "10%")
    assert page.startswith("Decide for 'Chinstrap' from a probability of ")
    assert f"--threshold Chinstrap={pool.choose_threshold('Chinstrap', capacity=0.1).threshold:.4g}" in page


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("predict", "M", "NEW", "--coverage", "0.999"), "a coverage of 0.999 needs 999; give more rows"),
        (("predict", "M", "NEW", "--coverage", "9"), "coverage is 9.0; give a number between 0 and 1"),
        (("predict", "M", "NEW", "--priors", "Adelie=0.2"), "priors must name every class once"),
        (("predict", "M", "NEW", "--priors", "Adele=0.2"), "did you mean 'Adelie'"),
        (("predict", "M", "NEW", "--priors", "Adelie=a"), "with probabilities"),
        (("predict", "M", "NEW", "--quantiles", "0.5", "--coverage", "0.9"), "--quantiles is for numbers"),
        (("decide", "M", "Adele", "--recall", "0.9"), "did you mean 'Adelie'"),
        (("decide", "M", "Adelie"), "give one of precision, recall and capacity"),
        (("decide", "M", "Adelie", "--capacity", "many"), "give a share of the rows, such as 5%"),
        (("decide", "M", "Adelie", "--recall", "2"), "recall is 2.0; give a share above 0"),
        (("evaluate", "M", "NEW"), "if its rows have no labels, add --expected"),
    ],
)
def test_what_cannot_be_done_is_said(saved, arguments, said):
    names = {"M": saved[0] / "m.posteriori", "NEW": saved[0] / "new.csv"}
    assert said in LINE.refused(*(names.get(one, one) for one in arguments))


def test_a_single_model_fitted_here_keeps_its_held_out_rows(saved):
    folder, _ = saved
    path = folder / "nb.posteriori"
    CommandLine(model="nb").succeeds("fit", folder / "late.csv", "-t", "species", "-o", path)
    assert "set_size" in LINE.succeeds("predict", path, folder / "new.csv", "--coverage", "0.8")
    LINE.succeeds("decide", path, "Gentoo", "--precision", "0.8")


@pytest.mark.parametrize(
    ("labels", "shares"),
    [
        ([True, False], ["true=0.3,false=0.7", "True=0.3,False=0.7"]),
        ([1.0, 0.0], ["1=0.3,0=0.7", "1.0=0.3,0.0=0.7"]),
        (["a=b |c", "d, e=1"], ["a=b |c=0.3,d, e=1=0.7", "d, e=1 = 0.7, a=b |c = 0.3"]),
    ],
)
def test_classes_are_named_as_files_write_them(labels, shares, tmp_path):
    first, second = labels
    x = np.random.default_rng(0).normal(size=80)
    y = np.repeat(labels, 40).tolist()
    rows = pl.DataFrame({"x": x + np.repeat([0.0, 1.5], 40)})
    model = po.GenerativeClassifier(members=["nb", "lda"]).fit(rows, y)
    path, table, out = tmp_path / "m.posteriori", tmp_path / "new.csv", tmp_path / "out.parquet"
    po.save(model, path)
    rows.write_csv(table)
    wanted = model.with_priors({first: 0.3, second: 0.7}).predict_proba(rows)
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in model.classes_.tolist()]
    for one in shares:
        LINE.succeeds("predict", path, table, "--priors", one, "--proba", "--coverage", "0.9", "-o", out, "--force")
        found = pl.read_parquet(out)
        np.testing.assert_allclose(found.select(f"p_{text}" for text in texts).to_numpy(), wanted, rtol=1e-9)
        quoted = {f'"{text}"' if "|" in text else text for text in texts}
        singles = found.filter(pl.col("set_size") == 1)["set"].to_list()
        assert singles
        assert set(singles) <= quoted
    assert "twice" in LINE.refused("predict", path, table, "--priors", f"{shares[0]},{shares[0]}")
    assert "write CLASS=0.3" in LINE.refused("predict", path, table, "--priors", "estmate")


@pytest.mark.parametrize("labels", [["u", "v"], [0, 1], [0.0, 1.0], [False, True]])
def test_a_decision_that_is_no_class_has_reasons(labels, tmp_path):
    rows = pl.DataFrame({"x": np.random.default_rng(0).normal(size=80) + np.repeat([0.0, 1.5], 40)})
    model = po.NaiveBayes().fit(rows, np.repeat(labels, 40).tolist())
    path, table, costs = tmp_path / "m.posteriori", tmp_path / "new.csv", tmp_path / "costs.json"
    po.save(model, path)
    rows.write_csv(table)
    texts = [str(one).lower() if isinstance(one, bool) else str(one) for one in labels]
    of_error = {a: {b: 1.0 for b in texts if b != a} | {"ask": 0.2} for a in texts}
    costs.write_text(json.dumps(of_error))
    found = LINE.succeeds("predict", path, table, "--costs", costs, "--sort", "cost", "--reasons", "1")
    found = pl.read_csv(found.encode(), infer_schema=False)
    best = [texts[k] for k in model.predict_proba(rows).argmax(axis=1)]
    assert set(found["prediction"]) == {*texts, "ask"}
    assert [best[int(row)] for row in found["row"]] == found["reasons_for"].to_list()


def test_a_class_of_interest_may_be_written_as_python_writes_it(tmp_path):
    rng = np.random.default_rng(0)
    x = rng.normal(size=80)
    table = pl.DataFrame({"x": x, "y": np.where(x + rng.normal(size=80) > 0, 1.0, 0.0)})
    table.write_csv(tmp_path / "t.csv")
    po.save(po.NaiveBayes().fit(table, "y"), tmp_path / "m.posteriori")
    pages = [
        LINE.succeeds("evaluate", tmp_path / "m.posteriori", tmp_path / "t.csv", "--positive", one)
        for one in ("1", "1.0")
    ]
    assert pages[0] == pages[1]
