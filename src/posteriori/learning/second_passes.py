"""What the fits without each fold need of second passes: all of them ask, and each pass answers what all have asked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from posteriori.densities import TwoPassDensity, implements
from posteriori.densities.capabilities import PatternDensity
from posteriori.learning.fit import blocks_estimated_by_em
from posteriori.learning.requests import Request, SubsetSums
from posteriori.model import Block
from posteriori.statistics import JointStatistics
from posteriori.statistics.scatter import MissingPatterns
from posteriori.tables import Schema


@dataclass(frozen=True)
class Prepared:
    """What one fit needs of the rows of one subset.

    Attributes
    ----------
    blocks : tuple of Block
        With the structure that two-pass densities choose.
    statistics : JointStatistics
        Of these blocks.
    patterns : dict
        The patterns of missing cells, by the index of the block; blocks that are absent need a pass of their own.
    """

    blocks: tuple[Block, ...]
    statistics: JointStatistics
    patterns: dict[int, MissingPatterns] = field(default_factory=dict)


@dataclass(frozen=True)
class Subset:
    """The rows outside fold `index`, or all rows if `index` is the number of folds, and their statistics for a plan."""

    schema: Schema
    index: int
    blocks: tuple[Block, ...]
    statistics: JointStatistics


def prepare(sums: SubsetSums, subsets: Sequence[Subset]) -> list[Prepared]:
    """Return the blocks, statistics and patterns of missing cells of each subset; one pass per round of requests.

    A density that asks for statistics of its own data, such as fourth powers about the means of the subset, keeps its
    first structure, and makes its pass when it is fitted.
    """
    prepared: dict[int, Prepared] = {}
    while len(prepared) < len(subsets):
        wanted = []
        for position, subset in enumerate(subsets):
            if position not in prepared:
                try:
                    prepared[position] = _prepared(sums, subset)
                except _NotAddedUp as error:
                    wanted.append(error.request)
        sums.add_up(wanted)
    return [prepared[position] for position in range(len(subsets))]


def _prepared(sums: SubsetSums, subset: Subset) -> Prepared:
    blocks, of_blocks = list(subset.blocks), list(subset.statistics.blocks)
    for position, block in enumerate(subset.blocks):
        if implements(block.density, TwoPassDensity):
            try:
                density, of_blocks[position] = block.density.refine(of_blocks[position], _look(sums, subset, block))
            except _OfOneFit:
                continue
            blocks[position] = replace(block, density=density)
    refined, statistics = tuple(blocks), replace(subset.statistics, blocks=tuple(of_blocks))
    patterns = {}
    if not statistics.hidden:
        for index in blocks_estimated_by_em(refined, statistics):
            if implements(refined[index].density, PatternDensity):
                found = _look(sums, subset, refined[index])(MissingPatterns)
                if found.scatters is not None:
                    patterns[index] = found
    return Prepared(refined, statistics, patterns)


def _look(sums: SubsetSums, subset: Subset, block: Block) -> Callable[[Any], Any]:
    """Return the function from a factory to its statistics of the rows of a subset."""

    def look(factory: Any) -> Any:
        request = Request.of(subset.schema, None, block, factory)
        if not request.is_hashable:
            raise _OfOneFit
        if request not in sums:
            raise _NotAddedUp(request)
        return sums.of(request, subset.index)

    return look


class _NotAddedUp(Exception):
    """A density asks for statistics that are not added up yet."""

    def __init__(self, request: Request) -> None:
        super().__init__()
        self.request = request


class _OfOneFit(Exception):
    """A density asks for statistics that no other fit can share."""
