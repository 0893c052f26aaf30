"""Weights and biases of models whose log-odds are linear or quadratic."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import Any

import numpy as np

from posteriori.densities import (
    CategoricalParameters,
    GaussianParameters,
    MissingnessParameters,
    MultivariateGaussianParameters,
    PoissonParameters,
)
from posteriori.explain.sums import ExplainableModel, Explanation
from posteriori.tables import Column, quote
from posteriori.typing import Array


@dataclass(frozen=True)
class LinearForm:
    """Linear form log p(x, y) = bias_y + Σ_t weight_yt · x_t + a part that is the same for all classes.

    A term t is a continuous feature with its value x_t, or a category of a categorical feature, except the first, with
    the indicator x_t. The softmax of the scores is the posterior.

    Attributes
    ----------
    classes : ndarray (C,)
    terms : tuple of (feature name, category or None)
    weight : ndarray (C, T)
        In nats per data unit, or in nats.
    bias : ndarray (C,)
        In nats.
    """

    classes: Array
    terms: tuple[tuple[str, Any], ...]
    weight: Array
    bias: Array

    def scores(self, values: Any) -> Array:
        """Return bias + weight·x of rows without missing cells, (n, C), in nats.

        Parameters
        ----------
        values : ndarray (n, T)
            Values of the terms, in their order; `design` computes them from the values of an explanation.
        """
        return self.bias + np.asarray(values, dtype=np.float64) @ self.weight.T

    def contributions(self, values: Any) -> Array:
        """Return weight·x per term, (n, C, T), in nats; the scores are their sum plus the bias.

        Parameters
        ----------
        values : ndarray (n, T)
        """
        return np.asarray(values, dtype=np.float64)[:, np.newaxis, :] * self.weight

    def design(self, explanation: Explanation) -> Array:
        """Return the terms x_t of explained rows, (n, T).

        Raises
        ------
        ValueError
            A cell is missing: the linear form needs complete rows.
        """
        if any(value is None for value in explanation.values.ravel()):
            raise ValueError("a cell is missing, and the linear form needs complete rows; use log_factors")
        position = {name: j for j, name in enumerate(explanation.feature_names)}
        columns = [
            explanation.values[:, position[name]]
            if category is None
            else explanation.values[:, position[name]] == category
            for name, category in self.terms
        ]
        return np.column_stack(columns).astype(np.float64)


@dataclass(frozen=True)
class QuadraticForm:
    """Quadratic form log p(x, y) = xᵀ·A_y·x + w_yᵀ·x + b_y of a row x of continuous columns.

    Attributes
    ----------
    quadratic : ndarray (C, d, d)
        A_y = −½·Σ_y⁻¹, in nats per squared data unit.
    linear : ndarray (C, d)
        w_y = Σ_y⁻¹·μ_y, in nats per data unit.
    constant : ndarray (C,)
        b_y, in nats.
    """

    quadratic: Array
    linear: Array
    constant: Array

    def scores(self, values: Any) -> Array:
        """Return log p(x, y) of complete rows (n, d), (n, C), in nats."""
        x = np.asarray(values, dtype=np.float64)
        scores: Array = np.einsum("ni,cij,nj->nc", x, self.quadratic, x) + x @ self.linear.T + self.constant
        return scores


def linear_form(model: ExplainableModel) -> LinearForm:
    r"""Return the weights and biases of a model whose log-odds are linear.

    Naive Bayes is linear for categorical features, with weights :math:`\log p(x_j = k \mid y) - \log p(x_j = 1 \mid
    y)`; for Poisson features, with weights :math:`\log \lambda_{yj}`; and for Gaussian features whose variance all
    classes share (``variance_smoothing=inf``), with weights :math:`\mu_{yj} / \sigma_j^2` and
    :math:`-\mu_{yj}^2 / (2 \sigma_j^2)` in the bias. Gaussian discriminant analysis is where the classes share their
    covariance, with weights :math:`\Sigma^{-1} \mu_y` and :math:`-\mu_y^T \Sigma^{-1} \mu_y / 2` in the bias.

    Parameters
    ----------
    model : NaiveBayes or GaussianDiscriminant
        Fitted.

    Returns
    -------
    LinearForm

    Raises
    ------
    ValueError
        A Gaussian feature has a variance or covariance for each class, or a class several components: the log-odds are
        not linear.

    References
    ----------
    Bishop, Pattern Recognition and Machine Learning, section 4.2.

    Examples
    --------
    >>> import numpy as np
    >>> import posteriori as po
    >>> X, y = np.array([[0, 0], [0, 1], [1, 1], [1, 1]], dtype=bool), [0, 0, 1, 1]
    >>> form = po.explain.linear_form(po.NaiveBayes().fit(X, y))
    >>> form.terms
    (('x0', True), ('x1', True))
    """
    fitted = model.model_
    if fitted.of_class:
        raise ValueError(
            "a class of several components is a mixture, whose log-odds are not linear; use components=None"
        )
    bias = fitted.log_prior.copy()
    terms: list[tuple[int, Any, Array]] = []
    for block, parameters in zip(fitted.blocks, fitted.parameters, strict=True):
        columns = [fitted.schema.columns[j] for j in block.columns]
        block_bias, block_terms = _linear_terms(parameters, columns)
        bias += block_bias
        terms += [(block.columns[position], category, weight) for position, category, weight in block_terms]
    terms.sort(key=lambda term: term[0])
    names = fitted.schema.names
    weight = np.array([weight for _, _, weight in terms]).reshape(len(terms), len(bias)).T
    return LinearForm(model.classes_, tuple((names[j], category) for j, category, _ in terms), weight, bias)


_Terms = tuple[Array, list[tuple[int, Any, Array]]]


@singledispatch
def _linear_terms(parameters: Any, columns: Sequence[Column]) -> _Terms:
    """Return the bias of a block, (C,), and its terms: the position of the column, a category or None, the weights."""
    raise ValueError(f"{quote(column.name for column in columns)} has no linear log-odds under its distribution")


@_linear_terms.register
def _(parameters: CategoricalParameters, columns: Sequence[Column]) -> _Terms:
    bias = np.zeros(len(parameters.log_probability))
    terms = []
    for position, column in enumerate(columns):
        if column.is_binned:
            raise ValueError(f"{quote([column.name])} is binned: its log-odds are steps, not a line")
        if not column.categories:
            continue
        log_probability = parameters.column(position)
        if not np.isfinite(log_probability).all():
            raise ValueError(f"{quote([column.name])} has a category of probability 0; set alpha > 0")
        bias += log_probability[:, 0]
        weights = log_probability - log_probability[:, :1]
        terms += [(position, category, weights[:, k]) for k, category in enumerate(column.categories) if k]
    return bias, terms


@_linear_terms.register
def _(parameters: GaussianParameters, columns: Sequence[Column]) -> _Terms:
    if not (parameters.variance == parameters.variance[0]).all():
        raise ValueError(
            f"{quote(column.name for column in columns)} has a variance for each class, which makes the log-odds "
            "quadratic; fit with variance_smoothing=inf"
        )
    weights = parameters.mean / parameters.variance
    bias = -0.5 * (parameters.mean * weights).sum(axis=1)
    return bias, [(position, None, weights[:, position]) for position in range(len(columns))]


@_linear_terms.register
def _(parameters: MultivariateGaussianParameters, columns: Sequence[Column]) -> _Terms:
    if not parameters.shared:
        raise ValueError(
            f"{quote(column.name for column in columns)} has a covariance for each class, which makes the log-odds "
            'quadratic; fit with pooling="pooled", or use quadratic_form'
        )
    weights = parameters.mean @ parameters.precision[0]
    bias = -0.5 * (parameters.mean * weights).sum(axis=1)
    return bias, [(position, None, weights[:, position]) for position in range(len(columns))]


@_linear_terms.register
def _(parameters: PoissonParameters, columns: Sequence[Column]) -> _Terms:
    if not np.isfinite(parameters.log_rate).all():
        raise ValueError(f"{quote(column.name for column in columns)} has a rate of 0; set rate_smoothing > 0")
    return -parameters.rate.sum(axis=1), [
        (position, None, parameters.log_rate[:, position]) for position in range(len(columns))
    ]


@_linear_terms.register
def _(parameters: MissingnessParameters, columns: Sequence[Column]) -> _Terms:
    log_present = parameters.log_present  # the linear form is that of a complete row
    if not np.isfinite(log_present).all():
        always = [column.name for column, p in zip(columns, log_present.T, strict=True) if not np.isfinite(p).all()]
        raise ValueError(f"{quote(always)} is always missing in a class; set alpha > 0")
    return log_present.sum(axis=1), []
