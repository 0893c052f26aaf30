"""Dates, times of day and durations, and the parts that a model reads of them."""

from __future__ import annotations

import datetime
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, get_args
from zoneinfo import ZoneInfo

import numpy as np

from posteriori.support.checks import is_missing, require
from posteriori.support.typing import Array

if TYPE_CHECKING:
    import polars as pl


TimeKind = Literal["month", "date", "datetime", "time", "duration"]

_MICROSECOND = datetime.timedelta(microseconds=1)
_KINDS_OF_PERIODS: dict[str, TimeKind] = dict.fromkeys(("Y", "YE", "A", "Q", "QE", "M", "ME"), "month")
_KINDS_OF_PERIODS |= dict.fromkeys(("W", "D", "B"), "date")
_TIMES = ("%H:%M:%S%.f", "%H:%M", "%I:%M:%S %p", "%I:%M %p")
_ISO_DATES = ("%Y-%m-%d", "%Y/%m/%d")
# Formats with the same separator that read the same cells differently.
RIVALS = {"%d/%m/%Y": "%m/%d/%Y", "%d-%m-%Y": "%m-%d-%Y", "%d/%m/%y": "%m/%d/%y"}
RIVALS |= {other: one for one, other in RIVALS.items()}
# Years of two digits are 1970 to 2069. With hyphens, 19-01-28 would be a date in three ways.
_DATES = (*_ISO_DATES, "%d.%m.%Y", "%d.%m.%y", *RIVALS)


@dataclass(frozen=True)
class TimeType:
    """The type of a column of dates, times of day or durations."""

    kind: TimeKind  # a month is a period of a month or longer, whose days mean nothing
    zone: str = ""  # the time zone whose clock the parts are read from; empty for times without a zone
    format: str = ""  # the format of cells that are strings, as polars writes it; empty if the training cells were none

    def check(self) -> None:
        """Raise ValueError for an unknown kind or time zone, or a format that no column has."""
        require(self.kind in get_args(TimeKind), f"there is no kind of times {self.kind!r}")
        require(not self.zone or _is_zone(self.zone), f"there is no time zone {self.zone!r}")
        require(not self.format or self.format in KINDS_OF_FORMATS, f"no dates are written as {self.format!r}")

    @property
    def is_span(self) -> bool:
        """Whether it is a time of day or a duration, and not a date."""
        return self.kind in ("time", "duration")

    @property
    def unit(self) -> str:
        """The data type of the cells as a NumPy array."""
        return "timedelta64[us]" if self.is_span else "datetime64[us]"

    @property
    def title(self) -> str:
        """The name of the cells in messages."""
        return {"time": "times of day", "duration": "durations"}.get(self.kind, "dates")

    def missing(self, n: int) -> Array:
        """Return n missing cells."""
        return np.full(n, np.array("NaT", self.unit))


def _formats() -> dict[str, TimeKind]:
    kinds: dict[str, TimeKind] = dict.fromkeys(_DATES, "date")
    kinds |= dict.fromkeys((f"{date} {time}" for date in _DATES for time in _TIMES), "datetime")
    iso = [f"%Y-%m-%d{between}{time}" for between in "T " for time in _TIMES[:2]]
    kinds |= dict.fromkeys((f"{one}{zone}" for one in iso for zone in ("", "%#z")), "datetime")
    return kinds | dict.fromkeys(_TIMES, "time")


KINDS_OF_FORMATS = _formats()


# Types -----------------------------------------------------------------------------------------------------------


def type_of_polars(series: pl.Series) -> TimeType | None:
    """Return the type of times that a polars column holds; None if it holds none."""
    import polars as pl

    dtype = series.dtype
    if dtype == pl.Object:
        return type_of_objects(series.to_list())
    if isinstance(dtype, pl.Datetime):
        return TimeType("datetime", dtype.time_zone or "")
    kinds: dict[Any, TimeKind] = {pl.Date: "date", pl.Time: "time", pl.Duration: "duration"}
    kind = kinds.get(dtype.base_type())
    return None if kind is None else TimeType(kind)


def type_of_pandas(series: Any) -> TimeType | None:
    """Return the type of times that a pandas column holds; None if it holds none."""
    dtype = series.dtype
    if str(dtype) == "object":
        return type_of_objects(series.tolist())
    if hasattr(dtype, "pyarrow_dtype"):
        return type_of_polars(_arrow_series(series.iloc[:0]))
    if str(dtype).startswith("period["):
        length = str(dtype)[len("period[") : -1].partition("-")[0].lstrip("0123456789").upper()
        return TimeType(_KINDS_OF_PERIODS.get(length, "datetime"))
    kind = getattr(dtype, "kind", "O")
    if kind == "M":
        zone = getattr(dtype, "tz", None)
        return TimeType("datetime", "" if zone is None else _name_of_zone(zone))
    return TimeType("duration") if kind == "m" else None


def type_of_array(dtype: np.dtype[Any]) -> TimeType | None:
    """Return the type of times that a NumPy array of dates or durations holds."""
    if dtype.kind == "m":
        return TimeType("duration")
    kinds: dict[str, TimeKind] = {"Y": "month", "M": "month", "W": "date", "D": "date"}
    return TimeType(kinds.get(np.datetime_data(dtype)[0], "datetime"))


def type_of_objects(cells: list[Any]) -> TimeType | None:
    """Return the type of times that Python cells hold; None unless all present ones are times of one kind."""
    types = set(map(type, cells))
    if not any(issubclass(one, _PYTHON_TIMES) for one in types):
        return None
    present = [cell for cell in cells if not is_missing(cell)]
    kinds = {_kind_of(one) for one in set(map(type, present))}
    if kinds == {"date", "datetime"}:
        kinds = {"datetime"}
    if len(kinds) != 1 or None in kinds:
        return None
    zones = {cell.tzinfo for cell in present if getattr(cell, "tzinfo", None) is not None}
    zone = "" if not zones else _name_of_zone(next(iter(zones))) if len(zones) == 1 else "UTC"
    kind = kinds.pop()
    return None if kind is None else TimeType(kind, "" if kind == "time" else zone)


_PYTHON_TIMES = (datetime.date, datetime.time, datetime.timedelta, np.datetime64, np.timedelta64)


def _kind_of(kind: type[Any]) -> TimeKind | None:
    if issubclass(kind, datetime.datetime | np.datetime64):
        return "datetime"
    if issubclass(kind, datetime.date):
        return "date"
    if issubclass(kind, datetime.time):
        return "time"
    return "duration" if issubclass(kind, datetime.timedelta | np.timedelta64) else None


def _name_of_zone(zone: Any) -> str:
    """Return the name of a time zone; UTC for an offset, which has no name."""
    name = getattr(zone, "key", None) or getattr(zone, "zone", None) or str(zone)
    return name if _is_zone(name) else "UTC"


def _is_zone(name: str) -> bool:
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        return False
    return True


def parsed(cells: Any, written: str, strict: bool = False) -> Any:
    """Return strings, a polars column or expression, as times.

    A string that is not in the format becomes null, or an error of polars if `strict`.
    """
    return cells.str.strptime(dtype_of_format(written), written, strict=strict)


def dtype_of_format(written: str) -> pl.DataType:
    """Return the polars data type of times that are written in a format."""
    import polars as pl

    kind = KINDS_OF_FORMATS[written]
    if kind == "datetime":
        return pl.Datetime("us", "UTC" if written.endswith("z") else None)
    return pl.Date() if kind == "date" else pl.Time()


# Cells -----------------------------------------------------------------------------------------------------------


def times_of_polars(series: pl.Series, wanted: TimeType, name: str) -> Array:
    """Return a polars column as times of the type that a model has, (n,): on the clock of its zone, NaT if missing.

    Raises
    ------
    ValueError
        The cells are no times of this type. The message names the column.
    """
    import polars as pl

    series, dtype = series.alias("cells"), series.dtype
    if series.null_count() == len(series):
        return wanted.missing(len(series))
    if dtype == pl.Object:
        return times_of_objects(series.to_list(), wanted, name)
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        series = _from_strings(series.cast(pl.String), wanted, name)
        dtype = series.dtype

    def microseconds(dtype: pl.DataType) -> Array:
        found = series.cast(dtype, strict=False)
        if found.null_count() > series.null_count():
            raise ValueError(
                f"column {name!r} holds a time that is 292,000 years or more away; correct it, or leave out the column"
            )
        return found.to_numpy()

    found: Array | None = None
    if dtype == pl.Date:
        found = microseconds(pl.Datetime("us"))
    elif isinstance(dtype, pl.Datetime):
        if dtype.time_zone is not None:
            series = series.dt.convert_time_zone(wanted.zone or dtype.time_zone).dt.replace_time_zone(None)
        found = microseconds(pl.Datetime("us"))
    elif dtype == pl.Time:
        found = (series.to_physical() // 1000).cast(pl.Duration("us")).to_numpy()
    elif isinstance(dtype, pl.Duration):
        found = microseconds(pl.Duration("us"))
    return _checked(found, wanted, name, str(dtype))


def times_of_pandas(series: Any, wanted: TimeType, name: str) -> Array:
    """Return a pandas column as times; see `times_of_polars`."""
    dtype = series.dtype
    label, kind = str(dtype), getattr(dtype, "kind", "O")
    if hasattr(dtype, "pyarrow_dtype"):
        return times_of_polars(_arrow_series(series), wanted, name)
    if label.startswith("period["):
        return np.asarray(series.dt.to_timestamp().to_numpy("datetime64[us]"))
    if kind == "M":
        if getattr(dtype, "tz", None) is not None:
            series = series.dt.tz_convert(wanted.zone or None).dt.tz_localize(None)
        return _checked(series.to_numpy("datetime64[us]"), wanted, name, label)
    if kind == "m":
        return _checked(series.to_numpy("timedelta64[us]"), wanted, name, label)
    if kind in "iufb":
        return _checked(wanted.missing(len(series)) if series.isna().all() else None, wanted, name, label)
    return times_of_objects(series.astype(object).tolist(), wanted, name)


def times_of_array(values: Array, wanted: TimeType, name: str) -> Array:
    """Return a NumPy array (n,) as times; see `times_of_polars`."""
    if values.dtype.kind in "mM":
        return _checked(values.astype(f"{values.dtype.str[1:3]}[us]"), wanted, name, str(values.dtype))
    return times_of_objects(values.tolist(), wanted, name)


def times_of_objects(cells: list[Any], wanted: TimeType, name: str) -> Array:
    """Return Python cells as times; strings among them are read as `times_of_polars` reads them."""
    found = wanted.missing(len(cells))
    strings: list[int] = []
    for row, cell in enumerate(cells):
        if isinstance(cell, str):
            strings.append(row)
        elif not is_missing(cell):
            found[row] = _python_time(cell, wanted, name)
    if strings:
        import polars as pl

        found[strings] = times_of_polars(pl.Series([cells[row] for row in strings]), wanted, name)
    return found


def _python_time(cell: Any, wanted: TimeType, name: str) -> Any:
    kind = _kind_of(type(cell))
    if kind is None or (kind in ("time", "duration")) != wanted.is_span:
        raise _not_times(wanted, name, f"a {type(cell).__name__}")
    if isinstance(cell, np.datetime64 | np.timedelta64):
        return cell
    if isinstance(cell, datetime.time):
        since = datetime.timedelta(
            hours=cell.hour, minutes=cell.minute, seconds=cell.second, microseconds=cell.microsecond
        )
        return np.timedelta64(since // _MICROSECOND, "us")
    if isinstance(cell, datetime.timedelta):
        return np.timedelta64(cell // _MICROSECOND, "us")
    if isinstance(cell, datetime.datetime) and cell.tzinfo is not None:
        cell = (cell.astimezone(ZoneInfo(wanted.zone)) if wanted.zone else cell).replace(tzinfo=None)
    return np.datetime64(cell, "us")


def _from_strings(cells: pl.Series, wanted: TimeType, name: str) -> pl.Series:
    """Return strings as times: in the format of the training cells, or else in that of ISO 8601."""
    import polars as pl

    iso = [written for written in KINDS_OF_FORMATS if written.startswith("%Y-") or written.startswith("%H")]
    formats = [one for one in (wanted.format, *iso) if one and (KINDS_OF_FORMATS[one] == "time") == wanted.is_span]
    found = pl.Series("cells", wanted.missing(len(cells)))
    for written in formats:
        left = found.is_null() & cells.is_not_null()
        if not left.any():
            break
        new = parsed(cells, written)
        if isinstance(new.dtype, pl.Datetime) and new.dtype.time_zone is not None:
            new = new.dt.convert_time_zone(wanted.zone or "UTC").dt.replace_time_zone(None)
        if new.dtype == pl.Time:
            new = (new.to_physical() // 1000).cast(pl.Duration("us"))
        found = found.zip_with(~left, new.cast(found.dtype))
    strange = cells.filter(found.is_null() & cells.is_not_null())
    if len(strange):
        raise _not_times(wanted, name, repr(strange[0]))
    return found


def _checked(found: Array | None, wanted: TimeType, name: str, label: str) -> Array:
    if found is None or (found.dtype.kind == "m") != wanted.is_span:
        raise _not_times(wanted, name, label)
    return found


def _not_times(wanted: TimeType, name: str, held: str) -> ValueError:
    example = "08:30:00" if wanted.kind == "time" else "datetime.timedelta" if wanted.is_span else "2024-12-31"
    return ValueError(
        f"column {name!r} held {wanted.title} in training but holds {held} now; convert it, to {example} for example"
    )


def _arrow_series(series: Any) -> pl.Series:
    import polars as pl
    import pyarrow as pa

    found = pl.from_arrow(pa.chunked_array(pa.array(series.array)) if len(series) else pa.array(series.array))
    assert isinstance(found, pl.Series)
    return found


# Back to cells ---------------------------------------------------------------------------------------------------


def python_times(times: Array, wanted: TimeType) -> list[Any]:
    """Return times as Python dates, datetimes, times of day or timedeltas; None if missing."""
    cells: Iterable[Any] = times.tolist()
    if wanted.kind in ("month", "date"):
        return [None if cell is None else cell.date() for cell in cells]
    if wanted.kind == "time":
        return [None if cell is None else (datetime.datetime.min + cell).time() for cell in cells]
    if wanted.zone:
        zone = ZoneInfo(wanted.zone)
        return [None if cell is None else cell.replace(tzinfo=zone) for cell in cells]
    return list(cells)


def polars_times(name: str, times: Array, wanted: TimeType) -> pl.Series:
    """Return times as a polars column of the type."""
    import polars as pl

    series = pl.Series(name, times)
    if wanted.kind in ("month", "date"):
        return series.cast(pl.Date)
    if wanted.kind == "time":
        return (series.to_physical() * 1000).cast(pl.Time)
    if wanted.zone:
        return series.dt.replace_time_zone(wanted.zone, ambiguous="earliest", non_existent="null")
    return series


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
    """Where a column of the model comes from, if the table holds dates, times of day or durations."""

    of: str  # the column of the table
    name: str  # "days", "seconds", "year", "month", "weekday" or "hour"; empty for a column of dates that is ignored
    type: TimeType  # the type of the column of the table
    # the first date of the training rows, as the number of days since 1970-01-01; part ``days`` is 0 at its midnight
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
    """Summary of a column of dates, times of day or durations in some rows; + adds the rows of both."""

    lowest: int | None  # in microseconds; None without a value
    highest: int | None
    values: tuple[tuple[str, frozenset[int]], ...]  # the values of each other part

    @classmethod
    def of(cls, times: Array, type_: TimeType) -> TimesSeen:
        """Summarise times (n,)."""
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
    def bounds(self) -> tuple[int | None, int | None]:
        """The first and the last time."""
        return self.lowest, self.highest

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
