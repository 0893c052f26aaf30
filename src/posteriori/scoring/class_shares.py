"""The class shares of unlabelled rows, estimated by maximum likelihood with frozen densities."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import chdtrc, ndtr, ndtri, xlogy

from posteriori.support.typing import Array

_MOST_STEPS = 200
_NEAR = 1e-9
_LEAST = 1e-6
_NEVER = -1e300  # log p(x) of a row that no class can produce
_LEAST_INFORMATION = 2.0
_PINNED = 1e-12  # a share that is 0
_WITHIN = 0.95  # of the way to a share of 0, which no later step would raise
_CHANGED = 0.01  # the probability that a change is said although there is none
_LESS_PROBABLE = 0.55  # the share of pairs of rows from which columns are said to have changed


@dataclass(frozen=True)
class PriorEstimate:
    r"""p(y) of unlabelled rows, if only the mix of classes differs from that of training: p(x | y) stays.

    .. math:: \max_\pi \sum_i \log \sum_y \pi_y \, \frac{p(y \mid x_i)}{p(y)}

    is concave in π, so that the estimate is the only optimum. Its errors are those of the rows: the inverse of the
    Fisher information on the simplex. That the densities were estimated, too, is not in them.

    Attributes
    ----------
    classes : ndarray (C,)
    shares : ndarray (C,)
        π.
    covariance : ndarray (C, C)
        Of the shares; its rows sum to 0.
    cautious : ndarray (C,)
        The same with C more rows of the mix of the model: Σ_y C p(y) log π_y is added to the log-likelihood. Classes
        that the rows cannot tell apart keep their ratio, and no share is 0. Predictions are made with these.
    cautious_covariance : ndarray (C, C)
    prior : ndarray (C,)
        p(y) of the model.
    p_value : float
        Of the likelihood-ratio test that the shares are those of the model (chi-squared with C − 1 degrees of freedom).
    n : int
        Rows, without those that no class can produce.
    less_probable : float or None
        If earlier rows were given: the share of pairs of a new and an earlier row in which the new one has the smaller
        p(x) under the new mix, with the earlier rows weighted to the new mix. About 1/2 if only the mix changed.
    columns_p_value : float or None
        Of the test that it is 1/2.

    References
    ----------
    Saerens, Latinne & Decaestecker, Adjusting the outputs of a classifier to new a priori probabilities, Neural
    Computation 14 (2002). Alexandari, Kundaje & Shrikumar, Maximum likelihood with bias-corrected calibration, ICML
    2020.
    """

    classes: Array
    shares: Array
    covariance: Array
    cautious: Array
    cautious_covariance: Array
    prior: Array
    p_value: float
    n: int
    less_probable: float | None = None
    columns_p_value: float | None = None

    @property
    def priors(self) -> dict[Any, float]:
        """The cautious shares by class, as `priors=` of a model and `with_priors` take them."""
        return dict(zip(self.classes.tolist(), self.cautious.tolist(), strict=True))

    @property
    def standard_error(self) -> Array:
        """The standard error of each share, (C,): 1/2 at most, as a share is between 0 and 1."""
        return np.asarray(np.sqrt(np.clip(np.diagonal(self.covariance), 0.0, 0.25)))

    def interval(self, level: float = 0.9) -> Array:
        """Return an interval of each share that holds it in this part of the cases, (C, 2), within [0, 1].

        Raises
        ------
        ValueError
            The level is not between 0 and 1.
        """
        if not 0.0 < level < 1.0:
            raise ValueError(f"the level is {level}; give a number between 0 and 1")
        half = ndtri(0.5 + level / 2.0) * self.standard_error
        return np.asarray(np.clip(np.stack([self.shares - half, self.shares + half], axis=1), 0.0, 1.0))

    def draws(self, n: int) -> list[Array]:
        """Return n class shares as they are possible, each (C,): normal around the cautious ones, and at least 0."""
        drawn = np.random.default_rng(0).multivariate_normal(
            self.cautious, self.cautious_covariance, n, check_valid="ignore"
        )
        drawn = np.where(self.prior > 0, np.maximum(drawn, _LEAST), 0.0)
        return list(drawn / drawn.sum(axis=1, keepdims=True))

    @property
    def mix_changed(self) -> bool:
        """Whether the shares differ from those of the model by more than chance."""
        return self.p_value < _CHANGED

    @property
    def columns_changed(self) -> bool | None:
        """Whether new rows are less probable than the new mix explains; None without earlier rows."""
        return columns_changed(self.less_probable, self.columns_p_value)

    @property
    def sentences(self) -> list[str]:
        """The facts, a sentence each: no figure where new rows are less probable than any mix explains."""
        if self.columns_changed:
            return [
                f"The columns changed: in {self.less_probable:.0%} of pairs a new row is less probable than an earlier "
                "one, which no mix of the classes explains. So the new mix is not known; label some of the rows."
            ]
        shares = zip(self.classes.tolist(), self.shares, self.standard_error, self.prior, strict=True)
        most = sorted(shares, key=lambda one: -abs(one[1] - one[3]))[:3]
        each = ", ".join(f"{label}: {share:.3f} ± {error:.3f} (was {was:.3f})" for label, share, error, was in most)
        if self.mix_changed:
            found = [f"The mix of classes changed: {each}."]
        else:
            found = [f"Nothing shows that the mix of classes changed (p = {self.p_value:.2f}): {each}."]
        if self.columns_changed is not None:
            found.append("Given the mix, new rows are about as probable as earlier ones.")
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def estimate_shares(posterior: Array, prior: Array, classes: Array) -> PriorEstimate:
    """Return the estimate from p(y | x) of unlabelled rows, (n, C), and p(y), (C,), of a model.

    Raises
    ------
    ValueError
        There is no row that a class can produce.
    """
    possible = ~np.isnan(posterior).any(axis=1)
    density = posterior[possible] / np.where(prior > 0, prior, 1.0)  # p(x | y) / p(x), up to a constant per row
    density[:, prior <= 0] = 0.0
    if not len(density):
        raise ValueError("there is no row from which class shares could be estimated; give some rows")
    density /= density.max(axis=1, keepdims=True)
    none = np.zeros(len(prior))
    shares, cautious = _maximum(density, prior, none), _maximum(density, prior, len(prior) * prior)
    ratio = 2.0 * float(np.log(density @ shares).sum() - np.log(density @ prior).sum())
    free = int(np.count_nonzero(prior > 0)) - 1
    p_value = float(chdtrc(free, max(ratio, 0.0))) if free else 1.0
    errors = (
        _covariance(density, one, prior > 0, rows) for one, rows in ((shares, none), (cautious, len(prior) * prior))
    )
    of_shares, of_cautious = errors
    return PriorEstimate(classes, shares, of_shares, cautious, of_cautious, prior, p_value, len(density))


def _maximum(density: Array, start: Array, rows: Array) -> Array:
    """Return the shares of the greatest likelihood, (C,), with further rows of known classes, (C,).

    Steps of Newton's method within the simplex where they raise the likelihood, else of EM, which always do.
    """
    shares = np.maximum(start, 1e-3 * (start > 0))
    shares = shares / shares.sum()
    n = len(density) + rows.sum()

    def likelihood(of: Array) -> float:
        return float(np.log(density @ of).sum() + xlogy(rows, of).sum())

    value = likelihood(shares)
    for _ in range(_MOST_STEPS):
        by_mix = density / (density @ shares)[:, np.newaxis]
        of_em = (shares * by_mix.sum(axis=0) + rows) / n  # the mean of p(y | x) under the current shares
        gradient = of_em / np.where(shares > 0, shares, 1.0)
        if gradient.max() < 1.0 + _NEAR and np.abs(of_em - shares).max() < _NEAR:  # Karush, Kuhn and Tucker
            break
        newton = _newton(by_mix, shares, gradient, rows)
        after = value if newton is None else likelihood(newton)
        if newton is None or not after > value:
            newton, after = of_em, likelihood(of_em)
        if after <= value:  # by rounding
            break
        shares, value = newton, after
    shares = np.where(shares < _PINNED, 0.0, shares)
    return np.asarray(shares / shares.sum())


def _newton(by_mix: Array, shares: Array, gradient: Array, rows: Array) -> Array | None:
    """Return the shares after a step of Newton's method among those that are not 0; None if there is none."""
    free = np.flatnonzero((shares > _PINNED) | (shares * (gradient > 1.0) > 0))
    if len(free) < 2:
        return None
    basis, n = _tangent(len(free)), len(by_mix) + rows.sum()
    try:
        step = n * basis @ np.linalg.solve(_information(by_mix, shares, rows, free, basis), basis.T @ gradient[free])
    except np.linalg.LinAlgError:  # classes of equal densities
        return None
    moved, falls = shares.copy(), step < 0
    longest = min([1.0, *(-_WITHIN * shares[free][falls] / step[falls]).tolist()])
    moved[free] = np.maximum(shares[free] + longest * step, 0.0)
    return np.asarray(moved / moved.sum()) if np.isfinite(moved).all() and moved.sum() > 0 else None


def _information(by_mix: Array, shares: Array, rows: Array, free: Array, basis: Array) -> Array:
    """Return the Fisher information on the simplex: of rows, and of further rows of known classes."""
    of_rows = by_mix[:, free].T @ by_mix[:, free]
    of_known = np.diag(rows[free] / np.maximum(shares[free], _PINNED) ** 2)
    return np.asarray(basis.T @ (of_rows + of_known) @ basis)


def _tangent(n: int) -> Array:
    """Return an orthonormal basis of the vectors of n numbers that sum to 0, (n, n − 1)."""
    return np.asarray(np.linalg.qr(np.column_stack([np.ones(n), np.eye(n)[:, 1:]]))[0][:, 1:])


def _covariance(density: Array, shares: Array, possible: Array, rows: Array) -> Array:
    """Return the inverse of the Fisher information on the simplex, (C, C).

    Points of the simplex are √2 apart at most, so that no direction has a variance above 1/2 (Popoviciu). A direction
    of which the rows show nothing, such as between two classes of equal densities, has this variance.
    """
    free = np.flatnonzero(possible)
    found = np.zeros((len(shares), len(shares)))
    if len(free) > 1:
        by_mix, basis = density / (density @ shares)[:, np.newaxis], _tangent(len(free))
        information = _information(by_mix, shares, rows, free, basis)
        size, direction = np.linalg.eigh(information)
        towards = basis @ direction
        found[np.ix_(free, free)] = (towards / np.maximum(size, _LEAST_INFORMATION)) @ towards.T
    return found


def columns_changed(less_probable: float | None, p_value: float | None) -> bool | None:
    """Return whether new rows are less probable than earlier ones, by the figures of `compare_densities`."""
    if less_probable is None or p_value is None:
        return None
    return p_value < _CHANGED and less_probable > _LESS_PROBABLE


def compare_densities(new: Array, earlier: Array, weight: Array) -> tuple[float, float]:
    """Return the share of pairs in which the new row has the smaller log density, and the p-value of one half.

    Parameters
    ----------
    new, earlier : ndarray (n,), (m,)
        log p(x) of rows.
    weight : ndarray (m,)
        Of the earlier rows.
    """
    order = np.argsort(earlier)
    reached = np.concatenate([[0.0], np.cumsum(weight[order])]) / weight.sum()
    below, upto = (reached[np.searchsorted(earlier[order], new, side=side)] for side in ("left", "right"))
    less = float(1.0 - (below + upto).mean() / 2.0)
    of_earlier = float(weight.sum() ** 2 / (weight**2).sum())
    error = np.sqrt((1.0 / len(new) + 1.0 / of_earlier) / 12.0)
    return less, float(2.0 * ndtr(-abs(less - 0.5) / error))


def compare_rows(
    new: tuple[Array, Array], earlier: tuple[Array, Array], prior: Array, shares: Array
) -> tuple[float, float]:
    r"""Return `compare_densities` of rows under other class shares, to which earlier rows are weighted.

    .. math:: p_\pi(x) = p(x) \sum_y p(y \mid x) \frac{\pi_y}{p(y)}, \quad w_i = \frac{p_\pi(x_i)}{p(x_i)}

    Parameters
    ----------
    new, earlier : tuple of ndarray
        p(y | x), (n, C), and log p(x), (n,), of rows; NaN where no class can produce a row.
    prior, shares : ndarray (C,)
        p(y) of the model, and π.
    """
    ratio = shares / np.where(prior > 0, prior, 1.0)
    weights = [np.nan_to_num(posterior) @ ratio for posterior, _ in (new, earlier)]
    with np.errstate(divide="ignore"):
        log_densities = [
            np.nan_to_num(log_density + np.log(weight), nan=_NEVER, neginf=_NEVER)
            for (_, log_density), weight in zip((new, earlier), weights, strict=True)
        ]
    return compare_densities(log_densities[0], log_densities[1], weights[1])
