"""Figures of evaluate on decisions: by thresholds, costs or a capacity, beside the most probable class."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from posteriori.cli.evaluate import AskedDecision
from posteriori.cli.evaluation import print_confusion
from posteriori.cli.messages import UserError
from posteriori.cli.predict import costs_in, thresholds_in
from posteriori.cli.tables import console, label_text, new_table, print_table
from posteriori.model_selection.metrics import ClassScores
from posteriori.support.formatting import number, plural, probability
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from posteriori.facts.model import Facts
    from posteriori.model_selection import HeldOut


def decision_facts(asked: AskedDecision, judged: HeldOut, labels: Sequence[Any]) -> Facts:
    """Return the figures of the decisions that are asked for, and of the most probable class; {} if none are.

    Costs decide, unless there are thresholds or a capacity: then they are what these decisions cost.
    """
    if asked == AskedDecision():
        return {}
    y_true, posterior, _ = judged.judged
    one = judged.figures.of_interest
    costs = None if asked.costs is None else costs_in(asked.costs, labels)
    facts: Facts = {}
    if asked.capacity is not None:
        if one is None:
            raise UserError("--capacity ranks by the rarer class, and the rows have only one; name it with --positive")
        n = asked.rows(len(y_true))
        ranked = np.argsort(-posterior[:, one], kind="stable")
        others = posterior.copy()
        others[:, one] = -1.0
        chosen = others.argmax(axis=1)
        chosen[ranked[:n]] = one
        facts = {"rows_chosen": n, "lowest_probability": float(posterior[ranked[n - 1], one]) if n else None}
    else:
        rule = thresholds_in(asked.threshold, labels) or costs
        assert rule is not None
        chosen = rule.choose(posterior)
    cost = None if costs is None else costs.cost
    further = () if costs is None else costs.others
    ways = {"decided": chosen, "most_probable": posterior.argmax(axis=1)}
    figures = {name: _figures(y_true, decided, labels, cost, further) for name, decided in ways.items()}
    return {"decision": {"rule": _rule(asked, facts, labels, one), **facts, **figures}}


def _rule(asked: AskedDecision, facts: Facts, labels: Sequence[Any], one: int | None) -> str:
    if asked.capacity is not None:
        named = label_text(labels[one or 0])
        return f"{named!r} in the {plural(facts['rows_chosen'], 'row')} where it is most probable"
    return "thresholds" if asked.threshold else "least expected cost"


def _figures(y_true: Array, decided: Array, labels: Sequence[Any], cost: Array | None, others: Sequence[Any]) -> Facts:
    confusion = np.zeros((len(labels), len(labels) + len(others)), np.int64)
    np.add.at(confusion, (y_true, decided), 1)
    of_classes = ClassScores.of(confusion.astype(float))
    found: Facts = {
        "accuracy": float(np.trace(confusion) / max(1, (decided < len(labels)).sum())),  # of rows with a class
        "others": [
            {"decision": one, "decided": int((decided == k).sum())} for k, one in enumerate(others, len(labels))
        ],
        "confusion": confusion,
        "classes": [
            {"class": label, "decided": int(n), "precision": precision, "recall": recall}
            for label, n, precision, recall in zip(
                labels, confusion.sum(axis=0)[: len(labels)], of_classes.precision, of_classes.recall, strict=True
            )
        ],
    }
    if cost is not None:
        total = float((confusion * cost).sum())
        found |= {"cost": total, "cost_per_row": total / len(y_true)}
    return found


def print_decision(facts: Facts) -> None:
    """Print the confusion matrix of the decisions, and their figures beside those of the most probable class."""
    out, found = console(), facts["decision"]
    ways = [found["decided"], found["most_probable"]]
    out.print()
    out.print(f"decided: {found['rule']}", soft_wrap=True)
    names = [label_text(one["class"]) for one in ways[0]["classes"]]
    others = [label_text(one["decision"]) for one in ways[0]["others"]]
    print_confusion(out, names, ways[0]["confusion"], [*names, *others])
    table = new_table("", "decided", "most probable class")
    table.add_row("accuracy", *(probability(way["accuracy"]) for way in ways))
    for pair in zip(*(way["classes"] for way in ways), strict=True):
        name = label_text(pair[0]["class"])
        table.add_row(f"{name}: rows decided", *(f"{one['decided']:,}" for one in pair))
        for measure in ("precision", "recall"):
            table.add_row(f"{name}: {measure}", *(probability(one[measure]) for one in pair))
    for pair in zip(*(way["others"] for way in ways), strict=True):
        table.add_row(f"{label_text(pair[0]['decision'])}: rows", *(f"{one['decided']:,}" for one in pair))
    if "cost" in ways[0]:
        table.add_row("cost per row", *(number(way["cost_per_row"], 4) for way in ways))
        table.add_row("cost in total", *(number(way["cost"], 6) for way in ways))
    print_table(out, table)
