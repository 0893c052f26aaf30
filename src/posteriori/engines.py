"""The registry of engines: where tables may live beyond memory, and which code reads them there.

NumPy arrays, lists of rows and data frames in memory need no entry. An engine names its code as "module:name", which is
imported when a table of the engine arrives. So this module imports nothing heavy, and a new engine is one module and
one entry.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from os import PathLike
from typing import Any

STREAMED = "posteriori.sources.table_source:TableSource"
PARTITIONED = "posteriori.sources.partitioned:PartitionedSource"


def _takes_none(X: Any) -> bool:
    return False


def of_package(*names: str) -> Callable[[Any], bool]:
    """Return whether the class of an object is defined in one of some packages, as a test that imports none of them."""
    return lambda X: type(X).__module__.partition(".")[0] in names


@dataclass(frozen=True)
class Engine:
    """An engine that holds tables."""

    tables: str  # the class of its tables, as "module:Class"
    # Whether an object that a user gives as X belongs to the engine. No object does where users give a table itself, as
    # `scan` returns one.
    takes: Callable[[Any], bool] = _takes_none
    opens: str = ""  # the function that opens such an object as a table, as "module:function"
    # the class of sources that read its tables, as "module:Class": `STREAMED`, `PARTITIONED` or one of its own
    source: str = STREAMED
    # whether predictions stay with the engine, as a collection that computes nothing yet (`PartitionedTable.map_rows`)
    predicts_lazily: bool = False

    def open(self, X: Any) -> Any:
        """Open an object that the engine takes as a table.

        Raises
        ------
        TypeError, ValueError
            The object is not a table with distinct column names.
        """
        return _imported(self.opens)(X)

    def holds(self, table: Any) -> bool:
        """Return whether a table is one of this engine. Names are compared, so that no module is imported."""
        return any(f"{kind.__module__}:{kind.__qualname__}" == self.tables for kind in type(table).__mro__)


ENGINES: dict[str, Engine] = {
    "files": Engine(
        tables="posteriori.reading.files:Scan",
        takes=lambda X: isinstance(X, str | PathLike),
        opens="posteriori.reading.files:open_files",
    ),
    "duckdb": Engine(tables="posteriori.reading.database:Query", source="posteriori.sources.database:DatabaseSource"),
    "dask": Engine(
        tables="posteriori.tables.dask:DaskTable",
        takes=of_package("dask", "dask_expr"),  # data frames were in a package of their own before 2025.1
        opens="posteriori.tables.dask:dask_table",
        source=PARTITIONED,
        predicts_lazily=True,
    ),
    "spark": Engine(
        tables="posteriori.tables.spark:SparkTable",
        takes=of_package("pyspark"),
        opens="posteriori.tables.spark:spark_table",
        source=PARTITIONED,
        predicts_lazily=True,
    ),
}


def engine_of(X: Any) -> Engine | None:
    """Return the engine that takes an object; None where the object is a table, or a table in memory."""
    return next((engine for engine in ENGINES.values() if engine.takes(X)), None)


def source_class_of(table: Any) -> Any:
    """Return the class of the source that reads a table: that of its engine, or `TableSource` for one in memory."""
    return _imported(next((engine.source for engine in ENGINES.values() if engine.holds(table)), STREAMED))


def _imported(path: str) -> Any:
    module, _, name = path.partition(":")
    return getattr(importlib.import_module(module), name)
