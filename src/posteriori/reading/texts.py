"""Columns of text: recognise them, and find their vocabularies, in passes that hold some rows at a time."""

from __future__ import annotations

import heapq
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from posteriori.reading.column_kinds import FEWEST_CELLS, Look, Occurrences, fold_rows
from posteriori.tables.arrays import hash_strings
from posteriori.tables.bags import Bags
from posteriori.tables.blocks import in_vocabulary
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.partitioned import PartitionedTable
from posteriori.tables.polars import LazyTable, PolarsTable, StreamedTable
from posteriori.tables.schema import Column
from posteriori.tables.table import Table
from posteriori.tables.tokenizer import Tokenizer

Texts = Collection[int] | Mapping[int, Tokenizer]  # positions in a table: where text is recognised, or columns of text

SAMPLED = 1000  # cells by which text is recognised
_FEWEST_WORDS = 5.0  # in a cell, on average; names and addresses have fewer
_UNSEEN_SHARE = 0.5  # of new rows, whose cell as a whole is new; of categories it is less
_MANY_DISTINCT = 50  # cells, which are text even if new rows repeat them; categories of so many words are fewer
_REPEATED_SHARE = 0.5  # of the words of all cells, that occur in two cells or more; of identifiers it is less
MOST_KEPT = 1 << 30  # bytes of counts of words that are kept in memory
_MOST_COUNTED = 1 << 21  # words whose rows are counted at a time
_CATEGORICAL = ("Categorical", "Enum", "category", "ordered")  # data types that declare categories


def looks_like_text(cells: Sequence[str]) -> bool:
    """Return whether strings are text: long, of many distinct cells, whose words repeat.

    Text has 5 words per cell or more on average, separated by spaces. It has 50 distinct cells or more, or half of new
    cells or more are new as a whole (`Occurrences.unseen_share`), as those of categories are not: messages that are
    sent again are text. And half of the words or more occur in another distinct cell, too, as those of an identifier do
    not. Fewer than 20 cells are never text.
    """
    if len(cells) < FEWEST_CELLS:
        return False
    if sum(map(len, map(str.split, cells))) < _FEWEST_WORDS * len(cells):
        return False
    hashes = hash_strings(list(cells))
    distinct = set(cells)
    if hashes is None or (len(distinct) < _MANY_DISTINCT and Occurrences.of(hashes).unseen_share < _UNSEEN_SHARE):
        return False
    cells_with = Counter(chain.from_iterable([set(cell.lower().split()) for cell in distinct]))
    repeated = sum(count for count in cells_with.values() if count > 1)
    return repeated >= _REPEATED_SHARE * sum(cells_with.values())


def find_texts(
    table: Table, positions: Sequence[int], texts: Texts, counted: dict[int, CountedText] | None = None
) -> dict[int, tuple[Column, ...]]:
    """Return the columns of text of a table with their vocabularies, by their positions in the table.

    Parameters
    ----------
    table : Table
    positions : sequence of int
        The columns to look at.
    texts : collection of int, or mapping of int to Tokenizer
        Columns that are text if they look like it (`looks_like_text`), or columns that are, with their settings.
    counted : dict, optional
        As in `see_words`.

    Raises
    ------
    ValueError
        A named column does not hold strings, or no cell of it has a word.
    UnseenCategoryError
        The table is a scan of which only the first rows are to be read.
    """
    chosen = text_columns(table, positions, texts)
    hashed = _hashed_texts(table, chosen)
    seen = see_words(table, {j: one for j, one in chosen.items() if j not in hashed}, counted)
    return hashed | {j: (_column(table, j, chosen[j], words),) for j, words in seen.items()}


def text_columns(table: Table, positions: Sequence[int], texts: Texts) -> dict[int, Tokenizer]:
    """Return the settings of the columns that are text, by their positions; arguments as in `find_texts`."""
    if isinstance(texts, Mapping):
        return {j: texts[j] for j in positions if j in texts}
    candidates = [j for j in positions if j in texts and may_be_text(table, j)]
    return {j: Tokenizer() for j in _recognised(table, candidates)}


def extended_texts(
    table: Table, known: Mapping[int, tuple[Column, ...]], counted: dict[int, CountedText] | None = None
) -> dict[int, tuple[Column, ...]]:
    """Return the columns of text of a model, by their positions in another table, with the vocabulary of that table."""
    tokenizers = {j: column.text for j, (column, *_) in known.items() if column.text is not None}
    hashed = _hashed_texts(table, tokenizers)
    seen = see_words(table, {j: one for j, one in tokenizers.items() if j not in hashed}, counted)
    return hashed | {j: (_column(table, j, tokenizers[j], words, known[j][0]),) for j, words in seen.items()}


def _hashed_texts(table: Table, tokenizers: Mapping[int, Tokenizer]) -> dict[int, tuple[Column, ...]]:
    """Return the columns whose words are hashed, by their positions."""
    return {j: (_hashed(table, j, one),) for j, one in tokenizers.items() if one.n_features is not None}


def _hashed(table: Table, j: int, tokenizer: Tokenizer) -> Column:
    """Return a column of text whose words are hashed, so that no pass has to find them."""
    assert tokenizer.n_features is not None
    if not isinstance(table, LazyTable):
        table.texts(j, slice(0, min(1, table.n_rows)))  # it raises an error if the column holds others
    return Column(table.names[j], "counts", dtype=table.data_type(j), width=tokenizer.n_features, text=tokenizer)


def _column(table: Table, j: int, tokenizer: Tokenizer, seen: RowsWithWord, past: Column | None = None) -> Column:
    words = tokenizer.selected(seen.counts, seen.n_rows)
    if not words and past is not None:
        return past  # no row of the new table has a word
    if not words:
        raise ValueError(
            f"no cell of column {table.names[j]!r} has a word for the vocabulary; leave the column out, or change the "
            "settings of text"
        )
    return Column(table.names[j], "counts", dtype=table.data_type(j), width=len(words), words=words, text=tokenizer)


def may_be_text(table: Table, j: int) -> bool:
    """Return whether the data type of a column may hold text; the cells of a table in memory are looked at, too."""
    if table.data_type(j) in _CATEGORICAL or table.data_type(j).startswith("dictionary"):
        return False
    if not isinstance(table, LazyTable):
        return table.hashes(j, SAMPLED) is not None
    return table.holds_identifiers(j) and table.empty_column(j).whole_numbers(0, None) is None


def _recognised(table: Table, candidates: Sequence[int]) -> list[int]:
    """Return which columns of strings are text, by their first cells; of partitions, by those of each partition."""
    if not candidates:
        return []
    look = _Sample(len(candidates))
    if isinstance(table, PartitionedTable):
        sample = table.fold(look, candidates)
    elif isinstance(table, StreamedTable):
        frame = next(table.frames([table.names[j] for j in candidates]), None)
        sample = None if frame is None else look.at(PolarsTable(frame), range(len(candidates)))
    else:
        sample = look.at(table, candidates)
    cells = () if sample is None else sample.cells
    return [j for j, strings in zip(candidates, cells, strict=False) if looks_like_text(strings)]


@dataclass(frozen=True)
class _FirstCells:
    """The first present cells of several columns; + adds those of the rows that follow."""

    cells: tuple[tuple[str, ...], ...]

    def __add__(self, other: _FirstCells) -> _FirstCells:
        return _FirstCells(tuple((*a, *b)[:SAMPLED] for a, b in zip(self.cells, other.cells, strict=True)))


@dataclass(frozen=True)
class _Sample(Look[_FirstCells]):
    """A task that returns the first present cells of columns of strings; none of a column that holds others."""

    n_columns: int

    def at(self, table: Table, columns: Sequence[int]) -> _FirstCells:
        rows = slice(0, min(SAMPLED, table.n_rows))
        return _FirstCells(tuple(self._strings(table, j, rows) for j in columns))

    @staticmethod
    def _strings(table: Table, j: int, rows: slice) -> tuple[str, ...]:
        if table.hashes(j, rows.stop) is None:
            return ()
        return tuple([cell for cell in table.texts(j, rows) if cell is not None])


@dataclass(frozen=True)
class RowsWithWord:
    """The number of rows in which each word occurs; + adds that of other rows.

    Of more than 2,097,152 words, the rarest are forgotten after each part of the rows, so that memory is bounded. The
    numbers of the others are then exact, or too small by those of an earlier part (Manku & Motwani 2002, lossy
    counting).
    """

    counts: dict[str, int] = field(default_factory=dict)
    n_rows: int = 0

    @classmethod
    def of(cls, texts: Sequence[str | None], tokenizer: Tokenizer) -> RowsWithWord:
        """Return the number of texts that hold each word."""
        return cls._of_counts(*tokenizer.count(texts), len(texts))

    @classmethod
    def _of_counts(cls, words: tuple[str, ...], matrix: Any, n_rows: int) -> RowsWithWord:
        n_rows_with = [] if matrix is None else np.bincount(matrix.indices, minlength=len(words)).tolist()
        return cls(dict(zip(words, n_rows_with, strict=True)), n_rows)

    def __add__(self, other: RowsWithWord) -> RowsWithWord:
        counts = dict(self.counts)
        for word, count in other.counts.items():
            counts[word] = counts.get(word, 0) + count
        if len(counts) > _MOST_COUNTED:
            counts = dict(heapq.nlargest(_MOST_COUNTED // 2, counts.items(), key=lambda entry: (entry[1], entry[0])))
        return RowsWithWord(counts, self.n_rows + other.n_rows)


@dataclass
class CountedText:
    """The counts of the words of a column of text in memory, which were found together with its vocabulary."""

    # of consecutive rows: the words, their counts as a CSR matrix or None, and the number of rows
    parts: list[tuple[tuple[str, ...], Any, int]] = field(default_factory=list)
    is_kept: bool = True  # Whether all rows are kept: not if their counts take more than 1 GB. Then `parts` is empty.
    _n_bytes: int = 0

    def add(self, words: tuple[str, ...], matrix: Any, n_rows: int) -> None:
        """Add the counts of the rows that follow."""
        if matrix is not None:
            self._n_bytes += matrix.data.nbytes + matrix.indices.nbytes + matrix.indptr.nbytes
        if self._n_bytes > MOST_KEPT:
            self.is_kept = False
            self.parts.clear()
        if self.is_kept:
            self.parts.append((words, matrix, n_rows))

    def bags(self, column: Column) -> Bags:
        """Return the counts of all rows in the vocabulary of a column."""
        return Bags.joined([self._in_vocabulary(*part, column) for part in self.parts])

    @staticmethod
    def _in_vocabulary(words: tuple[str, ...], matrix: Any, n_rows: int, column: Column) -> Bags:
        if matrix is None:
            return Bags.empty(n_rows, column.width)
        places = np.array([column.word_places.get(word, -1) for word in words], np.int32)
        return in_vocabulary(Bags.of_matrix(matrix, slice(0, n_rows)), places, column.width)[0]


@dataclass(frozen=True)
class _WordsSeen:
    """The rows of each word, of several columns; + adds those of other rows."""

    columns: tuple[RowsWithWord, ...]

    def __add__(self, other: _WordsSeen) -> _WordsSeen:
        return _WordsSeen(tuple(a + b for a, b in zip(self.columns, other.columns, strict=True)))


@dataclass(frozen=True)
class _CountWords(Look[_WordsSeen]):
    """A task that counts the rows of each word of columns of text."""

    tokenizers: tuple[Tokenizer, ...]
    counted: tuple[CountedText, ...] = ()  # one per column, to which the counts are added; none if they are not kept

    def of_rows(self, table: Table, columns: Sequence[int], rows: slice) -> _WordsSeen:
        seen = []
        for position, (j, tokenizer) in enumerate(zip(columns, self.tokenizers, strict=True)):
            texts = table.texts(j, rows)
            words, matrix = tokenizer.count(texts)
            if self.counted:
                self.counted[position].add(words, matrix, len(texts))
            seen.append(RowsWithWord._of_counts(words, matrix, len(texts)))
        return _WordsSeen(tuple(seen))


def see_words(
    table: Table, tokenizers: Mapping[int, Tokenizer], counted: dict[int, CountedText] | None = None
) -> dict[int, RowsWithWord]:
    """Return the number of rows in which each word of columns of text occurs, by their positions, in one pass.

    If `counted` is given and the table is in memory, the counts of the words are put there, by the same positions.
    Raises ValueError if a column does not hold strings, and UnseenCategoryError if the table is a scan of which
    only the first rows are to be read.
    """
    if not tokenizers:
        return {}
    if getattr(table, "from_first_rows", False):
        raise UnseenCategoryError("the words of a text take a pass over all rows")
    kept: dict[int, CountedText] = {}
    if counted is not None and not isinstance(table, LazyTable | StreamedTable | PartitionedTable):
        kept = {j: CountedText() for j in tokenizers}
    look = _CountWords(tuple(tokenizers.values()), tuple(kept.values()))
    seen: Any = fold_rows(table, look, list(tokenizers))
    if counted is not None:
        counted |= {j: one for j, one in kept.items() if one.is_kept}
    return dict(zip(tokenizers, seen.columns, strict=True))
