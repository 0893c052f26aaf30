"""A fitted model as one SELECT, whose length is estimated before it is written: writing takes up to half of a fit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import sqlglot
from sqlglot import exp

from posteriori.densities import (
    AveragedParameters,
    CompoundParameters,
    FullJointParameters,
    GroupedParameters,
    MultinomialParameters,
    MultivariateGaussianParameters,
    PoissonRateParameters,
    RandomTreesParameters,
    SmoothedFamilies,
    SummedTreesParameters,
    TreeParameters,
)
from posteriori.model import GenerativeModel, Pool, Posterior
from posteriori.model_cost import Language, TableSummary, require_affordable_export
from posteriori.program.model import scores
from posteriori.reading.matching import without_unused
from posteriori.scoring.decisions import Decision
from posteriori.sql.dates import reason_against, require_dates
from posteriori.sql.dialects import (
    POSSIBLE,
    SMALLEST_EXPONENT,
    Dialect,
    Node,
    any_of,
    cases,
    column,
    literal,
    minus,
    times,
    total,
)
from posteriori.sql.steps import CellReader, SelectSteps
from posteriori.sql.table_cells import TableCells
from posteriori.sql.terms import Term
from posteriori.sql.writing import Writer
from posteriori.tables.schema import Column, Schema, kind_of

MOST_CHARACTERS = 20_000_000  # DuckDB reads 7 million in a second, and 0.5 GB; some databases read one million only
_PER_PARAMETER = 60  # characters of a parameter in an expression
_PER_PARAMETER_OF = {
    AveragedParameters: 30,
    CompoundParameters: 2000,  # the logarithm of a rising factorial
    FullJointParameters: 33,
    MultinomialParameters: 150,  # with the share of the counts that are known
    PoissonRateParameters: 150,
    SmoothedFamilies: 33,
    TreeParameters: 160,  # with the messages of missing cells
}
_PER_NUMBER = 18  # of a number in a table
_PER_EXPRESSION = 180  # of a step of the sweep of a covariance
_PER_CUT = 50  # of the codes of a column of numbers
_USUAL_TREES, _USUAL_LEAVES = 300, 31  # of a sum of trees, of 2,000 rows or more
_PER_CLASS = 500  # of the columns of the result


def require_affordable_length(models: Mapping[str, GenerativeModel]) -> None:
    """Raise ValueError if the SELECT of all models together would be longer than `MOST_CHARACTERS`.

    Parameters
    ----------
    models : mapping from str to GenerativeModel
        By their names in the message: those that are longest together are named.
    """
    lengths = {name: estimate_length(model) for name, model in models.items()}
    require_affordable_export(
        "the SELECT", "sql", lengths, "characters", MOST_CHARACTERS, "score by predict_to or to_javascript instead"
    )


def estimate_length(model: GenerativeModel) -> int:
    """Return about how many characters the SELECT of a model has; it rises with each size of the parameters."""
    cells = sum(len(str(category)) + 16 for column in model.schema.columns for category in column.categories)
    cells += _PER_CUT * sum(len(column.cuts or ()) for column in model.schema.columns)
    factors = sum(
        _length(parameters, block.density)
        for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True)
        if not block.shared
    )
    return int(cells + factors + _PER_CLASS * model.n_components)


def reason_against_column(column: Column) -> str | None:
    """Return why no SELECT reads a column, in whatever dialect; None if some does."""
    if column.kind == "counts":
        return "is text or a block of words, which no SELECT is written for"
    return None if column.part is None or column.is_ignored else reason_against(column.part)


def reason_against_model(model: GenerativeModel) -> str | None:
    """Return why a model has no SELECT, whatever its length; None if it has."""
    steps = SelectSteps(Dialect("duckdb"), "rows")
    try:
        _scores(Posterior((model,)), steps, ["it"])
    except ValueError as error:
        return str(error)
    return None


def forecast_length_of_sum(table: TableSummary) -> float:
    """Return about how many characters the usual number of trees of a sum has, if all columns split alike."""
    n_splits = _USUAL_TREES * (_USUAL_LEAVES - 1)
    n_codes = sum(column.cardinality + 1 for column in table.columns if column.cardinality)
    n_edges = n_splits * (4 + 2 * n_codes / max(len(table.columns), 1))
    return _length_of_trees(n_edges, n_splits + _USUAL_TREES, table.n_classes)


LANGUAGE = Language(
    "the SELECT",
    "characters",
    MOST_CHARACTERS,
    estimate_length,
    reason_against_column,
    reason_against_model,
    forecast_length_of_sum,
)


def n_expressions(d: int, n_components: int, n_covariances: int) -> int:
    """Return the number of expressions for d columns: Z·d(d−1)/2 deviations and G·(d−1)d(d+1)/6 covariances."""
    return n_components * d * (d - 1) // 2 + n_covariances * (d - 1) * d * (d + 1) // 6


def _length(parameters: Any, density: Any) -> float:
    """Return about how many characters the factors of a density have."""
    known = parameters.coarse if isinstance(parameters, GroupedParameters) else parameters
    if isinstance(known, RandomTreesParameters | SummedTreesParameters):
        trees = known.trees
        # A split has two edges for its codes and two for a missing cell, and at most two per category.
        n_edges = 2 * len(trees.sides) + 4 * (len(trees.nodes) - trees.n_leaves)
        return _length_of_trees(n_edges, trees.n_leaves, len(known.prior))
    if isinstance(known, MultivariateGaussianParameters):
        n_components, d = known.mean.shape
        if known.degrees is not None or np.any(known.covariance * ~np.eye(d, dtype=np.bool_)):
            return float(_PER_EXPRESSION * n_expressions(d, n_components, len(known.covariance)))
        return float(2 * _PER_PARAMETER * n_components * d)
    return float(_PER_PARAMETER_OF.get(type(known), _PER_PARAMETER) * density.n_parameters(parameters))


def _length_of_trees(n_edges: float, n_leaves: int, n_classes: int) -> float:
    # An edge is 6 numbers, of which two are long.
    return float(_PER_NUMBER * (2 * n_edges + (n_classes + 1) * n_leaves))


_IGNORE_CASE = (
    *("athena", "bigquery", "databricks", "duckdb", "hive", "mysql", "presto", "redshift", "spark", "sqlite", "trino"),
    "tsql",
)
Label = str | bool | int | float


def select_posterior(
    models: Mapping[str, GenerativeModel],
    labels: Sequence[Label],
    table: str,
    dialect: str,
    columns: Sequence[str] | None,
    pool: Pool | None = None,
    decision: Decision | None = None,
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
    pool : Pool, optional
        The weights of the models; None for one model.
    decision : Decision, optional
        The rule that predicts; default the most probable class.
    """
    model, *_ = models.values()
    known = Dialect(dialect)
    require_distinct_names(model.schema, known)
    require_dates(list(model.schema.columns), known)
    kinds = sorted({kind_of(label) for label in labels})
    if len(kinds) > 1:
        raise ValueError(f"the classes are {' and '.join(kinds)}, and a column of a database is of one type")
    used = models if pool is None else {name: models[name] for name in _used(models, pool)}
    require_affordable_length(used)
    steps = SelectSteps(known, table_of(table, known))
    kept = kept_columns(model.schema, columns)
    results: dict[str, Node] = {
        name_kept: column(steps.read(f"k{position}", known.named(name_kept))) for position, name_kept in enumerate(kept)
    }
    of_classes, refused = _scores(Posterior(tuple(models.values()), pool), steps, list(models))
    fallback = int(model.class_log_prior.argmax())
    if decision is not None:
        fallback = int(decision.choose(np.exp(model.class_log_prior)[np.newaxis])[0])
    for title, node in _posterior(steps, refused, of_classes, labels, fallback, decision):
        if title in results:
            raise ValueError(
                f"two columns of the SELECT would be named {title!r}; list in columns those of the table to hand on"
            )
        results[title] = node
    return steps.select(results)


def require_distinct_names(schema: Schema, dialect: Dialect) -> None:
    """Raise ValueError for two columns that differ in case alone, in a dialect that does not tell them apart."""
    by_name: dict[str, str] = {}
    for name in without_unused(schema.given, schema):
        if (other := by_name.setdefault(name.lower(), name)) != name and dialect.name in _IGNORE_CASE:
            raise ValueError(f"columns {other!r} and {name!r} are one name in {dialect.name}; rename one, train again")


def kept_columns(schema: Schema, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of the table that the SELECT hands on."""
    if columns is None:
        return without_unused(schema.given, schema)
    if isinstance(columns, str):
        raise TypeError(f"columns is the string {columns!r}; give a sequence of names, as [{columns!r}]")
    names = list(columns)
    repeated = [kept for kept in names if names.count(kept) > 1]
    if repeated:
        raise ValueError(f"columns holds {repeated[0]!r} twice; name each column once")
    return names


def table_of(table: str, dialect: Dialect) -> str:
    """Return a table as it stands after FROM; ValueError if it cannot stand there.

    A comment or a line break behind it would change what follows.
    """
    try:
        parsed: Any = sqlglot.parse(f"SELECT 1 FROM {table}\n", dialect=dialect.name) if isinstance(table, str) else []
    except sqlglot.errors.SqlglotError:
        parsed = []
    clauses = [key for key, value in parsed[0].args.items() if value] if len(parsed) == 1 and parsed[0] else []
    is_clause = bool(clauses) and {*clauses} <= {"expressions", "from", "from_", "joins", "laterals", "kind"}
    text = table.strip() if is_clause else ""
    outside = text.rpartition(")")[2] if text.startswith("(") else text
    if not is_clause or not outside.isprintable() or sqlglot.tokenize(table, dialect.name)[-1].comments:
        raise ValueError(
            f"table is {table!r}, which cannot stand after FROM in {dialect.name}; give a name, quoted if it is not a "
            "plain word, or a SELECT in parentheses"
        )
    return text


def _scores(posterior: Posterior, steps: SelectSteps, names: Sequence[str]) -> tuple[list[str], Node | None]:
    """Return the columns of log p(y | x) of each class, up to a constant, and the condition that a row is refused."""
    cells = TableCells(steps, CellReader(steps, posterior.schema), posterior.schema)
    terms = scores(posterior, cells, names).entries[0]
    refused = cells.xp.any(cells.xp.stack(cells.refused, axis=1), axis=1).entries[0] if cells.refused else False
    writer = Writer(steps, [*terms, refused])
    names = [steps.define(f"score{y}", writer.node(term)) for y, term in enumerate(terms)]
    conditions = [cells.reader.refused(), writer.node(refused) if isinstance(refused, Term) else None]
    conditions = [condition for condition in conditions if condition is not None]
    return names, any_of(conditions) if conditions else None


def _used(models: Mapping[str, GenerativeModel], pool: Pool) -> list[str]:
    """Return the names of the models with a weight, of whole rows or of others."""
    return [name for name, used in zip(models, pool.used.tolist(), strict=True) if used]


def _peak_and_evidence(steps: SelectSteps, scores: list[str]) -> tuple[str, str]:
    """Return the columns of the largest of some scores, and of log Σ exp of the scores less it."""
    peak = steps.define("peak", steps.dialect.largest([column(score) for score in scores]))
    pairs = [(column(score), column(peak)) for score in scores]
    return peak, steps.define("evidence", steps.dialect.log_of_sum(pairs))


# The posterior --------------------------------------------------------------------------------------------------


def _posterior(
    steps: SelectSteps,
    refused: Node | None,
    scores: list[str],
    labels: Sequence[Label],
    fallback: int,
    decision: Decision | None,
) -> Iterator[tuple[str, Node]]:
    """Yield the columns of the result: the prediction, p(y | x) and log p(y | x) of each class."""
    dialect = steps.dialect
    peak, evidence = _peak_and_evidence(steps, scores)
    impossible = exp.LTE(this=column(peak), expression=literal(POSSIBLE))
    undefined: list[Node] = [impossible.copy()]
    if refused is not None:
        flag = steps.define("refused", cases((refused, literal(1.0)), default=literal(0.0)))
        refused = exp.GT(this=column(flag), expression=literal(0.0))
        undefined.append(refused.copy())
    guard = any_of(undefined)

    log_zero = dialect.infinity("-") or literal(-np.inf)
    logs = []
    for y, score in enumerate(scores):
        ruled_out = exp.LTE(this=column(score), expression=literal(POSSIBLE))
        log_p = minus(minus(column(score), column(peak)), column(evidence))
        node = cases((guard.copy(), exp.Null()), (ruled_out, log_zero.copy()), default=log_p)
        logs.append(steps.define(f"log_p{y}", node))
    shares = []
    for log_p in logs:
        tiny = exp.LT(this=column(log_p), expression=literal(SMALLEST_EXPONENT))
        shares.append(cases((tiny, literal(0.0)), default=exp.Exp(this=column(log_p))))
    if decision is None:
        decided, chosen = list(labels), list(_largest(scores, peak))
    else:
        decided = decision.labels(labels)
        names = [steps.define(f"share{y}", share) for y, share in enumerate(shares)]
        shares = [column(name) for name in names]
        chosen = list(_decided(steps, names, decision))
    first = [] if refused is None else [(refused, exp.Null())]
    best = [(condition, dialect.cell(decided[k])) for condition, k in chosen]
    yield "prediction", cases(*first, (impossible, dialect.cell(decided[fallback])), *best)
    for label, share in zip(labels, shares, strict=True):
        yield f"p_{_text(label)}", share
    for label, log_p in zip(labels, logs, strict=True):
        yield f"log_p_{_text(label)}", column(log_p)


def _largest(names: Sequence[str], peak: str) -> Iterator[tuple[Node, int]]:
    """Yield for each of some columns whether it is the largest, and its position; the first of equal ones holds."""
    for k, name in enumerate(names):
        yield exp.EQ(this=column(name), expression=column(peak)), k


def _decided(steps: SelectSteps, shares: list[str], decision: Decision) -> Iterator[tuple[Node, int]]:
    """Yield the conditions of a decision, as `Decision.choose` has them, and the position of what is decided."""
    if decision.cost is not None:
        gains = []
        for k, of_decision in enumerate(decision.cost.T.tolist()):
            terms = [times(literal(-one), column(share)) for one, share in zip(of_decision, shares, strict=True) if one]
            gains.append(steps.define(f"gain{k}", total(terms) if terms else literal(0.0)))
        yield from _largest(gains, steps.define("gain", steps.dialect.largest([column(one) for one in gains])))
        return
    for k, threshold in decision.thresholds:
        yield exp.GTE(this=column(shares[k]), expression=literal(threshold)), k
    taken = {k for k, _ in decision.thresholds}
    left = [k for k in range(len(shares)) if k not in taken] or list(range(len(shares)))
    peak = steps.define("share", steps.dialect.largest([column(shares[k]) for k in left]))
    for condition, place in _largest([shares[k] for k in left], peak):
        yield condition, left[place]


def _text(label: Label) -> str:
    return str(label).lower() if isinstance(label, bool) else str(label)
