"""How a class makes its columns: p(x_block | z), a block of like columns at a time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, runtime_checkable

import numpy as np

from posteriori.densities.averaged import AveragedOneDependence, AveragedParameters
from posteriori.densities.binned import Binned, BinnedParameters
from posteriori.densities.categorical import Categorical, CategoricalParameters
from posteriori.densities.conditional import BackOff
from posteriori.densities.families import FamilyTables
from posteriori.densities.full_joint import FullJoint, FullJointParameters
from posteriori.densities.gaussian import Gaussian, GaussianParameters
from posteriori.densities.k_dependence import KDependence
from posteriori.densities.missingness import Missingness, MissingnessParameters
from posteriori.densities.multivariate import MultivariateGaussian, MultivariateGaussianParameters
from posteriori.densities.poisson import Poisson, PoissonParameters
from posteriori.densities.registry import REGISTRY, Registration, named_densities, stored_classes
from posteriori.densities.tree import Forest, Tree, TreeParameters
from posteriori.statistics import Statistics, StatisticsFactory
from posteriori.tables.batch import Assignment
from posteriori.tables.schema import CellKind
from posteriori.typing import Array

__all__ = [
    "REGISTRY",
    "ApproximatingDensity",
    "AveragedOneDependence",
    "AveragedParameters",
    "BackOff",
    "Binned",
    "BinnedParameters",
    "Categorical",
    "CategoricalParameters",
    "ChainedDensity",
    "ClassIndependentDensity",
    "Density",
    "ExpectingDensity",
    "FamilyTables",
    "Forest",
    "FullJoint",
    "FullJointParameters",
    "Gaussian",
    "GaussianParameters",
    "KDependence",
    "LeaveOneOutDensity",
    "MarginalDensity",
    "Missingness",
    "MissingnessDensity",
    "MissingnessParameters",
    "MultivariateGaussian",
    "MultivariateGaussianParameters",
    "Poisson",
    "PoissonParameters",
    "Registration",
    "SummedDensity",
    "Tree",
    "TreeParameters",
    "TwoPassDensity",
    "named_densities",
    "stored_classes",
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
    kind : {"continuous", "categorical", "mixed"}
        What it reads of its columns: numbers, codes (of categories and of bins), or both.
    sufficient_statistics : StatisticsFactory
        What makes the statistics it is estimated from.
    support : str
        The cells it can produce, in words, for messages.
    has_full_support : bool
        Whether every finite number is among them, which makes checking each cell needless.
    """

    @property
    def name(self) -> str: ...  # noqa: D102
    @property
    def kind(self) -> CellKind: ...  # noqa: D102
    @property
    def sufficient_statistics(self) -> StatisticsFactory: ...  # noqa: D102
    @property
    def support(self) -> str: ...  # noqa: D102
    @property
    def has_full_support(self) -> bool: ...  # noqa: D102

    def out_of_support(self, tile: Any) -> Array:
        """Return which cells the density cannot produce: (n, d) booleans. A missing cell never is one."""

    def estimate(self, statistics: Any) -> Any:
        """Return the parameters, in closed form, from the statistics."""

    def log_density(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells integrated out."""

    def log_factors(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), 0 for a missing cell.

        Where columns depend on each other given the component it is log p(x_j | its parents, z); see `ChainedDensity`.
        Where a parent is missing it is log p(x_j | the present columns before it, z), so that the sum stays exact.
        """

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Array:
        """Draw a row for each component (n,): (n, d) numbers, or codes from 1."""

    def n_parameters(self, parameters: Any) -> int:
        """Return the number of free parameters."""


@runtime_checkable
class ChainedDensity(Density, Protocol):
    """A density of columns that depend on each other: each factor is that of a column given others."""

    def given(self, parameters: Any) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the places of those on which its factor is conditional."""


@runtime_checkable
class MarginalDensity(Density, Protocol):
    """A density of dependent columns that integrates out each of them in turn faster than one after another.

    Law (tests/test_importance.py): `without_each` is `log_density` of the rows with that column missing.
    """

    def without_each(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x₋ⱼ | z) in nats, (d, n, Z): with each column unknown in turn."""


@runtime_checkable
class ApproximatingDensity(Density, Protocol):
    """A density that sums missing cells out exactly in most rows, and in some only approximately."""

    def approximated(self, parameters: Any, tile: Any) -> Array:
        """Return which columns are missing in some row and not summed out exactly there, (d,) booleans."""


@runtime_checkable
class LeaveOneOutDensity(Density, Protocol):
    """A density that tells of each row what it would have said of it, had it not learned from it.

    Laws (tests/test_leave_one_out.py): `left_out` is `log_factors` by the parameters of the other rows.
    """

    def left_out(self, parameters: Any, statistics: Any, tile: Any, assignment: Assignment) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), of each row by the parameters without it.

        Parameters
        ----------
        parameters : Parameters
            Of all rows: what structure they hold stays.
        statistics : Statistics
            Of all rows, those of the tile among them.
        tile : Tile
            Some of the rows. A category that no other row shows is a missing cell.
        assignment : Assignment
            Their components, none hidden, and their weights.

        Returns
        -------
        ndarray (n, Z, d)
            NaN for a row of which there is no closed form: its parameters are to be estimated from
            ``statistics.without(row)``.
        """

    def with_fixed_structure(self, parameters: Any) -> Self:
        """Return the density that estimates with the structure that these parameters hold."""


class ExpectingDensity(Density, Protocol):
    """A density whose statistics cannot do without the missing cells, and are expected over them."""

    def expect(self, parameters: Any, tile: Any, assignment: Assignment) -> tuple[Statistics, float]:
        """Return the expected statistics of the rows, and the log-likelihood of their present cells, in nats."""

    def expect_shares(self, parameters: Any, tile: Any, shares: Array) -> Statistics:
        """Return the expected statistics of rows of which every component has a share, (n, Z)."""

    def to_unconstrained(self, parameters: Any, reference: Any) -> Array:
        """Return the parameters as a vector of any real numbers, without units: counted in those of the reference."""

    def from_unconstrained(self, to_unconstrained: Array, reference: Any, statistics: Any) -> Any:
        """Return the parameters that have these coordinates, mended as `estimate` mends those of the statistics."""


@runtime_checkable
class TwoPassDensity(Density, Protocol):
    """A density that one pass may not settle: what it is takes a second look at the rows, where a first one says.

    Laws (tests/test_shrinkage.py): settling what is settled changes nothing; cross-validation equals refitting.

    Attributes
    ----------
    second_pass : str
        What takes it, for messages, as a user would write it; empty once the density is settled.
    """

    @property
    def second_pass(self) -> str: ...  # noqa: D102

    def carry_over_structure(self, earlier: Self) -> Self:
        """Return the density as it goes on with more rows, after an earlier call settled it."""

    def refine(self, statistics: Any, look: Callable[[Any], Any]) -> tuple[Self, Any]:
        """Return the density that is estimated, and the statistics that it is estimated from.

        Parameters
        ----------
        statistics : Statistics
            `sufficient_statistics` of all rows.
        look : callable
            Takes anything that has a method ``of(tile, assignment)``, and returns the sum of what that makes of every
            batch of the rows: one more pass.
        """


@runtime_checkable
class SummedDensity(Density, Protocol):
    """A density whose statistics, where they are exact, tell the log-likelihood of the rows without looking at them."""

    def log_likelihood(self, parameters: Any, statistics: Any) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of exact statistics, each under its own component.

        Law (tests/test_densities.py): it is the sum of log_density over the rows.
        """


class ClassIndependentDensity(Density, Protocol):
    """A density that all components share, of columns of which another block tells the rest.

    Its parameters have no components: log_density is of shape (n, 1) and log_factors of (n, 1, d). As it tells nothing
    of the component, `GenerativeModel.posterior` leaves it out.
    """

    @property
    def shared(self) -> bool: ...  # noqa: D102

    def sample(self, parameters: Any, codes: Array, rng: np.random.Generator) -> Array:
        """Draw numbers (n, d) given what the other block drew for these columns: codes from 1."""


class MissingnessDensity(Density, Protocol):
    """A density of which cells are missing, of columns whose cells other blocks make.

    It is the one that tells of a missing cell; `GenerativeModel.heeding` leaves it out of columns of which not even
    that is known.
    """

    @property
    def models_missingness(self) -> bool: ...  # noqa: D102

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Array:
        """Draw which cells are missing, (n, d) booleans."""
