"""Findings of users about cells: a value, one of several, a range, or not one of several."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.joint.law import Law
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array


@dataclass(frozen=True)
class Not:
    """Any value except for some: ``Not("a")``, ``Not({"a", "b"})``, ``Not((30, 40))``."""

    finding: Any


def likelihood_of(law: Law, name: str, finding: Any) -> tuple[int, Array]:
    """Return a column by its position, and the probability of a finding given each code of the column, (K,).

    Parameters
    ----------
    law : Law
    name : str
        Of the column.
    finding : value, set or list of values, (low, high) of numbers, or `Not`
        Both ends of a range belong to it; None is no end.

    Raises
    ------
    ValueError
        There is no such column, value or range, or nothing is left.
    """
    names = [law.schema.names[j] for j in law.columns]
    if name not in names:
        raise ValueError(f"there is no column {name!r}; {closest(name, names)}")
    j = law.columns[names.index(name)]
    found = _likelihood(law, j, name, finding)
    if not found.any():
        raise ValueError(f"no cell of {name!r} can be {_words(finding)}; state another value or range")
    return j, found


def _likelihood(law: Law, j: int, name: str, finding: Any) -> Array:
    if isinstance(finding, Not):
        return np.asarray(1.0 - _likelihood(law, j, name, finding.finding))
    is_number = j in law.grids
    if isinstance(finding, tuple) and len(finding) == 2 and is_number:
        return _of_range(law, j, name, *finding)
    if isinstance(finding, set | frozenset | list | tuple):
        values = list(finding)
        if not values:
            raise ValueError(f"the values of {name!r} are none; give one at least")
        return np.asarray(np.minimum(np.sum([_of_value(law, j, name, one) for one in values], axis=0), 1.0))
    return _of_value(law, j, name, finding)


def _of_value(law: Law, j: int, name: str, value: Any) -> Array:
    """Return which codes a value has; of a number its bin."""
    size = law.sizes[j]
    if j in law.grids:
        number = _number(name, value)
        if law.grids[j].cells.step or number in _atoms(law, j):
            return law.grids[j].of_bins(law.grids[j].between(number, number))
        place = int(np.searchsorted(law.schema.columns[j].cuts or (), number, side="right"))
        return np.asarray(np.arange(size) == place, np.float64)  # as probable as any in its bin
    categories = law.schema.columns[j].categories
    code = next((k for k, one in enumerate(categories) if one == value and type(one) is type(value)), None)
    if code is None:
        code = next((k for k, one in enumerate(categories) if _text(one) == _text(value)), None)
    if code is None:
        raise ValueError(f"{name!r} is never {value!r}; {closest(str(value), [str(one) for one in categories])}")
    return np.asarray(np.arange(size) == code, np.float64)


def _text(category: Any) -> str:
    """Return a category as text; true and false are written as databases do, or as Python does."""
    text = str(category)
    return text.lower() if isinstance(category, bool) or text in ("True", "False") else text


def _of_range(law: Law, j: int, name: str, low: Any, high: Any) -> Array:
    """Return the share of each bin that is between two numbers."""
    ends = -math.inf if low is None else _number(name, low), math.inf if high is None else _number(name, high)
    if ends[0] > ends[1]:
        raise ValueError(f"the range of {name!r} is from {low!r} to {high!r}; exchange its ends")
    return law.grids[j].of_bins(law.grids[j].between(*ends))


def _atoms(law: Law, j: int) -> set[float]:
    """Return the numbers of a column that have a probability of their own."""
    cells = law.grids[j].cells
    return set(cells.low[cells.width == 0].tolist())


def _number(name: str, value: Any) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise ValueError(
            f"{name!r} holds numbers, and {value!r} is none; give a number or a range (low, high)"
        ) from None
    if math.isnan(number):
        raise ValueError(f"the value of {name!r} is NaN; leave out what is unknown")
    return number


def _words(finding: Any) -> str:
    return f"other than {_words(finding.finding)}" if isinstance(finding, Not) else repr(finding)


def likelihoods_of(law: Law, given: Mapping[str, Any] | None, n: int = 1) -> dict[int, Array]:
    """Return the likelihoods of n equal rows of which findings are known: of each column, (n, K)."""
    found = {j: np.ones((n, size)) for j, size in law.sizes.items()}
    for name, finding in (given or {}).items():
        j, likelihood = likelihood_of(law, name, finding)
        found[j] = np.tile(likelihood, (n, 1))
    return found


def bounds_of(law: Law, given: Mapping[str, Any] | None) -> dict[int, tuple[float, float]]:
    """Return the ends of the ranges, and the numbers, that findings state about columns of numbers."""
    found = {}
    for name, finding in (given or {}).items():
        j, _ = likelihood_of(law, name, finding)
        if j not in law.grids or isinstance(finding, Not | set | frozenset | list):
            continue
        low, high = finding if isinstance(finding, tuple) else (finding, finding)
        found[j] = (-math.inf if low is None else float(low), math.inf if high is None else float(high))
    return found
