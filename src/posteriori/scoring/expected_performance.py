"""How well a classifier is expected to do on unlabelled rows, by its own calibrated posteriors."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import xlogy

from posteriori.scoring.decisions import Decision
from posteriori.support.typing import Array

_STRANGE, _TOO_MANY = 0.99, 3.0  # a strangeness that one row in a hundred has, and how many times as many are too many


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
        The latter in nats.
    auc : float
        Of two classes: the expected probability that a row of one class is ranked above one of the other. NaN of more.
    cost : float or None
        Per row, if costs were given.
    confusion : ndarray (C, C)
        Expected rows by true class and decision.
    standard_error : dict
        Of accuracy, log_loss and cost: by the labels, which are drawn, and by the rows, which are a sample.
    strange : float or None
        The share of the rows that are more unusual than 99 % of the rows of the model; None without a density.
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
    strange: float | None
    priors: dict[Any, float]

    @property
    def can_be_trusted(self) -> bool:
        """Whether the rows are no more unusual than those that the model knows; True without a density."""
        return self.strange is None or self.strange <= _TOO_MANY * (1.0 - _STRANGE)

    @property
    def sentences(self) -> list[str]:
        """The facts, a sentence each."""
        error = self.standard_error
        found = [
            f"Of 100 rows, it is expected to predict {100 * self.accuracy:.1f} ± {100 * error['accuracy']:.1f} right; "
            f"the expected log-loss is {self.log_loss:.3f} ± {error['log_loss']:.3f} nats."
        ]
        if self.cost is not None:
            found.append(f"The expected cost is {self.cost:.4g} ± {error['cost']:.2g} per row.")
        if not self.can_be_trusted:
            found.append(
                f"Do not trust this: {self.strange:.0%} of the rows are more unusual than 99 % of those that the model "
                "knows, and its probabilities were not checked on such rows."
            )
        return found

    def __str__(self) -> str:
        return "\n".join(self.sentences)


def expected_performance(
    posterior: Array, classes: Array, decision: Decision | None, strangeness: Array | None, priors: Array
) -> ExpectedPerformance:
    """Return the expectations from p(y | x) of rows, (n, C), and how strange they are, (n,).

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
    right = p[np.arange(n), decided]
    entropy = -xlogy(p, p).sum(axis=1)
    # The variance of a loss that y draws, and of its expectation over rows.
    with np.errstate(divide="ignore"):
        of_labels = (xlogy(p, p) * np.where(p > 0, np.log(p), 0.0)).sum(axis=1) - entropy**2
    errors = {
        "accuracy": float(np.sqrt((right * (1 - right)).mean() + right.var()) / np.sqrt(n)),
        "log_loss": float(np.sqrt(max(of_labels.mean(), 0.0) + entropy.var()) / np.sqrt(n)),
    }
    cost = None
    if decision is not None and decision.cost is not None:
        each = decision.cost[:, decided].T
        of_row = (p * each).sum(axis=1)
        cost = float(of_row.mean())
        errors["cost"] = float(np.sqrt(((p * each**2).sum(axis=1) - of_row**2).mean() + of_row.var()) / np.sqrt(n))
    confusion = np.stack([np.bincount(decided, p[:, c], n_classes) for c in range(n_classes)])
    return ExpectedPerformance(
        classes,
        n,
        float(right.mean()),
        float(entropy.mean()),
        _expected_auc(p[:, 1]) if n_classes == 2 else float("nan"),
        cost,
        confusion,
        errors,
        None if strangeness is None else float((strangeness > _STRANGE).mean()),
        dict(zip(classes.tolist(), priors.tolist(), strict=True)),
    )


def _expected_auc(p: Array) -> float:
    """Return the probability that a row with y = 1 has a greater p than one with y = 0, if y is drawn from p."""
    distinct, place = np.unique(p, return_inverse=True)
    ones, zeros = np.bincount(place, p, len(distinct)), np.bincount(place, 1.0 - p, len(distinct))
    below = np.cumsum(zeros) - zeros / 2.0
    total = ones.sum() * zeros.sum()
    return float(ones @ below / total) if total > 0 else float("nan")
