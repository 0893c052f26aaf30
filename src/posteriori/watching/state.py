"""The state of a monitor, and its file: JSON, of which nothing is executed."""

from __future__ import annotations

import json
import math
import textwrap
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.model_files import parse
from posteriori.persistence import digest_of
from posteriori.reporting.drift import TableRows
from posteriori.support.atomic_write import write_whole
from posteriori.support.checks import LARGEST, require
from posteriori.support.typing import Array
from posteriori.watching.evidence import Martingale
from posteriori.watching.streams import COLUMN, LABELS, ROWS, Stream

_FORMAT = "posteriori watch"
_VERSION = 1


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
    log_e : tuple of float
        Natural logarithm of the evidence of each stream after the batch.
    """

    n_rows: int
    n_labelled: int
    log_density: float | None
    log_loss: float | None
    log_e: tuple[float, ...]

    @classmethod
    def of(cls, rows: TableRows, log_loss: Array, log_e: list[float]) -> BatchFacts:
        """Summarise rows; `log_loss` is that of the labelled ones."""
        return cls(rows.n_rows, len(log_loss), _mean(rows.log_evidence), _mean(log_loss), tuple(log_e))


@dataclass(frozen=True)
class State:
    """State of a monitor, without rows; the history starts with the reference."""

    seed: int
    false_alarms: float
    streams: tuple[Stream, ...]
    history: tuple[BatchFacts, ...]


def _mean(values: Array | None) -> float | None:
    if values is None or not len(values):
        return None
    with np.errstate(invalid="ignore"):
        mean = float(np.mean(values))
    return mean if math.isfinite(mean) else None


def write_state(path: Path, state: State, model: Classifier) -> None:
    """Write a state beside the file, and rename it."""
    content = {
        "format": _FORMAT,
        "version": _VERSION,
        "model": digest_of(model),
        "seed": state.seed,
        "false_alarms": state.false_alarms,
        "streams": [_content_of(one) for one in state.streams],
        "history": [asdict(one) for one in state.history],
    }
    write_whole(path, (json.dumps(content, ensure_ascii=False) + "\n").encode("utf-8", "surrogatepass"))


def read_state(path: Path, model: Classifier) -> State:
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
    try:
        content = parse(path.read_text(encoding="utf-8", errors="surrogatepass"))
        require(isinstance(content, dict) and content.get("format") == _FORMAT, "it is another kind of file")
        require(content["version"] == _VERSION, "it was written by another version")
        state = State(
            _whole(content["seed"]),
            _number(content["false_alarms"], 0.0, 1.0),
            tuple(_stream_of(one) for one in content["streams"]),
            tuple(_facts_of(one) for one in content["history"]),
        )
        require(len(state.history) > 0, "the history is empty")
        n = len(state.history) - 1
        for facts in state.history:
            require(len(facts.log_e) == len(state.streams), "the history and the streams differ")
        for one in state.streams:
            require(one.evidence.n_batches <= n and (one.alarm is None or 1 <= one.alarm <= n), "a batch is not in it")
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError) as error:
        reason = textwrap.shorten(str(error) if isinstance(error, ValueError) else repr(error), 150, placeholder=" …")
        raise ValueError(
            f"{str(path)!r} is not the state of a monitor ({reason}); name another file, or start again with reference "
            "rows"
        ) from None
    if content["model"] != digest_of(model):
        raise ValueError(
            f"{str(path)!r} is the state of a monitor of another model; name the file of this one, or start again with "
            "reference rows"
        )
    return state


def _content_of(stream: Stream) -> dict[str, Any]:
    evidence = stream.evidence
    return {
        "kind": stream.kind,
        "column": stream.column,
        "level": stream.level,
        "alarm": stream.alarm,
        "n_batches": evidence.n_batches,
        "edges": evidence.edges[1:].tolist(),  # the first is −∞, which JSON has not
        "counts": evidence.counts.tolist(),
        "log_capital": evidence.log_capital.tolist() if evidence.n_batches else None,
    }


def _stream_of(content: dict[str, Any]) -> Stream:
    n_batches = _whole(content["n_batches"])
    evidence = Martingale.starting(np.append(-np.inf, _numbers(content["edges"])), _numbers(content["counts"]))
    if n_batches:
        evidence = replace(evidence, log_capital=_numbers(content["log_capital"]), n_batches=n_batches)
    evidence.check()
    kind, column, alarm = content["kind"], content["column"], content["alarm"]
    require(kind in (ROWS, LABELS, COLUMN) and isinstance(column, str) == (kind == COLUMN), f"{kind!r} is no stream")
    level = _number(content["level"], 1e-300, 1.0)
    return Stream(kind, column, evidence, level, None if alarm is None else _whole(alarm))


def _facts_of(content: dict[str, Any]) -> BatchFacts:
    density, loss = (None if content[name] is None else _number(content[name]) for name in ("log_density", "log_loss"))
    log_e = tuple(_number(one) for one in content["log_e"])
    return BatchFacts(_whole(content["n_rows"]), _whole(content["n_labelled"]), density, loss, log_e)


def _whole(value: Any) -> int:
    require(isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 2**62, f"{value!r} is no count")
    return int(value)


def _number(value: Any, low: float = -LARGEST, high: float = LARGEST) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    require(is_number and low <= value <= high, f"{value!r} is no number that can be")
    return float(value)


def _numbers(values: Any) -> Array:
    return np.array([_number(one) for one in values], np.float64)
