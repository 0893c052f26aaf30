"""Facts and terminal page of explain for a regressor: the mean of some rows as a sum, and the width of the interval."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from posteriori.cli.explanation_page import cell, signed_bar
from posteriori.cli.tables import console, label_text, new_table, print_rows
from posteriori.regression.explanation import NumberExplanation
from posteriori.regression.held_out import COVERAGE
from posteriori.support.formatting import number, plural
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_DIGITS = 4


def number_explanation_facts(
    explanation: NumberExplanation,
    rows: Sequence[int],
    truth: Sequence[Any] | None,
    interval: Array,
    outside: Sequence[str],
) -> list[Facts]:
    """Return the facts about each explained row.

    Parameters
    ----------
    explanation : NumberExplanation
    rows : sequence of int
        The number of each row in its table.
    truth : sequence, optional
        The true numbers; None where the table does not have them.
    interval : ndarray (n, 2)
        The central intervals of the rows.
    outside : sequence of str (n,)
        Which numbers of each row lie outside of the range of the training rows.
    """
    return [
        {
            "row": row,
            "target": explanation.target,
            "prediction": explanation.mean[place],
            **({} if truth is None else {"true": truth[place]}),
            "outside": outside[place],
            "coverage": COVERAGE,
            "interval": interval[place],
            "width": explanation.width[place],
            "base": explanation.base,
            "features": [
                {
                    "feature": explanation.feature_names[j],
                    "value": explanation.values[place, j],
                    "part": explanation.parts[place, j],
                    "width_change": explanation.width_changes[place, j],
                }
                for j in explanation.ranked(place)
            ],
            "not_known": [
                name
                for name, value in zip(explanation.feature_names, explanation.values[place], strict=True)
                if value is None
            ],
        }
        for place, row in enumerate(rows)
    ]


def print_number_explanation(facts: Facts) -> None:
    """Print the prediction of one row, what each column adds to the mean, and by how much it changes the interval."""
    out, target = console(), label_text(facts["target"])
    low, high = (_written(end) for end in facts["interval"])
    true = "not given" if facts.get("true") is None else number(facts["true"], 6, separator=",")
    out.print(
        f"row {facts['row']}: {target} = {_written(facts['prediction'])}, {COVERAGE:.0%} interval {low} to {high}"
        + (f"; true {target}: {true}" if "true" in facts else ""),
        soft_wrap=True,
    )
    if facts["outside"]:
        out.print(f"outside of the training range: {label_text(facts['outside'])}", soft_wrap=True)
    out.print()
    greatest = max((abs(one["part"]) for one in facts["features"]), default=0.0)
    table = new_table("adds to the mean", "value", target, "     less ← → more", "interval", left=2)
    table.columns[3].justify = "left"
    table.add_row("with nothing known", "", _written(facts["base"]), "", "")
    for one in facts["features"]:
        table.add_row(
            label_text(one["feature"]),
            cell(one["value"]),
            _signed(one["part"]),
            signed_bar(one["part"], greatest),
            _signed(one["width_change"]),
        )
    if facts["not_known"]:
        table.add_row(plural(len(facts["not_known"]), "column") + " not known", "", "0", "", "")
    table.add_section()
    table.add_row("mean", "", _written(facts["prediction"]), "", _written(facts["width"]))
    print_rows(out, table)
    out.print(
        f"\nThe column interval has the width of the {COVERAGE:.0%} interval, and by how much each cell changes it: "
        "less than 0 if the prediction is more certain with the cell. These changes do not add up.\n"
    )


def _written(value: float) -> str:
    return number(float(value), _DIGITS, separator=",")


def _signed(value: float) -> str:
    return f"+{_written(value)}" if value > 0 else _written(value)
