"""Logarithmic pool of generative models: candidates are cross-validated, and the best are pooled."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from numbers import Integral, Real
from typing import Any, ClassVar, Self, TypeVar, cast

from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.classifier import Classifier
from posteriori.classifiers.estimator import estimator_of
from posteriori.classifiers.notebooks import members_html
from posteriori.classifiers.parameters import declares_parameters
from posteriori.fitting.estimate_warnings import warn_of_one_class
from posteriori.fitting.parameter_groups import Columns, Labels
from posteriori.model import KnownCells
from posteriori.model_selection.held_out_predictions import HeldOut
from posteriori.pool.fit import fit
from posteriori.pool.parameters import Data
from posteriori.pool.update import add, remove
from posteriori.pool.value import FittedPool
from posteriori.registry import LANGUAGES
from posteriori.support.constraints import N_JOBS
from posteriori.support.typing import Array


@declares_parameters
class GenerativeClassifier(Classifier):
    r"""Logarithmic pool of the generative models that suit a table, weighted by their held-out predictions.

    .. math:: p(y \mid x) \propto \exp\Bigl(b_y + \sum_m w_m \log p_m(y \mid x)\Bigr), \qquad w_m \ge 0

    The members are generative models, fitted in closed form. Only one weight per member and one bias per class are
    fitted discriminatively, on out-of-fold posteriors. This reduces the overconfidence of members and combines their
    complementary information. From 1,000 rows on, trees learn what they miss, p(y | x) ∝ pool(y | x)·exp f_y(x).

    Parameters
    ----------
    members : "auto", list or mapping, default "auto"
        "auto" tries every candidate that suits the table (see Notes). A list, or a mapping from names of your choice,
        holds generative estimators of posteriori and names of the registry: "nb", "lda", "qda", "rda", "tan",
        "chow-liu", "kdb", "aode", "forest", and those of the candidates. A sum of trees beside others is their
        "residual trees", whatever its name is. A name is the same model here, in `cross_validate`, in `compare` and on
        the command line.
    pool : {"log_linear", "best"}, default "log_linear"
        "log_linear" weighs the members; "best" keeps only the one with the lowest log-loss.
    folds : int, default 5
        Number of folds of the cross-validation; at most the number of rows.
    penalty : float, default 2.0
        Strength, in nats, of the shrinkage of the weights to a geometric mean of the members, in which a forest counts
        four times, against overfitting. With n < 200 rows it is multiplied by 200/n.
    distributions : mapping, str or None, default None
        Density of columns by name or index, or of all columns of numbers, as in `NaiveBayes`: "gaussian", "poisson",
        "binned", "categorical", or a density. Every member models the column so. Candidates that cannot are left out:
        discriminant analysis takes numbers as jointly Gaussian, and trees and dependences cut them into bins.
    missing : {"at_random", "informative"}, default "at_random"
        As in `NaiveBayes`, for every member that is named (not for given estimators).
    priors : array-like (C,), mapping or "uniform", optional
        p(y) where the model is used, in the order of `classes_` or by class, each above 0; "uniform" gives every class
        1/C, against imbalance. Default: as in the training rows. Members and weights are those of the training rows.
        The posterior of the pool is multiplied by priors / `training_prior_` and normalised, which is exact if p(x | y)
        is the same in both places (Saerens et al. 2002).
    labels : Labels, optional
        How missing labels are handled: ``po.Labels(unlabelled="learn")``. Members that learn by EM (naive Bayes,
        discriminant analysis, trees) learn from rows without label; the others, and members with feature weights,
        leave them out. Weights and scores are of rows with a label only. Default: such rows are left out, with a
        warning.
    .. shared:: columns
    language : {"sql", "javascript"}, optional
        What the pool is to be written in, by `to_sql` or `posteriori.javascript.to_javascript`. Candidates that cannot
        be written in it, or are too large together, are left out (`skipped_`), and a forest gets as many trees as there
        is room for beside trees on what the others leave; `language_note_` says what this costs. Columns that it cannot
        read are an error. Default: Python.
    time_budget : float, optional
        Seconds that a fit may take, compilation of kernels apart. Candidates are then fitted one by one, the cheapest
        first, and at least one. One that would take too long is left out (`skipped_`), and a forest gets as many trees
        as there is time for. The result depends on the speed of the machine. Default: no limit.
    random_state : int, default 0
        Seed of the assignment of rows to folds, which depends on their cells and labels, not on their order or names,
        up to 50,000 rows and 2²⁴ cells. Beyond, rows are assigned by their places.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core. The result does not depend on it.

    Attributes
    ----------
    classes_ : ndarray (C,)
    members_ : dict
        Fitted estimators by name; after `fit`, those with a positive weight.
    member_weights_ : dict
        w_m of each member, by name.
    class_bias_ : ndarray (C,)
        b_y in nats.
    partial_weights_ : dict
        v_m of each member, by name: its weight in rows of which a part is known (see Notes).
    partial_bias_ : ndarray (C,)
        The biases of such rows in nats.
    nothing_weights_ : dict
        e_m of each member, by name: its weight in rows of which hardly anything is known. They are those of a member
        that is a joint distribution, which is kept for this where it has no weight in whole rows.
    nothing_bias_ : ndarray (C,)
        The biases of such rows in nats.
    known_cells_ : KnownCells
        How the weights of a row follow from the cells that are known.
    cv_results_ : dict
        Lists of equal length with one entry per candidate, and a last one for the pool, as a table:
        ``pandas.DataFrame(model.cv_results_)`` or ``polars.DataFrame(model.cv_results_)``. ``member`` is the name of
        the candidate in the registry (see Notes), ``weight`` its weight; ``log_loss``, ``accuracy``, ``brier`` and
        ``calibration_error`` are cross-validated, with standard errors (``log_loss_se`` …); ``log_loss_above_pool`` is
        the difference from the log-loss of the pool on the same rows, whose standard error,
        ``log_loss_above_pool_se``, is that of paired differences. The weights of the pool are fitted without the fold
        on which they are evaluated. If `priors` are given, all scores are those of posteriors under these priors.
    out_of_fold_ : HeldOut
        Out-of-fold posteriors of the pool; not kept in files.
    importance_ : Importance
        Feature importance: the increase of the pool's log-loss on at most 2,000 held-out rows when a column is unknown,
        with standard errors. Computed on first access, and kept in files.
    feature_importances_ : ndarray (d,)
        Feature importance of each column of X, in nats per row.
    skipped_ : dict
        Why a candidate was left out, by name: it does not apply to these columns, it costs too much, it could not lower
        the log-loss of the pool in a trial, the time budget was used up, or it failed.
    language_note_ : str
        A sentence on what is left out for `language`, and what it costs in log-loss; empty if nothing is. Not kept in
        files.
    class_prior_, class_log_prior_ : ndarray (C,)
        p(y) of the training rows, or `priors`, and its log in nats.
    training_prior_ : ndarray (C,)
        Share of each class among the training rows with a label.
    unlabelled_weight_ : float
        Weight of a row without label.
    schema_ : Schema
        Names, kinds and categories of the columns.
    n_features_in_ : int
    .. shared:: feature_names_in_

    Notes
    -----
    The candidates of "auto" each see a table in a way of its own: Gaussian discriminant analysis with one covariance
    per class ("qda predictive") and half-way to one of all classes ("rda predictive"), with their parameters integrated
    out (`predictive`), so that few rows make no member too sure; naive Bayes with one learned number per category or
    bin and class ("cells", on less than 2,000 rows); a tree of columns ("tan 5"); k-dependence with one weight per
    feature ("kdb weighted", `feature_weights="conditional"`); averaged one-dependence on 8 bins ("aode 8 bins"); and a
    generative forest of which every second tree has random cuts ("forest mixed"), if it can matter. Three others take
    the place of those that cannot be fitted: "lda predictive" that of "rda predictive", "nb predictive" that of both,
    and "binned weighted", naive Bayes with bins and one weight per feature, that of "kdb weighted".

    The last candidate, "residual trees", learns what the others leave: f is a sum of boosted trees that begins at the
    pool of the others (Friedman 2001), as an offset of weight 1, and so at what they predict of rows that they have not
    learned from. A tenth of the rows, but 400 to 5,000 and at most a quarter, is kept from all of them first, because
    the trees would learn from the others' errors to undo the labels of held-out rows: these rows decide how many trees
    there are, if any, give the figures in `cv_results_` and the weights of partial rows. Then the members learn from
    all rows. Where a cell is unknown, f is the mean of both sides of a split, and it counts less the less is known; of
    nothing it is 0. It is flat outside the range of the training rows, and it is no density: p(x), drawn rows and
    `importance_` without held-out rows are those of the others. Explanations are exact sums along the paths of trees.

    A forest takes longer than all other candidates together. From 500 rows on it is tried first: with 20 trees on all
    rows, and on more than 10,000 with ten trees on a part of them, which grows until the gain is clear, within 15 % of
    the trees times rows of the fit. It is fitted if it lowers the held-out log-loss of the pool by 0.8 %, or 0.4 % on
    more than 5,000 rows, within one standard error; a gain that grows with the parts is followed to all rows, or to
    eight times those of the last part. The trial also chooses the least weight of a node. `skipped_` has the figures.
    Forests that `members` names are not tried.

    A forest is not fitted again without each fold. Each of its trees leaves out one of the folds of the pool, and a row
    is predicted by the trees that did not see it, a fifth of all. Their posteriors are held out, though not those of a
    refit: a forest of all trees is better, so that its weight is too low rather than too high. The cut points of its
    bins, the strength of its back-off, and the number of steps that learn its leaves are those of all rows.

    If X has columns of text, or of counts of words (a sparse matrix, or `posteriori.tables.Blocks`), naive Bayes models
    them too: "nb predictive" as multinomial, and further candidates as counts on a logarithmic scale ("scaled", "scaled
    0.1"), by complements of the classes ("complement", "complement 0.1"; of three classes or more), as "compound" and
    as "presence". Except for "nb predictive" and "compound", they have one weight per column, a column of counts being
    one, and all but "nb predictive" cut numbers into bins. The other candidates see the other columns only, so that
    their explanations hold 0 for the words. Such a pool has no log p(x), and draws no rows.

    A pool has no `em`, `label_noise`, `feature_weights`, ``unlabelled_weight="held_out"`` or masks of
    possible classes: fit one of the models that have them, or give it as a member, with its own parameters. `to_sql`
    writes every candidate of "auto" for tables without counts, and refuses a SELECT of more than about 20,000,000
    characters, with the names of the members that are too large. `linear_form` takes pools of linear members, such as
    ``members=["lda"]``.
    `partial_fit`, `unlearn` and `merge` update those members whose statistics are sums over rows; each says what
    becomes of the weights. The residual trees stay as they are, as do the
    weights of a pool that has some; they leave a pool of merged ones whose trees differ, which then knows less.

    A candidate is left out if it does not apply to the columns (models of numbers on a table of categories), if the
    table has too few rows for it (covariances per class with more than two parameters per number of the table; missing
    numbers predicted from d columns with fewer than 2.5 d rows), if its cost is out of proportion (with a warning), or
    if it fails on the table (with a warning). `skipped_` holds the reasons.

    With fewer than 200 rows, the weights are fitted to the predictions of two or three assignments of the rows to
    folds, because those of one depend on chance. The scores are those of the first assignment.

    These weights and biases are those of rows as complete as the training rows. The weights of a row are
    h·e_m + (1 − h)·(g·w_m + (1 − g)·v_m), and its biases the same mean: g says how much of the row is known, where a
    column counts as much as the posterior depends on it, and h is near 1 where hardly anything is known (`KnownCells`).
    v is fitted to held-out rows of which random cells are hidden. e is 1 for one member that is a joint distribution,
    so that a single known cell gives the class shares of the training rows with this cell. The biases are such that a
    row without cells has the class prior (docs/pool.md).

    p(x) and drawn rows are those of the mixture of the members with shares proportional to their weights. The posterior
    of the pool is not that of the mixture.

    Cost: one pass for the statistics of every fold and candidate; one pass that scores the rows by every candidate, at
    most 50,000 rows in a stratified subsample (the others are training rows of all folds, and where there are more than
    100,000 of them they alone determine the cut points of bins and the groups of categories); a second pass for the
    candidates that need one; and a convex fit of M + C numbers on at most 20,000 rows. `importance_` scores its rows
    once per column; until then the models of each fold are kept. Where more than 100,000 rows are not scored, members
    that together lower the log-loss by less than 0.0005 nats per row are dropped, so that the pool predicts faster.

    References
    ----------
    Genest & Zidek, Combining probability distributions: a critique and an annotated bibliography, Statistical Science 1
    (1986), on logarithmic pools. Friedman, Greedy function approximation: a gradient boosting machine, Annals of
    Statistics 29 (2001). Wolpert, Stacked generalization, Neural Networks 5 (1992). Saerens, Latinne &
    Decaestecker, Adjusting the outputs of a classifier to new a priori probabilities, Neural Computation 14 (2002).

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

    members: Any = field(default="auto", kw_only=False)
    pool: str = "log_linear"
    folds: int = 5
    penalty: float = 2.0
    distributions: Any = None
    missing: str = "at_random"
    priors: Any = None
    labels: Labels | None = None
    columns: Columns | None = None
    language: str | None = None
    time_budget: float | None = None
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [StrOptions({"auto"}), list, tuple, Mapping],
        "pool": [StrOptions({"log_linear", "best"})],
        "folds": [Interval(Integral, 2, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "distributions": [None, str, Mapping],
        "missing": [StrOptions({"at_random", "informative"})],
        "priors": [None, StrOptions({"uniform"}), Mapping, "array-like"],
        "labels": [None, Labels],
        "columns": [None, Columns],
        "language": [None, StrOptions(set(LANGUAGES))],
        "time_budget": [None, Interval(Real, 0, None, closed="neither")],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    reads_counts = True

    # Learning ---------------------------------------------------------------------------------------------------

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        groups: Any = None,
        progress: Callable[[int], None] | None = None,
    ) -> Self:
        """Fit the members and the weights of the pool; a previous fit is discarded.

        Parameters
        ----------
        X, y, sample_weight
            As in `NaiveBayes.fit`.
        groups : array-like (n,), optional
            The group of each row, such as a patient: rows of one group are held out together, so that weights and
            scores are those of new groups.
        progress : callable, optional
            Called with the number of rows of each finished batch; each row counts twice, and more often if a candidate
            fails.

        Raises
        ------
        ValueError, TypeError
            As in `NaiveBayes.fit`; or there are more folds than groups; or a member is not a model; or no
            candidate can be fitted: the message lists why.

        Warns
        -----
        UserWarning
            A candidate is left out because of its cost or because it fails, a column has no value, or there is only one
            class.
        """
        self.fitted_ = fit(self.recipe, Data(X, y, sample_weight, groups=groups), progress)
        warn_of_one_class(self.target_, self.schema_.target)
        return self

    # Updates ----------------------------------------------------------------------------------------------------

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
        data = Data(X, y, sample_weight, classes)
        self.fitted_ = add(self._updatable, data) if self._is_fitted else fit(self.recipe, data)
        return self

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
        self.fitted_ = remove(self._updatable, Data(X, y, sample_weight))
        return self

    # Fitted values ----------------------------------------------------------------------------------------------

    @property
    def _value(self) -> FittedPool:
        return cast(FittedPool, super()._value)

    @property
    def _updatable(self) -> FittedPool:
        """The fitted value with the parameters as they are now."""
        return replace(self._value, recipe=self.recipe)

    @property
    def members_(self) -> dict[str, Any]:
        """Fitted estimators by name, made when they are asked for."""
        return {name: estimator_of(one) for name, one in self._value.members.items()}

    @property
    def member_weights_(self) -> dict[str, float]:
        """w_m of each member, by name."""
        return self._value.weights

    @property
    def class_bias_(self) -> Array:
        """b_y in nats, (C,)."""
        return self._value.bias

    @property
    def partial_weights_(self) -> dict[str, float]:
        """v_m of each member, by name: its weight in rows of which a part is known."""
        return self._value.partial_weights

    @property
    def partial_bias_(self) -> Array:
        """The biases of rows of which a part is known, in nats, (C,)."""
        return self._value.partial_bias

    @property
    def nothing_weights_(self) -> dict[str, float]:
        """e_m of each member, by name: its weight in rows of which hardly anything is known."""
        return self._value.nothing_weights

    @property
    def nothing_bias_(self) -> Array:
        """The biases of rows of which hardly anything is known, in nats, (C,)."""
        return self._value.nothing_bias

    @property
    def known_cells_(self) -> KnownCells:
        """How much of a row is known, as a function of its known cells."""
        return self._value.known_cells

    @property
    def training_prior_(self) -> Array:
        """Share of each class among the training rows with a label, (C,)."""
        return self._value.training_prior

    @property
    def unlabelled_weight_(self) -> float:
        """Weight of a row without label."""
        return _present(self._value.unlabelled_weight, "the weight of rows without label")

    @property
    def cv_results_(self) -> dict[str, list[Any]]:
        """Cross-validated scores of each candidate, and of the pool, as a table."""
        return _present(self._value.results, "cross-validated scores")

    @property
    def skipped_(self) -> dict[str, str]:
        """Why a candidate was left out, by name."""
        return self._value.skipped

    @property
    def language_note_(self) -> str:
        """A sentence on what is left out for `language`, and what it costs in log-loss; empty if nothing is."""
        return _present(self._value.language_note, "the note on its language")

    @property
    def out_of_fold_(self) -> HeldOut:
        """Out-of-fold posteriors of the pool."""
        return replace(_present(self._value.out_of_fold, "out-of-fold predictions"), estimator=self)

    def _html_parts(self) -> list[str]:
        return [*super()._html_parts(), members_html(self.member_weights_, self._value.results)]

    @property
    def class_count_(self) -> Array:
        """Weight of the rows of each class, (C,), as the first member counts them."""
        return self._value.first.class_count


_Part = TypeVar("_Part")


def _present(part: _Part | None, what: str) -> _Part:
    """Return a part of the fitted value; AttributeError if the pool has none."""
    if part is None:
        raise AttributeError(f"this GenerativeClassifier does not keep {what}, as after load, merge or an update")
    return part
