"""Reasons beside predictions: the columns that add most to the log-odds of a class, or that move a number most."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl

from posteriori.explain import Explanation
from posteriori.explain.of_rows import explanation_of_batch
from posteriori.regression.explanation import parts_of
from posteriori.regression.value import FittedNumbers
from posteriori.scoring.files import Part, RowPredictor
from posteriori.scoring.fitted import FittedPosterior
from posteriori.support.formatting import cell_text, shortened
from posteriori.tables import Batch
from posteriori.tables.writing import decode, label_series, text_of_label

_MOST_WORDS = 3  # of a text
_LONGEST = 60  # characters of a reason

Reasons = tuple[list[str], list[float]]  # what each column holds, and what it adds


def names_of_reasons(n_reasons: int, of_classes: bool) -> list[str]:
    """Return the names of the columns of reasons; all parts of a row add up to its log-odds, or to its prediction."""
    each = [name for k in range(1, n_reasons + 1) for name in (f"reason_{k}", f"reason_{k}_part")]
    return [*each, "others_part", "start_part", *(["log_odds", "reasons_for", "reasons_against"] if of_classes else [])]


def with_reasons_of_classes(
    fitted: FittedPosterior, predictor: RowPredictor, n_reasons: int, label: Any = None
) -> RowPredictor:
    """Return a predictor with the columns that add most to the log-odds of a class against the most probable other one.

    Parameters
    ----------
    fitted : FittedPosterior
    predictor : RowPredictor
        Its column ``prediction`` is a class.
    n_reasons : int
        The number of columns that are named, those of the greatest amounts first.
    label : label of a class, optional
        Default: the class that is predicted in each row; where a decision is no class, the most probable one.
    """
    if len(fitted.labels) < 2:
        raise ValueError(f"the model has one class only, {fitted.labels[0]!r}: there are no odds to give reasons of")
    names, classes = names_of_reasons(n_reasons, True), np.array(fitted.labels, dtype=object)
    labels = label_series("class", fitted.labels)

    place = {text_of_label(one): k for k, one in enumerate(fitted.labels)}

    def reasons(batch: Batch, predicted: pl.Series) -> pl.DataFrame:
        explanation = explanation_of_batch(fitted.posterior, classes, batch)
        ranked, rows = np.argsort(-explanation.scores, axis=1, kind="stable"), np.arange(len(batch))
        wanted = [place.get(text_of_label(one if label is None else label), -1) for one in predicted.to_list()]
        first = np.where(np.array(wanted) < 0, ranked[:, 0], wanted)
        second = np.where(ranked[:, 0] == first, ranked[:, 1], ranked[:, 0])
        with np.errstate(invalid="ignore"):  # of cells that neither class can produce
            parts = explanation.deciding[rows, first] - explanation.deciding[rows, second]
        starts = explanation.log_prior[first] - explanation.log_prior[second]
        texts = [
            _texts(explanation, *of_row) for of_row in zip(rows.tolist(), first.tolist(), second.tolist(), strict=True)
        ]
        return _frame(list(zip(texts, parts.tolist(), strict=True)), starts.tolist(), n_reasons).with_columns(
            pl.Series("log_odds", starts + parts.sum(axis=1)),
            labels.gather(first).alias("reasons_for"),
            labels.gather(second).alias("reasons_against"),
        )

    return _widened(predictor, names, reasons, len(fitted.schema.columns) * fitted.posterior.n_scores)


def with_reasons_of_numbers(value: FittedNumbers, predictor: RowPredictor, n_reasons: int) -> RowPredictor:
    """Return a predictor with the columns that move the mean of each row most, from the mean where nothing is known."""
    kept = list(value.schema.modelled)

    def reasons(batch: Batch, predicted: pl.Series) -> pl.DataFrame:
        found, cells = parts_of(lambda rows: value.answer(rows).density, batch), decode(batch)[:, kept]
        texts = [[_text(value.schema.names[j], cell) for j, cell in zip(kept, row, strict=True)] for row in cells]
        return _frame(list(zip(texts, found.parts.tolist(), strict=True)), [found.base] * len(batch), n_reasons)

    return _widened(predictor, names_of_reasons(n_reasons, False), reasons, 7 * len(kept))


def _widened(
    predictor: RowPredictor, names: Sequence[str], reasons: Callable[[Batch, pl.Series], pl.DataFrame], width: int
) -> RowPredictor:
    """Return a predictor with columns after its own; each row takes memory for `width` numbers."""

    def predicted(batch: Batch) -> Part:
        part = predictor.predicted(batch)
        return replace(part, frame=part.frame.hstack(reasons(batch, part.frame["prediction"])))

    return replace(
        predictor,
        columns=[*predictor.columns, *names],
        predicted=predicted,
        source=lambda X: predictor.source(X).with_width(width),
    )


def _frame(rows: Sequence[Reasons], starts: Sequence[float], n_reasons: int) -> pl.DataFrame:
    """Return the greatest parts of each row with their columns, and the sum of the others; a part of 0 is no reason."""
    texts: list[list[str | None]] = []
    amounts: list[list[float | None]] = []
    others: list[float] = []
    for shown, parts in rows:
        ranked = sorted(range(len(parts)), key=lambda j: -_size(parts[j]))
        chosen = [j for j in ranked[:n_reasons] if parts[j] != 0.0]
        blank = [None] * (n_reasons - len(chosen))
        texts.append([*(shown[j] for j in chosen), *blank])
        amounts.append([*(parts[j] for j in chosen), *blank])
        others.append(float(sum(parts[j] for j in {*range(len(parts))} - {*chosen})))
    columns = []
    for k in range(n_reasons):
        columns.append(pl.Series(f"reason_{k + 1}", [row[k] for row in texts], dtype=pl.String))
        columns.append(pl.Series(f"reason_{k + 1}_part", [row[k] for row in amounts], dtype=pl.Float64))
    return pl.DataFrame([*columns, pl.Series("others_part", others), pl.Series("start_part", starts)])


def _size(part: float) -> float:
    return abs(part) if part == part else 0.0  # neither class can produce the cell


def _texts(explanation: Explanation, row: int, first: int, second: int) -> list[str]:
    """Return each column of a row with its cell; of a text the words that add most."""
    words = explanation.words_of(row)
    found = []
    for j, name in enumerate(explanation.feature_names):
        if name in words and (strongest := words[name].strongest(first, second, _MOST_WORDS)):
            found.append(shortened(f"{name}: {', '.join(strongest)}", _LONGEST))
        else:
            found.append(f"{name} = {cell_text(explanation.values[row, j])}")
    return found


def _text(name: str, cell: Any) -> str:
    return f"{name} = {cell_text(cell)}"
