"""Leave-one-out log priors and log factors in closed form: the statistics of a row are subtracted from the sums."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import numpy as np

from posteriori.densities import Grouped, LeaveOneOutDensity
from posteriori.model import Block, GenerativeModel, Prior, warn_of_approximation
from posteriori.statistics import JointStatistics
from posteriori.statistics.left_out import less, weights_left
from posteriori.tables import Assignment, Batch, Codes, Schema, quote
from posteriori.tables.batch import Mixed, Tile
from posteriori.typing import Array


def left_out_prior(prior: Prior, statistics: JointStatistics, assignment: Assignment) -> Array:
    """Return log p(z) in nats, (n, Z), per row by the model without it."""
    return prior.estimate(weights_left(statistics.weight, assignment))


def left_out_factors(
    model: GenerativeModel, statistics: JointStatistics, batch: Batch, *, refit: bool = True, skip: int | None = None
) -> Array:
    """Return log p(x_j | z) in nats, (n, Z, d), of each row by the model without it; 0 for a missing cell.

    Blocks that do not depend on the component are 0, because they do not change the posterior.

    Parameters
    ----------
    model : GenerativeModel
    statistics : JointStatistics
        The statistics that the model was estimated from. They include these rows.
    batch : Batch
        Rows whose components are known.
    refit : bool
        Whether to estimate the parameters again without a row that has no closed form; if not, its factors are NaN.
    skip : int, optional
        A block whose factors are 0.
    """
    seen = unseen_as_missing(model, statistics, batch)
    positions = [i for i, block in enumerate(model.blocks) if not block.shared and i != skip]
    of_blocks = [_block_factors(model, statistics, position, batch, seen, refit) for position in positions]
    if len(positions) == 1 and model.blocks[positions[0]].columns == tuple(range(len(model.schema.columns))):
        return of_blocks[0]
    factors = np.zeros((len(batch), model.n_components, len(model.schema.columns)))
    for position, of_block in zip(positions, of_blocks, strict=True):  # a column has two if its gaps have a factor
        factors[:, :, model.blocks[position].columns] += of_block
    return factors


def unseen_as_missing(model: GenerativeModel, statistics: JointStatistics, batch: Batch) -> Batch:
    """Return the rows without the categories that no other row shows: the model without the row does not know them."""
    unseen = _unseen(model, statistics, batch)
    if not unseen.any():
        return batch
    codes = np.where(unseen, batch.codes.values.dtype.type(0), batch.codes.values)
    return replace(batch, codes=replace(batch.codes, values=codes))


def check_closed_form(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Raise an error if a row cannot be subtracted from the statistics of a model, or a density has no `left_out`."""
    check_exact(model, statistics)
    for block in model.blocks:
        if not block.shared and not isinstance(block.density, LeaveOneOutDensity):
            raise TypeError(f"the density {block.density.name!r} has no leave-one-out (`left_out`); choose another")


def check_exact(model: GenerativeModel, statistics: JointStatistics) -> None:
    """Raise ValueError if the statistics of a model are expectations, from which no row can be subtracted."""
    if statistics.hidden > 0:
        raise ValueError(
            "this model was fitted by EM to rows without label, so that no row can be left out of it in closed form; "
            "remove these rows"
        )
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        if not block.shared and not sums.is_exact():
            names = quote(model.schema.columns[j].name for j in block.columns)
            raise ValueError(
                f"this model was fitted by EM because of missing cells in {names}, so that no row can be left out of "
                "it in closed form; remove rows with missing cells, or choose a model that needs no EM (NaiveBayes)"
            )


def _block_factors(
    model: GenerativeModel, statistics: JointStatistics, position: int, batch: Batch, seen: Batch, refit: bool
) -> Array:
    """Return the log factors of a block: in closed form or, for rows without one, by an estimate per row."""
    block, sums, labels = model.blocks[position], statistics.blocks[position], batch.assignment
    assert labels is not None
    density: Any = block.density
    warn_of_approximation(block, model.parameters[position], seen)
    factors: Array = density.left_out(model.parameters[position], sums, block.tile(seen), labels)
    if block.models_missingness:  # the category of no other row is present in this row, and missing without it
        unseen = (cast(Mixed, block.tile(batch)).present != cast(Mixed, block.tile(seen)).present).any(axis=1)
        factors[unseen] = np.nan
    without_closed_form = np.flatnonzero(np.isnan(factors).any(axis=(1, 2)))
    if len(without_closed_form) and refit:
        density = density.with_fixed_structure(model.parameters[position])
        for i in without_closed_form.tolist():
            row = np.array([i])
            given = Assignment(labels.component[row], labels.weight[row], labels.n_components)
            tile, rest = block.tile(seen.rows(row)), sums
            if given.weight[0] > 0:
                learned = block.tile(batch.rows(row))
                if block.models_missingness:  # no other row has the category, so that its loss changes no sum
                    rest = sums - density.sufficient_statistics.of(learned, given)
                else:
                    rest, tile = _without_lost_categories(
                        sums.without(learned, given), learned, tile, block, model.schema
                    )
            factors[i] = density.log_factors(density.estimate(rest), tile)[0]
    return factors


def _without_lost_categories(rest: Any, learned: Tile, seen: Tile, block: Block, schema: Schema) -> tuple[Any, Tile]:
    """Return the statistics without a row, and its tile, without the categories that only this row showed."""
    coded = block.coded(schema)
    if not coded:
        return rest, seen
    codes, known = (tile.codes if isinstance(tile, Mixed) else tile for tile in (learned, seen))
    assert isinstance(codes, Codes)
    assert isinstance(known, Codes)
    if (codes.values == known.values).all():
        return rest, seen
    lost = np.where(known.values[0] == 0, codes.values[0].astype(np.int64) - 1, -1)
    kept = [[k for k in range(size) if k != gone] for size, gone in zip(codes.cardinalities, lost, strict=True)]
    cells = Codes(known.values, tuple(map(len, kept)))
    rest = rest.reindexed(range(len(rest.observed())), kept)
    return rest, replace(seen, codes=cells) if isinstance(seen, Mixed) else cells


def _has_group(block: Block, position: int) -> bool:
    """Return whether a column of codes is grouped: a category without rows then still has the factor of its group."""
    return isinstance(block.density, Grouped) and block.density.keeps_category(position)


def _unseen(model: GenerativeModel, statistics: JointStatistics, batch: Batch) -> Array:
    """Return which cells hold a category that no other row of positive weight shows, (n, number of coded columns)."""
    schema, codes = model.schema, batch.codes.values
    result = np.zeros(codes.shape, np.bool_)
    assert batch.assignment is not None
    for block, sums in zip(model.blocks, statistics.blocks, strict=True):
        for position, j in enumerate(block.coded(schema)):
            if schema.columns[j].declared or schema.columns[j].is_binned or _has_group(block, position):
                continue
            column = schema.coded.index(j)
            shown = np.concatenate([[np.inf], sums.column(position).sum(axis=0)])[codes[:, column]]
            result[:, column] = less(shown, batch.assignment.weight) <= 0
    return result
