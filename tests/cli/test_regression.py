"""A target of numbers on the command line: fit, predict, evaluate, show and cv, and what refuses its model."""

import json
import re
from pathlib import Path

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.facts.numbers import number_sentences
from posteriori.tables.progress import report_progress
from tests.cli.command_line import CommandLine

COMMAND_LINE = CommandLine(replaces=True, details=False)
run, succeeds, refused = COMMAND_LINE.run, COMMAND_LINE.succeeds, COMMAND_LINE.refused
FIT = ("fit", "penguins.csv", "--target", "body_mass_g")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Write a table, and the model that fit makes of it; return the folder, and what fit printed."""
    path = tmp_path_factory.mktemp("numbers")
    load_penguins().write_csv(path / "penguins.csv")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(path)
        code, out, err = run(*FIT, "-o", "mass.posteriori")
    assert code == 0, err
    return path, out, err


@pytest.fixture(autouse=True)
def inside(folder, monkeypatch):
    monkeypatch.chdir(folder[0])


def test_fit_predicts_a_quantity_as_a_number_and_says_so(folder):
    _, out, err = folder
    assert "'body_mass_g' holds numbers, so the model predicts a number; --classes 4 cuts it into classes" in err
    assert "2 rows without 'body_mass_g' are left out" in err
    known = load_penguins().drop_nulls("body_mass_g")
    held = po.GenerativeRegressor().fit(known, "body_mass_g").out_of_fold_
    errors, scores = np.abs(held.y - held.density.median), held.scores
    assert f"Half of its predictions are within {float(f'{np.median(errors):.3g}'):g} of" in out
    assert f"90% intervals hold {100 * scores['coverage']:.0f} of 100" in out
    assert f"wrong by {scores['mae']:.0f} on average; always saying 4,050 would be" in out
    assert f"explains {100 * scores['r2']:.0f} % of the variance" in out
    assert "saved to mass.posteriori" in out


def test_numbers_are_written_as_a_person_writes_them():
    scores = {"coverage": 0.906, "width": 81_234.5, "mae": 31_415.9, "r2": -0.1}
    found = {"scores": scores, "target": "price", "median_absolute_error": 12_430.0}
    text = " ".join(number_sentences(found | {"always_median": {"value": 180_000.0, "mae": 54_012.0}}))
    for part in ("within 12,400 of", "hold 91 of 100", "81,200 wide", "saying 180,000 would be wrong by 54,000"):
        assert part in text
    assert "explains nothing" in text


def test_predict_writes_mean_and_interval_or_quantiles():
    model, rows = po.load("mass.posteriori"), load_penguins()
    succeeds("predict", "mass.posteriori", "penguins.csv", "--append", "-o", "p.parquet")
    written = pl.read_parquet("p.parquet")
    assert written.columns == [*rows.columns, "prediction", "prediction_low", "prediction_high"]
    features = rows.drop("body_mass_g")
    np.testing.assert_allclose(written["prediction"], model.predict(features))
    np.testing.assert_allclose(written[:, -2:].to_numpy(), model.predict_interval(features, 0.9))
    succeeds("predict", "mass.posteriori", "penguins.csv", "--coverage", "0.5", "-o", "p.csv")
    np.testing.assert_allclose(pl.read_csv("p.csv")[:, 1:].to_numpy(), model.predict_interval(features, 0.5))
    text = succeeds("predict", "mass.posteriori", "penguins.csv", "--quantiles", "0.1,0.9", "--with", "sex")
    found = pl.read_csv(text.encode())
    assert found.columns == ["sex", "prediction", "quantile_0.1", "quantile_0.9"]
    np.testing.assert_allclose(found[:, 2:].to_numpy(), model.predict_quantiles(features, [0.1, 0.9]))


def test_evaluate_and_show_have_scores_and_members(folder):
    code, out, err = run("evaluate", "mass.posteriori", "penguins.csv", "--json")
    found = json.loads(out)
    assert code == 0
    assert "too optimistic" in err
    assert (found["rows"], found["rows_without_label"], found["target"]) == (342, 2, "body_mass_g")
    known = load_penguins().drop_nulls("body_mass_g")
    assert found["scores"]["r2"] == pytest.approx(po.load("mass.posteriori").score(known, "body_mass_g"))
    assert "CRPS" in succeeds("evaluate", "mass.posteriori", "penguins.csv")
    shown = json.loads(succeeds("show", "mass.posteriori", "--json"))
    assert [one["member"] for one in shown["members"]] == ["forest", "additive", "kernel", "pool"]
    page = succeeds("show", "mass.posteriori")
    assert all(name in page for name in ("body_mass_g", "kernel", "flipper_length_mm"))


def test_explain_writes_the_mean_as_a_sum():
    model, rows, places = po.load("mass.posteriori"), load_penguins(), [3, 7]
    found = json.loads(succeeds("explain", "mass.posteriori", "penguins.csv", "--row", "3,7", "--json"))["rows"]
    explained = model.explain(rows[places].drop("body_mass_g"))
    for one, place, mean, ends in zip(
        found, places, explained.mean, model.predict_interval(rows[places].drop("body_mass_g")), strict=True
    ):
        assert one["row"] == place
        assert one["true"] == rows["body_mass_g"][place]
        assert one["prediction"] == pytest.approx(mean)
        assert one["base"] + sum(term["part"] for term in one["features"]) == pytest.approx(mean)
        assert one["interval"] == pytest.approx(ends)
        assert one["width"] == pytest.approx(ends[1] - ends[0])
        names = {term["feature"] for term in one["features"]} | {*one["not_known"]}
        assert names == {*rows.columns} - {"body_mass_g"}
    assert len(found[0]["not_known"]) == 4
    np.testing.assert_allclose(
        [term["width_change"] for term in found[1]["features"]], explained.width_changes[1, explained.ranked(1)]
    )


def test_explain_prints_what_moves_the_mean_and_the_interval(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    out = succeeds("explain", "mass.posteriori", "penguins.csv", "--row", "3,7")
    first, second = out.split("row 7: ")
    assert "row 3: body_mass_g = 3" in first
    assert "true body_mass_g: not given" in first
    assert "4 columns not known" in first
    assert "true body_mass_g: 4675" in second
    bars = re.findall(r"^.* ([+-][\d.]+) +(█*)│(█*) +([+-]?[\d.]+) *$", second, re.MULTILINE)
    assert len(bars) == 7
    for part, left, right, _ in bars:
        assert not (left if float(part) > 0 else right)
    error = refused("explain", "mass.posteriori", "penguins.csv", "--row", "999")
    assert "there is no row 999" in error


@pytest.mark.parametrize("name", ["additive", "kernel"])
def test_sums_alone_are_explained_too(name):
    model = {"additive": po.AdditiveRegressor(), "kernel": po.KernelRegressor()}[name]
    po.save(model.fit(load_penguins().drop_nulls("body_mass_g"), "body_mass_g"), f"{name}.posteriori")
    load_penguins().drop("body_mass_g").write_csv("unlabelled.csv")
    (one,) = json.loads(succeeds("explain", f"{name}.posteriori", "unlabelled.csv", "--json"))["rows"]
    assert one["base"] + sum(term["part"] for term in one["features"]) == pytest.approx(one["prediction"])
    assert "true" not in one


def test_importance_stands_in_show_in_fit_and_in_the_plot(folder):
    pytest.importorskip("matplotlib")
    found = po.load("mass.posteriori").importance_
    shown = json.loads(succeeds("show", "mass.posteriori", "--json"))
    assert [one["feature"] for one in shown["importance"]] == [found.names[j] for j in found.order]
    assert [one["crps"] for one in shown["importance"]] == pytest.approx(found.increase[found.order])
    assert shown["importance_rows"] == {"rows": 342, "held_out": True}
    assert "CRPS added when the column is unknown, on 342 held-out rows" in succeeds("show", "mass.posteriori")
    assert f"What matters most: {found.names[found.order[0]]}" in folder[1]
    ax = po.plotting.plot_feature_information(po.load("mass.posteriori"), most=2)
    assert [tick.get_text() for tick in ax.get_yticklabels()] == [found.names[j] for j in found.order[:2]]
    assert "CRPS" in ax.get_xlabel()


@pytest.fixture(scope="module")
def prices(folder):
    """Write tables whose target is written in several ways; return their numbers."""
    rng = np.random.default_rng(0)
    size = rng.normal(size=200)
    price = (5000 + 1500 * size + rng.normal(0, 300, 200)).round().astype(int)
    write_prices(folder[0] / "money.csv", size, [f'"$ {one:,}"' for one in price])
    write_prices(folder[0] / "few.csv", size[:3], [f'"$ {one:,}"' for one in price[:3]])
    write_prices(folder[0] / "plain.csv", size[:3], price[:3])
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder[0])
        code, _, err = run("fit", "money.csv", "--target", "price", "-o", "price.posteriori")
    assert code == 0, err
    return size, price


def write_prices(path, size, cells):
    lines = [f"{one:.3f},{'uvw'[k % 3]},{cell}" for k, (one, cell) in enumerate(zip(size, cells, strict=True))]
    path.write_text("\n".join(["size,kind,price", *lines, ""]))


def test_few_rows_are_read_as_the_training_rows_were(prices):
    """Of three cells alone, no one can say whether they are numbers or classes."""
    _, price = prices
    found, plain = (json.loads(succeeds("evaluate", "price.posteriori", f, "--json")) for f in ("few.csv", "plain.csv"))
    assert found["rows"] == 3
    assert found["scores"] == plain["scores"]
    rows = json.loads(succeeds("explain", "price.posteriori", "few.csv", "--row", "0-2", "--json"))["rows"]
    assert [one["true"] for one in rows] == price[:3].tolist()
    assert "wrote" in succeeds("report", "price.posteriori", "few.csv", "-o", "few.html")


def test_odd_target_cells_are_named_where_the_target_is_needed(prices):
    size, price = prices
    write_prices(Path("odd_rows.csv"), size[:3], [price[0], "see note", price[2]])
    for command in ("evaluate", "explain"):
        error = refused(command, "price.posteriori", "odd_rows.csv")
        assert "column 'price' is read as numbers, and holds 'see note'" in error
    assert succeeds("predict", "price.posteriori", "odd_rows.csv").count("\n") == 4
    write_prices(Path("words.csv"), size[:2], ["see note", "later"])
    for command in ("evaluate", "explain"):
        assert "a regressor predicts numbers" in refused(command, "price.posteriori", "words.csv")


@pytest.mark.parametrize("mark", ["n/a", "unknown", "-"])
def test_marks_of_missing_cells_in_a_target_are_missing_numbers(prices, mark):
    size, price = prices
    write_prices(Path("marks.csv"), size, [mark if k % 40 == 0 else one for k, one in enumerate(price)])
    code, _, err = run("fit", "marks.csv", "--target", "price", "-o", "marks.posteriori")
    assert code == 0
    assert f"5 cells {mark!r} in column 'price' as missing" in err
    assert "5 rows without 'price' are left out" in err


def test_words_in_a_target_of_numbers_are_named_with_the_fix(prices):
    size, price = prices
    write_prices(Path("notes.csv"), size, ["see note" if k % 40 == 0 else one for k, one in enumerate(price)])
    for details in ((), ("--model", "regressor")):
        error = refused("fit", "notes.csv", "--target", "price", *details, "-o", "notes.posteriori")
        assert "'price' holds numbers except 'see note' (5 of 200 cells; the first in line 2)" in error
        assert "--missing-values 'see note'" in error
    stated = ("--missing-values", "see note", "-o", "notes.posteriori")
    assert "saved to" in succeeds("fit", "notes.csv", "--target", "price", *stated)


def test_classes_keep_their_marks(prices):
    size, _ = prices
    write_prices(Path("grades.csv"), size, ["-" if k % 40 == 0 else k % 5 for k in range(len(size))])
    succeeds("fit", "grades.csv", "--target", "price", "--model", "nb", "-o", "grades.posteriori")
    assert po.load("grades.posteriori").classes_.tolist() == ["-", "0", "1", "2", "3", "4"]


def test_a_target_without_a_cell_is_named_as_such(prices):
    size, _ = prices
    write_prices(Path("empty.csv"), size, [""] * len(size))
    sentence = "every cell of the target 'price' is missing"
    for details in ((), ("--model", "regressor")):
        assert sentence in refused("fit", "empty.csv", "--target", "price", *details, "-o", "empty.posteriori")
    assert sentence in refused("evaluate", "price.posteriori", "empty.csv")


def test_dates_as_a_target_are_classes_and_fit_says_so(prices):
    size, _ = prices
    write_prices(Path("dates.csv"), size, [f"2024-01-0{1 + k % 3}" for k in range(len(size))])
    code, _, err = run("fit", "dates.csv", "--target", "price", "--model", "nb", "-o", "dates.posteriori")
    assert code == 0
    assert "'price' holds dates, and each of 3 different ones is a class" in err
    assert "write it as a number" in err
    pl.read_csv("dates.csv", try_parse_dates=True).write_parquet("dates.parquet")
    error = refused("fit", "dates.parquet", "--target", "price", "-o", "dates.posteriori")
    assert "is Date" in error
    assert "write it as a number" in error


def test_advice_is_that_for_a_number():
    error = refused("query", "mass.posteriori")
    assert "posteriori predict gives the number of a row" in error
    assert "--proba" not in error
    assert "numbers" in succeeds("--help").split("Options")[0]


def test_hints_are_those_of_a_model_that_reads_no_text(prices):
    size, price = prices
    words = ["red", "small", "door", "garden", "near", "station", "quiet", "old", "bright", "view"]
    rng = np.random.default_rng(1)
    text = [" ".join(rng.choice(words, 8)) for _ in size]
    pl.DataFrame({"size": size, "same": 1, "text": text, "price": price}).write_csv("text.csv")
    out = succeeds("fit", "text.csv", "--target", "price", "-o", "text.posteriori")
    assert "such a model reads no text" in " ".join(out.split())
    assert "text=text" not in out
    assert "cannot inform on the target" in " ".join(out.split())


def test_a_fit_reports_its_steps_as_one_work():
    names, planned = [], []

    def begin(name, n):
        names.append(name)
        return lambda done: None

    with report_progress(begin, lambda steps: planned.extend(one.name for one in steps)):
        po.GenerativeRegressor().fit(load_penguins().drop_nulls("body_mass_g"), "body_mass_g")
    assert [name for k, name in enumerate(names) if name not in names[:k] and name != "reading"] == planned
    assert len(planned) == 4


def test_cv_prints_the_members():
    found = json.loads(succeeds("cv", "penguins.csv", "--target", "body_mass_g", "--folds", "3", "--json"))
    assert (found["folds"], found["rows"], len(found["models"])) == (3, 342, 4)


def test_a_model_of_numbers_can_be_asked_for_and_set():
    details = ("--model", "regressor", "--set", "members=additive", "--groups", "island", "--folds", "3")
    out = succeeds("fit", "penguins.csv", "--target", "year", *details, "--details", "-o", "year.posteriori")
    assert "additive" in out
    assert "a pool of 1 regression" in out
    assert po.load("year.posteriori").member_weights_.keys() == {"additive"}


def test_classes_are_still_made_where_they_are_asked_for():
    succeeds(*FIT, "--classes", "3", "--model", "nb", "-o", "classes.posteriori")
    assert len(po.load("classes.posteriori").classes_) == 3
    error = refused(*FIT, "--model", "nb", "-o", "classes.posteriori")
    assert "looks like a quantity" in error
    assert "without --model predicts it as a number" in error


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--positive", "3"), "--positive is for classes"),
        (("--holdout", "0.2"), "--holdout is for classes"),
        (("--holdout-by", "year"), "--holdout-by is for classes"),
        (("--for", "sql"), "--for is for classes"),
        (("--set", "priors=uniform"), "priors, which is no parameter of regressor"),
        (("--model", "regressor", "--classes", "3"), "--classes is for classes"),
        (("--target", "species", "--model", "regressor"), "a regressor predicts numbers"),
    ],
)
def test_options_of_classes_are_refused_by_name(words, message):
    assert message in refused(*FIT, *words, "-o", "other.posteriori")
    assert not Path("other.posteriori").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--proba",), "--proba is for classes"),
        (("--strangeness",), "--strangeness is for classes"),
        (("--threshold", "a=0.5"), "--threshold is for classes"),
        (("--quantiles", "0.1,x"), "--quantiles is '0.1,x'"),
        (("--coverage", "2"), "--coverage is 2"),
        (("--coverage", "0.5", "--quantiles", "0.5"), "remove one of them"),
    ],
)
def test_options_of_predict_are_refused_by_name(words, message):
    assert message in refused("predict", "mass.posteriori", "penguins.csv", *words)


@pytest.mark.parametrize(
    "words",
    [
        ("sample", "mass.posteriori"),
        ("merge", "mass.posteriori", "mass.posteriori", "-o", "both.posteriori"),
    ],
)
def test_commands_of_classifiers_refuse_a_regressor(words):
    assert "predicts a number, and this command needs a classifier" in refused(*words)


@pytest.mark.parametrize("kind", [po.AdditiveRegressor, po.KernelRegressor])
def test_commands_take_a_sum_that_python_saved(kind):
    rows = load_penguins().drop_nulls("body_mass_g")
    model = kind().fit(rows, "body_mass_g")
    po.save(model, "sum.posteriori")
    lines = succeeds("predict", "sum.posteriori", "penguins.csv", "--quantiles", "0.5").splitlines()
    assert len(lines) == 1 + len(load_penguins())
    assert float(lines[1].split(",")[1]) == pytest.approx(model.predict_density(rows.head(1)).median[0])
    assert "Half of its predictions" in succeeds("evaluate", "sum.posteriori", "penguins.csv")
    shown = succeeds("show", "sum.posteriori")
    assert "flipper_length_mm" in shown


def test_functions_of_classifiers_refuse_a_regressor():
    model = po.load("mass.posteriori")
    with pytest.raises(ValueError, match="predicts a number"):
        po.scoring.load_scorer("mass.posteriori")
    for call in (
        lambda: po.javascript.to_javascript(model),
        lambda: po.explore(model, path="page.html"),
        lambda: po.merge([model, model]),
    ):
        with pytest.raises(TypeError, match="GenerativeRegressor"):
            call()


def test_prices_of_houses_are_predicted(shared_data):
    houses = shared_data / "regression" / "saratoga.csv"
    found = json.loads(succeeds("fit", houses, "--target", "price", "-o", "houses.posteriori", "--json"))
    assert found["scores"]["mae"] < 0.75 * found["always_median"]["mae"]
    assert 0.85 < found["scores"]["coverage"] < 0.95


def test_a_report_is_a_page_and_options_of_classes_are_refused():
    assert "--positive is for classes" in refused("report", "mass.posteriori", "penguins.csv", "--positive", "x")
    assert "wrote" in succeeds("report", "mass.posteriori", "penguins.csv", "-o", "page.html")
    page = Path("page.html").read_text(encoding="utf-8")
    assert "body_mass_g" in page
    assert "Members and scores" in page
    wrong_by = f"It is wrong by {po.load('mass.posteriori').cv_results_['mae'][-1]:.0f} on average."
    assert wrong_by in page  # in held-out rows, though the file holds no predictions of these
    assert "The model has learned from these rows" in page


def test_a_fit_writes_the_report_of_any_model():
    out = succeeds(*FIT, "--model", "additive", "-o", "mass.posteriori", "--report", "fit.html")
    assert "report: fit.html" in out
    assert "Each row was predicted by models that had not learned from it." in Path("fit.html").read_text("utf-8")
    assert "report: joint.html" in succeeds("fit", "penguins.csv", "-o", "joint.posteriori", "--report", "joint.html")
    assert "The columns of penguins.csv" in Path("joint.html").read_text("utf-8")


def test_a_pool_leaves_python_as_its_additive_member():
    succeeds(*FIT, "-o", "pool.posteriori")
    results = po.load("pool.posteriori").cv_results_
    for words in (("sql",), ("export", "-o", "mass.json"), ("explore", "-o", "what_if.html")):
        code, _, err = run(words[0], "pool.posteriori", *words[1:])
        assert code == 0
        assert f"that of the pool {results['crps'][-1]:.4g}" in err


SUMS = {"additive": po.AdditiveRegressor, "kernel": po.KernelRegressor}


@pytest.mark.parametrize("name", SUMS)
def test_fit_makes_a_sum_and_all_commands_take_it(name):
    file = f"{name}.posteriori"
    out = succeeds(*FIT, "--model", name, "--set", "scale=as-is", "--folds", "4", "--groups", "year", "-o", file)
    model = po.load(file)
    assert (type(model), model.scale, model.folds) == (SUMS[name], "as_is", 4)
    known = load_penguins().drop_nulls("body_mass_g")
    made, groups = SUMS[name](scale="as_is", folds=4), known["year"].to_numpy()
    scores = made.fit(known.drop("year"), "body_mass_g", groups=groups).cv_results_
    assert model.cv_results_ == scores
    assert f"90% intervals hold {100 * scores['coverage'][0]:.0f} of 100" in out
    assert f"wrong by {scores['mae'][0]:.0f} on average" in out
    assert f"explains {100 * scores['r2'][0]:.0f} % of the variance" in out
    assert "saved to" in out
    assert "pool" not in out
    assert "members" not in out
    rows = load_penguins().drop("body_mass_g", "year")
    assert f"{scores['crps'][0]:.4g}" in succeeds("show", file)
    assert "missing" in succeeds(*FIT, "--model", name, "--details", "-o", "again.posteriori")
    predicted = pl.read_csv(succeeds("predict", file, "penguins.csv").encode())
    np.testing.assert_allclose(predicted["prediction"], model.predict(rows))
    np.testing.assert_allclose(predicted[:, 1:].to_numpy(), model.predict_interval(rows))
    for words in (("evaluate", file, "penguins.csv"), ("explain", file, "penguins.csv", "--row", "3")):
        assert "body_mass_g" in succeeds(*words)
    succeeds("report", file, "penguins.csv", "-o", "page.html")
    assert "Scores of the model" in Path("page.html").read_text(encoding="utf-8")
    for words in (("explore", file, "-o", "page.html"), ("export", file, "-o", "page.json"), ("sql", file)):
        if name == "additive":
            succeeds(*words)
        else:
            assert "additive" in refused(*words)


def test_a_sum_predicts_any_numbers_and_its_updates_are_shown(tmp_path):
    succeeds("fit", "penguins.csv", "--target", "year", "--model", "additive", "-o", "year.posteriori")
    model = po.load("year.posteriori")
    po.save(model.partial_fit(load_penguins(), "year"), tmp_path / "more.posteriori")
    out = succeeds("show", tmp_path / "more.posteriori")
    assert "AdditiveRegressor of year" in out
    assert "of held-out rows" not in out


def test_cv_compares_models_of_numbers():
    words = ("cv", "penguins.csv", "--target", "body_mass_g", "--folds", "3", "--json")
    found = json.loads(succeeds(*words, "--models", "regressor,additive,kernel"))
    known = load_penguins().drop_nulls("body_mass_g")
    scores = {one["name"]: one["crps"] for one in found["models"]}
    assert list(scores) == sorted(scores, key=scores.__getitem__)
    for name, kind in {**SUMS, "regressor": po.GenerativeRegressor}.items():
        assert scores[name] == pytest.approx(kind(folds=3).fit(known, "body_mass_g").cv_results_["crps"][-1])
    page = succeeds(*words[:-1], "--models", "ridge,additive")
    assert "weight" not in page
    assert page.index("additive: ") < page.index("ridge: ")
    assert "±" in page
    assert "in units of the target; coverage and width" in page


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((*FIT, "--model", "aditive"), "is it 'additive'?"),
        ((*FIT, "--model", "kernel", "--set", "members=forest"), "no parameter of kernel; it goes with"),
        ((*FIT, "--set", "scale=log"), "it goes with --model additive or kernel"),
        ((*FIT, "--model", "additive", "--folds", "2"), "needs 3 at least"),
        ((*FIT, "--model", "additive", "--classes", "3"), "--classes is for classes"),
        (("fit", "penguins.csv", "--target", "sex", "--model", "additive"), "a regressor predicts numbers"),
        (("cv", "penguins.csv", "--target", "sex", "--models", "kernel"), "a regressor predicts numbers"),
        (("cv", "penguins.csv", "--target", "weight", "--models", "kernel"), "has no column 'weight'"),
        (("cv", "penguins.csv", "--target", "year", "--models", "kernl"), "is it 'kernel'?"),
        (("cv", "penguins.csv", "--target", "year", "--models", "kernel,nb"), "models of one kind"),
        (("cv", "penguins.csv", "--target", "year", "--models", "kernel", "--classes", "3"), "--classes is for"),
    ],
)
def test_mistakes_with_models_of_numbers_are_named(words, message):
    assert message in refused(*words)
