"""The experiments that measure joint models: what they ask, how they judge, and that they run on a small table."""

import numpy as np
import polars as pl
import pytest

from experiments import joint_law, multiple_imputation


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


def test_coverage_is_the_share_of_intervals_that_hold_the_truth():
    full = {"value": 0.0, "variance": 1.0, "freedom": 1e6}
    lines = [
        {"of": "mean of normal", "no_gaps": full, "found": full | {"value": value, "variance": 4.0}}
        for value in (-1.0, 3.9, 4.0)
    ]
    scores = multiple_imputation.scores_of(lines)
    assert scores == pytest.approx({"coverage": 2 / 3, "bias": 2.3, "width": 2.0})
    assert multiple_imputation.scores_of(lines, "no_gaps")["coverage"] == 1.0
