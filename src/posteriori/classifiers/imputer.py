"""A transformer that fills missing cells by a joint model of the table."""

from __future__ import annotations

from typing import Any, ClassVar, Self, cast

from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.joint_model import JointModel, Method
from posteriori.classifiers.parameters import declares_parameters
from posteriori.support.keywords import Wanted
from posteriori.support.typing import Array


@declares_parameters
class GenerativeImputer(TransformerMixin, BaseEstimator):
    """Transformer that fills missing cells by a joint model of the table.

    Parameters
    ----------
    method : {"pool", "joint"}, default "pool"
        As in `JointModel.impute`.
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

    See Also
    --------
    JointModel.missing : How sure each cell is.

    Examples
    --------
    >>> import numpy as np, posteriori as po
    >>> X = np.array([[1.0, 10.0], [2.0, 20.0], [3.0, 30.0], [1.0, np.nan]] * 20)
    >>> filled = po.GenerativeImputer(method="joint").fit_transform(X)
    >>> bool(np.isnan(filled).any())
    False
    """

    method: str = "pool"
    draw: bool = False
    random_state: Any = 0
    n_jobs: int | None = None

    _keywords: ClassVar[Wanted] = {}

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn the joint model of a table, which is kept for pools; y is ignored."""
        self.model_ = JointModel(random_state=self.random_state, n_jobs=self.n_jobs).fit(X)
        return self

    def transform(self, X: Any) -> Any:
        """Return a copy of a table with a value in place of each missing cell."""
        check_is_fitted(self)
        return self.model_.impute(X, cast(Method, self.method), draw=self.draw, random_state=self.random_state)

    def get_feature_names_out(self, input_features: Any = None) -> Array:
        """Return the names of the columns, which stay."""
        del input_features
        return self.model_.feature_names_in_
