"""Warnings of dates that the first rows of `partial_fit` do not show, so that the model differs from one fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from posteriori.fitting.fitted import Fitted
from posteriori.learning.fit import TrainingRows
from posteriori.model.blocks import bins_of
from posteriori.reading.column_kinds import Parts, see_times
from posteriori.tables.times import TimesSeen, TimeType, parts_of
from posteriori.user_warnings import warn

_LATEST = 2.0**62  # microseconds; a file may state any number


def warn_of_further_dates(models: Sequence[Fitted], rows: TrainingRows) -> None:
    """Warn of columns of dates of which a fit of all rows would read other parts, or cut the days at other points.

    The parts and the cut points are those of the first rows.

    Parameters
    ----------
    models : sequence of Fitted
        The model of the earlier rows, or the members of a pool, which have the same columns.
    rows : TrainingRows
        Further rows.
    """
    dates: Parts = models[0].recipe.columns.dates
    if dates == "ignore":
        return
    columns: dict[int, list[int]] = {}
    types: dict[int, TimeType] = {}
    for j, (position, column) in enumerate(zip(rows.source.positions, models[0].schema.columns, strict=True)):
        if column.part is not None:
            columns.setdefault(position, []).append(j)
            types[position] = column.part.type
    chosen = [bins_of(one.model.blocks) for one in models]
    are_cut = {j for bins in chosen for j, points in bins.items() if not isinstance(points, tuple)}
    for position, seen in see_times(rows.source.table, types).items():
        if seen.lowest is not None:
            _warn_of_column(models[0], columns[position], seen, dates, not are_cut.isdisjoint(columns[position]))


def _warn_of_column(fitted: Fitted, places: Sequence[int], seen: TimesSeen, dates: Parts, is_cut: bool) -> None:
    parts = [part for j in places if (part := fitted.schema.columns[j].part) is not None]
    name, type_ = parts[0].of, parts[0].type
    before = _seen_before(fitted, places, type_)
    wanted = None if isinstance(dates, str) else dates
    read = [part.name for part in parts_of(name, type_, before + seen, wanted)]
    new = [one for one in read if one not in {part.name for part in parts}]
    of_first_rows = [f"leaves out its {', '.join(new)}, which did not vary in the first rows"] if new else []
    if is_cut and before.lowest is not None and (before + seen).bounds != before.bounds:
        of_first_rows.append("keeps the cut points of the first rows, which end elsewhere")
    if of_first_rows:
        named = f", or name the parts from the first call on: columns=po.Columns(dates={read})"
        warn(
            f"column {name!r} holds other {type_.title} than the first rows: the model {', and '.join(of_first_rows)}, "
            f"and differs from a fit of all rows; fit all rows at once{'' if is_cut else named}"
        )


def _seen_before(fitted: Fitted, places: Sequence[int], type_: TimeType) -> TimesSeen:
    """Return a summary of a column in the earlier rows, from their first and their last time.

    A part that the model does not read has one value in the first rows, so that these two show it.
    """
    nothing = TimesSeen.of(type_.missing(0), type_)
    if fitted.ranges is None:
        return nothing
    for j in places:
        column = fitted.schema.columns[j]
        if column.part is not None and column.part.is_number and fitted.ranges.has_numbers[j]:
            ends = np.array([fitted.ranges.lowest[j], fitted.ranges.highest[j]])
            since = np.round(ends * column.part.unit)
            if (np.abs(since) < _LATEST).all():
                return TimesSeen.of((since.astype(np.int64) + column.part.zero).view(type_.unit), type_)
    return nothing
