"""A fit of a joint model: its members, their weights by held-out conditionals, and what its numbers are."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.optimize import minimize

from posteriori.densities.label_model import LabelModel
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.label_parameters import reject_target
from posteriori.fitting.learn import collected, learned
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.rows import read_first_rows
from posteriori.fitting.update import add as add_rows
from posteriori.fitting.update import remove as remove_rows
from posteriori.joint.grids import NumberGrid
from posteriori.joint.value import FittedJoint
from posteriori.learning.backoff import smoothing_in
from posteriori.learning.equal_rows import count_rows
from posteriori.learning.fit import TrainingRows
from posteriori.model.beliefs import Tables
from posteriori.reading import read_table
from posteriori.registry import find_model
from posteriori.sources import LabelledSource
from posteriori.sources.sampled import sampled_source
from posteriori.support.checks import generator
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema

MEMBERS = ("tree", "trees")
_FEW_BINS, _MANY_BINS, _MANY_ROWS = 8, 16, 500  # of a column of numbers, by rows
_COMPONENTS = 3  # of the member of several trees
_STEPS_OF_EM = 30
_FEWEST_ROWS = 30  # from which weights are learned
_SHARE_HELD_OUT = 0.2
_ROWS_OF_TREES = 5000  # from which several trees and the weights are learned
_HIDDEN = (0.0, 0.3, 0.6)  # shares of the other cells that are unknown where a column is asked for
_PENALTY = 2.0  # rows that say that members are alike


def fit(recipe: Recipe, X: Any, sample_weight: Any = None) -> FittedJoint:
    """Return the joint model of a table."""
    table = read_table(X)
    reject_target(table, recipe.name)
    rng = generator(recipe.parameters["random_state"])
    labels = np.zeros(table.n_rows, np.int8)
    rows = read_first_rows(next(iter(_recipes(recipe, 0).values())), X, labels, sample_weight)
    rows, distinct = _distinct(rows)
    n = len(distinct)
    recipes = _recipes(recipe, n)
    first = collected(recipes["tree"], rows)
    schema = first.rows.source.schema
    few = _some_rows(rows, np.sort(distinct[rng.permutation(n)[:_ROWS_OF_TREES]]))
    tree = learned(recipes["tree"], first)
    # The strengths of its smoothing were learned from these rows, and stay when rows are added.
    tree = replace(tree, recipe=tree.recipe.with_(backoff=smoothing_in(tree.model.blocks)))
    members, weights = {"tree": tree}, {"tree": 1.0}
    if "trees" in recipes and (n >= _FEWEST_ROWS or recipe.parameters["members"] != "auto"):
        members["trees"] = _learn(recipes["trees"], few, schema)
        weights = {name: 1.0 / len(members) for name in members}
    if len(members) > 1 and few.source.table.n_rows >= _FEWEST_ROWS:
        held_out = rng.random(few.source.table.n_rows) < _SHARE_HELD_OUT
        learning, judging = (_some_rows(few, np.flatnonzero(one)) for one in (~held_out, held_out))
        without = [_learn(one, learning, schema) for one in recipes.values()]
        weights = dict(zip(members, _weights(without, judging.source.with_schema(schema), rng).tolist(), strict=True))
    kept = {name: one for name, one in members.items() if name in recipe_members(recipe)}
    if not Tables.of(members["tree"].model).columns:
        raise ValueError("no column of X has a value that a joint model reads; give it categories or numbers")
    total = sum(weights[name] for name in kept)
    shares = {name: weights[name] / total for name in kept}
    grids = _grids(members["tree"], few)
    return FittedJoint(recipe, first.rows.target, kept, shares, grids)


def _distinct(rows: TrainingRows) -> tuple[TrainingRows, Array]:
    """Return rows whose copies have weight 0, and the positions of the others of positive weight."""
    rows, _ = count_rows(replace(rows, source=rows.source.cached()), np.zeros(rows.source.table.n_rows))
    weight = rows.source.weight
    return rows, np.arange(rows.source.table.n_rows) if weight is None else np.flatnonzero(weight)


def recipe_members(recipe: Recipe) -> tuple[str, ...]:
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


def _some_rows(rows: TrainingRows, places: Array) -> TrainingRows:
    source = sampled_source(rows.source, places, np.zeros(len(places), np.int64))
    return TrainingRows(source, rows.target)


def _learn(recipe: Recipe, rows: TrainingRows, schema: Schema) -> Fitted:
    of_class = recipe.components(rows.target)
    if of_class:  # it is not known from which tree each row is
        rows = replace(rows, source=rows.source.with_label_model(LabelModel(of_class)))
    with warnings.catch_warnings():
        # The tree has warned of the rows already, and the number of steps and of trees is a choice of this module.
        warnings.simplefilter("ignore")
        return learned(recipe, collected(recipe, rows, binned=lambda source: schema))


def redrawn(value: FittedJoint, rng: np.random.Generator) -> FittedJoint:
    """Return the model with parameters as they would be of other rows: a Bayesian bootstrap, if rows are kept.

    References
    ----------
    Rubin, The Bayesian bootstrap, Annals of Statistics 9 (1981).
    """
    if value.table is None:
        return value
    weight = rng.exponential(size=read_table(value.table).n_rows)
    return fit(value.recipe, value.table, weight)


def add(value: FittedJoint, X: Any, sample_weight: Any = None) -> FittedJoint:
    """Return the joint model of its rows and of further ones; weights and cut points stay."""
    _require_sums(value, "partial_fit")
    return _updated(value, {name: add_rows(one, X, _labels(X), sample_weight) for name, one in value.members.items()})


def remove(value: FittedJoint, X: Any, sample_weight: Any = None) -> FittedJoint:
    """Return the joint model without some of its rows."""
    _require_sums(value, "unlearn")
    members = {name: remove_rows(one, X, _labels(X), sample_weight) for name, one in value.members.items()}
    return _updated(value, members)


def _require_sums(value: FittedJoint, method: str) -> None:
    if "trees" in value.members:
        raise ValueError(
            f'the member "trees" is learned by EM, which takes all rows at once, and {method} sees sums; fit with '
            'members=["tree"]'
        )


def _updated(value: FittedJoint, members: Mapping[str, Fitted]) -> FittedJoint:
    return replace(value, members=members, pools={}, table=None, record=value.record.of_other_model())


def _recipes(recipe: Recipe, n_rows: int) -> dict[str, Recipe]:
    """Return the recipes of the members: trees of tables, as classifiers of a single class."""
    asked, spec = recipe.parameters, find_model("tan")
    bins = asked["bins"] if asked["bins"] != "auto" else _FEW_BINS if n_rows < _MANY_ROWS else _MANY_BINS
    options = {"bins": bins, "penalty": "aic", "columns": asked["columns"], "n_jobs": asked["n_jobs"]}
    found = {"tree": Recipe.of(spec.make(**options, backoff="learned"))}
    if "trees" in recipe_members(recipe):
        of_em = {"em__components_per_class": _COMPONENTS, "em__max_iter": _STEPS_OF_EM}
        found["trees"] = Recipe.of(spec.make(**options, random_state=asked["random_state"]).set_params(**of_em))
    return found


def _labels(X: Any) -> Array:
    return np.zeros(read_table(X).n_rows, np.int8)


def _weights(members: Sequence[Fitted], source: LabelledSource, rng: np.random.Generator) -> Array:
    r"""Return the weights that predict single columns of held-out rows best, given random parts of the others.

    .. math:: \max_w \sum_i \log \frac{\sum_m w_m p_m(x_{it}, x_{iO})}{\sum_m w_m p_m(x_{iO})}
    """
    tables = [Tables.of(one.model) for one in members]
    seed, n_columns = int(rng.integers(2**31)), len(tables[0].columns)

    def of_batch(batch: Batch) -> Array:
        n, own = len(batch), np.random.default_rng([seed, batch.start])
        hidden = own.random((n, n_columns)) < own.choice(_HIDDEN, n)[:, np.newaxis]
        target = own.integers(0, n_columns, n)
        found = np.empty((n, 2 * len(tables)))
        for m, one in enumerate(tables):
            places, likelihoods = np.argsort(np.argsort(one.columns)), one.likelihoods(batch)
            for without in (False, True):  # the target
                known = []
                for place, likelihood in zip(places, likelihoods, strict=True):  # the same cells in each member
                    unknown = np.where(target == place, without, hidden[:, place])
                    known.append(np.where(unknown[:, np.newaxis], 1.0, likelihood))
                found[:, 2 * m + without] = one.beliefs(known).log_evidence
        return found

    scores = source.with_width(2 * len(tables)).map(of_batch)
    joint, known = scores[:, ::2], scores[:, 1::2]
    weight = np.ones(len(scores)) if source.weight is None else source.weight

    def loss(free: Array) -> tuple[float, Array]:
        log_w = free - np.logaddexp.reduce(free)
        each = [one + log_w for one in (joint, known)]
        totals = [np.logaddexp.reduce(one, axis=1) for one in each]
        shares = [np.exp(one - total[:, np.newaxis]) for one, total in zip(each, totals, strict=True)]
        value = -float(weight @ (totals[0] - totals[1])) + _PENALTY * float(free @ free)
        return value, -(weight @ (shares[0] - shares[1])) + 2.0 * _PENALTY * free

    free = minimize(loss, np.zeros(len(tables)), jac=True, method="L-BFGS-B").x
    return np.asarray(np.exp(free - np.logaddexp.reduce(free)))


def _grids(fitted: Fitted, rows: TrainingRows) -> dict[str, NumberGrid]:
    """Return the numbers of the bins of each column, by sampled rows."""
    schema, source = fitted.schema, rows.source
    cells = np.concatenate(list(source.stream(lambda batch: batch.numbers.values, "reading")))
    weight = np.ones(len(cells)) if source.weight is None else source.weight
    found = {}
    for k, j in enumerate(schema.of_kind("continuous")):
        column = schema.columns[j]
        if column.is_binned and not column.valueless:
            known = ~np.isnan(cells[:, k]) & (weight > 0)
            values = np.asarray(cells[known, k], np.float64)
            found[column.name] = NumberGrid.of(values, weight[known], column.cuts or ())
    return found
