"""Fit every model to more and more rows, and judge it on rows that it has not seen."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from posteriori.comparison.models import chosen_models, is_generative
from posteriori.comparison.result import Comparison
from posteriori.comparison.rows import Rows, check_sizes, read_rows, stratified_order, training_rows
from posteriori.draws import generator
from posteriori.learning.metrics import accuracy, brier_score, fill_undefined, log_loss
from posteriori.typing import Array


def compare(
    X: Any,
    y: Any,
    models: Any = None,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    test_share: float = 0.25,
    categorical_features: Any = "from_dtype",
    random_state: Any = None,
    n_jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Measure how well models do, and how long they take, by the number of rows that they learn from.

    A generative model estimates more than it needs, p(x, y), and reaches its best after fewer rows: of the order of
    log d for naive Bayes where logistic regression takes d. That best may be the worse one. So the curves may cross,
    and which kind to choose depends on how many rows there are (Ng & Jordan 2002).

    Parameters
    ----------
    X : array-like or data frame (n, d)
        As in the `fit` of any classifier here; cells may be missing.
    y : array-like (n,) or str
        The label of each row, or the name of the column of X that holds them.
    models : sequence of names or classifiers, or mapping, optional
        Names are "pool", "nb", "lda", "qda", "rda", "tan", "chow-liu", "kdb", "aode", "logistic", "boosting", "forest"
        and those of the candidates of `GenerativeClassifier`. A mapping gives each its title in tables and pictures. A
        classifier, of this library or of scikit-learn, is given a polars frame whose numbers are floats and whose
        categories are strings; `discriminative` puts the usual preprocessing before one that cannot take that. Default:
        the pool, naive Bayes, LDA, TAN, logistic regression and gradient boosting.
    sizes : sequence of int, optional
        Numbers of rows to learn from, at least 2; default: `training_sizes`.
    repeats : int, default 5
        How often rows are divided anew.
    test_share : float, default 0.25
        The share of the rows that models are judged on; those of a repeat are the same for all models and sizes.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.
    random_state : int, Generator or RandomState, optional
        Divides the rows, and is the seed of models that draw and have none of their own.
    n_jobs : int, default 1
        Threads of each fit, of BLAS and OpenMP and of models that do not say how many. Of few rows one learns faster
        than several do.
    progress : callable, optional
        Called after each fit with the number of rows learned from; the fits take
        ``len(models) * repeats * sum(sizes)`` in all.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        A label is missing, there is one class only, a size or another parameter does not fit, or a model cannot
        learn from some of the rows.
    TypeError
        X is no table, or a model gives no probabilities.

    Notes
    -----
    Rows are drawn so that those of a smaller size are among those of a greater, classes have about the shares that
    they have in the whole, and each has a row from the first C on. A class that training lacks has probability 0,
    which costs 36 nats, as in `posteriori.learning.metrics.log_loss`. A row that no class of a model can produce is
    given the shares of the classes in training.

    Each model is fitted once before the clock runs, so that what happens once a process is not in the times.

    References
    ----------
    Ng & Jordan (2002), On discriminative vs. generative classifiers: a comparison of logistic regression and naive
    Bayes, NIPS 14.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> found = po.compare(
    ...     load_penguins(), "species", ["nb", "logistic"], sizes=[10, 200], repeats=2, random_state=0
    ... )
    >>> found.scores.select("model", "n_rows", "repeat").head(2).rows()
    [('naive Bayes', 10, 0), ('logistic regression', 10, 0)]
    >>> found.generative, found.discriminative
    (('naive Bayes',), ('logistic regression',))
    """
    chosen = chosen_models(models)
    for name, value in (("repeats", repeats), ("n_jobs", n_jobs)):
        if not isinstance(value, Integral) or value < 1:
            raise ValueError(f"{name} is {value!r}; give a whole number of at least 1")
    rows = read_rows(X, y, categorical_features)
    learned = check_sizes(sizes, rows, test_share)
    n_training = training_rows(rows.frame.height, test_share)
    rng = generator(random_state)
    trials = _Trials(rows, n_training, int(n_jobs))
    for repeat in range(repeats):
        order, seed = stratified_order(rows.y_true, rng), int(rng.integers(2**31 - 1))
        for size in learned:
            for title, model in chosen.items():
                if repeat == 0 and size == learned[0]:
                    trials.run(title, model, order, size, seed)  # compiles kernels and loads libraries
                scores = trials.run(title, model, order, size, seed)
                trials.note(title, size, repeat, scores)
                if progress is not None:
                    progress(size)
    kinds = {title: is_generative(model) for title, model in chosen.items()}
    return Comparison(
        scores=pl.DataFrame(trials.scores),
        generative=tuple(title for title, kind in kinds.items() if kind),
        discriminative=tuple(title for title, kind in kinds.items() if not kind),
        n_test=rows.frame.height - n_training,
        notes=trials.notes,
    )


@dataclass
class _Trials:
    """Rows, and what has been found of them so far."""

    rows: Rows
    n_training: int
    n_jobs: int
    scores: list[dict[str, Any]] = field(default_factory=list)
    said: Counter[tuple[str, int, str]] = field(default_factory=Counter)

    def run(self, title: str, model: Any, order: Array, size: int, seed: int) -> dict[str, Any]:
        """Return what a model scores that learns from the first rows of an order, on the last of it."""
        training, test = order[:size], order[self.n_training :]
        rows = self.rows
        X, y, unseen = rows.frame[training], rows.labels[training], rows.frame[test]
        learner = _filled(_filled(clone(model), "random_state", seed), "n_jobs", self.n_jobs)
        with warnings.catch_warnings(record=True) as self._heard, threadpool_limits(self.n_jobs):
            warnings.simplefilter("always")
            start = time.perf_counter()
            try:
                learner.fit(X, y)
                fitted = time.perf_counter()
                posterior = learner.predict_proba(unseen)
            except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
                raise _failure(title, size, error) from error
            end = time.perf_counter()
        shares = np.bincount(rows.y_true[training], minlength=len(rows.classes)) / size
        posterior = fill_undefined(_widened(posterior, learner.classes_, rows.classes), shares)
        components = rows.y_true[test]
        return {
            "accuracy": accuracy(components, posterior),
            "log_loss": log_loss(components, posterior),
            "brier": brier_score(components, posterior),
            "fit_seconds": fitted - start,
            "predict_seconds": end - fitted,
        }

    def note(self, title: str, size: int, repeat: int, scores: dict[str, Any]) -> None:
        """Keep the scores of the last run, and what was said in it."""
        self.scores.append({"model": title, "n_rows": size, "repeat": repeat, **scores})
        self.said.update({(title, size, str(one.message)) for one in self._heard})

    @property
    def notes(self) -> pl.DataFrame:
        """The warnings of the models, with the number of repeats in which each was given."""
        said = [(*what, times) for what, times in self.said.items()]
        schema = {"model": pl.String, "n_rows": pl.Int64, "message": pl.String, "repeats": pl.Int64}
        return pl.DataFrame(said, schema, orient="row")


def _filled(model: Any, parameter: str, value: int) -> Any:
    """Return the model with a value for a parameter, its own or of a model inside it, wherever that is None."""
    parameters = model.get_params().items()
    positions = [name for name, now in parameters if now is None and name.rpartition("__")[2] == parameter]
    return model.set_params(**dict.fromkeys(positions, value))


def _widened(posterior: Any, known: Any, classes: Array) -> Array:
    """Return probabilities with a column for each class, 0 for those that training lacked."""
    positions = {label: position for position, label in enumerate(classes.tolist())}
    wide = np.zeros((len(posterior), len(classes)))
    wide[:, [positions[label] for label in np.asarray(known).tolist()]] = posterior
    return wide


def _failure(title: str, size: int, error: Exception) -> ValueError:
    advice = "leave it out, learn from more rows, or wrap it: discriminative(model)"
    return ValueError(f"{title!r} cannot learn from {size} of the rows: {str(error).splitlines()[0]}; {advice}")
