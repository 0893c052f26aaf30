"""A class prior times class-conditional densities: the way of `fit` from rows to a model, and the fitted values."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import OneModel
from posteriori.classifiers.partitions import supports_partitions
from posteriori.fitting.estimate_warnings import warn_of_one_class
from posteriori.fitting.fitted import Fitted
from posteriori.fitting.learn import fit
from posteriori.fitting.parameter_groups import Columns
from posteriori.fitting.update import add, fade, remove, warn_of_first_choices
from posteriori.model import Block, FactorWeights, GenerativeModel
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


@dataclass(kw_only=True, eq=False, repr=False)
class GenerativeEstimator(Classifier, OneModel):
    """A class prior times class-conditional densities, learned by adding up sufficient statistics.

    A subclass declares its parameters, and defines its densities and their columns (`_blocks`). `fit` reads what the
    parameters ask, learns from the statistics of rows (`posteriori.fitting`), and sets the fitted value.
    """

    priors: Any = None
    columns: Columns | None = None
    n_jobs: int | None = None

    @abstractmethod
    def _blocks(self, schema: Schema) -> tuple[Block, ...]:
        """Return the densities and their columns."""

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
            labels, which EM infers unless ``labels=po.Labels(unlabelled="ignore")``. Or a table of booleans (n, C),
            with one column per class: the possible classes of each row. Whole numbers that look like a quantity are an
            error: more than 20 distinct ones, with fewer than 100 rows each on average, other than 0, 1, …, K − 1 and
            1, 2, …, K. `posteriori.reading.quantile_classes` cuts them into classes; strings are always classes.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0; a row of weight k counts as k rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            Every label is missing, a cell is infinite or out of the support of its distribution, two columns have the
            same name, or a weight is negative. The message names the place and the remedy.
        TypeError
            X is not a table, or a column holds something other than numbers, strings and booleans.

        Warns
        -----
        UserWarning
            There is only one class, or the rows do not determine an estimate.
        """
        self.fitted_ = fit(self.recipe, X, y, sample_weight)
        warn_of_one_class(self.target_, self.schema_.target)
        return self

    # Updates ----------------------------------------------------------------------------------------------------

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; after the last call the model equals one fit of all rows.

        The exceptions are a model that fills in missing cells by EM, such as `GaussianDiscriminant`: each call expects
        the cells of its rows under the model of that call; and what the first call chooses for all: cut points of bins,
        parents of `KDependenceBayes`, trees of a forest, groups of categories, parts of dates. A warning says so.

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
            Cells are missing that the model needs, so that the sums are expected values; or the first rows chose what
            this call keeps.
        """
        recipe = self.recipe
        if self._is_fitted:
            self.fitted_ = add(replace(self._value, recipe=recipe), X, y, sample_weight, classes)
            warn_of_first_choices(self.fitted_, "partial_fit")
        else:
            self.fitted_ = fit(recipe, X, y, sample_weight, classes, complete=False)
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
        self.fitted_ = remove(replace(self._value, recipe=self.recipe), X, y, sample_weight)
        warn_of_first_choices(self.fitted_, "unlearn")
        return self

    def forget(self, keep: float) -> Self:
        """Multiply the weight of all rows so far by a factor, so that later rows count for more.

        With one call before each `partial_fit`, the model is that of one fit in which the rows of a batch have the
        weight ``keep ** age``, where the last batch has age 0. Cut points, parents and trees stay, as in `partial_fit`.

        Parameters
        ----------
        keep : float
            Above 0 and at most 1. Batches of n rows then weigh at most n / (1 - keep) together.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            `keep` is out of its range; or the model is no sum over rows, as after EM. The model is unchanged.

        Examples
        --------
        >>> import posteriori as po
        >>> model = po.NaiveBayes().fit([["u"], ["v"]], ["a", "b"])
        >>> model.forget(0.5).partial_fit([["v"]], ["a"]).class_count_
        array([1.5, 0.5])
        """
        if not 0.0 < keep <= 1.0:
            raise ValueError(f"keep is {keep!r}; give a factor above 0 and at most 1, such as 0.9")
        self.fitted_ = fade(replace(self._value, recipe=self.recipe), keep)
        warn_of_first_choices(self.fitted_, "forget")
        return self

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("joint_log_probability")
    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C), with missing cells integrated out.

        Raises
        ------
        ValueError
            The model is a sum of trees, which has no p(x, y).
        """
        if self.model_.is_sum_of_trees:
            raise ValueError("a sum of trees has no p(x, y); use predict_log_proba for log p(y | x)")
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
        self._part(self._value.statistics, "has not counted any rows")
        return self._value.class_count

    @property
    def component_classes_(self) -> Array:
        """Class of each component, (Z,), in the order of the rows of fitted parameters."""
        return self._value.component_classes

    def _set_model(self, model: GenerativeModel, target: Column) -> Self:
        """Take a model that was made of parameters."""
        self.fitted_ = Fitted(self.recipe, target, model)
        return self
