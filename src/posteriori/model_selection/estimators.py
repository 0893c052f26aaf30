"""The interface of the estimators that can be evaluated here."""

from __future__ import annotations

from typing import Any, Protocol

from posteriori.learning.em import FitResult
from posteriori.learning.importance import HeldOutRows
from posteriori.learning.training import Plan, TrainingRows
from posteriori.model import Prior
from posteriori.tables import Column, Schema
from posteriori.typing import Array


class TrainableEstimator(Protocol):
    """An estimator whose reading of rows, learning and storing of a fit are separate steps.

    ``fit(X, y)`` stores what `learning.em.learn` makes of ``read_training_rows(X, y)`` under ``training_plan``. An
    algorithm that learns several models from one pass uses the same three steps.
    """

    classes_: Array

    def read_training_rows(self, X: Any, y: Any = None, sample_weight: Any = None) -> TrainingRows:
        """Read rows to learn from, and infer their schema and classes."""

    def training_plan(self, schema: Schema, target: Column) -> Plan:
        """Return what the estimator learns from rows of a schema."""

    def store_fit(self, fit: FitResult, rows: TrainingRows, held_out: HeldOutRows | None = None) -> Any:
        """Become the fitted estimator, as `fit` would with these rows."""


class LearnedEstimator(Protocol):
    """A fitted estimator that can read the rows that it was trained on again."""

    model_: Any
    statistics_: Any
    target_: Column
    classes_: Array

    def read_learned_rows(self, X: Any, y: Any = None, sample_weight: Any = None) -> TrainingRows:
        """Read rows under the schema and classes of the fitted model."""

    def component_prior(self, target: Column) -> Prior:
        """Return the prior of the components of all classes."""
