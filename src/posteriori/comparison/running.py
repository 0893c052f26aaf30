"""Learning curves: fit every model to training sets of several sizes, and score it on test rows."""

from __future__ import annotations

import time
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from numbers import Integral
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone
from threadpoolctl import threadpool_limits

from posteriori.comparison.discriminative import with_targets
from posteriori.comparison.models import (
    OF_COMPARISONS,
    Rows,
    check_sizes,
    chosen_models,
    is_generative,
    predict_with,
    predicts_number,
    read_rows,
    rows_for,
    stratified_order,
    training_rows,
    with_all_classes,
)
from posteriori.comparison.result import Comparison
from posteriori.model_cost import Work
from posteriori.model_selection.metrics import accuracy, brier_score, fill_undefined, log_loss
from posteriori.regression.held_out import mean_scores, scores_of_rows
from posteriori.support.checks import generator
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.typing import Array

_MOST = 1000  # repeats, or threads
_TIMES_LONGER = 3.0  # than announced before
_MANY = 1000  # rows, below which the time of a fit hardly depends on them


@partial(explain_unknown_keywords, groups={}, wanted=OF_COMPARISONS)
def compare(
    models: Any,
    X: Any,
    y: Any,
    *,
    sizes: Sequence[int] | None = None,
    repeats: int = 5,
    test_share: float = 0.25,
    categorical_features: Any = "from_dtype",
    keep: Any = None,
    dates: Any = "parts",
    text: Any = "auto",
    random_state: Any = 0,
    n_jobs: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Comparison:
    """Measure learning curves: scores and run times of models by the number of training rows.

    A generative model estimates more than it needs, p(x, y), and approaches its asymptotic error with fewer rows: of
    the order of log d for naive Bayes and d for logistic regression, with d features. Its asymptotic error may be
    higher. Therefore the curves may cross, and the better kind depends on the number of rows (Ng & Jordan 2002).

    Parameters
    ----------
    models : name, classifier or regressor, sequence or mapping of these, or None
        Names are "pool", "nb", "lda", "qda", "rda", "tan", "chow-liu", "kdb", "aode", "forest", "logistic", "boosting",
        "random forest" and those of the candidates of `GenerativeClassifier`; of numbers "regressor", "additive",
        "kernel", "ridge", "boosting regressor" and "forest regressor". A mapping gives the titles of the models
        in tables and plots. A classifier, of this library or of scikit-learn, receives a polars frame whose numbers are
        floats and whose categories are strings. `discriminative` adds the usual preprocessing to a classifier that does
        not accept such a frame. None: the pool, naive Bayes, LDA, TAN, logistic regression and gradient boosting; if y
        holds a quantity, the pool of regressions, the additive one, gradient boosting, random forest and ridge.
    X : array-like or data frame (n, d)
        As in the `fit` of any classifier here; cells may be missing.
    y : array-like (n,) or str
        The label of each row, or its number, or the name of the column of X that holds these.
    sizes : sequence of int, optional
        Numbers of training rows, at least 2; default: `training_sizes`.
    repeats : int, default 5
        The number of random divisions into training and test rows.
    test_share : float, default 0.25
        The fraction of the rows that are test rows. Those of a repeat are the same for all models and sizes.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.
    keep : list of names or indices, or "all", optional
        Columns to use even if they identify rows, as in `NaiveBayes`. Others that do are left out for all models. A
        classifier that is not given by name also needs its own `keep`.
    dates : "parts", "ignore" or list of parts, default "parts"
        How dates are read, as in `NaiveBayes`. All models receive the same parts.
    text : "auto", list of names or mapping, optional, default "auto"
        Columns of text, as in `NaiveBayes`: read by naive Bayes and the pool as counts of words, by logistic regression
        as tf-idf. Other models leave them out, with a warning in `Comparison.notes`.
    random_state : int, Generator, RandomState or None, default 0
        Seed of the divisions, and of models that are random and have no seed.
    n_jobs : int, default 1
        The number of threads of each fit: of BLAS, OpenMP, and models with `n_jobs=None`. With few rows one thread is
        faster than several.
    progress : callable, optional
        Called after each fit with its number of training rows. The sum is ``len(models) * repeats * sum(sizes)``.

    Returns
    -------
    Comparison

    Raises
    ------
    ValueError
        There is one class only, a size or another parameter is out of range, some models predict
        classes and others numbers, or the fit of a model fails; leave out that model.
    TypeError
        X is not a table, or a model has no `predict_proba` and is no regressor.

    Notes
    -----
    Within a repeat, smaller training sets are subsets of larger ones. They are stratified, and hold a row of every
    class if they have at least as many rows as there are classes. A class without training rows has probability 0,
    which adds 36 nats to the log-loss, as in `posteriori.model_selection.metrics.log_loss`. A row that no class of a
    model can produce is predicted by the class frequencies of the training rows.

    Of numbers, training sets are spread evenly over ten quantiles of the target. A regressor without a density has no
    CRPS.

    Each model is fitted once before its first timed fit, so that the times exclude compilation and imports.

    References
    ----------
    Ng & Jordan (2002), On discriminative vs. generative classifiers: a comparison of logistic regression and naive
    Bayes, NIPS 14.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> result = po.compare(
    ...     ["nb", "logistic"], load_penguins(), "species", sizes=[10, 200], repeats=2, random_state=0
    ... )
    >>> result.scores.select("model", "n_rows", "repeat").head(2).rows()
    [('naive Bayes', 10, 0), ('logistic regression', 10, 0)]
    >>> result.generative, result.discriminative
    (('naive Bayes',), ('logistic regression',))
    """
    chosen = chosen_models(models, {"keep": keep, "dates": dates}, X, y)
    for name, value in (("repeats", repeats), ("n_jobs", n_jobs)):
        if not isinstance(value, Integral) or not 1 <= value <= _MOST:
            raise ValueError(f"{name} is {value!r}; give a whole number from 1 to {_MOST}")
    of_numbers = predicts_number(next(iter(chosen.values())))
    X, y = with_targets(X, y)
    rows = read_rows(X, y, categorical_features, keep, dates, text, of_numbers=of_numbers)
    training_sizes = check_sizes(sizes, rows, test_share)
    n_training = training_rows(rows.frame.height, test_share)
    rng = generator(random_state)
    trials = _Trials(rows, n_training, int(n_jobs), text)
    for repeat in range(repeats):
        order, seed = stratified_order(rows.strata, rng), int(rng.integers(2**31 - 1))
        for size in training_sizes:
            for title, model in chosen.items():
                if repeat == 0 and size == training_sizes[0]:
                    trials.run(title, model, order, size, seed)  # not timed: it compiles kernels and loads libraries
                trials.record(title, size, repeat, *trials.run(title, model, order, size, seed))
                if progress is not None:
                    progress(size)
            if repeat == 0:
                trials.announce(training_sizes, int(repeats))
    kinds = {title: is_generative(model) for title, model in chosen.items()}
    return Comparison(
        scores=pl.DataFrame(trials.scores, infer_schema_length=None),
        generative=tuple(title for title, kind in kinds.items() if kind),
        discriminative=tuple(title for title, kind in kinds.items() if not kind),
        n_test=rows.frame.height - n_training,
        notes=trials.notes,
    )


@dataclass
class _Trials:
    """Fits models to parts of the rows, and records their scores and warnings."""

    rows: Rows
    n_training: int
    n_jobs: int
    text: Any = "auto"
    scores: list[dict[str, Any]] = field(default_factory=list)
    warned: Counter[tuple[str, int, str]] = field(default_factory=Counter)
    announced: float = 0.0  # seconds

    def run(
        self, title: str, model: Any, order: Array, size: int, seed: int
    ) -> tuple[dict[str, float | None], frozenset[str]]:
        """Fit a model to the first rows of an order; return its scores on the last rows, and its distinct warnings."""
        training, test = order[:size], order[self.n_training :]
        learner = _with_default(_with_default(clone(model), "random_state", seed), "n_jobs", self.n_jobs)
        with warnings.catch_warnings(record=True) as caught, threadpool_limits(self.n_jobs):
            warnings.simplefilter("always")
            rows = rows_for(title, learner, self.rows, self.text)
            X, y, unseen = rows.frame[training], rows.labels[training], rows.frame[test]
            start = time.perf_counter()
            try:
                learner.fit(X, y)
                fitted = time.perf_counter()
                predicted = predict_with(learner, unseen)
            except (ValueError, TypeError, ArithmeticError, np.linalg.LinAlgError) as error:
                raise _failure(title, size, error) from error
            end = time.perf_counter()
        seconds = {"fit_seconds": fitted - start, "predict_seconds": end - fitted}
        y_true = rows.y_true[test]
        if predicts_number(learner):
            of_rows = scores_of_rows(predicted, y_true)
            means = mean_scores(of_rows, y_true)
            scores = {name: means.get(name) for name in ("crps", "rmse")}
        else:
            frequencies = np.bincount(rows.y_true[training], minlength=len(rows.classes)) / size
            posterior = fill_undefined(with_all_classes(predicted, learner.classes_, rows.classes), frequencies)
            scores = {
                "accuracy": accuracy(y_true, posterior),
                "log_loss": log_loss(y_true, posterior),
                "brier": brier_score(y_true, posterior),
            }
        return scores | seconds, frozenset(str(warning.message) for warning in caught)

    def announce(self, sizes: Sequence[int], repeats: int) -> None:
        """Announce all trials, judged by those of the sizes so far, by `Work`.

        From 1,000 rows on, a trial takes at least as many times as long as it has times the rows.
        """
        seconds: Counter[int] = Counter()
        for trial in self.scores:
            seconds[trial["n_rows"]] += trial["fit_seconds"] + trial["predict_seconds"]
        known = max(seconds)
        later = sum(seconds[known] * max(1.0, size / max(known, _MANY)) for size in sizes if size > known)
        work = Work(repeats * (seconds.total() + later))
        if self.announced < work.seconds / _TIMES_LONGER:  # again only if it is far longer than was said
            self.announced = work.seconds
            work.announce("the rest of the comparison", "ask for fewer repeats, sizes or models")

    def record(
        self, title: str, size: int, repeat: int, scores: dict[str, float | None], messages: frozenset[str]
    ) -> None:
        self.scores.append({"model": title, "n_rows": size, "repeat": repeat, **scores})
        self.warned.update({(title, size, message) for message in messages})

    @property
    def notes(self) -> pl.DataFrame:
        """The warnings of the models, each with the number of repeats in which it occurred."""
        lines = [(*warning, repeats) for warning, repeats in self.warned.items()]
        schema = {"model": pl.String, "n_rows": pl.Int64, "message": pl.String, "repeats": pl.Int64}
        return pl.DataFrame(lines, schema, orient="row")


def _with_default(model: Any, parameter: str, value: int) -> Any:
    """Set a parameter that is None, of the model and of the models inside it."""
    parameters = model.get_params().items()
    names = [name for name, current in parameters if current is None and name.rpartition("__")[2] == parameter]
    return model.set_params(**dict.fromkeys(names, value))


def _failure(title: str, size: int, error: Exception) -> ValueError:
    remedy = "leave it out, give larger sizes, or wrap it: discriminative(model)"
    return ValueError(f"{title!r} cannot learn from {size} of the rows: {str(error).splitlines()[0]}; {remedy}")
