"""The words of columns of counts and of text that distinguish the classes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from posteriori.explain.words import CharacteristicWord, characteristic_words
from posteriori.formatting import count, plural, shortened
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import Html, paragraph, table
from posteriori.reporting.writing import times

_MOST_WORDS = 10  # of a class
_LONGEST = 30  # characters of a word


def word_tables(subject: ReportData) -> Iterator[Html]:
    """Yield a table for each column of counts or text: per class, the words that speak for it."""
    model = subject.model
    found = characteristic_words(model, getattr(subject.main_member, "statistics_", None), _MOST_WORDS)
    for name, words in found.items():
        column = model.schema.columns[model.schema.names.index(name)]
        rows = [[label, _listed(of_class)] for label, of_class in zip(subject.labels, words, strict=True)]
        title = f"Words of {name}: the most characteristic of {plural(column.width, 'word')}"
        yield table(title, [subject.target, "words that speak for it"], rows, text=(0, 1), stacks=True)
    if found:
        yield paragraph(
            "Behind each word: by how much one occurrence multiplies the odds of the class against all others, and how "
            "often it occurs in the rows of the class.",
            class_="note",
        )


def _listed(words: list[CharacteristicWord]) -> str:
    return "; ".join(_word(one) for one in words) or "none"


def _word(one: CharacteristicWord) -> str:
    occurrences = "" if math.isnan(one.count) else f", {count(one.count)}"
    return f"{shortened(one.word, _LONGEST)} ({times(one.log_odds)}{occurrences})"
