"""The Interchange Format for Bayesian networks, BIF 0.15, as text."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from posteriori.networks.cpt import CPT
from posteriori.networks.decimals import as_numbers
from posteriori.networks.naming import States, first_repeated
from posteriori.networks.network import BayesianNetwork
from posteriori.networks.reading import Reading
from posteriori.suggestions import closest, similar
from posteriori.typing import Array

# A comment ends a word, a single slash does not: Asy/Patch is one state. One that is never closed goes to the end.
_COMMENT = re.compile(r'"[^"]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_PROPERTY = re.compile(r'\s*((?:"[^"]*"|[^;"]+)*+);')
_COUNT = re.compile(r"[0-9]{1,9}")
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|([{}()\[\];,|])|([^\s"{}()\[\];,|]+))')
_PLAIN = re.compile(r'(?!.*(?://|/\*))[^\s"{}()\[\];,|]+')
_WORD, _QUOTED, _MARK, _END = "word", "quoted", "mark", "end"


@dataclass
class Definition:
    """A probability block as it is read, before all variables are known.

    Attributes
    ----------
    position : int
        Where it starts in the text.
    table : list of float or None
    default : list of float or None
    rows : list
        Of the parents' states, the numbers, and the place in the text.
    """

    variable: str
    parents: tuple[str, ...]
    position: int
    table: list[float] | None = None
    default: list[float] | None = None
    rows: list[tuple[list[str], list[float], int]] = field(default_factory=list)


def read_bif(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network from BIF.

    Parameters
    ----------
    text : str
    reading : Reading
        Which rows to accept, and the errors to raise.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks.
    """
    return _Reader(text, reading).network()


class _Reader:
    """Reads tokens one after the other; place is where it has come to in the text."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._reading = reading
        self.text = text
        self.position = 0
        if "//" in text or "/*" in text:
            self.text = _COMMENT.sub(self._without_comment, text)
        self.name = ""
        self.properties: dict[str, list[str]] = {}
        self.states: dict[str, States] = {}
        self.definitions: dict[str, Definition] = {}

    def _without_comment(self, found: re.Match[str]) -> str:
        """Return quoted text as it is, a comment as the line ends that it holds."""
        if found[0][:2] == "/*" and (len(found[0]) < 4 or found[0][-2:] != "*/"):
            raise self.error("a comment is opened by /* and never closed", found.start())
        return found[0] if found[0][0] == '"' else " " + "\n" * found[0].count("\n")

    # Tokens -----------------------------------------------------------------------------------------------------

    def error(self, problem: str, position: int | None = None) -> Exception:
        position = self.position if position is None else position
        return self._reading.fail(self.text.count("\n", 0, position) + 1, problem)

    def peek(self) -> tuple[str, str, int]:
        """Return the kind of the next token, the token, and where it ends."""
        found = _TOKEN.match(self.text, self.position)
        if found is None:
            rest = self.text[self.position :].lstrip()
            if rest:
                raise self.error("a quotation mark is opened and never closed", len(self.text) - len(rest))
            return _END, "the end of the file", len(self.text)
        kind = (_QUOTED, _MARK, _WORD)[found.lastindex - 1]  # type: ignore[operator]
        return kind, found[found.lastindex or 0], found.end()

    def take(self) -> tuple[str, str]:
        kind, token, self.position = self.peek()
        return kind, token

    def expect(self, mark: str, where: str) -> None:
        kind, token, end = self.peek()
        if kind != _MARK or token != mark:
            raise self._unexpected(f"expected {mark!r} {where}", kind, token, end)
        self.position = end

    def word(self, what: str) -> str:
        kind, token, end = self.peek()
        if kind not in (_WORD, _QUOTED):
            raise self._unexpected(f"expected {what}", kind, token, end)
        self.position = end
        return token

    def _unexpected(self, expected: str, kind: str, token: str, end: int) -> Exception:
        found = token if kind == _END else repr(token)
        return self.error(f"{expected}, found {found}", end - len(token) if kind != _END else len(self.text.rstrip()))

    def is_next(self, mark: str) -> bool:
        kind, token, end = self.peek()
        if kind == _MARK and token == mark:
            self.position = end
            return True
        return False

    def listed(self, close: str, what: str, count: int | None = None) -> list[str]:
        """Return words up to a closing mark; those between two commas are one name if that gives the right count."""
        groups: list[list[str]] = [[]]
        while not self.is_next(close):
            if self.is_next(","):
                groups.append([])
            else:
                groups[-1].append(self.word(f"{what} or {close!r}"))
        words = [word for group in groups for word in group]
        if count is not None and len(words) != count:
            joined = [" ".join(group) for group in groups if group]
            return joined if len(joined) == count else words
        return words

    def numbers(self, what: str) -> list[float]:
        """Return the numbers up to the next semicolon."""
        end = self.text.find(";", self.position)
        if end < 0:
            raise self.error(f"expected ';' after {what}, found the end of the file", len(self.text.rstrip()))
        words = self.text[self.position : end].replace(",", " ").split()

        def fail(word: str) -> Exception:
            return self.error(f"expected a number or ';' in {what}, found {word!r}", self._place_of(word))

        found = as_numbers(words, fail)
        self.position = end + 1
        return found

    def _place_of(self, word: str) -> int:
        """Return where a word next occurs that is not part of a longer one."""
        alone = re.search(rf"(?<![^\s,]){re.escape(word)}(?![^\s,;])", self.text[self.position :])
        return self.position + (alone.start() if alone else 0)

    def property(self, owner: str) -> None:
        """Keep a property: whatever stands up to the next semicolon outside quotes."""
        found = _PROPERTY.match(self.text, self.position)
        if found is None:
            raise self.error("expected ';' after a property")
        self.properties.setdefault(owner, []).append(found[1].rstrip())
        self.position = found.end()

    # Blocks -----------------------------------------------------------------------------------------------------

    def network(self) -> BayesianNetwork:
        blocks = {"network": self.network_block, "variable": self.variable_block, "probability": self.probability_block}
        while True:
            start = self.position
            kind, token = self.take()
            if kind == _END:
                break
            block = blocks.get(token) if kind == _WORD else None
            if block is None:
                near = similar(token, blocks)
                hint = f"; did you mean {near!r}?" if near else ""
                start += len(self.text[start:]) - len(self.text[start:].lstrip())
                raise self.error(f"expected 'network', 'variable' or 'probability', found {token!r}{hint}", start)
            block()
        if not self.states:
            raise self.error("there is no variable")
        for name in self.states:
            if name not in self.definitions:
                raise self.error(f"the variable {name!r} has no probability block")
        cpts = [self._cpt(self.definitions[name]) for name in self.states]
        try:
            return BayesianNetwork(
                variables=self.states,
                cpts=cpts,
                name=self.name,
                properties=self.properties,
                max_table_size=self._reading.max_table_size,
            )
        except ValueError as error:
            raise self.error(str(error)) from None

    def network_block(self) -> None:
        name = self.word("the name of the network")
        self.name = "" if name == "unknown" else name
        self.expect("{", "after the name of the network")
        while not self.is_next("}"):
            word = self.word("'property' or '}'")
            if word != "property":
                raise self.error(f"expected 'property' or '}}' in the network block, found {word!r}", self.position)
            self.property("")

    def variable_block(self) -> None:
        name = self.word("the name of a variable")
        if not name:
            raise self.error("a variable has an empty name; name it")
        if name in self.states:
            raise self.error(f"the variable {name!r} is declared twice")
        self.expect("{", f"after the name {name!r}")
        states: list[str] | None = None
        while not self.is_next("}"):
            word = self.word(f"'type', 'property' or '}}' in the block of {name!r}")
            if word == "property":
                self.property(name)
            elif word == "type":
                states = self._states(name)
            else:
                raise self.error(f"expected 'type', 'property' or '}}' in the block of {name!r}, found {word!r}")
        if states is None:
            raise self.error(f"the variable {name!r} has no type; write: type discrete [ 2 ] {{ yes, no }};")
        self.states[name] = tuple(states)

    def _states(self, name: str) -> list[str]:
        kind = self.word(f"the type of {name!r}")
        if kind != "discrete":
            raise self.error(f"the variable {name!r} is {kind}; only discrete ones are read")
        self.expect("[", f"after the type of {name!r}")
        written = self.word(f"the number of states of {name!r}")
        if not _COUNT.fullmatch(written):
            raise self.error(f"the number of states of {name!r} is {written!r}; write it as a whole number")
        self.expect("]", f"after the number of states of {name!r}")
        self.expect("{", f"before the states of {name!r}")
        states = self.listed("}", f"a state of {name!r}", int(written))
        if len(states) != int(written):
            raise self.error(f"{name!r} says that it has {written} states but lists {len(states)}")
        if len(set(states)) < len(states):
            raise self.error(f"the state {first_repeated(states)!r} of {name!r} occurs twice")
        self.expect(";", f"after the states of {name!r}")
        return states

    def probability_block(self) -> None:
        start = self.position
        self.expect("(", "after 'probability'")
        names: list[str] = []
        while not self.is_next(")"):
            if self.is_next("|"):
                if len(names) != 1:
                    raise self.error(f"expected one variable before '|', found {len(names)}")
            elif not self.is_next(","):
                names.append(self.word("the name of a variable or ')'"))
        if not names:
            raise self.error("expected the name of a variable, found ')'")
        variable, *parents = names
        if variable in self.definitions:
            raise self.error(f"{variable!r} has two probability blocks")
        found = self.definitions[variable] = Definition(variable, tuple(parents), start)
        self.expect("{", f"after the head of the block of {variable!r}")
        while not self.is_next("}"):
            if self.is_next("("):
                position = self.position
                configuration = self._configuration(len(parents), variable)
                found.rows.append((configuration, self.numbers(f"a row of {variable!r}"), position))
                continue
            word = self.word(f"'table', 'default', '(' or '}}' in the block of {variable!r}")
            if word == "table":
                found.table = self.numbers(f"the table of {variable!r}")
            elif word == "default":
                found.default = self.numbers(f"the default of {variable!r}")
            elif word == "property":
                self.property(variable)
            else:
                raise self.error(
                    f"expected 'table', 'default', '(' or '}}' in the block of {variable!r}, found {word!r}"
                )

    def _configuration(self, count: int, variable: str) -> list[str]:
        """Return the parents' states that name a row; most are plain words, which are split at once."""
        end = self.text.find(")", self.position)
        plain = self.text[self.position : end]
        if end >= 0 and '"' not in plain:
            words = [word.strip() for word in plain.split(",")]
            if len(words) == count and not any(mark in plain for mark in ";{}(["):
                self.position = end + 1
                return words
        return self.listed(")", f"a state of a parent of {variable!r}", count)

    # Tables -----------------------------------------------------------------------------------------------------

    def _cpt(self, found: Definition) -> CPT:
        for name in (found.variable, *found.parents):
            if name not in self.states:
                raise self.error(f"there is no variable {name!r}; {closest(name, self.states)}", found.position)
        parents = {name: self.states[name] for name in found.parents}
        if len(parents) < len(found.parents) or found.variable in parents:
            raise self.error(f"a variable occurs twice in the head of the block of {found.variable!r}", found.position)
        states = self.states[found.variable]
        try:
            shape = self._reading.table_shape(found.variable, parents, states)
        except ValueError as error:
            raise self.error(str(error), found.position) from None
        table = np.full(shape, np.nan)
        if found.default is not None:
            table[...] = self._sized(found.default, len(states), found, found.position, "default")
        if found.table is not None:
            values = self._sized(found.table, table.size, found, found.position, "table")
            # The variable comes first in the head and varies slowest, its last parent fastest.
            table[...] = np.moveaxis(values.reshape(len(states), *shape[:-1]), 0, -1)
        lookups = [{state: code for code, state in enumerate(known)} for known in parents.values()]
        stated: set[tuple[int, ...]] = set()
        for configuration, numbers, at in found.rows:
            if len(configuration) != len(lookups):
                raise self.error(
                    f"a row of {found.variable!r} names {len(configuration)} states for {len(lookups)} parents", at
                )
            position = tuple(lookup.get(state, -1) for lookup, state in zip(lookups, configuration, strict=True))
            if min(position, default=0) < 0:
                wrong = position.index(-1)
                name, state = found.parents[wrong], configuration[wrong]
                raise self.error(f"{name!r} has no state {state!r}; {closest(state, parents[name])}", at)
            if position in stated:
                raise self.error(f"the row ({', '.join(configuration)}) of {found.variable!r} is stated twice", at)
            stated.add(position)
            table[position] = self._sized(numbers, len(states), found, at, "row")
        try:
            return self._reading.cpt(found.variable, states, parents, table)
        except ValueError as error:
            raise self.error(str(error), found.position) from None

    def _sized(self, numbers: list[float], size: int, found: Definition, at: int, what: str) -> Array:
        if len(numbers) != size:
            raise self.error(f"a {what} of {found.variable!r} has {len(numbers)} numbers; it needs {size}", at)
        return np.array(numbers)


def write_bif(network: BayesianNetwork) -> str:
    """Write a network as BIF: every number to its last digit.

    Raises
    ------
    ValueError
        A name or state holds a quotation mark or a carriage return, which BIF cannot write.
    """
    if "" in network.variables:  # whose properties would be those of the network
        raise ValueError("a variable without a name cannot be written in BIF; name it")
    name = _quoted(network.name or "unknown")
    lines = [f"network {name} {{", *_properties(network.properties.get("", ())), "}"]
    for cpt in network.cpts:
        states = ", ".join(map(_quoted, state_names(cpt.variable, cpt.states)))
        lines += [
            f"variable {_quoted(cpt.variable)} {{",
            f"  type discrete [ {len(cpt.states)} ] {{ {states} }};",
            *_properties(network.properties.get(cpt.variable, ())),
            "}",
        ]
    for cpt in network.cpts:
        parents = f" | {', '.join(map(_quoted, cpt.parents))}" if cpt.parents else ""
        lines.append(f"probability ( {_quoted(cpt.variable)}{parents} ) {{")
        names = [list(map(_quoted, state_names(parent, states))) for parent, states in cpt.parents.items()]
        for position in np.ndindex(*map(len, names)):
            row = ", ".join(map(repr, cpt.probabilities[position].tolist()))
            configuration = ", ".join(known[k] for known, k in zip(names, position, strict=True))
            lines.append(f"  ({configuration}) {row};" if names else f"  table {row};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def state_names(variable: str, states: Iterable[Any]) -> list[str]:
    """Return the states as files name them.

    Raises
    ------
    ValueError
        Two states are written alike.
    """
    names = [str(state) for state in states]
    if len(set(names)) < len(names):
        raise ValueError(f"two states of {variable!r} would both be written {first_repeated(names)!r}; rename one")
    return names


def _properties(words: Iterable[str]) -> list[str]:
    for text in words:
        as_read = _PROPERTY.fullmatch(f"{text};")
        if as_read is None or text != text.strip() or "//" in text or "/*" in text or "\r" in text:
            raise ValueError(f"the property {text!r} cannot be written in BIF; put it in quotes, or write .xmlbif")
    return [f"  property {text} ;" for text in words]


def _quoted(name: str) -> str:
    if _PLAIN.fullmatch(name):
        return name
    for letter, called in (('"', "a quotation mark"), ("\r", "a carriage return")):
        if letter in name:
            raise ValueError(f"{name!r} holds {called}, which BIF cannot write; rename it, or write .xmlbif")
    return f'"{name}"'
