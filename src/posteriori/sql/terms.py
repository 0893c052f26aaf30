"""Expressions of SQL as terms, each made once, and the operations on them and on numbers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from posteriori.sql.dialects import POSSIBLE

CHOICES = ("choice", "case")  # of one of their arguments
CONDITIONS = ("<", "<=", "=", "and", "or", "not", "missing")


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
        if self.operation in CHOICES:  # a branch may be needed in fewer rows than the choice
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
        if is_whole(a) and is_whole(b):
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
        if is_whole(a) and is_whole(b):
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
        codes = _codes_of((a, b)) if is_whole(a) and is_whole(b) else None
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
        if all(is_whole(part) for part in parts):
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
            of_codes = _codes_of(values) if all(is_whole(value) for value in values) else None
            return self.make("choice", code, codes.start, *values, codes=of_codes)

        return at(constant, pairs)


def is_whole(part: Any) -> bool:
    """Return whether an entry is a whole number, or a term of them."""
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
