"""The prior of a model: p(y), and p(z | y) of the components of a class."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from posteriori.typing import Array


@dataclass(frozen=True)
class Prior:
    """p(y) = (n_y + alpha) / (n + C·alpha), or fixed by the user; p(z | y) = n_z / n_y.

    Parameters
    ----------
    alpha : float
        Dirichlet pseudo-count per class: 0 is maximum likelihood.
    fixed : tuple of float, optional
        The fixed class probabilities.
    of_class : tuple of int (Z,)
        The class of each component, ascending; empty if every class has one component.
    """

    alpha: float = 0.0
    fixed: tuple[float, ...] | None = None
    of_class: tuple[int, ...] = ()

    def estimate(self, weight: Array) -> Array:
        """Return log p(z) in nats, (…, Z), from the weight of each component."""
        of_class = np.array(self.of_class or range(weight.shape[-1]))
        first = np.searchsorted(of_class, np.arange(of_class[-1] + 1))
        class_weight = np.add.reduceat(weight, first, axis=-1)
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
            if self.fixed is not None:
                probability = np.broadcast_to(self.fixed, class_weight.shape)
            else:
                smoothed = class_weight + self.alpha
                probability = smoothed / smoothed.sum(axis=-1, keepdims=True)
            if not self.of_class:
                return np.asarray(np.log(probability))
            known = class_weight[..., of_class] > 0
            share = np.where(known, weight / class_weight[..., of_class], 1.0 / np.bincount(of_class)[of_class])
            return np.asarray(np.log(probability[..., of_class] * share))
