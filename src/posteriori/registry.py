"""The registry of models: every name by which a model can be asked for, and what the name stands for.

One name is one model, in `GenerativeClassifier(members=…)`, `cross_validate`, `compare` and on the command line. The
name of a variant is that of its base model, followed by the settings that differ: "tan 30" is TAN with a backoff of 30
pseudo-counts.

A model is named by module and class, and imported when it is made. So this module imports nothing heavy, and the
command line can print its help from it.
"""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from posteriori.model_cost import (
    EM_STEPS,
    MAX_LEARNED_CELLS,
    MOST_CLASSES_OF_CELLS,
    MOST_PARAMETERS,
    ROWS_OF_RESIDUAL,
    ROWS_PER_COLUMN,
    CostModel,
    Language,
    TableSummary,
    cost_of_averaged_pairs,
    cost_of_covariances,
    cost_of_pairs,
    cost_per_column,
    fine_bins,
)

_NO_OPTIONS: frozenset[str] = frozenset()
_EM_OPTIONS = frozenset({"missing", "label_noise"})


def _accept(table: TableSummary) -> str | None:
    return None


def decline_categories(table: TableSummary) -> str | None:
    """Return why a model of numbers and counts does not apply to a table of categories; None if it holds others."""
    return None if table.n_counts else decline_without_numbers(table)


def decline_without_others(table: TableSummary) -> str | None:
    """Return why a model of bins and categories does not apply to counts of words alone; None if there are others."""
    return None if table.columns else "there is no column but counts of words"


def decline_two_classes(table: TableSummary) -> str | None:
    """Return why complements of classes do not apply: of two classes, each is the other; None if there are more."""
    two = "of two classes, each is the complement of the other, and multinomial is the same model"
    return two if table.n_classes == 2 else None


def decline_fractions(table: TableSummary) -> str | None:
    """Return why a model of whole counts of words does not apply; None if all counts are whole."""
    return None if table.whole_counts else "some counts of words are fractions"


def decline_few_rows(table: TableSummary) -> str | None:
    """Return why no trees are grown on what other models leave; None if a part of the rows can be kept from these.

    Of few rows too many would have to be: what is left shows only in rows from which the others have not learned.
    """
    if table.n_rows < ROWS_OF_RESIDUAL:
        return f"what the others leave shows in rows kept from them, and the table has {table.n_rows:,}"
    return decline_without_others(table)


def decline_cells(table: TableSummary) -> str | None:
    """Return why one number per category or bin and class cannot be learned from a table; None if it can."""
    if table.n_counts:
        return "counts of words have no categories and no bins"
    if table.n_classes > MOST_CLASSES_OF_CELLS:
        return f"it would learn a number per cell for each of {table.n_classes} classes (limit {MOST_CLASSES_OF_CELLS})"
    size = table.n_classes * sum(column.cardinality or fine_bins(table.n_rows) for column in table.columns)
    return (
        f"it would learn {size:,} numbers at once (limit {MAX_LEARNED_CELLS:,})" if size > MAX_LEARNED_CELLS else None
    )


def decline_without_numbers(table: TableSummary) -> str | None:
    """Return why a model of numbers does not apply to a table of categories; None if the table holds numbers."""
    return None if table.n_continuous else "no column holds numbers"


def decline_uncertain_covariance(table: TableSummary) -> str | None:
    """Return why one covariance of all classes cannot be estimated from a table; None if it can.

    A missing number is predicted from all others, by a regression on the other columns. At 2.5 rows per column the
    rows outside one fold of five are twice as many as the columns. Measured with 5 % of the numbers missing, mean of
    three draws, log-loss on new rows of the pool without and with LDA: at 1.5 rows per column 0.156 and 0.161 (wdbc),
    0.27 and 0.30 (spambase), 0.75 and 1.57 (satimage); at 2.0 rows 0.152 and 0.151 (wdbc), 0.62 and 0.69 (satimage).
    """
    d, n_rows = table.n_continuous, table.n_rows - table.n_classes
    if d and table.n_incomplete and n_rows < ROWS_PER_COLUMN * (d + 1):
        return (
            f"missing numbers would be predicted from {d} columns with {table.n_rows:,} rows; that takes "
            f"{ROWS_PER_COLUMN:g} rows per column"
        )
    return decline_without_numbers(table)


def decline_uncertain_covariances(table: TableSummary) -> str | None:
    """Return why one covariance per class cannot be estimated from a table; None if they can."""
    d = table.n_continuous
    n_parameters, n_cells = table.n_classes * d * (d + 1) // 2, table.n_rows * d
    if n_parameters > MOST_PARAMETERS * n_cells:
        return f"its covariances would have {n_parameters:,} parameters, and the table has {n_cells:,} numbers"
    return decline_uncertain_covariance(table)


class Subject(StrEnum):
    """The kind of things that a model answers about, and so which sentences and pages its answers have."""

    CLASS = "class"
    NUMBER = "number"
    COMPONENT = "component"
    ROWS = "whole rows"
    COLUMNS = "any column"
    VARIABLES = "any variable"


@dataclass(frozen=True)
class ModelSpec:
    """A model that can be asked for by name."""

    name: str  # the name in code and on the command line
    title: str  # the name in tables and pictures
    description: str  # one line that says what the model is
    estimator: str  # its class, as "module:Class"
    # the parameters that differ from the defaults of the class; ``em__tol`` is the parameter `tol` of `em`
    parameters: Mapping[str, Any] = field(default_factory=dict)
    # what it can be asked for beyond its parameters: "distributions" (a density per column), "binned" (numbers cut into
    # bins), "counts" (columns of counts), "text" (columns of text), "missing" (informative missing cells),
    # "label_noise" (noisy labels and mixtures as classes)
    options: frozenset[str] = _NO_OPTIONS
    cost: CostModel = cost_per_column  # takes a `TableSummary` to a `Cost`
    # takes a `TableSummary` to the reason why the model does not apply; to None if it does
    decline: Callable[[TableSummary], str | None] = _accept
    in_pool: bool = False  # whether `GenerativeClassifier(members="auto")` tries it
    # whether the pool tries it only if a column holds counts of words; it takes numbers as binned
    of_counts: bool = False
    generative: bool = True  # whether it has p(x, y) and can be saved; otherwise it is a peer for comparisons
    is_costly: bool = False  # whether the pool fits it to all rows only if a trial shows its use
    sees: str = ""  # of a candidate: how it sees a table, in words for people who know no model
    # of a candidate: others that see a table alike; it is tried only where none of them is
    stands_in_for: tuple[str, ...] = ()

    @property
    def estimator_class(self) -> type[Any]:
        """The class, imported on first use."""
        module, _, name = self.estimator.partition(":")
        found: type[Any] = getattr(importlib.import_module(module), name)
        return found

    def make(self, **parameters: Any) -> Any:
        """Return an estimator with the parameters of the model, and others on top."""
        stated = {**self.parameters, **parameters}
        plain = {name: value for name, value in stated.items() if "__" not in name}
        nested = {name: value for name, value in stated.items() if "__" in name}  # one parameter of a group
        return self.estimator_class(**plain).set_params(**nested)


_NAIVE_BAYES = "posteriori.classifiers.naive_bayes:NaiveBayes"
_DISCRIMINANT = "posteriori.classifiers.gaussian_discriminant:GaussianDiscriminant"
_TAN = "posteriori.classifiers.trees:TreeAugmentedNaiveBayes"
_KDB = "posteriori.classifiers.dependence:KDependenceBayes"
_AODE = "posteriori.classifiers.dependence:AveragedOneDependence"
_FOREST = "posteriori.classifiers.generative_forest:GenerativeForest"

# The prior of predictive densities keeps covariances of few rows regular. Candidates need no more than a rough optimum.
_INTEGRATED: dict[str, Any] = {"predictive": True, "em__tol": 1e-3, "em__max_iter": EM_STEPS}
_WEIGHTED: dict[str, Any] = {"feature_weights": "conditional"}
_GAUSSIAN: dict[str, Any] = {"options": _EM_OPTIONS, "cost": cost_of_covariances}
_TREE: dict[str, Any] = {"options": _EM_OPTIONS | {"binned"}, "cost": cost_of_pairs}
_PAIRS: dict[str, Any] = {"options": frozenset({"binned", "missing"}), "cost": cost_of_pairs}
_AVERAGED: dict[str, Any] = {"options": frozenset({"binned", "missing"}), "cost": cost_of_averaged_pairs}
_TREES: dict[str, Any] = {
    "options": frozenset({"binned", "missing"}),
    "decline": decline_without_others,
    "is_costly": True,
}
_RESIDUAL: dict[str, Any] = {"options": frozenset({"binned", "missing"}), "decline": decline_few_rows}
_SHARED_COVARIANCE: dict[str, Any] = {**_GAUSSIAN, "decline": decline_uncertain_covariance, "in_pool": True}
_OWN_COVARIANCES: dict[str, Any] = {**_GAUSSIAN, "decline": decline_uncertain_covariances, "in_pool": True}
# A row of many words gives a block of counts a factor that is far too sure: its weight makes up for it.
_COUNTS: dict[str, Any] = {"options": _EM_OPTIONS | {"distributions", "counts"}, "in_pool": True, "of_counts": True}


def _peers(kind: str, estimator: str, models: Mapping[str, tuple[str, str, dict[str, Any]]]) -> tuple[ModelSpec, ...]:
    """Return discriminative models, which are only for comparisons."""
    return tuple(
        ModelSpec(
            name,
            title,
            f"{kind}: {what}",
            f"posteriori.comparison.discriminative:{estimator}",
            parameters,
            generative=False,
        )
        for name, (title, what, parameters) in models.items()
    )


# The order of the candidates (`in_pool`) is the order of `cv_results_`. Each sees a table in a way of its own (`sees`),
# or takes the place of another that cannot be fitted.
_SPECS = (
    ModelSpec(
        "pool",
        "pool",
        "every suitable model, combined by cross-validated performance",
        "posteriori.classifiers.generative_classifier:GenerativeClassifier",
        options=frozenset({"distributions", "binned", "text", "missing"}),
    ),
    ModelSpec(
        "nb",
        "naive Bayes",
        "naive Bayes: features independent given the class",
        _NAIVE_BAYES,
        options=_EM_OPTIONS | {"distributions", "binned", "counts", "text"},
        decline=decline_categories,
    ),
    ModelSpec("lda", "LDA", "Gaussian numbers, one covariance for all classes", _DISCRIMINANT, **_GAUSSIAN),
    ModelSpec(
        "qda",
        "QDA",
        "Gaussian numbers, one covariance per class",
        _DISCRIMINANT,
        {"pooling": "per_class"},
        **_GAUSSIAN,
    ),
    ModelSpec(
        "rda",
        "RDA",
        "Gaussian numbers, half-way between lda and qda",
        _DISCRIMINANT,
        # Half of each: shrinking towards a sphere as well would depend on the units of the columns.
        {"pooling": 0.5},
        **_GAUSSIAN,
    ),
    ModelSpec("tan", "TAN", "naive Bayes with a tree of features, one for all classes", _TAN, **_TREE),
    ModelSpec(
        "chow-liu",
        "Chow-Liu",
        "a tree of features per class",
        "posteriori.classifiers.trees:ChowLiuClassifier",
        **_TREE,
    ),
    ModelSpec("kdb", "kDB 2", "each feature depends on up to 2 others", _KDB, {"k": 2}, **_PAIRS),
    ModelSpec("aode", "AODE", "mean over models in which all features depend on one", _AODE, **_AVERAGED),
    ModelSpec(
        "nb predictive",
        "naive Bayes, predictive",
        "nb, parameters of Gaussians integrated out",
        _NAIVE_BAYES,
        {"predictive": True},
        options=_EM_OPTIONS | {"distributions", "binned", "counts", "text"},
        decline=decline_categories,
        in_pool=True,
        sees="one bell curve per column",
        stands_in_for=("lda predictive", "rda predictive"),
    ),
    ModelSpec(
        "lda predictive",
        "LDA, predictive",
        "lda, parameters integrated out",
        _DISCRIMINANT,
        _INTEGRATED,
        **_SHARED_COVARIANCE,
        sees="straight boundaries",
        stands_in_for=("rda predictive",),
    ),
    ModelSpec(
        "rda predictive",
        "RDA, predictive",
        "rda, parameters integrated out",
        _DISCRIMINANT,
        {**_INTEGRATED, "pooling": 0.5},
        **_OWN_COVARIANCES,
        sees="gently curved boundaries",
    ),
    ModelSpec(
        "qda predictive",
        "QDA, predictive",
        "qda, parameters integrated out",
        _DISCRIMINANT,
        {**_INTEGRATED, "pooling": "per_class"},
        **_OWN_COVARIANCES,
        sees="curved boundaries",
    ),
    ModelSpec(
        "binned weighted",
        "naive Bayes, binned, weighted",
        "nb with binned numbers and one weight per feature",
        _NAIVE_BAYES,
        {"distributions": "binned", "bins": "auto", **_WEIGHTED},
        options=_EM_OPTIONS | {"binned", "counts"},
        decline=decline_without_others,
        in_pool=True,
        sees="one weighted column at a time",
        stands_in_for=("kdb weighted",),
    ),
    ModelSpec(
        "cells",
        "naive Bayes, learned tables",
        "nb with fine bins, one learned number per category, bin and class",
        _NAIVE_BAYES,
        {"distributions": "binned", "bins": "fine", "feature_weights": "cells"},
        options=_EM_OPTIONS | {"binned"},
        decline=decline_cells,
        in_pool=True,
        sees="one column at a time",
    ),
    ModelSpec(
        "tan 5",
        "TAN, backoff 5",
        "tan, backoff 5: little smoothing",
        _TAN,
        {"backoff": 5.0},
        **_TREE,
        in_pool=True,
        sees="a tree of pairs",
    ),
    ModelSpec("tan 30", "TAN, backoff 30", "tan, backoff 30: much smoothing", _TAN, {"backoff": 30.0}, **_TREE),
    ModelSpec(
        "kdb weighted",
        "kDB 2, weighted",
        "kdb, backoff 5, one weight per feature",
        _KDB,
        {"backoff": 5.0, **_WEIGHTED},
        **_PAIRS,
        in_pool=True,
        sees="each column beside two others",
    ),
    ModelSpec("aode 5", "AODE, backoff 5", "aode, backoff 5", _AODE, {"backoff": 5.0}, **_AVERAGED),
    ModelSpec(
        "aode 8 bins",
        "AODE, 8 bins",
        "aode, backoff 5, numbers in 8 bins of equal counts, or by their values if few",
        _AODE,
        {"bins": "coarse", "backoff": 5.0},
        **_AVERAGED,
        in_pool=True,
        sees="all pairs",
    ),
    ModelSpec(
        "forest",
        "generative forest",
        "randomised trees, each a joint distribution",
        _FOREST,
        **_TREES,
    ),
    ModelSpec(
        "forest best",
        "generative forest, best splits",
        "forest, the best cut of each column that is tried",
        _FOREST,
        {"splits": "best"},
        **_TREES,
    ),
    ModelSpec(
        "forest mixed",
        "generative forest, mixed splits",
        "forest, every second tree with the best cuts",
        _FOREST,
        {"splits": "mixed"},
        **_TREES,
        in_pool=True,
        sees="rules",
    ),
    ModelSpec(
        "residual trees",
        "trees on what the others leave",
        "boosted trees; in a pool on what its other members leave",
        _FOREST,
        {"combine": "sum"},
        **_RESIDUAL,
        in_pool=True,
        sees="what the others leave",
    ),
    ModelSpec(
        "scaled",
        "naive Bayes, scaled counts",
        "nb weighted, counts of words on a log scale, per length of row",
        _NAIVE_BAYES,
        {"distributions": "scaled", **_WEIGHTED},
        **_COUNTS,
        sees="words on a log scale",
    ),
    ModelSpec(
        "scaled 0.1",
        "naive Bayes, scaled counts 0.1",
        "scaled, with pseudo-counts of 0.1",
        _NAIVE_BAYES,
        {"distributions": "scaled", **_WEIGHTED, "alpha": 0.1},
        **_COUNTS,
        sees="lightly smoothed words on a log scale",
    ),
    ModelSpec(
        "complement",
        "naive Bayes, complement",
        "nb, counts of words scored by the other classes",
        _NAIVE_BAYES,
        {"distributions": "complement", **_WEIGHTED},
        decline=decline_two_classes,
        **_COUNTS,
        sees="words of the other classes",
    ),
    ModelSpec(
        "complement 0.1",
        "naive Bayes, complement 0.1",
        "complement, with pseudo-counts of 0.1",
        _NAIVE_BAYES,
        {"distributions": "complement", **_WEIGHTED, "alpha": 0.1},
        decline=decline_two_classes,
        **_COUNTS,
        sees="lightly smoothed words of the other classes",
    ),
    ModelSpec(
        "compound",
        "naive Bayes, Dirichlet-multinomial",
        "nb, counts of words that repeat within a row",
        _NAIVE_BAYES,
        {"distributions": "compound"},
        decline=decline_fractions,
        **_COUNTS,
        sees="words that repeat",
    ),
    ModelSpec(
        "presence",
        "naive Bayes, presence",
        "nb, words that occur or not",
        _NAIVE_BAYES,
        {"distributions": "presence", **_WEIGHTED},
        **_COUNTS,
        sees="words that occur or not",
    ),
    *_peers(
        "discriminative",
        "DiscriminativeClassifier",
        {
            "logistic": ("logistic regression", "logistic regression", {"classifier": "logistic"}),
            "boosting": ("gradient boosting", "histogram gradient boosting", {"classifier": "boosting"}),
            "random forest": ("random forest", "random forest", {"classifier": "forest"}),
        },
    ),
)

MODELS: dict[str, ModelSpec] = {spec.name: spec for spec in _SPECS}
# Not among the models, which are of classes: what `posteriori fit` makes of a target of numbers.
_OF_NUMBERS = (
    ModelSpec(
        "regressor",
        "pool of regressions",
        "a number, by a pool of regressions",
        "posteriori.classifiers.generative_regressor:GenerativeRegressor",
    ),
    ModelSpec(
        "additive",
        "sum of functions of single columns",
        "a number, by a sum of functions of single columns",
        "posteriori.classifiers.sum_regressors:AdditiveRegressor",
    ),
    ModelSpec(
        "kernel",
        "sum of functions of single columns and of similarities to rows",
        "a number, by a sum of functions of single columns and of similarities to rows",
        "posteriori.classifiers.sum_regressors:KernelRegressor",
    ),
)
REGRESSORS: dict[str, ModelSpec] = {spec.name: spec for spec in _OF_NUMBERS}
REGRESSOR = REGRESSORS["regressor"]  # the default
_PEERS_OF_NUMBERS = _peers(
    "a number without a density, discriminative",
    "DiscriminativeRegressor",
    {
        "boosting regressor": ("gradient boosting", "histogram gradient boosting", {"regressor": "boosting"}),
        "forest regressor": ("random forest", "random forest", {"regressor": "forest"}),
        "ridge": ("ridge regression", "ridge regression", {"regressor": "ridge"}),
    },
)
# What `compare` and `cross_validate` take for a target of numbers.
OF_NUMBERS: dict[str, ModelSpec] = REGRESSORS | {spec.name: spec for spec in _PEERS_OF_NUMBERS}
COMPARED_OF_NUMBERS = ("regressor", "additive", *(spec.name for spec in _PEERS_OF_NUMBERS))
COMPARED = ("pool", "nb", "lda", "tan", "logistic", "boosting")  # the default of `compare`
CROSS_VALIDATED = ("pool", "nb", "lda", "qda", "tan", "kdb", "aode")  # the default of `posteriori cv`


# What the pool can be fitted for (its parameter `language`), and where each stands.
_LANGUAGES = {"sql": "posteriori.sql.translation:LANGUAGE", "javascript": "posteriori.javascript.export:LANGUAGE"}
LANGUAGES = tuple(_LANGUAGES)


def find_language(name: str) -> Language:
    """Return the language of a name, imported on first use; ImportError if it needs a package that is absent."""
    module, _, attribute = _LANGUAGES[name].partition(":")
    try:
        found: Language = getattr(importlib.import_module(module), attribute)
    except ModuleNotFoundError as error:
        if error.name != "sqlglot":
            raise
        raise ImportError("SQL needs sqlglot: pip install sqlglot") from error
    return found


def find_model(name: str) -> ModelSpec:
    """Return the model of a name.

    Raises
    ------
    ValueError
        No model has this name; the message lists those that exist.

    Examples
    --------
    >>> find_model("qda").title
    'QDA'
    """
    if name not in MODELS:
        similar = difflib.get_close_matches(name, MODELS, 1)
        hint = f"is it {similar[0]!r}? " if similar else ""
        raise ValueError(f"there is no model {name!r}; {hint}the models are {', '.join(map(repr, MODELS))}")
    return MODELS[name]


def pool_candidates(counts: bool = False) -> dict[str, ModelSpec]:
    """Return the models that `GenerativeClassifier(members="auto")` tries, in the order of `cv_results_`.

    Parameters
    ----------
    counts : bool
        Whether the table has columns of counts of words.
    """
    return {name: spec for name, spec in MODELS.items() if spec.in_pool and (counts or not spec.of_counts)}


def member_models() -> dict[str, ModelSpec]:
    """Return the models that can be members of a pool: generative, and no pool themselves."""
    return {name: spec for name, spec in MODELS.items() if spec.generative and name != "pool"}


def describe_model(name: str) -> str:
    """Return the description of a model; an empty string for the pool and for names that are not in the registry."""
    return MODELS[name].description if name in MODELS and name != "pool" else ""


def seen_by(name: str) -> str:
    """Return how a model sees a table, in plain words (`ModelSpec.sees`); its name if the registry has no words."""
    return MODELS[name].sees or name if name in MODELS else name


def in_seen_words(sentence: str) -> str:
    """Return a sentence in which quoted names of models are what these see (`seen_by`)."""
    for name in MODELS:
        sentence = sentence.replace(repr(name), repr(seen_by(name)))
    return sentence


def names_with(option: str) -> str:
    """Return the names of the models that take an option, without variants and models of counts, as words."""
    *first, last = [
        name for name, spec in MODELS.items() if option in spec.options and " " not in name and not spec.of_counts
    ]
    return f"{', '.join(first)} or {last}" if first else last
