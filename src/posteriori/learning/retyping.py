"""Convert statistics of earlier rows, in which a column was entirely missing, to the kind that later rows give it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from posteriori.learning.cut_points import bins_of
from posteriori.model import Block
from posteriori.statistics import Counts, JointStatistics, Moments, TailMoments
from posteriori.tables import Schema, quote
from posteriori.typing import Array


def with_missing_cuts(schema: Schema, blocks: Sequence[Block]) -> Schema:
    """Return the schema in which every column that is to be binned and has no cut points is one bin.

    Cut points are chosen on the first call. A column that was entirely missing then has none.
    """
    uncut = [j for j in bins_of(tuple(blocks)) if schema.columns[j].cuts is None]
    return schema.with_cuts(dict.fromkeys(uncut, ())) if uncut else schema


def retyped(
    statistics: JointStatistics, past: Schema, earlier: Sequence[Block], schema: Schema, blocks: Sequence[Block]
) -> JointStatistics:
    """Return the statistics of earlier rows for the blocks of later ones.

    They differ if a column was entirely missing in the earlier rows and has a value now: it may have another kind, and
    therefore be in another block. A new categorical column has no category yet (`JointStatistics.reindexed` adds them).

    Raises
    ------
    ValueError
        The distributions have changed, and blocks differ for this reason; or the statistics of a density cannot be
        converted to other columns.
    """
    recoded = _recoded(past, schema)
    same_blocks = [_needs(block) for block in blocks] == [_needs(block) for block in earlier]
    if same_blocks and not _has_new_cuts(past, schema) and not recoded:
        return statistics
    left = list(zip(earlier, statistics.blocks, strict=True))
    converted = []
    for block in blocks:
        before, sums = _take_counterpart(left, block)
        positions = [before.columns.index(j) if j in before.columns else -1 for j in block.columns]
        changed = set(before.columns) ^ set(block.columns)
        if before.density.sufficient_statistics != block.density.sufficient_statistics or not all(
            past.columns[j].has_no_kind for j in changed
        ):
            raise _changed()
        if block.density.kind == "mixed" and not block.models_missingness:  # it stores numbers apart from codes
            changed |= recoded & set(block.columns)
        converted.append(_rearranged(sums, positions, block, schema, statistics.weight, changed))
    if not all(past.columns[j].has_no_kind for block, _ in left for j in block.columns):
        raise _changed()
    return replace(statistics, blocks=tuple(converted))


def _needs(block: Block) -> tuple[Any, tuple[int, ...]]:
    return block.density.sufficient_statistics, block.columns


def _changed() -> ValueError:
    return ValueError("distributions have changed since the last call; use fit to start over")


def _take_counterpart(left: list[tuple[Block, Any]], block: Block) -> tuple[Block, Any]:
    """Remove the counterpart of a block from the earlier ones, and return it with its statistics.

    It has an equal density, or else one of the same type, and shares the most columns. For a new block it is an empty
    block, and None.
    """
    candidates = [pair for pair in left if pair[0].density == block.density]
    candidates = candidates or [pair for pair in left if type(pair[0].density) is type(block.density)]
    if not candidates:
        return Block(block.density, ()), None
    counterpart = max(candidates, key=lambda pair: len(set(pair[0].columns) & set(block.columns)))
    left[:] = [pair for pair in left if pair is not counterpart]
    return counterpart


def _has_new_cuts(past: Schema, schema: Schema) -> bool:
    """Return whether a column that was entirely missing has other cut points now."""
    pairs = zip(past.columns, schema.columns, strict=True)
    return any(before.has_no_kind and before.cuts != after.cuts for before, after in pairs)


def _recoded(past: Schema, schema: Schema) -> set[int]:
    """Return the columns that changed from numbers to codes, or from codes to numbers."""
    return set(past.coded) ^ set(schema.coded)


def _rearranged(sums: Any, positions: list[int], block: Block, schema: Schema, weight: Array, changed: set[int]) -> Any:
    """Return the statistics of a block with some new columns, whose cells were all missing."""
    cuts = tuple(schema.columns[j].cuts or () for j in block.columns)
    sufficient_statistics = block.density.sufficient_statistics
    if sufficient_statistics is TailMoments:
        return (TailMoments((), _no_moments(weight)) if sums is None else sums).placed(positions, cuts)
    if not changed:
        return sums
    if sufficient_statistics is Moments:
        return (_no_moments(weight) if sums is None else sums).placed(positions)
    if sufficient_statistics is Counts:
        return (Counts((), weight[:, None][:, :0]) if sums is None else sums).placed(positions, weight)
    names = quote(schema.columns[j].name for j in sorted(changed))
    raise ValueError(
        f"{names} had no value in the rows of earlier calls, and the statistics of this model cannot be converted to "
        "the kind of its first values; name it in categorical_features from the first call on, or include a row with a "
        "value in the first call"
    )


def _no_moments(weight: Array) -> Moments:
    nothing = weight[:, None][:, :0]
    return Moments(nothing, nothing, nothing, nothing)
