"""Discriminative models of scikit-learn, with the usual preprocessing for mixed tables with missing cells."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, RegressorMixin, clone, is_regressor
from sklearn.compose import ColumnTransformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, Ridge
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import FunctionTransformer, OneHotEncoder, OrdinalEncoder, StandardScaler
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from posteriori.fitting.named_columns import categorical_places, text_places
from posteriori.learning.folds import entries_of
from posteriori.reading import infer_schema, read_labels, read_table
from posteriori.reading.labels import LabelColumn
from posteriori.reading.matching import matched_places
from posteriori.reading.opening import takes_tables
from posteriori.reading.texts import text_columns
from posteriori.regression.rows import numbers_of
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema, Table
from posteriori.tables.arrays import write_column
from posteriori.tables.batch import require_finite
from posteriori.tables.blocks import BlockTable, needs_dense
from posteriori.tables.polars import LazyTable
from posteriori.tables.rows import take_rows
from posteriori.tables.tokenizer import Tokenizer
from posteriori.user_warnings import warn_of_missing_targets

_MOST_CATEGORIES = 255  # per column, the limit of histogram gradient boosting


@dataclass(frozen=True)
class Discriminative:
    """A classifier or regressor, and the preprocessing of its columns."""

    # returns the model, given a mask of the columns that are categorical; numeric columns come first
    make: Callable[[list[bool]], Any]
    # return the transformers of the numbers and of the codes of categories, both NaN if missing
    numbers: Callable[[], Any]
    categories: Callable[[], Any]
    # the model receives a sparse matrix if the fraction of nonzero cells is below this
    sparse_threshold: float = 0.3
    largest: float = np.inf  # the largest number in magnitude that it can read
    reads_text: bool = True  # whether it reads the thousands of columns of tf-idf of a text, nearly all of them 0


def _unchanged() -> str:
    return "passthrough"


def _imputed_and_scaled() -> Pipeline:
    return make_pipeline(SimpleImputer(strategy="median", keep_empty_features=True), StandardScaler())


def _imputed_indicators() -> Pipeline:
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


DISCRIMINATIVE: dict[str, Discriminative] = {
    "logistic": Discriminative(
        lambda categorical: LogisticRegression(max_iter=1000), _imputed_and_scaled, _imputed_indicators
    ),
    "boosting": Discriminative(
        lambda categorical: HistGradientBoostingClassifier(categorical_features=categorical),
        _unchanged,
        _few_codes,
        reads_text=False,
    ),
    # RandomForestClassifier refuses NaN in sparse matrices, and takes numbers as float32.
    "forest": Discriminative(
        lambda categorical: RandomForestClassifier(),
        _unchanged,
        _indicators,
        sparse_threshold=0.0,
        largest=float(np.finfo(np.float32).max),
        reads_text=False,
    ),
}
# The regressor of the same family reads the same columns.
DISCRIMINATIVE_REGRESSORS: dict[str, Discriminative] = {
    "ridge": replace(DISCRIMINATIVE["logistic"], make=lambda categorical: Ridge()),
    "boosting": replace(
        DISCRIMINATIVE["boosting"],
        make=lambda categorical: HistGradientBoostingRegressor(categorical_features=categorical),
    ),
    "forest": replace(DISCRIMINATIVE["forest"], make=lambda categorical: RandomForestRegressor()),
}


def discriminative(
    classifier: Any, *, categorical_features: Any = "from_dtype"
) -> DiscriminativeClassifier | DiscriminativeRegressor:
    """Return a discriminative classifier, or a regressor, for mixed tables with missing cells.

    Parameters
    ----------
    classifier : {"logistic", "boosting", "forest"}, or classifier or regressor of scikit-learn
        Logistic regression, histogram gradient boosting, a random forest, any other classifier with
        `predict_proba`, or a regressor.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.

    Returns
    -------
    DiscriminativeClassifier or DiscriminativeRegressor

    Examples
    --------
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = discriminative("logistic").fit(penguins, "species")
    >>> model.predict(penguins.head(2)).tolist()
    ['Adelie', 'Adelie']
    """
    if not isinstance(classifier, str | type) and is_regressor(classifier):
        return DiscriminativeRegressor(classifier, categorical_features=categorical_features)
    return DiscriminativeClassifier(classifier, categorical_features=categorical_features)


def with_targets(X: Any, y: Any, *of_rows: Any) -> tuple[Any, ...]:
    """Return a table, its target, and what is given for each row, without rows that lack the target; say how many."""
    table = read_table(X)
    labels = read_labels(y, table)
    known = labels.known()
    if known.all():
        return X, y, *of_rows
    if isinstance(table, LazyTable):
        table.require_memory()
    rows = np.flatnonzero(known)
    warn_of_missing_targets(len(known) - len(rows), len(known), labels.name)
    each = (entries_of(rows, entries, len(known)) for entries in of_rows)
    return take_rows(X, rows), y if isinstance(y, str) else take_rows(y, rows), *each


@dataclass(eq=False, repr=False)
class _OfColumns(BaseEstimator):
    """A model of scikit-learn behind the preprocessing of its columns."""

    _kind: ClassVar[str]  # the name of the parameter that holds it
    _method: ClassVar[str]  # by which it predicts
    _named: ClassVar[dict[str, Discriminative]]
    _needed: ClassVar[str]
    _: KW_ONLY
    categorical_features: Any = "from_dtype"
    random_state: Any = None
    text: Any = "auto"

    def __sklearn_tags__(self) -> Tags:
        return takes_tables(super().__sklearn_tags__())

    def fit(self, X: Any, y: Any) -> Self:
        """Fit the preprocessing and the model.

        X is as in the `fit` of the library's own classifiers; y has the label or number of each row, or names the
        column of X that holds these. Raise ValueError if a label is missing, a cell is infinite, or the model refuses
        the rows.
        """
        chosen = self._chosen()
        table = read_table(X)
        if isinstance(table, BlockTable):
            raise needs_dense(table.blocks[0].column, table.n_rows, "this estimator")
        labels = read_labels(y, table)
        columns = [j for j in range(len(table.names)) if labels.name is None or j != labels.position]
        if not columns:
            raise ValueError(f"X has no column beside the target {labels.name!r}; give at least one feature")
        declared = categorical_places(self.categorical_features, None, [table.names[j] for j in columns])
        names = [table.names[j] for j in columns]
        places = text_places(self.text if chosen.reads_text else None, None, columns, names, declared)
        # Each word has the same hash here, because tf-idf finds the words itself.
        found = text_columns(table, columns, places)
        texts = {j: Tokenizer(n_features=1) for j in found}
        self._tokenizers = list(found.values())
        schema = infer_schema(
            table, columns, [columns[j] for j in declared], labels.name, reads_counts=True, texts=texts
        )
        # Declared categories keep their codes; unseen ones get codes after these.
        self.schema_ = replace(schema, columns=tuple(replace(column, declared=True) for column in schema.columns))
        target = self._read_target(labels)
        self.n_features_in_ = len(schema.columns)
        if schema.named:
            self.feature_names_in_ = np.array(schema.names, dtype=object)
        self.pipeline_ = _build(chosen, self.schema_, self._tokenizers)
        cells = _cells(table, self.schema_, columns, chosen.largest)
        cells[:, np.isnan(cells).all(axis=0)] = 0.0  # boosting refuses columns that are entirely missing
        self.pipeline_.fit(_with_texts(cells, table, self.schema_, columns), target)
        return self

    @property
    def reads_text(self) -> bool:
        return self._chosen().reads_text

    def _chosen(self) -> Discriminative:
        """Return the chosen model, with the parameters of this estimator."""
        kind, model = self._kind, getattr(self, self._kind)
        if isinstance(model, str):
            if model not in self._named:
                raise ValueError(
                    f"{kind} is {model!r}; name one of {', '.join(map(repr, self._named))}, or give a {kind} of "
                    "scikit-learn"
                )
            chosen, seed = self._named[model], self.random_state
            return replace(chosen, make=lambda categorical: chosen.make(categorical).set_params(random_state=seed))
        if isinstance(model, type) or not hasattr(model, self._method):
            raise TypeError(f"{kind} is {model!r}, which has no {self._method}; give a {self._needed}")
        return Discriminative(lambda categorical: clone(model), _imputed_and_scaled, _imputed_indicators, 0.0)

    @abstractmethod
    def _read_target(self, labels: LabelColumn) -> Array:
        """Return the class indices or the numbers to learn, (n,)."""

    def _predicted(self, X: Any) -> Array:
        check_is_fitted(self, "pipeline_")
        table = read_table(X)
        positions = matched_places(table, self.schema_, type(self).__name__, self.schema_.target)
        schema = self._with_unseen_categories(table, positions)
        cells = _with_texts(_cells(table, schema, positions, self._chosen().largest), table, schema, positions)
        return np.asarray(getattr(self.pipeline_, self._method)(cells))

    def _with_unseen_categories(self, table: Table, positions: tuple[int, ...]) -> Schema:
        """Return the schema with the unseen categories of a table appended to those of training."""
        categorical = [positions[j] for j in self.schema_.of_kind("categorical")]
        mixed = set(self.schema_.of_kind("categorical"))
        texts = {positions[j]: Tokenizer(n_features=1) for j in self.schema_.of_kind("counts")}
        found = infer_schema(table, positions, categorical, reads_counts=True, texts=texts)
        return self.schema_.extended(found, mixed=mixed)


@dataclass(eq=False, repr=False)
class DiscriminativeClassifier(ClassifierMixin, _OfColumns):
    """A classifier of scikit-learn for every table that posteriori reads, with the same kinds of columns.

    A model of p(y | x) alone cannot integrate a missing cell out. The preprocessing handles missing cells:

    - Logistic regression, and any classifier given as an object: the median of the column or its most frequent
      category. Then numbers are standardised, and each category has an indicator.
    - Gradient boosting: it chooses a branch for missing cells at each split. Categories need no indicators. If a column
      has more than 255 categories, the rare ones are merged.
    - Random forest: it chooses a branch for missing numbers. Categories have indicators, with one for missing cells if
      the training rows have some.

    An unseen category has no indicator. For gradient boosting its cell is missing.

    Columns of text become the tf-idf of their words, by `TfidfVectorizer`. Gradient boosting and the forest read none:
    their trees look at one column after the other, of which tf-idf has thousands, nearly all cells of them 0.

    Parameters
    ----------
    classifier : {"logistic", "boosting", "forest"} or classifier of scikit-learn, default "logistic"
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Columns that are categorical although their type is numeric.
    random_state : int or RandomState, optional
        Seed of a classifier given by name.
    text : "auto", list of names or mapping, optional, default "auto"
        Columns of text, as in `NaiveBayes`; with None, every string is a category.

    Attributes
    ----------
    classes_ : ndarray (C,)
    pipeline_ : Pipeline
        The preprocessing and the fitted classifier of scikit-learn.
    n_features_in_ : int
    feature_names_in_ : ndarray
        The names of the columns, if they have names.

    Examples
    --------
    >>> import polars as pl
    >>> rows = pl.DataFrame({"sky": ["clear", "fog", None, "fog"], "wind": [1.0, None, 2.5, 8.0]})
    >>> model = DiscriminativeClassifier("forest", random_state=0).fit(rows, ["go", "stay", "go", "stay"])
    >>> model.predict(rows).tolist()
    ['go', 'stay', 'go', 'stay']
    """

    _kind, _method, _named, _needed = "classifier", "predict_proba", DISCRIMINATIVE, "probabilistic classifier"
    classifier: Any = "logistic"

    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`."""
        return self._predicted(X)

    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        predicted: Array = self.classes_[self.predict_proba(X).argmax(axis=1)]
        return predicted

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return the accuracy on the rows that have a label."""
        return float(super().score(*with_targets(X, y, sample_weight)))

    def _read_target(self, labels: LabelColumn) -> Array:
        target = labels.infer()
        self.classes_ = write_column(target)
        return labels.components(target, slice(0, labels.table.n_rows))


@dataclass(eq=False, repr=False)
class DiscriminativeRegressor(RegressorMixin, _OfColumns):
    """A regressor of scikit-learn for every table that posteriori reads, with the same kinds of columns.

    It predicts a number, without a density. The preprocessing is that of `DiscriminativeClassifier`, where ridge
    regression has that of logistic regression.

    Parameters
    ----------
    regressor : {"ridge", "boosting", "forest"} or regressor of scikit-learn, default "ridge"
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
    random_state : int or RandomState, optional
    text : "auto", list of names or mapping, optional, default "auto"
        As in `DiscriminativeClassifier`.

    Attributes
    ----------
    pipeline_, n_features_in_, feature_names_in_
        As in `DiscriminativeClassifier`.

    Examples
    --------
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> model = DiscriminativeRegressor("ridge").fit(penguins, "body_mass_g")
    >>> model.predict(penguins.head(2)).shape
    (2,)
    """

    _kind, _method, _named, _needed = "regressor", "predict", DISCRIMINATIVE_REGRESSORS, "regressor of scikit-learn"
    regressor: Any = "ridge"

    def predict(self, X: Any) -> Array:
        """Return the number that is predicted for each row, (n,)."""
        return self._predicted(X)

    def score(self, X: Any, y: Any, sample_weight: Any = None) -> float:
        """Return R² on the rows that have a number."""
        return float(super().score(*with_targets(X, y, sample_weight)))

    def _read_target(self, labels: LabelColumn) -> Array:
        return numbers_of(labels)


def _build(chosen: Discriminative, schema: Schema, tokenizers: Sequence[Tokenizer]) -> Pipeline:
    n_numbers, n_categories = len(schema.of_kind("continuous")), len(schema.of_kind("categorical"))
    transformers: list[tuple[str, Any, Any]] = [
        ("numbers", chosen.numbers(), list(range(n_numbers))),
        ("categories", chosen.categories(), list(range(n_numbers, n_numbers + n_categories))),
    ]
    if tokenizers:  # the cells are objects then
        transformers = [
            (name, make_pipeline(FunctionTransformer(_as_floats), one), at) for name, one, at in transformers
        ]
    used = [transformer for transformer in transformers if transformer[2]]  # without empty lists of columns
    for k, tokenizer in enumerate(tokenizers):
        used.append((f"text{k}", tokenizer.weighter(), n_numbers + n_categories + k))
    columns = ColumnTransformer(used, sparse_threshold=1.0 if tokenizers else chosen.sparse_threshold)
    model = chosen.make([False] * n_numbers + [True] * n_categories)
    return Pipeline([("columns", columns), ("regressor" if is_regressor(model) else "classifier", model)])


def _as_floats(cells: Any) -> Array:
    return np.asarray(cells, np.float64)


def _with_texts(cells: Array, table: Table, schema: Schema, positions: Any) -> Array:
    """Return cells, (n, d), with the columns of text after them, as objects; as they are if there is no text."""
    texts = [positions[j] for j in schema.of_kind("counts")]
    if not texts:
        return cells
    out = np.empty((len(cells), cells.shape[1] + len(texts)), dtype=object)
    out[:, : cells.shape[1]] = cells
    for k, position in enumerate(texts, start=cells.shape[1]):
        out[:, k] = [text or "" for text in table.texts(position, slice(0, table.n_rows))]
    return out


def _cells(table: Table, schema: Schema, positions: Any, largest: float) -> Array:
    """Return the numbers of a table, then the codes of its categories, float64 (n, d); NaN if missing.

    Raise ValueError if a number is infinite, or exceeds the largest one in magnitude.
    """
    rows = slice(0, table.n_rows)
    continuous, categorical = schema.of_kind("continuous"), schema.of_kind("categorical")
    cells = np.empty((table.n_rows, len(continuous) + len(categorical)))
    if continuous:
        known: list[Column] = [schema.columns[j] for j in continuous]
        cells[:, : len(continuous)] = table.numbers([positions[j] for j in continuous], known, rows)
        require_finite(cells[:, : len(continuous)], known)
        beyond = np.argwhere(np.abs(cells[:, : len(continuous)]) > largest)
        if len(beyond):
            i, k = beyond[0].tolist()
            raise ValueError(
                f"column {known[k].name!r} holds {cells[i, k]:g} in row {i}, beyond {largest:g}, which this classifier "
                "cannot read; divide the column by a large number, or leave it out"
            )
    if categorical:
        known = [schema.columns[j] for j in categorical]
        codes, _ = table.codes([positions[j] for j in categorical], schema, known, rows)
        cells[:, len(continuous) :] = np.where(codes == 0, np.nan, codes)
    return cells
