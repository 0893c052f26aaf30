"""What a format of network files declares: its endings, its writer, its reader and how a file of it begins."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from posteriori.networks.formats.reading import Reading
from posteriori.networks.network import BayesianNetwork


@dataclass(frozen=True)
class Format:
    """A format of network files.

    Attributes
    ----------
    suffixes : tuple of str
        The endings of its files.
    write : callable
        Returns a network as text.
    read : callable or None
        Returns the network of a text, or of the root element if it is XML. None: it cannot be read back.
    begins : tuple of str
        The first words of its files; ``<`` and the tag of the root in capitals if it is XML.
    continuous : bool
        Whether it holds continuous variables.
    """

    suffixes: tuple[str, ...]
    write: Callable[[BayesianNetwork], str]
    read: Callable[[Any, Reading], BayesianNetwork] | None
    begins: tuple[str, ...] = ()
    continuous: bool = False
