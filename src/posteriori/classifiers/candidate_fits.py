"""Candidates of a pool with their held-out predictions, cross-fitted in groups."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from posteriori.classifiers.candidates import fit_or_skip
from posteriori.classifiers.generative_estimator import GenerativeEstimator
from posteriori.learning.cross_fitting import CrossFitted
from posteriori.model import clip_log_posteriors
from posteriori.model_selection.folded_data import FoldedData, judge_and_sample
from posteriori.tables import Batch
from posteriori.tables.progress import report_score, without_passes
from posteriori.typing import Array


@dataclass(frozen=True)
class CandidateFits:
    """Fitted candidates and their held-out predictions.

    Attributes
    ----------
    estimators : dict
        By name.
    log_posterior : ndarray (r·m, C, M)
        Of m evaluated rows in r assignments to folds, one after the other; in nats, clipped.
    fitted : list of CrossFitted, M
        Of the first assignment.
    batch : Batch
        The cells of the rows for feature importance.
    failed : dict
        Why a candidate could not be fitted, by name.
    """

    estimators: dict[str, GenerativeEstimator]
    log_posterior: Array
    fitted: list[CrossFitted]
    batch: Batch
    failed: dict[str, str]

    def joined(self, other: CandidateFits) -> CandidateFits:
        """Return the candidates of both."""
        return CandidateFits(
            self.estimators | other.estimators,
            np.concatenate([self.log_posterior, other.log_posterior], axis=2),
            [*self.fitted, *other.fitted],
            self.batch,
            self.failed | other.failed,
        )

    def in_order(self, names: Iterable[str]) -> CandidateFits:
        """Return the candidates in the order of some names, which include theirs."""
        known = list(self.estimators)
        places = [known.index(name) for name in names if name in self.estimators]
        return replace(
            self,
            estimators={known[m]: self.estimators[known[m]] for m in places},
            log_posterior=self.log_posterior[:, :, places],
            fitted=[self.fitted[m] for m in places],
        )


@dataclass(frozen=True)
class CandidateFitter:
    """Cross-fits candidates on the rows of a table.

    Attributes
    ----------
    folded : FoldedData
    repeats : sequence of FoldedData
        Further assignments of the rows to folds.
    sampled : ndarray
        The positions of the evaluated rows for feature importance.
    progress : callable, optional
        Called with the number of rows of each finished batch.
    """

    folded: FoldedData
    repeats: Sequence[FoldedData]
    sampled: Array
    progress: Callable[[int], None] | None = None

    def fit(self, estimators: dict[str, GenerativeEstimator]) -> CandidateFits:
        """Fit some candidates together; those that fail are left out.

        Raises
        ------
        ValueError
            All of them fail.
        """
        fitted, (found, models, batch), failed = fit_or_skip(estimators, self._fit)
        log_posterior = clip_log_posteriors(found)
        self._report_scores(fitted, log_posterior)
        return CandidateFits(fitted, log_posterior, models, batch, failed)

    def _report_scores(self, names: Iterable[str], log_posterior: Array) -> None:
        """Report the log-loss of each candidate on the rows of the first assignment to folds."""
        y_true, weight = self.folded.y_true, self.folded.weight
        of_truth = log_posterior[np.arange(len(y_true)), y_true]
        for name, log_loss in zip(names, -(weight @ of_truth) / weight.sum(), strict=True):
            report_score(name, float(log_loss))

    def _fit(self, some: Sequence[GenerativeEstimator]) -> tuple[Array, list[CrossFitted], Batch]:
        folded = self.folded
        with warnings.catch_warnings():  # the weight of a member shows how good it is
            warnings.simplefilter("ignore")
            plans = [one.training_plan(folded.source.schema, folded.target) for one in some]
            found, fitted, batch = judge_and_sample(plans, folded, self.progress, self.sampled, leave_trees_out=True)
            with without_passes():
                again = [judge_and_sample(plans, other, leave_trees_out=True)[0] for other in self.repeats]
        assert batch is not None
        return np.concatenate([found, *again]), fitted, batch
