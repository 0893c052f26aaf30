"""The page that fit prints: a few sentences that are true, and where the rest is."""

import json
import re
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import posteriori as po
from posteriori.cli.fit_page import what_matters
from posteriori.datasets import load_penguins
from posteriori.model_selection import HeldOut, in_words, out_of_fold
from tests.cli.command_line import CommandLine


def page(tmp_path, frame, *options, model="nb"):
    frame.write_csv(tmp_path / "t.csv")
    line = CommandLine(model=model, details=False, replaces=True)
    return line.succeeds("fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.posteriori", *options)


def noisy(n=300, share=0.3, seed=0):
    rng = np.random.default_rng(seed)
    y = rng.random(n) < share
    return pl.DataFrame({"a": rng.normal(size=n) + 1.5 * y, "b": rng.normal(size=n), "y": np.where(y, "bad", "good")})


@pytest.mark.parametrize("model", ["nb", "pool"])
def test_it_has_at_most_25_lines(tmp_path, model, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    rows = load_penguins().rename({"species": "y"})
    assert len(page(tmp_path, rows, model=model).splitlines()) <= 25


def test_its_figures_are_those_of_the_details(tmp_path):
    table = noisy()
    out = page(tmp_path, table)
    found = json.loads(page(tmp_path, table, "--json"))
    correct = 100 * found["cross_validation"]["model"]["accuracy"]
    assert f"Of 100 held-out rows, it predicts {correct:.0f} correctly" in " ".join(out.split())
    assert found["summary"][0] in " ".join(out.split())
    guessing = 100 * (table["y"] == "good").mean()
    assert f"always “good” would be correct for {guessing:.0f}" in " ".join(out.split())


def test_of_two_classes_the_rarer_one_is_asked_for(tmp_path):
    held_out = out_of_fold(po.NaiveBayes(), noisy(), "y")
    found = pl.DataFrame({"true": held_out.classes[held_out.y_true], "predicted": held_out.predictions})
    of_bad, called = found.filter(pl.col("true") == "bad"), found.filter(pl.col("predicted") == "bad")
    recall, precision = 100 * (of_bad["predicted"] == "bad").mean(), 100 * (called["true"] == "bad").mean()
    sentence = in_words.how_complete(held_out.figures, ["bad", "good"])
    assert sentence == (
        f"Of 100 that are “bad”, it finds {recall:.0f}; of 100 that it calls “bad”, {precision:.0f} are."
    )
    assert (
        in_words.how_complete(out_of_fold(po.NaiveBayes(), load_penguins(), "species").figures, ["A", "C", "G"]) == ""
    )


def test_the_rows_to_look_at_are_those_whose_label_is_wrong(tmp_path):
    rng = np.random.default_rng(1)
    y = np.repeat(["p", "q"], 100)
    table = pl.DataFrame({"a": rng.normal(size=200) + 9.0 * (y == "p"), "y": y})
    table[17, "y"], table[150, "y"] = "q", "p"
    out = page(tmp_path, table)
    assert re.search(r"Rows to look at: (17 and 150|150 and 17), as it gives their labels at most", out)
    command = re.search(r"posteriori (explain .*)$", out, re.MULTILINE)[1].split()
    assert "true class" in CommandLine().succeeds(*command)


def test_no_row_is_named_by_a_place_that_is_not_known(tmp_path):
    table = noisy().with_columns(y=pl.when(pl.int_range(pl.len()) == 5).then(None).otherwise("y"))
    table[17, "a"] = 9.0
    found = json.loads(page(tmp_path, table, "--json"))
    assert all(one["row"] is None for one in found["rows_to_look_at"])


def test_only_columns_that_matter_are_named(tmp_path):
    assert "What matters most: a; without it, it predicts worse." in page(tmp_path, noisy())
    rng = np.random.default_rng(0)
    out = page(tmp_path, pl.DataFrame({"a": rng.normal(size=200), "y": rng.choice(["p", "q"], 200)}))
    assert "It needs no single column" in out
    assert "carry no information about the target" in " ".join(out.split())


def measured(columns, groups=()):
    information = [{"feature": name, "nats": nats, "standard_error": error} for name, nats, error in columns]
    together = [{"features": list(names), "nats": nats, "standard_error": error} for names, nats, error in groups]
    return {"information": information, "information_of_groups": together}


@pytest.mark.parametrize(
    ("columns", "groups", "sentence"),
    [
        ([("a", 0.3, 0.01), ("b", 0.2, 0.01)], [], "What matters most: a and b."),
        ([("a", 0.3, 0.01), ("b", 0.2, 0.15), ("c", 0.1, 0.01)], [], "What matters most: a; so does 1 other column."),
        (
            [("a", 0.3, 0.2), ("b", 0.2, 0.01), ("c", 0.1, 0.01)],
            [],
            "What matters most: a (0.300 ± 0.200 nats, so not for certain); for certain, but less: b and c.",
        ),
        ([("a", 0.3, 0.2), ("b", -0.2, 0.01)], [], "It needs no single column"),
        (
            [("a", 0.3, 0.01), ("b", 0.01, 0.01), ("c", 0.01, 0.01)],
            [(("b", "c"), 0.5, 0.1)],
            "What matters most: b (with c) and a.",
        ),
        (
            [("b", 0.4, 0.01), ("c", 0.01, 0.01)],
            [(("b", "c"), 0.3, 0.01)],
            "What matters most: b; without it, it predicts worse.",
        ),
    ],
)
def test_the_greatest_column_or_group_is_named_first(columns, groups, sentence):
    assert what_matters(measured(columns, groups)).startswith(sentence)


nats, errors = st.floats(-1, 1), st.floats(0, 1)


@given(st.lists(st.tuples(nats, errors), min_size=1, max_size=6), st.tuples(nats, errors))
def test_no_smaller_column_stands_in_place_of_a_greater_one(columns, group):
    named = [(f"c{j}", *one) for j, one in enumerate(columns)]
    groups = [(("c0", "c1"), *group)] if len(columns) > 1 else []
    sentence = what_matters(measured(named, groups))
    each = [(name, nats, error) for name, nats, error in named] + [("c0 (with c1)", *one[1:]) for one in groups]
    if sentence.startswith("What matters most: "):
        greatest = {name for name, nats, _ in each if nats == max(one[1] for one in each)}
        assert any(sentence.removeprefix("What matters most: ").startswith(name) for name in greatest)
    else:
        firsts = [one for one in each if one[1] > 2 * one[2] and one[1] > 0]
        assert all(any(other[1] >= one[1] for other in each if other is not one) for one in firsts)


def test_columns_that_say_the_same_are_named_together(tmp_path):
    table = noisy().with_columns(cents=pl.col("a") * 100.0 + 7.0)
    assert "What matters most: a (with cents); without it, it predicts worse." in page(tmp_path, table, model="lda")
    details = CommandLine(model="lda", replaces=True).succeeds(
        "fit", tmp_path / "t.csv", "--target", "y", "-o", tmp_path / "m.posteriori", "--details"
    )
    assert re.search(r"a \(with cents\) +0\.\d{4} ± ", details)
    assert "columns that say the same may lose little each" in details
    group = po.load(tmp_path / "m.posteriori").importance_.groups[0]
    (found,) = json.loads(page(tmp_path, table, "--json", model="lda"))["information_of_groups"]
    assert found == {"features": ["a", "cents"], "nats": group.increase, "standard_error": group.standard_error}


def test_the_saved_pool_is_named_by_what_its_members_see(tmp_path):
    out = page(tmp_path, noisy(), model="pool")
    found = json.loads(page(tmp_path, noisy(), "--json", model="pool"))
    kept = [one["sees"] for one in found["candidates"] if one["weight"] and one["member"] != "pool"]
    assert f"a pool of {len(kept)} model" in out
    assert all(name in out for name in kept)
    assert "lower log-loss" not in out  # no second verdict beside it


def held_out(confidence, right, n=1000):
    """Return predictions of two classes with one confidence, of which some are right."""
    y_true = (np.arange(n) >= right * n).astype(int)
    posterior = np.tile([confidence, 1.0 - confidence], (n, 1))
    prior = np.full((n, 2), 0.5)
    return HeldOut(np.log(posterior), prior, y_true, np.ones(n), np.array(["a", "b"]), "made up")


@pytest.mark.parametrize(
    ("confidence", "right", "start"),
    [
        (0.8, 0.8, "Its probabilities can be trusted: on average it is 80 % sure, and right in 80 %"),
        (0.9, 0.7, "Its probabilities are too high: on average it is 90 % sure, and right in 70 %"),
        (0.7, 0.9, "Its probabilities are too cautious: on average it is 70 % sure, and right in 90 %"),
    ],
)
def test_probabilities_are_judged_by_how_often_they_are_right(confidence, right, start):
    assert in_words.how_trustworthy(held_out(confidence, right).figures).startswith(start)


def test_a_class_that_guessing_predicts_as_well_is_not_trusted():
    assert in_words.how_trustworthy(held_out(0.9, 0.3).figures).endswith("right in 30 %.")  # always “b”: 70 %


def test_a_class_that_is_never_predicted():
    assert in_words.how_complete(held_out(0.8, 0.9).figures, ["a", "b"]) == (
        "Of 100 that are “b”, it finds 0: it never predicts “b”. A threshold of 0.1, the share of “b”, in place of one "
        "half finds more."
    )


def test_a_threshold_is_named_where_few_of_a_class_are_found():
    figures = held_out(0.8, 0.9).figures
    assert in_words.threshold_to_find_more(figures) == pytest.approx(0.1)
    assert in_words.threshold_to_find_more(replace(figures, verdict="uninformative")) is None
    found = replace(figures, predicted=(figures.true[0], figures.true[1]), correct=figures.true)
    assert in_words.threshold_to_find_more(found) is None


@pytest.mark.parametrize("names", [("fine", "fraud"), (0, 1)])
def test_the_first_page_states_how_well_a_rare_class_is_ranked(names, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(1)
    fraud = rng.random(800) < 0.06
    rows = pl.DataFrame({"amount": rng.normal(size=800) + 1.2 * fraud, "y": np.array(names)[fraud.astype(int)]})
    rows.write_csv("t.csv")
    line = CommandLine(model="nb", details=False)
    page = line.succeeds("fit", "t.csv", "--target", "y", "-o", "m.posteriori")
    shown = "fraud" if names[1] == "fraud" else "y = 1"
    pattern = (
        rf"the first (5.*?) ?% of the rows hold ([\d.]+) of 100 that are “{shown}”: posteriori predict m\.posteriori … "
        rf"--sort {names[1]} --top N, or --threshold ({names[1]}=[\d.]+)"
    )
    _, found, option = re.search(pattern, page).groups()
    rows.drop("y").write_csv("new.csv")
    decided = pl.read_csv(line.succeeds("predict", "m.posteriori", "new.csv", "--threshold", option).encode())
    chosen = (decided["prediction"] == names[1]).to_numpy()
    assert abs(chosen.sum() - 40) < 15
    # The page is about held-out rows, which the model of all rows ranks nearly as well.
    assert abs(fraud[chosen].sum() / fraud.sum() - float(found) / 100) < 0.1
    usual = pl.read_csv(line.succeeds("predict", "m.posteriori", "new.csv").encode())["prediction"] == names[1]
    assert chosen.sum() > 5 * usual.sum()
    top = line.succeeds("predict", "m.posteriori", "new.csv", "--sort", names[1], "--top", 40)
    assert {*pl.read_csv(top.encode())["row"][:20]} <= {*np.flatnonzero(chosen)}


def test_the_rows_ranked_first_are_counted_as_by_hand():
    rng = np.random.default_rng(0)
    y_true = (rng.random(1000) < 0.08).astype(int)
    p = np.clip(0.08 + 0.1 * y_true + 0.04 * rng.normal(size=1000), 0.001, 0.45)
    posterior = np.column_stack([1 - p, p])
    prior = np.tile([0.92, 0.08], (1000, 1))
    found = HeldOut(np.log(posterior), prior, y_true, np.ones(1000), np.array(["a", "b"]), "made up")
    share, recall, threshold = in_words.first_ranked(found.figures, *found.judged)
    best = np.argsort(-p)[:50]
    assert share == pytest.approx(0.05)
    assert recall == pytest.approx(y_true[best].sum() / y_true.sum())
    assert threshold <= p[best[-1]] < threshold * 1.01
    guessing = held_out(0.8, 0.3)
    assert in_words.first_ranked(guessing.figures, *guessing.judged) is None


def test_the_interval_holds_the_accuracy_and_stays_within_bounds():
    text = in_words.how_good(held_out(0.8, 1.0, n=10).figures, ["a", "b"])
    assert "it predicts 100 correctly (72 to 100)" in text
    none = in_words.how_good(held_out(0.8, 0.0, n=5).figures, ["a", "b"])  # rounding gave "-0.0 to 43"
    assert "it predicts 0 correctly (0 to 43)" in none
