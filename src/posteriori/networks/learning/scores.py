"""Decomposable scores of a graph: sums over families."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from posteriori.suggestions import closest


class Score(Protocol):
    """A decomposable score, Σ_v score(v, parents of v), in nats; higher is better."""

    def penalty(self, n: float) -> float:
        """Return the penalty per free parameter, given the weight of all rows."""

    @property
    def pseudo_rows(self) -> float:
        """The equivalent sample size of a Bayesian score; 0 for a penalised log-likelihood.

        A score whose prior grows with the table has an attribute ``cell_prior`` instead: the pseudo-count of each cell.
        """


@dataclass(frozen=True)
class BIC:
    r"""The Bayesian information criterion, as a score to maximise.

    .. math::
        \sum_v \Bigl( \sum_{a,k} n_{vak} \log \frac{n_{vak}}{n_{va}} - \tfrac{1}{2} \log n \cdot q_v (K_v - 1) \Bigr)

    with q_v configurations a of the parents and K_v states k. Many programs report −2 times this number as BIC.
    Equivalent graphs, which imply the same independences, have the same score.

    References
    ----------
    Schwarz (1978), Estimating the dimension of a model, Annals of Statistics 6.
    """

    pseudo_rows = 0.0

    def penalty(self, n: float) -> float:
        """Return ½·log n."""
        return 0.5 * math.log(max(n, 1.0))


@dataclass(frozen=True)
class AIC:
    r"""Akaike's information criterion, as a score to maximise.

    .. math:: \sum_v \Bigl( \sum_{a,k} n_{vak} \log \frac{n_{vak}}{n_{va}} - q_v (K_v - 1) \Bigr)

    References
    ----------
    Akaike (1974), A new look at the statistical model identification, IEEE Transactions on Automatic Control 19.
    """

    pseudo_rows = 0.0

    def penalty(self, n: float) -> float:
        """Return 1."""
        return 1.0


@dataclass(frozen=True)
class BDeu:
    r"""The log marginal likelihood under Dirichlet priors that give equivalent graphs the same score.

    .. math::
        \sum_v \sum_a \Bigl( \log \frac{\Gamma(s / q_v)}{\Gamma(n_{va} + s / q_v)}
        + \sum_k \log \frac{\Gamma(n_{vak} + s / (q_v K_v))}{\Gamma(s / (q_v K_v))} \Bigr)

    Parameters
    ----------
    equivalent_sample_size : float, default 10
        s in pseudo-rows, > 0. A larger s leads to denser graphs.

    References
    ----------
    Heckerman, Geiger & Chickering (1995), Learning Bayesian networks: the combination of knowledge and statistical
    data, Machine Learning 20, equation 28.
    """

    equivalent_sample_size: float = 10.0

    def __post_init__(self) -> None:
        require_sample_size(self.equivalent_sample_size)

    @property
    def pseudo_rows(self) -> float:
        """Return the equivalent sample size."""
        return float(self.equivalent_sample_size)

    def penalty(self, n: float) -> float:
        """Return 0: the marginal likelihood already penalises parameters."""
        return 0.0


@dataclass(frozen=True)
class K2:
    r"""The log marginal likelihood under uniform priors, one pseudo-count per cell; equivalent graphs may differ in it.

    .. math::
        \sum_v \sum_a \Big( \log \frac{(K_v - 1)!}{(n_{va} + K_v - 1)!} + \sum_k \log n_{vak}! \Big)

    References
    ----------
    Cooper & Herskovits (1992), A Bayesian method for the induction of probabilistic networks from data, Machine
    Learning 9, equation 5.
    """

    pseudo_rows = 0.0
    cell_prior = 1.0

    def penalty(self, n: float) -> float:
        """Return 0: the marginal likelihood already penalises parameters."""
        return 0.0


@dataclass(frozen=True)
class BGe:
    r"""The log marginal likelihood of normal variables under a normal-Wishart prior; equal for equivalent graphs.

    The prior mean is that of the data, its precision α_μ, α_w = d + α_μ + 1, and T = t·I with t = α_μ(α_w − d − 1) /
    (α_μ + 1), after each variable is divided by its standard deviation.

    Parameters
    ----------
    prior_rows : float, default 1
        α_μ, > 0.

    References
    ----------
    Geiger & Heckerman (2002), Parameter priors for directed acyclic graphical models, Annals of Statistics 30;
    Kuipers, Moffa & Heckerman (2014), Addendum, Annals of Statistics 42.
    """

    prior_rows: float = 1.0

    pseudo_rows = 0.0
    is_normal = True

    def __post_init__(self) -> None:
        if isinstance(self.prior_rows, bool) or not 0 < self.prior_rows < math.inf:
            raise ValueError(f"prior_rows is {self.prior_rows!r}; it must be a number of rows above 0")

    def penalty(self, n: float) -> float:
        """Return 0: the marginal likelihood already penalises parameters."""
        return 0.0


def require_sample_size(size: Any) -> None:
    """Raise ValueError unless an equivalent sample size is a positive number of rows."""
    if isinstance(size, bool) or not isinstance(size, int | float | np.number) or not 0 < size < math.inf:
        raise ValueError(f"equivalent_sample_size is {size!r}; it must be a number of rows above 0")


_BY_NAME: dict[str, Score] = {"bic": BIC(), "aic": AIC(), "bdeu": BDeu(), "k2": K2(), "bge": BGe()}


def as_score(score: Any) -> Score:
    """Return the score of this name, or the object itself; ValueError or TypeError for others."""
    if isinstance(score, str):
        if score.lower() not in _BY_NAME:
            raise ValueError(f"score is {score!r}; {closest(score, _BY_NAME)}")
        return _BY_NAME[score.lower()]
    if not (hasattr(score, "penalty") and hasattr(score, "pseudo_rows")):
        raise TypeError(f"score is {score!r}; give 'bic', 'aic', 'bdeu', 'k2', 'bge' or BDeu(equivalent_sample_size=…)")
    known: Score = score
    return known
