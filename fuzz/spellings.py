"""Tables as pandas, LibreOffice and Excel write them in five countries, read as they are meant or with a sentence."""

from __future__ import annotations

import datetime as dt
import re
import warnings
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from fuzz.tables import pick
from fuzz.target import Habits, Target
from posteriori.reading.files import Scan, scan

Rng = np.random.Generator
Cells = list[Any]  # numbers, dates, booleans or words; None for a gap


@dataclass(frozen=True)
class Locale:
    """How a country writes."""

    decimal: str
    groups: str  # between thousands
    date: str
    separator: str  # of Excel and LibreOffice
    encoding: str  # of Excel
    words: tuple[str, ...]
    booleans: tuple[str, str]


LOCALES = {
    "en": Locale(".", ",", "%m/%d/%Y", ",", "cp1252", ("low", "high", "St. A | B", "no, never"), ("FALSE", "TRUE")),
    "de": Locale(
        ",", ".", "%d.%m.%Y", ";", "cp1252", ("M\u00fcller", "Stra\u00dfe 5", "a; b", "n"), ("FALSCH", "WAHR")
    ),
    "fr": Locale(
        ",", "\u202f", "%d/%m/%Y", ";", "cp1252", ("\u00e9t\u00e9", "l'\u00eele", "ao\u00fbt", "x"), ("FAUX", "VRAI")
    ),
    "pl": Locale(
        ",",
        "\u00a0",
        "%d.%m.%Y",
        ";",
        "cp1250",
        ("\u0142\u00f3d\u017a", "\u017cycie", "a", "b"),
        ("FA\u0141SZ", "PRAWDA"),
    ),
    "sv": Locale(
        ",", "\u00a0", "%Y-%m-%d", ";", "cp1252", ("\u00e5r", "\u00f6", "sj\u00f6 7", "b\u00e4st"), ("FALSKT", "SANT")
    ),
}
GAPS = ("", "NA", "NaN", "null", "n/a", "#N/A", "-", "?", "NULL", "k.A.")
_NAMES = ("size", "id no", 'to "x"', "pr\u00f6ve", "a;b", "a,b", "day", "y")


@dataclass(frozen=True)
class Style:
    """How a table is written, by choices that each have a name."""

    locale: str
    program: str
    gap: str
    has_groups: bool
    date: str
    above: int  # lines of a title
    has_blanks: bool
    has_ends: bool
    encoding: str
    quotes_all: bool

    @property
    def separator(self) -> str:
        """The separator of the program."""
        tab = self.encoding == "utf-16"
        return "\t" if tab else "," if self.program == "pandas" else LOCALES[self.locale].separator

    @property
    def decimal(self) -> str:
        """The decimal mark of the program."""
        return "." if self.program == "pandas" else LOCALES[self.locale].decimal

    def habits(self) -> tuple[str, ...]:
        """Return the names of the choices."""
        found = [self.locale, self.program, f"gap {self.gap!r}", f"dates {self.date}", self.encoding]
        odd = {"thousands": self.has_groups, "title": self.above > 0, "blank lines": self.has_blanks}
        odd |= {"separators at line ends": self.has_ends, "all in quotes": self.quotes_all}
        return (*found, *(name for name, holds in odd.items() if holds))


def _style(rng: Rng) -> Style:
    locale, program = pick(rng, list(LOCALES)), pick(rng, ("pandas", "LibreOffice", "Excel"))
    of_excel = ("utf-8-sig", LOCALES[locale].encoding, "utf-16")
    rare = rng.random(5) < 0.15
    return Style(
        locale,
        program,
        pick(rng, GAPS),
        bool(rng.random() < 0.3) and program != "pandas",
        "%Y-%m-%d" if program == "pandas" else LOCALES[locale].date,
        int(rng.integers(1, 3)) * bool(rare[0]),
        bool(rare[1]),
        bool(rare[2]) and program != "pandas",
        pick(rng, of_excel) if program == "Excel" else "utf-8",
        bool(rare[3]),
    )


def _column(rng: Rng, kind: str, n: int, locale: Locale) -> Cells:
    if kind == "numbers":
        digits = int(rng.integers(1, 4))
        scale = 10.0 ** rng.integers(0, 6)
        return [round(float(one * scale), digits) for one in rng.normal(size=n)]
    if kind == "whole numbers":
        return [int(one) for one in rng.integers(0, 10 ** int(rng.integers(1, 7)), n)]
    if kind == "dates":
        return [dt.date(2020, 1, 1) + dt.timedelta(days=int(one)) for one in rng.integers(0, 2000, n)]
    if kind == "booleans":
        return [bool(one) for one in rng.random(n) < 0.5]
    return [pick(rng, locale.words) for _ in range(n)]


def _written(cell: Any, style: Style, places: int) -> str:
    locale = LOCALES[style.locale]
    if cell is None:
        return style.gap
    if isinstance(cell, bool):
        return str(cell) if style.program == "pandas" else locale.booleans[cell]
    if isinstance(cell, dt.date):
        return cell.strftime(style.date)
    if not isinstance(cell, int | float):
        return str(cell)
    text = f"{cell:,}" if isinstance(cell, int) else repr(cell) if style.program == "pandas" else f"{cell:,.{places}f}"
    whole, point, fraction = text.partition(".")
    groups = locale.groups if style.has_groups else ""
    return whole.replace(",", groups) + (style.decimal if point else "") + fraction


def _quoted(text: str, style: Style) -> str:
    needs = style.quotes_all or any(one in text for one in (style.separator, '"', "\n"))
    return '"' + text.replace('"', '""') + '"' if needs else text


def _write(rng: Rng, path: Path, columns: dict[str, Cells], style: Style) -> None:
    places = {name: max((len(repr(c).partition(".")[2]) for c in cells if isinstance(c, float)), default=0)
              for name, cells in columns.items()}  # fmt: skip
    rows = [[_written(cell, style, places[name]) for cell in cells] for name, cells in columns.items()]
    lines = [list(columns), *zip(*rows, strict=True)]
    end = style.separator if style.has_ends else ""
    texts = [style.separator.join(_quoted(cell, style) for cell in line) + end for line in lines]
    if style.has_blanks:
        for _ in range(2):
            texts.insert(int(rng.integers(2, len(texts))), "")
    texts = [*["Report of 2024", ""][: style.above], *texts]
    text = ("\r\n" if style.program == "Excel" else "\n").join([*texts, ""])
    if style.encoding.startswith("cp"):
        text = text.replace("\u202f", "\u00a0")  # which these encodings have
    path.write_bytes(text.encode(style.encoding, "replace"))


def _is_right(read: Cells, cells: Cells, style: Style) -> bool:
    """Return whether cells are read as what they are; a gap among words may stay the word that is written."""
    are_words = all(cell is None or isinstance(cell, str | bool) for cell in cells)
    for one, cell in zip(read, cells, strict=True):
        if cell is None:
            right = one is None or (are_words and one == style.gap)
        elif isinstance(cell, bool):
            right = one is cell or one == _written(cell, style, 0)
        elif isinstance(cell, int | float):
            right = isinstance(one, int | float) and abs(one - cell) <= 1e-9 * abs(cell)
        elif isinstance(cell, dt.date):
            right = isinstance(one, dt.date) and one.isoformat()[:10] == cell.isoformat()
        else:
            right = one == cell
        if not right:
            return False
    return True


def _read(path: Path, **asked: Any) -> tuple[Scan, pl.DataFrame, list[str]]:
    """Return the rows of a file, and what is said about how they are read."""
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        rows = scan(path, **asked)
        frame = pl.concat(rows.frames(rows.names))
    return rows, frame, [str(one.message) for one in said]


def _above(path: Path) -> int:
    """Return the number of lines above the header that a sentence names."""
    with warnings.catch_warnings(record=True) as said, suppress(ValueError):
        warnings.simplefilter("always")
        scan(path)
    found = re.search(r"--skip-rows (\d+)", " ".join(str(one.message) for one in said))
    return int(found[1]) if found else 0


def run(rng: Rng, folder: Path) -> Habits:
    """Write a table and read it; AssertionError if a column is read as what it is not, and no sentence names it."""
    style = _style(rng)
    n, locale, path = int(rng.integers(30, 61)), LOCALES[style.locale], folder / "t.csv"
    kinds = [
        pick(rng, ("numbers", "whole numbers", "dates", "categories", "booleans")) for _ in range(rng.integers(2, 6))
    ]
    columns = {}
    for name, kind in zip(rng.permutation(_NAMES), kinds, strict=False):
        gaps = rng.random(n) < (0.08 if rng.random() < 0.4 else 0)
        gaps[-1] = False  # a last line without a value is left out
        cells = _column(rng, kind, n, locale)
        columns[str(name)] = [None if gap else cell for cell, gap in zip(cells, gaps, strict=True)]
    _write(rng, path, columns, style)
    above = _above(path) if style.above else 0
    if above != style.above:
        raise AssertionError(f"{above} lines above the header are named, not {style.above}: {style}")
    rows, frame, said = _read(path, skip_rows=above)
    if frame.columns != list(columns) and rows.dialect.find("encoding") < 0:
        raise AssertionError(f"the columns are {frame.columns}, not {list(columns)}: {style}; {said}")
    if frame.height != n:
        raise AssertionError(f"{frame.height} rows are read, not {n}: {style}; {said}")
    wrong = [
        (name, read)
        for (name, cells), read in zip(columns.items(), frame.iter_columns(), strict=True)
        if not _is_right(read.to_list(), cells, style)
    ]
    for name, read in wrong:
        sentences = [*said, *rows.remarks.values(), *rows.doubtful_numbers.values()]
        is_named = any(repr(name) in one for one in sentences) or (rows.doubtful_numbers and read.dtype.is_numeric())
        if not (is_named or "cp1252" in rows.dialect):
            pairs = [pair for pair in zip(read.to_list(), columns[name], strict=True) if pair[0] != pair[1]]
            raise AssertionError(f"column {name!r} ({read.dtype}) is read otherwise, {pairs[:4]}: {style}; {said}")
    return Habits(not wrong, (*style.habits(), *sorted(set(kinds))))


TARGET = Target("spellings", run)
