"""One distribution of all columns of a table, which answers questions about any of them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from numbers import Integral
from typing import Any, ClassVar, Literal, Self, cast

import numpy as np
from sklearn.base import DensityMixin
from sklearn.utils._param_validation import Interval, StrOptions

from posteriori.classifiers.estimator import Estimator, estimator_of
from posteriori.classifiers.keywords import OF_MIXTURES
from posteriori.classifiers.parameters import declares_parameters
from posteriori.fitting.fitted import FittedValue
from posteriori.fitting.parameter_groups import Columns
from posteriori.joint import answers, imputation
from posteriori.joint.copies import keys_of_table
from posteriori.joint.fit import add, fit, redrawn, remove
from posteriori.joint.value import FittedJoint
from posteriori.model.answer import Answer, Categories
from posteriori.model.blocks import known_cells
from posteriori.model.predictive import PredictiveDensity
from posteriori.reading import Scan, scan
from posteriori.registry import REGRESSOR, Subject, find_model
from posteriori.scoring.files import ResultColumns, RowPredictor
from posteriori.sources import LabelledSource
from posteriori.support.checks import check_draw, generator
from posteriori.support.constraints import N_JOBS
from posteriori.support.typing import Array
from posteriori.tables import Batch, quote
from posteriori.tables.arrays import write_column
from posteriori.tables.rows import take_rows
from posteriori.user_warnings import warn

Method = Literal["pool", "joint"]


@declares_parameters
class JointModel(DensityMixin, Estimator):
    r"""Joint model of a table: one distribution of all columns, of which any column can be the question.

    .. math:: p(x) = \sum_m w_m \sum_z p_m(z) \prod_j p_m(x_j \mid x_{\mathrm{parent}(j)}, z)

    Every marginal and every conditional of it is exact, whatever is known of a row: some cells, ranges, or one of
    several values. For the best answer about one column, a pool of that column is fitted when it is first asked for
    (`GenerativeClassifier` of categories, `GenerativeRegressor` of numbers).

    Parameters
    ----------
    members : "auto" or list, default "auto"
        Some of "tree", the Chow-Liu tree, and "trees", a mixture of six trees; "auto" takes both.
    bins : int or "auto", default "auto"
        Number of bins of equal weight into which columns of numbers are cut; "auto": 64, 24 below 500 rows, and 16
        below 250.
    targets : list of str or "all", default ()
        Columns whose pools are fitted at once, and not when they are first asked for; model files hold them.
    keep_rows : bool, default True
        Whether the training table is kept in memory, so that a pool can be fitted to any column later. A model file
        does not hold it, and holds the pools that were fitted.
    .. shared:: columns
    random_state : int, default 0
        Seed of the sample of rows, of EM, and of the pools.
    n_jobs : int, optional
        Number of threads; None or −1 uses one per core.

    Attributes
    ----------
    member_weights_ : dict
        w_m of each member, by name.
    importance_ : polars DataFrame
        The share of the entropy of each column that each column alone removes.
    schema_ : Schema
    n_parameters_, n_features_in_ : int
    .. shared:: feature_names_in_

    Notes
    -----
    The tree has the edges of the most mutual information, if they gain more than a nat per parameter (AIC). The other
    trees, which EM learns from at most 5,000 rows, share its edges. A table is a mixture of several smoothings of the
    counts of pairs, with the shares that predict held-out rows best; those of the other trees are backed off to those
    of the tree. The weights are those that predict single columns of a fifth of the rows best, given random parts of
    the other columns. How much a member counts in an answer follows from them by Bayes' rule: by how probable it makes
    what is known. Within a bin, numbers are spread as in the training rows, on the grid of all training values (whole
    numbers, or tenths).

    The order of rows and of columns, units and names change nothing but rounding, and which of two columns or
    categories that the rows do not tell apart comes first.

    A pool is more precise about one column; the answers of the joint model agree with each other.

    Cost: one pass over the rows, and learning from at most 50,000 of them, O(n d²); an answer takes
    O(n Σ_j K_j) and O(K_j K_parent(j)) more for each unknown cell.

    References
    ----------
    Chow & Liu, Approximating discrete probability distributions with dependence trees, IEEE Trans. IT 14 (1968).
    Meilă & Jordan, Learning with mixtures of trees, JMLR 1 (2000). Pearl, Probabilistic Reasoning in Intelligent
    Systems (1988), chapter 4.

    Examples
    --------
    >>> import posteriori as po
    >>> from posteriori.datasets import load_penguins
    >>> penguins = load_penguins()
    >>> model = po.JointModel().fit(penguins)
    >>> 0.4 < model.query("P(body_mass_g > 5000 | species = Gentoo)") < 0.6
    True
    >>> model.predict({"island": "Biscoe", "bill_length_mm": 49.0}, "species", method="joint").tolist()
    ['Gentoo']
    >>> set(model.sample(20, {"species": "Gentoo"}, random_state=0)["island"])
    {'Biscoe'}
    """

    members: Any = "auto"
    bins: Any = "auto"
    targets: Any = ()
    keep_rows: bool = True
    columns: Columns | None = None
    random_state: Any = 0
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "members": [StrOptions({"auto"}), list, tuple],
        "bins": [StrOptions({"auto"}), Interval(Integral, 2, None, closed="left")],
        "targets": [StrOptions({"all"}), list, tuple],
        "keep_rows": ["boolean"],
        "columns": [None, Columns],
        "random_state": ["random_state"],
        "n_jobs": N_JOBS,
    }
    subject = Subject.COLUMNS
    _keywords = OF_MIXTURES

    @property
    def _value(self) -> FittedJoint:
        return cast(FittedJoint, super()._value)

    # Learning ---------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn the distribution of all columns; a previous fit is discarded.

        Parameters
        ----------
        X : array-like, data frame or path (n, d)
            As in `NaiveBayes.fit`, with the columns that would be targets elsewhere.
        y : None
            Ignored; present for scikit-learn's API.
        sample_weight : array-like (n,), optional
            Weight of each row, ≥ 0.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            No column can be modelled; or as in `NaiveBayes.fit`.
        """
        self._validate_params()
        value = fit(self.recipe, X, sample_weight)
        self.fitted_ = replace(value, table=X)
        chosen = value.law.names if isinstance(self.targets, str) else self.targets
        for name in chosen:  # an error before the first pool, which takes longer
            self._column(name)
        for name in chosen:
            if self._asks_pool(self._column(name), "pool"):
                self._pool(name)
        if not self.keep_rows:
            self.fitted_ = replace(self._value, table=None)
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows: they are added to the counted rows, from all of which the model learns again.

        The cells and bins stay those of the first call, and pools are fitted again when they are asked for.
        """
        if not self._is_fitted:
            return self.fit(X, y, sample_weight)
        self.fitted_ = add(self._value, X, sample_weight)
        return self

    def unlearn(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Subtract rows from those that are counted, and learn again, as if the model had never seen them."""
        self.fitted_ = remove(self._value, X, sample_weight)
        return self

    # Asking -----------------------------------------------------------------------------------------------------

    def answer(self, X: Any, column: str | None = None, method: Method = "pool") -> Answer:
        """Return the probabilities of what a column may hold in each row, with what they mean.

        Several columns at once are several calls: ``{name: model.answer(rows, name) for name in names}``.

        Parameters
        ----------
        X, method
            As in `predict`.
        column : str
            The name of the column.

        Raises
        ------
        ValueError
            No column is named; or as in `predict`.
        """
        if column is None:
            raise ValueError("a joint model answers about any column; name one: answer(X, column)")
        j, law = self._column(column), self._value.law
        if not self._asks_pool(j, method):
            return law.answer(j, self._given_others(X, column))
        pool = self._pool(column)
        answer: Answer = pool.answer(self._named(X))
        if answer.is_number:
            return answer
        meaning = Categories.of(self._value.schema.columns[j])
        probability = np.zeros((len(answer), len(meaning)))
        probability[:, meaning.find(answer.labels)] = answer.probability
        return Answer(column, meaning, probability)

    def row_predictor(self, wanted: ResultColumns, column: str | None = None) -> RowPredictor:
        """Return the predictor of a column of rows part by part, given their other columns, by the joint model."""
        if column is None:
            raise ValueError("a joint model answers about any column; name one")
        value, law, j = self._value, self._value.law, self._column(column)
        reader, ranges = replace(value.rows, schema=replace(value.schema, target=column)), value.ranges
        if ranges is not None:  # of the others: the cell itself is not read
            own = np.arange(len(ranges.lowest)) == j
            lowest, highest = np.where(own, -np.inf, ranges.lowest), np.where(own, np.inf, ranges.highest)
            ranges = replace(ranges, lowest=lowest, highest=highest)
        meaning = law.grids[j].cells if j in law.grids else Categories.of(value.schema.columns[j])

        def answer(batch: Batch) -> Answer:
            return law.answer(j, law.of_others(batch, j))

        def source(X: Any) -> LabelledSource:
            return reader.source(X, self.n_jobs)

        return RowPredictor.of_answers(answer, meaning, source, reader.schema, ranges, wanted)

    def predict(self, X: Any, target: str, method: Method = "pool") -> Array:
        """Return the most probable category of a column in each row, (n,), or the mean of a column of numbers.

        Parameters
        ----------
        X : array-like, data frame or path
            Rows; columns that are absent are unknown, and so is the target, whose cells are not read.
        target : str
            The name of the column.
        method : {"pool", "joint"}, default "pool"
            "pool": by a pool of this column, which is fitted when it is first asked for. "joint": by the joint model.

        Returns
        -------
        ndarray (n,)

        Raises
        ------
        ValueError
            There is no such column, it is of another kind, or no rows are kept to fit a pool to.
        """
        j = self._column(target)
        if self._asks_pool(j, method):
            return np.asarray(self._pool(target).predict(self._named(X)))
        if j in self._value.law.grids:
            return self.predict_density(X, target, method).mean
        return np.asarray(self._categories(j)[self.predict_proba(X, target, method).argmax(axis=1)])

    def predict_proba(self, X: Any, target: str, method: Method = "pool") -> Array:
        """Return the probability of each category of a column in each row, (n, K), in the order of `categories`.

        Parameters
        ----------
        X, target, method
            As in `predict`.
        """
        j = self._column(target)
        if j in self._value.law.grids:
            raise ValueError(f"{target!r} holds numbers; predict_density(X, {target!r}) has their density")
        return self.answer(X, target, method).probability

    def predict_density(self, X: Any, target: str, method: Method = "pool") -> PredictiveDensity:
        """Return the density of a column of numbers in each row.

        Parameters
        ----------
        X, target, method
            As in `predict`.
        """
        j = self._column(target)
        if j not in self._value.law.grids:
            raise ValueError(f"{target!r} holds categories; predict_proba(X, {target!r}) has their probabilities")
        return self.answer(X, target, method).density

    def categories(self, target: str) -> list[Any]:
        """Return the categories of a column, in their order if they have one: that of `predict_proba`."""
        return list(Categories.of(self._value.schema.columns[self._column(target)]).labels)

    def query(self, question: str) -> Any:
        """Answer a question, such as ``P(income > 50000 | age in [30, 40], sex = F)``.

        Parameters
        ----------
        question : str
            ``P(asked | known)``, where each part is columns with =, !=, <, <=, >, >= and a value, ``in [low, high]``,
            ``in (a, b)``, or ``= low..high``; columns that are asked for may stand alone. A column of dates is called
            by its name, and its values are dates, such as 2024-12-31, or times, such as 2024-12-31 08:30; those of
            durations are seconds.

        Returns
        -------
        float, dict or PredictiveDensity
            The probability of what is stated. Of a column that stands alone, its distribution: the probability of each
            category, or the density of numbers; of several a dict of these. A probability is a
            `posteriori.Probability`: a float with its `standard_error`, and as `rows` the weight of the training rows
            that are as given.

        Notes
        -----
        An answer is the mean of the share among these training rows and of ten rows of the law. Rows that do not know
        what is asked for are filled in by the law. A model that was saved without rows answers by the law alone.

        Raises
        ------
        ValueError
            The question cannot be read, or what is known is impossible.
        """
        return answers.answer(self._value.law, question)

    def probability(self, event: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> float:
        """Return p(event | given), a float with `standard_error` and `rows`; see `query`.

        Parameters
        ----------
        event, given : mapping
            Findings by column: a value, a set of values, a range (low, high) with None for no end, or
            `posteriori.Not` of one. Values of a column of dates are dates, or their text.
        """
        return answers.probability(self._value.law, event, given or {})

    # Rows -------------------------------------------------------------------------------------------------------

    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,): lower for more unusual rows; missing cells are integrated out.

        A number beyond the tails of its column, which has no probability, counts as the rarest numbers of the column.
        """
        return self._source(X).with_width(1).map(self._value.log_density)

    def score(self, X: Any, y: Any = None) -> float:
        """Return the mean log p(x) in nats per row."""
        return float(self.score_samples(X).mean())

    def score_cells(self, X: Any) -> Array:
        """Return how strange each cell is given the other cells of its row, (n, d), in the order of the schema.

        −log p(x_j | the others) in nats, minus its expectation under the same distribution: near 0 for usual cells, and
        large for cells that do not fit. Numbers count by their bins. NaN where a cell is missing.
        """
        return answers.cell_scores(self._value.law, self._source(X))

    def sample(
        self,
        n: int = 1,
        given: Mapping[str, Any] | None = None,
        random_state: Any = None,
        *,
        no_copies: Any = False,
        respect_ranges: bool = True,
    ) -> Any:
        """Draw n rows, as a table of the same kind as the training table.

        They come from the trees alone: `query` and `probability` also count training rows, which could be copied.

        Parameters
        ----------
        n : int, default 1
        given : mapping, optional
            Findings by column, as in `probability`; no row is rejected.
        random_state : int, optional
        no_copies : bool, data frame, array or path, default False
            Whether drawn rows that equal a training row in all columns of the model are drawn again. A model that keeps
            no rows, such as one from a file, takes the table that holds them.
        respect_ranges : bool, default True
            Whether numbers stay between the lowest and the highest number of their column in the training rows; a
            finding that is all beyond them goes before that. False draws from the distribution itself, in which about
            a tenth of a row is beyond each end. Numbers are always on the grid of the training values, such as whole
            numbers or tenths.

        Returns
        -------
        table

        Raises
        ------
        ValueError
            What is given is impossible; the model keeps no rows, and no table is given; or the columns have so few
            values that nearly every row that can be drawn is a copy.

        See Also
        --------
        posteriori.compare_tables : How drawn rows differ from real ones.
        """
        value = self._value
        n = check_draw(n, len(value.schema.columns))
        copied: frozenset[bytes] = frozenset()
        if not isinstance(no_copies, bool) or no_copies:
            table = value.table if no_copies is True else no_copies
            if table is None:
                raise ValueError("the model keeps no rows to compare drawn rows with; give them: no_copies=TABLE")
            copied = keys_of_table(value, table)
        return answers.draw(value, n, given, generator(random_state), copied, respect_ranges)

    # Missing cells ----------------------------------------------------------------------------------------------

    def impute(  # type: ignore[override]
        self, X: Any, method: Method = "pool", *, draw: bool = False, random_state: Any = None
    ) -> Any:
        """Return a copy of a table with a value in place of each missing cell.

        Parameters
        ----------
        X : data frame or array (n, d)
        method : {"pool", "joint"}, default "pool"
            "pool": each column by a pool of its own, in which the known cells of the row count. "joint": by the joint
            model, which takes a fraction of the time.
        draw : bool, default False
            False: the most probable category, and the mean of a number. True: cells are drawn from their distribution
            given the known ones, together; several draws show how uncertain a result is (multiple imputation). The
            parameters of the joint model are drawn, too, if it counts its rows: it learns again from rows with random
            weights (a Bayesian bootstrap).
        random_state : int, optional
            Seed of the draws.

        Returns
        -------
        table
            Of the type of X: known cells, columns that the model does not have, types and order stay as they are.
            Numbers are on the grid of the training values, so that whole numbers stay whole, and in their range.

        Raises
        ------
        TypeError
            X is not a data frame, and not an array.
        ValueError
            As in `predict`.

        References
        ----------
        Rubin, Multiple Imputation for Nonresponse in Surveys (1987). van Buuren, Flexible Imputation of Missing Data
        (2018), chapter 4: draws by a model per column, one after another.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> penguins = load_penguins()
        >>> filled = po.JointModel().fit(penguins).impute(penguins, method="joint")
        >>> penguins["sex"].null_count(), filled["sex"].null_count()
        (11, 0)
        """
        filled = self._fillings(X, self._source(X), method, draw, generator(random_state))
        return imputation.filled_table(X, list(self._value.schema.given), filled)

    def missing(self, X: Any, method: Method = "pool") -> Any:
        """Return the most probable value of each missing cell and how sure it is, as a polars table of a line per cell.

        Parameters
        ----------
        X, method
            As in `impute`.

        Returns
        -------
        polars DataFrame
            ``row``, its position; ``column``; ``value``, the most probable category or the mean, as text;
            ``probability`` of the category; ``std`` of a number.
        """
        import polars as pl

        filled = self._fillings(X, self._source(X), method, False, generator(0))
        law, lines = self._value.law, []
        for name, one in filled.items():
            is_number = self._column(name) in law.grids
            for row, cell, sure in zip(one.rows.tolist(), one.values.tolist(), one.certainty.tolist(), strict=True):
                lines.append(
                    (
                        row,
                        name,
                        f"{cell:.6g}" if is_number else str(cell),
                        *((None, sure) if is_number else (sure, None)),
                    )
                )
        types = {"row": pl.Int64, "column": pl.String, "value": pl.String, "probability": pl.Float64, "std": pl.Float64}
        return pl.DataFrame(sorted(lines), schema=types, orient="row")

    def _fillings(
        self, X: Any, source: LabelledSource, method: Method, draw: bool, rng: np.random.Generator
    ) -> dict[str, imputation.Filled]:
        """Return the values of the missing cells of a table, whose rows are `source`, by column."""
        value, law = self._value, self._value.law
        names = [value.schema.names[j] for j in law.columns]
        given = list(value.schema.given)
        _check_method(method)
        gaps = {name: one for name, one in imputation.missing_cells(X, given).items() if one.any()}
        source.reduce(len)  # refuses cells that fit refuses, in complete rows too
        lacks = {name: one for name, one in gaps.items() if name in names}
        if left := [name for name in gaps if name not in names]:
            warn(f"the missing cells of {quote(left)} stay: the model does not predict dates, text or empty columns")
        if not lacks:
            return {}
        if method == "joint":
            places = {self._column(name): one for name, one in lacks.items()}
            if draw:
                other = redrawn(value, rng)
                found = imputation.draws_by_law(other, other.rows.source(X, self.n_jobs), places, rng)
            else:
                found = imputation.by_law(value, source, places)
            return {value.schema.names[j]: one for j, one in found.items()}
        filled, table = {}, X
        for name in sorted(lacks, key=lambda one: int(lacks[one].sum())):
            rows = np.flatnonzero(lacks[name])
            # Draws follow each other, so that those of a row agree; the best guess depends on known cells alone.
            filled[name] = self._by_pool(take_rows(table if draw else X, rows), name, rows, draw, rng)
            if draw:
                table = imputation.filled_table(table, given, {name: filled[name]})
        return filled

    def _by_pool(self, X: Any, target: str, rows: Array, draw: bool, rng: np.random.Generator) -> imputation.Filled:
        j = self._column(target)
        if j in self._value.law.grids:
            density = self.predict_density(X, target)
            numbers = (
                imputation.draw_numbers(self._value, j, density, rng)
                if draw
                else imputation.on_grid(self._value, j, density.mean)
            )
            return imputation.Filled(rows, numbers, density.std)
        probability = self.predict_proba(X, target)
        reached = np.cumsum(probability, axis=1)
        drawn = (rng.random(len(rows))[:, np.newaxis] * reached[:, -1:] >= reached).sum(axis=1)
        code = drawn if draw else probability.argmax(axis=1)
        return imputation.Filled(rows, self._categories(j)[code], probability[np.arange(len(rows)), code])

    @property
    def importance_(self) -> Any:
        """The share of the entropy of each column that each column alone removes, as a polars table.

        A line per column that is known, ``known``, and a column per column that it tells about; 1 where the one is a
        function of the other, and 0 where they are independent. Numbers count by their bins.
        """
        import polars as pl

        law = self._value.law
        names = [law.schema.names[j] for j in law.columns]
        cells = answers.explained(law)
        return pl.DataFrame({"known": names} | {name: cells[:, k] for k, name in enumerate(names)})

    @property
    def member_weights_(self) -> dict[str, float]:
        """The weight of each member."""
        return dict(self._value.weights)

    def _given_others(self, X: Any, target: str) -> Array:
        """Return p(x_j | the other cells) of the codes of a column, (n, K); rows may lack it."""
        value = self._value
        rows = replace(value.rows, schema=replace(value.schema, target=target))
        return answers.given_others(value.law, rows.source(X, self.n_jobs), self._column(target))

    # Pools ------------------------------------------------------------------------------------------------------

    def _categories(self, j: int) -> Array:
        """Return the categories of a column as an array, in their order if they have one."""
        column = self._value.schema.columns[j]
        return np.asarray(write_column(column)[list(column.order) or slice(None)])

    def _column(self, name: str) -> int:
        return self._value.law.place(name)

    def _asks_pool(self, j: int, method: str) -> bool:
        """Return whether a pool answers: a column of one value needs none, and beside empty columns none can learn."""
        _check_method(method)
        schema = self._value.schema
        has_others = any(k != j and not schema.columns[k].has_no_kind for k in schema.modelled)
        return method == "pool" and self._value.law.sizes[j] > 1 and has_others

    def _fit_pools_of_gaps(self, X: Any) -> None:
        """Fit the pools of the columns that some of the training rows lack."""
        columns = self._value.law.columns
        known = self._source(X).with_width(len(columns)).map(lambda batch: known_cells(batch)[:, list(columns)])
        for k, j in enumerate(columns):
            if not known[:, k].all() and self._asks_pool(j, "pool"):
                self._pool(self._value.schema.names[j])

    def _pool(self, target: str) -> Any:
        """Return the pool of a column, fitted to the rows that know it."""
        value = self._value
        if target not in value.pools:
            value = replace(value, pools={**value.pools, target: self._fitted_pool(target)})
            self.fitted_ = value
        return estimator_of(value.pools[target])

    def _fitted_pool(self, target: str) -> FittedValue:
        value, j = self._value, self._column(target)
        if value.table is None:
            raise ValueError(
                f'the model keeps no rows to fit a pool of {target!r} to; use method="joint", or fit a '
                f"JointModel with targets=[{target!r}], whose pools are saved"
            )
        spec = REGRESSOR if j in value.law.grids else find_model("pool")
        made = spec.make(random_state=self.random_state, n_jobs=self.n_jobs, columns=self.columns)
        fitted: FittedValue = made.fit(self._rows_with(target, j), target).fitted_
        return fitted.without_rows()

    def _rows_with(self, target: str, j: int) -> Any:
        """Return the training rows that know a column."""
        X = self._value.table
        if isinstance(X, str) or hasattr(X, "__fspath__"):
            X = scan(X)
        if isinstance(X, Scan):
            return X.narrowed(list(X.names), target)
        known = self._source(X).with_width(1).map(lambda batch: answers.is_known(batch, j))
        return self._named(X if known.all() else take_rows(X, np.flatnonzero(known)))

    def _named(self, X: Any) -> Any:
        """Return rows with the names of the columns, by which a pool finds its target."""
        schema = self._value.schema
        if schema.named and not isinstance(X, np.ndarray):
            return X
        import polars as pl

        return pl.DataFrame(imputation.array_of(X), schema=list(schema.names), orient="row", strict=False)


def _check_method(method: str) -> None:
    if method not in ("pool", "joint"):
        raise ValueError(f'method is {method!r}; it is "pool" or "joint"')
