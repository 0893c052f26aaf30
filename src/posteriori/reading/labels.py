"""The column of labels: its classes, sets of possible classes, and row weights."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from posteriori.reading.spellings import warn_of_spellings
from posteriori.reading.target_cuts import are_intervals
from posteriori.support.typing import Array
from posteriori.tables.arrays import ArrayTable, plain_array
from posteriori.tables.messages import UnseenCategoryError, quote
from posteriori.tables.pandas import PandasTable
from posteriori.tables.polars import LazyTable, PolarsTable
from posteriori.tables.schema import Column, Schema, categorical_column
from posteriori.tables.table import Table
from posteriori.user_warnings import warn

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
    cut_from : int, optional
        The position among the columns of X of the numbers that the labels were cut from, if they were.
    """

    table: Table
    position: int = 0
    name: str | None = None
    code: Any = None
    may_miss: bool = False
    advice: str = "drop or label such rows"
    offset: int = 0
    cut_from: int | None = None

    @property
    def target_place(self) -> int | None:
        """The position of the labels among the columns of X; None where y is not a column of X."""
        if self.name is None:
            return None
        return self.position if self.cut_from is None else self.cut_from

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
        are_cut = are_intervals(column.categories) and len(column.categories) > 2  # two have one order
        levels = column.categories if column.dtype == "ordered" or are_cut else ()
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
        return column.ordered_as(levels) if levels else column

    def _observed(self, column: Column) -> Column:
        """Return the column without the categories that occur in no row."""
        codes, _ = self.table.codes([self.position], Schema((column,)), [column], slice(0, self.table.n_rows))
        seen = np.flatnonzero(np.bincount(codes[:, 0]))
        found = [column.categories[code - 1] for code in seen if code]
        return categorical_column(column.name, found, column.dtype, declared=are_intervals(found))

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

    def known(self) -> Array:
        """Return which rows have a label, (n,); the errors are those of `infer` if none has."""
        column, everything = self.table.column(self.position, categorical=False), slice(0, self.table.n_rows)
        if column.kind == "continuous" and not column.valueless:
            return ~np.isnan(self.table.numbers([self.position], [column], everything)[:, 0])
        return replace(self, may_miss=True).components(self.infer(), everything) >= 0

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
        raise ValueError("This estimator requires y to be passed, but the target y is None")
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
