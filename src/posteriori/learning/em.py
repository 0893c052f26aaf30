"""Expectation-maximisation: where cells that statistics cannot do without, or components, are hidden."""

from __future__ import annotations

import functools
import math
import operator
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from posteriori.densities import ExpectingDensity, SettlingDensity
from posteriori.learning.acceleration import Leap, Path
from posteriori.learning.fit import estimate
from posteriori.learning.starts import beginnings
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.tables import Assignment, Batch, Schema, Telling
from posteriori.typing import Array


@dataclass(frozen=True)
class Expected:
    """What an E-step adds up.

    Attributes
    ----------
    weight : ndarray (Z,)
        The expected weight of each component.
    blocks : tuple of Statistics
        The expected statistics of some blocks.
    log_likelihood : float
        Of what is observed of them, in nats.
    recorded : ndarray (C, Z) or float
        The expected weight of each component among the rows of each recorded class, where labels may be wrong.
    """

    weight: Array
    blocks: tuple[Any, ...]
    log_likelihood: float
    recorded: Any = 0.0

    def __add__(self, other: Expected) -> Expected:
        pairs = zip(self.blocks, other.blocks, strict=True)
        sums = tuple(a + b for a, b in pairs)
        log_likelihood = self.log_likelihood + other.log_likelihood
        return Expected(self.weight + other.weight, sums, log_likelihood, self.recorded + other.recorded)

    def within(self, statistics: JointStatistics, places: Sequence[int]) -> JointStatistics:
        """Return the statistics with those of the blocks at some places as they are expected to be."""
        parts = list(statistics.blocks)
        for place, sums in zip(places, self.blocks, strict=True):
            parts[place] = sums
        return replace(statistics, weight=self.weight, blocks=tuple(parts))


@dataclass(frozen=True)
class Limits:
    """When EM ends: at a gain of at most tolerance nats a row, or after max_steps, with a warning.

    Where components have no labels it starts from n_starts draws of a generator of this seed, and keeps the best end.
    """

    tolerance: float = 1e-5
    max_steps: int = 200
    n_starts: int = 1
    seed: int = 0


@dataclass(frozen=True)
class Learned:
    """A model, the statistics it was estimated from, and the log-likelihood of the rows before each M-step.

    converged says whether EM ended by itself, and not for want of steps; telling is what labels turned out to say.
    """

    model: GenerativeModel
    statistics: JointStatistics
    trace: tuple[float, ...] = ()
    converged: bool = True
    telling: Telling | None = None


def expect(model: GenerativeModel, inexact: Sequence[int]) -> Callable[[Batch], Expected]:
    """Return the E-step of a labelled batch for some blocks: their statistics, expected over missing cells."""

    def accumulate(batch: Batch) -> Expected:
        labels = cast(Assignment, batch.assignment)  # which a source to learn from has
        weight = np.bincount(labels.component, labels.weight, labels.n_components)
        parts, log_likelihood = [], 0.0
        for place in inexact:
            sums, part = _expected(model, place, batch)
            parts.append(sums)
            log_likelihood += part
        return Expected(weight, tuple(parts), log_likelihood)

    return accumulate


def expect_hidden(model: GenerativeModel, inexact: Sequence[int]) -> Callable[[Batch], Expected]:
    """Return the E-step of a batch for all blocks, expected over hidden labels and missing cells.

    A row counts for each component that may have made it by its responsibility p(z | x, label); missing cells of the
    blocks at the places `inexact`, and wherever statistics say that they are not exact, are expected given z.
    """

    def expected_share(part: Batch) -> Expected:
        share = cast(Assignment, part.assignment)
        weight = np.bincount(share.component, share.weight, share.n_components)
        return Expected(weight, tuple(sums_of(place, part) for place in range(len(model.blocks))), 0.0)

    def sums_of(place: int, part: Batch) -> Any:
        if place not in inexact:
            block = model.blocks[place]
            sums = block.density.needs.of(block.tile(part), cast(Assignment, part.assignment))
            if sums.is_exact():
                return sums
        return _expected(model, place, part)[0]

    def accumulate(batch: Batch) -> Expected:
        labels = cast(Assignment, batch.assignment)
        responsibilities, log_likelihood = model.responsibilities(batch)
        counted = labels.weight > 0
        total = float(labels.weight[counted] @ log_likelihood[counted])
        shares = functools.reduce(operator.add, map(expected_share, batch.shares(responsibilities)))
        return replace(shares, log_likelihood=total, recorded=_weight_of_records(labels, responsibilities))

    return accumulate


def _weight_of_records(labels: Assignment, responsibilities: Array) -> Any:
    """Return the expected weight of each component among the rows of each recorded class, (C, Z)."""
    if labels.told is None:
        return 0.0
    recorded = labels.told.recorded
    n_classes = labels.told.n_classes
    membership = (recorded[:, np.newaxis] == np.arange(n_classes)) * labels.weight[:, np.newaxis]
    return membership.T @ responsibilities


def _expected(model: GenerativeModel, place: int, batch: Batch) -> tuple[Any, float]:
    """Return the expected statistics of a block, and the log-likelihood of its cells in nats."""
    block = model.blocks[place]
    density = cast(ExpectingDensity, block.density)  # or its statistics would be exact
    return density.expect(model.parameters[place], block.tile(batch), cast(Assignment, batch.assignment))


def unsettled(blocks: tuple[Block, ...]) -> list[str]:
    """Return what takes a second look at the rows, as a user would write it."""
    densities = (block.density for block in blocks)
    return [one.second_look for one in densities if isinstance(one, SettlingDensity) and one.second_look]


def resumed(blocks: tuple[Block, ...], earlier: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks as they go on after an earlier call: settled as they were then."""
    if len(blocks) != len(earlier):
        return blocks
    return tuple(
        replace(block, density=block.density.resumed(past.density))
        if isinstance(block.density, SettlingDensity) and type(block.density) is type(past.density)
        else block
        for block, past in zip(blocks, earlier, strict=True)
    )


def settle(
    source: LabelledSource, blocks: tuple[Block, ...], statistics: JointStatistics
) -> tuple[tuple[Block, ...], JointStatistics]:
    """Return blocks whose densities are settled, and their statistics, by further looks at the rows where needed."""

    def look(block: Block, needs: Any) -> Any:
        def accumulate(batch: Batch) -> Any:
            known = batch.labelled()
            return needs.of(block.tile(known), known.assignment)

        return source.reduce(accumulate)

    settled, sums = list(blocks), list(statistics.blocks)
    for place, block in enumerate(blocks):
        if isinstance(block.density, SettlingDensity):
            density, sums[place] = block.density.settle(sums[place], partial(look, block))
            settled[place] = replace(block, density=density)
    return tuple(settled), replace(statistics, blocks=tuple(sums))


def learn(
    source: LabelledSource,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: Limits,
    start: GenerativeModel | None = None,
) -> Learned:
    """Return the model of some rows: in closed form, or by EM where labels, or cells that matter, are hidden.

    EM starts from the rows that are labelled; where labels do not say the component, from what they do say, several
    times where classes have several. It leaps where its steps are slow (`acceleration`) and no label is hidden.
    Densities that take a second look at the rows are settled first, by the labelled ones; the blocks of the model hold
    what they became.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    blocks : tuple of Block
    prior : Prior
        Of the components.
    past : JointStatistics, optional
        The statistics of rows that are no longer at hand; every density must then be settled (`unsettled`).
    statistics : JointStatistics
        Those of the rows at hand, from one pass.
    limits : Limits
    start : GenerativeModel, optional
        What EM starts from, in place of the above.

    References
    ----------
    Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39 (1977). Nigam,
    McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, Machine Learning 39
    (2000). Hastie & Tibshirani, Discriminant analysis by Gaussian mixtures, JRSS B 58 (1996).
    """
    begun: list[GenerativeModel | None] = [start]
    if start is None and source.telling is not None and statistics.hidden > 0:
        begun = list(starting_models(source, blocks, prior, limits))
    ends = [_climb(source, blocks, prior, past, statistics, limits, one) for one in begun]
    return max(ends, key=lambda end: end.trace[-1] if end.trace else 0.0)


def starting_models(
    source: LabelledSource, blocks: tuple[Block, ...], prior: Prior, limits: Limits
) -> Iterator[GenerativeModel]:
    """Yield what EM starts from: models of the rows shared out as their labels and, within a class, some seeds say."""
    for beginning in beginnings(source, blocks, prior.of_class, limits.n_starts, limits.seed):
        yield first_model(source.schema, blocks, prior, source.reduce(beginning.collect(blocks)))


def first_model(
    schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics
) -> GenerativeModel:
    """Return a model of statistics of which those that missing cells make inexact are taken column by column."""
    sums = tuple(part if part.is_exact() else part.independent() for part in statistics.blocks)
    return estimate(schema, blocks, prior, replace(statistics, blocks=sums))


def warn_of_haste(learned: Learned, limits: Limits, stacklevel: int) -> None:
    """Warn where EM ran out of steps."""
    if not learned.converged:
        gain = learned.trace[-1] - learned.trace[-2] if len(learned.trace) > 1 else math.inf
        warnings.warn(
            f"EM stopped after {limits.max_steps} steps with a last gain of {gain:.3g} nats; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def _climb(
    source: LabelledSource,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: Limits,
    start: GenerativeModel | None = None,
) -> Learned:
    """Return where EM leads from a start, or from the rows that are labelled."""

    def whole(part: JointStatistics) -> JointStatistics:
        return part if past is None else past + part

    blocks, statistics = settle(source, blocks, statistics)
    hidden = statistics.hidden > 0
    inexact = _inexact(blocks, statistics)
    if not (inexact or hidden):
        model = estimate(source.schema, blocks, prior, whole(statistics))
        return Learned(model, whole(statistics), telling=source.telling)
    model = start if start is not None else first_model(source.schema, blocks, prior, whole(statistics))
    rows = float(statistics.weight.sum())
    if hidden:
        rows = float(source.reduce(_weight))
    trace: list[float] = []
    path, leap = Path((model,)), Leap(inexact)
    places = range(len(blocks)) if hidden else inexact
    for _ in range(limits.max_steps):
        expected = source.reduce(expect_hidden(model, inexact) if hidden else expect(model, inexact))
        if path.leapt and not expected.log_likelihood >= trace[-1]:
            leap, path = leap.shorter(), path.without_leap()
            model = path.models[-1]
            continue
        trace.append(expected.log_likelihood)
        statistics = expected.within(statistics, places)
        model = estimate(source.schema, blocks, prior, whole(statistics))
        if source.telling is not None:
            source = source.with_telling(source.telling.updated(expected.recorded))
        # A shrunk covariance is not of maximum likelihood, so that a step may also lower it: what counts is its size.
        if len(trace) > 1 and not path.leapt and abs(trace[-1] - trace[-2]) <= limits.tolerance * rows:
            break
        if not hidden:
            model, path, leap = leap.next(path, model, whole(statistics))
    else:
        if not hidden:
            model = path.models[-1]  # no leap that nothing has judged yet
        return Learned(model, whole(statistics), tuple(trace), converged=False, telling=source.telling)
    return Learned(model, whole(statistics), tuple(trace), telling=source.telling)


def _inexact(blocks: tuple[Block, ...], statistics: JointStatistics) -> list[int]:
    """Return the places of the blocks whose statistics have to be expected over missing cells."""
    pairs = enumerate(zip(blocks, statistics.blocks, strict=True))
    return [
        place
        for place, (block, sums) in pairs
        if not sums.is_exact() or (statistics.hidden > 0 and getattr(block.density, "expects", False))
    ]


def _weight(batch: Batch) -> float:
    return float(cast(Assignment, batch.assignment).weight.sum())
