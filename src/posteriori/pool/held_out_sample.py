"""Held-out predictions of the members of a pool, from which its weights are fitted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.learning.folds import stratified_subsample
from posteriori.learning.pool_weights import ROWS_PER_PARAMETER, fit_pool, fit_pool_of, prune_pool
from posteriori.model import FLOOR, Pool
from posteriori.model_selection.metrics import scores_of
from posteriori.support.typing import Array
from posteriori.tables import Column

MOST_KEPT = 5000  # rows whose held-out predictions a pool keeps


@dataclass(frozen=True)
class HeldOutSample:
    """Predictions of rows by members that had not learned from them, from which the weights of a pool are fitted.

    It holds no cell of a row. At most 5,000 rows are kept, a stratified sample whose weights represent all rows.
    """

    log_posterior: Array  # (n, C, M): in nats, clipped
    y_true: Array  # (n,): the class index of each row
    weight: Array  # (n,)
    # whether the rows of the first fit are among those sampled; they are not after `load` and `merge`
    covers_fit: bool = True

    @classmethod
    def empty(cls, n_classes: int, n_members: int) -> HeldOutSample:
        """Return the sample of no row."""
        return cls(np.empty((0, n_classes, n_members)), np.empty(0, np.int64), np.empty(0), covers_fit=False)

    def weighed(self, penalty: float, typical: Array, start: Pool | None = None) -> Pool:
        """Return the pool whose weights these predictions determine, shrunk to typical ones by a penalty."""
        return fit_pool(self.log_posterior, self.y_true, self.weight, penalty, start, typical)

    def weighed_again(self, penalty: float, typical: Array, start: Pool) -> Pool:
        """Return the pool of the members that have a weight in another one."""
        kept = start.weight > 0
        return fit_pool_of(kept, self.log_posterior, self.y_true, self.weight, penalty, start, typical)

    def pruned(self, penalty: float, typical: Array, pool: Pool) -> Pool:
        """Return a pool without the members that lower the log-loss by hardly anything."""
        return prune_pool(self.log_posterior, self.y_true, self.weight, penalty, pool, typical)

    def best(self) -> Pool:
        """Return the pool of the one member with the lowest log-loss."""
        each = np.moveaxis(self.log_posterior, 2, 0)
        losses = [scores_of(self.y_true, np.exp(one), self.weight)["log_loss"] for one in each]
        chosen = np.zeros(len(losses))
        chosen[int(np.argmin(losses))] = 1.0
        return Pool(chosen, np.zeros(self.log_posterior.shape[1]))

    def reduced(self) -> HeldOutSample:
        """Return a stratified sample of at most 5,000 of the rows, with weights of the same sum."""
        chosen = stratified_subsample(self.y_true, MOST_KEPT)
        weight = self.weight[chosen]
        scale = self.weight.sum() / weight.sum() if weight.sum() > 0 else 1.0
        return replace(
            self, log_posterior=self.log_posterior[chosen], y_true=self.y_true[chosen], weight=weight * scale
        )

    def of_classes(self, past: Column, target: Column) -> HeldOutSample:
        """Return the sample with the classes of another column; new ones have the smallest posterior."""
        places = places_of(past, target)
        log_posterior = np.full((len(self.y_true), len(target.categories), self.log_posterior.shape[2]), FLOOR)
        log_posterior[:, places] = self.log_posterior
        return replace(self, log_posterior=log_posterior, y_true=places[self.y_true])

    def of_members(self, kept: Sequence[int]) -> HeldOutSample:
        """Return the sample with some of the members."""
        return replace(self, log_posterior=self.log_posterior[:, :, list(kept)])

    def of_rows(self, rows: Array) -> HeldOutSample:
        """Return the sample of some rows, by a mask."""
        return replace(self, log_posterior=self.log_posterior[rows], y_true=self.y_true[rows], weight=self.weight[rows])

    def joined(self, other: HeldOutSample) -> HeldOutSample:
        """Return the sample of the rows of both."""
        return replace(
            self,
            log_posterior=np.concatenate([self.log_posterior, other.log_posterior]),
            y_true=np.concatenate([self.y_true, other.y_true]),
            weight=np.concatenate([self.weight, other.weight]),
        ).reduced()

    @property
    def determines_weights(self) -> bool:
        """Whether there are enough rows to replace the weights of the pool."""
        _, n_classes, n_members = self.log_posterior.shape
        return self.covers_fit or len(self.y_true) >= ROWS_PER_PARAMETER * (n_classes + n_members)


def places_of(past: Column, target: Column) -> Array:
    """Return the index of each former class among the classes, (C,)."""
    return np.array([target.lookup[label] - 1 for label in past.categories], np.int64)
