"""A fitted posterior as an ONNX graph: ndonnx records the functions of arrays that NumPy runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np

from posteriori.model import Posterior
from posteriori.program.cells import ArrayCells
from posteriori.program.model import log_posterior
from posteriori.tables import Column, Schema
from posteriori.version import __version__

_OUTPUTS = ("label", "probabilities")
_MOST_BYTES = 2**31  # of a message of Protocol Buffers
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
    try:
        import ndonnx  # noqa: F401
    except ImportError as error:
        raise ImportError("ONNX needs the packages onnx and ndonnx: pip install 'posteriori[onnx]'") from error
    schema = posterior.schema
    inputs = {column.name: _input(column) for column in schema.columns if not column.is_ignored}
    with _quick_constants():
        model = _written(posterior, labels, names, inputs, _cells(schema, inputs))
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


def _written(
    posterior: Posterior, labels: Sequence[Any], names: Sequence[str], inputs: dict[str, Any], cells: ArrayCells
) -> Any:
    import ndonnx as ndx

    log_p = log_posterior(posterior, cells, names)
    undefined = ndx.isnan(log_p[:, 0])
    fallback = int(posterior.models[0].class_log_prior.argmax())
    best = ndx.where(undefined, fallback, ndx.argmax(ndx.where(ndx.isnan(log_p), -np.inf, log_p), axis=1))
    outputs = dict(zip(_OUTPUTS, (ndx.take(ndx.asarray(_labels(labels)), best, axis=0), ndx.exp(log_p)), strict=True))
    model = ndx.build(inputs, outputs)
    model.producer_name, model.producer_version = "posteriori", __version__
    return model


def _labels(labels: Sequence[Any]) -> Any:
    kinds = {type(label) for label in labels}
    if len(kinds) > 1:
        raise ValueError("the classes are of several types, and an output of ONNX is of one; make them strings")
    return np.array(labels)


def _input(column: Column) -> Any:
    """Return the input of a column, (N,): numbers or text."""
    import ndonnx as ndx

    if column.name in ("", *_OUTPUTS):
        raise ValueError(f"a column is named {column.name!r}, which no input of a graph is; rename it and train again")
    if column.kind == "counts" or column.part is not None:
        what = "dates or times" if column.part is not None else "text or a block of words"
        raise ValueError(f"column {column.source!r} holds {what}, which no ONNX graph of posteriori reads")
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

    some = next(iter(inputs.values()))
    none = ndx.astype(ndx.isnan(some) if some.dtype == ndx.float64 else some == "", ndx.int64)[:, None][:, :0]
    numbers, codes, unseen = [], [], []
    for j in schema.of_kind("continuous"):
        x = inputs[schema.names[j]]
        numbers.append(ndx.full_like(x, np.nan) if schema.columns[j].valueless else x)
    for j in schema.of_kind("categorical"):
        code, is_missing = _coded(inputs[schema.names[j]], schema.columns[j])
        codes.append(code)
        unseen.append((code == 0) & ~is_missing if schema.columns[j].categories else is_missing & ~is_missing)
    return ArrayCells(
        schema,
        ndx.stack(numbers, axis=1) if numbers else ndx.astype(none, ndx.float64),
        ndx.stack(codes, axis=1) if codes else none,
        ndx.stack(unseen, axis=1) if unseen else ndx.astype(none, ndx.bool),
    )


def _coded(cells: Any, column: Column) -> tuple[Any, Any]:
    """Return the codes of a column of categories, 0 of others, and which cells are missing."""
    import ndonnx as ndx
    from ndonnx.extensions import static_map

    codes: dict[Any, int] = {}
    for code, category in enumerate(column.categories, start=1):
        names = [str(category), str(category).lower()] if isinstance(category, bool) else [category]
        codes |= dict.fromkeys(names, code)
    if cells.dtype == ndx.float64:
        missing, codes = ndx.isnan(cells), {float(category): code for category, code in codes.items()}
    else:
        missing = cells == "" if "" not in codes else (cells == "") & (cells != "")
    return static_map(cells, codes or {"": 0}, default=0), missing
