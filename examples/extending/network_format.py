"""Add a network format: `wet | rain: no yes = 0.9 0.1 0.2 0.8`, one line for each variable.

A format is a `Format` value: the endings of its files, the word with which they begin, a function that writes a network
as text, and one that reads it. A reader declares each variable with its line, its states, its parents and its numbers.
Names, sizes, sums and cycles are checked once, by `Reading.network`, whose errors name the file and the line. Formats
with comments, quotes or blocks take `formats/tokens.py`.

Then add it to the laws in `tests/networks/test_format_laws.py`, and a file to `changes/`.
"""

from __future__ import annotations

from posteriori.networks.formats.files import FORMATS
from posteriori.networks.formats.reading import Format, Reading, numbers
from posteriori.networks.network import BayesianNetwork


def read_lines(text: str, reading: Reading) -> BayesianNetwork:
    """Return the network of a text."""
    for line, content in enumerate(text.splitlines()[1:], start=2):
        head, _, table = content.partition("=")
        names, _, states = head.partition(":")
        name, *parents = names.replace("|", " ").split()
        node = reading.declare(name, line)
        node.states, node.parents = states.split(), parents
        node.table = numbers(node, table.split())
    return reading.network()


def write_lines(network: BayesianNetwork) -> str:
    """Return a network as text."""
    lines = ["NETWORK"]
    for cpt in network.cpts:
        given = f" | {' '.join(cpt.parents)}" if cpt.parents else ""
        table = " ".join(map(repr, cpt.probabilities.ravel().tolist()))
        lines.append(f"{cpt.variable}{given}: {' '.join(map(str, cpt.states))} = {table}")
    return "\n".join(lines) + "\n"


LINES = Format((".lines",), write_lines, read_lines, begins=("NETWORK",))


def register() -> None:
    """Add it to `FORMATS` of `formats/files.py`: for `read_network`, `write_network` and the command line."""
    FORMATS.append(LINES)
