"""The fitted value: the posterior of one generative model or of a pool, and rows drawn from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, cast

import numpy as np

from posteriori.densities.within_ranges import box_of, draw_within
from posteriori.model.blocks import Block, known_cells
from posteriori.model.generative_model import GenerativeModel, log_normalised
from posteriori.model.marginals import depends_on_others, scores_without, scores_without_each, with_cells
from posteriori.model.pool import FLOOR, WHOLE, Pool, clip_factors, clip_log_posteriors, parts_or_none
from posteriori.statistics import ColumnRanges
from posteriori.support.typing import Array
from posteriori.tables import Bags, Batch, Schema, quote


def draw_components(model: GenerativeModel, label: Array, rng: np.random.Generator) -> Array:
    """Draw a component for each row from p(z | y), (n,) from classes (n,)."""
    if not model.of_class:
        return label
    component = np.empty(len(label), np.int64)
    share = np.exp(model.log_share)
    for z in np.unique(label):
        rows, positions = np.flatnonzero(label == z), np.flatnonzero(np.array(model.of_class) == z)
        component[rows] = rng.choice(positions, size=len(rows), p=share[positions] / share[positions].sum())
    return component


def draw_rows(
    model: GenerativeModel, component: Array, rng: np.random.Generator, ranges: ColumnRanges | None = None
) -> list[Any]:
    """Draw one row per entry of component: a list of columns in schema order, of numbers, codes or bags.

    Cells that a missingness block draws as missing are NaN or 0. All cells of ignored columns, and of columns of
    numbers that had no value in training, are NaN. With ranges, the density of each block given the component is
    truncated to them, and integer columns are rounded (`draw_within`); components keep their probabilities.
    """
    schema = model.schema
    if model.unread:
        names = quote(schema.names[j] for j in model.unread)
        raise ValueError(f"the model has no distribution of {names}, so that no rows can be drawn; use NaiveBayes")
    columns: list[Any] = [np.empty(0)] * len(schema.columns)
    pairs = list(zip(model.blocks, model.parameters, strict=True))
    values, masks = ([pair for pair in pairs if pair[0].models_missingness == masking] for masking in (False, True))
    # Shared blocks and those with an exposure come last: they draw given the cells of the other blocks.
    for block, parameters in sorted(values, key=lambda pair: (pair[0].shared, pair[0].exposure_in(schema) is not None)):
        drawn = _draw_block(schema, block, parameters, component, columns, rng, ranges)
        for position, j in enumerate(block.columns):
            columns[j] = drawn if isinstance(drawn, Bags) else drawn[:, position]
    for j, read in enumerate(schema.columns):
        if read.kind == "categorical":
            columns[j] = columns[j].astype(read.code_type, copy=False)
        if read.is_ignored or read.valueless:
            columns[j] = np.full(len(component), np.nan)
    for block, parameters in masks:
        missing = block.density.sample(parameters, component, rng)
        for position, j in enumerate(block.columns):
            blank = columns[j].dtype.type(0) if schema.columns[j].kind == "categorical" else np.nan
            columns[j] = np.where(missing[:, position], blank, columns[j])
    return columns


def _draw_block(
    schema: Schema,
    block: Block,
    parameters: Any,
    component: Array,
    columns: Sequence[Any],
    rng: np.random.Generator,
    ranges: ColumnRanges | None,
) -> Any:
    """Draw the cells of a block, (n, d) or the bags of a column of counts, given the columns drawn before."""
    given = np.column_stack([columns[j] for j in block.columns]) if block.shared else component
    exposure = block.exposure_in(schema)
    if exposure is not None:
        drawn = cast(Any, block.density).sample(parameters, given, rng, exposure=columns[exposure])
    elif ranges is None or block.density.kind == "counts":
        drawn = block.density.sample(parameters, given, rng)
    else:
        box = box_of(schema, block.columns, ranges, coded=block.density.kind != "continuous")
        drawn = draw_within(block.density, parameters, given, rng, box)
    if isinstance(drawn, Bags) and schema.columns[block.columns[0]].kind != "counts":
        return drawn.to_array()
    return drawn


def blank_batch(schema: Schema) -> Batch:
    """Return one row without a cell."""
    n_numbers, n_categories = len(schema.of_kind("continuous")), len(schema.of_kind("categorical"))
    return Batch.of(schema, 0, np.full((1, n_numbers), np.nan), np.zeros((1, n_categories), schema.code_dtype), {})


def _any_left(cells: Array, removed: Sequence[Sequence[int]]) -> Array:
    """Return which rows have a marked cell (n, d) outside of each group of columns, (k·n,)."""
    total = cells.sum(axis=1)
    return np.concatenate([total > cells[:, list(columns)].sum(axis=1) for columns in removed])


def log_posteriors_alone(models: Sequence[GenerativeModel]) -> Array:
    """Return log p(y | nothing known) of models in nats, (C, M), clipped: their priors, unless gaps are evidence."""
    each = [model.log_posterior(blank_batch(model.schema))[0] for model in models]
    alone: Array = clip_log_posteriors(np.stack(each, axis=1)[np.newaxis])[0]
    return alone


@dataclass(frozen=True)
class Posterior:
    """p(y | x) and p(x) of a generative model, or of a logarithmic opinion pool of several."""

    models: tuple[GenerativeModel, ...]  # of the same columns, apart from cut points, and of the same classes
    pool: Pool | None = None  # the weights of the models; None where there is one model
    # (C,): log p(y) in nats where the pool is used, in p(x) and in drawn rows; default: that of the models
    log_prior: Array | None = None
    # for each model, the function from a batch to one in the codes of the model; default: `Batch.with_schema`
    readers: tuple[Callable[[Batch], Batch], ...] = ()

    @cached_property
    def schema(self) -> Schema:
        """The columns, without the cut points of a pool, whose members differ in them."""
        schema = self.models[0].schema
        return schema if self.pool is None else schema.uncut()

    @property
    def class_log_prior(self) -> Array:
        """Log p(y) in nats, (C,)."""
        return self.models[0].class_log_prior if self.log_prior is None else self.log_prior

    @property
    def shares(self) -> Array:
        """The share of each model in the mixture that p(x) is, (M,): proportional to the weights of the pool.

        A sum of trees, which is no density, has none.
        """
        if self.pool is None:
            return np.ones(1)
        corrects = np.array([model.is_sum_of_trees for model in self.models])
        weight = np.where(corrects & ~corrects.all(), 0.0, self.pool.weight)
        shares: Array = weight / weight.sum() if weight.sum() > 0 else ~corrects / np.count_nonzero(~corrects)
        return shares

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: those of the models; of a pool also its weights and C − 1 biases."""
        of_models = sum(model.n_parameters for model in self.models)
        return of_models if self.pool is None else of_models + len(self.models) + self.models[0].n_classes - 1

    @property
    def n_scores(self) -> int:
        """Number of scores of a row: of the components of all models."""
        return sum(model.n_components for model in self.models)

    @property
    def has_density(self) -> bool:
        """Whether there is a log p(x). Members of a pool model counts of words as different things, which have none."""
        of_counts = self.pool is not None and bool(self.schema.of_kind("counts"))
        return not of_counts and all(self.models[m].has_density for m in np.flatnonzero(self.shares))

    @property
    def has_factors(self) -> bool:
        """Whether a prediction is a product of factors of the columns, so that it has an explanation."""
        return all(block.density.has_factors for model in self.models for block in model.blocks)

    def ignore_missingness_except(self, columns: Sequence[int]) -> Posterior:
        """Return the same without the missingness factors, so that a missing cell of another column is no evidence."""
        return replace(self, models=tuple(model.ignore_missingness_except(columns) for model in self.models))

    def scores(self, batch: Batch) -> Array:
        """Return log p(y | x) + constant per row in nats, (n, C)."""
        return self.models[0].scores(self._read(batch)[0]) if self.pool is None else self.log_posterior(batch)

    def posterior(self, batch: Batch) -> Array:
        """Return p(y | x), (n, C); without a pool NaN in a row that no class can produce."""
        return self.models[0].posterior(batch) if self.pool is None else np.exp(self.log_posterior(batch))

    def log_posterior(self, batch: Batch) -> Array:
        """Return log p(y | x) in nats, (n, C); without a pool NaN in a row that no class can produce."""
        if self.pool is None:
            return self.models[0].log_posterior(self._read(batch)[0])
        parts = self.pool.parts(batch)
        asked = self.pool.asked(parts)
        each = [self.models[m].log_posterior(self._read_by(m, batch)) for m in asked]
        return self.pool.of_members(asked).log_posterior(clip_log_posteriors(np.stack(each, axis=2)), parts)

    def log_posteriors_without_each(self, batch: Batch) -> tuple[Array, Array]:
        """Return log p(y | x), (n, C), and log p(y | x₋ⱼ) for each column j, (d, n, C), in nats.

        A model gives its log prior to a row that no class can produce. A pool keeps the weights of the whole row: those
        of a row that lacks the cell would change the prediction also without a column of noise. Only a row of which
        nothing is left has the weights of one of which nothing is known, so the prior.
        """
        each = [_with_and_without(model, rows) for model, rows in zip(self.models, self._read(batch), strict=True)]
        if self.pool is None:
            return each[0]
        with_all = clip_log_posteriors(np.stack([of_model for of_model, _ in each], axis=2))
        d, n, n_classes = each[0][1].shape
        flat = clip_log_posteriors(np.stack([without.reshape(d * n, n_classes) for _, without in each], axis=2))
        of_all = self.pool.log_posterior(with_all, self.pool.parts(batch))
        parts = self._parts_without(batch, [(j,) for j in range(d)])
        return of_all, self.pool.log_posterior(flat, parts).reshape(d, n, n_classes)

    def log_posteriors_at(self, batch: Batch, column: int, cells: Array) -> Array:
        """Return log p(y | x) in nats of the rows with each of some values of a column in turn, (P, n, C).

        Where a cell adds the same to the scores of every row, it is added to those of the rows without it.
        """
        parts = None if self.pool is None else self._parts_at(batch, column, cells)
        asked = [0] if self.pool is None else self.pool.asked(parts).tolist()
        each = [self._scores_at(m, batch, column, cells) for m in asked]
        log_posteriors = [log_normalised(scores.reshape(-1, scores.shape[2])) for scores in each]
        if self.pool is None:
            return log_posteriors[0].reshape(each[0].shape)
        clipped = clip_log_posteriors(np.stack(log_posteriors, axis=2))
        return self.pool.of_members(np.array(asked)).log_posterior(clipped, parts).reshape(each[0].shape)

    def _parts_at(self, batch: Batch, column: int, cells: Array) -> Array | None:
        """Return the parts of the rows with each of some values of a column in turn, (P·n, 4), as `Pool.parts`."""
        assert self.pool is not None
        own = self.pool.parts(with_cells(batch, column, cells[:1]))
        parts = np.tile(np.tile(WHOLE, (len(batch), 1)) if own is None else own, (len(cells), 1))
        if self.pool.extrapolation is not None:
            others = self.pool.extrapolation.outside(with_cells(batch, column, None)).any(axis=1)
            alone = with_cells(blank_batch(batch.schema), column, cells)
            beyond = self.pool.extrapolation.outside(alone).any(axis=1)
            parts[:, 3] = np.logical_or.outer(beyond, others).ravel()
        return parts_or_none(parts)

    def _scores_at(self, m: int, batch: Batch, column: int, cells: Array) -> Array:
        model = self.models[m]
        if depends_on_others(model, column):
            scores = model.scores(self._read_by(m, with_cells(batch, column, cells)))
            return scores.reshape(len(cells), len(batch), -1)
        nothing = blank_batch(batch.schema)
        without, blank = (model.scores(self._read_by(m, with_cells(one, column, None))) for one in (batch, nothing))
        alone = model.scores(self._read_by(m, with_cells(nothing, column, cells)))
        return np.asarray(without + (alone - np.where(np.isfinite(blank), blank, 0.0))[:, np.newaxis])

    def log_posterior_without(self, batch: Batch, columns: Sequence[int]) -> Array:
        """Return the same without several columns at once, by their positions: log p(y | x without them), (n, C)."""
        pairs = zip(self.models, self._read(batch), strict=True)
        each = [_normalised(scores_without(model, rows, columns), model) for model, rows in pairs]
        if self.pool is None:
            return each[0]
        parts = self._parts_without(batch, [columns])
        return self.pool.log_posterior(clip_log_posteriors(np.stack(each, axis=2)), parts)

    def _parts_without(self, batch: Batch, removed: Sequence[Sequence[int]]) -> Array | None:
        """Return the parts of rows without the cells of each group of columns, (k·n, 4); None if all are whole.

        They are those of the row itself, and those of nothing where no cell is left.
        """
        assert self.pool is not None
        partial, beyond, own = self.pool.fading, self.pool.extrapolation, self.pool.parts(batch)
        n_copies = len(removed) * (len(batch) if own is None else 1)
        parts = np.tile(WHOLE if own is None else own, (n_copies, 1))
        if partial is not None:
            counted = known_cells(batch) & (partial.cells.weight > 0)
            parts[~_any_left(counted, removed), :3] = [0.0, 0.0, 1.0]
        if beyond is not None:
            parts[:, 3] = _any_left(beyond.outside(batch), removed)
        return parts_or_none(parts)

    def log_evidence(self, batch: Batch) -> Array:
        """Return log p(x) in nats, (n,); of a pool that of the mixture of its members.

        Raises ValueError if there is none: see `has_density`.
        """
        if self.pool is None:
            return self.models[0].log_evidence(batch)
        self.require_one_law("log p(x)")
        mixing = np.flatnonzero(self.shares).tolist()
        models = [self.models[m] for m in mixing]
        if self.log_prior is not None:
            models = [model.with_class_prior(self.log_prior) for model in models]
        each = [model.log_evidence(self._read_by(m, batch)) for m, model in zip(mixing, models, strict=True)]
        mixed: Array = np.logaddexp.reduce(np.stack(each) + np.log(self.shares[mixing])[:, np.newaxis], axis=0)
        return mixed

    @property
    def bias(self) -> Array:
        """The constant terms of an explanation in nats, (C,)."""
        if self.begins_at_prior or self.pool is None:
            return self.class_log_prior
        pairs = zip(self.models, self.pool.weight.tolist(), strict=True)
        return np.asarray(self.pool.bias + sum(weight * model.class_log_prior for model, weight in pairs))

    @property
    def begins_at_prior(self) -> bool:
        """Whether the constant terms of an explanation are the log prior: not of pools that take each row as whole."""
        return self.pool is None or self.pool.fading is not None

    @property
    def has_shared_factors(self) -> bool:
        """Whether `explaining_factors` hold a part that all classes share; of a pool they hold none."""
        return self.pool is None and any(block.shared for block in self.models[0].blocks)

    def explaining_factors(self, batch: Batch, with_shared: bool = True) -> Array:
        """Return the log factors of the columns in nats, (n, C, d).

        Those of a pool are the weighted sums of its members', clipped, without what all classes share.

        What extrapolation changes in a row outside belongs to the columns whose cells lie outside.

        Of a pool that knows partial rows, a factor is relative to that of a row without cells, and the bias of whole
        rows, b + Σ_m w_m log p_m(y | nothing known) − log π, is shared equally by the columns that are known.
        """
        if self.pool is None:
            model = self.models[0]
            return model.explaining_factors(batch) if with_shared else model.posterior_factors(batch)
        total = np.zeros((len(batch), self.models[0].n_classes, len(self.schema.columns)))
        parts, partial = self.pool.parts(batch), self.pool.fading
        for model, weight, rows in zip(self.models, self.pool.weights(parts), self._read(batch), strict=True):
            if not np.any(weight):
                continue
            factors = clip_factors(model.posterior_factors(rows), model.class_log_prior)
            if partial is not None:
                blank = model.posterior_factors(blank_batch(model.schema))
                factors = factors - clip_factors(blank, model.class_log_prior)
            total += np.reshape(weight, (-1, 1, 1)) * factors
        if partial is not None:
            share = known_cells(batch) * partial.cells.weight
            share /= np.maximum(share.sum(axis=1, keepdims=True), np.finfo(np.float64).tiny)
            if parts is not None:
                share *= parts[:, :1]
            alone = log_posteriors_alone(self.models)
            bias = self.pool.bias + alone @ self.pool.weight - np.maximum(self.class_log_prior, FLOOR)
            total += share[:, np.newaxis, :] * bias[:, np.newaxis]
        if parts is not None and self.pool.extrapolation is not None:
            self._add_changes_outside(total, batch, np.flatnonzero(parts[:, 3]))
        return total

    def _add_changes_outside(self, total: Array, batch: Batch, rows: Array) -> None:
        """Add to factors what extrapolation changes in log p(y | x), equally to the columns whose cells lie outside."""
        assert self.pool is not None
        assert self.pool.extrapolation is not None
        within, some = replace(self, pool=replace(self.pool, extrapolation=None)), batch.rows(rows)
        change = self.log_posterior(some) - within.log_posterior(some)
        outside = self.pool.extrapolation.outside(some)
        share = outside / np.maximum(outside.sum(axis=1, keepdims=True), 1)
        total[rows] += change[:, :, np.newaxis] * share[:, np.newaxis, :]

    @property
    def given(self) -> tuple[tuple[int, ...], ...]:
        """For each column, the columns on which its factor is conditional; of a pool empty."""
        return self.models[0].given if self.pool is None else ()

    @property
    def is_weighted(self) -> bool:
        """Whether bias and factors add up to log p(y | x) up to a constant per row, and not to log p(x, y)."""
        return self.pool is not None or not self.models[0].factors_are_joint

    def draw(
        self, n: int, label: Array | None, rng: np.random.Generator, ranges: Sequence[ColumnRanges | None]
    ) -> tuple[list[Array], Array]:
        """Draw rows: columns of numbers and codes in the order of the schema, and the class index of each row.

        Parameters
        ----------
        n : int
        label : ndarray (n,), optional
            The class index of each row; default: drawn from the prior.
        rng : Generator
        ranges : sequence of ColumnRanges or None
            For each model, the ranges of its training rows, to which its densities are truncated; None for no bounds.
        """
        if self.pool is None:
            return _drawn(self.models[0], n, label, rng, ranges[0])
        self.require_one_law("distribution to draw from")
        member = rng.choice(len(self.models), size=n, p=self.shares)
        if label is None and self.log_prior is not None:
            label = rng.choice(len(self.log_prior), size=n, p=np.exp(self.log_prior))
        drawn: list[Array] = [np.empty(n, np.float64) for _ in self.schema.columns]
        labels = np.empty(n, np.int64)
        for m, model in enumerate(self.models):
            rows = np.flatnonzero(member == m)
            if len(rows):
                of_rows = None if label is None else label[rows]
                columns, labels[rows] = _drawn(model, len(rows), of_rows, rng, ranges[m])
                for position, column in enumerate(columns):
                    drawn[position][rows] = column
        for j in self.schema.of_kind("categorical"):
            drawn[j] = drawn[j].astype(self.schema.columns[j].code_type)
        return drawn, labels

    def require_one_law(self, what: str) -> None:
        """Raise ValueError if the members of a pool may be distributions of different things."""
        names = [self.schema.names[j] for j in self.schema.of_kind("counts")]
        if self.pool is not None and names:
            raise ValueError(
                f"the members of a pool take the counts of words in {quote(names)} as occurrences, as presence, as "
                f'scores or not at all, so that the pool has no {what}; use NaiveBayes(distributions="multinomial")'
            )

    def _read(self, batch: Batch) -> list[Batch]:
        """Return the batch in the codes of each model."""
        return [self._read_by(m, batch) for m in range(len(self.models))]

    def _read_by(self, m: int, batch: Batch) -> Batch:
        """Return the batch in the codes of a model, by its position."""
        return self.readers[m](batch) if self.readers else batch.with_schema(self.models[m].schema)


def _drawn(
    model: GenerativeModel, n: int, label: Array | None, rng: np.random.Generator, ranges: ColumnRanges | None
) -> tuple[list[Array], Array]:
    if label is None:
        label = rng.choice(model.n_classes, size=n, p=np.exp(model.class_log_prior))
    return draw_rows(model, draw_components(model, label, rng), rng, ranges), label


def _with_and_without(model: GenerativeModel, batch: Batch) -> tuple[Array, Array]:
    whole, without = model.scores(batch), scores_without_each(model, batch)
    return _normalised(whole, model), _normalised(without.reshape(-1, whole.shape[1]), model).reshape(without.shape)


def _normalised(scores: Array, model: GenerativeModel) -> Array:
    log_posterior = log_normalised(scores)
    return np.where(np.isnan(log_posterior), model.class_log_prior, log_posterior)
