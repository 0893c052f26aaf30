"""Drawing from a network by its arrows: ancestral sampling, and likelihood weighting where there is evidence."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from posteriori.networks.graph.cpt import CPT
from posteriori.support.typing import Array


def draw(
    cpts: Sequence[CPT],
    n: int,
    rng: np.random.Generator,
    hard: Mapping[int, int] | None = None,
    soft: Mapping[int, Array] | None = None,
) -> tuple[Array, Array]:
    """Draw configurations, each variable from its CPT after its parents, but what is known as it is.

    The weight of a draw is w = Π p(e_v | its parents) over the evidence: then Σ w f / Σ w estimates E[f | evidence].

    Parameters
    ----------
    cpts : sequence of CPT (V,)
        The codes are in their order.
    n : int
    rng : Generator
    hard : mapping from int to int, optional
        The state of each variable that is known, both by their places.
    soft : mapping from int to ndarray (K,), optional
        Likelihoods of the states of others.

    Returns
    -------
    codes : ndarray (n, V)
    log_weight : ndarray (n,)
        In nats; 0 where there is no evidence.

    References
    ----------
    Fung & Chang (1990), Weighing and integrating evidence for stochastic simulation in Bayesian networks, UAI 5.
    """
    hard, soft = hard or {}, soft or {}
    position = {cpt.variable: v for v, cpt in enumerate(cpts)}
    codes = np.empty((n, len(cpts)), np.int64)
    log_weight = np.zeros(n)
    for v in _parents_first(cpts, position):
        cpt = cpts[v]
        rows = cpt.probabilities[tuple(codes[:, position[name]] for name in cpt.parents)]
        rows = np.broadcast_to(rows, (n, len(cpt.states)))
        if v in hard:
            codes[:, v] = hard[v]
        else:
            cumulative = np.cumsum(rows, axis=1)
            u = rng.random(n) * cumulative[:, -1]  # below the sum, so that no state of probability 0 is drawn
            codes[:, v] = (cumulative <= u[:, np.newaxis]).sum(axis=1)
        with np.errstate(divide="ignore"):
            if v in hard:
                log_weight += np.log(rows[:, hard[v]])
            if v in soft:
                log_weight += np.log(soft[v][codes[:, v]])
    return codes, log_weight


def _parents_first(cpts: Sequence[CPT], position: Mapping[str, int]) -> list[int]:
    order: dict[int, None] = {}

    def visit(v: int) -> None:
        waiting = [v]
        while waiting:  # not by recursion: chains are longer than the stack
            absent = [position[name] for name in cpts[waiting[-1]].parents if position[name] not in order]
            if absent:
                waiting += absent
            else:
                order.setdefault(waiting.pop())

    for v in range(len(cpts)):
        visit(v)
    return list(order)


def relative_weight(log_weight: Array) -> Array:
    """Return weights that sum to 1, (n,).

    Raises
    ------
    ValueError
        Every weight is 0.
    """
    most = log_weight.max()
    if most == -np.inf:
        raise ValueError(
            f"none of the {len(log_weight):,} samples agrees with the evidence, which is impossible or too improbable "
            "for sampling; draw more (n_samples), or ask with method='exact'"
        )
    weight = np.exp(log_weight - most)
    scaled: Array = weight / weight.sum()
    return scaled


def weighted_frequencies(codes: Array, log_weight: Array, shape: tuple[int, ...]) -> tuple[Array, Array]:
    r"""Return the weighted share of every configuration of some variables, and its standard error.

    .. math:: \hat p = \frac{\sum_i w_i 1_i}{\sum_i w_i}, \qquad
              \mathrm{se}^2 = \frac{\sum_i w_i^2 (1_i - \hat p)^2}{(\sum_i w_i)^2}

    Parameters
    ----------
    codes : ndarray (n, number of variables)
    log_weight : ndarray (n,)
        In nats.
    shape : tuple of int
        The number of states of each variable.

    Returns
    -------
    share, standard_error : ndarray of that shape

    Raises
    ------
    ValueError
        Every weight is 0.

    References
    ----------
    Owen (2013), Monte Carlo theory, methods and examples, equation 9.9.
    """
    weight = relative_weight(log_weight)
    cell = np.ravel_multi_index(tuple(codes.T), shape) if shape else np.zeros(len(codes), np.int64)
    size = int(np.prod(shape))
    share = np.bincount(cell, weight, size)
    # Σ w² (1 − p)² over the samples in the cell, and Σ w² p² over those outside.
    inside, total = np.bincount(cell, weight**2, size), float((weight**2).sum())
    variance = inside * (1 - share) ** 2 + (total - inside) * share**2
    return share.reshape(shape), np.sqrt(np.maximum(variance, 0)).reshape(shape)


class Estimate(float):
    """A number estimated from samples: a float that knows its standard error.

    Attributes
    ----------
    standard_error : float

    Examples
    --------
    >>> import posteriori as po
    >>> net = po.BayesianNetwork([("rain", "wet")])
    >>> net.add_cpt("rain", [0.2, 0.8], states=["yes", "no"])
    >>> net.add_cpt("wet", [[0.9, 0.1], [0.1, 0.9]], states=["yes", "no"])
    >>> p = net.probability({"rain": "yes"}, {"wet": "yes"}, method="sampling", random_state=0)
    >>> round(p, 2), round(p.standard_error, 3)
    (0.7, 0.005)
    """

    standard_error: float

    def __new__(cls, value: float, standard_error: float) -> Estimate:
        """Return the value as an estimate."""
        estimate = super().__new__(cls, value)
        estimate.standard_error = standard_error
        return estimate

    def __repr__(self) -> str:
        return f"{float(self):.6g} ± {self.standard_error:.2g}"


def weighted_mean(values: Array, log_weight: Array) -> Estimate:
    """Return Σ w f / Σ w with its standard error, as `weighted_frequencies` does for shares.

    Parameters
    ----------
    values, log_weight : ndarray (n,)
    """
    weight = relative_weight(log_weight)
    mean = float(weight @ values)
    return Estimate(mean, float(np.sqrt((weight**2) @ (values - mean) ** 2)))
