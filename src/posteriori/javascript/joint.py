"""A joint model as the objects that the evaluator in JavaScript reads."""

from __future__ import annotations

from typing import Any

import numpy as np

from posteriori.classifiers.joint_model import JointModel
from posteriori.javascript.values import MOST_NUMBERS, written_array, written_column
from posteriori.joint.counting import CountedRows
from posteriori.joint.grids import NumberGrid
from posteriori.joint.law import Law
from posteriori.joint.trees import PARTS
from posteriori.joint.value import FLOOR
from posteriori.model.beliefs import Tables
from posteriori.model_cost import require_affordable_export
from posteriori.support.typing import Array

_CELLS_PER_NUMBER = 5  # cells of rows are that much shorter than numbers


def written_joint_model(model: JointModel) -> dict[str, Any]:
    """Return the members of a joint model as tables over codes, what the codes of each column stand for, and its rows.

    Raises
    ------
    ValueError
        It has more than 10,000,000 numbers, five cells of rows counted as one, or a category that JSON lacks.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    """
    value = model._value
    law = value.law
    name = type(model).__name__
    size = sum(table.size for one in law.members for table in one.tables)
    size += 0 if law.counted is None else law.counted.rows.codes.size // _CELLS_PER_NUMBER
    instead = "ask it by posteriori query instead"
    require_affordable_export("the model in JavaScript", "javascript", {name: size}, "numbers", MOST_NUMBERS, instead)
    return {
        "kind": "joint",
        "name": name,
        "columns": [_column(law, j) for j in law.columns],
        "floor": FLOOR,
        "members": [
            _member(of_member, value.weights[of_member], tables, law.columns)
            for of_member, tables in value.members.items()
            if value.weights[of_member] > 0
        ],
        "rows": None if law.counted is None else _rows(law, law.counted),
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
        "tables": [_table(table) for table in tables.tables],
    }


def _table(table: Array) -> dict[str, Any]:
    """Return a table in whole parts of its lines, which are shorter than decimals; an older one has none."""
    parts = table * PARTS
    is_whole = bool((parts == np.rint(parts)).all())
    return written_array(_whole(parts) if is_whole else table) | {"divisor": PARTS if is_whole else 1}


def _rows(law: Law, counted: CountedRows) -> dict[str, Any]:
    """Return the cells of each column of the rows, from 1 and 0 where missing, and the weights of the rows.

    Equal rows are written once, unless they have gaps: the order of these chooses which are filled in, of very many.
    """
    cells = np.column_stack([counted.codes(j) for j in law.columns])
    is_complete, weight = (cells > 0).all(axis=1), counted.rows.weight
    distinct, place = np.unique(cells[is_complete], axis=0, return_inverse=True)
    merged = np.bincount(place.ravel(), weight[is_complete], len(distinct))
    written, weights = np.concatenate([distinct, cells[~is_complete]]), np.append(merged, weight[~is_complete])
    is_whole = bool((weights == np.rint(weights)).all())
    return {"cells": written.T.tolist(), "weight": written_array(_whole(weights) if is_whole else weights)}


def _whole(values: Array) -> Array:
    return np.asarray(values.astype(np.int64))
