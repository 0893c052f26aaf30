"""Fit, score and save a regressor: what the command fit does for a target of numbers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from posteriori.cli.messages import UserError, as_user_errors, note
from posteriori.cli.targets import without_number

if TYPE_CHECKING:
    from posteriori.classifiers.generative_regressor import Regressor
    from posteriori.reading import Scan
    from posteriori.statistics.description import ScannedTable
    from posteriori.support.typing import Array

_FEWEST_FOLDS, _FOLDS = 3, 9


def refuse_of_classes(given: Mapping[str, bool], target: str) -> None:
    """Raise UserError if an option that is given is one of classes."""
    for option, is_given in given.items():
        if is_given:
            raise UserError(
                f"{option} is for classes, and the model predicts {target!r} as a number; leave it out, or cut the "
                "target into classes with --classes 4"
            )


def folds_of_number(given: int | None) -> int:
    """Return the number of folds of a regressor; UserError if there are too few."""
    if given is not None and given < _FEWEST_FOLDS:
        raise UserError(f"--folds is {given}; a regressor needs {_FEWEST_FOLDS} at least")
    return _FOLDS if given is None else given


def fit_number(
    estimator: Regressor,
    scan: Scan,
    target: str,
    description: ScannedTable,
    groups: Array | None,
    most_recorded: int,
) -> dict[str, Any]:
    """Fit a regressor to the rows with a number, record the rows in it, and return the facts about the fit.

    Parameters
    ----------
    estimator : Regressor
        It is fitted in place.
    scan : Scan
    target : str
    description : ScannedTable
        Of the features and the target in `scan`.
    groups : ndarray (n,) or None
        Of the rows with a number.
    most_recorded : int
        The first rows that evaluate recognises.
    """
    from posteriori.classifiers.training_record import record_rows
    from posteriori.cli.fit_facts import hints
    from posteriori.facts.columns import column_facts, facts_of_scan
    from posteriori.facts.numbers import judged_numbers, number_importance, number_members

    of_target = description.columns[target].cells
    missing = of_target.missing
    features = [name for name in description.columns if name != target]
    rows = scan.narrowed([*features, target], target if missing else None)
    if not of_target.present:
        raise UserError(f"every cell of the target {target!r} is missing; choose another target")
    if missing:
        note(f"{without_number(missing, target)}, of {description.n_rows:,}")
    with as_user_errors():
        estimator.fit(rows, target, groups=groups)
        head = rows.narrowed(features).frame.head(most_recorded)
        record_rows(estimator, head.collect(engine="streaming"))
    held = estimator.out_of_fold_
    return {
        "rows": description.n_rows,
        "rows_without_target": missing,
        "target_range": {"min": of_target.lowest, "mean": of_target.mean, "max": of_target.highest},
        "columns": column_facts(facts_of_scan(estimator, scan, description), description.n_rows),
        "hints": list(hints(scan, description, estimator.schema_, reads_text=False)),
        "folds": estimator.folds,
        "members": number_members(estimator),
        **{name: found for name, found in judged_numbers(held.density, held.y, target).items() if name != "rows"},
        "held_out_rows": len(held.y),
        **number_importance(estimator),
    }
