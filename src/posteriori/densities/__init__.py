"""How a class makes its columns: p(x_block | z), a block of like columns at a time."""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np

from posteriori.densities.binned import Binned, BinnedParameters
from posteriori.densities.categorical import Categorical, CategoricalParameters
from posteriori.densities.gaussian import Gaussian, GaussianParameters
from posteriori.densities.multivariate import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.densities.poisson import Poisson, PoissonParameters
from posteriori.statistics import Statistics
from posteriori.tables.batch import Assignment
from posteriori.tables.schema import Kind
from posteriori.typing import Array

__all__ = [
    "Binned",
    "BinnedParameters",
    "Categorical",
    "CategoricalParameters",
    "Density",
    "ExpectingDensity",
    "Gaussian",
    "GaussianParameters",
    "MultivariateGaussian",
    "MultivariateGaussianParameters",
    "Poisson",
    "PoissonParameters",
    "SharedDensity",
]


class Density(Protocol):
    """A family of distributions for a block of columns that are independent given the component.

    A density is a frozen dataclass: its fields are its smoothing, never anything learned. What is learned is the
    value that `estimate` returns. Laws (tests/test_densities.py): log_density is the sum of log_factors over the
    columns; the factor of a missing cell is 0, which is what integrating or summing it out gives; estimating
    from many rows that `sample` drew gives the parameters back.

    Attributes
    ----------
    name : str
        What `distributions={"column": name}` calls it.
    kind : {"continuous", "categorical"}
        The kind of columns it reads.
    needs : type
        The statistics it is estimated from.
    support : str
        The cells it can produce, in words, for messages.
    unbounded : bool
        Whether every finite number is among them, which makes checking each cell needless.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> Kind: ...  # noqa: D102
    @property
    def needs(self) -> type[Statistics]: ...  # noqa: D102
    @property
    def support(self) -> str: ...  # noqa: D102
    @property
    def unbounded(self) -> bool: ...  # noqa: D102

    def outside(self, tile: Any) -> Array:
        """Return which cells the density cannot produce: (n, d) booleans. A missing cell never is one."""

    def estimate(self, statistics: Any) -> Any:
        """Return the parameters, in closed form, from the statistics."""

    def log_density(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells integrated out."""

    def log_factors(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), 0 for a missing cell.

        Where columns depend on each other given the component it is the chain, log p(x_j | x_1 … x_{j−1}, z); such a
        density has a method `log_marginals` beside it, of each column when the others are unknown.
        """

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Array:
        """Draw a row for each component (n,): (n, d) numbers, or codes from 1."""

    def n_parameters(self, parameters: Any) -> int:
        """Return the number of free parameters."""


class ExpectingDensity(Density, Protocol):
    """A density whose statistics cannot do without the missing cells, and are expected over them."""

    def expect(self, parameters: Any, tile: Any, assignment: Assignment) -> tuple[Statistics, float]:
        """Return the expected statistics of the rows, and the log-likelihood of their present cells, in nats."""


class SharedDensity(Density, Protocol):
    """A density that all components share, of columns of which another block tells the rest.

    Its parameters have no components: log_density is of shape (n, 1) and log_factors of (n, 1, d). As it tells nothing
    of the component, `GenerativeModel.posterior` leaves it out.
    """

    @property
    def shared(self) -> bool: ...  # noqa: D102

    def sample(self, parameters: Any, codes: Array, rng: np.random.Generator) -> Array:
        """Draw numbers (n, d) given what the other block drew for these columns: codes from 1."""
