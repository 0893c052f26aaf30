"""Comparison of held-out posteriors with the class prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.model_selection.metrics import fill_undefined
from posteriori.typing import Array

_SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`
_SIGNIFICANT = 2.0  # standard errors


@dataclass(frozen=True)
class AgainstPrior:
    """The log-loss of posteriors against that of the class prior, on the same rows.

    Attributes
    ----------
    difference : float
        Log-loss of the posterior minus that of the prior, in nats per row; negative where the posterior is better.
    standard_error : float
        The standard error of `difference`, a mean of paired differences over the rows.
    trend, trend_error : float
        The score statistic of `compare_with_prior`, and its standard error.
    """

    difference: float
    standard_error: float
    trend: float
    trend_error: float

    @property
    def informs(self) -> bool:
        """Whether the posterior raises the probability of the true class, by more than two standard errors."""
        return self.trend > _SIGNIFICANT * self.trend_error

    @property
    def verdict(self) -> str:
        """The result in one word: "informative", "uninformative" or "overconfident".

        "uninformative": the log-loss is not below that of the prior by more than two standard errors, and `informs` is
        false. "overconfident": the log-loss is above that of the prior otherwise.
        """
        if not self.informs and self.difference >= -_SIGNIFICANT * self.standard_error:
            return "uninformative"
        return "overconfident" if self.difference > 0 else "informative"


def compare_with_prior(y_true: Array, posterior: Array, prior: Array, weight: Array) -> AgainstPrior:
    r"""Compare posteriors of held-out rows with the class prior.

    A log-loss above that of the prior has two possible reasons: the columns carry no information about the class, or
    the posteriors are overconfident. The score test of t = 0 in p_t(y | x) ∝ p(y)·(p(y | x) / p(y))^t separates them.
    Its statistic is the derivative of the log-likelihood,

    .. math:: s_{y_i}(x_i) - \sum_y p(y)\, s_y(x_i), \qquad s_y(x) = \log p(y \mid x) - \log p(y),

    whose mean is 0 if posterior and class are independent, however confident the posteriors are.

    Parameters
    ----------
    y_true : ndarray (n,)
        The class index of each row.
    posterior, prior : ndarray (n, C)
    weight : ndarray (n,)

    References
    ----------
    Rao, Linear Statistical Inference and Its Applications, 2nd ed., section 6e, on score tests.
    """
    rows = np.arange(len(y_true))
    log_posterior = np.log(np.maximum(fill_undefined(posterior, prior), _SMALLEST))
    log_ratio = log_posterior - np.log(np.maximum(prior, _SMALLEST))
    difference, error = _mean(-log_ratio[rows, y_true], weight)
    trend, trend_error = _mean(log_ratio[rows, y_true] - (prior * log_ratio).sum(axis=1), weight)
    return AgainstPrior(difference, error, trend, trend_error)


def _mean(values: Array, weight: Array) -> tuple[float, float]:
    """Return a weighted mean and its standard error over rows."""
    share = weight / weight.sum()
    mean = float(share @ values)
    return mean, float(np.sqrt(share**2 @ (values - mean) ** 2))
