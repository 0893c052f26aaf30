"""The discriminative peers: classifiers of scikit-learn behind the preprocessing that they usually get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.validation import categorical_places
from posteriori.tables import Column, Schema, Table, infer_schema, read_labels, read_table
from posteriori.tables.matching import matched_places
from posteriori.tables.schema import infinite_cell
from posteriori.tables.writing import write_column
from posteriori.typing import Array

_MOST_CATEGORIES = 255  # that histogram gradient boosting takes of one column


@dataclass(frozen=True)
class Recipe:
    """A classifier, and what becomes of the columns before it sees them.

    Attributes
    ----------
    classifier : function of a mask of the columns that are categorical
        Returns the classifier; the numbers stand before the categories.
    numbers, categories : functions
        Return the transformer of the numbers, NaN where missing, and of the codes of categories, NaN where missing.
    sparse_threshold : float
        The share of cells other than 0 below which the classifier gets a sparse matrix.
    """

    classifier: Callable[[list[bool]], Any]
    numbers: Callable[[], Any]
    categories: Callable[[], Any]
    sparse_threshold: float = 0.3


def _as_they_are() -> str:
    return "passthrough"


def _medians_in_units() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())


def _most_frequent_in_indicators() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="most_frequent", keep_empty_features=True), _indicators())


def _indicators() -> OneHotEncoder:
    return OneHotEncoder(handle_unknown="ignore")


def _few_codes() -> OrdinalEncoder:
    return OrdinalEncoder(
        handle_unknown="use_encoded_value",
        unknown_value=np.nan,
        encoded_missing_value=np.nan,
        max_categories=_MOST_CATEGORIES,
    )


RECIPES: dict[str, Recipe] = {
    "logistic": Recipe(
        lambda categorical: LogisticRegression(max_iter=1000), _medians_in_units, _most_frequent_in_indicators
    ),
    "boosting": Recipe(
        lambda categorical: HistGradientBoostingClassifier(categorical_features=categorical), _as_they_are, _few_codes
    ),
    # A forest takes NaN in no sparse matrix.
    "forest": Recipe(lambda categorical: RandomForestClassifier(), _as_they_are, _indicators, sparse_threshold=0.0),
}


def discriminative(classifier: Any, *, categorical_features: Any = "from_dtype") -> DiscriminativeClassifier:
    """Return a discriminative classifier for any table, mixed and with missing cells.

    Parameters
    ----------
    classifier : {"logistic", "boosting", "forest"} or classifier of scikit-learn
        Logistic regression, histogram gradient boosting, a random forest, or any other.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.

    Returns
    -------
    DiscriminativeClassifier

    Examples
    --------
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = discriminative("logistic").fit(penguins, "species")
    >>> model.predict(penguins.head(2)).tolist()
    ['Adelie', 'Adelie']
    """
    return DiscriminativeClassifier(classifier, categorical_features=categorical_features)


class DiscriminativeClassifier(ClassifierMixin, BaseEstimator):
    """A classifier of scikit-learn for any table that the library's own read, with the columns taken for the same.

    It learns p(y | x) alone, and so has to be told what a missing cell is:

    - logistic regression, and any classifier given as an object: the median of the column, the most frequent
      category; then numbers less their mean in standard deviations, and an indicator a category;
    - gradient boosting: a branch of its own at each split, of numbers and of categories, which need no indicators.
      Beyond 255 categories of a column the rare ones are one;
    - random forest: the same of numbers; of categories an indicator, where training has such cells.

    A category unseen in training has no indicator; to gradient boosting its cell is missing.

    Parameters
    ----------
    classifier : {"logistic", "boosting", "forest"} or classifier of scikit-learn, default "logistic"
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.
    random_state : int or RandomState, optional
        For a classifier given by its name.

    Attributes
    ----------
    classes_ : ndarray (C,)
    pipeline_ : Pipeline
        Of scikit-learn: what becomes of numbers and codes, and the fitted classifier.
    n_features_in_ : int
    feature_names_in_ : ndarray
        Where the columns had names.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.DataFrame({"sky": ["clear", "fog", None, "fog"], "wind": [1.0, None, 2.5, 8.0]})
    >>> model = DiscriminativeClassifier("forest", random_state=0).fit(rows, ["go", "stay", "go", "stay"])
    >>> model.predict(rows).tolist()
    ['go', 'stay', 'go', 'stay']
    """

    def __init__(
        self, classifier: Any = "logistic", *, categorical_features: Any = "from_dtype", random_state: Any = None
    ) -> None:
        self.classifier = classifier
        self.categorical_features = categorical_features
        self.random_state = random_state

    def fit(self, X: Any, y: Any) -> Self:
        """Learn from labelled rows.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            As in the `fit` of the library's own classifiers.
        y : array-like (n,) or str
            The label of each row, or the name of the column of X that holds them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A label is missing, a cell is infinite, or the classifier cannot learn from these rows.
        """
        recipe = self._recipe()
        table = read_table(X)
        labels = read_labels(y, table)
        columns = [j for j in range(len(table.names)) if labels.name is None or j != labels.position]
        if not columns:
            raise ValueError(f"X has no column beside the target {labels.name!r}; give at least one feature")
        stated = categorical_places(self.categorical_features, None, [table.names[j] for j in columns])
        schema = infer_schema(table, columns, [columns[j] for j in stated], labels.name)
        # Declared, so that categories met later get codes after those of training.
        self.schema_ = replace(schema, columns=tuple(replace(column, declared=True) for column in schema.columns))
        target = labels.infer()
        self.classes_ = write_column(target)
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.pipeline_ = _build(recipe, self.schema_)
        cells = _cells(table, self.schema_, columns)
        cells[:, np.isnan(cells).all(axis=0)] = 0.0  # boosting cannot bin a column without any value
        self.pipeline_.fit(cells, labels.components(target, slice(0, table.n_rows)))
        return self

    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`."""
        check_is_fitted(self, "pipeline_")
        table = read_table(X)
        positions = matched_places(table, self.schema_, type(self).__name__, self.schema_.target)
        return np.asarray(self.pipeline_.predict_proba(_cells(table, self._met(table, positions), positions)))

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

    def _recipe(self) -> Recipe:
        """Return how the classifier is built, with the parameters of this estimator."""
        if isinstance(self.classifier, str):
            if self.classifier not in RECIPES:
                raise ValueError(
                    f"classifier is {self.classifier!r}; name one of {', '.join(map(repr, RECIPES))}, or give a "
                    "classifier of scikit-learn"
                )
            recipe = RECIPES[self.classifier]

            def build(categorical: list[bool]) -> Any:
                return recipe.classifier(categorical).set_params(random_state=self.random_state)

            return replace(recipe, classifier=build)
        if isinstance(self.classifier, type) or not hasattr(self.classifier, "predict_proba"):
            raise TypeError(f"classifier is {self.classifier!r}, which has no predict_proba; give a probabilistic one")
        given = self.classifier
        return Recipe(lambda categorical: clone(given), _medians_in_units, _most_frequent_in_indicators, 0.0)

    def _met(self, table: Table, positions: tuple[int, ...]) -> Schema:
        """Return the schema with the categories that training did not know after those it did."""
        categorical = [positions[j] for j in self.schema_.of_kind("categorical")]
        stated = set(self.schema_.of_kind("categorical"))
        return self.schema_.extended(infer_schema(table, positions, categorical), mixed=stated)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = True
        tags.input_tags.string = True
        return tags


def _build(recipe: Recipe, schema: Schema) -> Pipeline:
    n_numbers, n_categories = len(schema.of_kind("continuous")), len(schema.of_kind("categorical"))
    parts = [
        ("numbers", recipe.numbers(), list(range(n_numbers))),
        ("categories", recipe.categories(), list(range(n_numbers, n_numbers + n_categories))),
    ]
    columns = ColumnTransformer([part for part in parts if part[2]], sparse_threshold=recipe.sparse_threshold)
    classifier = recipe.classifier([False] * n_numbers + [True] * n_categories)
    return Pipeline([("columns", columns), ("classifier", classifier)])


def require_finite(numbers: Array, columns: list[Column]) -> None:
    """Raise ValueError if a number, (n, d), is infinite."""
    infinite = np.argwhere(np.isinf(numbers))
    if len(infinite):
        row, position = infinite[0]
        raise infinite_cell(columns[position].name, float(numbers[row, position]), int(row))


def _cells(table: Table, schema: Schema, positions: Any) -> Array:
    """Return the numbers of a table beside the codes of its categories, float64 (n, d), NaN where missing."""
    rows = slice(0, table.n_rows)
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    cells = np.empty((table.n_rows, len(schema.columns)))
    if continuous:
        known: list[Column] = [schema.columns[j] for j in continuous]
        cells[:, : len(continuous)] = table.numbers([positions[j] for j in continuous], known, rows)
        require_finite(cells[:, : len(continuous)], known)
    if categorical:
        known = [schema.columns[j] for j in categorical]
        codes, _ = table.codes([positions[j] for j in categorical], schema, known, rows)
        cells[:, len(continuous) :] = np.where(codes == 0, np.nan, codes)
    return cells
