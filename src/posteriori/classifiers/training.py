"""Learning of a generative classifier from rows: statistics, estimation or EM, and the fitted attributes."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from posteriori.classifiers.importance import MeasuresImportance
from posteriori.classifiers.seen_rows import forget_rows
from posteriori.classifiers.training_rows import TrainingRowReader
from posteriori.classifiers.validation import warn_of_empty_columns, warn_of_few_rows, warn_of_one_class
from posteriori.learning.cut_points import binned_schema, bins_of
from posteriori.learning.em import FitResult, learn, warn_not_converged
from posteriori.learning.fit import Collect
from posteriori.learning.importance import HeldOutRows
from posteriori.learning.retyping import retyped, with_missing_cuts
from posteriori.learning.training import TrainingRows
from posteriori.learning.two_pass import carry_over_structure, unrefined, with_categories_of, without_groups
from posteriori.learning.work_bounds import WorkCounts, check_work
from posteriori.model import Block, GenerativeModel
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Column, Scan, Schema
from posteriori.tables.lazy import LazyTable
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.writing import write_column
from posteriori.typing import Array


@dataclass(frozen=True)
class CollectedRows:
    """Rows, the densities and their columns, the statistics of the rows, and those of earlier rows."""

    rows: TrainingRows
    blocks: tuple[Block, ...]
    statistics: JointStatistics
    past: JointStatistics | None = None


class TrainedEstimator(MeasuresImportance, TrainingRowReader):
    """Learns a `GenerativeModel` from labelled rows, and stores it."""

    classes_: Array
    transduction_: Array
    label_confusion_: Array
    unlabelled_weight_: float

    def _check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError, before it is allocated, if the model would take more memory than allowed."""

    @abstractmethod
    def _warn_of_estimates(self, model: GenerativeModel, statistics: JointStatistics) -> None:
        """Warn of estimates that the rows did not determine."""

    def store_fit(self, fit: FitResult, rows: TrainingRows, held_out: HeldOutRows | None = None) -> Self:
        """Set the fitted attributes, as `fit` would with these rows.

        Parameters
        ----------
        fit : FitResult
            Result of a fit of the rows under `training_plan`.
        rows : TrainingRows
        held_out : HeldOutRows, optional
            Held-out rows, with the models that predict them; they measure the feature importance.

        Returns
        -------
        self

        Warns
        -----
        ConvergenceWarning
            EM stopped before it converged.
        UserWarning
            There is only one class, a component has hardly any rows, a column has no value, or the rows do not
            determine an estimate.
        """
        self._classes_closed = False
        self._store_fit(fit, rows.target, rows.source.unlabelled_weight)
        warn_of_one_class(rows.target, rows.source.schema.target, stacklevel=3)
        if held_out is not None:
            self._keep_held_out(held_out)
        return self

    def _first_statistics(self, X: Any, y: Any, classes: Any, sample_weight: Any, complete: bool) -> CollectedRows:
        """Read the rows of a first fit, and collect their statistics."""
        head_sample = X.head_sample() if isinstance(X, Scan) else None
        if head_sample is not None:
            try:
                return self._collect_statistics(head_sample, y, classes, sample_weight, complete)
            except UnseenCategoryError:  # later rows have categories that the first rows do not show
                pass
        return self._collect_statistics(X, y, classes, sample_weight, complete)

    def _further_statistics(self, X: Any, y: Any, classes: Any, sample_weight: Any) -> CollectedRows:
        """Read rows under the fitted model, and collect their statistics beside those of the earlier rows."""
        rows = self.read_learned_rows(X, y, sample_weight, classes=classes, complete=False)
        blocks = self._blocks(rows.source.schema)
        self._check_plan(rows.source, blocks, complete=False)
        source = rows.source.with_schema(with_missing_cuts(rows.source.schema, blocks))
        blocks = carry_over_structure(blocks, self.model_.blocks)
        components = rows.target.places_in(self.target_)
        blocks = with_categories_of(blocks, self.model_.schema, source.schema, components)
        past = self._past_statistics(source.schema, rows.target, blocks)  # raises its errors before the rows are read
        self._check_size(source.schema, rows.target)
        return CollectedRows(TrainingRows(source, rows.target), blocks, source.reduce(Collect(blocks)), past)

    def _collect_statistics(self, X: Any, y: Any, classes: Any, sample_weight: Any, complete: bool) -> CollectedRows:
        """Read rows, choose the cut points of binned columns, and collect the statistics."""
        rows = self.read_training_rows(X, y, sample_weight, classes=classes, complete=complete)
        blocks = self._blocks(rows.source.schema)
        self._check_plan(rows.source, blocks, complete)
        plan = self.training_plan(rows.source.schema, rows.target)
        check_work([plan], rows.source.schema, WorkCounts(rows.source.table.n_rows, 0, rows.target.cardinality))
        if rows.source.label_model is not None:  # groups are chosen from counts of known components
            blocks = without_groups(blocks)
        # Cut points are chosen by the recorded labels, as if these were the components.
        schema = binned_schema(rows.source.with_label_model(None), bins_of(blocks), self.n_jobs)
        source = rows.source.with_schema(schema)
        self._check_size(source.schema, rows.target)
        return CollectedRows(TrainingRows(source, rows.target), blocks, source.reduce(Collect(blocks)))

    def _check_plan(self, source: LabelledSource, blocks: tuple[Block, ...], complete: bool) -> None:
        """Raise ValueError if more rows follow and the plan needs all, or labels are hidden and it needs them."""
        wanted = unrefined(blocks)
        if wanted and not complete:
            raise ValueError(f"{wanted[0]} looks at all rows twice, and partial_fit sees each once; use fit")
        if wanted and source.label_model is not None:
            raise ValueError(
                f"{wanted[0]} needs known labels, and components_per_class, label_noise and a mask hide them; leave "
                "one of them out"
            )
        learned = self.leaves_rows_out
        if learned and source.label_model is not None:
            raise ValueError(
                f"{learned} leaves each row out of its class, and components_per_class, label_noise and a mask hide "
                "the class; leave one of them out"
            )
        if learned and not complete:
            raise ValueError(f"{learned} takes all rows at once, and partial_fit sees each once; use fit")

    def _learn(self, collected: CollectedRows) -> Self:
        """Learn the model from statistics of rows and of earlier rows, and store it."""
        source, target, blocks = collected.rows.source, collected.rows.target, collected.blocks
        prior = self.component_prior(target)
        fit = learn(source, blocks, prior, collected.past, collected.statistics, self._em_options())
        self._store_fit(replace(fit, model=self._weighed(fit, source)), target, source.unlabelled_weight)
        self._transduce(source.with_label_model(fit.label_model))
        return self

    def _begin(self, classes: Any) -> None:
        """Record whether the classes are declared, after the first rows; drop what is known of an earlier fit."""
        self._classes_closed = classes is not None
        self.__dict__.pop("target_cuts_", None)
        forget_rows(self)

    def _transduce(self, source: LabelledSource) -> None:
        """Set `transduction_`, the labels of the training rows, if the model infers missing or noisy labels."""
        if hasattr(self, "transduction_"):
            del self.transduction_
        if isinstance(source.table, LazyTable):  # the labels of all rows might not fit into memory; use predict
            return
        if source.labels is None or not (source.labels.may_miss or self.label_noise is not None):
            return
        model = self.model_
        source = source.with_schema(model.schema)

        def infer(batch: Batch) -> Array:
            with np.errstate(divide="ignore"):
                best: Array = model.by_class(np.log(model.responsibilities(batch)[0])).argmax(axis=1)
            return best

        self.transduction_ = self.classes_[source.map(infer)]

    def _store_fit(self, learned: FitResult, target: Column, unlabelled_weight: float = 1.0) -> Self:
        self._keep(learned, target, unlabelled_weight)
        warn_not_converged(learned, self._em_options(), stacklevel=6)
        if learned.model.of_class:
            warn_of_few_rows(learned.statistics.weight, stacklevel=6)
        warn_of_empty_columns(learned.model, learned.statistics)
        self._warn_of_estimates(learned.model, learned.statistics)
        return self

    def _keep(self, learned: FitResult, target: Column, unlabelled_weight: float = 1.0) -> None:
        """Set the fitted attributes, without warnings about estimates that the rows do not determine."""
        self.statistics_ = learned.statistics
        self.log_likelihood_trace_ = np.array(learned.trace)
        if "unlabelled_weight" in self.get_params():
            self.unlabelled_weight_ = unlabelled_weight
        self._set_model(learned.model, target)
        if hasattr(self, "label_confusion_"):
            del self.label_confusion_
        if learned.label_model is not None and learned.label_model.confusion is not None:
            self.label_confusion_ = learned.label_model.confusion

    def _set_model(self, model: GenerativeModel, target: Column) -> Self:
        self._forget_importance()
        self._set_fitted_attributes(model, target)
        self.classes_ = write_column(target)
        return self

    def _past_statistics(self, schema: Schema, target: Column, blocks: tuple[Block, ...]) -> JointStatistics:
        old = self.model_
        statistics = retyped(self.statistics_, old.schema, old.blocks, schema, blocks)
        if schema is old.schema and target is self.target_:
            return statistics
        moves = [
            [schema.columns[j].places_in(old.schema.columns[j]) for j in block.indexed(schema)] or None
            for block in blocks
        ]
        return statistics.reindexed(target.places_in(self.target_), moves)
