"""What a target of the fuzzer is."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

ACCEPTED, REFUSED = "accepted", "refused"


@dataclass(frozen=True)
class Target:
    """A kind of input.

    Attributes
    ----------
    name : str
    run : callable
        Takes a random generator and an empty folder to write files in; returns `ACCEPTED` or `REFUSED`, and raises
        whatever is a finding. The same generator state must give the same input.
    """

    name: str
    run: Callable[[np.random.Generator, Path], str]


def refuses(sentence: str) -> str:
    """Return `REFUSED` if the error is one clear sentence, and raise AssertionError otherwise."""
    if not sentence.strip():
        raise AssertionError("refused without a word")
    if "a defect of posteriori" in sentence or "Traceback" in sentence:
        raise AssertionError(sentence)
    return REFUSED
