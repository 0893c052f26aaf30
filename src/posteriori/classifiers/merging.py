"""Estimators fitted apart, on shards of the rows, made one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, cast

from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.estimator import OfClasses, estimator_of
from posteriori.fitting import merge as fitted_models
from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.pool import update as fitted_pools
from posteriori.pool.value import FittedPool
from posteriori.registry import Subject

_REASONS = {
    Subject.COMPONENT: "it is learned by EM, and its sums are its own expected values; fit all rows together",
    Subject.VARIABLES: "it keeps probabilities and not the counts behind them; learn it from all rows together",
    Subject.NUMBER: "its steps and cells are at places of its own rows; fit all rows together, or partial_fit",
    Subject.COLUMNS: "its bins are those of its own rows; fit all rows together, or partial_fit",
}


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
    if isinstance(models, OfClasses):
        raise TypeError(f"merge takes a list of models, and this is one {type(models).__name__}; write merge([a, b])")
    values = [_value_with_sums(position, model) for position, model in enumerate(models)]
    if not values:
        raise ValueError("there is nothing to merge; give at least one model")
    for position, value in enumerate(values):
        fitted_models.require_alike(position, value, values[0])
    pools = [cast(FittedPool, one) for one in values if one.members]
    single = [one for one in values if isinstance(one, Fitted)]
    return estimator_of(fitted_pools.merge(pools) if pools else fitted_models.merge(single))


def _value_with_sums(position: int, model: object) -> FittedClasses:
    """Return the fitted value of a model, with its current parameters; TypeError if its kind keeps no sums."""
    if not isinstance(model, OfClasses) or not model._keeps_sums:
        kind = type(model).__name__
        other = "give classifiers of posteriori, such as NaiveBayes, which keep sums over their rows"
        reason = _REASONS.get(getattr(model, "subject", Subject.CLASS), other)
        raise TypeError(f"model {position} is of type {kind}, which cannot be merged: {reason}")
    check_is_fitted(model)
    return replace(model.fitted_, recipe=model.recipe)
