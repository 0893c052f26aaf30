"""The E-step of a multivariate Gaussian on the moments of the patterns of missing cells."""

from __future__ import annotations

import math

import numpy as np

from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.statistics.missing_patterns import ComponentPatterns, MissingPatterns
from posteriori.statistics.moments import Moments
from posteriori.statistics.scatter import Scatter
from posteriori.typing import Array


def expect_from_patterns(
    parameters: MultivariateGaussianParameters, patterns: MissingPatterns, cells: Moments
) -> tuple[Scatter, float]:
    r"""Return the expected second moments of the rows and the log-likelihood of their present cells, in nats.

    With the precision K, the missing cells m of a row have the conditional covariance :math:`C = K_{mm}^{-1}` and the
    conditional deviation :math:`-C K_{mo} (x_o - \mu_o)` from their mean. The squared distance of the present cells is
    that of the row with these expectations filled in, because they minimise it.

    Parameters
    ----------
    parameters : MultivariateGaussianParameters
    patterns : MissingPatterns
    cells : Moments
        Of the present cells of all rows.

    References
    ----------
    Little & Rubin, Statistical Analysis with Missing Data, 3rd ed., section 11.2.1.
    """
    n_components, d = parameters.mean.shape
    weight = np.zeros(n_components)
    offset, scatter = np.zeros((n_components, d)), np.zeros((n_components, d, d))
    log_likelihood = 0.0
    for z, patterns_of_z in enumerate(patterns.components):
        if not len(patterns_of_z.weight):
            continue
        g = parameters.group(z)
        precision, log_volume = parameters.precision[g], float(parameters.log_volume[g])
        filled, deviation, uncertain, log_volumes = _filled(precision, parameters.mean[z], patterns_of_z)
        w = patterns_of_z.weight
        weight[z] = w.sum()
        offset[z] = w @ deviation / weight[z]
        between = (deviation - offset[z]) * np.sqrt(w)[:, np.newaxis]
        filled += between.T @ between
        # tr(K·(scatter about the mean of the component)), before the conditional covariances are added.
        distance = float(np.vdot(precision, filled)) + weight[z] * float(offset[z] @ precision @ offset[z])
        log_likelihood -= 0.5 * (distance + float(w @ (log_volumes + log_volume)))
        scatter[z] = filled + uncertain
    return Scatter(weight, parameters.mean.copy(), offset, scatter, cells), log_likelihood


def _filled(precision: Array, mean: Array, patterns: ComponentPatterns) -> tuple[Array, Array, Array, Array]:
    """Replace the missing cells of the rows of one component by their expectations.

    Returns the sum of the scatter matrices of the patterns (d, d), the deviation of the mean of each pattern from that
    of the component (p, d), the sum of the conditional covariances (d, d), and |o|·log 2π + log |K_mm| of each pattern
    (p,).
    """
    d = len(mean)
    filled, uncertain = patterns.scatter.copy(), np.zeros((d, d))
    deviation = patterns.mean - mean
    log_volumes = np.full(len(patterns.weight), d * math.log(2.0 * math.pi))
    for number, missing, scatter in patterns.incomplete:
        of_missing = precision[missing]
        inverse = of_missing[:, missing]
        log_volumes[number] += float(np.linalg.slogdet(inverse)[1]) - len(missing) * math.log(2.0 * math.pi)
        inverse = np.linalg.inv(inverse)
        slope = -inverse @ of_missing
        slope[:, missing] = 0.0
        deviation[number, missing] = 0.0
        deviation[number, missing] = slope @ deviation[number]
        # A·S·Aᵀ differs from S, which is 0 in the missing columns, only in their rows and columns.
        cross = slope @ scatter
        filled[missing] += cross
        filled[:, missing] += cross.T
        block = np.ix_(missing, missing)
        filled[block] += cross @ slope.T
        uncertain[block] += patterns.weight[number] * inverse
    return filled, deviation, uncertain, log_volumes
