"""Decisions from posteriors: the class of least expected cost, and thresholds of probability."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.model.answer import Answer
from posteriori.support.suggestions import class_index, find_class
from posteriori.support.typing import Array
from posteriori.tables.writing import text_of_label

_ROUNDING = 0.015  # that the sum of the probabilities of a row may miss 1 by, as where they are written with two digits


@dataclass(frozen=True)
class Decision:
    """A rule that decides on a class, given p(y | x)."""

    # (C, A): the cost of the decision of the column where the class of the row is true; the first C are the classes
    cost: Array | None = None
    # classes, by index, with the probability from which they are decided on, in order of precedence
    thresholds: tuple[tuple[int, float], ...] = ()
    others: tuple[Any, ...] = ()  # decisions that are no class, such as "ask"

    def labels(self, classes: Sequence[Any]) -> list[Any]:
        """Return the labels of all decisions, of the classes first; as text if they are of several types."""
        every = [*classes, *self.others]
        return every if len({type(one) for one in every}) == 1 else [text_of_label(one) for one in every]

    def choose(self, posterior: Array) -> Array:
        """Return the index of the decision, (n,), for posteriors (n, C)."""
        if self.cost is not None:
            least: Array = (posterior @ self.cost).argmin(axis=1)
            return least
        others = posterior.copy()
        others[:, [c for c, _ in self.thresholds]] = -1.0
        chosen: Array = others.argmax(axis=1)
        if len(self.thresholds) == posterior.shape[1]:  # no class is without a threshold
            chosen = posterior.argmax(axis=1)
        for c, threshold in reversed(self.thresholds):
            chosen[posterior[:, c] >= threshold] = c
        return chosen


def decision_of(
    classes: Sequence[Any],
    costs: Mapping[Any, Mapping[Any, float]] | None = None,
    thresholds: Mapping[Any, float] | None = None,
) -> Decision:
    """Return the rule of costs or thresholds by class.

    Raises
    ------
    ValueError
        As `decide`.
    """
    if (costs is None) == (thresholds is None):
        raise ValueError("give costs or thresholds, one of them")
    for what, given, example in (
        ("costs", costs, "{true class: {decided class: cost}}"),
        ("thresholds", thresholds, "{class: probability}"),
    ):
        if given is not None and not isinstance(given, Mapping):
            raise TypeError(f"{what} is a {type(given).__name__}; name the classes, {what}={example}")
    others: tuple[Any, ...] = ()
    if thresholds is not None:
        found = []
        for label, threshold in thresholds.items():
            if not 0.0 <= threshold <= 1.0:
                raise ValueError(f"the threshold of {label!r} is {threshold}; give a probability from 0 to 1")
            found.append((class_index(label, classes), float(threshold)))
        return Decision(thresholds=tuple(found))
    assert costs is not None
    if all(isinstance(one, Mapping) for one in costs.values()):
        named = [label for one in costs.values() for label in one if find_class(label, classes) is None]
        others = tuple(label for label in dict.fromkeys(named) if named.count(label) == len(classes))
    cost = np.full((len(classes), len(classes) + len(others)), np.nan)
    np.fill_diagonal(cost, 0.0)
    actions = [*classes, *others]
    for true, of_decision in costs.items():
        if not isinstance(of_decision, Mapping):
            raise TypeError(f"the costs where {true!r} is true are {of_decision!r}; name them, {{decided class: cost}}")
        for decided, value in of_decision.items():
            if not np.isfinite(value):
                raise ValueError(f"the cost of {decided!r} where {true!r} is true is {value}; give a number")
            cost[class_index(true, classes), class_index(decided, actions)] = value
    unknown = np.argwhere(np.isnan(cost))
    if len(unknown):
        true, decided = classes[unknown[0, 0]], actions[unknown[0, 1]]
        raise ValueError(f"the costs lack that of deciding {decided!r} where {true!r} is true; add it")
    return Decision(cost, others=others)


def decide(
    posterior: Any,
    classes: Sequence[Any] | None = None,
    *,
    costs: Mapping[Any, Mapping[Any, float]] | None = None,
    thresholds: Mapping[Any, float] | None = None,
) -> Array:
    r"""Decide on a class for each row, by expected costs or by thresholds of probability.

    With costs, the decision is the k of least expected cost, Σ_c p(c | x) cost[c][k]: a class, or another decision such
    as "ask" that has a cost for every class (rejection, Chow). With thresholds, it is the
    first class whose probability reaches its threshold, or else the most probable one of the classes without a
    threshold (of all classes if each has one).

    Parameters
    ----------
    posterior : Answer or array (n, C)
        ``model.answer(X)``, or p(y | x), such as ``model.predict_proba(X)``.
    classes : sequence of C labels, optional
        Of an array: the classes in the order of the columns, such as ``model.classes_``.
    costs : mapping of true class to mapping of decided class to number, optional
        The cost of each decision, in any unit. A correct decision costs 0 if it is not listed. A decision that is no
        class needs a cost for every class.
    thresholds : mapping of class to float in [0, 1], optional

    Returns
    -------
    ndarray (n,)
        Labels; as text if a decision that is no class is of another type than the classes.

    Raises
    ------
    TypeError
        The posterior is a model, an array comes without classes, or costs or thresholds are no mapping.
    ValueError
        Both or neither of `costs` and `thresholds` are given; a class is unknown, a cost is missing or not finite, a
        threshold is not in [0, 1], the shape of the posterior does not fit the classes, or a row of it holds a negative
        number or NaN, or does not sum to 1.

    References
    ----------
    Elkan, The foundations of cost-sensitive learning, IJCAI 2001, equation 1. Chow, On optimum recognition error and
    reject tradeoff, IEEE Trans. IT 16 (1970).

    Examples
    --------
    >>> import posteriori as po
    >>> posterior = [[0.95, 0.05], [0.7, 0.3]]
    >>> po.decide(posterior, ["good", "bad"], costs={"good": {"bad": 1}, "bad": {"good": 5}}).tolist()
    ['good', 'bad']
    >>> po.decide(posterior, ["good", "bad"], thresholds={"bad": 0.04}).tolist()
    ['bad', 'bad']
    >>> ask = {"good": {"bad": 1, "ask": 0.2}, "bad": {"good": 5, "ask": 0.2}}
    >>> po.decide([[0.98, 0.02], [0.9, 0.1], [0.1, 0.9]], ["good", "bad"], costs=ask).tolist()
    ['good', 'ask', 'bad']
    """
    if hasattr(posterior, "predict_proba"):
        raise TypeError(
            "posterior is a model; give its probabilities, po.decide(model.predict_proba(X), model.classes_, costs=…)"
        )
    if isinstance(posterior, Answer):
        posterior, classes = posterior.probability, posterior.labels
    if classes is None:
        raise TypeError("an array of probabilities comes without names; give classes, such as model.classes_")
    p = np.asarray(posterior, np.float64)
    labels = np.asarray(classes)
    if p.ndim != 2 or p.shape[1] != len(labels):
        raise ValueError(f"the posterior has shape {p.shape}; give one column for each of the {len(labels)} classes")
    sums_to_1 = (np.abs(p.sum(axis=1) - 1.0) <= _ROUNDING) & (p >= 0.0).all(axis=1)  # False for NaN
    if not sums_to_1.all():
        row = int(np.argmin(sums_to_1))
        raise ValueError(
            f"row {row} of the posterior is {p[row].tolist()}; give probabilities that sum to 1, or leave out a row "
            "that no class can produce"
        )
    rule = decision_of(labels.tolist(), costs, thresholds)
    chosen: Array = (np.array(rule.labels(labels.tolist())) if rule.others else labels)[rule.choose(p)]
    return chosen
