"""What is known of the columns of a model: the same from rows and from a description of their file."""

import datetime as dt
import functools

import numpy as np
import polars as pl
import pytest
from numpy.testing import assert_allclose

import posteriori as po
from posteriori.facts.columns import distributions, facts_of_rows, facts_of_scan
from posteriori.facts.members import main_member
from posteriori.facts.ranges import drawn_ranges, known_ranges
from posteriori.statistics.description import describe_scan

N = 200


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    rng = np.random.default_rng(0)
    days = [dt.date(2024, 1, 1) + dt.timedelta(int(day)) for day in rng.integers(0, 700, N)]
    rows = pl.DataFrame(
        {
            "size": 1e6 + rng.normal(size=N).round(3),
            "cut": rng.exponential(size=N).round(4),
            "colour": rng.choice(["red", "green", None], N),
            "when": days,
            "name": [f"n{k}" for k in rng.permutation(10 * N)[:N]],
            "y": rng.choice(["u", "v"], N),
        }
    )
    rows = rows.with_columns(
        pl.when(pl.int_range(N) % 20 > 0).then("size"), pl.when(pl.int_range(N) % 5 > 0).then("when")
    )
    path = tmp_path_factory.mktemp("facts") / "rows.csv"
    rows.with_columns(pl.col("size").cast(pl.String).fill_null("?")).write_csv(path)
    return path


@functools.cache
def single(path):
    return po.NaiveBayes(distributions={"cut": po.Binned(4)}).fit(po.scan(path), "y")


@functools.cache
def pool(path):
    return po.GenerativeClassifier(["nb", "tan"], random_state=0).fit(po.scan(path), "y")


@pytest.mark.parametrize("fit", [single, pool])
@pytest.mark.filterwarnings("ignore")
def test_a_file_and_its_rows_tell_the_same_of_each_column(path, fit):
    scan = po.scan(path)
    model = fit(path)
    description = describe_scan(scan, [name for name in scan.names if name != "y"], "y")
    by_name = {one.column.name: one for one in facts_of_scan(model, scan, description)}
    of_rows = facts_of_rows(model, scan)
    assert {one.column.kind for one in of_rows} == {"continuous", "categorical", "ignored"}
    assert "when.days" in by_name
    for one in of_rows:
        other = by_name[one.column.name]
        assert (one.column, one.distribution) == (other.column, other.distribution)
        if one.column.is_ignored:
            assert one.distribution is None
            continue
        assert one.distribution is not None
        assert (one.cells.present, one.cells.missing) == (other.cells.present, other.cells.missing)
        numbers = [[cells.mean, cells.sd, cells.lowest, cells.highest] for cells in (one.cells, other.cells)]
        if one.column.kind == "continuous":
            assert_allclose(*numbers, rtol=1e-9)
        else:
            assert numbers == [[None] * 4] * 2
            assert one.counts.sum() == one.cells.present
    assert by_name["size"].marks == {"?": 10}
    assert by_name["colour"].cells.missing > 0


@pytest.mark.filterwarnings("ignore")
def test_the_distribution_of_a_column_is_its_density_or_pooled(path):
    model = single(path)
    named = dict(zip(model.schema_.names, distributions(model), strict=True))
    assert (named["size"], named["cut"], named["colour"], named["name"]) == ("gaussian", "binned", "categorical", None)
    assert set(distributions(pool(path))) == {"pooled", None}


@pytest.mark.filterwarnings("ignore")
def test_the_main_member_has_the_greatest_weight(path):
    model, several = single(path), pool(path)
    name, member = main_member(several.fitted_)
    assert member is several.fitted_.members[name]
    assert several.member_weights_[name] == max(several.member_weights_.values())
    assert main_member(model.fitted_) == (None, model.fitted_)


def test_ranges_are_those_of_the_rows_or_of_draws_near_them():
    x = np.random.default_rng(0).normal(5, 1, 300)
    model = po.NaiveBayes().fit(pl.DataFrame({"x": x}), np.arange(300) % 2)
    known, drawn = known_ranges(model), drawn_ranges(model.schema_, model.model_)
    assert (known.lowest[0], known.highest[0]) == (x.min(), x.max())
    assert not drawn.whole[0]
    assert 0 < drawn.lowest[0] < 4 < 6 < drawn.highest[0] < 10
