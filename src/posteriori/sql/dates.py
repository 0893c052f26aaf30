"""Parts of dates and of times of day: months, weekdays, hours and days since the first date, as expressions."""

from __future__ import annotations

from sqlglot import exp

from posteriori.reading.file_frames import MISSING
from posteriori.sql.dialects import Dialect, Node, cases, column, literal, minus, over, plus, real, times, whole
from posteriori.tables import Column
from posteriori.tables.messages import quote
from posteriori.tables.times import WEEKDAYS, DatePart
from posteriori.user_warnings import warn

# Databases whose functions of dates sqlglot writes; SELECTs for DuckDB and SQLite run in the tests.
_HAVE_DATES = (
    *("athena", "bigquery", "databricks", "duckdb", "mysql", "postgres", "presto", "redshift", "snowflake", "spark"),
    *("sqlite", "trino", "tsql"),
)
_HAVE_ZONES = ("duckdb", "postgres")
_HAVE_EPOCH = ("duckdb", "postgres")  # seconds since 1970 with their fraction
_EPOCH = "1970-01-01"
_DAY = 86_400.0  # seconds
_ISO_IN_SQLITE = ("[0-9][0-9][0-9][0-9]-[0-9][0-9]-[0-9][0-9]*", "[0-9][0-9]:[0-9][0-9]*")  # of dates, of times of day
_ISO_IN_DUCKDB = (r"^\d{4}[-/]", r"^\d{1,2}:")  # other text, such as 01/02/24, would be a date of the year 1


def reason_against(part: DatePart, dialect: Dialect | None = None) -> str | None:
    """Return why a part of dates has no SQL, in one dialect or, without one, in any; None if it has."""
    if part.type.kind == "duration":
        return "holds durations, which databases keep in different ways"
    if dialect is None:
        return None
    if dialect.name not in _HAVE_DATES:
        return f"holds {part.type.title}, which are written for {', '.join(_HAVE_DATES)} only"
    zone = part.type.zone
    if zone and dialect.name not in _HAVE_ZONES and (dialect.name, zone) != ("sqlite", "UTC"):
        return f"holds times on the clock of {zone}, which are written for {' and '.join(_HAVE_ZONES)} only"
    return None


def require_dates(columns: list[Column], dialect: Dialect) -> None:
    """Raise ValueError for parts of dates that the dialect does not have; warn of dates that it reads otherwise."""
    parts = {one.part.of: one.part for one in columns if one.part is not None and not one.is_ignored}
    for name, part in parts.items():
        reason = reason_against(part, dialect)
        if reason is not None:
            raise ValueError(f"column {name!r} {reason}; choose such a dialect, or leave out the column and fit again")
    local = [name for name, part in parts.items() if part.type.format and not _is_iso(part.type.format)]
    if local and dialect.name != "duckdb":
        warn(
            f"the dates of {quote(local)} were not written as 2024-12-31 in training, and {dialect.name} reads no "
            "others; convert them in the database, by table='(SELECT …)' for example"
        )


def moment(part: DatePart, dialect: Dialect) -> Node:
    """Return a cell of a table as a date with its time, or as a time of day; NULL if it is text that is neither."""
    kind = "time" if part.type.is_span else "timestamp"
    if dialect.name == "sqlite":
        return _moment_of_sqlite(part, dialect)
    if dialect.name == "duckdb":
        return _moment_of_duckdb(part, dialect, kind)
    if part.type.zone:
        return _on_clock(exp.cast(dialect.named(part.of), "timestamptz"), part.type.zone)
    return exp.cast(dialect.named(part.of), kind)


def is_no_moment(part: DatePart, dialect: Dialect) -> Node:
    """Return the condition that a cell is text that is not missing and no date."""
    known = exp.In(
        this=exp.cast(dialect.named(part.of), "text"), expressions=[exp.Literal.string(one) for one in MISSING]
    )
    present = exp.Not(this=exp.Is(this=dialect.named(part.of), expression=exp.Null()))
    unread = exp.Is(this=exp.Paren(this=moment(part, dialect)), expression=exp.Null())
    return exp.And(this=exp.And(this=present, expression=unread), expression=exp.Not(this=known))


def number_of(part: DatePart, name: str, dialect: Dialect) -> Node:
    """Return the days since the first date of the training rows, of a column of moments."""
    if dialect.name in _HAVE_EPOCH:
        seconds = real(exp.Extract(this=exp.var("EPOCH"), expression=column(name)))
        return minus(over(seconds, literal(_DAY)), literal(float(part.origin)))
    clock = (
        times(real(_field("HOUR", name, dialect)), literal(3600.0)),
        times(real(_field("MINUTE", name, dialect)), literal(60.0)),
    )
    seconds = plus(plus(*clock), real(_field("SECOND", name, dialect)))
    return plus(minus(real(_days(name, dialect)), literal(float(part.origin))), over(seconds, literal(_DAY)))


def code_of(known: Column, name: str, dialect: Dialect) -> Node:
    """Return the code of the year, month, weekday or hour of a column of moments; NULL for a year unseen."""
    assert known.part is not None
    if known.part.name == "weekday":
        since = plus(_days(name, dialect), whole(3))  # 1970-01-01 was a Thursday

        def remainder(node: Node) -> Node:
            return exp.Paren(this=exp.Mod(this=exp.Paren(this=node), expression=whole(7)))

        cell, values = remainder(plus(remainder(since), whole(7))), [WEEKDAYS.index(one) for one in known.categories]
    else:
        cell, values = _field(known.part.name.upper(), name, dialect), [int(one) for one in known.categories]
    ifs = [exp.If(this=whole(value), true=whole(code)) for code, value in enumerate(values, start=1)]
    return exp.Case(this=cell, ifs=ifs)


def _is_iso(written: str) -> bool:
    return written.startswith(("%Y", "%H"))


def _on_clock(node: Node, zone: str) -> Node:
    """Return the date and time that the clock of a zone shows."""
    return exp.AtTimeZone(this=node, zone=exp.Literal.string(zone))


def _moment_of_sqlite(part: DatePart, dialect: Dialect) -> Node:
    """Return text of ISO 8601, which the functions of SQLite read; other text might mean now, or a Julian day."""

    def text() -> Node:
        cell = dialect.named(part.of)
        slashes = exp.Literal.string("/"), exp.Literal.string("-")
        return cell if part.type.is_span else exp.Anonymous(this="REPLACE", expressions=[cell, *slashes])

    is_iso = exp.Glob(this=text(), expression=exp.Literal.string(_ISO_IN_SQLITE[part.type.is_span]))
    return cases((is_iso, text()))


def _moment_of_duckdb(part: DatePart, dialect: Dialect, kind: str) -> Node:
    zone = part.type.zone

    def text() -> Node:
        return exp.cast(dialect.named(part.of), "text")

    cast = exp.TryCast(this=dialect.named(part.of), to=exp.DataType.build("timestamptz" if zone else kind))
    is_iso = exp.Anonymous(
        this="REGEXP_MATCHES", expressions=[text(), exp.Literal.string(_ISO_IN_DUCKDB[part.type.is_span])]
    )
    found = cases((is_iso, _on_clock(cast, zone) if zone else cast))
    written = part.type.format
    if not written or _is_iso(written):
        return found
    cell = text()
    if "%y" in written:  # 69 is 2069, and for DuckDB 1969
        for digits, century in (("[0-6]", "20"), ("[7-9]", "19")):
            short = [rf"^(\d+[./]\d+[./])({digits}\d)( .*)?$", rf"\1{century}\2\3"]
            cell = exp.Anonymous(this="REGEXP_REPLACE", expressions=[cell, *map(exp.Literal.string, short)])
        written = written.replace("%y", "%Y")
    forms = [written.replace("%S%.f", "%S"), written.replace("%S%.f", "%S.%f")]
    formats = exp.Array(expressions=[exp.Literal.string(one) for one in dict.fromkeys(forms)])
    parsed = exp.Anonymous(this="TRY_STRPTIME", expressions=[cell, formats])
    return exp.Coalesce(this=exp.cast(parsed, "time") if kind == "time" else parsed, expressions=[found])


def _field(field: str, name: str, dialect: Dialect) -> Node:
    """Return a field of a moment, such as its month."""
    if dialect.name == "sqlite":
        form = {"YEAR": "%Y", "MONTH": "%m", "HOUR": "%H", "MINUTE": "%M", "SECOND": "%f"}[field]
        text = exp.Anonymous(this="STRFTIME", expressions=[exp.Literal.string(form), column(name)])
        return exp.cast(text, "double" if field == "SECOND" else "int")
    return exp.Extract(this=exp.var(field), expression=column(name))


def _days(name: str, dialect: Dialect) -> Node:
    """Return the whole days of a moment since 1970-01-01."""
    if dialect.name == "sqlite":
        day = exp.Anonymous(this="JULIANDAY", expressions=[exp.Anonymous(this="DATE", expressions=[column(name)])])
        return exp.cast(minus(day, literal(2440587.5)), "int")
    first = exp.cast(exp.Literal.string(_EPOCH), "date")
    return exp.DateDiff(this=exp.cast(column(name), "date"), expression=first, unit=exp.var("DAY"))
