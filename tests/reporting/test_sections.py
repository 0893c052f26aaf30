"""Sections of the report hold the numbers of the model and of its held-out predictions."""

import re

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose
from sklearn.metrics import precision_score, recall_score, roc_auc_score

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.facts.columns import facts_of_rows
from posteriori.plotting.canvas import histogram_edges
from posteriori.plotting.reading import Scale, read_batch
from posteriori.reporting import features, markup
from posteriori.reporting.charts import Panel, nice_ticks, scale_ticks
from posteriori.reporting.column_charts import ColumnChart
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import importance_of, predict_held_out
from posteriori.reporting.rows import explained_section, labels_section, smallest_changes, strangest_section
from posteriori.reporting.scores import scores_section
from posteriori.reporting.trust import confusion_section, thresholds_section

PENGUINS = load_penguins().drop("year")


@pytest.fixture(scope="module")
def two():
    """Rows of two classes with three wrong labels, a model of them, and its out-of-fold predictions."""
    rows = PENGUINS.filter(pl.col("species") != "Gentoo")
    labels = rows["species"].to_list()
    for position in (3, 50, 200):
        labels[position] = "Chinstrap" if labels[position] == "Adelie" else "Adelie"
    rows = rows.with_columns(species=pl.Series(labels))
    subject = ReportData.of(po.NaiveBayes().fit(rows, "species"), rows, "species")
    return rows, subject, predict_held_out(subject)


def text(section):
    return re.sub(r"\s+", " ", re.sub(r"<[^>]*>", " ", str(section.write())).replace("\u202f", " "))


def test_thresholds_are_counts_of_the_held_out_rows(two):
    _, subject, evaluated = two
    written = text(thresholds_section(subject, evaluated))
    chosen, positive = evaluated.posterior[:, 1] >= 0.3, evaluated.y_true == 1
    precision, recall = precision_score(positive, chosen), recall_score(positive, chosen)
    assert f"30 % {chosen.sum()} {100 * chosen.mean():.0f} % {100 * precision:.0f} % {100 * recall:.0f} %" in written
    assert "greatest F1" in written


def test_scores_name_the_measures_of_the_second_class(two):
    _, subject, evaluated = two
    written = text(scores_section(subject, evaluated))
    positive = evaluated.y_true == 1
    assert f"AUC {roc_auc_score(positive, evaluated.posterior[:, 1]):.3g}" in written
    assert f"Recall {100 * recall_score(positive, evaluated.predicted == 1):.0f} % – of “Chinstrap”" in written


def test_wrong_labels_are_the_first_of_the_list(two):
    _, subject, evaluated = two
    written = text(labels_section(subject, evaluated))
    first = [int(row) for row in re.findall(r"row (\d+) (?:Adelie|Chinstrap)", written)][:3]
    assert set(first) == {3, 50, 200}
    count = int((evaluated.of_truth < 0.05).sum())
    assert f"below 5.0 % in {count} rows of {len(evaluated.y_true)}" in written


def test_a_change_changes_the_prediction_and_a_part_does_not(two):
    rows, subject, _ = two
    X, model = rows.drop("species"), subject.estimator
    usual = read_batch(model, X)
    changed = 0
    for position in (0, 60, 180):
        row = X[position : position + 1]
        for change in smallest_changes(model, usual, usual.rows([position]), range(len(X.columns))):
            dtype = X.schema[change.column]
            cell = change.after if dtype == pl.String else float(change.after)
            proba = model.predict_proba(row.with_columns(pl.lit(cell).cast(dtype).alias(change.column)))[0]
            assert proba.argmax() == change.label != model.predict_proba(row)[0].argmax()
            assert_allclose(proba[change.label], change.probability, rtol=1e-6)
            changed += 1
            if dtype != pl.String:  # one hundredth of the way does not change it yet
                near = float(change.before) + 0.01 * (cell - float(change.before))
                close = row.with_columns(pl.lit(near).cast(pl.Float64).alias(change.column))
                assert (model.predict(close) == model.predict(row)).all()
    assert changed > 2


def test_every_column_has_a_chart_and_important_ones_are_open(monkeypatch):
    monkeypatch.setattr(markup, "_MOST_PICTURES", 2)
    model = po.NaiveBayes().fit(PENGUINS, "species")
    subject = ReportData.of(model, PENGUINS, "species")
    section = features.features_section(subject, model.importance_)
    written = str(section.write())
    charts = written.count('class="chart"')
    assert charts == len(PENGUINS.columns) - 1
    assert written[: written.index("<details")].count('class="chart"') == 2
    monkeypatch.setattr(markup, "_BUDGET", 1)
    assert str(features.features_section(subject, model.importance_).write()).count('class="chart"') == 1


def test_columns_that_say_the_same_have_one_entry_together():
    table = PENGUINS.with_columns(land=pl.col("island") + "!")
    model = po.GenerativeClassifier(["tan", "binned weighted"]).fit(table, "species")
    (group,) = model.importance_.groups
    section = features.features_section(ReportData.of(model, table, "species"), model.importance_)
    shown = text(section).replace("\u00a0", " ")
    assert f"island and land {group.increase:.3f} ± {group.standard_error:.3f}" in shown
    both = po.report(model, table, "species", against=po.NaiveBayes().fit(table, "species"))
    assert "island and land" in both.html


def test_a_chart_holds_the_effect_and_the_shares_of_a_category():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    batch = read_batch(model, PENGUINS)
    component = np.array([model.classes_.tolist().index(label) for label in PENGUINS["species"]])
    chart = ColumnChart.of(model, 0, batch, component)
    names = [chart.feature.column.categories[code - 1] for code in chart.effect.cells]
    assert names == PENGUINS["island"].value_counts(sort=True)["island"].to_list()
    log_prob = model.feature_log_prob_[0][:, chart.effect.cells - 1]
    for c, against in chart.curves:
        assert against is None
        assert_allclose(chart.effect.log_odds(c)[0], (log_prob[c] - log_prob.mean(axis=0)), atol=1e-9)


def test_ticks_are_round_numbers_within_the_range():
    rng = np.random.default_rng(0)
    for _ in range(50):
        low, width = rng.normal() * 10.0 ** rng.integers(-4, 6), 10.0 ** rng.uniform(-4, 6)
        ticks = nice_ticks(low, low + width, 5)
        assert 1 <= len(ticks) <= 6
        assert low - 1e-6 * width <= ticks[0] <= ticks[-1] <= low + width * (1 + 1e-6)
    panel = Panel(10.0, 100.0, (0.0, 2.0), (-1.0, 1.0))
    assert panel.y(np.array([1.0, 0.0, -5.0])).tolist() == [10.0, 60.0, 110.0]

    assert scale_ticks(Scale(1.0), (float(np.arcsinh(-20.0)), float(np.arcsinh(500.0)))) == [
        -10.0,
        -1.0,
        0.0,
        1.0,
        10.0,
        100.0,
    ]


@pytest.mark.parametrize("bins", [8, 60])
@pytest.mark.parametrize("low", [0.0, -0.3, 7.0, 1e6, 2.0**53, 1e15 + 0.5, 2.0**127, -1e74])
@pytest.mark.parametrize("width", [0.0, 1e-9, 1.0, 100.0, 3e6])
def test_histograms_hold_every_number_in_bins_of_positive_width(bins, low, width):
    numbers = np.array([low, low + 0.3 * width, low + width])
    for x in (numbers, np.floor(numbers)):
        edges = histogram_edges(x, bins, whole=bool((x == np.floor(x)).all()))
        assert (np.diff(edges) > 0).all()
        assert np.histogram(x, edges)[0].sum() == 3
        assert len(edges) <= bins + 2


def test_positions_of_tiny_and_huge_numbers_are_finite():
    cells = np.concatenate([1e-300 * np.arange(1.0, 31.0), [1e70, -1e70]])
    scale = Scale.of(cells)
    assert scale.width is not None
    assert np.isfinite(scale.position(cells)).all()


def test_a_model_of_text_lists_the_words_of_each_class():
    spam, ham = ["win cash now please reply", "win a prize now"], ["meet me at noon today", "me and you meet at lunch"]
    texts = [cell for pair in zip(spam, ham, strict=True) for cell in pair] * 8
    rows = pl.DataFrame({"message": texts, "kind": ["spam", "ham"] * 16})
    subject = ReportData.of(po.NaiveBayes(columns=po.Columns(text=["message"])).fit(rows, "kind"), rows, "kind")
    evaluated = predict_held_out(subject, None)
    written = text(features.features_section(subject, importance_of(subject, evaluated))).replace("\u00a0", " ")
    assert "words that speak against it" not in written  # those for the other class
    assert "Words of message: the most characteristic of 14 words" in written
    assert re.search(r"ham at \(× [\d.]+, 16\); me \(× [\d.]+, 16\); meet", written)
    assert "of it win × " in text(explained_section(subject, evaluated))
    strangest_section(subject, facts_of_rows(subject.estimator, rows))  # no cell of words is unusual


def test_with_several_classes_the_words_against_each_are_listed():
    texts = ["aa bb bb", "cc bb", "dd dd bb"] * 10
    rows = pl.DataFrame({"message": texts, "kind": ["x", "y", "z"] * 10})
    subject = ReportData.of(po.NaiveBayes(columns=po.Columns(text=["message"])).fit(rows, "kind"), rows, "kind")
    written = text(features.features_section(subject, importance_of(subject, predict_held_out(subject, None))))
    assert re.search(r"x aa.\(×.[\d.]+,.10\).*dd.\(÷.[\d.]+,.20\)", written)


def test_the_confusion_matrix_has_numbers_where_names_do_not_fit():
    def heads(names):
        rng = np.random.default_rng(0)
        y = rng.integers(len(names), size=200)
        rows = pl.DataFrame({"x": rng.normal(size=200) + y, "y": [names[k] for k in y]})
        subject = ReportData.of(po.NaiveBayes().fit(rows, "y"), rows, "y")
        written = str(confusion_section(subject, predict_held_out(subject)).write())
        return written[: written.index("</thead>")], written

    narrow, _ = heads(["a", "b", "c"])
    assert 'class="key"' not in narrow
    medium, rows = heads(["Sinus bradycardia", "Hypothyroidism"])
    assert '<span class="key">1</span><span class="name">Hypothyroidism</span>' in medium
    assert '<span class="key">2 </span>Sinus bradycardia' in rows
    wide, rows = heads([f"unpronounceable{k}" for k in range(7)])
    assert "unpronounceable" not in wide
    assert "7  unpronounceable6" in rows


def test_the_size_of_sets_is_that_of_the_held_out_rows():
    table = load_penguins().select("island", "sex", "species").drop_nulls()
    held_out = po.model_selection.out_of_fold(po.NaiveBayes(), table, "species")
    own = 1.0 - held_out.of_truth
    limit = np.sort(own)[int(np.ceil((len(own) + 1) * 0.9)) - 1]
    size = ((1.0 - held_out.posterior) <= limit + 1e-12).sum(axis=1).mean()
    page = po.report(po.NaiveBayes().fit(table, "species"), table, "species", out_of_fold=held_out).html
    row = page[page.index("Size of 90") :].split("</td>")[0]
    assert float(row.split("<td>")[1]) == pytest.approx(size, abs=0.005)
