"""Columns of Python objects: numbers, strings and booleans; None, NaN or pandas' NA where missing."""

from __future__ import annotations

import hashlib
import itertools
import reprlib
from numbers import Integral, Real
from typing import Any

import numpy as np

from posteriori.tables.columns import Cell, Column, categorical_column, kind_of
from posteriori.tables.missing import is_missing
from posteriori.typing import Array

FEW_CELLS = 1000  # look-ups of so many cells one by one beat the set-up of an Enum or a hash table


def plain_cell(cell: Any, name: str) -> Cell:
    """Return a cell as a Python str, bool, int or float.

    Raises
    ------
    TypeError
        The cell is of another type.
    """
    if isinstance(cell, np.generic):
        cell = cell.item()
    if isinstance(cell, str | bool | int | float):
        return cell
    raise TypeError(
        f"column {name!r} holds a {type(cell).__name__} ({reprlib.repr(cell)}); "
        "cells must be numbers, strings or booleans"
    )


def object_column(name: str, cells: list[Any], categorical: bool) -> Column:
    """Infer a column from its cells, as a categorical one even if they are numbers if `categorical`.

    Raises
    ------
    TypeError
        A cell is not a number, a string or a boolean.
    ValueError
        The cells are of several kinds.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    types = set(map(type, present))
    if not categorical and all(map(_is_number, types)):
        return Column(name, "continuous", dtype="object")
    try:
        distinct = {plain_cell(cell, name) for cell in set(present)}
    except TypeError:  # an unhashable cell, which `plain_cell` names
        distinct = {plain_cell(cell, name) for cell in present}
    # From the types, because True and 1 are one element of a set of cells.
    kinds = {"strings" if issubclass(t, str) else "numbers" if _is_number(t) else "booleans" for t in types}
    if len(kinds) > 1 and not categorical:
        raise ValueError(
            f"column {name!r} mixes {' and '.join(sorted(kinds, reverse=True))}; convert it to one of them, "
            "or name it in categorical_features"
        )
    if kinds == {"booleans"}:
        return categorical_column(name, [False, True], "object")
    return categorical_column(name, distinct, "object")


def object_numbers(cells: list[Any], column: Column, start: int) -> Array:
    """Return the cells of a continuous column as floats: NaN where missing, 1 where true. The first row is `start`.

    Raises
    ------
    TypeError
        A cell is not a number, a string or a boolean.
    ValueError
        A cell is not a number, or is too large for a float.
    """
    if not all(issubclass(kind, Real | np.bool_) for kind in set(map(type, cells))):
        cells = [np.nan if is_missing(cell) else cell for cell in cells]
        for row, cell in enumerate(cells, start):
            if not isinstance(cell, Real | np.bool_):
                plain_cell(cell, column.name)
                raise ValueError(
                    f"column {column.name!r} was numeric in training but holds {cell!r} in row {row}; convert it"
                )
    try:
        return np.array(cells, dtype=np.float64)
    except OverflowError:
        raise ValueError(f"column {column.name!r} holds an integer too large for a float; rescale the column") from None


def encode_objects(cells: list[Any], column: Column) -> tuple[Array, int]:
    """Return the codes of a list of Python cells, and the number of cells of an unseen category.

    Raises
    ------
    TypeError
        A cell is not a number, a string or a boolean.
    ValueError
        A cell of an unseen category is of a kind that no category has.
    """
    found = map(column.lookup.get, cells, itertools.repeat(0))
    try:
        codes = np.fromiter(found, dtype=column.code_type, count=len(cells))
    except TypeError:  # an unhashable cell, which `plain_cell` names
        for cell in cells:
            if not is_missing(cell):
                plain_cell(cell, column.name)
        raise
    unmatched = np.flatnonzero(codes == 0)
    if len(unmatched) == cells.count(None):
        return codes, 0
    unseen = [cell for cell in (cells[i] for i in unmatched) if not is_missing(cell)]
    column.require_kinds({kind_of(plain_cell(cell, column.name)) for cell in unseen})
    return codes, len(unseen)


def object_strings(cells: list[Any], name: str) -> list[str | None]:
    """Return the strings of a column of text, None where missing.

    Raises
    ------
    ValueError
        A cell is not a string.
    """
    for row, cell in enumerate(cells):
        if not isinstance(cell, str) and not is_missing(cell):
            raise no_text(name, f"{reprlib.repr(cell)} in row {row} of a batch")
    return [cell if isinstance(cell, str) else None for cell in cells]


def no_text(name: str, found: str) -> ValueError:
    """Return the error for a column of text that holds something else."""
    return ValueError(f"column {name!r} is read as text, which is strings, but holds {found}; convert it to strings")


def whole_numbers(cells: list[Any]) -> Array | None:
    """Return the integers among cells of which some are missing; None if another cell is among them, or one too large.

    Cells without a value are none of either kind: the result is None.
    """
    present = [cell for cell in cells if not is_missing(cell)]
    kinds = set(map(type, present))
    if not kinds or not all(issubclass(kind, Integral) and not issubclass(kind, bool) for kind in kinds):
        return None
    try:
        return np.array(present, dtype=np.int64)
    except OverflowError:
        return None


def hash_strings(cells: list[Any]) -> Array | None:
    """Return a hash of 64 bits of each present cell, the same in every process; None unless all are strings."""
    present = [cell for cell in cells if not is_missing(cell)]
    if not present or not all(issubclass(kind, str) for kind in set(map(type, present))):
        return None
    hashes = b"".join(
        hashlib.blake2b(cell.encode("utf-8", "surrogatepass"), digest_size=8).digest() for cell in present
    )
    return np.frombuffer(hashes, np.uint64)


def _is_number(kind: type[Any]) -> bool:
    return issubclass(kind, Real) and not issubclass(kind, bool | np.bool_)
