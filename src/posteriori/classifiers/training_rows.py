"""Reading of training rows: the schema of the features, the classes, the labels and their weights."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone

from posteriori.classifiers.model_estimator import ModelEstimator
from posteriori.classifiers.validation import (
    components_of,
    labels_to_learn,
    make_label_model,
    reject_quantity,
    text_places,
)
from posteriori.learning.em import EMOptions, FitResult
from posteriori.learning.training import Plan, TrainingRows
from posteriori.model import FactorWeights, GenerativeModel, Prior
from posteriori.model_selection.held_out import held_out_weight
from posteriori.sources import LabelledSource, source_of
from posteriori.tables import (
    Batch,
    Column,
    LabelModel,
    Labels,
    PartialLabels,
    Schema,
    Table,
    check_weights,
    infer_schema,
    read_labels,
    read_table,
    read_teaching_labels,
)
from posteriori.tables.columns import categorical_column
from posteriori.tables.missing import is_missing
from posteriori.tables.texts import CountedText, Texts


class TrainingRowReader(ModelEstimator):
    """Reads labelled rows, and plans the fit: densities, prior and limits of EM."""

    unlabelled: Any = "error"
    unlabelled_weight: Any = 1.0
    components_per_class: Any = None
    label_noise: Any = None
    feature_weights: Any = None
    text: Any = None
    _classes_closed: bool = False
    reads_counts: ClassVar[bool] = False
    """Whether the model reads columns of counts; to others a sparse block is an error, except as members of a pool."""

    @abstractmethod
    def _prior(self, classes: Column) -> Prior:
        """Return the class prior."""

    @abstractmethod
    def _em_options(self) -> EMOptions:
        """Return when EM ends."""

    def _check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError, before memory is allocated, if the model would take more than allowed."""

    def read_training_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read training rows, and infer the schema and the classes from them.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.
        classes : array-like, optional
            All classes; default: those among the labels.
        complete : bool, default True
            Whether these are all training rows. EM needs all of them: if more follow, hidden labels are an error.

        Returns
        -------
        TrainingRows
            The rows with their schema, labels and weights, and the classes.

        Raises
        ------
        ValueError, TypeError
            As in `fit`.
        """
        self._validate_params()
        table = read_table(X)
        labels = self._read_labels(y, table, complete)
        columns = _feature_positions(table, labels)
        names = [table.names[j] for j in columns]
        chosen, kept = self._categorical(names), self._kept(names)
        keep = None if kept is None else [columns[j] for j in kept]
        declared = [columns[j] for j in chosen]
        counted: dict[int, CountedText] = {}
        schema = infer_schema(
            table,
            columns,
            declared,
            labels.name,
            keep=keep,
            dates=self.dates,
            reads_counts=self.reads_counts,
            texts=self._texts(columns, names, chosen),
            counted=counted,
        )
        target = _declared_classes(classes, labels)
        places = schema.spread(columns)
        return self._assemble(table, schema, places, labels, target, sample_weight, complete, counted)

    def read_learned_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read rows under the schema and the classes of the fitted model, extended by new categories and classes.

        Parameters
        ----------
        X, y, sample_weight
            As in `partial_fit`.
        classes : array-like, optional
            All classes; they must be the same as on the first call.
        complete : bool, default True
            As in `read_training_rows`.

        Returns
        -------
        TrainingRows
            Its schema and target equal those of the model if the rows have no new category and no new class.

        Raises
        ------
        ValueError, TypeError
            As in `partial_fit`.
        """
        self._validate_params()
        table = read_table(X)
        labels = self._read_labels(y, table, complete)
        _feature_positions(table, labels)  # raises an error if the target is the only column
        positions = self._places(table, target=labels.name)
        counted: dict[int, CountedText] = {}
        schema = self._extended_schema(table, positions, counted)
        target = self._extended_classes(classes, labels)
        return self._assemble(table, schema, positions, labels, target, sample_weight, complete, counted)

    def training_plan(self, schema: Schema, target: Column) -> Plan:
        """Return the plan of a fit to rows of a schema.

        Parameters
        ----------
        schema : Schema
            The features.
        target : Column
            The classes.

        Returns
        -------
        Plan
            The densities and their columns, the prior of the components, when EM stops, and how factor weights are
            learned if the estimator has them.
        """
        weighed = self._weighed if self.leaves_rows_out else None
        learns = not (isinstance(self.unlabelled, str) and self.unlabelled == "error")
        cells = self.feature_weights == "cells"
        return Plan(self._blocks(schema), self.component_prior(target), self._em_options(), weighed, learns, cells)

    @property
    def leaves_rows_out(self) -> str:
        """The parameter that is learned from leave-one-out predictions, for messages; empty if none is."""
        if self._learns_backoff:
            return 'backoff="learned"'
        return "" if self.feature_weights is None else f'feature_weights="{self.feature_weights}"'

    @property
    def _learns_backoff(self) -> bool:
        """Whether the strength of the back-off is learned."""
        return isinstance(getattr(self, "backoff", None), str)

    def component_prior(self, target: Column) -> Prior:
        """Return the prior of the components of all classes."""
        return replace(self._prior(target), of_class=components_of(self.components_per_class, target))

    def _weighed(
        self,
        learned: FitResult,
        source: LabelledSource,
        to_observed_codes: Callable[[Batch], Batch] | None = None,
        start: FactorWeights | None = None,
        sample: Batch | None = None,
    ) -> GenerativeModel:
        """Return the learned model, with a learned back-off and learned factor weights if the estimator has them."""
        model = learned.model
        if self._learns_backoff and source.classes is not None:
            from posteriori.learning.backoff import learn_backoff

            prior = replace(self._prior(source.classes), of_class=model.of_class)
            model = learn_backoff(source, learned, prior, to_observed_codes, sample)
        if self.feature_weights is None:
            return model
        if self.feature_weights == "cells":
            from posteriori.learning.cells import learn_cells as learn
        else:
            from posteriori.learning.weights import learn_weights as learn

        weights = learn(source, model, learned.statistics, to_observed_codes, start, sample)
        return replace(model, weights=weights)

    def _read_labels(self, y: Any, table: Table, complete: bool) -> Labels | PartialLabels:
        return labels_to_learn(read_teaching_labels(y, table), self.unlabelled, self._learns_unlabelled, complete)

    def _assemble(
        self,
        table: Table,
        schema: Schema,
        positions: Sequence[int],
        labels: Labels | PartialLabels,
        target: Column,
        sample_weight: Any,
        complete: bool,
        counted: Mapping[int, CountedText],
    ) -> TrainingRows:
        weight = check_weights(sample_weight, table.n_rows)
        label_model = self._label_model(target, isinstance(labels, PartialLabels))
        if label_model is not None and not complete:
            raise ValueError(
                "components_per_class and label_noise take EM over all rows, and partial_fit sees each once; use fit"
            )
        held_out = self.unlabelled_weight == "held_out"
        share = 1.0 if held_out else float(self.unlabelled_weight)
        texts = {
            j: counted[position].bags(schema.columns[j]) for j, position in enumerate(positions) if position in counted
        }
        source = source_of(
            table, schema, positions, labels, target, weight, None, self.n_jobs, share, label_model, texts=texts
        )
        rows = TrainingRows(source, target)
        if not (held_out and labels.may_miss):
            return rows
        # A clone plans, so that a generator given as random_state is not advanced.
        return rows.with_unlabelled_weight(held_out_weight(rows, clone(self).training_plan(schema, target)))

    @property
    def _learns_unlabelled(self) -> bool:
        """Whether the estimator has the parameter `unlabelled`, and so may learn from rows without label."""
        return "unlabelled" in self.get_params()

    def _label_model(self, target: Column, partial: bool) -> LabelModel | None:
        """Return the label model; None if the label of a row is its component."""
        return make_label_model(self.label_noise, components_of(self.components_per_class, target), partial, target)

    def _texts(self, columns: Sequence[int], names: Sequence[str], categorical: Collection[int]) -> Texts:
        """Return which columns of a table may be text, or are, from the positions and the names of the features."""
        return text_places(self.text if self.reads_counts else None, self.keep, columns, names, categorical)

    def _extended_schema(
        self, table: Table, positions: Sequence[int], counted: dict[int, CountedText] | None = None
    ) -> Schema:
        schema = self.model_.schema
        named = {j for j, place in enumerate(schema.places) if place in self._categorical(schema.given)}
        categorical = [
            position
            for j, (position, column) in enumerate(zip(positions, schema.columns, strict=True))
            if (j in named if column.has_no_kind else column.kind == "categorical")
        ]
        known: dict[int, tuple[Column, ...]] = {}
        for position, column in zip(positions, schema.columns, strict=True):
            if column.is_ignored or column.part is not None or column.text is not None:
                known[position] = (*known.get(position, ()), column)
        columns = list(dict.fromkeys(positions))
        reads_counts = self.reads_counts or bool(schema.of_kind("counts"))  # a member of a pool that leaves them out
        read = infer_schema(table, columns, categorical, known=known, reads_counts=reads_counts, counted=counted)
        return schema.extended(read, mixed=named)

    def _extended_classes(self, classes: Any, labels: Labels | PartialLabels) -> Column:
        if classes is not None:
            declared = _declared_classes(classes, labels)
            if declared.categories != self.target_.categories:
                raise ValueError(
                    f"classes={list(classes)!r} differs from that of the first call: {list(self.target_.categories)}"
                )
        return self.target_ if self._classes_closed else self.target_.extended(labels.infer())


def _feature_positions(table: Table, labels: Labels | PartialLabels) -> list[int]:
    columns = [j for j in range(len(table.names)) if not isinstance(labels, Labels) or j != labels.target_place]
    if not columns:
        raise ValueError(f"X has no column except the target {labels.name!r}; give at least one feature")
    return columns


def _declared_classes(classes: Any, labels: Labels | PartialLabels) -> Column:
    if classes is None:
        found = labels.infer()
        if not isinstance(labels, PartialLabels):
            reject_quantity(found, labels)
        return found
    if isinstance(classes, str) or not len(classes):
        raise ValueError(f"classes is {classes!r}; list the labels")
    if any(map(is_missing, classes)):
        raise ValueError("classes holds a missing label; leave it out")
    column = read_labels(classes, read_table(np.zeros((len(classes), 1)))).infer()
    return categorical_column(column.name, column.categories, column.dtype)
