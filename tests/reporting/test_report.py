"""The report: whole, in plain HTML, true to the metrics, safe from what a table may hold, and fine in a browser."""

from __future__ import annotations

import datetime as dt
import html
import json
import re
import subprocess
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import matplotlib as mpl
import matplotlib.image
import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.classifiers.training_record import record_rows
from posteriori.cli import main
from posteriori.datasets import load_penguins
from posteriori.model_selection import metrics, out_of_fold
from posteriori.reporting import markup
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import predict_held_out
from posteriori.reporting.markup import percent
from posteriori.reporting.rows import choose_examples
from posteriori.reporting.scores import candidates_section, weights_section
from posteriori.support.markup import element
from tests.javascript.engines import chromium

PENGUINS = load_penguins()
BEFORE_TREE = ["calibration", "confusion", "thresholds", "features"]
AFTER_TREE = ["strange", "labels", "explained"]
VOID = {"meta", "link", "br"}


class Page(HTMLParser):
    """What a page holds: its elements in order, each with its attributes, its ids and its text."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.texts = [], [], []
        self.feed(str(text))
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open
        assert self.open.pop() == tag

    def handle_data(self, data):
        if not self.open or self.open[-1] != "style":
            self.texts.append(data)

    @property
    def text(self):
        return " ".join("".join(self.texts).replace("\N{NARROW NO-BREAK SPACE}", " ").split())

    def of(self, *names):
        return [attributes for tag, attributes in self.elements if tag in names]

    @property
    def ids(self):
        return [attributes["id"] for _, attributes in self.elements if "id" in attributes]


def check(report):
    """Check what is true of every report, and return its page."""
    page = Page(report.html)
    assert len(page.ids) == len(set(page.ids))
    for tag, attributes in page.elements:
        assert tag not in ("script", "iframe", "img", "object", "embed", "base", "form")
        assert not [name for name in attributes if name.startswith("on") or name == "src"]
        link = attributes.get("href", attributes.get("xlink:href", "#"))
        if link.startswith("#"):
            assert link == "#" or link[1:] in page.ids
        else:
            assert link.startswith("data:")
    assert not set(report.html.split("url(")[1:]) - {part for part in report.html.split("url(") if part[0] == "#"}
    assert len(page.of("h1")) == 1
    assert [attributes["id"] for attributes in page.of("h2")] == [attributes["href"][1:] for attributes in page.of("a")]
    assert len(page.of("caption")) == len(page.of("table"))
    assert all(cell["scope"] in ("row", "col") for cell in page.of("th"))
    assert all(picture["role"] == "img" and picture["aria-label"] for picture in page.of("svg"))
    assert "nan" not in page.text.lower().split()
    return page


@pytest.fixture(scope="module")
def penguins():
    model = po.TreeAugmentedNaiveBayes().fit(PENGUINS, "species")
    scored = out_of_fold(po.TreeAugmentedNaiveBayes(), PENGUINS, "species")
    return model, scored, po.report(model, PENGUINS, "species", title="Penguins")


def test_sections(penguins):
    page = check(penguins[2])
    found = [attributes["id"] for attributes in page.of("h2")]
    assert found == ["table", "scores", *BEFORE_TREE, "tree", *AFTER_TREE]
    assert page.text.count("Bayes’ rule, written out") == len(page.of("article")) == 5
    assert "11 (3.2 %)" in page.text  # missing cells of sex


def test_nothing_is_fetched(penguins):
    html = penguins[2].html
    assert "http:" not in html
    assert "https:" not in html
    assert "@import" not in html
    assert "default-src 'none'" in html.replace("&#x27;", "'")


def test_numbers_are_those_of_the_metrics(penguins):
    _, scored, report = penguins
    text = Page(report.html).text
    assert f"{metrics.log_loss(scored.y_true, scored.posterior):.3g}" in text
    assert f"{metrics.brier_score(scored.y_true, scored.prior):.3g}" in text
    accuracy = 100 * metrics.accuracy(scored.y_true, scored.posterior)
    assert f"{accuracy:.1f} correctly" in text
    for row in metrics.confusion_matrix(scored.y_true, scored.posterior):
        assert all(str(cell) in text for cell in row if cell)


def test_the_same_report_is_written_the_same(penguins):
    again = po.report(penguins[0], PENGUINS, "species", out_of_fold=penguins[1], title="Penguins")
    assert again.html == penguins[2].html


def test_saved_and_shown(penguins, tmp_path):
    report = penguins[2]
    report.save(tmp_path / "out.html")
    assert (tmp_path / "out.html").read_text(encoding="utf-8") == report.html
    frame = Page(report._repr_html_())
    assert frame.of("iframe")[0]["srcdoc"] == report.html
    assert "Penguins" in repr(report)
    with pytest.raises(OSError, match="folder"):
        report.save(tmp_path)
    with pytest.raises(FileNotFoundError, match="no folder"):
        po.report(penguins[0], PENGUINS, "species", tmp_path / "nowhere" / "out.html")


# Any table ---------------------------------------------------------------------------------------------------------

EVIL = "<script>alert(1)</script>"


def test_what_a_table_holds_is_text():
    rng = np.random.default_rng(0)
    label = np.array([f"</title>{EVIL}", "a & b 'c' \"d\""])[rng.integers(2, size=60)]
    frame = pl.DataFrame(
        {
            EVIL: [f"<img src=x onerror=alert({k})>" for k in rng.integers(3, size=60)],
            "$x$ --> <b> url(http) 0.123456": rng.normal(size=60) + (label == label[0]),
            "$a_{": rng.normal(size=60),
            "\u0436\u4e2d\U0001f427": ["\x01", None] * 30,
            "y": label,
        }
    )
    report = po.report(po.TreeAugmentedNaiveBayes().fit(frame, "y"), frame, "y", title=EVIL)
    page = Page(report.html)
    assert not page.of("script", "img")
    assert not [mark for mark in page.of("b") if "style" not in mark]
    assert "<script>" not in report.html
    assert f"</title>{EVIL}" in page.text
    assert "$x$ --> <b> url(http) 0.123456" in page.text
    assert "<img src=x onerror=alert(1)>" in page.text


# What is judged ----------------------------------------------------------------------------------------------------


def test_what_is_given_is_what_is_judged(penguins):
    model, scored, _ = penguins
    subject = ReportData.of(model, PENGUINS, "species")
    assert_allclose(predict_held_out(subject).posterior, predict_held_out(subject, scored).posterior)
    left_out = po.model_selection.leave_one_out(po.NaiveBayes().fit(PENGUINS, "species"), PENGUINS, "species")
    assert_allclose(predict_held_out(subject, left_out).posterior, left_out.posterior)
    assert "all others" in predict_held_out(subject, left_out).how
    proba = model.predict_proba(PENGUINS)
    assert_allclose(predict_held_out(subject, proba).posterior, proba)
    with pytest.raises(ValueError, match="of shape"):
        predict_held_out(subject, proba[:5])
    with pytest.raises(ValueError, match="no row is of class 'Chinstrap', which no refit predicts"):
        po.report(po.NaiveBayes().fit(PENGUINS, "species"), PENGUINS.filter(pl.col("species") != "Chinstrap"))
    with pytest.raises(ValueError, match="not of these rows"):
        predict_held_out(ReportData.of(model, PENGUINS.reverse(), "species"), scored)


def test_standard_error_is_that_of_a_mean(penguins):
    evaluated = predict_held_out(ReportData.of(penguins[0], PENGUINS, "species"), penguins[1])
    right = evaluated.right.astype(float)
    assert_allclose(evaluated.standard_error(right), right.std() / np.sqrt(len(right)))


def test_a_model_that_was_given_is_not_refitted():
    known = {"x": {"mean": [0.0, 3.0], "sd": [1.0, 1.0]}}
    model = po.NaiveBayes.from_parameters(priors={"a": 0.5, "b": 0.5}, gaussian=known)
    X = pl.DataFrame({"x": [0.0, 0.5, 3.0, 2.0]})
    assert "were given" in check(po.report(model, X, ["a", "a", "b", "b"])).text


def test_what_is_no_classifier_of_posteriori_is_refused():
    with pytest.raises(TypeError, match="ChowLiuTree cannot be reported on"):
        po.report(po.ChowLiuTree().fit(PENGUINS.select("body_mass_g", "sex")), PENGUINS, "species")


def test_examples_are_what_they_are_called(penguins):
    subject = ReportData.of(penguins[0], PENGUINS, "species")
    evaluated = predict_held_out(subject, penguins[1])
    examples = {example.title: example.position for example in choose_examples(subject, evaluated)}
    assert len(set(examples.values())) == 5
    wrong = np.flatnonzero(~evaluated.right)
    assert examples["Most confident and wrong"] in wrong
    assert evaluated.right[examples["Most confident and correct"]]
    assert examples["Strongest outlier"] == penguins[0].score_samples(PENGUINS).argmin()


# Pools ---------------------------------------------------------------------------------------------------------------

RESULTS = {
    "member": ["naive <Bayes>", "TAN", "QDA", "pool"],
    "log_loss": [0.31, 0.12, np.nan, 0.1],
    "log_loss_se": [0.03, 0.01, np.nan, 0.01],
    "accuracy": [0.9, 0.95, np.nan, 0.96],
    "accuracy_se": [0.01, 0.01, np.nan, 0.01],
    "brier": [0.2, 0.1, np.nan, 0.09],
    "auc": [0.98, 0.99, np.nan, 0.99],
    "calibration_error": [0.05, 0.02, np.nan, 0.01],
    "weight": [0.2, 0.9, 0.0, np.nan],
}


def test_candidates():
    page = Page(candidates_section(RESULTS, {"QDA": "a column is <constant>"}).write())
    assert page.text.index("pool") < page.text.index("TAN") < page.text.index("naive <Bayes>") < page.text.index("QDA")
    assert "QDA: a column is <constant>" in page.text
    assert "AUC" in page.text
    assert "seconds" not in page.text
    few = Page(candidates_section({"member": ["a"], "log_loss": [0.5], "fit_seconds": [1.25]}).write())
    assert "seconds" in few.text
    assert "AUC" not in few.text


def test_weights():
    page = Page(weights_section({"TAN": 0.4, "LDA": 0.8}, [0.7, -0.7], ["a", "b"]).write())
    assert page.text.index("LDA") < page.text.index("TAN")
    assert "“a” is the largest: its odds are multiplied by 2" in page.text
    assert "bias" not in Page(weights_section({"TAN": 1.0}, [0.0, 0.0], ["a", "b"]).write()).text


def test_a_pool(monkeypatch):
    monkeypatch.setattr(markup, "_MOST_PICTURES", 1)
    pool = po.GenerativeClassifier(["tan", "lda"]).fit(PENGUINS, "species")
    page = check(po.report(pool, PENGUINS, "species"))
    ids = [attributes["id"] for attributes in page.of("h2")]
    assert ids == ["table", "scores", "candidates", "weights", *BEFORE_TREE, "tree", *AFTER_TREE]
    assert "The figure shows the member tan of the pool." in page.text
    assert "mixture of the members by their weights" in page.text
    assert page.text.count("Bayes’ rule, written out for the member") == 5
    information, error = pool.importance_.increase, pool.importance_.standard_error
    for j in np.argsort(-information)[:3]:
        assert f"{pool.schema_.names[j]}{information[j]:.3f} ± {error[j]:.3f}" in page.text
    pool.fitted_ = replace(pool.fitted_, out_of_fold=None)
    with pytest.raises(ValueError, match="give that as out_of_fold"):
        po.report(pool, PENGUINS, "species")


def test_a_common_value_far_from_the_mean_is_not_strange():
    rng = np.random.default_rng(0)
    debt = np.where(rng.random(500) < 0.82, 0.0, rng.exponential(2000.0, 500))
    rows = pl.DataFrame({"debt": debt, "age": rng.normal(40.0, 10.0, 500), "y": rng.integers(0, 2, 500)})
    for model in (po.GaussianDiscriminant(), po.GenerativeClassifier(["lda", "binned weighted"])):
        page = check(po.report(model.fit(rows, "y"), rows, "y"))
        strange = page.text.split("unusual cells")[1].split("The median of log p(x)")[0]
        assert "debt = 0 " not in strange
        assert re.search(r"(debt|age) = \S+ \(90 % of cells are from", strange)


def test_under_a_heading_stands_the_answer_that_it_is_about():
    rng = np.random.default_rng(2)
    y = rng.integers(0, 2, 60)
    rows = pl.DataFrame(rng.normal(0.5 * y, size=(6, 60)).T).with_columns(y=pl.Series(y).cast(pl.String))
    model = po.GaussianDiscriminant(pooling="per_class").fit(rows, "y")
    subject = ReportData.of(model, rows, "y")
    evaluated = predict_held_out(subject)
    page = check(po.report(model, rows, "y"))
    for title, position in ((one.title, one.position) for one in choose_examples(subject, evaluated)):
        part = page.text.split(f"{title}: row {subject.labelled[position]}")[1].split("Its factors")[0]
        said = " ".join(percent(evaluated.confidence[position]).replace("\N{NARROW NO-BREAK SPACE}", " ").split())
        truth, predicted = (model.classes_[k] for k in (evaluated.y_true[position], evaluated.predicted[position]))
        assert f"True class: {truth}. Held-out predictions: {predicted}: {said}" in part


def test_columns_of_noise_are_said_to_tell_nothing():
    rng = np.random.default_rng(1)
    rows = pl.DataFrame({"u": rng.normal(size=300), "y": rng.random(300) < 0.2})
    page = check(po.report(po.NaiveBayes().fit(rows, "y"), rows, "y"))
    assert "These columns carry no information about y: log-loss" in page.text
    assert "overconfident" not in page.text


def test_markup_is_kept_and_text_is_escaped():
    inner = element("b", "<&>")
    assert element("p", inner, "<", 1, None, title='"<') == ('<p title="&quot;&lt;"><b>&lt;&amp;&gt;</b>&lt;1</p>')


# The command line ----------------------------------------------------------------------------------------------------


def test_fit_writes_a_report(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    fit = ["fit", "penguins.csv", "--target", "species", "--model", "nb"]
    assert main([*fit, "--report", "out.html"]) == 0
    assert "\nreport: out.html\n" in capsys.readouterr().out
    page = Page((tmp_path / "out.html").read_text(encoding="utf-8"))
    assert "species in penguins.csv" in page.text
    assert main([*fit, "--force", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["report"] is None


@pytest.mark.parametrize(
    ("position", "message"),
    [
        ("out.txt", "name it .html"),
        ("nowhere/out.html", "no folder"),
        ("folder.html", "is a folder"),
    ],
)
def test_a_report_without_a_place_is_refused_before_any_work(position, message, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "folder.html").mkdir()
    arguments = ["fit", "penguins.csv", "--target", "species", "--output", "m.posteriori", "--report", position]
    assert main(arguments) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "m.posteriori").exists()


# A browser -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
    """Return a function that opens a page in a real browser: its picture goes to a file, its log is returned."""
    path, profile = chromium(), tmp_path_factory.mktemp("profile")

    def visit(page, picture, width, dark=False):
        command = [path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--hide-scrollbars"]
        command += ["--host-resolver-rules=MAP * ~NOTFOUND", "--enable-logging=stderr", "--v=0"]
        command += [f"--user-data-dir={profile}", f"--window-size={width},3000", f"--screenshot={picture}"]
        command += ["--blink-settings=preferredColorScheme=0"] if dark else []
        done = subprocess.run([*command, page.as_uri()], capture_output=True, text=True, timeout=120, check=False)
        assert picture.exists(), done.stderr
        return [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    return visit


@pytest.mark.parametrize(("width", "dark"), [(1200, False), (400, True)])
def test_a_browser_shows_it_without_a_word_of_complaint(penguins, browser, tmp_path, width, dark):
    page, picture = tmp_path / "out.html", tmp_path / "out.png"
    penguins[2].save(page)
    assert browser(page, picture, width, dark) == []
    pixels = mpl.image.imread(picture)[..., :3]
    assert pixels.shape[1] == width
    ink = pixels.max(axis=2) > 0.5 if dark else pixels.min(axis=2) < 0.5
    assert 0.02 < ink.mean() < 0.4  # not blank, and light on dark where the reader prefers it


def test_a_browser_would_complain(browser, tmp_path):
    page = tmp_path / "out.html"
    page.write_text("<!DOCTYPE html><title>x</title><script>console.error('complaint')</script>")
    assert any("complaint" in line for line in browser(page, tmp_path / "out.png", 400))


def _text_of(*arguments, path):
    assert main([*map(str, arguments), "-o", str(path), "--force"]) == 0
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]*>", "", path.read_text())))


def test_training_rows_are_called_so_on_every_page(tmp_path, capsys):
    """A model that is reported on its training rows, on other rows, beside another model, and as drift."""
    seen, other, model = tmp_path / "seen.csv", tmp_path / "other.csv", tmp_path / "model.posteriori"
    labelled = PENGUINS.select("species", "bill_length_mm", "island")
    labelled[::2].write_csv(seen)
    labelled[1::2].write_csv(other)
    assert main(["fit", str(seen), "-t", "species", "-o", str(model), "--model", "nb"]) == 0
    page = tmp_path / "page.html"

    trained = _text_of("report", model, seen, path=page)
    assert "Of 100 held-out rows, it predicts" in trained
    assert "These are training rows, and each was predicted by a model trained on the other folds" in trained

    alone = po.load(model)
    alone.fitted_ = alone.fitted_.with_record(fingerprints=None, posteriors=None)
    record_rows(alone, labelled[::2].drop("species"))
    po.save(alone, tmp_path / "alone.posteriori")
    trained = _text_of("report", tmp_path / "alone.posteriori", seen, path=page)
    assert "held-out" not in trained.lower().split("feature importance")[0]
    assert "Of 100 training rows, it predicts" in trained
    assert "100 % of the rows are among those that the model was trained on" in trained

    held_out = _text_of("report", model, other, path=page)
    assert "Of 100 held-out rows, it predicts" in held_out
    assert "too optimistic" not in held_out

    assert "was trained on 100 % of these rows" in _text_of("report", model, seen, "--against", model, path=page)
    assert "Neither model was trained on these rows" in _text_of("report", model, other, "--against", model, path=page)
    assert "trained on 100 % of the rows before" in _text_of("report", model, other, "--against", seen, path=page)
    capsys.readouterr()


def test_given_probabilities_are_not_called_held_out():
    model = po.NaiveBayes().fit(PENGUINS, "species")
    subject = ReportData.of(model, PENGUINS, "species")
    evaluated = predict_held_out(subject, model.predict_proba(PENGUINS))
    assert evaluated.rows_are == "rows"
    assert "If their model was trained on these rows, they are too optimistic" in evaluated.how


def test_rows_whose_dates_have_other_parts_are_reported_on():
    hours = [dt.datetime(2020 + k % 3, 1 + k % 7, 1 + k, k % 24) for k in range(28)]
    rows = pl.DataFrame({"when": hours, "x": np.random.default_rng(0).normal(size=28)})
    model = po.NaiveBayes().fit(rows, ["a", "b"] * 14)
    assert "when.hour" in model.schema_.names
    same_day = rows.with_columns(when=pl.lit(dt.datetime(2020, 1, 1)))
    with pytest.warns(UserWarning, match="when"):
        page = check(po.report(model, same_day, ["a", "b"] * 14))
    assert "when.hour" in page.text


def test_an_unknown_column_is_warned_of_once_and_labels_never():
    rows = load_penguins().drop_nulls()
    model = po.NaiveBayes().fit(rows.drop("species"), rows["species"])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        po.report(model, rows, "species")
        assert [str(one.message) for one in caught] == []
        po.report(model, rows.with_columns(note=1), rows["species"])
    assert len([one for one in caught if "was not trained on; ignored" in str(one.message)]) == 1
