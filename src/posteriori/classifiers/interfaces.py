"""What functions on an estimator ask of it, so that types prove that it has what they read.

The estimators themselves are built on these functions, so that they cannot be named there.
"""

from __future__ import annotations

from typing import Any, ClassVar, Protocol

from posteriori.classifiers.fitted import Fitted
from posteriori.learning.fit import FitResult, Plan, TrainingRows
from posteriori.model import Block, GenerativeModel, Posterior, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema


class FittedEstimator(Protocol):
    """An estimator that reads rows to predict: a classifier or a mixture."""

    n_jobs: int | None
    fitted_: Any

    @property
    def schema_(self) -> Schema:
        """The columns."""

    @property
    def target_(self) -> Column:
        """The classes or components, as a column."""

    @property
    def _posterior(self) -> Posterior: ...
    @property
    def _trained(self) -> bool: ...
    def _source(self, X: Any) -> LabelledSource: ...


class FittedClassifier(FittedEstimator, Protocol):
    """A classifier, of one model or of a pool."""

    @property
    def classes_(self) -> Array:
        """The classes, (C,)."""


class ModelEstimator(FittedClassifier, Protocol):
    """An estimator of one model, which reads rows and learns from their sums."""

    fitted_: Fitted
    distributions: Any
    priors: Any
    reads_counts: ClassVar[bool]

    @property
    def model_(self) -> GenerativeModel:
        """The model."""

    @property
    def statistics_(self) -> JointStatistics:
        """The sums."""

    @property
    def leaves_rows_out(self) -> str:
        """The parameter that is learned from leave-one-out predictions."""

    def read_learned_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read rows under the fitted model."""

    def component_prior(self, target: Column) -> Prior:
        """Return the prior of the components."""

    def training_plan(self, schema: Schema, target: Column) -> Plan:
        """Return the plan of a fit."""

    def _validate_params(self) -> None: ...
    def _blocks(self, schema: Schema) -> tuple[Block, ...]: ...
    def _check_plan(self, source: LabelledSource, blocks: tuple[Block, ...], complete: bool) -> None: ...
    def _check_size(self, schema: Schema, target: Column) -> None: ...
    def _fitted_with_warnings(self, learned: FitResult, target: Column, unlabelled_weight: float | None) -> Fitted: ...


class PoolParameters(Protocol):
    """What the parameters of a pool ask of its rows and candidates."""

    members: Any
    distributions: Any
    labels: Any
    missing: str
    n_jobs: int | None
    priors: Any
    time_budget: float | None
