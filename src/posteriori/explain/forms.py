"""Weights and biases of models whose log-odds are linear or quadratic."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.densities import LinearDensity
from posteriori.explain.bayes_rule import ExplainableModel
from posteriori.explain.sums import Explanation
from posteriori.support.typing import Array
from posteriori.tables import quote


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

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.NaiveBayes().fit([["u"], ["v"], ["u"], ["v"]], ["a", "b", "a", "a"])
    >>> form = po.explain.linear_form(model)
    >>> form.terms, form.weight.round(3).tolist()
    ((('x0', 'v'),), [[-0.405], [0.693]])
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

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.GaussianDiscriminant(pooling="per_class").fit([[0.0], [1.0], [4.0], [8.0]], ["a", "a", "b", "b"])
    >>> form = model.quadratic_form()
    >>> form
    QuadraticForm(quadratic=array([[[-2.   ]],
    <BLANKLINE>
           [[-0.125]]]), linear=array([[2. ],
           [1.5]]), constant=array([-1.41893853, -6.80523289]))
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
    classes share (``po.Gaussian(smoothing=math.inf)``), with weights :math:`\mu_{yj} / \sigma_j^2` and
    :math:`-\mu_{yj}^2 / (2 \sigma_j^2)` in the bias. Gaussian discriminant analysis is where the classes share their
    covariance, with weights :math:`\Sigma^{-1} \mu_y` and :math:`-\mu_y^T \Sigma^{-1} \mu_y / 2` in the bias.

    A pool is linear if all its members are: its weights and biases are the sums of theirs, times the weights of the
    members, plus the biases of the pool. Its scores are log p(y | x) up to a constant per row.

    Parameters
    ----------
    model : NaiveBayes, GaussianDiscriminant or GenerativeClassifier
        Fitted.

    Returns
    -------
    LinearForm

    Raises
    ------
    ValueError
        The log-odds are not linear: a Gaussian feature has a variance or covariance for each class, a class has several
        components, features have weights, or a density has no method `linear_terms`
        (`posteriori.densities.LinearDensity`). For a pool the message names the member.

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
    members: Mapping[str, ExplainableModel] | None = getattr(model, "members_", None)
    if members is not None:
        return _pooled_form(model, members)
    fitted = model.model_
    if fitted.weights is not None:
        raise ValueError("feature weights change the log-odds; fit without feature_weights for a linear form")
    if fitted.of_class:
        raise ValueError(
            "a class of several components is a mixture, whose log-odds are not linear; use components_per_class=1"
        )
    bias = fitted.log_prior.copy()
    terms: list[tuple[int, Any, Array]] = []
    for block, parameters in zip(fitted.blocks, fitted.parameters, strict=True):
        columns = [fitted.schema.columns[j] for j in block.columns]
        density = block.density
        if not isinstance(density, LinearDensity):
            raise ValueError(
                f"{quote(column.name for column in columns)} has no linear log-odds under its distribution "
                f"(the density {density.name!r} has no method `linear_terms`); use log_factors"
            )
        linear = density.linear_terms(parameters, columns)
        bias += linear.bias
        terms += [(block.columns[position], category, weight) for position, category, weight in linear.terms]
    terms.sort(key=lambda term: term[0])
    names = fitted.schema.names
    weight = np.array([weight for _, _, weight in terms]).reshape(len(terms), len(bias)).T
    return LinearForm(model.classes_, tuple((names[j], category) for j, category, _ in terms), weight, bias)


def _pooled_form(pool: Any, members: Mapping[str, ExplainableModel]) -> LinearForm:
    """Return the linear form of a pool whose members are linear."""
    forms: list[tuple[float, LinearForm]] = []
    for name, member in members.items():
        try:
            forms.append((pool.member_weights_[name], linear_form(member)))
        except ValueError as error:
            raise ValueError(f"the member {name!r} of the pool: {error}") from None
    names = pool.schema_.names
    terms = dict.fromkeys(term for _, form in forms for term in form.terms)
    places = {term: place for place, term in enumerate(sorted(terms, key=lambda term: names.index(term[0])))}
    weight, bias = np.zeros((len(pool.classes_), len(places))), np.array(pool.class_bias_, np.float64)
    for member_weight, form in forms:
        bias += member_weight * form.bias
        weight[:, [places[term] for term in form.terms]] += member_weight * form.weight
    return LinearForm(pool.classes_, tuple(places), weight, bias)
