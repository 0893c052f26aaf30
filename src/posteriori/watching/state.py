"""The state of a monitor, and its file: that of a model, of which nothing is executed."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import cast

import numpy as np

from posteriori.classifiers.estimator import Estimator
from posteriori.model_files import Content, pack, parse, read_file, unpack, write_file
from posteriori.persistence import digest_of
from posteriori.support.checks import LARGEST, require, require_kind, within
from posteriori.support.typing import Array
from posteriori.watching.streams import Stream, WatchedRows

_KIND = "Monitor"


@dataclass(frozen=True)
class BatchFacts:
    """Figures of one batch.

    Attributes
    ----------
    n_rows : int
    n_labelled : int
    log_density : float or None
        Mean log p(x) in nats; None if the model has none, or it is infinite.
    log_loss : float or None
        Mean −log p(y | x) of the labelled rows in nats; None without labels, or if it is infinite.
    error : float or None
        Share of the labelled rows of which another class is predicted; of a number the mean absolute error of E[y | x].
    log_e : tuple of float
        Natural logarithm of the evidence of each stream after the batch.
    """

    n_rows: int
    n_labelled: int
    log_density: float | None
    log_loss: float | None
    error: float | None
    log_e: tuple[float, ...]

    @classmethod
    def of(cls, rows: WatchedRows, log_e: list[float]) -> BatchFacts:
        """Summarise rows."""
        log_density, log_loss, error = map(_mean, (rows.log_evidence, rows.losses, rows.errors))
        return cls(rows.n_rows, len(rows.losses), log_density, log_loss, error, tuple(log_e))

    def check(self) -> None:
        """Raise ValueError if values that come from a file cannot be."""
        counts, numbers = (self.n_rows, self.n_labelled), (self.log_density, self.log_loss, self.error, *self.log_e)
        require(all(0 <= count < 2**62 for count in counts), "a number of rows cannot be")
        require(
            all(number is None or abs(number) <= LARGEST for number in numbers), "a figure is no number that can be"
        )


@dataclass(frozen=True)
class State:
    """State of a monitor, without rows; the history starts with the reference."""

    seed: int
    false_alarms: float
    streams: tuple[Stream, ...]
    history: tuple[BatchFacts, ...]

    def check(self) -> None:
        """Raise ValueError if values that come from a file are inconsistent."""
        require(0 <= self.seed < 2**62 and 0 <= self.false_alarms <= 1, "the seed or the rate of alarms cannot be")
        require(len(self.history) > 0, "the history is empty")
        n, n_streams = len(self.history) - 1, len(self.streams)
        require(all(len(facts.log_e) == n_streams for facts in self.history), "the history and the streams differ")
        for stream in self.streams:
            within_history = stream.evidence.n_batches <= n and (stream.alarm is None or 1 <= stream.alarm <= n)
            require(within_history, "a batch is not in it")


def _mean(values: Array | None) -> float | None:
    if values is None or not len(values):
        return None
    with np.errstate(invalid="ignore"):
        mean = float(np.mean(values))
    return mean if math.isfinite(mean) else None


def write_state(path: Path, state: State, model: Estimator) -> None:
    """Write a state beside the file, and rename it."""
    arrays: dict[str, Array] = {}
    content = {"model": _KIND, "watched": digest_of(model), "fitted": pack(state, "state", arrays)}
    write_file(path, content, arrays, _state_of)


def read_state(path: Path, model: Estimator) -> State:
    """Read a state, and check every value.

    Raises
    ------
    FileNotFoundError
        There is no such file.
    ValueError
        It holds no state, or that of another model.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no file {str(path)!r}")
    instead = "or start again with reference rows"
    with within(f"{str(path)!r} is not the state of a monitor", f"; name another file, {instead}"):
        metadata, arrays = read_file(path)
        content = parse(metadata["content"])
        state, watched = _state_of(content, arrays), content["watched"]
    if watched != digest_of(model):
        raise ValueError(
            f"{str(path)!r} is the state of a monitor of another model; name the file of this one, {instead}"
        )
    return state


def _state_of(content: Content, arrays: dict[str, Array]) -> State:
    require(content["model"] == _KIND, "it is another kind of file")
    state = unpack(content["fitted"], arrays, place="state")
    require_kind(state, State)
    return cast(State, state)
