"""A joint model as the objects that the evaluator in JavaScript reads."""

from __future__ import annotations

from typing import Any

from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.joint_model import JointModel
from posteriori.javascript.values import MOST_NUMBERS, written_array, written_column
from posteriori.joint.grids import NumberGrid
from posteriori.joint.law import Law
from posteriori.model.beliefs import Tables
from posteriori.model_cost import require_affordable_export


def written_joint_model(model: JointModel) -> dict[str, Any]:
    """Return the members of a joint model as tables over codes, and what the codes of each column stand for.

    Raises
    ------
    ValueError
        It has more than 10,000,000 numbers, or a category that JSON lacks.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    """
    check_is_fitted(model)
    value = model._value
    law = value.law
    name = type(model).__name__
    sizes = {name: sum(table.size for one in law.members for table in one.tables)}
    instead = "ask it by posteriori query instead"
    require_affordable_export("the model in JavaScript", "javascript", sizes, "numbers", MOST_NUMBERS, instead)
    return {
        "kind": "joint",
        "name": name,
        "columns": [_column(law, j) for j in law.columns],
        "members": [
            _member(of_member, weight, one, law.columns)
            for of_member, weight, one in zip(value.members, law.weight.tolist(), law.members, strict=True)
            if weight > 0
        ],
    }


def _column(law: Law, j: int) -> dict[str, Any]:
    written = written_column(law.schema.columns[j])
    return written | ({"grid": _grid(law.grids[j])} if j in law.grids else {})


def _grid(grid: NumberGrid) -> dict[str, Any]:
    cells = grid.cells
    return {
        "low": written_array(cells.low),
        "high": written_array(cells.high),
        "step": cells.step,
        "code": grid.code.tolist(),
        "share": written_array(grid.share),
    }


def _member(name: str, weight: float, tables: Tables, columns: tuple[int, ...]) -> dict[str, Any]:
    return {
        "name": name,
        "weight": weight,
        "log_prior": written_array(tables.log_prior),
        "columns": [columns.index(j) for j in tables.columns],
        "parents": list(tables.parents),
        "tables": [written_array(table) for table in tables.tables],
    }
