"""Log factors of counts, each in a column of numbers, up to terms that are the same for all components."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial

import numpy as np
from sqlglot import exp

from posteriori.densities import (
    ComplementParameters,
    CompoundParameters,
    MultinomialParameters,
    PoissonParameters,
    PoissonRateParameters,
    PresenceParameters,
)
from posteriori.sql.dialects import (
    Node,
    any_of,
    cases,
    column,
    less,
    literal,
    minus,
    missing,
    otherwise,
    over,
    plus,
    real,
    times,
    total,
)
from posteriori.sql.factors import Factor, FactorContext
from posteriori.support.typing import Array
from posteriori.tables.bags import LARGEST_COUNT

_SHIFT = 8  # Stirling's series is used above it
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360)  # Abramowitz & Stegun 6.1.41
_SMALLEST = 1e-300  # of a sum of shares whose logarithm is taken


def poisson_factors(context: FactorContext, columns: Sequence[int], parameters: PoissonParameters) -> Iterator[Factor]:
    """Yield x_j·log rate_zj − rate_zj."""
    x = _counts(context, columns, whole=True, most=np.inf)
    yield from _linear(columns, x, parameters.log_rate, lambda z, j: literal(parameters.rate[z, j]))


def rate_factors(context: FactorContext, columns: Sequence[int], parameters: PoissonRateParameters) -> Iterator[Factor]:
    """Yield x_j·log λ_zj − λ_zj·ℓ of an exposure ℓ; of its shares of the words present where ℓ is missing."""
    x, log_rate = _counts(context, columns, whole=True), parameters.of_words.scores
    totals = _log_totals(context, columns, x, parameters.rate, np.log(np.maximum(parameters.whole, _SMALLEST)))
    if context.exposure is None:
        yield from _linear(columns, x, log_rate, lambda z, j: times(column(x[j]), column(totals[z])))
        return
    exposure = context.cells.number(context.exposure)
    context.cells.refuse(exp.LTE(this=column(exposure), expression=literal(0.0)))

    def expected(z: int, j: int) -> Node:
        unknown = (missing(exposure), times(column(x[j]), column(totals[z])))
        return cases(unknown, default=times(literal(parameters.rate[z, j]), column(exposure)))

    yield from _linear(columns, x, log_rate, expected)


def multinomial_factors(
    context: FactorContext, columns: Sequence[int], parameters: MultinomialParameters
) -> Iterator[Factor]:
    """Yield x_j·log θ_zj, with the shares θ of the words that are present."""
    yield from _shares(context, columns, _counts(context, columns), parameters)


def scaled_factors(
    context: FactorContext, columns: Sequence[int], parameters: MultinomialParameters
) -> Iterator[Factor]:
    """Yield t_j·log θ_zj of t_j = log(1 + x_j), divided by their Euclidean length."""
    steps, x = context.steps, _counts(context, columns)
    logs = [
        steps.define(f"t{j}", exp.Ln(this=plus(literal(1.0), column(name)))) for j, name in zip(columns, x, strict=True)
    ]
    squares = [otherwise(times(column(t), column(t)), literal(0.0)) for t in logs]
    length = steps.define(f"t{columns[0]}_length", exp.Sqrt(this=total(squares)))
    positive = exp.GT(this=column(length), expression=literal(0.0))
    scaled = [
        steps.define(f"u{j}", cases((positive.copy(), over(column(t), column(length))), default=column(t)))
        for j, t in zip(columns, logs, strict=True)
    ]
    yield from _shares(context, columns, scaled, parameters)


def complement_factors(
    context: FactorContext, columns: Sequence[int], parameters: ComplementParameters
) -> Iterator[Factor]:
    """Yield x_j·w_zj; ValueError if a weight is infinite."""
    if not np.isfinite(parameters.score).all():
        raise ValueError(f"{context.model} has infinite weights of words, which to_sql cannot write; set alpha > 0")
    yield from _linear(columns, _counts(context, columns), parameters.score)


def presence_factors(
    context: FactorContext, columns: Sequence[int], parameters: PresenceParameters
) -> Iterator[Factor]:
    """Yield log p that word j is present, or that it is absent."""
    for j, (position, x) in zip(columns, enumerate(_counts(context, columns)), strict=True):
        for z in range(len(parameters.present)):
            occurs = (exp.GT(this=column(x), expression=literal(0.0)), literal(parameters.present[z, position]))
            absent = literal(parameters.absent[z, position])
            yield z, j, real(cases((missing(x), literal(0.0)), occurs, default=absent))


def compound_factors(
    context: FactorContext, columns: Sequence[int], parameters: CompoundParameters
) -> Iterator[Factor]:
    """Yield log Γ(a_zj + x_j) − log Γ(a_zj), and x_j/N of log Γ(A_z) − log Γ(A_z + N)."""
    steps, label = context.steps, f"b{columns[0]}"
    x = _counts(context, columns, whole=True)
    n = steps.define(f"{label}_n", total([otherwise(column(name), literal(0.0)) for name in x]))
    for z, a in enumerate(parameters.concentration):
        seen = [cases((missing(name), literal(0.0)), default=literal(a_j)) for name, a_j in zip(x, a, strict=True)]
        concentration = steps.define(f"{label}_a{z}", context.steps.dialect.largest([total(seen), literal(_SMALLEST)]))
        whole = steps.define(f"{label}_r{z}", _log_rising(partial(column, concentration), n))
        for j, name, a_j in zip(columns, x, a.tolist(), strict=True):
            own = _log_rising(partial(literal, a_j), name)
            of_total = times(over(column(name), column(n)), column(whole))
            occurs = exp.GT(this=column(name), expression=literal(0.0))
            yield z, j, cases((occurs, minus(own, of_total)), default=literal(0.0))


def _counts(
    context: FactorContext, columns: Sequence[int], whole: bool = False, most: float = LARGEST_COUNT
) -> list[str]:
    """Return the columns of the counts, after refusing rows with a negative, too large or fractional one."""
    cells, names = context.cells, []
    for j in columns:
        if cells.column(j).kind == "counts":
            raise ValueError(
                f"column {cells.column(j).name!r} of {context.model} is text or a block of words, which no SELECT is "
                "written for; score by predict_to or to_javascript instead"
            )
        x = cells.number(j)
        cells.refuse(less(column(x), literal(0.0)))
        if whole:
            cells.refuse(exp.NEQ(this=column(x), expression=exp.Floor(this=column(x))))
        if most < np.inf:  # infinite cells are refused already
            cells.refuse(exp.GT(this=column(x), expression=literal(most)))
        names.append(x)
    return names


def _linear(
    columns: Sequence[int], x: Sequence[str], weight: Array, less_by: Callable[[int, int], Node] | None = None
) -> Iterator[Factor]:
    """Yield x_j·weight_zj − less_by(z, position of j), 0 where x_j is missing; a weight of −∞ counts if x_j > 0."""
    for position, (j, name) in enumerate(zip(columns, x, strict=True)):
        for z, of_event in enumerate(weight[:, position].tolist()):
            events = times(literal(of_event), column(name))
            if of_event == -np.inf:
                present = exp.GT(this=column(name), expression=literal(0.0))
                events = real(cases((present, literal(of_event)), default=times(literal(0.0), column(name))))
            node = events if less_by is None else minus(events, less_by(z, position))
            yield z, j, otherwise(node, literal(0.0))


def _shares(
    context: FactorContext, columns: Sequence[int], x: Sequence[str], parameters: MultinomialParameters
) -> Iterator[Factor]:
    log_share = parameters.log_probability
    totals = _log_totals(context, columns, x, np.exp(log_share), np.zeros(len(log_share)))
    yield from _linear(columns, x, log_share, lambda z, j: times(column(x[j]), column(totals[z])))


def _log_totals(
    context: FactorContext, columns: Sequence[int], x: Sequence[str], share: Array, log_whole: Array
) -> list[str]:
    """Return columns with log Σ_j share_zj over the words whose count is not missing; log_whole if none is missing."""
    names = []
    for z, (of_z, whole) in enumerate(zip(share.tolist(), log_whole.tolist(), strict=True)):
        present = total(
            [cases((missing(name), literal(0.0)), default=literal(s)) for name, s in zip(x, of_z, strict=True)]
        )
        log_present = exp.Ln(this=context.steps.dialect.largest([present, literal(_SMALLEST)]))
        gap = any_of([missing(name) for name in x])
        names.append(context.steps.define(f"b{columns[0]}_s{z}", cases((gap, log_present), default=literal(whole))))
    return names


def _log_rising(a: Callable[[], Node], x: str) -> Node:
    """Return log Γ(a + x) − log Γ(a) as the difference of Stirling's series at y = a + 8 and at y + x.

    It is (y + x − ½)·log(1 + x/y) + x·log y − x + c(y + x) − c(y) + log Π_i (a + i) − log Π_i (a + x + i) of i < 8,
    which loses no digit where a is large.
    """

    def y() -> Node:
        return plus(a(), literal(float(_SHIFT)))

    def z() -> Node:
        return plus(y(), column(x))

    grown = times(minus(z(), literal(0.5)), exp.Ln(this=plus(literal(1.0), over(column(x), y()))))
    parts = [grown, minus(times(column(x), exp.Ln(this=y())), column(x)), minus(_correction(z), _correction(y))]
    factors = [[plus(start(), literal(float(i))) for i in range(_SHIFT)] for start in (a, lambda: plus(a(), column(x)))]
    return total([*parts, minus(*(exp.Ln(this=times(*of_start)) for of_start in factors))])


def _correction(y: Callable[[], Node]) -> Node:
    """Return c(y) = 1/(12·y) − 1/(360·y³) + …, by Horner's rule in 1/y²."""
    node = literal(_STIRLING[-1])
    for term in reversed(_STIRLING[:-1]):
        node = plus(literal(term), over(node, times(y(), y())))
    return over(node, y())
