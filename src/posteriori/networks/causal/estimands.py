"""Formulas of causal effects over p(observed variables): as text, and as numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from posteriori.networks.inference.printing import heading
from posteriori.typing import Array

Names = tuple[str, ...]
Table = tuple[Names, Array]  # an axis for each name
Joint = Callable[[Names], Array]


class Estimand(Protocol):
    """A formula over conditional probabilities of observed variables."""

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""

    def evaluate(self, joint: Joint) -> Table:
        """Return its value for every configuration of the free variables; `joint` returns p(names)."""

    def __str__(self) -> str: ...


@dataclass(frozen=True)
class Conditional:
    """p(variables | given) of the observed distribution."""

    variables: Names
    given: Names = ()

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return frozenset(self.variables + self.given)

    def evaluate(self, joint: Joint) -> Table:
        """Return p(variables, given) / p(given), 0 where the given configuration cannot occur."""
        table = joint(self.given + self.variables)
        total = table.sum(axis=tuple(range(len(self.given), table.ndim)), keepdims=True)
        return self.given + self.variables, _divided(table, total)

    def __str__(self) -> str:
        return heading(self.variables, self.given)


@dataclass(frozen=True)
class Product:
    """The product of formulas."""

    parts: tuple[Estimand, ...]

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return frozenset().union(*(part.free for part in self.parts))

    def evaluate(self, joint: Joint) -> Table:
        """Return the product."""
        names = tuple(sorted(self.free))
        value: Array = np.ones(())
        for part in self.parts:
            value = value * _aligned(part.evaluate(joint), names)
        return names, value

    def __str__(self) -> str:
        return " · ".join(f"({part})" if isinstance(part, Quotient) else str(part) for part in self.parts) or "1"


@dataclass(frozen=True)
class SumOut:
    """The sum of a formula over all states of some variables."""

    over: Names
    body: Estimand

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return self.body.free - frozenset(self.over)

    def evaluate(self, joint: Joint) -> Table:
        """Return the sum."""
        names, value = self.body.evaluate(joint)
        kept = tuple(name for name in names if name not in self.over)
        return kept, value.sum(axis=tuple(k for k, name in enumerate(names) if name in self.over))

    def __str__(self) -> str:
        return f"Σ_{{{', '.join(self.over)}}} [{self.body}]"


@dataclass(frozen=True)
class Quotient:
    """The quotient of two formulas; 0/0 is 0."""

    numerator: Estimand
    denominator: Estimand

    @property
    def free(self) -> frozenset[str]:
        """The variables on which its value depends."""
        return self.numerator.free | self.denominator.free

    def evaluate(self, joint: Joint) -> Table:
        """Return the quotient."""
        names = tuple(sorted(self.free))
        return names, _divided(*(_aligned(part.evaluate(joint), names) for part in (self.numerator, self.denominator)))

    def __str__(self) -> str:
        return f"{self.numerator} / {self.denominator}"


def summed(over: frozenset[str], body: Estimand) -> Estimand:
    """Return the sum over the variables of a formula that are among `over`."""
    names = tuple(sorted(over & body.free))
    if not names:
        return body
    if isinstance(body, Conditional) and not frozenset(names) & frozenset(body.given):
        left = tuple(name for name in body.variables if name not in names)
        return Conditional(left, body.given) if left else Product(())
    return SumOut(names, body)


def at(table: Table, order: Names, settings: Mapping[str, int]) -> Array:
    """Return the part of a table at the codes of the settings, with its axes in an order."""
    names, value = table
    kept = tuple(name for name in names if name not in settings)
    part: Array = value[tuple(settings.get(name, slice(None)) for name in names)]
    return part.transpose([kept.index(name) for name in order])


def _aligned(table: Table, names: Names) -> Array:
    """Return an array with an axis for each name, of length 1 where the table does not depend on it."""
    known, value = table
    order = sorted(range(len(known)), key=lambda k: names.index(known[k]))
    shape = [value.shape[known.index(name)] if name in known else 1 for name in names]
    return value.transpose(order).reshape(shape)


def _divided(numerator: Array, denominator: Array) -> Array:
    with np.errstate(invalid="ignore", divide="ignore"):
        quotient: Array = np.where(denominator > 0, numerator / denominator, 0.0)
    return quotient
