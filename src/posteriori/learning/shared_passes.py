"""Models of folds from passes that they share: second passes, forests and categories of held-out rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from typing import Any, cast

import numpy as np

from posteriori.densities import Binned, Grouped, RandomTrees, TwoPassDensity, implements
from posteriori.densities.capabilities import PatternDensity
from posteriori.densities.tree_growing import FEWEST_TREES, DealtRows
from posteriori.learning.fit import Collect, FitResult, Plan, blocks_estimated_by_em, estimate
from posteriori.learning.folds import components_of_folds, per_fold, sums_of_parts, sums_without_each
from posteriori.model import Block, GenerativeModel, Posterior, Prior
from posteriori.sources import LabelledSource
from posteriori.statistics import Counts, JointStatistics
from posteriori.statistics.counts import CountTogether
from posteriori.statistics.forests import CodedRows, LeafCounts
from posteriori.statistics.scatter import MissingPatterns
from posteriori.support.typing import Array
from posteriori.tables import Assignment, Batch, Codes, Schema


@dataclass(frozen=True)
class ObservedCategoriesModel:
    """A model that knows only the categories that occur in its own training rows.

    A refit without the held-out rows would have these categories; the others are unseen, and count as missing cells.

    Attributes
    ----------
    full : Schema
        With all categories, and the cut points of the model.
    model : GenerativeModel
    recode : tuple of ndarray
        For each coded column, the code under the model's schema of every code of the full schema; empty if the schemas
        have the same categories.
    statistics : JointStatistics
        The statistics that the model was estimated from.
    """

    full: Schema
    model: GenerativeModel
    recode: tuple[Array, ...]
    statistics: JointStatistics

    @classmethod
    def of(cls, learned: FitResult, prior: Prior) -> ObservedCategoriesModel:
        """Return the model of the same statistics without the categories that have no weight in them."""
        model, statistics = learned.model, learned.statistics
        trimmed = _Trimmed.of(model.schema, model.blocks, statistics)
        if trimmed is None:
            return cls(model.schema, model, (), statistics)
        return trimmed.estimated(model.schema, prior)

    @classmethod
    def estimated(
        cls, schema: Schema, blocks: tuple[Block, ...], prior: Prior, statistics: JointStatistics
    ) -> ObservedCategoriesModel:
        """Return the closed-form estimate without the categories that have no weight in the statistics."""
        trimmed = _Trimmed.of(schema, blocks, statistics)
        if trimmed is None:
            return cls(schema, estimate(schema, blocks, prior, statistics), (), statistics)
        return trimmed.estimated(schema, prior)

    @property
    def posterior(self) -> Posterior:
        """The model as a posterior of rows in all codes."""
        return Posterior((self.model,), readers=(self.to_observed_codes,))

    def log_posterior(self, batch: Batch) -> Array:
        """Return log p(y | x) in nats, (n, C)."""
        return self.model.log_posterior(self.to_observed_codes(batch))

    def to_observed_codes(self, batch: Batch) -> Batch:
        """Return the rows in the codes of the model's schema."""
        batch = batch.with_schema(self.full)
        if not self.recode:
            return batch
        codes = batch.codes.values.copy()
        for position, table in enumerate(self.recode):
            codes[:, position] = table[codes[:, position]]
        schema = self.model.schema
        return replace(batch, schema=schema, codes=Codes(codes, schema.cardinalities(schema.coded)))


@dataclass(frozen=True)
class _Trimmed:
    """A schema, blocks and statistics without the categories that have no weight, and the codes of the others."""

    schema: Schema
    blocks: tuple[Block, ...]
    statistics: JointStatistics
    recode: tuple[Array, ...]

    @classmethod
    def of(cls, schema: Schema, blocks: tuple[Block, ...], statistics: JointStatistics) -> _Trimmed | None:
        """Return them; None if every category has weight."""
        seen: dict[int, Array] = {}
        inferred = {j for j in schema.of_kind("categorical") if not schema.columns[j].declared}
        coded = [block.coded(schema) for block in blocks]
        for columns, sums in zip(coded, statistics.blocks, strict=True):
            for position, j in enumerate(columns):
                if j in inferred:
                    seen[j] = sums.column(position).any(axis=0)
        if all(map(np.all, seen.values())):
            return None
        sizes = {j: schema.columns[j].cardinality for j in schema.coded}
        kept = {j: np.flatnonzero(seen[j]).tolist() if j in seen else range(size) for j, size in sizes.items()}
        kept_of_blocks = [[kept[j] for j in of_block] or None for of_block in coded]
        sums = statistics.reindexed(range(len(statistics.weight)), kept_of_blocks)
        pairs = zip(blocks, kept_of_blocks, strict=True)
        known = list(schema.columns)
        for j, one in seen.items():
            if not one.all():
                known[j] = replace(known[j], categories=tuple([known[j].categories[k] for k in kept[j]]))
        recode = [_codes_of(seen.get(j), size).astype(schema.code_dtype) for j, size in sizes.items()]
        trimmed = tuple([_with_categories(block, of_block) for block, of_block in pairs])
        return cls(replace(schema, columns=tuple(known)), trimmed, sums, tuple(recode))

    def estimated(self, full: Schema, prior: Prior) -> ObservedCategoriesModel:
        """Return the model that these statistics determine."""
        model = estimate(self.schema, self.blocks, prior, self.statistics)
        return ObservedCategoriesModel(full, model, self.recode, self.statistics)


def _codes_of(seen: Array | None, size: int) -> Array:
    """Return the new code of each code, (size + 1,): 0 for a category that is not seen."""
    return np.arange(size + 1) if seen is None else np.concatenate([[0], np.where(seen, np.cumsum(seen), 0)])


def _with_categories(block: Block, kept: Sequence[Sequence[int]] | None) -> Block:
    """Return the block with the groups of the categories that are kept, by their indices per column of codes."""
    if kept is None or not isinstance(block.density, Grouped | RandomTrees):
        return block
    return replace(block, density=block.density.reindexed(kept))


MOST_GROUPS = (
    10  # of folds: a tree leaves one group out, so that many folds cost no more, and enough trees predict each
)


def leaves_folds_out(plan: Plan, folds: int) -> bool:
    """Return whether the trees of a plan can leave the folds out: there are enough, and no label chooses the bins."""
    density = plan.blocks[0].density if plan.blocks else None  # a class prior alone has none
    bins = [block.density.bins for block in plan.blocks if isinstance(block.density, Binned)]
    return (
        isinstance(density, RandomTrees)
        and (density.n_trees or FEWEST_TREES) >= min(folds, MOST_GROUPS)
        and "mdlp" not in bins
    )


def fit_forest(
    rows: LabelledSource, folds: int, plan: Plan, schema: Schema
) -> tuple[FitResult, tuple[ObservedCategoriesModel, ...]]:
    """Return the forest of all trees, and for each fold the forest of the trees that did not see it.

    Parameters
    ----------
    rows : LabelledSource
        With their folds; those in no fold train all trees.
    folds : int
    plan : Plan
        Its first density is `RandomTrees` (`leaves_folds_out`).
    schema : Schema
        With the cut points of all rows.

    Notes
    -----
    The leaves of the first forest count all rows, those of the others the rows outside their fold. The cut points and
    the strength of back-off are common. Of more than ten folds, each tree leaves out a tenth of them together.
    """
    if folds > MOST_GROUPS:
        fold = cast(Array, rows.folds)
        grouped = rows.with_folds(np.where(fold < 0, fold, fold % MOST_GROUPS).astype(np.int32))
        full, of_groups = fit_forest(grouped, MOST_GROUPS, plan, schema)
        return full, tuple(of_groups[k % MOST_GROUPS] for k in range(folds))
    block = plan.blocks[0]
    density: Any = block.density
    collect = per_fold(Collect(plan.blocks), folds)
    sums: JointStatistics = rows.reduce(lambda batch: collect(batch.with_schema(schema)))
    n_classes = len(sums.weight) // (folds + 1)
    dealt = _dealt(density, sums.blocks[0], folds, n_classes)
    grown, counts, outside = density.grown(dealt)
    fold_of_trees = dealt.fold_of_trees(grown.structure.n_trees)

    def singles_of(codes: Codes, labels: Assignment, fold: Array) -> Counts:
        pair = np.where(fold < 0, folds, fold) * n_classes + labels.component
        pairs = Assignment(pair.astype(np.int32), labels.weight, len(sums.weight))
        return Counts.of(codes, pairs)

    def count(batch: Batch) -> _LeafSums:
        known = batch.with_schema(schema).labelled()
        labels, fold, tile = cast(Assignment, known.assignment), _folds_of(batch), cast(Codes, block.tile(known))
        found, seen = grown.sufficient_statistics.with_folds(tile, labels, fold, fold_of_trees)
        return _LeafSums(singles_of(tile, labels, fold), found.leaves, seen)

    if sums.blocks[0].is_complete:
        sample = dealt.rows
        labels = Assignment(sample.component, sample.weight, n_classes)
        singles_per_fold = singles_of(Codes(sample.codes, sample.cardinalities), labels, dealt.fold)
        leaves = _LeafSums(singles_per_fold, counts.leaves, outside)
    else:
        leaves = rows.reduce(count)
    singles = sums_without_each([leaves.singles.reindexed(part) for part in _components(n_classes, folds)])
    *others, all_rows = _without_each(replace(sums, blocks=sums.blocks[1:]), folds)
    statistics = _with_first(all_rows, LeafCounts(singles[-1], leaves.whole))
    blocks = (replace(block, density=grown), *plan.blocks[1:])
    full = FitResult(estimate(schema, blocks, plan.prior, statistics), statistics)
    without = []
    for k, of_others in enumerate(others):
        first, last = np.searchsorted(fold_of_trees, [k, k + 1]).tolist()
        trees, numbers = grown.of_trees(first, last)
        held = _with_first(of_others, LeafCounts(singles[k], leaves.outside[numbers]))
        model = estimate(schema, (replace(block, density=trees), *plan.blocks[1:]), plan.prior, held)
        without.append(ObservedCategoriesModel(model.schema, model, (), held))
    return full, tuple(without)


@dataclass(frozen=True)
class _LeafSums:
    """Counts per fold and class, and the weights in the leaves: of all rows, and of those that a tree may see."""

    singles: Counts
    whole: Array
    outside: Array

    def __add__(self, other: _LeafSums) -> _LeafSums:
        return _LeafSums(self.singles + other.singles, self.whole + other.whole, self.outside + other.outside)


def _dealt(density: RandomTrees, sample: CodedRows, folds: int, n_classes: int) -> DealtRows:
    """Return the rows with their folds, from components that are pairs of fold and class."""
    fold, component = np.divmod(sample.component, n_classes)
    rows = replace(sample, component=component.astype(np.int32), n_components=n_classes)
    return density.deal(rows, np.where(fold == folds, -1, fold), folds)


def _folds_of(batch: Batch) -> Array:
    """Return the fold of each row with a label, −1 for none."""
    labels = cast(Assignment, batch.assignment)
    fold = np.full(len(batch), -1, np.int32) if batch.fold is None else batch.fold
    known: Array = fold[labels.component >= 0]
    return known


def _components(n_classes: int, folds: int) -> list[range]:
    return components_of_folds((folds + 1) * n_classes, folds)


def _without_each(sums: JointStatistics, folds: int) -> list[JointStatistics]:
    """Return the statistics of the rows outside each fold, and last of all rows."""
    same: list[Any] = [None] * len(sums.blocks)
    of_folds = components_of_folds(len(sums.weight), folds)
    parts = [replace(sums.reindexed(components, same), hidden=0.0) for components in of_folds]
    parts[-1] = replace(parts[-1], hidden=sums.hidden)
    return sums_without_each(parts)


def _with_first(statistics: JointStatistics, first: LeafCounts) -> JointStatistics:
    blocks: Sequence[Any] = (first, *statistics.blocks)
    return replace(statistics, blocks=tuple(blocks))


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
class _BlockRequest:
    """Statistics of the columns of a block under a schema, to be added up per fold.

    Requests are equal if all fields of their factories are: equality of factories would ignore groups of categories.
    """

    schema: Schema
    columns: tuple[int, ...]
    identity: Any
    factory: Any = field(compare=False)

    @classmethod
    def of(cls, schema: Schema, columns: tuple[int, ...], factory: Any) -> _BlockRequest:
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

    def __init__(self, request: _BlockRequest, block: Block) -> None:
        super().__init__()
        self.request, self.block = request, block


@dataclass(frozen=True)
class RequestSums:
    """The statistics of several requests; + adds up those of the same request."""

    parts: tuple[Any, ...]

    def __add__(self, other: RequestSums) -> RequestSums:
        return RequestSums(tuple(a + b for a, b in zip(self.parts, other.parts, strict=True)))


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
    _found: dict[_BlockRequest, list[Any]] = field(default_factory=dict)

    def prepare(self, subsets: Sequence[Subset]) -> list[Prepared]:
        """Return the blocks, statistics and patterns of missing cells of each subset; one pass per round of requests.

        A density that asks for statistics of its own data, such as fourth powers about the means of the subset, keeps
        its first structure, and makes its pass when it is fitted.
        """
        prepared: dict[int, Prepared] = {}
        while True:
            wanted: dict[_BlockRequest, Block] = {}
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
            request = _BlockRequest.of(subset.schema, tuple(block.columns), factory)
            if not request.is_hashable:
                raise _OfOneFit
            found = self._found.get(request)
            if found is None:
                raise _NotAddedUp(request, block)
            sums = found[subset.index]
            return sums.narrowed(factory.scopes) if isinstance(factory, CountTogether) else sums

        return look

    def _add_up(self, wanted: dict[_BlockRequest, Block], n_components: int) -> None:
        """Add up the requested statistics, in one pass over the rows."""
        united = _united(wanted)
        added = list(dict.fromkeys(united.values()))
        blocks = {one: wanted[request] for request, one in united.items()}

        def collect(batch: Batch) -> RequestSums:
            return RequestSums(
                tuple(_collected(batch.with_schema(one.schema), blocks[one], one.factory) for one in added)
            )

        found: dict[_BlockRequest, list[Any]] = {}
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


def _united(wanted: Iterable[_BlockRequest]) -> dict[_BlockRequest, _BlockRequest]:
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
            united[one] = _BlockRequest.of(one.schema, one.columns, together)
        else:
            united[one] = one
    return united


def _collected(batch: Batch, block: Block, factory: Any) -> Any:
    known = batch.labelled()
    return factory.of(block.tile(known), known.assignment)
