"""Regressors that learn by adding up products of features: a sum of features with Student's t around it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar, Self, cast

from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.keywords import DENSITY, TO_SQL
from posteriori.classifiers.parameters import declares_parameters
from posteriori.classifiers.regressor import Regressor
from posteriori.fitting.parameter_groups import Columns
from posteriori.pool.parameters import Data
from posteriori.regression.gaussian import FittedGaussian, add, fit, remove
from posteriori.regression.locations import Name
from posteriori.regression.scales import SCALES
from posteriori.scoring.numbers import NumberScorer
from posteriori.support.constraints import N_JOBS
from posteriori.support.keywords import Elsewhere
from posteriori.support.typing import Array


@dataclass(kw_only=True, eq=False, repr=False)
class SumRegressor(Regressor):
    """A sum of features with a density of Student's t around it."""

    scale: str = "auto"
    folds: int = 9
    columns: Columns | None = None
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "scale": [StrOptions({"auto", *SCALES})],
        "folds": [Interval(Integral, 3, None, closed="left")],
        "columns": [None, Columns],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }
    _features: ClassVar[Name] = "additive"
    score_samples = Elsewhere(DENSITY)

    def to_onnx(self) -> Any:
        """Return the model as a graph of ONNX, which runtimes of other languages score rows with.

        It is in double precision and of ONNX's own operators (opset 21), and gives the numbers of Python up to
        rounding, with any cells missing.

        Returns
        -------
        onnx.ModelProto
            An input for each column, as of `NaiveBayes.to_onnx`. The outputs are ``prediction``, (N,), the mean;
            ``prediction_low`` and ``prediction_high``, the ends of the central 90 % interval; and ``probabilities``,
            (N, G), of the cells of `predict_density`. A row that `predict` refuses has NaN.

        Raises
        ------
        ValueError
            A column holds text, blocks of words or times of a zone, or has the name of an output.
        ImportError
            ndonnx is absent: ``pip install "posteriori[onnx]"``.

        Notes
        -----
        Rows with the same missing cells share one solution of linear equations, of its unknown features.

        Examples
        --------
        >>> import numpy as np, onnxruntime, posteriori as po
        >>> x = np.arange(40.0)
        >>> model = po.AdditiveRegressor().fit(x[:, np.newaxis], 2.0 * x)
        >>> session = onnxruntime.InferenceSession(model.to_onnx().SerializeToString())
        >>> prediction, *_ = session.run(None, {"x0": x[:3]})
        >>> np.allclose(prediction, model.predict(x[:3, np.newaxis]))
        True
        """
        from posteriori.program.onnx import write_numbers  # imported here, because it is rarely needed

        value = self._value
        return write_numbers(value.schema, value.cells, value.found.student_of_cells)

    @property
    def _value(self) -> FittedGaussian:
        return cast(FittedGaussian, super()._value)

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None, *, groups: Any = None) -> Self:
        """Learn from rows with a number as target; a previous fit is discarded.

        Parameters
        ----------
        X, y, sample_weight, groups
            As in `GenerativeRegressor.fit`.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `GenerativeRegressor.fit`; or no column has two different values; or the scale is "log" and the
            target is negative.
        """
        self.fitted_ = fit(self.recipe, self._features, Data(X, y, sample_weight, groups=groups))
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: their sums are added. The first call is a fit.

        The features, the amplitudes, the scale and the cells of the target stay those of the first call, so that call
        should have many rows; targets beyond its cells give a warning. A category that it did not see is unknown.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        if not self._is_fitted:
            return self.fit(X, y, sample_weight)
        self.fitted_ = add(self._value, Data(X, y, sample_weight))
        return self

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Subtract the sums of rows, as if the model had never learned from them.

        Parameters
        ----------
        X, y, sample_weight
            Rows that `fit` or `partial_fit` has seen.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The model cannot have learned from these rows, or none would be left. The model is unchanged.
        """
        self.fitted_ = remove(self._value, Data(X, y, sample_weight))
        return self

    def scorer(self) -> NumberScorer:
        """Return a function from one row, a dict, to the mean and the 90 % interval, a dict: for services."""
        value = self._value
        return NumberScorer(value.found, value.of_columns, value.recipe.name)

    @property
    def scale_(self) -> str:
        """The scale of the target: "as_is", "log" or "rank"."""
        return self._value.found.scale.name

    @property
    def noise_(self) -> float:
        """The standard deviation of the noise, on the scale of the target."""
        return float(self._value.noise**0.5)

    @property
    def coefficients_(self) -> Array:
        """The coefficients of the features, (p,), on the scale of the target."""
        return self._value.squares.coefficients[:, 0]


@declares_parameters
class AdditiveRegressor(SumRegressor):
    r"""Sum of functions of single columns, with a density of Student's t around it; it learns by adding up products.

    .. math:: t(y) \mid x \sim t_\nu\Bigl(a + \sum_j f_j(x_j),\; \sigma^2 + v\Bigr)

    σ² is an estimate with ν degrees of freedom, so that the density is Student's t.

    A number has a line and up to 20 steps, a category a constant, and a column with many gaps a mark for them. The
    coefficients have normal priors, whose variances are those of the greatest marginal likelihood on 500 rows. Features
    and target are jointly Gaussian, so that missing cells are integrated out exactly, with their variance v.

    Parameters
    ----------
    scale : {"auto", "as_is", "log", "rank"}, default "auto"
        The scale t of the target: as it is, its logarithm, or its normal scores; "auto" takes the one of the least
        cross-validated CRPS, where the logarithm is that of the target plus a shift after which it is not skew, so
        that predictions move along if an offset is added to the target.
    folds : int, default 9
        Number of folds of the cross-validation, which chooses the scale and scores the model; at most the number of
        rows.
    .. shared:: columns
    random_state : int, default 0
        Seed of the folds and of the rows that are sampled.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core.

    Attributes
    ----------
    scale_ : str
    noise_ : float
        σ, on the scale of the target.
    coefficients_ : ndarray (p,)
    cv_results_ : dict
        The scores of held-out rows, at most 10,000: a table of one line, with the columns of that of
        `GenerativeRegressor`. `partial_fit` and `unlearn` drop it, as it is of the rows before.
    out_of_fold_ : HeldOutNumbers
        The densities of these rows, each from the sums without its fold; not kept in files, and dropped with the
        scores.
    importance_ : Importance
        Feature importance: the increase of the CRPS on at most 1,000 held-out rows when a column is unknown, in units
        of y; dropped with the scores.
    target_ : Column
    schema_ : Schema
    n_features_in_ : int
    .. shared:: feature_names_in_

    Notes
    -----
    A value that many rows share, such as 0, has in every row the probability that it has in all training rows;
    `GenerativeRegressor` predicts it from the row.

    Cost: one pass for the sums of products, O(n p²) with at most about 1,000 features p, and O(p³) to solve.
    `partial_fit` and `unlearn` add and subtract sums.

    References
    ----------
    Hastie & Tibshirani, Generalized Additive Models (1990). Rasmussen & Williams, Gaussian Processes for Machine
    Learning (2006), chapter 2.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> model = po.AdditiveRegressor().fit(penguins, "body_mass_g")
    >>> round(model.score(penguins, "body_mass_g"), 1)
    0.9
    """

    def to_sql(
        self,
        table: str = "rows",
        dialect: str = "duckdb",
        columns: Sequence[str] | None = None,
        coverage: float = 0.9,
    ) -> str:
        """Return a SELECT statement that predicts the rows of a table in a database.

        Parameters
        ----------
        table, dialect, columns
            As in `NaiveBayes.to_sql`.
        coverage : float, default 0.9
            The probability of the interval.

        Returns
        -------
        str
            A SELECT of these columns and, as of ``posteriori predict``, of ``prediction``, the mean, and
            ``prediction_low`` and ``prediction_high``, the ends of the central interval. All three are NULL in rows
            with a missing cell or an unseen category, and where `predict` raises an error.

        Raises
        ------
        ValueError
            The coverage is not between 0 and 1; or as of `NaiveBayes.to_sql`.
        ImportError
            sqlglot is absent: ``pip install sqlglot``.

        Notes
        -----
        A row is a sum of its columns; mean and interval are functions of this sum, which the SELECT holds as lines,
        to within a thousandth of the standard deviation. The variance is the same in all rows: that of a training row
        in the mean, where Python adds for each row what the coefficients are uncertain there. On eight tables of 200
        to 1,500 training rows, that moved half of the ends by less than 1 % of the width of the interval, and all by
        less than 15 %; on fewer than 50 rows, half by up to 9 %, and all by less than 29 %.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> penguins = load_penguins().drop_nulls("body_mass_g")
        >>> model = po.AdditiveRegressor().fit(penguins, "body_mass_g")
        >>> select = model.to_sql("penguins", "sqlite", columns=["year"])
        >>> select.startswith("WITH")
        True
        """
        value = self._value
        try:
            from posteriori.sql import select_number
        except ModuleNotFoundError as error:
            if error.name != "sqlglot":
                raise
            raise ImportError("to_sql needs sqlglot: pip install sqlglot") from error
        return select_number(value, table, dialect, columns, coverage)


@declares_parameters
class KernelRegressor(SumRegressor):
    r"""Sum of functions of single columns and a smooth function of all of them, with Student's t around it.

    .. math:: t(y) \mid x \sim t_\nu\Bigl(a + \sum_j f_j(x_j) + g(x),\; \sigma^2 + v\Bigr)

    g is a Gaussian process with a Matérn covariance of smoothness 3/2, from 600 landmark rows: it learns by adding up
    products of features, as `AdditiveRegressor` does. The weight of each column in the distance between rows is that of
    the greatest marginal likelihood on 500 rows. A missing cell is expected from the known ones.

    Parameters
    ----------
    scale : {"auto", "as_is", "log", "rank"}, default "auto"
        As in `AdditiveRegressor`.
    folds : int, default 9
        As in `AdditiveRegressor`.
    .. shared:: columns
    random_state : int, default 0
        Seed of the folds, of the landmarks, and of the rows that are sampled.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core.

    Attributes
    ----------
    scale_ : str
    noise_ : float
        σ, on the scale of the target.
    coefficients_ : ndarray (p,)
    cv_results_ : dict
        The scores of held-out rows, at most 10,000: a table of one line, with the columns of that of
        `GenerativeRegressor`. `partial_fit` and `unlearn` drop it, as it is of the rows before.
    out_of_fold_ : HeldOutNumbers
        The densities of these rows, each from the sums without its fold; not kept in files, and dropped with the
        scores.
    importance_ : Importance
        Feature importance: the increase of the CRPS on at most 1,000 held-out rows when a column is unknown, in units
        of y; dropped with the scores.
    target_ : Column
    schema_ : Schema
    n_features_in_ : int
    .. shared:: feature_names_in_

    Notes
    -----
    Cost: one pass for the sums of products, O(n p²) with at most about 1,600 features p, and O(p³) to solve.

    References
    ----------
    Williams & Seeger, Using the Nyström method to speed up kernel machines, NIPS 2001. Rasmussen & Williams, Gaussian
    Processes for Machine Learning (2006), chapters 2 and 8.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins().drop_nulls("body_mass_g")
    >>> model = po.KernelRegressor().fit(penguins, "body_mass_g")
    >>> model.predict_interval(penguins.head(1), 0.8).shape
    (1, 2)
    """

    to_sql = Elsewhere(TO_SQL)
    _features: ClassVar[Name] = "kernel"
