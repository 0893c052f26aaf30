r"""Feature importance: the information about the class that the posterior of a model loses without a column.

.. math:: I_j = \mathbb{E}\big[\log p(y \mid x) - \log p(y \mid x_{-j})\big]

A generative model integrates a missing cell out, so that p(y | x₋ⱼ) is exact: nothing is refitted and nothing is
permuted. With held-out rows, the expectation is their weighted mean, and I_j is the increase of the held-out log-loss
when column j is unknown. Without held-out rows, it is the expectation under the model itself, over rows drawn from it:
then I_j = E_x KL(p(y | x) ‖ p(y | x₋ⱼ)) ≥ 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from posteriori.densities import AveragedOneDependence, ungrouped
from posteriori.invariants import check_numbers
from posteriori.model import GenerativeModel, Posterior, draw_rows
from posteriori.tables import Batch
from posteriori.typing import Array

MOST_ROWS = 2000  # held-out rows: the standard error of a loss of 0.5 nats is then about 0.01
_FEWEST_ROWS = 500
_WORK = 2_000_000  # rows times columns squared
_MOST_VISITS = 100_000_000_000  # of pairs of columns: about 100 seconds
_SMALLEST = float(np.finfo(np.float64).eps)  # a probability of 0 counts as this, as in `metrics.log_loss`
_MOST_NUMBERS = 1 << 21  # log posteriors held at once
_MOST_KEPT = 1 << 23  # parameters of the models of all folds, 64 MB


@dataclass(frozen=True)
class Importance:
    """The information about the class, in nats per row, that a model's posterior loses without each column.

    Attributes
    ----------
    information : ndarray (d,)
        E[log p(y | x) − log p(y | x₋ⱼ)]. Negative if held-out rows are predicted better without the column.
    standard_error : ndarray (d,)
        Standard error of that mean over the rows. Other training rows would change the mean by more.
    n_rows : int
        The number of rows of the mean.
    held_out : bool
        Whether these are rows that the model was not trained on. Otherwise they were drawn from the model.

    Notes
    -----
    Mutual information I(x_j; y) differs: it considers each column alone. Here, columns that carry the same information
    replace each other, so that the loss of one of them may be small. Permutation importance differs: it evaluates the
    model on rows that cannot occur.

    References
    ----------
    Covert, Lundberg & Lee, Understanding global feature contributions with additive importance measures, NeurIPS 33
    (2020), on removing features by marginalising them.
    """

    information: Array
    standard_error: Array
    n_rows: int
    held_out: bool

    def check_against(self, n_columns: int) -> None:
        """Raise ValueError unless there is one number for each of `n_columns` columns."""
        check_numbers("the importance of columns", self.information, (n_columns,), -np.inf, np.inf)
        check_numbers("the standard errors of importance", self.standard_error, (n_columns,), 0.0, np.inf)


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
    """

    batch: Batch
    y_true: Array
    weight: Array
    folds: tuple[tuple[Array, Posterior], ...]

    @property
    def is_large(self) -> bool:
        """Whether the models are too large to be stored until the importance is requested."""
        return sum(model.n_parameters for _, posterior in self.folds for model in posterior.models) > _MOST_KEPT

    def importance(self) -> Importance:
        """Return the weighted mean over the rows of log p(y | x) − log p(y | x₋ⱼ), and its standard error."""
        losses = np.empty((len(self.batch.schema.columns), len(self.y_true)))
        n = _affordable_rows(self.folds[0][1], len(self.y_true)) if self.folds else 0
        kept = np.zeros(len(self.y_true), np.bool_)
        kept[np.linspace(0, len(kept), n, endpoint=False).astype(int)] = True
        for rows, posterior in self.folds:
            for chunk in _chunks(posterior, rows[kept[rows]]):
                y_true = self.y_true[chunk]
                whole, without = posterior.log_posteriors_without_each(self.batch.rows(chunk))
                of_true = _clip(whole[np.arange(len(chunk)), y_true])
                losses[:, chunk] = of_true - _clip(without[:, np.arange(len(chunk)), y_true])
        losses, weight = losses[:, kept], self.weight[kept]
        share = weight / weight.sum()
        mean = losses @ share
        error = np.sqrt((losses - mean[:, np.newaxis]) ** 2 @ share**2)
        return Importance(mean, error, n, held_out=True)


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
    if not all(model.is_density for model in posterior.models):
        raise ValueError(
            "there are no held-out rows to measure the feature importance on, and none can be drawn, because a member "
            "has scores of words that are not a density, or reads no words; fit all rows at once, or add rows by "
            "partial_fit"
        )
    rng = np.random.default_rng(0)
    gains = []
    drawn = _affordable_rows(posterior, most_rows(len(posterior.schema.columns)))
    # Rounding the cumulative sums makes the counts add up to those drawn.
    n_rows = np.diff(np.round(np.cumsum([0.0, *posterior.shares]) * drawn)).astype(int)
    for model, n in zip(posterior.models, n_rows, strict=True):
        batch = _draw(model, n, rng)
        for chunk in _chunks(posterior, np.arange(n)):
            whole, without = posterior.log_posteriors_without_each(batch.rows(chunk))
            gains.append(_divergence(whole, without))
    gain = np.concatenate(gains, axis=1)
    error = gain.std(axis=1) / np.sqrt(gain.shape[1])
    return Importance(gain.mean(axis=1), error, gain.shape[1], held_out=False)


def _chunks(posterior: Posterior, rows: Array) -> Iterator[Array]:
    """Yield the rows in chunks whose posteriors without each column fit into memory."""
    models = posterior.models
    numbers = len(models) * len(models[0].schema.columns) * max(model.n_components for model in models)
    size = max(1, _MOST_NUMBERS // numbers)
    for start in range(0, len(rows), size):
        yield rows[start : start + size]


def _draw(model: GenerativeModel, n: int, rng: np.random.Generator) -> Batch:
    """Draw rows from a model."""
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
