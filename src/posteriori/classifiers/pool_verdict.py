"""Why a pool is kept beside a candidate of a lower cross-validated log-loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

_SIGNIFICANT = 2.0  # standard errors


def pool_verdict(cv_results: Mapping[str, Sequence[Any]]) -> str:
    """Return a sentence on the candidate whose log-loss is below that of the pool; an empty string if there is none.

    Parameters
    ----------
    cv_results : mapping
        The attribute `cv_results_` of a `GenerativeClassifier`.
    """
    if "log_loss_above_pool" not in cv_results or sum(weight > 0 for weight in cv_results["weight"][:-1]) < 2:
        return ""
    above = list(cv_results["log_loss_above_pool"][:-1])
    best = min(range(len(above)), key=above.__getitem__)
    difference, error = above[best], cv_results["log_loss_above_pool_se"][best]
    if not difference < 0:
        return ""
    if difference < -_SIGNIFICANT * error:
        kept = f"more than two standard errors, but the best of {len(above)} candidates looks better than it is"
    else:
        kept = "within two standard errors, which does not show that it is better alone"
    return (
        f"{cv_results['member'][best]} has a lower log-loss than the pool, by {-difference:.4f} ± {error:.4f} nats: "
        f'{kept}; --pool best (in Python pool="best") keeps only the best candidate'
    )
