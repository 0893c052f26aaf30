"""Updates of a pool in place: more rows (`partial_fit`) and fewer (`unlearn`)."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.additivity import reason_not_extendable, reason_not_mergeable
from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.pool_predicting import PredictingPool, log_prior_ratio
from posteriori.classifiers.pool_updates import (
    MOST_KEPT,
    HeldOutSample,
    class_shares,
    moved_bias,
    places_of,
    rescaled,
    update_members,
    warn_of_unable,
)
from posteriori.learning.folds import stratified_subsample
from posteriori.learning.importance import HeldOutRows, most_rows
from posteriori.learning.log_linear import FLOOR
from posteriori.learning.pool import Pool, fit_pool
from posteriori.learning.training import TrainingRows
from posteriori.scoring import Posterior
from posteriori.sources.source import LabelledSource
from posteriori.tables.batch import joined


class UpdatingPool(PredictingPool):
    """Adds rows to the members of a pool, and subtracts rows from them."""

    pool: str
    penalty: float
    _held_out_sample: HeldOutSample

    @abstractmethod
    def _fit(self, X: Any, y: Any, sample_weight: Any, classes: Any) -> Self:
        """Select and fit the members and their weights."""

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; the first call is a fit, and selects the members.

        Afterwards the statistics of each member are those of all rows. Weights and biases are fitted to held-out
        predictions: those of the first fit, and those of each later call, whose rows the members predict before they
        learn from them (Dawid 1984). The pool keeps at most 5,000 such predictions in memory, with their labels and
        without the cells. They are not saved: after `load` or `merge` the weights stay until `partial_fit` has seen 250
        rows per member and class. ``pool="best"`` keeps its member.

        Parameters
        ----------
        X, y, classes, sample_weight
            As in `NaiveBayes.partial_fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `NaiveBayes.partial_fit`; or no member can learn from more rows. The pool is unchanged.

        Warns
        -----
        UserWarning
            A member leaves the pool because it needs all rows at once.

        Notes
        -----
        The weights of features (`feature_weights="conditional"`) stay those of the first fit, and so does
        `cv_results_`. `out_of_fold_` is dropped. The feature importance is that of rows drawn from the members; of a
        pool of words, from which none can be drawn, it is that of the new rows, as the pool predicted them before.

        References
        ----------
        Dawid, Present position and potential developments: the prequential approach, JRSS A 147 (1984).
        """
        if not hasattr(self, "members_"):
            return self._fit(X, y, sample_weight, classes)
        self._validate_params()
        new, held_out = self._predicted_before(X, y, classes, sample_weight)

        def learn(member: GenerativeEstimator) -> None:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                member.partial_fit(X, y, classes, sample_weight)

        members, unable = update_members(self.members_, reason_not_extendable, learn)
        past, target = self.target_, next(iter(members.values())).target_
        sample = getattr(self, "_held_out_sample", None)
        if sample is None:
            sample = HeldOutSample.empty(len(past.categories), len(self.members_))
        sample = sample.of_classes(past, target).joined(new)
        kept = [m for m, name in enumerate(self.members_) if name in members]
        self._replace_members(members, unable, sample.of_members(kept))
        if held_out is not None:
            self._keep_held_out(held_out)
        return self

    def _predicted_before(
        self, X: Any, y: Any, classes: Any, sample_weight: Any
    ) -> tuple[HeldOutSample, HeldOutRows | None]:
        """Return the predictions of a sample of new rows by the members, which have not learned from them.

        Where a member is no density, so that no rows can be drawn, also return rows for the feature importance.
        """
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of categories that the members are about to learn
            rows = self._first.read_learned_rows(X, y, sample_weight, classes=classes, complete=False)
            source, one = self._source(X), Pool(np.ones(1), np.zeros(len(self.classes_)))
            found = [source.map(Posterior((model,), one).log_posterior) for model in self._models()]
            held_out = None if all(model.is_density for model in self._models()) else self._held_out(source, rows)
        chosen = stratified_subsample(rows.y_true, MOST_KEPT)
        known = places_of(self.target_, rows.target)
        logs = np.full((len(chosen), len(rows.target.categories), len(found)), FLOOR)
        for m, log_posterior in enumerate(found):
            logs[:, known, m] = np.maximum(log_posterior[chosen], FLOOR)
        weight = np.ones(len(rows.y_true)) if rows.source.weight is None else rows.source.weight
        scale = weight.sum() / weight[chosen].sum() if weight[chosen].sum() > 0 else 1.0
        return HeldOutSample(logs, rows.y_true[chosen], weight[chosen] * scale), held_out

    def _held_out(self, source: LabelledSource, rows: TrainingRows) -> HeldOutRows | None:
        """Return a sample of the new rows of known classes with the pool that has not learned from them; None if none.

        source has the new rows as the pool reads them, rows has their labels.
        """
        index = np.full(len(rows.target.categories), -1)
        index[places_of(self.target_, rows.target)] = np.arange(len(self.classes_))
        known = np.flatnonzero(index[rows.y_true] >= 0)
        if not len(known):
            return None
        of_known = index[rows.y_true[known]]
        chosen = known[np.sort(stratified_subsample(of_known, most_rows(len(source.schema.columns))))]
        marked = np.zeros(len(rows.y_true), np.bool_)
        marked[chosen] = True
        parts = source.stream(lambda batch: batch.rows(marked[batch.start : batch.start + len(batch)]))
        weight = np.ones(len(marked)) if rows.source.weight is None else rows.source.weight
        predictor, _ = self._predictor()
        everything = np.arange(len(chosen)), predictor
        return HeldOutRows(joined(list(parts)), index[rows.y_true[chosen]], weight[chosen], (everything,))

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Subtract rows from the members, as if they had never learned from them; the weights of the pool stay.

        The predictions that `partial_fit` would fit weights to, the rows of the feature importance and `out_of_fold_`
        are dropped, because they may be of the rows. Aggregates stay: `cv_results_`, weights, biases and cut points.

        Parameters
        ----------
        X, y, sample_weight
            As in `NaiveBayes.unlearn`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A member cannot have learned from these rows, or no row would be left, as in `NaiveBayes.unlearn`; or no
            member can subtract rows. The pool is unchanged.

        Warns
        -----
        UserWarning
            A member leaves the pool because its statistics are not sums over rows, as after EM for missing cells. The
            weights of the others are multiplied so that their sum stays.
        """
        check_is_fitted(self, "members_")
        members, unable = update_members(
            self.members_,
            lambda member: reason_not_mergeable(member, "unlearn", "fit the remaining rows"),
            lambda member: member.unlearn(X, y, sample_weight),
        )
        self._replace_members(members, unable, None)
        return self

    def _replace_members(
        self, members: dict[str, GenerativeEstimator], unable: Mapping[str, str], sample: HeldOutSample | None
    ) -> None:
        """Take updated members, with weights from held-out predictions if there are enough of them."""
        past, target = self.target_, next(iter(members.values())).target_
        bias = moved_bias(self.class_bias_ - self._log_prior_ratio, past, target)
        weights = rescaled(self.member_weights_, list(members))
        prior = class_shares(members)
        ratio = log_prior_ratio(self.priors, target, prior)  # raises its errors before anything changes
        if sample is not None and sample.determines_weights and self.pool == "log_linear":
            pool = fit_pool(sample.log_posterior, sample.y_true, sample.weight, self.penalty)
            weights, bias = dict(zip(members, pool.weight.tolist(), strict=True)), pool.bias
        warn_of_unable(unable, stacklevel=3)
        self._forget_importance()
        for name in ("out_of_fold_", "_held_out_sample"):
            self.__dict__.pop(name, None)
        if sample is not None:
            self._held_out_sample = sample
        self.members_, self.member_weights_ = members, weights
        self.class_bias_, self.training_prior_ = bias + ratio, prior
