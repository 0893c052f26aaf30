"""The tables that scikit-learn estimators take, as tags of scikit-learn."""

from __future__ import annotations

from sklearn.utils import Tags


def takes_tables(tags: Tags) -> Tags:
    """Return the tags of an estimator with those of tables with missing cells, strings and categories."""
    tags.input_tags.allow_nan = True
    tags.input_tags.categorical = True
    tags.input_tags.string = True
    return tags
