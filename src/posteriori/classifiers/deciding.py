"""Answers of a classifier beyond probabilities: other class shares, expectations without labels, sets of classes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Self, TypeVar

import numpy as np

from posteriori.classifiers.estimator import OfClasses, estimator_of
from posteriori.model import GenerativeModel
from posteriori.model_selection.held_out_predictions import HeldOut
from posteriori.scoring.class_shares import PriorEstimate, compare_rows, estimate_shares
from posteriori.scoring.decisions import Decision, decision_of
from posteriori.scoring.expected_performance import ExpectedPerformance, expected_performance
from posteriori.scoring.prediction_sets import SCORES, PredictionSets, Score, limits, scores_of, sets_within
from posteriori.scoring.threshold_choice import Aim, ThresholdChoice, choose_threshold
from posteriori.scoring.venn_abers import ProbabilityIntervals, venn_abers
from posteriori.support.suggestions import class_index
from posteriori.support.typing import Array
from posteriori.tables import Batch

_MIXES = 100  # class shares that are as possible as the estimated ones
_Compared = TypeVar("_Compared", PriorEstimate, ExpectedPerformance)


class Decides(OfClasses):
    """Answers about rows of another place, and about rows without labels, by calibrated posteriors."""

    def with_priors(self, priors: Any) -> Self:
        r"""Return the model for rows in which classes have other shares, and p(x | y) is the same.

        .. math:: p_{\mathrm{new}}(y \mid x) \propto p(y \mid x) \frac{p_{\mathrm{new}}(y)}{p(y)}

        Predictions, explanations, files, SQL and JavaScript of the new model are those of the new shares.

        Parameters
        ----------
        priors : mapping of class to float, array-like (C,), or "uniform"
            At least 0 and in total 1; as `estimate_priors` returns them in ``.priors``.

        Returns
        -------
        estimator
            A copy of the same class; this model does not change.

        Raises
        ------
        ValueError
            The priors do not fit the classes.

        References
        ----------
        Saerens, Latinne & Decaestecker (2002), equation 2.4.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> here = po.NaiveBayes().fit(load_penguins().select("species", "body_mass_g"), "species")
        >>> there = here.with_priors({"Adelie": 0.1, "Chinstrap": 0.8, "Gentoo": 0.1})
        >>> here.predict([{"body_mass_g": 3700}]).tolist(), there.predict([{"body_mass_g": 3700}]).tolist()
        (['Adelie'], ['Chinstrap'])
        """
        made: Self = estimator_of(self._value.with_priors(priors))
        return made

    def estimate_priors(self, X: Any, against: Any = None) -> PriorEstimate:
        """Estimate the class shares of unlabelled rows, if only the mix of classes differs from training.

        Parameters
        ----------
        X : array-like, data frame or path
            Rows without labels.
        against : array-like, data frame or path, optional
            Earlier rows, which the model has not learned from: then it is said whether the columns changed, too.

        Returns
        -------
        PriorEstimate
            ``shares``, ``standard_error``, ``interval()``, ``p_value`` and ``sentences``.

        Raises
        ------
        ValueError
            There are no rows, or none that a class can produce.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> penguins = load_penguins()
        >>> model = po.NaiveBayes().fit(penguins, "species")
        >>> found = model.estimate_priors(penguins.filter(penguins["species"] != "Adelie"))
        >>> found.mix_changed, found.priors["Adelie"] < 0.05
        (True, True)
        """
        posterior = self._posterior
        prior = np.exp(posterior.class_log_prior)
        found = estimate_shares(self._source(X).map(posterior.posterior), prior, self._value.classes)
        return self._compared(found, X, against, self.with_priors(found.cautious))

    def expected_performance(
        self,
        X: Any,
        *,
        priors: Any = None,
        costs: Mapping[Any, Mapping[Any, float]] | None = None,
        thresholds: Mapping[Any, float] | None = None,
        against: Any = None,
    ) -> ExpectedPerformance:
        """Return how well predictions of unlabelled rows are expected to be, by the probabilities themselves.

        Parameters
        ----------
        X : array-like, data frame or path
            Rows without labels.
        priors : mapping, array-like or "estimate", optional
            The class shares of these rows, or "estimate" for those of `estimate_priors`. The predictions judged are
            those of a model with these shares (`with_priors`). Default: the shares of the model.
        costs, thresholds : mapping, optional
            Of the decision, as of `decide`; default: the most probable class.
        against : array-like, data frame or path, optional
            Earlier rows, which the model has not learned from: then ``can_be_trusted`` says whether new ones are about
            as probable, weighted to the same class shares.

        Returns
        -------
        ExpectedPerformance
            ``accuracy``, ``log_loss``, ``auc``, ``cost``, ``confusion``, ``standard_error`` and ``sentences``. It is as
            good as the probabilities are calibrated on such rows.

        Raises
        ------
        ValueError
            There are no rows, or as of `decide` and `with_priors`.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> penguins = load_penguins().select("bill_depth_mm", "sex", "body_mass_g", "species")
        >>> model = po.GenerativeClassifier(members=["nb", "lda"]).fit(penguins[::2], "species")
        >>> found = model.expected_performance(penguins[1::2])
        >>> abs(found.accuracy - model.score(penguins[1::2], "species")) < 0.05
        True
        """
        decision = None
        if costs is not None or thresholds is not None:
            decision = decision_of(self._value.classes.tolist(), costs, thresholds)
        return self.expected_of_decision(X, decision, priors, against)

    def expected_of_decision(
        self, X: Any, decision: Decision | None, priors: Any = None, against: Any = None
    ) -> ExpectedPerformance:
        """Return `expected_performance` of a rule, None for the most probable class."""
        found = self.estimate_priors(X) if isinstance(priors, str) and priors == "estimate" else None
        model = self if priors is None else self.with_priors(priors if found is None else found.cautious)
        posterior, source = model._posterior, model._source(X)
        shares = np.exp(posterior.class_log_prior)
        mixes = [] if found is None else found.draws(_MIXES)
        result = expected_performance(source.map(posterior.posterior), self._value.classes, decision, shares, mixes)
        return self._compared(result, X, against, model)

    def _compared(self, found: _Compared, X: Any, against: Any, model: Self) -> _Compared:
        """Return figures of new rows with how probable these are beside earlier ones, under the shares of a model."""
        posterior, moved = self._posterior, model._posterior
        if against is None or not posterior.has_density:
            return found
        prior, shares = np.exp(posterior.class_log_prior), np.exp(moved.class_log_prior)
        both = [(self._source(rows).map(posterior.posterior), self.score_samples(rows)) for rows in (X, against)]
        less, p_value = compare_rows(both[0], both[1], prior, shares)
        return replace(found, less_probable=less, columns_p_value=p_value)

    def predict_set(
        self,
        X: Any,
        coverage: float = 0.9,
        *,
        score: Score = "probability",
        per_class: bool = False,
        held_out: HeldOut | None = None,
    ) -> PredictionSets:
        r"""Return a set of classes per row, which holds the true class in a promised share of rows.

        .. math:: C(x) = \{ y : s(x, y) \le q \}

        with q from the scores of held-out training rows. A set of one class is a prediction; a larger one says between
        which classes the row is; an empty one, which only densities give, that it is none of them.

        Parameters
        ----------
        X : array-like, data frame or path
        coverage : float, default 0.9
            The share of rows whose set holds their class.
        score : {"probability", "cumulative", "density"}, default "probability"
            How badly a class fits. "probability": 1 − p(y | x), which gives the smallest sets. "cumulative": the
            probability of all more probable classes and half of its own, whose coverage depends less on how hard a row
            is. "density": −log p(x | y), of single models.
        per_class : bool, default False
            Whether the promise is for each class by itself, and not for all rows together.
        held_out : HeldOut, optional
            Predictions of training rows, from `model_selection.out_of_fold` or `leave_one_out`. Default: those that the
            fit kept: of a pool, and of every model that the command line fits.

        Returns
        -------
        PredictionSets
            ``sets``, ``included``, ``size``.

        Raises
        ------
        ValueError
            The model keeps no held-out predictions; rows are too few for the coverage, or it is not between 0 and 1; or
            the score needs densities.

        Notes
        -----
        Held-out rows were predicted by models of the other folds, and new rows by the model of all rows, which is a
        little better. So the coverage is that of the promise, or a little more, if the rows are exchangeable; the proof
        for predictions by the models of the folds (CV+) has 2c − 1 as the least. ``priors`` of the model move the
        held-out predictions, too, but not how often each class occurs among them: for another mix use `per_class`.

        References
        ----------
        Vovk, Gammerman & Shafer, Algorithmic Learning in a Random World (2005). Romano, Sesia & Candès, Classification
        with valid and adaptive coverage, NeurIPS 2020. Sadinle, Lei & Wasserman, Least ambiguous set-valued
        classifiers, JASA 114 (2019).

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> birds = load_penguins().select("island", "bill_length_mm", "sex", "species")
        >>> model = po.NaiveBayes().fit(birds, "species")
        >>> held_out = po.model_selection.out_of_fold(po.NaiveBayes(), birds, "species")
        >>> model.predict_set([{"bill_length_mm": 48.0}, {"island": "Torgersen"}], 0.98, held_out=held_out).sets
        [('Chinstrap', 'Gentoo'), ('Adelie',)]
        """
        posterior, classes = self._posterior, self._value.classes
        limit, n_held_out = self.limits_of_sets(coverage, score, per_class, held_out)
        if score == "density":
            model = posterior.models[0]
            new = self._source(X).map(lambda batch: _densities(model, batch))
            return PredictionSets(classes, -new <= limit, coverage, n_held_out)
        included = sets_within(self._source(X).map(posterior.posterior), score, limit)
        return PredictionSets(classes, included, coverage, n_held_out)

    def limits_of_sets(
        self, coverage: float, score: Score = "probability", per_class: bool = False, held_out: HeldOut | None = None
    ) -> tuple[Array, int]:
        """Return the score up to which each class is in a set, (C,), and the number of held-out rows behind it.

        The parameters are those of `predict_set`.
        """
        if score not in SCORES:
            raise ValueError(f"score is {score!r}; it is one of {', '.join(map(repr, SCORES))}")
        if score == "density":
            known, y_true = self._held_out_densities(held_out)
        else:
            known, y_true = self._held_out_posteriors(held_out)
            known = scores_of(known, score)
        own = known[np.arange(len(y_true)), y_true]
        return limits(own, y_true, coverage, self._value.classes, per_class), len(y_true)

    def choose_threshold(
        self,
        label: Any,
        *,
        precision: float | None = None,
        recall: float | None = None,
        capacity: float | None = None,
        held_out: HeldOut | None = None,
    ) -> ThresholdChoice:
        """Choose the probability of a class from which rows are decided for it, by held-out rows.

        Parameters
        ----------
        label : Any
            The class.
        precision : float, optional
            Find as many rows of the class as possible, of which this share of the rows decided for it are right.
        recall : float, optional
            Find this share of the rows of the class, with as few others as possible.
        capacity : float, optional
            Decide for the class in at most this share of the rows.
        held_out : HeldOut, optional
            As in `predict_set`.

        Returns
        -------
        ThresholdChoice
            ``threshold`` and what it does on held-out rows, with intervals; ``thresholds`` is for `decide`. Each
            held-out row counts once, also in a model of other class shares (`with_priors`): the figures are of the
            training mix.

        Raises
        ------
        ValueError
            Not one of the three is given, or none of the thresholds reaches it; there is no such class; or the model
            keeps no held-out predictions.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> birds = load_penguins().select("island", "body_mass_g", "sex", "species")
        >>> model = po.GenerativeClassifier(members=["nb", "tan"]).fit(birds, "species")
        >>> choice = model.choose_threshold("Chinstrap", recall=0.9)
        >>> 0.9 <= choice.recall <= 1.0, choice.precision < choice.recall
        (True, True)
        >>> po.decide(model.predict_proba(birds), model.classes_, thresholds=choice.thresholds).shape
        (344,)
        """
        k = self._position(label)
        posterior, y_true = self._held_out_posteriors(held_out)
        return choose_threshold(posterior[:, k], y_true == k, label, Aim(precision, recall, capacity))

    def probability_interval(self, X: Any, label: Any, held_out: HeldOut | None = None) -> ProbabilityIntervals:
        """Return two probabilities of a class for each row, of which one is calibrated, whatever the model.

        Parameters
        ----------
        X : array-like, data frame or path
        label : Any
            The class.
        held_out : HeldOut, optional
            As in `predict_set`.

        Returns
        -------
        ProbabilityIntervals
            ``low`` and ``high``, (n,), and ``probability``, one for both. They are wide where few held-out rows have
            a probability like that of the row.

        Raises
        ------
        ValueError
            There is no such class, held-out rows are fewer than 20, or the model keeps none.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> birds = load_penguins().select("island", "body_mass_g", "sex", "species")
        >>> model = po.GenerativeClassifier(members=["nb", "tan"]).fit(birds, "species")
        >>> found = model.probability_interval([{"island": "Dream", "body_mass_g": 3700}], "Chinstrap")
        >>> bool(found.low[0] <= found.probability[0] <= found.high[0])
        True
        """
        k = self._position(label)
        known, y_true = self._held_out_posteriors(held_out)
        new = self._source(X).map(self._posterior.posterior)[:, k]
        return venn_abers(known[:, k], y_true == k, new)

    def _position(self, label: Any) -> int:
        return class_index(label, self._value.classes.tolist())

    def _held_out_posteriors(self, held_out: HeldOut | None) -> tuple[Array, Array]:
        """Return p(y | x) of held-out rows, (m, C), and their classes, (m,)."""
        if held_out is not None:
            self._require_own(held_out)
            return held_out.posterior, held_out.y_true
        record = self._value.record.posteriors
        if record is None:
            raise ValueError(
                f"this {type(self).__name__} keeps no held-out predictions; give held_out="
                "po.model_selection.out_of_fold(model, X, y) of its training rows"
            )
        return np.exp(record.log_posterior.astype(np.float64)), record.component.astype(np.int64)

    def _held_out_densities(self, held_out: HeldOut | None) -> tuple[Array, Array]:
        """Return −log p(x | y) of held-out rows, (m, C), and their classes, (m,)."""
        if held_out is None or held_out.log_joint is None or self._posterior.pool is not None:
            raise ValueError(
                'score="density" needs log p(x | y) of held-out rows; give held_out='
                "po.model_selection.leave_one_out(model, X, y) of a single model"
            )
        self._require_own(held_out)
        with np.errstate(divide="ignore"):
            return np.log(held_out.prior) - held_out.log_joint, held_out.y_true

    def _require_own(self, held_out: HeldOut) -> None:
        if held_out.classes.tolist() != self._value.classes.tolist():
            raise ValueError(
                f"held_out is of the classes {held_out.classes.tolist()}, and the model of "
                f"{self._value.classes.tolist()}; give that of its training rows"
            )


def _densities(model: GenerativeModel, batch: Batch) -> Array:
    """Return log p(x | y) in nats, (n, C), without what all classes share."""
    log_joint = model.by_class(model.log_joint_of_components(batch, with_shared=False))
    return np.asarray(log_joint - model.class_log_prior)
