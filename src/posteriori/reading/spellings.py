"""Labels and categories that differ only in case or blanks: one value in several spellings."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from posteriori.support.typing import Array
from posteriori.user_warnings import warn

_BLANKS = re.compile("[ \u00a0]+")  # a tab or a line break may be meant
_are_kept: ContextVar[bool] = ContextVar("spellings are kept", default=False)


@contextmanager
def spellings_kept() -> Iterator[None]:
    """Take different spellings for different labels in this context, without a warning."""
    before = _are_kept.set(True)
    try:
        yield
    finally:
        _are_kept.reset(before)


def _folded(label: str) -> str:
    return _BLANKS.sub(" ", label.casefold()).strip(" ")


def spelled_alike(labels: Iterable[Any]) -> list[list[str]]:
    """Return the groups of strings that differ only in case or blanks."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        if isinstance(label, str):
            groups.setdefault(_folded(label), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def usual_spellings(rows: Mapping[Any, float]) -> dict[str, str]:
    """Return the most frequent spelling of each label that has another one, given the rows of each label.

    One without blanks around it comes first.
    """
    usual: dict[str, str] = {}
    for group in spelled_alike(rows):
        best = min(group, key=lambda label: (label != label.strip(" \u00a0"), -rows[label], label))
        usual |= {label: best for label in group if label != best}
    return usual


def spellings_of_classes(labels: Iterable[Any], classes: Iterable[Any]) -> dict[str, str]:
    """Return the class of each label that is none, but differs from a single one only in case or blanks."""
    known = set(classes)
    of_folded: dict[str, list[str]] = {}
    for one in known:
        if isinstance(one, str):
            of_folded.setdefault(_folded(one), []).append(one)
    found = {}
    for label in labels:
        if isinstance(label, str) and label not in known:
            alike = of_folded.get(_folded(label), [])
            if len(alike) == 1:
                found[label] = alike[0]
    return found


def described(usual: Mapping[str, str]) -> str:
    """Return the merged spellings in words: "labels 'BAD', 'bad ' as 'bad'"."""
    groups: dict[str, list[str]] = {}
    for label, best in usual.items():
        groups.setdefault(best, []).append(label)
    return "labels " + ", ".join(
        f"{', '.join(map(repr, sorted(group)))} as {best!r}" for best, group in sorted(groups.items())
    )


def one_spelling(y: Any) -> Array:
    """Give labels that differ only in case or blanks their most frequent spelling.

    Parameters
    ----------
    y : array-like (n,)
        Labels; only strings are changed. None and NaN are missing.

    Returns
    -------
    ndarray (n,) of object
        The labels. A spelling without blanks around it is taken before those with some, and of equally frequent ones
        the first in alphabetical order.

    Examples
    --------
    >>> import posteriori as po
    >>> po.reading.one_spelling(["bad", "BAD", "good", "bad ", "bad"]).tolist()
    ['bad', 'bad', 'good', 'bad', 'bad']
    """
    cells = y.tolist() if hasattr(y, "tolist") else y.to_list() if hasattr(y, "to_list") else list(y)
    usual = usual_spellings(Counter(cell for cell in cells if isinstance(cell, str)))
    found = np.empty(len(cells), dtype=object)
    found[:] = [usual.get(cell, cell) if isinstance(cell, str) else cell for cell in cells]
    return found


def warn_of_spellings(labels: Iterable[Any]) -> None:
    """Warn of labels that differ only in case or blanks, unless their spellings are to be kept."""
    if _are_kept.get():
        return
    groups = spelled_alike(labels)
    if groups:
        listed = ", ".join(map(repr, groups[0]))
        warn(
            f"the labels {listed} differ only in case or blanks, and are classes of their own; if they mean the "
            "same, give them one spelling, as posteriori.reading.one_spelling does",
            UserWarning,
        )
