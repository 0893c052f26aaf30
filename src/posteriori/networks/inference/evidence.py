"""Evidence (observed findings): about one case from a mapping, about many from a table with missing cells."""

from __future__ import annotations

import functools
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.networks.graph.linear_gaussian import LinearGaussian
from posteriori.networks.graph.naming import States, require_findings, require_variable, state_code
from posteriori.reading import read_table
from posteriori.reading.opening import read_records
from posteriori.support.checks import is_missing
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema

_SEVERAL = (set, frozenset, list, tuple, Mapping)  # kinds of findings that name more than one state


@dataclass(frozen=True)
class Measurement:
    """Soft evidence about a continuous variable: a measured value whose error is normal.

    Attributes
    ----------
    value : float
    standard_deviation : float
        Of the error of the measurement, above 0, in the unit of the value.
    """

    value: float
    standard_deviation: float

    def __post_init__(self) -> None:
        if not math.isfinite(self.value):
            raise ValueError(f"the value of a measurement is {self.value!r}; it must be finite")
        if not 0 < self.standard_deviation < math.inf:
            raise ValueError(f"standard_deviation is {self.standard_deviation!r}; it must be above 0 and finite")

    def __str__(self) -> str:
        return f"{self.value:g} ± {self.standard_deviation:g}"


@dataclass(frozen=True)
class Evidence:
    """Findings about one case: likelihoods of states, and numbers.

    Attributes
    ----------
    states : dict from str to tuple of states
        The states of all discrete variables of the network.
    likelihoods : dict from str to ndarray (K,)
        Of discrete variables: non-negative, not all 0; a known state has likelihood 1 and the others 0.
    values : dict from str to float
        Of continuous variables.
    measured : dict from str to Measurement
        Of other continuous variables.
    given : dict
        The findings as the caller wrote them, which answers show.
    """

    states: Mapping[str, States]
    likelihoods: dict[str, Array]
    values: Mapping[str, float] = field(default_factory=dict)
    measured: Mapping[str, Measurement] = field(default_factory=dict)
    given: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def hard(self) -> dict[int, int]:
        """The code of the state of each variable whose state is certain, by the index of the variable."""
        return self._hard_and_soft[0]

    @cached_property
    def codes(self) -> Array:
        """The codes of certain states, −1 for other variables: (V,)."""
        codes = [-1] * len(self.states)
        for position, code in self.hard.items():
            codes[position] = code
        return np.array(codes, np.int64)

    @cached_property
    def soft(self) -> dict[int, Array]:
        """The likelihoods of the other variables with a finding, by the index of the variable."""
        return self._hard_and_soft[1]

    @cached_property
    def _hard_and_soft(self) -> tuple[dict[int, int], dict[int, Array]]:
        hard: dict[int, int] = {}
        soft: dict[int, Array] = {}
        for position, name in [(v, name) for v, name in enumerate(self.states) if name in self.likelihoods]:
            likelihood = self.likelihoods[name]
            numbers: list[float] = likelihood.tolist()
            # A single likelihood other than 1 scales p(evidence), so that the finding has to stay soft.
            if numbers.count(0.0) == len(numbers) - 1 and max(numbers) == 1.0:
                hard[position] = numbers.index(1.0)
            else:
                soft[position] = likelihood
        return hard, soft

    def __and__(self, other: Evidence) -> Evidence | None:
        """Return this evidence with the likelihoods of another; None if they contradict each other about a variable."""
        both = dict(self.likelihoods)
        for name, likelihood in other.likelihoods.items():
            both[name] = both[name] * likelihood if name in both else likelihood
            if not both[name].any():
                return None
        return replace(self, likelihoods=both)

    @property
    def is_empty(self) -> bool:
        """Whether there is no finding."""
        return not (self.likelihoods or self.values or self.measured)

    @property
    def certain(self) -> dict[str, Any]:
        """The value or state of the variables of which it is certain."""
        found: dict[str, Any] = dict(self.values)
        if self.hard:
            names = tuple(self.states)
            found |= {names[v]: self.states[names[v]][code] for v, code in self.hard.items()}
        return found

    @property
    def children(self) -> tuple[LinearGaussian, ...]:
        """The measurements as children of what they measure: N(x, error²)."""
        return tuple(
            LinearGaussian(_child(name), (name,), {}, 0.0, [1.0], one.standard_deviation**2)  # type: ignore[arg-type]
            for name, one in self.measured.items()
        )

    @property
    def numbers(self) -> dict[str, Array]:
        """The values and the measured values, (1,)."""
        measured = {_child(name): np.array([one.value]) for name, one in self.measured.items()}
        return {name: np.array([value]) for name, value in self.values.items()} | measured

    def about_tables(self, tables: Mapping[str, States], soft: Mapping[int, Array]) -> Evidence:
        """Return the evidence about discrete and auxiliary variables, with the likelihoods (1, K) of some of them."""
        likelihoods, names = dict(self.likelihoods), tuple(tables)
        for position, likelihood in soft.items():
            name = names[position]
            likelihoods[name] = likelihoods[name] * likelihood[0] if name in likelihoods else likelihood[0]
        return Evidence(tables, likelihoods)


def _child(name: str) -> str:
    return f"\1{name}"


def read_evidence(
    evidence: Mapping[str, Any] | None, states: Mapping[str, States], variables: Collection[str] | None = None
) -> Evidence:
    """Read evidence about one case.

    Parameters
    ----------
    evidence : mapping, optional
        From variable to its state; to a set or list of states, one of which it has; or to a mapping from every state
        to its likelihood. For a continuous variable a number or a `Measurement`. None or NaN: it is unknown.
    states : mapping from str to tuple of states
        The states of all discrete variables of the network.
    variables : collection of str, optional
        The names of all variables; those without states are continuous. By default all have states.

    Raises
    ------
    TypeError
        The evidence is no mapping.
    ValueError
        There is no such variable or state; a likelihood is negative, infinite or 0 for every state; or the value of a
        continuous variable is no finite number.
    """
    if evidence is None:
        evidence = {}
    require_findings("evidence", evidence)
    likelihoods: dict[str, Array] = {}
    values: dict[str, float] = {}
    measured: dict[str, Measurement] = {}
    for name, finding in evidence.items():
        require_variable(name, states if variables is None else variables)
        if isinstance(finding, Measurement) and name not in states:
            measured[name] = finding
        elif isinstance(finding, _SEVERAL) or not is_missing(finding):
            if name in states:
                likelihoods[name] = _likelihood(name, finding, states[name])
            else:
                values[name] = _number(name, finding)
    return Evidence(states, likelihoods, values, measured, dict(evidence))


def _number(name: str, finding: Any) -> float:
    if isinstance(finding, bool | str) or not isinstance(finding, int | float | np.number):
        raise ValueError(
            f"the evidence about {name!r} is {finding!r}, but it is continuous; give a number, or a Measurement"
        )
    value = float(finding)
    if not math.isfinite(value):
        raise ValueError(f"the evidence about {name!r} is {finding!r}; give a finite number")
    return value


def _likelihood(name: str, finding: Any, states: States) -> Array:
    likelihood = np.zeros(len(states))
    if isinstance(finding, str):
        likelihood[state_code(name, finding, states)] = 1
        return likelihood
    if isinstance(finding, Mapping):
        for state, weight in finding.items():
            likelihood[state_code(name, state, states)] = weight
        absent = [state for state in states if state not in finding]
        if absent:
            raise ValueError(
                f"the likelihood of {name!r} lacks its state {absent[0]!r}; give one for each state, 0 for an "
                "impossible one"
            )
        if not np.isfinite(likelihood).all() or (likelihood < 0).any() or not likelihood.any():
            raise ValueError(
                f"the likelihood of {name!r} is {dict(finding)!r}; give finite numbers of at least 0, not all of them 0"
            )
        return likelihood
    possible = finding if isinstance(finding, _SEVERAL) else [finding]
    if not possible:
        raise ValueError(f"no state of {name!r} is left possible; name at least one, or leave it out")
    for state in possible:
        likelihood[state_code(name, state, states)] = 1
    return likelihood


def read_rows(
    table: Any, states: Mapping[str, States], variables: Sequence[str], ignored: str | None = None
) -> tuple[Array, Array]:
    """Read a table of cases.

    Parameters
    ----------
    table : table (n, d)
        Any data frame whose columns have the names of the variables, in any order; or an array with one column per
        variable, in the order of the network.
    states : mapping from str to tuple of states
        The states of the discrete variables.
    variables : sequence of str
        All variables; those without states are continuous.
    ignored : str, optional
        A variable whose column is not read.

    Returns
    -------
    codes : ndarray of int (n, number of discrete variables)
        −1 where a cell is missing or a variable has no column.
    numbers : ndarray (n, number of continuous variables)
        NaN there.

    Raises
    ------
    ValueError
        A column is no variable, a cell no state of its variable, or a continuous column holds no numbers.
    """
    records = read_records(table, tuple(variables), "the network")
    opened = read_table(table) if records is None else records
    names = opened.names if opened.named else tuple(variables)
    if len(names) != len(opened.names):
        raise ValueError(
            f"the table has {len(opened.names)} columns without names, but the network has {len(variables)} variables; "
            "name the columns, or give one for each variable"
        )
    for name in names:
        if name not in variables:
            raise ValueError(f"column {name!r} is no variable of the network; {closest(name, variables)}, or drop it")
    used = [j for j, name in enumerate(names) if name != ignored]
    codes = _codes(opened, {j: names[j] for j in used if names[j] in states}, states)
    return codes, _numbers(opened, names, used, [name for name in variables if name not in states])


def _codes(opened: Any, used: Mapping[int, str], states: Mapping[str, States]) -> Array:
    columns = tuple(_column(name, states[name], tuple(map(type, states[name]))) for name in used.values())
    try:
        table_codes, unseen = opened.codes(list(used), Schema(columns), columns, slice(0, opened.n_rows))
    except ValueError:  # no cell of a column has the type of the states: search all columns for the culprit
        unseen = {column.name: 1 for column in columns}
    if unseen:
        for j, column in zip(used, columns, strict=True):
            seen = opened.column(j, categorical=True) if column.name in unseen else column
            if any(cell not in column.lookup for cell in seen.categories):
                raise _unseen_category(seen, column)
    codes = np.full((opened.n_rows, len(states)), -1, np.int64)
    positions = {name: position for position, name in enumerate(states)}
    codes[:, [positions[name] for name in used.values()]] = table_codes.astype(np.int64) - 1
    return codes


def _numbers(opened: Any, names: Sequence[str], used: Sequence[int], continuous: Sequence[str]) -> Array:
    numbers = np.full((opened.n_rows, len(continuous)), np.nan)
    for j in used if continuous else ():
        if names[j] not in continuous:
            continue
        name = names[j]
        if opened.column(j, categorical=False).kind != "continuous":
            raise ValueError(f"column {name!r} holds no numbers, but the variable is continuous; convert it")
        cells = opened.numbers([j], [Column(name, "continuous")], slice(0, opened.n_rows))[:, 0]
        if np.isinf(cells).any():
            raise ValueError(f"column {name!r} holds an infinite number; leave such cells empty")
        numbers[:, continuous.index(name)] = cells
    return numbers


@functools.lru_cache(maxsize=4096)
def _column(name: str, states: States, kinds: tuple[type, ...]) -> Column:
    """Return a variable as a column, with look-ups that are kept from one table to the next.

    The types are part of the cache key, because True == 1 and both would find the same entry.
    """
    del kinds
    return Column(name, "categorical", states, declared=True)


def _unseen_category(seen: Column, column: Column) -> ValueError:
    name, states = column.name, column.categories
    cell = next((cell for cell in seen.categories if cell not in column.lookup), None)
    if isinstance(cell, float) and cell.is_integer():
        cell = int(cell)
    return ValueError(f"column {name!r} holds {cell!r}, which is no state of {name!r}; {closest(cell, states)}")
