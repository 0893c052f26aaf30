"""The command explain: Bayes' rule written out for some rows, or a number as a sum."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import align, load, read_for, with_cut_target
from posteriori.cli.options import AsJson, ModelPath, TablePath
from posteriori.cli.targets import check_numeric
from posteriori.registry import Subject

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers.estimator import Estimator
    from posteriori.facts.model import Facts

_MOST_ROWS = 1000


def explain(
    model: ModelPath,
    table: TablePath,
    row: Annotated[
        str, typer.Option(metavar="N", help="The rows to explain: 3, or 3,7,10-12. The first row is 0.")
    ] = "0",
    as_json: AsJson = False,
) -> None:
    """Explain the predictions of some rows, as sums over features.

    By Bayes' rule, a table shows what each feature adds to the log-odds. The strangeness of a row is the share of rows
    drawn from the model, with the same cells missing, that are more probable than the row. A bar to the right speaks
    for the first class, a bar to the left for the second one. Of a model that predicts a number, the table shows by
    how much each feature moves the mean, and by how much it changes the width of the interval.

    Example:

        posteriori explain penguins.posteriori penguins.csv --row 3,7
    """
    estimator = load(model, Subject.CLASS, Subject.NUMBER)
    whole = read_for(estimator, table)
    rows = align(whole, estimator.schema_)
    positions = _positions(row, rows.height, table.name)
    explain_rows = {Subject.CLASS: _explain_classes, Subject.NUMBER: _explain_numbers}[estimator.subject]

    import numpy as np

    with as_user_errors(), np.errstate(invalid="ignore"):  # the posterior of a row that no class can produce
        facts, print_row = explain_rows(estimator, rows[positions], whole[positions], positions)
        if as_json:
            from posteriori.cli.tables import print_json

            print_json({"command": "explain", "table": str(table), "rows": facts})
            return
        for place in range(len(facts)):
            print_row(place)


def _explain_classes(
    model: Any, rows: pl.DataFrame, whole: pl.DataFrame, positions: list[int]
) -> tuple[list[Facts], Callable[[int], None]]:
    """Return the facts about rows, and what prints one of them: Bayes' rule."""
    from posteriori.cli.explanation_page import explanation_facts, print_explanation
    from posteriori.scoring.strangeness import Strangeness

    fitted, explanation = model.fitted_.predictor, model.explain(rows)
    rarity = Strangeness.of(fitted.posterior).of_rows(fitted.source(rows)) if fitted.posterior.has_density else None
    labels = _labels(whole, model)
    facts = explanation_facts(explanation, positions, labels, rarity, model.out_of_range(rows))
    return facts, lambda place: print_explanation(explanation.row(place), facts[place])


def _explain_numbers(
    model: Any, rows: pl.DataFrame, whole: pl.DataFrame, positions: list[int]
) -> tuple[list[Facts], Callable[[int], None]]:
    """Return the facts about rows, and what prints one of them: its mean as a sum."""
    from posteriori.cli.explanation_page import number_explanation_facts, print_number_explanation

    target = model.target_.name
    if target in whole.columns and whole[target].null_count() < whole.height:
        check_numeric(target, whole.schema)
    explanation, interval, truth = model.explain(rows), model.predict_interval(rows), _labels(whole, model)
    facts = number_explanation_facts(explanation, positions, truth, interval, model.out_of_range(rows))
    return facts, lambda place: print_number_explanation(facts[place])


def _positions(text: str, n_rows: int, table: str) -> list[int]:
    """Return the rows that --row names."""
    found: list[int] = []
    for part in text.split(","):
        matched = re.fullmatch(r"\s*(-?\d+)\s*(?:-\s*(\d+)\s*)?", part)
        if matched is None:
            raise UserError(f"--row is {text!r}; write 3, or 3,7,10-12")
        first, last = int(matched[1]), int(matched[2] or matched[1])
        outside = next((one for one in (first, last) if not 0 <= one < n_rows), None)
        if outside is not None:
            raise UserError(f"there is no row {outside}; {table!r} has the rows 0 to {n_rows - 1}")
        found += range(first, last + 1)
    if not found or len(found) > _MOST_ROWS:
        raise UserError(f"--row is {text!r}, which names {len(found):,} rows; name 1 to {_MOST_ROWS:,}")
    return found


def _labels(rows: pl.DataFrame, estimator: Estimator) -> list[Any] | None:
    """Return the true class or number of each row; None if the table does not have the target."""
    target = estimator.schema_.target
    if target is None or target not in rows.columns or target in estimator.schema_.given:
        return None
    return with_cut_target(rows, estimator, target)[target].to_list()
