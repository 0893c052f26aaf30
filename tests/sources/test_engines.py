"""The registry of engines: its entries, the laws of sources, and the engine of `examples/extending/engine.py`."""

import inspect
import itertools
import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone

import posteriori as po
from examples.extending import engine
from posteriori import engines
from posteriori.reading import infer_schema, read_table
from posteriori.sources import source_of
from posteriori.sources.database import DatabaseSource
from posteriori.sources.partitioned import PartitionedSource
from posteriori.sources.table_source import ComposedSource, TableSource

SOURCES = (TableSource, DatabaseSource, PartitionedSource)


@pytest.fixture
def frames_engine():
    """Register the engine of the recipe."""
    engine.register()
    yield engine
    del engines.ENGINES["frames"]


def cut_up(frame):
    """Return the frames of a list: one has a single row, one none, and categories differ between them."""
    cuts = [0, 1300, 1301, 1301, 4000, frame.height]
    return [frame[start:stop] for start, stop in itertools.pairwise(cuts)]


ESTIMATORS = {
    "NaiveBayes": po.NaiveBayes(),
    "binned": po.NaiveBayes(distributions={"height": po.Binned()}),
    "TAN": po.TreeAugmentedNaiveBayes(),
    "EM": po.NaiveBayes(em=po.EM(components_per_class=2, max_iter=5, tol=0.0), random_state=0),
}


@pytest.mark.parametrize("name", ESTIMATORS)
def test_the_engine_of_the_recipe_learns_what_memory_does(name, frames_engine, mixed_frame):
    parts = cut_up(mixed_frame)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        there = clone(ESTIMATORS[name]).fit(parts, "y")
        here = clone(ESTIMATORS[name]).fit(mixed_frame, "y")
    assert [column.categories for column in there.schema_.columns] == [c.categories for c in here.schema_.columns]
    features = mixed_frame.drop("y")
    np.testing.assert_allclose(there.predict_proba(features), here.predict_proba(features), rtol=1e-9, atol=1e-12)


def test_separate_labels_and_weights_follow_the_partitions(frames_engine, mixed_frame):
    features, labels = mixed_frame.drop("y"), mixed_frame["y"].to_numpy()
    weight = np.random.default_rng(0).gamma(2.0, 1.0, len(labels))
    there = po.NaiveBayes().fit(cut_up(features), labels, weight)
    here = po.NaiveBayes().fit(features, labels, weight)
    np.testing.assert_allclose(there.predict_proba(features), here.predict_proba(features), rtol=1e-9)


def test_predictions_stay_with_the_engine_of_the_recipe(frames_engine, mixed_frame):
    features = mixed_frame.drop("y")
    model = po.NaiveBayes().fit(mixed_frame, "y")
    for method in ("predict", "predict_proba", "predict_log_proba"):
        results = getattr(model, method)(cut_up(features))
        assert inspect.isgenerator(results)  # nothing is computed yet
        np.testing.assert_array_equal(np.concatenate(list(results)), getattr(model, method)(features))
    assert model.score(cut_up(features), mixed_frame["y"]) == model.score(features, mixed_frame["y"])


def test_the_source_of_its_entry_reads_the_engine_of_the_recipe(frames_engine, mixed_frame):
    table = read_table(cut_up(mixed_frame))
    assert isinstance(table, frames_engine.FrameList)
    assert isinstance(source_of(table, infer_schema(table), range(len(table.names))), PartitionedSource)
    assert engines.engine_of(cut_up(mixed_frame)).tables.endswith(":FrameList")


@pytest.mark.parametrize("module", ["dask.dataframe.core", "dask_expr._collection", "dask.array.core"])
def test_collections_of_older_versions_of_dask_are_taken(module):
    collection = type("DataFrame", (), {"__module__": module})()
    assert engines.engine_of(collection) is engines.ENGINES["dask"]


def test_without_the_entry_a_list_of_frames_is_no_table(mixed_frame):
    assert engines.engine_of(cut_up(mixed_frame)) is None
    with pytest.raises((ValueError, TypeError)):
        read_table(cut_up(mixed_frame))


@pytest.mark.parametrize("X", [np.zeros((2, 2)), [[1, 2]], pl.DataFrame({"a": [1]}), None])
def test_what_is_in_memory_belongs_to_no_engine(X):
    assert engines.engine_of(X) is None


def test_a_path_is_scanned():
    assert engines.engine_of("rows.csv").opens == "posteriori.reading.files:open_files"


@pytest.mark.parametrize("name", engines.ENGINES)
def test_an_entry_names_what_exists(name):
    pytest.importorskip({"dask": "dask", "spark": "pyspark", "duckdb": "duckdb"}.get(name, "polars"))
    engine = engines.ENGINES[name]
    assert issubclass(engines._imported(engine.source), ComposedSource)
    kind = type("Table", (engines._imported(engine.tables),), {})
    kind.__abstractmethods__ = frozenset()  # so that there is an instance without rows
    assert [other for other, entry in engines.ENGINES.items() if entry.holds(object.__new__(kind))] == [name]
    if engine.opens:
        assert callable(engines._imported(engine.opens))


@pytest.mark.parametrize("source", SOURCES)
def test_a_source_overrides_no_concrete_method(source):
    concrete = set(vars(ComposedSource)) - ComposedSource.__abstractmethods__
    defined = {name for name, value in vars(source).items() if inspect.isfunction(value) or isinstance(value, property)}
    assert {name for name in defined & concrete if not name.startswith("__")} == set()
    assert source.__bases__ == (ComposedSource,)
