"""Read and write networks in the Interchange Format for Bayesian networks (BIF)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from posteriori.networks.formats.reading import Format, Reading, rows_as_text, states_as_text
from posteriori.networks.graph.cpt import CPT, as_numbers
from posteriori.networks.graph.naming import States, first_repeated
from posteriori.networks.network import BayesianNetwork
from posteriori.support.suggestions import closest, similar
from posteriori.support.typing import Array

# A comment separates words, a single slash does not: Asy/Patch is one state. An open comment runs to the end.
_COMMENT = re.compile(r'"[^"]*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
PROPERTY = re.compile(r'\s*+((?:"[^"]*"|[^;"]+)*+);')
_TOKEN = re.compile(r'\s*(?:"([^"]*)"|([{}()\[\];,|])|([^\s"{}()\[\];,|]+))')
WORD, QUOTED, MARK, END = "word", "quoted", "mark", "end"


class Tokens:
    """The tokens of a text, read one after the other.

    Attributes
    ----------
    text : str
        Without comments, which are replaced so that line numbers stay.
    position : int
        The end of the last token that was read.
    """

    def __init__(self, text: str, reading: Reading) -> None:
        self._reading = reading
        self.text = text
        self.position = 0
        if "//" in text or "/*" in text:
            self.text = _COMMENT.sub(self._without_comment, text)

    def _without_comment(self, match: re.Match[str]) -> str:
        """Return quoted text as it is, and a comment as the line ends within it."""
        if match[0][:2] == "/*" and (len(match[0]) < 4 or match[0][-2:] != "*/"):
            raise self.error("a comment is opened by /* and never closed", match.start())
        return match[0] if match[0][0] == '"' else " " + "\n" * match[0].count("\n")

    @property
    def line(self) -> int:
        """The line of the end of the last token that was read."""
        return self.text.count("\n", 0, self.position) + 1

    def error(self, problem: str, position: int | None = None) -> Exception:
        """Return the error to raise, with the line of a position."""
        position = self.position if position is None else position
        return self._reading.fail(self.text.count("\n", 0, position) + 1, problem)

    def peek(self) -> tuple[str, str, int]:
        """Return the kind of the next token, the token, and its end."""
        match = _TOKEN.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip()
            if rest:
                raise self.error("a quotation mark is opened and never closed", len(self.text) - len(rest))
            return END, "the end of the file", len(self.text)
        group = match.lastindex or 0  # one of the three groups of the pattern matched
        return (QUOTED, MARK, WORD)[group - 1], match[group], match.end()

    def take(self) -> tuple[str, str]:
        """Return the kind of the next token and the token, and go past it."""
        kind, token, self.position = self.peek()
        return kind, token

    def expect(self, mark: str, where: str) -> None:
        """Go past a mark; raise if another token is next."""
        kind, token, end = self.peek()
        if kind != MARK or token != mark:
            raise self._unexpected(f"expected {mark!r} {where}", kind, token, end)
        self.position = end

    def word(self, what: str) -> str:
        """Return the next word and go past it; raise if a mark is next."""
        kind, token, end = self.peek()
        if kind not in (WORD, QUOTED):
            raise self._unexpected(f"expected {what}", kind, token, end)
        self.position = end
        return token

    def _unexpected(self, expected: str, kind: str, token: str, end: int) -> Exception:
        shown = token if kind == END else repr(token)
        return self.error(f"{expected}, found {shown}", end - len(token) if kind != END else len(self.text.rstrip()))

    def is_next(self, mark: str) -> bool:
        """Whether a mark is next; if so, go past it."""
        kind, token, end = self.peek()
        if kind == MARK and token == mark:
            self.position = end
            return True
        return False

    def listed(self, close: str, what: str, count: int | None = None) -> list[str]:
        """Return the words up to a closing mark.

        Some files write names with blanks and without quotes. If the number of words is not `count`, but the number of
        groups between commas is, each group is one name.
        """
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

    def configuration(self, count: int, variable: str) -> list[str]:
        """Return the parents' states that name a row.

        Most rows hold plain words only and are split at once: a large file has millions of them.
        """
        end = self.text.find(")", self.position)
        plain = self.text[self.position : end]
        if end >= 0 and '"' not in plain:
            words = [word.strip() for word in plain.split(",")]
            if len(words) == count and not any(mark in plain for mark in ";{}(["):
                self.position = end + 1
                return words
        return self.listed(")", f"a state of a parent of {variable!r}", count)

    def numbers(self, what: str) -> list[float]:
        """Return the numbers up to the next semicolon."""
        end = self.text.find(";", self.position)
        if end < 0:
            raise self.error(f"expected ';' after {what}, found the end of the file", len(self.text.rstrip()))
        words = self.text[self.position : end].replace(",", " ").split()

        def fail(word: str) -> Exception:
            return self.error(f"expected a number or ';' in {what}, found {word!r}", self._position_of(word))

        values = as_numbers(words, fail)
        self.position = end + 1
        return values

    def _position_of(self, word: str) -> int:
        """Return the next position of a word that is not part of a longer one."""
        alone = re.search(rf"(?<![^\s,]){re.escape(word)}(?![^\s,;])", self.text[self.position :])
        return self.position + (alone.start() if alone else 0)

    def property(self) -> str:
        """Return the text of a property: everything up to the next semicolon outside quotes."""
        match = PROPERTY.match(self.text, self.position)
        if match is None:
            raise self.error("expected ';' after a property")
        self.position = match.end()
        return match[1].rstrip()


_COUNT = re.compile(r"[0-9]{1,9}")
_PLAIN = re.compile(r'(?!.*(?://|/\*))[^\s"{}()\[\];,|]+')


@dataclass
class Definition:
    """A probability block as it stands in the file, before all variables are known.

    Attributes
    ----------
    position : int
        Its start in the text.
    table : list of float or None
    default : list of float or None
    rows : list
        Per row, the states of the parents, the numbers, and the position in the text.
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
        The tolerance of row sums, and the errors to raise.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks.
    """
    return _Reader(text, reading).network()


class _Reader:
    """Reads the blocks of a file; the tables are built once all variables are known."""

    def __init__(self, text: str, reading: Reading) -> None:
        self._reading = reading
        self._tokens = Tokens(text, reading)
        self.name = ""
        self.properties: dict[str, list[str]] = {}
        self.states: dict[str, States] = {}
        self.definitions: dict[str, Definition] = {}

    def _add_property(self, owner: str) -> None:
        self.properties.setdefault(owner, []).append(self._tokens.property())

    # Blocks -----------------------------------------------------------------------------------------------------

    def network(self) -> BayesianNetwork:
        blocks = {"network": self.network_block, "variable": self.variable_block, "probability": self.probability_block}
        while True:
            start = self._tokens.position
            kind, token = self._tokens.take()
            if kind == END:
                break
            block = blocks.get(token) if kind == WORD else None
            if block is None:
                near = similar(token, blocks)
                hint = f"; did you mean {near!r}?" if near else ""
                start += len(self._tokens.text[start:]) - len(self._tokens.text[start:].lstrip())
                raise self._tokens.error(
                    f"expected 'network', 'variable' or 'probability', found {token!r}{hint}", start
                )
            block()
        if not self.states:
            raise self._tokens.error("there is no variable")
        for name in self.states:
            if name not in self.definitions:
                raise self._tokens.error(f"the variable {name!r} has no probability block")
        cpts = [self._cpt(self.definitions[name]) for name in self.states]
        return self._reading.network(self._tokens.line, self.states, cpts, self.name, self.properties)

    def network_block(self) -> None:
        name = self._tokens.word("the name of the network")
        self.name = "" if name == "unknown" else name
        self._tokens.expect("{", "after the name of the network")
        while not self._tokens.is_next("}"):
            word = self._tokens.word("'property' or '}'")
            if word != "property":
                raise self._tokens.error(
                    f"expected 'property' or '}}' in the network block, found {word!r}", self._tokens.position
                )
            self._add_property("")

    def variable_block(self) -> None:
        name = self._tokens.word("the name of a variable")
        if not name:
            raise self._tokens.error("a variable has an empty name; name it")
        if name in self.states:
            raise self._tokens.error(f"the variable {name!r} is declared twice")
        self._tokens.expect("{", f"after the name {name!r}")
        states: list[str] | None = None
        while not self._tokens.is_next("}"):
            word = self._tokens.word(f"'type', 'property' or '}}' in the block of {name!r}")
            if word == "property":
                self._add_property(name)
            elif word == "type":
                states = self._states(name)
            else:
                raise self._tokens.error(
                    f"expected 'type', 'property' or '}}' in the block of {name!r}, found {word!r}"
                )
        if states is None:
            raise self._tokens.error(f"the variable {name!r} has no type; write: type discrete [ 2 ] {{ yes, no }};")
        self.states[name] = tuple(states)

    def _states(self, name: str) -> list[str]:
        kind = self._tokens.word(f"the type of {name!r}")
        if kind != "discrete":
            raise self._tokens.error(f"the variable {name!r} is of type {kind!r}; only discrete ones are read")
        self._tokens.expect("[", f"after the type of {name!r}")
        written = self._tokens.word(f"the number of states of {name!r}")
        if not _COUNT.fullmatch(written):
            raise self._tokens.error(f"the number of states of {name!r} is {written!r}; write it as a whole number")
        self._tokens.expect("]", f"after the number of states of {name!r}")
        self._tokens.expect("{", f"before the states of {name!r}")
        states = self._tokens.listed("}", f"a state of {name!r}", int(written))
        if len(states) != int(written):
            raise self._tokens.error(f"{name!r} declares {written} states but lists {len(states)}")
        if len(set(states)) < len(states):
            raise self._tokens.error(f"the state {first_repeated(states)!r} of {name!r} occurs twice")
        self._tokens.expect(";", f"after the states of {name!r}")
        return states

    def probability_block(self) -> None:
        start = self._tokens.position
        self._tokens.expect("(", "after 'probability'")
        names: list[str] = []
        while not self._tokens.is_next(")"):
            if self._tokens.is_next("|"):
                if len(names) != 1:
                    raise self._tokens.error(f"expected one variable before '|', found {len(names)}")
            elif not self._tokens.is_next(","):
                names.append(self._tokens.word("the name of a variable or ')'"))
        if not names:
            raise self._tokens.error("expected the name of a variable, found ')'")
        variable, *parents = names
        if variable in self.definitions:
            raise self._tokens.error(f"{variable!r} has two probability blocks")
        block = self.definitions[variable] = Definition(variable, tuple(parents), start)
        self._tokens.expect("{", f"after the head of the block of {variable!r}")
        while not self._tokens.is_next("}"):
            if self._tokens.is_next("("):
                position = self._tokens.position
                configuration = self._tokens.configuration(len(parents), variable)
                block.rows.append((configuration, self._tokens.numbers(f"a row of {variable!r}"), position))
                continue
            word = self._tokens.word(f"'table', 'default', '(' or '}}' in the block of {variable!r}")
            if word == "table":
                block.table = self._tokens.numbers(f"the table of {variable!r}")
            elif word == "default":
                block.default = self._tokens.numbers(f"the default of {variable!r}")
            elif word == "property":
                self._add_property(variable)
            else:
                raise self._tokens.error(
                    f"expected 'table', 'default', '(' or '}}' in the block of {variable!r}, found {word!r}"
                )

    # Tables -----------------------------------------------------------------------------------------------------

    def _cpt(self, block: Definition) -> CPT:
        try:
            parents = self._reading.parents(block.variable, block.parents, self.states, "variable")
            states = self.states[block.variable]
            shape = self._reading.table_shape(block.variable, parents, states)
        except ValueError as error:
            raise self._tokens.error(str(error), block.position) from None
        table = np.full(shape, np.nan)
        if block.default is not None:
            table[...] = self._sized(block.default, len(states), block, block.position, "default")
        if block.table is not None:
            values = self._sized(block.table, table.size, block, block.position, "table")
            # In BIF the variable is the first axis and varies slowest; in a CPT it is the last axis.
            table[...] = np.moveaxis(values.reshape(len(states), *shape[:-1]), 0, -1)
        lookups = [{state: code for code, state in enumerate(known)} for known in parents.values()]
        filled: set[tuple[int, ...]] = set()
        for configuration, numbers, at in block.rows:
            if len(configuration) != len(lookups):
                raise self._tokens.error(
                    f"a row of {block.variable!r} names {len(configuration)} states for {len(lookups)} parents", at
                )
            position = tuple(lookup.get(state, -1) for lookup, state in zip(lookups, configuration, strict=True))
            if min(position, default=0) < 0:
                wrong = position.index(-1)
                name, state = block.parents[wrong], configuration[wrong]
                raise self._tokens.error(f"{name!r} has no state {state!r}; {closest(state, parents[name])}", at)
            if position in filled:
                raise self._tokens.error(f"the row ({', '.join(configuration)}) of {block.variable!r} occurs twice", at)
            filled.add(position)
            table[position] = self._sized(numbers, len(states), block, at, "row")
        try:
            return self._reading.cpt(block.variable, states, parents, table)
        except ValueError as error:
            raise self._tokens.error(str(error), block.position) from None

    def _sized(self, numbers: list[float], size: int, block: Definition, at: int, what: str) -> Array:
        if len(numbers) != size:
            raise self._tokens.error(f"a {what} of {block.variable!r} has {len(numbers)} numbers; it needs {size}", at)
        return np.array(numbers)


def write_bif(network: BayesianNetwork) -> str:
    """Write a network as BIF, with every digit of its numbers.

    Raises
    ------
    ValueError
        A name or state holds a quotation mark or a carriage return, which BIF cannot write.
    """
    if "" in network.variables:  # its properties would be read as those of the network
        raise ValueError("a variable without a name cannot be written in BIF; name it")
    name = _quoted(network.name or "unknown")
    lines = [f"network {name} {{", *_properties(network.properties.get("", ())), "}"]
    for cpt in network.cpts:
        states = ", ".join(map(_quoted, states_as_text(cpt.variable, cpt.states)))
        lines += [
            f"variable {_quoted(cpt.variable)} {{",
            f"  type discrete [ {len(cpt.states)} ] {{ {states} }};",
            *_properties(network.properties.get(cpt.variable, ())),
            "}",
        ]
    for cpt in network.cpts:
        parents = f" | {', '.join(map(_quoted, cpt.parents))}" if cpt.parents else ""
        lines.append(f"probability ( {_quoted(cpt.variable)}{parents} ) {{")
        names = [list(map(_quoted, states_as_text(parent, states))) for parent, states in cpt.parents.items()]
        for configuration, row in zip(itertools.product(*names), rows_as_text(cpt, ", "), strict=True):
            lines.append(f"  ({', '.join(configuration)}) {row};" if names else f"  table {row};")
        lines.append("}")
    return "\n".join(lines) + "\n"


def _properties(words: Iterable[str]) -> list[str]:
    for text in words:
        as_read = PROPERTY.fullmatch(f"{text};")
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


BIF = Format((".bif",), write_bif, read_bif)  # read where no other format is recognized
