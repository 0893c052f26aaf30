"""Inputs of a comparison: models by name or as estimators, and one frame of rows for all."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import is_regressor
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.pipeline import Pipeline

from posteriori.comparison.discriminative import DiscriminativeClassifier, DiscriminativeRegressor
from posteriori.fitting.named_columns import categorical_places, kept_places, stated_columns, text_places
from posteriori.fitting.parameter_groups import columns_of
from posteriori.networks.classifier import NetworkClassifier
from posteriori.reading import infer_schema, read_labels, read_table
from posteriori.reading.target_cuts import looks_like_a_quantity
from posteriori.reading.texts import text_columns
from posteriori.registry import COMPARED, COMPARED_OF_NUMBERS, MODELS, OF_NUMBERS, Subject, find_model
from posteriori.regression.rows import numbers_of, quantile_codes
from posteriori.support.keywords import Wanted
from posteriori.support.typing import Array
from posteriori.tables import Blocks, Column, Schema, Table, quote
from posteriori.tables.arrays import write_column
from posteriori.tables.batch import read_codes, read_numbers, require_finite
from posteriori.tables.blocks import BlockTable
from posteriori.user_warnings import warn

_MOST_SIZES = 7  # default training sizes
_FEWEST_ROWS = 10  # smallest default training size


@dataclass(frozen=True)
class Rows:
    """Labelled rows in the form that every model receives."""

    # numbers as floats, categories as strings, booleans or Enum, so that a subset of the rows has the same types
    frame: pl.DataFrame
    y_true: Array  # (n,): the class index of each row, or its number
    classes: Array  # (C,); empty if the target holds numbers
    texts: tuple[str, ...] = ()  # the columns of text
    # Sparse blocks of counts (n, V) and their words (V,), for models that read these, as in `Blocks`.
    counts: Mapping[str, Any] = field(default_factory=dict)
    words: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def features(self, chosen: Array) -> Any:
        """Return the features of some rows, by their positions, with their counts."""
        if not self.counts:
            return self.frame[chosen]
        return Blocks(self.frame if self.frame.width else None, self.counts, self.words)[chosen]

    def without_text(self, title: str) -> Rows:
        """Return the rows for a model that reads no text, with a warning; ValueError if no column is left."""
        if not self.texts:
            return self
        rows = replace(self, frame=self.frame.drop(self.texts), texts=())
        if not rows.frame.width and not rows.counts:
            raise ValueError(f"{title!r} reads no text, and there is no other column; leave it out")
        warn(f"{title} reads no text: it leaves out {quote(self.texts)}")
        return rows

    @property
    def labels(self) -> Array:
        """The label or the number of each row, (n,)."""
        return self.classes[self.y_true] if len(self.classes) else self.y_true

    @property
    def strata(self) -> Array:
        """Codes over which parts of the rows are spread evenly, (n,): classes, or quantiles of the numbers."""
        return self.y_true if len(self.classes) else quantile_codes(self.y_true, self.y_true)


def read_rows(
    X: Any,
    y: Any,
    categorical_features: Any,
    keep: Any = None,
    dates: Any = "parts",
    text: Any = "auto",
    *,
    reads_counts: bool = False,
    of_numbers: bool = False,
) -> Rows:
    """Read a table and its labels, or numbers; leave out columns that identify rows, unless `keep` names them.

    Columns of text stay strings.

    Raises
    ------
    ValueError
        A label is missing, a cell is infinite, or there are fewer than two classes or numbers.
    """
    table = read_table(X, stated_columns(X, categorical_features, None, y))
    labels = read_labels(y, table)
    positions = [j for j in range(len(table.names)) if labels.name is None or j != labels.position]
    if not positions:
        raise ValueError(f"X has no column beside the target {labels.name!r}; give at least one feature")
    names = [table.names[j] for j in positions]
    declared = categorical_places(categorical_features, None, names)
    kept = kept_places(keep, categorical_features, None, names)
    texts = text_columns(table, positions, text_places(text, keep, positions, names, declared))
    others = [j for j in positions if j not in texts]
    schema = Schema(())
    if others:
        schema = infer_schema(
            table,
            others,
            [positions[j] for j in declared],
            keep=None if kept is None else [positions[j] for j in kept],
            dates=dates,
            reads_counts=reads_counts,
        )
    if of_numbers:
        y_true, classes = numbers_of(labels), np.empty(0, dtype=object)
        if y_true.min() == y_true.max():
            raise ValueError(f"y is {y_true[0]:g} in every row; there is nothing to predict")
    else:
        target = labels.infer()
        if len(target.categories) < 2:
            raise ValueError(f"y holds one class only, {target.categories[0]!r}; give at least two")
        y_true, classes = labels.components(target, slice(0, table.n_rows)), write_column(target)
    frame = pl.DataFrame(
        [_series(table, schema, j, position) for j, position in enumerate(schema.spread(others)) if j in schema.dense]
        + [pl.Series(table.names[j], table.texts(j, slice(0, table.n_rows)), pl.String) for j in texts]
    )
    named = tuple(table.names[j] for j in texts)
    if not isinstance(table, BlockTable):
        return Rows(frame, y_true, classes, named)
    counts = {block.name: block.matrix for block in table.blocks}
    words = {block.name: block.words for block in table.blocks if block.words}
    return Rows(frame, y_true, classes, named, counts, words)


def _series(table: Table, schema: Schema, j: int, position: int) -> pl.Series:
    column, rows = schema.columns[j], slice(0, table.n_rows)
    if column.kind == "continuous":
        numbers = read_numbers(table, [position], [column], rows, {})
        require_finite(numbers, [column])
        return pl.Series(column.name, numbers[:, 0], nan_to_null=True)
    codes, _ = read_codes(table, [position], schema, [column], rows, {})
    if column.kinds == {"booleans"}:
        cells: list[Any] = [None, *column.categories]
        return pl.Series(column.name, [cells[code] for code in codes[:, 0].tolist()], pl.Boolean)
    cells = [None, *_category_names(column)]
    dtype = pl.Enum(cells[1:]) if column.declared else pl.String()
    return pl.Series(column.name, [cells[code] for code in codes[:, 0].tolist()], dtype)


def _category_names(column: Column) -> list[str]:
    """Return unique names for the categories, even if both the number 1 and the string "1" occur."""
    names = [str(cell) for cell in column.categories]
    return names if len(set(names)) == len(names) else [repr(cell) for cell in column.categories]


def training_sizes(n_rows: int, n_classes: int, test_share: float = 0.25) -> tuple[int, ...]:
    """Return the default training sizes: at most seven, evenly spaced on a logarithmic scale.

    The first is ten rows, or two rows per class if that is more. The last is all rows that are not test rows.

    Parameters
    ----------
    n_rows : int
        The number of rows of the table.
    n_classes : int
    test_share : float, default 0.25
        The fraction of the rows that are test rows.

    Examples
    --------
    >>> training_sizes(344, 3)
    (10, 17, 30, 51, 87, 150, 258)
    """
    most = training_rows(n_rows, test_share)
    least = min(max(_FEWEST_ROWS, 2 * n_classes), most)
    return tuple(np.unique(np.geomspace(least, most, _MOST_SIZES).round().astype(int)).tolist())


def training_rows(n_rows: int, test_share: float) -> int:
    """Return the number of rows that are not test rows."""
    return n_rows - max(1, round(test_share * n_rows))


def stratified_order(y_true: Array, rng: np.random.Generator) -> Array:
    """Return a random order of the rows, (n,), in which every prefix has about the class frequencies of all rows.

    The first C rows hold one row of each class, the most frequent class first. After these, row i of the n_c rows of
    class c, in random order, is at the fraction (i + ½)/n_c of the order. Suffixes are stratified, too.
    """
    counts = np.bincount(y_true)
    shuffled = rng.permutation(len(y_true))
    by_class = shuffled[np.argsort(y_true[shuffled], kind="stable")]
    label = y_true[by_class]
    rank = np.arange(len(label)) - (np.cumsum(counts) - counts)[label]  # within the class
    key = np.where(rank == 0, -counts[label], (rank + 0.5) / counts[label])  # negative: first rows come first
    return by_class[np.argsort(key, kind="stable")]


def check_sizes(sizes: Sequence[int] | None, rows: Rows, test_share: float) -> tuple[int, ...]:
    """Return the training sizes, ascending.

    Raises
    ------
    ValueError
        `test_share` is not between 0 and 1, or leaves too few training rows; or a size is not between 2 and the number
        of training rows.
    """
    n_rows = rows.frame.height
    if not 0 < test_share < 1:
        raise ValueError(f"test_share is {test_share}; give a fraction between 0 and 1, such as 0.25")
    most = training_rows(n_rows, test_share)
    if most < 2:
        raise ValueError(
            f"there are {n_rows} rows, and test_share={test_share} leaves {most} for training; give at least 2"
        )
    if sizes is None:
        return training_sizes(n_rows, len(rows.classes), test_share)
    chosen = sorted({int(size) for size in sizes})
    if not chosen:
        raise ValueError("sizes is empty; leave it out, or give numbers of training rows")
    wrong = [size for size in sizes if size != int(size) or not 2 <= size <= most]
    if wrong:
        raise ValueError(
            f"sizes holds {wrong[0]}; give whole numbers from 2 to {most}, the number of rows that are not test rows"
        )
    return tuple(chosen)


def predicts_density(model: Any) -> bool:
    """Whether a model answers with the density of a number."""
    return getattr(model, "subject", None) is Subject.NUMBER


def predicts_number(model: Any) -> bool:
    """Whether a model predicts a number, with or without a density."""
    return predicts_density(model) or is_regressor(model)


def predict_with(model: Any, X: Any) -> Any:
    """Return the predictions of a fitted model: densities, numbers (n,), or p(y | x), (n, C), as `classes_`."""
    if predicts_density(model):
        return model.answer(X).density
    return np.asarray(model.predict(X)) if is_regressor(model) else model.predict_proba(X)


OF_COMPARISONS: Wanted = {
    "cv": (
        ("folds", "use folds=…, a number, the fold of each row, or a splitter of scikit-learn"),
        ("repeats", "use repeats=…, the number of random divisions into training and test rows"),
    ),
    "n_splits": (("folds", "use folds=…"), ("repeats", "use repeats=…")),
    "folds": (("repeats", "use repeats=…, or po.cross_validate(models, X, y, folds=…)"),),
    "scoring": (("models", "leave it out, the result has log-loss, accuracy, Brier score and AUC"),),
    "shuffle": (("models", "leave it out, rows are shuffled by random_state"),),
    "test_size": (("test_share", "use test_share=…"),),
    "train_sizes": (("sizes", "use sizes=…"),),
    "n_jobs": (("folds", "set n_jobs of the models"),),
    "columns": (("categorical_features", "set columns of the models, or use categorical_features=…"),),
    "categorical": (("categorical_features", "use categorical_features=…"),),
    "cat_features": (("categorical_features", "use categorical_features=…"),),
    "ignore": (("keep", "drop the columns from X"),),
    "seed": (("random_state", "use random_state=…"),),
    "verbose": (("progress", "use progress=…"),),
}


def holds_quantity(X: Any, y: Any) -> bool:
    """Whether the target holds fractions, or whole numbers that look like a quantity."""
    labels = read_labels(y, read_table(X))
    column = labels.table.column(labels.position, categorical=False)
    if column.kind != "continuous" or column.valueless:
        return False
    numbers = numbers_of(labels, may_miss=True)
    values = np.unique(numbers[~np.isnan(numbers)])
    return bool((values % 1).any()) or looks_like_a_quantity(values.tolist(), len(numbers))


def chosen_models(models: Any, common: Mapping[str, Any], X: Any = None, y: Any = None) -> dict[str, Any]:
    """Return models by title; those given by name with the common parameters that they know.

    Parameters
    ----------
    models : None, name, classifier, sequence of these, or mapping of a title to one of these
        Names are those of `posteriori.registry.MODELS` and `OF_NUMBERS`; None for `COMPARED` or
        `COMPARED_OF_NUMBERS` there.
    common : mapping
    X, y : optional
        The table and its target, by which None is decided.

    Raises
    ------
    ValueError
        A name is unknown, two models have the same title, some predict classes and others numbers, or there is no
        model.
    TypeError
        A model has no `predict_proba`.
    """
    if models is None:
        models = COMPARED_OF_NUMBERS if X is not None and holds_quantity(X, y) else COMPARED
    if isinstance(models, str) or not isinstance(models, Mapping | Sequence):
        models = [models]
    if isinstance(models, Mapping):
        pairs = [(str(title), _titled_model(model, common)[1]) for title, model in models.items()]
    else:
        pairs = _told_apart([_titled_model(model, common) for model in models])
    if not pairs:
        raise ValueError("models is empty; name at least one")
    for title, model in pairs:
        if isinstance(model, type) or not (
            hasattr(model, "fit") and (hasattr(model, "predict_proba") or predicts_number(model))
        ):
            raise TypeError(
                f"{title!r} has no predict_proba: {reprlib.repr(model)}; give probabilistic classifiers, before the "
                "table"
            )
    kinds = {predicts_number(model): title for title, model in pairs}
    if len(kinds) > 1:
        raise ValueError(
            f"{kinds[True]!r} predicts a number, and {kinds[False]!r} does not; compare models of one kind"
        )
    titles = [title for title, _ in pairs]
    repeated = [title for position, title in enumerate(titles) if title in titles[:position]]
    if repeated:
        raise ValueError(
            f"two models have the title {repeated[0]!r}; give a mapping from distinct titles to the models"
        )
    return dict(pairs)


def _told_apart(pairs: list[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """Name models that have the same title by their parameters, unless these are the same, too."""
    titles = [title for title, _ in pairs]
    written = [" ".join(repr(model).split()) for _, model in pairs]
    return [
        (own if titles.count(title) > 1 and written.count(own) == 1 else title, model)
        for own, (title, model) in zip(written, pairs, strict=True)
    ]


def reads_text(model: Any) -> bool:
    """Whether a classifier reads columns of text as words."""
    return bool(getattr(model, "reads_text", getattr(model, "reads_counts", False)))


def rows_for(title: str, model: Any, rows: Rows, text: Any) -> Rows:
    """Return the rows that a model can read: without columns of text if it reads none.

    A model that recognises text itself receives the names of the columns, because a part of the rows may not show them.
    """
    if not reads_text(model):
        return rows.without_text(title)
    name, given = ("text", model.text) if hasattr(model, "text") else ("columns__text", columns_of(model.columns).text)
    if rows.texts and isinstance(given, str):
        model.set_params(**{name: text if isinstance(text, Mapping) else list(rows.texts)})
    return rows


def with_parameters(model: Any, parameters: Mapping[str, Any]) -> Any:
    """Set those of the parameters that the model has, itself or in its `columns`; return the model."""
    known = model.get_params(deep=False)
    own = {name: value for name, value in parameters.items() if name in known}
    if "columns" in known:
        of_columns = [name for name in parameters if name != "text" or reads_text(model)]
        own |= {f"columns__{name}": parameters[name] for name in of_columns}
    return model.set_params(**own)


def _titled_model(model: Any, common: Mapping[str, Any]) -> tuple[str, Any]:
    if not isinstance(model, str):
        return _title(model), model
    spec = OF_NUMBERS.get(model) or find_model(model)
    return spec.title, with_parameters(spec.make(), common)


def with_all_classes(posterior: Any, known: Any, classes: Array) -> Array:
    """Return probabilities with one column per class; 0 for a class without training rows."""
    positions = {label: position for position, label in enumerate(classes.tolist())}
    wide = np.zeros((len(posterior), len(classes)))
    wide[:, [positions[label] for label in np.asarray(known).tolist()]] = posterior
    return wide


def _title(model: Any) -> str:
    inner = _last(model)
    if isinstance(inner, DiscriminativeClassifier):
        spec = MODELS.get(inner.classifier) if isinstance(inner.classifier, str) else None
        return spec.title if spec else type(inner.classifier).__name__
    if isinstance(inner, DiscriminativeRegressor):
        specs = [one for one in OF_NUMBERS.values() if one.parameters == {"regressor": inner.regressor}]
        return specs[0].title if specs else type(inner.regressor).__name__
    return type(inner).__name__


def _last(model: Any) -> Any:
    return model.steps[-1][1] if isinstance(model, Pipeline) else model


def is_generative(model: Any) -> bool:
    """Whether a model is of p(x, y), and not only of p(y | x); regressors with a density answer for hidden cells."""
    inner = _last(model)
    discriminants = (LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis, NetworkClassifier)
    joint = hasattr(inner, "predict_joint_log_proba") or hasattr(inner, "subject")
    return joint or isinstance(inner, discriminants)
