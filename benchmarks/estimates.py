"""Estimates of work that calls make before they begin, against the CPU seconds that they take: fills RESULTS.md."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from unittest import mock

import numpy as np

import posteriori as po
from benchmarks.costs import table
from benchmarks.timing import Row, report, show
from posteriori.model_cost import Work
from posteriori.registry import find_model

_TEN_STEPS = {"max_iter": 10, "tol": 1e-12}  # EM is estimated by ten steps


def _measured(call: Callable[[], object]) -> tuple[float, float]:
    """Return the seconds that a call estimates, and the CPU seconds that it takes once all is compiled."""
    seen: list[float] = []
    known = Work.announce

    def noted(work: Work, what: str, advice: str) -> None:
        seen.append(work.seconds)
        known(work, what, advice)

    call()
    with mock.patch.object(Work, "announce", noted):
        begun = time.process_time()
        call()
        return sum(seen), time.process_time() - begun


def _gaps(X, share=0.1):
    return np.where(np.random.default_rng(1).random(X.shape) < share, np.nan, X)


def _fit(name, n, d, n_classes=3, missing=False, **options):
    X, y = table(n, d, n_classes)
    model = find_model(name).make(n_jobs=1, **options)
    rows = _gaps(X) if missing else X
    many = f", {n_classes} classes" if n_classes > 3 else ""
    return f"fit {name}, {n:,} × {d:,}{many}{' with gaps' if missing else ''}", lambda: model.fit(rows, y)


def _pool(n, d):
    X, y = table(n, d, 3)
    model = po.GenerativeClassifier(n_jobs=1, random_state=0)
    return f"fit GenerativeClassifier, 5 folds, {n:,} × {d}", lambda: model.fit(X, y)


def _predict(model, n, d, missing=False):
    X, y = table(n, d, 3)
    model.set_params(n_jobs=1).fit(X[:5000], y[:5000])
    rows = _gaps(X, 0.2) if missing else X
    gaps = " with gaps" if missing else ""
    return f"predict_proba, {type(model).__name__}, {n:,} × {d}{gaps}", lambda: model.predict_proba(rows)


def _mixture(n, d, n_components, covariance, n_init=5, max_iter=10):
    X, _ = table(n, d, 3)
    em = po.EM(**(_TEN_STEPS | {"max_iter": max_iter}))
    model = po.MixtureModel(n_components, covariance=covariance, n_init=n_init, em=em, random_state=0, n_jobs=1)
    starts = f"{n_init} starts" if n_init > 1 else "1 start"
    few = "" if max_iter == 10 else f" of {max_iter} steps"
    return f"MixtureModel({n_components}), {covariance}, {starts}{few}, {n:,} × {d}", lambda: model.fit(X)


def _network(n, d, numeric):
    X, _ = table(n, d, 3)
    X[:, 1:] += X[:, :-1]
    cells = X if numeric else np.digitize(X, [-1.0, 0.0, 1.0]).astype(str)
    what = "numbers" if numeric else "states"
    return f"learn_network, {n:,} × {d} {what}", lambda: po.learn_network(cells, n_jobs=1)


def _draw(n, d):
    X, y = table(1000, d, 3)
    model = po.GaussianDiscriminant(n_jobs=1).fit(X, y)
    return f"sample, {n:,} × {d}", lambda: model.sample(n)


def rows(quick: bool) -> list[Row]:
    """Return the lines of the table."""
    n = 2_000 if quick else 20_000
    n_predicted = 10 * n  # fewer than 16,385 rows are not estimated
    calls = (
        _fit("cells", 1_000, 300),
        _fit("cells", 1_500, 20, 300),
        _fit("cells", 5_000, 200, 300),
        _fit("nb", 50 * n, 20),
        _fit("tan", n, 100),
        _fit("aode", n, 100),
        _fit("forest", n, 20),
        _fit("qda", n, 10, missing=True, em=po.EM(**_TEN_STEPS)),
        _fit("qda", n // 4, 60, missing=True, em=po.EM(**_TEN_STEPS)),
        _mixture(n, 10, 10, "full"),
        _mixture(n // 4, 60, 20, "full"),
        _mixture(n, 60, 10, "diagonal"),
        _mixture(50 * n, 5, 3, "full", n_init=1, max_iter=3),
        _pool(n // 10, 20),
        _predict(po.GaussianDiscriminant(), 50 * n, 20),
        _predict(po.KDependenceBayes(k=2), n_predicted, 20, missing=True),
        _predict(po.AveragedOneDependence(), n_predicted, 60),
        _predict(po.GenerativeForest(n_trees=200), n_predicted, 10),
        _network(n, 60, numeric=False),
        _network(n // 10, 20, numeric=True),
        _draw(5 * n, 50),
    )
    found = []
    for work, call in calls:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            estimated, measured = _measured(call)
        ratio = estimated / measured
        found.append(
            Row(work, show(measured), f"estimated {show(estimated)}", f"{ratio:.2g}", "⅓ to 3", 1 / 3 <= ratio <= 3)
        )
        print(found[-1], flush=True)
    return found


if __name__ == "__main__":
    report("Estimates of work (CPU seconds)", rows)
