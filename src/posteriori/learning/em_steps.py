"""Steps of EM: the expectation over hidden labels and cells, and acceleration by SQUAREM."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from posteriori import kernels
from posteriori.densities import ExpectingDensity, KnownLikelihoodDensity, implements
from posteriori.densities.capabilities import PatternDensity
from posteriori.densities.conditional import squarem
from posteriori.model import Block, GenerativeModel
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics, from_responsibilities
from posteriori.statistics.moments import sums_from_responsibilities
from posteriori.statistics.scatter import MissingPatterns, PatternsOfBlocks
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Numbers


@dataclass(frozen=True)
class EStepResult:
    """The sums of an E-step.

    Attributes
    ----------
    weight : ndarray (Z,)
        The expected weight of each component.
    blocks : tuple of Statistics
        The expected statistics of the blocks that the step covers.
    log_likelihood : float
        Of the observed cells of these blocks, in nats.
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
        """Return the statistics with the expected ones in place of those of the blocks at `positions`."""
        blocks = list(statistics.blocks)
        for position, sums in zip(positions, self.blocks, strict=True):
            blocks[position] = sums
        return replace(statistics, weight=self.weight, blocks=tuple(blocks))


def expect(model: GenerativeModel, inexact: Sequence[int]) -> Callable[[Batch], EStepResult]:
    """Return the E-step of a labelled batch: the statistics of the blocks `inexact`, expected over missing cells."""

    def accumulate(batch: Batch) -> EStepResult:
        batch = batch.labelled()  # unlabelled rows of weight 0 add nothing
        labels = cast(Assignment, batch.assignment)  # a labelled source sets it
        weight = np.bincount(labels.component, labels.weight, labels.n_components)
        blocks, log_likelihood = [], 0.0
        for position in inexact:
            sums, of_block = _expected(model, position, batch)
            blocks.append(sums)
            log_likelihood += of_block
        return EStepResult(weight, tuple(blocks), log_likelihood)

    return accumulate


def expect_hidden(
    source: LabelledSource, model: GenerativeModel, inexact: Sequence[int], known: JointStatistics
) -> EStepResult:
    """Return the E-step for all blocks, expected over hidden labels and missing cells.

    A row without known component counts for each component by its responsibility p(z | x, label). A row of known
    component is read again only for missing cells, and for blocks whose likelihood cannot be computed from statistics.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    model : GenerativeModel
    inexact : sequence of int
        The indices of the blocks whose statistics are expected over missing cells. Those of any other block are too, in
        a batch whose rows without label give statistics that are not exact.
    known : JointStatistics
        The statistics of the rows whose component is known.
    """
    knows_likelihood = [block.shared or implements(block.density, KnownLikelihoodDensity) for block in model.blocks]
    scored_by_row = [
        position for position in range(len(model.blocks)) if not (knows_likelihood[position] or position in inexact)
    ]

    def accumulate(batch: Batch) -> EStepResult:
        hidden, responsibilities, log_likelihood = _with_responsibilities(model, batch)
        blocks = [
            _sums_from_responsibilities(model, position, hidden, responsibilities, position in inexact)
            for position in range(len(model.blocks))
        ]
        if inexact or scored_by_row:
            labelled = batch.labelled()
            for position in inexact:
                sums, of_block = _expected(model, position, labelled)
                blocks[position], log_likelihood = blocks[position] + sums, log_likelihood + of_block
            log_likelihood += sum(_log_likelihood_of_labelled(model, position, labelled) for position in scored_by_row)
        recorded, of_labels = _recorded_weights(batch, hidden, responsibilities)
        return EStepResult(
            sums_from_responsibilities(responsibilities), tuple(blocks), log_likelihood + of_labels, recorded
        )

    expected = source.reduce(accumulate)
    # A component without labelled rows may have the prior 0: 0 · log 0 would be NaN.
    blocks, occurring = list(expected.blocks), known.weight > 0
    log_likelihood = expected.log_likelihood + float(known.weight[occurring] @ model.log_prior[occurring])
    for position, (block, sums) in enumerate(zip(model.blocks, known.blocks, strict=True)):
        if position not in inexact:
            blocks[position] = sums + blocks[position]
            if implements(block.density, KnownLikelihoodDensity):
                log_likelihood += block.density.log_likelihood(model.parameters[position], sums)
    if np.isneginf(log_likelihood):  # a labelled row that its component cannot produce: `responsibilities` raises
        source.reduce(lambda batch: float(model.responsibilities(batch)[1].sum()))
    return EStepResult(known.weight + expected.weight, tuple(blocks), log_likelihood, expected.recorded)


def _with_responsibilities(model: GenerativeModel, batch: Batch) -> tuple[Batch, Array, float]:
    """Return the rows without label, their weighted responsibilities (n, Z), and their log-likelihood in nats."""
    hidden = batch.unlabelled()
    weight = cast(Assignment, hidden.assignment).weight
    responsibilities, log_likelihood = model.responsibilities(hidden)
    kernels.weight_responsibilities(responsibilities, weight)
    counted = weight > 0  # a row of weight 0 may have the log-likelihood −inf
    return hidden, responsibilities, float(weight[counted] @ log_likelihood[counted])


def _sums_from_responsibilities(
    model: GenerativeModel, position: int, batch: Batch, responsibilities: Array, inexact: bool
) -> Any:
    """Return the statistics of a block by responsibilities, expected over missing cells if they are not exact."""
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
    log_density = block.density.log_density(model.parameters[position], block.tile(batch))
    of_component = log_density[np.arange(len(batch)), labels.component]
    counted = labels.weight > 0
    return float(labels.weight[counted] @ of_component[counted])


def _recorded_weights(batch: Batch, hidden: Batch, responsibilities: Array) -> tuple[Any, float]:
    """Return the weight of each component among the rows of each recorded class, (C, Z), if labels may be wrong.

    The second value is Σ w·log p(label | z) in nats over the rows whose component is known. For the other rows it is
    part of their log-likelihood.
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


def missing_patterns(
    source: LabelledSource, blocks: Sequence[Block], estimated: Sequence[int], known: Mapping[int, MissingPatterns]
) -> tuple[MissingPatterns, ...] | None:
    """Return the moments of the patterns of missing cells of each block; None if the E-step has to read the rows."""
    if not all(implements(blocks[index].density, PatternDensity) for index in estimated):
        return None
    if known.keys() >= set(estimated):
        given = tuple([known[index] for index in estimated])
        return given if all(patterns.are_few() for patterns in given) else None

    def collect(batch: Batch) -> PatternsOfBlocks:
        batch = batch.labelled()
        labels = cast(Assignment, batch.assignment)
        tiles = (cast(Numbers, blocks[index].tile(batch)) for index in estimated)
        return PatternsOfBlocks(tuple(MissingPatterns.of(tile, labels) for tile in tiles))

    found = source.reduce(collect).blocks
    return found if all(patterns.are_few() for patterns in found) else None


def expect_from_patterns(
    model: GenerativeModel, inexact: Sequence[int], patterns: Sequence[MissingPatterns], known: JointStatistics
) -> EStepResult:
    """Return the E-step of labelled rows from the moments of the patterns of missing cells of the blocks `inexact`."""
    results = []
    for index, of_block in zip(inexact, patterns, strict=True):
        density = cast(PatternDensity, model.blocks[index].density)
        results.append(density.expect_from_patterns(model.parameters[index], of_block, known.blocks[index]))
    sums, log_likelihood = zip(*results, strict=True)
    return EStepResult(known.weight, sums, float(sum(log_likelihood)))


_FACTOR = 4.0  # by which the largest step length grows and shrinks, as in the authors' R package SQUAREM


class Acceleration(Protocol):
    """Chooses the model at which EM takes its next E-step, from the models of its past steps."""

    @property
    def proposal(self) -> GenerativeModel:
        """The model for the next E-step."""

    @property
    def is_extrapolated(self) -> bool:
        """Whether the proposal is an extrapolation, whose likelihood may be below that of the last model."""

    @property
    def last(self) -> GenerativeModel:
        """The last model that an M-step returned, or the start."""

    def advance(self, model: GenerativeModel, statistics: JointStatistics) -> Acceleration:
        """Take the model and the statistics of an M-step, and choose the next proposal."""

    def reject(self) -> Acceleration:
        """Return to the last model, because the extrapolation has a lower likelihood."""


@dataclass(frozen=True)
class PlainEM:
    """EM without acceleration, of any kind of model: the next E-step uses the model of the last M-step."""

    proposal: Any

    @property
    def is_extrapolated(self) -> bool:
        """False: no proposal is an extrapolation."""
        return False

    @property
    def last(self) -> Any:
        """The proposal."""
        return self.proposal

    def advance(self, model: object, statistics: object) -> PlainEM:
        """Propose the model itself."""
        del statistics
        return PlainEM(model)

    def reject(self) -> PlainEM:
        """Return the same proposal: a step of EM is never rejected."""
        return self


@dataclass(frozen=True)
class Squarem:
    """Squared extrapolation of EM (SQUAREM), in unconstrained coordinates of the parameters.

    From three successive models of EM it extrapolates by `squarem`, if the length a is above 1. An extrapolation that
    lowers the likelihood is rejected, and EM continues from the last model, so that the accepted likelihoods never fall
    where steps of EM do not lower them.

    Attributes
    ----------
    blocks : sequence of int
        The indices of the blocks that EM estimates. Only their parameters are extrapolated.
    models : tuple of GenerativeModel
        The last models, at most two, each one step of EM after the one before it. None yet after a start that was
        estimated from other rows: their number is in the variance of a constant column, for one.
    proposal : GenerativeModel
        The model for the next E-step.
    is_extrapolated : bool
        Whether the proposal is an extrapolation from the last of `models`.
    max_length : float
        The upper limit of a. It is multiplied by 4 when an extrapolation reaches it, and divided by 4, down to 1 at
        least, when one is rejected.
    """

    blocks: Sequence[int]
    models: tuple[GenerativeModel, ...]
    proposal: GenerativeModel
    is_extrapolated: bool = False
    max_length: float = _FACTOR

    @classmethod
    def start(cls, model: GenerativeModel, blocks: Sequence[int], of_other_rows: bool) -> Squarem:
        """Begin at a model."""
        return cls(blocks, () if of_other_rows else (model,), model)

    @property
    def last(self) -> GenerativeModel:
        """The last model that an M-step returned, or the start."""
        return self.models[-1] if self.models else self.proposal

    def reject(self) -> Squarem:
        """Return to the last model, and shorten later extrapolations."""
        return replace(self._propose_last(self.models[-1:]), max_length=max(1.0, self.max_length / _FACTOR))

    def advance(self, model: GenerativeModel, statistics: JointStatistics) -> Squarem:
        """Take the model of an M-step; extrapolate if it is the third of a sequence that converges slowly.

        The M-step after an extrapolation begins a new sequence: the model before it is not one step of EM away.
        """
        models = (model,) if self.is_extrapolated else (*self.models, model)
        if len(models) < 3:
            return self._propose_last(models)
        start, once, twice = [self._coordinates(past, models[0]) for past in models]
        coordinates, length = squarem(start, once, twice, self.max_length)
        if length[0] <= 1.0:
            return self._propose_last((model,))
        max_length = self.max_length if length[0] < self.max_length else _FACTOR * self.max_length
        proposal = self._model_at(coordinates, models[0], statistics)
        return Squarem(self.blocks, (model,), proposal, is_extrapolated=True, max_length=max_length)

    def _propose_last(self, models: tuple[GenerativeModel, ...]) -> Squarem:
        return replace(self, models=models, proposal=models[-1], is_extrapolated=False)

    def _coordinates(self, model: GenerativeModel, reference: GenerativeModel) -> Array:
        """Return the unconstrained coordinates of a model's parameters, relative to those of a reference."""
        coordinates = []
        for index in self.blocks:
            density = cast(ExpectingDensity, model.blocks[index].density)
            coordinates.append(density.to_unconstrained(model.parameters[index], reference.parameters[index]))
        return np.concatenate(coordinates)

    def _model_at(self, coordinates: Array, reference: GenerativeModel, statistics: JointStatistics) -> GenerativeModel:
        """Return the reference with the parameters at some coordinates: the inverse of `_coordinates`."""
        parameters = list(reference.parameters)
        for index in self.blocks:
            density = cast(ExpectingDensity, reference.blocks[index].density)
            size = len(density.to_unconstrained(parameters[index], parameters[index]))
            parameters[index] = density.from_unconstrained(
                coordinates[:size], parameters[index], statistics.blocks[index]
            )
            coordinates = coordinates[size:]
        return replace(reference, parameters=tuple(parameters))
