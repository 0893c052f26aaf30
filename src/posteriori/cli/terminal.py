"""Text of files on a terminal: controls in models, tables and networks are shown, and not obeyed.

Names, cells and labels may hold escape sequences that set the title of a window, hide lines or type commands. What a
command prints passes one filter: streams of plain text are wrapped, and rich, which writes escape sequences of its own,
is given text whose controls are shown.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

# C0 and C1 controls except tabs and line ends, and the characters that reverse the direction of text
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")


def without_controls(text: str) -> str:
    r"""Return a text whose controls are written as escapes.

    JSON escapes C0 controls itself, and the other escapes are those of JSON, so that JSON stays valid.

    Examples
    --------
    >>> print(without_controls("\x1b[31mred"))
    \x1b[31mred
    """
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}" if found[0] < " " else f"\\u{ord(found[0]):04x}", text)


class PlainText:
    """A stream of text that shows controls; `stream` is the one that it writes to."""

    def __init__(self, stream: Any) -> None:
        self.stream = stream

    @property
    def rich_proxied_file(self) -> Any:
        """The stream that rich writes to: it styles text, and `posteriori.cli.consoles` filters it before."""
        return self.stream

    def write(self, text: str) -> int:
        """Write a text without controls; return the number of its characters."""
        self.stream.write(without_controls(text))
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write several texts."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stream, name)


def unwrapped(stream: Any) -> Any:
    """Return the stream that a `PlainText` writes to, also through what rich puts before it while it shows a bar."""
    while (inner := getattr(stream, "rich_proxied_file", None)) is not None:
        stream = inner
    return stream


@contextmanager
def plain_streams() -> Iterator[None]:
    """Show controls in all that is written to stderr, and to stdout if it is a terminal: a file or a pipe gets data."""
    out, err = sys.stdout, sys.stderr
    if out.isatty():
        sys.stdout = PlainText(out)
    sys.stderr = PlainText(err)
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err
