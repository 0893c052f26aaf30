"""The terminal pages of a regressor: of fit, evaluate, show and cv."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from posteriori.cli.tables import (
    MOST_FEATURES,
    bar,
    console,
    label_text,
    new_table,
    print_rows,
    print_sentences,
    print_table,
)
from posteriori.support.formatting import count, listed, number, plural

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_SCORES = {
    "crps": "CRPS",
    "log_score": "log score (nats)",
    "rmse": "RMSE",
    "mae": "MAE",
    "r2": "R²",
    "coverage": "coverage of 90% intervals",
    "width": "their mean width",
}
_SHORT = {"coverage": "coverage", "width": "width", "log_score": "log score"}
_MOST_HINTS = 4
_MOST_NAMED = 3  # columns


def print_number_fit(facts: Facts, details: bool) -> None:
    """Print what fit knows of a regressor: the first page, or all with `details`."""
    out = console()
    features = {column.get("part_of", column["name"]) for column in facts["columns"]}
    spread = facts["target_range"]
    lowest, highest = (number(spread[key], 6, separator=",") for key in ("min", "max"))
    rows = f"{facts['table']}: {plural(facts['rows'], 'row')}, {plural(len(features), 'feature')}"
    out.print(f"{rows}; {label_text(facts['target'])}: {lowest} to {highest}")
    out.print()
    print_sentences(out, [*facts["summary"], what_matters_to_number(facts["importance"])])
    out.print()
    if details:
        from posteriori.cli.fit_facts import print_columns

        print_columns(out, facts["columns"])
        _print_members(out, facts["members"])
        _print_importance(out, facts)
    shown = facts["hints"] if details else facts["hints"][:_MOST_HINTS]
    for hint in shown:
        out.print(f"hint: {hint}")
    if len(shown) < len(facts["hints"]):
        out.print(f"and {plural(len(facts['hints']) - len(shown), 'more note')}")
    if shown:
        out.print()
    members = plural(len(facts["members"]) - 1, "regression")
    out.print(f"saved to {facts['output']}: a pool of {members}", soft_wrap=True)
    out.print(f"new rows: posteriori predict {shlex.quote(facts['output'])} TABLE", soft_wrap=True)
    if not details:
        out.print("columns, scores and members: --details")


def print_number_evaluation(facts: Facts) -> None:
    """Print the sentences on the predictions of a table, and their scores."""
    out = console()
    print_sentences(out, facts["summary"])
    out.print()
    table = new_table(f"{facts['table']}, {facts['rows']:,} rows", "model")
    for key, name in _SCORES.items():
        table.add_row(name, number(facts["scores"][key]))
    print_table(out, table)


def print_regressor(facts: Facts) -> None:
    """Print the members and the columns of a regressor."""
    out = console()
    out.print(f"{facts['model']} of {label_text(facts['target'])}, {count(facts['n_parameters'])} parameters")
    out.print()
    if facts["members"]:
        print_sentences(out, facts["summary"])
        out.print()
        _print_members(out, facts["members"])
    table = new_table("column", "kind", left=2)
    for column in facts["columns"]:
        categories = f" of {column['n_categories']}" if "n_categories" in column else ""
        table.add_row(label_text(column["name"]), column.get("reason", f"{column['kind']}{categories}"))
    print_table(out, table)
    if "importance" in facts:
        _print_importance(out, facts)


def print_number_cv(facts: Facts) -> None:
    """Print the cross-validated scores of the members and of the pool."""
    out = console()
    folds = f"{facts['folds']}-fold cross-validation"
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {folds} of {label_text(facts['target'])}\n")
    _print_members(out, facts["models"])


def what_matters_to_number(importance: Sequence[Facts]) -> str:
    """Return a sentence on the columns without which the CRPS rises most, of those where this is certain."""
    certain = [label_text(one["feature"]) for one in importance if one["crps"] > 2.0 * one["standard_error"]]
    if not certain:
        return "No column matters by itself: without any one of them, it predicts about as well."
    others = len(certain) - _MOST_NAMED
    more = f"; {plural(others, 'other column')} beside" if others > 0 else ""
    return f"What matters most: {listed(certain[:_MOST_NAMED])}{more}."


def _print_importance(out: Console, facts: Facts) -> None:
    """Print the feature importance with standard errors, the greatest first."""
    found = facts["importance"]
    table = new_table("feature importance", "CRPS added without it", "")
    table.columns[2].justify = "left"
    greatest = max((one["crps"] for one in found), default=0.0)
    for one in found[:MOST_FEATURES]:
        added = f"{number(one['crps'], 4)} ± {number(one['standard_error'], 2)}"
        table.add_row(label_text(one["feature"]), added, bar(one["crps"], greatest))
    print_rows(out, table)
    if len(found) > MOST_FEATURES:
        out.print(f"and {plural(len(found) - MOST_FEATURES, 'more feature')}")
    out.print(f"CRPS added when the column is unknown, on {facts['importance_rows']['rows']:,} held-out rows\n")


def _print_members(out: Console, members: Sequence[Facts]) -> None:
    table = new_table("member", "weight", *(_SHORT.get(key, name) for key, name in _SCORES.items()))
    for one in members:
        weight = "" if one["member"] == "pool" else f"{one['weight']:.2f}"
        table.add_row(one["member"], weight, *(number(one[key]) for key in _SCORES))
    print_table(out, table)
    out.print("CRPS, RMSE, MAE and width are in units of the target; coverage and width are of 90% intervals\n")
