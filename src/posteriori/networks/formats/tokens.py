"""Tokens of the text formats: words, quoted text and marks, read one after the other."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from posteriori.networks.formats.reading import Reading


def _unchanged(quoted: str) -> str:
    return quoted


@dataclass(frozen=True)
class Syntax:
    """How the tokens of a format look.

    Attributes
    ----------
    token : Pattern
        Blanks and a token, which is the group ``word``, ``quoted`` or ``mark``.
    comment : Pattern
        Comments, and quoted text, in which there are none. A block comment or quoted text that is never closed runs to
        the end.
    comment_marks : tuple of str
        With what comments begin: a text without these is not searched.
    unescape : callable
        From what stands in quotes to what it means.
    """

    token: re.Pattern[str]
    comment: re.Pattern[str]
    comment_marks: tuple[str, ...]
    unescape: Callable[[str], str] = _unchanged


class Tokens:
    """The tokens of a text.

    Attributes
    ----------
    text : str
        Without comments, which are replaced so that line numbers stay.
    start, position : int
        Where the last token that was read begins and ends.
    """

    def __init__(self, text: str, reading: Reading, syntax: Syntax) -> None:
        self.reading = reading
        self.syntax = syntax
        self.text = text
        self.start = self.position = 0
        self._counted = 0, 1  # a position, and its line
        if any(mark in text for mark in syntax.comment_marks):
            self.text = syntax.comment.sub(self._without_comment, text)

    def _without_comment(self, match: re.Match[str]) -> str:
        """Return quoted text as it is, and a comment as the line ends within it."""
        found = match[0]
        if found[:2] == "/*" and (len(found) < 4 or found[-2:] != "*/"):
            raise self.fail("a comment is opened by /* and never closed", match.start())
        return found if found[0] == '"' else " " + "\n" * found.count("\n")

    def line_of(self, position: int) -> int:
        """Return the line of a position; counted on from the last one that was asked for."""
        start, line = self._counted if self._counted[0] <= position else (0, 1)
        self._counted = position, line + self.text.count("\n", start, position)
        return self._counted[1]

    @property
    def line(self) -> int:
        """The line of the last token that was read."""
        return self.line_of(self.start)

    def fail(self, problem: str, position: int | None = None) -> Exception:
        """Return the error about a position, by default that of the last token that was read."""
        return self.reading.fail(self.line_of(self.start if position is None else position), problem)

    def peek(self) -> tuple[str, str, int, int]:
        """Return the kind of the next token (word, quoted, mark or end), what it means, its start and its end."""
        match = self.syntax.token.match(self.text, self.position)
        if match is None:
            rest = self.text[self.position :].lstrip()
            if rest:
                what = "a quotation mark is opened and never closed" if rest[0] == '"' else f"{rest[0]!r} is no token"
                raise self.fail(what, len(self.text) - len(rest))
            return "end", "", len(self.text.rstrip()), len(self.text)
        kind, group = match.lastgroup or "", match.lastindex or 0
        found = self.syntax.unescape(match[group]) if kind == "quoted" else match[group]
        return kind, found, match.start(group), match.end()

    def take(self) -> tuple[str, str]:
        """Return the kind of the next token and what it means, and go past it."""
        kind, token, self.start, self.position = self.peek()
        return kind, token

    def is_next(self, mark: str) -> bool:
        """Whether a mark is next; if so, go past it."""
        kind, token, start, end = self.peek()
        if kind != "mark" or token != mark:
            return False
        self.start, self.position = start, end
        return True

    def expect(self, mark: str, where: str = "") -> None:
        """Go past a mark; raise if another token is next."""
        kind, token = self.take()
        if kind != "mark" or token != mark:
            raise self._unexpected(f"{mark!r} {where}".rstrip(), kind, token)

    def word(self, what: str) -> str:
        """Return the next word, quoted or not, and go past it; raise if a mark is next."""
        kind, token = self.take()
        if kind not in ("word", "quoted"):
            raise self._unexpected(what, kind, token)
        return token

    def _unexpected(self, expected: str, kind: str, token: str) -> Exception:
        found = "the end of the file" if kind == "end" else repr(token)
        return self.fail(f"expected {expected}, found {found}")
