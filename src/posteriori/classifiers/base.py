"""What every generative classifier does, whatever its densities."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from sklearn.base import ClassifierMixin
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.accuracy import accuracy_of
from posteriori.classifiers.importance import MeasuresImportance
from posteriori.classifiers.model_estimator import ModelEstimator
from posteriori.classifiers.partition_methods import supports_partitions
from posteriori.classifiers.removal import remove_rows
from posteriori.classifiers.validation import (
    components_of,
    generator,
    labels_to_learn,
    make_label_model,
    reject_quantity,
    require_in_memory,
    warn_of_empty_columns,
    warn_of_few_rows,
)
from posteriori.draws import check_draw
from posteriori.explain import Explanation
from posteriori.invariants import check_equal, check_numbers, check_share
from posteriori.learning.cut_points import binned_schema, bins_of
from posteriori.learning.em import EMOptions, FitResult, carry_over_structure, learn, unrefined, warn_not_converged
from posteriori.learning.fit import Collect
from posteriori.learning.held_out import held_out_weight
from posteriori.learning.importance import Predictor
from posteriori.learning.retyping import retyped, with_missing_cuts
from posteriori.model import Block, FactorWeights, GenerativeModel, Prior, log_sum
from posteriori.sources import TableSource, source_of
from posteriori.statistics import JointStatistics
from posteriori.tables import (
    Batch,
    Column,
    LabelModel,
    Labels,
    PartialLabels,
    Scan,
    Schema,
    Table,
    check_weights,
    infer_schema,
    read_labels,
    read_table,
    read_teaching_labels,
)
from posteriori.tables.lazy import LazyTable
from posteriori.tables.objects import is_missing
from posteriori.tables.schema import UnseenCategoryError, categorical_column
from posteriori.tables.writing import decode, write_column, write_table
from posteriori.typing import Array

if TYPE_CHECKING:
    from posteriori.networks import BayesianNetwork


class GenerativeEstimator(ClassifierMixin, MeasuresImportance, ModelEstimator):
    """A prior times class-conditional densities, behind scikit-learn's methods.

    A model says which density makes which columns (`_blocks`) and what its prior is (`_prior`); reading, folding,
    estimating, predicting, drawing and explaining are the same for all.
    """

    priors: Any
    unlabelled: Any = "error"
    unlabelled_weight: Any = 1.0
    components: Any = None
    label_noise: Any = None
    weights: Any = None
    transduction_: Array
    label_confusion_: Array
    unlabelled_weight_: float

    @abstractmethod
    def _prior(self, classes: Column) -> Prior:
        """Return the class prior."""

    @abstractmethod
    def _em_options(self) -> EMOptions:
        """Return when EM ends."""

    def _check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError, before it is taken, if the model would take more memory than allowed."""

    @abstractmethod
    def _warn_of_estimates(self, model: GenerativeModel, statistics: JointStatistics) -> None:
        """Warn of estimates that the rows did not determine."""

    # Learning ---------------------------------------------------------------------------------------------------

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Learn from labelled rows, forgetting what was learned before.

        Parameters
        ----------
        X : array-like or data frame (n, d)
            NumPy, a list of rows, pandas, polars, pyarrow or anything that narwhals reads. NaN, None and null are
            missing cells. Strings, booleans and categories are categorical, other numbers continuous. Or rows that stay
            where they are: files by `posteriori.scan`, a DuckDB query by `posteriori.scan_sql`, a Dask DataFrame or
            array, a Spark DataFrame. The model is that of the same rows in memory.
        y : array-like (n,) or str; of files that were scanned with a target, it may be left out
            The label of each row, or the name of the column of X that holds them. Where the parameter `unlabelled`
            says so, NaN, None and null are labels to be inferred, and their rows teach through EM. Or a table of
            booleans (n, C), a column a class: which classes each row may be of. Whole numbers that look like a
            quantity are refused: more than 20 of them, with fewer than 100 rows each in the mean, and neither 0, 1, …,
            K − 1 nor 1, 2, …, K. `posteriori.quantile_classes` cuts them into classes; as strings they are classes.
        sample_weight : array-like (n,), optional
            The weight of each row, ≥ 0: a row of weight k counts as k rows.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            A label is missing, a cell is infinite or outside what its distribution can produce, columns share a
            name, a weight is negative: the message names the place and what to do.
        TypeError
            X is no table, or a column holds neither numbers, strings nor booleans.
        """
        return self._learn(X, y, None, sample_weight, first=True, last=True)

    def partial_fit(self, X: Any, y: Any = None, classes: Any = None, sample_weight: Any = None) -> Self:
        """Learn from more rows; after the last call the model is what one fit of all rows would give.

        Parameters
        ----------
        X, y, sample_weight
            As in `fit`. A category met for the first time extends the model, and the first values of a column that
            had none so far decide whether it is continuous or categorical; the cut points of binned columns stay
            what they were on the first call, so let that one see many rows.
        classes : array-like, optional
            All classes there will be; may be given on the first call. Where it is not, a class met for the first
            time extends the model, and where it is, a label beyond it is an error.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            As in `fit`; or a parameter takes a second look at rows that may no longer be at hand.
        """
        first = not hasattr(self, "model_")
        if not first and not hasattr(self, "statistics_"):
            raise ValueError(
                "this model was built from parameters, which say nothing of how many rows they stand for; use fit"
            )
        return self._learn(X, y, classes, sample_weight, first, last=False)

    def forget(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Take rows out again of what was learned, as if they had never been seen.

        Parameters
        ----------
        X, y, sample_weight : as in `fit`
            Rows that the model has learned from, by `fit` or `partial_fit`, with weights of no more than they had
            then. Cut points, and the parents of `KDependenceBayes`, stay what they are, as `partial_fit` keeps them. So
            do categories and classes of which no row is left, with a count of 0, as classes declared to `partial_fit`
            have before their first row; a fit of the other rows would not know them.

        Returns
        -------
        self

        Raises
        ------
        ValueError
            The rows cannot be among those that the model has learned from: a class, a category or a combination of
            categories has less weight than is to be taken out, a number lies too far from the others; the message
            names the class and the column. Or nothing would be left; or the model was learned by EM, with
            ``weights="conditional"``, or by a second look at the rows (Ledoit & Wolf), and what it keeps is not what
            single rows add up to. The model is what it was.

        Notes
        -----
        Counts of rows of whole weight are those of the other rows to the last digit. Means and scatters are taken
        apart by the update of Chan, Golub & LeVeque backwards, and agree to 1e-9 of what the column varied before, at
        any offset; a warning says where it varies so much less afterwards that few digits are left.

        Not every row that was never seen can be told: one that is like those seen is taken out as if it were one.

        Cost: one pass over the rows to forget, and estimating once.

        Examples
        --------
        >>> import posteriori as po
        >>> X, y = [["u"], ["u"], ["v"], ["v"]], ["a", "a", "a", "b"]
        >>> model = po.NaiveBayes().fit(X, y)
        >>> model.forget([["v"]], ["a"]).class_count_
        array([2., 1.])
        """
        return remove_rows(self, X, y, sample_weight)

    def _learn(self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool, last: bool) -> Self:
        """Learn from rows; first and last say whether there were none before, and none will follow."""
        head_sample = X.head_sample() if first and isinstance(X, Scan) else None
        try:
            source, target, blocks, statistics = self._collect_statistics(
                X if head_sample is None else head_sample, y, classes, sample_weight, first, last
            )
        except UnseenCategoryError:  # there are more categories than the first rows show
            if head_sample is None:
                raise
            source, target, blocks, statistics = self._collect_statistics(X, y, classes, sample_weight, first, last)
        past = None if first else self._past_statistics(source.schema, target, blocks)
        learned = learn(source, blocks, self._component_prior(target), past, statistics, self._em_options())
        weighed = replace(learned, model=self._weighed(learned, source))
        self._store_fit(weighed, target, source.unlabelled_weight)
        if first:
            self._classes_closed = classes is not None
            self.__dict__.pop("target_cuts_", None)  # of an earlier target
        self._transduce(source.with_label_model(learned.label_model))
        return self

    def _collect_statistics(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool, last: bool
    ) -> tuple[TableSource, Column, tuple[Block, ...], JointStatistics]:
        """Return rows to learn from, their classes, which density is to make which columns, and what these need."""
        source, target = self._read_training_rows(X, y, classes, sample_weight, first, last)
        blocks = self._blocks(source.schema)
        wanted = unrefined(blocks)
        if wanted and not last:
            raise ValueError(f"{wanted[0]} looks at all rows twice, and partial_fit sees each once; use fit")
        if wanted and source.label_model is not None:
            raise ValueError(
                f"{wanted[0]} looks twice at rows whose label is sure, and with components, label_noise or a "
                "mask none is; leave one of them out"
            )
        if self.weights is not None and source.label_model is not None:
            raise ValueError(
                'weights="conditional" leaves each row out of its class, and with components, label_noise or a mask '
                "none is sure; leave one of them out"
            )
        if self.weights is not None and not last:
            raise ValueError('weights="conditional" takes all rows at once, and partial_fit sees each once; use fit')
        if first:
            source = source.with_schema(binned_schema(source.with_label_model(None), bins_of(blocks), self.n_jobs))
        else:
            source = source.with_schema(with_missing_cuts(source.schema, blocks))
            blocks = carry_over_structure(blocks, self.model_.blocks)
            self._past_statistics(source.schema, target, blocks)  # an error before the rows are read
        self._check_size(source.schema, target)
        return source, target, blocks, source.reduce(Collect(blocks))

    def _component_prior(self, target: Column) -> Prior:
        """Return the prior of the components of all classes."""
        return replace(self._prior(target), of_class=components_of(self.components, target))

    def _weighed(
        self,
        learned: FitResult,
        source: TableSource,
        to_observed_codes: Callable[[Batch], Batch] | None = None,
        start: FactorWeights | None = None,
    ) -> GenerativeModel:
        """Return what was learned from the rows of a source, with weights of its factors if they are wanted."""
        model = learned.model
        if self.weights is None:
            return model
        from posteriori.learning.weights import learn_weights

        return replace(model, weights=learn_weights(source, model, learned.statistics, to_observed_codes, start))

    def _transduce(self, source: TableSource) -> None:
        """Set the labels of the rows that were learned from, those in doubt as the model infers them."""
        if hasattr(self, "transduction_"):
            del self.transduction_
        if isinstance(source.table, LazyTable):  # the labels of all rows might not fit into memory; predict says them
            return
        if source.labels is None or not (source.labels.may_miss or self.label_noise is not None):
            return
        model = self.model_
        source = replace(source, schema=model.schema)

        def infer(batch: Batch) -> Array:
            with np.errstate(divide="ignore"):
                return model.by_class(np.log(model.responsibilities(batch)[0])).argmax(axis=1)

        self.transduction_ = self.classes_[source.map(infer)]

    def _read_training_rows(
        self, X: Any, y: Any, classes: Any, sample_weight: Any, first: bool, last: bool = True
    ) -> tuple[TableSource, Column]:
        """Return rows to learn from as a source, and the classes; first says to infer the schema from these rows."""
        self._validate_params()
        table = read_table(X)
        labels = labels_to_learn(read_teaching_labels(y, table), self.unlabelled, self._learns_unlabelled, last)
        columns = [j for j in range(len(table.names)) if not isinstance(labels, Labels) or j != labels.target_place]
        if not columns:
            raise ValueError(f"X has no column beside the target {labels.name!r}; give at least one feature")
        positions: Sequence[int]
        if first:
            positions = columns
            chosen = self._categorical([table.names[j] for j in columns])
            schema = infer_schema(table, columns, [columns[j] for j in chosen], labels.name)
            target = self._declared_classes(classes, labels)
        else:
            positions = self._places(table, target=labels.name)
            schema = self._extended_schema(table, positions)
            target = self._extended_classes(classes, labels)
        weight = check_weights(sample_weight, table.n_rows)
        share = self._share_of_unlabelled(X, y, weight, labels, target)
        label_model = self._label_model(target, isinstance(labels, PartialLabels))
        if label_model is not None and not last:
            raise ValueError(
                "components and label_noise take EM over all rows, and partial_fit sees each once; use fit"
            )
        rows = source_of(table, schema, positions, labels, target, weight, None, self.n_jobs, share, label_model)
        return rows, target

    @property
    def _learns_unlabelled(self) -> bool:
        """Whether the user of the estimator may let rows without label teach."""
        return "unlabelled" in self.get_params()

    def _share_of_unlabelled(
        self, X: Any, y: Any, weight: Array | None, labels: Labels | PartialLabels, target: Column
    ) -> float:
        """Return the weight of a row without label, which held-out rows choose where that is wanted."""
        if self.unlabelled_weight != "held_out":
            return float(self.unlabelled_weight)
        if not labels.may_miss:
            return 1.0
        return held_out_weight(self, X, y, weight, labels.components(target, slice(0, read_table(X).n_rows)), target)

    def _label_model(self, target: Column, partial: bool) -> LabelModel | None:
        """Return what labels say of components, where that is not simply which one made the row."""
        return make_label_model(self.label_noise, components_of(self.components, target), partial, target)

    def _store_fit(self, learned: FitResult, target: Column, unlabelled_weight: float = 1.0) -> Self:
        self._keep(learned, target, unlabelled_weight)
        warn_not_converged(learned, self._em_options(), stacklevel=5)
        if learned.model.of_class:
            warn_of_few_rows(learned.statistics.weight, stacklevel=5)
        warn_of_empty_columns(learned.model, learned.statistics)
        self._warn_of_estimates(learned.model, learned.statistics)
        return self

    def _keep(self, learned: FitResult, target: Column, unlabelled_weight: float = 1.0) -> None:
        """Set what was learned, without a word on how well the rows determined it."""
        self.statistics_ = learned.statistics
        self.log_likelihood_trace_ = np.array(learned.trace)
        if "unlabelled_weight" in self.get_params():
            self.unlabelled_weight_ = unlabelled_weight
        self._set_model(learned.model, target)
        if hasattr(self, "label_confusion_"):
            del self.label_confusion_
        if learned.label_model is not None and learned.label_model.confusion is not None:
            self.label_confusion_ = learned.label_model.confusion

    def _check_fitted(self) -> None:
        super()._check_fitted()
        self._check_importance(self.n_features_in_)
        if hasattr(self, "target_cuts_"):
            check_equal("the number of classes", len(self.target_cuts_.cuts) + 1, len(self.target_.categories))
        if hasattr(self, "statistics_"):
            check_equal("the parameter components", self.model_.of_class, components_of(self.components, self.target_))
        if hasattr(self, "label_confusion_"):
            n_classes = len(self.classes_)
            check_numbers("the confusion of labels", self.label_confusion_, (n_classes, n_classes), 0.0, 1.0 + 1e-6)
        check_share("the weight of rows without label", getattr(self, "unlabelled_weight_", 1.0))

    def _set_model(self, model: GenerativeModel, target: Column) -> Self:
        self._forget_importance()
        self._set_fitted_attributes(model, target)
        self.classes_ = write_column(target)
        return self

    def _past_statistics(self, schema: Schema, target: Column, blocks: tuple[Block, ...]) -> JointStatistics:
        old = self.model_
        statistics = retyped(self.statistics_, old.schema, old.blocks, schema, blocks)
        if schema is old.schema and target is self.target_:
            return statistics
        moves = [
            [schema.columns[j].places_in(old.schema.columns[j]) for j in block.coded(schema)] or None
            for block in blocks
        ]
        components = [self.target_.lookup.get(label, 0) - 1 for label in target.categories]
        return statistics.reindexed(components, moves)

    # The columns and the classes --------------------------------------------------------------------------------

    def _extended_schema(self, table: Table, positions: Sequence[int]) -> Schema:
        schema = self.model_.schema
        named = self._categorical(schema.names)
        categorical = [
            position
            for j, (position, column) in enumerate(zip(positions, schema.columns, strict=True))
            if (j in named if column.has_no_kind else column.kind == "categorical")
        ]
        return schema.extended(infer_schema(table, positions, categorical), mixed=named)

    def _declared_classes(self, classes: Any, labels: Labels | PartialLabels) -> Column:
        if classes is None:
            found = labels.infer()
            if not isinstance(labels, PartialLabels):
                reject_quantity(found, labels)
            return found
        if isinstance(classes, str) or not len(classes):
            raise ValueError(f"classes is {classes!r}; list the labels")
        if any(map(is_missing, classes)):
            raise ValueError("classes holds a missing label; leave it out")
        column = read_labels(classes, read_table(np.zeros((len(classes), 1)))).infer()
        return categorical_column(column.name, column.categories, column.dtype)

    def _extended_classes(self, classes: Any, labels: Labels | PartialLabels) -> Column:
        if classes is not None:
            declared = self._declared_classes(classes, labels)
            if declared.categories != self.target_.categories:
                raise ValueError(
                    f"classes={list(classes)!r} is not what it was on the first call: {list(self.target_.categories)}"
                )
        return self.target_ if self._classes_closed else self.target_.extended(labels.infer())

    # Predicting -------------------------------------------------------------------------------------------------

    @supports_partitions("prediction")
    def predict(self, X: Any) -> Array:
        """Return the most probable class of each row, (n,)."""
        best = self._map(X, lambda model: lambda batch: most_probable(model.scores(batch)))
        best[self._warn_of_impossible(best < 0)] = self.model_.class_log_prior.argmax()
        return self.classes_[best]

    @supports_partitions("probability")
    def predict_proba(self, X: Any) -> Array:
        """Return p(y | x), (n, C), classes in the order of `classes_`; each row sums to 1.

        A row that no class can produce (p(x) = 0, which takes ``alpha=0``) is NaN, with a warning.
        """
        posterior = self._map(X, lambda model: model.posterior)
        self._warn_of_impossible(np.isnan(posterior[:, 0]))
        return posterior

    @supports_partitions("log_probability")
    def predict_log_proba(self, X: Any) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        scores = self._map(X, lambda model: model.scores)
        with np.errstate(invalid="ignore"):
            scores -= log_sum(scores)[:, np.newaxis]
        self._warn_of_impossible(np.isnan(scores[:, 0]))
        return scores

    @supports_partitions("joint_log_probability")
    def predict_joint_log_proba(self, X: Any) -> Array:
        """Return log p(x, y) = log p(y) + log p(x | y) in nats, (n, C), with missing cells integrated out."""
        return self._map(X, lambda model: model.log_joint)

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the accuracy of `predict(X)`; y may be the name of a column of X."""
        model = self.model_
        fallback = int(model.class_log_prior.argmax())
        found = accuracy_of(
            self._source(X), y, sample_weight, self.target_, lambda batch: most_probable(model.scores(batch)), fallback
        )
        if found.impossible:
            warn_of_impossible(found.first, found.impossible)
        return found.share

    def explain(self, X: Any) -> Explanation:
        """Return every prediction as an exact sum: log prior plus one log factor a feature, per class.

        Where features depend on each other given the class, each factor is that of a feature given those above it.
        Where factors are weighted, each is times its weight, and the biases stand for the log prior: a sum that is
        exact for log p(y | x), up to a number that is the same for all classes, and no longer log p(x, y).

        Parameters
        ----------
        X : array-like or data frame (n, d)

        Returns
        -------
        Explanation
            Holds n·C·d numbers: meant for some rows, not for millions.
        """
        source = self._source(X)
        require_in_memory(source.table, "explain")
        model = self.model_
        rows: dict[int, Array] = {}

        def factors(batch: Batch) -> Array:
            rows[batch.start] = decode(batch)
            factors = model.log_factors(batch)
            return factors if model.weights is None else model.weights.weighted(factors)

        log_factors = source.map(factors)
        values = np.concatenate([rows[start] for start in sorted(rows)])
        return Explanation(
            self.classes_, model.schema.names, values, model.bias, log_factors, model.given, model.weights is not None
        )

    def _warn_of_impossible(self, impossible: Array) -> Array:
        if impossible.any():
            warn_of_impossible(int(impossible.argmax()), int(impossible.sum()), stacklevel=4)
        return impossible

    # Drawing ----------------------------------------------------------------------------------------------------

    def sample(
        self, n: int = 1, y: Any = None, random_state: Any = None, respect_ranges: bool = True
    ) -> tuple[Any, Array]:
        """Draw rows from the model: a class from the prior, then every column from its distribution.

        Parameters
        ----------
        n : int, default 1
        y : label or array-like (n,), optional
            The class of all rows, or of each; default: drawn from the prior.
        random_state : int, RandomState, Generator or None
        respect_ranges : bool, default True
            Whether numbers stay within what the training rows held: between the lowest and the highest number of their
            column, and whole where all of these were. False draws from the density itself, which knows no bounds. A
            model that knows no ranges (`from_parameters`, a model file without them) always does so.

        Returns
        -------
        X : table (n, d)
            Of the type, and with the kinds of columns, that the model was trained on. No cell is missing, unless the
            model says how often cells are (``missing="informative"``).
        y : ndarray (n,)

        Raises
        ------
        ValueError
            n is no whole number from 1 on, or is too large; a label of y is no class.

        Notes
        -----
        Within the ranges each row is drawn from the model's density given its class and component, truncated to the
        ranges: what falls outside is drawn again, never moved to a bound. The probabilities of classes and components
        stay what they are. A whole number is a rounded draw from the density between lowest − 1/2 and highest + 1/2.
        Columns that depend on each other are drawn again as whole rows; of a row rejected 50 times, one column after
        another is truncated given those before it, which is close to the truncated density and not equal to it.
        """
        check_is_fitted(self, "model_")
        n = check_draw(n, len(self.model_.schema.columns))
        columns, labels = self._draw(n, y, generator(random_state), respect_ranges)
        return write_table(self.model_.schema, columns), labels

    def _draw(self, n: int, y: Any, rng: np.random.Generator, respect_ranges: bool) -> tuple[list[Array], Array]:
        """Return columns of numbers and codes, in the order of the schema, and the class of each row."""
        if y is None:
            component = rng.choice(len(self.classes_), size=n, p=np.exp(self.model_.class_log_prior))
        else:
            wanted = np.broadcast_to(np.asarray(y), (n,)).tolist()
            positions = [self.target_.lookup.get(label, 0) - 1 for label in wanted]
            if min(positions) < 0:
                stranger = wanted[positions.index(-1)]
                raise ValueError(f"{stranger!r} is not a class; the classes are {self.classes_.tolist()}")
            component = np.array(positions)
        ranges = self._ranges if respect_ranges else None
        columns = self.model_.sample(self.model_.draw_components(component, rng), rng, ranges)
        return columns, self.classes_[component]

    def to_network(self) -> BayesianNetwork:
        """Return the same joint distribution as a Bayesian network, the class a parent of every feature.

        Raises
        ------
        ValueError
            A column holds numbers, or the model is no network: naive Bayes, `TreeAugmentedNaiveBayes` and
            `KDependenceBayes` of categories are.
        """
        from posteriori.networks.conversion import network_of

        check_is_fitted(self, "model_")
        return network_of(self.model_, self.target_)

    def to_sql(self, table: str = "rows", dialect: str = "duckdb", columns: Sequence[str] | None = None) -> str:
        """Return one SELECT that scores the rows of a table where they are, in a database.

        For naive Bayes, Gaussian discriminants and trees (TAN, Chow-Liu): what it gives is `predict_log_proba`,
        up to rounding, missing cells integrated out. NULL and NaN are missing, and so is a category unseen in training.

        Parameters
        ----------
        table : str, default "rows"
            What stands after FROM, in the dialect: a name, a SELECT in parentheses, ``read_parquet('…')``. Its columns
            are found by the exact names that they had in training; x0, x1, … where they had none.
        dialect : str, default "duckdb"
            One that sqlglot writes: "sqlite", "postgres", "mysql", "bigquery", "snowflake", "spark", "tsql" and others.
        columns : sequence of str, optional
            Those of the table that are handed on, as a key; default: the features.

        Returns
        -------
        str
            A SELECT of these columns, ``prediction``, and p(y | x), ``p_CLASS``, and log p(y | x) in nats,
            ``log_p_CLASS``, of each class. In a row that no class can produce p is NULL and the prediction that of the
            prior; in one that `predict` refuses, for it holds an infinite number or one that a distribution cannot
            produce, the prediction is NULL too. A class that cannot have made a row has log p −∞; −1e300 where the
            database knows no infinity.

        Raises
        ------
        ValueError
            There is no such dialect; no SELECT is written for a density of the model, or it would hold more than
            200,000 expressions; the table cannot stand after FROM; two columns of the result would have one name.
        ImportError
            sqlglot is absent: ``pip install 'posteriori[sql]'``.

        Notes
        -----
        Strings are compared as the database does: under a collation that ignores case so is their case. SQLite is to be
        3.35 or newer, with its mathematical functions; SQL Server 2022 or newer. A covariance
        takes d³/6 short expressions for rows that lack cells, at most 200,000 (about 100 columns), and a tree about as
        many literals as it has parameters, twice that where inner cells may be missing.

        Examples
        --------
        >>> import sqlite3, pandas as pd, posteriori as po
        >>> rows = pd.DataFrame({"id": [1, 2, 3, 4], "height": [1.0, 2.0, 8.0, 9.0]})
        >>> model = po.NaiveBayes().fit(rows[["height"]], ["low", "low", "high", "high"])
        >>> database = sqlite3.connect(":memory:")
        >>> _ = database.execute("CREATE TABLE birds (id, height)")
        >>> _ = database.executemany("INSERT INTO birds VALUES (?, ?)", [(7, 1.5), (8, None)])
        >>> select = model.to_sql("birds", "sqlite", columns=["id"])
        >>> database.execute(f"SELECT id, prediction, round(p_low, 3) FROM ({select})").fetchall()
        [(7, 'low', 1.0), (8, 'high', 0.5)]
        """
        check_is_fitted(self, "model_")
        try:
            from posteriori.sql import select_posterior
        except ModuleNotFoundError as error:
            if error.name != "sqlglot":
                raise
            raise ImportError("to_sql needs sqlglot: pip install 'posteriori[sql]'") from error
        labels = self.classes_.tolist()
        return select_posterior(self.model_, labels, table, dialect, columns, type(self).__name__)

    # Fitted values ----------------------------------------------------------------------------------------------

    def _predictor(self) -> tuple[Predictor, Array]:
        return Predictor((self._fitted,)), np.ones(1)

    @property
    def class_log_prior_(self) -> Array:
        """Log p(y) in nats, (C,)."""
        return self._fitted.class_log_prior

    @property
    def class_prior_(self) -> Array:
        """p(y), (C,)."""
        return np.exp(self._fitted.class_log_prior)

    @property
    def factor_weights_(self) -> Array:
        """The weight of each feature's log factor, (d,), ≥ 0, where they are learned."""
        return self._factor_weights.weight

    @property
    def class_bias_(self) -> Array:
        """What stands for the log prior where factors are weighted, in nats (C,)."""
        return self._factor_weights.bias

    @property
    def _factor_weights(self) -> FactorWeights:
        if self._fitted.weights is None:
            raise AttributeError(f'this {type(self).__name__} weighs no factors; fit it with weights="conditional"')
        return self._fitted.weights

    @property
    def class_count_(self) -> Array:
        """The weight of the rows of each class, (C,)."""
        if not hasattr(self, "statistics_"):
            raise AttributeError(f"this {type(self).__name__} has not counted any rows")
        return np.bincount(self._fitted.of_class or range(len(self.classes_)), self.statistics_.weight)

    @property
    def component_classes_(self) -> Array:
        """The class of each component, (Z,), in the order of the rows of fitted parameters."""
        return self.classes_[list(self._fitted.of_class or range(len(self.classes_)))]


def most_probable(scores: Array) -> Array:
    """Return the place of the largest of each row's scores, (n,), −1 where all are −inf."""
    best = scores.argmax(axis=1)
    best[np.isneginf(scores[np.arange(len(best)), best])] = -1
    return best


def warn_of_impossible(first: int, count: int, stacklevel: int = 3) -> None:
    """Warn of rows that no class can produce, by the number of the first."""
    warnings.warn(
        f"row {first}{f' and {count - 1} more' if count > 1 else ''} cannot be produced by any "
        "class, so its posterior is undefined (NaN; predict falls back on the prior); set alpha > 0, or "
        "correct a number that lies absurdly far from all others",
        UserWarning,
        stacklevel=stacklevel,
    )
