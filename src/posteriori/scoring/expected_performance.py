"""How well a classifier is expected to do on unlabelled rows, by its own calibrated posteriors."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from posteriori.scoring.class_shares import columns_changed
from posteriori.scoring.decisions import Decision
from posteriori.support.typing import Array


@dataclass(frozen=True)
class ExpectedPerformance:
    r"""Figures of predictions without labels, as the posteriors expect them: means over y ~ p(y | x).

    .. math:: E[\text{accuracy}] = \frac{1}{n} \sum_i p(\hat y_i \mid x_i), \quad
              E[\text{log-loss}] = -\frac{1}{n} \sum_i \sum_y p(y \mid x_i) \log p(y \mid x_i)

    Attributes
    ----------
    classes : ndarray (C,)
    n : int
        Rows, without those that no class can produce.
    accuracy, log_loss : float
        The former of the rows that are decided for a class; the latter in nats.
    auc : float
        Of two classes: the expected probability that a row of one class is ranked above one of the other. NaN of more.
    cost : float or None
        Per row, if costs were given.
    confusion : ndarray (C, A)
        Expected rows by true class and decision, the classes first.
    standard_error : dict
        Of accuracy, log_loss and cost: by the labels, which are drawn, by the rows, which are a sample, and by the
        class shares, if they were estimated.
    less_probable : float or None
        If earlier rows were given: the share of pairs of a new and an earlier row in which the new one has the smaller
        p(x), under the same class shares.
    columns_p_value : float or None
        Of the test that it is one half.
    priors : dict
        The class shares under which the posteriors are.
    """

    classes: Array
    n: int
    accuracy: float
    log_loss: float
    auc: float
    cost: float | None
    confusion: Array
    standard_error: dict[str, float]
    priors: dict[Any, float]
    less_probable: float | None = None
    columns_p_value: float | None = None

    @property
    def can_be_trusted(self) -> bool | None:
        """Whether new rows are about as probable as earlier ones; None if none were given."""
        changed = columns_changed(self.less_probable, self.columns_p_value)
        return None if changed is None else not changed

    @property
    def sentences(self) -> list[str]:
        """The facts, a sentence each: no figure where the probabilities were not checked on such rows."""
        if self.can_be_trusted is False:
            return [
                f"How many rows it predicts right is not known: in {self.less_probable:.0%} of pairs a new row is less "
                "probable than an earlier one, and the probabilities were not checked on such rows."
            ]
        error = self.standard_error
        log_loss = f"the expected log-loss is {self.log_loss:.3f} ± {error['log_loss']:.3f} nats."
        rows, left = "100 rows", float(self.confusion[:, len(self.classes) :].sum() / self.n)
        if left > 0:
            rows = f"100 rows that are decided for a class ({1.0 - left:.1%} of all)"
        if np.isnan(self.accuracy):
            found = [f"No row is decided for a class; {log_loss}"]
        else:
            right = f"{100 * self.accuracy:.1f} ± {100 * error['accuracy']:.1f} right"
            found = [f"Of {rows}, it is expected to predict {right}; {log_loss}"]
        if self.cost is not None:
            found.append(f"The expected cost is {self.cost:.4g} ± {error['cost']:.2g} per row.")
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def expected_performance(
    posterior: Array, classes: Array, decision: Decision | None, priors: Array, mixes: Sequence[Array] = ()
) -> ExpectedPerformance:
    """Return the expectations from p(y | x) of rows, (n, C).

    Parameters
    ----------
    posterior, classes, decision
    priors : ndarray (C,)
        The class shares under which the posterior is.
    mixes : sequence of ndarray (C,)
        Other shares that are as possible; how far the expectations differ between them is in the errors.

    Raises
    ------
    ValueError
        There is no row that a class can produce.
    """
    possible = ~np.isnan(posterior).any(axis=1)
    p = posterior[possible]
    if not len(p):
        raise ValueError("there is no row of which a performance could be expected; give some rows")
    n, n_classes = p.shape
    decided = p.argmax(axis=1) if decision is None else decision.choose(p)
    cost = None if decision is None else decision.cost
    means, errors = _expectations(p, decided, cost)
    if mixes:
        others = []
        for mix in mixes:
            q = p * (mix / np.where(priors > 0, priors, 1.0))
            others.append(_expectations(q / q.sum(axis=1, keepdims=True), decided, cost)[0])
        spread = {name: float(np.sqrt(np.mean([(one[name] - means[name]) ** 2 for one in others]))) for name in means}
        errors = {name: float(np.hypot(error, spread[name])) for name, error in errors.items()}
    n_actions = n_classes if cost is None else cost.shape[1]
    confusion = np.stack([np.bincount(decided, p[:, c], n_actions) for c in range(n_classes)])
    return ExpectedPerformance(
        classes,
        n,
        means["accuracy"],
        means["log_loss"],
        _expected_auc(p[:, 1]) if n_classes == 2 else float("nan"),
        means.get("cost"),
        confusion,
        errors,
        dict(zip(classes.tolist(), priors.tolist(), strict=True)),
    )


def _expectations(p: Array, decided: Array, cost: Array | None) -> tuple[dict[str, float], dict[str, float]]:
    """Return the expected figures and their standard errors, of labels that p draws, and of rows that are a sample."""
    of_class = np.flatnonzero(decided < p.shape[1])
    right, entropy = p[of_class, decided[of_class]], -xlogy(p, p).sum(axis=1)
    log_p = np.log(np.maximum(p, np.finfo(np.float64).tiny))
    losses = {"accuracy": (right, right - right**2), "log_loss": (entropy, (p * log_p**2).sum(axis=1) - entropy**2)}
    if cost is not None:
        each = cost[:, decided].T
        of_row = (p * each).sum(axis=1)
        losses["cost"] = (of_row, (p * each**2).sum(axis=1) - of_row**2)
    with np.errstate(invalid="ignore", divide="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # no row is decided for a class
        means = {name: float(mean.mean()) for name, (mean, _) in losses.items()}
        errors = {
            name: float(np.sqrt((within.mean() + mean.var()) / len(mean))) for name, (mean, within) in losses.items()
        }
    return means, errors


def _expected_auc(p: Array) -> float:
    """Return the probability that a row with y = 1 has a greater p than one with y = 0, if y is drawn from p."""
    distinct, place = np.unique(p, return_inverse=True)
    ones, zeros = np.bincount(place, p, len(distinct)), np.bincount(place, 1.0 - p, len(distinct))
    below = np.cumsum(zeros) - zeros / 2.0
    total = ones.sum() * zeros.sum()
    return float(ones @ below / total) if total > 0 else float("nan")
