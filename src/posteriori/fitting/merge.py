"""Models that were fitted apart, on shards of the rows, made one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.densities import Grouped, RandomTrees, SummedTrees, ungrouped
from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.fitting.learn import checked_fit
from posteriori.fitting.named_columns import categorical_places
from posteriori.fitting.recipe import Recipe
from posteriori.fitting.update import past_statistics, reason_not_mergeable
from posteriori.learning.fit import FitResult, carry_over_structure, estimate, with_categories_of
from posteriori.model import Block
from posteriori.reading import TargetCuts
from posteriori.tables import Column, Schema, quote
from posteriori.tables.times import PARTS

_INSTEAD = "fit all rows together"
_WITHOUT_EFFECT = ("n_jobs", "random_state", "verbose")  # on what is learned without EM


def merge(values: Sequence[Fitted]) -> Fitted:
    """Return the result that a fit to the rows of all models would have; the recipe is that of the first.

    Raises
    ------
    ValueError
        A model is not a sum over its rows, or models differ in their parameters, columns or structure; the message
        names the model by its position.
    TypeError
        The models are of different classes.
    """
    for position, one in enumerate(values):
        obstacle = reason_not_mergeable(one, "merge", _INSTEAD)
        if obstacle:
            raise ValueError(f"model {position} cannot be merged: {obstacle}")
        require_alike(position, one, values[0])
    recipe = values[0].recipe
    cuts = common_cuts(values)
    schema, target = _joined_schema(recipe, values), _joined_classes(values)
    blocks = _common_blocks(recipe, values, schema, target)
    recipe.check_size(schema, target)
    statistics = functools.reduce(operator.add, (past_statistics(one, schema, target, blocks) for one in values))
    learned = FitResult(estimate(schema, blocks, recipe.prior(target), statistics), statistics)
    fitted = checked_fit(recipe, learned, target, values[0].unlabelled_weight)
    closed = all(one.classes_closed for one in values)
    return replace(fitted, classes_closed=closed).with_record(target_cuts=cuts)


def common_cuts(values: Sequence[FittedClasses]) -> TargetCuts | None:
    """Return the cuts of the target; ValueError if the values differ in them."""
    cuts = {one.record.target_cuts for one in values}
    if len(cuts) > 1:
        raise ValueError("the targets were cut into classes at different numbers; fit all models with the same classes")
    return cuts.pop()


def require_alike(position: int, one: FittedClasses, first: FittedClasses) -> None:
    """Raise an error unless a model is of the class of the first, with its parameters."""
    mine, theirs = first.recipe, one.recipe
    if mine.family is not theirs.family:
        raise TypeError(f"model {position} is a {theirs.name} and model 0 a {mine.name}; merge models of one class")
    name = theirs.difference(mine, _WITHOUT_EFFECT)
    if name is not None:
        raise ValueError(
            f"{name} is {theirs.parameters[name]!r} in model {position} and {mine.parameters[name]!r} in model 0; fit "
            "both with the same one"
        )


def _joined_schema(recipe: Recipe, values: Sequence[Fitted]) -> Schema:
    schema = values[0].schema
    for position, one in enumerate(values[1:], start=1):
        other = one.schema
        stated = categorical_places(recipe.columns.categorical_features, recipe.distributions, schema.given)
        mixed = {j for j, place in enumerate(schema.places) if place in stated}
        if schema.named != other.named:
            named = position if other.named else 0
            raise ValueError(f"model {named} has named columns, and model {position - named} has not; name them")
        if schema.names != other.names:
            raise ValueError(_difference_of_names(schema.names, other.names, position))
        if None not in (schema.target, other.target) and schema.target != other.target:
            raise ValueError(
                f"the target is {other.target!r} in model {position} and {schema.target!r} in model 0; call it the same"
            )
        for j, (mine, theirs) in enumerate(zip(schema.columns, other.columns, strict=True)):
            _require_like(f"column {mine.name!r}", mine, theirs, position, j in mixed)
        schema = schema.extended(other, mixed)
    return schema


def _joined_classes(values: Sequence[Fitted]) -> Column:
    target = values[0].target
    for position, one in enumerate(values[1:], start=1):
        _require_like("the target", target, one.target, position)
        target = target.extended(one.target)
    return target


def _require_like(what: str, mine: Column, theirs: Column, position: int, mixed: bool = False) -> None:
    """Raise an error unless a column has the same kind and cut points in both models, if both have seen values."""
    if mine.is_ignored != theirs.is_ignored:
        reading, ignoring = (0, position) if theirs.is_ignored else (position, 0)
        raise ValueError(
            f"{what} is ignored in model {ignoring}, because {theirs.reason or mine.reason}, and not in "
            f"model {reading}; leave it out of both, or name it in keep, and fit again"
        )
    alike = mine.part is theirs.part if mine.part is None or theirs.part is None else mine.part.is_read_as(theirs.part)
    if not alike:
        raise ValueError(
            f"{what} is of dates that are read in another way in model {position} than in model 0 ({_read(theirs)}, "
            f"{_read(mine)}); fit all rows together, or name parts other than days: columns=po.Columns(dates=[…])"
        )
    if mine.has_no_kind or theirs.has_no_kind:
        return
    if mine.kind != theirs.kind:
        raise ValueError(
            f"{what} is {theirs.kind} in model {position} and {mine.kind} in model 0; convert it, or name it in "
            "categorical_features, and fit again"
        )
    if mine.cuts != theirs.cuts:
        raise ValueError(
            f"{what} is cut into bins at other points in model {position} than in model 0, and rows in bins cannot be "
            "cut again; fit all with the same cut points, bins=[…]"
        )
    strange = sorted(theirs.kinds - mine.kinds)
    if strange and mine.kinds and not mixed:
        held = " and ".join(sorted(mine.kinds))
        raise ValueError(
            f"{what} holds {strange[0]} in model {position} and {held} in model 0; convert it and fit again"
        )


def _read(column: Column) -> str:
    """Return how a column of the table is read, for messages."""
    if column.part is None:
        return "as no date"
    first = np.datetime64(column.part.origin, "D")
    return f"as {column.part.type.title}" + (f" from {first} on" if column.part.name == "days" else "")


def _difference_of_names(names: Sequence[str], others: Sequence[str], position: int) -> str:
    """Return the difference between the columns of a model and those of the first, as a sentence."""
    absent = [name for name in names if name not in others]
    extra = [name for name in others if name not in names]
    fix = "fit them on the same columns"
    if any(name.rpartition(".")[2] in PARTS for name in (*absent, *extra)):
        fix += ', and of dates with the same parts: columns=po.Columns(dates=["year", "month"]), for example'
    if absent:
        return f"model {position} lacks {quote(absent)}, which model 0 has; {fix}"
    if extra:
        return f"model {position} has {quote(extra)}, which model 0 lacks; {fix}"
    return f"model {position} has the columns of model 0 in another order; bring them into one and fit again"


def _common_blocks(recipe: Recipe, values: Sequence[Fitted], schema: Schema, target: Column) -> tuple[Block, ...]:
    """Return the blocks of the merged model, with the structure that those of all models have in common."""
    common, *others = (
        with_categories_of(
            carry_over_structure(recipe.blocks(schema), one.model.blocks),
            one.schema,
            schema,
            target.places_in(one.target),
        )
        for one in values
    )
    for position, blocks in enumerate(others, start=1):
        for mine, theirs in zip(common, blocks, strict=True):
            grouped = _regrouped(mine, theirs, schema)
            if grouped:
                raise ValueError(
                    f"the categories of {quote(grouped)} are in other groups in model {position} than in model 0, and "
                    "counts over groups cannot be divided again; fit all rows together, or the first shard by fit and "
                    "the others by partial_fit, which keeps the groups"
                )
            if isinstance(mine.density, RandomTrees | SummedTrees) and mine != theirs:
                raise ValueError(
                    f"the trees of model {position} are not those of model 0, and counts of leaves are of their own "
                    "tree only; fit all rows together, or the first shard by fit and the others by partial_fit, which "
                    "keeps the trees"
                )
            if mine != theirs:
                names = _reparented(mine, theirs, schema)
                raise ValueError(
                    f"{quote(names)} {'have' if len(names) > 1 else 'has'} other parents in model {position} than in "
                    "model 0, and the counts of a column are with its own parents only; fit all rows together, or the "
                    "first shard by fit and the others by partial_fit, which keeps the parents"
                )
    return common


def _reparented(mine: Block, theirs: Block, schema: Schema) -> list[str]:
    """Return the columns that two blocks give different parents."""
    densities: list[Any] = [ungrouped(block.density) for block in (mine, theirs)]
    pairs = zip(mine.columns, *(density.parents for density in densities), strict=True)
    return [schema.columns[j].name for j, one, other in pairs if one != other]


def _regrouped(mine: Block, theirs: Block, schema: Schema) -> list[str]:
    """Return the columns whose categories two blocks put into different groups."""
    groups = [
        density.groups.of_categories
        if isinstance(density := block.density, Grouped) and density.groups is not None
        else ((),) * len(block.coded(schema))
        for block in (mine, theirs)
    ]
    pairs = zip(mine.coded(schema), *groups, strict=True)
    return [schema.columns[j].name for j, one, other in pairs if one != other]
