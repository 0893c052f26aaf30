"""Second passes over the rows, shared by several models and by all folds.

Two-pass densities and EM for missing cells need further statistics once the first ones are known. In cross-validation
each model needs them of the rows outside each fold. Added up per fold, one pass serves all models and all folds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any

from posteriori.densities import PatternDensity, TwoPassDensity, implements
from posteriori.learning.em import blocks_estimated_by_em
from posteriori.learning.fold_sums import components_of_folds, per_fold, sums_of_parts, sums_without_each
from posteriori.model import Block
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.statistics.joint_counts import CountTogether
from posteriori.statistics.missing_patterns import MissingPatterns
from posteriori.tables import Batch, Schema


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


@dataclass(frozen=True)
class _Request:
    """Statistics of the columns of a block under a schema, to be added up per fold.

    Requests are equal if all fields of their factories are: equality of factories would ignore groups of categories.
    """

    schema: Schema
    columns: tuple[int, ...]
    identity: Any
    factory: Any = field(compare=False)

    @classmethod
    def of(cls, schema: Schema, columns: tuple[int, ...], factory: Any) -> _Request:
        """Return the request for the statistics of a factory."""
        return cls(schema, columns, _identity(factory), factory)

    @property
    def is_hashable(self) -> bool:
        """Whether another fit can ask for the same statistics: factories that hold arrays are of one fit alone."""
        try:
            hash(self.identity)
        except TypeError:
            return False
        return True


def _identity(factory: Any) -> Any:
    """Return the class and the fields of a factory."""
    if isinstance(factory, type) or not is_dataclass(factory):
        return factory
    return type(factory), *(_identity(getattr(factory, one.name)) for one in fields(factory))


class _NotAddedUp(Exception):
    """A density asks for statistics that are not added up yet."""

    def __init__(self, request: _Request, block: Block) -> None:
        super().__init__()
        self.request, self.block = request, block


@dataclass(frozen=True)
class _Sums:
    """The statistics of several requests; + adds up those of the same request."""

    parts: tuple[Any, ...]

    def __add__(self, other: _Sums) -> _Sums:
        return _Sums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


@dataclass
class SharedPasses:
    """Adds up the statistics of second passes per fold, once for all fits that ask for them.

    Attributes
    ----------
    source : LabelledSource
        The rows, with their folds.
    folds : int
    held_out : Batch or None
        The rows that are in a fold, where most rows are in none.
    """

    source: LabelledSource
    folds: int
    held_out: Batch | None = None
    _found: dict[_Request, list[Any]] = field(default_factory=dict)

    def prepare(self, subsets: Sequence[Subset]) -> list[Prepared]:
        """Return the blocks, statistics and patterns of missing cells of each subset; one pass per round of requests.

        A density that asks for statistics of its own data, such as fourth powers about the means of the subset, keeps
        its first structure, and makes its pass when it is fitted.
        """
        prepared: dict[int, Prepared] = {}
        while True:
            wanted: dict[_Request, Block] = {}
            for position, subset in enumerate(subsets):
                if position in prepared:
                    continue
                try:
                    prepared[position] = self._prepared(subset)
                except _NotAddedUp as error:
                    wanted.setdefault(error.request, error.block)
            if not wanted:
                return [prepared[position] for position in range(len(subsets))]
            self._add_up(wanted, len(subsets[0].statistics.weight))

    def _prepared(self, subset: Subset) -> Prepared:
        blocks, sums = list(subset.blocks), list(subset.statistics.blocks)
        for position, block in enumerate(subset.blocks):
            if implements(block.density, TwoPassDensity):
                try:
                    density, sums[position] = block.density.refine(sums[position], self._look(subset, block))
                except _OfOneFit:
                    continue
                blocks[position] = replace(block, density=density)
        refined, statistics = tuple(blocks), replace(subset.statistics, blocks=tuple(sums))
        patterns = {}
        if not statistics.hidden:
            for index in blocks_estimated_by_em(refined, statistics):
                if implements(refined[index].density, PatternDensity):
                    found = self._look(subset, refined[index])(MissingPatterns)
                    if found.scatters is not None:
                        patterns[index] = found
        return Prepared(refined, statistics, patterns)

    def _look(self, subset: Subset, block: Block) -> Callable[[Any], Any]:
        """Return the function from a factory to its statistics of the rows of a subset."""

        def look(factory: Any) -> Any:
            request = _Request.of(subset.schema, tuple(block.columns), factory)
            if not request.is_hashable:
                raise _OfOneFit
            found = self._found.get(request)
            if found is None:
                raise _NotAddedUp(request, block)
            sums = found[subset.index]
            return sums.narrowed(factory.scopes) if isinstance(factory, CountTogether) else sums

        return look

    def _add_up(self, wanted: dict[_Request, Block], n_components: int) -> None:
        """Add up the requested statistics, in one pass over the rows."""
        united = _united(wanted)
        added = list(dict.fromkeys(united.values()))
        blocks = {one: wanted[request] for request, one in united.items()}

        def collect(batch: Batch) -> _Sums:
            return _Sums(tuple(_collected(batch.with_schema(one.schema), blocks[one], one.factory) for one in added))

        found: dict[_Request, list[Any]] = {}
        if self.held_out is not None:
            of_subsets = sums_without_each(sums_of_parts(self.source, collect, self.folds, self.held_out))
            found = {one: [sums.parts[i] for sums in of_subsets] for i, one in enumerate(added)}
        else:
            whole = self.source.reduce(per_fold(collect, self.folds))
            of_folds = components_of_folds((self.folds + 1) * n_components, self.folds)
            for one, sums in zip(added, whole.parts, strict=True):
                found[one] = sums_without_each([sums.reindexed(components) for components in of_folds])
        for request, one in united.items():
            self._found[request] = found[one]


class _OfOneFit(Exception):
    """A density asks for statistics that no other fit can share."""


def _united(wanted: Iterable[_Request]) -> dict[_Request, _Request]:
    """Return, for each request, the one to add up: counts of some of its scopes are part of one request.

    Structures that are learned without one of the folds share most of their families.
    """
    scopes: dict[tuple[Schema, tuple[int, ...]], dict[Any, None]] = {}
    for one in wanted:
        if isinstance(one.factory, CountTogether) and one.factory.scopes is not None:
            scopes.setdefault((one.schema, one.columns), {}).update(dict.fromkeys(one.factory.scopes))
    united = {}
    for one in wanted:
        if isinstance(one.factory, CountTogether) and one.factory.scopes is not None:
            # Scopes that differ only in their last column are counted faster if they are neighbours.
            together = CountTogether(tuple(sorted(scopes[one.schema, one.columns])))
            united[one] = _Request.of(one.schema, one.columns, together)
        else:
            united[one] = one
    return united


def _collected(batch: Batch, block: Block, factory: Any) -> Any:
    known = batch.labelled()
    return factory.of(block.tile(known), known.assignment)
