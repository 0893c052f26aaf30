"""Rules of decision from the options --threshold and --costs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from posteriori.cli.label_options import spellings
from posteriori.cli.messages import UserError, as_user_errors

if TYPE_CHECKING:
    from posteriori.scoring.decisions import Decision


def thresholds_in(given: Sequence[str] | None, classes: Sequence[Any]) -> Decision | None:
    """Return the rule of --threshold CLASS=P; None without it.

    Raises
    ------
    UserError
        A value is malformed, or names no class.
    """
    from posteriori.scoring.decisions import decision_of

    if not given:
        return None
    spelled = _spelled(classes)
    thresholds = {}
    for text in given:
        name, _, share = text.rpartition("=")
        try:
            threshold = float(share)
        except ValueError:
            threshold = -1.0
        if not name or not 0 <= threshold <= 1:
            raise UserError(f"--threshold is {text!r}; write CLASS=P with a probability P from 0 to 1")
        thresholds[spelled.get(name, name)] = threshold
    with as_user_errors():
        return decision_of(classes, thresholds=thresholds)


def costs_in(path: Path, classes: Sequence[Any]) -> Decision:
    """Return the rule of --costs.

    Raises
    ------
    UserError
        The file cannot be read, or is not a matrix of costs of the classes.
    """
    from posteriori.scoring.decisions import decision_of

    costs = _json_costs(path) if path.suffix.lower() == ".json" else _table_costs(path)
    spelled = _spelled(classes)
    named = {
        spelled.get(true, true): {spelled.get(decided, decided): cost for decided, cost in of_decision.items()}
        for true, of_decision in costs.items()
    }
    with as_user_errors():
        return decision_of(classes, costs=named)


def _spelled(classes: Sequence[Any]) -> dict[str, Any]:
    return {spelling: label for label in classes for spelling in spellings(label)}


def _json_costs(path: Path) -> dict[str, dict[str, float]]:
    try:
        content = json.loads(path.read_bytes())
    except ValueError:
        content = None
    rows = content.values() if isinstance(content, dict) else [None]
    if not all(isinstance(row, dict) and all(isinstance(cost, int | float) for cost in row.values()) for row in rows):
        raise UserError(f"{str(path)!r} is no JSON of costs; write {{true class: {{predicted class: cost}}}}")
    return dict(content)


def _table_costs(path: Path) -> dict[str, dict[str, float]]:
    from posteriori.cli.reading import read_frame

    first, *others = read_frame(path).iter_columns()
    for column in others:
        if not column.dtype.is_numeric() or column.null_count():
            raise UserError(f"column {column.name!r} of {str(path)!r} must hold a cost in each row")
    names = [spellings(cell)[0] for cell in first]
    return {true: {column.name: float(column[row]) for column in others} for row, true in enumerate(names)}
