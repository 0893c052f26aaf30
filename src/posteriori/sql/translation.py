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
    MultivariateGaussianParameters,
    RandomTreesParameters,
    SmoothedFamilies,
    SummedTreesParameters,
    TreeParameters,
)
from posteriori.model import GenerativeModel, KnownCells, Pool
from posteriori.model.pool import FLOOR, HALF_DISAGREEMENT, MEAN_SHARE
from posteriori.model_cost import Language, TableSummary, require_affordable_export
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
    over,
    plus,
    real,
    times,
    total,
)
from posteriori.sql.factors import Factor, FactorContext
from posteriori.sql.steps import CellReader, SelectSteps
from posteriori.sql.writers import writer_of
from posteriori.statistics import ColumnRanges
from posteriori.support.typing import Array
from posteriori.tables.schema import Column, Schema, kind_of

MOST_CHARACTERS = 20_000_000  # DuckDB reads 7 million in a second, and 0.5 GB; some databases read one million only
_PER_PARAMETER = 60  # characters of a parameter in an expression
_PER_PARAMETER_OF = {
    AveragedParameters: 30,
    CompoundParameters: 2000,  # the logarithm of a rising factorial
    FullJointParameters: 33,
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
        _scores(model, steps, CellReader(steps, model.schema), "it")
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


Label = str | bool | int | float
_ROUNDING = 1e-12  # of a share of known cells


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
    (name, model), *_ = models.items()
    known = Dialect(dialect)
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
    cells = CellReader(steps, model.schema)
    nodes = _scores(model, steps, cells, name) if pool is None else _pooled_scores(models, pool, steps, cells)
    scores = [steps.define(f"score{y}", node) for y, node in enumerate(nodes)]
    fallback = int(model.class_log_prior.argmax())
    if decision is not None:
        fallback = int(decision.choose(np.exp(model.class_log_prior)[np.newaxis])[0])
    for title, node in _posterior(steps, cells, scores, labels, fallback, decision):
        if title in results:
            raise ValueError(
                f"two columns of the SELECT would be named {title!r}; list in columns those of the table to hand on"
            )
        results[title] = node
    return steps.select(results)


def kept_columns(schema: Schema, columns: Sequence[str] | None) -> list[str]:
    """Return the columns of the table that the SELECT hands on."""
    if columns is None:
        return list(schema.given)
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


# Scores ---------------------------------------------------------------------------------------------------------


def _scores(model: GenerativeModel, steps: SelectSteps, cells: CellReader, name: str) -> list[Node]:
    """Return log p(x, y) of each class, up to a constant that all classes share."""
    terms = [[real(node)] for node in _starts(model, steps, cells)]
    for z, j, node in _factors(model, steps, cells, name):
        weight = 1.0 if model.weights is None else float(model.weights.weight[j])
        if weight > 0:
            terms[z].append(node if weight == 1.0 else times(literal(weight), node))
    sums = [total(parts) for parts in terms]
    if not model.of_class:
        return sums
    names = [steps.define(f"component{z}", node) for z, node in enumerate(sums)]
    of_class = np.array(model.of_class)
    return [_log_sum(steps, y, [names[z] for z in np.flatnonzero(of_class == y)]) for y in range(model.n_classes)]


def _starts(model: GenerativeModel, steps: SelectSteps, cells: CellReader) -> list[Node]:
    """Return the constant term of the score of each component: with factor weights it depends on the known cells."""
    if model.weights is None:
        return [literal(log_p) for log_p in model.log_prior.tolist()]
    of_whole = np.where(np.isneginf(model.log_prior), -np.inf, model.weights.bias).tolist()
    uncertain = np.flatnonzero(model.sharing & ~model.evident).tolist()
    if model.offset is None or not uncertain:
        return [literal(bias) for bias in of_whole]
    n_columns = int(model.sharing.sum())
    n_evident = float(n_columns - len(uncertain))
    terms = [literal(n_evident)] if n_evident else []
    known = steps.define("n_known", total([*terms, *(_is_known(j, steps, cells) for j in uncertain)]))
    is_whole = exp.GTE(this=column(known), expression=literal(n_columns - 0.5))
    return [
        literal(bias)
        if bias in (-np.inf, log_p)
        else cases((is_whole.copy(), literal(bias)), default=plus(literal(log_p), times(literal(part), column(known))))
        for bias, log_p, part in zip(of_whole, model.log_prior.tolist(), model.part_of_offset.tolist(), strict=True)
    ]


def _is_known(j: int, steps: SelectSteps, cells: CellReader) -> Node:
    """Return the column that is 1 where a cell of column j of the schema is known, and 0 where it is not."""
    cell = cells.code(j) if cells.column(j).kind == "categorical" else cells.number(j)
    absent = exp.Is(this=column(cell), expression=exp.Null())
    return column(steps.define(f"known{j}", cases((absent, literal(0.0)), default=literal(1.0))))


def _pooled_scores(
    models: Mapping[str, GenerativeModel], pool: Pool, steps: SelectSteps, cells: CellReader
) -> list[Node]:
    """Return bias_y + Σ_m weight_m·log p_m(y | x) of each class, where log p_m is clipped as in the pool.

    Both depend on how much of the row is known, if the pool has weights for partial rows.
    """
    partial = pool.fading
    parts = None if partial is None else _parts(partial.cells, steps, cells)

    def mean(of_whole: float, *of_others: float) -> Node:
        """Return the mean over the pools of whole rows, of partial rows and of nothing, by their parts."""
        if parts is None:
            return literal(of_whole)
        of_partial, of_nothing = of_others
        moves = zip(parts, (of_whole - of_partial, of_nothing - of_partial), strict=True)
        return total([literal(of_partial), *(times(literal(by), column(part)) for part, by in moves if by)])

    others = [] if partial is None else [(partial.weight, partial.bias), (partial.nothing_weight, partial.nothing_bias)]
    each_weight, each_bias = (
        [array.tolist() for array in of] for of in zip((pool.weight, pool.bias), *others, strict=True)
    )
    terms = [[real(mean(*biases))] for biases in zip(*each_bias, strict=True)]
    used, beyond = _used(models, pool), pool.extrapolation
    outside = None if beyond is None else _is_outside(beyond.ranges, steps, cells)
    members: list[tuple[Node, list[Node]]] = []  # weight and log p(y | x) of those in the mean
    for m, ((name, model), weights) in enumerate(zip(models.items(), zip(*each_weight, strict=True), strict=True)):
        if name not in used:
            continue
        own = steps.scope(f"m{m}_")
        nodes = _scores(model, own, cells.of_member(own, model.schema), name)
        scores = [own.define(f"score{y}", node) for y, node in enumerate(nodes)]
        log_p = _clipped_log_posterior(own, scores)
        if outside is not None:
            log_p = [column(own.define(f"log_p{y}", node)) for y, node in enumerate(log_p)]
            if beyond is not None and beyond.in_mean[m]:
                members.append((column(own.define("weight", real(mean(*weights)))), log_p))
        for of_class, node in zip(terms, log_p, strict=True):
            of_class.append(times(mean(*weights), node.copy()))
    product = [total(parts) for parts in terms]
    if beyond is None or outside is None:
        return product
    return _extrapolated(product, members, beyond.log_ratio.tolist(), outside, steps)


def _clipped_log_posterior(steps: SelectSteps, scores: list[str]) -> list[Node]:
    """Return log p(y | x) of a member from its scores, uniform where no class is possible, and none below the floor."""
    peak, evidence = _peak_and_evidence(steps, "", scores)
    impossible = exp.LTE(this=column(peak), expression=literal(POSSIBLE))
    uniform = impossible, literal(-np.log(len(scores)))
    logs = [minus(minus(column(score), column(peak)), column(evidence)) for score in scores]
    return [cases(uniform, default=steps.dialect.largest([log, literal(FLOOR)])) for log in logs]


def _peak_and_evidence(steps: SelectSteps, name: str, scores: list[str]) -> tuple[str, str]:
    """Return the columns of the largest of some scores, and of log Σ exp of the scores less it."""
    peak = steps.define(f"{name}peak", steps.dialect.largest([column(score) for score in scores]))
    pairs = [(column(score), column(peak)) for score in scores]
    return peak, steps.define(f"{name}evidence", steps.dialect.log_of_sum(pairs))


def _is_outside(ranges: ColumnRanges, steps: SelectSteps, cells: CellReader) -> Node | None:
    """Return whether a number of the row lies outside of the ranges, or a category is unseen; None if no column can."""
    lowest, highest = ranges.lowest - ranges.room, ranges.highest + ranges.room
    tests: list[Node] = []
    for j, has_numbers in enumerate(ranges.has_numbers.tolist()):
        if cells.column(j).categories:
            tests.append(cells.is_unseen(j))
        if not has_numbers:
            continue
        cell = cells.number(j)
        tests.append(exp.LT(this=column(cell), expression=literal(lowest[j])))
        tests.append(exp.GT(this=column(cell), expression=literal(highest[j])))
    if not tests:
        return None
    flag = steps.define("outside", cases((any_of(tests), literal(1.0)), default=literal(0.0)))
    return exp.GT(this=column(flag), expression=literal(0.0))


def _extrapolated(
    product: list[Node],
    members: Sequence[tuple[Node, list[Node]]],
    log_ratio: Sequence[float],
    outside: Node,
    steps: SelectSteps,
) -> list[Node]:
    """Return the scores of the product of the members, and of its mixture with their mean outside (`Extrapolation`)."""

    def step(name: str, node: Node) -> Node:
        return column(steps.define(name, node))

    names, classes = [steps.define(f"product{y}", node) for y, node in enumerate(product)], range(len(product))
    peak, evidence = map(column, _peak_and_evidence(steps, "product_", names))
    logs = [step(f"log_product{y}", minus(minus(column(names[y]), peak.copy()), evidence.copy())) for y in classes]
    whole = step("weight_in_mean", total([weight.copy() for weight, _ in members]))
    weighs = exp.GT(this=whole.copy(), expression=literal(0.0))
    shares = [
        cases((weighs.copy(), over(weight, whole.copy())), default=literal(1 / len(members))) for weight, _ in members
    ]
    shares = [step(f"mean_share{m}", share) for m, share in enumerate(shares)]
    each = list(zip(shares, [of for _, of in members], strict=True))
    sums = [total([times(share.copy(), exp.Exp(this=of[y].copy())) for share, of in each]) for y in classes]
    moved = [step(f"mean_score{y}", times(literal(np.exp(log_ratio[y])), sums[y])) for y in classes]
    scale = step("mean_scale", total([node.copy() for node in moved]))
    means = [step(f"mean{y}", over(moved[y].copy(), scale.copy())) for y in classes]
    log_means = [step(f"log_mean{y}", exp.Ln(this=means[y].copy())) for y in classes]
    against = [times(means[y].copy(), minus(log_means[y].copy(), logs[y].copy())) for y in classes]
    nats = step("contradiction", steps.dialect.largest([total(against), literal(0.0)]))
    squared = step("contradiction_squared", times(nats.copy(), nats.copy()))
    fourth = step("contradiction_fourth", times(squared.copy(), squared.copy()))
    high = over(fourth.copy(), plus(fourth.copy(), literal(HALF_DISAGREEMENT**4)))
    of_mean = step("part_of_mean", plus(literal(MEAN_SHARE), times(literal(1.0 - MEAN_SHARE), high)))
    rest = steps.dialect.largest([minus(literal(1.0), of_mean.copy()), literal(np.exp(FLOOR))])
    parts = step("log_rest", exp.Ln(this=rest)), step("log_part", exp.Ln(this=of_mean.copy()))
    found = []
    for y in classes:
        terms = [plus(part.copy(), log.copy()) for part, log in zip(parts, (logs[y], log_means[y]), strict=True)]
        mixed = _log_sum(steps, f"_mixed{y}", [steps.define(f"mixed{k}_{y}", term) for k, term in enumerate(terms)])
        found.append(cases((outside.copy(), mixed), default=column(names[y])))
    return found


def _used(models: Mapping[str, GenerativeModel], pool: Pool) -> list[str]:
    """Return the names of the models with a weight, of whole rows or of others."""
    return [name for name, used in zip(models, pool.used.tolist(), strict=True) if used]


def _parts(known: KnownCells, steps: SelectSteps, cells: CellReader) -> tuple[str, str]:
    """Return the columns of the parts of the pools of whole rows and of nothing, as `KnownCells.parts` does."""
    shown = {j: _is_known(j, steps, cells) for j in np.flatnonzero(known.weight).tolist()}
    by_weight = _known_share("known_share", known.patterns, known.weight, known.typical, steps, shown)
    by_number = _known_share("known_number", known.patterns, known.counted, known.typical_number, steps, shown)
    fewer = exp.LT(this=column(by_number), expression=column(by_weight))
    least = steps.define("least_known", cases((fewer, column(by_number)), default=column(by_weight)))
    unknown = column(steps.define("unknown_share", minus(literal(1.0), column(least))))
    blank = steps.define("blank_part", times(unknown.copy(), times(unknown.copy(), unknown.copy())))
    power = exp.Exp(this=times(literal(known.power), exp.Ln(this=column(by_weight))))
    none = exp.LTE(this=column(by_weight), expression=literal(0.0))
    lost = column(steps.define("lost_part", cases((none, literal(1.0)), default=minus(literal(1.0), power))))
    of_whole = minus(literal(1.0), times(lost.copy(), lost.copy()))
    return steps.define("whole_part", times(minus(literal(1.0), column(blank)), of_whole)), blank


def _known_share(
    name: str, patterns: Array, weight: Array, typical: float, steps: SelectSteps, shown: Mapping[int, Node]
) -> str:
    """Return the column of the known share of a row, as `KnownCells.shares` does, exactly 1 where all is known."""

    def of_known(columns: Array, size: float) -> Node:
        return times(total([times(literal(weight[j]), shown[j].copy()) for j in columns.tolist()]), literal(1.0 / size))

    counted = weight > 0
    shares = [of_known(np.flatnonzero(counted), typical)]
    shares += [of_known(np.flatnonzero(one & counted), float(weight[one].sum())) for one in patterns]
    share = column(steps.define(f"{name}_sum", steps.dialect.largest(shares)))
    all_of_them = exp.GTE(this=share.copy(), expression=literal(1.0 - _ROUNDING))
    return steps.define(name, cases((all_of_them, literal(1.0)), default=share))


def _log_sum(steps: SelectSteps, y: int | str, names: list[str]) -> Node:
    """Return log Σ exp of some columns, whose largest is subtracted before the exponentials."""
    if len(names) == 1:
        return column(names[0])
    peak = steps.define(f"peak{y}", steps.dialect.largest([column(term) for term in names]))
    return plus(column(peak), steps.dialect.log_of_sum([(column(term), column(peak)) for term in names]))


def _factors(model: GenerativeModel, steps: SelectSteps, cells: CellReader, name: str) -> Iterator[Factor]:
    """Yield the log factors of all blocks that depend on the component."""
    for block, parameters in zip(model.blocks, model.posterior_parameters, strict=True):
        if block.shared:
            continue
        context = FactorContext(steps, cells, name, model.weights is not None, block.exposure_in(model.schema))
        yield from writer_of(block.density, name)(context, block.columns, parameters)


# The posterior --------------------------------------------------------------------------------------------------


def _posterior(
    steps: SelectSteps,
    cells: CellReader,
    scores: list[str],
    labels: Sequence[Label],
    fallback: int,
    decision: Decision | None,
) -> Iterator[tuple[str, Node]]:
    """Yield the columns of the result: the prediction, p(y | x) and log p(y | x) of each class."""
    dialect = steps.dialect
    peak, evidence = _peak_and_evidence(steps, "", scores)
    impossible = exp.LTE(this=column(peak), expression=literal(POSSIBLE))
    undefined: list[Node] = [impossible.copy()]
    refused = cells.refused()
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
