"""Leaps between the steps of EM: where three models on its path say that it goes, and slowly."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from posteriori.densities import ExpectingDensity
from posteriori.model import GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.typing import Array

_FACTOR = 4.0  # by which the longest leap grows and shrinks


@dataclass(frozen=True)
class EMHistory:
    """The last models, each by a step of EM from the one before it; leapt says that from the last EM has leapt on."""

    models: tuple[GenerativeModel, ...]
    extrapolated: bool = False

    def without_extrapolation(self) -> EMHistory:
        """Return the path that goes on from the last model by steps."""
        return EMHistory(self.models[-1:])


@dataclass(frozen=True)
class Squarem:
    r"""Squared extrapolation of EM (SQUAREM), in the coordinates of the densities.

    From models at :math:`\theta_0, \theta_1, \theta_2`, with :math:`r = \theta_1 - \theta_0`,
    :math:`v = \theta_2 - \theta_1 - r` and :math:`a = \lVert r \rVert / \lVert v \rVert`, it leaps to
    :math:`\theta_0 + 2 a r + a^2 v`, which for a = 1 is :math:`\theta_2`. A leap that lowers the likelihood is taken
    back, and the next ones are shorter; so the likelihood never falls.

    Parameters
    ----------
    blocks : sequence of int
        The places of those that are learned by EM.
    longest : float
        The largest a: four times it after a leap as long, a quarter after one that was taken back.

    References
    ----------
    Varadhan & Roland, Simple and globally convergent methods for accelerating the convergence of any EM algorithm,
    Scandinavian Journal of Statistics 35 (2008), scheme S3.
    """

    blocks: Sequence[int]
    longest: float = _FACTOR

    def shorter(self) -> Squarem:
        """Return a leap that goes less far."""
        return replace(self, longest=max(1.0, self.longest / _FACTOR))

    def next(
        self, path: EMHistory, model: GenerativeModel, statistics: JointStatistics
    ) -> tuple[GenerativeModel, EMHistory, Squarem]:
        """Return where to go on from, the path to there, and the leaps allowed from there on."""
        models = (model,) if path.extrapolated else (*path.models, model)
        if len(models) < 3:
            return model, EMHistory(models), self
        start, first, second = (self._coordinates(one, models[0]) for one in models)
        step = first - start
        turn = second - first - step
        length = float(np.linalg.norm(step) / max(float(np.linalg.norm(turn)), 1e-300))
        if length <= 1.0:
            return model, EMHistory((model,)), self
        a = min(length, self.longest)
        onward = self if a < self.longest else replace(self, longest=_FACTOR * self.longest)
        landing = self._from_unconstrained(start + 2 * a * step + a**2 * turn, models[0], statistics)
        return landing, EMHistory((model,), extrapolated=True), onward

    def _coordinates(self, model: GenerativeModel, reference: GenerativeModel) -> Array:
        parts = []
        for position in self.blocks:
            density = cast(ExpectingDensity, model.blocks[position].density)
            parts.append(density.to_unconstrained(model.parameters[position], reference.parameters[position]))
        return np.concatenate(parts)

    def _from_unconstrained(
        self, coordinates: Array, reference: GenerativeModel, statistics: JointStatistics
    ) -> GenerativeModel:
        parameters = list(reference.parameters)
        for position in self.blocks:
            density = cast(ExpectingDensity, reference.blocks[position].density)
            size = len(density.to_unconstrained(parameters[position], parameters[position]))
            parameters[position] = density.from_unconstrained(
                coordinates[:size], parameters[position], statistics.blocks[position]
            )
            coordinates = coordinates[size:]
        return replace(reference, parameters=tuple(parameters))
