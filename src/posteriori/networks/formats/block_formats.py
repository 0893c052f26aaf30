"""Read and write networks in the formats of Hugin (.net) and Netica (.dne)."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from posteriori.networks.formats.reading import (
    Format,
    Reading,
    identifiers,
    lines_of,
    properties_of,
    renamed,
    require_names,
    rows_as_text,
    states_as_text,
)
from posteriori.networks.graph.cpt import CPT
from posteriori.networks.graph.naming import States
from posteriori.networks.network import BayesianNetwork
from posteriori.support.suggestions import closest

_GAP = re.compile(r"(?:[ \t\f\v\n]++|%[^\n]*|//[^\n]*|/\*.*?\*/)*+", re.DOTALL)
_TOKEN = re.compile(
    r'"(?P<quoted>(?:[^"\\]|\\.)*)"|(?P<mark>[{}()=;|,\[\]])|(?P<word>(?:[^\s"{}()=;|,\[\]%/]++|/(?![/*]))++)',
    re.DOTALL,
)
_PLAIN = re.compile(r'[^"%/{}=|\[\]\r\x1c-\x1f\x80-\U0010ffff]*+')  # words, commas and parentheses
_PARENTHESES_AND_COMMAS = str.maketrans("(),", "   ")
_NO_PARENTHESIS = re.compile(r"[^()]+")
_PLAIN_WORD = re.compile(r"[^ \t\f\v\n(),]+")
_ESCAPE = re.compile(r"\\(\n[ \t]*|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Token:
    """A token: its kind ("quoted", "mark", "word" or "end"), its text and its line."""

    kind: str
    text: str
    line: int

    @property
    def shown(self) -> str:
        """How errors name it."""
        return "the end of the file" if self.kind == "end" else repr(self.text)


@dataclass(frozen=True)
class Words:
    """The words of a value, and a function from the position of a word to its line."""

    texts: list[str]
    line_of: Callable[[int], int]


class BlockReader:
    """Reads tokens one after the other, and values: a word, or a list that may be nested."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.reading = reading
        self._text = text
        self._start = self._end = 0  # of the next token
        self.next = Token("", "", 1)
        self._advance()

    def _advance(self) -> None:
        """Go to the next token."""
        text, before = self._text, self._start
        gap = _GAP.match(text, self._end)
        assert gap is not None  # it may be empty
        self._start = start = gap.end()
        line = self.next.line + text.count("\n", before, start)  # a quoted token may span lines, too
        match = _TOKEN.match(text, start)
        if match is None:
            if start < len(text):
                raise self.reading.fail(line, _no_token(text[start : start + 2]))
            self.next = Token("end", "", line)
            return
        self._end = match.end()
        kind = match.lastgroup or ""
        found = match[kind]
        self.next = Token(kind, _ESCAPE.sub(_unescaped, found) if kind == "quoted" else found, line)

    def take(self) -> Token:
        """Return the next token, and go past it."""
        token = self.next
        if token.kind != "end":
            self._advance()
        return token

    def fail(self, problem: str, token: Token | None = None) -> Exception:
        """Return the error about a token, by default the next one."""
        return self.reading.fail((token or self.next).line, problem)

    def expect(self, mark: str) -> Token:
        """Go past a mark; raise if another token is next."""
        token = self.take()
        if token.kind != "mark" or token.text != mark:
            raise self.fail(f"expected {mark!r}, found {token.shown}", token)
        return token

    def is_next(self, mark: str) -> bool:
        """Whether a mark is next; if so, go past it."""
        if self.next.kind == "mark" and self.next.text == mark:
            self.take()
            return True
        return False

    def word(self, what: str) -> Token:
        """Return the next word, quoted or not."""
        token = self.take()
        if token.kind not in ("word", "quoted"):
            raise self.fail(f"expected {what}, found {token.shown}", token)
        return token

    def value(self) -> Words:
        """Return the words up to the next semicolon; lists are flattened, and their marks left out."""
        plain = self._plain_value()
        if plain is not None:
            return plain
        words: list[Token] = []
        depth = 0
        while True:
            token = self.take()
            if token.kind == "end":
                raise self.fail("expected ';', found the end of the file", token)
            if token.kind != "mark":
                words.append(token)
            elif token.text == ";" and depth == 0:
                return Words([word.text for word in words], lambda position: words[position].line)
            elif token.text == "(":
                depth += 1
            elif token.text == ")":
                depth -= 1
                if depth < 0:
                    raise self.fail("a parenthesis is closed and was never opened", token)
            elif token.text in "{};" or (token.text == "=" and depth == 0):
                raise self.fail(f"expected ';', found {token.text!r}", token)

    def _plain_value(self) -> Words | None:
        """Return a value of plain words and parentheses, split at once; None for another.

        The table of a large node has hundreds of thousands of words.
        """
        end = self._text.find(";", self._start)
        plain = self._text[self._start : max(end, self._start)]
        if end < 0 or _PLAIN.fullmatch(plain) is None:
            return None
        depth = 0
        for mark in _NO_PARENTHESIS.sub("", plain):
            depth += 1 if mark == "(" else -1
            if depth < 0:
                return None
        if depth:
            return None
        first = self.next.line
        self.next, self._start, self._end = Token("", "", first + plain.count("\n")), end, end + 1
        self._advance()
        texts = plain.translate(_PARENTHESES_AND_COMMAS).split()
        return Words(texts, lambda position: _line_in(plain, position, first))

    def skip_block(self) -> None:
        """Go past a block { … } with the blocks within it, after its opening mark."""
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                raise self.fail("a block is opened and never closed", token)
            if token.kind == "mark":
                depth += (token.text == "{") - (token.text == "}")


def _no_token(rest: str) -> str:
    """Return the problem with text that begins no token."""
    what = "a quotation mark" if rest[0] == '"' else "a comment" if rest == "/*" else repr(rest[0])
    return f"{what} is opened and never closed" if rest[0] in '"/' else f"{what} is no token"


def _line_in(plain: str, position: int, first: int) -> int:
    """Return the line of a word in plain text that begins in line `first`."""
    match = next(itertools.islice(_PLAIN_WORD.finditer(plain), position, None))
    return first + plain.count("\n", 0, match.start())


def _unescaped(match: re.Match[str]) -> str:
    """Return the letter that an escape stands for; a backslash at the end of a line joins it with the next."""
    return "" if match[1][0] == "\n" else _LETTERS.get(match[1], match[1])


def quoted(text: str) -> str:
    """Return text in quotes, as it is read back."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, written in _LETTERS.items():
        escaped = escaped.replace(written, f"\\{letter}")
    return f'"{escaped}"'


_NAME, _PROPERTIES = "posteriori_name", "posteriori_properties"  # attributes of Hugin that this module adds
_TITLES_ARE_NAMES = "posteriori: titles are names"  # the first line of the comment of a network for Netica


@dataclass
class _Node:
    """A node as it stands in the file."""

    name: str
    line: int
    states: list[str] | None = None
    n_states: int = 0  # of a node whose states have no names
    parents: tuple[str, ...] = ()
    numbers: Words | None = None
    chosen: Words | None = None  # the state of each configuration, of a deterministic node
    properties: list[str] = field(default_factory=list)
    title: str | None = None  # its name, if that is no identifier
    state_titles: list[str] = field(default_factory=list)
    comment: str | None = None


def read_net(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network of the Hugin format.

    Only discrete chance nodes are read. Fields that say how a node is drawn are left out.

    References
    ----------
    Hugin Expert, The Hugin net language, manual of the C API, chapter 13.
    """
    tokens = BlockReader(text, reading)
    nodes: dict[str, _Node] = {}
    network_name = ""
    properties: list[str] = []
    while tokens.next.kind != "end":
        head = tokens.word("'net', 'node' or 'potential'")
        if head.text == "class":
            raise tokens.fail("object-oriented networks (class) are not read; flatten it in Hugin", head)
        if head.text in ("decision", "utility", "continuous", "function"):
            raise tokens.fail(f"a {head.text} node is not read; only discrete chance nodes are", head)
        if head.text == "net":
            tokens.expect("{")
            for key, value in _fields(tokens):
                if key.text == "name" and value.texts:
                    network_name = value.texts[0]
                elif key.text == _PROPERTIES and value.texts:
                    properties = properties_of(value.texts[0])
        elif head.text in ("node", "discrete"):
            if head.text == "discrete":
                tokens.word("'node'")
            named = tokens.word("the name of a node")
            if named.text in nodes:
                raise tokens.fail(f"the node {named.text!r} is declared twice", named)
            node = nodes[named.text] = _Node(named.text, named.line)
            tokens.expect("{")
            _add_hugin_fields(node, {key.text: value for key, value in _fields(tokens)})
        elif head.text == "potential":
            _read_potential(tokens, nodes, head)
        else:
            raise tokens.fail(f"expected 'net', 'node' or 'potential', found {head.text!r}", head)
    return _network(nodes, network_name, properties, reading)


def _add_hugin_fields(node: _Node, fields: dict[str, Words]) -> None:
    if "states" in fields:
        node.states = fields["states"].texts
    first = {key: value.texts[0] for key, value in fields.items() if value.texts}
    node.title = first.get(_NAME)
    if first.get("label", "") not in ("", node.name, node.title):
        node.properties.append(f"label = {first['label']}")
    if _PROPERTIES in first:
        node.properties += properties_of(first[_PROPERTIES])


def _read_potential(tokens: BlockReader, nodes: dict[str, _Node], head: Token) -> None:
    tokens.expect("(")
    names = [tokens.word("the name of a node")]
    if tokens.is_next("|"):
        while not tokens.is_next(")"):
            if not tokens.is_next(","):
                names.append(tokens.word("the name of a node or ')'"))
    else:
        tokens.expect(")")
    for name in names:
        if name.text not in nodes:
            raise tokens.fail(f"there is no node {name.text!r}; {closest(name.text, nodes)}", name)
    node = nodes[names[0].text]
    if node.numbers is not None:
        raise tokens.fail(f"{node.name!r} has two potentials", head)
    node.parents = tuple(name.text for name in names[1:])
    tokens.expect("{")
    for key, value in _fields(tokens):
        if key.text == "model_data" or (key.text == "model_nodes" and value.texts):
            raise tokens.fail(f"the potential of {node.name!r} is a function; write it as data in Hugin", key)
        if key.text == "data":
            node.numbers = value


def read_dne(text: str, reading: Reading) -> BayesianNetwork:
    """Read a network of the text format of Netica.

    Only discrete nature nodes are read. Nested blocks, which say how a node is drawn, are left out.

    References
    ----------
    Norsys, Netica's DNET file format.
    """
    tokens = BlockReader(text, reading)
    head = tokens.word("'bnet'")
    if head.text != "bnet":
        raise tokens.fail(f"expected 'bnet', found {head.text!r}", head)
    network_name = tokens.word("the name of the network").text
    tokens.expect("{")
    nodes: dict[str, _Node] = {}
    texts: dict[str, str] = {}
    while not tokens.is_next("}"):
        key = tokens.word("'node' or '}'")
        if key.text == "node":
            named = tokens.word("the name of a node")
            if named.text in nodes:
                raise tokens.fail(f"the node {named.text!r} is declared twice", named)
            node = nodes[named.text] = _Node(named.text, named.line)
            tokens.expect("{")
            for field_key, value in _fields(tokens):
                _add_field(node, field_key, value, tokens)
        elif tokens.is_next("="):
            texts[key.text] = " ".join(tokens.value().texts)
            continue
        else:
            tokens.word("a name")
            tokens.expect("{")
            tokens.skip_block()
        tokens.is_next(";")
    marker, *comment = texts.get("comment", "").split("\n", 1)
    if marker == _TITLES_ARE_NAMES:
        network_name = texts.get("title", "")
        properties = properties_of(comment[0]) if comment else []
        for node in nodes.values():
            node.properties = [] if node.comment is None else properties_of(node.comment)
    else:
        properties = [f"{key} = {texts[key]}" for key in ("title", "comment") if texts.get(key)]
        for node in nodes.values():
            _make_titles_properties(node)
    return _network(nodes, network_name, properties, reading)


def _make_titles_properties(node: _Node) -> None:
    """Make the titles of Netica itself properties: there they are labels of the drawing, and need not differ."""
    if node.title not in (None, "", node.name):
        node.properties.append(f"title = {node.title}")
    if any(node.state_titles):
        node.properties.append(f"statetitles = {', '.join(node.state_titles)}")
    if node.comment:
        node.properties.append(f"comment = {node.comment}")
    node.title, node.state_titles = None, []


def _add_field(node: _Node, key: Token, value: Words, tokens: BlockReader) -> None:
    first = value.texts[0] if value.texts else ""
    if key.text == "kind" and first != "NATURE":
        raise tokens.fail(f"{node.name!r} is a {first.lower()} node; only nature nodes are read", key)
    if key.text == "discrete" and first == "FALSE":
        raise tokens.fail(f"{node.name!r} is continuous; cut it into intervals in Netica", key)
    if key.text == "states":
        node.states = value.texts
    elif key.text == "numstates" and re.fullmatch("[0-9]{1,6}", first):
        node.n_states = int(first)
    elif key.text == "parents":
        node.parents = tuple(value.texts)
    elif key.text == "probs":
        node.numbers = value
    elif key.text == "functable":
        node.chosen = value
    elif key.text == "title" and value.texts:
        node.title = first
    elif key.text == "statetitles":
        node.state_titles = value.texts
    elif key.text == "comment" and value.texts:
        node.comment = first


def _fields(tokens: BlockReader) -> list[tuple[Token, Words]]:
    """Return the fields of a block up to its end; nested blocks are left out."""
    found = []
    seen: set[str] = set()
    while not tokens.is_next("}"):
        key = tokens.word("a field or '}'")
        if tokens.is_next("="):
            if key.text in seen:
                raise tokens.fail(f"the field {key.text!r} occurs twice in one block", key)
            seen.add(key.text)
            found.append((key, tokens.value()))
            continue
        if tokens.next.kind in ("word", "quoted"):
            tokens.take()
        tokens.expect("{")
        tokens.skip_block()
        tokens.is_next(";")
    return found


def _network(nodes: dict[str, _Node], name: str, properties: list[str], reading: Reading) -> BayesianNetwork:
    if not nodes:
        raise reading.fail(1, "there is no node")
    states: dict[str, States] = {}
    for node in nodes.values():
        # Each state needs at least one number, so that a small file cannot have many states.
        values = node.numbers or node.chosen
        if node.states is None and values is not None and node.n_states <= len(values.texts):
            node.states = [f"state{k}" for k in range(node.n_states)]
        if not node.states:
            raise reading.fail(node.line, f"the node {node.name!r} has no states")
        states[node.name] = tuple(node.states)
    cpts = []
    for node in nodes.values():
        try:
            cpts.append(_cpt(node, states, reading))
        except _TokenError as error:
            raise reading.fail(error.line, str(error)) from None
        except ValueError as error:
            raise reading.fail(node.line, str(error)) from None
    names = {node.name: node.name if node.title is None else node.title for node in nodes.values()}
    titles = {node.name: tuple(node.state_titles) or states[node.name] for node in nodes.values()}
    of_nodes = {names[node.name]: node.properties for node in nodes.values()}
    return reading.network(1, names.values(), renamed(cpts, names, titles), name, {"": properties, **of_nodes})


class _TokenError(ValueError):
    """An error about one token."""

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


def _cpt(node: _Node, states: dict[str, States], reading: Reading) -> CPT:
    values, read = node.numbers, reading.cpt_of_words
    if values is None and node.chosen is not None:
        values, read = node.chosen, reading.cpt_of_choices
    parents = reading.parents(node.name, node.parents, states, "node")
    if values is None:
        raise ValueError(f"the node {node.name!r} has no probabilities")
    line_of = values.line_of
    return read(
        node.name, states[node.name], parents, values.texts, lambda problem, at: _TokenError(problem, line_of(at))
    )


def write_net(network: BayesianNetwork) -> str:
    """Write a network in the format of Hugin, with every digit of its numbers.

    Names that are no identifiers are kept in the attribute ``posteriori_name``, and properties in another.
    """
    require_names(network.variables, ".net")
    names = identifiers(network.variables)
    lines = ["net", "{", "    node_size = (80 40);"]
    lines += [f"    name = {quoted(network.name)};"] if network.name else []
    lines += [*_field(_PROPERTIES, network.properties.get("")), "}"]
    for cpt in network.cpts:
        listed = " ".join(map(quoted, states_as_text(cpt.variable, cpt.states)))
        lines += [f"node {names[cpt.variable]}", "{", f"    label = {quoted(cpt.variable)};"]
        if names[cpt.variable] != cpt.variable:
            lines.append(f"    {_NAME} = {quoted(cpt.variable)};")
        lines += [*_field(_PROPERTIES, network.properties.get(cpt.variable)), f"    states = ({listed});", "}"]
    for cpt in network.cpts:
        given = " | " + " ".join(names[parent] for parent in cpt.parents) if cpt.parents else ""
        lines += [f"potential ({names[cpt.variable]}{given})", "{", "    data = ("]
        lines += [f"        {row}" for row in rows_as_text(cpt)] + ["    );", "}"]
    return "\n".join(lines) + "\n"


def _field(key: str, properties: Sequence[str] | None) -> list[str]:
    return [f"    {key} = {quoted(lines_of(properties))};"] if properties else []


def write_dne(network: BayesianNetwork) -> str:
    """Write a network in the text format of Netica, with every digit of its numbers.

    Names that are no identifiers are kept as titles, and the first line of the comment of the network says so. Comments
    hold the properties.
    """
    require_names(network.variables, ".dne")
    names = identifiers(network.variables)
    net_name = network.name or "network"
    comment = [_TITLES_ARE_NAMES, *([lines_of(network.properties[""])] if network.properties.get("") else [])]
    lines = ["// ~->[DNET-1]->~", "", f"bnet {identifiers([net_name])[net_name]} {{"]
    lines += [f"    title = {quoted(network.name)};"] if network.name else []
    lines.append(f"    comment = {quoted(chr(10).join(comment))};")
    for cpt in network.cpts:
        texts = states_as_text(cpt.variable, cpt.states)
        states = identifiers(texts)
        lines += [
            f"node {names[cpt.variable]} {{",
            "    kind = NATURE;",
            "    discrete = TRUE;",
            "    chance = CHANCE;",
            f"    states = ({', '.join(states[text] for text in texts)});",
            f"    parents = ({', '.join(names[parent] for parent in cpt.parents)});",
            "    probs = (",
            ",\n".join(f"        {row}" for row in rows_as_text(cpt, ", ")),
            "    );",
        ]
        if any(states[text] != text for text in texts):
            lines.append(f"    statetitles = ({', '.join(map(quoted, texts))});")
        if names[cpt.variable] != cpt.variable:
            lines.append(f"    title = {quoted(cpt.variable)};")
        lines += [*_field("comment", network.properties.get(cpt.variable)), "    };"]
    return "\n".join([*lines, "};"]) + "\n"


NET = Format((".net",), write_net, read_net, begins=("net", "node", "class"))
DNE = Format((".dne",), write_dne, read_dne, begins=("bnet",))
