"""How good the model is, and how its candidates did."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from posteriori.learning import metrics
from posteriori.learning.against_prior import compare_with_prior
from posteriori.registry import describe_variant
from posteriori.reporting.data import ReportData
from posteriori.reporting.held_out import HeldOutPredictions
from posteriori.reporting.markup import Html, Section, bar, element, paragraph, table
from posteriori.reporting.writing import cell_text, number, percent, plural

# What may be known of each candidate, in this order: the heading, and whether it is a share of 1.
_MEASURES = {
    "accuracy": ("accuracy", True),
    "brier": ("Brier score", False),
    "auc": ("AUC", False),
    "calibration_error": ("calibration error", True),
}
_POOL = "pool"


def scores_section(subject: ReportData, evaluated: HeldOutPredictions) -> Section:
    """Return the scores of the model beside those of guessing by the frequencies of the classes."""
    lead = (
        "How good the answers are on rows that the model had not learned from. "
        f"{evaluated.how} Beside them stands what "
        "one would score by knowing only how frequent the classes are."
    )
    arguments = evaluated.components, evaluated.posterior, evaluated.weight
    guess = evaluated.components, evaluated.prior, evaluated.weight
    losses = [metrics.log_loss(*arguments), metrics.log_loss(*guess)]
    rows = [
        [
            "Accuracy",
            *(percent(metrics.accuracy(*one)) for one in (arguments, guess)),
            "share of right answers; more is better",
        ],
        [
            "Probability of the true class",
            *(percent(float(np.exp(-loss))) for loss in losses),
            "its geometric mean; more is better",
        ],
        ["Log-loss (nats)", *(number(loss, 3) for loss in losses), "surprise at the truth; less is better"],
        [
            "Brier score",
            *(number(metrics.brier_score(*one), 3) for one in (arguments, guess)),
            "squared error of the probabilities, 0 to 2; less is better",
        ],
    ]
    caption = f"Scores of {plural(len(evaluated.rows), 'row')}"
    contents = [table(caption, ["", "the model", "guessing", ""], rows, text=(0, 3))]
    found = compare_with_prior(evaluated.components, evaluated.posterior, evaluated.prior, evaluated.weight)
    if found.verdict == "uninformative":
        loss, of_prior = number(losses[0], 4), number(losses[1], 4)
        words = f"log-loss {loss} against {of_prior} for the class prior"
        contents.append(paragraph(f"These columns tell nothing about {subject.target}: {words}."))
    elif found.verdict == "overconfident":
        contents.append(
            paragraph(
                "The log-loss is above that of guessing: the classes may be right, but the probabilities are too sure "
                "of themselves, as they are where columns say the same thing twice. Trust which class is first more "
                "than by how much."
            )
        )
    return Section("scores", "Scores: how good it is", lead, tuple(contents))


def candidates_section(cv_results: Mapping[str, Sequence[Any]], left_out: Mapping[str, str] | None = None) -> Section:
    """Return how each candidate did on rows left out, the best by log-loss first.

    Parameters
    ----------
    cv_results : mapping from str to sequence
        Of equal length: ``member`` and ``log_loss``, and where known ``accuracy``, ``brier``, ``auc``,
        ``calibration_error``, ``weight``, ``fit_seconds``, and standard errors as ``log_loss_se``.
    left_out : mapping from str to str, optional
        Why other candidates were left out.
    """
    names = [str(name) for name in cv_results["member"]]
    loss = np.asarray(cv_results["log_loss"], dtype=np.float64)
    error = np.asarray(cv_results.get("log_loss_se", np.zeros(len(loss))), dtype=np.float64)
    order = np.argsort(np.where(np.isfinite(loss), loss, np.inf), kind="stable")
    measures = {key: what for key, what in _MEASURES.items() if key in cv_results}
    head = ["candidate", "log-loss", "", *(title for title, _ in measures.values())]
    head += ["weight in the pool"] if "weight" in cv_results else []
    head += ["seconds"] if "fit_seconds" in cv_results else []
    rows = [
        [
            element("span", names[m], class_="best" if names[m] == _POOL else None),
            _with_error(number(loss[m], 3), number(error[m], 1) if error[m] > 0 else None),
            _strip(loss, error, m),
            *(_measure(cv_results, key, m, share) for key, (_, share) in measures.items()),
            *([_weight(cv_results["weight"][m])] if "weight" in cv_results else []),
            *([number(float(cv_results["fit_seconds"][m]), 2)] if "fit_seconds" in cv_results else []),
        ]
        for m in order
    ]
    lead = (
        "Several kinds of model were tried, and judged on rows that they had not learned from; the best stands first. "
        "The dot is the log-loss, how surprised a model was by the true classes, and the line through it how far "
        "chance may have moved it: the further to the left, the better."
    )
    contents = [table("Candidates, by log-loss in nats", head, rows)]
    described = {names[m]: describe_variant(names[m]) for m in order if describe_variant(names[m])}
    if described:
        items = (element("li", element("strong", name), f": {what}") for name, what in described.items())
        contents.append(element("ul", *items))
    if left_out:
        reasons = (element("li", element("strong", name), f": {reason}") for name, reason in left_out.items())
        contents += [paragraph("Left out:"), element("ul", *reasons)]
    return Section("candidates", "The candidates", lead, tuple(contents))


def _with_error(value: str, error: str | None) -> Html | str:
    return value if error is None else element("span", value, element("span", f" ± {error}", class_="note"))


def _measure(results: Mapping[str, Sequence[Any]], key: str, position: int, share: bool) -> Html | str:
    value = float(results[key][position])
    error = float(results[f"{key}_se"][position]) if f"{key}_se" in results else 0.0
    if share:
        return _with_error(percent(value), percent(error) if error > 0 else None)
    return _with_error(number(value, 3), number(error, 1) if error > 0 else None)


def _weight(value: Any) -> str:
    return "–" if value is None or not np.isfinite(value) else number(float(value), 2)


def _strip(loss: np.ndarray, error: np.ndarray, position: int) -> Html | str:
    """Return a dot on a line from the least to the greatest loss, with a standard error to both sides."""
    finite = np.isfinite(loss)
    if not finite[position]:
        return ""
    low, high = (loss - error)[finite].min(), (loss + error)[finite].max()
    width = high - low or 1.0
    at, half = 94.0 * (loss[position] - low) / width + 3.0, 94.0 * error[position] / width
    line = element("i", style=f"left:{at - half:.1f}%;width:{2 * half:.1f}%")
    return element("span", line, element("b", style=f"left:{at:.1f}%"), class_="strip", aria_hidden="true")


def weights_section(
    weights: Mapping[str, float], class_bias: Sequence[float] | None = None, labels: Sequence[Any] = ()
) -> Section:
    """Return how much each member of a pool counts.

    Parameters
    ----------
    weights : mapping from str to float
        By what the log of each member's probabilities is multiplied, ≥ 0.
    class_bias : sequence of float, optional
        What is added for each class, in nats.
    labels : sequence
        The classes.
    """
    lead = (
        "The answer is a pool: every member says how probable each class is, the logarithms of these probabilities are "
        "multiplied by the weights below and added up. A member of weight 0 is ignored; one of weight 1 that stands "
        "alone is taken as it is. The weights need not add up to 1: they are no shares."
    )
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    greatest = max((weight for _, weight in ordered), default=0.0) or 1.0
    rows = [[name, number(float(weight), 3), bar(weight / greatest)] for name, weight in ordered]
    contents = [table("Weights in the pool", ["member", "weight", ""], rows)]
    if class_bias is not None and len(class_bias):
        moved = np.asarray(class_bias, dtype=np.float64)
        position = int(np.abs(moved).argmax())
        if abs(moved[position]) > 0.005:
            factor = number(float(np.exp(abs(moved[position]))), 2)
            verb = "multiplied" if moved[position] > 0 else "divided"
            largest = cell_text(labels[position])
            note = f"Beside that each class has a bias of its own; that of “{largest}” is the largest: "
            contents.append(paragraph(f"{note}what speaks for it is {verb} by {factor}.", class_="note"))
    return Section("weights", "Weights of the members", lead, tuple(contents))
