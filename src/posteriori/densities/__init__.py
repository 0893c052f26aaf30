"""Class-conditional densities p(x_block | z), each for a block of columns of one kind."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, Self, TypeGuard, TypeVar, runtime_checkable

import numpy as np

from posteriori.densities.averaged import AveragedOneDependence, AveragedParameters
from posteriori.densities.binned import Binned, BinnedParameters
from posteriori.densities.capabilities import (
    ConditionalNormal,
    CorrelatedDensity,
    DescribedDensity,
    LinearDensity,
    LinearTerms,
    MarginDensity,
    NormalDensity,
    TabularDensity,
    UnrestrictedDensity,
    VarianceDensity,
)
from posteriori.densities.categorical import Categorical, CategoricalParameters
from posteriori.densities.compound import Compound, CompoundParameters
from posteriori.densities.conditional import BackOff
from posteriori.densities.families import FamilyTables
from posteriori.densities.full_joint import FullJoint, FullJointParameters
from posteriori.densities.gaussian import Gaussian, GaussianParameters
from posteriori.densities.grouped import Grouped, GroupedParameters, coarse_parameters, ungrouped
from posteriori.densities.k_dependence import KDependence
from posteriori.densities.missingness import Missingness, MissingnessParameters
from posteriori.densities.multivariate import MultivariateGaussian
from posteriori.densities.multivariate_parameters import MultivariateGaussianParameters
from posteriori.densities.poisson import Poisson, PoissonParameters, PoissonRate, PoissonRateParameters
from posteriori.densities.presence import Presence, PresenceParameters
from posteriori.densities.random_trees import RandomTrees, RandomTreesParameters
from posteriori.densities.registry import (
    REGISTRY,
    Registration,
    column_label,
    find_stored_class,
    named_densities,
    named_density,
    stored_classes,
)
from posteriori.densities.tree import Tree
from posteriori.densities.tree_parameters import Forest, TreeParameters
from posteriori.densities.words import (
    Complement,
    ComplementParameters,
    Multinomial,
    MultinomialParameters,
    ScaledMultinomial,
)
from posteriori.statistics import Statistics, StatisticsFactory
from posteriori.statistics.scatter import MissingPatterns
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment
from posteriori.tables.schema import CellKind

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
    "Complement",
    "ComplementParameters",
    "Compound",
    "CompoundParameters",
    "ConditionalNormal",
    "CorrelatedDensity",
    "Density",
    "DescribedDensity",
    "ExpectingDensity",
    "FamilyTables",
    "Forest",
    "FullJoint",
    "FullJointParameters",
    "Gaussian",
    "GaussianParameters",
    "Grouped",
    "GroupedParameters",
    "KDependence",
    "LeaveOneOutDensity",
    "LinearDensity",
    "LinearTerms",
    "MarginDensity",
    "MarginalDensity",
    "Missingness",
    "MissingnessDensity",
    "MissingnessParameters",
    "Multinomial",
    "MultinomialParameters",
    "MultivariateGaussian",
    "MultivariateGaussianParameters",
    "NormalDensity",
    "Poisson",
    "PoissonParameters",
    "PoissonRate",
    "PoissonRateParameters",
    "Presence",
    "PresenceParameters",
    "RandomTrees",
    "RandomTreesParameters",
    "Registration",
    "ScaledMultinomial",
    "ScoredDensity",
    "SummedDensity",
    "TabularDensity",
    "Tree",
    "TreeParameters",
    "TwoPassDensity",
    "UnrestrictedDensity",
    "VarianceDensity",
    "WordDensity",
    "coarse_parameters",
    "column_label",
    "find_stored_class",
    "implements",
    "named_densities",
    "named_density",
    "stored_classes",
    "ungrouped",
]


class Density(Protocol):
    """A family of distributions for a block of columns that are independent given the component.

    A density is a frozen dataclass. Its fields are its hyperparameters. `estimate` returns the learned parameters as a
    separate value. Features such as `explain.linear_form` use optional methods (`posteriori.densities.capabilities`).
    Laws (tests/densities/test_densities.py): log_density is the sum of log_factors over the
    columns; the factor of a missing cell is 0, because integrating or summing it out gives 1; estimating from
    many rows drawn by `sample` recovers the parameters.

    Attributes
    ----------
    name : str
        The name that `distributions={"column": name}` accepts if the density is registered (`REGISTRY`).
    kind : {"continuous", "categorical", "counts", "mixed"}
        What it reads from its columns: numbers, codes (of categories and of bins), counts (the bags of one column, or
        numbers), or numbers and codes.
    sufficient_statistics : StatisticsFactory
        Computes the statistics from which the density is estimated.
    support : str
        A description of the cells it can produce, for error messages.
    has_full_support : bool
        Whether every finite number is in the support. Cells are then not checked one by one.
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
        """Return which cells the density cannot produce: (n, d) booleans; False for a missing cell."""

    def estimate(self, statistics: Any) -> Any:
        """Return the parameters, in closed form, from the statistics."""

    def log_density(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x | z) in nats, (n, Z), with missing cells integrated out."""

    def log_factors(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), 0 for a missing cell.

        If columns depend on each other given the component, the factor is log p(x_j | its parents, z); see
        `ChainedDensity`. If a parent is missing, it is log p(x_j | the present columns before it, z), so that the sum
        stays exact.
        """

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Array:
        """Draw one row for each entry of component (n,): (n, d) numbers, or codes from 1."""

    def n_parameters(self, parameters: Any) -> int:
        """Return the number of free parameters."""


P = TypeVar("P")
_IMPLEMENTED: dict[tuple[type, type], bool] = {}


def implements(density: object, protocol: type[P]) -> TypeGuard[P]:
    """Return whether a density has the methods of an optional protocol.

    This is `isinstance`, once per type of density: a check of the structure takes 0.1 ms, and EM makes it in each step.
    """
    key = (type(density), protocol)
    if key not in _IMPLEMENTED:
        _IMPLEMENTED[key] = isinstance(density, protocol)
    return _IMPLEMENTED[key]


@runtime_checkable
class ChainedDensity(Density, Protocol):
    """A density of columns that depend on each other: each factor conditions on other columns."""

    def given(self, parameters: Any) -> tuple[tuple[int, ...], ...]:
        """Return, for each column, the indices of the columns on which its factor is conditional."""


@runtime_checkable
class MarginalDensity(Density, Protocol):
    """A density of dependent columns with a fast method to integrate out each column in turn.

    Law (tests/learning/test_importance.py): `without_each` is `log_density` of the rows with that column missing.
    """

    def without_each(self, parameters: Any, tile: Any) -> Array:
        """Return log p(x₋ⱼ | z) in nats, (d, n, Z): with each column missing in turn."""


@runtime_checkable
class ScoredDensity(Density, Protocol):
    """An ensemble of densities whose posterior is not that of their mixture, `log_density`.

    Laws (tests/densities/test_random_trees.py): an ensemble of one has the posterior of its density, and the scores
    differ from the sums of `log_factors` by a constant per row.
    """

    def log_scores(self, parameters: Any, tile: Any) -> Array:
        """Return log p(z | x) − log p(z) up to a constant per row, in nats, (n, Z)."""


@runtime_checkable
class ApproximatingDensity(Density, Protocol):
    """A density that sums missing cells out exactly in most rows, and approximately in the others."""

    def approximated(self, parameters: Any, tile: Any) -> Array:
        """Return which columns are missing in some row and not summed out exactly there, (d,) booleans."""


@runtime_checkable
class WordDensity(Density, Protocol):
    """A density of counts, whose log density is a sum over the words that occur in a row. Feature: `explain`.

    A training row must have no missing count if `learns_from_complete_rows`.
    Law (tests/densities/test_counts.py): the factors of the stored cells of a row and the rest add up to log_density.
    """

    @property
    def learns_from_complete_rows(self) -> bool: ...  # noqa: D102

    def word_factors(self, parameters: Any, tile: Any) -> tuple[Array, Array]:
        """Return the factors of the stored cells in nats, (m, Z), and the rest of log_density per row, (n, Z)."""


@runtime_checkable
class LeaveOneOutDensity(Density, Protocol):
    """A density with leave-one-out log factors: each row under the parameters estimated from the other rows.

    Laws (tests/learning/test_leave_one_out.py): `left_out` is `log_factors` under the parameters of the other rows.
    """

    def left_out(self, parameters: Any, statistics: Any, tile: Any, assignment: Assignment) -> Array:
        """Return log p(x_j | z) in nats, (n, Z, d), of each row under the parameters estimated without it.

        Parameters
        ----------
        parameters : Parameters
            Estimated from all rows. Their structure (a tree, parents) is kept.
        statistics : Statistics
            Of all rows, including the rows of the tile.
        tile : Tile
            Some of the rows. A category that occurs in no other row counts as a missing cell.
        assignment : Assignment
            The components of these rows, all observed, and their weights.

        Returns
        -------
        ndarray (n, Z, d)
            NaN for a row that has no closed form. The caller then estimates its parameters from
            ``statistics.without(row)``.
        """

    def with_fixed_structure(self, parameters: Any) -> Self:
        """Return a density that keeps the structure of these parameters when it estimates."""


class ExpectingDensity(Density, Protocol):
    """A density whose statistics involve missing cells, so that EM takes their expectation."""

    def expect(self, parameters: Any, tile: Any, assignment: Assignment) -> tuple[Statistics, float]:
        """Return the expected statistics of the rows and the log-likelihood of their present cells, in nats."""

    def expect_from_responsibilities(self, parameters: Any, tile: Any, responsibilities: Array) -> Statistics:
        """Return the expected statistics of rows weighted by their responsibilities, (n, Z)."""

    def to_unconstrained(self, parameters: Any, reference: Any) -> Array:
        """Return the parameters as an unconstrained real vector, scaled by the units of the reference."""

    def from_unconstrained(self, vector: Array, reference: Any, statistics: Any) -> Any:
        """Return the parameters with this unconstrained vector, regularised as `estimate` does."""


@runtime_checkable
class PatternDensity(ExpectingDensity, Protocol):
    """A density whose E-step needs only the second moments of the rows of each pattern of missing cells.

    Law (tests/densities/test_missing_patterns.py): the result is that of `expect` on the rows.
    """

    def expect_from_patterns(
        self, parameters: Any, patterns: MissingPatterns, statistics: Any
    ) -> tuple[Statistics, float]:
        """Return the expected statistics of the rows and the log-likelihood of their present cells, in nats.

        `statistics` are those of the rows, from one pass.
        """


@runtime_checkable
class TwoPassDensity(Density, Protocol):
    """A density that may need a second pass over the rows, for example to count the families of a learned structure.

    Laws (tests/densities/test_shrinkage.py): refining a refined density changes nothing; cross-validation equals
    refitting.

    Attributes
    ----------
    second_pass : str
        The parameter that requires the second pass, as a user writes it, for messages; empty if none is needed.
    """

    @property
    def second_pass(self) -> str: ...  # noqa: D102

    def carry_over_structure(self, earlier: Self) -> Self:
        """Return the density for further rows, with the structure that an earlier call refined, if it stays valid."""

    def refine(self, statistics: Any, look: Callable[[Any], Any]) -> tuple[Self, Any]:
        """Return the refined density and the statistics from which it is estimated.

        Parameters
        ----------
        statistics : Statistics
            `sufficient_statistics` of all rows.
        look : callable
            Makes one more pass: takes an object with a method ``of(tile, assignment)`` and returns the sum of its
            results over all batches.
        """


@runtime_checkable
class SummedDensity(Density, Protocol):
    """A density whose exact statistics determine the log-likelihood of the rows without another pass."""

    def log_likelihood(self, parameters: Any, statistics: Any) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of exact statistics, each under its own component.

        Law (tests/densities/test_densities.py): it is the sum of log_density over the rows.
        """


class ClassIndependentDensity(Density, Protocol):
    """A density that all components share, for columns whose class-dependent part another block models.

    Its parameters have no component axis: log_density has shape (n, 1) and log_factors (n, 1, d). Because it carries no
    information about the component, `GenerativeModel.posterior` omits it.
    """

    @property
    def shared(self) -> bool: ...  # noqa: D102

    def sample(self, parameters: Any, codes: Array, rng: np.random.Generator) -> Array:
        """Draw numbers (n, d) given the codes (from 1) that the other block drew for these columns."""


class MissingnessDensity(Density, Protocol):
    """A density of the missingness indicators of columns whose values other blocks model.

    `GenerativeModel.ignore_missingness_except` removes its factor for columns whose missingness is unknown.
    """

    @property
    def models_missingness(self) -> bool: ...  # noqa: D102

    def sample(self, parameters: Any, component: Array, rng: np.random.Generator) -> Array:
        """Draw which cells are missing, (n, d) booleans."""
