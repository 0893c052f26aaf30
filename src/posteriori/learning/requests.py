"""Requests for statistics of the rows outside each fold and of all rows: one pass over the rows answers many of them.

The first pass of cross-fitting requests what the densities are estimated from; the second pass what they ask for to
choose their structure. Equal requests of several models are added up once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import cached_property
from typing import Any

from posteriori.learning.fit import checked_sums, totals
from posteriori.learning.folds import outside, sums_of_parts, sums_outside_folds, sums_without_each, with_pairs
from posteriori.model import Block
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics
from posteriori.statistics.counts import CountTogether
from posteriori.tables import Batch, Schema

IN_NO_FOLD = -1  # the rows that train the models of all folds, as a subset


@dataclass(frozen=True)
class PassRequest:
    """Statistics of some columns under a schema.

    Requests are equal if all fields of their factories are: equality of factories would ignore groups of categories.

    Attributes
    ----------
    schema : Schema
        The rows are read with its cut points.
    columns : tuple of int
    subset : int or None
        The rows outside this fold only, or all rows only if it is the number of folds; None for each of these subsets.
        Where the cut points differ between folds, each schema is that of one subset.
    identity : object
        The class and the fields of the factory.
    factory : object
        What adds up the statistics: ``factory.of(tile, assignment)``.
    block : Block or None
        The block that reads the columns; None for the weight of the rows and the ranges of all columns (`totals`).
    is_checked : bool
        Whether cells out of the support of the density are refused. One pass over the rows is enough for this.
    """

    schema: Schema
    columns: tuple[int, ...]
    subset: int | None
    identity: Any
    factory: Any = field(compare=False)
    block: Block | None = field(compare=False)
    is_checked: bool = field(compare=False)

    @classmethod
    def of(cls, schema: Schema, subset: int | None, block: Block, factory: Any) -> PassRequest:
        """Return the request for the statistics of a factory."""
        return cls(schema, block.columns, subset, _identity(factory), factory, block, is_checked=False)

    @classmethod
    def of_model(cls, schema: Schema, subset: int | None, blocks: Sequence[Block]) -> tuple[PassRequest, ...]:
        """Return the requests for all that a model is estimated from: one per block, and last that for the totals."""
        found = []
        for block in blocks:
            one = cls.of(schema, subset, block, block.density.sufficient_statistics)
            identity = one.identity if one.is_hashable else object()  # equal to that of no other request
            found.append(replace(one, identity=identity, is_checked=True))
        return (*found, cls(schema, (), subset, totals, totals, None, is_checked=True))

    @property
    def is_hashable(self) -> bool:
        """Whether another fit can ask for the same statistics: factories that hold arrays are of one fit alone."""
        try:
            hash(self.identity)
        except TypeError:
            return False
        return True

    @property
    def is_of_scopes(self) -> bool:
        """Whether combinations of codes of chosen scopes are counted."""
        return isinstance(self.factory, CountTogether) and self.factory.scopes is not None

    def collect(self, batch: Batch, known: Batch) -> Any:
        """Return the statistics of a batch under the schema, of which `known` are the labelled rows."""
        if self.block is None:
            return totals(batch, known)
        if self.is_checked:
            return checked_sums(self.block, batch, known)
        return self.factory.of(self.block.tile(known), known.assignment)


def _identity(factory: Any) -> Any:
    """Return the class and the fields of a factory."""
    if isinstance(factory, type) or not is_dataclass(factory):
        return factory
    return type(factory), *(_identity(getattr(factory, one.name)) for one in fields(factory))


@dataclass(frozen=True)
class _RequestedSums:
    """The statistics of several requests; + adds up those of the same request."""

    parts: tuple[Any, ...]
    n_components: int  # of the rows

    def __add__(self, other: _RequestedSums) -> _RequestedSums:
        parts = tuple([a + b for a, b in zip(self.parts, other.parts, strict=True)])
        return _RequestedSums(parts, self.n_components)


@dataclass(frozen=True)
class _CollectRequested:
    """A function from a batch to the statistics of all requests.

    Requests for each subset have a component per pair of fold and class; per class if `folds` is None.
    """

    requests: tuple[PassRequest, ...]
    folds: int | None

    def __call__(self, batch: Batch) -> _RequestedSums:
        found: dict[int, Any] = {}
        for subset, by_schema in self._places.items():
            rows = self._rows(batch, subset)
            for schema, places in by_schema.items():
                read = rows.with_schema(schema)
                known = read.labelled()
                found |= {place: self.requests[place].collect(read, known) for place in places}
        assert batch.assignment is not None
        parts = tuple([found[place] for place in range(len(self.requests))])
        return _RequestedSums(parts, batch.assignment.n_components)

    def _rows(self, batch: Batch, subset: int | None) -> Batch:
        if subset is not None:
            return outside(batch, None if subset == self.folds else subset)
        return batch if self.folds is None else with_pairs(batch, self.folds)

    @cached_property
    def _places(self) -> dict[int | None, dict[Schema, list[int]]]:
        """The positions of the requests by subset and schema: rows are chosen, and cut into bins, once for all."""
        places: dict[int | None, dict[Schema, list[int]]] = {}
        for place, request in enumerate(self.requests):
            places.setdefault(request.subset, {}).setdefault(request.schema, []).append(place)
        return places


@dataclass
class SubsetSums:
    """The statistics of the rows outside each fold, and of all rows, as far as they were requested.

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
    _found: dict[PassRequest, dict[int, Any]] = field(default_factory=dict)

    def __contains__(self, request: PassRequest) -> bool:
        return request in self._found

    def of(self, request: PassRequest, subset: int) -> Any:
        """Return the requested statistics of the rows outside a fold, or of all rows if it is the number of folds.

        Where most rows are in no fold, those of these alone are of the subset `IN_NO_FOLD`.
        """
        sums = self._found[request][subset]
        return sums.narrowed(request.factory.scopes) if request.is_of_scopes else sums

    def of_model(self, requests: Sequence[PassRequest], subset: int) -> JointStatistics:
        """Return the statistics of a model from its requests (`PassRequest.of_model`)."""
        *of_blocks, of_rows = requests
        joint: JointStatistics = self.of(of_rows, subset)
        return replace(joint, blocks=tuple([self.of(request, subset) for request in of_blocks]))

    def add_up(self, requests: Iterable[PassRequest], progress: Callable[[int], None] | None = None) -> None:
        """Answer requests from one pass over the rows; `progress` is called with the number of rows of each batch."""
        united = _united([request for request in dict.fromkeys(requests) if request not in self._found])
        added = tuple(dict.fromkeys(united.values()))
        if not added:
            return
        source = self.source.with_progress(progress)
        found = self._from_pairs(source, added) if self.held_out is None else self._from_parts(source, added)
        for request, one in united.items():
            self._found[request] = found[one]

    def _from_pairs(
        self, source: LabelledSource, requests: tuple[PassRequest, ...]
    ) -> dict[PassRequest, dict[int, Any]]:
        """Return the sums of each subset, from those per pair of fold and class."""
        sums = source.reduce(_CollectRequested(requests, self.folds))
        n = (self.folds + 1) * sums.n_components
        return {
            request: dict(enumerate(sums_outside_folds(part, n, self.folds)))
            if request.subset is None
            else {request.subset: part}
            for request, part in zip(requests, sums.parts, strict=True)
        }

    def _from_parts(
        self, source: LabelledSource, requests: tuple[PassRequest, ...]
    ) -> dict[PassRequest, dict[int, Any]]:
        """Return the sums of each subset, and of the rows in no fold, from those of each fold."""
        assert self.held_out is not None
        assert all(request.subset is None for request in requests)  # the rows in no fold choose the cut points of all
        parts = sums_of_parts(source, _CollectRequested(requests, None), self.folds, self.held_out)
        of_subsets = [*enumerate(sums_without_each(parts)), (IN_NO_FOLD, parts[-1])]
        return {request: {k: sums.parts[place] for k, sums in of_subsets} for place, request in enumerate(requests)}


def _united(requests: Sequence[PassRequest]) -> dict[PassRequest, PassRequest]:
    """Return, for each request, the one to add up: counts of some of its scopes are part of one request.

    Structures that are learned without one of the folds share most of their families.
    """
    scopes: dict[Any, dict[Any, None]] = {}
    for one in requests:
        if one.is_of_scopes and not one.is_checked:
            scopes.setdefault((one.schema, one.columns, one.subset), {}).update(dict.fromkeys(one.factory.scopes))
    united = {}
    for one in requests:
        united[one] = one
        if one.is_of_scopes and not one.is_checked:
            # Scopes that differ only in their last column are counted faster if they are neighbours.
            together = CountTogether(tuple(sorted(scopes[one.schema, one.columns, one.subset])))
            united[one] = replace(one, identity=_identity(together), factory=together)
    return united
