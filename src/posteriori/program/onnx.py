"""A fitted model as an ONNX graph: ndonnx records the functions of arrays that NumPy runs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from posteriori.model import Posterior
from posteriori.model.predictive import NumberCells, mean_of, quantiles_of
from posteriori.program.cells import ArrayCells
from posteriori.program.model import log_posterior
from posteriori.support.arrays import Arrays
from posteriori.tables import Column, Schema
from posteriori.tables.times import WEEKDAYS, DatePart
from posteriori.version import __version__

_OF_CLASSES = ("label", "probabilities")
_OF_NUMBERS = ("prediction", "prediction_low", "prediction_high", "probabilities")
_INTERVAL = np.array([[0.05, 0.95]])
_MOST_BYTES = 2**31  # of a message of Protocol Buffers
_NO_TIME, _DAY = -(2**63), 86_400_000_000  # of NumPy, and microseconds
_EXACT = 2**53  # whole numbers beyond it are not all of double precision


def write(posterior: Posterior, labels: Sequence[Any], names: Sequence[str]) -> Any:
    """Return the graph of a posterior, whose models have names in messages: see `Classifier.to_onnx`.

    Raises
    ------
    ValueError
        A column, a density or the classes have no form in ONNX.
    ImportError
        ndonnx is not installed.
    """

    def outputs(cells: ArrayCells) -> list[Arrays]:
        import ndonnx as ndx

        log_p = log_posterior(posterior, cells, names)
        undefined = ndx.isnan(log_p[:, 0])
        fallback = int(posterior.models[0].class_log_prior.argmax())
        best = ndx.where(undefined, fallback, ndx.argmax(ndx.where(ndx.isnan(log_p), -np.inf, log_p), axis=1))
        return [ndx.take(ndx.asarray(_labels(labels)), best, axis=0), ndx.exp(log_p)]

    return _graph(posterior.schema, _OF_CLASSES, outputs)


def write_numbers(schema: Schema, target: NumberCells, probability: Callable[[ArrayCells], Arrays]) -> Any:
    """Return the graph of the density of a number, (n, G), NaN in rows that are refused: see `SumRegressor.to_onnx`.

    Raises
    ------
    ValueError
        A column has no form in ONNX.
    ImportError
        ndonnx is not installed.
    """

    def outputs(cells: ArrayCells) -> list[Arrays]:
        p = probability(cells)
        refused = cells.xp.isnan(p[:, :1])
        ends = quantiles_of(target, p, cells.zeros() + _INTERVAL)
        numbers = cells.xp.concat([mean_of(target, p)[:, None], ends], axis=1)
        numbers = cells.xp.where(refused, np.nan, numbers)
        return [*(numbers[:, k] for k in range(3)), p]

    return _graph(schema, _OF_NUMBERS, outputs)


def _graph(schema: Schema, names: Sequence[str], outputs: Callable[[ArrayCells], Sequence[Arrays]]) -> Any:
    """Return a graph with an input for each column, and outputs of these names."""
    try:
        import ndonnx
    except ImportError as error:
        raise ImportError("ONNX needs the packages onnx and ndonnx: pip install 'posteriori[onnx]'") from error
    inputs = {column.source: _input(column, names) for column in schema.columns if not column.is_ignored}
    with _quick_constants():
        model = ndonnx.build(inputs, dict(zip(names, outputs(_cells(schema, inputs)), strict=True)))
    model.producer_name, model.producer_version = "posteriori", __version__
    if (size := model.ByteSize()) >= _MOST_BYTES:
        raise ValueError(
            f"the graph would have {size / 2**30:.1f} GB, and a file of ONNX has at most 2; fit fewer columns or bins"
        )
    return model


def _quick_constants() -> Any:
    """Return a context in which constants are computed in a quarter of the usual time, if this spox has it."""
    try:
        from spox._future import ValuePropBackend, value_prop_backend
    except ImportError:
        return nullcontext()
    return value_prop_backend(ValuePropBackend.REFERENCE)


def _labels(labels: Sequence[Any]) -> Any:
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        raise ValueError("the classes are of several types, and an output of ONNX is of one; make them strings")
    return np.array(labels)


def _input(column: Column, outputs: Sequence[str]) -> Any:
    """Return the input of a column, (N,), beside outputs of these names: numbers or text."""
    import ndonnx as ndx

    if column.name in ("", *outputs):
        raise ValueError(f"a column is named {column.name!r}, which no input of a graph is; rename it and train again")
    if column.kind == "counts":
        raise ValueError(
            f"column {column.name!r} holds text or a block of words, which no ONNX graph of posteriori reads"
        )
    if column.part is not None:
        if column.part.type.zone not in ("", "UTC"):
            raise ValueError(
                f"column {column.source!r} holds times on the clock of {column.part.type.zone}, which ONNX does not "
                "know; convert them to UTC and train again"
            )
        return ndx.argument(shape=("N",), dtype=ndx.int64)
    if column.kind == "continuous" or {*column.kinds} == {"numbers"}:
        if any(isinstance(cell, int) and abs(cell) > _EXACT for cell in column.categories):
            raise ValueError(
                f"column {column.name!r} has categories beyond 2⁵³, which are not exact; make them strings"
            )
        return ndx.argument(shape=("N",), dtype=ndx.float64)
    if len(column.kinds) > 1:
        raise ValueError(f"column {column.name!r} holds {' and '.join(sorted(column.kinds))}; make them strings")
    return ndx.argument(shape=("N",), dtype=ndx.utf8)


def _cells(schema: Schema, inputs: dict[str, Any]) -> ArrayCells:
    """Return the cells of the inputs under a schema."""
    import ndonnx as ndx

    none = ndx.astype(_is_missing(next(iter(inputs.values()))), ndx.int64)[:, None][:, :0]
    numbers, codes, unseen = [], [], []
    for column in (schema.columns[j] for j in schema.of_kind("continuous")):
        x = inputs[column.source] if column.part is None else _time(inputs[column.source], column.part)
        numbers.append(ndx.full_like(ndx.astype(x, ndx.float64), np.nan) if column.valueless else x)
    for column in (schema.columns[j] for j in schema.of_kind("categorical")):
        cells = inputs[column.source]
        codes.append(_coded(cells, column))
        is_missing = ndx.asarray(False) if "" in column.categories else _is_missing(cells)
        unseen.append((codes[-1] == 0) & ~is_missing & bool(column.categories))
    return ArrayCells(
        schema,
        ndx.stack(numbers, axis=1) if numbers else ndx.astype(none, ndx.float64),
        ndx.stack(codes, axis=1) if codes else none,
        ndx.stack(unseen, axis=1) if unseen else ndx.astype(none, ndx.bool),
    )


def _is_missing(cells: Any) -> Any:
    """Return which cells of an input are missing: NaN, the least whole number, or text without a character."""
    import ndonnx as ndx

    if cells.dtype == ndx.float64:
        return ndx.isnan(cells)
    return cells == _NO_TIME if cells.dtype == ndx.int64 else cells == ""


def _coded(cells: Any, column: Column) -> Any:
    """Return the codes of a column of categories, 0 of missing cells and of others."""
    import ndonnx as ndx
    from ndonnx.extensions import static_map

    codes: dict[Any, int] = {}
    for code, category in enumerate(column.categories, start=1):
        names = [str(category), str(category).lower()] if isinstance(category, bool) else [category]
        codes |= dict.fromkeys(names, code)
    if column.part is not None:
        days = column.part.name == "weekday"
        of_parts = {WEEKDAYS.index(day) if days else int(day): code for day, code in codes.items()}
        of_times = static_map(_time(cells, column.part), of_parts or {0: 0}, default=0)
        return ndx.where(_is_missing(cells), 0, of_times)
    if cells.dtype == ndx.float64:
        codes = {float(category): code for category, code in codes.items()}
    return static_map(cells, codes or {"": 0}, default=0)


def _time(since: Any, part: DatePart) -> Any:
    """Return a part of times, microseconds since 1970: a number, NaN where missing, or a whole number."""
    import ndonnx as ndx

    if part.is_number:
        number = ndx.astype(since - part.zero, ndx.float64) / float(part.unit)
        return ndx.where(_is_missing(since), np.nan, number)
    days = since // _DAY
    if part.name == "hour":
        return (since - days * _DAY) // (_DAY // 24)
    if part.name == "weekday":
        return (days + 3) % 7  # 1970-01-01 was a Thursday
    # Years of 365.2425 days that begin in March (Hinnant, chrono-compatible low-level date algorithms, 2021).
    era = (days + 719_468) // 146_097
    of_era = days + 719_468 - era * 146_097
    year = (of_era - of_era // 1_460 + of_era // 36_524 - of_era // 146_096) // 365
    of_year = of_era - (365 * year + year // 4 - year // 100)
    month = (5 * of_year + 2) // 153
    month = ndx.where(month < 10, month + 3, month - 9)
    return month if part.name == "month" else year + era * 400 + ndx.astype(month <= 2, ndx.int64)
