"""A prediction as an exact sum of log factors, and Bayes' rule written out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import singledispatch
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from posteriori.densities import (
    CategoricalParameters,
    GaussianParameters,
    MultivariateGaussianParameters,
    PoissonParameters,
)
from posteriori.model import log_sum
from posteriori.tables import Column, quote
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.classifiers import GaussianDiscriminant, NaiveBayes

__all__ = ["Explanation", "LinearForm", "LogOdds", "QuadraticForm", "bayes_table", "linear_form"]


@dataclass(frozen=True)
class LogOdds:
    """log p(label | x) − log p(against | x) as a sum, in nats.

    Attributes
    ----------
    label, against : class labels
    prior : float
        The log-odds before any feature is seen.
    factors : dict
        What each feature adds, by name.
    """

    label: Any
    against: Any
    prior: float
    factors: dict[str, float]

    @property
    def total(self) -> float:
        """The log-odds of the posterior."""
        return self.prior + sum(self.factors.values())


@dataclass(frozen=True)
class Explanation:
    """log p(x, y) = log p(y) + Σ_j log p(x_j | y): every posterior as the sum that it is.

    Attributes
    ----------
    classes : ndarray (C,)
    feature_names : tuple of str
    values : ndarray of object (n, d)
        The cells as the model read them; None where missing.
    log_prior : ndarray (C,)
        In nats.
    log_factors : ndarray (n, C, d)
        In nats; 0 where the cell is missing.
    """

    classes: Array
    feature_names: tuple[str, ...]
    values: Array
    log_prior: Array
    log_factors: Array

    @property
    def log_joint(self) -> Array:
        """Log p(x, y) in nats, (n, C): the prior plus the sum of the factors."""
        return self.log_prior + self.log_factors.sum(axis=2)

    @property
    def log_evidence(self) -> Array:
        """Log p(x) in nats, (n,)."""
        return log_sum(np.ascontiguousarray(self.log_joint))

    @property
    def posterior(self) -> Array:
        """p(y | x), (n, C)."""
        with np.errstate(invalid="ignore"):  # NaN in a row that no class can produce
            return np.exp(self.log_joint - self.log_evidence[:, np.newaxis])

    def log_odds(self, row: int = 0, label: Any = None, against: Any = None) -> LogOdds:
        """Return what the prior and each feature add to the log-odds of one class against another.

        Parameters
        ----------
        row : int, default 0
        label, against : class labels, optional
            Default: the most probable class of the row, and the second.

        Raises
        ------
        ValueError
            A label is none of the classes, or there is only one class.
        """
        first, second = self._pair(row, label, against)
        with np.errstate(invalid="ignore"):
            prior = float(self.log_prior[first] - self.log_prior[second])
            factors = self.log_factors[row, first] - self.log_factors[row, second]
        named = dict(zip(self.feature_names, map(float, factors), strict=True))
        return LogOdds(self.classes[first], self.classes[second], prior, named)

    def _pair(self, row: int, label: Any, against: Any) -> tuple[int, int]:
        ranked = list(np.argsort(-self.log_joint[row], kind="stable"))
        first = ranked[0] if label is None else self._place(label)
        if against is not None:
            return first, self._place(against)
        others = [place for place in ranked if place != first]
        if not others:
            raise ValueError(f"the model knows one class only, {self.classes[0]!r}: there are no odds")
        return first, others[0]

    def _place(self, label: Any) -> int:
        places = np.flatnonzero(self.classes == label)
        if not len(places):
            raise ValueError(f"{label!r} is not a class; the classes are {list(self.classes)}")
        return int(places[0])

    def bayes_table(self, row: int = 0) -> str:
        """Return Bayes' rule for one row, written out as on paper: prior × likelihood, evidence, posterior.

        Parameters
        ----------
        row : int, default 0

        Returns
        -------
        str
            A line for the prior, one for each feature's likelihood p(x_j | y), their product p(x, y), and the
            posterior p(x, y) / p(x); a column for each class. Densities are per data unit.
        """
        names = [str(label) for label in self.classes]
        likelihoods = [
            (f"× p({name} = {_cell(value)})" if value is not None else f"× {name} missing", factors)
            for name, value, factors in zip(self.feature_names, self.values[row], self.log_factors[row].T, strict=True)
        ]
        log_evidence = float(self.log_evidence[row])
        table = [
            ["given class", *names],
            ["prior p(class)", *map(_power, self.log_prior)],
            *([label, *map(_power, factors)] for label, factors in likelihoods),
            ["= joint p(x, class)", *map(_power, self.log_joint[row])],
            ["posterior", *(f"{p:.6f}" for p in self.posterior[row])],
        ]
        widths = [max(len(line[k]) for line in table) for k in range(len(table[0]))]
        lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in table]
        rule = "─" * len(lines[0])
        evidence = f"evidence p(x) = {_power(log_evidence)}, the sum of the joint; posterior = joint / evidence"
        return "\n".join([lines[0], rule, *lines[1:-2], rule, lines[-2], evidence, rule, lines[-1]])


def bayes_table(model: NaiveBayes, x: Any) -> str:
    """Write Bayes' rule out for one row, as a person would on paper.

    Parameters
    ----------
    model : fitted estimator of posteriori
    x : sequence of d cells, mapping from column to cell, or a table of one row
        A cell that is None or NaN, or a column left out of a mapping, is missing: its factor is 1.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        x is a table of several rows; take one, or use ``model.explain(X).bayes_table(row)``.

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.NaiveBayes.from_parameters(
    ...     priors={"a": 0.2, "b": 0.5, "c": 0.3}, gaussian={"x": {"mean": [2, 3, 4], "sd": [1, 2, 1]}}
    ... )
    >>> print(po.explain.bayes_table(model, [3.4]))
    given class                  a          b          c
    ────────────────────────────────────────────────────
    prior p(class)             0.2        0.5        0.3
    × p(x = 3.4)          0.149727   0.195521   0.333225
    ────────────────────────────────────────────────────
    = joint p(x, class)  0.0299455  0.0977607  0.0999674
    evidence p(x) = 0.227674, the sum of the joint; posterior = joint / evidence
    ────────────────────────────────────────────────────
    posterior             0.131528   0.429390   0.439082
    """
    explanation = model.explain(_one_row(model, x))
    if len(explanation.values) > 1:
        raise ValueError(f"x has {len(explanation.values)} rows; write out one at a time")
    return explanation.bayes_table()


def _one_row(model: NaiveBayes, x: Any) -> Any:
    names = model.model_.schema.names
    if isinstance(x, Mapping):
        strangers = [key for key in x if key not in names]
        if strangers:
            raise ValueError(f"x has {quote(strangers)}, which the model does not know; it knows {quote(names)}")
        cells = [x.get(name) for name in names]
    elif isinstance(x, list | tuple | np.ndarray) and np.ndim(np.asarray(x, dtype=object)) == 1:
        cells = list(x)
    else:
        return x
    if len(cells) != len(names):
        raise ValueError(f"x has {len(cells)} cells but the model has {len(names)} features: {quote(names)}")
    return pl.DataFrame([pl.Series(name, [_plain(cell)]) for name, cell in zip(names, cells, strict=True)])


def _plain(cell: Any) -> Any:
    cell = cell.item() if isinstance(cell, np.generic) else cell
    return None if isinstance(cell, float) and cell != cell else cell


def _cell(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _power(log_value: float) -> str:
    """Write exp(log_value), in powers of ten where a float could not hold it."""
    if log_value == -np.inf:
        return "0"
    if -600 < log_value < 600:  # a float holds it
        return f"{np.exp(log_value):.6g}"
    exponent = int(np.floor(log_value / np.log(10)))
    return f"{np.exp(log_value - exponent * np.log(10)):.4g}e{exponent:+d}"


# The linear form ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class LinearForm:
    """log p(x, y) = bias_y + Σ_t weight_yt · x_t + a part that is the same for all classes.

    A term t is a continuous feature, x_t its value, or a category beyond the first of a categorical feature, x_t
    being 1 where the row has it and else 0. The softmax of the scores is the posterior.

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
            The terms, in their order; `design` makes them of an explanation's values.
        """
        return self.bias + np.asarray(values, dtype=np.float64) @ self.weight.T

    def design(self, explanation: Explanation) -> Array:
        """Return the terms x_t of explained rows, (n, T).

        Raises
        ------
        ValueError
            A cell is missing: the linear form is that of a complete row.
        """
        if any(value is None for value in explanation.values.ravel()):
            raise ValueError("a cell is missing, and the linear form is that of complete rows; use log_factors")
        place = {name: j for j, name in enumerate(explanation.feature_names)}
        columns = [
            explanation.values[:, place[name]] if category is None else explanation.values[:, place[name]] == category
            for name, category in self.terms
        ]
        return np.column_stack(columns).astype(np.float64)


@dataclass(frozen=True)
class QuadraticForm:
    """log p(x, y) = xᵀ·A_y·x + w_yᵀ·x + b_y of a row x of continuous columns.

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
        return np.einsum("ni,cij,nj->nc", x, self.quadratic, x) + x @ self.linear.T + self.constant


def linear_form(model: NaiveBayes | GaussianDiscriminant) -> LinearForm:
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
        A Gaussian feature has a variance or covariance for each class: the log-odds are quadratic.

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
    bias = fitted.log_prior.copy()
    terms: list[tuple[int, Any, Array]] = []
    for block, parameters in zip(fitted.blocks, fitted.parameters, strict=True):
        columns = [fitted.schema.columns[j] for j in block.columns]
        block_bias, block_terms = _linear_terms(parameters, columns)
        bias += block_bias
        terms += [(block.columns[place], category, weight) for place, category, weight in block_terms]
    terms.sort(key=lambda term: term[0])
    names = fitted.schema.names
    weight = np.array([weight for _, _, weight in terms]).reshape(len(terms), len(bias)).T
    return LinearForm(model.classes_, tuple((names[j], category) for j, category, _ in terms), weight, bias)


_Terms = tuple[Array, list[tuple[int, Any, Array]]]


@singledispatch
def _linear_terms(parameters: Any, columns: Sequence[Column]) -> _Terms:
    """Return what a block adds to the bias, and its terms: the place of a column, a category or None, the weights."""
    raise ValueError(f"{quote(column.name for column in columns)} has no linear log-odds under its distribution")


@_linear_terms.register
def _(parameters: CategoricalParameters, columns: Sequence[Column]) -> _Terms:
    bias = np.zeros(len(parameters.log_probability))
    terms = []
    for place, column in enumerate(columns):
        if not column.categories:
            continue
        log_probability = parameters.column(place)
        if not np.isfinite(log_probability).all():
            raise ValueError(f"{quote([column.name])} has a category of probability 0; set alpha > 0")
        bias += log_probability[:, 0]
        weights = log_probability - log_probability[:, :1]
        terms += [(place, category, weights[:, k]) for k, category in enumerate(column.categories) if k]
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
    return bias, [(place, None, weights[:, place]) for place in range(len(columns))]


@_linear_terms.register
def _(parameters: MultivariateGaussianParameters, columns: Sequence[Column]) -> _Terms:
    if not parameters.shared:
        raise ValueError(
            f"{quote(column.name for column in columns)} has a covariance for each class, which makes the log-odds "
            'quadratic; fit with pooling="pooled", or use quadratic_form'
        )
    weights = parameters.mean @ parameters.precision[0]
    bias = -0.5 * (parameters.mean * weights).sum(axis=1)
    return bias, [(place, None, weights[:, place]) for place in range(len(columns))]


@_linear_terms.register
def _(parameters: PoissonParameters, columns: Sequence[Column]) -> _Terms:
    if not np.isfinite(parameters.log_rate).all():
        raise ValueError(f"{quote(column.name for column in columns)} has a rate of 0; set rate_smoothing > 0")
    return -parameters.rate.sum(axis=1), [(place, None, parameters.log_rate[:, place]) for place in range(len(columns))]
