"""Text output of comparisons: sentences and tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def crossing_sentence(crossing: Mapping[str, Any]) -> str:
    """Write a row of `Comparison.crossings` as a sentence.

    Examples
    --------
    >>> crossing_sentence(
    ...     {
    ...         "generative": "LDA",
    ...         "discriminative": "logistic regression",
    ...         "measure": "log_loss",
    ...         "n_rows": 83.2,
    ...         "leads_before": "LDA",
    ...         "leads_after": "logistic regression",
    ...         "n_crossings": 1,
    ...         "sure": True,
    ...     }
    ... )
    'log loss: logistic regression overtakes LDA at about 83 rows'
    """
    measure = crossing["measure"].replace("_", " ")
    pair = crossing["generative"], crossing["discriminative"]
    leader = crossing["leads_after"]
    if leader is None:
        return f"{measure}: {pair[0]} and {pair[1]} do not differ"
    behind = pair[1] if leader == pair[0] else pair[0]
    if crossing["n_rows"] is None:
        return f"{measure}: {leader} leads {behind} throughout"
    doubt = "" if crossing["sure"] else ", which may be chance"
    often = f" for the last of {crossing['n_crossings']} times" if crossing["n_crossings"] > 1 else ""
    return f"{measure}: {leader} overtakes {behind} at about {crossing['n_rows']:.0f} rows{often}{doubt}"


def text_table(head: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    """Return a table as text: right-aligned columns, two blanks apart."""
    rows = [head, *lines]
    widths = [max(len(row[position]) for row in rows) for position in range(len(head))]
    pairs = (zip(row, widths, strict=True) for row in rows)
    return "\n".join("  ".join(cell.rjust(width) for cell, width in pair) for pair in pairs)
