"""The schema of a table: columns with names, kinds and categories."""

from __future__ import annotations

import itertools
import operator
import sys
from collections.abc import Callable, Collection, Hashable, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any, Literal

import numpy as np

from posteriori.support.checks import require
from posteriori.support.formatting import listed, number
from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables.bags import Bags
from posteriori.tables.times import CATEGORIES, DatePart
from posteriori.tables.tokenizer import Tokenizer


def extended_words(
    name: str, mine: Mapping[str, int], width: int, theirs: tuple[str, ...], their_width: int
) -> tuple[str, ...]:
    """Return the words of a column and of further rows; new words come last, so that no word moves.

    Parameters
    ----------
    name : str
        Of the column.
    mine : mapping of str to int
        The position of each word of the column; empty if its words have no names.
    width, their_width : int
        The numbers of words.
    theirs : tuple of str
        The words of the further rows; empty if they have no names.

    Raises
    ------
    ValueError
        Words have no names, and their numbers differ.
    """
    if not (mine and theirs) and (bool(mine) != bool(theirs) or width != their_width):
        raise ValueError(
            f"column {name!r} had {width:,} words in training and has {their_width:,} now; give the same columns, "
            "or name the words from the first call on (posteriori.tables.Blocks)"
        )
    return (*mine, *(word for word in theirs if word not in mine))


Kind = Literal["continuous", "categorical", "counts", "ignored"]
CellKind = Literal["continuous", "categorical", "counts", "mixed"]  # the cells that a density reads
Cell = str | bool | int | float

MAX_CATEGORIES = (1 << 22) - 1  # their names and their counts per class must fit in memory
_DENSE_RANGE = 1 << 20  # integers within a range of this width are encoded by a direct lookup
_EXACT = 1 << 53  # beyond it floats skip integers


@dataclass(frozen=True)
class Column:
    """One column: its name, its kind and, where categorical, its categories in code order.

    Category k has code k + 1; code 0 is a missing cell.
    """

    name: str
    kind: Kind
    categories: tuple[Cell, ...] = ()
    # whether categories and their order come from the data type or the user, and not from the rows
    declared: bool = False
    dtype: str = ""  # the data type of the column as it was read, which drawn rows are given again
    # The cut points of a binned continuous column, strictly increasing. Bin b holds cuts[b − 1] ≤ x < cuts[b] and has
    # code b + 1, as a category has, so that densities of codes also read bins.
    cuts: tuple[float, ...] | None = None
    # Whether no row had a value in this continuous column. Then its kind is unknown, whatever its data type: prediction
    # takes all its cells as missing, and the first later values in training decide (`has_no_kind`).
    valueless: bool = False
    # Why the column is ignored, as the end of a sentence ("it …"); empty if it is not. No density reads the cells of an
    # ignored column, and it influences no prediction.
    reason: str = ""
    # which part it is of a column of dates, times of day or durations of the table; None for a column of the table
    part: DatePart | None = None
    # V, the number of words of a column of counts, each cell of which is a bag of words (`Bags`); 0 for other kinds
    width: int = 0
    words: tuple[str, ...] = ()  # the names of its words; empty if they have none, and are known by their positions
    # how the cells of a column of text are cut into these words; None for sparse blocks of counts and other kinds
    text: Tokenizer | None = None
    marks: tuple[str, ...] = ()  # cells of text files that are missing in this column, besides the usual ones
    order: tuple[int, ...] = ()  # the positions of ordered categories, the lowest first; empty if they have no order

    @property
    def shown_kind(self) -> str:
        """The kind in tables and messages: "text" for counts of the words of a column of text."""
        return self.kind if self.text is None else "text"

    def __hash__(self) -> int:
        # Not of all categories: a schema is a key of many look-ups, and may hold a hundred thousand of them.
        return hash((self.name, self.kind, self.cuts, self.part, len(self.categories), self.width))

    @property
    def source(self) -> str:
        """The name of the column of the table that it is read from."""
        return self.name if self.part is None else self.part.of

    @property
    def is_ignored(self) -> bool:
        """Whether the model does not read the column."""
        return self.kind == "ignored"

    @property
    def has_no_kind(self) -> bool:
        """Whether no value was seen yet, so that the column may hold numbers or categories."""
        return self.valueless or (self.kind == "categorical" and not self.categories)

    def check(self) -> None:
        """Raise ValueError unless categories are distinct and sorted, cut points ascend, and both suit the kind."""
        name, cells = self.name, self.categories
        require(len(cells) <= MAX_CATEGORIES, f"column {name!r} has {len(cells):,} categories")
        require(not cells or self.kind == "categorical", f"column {name!r} of numbers has categories")
        require(self.cuts is None or self.kind == "continuous", f"column {name!r} of categories has cut points")
        require(not self.valueless or self.kind == "continuous", f"column {name!r} has categories and yet no value")
        require(not self.declared or self.kind == "categorical", f"column {name!r} without categories declares them")
        require(bool(self.reason) == self.is_ignored, f"column {name!r} is ignored without a reason, or has one")
        require((self.width > 0) == (self.kind == "counts"), f"column {name!r} has a wrong number of words")
        require(len(self.words) in (0, self.width), f"column {name!r} has not one name for each word")
        require(len(set(self.words)) == len(self.words), f"a word of column {name!r} occurs twice")
        if self.text is not None:
            hashes = self.text.n_features
            suits = len(self.words) > 0 if hashes is None else not self.words and hashes == self.width
            require(suits, f"column {name!r} of text has no words, or has words that are hashed")
        if self.part is not None:
            self._check_part(self.part)
        if cells:
            require(len(set(cells)) == len(cells), f"a category of column {name!r} occurs twice")
            require(all(cell == cell for cell in cells), f"a category of column {name!r} is NaN")
            ordered = self.declared or list(cells) == sort_cells(cells)
            require(ordered, f"the categories of column {name!r} are not sorted")
        levels = sorted(self.order) in ([], [*range(len(cells))])
        require(levels, f"the order of the categories of column {name!r} is not one of all of them")
        if self.cuts:
            bounds = (-np.inf, *self.cuts, np.inf)
            ascending = all(low < high for low, high in itertools.pairwise(bounds))
            require(ascending and len(bounds) < MAX_CATEGORIES, f"the cut points of column {name!r} do not ascend")

    def _check_part(self, part: DatePart) -> None:
        kind = "ignored" if not part.name else "continuous" if part.is_number else "categorical"
        require(self.kind == kind, f"column {self.name!r} is {self.kind}, and the part of a date is not")
        require(
            self.name == (f"{part.of}.{part.name}" if part.name else part.of), f"{self.name!r} is no part of a date"
        )
        known = CATEGORIES.get(part.name)
        require(known is None or self.categories == known, f"the categories of column {self.name!r} are no {part.name}")

    def ordered_as(self, levels: Sequence[Cell]) -> Column:
        """Return the column with an order: levels from the lowest to the highest; those that are no category are left.

        Raises ValueError if the column has no categories, a category is no level, or a level stands twice.
        """
        if self.kind != "categorical":
            raise ValueError(f"order names {self.name!r}, which holds no categories; leave it out")
        if levels is None or isinstance(levels, str | Set):
            raise ValueError(f"the order of {self.name!r} is {levels!r}; give a list of its levels, the lowest first")
        absent = next((cell for cell in self.categories if cell not in levels), None)
        if absent is not None:
            raise ValueError(f"order lacks {absent!r}, which {self.name!r} holds; list all levels, the lowest first")
        twice = next((level for level in levels if list(levels).count(level) > 1), None)
        if twice is not None:
            raise ValueError(f"order names {twice!r} twice; list each level of {self.name!r} once, the lowest first")
        return replace(self, order=tuple(self.lookup[level] - 1 for level in levels if level in self.lookup))

    @property
    def is_binned(self) -> bool:
        """Whether it is a continuous column with cut points."""
        return self.cuts is not None

    @property
    def cardinality(self) -> int:
        """K, the number of categories or bins."""
        return len(self.categories) if self.cuts is None else len(self.cuts) + 1

    @property
    def code_type(self) -> type[np.unsignedinteger[Any]]:
        """The integers by which its cells are encoded one column at a time: 16 bits wide, or 32 if these are too few.

        A tile takes them into the type of all its columns (`Schema.code_dtype`).
        """
        return smallest_code_type(max(self.cardinality, 256))

    @cached_property
    def labels(self) -> tuple[Cell, ...]:
        """The meaning of each code from 1 on: a category, or a bin written as an interval."""
        if self.cuts is None:
            return self.categories
        cuts = _shortest(self.cuts)
        if not cuts:
            return ("any",)
        inner = (f"[{low}, {high})" for low, high in itertools.pairwise(cuts))
        return (f"< {cuts[0]}", *inner, f"≥ {cuts[-1]}")

    @cached_property
    def cut_texts(self) -> list[str]:
        """Each cut point as a number with six digits, or as many as keep them distinct."""
        return _distinct(self.cuts or (), number, 6)

    def places_in(self, past: Column) -> list[int]:
        """Return the position of each category, bin or word in a former state of this column, −1 for a new one."""
        if self.kind == "counts":
            return [past.word_places.get(word, -1) for word in self.words] or list(range(self.width))
        if self.cuts is not None:
            return list(range(self.cardinality)) if past.cuts == self.cuts else [-1] * self.cardinality
        return [past.lookup.get(cell, 0) - 1 for cell in self.categories]

    @cached_property
    def word_places(self) -> dict[str, int]:
        """The position of each word that has a name."""
        return {word: position for position, word in enumerate(self.words)}

    def count_words(self, texts: Sequence[str | None]) -> Bags:
        """Return the counts of the words of the vocabulary in some texts; a missing text has none."""
        return Bags.of_matrix(self._counter.transform([text or "" for text in texts]), slice(0, len(texts)))

    @cached_property
    def _counter(self) -> Any:
        assert self.text is not None  # the caller has a column of text
        return self.text.counter(self.word_places)

    def word(self, position: int) -> str:
        """Return the name of a word of a column of counts: of a hash, which cannot be read, its number."""
        if self.words:
            return self.words[position]
        return f"x{position}" if self.text is None else f"hash {position}"

    @cached_property
    def lookup(self) -> dict[Hashable, int]:
        """The code of each category."""
        return {category: code for code, category in enumerate(self.categories, start=1)}

    @cached_property
    def kinds(self) -> frozenset[str]:
        """The kinds of the categories: "strings", "numbers" or "booleans"."""
        return frozenset(map(kind_of, self.categories))

    @property
    def holds_strings(self) -> bool:
        """Whether any category is a string."""
        return "strings" in self.kinds

    @cached_property
    def strings(self) -> pl.Enum:
        """The categories that are strings, as the type by which polars encodes a column."""
        return pl.Enum([category for category in self.categories if isinstance(category, str)])

    @cached_property
    def dense_lookup(self) -> tuple[int, Array] | None:
        """The smallest category, and the code of each integer from it on; None unless all are close integers."""
        numbers = [category for category in self.categories if not isinstance(category, str)]
        if len(numbers) < len(self.categories) or not all(map(_is_whole, numbers)):
            return None
        if not numbers:
            return 0, np.zeros(1, self.code_type)
        low, high = int(min(numbers)), int(max(numbers))
        if high - low >= _DENSE_RANGE or low < -_EXACT or high > _EXACT:
            return None
        codes = np.zeros(high - low + 1, self.code_type)
        codes[np.array([int(x) for x in numbers]) - low] = np.arange(1, len(numbers) + 1)
        return low, codes

    def numbers_as(self, dtype: np.dtype[Any]) -> tuple[Array, Array]:
        """Return the categories that a number of this type can equal, sorted, and the code of each."""
        known = self._numbers_as.get(dtype)
        if known is None:
            numbers = [cell for cell in self.categories if not isinstance(cell, str)]
            if dtype.kind in "iu":
                span = np.iinfo(dtype)
                numbers = [int(cell) for cell in numbers if _is_whole(cell) and span.min <= cell <= span.max]
            else:
                numbers = [float(cell) for cell in numbers if _is_float(cell)]
            numbers.sort()
            known = np.array(numbers, dtype), np.array([self.lookup[cell] for cell in numbers], self.code_type)
            self._numbers_as[dtype] = known
        return known

    @cached_property
    def _numbers_as(self) -> dict[np.dtype[Any], tuple[Array, Array]]:
        return {}

    def require_kinds(self, kinds: Iterable[str]) -> None:
        """Raise ValueError if unseen cells are of a kind that no category has."""
        new = sorted(set(kinds) - self.kinds)
        if new and self.categories:
            expected = " and ".join(sorted(self.kinds))
            raise ValueError(f"column {self.name!r} held {expected} in training but holds {new[0]} now; convert it")

    def extended(self, other: Column, mixed: bool = False) -> Column:
        """Return the column that covers the rows of both, with sorted categories: the order of the two does not matter.

        A column without a value takes the kind of the other. `mixed` allows categories of several kinds. An ignored
        column stays ignored.
        """
        if self.is_ignored or other.has_no_kind:
            return self
        if self.has_no_kind:
            same = self.kind == other.kind == "continuous"
            cuts = self.cuts if other.cuts is None else other.cuts
            return replace(self, dtype=other.dtype or self.dtype, cuts=cuts, valueless=False) if same else other
        if self.kind != other.kind:
            raise ValueError(
                f"column {self.name!r} was {self.kind} in training but is {other.kind} now; "
                "convert it, or name it in categorical_features from the first call on"
            )
        if self.text != other.text:
            raise ValueError(
                f"column {self.name!r} was {self.shown_kind} in training but is {other.shown_kind} now, or cut into "
                "words by other settings; give it as it was"
            )
        if self.kind == "counts":
            words = extended_words(self.name, self.word_places, self.width, other.words, other.width)
            return self if len(words) == len(self.words) else replace(self, words=words, width=len(words))
        new = [category for category in other.categories if category not in self.lookup]
        if not new:
            return self
        if not mixed:
            self.require_kinds(map(kind_of, new))
        dtype = self.dtype if self.categories else other.dtype
        if self.order:
            plain = replace(self, order=()).extended(replace(other, order=()), mixed)
            return plain.ordered_as(self._levels_with(other, new))
        if self.declared:
            return categorical_column(self.name, [*self.categories, *sort_cells(new)], dtype, declared=True)
        return replace(categorical_column(self.name, [*self.categories, *new], dtype), part=self.part)

    def _levels_with(self, other: Column, new: Sequence[Cell]) -> list[Cell]:
        """Return the levels of both columns from the lowest to the highest; ValueError if both orders leave it open."""
        sorter: TopologicalSorter[Cell] = TopologicalSorter(dict.fromkeys(new, ()))
        for column in (self, other):
            for low, high in itertools.pairwise(column.categories[k] for k in column.order):
                sorter.add(high, low)
        try:
            sorter.prepare()
        except CycleError as error:
            raise ValueError(
                f"column {self.name!r} has its levels in another order now, {error.args[1]}; give them as they were"
            ) from None
        levels: list[Cell] = []
        while sorter.is_active():
            ready = sorter.get_ready()
            if len(ready) > 1:
                known = listed([repr(self.categories[k]) for k in self.order], 8)
                raise ValueError(
                    f"column {self.name!r} has the levels {known} in order, and {new[0]!r} has no place among them; "
                    "name all levels, columns=po.Columns(order={…}), before the first call"
                )
            levels += ready
            sorter.done(*ready)
        return levels


def smallest_code_type(largest: int) -> type[np.unsignedinteger[Any]]:
    """Return the smaller of the two types of codes that kernels read that holds 0 (missing) to `largest`."""
    return np.uint8 if largest <= np.iinfo(np.uint8).max else np.uint32


def kind_of(cell: Cell) -> str:
    """Return the kind of a cell: "strings", "numbers" or "booleans"."""
    if isinstance(cell, str):
        return "strings"
    return "booleans" if isinstance(cell, bool) else "numbers"


def _shortest(cuts: tuple[float, ...]) -> list[str]:
    return _distinct(cuts, lambda cut, digits: f"{cut:.{digits}g}", 4)


def _distinct(cuts: tuple[float, ...], write: Callable[[float, int], str], fewest: int) -> list[str]:
    """Write cut points with as few digits as keep them distinct."""
    for digits in range(fewest, 18):
        written = [write(cut, digits) for cut in cuts]
        if len(set(written)) == len(cuts):
            break
    return written


def _is_whole(number: bool | int | float) -> bool:
    return isinstance(number, int) or number.is_integer()


def _is_float(number: bool | int | float) -> bool:
    return isinstance(number, float) or (abs(number) <= sys.float_info.max and float(number) == number)


def sort_cells(cells: Iterable[Cell]) -> list[Cell]:
    """Sort numbers by value, before strings by code point."""
    return sorted(cells, key=lambda cell: (isinstance(cell, str), cell))


def categorical_column(name: str, categories: Iterable[Cell], dtype: str, declared: bool = False) -> Column:
    """Build a categorical column; its categories are sorted unless they were declared in an order."""
    ordered = list(categories) if declared else sort_cells(categories)
    if len(ordered) > MAX_CATEGORIES:
        raise ValueError(
            f"column {name!r} has {len(ordered):,} categories, more than {MAX_CATEGORIES:,}; "
            "leave it out (is it an identifier?) or group its rare values"
        )
    return Column(name, "categorical", tuple(ordered), declared, dtype)


@dataclass(frozen=True)
class Schema:
    """The columns that a model was trained on."""

    columns: tuple[Column, ...]
    # the kind of table that they were read from: ``"numpy"``, ``"pandas"``, ``"polars"``, ``"pyarrow"``, or ``"scipy"``
    # for sparse blocks alone
    container: str = "numpy"
    named: bool = False  # whether the columns have names, by which prediction matches them
    dtype: str = ""  # the data type of the array, where the table was one
    target: str | None = None  # the name of the column of labels, where it was in the table

    def check(self) -> None:
        """Raise ValueError unless there are columns of distinct names, from a known kind of table."""
        known = ("numpy", "pandas", "polars", "pyarrow", "scipy")
        require(self.container in known, f"there is no kind of table {self.container!r}")
        require(len(self.columns) > 0, "the model has no columns")
        require(len(set(self.names)) == len(self.names), "two columns have one name")
        plain = {column.name for column in self.columns if column.part is None}
        require(not plain & {column.part.of for column in self.columns if column.part}, "two columns have one name")

    def __hash__(self) -> int:
        # Not of all fields: a schema is a key of many look-ups.
        return hash((self.names, self.cuts, self.container, self.target))

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The name of each column."""
        return tuple([column.name for column in self.columns])

    def rank_by_name(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Return the place of each of some columns in the order of their names; their own places without names."""
        if not self.named:
            return tuple(range(len(columns)))
        names = self.names
        place = {j: rank for rank, j in enumerate(sorted(columns, key=names.__getitem__))}
        return tuple([place[j] for j in columns])

    @cached_property
    def given(self) -> tuple[str, ...]:
        """The name of each column of the table; a column of dates may be several columns of the schema."""
        return tuple(dict.fromkeys([column.source for column in self.columns]))

    @cached_property
    def places(self) -> tuple[int, ...]:
        """The position in the table of each column, if the table has the columns `given`."""
        place_of = {name: place for place, name in enumerate(self.given)}
        return tuple(place_of[column.source] for column in self.columns)

    @cached_property
    def first_of_each(self) -> tuple[int, ...]:
        """The positions of the columns that are not ignored, with only the first part of each column of dates."""
        first = {column.source: j for j, column in reversed(list(enumerate(self.columns))) if not column.is_ignored}
        return tuple(sorted(first.values()))

    def spread(self, positions: Sequence[int]) -> tuple[int, ...]:
        """Return the position in a table of each column, from those of the columns `given`."""
        return tuple(positions[place] for place in self.places)

    @property
    def n_features(self) -> int:
        """The number of columns of the table; those of the matrix, if the rows were a sparse matrix alone."""
        return self.columns[0].width if self.container == "scipy" and not self.named else len(self.given)

    def of_kind(self, kind: Kind) -> tuple[int, ...]:
        """Return the positions of the columns of a kind."""
        return self._positions[kind]

    @cached_property
    def modelled(self) -> tuple[int, ...]:
        """The positions of the columns that are not ignored."""
        return tuple([j for j, column in enumerate(self.columns) if column.kind != "ignored"])

    @cached_property
    def dense(self) -> tuple[int, ...]:
        """The positions of the columns of numbers and of categories."""
        return tuple([j for j in self.modelled if self.columns[j].kind != "counts"])

    @cached_property
    def _positions(self) -> dict[Kind, tuple[int, ...]]:
        positions: dict[Kind, list[int]] = {"continuous": [], "categorical": [], "counts": [], "ignored": []}
        for j, column in enumerate(self.columns):
            positions[column.kind].append(j)
        return {kind: tuple(found) for kind, found in positions.items()}

    @cached_property
    def coded(self) -> tuple[int, ...]:
        """The positions of the columns that have codes: the categorical and the binned ones."""
        columns = enumerate(self.columns)
        return tuple([j for j, column in columns if column.kind == "categorical" or column.cuts is not None])

    def read_as(self, kind: Kind | CellKind) -> tuple[int, ...]:
        """Return the positions of the columns that a density of a kind can read."""
        if kind == "counts":
            return (*self.of_kind("continuous"), *self.of_kind("counts"))
        return self.coded if kind == "categorical" else self.of_kind("continuous")

    def uncut(self) -> Schema:
        """Return the schema of the same columns, none of them binned."""
        return self._uncut or self

    @cached_property
    def _uncut(self) -> Schema | None:
        """The schema without cut points, with its look-ups; None where there are none, to be no reference to itself."""
        if self.binning is None:
            return None
        columns = [column if column.cuts is None else replace(column, cuts=None) for column in self.columns]
        return replace(self, columns=tuple(columns))

    @cached_property
    def cuts(self) -> tuple[tuple[float, ...] | None, ...]:
        """The cut points of each continuous column; an empty tuple where no column is binned."""
        if self.binning is None:
            return ()
        return tuple([self.columns[j].cuts for j in self.of_kind("continuous")])

    @cached_property
    def binning(self) -> Binning | None:
        """The binned columns as arrays; None where no column is binned."""
        binned = [j for j in self.coded if self.columns[j].cuts is not None]
        if not binned:
            return None
        continuous = self.of_kind("continuous")
        starts, cuts = flat_cuts([self.columns[j].cuts or () for j in binned])
        return Binning(
            np.array([continuous.index(j) for j in binned]),
            starts,
            cuts,
            np.array([self.coded.index(j) for j in binned]),
        )

    @cached_property
    def coded_categories(self) -> Array:
        """The position of each categorical column among the coded columns."""
        return np.array([self.coded.index(j) for j in self.of_kind("categorical")], np.int64)

    @cached_property
    def coded_cardinalities(self) -> tuple[int, ...]:
        """The number of categories or bins of each coded column."""
        return self.cardinalities(self.coded)

    def with_cuts(self, cuts: Mapping[int, Sequence[float]]) -> Schema:
        """Return the schema in which some continuous columns, by their positions, are binned."""
        columns = list(self.columns)
        for j, points in cuts.items():
            columns[j] = replace(columns[j], cuts=tuple(map(float, points)))
        return replace(self, columns=tuple(columns))

    def cardinalities(self, columns: Sequence[int]) -> tuple[int, ...]:
        """Return the number of categories or bins of each of the columns."""
        return tuple([self.columns[j].cardinality for j in columns])

    @cached_property
    def code_dtype(self) -> type[np.unsignedinteger[Any]]:
        """The smallest unsigned integer that holds every code."""
        return smallest_code_type(max(self.coded_cardinalities, default=0))

    def with_values_in(self, seen: Sequence[bool]) -> Schema:
        """Return the schema that marks continuous columns without a value: those that `seen` (d,) does not mark."""
        columns = list(self.columns)
        for j in self.of_kind("continuous"):
            if columns[j].valueless == seen[j]:
                columns[j] = replace(columns[j], valueless=not seen[j])
        same = all(map(operator.is_, columns, self.columns))
        return self if same else replace(self, columns=tuple(columns))

    def extended(self, other: Schema, mixed: Collection[int] = ()) -> Schema:
        """Return the schema that covers the rows of both tables; mixed columns may hold cells of several kinds."""
        if len(other.columns) == len(self.columns) and other.columns == self.columns:
            return self
        pairs = enumerate(zip(self.columns, other.columns, strict=True))
        return replace(self, columns=tuple(mine.extended(theirs, j in mixed) for j, (mine, theirs) in pairs))


@dataclass(frozen=True)
class Binning:
    """The binned columns of a schema, as the kernel that digitises numbers reads them."""

    numbers: Array  # (B,): the position of each binned column among the continuous columns
    starts: Array  # (B + 1,): where the cut points of each begin in `cuts`
    cuts: Array  # the cut points of all of them
    codes: Array  # (B,): the position of each among the coded columns


def flat_cuts(cuts: Sequence[Sequence[float]]) -> tuple[Array, Array]:
    """Return the start of each column's cut points in one flat array, and this array."""
    starts = np.concatenate([[0], np.cumsum([len(points) for points in cuts])]).astype(np.int64)
    return starts, np.array([point for points in cuts for point in points], np.float64)
