"""Labels, weights and folds of rows, apart from their cells."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

from posteriori.reading import LabelColumn, infer_schema
from posteriori.sources import source_of
from posteriori.sources.table_source import Labelling
from posteriori.tables.arrays import ArrayTable
from posteriori.tables.schema import categorical_column

CLASSES = categorical_column("y", [0, 1, 2], "int64")


def labels_of(y):
    return LabelColumn(ArrayTable(np.asarray(y).reshape(-1, 1)), may_miss=True)


@pytest.fixture
def source():
    X = np.random.default_rng(0).normal(size=(6, 2))
    table = ArrayTable(X)
    return source_of(table, infer_schema(table), [0, 1], labels_of([0, 1, 2, 0, 1, 2]), CLASSES)


def test_a_cached_source_takes_new_labels(source):
    batch = source.cached().with_labels(labels_of([2, 2, 1, 1, 0, 0])).batch(slice(0, 6))
    assert_array_equal(batch.assignment.component, [2, 2, 1, 1, 0, 0])


def test_a_cached_source_gives_the_batches_of_the_uncached_one(source):
    rows = source.with_weight(np.arange(6.0)).with_folds(np.array([0, 1, 0, 1, 0, 1], np.int32))
    for chosen in (slice(0, 6), slice(2, 5)):
        here, there = rows.batch(chosen), rows.cached().batch(chosen)
        assert_array_equal(there.numbers.values, here.numbers.values)
        assert_array_equal(there.assignment.component, here.assignment.component)
        assert_array_equal(there.assignment.weight, np.arange(6.0)[chosen])
        assert_array_equal(there.fold, rows.labelling.folds[chosen])


def test_the_weight_of_unlabelled_rows_is_multiplied_by_a_factor():
    labelling = Labelling(labels_of([0.0, np.nan, 2.0]), CLASSES, np.array([1.0, 3.0, 5.0]), unlabelled_weight=0.5)
    assignment = labelling.assignment(slice(0, 3), 3)
    assert_array_equal(assignment.component, [0, -1, 2])
    assert_array_equal(assignment.weight, [1.0, 1.5, 5.0])
    assert_array_equal(labelling.reweighted(np.array([1.0, 0.0, 2.0])).weight, [1.0, 0.0, 10.0])


def test_labelling_without_classes_or_labels_assigns_no_row():
    assert Labelling().assignment(slice(0, 3), 3) is None
    assert_array_equal(Labelling(classes=CLASSES).assignment(slice(0, 3), 3).component, [-1, -1, -1])


def test_labels_are_a_column_of_their_own_table_only():
    labels = labels_of([0, 1])
    assert Labelling(labels).column_of(labels.table) is labels
    assert Labelling(labels).column_of(ArrayTable(np.zeros((2, 1)))) is None
