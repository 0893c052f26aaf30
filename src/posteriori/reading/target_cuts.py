"""A target of numbers: whether labels are one, and its cut points, which make classes of it."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.support.checks import check_numbers, is_missing, require
from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables.polars import exactly

_FEW_VALUES = 20  # so many distinct values are classes in any case
_ENOUGH_ROWS = 100  # mean number of rows per value, from which on values are classes
_are_classes: ContextVar[bool] = ContextVar("whole numbers are classes", default=False)


def looks_like_a_quantity(labels: Sequence[Any], n_rows: float) -> bool:
    """Return whether distinct labels look like a quantity to be predicted, and not like names of classes.

    That is so if they are more than 20 whole numbers with fewer than 100 rows each on average, and are not consecutive
    numbers from 0 or 1 on. Strings and booleans never are a quantity.
    """
    if len(labels) <= _FEW_VALUES or n_rows >= _ENOUGH_ROWS * len(labels) or _are_classes.get():
        return False
    if not all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels):
        return False
    lowest, highest = min(labels), max(labels)
    return not (lowest in (0, 1) and highest - lowest + 1 == len(labels))


@contextmanager
def numbers_as_classes() -> Iterator[None]:
    """Take whole numbers for classes in this context, however many there are."""
    before = _are_classes.set(True)
    try:
        yield
    finally:
        _are_classes.reset(before)


@dataclass(frozen=True)
class TargetCuts:
    """Cut points of a target of numbers: class k holds cuts[k − 1] < y ≤ cuts[k].

    Attributes
    ----------
    cuts : tuple of float
        Strictly increasing, one fewer than there are classes; in the units of the target.

    Examples
    --------
    >>> import posteriori as po
    >>> cuts = po.reading.TargetCuts((18.5, 25.0))
    >>> cuts
    TargetCuts(cuts=(18.5, 25.0))
    """

    cuts: tuple[float, ...]

    def check(self) -> None:
        """Raise ValueError unless the cuts are finite and strictly increasing."""
        check_numbers("the cuts of the target", np.array(self.cuts, np.float64), (len(self.cuts),))
        require(all(a < b for a, b in itertools.pairwise(self.cuts)), "the cuts of the target do not increase")

    @classmethod
    def of(cls, values: Any, classes: int) -> TargetCuts:
        """Return cuts at quantiles of the target, for classes of about equal size.

        Raises
        ------
        ValueError
            `classes` is below 2, or there are fewer than two distinct numbers.
        """
        if isinstance(classes, bool) or not isinstance(classes, int | np.integer) or classes < 2:
            raise ValueError(f"classes is {classes!r}; give a whole number, at least 2")
        numbers = _numbers(values)
        present = numbers[~np.isnan(numbers)]
        if not len(present):
            raise ValueError("the target has no value to cut; give at least two distinct numbers")
        n_shares = min(int(classes), 2 * len(present))  # more give no other cut
        shares = np.arange(1, n_shares) / n_shares
        quantiles = np.unique(np.quantile(present, shares, method="inverted_cdf"))
        cuts = tuple(quantiles[quantiles < present.max()].tolist())  # none at the maximum: no class lies above it
        if not cuts:
            distinct = np.unique(present)
            if len(distinct) == 1:
                raise ValueError(f"the target is {distinct[0]:g} in every row, which is one class; choose another")
            cuts = (float(distinct[-2]),)  # the largest value alone fills more than one class
        return cls(cuts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes: "≤ 100", "100 to 250", "> 250"."""
        cuts = _written(self.cuts)
        inner = (f"{low} to {high}" for low, high in itertools.pairwise(cuts))
        return (f"≤ {cuts[0]}", *inner, f"> {cuts[-1]}")

    def expression(self, name: str) -> pl.Expr:
        """Return the polars expression that replaces the numbers of a column by the names of their classes."""
        number = exactly(name).cast(pl.Float64).fill_nan(None)
        *others, last = self.names
        named = pl.lit(last)
        for cut, class_name in reversed(list(zip(self.cuts, others, strict=True))):
            named = pl.when(number <= cut).then(pl.lit(class_name)).otherwise(named)
        return pl.when(number.is_not_null()).then(named).cast(pl.Enum(self.names)).alias(name)

    def apply(self, values: Any) -> Array:
        """Return the name of the class of each number, (n,) objects; None where it is missing."""
        numbers = _numbers(values)
        position = np.searchsorted(self.cuts, numbers, side="left")  # NaN sorts last
        named = np.array(self.names, dtype=object)[position]
        named[np.isnan(numbers)] = None
        return named


def are_intervals(names: Sequence[Any]) -> bool:
    """Return whether declared classes are those of `TargetCuts`, which keep their order; others are sorted."""
    if not all(isinstance(name, str) for name in names) or len(names) < 2:
        return False
    cuts = [name.partition(" to ")[0] for name in names[1:-1]] + [names[-1].removeprefix("> ")]
    inner = (f"{low} to {high}" for low, high in itertools.pairwise(cuts))
    return tuple(names) == (f"≤ {cuts[0]}", *inner, f"> {cuts[-1]}")


def quantile_classes(y: Any, classes: int | None = None, *, cuts: Sequence[float] | None = None) -> Array:
    """Cut a target of numbers into classes of about equal size, by default four.

    Parameters
    ----------
    y : array-like (n,)
        Numbers; None and NaN are missing.
    classes : int, default 4
        The number of classes; repeated values may give fewer.
    cuts : sequence of float, optional
        The numbers at which to cut, strictly increasing, in place of quantiles. The cuts of the training rows
        (`TargetCuts.of`) cut new rows in the same way.

    Returns
    -------
    ndarray (n,) of str
        The name of the class of each row, None where y is missing: "≤ 100", "100 to 250", "> 250". A number equal to
        a cut is in the class below it.

    Raises
    ------
    ValueError
        y holds other cells than numbers, or fewer than two distinct numbers; `classes` is below 2; both `classes` and
        `cuts` are given; the cuts do not increase.

    Examples
    --------
    >>> import posteriori as po
    >>> po.reading.quantile_classes([50, 120, 90, 400, 260, 100], 3).tolist()
    ['≤ 90', '90 to 120', '≤ 90', '> 120', '> 120', '90 to 120']
    """
    if cuts is None:
        return TargetCuts.of(y, 4 if classes is None else classes).apply(y)
    points = np.asarray(cuts, dtype=np.float64)
    if classes is not None:
        raise ValueError("classes and cuts both say where to cut; give one of them")
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or (np.diff(points) <= 0).any():
        raise ValueError(f"cuts is {cuts!r}; give finite numbers in increasing order")
    return TargetCuts(tuple(points.tolist())).apply(y)


def _numbers(values: Any) -> Array:
    """Return the cells of a target as floats, NaN where missing."""
    cells = values.tolist() if hasattr(values, "tolist") else list(values)
    try:
        numbers = np.array([np.nan if is_missing(cell) else float(cell) for cell in cells], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"only a target of numbers can be cut into classes: {error}") from None
    if any(isinstance(cell, str) for cell in cells):
        raise ValueError("only a target of numbers can be cut into classes, and this one holds strings")
    if np.isinf(numbers).any():
        raise ValueError("the target holds an infinite number; replace or leave out such rows")
    return numbers


def _written(cuts: Sequence[float]) -> list[str]:
    """Write whole cuts in full, and others with as few digits as keep them distinct."""
    if all(cut.is_integer() and abs(cut) < 1e15 for cut in cuts):
        return [str(int(cut)) for cut in cuts]
    for digits in range(4, 18):
        written = [f"{cut:.{digits}g}" for cut in cuts]
        if len(set(written)) == len(cuts):
            break
    return written
