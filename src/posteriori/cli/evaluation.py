"""Facts and terminal page of evaluate: scores of predictions for labelled rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from rich.console import Console

from posteriori.cli.messages import note, warn
from posteriori.cli.tables import (
    console,
    fits,
    label_text,
    new_table,
    print_rows,
    print_scores,
    print_sentences,
    print_table,
)
from posteriori.facts.model import Facts, class_of_interest, labels_of, scores
from posteriori.model_selection import HeldOut, in_words, metrics
from posteriori.support.formatting import probability

if TYPE_CHECKING:
    from posteriori.classifiers import GenerativeEstimator
    from posteriori.classifiers.kept_predictions import JudgedRows

_MOST_MISTAKES = 20


def say_training_rows(found: JudgedRows) -> None:
    """Print to stderr which rows the model was trained on, and how these are scored."""
    n_rows, n_judged = len(found.judged), len(found.held_out.y_true)
    kept = "scored by the out-of-fold predictions of fit"
    if n_judged < n_rows:
        note(
            f"the model was trained on these rows and keeps {found.n_kept:,} out-of-fold predictions: only those rows "
            f"are scored, {n_judged:,} of {n_rows:,}"
        )
    elif found.n_kept == n_rows:
        note(f"the model was trained on these rows; they are {kept}")
    elif found.n_kept:
        note(f"the model was trained on {found.n_kept:,} of the {n_rows:,} rows; these are {kept}")
    warn_of_seen_rows(found.seen, " and have no out-of-fold prediction" if found.n_kept else "")


def warn_of_seen_rows(share: float | None, without: str = "") -> None:
    """Print to stderr that this share of the rows are training rows without held-out predictions, or may be if None."""
    if share is None:
        note(
            "the model has no record of its training rows, which fit keeps unless --without-rows is given: if these "
            "rows are among them, the scores are too optimistic"
        )
    if not share:
        return
    many = "the rows are" if share > 0.99 else f"about {share:.0%} of the rows are"
    warn(f"{many} among those that the model was trained on{without}, so its scores are too optimistic; use other rows")


def evaluation_facts(estimator: GenerativeEstimator, judged: HeldOut) -> Facts:
    """Return the scores of predictions: overall, per class, and per bin of confidence."""
    of_model, of_prior = scores(judged)
    y_true, posterior, _ = judged.judged
    per_class = metrics.precision_recall(y_true, posterior)
    bins = metrics.calibration(y_true, posterior)
    return {
        "rows": len(y_true),
        "positive": class_of_interest(estimator, judged),
        "summary": in_words.sentences(
            judged.figures, in_words.class_phrases(labels_of(estimator), estimator.schema_.target)
        ),
        "model": of_model,
        "class_prior": of_prior,
        "classes": [
            {"class": label, "rows": round(support), "precision": precision, "recall": recall, "f1": f1}
            for label, precision, recall, f1, support in zip(
                labels_of(estimator),
                per_class.precision,
                per_class.recall,
                per_class.f1,
                per_class.support,
                strict=True,
            )
        ],
        "confusion": metrics.confusion_matrix(y_true, posterior),
        "calibration": [
            {"from": low, "to": high, "rows": round(rows), "confidence": confidence, "accuracy": accuracy}
            for low, high, rows, confidence, accuracy in zip(
                bins.edges[:-1], bins.edges[1:], bins.weight, bins.confidence, bins.accuracy, strict=True
            )
        ],
        "expected_calibration_error": bins.expected_error,
    }


def print_evaluation(facts: Facts) -> None:
    """Print the sentences of the first page, scores, confusion matrix, scores per class, and calibration."""
    out = console()
    print_sentences(out, facts["summary"])
    out.print()
    print_scores(out, f"{facts['table']}, {facts['rows']:,} rows", facts)
    labels = [label_text(entry["class"]) for entry in facts["classes"]]
    print_confusion(out, labels, facts["confusion"])
    table = new_table("class", "rows", "precision", "recall", "F1")
    for label, entry in zip(labels, facts["classes"], strict=True):
        measures = (probability(entry[name]) for name in ("precision", "recall", "f1"))
        table.add_row(label, f"{entry['rows']:,}", *measures)
    print_table(out, table)
    table = new_table("calibration: p(class predicted)", "rows", "mean p", "accuracy", "gap")
    for entry in facts["calibration"]:
        if entry["rows"]:
            gap = f"{entry['accuracy'] - entry['confidence']:+.4f}"
            bounds = f"{entry['from']:.1f} to {entry['to']:.1f}"
            confidence, accuracy = probability(entry["confidence"]), probability(entry["accuracy"])
            table.add_row(bounds, f"{entry['rows']:,}", confidence, accuracy, gap)
    print_table(out, table)
    out.print(f"expected calibration error {facts['expected_calibration_error']:.4f}")


def print_confusion(
    out: Console, labels: Sequence[str], confusion: Any, decisions: Sequence[str] | None = None
) -> None:
    """Print the confusion matrix; with numbered columns or only its largest errors if it does not fit.

    `decisions` are the names of its columns, if these are more than the classes.
    """
    decisions = labels if decisions is None else decisions
    cells = [[str(cell) if cell else "·" for cell in row] for row in confusion]
    named = new_table("true ↓  predicted →", *decisions)
    positions = [str(position) for position in range(1, len(decisions) + 1)]
    numbered = new_table("true ↓  predicted →", *positions)
    for position, label, row in zip(positions[: len(labels)], labels, cells, strict=True):
        named.add_row(label, *row)
        numbered.add_row(f"{position:>{len(positions[-1])}} {label}", *row)
    for table in (named, numbered):
        if fits(out, table):
            print_table(out, table)
            return
    mistakes = [(amount, t, p) for t, row in enumerate(confusion) for p, amount in enumerate(row) if t != p and amount]
    mistakes.sort(key=lambda mistake: -mistake[0])
    table = new_table("most frequent mistakes: true", "predicted", "rows", left=2)
    for amount, t, p in mistakes[:_MOST_MISTAKES]:
        table.add_row(labels[t], decisions[p], f"{amount:,}")
    print_rows(out, table)
    if len(mistakes) > _MOST_MISTAKES:
        out.print(f"and {len(mistakes) - _MOST_MISTAKES} more kinds of mistakes (all with --json)")
    out.print()
