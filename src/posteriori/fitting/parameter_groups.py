"""Parameters of estimators that belong together: their values, their checks, and where an estimator keeps them."""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar, TypeVar

from sklearn.base import BaseEstimator
from sklearn.utils._param_validation import Interval, InvalidParameterError, StrOptions

from posteriori.learning.fit import EMOptions
from posteriori.support.checks import generator
from posteriori.support.keywords import Wanted, explain_unknown_keywords
from posteriori.tables import Column

_Estimator = TypeVar("_Estimator", bound=BaseEstimator)
_OF_OTHERS: Wanted = {
    "ignore": (("keep", "drop the columns from X"),),
    "drop": (("keep", "drop the columns from X"),),
    "categorical": (("categorical_features", "use categorical_features=…"),),
    "cat_features": (("categorical_features", "use categorical_features=…"),),
    "numeric": (("categorical_features", "cast the columns to numbers in X"),),
    "n_components": (("components_per_class", "use components_per_class=…"),),
    "random_state": (("n_init", "use random_state=… of the classifier"),),
}


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
    """Parameters on the labels of training rows: rows without label, and wrong labels.

    Parameters
    ----------
    unlabelled : "learn", "ignore", "error" or label, optional
        How missing labels (NaN, None, null) are handled. "learn" infers them by EM; "ignore" leaves their rows out, as
        weight 0 does; "error" raises an error. Any other value, such as scikit-learn's −1, is a label of y that marks a
        missing one, which is inferred by EM; a code that y does not hold is an error. Default: `fit` of a model that
        learns by EM infers them, everything else leaves their rows out, and a warning says which.
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

    unlabelled: Any = None
    unlabelled_weight: Any = 1.0
    label_noise: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "unlabelled": [object],
        "unlabelled_weight": [Interval(Real, 0, 1, closed="both"), StrOptions({"held_out"})],
        "label_noise": [None, Interval(Real, 0, 1, closed="left"), StrOptions({"learn"}), Mapping, "array-like"],
    }

    def is_one_of(self, *words: str) -> bool:
        """Return whether `unlabelled` is one of some words."""
        return isinstance(self.unlabelled, str) and self.unlabelled in words


@dataclass(kw_only=True, eq=False, repr=False)
class Columns(ParameterGroup):
    """Which columns are categorical, which are kept although they identify rows, and how dates and text are read.

    Columns to leave out are dropped from X.

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

    order : mapping from name to list, optional
        The categories of columns as levels, from the lowest to the highest: ``{"risk": ["low", "medium", "high"]}``, of
        labels that have no name ``{"y": …}``. Answers about such a column have a median level, intervals of levels and
        the ranked probability score (`posteriori.Answer`); probabilities do not depend on the order. Default: that of
        an ordered categorical of pandas, and of classes that a number was cut into; else none.

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
    order: Any = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "categorical_features": [None, str, "array-like"],
        "keep": [None, str, list, tuple],
        "dates": [StrOptions({"parts", "ignore"}), list, tuple],
        "text": [None, str, list, tuple, Mapping],
        "order": [None, Mapping],
    }

    @property
    def is_automatic(self) -> bool:
        """Whether the model chooses the categorical columns."""
        return isinstance(self.categorical_features, str) and self.categorical_features == "auto"

    def ordered_target(self, target: Column, features: Sequence[str]) -> Column:
        """Return a target in the order of its classes that the parameters state.

        Labels that come without a name are called "y", or by the one name that is of no feature.
        """
        order = self.order or {}
        strange = [name for name in order if name not in features]
        name = target.name if target.name in order or len(strange) != 1 or target.name != "y" else strange[0]
        return target.ordered_as(order[name]) if name in order else target

    def ordered(self, columns: Sequence[Column]) -> tuple[Column, ...]:
        """Return columns in the order of their categories that the parameters state."""
        order = self.order or {}
        return tuple([one.ordered_as(order[one.name]) if one.name in order else one for one in columns])

    def require_no_text(self, name: str) -> None:
        """Raise ValueError if columns of text are named, for a model of this name that reads none."""
        if self.text is not None and not isinstance(self.text, str):
            raise ValueError(
                f"{name} does not read text, but text names {list(self.text)}; leave it out, or "
                "choose NaiveBayes or GenerativeClassifier"
            )


GROUPS: dict[str, type[ParameterGroup]] = {"em": EM, "labels": Labels, "columns": Columns}
for _kind in GROUPS.values():
    _kind.__init__ = explain_unknown_keywords(_kind.__init__, {}, _OF_OTHERS)  # type: ignore[method-assign]
_EXAMPLES = {"em": "max_iter=50", "labels": 'unlabelled="learn"', "columns": 'categorical_features=["zip"]'}


def columns_of(stated: Columns | None) -> Columns:
    """Return the parameters on columns, single names as lists; the defaults if none are stated."""
    stated = stated or Columns()
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


def em_options_of(em: EM, random_state: Any) -> EMOptions:
    """Return the limits of EM and the seed of its initializations, from the parameters of an estimator."""
    # Only a class of several components starts at random.
    seed = 0 if em.components_per_class is None else int(generator(random_state).integers(2**31))
    return EMOptions(em.tol, em.max_iter, em.n_init, seed)
