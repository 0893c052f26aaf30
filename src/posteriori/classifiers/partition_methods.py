"""Methods whose result for a row depends on that row only: partitions of a table compute them lazily, in place."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, TypeVar, cast

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.engines import engine_of
from posteriori.typing import Array

Method = TypeVar("Method", bound=Callable[..., Any])


def supports_partitions(title: str) -> Callable[[Method], Method]:
    """Return a decorator with which a method of an estimator also takes tables in partitions, and computes lazily.

    For a Dask table the method returns a Dask array. For a Spark DataFrame it returns the DataFrame with one more
    column, of this title.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def evaluate(self: Any, X: Any) -> Any:
            engine = engine_of(X)
            if engine is None or not engine.predicts_lazily:
                return method(self, X)
            check_is_fitted(self)
            table = engine.open(X)
            self._places(table, self.schema_.target)  # raises errors now instead of later, on the workers
            with warnings.catch_warnings():  # about the example row, which is not the user's
                warnings.simplefilter("ignore")
                example: Array = np.asarray(method(self, self.sample(1, random_state=0)[0]))
            return table.map_rows(functools.partial(method, _for_workers(self)), title, example)

        return cast(Method, evaluate)

    return decorate


def _for_workers(estimator: Any) -> Any:
    """Return an estimator with the same predictions, without its statistics, which may be large."""
    light = copy.copy(estimator)
    light.n_jobs = 1
    for name in ("statistics_", "transduction_", "out_of_fold_", "_held_out_sample", "log_likelihood_trace_"):
        vars(light).pop(name, None)
    if hasattr(light, "members_"):
        light.members_ = {name: _for_workers(one) for name, one in light.members_.items()}
    return light
