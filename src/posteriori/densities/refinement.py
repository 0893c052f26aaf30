"""How a density that learns a structure asks for further passes over the rows: its requests are values."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple


class Refined(NamedTuple):
    """A density whose structure is chosen, and the statistics from which it is estimated."""

    density: Any
    statistics: Any


@dataclass(frozen=True)
class FurtherPass:
    """A request for one more pass over the rows.

    Attributes
    ----------
    factory : object
        Its method ``of(tile, assignment)`` returns the statistics of a batch. They are added up over all batches.
    then : callable
        Takes the sum, and returns the refined density or the next request.
    """

    factory: Any
    then: Callable[[Any], Refinement]


Refinement = Refined | FurtherPass


def finish(refinement: Refinement, look: Callable[[Any], Any]) -> Refined:
    """Return the refined density after all passes that it asks for; `look` makes a pass and takes its factory."""
    while isinstance(refinement, FurtherPass):
        refinement = refinement.then(look(refinement.factory))
    return refinement
