"""The result of a fit of a pool of regressions, as one value."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, Protocol, Self

import numpy as np

from posteriori.densities import RandomTrees
from posteriori.densities.random_trees import RandomTreesParameters
from posteriori.fitting.fitted import FittedValue
from posteriori.learning.importance import Importance
from posteriori.model import Pool, clip_log_posteriors
from posteriori.model.answer import Answer
from posteriori.model.number_cells import NumberCells
from posteriori.regression.held_out import HeldOutNumbers
from posteriori.regression.members import Members
from posteriori.scoring.rows import RowsToPredict
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import check_numbers, require
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Batch, Schema


class Measurable(Protocol):
    """Held-out rows with what predicts them, by which the importance of the columns is measured."""

    def importance(self) -> Importance:
        """Return the increase of the score when each column is hidden."""


@dataclass(frozen=True)
class FittedNumbers(FittedValue):
    """The result of a fit to a target of numbers: a density over the cells of the target."""

    of_columns: Schema
    # cross-validated scores of the members of a pool, and of the pool, or of one model; empty after updates
    results: dict[str, list[Any]] = field(default_factory=dict, kw_only=True)
    out_of_fold: HeldOutNumbers | None = field(default=None, kw_only=True)  # not in files
    importance: Importance | None = field(default=None, kw_only=True)  # of columns, in held-out rows
    held_out: Measurable | None = field(default=None, kw_only=True)  # of which it is computed on first access

    @property
    @abstractmethod
    def cells(self) -> NumberCells:
        """The cells of the target."""

    @property
    def meaning(self) -> NumberCells:
        """The cells of the target."""
        return self.cells

    @abstractmethod
    def probability(self, batch: Batch, n_jobs: int | None = 1) -> Array:
        """Return the probability of each cell of the target, (n, G)."""

    def answer(self, batch: Batch, n_jobs: int | None = 1) -> Answer:
        """Return p(y | x) of rows."""
        return Answer(self.target.name, self.cells, self.probability(batch, n_jobs))

    @property
    @abstractmethod
    def ranges(self) -> ColumnRanges:
        """Ranges of the columns in the training rows."""

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.of_columns

    def without_rows(self) -> Self:
        """Return a value of the same predictions without held-out predictions."""
        return replace(self, out_of_fold=None, held_out=None)

    def with_importance(self) -> Self:
        """Return the value with the importance of the columns in place of the held-out rows."""
        return self if self.held_out is None else replace(self, importance=self.held_out.importance(), held_out=None)

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
        return replace(self.with_importance(), record=self.record.for_file(), out_of_fold=None)

    @cached_property
    def rows(self) -> RowsToPredict:
        """The reader of rows to predict."""
        return RowsToPredict(self.of_columns, self.recipe.name, 4 * len(self.cells))


@dataclass(frozen=True)
class FittedRegression(FittedNumbers):
    """The members of a pool of regressions, with their weights, and what is known of the rows.

    A cell of the target is to this pool what a class is to one of classifiers.
    """

    members: Members
    pool: Pool
    joint_trees: RandomTreesParameters  # p(x) by the trees of the neighbours

    @property
    def cells(self) -> NumberCells:
        """The cells of the target."""
        return self.members.cells

    @property
    def ranges(self) -> ColumnRanges:
        """Ranges of the columns in the training rows."""
        assert self.pool.extrapolation is not None
        return self.pool.extrapolation.ranges

    @property
    def n_parameters(self) -> int:
        """The number of coefficients of the locations, of leaves of the trees, and of weights."""
        coefficients = sum(len(one.penalty) for one in self.members.locations)
        return coefficients + self.members.neighbours.trees.n_leaves + len(self.pool.weight)

    def probability(self, batch: Batch, n_jobs: int | None = 1) -> Array:
        """Return the probability of each cell of the target, (n, G)."""
        with one_blas_thread():  # as in the fit, so that a model that was loaded rounds in the same way
            log_probability = clip_log_posteriors(self.members.log_probability(batch, n_jobs))
        return np.exp(self.pool.log_posterior(log_probability, self.pool.parts(batch)))

    def log_evidence(self, batch: Batch) -> Array:
        """Return log p(x) in nats, (n,), by the trees: the cells of numbers are their bins."""
        joint, tile = self.joint_trees, self.members.neighbours.tile(batch)
        of_classes = RandomTrees(()).log_density(joint, tile) + np.log(joint.prior)
        return np.asarray(np.logaddexp.reduce(of_classes, axis=1))

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        require(self.target.kind == "continuous", "the target is not a column of numbers")
        n_cells, n_members = len(self.members.cells), len(self.members.smoothings)
        self.members.check_against(self.of_columns)
        check_numbers("the weights of the members", self.pool.weight, (n_members,), 0.0)
        check_numbers("the biases of cells", self.pool.bias, (n_cells,))
        if self.importance is not None:
            self.importance.check_against(len(self.of_columns.columns))
        require(self.pool.partial is not None, "the weights for partial rows are missing")
        assert self.pool.partial is not None
        self.pool.partial.check_against(n_members, n_cells, len(self.of_columns.columns))
        require(self.pool.extrapolation is not None, "the ranges of the training rows are missing")
        assert self.pool.extrapolation is not None
        self.pool.extrapolation.check_against(n_members, n_cells, len(self.of_columns.columns))
        trees = self.members.neighbours.trees
        require(self.joint_trees.trees == trees, "the joint distribution is of other trees")
        cut = self.members.neighbours.schema
        self.joint_trees.check_against([cut.columns[j] for j in cut.dense], 2)
