"""A fit of a joint model: its columns, its rows in codes, its members, and their weights by held-out conditionals."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from posteriori.fitting.fitted import Fitted
from posteriori.fitting.label_parameters import reject_target
from posteriori.fitting.learn import collected, learned
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import read_first_rows, read_further_rows
from posteriori.fitting.update import add as add_rows
from posteriori.fitting.update import remove as remove_rows
from posteriori.joint.grids import NumberGrid, tail_cuts
from posteriori.joint.trees import TreeLearner, TreeRows
from posteriori.joint.value import FLOOR, FittedJoint
from posteriori.learning.cut_points import binned_schema
from posteriori.learning.equal_rows import count_rows
from posteriori.model.beliefs import Tables, likelihood_of_codes
from posteriori.reading import read_table
from posteriori.registry import find_model
from posteriori.sources import LabelledSource
from posteriori.sources.sampled import sampled_source
from posteriori.statistics.forests import CodedRows
from posteriori.support.checks import generator
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

MEMBERS = ("tree", "trees")
_COMPONENTS = 6  # of the member of several trees
_BINS = ((500, 64), (250, 24), (0, 16))  # of a column of numbers, from so many rows on
_ROWS = {"tree": 50_000, "trees": 5000}  # that a member learns from
_FEWEST_ROWS = 30  # from which weights are learned
_SHARE_HELD_OUT = 0.2
_HIDDEN = (0.0, 0.3, 0.6)  # shares of the other cells that are unknown where a column is asked for
_PENALTY = 2.0  # rows that say that members are alike
_FEWEST_IN_TAIL = 8.0  # rows of the outermost bin
_SAMPLED = 50_000  # rows that show the numbers of a column


def fit(recipe: Recipe, X: Any, sample_weight: Any = None) -> FittedJoint:
    """Return the joint model of a table."""
    table = read_table(X)
    reject_target(table, recipe.name)
    members_of(recipe)
    rows = read_first_rows(_recipe_of_columns(recipe, 0), X, np.zeros(table.n_rows, np.int8), sample_weight)
    rows = replace(rows, source=rows.source.cached())
    rows, _ = count_rows(rows, np.zeros(rows.source.table.n_rows))
    weight = rows.source.weight
    of_columns = _recipe_of_columns(recipe, table.n_rows if weight is None else int(np.count_nonzero(weight)))
    first = collected(of_columns, rows, binned=partial(_binned, of_columns))
    columns = learned(of_columns, first)
    grids = _grids(columns.schema, first.rows.source)
    value = FittedJoint(recipe, first.rows.target, columns=columns, grids=grids, members={}, weights={})
    if not value.positions:
        raise ValueError("no column of X has a value that a joint model reads; give it categories or numbers")
    return learned_from(replace(value, counted=value.counter.of_source(first.rows.source)))


def _binned(recipe: Recipe, source: LabelledSource) -> Schema:
    """Return the schema with cut points: bins of equal weight, of which the outermost are cut again and again."""
    bins = recipe.parameters["bins"]
    schema = binned_schema(source, dict.fromkeys(source.schema.of_kind("continuous"), bins), recipe.n_jobs)
    columns = list(schema.columns)
    for j, (values, weight) in _samples(source).items():
        cuts = columns[j].cuts
        if cuts and len(values):
            ends = tail_cuts(values, weight, bins, _FEWEST_IN_TAIL)
            further = [one for one in ends.tolist() if not cuts[0] <= one <= cuts[-1] and one > values.min()]
            columns[j] = replace(columns[j], cuts=tuple(sorted({*cuts, *further})))
    return replace(schema, columns=tuple(columns))


def learned_from(value: FittedJoint) -> FittedJoint:
    """Return the model with members of its counted rows, and their weights."""
    recipe, counted = value.recipe, value.counted
    assert counted is not None
    names, seed = members_of(recipe), recipe.parameters["random_state"]
    rows = TreeRows.of(value.binned(counted), value.ordered, value.rank, value.positions)
    kept = {name: rows.take(_spread(len(rows.codes), _ROWS[name])) for name in names}
    learner = TreeLearner.of(rows.take(_spread(len(rows.codes), _ROWS["tree"])))
    members = _learned(learner, kept, seed)
    weights = {name: 1.0 / len(members) for name in members}
    few = kept[names[-1]]
    if len(members) > 1 and len(few.codes) >= _FEWEST_ROWS:
        judged = few.fold == 0
        learning = few.take(np.flatnonzero(~judged))
        # Edges and smoothing stay those of all rows: the members share them, and the weights compare the members.
        without = _learned(learner.on(learning), dict.fromkeys(names, learning), seed)
        floored = [one.with_floor(FLOOR) for one in without.values()]  # held-out rows may hold cells that contradict
        found = _weights(floored, few.take(np.flatnonzero(judged)), generator(seed))
        weights = dict(zip(members, found.tolist(), strict=True))
    return replace(value, members=members, weights=weights)


def _spread(n: int, most: int) -> Array:
    """Return at most so many of n places, evenly spread: equal rows follow each other."""
    return np.arange(min(n, most)) * n // max(min(n, most), 1)


def _learned(learner: TreeLearner, rows: Mapping[str, TreeRows], seed: Any) -> dict[str, Tables]:
    """Return the members that have rows."""
    tree = learner.on(rows["tree"]).learn(1, generator(seed)) if "tree" in rows else learner.learn(1, generator(seed))
    found = {"tree": tree}
    if "trees" in rows:
        found["trees"] = learner.on(rows["trees"]).learn(_COMPONENTS, generator(seed), tree)
    return {name: one for name, one in found.items() if name in rows}


def members_of(recipe: Recipe) -> tuple[str, ...]:
    """Return the names of the members that a recipe asks for.

    Raises
    ------
    ValueError
        There is no such member, or none is named.
    """
    asked = recipe.parameters["members"]
    if isinstance(asked, str):
        return MEMBERS
    unknown = [one for one in asked if one not in MEMBERS]
    if unknown or not asked:
        named = f"{unknown[0]!r} is no member" if unknown else "members is empty"
        raise ValueError(f"{named} of a joint model; they are {', '.join(map(repr, MEMBERS))}")
    return tuple(asked)


def redrawn(value: FittedJoint, rng: np.random.Generator) -> FittedJoint:
    """Return the model with parameters as they would be of other rows: a Bayesian bootstrap, if rows are counted.

    References
    ----------
    Rubin, The Bayesian bootstrap, Annals of Statistics 9 (1981).
    """
    if value.counted is None:
        return value
    counted = value.counted
    drawn = replace(counted, weight=counted.weight * rng.exponential(size=len(counted.weight)))
    return learned_from(value.spread_by(drawn))


def add(value: FittedJoint, X: Any, sample_weight: Any = None) -> FittedJoint:
    """Return the joint model of its rows and of further ones; cut points stay."""
    _require_counted(value, "partial_fit")
    columns = add_rows(value.columns, X, _labels(X), sample_weight)
    updated = _updated(value, columns, _further(columns, X, sample_weight))
    more = updated.counter.of_source(_further(updated.columns, X, sample_weight))
    assert updated.counted is not None
    return learned_from(updated.spread_by(updated.counted + more))


def remove(value: FittedJoint, X: Any, sample_weight: Any = None) -> FittedJoint:
    """Return the joint model without some of its rows."""
    counted = _require_counted(value, "unlearn")
    columns = remove_rows(value.columns, X, _labels(X), sample_weight)
    gone = value.counter.of_source(_further(value.columns, X, sample_weight))  # before a column loses its last value
    rest = replace(value, counted=without(counted, gone))
    updated = _updated(rest, columns, _further(columns, X, sample_weight))
    assert updated.counted is not None
    return learned_from(updated.spread_by(updated.counted))


def _further(columns: Fitted, X: Any, sample_weight: Any) -> LabelledSource:
    return read_further_rows(columns, X, _labels(X), sample_weight, complete=False).source.with_schema(columns.schema)


def without(counted: CodedRows, gone: CodedRows) -> CodedRows:
    """Return counted rows less others.

    Raises
    ------
    ValueError
        One of the others is not among them.
    """
    reached = counted.hashes.max(initial=0)  # beyond it, rows are no part of the sample
    gone = gone if counted.is_complete else gone.take(np.flatnonzero(gone.hashes <= reached))
    hashes, place = np.unique(counted.hashes, return_inverse=True)
    found = np.searchsorted(hashes, gone.hashes)
    known = (found < len(hashes)) & (hashes[np.minimum(found, len(hashes) - 1)] == gone.hashes)
    left = np.bincount(found[known], gone.weight[known], len(hashes))
    scale = 1e-9 * max(float(counted.weight.max(initial=0.0)), 1.0)
    if not known.all() or (left > np.bincount(place, counted.weight, len(hashes)) + scale).any():
        raise ValueError("a row is not among those that the model learned from; give rows, and weights, that it has")
    order = np.argsort(place, kind="stable")  # equal rows are taken one after the other
    weight = counted.weight[order]
    upto = np.cumsum(weight)
    before = np.concatenate([[0.0], upto])[np.searchsorted(place[order], place[order])]
    rest = counted.take(order)
    weight = np.clip(upto - before - left[place[order]], 0.0, weight)
    kept = np.flatnonzero(weight > scale)
    return replace(rest.take(kept), weight=weight[kept], n_rows=counted.n_rows - gone.n_rows)


def _require_counted(value: FittedJoint, method: str) -> CodedRows:
    if value.counted is None:
        raise ValueError(
            f"the model was saved without rows, and {method} learns again from all of them; fit all rows together"
        )
    return value.counted


def _updated(value: FittedJoint, columns: Fitted, source: LabelledSource) -> FittedJoint:
    """Return the model with updated columns; counted rows are in the codes of the new schema."""
    new = {name: one for name, one in _grids(columns.schema, source).items() if name not in value.grids}
    updated = replace(
        value,
        columns=columns,
        grids={**value.grids, **new},
        pools={},
        table=None,
        record=value.record.of_other_model(),
    )
    assert value.counted is not None
    return replace(updated, counted=_recoded(value, updated, value.counted))


def _recoded(before: FittedJoint, after: FittedJoint, counted: CodedRows) -> CodedRows:
    """Return counted rows in the codes of another schema, which may have more categories, and more columns."""
    names, columns = [before.schema.names[j] for j in before.positions], after.counter
    codes = np.zeros((len(counted.codes), len(after.positions)), np.int64)
    for place, j in enumerate(after.positions):
        name = after.schema.names[j]
        if name not in names:
            continue
        cells = counted.codes[:, names.index(name)].astype(np.int64)
        if name not in after.grids:
            known, now = before.schema.columns[before.schema.names.index(name)], after.schema.columns[j]
            moved = [0, *(1 + now.categories.index(one) for one in known.categories)]
            cells = np.array(moved, np.int64)[cells]
        codes[:, place] = cells
    found = columns.of_codes(codes, counted.weight)
    return replace(found, n_rows=counted.n_rows)


def _labels(X: Any) -> Array:
    return np.zeros(read_table(X).n_rows, np.int8)


def _recipe_of_columns(recipe: Recipe, n_rows: int) -> Recipe:
    """Return the recipe of the columns by themselves, as a classifier of a single class."""
    asked = recipe.parameters
    usual = next(bins for fewest, bins in _BINS if n_rows >= fewest)
    bins = asked["bins"] if asked["bins"] != "auto" else usual
    options = {"distributions": "binned", "bins": bins, "columns": asked["columns"], "n_jobs": asked["n_jobs"]}
    return Recipe.of(find_model("nb").make(**options))


def _weights(members: Sequence[Tables], rows: TreeRows, rng: np.random.Generator) -> Array:
    r"""Return the weights that predict single columns of held-out rows best, given random parts of the others.

    .. math:: \max_w \sum_i \log \frac{\sum_m w_m p_m(x_{it}, x_{iO})}{\sum_m w_m p_m(x_{iO})}
    """
    n, d = rows.codes.shape
    hidden = rng.random((n, d)) < np.asarray(rng.choice(_HIDDEN, n))[:, np.newaxis]
    target = np.arange(d) == np.asarray(rng.integers(0, d, n))[:, np.newaxis]
    each = []
    for is_unknown in (hidden & ~target, hidden | target):
        codes = np.where(is_unknown, 0, rows.codes)
        each.append(np.column_stack([_log_evidence(one, rows, codes) for one in members]))

    from scipy.optimize import minimize  # imported here, because few fits need it

    def loss(free: Array) -> tuple[float, Array]:
        log_w = free - np.logaddexp.reduce(free)
        totals = [np.logaddexp.reduce(one + log_w, axis=1) for one in each]
        shares = [np.exp(one + log_w - total[:, np.newaxis]) for one, total in zip(each, totals, strict=True)]
        value = -float(rows.weight @ (totals[0] - totals[1])) + _PENALTY * float(free @ free)
        return value, -(rows.weight @ (shares[0] - shares[1])) + 2.0 * _PENALTY * free

    free = minimize(loss, np.zeros(len(members)), jac=True, method="L-BFGS-B").x
    return np.asarray(np.exp(free - np.logaddexp.reduce(free)))


def _log_evidence(tables: Tables, rows: TreeRows, codes: Array) -> Array:
    """Return log p(known cells) of rows in nats, (n,)."""
    place = {position: j for j, position in enumerate(rows.positions)}
    columns = [place[position] for position in tables.columns]
    found, size = [], tables.rows_per_block()
    for start in range(0, len(codes), size):
        part = codes[start : start + size]
        found.append(tables.beliefs([likelihood_of_codes(part[:, j], rows.sizes[j]) for j in columns]).log_evidence)
    return np.concatenate(found)


def _grids(schema: Schema, source: LabelledSource) -> dict[str, NumberGrid]:
    """Return the numbers of the bins of each column, by sampled rows."""
    columns = {j: column for j, column in enumerate(schema.columns) if column.is_binned and not column.valueless}
    found = _samples(source)
    return {one.name: NumberGrid.of(*found[j], one.cuts or ()) for j, one in columns.items()}


def _samples(source: LabelledSource) -> dict[int, tuple[Array, Array]]:
    """Return the numbers of each column in sampled rows, and their weights, by the position of the column."""
    n = source.table.n_rows
    places = np.sort(generator(0).permutation(n)[:_SAMPLED])
    source = sampled_source(source, places, np.zeros(len(places), np.int64)) if n > _SAMPLED else source
    cells, weight = (np.concatenate(each) for each in zip(*source.stream(_numbers, "reading"), strict=True))
    found = {}
    for k, j in enumerate(source.schema.of_kind("continuous")):
        known = ~np.isnan(cells[:, k]) & (weight > 0)
        found[j] = np.asarray(cells[known, k], np.float64), weight[known]
    return found


def _numbers(batch: Batch) -> tuple[Array, Array]:
    return batch.numbers.values, np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
