"""The terminal pages of show: the parameters of a model, and the members of a pool."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from rich.console import Console

from posteriori.cli.tables import (
    MOST_FEATURES,
    bar,
    console,
    label_text,
    new_table,
    print_alerts,
    print_candidates,
    print_grid,
    print_information,
    print_parameter_count,
    print_rows,
    print_sentences,
    print_table,
)
from posteriori.support.formatting import count, number, plural, probability

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_MOST_CATEGORIES = 20


def _print_head(facts: Facts) -> tuple[Console, str, list[str]]:
    """Print what the model is and its summary; return the console, the target and the classes."""
    out = console()
    rows = f", learned from {facts['rows']:,.10g} rows" if facts["rows"] is not None else ""
    target = facts["target"] if facts["target"] is not None else "class"
    out.print(f"{facts['model']} of {target}{rows}")
    print_parameter_count(out, facts)
    out.print()
    print_sentences(out, facts["summary"])
    if facts["summary"]:
        out.print()
    return out, target, [label_text(label) for label in facts["classes"]]


def print_classes(facts: Facts) -> None:
    """Print what is known of a model of classes or of a mixture."""
    (_print_pool if "members" in facts else _print_model)(facts)


def _print_pool(facts: Facts) -> None:
    """Print the members, candidates and feature importance of a pool."""
    out, target, labels = _print_head(facts)
    values = [[probability(p) for p in facts["prior"]], [f"{b:+.4f}" for b in facts["bias"]]]
    print_grid(out, target, ["prior", "bias (nats)"], labels, values)
    table = new_table("member", "name", "weight", "parameters", left=2)
    for one in facts["members"]:
        table.add_row(one["sees"], one["member"], f"{one['weight']:.4f}", count(one["n_parameters"]))
    print_table(out, table)
    if facts["candidates"]:
        print_candidates(out, facts["candidates"], facts["pool_verdict"])
    print_information(out, facts)
    print_alerts(out, facts["alerts"])


def _print_model(facts: Facts) -> None:
    """Print the parameters of a model."""
    out, target, labels = _print_head(facts)
    parts = [label_text(one["name"]) for one in facts["components"]] if facts["components"] else labels
    print_grid(out, f"p({target})", ["probability"], labels, [[probability(p) for p in facts["prior"]]])
    numeric: dict[str, list[Facts]] = {}
    for column in facts["columns"]:
        if "reason" in column:
            out.print(f"{label_text(column['name'])} is ignored: {column['reason']}\n", soft_wrap=True)
        elif "n_words" in column:
            _print_words(out, column)
        elif "probability" not in column:
            numeric.setdefault(column["distribution"], []).append(column)
    for distribution, columns in numeric.items():
        if not _described(columns[0]):
            out.print(f"{distribution}: the density has no description of its parameters\n")
            continue
        title, cells = _numeric_cells(distribution, columns)
        print_grid(out, title, [label_text(column["name"]) for column in columns], parts, cells)
    masked = [column for column in facts["columns"] if "p_missing" in column]
    if masked:
        names = [label_text(column["name"]) for column in masked]
        print_grid(out, "p(missing | class)", names, labels, [[probability(p) for p in c["p_missing"]] for c in masked])
    for covariance in facts["covariances"]:
        _print_correlations(out, covariance)
    for tree in facts["trees"]:
        _print_tree(out, tree)
    for column in facts["columns"]:
        if column.get("categories"):
            _print_categories(out, column, labels)
    print_alerts(out, facts["alerts"])


def _print_words(out: Console, column: Facts) -> None:
    """Print the words that distinguish each class from the others, with what one occurrence adds to its log-odds."""
    name = label_text(column["name"])
    out.print(f"{name}: {column['distribution']}, {plural(column['n_words'], 'word')}")
    for one in column.get("words", ()):
        words = ", ".join(f"{label_text(word['word'])} {word['log_odds']:+.2f}" for word in one["words"])
        out.print(f"  speak for {label_text(one['class'])}: {words or 'none'}", soft_wrap=True)
    out.print()


def _print_tree(out: Console, facts: Facts) -> None:
    """Print the edges of a tree with their conditional mutual information."""
    given = "the class" if facts["class"] is None else label_text(facts["class"])
    table = new_table(f"feature, given {given}", "depends on", "nats", "", left=2)
    table.columns[3].justify = "left"
    greatest = max((edge["nats"] for edge in facts["edges"]), default=0.0)
    for edge in facts["edges"]:
        child, parent = label_text(edge["child"]), label_text(edge["parent"])
        table.add_row(child, parent, f"{edge['nats']:.4f}", bar(edge["nats"], greatest))
    print_rows(out, table)
    out.print()


def _print_correlations(out: Console, facts: Facts) -> None:
    """Print the correlations below the diagonal, or the strongest ones if there are many columns."""
    names = [label_text(name) for name in facts["columns"]]
    correlation = np.asarray(facts["correlation"])
    given = "the class" if facts["class"] is None else label_text(facts["class"])
    below = [(i, j) for i in range(1, len(names)) for j in range(i)]
    if not below:
        return
    if len(names) <= MOST_FEATURES:
        cells = [
            [f"{correlation[i, j]:.2f}" if j < i else "" for j in range(len(names) - 1)] for i in range(len(names))
        ]
        print_grid(out, f"correlations given {given}", names[1:], names[:-1], cells[1:])
        return
    below.sort(key=lambda pair: -abs(correlation[pair]))
    rows = [f"{names[i]}, {names[j]}" for i, j in below[:_MOST_CATEGORIES]]
    note = f", {len(rows)} of {len(below)}, the strongest (all with --json)" if len(rows) < len(below) else ""
    cells = [[f"{correlation[pair]:.2f}"] for pair in below[:_MOST_CATEGORIES]]
    print_grid(out, f"correlations given {given}{note}", rows, ["correlation"], cells)


def _described(column: Facts) -> list[str]:
    """Return the names of the parameters that the density of a column describes."""
    return [key for key, value in column.items() if isinstance(value, np.ndarray)]


def _numeric_cells(distribution: str, columns: Sequence[Facts]) -> tuple[str, list[list[str]]]:
    fields = _described(columns[0])
    if fields == ["mean", "variance"]:  # by contract those of the cells, in data units (`DescribedDensity.describe`)
        title = f"{distribution}: mean ± standard deviation given the class"
        cells = [
            [f"{number(mean)} ± {number(sd)}" for mean, sd in zip(c["mean"], np.sqrt(c["variance"]), strict=True)]
            for c in columns
        ]
        return title, cells
    title = f"{distribution}: {', '.join(fields)} given the class"
    return title, [[" ".join(map(number, row)) for row in zip(*(c[f] for f in fields), strict=True)] for c in columns]


def _print_categories(out: Console, column: Facts, labels: Sequence[str]) -> None:
    table = np.asarray(column["probability"])
    order = list(range(table.shape[1]))
    note = ""
    if len(order) > _MOST_CATEGORIES:
        likely = np.argsort(-(table.T @ np.ones(len(labels))), kind="stable")[:_MOST_CATEGORIES]
        note = f", {_MOST_CATEGORIES} of {len(order)} categories (all with --json)"
        order = sorted(likely.tolist())
    names = [label_text(column["categories"][k]) for k in order]
    cells = [[probability(p) for p in table[:, k]] for k in order]
    print_grid(out, f"p({label_text(column['name'])} | class){note}", names, labels, cells)
