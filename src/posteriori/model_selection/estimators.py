"""The interface of the estimators that can be evaluated here."""

from __future__ import annotations

from typing import Any, Protocol

from posteriori.learning.em import FitResult
from posteriori.learning.importance import HeldOutRows
from posteriori.learning.training import Plan, TrainingRows
from posteriori.model import GenerativeModel, Prior
from posteriori.statistics import JointStatistics
from posteriori.tables import Column, Schema
from posteriori.typing import Array


class TrainableEstimator(Protocol):
    """An estimator whose reading of rows, learning and storing of a fit are separate steps.

    ``fit(X, y)`` calls ``read_training_rows``, ``training_plan``, `learning.em.learn` and ``store_fit``. An algorithm
    that learns several models in one pass replaces the third step.
    """

    classes_: Array

    def read_training_rows(self, X: Any, y: Any = None, sample_weight: Any = None) -> TrainingRows:
        """Read training rows, and infer their schema and classes."""

    def training_plan(self, schema: Schema, target: Column) -> Plan:
        """Return the plan of the model that the estimator learns from rows of this schema."""

    def store_fit(self, fit: FitResult, rows: TrainingRows, held_out: HeldOutRows | None = None) -> Any:
        """Set the fitted attributes, as `fit` does with these rows."""


class LearnedEstimator(Protocol):
    """A fitted estimator that can read its training rows again."""

    model_: GenerativeModel
    statistics_: JointStatistics
    target_: Column
    classes_: Array

    def read_learned_rows(self, X: Any, y: Any = None, sample_weight: Any = None) -> TrainingRows:
        """Read rows under the schema and classes of the fitted model."""

    def component_prior(self, target: Column) -> Prior:
        """Return the prior of the components of all classes."""
