"""A fitted model as one SELECT."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import sqlglot
from sqlglot import exp

from posteriori.model import GenerativeModel
from posteriori.sql.cells import Cells
from posteriori.sql.dialects import (
    POSSIBLE,
    SMALLEST_EXPONENT,
    Dialect,
    Node,
    any_of,
    cases,
    column,
    minus,
    number,
    plus,
    real,
    times,
    total,
)
from posteriori.sql.factors import Factor, FactorContext
from posteriori.sql.sizes import require_affordable_length
from posteriori.sql.steps import Steps
from posteriori.sql.writers import writer_of
from posteriori.tables.columns import kind_of
from posteriori.tables.messages import quote
from posteriori.typing import Array

Label = str | bool | int | float
LEAST_LOG_POSTERIOR = -700.0  # of a member of a pool, as `posteriori.learning.pool.clip_log_posteriors` clips it


class PoolWeights(Protocol):
    """The weights of a logarithmic opinion pool."""

    @property
    def weight(self) -> Array:
        """The weight of each model, (M,)."""

    @property
    def bias(self) -> Array:
        """The bias of each class, (C,), in nats."""


def select_posterior(
    models: Mapping[str, GenerativeModel],
    labels: Sequence[Label],
    table: str,
    dialect: str,
    columns: Sequence[str] | None,
    pool: PoolWeights | None = None,
) -> str:
    """Return the SELECT that `Classifier.to_sql` describes, of one model or of a pool of several.

    Parameters
    ----------
    models : mapping from str to GenerativeModel
        By their names in messages.
    labels : sequence
        The classes.
    table, dialect, columns
        As in `Classifier.to_sql`.
    pool : PoolWeights, optional
        The weights of the models; None for one model.
    """
    (name, model), *_ = models.items()
    dates = [column.name for column in model.schema.columns if column.part is not None and not column.is_ignored]
    if dates:
        raise ValueError(
            f"{quote(dates)} {'are parts' if len(dates) > 1 else 'is a part'} of dates, which have no SQL; add them "
            'to the table as numbers and categories before the fit, or fit with columns=po.Columns(dates="ignore")'
        )
    known = Dialect(dialect)
    kinds = sorted({kind_of(label) for label in labels})
    if len(kinds) > 1:
        raise ValueError(f"the classes are {' and '.join(kinds)}, and a column of a database is of one type")
    used = models if pool is None else {n: m for (n, m), w in zip(models.items(), pool.weight, strict=True) if w}
    require_affordable_length(used)
    steps = Steps(known, table_of(table, known))
    kept = kept_columns(model, columns)
    results: dict[str, Node] = {
        name_kept: column(steps.read(f"k{position}", known.named(name_kept))) for position, name_kept in enumerate(kept)
    }
    cells = Cells(steps, model.schema)
    nodes = _scores(model, steps, cells, name) if pool is None else _pooled_scores(models, pool, steps, cells)
    scores = [steps.define(f"score{y}", node) for y, node in enumerate(nodes)]
    for title, node in _posterior(steps, cells, scores, labels, int(model.class_log_prior.argmax())):
        if title in results:
            raise ValueError(
                f"two columns of the SELECT would be named {title!r}; list in columns those of the table to hand on"
            )
        results[title] = node
    return steps.select(results)


def kept_columns(model: GenerativeModel, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of the table that the SELECT hands on."""
    if columns is None:
        return list(model.schema.given)
    if isinstance(columns, str):
        raise TypeError(f"columns is the string {columns!r}; give a sequence of names, as [{columns!r}]")
    names = list(columns)
    repeated = [kept for kept in names if names.count(kept) > 1]
    if repeated:
        raise ValueError(f"columns holds {repeated[0]!r} twice; name each column once")
    return names


def table_of(table: str, dialect: Dialect) -> str:
    """Return a table as it stands after FROM.

    Raises
    ------
    ValueError
        It cannot stand there.
    """
    try:
        parsed: Any = sqlglot.parse(f"SELECT 1 FROM {table}\n", dialect=dialect.name) if isinstance(table, str) else []
    except sqlglot.errors.SqlglotError:
        parsed = []
    clauses = [key for key, value in parsed[0].args.items() if value] if len(parsed) == 1 and parsed[0] else []
    if not set(clauses) <= {"expressions", "from", "from_", "joins", "laterals", "kind"} or not clauses:
        raise ValueError(
            f"table is {table!r}, which cannot stand after FROM in {dialect.name}; give a name, quoted if it is not a "
            "plain word, or a SELECT in parentheses"
        )
    return table.strip()


# Scores ---------------------------------------------------------------------------------------------------------


def _scores(model: GenerativeModel, steps: Steps, cells: Cells, name: str) -> list[Node]:
    """Return log p(x, y) of each class, up to a constant that all classes share."""
    if model.weights is None:
        start = model.log_prior
    else:
        forbidden = np.isneginf(model.log_prior)
        start = np.where(forbidden, -np.inf, model.weights.bias)
    terms = [[real(number(log_p))] for log_p in start.tolist()]
    for z, j, node in _factors(model, steps, cells, name):
        weight = 1.0 if model.weights is None else float(model.weights.weight[j])
        if weight > 0:
            terms[z].append(node if weight == 1.0 else times(number(weight), node))
    sums = [total(parts) for parts in terms]
    if not model.of_class:
        return sums
    names = [steps.define(f"component{z}", node) for z, node in enumerate(sums)]
    of_class = np.array(model.of_class)
    return [_log_sum(steps, y, [names[z] for z in np.flatnonzero(of_class == y)]) for y in range(model.n_classes)]


def _pooled_scores(models: Mapping[str, GenerativeModel], pool: PoolWeights, steps: Steps, cells: Cells) -> list[Node]:
    """Return bias_y + Σ_m weight_m·log p_m(y | x) of each class, where log p_m is clipped as in the pool."""
    terms = [[real(number(bias))] for bias in pool.bias.tolist()]
    for m, ((name, model), weight) in enumerate(zip(models.items(), pool.weight.tolist(), strict=True)):
        if weight == 0.0:
            continue
        own = steps.scope(f"m{m}_")
        nodes = _scores(model, own, cells.of_member(own, model.schema), name)
        scores = [own.define(f"score{y}", node) for y, node in enumerate(nodes)]
        peak = own.define("peak", own.dialect.largest([column(score) for score in scores]))
        evidence = own.define("evidence", own.dialect.log_of_sum([(column(score), column(peak)) for score in scores]))
        for of_class, score in zip(terms, scores, strict=True):
            log_p = minus(minus(column(score), column(peak)), column(evidence))
            clipped = cases(
                (exp.LTE(this=column(peak), expression=number(POSSIBLE)), number(-np.log(len(scores)))),
                default=own.dialect.largest([log_p, number(LEAST_LOG_POSTERIOR)]),
            )
            of_class.append(times(number(weight), clipped))
    return [total(parts) for parts in terms]


def _log_sum(steps: Steps, y: int, names: list[str]) -> Node:
    """Return log Σ exp of some columns, whose largest is subtracted before the exponentials."""
    if len(names) == 1:
        return column(names[0])
    peak = steps.define(f"peak{y}", steps.dialect.largest([column(term) for term in names]))
    return plus(column(peak), steps.dialect.log_of_sum([(column(term), column(peak)) for term in names]))


def _factors(model: GenerativeModel, steps: Steps, cells: Cells, name: str) -> Iterator[Factor]:
    """Yield the log factors of all blocks that depend on the component."""
    for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True):
        if block.shared:
            continue
        context = FactorContext(steps, cells, name, model.weights is not None, block.exposure_in(model.schema))
        yield from writer_of(block.density, name)(context, block.columns, parameters)


# The posterior --------------------------------------------------------------------------------------------------


def _posterior(
    steps: Steps, cells: Cells, scores: list[str], labels: Sequence[Label], fallback: int
) -> Iterator[tuple[str, Node]]:
    """Yield the columns of the result: the prediction, p(y | x) and log p(y | x) of each class."""
    dialect = steps.dialect
    peak = steps.define("peak", dialect.largest([column(score) for score in scores]))
    evidence = steps.define("evidence", dialect.log_of_sum([(column(score), column(peak)) for score in scores]))
    impossible = exp.LTE(this=column(peak), expression=number(POSSIBLE))
    undefined: list[Node] = [impossible.copy()]
    refused = cells.refused()
    if refused is not None:
        flag = steps.define("refused", cases((refused, number(1.0)), default=number(0.0)))
        refused = exp.GT(this=column(flag), expression=number(0.0))
        undefined.append(refused.copy())
    guard = any_of(undefined)

    best = [
        (exp.EQ(this=column(score), expression=column(peak)), dialect.cell(label))
        for score, label in zip(scores, labels, strict=True)
    ]
    first = [] if refused is None else [(refused, exp.Null())]
    yield "prediction", cases(*first, (impossible, dialect.cell(labels[fallback])), *best)
    log_zero = dialect.infinity("-") or number(-np.inf)
    logs = []
    for y, score in enumerate(scores):
        ruled_out = exp.LTE(this=column(score), expression=number(POSSIBLE))
        log_p = minus(minus(column(score), column(peak)), column(evidence))
        node = cases((guard.copy(), exp.Null()), (ruled_out, log_zero.copy()), default=log_p)
        logs.append(steps.define(f"log_p{y}", node))
    for label, log_p in zip(labels, logs, strict=True):
        tiny = exp.LT(this=column(log_p), expression=number(SMALLEST_EXPONENT))
        yield f"p_{_text(label)}", cases((tiny, number(0.0)), default=exp.Exp(this=column(log_p)))
    for label, log_p in zip(labels, logs, strict=True):
        yield f"log_p_{_text(label)}", column(log_p)


def _text(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)
