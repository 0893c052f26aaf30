"""What a target of the fuzzer is, and what can become of an input."""

from __future__ import annotations

import functools
import re
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from posteriori.cli import messages
from posteriori.model.generative_model import GenerativeModel
from posteriori.networks import BayesianNetwork
from posteriori.pool import budget, candidates

# Ended before a model was learned or read; refused after that; answered.
DOOR, MODEL, ANSWER = "door", "model", "answer"
UNDEFINED = "cannot be produced by any"  # of the warning about rows whose posterior is NaN
_LONGEST = 2000  # characters of a sentence; a name of a column may be long


@dataclass(frozen=True)
class Habits:
    """Whether an input was answered as it should be, and the habits that its writer has, for a count by habit."""

    is_right: bool
    names: tuple[str, ...] = ()


@dataclass(frozen=True)
class Target:
    """A kind of input.

    Attributes
    ----------
    name : str
    run : callable
        Takes a random generator and an empty folder to write files in; returns whether the input was answered, with
        habits of its writer or without, and raises whatever is a finding. The same generator state must give the same
        input.
    """

    name: str
    run: Callable[[np.random.Generator, Path], bool | Habits]


class _Watch:
    """Counts the models and networks that are made, be they learned or read."""

    made = 0


def _counted(kind: Any) -> None:
    make = kind.__init__

    @functools.wraps(make)
    def count(self: Any, *arguments: Any, **named: Any) -> None:
        make(self, *arguments, **named)
        _Watch.made += 1

    kind.__init__ = count


def watch() -> None:
    """Count from now on the models that are made in this process, and reveal errors that are worded for the user."""
    messages.sentence_of = _revealing(messages.sentence_of)
    candidates.reason_of = budget.reason_of = _revealing(candidates.reason_of)
    for kind in (GenerativeModel, BayesianNetwork):
        if not hasattr(kind.__init__, "__wrapped__"):
            _counted(kind)


@contextmanager
def not_counted() -> Iterator[None]:
    """Make models that are shared by inputs, and are none of the input's own."""
    before = _Watch.made
    try:
        yield
    finally:
        _Watch.made = before


def outcome(target: Target, rng: np.random.Generator, folder: Path) -> str:
    """Return how far an input came, and the habits of its writer behind tabs; raise what is unexpected."""
    _Watch.made = 0
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UserWarning)  # the category of posteriori's own
        answered = target.run(rng, folder)
    habits = answered if isinstance(answered, Habits) else Habits(answered)
    return "\t".join((ANSWER if habits.is_right else MODEL if _Watch.made else DOOR, *habits.names))


def is_on_purpose(error: BaseException) -> bool:
    """Whether an exception was raised by a statement of posteriori or scikit-learn, rather than by an operation."""
    frames = traceback.extract_tb(error.__traceback__)
    return "raise " in (frames[-1].line or "") and any(one in frames[-1].filename for one in ("posteriori", "sklearn"))


def _revealing(message_of: Callable[[Exception], str]) -> Callable[[Exception], str]:
    """Make a function that words an error for the user raise the error instead, where no line raises it on purpose."""

    @functools.wraps(message_of)
    def check(error: Exception) -> str:
        cause = error if isinstance(error, ValueError) else error.__cause__
        if isinstance(cause, ValueError | TypeError) and not is_on_purpose(cause):
            raise cause
        return message_of(error)

    return check


def check_sentence(sentence: str) -> None:
    """Raise AssertionError unless a refusal is one clear sentence."""
    text = sentence.strip()
    if (
        not text
        or "\n" in text
        or len(text) > _LONGEST
        or re.search("a defect of posteriori|report this defect|Traceback", text)
    ):
        raise AssertionError(f"not one clear sentence: {sentence[:3000]!r}")


def check_posteriors(scores: Any, may_be_undefined: bool = False) -> None:
    """Raise AssertionError unless probabilities are finite and sum to 1 in every row, or all are NaN if they may be."""
    scores = np.asarray(scores, dtype=float)
    if may_be_undefined:
        scores = scores[~np.isnan(scores).all(axis=1)]
    if not np.isfinite(scores).all() or not np.allclose(scores.sum(axis=1), 1.0, atol=1e-6):
        raise AssertionError(f"probabilities are not finite or do not sum to 1: {scores[:3]}")
