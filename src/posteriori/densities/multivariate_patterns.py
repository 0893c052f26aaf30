"""The E-step of a multivariate Gaussian on the moments of the patterns of missing cells."""

from __future__ import annotations

import math

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.statistics.missing_patterns import MissingPatterns
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
    for z in range(n_components):
        mean, g = parameters.mean[z], parameters.group(z)
        precision, log_volume = parameters.precision[g], float(parameters.log_volume[g])
        groups = []
        uncertain = np.zeros((d, d))
        for present, missing, w, mean_of_rows, of_rows in patterns.groups(z):
            filled, deviation, conditional, log_determinant = _filled(
                precision, mean, present, missing, mean_of_rows, of_rows
            )
            scatter[z] += filled
            if len(missing):
                uncertain[np.ix_(missing, missing)] += w * conditional
            log_likelihood -= 0.5 * w * (log_volume + log_determinant + len(present) * math.log(2.0 * math.pi))
            groups.append((w, deviation))
        if not groups:
            continue
        weights, deviations = np.array([w for w, _ in groups]), np.stack([one for _, one in groups])
        weight[z] = weights.sum()
        offset[z] = weights @ deviations / weight[z]
        between = (deviations - offset[z]) * np.sqrt(weights)[:, np.newaxis]
        scatter[z] += between.T @ between
        # tr(K·(scatter about the mean of the component)), before the conditional covariances are added.
        distance = float(np.vdot(precision, scatter[z])) + weight[z] * float(offset[z] @ precision @ offset[z])
        log_likelihood -= 0.5 * distance
        scatter[z] += uncertain
    return Scatter(weight, parameters.mean.copy(), offset, scatter, cells), log_likelihood


def _filled(
    precision: Array, mean: Array, present: Array, missing: Array, mean_of_rows: Array, scatter: Array
) -> tuple[Array, Array, Array, float]:
    """Return scatter (d, d) and mean deviation (d,) of rows whose missing cells are replaced by their expectations.

    The other results are the conditional covariance of the missing cells, and log |K_mm|.
    """
    deviation = np.zeros(len(mean))
    deviation[present] = mean_of_rows - mean[present]
    if not len(missing):
        return scatter, deviation, np.empty((0, 0)), 0.0
    factor = cho_factor(precision[np.ix_(missing, missing)], lower=True)
    slope = -cho_solve(factor, precision[np.ix_(missing, present)])
    deviation[missing] = slope @ deviation[present]
    filled = np.empty((len(mean), len(mean)))
    cross = slope @ scatter
    filled[np.ix_(present, present)] = scatter
    filled[np.ix_(missing, present)] = cross
    filled[np.ix_(present, missing)] = cross.T
    filled[np.ix_(missing, missing)] = cross @ slope.T
    log_determinant = 2.0 * float(np.log(np.diagonal(factor[0])).sum())
    return filled, deviation, cho_solve(factor, np.eye(len(missing))), log_determinant
