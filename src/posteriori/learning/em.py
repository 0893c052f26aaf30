"""Expectation-maximisation (EM) for hidden components, and for missing cells that statistics need."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from sklearn.exceptions import ConvergenceWarning

from posteriori.learning.acceleration import Acceleration, PlainEM, Squarem
from posteriori.learning.e_step import EStepResult, expect, expect_from_patterns, expect_hidden, missing_patterns
from posteriori.learning.fit import estimate
from posteriori.learning.initialization import initializations
from posteriori.learning.two_pass import refine
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.statistics.missing_patterns import MissingPatterns
from posteriori.tables import LabelModel, Schema


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
    many_passes = statistics.hidden > 0 or not all(sums.is_exact() for sums in statistics.blocks)
    if many_passes and source.is_streamed:
        source = source.cached()
    starts: list[GenerativeModel | None] = [start]
    if start is None and source.label_model is not None and statistics.hidden > 0:
        starts = list(starting_models(source, blocks, prior, limits))
    fits = [fit_from(source, blocks, prior, past, statistics, limits, begin, patterns) for begin in starts]
    return max(fits, key=lambda fit: fit.trace[-1] if fit.trace else 0.0)


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
    return replace(block, density=block.density.plug_in()) if hasattr(block.density, "plug_in") else block


def estimated_parameters(parameters: Any) -> Any:
    """Return parameters as estimates, where they are those of a density that integrates its parameters out."""
    return parameters.plug_in() if hasattr(parameters, "plug_in") else parameters


def warn_not_converged(learned: FitResult, limits: EMOptions, stacklevel: int) -> None:
    """Warn if EM stopped at `max_steps`."""
    if not learned.converged:
        gain = learned.trace[-1] - learned.trace[-2] if len(learned.trace) > 1 else math.inf
        warn_of_last_gain(gain, limits, stacklevel + 1)


def warn_of_last_gain(gain: float, limits: EMOptions, stacklevel: int) -> None:
    """Warn that EM stopped at `max_steps`, with the gain of its last step in nats."""
    warnings.warn(
        f"EM stopped after {limits.max_steps} steps with a last gain of {gain:.3g} nats; raise max_iter or tol",
        ConvergenceWarning,
        stacklevel=stacklevel,
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
    if start is None:
        start = first_model(source.schema, blocks, prior, steps.with_past(statistics))
    start = replace(start, blocks=blocks, parameters=tuple(map(estimated_parameters, start.parameters)))
    if not steps.has_hidden_labels:
        steps = replace(steps, patterns=missing_patterns(source, blocks, estimated, patterns or {}))
    # The coordinates of the densities cover no prior and no label model, which hidden labels make EM estimate too.
    acceleration = PlainEM(start) if steps.has_hidden_labels else Squarem.start(start, estimated)
    found = em_loop(source, steps, acceleration, limits)
    if asked == blocks:
        return found
    return replace(found, model=estimate(source.schema, asked, prior, found.statistics))


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
        if not sums.is_exact() or (statistics.hidden > 0 and getattr(block.density, "expects", False))
    ]
