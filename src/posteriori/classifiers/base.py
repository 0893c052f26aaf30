"""The base class of generative classifiers, whatever their densities."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from posteriori.classifiers.predicting import PredictingEstimator
from posteriori.classifiers.removal import remove_rows
from posteriori.classifiers.training import TrainedEstimator
from posteriori.classifiers.validation import components_of
from posteriori.deprecation import Renamed
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
    forget = Renamed("unlearn")
    factor_weights_ = Renamed("feature_weights_")

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from labelled rows, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            NumPy, a list of rows, pandas, polars, pyarrow or anything that narwhals reads. NaN, None and null are
            missing cells. Strings, booleans and categories are categorical, other numbers continuous. Or rows that stay
            where they are: files by `posteriori.scan`, a DuckDB query by `posteriori.scan_sql`, a Dask DataFrame or
            array, a Spark DataFrame. The model is that of the same rows in memory.
        y : array-like (n,) or str; of files that were scanned with a target, it may be left out
            The label of each row, or the name of the column of X that holds them. Where the parameter `unlabelled`
            says so, NaN, None and null are labels to be inferred, and their rows teach through EM. Or a table of
            booleans (n, C), a column a class: which classes each row may be of. Whole numbers that look like a
            quantity are refused: more than 20 of them, with fewer than 100 rows each in the mean, and neither 0, 1, …,
            K − 1 nor 1, 2, …, K. `posteriori.quantile_classes` cuts them into classes; as strings they are classes.
        sample_weight : array-like (n,), optional
            The weight of each row, ≥ 0: a row of weight k counts as k rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A label is missing, a cell is infinite or outside what its distribution can produce, columns share a
            name, a weight is negative: the message names the place and what to do.
        TypeError
            X is no table, or a column holds neither numbers, strings nor booleans.
        """
        self._learn(self._first_statistics(X, y, None, sample_weight, complete=True))
        self._begin(None)
        return self

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; after the last call the model is what one fit of all rows would give.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A category met for the first time extends the model, and the first values of a column that
            had none so far decide whether it is continuous or categorical; the cut points of binned columns stay
            what they were on the first call, so let that one see many rows.
        classes : array-like, optional
            All classes there will be; may be given on the first call. Where it is not, a class met for the first
            time extends the model, and where it is, a label beyond it is an error.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; or a parameter takes a second look at rows that may no longer be at hand.
        """
        if not hasattr(self, "model_"):
            self._learn(self._first_statistics(X, y, classes, sample_weight, complete=False))
            self._begin(classes)
            return self
        if not hasattr(self, "statistics_"):
            raise ValueError(
                "this model was built from parameters, which say nothing of how many rows they stand for; use fit"
            )
        return self._learn(self._further_statistics(X, y, classes, sample_weight))

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out again of what was learned, as if they had never been seen.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Rows that the model has learned from, by `fit` or `partial_fit`, with weights of no more than they had
            then. Cut points, and the parents of `KDependenceBayes`, stay what they are, as `partial_fit` keeps them. So
            do categories and classes of which no row is left, with a count of 0, as classes declared to `partial_fit`
            have before their first row; a fit of the other rows would not know them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The rows cannot be among those that the model has learned from: a class, a category or a combination of
            categories has less weight than is to be taken out, a number lies too far from the others; the message
            names the class and the column. Or nothing would be left; or the model was learned by EM, with
            ``feature_weights="conditional"``, or in two passes (Ledoit & Wolf), so that its statistics are not sums
            over single rows. The model is unchanged.

        Notes
        -----
        Counts of rows of whole weight are those of the other rows to the last digit. Means and scatters are taken
        apart by the update of Chan, Golub & LeVeque backwards, and agree to 1e-9 of what the column varied before, at
        any offset; a warning says where it varies so much less afterwards that few digits are left.

        Not every row that was never seen can be told: one that is like those seen is taken out as if it were one.

        Cost: one pass over the rows to forget, and estimating once.

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
        self._check_importance(self.n_features_in_)
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
        """The weight of each feature's log factor, (d,), ≥ 0, where they are learned."""
        return self._factor_weights.weight

    @property
    def class_bias_(self) -> Array:
        """What stands for the log prior where factors are weighted, in nats (C,)."""
        return self._factor_weights.bias

    @property
    def _factor_weights(self) -> FactorWeights:
        if self._fitted.weights is None:
            raise AttributeError(
                f'this {type(self).__name__} weighs no factors; fit it with feature_weights="conditional"'
            )
        return self._fitted.weights

    @property
    def class_count_(self) -> Array:
        """The weight of the rows of each class, (C,)."""
        if not hasattr(self, "statistics_"):
            raise AttributeError(f"this {type(self).__name__} has not counted any rows")
        return np.bincount(self._fitted.of_class or range(len(self.classes_)), self.statistics_.weight)

    @property
    def component_classes_(self) -> Array:
        """The class of each component, (Z,), in the order of the rows of fitted parameters."""
        return self.classes_[list(self._fitted.of_class or range(len(self.classes_)))]
