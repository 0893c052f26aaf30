"""Parameters that several classifiers share: documentation, constraints, and their conversion to model objects."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from posteriori.classifiers.from_parameters import check_priors
from posteriori.classifiers.parameter_groups import EM, Columns, Labels
from posteriori.classifiers.validation import PSEUDO_COUNT
from posteriori.model import Prior
from posteriori.tables import Column

_T = TypeVar("_T", bound=type[Any])

PRIOR_CONSTRAINTS: dict[str, list[Any]] = {"priors": [None, PSEUDO_COUNT, Mapping, "array-like"]}
COLUMN_CONSTRAINTS: dict[str, list[Any]] = {
    "columns": [None, Columns],
    "n_jobs": [None, Integral],
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
bins : int, "mdlp" or sequence of float, default "mdlp"
    How continuous columns are cut: "mdlp" is the supervised rule of Fayyad & Irani (1993), which may give a column
    without information about the class one bin; an int gives that many quantile bins; a sequence the cut points.
priors : array-like (C,), mapping or float, optional
    p(y), in the order of `classes_` or by class. A number a is the Dirichlet pseudo-count per class of a prior that is
    estimated from the rows, p(y = c) = (n_c + a) / (n + C·a). Default: estimated with a = 0.
predictive : bool, default False
    False: Gaussian means and variances are estimated. True: they are integrated out, which gives the posterior
    predictive density, a Student t (see Notes). Its tails are heavier the fewer the rows of a class are, so that few
    rows make no prediction certain.
missing : {"at_random", "informative"}, default "at_random"
    How missing cells are modelled. "at_random": they are integrated out. "informative": whether a cell is
    missing is evidence for the class, by an additional factor p(m_j | y) (see Notes).
labels : Labels, optional
    What labels are worth: ``po.Labels(unlabelled="learn")`` infers missing labels by EM, and
    ``po.Labels(label_noise=0.1)`` is a model of wrong ones. Default: a missing label is an error, and no label is
    wrong.
em : EM, optional
    Number of components per class, and how EM finds them: ``po.EM(components_per_class=2, tol=1e-4)``. Default:
    ``po.EM()``, one component.
random_state : int, RandomState, Generator or None
    Seed of the initializations.
feature_weights : {"conditional"}, optional
    Learn one weight w_j ≥ 0 per log factor and one bias b_y per class, with the posterior proportional to
    exp(b_y + Σ_j w_j·log p(x_j | …, y)), by penalised conditional likelihood of the leave-one-out factors of
    each row. This reduces the overconfidence caused by redundant features. It affects `predict`,
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
    Weights w_j ≥ 0 and biases b_y in nats, if `feature_weights` is given.
n_iter_ : int
    Number of passes over the rows in training: EM steps, or 1.
unlabelled_weight_ : float
    Weight of a row without label, as given or as chosen.
transduction_ : ndarray (n,)
    Labels of the rows of the last `fit`, including inferred ones, if `unlabelled` is not "error".
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


def insert_shared_docs(cls: _T) -> _T:
    """Class decorator: replace ``.. shared:: name, name`` in the docstring by the shared entries of these names.

    A line that begins three spaces further right continues the list. The names are those of parameters and fitted
    attributes (of several attributes in one entry, the first), or of paragraphs of the notes.

    Raises
    ------
    KeyError
        A name has no shared entry; add it to this module, or document the parameter in the class.
    """
    if cls.__doc__ is not None:  # python -OO strips docstrings
        cls.__doc__ = _MARKER.sub(_replacement(), cls.__doc__)
    return cls


def _replacement() -> Callable[[re.Match[str]], str]:
    def replace(match: re.Match[str]) -> str:
        names = [name.strip() for name in match[2].split(",")]
        return textwrap.indent("\n".join(_TEXTS[name] for name in names), match[1]) + "\n"

    return replace


def prior_of(estimator: Any, classes: Column) -> Prior:
    """Return the class prior that the parameter `priors` of an estimator describes.

    Raises
    ------
    ValueError
        `priors` do not fit the classes or do not sum to 1.
    """
    given = estimator.priors
    if given is None or isinstance(given, Real):
        return Prior(float(given or 0.0))
    return Prior(fixed=check_priors(given, classes))
