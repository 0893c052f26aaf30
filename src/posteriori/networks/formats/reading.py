"""Common parts of network formats: their declaration, errors with lines, tables, and identifiers."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence, Sized
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posteriori.networks.graph.cpt import CPT, ROUNDING, as_numbers, cell_count, how_to_set, rounding_error
from posteriori.networks.graph.naming import States, first_repeated, state_by_state
from posteriori.networks.network import BayesianNetwork
from posteriori.support.suggestions import closest
from posteriori.support.typing import Array
from posteriori.tables import Cell
from posteriori.user_warnings import warn

MAX_TABLE_SIZE = 2**27
ROUNDEST = 1e-3  # a row that misses 1 by more than this is a mistake more often than it is rounded

Fill = Callable[[tuple[int, ...]], Array]  # from the shape of a table to its numbers; an axis for each parent, first


class LineError(ValueError):
    """A problem in a line of its own, not in that of the table that it belongs to."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


@dataclass
class DeclaredVariable:
    """A variable as it stands in a file.

    Attributes
    ----------
    name : str
        As the tables of the file refer to it.
    line, table_line : int
        Of its declaration, and of its table.
    states : sequence of states
    parents : sequence of str
        The slowest first.
    table : callable or None
        Returns its numbers once the states of the parents are known.
    title, state_titles : str or None, sequence of str
        What it and its states are called, if `name` and `states` are identifiers in their place.
    properties : list of str
    """

    name: str
    line: int
    states: Sequence[Cell] = ()
    parents: Sequence[str] = ()
    table: Fill | None = None
    table_line: int = 0
    title: str | None = None
    state_titles: Sequence[str] = ()
    properties: list[str] = field(default_factory=list)

    @property
    def called(self) -> str:
        """Its name in the network."""
        return self.name if self.title is None else self.title

    @property
    def called_states(self) -> States:
        """Its states in the network."""
        return tuple(self.state_titles or self.states)


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
    nodes : dict from str to DeclaredVariable
        The variables that were declared so far.
    """

    shown: str
    tolerance: float | None = None
    max_table_size: int = MAX_TABLE_SIZE
    nodes: dict[str, DeclaredVariable] = field(default_factory=dict)
    _rescaled: dict[str, int] = field(default_factory=dict)
    _furthest: float = 0.0

    def fail(self, line: int, problem: str) -> Exception:
        """Return the error about a line."""
        if len(problem) > 1000:  # it quotes a name or number of thousands of characters
            problem = f"{problem[:600]}…{problem[-300:]}"
        return ValueError(f"{self.shown}, line {line}: {problem}")

    def declare(self, name: str, line: int) -> DeclaredVariable:
        """Return the node of a variable that is declared in a line; ValueError if it has no name or had one before."""
        if not name:
            raise self.fail(line, "a variable has an empty name; name it")
        if name in self.nodes:
            raise self.fail(line, f"the variable {name!r} is declared twice")
        node = self.nodes[name] = DeclaredVariable(name, line, table_line=line)
        return node

    def node(self, name: str, line: int) -> DeclaredVariable:
        """Return a variable that a line names; ValueError if it was not declared."""
        if name not in self.nodes:
            raise self.fail(line, f"there is no variable {name!r}; {closest(name, self.nodes)}")
        return self.nodes[name]

    def network(self, name: str = "", properties: Sequence[str] = ()) -> BayesianNetwork:
        """Return the network of the variables that were declared; ValueError with a line if they do not fit."""
        if not self.nodes:
            raise self.fail(1, "there is no variable")
        for node in self.nodes.values():
            if not node.states:
                raise self.fail(node.line, f"the variable {node.name!r} has no states")
            if len(set(node.states)) < len(node.states):
                problem = f"the state {first_repeated(node.states)!r} of {node.name!r} occurs twice; name it once"
                raise self.fail(node.line, problem)
        nodes, cpts = list(self.nodes.values()), []
        for node in nodes:
            parents = [self.node(parent, node.table_line) for parent in node.parents]
            try:
                cpts.append(self._cpt_of(node, parents))
            except ValueError as error:
                raise self.fail(getattr(error, "line", node.table_line), str(error)) from None
        try:
            return BayesianNetwork(
                variables=[node.called for node in nodes],
                cpts=cpts,
                name=name,
                properties={"": properties} | {node.called: node.properties for node in nodes},
                max_table_size=self.max_table_size,
            )
        except ValueError as error:
            raise self.fail(1, str(error)) from None

    def _cpt_of(self, node: DeclaredVariable, parents: Sequence[DeclaredVariable]) -> CPT:
        if len({node.name, *node.parents}) <= len(parents):
            raise ValueError(f"a variable occurs twice among {node.name!r} and its parents")
        if node.table is None:
            raise ValueError(f"the variable {node.name!r} has no probabilities")
        table = node.table(self.table_shape(node.name, [one.states for one in parents], node.states))
        return self.cpt(node.called, node.called_states, {one.called: one.called_states for one in parents}, table)

    def table_shape(self, variable: str, parents: Collection[Sized], states: Sized) -> tuple[int, ...]:
        """Return the shape of a table from the states of the parents and the variable, which has the last axis.

        Raises
        ------
        ValueError
            It has more than max_table_size cells. The message has no line; the caller adds it.
        """
        shape = (*map(len, parents), len(states))
        size = math.prod(shape)
        if size > self.max_table_size:
            raise ValueError(
                f"the table of {variable!r} given {len(parents)} parents has {cell_count(size)}, more than "
                f"max_table_size = {self.max_table_size:,}; {how_to_set('max_table_size', size)}"
            )
        return shape

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
        allowed = f"rounding explains, or than {ROUNDEST:g}"
        if self.tolerance is not None:
            allowed = f"tolerance = {self.tolerance:g} allows"
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
        warn(
            f"{self.shown}: {rows} {of} {verb} to 1 only within {self._furthest:.1e}, being rounded; "
            f"{'it was' if n == 1 else 'each was'} divided by {'its' if n == 1 else 'their'} sum"
        )


def _rounded_up(value: float) -> float:
    power = 10.0 ** math.floor(math.log10(value))
    return math.ceil(value / power + 1e-9) * power


def numbers(node: DeclaredVariable, words: Sequence[str], line_of: Callable[[int], int] | None = None) -> Fill:
    """Return the reader of a table from its numbers, the node fastest and its first parent slowest.

    Parameters
    ----------
    node : DeclaredVariable
    words : sequence of str
    line_of : callable, optional
        From the position of a word to its line; by default that of the table.
    """

    def fill(shape: tuple[int, ...]) -> Array:
        if len(words) != math.prod(shape):
            raise ValueError(f"the table of {node.name!r} has {len(words)} numbers; it needs {math.prod(shape)}")

        def fail(word: str) -> Exception:
            line = line_of(words.index(word)) if line_of else node.table_line
            return LineError(f"the table of {node.name!r} holds {word!r}, which is no number", line)

        return np.array(as_numbers(words, fail)).reshape(shape)

    return fill


def choices(node: DeclaredVariable, words: Sequence[Any], line_of: Callable[[int], int] | None = None) -> Fill:
    """Return the reader of the table of a deterministic node from its state for each configuration, as `numbers`."""

    def fill(shape: tuple[int, ...]) -> Array:
        if len(words) != math.prod(shape[:-1]):
            raise ValueError(f"the table of {node.name!r} has {len(words)} states; it needs {math.prod(shape[:-1])}")
        codes: dict[Any, int] = {state: code for code, state in enumerate(node.states)}
        table = np.zeros((len(words), len(codes)))
        for row, word in enumerate(words):
            if word not in codes:
                problem = f"{node.name!r} has no state {word!r}; {closest(word, node.states)}"
                raise LineError(problem, line_of(row) if line_of else node.table_line)
            table[row, codes[word]] = 1.0
        return table.reshape(shape)

    return fill


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
