"""The parts of a model: its prior, its blocks of columns with their densities, and the weights of factors."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast

import numpy as np

from posteriori.densities import ApproximatingDensity, Binned, Density
from posteriori.densities.capabilities import check_base
from posteriori.densities.categorical import Bins
from posteriori.support.checks import check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Bags, Batch, Column, Schema, Tile, quote
from posteriori.user_warnings import ApproximationWarning, warn


@dataclass(frozen=True)
class Prior:
    """p(y) = (n_y + alpha) / (n + C·alpha), or fixed by the user; p(z | y) = n_z / n_y."""

    alpha: float = 0.0  # Dirichlet pseudo-count per class: 0 is maximum likelihood
    fixed: tuple[float, ...] | None = None  # the fixed class probabilities
    of_class: tuple[int, ...] = ()  # (Z,): the class of each component, ascending; empty if every class has one

    def estimate(self, weight: Array) -> Array:
        """Return log p(z) in nats, (…, Z), from the weight of each component."""
        of_class = np.array(self.of_class or range(weight.shape[-1]))
        first = np.searchsorted(of_class, np.arange(of_class[-1] + 1))
        class_weight = np.add.reduceat(weight, first, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.fixed is not None:
                probability = np.broadcast_to(self.fixed, class_weight.shape)
            else:
                smoothed = class_weight + self.alpha
                probability = smoothed / smoothed.sum(axis=-1, keepdims=True)
            if not self.of_class:
                return np.asarray(np.log(probability))
            known = class_weight[..., of_class] > 0
            share = np.where(known, weight / class_weight[..., of_class], 1.0 / np.bincount(of_class)[of_class])
            return np.asarray(np.log(probability[..., of_class] * share))


@dataclass(frozen=True)
class Block:
    """A density and the columns it models, by their positions in the schema.

    Up to three blocks may model one column: one the part that depends on the component, a shared one the rest (numbers
    within bins), and one which of its cells are missing.
    """

    density: Density
    columns: tuple[int, ...]

    def __post_init__(self) -> None:
        check_base(self.density)

    def check_against(self, schema: Schema) -> None:
        """Raise ValueError unless the columns are columns of the schema that the density can read, each once."""
        name, d = self.density.name, len(schema.columns)
        require(len(self.columns) > 0, f"the {name} density has no columns")
        require(len(set(self.columns)) == len(self.columns), f"a column of the {name} density occurs twice")
        require(
            min(self.columns) >= 0 and max(self.columns) < d, f"a column of the {name} density is not in the schema"
        )
        readable = schema.dense if self.density.kind == "mixed" else schema.read_as(self.density.kind)
        require(set(self.columns) <= set(readable), f"the {name} density cannot read one of its columns")
        alone = len(self.columns) == 1 or not set(self.columns) & set(schema.of_kind("counts"))
        require(alone, f"the {name} density reads a column of counts and others, and it takes one at a time")
        exposure = self.exposure_in(schema)
        if exposure is not None:
            others = set(schema.of_kind("continuous")) - set(self.columns)
            require(exposure in others, f"the exposure of the {name} density is not another column of numbers")

    @property
    def shared(self) -> bool:
        """Whether all components share the density, so that it carries no information about them.

        Its log_density is (n, 1) and its log_factors (n, 1, d); `sample` takes the codes that the other block of its
        columns drew.
        """
        return self.density.shared

    @property
    def models_missingness(self) -> bool:
        """Whether the density models which cells are missing, and not the values of the cells."""
        return self.density.models_missingness

    def coded(self, schema: Schema) -> tuple[int, ...]:
        """Return the columns whose codes the density distinguishes, by their positions."""
        if self.density.kind in ("continuous", "counts") or self.models_missingness:
            return ()
        coded = schema.coded
        return tuple([j for j in self.columns if j in coded])

    def indexed(self, schema: Schema) -> tuple[int, ...]:
        """Return the columns whose statistics have a place per category, per bin or per word, by their positions."""
        if self.density.kind == "counts":
            return tuple(j for j in self.columns if schema.columns[j].kind == "counts")
        return self.coded(schema)

    def exposure_in(self, schema: Schema) -> int | None:
        """Return the position of the column of exposures on which the density conditions; None if it has none."""
        name = self.density.exposure
        require(name is None or name in schema.names, f"the exposure {name!r} is not in the schema")
        return None if name is None else schema.names.index(name)

    def tile(self, batch: Batch) -> Tile:
        """Return the cells of a batch in the representation that the density reads."""
        tile: Any = batch.take(self.columns, self.density.kind)
        exposure = self.density.exposure
        return cast(Tile, tile if exposure is None else replace(tile, exposure=batch.exposure(cast(str, exposure))))


def bins_of(blocks: Sequence[Block]) -> dict[int, Bins]:
    """Return the bins that the densities of the blocks request, by the position of the column."""
    return {j: block.density.bins for block in blocks if isinstance(block.density, Binned) for j in block.columns}


def warn_of_approximation(block: Block, parameters: Any, batch: Batch) -> None:
    """Issue a UserWarning that names the missing columns that an `ApproximatingDensity` sums out only approximately."""
    density = cast(ApproximatingDensity, block.density)
    positions = np.flatnonzero(density.approximated(parameters, block.tile(batch)))
    if len(positions):
        names = quote(batch.schema.columns[block.columns[position]].name for position in positions.tolist())
        warn(
            f"in some rows too many cells are missing to sum all of them out exactly; there the lower-order "
            f"approximation p(x | other parents, y) is made for the children of {names}",
            ApproximationWarning,
        )


def reject_outside(block: Block, batch: Batch) -> None:
    """Raise ValueError that names the first cell outside the support of the density of its block, if there is one."""
    tile: Any = block.tile(batch)
    _reject_exposure(block, batch, tile)
    out_of_support = block.density.out_of_support(tile)
    if out_of_support.any():
        i, position = np.argwhere(out_of_support)[0]
        column = block.columns[position]
        name = batch.schema.columns[column].name
        if batch.schema.columns[column].kind == "counts":
            raise _count_outside(block, batch, batch.schema.columns[column], int(i))
        value = float(batch.numbers.values[i, batch.schema.of_kind("continuous").index(column)])
        raise ValueError(
            f"column {name!r} holds {value:g} in row {batch.number(i)}, but its distribution is "
            f"{block.density.name}: {block.density.support}; correct the cell or choose another distribution"
        )


def reject_incomplete(block: Block, batch: Batch) -> None:
    """Raise ValueError that names the first missing count, if the density learns from complete rows only."""
    if not block.density.learns_from_complete_rows:
        return
    tile: Any = block.tile(batch)
    exposure = getattr(tile, "exposure", None)
    if exposure is not None and np.isnan(exposure).any():
        i, name = int(np.argmax(np.isnan(exposure))), block.density.exposure
        raise ValueError(
            f"column {name!r} is the exposure of counts, and lacks a value in row {batch.number(i)}; a model learns "
            "from rows whose exposure is known: fill it in, or leave the row out"
        )
    if isinstance(tile, Bags) and tile.are_counts:
        return
    missing = np.isnan(tile.counts if isinstance(tile, Bags) else tile.values)
    if missing.any():
        first = np.argwhere(missing)[0]
        i = int(tile.row_of_cell[first[0]]) if isinstance(tile, Bags) else int(first[0])
        name = batch.schema.columns[block.columns[0 if isinstance(tile, Bags) else first[1]]].name
        raise ValueError(
            f"column {name!r} lacks a count in row {batch.number(i)}, and {block.density.name} learns from complete "
            "rows; put 0 where a word does not occur, or leave the row out"
        )


def _reject_exposure(block: Block, batch: Batch, tile: Any) -> None:
    """Raise ValueError that names the first exposure that is not above 0, or is infinite."""
    exposure = getattr(tile, "exposure", None)
    if exposure is None:
        return
    invalid = (exposure <= 0) | np.isinf(exposure)
    if invalid.any():
        i, name = int(np.argmax(invalid)), block.density.exposure
        raise ValueError(
            f"column {name!r} holds {exposure[i]:g} in row {batch.number(i)}, but it is the exposure of counts, which "
            "is above 0; correct the cell, or leave the row out"
        )


def _count_outside(block: Block, batch: Batch, column: Column, i: int) -> ValueError:
    """Return the error for a row of a column of counts that a density cannot produce; it names the first such word."""
    row = batch.rows(np.array([i]))
    bags = row.take(block.columns, "counts")
    assert isinstance(bags, Bags)
    each = replace(bags, starts=np.arange(len(bags.words) + 1))  # one word per row
    k = int(np.flatnonzero(block.density.out_of_support(each))[0])
    return ValueError(
        f"column {column.name!r} holds {bags.counts[k]:g} for word {column.word(int(bags.words[k]))!r} in row "
        f"{batch.number(i)}, but its distribution is {block.density.name}: {block.density.support}; correct the count"
        f"{' (hashers need alternate_sign=False)' if bags.counts[k] < 0 else ' or choose another distribution'}"
    )


def known_cells(batch: Batch) -> Array:
    """Return which cells of a batch are known, (n, d).

    Counts are: a word that is not stored has the count 0. A text without a word of the vocabulary is not: it is missing
    or empty, or all its words are unknown.
    """
    schema = batch.schema
    known = np.zeros((len(batch), len(schema.columns)), np.bool_)
    for j, bags in zip(schema.of_kind("counts"), batch.bags, strict=True):
        known[:, j] = schema.columns[j].text is None or np.diff(bags.starts) > 0
    known[:, list(schema.of_kind("continuous"))] = ~np.isnan(batch.numbers.values)
    places = [schema.coded.index(j) for j in schema.of_kind("categorical")]
    known[:, list(schema.of_kind("categorical"))] = batch.codes.values[:, places] > 0
    return known


@dataclass(frozen=True)
class FactorWeights:
    """p(z | x) ∝ exp(log π_z + s·(bias_z − log π_z) + Σ_j weight_j·log p(x_j | parents, z)).

    π is the prior of the model, and s is the share of the columns that vary which are known in the row
    (`GenerativeModel.share`): 1 for a whole row, whose constant term is the bias, and 0 for a row of which nothing is
    known, which has the prior.
    """

    bias: Array  # (Z,): in nats
    weight: Array  # (d,): the weight of the factor of each column, ≥ 0
    # the parameters of each block from which the factors are computed, if they were learned for the posterior; empty if
    # the factors are those of the model
    parameters: tuple[Any, ...] = ()
    penalty: float = 0.0  # the strength of the penalty that was chosen for these parameters; 0 if there are none
    # (d,) bool: the columns whose factors differed between classes in training, which share the bias; empty for all
    varies: Array = field(default_factory=lambda: np.zeros(0, np.bool_))
    is_generative: bool = True  # whether learned parameters include the log probabilities of the model

    def check_against(self, schema: Schema, log_prior: Array) -> None:
        """Raise ValueError unless there is a bias for each component, of prior (Z,), and a weight for each column."""
        n_columns = len(schema.columns)
        check_numbers("the biases", self.bias, log_prior.shape, -np.inf)
        of_possible = self.bias[~np.isneginf(log_prior)]  # an impossible component may have −inf
        check_numbers("the biases", of_possible, of_possible.shape)
        check_numbers("the weights of factors", self.weight, (n_columns,), 0.0)
        check_numbers("the penalty", np.array([self.penalty]), (1,), 0.0)
        of_columns = self.varies.shape in ((0,), (n_columns,)) and self.varies.dtype == np.bool_
        require(of_columns, "the columns whose factors vary are missing")

    def weighted(self, log_factors: Array) -> Array:
        """Return the log factors (n, Z, d) times the weights of their columns; weight 0 gives 0, even for −inf."""
        with np.errstate(invalid="ignore"):
            return np.where(self.weight > 0, self.weight * log_factors, 0.0)

    def sum(self, log_factors: Array) -> Array:
        """Return the sum over columns of the weighted log factors (n, Z, d): (n, Z)."""
        counted = self.weight > 0
        if not counted.all():
            log_factors = log_factors[:, :, counted]
        return np.asarray(log_factors @ self.weight[counted])
