"""Sections of a report on a regressor."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from posteriori.facts.columns import ColumnFacts
from posteriori.model import with_cells
from posteriori.model_selection.measures import MEASURES, OF_NUMBERS
from posteriori.plotting.reading import Scale, cells_of, evenly
from posteriori.reporting.charts import figure, legend
from posteriori.reporting.markup import (
    Section,
    affordable,
    bar,
    cards,
    gallery,
    number,
    paragraph,
    percent,
    signed,
    table,
)
from posteriori.reporting.number_charts import (
    BLUE,
    ORANGE,
    bars_chart,
    coverage_chart,
    curve_chart,
    pit_chart,
    predictions_chart,
    residuals_chart,
)
from posteriori.reporting.number_data import NOMINAL, NumberReport, coverage_of, pit_shares
from posteriori.reporting.overview import columns_table
from posteriori.support.formatting import cell_text, count, listed, plural
from posteriori.support.markup import Html, element, joined
from posteriori.support.typing import Array
from posteriori.tables.rows import take_rows

_MOST_DRAWN = 1000  # rows in the plot of predictions
_PIT_BINS = 20
_MOST_PICTURES = 12  # columns
_SURPRISING = 10  # rows
_MOST_CELLS = 6  # of a row
_MOST_BARS = 15
_EFFECT_ROWS, _POINTS, _USUAL, _MOST_CATEGORIES = 60, 30, 40, 20

_OF_POOL = (
    "The density is a pool of members: the product of their densities to the power of their weights, scaled to a total "
    "of 1."
)
_OF_HELD_OUT = "The scores are those of training rows, each held out from the models that predicted it."

WORDS = {
    "Interval": "A range that holds the true number with a stated probability, here 90 % unless said otherwise.",
    "CRPS": (
        "Continuous ranked probability score, in units of the target: the absolute error, generalised to a density. "
        "Less is better; it is small where the density is narrow and around the true number."
    ),
    "Log score": "The mean of −log p(y | x) in nats. Less is better.",
    "RMSE": "The root of the mean squared error of the predicted mean, in units of the target.",
    "MAE": "The mean absolute error of the predicted median, in units of the target.",
    "R²": "The share of the variance of the target that the predicted mean explains.",
    "Coverage": "The share of the true numbers that are within the intervals.",
    "Residual": "The true number minus the predicted mean.",
    "Standard error": "How much a mean over rows varies by chance.",
}


def number_summary(subject: NumberReport, facts: Sequence[ColumnFacts]) -> list[Html]:
    """Return the opening sentence of the page and the cards with its key figures."""
    scores, y = subject.scores, subject.predicted.y
    sentence = paragraph(
        "How well does the model predict ",
        element("strong", subject.target),
        f" from {plural(len(facts), 'column')}? ",
        element("strong", f"It is wrong by {number(scores['mae'], 3)} on average."),
        f" {subject.how}",
    )
    low, middle, high = (number(float(np.quantile(y, q)), 4) for q in (0.0, 0.5, 1.0))
    missing = sum(one.cells.missing for one in facts) / max(subject.n_rows * len(facts), 1)
    return [
        sentence,
        cards(
            [
                ("Rows", count(subject.n_rows), f"{count(len(y))} predicted"),
                ("Columns", str(len(facts)), f"{percent(missing)} of cells missing" if missing else "no missing cells"),
                ("Target", middle, f"median; from {low} to {high}"),
                ("R²", number(scores["r2"], 3), "of the variance is explained"),
                (
                    "90 % intervals",
                    percent(scores["coverage"]),
                    f"hold the number; mean width {number(scores['width'], 3)}",
                ),
            ]
        ),
    ]


def number_sections(subject: NumberReport, facts: Sequence[ColumnFacts]) -> Iterator[Section]:
    """Yield the sections of the page."""
    yield _table_section(subject, facts)
    yield _members_section(subject)
    yield _predictions_section(subject)
    yield _calibration_section(subject)
    yield _residuals_section(subject)
    yield _surprising_section(subject)
    yield _effects_section(subject)


def _table_section(subject: NumberReport, facts: Sequence[ColumnFacts]) -> Section:
    lead = "Missing cells are not imputed: the model integrates them out and predicts from the observed cells."
    return Section("table", "Data overview", lead, (columns_table(facts, subject.n_rows),))


def _members_section(subject: NumberReport) -> Section:
    results = subject.model.fitted_.results
    is_pool, scored = "weight" in results, results.get("member", [])
    weights: list[float] = results["weight"] if is_pool else []
    lead = [_OF_POOL] if is_pool else []
    lead += [_OF_HELD_OUT] if scored else []

    def measures(scores: Mapping[str, float]) -> list[str]:
        return [number(scores[key], 3 if key in ("r2", "coverage") else 4) for key in OF_NUMBERS]

    total = sum(weights[:-1]) or 1.0
    shown = []
    for m, name in enumerate(scored):
        weight = [number(weights[m], 3), bar(weights[m] / total)] if is_pool and name != "pool" else ["", ""]
        shown.append([name, *weight[: 2 * is_pool], *measures({key: results[key][m] for key in OF_NUMBERS})])
    if not subject.held_out:
        lead.append("The last line scores the predictions of the rows of this report.")
        shown.append(["rows of this report", *[""] * 2 * is_pool, *measures(subject.predicted.scores)])
    head = [*(["member", "weight", ""] if is_pool else ["model"]), *(MEASURES[key].title for key in OF_NUMBERS)]
    title, caption = ("Members and scores", "Members of the pool") if is_pool else ("Scores", "Scores of the model")
    return Section("members", title, " ".join(lead), (table(caption, head, shown),))


def _predictions_section(subject: NumberReport) -> Section:
    places = subject.sampled(_MOST_DRAWN)
    drawn = predictions_chart(
        subject.predicted.y[places], subject.median[places], subject.interval[places], subject.target
    )
    lead = (
        f"{plural(len(places), 'row')}: the median of the density against the true number. On the dashed diagonal the "
        "two agree. Vertical lines are 90 % intervals; those that miss the true number are orange."
    )
    names = ["the interval holds the true number", "the interval misses it"]
    return Section("predictions", "Predicted against true", lead, (legend(names, [BLUE, ORANGE]), drawn))


def _calibration_section(subject: NumberReport) -> Section:
    covered = coverage_of(subject.predicted)
    pit = pit_shares(subject.predicted, _PIT_BINS)
    lead = (
        "Do intervals hold the true number as often as they state? Below the diagonal, intervals are too narrow; above "
        "it, too wide. If the densities are right, the probability P(Y ≤ y | x) of a number up to the true one is "
        "uniform: a histogram that is high at both ends means too narrow densities, one that is high in the middle too "
        "wide ones, and a slope means that predictions are too high or too low. Numbers that are frequent, such as 0, "
        "may be held more often than stated."
    )
    rows = [[percent(level), percent(share)] for level, share in zip(NOMINAL.tolist(), covered.tolist(), strict=True)]
    pictures = element(
        "div",
        figure(coverage_chart(covered), "Coverage of central intervals; on the dashed diagonal it is as stated."),
        figure(pit_chart(pit), "Histogram of P(Y ≤ y | x); the dashed line is a uniform distribution."),
        class_="pictures",
    )
    grid = table("Coverage of central intervals", ["nominal", "share of rows within"], rows)
    return Section("calibration", "Calibration", lead, (pictures, grid))


def _residuals_section(subject: NumberReport) -> Section:
    lead = (
        "The mean of the true number minus the predicted mean, in groups of rows by the cells of each column. Lines "
        "extend two standard errors to both sides. A mean more than three standard errors from 0 is orange: the model "
        "is wrong there on average. With many groups, one in 370 is marked by chance."
    )
    found = [one for one in subject.residuals if one.names]
    off = [
        [
            f"{one.column}: {one.names[k]}",
            count(one.n_rows[k]),
            f"{signed(one.mean[k])} ± {number(one.standard_error[k], 2)}",
        ]
        for one in found
        for k in np.flatnonzero(one.is_off).tolist()
    ]
    contents: list[Html] = []
    if off:
        head = ["group of rows", "rows", "mean residual"]
        contents.append(table(f"{plural(len(off), 'group')} more than three standard errors off", head, off))
    else:
        contents.append(paragraph("No group of rows is more than three standard errors off."))
    pictures = [
        element("div", figure(residuals_chart(one), element("strong", one.column))) for one in found[:_MOST_PICTURES]
    ]
    contents += gallery(pictures, "more column") if pictures else []
    if len(found) > _MOST_PICTURES:
        rest = plural(len(found) - _MOST_PICTURES, "column")
        contents.append(paragraph(f"Other {rest} are less off and are not drawn.", class_="note"))
    return Section("residuals", "Residuals by column", lead, tuple(contents))


def _surprising_section(subject: NumberReport) -> Section:
    places, ratios = subject.surprising(_SURPRISING)
    rows_of_table = subject.predicted.rows[places]
    explained = subject.model.explain(take_rows(subject.X, rows_of_table))
    lead = (
        "The rows whose true number is farthest from the predicted median, in widths of the 90 % interval. Wrong "
        "entries and unusual cases are found here. Behind each cell is what it adds to the mean of the fitted model, "
        f"which starts at {number(explained.base, 4)}, the mean where nothing is known."
    )
    lines = []
    for k, (place, row) in enumerate(zip(places.tolist(), rows_of_table.tolist(), strict=True)):
        cells = [
            f"{explained.feature_names[j]} = {cell_text(explained.values[k, j])} ({signed(explained.parts[k, j])})"
            for j in explained.ranked(k)[:_MOST_CELLS]
        ]
        low, high = (number(float(end), 4) for end in subject.interval[place])
        lines.append(
            [
                f"row {row}",
                number(float(subject.predicted.y[place]), 4),
                number(float(subject.median[place]), 4),
                f"{low} to {high}",
                number(float(ratios[k]), 3) if np.isfinite(ratios[k]) else "∞",
                listed(cells, _MOST_CELLS) or "no cell is known",
            ]
        )
    head = ["row (from 0)", f"true {subject.target}", "median", "90 % interval", "distance in widths", "cells"]
    grid = table("Rows farthest from their prediction", head, lines, text=(0, 5), stacks=True)
    return Section("rows", "Rows to look at", lead, (grid,))


def _effects_section(subject: NumberReport) -> Section:
    importance = subject.importance
    modelled = [j for j in importance.order if j in subject.batch.schema.modelled]
    greatest = max([1e-300, *importance.increase[modelled].tolist()])
    rows = [
        [
            importance.names[j],
            f"{number(importance.increase[j], 3)} ± {number(importance.standard_error[j], 2)}",
            bar(max(importance.increase[j], 0.0) / greatest),
        ]
        for j in modelled[:_MOST_BARS]
    ]
    more = f", the first {len(rows)} of {len(modelled)}" if len(rows) < len(modelled) else ""
    lead = (
        f"Importance is the increase of the CRPS, in units of {subject.target}, when a column is hidden: it is "
        f"integrated out, in {plural(importance.n_rows, 'row')}, by {_judges(importance.held_out)}. Columns that say "
        "the same share their importance. The figures show by how much a value moves the predicted mean from the "
        f"average over the values of the column: the mean over {min(_EFFECT_ROWS, len(subject.batch))} rows whose "
        "other cells stay as they are, and for numbers a band that covers 80 % of them."
    )
    head = ["column", f"increase of CRPS ({number(importance.crps, 3)} with all columns)", ""]
    chosen = [j for j in modelled if not np.isnan(cells_of(subject.batch, j)).all()]
    pictures = affordable(_effect(subject, j) for j in chosen[:_MOST_PICTURES])
    contents = [
        table(f"Importance of columns{more}", head, rows),
        *(gallery(pictures, "more column") if pictures else []),
    ]
    return Section("effects", "Importance and effects", lead, tuple(contents))


def _judges(held_out: bool) -> str:
    return "models that had not learned from them" if held_out else "the fitted model"


def _effect(subject: NumberReport, j: int) -> Html:
    """Return the picture of what the cells of a column add to the predicted mean."""
    column, known = subject.batch.schema.columns[j], cells_of(subject.batch, j)
    known = known[~np.isnan(known)]
    label = f"adds to {cell_text(subject.target)}"
    if column.kind == "continuous":
        points = Scale.of(known).grid(float(known.min()), float(known.max()), _POINTS)
        points = np.unique(points.round() if (known == np.round(known)).all() else points)
        low, high = np.quantile(effect := number_effect(subject, j, points), [0.1, 0.9], axis=0)
        drawn = curve_chart(column.name, points, np.column_stack([effect.mean(axis=0), low, high]), label)
        hidden = 0
    else:
        codes, counts = np.unique(known.astype(np.int64), return_counts=True)
        points = codes[np.argsort(-counts, kind="stable")[:_MOST_CATEGORIES]]
        names = [cell_text(column.categories[code - 1]) for code in points.tolist()]
        drawn = bars_chart(column.name, names, number_effect(subject, j, points).mean(axis=0), label)
        hidden = len(codes) - len(points)
    rarer = f"; {plural(hidden, 'rarer category')} not drawn" if hidden else ""
    return element("div", figure(drawn, joined([element("strong", column.name), rarer])))


def number_effect(subject: NumberReport, column: int, cells: Array) -> Array:
    """Return by how much each of some cells moves the mean of some rows from the average over the column, (n, P).

    The average is that over cells of the rows, not the mean without the cell: a gap may be informative itself.
    """
    value, known = subject.model.fitted_, cells_of(subject.batch, column)
    known = np.sort(known[~np.isnan(known)])
    some = subject.batch.rows(evenly(len(subject.batch), _EFFECT_ROWS))
    usual = known[evenly(len(known), _USUAL)]
    each = with_cells(some, column, np.concatenate([cells, usual]))
    mean = value.answer(each, subject.model.n_jobs).density.mean.reshape(-1, len(some)).T
    return np.asarray(mean[:, : len(cells)] - mean[:, len(cells) :].mean(axis=1, keepdims=True))
