"""What the readers share: errors with lines, tables from numbers as text, rounded rows, limits of size, the network."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from posteriori.networks.graph.cpt import CPT, ROUNDING
from posteriori.networks.graph.decimals import as_numbers, cell_count, how_to_set, rounding_error
from posteriori.networks.graph.naming import States, state_by_state
from posteriori.networks.network import BayesianNetwork
from posteriori.suggestions import closest
from posteriori.typing import Array

MAX_TABLE_SIZE = 2**27
ROUNDEST = 1e-3  # a row that misses 1 by more than this is a mistake more often than it is rounded

WordError = Callable[[str, int], Exception]  # from a problem and the position of the word that has it


def _without_line(problem: str, position: int) -> Exception:
    return ValueError(problem)


@dataclass
class Reading:
    """How a network file is read, and which rows of its tables had to be divided by their sum.

    Attributes
    ----------
    shown : str
        The file, as errors name it.
    tolerance : float or None
        By how much the sum of a row may differ from 1. None: by what rounding to the digits of the row explains, and
        at most 0.001.
    max_table_size : int
        The most cells that one table may have.
    """

    shown: str
    tolerance: float | None = None
    max_table_size: int = MAX_TABLE_SIZE
    _rescaled: dict[str, int] = field(default_factory=dict)
    _furthest: float = 0.0

    def fail(self, line: int, problem: str) -> Exception:
        """Return the error about a line."""
        if len(problem) > 1000:  # it quotes a name or number of thousands of characters
            problem = f"{problem[:600]}…{problem[-300:]}"
        return ValueError(f"{self.shown}, line {line}: {problem}")

    def network(
        self,
        line: int,
        variables: Iterable[str] | Mapping[str, States],
        cpts: Iterable[CPT],
        name: str = "",
        properties: Mapping[str, Sequence[str]] | None = None,
    ) -> BayesianNetwork:
        """Return the network of what was read; the error about a line if its parts do not fit."""
        try:
            return BayesianNetwork(
                variables=variables,
                cpts=tuple(cpts),
                name=name,
                properties=properties,
                max_table_size=self.max_table_size,
            )
        except ValueError as error:
            raise self.fail(line, str(error)) from None

    def table_shape(self, variable: str, parents: Mapping[str, States], states: States) -> tuple[int, ...]:
        """Return the shape of a table, an axis for each parent and the last for the variable.

        Raises
        ------
        ValueError
            It has more than max_table_size cells. The message has no line; the caller adds it.
        """
        shape = (*map(len, parents.values()), len(states))
        size = math.prod(shape)
        if size > self.max_table_size:
            raise ValueError(
                f"the table of {variable!r} given {len(parents)} parents has {cell_count(size)}, more than "
                f"max_table_size = {self.max_table_size:,}; {how_to_set('max_table_size', size)}"
            )
        return shape

    @staticmethod
    def parents(variable: str, names: Sequence[str], states: Mapping[str, States], kind: str) -> dict[str, States]:
        """Return the states of the parents; ValueError, without a line, if one is unknown or occurs twice."""
        for name in (variable, *names):
            if name not in states:
                raise ValueError(f"there is no {kind} {name!r}; {closest(name, states)}")
        if len({variable, *names}) <= len(names):
            raise ValueError(f"a {kind} occurs twice among {variable!r} and its parents")
        return {name: states[name] for name in names}

    def cpt_of_choices(
        self,
        variable: str,
        states: States,
        parents: Mapping[str, States],
        words: Sequence[str],
        fail: WordError = _without_line,
    ) -> CPT:
        """Return the CPT of a deterministic variable, from its state for each configuration, as `cpt_of_words`."""
        shape = self.table_shape(variable, parents, states)
        if len(words) != math.prod(shape[:-1]):
            raise ValueError(f"the table of {variable!r} has {len(words)} states; it needs {math.prod(shape[:-1])}")
        codes = {state: code for code, state in enumerate(states)}
        table = np.zeros((len(words), len(states)))
        for row, word in enumerate(words):
            if word not in codes:
                raise fail(f"{variable!r} has no state {word!r}; {closest(word, states)}", row)
            table[row, codes[word]] = 1.0
        return CPT(variable, states, parents, table.reshape(shape))

    def cpt_of_words(
        self,
        variable: str,
        states: States,
        parents: Mapping[str, States],
        words: Sequence[str],
        fail: WordError = _without_line,
    ) -> CPT:
        """Return the CPT of numbers as text, the variable fastest and its first parent slowest.

        Parameters
        ----------
        variable : str
        states : tuple of states
        parents : mapping from str to tuple of states
        words : sequence of str
        fail : callable, optional
            The error about the word at a position. By default, its message has no line, as those of `cpt`.
        """
        shape = self.table_shape(variable, parents, states)
        if len(words) != math.prod(shape):
            raise ValueError(f"the table of {variable!r} has {len(words)} numbers; it needs {math.prod(shape)}")
        values = as_numbers(
            words,
            lambda word: fail(f"the table of {variable!r} holds {word!r}, which is no number", words.index(word)),
        )
        return self.cpt(variable, states, parents, np.array(values).reshape(shape))

    def cpt(self, variable: str, states: States, parents: Mapping[str, States], table: Array) -> CPT:
        """Return a CPT, its rows divided by their sums where these are near enough to 1.

        Raises
        ------
        ValueError
            A row has no probabilities or does not sum to 1. The message has no line; the caller adds it.
        """
        with np.errstate(invalid="ignore", over="ignore"):
            sums = table.sum(axis=-1)
        off = np.abs(sums - 1)
        if np.all(off <= ROUNDING):  # as nearly all tables; those with absent rows, NaN, are none of them
            return CPT(variable, states, parents, table)
        absent = np.argwhere(np.isnan(table))
        if len(absent):
            where = ", ".join(str(known[k]) for known, k in zip(parents.values(), absent[0], strict=False))
            raise ValueError(f"{variable!r} has no probabilities" + (f" for ({where})" if parents else ""))
        valid = np.isfinite(table).all(axis=-1) & (table >= 0).all(axis=-1)  # CPT names what is not
        for position in map(tuple, np.argwhere(valid & (off > ROUNDING))):
            allowed = self.tolerance if self.tolerance is not None else min(ROUNDEST, rounding_error(table[position]))
            if not off[position] <= allowed:
                raise ValueError(self._off(variable, parents, position, float(sums[position])))
            table[position] /= sums[position]
            self._rescaled[variable] = self._rescaled.get(variable, 0) + 1
            self._furthest = max(self._furthest, float(off[position]))
        return CPT(variable, states, parents, table)

    def _off(self, variable: str, parents: Mapping[str, States], position: tuple[int, ...], total: float) -> str:
        where = f" where {state_by_state(parents, position)}" if parents else ""
        allowed = "rounding explains" if self.tolerance is None else f"tolerance = {self.tolerance:g} allows"
        advice = f", or {how_to_set('tolerance', _rounded_up(abs(total - 1)))}" if 0 < total < math.inf else ""
        return (
            f"the table of {variable!r} sums to {total:.9g}{where}; each row must sum to 1, and this is further off "
            f"than {allowed}; correct the row{advice}"
        )

    def warn(self) -> None:
        """Warn of the rows that were divided by their sum, unless the caller has set a tolerance."""
        if not self._rescaled or self.tolerance is not None:
            return
        n, tables = sum(self._rescaled.values()), list(self._rescaled)
        of = f"the table of {tables[0]!r}" if len(tables) == 1 else f"{len(tables)} tables, {tables[0]!r} first,"
        rows = "1 row of" if n == 1 else f"{n:,} rows of"
        verb = "sums" if n == 1 else "sum"
        warnings.warn(
            f"{self.shown}: {rows} {of} {verb} to 1 only within {self._furthest:.1e}, being rounded; "
            f"{'it was' if n == 1 else 'each was'} divided by {'its' if n == 1 else 'their'} sum",
            UserWarning,
            stacklevel=3,
        )


def _rounded_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / power + 1e-9) * power
