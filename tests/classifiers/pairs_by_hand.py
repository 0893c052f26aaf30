"""Learned tables with numbers of pairs that are drawn, not learned: to test what reads them."""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations

import numpy as np

import posteriori as po
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


def classifier_with_drawn_pairs(X, y, drawn=True, **parameters):
    """Return a fitted naive Bayes of learned tables, with drawn pairs or without."""
    fitted = po.NaiveBayes(distributions="binned", feature_weights="cells", **parameters).fit(X, y)
    if drawn:
        fitted.fitted_ = replace(fitted.fitted_, model=with_drawn_pairs(fitted.model_))
    return fitted


def pool_with_drawn_pairs(X, y, weight=0.5):
    """Return a fitted pool whose member of learned tables, of this weight, has drawn pairs."""
    pool = po.GenerativeClassifier(["nb", "cells"]).fit(X, y)
    member = pool.members_["cells"]
    member.fitted_ = replace(member.fitted_, model=with_drawn_pairs(member.model_))
    pool.fitted_ = replace(pool.fitted_, weights={"nb": 1.0 - weight, "cells": weight})
    return pool
