"""Whether what a model keeps of its rows is sums, which can be added to others and taken out of them."""

from __future__ import annotations

from typing import Any

from posteriori.learning.two_pass import unrefined
from posteriori.tables import quote


def reason_not_mergeable(estimator: Any, method: str, instead: str) -> str | None:
    """Return why the statistics of a fitted model are no sums over its rows, as a sentence; None where they are.

    Parameters
    ----------
    estimator : GenerativeEstimator
        Fitted.
    method : str
        What was asked for.
    instead : str
        What to do in its place.
    """
    if not hasattr(estimator, "statistics_"):
        return f"this model was built from parameters, which say nothing of how many rows they stand for; {instead}"
    model, statistics = estimator.model_, estimator.statistics_
    wanted = unrefined(estimator._blocks(model.schema))
    if wanted:
        return f"{wanted[0]} looks at all rows twice, and {method} sees sums alone; {instead}"
    if estimator.feature_weights is not None:
        return f'feature_weights="conditional" takes all rows at once, and {method} sees sums alone; {instead}'
    if model.of_class or estimator.label_noise is not None:
        return f"components_per_class and label_noise take EM over all rows, and {method} sees sums alone; {instead}"
    if statistics.hidden > 0:
        return (
            "rows without label taught this model by EM, so that its sums are what it expects of them itself; "
            f"leave such rows out, or {instead}"
        )
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        if not sums.is_exact():
            names = quote(model.schema.columns[j].name for j in block.columns)
            return (
                f"missing cells of {names} taught this model by EM, so that its sums are what it expects of them "
                f"itself; leave rows with missing cells out, choose a model that does without EM (NaiveBayes), or "
                f"{instead}"
            )
    return None
