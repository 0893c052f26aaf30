"""The protocol of densities, and what a density may offer beyond it: one optional method per feature of the library."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Protocol, Self, TypeGuard, TypeVar, runtime_checkable

import numpy as np

from posteriori.densities.refinement import Refinement
from posteriori.statistics import Statistics, StatisticsFactory
from posteriori.statistics.moments import Moments
from posteriori.statistics.scatter import MissingPatterns
from posteriori.support.checks import check_dataclass
from posteriori.support.typing import Array
from posteriori.tables.batch import Assignment
from posteriori.tables.schema import CellKind, Column


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
    fitted : type
        The class of its parameters, which a loaded model must have.
    exposure : str, int or None
        The column of exposures on which it conditions, by name or position.
    is_normalised : bool
        Whether `log_density` is that of a distribution; otherwise it is a score.
    has_factors : bool
        Whether the posterior is a sum over the columns; otherwise `log_factors` raises ValueError.
    shared : bool
        Whether all components share the density, so that it carries no information about them (`Block.shared`).
    chosen_once : str
        What the first rows choose and further rows keep, for messages; empty if the sums determine all.
    models_missingness : bool
        Whether it models which cells are missing, and not the values of the cells.
    learns_from_complete_rows : bool
        Whether a training row must have no missing count.
    expects : bool
        Whether EM takes the expectation of its statistics if labels or cells are hidden (`ExpectingDensity`).
    forest : Forest or None
        The trees along which it estimates, if they are fixed.

    `BaseDensity` has defaults for the last eleven, and for some methods. A density that does not inherit it has all of
    them (`check_base`).
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
    @property
    def fitted(self) -> type: ...  # noqa: D102
    @property
    def exposure(self) -> str | int | None: ...  # noqa: D102
    @property
    def is_normalised(self) -> bool: ...  # noqa: D102
    @property
    def has_factors(self) -> bool: ...  # noqa: D102
    @property
    def shared(self) -> bool: ...  # noqa: D102
    @property
    def chosen_once(self) -> str: ...  # noqa: D102
    @property
    def models_missingness(self) -> bool: ...  # noqa: D102
    @property
    def learns_from_complete_rows(self) -> bool: ...  # noqa: D102
    @property
    def expects(self) -> bool: ...  # noqa: D102
    @property
    def forest(self) -> Any: ...  # noqa: D102

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

    def plug_in(self) -> Self:
        """Return the density that estimates its parameters, which EM maximises, if this one integrates them out."""

    def check_fitted(self, parameters: Any) -> None:
        """Raise ValueError unless parameters, whose shapes are checked already, are those of this density."""


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
class ColumnDroppingDensity(Density, Protocol):
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
class ProgrammedDensity(Protocol):
    """A density of one's own that runs as functions of arrays. Features: `to_sql` and `to_onnx`.

    Those of the library have theirs in `posteriori.program.densities`. Law (tests/program): the factors add up to
    `log_density` of a row, or to `log_scores`, up to a constant of the row.
    """

    def program(self, block: Any, parameters: Any) -> tuple[Sequence[int], Any]:
        """Return columns of a block, and their log factors in nats, (n, Z, columns), 0 for a missing cell."""


@runtime_checkable
class ApproximatingDensity(Density, Protocol):
    """A density that sums missing cells out exactly in most rows, and approximately in the others."""

    def approximated(self, parameters: Any, tile: Any) -> Array:
        """Return which columns are missing in some row and not summed out exactly there, (d,) booleans."""


@runtime_checkable
class WordDensity(Density, Protocol):
    """A density of counts, whose log density is a sum over the words that occur in a row. Feature: `explain`.

    Law (tests/densities/test_counts.py): the factors of the stored cells of a row and the rest add up to log_density.
    """

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
class CategorySummingDensity(LeaveOneOutDensity, Protocol):
    """A density that sums over the categories of some missing cells, so that a category that a row loses matters.

    `left_out` has no closed form for a row with a category of these columns that no other row has.
    """

    def summed_columns(self, parameters: Any) -> Array:
        """Return the positions of the columns that are summed over where they are missing."""


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
class BackingOffDensity(Density, Protocol):
    """A density of tables given other columns, which back off to tables given fewer of them.

    Feature: pseudo-rows that are learned (`learning/backoff.py`).
    """

    @property
    def smoothing(self) -> Any:
        """How the tables back off (`BackOff`): a field of the density."""

    @property
    def most_parents(self) -> int:
        """The most columns on which a table conditions."""

    def counted_families(self, parameters: Any, statistics: Any) -> Iterator[Any]:
        """Yield the counts of each column with its parents (`Family`)."""


@runtime_checkable
class AveragedDensity(BackingOffDensity, Protocol):
    """A density that is an average over tables, so that a row that is left out has a log density, but no factors."""

    def left_out_density(self, statistics: Any, tile: Any, assignment: Assignment) -> Callable[[Any], Array]:
        """Return the function from a smoothing to log p(x | z) in nats, (n, Z), of rows under the tables without them.

        Parameters are those of `LeaveOneOutDensity.left_out`.
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

    def refine(self, statistics: Any) -> Refinement:
        """Return the refined density and its statistics, or the request for a further pass that it takes first.

        `statistics` are the `sufficient_statistics` of all rows.
        """


@runtime_checkable
class KnownLikelihoodDensity(Density, Protocol):
    """A density whose exact statistics determine the log-likelihood of the rows without another pass."""

    def log_likelihood(self, parameters: Any, statistics: Any) -> float:
        """Return Σ w·log p(x | z) in nats over the rows of exact statistics, each under its own component.

        Law (tests/densities/test_densities.py): it is the sum of log_density over the rows.
        """


class BaseDensity:
    """A density of numbers or of codes that can produce every finite number or every category and learns no structure.

    A subclass is a frozen dataclass, and has the other methods of `posteriori.densities.Density`, which states what the
    defaults mean.
    """

    has_full_support: bool = True
    fitted: ClassVar[type] = object
    exposure: str | int | None = None
    is_normalised: bool = True
    has_factors: bool = True
    shared: bool = False
    chosen_once: str = ""
    models_missingness: bool = False
    learns_from_complete_rows: bool = False
    expects: bool = False
    forest: Any = None

    def plug_in(self) -> Self:
        """Return the density that estimates its parameters: itself, if it integrates none out."""
        return self

    def check_fitted(self, parameters: Any) -> None:
        """Raise ValueError unless parameters are those of this density: any that have the shapes of its columns."""

    def out_of_support(self, tile: Any) -> Array:
        """Return which cells the density cannot produce, (n, d): infinities; an unseen category is a missing cell."""
        return np.asarray(np.isinf(tile.values))

    def with_fixed_structure(self, parameters: Any) -> Self:
        """Return the density that keeps the structure of these parameters: itself, if it learns none."""
        del parameters
        return self


def check_base(density: object) -> None:
    """Raise TypeError unless a density has all that models read: those that inherit `BaseDensity` have it."""
    if isinstance(density, BaseDensity):
        return
    missing = [name for name in vars(BaseDensity) if not name.startswith("_") and not hasattr(density, name)]
    if missing:
        raise TypeError(
            f"the density {type(density).__name__} lacks {', '.join(missing)}; let it inherit "
            "posteriori.densities.BaseDensity, which has defaults for them"
        )


def check_hyperparameters(density: object, of_column: str = "") -> None:
    """Raise ValueError if a density has a hyperparameter of a wrong type or out of its range; a name has none.

    `of_column`, such as " of column 'age'", is part of the message.
    """
    if isinstance(density, type):
        name = density.__name__
        raise ValueError(f"the density{of_column} is the class {name}; give one of its densities, such as {name}()")
    if not dataclasses.is_dataclass(density):
        return
    try:
        check_dataclass(density)
    except ValueError as error:
        raise ValueError(f"the density {type(density).__name__}{of_column} cannot be used: {error}") from None


@dataclass(frozen=True)
class LinearTerms:
    """log p(x | z) = bias_z + Σ_t weight_tz · x_t + a part that is the same for all components."""

    bias: Array  # (Z,): in nats
    # Position, category and weights: the position of a column in the block; a category, or None for a number; and the
    # weights (Z,), in nats per data unit for a number, in nats for a category. x_t is the number, or 1 if the cell has
    # the category and 0 otherwise.
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
class SingleColumnDensity(Protocol):
    """A density of dependent columns that knows the density of one of them without a computation over all.

    Feature: figures of single columns of wide tables.

    Law (tests/densities/test_capabilities.py): it is log_density of rows in which all other cells are missing.
    """

    def log_density_of_column(self, parameters: Any, position: int, values: Array) -> Array:
        """Return log p(x_j | z) in nats, (n, Z), of the numbers of one column (n,), 0 where missing."""


@dataclass(frozen=True)
class ConditionalNormal:
    """p(x_j | z, k, u) = N(intercept + coefficients·u, variance), with k a code of a parent and u numbers."""

    # of_codes, of_numbers: the positions of the parents of each kind, at most one of codes
    of_codes: tuple[int, ...]
    of_numbers: tuple[int, ...]
    intercept: Array  # (Z,) or (Z, K)
    coefficients: Array  # (Z, m) or (Z, K, m)
    variance: Array  # (Z,) or (Z, K)


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
    """A density whose parameters depend on variances, which lose digits if rows are subtracted.

    Feature: the warning of `unlearn`.
    """

    def moments_of_numbers(self, statistics: Any) -> tuple[tuple[int, ...], Moments]:
        """Return the positions of the columns of numbers and the moments of these columns."""


@runtime_checkable
class UnrestrictedDensity(Protocol):
    """A density of independent numbers with a known unrestricted family. Feature: the parameter count of ``show``.

    Law (tests/densities/test_capabilities.py): for one column it is the number of parameters per component.
    """

    def n_unrestricted(self, n_columns: int) -> int:
        """Return the number of parameters per component of the family without independence of the columns."""
