"""The terminal page of fit."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console

from posteriori.cli.alerts import print_alerts
from posteriori.cli.facts import Facts
from posteriori.cli.options import unlabelled_line
from posteriori.cli.tables import (
    NAME,
    console,
    fits,
    label_text,
    new_table,
    print_candidates,
    print_information,
    print_parameter_count,
    print_scores,
    print_table,
)
from posteriori.densities import column_label
from posteriori.support.formatting import number, plural

_WIDE = 100  # columns of a terminal


def print_fit(facts: Facts) -> None:
    """Print the columns of the table, the scores of the model and its feature importance."""
    out = console()
    n_features = len({column.get("part_of", column["name"]) for column in facts["columns"]})
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {plural(n_features, 'feature')}")
    out.print(_class_line(facts, out.width))
    if facts["unlabelled"]["rows"]:
        out.print(unlabelled_line(facts["unlabelled"]))
    out.print()
    _print_columns(out, facts["columns"])
    for hint in facts["hints"]:
        out.print(f"hint: {hint}")
    if facts["hints"]:
        out.print()
    print_alerts(out, facts["alerts"], beside=["constant"])
    found = facts["cross_validation"]
    n_labelled = sum(entry["rows"] for entry in facts["classes"])
    subsample = f" on {found['rows']:,} of the rows" if found["rows"] < n_labelled else ""
    print_scores(out, f"{found['folds']}-fold cross-validation{subsample}", found)
    if facts["candidates"]:
        print_candidates(out, facts["candidates"], facts["pool_verdict"])
    reasons: dict[str, list[str]] = {}
    for name, reason in facts["left_out"].items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        out.print(f"left out: {', '.join(names)} ({reason})")
    _print_verdict(out, found)
    print_information(out, facts)
    print_parameter_count(out, facts)
    out.print(f"saved to {facts['output']}", soft_wrap=True)
    if facts["report"]:
        out.print(f"report: {facts['report']}", soft_wrap=True)


def _class_line(facts: Facts, width: int) -> str:
    """Return the classes with their rows, as many as fit on one line."""
    entries = [f"{label_text(entry['class'])} {entry['rows']:,}" for entry in facts["classes"]]
    start = f"target {label_text(facts['target'])} of {plural(len(entries), 'class')}: "
    for shown in range(len(entries), 0, -1):
        more = f" and {len(entries) - shown} more" if shown < len(entries) else ""
        line = start + ", ".join(entries[:shown]) + more
        if len(line) <= width:
            break
    return line


def _print_columns(out: Console, columns: Sequence[Facts]) -> None:
    table = new_table("column", "kind", "missing", "values")
    table.columns[0].max_width = NAME if out.width >= _WIDE else 24
    table.columns[1].justify = table.columns[3].justify = "left"
    table.columns[3].ratio = 1
    for column in columns:
        missing = f"{column['missing']:,} ({column['missing_share']:.1%})" if column["missing"] else "0"
        kind = column["kind"]
        if "cuts" in column:
            kind = plural(len(column["cuts"]) + 1, "bin")
        elif kind == "continuous":
            kind = column_label(column["distribution"], kind)
        table.add_row(label_text(column["name"]), kind, missing, _values(column))
    table.expand = not fits(out, table)
    print_table(out, table)


def _values(column: Facts) -> str:
    if "reason" in column:
        return str(column["reason"])
    if column["kind"] == "categorical":
        first = ", ".join(map(label_text, column["first_categories"]))
        more = ", …" if column["n_categories"] > len(column["first_categories"]) else ""
        return f"{column['n_categories']}: {first}{more}" if first else "none"
    if "n_words" in column:
        return plural(column["n_words"], "word")
    if column["mean"] is None:
        return "none"
    spread = f" ± {number(column['sd'])}" if column["sd"] is not None else ""
    return f"{number(column['mean'])}{spread}, {number(column['min'])} to {number(column['max'])}"


def _print_verdict(out: Console, found: Facts) -> None:
    """Print why the log-loss is no better than that of the class prior, if it is not."""
    loss, of_prior = found["model"]["log_loss"], found["class_prior"]["log_loss"]
    if found["verdict"] == "uninformative":
        out.print(
            f"hint: these columns carry no information about the target: log-loss {loss:.4f} against {of_prior:.4f} "
            "for the class prior\n"
        )
    elif found["verdict"] == "overconfident":
        out.print(
            "hint: the log-loss is above that of the class prior: features that depend on each other make "
            "the probabilities over-confident; trust the predicted classes more than their probabilities\n"
        )
