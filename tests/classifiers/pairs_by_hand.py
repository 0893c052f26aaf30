"""Learned tables with numbers of pairs that are drawn, not learned: to test what reads them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

import posteriori as po
from posteriori.fitting.fitted import Fitted
from posteriori.model import GenerativeModel, PairTables


def with_drawn_pairs(model: GenerativeModel, seed: int = 0, n_groups: int = 4) -> GenerativeModel:
    """Return a model of learned tables with the tables of all pairs of its columns, drawn at random."""
    rng = np.random.default_rng(seed)
    sizes = model.schema.coded_cardinalities
    groups = [np.minimum(np.arange(k + 1), n_groups) for k in sizes]
    places = np.array(list(combinations(range(len(sizes)), 2)), np.int64)
    widths = [int(groups[i].max() * groups[j].max()) + 1 for i, j in places.tolist()]
    numbers = rng.normal(size=(model.n_components, sum(widths)))
    numbers[:, np.cumsum([0, *widths[:-1]])] = 0.0
    pairs = PairTables(places, sizes, np.concatenate(groups), numbers)
    return replace(model, weights=replace(model.weights, pairs=pairs))


def give_drawn_pairs(fitted: Any) -> Any:
    """Give drawn pairs to a fitted classifier of learned tables, or to such members of a pool; return it."""

    def changed(one: Fitted) -> Fitted:
        is_learned = one.recipe.feature_weights == "cells"
        return replace(one, model=with_drawn_pairs(one.model)) if is_learned else one

    value = fitted.fitted_
    members = {name: changed(one) for name, one in value.members.items()}
    fitted.fitted_ = replace(value, members=members) if members else changed(value)
    return fitted


def classifier_with_drawn_pairs(X, y, drawn=True, **parameters):
    """Return a fitted naive Bayes of learned tables, with drawn pairs or without."""
    fitted = po.NaiveBayes(distributions="binned", feature_weights="cells", **parameters).fit(X, y)
    return give_drawn_pairs(fitted) if drawn else fitted


def pool_with_drawn_pairs(X, y, weight=0.5):
    """Return a fitted pool of a tree and of learned tables with drawn pairs, which have this weight."""
    members = {"tables": po.NaiveBayes(distributions="binned", feature_weights="cells", bins=6), "tan": "tan"}
    pool = give_drawn_pairs(po.GenerativeClassifier(members=members, folds=2, random_state=0).fit(X, y))
    pool.fitted_ = replace(pool.fitted_, weights={"tables": weight, "tan": 1.0 - weight})
    return pool
