"""The experiments that measure joint models: what they ask, how they judge, and that they run on a small table."""

import numpy as np
import polars as pl
import pytest
from scipy.special import ndtri

from experiments import drawn_tables, joint_law, multiple_imputation


@pytest.fixture(autouse=True)
def no_warm_up(monkeypatch):
    """Leave out the fit before those whose time is measured."""
    for module in (drawn_tables, joint_law, multiple_imputation):
        monkeypatch.setattr(module, "warm_up", lambda: None)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Return a folder of one table: a number, one that follows it, and a category of its sign."""
    rng = np.random.default_rng(0)
    x = np.round(rng.normal(size=200), 2)
    y = np.round(x + rng.normal(size=200), 2)
    rows = "".join(f"{a},{b},{'high' if a > 0 else 'low'}\n" for a, b in zip(x, y, strict=True))
    (tmp_path / "joint").mkdir()
    (tmp_path / "joint" / "made.csv").write_text(f"x,y,sign\n{rows},1.0,low\n")
    (tmp_path / "joint" / "INDEX.tsv").write_text("name\tfile\tcategorical_columns\nmade\tmade.csv\tsign\n")
    (tmp_path / "INDEX.tsv").write_text("name\tfile\ttarget\tcategorical_columns\nother\tother.csv\ty\tnone\n")
    monkeypatch.setenv("POSTERIORI_DATA", str(tmp_path))
    return tmp_path


def test_the_law_of_a_table_is_measured_once(folder, capsys):
    output = folder / "law.jsonl"
    joint_law.measure(output, ["rows", "cells", "ranges", "named"], ["made"])
    lines = pl.DataFrame(joint_law.read_lines(output), infer_schema_length=None)
    law = {part: own["log_p"][0] for part, own in zip(("rows", "cells"), lines.partition_by("part"), strict=False)}
    assert lines["part"].unique(maintain_order=True).to_list() == ["rows", "cells", "ranges"]
    assert lines["rows"].drop_nulls().to_list() == [140, 140]  # the row with a gap is left out
    assert -2.5 * np.log(joint_law.N_CELLS) < law["cells"] < -1.5 * np.log(joint_law.N_CELLS)
    asked = lines.filter(pl.col("part") == "ranges")
    assert asked["n_test"].min() >= joint_law.LEAST_IN_RANGE
    assert asked["answer"].is_between(0.0, 1.0).all()
    before = output.read_text()
    joint_law.measure(output, ["rows"], ["made"])
    assert output.read_text() == before
    joint_law.measure(output, ["rows"], ["made"], again=True)
    assert output.read_text() != before
    assert len(joint_law.read_lines(output)) == len(lines)
    capsys.readouterr()
    joint_law.show(output, ["rows", "ranges"], ["made"])
    shown = capsys.readouterr().out
    assert "| made | 140, 3, 2 |" in shown
    assert f"| made ({len(asked)}) |" in shown


def test_tables_that_the_folder_lacks_are_named(folder, capsys):
    found = dict(joint_law.read_frames(folder, ["made", "moved"]))
    assert found["made"].schema == {"x": pl.Float64, "y": pl.Float64, "sign": pl.String}
    assert list(found) == ["made"]
    assert capsys.readouterr().out == "absent: moved\n"


def test_a_number_counts_by_its_cell_of_equal_weight():
    train = pl.DataFrame({"x": np.arange(640.0), "kind": ["a"] * 640})
    cells = joint_law.in_cells(train, train)
    assert cells["x"].value_counts()["count"].to_list() == [10] * 64
    assert joint_law.in_cells(train, pl.DataFrame({"x": [-9.0, 9e9]}))["x"].to_list() == [0, 63]


def test_a_question_counts_the_rows_strictly_in_its_range():
    rows = pl.DataFrame({"x": [1.0, 2.0, 3.0, 4.0], "y": [5.0, 6.0, 5.0, 6.0], "kind": ["a", "b", "b", "a"]})
    assert joint_law.Question("kind", "=", "a", "x", 2.0).count(rows) == (2, 1)
    assert joint_law.Question("y", "<=", 5.0, "x", 1.0).count(rows) == (3, 1)
    assert joint_law.Question("y", ">", 5.0, "x", 1.0).count(rows) == (3, 2)
    assert str(joint_law.Question("kind", "=", "a", "x", 2.0)) == 'P("kind" = "a" | "x" > 2.0)'


def test_an_answer_is_judged_by_the_held_out_share():
    lines = pl.DataFrame(
        {"answer": [0.5, 0.9], "n_train": [30, 0], "k_train": [30, 0], "n_test": [98, 98], "k_test": [49, 49]}
    )
    answers = joint_law.answers_of(lines)
    np.testing.assert_allclose(answers["counts"], [31 / 32, 0.5])
    np.testing.assert_allclose(answers["mixed"], [35 / 40, 0.9])
    assert joint_law.is_right(lines, np.array([0.5 + 2 * 0.0505, 0.5 - 2 * 0.0505])).tolist() == [True, True]
    assert joint_law.is_right(lines, np.array([0.602, 0.398])).tolist() == [False, False]
    expected = [np.log(2.0), -(np.log(0.9) + np.log(0.1)) / 2]
    np.testing.assert_allclose(joint_law.losses(lines, answers["model"]), expected)


# Multiple imputation -----------------------------------------------------------------------------------------------


def test_the_truth_is_that_of_a_large_simulated_table():
    found = multiple_imputation.estimates_of(multiple_imputation.simulate(400_000, 0))
    for name, truth in multiple_imputation.TRUTH.items():
        assert found[name].value == pytest.approx(truth, abs=4.0 * np.sqrt(found[name].variance))
        assert np.sqrt(found[name].variance) < 0.006


@pytest.mark.parametrize("gaps", multiple_imputation.GAPS)
def test_nearly_a_third_of_the_cells_are_gaps(gaps):
    frame = multiple_imputation.simulate(4000, 1)
    table = multiple_imputation.with_gaps(frame, gaps, 1)
    missing = {one.name: one.null_count() / 4000 for one in table}
    assert missing.pop("x") == (0.0 if gaps == "by x" else pytest.approx(0.3, abs=0.03))
    assert list(missing.values()) == pytest.approx([0.3] * 4, abs=0.03)
    above = frame["x"] > 0
    share = [table["counts"].filter(side).is_null().mean() for side in (above, ~above)]
    assert (share[0] > share[1] + 0.2) == (gaps == "by x")


def test_imputed_tables_are_pooled_by_the_rules_of_rubin():
    single = [multiple_imputation.Estimate(value, 2.0, 99.0) for value in (1.0, 2.0, 3.0)]
    found = multiple_imputation.pooled(single)
    assert (found.value, found.variance) == pytest.approx((2.0, 2.0 + 4.0 / 3.0))
    # The share of the variance that is due to gaps is 0.4: 12.5 by Rubin, and 58.24 of the complete table.
    assert found.freedom == pytest.approx(1.0 / (1.0 / 12.5 + 1.0 / (100.0 / 102.0 * 99.0 * 0.6)))
    same = multiple_imputation.pooled(single[:1] * 3)
    assert (same.value, same.variance) == (1.0, 2.0)
    assert multiple_imputation.pooled(single[:1]) == single[0]


def test_a_slope_and_its_error_are_those_of_least_squares():
    rng = np.random.default_rng(2)
    x = rng.normal(size=4000)
    y = 2.0 * x + 3.0 * rng.normal(size=4000)
    found = multiple_imputation.slope_of(x, y)
    assert found.value == pytest.approx(np.polyfit(x, y, 1)[0])
    assert np.sqrt(found.variance) == pytest.approx(3.0 / np.sqrt(4000), rel=0.05)


def test_imputed_tables_are_scored_and_not_drawn_again(tmp_path, monkeypatch):
    monkeypatch.setattr(multiple_imputation, "M", 2)
    output = tmp_path / "gaps.jsonl"
    methods = ["complete rows", "joint", "iterative"]
    multiple_imputation.measure(output, 1, [60], methods)
    lines = multiple_imputation.read_lines(output)
    assert len(lines) == len(multiple_imputation.GAPS) * len(methods) * len(multiple_imputation.TRUTH)
    multiple_imputation.measure(output, 1, [60], methods)
    assert multiple_imputation.read_lines(output) == lines
    assert "| by x, 60 rows (7) |" in multiple_imputation.summary(lines)
    assert "| coverage, bias, width | no gaps | complete rows | joint | iterative |" in multiple_imputation.summary(
        lines
    )


@pytest.mark.parametrize(("version", "left"), [("4.6.0", ["miceforest"]), ("4.7.0", []), ("5.0.1", [])])
def test_miceforest_is_left_out_where_it_cannot_match(version, left, monkeypatch):
    monkeypatch.setattr(multiple_imputation, "methods_left", lambda names, done: list(names))
    monkeypatch.setattr(multiple_imputation, "version", lambda package: version)
    assert multiple_imputation.methods_that_run(["joint", "miceforest"], set()) == ["joint", *left]


def test_coverage_is_the_share_of_intervals_that_hold_the_truth():
    full = {"value": 0.0, "variance": 1.0, "freedom": 1e6}
    lines = [
        {"of": "mean of normal", "no_gaps": full, "found": full | {"value": value, "variance": 4.0}}
        for value in (-1.0, 3.9, 4.0)
    ]
    scores = multiple_imputation.scores_of(lines)
    assert scores == pytest.approx({"coverage": 2 / 3, "bias": 2.3, "width": 2.0})
    assert multiple_imputation.scores_of(lines, "no_gaps")["coverage"] == 1.0


# Drawn tables ------------------------------------------------------------------------------------------------------


def test_quantiles_of_other_rows_are_within_two_errors():
    rng = np.random.default_rng(3)
    real = rng.normal(size=1000)
    assert drawn_tables.quantiles_within(real, real).all()
    # Exact quantiles are outside of an interval of two standard errors about one time in twenty.
    exact = ndtri((np.arange(1000) + 0.5) / 1000)
    within = [drawn_tables.quantiles_within(rng.normal(size=1000), exact) for _ in range(100)]
    assert np.mean(within, axis=0) == pytest.approx(0.95, abs=0.06)
    shifted = drawn_tables.quantiles_within(real, exact + 0.2)
    assert not shifted[2:5].any()


def test_a_copula_keeps_values_shares_and_correlations():
    rng = np.random.default_rng(4)
    x = rng.normal(size=3000)
    kind = np.where(x + rng.normal(size=3000) > 1.0, "rare", "usual")
    train = pl.DataFrame({"x": x, "y": np.round(2.0 * x + rng.normal(size=3000)).astype(int), "kind": kind})
    drawn = drawn_tables.by_copula(train)
    assert drawn.schema == train.schema
    assert drawn["y"].is_in(train["y"].unique().to_list()).all()
    assert (drawn["kind"] == "rare").mean() == pytest.approx((train["kind"] == "rare").mean(), abs=0.03)
    correlation = [np.corrcoef(one["x"], one["y"])[0, 1] for one in (train, drawn)]
    assert correlation[1] == pytest.approx(correlation[0], abs=0.03)
    above = [one.filter(pl.col("kind") == "rare")["x"].mean() for one in (train, drawn)]
    assert 0.3 * above[0] < above[1] < above[0]  # random ranks within a category weaken its dependence


def test_figures_show_what_is_wrong_with_drawn_rows(monkeypatch):
    rng = np.random.default_rng(5)
    x = rng.normal(size=400)
    frame = pl.DataFrame({"x": x, "y": x + 0.1 * rng.normal(size=400), "count": rng.integers(0, 9, 400)})
    train, test = frame[:200], frame[200:]
    compared = drawn_tables.po.comparison.TableComparison
    facts = {"columns": pl.DataFrame({"distance": [0.1, 0.3]}), "auc": 0.75}
    fields = dict.fromkeys(compared.__dataclass_fields__) | facts
    monkeypatch.setattr(drawn_tables.po, "compare_tables", lambda real, drawn: compared(**fields))
    good = drawn_tables.figures_of(train, test, train)
    assert (good["auc"], good["distance"], good["outside"], good["not_whole"]) == (0.75, 0.2, 0.0, 0.0)
    assert good["correlation"] < 0.2
    assert good["quantiles"] > 0.7
    bad = train.with_columns(pl.col("y").shuffle(seed=0), pl.col("count") + pl.Series([0.5, 0.0] * 100) + 20)
    found = drawn_tables.figures_of(train, test, bad)
    assert found["correlation"] > 0.8
    assert found["outside"] == pytest.approx(1 / 3)
    assert found["not_whole"] == 0.5


def test_drawn_tables_are_measured_once(folder, monkeypatch):
    output = folder / "drawn.jsonl"
    monkeypatch.setattr(drawn_tables, "figures_of", lambda train, test, drawn: {"auc": len(drawn) / len(test)})
    monkeypatch.setattr(drawn_tables, "FIGURES", {"auc": "AUC"})
    drawn_tables.measure(output, ["made"], ["joint", "copula", "training rows"])
    lines = drawn_tables.read_lines(output)
    assert [line["part"] for line in lines] == ["joint", "copula", "training rows"]
    drawn_tables.measure(output, ["made"], ["joint"])
    assert drawn_tables.read_lines(output) == lines
    text = drawn_tables.summary(lines)
    assert "| tuning half (0)" not in text
    assert "| report half (1) | copula | 1.000 |" in text
    assert "| made | training rows | 1.000 |" in text


@pytest.mark.filterwarnings("ignore")  # of the library
def test_a_forest_draws_rows_of_the_same_columns():
    pytest.importorskip("arfpy", reason="arfpy is absent: pip install arfpy")
    rng = np.random.default_rng(6)
    x = rng.normal(size=100)
    train = pl.DataFrame({"x": x, "count": rng.integers(0, 9, 100), "kind": np.where(x > 0, "a", "b")})
    drawn = drawn_tables.by_forest(train)
    assert drawn.shape == train.shape
    assert drawn_tables.whole_columns(drawn) == ["count"]
    assert set(drawn["kind"]) == {"a", "b"}
