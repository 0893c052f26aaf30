"""A regressor as the objects that the evaluator in JavaScript reads."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from posteriori.classifiers.estimator import Estimator
from posteriori.javascript.values import MOST_NUMBERS, written_array, written_column
from posteriori.model_cost import require_affordable_export
from posteriori.regression.features import Features
from posteriori.regression.gaussian import FittedGaussian
from posteriori.regression.least_squares import LeastSquares
from posteriori.regression.locations import Locations
from posteriori.regression.scales import Scale


def written_regressor(model: Estimator) -> dict[str, Any]:
    """Return a sum of functions of single columns, with the cells of its target.

    Raises
    ------
    TypeError
        The model is another regressor.
    ValueError
        It has more than 10,000,000 numbers, or a category that JSON lacks.
    sklearn.exceptions.NotFittedError
        The model is not fitted.
    """
    design = getattr(getattr(model.fitted_, "found", None), "design", None)
    if design is None or design.landmarks is not None:
        raise TypeError(
            f"a {type(model).__name__} has parts that a page or a script does not hold, such as similarities between "
            "rows; of a GenerativeRegressor write its additive_member(), else fit an AdditiveRegressor"
        )
    value = cast(FittedGaussian, model.fitted_)
    found = value.found
    squares, filler = value.squares, found.design.filler
    n_features = len(squares.penalty)
    size = n_features * (n_features + 1) // 2 * (1 if filler is None else 2)
    name = type(model).__name__
    instead = "predict by posteriori predict instead"
    require_affordable_export("the model in JavaScript", "javascript", {name: size}, "numbers", MOST_NUMBERS, instead)
    return {
        "kind": "regressor",
        "name": name,
        "target": value.target.name,
        "columns": [written_column(column) for column in value.schema.columns],
        "cells": _cells(found),
        "scale": _scale(found.scale),
        "features": _features(found.design.features),
        "noise": value.noise,
        "degrees": squares.degrees,
        "squares": _squares(squares),
        "filler": None if filler is None else _squares(filler, of=squares),
    }


def _cells(found: Locations) -> dict[str, Any]:
    cells, (weight, of_all) = found.cells, found.floor
    return {
        "low": written_array(cells.low),
        "high": written_array(cells.high),
        "step": cells.step,
        "edges": written_array(found.edges[1:-1]),  # where cells meet, on the scale
        "atoms": np.flatnonzero(found.atoms).tolist(),
        "share": written_array(found.share),
        "floor": {"weight": weight, "probability": written_array(of_all)},
    }


def _scale(scale: Scale) -> dict[str, Any]:
    """Return the scale with its centre and its unit; normal scores of ranks have none."""
    written: dict[str, Any] = {"name": scale.name}
    if scale.name != "rank":
        low, high = scale.knots.tolist()
        written |= {"centre": low, "unit": high - low, "shift": scale.shift}
    return written


def _features(features: Features) -> dict[str, Any]:
    """Return the features in their order: of numbers, of categories, and the marks of gaps."""
    return {
        "numbers": [
            {
                "column": one.column,
                "centre": one.centre,
                "scale": one.scale,
                "ends": list(one.reach),
                "cuts": written_array(one.cuts),
                "usual": written_array(one.usual),
            }
            for one in features.numbers
        ],
        "categories": [
            {"column": one.column, "codes": one.codes.tolist(), "usual": written_array(one.usual)}
            for one in features.categories
        ],
        "gaps": [{"column": one.column, "share": one.share} for one in features.gaps],
        "most_gaps": features.most_gaps,
    }


def _squares(squares: LeastSquares, of: LeastSquares | None = None) -> dict[str, Any]:
    """Return means and the lower triangle of S + Λ, row by row, with the coefficients, which may be those of others."""
    matrix, coefficients = squares.matrix, (of or squares).coefficients
    return {
        "weight": squares.products.weight,
        "mean": written_array(squares.mean),
        "target_mean": float(squares.target_mean[0]),
        "coefficients": written_array(coefficients[:, 0]),
        "matrix": written_array(matrix[np.tril_indices(len(matrix))]),
    }
