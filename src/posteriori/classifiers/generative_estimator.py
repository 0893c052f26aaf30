"""A class prior times class-conditional densities: the way of `fit` from rows to a model, and the fitted values."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import replace
from numbers import Real
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.fitted import Fitted, FittedAttributes
from posteriori.classifiers.parameters import check_priors
from posteriori.classifiers.rows import read_first_rows, read_further_rows, supports_partitions
from posteriori.classifiers.updating import collect_further, warn_of_expected_sums, without_rows
from posteriori.classifiers.validation import (
    Columns,
    components_of,
    em_of,
    em_options_of,
    labels_of,
    warn_of_contradicted_labels,
    warn_of_empty_columns,
    warn_of_few_rows,
    warn_of_one_class,
    warn_of_undetermined,
)
from posteriori.learning.cut_points import binned_schema
from posteriori.learning.fit import (
    Collect,
    CollectedRows,
    EMOptions,
    FitResult,
    Plan,
    TrainingRows,
    learn,
    needs_em,
    unrefined,
    warn_not_converged,
    without_groups,
)
from posteriori.learning.importance import HeldOutRows
from posteriori.learning.work_bounds import WorkCounts, announce_em, announce_work, n_incomplete
from posteriori.model import Block, FactorWeights, GenerativeModel, Posterior, Prior, bins_of
from posteriori.sources import LabelledSource
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import check_equal
from posteriori.support.typing import Array
from posteriori.tables import Batch, Column, Scan, Schema
from posteriori.tables.messages import UnseenCategoryError
from posteriori.tables.polars import LazyTable

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


class GenerativeEstimator(FittedAttributes, Classifier):
    """A class prior times class-conditional densities, learned by adding up sufficient statistics.

    A subclass declares its parameters, and defines its densities and their columns (`_blocks`). `fit` reads rows
    (`training_rows.py`), collects their statistics, learns the model, and stores it, in this order below.
    """

    distributions: Any = None
    columns: Columns | None
    priors: Any
    feature_weights: Any = None
    reads_counts: ClassVar[bool] = False
    """Whether the model reads columns of counts; to others a sparse block is an error, except as members of a pool."""
    takes_two_values: ClassVar[bool] = True
    """Whether columns of two whole numbers are categories by default (`two_values`)."""

    @abstractmethod
    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return the densities and their columns."""

    def _check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError, before memory is allocated, if the model would take more than allowed."""

    # The way of a fit -------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from labelled rows; a previous fit is discarded.

        Parameters
        ----------
        X : array-like, data frame or path (n, d)
            NumPy, a list of rows, pandas, polars, pyarrow or anything that narwhals reads. NaN, None and null are
            missing cells. Strings, booleans and categories are categorical, other numbers continuous, except
            those with two values such as 0 and 1 (`Columns.categorical_features`). Also tables
            outside this process's memory: files by their path, or by `posteriori.scan` with options; a DuckDB query by
            `posteriori.tables.scan_sql`; a Dask DataFrame or array, a Spark DataFrame. A lazy table (a polars
            LazyFrame, a DuckDB relation) is computed and held in memory. The model equals that of the
            same rows in memory.
        y : array-like (n,) or str; optional for files that were scanned with a target
            The label of each row, or the name of the column of X that holds the labels. NaN, None and null are missing
            labels; EM infers them if ``labels=po.Labels(unlabelled="learn")``. Or a table of booleans (n, C), with one
            column per class: the possible classes of each row. Whole numbers that look like a quantity are an error:
            more than 20 distinct ones, with fewer than 100 rows each on average, other than 0, 1, …, K − 1 and
            1, 2, …, K. `posteriori.tables.quantile_classes` cuts them into classes; strings are always classes.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0; a row of weight k counts as k rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A label is missing, a cell is infinite or out of the support of its distribution, two columns have the same
            name, or a weight is negative. The message names the place and the remedy.
        TypeError
            X is not a table, or a column holds something other than numbers, strings and booleans.

        Warns
        -----
        UserWarning
            There is only one class, or the rows do not determine an estimate.
        """
        self._fit_rows(X, y, sample_weight)
        warn_of_one_class(self.target_, self.schema_.target)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self.fitted_ = self._learn(self._first_statistics(X, y, None, sample_weight, complete=True))
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

    def _collect_statistics(self, X: Any, y: Any, classes: Any, sample_weight: Any, complete: bool) -> CollectedRows:
        """Read rows, choose the cut points of binned columns, and collect the statistics."""
        rows = self.read_training_rows(X, y, sample_weight, classes=classes, complete=complete)
        plan = self.training_plan(rows.source.schema, rows.target)
        blocks = plan.blocks
        self._check_plan(rows.source, blocks, complete)
        announce_work([plan], rows.source.schema, WorkCounts(rows.source.table.n_rows, 0, rows.target.cardinality))
        if rows.source.label_model is not None:  # groups are chosen from counts of known components
            blocks = without_groups(blocks)
        source, bins = rows.source, bins_of(blocks)
        if bins:  # cut points are chosen by the recorded labels, as if these were the components
            source = source.with_schema(binned_schema(source.with_label_model(None), bins, self.n_jobs))
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

    def _learn(self, collected: CollectedRows) -> Fitted:
        """Learn the model from statistics of rows and of earlier rows."""
        source, target, blocks = collected.rows.source, collected.rows.target, collected.blocks
        prior, options, statistics = self.component_prior(target), self._em_options(), collected.statistics
        n_components = max(target.cardinality, len(prior.of_class))
        if statistics.hidden > 0:
            announce_em(blocks, source.table.n_rows, n_components, options.n_starts, options.max_steps, hidden=True)
        elif needs_em(blocks, statistics):
            n_rows = n_incomplete(blocks, statistics.blocks, source.table.n_rows)
            announce_em(blocks, n_rows, n_components, 1, options.max_steps, hidden=False)
        fit = learn(source, blocks, prior, collected.past, statistics, options)
        learned = replace(fit, model=self._weighed(fit, source))
        fitted = self._fitted_with_warnings(learned, target, source.unlabelled_weight)
        labels = self._inferred_labels(fitted, source.with_label_model(fit.label_model))
        return replace(fitted, transduction=labels)

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

            model = learn_backoff(source, learned, self.component_prior(source.classes), to_observed_codes, sample)
        if self.feature_weights is None:
            return model
        if self.feature_weights == "cells":
            from posteriori.learning.cells import learn_cells

            weights = learn_cells(source, model, learned.statistics, to_observed_codes, sample)
        else:
            from posteriori.learning.weights import learn_weights

            weights = learn_weights(source, model, learned.statistics, to_observed_codes, start, sample)
        return replace(model, weights=weights)

    def _fitted_with_warnings(self, learned: FitResult, target: Column, unlabelled_weight: float | None) -> Fitted:
        """Return the fitted value; warn of estimates that the rows do not determine."""
        fitted = self.fitted_of(learned, target, unlabelled_weight)
        warn_not_converged(learned, self._em_options())
        if learned.model.of_class:
            warn_of_few_rows(learned.statistics.weight)
        warn_of_contradicted_labels(learned.label_model)
        warn_of_empty_columns(learned.model, learned.statistics)
        warn_of_undetermined(learned.model, learned.statistics, fitted.component_classes.tolist())
        return fitted

    def fitted_of(self, learned: FitResult, target: Column, unlabelled_weight: float | None = 1.0) -> Fitted:
        """Return a learned model as a fitted value.

        Parameters
        ----------
        learned : FitResult
            Of a fit under `training_plan`.
        target : Column
            The classes.
        unlabelled_weight : float, optional
            Weight of a row without label.
        """
        confusion = None if learned.label_model is None else learned.label_model.confusion
        weight = unlabelled_weight if hasattr(self, "labels") else None
        return Fitted(learned.model, target, learned.statistics, np.array(learned.trace), confusion, weight)

    def _inferred_labels(self, fitted: Fitted, source: LabelledSource) -> Array | None:
        """Return the labels of the training rows, (n,), if the model infers missing or noisy labels."""
        if isinstance(source.table, LazyTable):  # the labels of all rows might not fit into memory; use predict
            return None
        if labels_of(self).ignores_unlabelled:
            return None
        if source.labels is None or not (source.labels.may_miss or labels_of(self).label_noise is not None):
            return None
        model = fitted.model
        source = source.with_schema(model.schema)

        def infer(batch: Batch) -> Array:
            with np.errstate(divide="ignore"):
                best: Array = model.by_class(np.log(model.responsibilities(batch)[0])).argmax(axis=1)
            return best

        inferred: Array = fitted.classes[source.map(infer)]
        return inferred

    # Updates ----------------------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; after the last call the model equals one fit of all rows.

        The exception is a model that fills in missing cells by EM, such as `GaussianDiscriminant`: each call expects
        the cells of its rows under the model of that call. A warning says so.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. An unseen category extends the model. The first values of a column that had none so far decide
            whether it is continuous or categorical. The cut points of binned columns are those of the first call, so
            that call should have many rows.
        classes : array-like, optional
            All classes, on the first call. A label outside of them is an error. Without `classes`, a new class extends
            the model.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; or a parameter needs a second pass over all rows.

        Warns
        -----
        UserWarning
            Cells are missing that the model needs, so that the sums are expected values.
        """
        if not self._is_fitted:
            first = self._learn(self._first_statistics(X, y, classes, sample_weight, complete=False))
            self.fitted_ = replace(first, classes_closed=classes is not None)
            return self
        before = self.fitted_
        if before.statistics is None:
            raise ValueError("this model was built from parameters, which do not contain the number of rows; use fit")
        collected = collect_further(self, X, y, classes, sample_weight)
        learned = self._learn(collected)
        warn_of_expected_sums(type(self).__name__, collected)
        self.fitted_ = replace(learned, classes_closed=before.classes_closed, record=before.record.of_other_model())
        return self

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Subtract rows from the model, as if it had never learned from them.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Rows that the model has learned from, by `fit` or `partial_fit`, with weights of at most those given then.
            Cut points and the parents of `KDependenceBayes` do not change, as in `partial_fit`. Categories and classes
            that have no row left remain with a count of 0; a fit of the other rows would not contain them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The model cannot have learned from these rows: a class, a category or a combination of categories has less
            weight than the rows, or a number lies too far from the others. The message names the class and the column.
            Or no row would be left. Or the model was learned by EM, with ``feature_weights="conditional"``, or in two
            passes (Ledoit & Wolf), so that its statistics are not sums over single rows. The model is unchanged.

        Notes
        -----
        Counts of rows with whole weights equal those of the other rows exactly. Means and scatters follow from the
        inverse of the update of Chan, Golub & LeVeque, and agree to 1e-9 of the column's scatter before, at any offset.
        A warning names a column whose scatter shrinks so much that few digits are left.

        Not every row that the model has not learned from is detected: a row similar to the training rows is subtracted
        as if it were one of them.

        Cost: one pass over the rows to subtract, and one estimate.

        Examples
        --------
        >>> import posteriori as po
        >>> X, y = [["u"], ["u"], ["v"], ["v"]], ["a", "a", "a", "b"]
        >>> model = po.NaiveBayes().fit(X, y)
        >>> model.unlearn([["v"]], ["a"]).class_count_
        array([2., 1.])
        """
        self.fitted_ = without_rows(self, X, y, sample_weight)
        return self

    # The steps of a fit, for algorithms that learn several models from one pass ---------------------------------

    def read_training_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read training rows, and infer the schema and the classes from them; see `read_first_rows`."""
        return read_first_rows(self, X, y, sample_weight, classes=classes, complete=complete)

    def read_learned_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read rows under the fitted model, extended by new categories and classes; see `read_further_rows`."""
        return read_further_rows(self, X, y, sample_weight, classes=classes, complete=complete)

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
        cells = self.feature_weights == "cells"
        return Plan(
            self._blocks(schema),
            self.component_prior(target),
            self._em_options(),
            weighed,
            labels_of(self).may_miss,
            cells,
        )

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
        fitted = self._fitted_with_warnings(fit, rows.target, rows.source.unlabelled_weight)
        warn_of_one_class(rows.target, rows.source.schema.target)
        record = fitted.record if held_out is None else fitted.record.with_held_out(held_out)
        self.fitted_ = replace(fitted, record=record)
        return self

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
        of_class, given = components_of(em_of(self).components_per_class, target), self.priors
        if given is None or isinstance(given, Real):
            return Prior(float(given or 0.0), of_class=of_class)
        return Prior(fixed=check_priors(given, target), of_class=of_class)

    def _em_options(self) -> EMOptions:
        """Return when EM ends."""
        return em_options_of(em_of(self), self.random_state) if hasattr(self, "em") else EMOptions()

    # Predicting -------------------------------------------------------------------------------------------------

    @property
    def _posterior(self) -> Posterior:
        return Posterior((self.model_,))

    @property
    def _model_titles(self) -> tuple[str]:
        return (f"this {type(self).__name__}",)

    @property
    def _model_ranges(self) -> tuple[ColumnRanges | None]:
        return (self._ranges,)

    @supports_partitions("joint_log_probability")
    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C), with missing cells integrated out."""
        return self._source(X).map(self.model_.log_joint)

    def to_network(self) -> BayesianNetwork:
        """Return the joint distribution as a Bayesian network, in which the class is a parent of every feature.

        The states of a column of numbers that the model cuts into bins are these bins, such as "[39.2, 43.3)".

        Raises
        ------
        ValueError
            A column holds numbers that are not in bins and not normal given the class, or the model is not a network.
            Naive Bayes, trees that all classes share, `KDependenceBayes`, and discriminant analysis are networks.
        """
        from posteriori.networks.conversion import network_of

        return network_of(self.model_, self.target_)

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> Array:
        """The classes, (C,)."""
        return self._value.classes

    @property
    def label_confusion_(self) -> Array:
        """p(label | class), (C, C), if labels are noisy."""
        return np.asarray(self._part(self._value.label_confusion, "has no noisy labels"))

    @property
    def transduction_(self) -> Array:
        """The labels of the training rows, (n,), those that the model infers included."""
        return np.asarray(self._part(self._value.transduction, "inferred no labels of training rows"))

    @property
    def unlabelled_weight_(self) -> float:
        """Weight of a row without label."""
        weight: float = self._part(self._value.unlabelled_weight, "has no weight of rows without label")
        return weight

    @property
    def feature_weights_(self) -> Array:
        """Weight of the log factor of each feature, (d,), ≥ 0, if they were learned."""
        return self._factor_weights.weight

    @property
    def class_bias_(self) -> Array:
        """Biases that replace the log prior in whole rows if factors have weights, in nats, (C,)."""
        return self._factor_weights.bias

    @property
    def _factor_weights(self) -> FactorWeights:
        if self.model_.weights is None:
            raise AttributeError(
                f'this {type(self).__name__} has no feature weights; fit it with feature_weights="conditional"'
            )
        return self.model_.weights

    @property
    def class_count_(self) -> Array:
        """Weight of the rows of each class, (C,)."""
        statistics = self._part(self._value.statistics, "has not counted any rows")
        return np.bincount(self.model_.of_class or range(len(self.classes_)), statistics.weight)

    @property
    def component_classes_(self) -> Array:
        """Class of each component, (Z,), in the order of the rows of fitted parameters."""
        return self._value.component_classes

    def _check_fitted(self) -> None:
        """Raise ValueError unless the fitted attributes, which may come from a file, agree with each other."""
        fitted = self._value
        fitted.check()
        if fitted.statistics is None:
            return
        fitted.check_blocks(self._blocks(fitted.schema), type(self).__name__)
        of_class = components_of(em_of(self).components_per_class, fitted.target)
        check_equal("the parameter components_per_class", fitted.model.of_class, of_class)
