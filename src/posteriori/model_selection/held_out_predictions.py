"""Predictions of rows that a model was not fitted on: out-of-fold and leave-one-out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.fitting.estimate_warnings import warn_of_one_class
from posteriori.fitting.fitted import Fitted, FittedClasses
from posteriori.fitting.held_out_figures import HeldOutFigures
from posteriori.fitting.learn import checked_fit
from posteriori.fitting.recipe import Recipe, recipe_of_classifier
from posteriori.fitting.rows import read_first_rows, read_further_rows
from posteriori.fitting.unlabelled_weight import with_held_out_weight
from posteriori.learning.equal_rows import group_copies
from posteriori.learning.fit import TrainingRows
from posteriori.learning.fold_fits import CrossFitted
from posteriori.learning.folded_data import (
    FoldedData,
    held_out_rows,
    judge_and_sample,
    sample_of,
)
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.weights import check_closed_form, left_out_factors, left_out_prior, unseen_as_missing
from posteriori.model import log_normalised
from posteriori.model.answer import Answer, Categories
from posteriori.model_selection import in_words, metrics
from posteriori.model_selection.metrics import Levels
from posteriori.statistics import ColumnRanges, JointStatistics, RowPosteriors
from posteriori.support.typing import Array
from posteriori.tables import Batch
from posteriori.tables.arrays import write_column

MOST_KEPT = 20_000  # rows: with two classes 0.25 MB of a model file, of which the hashes are two thirds


class Learner(Protocol):
    """An estimator of one model: what its parameters ask of a fit, and what a fit learned."""

    fitted_: Any

    @property
    def recipe(self) -> Recipe:
        """The parameters as they are now, as a value."""


@dataclass(frozen=True)
class HeldOut:
    """Predictions of labelled rows by models that were not trained on them.

    Attributes
    ----------
    log_posterior : ndarray (n, C)
        log p(y | x) of each row in nats; NaN if no class can produce the row.
    prior : ndarray (n, C)
        p(y) under the same model: the prediction that uses no feature.
    y_true, weight : ndarray (n,)
        The class index and the weight of each row.
    classes : ndarray (C,)
        The classes, in the order of the columns above.
    how : str
        One sentence on how the rows were held out.
    fold : ndarray (n,), optional
        The fold of each row, whose model was trained on the other folds.
    estimator : estimator, optional
        The estimator, fitted to all rows in the same pass.
    log_joint : ndarray (n, C), optional
        log p(x, y) in nats, without the terms that do not depend on the class: the position of a number in its bin.
    place : ndarray (n,), optional
        The position of each row in its table, ascending; rows without label are left out, as is what a subsample lacks.
    rows_are : {"held-out rows", "training rows", "rows"}
        What a page calls the rows; "rows" if nobody knows whether the model was trained on them.
    positive : int, optional
        The index of the class of interest. Default: the rarer of two classes.
    order : tuple of int, default ()
        The positions of the classes from the lowest level to the highest, if they are ordered.
    """

    log_posterior: Array
    prior: Array
    y_true: Array
    weight: Array
    classes: Array
    how: str
    fold: Array | None = None
    estimator: Any = None
    log_joint: Array | None = None
    place: Array | None = None
    rows_are: str = "held-out rows"
    positive: int | None = None
    order: tuple[int, ...] = ()

    @classmethod
    def given(cls, value: FittedClasses, y_true: Array, log_posterior: Array) -> HeldOut:
        """Return the predictions of a fitted value for rows of which nothing is known."""
        prior = np.broadcast_to(np.exp(value.posterior.class_log_prior), log_posterior.shape)
        weight, how = np.ones(len(y_true)), "The rows were given."
        order = value.target.order
        return cls(log_posterior, prior, y_true, weight, value.classes, how, rows_are="rows", order=order)

    @cached_property
    def posterior(self) -> Array:
        """p(y | x) of each row, (n, C); NaN if no class can produce the row."""
        return np.exp(self.log_posterior)

    @cached_property
    def filled(self) -> Array:
        """p(y | x) of each row, (n, C), and p(y) where no class can produce the row."""
        return metrics.fill_undefined(self.posterior, self.prior)

    @cached_property
    def answer(self) -> Answer:
        """The predictions as an answer, with the classes in their order if they have one."""
        order = list(self.order) or range(len(self.classes))
        meaning = Categories(tuple(self.classes[order].tolist()), bool(self.order))
        return Answer("class", meaning, self.filled[:, order])

    @cached_property
    def levels(self) -> Levels | None:
        """The true levels of ordered classes beside the predicted ones; None of others."""
        return Levels.of(self.answer, self.classes[self.y_true], self.weight) if self.order else None

    @cached_property
    def figures(self) -> HeldOutFigures:
        """The few figures behind `summary`."""
        confusion = metrics.confusion_matrix(*self.judged)
        return HeldOutFigures(
            true=tuple(confusion.sum(axis=1).tolist()),
            predicted=tuple(confusion.sum(axis=0).tolist()),
            correct=tuple(np.diagonal(confusion).tolist()),
            confidence=float(np.average(self.confidence, weights=self.weight)),
            gap_error=self.standard_error(self.right - self.confidence),
            verdict=metrics.compare_with_prior(self.y_true, self.posterior, self.prior, self.weight).verdict,
            rows_are=self.rows_are,
            how=self.how,
            by_folds=self.fold is not None,
            positive=self.positive,
            levels=None if self.levels is None else self.levels.shares,
        )

    def record(self, hashes: Callable[[Array], Array] | None = None) -> RowPosteriors | None:
        """Return the predictions as a model keeps them, of at most 20,000 rows; None if the rows have no folds.

        `hashes` returns the hashes of rows by their positions, ascending; without it, the record finds no row.
        """
        if self.fold is None:
            return None
        chosen = stratified_subsample(self.y_true, MOST_KEPT)
        prior = np.asarray(self.prior[np.unique(self.fold, return_index=True)[1]], np.float64)
        of_rows = None if hashes is None else hashes(chosen)
        return RowPosteriors.of(of_rows, self.log_posterior[chosen], self.y_true[chosen], self.fold[chosen], prior)

    def summary(self) -> str:
        """Return how good the predictions are in sentences, one per line: those that ``posteriori fit`` prints.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> held_out = po.model_selection.out_of_fold(po.NaiveBayes(), load_penguins(), "species")
        >>> held_out.summary().startswith("Of 100 held-out rows, it predicts")
        True
        """
        return "\n".join(in_words.sentences(self.figures, in_words.class_phrases(self.classes.tolist(), None)))

    @property
    def folds(self) -> int:
        """The number of folds, that of the rows if each was left out alone."""
        return len(self.y_true) if self.fold is None else int(self.fold.max()) + 1

    @property
    def predictions_are(self) -> str:
        """The name of the predictions on a page: held-out predictions, for example."""
        return self.rows_are.replace("rows", "predictions") if self.rows_are != "rows" else "given predictions"

    @property
    def predicted(self) -> Array:
        """The index of the most probable class of each row, (n,)."""
        predicted: Array = self.filled.argmax(axis=1)
        return predicted

    @property
    def predictions(self) -> Array:
        """The most probable class of each row, (n,)."""
        predicted: Array = self.classes[self.predicted]
        return predicted

    @property
    def confidence(self) -> Array:
        """The probability of the predicted class of each row, (n,)."""
        confidence: Array = self.filled.max(axis=1)
        return confidence

    @property
    def of_truth(self) -> Array:
        """The probability of the true class of each row, (n,)."""
        return self.filled[np.arange(len(self.y_true)), self.y_true]

    @property
    def right(self) -> Array:
        """Whether the predicted class of each row is the true class, (n,)."""
        right: Array = self.predicted == self.y_true
        return right

    def standard_error(self, losses: Array) -> float:
        """Return the standard error of the weighted mean of the losses, (n,)."""
        share = self.weight / self.weight.sum()
        return float(np.sqrt((share**2) @ (losses - share @ losses) ** 2))

    @property
    def judged(self) -> tuple[Array, Array, Array]:
        """The arguments of the metrics: the true classes, the posteriors, and the weights of the rows."""
        return self.y_true, self.filled, self.weight

    @property
    def log_loss(self) -> float:
        """The log-loss −(1/n) Σ_i log p(y_i | x_i) in nats."""
        return metrics.log_loss(*self.judged)

    @property
    def accuracy(self) -> float:
        """The accuracy: the share of rows whose most probable class is the true one."""
        return metrics.accuracy(*self.judged)

    @property
    def brier_score(self) -> float:
        """The Brier score (1/n) Σ_i Σ_c (p(c | x_i) − [c = y_i])², in [0, 2]."""
        return metrics.brier_score(*self.judged)


def leave_one_out(model: Learner, X: Any, y: Any, sample_weight: Any = None) -> HeldOut:
    r"""Predict each row by the model of all other rows, without refitting.

    .. math:: p_{-i}(y \mid x_i) \propto p_{-i}(y) \prod_j p_{-i}(x_{ij} \mid y)

    Learning adds up statistics, so that leaving a row out subtracts its own: its weight from counts, its terms from
    moments by Chan's update in reverse, and a matrix of rank one from a covariance (Sherman & Morrison). The result
    equals that of n refits, if the choices that depend on all rows are kept: the cut points of binned columns, trees,
    parents, the amount of shrinkage by Ledoit and Wolf, and factor weights. A refit without the row may choose
    differently. Cut points of "mdlp" depend on the label of the row that is left out, so that scores are too good: the
    log-loss of ``NaiveBayes(distributions="binned")`` is 0.029 nats on wine where refits give 0.051, and 0.169 on iris
    where refits give 0.239. With ``bins=8`` it is 0.080 against 0.078 on wine, and 0.200 in both cases on iris.
    `cross_validate` chooses the cut points of each fold without its rows.

    Parameters
    ----------
    model : fitted classifier of posteriori
        Its training rows include the rows below.
    X, y, sample_weight : as in `fit`
        Training rows of the model. A row of weight k is left out as a whole.

    Returns
    -------
    HeldOut

    Raises
    ------
    ValueError
        The rows cannot be training rows of the model: give its training rows. Or the model was fitted by EM, because
        labels or cells were hidden, and EM would have to be repeated for each row: remove these rows, or use
        `cross_validate`.
    TypeError
        The model, or one of its densities, has no leave-one-out; choose another.

    Notes
    -----
    A category that no other row shows is unseen by the model without the row, and counts as a missing cell. A class
    whose only row is left out has the prior of its pseudo-count, and the densities of a class without rows.

    ``pooling=Pooled(ddof=1)`` gives the numbers of R's ``MASS::lda(..., CV=TRUE)`` with its default method, and
    with ``PerClass(ddof=1)`` those of ``MASS::qda``, except for the prior: R keeps the prior of all rows, so give
    ``priors=model.class_prior_``.

    Cost: that of one prediction of all rows; O(n·d·(C + d)) for a Gaussian. If there is no closed form (a shrunk or
    singular covariance, a tree of numbers, a row that lacks an inner cell of a tree), parameters are estimated again
    for each such row, from statistics that are not added up again.

    References
    ----------
    Ripley, Pattern Recognition and Neural Networks (1996), section 2.4. Sherman & Morrison, Adjustment of an inverse
    matrix, Annals of Mathematical Statistics 21 (1950).

    Examples
    --------
    >>> import posteriori as po
    >>> X, y = [["u"], ["u"], ["v"], ["v"], ["v"]], ["a", "a", "a", "b", "b"]
    >>> left_out = po.model_selection.leave_one_out(po.NaiveBayes().fit(X, y), X, y)
    >>> left_out.posterior.round(3)
    array([[0.667, 0.333],
           [0.667, 0.333],
           [0.25 , 0.75 ],
           [0.643, 0.357],
           [0.643, 0.357]])
    """
    if recipe_of_classifier(model) is None:
        raise TypeError(f"a {type(model).__name__} has no leave-one-out; give a classifier of posteriori")
    check_is_fitted(model)
    value: Fitted = replace(model.fitted_, recipe=model.recipe)
    fitted, statistics = value.model, value.statistics
    if statistics is None:
        raise ValueError("this model was built from parameters, and no row can be left out of these; fit it to rows")
    if fitted.weights is not None and fitted.weights.parameters:
        raise ValueError(
            "learned tables (feature_weights) are those of all rows at once, so that no row can be left out in closed "
            "form; use cross_validate"
        )
    check_closed_form(fitted, statistics)
    rows = read_further_rows(value, X, y, sample_weight)
    source, target = rows.source, rows.target
    if source.schema != fitted.schema or target != value.target:
        raise ValueError(
            "the rows hold categories or classes that are not in the model; give rows that it was trained on"
        )
    _check_learned(rows, statistics)
    prior = value.recipe.prior(target)

    def left_out(batch: Batch) -> Array:
        assert batch.assignment is not None
        if statistics.ranges is not None:
            _check_within(batch, statistics.ranges)
        log_prior = left_out_prior(prior, statistics, batch.assignment)
        factors = left_out_factors(fitted, statistics, batch)
        log_joint = log_prior + factors.sum(axis=2)
        known = fitted.known(unseen_as_missing(fitted, statistics, batch))
        return np.stack([log_joint, log_prior, fitted.scored(log_prior, factors, known)], axis=1)

    log_joint, log_prior, scored = source.map(left_out).swapaxes(0, 1)
    log_posterior = log_normalised(scored)
    y_true = rows.y_true
    weight = np.ones(len(y_true)) if source.weight is None else source.weight
    how = "Each row was predicted by a model trained on all others (leave-one-out)."
    predictions = HeldOut(log_posterior, np.exp(log_prior), y_true, weight, value.classes, how, log_joint=log_joint)
    return replace(predictions, order=target.order)


def _check_learned(rows: TrainingRows, statistics: JointStatistics) -> None:
    """Raise ValueError if the rows of a class weigh more than in the training data."""
    weight = np.bincount(rows.y_true, rows.source.weight, len(statistics.weight))
    if (weight > statistics.weight * (1.0 + 1e-9)).any():
        z = int(np.argmax(weight - statistics.weight))
        raise ValueError(
            f"the rows of class {rows.target.categories[z]!r} have a total weight of {weight[z]:g}, but the model was "
            f"trained on {statistics.weight[z]:g}; give rows, and weights, that it was trained on"
        )


def _check_within(batch: Batch, learned: ColumnRanges) -> None:
    """Raise ValueError if a number is outside of the range of its column in the training data."""
    seen = ColumnRanges.of(batch)
    outside = (seen.lowest < learned.lowest) | (seen.highest > learned.highest)
    if outside.any():
        j = int(np.argmax(outside))
        number = seen.lowest[j] if seen.lowest[j] < learned.lowest[j] else seen.highest[j]
        raise ValueError(
            f"column {batch.schema.columns[j].name!r} holds {number:g}, but the numbers it was trained on lie between "
            f"{learned.lowest[j]:g} and {learned.highest[j]:g}; give rows that the model was trained on"
        )


def out_of_fold(
    estimator: Learner,
    X: Any,
    y: Any,
    *,
    folds: Any = 5,
    groups: Any = None,
    sample_weight: Any = None,
    random_state: int = 0,
    most: int | None = None,
    progress: Callable[[int], None] | None = None,
) -> HeldOut:
    """Predict every row by the model of the folds it is not in, and fit the estimator to all of them.

    The model of fold k is estimated from the statistics of the rows outside it, which one pass adds up for all folds. A
    second pass scores the rows. The result equals that of a refit per fold, with these exceptions:

    - The cut points of a fold are those of the rows outside it: exactly up to 50,000 rows (fewer with more than 167
      columns). With more rows they come from a uniform sample, which is not the sample that a refit would draw, so that
      posteriors agree approximately. The grid among which "mdlp" then chooses depends on the numbers of all rows, but
      the choice does not depend on held-out labels.
    - EM starts in each fold as in a refit. Where a covariance is singular, it multiplies rounding, up to 1e-5.
    - Factor weights (`feature_weights="conditional"`) agree to 1e-7, the tolerance of their optimiser. The prior of
      learned tables ("cells") is chosen on all rows, for all folds; the tables are learned without the fold.

    Rows without label train the models of all folds. They are not evaluated and not returned. With
    ``unlabelled_weight="held_out"`` one weight is chosen on all labelled rows, for all folds.

    The estimator's `importance_.increase` is measured on at most 2,000 of the held-out rows.

    Parameters
    ----------
    estimator : generative classifier
        It is fitted to all rows on return.
    X, y, sample_weight
        As in its `fit`.
    folds : int, array-like (n,), pairs or splitter, default 5
        The number of folds, at least 2 and at most the number of rows; the fold of each row; or pairs of training and
        test rows, as a list or as a splitter of scikit-learn makes them, that test each row once.
    groups : array-like (n,), optional
        The group of each row, such as a patient. Rows of one group are held out together, and `most` has no effect.
    random_state : int, default 0
        Seed of the shuffle of the rows before they are assigned to folds.
    most : int, optional
        The largest number of rows to evaluate. A larger table is subsampled evenly over the classes; the other rows
        train the models of all folds.
    progress : callable, optional
        Called with the number of rows of each finished batch; each row is counted twice.

    Returns
    -------
    HeldOut
        Of the evaluated rows.

    Raises
    ------
    TypeError
        It is no classifier of one model. A pool has `out_of_fold_`.
    ValueError
        There are fewer than two folds, or more folds than rows; or for the reasons of `fit`.
    """
    recipe = recipe_of_classifier(estimator)
    if recipe is None:
        raise TypeError(
            f"out_of_fold takes a classifier of one model, such as NaiveBayes, and not a {type(estimator).__name__}; a "
            "pool keeps its own predictions as out_of_fold_"
        )
    rows = with_held_out_weight(recipe, read_first_rows(recipe, X, y, sample_weight))
    copies = None if groups is not None else group_copies(rows)
    folded = FoldedData.of(rows, folds, groups=groups, copies=copies, random_state=random_state, most=most)
    sampled = sample_of(folded)
    plan = recipe.plan(rows.source.schema, rows.target)
    log_posterior, (fitted,), batch = judge_and_sample([plan], folded, progress, sampled)
    assert batch is not None
    held_out = held_out_rows(folded, sampled, batch, [one.posterior for one in fitted.without])
    value = checked_fit(recipe, fitted.full, rows.target, rows.source.unlabelled_weight)
    warn_of_one_class(rows.target, rows.source.schema.target)
    estimator.fitted_ = replace(value, record=value.record.with_held_out(held_out))
    return results_of(folded, log_posterior[:, :, 0], fitted, estimator)


def results_of(folded: FoldedData, log_posterior: Array, fitted: CrossFitted, estimator: Any = None) -> HeldOut:
    """Return out-of-fold predictions (m, C) of one estimator, with the labels, folds and weights of the rows."""
    how = (
        f"The rows were split into {folded.folds} folds, and each fold was predicted by a model trained on the other "
        "folds (cross-validation)."
    )
    if folded.folds == 1:
        how = "These rows were kept from the models that predicted them."
    log_prior = np.stack([member.model.class_log_prior for member in fitted.without])
    return HeldOut(
        log_posterior,
        np.exp(log_prior)[folded.fold],
        folded.y_true,
        folded.weight,
        write_column(folded.target),
        how,
        folded.fold,
        estimator,
        place=folded.places,
        order=folded.target.order,
    )
