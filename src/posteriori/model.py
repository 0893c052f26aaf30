"""A generative model: a prior over components times, for each block of columns, a density given the component."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from graphlib import CycleError, TopologicalSorter
from typing import Any, cast

import numpy as np

from posteriori import kernels
from posteriori.densities import (
    ApproximatingDensity,
    ChainedDensity,
    Density,
    MarginDensity,
    ScoredDensity,
    implements,
)
from posteriori.densities.within_ranges import box_of, draw_within
from posteriori.invariants import check_numbers, require, require_kind
from posteriori.statistics import ColumnRanges, JointStatistics
from posteriori.tables import Bags, Batch, Column, Numbers, Schema, Tile, quote
from posteriori.tables.schema import infinite_cell
from posteriori.typing import Array

_ROUNDING = 1e-6  # tolerance for probabilities that sum to 1
_BLOCK_FACTORS = 1 << 17  # log factors per block, so that a block stays in the cache


@dataclass(frozen=True)
class Block:
    """A density and the columns it models, by their positions in the schema.

    Up to three blocks may model one column: one the part that depends on the component, a shared one the rest (numbers
    within bins), and one which of its cells are missing.
    """

    density: Density
    columns: tuple[int, ...]

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
        """Whether all components share the density, so that it carries no information about them."""
        return getattr(self.density, "shared", False)

    @property
    def models_missingness(self) -> bool:
        """Whether the density models which cells are missing, and not the values of the cells."""
        return getattr(self.density, "models_missingness", False)

    def coded(self, schema: Schema) -> tuple[int, ...]:
        """Return the columns whose codes the density distinguishes, by their positions."""
        if self.density.kind in ("continuous", "counts") or self.models_missingness:
            return ()
        return tuple(j for j in self.columns if j in schema.coded)

    def indexed(self, schema: Schema) -> tuple[int, ...]:
        """Return the columns whose statistics have a place per category, per bin or per word, by their positions."""
        if self.density.kind == "counts":
            return tuple(j for j in self.columns if schema.columns[j].kind == "counts")
        return self.coded(schema)

    def exposure_in(self, schema: Schema) -> int | None:
        """Return the position of the column of exposures on which the density conditions; None if it has none."""
        name = getattr(self.density, "exposure", None)
        require(name is None or name in schema.names, f"the exposure {name!r} is not in the schema")
        return None if name is None else schema.names.index(name)

    def tile(self, batch: Batch) -> Tile:
        """Return the cells of a batch in the representation that the density reads."""
        tile: Any = batch.take(self.columns, self.density.kind)
        exposure = getattr(self.density, "exposure", None)
        return cast(Tile, tile if exposure is None else replace(tile, exposure=batch.exposure(exposure)))


@dataclass(frozen=True)
class Prior:
    """p(y) = (n_y + alpha) / (n + C·alpha), or fixed by the user; p(z | y) = n_z / n_y.

    Parameters
    ----------
    alpha : float
        Dirichlet pseudo-count per class: 0 is maximum likelihood.
    fixed : tuple of float, optional
        The fixed class probabilities.
    of_class : tuple of int (Z,)
        The class of each component, ascending; empty if every class has one component.
    """

    alpha: float = 0.0
    fixed: tuple[float, ...] | None = None
    of_class: tuple[int, ...] = ()

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
class FactorWeights:
    """p(z | x) ∝ exp(bias_z + Σ_j weight_j·log p(x_j | parents, z)).

    Attributes
    ----------
    bias : ndarray (Z,)
        In nats.
    weight : ndarray (d,)
        The weight of the factor of each column, ≥ 0.
    parameters : tuple
        The parameters of each block from which the factors are computed, if they were learned for the posterior;
        empty if the factors are those of the model.
    penalty : float
        The strength of the penalty that was chosen for these parameters; 0 if there are none.
    on_factors : bool
        Whether these parameters include the weighted factors of the generative model.
    """

    bias: Array
    weight: Array
    parameters: tuple[Any, ...] = ()
    penalty: float = 0.0
    on_factors: bool = False

    def check_against(self, n_columns: int, n_components: int) -> None:
        """Raise ValueError unless there is a bias for each component and a weight for each column."""
        check_numbers("the biases", self.bias, (n_components,))
        check_numbers("the weights of factors", self.weight, (n_columns,), 0.0)
        check_numbers("the penalty", np.array([self.penalty]), (1,), 0.0)

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


@dataclass(frozen=True)
class GenerativeModel:
    """log p(x, z) = log p(z) + Σ_b log p(x_b | z); the density of a class is the sum over its components.

    Attributes
    ----------
    schema : Schema
    blocks : tuple of Block
    log_prior : ndarray (Z,)
        In nats.
    parameters : tuple
        The parameters that the density of each block estimated.
    of_class : tuple of int (Z,)
        The class of each component, ascending; empty if every class has one component.
    weights : FactorWeights, optional
        If given, the posterior, and nothing else, uses weighted factors.
    """

    schema: Schema
    blocks: tuple[Block, ...]
    log_prior: Array
    parameters: tuple[Any, ...]
    of_class: tuple[int, ...] = ()
    weights: FactorWeights | None = None

    def check(self) -> None:
        """Raise ValueError unless prior, blocks and parameters fit the components and the columns.

        Every index is checked against the array it indexes. With a model that passes, no kernel reads out of bounds.
        """
        n_components, of_class = len(self.log_prior), self.of_class
        require(n_components > 0, "the model has no components")
        check_numbers("the log prior", self.log_prior, (n_components,), -np.inf, _ROUNDING)
        require(abs(np.exp(self.log_prior).sum() - 1.0) < _ROUNDING, "the prior does not sum to 1")
        if of_class:
            require(len(of_class) == n_components, "there is not one class per component")
            steps = set(np.diff((0, *of_class)).tolist())
            require(of_class[0] == 0 and steps <= {0, 1}, "the classes of the components do not ascend one by one")
        require(len(self.blocks) == len(self.parameters), "there are not as many parameters as densities")
        for block, parameters in zip(self.blocks, self.parameters, strict=True):
            block.check_against(self.schema)
            self._check_parameters(block, parameters)
        self._check_coverage()
        if self.weights is not None:
            require(not of_class, "factors are weighted, but a class has several components")
            self.weights.check_against(len(self.schema.columns), n_components)
            for block, parameters in zip(self.blocks, self.weights.parameters, strict=bool(self.weights.parameters)):
                self._check_parameters(block, parameters)

    def _check_parameters(self, block: Block, parameters: Any) -> None:
        kind = getattr(block.density, "fitted", object)
        require_kind(parameters, kind)
        parameters.check_against(self._columns_of(block), self.n_components)
        if hasattr(block.density, "check_fitted"):
            block.density.check_fitted(parameters)

    def _check_coverage(self) -> None:
        """Raise ValueError unless each column has one density, and each binned column one more within its bins.

        A column of counts may have none: a member of a pool without one leaves it to the others.
        """
        modelled = sorted(
            j for block in self.blocks if not block.shared and not block.models_missingness for j in block.columns
        )
        binned = [j for j, column in enumerate(self.schema.columns) if column.is_binned]
        within = sorted(j for block in self.blocks if block.shared for j in block.columns)
        unread = set(self.schema.of_kind("counts")) - set(modelled)
        wanted = [j for j in self.schema.modelled if j not in unread]
        require(modelled == wanted, "there is not one density for each column")
        require(within == binned, "a binned column has no density within its bins, or another column has one")
        require(
            sum(block.models_missingness for block in self.blocks) <= 1, "two densities model which cells are missing"
        )

    def check_statistics(self, statistics: JointStatistics) -> None:
        """Raise ValueError unless statistics fit the components and the columns of each block."""
        statistics.check_weight(self.n_components)
        require(len(statistics.blocks) == len(self.blocks), "there are not as many statistics as densities")
        if statistics.ranges is not None:
            statistics.ranges.check_against(len(self.schema.columns))
        for block, sums in zip(self.blocks, statistics.blocks, strict=True):
            sufficient_statistics: Any = block.density.sufficient_statistics  # a class of statistics or a factory
            sufficient_statistics.check_against(sums, self._columns_of(block), self.n_components)

    def _columns_of(self, block: Block) -> list[Column]:
        return [self.schema.columns[j] for j in block.columns]

    @property
    def n_components(self) -> int:
        """Z."""
        return len(self.log_prior)

    @property
    def n_classes(self) -> int:
        """C."""
        return self.of_class[-1] + 1 if self.of_class else len(self.log_prior)

    @property
    def is_density(self) -> bool:
        """Whether rows can be drawn: every block is a density, and every column of counts has one."""
        unread = set(self.schema.of_kind("counts")).difference(*(block.columns for block in self.blocks))
        return not unread and all(getattr(block.density, "is_normalised", True) for block in self.blocks)

    @property
    def class_log_prior(self) -> Array:
        """Log p(y) in nats, (C,)."""
        return self.by_class(self.log_prior)

    def with_class_prior(self, log_prior: Array) -> GenerativeModel:
        """Return the model with another log p(y), (C,) in nats; densities and shares of components stay."""
        shift = log_prior - self.class_log_prior
        weights = self.weights and replace(self.weights, bias=self.weights.bias + shift)
        of_component = shift[list(self.of_class)] if self.of_class else shift
        return replace(self, log_prior=self.log_prior + of_component, weights=weights)

    def by_class(self, log_joint: Array) -> Array:
        """Return log Σ exp over the components of each class along the last axis, (…, C) from (…, Z)."""
        if not self.of_class:
            return log_joint
        first = np.searchsorted(self.of_class, np.arange(self.n_classes))
        return np.logaddexp.reduceat(log_joint, first, axis=-1)

    @property
    def _log_share(self) -> Array:
        """Log p(z | y) in nats, (Z,), of each component within its class."""
        if not self.of_class:
            return np.zeros(self.n_components)
        of_class = self.class_log_prior[list(self.of_class)]
        # −inf − −inf is NaN: a component of probability 0 keeps −inf.
        return np.where(self.log_prior > -np.inf, self.log_prior - np.where(of_class > -np.inf, of_class, 0.0), -np.inf)

    @property
    def bias(self) -> Array:
        """The constant terms of the scores in nats, (C,): the log prior, or the bias of the factor weights."""
        return self.class_log_prior if self.weights is None else self.weights.bias

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: Z − 1 for the prior plus the parameters of each density."""
        pairs = zip(self.blocks, self.parameters, strict=True)
        return self.n_components - 1 + sum(block.density.n_parameters(fitted) for block, fitted in pairs)

    def log_joint(self, batch: Batch) -> Array:
        """Return log p(x, y) in nats, (n, C), with missing cells integrated out.

        Issues a warning for columns that a density integrates out only approximately (`ApproximatingDensity`).

        Raises
        ------
        ValueError
            A cell is infinite or outside the support of its density. Correct it or choose another distribution.
        """
        return self.by_class(self._log_joint(batch, with_shared=True))

    def _log_joint(self, batch: Batch, with_shared: bool) -> Array:
        total = np.empty((len(batch), self.n_components))
        total[:] = self.log_prior
        for block, parameters in zip(self.blocks, self.parameters, strict=True):
            left_out = block.shared and not with_shared
            if left_out or not block.density.has_full_support:
                reject_outside(block, batch)
            if not left_out:
                warn_of_approximation(block, parameters, batch)
                density, tile = block.density, block.tile(batch)
                if not with_shared and implements(density, ScoredDensity):
                    total += density.log_scores(parameters, tile)
                else:
                    total += density.log_density(parameters, tile)
        with np.errstate(over="ignore"):
            finite = np.isfinite(total.sum())
        if not finite:  # no component can produce some row, or a cell is infinite
            for block in self.blocks:
                reject_outside(block, batch)
        return total

    def posterior(self, batch: Batch) -> Array:
        """Return p(y | x), (n, C); NaN in a row that no class can produce."""
        scores = self.scores(batch)
        kernels.normalise(scores)
        return scores

    def log_posterior(self, batch: Batch) -> Array:
        """Return log p(y | x) in nats, (n, C); NaN in a row that no class can produce."""
        scores = self.scores(batch)
        with np.errstate(invalid="ignore"):
            return scores - log_sum(scores)[:, np.newaxis]

    def component_posterior(self, batch: Batch) -> Array:
        """Return p(z | x), (n, Z); NaN in a row that no component can produce."""
        log_joint = self._log_joint(batch, with_shared=False)
        kernels.normalise(log_joint)
        return log_joint

    def scores(self, batch: Batch) -> Array:
        """Return log p(y | x) + constant per row in nats, (n, C): the log joint, or the sum of weighted factors."""
        if self.weights is None:
            return self.by_class(self._log_joint(batch, with_shared=False))
        scores = np.empty((len(batch), self.n_components))
        size = max(1, _BLOCK_FACTORS // (self.n_components * len(self.schema.columns)))
        for start in range(0, len(batch), size):
            part = batch.rows(slice(start, start + size))
            scores[start : start + size] = self.scored(self.log_prior, self._posterior_factors(part))
        return scores

    def scored(self, log_prior: Array, log_factors: Array) -> Array:
        """Return scores (n, Z) from log factors (n, Z, d) and a log prior that replaces that of the model."""
        if self.weights is None:
            return np.asarray(log_prior + log_factors.sum(axis=2))
        with np.errstate(invalid="ignore"):
            moved = np.where(np.isneginf(self.log_prior), log_prior, log_prior - self.log_prior)
        return np.asarray(self.weights.bias + moved + self.weights.sum(log_factors))

    def responsibilities(self, batch: Batch) -> tuple[Array, Array]:
        """Return p(z | x, label), (n, Z), and log p(x, label) in nats, (n,), of training rows.

        For rows without label they are p(z | x) and log p(x). Factors that all components share are omitted from both.

        Raises
        ------
        ValueError
            A row of positive weight has probability 0 under every component that its label allows. Set alpha > 0, or
            correct an outlier.
        """
        assert batch.assignment is not None
        log_joint = self._log_joint(batch, with_shared=False)
        label_likelihood = batch.assignment.log_likelihood
        if label_likelihood is not None:
            log_joint += label_likelihood
        log_likelihood = np.empty(len(log_joint))
        kernels.responsibilities_and_evidence(log_joint, log_likelihood)
        impossible = np.flatnonzero(np.isneginf(log_likelihood) & (batch.assignment.weight > 0))
        if len(impossible):
            raise ValueError(
                f"row {batch.number(impossible[0])} has probability 0 under every component that its label allows, so "
                "EM cannot learn from it; set alpha > 0, or correct a number that lies absurdly far from all others"
            )
        return log_joint, log_likelihood

    @property
    def has_density(self) -> bool:
        """Whether the model has a log p(x): no block has scores that are not a density."""
        return all(getattr(block.density, "is_normalised", True) for block in self.blocks)

    def log_evidence(self, batch: Batch) -> Array:
        """Return log p(x) in nats, (n,).

        Raises
        ------
        ValueError
            A block has scores that are not a density.
        """
        for block in self.blocks:
            if not getattr(block.density, "is_normalised", True):
                names = quote(self.schema.columns[j].name for j in block.columns)
                raise ValueError(
                    f"the {block.density.name} scores of {names} are not a density, so that there is no log p(x); "
                    'use distributions="multinomial"'
                )
        return log_sum(self.log_joint(batch))

    def log_factors(self, batch: Batch) -> Array:
        """Return factors of p(x | y) in nats, (n, C, d), each conditional on the columns in `given`."""
        factors = self._log_factors(batch, self.parameters, with_shared=True)
        return self._chained(factors) if self.of_class else factors

    @property
    def posterior_parameters(self) -> tuple[Any, ...]:
        """The parameters of each block from which the posterior is computed."""
        learned = () if self.weights is None else self.weights.parameters
        return learned or self.parameters

    def _posterior_factors(self, batch: Batch) -> Array:
        """Return the log factors of the posterior given the component, before weights, (n, Z, d)."""
        return self._log_factors(batch, self.posterior_parameters, with_shared=False)

    def _log_factors(self, batch: Batch, of_blocks: Sequence[Any], with_shared: bool) -> Array:
        every = tuple(range(len(self.schema.columns)))
        factors = np.zeros((len(batch), self.n_components, len(every)))
        for block, parameters in zip(self.blocks, of_blocks, strict=True):
            reject_outside(block, batch)
            if block.shared and not with_shared:
                continue
            warn_of_approximation(block, parameters, batch)
            of_block = block.density.log_factors(parameters, block.tile(batch))
            if block.columns == every:
                factors += of_block
            else:
                factors[:, :, block.columns] += of_block
        return factors

    def explaining_factors(self, batch: Batch) -> Array:
        """Return the log factors of the posterior in nats, (n, C, d): weighted, with shared factors."""
        if self.weights is None:
            return self.log_factors(batch)
        return self.weights.weighted(self._log_factors(batch, self.posterior_parameters, with_shared=True))

    def posterior_factors(self, batch: Batch) -> Array:
        """Return the log factors of the posterior in nats, (n, C, d): weighted, without shared factors."""
        factors = self._posterior_factors(batch)
        if self.of_class:
            return self._chained(factors)
        return factors if self.weights is None else self.weights.weighted(factors)

    def _chained(self, factors: Array) -> Array:
        """Return log p(x_j | earlier columns, y), (n, C, d), from factors given the component.

        A mixture does not factorise over columns. By the chain rule it is a product of conditionals, and each is a
        quotient of two mixtures: of the columns up to j, and of the columns before j.
        """
        out = np.empty((len(factors), self.n_classes, factors.shape[2]))
        log_joint = np.tile(self._log_share, (len(factors), 1))
        before = np.zeros(out.shape[:2])
        for j in self._order:
            log_joint = log_joint + factors[:, :, j]
            after = self.by_class(log_joint)
            known = before > -np.inf  # a class that has reached probability 0 keeps it
            out[:, :, j] = np.where(known, after - np.where(known, before, 0.0), 0.0)
            before = after
        return out

    @property
    def _order(self) -> list[int]:
        """A topological order: each column after the columns on which its factor is conditional.

        Components with different trees may have no common order. Then the factors still add up exactly, but they are
        not conditionals.
        """
        try:
            return list(TopologicalSorter(dict(enumerate(self._given_component))).static_order())
        except CycleError:
            return list(range(len(self.schema.columns)))

    def log_marginal(self, column: int, cells: Array) -> Array:
        """Return log p(x_j | y) in nats, (n, C), of cells of one column, by its position, with the others missing.

        The cells are numbers or codes of categories. The missingness density is omitted.
        """
        return self._log_density_alone(column, self._alone(column, cells))

    def log_marginal_of_codes(self, column: int) -> Array:
        """Return log p(x_j = k | y) in nats, (K, C), of the categories or bins of one column, by its position."""
        k = self.schema.columns[column].cardinality
        nothing = self._missing(k)
        codes = nothing.codes.values.copy()
        codes[:, self.schema.coded.index(column)] = np.arange(1, k + 1)
        return self._log_density_alone(column, replace(nothing, codes=replace(nothing.codes, values=codes)))

    def _log_density_alone(self, column: int, batch: Batch) -> Array:
        total = np.zeros((len(batch), self.n_components))
        for block, parameters in zip(self.blocks, self.parameters, strict=True):
            if column not in block.columns or block.models_missingness:
                continue
            tile, position = block.tile(batch), block.columns.index(column)
            if isinstance(block.density, MarginDensity) and isinstance(tile, Numbers):
                total += block.density.log_density_of_column(parameters, position, tile.values[:, position])
            else:
                total += block.density.log_density(parameters, tile)
        return self.by_class(total + self._log_share) if self.of_class else total

    def ignore_missingness_except(self, columns: Sequence[int]) -> GenerativeModel:
        """Return the model with missingness factors for these columns only, by their positions.

        In other columns a missing cell is integrated out and carries no information.
        """
        parameters = tuple(
            fitted.only([position for position, j in enumerate(block.columns) if j in columns])
            if block.models_missingness
            else fitted
            for block, fitted in zip(self.blocks, self.parameters, strict=True)
        )
        return replace(self, parameters=parameters)

    def cannot_hold(self, column: int, cells: Array) -> Array:
        """Return which cells of one column, by its position, no component can produce, (n,)."""
        batch = self._alone(column, cells)
        out_of_support = np.zeros(len(batch), np.bool_)
        for block in self.blocks:
            if column in block.columns:
                tile = block.tile(batch)
                out_of_support |= block.density.out_of_support(tile)[:, block.columns.index(column)]
        return out_of_support

    def _missing(self, n: int) -> Batch:
        """Return n rows in which every cell is missing."""
        continuous, categorical = self.schema.of_kind("continuous"), self.schema.of_kind("categorical")
        numbers, codes = np.full((n, len(continuous)), np.nan), np.zeros((n, len(categorical)), self.schema.code_dtype)
        return Batch.of(self.schema, 0, numbers, codes, {})

    def _alone(self, column: int, cells: Array) -> Batch:
        """Return rows in which all columns but one are missing."""
        nothing, schema = self._missing(len(cells)), self.schema
        if schema.columns[column].kind == "categorical":
            codes = nothing.codes.values.copy()
            codes[:, schema.coded.index(column)] = cells
            return replace(nothing, codes=replace(nothing.codes, values=codes))
        numbers = nothing.numbers.values.copy()
        numbers[:, schema.of_kind("continuous").index(column)] = cells
        categories = np.zeros((len(cells), len(schema.of_kind("categorical"))), schema.code_dtype)
        return Batch.of(schema, 0, numbers, categories, {})

    @property
    def given(self) -> tuple[tuple[int, ...], ...]:
        """For each column, the columns on which its factor is conditional in addition to the class."""
        if not self.of_class:
            return self._given_component
        order = self._order
        return tuple(tuple(order[: order.index(j)]) for j in range(len(order)))

    @property
    def _given_component(self) -> tuple[tuple[int, ...], ...]:
        given: list[tuple[int, ...]] = [()] * len(self.schema.columns)
        for block, parameters in zip(self.blocks, self.parameters, strict=True):
            if implements(block.density, ChainedDensity):
                for column, positions in zip(block.columns, block.density.given(parameters), strict=True):
                    given[column] = tuple(block.columns[position] for position in positions)
            exposure = block.exposure_in(self.schema)
            if exposure is not None:
                for column in block.columns:
                    given[column] = (exposure,)
        return tuple(given)

    def draw_components(self, label: Array, rng: np.random.Generator) -> Array:
        """Draw a component for each row from p(z | y), (n,) from classes (n,)."""
        if not self.of_class:
            return label
        component = np.empty(len(label), np.int64)
        share = np.exp(self._log_share)
        for z in np.unique(label):
            rows, positions = np.flatnonzero(label == z), np.flatnonzero(np.array(self.of_class) == z)
            component[rows] = rng.choice(positions, size=len(rows), p=share[positions] / share[positions].sum())
        return component

    def sample(self, component: Array, rng: np.random.Generator, ranges: ColumnRanges | None = None) -> list[Any]:
        """Draw one row per entry of component: a list of columns in schema order, of numbers, codes or bags.

        Cells that a missingness block draws as missing are NaN or 0. All cells of ignored columns, and of columns of
        numbers that had no value in training, are NaN. With ranges, the density of each block given the component is
        truncated to them, and integer columns are rounded (`draw_within`); components keep their probabilities.
        """
        columns: list[Any] = [np.empty(0)] * len(self.schema.columns)
        pairs = list(zip(self.blocks, self.parameters, strict=True))
        values, masks = ([pair for pair in pairs if pair[0].models_missingness == masking] for masking in (False, True))
        # Shared blocks and those with an exposure come last: they draw given the cells of the other blocks.
        exposures = {block: block.exposure_in(self.schema) for block, _ in values}
        for block, parameters in sorted(values, key=lambda pair: (pair[0].shared, exposures[pair[0]] is not None)):
            given = np.column_stack([columns[j] for j in block.columns]) if block.shared else component
            exposure = exposures[block]
            if exposure is not None:
                drawn = cast(Any, block.density).sample(parameters, given, rng, exposure=columns[exposure])
            elif ranges is None or block.density.kind == "counts":
                drawn = block.density.sample(parameters, given, rng)
            else:
                coded = block.density.kind != "continuous"
                box = box_of(self.schema, block.columns, ranges, coded)
                drawn = draw_within(block.density, parameters, given, rng, box)
            if isinstance(drawn, Bags):
                if self.schema.columns[block.columns[0]].kind == "counts":
                    columns[block.columns[0]] = drawn
                    continue
                drawn = drawn.to_array()
            for position, column in enumerate(block.columns):
                columns[column] = drawn[:, position]
        for j in set(self.schema.of_kind("counts")).difference(*(block.columns for block in self.blocks)):
            raise ValueError(
                f"the model has no distribution of {quote([self.schema.names[j]])}, so that no rows can be drawn; use "
                "NaiveBayes"
            )
        for j in self.schema.of_kind("categorical"):
            columns[j] = columns[j].astype(self.schema.columns[j].code_type, copy=False)
        for j, read in enumerate(self.schema.columns):
            if read.is_ignored or read.valueless:
                columns[j] = np.full(len(component), np.nan)
        for block, parameters in masks:
            missing = block.density.sample(parameters, component, rng)
            for position, j in enumerate(block.columns):
                blank = columns[j].dtype.type(0) if self.schema.columns[j].kind == "categorical" else np.nan
                columns[j] = np.where(missing[:, position], blank, columns[j])
        return columns


def log_sum(log_joint: Array) -> Array:
    """Return log Σ_z exp(log_joint), (n,), with the maximum factored out; −inf where every term is −inf."""
    out = np.empty(len(log_joint))
    kernels.log_evidence(log_joint, out)
    return out


def warn_of_approximation(block: Block, parameters: Any, batch: Batch) -> None:
    """Issue a UserWarning that names the missing columns that a block sums out only approximately in some row."""
    if not implements(block.density, ApproximatingDensity):
        return
    positions = np.flatnonzero(block.density.approximated(parameters, block.tile(batch)))
    if len(positions):
        names = quote(batch.schema.columns[block.columns[position]].name for position in positions.tolist())
        warnings.warn(
            f"in some rows too many cells are missing to sum all of them out exactly; there the lower-order "
            f"approximation p(x | other parents, y) is made for the children of {names}",
            UserWarning,
            stacklevel=2,
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
        if np.isinf(value):
            raise infinite_cell(name, value, batch.number(i))
        raise ValueError(
            f"column {name!r} holds {value:g} in row {batch.number(i)}, but its distribution is "
            f"{block.density.name}: {block.density.support}; correct the cell or choose another distribution"
        )


def reject_incomplete(block: Block, batch: Batch) -> None:
    """Raise ValueError that names the first missing count, if the density learns from complete rows only."""
    if not getattr(block.density, "learns_from_complete_rows", False):
        return
    tile: Any = block.tile(batch)
    exposure = getattr(tile, "exposure", None)
    if exposure is not None and np.isnan(exposure).any():
        i, name = int(np.argmax(np.isnan(exposure))), getattr(block.density, "exposure", None)
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
        i, name = int(np.argmax(invalid)), getattr(block.density, "exposure", None)
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
