r"""Mutual information of each feature with the class, under a fitted model.

For one feature x with densities p(x | z) and the prior p(z),

.. math:: I(x; z) = \sum_z p(z) \int p(x \mid z) \log \frac{p(x \mid z)}{p(x)} \, dx
          = \int p(x) \, \mathrm{KL}\big(p(z \mid x) \,\|\, p(z)\big) \, dx,
          \qquad p(x) = \sum_z p(z) \, p(x \mid z).

The second form is computed: its terms are never negative, and at most −log p(z) of a class, so that no two large
numbers are subtracted. The integral is a weighted sum over nodes. The nodes are chosen by the general interface of a
density, and not by its type:

- A feature of categories or bins has one node of weight 1 per category or bin: the sum is exact.
- A density that refuses fractions (`Density.out_of_support`) is a mass function over the whole numbers, which are its
  nodes. If one node stands for many numbers (rates beyond some thousands), the error stays below 1e-4 nats.
- Any other density has the nodes of Gauss-Legendre quadrature in panels. The panels end at quantiles of draws from
  every component (with a fixed seed, so that the result is always the same), and at points in both tails. The ends of
  panels carry no weight and need only lie where the mass is. The error for a mixture of Gaussians is below 1e-8 nats,
  for components of equal scales and of scales many powers of ten apart.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from itertools import pairwise

import numpy as np

from posteriori.model import GenerativeModel, cannot_hold, draw_rows, log_marginal, log_marginal_of_codes
from posteriori.typing import Array

__all__ = ["mutual_information"]

_DRAWS = 512  # draws per component, to locate its mass
_QUANTILES = 12  # panels between the smallest and the largest draw
_TAIL = np.array([0.25, 0.5, 1.0, 2.0, 4.0])  # ends of the panels in the tails, in ranges of the draws
_NODES = 12  # nodes per panel
_MOST_WHOLE = 128  # nodes per panel of whole numbers: all of them if there are fewer, else evenly spaced ones
_MOST_CELLS = 1 << 21  # values of p(x_j | z) in memory at once


def mutual_information(model: GenerativeModel) -> Array:
    """Return the mutual information I(x_j; z) of each feature with the class, under the model.

    It is the average information of a present cell of the feature about the class, if no other feature is known: 0 if
    the feature is independent of the class, and the entropy of the class if the feature determines it. The information
    in whether a cell is missing is not included.

    Parameters
    ----------
    model : GenerativeModel
        Of columns that depend on each other given the component, the marginal densities are used.

    Returns
    -------
    ndarray (d,)
        In nats, in [0, H(z)], in the order of the columns of the schema.

    Notes
    -----
    Cost: O(Z²) evaluations of the density for a numeric column, O(K·Z) for a categorical one. It does not depend on the
    number of rows.

    References
    ----------
    Cover & Thomas, Elements of Information Theory, 2nd ed., section 2.4.

    Examples
    --------
    >>> import posteriori as po
    >>> rows = [["rain", 1.0], ["rain", 3.0], ["sun", 2.0], ["sun", 6.0]]
    >>> model = po.NaiveBayes(alpha=0.0).fit(rows, ["in", "in", "out", "out"]).model_
    >>> mutual_information(model).round(3)
    array([0.693, 0.189])
    """
    information = np.zeros(len(model.schema.columns))
    component = np.repeat(np.arange(model.n_components), _DRAWS)
    draws = draw_rows(model.ignore_missingness_except(()), component, np.random.default_rng(0))
    for j, drawn in enumerate(draws):
        if model.schema.columns[j].is_ignored:
            continue
        if j in model.schema.coded:
            information[j] = _density_times_divergence(model.class_log_prior, log_marginal_of_codes(model, j)).sum()
            continue
        nodes, weight = _nodes(drawn.reshape(model.n_components, _DRAWS), partial(cannot_hold, model, j))
        size = max(1, _MOST_CELLS // (model.n_components * len(draws)))
        for start in range(0, len(nodes), size):
            chunk = slice(start, start + size)
            gain = _density_times_divergence(model.class_log_prior, log_marginal(model, j, nodes[chunk]))
            information[j] += weight[chunk] @ gain
    log_prior = model.class_log_prior
    present = log_prior > -np.inf
    entropy = -float(np.exp(log_prior[present]) @ log_prior[present])
    return np.clip(information, 0.0, max(entropy, 0.0))  # quadrature can exceed the bounds by its error


def _density_times_divergence(log_prior: Array, factors: Array) -> Array:
    """Return p(x)·KL(p(z | x) ‖ p(z)) at each node, (N,), from log p(x | z), (N, Z)."""
    log_joint = log_prior + factors
    peak = log_joint.max(axis=1, keepdims=True)
    peak = np.where(np.isfinite(peak), peak, 0.0)  # no component can produce the node
    joint = np.exp(log_joint - peak)
    total = joint.sum(axis=1, keepdims=True)
    posterior = joint / np.where(total > 0, total, 1.0)
    with np.errstate(invalid="ignore"):  # a class of prior 0 has the posterior 0, and 0 − (−inf) is discarded
        log_ratio = np.log(np.where(posterior > 0, posterior, 1.0)) - log_prior
        terms = np.where(posterior > 0, posterior * log_ratio, 0.0)
    density = (total * np.exp(peak))[:, 0]
    result: Array = density * terms.sum(axis=1)
    return result


def _nodes(draws: Array, out_of_support: Callable[[Array], Array]) -> tuple[Array, Array]:
    """Return nodes within the support of a numeric column and their weights, from draws, (Z, draws)."""
    whole = bool(out_of_support(np.array([0.5]))[0])
    breaks = _break_points(draws, whole)
    nodes, weights = _whole_nodes(breaks) if whole else _legendre_nodes(_with_ends_of_support(breaks, out_of_support))
    inside = ~out_of_support(nodes)
    return nodes[inside], weights[inside]


def _break_points(draws: Array, whole: bool) -> Array:
    """Return the ends of panels, ascending, from the draws of each component, (Z, draws)."""
    quantiles = np.quantile(draws, np.linspace(0.0, 1.0, _QUANTILES + 1), axis=1)
    low, high = quantiles[0], quantiles[-1]
    # A rare event may be absent from the draws: extend the tails by several whole numbers at least.
    reach = np.maximum(high - low, 8.0 if whole else 0.0)
    below, above = (end + sign * _TAIL[:, np.newaxis] * reach for end, sign in ((low, -1.0), (high, 1.0)))
    return np.unique(np.concatenate([below, quantiles, above]))


def _with_ends_of_support(breaks: Array, out_of_support: Callable[[Array], Array]) -> Array:
    """Return the break points, and between them the ends of the support, located by bisection."""
    allowed = ~out_of_support(breaks)
    ends = []
    for index in np.flatnonzero(allowed[:-1] != allowed[1:]):
        low, high = breaks[index], breaks[index + 1]
        for _ in range(64):  # halvings: more than a float64 has significant bits
            middle = low + (high - low) / 2.0
            if allowed[index] == ~out_of_support(np.array([middle]))[0]:
                low = middle
            else:
                high = middle
        ends.append(low)
    return np.union1d(breaks, ends)


def _legendre_nodes(breaks: Array) -> tuple[Array, Array]:
    position, weight = np.polynomial.legendre.leggauss(_NODES)
    half = np.diff(breaks)[:, np.newaxis] / 2.0
    nodes = breaks[:-1, np.newaxis] + half * (position + 1.0)
    return nodes.ravel(), (half * weight).ravel()


def _whole_nodes(breaks: Array) -> tuple[Array, Array]:
    """Return whole numbers, and as weights how many numbers each represents: 1, except in wide panels."""
    ends = np.unique(np.round(breaks))
    ends[-1] += 1
    nodes, weights = [], []
    for start, stop in pairwise(ends):
        bounds = np.unique(np.round(np.linspace(start, stop, min(int(stop - start), _MOST_WHOLE) + 1)))
        nodes.append((bounds[:-1] + bounds[1:] - 1) // 2)  # the middle of bounds[i], …, bounds[i + 1] − 1
        weights.append(np.diff(bounds))
    return np.concatenate(nodes), np.concatenate(weights)
