"""The command explain: rows, facts, and pages that agree with the library."""

import json
import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.cli.fit_facts import hints
from posteriori.datasets import load_penguins
from posteriori.statistics.description import describe_scan
from posteriori.tables import IgnoredColumnWarning
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine()
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
PENGUINS = load_penguins()
MODELS = {"nb": po.NaiveBayes(), "pool": po.GenerativeClassifier(["nb", "tan"])}


@pytest.fixture(scope="module", autouse=True)
def folder(tmp_path_factory):
    position = tmp_path_factory.mktemp("explain")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(position)
        patch.setenv("COLUMNS", "100")
        for name, model in MODELS.items():
            po.save(model.fit(PENGUINS, "species"), name)
        PENGUINS.write_csv("rows.csv")
        PENGUINS.drop("species").write_csv("unlabelled.csv")
        yield position


@pytest.mark.parametrize("name", MODELS)
def test_facts_are_those_of_the_library_and_sum_to_the_posterior(name):
    found = json.loads(succeeds("explain", name, "rows.csv", "--row", "3,340-342", "--json"))["rows"]
    positions = [3, 340, 341, 342]
    model, rows = po.load(name), PENGUINS[positions]
    posterior = model.predict_proba(rows)
    assert [one["row"] for one in found] == positions
    assert [one["true"] for one in found] == rows["species"].to_list()
    assert [one["prediction"] for one in found] == model.predict(rows).tolist()
    assert_allclose([one["log_density"] for one in found], model.score_samples(rows))
    for one, p in zip(found, posterior, strict=True):
        constant = one["log_prior"]
        total = {c: constant[c] + sum(f["log_factor"][c] for f in one["features"]) for c in constant}
        exact = np.exp(np.array(list(total.values())) - np.logaddexp.reduce(list(total.values())))
        assert_allclose(exact, p, rtol=1e-9)
        assert_allclose(list(one["posterior"].values()), p, rtol=1e-9)
        odds = one["log_odds"]
        assert odds["total"] == pytest.approx(total[odds["class"]] - total[odds["against"]])
        assert odds["total"] == pytest.approx(odds["log_prior"] + sum(f["log_odds"] for f in one["features"]))


@pytest.mark.parametrize("name", MODELS)
def test_bars_point_to_the_class_that_a_feature_speaks_for(name):
    out = succeeds("explain", name, "rows.csv", "--row", "340")
    lines = re.findall(r"^.* ([+-]\d+\.\d{4}) +(█*)│(█*) *$", out, re.MULTILINE)
    assert len(lines) == 1 + PENGUINS.width - 1
    for nats, left, right in lines:
        assert not (left if float(nats) > 0 else right)
    assert max(len(left) + len(right) for _, left, right in lines) == 10
    assert out.startswith("row 340: Chinstrap, p = ")
    assert "true class: Chinstrap\nstrangeness 0." in out
    assert re.search(r"^prior ", out, re.MULTILINE)


def test_the_log_odds_of_a_pool_come_first():
    out = succeeds("explain", "pool", "rows.csv", "--row", "7")
    assert out.index("adds to the log-odds") < out.index("given class")
    relative = po.load("pool").explain(PENGUINS[7]).relative()
    assert relative.bayes_table() in out
    assert_allclose(relative.posterior, po.load("pool").predict_proba(PENGUINS[7]))
    assert_allclose(relative.log_factors.max(axis=1), 0.0, atol=1e-15)


def test_rows_without_labels_and_rows_in_other_order():
    out = succeeds("explain", "nb", "unlabelled.csv", "--row", "9,2")
    assert "true class" not in out
    assert re.findall(r"^row (\d+)", out, re.MULTILINE) == ["9", "2"]
    pl.concat([PENGUINS[:2], PENGUINS[2:3].with_columns(species=None)], how="vertical_relaxed").write_csv("gap.csv")
    assert "true class: not given" in succeeds("explain", "nb", "gap.csv", "--row", "2")


@pytest.mark.parametrize(
    ("rows", "part"), [("3-", "write 3, or"), ("a", "write 3, or"), ("340-400", "no row 400"), ("5-3", "names 0 rows")]
)
def test_refused_rows(rows, part):
    assert part in refused("explain", "nb", "rows.csv", "--row", rows)


def test_words_are_shown_where_a_column_is_text():
    rng = np.random.default_rng(0)
    kinds = np.where(rng.random(60) < 0.5, "spam", "ham")
    share = {"spam": np.r_[np.full(10, 9.0), np.ones(20)] / 110, "ham": np.full(30, 1 / 30)}
    words = np.array([f"w{j:02}" for j in range(30)])
    texts = [" ".join(rng.choice(words, 12, p=share[kind])) for kind in kinds]
    rows = pl.DataFrame({"message": texts, "size": rng.normal(size=60), "kind": kinds})
    rows.write_csv("mail.csv")
    out = succeeds(
        "fit",
        "mail.csv",
        "-t",
        "kind",
        "--model",
        "nb",
        "--column",
        "message=text",
        "-o",
        "mail.posteriori",
        "--folds",
        "2",
    )
    assert re.search(r"^message +text +0 +30 words", out, re.MULTILINE)
    model = po.load("mail.posteriori")
    (found,) = json.loads(succeeds("explain", "mail.posteriori", "mail.csv", "--row", "7", "--json"))["rows"]
    facts = found["features"][0]
    odds = model.explain(rows[7]).log_odds(label=found["log_odds"]["class"], against=found["log_odds"]["against"])
    assert facts["n_words"] == 12
    assert {one["word"]: one["log_odds"] for one in facts["words"]} == dict(list(odds.words["message"].items())[:10])
    shown = succeeds("show", "mail.posteriori")
    (line,) = re.findall(r"speak for spam: (.*)", shown)
    assert {f"w{j:02}" for j in range(10)} >= set(re.findall(r"w\d\d", line))
    assert "of it w" in succeeds("explain", "mail.posteriori", "mail.csv", "--row", "7")
    scan = po.scan("mail.csv", target="kind")
    with pytest.warns(IgnoredColumnWarning):
        schema = po.GaussianDiscriminant().fit(scan).schema_
    (hint,) = hints(scan, describe_scan(scan, ["message", "size"], "kind"), schema)
    assert hint.endswith("to use it, add --column message=text")
    error = refused(
        "fit", "mail.csv", "-t", "kind", "--model", "lda", "--column", "message=text", "-o", "lda.posteriori"
    )
    assert error == "--column: text needs --model pool or nb, not lda; remove it"
