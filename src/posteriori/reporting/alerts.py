"""Alerts: properties of columns that are often mistakes in the data."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, fdtrc

from posteriori.facts.columns import ColumnFacts
from posteriori.learning.redundant_columns import average_ranks
from posteriori.model import known_cells
from posteriori.plotting.reading import Scale, cells_of, evenly, read_batch
from posteriori.reading.spellings import spelled_alike
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import number, numbers, paragraph, percent, table
from posteriori.support.formatting import count, listed, plural
from posteriori.support.markup import Html, details, joined
from posteriori.support.typing import Array
from posteriori.tables.rows import take_rows

_MOST_ROWS = 5000
_MISSING = 0.3
_ZEROS = 0.5
_LEAK_BINS = 20
_LEAK = 0.1  # of the entropy of the classes is left when the column alone is known
_BLOCKS = 10  # along the rows
_FEWEST_IN_BLOCK = 20
_CHANGED = 0.06  # share of the variation that lies between the blocks
_SIGNIFICANT = 1e-6
_RARE_CLASS = 10  # rows
_IF_TIME = (
    "If the order is time, it drifts, and scores of rows that are held out at random are optimistic for later rows: "
    "fit the earlier rows and evaluate the later ones"
)
_MOST_ALERTS = 200
_MOST_UNFOLDED = 4  # of one kind
LEAKS = ("predicts the class alone", "predicts the class by its gaps")  # the gravest kinds: they come first, unfolded
_LEAKING = 0.01  # of the filled or of the missing cells at most are in rows of other classes


@dataclass(frozen=True)
class Alert:
    """Property of a column, or of several, that deserves a look."""

    columns: tuple[str, ...]
    kind: str  # such as "constant" or "many zeros"
    text: str  # one sentence with the figures


def find_alerts(
    subject: ReportData, facts: Sequence[ColumnFacts], class_counts: Sequence[int] | None = None
) -> list[Alert]:
    """Return the alerts on columns, by the facts of all rows and the cells of at most 5,000 rows, evenly spaced.

    Columns that predict the class alone, by their values or by their gaps, come first.
    """
    rows = evenly(len(subject.components), _MOST_ROWS)
    batch = read_batch(subject.estimator, take_rows(subject.X, rows))
    cells = [cells_of(batch, j) for j in range(len(facts))]
    components = subject.components[rows]
    dates = [one.column.source for one in facts if one.column.part is not None]
    if_time = f"{_IF_TIME} (posteriori fit --holdout-by {shlex.quote(dates[0])})." if dates else f"{_IF_TIME}."
    alerts = [*_rare_classes(subject, class_counts), *_copies(facts, cells)]
    filled = known_cells(batch)
    for j, (one, of_column) in enumerate(zip(facts, cells, strict=True)):
        name = one.column.name
        by_gaps = _leak_by_gaps(filled[:, j], components, subject.labels)
        if one.column.is_ignored:
            alerts.append(Alert((name,), "ignored", one.column.reason))
            continue
        for kind, sentence in _of_column(one, of_column, len(subject.components)):
            if not (by_gaps and kind in ("many missing cells", "constant")):
                alerts.append(Alert((name,), kind, sentence))
        gaps_of = Alert((one.column.source,), LEAKS[1], by_gaps or "")
        if by_gaps and gaps_of not in alerts:  # the parts of a date have its gaps
            alerts.append(gaps_of)
        text = _leak(of_column, components, one.column.kind == "categorical")
        if text:
            alerts.append(Alert((name,), LEAKS[0], text))
        text = _drift(of_column, components, one.column.kind == "categorical")
        if text:
            alerts.append(Alert((name,), "changes along the rows", f"{text} {if_time}"))
    return sorted(alerts, key=lambda one: LEAKS.index(one.kind) if one.kind in LEAKS else len(LEAKS))


def _rare_classes(subject: ReportData, class_counts: Sequence[int] | None) -> Iterator[Alert]:
    if class_counts is None:
        class_counts = np.bincount(subject.components[subject.labelled], minlength=len(subject.labels)).tolist()
    counts = np.asarray(class_counts)
    rare = [f"{subject.labels[c]} ({count(counts[c])})" for c in np.flatnonzero(counts < _RARE_CLASS)]
    if rare:
        text = f"Fewer than {_RARE_CLASS} rows: {listed(rare, 5)}. Their scores are uncertain."
        yield Alert((subject.target,), "rare classes", text)


def _copies(facts: Sequence[ColumnFacts], cells: Sequence[Array]) -> Iterator[Alert]:
    """Find columns of numbers that are linear functions of each other, and categories that rename each other."""
    groups: dict[bytes, list[str]] = {}
    for one, of_column in zip(facts, cells, strict=True):
        key = _fingerprint(of_column, one.column.kind == "categorical")
        if key is not None:
            groups.setdefault(key, []).append(one.column.name)
    for names in groups.values():
        if len(names) > 1:
            text = f"{listed(names, 5)} hold the same information: each can be computed from the other. Keep one."
            yield Alert(tuple(names), "duplicates", text)


def _fingerprint(cells: Array, categorical: bool) -> bytes | None:
    present = ~np.isnan(cells)
    known = cells[present]
    if not len(known) or known.min() == known.max():
        return None
    if categorical:
        _, first, position = np.unique(known, return_index=True, return_inverse=True)
        code = np.argsort(np.argsort(first))[position].astype(np.float64)
    else:
        known = known / np.abs(known).max()  # squares of large numbers would overflow
        code = (known - known.mean()) / known.std()
        code = np.round(code * np.sign(code[np.abs(code).argmax()]), 6) + 0.0
    return present.tobytes() + code.tobytes()


def _of_column(facts: ColumnFacts, cells: Array, n_rows: int) -> Iterator[tuple[str, str]]:
    missing, present = facts.cells.missing, facts.cells.present
    if missing >= _MISSING * n_rows:
        yield "many missing cells", f"{percent(missing / n_rows)} of the cells are missing."
    if present and (
        np.count_nonzero(facts.counts) == 1 if facts.counts is not None else facts.cells.lowest == facts.cells.highest
    ):
        what = "All cells hold the same value" if not missing else "All observed cells hold the same value"
        yield "constant", f"{what}; the column cannot inform."
        return
    alike = spelled_alike(facts.column.categories)
    if alike:
        n_spellings = len(facts.column.categories)
        n_values = n_spellings - sum(len(group) - 1 for group in alike)
        text = f"{n_spellings} spellings of {n_values} values, such as {', '.join(map(repr, alike[0][:4]))}."
        yield "spelled alike", text
    known = cells[~np.isnan(cells)]
    if facts.counts is not None or not len(known):
        return
    zeros = float(np.mean(known == 0.0))
    if zeros >= _ZEROS and len(np.unique(known)) > 2:
        rest = known[known != 0.0]
        low, high = np.quantile(rest, [0.05, 0.95])
        text = (
            f"{percent(zeros)} of the cells are 0; of the others, 90 % are from {number(low, 3)} to {number(high, 3)}."
        )
        yield "many zeros", text
    elif Scale.of(known).width is not None:
        text = f"The median is {number(float(np.median(known)), 3)}, but the largest distance from 0 is "
        yield "heavy tail", f"{text}{number(float(np.abs(known).max()), 4)}. The figures use a logarithmic axis."


def _leak(cells: Array, components: Array, categorical: bool) -> str | None:
    """Return a sentence if the column alone nearly determines the class.

    The class of a row is predicted from the classes of the other rows with the same category, or with a number in the
    same twentieth of the rows, so that a column that identifies rows does not count.
    """
    known = np.flatnonzero(~np.isnan(cells) & (components >= 0))
    label = components[known]
    prior = np.bincount(label) / max(len(label), 1)
    entropy = -float(prior[prior > 0] @ np.log(prior[prior > 0]))
    if entropy <= 0.0:
        return None
    if categorical:
        group = cells[known].astype(int)
    else:
        edges = np.unique(np.quantile(cells[known], np.linspace(0.0, 1.0, _LEAK_BINS + 1)[1:-1]))
        group = np.searchsorted(edges, cells[known])
    counts = np.zeros((group.max() + 1, len(prior)))
    np.add.at(counts, (group, label), 1.0)
    others = counts[group]
    others[np.arange(len(group)), label] -= 1.0
    posterior = (others + prior) / (others.sum(axis=1, keepdims=True) + 1.0)
    loss = -float(np.log(posterior[np.arange(len(group)), label]).mean())
    if loss > _LEAK * entropy:
        return None
    right = float(np.mean(posterior.argmax(axis=1) == label))
    return (
        f"Known alone, it predicts {percent(right)} of its rows correctly. Was it recorded after the class was known, "
        "or is it another name of the class?"
    )


def _leak_by_gaps(filled: Array, components: Array, labels: Sequence[Any]) -> str | None:
    """Return a sentence if a column is filled, or missing, in rows of one class only, beyond chance.

    `filled` says which cells are known, (n,).
    """
    labelled = components >= 0
    label, filled = components[labelled], filled[labelled]
    prior = np.bincount(label, minlength=len(labels)) / max(len(label), 1)
    for chosen, done in ((filled, "filled"), (~filled, "missing")):
        counts = np.bincount(label[chosen], minlength=len(labels))
        total, c = int(counts.sum()), int(counts.argmax())
        others = total - int(counts[c])
        if others > _LEAKING * total or not 0.0 < prior[c] < 1.0 or total * np.log(prior[c]) > np.log(_SIGNIFICANT):
            continue
        share = counts[c] / (prior[c] * len(label))
        beside = percent(others / (len(label) * (1.0 - prior[c]))) if others else "none"
        return (
            f"It is {done} in {percent(share)} of the rows of class {labels[c]}, and in {beside} of the others: that "
            f"it is {done} gives the class away. Was it recorded after the class was known?"
        )
    return None


def _drift(cells: Array, components: Array, categorical: bool) -> str | None:
    """Return a sentence if the cells depend on the position of their rows, within classes."""
    block = _blocks(components)
    known = np.flatnonzero(~np.isnan(cells) & (block >= 0))
    if len(known) < _BLOCKS * _FEWEST_IN_BLOCK:
        return None
    values, block, label = cells[known], block[known], components[known]
    if categorical:
        explained, p = _dependence(values.astype(int), block, label)
    else:
        rank = average_ranks(values)
        mean = np.bincount(label, rank) / np.maximum(np.bincount(label), 1)
        explained, p = _between_blocks(rank - mean[label], block)
    if explained < _CHANGED or p > _SIGNIFICANT:
        return None
    first, last = values[block < 2], values[block >= _BLOCKS - 2]
    if categorical or not len(first) or not len(last):
        return "Its categories are more frequent in some parts of the table."
    medians = [float(np.median(part)) for part in (first, last)]
    before, after = numbers(medians)
    if before == after:
        return "Its values differ between the parts of the table."
    return f"The median is {before} in the first fifth of the rows of each class, and {after} in the last fifth."


def _blocks(components: Array) -> Array:
    """Return for each row the tenth of the rows of its class in which it lies; −1 without a label.

    A table that is sorted by class does not change along its rows for this reason alone.
    """
    block = np.full(len(components), -1)
    for c in np.unique(components[components >= 0]):
        rows = np.flatnonzero(components == c)
        block[rows] = _BLOCKS * np.arange(len(rows)) // len(rows)
    return block


def _between_blocks(values: Array, block: Array) -> tuple[float, float]:
    """Return the share of the variance between the blocks, and its p-value (analysis of variance)."""
    n, counts = len(values), np.bincount(block, minlength=_BLOCKS)
    means = np.bincount(block, values, _BLOCKS) / np.maximum(counts, 1)
    total = float(((values - values.mean()) ** 2).sum())
    between = float(counts @ (means - values.mean()) ** 2)
    if total <= 0.0 or between >= total:
        return (0.0, 1.0) if total <= 0.0 else (1.0, 0.0)
    ratio = (between / (_BLOCKS - 1)) / ((total - between) / (n - _BLOCKS))
    return between / total, float(fdtrc(_BLOCKS - 1, n - _BLOCKS, ratio))


def chi_squared(table: Array) -> tuple[float, int]:
    """Return Pearson's statistic of a table of counts (r, c) without empty rows and columns, and (r − 1)(c − 1).

    Examples
    --------
    >>> chi_squared(np.array([[10.0, 20.0], [20.0, 10.0]]))
    (6.666666666666667, 1)
    """
    expected = table.sum(axis=1, keepdims=True) * table.sum(axis=0) / table.sum()
    return float(((table - expected) ** 2 / expected).sum()), (table.shape[0] - 1) * (table.shape[1] - 1)


def _dependence(codes: Array, block: Array, label: Array) -> tuple[float, float]:
    """Return Cramér's V² of the categories and the blocks within classes, and its p-value (chi-squared test)."""
    statistic, freedom = 0.0, 0
    for c in np.unique(label):
        table = np.zeros((codes.max() + 1, _BLOCKS))
        np.add.at(table, (codes[label == c], block[label == c]), 1.0)
        table = table[table.sum(axis=1) > 0][:, table.sum(axis=0) > 0]
        of_class, more = chi_squared(table)
        statistic, freedom = statistic + of_class, freedom + more
    kinds = len(np.unique(codes))
    if not freedom or kinds < 2:
        return 0.0, 1.0
    return statistic / (len(codes) * min(kinds - 1, _BLOCKS - 1)), float(chdtrc(freedom, statistic))


def alerts_table(alerts: Sequence[Alert]) -> Html:
    """Return the alerts as a table; the alerts of a kind that many columns have are folded."""
    if not alerts:
        return paragraph(
            "No alerts: no column is constant, a copy of another one, mostly missing or zero, heavy-tailed, sufficient "
            "alone, or changing along the rows.",
            class_="note",
        )
    of_kind: dict[str, list[Alert]] = {}
    for one in alerts:
        of_kind.setdefault(one.kind, []).append(one)
    folded = [kind for kind, found in of_kind.items() if len(found) > _MOST_UNFOLDED and kind not in LEAKS]
    few = [one for kind, found in of_kind.items() if kind not in folded for one in found]
    parts = [_table_of("Alerts", few)] if few else []
    for kind, found in of_kind.items():
        if kind in folded:
            names = listed([listed(list(one.columns), 3) for one in found], 6)
            parts.append(details(f"{plural(len(found), 'alert')} “{kind}”: {names}", _table_of(kind, found)))
    return joined(parts)


def _table_of(title: str, alerts: Sequence[Alert]) -> Html:
    rows = [[listed(list(one.columns), 3), one.kind, one.text] for one in alerts[:_MOST_ALERTS]]
    more = f", the first {len(rows)} of {len(alerts)}" if len(rows) < len(alerts) else ""
    return table(f"{title}{more}", ["column", "alert", "what was found"], rows, text=(0, 1, 2), stacks=True)
