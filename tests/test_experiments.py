"""The experiments behind docs/ and the benchmarks: they import, and they fill blocks that their pages have."""

import importlib
import math
import pkgutil
import re

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri

import benchmarks
import experiments
import posteriori as po
from experiments import (
    ablation_candidates,
    curves,
    halves,
    importance,
    larger_tables,
    new_places,
    pool,
    regression,
    regression_rivals,
    rivals,
    shifted_splits,
)
from experiments.ablation_cells import Cells
from experiments.ablations import CANDIDATES, pooled_loss, predicted
from experiments.page import DOCS, POOL_NOTEBOOK, markdown_table, replace_block
from experiments.real_tables import Table, data_folder
from posteriori.model_selection.metrics import accuracy

ROOT = DOCS.parent
MODULES = sorted(module.name for module in pkgutil.iter_modules(experiments.__path__))
BENCHMARKS = sorted(module.name for module in pkgutil.iter_modules(benchmarks.__path__))


@pytest.mark.parametrize("name", MODULES)
def test_an_experiment_imports_and_its_page_exists(name):
    module = importlib.import_module(f"experiments.{name}")
    page = getattr(module, "PAGE", None)
    assert page is None or page.parent == DOCS
    assert page is None or page.exists()


@pytest.mark.parametrize("name", BENCHMARKS)
def test_a_benchmark_imports(name):
    source = (ROOT / "benchmarks" / f"{name}.py").read_text(encoding="utf-8")
    if "import pyagrum" in source or "from benchmarks.networks" in source:
        pytest.importorskip("pyagrum", reason="pyAgrum is absent: pip install -e '.[bench]'")
    assert importlib.import_module(f"benchmarks.{name}")


BLOCKS = [
    *halves.PAGES.items(),
    *new_places.PAGES.items(),
    *(("ablations", POOL_NOTEBOOK), ("single rows", POOL_NOTEBOOK), ("rivals by table", POOL_NOTEBOOK)),
    *((name, pool.PAGE) for name in ("summary", "by half", "by set", "rivals", "hidden at prediction")),
    ("larger tables", larger_tables.PAGE),
    *((name, curves.PAGE) for name in curves.blocks({})),
]


@pytest.mark.parametrize(("name", "page"), BLOCKS, ids=lambda cell: cell if isinstance(cell, str) else "")
def test_the_block_that_a_script_fills_is_on_its_page(name, page, tmp_path):
    copy = tmp_path / page.name
    copy.write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    replace_block(name, "measured", copy)
    assert f"<!-- {name} -->\nmeasured\n<!-- end of {name} -->" in copy.read_text(encoding="utf-8")


@pytest.mark.parametrize("page", sorted(DOCS.rglob("*.md")), ids=lambda page: page.stem)
def test_every_block_of_a_page_has_an_end(page):
    text = page.read_text(encoding="utf-8")
    begins = re.findall(r"^<!-- (?!end of )([a-z ]+) -->$", text, re.MULTILINE)
    ends = re.findall(r"^<!-- end of ([a-z ]+) -->$", text, re.MULTILINE)
    assert begins == ends


def test_a_block_is_replaced_and_the_rest_stays(tmp_path):
    path = tmp_path / "page.md"
    path.write_text("above\n<!-- scores -->\nold\n<!-- end of scores -->\nbelow\n")
    replace_block("scores", markdown_table(["a", "b"], [["1", "2"]]), path)
    expected = "above\n<!-- scores -->\n| a | b |\n|-|-|\n| 1 | 2 |\n<!-- end of scores -->\nbelow\n"
    assert path.read_text() == expected
    with pytest.raises(ValueError, match=r"page.md has no block <!-- others -->"):
        replace_block("others", "", path)


@pytest.fixture(scope="module")
def labelled():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 3, 150)
    numbers = {f"x{j}": y * (j + 1) + rng.normal(size=150) for j in range(2)}
    numbers["x0"][::9] = np.nan
    kind = pl.Series(np.where(rng.random(150) < 0.7, y, rng.integers(0, 3, 150)).astype(str)).to_list()
    X = pl.DataFrame(numbers | {"kind": [None if i % 7 == 0 else one for i, one in enumerate(kind)]}, strict=False)
    return Cells.of(X.with_columns(pl.col("x0").fill_nan(None))), y, np.arange(150) % 5


@pytest.mark.parametrize("name", list(CANDIDATES))
def test_an_ablation_candidate_predicts_rows_it_has_not_seen(name, labelled, monkeypatch):
    interpreted = ablation_candidates._two_dependence.py_func  # compiling it takes longer than these few rows
    monkeypatch.setattr(ablation_candidates, "_two_dependence", interpreted)
    cells, y, fold = labelled
    log_posterior = predicted(CANDIDATES[name], cells, y, fold, 3)
    np.testing.assert_allclose(np.exp(log_posterior).sum(axis=1), 1.0, atol=1e-6)
    assert -log_posterior[np.arange(150), y].mean() < 0.6 * np.log(3)
    others = np.random.default_rng(1).permutation(y)  # labels without information
    by_chance = predicted(CANDIDATES[name], cells, others, fold, 3)
    assert -by_chance[np.arange(150), others].mean() > 0.9 * np.log(3)


def test_a_pool_gains_by_information_and_hardly_loses_by_noise(labelled):
    _, y, fold = labelled
    rng = np.random.default_rng(2)

    def member(scale):
        scores = scale * np.eye(3)[y] + rng.normal(size=(150, 3))
        return (scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))[:, :, np.newaxis]

    base, other, noise = member(1.5), member(1.5), member(0.0)
    loss = pooled_loss(base, y, fold)
    assert pooled_loss(np.concatenate([base, other], axis=2), y, fold) < loss - 0.05
    assert abs(pooled_loss(np.concatenate([base, noise], axis=2), y, fold) - loss) < 0.03


def test_importance_ranks_independent_columns_as_permutation():
    rng = np.random.default_rng(3)
    X = pl.DataFrame({f"x{j}": rng.normal(size=600) for j in range(4)})
    score = sum(2.0**-j * X[f"x{j}"].to_numpy() for j in range(4))
    y = pl.Series(np.where(3.0 * score + rng.logistic(size=600) > 0, "yes", "no"))
    found = importance.measure(Table("made", X, y, 4))
    assert found["rows"] == 180
    assert found["spearman"][0][0] == 4
    assert found["spearman"][0][1] > 0.7
    assert found["quiet"] >= 0.75
    lines = list(importance.lines({"made": found, "bare": found | {"spearman": [[2, None, None]] * 2}}))
    assert [line[0] for line in lines] == ["bare", "made", "mean"]
    assert lines[0][3] == "–"
    assert lines[2][3] == lines[1][3]  # the mean is of tables that have the figure


def test_rivals_are_compared_on_tables_measured_for_all():
    scores = {
        "adult": {"pool": [0.3, 0.8, 2.0], rivals.FOREST: [0.4, 0.7, 1.0]},
        "zoo": {"pool": [0.2, 0.9, 2.0], rivals.FOREST: [0.1, 1.0, 4.0]},
        "wine": {"pool": [0.5, 0.5, 2.0]},
    }
    text = rivals.summary(scores, ["pool", rivals.FOREST])
    assert text.startswith("2 tables")
    assert "| pool | 0.2500 | 0.3000 | 0.2000 | 1.50 | 0.8500 | – | 1.25× | 2.0× |" in text
    assert f"| {rivals.FOREST} | 0.2500 | 0.4000 | 0.1000 | 1.50 | 0.8500 | 50% | 1.00× | 1.0× |" in text
    lines = rivals.by_table(scores, ["pool", rivals.FOREST]).splitlines()
    assert "| wine | 0.500 | – |" in lines
    assert "| zoo | 0.200 | **0.100** |" in lines


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("library", ["catboost", "lightgbm", "interpret"])
def test_a_rival_reads_categories_and_missing_cells(library):
    pytest.importorskip(library, reason=f"{library} is absent: pip install -e '.[bench]'")
    X = pl.DataFrame({"a": [1.0, None, 3.0, 4.0] * 10, "b": ["u", "v", None, "u"] * 10})
    y = np.array(["p", "q", "q", "p"] * 10)
    model = rivals.NativeClassifier(library).fit(X, y)
    posterior = model.predict_proba(pl.DataFrame({"a": [1.0, None], "b": ["u", "new"]}))
    assert posterior.shape == (2, 2)
    np.testing.assert_allclose(posterior.sum(axis=1), 1.0)


@pytest.fixture(scope="module")
def numeric():
    rng = np.random.default_rng(1)
    kinds = rng.choice(["u", "v"], 120)
    X = pl.DataFrame({"a": rng.normal(size=120), "b": kinds, "c": rng.normal(size=120)})
    y = 3.0 * X["a"].to_numpy() + 5.0 * (kinds == "u") + rng.normal(size=120)
    rng = np.random.default_rng(2)
    return regression_rivals.hide(X, np.array(0.1), rng), y


@pytest.mark.parametrize("scale", [1.0, 20.0])
def test_the_crps_of_quantiles_is_that_of_the_closed_form(scale):
    y = scale * np.array([-2.0, -0.3, 0.0, 1.0, 2.5])
    expected = np.mean(
        [2 * np.exp(-(z**2) / 2) / np.sqrt(2 * np.pi) + z * math.erf(z / np.sqrt(2)) for z in y / scale]
    ) - 1 / np.sqrt(np.pi)
    quantiles = np.tile(scale * ndtri(regression_rivals.LEVELS), (len(y), 1))
    assert regression.crps(y, quantiles) == pytest.approx(scale * expected, rel=0.02)


def test_true_quantiles_cover_the_central_interval():
    y = ndtri((np.arange(1000) + 0.5) / 1000)
    quantiles = np.tile(ndtri(regression_rivals.LEVELS), (1000, 1))
    scores = regression.scores_of(y, regression_rivals.Forecast(quantiles, np.zeros(1000)))
    assert scores["coverage"] == pytest.approx(0.9, abs=0.002)
    assert scores["width"] == pytest.approx(2 * 1.6448536)
    assert scores["rmse"] == pytest.approx(1.0, abs=0.01)


def test_few_normal_quantiles_give_those_between_them():
    few = 3.0 + 2.0 * ndtri(regression_rivals.FEW_LEVELS)
    crossed = np.array([few, few[::-1]])
    found = regression_rivals.spread(crossed, regression_rivals.FEW_LEVELS)
    np.testing.assert_allclose(found, np.tile(3.0 + 2.0 * ndtri(regression_rivals.LEVELS), (2, 1)))


@pytest.mark.parametrize("copies", [1, 2])
def test_the_copies_of_a_row_are_held_out_together(copies):
    held = regression_rivals.held_out(60 * copies, 0.25, copies)
    assert held.sum() == 15 * copies
    np.testing.assert_array_equal(held[:60], held[-60:])


def test_as_many_cells_are_hidden_as_asked_for():
    X = pl.DataFrame({"a": np.arange(2000.0), "b": ["u", "v"] * 1000})
    hidden = regression_rivals.hide(X, np.repeat([0.0, 0.8], 1000), np.random.default_rng(0))
    assert hidden[:1000].equals(X[:1000])
    assert hidden.schema == X.schema
    for column in hidden[1000:]:
        assert column.null_count() == pytest.approx(800, abs=60)


LIBRARIES = {"LightGBM": "lightgbm", "CatBoost": "catboost", "quantile forest": "quantile_forest", "NGBoost": "ngboost"}
RIVALS = regression_rivals.RIVALS | regression_rivals.TRAINED_WITH_HIDDEN_CELLS


@pytest.mark.filterwarnings("ignore")  # of the libraries
@pytest.mark.parametrize("name", RIVALS)
def test_a_rival_predicts_ascending_quantiles_of_rows_with_gaps(name, numeric):
    library = LIBRARIES.get(name.partition(",")[0])
    if library is not None:
        pytest.importorskip(library, reason=f"{library} is absent: pip install -e '.[bench]'")
    X, y = numeric
    predict = RIVALS[name](X[:80], y[:80], 1)
    forecast = predict(X[80:])
    assert forecast.quantiles.shape == (40, 99)
    assert forecast.mean.shape == (40,)
    assert (np.diff(forecast.quantiles, axis=1) >= 0).all()
    assert regression.scores_of(y[80:], forecast)["rmse"] < y[80:].std()
    rows = pl.DataFrame({"a": [None, 1.0], "b": ["new", None], "c": [0.0, None]}, schema=X.schema)
    assert np.isfinite(predict(rows).quantiles).all()


def test_scores_are_measured_once_and_after_errors_again(tmp_path, numeric):
    def fail(X, y, copies):
        raise ValueError("too few rows")

    output, table = tmp_path / "scores.jsonl", regression.NumericTable("one", *numeric)
    errors = []
    for fit in (fail, RIVALS["ridge"], fail):
        regression.measure_all(output, {"ridge": fit}, [table], 1, [0.0, 0.5])
        errors.append([score.error for score in regression.read_scores(output).values()])
    assert errors == [["ValueError: too few rows"] * 2, ["", ""], ["", ""]]
    regression.measure_all(output, {"ridge": fail}, [table], 1, [0.0, 0.5], again=["ridge"])
    assert all(score.error for score in regression.read_scores(output).values())


def test_figures_are_relative_to_the_best_rival_on_common_splits():
    def score(table, split, method, crps, rmse):
        return regression.Score(table, split, method, 0.0, crps, rmse, 0.9, 1.0, 2.0, 0.5)

    scores = [
        score("auto", 0, "posteriori", 1.0, 3.0),
        score("auto", 0, "ridge", 2.0, 2.0),
        score("auto", 0, "CatBoost", 4.0, 4.0),
        score("auto", 1, "ridge", 100.0, 100.0),  # a split that the others lack
        *(score("zoo: legs", split, "posteriori", 3.0, 3.0) for split in (0, 1)),
        *(score("zoo: legs", split, "CatBoost", 2.0, 2.0) for split in (0, 1)),
        regression.Score("zoo: legs", 0, "ridge", 0.0, error="ValueError: no"),
        score("auto", 0, "CatBoost" + regression_rivals.HIDDEN, 0.1, 0.1),  # for the shares of hidden cells alone
    ]
    text = regression.summary(scores)
    assert "splits that all methods have: 1–2\n" in text
    loss, error, coverage, seconds = text.split("| table | posteriori | ridge | CatBoost |")[1:]
    assert "| auto | 0.500 | 1.000 | 2.000 |" in loss
    assert "| auto | 0.750 | 0.500 | 1.000 |" in error
    assert "| zoo: legs | 1.500 | – | 1.000 |" in loss
    assert "| **geometric mean, report (1)** | 1.500 | – | 1.000 |" in loss
    assert "| **arithmetic mean, tuning (1)** | 0.900 | 0.900 | 0.900 |" in coverage
    assert "| auto | 2.50 | 2.50 | 2.50 |" in seconds
    assert text.endswith("- zoo: legs, split 0, ridge: ValueError: no")


def test_regression_tables_have_numeric_targets_in_two_halves():
    folder = data_folder()
    if folder is None or not (folder / "regression").exists():
        pytest.skip("no tables with a numeric target: set POSTERIORI_DATA to the folder that has them")
    tables = list(regression.read_tables(folder))
    assert [regression.half_of(table.name) for table in tables] == ["tuning"] * 10 + ["report"] * 10
    for table in tables:
        assert 250 <= len(table.y) == table.X.height <= regression.MOST_ROWS
        assert np.isfinite(table.y).all()
        assert len(np.unique(table.y)) > 40


@pytest.fixture
def shifted(tmp_path, monkeypatch):
    """Return a folder of a table of two columns that each tell the class, one in three of whose rows is of a shop."""
    rows = "".join(f"{i % 61},{'uvw'[i % 3]},{'ab'[i % 2]}\n" for i in range(180))
    (tmp_path / "made.csv").write_text(f"x,shop,y\n{rows}")
    (tmp_path / "INDEX.tsv").write_text("name\tfile\ttarget\tcategorical_columns\nmade\tmade.csv\ty\tshop\n")
    monkeypatch.setenv("POSTERIORI_DATA", str(tmp_path))
    monkeypatch.setattr(shifted_splits, "GROUPS", {("made", "shop"): "shop", ("absent", "x"): "year"})
    return tmp_path


@pytest.mark.parametrize("part", ["classes", "groups"])
def test_test_rows_of_a_shifted_split_lie_outside(part, shifted):
    (name,) = shifted_splits.names_of(part, shifted)
    places = shifted_splits.read_places(part, name, shifted, 1)
    groups = ["group: u", "group: v", "group: w"]
    expected = {"classes": ["upper: x", "lower: x", "without: shop = u"], "groups": [*groups, "random"]}
    assert list(places.splits) == expected[part]
    for split, test in places.splits.items():
        beyond = shifted_splits.outside(places.X, test)
        assert not beyond[~test].any()
        assert split == "random" or beyond[test].all()


def test_classes_of_few_training_rows_forbid_a_split():
    allows = shifted_splits._allows_classes(np.repeat([0, 1], [100, 24]))
    assert allows(np.arange(124) < 30)
    assert not allows(np.arange(124) >= 104)  # four rows of the second class are left
    assert not allows(np.arange(124) >= 100)  # none is
    assert not allows(np.arange(124) < 10)  # too few to judge by


def test_a_model_is_judged_outside_of_its_training_rows(shifted):
    found = new_places.measure("classes", "made", "without: shop = u", new_places.LOGISTIC, 1)
    assert found["rows"] == found["rows_outside"] == 60
    assert found["loss"] == found["loss_outside"] >= 0.69
    assert "KeyError" in new_places.measure("classes", "made", "upper: x", "no such library", 1)["error"]


def figures(loss):
    return {"rows": 60, "loss": loss, "accuracy": 1.0 - loss, "rows_outside": 60}


def test_figures_of_new_places_are_means_of_common_splits():
    splits = {
        "upper: age": {"pool": figures(0.3), "CatBoost": figures(0.5)},
        "lower: age": {"pool": figures(0.1), "CatBoost": {"stopped": 1.0}},
    }
    scores = {"classes": {"adult": splits, "zoo": {"upper: legs": {"pool": figures(0.5), "CatBoost": figures(0.2)}}}}
    text = new_places.text_of(scores, "classes", ["pool", "CatBoost"])
    assert text.startswith("2 splits of 2 tables; 1 more are left out")
    assert "| model | all (2) | tuning half (1) | report half (1) | upper end (2) | worst split | accuracy |" in text
    assert "| CatBoost | 0.350 | 0.500 | 0.200 | 0.350 | 0.50 (adult) | 0.650 |" in text
    assert new_places.text_of(scores, "classes", ["pool"]).startswith("3 splits of 2 tables:")
    later = {"classes": {"adult": {name: {"pool": figures(0.2)} for name in splits}}}
    lines = new_places.differences(later, scores, "classes").splitlines()[2:]
    assert lines == [
        "| tuning half, upper end (1) | 0.3000 | 0.2000 | -0.100 (adult, upper: age) | 0 | 0.700 | 0.800 |",
        "| tuning half, lower end (1) | 0.1000 | 0.2000 | +0.100 (adult, lower: age) | 1 | 0.900 | 0.800 |",
    ]


def test_the_worst_group_is_named_beside_the_mean():
    splits = {"group: 1": 0.2, "group: 2": 0.6, "random": 0.1}
    scores = {"groups": {"vowel: Speaker Number": {name: {"pool": figures(loss)} for name, loss in splits.items()}}}
    lines = new_places.text_of(scores, "groups", ["pool"]).splitlines()
    assert "| vowel, person left out (2) | 0.100 | 0.400, worst 0.600 |" in lines
    assert "| vowel, person left out (2) | 0.900 | 0.600, worst 0.400 |" in lines
    assert "| **mean, report half (1)** | 0.900 | 0.600 |" in lines


def test_intervals_are_judged_by_kind_of_split():
    def score(coverage):
        return {"pool": {"rmse": 0.5, "rmse_of_most": 0.4, "crps": 0.2, "coverage": coverage, "width": 1.5}}

    before = {"numbers": {"auto": {"upper: weight": score(0.6)}, "german: age": {"upper: age": score(0.8)}}}
    text = new_places.text_of(before, "numbers", ["pool"])
    assert "| upper end (2) | pool | 0.500 | 0.400 | 0.200 | 0.600 | 0.800 | 0.60 (auto) | 1.50 |" in text
    text = new_places.differences({"numbers": {"auto": {"upper: weight": score(0.9)}}}, before, "numbers")
    assert (
        "| tuning half, upper end (1) | 1.000 | 1.000 | 1.000 (auto, upper: weight) | 0.600 | 0.900 | 1.000 |" in text
    )


def test_a_joint_method_that_is_measured_is_not_measured_again():
    from experiments.joint import methods_left

    packages = {"pool": "posteriori", "joint": "posteriori", "rival": "no_such_package"}
    assert methods_left(packages, {"pool"}) == ["joint"]


def test_a_drawn_table_has_its_size_its_gaps_and_dependence():
    X, y = curves.draw(500, 9, 3, seed=0)
    assert X.shape == (500, 9)
    assert set(y) == {"class 0", "class 1", "class 2"}
    assert 0 < sum(X.null_count().row(0)) < 200
    assert X.equals(curves.draw(500, 9, 3, seed=0)[0])
    assert not X.equals(curves.draw(500, 9, 3, seed=1)[0])
    held_out = po.cross_validate({"nb": po.NaiveBayes()}, X, y, folds=2)
    assert accuracy(held_out.y_true, held_out.posteriors["nb"]) > 0.4


def test_the_curves_name_what_is_slow_or_wrong():
    def pool(cpu, loss=0.5, skipped=()):
        return {
            "fit": [2 * cpu, cpu],
            "predict": [0, 0],
            "loss": loss,
            "peak": 1e3,
            "skipped": dict.fromkeys(skipped, ""),
        }

    estimate = {"seconds": 9.0, "without": 4.0}
    sizes = [curves.title(size) for size in curves.SIZES["rows"][:3]]
    of_forest = {sizes[0]: pool(1.0), sizes[1]: pool(8.0), sizes[2]: pool(8.0, skipped=[curves.FOREST])}
    scores = {name: {"pool": one, curves.ESTIMATE: estimate} for name, one in of_forest.items()}
    within = dict(zip(curves.WITHIN, [pool(0.5, 0.4), pool(3.0, 0.3), pool(4.0, 0.35)], strict=False))
    scores["letter"] = {curves.TUNED: {"stopped": 120.0}, **within}
    text = curves.blocks(scores)
    assert text["growth"].endswith("faster than the rows from 1,000 to 4,000 rows.")
    assert text["announced"].endswith(
        "1 of 3 estimates are within a factor of 1.5; the others are those of "
        "1,000 × 20, 2 classes; 16,000 × 20, 2 classes."
    )
    assert "Worse than within less time: letter (pool within 10 s: +16.7%)." in text["budgets"]
    assert text["budgets"].endswith("Longer than 1.3 times the budget: letter (pool within 3 s: 2.0×).")


@pytest.mark.oracle
def test_the_network_beside_joint_models_knows_a_function():
    pytest.importorskip("pyagrum", reason="pyAgrum is absent: pip install -e '.[bench]'")
    from experiments.joint import Network

    cells = np.random.default_rng(0).choice(["u", "v", "w"], 300)
    table = pl.DataFrame({"a": cells, "b": [f"{cell}!" for cell in cells]})
    network = Network(po.JointModel().fit(table), table)
    assert network.score(table, "b", table["b"]) < 0.05
    nothing = table.with_columns(pl.lit(None, pl.String).alias("a"))
    assert network.score(nothing, "b", table["b"]) == pytest.approx(np.log(3), abs=0.02)


@pytest.mark.filterwarnings("ignore")  # of the library
@pytest.mark.oracle
def test_miceforest_fills_missing_cells_with_what_is_true():
    pytest.importorskip("miceforest", reason="miceforest is absent: pip install -e '.[bench]'")
    from experiments.joint import filled_by_miceforest

    rng = np.random.default_rng(0)
    full = pl.DataFrame({"a": rng.choice(["u", "v"], 300)}).with_columns(b=(pl.col("a") == "u").cast(pl.Float64) * 9)
    lacks = pl.Series(rng.random(300) < 0.1)
    table = full.with_columns(pl.when(lacks).then(None).otherwise("a").alias("a"))
    assert (filled_by_miceforest(table)["a"] == full["a"].to_numpy()).all()
