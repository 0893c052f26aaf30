"""Vocabularies: the words of a column of counts, by name or by position."""

from __future__ import annotations

from collections.abc import Mapping


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
