"""Numbers as text files write them, with units and separators of thousands; and digits that are codes and stay text.

What is written is kept: a column becomes numbers only if its cells are written as numbers. What has to be changed for
that is a repair, which is named; codes, such as zip codes with leading zeros, stay as they are written.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal

from posteriori.reading.marks import DATES_SHARE, MOST_MARKS, NUMBERS_SHARE, is_mark, marks_among
from posteriori.support.lazy_polars import pl

# What a column is read for: a feature; a label; a stated category; or a number, stated or known from training rows.
Role = Literal["feature", "label", "category", "number"]

_SYMBOLS = r"R\$|[$€£¥¢₹₽₩₺₫₪₴₦₱฿]|kr\.?|zł|Kč|Ft|Rs\.?|Rp"
_CODES = """
    USD EUR GBP CHF JPY CNY INR AUD CAD NZD SEK NOK DKK PLN CZK HUF RON BGN TRY RUB UAH BRL MXN ARS CLP COP ZAR KRW HKD
    SGD TWD THB IDR MYR PHP VND ILS AED SAR EGP NGN KES
"""
CURRENCY = f"{_SYMBOLS}|{'|'.join(_CODES.split())}"
# Units of measurement behind a number; those of one letter take a blank before it.
_MEASURES = """
    kg mg µg μg lb lbs oz cm mm µm km ft mi ml dl cl min hr hrs hours sec days years yrs months
    kW kWh Wh MW mA mV Hz kHz
    MHz GHz hPa kPa MPa bar mmHg °C °F ° kJ kcal ppm bpm mph kmh km/h m/s m² m³ cm² cm³ km² mg/dl mg/dL g/dl g/dL
    g/l g/L mmol/l mmol/L rpm hp kB KB MB GB TB px dB Ah mAh Nm kN
"""
_AFTER_BLANK = "g t m s h d l L V W A C F K J N"  # one letter may be a code, as in 5A
_MEASURE = "|".join(re.escape(one) for one in sorted(_MEASURES.split(), key=len, reverse=True))
UNIT = f"{CURRENCY}|%|‰|{_MEASURE}| (?:{'|'.join(_AFTER_BLANK.split())})"
_SHARES = ("%", "‰")  # units without which a number means another one: 12 % and 0.12

_BLANKS = "\t\u00a0\u2007\u2008\u2009\u200a\u202f\u3000"  # beside the usual one: around numbers and between thousands
_INVISIBLE = "\u200b\u200e\u200f\u202a-\u202e\u2060\ufeff"  # marks of direction and joiners, which some programs write
_MINUS = "\u2212\u2012\u2013\ufe63\uff0d"  # typographic signs
_USUAL = str.maketrans(dict.fromkeys(_BLANKS, " ") | dict.fromkeys(_MINUS, "-"))
_GROUP = {".": "[,'’ _]", ",": "[.'’ _]"}  # between thousands, by decimal mark
_IN_PARENTHESES = rf"^((?:{CURRENCY})?) *\(([^()+-]*)\) *((?:{CURRENCY}|%)?)$"
_MINUS_BEHIND = rf"^([^()+-]*[0-9]) *- *((?:{CURRENCY}|%)?)$"
LEADING_ZERO = r"^[+-]?0[0-9]"
_EXPONENT = r"^[0-9]+[eE][0-9]+$"  # 1E2 is a code where no other number has a fraction or a sign in its exponent
_LIKE_A_CODE = rf"{LEADING_ZERO}|[eE+]|- *$|[0-9]{{16}}"  # what `_code` looks at more closely
_LARGEST_WHOLE = 2.0**53  # above it floats skip integers
_FEW_WORDS = 3  # that a sentence lists
_FEWEST_NUMBERS = 5  # that show that a column might be one of numbers
_QUANTITY_SHARE = 0.95  # of the present labels, that are numbers if the others are unknown
_FEW_VALUES = 20  # so many distinct labels are classes in any case

# For type checkers a data type of polars. At run time it is none, because polars is imported when it is first used.
_DataType: Any = pl.String if TYPE_CHECKING else object


@dataclass(frozen=True)
class WrittenNumber(_DataType):
    """The type of a text column of written numbers: it is read as strings, which `as_number` converts."""

    decimal: str
    marks: tuple[str, ...] = ()  # cells that are missing in this column
    repairs: tuple[str, ...] = ()  # what reading the cells as numbers changes, in words; sorted
    units: tuple[str, ...] = ()  # at most one; later cells have the same
    is_plain: bool = False  # whether all numbers are written as programs write them, whatever the repairs
    is_whole: bool = False  # whether they are integers of 64 bits, some of which may be written as 7.0 or 1e3

    def joined(self, other: WrittenNumber) -> WrittenNumber:
        """Return the type of the cells of both."""
        marks, repairs, units = (
            tuple(sorted({*one, *two})) for one, two in zip(self._parts, other._parts, strict=True)
        )
        is_plain, is_whole = self.is_plain and other.is_plain, self.is_whole and other.is_whole
        return WrittenNumber(self.decimal, marks, repairs, units, is_plain, is_whole)

    @property
    def _parts(self) -> tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]:
        return self.marks, self.repairs, self.units


@dataclass(frozen=True)
class WrittenText(_DataType):
    """The type of a text column that stays as it is written, although numbers are in it."""

    is_code: bool  # whether all cells are digits, which another file of the table may write without leading zeros
    remark: str = ""  # why it is text, for the user; empty if that is plain
    keeps_na: bool = False  # whether NA is one of its codes, and not a missing cell


@dataclass(frozen=True)
class SeenCells:
    """Summary of some cells of a column; + adds further ones."""

    n_numbers: int = 0
    n_words: int = 0  # present cells that are no numbers
    words: frozenset[str] = frozenset()  # some of these
    n_plain: int = 0  # numbers as programs write them: 12, -1.5, 1e-5
    units: frozenset[str] = frozenset()
    bare: str = ""  # a number without unit that is not 0
    repairs: frozenset[str] = frozenset()
    code: str = ""  # a cell that shows that these numbers are codes
    twice: tuple[str, ...] = ()  # two spellings of one number
    odd: str = ""  # a number whose spelling the number itself does not tell, such as 1.50
    values: frozenset[str] = frozenset()  # some distinct cells
    n_bounds: int = 0  # words that are bounds, rough numbers or abbreviated ones: <0.5, ~3, 1.2M
    bound: str = ""  # one of these
    n_whole: int = 0  # numbers that are digits alone
    n_integers: int = 0  # numbers that are integers, however they are written
    has_long: bool = False  # whether some are of so many digits that floats lose some

    def __add__(self, other: SeenCells) -> SeenCells:
        return SeenCells(
            self.n_numbers + other.n_numbers,
            self.n_words + other.n_words,
            _some(self.words | other.words, MOST_MARKS),
            self.n_plain + other.n_plain,
            self.units | other.units,
            self.bare or other.bare,
            self.repairs | other.repairs,
            self.code or other.code,
            self.twice or other.twice,
            self.odd or other.odd,
            _some(self.values | other.values, _FEW_VALUES),
            self.n_bounds + other.n_bounds,
            self.bound or other.bound,
            self.n_whole + other.n_whole,
            self.n_integers + other.n_integers,
            self.has_long or other.has_long,
        )

    @property
    def are_whole(self) -> bool:
        """Whether all numbers are integers, and nearly all of them, or long ones, are written as digits alone."""
        are_integers = self.n_integers == self.n_numbers > 0
        return are_integers and (self.has_long or self.n_whole >= NUMBERS_SHARE * self.n_numbers)


def _some(cells: frozenset[str], most: int) -> frozenset[str]:
    """Return at most one cell more than `most`, which shows that there are more."""
    return cells if len(cells) <= most else frozenset(sorted(cells)[: most + 1])


def are_country_codes(values: Collection[str]) -> bool:
    """Return whether distinct cells may be codes of countries or states, of which NA is one."""
    return len(values) > 1 and all(re.fullmatch("[A-Z]{2}", value) for value in values)


def look_at_plain(rows: pl.DataFrame, names: Sequence[str], decimal: str) -> dict[str, SeenCells]:
    """Summarise the columns that hold words without digits alone, or numbers that need no closer look.

    These are nearly all columns of a table, and many are looked at in about the time of one by `look_at`.
    """
    cells, chosen = pl.all(), rows.select(pl.selectors.by_name(*names))
    numbers = with_point(cells, decimal).cast(pl.Float64, strict=False)
    asked = {
        "n": cells.count(),
        "n_numbers": is_plain_number(cells, decimal).sum(),
        "has_digits": cells.str.contains(f"[0-9]|(?i:inf)|{_LIKE_A_CODE}").any(),
        "like_a_code": cells.str.contains(_LIKE_A_CODE).any(),
        "spellings": cells.n_unique(),
        "different": numbers.n_unique(),
        "like_whole": (numbers % 1.0 == 0.0).all() & cells.str.contains(f"[{decimal}eE]").any(),  # 7.0 or 1e3
    }
    # Each in a query of its own: planning one of all takes time that grows with the square of the columns.
    found = {what: chosen.select(look).row(0) if names else () for what, look in asked.items()}
    seen = {}
    for j, name in enumerate(names):
        one = {what: of_columns[j] for what, of_columns in found.items()}
        has_odd_cell = one["like_a_code"] or one["like_whole"]
        if one["n"] == one["n_numbers"] and one["spellings"] == one["different"] and not has_odd_cell:
            seen[name] = SeenCells(one["n"], n_plain=one["n"])
        elif not one["has_digits"]:
            some = frozenset(rows[name].alias("cells").drop_nulls().unique().head(_FEW_VALUES + 1))
            seen[name] = SeenCells(n_words=one["n"], words=_some(some, MOST_MARKS), values=some)
    return seen


def look_at(cells: pl.Series, decimal: str) -> SeenCells:
    """Summarise the present cells of a column, given as strings."""
    counted = cells.alias("cells").drop_nulls().value_counts(name="n")
    if not counted.height:
        return SeenCells()
    distinct, n = counted["cells"], counted["n"]
    plain = is_plain_number(distinct, decimal)
    tidy, is_number = distinct, plain
    if not plain.all():
        tidy = _tidy(distinct)
        is_number = plain | _with_sign_before(tidy).str.contains(_pattern(decimal))
    numbers, words = tidy.filter(is_number), distinct.filter(~is_number)
    n_numbers = int(n.filter(is_number).sum())
    seen = SeenCells(
        n_numbers,
        int(n.sum()) - n_numbers,
        _some(frozenset(words.head(MOST_MARKS + 1)), MOST_MARKS),
        int(n.filter(plain).sum()),
        values=_some(frozenset(distinct.head(_FEW_VALUES + 1)), _FEW_VALUES),
        n_whole=int(n.filter(distinct.str.contains("^-?[0-9]+$")).sum()),
        has_long=bool(distinct.str.contains("^-?[0-9]{16,}$").any()),
    )
    if len(words):
        is_bound = ~is_number & tidy.str.contains(_bound(decimal))
        some = distinct.filter(is_bound)
        seen += SeenCells(n_bounds=int(n.filter(is_bound).sum()), bound=str(some[0]) if len(some) else "")
    if not n_numbers:
        return seen
    signs = frozenset(["without plus signs"] if numbers.str.contains(r"^[^0-9]*\+").any() else ())
    seen += SeenCells(
        code=_code(numbers, n.filter(is_number), decimal),
        twice=_twice(numbers, decimal),
        odd=_odd(numbers),
        repairs=signs,
        n_integers=int(n.filter(is_number).filter(_are_integers(numbers, decimal)).sum()),
    )
    written = distinct.filter(is_number & ~plain)
    if not len(written):
        return seen
    units, bare = _units(tidy.filter(is_number & ~plain), numbers, decimal)
    return seen + SeenCells(units=units, bare=bare, repairs=frozenset(_repairs(written, decimal)))


def _are_integers(numbers: pl.Series, decimal: str) -> pl.Series:
    """Return which numbers are integers that 64 bits hold as they are written."""
    values = to_numbers(numbers, decimal)
    exact = numbers.cast(pl.Int64, strict=False).is_not_null()
    return exact | ((values % 1.0 == 0.0) & (values.abs() <= _LARGEST_WHOLE)).fill_null(value=False)


def _units(written: pl.Series, numbers: pl.Series, decimal: str) -> tuple[frozenset[str], str]:
    """Return the units of written numbers; and one of all numbers that is not 0 and has no unit, if others have one."""
    units = frozenset(_unit_of(written, decimal).unique()) - {""}
    if not units:
        return units, ""
    bare = numbers.filter((_unit_of(numbers, decimal) == "") & (to_numbers(numbers, decimal) != 0))
    return units, str(bare[0]) if len(bare) else ""


def _unit_of(numbers: pl.Series, decimal: str) -> pl.Series:
    signed = _with_sign_before(numbers)
    before, behind = (signed.str.extract(_pattern(decimal, name)).fill_null("") for name in ("before", "behind"))
    units: pl.Series = (before + behind).str.strip_chars()
    return units


def _repairs(written: pl.Series, decimal: str) -> Iterable[str]:
    """Yield what reading cells as numbers changes apart from their units, in words."""
    tidy = _tidy(written)
    if tidy.str.contains(rf"[0-9]{_GROUP[decimal]}[0-9]").any():
        yield "without thousands separators"
    if (written.str.contains(rf"[{_BLANKS}{_INVISIBLE}]") | (written.str.strip_chars() != written)).any():
        yield "without blanks"
    if written.str.contains(f"[{_MINUS}]").any():
        yield "with typographic minus signs as -"
    if (_with_sign_before(tidy) != tidy).any():
        yield "in parentheses or with a minus behind as negative"


def _code(numbers: pl.Series, n: pl.Series, decimal: str) -> str:
    """Return a cell that shows that written numbers, in n cells each, are codes, not quantities; empty if none does.

    Codes have leading zeros (00123); exponents without sign in more than a few cells, where nothing has a fraction
    (1E2); plus signs on all of them (+49); a minus behind digits that also occur without it (the grades 2 and 2-); or
    so many digits that 64 bits do not hold them, or confuse two of them.
    """
    if not numbers.str.contains(_LIKE_A_CODE).any():
        return ""
    zero = numbers.filter(numbers.str.contains(LEADING_ZERO))
    if len(zero):
        return str(zero[0])
    has_exponent = numbers.str.contains(_EXPONENT)
    exponent, share = numbers.filter(has_exponent), int(n.filter(has_exponent).sum()) / int(n.sum())
    if share > 1.0 - NUMBERS_SHARE and not numbers.str.contains(rf"[{decimal}]|[eE][+-]").any():
        return str(exponent[0])
    if numbers.str.contains(r"^\+[0-9]+$|^0$").all() and numbers.str.starts_with("+").any():
        return str(numbers.filter(numbers.str.starts_with("+"))[0])
    behind = numbers.filter(numbers.str.contains(r"^[0-9]+ *-$"))
    both = behind.filter(behind.str.strip_chars("- ").is_in(numbers.unique().implode())) if len(behind) else behind
    if len(both):
        return str(both[0])
    long = numbers.filter(numbers.str.contains(r"^-?[0-9]{16,}$")).unique()
    if not len(long):
        return ""
    fits = not long.cast(pl.Int64, strict=False).null_count() and to_numbers(long, decimal).n_unique() == len(long)
    return "" if fits else str(long[0])


def _twice(numbers: pl.Series, decimal: str) -> tuple[str, ...]:
    """Return two spellings of one number, such as 1.1 and 1.10; none if there are no such two.

    Those of a number with a fraction come first: they may be versions, as 1.0 in a few cells beside 1 is not.
    """
    values = to_numbers(numbers, decimal)
    if values.n_unique() == numbers.n_unique():
        return ()
    is_zero = values == 0.0  # programs write -0.0 for what they round
    numbers, values = numbers.filter(~is_zero), values.filter(~is_zero)
    if values.n_unique() == numbers.n_unique():
        return ()
    several = values.filter(values.is_duplicated())
    fractions = several.filter(several % 1.0 != 0.0)
    same = numbers.filter(values == (fractions if len(fractions) else several).min()).unique().sort()
    return tuple(same.head(2).to_list())


def _odd(numbers: pl.Series) -> str:
    """Return a number whose spelling the number does not tell, such as 1.50; empty if all are written as usual."""
    if numbers.str.contains("^(-?[1-9][0-9]*|0)$").all():
        return ""
    odd = numbers.filter(numbers != numbers.cast(pl.Float64, strict=False).cast(pl.String).fill_null(""))
    return str(odd[0]) if len(odd) else ""


def type_of_cells(
    seen: SeenCells,
    name: str,
    decimal: str,
    role: Role = "feature",
    known: Sequence[str] = (),
    where: Callable[[Collection[str]], str] = lambda cells: "",
) -> WrittenNumber | WrittenText | None:
    """Return how a column of a text file is read; None for numbers as programs write them, or words.

    Parameters
    ----------
    seen : SeenCells
    name : str
        The column, for remarks.
    decimal : str
    role : "feature", "label", "category" or "number"
        For a number, marks of missing cells have any share. Categories and labels have none, and keep their spelling,
        unless the labels are many different numbers, nearly without words, or nearly all cells are whole numbers.
    known : sequence of str
        The marks of the column in a model that reads it as numbers.
    where : callable, optional
        Returns where the first of some cells is, for remarks.

    Raises
    ------
    ValueError
        The column is to be read as numbers, and holds others.
    """
    words = seen.words - {*known}
    mixed = _mixed_units(seen)
    if role == "number":
        if not seen.n_numbers and not all(map(is_mark, words)):
            return None  # the later error knows what asks for numbers
        if mixed or not (len(words) <= MOST_MARKS and all(map(is_mark, words))):
            listed = _listed(word for word in words if not is_mark(word))
            raise ValueError(
                f"column {name!r} is read as numbers, and holds {mixed or listed}; correct such cells, or leave them "
                "empty"
            )
        marks = tuple(sorted(words))
    elif role == "category":
        is_otherwise = words or seen.code or seen.repairs or (not seen.are_whole and (seen.odd or seen.twice))
        if is_otherwise:
            return WrittenText(True)
        marks = ()
    else:
        may_be_numbers = role == "feature" or _is_a_quantity(seen)
        marks = marks_among(words, seen.n_words, seen.n_numbers) if words and may_be_numbers else ()
        if not seen.n_numbers or (words and not marks):
            remark = _why_text(seen, name, where) if may_be_numbers else ""
            return WrittenText(False, remark) if remark else None
        if seen.code or mixed:
            remark = f"column {name!r} holds {mixed}, and stays text; write all cells in one unit" if mixed else ""
            return WrittenText(not mixed, remark)
        if role == "label" and _keeps_spelling(seen, decimal):
            return WrittenText(True)
    repairs = sorted({*seen.repairs, *(f"without {unit!r}" for unit in seen.units)})
    if seen.twice:
        repairs.append(f"{' and '.join(map(repr, seen.twice))} as one number")
    every = tuple(sorted({*marks, *known}))
    is_plain = seen.n_plain == seen.n_numbers
    is_whole = seen.are_whole and not seen.units
    if is_plain and not (seen.n_words or repairs or every or (is_whole and seen.n_whole < seen.n_numbers)):
        return None
    return WrittenNumber(decimal, every, tuple(repairs), tuple(seen.units), is_plain, is_whole)


def _listed(cells: Iterable[str]) -> str:
    named = sorted(cells)
    return ", ".join(map(repr, named[:_FEW_WORDS])) + (", …" if len(named) > _FEW_WORDS else "")


def _is_a_quantity(seen: SeenCells) -> bool:
    """Return whether labels are many different numbers, and hardly anything else."""
    n_numbers = seen.n_numbers + seen.n_bounds  # <0.5 is hardly a class beside numbers
    return len(seen.values) > _FEW_VALUES and n_numbers >= _QUANTITY_SHARE * (seen.n_numbers + seen.n_words)


def _keeps_spelling(seen: SeenCells, decimal: str) -> bool:
    """Return whether labels are classes whose names a number would not keep."""
    fractions = any(value % 1.0 for value in to_numbers(pl.Series(seen.twice, dtype=pl.String), decimal))
    # 1.0 beside 1 is a version where others have fractions, or where it is all that distinguishes the labels.
    n_values = to_numbers(pl.Series([*seen.values], dtype=pl.String), decimal).n_unique()
    are_integers = seen.n_integers == seen.n_numbers and n_values > 1
    may_be_versions = seen.n_whole < NUMBERS_SHARE * seen.n_numbers and not are_integers
    has_versions = fractions or (bool(seen.twice) and may_be_versions)
    return len(seen.values) <= _FEW_VALUES and bool(seen.units or seen.repairs or has_versions)


def _mixed_units(seen: SeenCells) -> str:
    """Return which units numbers have that cannot be read as one; empty if they can."""
    if len(seen.units) > 1:
        return f"numbers in several units ({' and '.join(map(repr, sorted(seen.units)[:2]))})"
    if seen.bare and seen.units & {*_SHARES}:
        return f"numbers with and without {next(iter(seen.units))!r} (such as {seen.bare!r})"
    return ""


def _why_text(seen: SeenCells, name: str, where: Callable[[Collection[str]], str]) -> str:
    """Return why a column of words is not read as numbers, if nearly all its cells are some; else nothing."""
    n = seen.n_numbers + seen.n_words
    has_few_values = len(seen.values) <= _FEW_VALUES
    if seen.n_bounds and not has_few_values and seen.n_numbers + seen.n_bounds >= NUMBERS_SHARE * n:
        return (
            f"column {name!r} holds bounds, or rough or abbreviated numbers, such as {seen.bound!r} ({seen.n_bounds:,} "
            f"of {n:,} cells{where([seen.bound])}), and stays text; write plain numbers"
        )
    are_marks = all(map(is_mark, seen.words))
    least = (NUMBERS_SHARE if has_few_values and not are_marks else DATES_SHARE) * n
    if seen.n_numbers < max(least, _FEWEST_NUMBERS) or _mixed_units(seen):
        return ""
    fix = "" if are_marks else "correct such cells, or "
    stated = ",".join(sorted(seen.words))
    option = f" (--missing-values {shlex.quote(stated)})" if len(seen.words) <= _FEW_WORDS else ""
    cells = f"{seen.n_words:,} of {n:,} cells{where(seen.words)}"
    return (
        f"column {name!r} holds numbers except {_listed(seen.words)} ({cells}), and stays text; "
        f"{fix}state them as missing values if they are none{option}"
    )


def tidied(cell: str) -> str:
    """Return a cell with usual blanks and signs."""
    return cell.translate(_USUAL).strip()


def _tidy(cells: Any) -> Any:
    """Return cells with usual blanks and signs, a series or an expression of polars."""
    return (
        cells.str.replace_all(f"[{_INVISIBLE}]", "")
        .str.replace_all(f"[{_BLANKS}]", " ")
        .str.replace_all(f"[{_MINUS}]", "-")
        .str.replace_all("\uff0b", "+", literal=True)
        .str.strip_chars()
    )


def _with_sign_before(tidy: Any) -> Any:
    """Return the numbers of accounts that are negative, (1,200) and 1,200-, with a minus before; others as they are."""
    return tidy.str.replace(_IN_PARENTHESES, "-${1}${2}${3}").str.replace(_MINUS_BEHIND, "-${1}${2}")


def _pattern(decimal: str, part: str = "", units: Sequence[str] | None = None) -> str:
    """Return the pattern of a tidy number, with a group around a part: the unit before or behind, or the digits.

    Units are all that are known, or `units`.
    """
    group = _GROUP[decimal]
    of_lakhs = "|[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}" if decimal == "." else ""  # 12,34,567
    whole = rf"(?:[0-9]{{1,3}}(?:{group}[0-9]{{3}})+{of_lakhs}|[0-9]+)"
    digits = rf"(?:{whole}(?:[{decimal}][0-9]*)?|[{decimal}][0-9]+)(?:[eE][+-]?[0-9]+)?"
    opened = {name: "(" if name == part else "(?:" for name in ("before", "digits", "behind")}
    # The sign stands before or behind the currency.
    stated = "|".join(map(re.escape, units or ()))
    one, other = (CURRENCY, UNIT) if units is None else (stated, stated)
    may_lack = "" if stated in _SHARES else "?"
    before, behind = f"{opened['before']}(?:{one})?)", f"{opened['behind']}(?: *(?:{other})){may_lack})"
    return rf"^(?:[+-] *)?{before} *(?:[+-] *)?{opened['digits']}{digits}){behind}$"


def _bound(decimal: str) -> str:
    """Return the pattern of tidy cells that tell a number but are none: <0.5, ~3, 1.2M, 5 Mio."""
    number = rf"[+-]?[0-9][0-9{decimal}]*"
    return rf"^(?:[~≈<>≤≥]=? *{number}.{{0,6}}|(?:{CURRENCY})? *{number} *(?:k|K|M|Mio\.?|Mrd\.?|mn|bn|B|T))$"


def is_plain_number(cells: Any, decimal: str) -> Any:
    """Return whether each string is a number without a unit and separators of thousands, finite or not."""
    return with_point(cells, decimal).cast(pl.Float64, strict=False).is_not_nan().fill_null(value=False)


def with_point(cells: Any, decimal: str) -> Any:
    """Return cells with a point as decimal mark; where it is a comma, a point between thousands makes no number."""
    return (
        cells if decimal == "." else cells.str.replace_all(".", "..", literal=True).str.replace(",", ".", literal=True)
    )


def to_numbers(cells: pl.Series, decimal: str, units: Sequence[str] | None = None) -> pl.Series:
    """Return strings that are numbers as floats; others are missing, and so are those with other units than `units`."""
    values: pl.Series = with_point(cells, decimal).cast(pl.Float64, strict=False)
    if units and units[0] in _SHARES:
        values = pl.select(pl.when(values == 0.0).then(values)).to_series()  # 0.12 is not 12 %
    is_open = values.is_null() & cells.is_not_null()
    if not is_open.any():
        return values  # as nearly always: no pattern is needed
    written = cells.filter(is_open)
    # One quick look saves several slow ones.
    is_tidy = not written.str.contains(f"[{_INVISIBLE}{_BLANKS}{_MINUS}\uff0b]").any()
    signed = written.str.strip_chars() if is_tidy else _tidy(written)
    if signed.str.contains(r"[()]|[0-9] *-").any():
        signed = _with_sign_before(signed)
    digits = signed.str.extract(_pattern(decimal, "digits", units))
    if digits.str.contains(f"{_GROUP[decimal]}|,").any():
        digits = digits.str.replace_all(_GROUP[decimal], "").str.replace(decimal, ".", literal=True)
    signs = 1.0 - 2.0 * signed.str.contains("^[^0-9]*-").cast(pl.Float64)
    found: pl.Series = values.scatter(is_open.arg_true(), digits.cast(pl.Float64, strict=False) * signs)
    return found


def as_number(cells: pl.Expr, dtype: WrittenNumber) -> pl.Expr:
    """Return written numbers, and marks as missing; another string is an error of polars that names it."""
    if dtype.is_whole:
        present, number = without_marks(cells, dtype.marks), as_number(cells, replace(dtype, is_whole=False))
        fraction = pl.when(number % 1.0 != 0.0).then(present) + " "
        whole = number.fill_null(fraction.cast(pl.Float64)).cast(pl.Int64, strict=False)
        return pl.coalesce(present.cast(pl.Int64, strict=False), whole)
    plain = with_point(cells, dtype.decimal)
    if dtype.is_plain or not dtype.repairs:
        return without_marks(plain, dtype.marks, cells).cast(pl.Float64)

    def converted(part: pl.Series) -> pl.Series:
        return to_numbers(part.alias("cells"), dtype.decimal, dtype.units)  # polars reads some names as patterns

    present = without_marks(cells, dtype.marks)
    number = present.map_batches(converted, pl.Float64(), is_elementwise=True)
    # Another string is cast as none, for the error: beside 12 %, 0.12 is one.
    return number.fill_null((pl.when(number.is_null()).then(present) + " ").cast(pl.Float64))


def without_marks(cells: pl.Expr, marks: Sequence[str], written: pl.Expr | None = None) -> pl.Expr:
    """Return cells as missing where they are marks, or where those of `written` are."""
    return pl.when(~(cells if written is None else written).is_in(list(marks))).then(cells) if marks else cells


def without_marker(dtype: Any) -> Any:
    """Return the type of the cells that are read: of written numbers, or strings for what stays text."""
    if isinstance(dtype, WrittenText):
        return pl.String()
    if isinstance(dtype, WrittenNumber):
        return pl.Int64() if dtype.is_whole else pl.Float64()
    return dtype


def beside(name: str, one: pl.DataType, other: pl.DataType) -> pl.DataType | None:
    """Return the type of a column that has two types in two text files, one of them as written; None if none is.

    Codes in one file are codes in all: another file may have no leading zero. Numbers in two units stay text.
    """
    texts = [dtype for dtype in (one, other) if isinstance(dtype, WrittenText)]
    numbers = [dtype for dtype in (one, other) if isinstance(dtype, WrittenNumber)]
    codes = [dtype for dtype in texts if dtype.is_code]
    if codes or len(texts) == 2:
        return (codes or texts)[0]
    units = {unit for dtype in numbers for unit in dtype.units}
    has_bare = not all(isinstance(dtype, WrittenNumber) and dtype.units for dtype in (one, other))
    if len(units) > 1 or (units & {*_SHARES} and has_bare and not texts):
        listed = " and ".join(map(repr, sorted(units))) + (" and without it" if len(units) == 1 else "")
        where = f"column {name!r} holds numbers in {listed} in several files"
        return WrittenText(False, f"{where}, and stays text; write all cells in one unit")
    if len(numbers) == 2:
        return numbers[0].joined(numbers[1])
    rest = next(dtype for dtype in (one, other) if dtype not in (texts or numbers))
    if texts:
        return texts[0] if rest == pl.String() or numbers else None
    if not numbers:
        return None
    are_whole = numbers[0].is_whole and rest.is_integer()
    return replace(numbers[0], is_whole=are_whole) if rest.is_numeric() else pl.String()


def repairs_of(written: Mapping[str, WrittenNumber]) -> dict[str, list[str]]:
    """Return the columns of each repair, or of each set of repairs, in words."""
    found: dict[str, list[str]] = {}
    for name, dtype in written.items():
        if dtype.repairs:
            found.setdefault(", ".join(dtype.repairs), []).append(name)
    return found
