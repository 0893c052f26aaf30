"""Reports on drift and on two models: their measures against other implementations, and their pages."""

import json
import math
import re
from urllib.parse import unquote

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose
from scipy.spatial.distance import jensenshannon
from scipy.stats import chi2_contingency, mannwhitneyu

import posteriori as po
from posteriori.cli import main
from posteriori.datasets import load_penguins
from posteriori.reporting.drift import (
    TableRows,
    column_drifts,
    corrected_divergence,
    holm,
    homogeneity_p_value,
    mean_change,
    merge_rare_states,
    rank_sum_p_value,
)
from posteriori.reporting.drift_page import Drift, drift_sections, drift_summary
from posteriori.reporting.markup import percent
from tests.reporting.test_report import EVIL, Page, check

PENGUINS = load_penguins()
EARLIER = PENGUINS.filter(pl.col("year") < 2009).drop("year")
LATER = PENGUINS.filter(pl.col("year") == 2009).drop("year")
OTHER = ["bill_length_mm", "sex"]
COUNTS = st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), min_size=2, max_size=8).map(
    lambda rows: np.array(rows, float).T + np.array([[1.0], [1.0]]) * (np.arange(len(rows)) == 0)
)


@pytest.fixture(scope="module")
def model():
    return po.TreeAugmentedNaiveBayes().fit(EARLIER, "species")


def drifts(model, before, after):
    return {
        one.column.name: one for one in column_drifts(model, TableRows.of(model, before), TableRows.of(model, after))
    }


@given(COUNTS)
def test_divergence_is_that_of_scipy_less_its_expectation(counts):
    p, q = counts / counts.sum(axis=1, keepdims=True)
    chance = (np.count_nonzero(counts.sum(axis=0)) - 1) / 8 * (1 / counts[0].sum() + 1 / counts[1].sum())
    expected = max(float(jensenshannon(p, q)) ** 2 - chance, 0.0) if (p != q).any() else 0.0
    assert_allclose(corrected_divergence(counts), expected, atol=1e-9)
    assert_allclose(corrected_divergence(counts[::-1]), corrected_divergence(counts), atol=1e-12)
    assert 0.0 <= corrected_divergence(counts) <= np.log(2)


@given(COUNTS)
def test_p_value_is_that_of_scipy(counts):
    counts = counts[:, counts.sum(axis=0) > 0]
    expected = chi2_contingency(counts, correction=False).pvalue if counts.shape[1] > 1 else 1.0
    assert_allclose(homogeneity_p_value(counts), expected, atol=1e-12)


@given(st.lists(st.integers(0, 9), min_size=2, max_size=40), st.lists(st.integers(0, 9), min_size=2, max_size=40))
def test_rank_sum_is_that_of_scipy(before, after):
    one, other = np.array(before, float), np.array(after, float)
    if len(set(before + after)) == 1:
        assert rank_sum_p_value(one, other) == 1.0
        return
    expected = mannwhitneyu(one, other, method="asymptotic", use_continuity=False).pvalue
    assert_allclose(rank_sum_p_value(one, other), expected, atol=1e-9)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=9))
def test_holm_rejects_as_its_steps_do(p):
    level = 0.05
    rejected = set()
    for step, k in enumerate(np.argsort(p, kind="stable").tolist()):  # the definition
        if p[k] * (len(p) - step) > level:
            break
        rejected.add(k)
    assert set(np.flatnonzero(holm(p) <= level)) == rejected


@given(COUNTS)
def test_merging_keeps_the_rows_and_leaves_no_rare_state(counts):
    merged = merge_rare_states(counts)
    assert_allclose(merged.sum(axis=1), counts.sum(axis=1))
    expected = merged.sum(axis=0) * merged.sum(axis=1).min() / merged.sum()
    assert merged.shape[1] == 1 or expected.min() >= 5.0


def test_without_drift_p_values_are_uniform_and_divergence_is_0():
    rng = np.random.default_rng(0)
    columns = 120
    X = rng.normal(size=(900, columns))
    X[:, ::3] = rng.integers(4, size=(900, columns // 3))
    X[:, 1::3] = np.round(X[:, 1::3], 1)
    frame = pl.DataFrame(X, schema=[f"x{j}" for j in range(columns)])
    model = po.NaiveBayes().fit(frame, rng.integers(2, size=900))
    found = drifts(model, frame[:500], frame[500:])
    p = np.array([one.p_value for one in found.values()])
    assert not any(one.changed for one in found.values())
    assert 0.005 < np.mean(p < 0.1) < 0.2
    assert np.mean([one.divergence for one in found.values()]) < 0.004


def test_a_column_that_changed_is_found_among_those_that_did_not(model):
    rng = np.random.default_rng(0)
    order = rng.permutation(len(EARLIER))
    before, after = EARLIER[order[:120].tolist()], EARLIER[order[120:].tolist()]
    shifted = after.with_columns(pl.col("body_mass_g") + 400)
    found = drifts(model, before, shifted)
    assert [name for name, one in found.items() if one.changed] == ["body_mass_g"]
    assert next(iter(found)) == "body_mass_g"
    assert found["body_mass_g"].medians == (before["body_mass_g"].median(), shifted["body_mass_g"].median())
    gaps = after.with_columns(pl.when(pl.int_range(pl.len()) % 2 == 0).then("sex").alias("sex"))
    found = drifts(model, before, gaps)
    assert [name for name, one in found.items() if one.changed] == ["sex"]
    assert_allclose(found["sex"].missing, [one["sex"].null_count() / len(one) for one in (before, gaps)])


def test_states_are_counted_and_unseen_ones_are_not_missing(model):
    strange = LATER.with_columns(
        island=pl.when(pl.int_range(pl.len()) < 30).then(pl.lit("Coulman")).otherwise("island")
    )
    strange = strange.with_columns(island=pl.when(pl.int_range(pl.len()) >= 110).then(None).otherwise("island"))
    one = drifts(model, EARLIER, strange)["island"]
    assert one.changed
    of_state = dict(zip(one.names, one.counts[1].tolist(), strict=True))
    assert of_state["unseen category"] == 30
    assert of_state["missing"] == len(strange) - 110
    known = strange.filter(pl.col("island").is_not_null() & (pl.col("island") != "Coulman"))["island"].value_counts()
    assert {name: of_state[name] for name in known["island"]} == dict(known.iter_rows())
    assert one.counts.sum(axis=1).tolist() == [len(EARLIER), len(strange)]


def test_the_change_of_the_log_density_is_that_of_the_marginal():
    gaussian = po.NaiveBayes.from_parameters(priors={"a": 1.0}, gaussian={"x": {"mean": [1.0], "sd": [2.0]}})
    before, after = pl.DataFrame({"x": [0.0, 1.0, None]}), pl.DataFrame({"x": [3.0, 5.0]})
    one = drifts(gaussian, before, after)["x"]
    assert_allclose(one.log_density_change, -((4 + 16) / 2 - 0.5) / 8)
    drift = Drift.of(gaussian, TableRows.of(gaussian, before), TableRows.of(gaussian, after))
    assert_allclose(np.mean(drift.evidence[1]), gaussian.score_samples(after).mean())


def test_page(model):
    report = po.report(model, LATER, against=EARLIER)
    page = check(report)
    assert [attributes["id"] for attributes in page.of("h2")] == ["columns", "evidence", "classes", "scores"]
    assert len(page.of("svg")) == 7
    change = model.score_samples(LATER).mean() - model.score_samples(EARLIER).mean()
    assert f"changes by {change:.3g}".replace("-", "−") in page.text
    for rows in (EARLIER, LATER):
        accuracy = percent(model.score(rows.drop("species"), rows["species"])).replace("\N{NARROW NO-BREAK SPACE}", " ")
        assert f"{accuracy} ±" in page.text
    without = check(po.report(model, LATER.drop("species"), against=EARLIER))
    assert [attributes["id"] for attributes in without.of("h2")] == ["columns", "evidence", "classes"]
    assert "recorded after" not in without.text
    assert "recorded before" in without.text


def test_many_columns_are_folded_and_what_they_hold_is_text():
    rng = np.random.default_rng(0)
    frame = pl.DataFrame(rng.normal(size=(80, 40)), schema=[EVIL, *(f"x{j}" for j in range(39))])
    frame = frame.with_columns(odd=pl.Series([EVIL, "b"] * 40), y=pl.Series(["u", EVIL] * 40))
    model = po.NaiveBayes().fit(frame, "y")
    report = po.report(model, frame.with_columns(odd=pl.lit("<i>")), against=frame)
    page = check(report)
    assert not page.of("i") or all("style" in mark for mark in page.of("i"))
    assert "26 more columns" in page.text
    assert "35 more pictures" in page.text
    assert "odd (80)" in page.text  # unseen in training
    assert report.html.index("26 more columns") < report.html.index("The other columns")


def test_tables_without_labels_numbers_or_density():
    words = pl.DataFrame({"message": ["win cash now", "meet at noon", "win a prize", "lunch at noon"] * 6})
    labelled = words.with_columns(y=pl.Series(["s", "h", "s", "h"] * 6))
    model = po.NaiveBayes(columns=po.Columns(text=["message"])).fit(labelled, "y")
    page = check(po.report(model, words[:6], against=words))
    assert "Columns of words are not compared one by one" in page.text
    discrete = pl.DataFrame({"a": ["u", "v"] * 20, "b": [None] * 20 + ["x"] * 20, "y": ["s", "h"] * 20})
    model = po.NaiveBayes(alpha=0.0).fit(discrete, "y")
    swapped = discrete.with_columns(a=pl.Series(["v", "u"] * 20))
    page = check(po.report(model, swapped, against=discrete[:20]))
    assert "b" in page.text
    check(po.report(model, discrete[:1], against=discrete[:1]))


def test_what_is_not_comparable_is_refused(model):
    with pytest.raises(ValueError, match="needs labels"):
        po.report(model, LATER.drop("species"))
    with pytest.raises(ValueError, match="out_of_fold is not used"):
        po.report(model, LATER, against=EARLIER, out_of_fold=model.predict_proba(LATER))
    with pytest.raises(ValueError, match="0 sample"):
        po.report(model, LATER, against=EARLIER[:0])
    with pytest.raises(ValueError, match="against is not used in a report on clusters"):
        po.report(po.MixtureModel(1).fit(PENGUINS.select("body_mass_g")), PENGUINS, against=PENGUINS)
    with pytest.raises(ValueError, match="address of a page"):
        po.report(model, LATER, against=EARLIER, explorer="javascript:alert(1)")


def test_every_section_and_row_opens_in_the_explorer(model):
    page = Page(po.report(model, EARLIER, explorer="pages/ex.html").html)
    links = [one["href"] for one in page.of("a") if one["href"].startswith("pages/ex.html")]
    assert links.count("pages/ex.html") == len(page.of("h2"))
    cases = [json.loads(unquote(link.split("#")[1]))["row"] for link in links if "#" in link]
    assert len(cases) == 15  # outliers, and explained rows
    strangest = EARLIER.row(int(model.score_samples(EARLIER).argmin()), named=True)
    del strangest["species"]
    assert cases[0] == {name: cell for name, cell in strangest.items() if cell is not None}


def test_command_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    EARLIER.write_csv("old.csv")
    LATER.write_csv("new.csv")
    LATER.drop("species").write_csv("unlabelled.csv")
    assert main(["fit", "old.csv", "--target", "species", "--model", "nb", "--output", "m.posteriori", "-q"]) == 0
    capsys.readouterr()
    assert main(["report", "m.posteriori", "unlabelled.csv", "--against", "old.csv"]) == 0
    assert capsys.readouterr().out == "wrote m.report.html\n"
    page = Page((tmp_path / "m.report.html").read_text(encoding="utf-8"))
    assert "species in unlabelled.csv against old.csv" in page.text
    assert "Drift of columns" in page.text
    assert main(["report", "m.posteriori", "new.csv", "-o", "page.html", "--explorer", "ex.html"]) == 0
    text = (tmp_path / "page.html").read_text(encoding="utf-8")
    fitted = po.load("m.posteriori")
    accuracy = 100 * fitted.score(LATER.drop("species"), LATER["species"])
    assert f"{accuracy:.0f} correctly" in Page(text).text
    assert 'href="ex.html#' in text
    assert capsys.readouterr().err == ""
    assert main(["report", "m.posteriori", "old.csv", "-o", "page.html", "--force"]) == 0
    assert "scored by the out-of-fold predictions of fit" in capsys.readouterr().err
    other = ["--model", "tan", "--ignore", "island", "--output", "n.posteriori", "-q"]
    assert main(["fit", "old.csv", "--target", "species", *other]) == 0
    capsys.readouterr()
    assert main(["report", "m.posteriori", "new.csv", "--against", "n.posteriori", "--force"]) == 0
    assert capsys.readouterr().err.startswith("note: replaced 'm.report.html'")
    assert "McNemar" in (tmp_path / "m.report.html").read_text(encoding="utf-8")
    assert main(["report", "m.posteriori", "unlabelled.csv", "-o", "page.html", "--force"]) == 2
    assert "species" in capsys.readouterr().err
    assert main(["report", "m.posteriori", "new.csv", "--against", "old.csv", "-o", "page.txt"]) == 2
    assert "name it .html" in capsys.readouterr().err


def test_two_models_are_compared_on_the_same_rows(model):
    other = po.NaiveBayes().fit(EARLIER.select("bill_length_mm", "sex", "species"), "species")
    report = po.report(model, LATER, against=other)
    page = check(report)
    assert [attributes["id"] for attributes in page.of("h2")] == ["scores", "differences", "features"]
    y = np.array([model.classes_.tolist().index(label) for label in LATER["species"]])
    log = [one.predict_log_proba(X)[np.arange(len(y)), y] for one, X in ((model, LATER), (other, LATER[OTHER]))]
    gain, error = (log[0] - log[1]).mean(), (log[0] - log[1]).std(ddof=1) / np.sqrt(len(y))
    assert f"lower log-loss, by {gain:.3g} ± {error:.2g} nats" in page.text
    right = [one.predict(X) == LATER["species"].to_numpy() for one, X in ((model, LATER), (other, LATER[OTHER]))]
    assert f"both are correct {(right[0] & right[1]).sum()}" in cells(report)
    assert f"only NaiveBayes {(~right[0] & right[1]).sum()}" in cells(report)
    assert f"{model.importance_.increase.max():.3f}" in page.text
    same = check(po.report(model, LATER, against=model))
    assert "TreeAugmentedNaiveBayes (against)" in same.text
    two = LATER.filter(pl.col("species") != "Gentoo")
    with pytest.raises(ValueError, match="different classes"):
        po.report(model, two, against=po.NaiveBayes().fit(two, "species"))
    with pytest.raises(ValueError, match="needs labels"):
        po.report(model, LATER.drop("species"), against=other)


def cells(report):
    return " ".join(re.sub(r"<[^>]*>", " ", report.html).split())


def test_summary_names_the_numbers(model):
    drift = Drift.of(model, TableRows.of(model, EARLIER, "species"), TableRows.of(model, LATER, "species"))
    text = re.sub(r"<[^>]*>", " ", "".join(map(str, drift_summary(drift))))
    assert f"{len(EARLIER)} → {len(LATER)}" in text
    assert len(list(drift_sections(drift))) == 4


def test_the_mean_change_of_huge_numbers_has_a_finite_error():
    before, after = np.array([-1e200, -3e200, 0.0]), np.array([1.0, 2.0])
    change, error = mean_change(before, after)
    assert change == pytest.approx(4e200 / 3)
    assert error == pytest.approx(1e200 * math.sqrt(np.var([1.0, 3.0, 0.0], ddof=1) / 3))
