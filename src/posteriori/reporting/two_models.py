"""Sections of the report that compares two models on the same labelled rows."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.model_selection import HeldOut, metrics
from posteriori.model_selection.metrics import area_under_curve
from posteriori.reporting.charts import AFTER, BEFORE, figure, histograms_chart, legend
from posteriori.reporting.data import ReportData
from posteriori.reporting.drift import SIGNIFICANT
from posteriori.reporting.held_out import seen_rows
from posteriori.reporting.markup import (
    Section,
    bar,
    fixed,
    number,
    p_text,
    paragraph,
    percent,
    points,
    signed,
    table,
    tables,
)
from posteriori.support.formatting import count, plural
from posteriori.support.markup import Html, details, element
from posteriori.support.typing import Array

_MOST_ROWS = 10  # on each side
_MOST_UNFOLDED = 15  # columns
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class TwoModels:
    """Predictions of two classifiers for the same labelled rows."""

    models: tuple[ReportData, ReportData]  # two fitted classifiers of the same classes, with the rows
    names: tuple[str, str]
    held_out: tuple[HeldOut, HeldOut]  # their predictions of the labelled rows
    # the share of all rows that each model was trained on; None if it has no record of its training rows
    seen_shares: tuple[float | None, float | None]

    @classmethod
    def of(cls, first: Classifier, second: Classifier, X: Any, y: Any) -> TwoModels:
        """Predict the labelled rows with both models.

        Raises
        ------
        ValueError
            The classes of the models differ, or no row has a label.
        """
        models = ReportData.of(first, X, y), ReportData.of(second, X, y)
        if not np.array_equal(first.classes_, second.classes_):
            raise ValueError(
                f"the models have different classes, {first.classes_.tolist()} and {second.classes_.tolist()}; compare "
                "models of the same classes"
            )
        if not len(models[0].labelled):
            raise ValueError("no row has a label; give labelled rows to compare two models")
        kinds = [type(model).__name__ for model in (first, second)]
        names = (kinds[0], kinds[1]) if kinds[0] != kinds[1] else (f"{kinds[0]} (new)", f"{kinds[1]} (against)")
        held_out = _predicted(models[0]), _predicted(models[1])
        return cls(models, names, held_out, (seen_rows(first, X), seen_rows(second, X)))

    @property
    def target(self) -> str:
        """Name of the target."""
        return self.models[0].target

    @property
    def seen(self) -> str:
        """A sentence on which of the models was trained on the rows, as far as it is known."""
        shares = zip(self.names, self.seen_shares, strict=True)
        trained = [f"{name} was trained on {percent(share)} of these rows" for name, share in shares if share]
        if trained:
            return f"{' and '.join(trained)}, so that its scores are too optimistic: compare on other rows."
        if None in self.seen_shares:
            return "Use rows that neither model was trained on."
        return "Neither model was trained on these rows."

    @cached_property
    def of_truth(self) -> tuple[Array, Array]:
        """Log p(true class) by each model, in nats."""
        first, second = (np.log(np.maximum(one.of_truth, _TINY)) for one in self.held_out)
        return first, second

    @property
    def n_rows(self) -> int:
        """The number of labelled rows."""
        return len(self.held_out[0].y_true)


def _predicted(subject: ReportData) -> HeldOut:
    """Return the predictions of the labelled rows, whether or not the model was trained on them."""
    model, rows = subject.estimator, subject.labelled
    with warnings.catch_warnings():  # a column of the other model
        warnings.filterwarnings("ignore", message=".*was not trained on; ignored")
        log_posterior = np.asarray(model.predict_log_proba(subject.X))[rows]
    return HeldOut.given(model.fitted_, subject.components[rows], log_posterior)


def models_summary(both: TwoModels) -> list[Html]:
    """Return the opening sentence of the page."""
    change, error = _paired(*both.of_truth)
    better = both.names[0 if change > 0 else 1]
    if abs(change) > 2 * error:
        verdict = f"{better} has the lower log-loss, by {number(abs(change), 3)} ± {number(error, 2)} nats per row."
    else:
        difference = f"{signed(-change)} ± {number(error, 2)} nats per row"
        verdict = f"Their log-losses differ by less than two standard errors: {difference}."
    return [
        paragraph(
            element("strong", both.names[0]),
            " and ",
            element("strong", both.names[1]),
            f" predict the same {plural(both.n_rows, 'row')}. {verdict}",
        )
    ]


def model_sections(both: TwoModels) -> Iterator[Section]:
    """Yield the sections: scores, rows on which the models differ, and importance of the columns."""
    yield _scores_section(both)
    yield _differences_section(both)
    yield _importance_section(both)


def _paired(first: Array, second: Array) -> tuple[float, float]:
    """Return the mean of the differences of paired values, and its standard error."""
    differences = first.astype(np.float64) - second.astype(np.float64)
    error = differences.std(ddof=1) / np.sqrt(len(differences)) if len(differences) > 1 else 0.0
    return float(differences.mean()), float(error)


def _scores_section(both: TwoModels) -> Section:
    lead = (
        "Scores on the same rows. The difference is the first model less the second, ± the standard error of paired "
        "differences, which is usually small because both models see the same easy and hard rows. "
    ) + both.seen
    first, second = both.held_out
    accuracy, error = _paired(first.right, second.right)
    loss, loss_error = _paired(both.of_truth[1], both.of_truth[0])
    rows = [
        [
            "Accuracy",
            *(percent(one.accuracy) for one in both.held_out),
            f"{points(accuracy)} ± {100 * error:.1f} points",
            "share of correct predictions; higher is better",
        ],
        [
            "Log-loss (nats)",
            *(number(-float(one.mean()), 3) for one in both.of_truth),
            f"{signed(loss)} ± {number(loss_error, 2)}",
            "mean of −log p(true class); lower is better",
        ],
    ]
    for name, score, digits, meaning in (
        ("Brier score", metrics.brier_score, 3, "squared error of the probabilities, 0 to 2; lower is better"),
        ("AUC", area_under_curve, 3, "area under the ROC curve; higher is better"),
    ):
        found = [float(score(*one.judged)) for one in both.held_out]
        rows.append([name, *(number(one, digits) for one in found), signed(found[0] - found[1]), meaning])
    head = ["score", *both.names, "difference", "meaning"]
    grid = table(f"Scores on {plural(both.n_rows, 'row')}", head, rows, text=(0, 4), stacks=True)
    return Section("scores", "Scores", lead, (grid,))


def _differences_section(both: TwoModels) -> Section:
    lead = (
        "Rows that one model predicts correctly and the other does not. The test of McNemar asks whether one of them "
        "is right more often there than by the toss of a coin."
    )
    one, other = (model.right for model in both.held_out)
    counts = [
        int((one & other).sum()),
        int((one & ~other).sum()),
        int((~one & other).sum()),
        int((~one & ~other).sum()),
    ]
    total = both.n_rows
    kinds = ["both are correct", f"only {both.names[0]}", f"only {both.names[1]}", "both are wrong"]
    rows = [[kind, count(n), percent(n / total), bar(n / total)] for kind, n in zip(kinds, counts, strict=True)]
    contents = [table("Correct predictions", ["", "rows", "share", ""], rows)]
    if counts[1] + counts[2]:
        from scipy.stats import binomtest

        p = float(binomtest(counts[1], counts[1] + counts[2]).pvalue)
        verdict = (
            f"{both.names[0 if counts[1] > counts[2] else 1]} is right more often"
            if p < SIGNIFICANT
            else "No evidence that one is right more often"
        )
        contents.append(paragraph(f"{verdict} (McNemar’s exact test, p {p_text(p, phrase=True)})."))
    gain = both.of_truth[0] - both.of_truth[1]
    order = np.argsort(gain, kind="stable")
    for winner, chosen in ((0, order[::-1][:_MOST_ROWS]), (1, order[:_MOST_ROWS])):
        listed = [int(k) for k in chosen if (gain[k] > 0) == (winner == 0) and gain[k] != 0]
        if listed:
            title = f"Rows for which {both.names[winner]} gives the true class a higher probability"
            contents.append(details(title, _rows_table(both, listed, title)))
    label = "Distribution of log p(true class) by both models"
    contents.append(legend(both.names, [AFTER, BEFORE]))
    contents.append(figure(histograms_chart(both.of_truth[1], both.of_truth[0], label), label))
    return Section("differences", "Differences", lead, tuple(contents))


def _rows_table(both: TwoModels, chosen: list[int], title: str) -> Html:
    rows = []
    for k in chosen:
        one = both.models[0]
        row = one.labelled[k]
        cells = [f"row {row}", one.labels[one.components[row]]]
        for held_out in both.held_out:
            c = int(held_out.filled[k].argmax())
            cells.append(f"{one.labels[c]}: {percent(float(held_out.filled[k, c]))}")
        cells += [percent(float(np.exp(of_truth[k]))) for of_truth in both.of_truth]
        rows.append(cells)
    head = ["row (from 0)", both.target, *(f"predicted by {name}" for name in both.names)]
    head += [f"p(true class) by {name}" for name in both.names]
    return table(title, head, rows, text=(0, 1, 2, 3), stacks=True)


def _importance_section(both: TwoModels) -> Section:
    lead = (
        "Increase of the log-loss when a column is missing, by each model. A column that one model does not have shows "
        "–. Columns that carry the same information share their importance; those that nearly determine each other are "
        "also measured together."
    )
    found: list[dict[str, float]] = []
    for model in (one.estimator for one in both.models):
        importance = model.importance_
        nats = {model.schema_.names[j]: float(importance.increase[j]) for j in model.schema_.modelled}
        found.append(nats | {str(one): one.increase for one in importance.groups})
    names = sorted({*found[0], *found[1]}, key=lambda name: -max(one.get(name, 0.0) for one in found))
    greatest = max([1e-300, *(value for one in found for value in one.values())])
    rows = []
    for name in names:
        line: list[Any] = [name]
        for one in found:
            line += [fixed(one[name]) if name in one else "–", bar(max(one.get(name, 0.0), 0.0) / greatest)]
        rows.append(line)
    head = ["column", both.names[0], "", both.names[1], ""]
    captions = "Feature importance (nats)", "The other columns"
    more = f"{plural(len(rows) - _MOST_UNFOLDED, 'more column')}"
    contents = tables(captions, head, rows, _MOST_UNFOLDED, more, stacks=True)
    return Section("features", "Feature importance", lead, tuple(contents))
