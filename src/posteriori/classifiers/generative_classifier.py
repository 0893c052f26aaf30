"""Logarithmic pool of generative models: candidates are cross-validated, and the best are pooled."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.base import GenerativeEstimator
from posteriori.classifiers.candidates import (
    fit_or_skip,
    resolve_members,
    select_candidates,
    summarise_table,
    warn_of_left_out,
)
from posteriori.classifiers.importance import MeasuresImportance
from posteriori.classifiers.naive_bayes import NaiveBayes
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.shared_parameters import insert_shared_docs
from posteriori.classifiers.table_classifier import ExplanationTerms, TableClassifier
from posteriori.classifiers.validation import warn_of_empty_columns
from posteriori.deprecation import Renamed
from posteriori.draws import generator
from posteriori.invariants import check_not_negative, check_numbers, require
from posteriori.learning.cross_fitting import CrossFitted
from posteriori.learning.importance import Predictor
from posteriori.learning.pool import Pool, clip_log_posteriors, fit_pool
from posteriori.model import GenerativeModel
from posteriori.model_selection.folded_data import (
    MOST_EVALUATED,
    FoldedData,
    held_out_rows,
    judge_and_sample,
    sample_of,
)
from posteriori.model_selection.out_of_fold_predictions import OutOfFold, results_of
from posteriori.model_selection.scores import scores_of
from posteriori.scoring import ModelRows, Posterior, Scorer
from posteriori.sources.threads import blas
from posteriori.tables import Batch, Column, Schema
from posteriori.typing import Array

_POOL = "pool"


class _Reader(NaiveBayes):
    """Reads the rows of a pool. A pool needs a label per row, so errors must not advise the parameter `unlabelled`."""

    _learns_unlabelled = False


@insert_shared_docs
class GenerativeClassifier(MeasuresImportance, TableClassifier):
    r"""Logarithmic pool of the generative models that suit a table, weighted by their held-out predictions.

    .. math:: p(y \mid x) \propto \exp\Big(b_y + \sum_m w_m \log p_m(y \mid x)\Big), \qquad w_m \ge 0

    The members are generative models, fitted in closed form. Only one weight per member and one bias per class are
    fitted discriminatively, on out-of-fold posteriors. This reduces the overconfidence of members and combines their
    complementary information.

    Parameters
    ----------
    members : "auto", list or mapping, default "auto"
        "auto" tries every candidate that suits the table (see Notes). A list, or a mapping from names of your choice,
        holds generative estimators of posteriori and names of the registry: "nb", "lda", "qda", "rda", "tan",
        "chow-liu", "kdb", "aode", and those of the candidates. A name is the same model here, in `cross_validate`, in
        `compare` and on the command line.
    pool : {"log_linear", "best"}, default "log_linear"
        "log_linear" weighs the members; "best" keeps only the one with the lowest log-loss.
    folds : int, default 5
        Number of folds of the cross-validation; at most the number of rows.
    penalty : float, default 1.0
        Strength, in nats, of the shrinkage of the weights to the geometric mean of the members, against overfitting.
    categorical_features : "from_dtype", mask, indices or names, default "from_dtype"
        Numeric columns to treat as categorical.
    .. shared:: keep, dates
    random_state : int, default 0
        Seed of the assignment of rows to folds.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray (C,)
    members_ : dict
        Fitted estimators with a positive weight, by name.
    member_weights_ : dict
        w_m of each member, by name.
    class_bias_ : ndarray (C,)
        b_y in nats.
    cv_results_ : dict
        Lists with one entry per candidate, and a last one for the pool: ``member``, ``weight``, and the cross-validated
        ``log_loss``, ``accuracy``, ``brier``, ``auc`` and ``calibration_error``, with standard errors (``log_loss_se``
        …). The weights of the pool are fitted without the fold on which they are evaluated.
    out_of_fold_ : OutOfFold
        Out-of-fold posteriors of the pool; not kept in files.
    importance_ : Importance
        Feature importance: the increase of the pool's log-loss on at most 2,000 held-out rows when a column is unknown,
        with standard errors. Computed on first access, and kept in files.
    feature_information_, feature_information_error_ : ndarray (d,)
        Feature importance and its standard error, in nats per row.
    skipped_ : dict
        Why a candidate was left out, by name: it does not apply to these columns, it costs too much, or it failed.
    class_prior_, class_log_prior_ : ndarray (C,)
        p(y) of the training rows, and its log in nats.
    schema_ : Schema
        Names, kinds and categories of the columns.
    n_features_in_ : int
    feature_names_in_ : ndarray (d,)
        Names of the features, if the columns had names.

    Notes
    -----
    The candidates of "auto" are: Gaussian naive Bayes ("nb"); Gaussian discriminant analysis, shrunk, with one
    covariance ("lda shrunk"), mostly one per class ("rda 0.2 shrunk") and half-way ("rda 0.5 shrunk"); naive Bayes
    with bins ("binned weighted") and k-dependence ("kdb weighted"), both with one weight per feature
    (`feature_weights="conditional"`); trees with little and with much smoothing ("tan 5", "tan 30"); and averaged
    one-dependence on two kinds of bins ("aode 5", "aode 8 bins").

    A candidate is left out if it does not apply to the columns (models of numbers on a table of categories), if its
    cost is out of proportion (with a warning), or if it fails on the table (with a warning). `skipped_` holds the
    reasons.

    p(x) and drawn rows are those of the mixture of the members with shares proportional to their weights. The posterior
    of the pool is not that of the mixture.

    Cost: one pass for the statistics of every fold and candidate; one pass that scores the rows by every candidate, at
    most 200,000 rows in a stratified subsample (the others are training rows of all folds); a second pass for the
    candidates that need one; and a convex fit of M + C numbers on at most 20,000 rows. `importance_` scores its rows
    once per column; until then the models of each fold are kept.

    References
    ----------
    Genest & Zidek, Combining probability distributions: a critique and an annotated bibliography, Statistical Science 1
    (1986), on logarithmic pools. Wolpert, Stacked generalization, Neural Networks 5 (1992).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = po.GenerativeClassifier().fit(penguins, "species")
    >>> model.predict(penguins.head(2))
    array(['Adelie', 'Adelie'], dtype=object)
    >>> best = min(zip(model.cv_results_["log_loss"], model.cv_results_["member"]))
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [StrOptions({"auto"}), list, tuple, Mapping],
        "pool": [StrOptions({"log_linear", "best"})],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "categorical_features": [None, str, "array-like"],
        "keep": [None, StrOptions({"all"}), list, tuple],
        "dates": [StrOptions({"parts", "ignore"}), list, tuple],
        "random_state": ["random_state"],
        "n_jobs": [None, Integral],
    }

    _fitted_attribute = "members_"
    _trained = True
    weights_ = Renamed("member_weights_")
    left_out_ = Renamed("skipped_")

    def __init__(
        self,
        members: Any = "auto",
        *,
        pool: str = "log_linear",
        folds: int = 5,
        penalty: float = 1.0,
        categorical_features: Any = "from_dtype",
        keep: Any = None,
        dates: Any = "parts",
        random_state: Any = 0,
        n_jobs: int | None = None,
    ) -> None:
        self.members = members
        self.pool = pool
        self.folds = folds
        self.penalty = penalty
        self.categorical_features = categorical_features
        self.keep = keep
        self.dates = dates
        self.random_state = random_state
        self.n_jobs = n_jobs

    # Learning ---------------------------------------------------------------------------------------------------

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, progress: Callable[[int], None] | None = None
    ) -> Self:
        """Fit the members and the weights of the pool; a previous fit is discarded.

        Parameters
        ----------
        X, y, sample_weight
            As in `NaiveBayes.fit`.
        progress : callable, optional
            Called with the number of rows of each finished batch; each row counts twice, and more often if a candidate
            fails.

        Raises
        ------
        ValueError, TypeError
            As in `NaiveBayes.fit`; or a member is not a model; or no candidate can be fitted: the message lists why.

        Warns
        -----
        UserWarning
            A candidate is left out because of its cost or because it fails, or a column has no value.
        """
        self._validate_params()
        self.__dict__.pop("target_cuts_", None)  # of an earlier target
        seed = int(generator(self.random_state).integers(2**31))
        folded = self._folded(X, y, sample_weight, seed)
        estimators, too_costly = self._estimators(folded)
        sampled = sample_of(folded)

        def fit(some: Sequence[GenerativeEstimator]) -> tuple[Array, list[CrossFitted], Batch | None]:
            with warnings.catch_warnings():  # the weight of a member shows how good it is
                warnings.simplefilter("ignore")
                plans = [one.training_plan(folded.source.schema, folded.target) for one in some]
                return judge_and_sample(plans, folded, progress, sampled)

        estimators, (found, fitted, batch), failed = fit_or_skip(estimators, fit)
        self.skipped_ |= failed
        warn_of_left_out(too_costly, failed, stacklevel=2)
        log_posteriors = clip_log_posteriors(found)
        for estimator, one in zip(estimators.values(), fitted, strict=True):
            estimator._classes_closed = False
            estimator._keep(one.full, folded.target)
        with blas().limit(
            limits=1, user_api="blas"
        ):  # many products of short rows, for which threads cost more than they save
            pool = self._pool_of(log_posteriors, folded)
            self._store_fit(estimators, pool)
            pools = [self._pool_of(log_posteriors, folded, folded.fold != k, pool) for k in range(folded.folds)]
            self._judge(folded, estimators, log_posteriors, fitted, pool, pools)
            assert batch is not None
            self._keep_held_out(held_out_rows(folded, sampled, batch, _predictors(fitted, pools)))
        warn_of_empty_columns(fitted[0].full.model, fitted[0].full.statistics)
        return self

    def _folded(self, X: Any, y: Any, sample_weight: Any, seed: int) -> FoldedData:
        """Return the rows assigned to folds, at most one fold per row."""
        reader = _Reader(**self._common)
        rows = reader.read_training_rows(X, y, sample_weight)
        return FoldedData.of(rows, self.folds, random_state=seed, at_most=True, most=MOST_EVALUATED)

    def _estimators(self, folded: FoldedData) -> tuple[dict[str, GenerativeEstimator], dict[str, str]]:
        """Set `skipped_`; return the candidates, and the reasons of those that cost too much."""
        common = self._common
        self.skipped_: dict[str, str] = {}
        if not isinstance(self.members, str):
            return resolve_members(self.members, common), {}
        selected = select_candidates(summarise_table(folded.source, len(folded.target.categories)), common)
        self.skipped_ = selected.declined | selected.too_costly
        return selected.estimators, selected.too_costly

    @property
    def _common(self) -> dict[str, Any]:
        """The parameters that the candidates share."""
        return {name: getattr(self, name) for name in ("categorical_features", "keep", "dates", "n_jobs")}

    def _pool_of(
        self, log_posteriors: Array, folded: FoldedData, rows: Any = slice(None), start: Pool | None = None
    ) -> Pool:
        """Return the pool that some out-of-fold rows determine, from the log posteriors of the members."""
        part, components, weight = log_posteriors[rows], folded.y_true[rows], folded.weight[rows]
        if self.pool == "log_linear":
            return fit_pool(part, components, weight, self.penalty, start)
        losses = [scores_of(components, np.exp(one), weight).log_loss for one in np.moveaxis(part, 2, 0)]
        chosen = np.zeros(len(losses))
        chosen[int(np.argmin(losses))] = 1.0
        return Pool(chosen, np.zeros(part.shape[1]))

    def _store_fit(self, estimators: dict[str, GenerativeEstimator], pool: Pool) -> None:
        kept = [m for m in range(len(estimators)) if pool.weight[m] > 0] or [int(np.argmax(pool.weight))]
        names = list(estimators)
        self.members_ = {names[m]: estimators[names[m]] for m in kept}
        self.member_weights_ = {names[m]: float(pool.weight[m]) for m in kept}
        self.class_bias_ = pool.bias

    def _judge(
        self,
        folded: FoldedData,
        estimators: dict[str, GenerativeEstimator],
        log_posteriors: Array,
        fitted: Sequence[CrossFitted],
        pool: Pool,
        pools: Sequence[Pool],
    ) -> None:
        """Set `out_of_fold_` and `cv_results_`, the cross-validated scores of every candidate and of the pool."""
        pooled = np.empty(log_posteriors.shape[:2])
        for k, others in enumerate(pools):
            held_out = folded.fold == k
            pooled[held_out] = others.log_posterior(log_posteriors[held_out])
        self.out_of_fold_: OutOfFold = results_of(folded, pooled, fitted[0], self)
        each = [*np.exp(np.moveaxis(log_posteriors, 2, 0)), np.exp(pooled)]
        found = [scores_of(folded.y_true, one, folded.weight, self.out_of_fold_.prior, folded.fold) for one in each]
        self.cv_results_: dict[str, list[Any]] = {
            "member": [*estimators, _POOL],
            "weight": [*pool.weight.tolist(), float(pool.weight.sum())],
        } | {name: [getattr(one, name) for one in found] for name in found[0].names()}

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        labels: Array = self.classes_[self.predict_log_proba(X).argmax(axis=1)]
        return labels

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1."""
        return np.exp(self.predict_log_proba(X))

    @supports_partitions("log_probability")
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self._source(X).map(self._posterior.log_posterior)

    def scorer(self) -> Scorer:
        """Return a picklable function from one row, a dict, to p(y | x) of each class, a dict, for services."""
        return Scorer(tuple(self.classes_.tolist()), ModelRows(self._posterior, type(self).__name__))

    @property
    def _posterior(self) -> Posterior:
        return Posterior(tuple(self._models()), self._pool)

    def _best(self) -> tuple[Callable[[Batch], Array], int]:
        return lambda batch: self._posterior.log_posterior(batch).argmax(
            axis=1
        ), 0  # posteriors are clipped, so all classes can

    @supports_partitions("log_density")
    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,), of the mixture of the members: lower for more unusual rows."""
        models, log_share = self._models(), np.log(self._shares)

        def score(batch: Batch) -> Array:
            each = [model.log_evidence(batch.with_schema(model.schema)) for model in models]
            mixed: Array = np.logaddexp.reduce(np.stack(each) + log_share[:, np.newaxis], axis=0)
            return mixed

        return self._source(X).map(score)

    def _terms(self) -> ExplanationTerms:
        models, weights = self._models(), list(self.member_weights_.values())

        def factors(batch: Batch) -> Array:
            total = np.zeros((len(batch), len(self.classes_), len(self.schema_.columns)))
            for model, weight in zip(models, weights, strict=True):
                total += weight * model.posterior_factors(batch.with_schema(model.schema))
            return total

        bias = self.class_bias_ + sum(weight * model.bias for model, weight in zip(models, weights, strict=True))
        return ExplanationTerms(bias, factors, weighted=True)

    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        member = rng.choice(len(self.members_), size=n, p=self._shares)
        wanted = None if y is None else np.broadcast_to(np.asarray(y), (n,))
        drawn: list[Array] = [np.empty(n, np.float64) for _ in self.schema_.columns]
        labels = np.empty(n, self.classes_.dtype)
        for m, estimator in enumerate(self.members_.values()):
            rows = np.flatnonzero(member == m)
            if len(rows):
                of_class = None if wanted is None else wanted[rows]
                columns, labels[rows] = estimator._draw(len(rows), of_class, rng, respect_ranges)
                for position, column in enumerate(columns):
                    drawn[position][rows] = column
        for j in self.schema_.of_kind("categorical"):
            drawn[j] = drawn[j].astype(np.uint16)
        return drawn, labels

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def classes_(self) -> Array:  # type: ignore[override]  # an attribute of its members
        """Classes, (C,)."""
        return self._first.classes_

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        return self._first.n_features_in_

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if the columns had names."""
        return self._first.feature_names_in_

    @property
    def schema_(self) -> Schema:
        """Names, kinds and categories of the columns."""
        return self._first.schema_.uncut()

    @property
    def target_(self) -> Column:  # type: ignore[override]  # an attribute of its members
        """The classes, as a column."""
        return self._first.target_

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters: those of the members, one weight per member, and C − 1 biases."""
        members = sum(estimator.n_parameters_ for estimator in self.members_.values())
        return members + len(self.members_) + len(self.classes_) - 1

    @property
    def class_log_prior_(self) -> Array:
        """Log p(y) of the training rows in nats, (C,)."""
        return self._first.class_log_prior_

    @property
    def class_prior_(self) -> Array:
        """p(y) of the training rows, (C,)."""
        return self._first.class_prior_

    def _check_fitted(self) -> None:
        """Raise ValueError unless the fitted attributes, which may come from a file, agree with each other."""
        check_is_fitted(self, "members_")
        require(
            len(self.members_) > 0 and self.members_.keys() == self.member_weights_.keys(),
            "members or weights are missing",
        )
        schema, target = self.schema_, self.target_
        for member in self.members_.values():
            member._check_fitted()
            require(member.schema_.uncut() == schema, "the members are of different columns")
            require(member.target_ == target, "the members have different classes")
        for weight in self.member_weights_.values():
            check_not_negative("the weight of a member", weight)
        check_numbers("the biases of classes", self.class_bias_, (len(self.classes_),))
        self._check_importance(len(self.schema_.columns))

    @property
    def _first(self) -> GenerativeEstimator:
        check_is_fitted(self, "members_")
        return next(iter(self.members_.values()))

    @property
    def _pool(self) -> Pool:
        return Pool(np.array(list(self.member_weights_.values())), self.class_bias_)

    @property
    def _shares(self) -> Array:
        """Share of each member in the mixture."""
        weight = np.array(list(self.member_weights_.values()))
        return weight / weight.sum() if weight.sum() > 0 else np.full(len(weight), 1.0 / len(weight))

    def _predictor(self) -> tuple[Predictor, Array]:
        return Predictor(tuple(self._models()), self._pool), self._shares

    def _models(self) -> list[GenerativeModel]:
        check_is_fitted(self, "members_")
        return [estimator.model_ for estimator in self.members_.values()]


def _predictors(fitted: Sequence[CrossFitted], pools: Sequence[Pool]) -> list[Predictor]:
    """Return the predictor of each fold: members with positive weight and their pool, fitted without the fold."""
    predictors = []
    for k, pool in enumerate(pools):
        kept = np.flatnonzero(pool.weight > 0) if (pool.weight > 0).any() else np.array([int(pool.weight.argmax())])
        members = tuple(fitted[m].without[k] for m in kept)
        predictors.append(Predictor(members, Pool(pool.weight[kept], pool.bias)))
    return predictors
