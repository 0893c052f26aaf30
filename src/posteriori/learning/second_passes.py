"""Second passes for the fits without each fold: each pass answers the requests of all of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import islice
from typing import Any, cast

from posteriori.densities import TwoPassDensity, implements
from posteriori.densities.capabilities import PatternDensity
from posteriori.densities.refinement import FurtherPass, Refined, Refinement
from posteriori.learning.requests import PassRequest, SubsetSums
from posteriori.model import Block
from posteriori.statistics import JointStatistics
from posteriori.statistics.scatter import MissingPatterns
from posteriori.tables import Schema


@dataclass(frozen=True)
class Prepared:
    """Blocks and statistics of one fit, from the rows of one subset.

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
    parts = [_Part.of(subset, place) for subset in subsets for place in range(len(subset.blocks))]
    while requests := {number: one.request for number, one in enumerate(parts) if one.request is not None}:
        sums.add_up(requests.values())
        for number, request in requests.items():
            parts[number] = parts[number].answered(sums.of(request, parts[number].subset.index))
    left = iter(parts)
    return [_together(subset, list(islice(left, len(subset.blocks)))) for subset in subsets]


@dataclass(frozen=True)
class _Part:
    """One block of a subset, as far as it is prepared: what it asks for, or its density and its statistics."""

    subset: Subset
    place: int  # of the block
    step: Refinement
    patterns: MissingPatterns | None = None  # None until they are counted

    @classmethod
    def of(cls, subset: Subset, place: int) -> _Part:
        """Return a block of a subset with its first request."""
        density, statistics = subset.blocks[place].density, subset.statistics.blocks[place]
        first = cls(subset, place, Refined(density, statistics))
        return first._at(density.refine(statistics)) if implements(density, TwoPassDensity) else first

    @cached_property
    def request(self) -> PassRequest | None:
        """The request of the block to the rows of all subsets; None if it is prepared."""
        if isinstance(self.step, FurtherPass):
            return self._request(self.step.factory)
        density, statistics = self.step
        is_expected = not self.subset.statistics.hidden and not statistics.is_exact()
        asks = self.patterns is None and is_expected and implements(density, PatternDensity)
        return self._request(MissingPatterns) if asks else None

    def answered(self, statistics: Any) -> _Part:
        """Return the block after the answer to its request."""
        if isinstance(self.step, FurtherPass):
            return self._at(self.step.then(statistics))
        return replace(self, patterns=statistics)

    def _at(self, step: Refinement) -> _Part:
        """Return the block at a step, or unrefined if no other fit can share the statistics that the step asks for."""
        if isinstance(step, FurtherPass) and not self._request(step.factory).is_hashable:
            step = Refined(self.subset.blocks[self.place].density, self.subset.statistics.blocks[self.place])
        return replace(self, step=step)

    def _request(self, factory: Any) -> PassRequest:
        return PassRequest.of(self.subset.schema, None, self.subset.blocks[self.place], factory)


def _together(subset: Subset, parts: Sequence[_Part]) -> Prepared:
    """Join the prepared blocks of one fit."""
    blocks, statistics, patterns = [], [], {}
    for block, part in zip(subset.blocks, parts, strict=True):
        density, sums = cast(Refined, part.step)
        blocks.append(block if density is block.density else replace(block, density=density))
        statistics.append(sums)
        if part.patterns is not None and part.patterns.scatters is not None:
            patterns[part.place] = part.patterns
    return Prepared(tuple(blocks), replace(subset.statistics, blocks=tuple(statistics)), patterns)
