"""Parameters of a model from rows: in one pass, in two passes, or by expectation-maximisation (EM)."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, cast

import numpy as np

from posteriori.densities import Binned, Grouped, RandomTrees, SummedTrees, TwoPassDensity, implements, ungrouped
from posteriori.densities.label_model import LabelModel
from posteriori.densities.refinement import finish
from posteriori.learning.em_steps import (
    Acceleration,
    EStepResult,
    PlainEM,
    Squarem,
    expect,
    expect_from_patterns,
    expect_hidden,
    missing_patterns,
)
from posteriori.learning.initialization import initializations
from posteriori.model import Block, GenerativeModel, Prior, reject_incomplete, reject_outside
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges, JointStatistics
from posteriori.statistics.scatter import MissingPatterns
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Column, Schema, quote
from posteriori.user_warnings import warn


@dataclass(frozen=True)
class Collect:
    """A function from a batch to the statistics of its labelled rows, and to the ranges of all columns.

    It is a value with the blocks as its field, so that a database can compute the same sums by a query.

    Attributes
    ----------
    blocks : tuple of Block
        The blocks whose sufficient statistics are added up.
    """

    blocks: tuple[Block, ...]

    def __call__(self, batch: Batch) -> JointStatistics:
        """Return the statistics.

        Raises
        ------
        ValueError
            A cell is out of the support of its density, or its square overflows.
        """
        if batch.assignment is None:
            raise ValueError("the batch has no labels to learn from")
        known = batch.labelled()
        blocks = tuple([checked_sums(block, batch, known) for block in self.blocks])
        return replace(totals(batch, known), blocks=blocks)


@dataclass(frozen=True)
class SumsOfModels:
    """The statistics of several models; + adds up those of each."""

    parts: tuple[JointStatistics, ...]

    def __add__(self, other: SumsOfModels) -> SumsOfModels:
        return SumsOfModels(tuple([a + b for a, b in zip(self.parts, other.parts, strict=True)]))


@dataclass(frozen=True)
class CollectAll:
    """A function from a batch to the statistics of several models, each with a schema and blocks."""

    models: tuple[tuple[Schema, tuple[Block, ...]], ...]

    def __call__(self, batch: Batch) -> SumsOfModels:
        """Return the statistics."""
        return SumsOfModels(tuple([Collect(blocks)(batch.with_schema(schema)) for schema, blocks in self.models]))


def checked_sums(block: Block, batch: Batch, known: Batch) -> Any:
    """Return the statistics of one block of the labelled rows of a batch, `known`, after a check of the cells.

    Raises
    ------
    ValueError
        A cell is out of the support of the density, or its square overflows.
    """
    reject_incomplete(block, batch)
    if not block.density.has_full_support:
        reject_outside(block, batch)
    sums = block.density.sufficient_statistics.of(block.tile(known), cast(Assignment, known.assignment))
    finite = sums.finite()
    if not finite.all():
        reject_outside(block, batch)
        _reject_overflow(batch.schema, block.columns, finite)
    return sums


def totals(batch: Batch, known: Batch) -> JointStatistics:
    """Return the weight of the labelled rows, `known`, and of the others, and the ranges of all columns.

    Raises
    ------
    ValueError
        The square of a cell of a row without label overflows.
    """
    assignment, labels = cast(Assignment, batch.assignment), cast(Assignment, known.assignment)
    weight = np.bincount(labels.component, labels.weight, labels.n_components)
    hidden = float(assignment.weight[assignment.component < 0].sum())
    ranges = ColumnRanges.of(batch)
    if hidden > 0 and not ranges.has_finite_squares.all():  # rows without label are in no statistics yet
        _reject_overflow(batch.schema, range(len(batch.schema.columns)), ranges.has_finite_squares)
    return JointStatistics(weight, (), hidden, ranges)


def _reject_overflow(schema: Schema, columns: Iterable[int], finite: Array) -> None:
    names = quote(schema.columns[column].name for column, usable in zip(columns, finite, strict=True) if not usable)
    raise ValueError(f"the square of a value in {names} overflows; rescale the column")


def _check_squares(schema: Schema, blocks: tuple[Block, ...], ranges: ColumnRanges | None) -> None:
    """Raise ValueError if the squares of differences underflow in a column of numbers that a block reads as such."""
    for block in blocks:
        is_of_codes = block.density.kind == "categorical" or isinstance(block.density, Binned)
        if not is_of_codes and not block.models_missingness:
            reject_underflow(schema, [j for j in block.columns if j not in schema.coded], ranges)


def reject_underflow(schema: Schema, columns: Iterable[int], ranges: ColumnRanges | None) -> None:
    """Raise ValueError if the squares of the differences of the numbers in one of these columns underflow."""
    if ranges is None or ranges.has_normal_squares.all():
        return
    for j in columns:
        if not ranges.has_normal_squares[j]:
            raise ValueError(
                f"column {schema.columns[j].name!r} holds numbers from {ranges.lowest[j]:g} to {ranges.highest[j]:g}, "
                "and the squares of their differences underflow; multiply it by a power of 10"
            )


def estimate(schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics) -> GenerativeModel:
    """Return the model with the closed-form estimates of the prior and of every density.

    If the statistics hold the ranges of the columns, its schema marks the columns that are entirely missing.

    Raises
    ------
    ValueError
        The numbers of a column differ by so little that the squares of their differences underflow.
    """
    _check_squares(schema, blocks, statistics.ranges)
    if statistics.ranges is not None:
        schema = schema.with_values_in(statistics.ranges.has_numbers.tolist())
    pairs = zip(blocks, statistics.blocks, strict=True)
    return GenerativeModel(
        schema,
        blocks,
        prior.estimate(statistics.weight),
        tuple([block.density.estimate(sums) for block, sums in pairs]),
        prior.of_class,
    )


def unrefined(blocks: tuple[Block, ...]) -> list[str]:
    """Return the parameters whose densities need a second pass over the rows, as a user would write them."""
    densities = (block.density for block in blocks)
    return [density.second_pass for density in densities if implements(density, TwoPassDensity) and density.second_pass]


def carry_over_structure(blocks: tuple[Block, ...], earlier: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with the structure that an earlier call chose, such as the amount of shrinkage."""
    if len(blocks) != len(earlier):
        return blocks

    def carried_over(block: Block, before: Block) -> Block:
        density, other = block.density, before.density
        if not implements(density, TwoPassDensity) or type(ungrouped(density)) is not type(ungrouped(other)):
            return block
        return replace(block, density=density.carry_over_structure(cast(Any, other)))

    return tuple(map(carried_over, blocks, earlier))


def with_categories_of(
    blocks: tuple[Block, ...], earlier: Schema, schema: Schema, components: Sequence[int]
) -> tuple[Block, ...]:
    """Return the blocks with the groups and the splits of categories of an earlier schema, for those of this one.

    `components` are the indices there of the components here, −1 for a new one.
    """

    def moved(block: Block) -> Block:
        if not isinstance(block.density, Grouped | RandomTrees | SummedTrees):
            return block
        moves = [schema.columns[j].places_in(earlier.columns[j]) for j in block.coded(schema)]
        density = block.density.reindexed(moves)
        if isinstance(density, RandomTrees | SummedTrees):
            density = density.with_components(components)
        return replace(block, density=density)

    return tuple(moved(block) for block in blocks)


def without_groups(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with densities over categories themselves, as EM with hidden components needs them."""
    return tuple(replace(block, density=ungrouped(block.density)) for block in blocks)


def refine(
    source: LabelledSource, blocks: tuple[Block, ...], statistics: JointStatistics
) -> tuple[tuple[Block, ...], JointStatistics]:
    """Choose the structure of two-pass densities; return the blocks, and the statistics that these need."""

    def look(block: Block, sufficient_statistics: Any) -> Any:
        def accumulate(batch: Batch) -> Any:
            known = batch.labelled()
            return sufficient_statistics.of(block.tile(known), known.assignment)

        return source.reduce(accumulate)

    refined, sums = list(blocks), list(statistics.blocks)
    for position, block in enumerate(blocks):
        if implements(block.density, TwoPassDensity):
            density, sums[position] = finish(block.density.refine(sums[position]), partial(look, block))
            refined[position] = replace(block, density=density)
    return tuple(refined), replace(statistics, blocks=tuple(sums))


@dataclass(frozen=True)
class EMOptions:
    """When EM ends, and how often it starts.

    Attributes
    ----------
    tolerance : float
        EM has converged if a step changes the log-likelihood by at most this many nats per row.
    max_steps : int
        The largest number of E-steps. EM that reaches it has not converged.
    n_starts : int
        The number of random starts if a class has several components. The fit of the greatest likelihood is kept.
    seed : int
        Of the generator that draws the starts.
    """

    tolerance: float = 1e-5
    max_steps: int = 200
    n_starts: int = 1
    seed: int = 0


@dataclass(frozen=True)
class FitResult:
    """A fitted model.

    Attributes
    ----------
    model : GenerativeModel
    statistics : JointStatistics
        The statistics that the model was estimated from.
    trace : tuple of float
        The log-likelihood of the rows in nats before each M-step; empty for a closed form.
    converged : bool
        False if EM stopped at `max_steps`.
    label_model : LabelModel or None
        The label model after fitting.
    """

    model: GenerativeModel
    statistics: JointStatistics
    trace: tuple[float, ...] = ()
    converged: bool = True
    label_model: LabelModel | None = None


def learn(
    source: LabelledSource,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: EMOptions,
    start: GenerativeModel | None = None,
    patterns: Mapping[int, MissingPatterns] | None = None,
) -> FitResult:
    """Fit a model: in closed form, or by EM if labels, or cells that a density needs, are hidden.

    EM starts from the labelled rows. If labels do not determine the component, it starts from the responsibilities that
    they imply, and `limits.n_starts` times if a class has several components. If no label is hidden, SQUAREM speeds it
    up (`acceleration`). Two-pass densities choose their structure first, from the labelled rows; the blocks of the
    model hold the refined densities.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    blocks : tuple of Block
    prior : Prior
        Of the components.
    past : JointStatistics, optional
        The statistics of rows that are no longer available. No density may then need a second pass (`unrefined`).
    statistics : JointStatistics
        The statistics of the rows in `source`, from one pass.
    limits : EMOptions
    start : GenerativeModel, optional
        The start of EM, in place of the above.
    patterns : mapping, optional
        The patterns of missing cells of these rows, by the index of the block, if they are known already.

    References
    ----------
    Dempster, Laird & Rubin, Maximum likelihood from incomplete data via the EM algorithm, JRSS B 39 (1977). Nigam,
    McCallum, Thrun & Mitchell, Text classification from labeled and unlabeled documents using EM, Machine Learning 39
    (2000). Hastie & Tibshirani, Discriminant analysis by Gaussian mixtures, JRSS B 58 (1996).
    """
    _check_squares(source.schema, blocks, statistics.ranges)  # before EM looks for its starting points
    many_passes = statistics.hidden > 0 or not all(sums.is_exact() for sums in statistics.blocks)
    if many_passes and source.is_streamed:
        source = source.cached()
    starts: list[GenerativeModel | None] = [start]
    if start is None and source.label_model is not None and statistics.hidden > 0:
        starts = list(starting_models(source, blocks, prior, limits))
    fits = [fit_from(source, blocks, prior, past, statistics, limits, begin, patterns) for begin in starts]
    return max(fits, key=lambda fit: fit.trace[-1] if fit.trace else 0.0)


def learn_from_all(source: LabelledSource, plans: Sequence[Plan], earlier: Sequence[FitResult]) -> list[FitResult]:
    """Return the fits of all rows that keep what fits of most of them chose: cut points and structures.

    Closed forms add up the statistics of all rows; EM and learned weights go on from the earlier model. A forest is
    grown again: leaves that are as small as its cannot be divided by rows that come later.
    """
    models = [fit.model for fit in earlier]
    grows = [any(isinstance(block.density, RandomTrees) for block in plan.blocks) for plan in plans]
    blocks = [
        plan.blocks if of_plan else model.blocks for plan, model, of_plan in zip(plans, models, grows, strict=True)
    ]
    collect = CollectAll(tuple(zip([model.schema for model in models], blocks, strict=True)))
    sums: SumsOfModels = source.reduce(collect)
    found = []
    for plan, model, of_model, statistics in zip(plans, models, blocks, sums.parts, strict=True):
        rows, start = source.with_schema(model.schema), replace(model, weights=None)
        if not plan.learns_unlabelled and source.label_model is None:
            rows, statistics = rows.with_unlabelled_weight(0.0), replace(statistics, hidden=0.0)
        fit = learn(rows, of_model, plan.prior, None, statistics, plan.limits, start)
        if plan.weighed is not None:
            fit = replace(fit, model=plan.weighed(fit, rows, None, model.weights))
        found.append(fit)
    return found


def starting_models(
    source: LabelledSource, blocks: tuple[Block, ...], prior: Prior, limits: EMOptions
) -> Iterator[GenerativeModel]:
    """Yield models to start EM from: each is estimated from the responsibilities of an initialization."""
    for initialization in initializations(source, blocks, prior.of_class, limits.n_starts, limits.seed):
        yield first_model(source.schema, blocks, prior, source.reduce(initialization.collect(blocks)))


def first_model(
    schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics
) -> GenerativeModel:
    """Return a model to start EM from: statistics that missing cells make inexact are replaced by those per column."""
    sums = tuple(sums if sums.is_exact() else sums.independent() for sums in statistics.blocks)
    return estimate(schema, blocks, prior, replace(statistics, blocks=sums))


def with_estimates(block: Block) -> Block:
    """Return the block whose density estimates its parameters, if it integrates them out (`plug_in`)."""
    return replace(block, density=block.density.plug_in())


def estimated_parameters(parameters: Any) -> Any:
    """Return parameters as estimates, where they are those of a density that integrates its parameters out."""
    return parameters.plug_in() if hasattr(parameters, "plug_in") else parameters


def warn_not_converged(learned: FitResult, limits: EMOptions) -> None:
    """Warn if EM stopped at `max_steps`."""
    if not learned.converged:
        gain = learned.trace[-1] - learned.trace[-2] if len(learned.trace) > 1 else math.inf
        warn_of_last_gain(gain, limits)


def warn_of_last_gain(gain: float, limits: EMOptions) -> None:
    """Warn that EM stopped at `max_steps`, with the gain of its last step in nats."""
    from sklearn.exceptions import ConvergenceWarning

    warn(
        f"EM stopped after {limits.max_steps} steps with a last gain of {gain:.3g} nats; raise max_iter or tol",
        ConvergenceWarning,
    )


def fit_from(
    source: LabelledSource,
    blocks: tuple[Block, ...],
    prior: Prior,
    past: JointStatistics | None,
    statistics: JointStatistics,
    limits: EMOptions,
    start: GenerativeModel | None = None,
    patterns: Mapping[int, MissingPatterns] | None = None,
) -> FitResult:
    """Return the model that EM reaches from a start, or from the labelled rows; in closed form if nothing is hidden.

    Parameters are those of `learn`.
    """
    asked, statistics = refine(source, blocks, statistics)
    estimated = blocks_estimated_by_em(asked, statistics)
    if not (estimated or statistics.hidden > 0):
        return closed_form(source, EMSteps(asked, prior, past, statistics, estimated))
    # EM maximises the likelihood of plain Gaussians. Their parameters are integrated out at its end.
    blocks = tuple(map(with_estimates, asked))
    steps = EMSteps(blocks, prior, past, statistics, estimated)
    is_own = start is None or not _has_structure(start, blocks)
    if start is None or is_own:
        start = first_model(source.schema, blocks, prior, steps.with_past(statistics))
    start = replace(start, blocks=blocks, parameters=tuple(map(estimated_parameters, start.parameters)))
    if not steps.has_hidden_labels:
        steps = replace(steps, patterns=missing_patterns(source, blocks, estimated, patterns or {}))
    # The coordinates of the densities cover no prior and no label model, which hidden labels make EM estimate too.
    acceleration = PlainEM(start) if steps.has_hidden_labels else Squarem.start(start, estimated, not is_own)
    found = em_loop(source, steps, acceleration, limits)
    if asked == blocks:
        return found
    return replace(found, model=estimate(source.schema, asked, prior, found.statistics))


def _has_structure(model: GenerativeModel, blocks: tuple[Block, ...]) -> bool:
    """Return whether a model has the trees that blocks fix; the model of all rows may have others than a fold."""
    fixed = (block.density.forest for block in blocks)
    return all(
        forest is None or forest.parents == parameters.forest.parents
        for forest, parameters in zip(fixed, model.parameters, strict=True)
    )


@dataclass(frozen=True)
class EMSteps:
    """The E-step and the M-step of one fit.

    Attributes
    ----------
    blocks : tuple of Block
    prior : Prior
    past : JointStatistics or None
        The statistics of rows that are no longer available.
    known : JointStatistics
        The statistics of the labelled rows, from one pass.
    estimated : list of int
        The indices of the blocks whose statistics are expected over missing cells.
    patterns : tuple of MissingPatterns, optional
        Of each of these blocks. They replace the rows in the E-step.
    """

    blocks: tuple[Block, ...]
    prior: Prior
    past: JointStatistics | None
    known: JointStatistics
    estimated: list[int]
    patterns: tuple[MissingPatterns, ...] | None = None

    @property
    def has_hidden_labels(self) -> bool:
        """Whether a row has weight and an unknown component."""
        return self.known.hidden > 0

    @property
    def n_rows(self) -> float:
        """The weight of all rows at hand, with and without label."""
        return float(self.known.weight.sum()) + self.known.hidden

    def with_past(self, statistics: JointStatistics) -> JointStatistics:
        """Add the statistics of earlier rows."""
        return statistics if self.past is None else self.past + statistics

    def expect(self, source: LabelledSource, model: GenerativeModel) -> EStepResult:
        """Take the E-step under a model."""
        if self.has_hidden_labels:
            return expect_hidden(source, model, self.estimated, self.known)
        if self.patterns is not None:
            return expect_from_patterns(model, self.estimated, self.patterns, self.known)
        return source.reduce(expect(model, self.estimated))

    def merge(self, statistics: JointStatistics, expected: EStepResult) -> JointStatistics:
        """Replace the statistics that depend on hidden values by their expectations."""
        hidden = range(len(self.blocks)) if self.has_hidden_labels else self.estimated
        return expected.within(statistics, hidden)

    def maximise(self, schema: Schema, statistics: JointStatistics) -> GenerativeModel:
        """Take the M-step: estimate the model from the expected statistics of all rows, earlier ones included."""
        return estimate(schema, self.blocks, self.prior, statistics)


def closed_form(source: LabelledSource, steps: EMSteps) -> FitResult:
    """Return the model of rows in which nothing is hidden: the M-step alone."""
    statistics = steps.with_past(steps.known)
    return FitResult(steps.maximise(source.schema, statistics), statistics, label_model=source.label_model)


def em_loop(source: LabelledSource, steps: EMSteps, acceleration: Acceleration, limits: EMOptions) -> FitResult:
    """Alternate E-steps and M-steps on rows; see `run_em`.

    Parameters
    ----------
    source : LabelledSource
        The rows.
    steps : EMSteps
    acceleration : Acceleration
    limits : EMOptions
    """
    statistics = steps.known

    def step(model: GenerativeModel) -> tuple[EStepResult, float, float]:
        expected = steps.expect(source, model)
        return expected, expected.log_likelihood, 0.0

    def maximise(expected: EStepResult) -> tuple[GenerativeModel, JointStatistics]:
        nonlocal source, statistics
        statistics = steps.merge(statistics, expected)
        total = steps.with_past(statistics)
        model = steps.maximise(source.schema, total)
        if source.label_model is not None:
            source = source.with_label_model(source.label_model.updated(expected.recorded))
        return model, total

    # A shrunk covariance does not maximise the likelihood, so that a step may also lower it.
    run = run_em(step, maximise, acceleration, limits, steps.n_rows, may_fall=True)
    return FitResult(run.model, run.statistics, run.trace, run.converged, source.label_model)


@dataclass(frozen=True)
class EMRun:
    """Where EM ended: the model and the statistics of the last M-step.

    Attributes
    ----------
    model, statistics : object
    trace : tuple of float
        The log-likelihood in nats before each M-step.
    gain : float
        The last change of the objective, in nats.
    converged : bool
        False if EM stopped at `max_steps`.
    """

    model: Any
    statistics: Any
    trace: tuple[float, ...]
    gain: float
    converged: bool


def run_em(
    step: Callable[[Any], tuple[Any, float, float]],
    maximise: Callable[[Any], tuple[Any, Any]],
    acceleration: Acceleration,
    limits: EMOptions,
    n_rows: float,
    may_fall: bool = False,
) -> EMRun:
    """Alternate E-steps and M-steps until the objective changes by at most the tolerance per row.

    Parameters
    ----------
    step : callable
        The E-step: from a model to expected statistics, the log-likelihood of the rows, and the log-density of a prior,
        in nats. The objective is their sum.
    maximise : callable
        The M-step: from expected statistics to the model, and the statistics that it was estimated from.
    acceleration : Acceleration
        It holds the start, and chooses the model of each E-step.
    limits : EMOptions
    n_rows : float
        The weight of all rows.
    may_fall : bool
        Whether an M-step may lower the objective. Otherwise a step that does so ends EM.
    """
    trace: list[float] = []
    previous, gain = -math.inf, math.inf
    model: Any = acceleration.last
    statistics: Any = None
    for _ in range(limits.max_steps):
        expected, log_likelihood, log_prior = step(acceleration.proposal)
        # "not >=" rather than "<": a NaN likelihood rejects the extrapolation too. A rejected E-step counts as a step.
        if acceleration.is_extrapolated and not log_likelihood >= trace[-1]:
            acceleration = acceleration.reject()
            continue
        trace.append(log_likelihood)
        model, statistics = maximise(expected)
        gain, previous = log_likelihood + log_prior - previous, log_likelihood + log_prior
        # After an extrapolation the change is not that of a step of EM, and does not end the loop.
        small = (abs(gain) if may_fall else gain) <= limits.tolerance * n_rows
        if small and not acceleration.is_extrapolated:
            return EMRun(model, statistics, tuple(trace), gain, converged=True)
        acceleration = acceleration.advance(model, statistics)
    # The model of the last M-step, not an extrapolation whose likelihood is unknown.
    return EMRun(model, statistics, tuple(trace), gain, converged=False)


def needs_em(blocks: tuple[Block, ...], statistics: JointStatistics) -> bool:
    """Return whether a fit to these statistics is not in closed form: labels, or cells of a density, are hidden."""
    return statistics.hidden > 0 or bool(blocks_estimated_by_em(blocks, statistics))


def blocks_estimated_by_em(blocks: tuple[Block, ...], statistics: JointStatistics) -> list[int]:
    """Return the indices of the blocks whose statistics have to be expected over missing cells."""
    pairs = enumerate(zip(blocks, statistics.blocks, strict=True))
    return [
        index
        for index, (block, sums) in pairs
        if not sums.is_exact() or (statistics.hidden > 0 and block.density.expects)
    ]


@dataclass(frozen=True)
class TrainingRows:
    """Training rows and their classes.

    Attributes
    ----------
    source : LabelledSource
        The rows with their schema, labels and weights.
    target : Column
        The classes.
    origin : ndarray (n,), optional
        The position of each row in the table that was given, where a row of weight k stands k times.
    """

    source: LabelledSource
    target: Column
    origin: Array | None = None

    @property
    def y_true(self) -> Array:
        """The class index of each row, (n,); −1 where the row has no label."""
        labels = self.source.labels
        if labels is None:
            raise ValueError("the rows have no labels; read them with y")
        return labels.components(self.target, slice(0, self.source.table.n_rows))

    def with_unlabelled_weight(self, weight: float) -> TrainingRows:
        """Return the same rows with another weight for rows without label."""
        return replace(self, source=self.source.with_unlabelled_weight(weight))


@dataclass(frozen=True)
class Plan:
    """The model to learn: densities and their columns, prior, and options of EM.

    Attributes
    ----------
    blocks : tuple of Block
    prior : Prior
        The prior of the components of all classes.
    limits : EMOptions
    weighed : callable, optional
        Learns factor weights. Called with a fit, the source of its rows, a function from batches in the codes of the
        source to batches in those of the model (or None), initial factor weights (or None), and a sample of the rows
        that is in memory (or None). Returns the model with the weights.
    learns_cells : bool
        Whether `weighed` learns a number per cell and class, not a weight per column.
    learns_unlabelled : bool
        Whether rows without label are learned from by EM, if there are some; otherwise they are left out.
    """

    blocks: tuple[Block, ...]
    prior: Prior
    limits: EMOptions
    weighed: Callable[..., GenerativeModel] | None = None
    learns_unlabelled: bool = True
    learns_cells: bool = False


@dataclass(frozen=True)
class CollectedRows:
    """Rows, the plan of what is learned from them, their statistics for its densities, and those of earlier rows."""

    rows: TrainingRows
    plan: Plan
    statistics: JointStatistics
    past: JointStatistics | None = None
