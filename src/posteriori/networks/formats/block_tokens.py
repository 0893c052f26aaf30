"""Tokens of the block formats of Hugin (.net) and Netica (.dne): words, quoted words and marks, with their lines."""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable
from dataclasses import dataclass

from posteriori.networks.formats.reading import Reading

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
