"""Overview of the table: classes, columns, missing cells."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posteriori.densities import column_label
from posteriori.facts.columns import ColumnFacts
from posteriori.model_selection import HeldOut, in_words
from posteriori.reporting.alerts import alerts_table, find_alerts
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import seen_rows
from posteriori.reporting.markup import Section, bar, cards, needs_groups, number, paragraph, percent, table
from posteriori.statistics.description import Cells
from posteriori.support.formatting import cell_text, count, plural
from posteriori.support.markup import Html, details, element
from posteriori.support.typing import Array

_ALL = 0.99  # the share of seen rows is an estimate
_MOST_CLASSES = 40
_MOST_COLUMNS = 500
_MOST_UNFOLDED = 40  # columns
_MOST_CATEGORIES = 5


def summary(subject: ReportData, evaluated: HeldOut, facts: Sequence[ColumnFacts]) -> list[Html]:
    """Return the opening sentence of the page and the cards with its key figures."""
    n_rows = len(subject.components)
    commonest = int(np.bincount(evaluated.y_true, evaluated.weight).argmax())
    missing, cells = sum(one.cells.missing for one in facts), n_rows * len(facts)
    columns = plural(len(facts), "column")
    phrases = in_words.class_phrases(subject.estimator.classes_.tolist(), subject.target)
    verdict = in_words.sentences(evaluated.figures, phrases)
    sentence = paragraph(
        "How well does the model predict ",
        element("strong", subject.target),
        f" from {columns}? ",
        element("strong", verdict[0]),
        " ".join(["", *verdict[1:]]) + (f" {evaluated.how}" if evaluated.rows_are != "held-out rows" else ""),
    )
    error = evaluated.standard_error(evaluated.right.astype(float))
    truth = float(np.exp(_mean_log(evaluated)))
    facts_shown = [
        ("Rows", count(n_rows), _unlabelled(n_rows - len(subject.labelled))),
        ("Columns", str(len(facts)), f"{percent(missing / cells)} of cells missing" if missing else "no missing cells"),
        ("Classes", str(len(subject.labels)), f"“{subject.labels[commonest]}” is the most frequent"),
        (
            "Accuracy",
            percent(evaluated.accuracy),
            f"± {percent(error)}",
        ),
        (
            "Probability of the true class",
            percent(truth),
            f"geometric mean; {percent(_chance(evaluated))} by the class prior",
        ),
    ]
    return [sentence, cards(facts_shown)]


def _unlabelled(rows: int) -> str:
    return f"{count(rows)} without label" if rows else "all labelled"


def _mean_log(evaluated: HeldOut) -> float:
    with np.errstate(divide="ignore"):
        return float(np.average(np.maximum(np.log(evaluated.of_truth), -36.0), weights=evaluated.weight))


def _chance(evaluated: HeldOut) -> float:
    of_truth = evaluated.prior[np.arange(len(evaluated.y_true)), evaluated.y_true]
    return float(np.exp(np.average(np.log(np.maximum(of_truth, 1e-16)), weights=evaluated.weight)))


def table_section(subject: ReportData, facts: Sequence[ColumnFacts]) -> Section:
    """Return the section that lists the classes, the columns, and alerts on columns."""
    lead = (
        f"{_relation(seen_rows(subject.estimator, subject.X))} Missing cells are not imputed: the model integrates "
        "them out and predicts from the observed cells."
    )
    counts = np.bincount(subject.components[subject.labelled], minlength=len(subject.labels))
    contents = [
        classes_table(subject.target, subject.labels, counts),
        columns_table(facts, len(subject.components)),
        alerts_table(find_alerts(subject, facts)),
    ]
    return Section("table", "Data overview", lead, tuple(contents))


def _relation(seen: float | None) -> str:
    """Return a sentence on the rows of the report, by the share of them that the model was trained on."""
    if seen is None:
        return "The rows of this report."
    if seen == 0.0:
        return "None of these rows is among those that the model was trained on."
    if seen > _ALL:
        return "The rows that the model was trained on."
    return f"About {percent(seen)} of these rows are among those that the model was trained on."


def classes_table(target: str, labels: Sequence[str], counts: Array) -> Html:
    """Return the class frequencies; if there are many classes, the most frequent first."""
    order = range(len(labels)) if len(labels) <= _MOST_CLASSES else np.argsort(-counts, kind="stable")[:_MOST_CLASSES]
    total = max(float(counts.sum()), 1.0)
    rows = [[labels[c], count(counts[c]), percent(counts[c] / total), bar(counts[c] / total)] for c in order]
    more = f", the {_MOST_CLASSES} most frequent of {len(labels)}" if len(labels) > len(rows) else ""
    return table(f"Classes of {target}{more}", [target, "rows", "share", ""], rows)


def columns_table(facts: Sequence[ColumnFacts], n_rows: int) -> Html:
    """Return the kind, the values and the missing cells of each column."""
    shown = facts[:_MOST_COLUMNS]
    most = max((one.cells.missing for one in facts), default=0)
    rows = [
        [
            one.column.name,
            _kind(one),
            _values(one),
            f"{count(one.cells.missing)} ({percent(one.cells.missing / n_rows)})" if one.cells.missing else "0",
            *([bar(one.cells.missing / n_rows, "quiet optional")] if most else []),
        ]
        for one in shown
    ]
    more = f", the first {len(shown)} of {len(facts)}" if len(shown) < len(facts) else ""
    grid = table(
        f"Columns{more}",
        ["column", "kind", "values", "missing", *([""] if most else [])],
        rows,
        text=(0, 1, 2),
        stacks=True,
    )
    return details(f"All {plural(len(facts), 'column')}", grid) if len(facts) > _MOST_UNFOLDED else grid


def _kind(facts: ColumnFacts) -> str:
    if facts.column.is_ignored:
        return "ignored"
    if facts.column.kind == "counts":
        return facts.column.shown_kind
    if facts.column.kind == "categorical":
        return "category"
    if facts.column.is_binned:
        bins = facts.column.cardinality
        return f"number, cut into {plural(bins, 'bin')}" + (" (uninformative)" if bins == 1 else "")
    return column_label(facts.distribution, "number")


def _values(facts: ColumnFacts) -> str:
    if facts.column.is_ignored:
        return facts.column.reason
    if facts.column.kind == "counts":
        return plural(facts.column.width, "word")
    if facts.counts is not None:
        return _categories(facts)
    cells = facts.cells
    if cells.mean is None:
        return "none"
    shown = [value for value in (cells.mean, cells.lowest, cells.highest, cells.sd) if value is not None]
    grouped = needs_groups(shown)  # one style within a line: 5,404 ± 11,574
    digits = _digits(cells)
    mean, low, high = (number(value, digits, grouped) for value in (cells.mean, cells.lowest, cells.highest))
    spread = f" ± {number(cells.sd, 3, grouped)}" if cells.sd is not None else ""
    return f"{mean}{spread}, from {low} to {high}"


def _digits(cells: Cells) -> int:
    """Return the digits needed to distinguish the numbers of a column: more if they are far from 0."""
    if not cells.mean or not cells.sd:
        return 4
    # An offset of 10^k standard deviations hides the first k digits.
    return int(np.clip(np.log10(abs(cells.mean) / cells.sd) + 3.0, 4, 15))


def _categories(facts: ColumnFacts) -> str:
    counts = facts.counts
    assert counts is not None
    total = counts.sum()
    if not total:
        return "none"
    order = np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]
    shown = [f"{cell_text(facts.column.categories[k])} {percent(counts[k] / total)}" for k in order if counts[k]]
    rest = int(np.count_nonzero(counts)) - len(shown)
    return ", ".join(shown) + (f" and {rest} more" if rest > 0 else "")
