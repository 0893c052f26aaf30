"""Names of classes and columns, paths and numbers that nobody expects do no harm in what is written."""

import json
import math
import warnings

import numpy as np
import polars as pl
import pytest

import posteriori as po
from posteriori.cli import main
from posteriori.support.formatting import count, exponential

_RUN = ['=HYPERLINK("http://x")', "+1+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "\t=1", "\r=1"]
_HARMLESS = ["a=1", "-5", "+1.5e-3", "ok", "'quoted"]


@pytest.fixture
def written(tmp_path):
    """A model whose classes a spreadsheet would run, its rows in a file, and the file of predictions."""
    labels = [*_RUN, *_HARMLESS] * 2
    rows = pl.DataFrame({"x": np.arange(float(len(labels))) % 11, "=A1": labels, "y": labels})
    rows.write_parquet(tmp_path / "rows.parquet")
    model = po.NaiveBayes(distributions={"x": po.Binned(list(np.arange(10) + 0.5))}).fit(rows[["x"]], rows["y"])
    return model, po.scan(tmp_path / "rows.parquet"), tmp_path / "out.csv"


def test_text_is_written_as_it_is_with_a_warning(written):
    model, scan, out = written
    with pytest.warns(UserWarning, match="a spreadsheet runs as a formula.*escape_formulas=True"):
        po.predict_to(model, scan, out, with_columns=["=A1"])
    found = pl.read_csv(out, infer_schema=False)
    assert found.columns == ["=A1", "prediction"]
    assert found["=A1"].to_list() == [*_RUN, *_HARMLESS] * 2


def test_escaped_text_has_an_apostrophe_before_a_formula(written):
    model, scan, out = written
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        po.predict_to(model, scan, out, proba=True, with_columns=["=A1"], escape_formulas=True)
    found = pl.read_csv(out, infer_schema=False)
    assert found.columns[:2] == ["'=A1", "prediction"]
    assert found["'=A1"].to_list() == [*(f"'{text}" for text in _RUN), *_HARMLESS] * 2
    assert set(found["prediction"]) <= {*(f"'{text}" for text in _RUN), *_HARMLESS}
    with pytest.raises(ValueError, match=r"escape_formulas is for CSV and TSV files"):
        po.predict_to(model, scan, out.with_suffix(".parquet"), escape_formulas=True)


def test_the_command_line_escapes_too(written, capsys):
    model, scan, out = written
    po.save(model, out.with_suffix(".posteriori"))
    command = ["predict", str(out.with_suffix(".posteriori")), str(scan.paths[0])]
    assert main([*command, "--with", "=A1", "--escape-formulas"]) == 0
    assert capsys.readouterr().out.startswith("'=A1,prediction\n")
    assert main([*command, "--with", "=A1"]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("=A1,prediction\n")
    assert "--escape-formulas" in printed.err


def test_javascript_may_stand_in_a_script_of_a_page():
    names = ["</script><script>alert(1)</script>", "<!--", "a\u2028b&"]
    model = po.NaiveBayes().fit([[name] for name in names], names)
    text = po.javascript.to_javascript(model)
    assert text.isascii()
    assert not set("<>&") & set(text)
    assert json.loads(text)["classes"] == sorted(names)


def test_a_path_with_a_nul_is_refused_in_a_sentence(tmp_path):
    model = po.NaiveBayes().fit([["u"], ["v"]], ["a", "b"])
    for write in (lambda path: po.save(model, path), lambda path: po.predict_to(model, [["u"]], path)):
        with pytest.raises(ValueError, match="holds a NUL character"):
            write(tmp_path / "a\0b.csv")


@pytest.mark.parametrize("scale", [1.0, 1e-150, 1e-300, 1e-310, 1e-320])
@pytest.mark.parametrize("bins", ["mdlp", (), 4])
def test_the_density_of_binned_numbers_is_finite_for_tiny_floats(scale, bins, tmp_path):
    x = np.concatenate([np.arange(1.0, 30.0), np.arange(50.0, 80.0)])[:, np.newaxis] * scale
    y = np.repeat(["a", "b"], [29, 30])
    model = po.NaiveBayes(distributions={"x0": po.Binned(bins)}).fit(x, y)
    assert np.isfinite(model.score_samples(x)).all()
    po.save(model, tmp_path / "m.posteriori")
    np.testing.assert_array_equal(po.load(tmp_path / "m.posteriori").score_samples(x), model.score_samples(x))


def test_numbers_that_are_none_are_written():
    assert [exponential(nats) for nats in (math.nan, math.inf, -math.inf)] == ["–", "∞", "0"]
    assert count(math.nan) == "–"
