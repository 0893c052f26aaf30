"""Arrays of expressions about one row, so that the program of a model writes SQL.

An array has one row, which stands for every row of the table. Its entries are numbers, or terms: expressions of SQL
that are made once, however often they are used. `Writer` makes columns of the SELECT of terms that are used twice.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
from sqlglot import exp

from posteriori.sql.dialects import (
    POSSIBLE,
    Dialect,
    Node,
    cases,
    column,
    less,
    literal,
    minus,
    over,
    plus,
    real,
    times,
    total,
    whole,
)
from posteriori.sql.steps import SelectSteps

_DEEPEST = 25  # levels of an expression, before it becomes a column: databases limit the depth
_LARGE = 1e4  # of a number that is added to a cell: above it the last digit of a literal is worth 1e-12
_CENTRE_DIGITS = 14  # decimal digits, which every database reads as the same number
_LEAST = 1e-300  # whose logarithm is taken in place of that of 0


_CHOICES = ("choice", "case")


class Term:
    """An expression: an operation and its arguments, terms and numbers. Equal terms are one object (`Terms`)."""

    __slots__ = ("arguments", "codes", "number", "only", "operation")

    def __init__(self, number: int, operation: str, arguments: tuple[Any, ...], codes: range | None) -> None:
        self.number = number  # in the order in which terms were made
        self.operation, self.arguments = operation, arguments
        self.codes = codes  # the values of a term of whole numbers
        self.only = self._only()  # the condition of the rows that need it; None if all do

    def _only(self) -> Term | None:
        if self.operation == "only":
            condition: Term = self.arguments[0]
            return condition
        if self.operation in _CHOICES:  # a branch may be needed in fewer rows than the choice
            selector = self.arguments[0]
            return selector.only if isinstance(selector, Term) else None
        return next((part.only for part in self.terms if part.only is not None), None)

    @property
    def terms(self) -> list[Term]:
        """The arguments that are terms."""
        return [part for part in self.arguments if isinstance(part, Term)]


class Terms:
    """The terms of a SELECT, each made once, and the operations on entries of arrays."""

    def __init__(self) -> None:
        self._known: dict[tuple[Any, ...], Term] = {}

    def make(self, operation: str, *arguments: Any, codes: range | None = None) -> Term:
        """Return the term of an operation."""
        key = (operation, *((id(part), None) if isinstance(part, Term) else (type(part), part) for part in arguments))
        if key not in self._known:
            self._known[key] = Term(len(self._known), operation, arguments, codes)
        return self._known[key]

    def add(self, a: Any, b: Any) -> Any:
        """Return a + b."""
        if not isinstance(a, Term) and not isinstance(b, Term):
            return a + b
        if _is_whole(a) and _is_whole(b):
            return self._sum_of_codes(a, b)
        if not isinstance(b, Term):
            a, b = b, a
        return b if not isinstance(a, Term) and a == 0.0 else self.make("sum", b, a)

    def _sum_of_codes(self, a: Any, b: Any) -> Term:
        """Return a sum of multiples of codes: "affine", a number, and pairs of a code and its factor."""
        constant, factors = 0, dict[Term, int]()
        for part in (a, b):
            if not isinstance(part, Term):
                constant += int(part)
                continue
            own, scaled = _affine(part)
            constant += own
            for code, factor in scaled:
                factors[code] = factors.get(code, 0) + factor
        pairs: list[Term | int] = [part for pair in factors.items() for part in pair]
        bounds = [constant + sum(f * (c.codes or range(1))[side] for c, f in factors.items()) for side in (0, -1)]
        return self.make("affine", constant, *pairs, codes=range(min(bounds), max(bounds) + 1))

    def multiply(self, a: Any, b: Any) -> Any:
        """Return a·b."""
        if not isinstance(a, Term) and not isinstance(b, Term):
            return a * b
        if not isinstance(b, Term):
            a, b = b, a
        if isinstance(a, Term):
            for one, other in ((a, b), (b, a)):
                if one.operation == "quotient":  # so that a·(b / c) and b·(a / c) are one term
                    return self.make("quotient", self.multiply(one.arguments[0], other), one.arguments[1])
            return self.make("product", *sorted((a, b), key=lambda term: term.number))
        if a == -np.inf:  # of a number above 0
            return -np.inf
        if a == np.inf:
            raise ValueError("an infinite weight has no SQL; set alpha > 0")
        if _is_whole(a) and _is_whole(b):
            constant, pairs = _affine(b)
            scaled = [part for code, factor in pairs for part in (code, factor * int(a))]
            bounds = [side * int(a) for side in ((b.codes or range(1))[0], (b.codes or range(1))[-1])]
            return self.make("affine", constant * int(a), *scaled, codes=range(min(bounds), max(bounds) + 1))
        if a == 0.0:  # a program leaves nothing to NULL times 0
            return 0.0
        if b.operation == "product" and not isinstance(b.arguments[0], Term):
            return self.multiply(a * b.arguments[0], b.arguments[1])
        return b if a == 1.0 else self.make("product", a, b)

    def divide(self, a: Any, b: Any) -> Any:
        """Return a / b."""
        if not isinstance(b, Term):
            return self.multiply(a, 1.0 / b) if isinstance(a, Term) else a / b
        return self.make("quotient", a, b)

    def power(self, a: Any, b: float) -> Any:
        """Return a to a constant power; of another than 2, 3 or 4 of a number that is 0 or more."""
        if not isinstance(a, Term):
            return a**b
        if b in (1.0, 2.0, 3.0, 4.0):
            square = a if b == 1.0 else self.multiply(a, a)
            return square if b <= 2.0 else self.multiply(square, a if b == 3.0 else square)
        return self.make("power", a, float(b))

    def compare(self, sign: str, a: Any, b: Any) -> Any:
        """Return whether a < b, a ≤ b or a = b."""
        if not isinstance(a, Term) and not isinstance(b, Term):
            return bool(a < b if sign == "<" else a <= b if sign == "<=" else a == b)
        if sign == "=" and not isinstance(b, Term) and b == -np.inf:
            return self.make("<=", a, POSSIBLE)
        if sign == "=" and isinstance(a, Term) and a.codes is not None and b not in a.codes:
            return False
        return self.make(sign, a, b)

    def both(self, a: Any, b: Any) -> Any:
        """Return whether both conditions hold."""
        if isinstance(a, Term) and isinstance(b, Term):
            return self.make("and", a, b)
        return (b if a else False) if not isinstance(a, Term) else (a if b else False)

    def either(self, a: Any, b: Any) -> Any:
        """Return whether one of two conditions holds."""
        if isinstance(a, Term) and isinstance(b, Term):
            return self.make("or", a, b)
        return (True if a else b) if not isinstance(a, Term) else (True if b else a)

    def negate(self, a: Any) -> Any:
        """Return whether a condition, which is not NULL, does not hold."""
        return self.make("not", a) if isinstance(a, Term) else not a

    def where(self, condition: Any, a: Any, b: Any) -> Any:
        """Return a where the condition holds, and b elsewhere."""
        if not isinstance(condition, Term):
            return a if condition else b
        if a is b or (not isinstance(a, Term) and not isinstance(b, Term) and a == b):
            return a
        codes = _codes_of((a, b)) if _is_whole(a) and _is_whole(b) else None
        of_code = condition.arguments if condition.operation == "=" else ()
        if isinstance(b, Term) and b.operation == "choice" and of_code == b.arguments[:2] and of_code[1] == 0:
            return self.make("choice", *of_code, a, *b.arguments[3:], codes=codes)  # of code 0 it is a
        return self.make("case", condition, a, b, codes=codes)

    def only(self, condition: Any, a: Any) -> Any:
        """Return a as the rows of a condition need it: in others, columns that follow from it may be NULL."""
        is_term = isinstance(condition, Term) and isinstance(a, Term)
        return self.make("only", condition, a, codes=a.codes) if is_term else a

    def is_missing(self, a: Any) -> Any:
        """Return whether a number is NULL."""
        if not isinstance(a, Term):
            return bool(np.isnan(a))
        if a.operation == "case" and not isinstance(a.arguments[1], Term) and np.isnan(a.arguments[1]):
            return a.arguments[0]
        return self.make("missing", a)

    def of_function(self, name: str, a: Any) -> Any:
        """Return a function of one number."""
        return self.make(name, a) if isinstance(a, Term) else float(getattr(np, name)(a))

    def most(self, *parts: Any) -> Any:
        """Return the largest of some numbers."""
        numbers = [part for part in parts if not isinstance(part, Term)]
        rest = list(dict.fromkeys(part for part in parts if isinstance(part, Term)))
        if not rest:
            return max(numbers)
        return self.make("most", *rest, *([max(numbers)] if numbers and max(numbers) > -np.inf else []))

    def total(self, *parts: Any) -> Any:
        """Return the sum of some numbers."""
        rest = [part for part in parts if isinstance(part, Term)]
        constant = sum(part for part in parts if not isinstance(part, Term))
        if not rest:
            return constant
        if all(_is_whole(part) for part in parts):
            whole_sum: Any = 0
            for part in parts:
                whole_sum = self.add(whole_sum, part)
            return whole_sum
        return (
            rest[0]
            if len(rest) == 1 and constant == 0.0
            else self.make("sum", *rest, *([constant] if constant else []))
        )

    def log_sum(self, *parts: Any) -> Any:
        """Return log Σ exp of some numbers."""
        rest = [part for part in parts if isinstance(part, Term) or part > -np.inf]
        if not rest:
            return -np.inf
        if len(rest) == 1:
            return rest[0]
        if not any(isinstance(part, Term) for part in rest):
            return float(np.logaddexp.reduce(rest))
        peak = self.most(*rest)
        return self.add(peak, self.make("log of sum", peak, *rest))

    def chosen(self, index: Any, entries: Callable[[int], Any]) -> Any:
        """Return the entry at an index, a sum of multiples of codes."""
        if not isinstance(index, Term):
            return entries(int(index))
        constant, pairs = _affine(index)

        def at(start: int, rest: Sequence[tuple[Term, int]]) -> Any:
            if not rest:
                return entries(start)
            (code, factor), *others = rest
            codes = code.codes or range(1)
            values = [at(start + factor * value, others) for value in codes]
            first = values[0]
            if all(value is first or (not isinstance(value, Term) and value == first) for value in values[1:]):
                return first
            of_codes = _codes_of(values) if all(_is_whole(value) for value in values) else None
            return self.make("choice", code, codes.start, *values, codes=of_codes)

        return at(constant, pairs)


def _is_whole(part: Any) -> bool:
    return part.codes is not None if isinstance(part, Term) else isinstance(part, int | np.integer)


def _codes_of(parts: Sequence[Any]) -> range:
    """Return a range that holds some whole numbers, and the values of terms of whole numbers."""
    ends = [int(part) for part in parts if not isinstance(part, Term)]
    ends += [
        end
        for part in parts
        if isinstance(part, Term)
        for end in ((part.codes or range(1))[0], (part.codes or range(1))[-1])
    ]
    return range(min(ends), max(ends) + 1)


def _affine(term: Term) -> tuple[int, list[tuple[Term, int]]]:
    """Return the number and the pairs of a code and its factor of a term of whole numbers."""
    if term.operation != "affine":
        return 0, [(term, 1)]
    constant, *rest = term.arguments
    return constant, list(zip(rest[::2], rest[1::2], strict=True))


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
        return self._each(lambda a: self.terms.multiply(-1 if _is_whole(a) else -1.0, a))

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
            if isinstance(entry, Term) and entry.operation not in _CONDITIONS:
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
        is_whole = all(map(_is_whole, array.entries.ravel().tolist()))
        return Expressions(np.full(array.shape, 0 if is_whole else 0.0, dtype=object), self._terms)

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


_OF_NUMBERS = ("log", "log1p", "exp", "sqrt", "floor")
_CONDITIONS = ("<", "<=", "=", "and", "or", "not", "missing")


class Writer:
    """Writes terms as expressions of SQL; those that are used twice, or are deep, become columns of the SELECT."""

    def __init__(self, steps: SelectSteps, results: Sequence[Any]) -> None:
        self._steps = steps
        self._names: dict[Term, str] = {}
        self._uses: dict[Term, int] = {}
        waiting = [term for term in results if isinstance(term, Term)]
        while waiting:
            term = waiting.pop()
            self._uses[term] = self._uses.get(term, 0) + 1
            if self._uses[term] == 1:
                waiting += term.terms
        for term in sorted(self._uses, key=lambda term: -term.number):
            if self._is_repeated(term):  # so are its parts, unless they are columns
                for part in term.terms:
                    self._uses[part] += self._uses[term] - 1

    @property
    def _dialect(self) -> Dialect:
        return self._steps.dialect

    def _is_repeated(self, term: Term) -> bool:
        """Return whether a term that is used twice is written twice: databases limit the number of columns."""
        if term.operation == "only" or (self._uses[term] == 2 and term.operation in _CHOICES):
            return True
        return self._uses[term] <= 3 and term.operation == "sum" and len(term.terms) == 1

    def node(self, entry: Any) -> Node:
        """Return the expression of a term or a number."""
        return self._of(entry)[0]

    def _of(self, entry: Any) -> tuple[Node, int]:
        """Return an expression and its depth."""
        if not isinstance(entry, Term):
            return _number(entry), 0
        if entry.operation == "column":
            return column(entry.arguments[0]), 0
        if entry.operation == "only":
            return self._of(entry.arguments[1])
        if entry not in self._names:
            parts = self._summands(entry) if entry.operation == "sum" else entry.arguments
            pairs = [self._of(part) if isinstance(part, Term) else (part, 0) for part in parts]
            node = self._written(entry, [part for part, _ in pairs])
            depth = len(parts).bit_length() + max((deep for _, deep in pairs), default=0)
            if ((self._uses[entry] < 2 or self._is_repeated(entry)) and depth <= _DEEPEST) or _is_short(node):
                return node, depth
            if entry.operation in _CONDITIONS:
                node = cases((node, whole(1)), default=whole(0))
            if entry.only is not None:  # complete rows need no sum over missing cells
                node = cases((self.node(entry.only), node))
            self._names[entry] = self._steps.define(f"v{len(self._names)}", node)
        name = column(self._names[entry])
        return exp.EQ(this=name, expression=whole(1)) if entry.operation in _CONDITIONS else name, 0

    def _summands(self, term: Term) -> list[Any]:
        """Return the parts of a sum and of the sums within it, so that no sum is deep; a number comes last."""
        parts, constant = list[Any](), 0.0
        for part in term.arguments:
            is_inner = isinstance(part, Term) and part.operation == "sum" and self._uses[part] < 2
            inner = self._summands(part) if is_inner and part not in self._names else [part]
            if len(inner) > 1 and not isinstance(inner[-1], Term) and abs(inner[-1]) >= _LARGE:
                inner = [part]  # a large number is added to its own cell
            parts += [one for one in inner if isinstance(one, Term)]
            constant += sum(one for one in inner if not isinstance(one, Term))
        return [*parts, constant] if constant else parts

    def _written(self, term: Term, parts: list[Any]) -> Node:
        """Return the expression of a term from those of its arguments that are terms, and its numbers."""
        nodes = [part if isinstance(part, exp.Expression) else _number(part) for part in parts]
        operation = term.operation
        if operation in _OF_NODES:
            return _OF_NODES[operation](*nodes)
        if operation == "sum":
            return self._sum(parts, nodes)
        if operation == "=":
            return self._equal(term, nodes)
        if operation == "most":
            return self._dialect.largest(nodes)
        if operation == "log of sum":
            peak, *rest = nodes
            return self._dialect.log_of_sum([(node, peak.copy()) for node in rest])
        if operation == "choice":
            return _choice(term, nodes)
        assert operation == "affine", operation
        constant, *rest = parts
        products = [
            code if k == 1 else exp.Mul(this=code, expression=whole(k))
            for code, k in zip(rest[::2], rest[1::2], strict=True)
        ]
        return total([*products, *([whole(constant)] if constant else [])])

    def _sum(self, parts: list[Any], nodes: list[Node]) -> Node:
        """Return a sum; a large number in two parts, so that an inexact last digit of its literal does no harm."""
        constant = parts[-1]
        if isinstance(constant, exp.Expression):
            return total(nodes)
        near = float(f"{constant:.{_CENTRE_DIGITS}g}") if _LARGE <= abs(constant) < np.inf else constant
        about = _plus_number(total(nodes[:-1]), near)
        return _plus_number(exp.Paren(this=about), constant - near) if constant != near else about

    def _equal(self, term: Term, nodes: list[Node]) -> Node:
        """Return whether two numbers are equal; the code 0 of a cell is NULL."""
        code, value = term.arguments
        while isinstance(code, Term) and code.operation == "only":
            code = code.arguments[1]
        if value == 0 and isinstance(code, Term) and code.operation == "column" and code.codes is not None:
            return exp.Is(this=_within(nodes[0]), expression=exp.Null())
        return exp.EQ(this=nodes[0], expression=nodes[1])


def _plus_number(node: Node, number: float) -> Node:
    return minus(node, literal(-number)) if -np.inf < number < 0 else plus(node, literal(number))


def _is_short(node: Node) -> bool:
    """Return whether a condition is no longer than a column of it: that a column is, or is not, NULL."""
    bare = node.this if isinstance(node, exp.Not) else node
    bare = bare.this if isinstance(bare, exp.Paren) else bare
    return isinstance(bare, exp.Is) and isinstance(bare.this, exp.Column)


def _choice(term: Term, nodes: list[Node]) -> Node:
    """Return the value of a code: the first one, of code 0, where there is none."""
    code, _, *values = nodes
    start = term.arguments[1]
    pairs = list(enumerate(values, start=start))
    default = pairs.pop(0)[1] if start == 0 else None
    ifs = [exp.If(this=whole(k), true=value) for k, value in pairs]
    if not ifs:
        return default
    written = exp.Case(this=code, ifs=ifs, default=default)
    return written if term.codes is not None else real(written)


def _number(entry: Any) -> Node:
    """Return a literal."""
    if isinstance(entry, bool | np.bool_):
        return exp.EQ(this=whole(1), expression=whole(int(entry)))
    if isinstance(entry, int | np.integer):
        return whole(int(entry))
    return exp.Null() if np.isnan(entry) else literal(float(entry))


def _logarithm(x: Node) -> Node:
    positive = exp.GT(this=x.copy(), expression=literal(0.0))
    return cases((positive, exp.Ln(this=x)), default=literal(-np.inf))


def _power(x: Node, exponent: Node) -> Node:
    none = exp.LTE(this=x.copy(), expression=literal(0.0))
    return cases((none, literal(0.0)), default=exp.Exp(this=times(exponent, exp.Ln(this=x))))


def _within(node: Node) -> Node:
    return node if isinstance(node, exp.Column) else exp.Paren(this=node)


_OF_NODES: dict[str, Callable[..., Node]] = {
    "product": times,
    "quotient": over,
    "power": _power,
    "<": less,
    "<=": lambda a, b: exp.LTE(this=a, expression=b),
    "and": lambda a, b: exp.And(this=_within(a), expression=_within(b)),
    "or": lambda a, b: exp.Or(this=_within(a), expression=_within(b)),
    "not": lambda a: exp.Not(this=_within(a)),
    "missing": lambda a: exp.Is(this=_within(a), expression=exp.Null()),
    "case": lambda condition, a, b: cases((condition, a), default=b),
    "log": _logarithm,
    "log1p": lambda x: exp.Ln(this=plus(literal(1.0), x)),
    "exp": lambda x: exp.Exp(this=x),
    "sqrt": lambda x: exp.Sqrt(this=x),
    "floor": lambda x: exp.Floor(this=x),
    "whole": lambda x: x,
}
