"""Requests for statistics: each subset of rows gets its own sums, and equal requests are added up once."""

from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal

from posteriori.densities import Categorical, Gaussian
from posteriori.learning.fit import Collect
from posteriori.learning.folds import rows_in_folds
from posteriori.learning.requests import IN_NO_FOLD, PassRequest, SubsetSums
from posteriori.model import Block
from posteriori.reading import infer_schema, read_labels, read_table
from posteriori.sources import source_of
from posteriori.statistics import Counts
from posteriori.statistics.counts import CountTogether

FOLDS = 3
NUMBERS, CODES = Block(Gaussian(), (0, 1)), Block(Categorical(), (2, 3, 4))


@dataclass(frozen=True)
class Recorded:
    """A factory of counts that records each of its calls."""

    name: str
    ignored: int = field(default=0, compare=False)
    values: Any = None
    calls: ClassVar[list] = []

    def of(self, tile, assignment):
        self.calls.append(self.name)
        return Counts.of(tile, assignment)


@pytest.fixture(autouse=True)
def calls():
    Recorded.calls.clear()
    return Recorded.calls


def source(cells, labels, fold):
    table = read_table(cells)
    known = replace(read_labels(labels, table), may_miss=True)
    positions = list(range(5))
    schema = infer_schema(table, positions, categorical=[2, 3, 4])
    return source_of(table, schema, positions, known, known.infer(), None, fold, n_jobs=1, local=True)


@pytest.fixture
def rows():
    """Return cells, labels of which one in eight is missing, and folds; some rows are in none."""
    rng = np.random.default_rng(0)
    labels = rng.choice(["a", "b"], 80).astype(object)
    cells = np.column_stack([rng.normal(size=(80, 2)), rng.integers(0, 3, (80, 3))])
    labels[::8] = None
    fold = rng.integers(-1, FOLDS, 80).astype(np.int32)
    fold[::8] = -1
    return cells, labels, fold


def outside(cells, labels, fold, k):
    """Return the statistics of the rows outside a fold, by a pass over these alone."""
    kept = fold != k
    return source(cells[kept], labels[kept], None).reduce(Collect((NUMBERS, CODES)))


@pytest.mark.parametrize("most_are_in_no_fold", [False, True])
def test_each_subset_has_the_sums_of_its_own_rows(rows, most_are_in_no_fold):
    folded = source(*rows)
    sums = SubsetSums(folded, FOLDS, rows_in_folds(folded) if most_are_in_no_fold else None)
    wanted = PassRequest.of_model(folded.schema, None, (NUMBERS, CODES))
    sums.add_up(wanted)
    for k in range(FOLDS + 1):
        found, expected = sums.of_model(wanted, k), outside(*rows, k)
        assert_array_equal(found.weight, expected.weight)
        assert found.hidden == expected.hidden == 10
        assert_allclose(found.blocks[0].mean, expected.blocks[0].mean)
        assert_array_equal(found.blocks[1].table, expected.blocks[1].table)
    if most_are_in_no_fold:
        in_none = sums.of_model(wanted, IN_NO_FOLD)
        assert in_none.weight.sum() == np.sum((rows[2] < 0) & (rows[1] != None))  # noqa: E711


def test_a_request_of_one_subset_is_of_its_rows_under_its_schema(rows):
    folded = source(*rows)
    cut = Block(Categorical(), (0, 2))
    requests = {k: PassRequest.of_model(folded.schema.with_cuts({0: (0.1 * k,)}), k, (cut,)) for k in range(FOLDS + 1)}
    sums = SubsetSums(folded, FOLDS)
    sums.add_up([one for of_subset in requests.values() for one in of_subset])
    for k, of_subset in requests.items():
        kept = rows[2] != k
        alone = source(rows[0][kept], rows[1][kept], None).with_schema(folded.schema.with_cuts({0: (0.1 * k,)}))
        expected = alone.reduce(Collect((cut,)))
        found = sums.of_model(of_subset, k)
        assert_array_equal(found.blocks[0].table, expected.blocks[0].table)
        assert_array_equal(found.weight, expected.weight)
        assert_array_equal(found.ranges.highest, expected.ranges.highest)


def test_equal_requests_are_added_up_once_and_in_one_pass_ever(rows, calls):
    folded = source(*rows)
    sums = SubsetSums(folded, FOLDS)
    one, same, other = (PassRequest.of(folded.schema, None, CODES, Recorded(name)) for name in ("one", "one", "other"))
    elsewhere = PassRequest.of(folded.schema, None, Block(Categorical(), (2, 3)), Recorded("one"))
    sums.add_up([one, same, other, elsewhere])
    assert sorted(calls) == ["one", "one", "other"]
    sums.add_up([same, other])
    assert len(calls) == 3
    assert same in sums
    assert_array_equal(sums.of(same, 0).table, sums.of(one, 0).table)


def test_factories_that_differ_in_a_field_are_different_requests(rows, calls):
    folded = source(*rows)
    first, second = (PassRequest.of(folded.schema, None, CODES, Recorded("same", ignored)) for ignored in (1, 2))
    assert first.factory == second.factory
    assert first != second
    sums = SubsetSums(folded, FOLDS)
    sums.add_up([first, second])
    assert calls == ["same", "same"]


def test_a_factory_that_holds_an_array_is_of_one_model_alone(rows, calls):
    @dataclass(frozen=True)
    class OfArray(Categorical):
        @property
        def sufficient_statistics(self):
            return Recorded("array", values=np.zeros(2))

    folded = source(*rows)
    block = Block(OfArray(), (2, 3, 4))
    assert not PassRequest.of(folded.schema, None, block, block.density.sufficient_statistics).is_hashable
    models = [PassRequest.of_model(folded.schema, None, (block,)) for _ in range(2)]
    sums = SubsetSums(folded, FOLDS)
    sums.add_up([request for model in models for request in model])
    assert calls == ["array", "array"]
    first, second = (sums.of_model(model, 1).blocks[0].table for model in models)
    assert_array_equal(first, second)


def test_scopes_of_several_requests_are_counted_together(rows, monkeypatch):
    counted, of = [], CountTogether.of
    monkeypatch.setattr(CountTogether, "of", lambda self, *rows: counted.append(self.scopes) or of(self, *rows))
    folded = source(*rows)
    scopes = (((0, 1), (1, 2)), ((0, 2), (0, 1)))
    requests = [PassRequest.of(folded.schema, None, CODES, CountTogether(some)) for some in scopes]
    sums = SubsetSums(folded, FOLDS)
    sums.add_up(requests)
    assert counted == [((0, 1), (0, 2), (1, 2))]
    for request, some in zip(requests, scopes, strict=True):
        found = sums.of(request, 0)
        alone = SubsetSums(folded, FOLDS)
        alone.add_up([request])
        assert found.scopes == some
        for scope in some:
            assert_array_equal(found.table(scope), alone.of(request, 0).table(scope))


def test_only_the_first_pass_checks_cells(rows):
    cells, labels, fold = rows
    cells[3, 0] = 1e200
    folded = source(cells, labels, fold)
    sums = SubsetSums(folded, FOLDS)
    checked, *_ = PassRequest.of_model(folded.schema, None, (NUMBERS,))
    with pytest.raises(ValueError, match="overflows"):
        sums.add_up([checked])
    with np.errstate(over="ignore", invalid="ignore"):
        sums.add_up([replace(checked, is_checked=False)])
    assert checked in sums
