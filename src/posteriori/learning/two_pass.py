"""Two-pass densities: they choose their structure from statistics of a first pass, before parameters are estimated."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from posteriori.densities import TwoPassDensity, implements
from posteriori.model import Block
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.tables import Batch


def unrefined(blocks: tuple[Block, ...]) -> list[str]:
    """Return the parameters whose densities need a second pass over the rows, as a user would write them."""
    densities = (block.density for block in blocks)
    return [density.second_pass for density in densities if implements(density, TwoPassDensity) and density.second_pass]


def carry_over_structure(blocks: tuple[Block, ...], earlier: tuple[Block, ...]) -> tuple[Block, ...]:
    """Return the blocks with the structure that an earlier call chose, such as the amount of shrinkage."""
    if len(blocks) != len(earlier):
        return blocks
    return tuple(
        replace(block, density=block.density.carry_over_structure(before.density))
        if implements(block.density, TwoPassDensity) and type(block.density) is type(before.density)
        else block
        for block, before in zip(blocks, earlier, strict=True)
    )


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
