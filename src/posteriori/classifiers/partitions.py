"""Methods of estimators on tables in partitions, which are computed where the rows are."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.engines import engine_of
from posteriori.fitting.fitted import FittedValue
from posteriori.fitting.recipe import Recipe
from posteriori.support.typing import Array
from posteriori.tables import Table
from posteriori.tables.partitioned import PartitionedTable
from posteriori.tables.polars import is_polars_frame

Method = TypeVar("Method", bound=Callable[..., Any])


def supports_partitions(title: str) -> Callable[[Method], Method]:
    """Return a decorator with which a method of an estimator also takes tables in partitions, and computes lazily.

    For a Dask table the method returns a Dask array. For a Spark DataFrame it returns the DataFrame with one more
    column, of this title.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def evaluate(self: Any, X: Any, **options: Any) -> Any:
            if options:  # the method asks another model, without options
                return method(self, X, **options)
            engine = None if isinstance(X, np.ndarray) or is_polars_frame(X) else engine_of(X)
            if engine is None or not engine.predicts_lazily:
                return method(self, X)
            check_is_fitted(self)
            table = engine.open(X)
            # Raises errors now instead of later, on the workers.
            self.fitted_.rows.places_in(table)
            with warnings.catch_warnings():  # about the example row, which is not the user's
                warnings.simplefilter("ignore")
                example: Array = np.asarray(method(self, self.sample(1, random_state=0)[0]))
            return table.map_rows(functools.partial(method, _for_workers(self.recipe, self.fitted_)), title, example)

        return cast(Method, evaluate)

    return decorate


def _for_workers(recipe: Recipe, value: FittedValue) -> Any:
    """Return an estimator with the same predictions, without its statistics, which may be large."""
    recipe = recipe.with_(n_jobs=1)
    light = recipe.estimator()
    light.fitted_ = replace(value, recipe=recipe).without_rows()
    return light


def require_in_memory(table: Table, what: str) -> None:
    """Raise ValueError if a table is in partitions, because the result may not fit into this process."""
    if isinstance(table, PartitionedTable):
        raise ValueError(f"{what} is for some rows; take them out of the cluster's table first")
