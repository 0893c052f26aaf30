"""The result of a fit, as one value.

`fit`, `partial_fit`, `unlearn` and `merge` end by setting `fitted_`, once. A fit that fails before changes nothing, and
no part of an earlier fit can stay behind. A model file holds this value.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np

from posteriori.densities import ungrouped
from posteriori.fitting.held_out_figures import HeldOutFigures
from posteriori.fitting.recipe import Recipe
from posteriori.learning.importance import HeldOutRows, Importance
from posteriori.model import GenerativeModel, Posterior
from posteriori.model.answer import Answer, Categories
from posteriori.model.class_priors import check_priors
from posteriori.reading import TargetCuts
from posteriori.scoring.fitted import FittedPosterior
from posteriori.scoring.rows import RowsToPredict
from posteriori.statistics import ColumnRanges, JointStatistics, RowFingerprints, RowPosteriors
from posteriori.support.checks import check_equal, check_numbers, check_share, require
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Schema
from posteriori.tables.arrays import write_column

_NO_TRACE = "the trace of log-likelihoods is not a list of numbers"


@dataclass(frozen=True)
class TrainingRecord:
    """Facts about the training rows beside their sums; None where they are unknown."""

    target_cuts: TargetCuts | None = None  # which made classes of the numbers of the target
    fingerprints: RowFingerprints | None = None
    alerts: list[dict[str, str | list[str]]] | None = None  # on their columns
    posteriors: RowPosteriors | None = None  # out of fold
    figures: HeldOutFigures | None = None  # behind the sentences on held-out predictions
    importance: Importance | None = None  # of held-out rows
    held_out: HeldOutRows | None = None  # of which the importance is computed on first access; not in files
    drawn: Importance | None = None  # the importance of rows drawn from the model; not in files

    def of_other_model(self) -> TrainingRecord:
        """Return the parts that stay true of the rows when the model has changed."""
        return TrainingRecord(self.target_cuts, self.fingerprints, self.alerts)

    def of_other_shares(self, log_ratio: Array) -> TrainingRecord:
        """Return the record under class shares whose log ratio to the former ones is (C,), in nats."""
        moved = None if self.posteriors is None else self.posteriors.moved(log_ratio)
        return replace(self.of_other_model(), posteriors=moved)

    def of_other_rows(self) -> TrainingRecord:
        """Return the parts that stay true when rows are removed."""
        return TrainingRecord(self.target_cuts)

    def with_importance(self) -> TrainingRecord:
        """Return the record with the importance of the held-out rows in place of these rows."""
        return self if self.held_out is None else replace(self, importance=self.held_out.importance(), held_out=None)

    def with_held_out(self, rows: HeldOutRows) -> TrainingRecord:
        """Return the record with held-out rows, with their importance if they are many."""
        record = replace(self, held_out=rows, importance=None, drawn=None)
        return record.with_importance() if rows.is_large else record

    def for_file(self) -> TrainingRecord:
        """Return the record as a model file holds it."""
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


def kept_of_rows(value: Any) -> list[str]:
    """Return the words for all that a value keeps of single training rows: `KEPT_OF_ROWS` of the classes within it."""
    own = getattr(type(value), "KEPT_OF_ROWS", None)
    parts: Iterable[Any] = ()
    if is_dataclass(value):
        parts = (getattr(value, part.name) for part in fields(value))
    elif isinstance(value, Mapping):
        parts = value.values()
    elif isinstance(value, tuple | list):
        parts = value
    return list(dict.fromkeys([*([own] if own else []), *(words for part in parts for words in kept_of_rows(part))]))


@dataclass(frozen=True)
class FittedValue(ABC):
    """The result of a fit, whatever the target."""

    recipe: Recipe
    target: Column  # the classes; of a mixture the components; or numbers
    record: TrainingRecord = field(default_factory=TrainingRecord, kw_only=True)

    @property
    @abstractmethod
    def schema(self) -> Schema:
        """The columns, without cut points if there are several models."""

    @property
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return None

    @property
    @abstractmethod
    def n_parameters(self) -> int:
        """The number of free parameters."""

    @property
    @abstractmethod
    def rows(self) -> RowsToPredict:
        """The reader of rows to predict."""

    def with_record(self, **changed: Any) -> Self:
        """Return the same with other knowledge of the training rows."""
        return replace(self, record=replace(self.record, **changed))

    @abstractmethod
    def without_rows(self) -> Self:
        """Return a value of the same predictions, without sums, trace and labels, which may be large."""

    @abstractmethod
    def for_file(self) -> Self:
        """Return the value as a model file holds it."""

    def without_kept_rows(self) -> Self:
        """Return a value of the same predictions that keeps nothing of single rows, except what it predicts from."""
        return self.with_record(fingerprints=None, posteriors=None)

    @abstractmethod
    def check(self) -> None:
        """Raise ValueError unless the parts, which may come from a file, agree with each other."""


@dataclass(frozen=True)
class FittedClasses(FittedValue):
    """The result of a fit to classes, of one model or of a pool."""

    @property
    @abstractmethod
    def posterior(self) -> Posterior:
        """The models and their pool."""

    @property
    def training_posterior(self) -> Posterior:
        """The posterior under the class prior of the training rows."""
        return self.posterior

    @abstractmethod
    def with_priors(self, priors: Any) -> Self:
        """Return the value under other class shares; see `Decides.with_priors`."""

    @property
    @abstractmethod
    def parts(self) -> dict[str, Fitted]:
        """The models by their title in messages: this one, or the members of a pool."""

    if TYPE_CHECKING:  # fields of pools, which properties of this class would hide

        @property
        def members(self) -> Mapping[str, Fitted]:
            """The members of a pool by name; empty for one model."""

        @property
        def weights(self) -> Mapping[str, float]:
            """The weights of the members of a pool."""

        @property
        def skipped(self) -> Mapping[str, str]:
            """Why candidates of a pool were left out."""

        @property
        def language_note(self) -> str | None:
            """The sentence on candidates that a language leaves out of a pool."""

        @property
        def results(self) -> dict[str, list[Any]] | None:
            """The cross-validated scores of the candidates of a pool."""

        @property
        def out_of_fold(self) -> Any:
            """The held-out predictions that a pool keeps in this process; None for one model."""

    @property
    def first(self) -> Fitted:
        """The first model: all have the same columns and classes."""
        return next(iter(self.parts.values()))

    @cached_property
    def classes(self) -> Array:
        """The classes, (C,)."""
        return write_column(self.target)

    @cached_property
    def meaning(self) -> Categories:
        """The classes, in their order if they have one."""
        return Categories.of(self.target)

    def answer(self, batch: Batch) -> Answer:
        """Return p(y | x) of rows, (n, C), the classes in their order if they have one."""
        posterior = self.posterior.posterior(batch)
        order = list(self.target.order)
        return Answer(self.target.name or "class", self.meaning, posterior[:, order] if order else posterior)

    @property
    def schema(self) -> Schema:
        """The columns, without cut points if there are several models."""
        return self.posterior.schema

    @property
    def n_parameters(self) -> int:
        """The number of free parameters."""
        return self.posterior.n_parameters

    @property
    def is_trained(self) -> bool:
        """Whether it was learned from rows, and not made of parameters."""
        return self.first.statistics is not None

    @cached_property
    def predictor(self) -> FittedPosterior:
        """The posterior with the reader of its rows."""
        return FittedPosterior(
            self.posterior, self.target, self.recipe.name, learned=self.is_trained, ranges=self.ranges
        )

    @property
    def rows(self) -> RowsToPredict:
        """The reader of rows to predict."""
        return self.predictor.rows


@dataclass(frozen=True)
class Fitted(FittedClasses):
    """A learned model with its sums, and what is known of the rows."""

    model: GenerativeModel
    statistics: JointStatistics | None = None  # None of a model that was made of parameters
    trace: Array | None = None  # log-likelihoods before each M-step, in nats
    label_confusion: Array | None = None  # (C, C), if labels are noisy
    unlabelled_weight: float | None = None  # of a row without label; None if the estimator has no such parameter
    converged: bool | None = None  # whether EM has; None if it is not reported
    classes_closed: bool = False  # whether all classes were declared on the first call
    transduction: Array | None = None  # labels that the model infers for its training rows; not in files

    @cached_property
    def posterior(self) -> Posterior:
        """The model as a posterior."""
        return Posterior((self.model,))

    @property
    def parts(self) -> dict[str, Fitted]:
        """The model by its title."""
        return {f"this {self.recipe.name}": self}

    @property
    def members(self) -> Mapping[str, Fitted]:
        """None: it is one model."""
        return {}

    results = out_of_fold = language_note = None  # of pools
    weights = skipped = cast(Any, MappingProxyType({}))

    @property
    def first(self) -> Fitted:
        """The model itself."""
        return self

    @property
    def schema(self) -> Schema:
        """The columns."""
        return self.model.schema

    @property
    def ranges(self) -> ColumnRanges | None:
        """Ranges of the columns in the training rows; None if they are unknown."""
        return None if self.statistics is None else self.statistics.ranges

    @property
    def class_count(self) -> Array:
        """Weight of the training rows of each class, (C,)."""
        assert self.statistics is not None
        return np.bincount(self.model.of_class or range(len(self.target.categories)), self.statistics.weight)

    @property
    def component_classes(self) -> Array:
        """Class of each component, (Z,)."""
        of_component: Array = self.classes[list(self.model.of_class or range(len(self.classes)))]
        return of_component

    def with_priors(self, priors: Any) -> Self:
        """Return the model with another class prior."""
        with np.errstate(divide="ignore"):
            log_prior, former = np.log(check_priors(priors, self.target)), self.model.class_log_prior
        if (unknown := np.flatnonzero(np.isneginf(former) & ~np.isneginf(log_prior))).size:
            label = self.target.categories[unknown[0]]
            raise ValueError(f"priors names class {label!r}, which no training row with a weight has; give it 0")
        shares = tuple(np.exp(log_prior).tolist())
        record = self.record.of_other_shares(np.where(np.isneginf(former), 0.0, log_prior - former))
        return replace(
            self, recipe=self.recipe.with_(priors=shares), model=self.model.with_class_prior(log_prior), record=record
        )

    def without_rows(self) -> Self:
        """Return a value of the same predictions, without sums, trace and labels, which may be large."""
        return replace(self, statistics=None, trace=None, transduction=None)

    def for_file(self) -> Self:
        """Return the value as a model file holds it."""
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
        if self.statistics is not None:
            # Files of earlier versions hold densities without groups of categories.
            asked, found = (
                [(type(ungrouped(block.density)), block.columns) for block in blocks]
                for blocks in (self.recipe.blocks(model.schema), model.blocks)
            )
            require(found == asked, f"a {self.recipe.name} with these parameters has other densities")
            components = self.recipe.components(target)
            check_equal("the parameter components_per_class", model.of_class, components)
