"""The column of labels: classes, label models, row weights and numeric targets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.support.checks import check_numbers, is_missing, require
from posteriori.support.lazy_polars import pl
from posteriori.support.typing import Array
from posteriori.tables.arrays import ArrayTable, plain_array
from posteriori.tables.batch import Assignment, LabelLikelihood
from posteriori.tables.messages import UnseenCategoryError, quote
from posteriori.tables.pandas import PandasTable
from posteriori.tables.polars import LazyTable, PolarsTable, exactly
from posteriori.tables.schema import Column, Schema, categorical_column
from posteriori.tables.spellings import warn_of_spellings
from posteriori.tables.table import Table
from posteriori.user_warnings import warn

_CORRECT = 0.9  # prior probability of a correct label
_PSEUDO_ROWS = 10.0  # weight of that prior per class, in rows


@dataclass(frozen=True)
class LabelModel:
    """The likelihood of each component of the mixture given the label of a row.

    A row has a recorded class, no label, or a set of possible classes. The likelihood of component z is
    p(recorded | class of z), which is 0 or 1 without label noise. For a set it is 1 if the class is in the set, else 0.
    """

    of_class: tuple[int, ...]  # (Z,): the class of each component, ascending
    # (C, C): p(recorded class | true class), with one row per true class; None where all labels are correct
    confusion: Array | None = None
    learned: bool = False  # whether the confusions are estimated along with the model
    # λ ≥ 0: the nats by which EM discounts a contradicted label, so that it contradicts no more than was stated
    discount: float = 0.0
    stated_share: float = 0.0  # the share of wrong labels that stated confusions imply, at the last step of EM
    contradicted: float = 0.0  # the share of labels that EM contradicts: at most at any step; if learned, at the last

    @classmethod
    def learning(cls, of_class: tuple[int, ...]) -> LabelModel:
        """Return a model that learns the confusions, and starts with 90% correct labels."""
        return cls(of_class, _prior_confusion(of_class[-1] + 1), learned=True)

    def assignment(self, recorded: Array, allowed: Array | None, weight: Array) -> Assignment:
        """Return the component of each row, −1 where several are possible, and the log-likelihood of its label.

        Parameters
        ----------
        recorded : ndarray (n,)
            The class index of each row; −1 where it has no label.
        allowed : ndarray (n, C) or None
            The possible classes of each row; None where `recorded` determines them.
        weight : ndarray (n,)
        """
        positions, n_classes = list(self.of_class), self.of_class[-1] + 1
        with np.errstate(divide="ignore"):
            if allowed is not None:
                log_likelihood = np.log(allowed[:, positions].astype(np.float64))
            else:
                confusion = np.eye(n_classes) if self.confusion is None else self._discounted(self.confusion)
                # An unlabelled row has the index −1, which reads the last row of the table: every class is possible.
                table = np.vstack([np.log(confusion.T[:, positions]), np.zeros(len(positions))])
                log_likelihood = table[recorded]
        possible = log_likelihood > -np.inf
        component = np.where(possible.sum(axis=1) == 1, possible.argmax(axis=1), -1).astype(np.int32)
        return Assignment(component, weight, len(positions), LabelLikelihood(recorded, log_likelihood, n_classes))

    def updated(self, weight: Array | float) -> LabelModel:
        """Update the label model by the expected weights (C, Z) of recorded class and component; 0 if none is hidden.

        Learned confusions take the M-step of EM: posterior mean under a Dirichlet prior of 10 pseudo-rows per true
        class. Stated ones stay. There the weight of contradicted labels may exceed the expected one by 3 standard
        deviations, as chance would; beyond that a step of dual ascent raises the discount. The posterior of an
        over-confident model, such as naive Bayes with dependent columns, would outweigh any label.

        References
        ----------
        Ganchev, Graça, Gillenwater & Taskar, Posterior regularization for structured latent variable models, JMLR 11
        (2010), section 2: the constraint is E_q[contradicted labels] ≤ the stated number.
        """
        if self.of_class[-1] == 0 or self.confusion is None or not isinstance(weight, np.ndarray):
            return self  # no label can be wrong where there is one class, or where each label names its component
        counts = np.zeros((len(weight), len(weight)))
        np.add.at(counts, list(self.of_class), weight.T)
        if not self.learned:
            return self._within_stated_share(counts)
        prior = _PSEUDO_ROWS * _prior_confusion(len(weight))
        wrong = float(1.0 - np.trace(counts) / max(counts.sum(), np.finfo(np.float64).tiny))
        learned = (counts + prior) / (counts + prior).sum(axis=1, keepdims=True)
        return replace(self, confusion=learned, contradicted=wrong)

    def _within_stated_share(self, counts: Array) -> LabelModel:
        """Raise the discount by the expected weights (C, C) of true and recorded class, if they are too high.

        It never falls: EM of an over-confident model would run to the other classes again, and not converge.
        """
        assert self.confusion is not None
        total = counts.sum()
        expected = float(counts.sum(axis=1) @ (1.0 - np.diag(self.confusion)))
        contradicted = float(total - np.trace(counts))
        if not total > 0.0 or not expected > 0.0 or not contradicted > 0.0:
            return self
        allowed = expected + 3.0 * np.sqrt(expected * max(0.0, 1.0 - expected / total))
        discount = self.discount + max(0.0, float(np.log(contradicted / allowed)))
        most = max(self.contradicted, contradicted / total)
        return replace(self, discount=discount, stated_share=expected / total, contradicted=most)

    def _discounted(self, confusion: Array) -> Array:
        """Return p(recorded | true) with contradictions discounted by λ, (C, C)."""
        if not self.discount:
            return confusion
        right = np.eye(len(confusion), dtype=np.bool_)
        weighed = np.where(right, confusion, confusion * np.exp(-self.discount))
        return np.asarray(weighed / weighed.sum(axis=1, keepdims=True))


def _prior_confusion(n_classes: int) -> Array:
    if n_classes == 1:
        return np.ones((1, 1))
    wrong = (1.0 - _CORRECT) / (n_classes - 1)
    return np.full((n_classes, n_classes), wrong) + (_CORRECT - wrong) * np.eye(n_classes)


_SMALLEST, _LARGEST = 1e-100, 1e50  # products of sums of other weights could underflow or overflow


def check_weights(sample_weight: Any, n_rows: int) -> Array | None:
    """Return the weights as float64, (n,).

    Raises ValueError if the weights are not one per row, a weight that is not 0 is no number from 1e-100 to 1e50,
    or all are zero.
    """
    if sample_weight is None:
        return None
    weight = np.asarray(sample_weight)
    try:
        if weight.dtype.kind not in "biufO":
            raise TypeError
        weight = weight.astype(np.float64, copy=False)
    except (TypeError, ValueError):
        raise ValueError("sample_weight holds a cell that is not a number; give one number per row") from None
    if weight.ndim == 0:
        weight = np.full(n_rows, float(weight))
    if weight.shape != (n_rows,):
        raise ValueError(f"sample_weight.shape == {weight.shape}, expected ({n_rows},): one weight per row")
    reject_extreme_weights(weight)
    if n_rows and not weight.any():
        raise ValueError("every sample_weight is zero; at least one row must have some weight")
    return np.require(weight, requirements=["C", "A", "W"])


def reject_extreme_weights(weight: Array) -> None:
    """Raise ValueError if a weight that is not 0 is no number from 1e-100 to 1e50."""
    bad = np.flatnonzero(~((weight == 0) | ((weight >= _SMALLEST) & (weight <= _LARGEST))))
    if len(bad):
        raise ValueError(
            f"sample_weight holds {weight[bad[0]]:g} in row {bad[0]}; weights must be 0, or lie between {_SMALLEST:g} "
            f"and {_LARGEST:g}"
        )


_FEW_VALUES = 20  # so many distinct values are classes in any case
_ENOUGH_ROWS = 100  # mean number of rows per value, from which on values are classes
_are_classes: ContextVar[bool] = ContextVar("whole numbers are classes", default=False)


def looks_like_a_quantity(labels: Sequence[Any], n_rows: float) -> bool:
    """Return whether distinct labels look like a quantity to be predicted, and not like names of classes.

    That is so if they are more than 20 whole numbers with fewer than 100 rows each on average, and are not consecutive
    numbers from 0 or 1 on. Strings and booleans never are a quantity.
    """
    if len(labels) <= _FEW_VALUES or n_rows >= _ENOUGH_ROWS * len(labels) or _are_classes.get():
        return False
    if not all(isinstance(label, int | float) and not isinstance(label, bool) for label in labels):
        return False
    lowest, highest = min(labels), max(labels)
    return not (lowest in (0, 1) and highest - lowest + 1 == len(labels))


@contextmanager
def numbers_as_classes() -> Iterator[None]:
    """Take whole numbers for classes in this context, however many there are."""
    before = _are_classes.set(True)
    try:
        yield
    finally:
        _are_classes.reset(before)


@dataclass(frozen=True)
class TargetCuts:
    """Cut points of a target of numbers: class k holds cuts[k − 1] < y ≤ cuts[k].

    Attributes
    ----------
    cuts : tuple of float
        Strictly increasing, one fewer than there are classes; in the units of the target.

    Examples
    --------
    >>> import posteriori as po
    >>> cuts = po.tables.TargetCuts((18.5, 25.0))
    >>> cuts
    TargetCuts(cuts=(18.5, 25.0))
    """

    cuts: tuple[float, ...]

    def check(self) -> None:
        """Raise ValueError unless the cuts are finite and strictly increasing."""
        check_numbers("the cuts of the target", np.array(self.cuts, np.float64), (len(self.cuts),))
        require(all(a < b for a, b in itertools.pairwise(self.cuts)), "the cuts of the target do not increase")

    @classmethod
    def of(cls, values: Any, classes: int) -> TargetCuts:
        """Return cuts at quantiles of the target, for classes of about equal size.

        Raises
        ------
        ValueError
            `classes` is below 2, or there are fewer than two distinct numbers.
        """
        if isinstance(classes, bool) or not isinstance(classes, int | np.integer) or classes < 2:
            raise ValueError(f"classes is {classes!r}; give a whole number, at least 2")
        numbers = _numbers(values)
        present = numbers[~np.isnan(numbers)]
        if not len(present):
            raise ValueError("the target has no value to cut; give at least two distinct numbers")
        n_shares = min(int(classes), 2 * len(present))  # more give no other cut
        shares = np.arange(1, n_shares) / n_shares
        quantiles = np.unique(np.quantile(present, shares, method="inverted_cdf"))
        cuts = tuple(quantiles[quantiles < present.max()].tolist())  # none at the maximum: no class lies above it
        if not cuts:
            distinct = np.unique(present)
            if len(distinct) == 1:
                raise ValueError(f"the target is {distinct[0]:g} in every row, which is one class; choose another")
            cuts = (float(distinct[-2]),)  # the largest value alone fills more than one class
        return cls(cuts)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the classes: "≤ 100", "100 to 250", "> 250"."""
        cuts = _written(self.cuts)
        inner = (f"{low} to {high}" for low, high in itertools.pairwise(cuts))
        return (f"≤ {cuts[0]}", *inner, f"> {cuts[-1]}")

    def expression(self, name: str) -> pl.Expr:
        """Return the polars expression that replaces the numbers of a column by the names of their classes."""
        number = exactly(name).cast(pl.Float64).fill_nan(None)
        *others, last = self.names
        named = pl.lit(last)
        for cut, class_name in reversed(list(zip(self.cuts, others, strict=True))):
            named = pl.when(number <= cut).then(pl.lit(class_name)).otherwise(named)
        return pl.when(number.is_not_null()).then(named).cast(pl.Enum(self.names)).alias(name)

    def apply(self, values: Any) -> Array:
        """Return the name of the class of each number, (n,) objects; None where it is missing."""
        numbers = _numbers(values)
        position = np.searchsorted(self.cuts, numbers, side="left")  # NaN sorts last
        named = np.array(self.names, dtype=object)[position]
        named[np.isnan(numbers)] = None
        return named


def _are_intervals(names: Sequence[Any]) -> bool:
    """Return whether declared classes are those of `TargetCuts`, which keep their order; others are sorted."""
    if not all(isinstance(name, str) for name in names) or len(names) < 2:
        return False
    cuts = [name.partition(" to ")[0] for name in names[1:-1]] + [names[-1].removeprefix("> ")]
    inner = (f"{low} to {high}" for low, high in itertools.pairwise(cuts))
    return tuple(names) == (f"≤ {cuts[0]}", *inner, f"> {cuts[-1]}")


def quantile_classes(y: Any, classes: int | None = None, *, cuts: Sequence[float] | None = None) -> Array:
    """Cut a target of numbers into classes of about equal size, by default four.

    Parameters
    ----------
    y : array-like (n,)
        Numbers; None and NaN are missing.
    classes : int, default 4
        The number of classes; repeated values may give fewer.
    cuts : sequence of float, optional
        The numbers at which to cut, strictly increasing, in place of quantiles. The cuts of the training rows
        (`TargetCuts.of`) cut new rows in the same way.

    Returns
    -------
    ndarray (n,) of str
        The name of the class of each row, None where y is missing: "≤ 100", "100 to 250", "> 250". A number equal to
        a cut is in the class below it.

    Raises
    ------
    ValueError
        y holds other cells than numbers, or fewer than two distinct numbers; `classes` is below 2; both `classes` and
        `cuts` are given; the cuts do not increase.

    Examples
    --------
    >>> import posteriori as po
    >>> po.tables.quantile_classes([50, 120, 90, 400, 260, 100], 3).tolist()
    ['≤ 90', '90 to 120', '≤ 90', '> 120', '> 120', '90 to 120']
    """
    if cuts is None:
        return TargetCuts.of(y, 4 if classes is None else classes).apply(y)
    points = np.asarray(cuts, dtype=np.float64)
    if classes is not None:
        raise ValueError("classes and cuts both say where to cut; give one of them")
    if points.ndim != 1 or not len(points) or not np.isfinite(points).all() or (np.diff(points) <= 0).any():
        raise ValueError(f"cuts is {cuts!r}; give finite numbers in increasing order")
    return TargetCuts(tuple(points.tolist())).apply(y)


def _numbers(values: Any) -> Array:
    """Return the cells of a target as floats, NaN where missing."""
    cells = values.tolist() if hasattr(values, "tolist") else list(values)
    try:
        numbers = np.array([np.nan if is_missing(cell) else float(cell) for cell in cells], dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"only a target of numbers can be cut into classes: {error}") from None
    if any(isinstance(cell, str) for cell in cells):
        raise ValueError("only a target of numbers can be cut into classes, and this one holds strings")
    if np.isinf(numbers).any():
        raise ValueError("the target holds an infinite number; replace or leave out such rows")
    return numbers


def _written(cuts: Sequence[float]) -> list[str]:
    """Write whole cuts in full, and others with as few digits as keep them distinct."""
    if all(cut.is_integer() and abs(cut) < 1e15 for cut in cuts):
        return [str(int(cut)) for cut in cuts]
    for digits in range(4, 18):
        written = [f"{cut:.{digits}g}" for cut in cuts]
        if len(set(written)) == len(cuts):
            break
    return written


@dataclass(frozen=True)
class LabelColumn:
    """A column of labels, encoded batch by batch.

    Attributes
    ----------
    table : Table
    position : int
        The position of the labels in the table.
    name : str or None
        Their name, where they are a column of X.
    code : label, optional
        A label that stands for a missing one.
    may_miss : bool
        Whether labels may be missing. Otherwise a missing label is an error, and `advice` is its remedy.
    offset : int
        The number of the first row, where the table is a part of a longer one: for messages.
    """

    table: Table
    position: int = 0
    name: str | None = None
    code: Any = None
    may_miss: bool = False
    advice: str = "drop or label such rows"
    offset: int = 0

    @property
    def target_place(self) -> int | None:
        """The position of the labels among the columns of X; None where y is not a column of X."""
        return None if self.name is None else self.position

    def infer(self, holds_code: bool = False) -> Column:
        """Infer the column of the labels: its categories are the observed classes, sorted.

        Parameters
        ----------
        holds_code : bool, default False
            Whether some label must be the code of a missing one, if there is a code.

        Raises
        ------
        ValueError
            The labels are continuous, of several kinds, or all missing; or none is the code.
        """
        if isinstance(self.table, LazyTable):
            return replace(self, table=self.table.cells(self.position), position=0).infer(holds_code)
        column = self.table.column(self.position, categorical=True)
        if column.declared or column.kinds == {"booleans"}:
            column = self._observed(column)
        if holds_code and self.code is not None and self.code not in column.lookup:
            raise ValueError(
                f"unlabelled is {self.code!r}, which no label of y is; name the label that marks a missing one"
            )
        if self.code in column.lookup:
            kept = [label for label in column.categories if label != self.code]
            column = categorical_column(column.name, kept, column.dtype)
        if len(column.kinds) > 1:
            kinds = " and ".join(sorted(column.kinds, reverse=True))
            raise ValueError(f"column {column.name!r} mixes {kinds} as labels; convert them to one kind")
        fractions = [c for c in column.categories if isinstance(c, float) and not c.is_integer()]
        if fractions:
            raise ValueError(
                f"Unknown label type: continuous. The labels hold {fractions[0]!r}; "
                "a classifier needs classes, so bin the target or use a regressor"
            )
        if not column.categories:
            raise ValueError("every label is missing; at least one row of each class must be labelled")
        warn_of_spellings(column.categories)
        return column

    def _observed(self, column: Column) -> Column:
        """Return the column without the categories that occur in no row."""
        codes, _ = self.table.codes([self.position], Schema((column,)), [column], slice(0, self.table.n_rows))
        seen = np.flatnonzero(np.bincount(codes[:, 0]))
        found = [column.categories[code - 1] for code in seen if code]
        return categorical_column(column.name, found, column.dtype, declared=_are_intervals(found))

    def components(self, column: Column, rows: slice) -> Array:
        """Return the class index of some rows, (n,) int32; −1 for a missing label.

        Raises
        ------
        UnseenCategoryError
            A label is not one of the classes.
        ValueError
            A label is missing, and must not be.
        """
        codes, unseen = self.table.codes([self.position], Schema((column,)), [column], rows)
        if codes.all():
            return codes[:, 0].astype(np.int32) - 1
        if unseen and (self.code is None or self._unseen(column, rows)):
            raise UnseenCategoryError(f"y holds {self._unseen(column, rows)}, which is not among the classes")
        if self.may_miss:
            return codes[:, 0].astype(np.int32) - 1
        first = self.offset + (rows.start or 0)
        missing = np.flatnonzero(codes[:, 0] == 0) + first
        listed = ", ".join(map(str, missing[:5])) + (", …" if len(missing) > 5 else "")
        raise ValueError(f"Input y contains NaN: the label of row {listed} is missing; {self.advice}")

    def allowed(self, rows: slice) -> None:
        """Return None: each label names one class or none, so that no set of classes is needed."""
        del rows

    def _unseen(self, column: Column, rows: slice) -> str:
        seen = self.table.column(self.position, categorical=True).categories
        return ", ".join(repr(label) for label in seen if label not in column.lookup and label != self.code)


@dataclass(frozen=True)
class PartialLabels:
    """Partial labels: the set of classes that each row may belong to."""

    mask: Array  # (n, C), booleans: whether the row may belong to the class
    classes: tuple[Any, ...]  # the class of each column of the mask
    name: str | None = None  # as in `LabelColumn`
    code: Any = None  # as in `LabelColumn`
    may_miss: bool = True
    advice: str = ""

    def infer(self) -> Column:
        """Return the column of the classes; ValueError if the mask allows a row no class."""
        impossible = np.flatnonzero(~self.mask.any(axis=1))
        if len(impossible):
            raise ValueError(
                f"the mask y allows row {impossible[0]} no class; allow all classes where nothing is known"
            )
        dtype = "int64" if all(isinstance(label, int) for label in self.classes) else "object"
        return categorical_column("y", self.classes, dtype, declared=True)

    def components(self, column: Column, rows: slice) -> Array:
        """Return the class index of some rows, (n,) int32; −1 where several classes are possible."""
        del column
        mask = self.mask[rows]
        return np.where(mask.sum(axis=1) == 1, mask.argmax(axis=1), -1).astype(np.int32)

    def allowed(self, rows: slice) -> Array:
        """Return the classes that each row may belong to, (n, C) booleans."""
        return self.mask[rows]


@dataclass(frozen=True)
class KnownLabels:
    """Encoded labels: the class index of each row, −1 where several classes are possible."""

    component: Array  # (n,)
    # (n, C), booleans: the possible classes of each row; None where a row of index −1 may belong to any class
    mask: Array | None = None
    may_miss = True

    def components(self, column: Column, rows: slice) -> Array:
        """Return the class index of some rows."""
        del column
        return self.component[rows]

    def allowed(self, rows: slice) -> Array | None:
        """Return the classes that each row may belong to, (n, C) booleans."""
        return None if self.mask is None else self.mask[rows]


def read_teaching_labels(y: Any, table: Table) -> LabelColumn | PartialLabels:
    """Open labels to learn from: one per row, or a mask (n, C) of the classes that each row may belong to.

    Raises the errors of `read_labels`, and ValueError if the mask has another number of rows than the table.
    """
    mask = _read_mask(y)
    if mask is None:
        return read_labels(y, table)
    if len(mask.mask) != table.n_rows:
        raise ValueError(
            f"X has {table.n_rows} rows but the mask y has {len(mask.mask)}; give one row of the mask per row of X"
        )
    return mask


def _read_mask(y: Any) -> PartialLabels | None:
    """Return y as a mask if it is a table of booleans with one column per class; otherwise None."""
    if isinstance(y, np.ndarray):
        if y.ndim == 2 and y.shape[1] > 1 and y.dtype == np.bool_:
            return PartialLabels(y, tuple(range(y.shape[1])))
        return None
    import narwhals as nw

    frame = nw.from_native(y, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame) or len(frame.columns) < 2:
        return None
    if not all(kind == nw.Boolean for kind in frame.schema.values()):
        return None
    order = sorted(frame.columns)
    return PartialLabels(frame.select(order).to_numpy(), tuple(order))


def read_labels(y: Any, table: Table) -> LabelColumn:
    """Open labels that go with the rows of a table.

    Raises ValueError if y is absent, does not hold one label per row, or names a column that the table lacks.
    """
    if isinstance(table, LazyTable):
        y = table.target_or(y)
    if y is None:
        raise ValueError("This classifier requires y to be passed, but the target y is None")
    if isinstance(y, str):
        if y not in table.names or not table.named:
            known = quote(table.names) if table.named else "no named columns"
            raise ValueError(f"the target {y!r} is not a column of X, which has {known}")
        return LabelColumn(table, table.names.index(y), y)
    labels = _open_labels(y)
    if labels.n_rows != table.n_rows:
        raise ValueError(f"X has {table.n_rows} rows but y has {labels.n_rows} labels; give one label per row")
    return LabelColumn(labels)


def warn_of_labels_among_features(y: Any, table: Table) -> None:
    """Warn if a series of labels is also a column of X, by name and by values: the model would read the answer.

    Only columns of data frames in memory are compared, and only those of the same name.
    """
    if isinstance(y, str | np.ndarray) or not isinstance(table, PandasTable | PolarsTable) or not table.named:
        return
    import narwhals as nw

    series = nw.from_native(y, pass_through=True, allow_series=True)
    if not isinstance(series, nw.Series) or series.name not in table.names:
        return
    column = nw.from_native(table.frame, eager_only=True)[:, table.names.index(series.name)]
    # As lists, strings and categories compare; a missing cell equals none.
    if column.drop_nulls().to_list() == series.drop_nulls().to_list():
        name = series.name
        warn(
            f"the column {name!r} of X holds the labels y, so the model learns to predict {name!r} from itself; give "
            f"the name of the column in place of y, fit(X, {name!r}), or drop the column from X"
        )


def _open_labels(y: Any) -> Table:
    if not isinstance(y, np.ndarray):
        import narwhals as nw

        series = nw.from_native(y, pass_through=True, allow_series=True)
        if isinstance(series, nw.Series):
            if series.implementation.is_pandas_like():
                return PandasTable(series.to_pandas().to_frame(), ("y",), True)
            return PolarsTable(series.to_polars().alias("y").to_frame())
        if isinstance(series, nw.DataFrame):
            y = series.to_numpy()
        elif isinstance(series, nw.LazyFrame) and not hasattr(y, "__array__"):
            raise TypeError("y is a lazy table; add it to X as a column, and give y the name of this column")
        else:
            values = np.asarray(y)
            y = np.array(y, dtype=object) if values.dtype.kind in "US" and not _all_strings(y) else values
    return ArrayTable(_one_column(plain_array(y, "y")), "y")


def _all_strings(y: Any) -> bool:
    return all(isinstance(label, str) for label in y)


def _one_column(y: Array) -> Array:
    if y.ndim == 1:
        return y.reshape(-1, 1)
    if y.ndim == 2 and y.shape[1] == 1:
        from sklearn.exceptions import DataConversionWarning  # imported here, because scikit-learn takes over a second

        warn("A column-vector y was passed when a 1d array was expected; pass y.ravel()", DataConversionWarning)
        return y
    raise ValueError(f"y should be a 1d array, got an array of shape {y.shape} instead.")
