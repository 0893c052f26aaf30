"""Tokens of the block formats of Hugin (.net) and Netica (.dne): words, quoted words and marks, with their lines."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

from posteriori.networks.reading import Reading

_TOKEN = re.compile(
    r'[ \t\f\v]*(?:(?P<line>\n)|(?P<comment>%[^\n]*|//[^\n]*|/\*.*?\*/)|"(?P<quoted>(?:[^"\\]|\\.)*)"'
    r"|(?P<mark>[{}()=;|,\[\]])|(?P<word>(?:[^\s\"{}()=;|,\[\]%/]++|/(?![/*]))++))",
    re.DOTALL,
)
_ESCAPE = re.compile(r"\\(\n[ \t]*|.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "t": "\t"}


@dataclass(frozen=True)
class Token:
    """A token: its kind ("quoted", "mark", "word" or "end"), its text and its line."""

    kind: str
    text: str
    line: int


class BlockReader:
    """Reads tokens one after the other, and values: a word, or a list that may be nested."""

    def __init__(self, text: str, reading: Reading) -> None:
        self.reading = reading
        self._tokens = _tokens(text, reading)
        self.next = next(self._tokens)

    def take(self) -> Token:
        """Return the next token, and go past it."""
        token = self.next
        if token.kind != "end":
            self.next = next(self._tokens)
        return token

    def fail(self, problem: str, token: Token | None = None) -> Exception:
        """Return the error about a token, by default the next one."""
        return self.reading.fail((token or self.next).line, problem)

    def expect(self, mark: str) -> Token:
        """Go past a mark; raise if another token is next."""
        token = self.take()
        if token.kind != "mark" or token.text != mark:
            shown = "the end of the file" if token.kind == "end" else repr(token.text)
            raise self.fail(f"expected {mark!r}, found {shown}", token)
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
            shown = "the end of the file" if token.kind == "end" else repr(token.text)
            raise self.fail(f"expected {what}, found {shown}", token)
        return token

    def value(self) -> list[Token]:
        """Return the words up to the next semicolon; lists are flattened, and their marks left out."""
        words = []
        depth = 0
        while True:
            token = self.take()
            if token.kind == "end":
                raise self.fail("expected ';', found the end of the file", token)
            if token.kind != "mark":
                words.append(token)
            elif token.text == ";" and depth == 0:
                return words
            elif token.text == "(":
                depth += 1
            elif token.text == ")":
                depth -= 1
                if depth < 0:
                    raise self.fail("a parenthesis is closed and was never opened", token)
            elif token.text in "{};" or (token.text == "=" and depth == 0):
                raise self.fail(f"expected ';', found {token.text!r}", token)

    def skip_block(self) -> None:
        """Go past a block { … } with the blocks within it, after its opening mark."""
        depth = 1
        while depth:
            token = self.take()
            if token.kind == "end":
                raise self.fail("a block is opened and never closed", token)
            if token.kind == "mark":
                depth += (token.text == "{") - (token.text == "}")


def _tokens(text: str, reading: Reading) -> Iterator[Token]:
    position, line = 0, 1
    while position < len(text):
        match = _TOKEN.match(text, position)
        if match is None:
            rest = text[position:].lstrip(" \t\f\v")
            if not rest:
                break
            what = "a quotation mark" if rest[0] == '"' else "a comment" if rest[:2] == "/*" else repr(rest[0])
            raise reading.fail(line, f"{what} is opened and never closed" if rest[0] in '"/' else f"{what} is no token")
        position = match.end()
        kind = match.lastgroup or ""
        if kind in ("quoted", "mark", "word"):
            found = match[kind]
            yield Token(kind, _ESCAPE.sub(_unescaped, found) if kind == "quoted" else found, line)
        line += match[0].count("\n")
    while True:
        yield Token("end", "", line)


def _unescaped(match: re.Match[str]) -> str:
    """Return the letter that an escape stands for; a backslash at the end of a line joins it with the next."""
    return "" if match[1][0] == "\n" else _LETTERS.get(match[1], match[1])


def quoted(text: str) -> str:
    """Return text in quotes, as it is read back."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    for letter, written in _LETTERS.items():
        escaped = escaped.replace(written, f"\\{letter}")
    return f'"{escaped}"'
