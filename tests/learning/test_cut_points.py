"""Cut points outside each fold are those of a table without its rows; models and `MDLPDiscretizer` cut alike."""

import functools
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from sklearn.datasets import load_iris, load_wine

import posteriori as po
import posteriori.sources.table_source
from posteriori.kernels.loops.hashing import splitmix64
from posteriori.learning import cut_points
from posteriori.learning.cut_points import CutPoints, binned_schema, mdlp_of_counts, quantile_cuts
from posteriori.reading import infer_schema, read_labels, read_table
from posteriori.sources import source_of

RULES = (3, 8, "mdlp", "auto", "coarse", "fine")


def labelled_source(values, labels, weight=None, fold=None):
    table = read_table(values)
    known = read_labels(labels, table)
    positions = list(range(values.shape[1]))
    schema = infer_schema(table, positions)
    return source_of(table, schema, positions, known, known.infer(), weight, fold, n_jobs=1, local=True)


def cuts_of(schema):
    return [column.cuts for column in schema.columns]


@st.composite
def folded_tables(draw):
    """Return numbers with ties and gaps, labels, weights and folds of some rows; a fold may have none."""
    n = draw(st.integers(4, 60))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    labels = rng.integers(0, 3, n)
    values = np.column_stack([rng.integers(0, 9, n) + labels, rng.normal(2.0 * labels, 1.0)])
    values[rng.random(values.shape) < draw(st.sampled_from([0.0, 0.2]))] = np.nan
    weight = [None, rng.integers(0, 3, n).astype(float), rng.gamma(2.0, 1.0, n)][draw(st.integers(0, 2))]
    return values, labels, weight, rng.integers(-1, 3, n).astype(np.int32)


@given(folded_tables(), st.sampled_from(RULES), st.sampled_from(RULES))
def test_cuts_outside_a_fold_are_those_of_a_table_without_it(rows, first, second):
    values, labels, weight, fold = rows
    bins = {0: first, 1: second}
    found = CutPoints(labelled_source(values, labels, weight, fold), 3).schemas(bins)
    for k, schema in enumerate(found):
        kept = fold != k if k < 3 else np.ones(len(fold), bool)
        if not kept.any():
            continue
        alone = labelled_source(values[kept], labels[kept], None if weight is None else weight[kept])
        assert cuts_of(schema) == cuts_of(binned_schema(alone, bins))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_batches_and_threads_change_no_cut(monkeypatch, n_jobs):
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 3000)
    values, fold = rng.normal(labels[:, np.newaxis], 1.0, (3000, 3)), np.repeat([0, 1, 2], 1000).astype(np.int32)
    source, bins = labelled_source(values, labels, rng.gamma(2.0, 1.0, 3000), fold), {0: "mdlp", 1: 8, 2: "mdlp"}
    whole = CutPoints(source, 3).schemas(bins)
    monkeypatch.setattr(posteriori.sources.table_source, "_MOST_ROWS", 64)
    monkeypatch.setattr(posteriori.sources.table_source, "_FEWEST_ROWS", 64)
    parts = CutPoints(source, 3, n_jobs).schemas(bins)
    assert [cuts_of(one) for one in parts] == [cuts_of(one) for one in whole]
    assert len({str(cuts_of(one)) for one in whole}) == 4


def test_folds_share_a_schema_where_their_cuts_are_equal():
    values, labels = np.tile([[0.0], [1.0], [2.0], [3.0]], (30, 1)), np.tile([0, 0, 1, 1], 30)
    found = CutPoints(labelled_source(values, labels, None, np.repeat([0, 1, 2], 40).astype(np.int32)), 3).schemas(
        {0: 8}
    )
    assert all(one is found[0] for one in found)


# More rows than are sampled -----------------------------------------------------------------------------------------


@pytest.fixture
def sampled(monkeypatch):
    """Return rows, of which a tenth is sampled: values, labels, weights, folds, and which rows the sample holds."""
    monkeypatch.setattr(cut_points, "SAMPLED_ROWS", 200)
    monkeypatch.setattr(cut_points, "_GRID", 50)
    monkeypatch.setattr(posteriori.sources.table_source, "_MOST_ROWS", 128)
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 2, 2000)
    values, weight = rng.normal(labels[:, np.newaxis], 1.0, (2000, 2)), rng.integers(1, 4, 2000).astype(float)
    chosen = np.sort(np.argsort(splitmix64(np.arange(2000, dtype=np.uint64)))[:200])
    return values, labels, weight, rng.integers(0, 4, 2000).astype(np.int32), chosen


def test_of_many_rows_a_sample_says_where_quantiles_lie(sampled):
    values, labels, weight, fold, chosen = sampled
    found = CutPoints(labelled_source(values, labels, weight, fold), 4).schemas({0: 5})
    for k in range(5):
        kept = chosen[fold[chosen] != k]
        assert found[k].columns[0].cuts == tuple(quantile_cuts(values[kept, 0], weight[kept], 5))


def test_many_rows_are_counted_between_quantiles_of_a_sample(sampled):
    values, labels, weight, fold, chosen = sampled
    found = CutPoints(labelled_source(values, labels, weight, fold), 4).schemas({0: "mdlp", 1: 5})
    grid = quantile_cuts(values[chosen, 0], weight[chosen], 50)
    for k in range(5):
        counts = np.zeros((2, len(grid) + 1))
        kept = fold != k
        np.add.at(counts, (labels[kept], np.searchsorted(grid, values[kept, 0], side="right")), weight[kept])
        assert found[k].columns[0].cuts == tuple(grid[mdlp_of_counts(counts)])
    assert len(found[0].columns[0].cuts) > 0


def test_of_many_rows_too_there_is_one_rule(sampled):
    values, labels, weight, *_ = sampled
    binned = po.NaiveBayes(distributions="binned").fit(values, labels, sample_weight=weight)
    for one, other in zip(
        binned.cuts_.values(), po.preprocessing.MDLPDiscretizer().fit(values, labels, weight).cuts_, strict=True
    ):
        assert_array_equal(one, other)


# Bins that follow the rows ------------------------------------------------------------------------------------------


def rows_of(n, n_values):
    """Return a column of whole numbers that has nothing to do with the classes, and one of fractions that has."""
    rng = np.random.default_rng(0)
    labels = np.arange(n) % 2
    return np.column_stack([np.arange(n) % n_values, rng.normal(labels, 1.0)]), rng.permutation(labels)


@pytest.mark.parametrize("folds", [0, 3])
@pytest.mark.parametrize("rule", ["auto", "coarse"])
def test_few_values_are_kept_from_2000_rows_on(rule, folds):
    for n, n_values, n_bins in ((1999, 16, None), (2000, 17, None), (2000, 16, 16), (4000, 13, 13)):
        values, labels = rows_of(n, n_values)
        n_bins = n_bins or (1 if rule == "auto" else 8)
        schema = binned_schema(labelled_source(values, labels), {0: rule, 1: rule})
        assert len(schema.columns[0].cuts) + 1 == n_bins
        assert len(schema.columns[1].cuts) + 1 <= 8
    one = CutPoints(labelled_source(values, labels, None, np.arange(n).astype(np.int32) % 3 - (folds == 0)), folds)
    assert all(len(schema.columns[0].cuts) == 12 for schema in one.schemas({0: rule}))


def test_a_stated_number_of_bins_and_mdlp_are_kept():
    values, labels = rows_of(4000, 10)
    for rule, n_bins in ((3, 3), (8, 8), ("mdlp", 1)):
        schema = binned_schema(labelled_source(values, labels), {0: rule})
        assert len(schema.columns[0].cuts) + 1 == n_bins


def test_fine_bins_follow_the_rows():
    for n, n_bins in ((3000, 64), (4999, 64), (5000, 255), (9000, 255)):
        schema = binned_schema(labelled_source(*rows_of(n, 16)), {1: "fine"})
        assert len(schema.columns[1].cuts) + 1 == n_bins


def test_of_many_rows_too_few_values_are_kept(sampled):
    values, labels, weight, fold, _ = sampled
    values = np.column_stack([np.arange(len(values)) % 13, values[:, 0]])
    found = CutPoints(labelled_source(values, labels, 20.0 * weight, fold), 4).schemas({0: "auto", 1: "auto"})
    assert all(schema.columns[0].cuts == tuple(np.arange(12) + 0.5) for schema in found)
    plain = CutPoints(labelled_source(values, labels, 20.0 * weight, fold), 4).schemas({1: "mdlp"})
    assert [one.columns[1].cuts for one in found] == [one.columns[1].cuts for one in plain]


# One rule of minimum description length -----------------------------------------------------------------------------


def plain_cuts(values, labels):
    """Return the cut points of Fayyad & Irani (1993), section 3, from their formulas and nothing else."""

    def entropy(part):
        shares = np.unique(part, return_counts=True)[1] / len(part)
        return -float((shares * np.log2(shares)).sum())

    n = len(values)
    ends = np.flatnonzero(values[1:] > values[:-1]) + 1
    if not len(ends):
        return []
    left_over = [(i * entropy(labels[:i]) + (n - i) * entropy(labels[i:])) / n for i in ends]
    i = ends[int(np.argmax(np.array(left_over) < min(left_over) + 1e-9))]
    gain = entropy(labels) - min(left_over)
    k, k1, k2 = (len(np.unique(part)) for part in (labels, labels[:i], labels[i:]))
    delta = math.log2(3**k - 2) - (k * entropy(labels) - k1 * entropy(labels[:i]) - k2 * entropy(labels[i:]))
    if gain <= (math.log2(n - 1) + delta) / n:
        return []
    cut = (values[i - 1] + values[i]) / 2
    return [*plain_cuts(values[:i], labels[:i]), cut, *plain_cuts(values[i:], labels[i:])]


@pytest.mark.parametrize("load", [load_iris, load_wine])
def test_binned_columns_are_cut_as_the_paper_has_it(load):
    X, y = load(return_X_y=True)
    binned = po.NaiveBayes(distributions="binned").fit(X, y)
    for j, cuts in enumerate(binned.cuts_.values()):
        order = np.argsort(X[:, j], kind="stable")
        np.testing.assert_allclose(cuts, plain_cuts(X[order, j], y[order]), rtol=1e-12)


@functools.cache
def index(folder):
    return {row["name"]: row for row in pl.read_csv(folder / "INDEX.tsv", separator="\t").iter_rows(named=True)}


@pytest.mark.parametrize("name", ["segment", "vehicle", "letter", "magic", "adult"])
def test_models_and_the_discretizer_cut_alike(shared_data, name):
    known = index(shared_data)[name]
    frame = pl.read_csv(shared_data / known["file"], infer_schema_length=None, null_values=["NA", "?", ""])
    if name == "letter":
        frame = frame.sample(3000, seed=0)
    y = frame[known["target"]].to_list()
    numbers = frame.drop(known["target"]).select(pl.selectors.numeric())
    discretizer = po.preprocessing.MDLPDiscretizer().fit(numbers, y)
    for model in (po.NaiveBayes(distributions="binned"), po.TreeAugmentedNaiveBayes(bins="mdlp")):
        schema = model.fit(numbers, y).model_.schema
        for column, cuts in zip(schema.columns, discretizer.cuts_, strict=True):
            assert_array_equal(column.cuts, cuts)
