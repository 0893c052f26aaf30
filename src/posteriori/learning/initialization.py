"""Where EM starts when labels do not say the component: from rows that lie far apart, and what labels do say."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from posteriori.model import Block, reject_outside
from posteriori.sources import LabelledSource
from posteriori.statistics import JointStatistics, from_responsibilities
from posteriori.statistics.row_sample import splitmix64
from posteriori.tables import Batch
from posteriori.typing import Array

_SAMPLED_ROWS = 4096  # among which the seeds are sought
_APART = 2.0  # the expected squared distance of two cells of a column of variance 1: what is taken for a missing one


@dataclass(frozen=True)
class SampledRows:
    """A uniform sample of the distinct rows, each with the weight of all rows that equal it.

    The rows kept are those whose cells have the smallest hashes. So the sample depends neither on the order nor on
    the size of batches, and a row of weight 2 counts as two equal rows of weight 1.

    Attributes
    ----------
    key : ndarray (m,)
        The hash of the cells.
    numbers : ndarray (m, d)
        NaN where missing.
    codes : ndarray (m, d)
        0 where missing.
    weight : ndarray (m,)
    count : ndarray (m,)
        How many rows of any weight there are of each.
    """

    key: Array
    numbers: Array
    codes: Array
    weight: Array
    count: Array

    @classmethod
    def of(cls, batch: Batch, chosen: Array) -> SampledRows:
        """Return the sample of some rows of a batch, chosen by a mask."""
        weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
        numbers, codes = batch.numbers.values[chosen], batch.codes.values[chosen]
        return cls(_hashes(numbers, codes), numbers, codes, weight[chosen], np.ones(len(numbers)))._smallest()

    def __add__(self, other: SampledRows) -> SampledRows:
        names = ("key", "numbers", "codes", "weight", "count")
        return SampledRows(*(np.concatenate([getattr(self, name), getattr(other, name)]) for name in names))._smallest()

    def _smallest(self) -> SampledRows:
        """Return as many distinct rows as are kept, in the order of their hashes."""
        key, first, position = np.unique(self.key, return_index=True, return_inverse=True)
        weight, count = (np.bincount(position, part, len(key)) for part in (self.weight, self.count))
        first = first[:_SAMPLED_ROWS]
        m = len(first)
        return SampledRows(key[:m], self.numbers[first], self.codes[first], weight[:m], count[:m])


def _hashes(numbers: Array, codes: Array) -> Array:
    """Return a hash of each row's cells, (n,); equal rows have equal ones."""
    key = np.zeros(len(numbers), np.uint64)
    cells = numbers.astype(np.float64) + 0.0  # −0.0 becomes 0.0
    cells[np.isnan(cells)] = np.nan  # of all the bit patterns of NaN, one
    for column in (*cells.view(np.uint64).T, *codes.astype(np.uint64).T):
        key = splitmix64(key ^ column)
    return key


@dataclass(frozen=True)
class Seeds:
    """Rows about which components start: numbers (Z, d), codes (Z, d), and the units (d,) in which rows are near."""

    numbers: Array
    codes: Array
    unit: Array

    def distance(self, numbers: Array, codes: Array) -> Array:
        """Return the squared distance of rows from each seed, (n, Z): differing categories lie 2 apart."""
        total = np.zeros((len(numbers), len(self.numbers)))
        for z in range(total.shape[1]):
            apart = ((numbers - self.numbers[z]) / self.unit) ** 2
            total[:, z] = np.where(np.isnan(apart), _APART, apart).sum(axis=1)
            unequal = (codes != self.codes[z]) | (codes == 0)
            total[:, z] += _APART * unequal.sum(axis=1)
        return total

    def nearest(self, batch: Batch) -> Array:
        """Return the seed that each row of a batch is nearest to, (n,)."""
        return self.distance(batch.numbers.values, batch.codes.values).argmin(axis=1)


@dataclass(frozen=True)
class Samples:
    """A sample of rows for each group of them; samples of more rows add up."""

    rows: tuple[SampledRows, ...]

    def __add__(self, other: Samples) -> Samples:
        return Samples(tuple(a + b for a, b in zip(self.rows, other.rows, strict=True)))


def sampled(
    source: LabelledSource, blocks: tuple[Block, ...], members: Callable[[Batch], Array] | None = None
) -> tuple[SampledRows, ...]:
    """Return distinct rows of any weight to start from; of each group in members(batch), (n, G) booleans.

    Raises
    ------
    ValueError
        A cell is infinite.
    """

    def accumulate(batch: Batch) -> Samples:
        for block in blocks:
            reject_outside(block, batch)
        weight = np.ones(len(batch)) if batch.assignment is None else batch.assignment.weight
        groups = np.ones((len(batch), 1), np.bool_) if members is None else members(batch)
        counted = groups & (weight > 0)[:, np.newaxis]
        return Samples(tuple(SampledRows.of(batch, chosen) for chosen in counted.T))

    return source.reduce(accumulate).rows


@dataclass(frozen=True)
class Initialization:
    """How rows are shared out before there is a model: as their labels say, and by the nearest seed of a class.

    Attributes
    ----------
    seeds : tuple of Seeds
        Of each class; none where every class is one component.
    """

    seeds: tuple[Seeds, ...]

    def responsibilities(self, batch: Batch) -> Array:
        """Return the share of each row that each component has, (n, Z): 0 in a row of which nothing is told."""
        assert batch.assignment is not None
        label_likelihood = batch.assignment.label_likelihood
        assert label_likelihood is not None
        says = (label_likelihood.recorded >= 0) | np.isneginf(label_likelihood.log_likelihood).any(axis=1)
        share = np.exp(label_likelihood.log_likelihood) * says[:, np.newaxis]
        if self.seeds:
            nearest = [
                np.eye(len(seeds.numbers))[seeds.nearest(batch)] if len(seeds.numbers) > 1 else np.ones((len(batch), 1))
                for seeds in self.seeds
            ]
            share *= np.concatenate(nearest, axis=1)
        return share / np.where(says, share.sum(axis=1), 1.0)[:, np.newaxis]

    def collect(self, blocks: tuple[Block, ...]) -> Callable[[Batch], JointStatistics]:
        """Return the function that takes a batch to the statistics of its rows, shared out so."""

        def accumulate(batch: Batch) -> JointStatistics:
            assert batch.assignment is not None
            responsibilities = self.responsibilities(batch) * batch.assignment.weight[:, np.newaxis]
            sums = tuple(
                from_responsibilities(block.density.sufficient_statistics, block.tile(batch), responsibilities)
                for block in blocks
            )
            return JointStatistics(responsibilities.sum(axis=0), sums)

        return accumulate


def initializations(
    source: LabelledSource, blocks: tuple[Block, ...], of_class: tuple[int, ...], n_starts: int, seed: int
) -> list[Initialization]:
    """Return ways to begin: several, from seeds drawn anew, where a class has several components.

    Raises
    ------
    ValueError
        A class has fewer rows than components.
    """
    if not of_class:
        return [Initialization(())]
    many = np.bincount(of_class)
    first = np.searchsorted(of_class, np.arange(len(many)))

    def members(batch: Batch) -> Array:
        assert batch.assignment is not None
        assert batch.assignment.label_likelihood is not None
        label_likelihood = batch.assignment.label_likelihood
        likely = np.where(label_likelihood.recorded >= 0, label_likelihood.recorded, -1)[:, np.newaxis] == np.arange(
            len(many)
        )
        partly = (label_likelihood.recorded < 0) & np.isneginf(label_likelihood.log_likelihood).any(axis=1)
        return likely | (partly[:, np.newaxis] & (label_likelihood.log_likelihood[:, first] > -np.inf))

    samples = sampled(source, blocks, members)
    for c, (rows, wanted) in enumerate(zip(samples, many, strict=True)):
        if rows.count.sum() < wanted:
            label = source.classes.categories[c] if source.classes else c
            raise ValueError(
                f"class {label!r} has {rows.count.sum():.0f} rows, fewer than its {wanted} components; ask for fewer"
            )
    rng = np.random.default_rng(seed)
    return [
        Initialization(tuple(spread_seeds(rows, int(wanted), rng) for rows, wanted in zip(samples, many, strict=True)))
        for _ in range(n_starts)
    ]


def spread_seeds(rows: SampledRows, n_components: int, rng: np.random.Generator) -> Seeds:
    """Return seeds that lie far apart: each the best of some rows drawn by their squared distance from those before.

    References
    ----------
    Arthur & Vassilvitskii, k-means++: the advantages of careful seeding, SODA 2007.
    """
    unit = _standard_deviations(rows)
    tries = 2 + int(math.log(n_components))
    share = rows.weight / rows.weight.sum()
    positions = [int(rng.choice(len(share), p=share))]
    nearest = np.full(len(share), np.inf)
    while True:
        last = Seeds(rows.numbers[positions[-1:]], rows.codes[positions[-1:]], unit)
        nearest = np.minimum(nearest, last.distance(rows.numbers, rows.codes)[:, 0])
        if len(positions) == n_components:
            return Seeds(rows.numbers[positions], rows.codes[positions], unit)
        chance = rows.weight * nearest
        chance = chance / chance.sum() if chance.sum() > 0 else share
        drawn = rng.choice(len(share), size=tries, p=chance)
        distance = Seeds(rows.numbers[drawn], rows.codes[drawn], unit).distance(rows.numbers, rows.codes)
        left = rows.weight @ np.minimum(nearest[:, np.newaxis], distance)
        positions.append(int(drawn[left.argmin()]))


def _standard_deviations(rows: SampledRows) -> Array:
    """Return that of each column of numbers, (d,); 1 where it does not vary."""
    weight = np.where(np.isnan(rows.numbers), 0.0, rows.weight[:, np.newaxis])
    values = np.where(np.isnan(rows.numbers), 0.0, rows.numbers)
    total = np.maximum(weight.sum(axis=0), 1e-300)
    mean = (weight * values).sum(axis=0) / total
    variance = (weight * (values - mean) ** 2).sum(axis=0) / total
    return np.sqrt(np.where(variance > 0, variance, 1.0))
