"""A class prior times class-conditional densities: the way of `fit` from rows to a model, and the fitted values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.rows import supports_partitions
from posteriori.fitting.estimate_warnings import warn_of_one_class
from posteriori.fitting.fitted import Fitted, FittedAttributes
from posteriori.fitting.learn import add_rows, checked_fit, fitted_of, learn_rows
from posteriori.fitting.parameter_groups import columns_of, em_of, labels_of
from posteriori.fitting.recipe import ModelRequest
from posteriori.fitting.rows import read_first_rows, read_further_rows
from posteriori.fitting.update import remove_rows
from posteriori.learning.fit import FitResult, Plan, TrainingRows
from posteriori.learning.importance import HeldOutRows
from posteriori.model import Block, FactorWeights, Posterior, Prior
from posteriori.statistics import ColumnRanges
from posteriori.support.checks import check_equal
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


class GenerativeEstimator(FittedAttributes, Classifier):
    """A class prior times class-conditional densities, learned by adding up sufficient statistics.

    A subclass declares its parameters, and defines its densities and their columns (`_blocks`). `fit` reads what the
    parameters ask (`request.py`), learns from the statistics of rows (`fitting.py`), and sets the fitted value.
    """

    distributions: Any = None
    priors: Any
    feature_weights: Any = None
    backoff: Any = None
    random_state: Any = None
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
            `posteriori.reading.scan_sql`; a Dask DataFrame or array, a Spark DataFrame. A lazy table (a polars
            LazyFrame, a DuckDB relation) is computed and held in memory. The model equals that of the
            same rows in memory.
        y : array-like (n,) or str; optional for files that were scanned with a target
            The label of each row, or the name of the column of X that holds the labels. NaN, None and null are missing
            labels; EM infers them if ``labels=po.Labels(unlabelled="learn")``. Or a table of booleans (n, C), with one
            column per class: the possible classes of each row. Whole numbers that look like a quantity are an error:
            more than 20 distinct ones, with fewer than 100 rows each on average, other than 0, 1, …, K − 1 and
            1, 2, …, K. `posteriori.reading.quantile_classes` cuts them into classes; strings are always classes.
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
        self.fitted_ = learn_rows(self._checked_request(), X, y, sample_weight)
        warn_of_one_class(self.target_, self.schema_.target)
        return self

    def model_request(self) -> ModelRequest:
        """Return what the parameters ask of a fit."""
        return ModelRequest(
            type(self).__name__,
            columns_of(self),
            labels_of(self),
            em_of(self) if "em" in self._parameter_constraints else None,
            "labels" in self._parameter_constraints,
            self.distributions,
            self.priors,
            self.feature_weights,
            isinstance(self.backoff, str),
            self.reads_counts,
            self.takes_two_values,
            self.random_state,
            self.n_jobs,
            self._blocks,
            self._check_size,
        )

    def _checked_request(self) -> ModelRequest:
        """Return what the parameters ask of a fit; ValueError that names a parameter of a wrong type or value."""
        self._validate_params()
        return self.model_request()

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
        before = self.fitted_ if self._is_fitted else None
        self.fitted_ = add_rows(self._checked_request(), before, X, y, sample_weight, classes)
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
        before = self._value
        self.fitted_ = remove_rows(self._checked_request(), before, X, y, sample_weight)
        return self

    # The steps of a fit, for algorithms that learn several models from one pass ---------------------------------

    def read_training_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read training rows, and infer the schema and the classes from them; see `read_first_rows`."""
        return read_first_rows(self._checked_request(), X, y, sample_weight, classes=classes, complete=complete)

    def read_learned_rows(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, classes: Any = None, complete: bool = True
    ) -> TrainingRows:
        """Read rows under the fitted model, extended by new categories and classes; see `read_further_rows`."""
        request = self._checked_request()
        return read_further_rows(request, self._value, X, y, sample_weight, classes=classes, complete=complete)

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
        return self.model_request().plan(schema, target)

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
        return fitted_of(self.model_request(), learned, target, unlabelled_weight)

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
        fitted = checked_fit(self.model_request(), fit, rows.target, rows.source.unlabelled_weight)
        warn_of_one_class(rows.target, rows.source.schema.target)
        record = fitted.record if held_out is None else fitted.record.with_held_out(held_out)
        self.fitted_ = replace(fitted, record=record)
        return self

    def component_prior(self, target: Column) -> Prior:
        """Return the prior of the components of all classes."""
        return self.model_request().prior(target)

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
        request = self.model_request()
        fitted.check_blocks(request.blocks(fitted.schema), request.name)
        check_equal("the parameter components_per_class", fitted.model.of_class, request.components(fitted.target))
