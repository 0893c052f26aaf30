"""Fitted estimators as HTML, for notebooks: what they learned, in tables with bars."""

from __future__ import annotations

from typing import Any

from posteriori.support.formatting import (
    UNDEFINED,
    code,
    folded,
    left_out,
    number,
    paragraph,
    probability,
    side_by_side,
    table,
)
from posteriori.tables import Schema

_MOST_ROWS = 40
_MOST_NAMES = 12


def estimator_html(estimator: Any, diagram: str) -> str:
    """Return parameters, classes or components, columns and members, and the diagram of scikit-learn, folded.

    Parameters
    ----------
    estimator : fitted estimator
    diagram : str
        HTML of scikit-learn.
    """
    parts = [_shares(estimator), _columns(estimator.schema_)]
    if hasattr(estimator, "members_"):
        parts.append(_members(estimator))
    return code(repr(estimator)) + side_by_side(parts) + folded("parameters, by scikit-learn", diagram)


def _shares(estimator: Any) -> str:
    """Return the priors of the classes, or the weights of the components of a mixture."""
    if hasattr(estimator, "classes_"):
        names, shares = estimator.classes_.tolist(), estimator.class_prior_.tolist()
        title, head, many = f"classes of {estimator.schema_.target or 'the labels'}", ["class", "prior"], "classes"
    else:
        shares = estimator.weights_.tolist()
        names, title, head, many = range(len(shares)), "components", ["component", "weight"], "components"
    rows = [[str(name), probability(share)] for name, share in zip(names, shares, strict=True)][:_MOST_ROWS]
    bars = [[None, share] for share in shares[:_MOST_ROWS]]
    return f"<div>{table(title, head, rows, 1, bars)}{left_out(len(shares), many, _MOST_ROWS)}</div>"


def _columns(schema: Schema) -> str:
    """Return the columns of each kind, the ignored ones with the reason."""
    of_kind: dict[str, list[str]] = {}
    for column in schema.columns:
        name = f"{column.name} ({column.reason})" if column.is_ignored else column.name
        of_kind.setdefault(column.shown_kind, []).append(name)
    rows = []
    for kind, names in of_kind.items():
        more = f", … and {len(names) - _MOST_NAMES:,} more" if len(names) > _MOST_NAMES else ""
        rows.append([kind, f"{len(names):,}", ", ".join(names[:_MOST_NAMES]) + more])
    return f"<div>{table('columns', ['kind', 'number', 'names'], rows, 3)}</div>"


def _members(pool: Any) -> str:
    """Return the weight and the held-out log-loss of each member, the heaviest first, and of the pool."""
    results: dict[str, list[Any]] = getattr(pool, "cv_results_", {"member": [], "log_loss": []})
    losses = dict(zip(results["member"], results["log_loss"], strict=True))
    weights = sorted(pool.member_weights_.items(), key=lambda item: -item[1])
    total = sum(pool.member_weights_.values())
    rows = [[name, number(weight, 3), _loss(losses.pop(name, None))] for name, weight in weights]
    shares: list[list[float | None]] = [[None, weight / total if total > 0 else None, None] for _, weight in weights]
    if results["member"]:
        rows.append(["all members together", "", _loss(losses.pop(results["member"][-1]))])
        shares.append([None, None, None])
    unused = paragraph(f"of weight 0: {', '.join(losses)}") if losses else ""
    head = ["member", "weight", "held-out log-loss (nats)"]
    return f"<div>{table('members of the pool', head, rows, 1, shares)}{unused}</div>"


def _loss(value: float | None) -> str:
    return UNDEFINED if value is None else f"{value:.4f}"
