"""The words of columns of counts and of text that distinguish the classes."""

from __future__ import annotations

import math
from collections.abc import Iterator

from posteriori.explain.words import CharacteristicWord, characteristic_words
from posteriori.formatting import count, plural, shortened
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import Html, paragraph, table
from posteriori.reporting.writing import times

_MOST_WORDS = 10  # for a class
_MOST_AGAINST = 5
_NO_BREAK = "\u00a0"
_LONGEST = 30  # characters of a word


def word_tables(subject: ReportData) -> Iterator[Html]:
    """Yield a table for each column of counts or text: per class, the words that speak for it, and against it."""
    model = subject.model
    statistics = getattr(subject.main_member, "statistics_", None)
    found = characteristic_words(model, statistics, _MOST_WORDS)
    # With two classes, the words against one are those for the other.
    several = len(subject.labels) > 2
    against = characteristic_words(model, statistics, _MOST_AGAINST, against=True) if several else {}
    for name, words in found.items():
        column = model.schema.columns[model.schema.names.index(name)]
        rows = [[label, _listed(of_class)] for label, of_class in zip(subject.labels, words, strict=True)]
        for row, of_class in zip(rows, against.get(name, []), strict=False):
            row.append(_listed(of_class))
        titles = [subject.target, "words that speak for it", "words that speak against it"][: 2 + several]
        title = f"Words of {name}: the most characteristic of {plural(column.width, 'word')}"
        yield table(title, titles, rows, text=tuple(range(len(titles))), stacks=True)
    if found:
        yield paragraph(
            "Behind each word: by how much one occurrence multiplies (or divides) the odds of the class against all "
            "others, and how often it occurs in the rows of the class, or of the other classes if it speaks against "
            "the class.",
            class_="note",
        )


def _listed(words: list[CharacteristicWord]) -> str:
    return "; ".join(_word(one) for one in words) or "none"


def _word(one: CharacteristicWord) -> str:
    occurrences = "" if math.isnan(one.count) else f", {count(one.count)}"
    factor = times(one.log_odds) if one.log_odds >= 0 else times(-one.log_odds).replace("×", "÷")
    odds = f"({factor}{occurrences})".replace(" ", _NO_BREAK)
    return f"{shortened(one.word, _LONGEST)}{_NO_BREAK}{odds}"
