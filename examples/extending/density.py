"""Add a density: waiting times, exponential columns that are independent given the component.

A density is p(x | z) for a block of columns of one kind. It is one frozen dataclass in one file of `densities/`, and it
inherits `BaseDensity`, the defaults of what models ask of every density; a class without them is refused. Begin its
test with `posteriori.checks.check_density(Exponential(), waits)`, which checks the laws that every density obeys on
rows that it can produce, and go on with `posteriori.checks.check_model` of a model that has it. The fields
are its hyperparameters, checked against their annotations and by the method `check()` if there is one. `estimate`
returns the learned parameters as a separate value. The part up to `n_parameters` is enough for

    po.NaiveBayes(distributions={"wait": Exponential()})

Each method after it adds one feature, and a density without it works everywhere else: that feature names what is
missing. `densities/capabilities.py` states all optional methods and their laws. Besides the ones below,

- `covariances` gives the correlations in `posteriori show`, and `n_unrestricted` the size of the full joint;
- `conditional_tables`, for categories, or `conditional_normals`, for numbers, gives `to_network`;
- `left_out` and `with_fixed_structure` give `leave_one_out`;
- `moments_of_numbers` warns when a variance loses its digits in `unlearn`;
- `to_javascript` and `explore` need no method, but the parameters in `FIELDS` of `javascript/export.py` and a class in
  `javascript/evaluator/`, which a test compares with Python.

`fit` and `predict` need no registration. Call `register()` once in every process that saves or loads a model with the
density, or names it as ``distributions="exponential"``. It stands for the entry of `densities/registry.py`, and the
method `program` for one of `program/densities.py`. For a density of the library, give it a kernel if it is hot, add it
to the tables at the top of `tests/densities/test_densities.py` and `tests/densities/test_capabilities.py`, and add a
file to `changes/`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, ClassVar, Self

import numpy as np

from posteriori.densities import registry
from posteriori.densities.capabilities import BaseDensity, LinearTerms
from posteriori.statistics import Sums
from posteriori.statistics.sums import Axes, WithAxes
from posteriori.support.checks import check_pseudo_count
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Column, Numbers
from posteriori.tables.schema import CellKind

if TYPE_CHECKING:
    from posteriori.program.densities import BlockCells, Factors

SMALLEST_MEAN = 1e-100  # in data units


# The axes of the statistics give `partial_fit`, `merge` and `unlearn`: +, − and the order of the classes follow from
# them. Statistics with other axes than these define `would_go_negative`. A model file may be crafted, so the
# axes check shapes and ranges when a file is loaded, before a kernel sees the numbers; `fit` does not check them.
@dataclass(frozen=True)
class Totals(Sums):
    """The weight of the present cells and their sum, (Z, d)."""

    weight: Annotated[Array, Axes("the weights", "z", "column", low=0.0)]
    total: Annotated[Array, Axes("the totals", "z", "column", low=0.0)]

    @classmethod
    def of(cls, tile: Numbers, assignment: Assignment) -> Self:
        of_class = np.eye(assignment.n_components)[assignment.component] * assignment.weight[:, np.newaxis]
        present = ~np.isnan(tile.values)
        return cls(of_class.T @ present, of_class.T @ np.where(present, tile.values, 0.0))

    def finite(self) -> Array:
        return np.asarray(np.isfinite(self.total).all(axis=0))

    def observed(self) -> Array:
        return self.weight


@dataclass(frozen=True)
class ExponentialParameters(WithAxes):
    """The expected waiting time, (Z, d), in data units."""

    mean: Annotated[Array, Axes("the means", "z", "column", low=SMALLEST_MEAN)]


@dataclass(frozen=True)
class Exponential(BaseDensity):
    """p(x_j | z) = exp(−x_j / mean_zj) / mean_zj; `smoothing` pseudo-rows shrink the mean to that of all rows."""

    smoothing: float = 1.0
    name = "exponential"
    kind: ClassVar[CellKind] = "continuous"
    sufficient_statistics = Totals
    fitted = ExponentialParameters
    support = "a waiting time, 0 or more"
    has_full_support = False

    def check(self) -> None:
        check_pseudo_count("smoothing", self.smoothing)

    def out_of_support(self, tile: Numbers) -> Array:
        return np.asarray((tile.values < 0) | np.isinf(tile.values))

    def estimate(self, statistics: Totals) -> ExponentialParameters:
        of_all = statistics.total.sum(axis=0) / np.maximum(statistics.weight.sum(axis=0), 1e-300)
        weight = statistics.weight + self.smoothing
        own = (statistics.total + self.smoothing * of_all) / np.where(weight > 0, weight, 1.0)
        # A component without a cell has the mean of all rows. A mean of 0 would be a density that is infinite at 0.
        return ExponentialParameters(np.maximum(np.where(statistics.weight > 0, own, of_all), SMALLEST_MEAN))

    def log_factors(self, parameters: ExponentialParameters, tile: Numbers) -> Array:
        x = tile.values[:, np.newaxis, :]
        # The factor of a missing cell is 0, because integrating it out gives 1.
        return np.where(np.isnan(x), 0.0, -x / parameters.mean - np.log(parameters.mean))

    def log_density(self, parameters: ExponentialParameters, tile: Numbers) -> Array:
        return np.asarray(self.log_factors(parameters, tile).sum(axis=2))

    def sample(self, parameters: ExponentialParameters, component: Array, rng: np.random.Generator) -> Array:
        return rng.exponential(parameters.mean[component])

    def n_parameters(self, parameters: ExponentialParameters) -> int:
        return parameters.mean.size

    # Optional: the parameters in `posteriori show`.
    def describe(self, parameters: ExponentialParameters, position: int) -> dict[str, Array]:
        return {"mean": parameters.mean[:, position]}

    # Optional: `explain.linear_form`, the model as weights and biases.
    def linear_terms(self, parameters: ExponentialParameters, columns: Sequence[Column]) -> LinearTerms:
        weights = -1.0 / parameters.mean
        bias = -np.log(parameters.mean).sum(axis=1)
        return LinearTerms(bias, [(position, None, weights[:, position]) for position in range(len(columns))])

    # Optional: `to_sql` and `to_onnx`. Functions of the array API, which NumPy runs, and of which SQL and ONNX are
    # written. Terms that are the same for all components may be left out.
    def program(self, block: BlockCells, parameters: ExponentialParameters) -> Factors:
        xp, x = block.xp, block.cells.numbers_of(block.columns)
        block.cells.refuse(xp.any(x < 0.0, axis=1))
        waits = x[:, None, :]
        return block.columns, xp.where(xp.isnan(waits), 0.0, -waits / parameters.mean - np.log(parameters.mean))


# One entry in `REGISTRY` of `densities/registry.py` makes it one of the library's own. A model file may only name
# registered classes: the density, its parameters (`fitted`), and the dataclasses listed here, which are its statistics
# if they are new and what its fields may hold.
EXPONENTIAL = registry.Registration(
    Exponential,
    (Totals,),
    options={"smoothing": "alpha"},  # distributions="exponential": `alpha` of `NaiveBayes` sets `smoothing`
    label="waiting time",  # the name of such a column in `fit` and in the report
)


def register() -> None:
    """Add the entry, as if it stood in the library."""
    registry.REGISTRY = (*registry.REGISTRY, EXPONENTIAL)
