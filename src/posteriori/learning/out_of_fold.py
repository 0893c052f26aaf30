"""Cross-validation from one pass: what models say of rows that they were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from posteriori.learning.cross_fitting import CrossFitted, Plan, cross_fit, score_held_out
from posteriori.learning.folds import assign_folds, stratified_subsample
from posteriori.learning.importance import HeldOutRows, Predictor, most_rows
from posteriori.sources import TableSource
from posteriori.tables import Batch, Column
from posteriori.typing import Array

MOST_EVALUATED = 200_000  # rows: an accuracy of 0.8 is then known to 0.001, and what is kept of each row stays small


@dataclass(frozen=True)
class OutOfFold:
    """What a model says of rows that it was not trained on.

    Attributes
    ----------
    log_posterior : ndarray (n, C)
        log p(y | x) of each row in nats, by the model of the other folds; NaN where no class can produce the row.
    prior : ndarray (n, C)
        p(y) of that model: the prediction that looks at no feature.
    y_true : ndarray (n,)
        The number of each row's true class.
    fold : ndarray (n,)
    weight : ndarray (n,)
        The weight of each row.
    classes : ndarray (C,)
    estimator : estimator
        Fitted to all rows, from the same pass.
    """

    log_posterior: Array
    prior: Array
    y_true: Array
    fold: Array
    weight: Array
    classes: Array
    estimator: Any

    @cached_property
    def posterior(self) -> Array:
        """p(y | x) of each row, (n, C)."""
        return np.exp(self.log_posterior)


@dataclass(frozen=True)
class FoldedData:
    """Labelled rows, dealt out to folds, that several estimators of one schema are to be judged on.

    Attributes
    ----------
    source : TableSource
    target : Column
        The classes.
    evaluated : ndarray
        The places of the rows that are held out in turn, ascending: those whose label is known, or some of them.
    y_true, fold, weight : ndarray
        The class, the fold and the weight of each of them.
    """

    source: TableSource
    target: Column
    evaluated: Array
    y_true: Array
    fold: Array
    weight: Array

    @classmethod
    def of(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        sample_weight: Any,
        folds: Any,
        *,
        stratified: bool = True,
        groups: Any = None,
        random_state: int = 0,
        at_most: bool = False,
        most: int | None = None,
    ) -> FoldedData:
        """Return the rows as an estimator reads them, dealt out to folds; at_most says that fewer rows, fewer folds.

        Of more rows than `most` so many are judged, spread evenly over the classes; the others teach in all folds.
        """
        source, target = estimator._read_training_rows(X, y, None, sample_weight, first=True)
        y_true = source.labels.components(target, slice(0, source.table.n_rows))
        evaluated = np.flatnonzero(y_true >= 0)
        if most is not None and len(evaluated) > most:
            evaluated = evaluated[np.sort(stratified_subsample(y_true[evaluated], most))]
        if at_most:
            if len(evaluated) < 2:
                raise ValueError(f"n_samples={len(evaluated)}: cross-validation takes two rows with a label at least")
            folds = min(folds, len(evaluated))
        group = None if groups is None else np.asarray(groups)[evaluated]
        fold = assign_folds(y_true[evaluated], folds, stratified=stratified, groups=group, seed=random_state)
        weight = np.ones(len(evaluated)) if source.weight is None else source.weight[evaluated]
        return cls(source, target, evaluated, y_true[evaluated], fold, weight)

    @property
    def folds(self) -> int:
        """How many folds there are."""
        return int(self.fold.max()) + 1

    @property
    def fold_of_rows(self) -> Array:
        """The fold of every row; −1 where it is not judged, so that it teaches in all of them."""
        fold = np.full(self.source.table.n_rows, -1, np.int32)
        fold[self.evaluated] = self.fold
        return fold

    def plan(self, estimator: Any) -> Plan:
        """Return what an estimator would learn of the rows."""
        schema, target = self.source.schema, self.target
        weighed = None if estimator.weights is None else estimator._weighed
        return Plan(estimator._blocks(schema), estimator._component_prior(target), estimator._em_options(), weighed)


def cross_fit_and_score(
    estimators: Sequence[Any], folded: FoldedData, progress: Callable[[int], None] | None = None
) -> tuple[Array, list[CrossFitted]]:
    """Return log p(y | x) of each row by each estimator's model of the other folds, (n, C, M), and all the models."""
    return judge_and_sample(estimators, folded, progress)[:2]


def judge_and_sample(
    estimators: Sequence[Any],
    folded: FoldedData,
    progress: Callable[[int], None] | None = None,
    sampled: Array | None = None,
) -> tuple[Array, list[CrossFitted], Batch | None]:
    """Return what `cross_fit_and_score` returns, and the cells of some of the evaluated rows, by their positions."""
    plans = [folded.plan(estimator) for estimator in estimators]
    fold, source = folded.fold_of_rows, folded.source.cached()
    fitted = cross_fit(source, fold, folded.folds, plans, progress)
    marked = None
    if sampled is not None:
        marked = np.zeros(len(fold), np.bool_)
        marked[folded.evaluated[sampled]] = True
    log_posterior, kept = score_held_out(source, fold, fitted, progress, marked)
    return log_posterior, fitted, kept


def sample_of(folded: FoldedData) -> Array:
    """Return the places, among the judged rows, of those by which feature importance is measured: evenly by class."""
    return stratified_subsample(folded.y_true, most_rows(len(folded.source.schema.columns)))


def held_out_rows(folded: FoldedData, sampled: Array, batch: Batch, predictors: Sequence[Predictor]) -> HeldOutRows:
    """Return the sampled rows with what predicts each fold: a predictor for each, of the rows outside it."""
    fold = folded.fold[sampled]
    folds = [(np.flatnonzero(fold == k), predictor) for k, predictor in enumerate(predictors)]
    return HeldOutRows(batch, folded.y_true[sampled], folded.weight[sampled], tuple(folds))


def out_of_fold(
    estimator: Any,
    X: Any,
    y: Any,
    *,
    folds: Any = 5,
    sample_weight: Any = None,
    random_state: int = 0,
    most: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> OutOfFold:
    """Predict every row by the model of the folds it is not in, and fit the estimator to all of them.

    The model of fold k is estimated from the statistics of the rows outside it, added up in one pass for all folds; a
    second pass scores the rows. The result is what refitting every fold gives, with these exceptions:

    - Binned columns are cut for each fold by the rows outside it: exactly up to 50,000 rows (fewer with more than 167
      columns). Of more rows a uniform sample is looked at, which is not the sample that a refit would draw, so that
      posteriors agree approximately; the grid from which "mdlp" then chooses has seen the numbers of all rows, and the
      choice none of the labels held out.
    - Where a model takes EM for missing cells, it starts in each fold from the model of all rows, unless its bins
      differ, and so ends elsewhere within its tolerance. Where labels hide components, it starts as in a refit. On
      tables with missing numbers (hepatitis, colic, autos, sick) posteriors of `GaussianDiscriminant` differ from
      those of a refit by up to 0.03 and log-losses by 0.0004 nats at most; where EM is cut short (20 steps, as of the
      members of `GenerativeClassifier`), by up to 0.1 and 0.006 nats.
    - Weights of factors (`weights="conditional"`) agree to 1e-7, the tolerance of their optimiser.

    Rows without label teach the models of all folds, and are not judged: they are left out of what is returned; where
    their weight is to be chosen ("held_out"), all labelled rows choose it once, for all folds.

    The estimator's `feature_information_` is measured on rows held out in these passes, 2,000 at most.

    Parameters
    ----------
    estimator : GenerativeEstimator
        Fitted to all rows on return.
    X, y, sample_weight
        As in its `fit`.
    folds : int or array-like (n,), default 5
        At least 2, and no more than there are rows; or the fold of each row.
    random_state : int, default 0
        Shuffles the rows before they are dealt out, class by class.
    most : int, optional
        Of more rows than these so many are judged, spread evenly over the classes; the others teach in all folds.
    progress : callable, optional
        Called with the number of rows of each batch done; each row is counted twice.

    Returns
    -------
    OutOfFold
        Of the rows that are judged.

    Raises
    ------
    ValueError
        There are fewer than two folds, or more than rows; or as `fit` does.
    """
    folded = FoldedData.of(estimator, X, y, sample_weight, folds, random_state=random_state, most=most)
    sampled = sample_of(folded)
    log_posterior, (fitted,), batch = judge_and_sample([estimator], folded, progress, sampled)
    estimator._classes_closed = False
    estimator._store_fit(fitted.full, folded.target, folded.source.unlabelled_weight)
    assert batch is not None
    estimator._keep_held_out(held_out_rows(folded, sampled, batch, [Predictor((one,)) for one in fitted.without]))
    return results_of(folded, log_posterior[:, :, 0], fitted, estimator)


def results_of(folded: FoldedData, log_posterior: Array, fitted: CrossFitted, estimator: Any) -> OutOfFold:
    """Return what is known of the rows by one estimator."""
    prior = np.exp(np.stack([one.model.class_log_prior for one in fitted.without]))[folded.fold]
    return OutOfFold(log_posterior, prior, folded.y_true, folded.fold, folded.weight, estimator.classes_, estimator)
