"""Scores of the model, of its candidates, and the weights of a pool."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import numpy as np

from posteriori.model_selection import HeldOut, metrics
from posteriori.model_selection.metrics import area_under_curve, compare_with_prior, pool_verdict
from posteriori.registry import describe_model, in_seen_words, seen_by
from posteriori.reporting.data import ReportData
from posteriori.reporting.markup import Section, bar, number, paragraph, percent, table
from posteriori.scoring.prediction_sets import limits, scores_of, sets_within
from posteriori.support.formatting import cell_text, plural
from posteriori.support.markup import Html, element
from posteriori.support.typing import Array

# Optional measures of a candidate in display order: heading, and whether the value is a share of 1.
_MEASURES = {
    "accuracy": ("accuracy", True),
    "brier": ("Brier score", False),
    "auc": ("AUC", False),
    "calibration_error": ("calibration error", True),
}
_POOL = "pool"


def scores_section(subject: ReportData, evaluated: HeldOut) -> Section:
    """Return the scores of the model compared with the class prior."""
    lead = (
        f"How well the model predicts {evaluated.rows_are}. {evaluated.how} The baseline predicts the class prior, the "
        "frequencies of the classes, for every row."
    )
    arguments = evaluated.judged
    guess = evaluated.y_true, evaluated.prior, evaluated.weight
    losses = [metrics.log_loss(*arguments), metrics.log_loss(*guess)]
    rows = [
        [
            "Accuracy",
            *(percent(metrics.accuracy(*one)) for one in (arguments, guess)),
            "share of correct predictions; higher is better",
        ],
        [
            "Probability of the true class",
            *(percent(float(np.exp(-loss))) for loss in losses),
            "geometric mean; higher is better",
        ],
        ["Log-loss (nats)", *(number(loss, 3) for loss in losses), "mean of −log p(true class); lower is better"],
        [
            "Brier score",
            *(number(metrics.brier_score(*one), 3) for one in (arguments, guess)),
            "squared error of the probabilities, 0 to 2; lower is better",
        ],
        [
            "AUC",
            number(area_under_curve(*arguments), 3),
            "0.5",
            "area under the ROC curve" + ("" if len(subject.labels) == 2 else ", mean of the classes by their rows"),
        ],
        *_by_sets(evaluated),
        *_by_levels(evaluated),
        *_by_class(subject, evaluated, metrics.precision_recall(*arguments)),
    ]
    caption = f"Scores on {plural(len(evaluated.y_true), 'row')}"
    contents = [table(caption, ["score", "model", "class prior", "meaning"], rows, text=(0, 3))]
    found = compare_with_prior(evaluated.y_true, evaluated.filled, evaluated.prior, evaluated.weight)
    if found.verdict == "uninformative":
        loss, of_prior = number(losses[0], 4), number(losses[1], 4)
        words = f"log-loss {loss} against {of_prior} for the class prior"
        contents.append(paragraph(f"These columns carry no information about {subject.target}: {words}."))
    elif found.verdict == "overconfident":
        contents.append(
            paragraph(
                "The log-loss is above that of the class prior: the predicted classes may be correct, but the "
                "probabilities are overconfident. This happens if columns repeat the same information. Rely on the "
                "predicted class rather than on its probability."
            )
        )
    return Section("scores", "Scores", lead, tuple(contents))


def _by_sets(evaluated: HeldOut) -> Iterator[list[str]]:
    """Yield the mean size of the sets of classes that hold the true one in 90 % of rows; nothing of too few rows."""
    rows, y_true = np.arange(len(evaluated.y_true)), evaluated.y_true
    sizes = []
    with suppress(ValueError):
        for posterior in (evaluated.filled, evaluated.prior):
            own = scores_of(posterior, "probability")[rows, y_true]
            limit = limits(own, y_true, metrics.COVERAGE, evaluated.classes, False)
            sizes.append(number(float(sets_within(posterior, "probability", limit).sum(axis=1).mean()), 3))
    if len(sizes) == 2:
        meaning = "mean number of classes in a set that holds the true one in 90 % of rows; lower is better"
        yield ["Size of 90 % sets", *sizes, meaning]


def _by_levels(evaluated: HeldOut) -> Iterator[list[str]]:
    """Yield the ranked probability score of ordered classes, and the share of true levels in the intervals."""
    if evaluated.levels is None:
        return
    with np.errstate(divide="ignore"):
        of_prior = replace(evaluated, log_posterior=np.log(evaluated.prior)).levels
    assert of_prior is not None
    pair = (evaluated.levels, of_prior)
    meaning = "in levels: the number of levels a sure prediction is off; lower is better"
    yield ["Ranked probability score", *(number(one.ranked_score, 3) for one in pair), meaning]
    meaning = "share of the true levels within the central intervals"
    yield ["90 % intervals of levels", *(percent(one.shares[2]) for one in pair), meaning]


def _by_class(subject: ReportData, evaluated: HeldOut, found: metrics.ClassScores) -> Iterator[list[str]]:
    """Yield precision, recall and F1: of the class of interest, or the mean of the classes."""
    one = evaluated.figures.of_interest
    whose = "mean of the classes" if one is None else f"of “{subject.label_phrases[one]}”"
    means = found.macro
    if one is not None:
        means = {"precision": found.precision[one], "recall": found.recall[one], "f1": found.f1[one]}
    meanings = ("share of correct rows among those predicted", "share of the rows found", "harmonic mean of the two")
    for (name, value), meaning in zip(means.items(), meanings, strict=True):
        shown = number(float(value), 3) if name == "f1" else percent(float(value))
        yield [name.capitalize(), shown, "–", f"{whose}: {meaning}"]


def candidates_section(cv_results: Mapping[str, Sequence[Any]], left_out: Mapping[str, str] | None = None) -> Section:
    """Return the cross-validated scores of the candidates, sorted by log-loss; and why others were left out."""
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
            element("span", seen_by(names[m]), class_="best" if names[m] == _POOL else None),
            _with_error(number(loss[m], 3), number(error[m], 1) if error[m] > 0 else None),
            _strip(loss, error, m),
            *(_measure(cv_results, key, m, share) for key, (_, share) in measures.items()),
            *([_weight(cv_results["weight"][m])] if "weight" in cv_results else []),
            *([number(float(cv_results["fit_seconds"][m]), 2)] if "fit_seconds" in cv_results else []),
        ]
        for m in order
    ]
    lead = (
        "Several models were compared on held-out rows; the best is listed first. The dot marks the log-loss, and the "
        "line shows one standard error to both sides. Further left is better."
    )
    contents = [table("Candidates by log-loss in nats", head, rows)]
    verdict = pool_verdict(cv_results)
    if verdict:
        contents.append(paragraph(f"{verdict}."))
    described = {
        seen_by(name): describe_model(name) if seen_by(name) == name else f"{name}, {describe_model(name)}"
        for name in (names[m] for m in order)
        if describe_model(name)
    }
    if described:
        items = (element("li", element("strong", name), f": {what}") for name, what in described.items())
        contents.append(element("ul", *items))
    if left_out:
        reasons = (
            element("li", element("strong", seen_by(name)), f": {in_seen_words(reason)}")
            for name, reason in left_out.items()
        )
        contents += [paragraph("Skipped:"), element("ul", *reasons)]
    return Section("candidates", "Candidate models", lead, tuple(contents))


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
    """Return a dot on an axis from the lowest to the highest loss, with one standard error to both sides."""
    finite = np.isfinite(loss)
    if not finite[position]:
        return ""
    low, high = (loss - error)[finite].min(), (loss + error)[finite].max()
    width = high - low or 1.0
    at, half = 94.0 * (loss[position] - low) / width + 3.0, 94.0 * error[position] / width
    line = element("i", style=f"left:{at - half:.1f}%;width:{2 * half:.1f}%")
    return element("span", line, element("b", style=f"left:{at:.1f}%"), class_="strip", aria_hidden="true")


def weights_section(
    weights: Mapping[str, float], class_bias: Sequence[float] | Array | None = None, labels: Sequence[Any] = ()
) -> Section:
    """Return the weights of the members of a pool, and the greatest of the terms added per class, in nats."""
    lead = (
        "The prediction is a logarithmic opinion pool: the log-probabilities of the members are multiplied by the "
        "weights below and added up. A member of weight 0 is ignored. The weights are exponents and not shares: they "
        "need not sum to 1, and a sum below 1 makes the prediction less confident than the members."
    )
    ordered = sorted(weights.items(), key=lambda item: -item[1])
    greatest = max([1.0, *(weight for _, weight in ordered)])  # a full bar is a weight of 1, as of a model alone
    rows = [[name, number(float(weight), 3), bar(weight / greatest)] for name, weight in ordered]
    contents = [table("Weights in the pool", ["member", "weight", ""], rows)]
    if class_bias is not None and len(class_bias):
        moved = np.asarray(class_bias, dtype=np.float64)
        position = int(np.abs(moved).argmax())
        if abs(moved[position]) > 0.005:
            factor = number(float(np.exp(abs(moved[position]))), 2)
            verb = "multiplied" if moved[position] > 0 else "divided"
            largest = cell_text(labels[position])
            note = f"Each class also has a bias. The bias of “{largest}” is the largest: "
            contents.append(paragraph(f"{note}its odds are {verb} by {factor}.", class_="note"))
    return Section("weights", "Member weights", lead, tuple(contents))
