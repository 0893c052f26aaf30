"""Small random tables on which the laws are tested, and changes of them that must change no posterior."""

import warnings
from dataclasses import dataclass, replace

import numpy as np
import polars as pl
from hypothesis import strategies as st


@dataclass(frozen=True)
class Table:
    """Columns of numbers (NaN where missing) and of strings (None where missing), and the classes of the rows."""

    columns: dict
    y: np.ndarray

    def frame(self):
        """Return the columns as a frame of polars."""
        kinds = {name: pl.Float64 if is_number(cells) else pl.String for name, cells in self.columns.items()}
        frame = pl.DataFrame({name: cells.tolist() for name, cells in self.columns.items()}, schema=kinds, strict=False)
        return frame.with_columns(pl.col(pl.Float64).fill_nan(None))

    @property
    def n_rows(self):
        """Number of rows."""
        return len(self.y)

    def with_columns(self, **columns):
        """Return the table with other columns after its own."""
        return replace(self, columns=self.columns | columns)

    def only(self, names):
        """Return the table with some of its columns."""
        return replace(self, columns={name: self.columns[name] for name in names})

    def rows(self, index):
        """Return the rows of an index, a mask or a slice."""
        return Table({name: cells[index] for name, cells in self.columns.items()}, self.y[index])

    def numbers(self):
        """Return the names of the columns of numbers."""
        return [name for name, cells in self.columns.items() if is_number(cells)]


def is_number(cells):
    """Return whether a column holds numbers."""
    return cells.dtype.kind == "f"


def make_table(seed, n_classes=2, n_numbers=2, n_categories=1, missing=0.0, counts=False, is_wide=False):
    """Return a random table whose columns depend on the class and on each other."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(24, 60)) + 20 * is_wide
    y = np.concatenate([np.arange(n_classes), np.arange(n_classes), rng.integers(0, n_classes, n - 2 * n_classes)])
    rng.shuffle(y)
    columns, hidden = {}, rng.normal(size=n)
    for j in range(n_numbers):
        if counts:
            cells = rng.poisson(1.0 + j + y).astype(float)
        else:
            cells = rng.normal(y * rng.uniform(0, 1.5) + hidden * rng.uniform(0, 1), 1.0)
            cells = np.round(cells * 1024.0) / 1024.0  # so that an offset of 2³⁰ is exact
        columns[f"x{j}"] = np.where(rng.random(n) < missing, np.nan, cells)
    for j in range(n_categories):
        size = int(rng.integers(2, 5))
        code = (y + (hidden > 0) + rng.integers(0, size, n)) % size
        cells = np.array(["red", "green", "blue", "white", "black"], dtype=object)[code]
        cells[rng.random(n) < missing] = None
        columns[f"c{j}"] = cells
    if is_wide:  # more categories than dependences have tables for, so they are grouped
        code = np.where(rng.random(n) < 0.5, np.arange(n) % 33, (rng.integers(0, 4, n) + y) % 33)
        columns["wide"] = np.array([f"town {k}" for k in code], dtype=object)
    return Table(columns, np.array(["a", "b", "c"])[y])


def tables(case):
    """Return a strategy of small tables that a model takes: 24 to 80 rows, 2 or 3 classes.

    A table is mixed numbers and categories, or counts of words alone, or categories alone.
    """
    counts = case.takes == "counts"
    return st.builds(
        make_table,
        seed=st.integers(0, 2**32 - 1),
        n_classes=st.integers(2, 3),
        n_numbers=st.just(0) if case.takes == "categories" else st.integers(2, 3),
        n_categories=st.just(0) if counts else st.integers(1, 2),
        missing=st.sampled_from([0.0, 0.15]) if case.takes_missing else st.just(0.0),
        counts=st.just(counts),
        is_wide=st.just(False) if counts or case.name == "full joint" else st.booleans(),
    )


def make_symmetric(seed, takes="mixed"):
    """Return a random table that stays the same if its four columns of a kind move round: the last one to the first.

    What a column holds does not tell it from the others of its kind, and each row has up to three others that the
    symmetry exchanges with it.
    """
    rng = np.random.default_rng(seed)
    cells = rng.integers(0, 3, (12, 4))
    y = np.concatenate([[0, 0, 1, 1], rng.integers(0, 2, 8)])
    cells, y = np.concatenate([np.roll(cells, turn, axis=1) for turn in range(4)]), np.tile(y, 4)
    columns = {}
    if takes != "categories":
        columns = {f"x{j}": np.array([0.0, 1.0, 3.0])[column] for j, column in enumerate(cells.T)}
    if takes != "counts":
        columns |= {f"c{j}": np.array(["o", "x", "b"], dtype=object)[column] for j, column in enumerate(cells.T)}
    return Table(columns, np.array(["a", "b"])[y])


def symmetric_tables(case):
    """Return a strategy of small tables with a symmetry that exchanges columns and rows."""
    return st.builds(make_symmetric, seed=st.integers(0, 2**32 - 1), takes=st.just(case.takes))


def answers(case, train, rows=None, y=None):
    """Return the posterior of rows (default: the training rows) under a model fitted to a table.

    Warnings are those of the single models, which their own tests expect.
    """
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        model = case.fit(train, y)
        return model.predict_proba((train if rows is None else rows).frame())
