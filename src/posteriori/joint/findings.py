"""Findings of users about cells: a value, one of several, a range, or not one of several."""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posteriori.joint.grids import NumberGrid
from posteriori.model.predictive import NumberCells
from posteriori.support.suggestions import closest, find_class
from posteriori.support.typing import Array
from posteriori.tables import Schema
from posteriori.tables.times import DatePart, times_of_objects


class Findable(Protocol):
    """Columns of which something may be known: a law, or a classifier."""

    @property
    def schema(self) -> Schema: ...  # noqa: D102
    @property
    def names(self) -> list[str]: ...  # noqa: D102
    @property
    def grids(self) -> Mapping[int, NumberGrid]: ...  # noqa: D102
    @property
    def sizes(self) -> dict[int, int]: ...  # noqa: D102
    def place(self, name: str) -> int:
        """Return the position of a column in the schema; ValueError if there is none."""


@dataclass(frozen=True)
class Not:
    """Any value except for some: ``Not("a")``, ``Not({"a", "b"})``, ``Not((30, 40))``."""

    finding: Any


def part_of_time(law: Findable, name: str) -> tuple[str, DatePart] | None:
    """Return the column that holds dates or durations of the table as numbers, by their name; None of other names.

    Raises
    ------
    ValueError
        The model has other parts of these dates alone.
    """
    if name in law.names:
        return None
    parts = {one.name: one.part for one in law.schema.columns if one.part is not None and one.part.of == name}
    found = next(((own, part) for own, part in parts.items() if part.is_number and own in law.names), None)
    if parts and found is None and (known := [own for own in parts if own in law.names]):
        raise ValueError(f"the model has no {name!r} as a number; ask {' or '.join(map(repr, known))}")
    return found


def number_of_time(name: str, part: DatePart, value: Any) -> float:
    """Return a date, or its text, as a number of days, or a duration as seconds; numbers are durations in seconds."""
    if part.type.is_span and isinstance(value, float | int | str):
        return _number(name, value)
    try:
        (number,) = part.numbers(times_of_objects([value], part.type, name))
    except ValueError:
        number = math.nan
    if math.isnan(number):
        raise ValueError(
            f"{name!r} holds {part.type.title}, and {value!r} is none; write 2024-12-31, or 2024-12-31 08:30"
        )
    return float(number)


def _by_number(law: Findable, name: str, finding: Any) -> tuple[str, Any]:
    """Return a finding about dates as one about the column that holds them as numbers, and another one as it is."""
    found = part_of_time(law, name)
    if found is None:
        return name, finding
    own, part = found

    def numbers(one: Any) -> Any:
        if isinstance(one, Not):
            return Not(numbers(one.finding))
        if isinstance(one, set | frozenset | list | tuple):
            return type(one)(numbers(each) for each in one)
        return None if one is None else number_of_time(name, part, one)

    return own, numbers(finding)


def law_place(law: Findable, name: str) -> int:
    """Return the position of a column, or of the one that holds dates of this name as numbers."""
    found = part_of_time(law, name)
    return law.place(name if found is None else found[0])


def likelihood_of(law: Findable, name: str, finding: Any) -> tuple[int, Array]:
    """Return a column by its position, and the probability of a finding given each code of the column, (K,).

    Parameters
    ----------
    law : Findable
    name : str
        Of the column, or of dates of the table.
    finding : value, set or list of values, (low, high) of numbers, or `Not`
        Both ends of a range belong to it; None is no end.

    Raises
    ------
    ValueError
        There is no such column, value or range, or nothing is left.
    """
    name, finding = _by_number(law, name, finding)
    j, found = law.place(name), likelihood_if_any(law, name, finding)
    if not found.any():
        raise ValueError(f"no cell of {name!r} can be {_words(finding)}; state another value or range")
    return j, found


def likelihood_if_any(law: Findable, name: str, finding: Any) -> Array:
    """Return the same likelihood, of zeros where nothing is left, (K,)."""
    name, finding = _by_number(law, name, finding)
    j = law.place(name)
    if j in law.grids:
        grid, intervals = law.grids[j], intervals_of(law, name, finding)
        return grid.of_findings(intervals) if intervals else np.zeros(law.sizes[j])
    if isinstance(finding, Not):
        return np.asarray(1.0 - likelihood_if_any(law, name, finding.finding))
    if isinstance(finding, set | frozenset | list | tuple):
        return np.asarray(np.max([_of_value(law, j, name, one) for one in _some(name, finding)], axis=0))
    return _of_value(law, j, name, finding)


def intervals_of(law: Findable, name: str, finding: Any) -> list[tuple[float, float]]:
    """Return the numbers that a finding leaves, as intervals that ascend and do not overlap, both ends included."""
    if isinstance(finding, Not):
        if isinstance(finding.finding, Not):
            return intervals_of(law, name, finding.finding.finding)
        return _others(law.grids[law.place(name)].cells, intervals_of(law, name, finding.finding))
    if isinstance(finding, tuple) and len(finding) == 2:
        return [_range(name, *finding)]
    if not isinstance(finding, set | frozenset | list | tuple):
        return [(_number(name, finding),) * 2]
    found: list[tuple[float, float]] = []
    for low, high in sorted(one for part in _some(name, finding) for one in intervals_of(law, name, part)):
        if found and low <= found[-1][1]:
            found[-1] = found[-1][0], max(high, found[-1][1])
        else:
            found.append((low, high))
    return found


def _others(cells: NumberCells, intervals: list[tuple[float, float]]) -> list[tuple[float, float]]:
    """Return the numbers between some intervals, and outside of them."""
    near = 2.0 * cells.tolerance * cells.step if cells.step else 0.0  # a number that is nearer counts as the point
    ends = [float(np.nextafter(low - near, -np.inf)) for low, _ in intervals]
    begins = [float(np.nextafter(high + near, np.inf)) for _, high in intervals]
    return [
        (low, high)
        for low, high in zip([-math.inf, *begins], [*ends, math.inf], strict=True)
        if low <= high and (low < high or math.isfinite(low))
    ]


def _some(name: str, values: Collection[Any]) -> Collection[Any]:
    if not values:
        raise ValueError(f"the values of {name!r} are none; give one at least")
    return values


def _of_value(law: Findable, j: int, name: str, value: Any) -> Array:
    """Return which codes a category has."""
    categories = law.schema.columns[j].categories
    code = next((k for k, one in enumerate(categories) if one == value and type(one) is type(value)), None)
    if code is None:
        code = next((k for k, one in enumerate(categories) if _text(one) == _text(value)), None)
    if code is None and isinstance(value, str):
        code = find_class(value, categories)  # 1e0 is 1
    if code is None:
        raise ValueError(f"{name!r} is never {value!r}; {closest(str(value), [str(one) for one in categories])}")
    return np.asarray(np.arange(law.sizes[j]) == code, np.float64)


def _text(category: Any) -> str:
    """Return a category as text; true and false are written as databases do, or as Python does, and 1.0 as 1."""
    text = re.sub(r"^(-?\d+)\.0$", r"\1", str(category))
    return text.lower() if isinstance(category, bool) or text in ("True", "False") else text


def _range(name: str, low: Any, high: Any) -> tuple[float, float]:
    ends = -math.inf if low is None else _number(name, low), math.inf if high is None else _number(name, high)
    if ends[0] > ends[1]:
        raise ValueError(f"the range of {name!r} is from {low!r} to {high!r}; exchange its ends")
    return ends


def require_probability(law: Findable, name: str, finding: Any) -> None:
    """Raise ValueError if a finding is no more than single numbers of a continuous column, whose probability is 0."""
    name, finding = _by_number(law, name, finding)
    if not _has_probability(law, name, finding):
        raise ValueError(f"no single number of {name!r} has a probability; ask for a range, {name} in [low, high]")


def _has_probability(law: Findable, name: str, finding: Any) -> bool:
    j = law.place(name)
    if j not in law.grids or law.grids[j].cells.step:
        return True
    cells = law.grids[j].cells
    atoms = set(cells.low[cells.width == 0].tolist())
    return any(low < high or low in atoms for low, high in intervals_of(law, name, finding))


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
    if not isinstance(finding, Not):
        return repr(finding)
    one = finding.finding
    if isinstance(one, tuple) and len(one) == 2 and (one[0] is None) != (one[1] is None):
        return f"below {one[0]!r}" if one[1] is None else f"above {one[1]!r}"
    return f"other than {_words(one)}"


def likelihoods_of(law: Findable, given: Mapping[str, Any] | None) -> dict[int, Array]:
    """Return the likelihoods of a row of which findings are known: of each column, (1, K)."""
    found = {j: np.ones((1, size)) for j, size in law.sizes.items()}
    for name, finding in (given or {}).items():
        j, likelihood = likelihood_of(law, name, finding)
        found[j] = likelihood[np.newaxis]
    return found


def bounds_of(law: Findable, given: Mapping[str, Any] | None) -> dict[int, list[tuple[float, float]]]:
    """Return the intervals that findings leave of columns of numbers."""
    each = [_by_number(law, name, finding) for name, finding in (given or {}).items()]
    found = {law.place(name): (name, finding) for name, finding in each}
    return {j: intervals_of(law, *one) for j, one in found.items() if j in law.grids}


def parts_of(law: Findable, findings: Mapping[str, Any]) -> dict[int, Array]:
    """Return of each column, by its position, the part of each cell that is as found, (G,)."""
    found = {}
    for name, finding in (_by_number(law, *one) for one in findings.items()):
        j = law.place(name)
        if j not in law.grids:
            found[j] = likelihood_if_any(law, name, finding)
            continue
        each = [law.grids[j].between(*one) for one in intervals_of(law, name, finding)]
        found[j] = np.clip(np.sum(each, axis=0), 0.0, 1.0) if each else np.zeros(len(law.grids[j].cells))
    return found
