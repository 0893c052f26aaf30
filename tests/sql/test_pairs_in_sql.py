"""A SELECT of learned tables with pairs of columns gives the posterior of Python."""

from __future__ import annotations

import re
import sqlite3
from dataclasses import replace

import numpy as np
import polars as pl
import pytest
import sqlglot

from posteriori.sql.dialects import Dialect
from posteriori.sql.translation import estimate_length
from tests.classifiers.pairs_by_hand import classifier_with_drawn_pairs, pool_with_drawn_pairs
from tests.sql.test_to_sql import DATABASES, FEATURES, PENGUINS, require_agreement, with_holes


@pytest.fixture(params=DATABASES)
def database(request):
    return request.param


@pytest.fixture(scope="module")
def rows():
    """Whole rows, rows with missing and unseen cells, and one without any cell."""
    rng = np.random.default_rng(0)
    strange = with_holes(FEATURES, 0.4, rng).with_columns(
        island=pl.when(pl.Series(rng.random(FEATURES.height) < 0.2)).then(pl.lit("Elsewhere")).otherwise("island")
    )
    return pl.concat([FEATURES.gather_every(3), strange.gather_every(3), with_holes(FEATURES[:1], 1.0, rng)])


@pytest.mark.parametrize("priors", [None, [0.5, 0.5, 0.0], [0.0, 0.5, 0.5]])
def test_it_agrees_on_missing_and_unseen_cells_and_zero_priors(priors, rows, database):
    require_agreement(classifier_with_drawn_pairs(PENGUINS, "species", bins=6, priors=priors), rows, database)


def test_it_agrees_as_a_member_of_a_pool(rows, database):
    require_agreement(pool_with_drawn_pairs(PENGUINS, "species"), rows, database)


def test_it_agrees_on_grouped_bins_and_columns_without_values(database):
    rng = np.random.default_rng(1)
    y = rng.integers(2, size=400)
    frame = pl.DataFrame({f"x{j}": rng.normal(y) for j in range(3)} | {"none": [None] * 400, "one": ["a"] * 400})
    frame = frame.with_columns(pl.col("none").cast(pl.Float64))
    with pytest.warns(UserWarning, match="column 'none' has no cell with a value"):
        model = classifier_with_drawn_pairs(frame, y, bins=100)
    require_agreement(model, with_holes(frame, 0.3, rng), database)
    [groups] = re.findall(r"CASE ((?:WHEN c0 <= \d+ THEN \d ){4})?END AS h0", model.to_sql())
    assert groups.endswith("THEN 4 ")  # one condition for each group, and not for each bin
    assert 0.5 < estimate_length(model.model_) / len(model.to_sql()) < 2


def test_slots_with_equal_numbers_for_all_classes_have_no_line(rows, database):
    model = classifier_with_drawn_pairs(PENGUINS, "species", bins=6)
    whole = model.to_sql(dialect="sqlite")
    weights, kept = model.model_.weights, model.model_.weights.pairs.starts[1]

    def changed(numbers):
        pairs = replace(weights.pairs, numbers=numbers)
        model.fitted_ = replace(model.fitted_, model=replace(model.model_, weights=replace(weights, pairs=pairs)))
        return model.to_sql(dialect="sqlite")

    numbers = weights.pairs.numbers
    some = np.where(np.arange(numbers.shape[1]) < kept, numbers, numbers[:1])
    text = changed(some)
    require_agreement(model, rows, database)
    assert len(text) < len(whole)
    assert "pairs_positions(p) AS MATERIALIZED (\nVALUES (0)\n)" in text
    assert "pairs" not in changed(np.repeat(numbers[:1], 3, axis=0))
    require_agreement(model, rows, database)


@pytest.mark.parametrize("dialect", Dialect.known())
def test_every_dialect_reads_it(dialect):
    model = classifier_with_drawn_pairs(PENGUINS, "species", bins=6)
    assert sqlglot.parse_one(model.to_sql(dialect=dialect), dialect=dialect)


@pytest.mark.parametrize("n_rows", [100, 33_000, 100_000])
def test_a_join_with_a_table_of_any_length_is_indexed_in_sqlite(n_rows):
    known = Dialect("sqlite").table_of("known", ["k", "v"], [(k, float(k)) for k in range(n_rows)])
    select = f"WITH {known} SELECT a, v FROM asked LEFT JOIN known ON k = a"
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE asked (a)")
    connection.execute("INSERT INTO asked VALUES (2), (4), (-1)")
    plan = [line[3] for line in connection.execute(f"EXPLAIN QUERY PLAN {select}")]
    assert any("INDEX (k=?)" in line for line in plan)
    assert connection.execute(select).fetchall() == [(2, 2.0), (4, 4.0), (-1, None)]
