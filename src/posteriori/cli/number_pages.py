"""The terminal pages of a regressor: of fit, evaluate, show and cv."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from typing import TYPE_CHECKING

from rich.console import Console

from posteriori.cli.tables import (
    MOST_FEATURES,
    NUMBER_SCORES,
    bar,
    console,
    label_text,
    new_table,
    print_rows,
    print_sentences,
    print_table,
)
from posteriori.registry import REGRESSOR, REGRESSORS
from posteriori.support.formatting import count, listed, number, plural

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

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
    matters = [what_matters_to_number(facts["importance"])] if "importance" in facts else []
    print_sentences(out, [*facts["summary"], *matters])
    out.print()
    if details:
        from posteriori.cli.fit_facts import print_columns

        print_columns(out, facts["columns"])
        _print_scores(out, facts["members"])
        if "importance" in facts:
            _print_importance(out, facts)
    shown = facts["hints"] if details else facts["hints"][:_MOST_HINTS]
    for hint in shown:
        out.print(f"hint: {hint}")
    if len(shown) < len(facts["hints"]):
        out.print(f"and {plural(len(facts['hints']) - len(shown), 'more note')}")
    if shown:
        out.print()
    spec, is_pool = REGRESSORS[facts["model"]], facts["model"] == REGRESSOR.name
    what = f"pool of {plural(len(facts['members']) - 1, 'regression')}" if is_pool else spec.title
    out.print(f"saved to {facts['output']}: a {what}", soft_wrap=True)
    out.print(f"new rows: posteriori predict {shlex.quote(facts['output'])} TABLE", soft_wrap=True)
    if not details:
        out.print(f"columns{', scores and members' if is_pool else ' and scores'}: --details")


def print_regressor(facts: Facts) -> None:
    """Print the members and the columns of a regressor."""
    out = console()
    out.print(f"{facts['model']} of {label_text(facts['target'])}, {count(facts['n_parameters'])} parameters")
    out.print()
    if facts["members"]:  # none after partial_fit and unlearn
        print_sentences(out, facts["summary"])
        out.print()
        _print_scores(out, facts["members"])
    table = new_table("column", "kind", left=2)
    for column in facts["columns"]:
        categories = f" of {column['n_categories']}" if "n_categories" in column else ""
        table.add_row(label_text(column["name"]), column.get("reason", f"{column['kind']}{categories}"))
    print_table(out, table)
    if "importance" in facts:
        _print_importance(out, facts)


def print_number_cv(facts: Facts) -> None:
    """Print the cross-validated scores of models, or of the members and of the pool."""
    out = console()
    folds = f"{facts['folds']}-fold cross-validation"
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {folds} of {label_text(facts['target'])}\n")
    _print_scores(out, facts["models"])


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


def _print_scores(out: Console, models: Sequence[Facts]) -> None:
    """Print a line for each member of a pool, with its weight, and one for the pool; or one for each model."""
    of_pool = any("weight" in one for one in models)
    head = ["member", "weight"] if of_pool else ["model"]
    table = new_table(*head, *(_SHORT.get(key, name) for key, name in NUMBER_SCORES.items()))
    for one in models:
        name = one["member"]
        weight = [] if not of_pool else [""] if name == "pool" else [f"{one['weight']:.2f}"]
        table.add_row(name, *weight, *(number(one[key]) for key in NUMBER_SCORES))
    print_table(out, table)
    out.print("CRPS, RMSE, MAE and width are in units of the target; coverage and width are of 90% intervals\n")
