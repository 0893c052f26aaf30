"""Base of the scikit-learn estimators: the tables that they take, as tags of scikit-learn."""

from __future__ import annotations

from sklearn.base import BaseEstimator
from sklearn.utils import Tags


class TableEstimator(BaseEstimator):
    """scikit-learn estimator of tables with missing cells, strings and categories."""

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags
