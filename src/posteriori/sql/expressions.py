"""Arrays of expressions about one row, so that the program of a model writes SQL.

An array has one row, which stands for every row of the table. Its entries are numbers, or terms: expressions of SQL
that are made once, however often they are used.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from posteriori.sql.terms import CONDITIONS, Term, Terms, is_whole

_OF_NUMBERS = ("log", "log1p", "exp", "sqrt", "floor")


class Expressions:
    """An array of terms and numbers, with the functions of the array API that programs use."""

    __array_ufunc__ = None  # an array of NumPy leaves operations with this one to it

    def __init__(self, entries: Any, terms: Terms) -> None:
        self.entries = np.asarray(entries, dtype=object)
        self.terms = terms

    @property
    def shape(self) -> tuple[int, ...]:
        """The lengths of the axes."""
        return self.entries.shape

    def __array_namespace__(self) -> Functions:
        return Functions(self.terms)

    def __getitem__(self, key: Any) -> Expressions:
        return Expressions(self.entries[key], self.terms)

    def _each(self, function: Callable[..., Any], *others: Any) -> Expressions:
        arrays = [self.entries, *(_entries(other) for other in others)]
        return Expressions(np.frompyfunc(function, len(arrays), 1)(*arrays), self.terms)

    def __add__(self, other: Any) -> Expressions:
        return self._each(self.terms.add, other)

    def __sub__(self, other: Any) -> Expressions:
        return self.__add__(-other)

    def __rsub__(self, other: Any) -> Expressions:
        return self.__neg__().__add__(other)

    def __neg__(self) -> Expressions:
        return self._each(lambda a: self.terms.multiply(-1 if is_whole(a) else -1.0, a))

    def __mul__(self, other: Any) -> Expressions:
        return self._each(self.terms.multiply, other)

    def __truediv__(self, other: Any) -> Expressions:
        return self._each(self.terms.divide, other)

    def __rtruediv__(self, other: Any) -> Expressions:
        return self._each(lambda a, b: self.terms.divide(b, a), other)

    def __pow__(self, other: Any) -> Expressions:
        return self._each(self.terms.power, other)

    def __lt__(self, other: Any) -> Expressions:
        return self._each(functools.partial(self.terms.compare, "<"), other)

    def __le__(self, other: Any) -> Expressions:
        return self._each(functools.partial(self.terms.compare, "<="), other)

    def __gt__(self, other: Any) -> Expressions:
        return self._each(lambda a, b: self.terms.compare("<", b, a), other)

    def __eq__(self, other: object) -> Any:
        return self._each(functools.partial(self.terms.compare, "="), other)

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __and__(self, other: Any) -> Expressions:
        return self._each(self.terms.both, other)

    def __or__(self, other: Any) -> Expressions:
        return self._each(self.terms.either, other)

    def __invert__(self) -> Expressions:
        return self._each(self.terms.negate)

    def __matmul__(self, other: Any) -> Expressions:
        products = self[:, :, None] * Expressions(_entries(other)[None], self.terms)
        return Functions(self.terms).sum(products, axis=1)

    __radd__, __rmul__ = __add__, __mul__


def _entries(array: Any) -> Any:
    return array.entries if isinstance(array, Expressions) else np.asarray(array, dtype=object)


class _ChosenRows:
    """The rows of a mask."""

    def __init__(self, mask: Expressions) -> None:
        self.mask = mask


class Functions:
    """The functions of the array API standard that programs use, of arrays of expressions."""

    float64, int64 = "float64", "int64"

    def __init__(self, terms: Terms) -> None:
        self._terms = terms

    def asarray(self, array: Any) -> Expressions:
        """Return an array."""
        return Expressions(_entries(array), self._terms)

    def astype(self, array: Expressions, dtype: str) -> Expressions:
        """Return numbers of conditions, and other arrays as they are."""
        values = (1, 0) if dtype == self.int64 else (1.0, 0.0)

        def of(entry: Any) -> Any:
            if isinstance(entry, Term) and entry.operation not in CONDITIONS:
                return entry
            return self._terms.where(entry, *values) if isinstance(entry, Term | bool | np.bool_) else entry

        return array._each(of)

    def where(self, condition: Any, a: Any, b: Any) -> Expressions:
        """Return a where the condition holds, and b elsewhere."""
        return self.asarray(condition)._each(self._terms.where, a, b)

    def isnan(self, array: Any) -> Expressions:
        """Return which numbers are NULL."""
        return self.asarray(array)._each(self._terms.is_missing)

    def isinf(self, array: Any) -> Expressions:
        """Return False: the reader of cells refuses infinite numbers."""
        return self.asarray(np.zeros(array.shape, np.bool_))

    def __getattr__(self, name: str) -> Callable[[Expressions], Expressions]:
        if name not in _OF_NUMBERS:
            raise AttributeError(f"arrays of expressions have no function {name!r}")
        return lambda array: array._each(functools.partial(self._terms.of_function, name))

    def maximum(self, a: Any, b: Any) -> Expressions:
        """Return the larger of two numbers."""
        return self.asarray(a)._each(self._terms.most, b)

    def minimum(self, a: Any, b: Any) -> Expressions:
        """Return the smaller of two numbers."""
        return self.maximum(-self.asarray(a), -self.asarray(b)).__neg__()

    def sum(self, array: Any, axis: int, keepdims: bool = False) -> Expressions:
        """Return sums along an axis."""
        return self._reduced(array, axis, keepdims, self._terms.total)

    def max(self, array: Any, axis: int, keepdims: bool = False) -> Expressions:
        """Return maxima along an axis."""
        return self._reduced(array, axis, keepdims, self._terms.most)

    def min(self, array: Any, axis: int, keepdims: bool = False) -> Expressions:
        """Return minima along an axis."""
        return self.max(-array, axis, keepdims).__neg__()

    def any(self, array: Any, axis: int, keepdims: bool = False) -> Expressions:
        """Return whether a condition holds along an axis."""

        def one_of(*conditions: Any) -> Any:
            result: Any = False
            for condition in conditions:
                result = self._terms.either(result, condition)
            return result

        return self._reduced(array, axis, keepdims, one_of)

    def log_sum_exp(self, array: Any, axis: int) -> Expressions:
        """Return log Σ exp along an axis."""
        return self._reduced(array, axis, False, self._terms.log_sum)

    def _reduced(self, array: Any, axis: int, keepdims: bool, function: Callable[..., Any]) -> Expressions:
        moved = np.moveaxis(_entries(array), axis, -1)
        flat = moved.reshape(-1, moved.shape[-1])
        reduced = np.empty(len(flat), dtype=object)
        for k, parts in enumerate(flat.tolist()):
            reduced[k] = function(*parts)
        result = reduced.reshape(moved.shape[:-1])
        return Expressions(np.expand_dims(result, axis) if keepdims else result, self._terms)

    def log_normalised(self, array: Expressions) -> Expressions:
        """Return x − log Σ exp x along the last axis, NULL where all are impossible."""
        peak = self.max(array, axis=1, keepdims=True)
        entries = array.entries[0]
        evidence = self._terms.make("log of sum", peak.entries[0, 0], *entries) if len(entries) > 1 else 0.0
        logs = (array - peak) - self.asarray(np.array([[evidence]], dtype=object))
        return self.where(peak == -np.inf, np.nan, logs)

    def nonzero(self, mask: Expressions) -> tuple[_ChosenRows]:
        """Return the rows of a mask."""
        return (_ChosenRows(mask),)

    def where_rows(self, mask: Expressions, of_rows: Expressions, otherwise: Expressions) -> Expressions:
        """Return values of the rows of a mask, and others in the other rows."""
        return self.where(mask[(slice(None), *[None] * (len(otherwise.shape) - 1))], of_rows, otherwise)

    def take(self, array: Any, index: Any, axis: int) -> Expressions:
        """Return the entries at some positions, or the rows of a mask."""
        if isinstance(index, _ChosenRows):
            (condition,) = index.mask.entries
            return self.asarray(array)._each(functools.partial(self._terms.only, condition))
        entries, positions = _entries(array), _entries(index).tolist()
        if not any(isinstance(position, Term) for position in positions):
            return Expressions(np.take(entries, np.array(positions, np.int64), axis=axis), self._terms)
        assert axis == 0
        columns = entries.reshape(len(entries), -1).T
        chosen = [[self._terms.chosen(position, part.__getitem__) for part in columns] for position in positions]
        return Expressions(np.array(chosen, dtype=object).reshape(-1, *entries.shape[1:]), self._terms)

    def needed_where(self, mask: Expressions, array: Expressions) -> Expressions:
        """Return an array of which only the entries in a mask are needed."""
        return mask._each(self._terms.only, array)

    def as_code(self, array: Expressions, most: int) -> Expressions:
        """Return whole numbers up to a greatest one as codes."""
        return array._each(lambda a: self._terms.make("whole", a, codes=range(most + 1)))

    def at_code(self, of_codes: Expressions, code: Expressions) -> Expressions:
        """Return the entries (n, Z) at codes (n,) from 1 on of an array (n, Z, A); the first one of code 0."""
        (index,), (entries,) = code.entries.tolist(), of_codes.entries
        with_none = np.concatenate([entries[:, :1], entries], axis=1)
        chosen = [self._terms.chosen(index, of_z.__getitem__) for of_z in with_none]
        return Expressions(np.array([chosen], dtype=object), self._terms)

    def zeros(self, shape: tuple[int, ...], dtype: str) -> Expressions:
        """Return zeros."""
        return Expressions(np.full(shape, 0 if dtype == self.int64 else 0.0, dtype=object), self._terms)

    def zeros_like(self, array: Expressions) -> Expressions:
        """Return zeros of a shape."""
        zero = 0 if all(map(is_whole, array.entries.ravel().tolist())) else 0.0
        return Expressions(np.full(array.shape, zero, dtype=object), self._terms)

    def ones_like(self, array: Expressions) -> Expressions:
        """Return ones of a shape."""
        return Expressions(np.full(array.shape, 1.0, dtype=object), self._terms)

    def stack(self, arrays: Sequence[Any], axis: int) -> Expressions:
        """Return arrays side by side on a new axis."""
        return Expressions(np.stack([_entries(array) for array in arrays], axis=axis), self._terms)

    def concat(self, arrays: Sequence[Any], axis: int) -> Expressions:
        """Return arrays side by side on an axis."""
        return Expressions(np.concatenate([_entries(array) for array in arrays], axis=axis), self._terms)

    def reshape(self, array: Expressions, shape: tuple[int, ...]) -> Expressions:
        """Return the entries in another shape."""
        return Expressions(array.entries.reshape(shape), self._terms)

    def permute_dims(self, array: Expressions, axes: tuple[int, ...]) -> Expressions:
        """Return the axes in another order."""
        return Expressions(array.entries.transpose(axes), self._terms)
