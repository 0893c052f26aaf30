"""Sums of features as locations of the target on its scale: the design, the sums, and what follows from them."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Literal

import numpy as np

from posteriori.model.blocks import known_cells
from posteriori.model.predictive import NumberCells
from posteriori.program.cells import RowCells
from posteriori.regression.features import Features
from posteriori.regression.landmarks import Inputs, Landmarks
from posteriori.regression.least_squares import LeastSquares, Products
from posteriori.regression.scales import Scale
from posteriori.support.arrays import Arrays
from posteriori.support.checks import check_equal, check_numbers, require
from posteriori.support.factors import student_cdf
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

Name = Literal["forest", "additive", "kernel"]
NAMES: tuple[Name, ...] = ("forest", "additive", "kernel")
_FLOOR, _BLUR = 1e-3, 3.0  # the weight of the distribution of all rows in that of a member, and its blur in cells
_FREQUENT = 0.02  # the least share of the rows that an atom has
_EXCESS = 3.0  # times the mean share of the four cells beside it
_ROUNDING = 1e-6  # of shares that sum to 1
_FARTHEST = 1e100  # on the scale, in magnitude


@dataclass(frozen=True)
class Design:
    """The features of rows: those of single columns, and the similarities to landmarks."""

    features: Features
    filler: LeastSquares | None  # if training rows have gaps: what expects unknown features; else None
    landmarks: Landmarks | None
    noise: float = 1.0  # σ² of the targets of the filler, in rows without a gap

    def of_rows(self, batch: Batch, additive: LeastSquares | None = None) -> tuple[Array, Array]:
        """Return the features of rows, (n, p), and the variance of the target by cells that are missing, (n,).

        `additive` has the coefficients of the features of columns, and expects unknown ones where no training row has a
        gap.
        """
        values, variance = self.filled(batch, additive)
        return self.joined(values), variance

    def filled(self, batch: Batch, additive: LeastSquares | None = None) -> tuple[Array, Array]:
        """Return the features of single columns alone, and the same variance."""
        values, unknown = self.features.of_rows(batch), self.features.unknown(batch)
        filler = self.filler or additive
        variance = np.zeros(len(batch))
        if filler is not None and unknown.any():
            values, of_targets = filler.filled(values, unknown, additive)
            values, variance = np.ascontiguousarray(values), of_targets[:, 0]
        return values, variance

    def of_cells(self, cells: RowCells, known: Arrays, additive: LeastSquares) -> tuple[Arrays, Arrays]:
        """Return the same as `of_rows` as arrays of any namespace; `known` are the rows with any known cell, (n,)."""
        unknown = self.features.unknown_in(cells, known) & known[:, None]
        values, variance = (self.filler or additive).filled(self.features.of_cells(cells, known), unknown, additive)
        return self.joined(values), variance[:, 0]

    def products(self, batch: Batch, targets: Array, weight: Array, additive: LeastSquares | None = None) -> Products:
        """Return the sums of products of rows with these targets, (n, k), on their scale.

        Unknown cells make a row deviate by the variance v, so that it counts as 1 / (1 + v/σ²) of a row.
        """
        if self.filler is None:
            return Products.of(self.of_rows(batch, additive)[0], targets, weight)
        values, variance = self.of_rows(batch)
        return Products.of(values, targets, weight / (1.0 + variance / self.noise), float(weight.sum()))

    @property
    def width(self) -> int:
        """The number of features of a row."""
        return len(self.features) + (0 if self.landmarks is None else len(self.landmarks))

    def joined(self, values: Arrays) -> Arrays:
        """Return the features of single columns with the similarities to landmarks beside them."""
        if self.landmarks is None:
            return values
        similarities = self.landmarks.of_rows(Inputs.of(self.features, values).values)
        return values.__array_namespace__().concat([values, similarities], axis=1)


@dataclass(frozen=True)
class Location:
    """A sum of features on the scale of the target: of single columns, or of the similarities to landmarks too."""

    name: Name
    penalty: Array  # (p,): as in `LeastSquares`, of the first features


@dataclass(frozen=True)
class Locations:
    """The cells of a target, its scale, and the sums from which its locations follow."""

    cells: NumberCells
    share: Array  # (G,): the share of the training rows in each cell
    scale: Scale  # on which the target is a sum of features
    design: Design
    sums: Products | None  # of all features; None without a location
    locations: tuple[Location, ...]

    @cached_property
    def atoms(self) -> Array:
        """Which cells hold one frequent value, whose probability is no matter of its place, (G,)."""
        return atoms_of(self.cells, self.share)

    @cached_property
    def squares(self) -> tuple[LeastSquares, ...]:
        """The least squares of each location."""
        if self.sums is None:
            return ()
        sums = self.sums.of_independent_rows
        return tuple(LeastSquares(sums.first(len(one.penalty)), one.penalty) for one in self.locations)

    @cached_property
    def edges(self) -> Array:
        """The ends of the cells on the scale, (G + 1,)."""
        return self.scale.forward(edges_of(self.cells))

    def located(self, batch: Batch) -> tuple[Array, Array]:
        """Return the locations of rows, (n, M), and by how much cells that are missing make them deviate, (n,)."""
        if not self.squares:
            return np.empty((len(batch), 0)), np.zeros(len(batch))
        values, variance = self.design.of_rows(batch, self.additive)
        each = [one.predict(values[:, : len(one.penalty)])[:, 0] for one in self.squares]
        return np.stack(each, axis=1), np.sqrt(variance)

    def student_probability(self, batch: Batch) -> Array:
        """Return the probability of each cell, (n, G), by the one location with a density of Student's t around it."""
        values, unknown = self.design.of_rows(batch, self.additive)
        return np.asarray(self._student(values, unknown, known_cells(batch).any(axis=1)))

    def student_of_cells(self, cells: RowCells) -> Arrays:
        """Return the same of rows as arrays of any namespace; NaN in a row that is refused."""
        assert self.additive is not None
        kinds = (cells.schema.of_kind(kind) for kind in ("continuous", "categorical"))
        each = [cells.known(j) for columns in kinds for j in columns]
        known = cells.xp.any(cells.xp.stack(each, axis=1), axis=1)
        probability = self._student(*self.design.of_cells(cells, known, self.additive), known)
        for rows in cells.refused:
            probability = cells.xp.where(rows[:, None], np.nan, probability)
        return probability

    def _student(self, values: Arrays, unknown: Arrays, known: Arrays) -> Arrays:
        """Return the same by features, the variance by unknown cells, and whether any cell is known.

        Where no cell of a row is known, it is that of all rows: the mean on a scale is not the mean.
        """
        (squares,), additive, xp = self.squares, self.additive, values.__array_namespace__()
        assert additive is not None
        variance = squares.noise * (1.0 + squares.leverages(values)) + unknown
        if additive is not squares:
            # What a similarity to landmarks loses by unknown cells is no less than a sum of columns leaves.
            variance = xp.where(unknown > 0.0, xp.maximum(variance, additive.noise + unknown), variance)
        around = self.student_around(squares.predict(values), xp.sqrt(variance)[:, None], squares.degrees)
        return xp.where(known[:, None], around, xp.asarray(self.share / self.share.sum()))

    def student_around(self, location: Arrays, spread: Arrays, degrees: float) -> Arrays:
        """Return the probability of each cell, (n, G), by the locations and scales, (n, 1), of densities of t."""
        xp = location.__array_namespace__()
        inner = student_cdf((self.edges[1:-1] - location) / spread, degrees)
        below = xp.concat([xp.zeros_like(location), inner, xp.ones_like(location)], axis=1)
        of_atoms = self.share[self.atoms][np.newaxis]
        return self.with_floor(self.with_atoms(below[:, 1:] - below[:, :-1], of_atoms))

    def with_atoms(self, probability: Arrays, of_atoms: Array) -> Arrays:
        """Return probabilities of cells, (n, G), in which the atoms have given ones, and the others the rest."""
        if not self.atoms.any():
            return probability
        xp, stated = probability.__array_namespace__(), np.zeros((len(of_atoms), len(self.atoms)))
        stated[:, self.atoms] = of_atoms
        atoms, rest = xp.asarray(self.atoms), np.maximum(1.0 - of_atoms.sum(axis=1), 0.0)
        free = xp.where(atoms, 0.0, probability)
        others = xp.maximum(xp.sum(free, axis=1), xp.asarray(np.finfo(np.float64).tiny))
        return xp.where(atoms, xp.asarray(stated), free * (rest / others)[:, None])

    @cached_property
    def floor(self) -> tuple[float, Array]:
        """The weight of the distribution of all rows, and its probability of each cell, blurred and positive, (G,)."""
        return _FLOOR, np.asarray(np.maximum(self.share @ blur(self.atoms, _BLUR), np.finfo(np.float64).tiny))

    def with_floor(self, probability: Arrays) -> Arrays:
        """Return probabilities of cells mixed with a little of that of all rows, so that no cell is impossible."""
        weight, of_all = self.floor
        found = (1.0 - weight) * probability + weight * of_all
        return found / found.__array_namespace__().sum(found, axis=1, keepdims=True)

    def products(self, batch: Batch, y: Array, weight: Array) -> Products:
        """Return the sums of products of rows with these targets and weights."""
        return self.design.products(batch, self.scale.forward(y)[:, np.newaxis], weight, self.additive)

    def without_landmarks(self, dropped: Array) -> Locations:
        """Return the locations by the other landmarks than these, (m,) booleans, as if they had never been chosen."""
        landmarks, sums, n = self.design.landmarks, self.sums, len(self.design.features)
        assert landmarks is not None
        assert sums is not None
        others, of_others = landmarks.without(dropped)
        matrix = np.eye(n + len(others), n + len(dropped))
        matrix[n:, n:] = of_others
        kept = np.append(np.ones(n, np.bool_), ~dropped)
        locations = tuple(
            location if len(location.penalty) == n else replace(location, penalty=location.penalty[kept])
            for location in self.locations
        )
        design = replace(self.design, landmarks=others)
        return replace(self, design=design, sums=sums.mapped(matrix), locations=locations)

    @cached_property
    def additive(self) -> LeastSquares | None:
        """The least squares of the features of columns alone."""
        n = len(self.design.features)
        if self.sums is None:
            return None
        first = next((one for one in self.squares if len(one.penalty) == n), None)
        return first or LeastSquares(self.sums.of_independent_rows.first(n), self.locations[0].penalty[:n])

    def check_locations(self, schema: Schema) -> None:
        """Raise ValueError unless the parts, which may come from a file, fit together and to a schema."""
        design, n_cells = self.design, len(self.cells)
        design.features.check_against(schema)
        check_numbers("the shares of cells", self.share, (n_cells,), 0.0, 1.0)
        require(abs(self.share.sum() - 1.0) < _ROUNDING, "the shares of cells do not sum to 1")
        with np.errstate(all="ignore"):
            check_numbers("the ends of cells on the scale", self.edges, (n_cells + 1,), -_FARTHEST, _FARTHEST)
        if design.filler is not None:
            check_equal("the number of features", len(design.filler.penalty), len(design.features))
        check_numbers("the noise", np.array([design.noise]), (1,), _ROUNDING**2)
        if design.landmarks is not None:
            width = Inputs.of(design.features, np.zeros((0, len(design.features)))).values.shape[1]
            check_equal("the number of inputs", len(design.landmarks.weight), width)
        if self.locations:
            require(self.sums is not None and len(self.sums.features) == design.width, "the sums are of other features")
            require(self.sums is not None and len(self.sums.targets) == 1, "the sums are not of one target")
        for one in self.locations:
            require(one.name in NAMES, "there is no such member")
            require(len(one.penalty) in (len(design.features), design.width), "a member has other features")
        for squares in self.squares:
            squares.check()
        if len(self.locations) == 1:
            with np.errstate(all="ignore"):
                check_numbers("the variance of the noise", np.array([self.squares[0].noise]), (1,), 0.0)


def atoms_of(cells: NumberCells, share: Array) -> Array:
    """Return which cells hold one value that is far more frequent than those beside it, (G,)."""
    padded = np.pad(share, 2)
    beside = (padded[:-4] + padded[1:-3] + padded[3:-1] + padded[4:]) / 4.0
    return np.asarray((cells.low == cells.high) & (share >= _FREQUENT) & (share > _EXCESS * beside))


def edges_of(cells: NumberCells) -> Array:
    """Return where cells meet, (G + 1,), in units of the target: of multiples of a step, midway between two."""
    half = cells.step / 2.0
    return np.append(cells.low - half, cells.high[-1] + half)


def blur(atoms: Array, width: float) -> Array:
    """Return the matrix that blurs probabilities over cells, (G, G), by a normal density; atoms stay as they are."""
    place = np.cumsum(~atoms).astype(np.float64)
    matrix = np.exp(-0.5 * ((place[:, np.newaxis] - place) / width) ** 2)
    matrix[atoms] = matrix[:, atoms] = 0.0
    matrix[atoms, atoms] = 1.0
    return np.asarray(matrix / matrix.sum(axis=1, keepdims=True))
