"""Sections and charts of the report that compares two tables under one model."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.training_record import record_of
from posteriori.model_selection import HeldOut, metrics
from posteriori.plotting.reading import cells_of
from posteriori.reporting.charts import AFTER, BEFORE, WIDTH, chart, figure, histograms_chart, legend, rectangle
from posteriori.reporting.data import class_texts
from posteriori.reporting.drift import (
    LARGE,
    MODERATE,
    MOST_ROWS,
    SIGNIFICANT,
    ColumnDrift,
    TableRows,
    column_drifts,
    homogeneity_p_value,
    mean_change,
    merge_rare_states,
)
from posteriori.reporting.markup import (
    Section,
    affordable,
    bar,
    cards,
    fixed,
    gallery,
    number,
    numbers,
    p_text,
    paragraph,
    percent,
    points,
    signed,
    table,
    tables,
)
from posteriori.scoring.class_shares import compare_rows, estimate_shares
from posteriori.scoring.expected_performance import expected_performance
from posteriori.statistics.row_records import hash_rows
from posteriori.support.formatting import count, listed, plural, shortened
from posteriori.support.markup import Html, element, joined
from posteriori.support.typing import Array

_TOP = 20.0  # pixels
_NAMES, _SHARES, _GROUP = 130.0, 138.0, 22.0
_MOST_STATES = 14


def drift_chart(drift: ColumnDrift, before: TableRows, after: TableRows, label: str) -> Html:
    """Return the distributions of one column in two tables: histograms of numbers, or the share of each category."""
    if drift.column.kind == "categorical":
        return _of_states(drift, label)
    cells = [cells_of(rows.batch, drift.position) for rows in (before, after)]
    before_known, after_known = (one[~np.isnan(one)] for one in cells)
    return histograms_chart(before_known, after_known, label)


def _of_states(drift: ColumnDrift, label: str) -> Html:
    shares = drift.shares
    order = np.argsort(-shares.max(axis=0), kind="stable")[:_MOST_STATES]
    hidden = shares.shape[1] - len(order)
    longest = max(float(shares.max()), 1e-9)
    bottom = _TOP + _GROUP * len(order)

    def parts() -> Iterator[Html]:
        yield element("text", f"share of rows (longest {percent(longest)})", x=_SHARES, y=12)
        for row, k in enumerate(order.tolist()):
            top = _TOP + row * _GROUP
            middle = f"{top + _GROUP / 2:.1f}"
            yield element("text", shortened(drift.names[k], 20), x=_NAMES, y=middle, class_="left")
            for place, colour in enumerate((BEFORE, AFTER)):
                length = float(shares[place, k]) / longest * (WIDTH - _SHARES - 92.0)
                yield rectangle(_SHARES, top + 3 + 8 * place, length, 7.0, colour)
            text = f"{percent(float(shares[0, k]))} → {percent(float(shares[1, k]))}"
            yield element("text", text, x=WIDTH - 2, y=f"{top + _GROUP / 2 + 4:.1f}", class_="right")
        if hidden:
            text = f"{plural(hidden, 'rarer state')} not drawn"
            yield element("text", text, x=_SHARES, y=f"{bottom + 14:.0f}")

    return chart(parts(), bottom + (18.0 if hidden else 4.0), label)


_MOST_UNFOLDED = 15  # columns of the table
_MOST_DRAWN = 100
_MOST_CLASSES = 40
_TAIL = 0.01  # of the rows before


@dataclass(frozen=True)
class Drift:
    """Two tables under one model."""

    estimator: Classifier
    before: TableRows
    after: TableRows
    columns: list[ColumnDrift]  # the largest drift first

    @classmethod
    def of(cls, estimator: Classifier, before: TableRows, after: TableRows) -> Drift:
        """Compare the columns."""
        return cls(estimator, before, after, column_drifts(estimator, before, after))

    @cached_property
    def changed(self) -> list[ColumnDrift]:
        """Columns whose difference chance alone does not explain."""
        return [one for one in self.columns if one.changed]

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.estimator.schema_.target or "class"

    @cached_property
    def labels(self) -> list[str]:
        """Class names as text."""
        return class_texts(self.estimator)

    @cached_property
    def posteriors(self) -> tuple[Array, Array]:
        """p(y | x) of the rows before and after; the class prior in rows that no class can produce."""
        prior = np.asarray(self.estimator.class_prior_)

        def of(rows: TableRows) -> Array:
            return metrics.fill_undefined(np.exp(rows.log_posterior), np.broadcast_to(prior, rows.log_posterior.shape))

        return of(self.before), of(self.after)

    @cached_property
    def evidence(self) -> tuple[Array, Array] | None:
        """Finite log p(x) of the rows before and after; None if the model has none."""
        found = [rows.log_evidence for rows in (self.before, self.after)]
        if found[0] is None or found[1] is None:
            return None
        finite = [one[np.isfinite(one)] for one in found if one is not None]
        return (finite[0], finite[1]) if len(finite[0]) and len(finite[1]) else None


def drift_summary(drift: Drift) -> list[Html]:
    """Return the opening sentence of the page and the cards with its key figures."""
    n, changed = len(drift.columns), len(drift.changed)
    large = sum(one.size == "large" for one in drift.changed)
    differ = "differs" if changed == 1 else "differ"
    what = (
        f"{changed} of {plural(n, 'column')} {differ} between the two tables beyond chance, {large} of them by a large "
        "amount."
        if changed
        else f"None of {plural(n, 'column')} differs between the two tables beyond chance."
    )
    shown = [
        ("Rows", f"{count(drift.before.n_rows)} → {count(drift.after.n_rows)}", "before and after"),
        ("Columns changed", f"{changed} of {n}", f"{large} by a large amount"),
    ]
    if drift.evidence is not None:
        change, error = mean_change(*drift.evidence)
        shown.append(("Change of mean log p(x)", signed(change), f"± {number(error, 2)} nats per row"))
    scores = _scores_of(drift)
    if scores is not None:
        (loss_before, _), (loss_after, _) = scores["log-loss"]
        shown.append(("Log-loss", f"{number(loss_before, 3)} → {number(loss_after, 3)}", "nats; lower is better"))
    sampled = [
        paragraph(f"Of a table of more rows, {count(MOST_ROWS)} are compared, drawn at random.", class_="note")
        for rows in (drift.before, drift.after)
        if len(rows) < rows.n_rows
    ][:1]
    return [paragraph(what), cards(shown), *sampled]


def drift_sections(drift: Drift) -> Iterator[Section]:
    """Yield the sections: drift of the columns, log p(x), classes, and scores if both tables have labels."""
    yield _columns_section(drift)
    if drift.evidence is not None:
        yield _evidence_section(drift, *drift.evidence)
    yield _classes_section(drift)
    scores = _scores_of(drift)
    if scores is not None:
        yield _scores_section(drift, scores)


def _columns_section(drift: Drift) -> Section:
    lead = (
        "How much the cells of each column differ, before and after. Drift is the Jensen–Shannon divergence in nats: 0 "
        "if the distributions are equal, 0.69 if they have nothing in common. What chance alone would add is "
        f"subtracted. p is adjusted for the number of columns: below {SIGNIFICANT}, the column has changed. A change "
        f"from {MODERATE} nats is called moderate and from {number(LARGE, 2)} large. With many rows even a tiny change "
        "has a small p, so look at the drift first."
    )
    greatest = max([LARGE, *(one.divergence for one in drift.columns)])  # a bar is not long because all are short
    rows = [_column_row(one, greatest) for one in drift.columns]
    head = ["column", "drift (nats)", "", "change", "p", "before → after", "missing", "log p(xⱼ)"]

    captions = "Drift of the columns, the largest first", "The other columns"
    more = f"{plural(len(rows) - _MOST_UNFOLDED, 'more column')}"
    contents = [*tables(captions, head, rows, _MOST_UNFOLDED, more, text=(0, 3, 5), stacks=True)]
    contents.append(
        paragraph(
            "“log p(xⱼ)” is the change of the mean log-density of the cells under the model, in nats: below 0, the new "
            "cells are less expected than the old ones.",
            class_="note",
        )
    )
    contents.extend(_notes(drift))
    contents.extend(_pictures(drift))
    return Section("columns", "Drift of columns", lead, tuple(contents))


def _column_row(one: ColumnDrift, greatest: float) -> list[Any]:
    missing = "–"
    if any(one.missing):
        missing = " → ".join(percent(share) for share in one.missing)
    change = "–" if np.isnan(one.log_density_change) else fixed(one.log_density_change, "+")
    return [
        one.column.name,
        f"{one.divergence:.4f}",
        bar(one.divergence / greatest, "" if one.changed else "quiet"),
        one.size,
        p_text(one.adjusted),
        _before_after(one),
        missing,
        change,
    ]


def _before_after(one: ColumnDrift) -> str:
    """Return the medians of numbers, or the shares of the category that changed most."""
    if one.medians is not None:
        before, after = numbers(one.medians)
        return f"median {before} → {after}" if before != after else f"median {before} in both"
    shares = one.shares
    k = int(np.abs(shares[1] - shares[0]).argmax())
    return f"{one.names[k]}: {percent(float(shares[0, k]))} → {percent(float(shares[1, k]))}"


def _notes(drift: Drift) -> Iterator[Html]:
    by_number = sorted(drift.after.batch.unseen.items(), key=lambda one: -one[1])
    found = [f"{name} ({count(cells)})" for name, cells in by_number]
    if found:
        text = (
            "Cells after with a category that was unseen in training, which the model takes as missing: "
            f"{listed(found, 10)}."
        )
        yield paragraph(text)
    columns = drift.before.batch.schema.columns
    compared = {one.position for one in drift.columns}
    other = [columns[int(j)].name for j in drift.estimator.schema_.modelled if int(j) not in compared]
    if other:
        yield paragraph(
            f"Columns of words are not compared one by one, only within log p(x) and p(y | x): {listed(other, 10)}."
        )
    ignored = [column.name for column in columns if column.is_ignored]
    if ignored:
        yield paragraph(f"The model ignores these columns, and so does this page: {listed(ignored, 10)}.")


def _pictures(drift: Drift) -> Iterator[Html]:
    """Yield the distributions of the columns that drifted most, and those of the others folded."""
    drawable = [one for one in drift.columns if one.column.kind == "categorical" or one.medians is not None]
    drawn = affordable(_picture(drift, one) for one in drawable[:_MOST_DRAWN])
    if not drawn:
        return
    yield legend(["before", "after"], [BEFORE, AFTER])
    yield from gallery(drawn, "more picture")
    if len(drawn) < len(drawable):
        yield paragraph(
            f"The other {plural(len(drawable) - len(drawn), 'column')} drifted least and are not drawn.", class_="note"
        )


def _picture(drift: Drift, one: ColumnDrift) -> Html:
    label = f"Distribution of {one.column.name} before and after"
    caption = joined([element("strong", one.column.name), f": drift {one.divergence:.4f} nats, {one.size}"])
    return element("div", figure(drift_chart(one, drift.before, drift.after, label), caption))


def _evidence_section(drift: Drift, before: Array, after: Array) -> Section:
    change, error = mean_change(before, after)
    lead = (
        "log p(x) is how much the model expects a row, all columns together and whatever its class. If the mean falls, "
        "the new rows lie where the model saw few rows. It also sees changes of how columns depend on each other, as "
        "far as the model has such dependences, which no column shows alone. A model that was trained on the rows "
        "before fits them better than any new rows, so a part of the fall is not drift, most with few rows and many "
        "columns."
    )
    quantiles = [np.quantile(one, [_TAIL, 0.25, 0.5, 0.75]) for one in (before, after)]
    rows = [
        ["mean", number(float(before.mean()), 4), number(float(after.mean()), 4)],
        *(
            [name, number(float(quantiles[0][k]), 4), number(float(quantiles[1][k]), 4)]
            for k, name in enumerate(["1 % quantile", "lower quartile", "median", "upper quartile"])
        ),
    ]
    strange = float(np.mean(after < quantiles[0][0]))
    found = (
        f"The mean changes by {signed(change)} ± {number(error, 2)} nats per row (difference and its standard error). "
        f"{percent(strange)} of the rows after lie below the 1 % quantile of the rows before; without drift it would "
        "be about 1 %."
    )
    contents: list[Html] = [paragraph(found), table("log p(x) of the rows, in nats", ["", "before", "after"], rows)]
    excluded = [len(drift.before) - len(before), len(drift.after) - len(after)]
    if any(excluded):
        contents.append(
            paragraph(f"Rows that no class can produce are left out here: {excluded[0]} before, {excluded[1]} after.")
        )
    label = "Distribution of log p(x) before and after"
    contents += [legend(["before", "after"], [BEFORE, AFTER]), figure(histograms_chart(before, after, label), label)]
    return Section("evidence", "Density of the rows", lead, tuple(contents))


def _classes_section(drift: Drift) -> Section:
    posteriors = drift.posteriors
    means = [one.mean(axis=0) for one in posteriors]
    errors = [one.std(axis=0) / np.sqrt(len(one)) for one in posteriors]
    lead = (
        "The share of each class: the mean of p(y | x) over the rows, and the recorded labels where there are some. "
        "If the shares of the predictions move but those of the labels do not, the model reads the new rows wrongly."
    )
    order = np.argsort(-np.abs(means[1] - means[0]), kind="stable")[:_MOST_CLASSES]
    order = np.sort(order) if len(order) == len(drift.labels) else order
    labelled = [_class_counts(rows, len(drift.labels)) for rows in (drift.before, drift.after)]
    head = [drift.target, "predicted before", "predicted after", "difference"]
    both = [one for one in labelled if one is not None]
    if labelled[0] is not None:
        head.append("recorded before")
    if labelled[1] is not None:
        head.append("recorded after")
    rows = []
    for c in order.tolist():
        row: list[Any] = [drift.labels[c], percent(float(means[0][c])), percent(float(means[1][c]))]
        error = float(np.hypot(errors[0][c], errors[1][c]))
        row.append(f"{points(float(means[1][c] - means[0][c]))} ± {100 * error:.1f}")
        row += [percent(float(one[c] / max(one.sum(), 1))) for one in both]
        rows.append(row)
    more = f", the {len(rows)} that changed most" if len(rows) < len(drift.labels) else ""
    contents: list[Html] = [
        table(f"Shares of the classes{more}; differences in percentage points", head, rows, stacks=True)
    ]
    if len(both) == 2 and both[0].sum() and both[1].sum():
        p = homogeneity_p_value(merge_rare_states(np.stack(both).astype(np.float64)))
        verdict = "have changed beyond chance" if p < SIGNIFICANT else "show no change beyond chance"
        contents.append(
            paragraph(f"The recorded class shares {verdict} (chi-squared test, p {p_text(p, phrase=True)}).")
        )
    contents += [paragraph(sentence) for sentence in _without_labels(drift)]
    return Section("classes", "Classes", lead, tuple(contents))


def _without_labels(drift: Drift) -> list[str]:
    """Return the class shares that the rows after show by themselves, and without labels also the scores to expect."""
    before, after = ((np.exp(rows.log_posterior), rows.log_evidence) for rows in (drift.before, drift.after))
    posterior, prior, labels = after[0], np.asarray(drift.estimator.class_prior_), np.array(drift.labels)
    if np.isnan(posterior).any(axis=1).all():
        return []
    found = estimate_shares(posterior, prior, labels)
    if before[1] is not None and after[1] is not None:
        less, p_value = compare_rows((posterior, after[1]), (before[0], before[1]), prior, found.cautious)
        found = replace(found, less_probable=less, columns_p_value=p_value)
    sentences = found.sentences
    if drift.after.components is None:
        shares = found.cautious if found.mix_changed else prior
        moved = posterior * (shares / np.where(prior > 0, prior, 1.0))
        moved = moved / moved.sum(axis=1, keepdims=True)
        mixes = found.draws(100) if found.mix_changed else []
        sentences = [*sentences, *expected_performance(moved, labels, None, shares, mixes).sentences]
    return sentences


def _class_counts(rows: TableRows, n_classes: int) -> Array | None:
    if rows.components is None:
        return None
    counts: Array = np.bincount(rows.components[rows.components >= 0], minlength=n_classes)
    return counts


def _scores_of(drift: Drift) -> dict[str, list[tuple[float, float]]] | None:
    """Return means and standard errors of accuracy and log-loss, before and after; None without labels of both."""
    found: dict[str, list[tuple[float, float]]] = {"accuracy": [], "log-loss": []}
    for rows in (drift.before, drift.after):
        if rows.components is None or not (rows.components >= 0).any():
            return None
        known = np.flatnonzero(rows.components >= 0)
        judged = HeldOut.given(drift.estimator.fitted_, rows.components[known], rows.log_posterior[known])
        losses = -np.log(np.maximum(judged.of_truth, np.finfo(np.float64).tiny))
        for name, values in (("accuracy", judged.right.astype(np.float64)), ("log-loss", losses)):
            found[name].append((float(values.mean()), float(values.std() / np.sqrt(len(values)))))
    return found


def _trained(drift: Drift) -> str:
    record = record_of(drift.estimator).fingerprints
    if record is not None and (share := record.overlap(hash_rows(drift.before.batch))):
        return f"The model was trained on {percent(share)} of the rows before, so that"
    return "If the model was trained on the rows before,"


def _scores_section(drift: Drift, scores: dict[str, list[tuple[float, float]]]) -> Section:
    lead = (
        f"Scores of the same model on both tables, ± their standard errors. {_trained(drift)} its scores there are too "
        "optimistic, and a part of the difference is not drift."
    )
    accuracy, loss = scores["accuracy"], scores["log-loss"]
    rows = [
        [
            "Accuracy",
            *(f"{percent(mean)} ± {100 * error:.1f}" for mean, error in accuracy),
            f"{points(accuracy[1][0] - accuracy[0][0])} ± {100 * np.hypot(accuracy[0][1], accuracy[1][1]):.1f}",
        ],
        [
            "Log-loss (nats)",
            *(f"{number(mean, 3)} ± {number(error, 2)}" for mean, error in loss),
            f"{signed(loss[1][0] - loss[0][0])} ± {number(float(np.hypot(loss[0][1], loss[1][1])), 2)}",
        ],
    ]
    return Section(
        "scores", "Scores", lead, (table("Scores", ["score", "before", "after", "difference"], rows, stacks=True),)
    )
