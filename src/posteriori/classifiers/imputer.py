"""A transformer that fills missing cells by a joint model of the table."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, ClassVar, Self, cast

import narwhals as nw
from sklearn.base import TransformerMixin
from sklearn.utils._param_validation import StrOptions
from sklearn.utils.validation import _check_feature_names_in, check_is_fitted

from posteriori.classifiers.estimator import Estimator, estimator_of
from posteriori.classifiers.joint_model import JointModel, Method
from posteriori.classifiers.keywords import OF_MIXTURES
from posteriori.classifiers.parameters import declares_parameters
from posteriori.joint import imputation
from posteriori.joint.imputation import FittedImputer
from posteriori.joint.value import FittedJoint
from posteriori.reading import read_rows
from posteriori.reading.matching import matched_places
from posteriori.support.checks import generator
from posteriori.support.constraints import N_JOBS
from posteriori.support.typing import Array


@declares_parameters
class GenerativeImputer(TransformerMixin, Estimator):
    """Transformer that fills missing cells by a joint model of the table.

    Parameters
    ----------
    method : {"pool", "joint"}, default "pool"
        As in `JointModel.impute`. A column that depends on no other one is filled by its mean, or by its most frequent
        category, with both.
    draw : bool, default False
        As in `JointModel.impute`.
    random_state : int, default 0
        Seed of the fit and of the draws.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core.

    Attributes
    ----------
    model_ : JointModel
        The model of the training table.
    schema_ : Schema
    n_parameters_, n_features_in_ : int
    .. shared:: feature_names_in_

    See Also
    --------
    JointModel.missing : How sure each cell is.

    Notes
    -----
    `fit` keeps the training table in memory, so that a pool can be fitted to any column later. A model file does not
    hold it: it has the pools of the columns with missing cells in the training table, and of those filled before it was
    saved.

    Examples
    --------
    >>> import numpy as np, posteriori as po
    >>> X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [1.0, np.nan]] * 20)
    >>> imputer = po.GenerativeImputer(method="joint")
    >>> bool(np.isnan(imputer.fit_transform(X)).any())
    False
    >>> imputer.get_feature_names_out().tolist()
    ['x0', 'x1']
    """

    method: str = "pool"
    draw: bool = False
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "method": [StrOptions({"pool", "joint"})],
        "draw": ["boolean"],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }
    _keywords = OF_MIXTURES

    @property
    def _value(self) -> FittedImputer:
        return cast(FittedImputer, super()._value)

    @property
    def model_(self) -> JointModel:
        """The joint model."""
        model: JointModel = estimator_of(self._value.joint)
        return model

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the joint model of a table; with ``method="pool"`` also the pool of each column with missing cells.

        Parameters
        ----------
        X : array-like, data frame or path (n, d)
            As in `JointModel.fit`.
        y : None
            Ignored; present for scikit-learn's API.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `JointModel.fit`.
        """
        self._validate_params()
        model = JointModel(random_state=self.random_state, n_jobs=self.n_jobs).fit(X)
        if self.method == "pool":
            model._fit_pools_of_gaps(X)
        joint = cast(FittedJoint, model.fitted_)
        mean = imputation.mean_of_only_column(joint, model._source(X))
        self.fitted_ = FittedImputer(self.recipe, joint.target, joint, mean)
        return self

    def transform(self, X: Any) -> Any:
        """Return a copy of rows with a value in place of each missing cell.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            Columns are matched by name, where both tables have names.

        Returns
        -------
        ndarray or data frame (n, d)
            The columns of `fit` in their order; of the type of X, or of the one that `set_output` selects.

        Raises
        ------
        ValueError
            A column of `fit` is absent, a cell is infinite, or the imputer comes from a file that has no pool of a
            column with missing cells.
        """
        check_is_fitted(self)
        value, model = self._value, self.model_
        X = self._with_columns_of_fit(X)
        given = list(value.schema.given)
        named = _renamed(X, given)
        rng = generator(self.random_state)
        filled = model._fillings(named, self._source(X), cast(Method, self.method), self.draw, rng)
        if value.mean is not None and not self.draw and not model._asks_pool(value.joint.law.columns[0], self.method):
            filled = imputation.by_mean(value.joint, value.mean, filled)
        if model.fitted_ is not value.joint:  # it has fitted pools
            self.fitted_ = replace(value, joint=cast(FittedJoint, model.fitted_))
        return _renamed(imputation.filled_table(named, given, filled), _labels_of(X))

    def _with_columns_of_fit(self, X: Any) -> Any:
        """Return an array or a data frame with the columns of the training table in their order."""
        schema, name = self._value.schema, type(self).__name__
        table = read_rows(X, schema, name)
        with warnings.catch_warnings():
            if not (schema.named and table.named):  # the reader of the rows warns of the same
                warnings.simplefilter("ignore")
            places = list(dict.fromkeys(matched_places(table, schema, name)))
        if nw.dependencies.is_into_dataframe(X):
            return nw.from_native(X, eager_only=True)[:, places].to_native()
        return imputation.array_of(X)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns, which stay.

        Parameters
        ----------
        input_features : sequence of str, optional
            Names for columns without names in `fit`.
        """
        check_is_fitted(self)
        names: Array = _check_feature_names_in(self, input_features)
        return names


def _labels_of(X: Any) -> list[Any]:
    """Return the labels of the columns of a data frame, and none of an array."""
    return list(nw.from_native(X, eager_only=True).columns) if nw.dependencies.is_into_dataframe(X) else []


def _renamed(X: Any, labels: list[Any]) -> Any:
    """Return a data frame with other labels of its columns, and an array as it is.

    Frames of arrays have numbers as labels, and rows of a model without names may have any.
    """
    before = _labels_of(X)
    if before == labels or not before:
        return X
    return nw.from_native(X, eager_only=True).rename(dict(zip(before, labels, strict=True))).to_native()
