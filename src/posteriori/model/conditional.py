"""Any column of a model given the others: its codes, or its numbers in cells, by Bayes' rule over the components."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import ndtr

from posteriori import kernels
from posteriori.densities import ChainedDensity, NormalDensity, implements
from posteriori.model.blocks import Block
from posteriori.model.generative_model import GenerativeModel
from posteriori.model.marginals import batch_of_column, batch_without_cells, unknown_in_turn
from posteriori.model.number_cells import NumberCells
from posteriori.support.typing import Array
from posteriori.tables import Batch

_HEAVIEST = 1.0 / 256  # the share of a column that a cell may hold
_MOST_CELLS = 1024
_HALVINGS = 40
_BEYOND = 0.25  # of the range of the training rows: how far cells reach beyond it, on each side
_TINY = float(np.finfo(np.float64).tiny)
# Two points of a cell, in its width from its low end, whose mean is the integral of a cubic (Gauss and Legendre).
_POINTS = (0.5 - 0.5 / np.sqrt(3.0), 0.5 + 0.5 / np.sqrt(3.0))


@dataclass(frozen=True)
class ColumnGivenOthers:
    r"""p(x_j | the other columns, some of them unknown) of a model, for one column j.

    .. math:: p(x_j \mid x_O) \propto \sum_z p(z) \, p(x_j, x_{B \cap O} \mid z) \prod_{b \not\ni j} p(x_b \mid z)

    with B the columns that share a density with j. If there are none, or if the density is normal given each code, the
    conditional of each component is computed once or in closed form; any other density is evaluated at each code, or
    at two points of each cell. Numbers that the model cuts into bins have codes.
    """

    model: GenerativeModel
    column: int  # by its position
    cells: NumberCells | None = None  # of a column of numbers

    def __post_init__(self) -> None:
        require_joint(self.model)
        if not self._own or self.model.schema.columns[self.column].kind == "counts":
            name = self.model.schema.names[self.column]
            raise ValueError(f"the model has no density of the values of {name!r}; fit a JointModel")

    @property
    def _own(self) -> list[tuple[Block, Any]]:
        """The densities of the column, and those that condition on it, with their parameters."""
        pairs = zip(self.model.blocks, self.model.parameters, strict=True)
        return [(b, of_block) for b, of_block in pairs if self.column in b.columns and not b.models_missingness]

    @property
    def is_independent(self) -> bool:
        """Whether the column depends on the component alone, and no other column on it."""
        for block, parameters in self._own:
            place = block.columns.index(self.column)
            if implements(block.density, ChainedDensity):
                given = block.density.given(parameters)
                if given[place] or any(place in one for one in given):
                    return False
        return True

    def log_known(self, batch: Batch, also: Array | float = 0.0) -> Array:
        """Return log p(z, the other cells) in nats, (n, Z), and what else is known as log p(that | z), (n or 1, Z)."""
        others = [k for k in range(len(self.model.schema.columns)) if k != self.column]
        hidden = self._hidden(batch)
        model = self.model.ignore_missingness_except(others)
        found = np.array(np.broadcast_to(model.log_prior, (len(batch), model.n_components)))
        for block, parameters in zip(model.blocks, model.parameters, strict=True):
            found += block.density.log_density(parameters, block.tile(hidden))
        return found + also

    def _hidden(self, batch: Batch) -> Batch:
        return unknown_in_turn(batch, [self.column])

    def of_codes(self, batch: Batch, also: Array | float = 0.0) -> Array:
        """Return p(x_j = k | the other cells), (n, K) from 0 on; NaN in a row that no component can produce."""
        codes = np.arange(1, self.model.schema.columns[self.column].cardinality + 1)
        log_known = self.log_known(batch, also)
        if self.is_independent:
            return _mixed(log_known, self.of_components())
        return self._summed(batch, log_known, ((code, 0.0) for code in codes.tolist()), len(codes))

    def of_cells(self, batch: Batch, also: Array | float = 0.0) -> Array:
        """Return the probability of each cell given the other cells of rows, (n, G)."""
        assert self.cells is not None
        log_known, cells = self.log_known(batch, also), self.cells
        if self.is_independent:
            return _mixed(log_known, self.of_components())
        if (normal := self._normals(batch)) is not None:
            with np.errstate(over="ignore"):
                low, high = _ends(cells)
                z = (np.concatenate([low[:1], high])[:, np.newaxis, np.newaxis] - normal[0]) / np.sqrt(normal[1])
            within = np.diff(ndtr(z), axis=0)
            share = np.exp(log_known - log_known.max(axis=1, keepdims=True))
            return _normalised(np.einsum("gnz,nz->ng", within, share))
        points, log_weight = _points(cells)
        each = zip(points.ravel().tolist(), log_weight.ravel().tolist(), strict=True)
        found = self._summed(batch, log_known, each, points.size)
        return np.asarray(found.reshape(len(batch), *points.shape).sum(axis=2))

    def of_components(self) -> Array:
        """Return p(x_j = k | z) of its codes, (Z, K), or of its cells, with all other columns unknown.

        What is beyond the cells is left out in each component, so that all answers agree with each other.
        """
        schema = self.model.schema
        if self.cells is None:
            codes = np.arange(1, schema.columns[self.column].cardinality + 1)
            alone = _with_cells(batch_without_cells(schema, len(codes)), self.column, codes, coded=True)
            return np.asarray(np.exp(self._log_own(alone, coded=True)).T)
        points, log_weight = _points(self.cells)
        log_density = self._log_own(batch_of_column(schema, self.column, points.ravel()), coded=False)
        each = np.exp(log_density + log_weight.reshape(-1, 1)).reshape(*points.shape, -1).sum(axis=1)
        return np.asarray((each / np.maximum(each.sum(axis=0), _TINY)).T)

    def _log_own(self, batch: Batch, coded: bool) -> Array:
        """Return log p(x_j, the columns that share its density | z), (n, Z); of a code without numbers in its bin."""
        found = np.zeros((len(batch), self.model.n_components))
        for block, parameters in self._own:
            if not (block.shared and coded):
                found += block.density.log_density(parameters, block.tile(batch))
        return found

    def _summed(self, batch: Batch, log_known: Array, values: Iterator[tuple[Any, float]], n_values: int) -> Array:
        """Return p(x_j = v | the other cells) of some codes or numbers v with their log weights, (n, V)."""
        coded = self.cells is None
        rest = log_known - self._log_own(self._hidden(batch), coded=False)  # of impossible components NaN or −inf
        rest = np.where(np.isneginf(log_known), -np.inf, rest)
        log_joint = np.empty((len(batch), n_values))
        for place, (value, log_weight) in enumerate(values):
            own = self._log_own(_with_cells(batch, self.column, value, coded), coded)
            log_joint[:, place] = np.logaddexp.reduce(rest + own, axis=1) + log_weight
        kernels.normalise(log_joint)
        return log_joint

    def _normals(self, batch: Batch) -> tuple[Array, Array] | None:
        r"""Return mean and variance of the column given the other cells and z, each (n, Z), if it is normal.

        The log density is a parabola in x_j: three of its values determine it. With values l at m − s, m and m + s,

        .. math:: \sigma^2 = \frac{s^2}{2 l(m) - l(m - s) - l(m + s)}, \quad
                  \mu = m + \sigma^2 \frac{l(m + s) - l(m - s)}{2 s}.
        """
        (block, parameters), *more = self._own
        if more or not isinstance(block.density, NormalDensity):
            return None
        try:
            block.density.conditional_normals(parameters)
        except ValueError:  # a t density, or trees that differ between components
            return None
        assert self.cells is not None
        middle, step = float(np.median(self.cells.centre)), float(self.cells.high[-1] - self.cells.low[0]) / 8.0
        below, at, above = (
            self._log_own(_with_cells(batch, self.column, middle + k * step, coded=False), coded=False)
            for k in (-1, 0, 1)
        )
        curvature = 2.0 * at - below - above
        if not (curvature > 0).all():  # a variance of 0, or a number that is lost in rounding
            return None
        variance = step**2 / curvature
        return middle + variance * (above - below) / (2.0 * step), variance


def require_joint(model: GenerativeModel) -> None:
    """Raise ValueError unless a model is one distribution of all its columns."""
    if not model.is_joint:
        raise ValueError(
            "this model does not tell about its columns: its factors are weighted, or learned for the class alone, "
            "which is no joint distribution; fit a JointModel"
        )


def cells_of_column(model: GenerativeModel, column: int, low: float, high: float, whole: bool) -> NumberCells:
    """Return the cells of a column of numbers, by the smallest and the largest number of training.

    They reach beyond both, and are halved until none holds more than 1/256 of the column.
    """
    margin = _BEYOND * (high - low) or max(abs(low), 1.0) * 1e-3
    if whole:
        return _points_of_steps(np.floor(low - margin), np.ceil(high + margin))
    edges = np.linspace(low - margin, high + margin, 65)
    share = model.log_prior
    for _ in range(_HALVINGS):
        cells = NumberCells(edges[:-1], edges[1:])
        mass = np.exp(share) @ ColumnGivenOthers(model, column, cells).of_components()
        heavy = np.flatnonzero(mass > _HEAVIEST * mass.sum())
        if not len(heavy) or len(edges) > _MOST_CELLS:
            break
        edges = np.insert(edges, heavy + 1, (edges[heavy] + edges[heavy + 1]) / 2.0)
    return NumberCells(edges[:-1], edges[1:])


def within_bins(model: GenerativeModel, column: int, cells: NumberCells, code: Array) -> Array:
    """Return p(cell | bin), (G,), up to a constant per bin, of cells that are each within one bin of a column."""
    points, log_weight = _points(cells)
    batch = batch_of_column(model.schema, column, points.ravel())
    log_density = np.zeros(points.size)
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if block.shared and column in block.columns:
            log_density += block.density.log_density(parameters, block.tile(batch))[:, 0]
    each = log_density.reshape(points.shape) + log_weight
    greatest = np.full(int(code.max()) + 1, -np.inf)
    np.maximum.at(greatest, code, each.max(axis=1))
    return np.asarray(np.exp(each - greatest[code, np.newaxis]).sum(axis=1))


def _points_of_steps(low: float, high: float) -> NumberCells:
    """Return cells of whole numbers: of one each, or of several if there are many."""
    size = max(1.0, np.ceil((high - low + 1.0) / _MOST_CELLS))
    lows = np.arange(low, high + 1.0, size)
    return NumberCells(lows, np.append(lows[1:] - 1.0, max(high, lows[-1])), 1.0)


def _ends(cells: NumberCells) -> tuple[Array, Array]:
    """Return the ends of cells that leave no gap between them; the outermost ones have the tails."""
    low, high = cells.low - cells.step / 2.0, cells.high + cells.step / 2.0
    return np.append(-np.inf, low[1:]), np.append(high[:-1], np.inf)


def _points(cells: NumberCells) -> tuple[Array, Array]:
    """Return points of each cell and the logs of their weights, each (G, P), whose weighted densities it holds."""
    if cells.step:
        middle = cells.number_at(np.arange(len(cells)), np.full(len(cells), 0.5))
        return middle[:, np.newaxis], np.log(cells.count)[:, np.newaxis]
    points = cells.low[:, np.newaxis] + cells.width[:, np.newaxis] * np.array(_POINTS)
    return points, np.tile(np.log(cells.width / 2.0)[:, np.newaxis], (1, 2))


def _with_cells(batch: Batch, column: int, values: Any, coded: bool) -> Batch:
    """Return rows with codes, or with numbers, in one column: one for all rows, or one each."""
    if coded:
        codes = np.array(batch.codes.values)
        codes[:, batch.schema.coded.index(column)] = values
        return replace(batch, codes=replace(batch.codes, values=codes))
    numbers = np.array(batch.numbers.values, np.float64)
    numbers[:, batch.schema.of_kind("continuous").index(column)] = values
    return replace(batch, numbers=replace(batch.numbers, values=numbers))


def _mixed(log_known: Array, of_components: Array) -> Array:
    """Return the mixture of what components say, (n, V), from log p(z, known), (n, Z), and (Z, V)."""
    share = np.array(log_known)
    kernels.normalise(share)
    return _normalised(share @ of_components)


def _normalised(weight: Array) -> Array:
    with np.errstate(invalid="ignore"):
        return np.asarray(weight / weight.sum(axis=1, keepdims=True))
