"""Facts and terminal pages of evaluate: scores of predictions for labelled rows, and of decisions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.console import Console

from posteriori.cli.messages import UserError, note, warn
from posteriori.cli.predict import costs_in, thresholds_in
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
from posteriori.model_selection.measures import MEASURES, OF_NUMBERS
from posteriori.model_selection.metrics import ClassScores
from posteriori.support.formatting import number, plural, probability
from posteriori.support.typing import Array

if TYPE_CHECKING:
    from posteriori.classifiers.estimator import Estimator
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


def evaluation_facts(estimator: Estimator, judged: HeldOut) -> Facts:
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


def print_number_evaluation(facts: Facts) -> None:
    """Print the sentences on the predicted numbers of a table, and their scores."""
    out = _print_summary(facts)
    table = new_table(_rows(facts), "model")
    for name in OF_NUMBERS:
        table.add_row(MEASURES[name].line(), MEASURES[name].text(facts["scores"][name]))
    print_table(out, table)


def print_evaluation(facts: Facts) -> None:
    """Print the sentences, scores, confusion matrix, scores per class, calibration, and the decisions."""
    out = _print_summary(facts)
    print_scores(out, _rows(facts), facts)
    labels = [label_text(entry["class"]) for entry in facts["classes"]]
    _print_confusion(out, labels, facts["confusion"])
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
    if "decision" in facts:
        _print_decision(out, facts["decision"])


def _print_summary(facts: Facts) -> Console:
    out = console()
    print_sentences(out, facts["summary"])
    out.print()
    return out


def _rows(facts: Facts) -> str:
    return f"{facts['table']}, {facts['rows']:,} rows"


def _print_confusion(
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


def decision_facts(asked: Any, judged: HeldOut, labels: Sequence[Any]) -> Facts:
    """Return the figures of the decisions that are asked for, and of the most probable class; {} if none are.

    Costs decide, unless there are thresholds or a capacity: then they are what these decisions cost.
    """
    if asked == type(asked)():  # all options at their defaults
        return {}
    y_true, posterior, _ = judged.judged
    one = judged.figures.of_interest
    costs = None if asked.costs is None else costs_in(asked.costs, labels)
    facts: Facts = {}
    if asked.capacity is not None:
        if one is None:
            raise UserError("--capacity ranks by the rarer class, and the rows have only one; name it with --positive")
        n = asked.rows(len(y_true))
        ranked = np.argsort(-posterior[:, one], kind="stable")
        others = posterior.copy()
        others[:, one] = -1.0
        chosen = others.argmax(axis=1)
        chosen[ranked[:n]] = one
        facts = {"rows_chosen": n, "lowest_probability": float(posterior[ranked[n - 1], one]) if n else None}
    else:
        rule = thresholds_in(asked.threshold, labels) or costs
        assert rule is not None
        chosen = rule.choose(posterior)
    cost = None if costs is None else costs.cost
    further = () if costs is None else costs.others
    ways = {"decided": chosen, "most_probable": posterior.argmax(axis=1)}
    figures = {name: _figures(y_true, decided, labels, cost, further) for name, decided in ways.items()}
    return {"decision": {"rule": _rule(asked, facts, labels, one), **facts, **figures}}


def _rule(asked: Any, facts: Facts, labels: Sequence[Any], one: int | None) -> str:
    if asked.capacity is not None:
        named = label_text(labels[one or 0])
        return f"{named!r} in the {plural(facts['rows_chosen'], 'row')} where it is most probable"
    return "thresholds" if asked.threshold else "least expected cost"


def _figures(y_true: Array, decided: Array, labels: Sequence[Any], cost: Array | None, others: Sequence[Any]) -> Facts:
    confusion = np.zeros((len(labels), len(labels) + len(others)), np.int64)
    np.add.at(confusion, (y_true, decided), 1)
    of_classes = ClassScores.of(confusion.astype(float))
    found: Facts = {
        "accuracy": float(np.trace(confusion) / max(1, (decided < len(labels)).sum())),  # of rows with a class
        "others": [
            {"decision": one, "decided": int((decided == k).sum())} for k, one in enumerate(others, len(labels))
        ],
        "confusion": confusion,
        "classes": [
            {"class": label, "decided": int(n), "precision": precision, "recall": recall}
            for label, n, precision, recall in zip(
                labels, confusion.sum(axis=0)[: len(labels)], of_classes.precision, of_classes.recall, strict=True
            )
        ],
    }
    if cost is not None:
        total = float((confusion * cost).sum())
        found |= {"cost": total, "cost_per_row": total / len(y_true)}
    return found


def _print_decision(out: Console, found: Facts) -> None:
    """Print the confusion matrix of the decisions, and their figures beside those of the most probable class."""
    ways = [found["decided"], found["most_probable"]]
    out.print()
    out.print(f"decided: {found['rule']}", soft_wrap=True)
    names = [label_text(one["class"]) for one in ways[0]["classes"]]
    others = [label_text(one["decision"]) for one in ways[0]["others"]]
    _print_confusion(out, names, ways[0]["confusion"], [*names, *others])
    table = new_table("", "decided", "most probable class")
    table.add_row("accuracy", *(probability(way["accuracy"]) for way in ways))
    for pair in zip(*(way["classes"] for way in ways), strict=True):
        name = label_text(pair[0]["class"])
        table.add_row(f"{name}: rows decided", *(f"{one['decided']:,}" for one in pair))
        for measure in ("precision", "recall"):
            table.add_row(f"{name}: {measure}", *(probability(one[measure]) for one in pair))
    for pair in zip(*(way["others"] for way in ways), strict=True):
        table.add_row(f"{label_text(pair[0]['decision'])}: rows", *(f"{one['decided']:,}" for one in pair))
    if "cost" in ways[0]:
        table.add_row("cost per row", *(number(way["cost_per_row"], 4) for way in ways))
        table.add_row("cost in total", *(number(way["cost"], 6) for way in ways))
    print_table(out, table)
