"""What a density may offer beyond the protocol `Density`: one optional method per feature of the library."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from posteriori.statistics.moments import Moments
from posteriori.support.typing import Array
from posteriori.tables.schema import Column


class BaseDensity:
    """A density of numbers or of codes that can produce every finite number or every category and learns no structure.

    A subclass is a frozen dataclass, and has the other methods of `posteriori.densities.Density`.
    """

    has_full_support = True

    def out_of_support(self, tile: Any) -> Array:
        """Return which cells the density cannot produce, (n, d): infinities; an unseen category is a missing cell."""
        return np.asarray(np.isinf(tile.values))

    def with_fixed_structure(self, parameters: Any) -> Self:
        """Return the density that keeps the structure of these parameters: itself, if it learns none."""
        del parameters
        return self


@dataclass(frozen=True)
class LinearTerms:
    """log p(x | z) = bias_z + Σ_t weight_tz · x_t + a part that is the same for all components.

    Attributes
    ----------
    bias : ndarray (Z,)
        In nats.
    terms : list of (position, category, weight)
        The position of a column in the block; a category, or None for a number; and the weights (Z,), in nats per data
        unit for a number, in nats for a category. x_t is the number, or 1 if the cell has the category and 0 otherwise.
    """

    bias: Array
    terms: list[tuple[int, Any, Array]]


@runtime_checkable
class LinearDensity(Protocol):
    """A density whose log-odds are linear in the cells of a complete row. Feature: `explain.linear_form`.

    Law (tests/densities/test_capabilities.py): the differences of log_density between components are those of the
    linear terms.
    """

    def linear_terms(self, parameters: Any, columns: Sequence[Column]) -> LinearTerms:
        """Return the bias and the terms; raise ValueError if the log-odds of these parameters are not linear."""


@runtime_checkable
class MarginDensity(Protocol):
    """A density of dependent columns that knows the density of one of them without a computation over all.

    Feature: figures of single columns of wide tables.

    Law (tests/densities/test_capabilities.py): it is log_density of rows in which all other cells are missing.
    """

    def log_density_of_column(self, parameters: Any, position: int, values: Array) -> Array:
        """Return log p(x_j | z) in nats, (n, Z), of the numbers of one column (n,), 0 where missing."""


@dataclass(frozen=True)
class ConditionalNormal:
    """p(x_j | z, k, u) = N(intercept + coefficients·u, variance), with k a code of a parent and u numbers.

    Attributes
    ----------
    of_codes, of_numbers : tuple of int
        The positions of the parents of each kind, at most one of codes.
    intercept : ndarray (Z,) or (Z, K)
    coefficients : ndarray (Z, m) or (Z, K, m)
    variance : ndarray (Z,) or (Z, K)
    """

    of_codes: tuple[int, ...]
    of_numbers: tuple[int, ...]
    intercept: Array
    coefficients: Array
    variance: Array


@runtime_checkable
class NormalDensity(Protocol):
    """A density of numbers, or of both kinds, that is a network of linear-Gaussian variables. Feature: `to_network`.

    Law (tests/networks/test_network_classifiers.py): the network gives the posterior of the classifier.
    """

    def conditional_normals(self, parameters: Any) -> dict[int, ConditionalNormal]:
        """Return the normal density of each column of numbers, by its position.

        Raise ValueError if the components have different parents.
        """


@runtime_checkable
class TabularDensity(Protocol):
    """A density of categories that is a Bayesian network over its columns. Feature: `to_network`.

    Law (tests/densities/test_capabilities.py): the log density of a complete row is the sum of its table entries.
    """

    def conditional_tables(self, parameters: Any) -> list[tuple[tuple[int, ...], Array]]:
        """Return, for each column, the positions of its parents and log p(x_j | z, parents) in nats.

        The tables have the shape (Z, K of each parent, …, K_j), without slots for missing cells. Raise ValueError if
        the components have different parents.
        """


@runtime_checkable
class DescribedDensity(Protocol):
    """A density that describes a column of numbers by a few parameters. Feature: the command ``show``.

    Law (tests/densities/test_capabilities.py): ``mean`` and ``variance``, if described, are those of sampled numbers.
    """

    def describe(self, parameters: Any, position: int) -> dict[str, Array]:
        """Return the parameters of the column at this position by name, each (Z,), in data units.

        The names ``mean`` and ``variance`` are reserved for the mean and the variance of the cells.
        """


@runtime_checkable
class CorrelatedDensity(Protocol):
    """A density that models covariances between its columns. Feature: the correlations of the command ``show``."""

    def covariances(self, parameters: Any) -> Array:
        """Return the covariances, (Z, d, d), or (1, d, d) if all components share one; in squared data units."""


@runtime_checkable
class VarianceDensity(Protocol):
    """A density whose parameters depend on variances, which lose digits if rows are subtracted. Feature: `forget`."""

    def moments_of_numbers(self, statistics: Any) -> tuple[tuple[int, ...], Moments]:
        """Return the positions of the columns of numbers and the moments of these columns."""


@runtime_checkable
class UnrestrictedDensity(Protocol):
    """A density of independent numbers with a known unrestricted family. Feature: the parameter count of ``show``.

    Law (tests/densities/test_capabilities.py): for one column it is the number of parameters per component.
    """

    def n_unrestricted(self, n_columns: int) -> int:
        """Return the number of parameters per component of the family without independence of the columns."""
