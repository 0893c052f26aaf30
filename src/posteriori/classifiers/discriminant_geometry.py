"""The geometry of fitted Gaussians: discriminant directions, distances from classes, and log-odds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin

from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.classifiers.rows import supports_partitions
from posteriori.densities import MissingnessParameters, MultivariateGaussianParameters
from posteriori.densities.multivariate_expectation import expected_rows
from posteriori.densities.singular import orient
from posteriori.explain import QuadraticForm
from posteriori.tables import Batch
from posteriori.typing import Array


class DiscriminantGeometry(ClassNamePrefixFeaturesOutMixin, TransformerMixin, GenerativeEstimator):
    """What follows from the means and covariances of a model whose columns of numbers are Gaussian given the class."""

    # Discriminant directions ------------------------------------------------------------------------------------

    @supports_partitions("discriminant")
    def transform(self, X: Any) -> Array:
        """Return the rows in the space of Fisher's discriminant directions, (n, min(C − 1, d)).

        There the within-class covariance is the identity, and the first direction separates the classes most. A missing
        cell is replaced by its expectation given the other cells of its row, averaged over the posterior of the
        classes.
        """
        parameters = self._gaussian[1]
        directions, centre = self.scalings_, self.xbar_

        def project(batch: Batch) -> Array:
            values = batch.numbers.values
            if np.isnan(values).any():
                values = expected_rows(parameters, values, self.model_.component_posterior(batch))
            return (values - centre) @ directions

        return self._source(X).map(project)

    @property
    def _n_features_out(self) -> int:
        return len(self.scalings_.T)

    @property
    def scalings_(self) -> Array:
        """Fisher's discriminant directions as columns, (d, min(C − 1, d))."""
        return self._directions[0]

    @property
    def explained_variance_ratio_(self) -> Array:
        """Share of the between-class variance along each direction."""
        spread = self._directions[1] ** 2
        return spread / spread.sum() if spread.sum() > 0 else spread

    @property
    def xbar_(self) -> Array:
        """Mean of the class means, weighted by the prior, (d,)."""
        return np.exp(self._fitted.log_prior) @ self.means_

    @property
    def _directions(self) -> tuple[Array, Array]:
        parameters = self._gaussian[1]
        weight = np.exp(self._fitted.log_prior)
        within = MultivariateGaussianParameters(
            self.means_, np.tensordot(weight, self._covariances, axes=1)[np.newaxis]
        )
        apart = np.sqrt(weight)[:, np.newaxis] * (parameters.mean - self.xbar_) @ within.whitener[0]
        _, spread, rotation = np.linalg.svd(apart, full_matrices=False)
        rank = min(len(weight) - 1, apart.shape[1])
        return orient(within.whitener[0] @ rotation[:rank].T), spread[:rank]

    # Fitted values ----------------------------------------------------------------------------------------------

    @supports_partitions("mahalanobis")
    def mahalanobis(self, X: Any) -> Array:
        """Return the distance √((x − μ_c)ᵀ·Σ_c⁻¹·(x − μ_c)) of each row from each class, (n, C), over present cells.

        For a class with several components, the distance from the nearest component.
        """
        block, parameters = self._gaussian
        density, of_class = block.density, self.model_.of_class

        def measure(batch: Batch) -> Array:
            distance: Array = density.mahalanobis(parameters, batch.take(block.columns, density.kind))
            if not of_class:
                return distance
            nearest: Array = np.minimum.reduceat(distance, np.searchsorted(of_class, range(len(self.classes_))), axis=1)
            return nearest

        return self._source(X).map(measure)

    def quadratic_form(self) -> QuadraticForm:
        """Return the coefficients of log p(x, y) = xᵀ·A_y·x + w_yᵀ·x + b_y, for rows of continuous columns."""
        self._require_one_component("a quadratic form")
        parameters = self._estimated
        group = [parameters.group(z) for z in range(len(parameters.mean))]
        precision = parameters.precision[group]
        linear = np.einsum("cij,cj->ci", precision, parameters.mean)
        normaliser = parameters.log_volume[group] + parameters.mean.shape[1] * math.log(2.0 * math.pi)
        constant = (
            self.class_log_prior_ + self._log_present - 0.5 * ((linear * parameters.mean).sum(axis=1) + normaliser)
        )
        return QuadraticForm(-0.5 * precision, linear, constant)

    @property
    def _estimated(self) -> MultivariateGaussianParameters:
        """The parameters of the Gaussians, if they are estimated."""
        parameters = self._gaussian[1]
        if parameters.degrees is not None:
            raise AttributeError("the log-odds of t densities are not linear or quadratic; this needs predictive=False")
        return parameters

    def _require_one_component(self, what: str) -> None:
        if self._fitted.of_class:
            raise AttributeError(f"the log-odds of mixtures have no {what[2:]}; it needs one component per class")

    @property
    def _gaussian(self) -> tuple[Any, MultivariateGaussianParameters]:
        for block, parameters in zip(self._fitted.blocks, self._fitted.parameters, strict=True):
            if isinstance(parameters, MultivariateGaussianParameters):
                return block, parameters
        raise AttributeError(f"this {type(self).__name__} has no continuous column")

    @property
    def _log_present(self) -> Array:
        """Σ_j log p(m_j = 0 | y) over the continuous columns, (C,), in nats; part of the score of a complete row."""
        continuous = self._gaussian[0].columns
        total = np.zeros(len(self.class_log_prior_))
        for block, parameters in zip(self._fitted.blocks, self._fitted.parameters, strict=True):
            if isinstance(parameters, MissingnessParameters):
                total += parameters.log_present[:, np.isin(block.columns, continuous)].sum(axis=1)
        return total

    @property
    def _covariances(self) -> Array:
        parameters = self._gaussian[1]
        return np.broadcast_to(parameters.covariance, (len(parameters.mean), *parameters.covariance.shape[1:]))

    @property
    def means_(self) -> Array:
        """Class means, (C, d), in data units."""
        return self._gaussian[1].mean

    @property
    def covariance_(self) -> Array:
        """Covariance, (d, d) if it is shared and (C, d, d) otherwise, in squared data units."""
        covariance = self._gaussian[1].covariance
        return covariance[0] if len(covariance) == 1 else covariance

    @property
    def coef_(self) -> Array:
        """w_c = Σ⁻¹μ_c, (C, d), in nats per data unit; only if the covariance is shared."""
        self._require_one_component("a linear form")
        parameters = self._estimated
        if not parameters.shared:
            raise AttributeError('the log-odds are quadratic; coef_ needs pooling="pooled"')
        coef: Array = parameters.mean @ parameters.precision[0]
        return coef

    @property
    def intercept_(self) -> Array:
        """b_c = −½μ_cᵀΣ⁻¹μ_c + log π_c, (C,), in nats; only if the covariance is shared."""
        intercept: Array = -0.5 * (self.coef_ * self.means_).sum(axis=1) + self.class_log_prior_ + self._log_present
        return intercept
