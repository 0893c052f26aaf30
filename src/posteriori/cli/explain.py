"""The command explain: Bayes' rule written out for some rows, or a number as a sum."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from posteriori.cli.messages import UserError, as_user_errors
from posteriori.cli.models import align, load_classifier_or_regressor, load_posterior, read_for, with_cut_target
from posteriori.cli.options import AsJson, ModelPath, TablePath
from posteriori.cli.targets import check_numeric

if TYPE_CHECKING:
    import polars as pl

    from posteriori.classifiers import GenerativeEstimator
    from posteriori.classifiers.generative_regressor import Regressor

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
    estimator = load_classifier_or_regressor(model)
    whole = read_for(estimator, table)
    frame = align(whole, estimator.schema_)
    positions = _positions(row, frame.height, table.name)

    from posteriori.classifiers.generative_regressor import Regressor
    from posteriori.cli import explanation_page, tables

    if isinstance(estimator, Regressor):
        _explain_number(estimator, frame[positions], whole[positions], positions, table, as_json)
        return

    import numpy as np

    from posteriori.scoring.strangeness import Strangeness

    fitted = load_posterior(model)
    rows = frame[positions]
    with as_user_errors(), np.errstate(invalid="ignore"):  # the posterior of a row that no class can produce
        explanation = estimator.explain(rows)
        rarity = Strangeness.of(fitted.posterior).of_rows(fitted.source(rows)) if fitted.posterior.has_density else None
        labels = _labels(whole[positions], estimator)
        found = explanation_page.explanation_facts(explanation, positions, labels, rarity, estimator.out_of_range(rows))
        if as_json:
            tables.print_json({"command": "explain", "table": str(table), "rows": found})
            return
        for place, facts in enumerate(found):
            explanation_page.print_explanation(explanation.row(place), facts)


def _explain_number(
    estimator: Regressor, rows: pl.DataFrame, whole: pl.DataFrame, positions: list[int], table: Path, as_json: bool
) -> None:
    """Print the means of some rows as sums."""
    from posteriori.cli import tables
    from posteriori.cli.number_explanation_page import number_explanation_facts, print_number_explanation

    target = estimator.target_.name
    if target in whole.columns and whole[target].null_count() < whole.height:
        check_numeric(target, whole.schema)
    with as_user_errors():
        explanation, interval = estimator.explain(rows), estimator.predict_interval(rows)
        outside = estimator.out_of_range(rows)
    found = number_explanation_facts(explanation, positions, _labels(whole, estimator), interval, outside)
    if as_json:
        tables.print_json({"command": "explain", "table": str(table), "rows": found})
        return
    for facts in found:
        print_number_explanation(facts)


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


def _labels(rows: pl.DataFrame, estimator: GenerativeEstimator | Regressor) -> list[Any] | None:
    """Return the true class or number of each row; None if the table does not have the target."""
    target = estimator.schema_.target
    if target is None or target not in rows.columns or target in estimator.schema_.given:
        return None
    return with_cut_target(rows, estimator, target)[target].to_list()
