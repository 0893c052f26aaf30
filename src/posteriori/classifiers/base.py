"""Base class of the generative classifiers: fit, partial_fit, unlearn, and the fitted values that all have."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from posteriori.classifiers.predicting import PredictingEstimator
from posteriori.classifiers.removal import remove_rows
from posteriori.classifiers.training import TrainedEstimator
from posteriori.classifiers.validation import components_of, warn_of_one_class
from posteriori.invariants import check_equal, check_numbers, check_share
from posteriori.learning.importance import Predictor
from posteriori.model import FactorWeights
from posteriori.typing import Array


class GenerativeEstimator(TrainedEstimator, PredictingEstimator):
    """A class prior times class-conditional densities, with scikit-learn's methods.

    A subclass defines its densities and their columns (`_blocks`), its prior (`_prior`) and when EM stops
    (`_em_options`). Reading rows (`training_rows`), learning (`training`) and predicting (`predicting`) are the same
    for all.
    """

    priors: Any

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from labelled rows; a previous fit is discarded.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            NumPy, a list of rows, pandas, polars, pyarrow or anything that narwhals reads. NaN, None and null are
            missing cells. Strings, booleans and categories are categorical, other numbers continuous. Also tables
            outside this process's memory: files by `posteriori.scan`, a DuckDB query by `posteriori.scan_sql`, a Dask
            DataFrame or array, a Spark DataFrame. The model equals that of the same rows in memory.
        y : array-like (n,) or str; optional for files that were scanned with a target
            The label of each row, or the name of the column of X that holds the labels. NaN, None and null are missing
            labels; EM infers them if the parameter `unlabelled` allows it. Or a table of booleans (n, C), with one
            column per class: the possible classes of each row. Whole numbers that look like a quantity are an error:
            more than 20 distinct ones, with fewer than 100 rows each on average, other than 0, 1, …, K − 1 and
            1, 2, …, K. `posteriori.quantile_classes` cuts them into classes; strings are always classes.
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
        warn_of_one_class(self.target_, self.schema_.target, stacklevel=2)
        return self

    def _fit_rows(self, X: Any, y: Any, sample_weight: Any) -> Self:
        self._learn(self._first_statistics(X, y, None, sample_weight, complete=True))
        self._begin(None)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; after the last call the model equals one fit of all rows.

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
        """
        if not hasattr(self, "model_"):
            self._learn(self._first_statistics(X, y, classes, sample_weight, complete=False))
            self._begin(classes)
            return self
        if not hasattr(self, "statistics_"):
            raise ValueError("this model was built from parameters, which do not contain the number of rows; use fit")
        return self._learn(self._further_statistics(X, y, classes, sample_weight))

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
        return remove_rows(self, X, y, sample_weight)

    def _check_fitted(self) -> None:
        super()._check_fitted()
        self._check_importance(len(self.schema_.columns))
        if hasattr(self, "target_cuts_"):
            check_equal("the number of classes", len(self.target_cuts_.cuts) + 1, len(self.target_.categories))
        if hasattr(self, "statistics_"):
            check_equal(
                "the parameter components_per_class",
                self.model_.of_class,
                components_of(self.components_per_class, self.target_),
            )
        if hasattr(self, "label_confusion_"):
            n_classes = len(self.classes_)
            check_numbers("the confusion of labels", self.label_confusion_, (n_classes, n_classes), 0.0, 1.0 + 1e-6)
        check_share("the weight of rows without label", getattr(self, "unlabelled_weight_", 1.0))

    def _predictor(self) -> tuple[Predictor, Array]:
        return Predictor((self._fitted,)), np.ones(1)

    @property
    def class_log_prior_(self) -> Array:
        """Log p(y) in nats, (C,)."""
        return self._fitted.class_log_prior

    @property
    def class_prior_(self) -> Array:
        """p(y), (C,)."""
        return np.exp(self._fitted.class_log_prior)

    @property
    def feature_weights_(self) -> Array:
        """Weight of the log factor of each feature, (d,), ≥ 0, if they were learned."""
        return self._factor_weights.weight

    @property
    def class_bias_(self) -> Array:
        """Biases that replace the log prior if factors have weights, in nats, (C,)."""
        return self._factor_weights.bias

    @property
    def _factor_weights(self) -> FactorWeights:
        if self._fitted.weights is None:
            raise AttributeError(
                f'this {type(self).__name__} has no feature weights; fit it with feature_weights="conditional"'
            )
        return self._fitted.weights

    @property
    def class_count_(self) -> Array:
        """Weight of the rows of each class, (C,)."""
        if not hasattr(self, "statistics_"):
            raise AttributeError(f"this {type(self).__name__} has not counted any rows")
        return np.bincount(self._fitted.of_class or range(len(self.classes_)), self.statistics_.weight)

    @property
    def component_classes_(self) -> Array:
        """Class of each component, (Z,), in the order of the rows of fitted parameters."""
        return self.classes_[list(self._fitted.of_class or range(len(self.classes_)))]
