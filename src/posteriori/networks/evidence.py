"""Evidence (observed findings): about one case from a mapping, about many from a table with missing cells."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.networks.naming import States, require_findings, require_variable, state_code
from posteriori.suggestions import closest
from posteriori.tables import Column, Schema, read_table
from posteriori.tables.missing import is_missing
from posteriori.tables.records import read_records
from posteriori.typing import Array

_SEVERAL = (set, frozenset, list, tuple, Mapping)  # kinds of findings that name more than one state


@dataclass(frozen=True)
class Evidence:
    """Likelihoods of the states of the variables with a finding, for one case.

    Attributes
    ----------
    states : dict from str to tuple of states
        The states of all variables of the network.
    likelihoods : dict from str to ndarray (K,)
        Non-negative, not all 0; a known state has likelihood 1 and the others 0.
    """

    states: Mapping[str, States]
    likelihoods: dict[str, Array]

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
        for position, name in enumerate(self.states):
            likelihood = self.likelihoods.get(name)
            if likelihood is None:
                continue
            numbers: list[float] = likelihood.tolist()
            # A single likelihood other than 1 scales p(evidence), so that the finding has to stay soft.
            if numbers.count(0.0) == len(numbers) - 1 and max(numbers) == 1.0:
                hard[position] = numbers.index(1.0)
            else:
                soft[position] = likelihood
        return hard, soft

    def __and__(self, other: Evidence) -> Evidence | None:
        """Return the evidence of both; None if they contradict each other about a variable."""
        both = dict(self.likelihoods)
        for name, likelihood in other.likelihoods.items():
            both[name] = both[name] * likelihood if name in both else likelihood
            if not both[name].any():
                return None
        return Evidence(self.states, both)


def read_evidence(evidence: Mapping[str, Any] | None, states: Mapping[str, States]) -> Evidence:
    """Read evidence about one case.

    Parameters
    ----------
    evidence : mapping, optional
        From variable to its state; to a set or list of states, one of which it has; or to a mapping from every state
        to its likelihood. None or NaN means that the state is unknown.
    states : mapping from str to tuple of states
        The states of all variables of the network.

    Raises
    ------
    TypeError
        The evidence is no mapping.
    ValueError
        There is no such variable or state, or a likelihood is negative, infinite or 0 for every state.
    """
    if evidence is None:
        evidence = {}
    require_findings("evidence", evidence)
    likelihoods: dict[str, Array] = {}
    for name, finding in evidence.items():
        require_variable(name, states)
        if isinstance(finding, _SEVERAL) or not is_missing(finding):
            likelihoods[name] = _likelihood(name, finding, states[name])
    return Evidence(states, likelihoods)


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


def read_codes(table: Any, states: Mapping[str, States], ignored: str | None = None) -> Array:
    """Read a table of cases as codes of states, (n, V); −1 where a cell is missing or a variable has no column.

    Parameters
    ----------
    table : table (n, d)
        Any data frame whose columns have the names of the variables, in any order; or an array with one column per
        variable, in the order of the network.
    states : mapping from str to tuple of states
        The states of all variables of the network.
    ignored : str, optional
        A variable whose column is not read.

    Raises
    ------
    ValueError
        A column is no variable, or a cell no state of its variable.
    """
    records = read_records(table, tuple(states), "the network")
    opened = read_table(table) if records is None else records
    names = opened.names if opened.named else tuple(states)
    if len(names) != len(opened.names):
        raise ValueError(
            f"the table has {len(opened.names)} columns without names, but the network has {len(states)} variables; "
            "name the columns, or give one for each variable"
        )
    for name in names:
        if name not in states:
            raise ValueError(f"column {name!r} is no variable of the network; {closest(name, states)}, or drop it")
    used = [j for j, name in enumerate(names) if name != ignored]
    columns = tuple(_column(names[j], states[names[j]], tuple(map(type, states[names[j]]))) for j in used)
    all_rows = slice(0, opened.n_rows)
    try:
        table_codes, unseen = opened.codes(used, Schema(columns), columns, all_rows)
    except ValueError:  # no cell of a column has the type of the states: search all columns for the culprit
        unseen = {column.name: 1 for column in columns}
    if unseen:
        for j, column in zip(used, columns, strict=True):
            seen = opened.column(j, categorical=True) if column.name in unseen else column
            if any(cell not in column.lookup for cell in seen.categories):
                raise _unseen_category(seen, column)
    codes = np.full((opened.n_rows, len(states)), -1, np.int64)
    positions = {name: position for position, name in enumerate(states)}
    codes[:, [positions[column.name] for column in columns]] = table_codes.astype(np.int64) - 1
    return codes


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
