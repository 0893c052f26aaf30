"""What network formats share: their declaration, errors with lines, tables, and identifiers."""

from __future__ import annotations

import math
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posteriori.networks.graph.cpt import CPT, ROUNDING, as_numbers, cell_count, how_to_set, rounding_error
from posteriori.networks.graph.naming import States, first_repeated, state_by_state
from posteriori.networks.network import BayesianNetwork
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array

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


@dataclass(frozen=True)
class Format:
    """A format of network files.

    Attributes
    ----------
    suffixes : tuple of str
        The endings of its files.
    write : callable
        Returns a network as text.
    read : callable or None
        Returns the network of a text, or of the root element if it is XML. None: it cannot be read back.
    begins : tuple of str
        The first words of its files; ``<`` and the tag of the root in capitals if it is XML.
    continuous : bool
        Whether it holds continuous variables.
    """

    suffixes: tuple[str, ...]
    write: Callable[[BayesianNetwork], str]
    read: Callable[[Any, Reading], BayesianNetwork] | None
    begins: tuple[str, ...] = ()
    continuous: bool = False


_IDENTIFIER = re.compile(r"[A-Za-z][A-Za-z0-9_]*")
_LONGEST = 30  # letters of a name in Netica
_SPOKEN = {"<": "lt_", ">": "gt_", "<=": "le_", ">=": "ge_", "+": "plus_"}
_RESERVED = frozenset({"net", "bnet", "class", "node", "potential", "decision", "utility", "function", "instance"})
_RESERVED |= {"discrete", "continuous", "visual", "states", "probs"}


def identifiers(names: Iterable[str]) -> dict[str, str]:
    """Return a different identifier for each name, of at most 30 letters: the name itself if it is one."""
    listed = list(names)
    found = {name: name for name in listed if _is_identifier(name)}
    taken = set(found)
    last: dict[str, int] = {}
    for name in listed:
        if name in found:
            continue
        base = _spelled(name)[: _LONGEST - 8]
        candidate, k = base, last.get(base, 1)
        while candidate in taken or not _is_identifier(candidate):
            k += 1
            candidate = f"{base}_{k}"
        last[base] = k
        taken.add(candidate)
        found[name] = candidate
    return found


def _is_identifier(name: str) -> bool:
    return len(name) <= _LONGEST and _IDENTIFIER.fullmatch(name) is not None and name.lower() not in _RESERVED


def _spelled(name: str) -> str:
    spoken = re.sub(r"[<>]=?|\+", lambda match: _SPOKEN[match[0]], name)
    letters = unicodedata.normalize("NFKD", spoken).encode("ascii", "ignore").decode()
    word = re.sub(r"[^A-Za-z0-9]+", "_", letters).strip("_")
    return word if word[:1].isalpha() else f"n{word}"


def renamed(cpts: Sequence[CPT], names: Mapping[str, str], states: Mapping[str, States]) -> Iterator[CPT]:
    """Yield tables with other names; a table is checked when it is asked for.

    Parameters
    ----------
    cpts : sequence of CPT
    names : mapping from str to str
        The new name of each variable.
    states : mapping from str to tuple of states
        The new states of each variable, by its old name.
    """
    for cpt in cpts:
        parents = {names[parent]: states[parent] for parent in cpt.parents}
        yield CPT(names[cpt.variable], states[cpt.variable], parents, cpt.probabilities)


def lines_of(properties: Sequence[str]) -> str:
    """Return properties as one text, a line for each."""
    return "\n".join(text.replace("\\", "\\\\").replace("\n", "\\n") for text in properties)


def properties_of(text: str) -> list[str]:
    """Return the properties that `lines_of` was given."""
    return [re.sub(r"\\(.)", lambda match: "\n" if match[1] == "n" else match[1], line) for line in text.split("\n")]


def rows_as_text(cpt: CPT, between: str = " ") -> list[str]:
    """Return the rows of a table with every digit of their numbers, the last parent varying fastest."""
    return [between.join(map(repr, row)) for row in cpt.probabilities.reshape(-1, len(cpt.states)).tolist()]


def require_names(variables: Sequence[str], suffix: str) -> None:
    """Raise ValueError if a variable has no name: its properties would be those of the network."""
    if "" in variables:
        raise ValueError(f"a variable without a name cannot be written in {suffix}; name it")


def states_as_text(variable: str, states: States) -> list[str]:
    """Return the states of a variable as text; ValueError if two have the same."""
    texts = [str(state) for state in states]
    if len(set(texts)) < len(texts):
        raise ValueError(f"two states of {variable!r} would both be written {first_repeated(texts)!r}; rename one")
    return texts
