"""A summary of a table's columns, the cost of a model on that table, and the limits of all work.

Everything here is plain Python: the command line reads the registry for its help and must not wait for NumPy.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from posteriori.user_warnings import warn

LONG_SECONDS = 120  # on one core; work that takes longer is announced
MAX_LOOKUPS = 60  # per row, in multiples of naive Bayes
MAX_PAIR_CELLS = 40_000_000  # in the tables of pairs of columns, over all classes
MAX_COVARIANCE_CELLS = 20_000_000  # in the covariance matrices of all classes
MAX_SECONDS = 100  # of EM where numbers are missing, on one core
_SECONDS_PER_MULTIPLICATION = 5e-9  # measured at 12 to 34 columns (3e-9 to 1e-8)
MAX_PATTERN_CELLS = 1 << 23  # in the scatter matrices of the patterns of missing cells, 64 MB
EM_STEPS = 10  # of a candidate; each step reads all rows
COARSE_BINS = 8  # of ``bins="coarse"``
_FINE_BINS = {5000: 255, 0: 64}  # of ``bins="fine"``, by the least number of rows
ROWS_OF_RESIDUAL = 1000  # with fewer, too many of them would be kept from the other members
MOST_CLASSES_OF_CELLS = 10  # with 19 and 26, the pool takes twice the time, and is no better (soybean, letter)
MAX_LEARNED_CELLS = 1_000_000  # numbers that it learns
MOST_PARAMETERS = 2  # of covariances, per number of the table
ROWS_PER_COLUMN = 2.5  # of a covariance from which missing numbers are predicted
MANY_CATEGORIES = 30  # a column with more is grouped for dependences (measured: docs/dependence.md)
MOST_GROUPS = 64  # of the categories of one column
_BINS = 9  # cells per binned column when the tables of pairs are sized: 8 bins and "missing"


def fine_bins(n_rows: float) -> int:
    """Return how many bins ``bins="fine"`` cuts a column into, at most, with so many rows."""
    return next(bins for least, bins in _FINE_BINS.items() if n_rows >= least)


@dataclass(frozen=True)
class ColumnSummary:
    """Summary of one column of the training rows."""

    name: str
    kind: str  # "continuous" or "categorical"
    cardinality: int  # number of categories; 0 for a continuous column
    n_missing: int  # rows without a value
    # lowest, highest: range in data units; inf and −inf for a column without any number
    lowest: float
    highest: float
    whole: bool  # whether all numbers are whole; True for a column without any number
    n_values: int = 0  # number of distinct values, if all are whole and lie within a range of 15; otherwise 0


@dataclass(frozen=True)
class TableSummary:
    """Summary of a table, by which candidates are chosen before they are fitted."""

    columns: tuple[ColumnSummary, ...]  # the features that are numbers or categories
    n_rows: int  # rows of the table
    n_classes: int  # C
    n_incomplete: int  # rows that lack at least one number
    n_counts: int = 0  # columns of counts
    whole_counts: bool = True  # whether all their counts are whole

    @property
    def has_gaps(self) -> bool:
        """Whether a cell is missing."""
        return any(column.n_missing for column in self.columns)

    @property
    def n_continuous(self) -> int:
        """Number of continuous columns."""
        return [column.kind for column in self.columns].count("continuous")


@dataclass(frozen=True)
class Cost:
    """Cost of a model on a table."""

    lookups: float = 1.0  # numbers looked up per row, in multiples of naive Bayes
    pair_cells: int = 0  # cells in tables of pairs of columns, over all classes
    covariance_cells: int = 0  # cells in covariance matrices, over all classes
    seconds: float = 0.0  # of EM where numbers are missing, on one core

    def reason_too_high(self) -> str | None:
        """Return which limit the cost exceeds, as one clause; None if it exceeds none."""
        if self.pair_cells > MAX_PAIR_CELLS:
            return f"its tables of pairs of columns would hold {self.pair_cells:,} numbers (limit {MAX_PAIR_CELLS:,})"
        if self.lookups > MAX_LOOKUPS:
            return f"it takes {self.lookups:g} times the work of naive Bayes per row (limit {MAX_LOOKUPS})"
        if self.covariance_cells > MAX_COVARIANCE_CELLS:
            return f"its covariances would hold {self.covariance_cells:,} numbers (limit {MAX_COVARIANCE_CELLS:,})"
        if self.seconds > MAX_SECONDS:
            return f"its EM on missing numbers would take about {self.seconds:,.0f} seconds (limit {MAX_SECONDS})"
        return None


@dataclass(frozen=True)
class Work:
    """An estimate of work that is not begun yet; + adds up.

    Work of more memory than the machine has is reduced or refused; the environment variable `POSTERIORI_MAX_GB` sets
    another limit, and "inf" is none. Work of more than two minutes is announced, and done: the time is the user's.
    """

    seconds: float = 0.0  # on one core
    n_bytes: float = 0.0  # of memory at a time

    def __add__(self, other: Work) -> Work:
        return Work(self.seconds + other.seconds, self.n_bytes + other.n_bytes)

    def reason_too_much(self) -> str | None:
        """Return by how much the work exceeds the memory and how to lift the limit, as one clause; None if it fits."""
        size, most_size = self.n_bytes / 1e9, _limit("POSTERIORI_MAX_GB", _memory() / 1e9)
        if size > most_size:
            lift = f"set POSTERIORI_MAX_GB={math.ceil(size)} in the environment to try it all the same"
            return f"it would take about {size:,.1f} GB of memory (limit {most_size:,.1f}); {lift}"
        return None

    def announce(self, what: str, advice: str) -> None:
        """Warn of what takes long, about how long, and how to make it shorter; refuse what exceeds the memory.

        Raises
        ------
        ValueError
            The work exceeds the memory. The message says what is not begun, why, and what else can be done.
        """
        reason = self.reason_too_much()
        if reason is not None:
            raise ValueError(f"{what} is not begun: {reason}; or {advice}")
        if self.seconds > LONG_SECONDS:
            warn(f"{what} takes about {_duration(self.seconds)} on one core; to make it shorter, {advice}")


def require_affordable_export(
    what: str, language: str, sizes: Mapping[str, int], unit: str, most: int, instead: str
) -> None:
    """Raise ValueError, which names the largest models, if an export of all models together would be too large.

    Parameters
    ----------
    what : str
        The export, for the message.
    language : str
        The `language` of a pool that holds what can be exported.
    sizes : mapping from str to int
        The estimated size of each model in units, by its name.
    most : int
        The limit of their sum.
    instead : str
        What else can be done.
    """
    left = sum(sizes.values())
    if left <= most:
        return
    first = f"{what} is not written: it would have about {float(f'{left:.2g}'):,.0f} {unit} (limit {most:,})"
    large = []
    for name in sorted(sizes, key=lambda name: -sizes[name]):
        if left > most:
            large.append(f"{name} ({float(f'{sizes[name]:.2g}'):,.0f})")
            left -= sizes[name]
    fewer = f'fit with language="{language}", which leaves out what is too large, ' if len(sizes) > 1 else ""
    raise ValueError(
        f"{first}, most of them of {', '.join(large)}; {fewer}fit fewer columns, bins or trees, or {instead}"
    )


@dataclass(frozen=True)
class Language:
    """A language other than Python that fitted models are written in, and what it can hold of a pool."""

    what: str  # what is written, for messages, such as "the SELECT"
    unit: str  # of sizes, such as "characters"
    most: int  # the greatest size of all models together
    size: Callable[[Any], int]  # the estimated size of a fitted model
    reason_against_column: Callable[[Any], str | None]  # why it reads no such column of a schema
    reason_against: Callable[[Any], str | None]  # why a fitted model cannot be written, whatever its size
    # a forecast of the size of a sum of trees; None where it is always small
    size_of_sum: Callable[[TableSummary], float] | None = None

    def too_large(self, size: float) -> str:
        """Return the reason against a model of this size."""
        about = f"{float(f'{size:.2g}'):,.0f}"
        return f"it would have about {about} {self.unit} of {self.what} (limit {self.most:,} for all)"

    def reasons_against(self, models: Mapping[str, Any], taken: float = 0.0) -> dict[str, str]:
        """Return why some of the fitted models of a pool are to be left out, by name: the largest, until others fit.

        Further models have taken some of the size.
        """
        sizes = {name: self.size(model) for name, model in models.items()}
        left, reasons = taken + sum(sizes.values()), {}
        for name in sorted(sizes, key=lambda name: -sizes[name]):
            if left > self.most:
                left -= sizes[name]
                reasons[name] = self.too_large(sizes[name])
            elif (reason := self.reason_against(models[name])) is not None:
                reasons[name] = reason
        return reasons


def _duration(seconds: float) -> str:
    """Return a time of minutes or hours in words, with the digits that an estimate has."""
    if seconds < 2 * 3600:
        return f"{seconds / 60:.0f} minutes"
    return f"{seconds / 3600:,.0f} hours" if seconds < 48 * 3600 else f"{seconds / 86400:,.0f} days"


def _limit(variable: str, default: float) -> float:
    """Return the limit that an environment variable states."""
    given = os.environ.get(variable, "")
    try:
        limit = float(given) if given else default
    except ValueError:
        limit = math.nan
    if not limit > 0:
        raise ValueError(f'{variable} is {given!r} in the environment; give a number above 0, or "inf"')
    return limit


def _memory() -> float:
    """Return the bytes of memory of the machine; infinite where the system does not say."""
    try:
        return float(os.sysconf("SC_PHYS_PAGES")) * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, ValueError, OSError):  # Windows
        return math.inf


CostModel = Callable[[TableSummary], Cost]


def cost_per_column(table: TableSummary) -> Cost:
    """Return the cost of independent columns: one lookup per column, the unit of `lookups`."""
    return Cost()


def cost_of_pairs(table: TableSummary) -> Cost:
    """Return the cost of a structure learned from all pairs of columns, which counts d / 2 cells per column and row."""
    return Cost(lookups=len(table.columns) / 2, pair_cells=_pair_cells(table))


def cost_of_averaged_pairs(table: TableSummary) -> Cost:
    """Return the cost of predicting from all pairs of columns: d lookups per column and row."""
    return Cost(lookups=float(len(table.columns)), pair_cells=_pair_cells(table))


def cost_of_covariances(table: TableSummary) -> Cost:
    """Return the cost of one covariance per class, and of EM where numbers are missing.

    Per step, EM factorises the covariances, and multiplies either the moments of each pattern of missing cells and
    class, if these fit into memory, or the rows (`MissingPatterns`).
    """
    square = table.n_continuous**2
    cells = table.n_classes * square
    if not table.n_incomplete:
        return Cost(covariance_cells=cells)
    n_gappy = sum(column.kind == "continuous" and column.n_missing > 0 for column in table.columns)
    n_patterns = min(table.n_incomplete, 2 ** min(n_gappy, 62))
    few = n_patterns * cells <= MAX_PATTERN_CELLS
    n_factors = min(n_patterns * table.n_classes, table.n_rows) if few else table.n_rows
    multiplications = EM_STEPS * (n_factors * square + cells * table.n_continuous)
    return Cost(covariance_cells=cells, seconds=multiplications * _SECONDS_PER_MULTIPLICATION)


def _pair_cells(table: TableSummary) -> int:
    sizes = [
        min(column.cardinality, MOST_GROUPS) + 1 if column.kind == "categorical" else _BINS for column in table.columns
    ]
    # The sum over pairs i < j of s_i s_j.
    return table.n_classes * (sum(sizes) ** 2 - sum([size**2 for size in sizes])) // 2
