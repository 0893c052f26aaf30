"""Models fitted apart, on shards of the rows, made one."""

from __future__ import annotations

import functools
import operator
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.generative_classifier import GenerativeClassifier
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.mixture import MixtureModel
from posteriori.classifiers.pool_updates import merge_pools
from posteriori.classifiers.trees import ChowLiuTree
from posteriori.densities import Grouped, RandomTrees, ungrouped
from posteriori.fitting.fitted import Fitted, record_of, set_record
from posteriori.fitting.learn import checked_fit, past_statistics
from posteriori.fitting.named_columns import categorical_places
from posteriori.fitting.recipe import ModelRequest
from posteriori.fitting.update import reason_not_mergeable
from posteriori.learning.fit import FitResult, carry_over_structure, estimate, with_categories_of
from posteriori.model import Block
from posteriori.tables import Column, Schema, quote
from posteriori.tables.times import PARTS

_INSTEAD = "fit all rows together"
_WITHOUT_EFFECT = ("n_jobs", "random_state", "verbose")  # on what is learned without EM


def merge(models: Iterable[Any]) -> Any:
    """Combine models that were fitted separately into the model that a fit of all their rows would give.

    If rows must not leave the place where they are stored, as in hospitals, sums still may: each place fits a model to
    its own rows and shares only the model. Learning adds up statistics, so the result loses nothing.

    Parameters
    ----------
    models : iterable of fitted estimators
        Of one estimator class and with the same parameters (except `n_jobs`, `random_state` and `verbose`), fitted by
        `fit` or `partial_fit`, or loaded. Their columns have the same names, order and kinds; categories and classes
        may differ. The order of the models makes no difference beyond rounding.

    Returns
    -------
    estimator
        A new estimator, which supports `partial_fit` and `unlearn`; it warns as a fit would. The models do not change.

    Raises
    ------
    ValueError
        There is no model; parameters or columns differ (the message names them); columns are cut into bins at different
        points, or `KDependenceBayes` chose different parents; or a model is not a sum over its rows, because it was
        learned by EM (labels or cells were hidden), with ``feature_weights="conditional"``, in two passes
        (``shrinkage="ledoit_wolf"``), or was built from parameters.
    TypeError
        The models are of different classes, or of a class without sums: a Bayesian network keeps probabilities.
    sklearn.exceptions.NotFittedError
        A model is not fitted.

    Notes
    -----
    Choices that need all rows and do not follow from sums are those that the models have in common, as in
    `partial_fit`: cut points, and the parents of `KDependenceBayes`. Trees are chosen again; among equally good trees,
    rounding may choose another one.

    A pool is merged member by member. The weights and biases of members are means over the pools, weighted by their
    rows, because a fit would need the rows themselves; `partial_fit` fits them again. A member that is not in every
    pool, or that cannot be merged, leaves the pool, with a warning: cut points, for instance, differ between shards
    unless `bins` lists them. Feature weights are means, too.

    A model file contains its sums: the number of rows with each category, and with `TreeAugmentedNaiveBayes` with each
    pair of categories. If the rows are few, this may identify a person.

    Examples
    --------
    >>> import posteriori as po
    >>> north = po.NaiveBayes().fit([["clear"], ["clouds"]], ["dry", "wet"])
    >>> south = po.NaiveBayes().fit([["clouds"], ["haze"]], ["dry", "dry"])
    >>> both = po.merge([north, south])
    >>> both.class_count_, both.categories_
    (array([3., 1.]), [array(['clear', 'clouds', 'haze'], dtype=object)])
    """
    if isinstance(models, GenerativeEstimator | ChowLiuTree | GenerativeClassifier):
        raise TypeError(f"merge takes a list of models, and this is one {type(models).__name__}; write merge([a, b])")
    members = list(models)
    if not members:
        raise ValueError("there is nothing to merge; give at least one model")
    for position, model in enumerate(members):
        _require_sums(position, model)
        _require_alike(position, model, members[0])
    if isinstance(members[0], GenerativeClassifier):
        return _with_target_cuts(merge_pools(members, merge), members)
    if isinstance(members[0], ChowLiuTree):
        tree = clone(members[0])
        tree.fitted_ = merge_values(tree.classifier.model_request(), [model.fitted_ for model in members])
        return tree
    merged = clone(members[0])
    merged.fitted_ = merge_values(merged.model_request(), [model.fitted_ for model in members])
    return _with_target_cuts(merged, members)


def _with_target_cuts(merged: Any, members: Sequence[Any]) -> Any:
    """Give a merged model the cuts of the target of its members; return it."""
    cuts = {record_of(model).target_cuts for model in members}
    if len(cuts) > 1:
        raise ValueError("the targets were cut into classes at different numbers; fit all models with the same classes")
    set_record(merged, target_cuts=cuts.pop())
    return merged


def merge_values(request: ModelRequest, values: Sequence[Fitted]) -> Fitted:
    """Return what a fit to the rows of all fitted models would learn."""
    schema, target = _joined_schema(request, values), _joined_classes(values)
    blocks = _common_blocks(request, values, schema, target)
    request.check_size(schema, target)
    statistics = functools.reduce(operator.add, (past_statistics(one, schema, target, blocks) for one in values))
    learned = FitResult(estimate(schema, blocks, request.prior(target), statistics), statistics)
    fitted = checked_fit(request, learned, target, values[0].unlabelled_weight)
    return replace(fitted, classes_closed=all(one.classes_closed for one in values))


def _require_sums(position: int, model: object) -> None:
    """Raise an error unless a model keeps sums over its rows."""
    if isinstance(model, GenerativeClassifier):
        check_is_fitted(model)
        return
    if isinstance(model, MixtureModel) or not isinstance(model, GenerativeEstimator | ChowLiuTree):
        kind = type(model).__name__
        reasons = {
            "MixtureModel": "it is learned by EM, and its sums are its own expected values; fit all rows together",
            "BayesianNetwork": "it keeps probabilities and not the counts behind them; learn it from all rows together",
        }
        raise TypeError(
            f"model {position} is of type {kind}, which cannot be merged: "
            + reasons.get(kind, "give classifiers of posteriori, such as NaiveBayes, which keep sums over their rows")
        )
    check_is_fitted(model)
    request = (model.classifier if isinstance(model, ChowLiuTree) else model).model_request()
    obstacle = reason_not_mergeable(request, model.fitted_, "merge", _INSTEAD)
    if obstacle:
        raise ValueError(f"model {position} cannot be merged: {obstacle}")


def _require_alike(position: int, model: Any, first: Any) -> None:
    """Raise an error unless a model is of the class of the first, with its parameters."""
    if type(model) is not type(first):
        raise TypeError(
            f"model {position} is a {type(model).__name__} and model 0 a {type(first).__name__}; "
            "merge models of one class"
        )
    wanted = first.get_params(deep=False)
    for name, value in model.get_params(deep=False).items():
        if name not in _WITHOUT_EFFECT and not _same(value, wanted[name]):
            raise ValueError(
                f"{name} is {value!r} in model {position} and {wanted[name]!r} in model 0; fit both with the same one"
            )


def _same(one: Any, other: Any) -> bool:
    """Whether two parameters are equal; a list, a tuple and an array of the same values are."""
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, BaseEstimator):
        return type(one) is type(other) and _same(one.get_params(deep=False), other.get_params(deep=False))
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):  # what they hold may be of several shapes
        return len(one) == len(other) and all(map(_same, one, other))
    sequences = (list, tuple, np.ndarray)
    if isinstance(one, sequences) and isinstance(other, sequences):
        return np.shape(one)[:1] == np.shape(other)[:1] and all(map(_same, np.atleast_1d(one), np.atleast_1d(other)))
    return bool(one == other)


def _joined_schema(request: ModelRequest, values: Sequence[Fitted]) -> Schema:
    """Return the schema of the rows of all models."""
    schema = values[0].schema
    for position, one in enumerate(values[1:], start=1):
        other = one.schema
        stated = categorical_places(request.columns.categorical_features, request.distributions, schema.given)
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
    """Return the classes of all models."""
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


def _common_blocks(
    request: ModelRequest, values: Sequence[Fitted], schema: Schema, target: Column
) -> tuple[Block, ...]:
    """Return the blocks of the merged model, with the structure that those of all models have in common."""
    common, *others = (
        with_categories_of(
            carry_over_structure(request.blocks(schema), one.model.blocks),
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
            if isinstance(mine.density, RandomTrees) and mine != theirs:
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
