"""Sections of a report on a joint model."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from posteriori.facts.columns import ColumnFacts
from posteriori.reporting.charts import NamesBelow, chart, cut_text, figure, text_width
from posteriori.reporting.joint_data import JointReport, StrangeCell, explained_share
from posteriori.reporting.markup import (
    Section,
    bar,
    cards,
    number,
    paragraph,
    percent,
    scrolled,
    table,
    tables,
)
from posteriori.reporting.overview import columns_table
from posteriori.support.formatting import count, listed, plural, shorten
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array

_MOST_DRAWN = 40  # columns of the map
_STEP, _LINE = 30.0, 22.0  # pixels, of a cell of the map
_DARK = 0.6  # shares on dark cells are in the colour of the paper
_STRANGE_CELLS, _STRANGE_ROWS, _CELLS_OF_ROW = 15, 10, 3
_MOST_REPEATED = 10
_MOST_POSITIONS, _MOST_CELLS = 5, 6
_MOST_NAMES = 12
_MOST_UNFOLDED = 40
_ROW = "row (from 0)"

JOINT_WORDS = {
    "Entropy": "How uncertain a cell is before anything is known of its row, in nats. 0 is a column of one value.",
    "Nats": (
        "The unit of natural logarithms of probabilities. A step of 0.69 nats halves a probability; a step of 2.3 nats "
        "divides it by ten."
    ),
    "Loss": "The mean of −log p(cell) in nats. It is 0 if each cell had probability 100 %.",
    "Explained": "The share of the loss of a column that the other cells of a row take away.",
    "Strangeness of a cell": (
        "−log p(cell | other cells of the row) minus its expectation, in nats: near 0 for usual cells. At 5 a cell is "
        "about 150 times less probable than cells of this kind are on average."
    ),
    "log p(x)": "The logarithm of the probability or density that the model gives to a row.",
}


def joint_summary(subject: JointReport, facts: Sequence[ColumnFacts]) -> list[Html]:
    """Return the opening sentence of the page and the cards with its key figures."""
    n_rows, missing = len(subject.batch), sum(one.cells.missing for one in facts)
    best = next(iter(subject.figures.items()), None)
    most = "" if best is None else f"The others explain {best[0]} best, {percent(explained_share(best[1]))} of it. "
    sentence = paragraph(
        "Which columns follow from which, and which cells do not fit? ",
        element("strong", most),
        "The fitted model judged the rows; if it has learned from them, the figures are too optimistic.",
    )
    share = missing / max(n_rows * len(facts), 1)
    repeats = sum(len(one) - 1 for one in subject.repeated)
    members = ", ".join(f"{name} {number(one, 2)}" for name, one in subject.model.member_weights_.items())
    return [
        sentence,
        cards(
            [
                ("Rows", count(n_rows), f"{plural(repeats, 'repeat')} of another row" if repeats else "no row repeats"),
                ("Columns", str(len(facts)), f"{plural(len(subject.law.columns), 'column')} modelled"),
                ("Missing cells", count(missing), percent(share) if missing else "none"),
                ("Derived columns", count(len(subject.derived)), "follow from others"),
                ("Members", str(len(subject.model.member_weights_)), members),
            ]
        ),
    ]


def joint_sections(subject: JointReport, facts: Sequence[ColumnFacts]) -> Iterator[Section]:
    """Yield the sections of the page."""
    yield _table_section(subject, facts)
    yield _map_section(subject)
    yield _derived_section(subject)
    yield _predictability_section(subject)
    yield _cells_section(subject)
    yield _rows_section(subject)
    yield _repeated_section(subject)


def _table_section(subject: JointReport, facts: Sequence[ColumnFacts]) -> Section:
    lead = (
        "Missing cells are not imputed: the model integrates them out. Members are mixed by their weights: “tree” is "
        "one Chow-Liu tree, “trees” a mixture of several trees."
    )
    weights = [[name, number(one, 3), bar(one)] for name, one in subject.model.member_weights_.items()]
    contents = (columns_table(facts, len(subject.batch)), table("Members", ["member", "weight", ""], weights))
    return Section("table", "Data overview", lead, contents)


def _map_section(subject: JointReport) -> Section:
    lead = (
        "How much of the entropy of a column does another one remove, when it alone is known? A line of the map is the "
        "column that is known, and the names below are those that it tells about, in percent: 100 where the one is a "
        "function of the other. Related columns are neighbours. Numbers count by their bins."
    )
    names, places = subject.law.names, subject.ordered(_MOST_DRAWN)
    if len(places) < 2:
        return Section("map", "Map of dependences", lead, (paragraph("There is only one column."),))
    share = subject.importance[np.ix_(places, places)]
    label = "Share of the entropy of a column (across) that another one (down) removes"
    more = f" The {len(places)} of {len(names)} columns with the strongest links." if len(places) < len(names) else ""
    drawn = scrolled(_heat_map([names[k] for k in places], share, label), "map of dependences")
    lines = [
        [names[i], names[j], percent(float(subject.importance[i, j])), bar(float(subject.importance[i, j]))]
        for i, j in _strongest(subject.importance)
    ]
    head = ["known", "tells about", "of its entropy", ""]
    contents = [figure(drawn, f"{label}, in percent.{more}")]
    contents += [table("Strongest dependences", head, lines, text=(0, 1))] if lines else []
    return Section("map", "Map of dependences", lead, tuple(contents))


def _strongest(importance: Array) -> list[tuple[int, int]]:
    """Return the pairs of the greatest shares, each in its stronger direction."""
    found = np.nan_to_num(importance)
    order = np.argsort(-found, axis=None, kind="stable")
    pairs = ((int(i), int(j)) for i, j in zip(*np.unravel_index(order, found.shape), strict=True))
    first = {frozenset(pair): pair for pair in reversed([p for p in pairs if found[p] >= 0.01])}
    return sorted(first.values(), key=lambda pair: -found[pair])[:_MOST_NAMES]


def _heat_map(names: Sequence[str], share: Array, label: str) -> Html:
    """Return shares of 1 as a grid of cells with their percentages, the names on the left and below."""
    shown = [shorten(name) for name in names]
    below = NamesBelow(tuple(names))
    left = below.left(max(map(text_width, shown)) + 10.0)
    bottom = _LINE * len(names)

    def parts() -> Iterator[Html]:
        for i, name in enumerate(names):
            middle = _LINE * (i + 0.5)
            yield cut_text(shown[i], name, x=f"{left - 6:.1f}", y=f"{middle:.1f}", class_="left")
            for j, other in enumerate(names):
                if np.isnan(share[i, j]):
                    continue
                x, value = left + _STEP * j, min(float(share[i, j]), 1.0)
                yield element(
                    "rect",
                    element("title", f"{name} removes {percent(value)} of the entropy of {other}"),
                    x=f"{x + 0.5:.1f}", y=f"{_LINE * i + 0.5:.1f}", width=_STEP - 1, height=_LINE - 1,
                    fill="var(--blue)", fill_opacity=f"{0.04 + 0.96 * value:.3f}",
                )  # fmt: skip
                if value >= 0.005:
                    style = "dominant-baseline:central" + (";fill:var(--paper)" if value > _DARK else "")
                    at = {"x": f"{x + _STEP / 2:.1f}", "y": f"{middle:.1f}"}
                    yield element(
                        "text", f"{100 * value:.0f}", **at, class_="middle", style=style, pointer_events="none"
                    )
        yield from below.written(left, _STEP, bottom)

    return chart(parts(), bottom + below.height(_STEP), label, left + _STEP * len(names) + 8.0, scrolls=True)


def _derived_section(subject: JointReport) -> Section:
    lead = (
        "A column that follows from another one, or from all others together, holds nothing new: it can be computed, "
        "and a cell that disagrees is wrong. Numbers count by their bins: they follow as far as their bin does."
    )
    rows = [[name, f"{name} follows from {_those(one)}"] for name, one in subject.derived.items()]
    contents: list[Html] = [
        *tables(
            (f"{plural(len(rows), 'column')} can be derived", "Further columns"),
            ["column", "follows from"], rows, _MOST_UNFOLDED, f"{len(rows) - _MOST_UNFOLDED} more", text=(0, 1),
        )
    ] if rows else [paragraph("No column follows from others entirely.")]  # fmt: skip
    for names, what in (
        (subject.untold, "Nothing tells about"),
        (subject.constant, "Of one value only:"),
    ):
        if names:
            contents.append(paragraph(f"{what} ", element("strong", listed(names, _MOST_NAMES)), "."))
    return Section("derived", "Columns that follow from others", lead, tuple(contents))


def _those(names: Sequence[str]) -> str:
    return listed(names, _MOST_CELLS, "or") if names else "the other columns together"


def _predictability_section(subject: JointReport) -> Section:
    lead = (
        "How well each known cell is predicted by the other cells of its row, and alone: without them. Accuracy is the "
        "share of cells whose most probable category, or bin of a number, is the true one. Loss is in nats."
    )
    lines = [
        [
            name,
            percent(explained_share(one)),
            bar(explained_share(one)),
            percent(one.accuracy),
            percent(one.accuracy_alone),
            number(one.loss_given_others, 3),
            number(one.loss_alone, 3),
            count(one.n),
        ]
        for name, one in subject.figures.items()
    ]
    head = ["column", "explained", "", "accuracy", "accuracy alone", "loss", "loss alone", "known cells"]
    captions = "How far each column follows from the others", "Further columns"
    found = tables(captions, head, lines, _MOST_UNFOLDED, f"{len(lines) - _MOST_UNFOLDED} more", stacks=True)
    return Section("predictability", "How far columns can be predicted", lead, tuple(found) or _NO_CELL)


_NO_CELL = (paragraph("No cell is known."),)


def _cells_section(subject: JointReport) -> Section:
    lead = (
        "The cells that fit the other cells of their row least: errors of typing, or finds. What was expected is the "
        "most probable category with its probability, or the mean of a number ± its standard deviation."
    )
    lines = [
        [f"row {one.row}", one.column, one.value, one.expected, percent(one.probability), number(one.score, 3)]
        for one in subject.strange_cells(_STRANGE_CELLS)
    ]
    head = [_ROW, "column", "value", "expected", "probability of the value", "strangeness (nats)"]
    grid = table("Strangest cells", head, lines, text=(0, 1, 2, 3), stacks=True) if lines else _NO_STRANGE
    return Section("cells", "Strange cells", lead, (grid,))


_NO_STRANGE = paragraph("No cell has a positive score.")


def _rows_section(subject: JointReport) -> Section:
    lead = (
        "The rows of the lowest log p(x), with the cells that fit least in each. A row may be rare although each of "
        "its cells fits the others. A row with missing cells has fewer factors, and so a higher log p(x)."
    )
    lines = [
        [
            f"row {row}",
            number(float(subject.log_density[row]), 4),
            "; ".join(map(_in_words, subject.strange_cells(_CELLS_OF_ROW, row))) or "none",
        ]
        for row in subject.strange_rows(_STRANGE_ROWS).tolist()
    ]
    grid = table("Rows of the lowest log p(x)", [_ROW, "log p(x)", "strangest cells"], lines, text=(0, 2), stacks=True)
    return Section("rows", "Strange rows", lead, (grid,))


def _in_words(one: StrangeCell) -> str:
    return f"{one.column} = {one.value}, expected {one.expected}"


def _repeated_section(subject: JointReport) -> Section:
    lead = (
        "Rows that are equal in every column that the model reads; missing cells are equal to each other. A row may be "
        "entered twice, or several cases may be alike, as is usual in a table of few categories."
    )
    groups = subject.repeated
    if not groups:
        return Section("repeated", "Equal rows", lead, (paragraph("No row occurs twice."),))
    total = sum(map(len, groups))
    found = paragraph(
        f"{plural(total, 'row')} of {count(len(subject.batch))} are equal to another one; "
        f"{count(total - len(groups))} of them are repeats."
    )
    lines = [
        [listed(list(map(str, one)), _MOST_POSITIONS), count(len(one)), listed(subject.row_texts(one[0]), _MOST_CELLS)]
        for one in groups[:_MOST_REPEATED]
    ]
    more = f", the {len(lines)} most frequent of {count(len(groups))}" if len(lines) < len(groups) else ""
    head = ["rows (from 0)", "times", "cells"]
    return Section(
        "repeated", "Equal rows", lead, (found, table(f"Equal rows{more}", head, lines, text=(0, 2), stacks=True))
    )
