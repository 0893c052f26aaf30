"""Read and write networks in the format of Hugin (.net); the blocks that Netica has, too."""

from __future__ import annotations

import itertools
import re
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from posteriori.networks.formats.reading import (
    DeclaredVariable,
    Format,
    Reading,
    identifiers,
    lines_of,
    numbers,
    properties_of,
    require_names,
    rows_as_text,
    states_as_text,
)
from posteriori.networks.formats.tokens import Syntax, Tokens
from posteriori.networks.network import BayesianNetwork

_ESCAPE = re.compile(r"\\(\n[ \t]*|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


def _unescape(quoted: str) -> str:
    """Replace escapes by their characters; a backslash at the end of a line joins it with the next."""
    return _ESCAPE.sub(lambda match: "" if match[1][0] == "\n" else _LETTERS.get(match[1], match[1]), quoted)


def quoted(text: str) -> str:
    """Return text in quotes, as it is read back."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, written in _LETTERS.items():
        escaped = escaped.replace(written, f"\\{letter}")
    return f'"{escaped}"'


SYNTAX = Syntax(
    re.compile(
        r'\s*(?:"(?P<quoted>(?:[^"\\]|\\.)*+)"|(?P<mark>[{}()=;|,\[\]])|(?P<word>[^\s"{}()=;|,\[\]]+))', re.DOTALL
    ),
    # An open string is matched up to the end of the text: else the search would start again at each quote within it.
    re.compile(r'"(?:[^"\\]|\\.)*+(?:"|\Z)|%[^\n]*|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL),
    ("%", "//", "/*"),
    _unescape,
)
_PLAIN = re.compile(r'[^"{}=|\[\]]*+')  # words, commas and parentheses
_PARENTHESES_AND_COMMAS = str.maketrans("(),", "   ")
_NO_PARENTHESIS = re.compile(r"[^()]+")
_PLAIN_WORD = re.compile(r"[^\s(),]+")
_NAME, _PROPERTIES = "posteriori_name", "posteriori_properties"  # attributes of Hugin that this module adds


@dataclass(frozen=True)
class Words:
    """The words of a value, a function from the place of a word to its line, and where the value begins."""

    texts: Sequence[str] = ()
    line_of: Callable[[int], int] | None = None
    start: int = 0

    @property
    def first(self) -> str:
        """The first word; empty if there is none."""
        return self.texts[0] if self.texts else ""


def value(tokens: Tokens) -> Words:
    """Return the words up to the next semicolon; lists are flattened, and their marks left out.

    The table of a large node has hundreds of thousands of words: a value without quoted text is split at once.
    """
    start, end = tokens.position, tokens.text.find(";", tokens.position)
    plain = tokens.text[start : max(end, start)]
    if end >= 0 and _PLAIN.fullmatch(plain) and _is_balanced(plain):
        tokens.position = end + 1
        texts = plain.translate(_PARENTHESES_AND_COMMAS).split()
        return Words(texts, lambda place: tokens.line_of(start + _start_of(plain, place)), start)
    words: list[str] = []
    starts: list[int] = []
    depth = 0
    while True:
        kind, token = tokens.take()
        if kind == "end":
            raise tokens.fail("expected ';', found the end of the file")
        if kind != "mark":
            words.append(token)
            starts.append(tokens.start)
        elif token == ";" and depth == 0:
            return Words(words, lambda place: tokens.line_of(starts[place]), start)
        elif token in "()":
            depth += 1 if token == "(" else -1
            if depth < 0:
                raise tokens.fail("a parenthesis is closed and was never opened")
        elif token in "{};" or (token == "=" and depth == 0):
            raise tokens.fail(f"expected ';', found {token!r}")


def _is_balanced(plain: str) -> bool:
    """Whether each parenthesis is opened before it is closed, and all are closed."""
    depth = 0
    for mark in _NO_PARENTHESIS.sub("", plain):
        depth += 1 if mark == "(" else -1
        if depth < 0:
            return False
    return depth == 0


def _start_of(plain: str, place: int) -> int:
    return next(itertools.islice(_PLAIN_WORD.finditer(plain), place, None)).start()


def fields_of(tokens: Tokens) -> defaultdict[str, Words]:
    """Return the fields of a block, from its opening mark to its end; nested blocks are left out."""
    found: defaultdict[str, Words] = defaultdict(Words)
    tokens.expect("{")
    while not tokens.is_next("}"):
        key = tokens.word("a field or '}'")
        if not tokens.is_next("="):
            skip_block(tokens)
        elif key in found:
            raise tokens.fail(f"the field {key!r} occurs twice in one block")
        else:
            found[key] = value(tokens)
    return found


def skip_block(tokens: Tokens) -> None:
    """Go past a block { … } with the blocks within it, after its first word."""
    if tokens.peek()[0] in ("word", "quoted"):
        tokens.take()
    tokens.expect("{")
    depth = 1
    while depth:
        kind, token = tokens.take()
        if kind == "end":
            raise tokens.fail("a block is opened and never closed")
        if kind == "mark":
            depth += (token == "{") - (token == "}")
    tokens.is_next(";")


def declared_in(tokens: Tokens) -> DeclaredVariable:
    """Return the variable that the next word declares."""
    return tokens.reading.declare(tokens.word("the name of a node"), tokens.line)


def read_net(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network of the Hugin format.

    Only discrete chance nodes are read. Fields that say how a node is drawn are left out.

    References
    ----------
    Hugin Expert, The Hugin net language, manual of the C API, chapter 13.
    """
    tokens = Tokens(text, reading, SYNTAX)
    name = ""
    properties: list[str] = []
    while tokens.peek()[0] != "end":
        head = tokens.word("'net', 'node' or 'potential'")
        if head == "class":
            raise tokens.fail("object-oriented networks (class) are not read; flatten it in Hugin")
        if head in ("decision", "utility", "continuous", "function"):
            raise tokens.fail(f"a {head} node is not read; only discrete chance nodes are")
        if head == "net":
            fields = fields_of(tokens)
            name = fields["name"].first or name
            properties = kept_properties(fields[_PROPERTIES]) or properties
        elif head in ("node", "discrete"):
            if head == "discrete":
                tokens.word("'node'")
            _read_hugin_node(tokens)
        elif head == "potential":
            _read_potential(tokens)
        else:
            raise tokens.fail(f"expected 'net', 'node' or 'potential', found {head!r}")
    return reading.network(name, properties)


def kept_properties(words: Words) -> list[str]:
    """Return the properties that this module wrote as a field; none if there is no such field."""
    return properties_of(words.first) if words.texts else []


def _read_hugin_node(tokens: Tokens) -> None:
    node = declared_in(tokens)
    fields = fields_of(tokens)
    node.states = fields["states"].texts
    node.title = fields[_NAME].first if fields[_NAME].texts else None
    label = fields["label"].first
    node.properties = [f"label = {label}"] if label not in ("", node.name, node.title) else []
    node.properties += kept_properties(fields[_PROPERTIES])


def _read_potential(tokens: Tokens) -> None:
    reading, line = tokens.reading, tokens.line
    tokens.expect("(")
    names = [tokens.word("the name of a node")]
    if tokens.is_next("|"):
        while not tokens.is_next(")"):
            if not tokens.is_next(","):
                names.append(tokens.word("the name of a node or ')'"))
    else:
        tokens.expect(")")
    node, *_ = [reading.node(name, line) for name in names]
    if node.table is not None:
        raise reading.fail(line, f"{node.name!r} has two potentials")
    node.parents, node.table_line = names[1:], line
    for key, words in fields_of(tokens).items():
        if key == "model_data" or (key == "model_nodes" and words.texts):
            raise tokens.fail(f"the potential of {node.name!r} is a function; write it as data in Hugin", words.start)
        if key == "data":
            node.table = numbers(node, words.texts, words.line_of)


def write_net(network: BayesianNetwork) -> str:
    """Write a network in the format of Hugin, with every digit of its numbers.

    Names that are no identifiers are kept in the attribute ``posteriori_name``, and properties in another.
    """
    require_names(network.variables, ".net")
    names = identifiers(network.variables)
    lines = ["net", "{", "    node_size = (80 40);"]
    lines += [f"    name = {quoted(network.name)};"] if network.name else []
    lines += [*field_lines(_PROPERTIES, network.properties.get("")), "}"]
    for cpt in network.cpts:
        listed = " ".join(map(quoted, states_as_text(cpt.variable, cpt.states)))
        lines += [f"node {names[cpt.variable]}", "{", f"    label = {quoted(cpt.variable)};"]
        if names[cpt.variable] != cpt.variable:
            lines.append(f"    {_NAME} = {quoted(cpt.variable)};")
        lines += [*field_lines(_PROPERTIES, network.properties.get(cpt.variable)), f"    states = ({listed});", "}"]
    for cpt in network.cpts:
        given = " | " + " ".join(names[parent] for parent in cpt.parents) if cpt.parents else ""
        lines += [f"potential ({names[cpt.variable]}{given})", "{", "    data = ("]
        lines += [f"        {row}" for row in rows_as_text(cpt)] + ["    );", "}"]
    return "\n".join(lines) + "\n"


def field_lines(key: str, properties: Sequence[str] | None) -> list[str]:
    """Return the line of a field that holds properties; none without them."""
    return [f"    {key} = {quoted(lines_of(properties))};"] if properties else []


NET = Format((".net",), write_net, read_net, begins=("net", "node", "class"))
