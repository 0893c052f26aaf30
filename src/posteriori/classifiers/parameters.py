"""Parameters that several classifiers share, and models from given parameters."""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar, dataclass_transform

import numpy as np
from sklearn.utils._param_validation import StrOptions

from posteriori.densities import (
    Categorical,
    CategoricalParameters,
    Gaussian,
    GaussianParameters,
    Missingness,
    MultivariateGaussian,
    MultivariateGaussianParameters,
    Poisson,
    PoissonParameters,
)
from posteriori.densities.covariances import PerClass, Pooled
from posteriori.fitting.parameter_groups import EM, GROUPS, Columns, Labels
from posteriori.model import Block, GenerativeModel, Prior
from posteriori.model.class_priors import check_priors
from posteriori.support.constraints import N_JOBS, PSEUDO_COUNT
from posteriori.support.keywords import explain_unknown_keywords
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema
from posteriori.tables.arrays import plain_cell
from posteriori.tables.schema import categorical_column


@dataclass(frozen=True)
class GivenParameters:
    """Arguments of `NaiveBayes.from_parameters`."""

    given_priors: Any
    classes: Sequence[Any] | None
    gaussian: Mapping[str, Mapping[str, Any]]
    categorical: Mapping[str, Mapping[Any, Any]]
    poisson: Mapping[str, Any]
    features: Sequence[str] | None

    @cached_property
    def target(self) -> Column:
        """Classes in the given order."""
        labels = self.classes
        if labels is None:
            stated = self.given_priors
            if isinstance(stated, str):
                raise ValueError(f"priors={stated!r} does not say how many classes there are; give classes=[…], too")
            labels = list(stated) if isinstance(stated, Mapping) else list(range(len(stated)))
        cells = [plain_cell(label, "classes") for label in labels]
        if len(set(cells)) < len(cells) or not cells:
            raise ValueError(f"classes must be at least one, each once; got {cells}")
        return categorical_column("y", cells, "", declared=True)

    @cached_property
    def priors(self) -> list[float]:
        """p(y) in the order of the classes."""
        return list(check_priors(self.given_priors, self.target))

    @cached_property
    def names(self) -> list[str]:
        """Features in the column order of an array."""
        stated = [*self.gaussian, *self.categorical, *self.poisson]
        if len(set(stated)) < len(stated) or not stated:
            raise ValueError(f"give at least one feature, and each once; got {stated}")
        if self.features is None:
            return stated
        if sorted(self.features) != sorted(stated):
            raise ValueError(f"features={list(self.features)} must list these once each: {stated}")
        return list(self.features)

    def model(self) -> GenerativeModel:
        """Return the model with these parameters."""
        columns = tuple(self._column(name) for name in self.names)
        schema = Schema(columns, named=True, dtype="object" if self.categorical else "<f8")
        blocks, parameters = [], []
        for stated, density, known in (
            (self.gaussian, Gaussian(), self._gaussian),
            (self.categorical, Categorical(), self._categorical),
            (self.poisson, Poisson(), self._poisson),
        ):
            if stated:
                names = [name for name in self.names if name in stated]
                blocks.append(Block(density, tuple(self.names.index(name) for name in names)))
                parameters.append(known(names))
        log_prior = Prior(fixed=tuple(self.priors)).estimate(np.zeros(len(self.priors)))
        return GenerativeModel(schema, tuple(blocks), log_prior, tuple(parameters))

    def _column(self, name: str) -> Column:
        if name not in self.categorical:
            return Column(name, "continuous", dtype="float64")
        cells = [plain_cell(cell, name) for cell in self.categorical[name]]
        return categorical_column(name, cells, "object", declared=True)

    def _gaussian(self, names: list[str]) -> GaussianParameters:
        means, variances = [], []
        for name in names:
            given = dict(self.gaussian[name])
            if set(given) not in ({"mean", "sd"}, {"mean", "variance"}):
                raise ValueError(f"gaussian[{name!r}] needs 'mean' and one of 'sd' and 'variance'; got {list(given)}")
            means.append(self._by_class(given["mean"], f"the mean of {name!r}"))
            spread = self._by_class(given.get("sd", given.get("variance")), f"the spread of {name!r}")
            if not (spread > 0).all():
                raise ValueError(f"the spread of {name!r} must be positive; got {spread.tolist()}")
            variances.append(spread**2 if "sd" in given else spread)
        return GaussianParameters(np.column_stack(means), np.column_stack(variances))

    def _categorical(self, names: list[str]) -> CategoricalParameters:
        tables = []
        for name in names:
            stated = self.categorical[name].items()
            rows = [self._by_class(p, f"the probability of {name!r} = {cell!r}") for cell, p in stated]
            table = np.column_stack(rows)
            if not ((table >= 0).all() and np.allclose(table.sum(axis=1), 1.0)):
                raise ValueError(
                    f"the probabilities of {name!r} must not be negative and sum to 1 in each class; "
                    f"they sum to {table.sum(axis=1).tolist()}"
                )
            with np.errstate(divide="ignore"):
                tables += [np.zeros((len(table), 1)), np.log(table)]
        cardinalities = tuple(len(self.categorical[name]) for name in names)
        return CategoricalParameters(cardinalities, np.ascontiguousarray(np.concatenate(tables, axis=1)))

    def _poisson(self, names: list[str]) -> PoissonParameters:
        rates = [self._by_class(self.poisson[name], f"the rate of {name!r}") for name in names]
        for name, rate in zip(names, rates, strict=True):
            if not (rate > 0).all():
                raise ValueError(f"the rate of {name!r} must be positive; got {rate.tolist()}")
        return PoissonParameters(np.column_stack(rates))

    def _by_class(self, values: Any, what: str) -> Array:
        labels = self.target.categories
        if isinstance(values, Mapping):
            if set(values) != set(labels):
                raise ValueError(f"{what} must name every class once: {list(labels)}; got {list(values)}")
            values = [values[label] for label in labels]
        array = np.asarray(values, dtype=np.float64)
        if array.shape != (len(labels),) or not np.isfinite(array).all():
            raise ValueError(f"{what} must be {len(labels)} finite numbers, one per class; got {values!r}")
        return array


def discriminant_from_parameters(
    known: GivenParameters, means: Any, covariance: Any, covariances: Any, features: Sequence[str] | None
) -> GenerativeModel:
    """Return the model with means (C, d), and one covariance (d, d) or one per class (C, d, d)."""
    labels = list(known.target.categories)
    if (covariance is None) == (covariances is None):
        raise ValueError("give either covariance, (d, d), which all classes share, or covariances, one per class")
    mean = _stacked(means, labels, "means")
    n_classes, d = len(labels), mean.shape[-1]
    if mean.shape != (n_classes, d) or d < 1:
        raise ValueError(f"means must be of shape ({n_classes}, d), one row per class; got {mean.shape}")
    if covariance is not None:
        spread = np.asarray(covariance, dtype=np.float64)[np.newaxis]
    else:
        spread = _stacked(covariances, labels, "covariances")
    if spread.shape != (1 if covariance is not None else n_classes, d, d):
        raise ValueError(
            f"a covariance must be of shape ({d}, {d}), because there are {d} means per class; got {spread.shape[1:]}"
        )
    for one in spread:
        if not (np.allclose(one, one.T) and np.linalg.eigvalsh(one).min() > 0):
            raise ValueError(f"a covariance must be symmetric and positive definite; got {one.tolist()}")
    names = [f"x{j}" for j in range(d)] if features is None else list(features)
    if len(names) != d or len(set(names)) < d:
        raise ValueError(f"features must be {d} names, each once; got {names}")
    columns = tuple(Column(name, "continuous", dtype="float64") for name in names)
    block = Block(MultivariateGaussian(PerClass() if covariance is None else Pooled()), tuple(range(d)))
    log_prior = Prior(fixed=tuple(known.priors)).estimate(np.zeros(n_classes))
    schema = Schema(columns, named=features is not None, dtype="<f8")
    return GenerativeModel(schema, (block,), log_prior, (MultivariateGaussianParameters(mean, spread),))


def _stacked(values: Any, labels: list[Any], what: str) -> Array:
    if isinstance(values, Mapping):
        if set(values) != set(labels):
            raise ValueError(f"{what} must name every class once: {labels}; got {list(values)}")
        values = [values[label] for label in labels]
    array = np.asarray(values, dtype=np.float64)
    if array.ndim < 2 or len(array) != len(labels) or not np.isfinite(array).all():
        raise ValueError(f"{what} must hold finite numbers for each of {len(labels)} classes; got shape {array.shape}")
    return array


_T = TypeVar("_T", bound=type[Any])

PRIOR_CONSTRAINTS: dict[str, list[Any]] = {
    "priors": [None, StrOptions({"uniform"}), PSEUDO_COUNT, Mapping, "array-like"]
}
COLUMN_CONSTRAINTS: dict[str, list[Any]] = {
    "columns": [None, Columns],
    "n_jobs": N_JOBS,
}
EM_CONSTRAINTS: dict[str, list[Any]] = {
    "labels": [None, Labels],
    "em": [None, EM],
    "random_state": ["random_state", np.random.Generator],
}
WEIGHTS_CONSTRAINTS: dict[str, list[Any]] = {"feature_weights": [None, StrOptions({"conditional"})]}

_DOCS = r"""
columns : Columns, optional
    Which columns are categorical, are used or left out, and how dates and text are read:
    ``po.Columns(categorical_features=["zip"], dates="ignore")``. Default: ``po.Columns()``.
bins : int, "auto", "mdlp", "coarse", "fine" or sequence of float, default "auto"
    How continuous columns are cut: "mdlp" is the supervised rule of Fayyad & Irani (1993), which may give a column
    without information about the class one bin; "auto" is this rule, except that from 2,000 rows on a column of at most
    16 values keeps them; "coarse" gives 8 quantile bins, with the same exception; "fine" gives 64 quantile bins, and
    255 from 5,000 rows on. An int gives that many quantile bins, or fewer if values are repeated; a sequence the cut
    points.
priors : array-like (C,), mapping, "uniform" or float, optional
    p(y), in the order of `classes_` or by class; "uniform" gives every class 1/C, against imbalance. A number
    a is the Dirichlet pseudo-count per class of a prior that is estimated from the rows:
    p(y = c) = (n_c + a) / (n + C·a). Default: estimated with a = 0.
predictive : bool, default False
    False: Gaussian means and variances are estimated. True: they are integrated out, which gives the posterior
    predictive density, a Student t (see Notes). Its tails are heavier the fewer the rows of a class are, so that few
    rows make no prediction certain.
missing : {"at_random", "informative"}, default "at_random"
    How missing cells are modelled. "at_random": they are integrated out. "informative": whether a cell is
    missing is evidence for the class, by an additional factor p(m_j | y) (see Notes).
labels : Labels, optional
    What labels are worth: ``po.Labels(unlabelled="learn")`` infers missing labels by EM, and
    ``po.Labels(label_noise=0.1)`` is a model of wrong ones. Default: EM infers missing labels, with a warning, and
    no label is wrong.
em : EM, optional
    Number of components per class, and how EM finds them: ``po.EM(components_per_class=2, tol=1e-4)``. Default:
    ``po.EM()``, one component.
random_state : int, RandomState, Generator or None
    Seed of the initializations.
feature_weights : {"conditional"}, optional
    Learn one weight w_j ≥ 0 per log factor and one bias b_y per class, with the posterior of a whole row
    proportional to exp(b_y + Σ_j w_j·log p(x_j | …, y)), by penalised conditional likelihood of the leave-one-out
    factors of each row. This reduces the overconfidence caused by redundant features. Columns whose factors vary share
    what b_y adds to log p(y) in equal parts; a missing cell drops its part, so that a row without cells has the prior.
    Cells whose gaps are evidence (``missing="informative"``) and words are never missing. It affects `predict`,
    `predict_proba`, `predict_log_proba` and `explain` only: `score_samples`, `sample` and
    `predict_joint_log_proba` remain those of the generative model. It needs `fit` and complete labels. `NaiveBayes`
    also has "cells": one learned number per category or bin and class in the place of its log-probability.
n_jobs : int, optional
    Number of threads; None or −1 uses one per core. The result does not depend on it.
component_classes_ : ndarray (Z,)
    Class of each component. Fitted parameters have one row per component.
label_confusion_ : ndarray (C, C)
    p(recorded class | true class), if `label_noise` is given.
feature_weights_, class_bias_ : ndarray (d,), (C,)
    Weights w_j ≥ 0 and biases b_y of whole rows in nats, if `feature_weights` is given.
n_iter_ : int
    Number of passes over the rows in training: EM steps, or 1.
unlabelled_weight_ : float
    Weight of a row without label, as given or as chosen.
transduction_ : ndarray (n,)
    Labels of the rows of the last `fit`, including inferred ones, if labels were missing or may be wrong.
class_prior_, class_log_prior_, class_count_ : ndarray (C,)
    p(y), log p(y) in nats, and the weight of the training rows of each class.
n_parameters_, n_features_in_ : int
    Number of free parameters, and number of columns of the training table.
feature_names_in_ : ndarray (d,)
    Names of the features, if the columns had names.
"""

_NOTES = {
    "unlabelled rows": r"""
Rows without label are learned from by EM (Dempster, Laird & Rubin 1977), starting from the model of the labelled
rows: the E-step computes their posterior over the classes, and the M-step counts them in each class with that
weight. With maximum-likelihood estimates EM never decreases log p(x, y) of the labelled rows plus log p(x) of the
others. Labels are assumed to be missing at random.
""",
    "groups of categories": r"""
A column with more than 30 categories enters the dependences through groups of its categories:
p(x | y) = p(g(x) | y)·Π_j p(x_j | g_j). The groups minimise the MODL criterion of Boullé (2005), and there are at
most 64. `partial_fit` keeps them, and a new category joins the group with the most categories. docs/dependence.md
has the details.
""",
    "informative missingness": r"""
With ``missing="informative"`` the model includes the indicators m_j = 1 of missing cells (Little & Rubin):

.. math:: p(x_j, m_j \mid y) = p(m_j \mid y) \, p(x_j \mid y)^{1 - m_j}, \quad
          p(m_j = 1 \mid y) = (n_{yj} + \alpha) / (n_y + 2 \alpha),

where n_yj is the number of rows of y in which cell j is missing. For a categorical column this is equivalent to
one more category, "missing". The factor is part of the column's factor in `explain`; `score_samples` is log p(x,
m); `sample` leaves cells missing with these probabilities. A column has the factor if some of its training cells
were missing and some were not. A category unseen in training counts as a missing cell. The indicators are assumed
to be independent given y. If whole groups of columns are missing together, the model is overconfident
(docs/hidden.md).
""",
}

_MARKER = re.compile(r"^( *)\.\. shared:: ([^\n]*(?:\n\1   [^\n]*)*)\n", re.MULTILINE)


def _entries(text: str) -> dict[str, str]:
    """Split numpydoc entries by the name at the head of each."""
    entries = re.split(r"\n(?=\S)", text.strip())
    return {entry[: entry.index(" : ")].split(",")[0]: entry for entry in entries}


_TEXTS = {**_entries(_DOCS), **{name: text.strip() for name, text in _NOTES.items()}}


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def declares_parameters(cls: _T) -> _T:
    """Class decorator: annotated attributes are the parameters of an estimator, beside those of its bases.

    The constructor takes them by keyword, as scikit-learn asks, and its error for an unknown keyword names the right
    place. The docstring is completed by `insert_shared_docs`.
    """
    made: Any = dataclass(kw_only=True, eq=False, repr=False)(cls)
    signature, own = inspect.signature(made.__init__), inspect.get_annotations(cls)
    ordered = sorted(signature.parameters.values(), key=lambda one: (one.name != "self", one.kind, one.name not in own))
    made.__init__.__signature__ = signature.replace(parameters=ordered)  # its own first, as in the docstring
    made.__init__ = explain_unknown_keywords(made.__init__, GROUPS, made._keywords)
    documented: _T = insert_shared_docs(made)
    return documented


def insert_shared_docs(cls: _T) -> _T:
    """Class decorator: replace ``.. shared:: name, name`` in the docstring by the shared entries of these names.

    A line that begins three spaces further right continues the list. The names are those of parameters and fitted
    attributes (of several attributes in one entry, the first), or of paragraphs of the notes.
    Raises KeyError if a name has no shared entry; add it to this module, or document the parameter in the class.
    """
    if cls.__doc__ is not None:  # python -OO strips docstrings
        cls.__doc__ = _MARKER.sub(_replacement(), cls.__doc__)
    return cls


def _replacement() -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[2].split(",")]
        return textwrap.indent("\n".join(_TEXTS[name] for name in names), match[1]) + "\n"

    return replace


def missingness_of(missing: str, alpha: float, schema: Schema) -> tuple[Block, ...]:
    """Return the block of the missing-cell indicators if the parameter `missing` is "informative"."""
    if missing != "informative":
        return ()
    # The parts of a date are missing together; bags of words are never missing.
    columns = tuple(j for j in schema.first_of_each if schema.columns[j].kind != "counts")
    return (Block(Missingness(alpha), columns),) if columns else ()
