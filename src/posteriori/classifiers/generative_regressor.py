"""The pool of regressions, as an estimator."""

from __future__ import annotations

from dataclasses import field
from numbers import Integral, Real
from typing import Any, ClassVar, Self, cast

from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.keywords import SUMS
from posteriori.classifiers.parameters import declares_parameters
from posteriori.classifiers.regressor import Regressor
from posteriori.classifiers.sum_regressors import AdditiveRegressor
from posteriori.fitting.parameter_groups import Columns
from posteriori.model import KnownCells
from posteriori.pool.parameters import Data
from posteriori.regression.effects import AdditiveEffect, additive_effects
from posteriori.regression.fit import fit
from posteriori.regression.gaussian import additive_of
from posteriori.regression.locations import NAMES
from posteriori.regression.value import FittedRegression
from posteriori.support.constraints import N_JOBS
from posteriori.support.keywords import Elsewhere
from posteriori.support.typing import Array

_OF_MEMBER = "its additive_member() has it; po.to_polars(model) scores rows by the whole pool"


@declares_parameters
class GenerativeRegressor(Regressor):
    r"""Pool of regressions: the density of a number given a row, weighed by held-out predictions.

    .. math:: p(y \in g \mid x) \propto \exp\Bigl(b_g + \sum_m w_m \log p_m(y \in g \mid x)\Bigr), \qquad w_m \ge 0

    The range of y is cut into cells g of about equal weight: what a class is to `GenerativeClassifier`, a cell is here.
    Values that are frequent are cells of their own, so that zeros stay zeros; if y is never negative, no prediction is;
    and whole numbers, or numbers of a few decimals, stay such.

    Parameters
    ----------
    members : "auto" or list, default "auto"
        Some of "forest", "additive" and "kernel" (see Notes); "auto" takes all of them.
    folds : int, default 9
        Number of folds of the cross-validation; at most the number of rows. A tree of the forest leaves out a third of
        them.
    penalty : float, default 1.0
        Strength of the shrinkage of the weights to equal ones, against overfitting. With n < 200 rows it is multiplied
        by 200/n.
    .. shared:: columns
    random_state : int, default 0
        Seed of the folds, of the trees, and of the rows that are sampled, which depend on the cells of the rows and not
        on their order.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core. The result does not depend on it.

    Attributes
    ----------
    member_weights_ : dict
        w_m of each member, by name.
    cv_results_ : dict
        Lists of equal length with one entry per member, and a last one for the pool, as a table: ``crps``, the
        continuous ranked probability score in units of y; ``log_score``, the mean of −log p(y | x) in nats; ``rmse``,
        ``mae`` of the median, ``r2``; the ``coverage`` and the mean ``width`` of central 90 % intervals. They are those
        of held-out rows, at most 10,000, by weights that were fitted without the fold of the row.
    out_of_fold_ : HeldOutNumbers
        The densities of these rows; not kept in files.
    importance_ : Importance
        Feature importance: the increase of the pool's CRPS on at most 1,000 held-out rows when a column is unknown, in
        units of y.
    feature_importances_ : ndarray (d,)
        Feature importance of each column of X.
    known_cells_ : KnownCells
        How the weights of a row follow from the cells that are known.
    target_ : Column
        The name and the type of y.
    schema_ : Schema
        Names, kinds and categories of the columns.
    n_features_in_ : int
    .. shared:: feature_names_in_

    Notes
    -----
    "additive" is a sum of functions of single columns: a line and up to 20 steps of each number, and a constant for
    each category, by least squares. "kernel" adds a smooth function of all columns together, which is large for rows
    that are near each other (a Matérn covariance of smoothness 3/2, from 600 landmark rows); the weight of each column
    in the distance, and how much lines, steps, categories and the smooth function vary, are those of the greatest
    marginal likelihood on 500 rows. Both learn by adding up products of features. The scale of y (as it is, its
    logarithm, or its normal scores) is the one that predicts best. "forest" is the distribution of y in the training
    rows that share leaves with the row, in randomised trees. The same neighbours weigh the residuals of the other two
    members, so that their densities are wide where rows are hard to predict.

    A missing cell is integrated out: least squares expect the features of the cell from the known ones, by their joint
    normal distribution, and add the variance of what is unknown; in a tree the row goes down both sides. A column of
    which 5 % of the training cells are missing has a mark for that, too. As in `GenerativeClassifier`, the weights of a
    row depend on how much of it is known, and a row of which nothing is known has the distribution of the training
    rows.

    The weights have the least continuous ranked probability score on 2,000 held-out rows, relative to that of the
    distribution of all rows, plus a tenth of the log score.

    Cost: one pass for the sums of products, O(n p²) with at most about 1,600 features p; the rest is of at most 50,000
    rows.

    References
    ----------
    Gneiting & Raftery, Strictly proper scoring rules, prediction, and estimation, JASA 102 (2007). Meinshausen,
    Quantile regression forests, JMLR 7 (2006). Rasmussen & Williams, Gaussian Processes for Machine Learning (2006).
    Genest & Zidek, Combining probability distributions: a critique and an annotated bibliography, Statistical Science 1
    (1986).

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> model = po.GenerativeRegressor().fit(penguins, "body_mass_g")
    >>> model.predict_interval(penguins.head(1), 0.8).shape
    (1, 2)
    """

    members: Any = field(default="auto", kw_only=False)
    folds: int = 9
    penalty: float = 1.0
    columns: Columns | None = None
    random_state: Any = 0
    n_jobs: int | None = None

    to_sql = Elsewhere(_OF_MEMBER)
    to_onnx = Elsewhere(_OF_MEMBER)
    scorer = Elsewhere(_OF_MEMBER)
    partial_fit = Elsewhere(SUMS)
    unlearn = Elsewhere(SUMS)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [StrOptions({"auto"}), list, tuple],
        "folds": [Interval(Integral, 3, None, closed="left")],
        "penalty": [Interval(Real, 0, None, closed="left")],
        "columns": [None, Columns],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn from rows with a number as target; a previous fit is discarded.

        Parameters
        ----------
        X : array-like, data frame or path (n, d)
            As in `NaiveBayes.fit`.
        y : array-like (n,) or str
            The number of each row, or the name of the column of X that holds it.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0; a row of weight k counts as k rows.
        groups : array-like (n,), optional
            The group of each row, such as a patient: rows of one group are held out together, so that weights and
            scores are those of new groups.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The target holds no numbers, an infinite one, or the same one in every row; there are fewer than
            three rows; or as in `NaiveBayes.fit`.
        """
        self.fitted_ = fit(self.recipe, Data(X, y, sample_weight, groups=groups))
        return self

    @property
    def _value(self) -> FittedRegression:
        return cast(FittedRegression, super()._value)

    def effects(self) -> dict[str, AdditiveEffect]:
        """Return the function of each column in the additive member, by the name of the column.

        Columns with the same value in all training rows are left out.

        Raises
        ------
        ValueError
            The pool has no additive member.
        """
        return additive_effects(self._value.members, self._value.schema)

    def additive_member(self) -> AdditiveRegressor:
        """Return the additive member as a regressor of its own: it runs in databases, pages and services.

        Its density is Student's t around the same sum of functions of single columns, which needs no training rows.
        What it costs is in ``cv_results_``: the scores of "additive" beside those of the pool.

        Raises
        ------
        ValueError
            The pool has no additive member.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> penguins = load_penguins().drop_nulls("body_mass_g")
        >>> model = po.GenerativeRegressor().fit(penguins, "body_mass_g")
        >>> "prediction_low" in model.additive_member().to_sql("penguins")
        True
        """
        value, same = (
            self._value,
            {name: getattr(self, name) for name in ("folds", "columns", "random_state", "n_jobs")},
        )
        member = AdditiveRegressor(**same)
        member.fitted_ = additive_of(value, member.recipe)
        return member

    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,), by the trees of the neighbours: lower for more unusual rows."""
        return self._source(X).map(self._value.log_evidence)

    def _validate_params(self) -> None:
        super()._validate_params()
        unknown = [] if isinstance(self.members, str) else [one for one in self.members if one not in NAMES]
        if unknown or not len(self.members):
            listed = ", ".join(map(repr, NAMES))
            raise ValueError(f"members is {self.members!r}; choose some of {listed}")

    @property
    def member_weights_(self) -> dict[str, float]:
        """The weight of each member, by name."""
        return dict(zip(self._value.members.names, self._value.pool.weight.tolist(), strict=True))

    @property
    def known_cells_(self) -> KnownCells:
        """How the weights of a row follow from the cells that are known."""
        assert self._value.pool.partial is not None
        return self._value.pool.partial.cells
