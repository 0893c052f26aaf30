"""A prediction as an exact sum of log factors, and Bayes' rule written out."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from posteriori.densities import CategoricalParameters, GaussianParameters
from posteriori.model import GenerativeModel, log_sum
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.classifiers import NaiveBayes

__all__ = ["Explanation", "LinearForm", "bayes_table", "linear_form"]


@dataclass(frozen=True)
class Explanation:
    """log p(x, y) = log p(y) + Σ_j log p(x_j | y): every posterior as the sum that it is.

    Attributes
    ----------
    classes : ndarray (C,)
    feature_names : tuple of str
    values : ndarray of object (n, d)
        The cells as the model read them; None where missing.
    log_prior : ndarray (C,)
        In nats.
    log_factors : ndarray (n, C, d)
        In nats; 0 where the cell is missing.
    """

    classes: Array
    feature_names: tuple[str, ...]
    values: Array
    log_prior: Array
    log_factors: Array

    @property
    def log_joint(self) -> Array:
        """log p(x, y) in nats, (n, C): the prior plus the sum of the factors."""
        return self.log_prior + self.log_factors.sum(axis=2)

    @property
    def log_evidence(self) -> Array:
        """log p(x) in nats, (n,)."""
        return log_sum(np.ascontiguousarray(self.log_joint))

    @property
    def posterior(self) -> Array:
        """p(y | x), (n, C)."""
        return np.exp(self.log_joint - self.log_evidence[:, np.newaxis])

    def log_odds(self, row: int = 0, label: Any = None, against: Any = None) -> dict[str, float]:
        """Return what each feature adds to the log-odds of one class against another.

        Parameters
        ----------
        row : int, default 0
        label, against : class labels, optional
            Default: the most probable class of the row, and the second.

        Returns
        -------
        dict
            ``"prior"`` and then every feature, in nats; the values sum to log p(label | x) − log p(against | x).
        """
        first, second = self._pair(row, label, against)
        with np.errstate(invalid="ignore"):
            prior = float(self.log_prior[first] - self.log_prior[second])
            factors = self.log_factors[row, first] - self.log_factors[row, second]
        return {"prior": prior, **dict(zip(self.feature_names, map(float, factors), strict=True))}

    def _pair(self, row: int, label: Any, against: Any) -> tuple[int, int]:
        ranked = list(np.argsort(-self.log_joint[row], kind="stable"))
        first = ranked[0] if label is None else self._place(label)
        if against is not None:
            return first, self._place(against)
        others = [place for place in ranked if place != first]
        if not others:
            raise ValueError(f"the model knows one class only, {self.classes[0]!r}: there are no odds")
        return first, others[0]

    def _place(self, label: Any) -> int:
        places = np.flatnonzero(self.classes == label)
        if not len(places):
            raise ValueError(f"{label!r} is not a class; the classes are {list(self.classes)}")
        return int(places[0])

    def bayes_table(self, row: int = 0) -> str:
        """Return Bayes' rule for one row, written out as on paper; see `bayes_table`."""
        joint = np.exp(self.log_joint[row])
        underflow = not joint.sum() > np.finfo(float).tiny
        header = ["", *map(str, self.classes)]
        lines = [header, ["prior", *(f"{np.exp(p):.6g}" for p in self.log_prior)]]
        for j, name in enumerate(self.feature_names):
            value = self.values[row, j]
            shown = "missing" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
            factors = self.log_factors[row, :, j]
            cells = [_power(factor) for factor in factors]
            lines.append([f"× p({name} = {shown} | class)" if value is not None else f"× {name} missing", *cells])
        lines.append(["= joint", *(_power(value) for value in self.log_joint[row])])
        lines.append(["posterior", *(f"{p:.6f}" for p in self.posterior[row])])
        widths = [max(len(line[k]) for line in lines) for k in range(len(header))]
        text = [
            "  ".join([line[0].ljust(widths[0]), *(cell.rjust(w) for cell, w in zip(line[1:], widths[1:], strict=True))])
            for line in lines
        ]
        rule = "─" * len(text[0])
        evidence = f"evidence p(x) = {_power(self.log_evidence[row])}, the sum of the joint row"
        if underflow:
            evidence += f" (log p(x) = {self.log_evidence[row]:.6g} nats)"
        body = [text[0], rule, *text[1:-2], rule, text[-2], evidence, f"posterior = joint / evidence", text[-1]]
        return "\n".join(line.rstrip() for line in body)


def _power(log_value: float) -> str:
    """Write exp(log_value), in powers of ten where a float could not hold it."""
    if log_value == -np.inf:
        return "0"
    if -600 < log_value < 600:
        return f"{np.exp(log_value):.6g}"
    exponent = int(np.floor(log_value / np.log(10)))
    return f"{np.exp(log_value - exponent * np.log(10)):.4g}e{exponent:+d}"
