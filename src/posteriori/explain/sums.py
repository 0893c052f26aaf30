"""Predictions as sums of log factors, of all classes or of merged ones."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from posteriori.explain.words import WordFactors
from posteriori.model import log_normalised, log_sum
from posteriori.support.formatting import cell_text, exponential, plural, shortened
from posteriori.support.lazy_polars import pl
from posteriori.support.markup import paragraph, table
from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array

_MOST_SHOWN = 5  # rows in a notebook
_MOST_LISTED = 30  # features of a row there
_MOST_GIVEN = 3  # features named after a bar
_MOST_WORDS = 10  # of a row, in a table
_LONGEST_WORD = 30  # characters


@dataclass(frozen=True)
class LogOdds:
    """Log-odds log p(label | x) − log p(against | x) as a sum, in nats.

    Attributes
    ----------
    label, against : class labels
    prior : float
        Log-odds of the class prior.
    factors : dict
        Contribution of each feature, by name.
    words : dict
        Contributions of the words of each column of counts or text, by its name, the greatest amounts first. They sum
        to its entry in `factors`, together with what does not depend on the words of the row (`WordFactors.rest`).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> odds = model.explain(table[:1]).log_odds(0, "Adelie", "Gentoo")
    >>> round(odds.prior, 3), max(odds.factors, key=odds.factors.get)
    (0.204, 'flipper_length_mm')
    """

    label: Any
    against: Any
    prior: float
    factors: dict[str, float]
    words: dict[str, dict[str, float]] = field(default_factory=dict)

    @property
    def total(self) -> float:
        """The log-odds of the posterior."""
        return self.prior + sum(self.factors.values())


@dataclass(frozen=True)
class Explanation:
    """Log joint density of rows as a sum of log factors: log p(x, y) = log p(y) + Σ_j log p(x_j | y).

    Attributes
    ----------
    classes : ndarray (C,)
    feature_names : tuple of str
    values : ndarray of object (n, d)
        Cells as the model reads them; None where missing.
    log_prior : ndarray (C,)
        In nats.
    log_factors : ndarray (n, C, d)
        In nats; 0 where the cell is missing.
    weighted : bool
        Whether the factors are weighted, as those of the trees of a forest by 1/T. Their sum then differs from
        log p(x, y), but its softmax is the posterior.
    given : tuple of tuple of int (d), optional
        Positions of the features on which the factor of each feature is conditional besides the class, if features
        depend on each other: by the chain rule, log p(x_j | x_1 … x_{j−1}, y). Missing features are integrated out.
    words : tuple of dict (n)
        For each row, the factors of columns of counts as sums over their words, by the name of the column; empty
        without such columns.
    begins_at_prior : bool
        Whether `log_prior` is the log prior; of some pools it is the bias of each class.
    apart : ndarray (n, C, d), optional
        `log_factors` without what all classes share: beside a great shared part, digits that tell classes apart are
        lost. Default: they share nothing.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> table = load_penguins()
    >>> model = po.NaiveBayes().fit(table, "species")
    >>> explanation = model.explain(table[:2])
    >>> explanation
    <Explanation: 2 rows, 3 classes, 7 features; print(….bayes_table(row)) writes Bayes' rule out>
    """

    classes: Array
    feature_names: tuple[str, ...]
    values: Array
    log_prior: Array
    log_factors: Array
    given: tuple[tuple[int, ...], ...] = ()
    weighted: bool = False
    words: tuple[Mapping[str, WordFactors], ...] = ()
    begins_at_prior: bool = True
    apart: Array | None = None

    def __repr__(self) -> str:
        n_rows, n_classes, d = self.log_factors.shape
        shape = f"{plural(n_rows, 'row')}, {plural(n_classes, 'class')}, {plural(d, 'feature')}"
        return f"<Explanation: {shape}; print(….bayes_table(row)) writes Bayes' rule out>"

    @property
    def constant(self) -> str:
        """The name of the term that no feature adds: the prior, or the bias of the class."""
        return "prior" if self.begins_at_prior else "bias of the class"

    def to_polars(self) -> pl.DataFrame:
        """Return the terms of the sums as a table: one line per row and term, with a column of nats per class.

        Returns
        -------
        polars DataFrame
            ``row``; ``factor``, the prior (or bias of the class) or the name of a feature; ``value``, its cell as text,
            null if it is missing; and for each class its term in nats, in a column of the name of the class. The
            columns of classes add up per row to `log_joint`.

        Examples
        --------
        >>> import posteriori as po
        >>> model = po.NaiveBayes().fit([["u"], ["v"], ["u"]], ["a", "b", "a"])
        >>> model.explain([["u"]]).to_polars().select("factor", "value", "a").rows()
        [('prior', None, -0.40546510810816444), ('x0', 'u', -0.2876820724517809)]
        """
        n, _, d = self.log_factors.shape
        names, labels = (self.constant, *self.feature_names), [str(label) for label in self.classes]
        taken = {"row", "factor", "value"}.intersection(labels)
        if taken:
            raise ValueError(f"the class {min(taken)!r} has the name of a column of the table; use log_factors")
        prior = np.broadcast_to(self.log_prior[:, np.newaxis], (n, len(labels), 1))
        terms = np.concatenate([prior, self.log_factors], axis=2)
        cells = [cell for row in self.values for cell in (None, *row)]
        return pl.DataFrame(
            {
                "row": np.repeat(np.arange(n), d + 1),
                "factor": list(names) * n,
                "value": pl.Series(
                    [None if cell is None else cell_text(cell, longest=None) for cell in cells], dtype=pl.String
                ),
                **{label: terms[:, c].ravel() for c, label in enumerate(labels)},
            }
        )

    def to_pandas(self) -> Any:
        """Return the table of `to_polars` as a DataFrame of pandas, which needs pandas."""
        import pandas as pd

        return pd.DataFrame(self.to_polars().to_dict(as_series=False))

    def row(self, row: int) -> Explanation:
        """Return the explanation of one row."""
        rows = slice(row, row + 1)
        apart = None if self.apart is None else self.apart[rows]
        log_factors, words = self.log_factors[rows], self.words[rows]
        return replace(self, values=self.values[rows], log_factors=log_factors, words=words, apart=apart)

    def relative(self) -> Explanation:
        """Return the explanation with each factor divided by that of the class for which it is greatest.

        The posterior and the log-odds stay the same, and the greatest factor of each line of `bayes_table` is 1.
        """
        greatest = self.deciding.max(axis=1, keepdims=True)
        log_factors = self.deciding - np.where(np.isfinite(greatest), greatest, 0.0)
        log_prior = self.log_prior - self.log_prior.max()
        return replace(self, log_prior=log_prior, log_factors=log_factors, words=(), apart=None)

    @property
    def deciding(self) -> Array:
        """The log factors without what all classes share, (n, C, d)."""
        return self.log_factors if self.apart is None else self.apart

    @property
    def scores(self) -> Array:
        """Log p(y | x) in nats up to a constant per row, (n, C)."""
        return np.asarray(self.log_prior + self.deciding.sum(axis=2))

    @property
    def log_joint(self) -> Array:
        """Log p(x, y) in nats, (n, C): the log prior plus the sum of the log factors."""
        log_joint: Array = self.log_prior + self.log_factors.sum(axis=2)
        return log_joint

    @property
    def log_evidence(self) -> Array:
        """Log p(x) in nats, (n,)."""
        return log_sum(np.ascontiguousarray(self.log_joint))

    @property
    def posterior(self) -> Array:
        """p(y | x), (n, C)."""
        posterior: Array = np.exp(log_normalised(self.scores))  # NaN in a row that no class can produce
        return posterior

    def log_odds(self, row: int = 0, label: Any = None, against: Any = None) -> LogOdds:
        """Return the contributions of the prior and of each feature to the log-odds of one class against another.

        Parameters
        ----------
        row : int, default 0
        label, against : class labels, optional
            Default: the most and the second most probable class of the row.

        Raises
        ------
        ValueError
            A label is not one of the classes, both are the same, or there is only one class.
        """
        first, second = self.pair(row, label, against)
        with np.errstate(invalid="ignore"):
            prior = float(self.log_prior[first] - self.log_prior[second])
            factors = self.deciding[row, first] - self.deciding[row, second]
        named = dict(zip(self.feature_names, map(float, factors), strict=True))
        words = {name: one.strongest(first, second) for name, one in self.words_of(row).items()}
        return LogOdds(self.classes[first], self.classes[second], prior, named, words)

    def words_of(self, row: int) -> Mapping[str, WordFactors]:
        """Return the factors of the words of a row, by the name of the column of counts or text."""
        return self.words[row] if self.words else {}

    def known(self, row: int, feature: int) -> tuple[str, ...]:
        """Return the names of the present features on which the factor of a feature depends, besides the class."""
        positions = self.given[feature] if self.given else ()
        return tuple(self.feature_names[j] for j in positions if self.values[row, j] is not None)

    def _factor_name(self, row: int, feature: int) -> str:
        name, value, known = self.feature_names[feature], self.values[row, feature], self.known(row, feature)
        if value is None:
            return f"× {name} missing"
        shown = ", ".join(known if len(known) <= _MOST_GIVEN else (*known[: _MOST_GIVEN - 1], "…", known[-1]))
        factor = f"p({name} = {cell_text(value, longest=None)}{' | ' if known else ''}{shown})"
        return f"× {factor}, weighted" if self.weighted else f"× {factor}"

    def _repr_html_(self) -> str:
        """Return Bayes' rule of the first rows as tables: what each feature adds to log p(x, y), in nats."""
        labels = [str(label) for label in self.classes]
        parts = []
        for row in range(min(len(self.values), _MOST_SHOWN)):
            log_factors = self.log_factors[row].T
            ranked = sorted(range(len(log_factors)), key=lambda j: -np.ptp(np.nan_to_num(log_factors[j])))
            listed, rest = sorted(ranked[:_MOST_LISTED]), ranked[_MOST_LISTED:]
            names = [self._factor_name(row, j).removeprefix("× ") for j in listed]
            lines = [[name, *(f"{log:.3f}" for log in log_factors[j])] for name, j in zip(names, listed, strict=True)]
            if rest:
                others = log_factors[rest].sum(axis=0)
                lines.append([plural(len(rest), "more column"), *(f"{log:.3f}" for log in others)])
            lines = [
                [self.constant, *(f"{log:.3f}" for log in self.log_prior)],
                *lines,
                ["sum", *(f"{log:.3f}" for log in self.log_joint[row])],
                ["posterior", *(f"{p:.6f}" for p in self.posterior[row])],
            ]
            shares = [[None] * (len(labels) + 1)] * (len(lines) - 1) + [[None, *self.posterior[row].tolist()]]
            parts.append(table(f"row {row}, log factors in nats", ["given class", *labels], lines, 1, shares))
        hidden = len(self.values) - len(parts)
        return "".join(parts) + (paragraph(f"… and {hidden:,} more rows") if hidden else "")

    def pair(self, row: int = 0, label: Any = None, against: Any = None) -> tuple[int, int]:
        """Return the positions of two classes; by default the most and the second most probable one of a row.

        Raises
        ------
        ValueError
            As `log_odds`.
        """
        classes, ranked = self.classes.tolist(), np.argsort(-self.scores[row], kind="stable").tolist()
        if len(classes) < 2:
            raise ValueError(f"the model has one class only, {classes[0]!r}: there are no odds")
        second = None if against is None else class_index(against, classes)
        first = next(c for c in ranked if c != second) if label is None else class_index(label, classes)
        second = next(c for c in ranked if c != first) if second is None else second
        if first == second:
            raise ValueError(f"label and against are both {label!r}; give two classes")
        return first, second

    def bayes_table(self, row: int = 0) -> str:
        """Return Bayes' rule for one row as a table: prior × likelihood, evidence, posterior.

        Parameters
        ----------
        row : int, default 0

        Returns
        -------
        str
            One column per class, with lines for the prior, for the likelihood p(x_j | y) of each feature, or
            p(x_j | x_i, y) if features depend on each other, for their product p(x, y), and for the posterior
            p(x, y) / p(x). Densities are per data unit. Below a column of counts or text stand the factors that
            multiply to its own: those of the 10 words that differ most between the classes, and of the others.
        """
        names = [str(label) for label in self.classes]
        likelihoods = []
        log_factors = self.log_factors[row].T
        for j, factors in enumerate(log_factors):
            likelihoods.append((self._factor_name(row, j), factors))
            words = self.words_of(row).get(self.feature_names[j])
            of_words = () if words is None else words.listed(_MOST_WORDS)
            likelihoods += [(f"    of it {shortened(word, _LONGEST_WORD)}", factor) for word, factor in of_words]
        log_evidence = float(self.log_evidence[row])
        table = [
            ["given class", *names],
            [self.constant if self.weighted else "prior p(class)", *map(exponential, self.log_prior)],
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


def merge_classes(explanation: Explanation, keep: Sequence[int]) -> Explanation:
    """Return the explanation of one row with all classes except some merged into one; the evidence is the same.

    The factor of a feature given the merged class is p(x_j | other, x_1 … x_{j−1}): features that are independent
    given each class depend on each other given several classes. By the chain rule the factors and the prior multiply
    to the joint.

    Parameters
    ----------
    explanation : Explanation
        Its first row is used.
    keep : sequence of int
        Positions of the classes that are not merged.
    """
    others = [c for c in range(len(explanation.classes)) if c not in set(keep)]
    prior = explanation.log_prior
    classes = np.array([*explanation.classes[list(keep)], f"{len(others)} others"], dtype=object)
    log_prior = np.append(prior[list(keep)], np.logaddexp.reduce(prior[others]))

    def merged(factors: Array) -> Array:
        steps = np.concatenate([prior[others][:, np.newaxis], factors[0, others]], axis=1).cumsum(axis=1)
        with np.errstate(invalid="ignore"):
            of_others = np.diff(np.logaddexp.reduce(steps, axis=0))
        of_others = np.where(np.isnan(of_others), 0.0, of_others)  # −inf − (−inf): the cells above have probability 0
        return np.concatenate([factors[:1, list(keep)], of_others[np.newaxis, np.newaxis]], axis=1)

    return dataclasses.replace(
        explanation,
        classes=classes,
        log_prior=log_prior,
        log_factors=merged(explanation.log_factors),
        values=explanation.values[:1],
        words=(),
        apart=None if explanation.apart is None else merged(explanation.apart),
    )
