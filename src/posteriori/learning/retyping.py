"""Statistics of earlier rows in which a column had no value, under the kind that later rows give it."""

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
    """Return the schema in which a column that is to be binned and has no cut points yet is one bin.

    Cut points are chosen on the first call, and a column without a value then had none to choose.
    """
    uncut = [j for j in bins_of(tuple(blocks)) if schema.columns[j].cuts is None]
    return schema.with_cuts(dict.fromkeys(uncut, ())) if uncut else schema


def retyped(
    statistics: JointStatistics, past: Schema, earlier: Sequence[Block], schema: Schema, blocks: Sequence[Block]
) -> JointStatistics:
    """Return the statistics of earlier rows for the blocks of later ones.

    They differ where a column that had no value in the earlier rows has one now, which may give it another kind and so
    another block. A new categorical column has no category yet (`JointStatistics.reindexed` adds them).

    Raises
    ------
    ValueError
        Blocks differ for another reason: the distributions have changed; or the statistics of a density cannot be
        taken over to other columns.
    """
    moved_over = _recoded(past, schema)
    alike = [_wants(block) for block in blocks] == [_wants(block) for block in earlier]
    if alike and not _recut(past, schema) and not moved_over:
        return statistics
    left = list(zip(earlier, statistics.blocks, strict=True))
    moved = []
    for block in blocks:
        before, sums = _taken(left, block)
        positions = [before.columns.index(j) if j in before.columns else -1 for j in block.columns]
        changed = set(before.columns) ^ set(block.columns)
        if before.density.sufficient_statistics != block.density.sufficient_statistics or not all(
            past.columns[j].has_no_kind for j in changed
        ):
            raise _changed()
        if block.density.kind == "mixed" and not block.models_missingness:  # it keeps numbers apart from codes
            changed |= moved_over & set(block.columns)
        moved.append(_placed(sums, positions, block, schema, statistics.weight, changed))
    if not all(past.columns[j].has_no_kind for block, _ in left for j in block.columns):
        raise _changed()
    return replace(statistics, blocks=tuple(moved))


def _wants(block: Block) -> tuple[Any, tuple[int, ...]]:
    return block.density.sufficient_statistics, block.columns


def _changed() -> ValueError:
    return ValueError("distributions have changed since the last call; use fit to start over")


def _taken(left: list[tuple[Block, Any]], block: Block) -> tuple[Block, Any]:
    """Take from the earlier blocks, and their statistics, what a block goes on from: nothing where it is new."""
    alike = [one for one in left if one[0].density == block.density]
    alike = alike or [one for one in left if type(one[0].density) is type(block.density)]
    if not alike:
        return Block(block.density, ()), None
    found = max(alike, key=lambda one: len(set(one[0].columns) & set(block.columns)))
    left[:] = [one for one in left if one is not found]
    return found


def _recut(past: Schema, schema: Schema) -> bool:
    """Return whether a column without a value had other cut points."""
    pairs = zip(past.columns, schema.columns, strict=True)
    return any(before.has_no_kind and before.cuts != after.cuts for before, after in pairs)


def _recoded(past: Schema, schema: Schema) -> set[int]:
    """Return the columns that were numbers and are codes now, or the other way round."""
    return set(past.coded) ^ set(schema.coded)


def _placed(sums: Any, positions: list[int], block: Block, schema: Schema, weight: Array, changed: set[int]) -> Any:
    """Return the statistics of a block of which some columns are new, all of whose cells were missing."""
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
        f"{names} had no value in the rows of earlier calls, and what this model keeps of them cannot take up the kind "
        "of the first values that follow; name it in categorical_features from the first call on, or let the first "
        "call see a row with a value"
    )


def _no_moments(weight: Array) -> Moments:
    nothing = weight[:, None][:, :0]
    return Moments(nothing, nothing, nothing, nothing)
