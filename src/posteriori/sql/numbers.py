"""The mean and an interval of a number as one SELECT, where the number is a sum of functions of single columns."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np
from sqlglot import exp

from posteriori.model.predictive import PredictiveDensity
from posteriori.regression.features import NumberFeatures
from posteriori.regression.gaussian import FittedGaussian
from posteriori.sql.dates import require_dates
from posteriori.sql.dialects import (
    Dialect,
    Node,
    any_of,
    cases,
    choice,
    column,
    less,
    literal,
    missing,
    plus,
    real,
    times,
    total,
)
from posteriori.sql.steps import CellReader, SelectSteps
from posteriori.sql.translation import kept_columns, require_distinct_names, table_of
from posteriori.support.typing import Array

_PER_SPREAD = 16  # places of a curve within a standard deviation of the target
_MOST_PLACES = 1 << 14
_REACH = 8.0  # standard deviations beyond the cells of the target, where nothing changes any more
_NEAR = 1e-3  # of the standard deviation of a row: how far a line is from the curve at most
_HALVINGS = 50  # to find where a step is

Curve = Callable[[Array], Array]


def select_number(
    value: FittedGaussian, table: str, dialect: str, columns: Sequence[str] | None, coverage: float
) -> str:
    """Return the SELECT that `AdditiveRegressor.to_sql` describes.

    A row is its location, a sum of the parts of columns. Mean and interval are functions of it, which are written as
    lines between places.
    """
    known = Dialect(dialect)
    require_distinct_names(value.schema, known)
    require_dates(list(value.schema.columns), known)
    steps = SelectSteps(known, table_of(table, known))
    kept = kept_columns(value.schema, columns)
    results: dict[str, Node] = {
        name: column(steps.read(f"k{place}", known.named(name))) for place, name in enumerate(kept)
    }
    cells = CellReader(steps, value.schema)
    parts = [steps.define(f"part{place}", node) for place, node in enumerate(_parts(value, cells))]
    location = steps.define("location", total([literal(_constant(value)), *map(column, parts)]))
    unknown = [missing(location)]
    refused = cells.refused()
    if refused is not None:
        unknown.append(refused)
    for name, (places, values) in _curves(value, coverage).items():
        if name in results:
            raise ValueError(
                f"two columns of the SELECT would be named {name!r}; list in columns those of the table to hand on"
            )
        nothing = any_of([one.copy() for one in unknown])
        results[name] = cases((nothing, exp.Null()), default=_lines(location, places, values, 0, len(places)))
    return steps.select(results)


# The location ----------------------------------------------------------------------------------------------------


def _constant(value: FittedGaussian) -> float:
    """Return the part that all rows without an unknown cell share: marks for gaps are in it."""
    features, squares = value.found.design.features, value.squares
    beta = squares.coefficients[:, 0]
    marks = [-gap.share * beta[part.start] for gap, part in zip(features.gaps, features.parts_of_gaps, strict=True)]
    return float(squares.target_mean[0] - squares.mean @ beta + sum(marks))


def _parts(value: FittedGaussian, cells: CellReader) -> Iterator[Node]:
    """Yield the part of each column in the location, NULL where its cell is missing."""
    features, beta = value.found.design.features, value.squares.coefficients[:, 0]
    for one, (line, steps) in zip(features.numbers, features.parts_of_numbers, strict=True):
        yield _part_of_number(cells, one, beta[line.start : steps.stop])
    for of, part in zip(features.categories, features.parts_of_categories, strict=True):
        by_code = np.full(cells.column(of.column).cardinality, -float(of.usual @ beta[part]))
        by_code[of.codes - 1] += beta[part]
        yield real(choice(cells.code(of.column), [literal(one) for one in by_code.tolist()]))


def _reach(value: FittedGaussian) -> tuple[float, float]:
    """Return bounds of the location of any row."""
    features, beta = value.found.design.features, value.squares.coefficients[:, 0]
    ends = np.full(2, _constant(value))
    for one, (line, steps) in zip(features.numbers, features.parts_of_numbers, strict=True):
        of_line = float(beta[line.start]) / one.scale * (np.array(one.reach) - one.centre)
        levels = _levels(one, beta[line.start : steps.stop])
        ends += [of_line.min() + levels.min(), of_line.max() + levels.max()]
    for of, part in zip(features.categories, features.parts_of_categories, strict=True):
        of_codes = np.append(0.0, beta[part]) - of.usual @ beta[part]
        ends += [of_codes.min(), of_codes.max()]
    return float(ends[0]), float(ends[1])


def _levels(one: NumberFeatures, beta: Array) -> Array:
    """Return the sum of the steps between two cuts each, about its mean, (k + 1,)."""
    return np.asarray(np.cumsum(np.append(0.0, beta[1:])) - one.usual @ beta)


def _part_of_number(cells: CellReader, one: NumberFeatures, beta: Array) -> Node:
    """Return a line, which is constant far outside of the training rows, and steps."""
    x = cells.number(one.column)
    near, centre = cells.centred(one.column, one.centre)
    slope, (low, high) = float(beta[0]) / one.scale, one.reach
    line = cases(
        (missing(x), exp.Null()),
        (less(column(x), literal(low)), literal(slope * (low - one.centre))),
        (less(literal(high), column(x)), literal(slope * (high - one.centre))),
        default=times(literal(slope), plus(column(near), literal(centre - one.centre))),
    )
    levels = _levels(one, beta).tolist()
    below = [
        (less(column(x), cells.exactly(cut)), literal(level)) for cut, level in zip(one.cuts, levels[:-1], strict=True)
    ]
    return plus(real(line), real(cases(*below, default=literal(levels[-1])) if below else literal(levels[-1])))


# Functions of the location ---------------------------------------------------------------------------------------


def _curves(value: FittedGaussian, coverage: float) -> dict[str, tuple[Array, Array]]:
    """Return the mean and the ends of the interval by the location, each as places, (k,), and values at these, (k,)."""
    spread = float(np.sqrt(value.usual_variance))
    least, most = _reach(value)
    low, high = value.found.edges[[1, -2]] + np.array([-_REACH, _REACH]) * spread
    low = max(low, least)  # on a scale of logarithms, the edge of cells near 0 is far from any row
    high = max(min(high, most), low + spread)
    n_places = int(min(_PER_SPREAD * (high - low) / spread, _MOST_PLACES)) + 2
    places = np.linspace(low, high, n_places)

    def at(places: Array) -> tuple[Array, Array]:
        around = places[:, np.newaxis], np.full((len(places), 1), spread)
        found = PredictiveDensity(value.cells, value.found.student_around(*around, value.squares.degrees))
        return found.std, np.column_stack([found.mean, found.interval(coverage)])

    deviation, values = at(places)
    curves = {"prediction": _polyline(places, values[:, 0], _NEAR * deviation)}
    for k, name in ((1, "prediction_low"), (2, "prediction_high")):

        def end(places: Array, k: int = k) -> Array:
            return at(places)[1][:, k]

        of_step = value.cells.step > 0
        curves[name] = (
            _stairs(places, values[:, k], end) if of_step else _polyline(places, values[:, k], _NEAR * deviation)
        )
    return curves


def _polyline(x: Array, y: Array, near: Array) -> tuple[Array, Array]:
    """Return a part of the points, so that the lines between them are near all of them (Douglas & Peucker 1973)."""
    kept, open_ = {0, len(x) - 1}, [(0, len(x) - 1)]
    while open_:
        a, b = open_.pop()
        between = slice(a + 1, b)
        on_line = y[a] + (x[between] - x[a]) * (y[b] - y[a]) / (x[b] - x[a])
        away = np.abs(y[between] - on_line) / np.maximum(near[between], np.finfo(np.float64).tiny)
        if len(away) and away.max() > 1.0:
            middle = a + 1 + int(away.argmax())
            kept.add(middle)
            open_ += [(a, middle), (middle, b)]
    chosen = np.array(sorted(kept))
    return x[chosen], y[chosen]


def _stairs(x: Array, y: Array, curve: Curve) -> tuple[Array, Array]:
    """Return both ends of every step of a curve that is constant between steps."""
    before = np.flatnonzero(np.diff(y))
    low, high, under = x[before], x[before + 1], y[before]
    for _ in range(_HALVINGS if len(before) else 0):
        middle = (low + high) / 2.0
        is_under = curve(middle) == under
        low, high = np.where(is_under, middle, low), np.where(is_under, high, middle)
    places = np.concatenate([x[:1], np.column_stack([low, high]).ravel(), x[-1:]])
    return places, np.concatenate([y[:1], np.column_stack([under, y[before + 1]]).ravel(), y[-1:]])


def _lines(location: str, x: Array, y: Array, first: int, last: int) -> Node:
    """Return the lines between points `first` to `last`, found by halving; constant outside of all points."""
    if first + 1 == last:
        return literal(y[first])
    if first + 2 == last:
        slope = float((y[first + 1] - y[first]) / (x[first + 1] - x[first]))
        if slope == 0.0 or not np.isfinite(slope):
            return literal(y[first])
        line = plus(literal(y[first]), times(literal(slope), plus(column(location), literal(-x[first]))))
        below, above = (less(column(location), literal(x[first])), less(literal(x[last - 1]), column(location)))
        ends = [(below, literal(y[first]))] * (first == 0) + [(above, literal(y[last - 1]))] * (last == len(x))
        return cases(*ends, default=line) if ends else line
    middle = (first + last) // 2
    under = _lines(location, x, y, first, middle + 1)
    return cases((less(column(location), literal(x[middle])), under), default=_lines(location, x, y, middle, last))
