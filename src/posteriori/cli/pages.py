"""What each command prints for people: facts laid out as tables."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from rich.console import Console

from posteriori.cli.facts import Facts
from posteriori.cli.label_options import unlabelled_line
from posteriori.cli.tables import (
    NAME,
    console,
    count,
    fits,
    label_text,
    new_table,
    number,
    print_grid,
    print_table,
    share,
)
from posteriori.densities import column_label
from posteriori.explain import Explanation
from posteriori.explain.merging import merge_classes

_MOST_FEATURES = 10
_MOST_CATEGORIES = 20


# fit ----------------------------------------------------------------------------------------------


def print_fit(facts: Facts) -> None:
    """Print what a fit has found."""
    out = console()
    features = f"{len(facts['columns'])} feature{'s' if len(facts['columns']) > 1 else ''}"
    out.print(f"{facts['table']}: {facts['rows']:,} rows, {features}")
    out.print(_class_line(facts, out.width))
    if facts["unlabelled"]["rows"]:
        out.print(unlabelled_line(facts["unlabelled"]))
    out.print()
    _print_columns(out, facts["columns"])
    for hint in facts["hints"]:
        out.print(f"hint: {hint}")
    if facts["hints"]:
        out.print()
    found = facts["cross_validation"]
    some = f" on {found['rows']:,} of the rows" if found["rows"] < sum(one["rows"] for one in facts["classes"]) else ""
    _print_scores(out, f"{found['folds']}-fold cross-validation{some}", found)
    if facts["candidates"]:
        _print_candidates(out, facts["candidates"])
    reasons: dict[str, list[str]] = {}
    for name, reason in facts["left_out"].items():
        reasons.setdefault(reason, []).append(name)
    for reason, names in reasons.items():
        out.print(f"left out: {', '.join(names)} ({reason})")
    _print_verdict(out, found)
    _print_information(out, facts)
    _print_parameter_count(out, facts)
    out.print(f"saved to {facts['output']}", soft_wrap=True)
    if facts["report"]:
        out.print(f"report: {facts['report']}", soft_wrap=True)


def _print_candidates(out: Console, candidates: Sequence[Facts]) -> None:
    table = new_table("candidate", "log-loss (nats)", "accuracy", "weight")
    for one in candidates:
        pool = one["member"] == "pool"
        loss, right = (f"{one[name]:.3f} ± {one[f'{name}_se']:.3f}" for name in ("log_loss", "accuracy"))
        weight = "" if pool else f"{one['weight']:.2f}"
        table.add_row(one["member"], loss, right, weight)
    print_table(out, table)
    described = [one for one in candidates if one["description"]]
    for one in described:
        out.print(f"{one['member']}: {one['description']}")
    if described:
        out.print()


def print_pool(facts: Facts) -> None:
    """Print what a pool consists of."""
    out = console()
    target = facts["target"] if facts["target"] is not None else "class"
    out.print(f"{facts['model']} of {target}, learned from {facts['rows']:,.10g} rows")
    _print_parameter_count(out, facts)
    out.print()
    labels = [label_text(label) for label in facts["classes"]]
    values = [[share(p) for p in facts["prior"]], [f"{b:+.4f}" for b in facts["bias"]]]
    print_grid(out, target, ["prior", "bias (nats)"], labels, values)
    table = new_table("member", "weight", "parameters")
    for one in facts["members"]:
        table.add_row(one["member"], f"{one['weight']:.4f}", count(one["n_parameters"]))
    print_table(out, table)
    _print_candidates(out, facts["candidates"])
    _print_information(out, facts)


def _class_line(facts: Facts, width: int) -> str:
    """Return the classes and their rows, as many as fit one line."""
    entries = [f"{label_text(entry['class'])} {entry['rows']:,}" for entry in facts["classes"]]
    plural = "es" if len(entries) > 1 else ""
    start = f"target {label_text(facts['target'])} of {len(entries)} class{plural}: "
    for shown in range(len(entries), 0, -1):
        more = f" and {len(entries) - shown} more" if shown < len(entries) else ""
        line = start + ", ".join(entries[:shown]) + more
        if len(line) <= width:
            break
    return line


def _print_columns(out: Console, columns: Sequence[Facts]) -> None:
    table = new_table("column", "kind", "missing", "values")
    table.columns[0].max_width = NAME if out.width >= 100 else 24
    table.columns[1].justify = table.columns[3].justify = "left"
    table.columns[3].ratio = 1
    for column in columns:
        missing = f"{column['missing']:,} ({column['missing_share']:.1%})" if column["missing"] else "0"
        kind = column["kind"]
        if "cuts" in column:
            bins = len(column["cuts"]) + 1
            kind = f"{bins} bin{'s' if bins > 1 else ''}"
        elif kind == "continuous":
            kind = column_label(column["distribution"], kind)
        table.add_row(label_text(column["name"]), kind, missing, _values(column))
    table.expand = not fits(out, table)
    print_table(out, table)


def _values(column: Facts) -> str:
    if column["kind"] == "categorical":
        first = ", ".join(map(label_text, column["first_categories"]))
        more = ", …" if column["n_categories"] > len(column["first_categories"]) else ""
        return f"{column['n_categories']}: {first}{more}" if first else "none"
    if column["mean"] is None:
        return "none"
    spread = f" ± {number(column['sd'])}" if column["sd"] is not None else ""
    return f"{number(column['mean'])}{spread}, {number(column['min'])} to {number(column['max'])}"


def _print_scores(out: Console, title: str, found: Facts) -> None:
    table = new_table(title, "model", "class prior")
    names = {"accuracy": "accuracy", "log_loss": "log-loss (nats)", "brier_score": "Brier score"}
    for key, name in names.items():
        table.add_row(name, f"{found['model'][key]:.4f}", f"{found['class_prior'][key]:.4f}")
    print_table(out, table)


def _print_verdict(out: Console, found: Facts) -> None:
    """Say why the log-loss is no better than that of the class prior, where it is not."""
    loss, of_prior = found["model"]["log_loss"], found["class_prior"]["log_loss"]
    if found["verdict"] == "uninformative":
        out.print(
            f"hint: these columns tell nothing about the target: log-loss {loss:.4f} against {of_prior:.4f} for the "
            "class prior\n"
        )
    elif found["verdict"] == "overconfident":
        out.print(
            "hint: the log-loss is above that of the class prior: features that depend on each other make "
            "the probabilities over-confident; trust the predicted classes more than how sure they look\n"
        )


def _print_information(out: Console, facts: Facts) -> None:
    """Print the feature importance, with standard errors, the greatest first."""
    features, measured = facts["information"], facts["information_rows"]
    table = new_table("feature importance", "nats lost without it", "")
    table.columns[0].max_width = NAME
    table.columns[2].justify = "left"
    greatest = max((feature["nats"] for feature in features), default=0.0)
    for feature in features[:_MOST_FEATURES]:
        nats = f"{feature['nats']:.4f} ± {feature['standard_error']:.4f}"
        table.add_row(label_text(feature["feature"]), nats, _bar(feature["nats"], greatest))
    out.print(table)
    if len(features) > _MOST_FEATURES:
        rest = len(features) - _MOST_FEATURES
        out.print(f"and {rest} more feature{'s' if rest > 1 else ''}")
    rows = f"{measured['rows']:,}"
    where = f"on {rows} held-out rows" if measured["held_out"] else f"expected by the model, over {rows} rows it drew"
    out.print(f"log-loss added when the column is unknown, {where}\n")


def _bar(nats: float, greatest: float) -> str:
    return "█" * round(24 * nats / greatest) if greatest > 0 else ""


def _print_parameter_count(out: Console, facts: Facts) -> None:
    full = facts["n_parameters_full_joint"]
    beside = f" ({count(full)} without independence given the class)" if full is not None else ""
    out.print(f"{count(facts['n_parameters'])} parameters{beside}")


# evaluate -----------------------------------------------------------------------------------------


def print_evaluation(facts: Facts) -> None:
    """Print how good predictions are."""
    out = console()
    _print_scores(out, f"{facts['table']}, {facts['rows']:,} rows", facts)
    labels = [label_text(entry["class"]) for entry in facts["classes"]]
    _print_confusion(out, labels, facts["confusion"])
    table = new_table("class", "rows", "precision", "recall")
    for label, entry in zip(labels, facts["classes"], strict=True):
        table.add_row(label, f"{entry['rows']:,}", share(entry["precision"]), share(entry["recall"]))
    print_table(out, table)
    table = new_table("calibration: p(class predicted)", "rows", "mean p", "accuracy", "gap")
    for entry in facts["calibration"]:
        if entry["rows"]:
            gap = f"{entry['accuracy'] - entry['confidence']:+.4f}"
            bounds = f"{entry['from']:.1f} to {entry['to']:.1f}"
            table.add_row(bounds, f"{entry['rows']:,}", share(entry["confidence"]), share(entry["accuracy"]), gap)
    print_table(out, table)
    out.print(f"expected calibration error {facts['expected_calibration_error']:.4f}")


def _print_confusion(out: Console, labels: Sequence[str], confusion: Any) -> None:
    cells = [[str(cell) if cell else "·" for cell in row] for row in confusion]
    named = new_table("true ↓  predicted →", *labels)
    positions = [str(position) for position in range(1, len(labels) + 1)]
    numbered = new_table("true ↓  predicted →", *positions)
    for position, label, row in zip(positions, labels, cells, strict=True):
        named.add_row(label, *row)
        numbered.add_row(f"{position:>{len(positions[-1])}} {label}", *row)
    for table in (named, numbered):
        if fits(out, table):
            print_table(out, table)
            return
    mistakes = [(amount, t, p) for t, row in enumerate(confusion) for p, amount in enumerate(row) if t != p and amount]
    mistakes.sort(key=lambda mistake: -mistake[0])
    table = new_table("most frequent mistakes: true", "predicted", "rows", left=2)
    for amount, t, p in mistakes[:_MOST_CATEGORIES]:
        table.add_row(labels[t], labels[p], f"{amount:,}")
    out.print(table)
    if len(mistakes) > _MOST_CATEGORIES:
        out.print(f"and {len(mistakes) - _MOST_CATEGORIES} more kinds of mistakes (all with --json)")
    out.print()


# explain ------------------------------------------------------------------------------------------


def print_explanation(explanation: Explanation, row: int) -> None:
    """Print Bayes' rule for one row, and what each feature adds to the log-odds of its two best classes."""
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
    while length > 6 and _width(text) > out.width:
        length -= 2
        text = _shortened(shown, length).bayes_table()
    out.print(f"row {row}\n")
    out.print(text, soft_wrap=True)
    if kept < len(ranked):
        out.print(
            f"\n{len(ranked) - kept} classes of smaller posterior stand together as one; the likelihood of a "
            "feature is there given the features above it, so that the column still multiplies to its joint."
        )
    if len(ranked) < 2:
        return
    _print_log_odds(out, explanation)


def _print_log_odds(out: Console, explanation: Explanation) -> None:
    """Print what the prior and each feature add to the log-odds of the two best classes, the most first."""
    log_odds = explanation.log_odds()
    entries = [("prior", "", log_odds.prior)]
    cells = zip(log_odds.factors.items(), explanation.values[0], strict=True)
    entries += [(label_text(name), _cell(value), nats) for (name, nats), value in cells]
    greatest = max((abs(nats) for *_, nats in entries if math.isfinite(nats)), default=0.0)
    table = new_table("adds to the log-odds", "value", "nats", "")
    table.columns[1].justify = table.columns[3].justify = "left"
    for name, value, nats in sorted(entries, key=lambda entry: -abs(entry[2])):
        bar = "█" * round(12 * abs(nats) / greatest) if greatest > 0 and math.isfinite(nats) else ""
        table.add_row(name, value, f"{nats:+.4f}", bar)
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
    """Return the width of the table proper: the sentence on the evidence may wrap."""
    return max(len(line) for line in text.splitlines() if not line.startswith("evidence"))


def _shortened(explanation: Explanation, length: int) -> Explanation:
    """Return the explanation with long names, values and classes cut short."""

    def cut(cell: Any) -> Any:
        return cell[: length - 1] + "…" if isinstance(cell, str) and len(cell) > length else cell

    values = np.empty_like(explanation.values)
    values[0] = [cut(cell) for cell in explanation.values[0]]
    classes = np.array([cut(str(label)) for label in explanation.classes], dtype=object)
    names = tuple(cut(name) for name in explanation.feature_names)
    return dataclasses.replace(explanation, classes=classes, feature_names=names, values=values)


# show ---------------------------------------------------------------------------------------------


def print_model(facts: Facts) -> None:
    """Print the parameters of a model."""
    out = console()
    rows = f", learned from {facts['rows']:,.10g} rows" if facts["rows"] is not None else ""
    target = facts["target"] if facts["target"] is not None else "class"
    out.print(f"{facts['model']} of {target}{rows}")
    _print_parameter_count(out, facts)
    out.print()
    labels = [label_text(label) for label in facts["classes"]]
    parts = [label_text(one["name"]) for one in facts["components"]] if facts["components"] else labels
    print_grid(out, f"p({target})", ["probability"], labels, [[share(p) for p in facts["prior"]]])
    numeric: dict[str, list[Facts]] = {}
    for column in facts["columns"]:
        if "probability" not in column:
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
        print_grid(out, "p(missing | class)", names, labels, [[share(p) for p in c["p_missing"]] for c in masked])
    for covariance in facts["covariances"]:
        _print_correlations(out, covariance)
    for tree in facts["trees"]:
        _print_tree(out, tree)
    for column in facts["columns"]:
        if column.get("categories"):
            _print_categories(out, column, labels)


def _print_tree(out: Console, facts: Facts) -> None:
    """Print the edges of a tree, with the information that makes them."""
    given = "the class" if facts["class"] is None else label_text(facts["class"])
    table = new_table(f"feature, given {given}", "depends on", "nats", "")
    table.columns[1].justify = table.columns[3].justify = "left"
    greatest = max((edge["nats"] for edge in facts["edges"]), default=0.0)
    for edge in facts["edges"]:
        child, parent = label_text(edge["child"]), label_text(edge["parent"])
        table.add_row(child, parent, f"{edge['nats']:.4f}", _bar(edge["nats"], greatest))
    out.print(table)
    out.print()


def _print_correlations(out: Console, facts: Facts) -> None:
    """Print the correlations below the diagonal; of very many columns, the strongest."""
    names = [label_text(name) for name in facts["columns"]]
    correlation = np.asarray(facts["correlation"])
    given = "the class" if facts["class"] is None else label_text(facts["class"])
    below = [(i, j) for i in range(1, len(names)) for j in range(i)]
    if not below:
        return
    if len(names) <= _MOST_FEATURES:
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
    probability = np.asarray(column["probability"])
    order = list(range(probability.shape[1]))
    note = ""
    if len(order) > _MOST_CATEGORIES:
        likely = np.argsort(-(probability.T @ np.ones(len(labels))), kind="stable")[:_MOST_CATEGORIES]
        note = f", {_MOST_CATEGORIES} of {len(order)} categories (all with --json)"
        order = sorted(likely.tolist())
    names = [label_text(column["categories"][k]) for k in order]
    cells = [[share(p) for p in probability[:, k]] for k in order]
    print_grid(out, f"p({label_text(column['name'])} | class){note}", names, labels, cells)
