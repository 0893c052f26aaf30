"""The terminal page of explain: Bayes' rule for one row."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
from rich.console import Console

from posteriori.cli.score_tables import bar
from posteriori.cli.tables import NAME, console, label_text, new_table
from posteriori.explain import Explanation
from posteriori.explain.merging import merge_classes
from posteriori.formatting import number, shortened

_SHORTEST_NAME = 6  # characters of a name in a table that has to fit the terminal


def print_explanation(explanation: Explanation, row: int) -> None:
    """Print Bayes' rule for one row, and the contribution of each feature to the log-odds of its two best classes.

    If the table is too wide for the terminal, the classes with the smallest posteriors are merged, and then names are
    cut.
    """
    out = console()
    ranked = np.argsort(-explanation.log_joint[0], kind="stable")
    shown = explanation
    text = shown.bayes_table()
    kept = len(ranked)
    while kept > 2 and _width(text) > out.width:
        kept -= 1
        shown = merge_classes(explanation, list(ranked[:kept]))
        text = shown.bayes_table()
    length = NAME
    while length > _SHORTEST_NAME and _width(text) > out.width:
        length -= 2
        text = _shortened(shown, length).bayes_table()
    out.print(f"row {row}\n")
    out.print(text, soft_wrap=True)
    if kept < len(ranked):
        out.print(
            f"\nThe {len(ranked) - kept} classes with the smallest posteriors are merged into one. Its likelihoods are "
            "conditional on the features above them, so that the column still multiplies to its joint."
        )
    if len(ranked) > 1:
        _print_log_odds(out, explanation)


def _print_log_odds(out: Console, explanation: Explanation) -> None:
    """Print the contributions of the prior and of each feature to the log-odds of the two best classes."""
    log_odds = explanation.log_odds()
    entries = [("prior", "", log_odds.prior)]
    cells = zip(log_odds.factors.items(), explanation.values[0], strict=True)
    entries += [(label_text(name), _cell(value), nats) for (name, nats), value in cells]
    greatest = max((abs(nats) for *_, nats in entries if math.isfinite(nats)), default=0.0)
    table = new_table("adds to the log-odds", "value", "nats", "")
    table.columns[1].justify = table.columns[3].justify = "left"
    for name, value, nats in sorted(entries, key=lambda entry: -abs(entry[2])):
        drawn = bar(abs(nats), greatest, width=12) if math.isfinite(nats) else ""
        table.add_row(name, value, f"{nats:+.4f}", drawn)
    table.add_section()
    table.add_row("log-odds", "", f"{log_odds.total:+.4f}", "")
    one, other = label_text(log_odds.label), label_text(log_odds.against)
    out.print(f"\n{one} against {other}: log p({one} | x) − log p({other} | x)")
    out.print()
    out.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return "missing"
    return number(value, 6) if isinstance(value, float) else label_text(value)


def _width(text: str) -> int:
    """Return the width of the table without the line on the evidence, which may wrap."""
    return max(len(line) for line in text.splitlines() if not line.startswith("evidence"))


def _shortened(explanation: Explanation, length: int) -> Explanation:
    def cut(cell: Any) -> Any:
        return shortened(cell, length) if isinstance(cell, str) else cell

    values = np.empty_like(explanation.values)
    values[0] = [cut(cell) for cell in explanation.values[0]]
    classes = np.array([cut(str(label)) for label in explanation.classes], dtype=object)
    names = tuple(cut(name) for name in explanation.feature_names)
    return dataclasses.replace(explanation, classes=classes, feature_names=names, values=values)
