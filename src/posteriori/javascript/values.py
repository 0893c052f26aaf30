"""Columns, cells and arrays of a model as JSON holds them."""

from __future__ import annotations

import math
from dataclasses import fields, is_dataclass
from typing import Any

import numpy as np

from posteriori.support.typing import Array
from posteriori.tables import Cell, Column
from posteriori.tables.tokenizer import Tokenizer

MOST_NUMBERS = 10_000_000  # 200 MB; no browser has strings of more than 512 MB
_LARGEST_WHOLE = 2**53  # beyond it, JavaScript has no whole numbers
_WORD_PATTERN = Tokenizer().token_pattern  # the one that the evaluator has


def written_column(column: Column) -> dict[str, Any]:
    """Return a column as the evaluator reads it; raise ValueError if it cannot."""
    written: dict[str, Any] = {"name": column.name, "kind": column.kind}
    if column.kind == "categorical":
        written["categories"] = [written_cell(cell, f"column {column.name!r}") for cell in column.categories]
    if column.valueless:
        written["valueless"] = True
    if column.part is not None and not column.is_ignored and not column.part.type.is_span:
        written["part"] = {"of": column.part.of, "name": column.part.name, "origin": column.part.origin}
    if column.kind == "counts":
        written |= {"width": column.width, "words": list(column.words) or None}
        written["text"] = None if column.text is None else _tokenizer(column.name, column.text)
    return written


def written_cell(cell: Cell, what: str) -> Cell:
    """Return a category as JSON holds it; raise ValueError if it cannot."""
    if isinstance(cell, int) and abs(cell) > _LARGEST_WHOLE:
        raise ValueError(f"{what} holds {cell}, and JavaScript has no whole numbers of that size; make them strings")
    if isinstance(cell, float) and not math.isfinite(cell):
        raise ValueError(f"{what} holds the category {cell}, which JSON cannot write; make it a string")
    return cell


def _tokenizer(name: str, text: Tokenizer) -> dict[str, Any]:
    usual = text.analyzer == "word" and text.strip_accents is None and text.token_pattern == _WORD_PATTERN
    if not usual or text.n_features is not None:
        raise ValueError(
            f"column {name!r} of text is cut into words by settings that the evaluator in JavaScript does not have; "
            "leave analyzer, strip_accents, token_pattern and n_features at their defaults"
        )
    stop_words = text.stop_words
    if isinstance(stop_words, str):
        from sklearn.feature_extraction.text import ENGLISH_STOP_WORDS

        stop_words = tuple(sorted(ENGLISH_STOP_WORDS))
    return {
        "lowercase": text.lowercase,
        "stop_words": None if stop_words is None else list(stop_words),
        "ngram_range": list(text.ngram_range),
        "binary": text.binary,
    }


def plain(value: Any) -> Any:
    """Return a parameter with its arrays as they are written."""
    if isinstance(value, np.ndarray):
        return written_array(value)
    return [plain(item) for item in value] if isinstance(value, tuple) else value


def written_array(values: Array) -> dict[str, Any]:
    """Return an array with its shape; numbers that JSON lacks are strings."""
    numbers = [number if math.isfinite(number) else repr(number) for number in values.ravel().tolist()]
    return {"shape": list(values.shape), "values": numbers}


def n_numbers(value: Any) -> int:
    """Return how many numbers the arrays in parameters hold."""
    if isinstance(value, np.ndarray):
        return value.size
    parts = (
        value
        if isinstance(value, tuple)
        else [getattr(value, one.name) for one in fields(value)]
        if is_dataclass(value)
        else []
    )
    return sum(map(n_numbers, parts))
