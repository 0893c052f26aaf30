"""Information about the class in each feature, and in its factor of the posterior."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

import numpy as np

from posteriori.densities import AveragedOneDependence, KDependence, ungrouped
from posteriori.learning.redundant_columns import redundant_groups
from posteriori.model import GenerativeModel, Posterior, cannot_hold, draw_rows, log_marginal, log_marginal_of_codes
from posteriori.support.checks import check_numbers, require
from posteriori.support.formatting import cell_text, listed
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema
from posteriori.tables.batch import joined

__all__ = ["mutual_information"]


MOST_ROWS = 2000  # held-out rows: the standard error of a loss of 0.5 nats is then about 0.01
_FEWEST_ROWS = 500
_FEWEST_OF_GROUP = 250
_MOST_CELLS_OF_GROUP = 1 << 28  # rows times values: about a second
_WORK = 2_000_000  # rows times columns squared
_MOST_VISITS = 100_000_000_000  # of pairs of columns: about 100 seconds
_SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`
_MOST_NUMBERS = 1 << 21  # log posteriors held at once
_MOST_LISTED = 30  # columns
_MOST_KEPT = 1 << 23  # parameters of the models of all folds, 64 MB


@dataclass(frozen=True)
class GroupImportance:
    """The increase of the mean loss without several columns at once.

    Attributes
    ----------
    columns : tuple of str
        Columns that nearly determine each other, so that each alone may lose little.
    increase, standard_error : float
        As in `Importance`.
    n_rows : int
        The number of rows of the mean: fewer than for columns if predictions without the group take long.
    """

    columns: tuple[str, ...]
    increase: float
    standard_error: float
    n_rows: int

    @property
    def is_certain(self) -> bool:
        """Whether the increase is greater than two standard errors."""
        return self.increase > max(2.0 * self.standard_error, 0.0)

    def __str__(self) -> str:
        return listed([cell_text(name) for name in self.columns], 3)


@dataclass(frozen=True)
class Importance:
    """The increase of the mean loss of rows without each column: log-loss of classes, CRPS of numbers.

    Its ``repr`` is a table, the most important column first.

    Attributes
    ----------
    names : tuple of str (d)
        The columns.
    increase : ndarray (d,)
        Of classes E[log p(y | x) − log p(y | x₋ⱼ)], in nats per row: the information that the posterior loses. Of
        numbers E[crps(y | x₋ⱼ) − crps(y | x)], in units of the target. 0 for ignored columns. Negative if held-out rows
        are predicted better without the column.
    standard_error : ndarray (d,)
        That of the mean over the rows. Of held-out rows it includes what other training rows would change.
    n_rows : int
        The number of rows of the mean.
    held_out : bool
        Whether these are rows that the model was not trained on. Otherwise they are training rows, or were drawn from
        the model.
    groups : tuple of GroupImportance
        What is added without all columns of a group: those that nearly determine each other in these rows, as the rank
        correlation of numbers is 0.95 or more, or the mutual information of other columns 0.8 of their entropy. Of
        classes only.
    crps : float, optional
        Of numbers: the mean score with all columns.

    Notes
    -----
    A hidden column is integrated out; no cell is shuffled, so that no row is judged that cannot occur, as in
    permutation importance. Mutual information I(x_j; y) considers each column alone; here, columns that carry the same
    information replace each other, so that the increase of one of them may be small, and their group tells what they
    say together. A pool keeps the weights that it has for the whole row, so that a column of noise adds nothing.

    The variance of a mean over n rows in K folds is that of independent rows times 1 + n/m, where m is the number of
    training rows of a fold: the models of the folds are no fixed ones, and share training rows.

    References
    ----------
    Covert, Lundberg & Lee, Understanding global feature contributions with additive importance measures, NeurIPS 33
    (2020), on removing features by marginalising them. Nadeau & Bengio, Inference for the generalization error, Machine
    Learning 52 (2003), on the variance.
    """

    names: tuple[str, ...]
    increase: Array
    standard_error: Array
    n_rows: int
    held_out: bool
    groups: tuple[GroupImportance, ...] = ()
    crps: float | None = None

    @property
    def order(self) -> list[int]:
        """The positions of the columns, the most important first."""
        return [int(j) for j in np.argsort(-self.increase, kind="stable")]

    @property
    def ranked(self) -> tuple[GroupImportance, ...]:
        """Every column, and every group of columns, the most important first; a column is a group of one."""
        columns = zip(self.names, self.increase.tolist(), self.standard_error.tolist(), strict=True)
        each = [GroupImportance((name,), increase, error, self.n_rows) for name, increase, error in columns]
        return tuple(sorted([*each, *self.groups], key=lambda one: -one.increase))

    def __repr__(self) -> str:
        ranked, of_numbers = self.ranked, self.crps is not None
        width = "{:.4g} ± {:.2g}" if of_numbers else "{:.4f} ± {:.4f}"
        cells = [(str(one), width.format(one.increase, one.standard_error)) for one in ranked[:_MOST_LISTED]]
        wide, long = (max((len(cell[k]) for cell in cells), default=0) for k in (0, 1))
        lines = [f"{name:{wide}}  {shown:>{long}}" for name, shown in cells]
        more = len(ranked) - len(lines)
        end = [f"… and {more:,} more columns"] if more else []
        others = "training rows" if of_numbers else "rows drawn from the model"
        rows = f"{self.n_rows:,} {'held-out rows' if self.held_out else others}"
        what = f"what is added to a CRPS of {self.crps:.4g}" if of_numbers else "nats per row that are lost"
        return "\n".join([f"Importance: {what} without each column ({rows})", *lines, *end])

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless there is one number for each of `n_columns` columns."""
        require(len(self.names) == n_columns, "the importance is of other columns")
        check_numbers("the importance of columns", self.increase, (n_columns,), -np.inf, np.inf)
        check_numbers("the standard errors of importance", self.standard_error, (n_columns,), 0.0, np.inf)
        for group in self.groups:
            known = len(group.columns) > 1 and set(group.columns) <= set(self.names)
            require(known, "the importance is of groups of other columns")
            check_numbers("the importance of a group", np.array([group.increase]), (1,), -np.inf, np.inf)
            check_numbers("the standard error of a group", np.array([group.standard_error]), (1,), 0.0, np.inf)


@dataclass(frozen=True)
class HeldOutRows:
    """Held-out rows with their classes, and the posterior of each fold.

    Attributes
    ----------
    batch : Batch
    y_true : ndarray (n,)
        The class index of each row.
    weight : ndarray (n,)
    folds : tuple of (ndarray, Posterior)
        For each fold, the positions of its rows, and the posterior that was learned from the rows outside it.
    n_all : int, optional
        The number of rows of which these are a sample, and on which the posteriors were learned; default: these rows.
    """

    batch: Batch
    y_true: Array
    weight: Array
    folds: tuple[tuple[Array, Posterior], ...]
    n_all: int | None = None

    @property
    def is_large(self) -> bool:
        """Whether the models are too large to be stored until the importance is requested."""
        return sum(model.n_parameters for _, posterior in self.folds for model in posterior.models) > _MOST_KEPT

    def importance(self) -> Importance:
        """Return the weighted mean over the rows of log p(y | x) − log p(y | x₋ⱼ), and its standard error."""
        n = _affordable_rows(self.folds[0][1], len(self.y_true)) if self.folds else 0
        kept = _spaced(np.arange(len(self.y_true)), n)
        whole = np.empty(len(self.y_true))
        losses = np.empty((len(self.batch.schema.columns), len(self.y_true)))
        for posterior, chunk in self._chunks(kept):
            with_all, without = posterior.log_posteriors_without_each(self.batch.rows(chunk))
            true = np.arange(len(chunk)), self.y_true[chunk]
            whole[chunk] = _clip(with_all[true])
            losses[:, chunk] = whole[chunk] - _clip(without[:, *true])
        mean, error = self._mean_and_error(losses, kept)
        groups = []
        for columns in redundant_groups(self.batch.rows(kept), self.y_true[kept]):
            loss, rows = np.empty((1, len(self.y_true))), _rows_of_group(self.folds[0][1], kept, columns)
            for posterior, chunk in self._chunks(rows):
                without = posterior.log_posterior_without(self.batch.rows(chunk), columns)
                loss[0, chunk] = whole[chunk] - _clip(without[np.arange(len(chunk)), self.y_true[chunk]])
            groups.append(_group(self.batch.schema, columns, *self._mean_and_error(loss, rows), len(rows)))
        return Importance(self.batch.schema.names, mean, error, n, True, tuple(groups))

    def _chunks(self, chosen: Array) -> Iterator[tuple[Posterior, Array]]:
        """Yield the chosen rows in chunks, each with the posterior that has not learned from them."""
        marked = np.zeros(len(self.y_true), np.bool_)
        marked[chosen] = True
        for rows, posterior in self.folds:
            for chunk in _chunks(posterior, rows[marked[rows]]):
                yield posterior, chunk

    def _mean_and_error(self, losses: Array, rows: Array) -> tuple[Array, Array]:
        """Return the weighted mean of losses (k, n) over some rows, (k,), and its standard error: see `Importance`."""
        losses, share = losses[:, rows], self.weight[rows] / self.weight[rows].sum()
        mean = losses @ share
        n_folds, n_all = len(self.folds), max(self.n_all or 0, len(self.y_true))
        trained = n_all * (n_folds - 1) / n_folds if n_folds > 1 else n_all
        variance = (losses - mean[:, np.newaxis]) ** 2 @ share**2 * (1.0 + len(rows) / trained)
        return mean, np.sqrt(variance)


def most_rows(n_columns: int) -> int:
    """Return the number of held-out rows for the importance: at most 2,000, and fewer for wide tables.

    The cost per row grows with the square of the number of columns.
    """
    return int(np.clip(_WORK // max(n_columns, 1) ** 2, _FEWEST_ROWS, MOST_ROWS))


def _affordable_rows(posterior: Posterior, n_rows: int) -> int:
    """Return how many of the rows can be scored without each column: fewer if a row takes d³ steps (AODE)."""
    visits = sum(
        model.n_components * len(model.schema.columns) * len(block.columns) ** 2
        for model in posterior.models
        for block in model.blocks
        if isinstance(ungrouped(block.density), AveragedOneDependence)
    )
    return min(n_rows, max(1, _MOST_VISITS // visits)) if visits else n_rows


def importance_under_model(posterior: Posterior) -> Importance:
    """Return E_x KL(p(y | x) ‖ p(y | x₋ⱼ)) over at most 2,000 rows drawn from the model, with a fixed seed.

    Parameters
    ----------
    posterior : Posterior

    Raises
    ------
    ValueError
        No rows can be drawn from one of the members.
    """
    drawing = np.flatnonzero(posterior.shares)
    if not all(posterior.models[m].is_density for m in drawing):
        raise ValueError(
            "there are no held-out rows to measure the feature importance on, and none can be drawn, because a model "
            "has scores of words that are not a density, or no density of some column; fit all rows at once, or add "
            "rows by partial_fit"
        )
    rng = np.random.default_rng(0)
    drawn = _affordable_rows(posterior, most_rows(len(posterior.schema.columns)))
    # Rounding the cumulative sums makes the counts add up to those drawn.
    n_rows = np.diff(np.round(np.cumsum([0.0, *posterior.shares]) * drawn)).astype(int)
    each = [_draw(model, n, rng) for model, n in zip(posterior.models, n_rows, strict=True) if n]
    batch = joined([one.with_schema(posterior.schema) for one in each])
    rows = rng.permutation(len(batch))  # rows of all members are among the first ones
    chunks = [posterior.log_posteriors_without_each(batch.rows(chunk)) for chunk in _chunks(posterior, rows)]
    whole = np.concatenate([of_chunk for of_chunk, _ in chunks])
    gain = np.concatenate([_divergence(*of_chunk) for of_chunk in chunks], axis=1)
    groups = []
    for columns in redundant_groups(batch.rows(rows), whole.argmax(axis=1)):
        some = _rows_of_group(posterior, np.arange(len(rows)), columns)
        without = posterior.log_posterior_without(batch.rows(rows[some]), columns)
        of_group = _mean_and_error(_divergence(whole[some], without[np.newaxis]))
        groups.append(_group(posterior.schema, columns, *of_group, len(some)))
    return Importance(posterior.schema.names, *_mean_and_error(gain), len(rows), False, tuple(groups))


def _mean_and_error(gain: Array) -> tuple[Array, Array]:
    """Return the means of gains (k, n) over independent rows, (k,), and their standard errors."""
    return gain.mean(axis=1), gain.std(axis=1) / np.sqrt(gain.shape[1])


def _group(schema: Schema, columns: Sequence[int], mean: Array, error: Array, n_rows: int) -> GroupImportance:
    return GroupImportance(tuple([schema.names[j] for j in columns]), float(mean[0]), float(error[0]), n_rows)


def _spaced(rows: Array, n: int) -> Array:
    chosen: Array = rows[np.linspace(0, len(rows), n, endpoint=False).astype(int)]
    return chosen


def _rows_of_group(posterior: Posterior, rows: Array, columns: Sequence[int]) -> Array:
    """Return some of the rows, all if a row without the columns takes few steps: k-DB may sum over all their values."""
    cells = [
        model.n_components * math.prod(model.schema.cardinalities([j for j in columns if j in model.schema.coded]))
        for model in posterior.models
        if any(isinstance(ungrouped(block.density), KDependence) for block in model.blocks)
    ]
    affordable = _MOST_CELLS_OF_GROUP // max([1, *cells])
    return _spaced(rows, min(len(rows), max(_FEWEST_OF_GROUP, affordable)))


def _chunks(posterior: Posterior, rows: Array) -> Iterator[Array]:
    """Yield the rows in chunks whose posteriors without each column fit into memory."""
    models = posterior.models
    numbers = len(models) * len(models[0].schema.columns) * max(model.n_components for model in models)
    size = max(1, _MOST_NUMBERS // numbers)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _draw(model: GenerativeModel, n: int, rng: np.random.Generator) -> Batch:
    component = rng.choice(model.n_components, size=n, p=np.exp(model.log_prior))
    columns, schema = draw_rows(model, component, rng), model.schema
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    numbers, codes = np.empty((n, len(continuous))), np.empty((n, len(categorical)), schema.code_dtype)
    for cells, positions in ((numbers, continuous), (codes, categorical)):
        for position, j in enumerate(positions):
            cells[:, position] = columns[j]
    return Batch.of(schema, 0, numbers, codes, {}, bags=tuple(columns[j] for j in schema.of_kind("counts")))


def _clip(log_probability: Array) -> Array:
    clipped: Array = np.maximum(log_probability, np.log(_SMALLEST))
    return clipped


def _divergence(whole: Array, without: Array) -> Array:
    """Return KL(p(y | x) ‖ p(y | x₋ⱼ)) in nats, (d, n)."""
    posterior = np.exp(whole)
    divergence: Array = np.einsum("nc,dnc->dn", posterior, _clip(whole) - _clip(without))
    return divergence


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
