"""The parts of dates that carry information: days since the first, year, month, weekday and hour."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.invariants import require
from posteriori.tables.times import TimeKind, TimeType
from posteriori.typing import Array

PARTS = ("days", "seconds", "year", "month", "weekday", "hour")
WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
PARTS_OF: dict[TimeKind, tuple[str, ...]] = {
    "month": ("days", "year", "month"),
    "date": ("days", "year", "month", "weekday"),
    "datetime": ("days", "year", "month", "weekday", "hour"),
    "time": ("hour",),
    "duration": ("seconds",),
}
NUMBERS = ("days", "seconds")  # the parts that are continuous
CATEGORIES: dict[str, tuple[Any, ...]] = {
    "month": tuple(range(1, 13)),
    "weekday": WEEKDAYS,
    "hour": tuple(range(24)),
}

_DAY = 86_400_000_000  # microseconds
_HOUR = 3_600_000_000
_BOUNDS = ((-719_162, 2_932_895), (-999_999_998, 999_999_998))  # days of Python's dates since 1970, and its durations
_MOST_DAYS = 4_000_000  # of the first date from 1970, about 11,000 years


@dataclass(frozen=True)
class DatePart:
    """Where a column of the model comes from, if the table holds dates, times of day or durations.

    Attributes
    ----------
    of : str
        The column of the table.
    name : {"days", "seconds", "year", "month", "weekday", "hour", ""}
        The part; empty for a column of dates that is ignored.
    type : TimeType
        The type of the column of the table.
    origin : int
        The first date of the training rows, as the number of days since 1970-01-01; part ``days`` is 0 at its midnight.
    """

    of: str
    name: str
    type: TimeType
    origin: int = 0

    def check(self) -> None:
        """Raise ValueError unless the part exists in a column of this type."""
        require(self.name in ("", *PARTS_OF[self.type.kind]), f"column {self.of!r} of times has no {self.name!r}")
        require(abs(self.origin) <= _MOST_DAYS, f"the first date of column {self.of!r} is out of range")

    def is_read_as(self, other: DatePart) -> bool:
        """Whether two parts are the same of the same times; the strings that these are read from may differ."""
        return replace(self, type=replace(self.type, format="")) == replace(other, type=replace(other.type, format=""))

    @property
    def is_number(self) -> bool:
        """Whether the part is continuous."""
        return self.name in NUMBERS

    @property
    def zero(self) -> int:
        """The time at which a continuous part is 0, in microseconds since 1970, or of a duration."""
        return self.origin * _DAY if self.name == "days" else 0

    @property
    def unit(self) -> int:
        """The unit of a continuous part, in microseconds."""
        return _DAY if self.name == "days" else 1_000_000

    def numbers(self, times: Array) -> Array:
        """Return days since the first date, or seconds, of times (n,), as floats; NaN where missing."""
        return np.where(np.isnat(times), np.nan, (times.astype(np.int64) - self.zero) / self.unit)

    def integers(self, times: Array) -> Array:
        """Return the year, the month (1 to 12), the weekday (0 for Monday) or the hour of present times (n,)."""
        since = times.astype(np.int64)
        if self.name == "hour":
            return since % _DAY // _HOUR
        if self.name == "weekday":
            return (since // _DAY + 3) % 7  # 1970-01-01 was a Thursday
        months = times.astype("datetime64[M]").astype(np.int64)
        return months // 12 + 1970 if self.name == "year" else months % 12 + 1

    def times(self, drawn: Array) -> Array:
        """Return times of which the part is as drawn, (n,): the inverse of `numbers`, or the beginning of an hour.

        They are missing if the part does not determine them, as a month does not.
        """
        found = self.type.missing(len(drawn))
        if self.name == "hour" and self.type.kind == "time":
            present = drawn > 0  # codes
            found[present] = (drawn[present].astype(np.int64) - 1) * _HOUR
        elif self.is_number:
            present = ~np.isnan(drawn)
            whole = np.floor(drawn[present]) if self.type.kind in ("month", "date") else drawn[present]
            lowest, highest = (bound * _DAY / self.unit for bound in _BOUNDS[self.type.is_span])
            since = np.clip(whole + self.zero / self.unit, lowest, highest) - self.zero / self.unit
            found[present] = np.round(since * self.unit).astype(np.int64) + self.zero
        return found


@dataclass(frozen=True)
class TimesSeen:
    """What some rows show of a column of dates, times of day or durations; + adds the rows of both.

    Attributes
    ----------
    lowest, highest : int or None
        In microseconds; None without a value.
    values : mapping of str to set of int
        The values of each other part.
    """

    lowest: int | None
    highest: int | None
    values: tuple[tuple[str, frozenset[int]], ...]

    @classmethod
    def of(cls, times: Array, type_: TimeType) -> TimesSeen:
        """Return what times (n,) show."""
        present = times[~np.isnat(times)]
        since = present.astype(np.int64)
        lowest, highest = (int(since.min()), int(since.max())) if len(since) else (None, None)
        parts = [part for part in PARTS_OF[type_.kind] if part not in NUMBERS]
        values = ((one, frozenset(np.unique(DatePart("", one, type_).integers(present)).tolist())) for one in parts)
        return cls(lowest, highest, tuple(values))

    def __add__(self, other: TimesSeen) -> TimesSeen:
        if self.lowest is None or self.highest is None:
            return other
        if other.lowest is None or other.highest is None:
            return self
        values = tuple(
            (name, mine | theirs) for (name, mine), (_, theirs) in zip(self.values, other.values, strict=True)
        )
        return TimesSeen(min(self.lowest, other.lowest), max(self.highest, other.highest), values)

    @property
    def origin(self) -> int:
        """The first date, as the number of days since 1970-01-01."""
        return 0 if self.lowest is None else self.lowest // _DAY

    @cached_property
    def of_part(self) -> dict[str, frozenset[int]]:
        """The values of each part that is no number."""
        return dict(self.values)

    def varying(self, type_: TimeType) -> tuple[str, ...]:
        """Return the parts of a column of a type that have several values."""
        spread = self.lowest != self.highest
        return tuple(
            part for part in PARTS_OF[type_.kind] if (spread if part in NUMBERS else len(self.of_part[part]) > 1)
        )


def parts_of(name: str, type_: TimeType, seen: TimesSeen, wanted: Sequence[str] | None) -> tuple[DatePart, ...]:
    """Return the parts of a column that a model reads: the wanted ones that it has, or those that vary if None."""
    if seen.lowest is None:
        return ()
    has = PARTS_OF[type_.kind]
    chosen = seen.varying(type_) if wanted is None else [part for part in has if part in wanted]
    return tuple(DatePart(name, part, type_, seen.origin if part == "days" else 0) for part in chosen)
