"""Tokens of BIF: words, quoted words and marks, with the position of each in the text."""

from __future__ import annotations

import re

from posteriori.networks.formats.reading import Reading
from posteriori.networks.graph.decimals import as_numbers

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
