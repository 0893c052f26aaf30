"""Read and write networks in the Interchange Format for Bayesian networks (BIF)."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np

from posteriori.networks.formats.reading import (
    Format,
    LineError,
    Reading,
    require_names,
    rows_as_text,
    states_as_text,
)
from posteriori.networks.formats.tokens import Syntax, Tokens
from posteriori.networks.graph.cpt import as_numbers
from posteriori.networks.network import BayesianNetwork
from posteriori.support.suggestions import closest, similar
from posteriori.support.typing import Array

# A comment separates words, a single slash does not: Asy/Patch is one state.
_SYNTAX = Syntax(
    re.compile(r'\s*(?:"(?P<quoted>[^"]*)"|(?P<mark>[{}()\[\];,|])|(?P<word>[^\s"{}()\[\];,|]+))'),
    re.compile(r'"[^"]*(?:"|\Z)|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL),
    ("//", "/*"),
)
_PROPERTY = re.compile(r'\s*+((?:"[^"]*"|[^;"]+)*+);')
_COUNT = re.compile(r"[0-9]{1,9}")
_PLAIN = re.compile(r'(?!.*(?://|/\*))[^\s"{}()\[\];,|]+')


@dataclass
class _ProbabilityBlock:
    """A probability block as it stands in the file, before all variables are known.

    `rows` holds, per row, the states of the parents, the numbers, and the position in the text.
    """

    variable: str
    parents: tuple[str, ...]
    line: int
    table: list[float] | None = None
    default: list[float] | None = None
    rows: list[tuple[list[str], list[float], int]] = field(default_factory=list)
    properties: list[str] = field(default_factory=list)

    def fill(self, tokens: Tokens, shape: tuple[int, ...]) -> Array:
        """Return the numbers of the block as a table."""
        table = np.full(shape, np.nan)
        if self.default is not None:
            table[...] = self._sized(self.default, shape[-1], "default", self.line)
        if self.table is not None:
            values = self._sized(self.table, table.size, "table", self.line)
            # In BIF the variable is the first axis and varies slowest; in a CPT it is the last axis.
            table[...] = np.moveaxis(values.reshape(shape[-1], *shape[:-1]), 0, -1)
        known = [tokens.reading.nodes[name].states for name in self.parents]
        lookups = [{state: code for code, state in enumerate(states)} for states in known]
        filled: set[tuple[int, ...]] = set()
        for configuration, numbers, at in self.rows:
            if len(configuration) != len(lookups):
                problem = f"a row of {self.variable!r} names {len(configuration)} states for {len(lookups)} parents"
                raise LineError(problem, tokens.line_of(at))
            position = tuple(lookup.get(state, -1) for lookup, state in zip(lookups, configuration, strict=True))
            if min(position, default=0) < 0:
                wrong = position.index(-1)
                name, state = self.parents[wrong], configuration[wrong]
                problem = f"{name!r} has no state {state!r}; {closest(state, known[wrong])}"
                raise LineError(problem, tokens.line_of(at))
            if position in filled:
                problem = f"the row ({', '.join(configuration)}) of {self.variable!r} occurs twice"
                raise LineError(problem, tokens.line_of(at))
            filled.add(position)
            if len(numbers) != shape[-1]:
                self._sized(numbers, shape[-1], "row", tokens.line_of(at))
            table[position] = numbers
        return table

    def _sized(self, numbers: list[float], size: int, what: str, line: int) -> Array:
        if len(numbers) != size:
            raise LineError(f"a {what} of {self.variable!r} has {len(numbers)} numbers; it needs {size}", line)
        return np.array(numbers)


def read_bif(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network from BIF.

    References
    ----------
    Cozman (1998), The Interchange Format for Bayesian Networks.
    """
    tokens = Tokens(text, reading, _SYNTAX)
    name = ""
    properties: list[str] = []
    blocks: dict[str, _ProbabilityBlock] = {}
    while True:
        kind, token = tokens.take()
        if kind == "end":
            break
        if kind == "word" and token == "network":
            name = tokens.word("the name of the network")
            tokens.expect("{", "after the name of the network")
            while _entry(tokens, "the network block", properties) != "}":
                pass
        elif kind == "word" and token == "variable":
            _read_variable(tokens)
        elif kind == "word" and token == "probability":
            block = _read_probability(tokens)
            if block.variable in blocks:
                raise reading.fail(block.line, f"{block.variable!r} has two probability blocks")
            blocks[block.variable] = block
        else:
            near = similar(token, ("network", "variable", "probability"))
            hint = f"; did you mean {near!r}?" if near else ""
            raise tokens.fail(f"expected 'network', 'variable' or 'probability', found {token!r}{hint}")
    for block in blocks.values():
        node = reading.node(block.variable, block.line)
        node.parents, node.table_line = block.parents, block.line
        node.table = functools.partial(block.fill, tokens)
        node.properties += block.properties
    return reading.network("" if name == "unknown" else name, properties)


def _entry(tokens: Tokens, where: str, properties: list[str], *others: str) -> str:
    """Return the word that begins the next entry of a block, one of `others`, "property" or "}"; read a property."""
    if tokens.is_next("}"):
        return "}"
    expected = f"{', '.join(map(repr, (*others, 'property')))} or '}}' in {where}"
    word = tokens.word(expected)
    if word == "property":  # everything up to the next semicolon outside quotes
        match = _PROPERTY.match(tokens.text, tokens.position)
        if match is None:
            raise tokens.fail("expected ';' after a property")
        tokens.position = match.end()
        properties.append(match[1].rstrip())
    elif word not in others:
        raise tokens.fail(f"expected {expected}, found {word!r}")
    return word


def _read_variable(tokens: Tokens) -> None:
    name = tokens.word("the name of a variable")
    node = tokens.reading.declare(name, tokens.line)
    tokens.expect("{", f"after the name {name!r}")
    while (word := _entry(tokens, f"the block of {name!r}", node.properties, "type")) != "}":
        if word == "type":
            node.states = _read_states(tokens, name)
    if not node.states:
        raise tokens.fail(f"the variable {name!r} has no states; write: type discrete [ 2 ] {{ yes, no }};")


def _read_states(tokens: Tokens, name: str) -> list[str]:
    kind = tokens.word(f"the type of {name!r}")
    if kind != "discrete":
        raise tokens.fail(f"the variable {name!r} is of type {kind!r}; only discrete ones are read")
    tokens.expect("[", f"after the type of {name!r}")
    written = tokens.word(f"the number of states of {name!r}")
    if not _COUNT.fullmatch(written):
        raise tokens.fail(f"the number of states of {name!r} is {written!r}; write it as a whole number")
    tokens.expect("]", f"after the number of states of {name!r}")
    tokens.expect("{", f"before the states of {name!r}")
    states = _listed(tokens, "}", f"a state of {name!r}", int(written))
    if len(states) != int(written):
        raise tokens.fail(f"{name!r} declares {written} states but lists {len(states)}")
    tokens.expect(";", f"after the states of {name!r}")
    return states


def _read_probability(tokens: Tokens) -> _ProbabilityBlock:
    line = tokens.line
    tokens.expect("(", "after 'probability'")
    names: list[str] = []
    while not tokens.is_next(")"):
        if tokens.is_next("|"):
            if len(names) != 1:
                raise tokens.fail(f"expected one variable before '|', found {len(names)}")
        elif not tokens.is_next(","):
            names.append(tokens.word("the name of a variable or ')'"))
    if not names:
        raise tokens.fail("expected the name of a variable, found ')'")
    variable, *parents = names
    block = _ProbabilityBlock(variable, tuple(parents), line)
    tokens.expect("{", f"after the head of the block of {variable!r}")
    while True:
        if tokens.is_next("("):
            at = tokens.start
            configuration = _configuration(tokens, len(parents), variable)
            block.rows.append((configuration, _numbers(tokens, f"a row of {variable!r}"), at))
            continue
        where = f"the block of {variable!r}, or the '(' of a row"
        word = _entry(tokens, where, block.properties, "table", "default")
        if word == "}":
            return block
        if word == "table":
            block.table = _numbers(tokens, f"the table of {variable!r}")
        elif word == "default":
            block.default = _numbers(tokens, f"the default of {variable!r}")


def _listed(tokens: Tokens, close: str, what: str, count: int) -> list[str]:
    """Return the words up to a closing mark.

    Some files write names with blanks and without quotes. If the number of words is not `count`, but the number of
    groups between commas is, each group is one name.
    """
    groups: list[list[str]] = [[]]
    while not tokens.is_next(close):
        if tokens.is_next(","):
            groups.append([])
        else:
            groups[-1].append(tokens.word(f"{what} or {close!r}"))
    words = [word for group in groups for word in group]
    joined = [" ".join(group) for group in groups if group]
    return joined if len(joined) == count else words


def _configuration(tokens: Tokens, count: int, variable: str) -> list[str]:
    """Return the parents' states that name a row.

    Most rows hold plain words only and are split at once: a large file has millions of them.
    """
    end = tokens.text.find(")", tokens.position)
    plain = tokens.text[tokens.position : end]
    if end >= 0 and '"' not in plain:
        words = [word.strip() for word in plain.split(",")]
        if len(words) == count and not any(mark in plain for mark in ";{}(["):
            tokens.position = end + 1
            return words
    return _listed(tokens, ")", f"a state of a parent of {variable!r}", count)


def _numbers(tokens: Tokens, what: str) -> list[float]:
    """Return the numbers up to the next semicolon."""
    start, end = tokens.position, tokens.text.find(";", tokens.position)
    if end < 0:
        raise tokens.fail(f"expected ';' after {what}, found the end of the file", len(tokens.text.rstrip()))

    def fail(word: str) -> Exception:
        alone = re.search(rf"(?<![^\s,]){re.escape(word)}(?![^\s,;])", tokens.text[start:])
        at = start + (alone.start() if alone else 0)
        return tokens.fail(f"expected a number or ';' in {what}, found {word!r}", at)

    values = as_numbers(tokens.text[start:end].replace(",", " ").split(), fail)
    tokens.position = end + 1
    return values


def write_bif(network: BayesianNetwork) -> str:
    """Write a network as BIF, with every digit of its numbers.

    Raises
    ------
    ValueError
        A name or state holds a quotation mark or a carriage return, which BIF cannot write.
    """
    require_names(network.variables, ".bif")
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


BIF = Format((".bif",), write_bif, read_bif)  # read where no other format is recognized
