"""Rows whose recorded class the prediction contradicts: candidates for wrong labels."""

from __future__ import annotations

import numpy as np

from posteriori.formatting import count, plural
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import HeldOutPredictions
from posteriori.reporting.markup import Html, Section, details, paragraph, table
from posteriori.reporting.writing import number, percent

_MOST = 100
_MOST_UNFOLDED = 15
_DOUBTFUL = 0.05  # p(recorded class)


def labels_section(subject: ReportData, evaluated: HeldOutPredictions) -> Section | None:
    """Return the rows with p(recorded class) below 5 %, the least probable first; None for one class."""
    if len(subject.labels) < 2:
        return None
    posterior, of_truth = evaluated.posterior, evaluated.of_truth
    doubtful = np.flatnonzero(of_truth < _DOUBTFUL)
    order = doubtful[np.argsort(of_truth[doubtful], kind="stable")]
    # A calibrated model gives a row a recorded class of probability p with probability p.
    expected = float(np.where(posterior < _DOUBTFUL, posterior, 0.0).sum())
    unseen = " by models that did not see the row" if evaluated.rows_are == "held-out rows" else ""
    lead = (
        f"Rows whose recorded class has a very low probability{unseen}. Some labels are wrong; others are right and "
        "the row is unusual. Check them first where the probability is lowest."
        + (" A model fits the labels that it was trained on, so it finds few of them." if not unseen else "")
    )
    found = (
        f"The recorded class has a probability below {percent(_DOUBTFUL)} in {plural(len(order), 'row')} of "
        f"{count(len(of_truth))}. If all labels were right and all probabilities calibrated, about "
        f"{number(expected, 2)} would be expected."
    )
    contents: list[Html] = [paragraph(found)]
    if len(order):
        rows = [
            [
                f"row {evaluated.rows[position]}",
                subject.labels[evaluated.y_true[position]],
                percent(float(of_truth[position])),
                subject.labels[evaluated.predicted[position]],
                percent(float(evaluated.confidence[position])),
            ]
            for position in order[:_MOST].tolist()
        ]
        head = ["row (from 0)", f"recorded {subject.target}", "probability", "predicted", "probability of it"]
        first = table("Least probable recorded classes", head, rows[:_MOST_UNFOLDED], text=(0, 1, 3))
        contents.append(first)
        if len(rows) > _MOST_UNFOLDED:
            more = table(f"Rows {_MOST_UNFOLDED + 1} to {len(rows)}", head, rows[_MOST_UNFOLDED:], text=(0, 1, 3))
            contents.append(details(f"{len(rows) - _MOST_UNFOLDED} more", more))
    return Section("labels", "Doubtful labels", lead, tuple(contents))
