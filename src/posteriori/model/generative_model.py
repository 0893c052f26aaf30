"""A generative model: its log joint, its posterior, and their factors, one per column."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np

from posteriori import kernels
from posteriori.densities import ApproximatingDensity, ChainedDensity, ScoredDensity, SummedTrees, implements
from posteriori.model.blocks import Block, FactorWeights, known_cells, reject_outside, warn_of_approximation
from posteriori.statistics import JointStatistics
from posteriori.statistics.sums import check_sums
from posteriori.support.checks import check_numbers, require, require_kind, within
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema, quote

_ROUNDING = 1e-6  # tolerance for probabilities that sum to 1
_BLOCK_FACTORS = 1 << 17  # log factors per block, so that a block stays in the cache


@dataclass(frozen=True)
class GenerativeModel:
    """log p(x, z) = log p(z) + Σ_b log p(x_b | z); the density of a class is the sum over its components."""

    schema: Schema
    blocks: tuple[Block, ...]
    log_prior: Array  # (Z,): in nats
    parameters: tuple[Any, ...]  # the parameters that the density of each block estimated
    # (Z,): the class of each component, ascending; empty if every class has one component
    of_class: tuple[int, ...] = ()
    weights: FactorWeights | None = None  # if given, the posterior, and nothing else, uses weighted factors

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
            self.weights.check_against(self.schema, self.log_prior)
            for block, parameters in zip(self.blocks, self.weights.parameters, strict=bool(self.weights.parameters)):
                self._check_parameters(block, parameters)

    def _check_parameters(self, block: Block, parameters: Any) -> None:
        columns = self._columns_of(block)
        with within(f"the density {block.density.name!r} of {quote((one.name for one in columns), most=2)}"):
            require_kind(parameters, block.density.fitted)
            parameters.check_against(columns, self.n_components)
            block.density.check_fitted(parameters)

    def _check_coverage(self) -> None:
        """Raise ValueError unless each column has at most one density, and each binned column one more within its bins.

        A model may leave columns out, such as a member of a pool without a density of words.
        """
        modelled = sorted(
            j for block in self.blocks if not block.shared and not block.models_missingness for j in block.columns
        )
        binned = [j for j, column in enumerate(self.schema.columns) if column.is_binned]
        within = sorted(j for block in self.blocks if block.shared for j in block.columns)
        kept = set(modelled) <= set(self.schema.modelled) and len(set(modelled)) == len(modelled)
        require(kept, "there is not one density for each column")
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
            check_sums(sufficient_statistics, sums, self._columns_of(block), self.n_components)

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
    def unread(self) -> tuple[int, ...]:
        """The columns that have no density."""
        return tuple(sorted(set(self.schema.modelled).difference(*(block.columns for block in self.blocks))))

    @property
    def is_sum_of_trees(self) -> bool:
        """Whether it corrects other models, so that it has no part in p(x) and in drawn rows."""
        return any(isinstance(block.density, SummedTrees) for block in self.blocks)

    @property
    def is_density(self) -> bool:
        """Whether rows can be drawn: every block is a density, and every column has one."""
        return not self.unread and all(block.density.is_normalised for block in self.blocks)

    @property
    def is_joint(self) -> bool:
        """Whether the posterior is that of one distribution p(x, y), so that cells that are left out are summed out."""
        return self.is_density and self.factors_are_joint

    @property
    def class_log_prior(self) -> Array:
        """Log p(y) in nats, (C,)."""
        return self.by_class(self.log_prior)

    def with_class_prior(self, log_prior: Array) -> GenerativeModel:
        """Return the model with another log p(y), (C,) in nats; densities and shares of components stay."""
        shift = log_prior - self.class_log_prior
        weights = self.weights
        if weights is not None:
            impossible = np.isneginf(self.log_prior)  # until now, so that it has no learned offset from the prior
            weights = replace(weights, bias=np.where(impossible, log_prior, weights.bias + shift))
        of_component = shift[list(self.of_class)] if self.of_class else shift
        return replace(self, log_prior=self.log_prior + of_component, weights=weights)

    def by_class(self, log_joint: Array) -> Array:
        """Return log Σ exp over the components of each class along the last axis, (…, C) from (…, Z)."""
        if not self.of_class:
            return log_joint
        first = np.searchsorted(self.of_class, np.arange(self.n_classes))
        return np.logaddexp.reduceat(log_joint, first, axis=-1)

    @property
    def log_share(self) -> Array:
        """Log p(z | y) in nats, (Z,), of each component within its class."""
        if not self.of_class:
            return np.zeros(self.n_components)
        of_class = self.class_log_prior[list(self.of_class)]
        # −inf − −inf is NaN: a component of probability 0 keeps −inf.
        return np.where(self.log_prior > -np.inf, self.log_prior - np.where(of_class > -np.inf, of_class, 0.0), -np.inf)

    @cached_property
    def offset(self) -> Array | None:
        """Offset that weighted factors add to the log prior of a whole row in nats, (Z,); None if it is 0.

        The known columns share it in equal parts, so that a row of which nothing is known has the prior.
        """
        if self.weights is None:
            return None
        with np.errstate(invalid="ignore"):  # −inf − −inf: a class of prior 0 stays impossible
            offset = self.weights.bias - self.log_prior
        offset = np.where(np.isneginf(self.log_prior), 0.0, offset)
        return offset if offset.any() else None

    @cached_property
    def sharing(self) -> Array:
        """Which columns share the offset, (d,): all that the model reads and whose factors varied in training."""
        read = {j for block in self.blocks for j in block.columns}
        shares = [j in read and not column.has_no_kind for j, column in enumerate(self.schema.columns)]
        varies = np.zeros(0, np.bool_) if self.weights is None else self.weights.varies
        return np.array(shares, np.bool_) & varies if len(varies) else np.array(shares, np.bool_)

    @cached_property
    def evident(self) -> Array:
        """Which columns are never unknown, (d,): those of counts without text, and those whose gaps are evidence."""
        are_counts = [column.kind == "counts" and column.text is None for column in self.schema.columns]
        result = np.array(are_counts, np.bool_)
        for block, parameters in zip(self.blocks, self.parameters, strict=True):
            if block.models_missingness:
                result[np.array(block.columns)[parameters.modelled_columns]] = True
        return result

    def known(self, batch: Batch) -> Array:
        """Return which cells of a batch are known, of the columns that share the offset, (n, d)."""
        return np.asarray((known_cells(batch) | self.evident) & self.sharing)

    def share(self, known: Array) -> Array:
        """Return the share of the columns that are known in rows, (n,), from which of their cells are, (n, d)."""
        return np.asarray(known.sum(axis=1) / max(int(self.sharing.sum()), 1))

    def start(self, known: Array | None, log_prior: Array | None = None) -> Array:
        """Return the constant terms of weighted scores in nats, (n, Z) or, if all rows are whole, (Z,).

        Parameters
        ----------
        known : ndarray (n, d), optional
            Which cells are known, as `known` returns them; not used if there is no offset.
        log_prior : ndarray (Z,) or (n, Z), optional
            Replaces that of the model.
        """
        assert self.weights is not None
        whole, prior = self.weights.bias, self.log_prior
        if log_prior is not None:
            prior = log_prior
            with np.errstate(invalid="ignore"):
                whole = whole + np.where(np.isneginf(self.log_prior), log_prior, log_prior - self.log_prior)
        if self.offset is None or known is None:
            return whole
        share = self.share(known)[:, np.newaxis]
        return whole if (share == 1.0).all() else np.where(share == 1.0, whole, prior + share * self.offset)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: Z − 1 for the prior plus the parameters of each density."""
        pairs = zip(self.blocks, self.parameters, strict=True)
        of_densities = sum([block.density.n_parameters(fitted) for block, fitted in pairs])
        return len(self.log_prior) - 1 + of_densities

    def log_joint(self, batch: Batch) -> Array:
        """Return log p(x, y) in nats, (n, C), with missing cells integrated out.

        Issues a warning for columns that a density integrates out only approximately (`ApproximatingDensity`).

        Raises
        ------
        ValueError
            A cell is infinite or outside the support of its density. Correct it or choose another distribution.
        """
        return self.by_class(self.log_joint_of_components(batch))

    @cached_property
    def _scores_of_blocks(self) -> list[tuple[Callable[[Any, Any], Array], bool]]:
        """For each block the function that scores a tile, and whether its density may be approximate."""
        found = []
        for density in [block.density for block in self.blocks]:
            scores: Callable[[Any, Any], Array] = (
                density.log_scores if implements(density, ScoredDensity) else density.log_density
            )
            found.append((scores, implements(density, ApproximatingDensity)))
        return found

    def log_joint_of_components(self, batch: Batch, with_shared: bool = True) -> Array:
        """Return log p(x, z) in nats, (n, Z), or without factors that all components share."""
        total = np.empty((len(batch), len(self.log_prior)))
        total[:] = self.log_prior
        every = zip(self.blocks, self.parameters, self._scores_of_blocks, strict=True)
        for block, parameters, (scores, may_approximate) in every:
            left_out = block.shared and not with_shared
            if left_out or not block.density.has_full_support:
                reject_outside(block, batch)
            if not left_out:
                if may_approximate:
                    warn_of_approximation(block, parameters, batch)
                tile = block.tile(batch)
                total += block.density.log_density(parameters, tile) if with_shared else scores(parameters, tile)
        if not has_finite_sum(total):  # no component can produce some row, or a cell is infinite
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
        return log_normalised(self.scores(batch))

    def component_posterior(self, batch: Batch) -> Array:
        """Return p(z | x), (n, Z); NaN in a row that no component can produce."""
        log_joint = self.log_joint_of_components(batch, with_shared=False)
        kernels.normalise(log_joint)
        return log_joint

    def scores(self, batch: Batch, known: Array | None = None) -> Array:
        """Return log p(y | x) + constant per row in nats, (n, C): the log joint, or the sum of weighted factors.

        `known` says which cells of the batch are known, (n, d), where that differs from what `known` returns.
        """
        if self.weights is None:
            return self.by_class(self.log_joint_of_components(batch, with_shared=False))
        scores = np.empty((len(batch), self.n_components))
        size = max(1, _BLOCK_FACTORS // (self.n_components * len(self.schema.columns)))
        for start in range(0, len(batch), size):
            part = batch.rows(slice(start, start + size))
            of_part = self.known(part) if known is None else known[start : start + size]
            scores[start : start + size] = self.start(of_part) + self.weights.sum(self._posterior_factors(part))
        return scores

    def scored(self, log_prior: Array, log_factors: Array, known: Array) -> Array:
        """Return scores (n, Z) from log factors (n, Z, d) and a log prior that replaces that of the model.

        `known` says which cells are known (`known`), (n, d).
        """
        if self.weights is None:
            return np.asarray(log_prior + log_factors.sum(axis=2))
        return np.asarray(self.start(known, log_prior) + self.weights.sum(log_factors))

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
        log_joint = self.log_joint_of_components(batch, with_shared=False)
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
        return all(block.density.is_normalised for block in self.blocks)

    def log_evidence(self, batch: Batch) -> Array:
        """Return log p(x) in nats, (n,); ValueError if a block has scores that are not a density."""
        for block in self.blocks:
            if not block.density.is_normalised:
                names = quote(self.schema.columns[j].name for j in block.columns)
                of_words = block.density.kind == "counts"
                instead = 'use distributions="multinomial"' if of_words else 'use combine="conditional"'
                raise ValueError(
                    f"the {block.density.name} scores of {names} are not a density, so that there is no log p(x); "
                    f"{instead}"
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
        every_block = zip(self.blocks, of_blocks, self._scores_of_blocks, strict=True)
        for block, parameters, (_, may_approximate) in every_block:
            reject_outside(block, batch)
            if block.shared and not with_shared:
                continue
            if may_approximate:
                warn_of_approximation(block, parameters, batch)
            of_block = block.density.log_factors(parameters, block.tile(batch))
            if block.columns == every:
                factors += of_block
            else:
                factors[:, :, block.columns] += of_block
        return factors

    @property
    def factors_are_joint(self) -> bool:
        """Whether the log prior and `explaining_factors` add up to log p(x, y): without weights and ensembles."""
        return self.weights is None and not any(implements(block.density, ScoredDensity) for block in self.blocks)

    def explaining_factors(self, batch: Batch) -> Array:
        """Return the log factors of the posterior in nats, (n, C, d): weighted, and with shared ones.

        With the log prior they add up to the scores: each known column has its part of the offset.
        """
        if self.weights is None:
            return self.log_factors(batch)
        return self._weighted(batch, self._log_factors(batch, self.posterior_parameters, with_shared=True))

    def posterior_factors(self, batch: Batch) -> Array:
        """Return the same without shared factors."""
        factors = self._posterior_factors(batch)
        if self.of_class:
            return self._chained(factors)
        return factors if self.weights is None else self._weighted(batch, factors)

    def _weighted(self, batch: Batch, factors: Array) -> Array:
        assert self.weights is not None
        weighted = self.weights.weighted(factors)
        if self.offset is not None:
            weighted += self.known(batch)[:, np.newaxis, :] * self.part_of_offset[:, np.newaxis]
        return weighted

    @property
    def part_of_offset(self) -> Array:
        """The part of the offset that each known column has, (Z,)."""
        none = np.zeros(self.n_components)
        return none if self.offset is None else self.offset / max(int(self.sharing.sum()), 1)

    def _chained(self, factors: Array) -> Array:
        """Return log p(x_j | earlier columns, y), (n, C, d), from factors given the component.

        A mixture does not factorise over columns. By the chain rule it is a product of conditionals, and each is a
        quotient of two mixtures: of the columns up to j, and of the columns before j.
        """
        out = np.empty((len(factors), self.n_classes, factors.shape[2]))
        log_joint = np.tile(self.log_share, (len(factors), 1))
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

    @property
    def given(self) -> tuple[tuple[int, ...], ...]:
        """For each column, the columns on which its factor is conditional in addition to the class."""
        if not self.of_class:
            return self._given_component
        order = self._order
        return tuple(tuple(order[: order.index(j)]) for j in range(len(order)))

    @property
    def column_densities(self) -> dict[int, str]:
        """The name of the density that models each column, by the position of the column.

        A column that two blocks model together has the name of the block whose parameters all classes share.
        """
        blocks = sorted((block for block in self.blocks if not block.models_missingness), key=lambda one: one.shared)
        return {j: block.density.name for block in blocks for j in block.columns}

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


def log_sum(log_joint: Array) -> Array:
    """Return log Σ_z exp(log_joint), (n,), with the maximum factored out; −inf where every term is −inf."""
    out = np.empty(len(log_joint))
    kernels.log_evidence(log_joint, out)
    return out


def log_normalised(scores: Array) -> Array:
    """Return scores − log Σ_y exp(scores), (n, C); NaN where every score is −inf.

    The maximum is subtracted first: beyond 2⁵³ nats the logarithm of the sum is lost in it, and equal scores of two
    classes would have the posterior 1 each.
    """
    with np.errstate(invalid="ignore"):
        shifted = scores - scores.max(axis=1, keepdims=True)
    log_posterior: Array = shifted - log_sum(shifted)[:, np.newaxis]
    return log_posterior


def has_finite_sum(values: Array) -> bool:
    """Whether the sum is finite, and so all values are: quicker than a test of each."""
    with np.errstate(invalid="ignore", over="ignore"):  # ∞ − ∞
        return bool(np.isfinite(values.sum(dtype=np.float64)))
