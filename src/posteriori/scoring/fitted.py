"""The posterior of a fitted model with the names of its classes, made of a model file without an estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from posteriori.model import Extrapolation, GenerativeModel, PartialRows, Pool, Posterior
from posteriori.model.answer import Categories
from posteriori.model.class_priors import log_prior_ratio
from posteriori.model_files import Content, check_is_fitted_content, distinct, parse, read_file, refuse_unknown, unpack
from posteriori.scoring.numbers import NumberScorer, number_scorer
from posteriori.scoring.posterior import ModelRows, Scorer
from posteriori.scoring.rows import RowsToPredict
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges
from posteriori.statistics.sums import ranges_of
from posteriori.support.checks import check_not_negative, check_numbers, require
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema
from posteriori.tables.arrays import write_column
from posteriori.user_warnings import warn

_NETWORK = "BayesianNetwork"
_MIXTURE = "MixtureModel"
_OF_NUMBERS = ("FittedRegression", "FittedGaussian")
_JOINT = "FittedJoint"
_IMPUTER = "FittedImputer"


@dataclass(frozen=True)
class FittedPosterior:
    """p(y | x) of a fitted model, with its classes."""

    posterior: Posterior
    target: Column  # the classes
    model: str  # the name of the model in messages
    n_jobs: int | None = None  # the number of threads; None or −1 for one per core
    # whether the model was learned from rows; then rows without the names of its columns give a warning
    learned: bool = True
    # the ranges of the columns in the training rows, outside of which predictions are extrapolated; None if unknown
    ranges: ColumnRanges | None = None

    def check(self) -> None:
        """Raise ValueError unless models, pool and classes fit together; for a model from a file."""
        models, pool, target = self.posterior.models, self.posterior.pool, self.target
        require(len(models) > 0, "members or weights are missing")
        if self.ranges is not None:
            self.ranges.check_against(len(models[0].schema.columns))
        require(target.kind == "categorical", "the target is no column of classes")
        require(len(target.kinds) <= 1, "the classes are of several kinds")
        for model in models:
            require(isinstance(model, GenerativeModel), "model_ is of the wrong kind")
            require(model.schema.uncut() == models[0].schema.uncut(), "the members are of different columns")
            require(model.n_classes == len(target.categories), "the model has not one component or more for each class")
        if pool is None:
            require(len(models) == 1, "members or weights are missing")
            return
        check_numbers("the weights of the members", pool.weight, (len(models),), 0.0)
        check_numbers("the biases of classes", pool.bias, (len(target.categories),))

    @property
    def is_mixture(self) -> bool:
        """Whether the classes are components of a mixture, which have no names."""
        return self.model == _MIXTURE

    @property
    def schema(self) -> Schema:
        """The columns, without cut points if there are several models."""
        return self.posterior.schema

    @cached_property
    def labels(self) -> list[Any]:
        """The classes as Python values, or the numbers of the components of a mixture."""
        return list(range(len(self.target.categories))) if self.is_mixture else write_column(self.target).tolist()

    @cached_property
    def meaning(self) -> Categories:
        """The classes, in their order if they have one."""
        return Categories.of(self.target)

    @property
    def fallback(self) -> int:
        """The index of the class that is predicted for a row that no class can produce."""
        return int(self.posterior.models[0].class_log_prior.argmax())

    @cached_property
    def rows(self) -> RowsToPredict:
        """The reader of rows to predict."""
        return RowsToPredict(self.schema, self.model, self.posterior.n_scores, self.learned)

    def source(self, X: Any) -> LabelledSource:
        """Return rows to predict as a source; X is anything that `predict` takes."""
        return self.rows.source(X, self.n_jobs)

    def scorer(self) -> Scorer:
        """Return a function from one row, a dict, to p(y | x) of each class, a dict."""
        return Scorer(tuple(self.labels), ModelRows(self.posterior, self.model))


class NumberModelError(ValueError):
    """A model file predicts a number, where one of classes is needed."""


def load_posterior(path: Path) -> FittedPosterior | None:
    """Read the posterior of a model that `posteriori.save` wrote, without scikit-learn; None for a network.

    Parameters of the estimator and statistics are not read, and not checked.

    Raises
    ------
    FileNotFoundError, ValueError
        As `posteriori.load`.
    NumberModelError
        The model predicts a number, and has no classes.
    """
    metadata, arrays = read_file(path)
    with refuse_unknown(path):
        content = parse(metadata["content"])
        if content["model"] == _NETWORK:
            return None
        check_is_fitted_content(content)
        kind = content["fitted"]["type"]
        if kind not in (*_OF_NUMBERS, _JOINT, _IMPUTER):
            fitted = _posterior_of(content["fitted"], arrays)
            fitted.check()
            return fitted
    if kind == _JOINT:
        raise ValueError(f"{str(path)!r} holds a joint model: use posteriori.load(path).predict(rows, column)")
    if kind == _IMPUTER:
        raise ValueError(f"{str(path)!r} holds a GenerativeImputer: use posteriori.load(path).transform(rows)")
    raise NumberModelError(f"{str(path)!r} predicts a number, and has no classes: use posteriori.load(path).predict")


def load_scorer(path: Any) -> Scorer | NumberScorer:
    """Read a function from one row to the posterior, or to the predicted number, out of a model file: for services.

    Of the dependencies only NumPy and safetensors are imported, and no other needs to be installed: the process starts
    in about half a second.

    Parameters
    ----------
    path : path
        A file that `posteriori.save` or ``posteriori fit`` wrote.

    Returns
    -------
    Scorer or NumberScorer
        That of `model.scorer()`: of an `AdditiveRegressor` or a `KernelRegressor` a `NumberScorer`.

    Raises
    ------
    FileNotFoundError
        The file does not exist.
    ValueError
        As `posteriori.load`; or the file holds a Bayesian network: use ``load(path).as_classifier(target).scorer()``;
        or it holds a `GenerativeRegressor`.

    Examples
    --------
    >>> import os, tempfile, posteriori as po
    >>> path = os.path.join(tempfile.mkdtemp(), "model.posteriori")
    >>> po.save(po.NaiveBayes().fit([["u"], ["u"], ["v"]], ["a", "a", "b"]), path)
    >>> score = po.scoring.load_scorer(path)
    >>> {label: round(p, 2) for label, p in score({"x0": "v"}).items()}
    {'a': 0.43, 'b': 0.57}
    """
    try:
        fitted = load_posterior(Path(path))
    except NumberModelError:
        return number_scorer(Path(path))
    if fitted is None:
        raise ValueError(
            f"{str(path)!r} holds a Bayesian network; name the variable to predict: "
            "posteriori.load(path).as_classifier(target).scorer()"
        )
    return fitted.scorer()


def _posterior_of(content: Content, arrays: dict[str, Array]) -> FittedPosterior:
    """Convert a fitted value of a file, whose recipe is a name and parameters."""
    fitted, recipe = content["fields"], content["fields"]["recipe"]["estimator"]
    name, n_jobs = recipe["recipe"], dict(recipe["parameters"]["dict"]).get("n_jobs")

    def unpacked(key: str) -> Any:
        return unpack(fitted[key], arrays)

    if content["type"] != "FittedPool":
        posterior = Posterior((unpacked("model"),))
        learned = fitted["statistics"] is not None
        ranges = unpack(fitted["statistics"]["fields"].get("ranges"), arrays) if learned else None
        return FittedPosterior(posterior, unpacked("target"), name, n_jobs, learned, ranges)
    members = {key: _posterior_of(member, arrays) for key, member in distinct(fitted["members"]["dict"]).items()}
    weights = unpacked("weights")
    require(len(members) > 0 and members.keys() == weights.keys(), "members or weights are missing")
    for member in members.values():
        member.check()
        require(member.target == next(iter(members.values())).target, "the members have different classes")
    for weight in weights.values():
        check_not_negative("the weight of a member", weight)
    models = tuple(model for member in members.values() for model in member.posterior.models)
    partial = PartialRows(
        *_of_rows(unpacked, "partial", members), *_of_rows(unpacked, "nothing", members), unpacked("known_cells")
    )
    target, ranges = next(iter(members.values())).target, ranges_of([member.ranges for member in members.values()])
    beyond = None
    if ranges is not None:
        ranges.check_against(len(models[0].schema.columns))
        priors = unpack(dict(recipe["parameters"]["dict"]).get("priors"), arrays)
        beyond = Extrapolation.of(ranges, models, log_prior_ratio(priors, target, unpacked("training_prior")))
    pool = Pool(np.array(list(weights.values())), unpacked("bias"), partial, beyond)
    partial.check_against(len(models), len(target.categories), len(models[0].schema.columns))
    return FittedPosterior(Posterior(models, pool), target, name, n_jobs, ranges=ranges)


def _of_rows(unpacked: Callable[[str], Any], key: str, members: Mapping[str, Any]) -> tuple[Array, Array]:
    """Return the weights of the members, (M,), and the biases, (C,), of partial rows or of nothing known."""
    weights = unpacked(f"{key}_weights")
    require(members.keys() == weights.keys(), "the weights for partial rows are missing")
    return np.array(list(weights.values())), unpacked(f"{key}_bias")


def most_probable(scores: Array) -> Array:
    """Return the index of the largest score of each row, (n,); −1 where all scores are −inf."""
    best: Array = scores.argmax(axis=1)
    best[np.isneginf(scores[np.arange(len(best)), best])] = -1
    return best


def warn_of_impossible(first: int, count: int, of: str = "class") -> None:
    """Warn of rows that no class, or component, can produce, by the number of the first."""
    warn(
        f"row {first}{f' and {count - 1} more' if count > 1 else ''} cannot be produced by any "
        f"{of}, so its posterior is undefined (NaN; predict falls back on the prior); set alpha > 0, or "
        "correct a number that lies absurdly far from all others"
    )
