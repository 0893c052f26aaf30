"""What a fit learned, as one value, and the attributes of an estimator that read it.

`fit`, `partial_fit`, `unlearn` and `merge` end by setting `fitted_`, once. A fit that fails before changes nothing, and
no part of an earlier fit can stay behind. A model file holds this value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, ClassVar, Protocol, Self, cast

import numpy as np
from sklearn.exceptions import NotFittedError

from posteriori.densities import ungrouped
from posteriori.fitting.held_out_figures import HeldOutFigures
from posteriori.learning.importance import HeldOutRows, Importance
from posteriori.model import Block, GenerativeModel
from posteriori.reading import TargetCuts
from posteriori.statistics import ColumnRanges, JointStatistics, RowFingerprints, RowPosteriors
from posteriori.support.checks import check_equal, check_numbers, check_share, require
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema
from posteriori.tables.arrays import write_column

_NO_TRACE = "the trace of log-likelihoods is not a list of numbers"


@dataclass(frozen=True)
class TrainingRecord:
    """What is known of the training rows beside their sums; None where it is not."""

    target_cuts: TargetCuts | None = None  # which made classes of the numbers of the target
    fingerprints: RowFingerprints | None = None
    alerts: list[dict[str, str | list[str]]] | None = None  # on their columns
    posteriors: RowPosteriors | None = None  # out of fold
    figures: HeldOutFigures | None = None  # behind the sentences on held-out predictions
    importance: Importance | None = None  # of held-out rows
    held_out: HeldOutRows | None = None  # of which the importance is computed on first access; not in files
    drawn: Importance | None = None  # the importance of rows drawn from the model; not in files

    def of_other_model(self) -> TrainingRecord:
        """Return what stays true of the rows when the model has changed."""
        return TrainingRecord(self.target_cuts, self.fingerprints, self.alerts)

    def of_other_rows(self) -> TrainingRecord:
        """Return what stays true when rows are gone."""
        return TrainingRecord(self.target_cuts)

    def with_importance(self) -> TrainingRecord:
        """Return the record with the importance of the held-out rows in place of these rows."""
        return self if self.held_out is None else replace(self, importance=self.held_out.importance(), held_out=None)

    def with_held_out(self, rows: HeldOutRows) -> TrainingRecord:
        """Return the record with held-out rows, with their importance if they are many."""
        record = replace(self, held_out=rows, importance=None, drawn=None)
        return record.with_importance() if rows.is_large else record

    def for_file(self) -> TrainingRecord:
        """Return what a model file holds."""
        return replace(self.with_importance(), drawn=None)

    def check_against(self, n_classes: int, n_columns: int) -> None:
        """Raise ValueError unless the record, which may come from a file, is of these classes and columns."""
        if self.importance is not None:
            self.importance.check_against(n_columns)
        if self.target_cuts is not None:
            check_equal("the number of classes", len(self.target_cuts.cuts) + 1, n_classes)
        if self.posteriors is not None:
            is_of_classes = self.posteriors.class_prior.shape[1] == n_classes
            require(is_of_classes, "the out-of-fold predictions have other classes")
        if self.figures is not None:
            require(len(self.figures.true) == n_classes, "the figures of held-out predictions have other classes")


@dataclass(frozen=True)
class Fitted:
    """A learned model with its sums, and what is known of the rows."""

    model: GenerativeModel
    target: Column  # the classes; of a mixture the components
    statistics: JointStatistics | None = None  # None of a model that was made of parameters
    trace: Array | None = None  # log-likelihoods before each M-step, in nats
    label_confusion: Array | None = None  # (C, C), if labels are noisy
    unlabelled_weight: float | None = None  # of a row without label; None if the estimator has no such parameter
    converged: bool | None = None  # whether EM has; None if it is not reported
    classes_closed: bool = False  # whether all classes were declared on the first call
    record: TrainingRecord = field(default_factory=TrainingRecord)
    transduction: Array | None = None  # labels that the model infers for its training rows; not in files

    @cached_property
    def classes(self) -> Array:
        """The classes, (C,)."""
        return write_column(self.target)

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.model.schema

    @property
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return None if self.statistics is None else self.statistics.ranges

    @property
    def component_classes(self) -> Array:
        """Class of each component, (Z,)."""
        of_component: Array = self.classes[list(self.model.of_class or range(len(self.classes)))]
        return of_component

    def with_model(self, model: GenerativeModel) -> Fitted:
        """Return the same with another model of the same rows."""
        return replace(self, model=model)

    def without_rows(self) -> Fitted:
        """Return what predicts: without sums, trace and labels, which may be large."""
        return replace(self, statistics=None, trace=None, transduction=None)

    def for_file(self) -> Fitted:
        """Return what a model file holds."""
        return replace(self, record=self.record.for_file(), transduction=None)

    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""
        target, model = self.target, self.model
        require(target.kind == "categorical", "the target is not a column of classes")
        require(len(target.categories) == model.n_classes, "the model has not one component or more for each class")
        require(len(target.kinds) <= 1, "the classes are of several kinds")
        if self.trace is not None:
            require(self.trace.ndim == 1 and self.trace.dtype.kind in "fi", _NO_TRACE)
        if self.statistics is not None:
            model.check_statistics(self.statistics)
        n_classes = len(target.categories)
        if self.label_confusion is not None:
            check_numbers("the confusion of labels", self.label_confusion, (n_classes, n_classes), 0.0, 1.0 + 1e-6)
        if self.unlabelled_weight is not None:
            check_share("the weight of rows without label", self.unlabelled_weight)
        self.record.check_against(n_classes, len(model.schema.columns))

    def check_blocks(self, wanted: Sequence[Block], name: str) -> None:
        """Raise ValueError unless the densities are those that the parameters of an estimator ask for."""
        # Files of earlier versions hold densities without groups of categories.
        asked, found = (
            [(type(ungrouped(block.density)), block.columns) for block in blocks]
            for blocks in (wanted, self.model.blocks)
        )
        require(found == asked, f"a {name} with these parameters has other densities")


def fitted_value(estimator: object) -> Any:
    """Return what an estimator has learned; NotFittedError, which is an AttributeError too, before a fit."""
    try:
        return estimator.__dict__["fitted_"]
    except KeyError:
        raise NotFittedError(f"this {type(estimator).__name__} is not fitted yet; call fit first") from None


class FittedAttributes:
    """The attributes of an estimator of one model, which read `fitted_`."""

    fitted_: Fitted
    _fitted_attribute: ClassVar[str] = "fitted_"

    @property
    def _value(self) -> Fitted:
        """The fitted value."""
        return cast(Fitted, fitted_value(self))

    @property
    def _is_fitted(self) -> bool:
        return "fitted_" in self.__dict__

    def _part(self, value: Any, what: str) -> Any:
        """Return a part of the fitted value; AttributeError where the model has none."""
        if value is None:
            raise AttributeError(f"this {type(self).__name__} {what}")
        return value

    @property
    def model_(self) -> GenerativeModel:
        """The model: prior, densities and their parameters."""
        return self._value.model

    @property
    def target_(self) -> Column:
        """The classes, or the components of a mixture, as a column."""
        return self._value.target

    @property
    def statistics_(self) -> JointStatistics:
        """The sums that the model was learned from."""
        statistics: JointStatistics = self._part(self._value.statistics, "was built from parameters")
        return statistics

    @property
    def log_likelihood_trace_(self) -> Array:
        """Log-likelihood before each M-step, in nats."""
        trace: Array = self._part(self._value.trace, "has not learned from rows")
        return trace

    @property
    def n_iter_(self) -> int:
        """Number of passes over the rows in training: EM steps, or 1."""
        return max(1, len(self.log_likelihood_trace_))

    @property
    def schema_(self) -> Schema:
        """The columns: names, kinds and categories."""
        return self._value.model.schema  # without a posterior, which would cost a one-row prediction microseconds

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        n_features: int = self._value.model.schema.n_features
        return n_features

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if the columns had names."""
        schema = self._value.model.schema
        names = np.array(schema.given, dtype=object) if schema.named else None
        return np.asarray(self._part(names, "was fitted to columns without names"))

    @property
    def _ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return self._value.ranges

    @property
    def _trained(self) -> bool:
        """Whether the model was learned from rows, and not made of parameters."""
        return self._is_fitted and self._value.statistics is not None

    def _set_model(self, model: GenerativeModel, target: Column) -> Self:
        """Take a model that was made of parameters."""
        self.fitted_ = Fitted(model, target)
        return self


class _Keeps(Protocol):
    """A fitted estimator."""

    fitted_: Any


def record_of(estimator: object) -> TrainingRecord:
    """Return what a fitted estimator knows of its training rows; an empty record if it keeps none."""
    value = getattr(estimator, "fitted_", None)
    return TrainingRecord() if value is None else value.record


def set_record(estimator: _Keeps, **changed: Any) -> None:
    """Change what a fitted estimator knows of its training rows."""
    estimator.fitted_ = replace(estimator.fitted_, record=replace(estimator.fitted_.record, **changed))
