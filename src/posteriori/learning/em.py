"""Expectation-maximisation: where cells are missing that the statistics cannot do without."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

from sklearn.exceptions import ConvergenceWarning

from posteriori.densities import ExpectingDensity, SettlingDensity
from posteriori.learning.acceleration import Leap, Path
from posteriori.learning.fit import estimate
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import Source
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch


@dataclass(frozen=True)
class Expected:
    """What an E-step adds up: the expected statistics of some blocks, and the log-likelihood of their cells in nats."""

    blocks: tuple[Any, ...]
    log_likelihood: float

    def __add__(self, other: Expected) -> Expected:
        pairs = zip(self.blocks, other.blocks, strict=True)
        return Expected(tuple(a + b for a, b in pairs), self.log_likelihood + other.log_likelihood)


@dataclass(frozen=True)
class Limits:
    """When EM ends: at a gain of at most tolerance nats a row, or after max_steps, with a warning."""

    tolerance: float = 1e-5
    max_steps: int = 200


@dataclass(frozen=True)
class Learned:
    """A model, the statistics it was estimated from, and the log-likelihood of the rows before each M-step."""

    model: GenerativeModel
    statistics: JointStatistics
    trace: tuple[float, ...] = ()


def expect(model: GenerativeModel, inexact: Sequence[int]) -> Callable[[Batch], Expected]:
    """Return the E-step of a batch for some blocks: their statistics, expected over what is missing."""

    def accumulate(batch: Batch) -> Expected:
        assert batch.assignment is not None  # a source to learn from has labels
        parts, log_likelihood = [], 0.0
        for place in inexact:
            block, parameters = model.blocks[place], model.parameters[place]
            density = cast(ExpectingDensity, block.density)  # or its statistics would be exact
            sums, part = density.expect(parameters, batch.take(block.columns, block.density.kind), batch.assignment)
            parts.append(sums)
            log_likelihood += part
        return Expected(tuple(parts), log_likelihood)

    return accumulate


def unsettled(blocks: tuple[Block, ...]) -> list[str]:
    """Return what takes a second look at the rows, as a user would write it."""
    densities = (block.density for block in blocks)
    return [one.second_look for one in densities if isinstance(one, SettlingDensity) and one.second_look]


def settle(
    source: Source, blocks: tuple[Block, ...], statistics: JointStatistics
) -> tuple[tuple[Block, ...], JointStatistics]:
    """Return blocks whose densities are settled, and their statistics, by further looks at the rows where needed."""

    def look(block: Block, needs: Any) -> Any:
        return source.reduce(lambda batch: needs.of(batch.take(block.columns, block.density.kind), batch.assignment))

    settled, sums = list(blocks), list(statistics.blocks)
    for place, block in enumerate(blocks):
        if isinstance(block.density, SettlingDensity):
            density, sums[place] = block.density.settle(sums[place], partial(look, block))
            settled[place] = replace(block, density=density)
    return tuple(settled), replace(statistics, blocks=tuple(sums))


def learn(
    source: Source,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: Limits,
) -> Learned:
    """Return the model of some rows: in closed form, or by EM where the statistics of a block are not exact.

    EM leaps where its steps are slow (`acceleration`). Densities that take a second look at the rows are settled first;
    the blocks of the model hold what they became.

    Parameters
    ----------
    source : Source
        The labelled rows.
    blocks : tuple of Block
    prior : Prior
        Of the components.
    past : JointStatistics, optional
        The statistics of rows that are no longer at hand; every density must then be settled (`unsettled`).
    statistics : JointStatistics
        Those of the rows at hand, from one pass.
    limits : Limits

    References
    ----------
    Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39 (1977).
    """

    def whole(part: JointStatistics) -> JointStatistics:
        return part if past is None else past + part

    blocks, statistics = settle(source, blocks, statistics)
    inexact = [place for place, sums in enumerate(statistics.blocks) if not sums.is_exact()]
    if not inexact:
        return Learned(estimate(source.schema, blocks, prior, whole(statistics)), whole(statistics))
    start = list(whole(statistics).blocks)
    for place in inexact:
        start[place] = start[place].independent()
    model = estimate(source.schema, blocks, prior, replace(whole(statistics), blocks=tuple(start)))
    rows = float(statistics.weight.sum())
    trace: list[float] = []
    path, leap = Path((model,)), Leap(inexact)
    for _ in range(limits.max_steps):
        expected = source.reduce(expect(model, inexact))
        if path.leapt and not expected.log_likelihood >= trace[-1]:
            leap, path = leap.shorter(), path.without_leap()
            model = path.models[-1]
            continue
        trace.append(expected.log_likelihood)
        parts = list(statistics.blocks)
        for place, sums in zip(inexact, expected.blocks, strict=True):
            parts[place] = sums
        statistics = replace(statistics, blocks=tuple(parts))
        model = estimate(source.schema, blocks, prior, whole(statistics))
        # A shrunk covariance is not of maximum likelihood, so that a step may also lower it: what counts is its size.
        if len(trace) > 1 and not path.leapt and abs(trace[-1] - trace[-2]) <= limits.tolerance * rows:
            break
        model, path, leap = leap.next(path, model, whole(statistics))
    else:
        model = path.models[-1]  # no leap that nothing has judged yet
        gain = trace[-1] - trace[-2] if len(trace) > 1 else math.inf
        warnings.warn(
            f"EM stopped after {limits.max_steps} steps with a last gain of {gain:.3g} nats; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=5,
        )
    return Learned(model, whole(statistics), tuple(trace))
