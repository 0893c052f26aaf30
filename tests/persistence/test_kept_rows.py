"""What a model file holds of single rows: it is listed, does not show their order, and can be left out."""

from pathlib import Path

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from posteriori.datasets import load_penguins
from posteriori.fitting.fitted import kept_of_rows
from tests.cli.command_line import CommandLine

SECURITY = Path(__file__).parents[2] / "SECURITY.md"


@pytest.fixture(scope="module")
def rows():
    return load_penguins().drop_nulls(["body_mass_g", "sex"]).sample(fraction=1.0, shuffle=True, seed=0)[:150]


def fitted(name, rows):
    models = {
        "NaiveBayes": lambda: po.NaiveBayes().fit(rows, "species"),
        "GenerativeClassifier": lambda: po.GenerativeClassifier(["nb", "lda"]).fit(rows, "species"),
        "AdditiveRegressor": lambda: po.AdditiveRegressor().fit(rows, "body_mass_g"),
        "KernelRegressor": lambda: po.KernelRegressor().fit(rows, "body_mass_g"),
        "GenerativeRegressor": lambda: po.GenerativeRegressor().fit(rows, "body_mass_g"),
        "JointModel": lambda: po.JointModel().fit(rows),
        "JointModel asked for a number": lambda: po.JointModel(targets=["body_mass_g"]).fit(rows),
    }
    return models[name]()


PREDICT_FROM_ROWS = ["KernelRegressor", "GenerativeRegressor"]
OTHERS = ["NaiveBayes", "GenerativeClassifier", "AdditiveRegressor", "JointModel", "JointModel asked for a number"]


@pytest.mark.parametrize("name", [*PREDICT_FROM_ROWS, *OTHERS])
def test_the_page_on_security_lists_kept_rows(name, rows):
    kept = "; ".join(kept_of_rows(fitted(name, rows).fitted_.for_file())) or "nothing"
    (line,) = [line for line in SECURITY.read_text("utf-8").splitlines() if line.startswith(f"| {name} |")]
    assert line.replace("\\|", "|") == f"| {name} | {kept} |"


@pytest.mark.parametrize("name", OTHERS)
def test_a_file_without_rows_predicts_the_same(name, rows, tmp_path):
    model = fitted(name, rows)
    po.save(model, tmp_path / "model", without_rows=True)
    loaded = po.load(tmp_path / "model")
    assert kept_of_rows(loaded.fitted_) == []
    for method in ("predict_proba", "predict", "score_samples"):
        if hasattr(model, method) and not name.startswith("JointModel"):
            assert_array_equal(getattr(loaded, method)(rows), getattr(model, method)(rows))
    if name == "JointModel":
        assert_array_equal(loaded.score_samples(rows), model.score_samples(rows))


@pytest.mark.parametrize("name", PREDICT_FROM_ROWS)
def test_models_that_need_rows_are_not_saved_without_them(name, rows, tmp_path):
    with pytest.raises(ValueError, match=r"predicts from training rows: it holds .*; save an AdditiveRegressor"):
        po.save(fitted(name, rows), tmp_path / "model", without_rows=True)
    assert not (tmp_path / "model").exists()


def test_kept_rows_do_not_show_their_order(rows):
    """The same rows in another order leave the same records, of a pool and of regressors."""
    turned = rows[::-1]
    pools = [fitted("GenerativeClassifier", one).fitted_.record.posteriors for one in (rows, turned)]
    assert_array_equal(*[one.component for one in pools])
    assert_allclose(*[one.log_posterior.astype(float) for one in pools], rtol=1e-2, atol=1e-3)
    members = [fitted("GenerativeRegressor", one).fitted_.members for one in (rows, turned)]
    for part in ("cell", "residual"):
        assert_allclose(*[getattr(one.placed, part) for one in members], rtol=1e-6, atol=1e-8)
    assert_allclose(*[one.design.landmarks.inputs for one in members], atol=1e-9)


def test_no_landmark_is_a_row_that_was_unlearned(rows):
    model = fitted("KernelRegressor", rows)
    removed, left = rows[:20], rows[20:]
    model.unlearn(removed, "body_mass_g")
    design = model.fitted_.found.design
    assert len(design.landmarks) == len(rows) - len(removed)
    low, high = model.predict_interval(left, 0.9).T
    truth = left["body_mass_g"].to_numpy()
    assert np.mean((low <= truth) & (truth <= high)) > 0.8


def test_what_is_left_of_a_kernel_is_that_of_its_other_landmarks(rows):
    """Features by fewer landmarks are those of a fit that had only these: the sums follow exactly."""
    found = fitted("KernelRegressor", rows).fitted_.found
    dropped = np.zeros(len(found.design.landmarks), np.bool_)
    dropped[::3] = True
    some = found.without_landmarks(dropped)
    batch = fitted("KernelRegressor", rows).fitted_.rows.source(rows, 1).batch(slice(0, len(rows)))
    y = rows["body_mass_g"].to_numpy().astype(float)
    expected = some.products(batch, y, np.ones(len(y)))
    for part in ("features", "squares", "mixed"):
        assert_allclose(getattr(some.sums, part), getattr(expected, part), rtol=1e-6, atol=1e-6)


def test_a_model_of_the_command_line_can_be_without_rows(tmp_path, rows):
    rows.write_csv(tmp_path / "table.csv")
    line = CommandLine()
    options = ("--target", "species", "-o", tmp_path / "m", "--model", "nb")
    line.succeeds("fit", tmp_path / "table.csv", *options, "--without-rows")
    assert kept_of_rows(po.load(tmp_path / "m").fitted_) == []
    number = ("fit", tmp_path / "table.csv", "--target", "body_mass_g", "-o", tmp_path / "n", "--without-rows")
    assert "add --model additive" in line.refused(*number)
    line.succeeds(*number, "--model", "additive")
    assert kept_of_rows(po.load(tmp_path / "n").fitted_) == []
