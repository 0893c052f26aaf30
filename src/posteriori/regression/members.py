"""The members of a pool of regressions as one model: the density of the target in each of them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from posteriori.model.predictive import NumberCells
from posteriori.regression.features import Features
from posteriori.regression.landmarks import Inputs, Landmarks
from posteriori.regression.least_squares import LeastSquares, Products
from posteriori.regression.neighbours import Neighbours, Placed
from posteriori.regression.scales import Scale
from posteriori.support.checks import check_equal, check_numbers, check_places, check_share, require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

Name = Literal["forest", "additive", "kernel"]
NAMES: tuple[Name, ...] = ("forest", "additive", "kernel")
_FLOOR = 1e-3  # the weight of a wide density in that of each member, so that no row is impossible
_OF_ATOM = 0.02  # the weight of the share of all rows in the probability of an atom


@dataclass(frozen=True)
class Design:
    """The features of rows: those of single columns, and the similarities to landmarks."""

    features: Features
    filler: LeastSquares | None  # of training rows with gaps, by which unknown features are expected; else None
    landmarks: Landmarks | None

    def of_rows(self, batch: Batch, additive: LeastSquares | None = None) -> tuple[Array, Array]:
        """Return the features of rows, (n, p), and the variance of the target by cells that are missing, (n,).

        `additive` expects unknown features where no training row has a gap. The marks for the gaps of training rows
        stand for their variance.
        """
        values, unknown = self.features.of_rows(batch), self.features.unknown(batch)
        filler = self.filler or additive
        variance = np.zeros(len(batch))
        if filler is not None and unknown.any():
            values, of_targets = filler.filled(values, unknown)
            variance = np.where(self.features.unexpected(batch), of_targets[:, 0], 0.0)
        return self.joined(values), variance

    def joined(self, values: Array) -> Array:
        """Return the features of single columns with the similarities to landmarks beside them."""
        if self.landmarks is None:
            return values
        return np.concatenate([values, self.landmarks.of_rows(Inputs.of(self.features, values).values)], axis=1)


@dataclass(frozen=True)
class Location:
    """A sum of features on the scale of the target: of single columns, or of the similarities to landmarks too."""

    name: Name
    penalty: Array  # (p,): as in `LeastSquares`, of the first features


@dataclass(frozen=True)
class Smoothing:
    """How the density of a member follows from its neighbours: their blur, and how much all rows count."""

    width: float  # of the blur, in cells
    common: float  # the weight of the distribution of all training rows


@dataclass(frozen=True)
class Members:
    """The members of a pool of regressions."""

    cells: NumberCells
    share: Array  # (G,): the share of the training rows in each cell
    scale: Scale  # on which the target is a sum of features
    design: Design
    sums: Products | None  # of all features; None without a location
    locations: tuple[Location, ...]
    neighbours: Neighbours
    placed: Placed
    smoothings: tuple[Smoothing, ...]  # of each member
    has_forest: bool

    @property
    def names(self) -> list[str]:
        """The names of the members."""
        return [*(["forest"] if self.has_forest else []), *(one.name for one in self.locations)]

    @cached_property
    def atoms(self) -> Array:
        """Which cells hold one frequent value, whose probability is no matter of its place, (G,)."""
        return atoms_of(self.cells, self.share)

    @cached_property
    def squares(self) -> tuple[LeastSquares, ...]:
        """The least squares of each location."""
        if self.sums is None:
            return ()
        return tuple(LeastSquares(self.sums.first(len(one.penalty)), one.penalty) for one in self.locations)

    @cached_property
    def edges(self) -> Array:
        """The ends of the cells on the scale, (G + 1,)."""
        return self.scale.forward(edges_of(self.cells))

    def located(self, batch: Batch) -> tuple[Array, Array]:
        """Return the locations of rows, (n, M), and by how much cells that are missing make them deviate, (n,)."""
        if not self.squares:
            return np.empty((len(batch), 0)), np.zeros(len(batch))
        values, variance = self.design.of_rows(batch, self._additive)
        each = [one.predict(values[:, : len(one.penalty)])[:, 0] for one in self.squares]
        return np.stack(each, axis=1), np.sqrt(variance)

    @cached_property
    def _additive(self) -> LeastSquares | None:
        """The least squares of the features of columns alone."""
        n = len(self.design.features)
        if self.sums is None:
            return None
        first = next((one for one in self.squares if len(one.penalty) == n), None)
        return first or LeastSquares(self.sums.first(n), self.locations[0].penalty[:n])

    def raw(self, batch: Batch, location: Array, deviation: Array, n_jobs: int | None = 1) -> Raw:
        """Return the distributions that neighbours and all rows give to rows."""
        near = self.neighbours.spread(batch, self.placed, self.edges, location, deviation, n_jobs)
        common = [np.broadcast_to(self.share, (len(batch), len(self.cells)))]
        common += [self._common(m, location[:, m], deviation) for m in range(location.shape[1])]
        return Raw(near, np.stack(common, axis=1))

    def _common(self, m: int, location: Array, deviation: Array) -> Array:
        """Return the distribution of a location plus the residuals of all training rows, (n, G)."""
        order = np.argsort(self.placed.residual[:, m], kind="stable")
        residual, reached = self.placed.residual[order, m], np.cumsum(self.neighbours.weight[order])
        edges = self.edges[1:-1]
        reached = np.concatenate([[0.0], reached / reached[-1]])
        below = np.zeros((len(location), len(edges)))
        for node, mass in zip(*(_NODES if deviation.any() else _ONE_NODE), strict=True):
            at = edges - (location + node * deviation)[:, np.newaxis]
            below += mass * reached[np.searchsorted(residual, at)]
        return np.diff(below, axis=1, prepend=0.0, append=1.0)

    def log_probability(self, batch: Batch, n_jobs: int | None = 1) -> Array:
        """Return the log of the probability of each cell by each member, (n, G, M), in nats."""
        raw = self.raw(batch, *self.located(batch), n_jobs)
        return self.log_probability_of(raw)

    def log_probability_of(self, raw: Raw) -> Array:
        """Return the same from the distributions of the neighbours."""
        first = 0 if self.has_forest else 1
        found = [self.smoothed(raw, first + m, one) for m, one in enumerate(self.smoothings)]
        return np.asarray(np.log(np.stack(found, axis=2)))

    def smoothed(self, raw: Raw, m: int, smoothing: Smoothing) -> Array:
        """Return the probability of each cell, (n, G), by the forest (m = 0) or by a location."""
        mixed = (1.0 - smoothing.common) * raw.near[:, m] + smoothing.common * raw.common[:, m]
        found = mixed @ blur(self.atoms, smoothing.width)
        if m > 0 and self.atoms.any():
            found[:, self.atoms] = 0.0
            of_atoms = (1.0 - _OF_ATOM) * raw.near[:, 0, self.atoms] + _OF_ATOM * self.share[self.atoms]
            others = np.maximum(found.sum(axis=1), np.finfo(np.float64).tiny)
            found *= ((1.0 - of_atoms.sum(axis=1)) / others)[:, np.newaxis]
            found[:, self.atoms] = of_atoms
        found = (1.0 - _FLOOR) * found + _FLOOR * 0.5 * (self.share + 1.0 / len(self.share))
        return np.asarray(found / found.sum(axis=1, keepdims=True))

    def check_against(self, schema: Schema) -> None:
        """Raise ValueError unless the parts, which may come from a file, fit together and to a schema."""
        design, n_cells, n_rows = self.design, len(self.cells), len(self.neighbours.weight)
        design.features.check_against(schema)
        require(self.neighbours.schema.uncut() == schema.uncut(), "the trees are of other columns")
        check_numbers("the shares of cells", self.share, (n_cells,), 0.0, 1.0)
        check_equal("the number of training rows", len(self.placed.cell), n_rows)
        check_places("the cells of training rows", self.placed.cell, (n_rows,), 0, n_cells)
        check_equal("the number of residuals", self.placed.residual.shape[1], len(self.locations))
        check_equal("the number of members", len(self.smoothings), self.has_forest + len(self.locations))
        require(len(self.smoothings) > 0, "there is no member")
        n_features = len(design.features) + (0 if design.landmarks is None else len(design.landmarks))
        for one in self.locations:
            require(one.name in NAMES, "there is no such member")
            require(len(design.features) <= len(one.penalty) <= n_features, "a member has other features")
            check_numbers("the penalties", one.penalty, (len(one.penalty),), np.finfo(np.float64).tiny)
        if self.locations:
            require(self.sums is not None and len(self.sums.features) == n_features, "the sums are of other features")
        if design.filler is not None:
            check_equal("the number of features", len(design.filler.penalty), len(design.features))
        if design.landmarks is not None:
            width = Inputs.of(design.features, np.zeros((0, len(design.features)))).values.shape[1]
            check_equal("the number of inputs", len(design.landmarks.weight), width)
        for smoothing in self.smoothings:
            check_numbers("the width of a blur", np.array([smoothing.width]), (1,), 1e-6)
            check_share("the weight of all rows", smoothing.common)

    def without(self, sums: Products | None, neighbours: Neighbours) -> Members:
        """Return the members that learned from the rows outside of a fold, from their sums."""
        return replace(self, sums=sums, neighbours=neighbours)


@dataclass(frozen=True)
class Raw:
    """The distributions over cells that neighbours give, and those of all training rows, each (n, 1 + M, G)."""

    near: Array
    common: Array

    def rows(self, chosen: Array) -> Raw:
        """Return those of some rows."""
        return Raw(self.near[chosen], self.common[chosen])


_ONE_NODE = ((0.0,), (1.0,))
# Quadrature of a normal density by five points (Abramowitz & Stegun 1964, table 25.10).
_NODES = (
    (-2.8569700138728056, -1.3556261799742659, 0.0, 1.3556261799742659, 2.8569700138728056),
    (0.011257411327720691, 0.22207592200561266, 0.5333333333333333, 0.22207592200561266, 0.011257411327720691),
)
_FREQUENT = 0.02  # the least share of the rows that an atom has
_EXCESS = 3.0  # times the mean share of the four cells beside it


def atoms_of(cells: NumberCells, share: Array) -> Array:
    """Return which cells hold one value that is far more frequent than those beside it, (G,)."""
    padded = np.pad(share, 2)
    beside = (padded[:-4] + padded[1:-3] + padded[3:-1] + padded[4:]) / 4.0
    return np.asarray((cells.low == cells.high) & (share >= _FREQUENT) & (share > _EXCESS * beside))


def blur(atoms: Array, width: float) -> Array:
    """Return the matrix that blurs probabilities over cells, (G, G), by a normal density; atoms stay as they are."""
    place = np.cumsum(~atoms).astype(np.float64)
    matrix = np.exp(-0.5 * ((place[:, np.newaxis] - place) / width) ** 2)
    matrix[atoms] = matrix[:, atoms] = 0.0
    matrix[atoms, atoms] = 1.0
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))


def edges_of(cells: NumberCells) -> Array:
    """Return where cells meet, (G + 1,), in units of the target: of multiples of a step, midway between two."""
    half = cells.step / 2.0
    return np.append(cells.low - half, cells.high[-1] + half)
