"""Add an engine: several polars frames with the same columns as one table, such as one frame per day.

An engine holds tables that are not in this process's memory, or not in one piece. It is one file of `tables/` with a
class of tables, and one entry in `engines.py`. There are two kinds. A `StreamedTable` yields its rows to this process
as polars frames, part by part (`frames`). A `PartitionedTable`, such as this one, sends tasks to its partitions and
adds up what they return (`run`, `fold`). Both get kinds, categories, labels, weights, EM and cross-validation from
their base class. An engine that can add up statistics by itself, as a database can, names a source of its own
(`sources/database.py`).

Then add the engine to `tests/sources/test_sources.py`, which holds all engines to the same results, and a file to
`changes/`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, TypeVar

import polars as pl

from posteriori.engines import ENGINES, PARTITIONED, Engine
from posteriori.support.typing import Array
from posteriori.tables.partitioned import PartitionedTable, Task, add_in_pairs
from posteriori.tables.polars import PolarsTable, needs_cells

T = TypeVar("T")


@dataclass(frozen=True, eq=False)
class FrameList(PartitionedTable):
    """A list of polars frames, none of them copied, on which threads work at the same time."""

    partitions: list[pl.DataFrame]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.partitions[0].columns)

    def run(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> Iterator[T]:
        parts = ([PolarsTable(frame[:, list(columns)])] for frame in self.partitions)
        with ThreadPoolExecutor() as threads:
            yield from threads.map(task, parts, contexts or [None] * len(self.partitions))

    def fold(self, task: Task[T], columns: Sequence[int], contexts: Sequence[Any] | None = None) -> T:
        return add_in_pairs(list(self.run(task, columns, contexts)))

    def map_rows(self, method: Callable[[Any], Array], title: str, example: Array) -> Iterator[Array]:
        return (method(frame) for frame in self.partitions if frame.height)

    def needs_cells(self, j: int, categorical: bool) -> bool:
        return needs_cells(self.partitions[0].dtypes[j], categorical)

    def column_from_cells(self, j: int, cells: list[Any]) -> PolarsTable:
        return PolarsTable(pl.DataFrame({self.names[j]: pl.Series(cells, dtype=self.partitions[0].dtypes[j])}))


def is_list_of_frames(X: Any) -> bool:
    """Return whether X is a list of polars frames. It sees every X of a user: it is fast, and imports no engine."""
    return isinstance(X, list) and bool(X) and all(type(part).__module__.startswith("polars.") for part in X)


# An engine whose tables users make themselves, as with `scan`, needs no `takes` and no `opens`.
FRAMES = Engine(
    tables=f"{__name__}:FrameList",  # in the library "posteriori.tables.frame_list:FrameList"
    takes=is_list_of_frames,
    opens=f"{__name__}:FrameList",
    source=PARTITIONED,
    predicts_lazily=True,  # predictions stay with the engine, as the collection that `map_rows` returns
)


def register() -> None:
    """Add the entry to `engines.py`, which makes it known to `fit`, `predict` and all the rest."""
    ENGINES["frames"] = FRAMES
