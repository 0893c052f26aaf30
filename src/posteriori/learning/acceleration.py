"""SQUAREM acceleration of EM (Varadhan & Roland 2008)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol, cast

import numpy as np

from posteriori.densities import ExpectingDensity
from posteriori.densities.fixed_point import squarem
from posteriori.model import GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.typing import Array

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

    def advance(self, model: Any, statistics: Any) -> PlainEM:
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
        The last models, at most two, each one step of EM after the one before it.
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
    def start(cls, model: GenerativeModel, blocks: Sequence[int]) -> Squarem:
        """Begin at a model."""
        return cls(blocks, (model,), model)

    @property
    def last(self) -> GenerativeModel:
        """The last model that an M-step returned, or the start."""
        return self.models[-1]

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
        start, once, twice = (self._coordinates(past, models[0]) for past in models)
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
