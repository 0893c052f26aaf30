"""The exponents of the factors of a posterior, one per column, and the bias of each component."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.invariants import check_numbers
from posteriori.typing import Array


@dataclass(frozen=True)
class FactorWeights:
    """p(z | x) ∝ exp(bias_z + Σ_j weight_j·log p(x_j | parents, z)).

    Attributes
    ----------
    bias : ndarray (Z,)
        In nats.
    weight : ndarray (d,)
        The weight of the factor of each column, ≥ 0.
    parameters : tuple
        The parameters of each block from which the factors are computed, if they were learned for the posterior;
        empty if the factors are those of the model.
    penalty : float
        The strength of the penalty that was chosen for these parameters; 0 if there are none.
    """

    bias: Array
    weight: Array
    parameters: tuple[Any, ...] = ()
    penalty: float = 0.0

    def check_against(self, n_columns: int, n_components: int) -> None:
        """Raise ValueError unless there is a bias for each component and a weight for each column."""
        check_numbers("the biases", self.bias, (n_components,))
        check_numbers("the weights of factors", self.weight, (n_columns,), 0.0)
        check_numbers("the penalty", np.array([self.penalty]), (1,), 0.0)

    def weighted(self, log_factors: Array) -> Array:
        """Return the log factors (n, Z, d) times the weights of their columns; weight 0 gives 0, even for −inf."""
        with np.errstate(invalid="ignore"):
            return np.where(self.weight > 0, self.weight * log_factors, 0.0)

    def sum(self, log_factors: Array) -> Array:
        """Return the sum over columns of the weighted log factors (n, Z, d): (n, Z)."""
        counted = self.weight > 0
        if not counted.all():
            log_factors = log_factors[:, :, counted]
        return np.asarray(log_factors @ self.weight[counted])
