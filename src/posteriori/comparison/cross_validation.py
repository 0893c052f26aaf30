"""Several models judged on rows they have not seen: exactly, and together, where they are generative."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from sklearn.base import clone

from posteriori.classifiers import GenerativeEstimator
from posteriori.comparison.models import chosen_models
from posteriori.comparison.rows import Rows, read_rows
from posteriori.comparison.writing import text_table
from posteriori.learning.folded_data import FoldedData, cross_fit_and_score
from posteriori.learning.folds import assign_folds
from posteriori.learning.metrics import fill_undefined
from posteriori.learning.scores import area_under_curve, scores_of
from posteriori.tables import check_weights
from posteriori.typing import Array

_SHOWN = ("log_loss", "accuracy", "brier", "auc", "calibration_error")


@dataclass(frozen=True)
class CrossValidation:
    """What models say of rows that they were not trained on, and how good it is.

    Attributes
    ----------
    table : polars DataFrame
        A row a model: ``model``, then log_loss (nats), accuracy, brier (in [0, 2]), auc (one class against the others,
        averaged by their shares) and calibration_error, each followed by its standard error, as ``log_loss_se``: over
        rows, of auc and calibration_error over folds.
    posteriors : dict
        p(y | x) of each row by each model of the other folds, (n, C).
    components, fold, weight : ndarray (n,)
        The number of each row's class, its fold, and its weight.
    classes : ndarray (C,)
    """

    table: pl.DataFrame
    posteriors: dict[str, Array]
    components: Array
    fold: Array
    weight: Array
    classes: Array

    def __str__(self) -> str:
        head = ["model", *(name.replace("_", "-").replace("log-loss", "log-loss") for name in _SHOWN)]
        lines = [
            [row["model"], *(f"{row[name]:.4f} ± {row[f'{name}_se']:.4f}" for name in _SHOWN)]
            for row in self.table.iter_rows(named=True)
        ]
        return text_table(head, lines)

    def _repr_html_(self) -> str:
        return self.table._repr_html_()


def cross_validate(
    models: Any,
    X: Any,
    y: Any,
    *,
    folds: Any = 5,
    stratified: bool = True,
    groups: Any = None,
    sample_weight: Any = None,
    categorical_features: Any = "from_dtype",
    random_state: int = 0,
    progress: Callable[[int], None] | None = None,
) -> CrossValidation:
    """Judge models by what each fold's rows get from models of the others.

    The generative classifiers of posteriori are all learned from one pass over the rows, whose statistics are kept per
    fold. This gives what refitting every fold would, the cut points of binned columns included. It is approximate for
    bins of more than 50,000 rows (fewer with more than 167 columns), whose cut points come from a sample, and for
    models that take EM, within its tolerance: see Notes. Other classifiers, and `GenerativeClassifier`, are refitted.

    Parameters
    ----------
    models : classifier, sequence of names and classifiers, or mapping of a title to either
        Names are those of the registry, as in `compare`: "pool", "nb", "lda", "qda", "rda", "tan", "chow-liu", "kdb",
        "aode", "logistic", "boosting", "forest", and those of the candidates of `GenerativeClassifier`.
    X, y, sample_weight : as in `NaiveBayes.fit`
    folds : int or array-like (n,), default 5
        How many, or the fold of each row.
    stratified : bool, default True
        Whether every class is spread evenly over the folds.
    groups : array-like (n,), optional
        Rows of one group, as those of one patient, are held out together.
    categorical_features : "from_dtype", mask, indices or names
        For models given by name, and for those of scikit-learn.
    random_state : int, default 0
        Shuffles the rows before they are dealt out.
    progress : callable, optional
        Called with a number of rows, which sum to twice the rows a model.

    Returns
    -------
    CrossValidation

    Raises
    ------
    ValueError
        There are fewer than two folds, or more than rows or groups; or as `fit` does.

    Notes
    -----
    Where a model takes EM (as for missing numbers in a `GaussianDiscriminant`), it starts in each fold from the model
    of all rows, unless its bins differ or rows have no label; then it starts as in a refit. At the default tolerance
    posteriors of four tables with missing numbers differ from those of a refit by up to 0.03, and log-losses by up to
    0.0004 nats.

    References
    ----------
    Arlot & Celisse, A survey of cross-validation procedures for model selection, Statistics Surveys 4 (2010).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> found = po.cross_validate(["nb", "lda"], load_penguins(), "species")
    >>> found.table["model"].to_list()
    ['naive Bayes', 'LDA']
    """
    titled = _titled(models, categorical_features)
    exact = {title: clone(one) for title, one in titled.items() if isinstance(one, GenerativeEstimator)}
    other = {title: one for title, one in titled.items() if title not in exact}
    posteriors: dict[str, Array] = {}
    dealt: list[tuple[Array, Array, Array, Array]] = []
    how = {"stratified": stratified, "groups": groups, "random_state": random_state}
    for alike in _of_one_schema(exact, X, y, sample_weight, folds, how):
        folded, estimators = alike
        plans = [one.training_plan(folded.source.schema, folded.target) for one in estimators.values()]
        found, fitted = cross_fit_and_score(plans, folded, progress)
        prior = np.exp(np.stack([one.model.class_log_prior for one in fitted[0].without]))[folded.fold]
        for m, title in enumerate(estimators):
            posteriors[title] = fill_undefined(np.exp(found[:, :, m]), prior)
        classes = np.array(folded.target.categories)
        dealt.append((folded.y_true, folded.fold, folded.weight, classes))
    if other:
        rows = read_rows(X, y, categorical_features)
        weight = check_weights(sample_weight, len(rows.y_true))
        weight = np.ones(len(rows.y_true)) if weight is None else weight
        fold = assign_folds(rows.y_true, folds, stratified=stratified, groups=groups, seed=random_state)
        for title, one in other.items():
            posteriors[title] = _refitted(title, one, rows, fold, None if sample_weight is None else weight, progress)
        dealt.append((rows.y_true, fold, weight, rows.classes))
    components, fold, weight, classes = dealt[0]
    lines = [{"model": title} | _scores(components, posteriors[title], weight, fold) for title in titled]
    ordered = {title: posteriors[title] for title in titled}
    return CrossValidation(pl.DataFrame(lines), ordered, components, fold, weight, classes)


def _titled(models: Any, categorical_features: Any) -> dict[str, Any]:
    """Return the models by what they are called."""
    if isinstance(models, str) or not isinstance(models, Mapping | Sequence):
        models = [models]
    if isinstance(models, Mapping):
        pairs: list[tuple[Any, Any]] = list(models.items())
    else:
        pairs = [(None, one) for one in models]
    common = {"categorical_features": categorical_features}
    titled: dict[str, Any] = {}
    for title, one in pairs:
        named = chosen_models({title: one} if title else [one])
        if isinstance(one, str):
            named = {name: model.set_params(**common) for name, model in named.items()}
        twice = set(named) & set(titled)
        if twice:
            raise ValueError(
                f"two models are called {twice.pop()!r}; give a mapping of what each is called to the model"
            )
        titled |= named
    if not titled:
        raise ValueError("models is empty; name at least one")
    return titled


def _of_one_schema(
    estimators: dict[str, Any], X: Any, y: Any, sample_weight: Any, folds: Any, how: dict[str, Any]
) -> list[tuple[FoldedData, dict[str, Any]]]:
    """Return the estimators that read the rows alike, together, with the rows as they read them."""
    groups: list[tuple[FoldedData, dict[str, Any]]] = []
    for title, estimator in estimators.items():
        folded = FoldedData.of(estimator.read_training_rows(X, y, sample_weight), folds, **how)
        for known, members in groups:
            alike = known.source.schema == folded.source.schema and len(known.evaluated) == len(folded.evaluated)
            plain = known.source.label_model is None and folded.source.label_model is None
            weighed = known.source.unlabelled_weight == folded.source.unlabelled_weight
            if alike and plain and weighed:
                members[title] = estimator
                break
        else:
            groups.append((folded, {title: estimator}))
    if len({tuple(folded.evaluated.tolist()) for folded, _ in groups}) > 1:
        raise ValueError("some models learn from rows without label and others do not; judge them apart")
    return groups


def _refitted(
    title: str, model: Any, rows: Rows, fold: Array, weight: Array | None, progress: Callable[[int], None] | None
) -> Array:
    """Return p(y | x) of each row by a model that is fitted to the rows of the other folds."""
    posterior = np.zeros((len(fold), len(rows.classes)))
    positions = {label: position for position, label in enumerate(rows.classes.tolist())}
    for k in range(int(fold.max()) + 1):
        held_out, others = np.flatnonzero(fold == k), np.flatnonzero(fold != k)
        learner = clone(model)
        try:
            if weight is None:
                learner.fit(rows.frame[others], rows.labels[others])
            else:
                learner.fit(rows.frame[others], rows.labels[others], sample_weight=weight[others])
        except TypeError as error:
            raise ValueError(f"{title!r} takes no sample_weight ({error}); leave it, or the weights, out") from error
        columns = np.array([positions[label] for label in np.asarray(learner.classes_).tolist()])
        posterior[held_out[:, np.newaxis], columns] = learner.predict_proba(rows.frame[held_out])
        if progress is not None:
            progress(2 * len(held_out))
    return posterior


def _scores(components: Array, posterior: Array, weight: Array, fold: Array) -> dict[str, float]:
    found = scores_of(components, posterior, weight, None, fold)
    parts = [np.flatnonzero(fold == k) for k in range(int(fold.max()) + 1)]
    curves = np.array([area_under_curve(components[rows], posterior[rows], weight[rows]) for rows in parts])
    curves = curves[~np.isnan(curves)]
    spread = float(np.std(curves, ddof=1) / np.sqrt(len(curves))) if len(curves) > 1 else float("nan")
    scores = {name: getattr(found, name) for name in found.names()}
    scores |= {"auc": area_under_curve(components, posterior, weight), "auc_se": spread}
    return {name: scores[name] for shown in _SHOWN for name in (shown, f"{shown}_se")}
