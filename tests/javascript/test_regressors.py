"""A regressor in JavaScript gives the densities of Python, whatever is missing."""

import datetime
import json
import warnings

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.javascript import to_javascript
from tests.cli.command_line import CommandLine
from tests.javascript.engines import in_chromium, in_node
from tests.javascript.regressors import REGRESSORS, rows_of_numbers

LEVELS = [0.0, 0.01, 0.25, 0.5, 0.9, 1.0]
RANGES = [(200.0, 300.0), (0.0, 0.0), (3.0, 6.0), (-np.inf, 250.0), (9.0, 1.0)]

SCRIPT = """
const numberOfText = (x) => (x === null ? NaN : Number(x));
function evaluatedNumbers({ file, rows, levels, ranges }) {
  const model = load(JSON.stringify(file));
  return rows.map((row) => {
    const found = model.predictDensity(row);
    const { base, location, parts } = model.explain(row);
    return {
      probabilities: Array.from(found.probabilities),
      densities: Array.from(found.densities),
      mean: found.mean,
      predicted: model.predict(row),
      sd: found.sd,
      median: found.median,
      quantiles: levels.map((q) => found.quantile(q)),
      interval: found.interval(0.8),
      ranges: ranges.map(([low, high]) => found.probability(Number(low), Number(high))),
      base,
      location,
      parts: parts.map(({ part }) => part),
      names: parts.map(({ column }) => column),
      unseen: model.unseen(row),
    };
  });
}
const result = given.map(evaluatedNumbers);
"""


def plain(row):
    return {name: cell.isoformat() if isinstance(cell, datetime.datetime) else cell for name, cell in row.items()}


@pytest.fixture(scope="module")
def fitted():
    return {name: make() for name, make in REGRESSORS.items()}


@pytest.fixture(scope="module")
def given(fitted):
    ranges = [[str(end).replace("inf", "Infinity") for end in pair] for pair in RANGES]
    common = {"levels": LEVELS, "ranges": ranges}
    return [
        {"file": json.loads(to_javascript(model)), "rows": [plain(row) for row in rows]} | common
        for model, rows in fitted.values()
    ]


@pytest.fixture(scope="module")
def evaluated(fitted, given, tmp_path_factory):
    return dict(zip(fitted, in_node(SCRIPT, given, tmp_path_factory.mktemp("node")), strict=True))


def densities_of_python(model, rows):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.predict_density(pl.DataFrame(rows, infer_schema_length=None))


@pytest.mark.parametrize("name", REGRESSORS)
def test_the_density_and_its_summaries_are_those_of_python(name, fitted, evaluated):
    model, rows = fitted[name]
    density, results = densities_of_python(model, rows), evaluated[name]

    def of(key):
        return np.array([result[key] for result in results], np.float64)

    scale = float(density.cells.high[-1] - density.cells.low[0])
    assert_allclose(of("probabilities"), density.probability, rtol=0, atol=1e-9)
    assert_allclose(of("densities"), density.probability / np.exp(density.cells.log_size), rtol=1e-7, atol=1e-9)
    close = {"rtol": 0, "atol": 1e-9 * scale}
    assert_allclose(of("mean"), density.mean, **close)
    assert_allclose(of("predicted"), density.mean, **close)
    assert_allclose(of("sd"), density.std, **close)
    step = density.cells.step
    for key, wanted in (("median", density.median), ("quantiles", density.quantile(LEVELS))):
        if step:  # a quantile is a point, which the last digit of a sum may decide
            assert (np.abs(of(key) - wanted) < 1e-9).mean() > 0.98
        else:
            assert_allclose(of(key), wanted, rtol=0, atol=1e-7 * scale)
    if not step:
        assert_allclose(of("interval"), density.interval(0.8), rtol=0, atol=1e-7 * scale)
    ranges = np.stack([density.probability_between(low, high) for low, high in RANGES], axis=1)
    assert_allclose(of("ranges"), ranges, rtol=0, atol=1e-9)


@pytest.mark.parametrize("name", REGRESSORS)
def test_the_parts_of_columns_add_up_to_the_location(name, fitted, evaluated):
    model, rows = fitted[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        batches = []
        source = model._source(pl.DataFrame(rows, infer_schema_length=None))
        source.map(lambda batch: (batches.append(batch), np.zeros(len(batch)))[1])
    (location,) = np.concatenate([model._value.found.located(batch)[0] for batch in batches]).T
    for row, result, wanted in zip(rows, evaluated[name], location, strict=True):
        assert result["location"] == pytest.approx(wanted, abs=1e-9)
        assert result["base"] + sum(result["parts"]) == pytest.approx(wanted, abs=1e-9)
        assert result["unseen"] == (["town"] if row.get("town") == "never seen" else [])


def test_a_browser_gives_the_same_numbers(fitted, given, evaluated, tmp_path):
    for name, of_browser in zip(fitted, in_chromium(SCRIPT, given, tmp_path), strict=True):
        for one, other in zip(evaluated[name], of_browser, strict=True):
            assert_allclose(other["probabilities"], one["probabilities"], rtol=0, atol=1e-12)


def test_levels_outside_of_0_to_1_are_refused(given, tmp_path):
    script = """
const density = load(given.file).predictDensity({});
const result = [() => density.quantile(1.5), () => density.interval(-1)].map((call) => {
  try { return call(); } catch (error) { return error.message; }
});
"""
    first, second = in_node(script, given[0], tmp_path)
    assert first.startswith("q is 1.5; give a number")
    assert second.startswith("coverage is -1; give one number")


def test_the_command_export_writes_it(fitted, tmp_path):
    model, _ = fitted["as is"]
    po.save(model, tmp_path / "price.posteriori")
    CommandLine().succeeds("export", tmp_path / "price.posteriori", "-o", tmp_path / "price.json")
    assert json.loads((tmp_path / "price.json").read_text()) == json.loads(to_javascript(model))


@pytest.mark.parametrize("kind", [po.KernelRegressor, po.GenerativeRegressor])
def test_other_regressors_name_the_one_that_is_written(kind, tmp_path):
    model = kind().fit(rows_of_numbers(80), "price")
    with pytest.raises(TypeError, match=f"a {kind.__name__} has .*additive_member.*, else fit an AdditiveRegressor"):
        to_javascript(model)
    po.save(model, tmp_path / "price.posteriori")
    if kind is po.GenerativeRegressor:
        assert to_javascript(model.additive_member())
        return
    assert "fit an AdditiveRegressor" in CommandLine().refused("export", tmp_path / "price.posteriori")


def test_an_unfitted_regressor_is_refused():
    from sklearn.exceptions import NotFittedError

    with pytest.raises(NotFittedError):
        to_javascript(po.AdditiveRegressor())
