"""The registry of models, and the recipe that adds one: `examples/extending/model.py`."""

import contextlib
import io
import json
import subprocess
import sys

import pytest
from numpy.testing import assert_allclose, assert_array_equal

import posteriori as po
from examples.extending import model
from posteriori import persistence
from posteriori.checks import check_model
from posteriori.cli import main
from posteriori.datasets import load_penguins
from posteriori.registry import COMPARED, CROSS_VALIDATED, MODELS, find_model


@pytest.fixture
def registered():
    """Add the entry of the recipe, as if it were in the library."""
    model.register()
    persistence._own_estimators.cache_clear()
    yield model.OneDependenceBayes
    del MODELS["one-dependence"]
    persistence._own_estimators.cache_clear()


def command(*arguments):
    out = io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
        assert main([str(argument) for argument in arguments]) == 0
    return out.getvalue()


def test_the_model_of_the_recipe_is_found_everywhere(registered, tmp_path):
    penguins = load_penguins()
    alone = registered().fit(penguins, "species")
    assert_allclose(
        alone.predict_proba(penguins), po.KDependenceBayes(1).fit(penguins, "species").predict_proba(penguins)
    )
    assert check_model(registered(), penguins.head(100), "species")
    judged = po.cross_validate(["one-dependence", "nb"], penguins, "species", folds=2)
    assert judged.table["model"].to_list() == ["one-dependence", "naive Bayes"]
    pool = po.GenerativeClassifier(folds=2).fit(penguins, "species")
    assert "one-dependence" in pool.cv_results_["member"]
    one_column = po.GenerativeClassifier(folds=2).fit(penguins[["flipper_length_mm"]], penguins["species"])
    assert one_column.skipped_["one-dependence"] == "it needs two columns"
    po.save(alone, tmp_path / "alone.posteriori")
    again = po.load(tmp_path / "alone.posteriori")
    assert type(again) is registered
    assert_array_equal(again.predict_proba(penguins), alone.predict_proba(penguins))
    penguins.write_csv(tmp_path / "penguins.csv")
    fitted = command(
        "fit", tmp_path / "penguins.csv", "--target", "species", "--model", "one-dependence", "--folds", 2, "--json",
        "--output", tmp_path / "fitted.posteriori",
    )  # fmt: skip
    assert json.loads(fitted)["model"] == "one-dependence"


def test_defaults_are_models_and_unknown_names_get_a_suggestion():
    assert set(COMPARED) | set(CROSS_VALIDATED) <= MODELS.keys()
    with pytest.raises(ValueError, match=r"there is no model 'rda predictve'; is it 'rda predictive'"):
        find_model("rda predictve")


def test_reading_the_registry_imports_nothing_heavy():
    code = "import sys, posteriori.registry; print([m for m in ('numpy', 'polars', 'sklearn') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
