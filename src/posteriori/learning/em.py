"""Expectation-maximisation: where cells that statistics cannot do without, or components, are hidden."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from posteriori import kernels
from posteriori.densities import ExpectingDensity, SettlingDensity, SummedDensity
from posteriori.learning.acceleration import Leap, Path
from posteriori.learning.fit import estimate
from posteriori.learning.starts import beginnings
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics, of_shares
from posteriori.statistics.moments import sums_of_shares
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


def expect_hidden(
    source: LabelledSource, model: GenerativeModel, inexact: Sequence[int], known: JointStatistics
) -> Expected:
    """Return the E-step for all blocks, expected over hidden labels and missing cells.

    A row counts for each component that may have made it by its responsibility p(z | x, label). One whose component is
    known is read again only where its missing cells are to be expected, or its statistics do not tell its likelihood.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    model : GenerativeModel
    inexact : sequence of int
        The places of the blocks whose statistics are expected over missing cells; those of other blocks too, wherever
        statistics of rows without label say that they are not exact.
    known : JointStatistics
        Those of the rows whose component is known.
    """
    told = [block.shared or isinstance(block.density, SummedDensity) for block in model.blocks]
    untold = [place for place in range(len(model.blocks)) if not (told[place] or place in inexact)]

    def accumulate(batch: Batch) -> Expected:
        hidden, shares, log_likelihood = _shared_out(model, batch)
        parts = [_sums_of_shares(model, place, hidden, shares, place in inexact) for place in range(len(model.blocks))]
        if inexact or untold:
            labelled = batch.labelled()
            for place in inexact:
                sums, part = _expected(model, place, labelled)
                parts[place], log_likelihood = parts[place] + sums, log_likelihood + part
            log_likelihood += sum(_log_likelihood_of_labelled(model, place, labelled) for place in untold)
        recorded, of_labels = _of_records(batch, hidden, shares)
        return Expected(sums_of_shares(shares), tuple(parts), log_likelihood + of_labels, recorded)

    expected = source.reduce(accumulate)
    blocks, occurring = list(expected.blocks), known.weight > 0
    log_likelihood = expected.log_likelihood + float(known.weight[occurring] @ model.log_prior[occurring])
    for place, (block, sums) in enumerate(zip(model.blocks, known.blocks, strict=True)):
        if place not in inexact:
            blocks[place] = sums + blocks[place]
            if isinstance(block.density, SummedDensity):
                log_likelihood += block.density.log_likelihood(model.parameters[place], sums)
    if np.isneginf(log_likelihood):  # of a labelled row that its component cannot produce: this names it
        source.reduce(lambda batch: float(model.responsibilities(batch)[1].sum()))
    return Expected(known.weight + expected.weight, tuple(blocks), log_likelihood, expected.recorded)


def _shared_out(model: GenerativeModel, batch: Batch) -> tuple[Batch, Array, float]:
    """Return the rows without label, the weight of each in each component (n, Z), and their log-likelihood in nats."""
    hidden = batch.unlabelled()
    weight = cast(Assignment, hidden.assignment).weight
    shares, log_likelihood = model.responsibilities(hidden)
    kernels.weigh_shares(shares, weight)
    counted = weight > 0
    return hidden, shares, float(weight[counted] @ log_likelihood[counted])


def _sums_of_shares(model: GenerativeModel, place: int, batch: Batch, shares: Array, inexact: bool) -> Any:
    """Return the statistics of a block's shared rows, expected over missing cells where they matter."""
    block = model.blocks[place]
    tile = block.tile(batch)
    if not inexact:
        sums = of_shares(block.density.needs, tile, shares)
        if sums.is_exact():
            return sums
    density = cast(ExpectingDensity, block.density)  # or its statistics would be exact
    return density.expect_shares(model.parameters[place], tile, shares)


def _log_likelihood_of_labelled(model: GenerativeModel, place: int, batch: Batch) -> float:
    """Return Σ w·log p(x_block | z) in nats over rows whose component is known."""
    block, labels = model.blocks[place], cast(Assignment, batch.assignment)
    own = block.density.log_density(model.parameters[place], block.tile(batch))[np.arange(len(batch)), labels.component]
    counted = labels.weight > 0
    return float(labels.weight[counted] @ own[counted])


def _of_records(batch: Batch, hidden: Batch, shares: Array) -> tuple[Any, float]:
    """Return the weight of each component among the rows of each recorded class, (C, Z), where labels say no more.

    And log p(label | z) in nats of the rows whose component is known; that of the others is in their likelihood.
    """
    labels = cast(Assignment, batch.assignment)
    if labels.told is None:
        return 0.0, 0.0
    known = np.flatnonzero(labels.component >= 0)
    n_classes, component = labels.told.n_classes, labels.component[known]
    told, weight = labels.told.rows(known), labels.weight[known]
    of_hidden = cast(Assignment, hidden.assignment).told
    assert of_hidden is not None
    recorded = (of_hidden.recorded[:, np.newaxis] == np.arange(n_classes)).T @ shares
    certain = told.recorded >= 0
    np.add.at(recorded, (told.recorded[certain], component[certain]), weight[certain])
    return recorded, float(weight @ told.log_likelihood[np.arange(len(known)), component])


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
    many_passes = statistics.hidden > 0 or not all(part.is_exact() for part in statistics.blocks)
    if many_passes and source.comes_anew:
        source = source.holding()
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
    known, rows = statistics, float(statistics.weight.sum()) + statistics.hidden
    trace: list[float] = []
    path, leap = Path((model,)), Leap(inexact)
    places = range(len(blocks)) if hidden else inexact
    for _ in range(limits.max_steps):
        expected = expect_hidden(source, model, inexact, known) if hidden else source.reduce(expect(model, inexact))
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
