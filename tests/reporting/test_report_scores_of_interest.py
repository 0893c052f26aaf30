"""Of two classes, figures of the report are of the rarer one, whatever the order of their names."""

import re

import numpy as np
import polars as pl
import pytest

import posteriori as po


@pytest.mark.parametrize("rare", ["bad", "worse"])
def test_scores_and_thresholds_are_of_the_rarer_class(rare, tmp_path):
    rng = np.random.default_rng(0)
    is_rare = rng.random(200) < 0.25
    table = pl.DataFrame({"a": rng.normal(size=200) + 2 * is_rare, "y": np.where(is_rare, rare, "good")})
    po.report(po.NaiveBayes().fit(table, "y"), table, "y", path=tmp_path / "r.html")
    page = re.sub(r"<[^>]+>", " ", (tmp_path / "r.html").read_text("utf-8"))
    assert f"of “{rare}”: share of the rows found" in page
    assert f"Thresholds of p({rare})" in page
    assert f"Of 100 that are “{rare}”, it finds" in page
