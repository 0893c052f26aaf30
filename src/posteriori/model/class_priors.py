"""Class priors that a user gives, in place of those of the training rows."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from posteriori.support.checks import require
from posteriori.support.typing import Array
from posteriori.tables import Column


def check_priors(priors: Any, classes: Column) -> tuple[float, ...]:
    """Return p(y) in the order of the classes.

    Raises ValueError if the number of priors is not that of the classes, one is negative, or their sum is not 1.
    """
    labels = list(classes.categories)
    if isinstance(priors, str):
        require_uniform(priors)
        return (1.0 / len(labels),) * len(labels)
    if isinstance(priors, Mapping):
        if set(priors) != set(labels):
            raise ValueError(f"priors must name every class once: the classes are {labels}, priors has {list(priors)}")
        priors = [priors[label] for label in labels]
    try:
        probability = np.asarray(priors, dtype=np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"priors is a {type(priors).__name__}; give one number per class") from None
    if probability.shape != (len(labels),):
        raise ValueError(f"Number of priors must match number of classes: {probability.size} for {len(labels)}.")
    if not (probability >= 0).all():
        raise ValueError("Priors must be non-negative.")
    if not np.isclose(probability.sum(), 1.0):
        raise ValueError(f"The sum of the priors should be 1, and is {probability.sum():g}.")
    return tuple(float(p) for p in probability)


def require_uniform(priors: str) -> None:
    """Raise ValueError unless priors that are a string have the one name that there is."""
    if priors != "uniform":
        raise ValueError(f'priors is {priors!r}; give "uniform", or one number per class')


def log_prior_ratio(priors: Any, target: Column, training_prior: Array | None) -> Array:
    """Return log (priors / training_prior) in nats, (C,); 0 without priors.

    Added to the log posterior under the class frequencies of the training rows, it gives the log posterior under
    `priors` up to a constant per row (Saerens et al. 2002).
    Raises ValueError if the priors do not fit the classes; one is 0, or its class has no training row of positive
    weight.
    """
    if priors is None:
        return np.zeros(len(target.categories))
    wanted = np.array(check_priors(priors, target))
    require(training_prior is not None, "the class prior of the training rows is missing")
    assert training_prior is not None
    for label, p, known in zip(target.categories, wanted, training_prior, strict=True):
        if not p > 0:
            raise ValueError(f"priors gives class {label!r} the probability 0; leave the rows of this class out")
        if not known > 0:
            raise ValueError(f"priors names class {label!r}, which no training row with a weight has; leave it out")
    ratio: Array = np.log(wanted) - np.log(training_prior)
    return ratio
