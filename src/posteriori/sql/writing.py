"""Terms as expressions of SQL, some of which become columns of the SELECT."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sqlglot import exp

from posteriori.sql.dialects import (
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
from posteriori.sql.terms import CHOICES, CONDITIONS, Term

_DEEPEST = 25  # levels of an expression, before it becomes a column: databases limit the depth
_LARGE = 1e4  # of a number that is added to a cell: above it the last digit of a literal is worth 1e-12
_CENTRE_DIGITS = 14  # decimal digits, which every database reads as the same number


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
        if term.operation == "only" or (self._uses[term] == 2 and term.operation in CHOICES):
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
            if entry.operation in CONDITIONS:
                node = cases((node, whole(1)), default=whole(0))
            if entry.only is not None:  # complete rows need no sum over missing cells
                node = cases((self.node(entry.only), node))
            self._names[entry] = self._steps.define(f"v{len(self._names)}", node)
        name = column(self._names[entry])
        return exp.EQ(this=name, expression=whole(1)) if entry.operation in CONDITIONS else name, 0

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
