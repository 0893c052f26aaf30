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
from posteriori.densities import ExpectingDensity, SummedDensity, TwoPassDensity
from posteriori.learning.acceleration import EMHistory, Squarem
from posteriori.learning.fit import estimate
from posteriori.learning.initialization import initializations
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics, from_responsibilities
from posteriori.statistics.moments import sums_from_responsibilities
from posteriori.tables import Assignment, Batch, LabelModel, Schema
from posteriori.typing import Array


@dataclass(frozen=True)
class EStepResult:
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

    def __add__(self, other: EStepResult) -> EStepResult:
        pairs = zip(self.blocks, other.blocks, strict=True)
        sums = tuple(a + b for a, b in pairs)
        log_likelihood = self.log_likelihood + other.log_likelihood
        return EStepResult(self.weight + other.weight, sums, log_likelihood, self.recorded + other.recorded)

    def within(self, statistics: JointStatistics, positions: Sequence[int]) -> JointStatistics:
        """Return the statistics with those of the blocks at some places as they are expected to be."""
        parts = list(statistics.blocks)
        for position, sums in zip(positions, self.blocks, strict=True):
            parts[position] = sums
        return replace(statistics, weight=self.weight, blocks=tuple(parts))


@dataclass(frozen=True)
class EMOptions:
    """When EM ends: at a gain of at most tolerance nats a row, or after max_steps, with a warning.

    Where components have no labels it starts from n_starts draws of a generator of this seed, and keeps the best end.
    """

    tolerance: float = 1e-5
    max_steps: int = 200
    n_starts: int = 1
    seed: int = 0


@dataclass(frozen=True)
class FitResult:
    """A model, the statistics it was estimated from, and the log-likelihood of the rows before each M-step.

    converged says whether EM ended by itself, and not for want of steps; telling is what labels turned out to say.
    """

    model: GenerativeModel
    statistics: JointStatistics
    trace: tuple[float, ...] = ()
    converged: bool = True
    label_model: LabelModel | None = None


def expect(model: GenerativeModel, inexact: Sequence[int]) -> Callable[[Batch], EStepResult]:
    """Return the E-step of a labelled batch for some blocks: their statistics, expected over missing cells."""

    def accumulate(batch: Batch) -> EStepResult:
        labels = cast(Assignment, batch.assignment)  # which a source to learn from has
        weight = np.bincount(labels.component, labels.weight, labels.n_components)
        parts, log_likelihood = [], 0.0
        for position in inexact:
            sums, part = _expected(model, position, batch)
            parts.append(sums)
            log_likelihood += part
        return EStepResult(weight, tuple(parts), log_likelihood)

    return accumulate


def expect_hidden(
    source: LabelledSource, model: GenerativeModel, inexact: Sequence[int], known: JointStatistics
) -> EStepResult:
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
    label_likelihood = [block.shared or isinstance(block.density, SummedDensity) for block in model.blocks]
    without_closed_form = [
        position for position in range(len(model.blocks)) if not (label_likelihood[position] or position in inexact)
    ]

    def accumulate(batch: Batch) -> EStepResult:
        hidden, responsibilities, log_likelihood = _with_responsibilities(model, batch)
        parts = [
            _sums_from_responsibilities(model, position, hidden, responsibilities, position in inexact)
            for position in range(len(model.blocks))
        ]
        if inexact or without_closed_form:
            labelled = batch.labelled()
            for position in inexact:
                sums, part = _expected(model, position, labelled)
                parts[position], log_likelihood = parts[position] + sums, log_likelihood + part
            log_likelihood += sum(
                _log_likelihood_of_labelled(model, position, labelled) for position in without_closed_form
            )
        recorded, of_labels = _of_records(batch, hidden, responsibilities)
        return EStepResult(
            sums_from_responsibilities(responsibilities), tuple(parts), log_likelihood + of_labels, recorded
        )

    expected = source.reduce(accumulate)
    blocks, occurring = list(expected.blocks), known.weight > 0
    log_likelihood = expected.log_likelihood + float(known.weight[occurring] @ model.log_prior[occurring])
    for position, (block, sums) in enumerate(zip(model.blocks, known.blocks, strict=True)):
        if position not in inexact:
            blocks[position] = sums + blocks[position]
            if isinstance(block.density, SummedDensity):
                log_likelihood += block.density.log_likelihood(model.parameters[position], sums)
    if np.isneginf(log_likelihood):  # of a labelled row that its component cannot produce: this names it
        source.reduce(lambda batch: float(model.responsibilities(batch)[1].sum()))
    return EStepResult(known.weight + expected.weight, tuple(blocks), log_likelihood, expected.recorded)


def _with_responsibilities(model: GenerativeModel, batch: Batch) -> tuple[Batch, Array, float]:
    """Return the rows without label, the weight of each in each component (n, Z), and their log-likelihood in nats."""
    hidden = batch.unlabelled()
    weight = cast(Assignment, hidden.assignment).weight
    responsibilities, log_likelihood = model.responsibilities(hidden)
    kernels.weight_responsibilities(responsibilities, weight)
    counted = weight > 0
    return hidden, responsibilities, float(weight[counted] @ log_likelihood[counted])


def _sums_from_responsibilities(
    model: GenerativeModel, position: int, batch: Batch, responsibilities: Array, inexact: bool
) -> Any:
    """Return the statistics of a block's shared rows, expected over missing cells where they matter."""
    block = model.blocks[position]
    tile = block.tile(batch)
    if not inexact:
        sums = from_responsibilities(block.density.sufficient_statistics, tile, responsibilities)
        if sums.is_exact():
            return sums
    density = cast(ExpectingDensity, block.density)  # or its statistics would be exact
    return density.expect_from_responsibilities(model.parameters[position], tile, responsibilities)


def _log_likelihood_of_labelled(model: GenerativeModel, position: int, batch: Batch) -> float:
    """Return Σ w·log p(x_block | z) in nats over rows whose component is known."""
    block, labels = model.blocks[position], cast(Assignment, batch.assignment)
    own = block.density.log_density(model.parameters[position], block.tile(batch))[
        np.arange(len(batch)), labels.component
    ]
    counted = labels.weight > 0
    return float(labels.weight[counted] @ own[counted])


def _of_records(batch: Batch, hidden: Batch, responsibilities: Array) -> tuple[Any, float]:
    """Return the weight of each component among the rows of each recorded class, (C, Z), where labels say no more.

    And log p(label | z) in nats of the rows whose component is known; that of the others is in their likelihood.
    """
    labels = cast(Assignment, batch.assignment)
    if labels.label_likelihood is None:
        return 0.0, 0.0
    known = np.flatnonzero(labels.component >= 0)
    n_classes, component = labels.label_likelihood.n_classes, labels.component[known]
    label_likelihood, weight = labels.label_likelihood.rows(known), labels.weight[known]
    of_hidden = cast(Assignment, hidden.assignment).label_likelihood
    assert of_hidden is not None
    recorded = (of_hidden.recorded[:, np.newaxis] == np.arange(n_classes)).T @ responsibilities
    certain = label_likelihood.recorded >= 0
    np.add.at(recorded, (label_likelihood.recorded[certain], component[certain]), weight[certain])
    return recorded, float(weight @ label_likelihood.log_likelihood[np.arange(len(known)), component])


def _expected(model: GenerativeModel, position: int, batch: Batch) -> tuple[Any, float]:
    """Return the expected statistics of a block, and the log-likelihood of its cells in nats."""
    block = model.blocks[position]
    density = cast(ExpectingDensity, block.density)  # or its statistics would be exact
    return density.expect(model.parameters[position], block.tile(batch), cast(Assignment, batch.assignment))


def unrefined(blocks: tuple[Block, ...]) -> list[str]:
    """Return what takes a second look at the rows, as a user would write it."""
    densities = (block.density for block in blocks)
    return [one.second_pass for one in densities if isinstance(one, TwoPassDensity) and one.second_pass]


def carry_over_structure(blocks: tuple[Block, ...], earlier: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks as they go on after an earlier call: settled as they were then."""
    if len(blocks) != len(earlier):
        return blocks
    return tuple(
        replace(block, density=block.density.carry_over_structure(past.density))
        if isinstance(block.density, TwoPassDensity) and type(block.density) is type(past.density)
        else block
        for block, past in zip(blocks, earlier, strict=True)
    )


def refine(
    source: LabelledSource, blocks: tuple[Block, ...], statistics: JointStatistics
) -> tuple[tuple[Block, ...], JointStatistics]:
    """Return blocks whose densities are settled, and their statistics, by further looks at the rows where needed."""

    def look(block: Block, sufficient_statistics: Any) -> Any:
        def accumulate(batch: Batch) -> Any:
            known = batch.labelled()
            return sufficient_statistics.of(block.tile(known), known.assignment)

        return source.reduce(accumulate)

    settled, sums = list(blocks), list(statistics.blocks)
    for position, block in enumerate(blocks):
        if isinstance(block.density, TwoPassDensity):
            density, sums[position] = block.density.refine(sums[position], partial(look, block))
            settled[position] = replace(block, density=density)
    return tuple(settled), replace(statistics, blocks=tuple(sums))


def learn(
    source: LabelledSource,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: EMOptions,
    start: GenerativeModel | None = None,
) -> FitResult:
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
        The statistics of rows that are no longer at hand; every density must then be settled (`unrefined`).
    statistics : JointStatistics
        Those of the rows at hand, from one pass.
    limits : EMOptions
    start : GenerativeModel, optional
        What EM starts from, in place of the above.

    References
    ----------
    Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39 (1977). Nigam,
    McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, Machine Learning 39
    (2000). Hastie & Tibshirani, Discriminant analysis by Gaussian mixtures, JRSS B 58 (1996).
    """
    many_passes = statistics.hidden > 0 or not all(part.is_exact() for part in statistics.blocks)
    if many_passes and source.is_streamed:
        source = source.cached()
    begun: list[GenerativeModel | None] = [start]
    if start is None and source.label_model is not None and statistics.hidden > 0:
        begun = list(starting_models(source, blocks, prior, limits))
    ends = [run_em(source, blocks, prior, past, statistics, limits, one) for one in begun]
    return max(ends, key=lambda end: end.trace[-1] if end.trace else 0.0)


def starting_models(
    source: LabelledSource, blocks: tuple[Block, ...], prior: Prior, limits: EMOptions
) -> Iterator[GenerativeModel]:
    """Yield what EM starts from: models of the rows shared out as their labels and, within a class, some seeds say."""
    for beginning in initializations(source, blocks, prior.of_class, limits.n_starts, limits.seed):
        yield first_model(source.schema, blocks, prior, source.reduce(beginning.collect(blocks)))


def first_model(
    schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics
) -> GenerativeModel:
    """Return a model of statistics of which those that missing cells make inexact are taken column by column."""
    sums = tuple(part if part.is_exact() else part.independent() for part in statistics.blocks)
    return estimate(schema, blocks, prior, replace(statistics, blocks=sums))


def warn_not_converged(learned: FitResult, limits: EMOptions, stacklevel: int) -> None:
    """Warn where EM ran out of steps."""
    if not learned.converged:
        gain = learned.trace[-1] - learned.trace[-2] if len(learned.trace) > 1 else math.inf
        warnings.warn(
            f"EM stopped after {limits.max_steps} steps with a last gain of {gain:.3g} nats; raise max_iter or tol",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )


def run_em(
    source: LabelledSource,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: EMOptions,
    start: GenerativeModel | None = None,
) -> FitResult:
    """Return where EM leads from a start, or from the rows that are labelled."""

    def whole(part: JointStatistics) -> JointStatistics:
        return part if past is None else past + part

    blocks, statistics = refine(source, blocks, statistics)
    hidden = statistics.hidden > 0
    inexact = _inexact(blocks, statistics)
    if not (inexact or hidden):
        model = estimate(source.schema, blocks, prior, whole(statistics))
        return FitResult(model, whole(statistics), label_model=source.label_model)
    model = start if start is not None else first_model(source.schema, blocks, prior, whole(statistics))
    known, rows = statistics, float(statistics.weight.sum()) + statistics.hidden
    trace: list[float] = []
    path, leap = EMHistory((model,)), Squarem(inexact)
    positions = range(len(blocks)) if hidden else inexact
    for _ in range(limits.max_steps):
        expected = expect_hidden(source, model, inexact, known) if hidden else source.reduce(expect(model, inexact))
        if path.extrapolated and not expected.log_likelihood >= trace[-1]:
            leap, path = leap.shorter(), path.without_extrapolation()
            model = path.models[-1]
            continue
        trace.append(expected.log_likelihood)
        statistics = expected.within(statistics, positions)
        model = estimate(source.schema, blocks, prior, whole(statistics))
        if source.label_model is not None:
            source = source.with_label_model(source.label_model.updated(expected.recorded))
        # A shrunk covariance is not of maximum likelihood, so that a step may also lower it: what counts is its size.
        if len(trace) > 1 and not path.extrapolated and abs(trace[-1] - trace[-2]) <= limits.tolerance * rows:
            break
        if not hidden:
            model, path, leap = leap.next(path, model, whole(statistics))
    else:
        if not hidden:
            model = path.models[-1]  # no leap that nothing has judged yet
        return FitResult(model, whole(statistics), tuple(trace), converged=False, label_model=source.label_model)
    return FitResult(model, whole(statistics), tuple(trace), label_model=source.label_model)


def _inexact(blocks: tuple[Block, ...], statistics: JointStatistics) -> list[int]:
    """Return the places of the blocks whose statistics have to be expected over missing cells."""
    pairs = enumerate(zip(blocks, statistics.blocks, strict=True))
    return [
        position
        for position, (block, sums) in pairs
        if not sums.is_exact() or (statistics.hidden > 0 and getattr(block.density, "expects", False))
    ]
