"""The members of a pool of regressions as one model: the density of the target in each of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.regression.least_squares import Products
from posteriori.regression.locations import Locations, blur
from posteriori.regression.neighbours import Neighbours, Placed
from posteriori.regression.spread import Spread
from posteriori.support.checks import check_equal, check_numbers, check_places, check_share, require
from posteriori.support.factors import student_to_normal
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

_LEAST_SPREAD = 1e-100  # in a file, so that nothing that is divided by it overflows
_OF_ATOM = 0.02  # the weight of the share of all rows in the probability of an atom


@dataclass(frozen=True)
class Smoothing:
    """How the density of a member follows from its neighbours: their blur, and how much all rows count."""

    width: float  # of the blur, in cells
    common: float  # the weight of the distribution of all training rows


@dataclass(frozen=True)
class Members(Locations):
    """The members of a pool of regressions."""

    neighbours: Neighbours
    spread: Spread | None  # None without a location
    placed: Placed
    smoothings: tuple[Smoothing, ...]  # of each member
    has_forest: bool

    @property
    def names(self) -> list[str]:
        """The names of the members."""
        return [*(["forest"] if self.has_forest else []), *(one.name for one in self.locations)]

    def raw(self, batch: Batch, location: Array, deviation: Array, n_jobs: int | None = 1) -> Raw:
        """Return the distributions that neighbours and all rows give to rows."""
        near = self.neighbours.spread(batch, self.placed, self.edges, location, deviation, n_jobs)
        common = [np.broadcast_to(self.share, (len(batch), len(self.cells)))]
        spread = np.ones(len(batch)) if self.spread is None else self.spread.of_rows(self.neighbours, batch)
        common += [self._common(m, location[:, m], spread, deviation) for m in range(location.shape[1])]
        return Raw(near, np.stack(common, axis=1))

    def _common(self, m: int, location: Array, spread: Array, deviation: Array) -> Array:
        """Return the distribution of a location plus the residuals of all training rows, each in the size of the row.

        As the residual of a training row is divided by the size that was expected there, a row where residuals are
        small has a narrow density, (n, G).
        """
        relative = self.placed.residual[:, m] / self.placed.spread
        order = np.argsort(relative, kind="stable")
        reached = np.cumsum(self.neighbours.weight[order])
        relative, reached = relative[order], np.concatenate([[0.0], reached / reached[-1]])
        edges = self.edges[1:-1]
        below = np.zeros((len(location), len(edges)))
        for node, mass in zip(*(_NODES if deviation.any() else _ONE_NODE), strict=True):
            at = (edges - (location + node * deviation)[:, np.newaxis]) / spread[:, np.newaxis]
            below += mass * reached[np.searchsorted(relative, at)]
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
        return next(self.each_smoothed(raw, m, smoothing.width, (smoothing.common,)))

    def each_smoothed(self, raw: Raw, m: int, width: float, commons: Sequence[float]) -> Iterator[Array]:
        """Yield the same with a width of the blur and each weight of the distribution of all rows."""
        matrix = blur(self.atoms, width)
        near, common = raw.near[:, m] @ matrix, raw.common[:, m] @ matrix
        for weight in commons:
            found = (1.0 - weight) * near + weight * common
            if m > 0:
                of_atoms = (1.0 - _OF_ATOM) * raw.near[:, 0, self.atoms] + _OF_ATOM * self.share[self.atoms]
                found = self.with_atoms(found, of_atoms)
            yield self.with_floor(found)

    @property
    def width_of_few(self) -> float:
        r"""The standard deviation, in cells, that makes the normal 90 % interval that of Student's t.

        .. math:: \sigma \sqrt{(t_{\nu}/z)^2 - 1}

        The residuals of few rows estimate σ with ν degrees of freedom, which their own density does not show.
        """
        squares, width = self.additive, np.diff(self.edges)
        usual = width[(self.share > 0) & ~self.atoms & (width > 0)]
        if squares is None or not len(usual):
            return 0.0
        degrees = max(squares.degrees - 1.0, 1.0)  # the smoothing is chosen by the same rows
        deviation = np.sqrt(squares.noise * (student_to_normal(degrees) ** 2 - 1.0))
        return float(deviation / np.median(usual))

    def check_against(self, schema: Schema) -> None:
        """Raise ValueError unless the parts, which may come from a file, fit together and to a schema."""
        self.check_locations(schema)
        n_rows = len(self.neighbours.weight)
        require(self.neighbours.schema.uncut() == schema.uncut(), "the trees are of other columns")
        check_equal("the number of training rows", len(self.placed.cell), n_rows)
        check_places("the cells of training rows", self.placed.cell, (n_rows,), 0, len(self.cells))
        require(self.neighbours.weight.sum() > 0, "the training rows have no weight")
        check_numbers("the sizes of residuals", self.placed.spread, (n_rows,), _LEAST_SPREAD)
        check_equal("the number of residuals", self.placed.residual.shape[1], len(self.locations))
        check_equal("the number of members", len(self.smoothings), self.has_forest + len(self.locations))
        require(len(self.smoothings) > 0, "there is no member")
        require((self.spread is not None) == bool(self.locations), "the sizes of residuals are missing")
        if self.spread is not None:
            self.spread.check_against(self.neighbours)
            check_numbers("the sizes of residuals", self.spread.value, self.spread.value.shape, _LEAST_SPREAD)
        for smoothing in self.smoothings:
            check_numbers("the width of a blur", np.array([smoothing.width]), (1,), 1e-6)
            check_share("the weight of all rows", smoothing.common)

    def without(self, sums: Products | None, neighbours: Neighbours) -> Members:
        """Return the members that learned from the rows outside of a fold, from their sums."""
        return replace(self, sums=sums, neighbours=neighbours)

    def in_no_order(self) -> Members:
        """Return the members with their training rows in an order that does not depend on the table."""
        order = self.placed.order
        return replace(self, neighbours=self.neighbours.sorted_by(order), placed=self.placed.sorted_by(order))

    def with_densities(self, **changes: Any) -> Members:
        """Return the members with other fields around the same locations, whose least squares are not solved again."""
        found = replace(self, **changes)
        vars(found).update({name: value for name, value in vars(self).items() if name in ("squares", "additive")})
        return found


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
