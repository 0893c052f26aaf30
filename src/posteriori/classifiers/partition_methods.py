"""What says something of each row alone: of a cluster's table it is said where the rows are, and later."""

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
    """Return what lets a method of an estimator take tables in partitions, of which it says nothing but a plan.

    A Dask table gives a Dask array. A Spark DataFrame gives the same with one more column, of this title.
    """

    def decorate(method: Method) -> Method:
        @functools.wraps(method)
        def say(self: Any, X: Any) -> Any:
            engine = engine_of(X)
            if engine is None or not engine.predicts_lazily:
                return method(self, X)
            check_is_fitted(self)
            table = engine.open(X)
            self._places(table, self.schema_.target)  # raises now what would else be raised on the workers
            with warnings.catch_warnings():  # of the one row, which nobody asked about
                warnings.simplefilter("ignore")
                example: Array = np.asarray(method(self, self.sample(1, random_state=0)[0]))
            return table.map_rows(functools.partial(method, _for_workers(self)), title, example)

        return cast(Method, say)

    return decorate


def _for_workers(estimator: Any) -> Any:
    """Return an estimator that predicts the same, without what it has counted: that may be large."""
    light = copy.copy(estimator)
    light.n_jobs = 1
    for name in ("statistics_", "transduction_", "out_of_fold_", "log_likelihood_trace_"):
        vars(light).pop(name, None)
    if hasattr(light, "members_"):
        light.members_ = {name: _for_workers(one) for name, one in light.members_.items()}
    return light
