"""Drift: how the rows of one table differ from those of another one, column by column and under a model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy.special import chdtrc

from posteriori.classifiers.classifier import Classifier
from posteriori.fitting.label_parameters import labels_to_learn
from posteriori.plotting.reading import Feature, cells_of, read_batch
from posteriori.reading import read_labels, read_table
from posteriori.reading.known_columns import KnownColumns
from posteriori.reporting.alerts import chi_squared
from posteriori.support.formatting import cell_text
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column
from posteriori.tables.rows import take_rows

MOST_ROWS = 100_000  # of each table; more are sampled
SIGNIFICANT = 0.01  # the probability that any column is called changed although none is
MODERATE, LARGE = 0.0125, 0.03125  # nats: a population stability index of 0.1 and 0.25
MISSING, UNSEEN = "missing", "unseen category"
_FEWEST_BINS, _MOST_BINS, _ROWS_PER_BIN = 4, 20, 10
_FEWEST_EXPECTED = 5.0  # rows of a state in each table, for the chi-squared distribution (Cochran 1954)


@dataclass(frozen=True)
class TableRows:
    """The rows of a table as a fitted classifier reads them."""

    n_rows: int  # of the whole table
    batch: Batch  # the rows, or a random sample of them
    log_evidence: Array | None  # (n,): log p(x) in nats; None if the model has none
    log_posterior: Array  # (n, C): log p(y | x) in nats; NaN in a row that no class can produce
    components: Array | None  # (n,): the index of the class of each row, −1 without label; None if no labels are known

    def __len__(self) -> int:
        return len(self.batch)

    @classmethod
    def of(cls, estimator: Classifier, X: Any, y: Any = None) -> TableRows:
        """Read a table; y is the labels, the name of their column, or None.

        Raises
        ------
        ValueError
            The table has no rows, or a label is not one of the classes.
        """
        table = read_table(X, KnownColumns.of_model(estimator.schema_, estimator.target_))
        n_rows = table.n_rows
        components = None
        if y is not None:
            labels = labels_to_learn(read_labels(y, table), "learn", True, True)
            components = labels.components(estimator.target_, slice(0, n_rows))
        if n_rows > MOST_ROWS:
            chosen = np.sort(np.random.default_rng(0).choice(n_rows, MOST_ROWS, replace=False))
            X, components = take_rows(X, chosen), None if components is None else components[chosen]
        with warnings.catch_warnings():  # the page counts unseen categories and rows that no class can produce
            warnings.simplefilter("ignore", UserWarning)
            batch = read_batch(estimator, X)
            log_evidence = np.asarray(estimator.score_samples(X)) if estimator._posterior.has_density else None
            log_posterior = np.asarray(estimator.predict_log_proba(X))
        return cls(n_rows, batch, log_evidence, log_posterior, components)


@dataclass(frozen=True)
class ColumnDrift:
    """How the cells of one column differ between two tables."""

    position: int  # of the column among the features
    column: Column
    names: tuple[str, ...]  # the states: categories, or bins of numbers, and missing or unseen cells
    counts: Array  # (2, K): rows of each state, before and after
    divergence: float  # Jensen–Shannon divergence in nats, from 0 to log 2, less what it is expected to be by chance
    # p_value, adjusted: of the chi-squared test of homogeneity, for numbers together with the rank-sum test; adjusted
    # for all columns by Holm's method
    p_value: float
    adjusted: float
    # mean of log p(x_j) under the model of the cells after, less that before, in nats; NaN if a table has no cells
    log_density_change: float
    medians: tuple[float, float] | None  # of a column of numbers, before and after
    missing: tuple[float, float]  # the share of missing cells, before and after

    @property
    def changed(self) -> bool:
        """Whether chance alone does not explain the difference."""
        return self.adjusted < SIGNIFICANT

    @property
    def size(self) -> str:
        """The verdict in a word."""
        if not self.changed:
            return "no evidence"
        return "large" if self.divergence >= LARGE else "moderate" if self.divergence >= MODERATE else "small"

    @property
    def shares(self) -> Array:
        """Share of each state, (2, K)."""
        shares: Array = self.counts / self.counts.sum(axis=1, keepdims=True)
        return shares


def column_drifts(estimator: Classifier, before: TableRows, after: TableRows) -> list[ColumnDrift]:
    """Compare each modelled column of two tables, except columns of counts and of text; the largest drift first."""
    columns = before.batch.schema.columns
    compared = [j for j in estimator.schema_.modelled if columns[j].kind in ("continuous", "categorical")]
    found = [_compare(estimator, int(j), before, after) for j in compared]
    adjusted = holm([one.p_value for one in found])
    found = [replace(one, adjusted=float(p)) for one, p in zip(found, adjusted, strict=True)]
    return sorted(found, key=lambda one: (not one.changed, -one.divergence, one.p_value))


def _compare(estimator: Classifier, j: int, before: TableRows, after: TableRows) -> ColumnDrift:
    column = before.batch.schema.columns[j]
    cells = cells_of(before.batch, j), cells_of(after.batch, j)
    known = [one[~np.isnan(one)] for one in cells]
    unseen = [float(rows.batch.unseen.get(column.name, 0)) for rows in (before, after)]
    empty = [len(one) - len(some) - u for one, some, u in zip(cells, known, unseen, strict=True)]
    if column.kind == "categorical":
        of_cells = np.stack([np.bincount(one.astype(int), minlength=len(column.categories) + 1)[1:] for one in known])
        names = [cell_text(category) for category in column.categories]
        medians = None
    else:
        of_cells = _counts_in_bins(*known)
        names = [f"bin {k + 1}" for k in range(of_cells.shape[1])]
        medians = (float(np.median(known[0])), float(np.median(known[1]))) if min(map(len, known)) else None
    counts = np.column_stack([of_cells, unseen, empty]).astype(np.float64)
    present = np.flatnonzero(counts.sum(axis=0) > 0)
    names = [[*names, UNSEEN, MISSING][k] for k in present]
    counts = counts[:, present]
    tested = merge_rare_states(counts)
    change = np.nan
    if min(map(len, known)):
        with np.errstate(invalid="ignore"):
            feature = Feature.of(estimator, j)
            change = float(feature.log_density(known[1]).mean() - feature.log_density(known[0]).mean())
    p = homogeneity_p_value(tested)
    if column.kind == "continuous":  # bins ignore the order of numbers, ranks see a shift: the smaller p, doubled
        p = min(1.0, 2.0 * min(p, rank_sum_p_value(*known)))
    missing = (empty[0] / len(before), empty[1] / len(after))
    divergence = corrected_divergence(tested)
    return ColumnDrift(j, column, tuple(names), counts, divergence, p, p, change, medians, missing)


def _counts_in_bins(before: Array, after: Array) -> Array:
    """Count numbers in bins that hold about as many rows each of both tables together, (2, K).

    Which table holds a row does not affect the bins, so that the test is valid given the bins.
    """
    both = np.concatenate([before, after])
    if not len(both):
        return np.zeros((2, 0))
    bins = int(np.clip(min(len(before), len(after)) // _ROWS_PER_BIN, _FEWEST_BINS, _MOST_BINS))
    edges = np.unique(np.quantile(both, np.linspace(0.0, 1.0, bins + 1)[1:-1], method="inverted_cdf"))
    return np.stack([np.bincount(np.searchsorted(edges, one), minlength=len(edges) + 1) for one in (before, after)])


def merge_rare_states(counts: Array) -> Array:
    """Merge the rarest states until at least 5 rows of each are expected in both tables, (2, K).

    The rows that are expected are those of both tables together, in proportion to the sizes of the tables, so that the
    choice does not depend on the difference that is tested.
    """
    order = np.argsort(-counts.sum(axis=0), kind="stable")
    counts = counts[:, order]
    share = counts.sum(axis=1).min() / counts.sum()
    expected = counts.sum(axis=0) * share
    kept = int(np.count_nonzero(expected >= _FEWEST_EXPECTED))
    if kept == counts.shape[1]:
        return counts
    if expected[kept:].sum() < _FEWEST_EXPECTED and kept:
        kept -= 1
    return np.column_stack([counts[:, :kept], counts[:, kept:].sum(axis=1)])


def corrected_divergence(counts: Array) -> float:
    r"""Return the Jensen–Shannon divergence of two histograms in nats, less its expectation by chance; at least 0.

    .. math:: D = \tfrac12 \sum_k p_k \log \frac{p_k}{m_k} + \tfrac12 \sum_k q_k \log \frac{q_k}{m_k},
        \quad m_k = \tfrac12 (p_k + q_k)

    It is the mutual information between the state of a cell and the table, of which one is chosen with probability
    one half (Lin 1991): 0 for equal shares, log 2 = 0.69 where no state occurs in both. If the shares differ by chance
    only, it is about :math:`\sum_k (p_k - q_k)^2 / 8 m_k`, whose expectation is
    :math:`\frac{K - 1}{8} (\frac1n + \frac1{n'})`.

    Parameters
    ----------
    counts : ndarray (2, K)

    Examples
    --------
    >>> corrected_divergence(np.array([[50.0, 50.0], [50.0, 50.0]]))
    0.0
    >>> round(corrected_divergence(np.array([[1e6, 0.0], [0.0, 1e6]])), 4)
    0.6931
    """
    rows = counts.sum(axis=1)
    shares = counts / rows[:, np.newaxis]
    middle = np.broadcast_to(shares.mean(axis=0), shares.shape)
    positive = shares > 0
    divergence = 0.5 * float((shares[positive] * np.log(shares[positive] / middle[positive])).sum())
    chance = (np.count_nonzero(counts.sum(axis=0)) - 1) / 8.0 * float((1.0 / rows).sum())
    return max(float(divergence - chance), 0.0)


def homogeneity_p_value(counts: Array) -> float:
    """Return the p-value of Pearson's chi-squared test that two rows of counts have the same shares; 1 for one state.

    Examples
    --------
    >>> homogeneity_p_value(np.array([[10.0, 10.0], [10.0, 10.0]]))
    1.0
    """
    counts = counts[:, counts.sum(axis=0) > 0]
    if counts.shape[1] < 2:
        return 1.0
    statistic, freedom = chi_squared(counts)
    return float(chdtrc(freedom, statistic))


def rank_sum_p_value(before: Array, after: Array) -> float:
    """Return the two-sided p-value of the rank-sum test of Wilcoxon, Mann and Whitney, with ties; 1 without numbers.

    The normal approximation, without correction for continuity.

    Examples
    --------
    >>> rank_sum_p_value(np.array([1.0, 2.0]), np.array([1.0, 2.0]))
    1.0
    """
    if not len(before) or not len(after):
        return 1.0
    from scipy.stats import mannwhitneyu

    p = float(mannwhitneyu(before, after, use_continuity=False, method="asymptotic").pvalue)
    return 1.0 if math.isnan(p) else p  # all numbers are equal


def holm(p_values: Sequence[float]) -> Array:
    """Return p-values adjusted for their number by Holm's method (1979), valid however the tests depend.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).tolist()
    [0.03, 0.06, 0.06]
    """
    p = np.asarray(p_values, np.float64)
    order = np.argsort(p, kind="stable")
    adjusted = np.empty(len(p))
    adjusted[order] = np.minimum(np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1)), 1.0)
    return adjusted


def mean_change(before: Array, after: Array) -> tuple[float, float]:
    """Return the difference of two means, and its standard error; 0 for a single row."""
    unit = max(float(np.abs(one).max(initial=0.0)) for one in (before, after)) or 1.0  # keeps squares finite
    error = sum(float((one / unit).var(ddof=1)) / len(one) for one in (before, after) if len(one) > 1)
    return float(after.mean() - before.mean()), unit * math.sqrt(error)
