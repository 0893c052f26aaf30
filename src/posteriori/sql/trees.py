"""The log density of a row under trees, as expressions: messages sum and integrate missing cells out.

As in `kernels/loops/families.py`, messages pass from the leaves to the root. A column whose cell is missing collects
the messages of its children, and sums or integrates over its own values. The messages are NULL where the cell is
present, so that they cost nothing there.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from sqlglot import exp

from posteriori.densities import TreeParameters
from posteriori.sql.dialects import (
    Node,
    cases,
    choice,
    column,
    literal,
    minus,
    missing,
    over,
    plus,
    real,
    square,
    times,
    total,
)
from posteriori.sql.factors import Factor, FactorContext
from posteriori.sql.steps import SelectSteps

Make = Callable[[], Node]  # makes a new expression for each use

_LOG_TWO_PI = math.log(2.0 * math.pi)


def tree_factors(context: FactorContext, columns: Sequence[int], parameters: TreeParameters) -> Iterator[Factor]:
    """Yield the term of each column in log p(x | z); 0 where its parent is missing, whose term includes it."""
    if context.weighted:
        raise ValueError(
            f"{context.model} has factor weights on a tree, which to_sql cannot write; it writes trees without weights"
        )
    steps, cells = context.steps, context.cells
    names = [
        cells.centred(j, float(parameters.centre[position]))[0] if is_number else cells.code(j)
        for j, position, is_number in zip(columns, parameters.position.tolist(), parameters.continuous, strict=True)
    ]
    centres = {
        j: float(parameters.centre[position]) - cells.centred(columns[j], float(parameters.centre[position]))[1]
        for j, position in enumerate(parameters.position.tolist())
        if parameters.continuous[j]
    }
    for z in range(parameters.n_components):
        tree = _ComponentTree(steps, parameters, names, centres, columns[0], z)
        yield from ((z, columns[j], node) for j, node in tree.factors())


class _ComponentTree:
    """The tree of one component."""

    def __init__(
        self,
        steps: SelectSteps,
        parameters: TreeParameters,
        names: list[str],
        centres: dict[int, float],
        first: int,
        z: int,
    ) -> None:
        self._steps = steps
        self._parameters = parameters
        self._names = names
        self._centres = centres
        self._label = f"t{first}_{z}"
        self._z = z
        self._parents = parameters.of_each(parameters.parents)[z].tolist()
        self._order = parameters.of_each(parameters.order)[z].tolist()
        self._children: dict[int, list[int]] = {}
        for j in self._order:
            if self._parents[j] >= 0:
                self._children.setdefault(self._parents[j], []).append(j)
        self._messages: dict[int, list[str]] = {}  # per category: log λ of each value; per number: g, h, k

    def factors(self) -> Iterator[tuple[int, Node]]:
        """Yield the term of each column, children before their parents."""
        for j in reversed(self._order):
            if j in self._children:
                self._collect_messages(j)
            yield j, self._factor(j)

    def _factor(self, j: int) -> Node:
        parent = self._parents[j]
        # A categorical parent of width 1 has no category, so that it is missing in every row.
        if parent < 0 or (not self._is_number(parent) and self._width(parent) == 1):
            return self._message(j, 0)
        if self._is_number(parent):
            return cases((missing(self._names[parent]), literal(0.0)), default=self._message(j, 0))
        values = [self._message(j, a) for a in range(1, self._width(parent))]
        return choice(self._names[parent], values, literal(0.0))

    def _width(self, j: int) -> int:
        return int(self._parameters.widths[j])

    def _is_number(self, j: int) -> bool:
        return bool(self._parameters.continuous[j])

    # Messages ---------------------------------------------------------------------------------------------------

    def _message(self, j: int, a: int) -> Node:
        """Return log p(x_j | parent, z) for parent code a; where x_j is missing, the message of its subtree."""
        return self._of_number(j, a) if self._is_number(j) else self._of_category(j, a)

    def _slots(self, j: int, a: int) -> list[float]:
        start = int(self._parameters.start[self._z, j]) + a * self._width(j)
        slots: list[float] = self._parameters.table[start + 1 : start + self._width(j)].tolist()
        return slots

    def _of_category(self, j: int, a: int) -> Node:
        slots = self._slots(j, a)
        unknown = self._summed(j, a, slots) if j in self._messages and slots else literal(0.0)
        return real(choice(self._names[j], [literal(log_p) for log_p in slots], unknown)) if slots else literal(0.0)

    def _summed(self, j: int, a: int, slots: list[float]) -> Node:
        """Return log Σ_x p(x | a)·λ(x) over the values x of a missing category, without those of probability 0."""
        name = f"{self._label}_m{j}_{a}"
        known = self._steps.known(name)
        if known is not None:
            return column(known)
        possible = [(p, message) for p, message in zip(slots, self._messages[j], strict=True) if p > -math.inf]
        if not possible:
            return literal(-math.inf)
        peak = self._steps.define(
            f"{name}_peak",
            self._if_missing(j, self._steps.dialect.largest([plus(literal(p), column(x)) for p, x in possible])),
        )
        terms = [(plus(literal(p), column(x)), column(peak)) for p, x in possible]
        return self._steps.value(name, self._if_missing(j, plus(column(peak), self._steps.dialect.log_of_sum(terms))))

    def _if_missing(self, j: int, node: Node) -> Node:
        return cases((missing(self._names[j]), node))

    def _collect_messages(self, j: int) -> None:
        """Define the sums of the messages of all children of column j, for rows where it is missing."""
        label, children = f"{self._label}_h{j}", self._children[j]
        if not self._is_number(j):
            messages = [[self._message(c, b) for c in children] for b in range(1, self._width(j))]
        else:  # products of Gaussians: the canonical parameters g, h and k of the children add up
            messages = [list(nodes) for nodes in zip(*(self._canonical(c) for c in children), strict=True)]
        self._messages[j] = [
            self._steps.define(f"{label}_{k}", self._if_missing(j, total(nodes))) for k, nodes in enumerate(messages)
        ]

    # Numbers ----------------------------------------------------------------------------------------------------

    def _line(self, j: int, a: int) -> tuple[float, float, float]:
        """Return intercept, slope and variance of number j given its parent, both about their centres."""
        intercept, slope, variance = self._parameters.normal[int(self._parameters.start[self._z, j]) + a].tolist()
        parent = self._parents[j]
        moved = intercept + self._centres[j] - (slope * self._centres[parent] if parent in self._centres else 0.0)
        return moved, slope, variance

    def _of_number(self, j: int, a: int) -> Node:
        """Return log N(x; mean, variance), or log ∫ N(x; mean, variance)·λ(x) dx where x is missing."""
        intercept, slope, variance = self._line(j, a)
        parent = self._parents[j]
        regression = parent >= 0 and self._is_number(parent)

        def mean() -> Node:
            if not regression:
                return literal(intercept)
            return plus(literal(intercept), times(literal(slope), column(self._names[parent])))

        distance = times(literal(0.5 / variance), square(lambda: minus(column(self._names[j]), mean())))
        seen = minus(literal(-0.5 * (_LOG_TWO_PI + math.log(variance))), distance)
        unknown = self._integral(j, mean, variance) if j in self._messages else literal(0.0)
        return cases((missing(self._names[j]), unknown), default=seen)

    def _integral(self, j: int, mean: Make, variance: float) -> Node:
        """Return log ∫ N(x; m, v)·exp(g + h·x − ½·k·x²) dx.

        It is g − ½·log(1 + v·k) + (h·m + ½·v·h² − ½·k·m²) / (1 + v·k).
        """
        g, h, k = (partial(column, name) for name in self._messages[j])
        parts = total(
            [
                times(h(), mean()),
                times(literal(0.5 * variance), h(), h()),
                times(literal(-0.5), k(), mean(), mean()),
            ]
        )
        return total([g(), self._log_shrunk(k, variance), over(parts, self._spread(k, variance))])

    def _spread(self, k: Make, variance: float) -> Node:
        return plus(literal(1.0), times(literal(variance), k()))

    def _log_shrunk(self, k: Make, variance: float) -> Node:
        return times(literal(-0.5), exp.Ln(this=self._spread(k, variance)))

    def _canonical(self, j: int) -> tuple[Node, Node, Node]:
        """Return the message g + h·u − ½·k·u² of number j to its missing parent u, as (g, h, k)."""
        intercept, slope, variance = self._line(j, 0)

        def apart() -> Node:
            return minus(column(self._names[j]), literal(intercept))

        height = literal(-0.5 * (_LOG_TWO_PI + math.log(variance)))
        seen = (
            minus(height, times(literal(0.5 / variance), square(apart))),
            times(literal(slope / variance), apart()),
            real(literal(slope * slope / variance)),
        )
        unknown: tuple[Node, Node, Node] = (literal(0.0), literal(0.0), literal(0.0))
        if j in self._messages:
            h, k = (partial(column, name) for name in self._messages[j][1:])
            unknown = (
                self._integral(j, lambda: literal(intercept), variance),
                over(
                    times(minus(h(), times(k(), literal(intercept))), literal(slope)),
                    self._spread(k, variance),
                ),
                over(times(k(), literal(slope * slope)), self._spread(k, variance)),
            )
        first, second, third = (
            cases((missing(self._names[j]), if_missing), default=if_seen)
            for if_missing, if_seen in zip(unknown, seen, strict=True)
        )
        return first, second, third
