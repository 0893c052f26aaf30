"""Arguments of estimators: the values that group them, their checks, and what they give to a fit."""

from __future__ import annotations

import reprlib
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Protocol, TypeVar

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

from posteriori.densities import Gaussian, Missingness, MultivariateGaussian
from posteriori.learning.fit import EMOptions
from posteriori.model import Block, GenerativeModel
from posteriori.statistics import JointStatistics
from posteriori.support.checks import generator, is_missing
from posteriori.support.typing import Array
from posteriori.tables import Column, LabelColumn, LabelModel, PartialLabels, Schema, Table, quote
from posteriori.tables.labels import looks_like_a_quantity
from posteriori.tables.partitioned import PartitionedTable
from posteriori.tables.polars import LazyTable
from posteriori.tables.texts import Texts
from posteriori.tables.times import PARTS
from posteriori.tables.tokenizer import Tokenizer
from posteriori.user_warnings import warn

_Estimator = TypeVar("_Estimator", bound=BaseEstimator)


class ParameterGroup(BaseEstimator):
    """Parameters of a classifier that belong together.

    A classifier whose parameter is None uses the defaults of the group. scikit-learn sees the parameters of a group as
    those of a nested estimator: ``set_params(em__tol=1e-3)`` changes one, also where the group is None, and a grid
    search may go over ``em__tol``.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]]

    def check(self) -> None:
        """Raise ValueError that names a parameter of a wrong type or value."""
        self._validate_params()


@dataclass(kw_only=True, eq=False, repr=False)
class EM(ParameterGroup):
    """Number of components per class, and how EM finds them.

    Parameters
    ----------
    components_per_class : int or mapping, optional
        Number of components per class, for all classes or by class. With more than one, a class is a mixture that
        is learned by EM (mixture discriminant analysis, Hastie & Tibshirani 1996). Default: 1.
    n_init : int, default 5
        Number of initializations if a class has several components; the most likely result is kept. The parameter
        `random_state` of the classifier is their seed.
    max_iter : int, default 200
        Maximum number of EM steps. EM warns if it stops there without having converged.
    tol : float, default 1e-5
        EM stops when the log-likelihood grows by at most `tol` nats per row.

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.GaussianDiscriminant(em=po.EM(components_per_class=2, n_init=10), random_state=0)
    >>> model.set_params(em__tol=1e-3).em
    EM(components_per_class=2, n_init=10, tol=0.001)
    """

    components_per_class: Any = None
    n_init: int = 5
    max_iter: int = 200
    tol: float = 1e-5

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "components_per_class": [None, Integral, Mapping],
        "n_init": [Interval(Integral, 1, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
    }


@dataclass(kw_only=True, eq=False, repr=False)
class Labels(ParameterGroup):
    """What the labels of training rows are worth: rows without label, and wrong labels.

    Parameters
    ----------
    unlabelled : "error", "learn", "ignore" or label, default "error"
        How missing labels (NaN, None, null) are handled. "error" raises an error; "learn" infers them by EM; "ignore"
        leaves their rows out, as weight 0 does. Any other value, such as scikit-learn's −1, is a label of y that marks
        a missing one, which is inferred in the same way; a code that y does not hold is an error.
    unlabelled_weight : float or "held_out", default 1.0
        Weight of a row without label, in [0, 1] (Nigam et al. 2000). If the assumptions of the model do not hold,
        many unlabelled rows can make it worse. "held_out" chooses among 0, 0.01, 0.1, 0.3 and 1 by the
        cross-validated log-loss of the labelled rows, with five folds or as many as the smallest class has labelled
        rows. It needs at least two labelled rows per class and takes about thirty times as long.
    label_noise : float, (C, C), mapping or "learn", optional
        Model of wrong labels: the share of wrong labels, spread evenly over the other classes; or p(recorded |
        true), with one row (or one entry, by class) per true class; or "learn", which estimates it. Predictions are
        of the true class.

    Notes
    -----
    A pool (`GenerativeClassifier`) takes a number as `unlabelled_weight`, and has no `label_noise`.

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.NaiveBayes(labels=po.Labels(unlabelled="learn"))
    >>> model.fit([["u"], ["v"], ["u"]], ["a", "b", None]).class_count_.round(2)
    array([1.71, 1.29])
    """

    unlabelled: Any = "error"
    unlabelled_weight: Any = 1.0
    label_noise: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "unlabelled": [object],
        "unlabelled_weight": [Interval(Real, 0, 1, closed="both"), StrOptions({"held_out"})],
        "label_noise": [None, Interval(Real, 0, 1, closed="left"), StrOptions({"learn"}), Mapping, "array-like"],
    }

    @property
    def may_miss(self) -> bool:
        """Whether a row without label is no error."""
        return not (isinstance(self.unlabelled, str) and self.unlabelled == "error")

    @property
    def ignores_unlabelled(self) -> bool:
        """Whether rows without label are left out.

        Raises ValueError if they have a weight, too.
        """
        ignored = isinstance(self.unlabelled, str) and self.unlabelled == "ignore"
        if ignored and self.unlabelled_weight != 1.0:
            raise ValueError(
                'unlabelled_weight weights rows that unlabelled="ignore" leaves out; leave out one of the two'
            )
        return ignored


@dataclass(kw_only=True, eq=False, repr=False)
class Columns(ParameterGroup):
    """Which columns are categorical, which are kept although they identify rows, and how dates and text are read.

    Parameters
    ----------
    categorical_features : "auto", "from_dtype", "all", mask, indices or names, optional
        Numeric columns to treat as categorical. Columns with a categorical type (strings, booleans, categories) always
        are. "from_dtype" selects no others, as in scikit-learn, and "all" selects every column. "auto" selects columns
        of two distinct whole numbers at most 15 apart, such as 0 and 1, in 20 cells or more (in a pool, in any number),
        unless `distributions` states their density; `partial_fit` decides on its first call, and warns if a later call
        shows a third number. In a `MixtureModel` "auto" selects columns with 2 to 10 distinct values that are all whole
        numbers: codes, grades, small counts. Default: "auto", but "from_dtype" in a `MixtureModel` and in a
        `GaussianDiscriminant`, whose joint Gaussian keeps the dependence of such columns.
    keep : name, list of names or indices, or "all", optional
        Columns to model even if they identify rows. Other columns that do are ignored, with a warning: they keep
        their place in the table, and influence no prediction. A column of strings identifies rows if at least 90 %
        of new rows are expected to hold a value that no training row holds (Good 1953), a column of integers if it
        numbers the rows: strictly ascending or descending, in equal steps or with at most every second number absent.
        Columns with fewer than 20 cells, columns that `categorical_features` or `distributions` name, and the columns
        of a table that has no others are not ignored. `partial_fit` decides on its first call.
    dates : "parts", "ignore" or list of parts, default "parts"
        How columns of dates, times of day and durations are read. A date becomes the parts of it that have several
        values in the training rows: ``days`` since the first one (continuous), ``year``, ``month`` and ``weekday``
        (categorical), and the ``hour`` (categorical) if it has a time; a time of day its ``hour``; a duration its
        ``seconds`` (continuous). The part ``month`` of column ``when`` is the column ``when.month`` of the model, in
        `schema_`, explanations and `distributions`. A list names the parts to read, whatever their values, as models
        that are to be merged need it. "ignore" leaves such columns unread. `partial_fit` decides on its first call.
    text : "auto", name, list of names or mapping, optional, default "auto"
        Columns of text, which are cut into words and modelled by the counts of these. "auto" recognises columns of
        strings that have 5 words per cell or more, whose cells hardly repeat and whose words do; a name or a
        list names the columns; a mapping gives each the settings of scikit-learn's `CountVectorizer` (``{"message":
        {"ngram_range": (1, 2)}}``): analyzer, lowercase, strip_accents, ngram_range, stop_words, token_pattern, binary,
        min_df, max_df and max_features (default: the 131,072 words that most rows hold). None reads all strings as
        categories, and so does "auto" with columns that `categorical_features` or `keep` names. See docs/text.md.

    Examples
    --------
    >>> import posteriori as po
    >>> model = po.NaiveBayes(columns=po.Columns(categorical_features=[0]))
    >>> model.fit([[1], [2], [1]], ["a", "b", "a"]).schema_.columns[0].kind
    'categorical'
    """

    categorical_features: Any = None
    keep: Any = None
    dates: Any = "parts"
    text: Any = "auto"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "categorical_features": [None, str, "array-like"],
        "keep": [None, str, list, tuple],
        "dates": [StrOptions({"parts", "ignore"}), list, tuple],
        "text": [None, str, list, tuple, Mapping],
    }

    @property
    def is_automatic(self) -> bool:
        """Whether the model chooses the categorical columns."""
        return isinstance(self.categorical_features, str) and self.categorical_features == "auto"

    def require_no_text(self, name: str) -> None:
        """Raise ValueError if columns of text are named, for a model of this name that reads none."""
        if self.text is not None and not isinstance(self.text, str):
            raise ValueError(
                f"{name} does not read text, but text names {list(self.text)}; leave it out, or "
                "choose NaiveBayes or GenerativeClassifier"
            )


GROUPS: dict[str, type[ParameterGroup]] = {"em": EM, "labels": Labels, "columns": Columns}
_EXAMPLES = {"em": "max_iter=50", "labels": 'unlabelled="learn"', "columns": 'categorical_features=["zip"]'}


class HasGroups(Protocol):
    """An estimator; a group that is no parameter of it is None."""

    em: EM | None
    labels: Labels | None
    columns: Columns | None


class ReadsColumns(Protocol):
    """What the parameters of an estimator, or of a pool, ask of its columns."""

    columns: Columns | None


class ReadsLabels(Protocol):
    """What the parameters of an estimator, or of a pool, ask of its labels."""

    labels: Labels | None


def em_of(estimator: HasGroups) -> EM:
    """Return the parameters of EM of an estimator; the defaults if it states none."""
    return estimator.em or EM()


def labels_of(estimator: ReadsLabels) -> Labels:
    """Return the parameters about labels of an estimator; the defaults if it states none."""
    return estimator.labels or Labels()


def columns_of(estimator: ReadsColumns) -> Columns:
    """Return the parameters about columns of an estimator, single names as lists; the defaults if it states none."""
    stated = estimator.columns or Columns()
    keep, text = stated.keep, stated.text
    if isinstance(keep, str) and keep != "all":
        stated = replace(stated, keep=[keep])
    if isinstance(text, str) and text != "auto":
        stated = replace(stated, text=[text])
    return stated


def set_grouped_params(estimator: _Estimator, **parameters: Any) -> _Estimator:
    """Set parameters, also those of groups: ``em__tol=1e-3``; the method `set_params` of estimators with groups."""
    nested = {one.partition("__")[0] for one in parameters if "__" in one}
    for name, kind in GROUPS.items():
        if name in nested and name not in parameters and getattr(estimator, name, kind) is None:
            setattr(estimator, name, kind())
    BaseEstimator.set_params(estimator, **parameters)
    return estimator


def validate_grouped_params(estimator: BaseEstimator) -> None:
    """Check the parameters of an estimator and of its groups; its method `_validate_params`."""
    for name, kind in GROUPS.items():
        given = getattr(estimator, name, None)
        if given is not None and not isinstance(given, kind):
            example = f"{name}=po.{kind.__name__}({_EXAMPLES[name]})"
            shown = reprlib.repr(given)
            raise InvalidParameterError(f"{name} is {shown}; it takes a po.{kind.__name__}, such as {example}")
    BaseEstimator._validate_params(estimator)
    for name in GROUPS:
        group = getattr(estimator, name, None)
        if group is not None:
            group.check()


PSEUDO_COUNT = Interval(Real, 0, 1e15, closed="both")  # more says no more; it fits into 64 bits as an integer
_MOST_COMPONENTS = 10_000  # of a class
_FEWEST_ROWS = 1.5  # weight of a component below which a warning names it


def find_column(key: Any, names: Sequence[str], parameter: str) -> int:
    """Return the position of a feature, by its name or by its index among the features."""
    if isinstance(key, str):
        if key not in names:
            raise ValueError(f"{parameter} names {key!r}, which is not a feature of X ({quote(names)})")
        return names.index(key)
    if not isinstance(key, int | np.integer) or not -len(names) <= key < len(names):
        shown = " ".join(repr(key).split())
        raise ValueError(f"{parameter} names {shown}; give a column's name or an index below {len(names)}")
    return int(key) % len(names)


def column_of(key: Any, schema: Schema) -> int:
    """Return the position in a schema of the column that `distributions` names, by its name or index in the table."""
    if key in schema.names:
        return schema.names.index(key)
    place = find_column(key, schema.given, "distributions")
    columns = [j for j, one in enumerate(schema.places) if one == place]
    if schema.columns[columns[0]].part is not None:
        parts = quote(schema.names[j] for j in columns)
        raise ValueError(f"distributions names {key!r}, which holds dates; name one of its parts: {parts}")
    return columns[0]


def with_exposure(density: Any, column: Column, schema: Schema) -> Any:
    """Return the density of a column, with its exposure by name if it conditions on one.

    Raises ValueError if there is no such column, or it is not another column of numbers that the model uses.
    """
    given = getattr(density, "exposure", None)
    if given is None:
        return density
    j = column_of(given, schema)
    exposure = schema.columns[j]
    if exposure.kind != "continuous" or exposure.is_ignored or exposure.name == column.name:
        what = "the column itself" if exposure.name == column.name else "not a column of numbers that the model uses"
        raise ValueError(
            f"the exposure of column {column.name!r} is {exposure.name!r}, which is {what}; name another column"
        )
    return replace(density, exposure=exposure.name)


def text_places(
    text: Any, keep: Any, columns: Sequence[int], names: Sequence[str], categorical: Collection[int]
) -> Texts:
    """Return which columns of a table may be text, or are, from the parameters `text` and `keep`.

    columns and names are the positions and the names of the features; categorical are features that are not text.
    """
    if text is None:
        return ()
    if isinstance(text, str):
        named = keep if isinstance(keep, list | tuple) else ()
        others = {*categorical, *(find_column(one, names, "keep") for one in named)}
        return frozenset(columns[j] for j in range(len(names)) if j not in others)
    settings: Mapping[Any, Any] = text if isinstance(text, Mapping) else {key: {} for key in text}
    return {columns[find_column(key, names, "text")]: Tokenizer.of(one) for key, one in settings.items()}


def _place_of_distribution(key: Any, names: Sequence[str]) -> int:
    """Return the position in the table of the column, or of the column of dates whose part, `distributions` names."""
    if isinstance(key, str) and key not in names:
        name, _, part = key.rpartition(".")
        if name in names and part in PARTS:
            return names.index(name)
    return find_column(key, names, "distributions")


def categorical_places(stated: Any, distributions: Any, names: Sequence[str]) -> set[int]:
    """Return the features that are categorical whatever their data type.

    Parameters
    ----------
    stated, distributions
        The parameters `categorical_features` and `distributions` of an estimator.
    names : sequence of str
        The features.
    """
    chosen = _places_of(stated, names)
    if isinstance(distributions, Mapping):
        for key, distribution in distributions.items():
            position = _place_of_distribution(key, names)
            is_part = isinstance(key, str) and key not in names
            if getattr(distribution, "kind", distribution) == "categorical" and not is_part:
                chosen.add(position)
    return chosen


def kept_places(keep: Any, categorical_features: Any, distributions: Any, names: Sequence[str]) -> set[int] | None:
    """Return which of the features are modelled even if they identify rows; None for all.

    These are the columns that the parameters of an estimator name. `names` are the features.
    """
    if isinstance(keep, str) and keep == "all":
        return None
    chosen = _places_of(categorical_features, names)
    chosen.update(find_column(one, names, "keep") for one in (keep if isinstance(keep, list | tuple) else ()))
    return chosen | stated_places(distributions, names)


def stated_places(distributions: Any, names: Sequence[str]) -> set[int]:
    """Return the features that the parameter `distributions` names; none if it is no mapping."""
    return (
        {_place_of_distribution(key, names) for key in distributions} if isinstance(distributions, Mapping) else set()
    )


def _places_of(stated: Any, names: Sequence[str]) -> set[int]:
    """Return the positions of the features that `categorical_features` names."""
    chosen: set[int] = set()
    if isinstance(stated, str) and stated == "all":
        return set(range(len(names)))
    if stated is not None and not (isinstance(stated, str) and stated in ("auto", "from_dtype")):
        wanted = [stated] if isinstance(stated, str) else np.atleast_1d(np.asarray(stated, dtype=object)).tolist()
        if wanted and all(isinstance(one, bool | np.bool_) for one in wanted):
            if len(wanted) != len(names):
                raise ValueError(
                    f"categorical_features is a mask of {len(wanted)} entries but there are {len(names)} features"
                )
            chosen.update(j for j, one in enumerate(wanted) if one)
        else:
            chosen.update(find_column(one, names, "categorical_features") for one in wanted)
    return chosen


def reject_quantity(classes: Column, labels: LabelColumn) -> None:
    """Raise ValueError if labels are numbers that look like a quantity, by `looks_like_a_quantity`.

    Labels of a categorical data type are classes.
    """
    declared = classes.dtype in ("category", "ordered", "Categorical", "Enum") or classes.dtype.startswith("dictionary")
    n_rows = labels.table.n_rows
    if not declared and looks_like_a_quantity(classes.categories, n_rows):
        raise ValueError(
            f"y holds {len(classes.categories):,} different numbers in {n_rows:,} rows, from "
            f"{classes.categories[0]:g} to {classes.categories[-1]:g}, and looks like a quantity; cut it into classes "
            "with posteriori.tables.quantile_classes(y, 4), or, if these are names of classes, give them as strings"
        )


def require_in_memory(table: Table, what: str) -> None:
    """Raise ValueError if a table is in partitions, because the result may not fit into this process."""
    if isinstance(table, PartitionedTable):
        raise ValueError(f"{what} is for some rows; take them out of the cluster's table first")


def reject_target(table: Table, model: str) -> None:
    """Raise ValueError if files were scanned with a target for a model without labels."""
    if isinstance(table, LazyTable) and table.target is not None:
        raise ValueError(
            f"{model} learns without labels, and the target of the scan is {table.target!r}; scan the files without "
            "target, and name the features in columns"
        )


def missingness_of(missing: str, alpha: float, schema: Schema) -> tuple[Block, ...]:
    """Return the block of the missing-cell indicators if the parameter `missing` is "informative"."""
    if missing != "informative":
        return ()
    # The parts of a date are missing together; bags of words are never missing.
    columns = tuple(j for j in schema.first_of_each if schema.columns[j].kind != "counts")
    return (Block(Missingness(alpha), columns),) if columns else ()


def labels_to_learn(
    labels: LabelColumn | PartialLabels, unlabelled: Any, has_parameter: bool, last: bool
) -> LabelColumn | PartialLabels:
    """Return the labels of training rows, and allow missing ones if the parameters do.

    Parameters
    ----------
    labels : LabelColumn
    unlabelled : "error", "learn", "ignore" or a label
        The parameter of the estimator; a label is the code of a missing label.
    has_parameter : bool
        Whether the estimator has the parameter.
    last : bool
        Whether no more rows follow, because EM needs all of them at once.
    """
    if not (isinstance(unlabelled, str | bool | int | float | np.generic) or is_missing(unlabelled)):
        raise ValueError(f'unlabelled is a {type(unlabelled).__name__}; give "error", "learn", "ignore" or a label')
    if isinstance(labels, PartialLabels):
        if has_parameter and last:
            return labels
        raise ValueError(
            "y is a mask of possible classes, which takes EM over all rows: NaiveBayes, GaussianDiscriminant, "
            "TreeAugmentedNaiveBayes and ChowLiuClassifier learn from it by fit"
        )
    if unlabelled == "error" or not has_parameter:
        advice = ', or learn from them by labels=po.Labels(unlabelled="learn")' if has_parameter and last else ""
        return replace(labels, advice=f"drop or label such rows{advice}")
    if unlabelled == "ignore":
        return replace(labels, may_miss=True)
    code = None if unlabelled == "learn" or is_missing(unlabelled) else unlabelled
    if last:
        return replace(labels, code=code, may_miss=True)
    advice = "partial_fit learns from labelled rows, and EM needs all rows at once: drop or label such rows, or use fit"
    return replace(labels, code=code, advice=advice)


def columns_with_values(model: GenerativeModel, statistics: JointStatistics) -> Array:
    """Return the columns that have a value in some row of positive weight, (d,) booleans."""
    seen = np.zeros(len(model.schema.columns), np.bool_)
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        seen[list(block.columns)] |= sums.observed().any(axis=0)
    return seen


def warn_of_empty_columns(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Warn of columns without a value in any row of positive weight."""
    seen = columns_with_values(model, statistics)
    modelled = {j for block in model.blocks for j in block.columns}
    empty = [model.schema.columns[j].name for j in model.schema.dense if j in modelled and not seen[j]]
    if empty:
        verb = "have" if len(empty) > 1 else "has"
        warn(f"{quote(empty)} {verb} no cell with a value and will influence no prediction")


def warn_of_few_rows(weight: Array) -> None:
    """Warn of components that have hardly any rows; weight (Z,) is that of their rows."""
    few = np.flatnonzero(weight < _FEWEST_ROWS)
    if len(few) and weight.sum() > _FEWEST_ROWS * len(weight):
        listed = ", ".join(f"{z} ({weight[z]:.2g} rows)" for z in few)
        warn(f"components with hardly a row: {listed}; ask for fewer, or raise pseudo_rows or n_init")


def warn_of_undetermined(model: GenerativeModel, statistics: JointStatistics, labels: Sequence[Any]) -> None:
    """Warn of variances and covariances that the rows do not determine; labels (Z,) are the classes of components."""
    columns = model.schema.columns
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        density = block.density
        if isinstance(density, Gaussian) and density.smoothing <= 0:
            constant = (sums.weight > density.ddof) & (sums.scatter == 0)
            if constant.any():
                z, position = np.argwhere(constant)[0]
                warn(
                    f"column {columns[block.columns[position]].name!r} does not vary within class {labels[z]!r}: its "
                    "maximum-likelihood variance is 0 and its density infinite; a small variance is used instead; use "
                    "po.Gaussian(smoothing=1.0)"
                )
        involved = density.undetermined(sums) if isinstance(density, MultivariateGaussian) else []
        if involved:
            names = quote(columns[block.columns[j]].name for j in involved)
            warn(
                f"the covariance is singular: {names} {'are' if len(involved) > 1 else 'is'} constant or linearly "
                "dependent within a class (or rows are too few); a spread of 1e-3 standard deviations is used; "
                "set shrinkage, or leave columns out"
            )


def warn_of_one_class(classes: Column, name: str | None) -> None:
    """Warn if there is only one class; name is that of the column of labels, if they are one."""
    if classes.cardinality == 1:
        labels = "y" if name is None else f"the target {name!r}"
        label = reprlib.repr(classes.categories[0])
        warn(f"{labels} has only one class, {label}: every prediction will be that class")


def components_of(stated: Any, classes: Column) -> tuple[int, ...]:
    """Return the class of each component, ascending; empty if every class is one component.

    Parameters
    ----------
    stated : int, mapping or None
        The parameter `components_per_class` of an estimator: the number of components of every class, or by class.
    classes : Column
    """
    if stated is None:
        return ()
    many = dict.fromkeys(classes.categories, 1)
    if isinstance(stated, Mapping):
        for label, count in stated.items():
            if label not in many:
                raise ValueError(
                    f"components_per_class names {label!r}, which is not a class; they are {list(classes.categories)}"
                )
            many[label] = count
    else:
        many = dict.fromkeys(classes.categories, stated)
    for label, count in many.items():
        if isinstance(count, bool) or not isinstance(count, int | np.integer) or not 1 <= count <= _MOST_COMPONENTS:
            raise ValueError(
                f"components_per_class is {count!r} for class {label!r}; give a whole number, at least 1 and at most "
                f"{_MOST_COMPONENTS:,}"
            )
    if all(count == 1 for count in many.values()):
        return ()
    return tuple(c for c, count in enumerate(many.values()) for _ in range(count))


def make_label_model(noise: Any, of_class: tuple[int, ...], partial: bool, classes: Column) -> LabelModel | None:
    """Return the label model, log p(label | z); None if the label of a row is its component.

    Parameters
    ----------
    noise : None, float, (C, C) or "learn"
        The parameter `label_noise` of an estimator.
    of_class : tuple of int
        The class of each component; empty if every class is one component.
    partial : bool
        Whether a row may carry several possible classes.
    classes : Column
    """
    n_classes = len(classes.categories)
    positions = of_class or tuple(range(n_classes))
    if noise is None:
        return LabelModel(positions) if of_class or partial else None
    if partial:
        raise ValueError("label_noise needs one recorded label per row, and y is a mask; give one or the other")
    if isinstance(noise, str):
        if noise != "learn":
            raise ValueError(f'label_noise is {noise!r}; give "learn", a share of wrong labels, or a matrix')
        return LabelModel.learning(positions)
    return LabelModel(positions, _confusion(noise, classes))


_MOST_LEARNED = 1 / 3  # share of labels that learned confusions may contradict without a warning


def warn_of_contradicted_labels(labels: LabelModel | None) -> None:
    """Warn if EM contradicts more labels than were stated, or than are likely to be wrong at all."""
    if labels is None or not (labels.discount > 0 or (labels.learned and labels.contradicted > _MOST_LEARNED)):
        return
    cause = "the posterior of a model whose columns depend on each other given the class outweighs the labels"
    if labels.learned:
        warn(
            f'label_noise="learn" contradicts {labels.contradicted:.0%} of the labels: {cause}; state the share of '
            "wrong labels (label_noise=0.05), which EM is then held to, or leave label_noise out"
        )
    else:
        warn(
            f"label_noise states {labels.stated_share:.1%} wrong labels, and EM would contradict "
            f"{labels.contradicted:.1%} of them: {cause}; EM was held to the stated share; compare the held-out score "
            "without label_noise, or choose a model of dependent columns"
        )


def _confusion(noise: Any, classes: Column) -> Array:
    """Return p(recorded | true), (C, C), from a share of wrong labels, a matrix, or a mapping of mappings."""
    labels, n_classes = classes.categories, len(classes.categories)
    if isinstance(noise, Mapping):
        if not all(isinstance(row, Mapping) for row in noise.values()):
            raise ValueError("label_noise has no mapping of recorded labels of a class; give {true: {recorded: p}}")
        strange = [label for row in (noise, *noise.values()) for label in row if label not in classes.lookup]
        if strange:
            raise ValueError(f"label_noise names {strange[0]!r}, which is not a class; they are {list(labels)}")
        right = {label: {label: 1.0} for label in labels}
        noise = [[(right | dict(noise))[true].get(label, 0.0) for label in labels] for true in labels]
    try:
        confusion = np.asarray(noise, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"label_noise is a {type(noise).__name__}; give a share, a matrix or a mapping") from None
    if confusion.ndim == 0:
        share = float(confusion)
        if not 0 <= share < 1:
            raise ValueError(f"label_noise is {share:g}; as the share of wrong labels it is at least 0 and below 1")
        if n_classes == 1:
            return np.ones((1, 1))
        confusion = np.full((n_classes, n_classes), share / (n_classes - 1))
        np.fill_diagonal(confusion, 1.0 - share)
    if confusion.shape != (n_classes, n_classes):
        raise ValueError(
            f"label_noise is of shape {confusion.shape}; give ({n_classes}, {n_classes}), with one row per true class"
        )
    if (confusion < 0).any() or not np.allclose(confusion.sum(axis=1), 1.0, rtol=0.0, atol=1e-6):
        raise ValueError(
            "label_noise has a row that is not a distribution: give p(recorded | true), with rows that sum to 1"
        )
    normalised: Array = confusion / confusion.sum(axis=1, keepdims=True)
    return normalised


def em_options_of(em: EM, random_state: Any) -> EMOptions:
    """Return the limits of EM and the seed of its initializations, from the parameters of an estimator."""
    # Only a class of several components starts at random.
    seed = 0 if em.components_per_class is None else int(generator(random_state).integers(2**31))
    return EMOptions(em.tol, em.max_iter, em.n_init, seed)
