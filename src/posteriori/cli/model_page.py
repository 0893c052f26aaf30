"""The terminal pages of show and cluster: the parameters of a model, and the members of one that has several."""

from __future__ import annotations

import shlex
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
    print_members,
    print_number_importance,
    print_parameter_count,
    print_rows,
    print_sentences,
    print_table,
)
from posteriori.facts.clusters import cells_in_words
from posteriori.support.formatting import count, number, plural, probability
from posteriori.tables import quote

if TYPE_CHECKING:
    from posteriori.facts.model import Facts

_MOST_CATEGORIES = 20
_MOST_COLUMNS = 8  # of clusters
_MOST_LINKS = 6


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


def print_regressor(facts: Facts) -> None:
    """Print the members and the columns of a regressor."""
    out = console()
    out.print(f"{facts['model']} of {label_text(facts['target'])}, {count(facts['n_parameters'])} parameters")
    out.print()
    if facts["members"]:  # none after partial_fit and unlearn
        print_sentences(out, facts["summary"])
        out.print()
        print_members(out, facts["members"])
    table = new_table("column", "kind", left=2)
    for column in facts["columns"]:
        categories = f" of {column['n_categories']}" if "n_categories" in column else ""
        table.add_row(label_text(column["name"]), column.get("reason", f"{column['kind']}{categories}"))
    print_table(out, table)
    print_number_importance(out, facts)


def print_joint(facts: Facts) -> None:
    """Print the members, columns and links of a joint model."""
    out = console()
    members = ", ".join(f"{one['member']} {one['weight']:.2f}" for one in facts["members"])
    out.print(f"joint model of {plural(len(facts['columns']), 'column')}, {count(facts['n_parameters'])} parameters")
    out.print(f"weights of the members: {members}")
    out.print("tree: one Chow-Liu tree; trees: a mixture of several trees")
    if facts["pools"]:
        out.print(pools_of(facts))
    out.print()
    table = new_table("column", "kind", "values", left=3)
    for column in facts["columns"]:
        values = "" if "reason" in column else "no value"
        if "n_categories" in column:
            values = f"{column['n_categories']} categories"
        elif "min" in column:
            values = f"{number(column['min'], 6)} to {number(column['max'], 6)}"
        kind = f"ignored: {column['reason']}" if "reason" in column else column["kind"]
        table.add_row(label_text(column["name"]), kind, values)
    print_table(out, table)
    print_links(out, facts["links"], details=True)


def print_links(out: Console, links: Sequence[Facts], details: bool) -> None:
    """Print the pairs of columns that depend on each other most."""
    if not links:
        out.print("No column depends on another one by more than chance.\n")
        return
    table = new_table("strongest links", "nats", "")
    table.columns[2].justify = "left"
    shown = links if details else links[:_MOST_LINKS]
    for one in shown:
        pair = " – ".join(map(label_text, one["columns"]))
        table.add_row(pair, f"{one['nats']:.3f}", bar(one["nats"], links[0]["nats"], 16))
    print_rows(out, table)
    if len(shown) < len(links):
        out.print(f"and {plural(len(links) - len(shown), 'more link')} (all with --details)")
    out.print("mutual information of two columns: what knowing one of them adds about the other\n")


def pools_of(facts: Facts) -> str:
    """Return which pools a joint model holds, in words."""
    return f"pools of single columns: {', '.join(map(label_text, facts['pools']))}"


def print_clusters(facts: Facts) -> None:
    """Print the candidates, and the clusters of the best one in their most informative columns."""
    out = console()
    columns = facts["columns"]
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {len(columns)} column{'s' if len(columns) > 1 else ''}\n")
    table = new_table("k", "log-likelihood (nats)", "parameters", "BIC", "AIC", "")
    for one in facts["candidates"]:
        figures = (f"{one[key]:,.1f}" for key in ("bic", "aic"))
        mark = "← lowest BIC" if one["best"] and len(facts["candidates"]) > 1 else ""
        mark += "" if one["converged"] else " not converged"
        table.add_row(str(one["k"]), f"{one['log_likelihood']:,.1f}", count(one["n_parameters"]), *figures, mark)
    table.columns[-1].justify = "left"
    print_table(out, table)
    if facts["edge"] is not None:
        out.print(f"{facts['edge']['message']}\n", soft_wrap=True)
    if facts["taken_as_categories"]:
        names = facts["taken_as_categories"]
        which = f"{quote(names, len(names))} {'hold' if len(names) > 1 else 'holds'} only a few whole numbers"
        again = shlex.quote(",".join(names))
        out.print(f"{which}, which are taken as categories; --numeric {again} makes them numbers\n", soft_wrap=True)
    labels = [str(one["component"]) for one in facts["clusters"]]
    sizes = [
        [f"{one['rows']:,}" for one in facts["clusters"]],
        [f"{one['share']:.1%}" for one in facts["clusters"]],
    ]
    print_grid(out, "clusters", ["rows", "p(component)"], labels, sizes)
    shown = columns[:_MOST_COLUMNS]
    title = "mean ± standard deviation, or the most frequent category; the most informative column first"
    print_grid(
        out,
        title,
        [label_text(one["name"]) for one in shown],
        labels,
        [cells_in_words(one, label_text) for one in shown],
    )
    if len(columns) > len(shown):
        out.print(f"and {len(columns) - len(shown)} more columns (all with --json)\n")
    if facts["assigned"] is not None:
        out.print(f"rows with their component written to {facts['assigned']}", soft_wrap=True)
    out.print(f"saved to {facts['output']}", soft_wrap=True)
