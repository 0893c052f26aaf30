"""The experiments behind docs/ and the benchmarks: they import, and they fill blocks that their pages have."""

import importlib
import pkgutil
import re

import numpy as np
import polars as pl
import pytest

import benchmarks
import experiments
from experiments import ablation_candidates, importance, rivals
from experiments.ablation_cells import Cells
from experiments.ablations import CANDIDATES, pooled_loss, predicted
from experiments.page import DOCS, markdown_table, replace_block
from experiments.real_tables import Table

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
def test_a_candidate_of_the_ablations_predicts_rows_that_it_has_not_seen(name, labelled, monkeypatch):
    interpreted = ablation_candidates._two_dependence.py_func  # compiling it takes longer than these few rows
    monkeypatch.setattr(ablation_candidates, "_two_dependence", interpreted)
    cells, y, fold = labelled
    log_posterior = predicted(CANDIDATES[name], cells, y, fold, 3)
    np.testing.assert_allclose(np.exp(log_posterior).sum(axis=1), 1.0, atol=1e-6)
    assert -log_posterior[np.arange(150), y].mean() < 0.6 * np.log(3)
    others = np.random.default_rng(1).permutation(y)  # labels without information
    by_chance = predicted(CANDIDATES[name], cells, others, fold, 3)
    assert -by_chance[np.arange(150), others].mean() > 0.9 * np.log(3)


def test_a_pool_gains_by_an_informative_member_and_hardly_loses_by_noise(labelled):
    _, y, fold = labelled
    rng = np.random.default_rng(2)

    def member(scale):
        scores = scale * np.eye(3)[y] + rng.normal(size=(150, 3))
        return (scores - np.log(np.exp(scores).sum(axis=1, keepdims=True)))[:, :, np.newaxis]

    base, other, noise = member(1.5), member(1.5), member(0.0)
    loss = pooled_loss(base, y, fold)
    assert pooled_loss(np.concatenate([base, other], axis=2), y, fold) < loss - 0.05
    assert abs(pooled_loss(np.concatenate([base, noise], axis=2), y, fold) - loss) < 0.03


def test_importance_orders_columns_as_permutation_does_where_they_are_independent():
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


def test_rivals_are_compared_on_the_tables_that_all_were_measured_on():
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
