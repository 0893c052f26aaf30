"""A prediction as an exact sum of log factors, and Bayes' rule written out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import polars as pl

from posteriori.formatting import cell_text, exponential
from posteriori.model import GenerativeModel, log_sum
from posteriori.tables import quote
from posteriori.typing import Array

_MOST_GIVEN = 3  # features named after a bar


@dataclass(frozen=True)
class LogOdds:
    """log p(label | x) − log p(against | x) as a sum, in nats.

    Attributes
    ----------
    label, against : class labels
    prior : float
        The log-odds before any feature is seen.
    factors : dict
        What each feature adds, by name.
    """

    label: Any
    against: Any
    prior: float
    factors: dict[str, float]

    @property
    def total(self) -> float:
        """The log-odds of the posterior."""
        return self.prior + sum(self.factors.values())


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
    weighted : bool
        Whether the factors are weighted: their sum is then no log p(x, y), though the posterior is what it makes.
    given : tuple of tuple of int (d), optional
        For each feature the places of those on which its factor is conditional beside the class, where features depend
        on each other: in a chain, log p(x_j | x_1 … x_{j−1}, y). Missing ones are integrated out.
    """

    classes: Array
    feature_names: tuple[str, ...]
    values: Array
    log_prior: Array
    log_factors: Array
    given: tuple[tuple[int, ...], ...] = ()
    weighted: bool = False

    @property
    def log_joint(self) -> Array:
        """Log p(x, y) in nats, (n, C): the prior plus the sum of the factors."""
        return self.log_prior + self.log_factors.sum(axis=2)

    @property
    def log_evidence(self) -> Array:
        """Log p(x) in nats, (n,)."""
        return log_sum(np.ascontiguousarray(self.log_joint))

    @property
    def posterior(self) -> Array:
        """p(y | x), (n, C)."""
        with np.errstate(invalid="ignore"):  # NaN in a row that no class can produce
            return np.exp(self.log_joint - self.log_evidence[:, np.newaxis])

    def log_odds(self, row: int = 0, label: Any = None, against: Any = None) -> LogOdds:
        """Return what the prior and each feature add to the log-odds of one class against another.

        Parameters
        ----------
        row : int, default 0
        label, against : class labels, optional
            Default: the most probable class of the row, and the second.

        Raises
        ------
        ValueError
            A label is none of the classes, or there is only one class.
        """
        first, second = self._pair(row, label, against)
        with np.errstate(invalid="ignore"):
            prior = float(self.log_prior[first] - self.log_prior[second])
            factors = self.log_factors[row, first] - self.log_factors[row, second]
        named = dict(zip(self.feature_names, map(float, factors), strict=True))
        return LogOdds(self.classes[first], self.classes[second], prior, named)

    def known(self, row: int, feature: int) -> tuple[str, ...]:
        """Return the names of the present features on which the factor of one is conditional, beside the class."""
        positions = self.given[feature] if self.given else ()
        return tuple(self.feature_names[j] for j in positions if self.values[row, j] is not None)

    def _factor_name(self, row: int, feature: int) -> str:
        name, value, known = self.feature_names[feature], self.values[row, feature], self.known(row, feature)
        if value is None:
            return f"× {name} missing"
        shown = ", ".join(known if len(known) <= _MOST_GIVEN else (*known[: _MOST_GIVEN - 1], "…", known[-1]))
        factor = f"p({name} = {cell_text(value, longest=None)}{' | ' if known else ''}{shown})"
        return f"× {factor}, weighted" if self.weighted else f"× {factor}"

    def _pair(self, row: int, label: Any, against: Any) -> tuple[int, int]:
        ranked = list(np.argsort(-self.log_joint[row], kind="stable"))
        first = ranked[0] if label is None else self._place(label)
        if against is not None:
            return first, self._place(against)
        others = [position for position in ranked if position != first]
        if not others:
            raise ValueError(f"the model knows one class only, {self.classes[0]!r}: there are no odds")
        return first, others[0]

    def _place(self, label: Any) -> int:
        positions = np.flatnonzero(self.classes == label)
        if not len(positions):
            raise ValueError(f"{label!r} is not a class; the classes are {list(self.classes)}")
        return int(positions[0])

    def bayes_table(self, row: int = 0) -> str:
        """Return Bayes' rule for one row, written out as on paper: prior × likelihood, evidence, posterior.

        Parameters
        ----------
        row : int, default 0

        Returns
        -------
        str
            A line for the prior, one for each feature's likelihood p(x_j | y), or p(x_j | x_i, y) where features
            depend on each other, their product p(x, y), and the posterior p(x, y) / p(x); a column for each class.
            Densities are per data unit.
        """
        names = [str(label) for label in self.classes]
        likelihoods = [(self._factor_name(row, j), factors) for j, factors in enumerate(self.log_factors[row].T)]
        log_evidence = float(self.log_evidence[row])
        table = [
            ["given class", *names],
            ["bias of the class" if self.weighted else "prior p(class)", *map(exponential, self.log_prior)],
            *([label, *map(exponential, factors)] for label, factors in likelihoods),
            ["= product" if self.weighted else "= joint p(x, class)", *map(exponential, self.log_joint[row])],
            ["posterior", *(f"{p:.6f}" for p in self.posterior[row])],
        ]
        widths = [max(len(line[k]) for line in table) for k in range(len(table[0]))]
        lines = ["  ".join([line[0].ljust(widths[0]), *map(str.rjust, line[1:], widths[1:])]) for line in table]
        rule = "─" * len(lines[0])
        evidence = f"evidence p(x) = {exponential(log_evidence)}, the sum of the joint; posterior = joint / evidence"
        if self.weighted:
            evidence = f"sum of the products = {exponential(log_evidence)}; posterior = product / sum"
        return "\n".join([lines[0], rule, *lines[1:-2], rule, lines[-2], evidence, rule, lines[-1]])


class ExplainableModel(Protocol):
    """A fitted classifier that explains its predictions, such as `NaiveBayes` or `GaussianDiscriminant`."""

    @property
    def classes_(self) -> Array:
        """The class labels, (C,)."""

    @property
    def model_(self) -> GenerativeModel:
        """The fitted prior and densities."""

    def explain(self, X: Any) -> Explanation:
        """Return the log prior and the log factor of each feature, per row and class."""


def bayes_table(model: ExplainableModel, x: Any) -> str:
    """Write Bayes' rule out for one row, as a person would on paper.

    Parameters
    ----------
    model : fitted estimator of posteriori
    x : sequence of d cells, mapping from column to cell, or a table of one row
        A cell that is None or NaN, or a column left out of a mapping, is missing: its factor is 1.

    Returns
    -------
    str

    Raises
    ------
    ValueError
        x is a table of several rows; take one, or use ``model.explain(X).bayes_table(row)``.

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.NaiveBayes.from_parameters(
    ...     priors={"a": 0.2, "b": 0.5, "c": 0.3}, gaussian={"x": {"mean": [2, 3, 4], "sd": [1, 2, 1]}}
    ... )
    >>> print(po.explain.bayes_table(model, [3.4]))
    given class                  a          b          c
    ────────────────────────────────────────────────────
    prior p(class)             0.2        0.5        0.3
    × p(x = 3.4)          0.149727   0.195521   0.333225
    ────────────────────────────────────────────────────
    = joint p(x, class)  0.0299455  0.0977607  0.0999674
    evidence p(x) = 0.227674, the sum of the joint; posterior = joint / evidence
    ────────────────────────────────────────────────────
    posterior             0.131528   0.429390   0.439082
    """
    explanation = model.explain(_one_row(model, x))
    if len(explanation.values) > 1:
        raise ValueError(f"x has {len(explanation.values)} rows; write out one at a time")
    return explanation.bayes_table()


def _one_row(model: ExplainableModel, x: Any) -> Any:
    names = model.model_.schema.names
    if isinstance(x, Mapping):
        unseen = [key for key in x if key not in names]
        if unseen:
            raise ValueError(f"x has {quote(unseen)}, which the model does not know; it knows {quote(names)}")
        cells = [x.get(name) for name in names]
    elif isinstance(x, list | tuple | np.ndarray) and np.ndim(np.asarray(x, dtype=object)) == 1:
        cells = list(x)
    else:
        return x
    if len(cells) != len(names):
        raise ValueError(f"x has {len(cells)} cells but the model has {len(names)} features: {quote(names)}")
    return pl.DataFrame([pl.Series(name, [_plain(cell)]) for name, cell in zip(names, cells, strict=True)])


def _plain(cell: Any) -> Any:
    cell = cell.item() if isinstance(cell, np.generic) else cell
    return None if isinstance(cell, float) and cell != cell else cell
