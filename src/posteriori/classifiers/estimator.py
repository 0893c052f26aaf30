"""Base of all estimators: parameters, and what follows from a fitted value, of a model or of a pool."""

from __future__ import annotations

from abc import ABC
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, ClassVar, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted

from posteriori.classifiers.keywords import IMPUTE, OF_CLASSIFIERS, SAVE, TO_ONNX
from posteriori.classifiers.notebooks import estimator_html
from posteriori.classifiers.partitions import supports_partitions
from posteriori.fitting.fitted import Fitted, FittedClasses, FittedValue
from posteriori.fitting.parameter_groups import (
    EM,
    GROUPS,
    Columns,
    Labels,
    set_grouped_params,
    validate_grouped_params,
)
from posteriori.fitting.recipe import Recipe
from posteriori.model import GenerativeModel, Posterior
from posteriori.model.answer import Answer
from posteriori.reading.opening import takes_tables
from posteriori.registry import Subject
from posteriori.scoring.decisions import Decision
from posteriori.scoring.files import ResultColumns, RowPredictor
from posteriori.scoring.out_of_range import sentences_outside
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.support.keywords import Elsewhere, Wanted, explain_unknown_keywords
from posteriori.support.typing import Array
from posteriori.tables import Column, Schema


class Estimator(BaseEstimator, ABC):
    """Parameters, which `recipe` holds, and one value that a fit learned, `fitted_`.

    Columns of rows to predict are matched by name where both tables have names. One that is absent is unknown in every
    row, with a warning; a table with none of the columns, or with another one of nearly the same name, is refused.
    """

    n_jobs: int | None
    em: EM | None = None  # None where it is no parameter of the estimator
    labels: Labels | None = None
    columns: Columns | None = None
    set_params = set_grouped_params
    _validate_params = validate_grouped_params
    save = Elsewhere(SAVE)
    impute = Elsewhere(IMPUTE)
    to_onnx: Any = Elsewhere(TO_ONNX)
    _keywords: ClassVar[Wanted] = OF_CLASSIFIERS
    """Keywords of other libraries, and what does the same here."""

    reads_counts: ClassVar[bool] = False
    """Whether the model reads columns of counts; to others a sparse block is an error, except as members of a pool."""
    takes_two_values: ClassVar[bool] = True
    """Whether columns of two whole numbers are categories by default (`posteriori.fitting.two_values`)."""

    _keeps_sums: ClassVar[bool] = True
    """Whether what is learned are sums over rows, unless EM learned it."""

    fitted_: FittedValue

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if "__init__" in vars(cls):
            cls.__init__ = explain_unknown_keywords(cls.__init__, GROUPS, cls._keywords)  # type: ignore[method-assign]

    # Parameters -------------------------------------------------------------------------------------------------

    @property
    def recipe(self) -> Recipe:
        """The parameters as they are now, as a value."""
        return Recipe.of(self)

    def _check_size(self, schema: Schema, target: Column) -> None:
        """Raise ValueError, before memory is allocated, if the model would take more than allowed."""

    # The fitted value -------------------------------------------------------------------------------------------

    @property
    def _value(self) -> FittedValue:
        """The result of the fit; NotFittedError, which is an AttributeError too, before one."""
        try:
            return cast(FittedValue, self.__dict__["fitted_"])
        except KeyError:
            raise NotFittedError(f"this {type(self).__name__} is not fitted yet; call fit first") from None

    @property
    def _is_fitted(self) -> bool:
        return "fitted_" in self.__dict__

    def _part(self, value: Any, what: str) -> Any:
        """Return a part of the fitted value; AttributeError where there is none."""
        if value is None:
            raise AttributeError(f"this {type(self).__name__} {what}")
        return value

    @property
    def schema_(self) -> Schema:
        """The columns: names, kinds and categories."""
        return self._value.schema

    @property
    def target_(self) -> Column:
        """The classes, the components of a mixture, or the numbers that are predicted, as a column."""
        return self._value.target

    @property
    def n_parameters_(self) -> int:
        """Number of free parameters; of a pool those of the members, one weight per member, and C − 1 biases."""
        return self._value.n_parameters

    @property
    def n_features_in_(self) -> int:
        """Number of features."""
        n_features: int = self._value.schema.n_features
        return n_features

    @property
    def feature_names_in_(self) -> Array:
        """Names of the features, if the columns had names."""
        schema = self._value.schema
        names = np.array(schema.given, dtype=object) if schema.named else None
        return np.asarray(self._part(names, "was fitted to columns without names"))

    def _check_fitted(self) -> None:
        """Raise ValueError unless the parts of the fitted value, which may come from a file, agree with each other."""
        self._value.check()

    # Rows -------------------------------------------------------------------------------------------------------

    def _source(self, X: Any) -> LabelledSource:
        """Return rows to predict."""
        if not self._is_fitted:
            check_is_fitted(self)  # raises its error; it takes longer than one row
        return self._value.rows.source(X, self.n_jobs)

    def out_of_range(self, X: Any) -> list[str]:
        """Return for each row which cells lie outside of the training rows: numbers beyond their range, new categories.

        Such as ``"area 56,420: trained on 334 to 4316; shop: an unseen category"``; "" if none does. A pool then
        answers by its members' mean too (docs/guide/tasks/new_places.md).

        Raises
        ------
        ValueError
            The model does not know the ranges.
        """
        source, ranges = self._source(X), self._value.ranges
        if ranges is None:
            raise ValueError(f"this {type(self).__name__} does not know the ranges of its training rows; fit it again")
        return [text for part in source.stream(lambda batch: sentences_outside(batch, ranges)) for text in part]

    # Notebooks and scikit-learn -----------------------------------------------------------------------------------

    def _html_parts(self) -> Sequence[str]:
        """Return the parts of the fitted value that a notebook shows, as HTML."""
        return []

    def _html_repr(self) -> str:
        """Return the display in a notebook: the fitted value, or before a fit the diagram of scikit-learn."""
        diagram: str = super()._html_repr()
        return estimator_html(repr(self), self._html_parts(), self.schema_, diagram) if self._is_fitted else diagram

    def __sklearn_tags__(self) -> Tags:
        return takes_tables(super().__sklearn_tags__())


class Answering(Estimator):
    """An estimator whose value answers about its target."""

    subject: ClassVar[Subject]
    """The kind of its answers."""

    def answer(self, X: Any) -> Answer:
        """Return the probabilities of what the target may be in each row, with what they mean.

        Classes, components, ordered levels and numbers are answered alike (`posteriori.Answer`): mode, quantiles and
        intervals where there is an order, and proper scores. Missing cells are integrated out.
        """
        value = cast("FittedClasses", self._value)
        return Answer(
            value.target.name or "class",
            value.meaning,
            self._source(X).map(lambda batch: value.answer(batch).probability),
        )

    def row_predictor(self, wanted: ResultColumns) -> RowPredictor:
        """Return the predictor of rows part by part, as files are written: see `posteriori.predict_to`."""
        value = cast("FittedClasses", self._value)
        return RowPredictor.of_answers(value.answer, value.meaning, self._source, value.schema, value.ranges, wanted)


class OfClasses(Answering):
    """An estimator whose value is a posterior of classes, or of the components of a mixture."""

    subject = Subject.CLASS

    fitted_: FittedClasses

    @property
    def _value(self) -> FittedClasses:
        return cast(FittedClasses, super()._value)

    @property
    def _posterior(self) -> Posterior:
        return self._value.posterior

    def row_predictor(self, wanted: ResultColumns) -> RowPredictor:
        """Return the predictor of the class of rows part by part."""
        return RowPredictor.of_classes(replace(self._value.predictor, n_jobs=self.n_jobs), wanted)

    def _select(self, table: str, dialect: str, columns: Sequence[str] | None, decision: Decision | None = None) -> str:
        """Return the SELECT of `to_sql`."""
        try:
            from posteriori.sql import select_posterior
        except ModuleNotFoundError as error:
            if error.name != "sqlglot":
                raise
            raise ImportError("to_sql needs sqlglot: pip install sqlglot") from error
        models = {title: part.model for title, part in self._value.parts.items()}
        labels = self._value.predictor.labels
        return select_posterior(models, labels, table, dialect, columns, self._posterior.pool, decision)

    def to_onnx(self) -> Any:
        """Return the model as a graph of ONNX, which runtimes of other languages score rows with.

        Every single model, a pool and a mixture has a graph, in double precision and of ONNX's own operators (opset 21,
        ai.onnx.ml 4). Its probabilities are those of `predict_proba` up to rounding, with any cells missing.

        Returns
        -------
        onnx.ModelProto
            An input for each column that the model reads, by its name, (N,): double, NaN where missing; or text where
            the categories are strings or truth values ("true", "false"), "" where missing; or microseconds since 1970
            of dates, since midnight of times, the least int64 where missing. The outputs are ``label``,
            (N,), and ``probabilities``, (N, C), in the order of `classes_`; of a mixture the number of the component.
            A row that no class can produce, or that `predict` refuses, such as one with an infinite number or a
            negative count, has NaN and the label of the prior.

        Raises
        ------
        ValueError
            A column holds text, blocks of words or times of a zone, or has the name of an output; categories or
            classes are of several types; or a density has no program.
        ImportError
            ndonnx is absent: ``pip install "posteriori[onnx]"``.

        Notes
        -----
        Trees and rows with missing cells hold some numbers for each row, tree and value: score batches of some 10,000
        rows.

        Examples
        --------
        >>> import onnxruntime, numpy as np, posteriori as po
        >>> graph = po.NaiveBayes().fit([[1.0], [2.0], [8.0], [9.0]], ["low", "low", "high", "high"]).to_onnx()
        >>> session = onnxruntime.InferenceSession(graph.SerializeToString())
        >>> label, probabilities = session.run(None, {"x0": np.array([1.5, np.nan])})
        >>> label.tolist()
        ['low', 'high']
        """
        from posteriori.program.onnx import write  # imported here, because it is rarely needed

        check_is_fitted(self)
        if self.subject is Subject.ROWS:
            raise ValueError(f"a {type(self).__name__} has no target, so that a graph would have nothing to answer")
        return write(self._posterior, self._value.predictor.labels, list(self._value.parts))

    @supports_partitions("log_density")
    def score_samples(self, X: Any) -> Array:
        """Return log p(x) in nats, (n,), of a pool that of the mixture of its members: lower for more unusual rows."""
        source = self._source(X)
        return source.map(self._posterior.log_evidence)


class OneModel(OfClasses):
    """An estimator of one model: the attributes that read its `Fitted`."""

    @property
    def _value(self) -> Fitted:
        return cast(Fitted, super()._value)

    @property
    def model_(self) -> GenerativeModel:
        """The model: prior, densities and their parameters."""
        return self._value.model

    @property
    def statistics_(self) -> JointStatistics:
        """The sums that the model was learned from."""
        statistics: JointStatistics = self._part(self._value.statistics, "was built from parameters")
        return statistics

    @property
    def log_likelihood_trace_(self) -> Array:
        """Log-likelihood before each M-step, in nats."""
        trace: Array = self._part(self._value.trace, "has not learned from rows")
        return trace

    @property
    def n_iter_(self) -> int:
        """Number of passes over the rows in training: EM steps, or 1."""
        return max(1, len(self.log_likelihood_trace_))

    # Any column --------------------------------------------------------------------------------------------------

    def query(self, question: str) -> Any:
        """Answer a question about any columns, the class among them: ``P(species = Gentoo | island = Biscoe)``.

        Parameters
        ----------
        question : str
            As in `JointModel.query`; the class is called by the name of its column, or "class", and the component of a
            mixture "component".

        Returns
        -------
        float, dict or PredictiveDensity
            As of `JointModel.query`.

        Raises
        ------
        ValueError
            As of `JointModel.query`. The model has no joint distribution, as its factors are weighted or learned for
            the class alone. Or a range or a set is known of a column of numbers that shares a density with others.
        """
        from posteriori.joint.of_classifier import answer

        return answer(self._value, question)

    def answer(self, X: Any, column: str | None = None, y: Any = None) -> Answer:
        r"""Return the probabilities of what the class, or one feature, may be in each row, with what they mean.

        .. math:: p(x_j \mid x_O) \propto \sum_y p(y) \, p(x_j, x_O \mid y)

        Parameters
        ----------
        X : array-like, data frame or path
            Rows; cells that are missing are integrated out, and those of the column are not read.
        column : str, optional
            The name of a feature. Default: the class, or the component of a mixture.
        y : array-like (n,), optional
            The class of each row, which is known of a feature; None and NaN are unknown.

        Returns
        -------
        Answer
            Of a feature that holds numbers, in cells of at most 1/256 of the column. NaN in a row that no class can
            produce.

        Raises
        ------
        ValueError
            There is no such feature, or the model has no joint distribution.

        See Also
        --------
        JointModel : Models that have no target, and more exact answers about one column.

        Examples
        --------
        >>> import posteriori as po
        >>> from posteriori.datasets import load_penguins
        >>> penguins = load_penguins()
        >>> model = po.GaussianDiscriminant().fit(penguins, "species")
        >>> rows = [{"flipper_length_mm": 181}, {"flipper_length_mm": 186}]
        >>> model.answer(rows, "body_mass_g", y=["Adelie", None]).density.mean.round(-1).tolist()
        [3340.0, 3510.0]
        """
        from posteriori.joint.of_classifier import AskedModel

        if column in (None, self._value.target.name or "class") and y is None:
            return super().answer(X)
        if column is None:
            raise ValueError("y is the class, which is known then; name the feature to be answered about")
        return AskedModel(self._value).conditionals(self._source(X), column, y)


def estimator_of(value: FittedValue) -> Any:
    """Return an estimator of a fitted value, with the parameters of its recipe."""
    made = value.recipe.estimator()
    made.fitted_ = value
    return made
