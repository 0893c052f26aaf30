"""Explanations with several classes merged into one."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np

from posteriori.explain.sums import Explanation


def merge_classes(explanation: Explanation, keep: Sequence[int]) -> Explanation:
    """Return the explanation of one row with all classes except some merged into one; the evidence is the same.

    The factor of a feature given the merged class is p(x_j | other, x_1 … x_{j−1}): features that are independent
    given each class depend on each other given several classes. By the chain rule the factors and the prior multiply
    to the joint.

    Parameters
    ----------
    explanation : Explanation
        Its first row is used.
    keep : sequence of int
        Positions of the classes that are not merged.
    """
    others = [c for c in range(len(explanation.classes)) if c not in set(keep)]
    prior, factors = explanation.log_prior, explanation.log_factors[:1]
    steps = np.concatenate([prior[others][:, np.newaxis], factors[0, others]], axis=1).cumsum(axis=1)
    chain = np.logaddexp.reduce(steps, axis=0)
    with np.errstate(invalid="ignore"):
        merged = np.diff(chain)
    merged = np.where(np.isnan(merged), 0.0, merged)  # −inf − (−inf): the cells above already have probability 0
    classes = np.array([*explanation.classes[list(keep)], f"{len(others)} others"], dtype=object)
    return dataclasses.replace(
        explanation,
        classes=classes,
        log_prior=np.append(prior[list(keep)], chain[0]),
        log_factors=np.concatenate([factors[:, list(keep)], merged[np.newaxis, np.newaxis]], axis=1),
        values=explanation.values[:1],
        words=(),
    )
