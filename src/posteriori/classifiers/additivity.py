"""Whether the statistics of a fitted model are sums over its rows, which can be added and subtracted."""

from __future__ import annotations

from typing import Any

from posteriori.learning.two_pass import unrefined
from posteriori.tables import quote


def reason_not_mergeable(estimator: Any, method: str, instead: str) -> str | None:
    """Return why the statistics of a fitted model are not sums over its rows, as a sentence; None if they are.

    Parameters
    ----------
    estimator : GenerativeEstimator
        Fitted.
    method : str
        Name of the method that needs sums.
    instead : str
        The remedy, in the imperative.
    """
    if not hasattr(estimator, "statistics_"):
        return f"this model was built from parameters, which do not contain the number of rows; {instead}"
    model, statistics = estimator.model_, estimator.statistics_
    wanted = unrefined(estimator._blocks(model.schema))
    if wanted:
        return f"{wanted[0]} looks at all rows twice, and {method} sees only sums; {instead}"
    if estimator.leaves_rows_out:
        return f"{estimator.leaves_rows_out} takes all rows at once, and {method} sees only sums; {instead}"
    if model.of_class or estimator.label_noise is not None:
        return f"components_per_class and label_noise take EM over all rows, and {method} sees only sums; {instead}"
    if statistics.hidden > 0:
        return (
            "this model was learned from rows without label by EM, so its sums are its own expected values; "
            f"leave out such rows, or {instead}"
        )
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        if not sums.is_exact():
            names = quote(model.schema.columns[j].name for j in block.columns)
            return (
                f"this model was learned from missing cells of {names} by EM, so its sums are its own expected values; "
                f"leave out rows with missing cells, choose a model that needs no EM (NaiveBayes), or "
                f"{instead}"
            )
    return None


def reason_not_extendable(estimator: Any) -> str | None:
    """Return why a fitted model cannot learn from more rows, as a sentence; None if it can."""
    wanted = unrefined(estimator._blocks(estimator.model_.schema))
    if wanted:
        return f"{wanted[0]} looks at all rows twice, and partial_fit sees each once; fit all rows together"
    if estimator.model_.of_class or estimator.label_noise is not None:
        return "components_per_class and label_noise take EM over all rows; fit all rows together"
    if not hasattr(estimator, "statistics_"):
        return "this model was built from parameters, which do not contain the number of rows; use fit"
    return None
