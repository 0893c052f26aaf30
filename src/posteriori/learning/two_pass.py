"""Two-pass densities: they choose their structure from statistics of a first pass, before parameters are estimated."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any, cast

from posteriori.densities import Grouped, RandomTrees, TwoPassDensity, implements, ungrouped
from posteriori.model import Block
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch, Schema


def unrefined(blocks: tuple[Block, ...]) -> list[str]:
    """Return the parameters whose densities need a second pass over the rows, as a user would write them."""
    densities = (block.density for block in blocks)
    return [density.second_pass for density in densities if implements(density, TwoPassDensity) and density.second_pass]


def carry_over_structure(blocks: tuple[Block, ...], earlier: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with the structure that an earlier call chose, such as the amount of shrinkage."""
    if len(blocks) != len(earlier):
        return blocks

    def carried_over(block: Block, before: Block) -> Block:
        density, other = block.density, before.density
        if not implements(density, TwoPassDensity) or type(ungrouped(density)) is not type(ungrouped(other)):
            return block
        return replace(block, density=density.carry_over_structure(cast(Any, other)))

    return tuple(map(carried_over, blocks, earlier))


def with_categories_of(
    blocks: tuple[Block, ...], earlier: Schema, schema: Schema, components: Sequence[int]
) -> tuple[Block, ...]:
    """Return the blocks with the groups and the splits of categories of an earlier schema, for those of this one.

    `components` are the indices there of the components here, −1 for a new one.
    """

    def moved(block: Block) -> Block:
        if not isinstance(block.density, Grouped | RandomTrees):
            return block
        moves = [schema.columns[j].places_in(earlier.columns[j]) for j in block.coded(schema)]
        density = block.density.reindexed(moves)
        if isinstance(density, RandomTrees):
            density = density.with_components(components)
        return replace(block, density=density)

    return tuple(moved(block) for block in blocks)


def without_groups(blocks: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with densities over categories themselves, as EM with hidden components needs them."""
    return tuple(replace(block, density=ungrouped(block.density)) for block in blocks)


def refine(
    source: LabelledSource, blocks: tuple[Block, ...], statistics: JointStatistics
) -> tuple[tuple[Block, ...], JointStatistics]:
    """Choose the structure of two-pass densities; return the blocks, and the statistics that these need."""

    def look(block: Block, sufficient_statistics: Any) -> Any:
        def accumulate(batch: Batch) -> Any:
            known = batch.labelled()
            return sufficient_statistics.of(block.tile(known), known.assignment)

        return source.reduce(accumulate)

    refined, sums = list(blocks), list(statistics.blocks)
    for position, block in enumerate(blocks):
        if implements(block.density, TwoPassDensity):
            density, sums[position] = block.density.refine(sums[position], partial(look, block))
            refined[position] = replace(block, density=density)
    return tuple(refined), replace(statistics, blocks=tuple(sums))
