"""Continuous variables of a network: a normal density whose mean is linear in the continuous parents."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from posteriori.networks.graph.cpt import check_states
from posteriori.networks.graph.naming import States, first_repeated, state_by_state
from posteriori.networks.inference.printing import aligned
from posteriori.support.typing import Array

_MOST_ROWS = 40


@dataclass(frozen=True, eq=False)
class LinearGaussian:
    r"""p(variable | parents): one normal density per configuration d of the discrete parents (CLG).

    .. math:: p(x \mid d, u) = \mathcal{N}(x;\; a_d + b_d^\top u,\; \sigma_d^2)

    Parameters
    ----------
    variable : str
    continuous : sequence of str
        The continuous parents u, in the order of the coefficients.
    parents : mapping from str to sequence of states
        The discrete parents, in the order of the axes.
    intercept : array-like (K of each parent…)
        a_d, in data units; a number if there are no discrete parents.
    coefficients : array-like (K of each parent…, number of continuous parents)
        b_d.
    variance : array-like (K of each parent…)
        σ²_d, in squared data units, at least 0.

    Raises
    ------
    TypeError
        A name is no string.
    ValueError
        A shape is wrong, a number is not finite, or a variance is negative.

    References
    ----------
    Lauritzen & Wermuth (1989), Graphical models for associations between variables, some of which are qualitative and
    some quantitative, Annals of Statistics 17.

    Examples
    --------
    >>> from posteriori.networks import LinearGaussian
    >>> LinearGaussian("weight", ["height"], {"sex": ["f", "m"]}, [-50, -40], [[0.7], [0.75]], [40, 60])
    p(weight | sex, height)
    sex  mean               variance
    f    -50 + 0.7·height   40
    m    -40 + 0.75·height  60
    """

    variable: str
    continuous: tuple[str, ...]
    parents: Mapping[str, States]
    intercept: Array
    coefficients: Array
    variance: Array

    def __post_init__(self) -> None:
        continuous = (self.continuous,) if isinstance(self.continuous, str) else tuple(self.continuous)
        if not isinstance(self.parents, Mapping):
            raise TypeError(f"the discrete parents of {self.variable!r} are {self.parents!r}; map each to its states")
        names = (self.variable, *continuous, *self.parents)
        for name in names:
            if not isinstance(name, str):
                raise TypeError(f"{name!r} is a {type(name).__name__}; the names of variables are strings")
        if len(set(names)) < len(names):
            raise ValueError(f"{first_repeated(names)!r} occurs twice in the density of {self.variable!r}")
        parents = {name: check_states(name, listed) for name, listed in self.parents.items()}
        shape = tuple(map(len, parents.values()))
        checked = {
            "intercept": _numbers(self.variable, "intercept", self.intercept, shape),
            "coefficients": _numbers(self.variable, "coefficients", self.coefficients, (*shape, len(continuous))),
            "variance": _numbers(self.variable, "variance", self.variance, shape),
        }
        if (checked["variance"] < 0).any():
            where = np.argwhere(checked["variance"] < 0)[0]
            at = f" where {state_by_state(parents, where)}" if parents else ""
            raise ValueError(f"the variance of {self.variable!r} is negative{at}; it must be at least 0")
        for name, value in {"continuous": continuous, "parents": parents, **checked}.items():
            object.__setattr__(self, name, value)

    @property
    def all_parents(self) -> tuple[str, ...]:
        """The parents: the discrete ones, then the continuous ones."""
        return (*self.parents, *self.continuous)

    @property
    def n_parameters(self) -> int:
        """The number of free parameters: an intercept, the coefficients and a variance per configuration."""
        return math.prod(map(len, self.parents.values())) * (len(self.continuous) + 2)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearGaussian):
            return NotImplemented
        mine, theirs = (
            (one.variable, one.continuous, list(one.parents.items()), one.intercept.tolist(), one.coefficients.tolist())
            for one in (self, other)
        )
        return mine == theirs and bool(np.array_equal(self.variance, other.variance))

    def __hash__(self) -> int:
        return hash((self.variable, self.continuous, tuple(self.parents)))

    def __repr__(self) -> str:
        rows = [[*self.parents, "mean", "variance"]]
        positions = list(np.ndindex(self.intercept.shape))
        for position in positions[:_MOST_ROWS]:
            mean = f"{self.intercept[position]:g}"
            for name, b in zip(self.continuous, self.coefficients[position].tolist(), strict=True):
                mean += f" {'-' if b < 0 else '+'} {abs(b):g}·{name}"
            cells = [str(known[k]) for known, k in zip(self.parents.values(), position, strict=True)]
            rows.append([*cells, mean, f"{self.variance[position]:g}"])
        more = [f"… and {len(positions) - _MOST_ROWS:,} more rows"] if len(positions) > _MOST_ROWS else []
        given = f" | {', '.join(self.all_parents)}" if self.all_parents else ""
        return "\n".join([f"p({self.variable}{given})", *aligned(rows, len(rows[0])), *more])


def gaussian_from(
    variable: str,
    parents: Sequence[str],
    states: Mapping[str, States],
    intercept: Any,
    coefficients: Any,
    variance: Any,
) -> LinearGaussian:
    """Return a density from the arguments of `BayesianNetwork.add_gaussian`.

    Parameters
    ----------
    variable : str
    parents : sequence of str
        All parents in the order of the edges; those with states are the discrete ones.
    states : mapping from str to tuple of states
    intercept, variance : number, array-like, or mapping
        A mapping goes from a state of the discrete parent, or a tuple of states, to a number.
    coefficients : mapping from str to number, array-like or mapping, or array-like (K…, m)

    Raises
    ------
    ValueError
        A coefficient is missing, or names no continuous parent; or as in `LinearGaussian`.
    """
    discrete = {name: states[name] for name in parents if name in states}
    continuous = tuple(name for name in parents if name not in states)
    shape = tuple(map(len, discrete.values()))
    if coefficients is None:
        coefficients = {}
    if isinstance(coefficients, Mapping):
        for name in coefficients:
            if name not in continuous:
                raise ValueError(f"coefficients of {variable!r} names {name!r}, which is no continuous parent")
        for name in continuous:
            if name not in coefficients:
                raise ValueError(f"{variable!r} has no coefficient of its parent {name!r}; add it, 0 for none")
        columns = [_by_state(variable, coefficients[name], discrete, shape) for name in continuous]
        coefficients = np.stack(columns, axis=-1) if columns else np.zeros((*shape, 0))
    values = (_by_state(variable, given, discrete, shape) for given in (intercept, variance))
    first, last = values
    return LinearGaussian(variable, continuous, discrete, first, coefficients, last)


def _by_state(variable: str, given: Any, discrete: Mapping[str, States], shape: tuple[int, ...]) -> Array:
    """Return a parameter for each configuration of the discrete parents."""
    if not isinstance(given, Mapping):
        value = np.asarray(given, np.float64)
        return np.broadcast_to(value, shape).copy() if value.ndim == 0 else value
    table = np.full(shape, np.nan)
    for key, value in given.items():
        cells = key if isinstance(key, tuple) else (key,)
        if len(cells) != len(discrete):
            raise ValueError(f"{key!r} names {len(cells)} states; {variable!r} has {len(discrete)} discrete parents")
        place = []
        for cell, (name, known) in zip(cells, discrete.items(), strict=True):
            if cell not in known:
                raise ValueError(f"{name!r} has no state {cell!r}; its states are {', '.join(map(repr, known))}")
            place.append(known.index(cell))
        table[tuple(place)] = value
    if np.isnan(table).any():
        where = state_by_state(discrete, np.argwhere(np.isnan(table))[0])
        raise ValueError(f"a parameter of {variable!r} is missing where {where}; give one for each configuration")
    return table


def _numbers(variable: str, what: str, values: Any, shape: tuple[int, ...]) -> Array:
    try:
        array = np.array(values, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"the {what} of {variable!r} is {values!r}; give numbers") from None
    if not shape and array.shape == (1,):  # model files keep a number as an array of one
        array = array.reshape(())
    if array.shape != shape:
        raise ValueError(f"the {what} of {variable!r} has shape {array.shape}; {shape} is needed")
    if not np.isfinite(array).all():
        raise ValueError(f"the {what} of {variable!r} holds a number that is not finite")
    array.setflags(write=False)
    return array
