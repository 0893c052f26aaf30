"""From rows to learned tables: `posteriori.learning.cells` as weights of a model."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.densities import Binned, BinnedParameters, Categorical
from posteriori.densities.categorical import CategoricalParameters
from posteriori.kernels.loops.cells import CellRows
from posteriori.learning.cells import CellOptimum, CellTables, fit_cells
from posteriori.learning.fit import reject_underflow
from posteriori.learning.weights import check_closed_form, left_out_factors, sampled_rows
from posteriori.model import FLOOR, Block, FactorWeights, GenerativeModel
from posteriori.sources import LabelledSource
from posteriori.statistics import Counts, JointStatistics
from posteriori.support.threads import one_blas_thread
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Codes, Schema

MOST_ROWS = 20_000  # rows that cells are learned from
MOST_FACTORS = 1 << 21  # rows times classes times columns
_ROWS_OF_ONE_SEARCH = 2000  # from which on folds take the λ of all rows: it no longer depends on a fold, and takes time
MOST_DIRECTIONS = 48  # of a random walk over bins
_LEAST_INFORMATION = 0.5  # of rows about a direction, in units of its variance


def learn_cells(
    source: LabelledSource,
    model: GenerativeModel,
    statistics: JointStatistics,
    to_observed_codes: Callable[[Batch], Batch] | None = None,
    sample: Batch | None = None,
    start: FactorWeights | None = None,
) -> FactorWeights:
    """Return tables of learned numbers, one per cell and class, for a naive Bayes of categories and bins.

    Parameters
    ----------
    source : LabelledSource
        The training rows, with labels. At most 20,000 are used, a stratified subsample, and 2²¹ factors.
    model : GenerativeModel
        `check_cells` accepts its blocks.
    statistics : JointStatistics
        The statistics that the model was estimated from.
    to_observed_codes : callable, optional
        Converts a batch of the source to the codes of the model, if these differ.
    sample : Batch, optional
        A sample of the training rows, with labels, from which rows are taken without a pass over the source.
    start : FactorWeights, optional
        Tables of more rows, such as of all where these are those outside of a fold: with 2,000 rows or more, their λ is
        taken, not searched.
    """
    check_closed_form(model, statistics)
    d = len(model.schema.columns)
    reject_underflow(model.schema, range(d), statistics.ranges)  # bins have a least scale, and these learn from it
    batch, _ = sampled_rows(source, sample, min(MOST_ROWS, max(1, MOST_FACTORS // (model.n_components * d))))
    present = np.flatnonzero(np.isfinite(model.log_prior))  # a class of prior 0 has no finite bias
    batch, labels = _of_classes(batch, present)
    seen = batch if to_observed_codes is None else replace(to_observed_codes(batch), assignment=labels)
    places = [b for b, block in enumerate(model.blocks) if isinstance(block.density, Categorical)]
    counts = [statistics.blocks[b] for b in places]
    codes = [cast(Codes, model.blocks[b].tile(seen)).values for b in places]
    blocks = [(model.blocks[b], sums) for b, sums in zip(places, counts, strict=True)]
    with one_blas_thread():  # on small matrices, threads of BLAS cost more than they save
        basis = _block_diagonal([root for block, sums in blocks for root in _prior_roots(model, block, sums)])
    varies = _varying(counts)
    active = np.concatenate([block.columns for block, _ in blocks])[varies]
    factors = np.maximum(left_out_factors(model, statistics, seen)[:, present[:, np.newaxis], active], FLOOR)
    known = np.concatenate([model.parameters[b].log_probability[present] for b in places], axis=1).T
    y_true = np.searchsorted(present, labels.component)
    rows, tables = _rows_and_tables(
        codes, counts, varies, basis, np.maximum(known, FLOOR), factors, y_true, labels.weight
    )
    penalty = None
    if start is not None and len(rows.component) >= _ROWS_OF_ONE_SEARCH:
        penalty, tables = start.penalty, replace(tables, weighed=start.is_generative)
    with one_blas_thread():
        learned = fit_cells(rows, tables, model.log_prior[present], penalty)
    return _as_weights(model, list(zip(places, counts, strict=True)), present, learned)


def _of_classes(batch: Batch, present: Array) -> tuple[Batch, Assignment]:
    """Return the rows of some classes, and their labels."""
    labels = batch.assignment
    assert labels is not None
    kept = np.flatnonzero(np.isin(labels.component, present))
    if len(kept) == len(labels.component):
        return batch, labels
    labels = labels.rows(kept)
    return replace(batch.rows(kept), assignment=labels), labels


def _as_weights(
    model: GenerativeModel,
    counts: Sequence[tuple[int, Counts]],
    present: Array,
    found: CellOptimum,
) -> FactorWeights:
    """Return the learned numbers of the classes that are present as tables of blocks, by their places and counts."""
    varies = _varying([sums for _, sums in counts])
    active = np.concatenate([model.blocks[b].columns for b, _ in counts])[varies]
    weight = np.zeros(len(model.schema.columns))
    weight[active] = found.weight if len(found.weight) else 0.0
    delta = np.zeros((sum(sums.table.shape[1] for _, sums in counts), len(present)))
    delta[_of_columns([sums for _, sums in counts], varies)] = found.delta
    parameters, first = list(model.parameters), 0
    for b, sums in counts:
        widths = np.diff(sums.offsets)
        of_slots = np.repeat(weight[list(model.blocks[b].columns)], widths)
        tables = np.where(of_slots > 0, of_slots * np.maximum(model.parameters[b].log_probability, FLOOR), 0.0)
        tables[present] += delta[first : first + tables.shape[1]].T
        tables[present] += np.outer(found.bias / max(varies.sum(), 1), np.repeat(_varying([sums]), widths))
        first += tables.shape[1]
        parameters[b] = CategoricalParameters(sums.cardinalities, _as_log_probabilities(tables, sums))
    ones, learned = np.ones(len(weight)), bool(len(found.weight))
    return FactorWeights(model.log_prior, ones, tuple(parameters), found.penalty, is_generative=learned)


def check_cells(blocks: Sequence[Block], schema: Schema) -> None:
    """Raise ValueError unless every column is independent of the others given the class, and has categories or bins."""
    for block in blocks:
        if isinstance(block.density, Categorical | Binned):
            continue
        name = schema.columns[block.columns[0]].name
        if block.models_missingness:
            raise ValueError(
                'feature_weights="cells" has no number for a missing cell; leave missing="informative" out, or use '
                'feature_weights="conditional"'
            )
        raise ValueError(
            f'feature_weights="cells" learns one number per category or bin, and column {name!r} has the '
            f'distribution {block.density.name!r}; set distributions="binned", or use feature_weights="conditional"'
        )


def _rows_and_tables(
    codes: Sequence[Array],
    counts: Sequence[Counts],
    varies: Array,
    basis: Any,
    known: Array,
    factors: Array,
    y_true: Array,
    weight: Array,
) -> tuple[CellRows, CellTables]:
    """Return rows and cells of the columns that vary, from the codes of each block.

    A row that is left out moves the factors (n, C, d) of its own class alone. Those of the other classes are the
    log-probabilities `known` (S, C) of its cells, or 0 if no other row shows the category: then no other row reads it.
    """
    sizes = np.concatenate([np.diff(sums.offsets) for sums in counts])[varies]
    starts = np.cumsum(sizes) - sizes
    slots = np.concatenate(codes, axis=1)[:, varies].astype(np.int32, order="C") + starts.astype(np.int32)
    column = np.repeat(np.arange(len(sizes)), sizes)
    is_missing = np.zeros(len(column), np.bool_)
    is_missing[starts] = True
    chosen = _of_columns(counts, varies)
    table = np.where(is_missing[:, np.newaxis], 0.0, np.maximum(known[chosen], FLOOR))
    for c in range(table.shape[1]):
        others = np.flatnonzero(y_true != c)
        table[slots[others], c] = factors[others, c]
    own = factors[np.arange(len(y_true)), y_true] - table[slots, y_true[:, np.newaxis]]
    rows = CellRows(slots, y_true.astype(np.int64), np.asarray(weight, np.float64), np.ascontiguousarray(own))
    return rows, CellTables(basis[chosen], column, is_missing, table)


def _of_columns(counts: Sequence[Counts], varies: Array) -> Array:
    """Return the positions of the cells of the columns that vary, among those of all columns."""
    sizes = np.concatenate([np.diff(sums.offsets) for sums in counts])
    return np.flatnonzero(np.repeat(varies, sizes))


def _varying(counts: Sequence[Counts]) -> Array:
    """Return which columns of some blocks show two cells or more; the others are independent of the class."""
    columns = [sums.column(j).any(axis=0) for sums in counts for j in range(len(sums.cardinalities))]
    return np.array([np.count_nonzero(shown) > 1 for shown in columns])


def _prior_roots(model: GenerativeModel, block: Block, counts: Counts) -> Iterator[Any]:
    r"""Yield a root of the prior covariance of the numbers of each column, with a row of zeros for a missing cell.

    Those of categories are independent, of variance 1. Those of m bins are a line in the standardised centres z of the
    bins, of variance 1 per unit, and a random walk W from bin to bin, of variance 1 from end to end:
    :math:`\operatorname{cov} = z z^\top + W W^\top`, where W is centred. At most 48 directions are kept, those of the
    greatest variance: they hold 99 % of that of the walk. Direction k has the variance 1/(πk)², and n rows tell a
    number of variance v from 0 if nv/4 is not small; the other directions are left out. The root of categories is
    sparse: a dense one of 10⁴ would take 0.8 GB.
    """
    from scipy.sparse import eye_array

    for position, j in enumerate(block.columns):
        size = counts.cardinalities[position]
        weight = counts.column(position).sum(axis=0)
        if not model.schema.columns[j].is_binned:
            varies = np.count_nonzero(weight) > 1
            yield eye_array(size + 1, size, k=-1) if varies else np.zeros((size + 1, 1))
            continue
        steps = np.arange(1, size) / size
        walk = ((np.arange(size)[:, np.newaxis] >= np.arange(1, size)) - (1.0 - steps)) / np.sqrt(size)
        root = np.column_stack([_standardised(_bin_centres(model, j), weight), walk])
        directions, spreads, _ = np.linalg.svd(root, full_matrices=False)
        root = (directions * spreads)[:, : n_directions(float(weight.sum()))]
        yield np.vstack([np.zeros(root.shape[1]), root])


def n_directions(n_rows: float) -> int:
    """Return how many directions of the numbers of a binned column so many rows can tell from 0."""
    return int(min(2.0 + np.sqrt(n_rows / (4.0 * _LEAST_INFORMATION)) / np.pi, MOST_DIRECTIONS))


def _bin_centres(model: GenerativeModel, column: int) -> Array:
    """Return the middle of each bin, and of an outer bin its mean, in data units."""
    for block, parameters in zip(model.blocks, model.parameters, strict=True):
        if isinstance(parameters, BinnedParameters) and column in block.columns:
            position = block.columns.index(column)
            cuts, (below, above) = np.array(parameters.cuts[position]), parameters.scale[:, position]
            if len(cuts):
                return np.concatenate([[cuts[0] - below], (cuts[:-1] + cuts[1:]) / 2.0, [cuts[-1] + above]])
            return parameters.mean[[position]]
    raise AssertionError("a binned column has no density within its bins")


def _standardised(values: Array, weight: Array) -> Array:
    if not weight.sum() > 0:
        return np.zeros(len(values))
    share = weight / weight.sum()
    centred = values - share @ values
    spread = float(np.sqrt(share @ centred**2))
    return centred / spread if spread > 0 else np.zeros(len(values))


def _block_diagonal(parts: list[Any]) -> Any:
    from scipy.sparse import block_diag

    joined = block_diag(parts, format="csr")
    joined.eliminate_zeros()
    return joined


def _as_log_probabilities(tables: Array, counts: Counts) -> Array:
    """Return tables (C, Σ (K + 1)) that have the same posteriors, and whose exponentials sum to at most 1 per column.

    The share of a cell among all rows, and a constant per column, multiply the factors of all classes alike.
    """
    out = tables.copy()
    for first, last in zip(counts.offsets[:-1], counts.offsets[1:], strict=True):
        cells = slice(first + 1, last)
        if last - first > 1:
            weight = counts.table[:, cells].sum(axis=0) + 1.0
            out[:, cells] += np.log(weight / weight.sum())
            peak = out[:, cells].max()
            out[:, cells] -= peak + np.log(np.exp(out[:, cells] - peak).sum(axis=1).max())
        out[:, first] = 0.0
    return out
