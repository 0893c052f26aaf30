"""Fitted estimators as HTML, for notebooks: what they learned, in tables with bars."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from posteriori.support.formatting import UNDEFINED, number, probability
from posteriori.support.markup import code, folded, left_out, paragraph, side_by_side, table
from posteriori.support.typing import Array
from posteriori.tables import Schema

_MOST_ROWS = 40
_MOST_NAMES = 12


def estimator_html(text: str, parts: Sequence[str], schema: Schema, diagram: str) -> str:
    """Return parameters, parts of a fitted estimator, its columns, and the diagram of scikit-learn, folded.

    Parameters
    ----------
    text : str
        The estimator with its parameters.
    parts : sequence of str
        HTML: `priors_html` or `components_html`, and `members_html` of a pool.
    schema : Schema
    diagram : str
        HTML of scikit-learn.
    """
    return code(text) + side_by_side([*parts, _columns(schema)]) + folded("parameters, by scikit-learn", diagram)


def priors_html(classes: Sequence[Any], prior: Array, target: str | None) -> str:
    """Return the priors of the classes as a table."""
    return _shares(classes, prior.tolist(), f"classes of {target or 'the labels'}", ["class", "prior"], "classes")


def components_html(weights: Array) -> str:
    """Return the weights of the components of a mixture as a table."""
    return _shares(range(len(weights)), weights.tolist(), "components", ["component", "weight"], "components")


def _shares(names: Sequence[Any], shares: list[float], title: str, head: list[str], many: str) -> str:
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


def members_html(member_weights: Mapping[str, float], results: Mapping[str, list[Any]] | None) -> str:
    """Return the weight and the held-out log-loss of each member, the heaviest first, and of the pool.

    results are the cross-validated scores, if the pool has them.
    """
    results = results or {"member": [], "log_loss": []}
    losses = dict(zip(results["member"], results["log_loss"], strict=True))
    weights = sorted(member_weights.items(), key=lambda item: -item[1])
    total = sum(member_weights.values())
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
